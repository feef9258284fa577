"""One table of words for yes and no, for the variables of tenv and for the options that they stand for."""

import click
import pytest

from tenv.core.truth_words import TRUTH_WORDS, is_set, is_true
from tests.support.each import each
from tests.support.projects import Project, call


def test_the_words_are_those_of_the_parser_of_options() -> None:
    assert dict(TRUTH_WORDS) == click.types.BoolParamType.bool_states


@each("word, meaning", [("T", True), (" yes ", True), ("N", False), ("", False), ("si", None)])
def test_case_and_blanks_do_not_count(word: str, meaning: bool | None) -> None:
    assert is_true(word) is meaning


@pytest.mark.parametrize("words", [("show", "tiny"), ("lock", "--check", "tiny")], ids=lambda words: words[0])
def test_a_word_means_the_same_to_a_command_with_the_option_and_to_one_without(
    locked: Project, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for word, meaning in TRUTH_WORDS.items():
        monkeypatch.setenv("TENV_OFFLINE", word)
        assert is_set("TENV_OFFLINE") is meaning
        assert (call(*words).status, word) == (0, word)
    monkeypatch.setenv("TENV_OFFLINE", "si")
    assert "TENV_OFFLINE is `si`" in locked.fails(2, "usage", *words)
