"""Checks of values from others."""

import json

from tenv.core.untrusted import json_without_login, whole_number, without_login
from tests.support.each import each


@each("text, number", [("0", 0), ("007", 7), ("9" * 20, 10**20 - 1)])
def test_a_number_is_read(text: str, number: int) -> None:
    assert whole_number(text) == number


@each("text", ["", "²", "٣", "-1", "+1", " 1", "1_0", "1.0", "9" * 21, "9" * 5000])
def test_what_is_no_number_of_usual_size_is_none(text: str) -> None:
    assert whole_number(text) is None


@each(
    "text, plain",
    [
        ('asked "https://h.example/x?token=abc": gone', 'asked "https://h.example/x": gone'),
        ("https://h.example/x?é_token=abc", "https://h.example/x"),
        ("https://h.example\nme@example.org", "https://h.example\nme@example.org"),
        ('http://DOMAIN\\me:pass@h.example/ "', 'http://h.example/ "'),
        ("C:\\x", "C:\\x"),
    ],
)
def test_json_is_read_again_without_its_logins(text: str, plain: str) -> None:
    data = {"https://me:pass@h.example": [text, 1, "https://me:pass@h.example"]}
    for indent in (None, 2):
        read = json.loads(json_without_login(json.dumps(data, indent=indent)))
        assert read == {"https://h.example": [plain, 1, "https://h.example"]}


@each(
    "text, left",
    [
        ("http://user:secret@/b.tenv", "http:///b.tenv"),
        ("http://user:se@cret@host/b.tenv", "http://host/b.tenv"),
        ("at https://user:secret@", "at https://"),
        ("Invalid URL 'http://user:secret@'", "Invalid URL 'http://'"),
        ("ssh://git@host/a", "ssh://git@host/a"),
        ("https://host/a@1", "https://host/a@1"),
    ],
)
def test_no_part_of_a_login_is_left(text: str, left: str) -> None:
    assert without_login(text) == left
