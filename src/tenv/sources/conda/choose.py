"""Selects conda packages for the platforms and the host that a manifest declares, not for this host.

Where there is no solution, it explains why by lines of the manifest, and finds the nearest request that has one.
"""

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tenv.core.dataclass import dataclass
from tenv.core.errors import ManifestError, NetworkError, NoSolutionError, TenvError
from tenv.core.names import channel_url, channel_word
from tenv.core.progress import Progress
from tenv.core.toml_reader import nearest
from tenv.core.versions import CondaRange
from tenv.core.wheel_platforms import DEFAULT_GLIBC
from tenv.locks.lock import CondaPackage
from tenv.rattler_api.network import Network
from tenv.rattler_api.records import Record, fits, spec_fault
from tenv.rattler_api.solver import Solver, SolveRequest
from tenv.sources.conda.queries import Inquiry, OutOfTimeError, nearest_first
from tenv.targets.manifest import CondaRequest, Manifest, Requirements
from tenv.targets.manifest_file import REFUSED

_BLAME = "searching for the conflict"
_KERNEL = "4.18"  # the kernel of RHEL 8
_WINDOWS = "10"
_ANY_CUDA = "99"
"""A driver that runs every CUDA: before torch is locked, it alone decides about the release."""
_MACHINES = {"linux-64": "x86_64", "linux-aarch64": "aarch64", "win-64": "x86_64"}

_SECONDS = 60.0
"""The time limit of the search for the conflict, in seconds."""

_FEW = 6  # the number of versions, or requests, that a message lists
_HIDDEN = re.compile(
    r"(?P<name>[\w.-]+) \S+(?: \| [^\n]*?)? (?:is|are) excluded because due to strict channel priority not using this "
    r"option from: '(?P<channel>[^']+)'"
)
_CUDA_PART = re.compile(r"cuda(?:toolkit|-)\S* = \D*(?P<version>[\d.]+)")
_HOST = re.compile(r"__(?P<name>glibc|cuda|linux) (?P<range>[^\s,]*>=(?P<version>[0-9.]+)[^\s,]*)")


def virtual_packages(platform: str, requirements: Requirements) -> dict[str, tuple[str, str]]:
    """Return the virtual packages of the declared host: version and build string, by name."""
    found = {"__archspec": ("1", _MACHINES[platform])}
    if platform.startswith("win"):
        found |= {"__win": (_WINDOWS, "0")}
    else:
        glibc = str(requirements.glibc or DEFAULT_GLIBC)
        found |= {"__unix": ("0", "0"), "__linux": (_KERNEL, "0"), "__glibc": (glibc, "0")}
    if requirements.cuda or requirements.cuda_from:
        found["__cuda"] = (str(requirements.cuda or _ANY_CUDA), "0")
    return found


def to_package(record: Record) -> CondaPackage:
    """Return a record as a package of a lock."""
    return CondaPackage(**{name: getattr(record, name) for name in CondaPackage.__slots__ if name != "features"})


@dataclass(frozen=True, slots=True)
class Conda:
    """Selects conda packages."""

    network: Network
    """The network settings for channels."""
    time_limit: float = 300.0
    """The time limit in seconds for reading package lists, and for solving one platform."""
    exclude_newer: dt.datetime | None = None
    """Ignore packages that are newer than this time."""

    def resolve(
        self, manifest: Manifest, kept: Mapping[str, Sequence[Record]], progress: Progress
    ) -> dict[str, list[Record]]:
        """Select the packages of every platform.

        Args:
            manifest: The manifest.
            kept: Packages of the old lock, by platform, which stay if they still satisfy the manifest.
            progress: Receives progress.

        Raises:
            NoSolutionError: No set of packages satisfies the manifest; the hint has the nearest request that does.
            NetworkError: A channel does not respond, or has an invalid record.
            ManifestError: A request is not valid.
        """
        platforms = [platform for platform in manifest.platforms if manifest.on(platform).dependencies]
        questions = [self._question(manifest.on(platform), platform, kept.get(platform, ())) for platform in platforms]
        solver = Solver(self.network)
        channels: dict[str, list[str]] = {}
        for question in questions:
            for channel in question.channels:
                channels.setdefault(channel, []).append(question.platform)
        progress.step("reading the package lists of " + ", ".join(map(channel_word, channels)))
        solver.read(channels, self.time_limit)
        progress.step(f"solving {manifest.name}", len(questions))
        found = {}
        for question, answer in zip(questions, solver.solve_all(questions, self.time_limit), strict=True):
            if isinstance(answer, NoSolutionError) and answer.detail:
                progress.step(_BLAME)
                raise _explain(solver, question, manifest.on(question.platform), answer, self.time_limit)
            if isinstance(answer, TenvError):
                raise answer
            here = manifest.on(question.platform)
            if _passed_over(solver, question, here, answer):
                progress.step(_BLAME)
                raise _explain(solver, question, here, NoSolutionError(""), self.time_limit)
            for record in answer:
                if fault := record.fault(question.platform):
                    raise NetworkError(
                        f"{record.channel}: {fault}",
                        hint="remove this channel from `channels`: it serves invalid records",
                    )
            _refuse(here, question.platform, answer)
            found[question.platform] = answer
            progress.advance()
        return found

    def _question(self, manifest: Manifest, platform: str, kept: Sequence[Record]) -> SolveRequest:
        if not manifest.channels and not all(request.channel for request in manifest.dependencies.values()):
            raise ManifestError(
                f"{manifest.file}: channels: is required for [dependencies]",
                hint='`channels = ["conda-forge"]` is an example',
            )
        for name, request in manifest.dependencies.items():
            if fault := spec_fault(request.spec(name)):
                raise ManifestError(f"{request.line}: dependencies.{name}: {fault}")
        return SolveRequest(
            platform=platform,
            channels=manifest.sources(platform),
            specs=tuple(request.spec(name) for name, request in sorted(manifest.dependencies.items())),
            virtual=virtual_packages(platform, manifest.requirements),
            kept=tuple(kept),
            exclude_newer=self.exclude_newer,
        )


def _refuse(manifest: Manifest, platform: str, records: Sequence[Record]) -> None:
    """Raise ManifestError for a package that no lock can hold and that another package brings in."""
    for name in sorted(REFUSED.keys() & {record.name for record in records}):
        reason, instead = REFUSED[name]
        asking = {record.name for record in records if name in (depend.split()[0] for depend in record.depends)}
        parents = ", ".join(sorted(asking))
        raise ManifestError(
            f"{manifest.file}: dependencies: `{name}` {reason}; {parents} requires it on {platform}",
            hint=f"remove {parents}, and {instead}",
        )


def _explain(
    solver: Solver, question: SolveRequest, manifest: Manifest, error: NoSolutionError, seconds: float
) -> NoSolutionError:
    """Return the error with the conflicting lines of the manifest, and a hint with requests that have a solution.

    Args:
        solver: The solver.
        question: The request without a solution.
        manifest: The manifest for the platform.
        error: The solver's error.
        seconds: The time limit of the search.
    """
    inquiry = Inquiry(solver, question, dict(manifest.dependencies), min(seconds, _SECONDS))
    try:
        found = (
            _unknown(inquiry) or _no_version(inquiry) or _hidden(inquiry, error.detail) or _host(inquiry, error.detail)
        )
        found = found or _clash(inquiry)
    except OutOfTimeError:
        found = None
    message, hint = found or (
        "its requests conflict; the search for the conflicting ones ran out of time",
        "`tenv lock --verbose` prints the solver's full output",
    )
    return NoSolutionError(
        f"no set of conda packages for {manifest.name} on {question.platform}: {message}",
        hint=hint,
        detail=error.detail,
    )


def _passed_over(solver: Solver, question: SolveRequest, manifest: Manifest, answer: list[Record]) -> str:
    """Return the request that a lower channel satisfied although a higher one has the package; empty for none.

    For channel priority, rattler considers only packages that match a request. So a version that the first channel
    lacks would come from a lower one.
    """
    for record in answer:
        request = manifest.dependencies.get(record.name)
        first = next((c for c in question.channels if record.name in solver.names(c, question.platform)), "")
        if request and not request.channel and first not in ("", record.channel):
            return record.name
    return ""


def _line(name: str, request: CondaRequest) -> str:
    return f"\n  {request.line}: {name} = {request}"


def _channels(inquiry: Inquiry, name: str, request: CondaRequest) -> list[str]:
    return [channel_url(request.channel, name)] if request.channel else list(inquiry.question.channels)


def _unknown(inquiry: Inquiry) -> tuple[str, str] | None:
    """Find requests for packages that are in no channel."""
    lines, hints = "", []
    for name, request in sorted(inquiry.requests.items()):
        channels = _channels(inquiry, name, request)
        if not any(name in inquiry.names(channel) for channel in channels):
            where = ", ".join(map(channel_word, channels))
            lines += f"{_line(name, request)}\n    no {name} in {where} for {inquiry.question.platform}"
            hints.append(nearest(name, {known for channel in channels for known in inquiry.names(channel)}))
    hint = next(filter(None, hints), "correct the name, or add a channel that has the package to `channels`")
    return (f"a package does not exist:{lines}", hint) if lines else None


def _no_version(inquiry: Inquiry) -> tuple[str, str] | None:
    """Find requests that no version of the package satisfies, independent of other requests."""
    for name, request in sorted(inquiry.requests.items()):
        bare = replace(request, channel="").spec(name)
        places = {c: r for c, r in inquiry.candidates(name).items() if c in _channels(inquiry, name, request)}
        first = next(iter(places), "")
        matching = [channel for channel, records in places.items() if any(fits(bare, record) for record in records)]
        if first in matching or not places:
            continue
        if matching:
            below = channel_word(matching[0])
            message = f"{channel_word(first)} hides the {name} of {below}, which is below it in `channels`"
            return message + ":" + _line(name, request), _pin(name, replace(request, channel=below))
        versions = nearest_first((record.version for record in places[first]), _number(request))
        there = ", ".join(versions[:_FEW]) + (" …" if len(versions) > _FEW else "")
        message = f"{channel_word(first)} has no matching {name}; its nearest versions: {there}:{_line(name, request)}"
        pin = _nearest_pin(inquiry, name, list(inquiry.requests))
        return message, f"the nearest solution: {pin}" if pin else f"request another version of {name}"
    return None


def _number(request: CondaRequest) -> str:
    """Return the first version in a request; empty for none."""
    found = re.search(r"\d+(\.\d+)*", str(request.version))
    return found.group() if found else ""


def _pin(name: str, request: CondaRequest) -> str:
    return f"add {name} = {request} to [dependencies]"


def _hidden(inquiry: Inquiry, reason: str) -> tuple[str, str] | None:
    """Find packages of a channel that the solution needs and that strict channel priority hides."""
    names = list(inquiry.requests)
    hidden = {match["name"]: match["channel"].rstrip("/") for match in _HIDDEN.finditer(reason)}
    wanted = {name: channel for name, channel in hidden.items() if channel in inquiry.question.channels}
    for chosen in (*([name] for name in sorted(wanted)), sorted(wanted)):
        pins = [CondaRequest(_version_of(inquiry, name), channel_word(wanted[name])) for name in chosen]
        changed = {name: pin.spec(name) for name, pin in zip(chosen, pins, strict=True) if name in names}
        extra = [pin.spec(name) for name, pin in zip(chosen, pins, strict=True) if name not in names]
        solution = inquiry.with_specs(inquiry.specs(names, *extra, changed=changed)) if chosen else []
        if solution and all(_needed_of(inquiry, name, solution) for name in chosen):
            reason_of = "; ".join(_why_hidden(inquiry, name, wanted[name], solution) for name in chosen)
            hint = ", ".join(f"{name} = {pin}" for name, pin in zip(chosen, pins, strict=True))
            return reason_of, f"add {hint} to [dependencies]"
    return None


def _needed_of(inquiry: Inquiry, name: str, solution: list[Record]) -> bool:
    """Return whether the channel that hides a package lacks a version that a package of the solution needs.

    If it has that, another package is the cause, and one from a lower channel would only go around it.
    """
    by_channel = inquiry.candidates(name)
    hiding = by_channel[next(iter(by_channel))]
    if name in inquiry.requests:
        bare = replace(inquiry.requests[name], channel="").spec(name)
        if not any(fits(bare, record) for record in hiding):
            return True
    specs = [spec for record in solution for spec in record.depends if spec.split()[0] == name]
    return any(not any(fits(spec, record) for record in hiding) for spec in specs)


def _version_of(inquiry: Inquiry, name: str) -> CondaRange:
    return inquiry.requests[name].version if name in inquiry.requests else CondaRange("*")


def _why_hidden(inquiry: Inquiry, name: str, channel: str, solution: list[Record]) -> str:
    """Return which package needs a hidden one, and which channel hides it."""
    above = next(c for c in inquiry.question.channels if name in inquiry.names(c))
    by = [record for record in solution if any(spec.split()[:1] == [name] for spec in record.depends)]
    by.sort(key=lambda record: (record.name not in inquiry.requests, record.channel != channel, record.name))
    hides = f"which {channel_word(above)} hides under strict channel priority"
    if not by:
        return f"{channel_word(channel)}'s {name} is needed, {hides}"
    owner = "its own" if by[0].channel == channel else f"{channel_word(channel)}'s"
    line = _line(by[0].name, inquiry.requests[by[0].name]) if by[0].name in inquiry.requests else ""
    wants = f"{by[0].name} {by[0].version} of {channel_word(by[0].channel)} requires {owner} {name}"
    return f"{wants}, {hides}{line and ':' + line}"


def _host(inquiry: Inquiry, reason: str) -> tuple[str, str] | None:
    """Find a requirement on the host that the manifest is missing."""
    for name in ("glibc", "cuda"):
        needed = sorted(
            {match["version"] for match in _HOST.finditer(reason) if match["name"] == name},
            key=lambda version: [int(part[:18] or 0) for part in version.strip(".").split(".")],
        )
        offered = inquiry.question.virtual.get(f"__{name}", ("", ""))[0]
        for version in needed:
            virtual = {**inquiry.question.virtual, f"__{name}": (version, "0")}
            answer = inquiry.ask(replace(inquiry.question, virtual=virtual, kept=()))
            if not isinstance(answer, NoSolutionError):
                has = f"the manifest declares {offered}" if offered else "the manifest declares none"
                return f"packages require {name} {version} or newer of the host, and {has}", (
                    f'add `{name} = "{version}"` to [requirements], or request older packages'
                )
    return None


def _clash(inquiry: Inquiry) -> tuple[str, str] | None:
    """Find the smallest set of conflicting requests, and the changes that resolve the conflict."""
    names = inquiry.core()
    lines = "".join(_line(name, inquiry.requests[name]) for name in names[:_FEW])
    lines += f"\n  … and {len(names) - _FEW} more" if len(names) > _FEW else ""
    words = inquiry.clash(names) if len(names) > 1 else inquiry.own_clash(names[0])
    words = words or _first_words(inquiry.reason(names))
    pins = [pin for name in names if (pin := _nearest_pin(inquiry, name, list(inquiry.requests)))]
    # With a second conflict, no single change resolves the first.
    pins = pins or [pin for name in names if (pin := _nearest_pin(inquiry, name, names))]
    pins = [pin for pin in pins if not _other_release(inquiry, pin)] or pins
    ways = [f"the nearest solution: {', or '.join(pins)}"] if pins else []
    limit = inquiry.question.exclude_newer
    if limit and not isinstance(inquiry.ask(replace(inquiry.question, exclude_newer=None, kept=())), NoSolutionError):
        ways.append(f"packages newer than {limit:%Y-%m-%d} have a solution: choose a later `--exclude-newer`")
    hint = "; ".join(ways) or _removal(inquiry, names)
    title = "these requests conflict" if len(names) > 1 else "this request has no solution"
    return f"{title}:{lines}\n  {words}", hint


def _other_release(inquiry: Inquiry, pin: str) -> bool:
    """Return whether a request names a part of another CUDA release than `requirements.cuda`: TE301 refuses it."""
    cuda = inquiry.question.virtual.get("__cuda", ("", ""))[0]
    named = _CUDA_PART.match(pin)
    return bool(cuda and named) and f"{named['version'] if named else ''}.".split(".")[:2] != cuda.split(".")[:2]


def _removal(inquiry: Inquiry, names: list[str]) -> str:
    """Return which request of a conflict to remove: one without which all others have a solution."""
    enough = [n for n in names if inquiry.with_specs(inquiry.specs(other for other in inquiry.requests if other != n))]
    if enough:
        return f"remove {', or '.join(enough)} from [dependencies]"
    return "remove one of them" if len(names) > 1 else f"remove {names[0]} from [dependencies]"


def _nearest_pin(inquiry: Inquiry, name: str, names: list[str]) -> str:
    """Return a request with the version nearest to the requested one for which some requests have a solution."""
    request = inquiry.requests[name]
    number = _number(request)
    if not number:
        return ""
    found = []
    for bound, lowest in ((f"<{number}", False), (f">={number}", True)):
        changed = {name: replace(request, version=CondaRange(bound), build="").spec(name)}
        solution = inquiry.with_specs(inquiry.specs(names, changed=changed), lowest=lowest)
        found += [record.version for record in solution if record.name == name]
    if not found:
        return ""
    version = nearest_first(found, number)[0]
    return f"{name} = {replace(request, version=CondaRange(version), build='')}"


def _first_words(reason: str) -> str:
    """Return the first lines of the solver's output, without its tree drawing."""
    lines = [re.sub(r"^[│├└─\s]+", "", line) for line in reason.splitlines()]
    said = [line for line in lines if line and "are incompatible" not in line][:3]
    text = " ".join(said).removeprefix("Cannot solve the request because of: ")
    for theirs, ours in (
        (", which cannot be installed because there are no viable options:", ","),
        (" cannot be installed because there are no viable options:", " can't be installed:"),
        (" would require", " requires"),
        (", for which no candidates were found.", ", which does not exist"),
        ("No candidates were found for", "no package matches"),
    ):
        text = text.replace(theirs, ours)
    return text.rstrip(",:")
