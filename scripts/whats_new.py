"""Report which tables of facts are older than the newest releases, and where a checkout's files differ from them.

    python scripts/whats_new.py [--pytorch DIR] [--versions FILE]

uv asks the index that it is configured for, once. `--versions` reads lines such as `torch==2.15.0` in its place. With
`--pytorch`, the files of a PyTorch checkout are compared with the row of its release: CMakeLists.txt and headers, the
CUDA releases that its own CI builds, and its pin of triton. Ends with 1 if a table is older or a file differs, with 2
if the index gives no answer. docs/maintaining.md has the steps for each table.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]

from tenv.checks.pytorch_source import SourceRequirement, SourceTree, find_source  # noqa: E402 (the path is set above)
from tenv.core.versions import Version  # noqa: E402
from tenv.facts.tables import Facts, load_facts  # noqa: E402

__all__ = ["Tracked", "differences", "gaps", "older", "report"]

NVCC = "nvidia-cuda-nvcc"
PACKAGES = ("torch", "triton", NVCC, "nvidia-cudnn-cu13", "nvidia-cusparselt-cu13")
REQUIREMENTS = ("python", "cmake_min", "gcc_min", "clang_min", "cuda_min", "cudnn_min", "cxx_standard", "build_backend")
"""The requirements that tenv reads in a checkout and has in the table."""
WIDTH = 26


@dataclass(frozen=True)
class Tracked:
    """A table that follows the releases of a package."""

    table: str
    """The name of the table."""
    package: str
    """The package on the index."""
    newest: Callable[[Facts], Version]
    """The newest release that the table has."""
    parts: int
    """How many numbers of a version count."""


def _triton(facts: Facts) -> Version:
    pins = [Version(row.triton.removeprefix("~=")) for row in facts.pytorch_build.companions if row.triton]
    return max(pins)


TRACKED = (
    Tracked("pytorch_build", "torch", lambda facts: facts.pytorch_build.releases[-1].version, 3),
    Tracked("pytorch_build (triton)", "triton", _triton, 2),
    Tracked("torch_wheels", "torch", lambda facts: facts.torch_wheels.wheels[-1].version, 3),
    Tracked("cuda_driver", NVCC, lambda facts: facts.cuda_driver.toolkits[0].toolkit, 2),
    Tracked("cuda_gpu_arch", NVCC, lambda facts: Version(facts.cuda_gpu_arch.toolkits[-1].major_minor), 2),
    Tracked("cuda_host_compiler", NVCC, lambda facts: Version(facts.cuda_host_compiler.toolkits[-1].major_minor), 2),
    Tracked("cuda_redist", NVCC, lambda facts: facts.cuda_redist.releases[-1].label, 2),
    Tracked("cudnn", "nvidia-cudnn-cu13", lambda facts: facts.cudnn.versions()[-1], 3),
    Tracked("cusparselt", "nvidia-cusparselt-cu13", lambda facts: facts.cusparselt.versions()[-1], 3),
)


def _cut(version: Version, parts: int) -> Version:
    return Version(".".join(str(version).split(".")[:parts]))


def older(facts: Facts, newest: Mapping[str, Version]) -> Iterator[tuple[Tracked, Version, Version]]:
    """Yield each table that is older than the newest release of its package, with its own newest and that one."""
    for tracked in TRACKED:
        if tracked.package in newest:
            own, there = tracked.newest(facts), newest[tracked.package]
            if _cut(own, tracked.parts) < _cut(there, tracked.parts):
                yield tracked, own, there


def gaps(facts: Facts) -> Iterator[str]:
    """Yield what the newest rows leave open: toolkits without a driver, releases that no own CI is known of."""
    for row in facts.cuda_driver.toolkits:
        if facts.cuda_driver.native(row.toolkit, windows=False) is None and row.toolkit.major == _newest_major(facts):
            yield f"cuda_driver: the driver of CUDA {row.toolkit} is not known"
    last = facts.pytorch_build.releases[-1]
    if not last.cuda_stable:
        yield f"pytorch_build: the CUDA releases of PyTorch {last.version}'s own matrix are not known"


def _newest_major(facts: Facts) -> int:
    return facts.cuda_driver.toolkits[0].toolkit.major


def differences(tree: SourceTree, facts: Facts) -> Iterator[str]:
    """Yield each requirement in a checkout's files that differs from the row of its release."""
    version = tree.version.value
    row = facts.pytorch_build.release(version)
    if row is None:
        yield f"{version}: the table has no row"
        return
    known = row.asked(tree.day)
    for name in REQUIREMENTS:
        found = getattr(tree, name)
        if isinstance(found, SourceRequirement) and str(found.value) != known.get(name, ""):
            yield f"{name}: {found.value} in {found.origin}, {known.get(name) or 'nothing'} in the row of {row.version}"
    if tree.tested is not None:
        listed = {one.major_minor for one in (*row.cuda_stable, *row.cuda_experimental)}
        built = {one.major_minor for one in tree.tested.cudas}
        if listed and built != listed:
            yield f"CUDA of its own builds: {', '.join(sorted(built))}, {', '.join(sorted(listed))} in the row"
    yield from _pins(tree, facts)


def _pins(tree: SourceTree, facts: Facts) -> Iterator[str]:
    """Yield a pin of triton that differs from the table's pair."""
    if tree.root is None:
        return
    file = tree.root / ".ci" / "docker" / "triton_version.txt"
    pinned = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    pair = facts.pytorch_build.companions_of(tree.version.value)
    if pinned and pair and pair.triton and _cut(Version(pinned), 2) != _cut(Version(pair.triton.removeprefix("~=")), 2):
        yield f"triton: {pinned} in .ci/docker/triton_version.txt, {pair.triton} in the row"


def report(facts: Facts, newest: Mapping[str, Version], tree: SourceTree | None = None) -> tuple[str, bool]:
    """Return the report as text, and whether anything is older or differs."""
    behind = {tracked.table: (own, there) for tracked, own, there in older(facts, newest)}
    lines = []
    for tracked in TRACKED:
        own = tracked.newest(facts)
        there = newest.get(tracked.package)
        state = "not asked" if there is None else f"OLDER than {there}" if tracked.table in behind else "current"
        lines.append(f"{tracked.table:<{WIDTH}}{own!s:<10}{state:<22}{tracked.package}".rstrip())
    lines += ["", *gaps(facts)]
    found = list(differences(tree, facts)) if tree else []
    if tree:
        lines += [
            "",
            f"PyTorch {tree.version.value} in {tree.root}:",
            *(f"  {one}" for one in found or ["as the table"]),
        ]
    return "\n".join(lines) + "\n", bool(behind or found)


def _parse(text: str) -> dict[str, Version]:
    return {name: Version(version) for name, version in re.findall(r"^([\w-]+)==([\d.]+)$", text, re.MULTILINE)}


def _ask() -> dict[str, Version]:
    """Return the newest releases on the index that uv is configured for.

    Raises:
        SystemExit: uv gives no answer (status 2).
    """
    words = [sys.executable, "-m", "uv", "pip", "compile", "--no-deps", "--no-header", "--no-annotate", "--quiet"]
    words += ["--python-platform", "x86_64-unknown-linux-gnu", "--python-version", "3.13", "-"]
    done = subprocess.run(words, input="\n".join(PACKAGES), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise SystemExit(2)
    return _parse(done.stdout)


def main() -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pytorch", type=Path, metavar="DIR")
    parser.add_argument("--versions", type=Path, metavar="FILE")
    asked = parser.parse_args()
    facts = load_facts()
    newest = _parse(asked.versions.read_text(encoding="utf-8")) if asked.versions else _ask()
    tree = find_source(str(asked.pytorch), facts) if asked.pytorch else None
    text, news = report(facts, newest, tree)
    sys.stdout.write(text)
    return 1 if news else 0


if __name__ == "__main__":
    sys.exit(main())
