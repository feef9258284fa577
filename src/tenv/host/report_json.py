"""The host report as JSON: what ``tenv host --json`` prints, and what a fleet check reads back.

`to_json` and `from_json` are each other's inverse. Every kind of value is written by its fields' names; each has a
reader of its own here.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from tenv import __version__
from tenv.core.errors import HostReportError
from tenv.core.json_reader import Values
from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing, fact_to_json
from tenv.host.report import Compat, Compiler, CompilerLimits, Disk, Gpu, HostReport, Libstdcxx, Toolkit

__all__ = ["from_json", "to_json"]

T = TypeVar("T")

_SCHEMA = 1


def to_json(report: HostReport) -> dict[str, Any]:
    """Return the report as plain values."""
    answers = {field.name: fact_to_json(getattr(report, field.name), _plain) for field in fields(report)}
    return {"schema": _SCHEMA, "tenv": __version__, **answers}


def _plain(value: object) -> Any:
    if isinstance(value, Version):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if not is_dataclass(value):
        return value
    named = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return {**named, "components": dict(value.components)} if isinstance(value, Toolkit) else named


def from_json(data: object, source: str = "the report") -> HostReport:
    """Return the report that plain values stand for; keys that this tenv does not know are left aside.

    Args:
        data: What `to_json` gives, or the whole output of ``tenv host --json``.
        source: What it was read from, for messages.

    Raises:
        HostReportError: It is no report, or one of a form that only a newer tenv knows.
    """
    report = _report_of(data, source)

    def read(name: str, value: Callable[[Values], T]) -> Fact[T] | Missing:
        return _read_fact(report, name, value)

    return HostReport(
        hostname=read("hostname", lambda fact: fact.text("value")),
        platform=read("platform", lambda fact: fact.text("value")),
        driver=read("driver", lambda fact: fact.version("value")),
        cuda=read("cuda", lambda fact: fact.version("value")),
        compat=read("compat", lambda fact: _read_compat(fact.object("value"))),
        gpus=read("gpus", lambda fact: tuple(map(_read_gpu, fact.objects("value")))),
        toolkits=read("toolkits", lambda fact: tuple(map(_read_toolkit, fact.objects("value")))),
        compilers=read("compilers", lambda fact: tuple(map(_read_compiler, fact.objects("value")))),
        libc=read("libc", lambda fact: fact.version("value")),
        libstdcxx=read("libstdcxx", lambda fact: _read_libstdcxx(fact.object("value"))),
        cores=read("cores", lambda fact: fact.number("value")),
        memory=read("memory", lambda fact: fact.number("value")),
        disk=read("disk", lambda fact: _read_disk(fact.object("value"))),
        wsl=read("wsl", lambda fact: fact.flag("value")),
        container=read("container", lambda fact: fact.text("value")),
        ptrace_scope=read("ptrace_scope", lambda fact: fact.number("value")),
    )


def _report_of(data: object, source: str) -> Values:
    """Return the report itself, taken out of the envelope if it is in one, once its form is known to be ours."""
    values = Values.of(data, source)
    writer = values.data.get("tenv")
    if "command" in values.data and "data" in values.data:
        if values.data["command"] != "host":
            raise HostReportError(f"{source}: the output of `tenv {values.data['command']}`, not of `tenv host`")
        values = Values.of(values.data["data"], source, "data")
        writer = values.data.get("tenv", writer)
    schema = values.data.get("schema")
    hint = "`tenv host --json` writes one"
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise HostReportError(f"{source}: not a host report: it has no `schema`", hint=hint)
    if schema > _SCHEMA:
        raise HostReportError(
            f"{source}: tenv {writer or '(of unknown version)'} wrote it in form {schema}; "
            f"this is tenv {__version__}, which reads form {_SCHEMA}",
            hint="update tenv here, or write the report with this version",
        )
    return values


def _read_fact(report: Values, name: str, value: Callable[[Values], T]) -> Fact[T] | Missing:
    if name not in report.data:
        return Missing("the report does not say")
    fact = report.object(name)
    if "missing" in fact.data:
        return Missing(fact.text("missing"))
    return Fact(value(fact), fact.text("origin"))


def _read_gpu(values: Values) -> Gpu:
    return Gpu(
        name=values.text("name"),
        compute_capability=values.optional(values.version, "compute_capability"),
        memory=values.optional(values.number, "memory"),
        pci_id=values.optional(values.text, "pci_id") or "",
        pci_address=values.optional(values.text, "pci_address") or "",
        mig=values.optional(values.flag, "mig") or False,
    )


def _read_compat(values: Values) -> Compat:
    return Compat(path=values.text("path"), version=values.version("version"))


def _read_toolkit(values: Values) -> Toolkit:
    components = values.optional(values.object, "components")
    limits = values.optional(values.object, "compilers")
    return Toolkit(
        path=values.text("path"),
        found_by=values.texts("found_by"),
        version=values.optional(values.version, "version"),
        components=tuple((name, components.text(name)) for name in components.data) if components else (),
        problems=values.optional(values.texts, "problems") or (),
        compiles=values.optional(values.flag, "compiles") is not False,
        home=values.optional(values.text, "home") or "",
        environment=values.optional(values.text, "environment") or "",
        compilers=_read_limits(limits) if limits else None,
    )


def _read_limits(values: Values) -> CompilerLimits:
    names = ("gcc_max", "clang_max", "msvc_min", "msvc_below")
    return CompilerLimits(values.text("file"), *(values.optional(values.number, name) for name in names))


def _read_compiler(values: Values) -> Compiler:
    return Compiler(
        kind=values.text("kind"),
        path=values.text("path"),
        version=values.version("version"),
        default=values.flag("default"),
        found_by=values.text("found_by"),
    )


def _read_libstdcxx(values: Values) -> Libstdcxx:
    return Libstdcxx(path=values.text("path"), glibcxx=values.version("glibcxx"), cxxabi=values.version("cxxabi"))


def _read_disk(values: Values) -> Disk:
    return Disk(path=values.text("path"), free=values.number("free"), file_system=values.text("file_system"))
