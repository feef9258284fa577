"""Check whether a checkout can be built in its state: its submodules, and the leftovers of an earlier build.

CMake reads its cache before it looks at the environment: a compiler, a toolkit and, where a revision has
``cmake/EnvVarForwarding.cmake``, every switch keep their values from the time when ``build/`` was configured.
"""

import shlex
from collections.abc import Iterator

from tenv.checks.checkout_state import BuildCache, CheckoutState
from tenv.checks.pytorch_source import SourceTree
from tenv.checks.rules.common import chosen_toolkit, cuda_of
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.size_text import some_of
from tenv.core.versions import Version
from tenv.host.report import Lead

SUBMODULES = "TE611"
STALE = "TE612"
HIPIFIED = "TE617"
OF_CHECKOUT = (SUBMODULES, STALE)
"""The codes about a checkout, which forbid no environment."""

_ONE_FOLDER = Version("1.0")
"""The first release whose build keeps to ``build/``; before, it installs headers in ``torch/lib/tmp_install``."""
_OFF = ("0", "OFF", "NO", "FALSE", "N", "")
_ON = ("1", "ON", "YES", "TRUE", "Y")
_MOST = 4
"""Names in one sentence."""
_TOOLKIT = ("CUDA_TOOLKIT_ROOT_DIR", "CUDAToolkit_ROOT")
_CACHED = {"CC": "CMAKE_C_COMPILER", "CXX": "CMAKE_CXX_COMPILER", "CUDACXX": "CMAKE_CUDA_COMPILER"}
"""Variables that CMake reads once, with the entry in which it keeps them."""
_SWITCHES = ("USE_", "BUILD_", "CMAKE_BUILD_TYPE", "TORCH_CUDA_ARCH_LIST", "BLAS")


def submodules(case: Case) -> Iterator[Finding]:
    """Yield an error for submodules that PyTorch's own check refuses, as `tenv build` does, which fetches none."""
    state = _state(case)
    if state is None or _is_on(case, "USE_SYSTEM_LIBS"):
        return
    root = case.source.root if case.source else None
    if state.broken:
        message = f"lacks {some_of(state.broken, _MOST)}: the build ends at once"
        if state.brings:
            message = (
                f"has no submodules yet ({len(state.broken)}): setup.py would fetch them, and `tenv build` does not"
            )
        git = root is not None and (root / ".git").exists()
        again = "git submodule sync && git submodule update --init --recursive"
        yield Finding(
            code=SUBMODULES,
            severity=Severity.ERROR,
            subject=f"{root}",
            message=message,
            evidence="none of CMakeLists.txt, Makefile, setup.py and LICENSE in them",
            source="check_submodules in setup.py, cmake/PreBuildSteps.cmake",
            fix=again
            if git
            else "clone the repository with `git clone --recursive`: an archive of it has no submodules",
        )
    if state.eigen_missing and (_value(case, "BLAS").lower() == "eigen" or _is_on(case, "USE_EIGEN_SPARSE")):
        yield Finding(
            code=SUBMODULES,
            severity=Severity.ERROR,
            subject=f"{root}",
            message="lacks third_party/eigen, which is no submodule: Eigen is asked for, and nothing fetches it",
            evidence="third_party/eigen_pin.txt names a release, and third_party/eigen is not there",
            source="third_party/eigen_pin.txt, tools/optional_submodules.py",
            fix="python tools/optional_submodules.py checkout_eigen",
        )


def hipified(case: Case) -> Iterator[Finding]:
    """Yield a note for sources that are converted for ROCm, whichever target is asked for."""
    state = _state(case)
    if state is None or state.hipified is None or case.source is None:
        return
    found = state.hipified
    counts = f": {len(found.changed)} files are changed in place, {len(found.new)} are new" if found.noted else ""
    if found.back:
        counts += f", {found.back} were taken back or edited since"
    half = ", and the conversion did not come to its end" if found.noted and not found.whole else ""
    yield Finding(
        code=HIPIFIED,
        severity=Severity.NOTE,
        subject=f"{case.source.root}",
        message=f"is hipified{counts}{half}",
        evidence=found.evidence,
        source="tools/amd_build/build_amd.py of github.com/pytorch/pytorch",
        fix=f"undo: cd {shlex.quote(str(case.source.root))} && {found.undo}" if found.noted else f"undo: {found.undo}",
    )


def stale_build(case: Case) -> Iterator[Finding]:
    """Yield an error for a build folder that was configured with something else, a warning for other switches.

    A build of another release is an error before 1.0, which takes its headers for its own, and else a warning.
    """
    state = _state(case)
    if case.source and state and (built := Version.find(state.built)):
        yield from _of_other_release(case.source, state.built, built)
    cache = state.cache if state else None
    if cache is None:
        return
    stale = list(_stale(case, cache))
    if stale:
        yield _finding(case, cache, Severity.ERROR, stale, "and CMake keeps to that: the build fails or is another one")
    elif switches := list(_switches(case, cache)):
        then = "and a value in the cache wins over the environment here (cmake/EnvVarForwarding.cmake)"
        yield _finding(case, cache, Severity.WARNING, switches, then)


def _of_other_release(source: SourceTree, text: str, built: Version) -> Iterator[Finding]:
    """Yield a finding if the version that was built here last has another number than the checkout."""
    if built.major_minor == source.release.major_minor:
        return
    breaks = source.release < _ONE_FOLDER
    then = "whose headers this build takes for its own" if breaks else "and a build goes on from what it finds"
    folder = "" if breaks else f"rm -rf {source.root}/build, or "
    yield Finding(
        code=STALE,
        severity=Severity.ERROR if breaks else Severity.WARNING,
        subject=f"{source.root}",
        message=f"holds what PyTorch {text} built, {then}: the build {'fails' if breaks else 'may mix both'}",
        evidence=f"torch/version.py: {text}; the checkout: {source.version.value}",
        source="github.com/pytorch/pytorch/issues/3696; CONTRIBUTING.md of PyTorch: python setup.py clean",
        fix=f"{folder}`python setup.py clean` or `git clean -xdf` in the checkout",
    )


def _stale(case: Case, cache: BuildCache) -> Iterator[str]:
    """Yield the configured values of a build folder that are gone or differ from the target's."""
    if cache.moved:
        yield f"was made for {cache.moved}"
    for name in cache.gone[:_MOST]:
        yield f"names {name}={cache.value(name)}, which is gone"
    cached, cuda = cache.value("USE_CUDA").upper(), cuda_of(case)
    if cached in _ON and (cuda is None or _value(case, "USE_CUDA").upper() in _OFF[:-1]):
        yield f"has USE_CUDA={cached}, and the target is one without CUDA"
    if cached and cached in _OFF and cuda is not None and _value(case, "USE_CUDA").upper() not in _OFF[:-1]:
        yield f"has USE_CUDA={cached}, and the target is one with CUDA {cuda}"
    reported = {*cache.gone}
    for variable, name in _CACHED.items():
        wanted, kept = (case.activated or {}).get(variable, ""), cache.value(name)
        if wanted and kept.startswith("/") and kept != wanted and name not in reported:
            yield f"has {name}={kept}, where activation sets {variable}={wanted}"
    folder = _toolkit(case)
    for name in _TOOLKIT:
        kept = cache.value(name).rstrip("/")
        if folder and kept.startswith("/") and name not in reported and kept not in folder:
            yield f"has {name}={kept}, where the toolkit is {folder[0]}"
            break


def _toolkit(case: Case) -> tuple[str, ...]:
    """Return the folders of the target's toolkit: its environment's, else the one that it uses of the host."""
    if home := (case.activated or {}).get("CUDA_HOME", ""):
        return (home,)
    choice = chosen_toolkit(case)
    if choice is None or choice.taken is None:
        return ()
    taken = choice.taken
    links = ("/usr/local/cuda",) if taken.led_by(Lead.DEFAULT_FOLDER, Lead.ALTERNATIVE) else ()
    return tuple(filter(None, (taken.path, taken.home, *links)))


def _switches(case: Case, cache: BuildCache) -> Iterator[str]:
    """Yield the switches that are cached with another value than activation sets, where the cached one wins."""
    source = case.source
    if source is None or source.root is None or not (source.root / "cmake/EnvVarForwarding.cmake").is_file():
        return
    names = {*case.manifest.environment, *(case.activated or {})}
    for name in sorted(name for name in names if name.startswith(_SWITCHES)):
        wanted, kept = _value(case, name), cache.value(name)
        if wanted and kept and _plain(wanted) != _plain(kept):
            yield f"has {name}={kept}, where activation sets {wanted}"


def _plain(value: str) -> str:
    upper = value.upper()
    return "ON" if upper in _ON else "OFF" if upper in _OFF else value


def _state(case: Case) -> CheckoutState | None:
    return case.source.state if case.source else None


def _value(case: Case, name: str) -> str:
    """Return the value that activation sets a variable to; an empty string if it sets none."""
    request = case.manifest.environment.get(name)
    return (case.activated or {}).get(name) or (request.text if request and request.text else "")


def _is_on(case: Case, name: str) -> bool:
    return _value(case, name).upper() in _ON


def _finding(case: Case, cache: BuildCache, severity: Severity, found: list[str], then: str) -> Finding:
    root = case.source.root if case.source else None
    return Finding(
        code=STALE,
        severity=severity,
        subject=f"{root}/build",
        message=f"is of another build: it {'; it '.join(found[:_MOST])}, {then}",
        evidence=f"{cache.file}: {len(cache.entries)} entries",
        source="cmake.org: a cached value is kept until it is removed; cmake/EnvVarForwarding.cmake",
        fix=f"rm -rf {root}/build",
    )
