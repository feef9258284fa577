"""Read the CUDA toolkits of a host report from JSON, write and show them."""

from typing import Any

from tenv.core.json_reader import Values
from tenv.host.field import plain
from tenv.host.found_by import read_found_by, read_problems
from tenv.host.report import CompilerLimits, Toolkit

__all__ = ["read_toolkits", "show_toolkits", "write_toolkits"]


def read_toolkits(values: Values, key: str) -> tuple[Toolkit, ...]:
    """Return the toolkits in JSON."""
    return tuple(map(_read, values.objects(key)))


def write_toolkits(found: tuple[Toolkit, ...]) -> list[dict[str, Any]]:
    """Return the JSON of toolkits; their components are an object by name."""
    return [{**plain(one), "components": dict(one.components)} for one in found]


def show_toolkits(found: tuple[Toolkit, ...]) -> list[str]:
    """Return the lines of toolkits in the output of ``tenv host``."""
    return [line for one in found for line in _show(one)]


def _read(values: Values) -> Toolkit:
    components = values.optional(values.object, "components")
    limits = values.optional(values.object, "compilers")
    return Toolkit(
        path=values.text("path"),
        found_by=read_found_by(values, "found_by"),
        version=values.optional(values.version, "version"),
        components=tuple((name, components.text(name)) for name in components.data) if components else (),
        problems=read_problems(values, "problems") if values.data.get("problems") is not None else (),
        compiles=values.optional(values.flag, "compiles") is not False,
        home=values.optional(values.text, "home") or "",
        environment=values.optional(values.text, "environment") or "",
        compilers=_read_limits(limits) if limits else None,
        patched=values.optional(values.texts, "patched") or (),
        absent=values.optional(values.texts, "absent"),
    )


def _read_limits(values: Values) -> CompilerLimits:
    names = ("gcc_max", "clang_max", "msvc_min", "msvc_below")
    return CompilerLimits(values.text("file"), *(values.optional(values.number, name) for name in names))


def _show(toolkit: Toolkit) -> list[str]:
    lines = [f"{toolkit.version or 'unknown'}  {toolkit.path}, by {toolkit.ways}"]
    if toolkit.components:
        lines.append("  " + ", ".join(f"{name} {version}" for name, version in toolkit.components))
    if toolkit.absent:
        lines.append(f"  without {', '.join(toolkit.absent)}")
    return [*lines, *(f"  problem: {problem.text}" for problem in toolkit.problems)]
