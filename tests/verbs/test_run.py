"""`tenv run` with words that are no program."""

from tests.support.projects import Project


def test_a_file_that_is_no_program_is_named_as_what_it_is(created: Project) -> None:
    plain = created.folder / "plain"
    plain.touch()
    assert "can't be executed" in created.fails(2, "usage", "run", "tiny", "--", str(plain))
    assert "is a folder" in created.fails(2, "usage", "run", "tiny", "--", str(created.folder))


def test_the_hint_for_a_mistyped_target_begins_with_the_nearest_name(project: Project) -> None:
    said = project.fails(2, "unknown-target", "run", "tinny", "true")
    assert said.index("`tiny`") < said.index("tenv run tiny -- tinny true")
