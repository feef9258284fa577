"""Build the files that `tenv export` writes for a base image whose Python is too old for tenv, and compile in both.

    python scripts/old_container.py OLD NEW

OLD is the base image: a folder with Debian 11 that debootstrap made (as root). NEW is the image of the stage that makes
the environment: Debian 12, as `container_roots.py` wants its ROOT. Neither is changed. The target is made of conda
packages from a channel on 127.0.0.1: a Python that is repacked from OLD's own packages, and wheels. Each step comes
from what `tenv export` wrote or printed, and the trial runs by the image's own entry.
"""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
sys.path[:0] = [str(CHECKOUT)]

from scripts.container_roots import Buildah, Root, call, export, show  # noqa: E402 (the checkout is no package)
from tests.support.conda import Channel, Link, make_conda  # noqa: E402 (as above)

TARGET, MINOR, BASE = "old", "3.9", "debian:11"
OLD_IMAGE, NEW_IMAGE = "localhost/old-root", "localhost/new-root"
MANIFEST = f"""\
platforms = ["linux-64"]
channels  = ["CHANNEL"]

[requirements]
glibc = "2.31"

[dependencies]
python = "{MINOR}.*"

[pypi-dependencies]
cmake = ">=3.27,<4"
ninja = "*"
numpy = ">=1.26,<2"
"""
DEBIAN_PACKAGES = ("libpython3.9-minimal", "libpython3.9-stdlib", "python3.9-minimal", "python3-distutils")
PATCHED = "patchelf"
INSTALL = f"lib/python{MINOR}/distutils/command/install.py"
FOLDERS = {
    b"base/local": b"base",
    b"lib/python3/": b"lib/python$py_version_short/",
    b"dist-packages": b"site-packages",
}
"""In Debian's distutils, by the folder that is the distribution's: what it is in an environment."""

SITE = """\
# Debian's Python looks into its own folders for packages; that of an environment has them here.
import site
import sys

site.addsitedir(f"{sys.prefix}/lib/python3.9/site-packages")
"""
TRIAL = """\
grep PRETTY_NAME /etc/os-release && id -un && python --version && cmake --version | head -1 &&
python -c 'import numpy, ssl, sys; print("numpy", numpy.__version__, "in", sys.prefix)' &&
cat >/tmp/x.cpp && ${CXX:-g++} -std=c++17 /tmp/x.cpp -o /tmp/x && /tmp/x"""
SOURCE = '#include <cstdio>\nint main() { std::printf("compiled by GCC %d\\n", __GNUC__); }\n'


def in_root(root: Path, *words: str) -> str:
    """Run a program in a root."""
    clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
    return call(["chroot", str(root), *words], Path("/"), env=clean)


def libraries(root: Path, files: list[str]) -> set[str]:
    """Return the shared libraries that files of a root load, but for those of the C library itself."""
    said = in_root(root, "sh", "-c", 'for file; do ldd "$file"; done', "sh", *files)
    found = set(re.findall(r"=> (/\S+)", said))
    return {name for name in found if not re.search(r"/lib(c|m|dl|pthread|rt|util)[.-]", name)}


def names(root: Path) -> Iterator[tuple[str, str]]:
    """Return the files of the Python of a root, and where each lies in a package."""
    for name in in_root(root, "dpkg", "-L", *DEBIAN_PACKAGES).splitlines():
        inside = re.fullmatch(r"/usr/((?:lib|include|bin)/python3\.9.*)", name)
        if inside and (root / name[1:]).is_file() and "sitecustomize" not in name:
            yield name, inside[1]


def repack_python(root: Path, folder: Path) -> Path:
    """Write a conda package of the Python of Debian 11, with the libraries that it loads.

    Args:
        root: Debian 11, for this alone: packages are installed in it.
        folder: The channel.
    """
    in_root(root, "apt-get", "-q", "update")
    in_root(root, "apt-get", "-qy", "--no-install-recommends", "install", f"python{MINOR}", PATCHED, *DEBIAN_PACKAGES)
    taken = dict(names(root))
    programs = [name for name in taken if (root / name[1:]).read_bytes()[:4] == b"\x7fELF"]
    for name in sorted(libraries(root, programs)):
        taken[name] = f"lib/{Path(name).name}"
    files: dict[str, bytes] = {}
    for name, place in taken.items():
        file = (root / name[1:]).resolve()
        if file.read_bytes()[:4] == b"\x7fELF":
            up = "/".join([".."] * place.count("/"))
            in_root(root, PATCHED, "--set-rpath", f"$ORIGIN/{up}/lib", f"/{file.relative_to(root)}")
        files[place] = file.read_bytes()
    for theirs, ours in FOLDERS.items():
        files[INSTALL] = files[INSTALL].replace(theirs, ours)
    more: dict[str, str | bytes | Link] = {
        f"lib/python{MINOR}/sitecustomize.py": SITE,
        f"lib/python{MINOR}/site-packages/README.txt": "packages go here\n",
        "bin/python3": Link(f"python{MINOR}"),
        "bin/python": Link(f"python{MINOR}"),
    }
    return make_conda(folder, "python", "3.9.2", build="0_cp39", files={**files, **more})


def make_project(folder: Path, channel: Channel) -> None:
    """Write and lock the project that the target is exported from."""
    (folder / "manifests").mkdir(parents=True)
    (folder / "manifests" / f"{TARGET}.toml").write_text(MANIFEST.replace("CHANNEL", channel.root))
    show(f"tenv lock {TARGET}", call([sys.executable, "-P", "-m", "tenv", "lock", TARGET], folder), 6)


def build_definition(folder: Path, old: Path, new: Path) -> None:
    """Run both stages of the Apptainer definition in copies of the roots, and the trial in the last."""
    export("apptainer", TARGET, folder / "definition", "--base", BASE, project=folder / "project")
    definition = folder / "definition" / f"{TARGET}.def"
    text = definition.read_text()
    first, last = text.split("Bootstrap: docker\n")[1:]
    roots: list[Path] = []
    for stage, image in ((first, new), (last, old)):  # the last takes files of the first
        root = folder / f"root-{len(roots)}"
        call(["cp", "-a", str(image), str(root)], folder)
        part = definition.with_name(f"stage-{len(roots)}.def")
        part.write_text(stage.replace("%files from environment\n    ", f"%files\n    {''.join(map(str, roots))}"))
        container = Root(root, part)
        container.build(f"{TARGET}.def, stage {len(roots)}")
        roots.append(root)
    show(f"apptainer run {TARGET}.sif bash -c ...", container.run(TRIAL, SOURCE))


def main(old: Path, new: Path) -> None:
    """Build both, and run the trial in each."""
    with tempfile.TemporaryDirectory(prefix="old-container-") as name, Channel(Path(name) / "channel") as channel:
        folder = Path(name)
        scratch = folder / "scratch"
        call(["cp", "-a", str(old), str(scratch)], folder)
        repack_python(scratch, channel.folder)
        shutil.rmtree(scratch)
        channel.refresh()
        make_project(folder / "project", channel)
        buildah = Buildah(folder)
        buildah.base(new, NEW_IMAGE)
        buildah.base(old, OLD_IMAGE)
        printed = export("dockerfile", TARGET, folder, "--base", BASE, project=folder / "project")
        image = buildah.build(printed, f"BASE={OLD_IMAGE}", f"BUILDER={NEW_IMAGE}")
        show(f"docker run {image} bash -c ...", buildah.run(image, TRIAL, SOURCE))
        shutil.rmtree(folder / "storage")
        build_definition(folder, old, new)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
