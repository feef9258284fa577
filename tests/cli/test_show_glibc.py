"""`tenv show` prints the glibc that files are chosen for, also where the manifest names none."""

import pytest

from tests.support.projects import Project, call


@pytest.mark.parametrize(
    ("platforms", "requirements", "shown"),
    [
        ('"linux-64"', "", "2.28 (the default)"),
        ('"linux-64", "win-64"', '[requirements]\nglibc = "2.31"\n', "2.31"),
        ('"win-64"', "", None),
    ],
)
def test_the_glibc_of_a_target_is_printed(project: Project, platforms: str, requirements: str, shown: str) -> None:
    project.manifest.write_text(
        f'platforms = [{platforms}]\npython = ">=3.12,<3.13"\n{requirements}[pypi-dependencies]\nsix = "*"\n'
    )
    lines = {
        name: value.strip() for name, _, value in (row.partition(":") for row in call("show", "tiny").out.splitlines())
    }
    assert lines.get("glibc") == shown
