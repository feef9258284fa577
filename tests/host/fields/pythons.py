from collections.abc import Mapping
from pathlib import Path

from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import program, put
from tests.host.field_cases import Absent, Machine, Patch, Places, Present, Root


def python(path: Path) -> None:
    put(path)
    path.chmod(0o755)


def machine(
    *programs: str,
    headers: tuple[str, ...] = (),
    links: tuple[tuple[str, str], ...] = (),
    scripts: Mapping[str, str] | None = None,
) -> Machine:
    """A machine with programs, folders of headers, links to programs, and scripts."""

    def make(root: Root, patch: Patch) -> Places:
        for name in programs:
            python(root / name)
        for name in headers:
            put(root / name / "Python.h")
        for name, script in (scripts or {}).items():
            program(root / name, script)
        for link, to in links:
            (root / link).parent.mkdir(parents=True, exist_ok=True)
            (root / link).symlink_to(root / to)
        folders = ("venv/bin", "home/.pyenv/shims", "usr/bin")
        path = ":".join(str(root / name) for name in folders)
        return Places(root, path=path, environ={"HOME": str(root / "home")})

    return make


UV = "home/.local/share/uv/python/cpython-3.13.1-linux-x86_64-gnu"
CASES = [
    Present(
        machine("usr/bin/python3.12", links=(("venv/bin/python3.12", "usr/bin/python3.12"),)),
        [{"path": "ROOT/usr/bin/python3.12", "version": "3.12", "headers": False, "debug": False}],
        OriginKind.SEARCH,
        ("3.12  ROOT/usr/bin/python3.12  (without Python.h)",),
    ),
    Present(
        machine(
            "usr/bin/python3.7", headers=("usr/include/python3.7m",), links=(("usr/bin/python3", "usr/bin/python3.7"),)
        ),
        [{"path": "ROOT/usr/bin/python3.7", "version": "3.7", "headers": True, "debug": False}],
        OriginKind.SEARCH,
        ("3.7  ROOT/usr/bin/python3.7",),
    ),
    Present(
        machine(
            f"{UV}/bin/python3.13",
            "home/.pyenv/versions/3.11.4/bin/python3.11",
            headers=(f"{UV}/include/python3.13",),
            scripts={"home/.pyenv/shims/python3.11": "exit 1"},
        ),
        [
            {"path": f"ROOT/{UV}/bin/python3.13", "version": "3.13", "headers": True, "debug": False},
            {
                "path": "ROOT/home/.pyenv/versions/3.11.4/bin/python3.11",
                "version": "3.11",
                "headers": False,
                "debug": False,
            },
        ],
        OriginKind.SEARCH,
        (
            f"3.13  ROOT/{UV}/bin/python3.13",
            "3.11  ROOT/home/.pyenv/versions/3.11.4/bin/python3.11  (without Python.h)",
        ),
    ),
    Present(
        machine(scripts={"usr/bin/python3.10": 'echo "3.10 $(dirname "$0")/../include"'}, headers=("usr/include",)),
        [{"path": "ROOT/usr/bin/python3.10", "version": "3.10", "headers": True, "debug": False}],
        OriginKind.SEARCH,
        ("3.10  ROOT/usr/bin/python3.10",),
    ),
    Present(
        machine("usr/bin/python3.11", "usr/bin/python3.11-dbg", headers=("usr/include/python3.11d",)),
        [
            {"path": "ROOT/usr/bin/python3.11", "version": "3.11", "headers": False, "debug": False},
            {"path": "ROOT/usr/bin/python3.11-dbg", "version": "3.11", "headers": True, "debug": True},
        ],
        OriginKind.SEARCH,
        (
            "3.11  ROOT/usr/bin/python3.11  (without Python.h)",
            "3.11  ROOT/usr/bin/python3.11-dbg  (debug build)",
        ),
    ),
    Present(
        machine("usr/bin/python3.13d", headers=("usr/include/python3.13",)),
        [{"path": "ROOT/usr/bin/python3.13d", "version": "3.13", "headers": False, "debug": True}],
        OriginKind.SEARCH,
        ("3.13  ROOT/usr/bin/python3.13d  (debug build)  (without Python.h)",),
    ),
    Absent(machine(scripts={"usr/bin/python3": "echo what"}), ReasonKind.NONE, "no program `python3.N`"),
    Absent(machine("usr/bin/python3.12-config", "usr/bin/pypy3"), ReasonKind.NONE, "no program `python3.N`"),
]
