"""A server in NVIDIA's layout of a product that no facts know, and manifests that ask for it."""

import yaml

from tests.support.projects import Project
from tests.support.redist import regular

__all__ = ["CUSPARSELT", "MAGMA", "NVIDIA", "ask", "rows"]

NVIDIA = "https://developer.download.nvidia.com"
CUSPARSELT = {
    "include/cusparseLt.h": b"#define CUSPARSELT_VER_MAJOR 7\n",
    "lib/libcusparseLt.so.0": b"\x7fELF sparse",
    "LICENSE": b"a licence",
}
MAGMA = [regular("include/magma.h", b"/* magma */"), regular("lib/libmagma.a", b"!<arch>\n")]

WANTED = """\
platforms = ["linux-64", "linux-aarch64", "win-64"]
[requirements]
cuda = "12.1"
[archives]
"""


def ask(project: Project, *lines: str, cuda: str = "12.1") -> None:
    project.manifest.write_text(WANTED.replace("12.1", cuda) + "\n".join(lines) + "\n")


def rows(project: Project) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = yaml.safe_load(project.lock.read_text())["tenv"]["archives"]
    return found
