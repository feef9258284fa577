"""Resolves Microsoft's compiler from the toolsets of Visual Studio and its Build Tools, by their installer."""

from typing import TYPE_CHECKING

from tenv.core.versions import Version
from tenv.host.msvc import LOOKED_AT, cl_of, parse_toolset, toolsets
from tenv.host.report import Lead
from tenv.sources.system.interface import Lack, Tool, ToolRequest
from tenv.sources.system.path_search import patterns

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["find_msvc"]

_FILES = ("cl.exe", "c1.dll", "c1xx.dll", "c2.dll", "link.exe")


def find_msvc(wanted: ToolRequest) -> Tool | Lack:
    """Return the newest matching toolset; that of a developer prompt comes first."""
    refused: list[str] = []
    found: list[tuple[bool, Version, str, Path]] = []
    for toolset in toolsets(wanted.places, refused):
        way, folder = toolset.found_by, toolset.folder
        version = Version(folder.name) if parse_toolset(folder.name) else None
        if version is None:
            refused.append(f"{folder}: its name is not a toolset version (14.NN)")
        elif not cl_of(folder).is_file():
            refused.append(f"{folder}: has no {cl_of(folder).relative_to(folder)}")
        elif version not in wanted.accepted:
            refused.append(f"{folder}: {version} is not {wanted.accepted}")
        else:
            found.append((way.kind is Lead.PROMPT, version, way.text, folder))
    if not found:
        install = "winget install Microsoft.VisualStudio.2022.BuildToolswith the C++ workload"
        return Lack(wanted.name, wanted.accepted.text, tuple(dict.fromkeys(refused)), LOOKED_AT, install)
    _, version, found_by, folder = max(found)
    programs = patterns(cl_of(folder).parent, *_FILES)
    return Tool(
        name=wanted.name,
        path=folder,
        version=str(version),
        accepted=wanted.accepted.text,
        found_by=found_by,
        roles={"cl": str(cl_of(folder))},
        files=tuple(programs),
        watched=(cl_of(folder),),
    )
