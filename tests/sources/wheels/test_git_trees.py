"""The words of git: the line that has the reason."""

from tenv.sources.wheels.git_trees import _reason

UNREAD = "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\n"


def test_the_reason_is_the_line_before_the_general_one() -> None:
    for text, reason in (
        (f"fatal: '/nowhere' does not appear to be a git repository\n{UNREAD}", "fatal: '/nowhere' does not appear"),
        (f"git@example.org: Permission denied (publickey).\n{UNREAD}", "git@example.org: Permission denied"),
        (UNREAD, "fatal: Could not read"),
        ("remote: Not Found\nfatal: repository 'https://example.org/a/' not found\n", "fatal: repository 'https"),
        ("", "it says nothing"),
    ):
        assert _reason(text).startswith(reason), text
