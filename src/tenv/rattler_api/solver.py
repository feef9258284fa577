"""Solve for conda packages with rattler's solver: one question per platform."""

import datetime as dt
import re
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from tenv.core.dataclass import dataclass
from tenv.core.errors import NetworkError, NoSolutionError, TenvError
from tenv.core.http import PROXY_LOGIN, PROXY_WORDS
from tenv.rattler_api.network import Network, open_gateway, refused_certificate
from tenv.rattler_api.records import Record

if TYPE_CHECKING:
    from rattler import GenericVirtualPackage, Subdir

T = TypeVar("T")

_STATUS = re.compile(r"HTTP status (?:client|server) error \((?P<status>\d{3})")


@dataclass(frozen=True, slots=True)
class SolveRequest:
    """The input of a solve."""

    platform: str
    """The platform."""
    channels: tuple[str, ...]
    """The channels, best first, as URLs."""
    specs: tuple[str, ...]
    """The requests, each a valid match specification (`tenv.rattler_api.records.spec_fault`)."""
    virtual: Mapping[str, tuple[str, str]]
    """The virtual packages of the host: by name, a version and a build string."""
    kept: tuple[Record, ...] = field(default=(), repr=False)
    """Packages of an earlier answer, which are kept if they still fit."""
    exclude_newer: dt.datetime | None = None
    """Excludes packages uploaded later; in UTC."""
    strict: bool = True
    """Use a package only from the first channel that has its name."""
    lowest: bool = False
    """Prefer the lowest versions of requested packages."""


class Solver:
    """rattler's solver with one set of package lists, which are read once.

    Attributes:
        offline: Whether to use only the cache.
    """

    def __init__(self, network: Network) -> None:
        self.offline = network.offline
        self._authorities = network.authorities
        self._gateway = open_gateway(network)
        self._names: dict[tuple[str, str], frozenset[str]] = {}

    def read(self, channels: Mapping[str, Sequence[str]], seconds: float) -> None:
        """Read the package lists of the channels.

        Args:
            channels: The platforms to read for each channel, by its URL.
            seconds: The time limit.

        Raises:
            NetworkError: A channel does not answer, has no package list, or takes too long.
        """
        import asyncio  # late: 38 ms

        async def one(channel: str) -> None:
            for platform in channels[channel]:
                found = await self._gateway.names([channel], _subdirs(platform), channel_relations="disabled")
                self._names[channel, platform] = frozenset(name.normalized for name in found)

        async def every() -> None:
            answers = await asyncio.gather(*(guarded(channel) for channel in channels), return_exceptions=True)
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer

        async def guarded(channel: str) -> None:
            try:
                await asyncio.wait_for(one(channel), seconds)
            except TimeoutError:
                raise NetworkError(
                    f"{channel}: reading its package list took more than {seconds:g} s",
                    hint="try again, set a mirror in [mirrors], or raise the limit: `--time-limit SECONDS`",
                ) from None
            except Exception as error:
                raise self._network_error(channel, error) from error

        asyncio.run(every())

    def names(self, channel: str, platform: str) -> frozenset[str]:
        """Return the names of the packages that were read from a channel for a platform."""
        return self._names.get((channel, platform), frozenset())

    def solve(self, question: SolveRequest, seconds: float) -> list[Record]:
        """Solve for the packages of one platform.

        Raises:
            NoSolutionError: There is no solution, or the solver timed out; its detail is the solver's output.
            NetworkError: A channel does not answer.
        """
        [answer] = self.solve_all([question], seconds)
        if isinstance(answer, TenvError):
            raise answer
        return answer

    def solve_all(self, questions: Sequence[SolveRequest], seconds: float) -> list[list[Record] | TenvError]:
        """Solve for the packages of several platforms concurrently; an answer is the packages or the error."""
        import asyncio  # late: 38 ms

        async def every() -> list[list[Record] | TenvError]:
            return list(await asyncio.gather(*(self._answer(question, seconds) for question in questions)))

        return asyncio.run(every())

    async def _answer(self, question: SolveRequest, seconds: float) -> list[Record] | TenvError:
        from rattler import ChannelPriority, MatchSpec, exceptions, solve

        specs = [MatchSpec(spec, strict=True) for spec in question.specs]
        try:
            records = await _within(
                solve(
                    list(question.channels),
                    specs,
                    gateway=self._gateway,
                    platforms=_subdirs(question.platform),
                    virtual_packages=_virtual(question.virtual),
                    locked_packages=[record.raw for record in question.kept],
                    timeout=dt.timedelta(seconds=seconds),
                    channel_priority=ChannelPriority.Strict if question.strict else ChannelPriority.Disabled,
                    exclude_newer=question.exclude_newer,
                    strategy="lowest-direct" if question.lowest else "highest",
                    channel_relations="disabled",
                ),
                seconds,
            )
        except TimeoutError:
            return _too_long(question, seconds)
        except exceptions.SolverError as error:
            if "timeout" in str(error).lower() or "cancelled" in str(error).lower():
                return _too_long(question, seconds)
            return NoSolutionError(f"no set of conda packages for {question.platform}", detail=str(error))
        except exceptions.GatewayError as error:
            return self._network_error(", ".join(question.channels), error)
        return [Record.of(record) for record in records]

    def candidates(self, channels: Sequence[str], platform: str, *names: str) -> list[Record]:
        """Return the packages of some names in the given channels.

        Raises:
            NetworkError: A channel does not answer.
        """
        import asyncio  # late: 38 ms

        async def ask() -> list[Record]:
            found = await self._gateway.query(
                list(channels), _subdirs(platform), list(names), recursive=False, channel_relations="disabled"
            )
            return [Record.of(record) for records in found for record in records]

        from rattler import exceptions

        try:
            return asyncio.run(ask())
        except exceptions.GatewayError as error:
            raise self._network_error(", ".join(channels), error) from error

    def _network_error(self, channel: str, error: Exception) -> NetworkError:
        text = str(error)
        if not self.offline and (refusal := refused_certificate(text, self._authorities)):
            refusal.detail = text
            return refusal
        return _network_error(channel, text, self.offline)


async def _within(work: Coroutine[Any, Any, T], seconds: float) -> T:
    import asyncio  # late: 38 ms

    return await asyncio.wait_for(work, seconds)


def _subdirs(platform: str) -> "list[Subdir]":
    from rattler import Subdir

    return [Subdir(platform), Subdir("noarch")]


def _virtual(offered: Mapping[str, tuple[str, str]]) -> "list[GenericVirtualPackage]":
    from rattler import BuildString, GenericVirtualPackage, PackageName, Version

    return [
        GenericVirtualPackage(PackageName(name), Version(version), BuildString(build))
        for name, (version, build) in offered.items()
    ]


def _too_long(question: SolveRequest, seconds: float) -> NoSolutionError:
    return NoSolutionError(
        f"no answer within {seconds:g} s for {question.platform}: the solver was still running (requests: "
        f"{len(question.specs)}, channels: {len(question.channels)})",
        hint="pin more of [dependencies] to narrow the search, or raise the limit: `--time-limit SECONDS`",
    )


def _network_error(channel: str, text: str, offline: bool) -> NetworkError:
    """Return the error for rattler's error about a channel, with a hint for its cause."""
    if offline:
        hint = "run the command once without `--offline` to put the package lists into the cache"
        return NetworkError(f"{channel}: its package list is not in the cache", hint=hint, detail=text)
    status = (match := _STATUS.search(text)) and match["status"]
    lines = [line.removeprefix("Caused by: ") for line in text.splitlines()] or ["no reason given"]
    if status == "404" or "could not find subdir" in text:
        message, hint = "there is no such channel (404)", "check its name in `channels` of the manifest"
    elif PROXY_WORDS.search(text):
        message, hint = "the proxy wants a login (407)", PROXY_LOGIN
    elif status in ("401", "403"):
        message = f"access was denied ({status})"
        hint = "store credentials for pixi or rattler (`pixi auth login`), or set a mirror in [mirrors]"
    elif status:
        message, hint = f"the server failed ({status})", "try again later, or set a mirror in [mirrors]"
    elif "decode" in text or "parse" in text or "expected" in text or "malformed" in text:
        message = f"its answer is not a package list: {lines[-1]}"
        hint = "try again, or set another mirror in [mirrors]: the answer may come from a proxy or a damaged mirror"
    else:
        message, hint = f"can't be reached: {lines[-1]}", "check the network, proxies and [mirrors]"
    return NetworkError(f"{channel}: {message}", hint=hint, detail=text)
