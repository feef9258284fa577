"""Print the extensions of a ``setup.py``, as JSON: ``python record_extensions.py``, in its folder.

It runs ``setup.py`` to the call of ``setup`` and compiles nothing. The file imports nothing from tenv, since the Python
of another environment runs it by path. Its last line is one JSON object: ``extensions``, each with ``name``,
``sources``, ``missing`` and ``flags`` by compiler, or ``error`` with the type and the words of an exception.
"""

import importlib
import json
import os
import runpy
import sys
from typing import Any

__all__: list[str] = []


class _RecordedError(BaseException):
    """Ends a ``setup.py`` at its call of ``setup``; no ``except Exception`` of its own holds it."""


def _flags(given: Any) -> dict[str, list[str]]:
    flags = given if isinstance(given, dict) else {"cxx": given or []}
    return {str(name): [str(flag) for flag in rows] for name, rows in flags.items()}


def _record(found: list[dict[str, Any]]) -> Any:
    def setup(**words: Any) -> None:
        for extension in words.get("ext_modules") or ():
            sources = [os.fspath(source) for source in extension.sources]
            found.append(
                {
                    "name": extension.name,
                    "sources": sources,
                    "missing": [source for source in sources if not os.path.exists(source)],  # noqa: PTH110
                    "flags": _flags(extension.extra_compile_args),
                }
            )
        raise _RecordedError

    return setup


def _main() -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    for name in ("setuptools", "distutils.core"):  # of the other Python; setuptools brings a distutils of its own
        importlib.import_module(name).setup = _record(found)  # type: ignore[attr-defined]
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 (as a call of `python setup.py`)
    sys.argv = ["setup.py", "bdist_wheel"]
    try:
        runpy.run_path("setup.py", run_name="__main__")
    except _RecordedError:
        return {"extensions": found}
    except BaseException as error:  # noqa: BLE001 (a `setup.py` may raise anything)
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
