"""The files of a bundle as a software bill of materials: CycloneDX 1.6 as JSON, by cyclonedx-python-lib."""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv import __version__
from tenv.core.dataclass import dataclass
from tenv.core.errors import FormatError
from tenv.core.files import read_regular
from tenv.core.own_distribution import extra_hint
from tenv.core.untrusted import printable
from tenv.install.bundle_file import Head
from tenv.locks.lock import Lock
from tenv.sources.archives.store import Store
from tenv.sources.interface import CarriedFile
from tenv.sources.wheels.managed_pythons import KEY as PYTHON
from tenv.sources.wheels.managed_pythons import PythonArchive
from tenv.sources.wheels.metadata import from_file
from tenv.sources.wheels.sdist_builds import pinned_wheels

if TYPE_CHECKING:
    from cyclonedx.model.component import Component

_MOST = 120
"""The letters of a licence that count; some packages state its whole text."""
_CLASSIFIER = "License :: "


@dataclass(frozen=True, slots=True)
class _Stated:
    """The package of a file."""

    kind: str
    """The type of a package URL: ``pypi``, ``conda`` or ``generic``."""
    name: str
    """Its name."""
    version: str
    """Its version; empty for none."""
    licences: tuple[str, ...] = ()
    """Its licences as it states them."""
    qualifiers: Mapping[str, str] = field(default_factory=dict)
    """The qualifiers of its package URL."""


def require_library() -> None:
    """Raise FormatError where cyclonedx-python-lib is not installed."""
    try:
        import cyclonedx  # noqa: F401  # late: an extra
    except ImportError as error:
        hint = extra_hint("sbom", "cyclonedx-python-lib")
        raise FormatError(
            "--sbom needs the extra `sbom`: cyclonedx-python-lib is not installed in tenv's environment", hint=hint
        ) from error


def is_bill(path: Path) -> bool:
    """Return whether a file is a bill of materials in CycloneDX's JSON."""
    try:
        data = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and data.get("bomFormat") == "CycloneDX"


def sbom(head: Head, lock: Lock, store: Store) -> str:
    """Return the bill of materials of a bundle; the same bundle has the same one.

    Licences are those that wheels and conda packages state. Archives name a licence file, as a property.
    """
    from cyclonedx.model.bom import Bom, BomMetaData  # late: an extra
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6

    packages = _packages(head, lock)
    parts = [_component(row, packages[row.sha256], store) for row in head.files]
    whole = Component(name=head.target, type=ComponentType.APPLICATION, bom_ref=f"tenv:{head.target}")
    tool = Component(name="tenv", version=__version__, type=ComponentType.APPLICATION, bom_ref="tenv")
    metadata = BomMetaData(component=whole, tools=_tools(tool))
    metadata.timestamp = None  # type: ignore[assignment]  # the library writes none then, so that the bytes stay
    made = Bom(components=parts, metadata=metadata, serial_number=uuid.uuid5(uuid.NAMESPACE_OID, _identity(head)))
    made.register_dependency(whole, parts)
    return str(JsonV1Dot6(made).output_as_string(indent=2)) + "\n"


def _tools(tool: "Component") -> Any:
    from cyclonedx.model.tool import ToolRepository

    return ToolRepository(components=[tool])


def _identity(head: Head) -> str:
    parts = (head.target, head.lock.sha256, *head.platforms, head.python)
    named = () if head.features is None else (f"with={','.join(head.features)}",)
    return " ".join((*parts, *named, *(row.sha256 for row in head.files if row.kind == PYTHON)))


def _packages(head: Head, lock: Lock) -> dict[str, _Stated]:
    """Return the package of each file by sha256."""
    found: dict[str, _Stated] = {}
    for platform in head.platforms:
        for wheel in lock.wheels.get(platform, ()):
            found[wheel.sha256] = _Stated("pypi", wheel.name, wheel.version)
        for tree in lock.trees.get(platform, ()):
            found[tree.digest] = _Stated("pypi", tree.name, tree.version)
            for wheel in pinned_wheels(tree):
                found.setdefault(wheel.sha256, _Stated("pypi", wheel.name, wheel.version))
        found |= _conda(lock, platform)
        for archive in lock.archives.get(platform, ()):
            found[archive.sha256] = _Stated("generic", archive.name, archive.version, (), {"download_url": archive.url})
    for row in head.files:
        if row.kind == PYTHON and (python := PythonArchive.parse(row.name)):
            found[row.sha256] = _Stated("generic", "cpython", python.version, (), {"build": python.build})
    return found


def _conda(lock: Lock, platform: str) -> Iterator[tuple[str, _Stated]]:
    if not lock.conda.get(platform):
        return
    from tenv.rattler_api.lockfile import read_records  # late: loads rattler

    licences = {raw.url: raw.license for raw in read_records(lock.text, lock.target, platform)}
    for row in lock.conda[platform]:
        given = licences.get(row.url)
        qualifiers = {"build": row.build, "channel": row.channel, "subdir": row.subdir}
        yield row.sha256, _Stated("conda", row.name, row.version, (given,) if given else (), qualifiers)


def _component(row: CarriedFile, package: _Stated, store: Store) -> "Component":
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    licences = package.licences or (_of_wheel(store.file(row.sha256)) if package.kind == "pypi" else ())
    qualifiers = {**package.qualifiers, **({"file_name": row.name} if package.kind == "pypi" else {})}
    return Component(
        name=package.name,
        version=package.version or None,
        type=ComponentType.LIBRARY,
        bom_ref=f"sha256:{row.sha256}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=row.sha256)],
        licenses=_licences(licences),
        purl=PackageURL(package.kind, None, package.name, package.version or None, qualifiers),
        properties=[
            Property(name="tenv:file", value=row.name),
            Property(name="tenv:size", value=str(row.size)),
            *(Property(name="tenv:platform", value=platform) for platform in row.platforms),
        ],
    )


def _licences(texts: Sequence[str]) -> list[Any]:
    """Return licences for a component, which has one expression or any number of licences."""
    from cyclonedx.contrib.license.factories import LicenseFactory
    from cyclonedx.model.license import LicenseExpression

    made = [LicenseFactory().make_from_string(text) for text in texts]
    expressions = [one for one in made if isinstance(one, LicenseExpression)]
    return expressions[:1] or made


def _of_wheel(path: Path) -> tuple[str, ...]:
    """Return the licences that a wheel states: its expression, else its field, else its classifiers."""
    from packaging.metadata import parse_email  # late: 34 ms

    raw, _ = parse_email(from_file(path.absolute().as_uri()) or b"")
    expression, field = raw.get("license_expression", ""), str(raw.get("license", ""))
    texts = [expression or field.strip().partition("\n")[0].strip()]
    if not texts[0] or texts[0].upper() == "UNKNOWN" or len(texts[0]) > _MOST:
        named = (word for word in raw.get("classifiers", ()) if word.startswith(_CLASSIFIER))
        texts = [word.rpartition(" :: ")[2] for word in named]
    return tuple(dict.fromkeys(printable(text)[:_MOST] for text in texts if text))
