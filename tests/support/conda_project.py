"""A project whose target is of conda packages, and the channel that has them."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenv.core.files import digest
from tenv.host.machine import current_platform
from tenv.locks.lock import Wheel
from tenv.targets.search import find_places
from tests.support.conda import Channel, make_conda, write_lock
from tests.support.fakes import Index
from tests.support.projects import HERE, Ended, Project, snapshot

__all__ = ["Conda", "nothing_changed", "other_lock", "wheel_of"]

MANIFEST = f"""\
platforms = ["{current_platform()}"]
channels  = ["CHANNEL"]

[dependencies]
"""


@dataclass
class Conda:
    """A project whose target `tiny` is of conda packages, and the channel that has them."""

    project: Project
    channel: Channel

    @property
    def prefix(self) -> Path:
        return self.project.prefix

    def lock(self, *names: str, wheels: tuple[Wheel, ...] = (), python: str = "") -> None:
        """Lock the newest package of each name, or of a name and a version such as `tool 1`, and ask for them."""
        self.channel.refresh()
        parts = [f'python = "{python}.*"\n'] if python else []
        parts += [MANIFEST.replace("CHANNEL", self.channel.root), *map(_request, names)]
        parts += ["[pypi-dependencies]\n", *(f'{wheel.name} = "*"\n' for wheel in wheels)] if wheels else []
        self.project.manifest.write_text("".join(parts))
        write_lock(find_places(self.project.folder).find("tiny"), self.channel, names, wheels)

    def make(self, name: str, version: str = "1", **settings: Any) -> None:
        make_conda(self.channel.folder, name, version, **settings)

    def take(self, package: Path) -> None:
        """Put a package that was made elsewhere into the channel."""
        folder = self.channel.folder / package.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(package, folder)

    def create(self, *words: str) -> Ended:
        return self.project.ok("create", "tiny", "--frozen", *words)

    def fails(self, status: int, code: str, *words: str) -> str:
        return self.project.fails(status, code, "create", "tiny", "--frozen", *words)

    def files(self) -> set[str]:
        found = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if not path.is_dir()}
        return {name for name in found if not name.startswith(("tenv-meta", "conda-meta")) and name != "CACHEDIR.TAG"}

    def state(self) -> str:
        return str(self.project.state()["state"]) if self.project.state_file.exists() else ""


def _request(name: str) -> str:
    name, _, version = name.partition(" ")
    return f'{name} = "{f"=={version}" if version else "*"}"\n'


def wheel_of(index: Index, name: str) -> Wheel:
    (file,) = index.folder.glob(f"{name}-*.whl")
    return Wheel(name, file.name.split("-")[1], file.name, digest(file), file.stat().st_size, (HERE,))


def other_lock(conda: Conda, old: str, new: str) -> None:
    """Change a text in the lock, as a user with an editor would."""
    text = conda.project.lock.read_text()
    assert old in text
    conda.project.lock.write_text(text.replace(old, new))


def nothing_changed(conda: Conda, before: dict[str, str]) -> None:
    assert conda.state() == "ready"
    assert snapshot(conda.prefix) == before
    conda.project.ok("activate", "tiny")
