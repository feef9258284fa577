"""The target that is meant by a name with a CUDA release for which there is none: ``cuda122``, ``cu12``, ``12.2``."""

import re
import sys
from collections.abc import Callable, Sequence

from tenv.core.dataclass import dataclass
from tenv.core.versions import Version

_NAME = re.compile(r"cu(?:da)?[-_ ]?(?P<major>1\d|[5-9])\.?(?P<minor>\d)?(?!\d)", re.IGNORECASE)
_NUMBER = re.compile(r"(?P<major>1\d|[5-9])\.(?P<minor>\d)(?:\.\d+)?")
_ANY_MINOR = 99

Release = tuple[int, int]


def nearest_cuda(
    name: str,
    names: Sequence[str],
    has_platform: Callable[[str], bool] = lambda _: True,
    driver: "HostDriver | None" = None,
) -> str:
    """Return a suggestion for a name with a CUDA release: the nearest release that the host's driver runs.

    The nearest is the newest one of the same major that is not newer, else the next one. On a host without a driver,
    and where the driver runs no known release, every release counts.

    Args:
        name: The name that no target has.
        names: The names of all targets.
        has_platform: Returns whether a target is for the platform of this host; others count only without such.
        driver: The driver of the judged host; None for this host's.

    Returns:
        The suggestion; empty if the name has no CUDA release.
    """
    wanted = _release_of(name)
    known = {other: found for other in names if (found := _release_of(other))}
    if not wanted or not known:
        return ""
    known = {other: found for other, found in known.items() if has_platform(other)} or known
    driver = driver or HostDriver.detect()
    fitting = {found for found in known.values() if driver and driver.runs(found)}
    nearest, best = _nearest(wanted, {*known.values()}), _nearest(wanted, fitting or {*known.values()})
    listed = ", ".join(f"`{other}`" for other, found in sorted(known.items()) if found == best)
    number = ".".join(str(part) for part in wanted if part != _ANY_MINOR)
    if driver is None:
        return f"nearest to CUDA {number}: {listed}; `auto` selects the newest that this host's driver runs"
    if not fitting:
        return f"nearest to CUDA {number}: {listed}, which driver {driver.version} {driver.whose} does not run"
    if best == nearest:
        return f"nearest to CUDA {number}: {listed}, which driver {driver.version} {driver.whose} runs"
    passed = ".".join(map(str, nearest))
    return (
        f"nearest to CUDA {number} that driver {driver.version} {driver.whose} runs: {listed}; it does not run {passed}"
    )


def one_letter_off(name: str, names: Sequence[str]) -> str:
    """Return a suggestion for a name with one wrong letter: ``cuda13o`` is ``cuda130``, not CUDA 13.

    A digit for another digit is another release, and no mistyped letter.
    """
    for other in names:
        wrong = [pair for pair in zip(name, other, strict=False) if pair[0] != pair[1]]
        if len(name) == len(other) and len(wrong) == 1 and not all(letter.isdigit() for letter in wrong[0]):
            return f"did you mean `{other}`?"
    return ""


def _release_of(name: str) -> Release | None:
    """Return the CUDA release in the name of a target: 12.2 for cuda122 and cu122, any 12.x for cuda12."""
    match = _NAME.match(name) or _NUMBER.fullmatch(name)
    return (int(match["major"]), int(match["minor"] or _ANY_MINOR)) if match else None


def _nearest(wanted: Release, releases: set[Release]) -> Release:
    same = sorted(found for found in releases if found[0] == wanted[0]) or sorted(releases)
    older = [found for found in same if found <= wanted]
    return older[-1] if older else same[0]


@dataclass(frozen=True, slots=True)
class HostDriver:
    """The driver of this host, or of the one that is judged in its place."""

    version: Version
    """Its version."""
    windows: bool
    """Whether that is the version of a Windows driver, as under WSL."""
    whose: str = "of this host"
    """Whose it is, in words."""

    @classmethod
    def detect(cls) -> "HostDriver | None":
        """Return the driver; None where there is none, or none can be read."""
        from tenv.host.driver import probe  # late: only a name without a target needs it
        from tenv.host.interface import Fact
        from tenv.host.nvidia import Nvidia
        from tenv.host.places import Places, is_wsl

        found = probe(Nvidia(Places()))
        return cls(found.value, is_wsl() or sys.platform == "win32") if isinstance(found, Fact) else None

    def runs(self, release: Release) -> bool:
        """Return whether the driver runs programs of a CUDA release, by minor-version compatibility too."""
        from tenv.facts.tables import load_facts

        least = load_facts().cuda_driver.floor(Version(".".join(map(str, release))), self.windows)
        return least is not None and self.version >= least.driver
