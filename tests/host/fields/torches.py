from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import program
from tests.host.field_cases import Absent, Machine, Patch, Places, Present, Root
from tests.support.torches import make_base, make_torch, make_venv, torch_files


def machine(*, active: bool = True, torch: bool = True, cuda: str | None = "12.8") -> Machine:
    """A machine with a virtual environment, active or not, with or without a torch in it."""

    def make(root: Root, patch: Patch) -> Places:
        site = make_venv(root / "project/.venv", make_base(root / "base"))
        if torch:
            make_torch(site, torch_files("2.9.1+cu128" if cuda else "2.9.1+cpu", cuda=cuda))
        program(root / "usr/bin/python3", "exit 1")
        environ = {"VIRTUAL_ENV": str(root / "project/.venv")} if active else {}
        return Places(
            root, path=f"{root}/project/.venv/bin:{root}/usr/bin" if active else f"{root}/usr/bin", environ=environ
        )

    return make


PATH = "ROOT/project/.venv/lib/python3.12/site-packages/torch"
CASES = [
    Present(
        machine(),
        [{"path": PATH, "version": "2.9.1+cu128", "kind": "cuda", "cuda": "12.8", "found_by": "VIRTUAL_ENV"}],
        OriginKind.SEARCH,
        (f"2.9.1+cu128  {PATH}, by VIRTUAL_ENV",),
    ),
    Present(
        machine(cuda=None),
        [{"path": PATH, "version": "2.9.1+cpu", "kind": "cpu", "cuda": None, "found_by": "VIRTUAL_ENV"}],
        OriginKind.SEARCH,
        (f"2.9.1+cpu  {PATH}, by VIRTUAL_ENV",),
    ),
    Absent(machine(torch=False), ReasonKind.NONE, "no torch is there"),
    Absent(machine(active=False), ReasonKind.NONE, "no torch is there"),
]
