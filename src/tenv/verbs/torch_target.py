"""The manifest of a target for extensions of torch: ``tenv init NAME --torch``."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.errors import UsageError
from tenv.core.versions import Version
from tenv.facts.tables import Facts
from tenv.facts.torch_headers import TorchMinor
from tenv.host.installed_torch import InstalledTorch, TorchKind, read_torch, torch_from_label
from tenv.host.interface import Fact, Missing
from tenv.targets.nearest_cuda import HostDriver

if TYPE_CHECKING:
    from tenv.facts.pytorch_build import Companions

NEWEST = "newest"
"""The word for a torch that the command line does not name."""

_INDEX = "https://download.pytorch.org/whl/"
_EXAMPLES = "`--torch 2.14`, `--torch 2.9+cu126`, `--torch cpu` and `--torch .venv` are examples"
_CPU = "cpu"
"""The part of PyTorch's own index without CUDA, and the word for its newest torch."""
_PARTS_OF_RELEASE = 3
_RELEASED = re.compile(r"\d+(\.\d+)*(\+(cu\d+|cpu))?", re.ASCII)
"""The version of a released torch: ``2.9.1``, ``2.9.1+cu126``; a nightly or a build of one's own has other parts."""
_FREE_AUDIO = "2.11"
"""The first torchaudio that requires no torch."""

_TEXT = """\
#:schema ./{schema}
# {purpose} `tenv create {name}` locks and makes it.
description = "Extensions of torch {torch}{label}"
platforms   = ["{platform}"]
python      = "{python}"

[requirements]                          # requirements on the host
{cuda}glibc = "{glibc}"

{index}[pypi-dependencies]
torch       = {request}
{companions}cmake       = ">=3.27,<5"
ninja       = ">=1.11"
numpy       = "*"
pip         = "*"                       # `pip install --no-build-isolation .` compiles an extension
setuptools  = ">=70,<82"                # from 82 on it lacks pkg_resources, which many a setup.py imports
wheel       = "*"
"""

_FOLLOWS = """\
cuda  = "torch"                         # the CUDA release of the locked torch, with the toolkit that its headers need
"""
_PURPOSES = (
    "A toolkit that follows torch: to compile extensions of it.",
    "A torch without CUDA: to compile extensions of it for CPUs.",
)

_NAMED_INDEX = """\
[[index]]                               # {content}
name     = "{name}"
url      = "{url}"
explicit = true

"""
_CONTENTS = ("the wheels for other CUDA releases, and those with CUDA for Windows", "the wheels without CUDA")


@dataclass(frozen=True, slots=True)
class TorchRequest:
    """A torch that a new target asks for."""

    version: str
    """The accepted versions: ``2.14.*``, ``2.14.1``."""
    release: Version
    """One of these versions, for what goes with it."""
    python: str
    """The accepted Pythons."""
    glibc: Version
    """The oldest glibc."""
    label: str = ""
    """The part of PyTorch's own index, ``cu126`` or ``cpu``; empty for the default index."""
    why: str = ""
    """How the version was chosen; empty where the user named it."""


def torch_request(word: str, facts: Facts, platform: str, folder: Path, *, beside: bool = False) -> TorchRequest:
    """Return the torch that a word of the command line means.

    Args:
        word: A version, ``2.9+cu126``, ``2.9+cpu``, ``cpu``, a path to an environment or a wheel, or `NEWEST`.
        facts: The tables.
        platform: The platform of the target.
        folder: The folder that a path is relative to.
        beside: Whether torchvision must go with it.

    Raises:
        UsageError: It means no torch for CUDA or CPUs that has wheels.
    """
    if word in (NEWEST, _CPU):
        return _newest(facts, platform, beside=beside, cpu=word == _CPU)
    if named := torch_from_label(word):
        release, cuda = named
        row = _row(release, facts)
        exact = release.text.count(".") + 1 >= _PARTS_OF_RELEASE
        version = release.text if exact else f"{release.major_minor}.*"
        label = _label(cuda, row, platform, word)
        return TorchRequest(version, release, row.python, row.glibc, label)
    found = read_torch(folder / word)
    if isinstance(found, Missing):
        raise UsageError(f"`{word}` leads to no torch: {found.reason}", hint=_EXAMPLES)
    return _installed(found, facts, platform, word)


def _newest(facts: Facts, platform: str, *, beside: bool, cpu: bool) -> TorchRequest:
    """Return the newest torch that the driver of this machine runs; the newest of all for CPUs, or without a driver."""
    rows, driver = tuple(reversed(facts.torch_headers.minors)), None if cpu else HostDriver.detect()
    if beside:
        rows = tuple(row for row in rows if _with_torchvision(row.torch, facts))
    fitting = [row for row in rows if driver is None or driver.runs((row.cuda.major, row.cuda.minor))]
    if not fitting:
        oldest = rows[-1]
        raise UsageError(
            f"driver {driver and driver.version} runs no CUDA that torch {oldest.torch} or a newer one has",
            hint=f"`--torch {oldest.torch}` writes the target all the same",
        )
    row = fitting[0]
    known = "the newest that this tenv knows"
    runs = known if cpu else f"{known}; there is no driver, and `--torch cpu` takes one without CUDA"
    runs = f"the newest that driver {driver.version} of this machine runs" if driver else runs
    label = _label(_CPU if cpu else "", row, platform, str(row.torch))
    return TorchRequest(f"{row.torch}.*", row.torch, row.python, row.glibc, label, runs)


def _installed(torch: InstalledTorch, facts: Facts, platform: str, word: str) -> TorchRequest:
    """Return the torch of an environment, in the same version and for the same Python."""
    release = torch.release
    if release is None or not isinstance(torch.kind, Fact):
        raise UsageError(f"{torch.place}: the version of torch can't be read", hint=_EXAMPLES)
    if torch.kind.value not in (TorchKind.CUDA, TorchKind.CPU):
        raise UsageError(
            f"{torch.place}: torch {torch.label} is built for {torch.kind.value}, and --torch is for CUDA and CPUs"
        )
    if not _RELEASED.fullmatch(torch.label):
        raise UsageError(
            f"{torch.place}: torch {torch.label} is no release, so no index has it",
            hint=f"`tenv init NAME --torch {release.major_minor}` takes the release",
        )
    row = _row(release, facts)
    cuda = torch.cuda.value.major_minor if isinstance(torch.cuda, Fact) else ""
    cuda = _CPU if torch.kind.value is TorchKind.CPU else cuda
    tag = torch.python.value if isinstance(torch.python, Fact) else ""
    python = f"{tag[2]}.{tag[3:]}.*" if tag[3:].isdigit() else row.python
    text = ".".join(release.text.split(".")[:_PARTS_OF_RELEASE])
    return TorchRequest(text, release, python, row.glibc, _label(cuda, row, platform, word), f"that of {word}")


def _row(release: Version, facts: Facts) -> TorchMinor:
    """Return the facts about a version; the newest known ones for a newer version."""
    rows = facts.torch_headers.minors
    if found := facts.torch_headers.of(release):
        return found
    if release > rows[-1].torch:
        return rows[-1]
    raise UsageError(
        f"the wheels of torch {release} are older than those that tenv knows ({rows[0].torch} to {rows[-1].torch})",
        hint="`tenv facts torch_headers` lists them; `tenv check --torch` knows older ones",
    )


def _label(cuda: str, row: TorchMinor, platform: str, word: str) -> str:
    """Return the part of PyTorch's own index that has the wheels; empty where the default index has them."""
    if cuda == _CPU:
        return cuda
    if cuda and not cuda[0].isdigit():
        raise UsageError(f"`{word}` is a torch for {cuda}, and --torch is for CUDA and CPUs", hint=_EXAMPLES)
    if platform in row.platforms and cuda in ("", row.cuda.major_minor):
        return ""
    return f"cu{(cuda or row.cuda.major_minor).replace('.', '')}"


def manifest_text(request: TorchRequest, facts: Facts, *, name: str, platform: str, schema: str, beside: bool) -> str:
    """Return the manifest of a target for extensions of a torch.

    Args:
        request: The torch.
        facts: The tables.
        name: The target's name.
        platform: Its platform.
        schema: The file of the JSON schema.
        beside: Whether it has torchvision and torchaudio, too.
    """
    index = f"pytorch-{request.label}" if request.label else ""
    cpu = request.label == _CPU
    named = _NAMED_INDEX.format(name=index, url=f"{_INDEX}{request.label}", content=_CONTENTS[cpu]) if index else ""
    companions = ""
    if beside:
        for package, version in _companions(request, facts):
            companions += f"{package.ljust(11)} = {_asked(version, index)}\n"
    return _TEXT.format(
        schema=schema,
        name=name,
        purpose=_PURPOSES[cpu],
        cuda="" if cpu else _FOLLOWS,
        torch=request.version.removesuffix(".*"),
        label=f"+{request.label}" if request.label else "",
        platform=platform,
        python=request.python,
        glibc=request.glibc,
        index=named,
        request=_asked(request.version, index) + (f"   # {request.why}" if request.why else ""),
        companions=companions,
    )


def _asked(version: str, index: str) -> str:
    return f'{{ version = "{version}", index = "{index}" }}' if index else f'"{version}"'


def _companions(request: TorchRequest, facts: Facts) -> list[tuple[str, str]]:
    """Return the versions of torchvision and torchaudio that go with a torch.

    Raises:
        UsageError: No torchvision requires it.
    """
    rows = _with_torchvision(request.release, facts)
    exact = [row for row in rows if request.version == row.torch.text]
    if not rows or (not exact and not request.version.endswith(".*")):
        others = f"; {rows[-1].torch} of the same minor has {rows[-1].torchvision}" if rows else ""
        hint = "take `--companions` away, or name another torch; `tenv facts pytorch_build` lists the pairs"
        raise UsageError(f"torch {request.version} has no torchvision in the facts{others}", hint=hint)
    row = (exact or rows)[-1]
    found = {"torchvision": str(row.torchvision), "torchaudio": str(row.torchaudio)}
    asked = [
        (name, version if exact else f"{Version(version).major_minor}.*") for name, version in found.items() if version
    ]
    return [*asked, ("torchaudio", f">={_FREE_AUDIO}")] if row.torch >= Version(_FREE_AUDIO) else asked


def _with_torchvision(torch: Version, facts: Facts) -> "list[Companions]":
    """Return the releases of a minor version of torch that have a torchvision, oldest first."""
    rows = facts.pytorch_build.companions
    return [row for row in rows if row.torch.major_minor == torch.major_minor and row.torchvision]
