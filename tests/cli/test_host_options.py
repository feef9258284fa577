"""The options that replace the host or parts of it."""

import pytest

from tests.support.each import each
from tests.support.projects import call


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--assume-gpu", "A100", "--assume-gpu", "V100"), "takes one GPU"),
        (("--assume-gpu", "V100", "--assume-gpu", "V100"), "takes one GPU"),
        (("--assume-gpu", "A100,V100"), "takes one GPU"),
        (("--assume-gpu", ""), "the value is empty"),
    ],
)
@pytest.mark.parametrize("command", [("check", "cpu"), ("check-driver", "cpu")], ids=" ".join)
def test_one_gpu_is_assumed(command: tuple[str, ...], words: tuple[str, ...], said: str) -> None:
    """The last one of several would decide without a word, and the verdict with it."""
    ended = call(*command, *words)
    assert (ended.status, said in ended.err) == (2, True), ended.err


@each("command", ["run", "activate", "show", "verify", "env"])
def test_an_empty_target_is_not_the_default_one(command: str) -> None:
    ended = call(command, "", *(("--", "true") if command == "run" else ()))
    assert ended.status == 2, ended.err
    assert "empty" in ended.err or "``" in ended.err
