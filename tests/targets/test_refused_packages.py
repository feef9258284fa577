"""Packages that no lock can hold are refused by name, with the reason and what to use instead."""

from pathlib import Path

import pytest

from tests.support.projects import Project

HEAD = 'platforms = ["linux-64"]\nchannels = ["conda-forge"]\n\n'
REASON = (
    "`cudatoolkit-dev` holds no toolkit, but a script that downloads one when it is installed, outside every sha256"
)


@pytest.mark.parametrize("section", ["dependencies", "platform.linux-64.dependencies", "feature.more.dependencies"])
def test_a_manifest_can_t_ask_for_a_package_that_downloads_past_every_hash(project: Project, section: str) -> None:
    project.manifest.write_text(f'{HEAD}[{section}]\ncudatoolkit-dev = "11.7.*"\n')
    err = project.fails(3, "manifest", "lock", "tiny")
    assert REASON in err
    assert 'cuda = "11.8.0" in [archives]' in err


def test_it_is_left_out_of_a_file_of_another_tool(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "environment.yml"
    file.write_text("name: mine\nchannels: [conda-forge]\ndependencies:\n  - python=3.10\n  - cudatoolkit-dev=11.7\n")
    assert "not imported: `cudatoolkit-dev`, which holds no toolkit" in project.ok("import", str(file)).err
    assert "cudatoolkit" not in project.manifest.with_name("mine.toml").read_text()
