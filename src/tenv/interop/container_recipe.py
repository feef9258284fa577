"""A target in a container: the image that it begins with, the commands, and the tenv that runs, as a wheel.

The commands are shell lines that need root and a folder with the files to carry along, `CONTEXT`. Where the Python of
an image is too old for tenv, another image has the first stage. A target with its own Python is made there and copied,
at the same path; for any other target the stage fetches a Python for tenv, and the image makes the environment with its
own. Containers install the wheel of this tenv, whatever an index calls by its name.
"""

import base64
import hashlib
import importlib.metadata
import io
import re
import shlex
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import tenv
from tenv import __version__
from tenv.core.dataclass import dataclass
from tenv.core.errors import FormatError
from tenv.core.names import METADATA, normalize, pure_wheel
from tenv.core.own_distribution import DISTRIBUTION, own_distribution
from tenv.core.versions import Version
from tenv.interop.interface import Subject
from tenv.targets.manifest import DEBUG_PYTHON, Manifest

CONTEXT = "/opt/tenv"
"""The folder of the carried files in a container; it is a project of tenv."""

USER = "dev"
"""The user that work is done as."""

WORK = "/work"
"""Where the checkout is mounted."""

CONSTRAINTS = "constraints.txt"
"""The versions of tenv's dependencies on the machine of the export."""

_PROGRAM = "/opt/tenv-program"
_PYTHON = ("python3", "python3-dev", "python3-venv")
_DEBUG_PYTHON = "python3-dbg"
"""The package of Debian and Ubuntu with the debug build of their Python."""

_INSTALLED = frozenset({"gcc", "gdb", DEBUG_PYTHON})
"""The requests to the system that a container installs."""

_TENV_PYTHON = Version("3.11")
"""The oldest Python that runs tenv (`requires-python`)."""

SECOND = "/opt/tenv-python"
"""The folder of tenv's own Python in a container whose Python is too old."""

_SECOND_MINOR = "3.12"
_FETCHED = "/opt/uv-pythons"
_UV = "/opt/uv"

_CODENAMES = {
    "bullseye": "debian:11",
    "bookworm": "debian:12",
    "trixie": "debian:13",
    "bionic": "ubuntu:18.04",
    "focal": "ubuntu:20.04",
    "jammy": "ubuntu:22.04",
    "noble": "ubuntu:24.04",
}
_SYSTEM_OF_TAG = re.compile(r"(?P<name>ubuntu|debian)[:-]?(?P<release>\d{2}(?:\.\d{2})?)(?![\d.])")
"""The system that an image is made from, as in `ubuntu:22.04` and `nvidia/cuda:11.7.1-devel-ubuntu20.04`."""

_IMAGE = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,511}", re.ASCII)
_OWN_PYTHON = re.compile(r"(?:^|/)python:(?P<minor>3\.\d{1,2})\b")
_NO_APT = re.compile(
    r"alpine|almalinux|amazonlinux|archlinux|busybox|centos|distroless|fedora|opensuse|oraclelinux|rocky|\bubi\d|wolfi"
)
"""Words in the names of images without apt-get, which the commands run."""


@dataclass(frozen=True, slots=True)
class _Base:
    """An image: its C library, its Python, its GCC, and the GCCs that its packages add (by its list of packages)."""

    glibc: str
    python: str
    gcc: tuple[int, ...]


_BASES: Mapping[str, _Base] = {
    "debian:12": _Base("2.36", "3.11", (12, 11)),
    "ubuntu:24.04": _Base("2.39", "3.12", (13, 12, 11, 10, 9)),
    "debian:13": _Base("2.41", "3.13", (14, 13, 12)),
    "ubuntu:22.04": _Base("2.35", "3.10", (11, 12, 10, 9)),
    "debian:11": _Base("2.31", "3.9", (10, 9)),
    "ubuntu:20.04": _Base("2.31", "3.8", (9, 10, 8, 7)),
    "ubuntu:18.04": _Base("2.27", "3.6", (7, 8, 6, 5)),
}
"""The images that are known, the one to prefer first."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a target comes into a container."""

    target: str
    """The target."""
    base: str
    """The image of the container."""
    builder: str
    """The image of the first stage; empty if there is none."""
    second: bool
    """Whether that stage brings a second Python, for tenv alone, rather than the environment."""
    unknown: bool
    """Whether the system of the base image is unknown."""
    files: Mapping[str, bytes]
    """The carried files, by name relative to `CONTEXT`."""
    packages: tuple[str, ...]
    """The packages of the image's own system; they need the network."""
    variables: Mapping[str, str]
    """Variables for the commands and for the container."""
    cuda: str
    """The CUDA release of the target, or an empty text."""

    @property
    def prefix(self) -> str:
        """The environment's folder in the container."""
        return f"{CONTEXT}/.tenv/envs/{self.target}"

    @property
    def activate(self) -> str:
        """The command that activates the environment in a POSIX shell."""
        return f". {self.prefix}/tenv-meta/activate.sh"

    @property
    def program_files(self) -> tuple[str, ...]:
        """The files with which tenv is installed."""
        return tuple(name for name in self.files if "/" not in name)

    def system(self, *, making: bool) -> tuple[str, ...]:
        """Return the commands that install packages of the image's own system.

        Args:
            making: Whether for the first stage.
        """
        packages = ("ca-certificates", *_PYTHON) if making else self.packages
        return (
            "apt-get update",
            f"DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends {' '.join(packages)}",
            "rm -rf /var/lib/apt/lists/*",
        )

    def user(self) -> tuple[str, ...]:
        """Return the commands that make the user, its folder for work and the folder of the environment."""
        return (
            f'useradd --non-unique --uid "${{USER_ID:-1000}}" --create-home --shell /bin/bash {USER}',
            f"echo '{self.activate}' >>/home/{USER}/.bashrc",
            f"mkdir -p {CONTEXT} {WORK}",
            f"chown {USER} {CONTEXT} {WORK}",
        )

    def program(self) -> tuple[str, ...]:
        """Return the commands that install tenv; they need a package index."""
        wheel = next(name for name in self.program_files if name != CONSTRAINTS)
        pip = f"{_PROGRAM}/bin/python -m pip install --no-cache-dir --constraint {CONTEXT}/{CONSTRAINTS}"
        python = f"{SECOND}/bin/python{_SECOND_MINOR}" if self.second else "python3"
        return (
            f"{python} -m venv {_PROGRAM}",
            f"{pip} {CONTEXT}/{wheel}",
            f"ln -s {_PROGRAM}/bin/tenv /usr/local/bin/tenv",
        )

    def second_python(self) -> tuple[str, ...]:
        """Return the commands of the first stage that fetch a Python for tenv; they need a package index and GitHub.

        uv's Pythons run on glibc 2.17 and newer and lie in any folder.
        """
        uv = f"UV_PYTHON_INSTALL_DIR={_FETCHED} {_UV}/bin/uv python"
        found = f"{uv} find --managed-python {_SECOND_MINOR}"
        return (
            f"python3 -m venv {_UV}",
            f"{_UV}/bin/python -m pip install --no-cache-dir --constraint {CONTEXT}/{CONSTRAINTS} uv",
            f"{uv} install --no-bin {_SECOND_MINOR}",
            f'cp -a "$(dirname "$(dirname "$(readlink -f "$({found})")")")" {SECOND}',
        )

    def environment(self) -> tuple[str, ...]:
        """Return the commands that make the environment; they fetch the files of the lock."""
        # The rules would judge the image of the stage, not the one that the environment is for.
        check = " --no-check" if self.builder and not self.second else ""
        return (f"cd {CONTEXT}", f"{_PROGRAM}/bin/tenv create {self.target} --frozen{check}")

    def needs(self, runtime: str) -> tuple[str, ...]:
        """Return the needs of the host to run the container.

        Args:
            runtime: The software that makes a GPU visible in it.
        """
        image = f"{self.base} must have apt-get and Python {_TENV_PYTHON} or newer, since its name does not tell"
        known = (image,) if self.unknown else ()
        if not self.cuda:
            return known
        return (
            *known,
            f"the host needs {runtime} and a driver for CUDA {self.cuda}: `tenv check-driver {self.target}` there",
        )


def make_recipe(subject: Subject) -> Recipe:
    """Return how a target comes into a container.

    Raises:
        FormatError: No image fits, or the one that was named does not.
    """
    platform = next((name for name in subject.platforms if name.startswith("linux")), "")
    if not platform:
        raise FormatError("a container runs Linux, and the target has no such platform")
    manifest = subject.manifest.on(platform)
    own_python = bool(subject.lock.conda_python(platform))
    base = subject.base or _choose(subject, platform)
    if not _IMAGE.fullmatch(base):
        raise FormatError(f"{base[:80]!r} is not the name of an image", hint="`--base debian:12` is one")
    found = _known(base)
    if found and manifest.requirements.glibc and Version(found.glibc) < manifest.requirements.glibc:
        raise FormatError(f"{base} has glibc {found.glibc}, and {manifest.name} needs {manifest.requirements.glibc}")
    old = bool(found and Version(found.python) < _TENV_PYTHON)
    second = old and not own_python
    minors = subject.lock.python_minors(platform)
    if second and found and minors and found.python not in minors:
        raise FormatError(
            f"{base} has Python {found.python}, and {manifest.name} serves {', '.join(minors)}",
            hint=f"`--base {_choose(subject, platform)}` has one of them",
        )
    builder = next(iter(_BASES)) if old else ""
    made_there = bool(builder) and not second
    compilers = any(package.name.startswith("gxx") for package in subject.lock.conda.get(platform, ()))
    gcc = "" if compilers else _gcc(manifest, found)
    wheel, raw = own_wheel()
    cuda = manifest.requirements.cuda
    debug = (_DEBUG_PYTHON,) if DEBUG_PYTHON in manifest.wanted("system") and not made_there else ()
    compiler = () if compilers else (f"g++-{gcc}" if gcc else "g++",)
    return Recipe(
        target=manifest.name,
        base=base,
        builder=builder,
        second=second,
        unknown=found is None,
        files={**subject.carried, wheel: raw, CONSTRAINTS: constraints()},
        packages=("ca-certificates", "git", "gdb", *(() if made_there else _PYTHON), *debug, *compiler),
        variables=_variables(gcc, cuda=cuda is not None),
        cuda=str(cuda or ""),
    )


def _known(image: str) -> _Base | None:
    """Return the facts about an image by its name; None for an image of an unknown system.

    Raises:
        FormatError: It has no apt-get.
    """
    name = image.lower().partition("@")[0]
    if _NO_APT.search(name):
        raise FormatError(
            f"{image}: the commands of the container need apt-get, which this image lacks",
            hint=f"`--base {next(iter(_BASES))}` has it",
        )
    own = _OWN_PYTHON.search(name)
    match = _SYSTEM_OF_TAG.search(name)
    system = f"{match['name']}:{match['release']}" if match else ""
    system = next((known for word, known in _CODENAMES.items() if word in name), system)
    found = _BASES.get(system or (next(iter(_BASES)) if own else ""))
    return replace(found, python=own["minor"]) if found and own else found


def _choose(subject: Subject, platform: str) -> str:
    """Return the first image whose C library, Python and compilers a target can live with."""
    manifest = subject.manifest.on(platform)
    minors = subject.lock.python_minors(platform)
    for name, base in _BASES.items():
        fits = not manifest.requirements.glibc or Version(base.glibc) >= manifest.requirements.glibc
        python = bool(subject.lock.conda_python(platform)) or base.python in minors
        compiler = any(_is_wanted(manifest, version) for version in base.gcc)
        if fits and python and compiler and not manifest.wanted("system").keys() - _INSTALLED:
            return name
    asked = f"Python {', '.join(minors)}" if minors else "this"
    system = ", ".join(manifest.wanted("system"))
    more = f" and {system} of the machine" if system else ""
    raise FormatError(
        f"no image is known for {manifest.name}: it asks for {asked}{more}", hint="`--base IMAGE` names one"
    )


def _gcc(manifest: Manifest, base: _Base | None) -> str:
    """Return the version of the GCC to install beside the image's own, or an empty text for the usual one."""
    from tenv.facts.tables import load_facts  # late: only targets that take the image's compiler

    cuda = manifest.requirements.cuda
    row = load_facts().cuda_host_compiler.limits(cuda) if cuda else None
    fitting = [
        version
        for version in (base.gcc if base else ())
        if _is_wanted(manifest, version) and (row is None or version <= row.gcc_max)
    ]
    return str(fitting[0]) if base and fitting and fitting[0] != base.gcc[0] else ""


def _is_wanted(manifest: Manifest, gcc: int) -> bool:
    """Return whether a target takes a major version of GCC from the system."""
    asked = manifest.wanted("system").get("gcc")
    return asked is None or f"{gcc}.99" in asked or f"{gcc}.0" in asked


def _variables(gcc: str, *, cuda: bool) -> dict[str, str]:
    values = (
        {"CC": f"/usr/bin/gcc-{gcc}", "CXX": f"/usr/bin/g++-{gcc}", "CUDAHOSTCXX": f"/usr/bin/g++-{gcc}"} if gcc else {}
    )
    # For NVIDIA's container runtime: the GPUs and the parts of the driver that it brings in.
    gpu = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"} if cuda else {}
    return {**values, **gpu}


def header(recipe: Recipe, format_name: str) -> str:
    """Return the comment with the command that made a file."""
    return f"# Made by `tenv export {format_name} {recipe.target}` of tenv {__version__}.\n"


_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The date of every file, so that the same tenv makes the same wheel."""

_BESIDE = {"manifests": "manifests", "locks": "locks", "rules": "docs/rules"}
"""The folders of a wheel below `tenv/builtin`, each with its place in a checkout."""


def own_wheel() -> tuple[str, bytes]:
    """Return the file name of the wheel and its bytes."""
    package = Path(tenv.__file__).parent
    files = dict(_files(package, "tenv"))
    if not (package / "builtin").is_dir():  # an editable install of a checkout
        for name, place in _BESIDE.items():
            files |= dict(_files(package.parent.parent / place, f"tenv/builtin/{name}"))
    distribution = own_distribution()
    if distribution is None:
        raise FormatError(
            f"tenv runs from {package} without being installed, so it can't be put into a container",
            hint=f"`{shlex.join([sys.executable, '-m', 'pip', 'install', '-e', str(package.parent.parent)])}`",
        )
    file = DISTRIBUTION.replace("-", "_")
    info, _, metadata = f"{file}-{__version__}{METADATA}".partition("/")
    for name in (metadata, "entry_points.txt"):
        text = distribution.read_text(name) or ""
        # An installation may be older than the name; installers compare it with the name of the file.
        files[f"{info}/{name}"] = re.sub(
            r"\AMetadata-Version: (.*)\nName: .*", rf"Metadata-Version: \1\nName: {DISTRIBUTION}", text
        ).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tenv\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in sorted(files.items())]
    files[f"{info}/RECORD"] = "".join(f"{row}\n" for row in [*rows, f"{info}/RECORD,,"]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _EARLIEST), data, zipfile.ZIP_DEFLATED)
    return pure_wheel(file, __version__), buffer.getvalue()


def _files(folder: Path, name: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def constraints() -> bytes:
    """Return the versions of tenv's dependencies here, for pip's `--constraint`."""
    from packaging.requirements import Requirement  # late: 34 ms

    found: dict[str, str] = {}
    own = own_distribution()
    waiting = [own.metadata["Name"]] if own else []
    while waiting:
        try:
            distribution = importlib.metadata.distribution(waiting.pop())
        except importlib.metadata.PackageNotFoundError:
            continue
        for text in distribution.requires or ():
            requirement = Requirement(text)
            name = normalize(requirement.name)
            if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
                continue
            try:
                found[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
            waiting.append(name)
    return "".join(f"{name}=={version}\n" for name, version in sorted(found.items())).encode()
