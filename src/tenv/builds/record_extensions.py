"""Print the extensions of a ``setup.py``, as JSON: ``python record_extensions.py``, in its folder.

It runs ``setup.py`` to the call of ``setup`` and compiles nothing. The file imports nothing from tenv, since the Python
of another environment runs it by path. Its last line is one JSON object: ``extensions``, each with ``name``,
``sources``, ``missing``, ``flags`` by compiler and ``others``, its further options; ``ninja``, whether ninja compiles
them; ``idle``, whether the file turns off a ninja that torch finds; ``archs``, the ``TORCH_CUDA_ARCH_LIST`` that the
file leaves; ``absent``, the needed packages of ``setup_requires`` that are not installed; ``gone``, the uses of torch
in sources that its headers no longer have; and ``requires``, the requirements of the package where no other file has
them; or ``error`` with the type and the words of an exception.
"""

import contextlib
import importlib
import importlib.metadata
import json
import os
import re
import runpy
import sys
from typing import Any

_OF_TORCH = ("ATen/", "TH/", "THC/", "THCUNN/", "THNN/", "c10/", "caffe2/", "torch/")
"""The folders of torch's headers, of today and of earlier releases: THC is gone since 1.11."""
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_CONDITION = re.compile(r"[ \t]*#[ \t]*(if|endif)")
_INCLUDE = re.compile(r"[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]")
_BY_TYPE = re.compile(r"\bAT_DISPATCH_\w+\s*\(\s*[\w.>-]+?(?:\.|->)(type\(\))\s*,")
"""A dispatch on a value that stood for a scalar type; 2.6 dropped the conversion of ATen/Dispatch.h."""
_HELPER = "torch.utils.cpp_extension"
_OTHERS = ("define_macros", "undef_macros", "include_dirs", "libraries", "library_dirs", "extra_link_args", "language")


class _RecordedError(BaseException):
    """Ends a ``setup.py`` at its call of ``setup``; no ``except Exception`` of its own holds it."""


def _flags(given: Any) -> dict[str, list[str]]:
    flags = given if isinstance(given, dict) else {"cxx": given or []}
    return {str(name): [str(flag) for flag in rows] for name, rows in flags.items()}


def _ninja(words: dict[str, Any]) -> dict[str, bool]:
    """Return whether the ``build_ext`` of a call of ``setup`` lets ninja compile, and whether it leaves one idle."""
    command: Any = (words.get("cmdclass") or {}).get("build_ext")
    try:
        used = getattr(command(importlib.import_module("setuptools").Distribution()), "use_ninja", None)
        there = used or (used is not None and importlib.import_module(_HELPER).is_ninja_available())
        return {"ninja": bool(used), "idle": bool(there and not used)}
    except Exception:  # noqa: BLE001 (a class of others)
        return {"ninja": False, "idle": False}


def _absent(words: dict[str, Any]) -> list[str]:
    """Return the packages of `setup_requires` that are not installed, where the call has an option of such a package.

    setuptools ignores an option that it does not know: without setuptools-scm, ``use_scm_version`` makes version 0.0.0.
    """
    known: Any = importlib.import_module("setuptools").Distribution()
    places = (known, getattr(known, "metadata", None))
    if all(any(hasattr(one, name) or hasattr(one, f"set_{name}") for one in places) for name in words):
        return []
    asked = words.get("setup_requires") or ()
    lines = asked.splitlines() if isinstance(asked, str) else map(str, asked)
    found = []
    for match in filter(None, (re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", line) for line in lines)):
        try:
            importlib.metadata.version(match[1])
        except importlib.metadata.PackageNotFoundError:
            found.append(match[1])
    return found


def _makes_sources(words: dict[str, Any]) -> bool:
    """Return whether a command of the ``setup.py`` itself builds the extensions: it may write their sources first."""
    commands = words.get("cmdclass") or {}
    return any(
        getattr(commands.get(name), "__module__", "") == "__main__" for name in ("build", "build_py", "build_ext")
    )


def _requires(words: dict[str, Any]) -> list[str] | None:
    """Return the requirements of the package; None where another file may have them."""
    for name, word in (("pyproject.toml", "[project]"), ("setup.cfg", "install_requires")):
        with contextlib.suppress(OSError), open(name, encoding="utf-8", errors="replace") as opened:  # noqa: PTH123
            if word in opened.read():
                return None
    asked = words.get("install_requires") or ()
    return asked.splitlines() if isinstance(asked, str) else [*map(str, asked)]


def _unconditional(text: str) -> list[str]:
    """Return the lines of a source that no condition of its preprocessor leaves out, without comments."""
    depth, kept = 0, []
    for line in _COMMENT.sub("", text).splitlines():
        match = _CONDITION.match(line)
        depth += (1 if match[1] == "if" else -1) if match else 0
        if depth == 0 and not match:
            kept.append(line.partition("//")[0])
    return kept


def _gone(extension: Any) -> list[str]:
    """Return the uses of torch in the sources of an extension that the headers of this torch no longer have."""
    folders = [os.fspath(folder) for folder in getattr(extension, "include_dirs", None) or ()]
    flags = [flag for row in _flags(extension.extra_compile_args).values() for flag in row]
    folders += [flag.removeprefix("-I") for flag in flags if flag.startswith(("-I", "/"))]  # `-isystem FOLDER`, too
    folders += filter(None, os.environ.get("CPATH", "").split(os.pathsep))
    own = next((folder for folder in folders if os.path.exists(f"{folder}/ATen/Dispatch.h")), None)  # noqa: PTH110
    if own is None:
        return []
    with open(f"{own}/ATen/Dispatch.h", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        takes_type = "DeprecatedTypeProperties" in file.read()
    found = []
    for source in map(os.fspath, extension.sources):
        try:
            with open(source, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                lines = _unconditional(file.read())
        except OSError:
            continue
        places = [os.path.dirname(source) or ".", *folders]  # noqa: PTH120
        for header in (match[1] for match in map(_INCLUDE.match, lines) if match):
            there = (os.path.exists(f"{place}/{header}") for place in places)  # noqa: PTH110
            if header.startswith(_OF_TORCH) and not any(there):
                found.append(f"{source} includes {header}")
        if not takes_type and (match := _BY_TYPE.search("\n".join(lines))):
            found.append(f"{source} dispatches on the tensor's {match[1]}")
    return found


def _record(found: list[dict[str, Any]], others: dict[str, Any], gone: list[str]) -> Any:
    def setup(**words: Any) -> None:
        others.update(_ninja(words), absent=_absent(words), requires=_requires(words))
        made = _makes_sources(words)
        for extension in words.get("ext_modules") or ():
            sources = [os.fspath(source) for source in extension.sources]
            gone.extend(_gone(extension))
            found.append(
                {
                    "name": extension.name,
                    "sources": sources,
                    "missing": [one for one in sources if not (made or os.path.exists(one))],  # noqa: PTH110
                    "flags": _flags(extension.extra_compile_args),
                    "others": [f"{name}={getattr(extension, name, None)!r}" for name in _OTHERS],
                }
            )
        raise _RecordedError

    return setup


def _main() -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    others: dict[str, Any] = {}
    gone: list[str] = []
    setup = _record(found, others, gone)
    importlib.import_module("setuptools").setup = setup  # type: ignore[attr-defined]
    # Python 3.12 has no distutils of its own; where setuptools brings none, a setup.py that imports one fails itself.
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("distutils.core").setup = setup  # type: ignore[attr-defined]
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 (as a call of `python setup.py`)
    sys.argv = ["setup.py", "bdist_wheel"]
    try:
        runpy.run_path("setup.py", run_name="__main__")
    except _RecordedError:
        archs = os.environ.get("TORCH_CUDA_ARCH_LIST", "")
        return {"extensions": found, "archs": archs, "gone": gone, **others}
    except BaseException as error:  # noqa: BLE001 (a `setup.py` may raise anything)
        if isinstance(error, SystemExit) and not error.code:
            return {"error": "it ends without a call of setup"}
        return {"error": f"{type(error).__name__}: {error}"}
    return {"error": "it does not call setup"}


if __name__ == "__main__":
    own = os.dup(1)
    os.dup2(2, 1)  # a `setup.py` and its programs print, too
    result = json.dumps(_main()) + "\n"
    sys.stdout.flush()
    with open(own, "w") as output:  # noqa: PTH123 (a descriptor)
        output.write(result)
    os._exit(0)  # no thread or exit function of the `setup.py` goes on
