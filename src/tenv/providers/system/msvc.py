"""Microsoft's compiler: the toolsets that Visual Studio and its Build Tools hold, as their installer tells."""

from collections.abc import Iterator
from pathlib import Path

from tenv.host.interface import Missing
from tenv.host.places import Places
from tenv.providers.system.interface import Lack, Tool, Wanted
from tenv.providers.system.search import patterns
from tenv.versions import Version

__all__ = ["find_msvc"]

_INSTALLER = "Microsoft Visual Studio/Installer/vswhere.exe"
_COMPONENT = "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"
_FILES = ("cl.exe", "c1.dll", "c1xx.dll", "c2.dll", "link.exe")


def find_msvc(wanted: Wanted) -> Tool | Lack:
    """Return the newest toolset that fits; that of a developer's prompt (VCToolsInstallDir) comes first."""
    refused: list[str] = []
    found: list[tuple[bool, Version, str, Path]] = []
    for way, folder in _toolsets(wanted.places):
        version = Version(folder.name) if all(part.isdigit() for part in folder.name.split(".")) else None
        if version is None or not _compiler(folder).is_file():
            refused.append(f"{folder}: there is no {_compiler(folder).relative_to(folder)} in it")
        elif version not in wanted.accepted:
            refused.append(f"{folder}: {version} is not {wanted.accepted}")
        else:
            found.append((way == "VCToolsInstallDir", version, way, folder))
    if not found:
        install = "winget install Microsoft.VisualStudio.2022.BuildTools, with the workload for C++"
        looked = "VCToolsInstallDir, what vswhere.exe names"
        return Lack(wanted.name, wanted.accepted.text, tuple(dict.fromkeys(refused)), looked, install)
    _, version, way, folder = max(found)
    programs = patterns(_compiler(folder).parent, *_FILES)
    return Tool(
        name=wanted.name,
        path=folder,
        version=str(version),
        accepted=wanted.accepted.text,
        found_by=way,
        roles={"cl": str(_compiler(folder))},
        files=tuple(programs),
        watched=(_compiler(folder),),
    )


def _compiler(folder: Path) -> Path:
    return folder / "bin" / "Hostx64" / "x64" / "cl.exe"


def _toolsets(places: Places) -> Iterator[tuple[str, Path]]:
    if value := places.environ.get("VCToolsInstallDir"):
        yield "VCToolsInstallDir", Path(value)
    for variable in ("ProgramFiles(x86)", "ProgramFiles"):
        installer = Path(places.environ.get(variable, "")) / _INSTALLER
        if not places.environ.get(variable) or not installer.is_file():
            continue
        options = ("-products", "*", "-requires", _COMPONENT, "-property", "installationPath", "-utf8")
        done = places.run(str(installer), *options)
        if isinstance(done, Missing):
            continue
        for line in filter(None, map(str.strip, done.stdout.splitlines())):
            yield from (("vswhere", path) for path in sorted((Path(line) / "VC" / "Tools" / "MSVC").glob("*")))
