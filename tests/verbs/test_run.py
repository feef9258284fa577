"""`tenv run` with words that are no program."""

from tests.support.projects import Project


def test_a_file_that_is_no_program_is_named_as_what_it_is(created: Project) -> None:
    plain = created.folder / "plain"
    plain.touch()
    assert "can't be executed" in created.fails(2, "usage", "run", "tiny", "--", str(plain))
    assert "is a folder" in created.fails(2, "usage", "run", "tiny", "--", str(created.folder))
