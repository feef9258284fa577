"""The files of a torch: in an environment of any tool, or in a wheel. Nothing of them is run, and sizes have limits.

venv (PEP 405), virtualenv, uv and Poetry leave a ``pyvenv.cfg``; conda and pixi leave ``conda-meta``. conda-forge keeps
libtorch in a package of its own: its headers and libraries lie below the prefix, as its record lists them.
"""

import json
import os
import re
import zipfile
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path

from tenv.core.damaged_archives import DAMAGED_ZIP
from tenv.core.dataclass import dataclass
from tenv.core.files import read_regular
from tenv.core.missing import Missing, ReasonKind
from tenv.core.names import infos_of, is_dist_info, is_wheel
from tenv.host.places import is_file, is_folder
from tenv.host.pythons import header_of

_SMALL = 1 << 16
_RECORD = 1 << 26
"""The largest record of a conda package that is read: libtorch's lists 10,000 files in 3 MiB."""
_FINDER = 1 << 23
"""The largest finder of an editable package that is read: PyTorch's names 2,500 modules in half a MiB."""
_MOST_LINKS = 200
"""The most ``.pth`` files of a ``site-packages`` that are read."""
_MINOR = re.compile(r"python(3\.\d{1,2})(t?)", re.ASCII)
_MAPPED = re.compile(r"""['"]torch['"]\s*:\s*['"](/[^'"\n]{1,4000})['"]""")
"""The folder of torch in the finder that setuptools writes for an editable package (PEP 660)."""
_REDIRECTED = re.compile(r"""['"]torch['"]\s*:\s*['"](/[^'"\n]{1,4000})/__init__\.py['"]""")
_INSTALLED = re.compile(r"""['"]torch\.version['"]\s*:\s*['"]([^'"\n]{1,4000})/version\.py['"]""")
"""The folders of its modules in the finder of scikit-build-core: of the checkout, and of the installed files.

With it, PyTorch's build since 2.14 leaves the Python files in the checkout, and puts ``version.py``, ``_C``, headers
and libraries into ``site-packages/torch``.
"""
_FINDERS = ("_editable_skbc_torch.py", "_torch_editable.py")
_BESIDE = (".venv", "venv", ".pixi/envs/default")
"""Environments in a project's folder: of uv, Poetry and PDM, of hand, of pixi."""


class TorchPlace(StrEnum):
    """Where a torch lies."""

    VENV = "venv"
    CONDA = "conda"
    PYTHON = "python"
    WHEEL = "wheel"


@dataclass(frozen=True, slots=True)
class BasePython:
    """The Python that runs a torch; of a virtual environment, the one behind it."""

    prefix: str
    """Its folder."""
    version: str
    """Its minor, ``3.12``; empty where unknown."""
    header: str
    """Its ``Python.h``; empty where there is none."""
    source: str
    """The file that names it."""


class TorchFiles:
    """The files of one torch."""

    place: str
    """Its folder, or the wheel."""
    kind: TorchPlace
    """The kind of its place."""
    prefix: str = ""
    """The environment; empty for a wheel."""
    python: BasePython | Missing = Missing("a wheel is in no environment", ReasonKind.NONE)
    """The Python that runs it; a reason for a wheel."""

    def read(self, name: str, most: int) -> tuple[bytes, str] | Missing:
        """Return a file below the folder ``torch``, of a limited size, with the name under which it was found."""
        raise NotImplementedError

    def info(self, name: str, most: int) -> tuple[bytes, str] | Missing:
        """Return a file of the package's metadata, likewise."""
        raise NotImplementedError

    def module(self) -> tuple[str, str] | Missing:
        """Return the name of its extension module (``_C.cpython-312-x86_64-linux-gnu.so``) and where it was found."""
        raise NotImplementedError


class FolderTorch(TorchFiles):
    """A torch on disk.

    Attributes:
        package: The folder ``torch``.
        shared: The folders in place of it for headers and libraries, where a package of its own has them.
        sources: The folders in place of it for Python files, where an editable package has them.
    """

    def __init__(
        self,
        package: Path,
        kind: TorchPlace,
        prefix: Path,
        python: BasePython | Missing,
        *,
        shared: tuple[Path, ...] = (),
        sources: tuple[Path, ...] = (),
    ) -> None:
        self.package, self.kind, self.python = package, kind, python
        self.place, self.prefix, self.shared, self.sources = str(package), str(prefix), shared, sources

    def path(self, name: str) -> Path | None:
        """Return the file of a name below ``torch``; None where there is none."""
        folders = (self.package, *(self.shared if name.startswith(("include/", "lib/")) else self.sources))
        return next((folder / name for folder in folders if is_file(folder / name)), None)

    def read(self, name: str, most: int) -> tuple[bytes, str] | Missing:
        """Return a file below ``torch``."""
        path = self.path(name)
        return _none(f"{self.place}/{name}") if path is None else _content(path, most)

    def info(self, name: str, most: int) -> tuple[bytes, str] | Missing:
        """Return a file of the metadata that lies beside the folder."""
        found = sorted(self.package.parent.glob(f"{infos_of('torch')}/{name}"))
        return _content(found[0], most) if found else _none(f"{self.package.parent}/{infos_of('torch')}/{name}")

    def module(self) -> tuple[str, str] | Missing:
        """Return the name of the extension module."""
        for path in (*sorted(self.package.glob("_C.*.so")), *sorted(self.package.glob("_C.*.pyd"))):
            return path.name, str(path)
        return _none(f"{self.place}/_C.*")


class WheelTorch(TorchFiles):
    """A torch in a wheel, of which only the files that are read are unpacked."""

    kind = TorchPlace.WHEEL

    def __init__(self, archive: zipfile.ZipFile, place: str) -> None:
        self.archive, self.place = archive, place
        self._names = archive.namelist()

    def read(self, name: str, most: int) -> tuple[bytes, str] | Missing:
        """Return a file below ``torch``."""
        return self._member(f"torch/{name}", most)

    def info(self, name: str, most: int) -> tuple[bytes, str] | Missing:
        """Return a file of the wheel's metadata."""
        for row in self._names:
            folder, _, last = row.partition("/")
            if last == name and folder.startswith("torch-") and is_dist_info(folder):
                return self._member(row, most)
        return _none(f"{name} in the metadata")

    def module(self) -> tuple[str, str] | Missing:
        """Return the name of the extension module."""
        found = next((row for row in self._names if re.fullmatch(r"torch/_C\.[^/]+\.(so|pyd)", row)), "")
        return (found.rpartition("/")[2], found) if found else _none("torch/_C.*")

    def _member(self, name: str, most: int) -> tuple[bytes, str] | Missing:
        try:
            with self.archive.open(name) as file:
                data = file.read(most + 1)
        except KeyError:
            return _none(name)
        except DAMAGED_ZIP as error:
            return Missing(f"{name} of {self.place}: {error}", ReasonKind.UNREADABLE)
        if len(data) > most:
            return Missing(f"{name} of {self.place} has more than {most} bytes", ReasonKind.UNREADABLE)
        return data, name


def _none(name: str) -> Missing:
    return Missing(f"there is no {name}", ReasonKind.NONE)


def _content(path: Path, most: int) -> tuple[bytes, str] | Missing:
    try:
        return read_regular(path, most), str(path)
    except OSError as error:
        return Missing(f"{path}: {error.strerror or error}", ReasonKind.UNREADABLE)


def find_torch(path: Path) -> TorchFiles | Missing:
    """Return the torch that a path leads to.

    Args:
        path: A wheel, a Python, the prefix of an environment, a ``site-packages``, a folder ``torch``, or the folder of
            a project with an environment in it.
    """
    if is_file(path):
        return _of_wheel(path) if is_wheel(path.name) else _of_program(path)
    if not is_folder(path):
        return Missing(f"{path} is not there", ReasonKind.NONE)
    for site in (path.parent, path) if path.name == "torch" else (path,):
        if found := next(_in_site(site), None):
            return _of_package(*found)
    for folder in (path, *(path / name for name in _BESIDE)):
        if is_file(folder / "pyvenv.cfg") or is_folder(folder / "conda-meta") or any(_sites(folder, "")):
            return _of_prefix(folder, "")
    return Missing(f"{path} is no wheel, no Python and no environment", ReasonKind.NONE)


def several_torches(files: FolderTorch, path: Path) -> tuple[str, ...]:
    """Return the torches that an environment has, each once: for several Pythons, or by the metadata of one folder.

    Args:
        files: The torch that was found.
        path: The path that led to it; one below the environment means its own torch alone.
    """
    prefix, found = Path(files.prefix), {os.path.realpath(files.package): str(files.package)}
    if path.resolve() not in (files.package.resolve(), files.package.parent.resolve()):
        version = files.python.version if files.kind is TorchPlace.VENV and isinstance(files.python, BasePython) else ""
        for site in _sites(prefix, version):
            if _is_torch(site / "torch"):
                found.setdefault(os.path.realpath(site / "torch"), str(site / "torch"))
    infos = sorted(files.package.parent.glob(infos_of("torch")))
    return tuple(map(str, infos)) if len(infos) > 1 else tuple(found.values())


def _of_wheel(path: Path) -> TorchFiles | Missing:
    try:
        return WheelTorch(zipfile.ZipFile(path), str(path))
    except DAMAGED_ZIP as error:
        return Missing(f"{path} can't be read as a wheel: {error}", ReasonKind.UNREADABLE)


def _of_program(program: Path) -> TorchFiles | Missing:
    """Return the torch of a Python program, by the folders around it."""
    above = Path(os.path.abspath(program)).parent.parent  # noqa: PTH100 (a link leads to the Python behind a venv)
    if is_file(above / "pyvenv.cfg"):
        return _of_prefix(above, "")
    real = Path(os.path.realpath(program))
    minor = _MINOR.match(real.name)
    if not minor and not real.name.startswith("python"):
        return Missing(f"{program} is no Python and no wheel", ReasonKind.NONE)
    return _of_prefix(real.parent.parent, minor[1] if minor else "")


def _of_package(package: Path, sources: tuple[Path, ...]) -> FolderTorch:
    """Return the torch of a folder ``torch``, with the environment around it where it is in one."""
    for folder in package.parents:
        if is_file(folder / "pyvenv.cfg") or is_folder(folder / "conda-meta"):
            kind, python, _ = _environment(folder, "")
            return FolderTorch(package, kind, folder, python, shared=_shared(folder), sources=sources)
    unknown = Missing(f"no environment is around {package}", ReasonKind.NONE)
    return FolderTorch(package, TorchPlace.PYTHON, package.parent, unknown, sources=sources)


def _of_prefix(prefix: Path, minor: str) -> TorchFiles | Missing:
    """Return the torch of the Python of a prefix, where that Python itself would look for it."""
    prefix = Path(os.path.abspath(prefix))  # noqa: PTH100 (a prefix keeps its name)
    kind, python, outer = _environment(prefix, minor)
    sites = [*_sites(prefix, minor), *outer]
    for package, sources in chain.from_iterable(map(_in_site, sites)):
        return FolderTorch(package, kind, prefix, python, shared=_shared(prefix), sources=sources)
    looked = ", ".join(map(str, sites)) or f"{prefix}/lib/python3.*/site-packages"
    return Missing(f"{prefix} has no torch (looked at {looked})", ReasonKind.NONE)


def _environment(prefix: Path, minor: str) -> tuple[TorchPlace, BasePython | Missing, list[Path]]:
    """Return the kind of a prefix, its Python, and the folders of packages outside it that this Python reads."""
    settings = _settings(prefix / "pyvenv.cfg")
    if settings is None:
        kind = TorchPlace.CONDA if is_folder(prefix / "conda-meta") else TorchPlace.PYTHON
        return kind, _python(prefix, minor or _only_minor(prefix), str(prefix)), []
    named = re.match(r"3\.\d{1,2}", settings.get("version_info", "") or settings.get("version", ""))
    minor = named[0] if named else _only_minor(prefix)
    source = str(prefix / "pyvenv.cfg")
    home = settings.get("base-prefix") or (str(Path(settings["home"]).parent) if settings.get("home") else "")
    if not home:
        return TorchPlace.VENV, Missing(f"{source} names no `home`", ReasonKind.UNREADABLE), []
    base = Path(os.path.realpath(home))
    outer: list[Path] = []
    if settings.get("include-system-site-packages", "").lower() == "true":
        own = Path.home() / f".local/lib/python{minor}/site-packages"
        outer = [own, *_sites(base, minor)] if is_folder(own) else [*_sites(base, minor)]
    return TorchPlace.VENV, _python(base, minor, source), outer


def _settings(file: Path) -> dict[str, str] | None:
    """Return the settings of a ``pyvenv.cfg``; None where there is none."""
    if isinstance(found := _content(file, _SMALL), Missing):
        return None
    rows = (line.partition("=") for line in found[0].decode("utf-8", "replace").splitlines())
    return {name.strip().lower(): value.strip() for name, equals, value in rows if equals and "\0" not in value}


def _python(prefix: Path, minor: str, source: str) -> BasePython:
    return BasePython(str(prefix), minor, str((minor and header_of(prefix, minor)) or ""), source)


def _only_minor(prefix: Path) -> str:
    """Return the minor of the one Python of a prefix; empty for none or several."""
    found = {match[1] for path in prefix.glob("lib*/python3.*") if (match := _MINOR.fullmatch(path.name))}
    real = {match[1] for path in prefix.glob("bin/python3.*") if (match := _MINOR.fullmatch(path.name))}
    return next(iter(chosen)) if len(chosen := found & real or found) == 1 else ""


def _sites(prefix: Path, minor: str) -> Iterator[Path]:
    """Yield the folders of packages of a prefix: of a minor alone where one is named. Debian has names of its own."""
    version = minor or "3.*"
    for pattern in (
        *(f"{lib}/python{version}{free}/site-packages" for lib in ("lib", "lib64") for free in ("", "t")),
        *(f"local/lib/python{version}/dist-packages", f"lib/python{version}/dist-packages"),
        *("lib/python3/dist-packages", "Lib/site-packages"),
    ):
        yield from (path for path in sorted(prefix.glob(pattern), reverse=True) if is_folder(path))


def _in_site(site: Path) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """Yield the folders of torch that a ``site-packages`` leads to, with the folders of Python files elsewhere."""
    if _is_torch(site / "torch"):
        yield site / "torch", ()
    for name in _FINDERS:
        finder = _content(site / name, _FINDER) if is_file(site / name) else _none(name)
        text = "" if isinstance(finder, Missing) else finder[0].decode("utf-8", "replace")
        sources, installed = _REDIRECTED.search(text), _INSTALLED.search(text)
        package = site / (installed[1] if installed else "torch")
        if sources and is_file(package / "version.py") and is_file(Path(sources[1]) / "__init__.py"):
            yield package, (Path(sources[1]),)
    yield from ((package, ()) for package in _linked(site) if _is_torch(package))


def _linked(site: Path) -> Iterator[Path]:
    """Yield the folders of torch that links of a ``site-packages`` lead to: of `pip install -e` and `develop`."""
    files = [*sorted(site.glob("*.pth"))[:_MOST_LINKS], *site.glob("torch.egg-link")]
    for file in (*files, *sorted(site.glob("__editable___torch_*finder.py"))):
        if isinstance(found := _content(file, 1 << 20), Missing):
            continue
        text = found[0].decode("utf-8", "replace")
        if file.suffix == ".py":
            yield from (Path(match[1]) for match in _MAPPED.finditer(text))
        else:
            yield from (Path(line.strip()) / "torch" for line in text.splitlines()[:100] if line.startswith("/"))


def _is_torch(package: Path) -> bool:
    return package.name == "torch" and is_file(package / "version.py") and is_file(package / "__init__.py")


def _shared(prefix: Path) -> tuple[Path, ...]:
    """Return the folders of headers and libraries of a torch that conda split, by the record of its libtorch."""
    for file in sorted((prefix / "conda-meta").glob("libtorch-*.json")):
        if isinstance(found := _content(file, _RECORD), Missing):
            continue
        try:
            names = json.loads(found[0]).get("files", [])
        except (ValueError, RecursionError, AttributeError):
            continue
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str) and name.endswith("include/ATen/ATen.h") and ".." not in name.split("/"):
                return (prefix / name.removesuffix("include/ATen/ATen.h"),)
    return (prefix,) if is_folder(prefix / "conda-meta") else ()
