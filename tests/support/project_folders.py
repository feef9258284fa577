"""Folders that are projects or look like one: the hooks, completion and Python agree on each."""

import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["LAYOUTS"]


def _file(name: str, text: str = "") -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return make


def _link(name: str, target: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(target)

    return make


def _linked_manifests(folder: Path) -> None:
    _file("elsewhere/tiny.toml")(folder)
    (folder / "manifests").symlink_to("elsewhere")


def _two_files(folder: Path) -> None:
    for name in ("tenv.toml", "manifests/k8s.yaml"):
        _file(name)(folder)


def _of_another_user(folder: Path) -> None:
    _file("manifests/tiny.toml")(folder)
    if os.geteuid() == 0:
        os.chown(folder, 4711, 4711)
    else:  # who is not root can't give a folder away; what is missing then is the row, and root's CI has it
        (folder / "manifests" / "tiny.toml").unlink()


def _sign_of_another_user(folder: Path) -> None:
    _file("tenv.toml")(folder)
    if os.geteuid() == 0:
        os.chown(folder / "tenv.toml", 4711, 4711)
    else:
        (folder / "tenv.toml").unlink()


def _checkout(name: str, *others: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        for file in (f"{name}torch/csrc/x.h", f"{name}setup.py", *others):
            _file(file)(folder)

    return make


LAYOUTS: dict[str, tuple[Callable[[Path], None], bool]] = {
    "a manifest": (_file("manifests/tiny.toml", "platforms = []"), True),
    "a broken manifest": (_file("manifests/tiny.toml", "["), True),
    "an empty manifest": (_file("manifests/tiny.toml"), True),
    "a manifest of another name": (_file("manifests/other one.toml"), True),
    "a manifest that is a link to nothing": (_link("manifests/tiny.toml", "nowhere"), True),
    "a folder of manifests that is a link": (_linked_manifests, True),
    "tenv.toml": (_file("tenv.toml"), True),
    "tenv.toml beside another tool's manifests": (_two_files, True),
    "another tool's manifests": (_file("manifests/deployment.yaml"), False),
    "a hidden manifest": (_file("manifests/.tiny.toml"), False),
    "a manifest further down": (_file("manifests/deep/tiny.toml"), False),
    "a file of that name": (_file("manifests"), False),
    "a folder tenv.toml": (_file("tenv.toml/x"), False),
    "nothing": (_file("readme"), False),
    "an empty folder of manifests": (lambda folder: (folder / "manifests").mkdir(), False),
    "of another user": (_of_another_user, False),
    "a tenv.toml of another user": (_sign_of_another_user, False),
    "a checkout": (_checkout(""), False),
    "a checkout with manifests": (_checkout("", "manifests/tiny.toml"), True),
    "a checkout in a project": (_checkout("deep/", "tenv.toml"), True),
    "a project in a checkout": (_checkout("", "deep/manifests/tiny.toml"), True),
}
"""What is made in a folder, and whether the folder is a project then."""
