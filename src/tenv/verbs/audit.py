"""Audit a build: its needs, where it runs, and whether it agrees with its target."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from tenv.audits.against_torch import TorchAudit, audit_against_torch, libraries_of_torch
from tenv.audits.audited_tree import HINT, AuditedKind, AuditedTree, open_tree
from tenv.audits.build_note import BuildNote, architecture_findings, find_note, lock_findings
from tenv.audits.library import AuditedFile, Needs, audit_finding, inspect, mixed_abis, needs_of
from tenv.audits.links import Environs, Link, LinkOrigin, environment_index, is_environment, link_findings, links_of
from tenv.audits.on_host import TagAnswer, host_findings, runs, tag_answer, tags_of_name
from tenv.checks.fleet import MachineVerdicts, ask_each, refuse_host_options
from tenv.checks.host_options import HostOptions
from tenv.checks.host_options import report as host_report
from tenv.checks.named_torch import named_torch
from tenv.checks.rules.common import cuda_on
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentMissingError, TenvError, UsageError
from tenv.core.files import digest_bytes
from tenv.core.prefix import MARKER
from tenv.environment.state import Environment, Status
from tenv.host.installed_torch import InstalledTorch
from tenv.host.interface import Missing
from tenv.host.loader import Loader
from tenv.host.machine import current_platform
from tenv.host.places import Places
from tenv.host.report import HostReport
from tenv.project.context import Context

_ARCH_LIST = "TORCH_CUDA_ARCH_LIST"
_NAMED = 5
_INSTALLED = ("lib", "lib64", "targets", "Lib", "Library")
"""Folders of an environment in which packages are installed: a checkout may lie anywhere in one."""


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """The path to audit, and its references."""

    path: Path
    """A built torch, a wheel, a library or a folder."""
    target: str | None = None
    """The target; None for the one that built it, or of the environment that it is in."""
    prefix: Path | None = None
    """The target's environment; None for the default one."""
    host: HostOptions = field(default_factory=HostOptions)
    """The host that it is to run on."""
    against: Path | None = None
    """Host reports of a fleet, in place of one host; None for none."""
    torch: str = ""
    """The torch that an extension is for: a path or a version; empty for none."""


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """Whether it runs on one host of a fleet."""

    run: bool | None
    """The answer; None where the report does not say enough."""
    findings: tuple[Finding, ...]
    """The findings against it."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"run": self.run, "findings": [finding.to_json() for finding in self.findings]}


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit."""

    path: Path
    """The audited path."""
    kind: AuditedKind
    """Its kind."""
    libraries: list[AuditedFile]
    """The libraries in it."""
    links: list[Link]
    """Where each library that they need comes from."""
    tag: TagAnswer | None
    """The manylinux tag that the symbols allow; None without a library."""
    note: BuildNote | None
    """Where it was built; None where that is not known."""
    target: str
    """The target that it was held against; empty for none."""
    prefix: Path | None
    """The environment that was searched; None for none."""
    run: bool | None
    """Whether it runs on the host, beside the torch that is named; None where that is not known, or where there are
    machines."""
    machines: list[MachineVerdicts[HostAnswer]] | None
    """The answers of a fleet; None without one."""
    findings: list[Finding]
    """Its faults."""
    torch: TorchAudit | None = None
    """The extension held against a torch; None where none was named."""

    @property
    def fits(self) -> bool:
        """Whether nothing is an error, and it runs on every machine of the fleet."""
        fleet = all(not row.problem and row.answers[0].run is not False for row in self.machines or ())
        return fleet and all(finding.severity is not Severity.ERROR for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        tag = self.tag
        return {
            "path": str(self.path),
            "kind": self.kind.value,
            "target": self.target,
            "prefix": str(self.prefix or ""),
            "run": self.run,
            "manylinux": {"tag": tag.tag, "because": tag.because, "outside": list(tag.outside)} if tag else None,
            "build": self.note.values if self.note else None,
            "files": [row.to_json() for row in self.libraries],
            "links": [
                {"library": link.name, "by": link.by, "from": link.origin.value, "path": link.place}
                for link in self.links
            ],
            "machines": None if self.machines is None else [_machine(row) for row in self.machines],
            **({"torch": self.torch.to_json()} if self.torch else {}),
        }


def _machine(row: MachineVerdicts[HostAnswer]) -> dict[str, Any]:
    values = row.to_json(HostAnswer.to_json)
    answer = values.pop("targets") or [{"run": None, "findings": []}]
    return {**values, **answer[0]}


def audit(context: Context, request: AuditRequest) -> Audit:
    """Audit a build.

    Raises:
        UsageError: There is nothing to audit, or the options contradict each other.
        HostReportError: A report can't be read.
        EnvironmentMissingError: The environment that is named does not exist.
    """
    if request.against is not None:
        refuse_host_options(request.host)
    tree = open_tree(request.path)
    note = find_note(tree)
    facts = context.facts()
    own = context.places.environments()
    torch = named_torch(request.torch, facts, current_platform(), own) if request.torch else None
    around = _environs(context, request, tree, note, torch)
    libraries = inspect(tree, torch=torch is not None)
    if not libraries and not tree.fault and tree.kind is AuditedKind.FOLDER:
        raise UsageError(f"{tree.path} has no library to audit", hint=_hint(tree.path))
    needs = needs_of(libraries, tree.names)
    links = links_of(libraries, tree, around)
    unreadable, of_links = list(_unreadable(tree, libraries)), link_findings(libraries, links, tree, around)
    lacking = any(finding.severity is Severity.ERROR for finding in of_links)
    findings = [*unreadable, *of_links, *_abis(libraries)]
    run, machines = None, None
    # A target is judged for this machine: its CUDA may be the machine's own.
    host = host_report(context, request.host) if request.against is None else HostReport.unknown()
    if request.against is None:
        on_host = host_findings(needs, host, facts)
        findings += on_host
        run = runs(on_host) if libraries else None
        run = False if run and lacking else None if run and unreadable else run
    else:
        machines = list(
            ask_each(request.against, lambda one: (_answer(needs, one, context, unsure=lacking or bool(unreadable)),))
        )
    outside = [link.name for link in links if link.origin not in (LinkOrigin.INSIDE, LinkOrigin.DRIVER)]
    tag = (
        tag_answer({name: row[0] for name, row in needs.symbols.items()}, needs.machines[0], outside)
        if needs.machines
        else None
    )
    target = request.target or _target_of(around.prefix, note)
    findings += _tags(tree, tag)
    findings += _against_target(context, target, note, libraries, needs, host)
    held = audit_against_torch(libraries, needs, torch) if torch else None
    findings += held.findings if held else ()
    if run and held and any(finding.severity is Severity.ERROR for finding in held.findings):
        run = False  # its import fails beside this torch
    about = (libraries, links, tag, note, target, around.prefix, run, machines, findings, held)
    return Audit(request.path, tree.kind, *about)


def _hint(folder: Path) -> str:
    """Return the hint for a folder without a library: the `torch` of a checkout has none before it is built."""
    checkout = folder.parent if folder.name == "torch" else folder
    unbuilt = (checkout / "torch" / "__init__.py").is_file() and (checkout / "setup.py").is_file()
    return f"`tenv build --pytorch {checkout}` builds it" if unbuilt else HINT


def _answer(needs: Needs, host: HostReport, context: Context, *, unsure: bool) -> HostAnswer:
    """Return the answer for a host; a yes is unknown where a file can't be read or a library is missing here."""
    found = host_findings(needs, host, context.facts())
    run = runs(found)
    return HostAnswer(None if run and unsure else run, tuple(found))


def _environs(
    context: Context, request: AuditRequest, tree: AuditedTree, note: BuildNote | None, torch: InstalledTorch | None
) -> Environs:
    """Return the environment of an audited path, and the libraries that the system's loader finds for it."""
    loader = Loader(Places(environ=context.environ))

    def find(name: str) -> str:
        found = loader.find(name)
        return "" if isinstance(found, Missing) else str(found.path)

    prefix = _prefix(context, request, tree, note)
    if torch and torch.prefix and prefix is None:
        prefix = Path(torch.prefix)
    index = environment_index(prefix) if prefix else {}
    for path in libraries_of_torch(torch) if torch else ():  # a link may lead to a torch outside the environment
        index.setdefault(path.name, str(path))
    return Environs(prefix, index, find)


def _prefix(context: Context, request: AuditRequest, tree: AuditedTree, note: BuildNote | None) -> Path | None:
    if request.target is not None or request.prefix is not None:
        environment = context.environment(request.target or "", request.prefix)
        if (environment.prefix / MARKER).is_file():
            return environment.prefix
        if request.prefix is not None:
            raise EnvironmentMissingError(f"there is no environment at {environment.prefix}")
        context.find_target(request.target)  # reports a misspelled name as such
        return None
    real = tree.path.resolve()
    if (tree.path / MARKER).is_file():
        return tree.path
    for folder in real.parents:
        installed = tree.kind is not AuditedKind.WHEEL and real.relative_to(folder).parts[0] in _INSTALLED
        if (folder / MARKER).is_file() or (installed and is_environment(folder)):
            return folder
    if note and note.prefix and (Path(note.prefix) / MARKER).is_file():
        return Path(note.prefix)
    return None


def _target_of(prefix: Path | None, note: BuildNote | None) -> str:
    if note:
        return note.target
    state = Environment(prefix).state() if prefix else None
    return state.target if state and state.status is not Status.BROKEN else ""


def _unreadable(tree: AuditedTree, libraries: Sequence[AuditedFile]) -> Iterator[Finding]:
    faults = [(tree.path.name, tree.fault)] if tree.fault else []
    faults += [(row.path or tree.path.name, row.fault) for row in libraries if row.fault]
    for path, fault in faults:
        yield audit_finding(
            "TE001",
            Severity.ERROR,
            path,
            "can't be read",
            fault,
            "System V ABI, chapters 4 and 5; PKWARE APPNOTE",
            "build or download it again; `tenv audit` reads nothing further of it",
        )


def _abis(libraries: Sequence[AuditedFile]) -> Iterator[Finding]:
    old, new = mixed_abis(libraries)
    if old:
        yield audit_finding(
            "TE010",
            Severity.WARNING,
            ", ".join(old[:_NAMED]),
            "was compiled with _GLIBCXX_USE_CXX11_ABI=0, and others with 1: strings can't be passed between them",
            f"the others: {', '.join(new[:_NAMED])}",
            "GCC manual of libstdc++, Dual ABI",
            "compile all with the same _GLIBCXX_USE_CXX11_ABI; torch.compiled_with_cxx11_abi() says which torch has",
        )


def _tags(tree: AuditedTree, tag: TagAnswer | None) -> Iterator[Finding]:
    if tree.kind is not AuditedKind.WHEEL or tag is None:
        return
    promised = tags_of_name(tree.path.name)
    if not promised:
        return
    name, glibc = min(promised, key=lambda row: row[1])
    if tag.glibc is None or glibc < tag.glibc:
        yield audit_finding(
            "TE009",
            Severity.ERROR,
            name,
            f"is in the wheel's name, and {tag.because} "
            + ("is newer than what any tag allows" if tag.glibc is None else f"requires {tag.tag}"),
            f"{tag.because} is required by a library of the wheel",
            "PEP 600; manylinux-policy.json of auditwheel",
            f"rename the wheel with `python -m wheel tags --platform-tag {tag.tag}`, or build on an older system",
        )


def _against_target(
    context: Context,
    name: str,
    note: BuildNote | None,
    libraries: list[AuditedFile],
    needs: Needs,
    host: HostReport,
) -> Iterator[Finding]:
    """Yield how the build differs from its target; a target that is not known here is nothing to compare with."""
    asked, where = (note.architectures, "of the build") if note else ("", "")
    digest, cuda = "", None
    if name:
        found = _try(lambda: context.find_target(name))
        if found is not None:
            version = cuda_on(found.manifest.on(current_platform()), host)
            cuda = version.major if version else None
            lock = _try(lambda: context.places.lock_of(name)[0])
            digest = digest_bytes(lock.read_bytes()) if lock is not None and lock.is_file() else ""
        if not asked:
            asked, where = context.environ.get(_ARCH_LIST, ""), "of your shell"
    yield from lock_findings(note, name, digest, cuda, needs)
    yield from architecture_findings(libraries, asked, where)


def _try(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except (TenvError, OSError):
        return None
