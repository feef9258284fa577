from pathlib import Path

import pytest

from tenv.core.errors import UsageError
from tenv.targets.config import Settings, read_settings
from tests.support.each import each


def write(folder: Path, text: str) -> Path:
    (folder / "config.toml").write_text(text)
    return folder


def test_without_a_file_there_are_no_settings(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == Settings()
    assert Settings().served("https://a.example/b") == ("https://a.example/b",)


def test_a_file_is_asked_of_its_mirrors_in_their_order(tmp_path: Path) -> None:
    mirrors = '[mirrors]\n"https://a.example/x" = ["https://m.example/1/", "https://m.example/2"]\n'
    settings = read_settings(write(tmp_path, mirrors))
    assert settings.served("https://a.example/x/y/z.tar") == (
        "https://m.example/1/y/z.tar",
        "https://m.example/2/y/z.tar",
    )
    assert settings.served("https://a.example/xy/z.tar") == ("https://a.example/xy/z.tar",)


def test_the_longest_beginning_counts(tmp_path: Path) -> None:
    mirrors = '[mirrors]\n"https://a.example" = ["https://m.example"]\n"https://a.example/x" = ["https://n.example"]\n'
    settings = read_settings(write(tmp_path, mirrors))
    assert settings.served("https://a.example/x/y") == ("https://n.example/y",)
    assert settings.served("https://a.example/z") == ("https://m.example/z",)


@each(
    "text, told",
    [
        ('[mirors]\n"https://a.example" = []\n', "config.toml:1: mirors: unknown key"),
        ('[mirrors]\n"a.example" = ["https://m.example"]\n', "`a.example` is not a URL"),
        ('[mirrors]\n"https://a.example" = []\n', "https://a.example: it has no mirror"),
        ('[mirrors]\n"https://a.example" = ["m.example"]\n', "`m.example` is not a URL"),
        ('[mirrors]\n"https://a.example" = "https://m.example"\n', "expected a list of strings, got a string"),
        ("[mirrors\n", "config.toml: not TOML"),
    ],
)
def test_what_can_not_be_used_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        read_settings(write(tmp_path, text))
    assert told in error.value.message
