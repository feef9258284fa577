"""NVIDIA's redist manifests, which list the archives of a product; parsed without trust.

    https://developer.download.nvidia.com/compute/PRODUCT/redist/redistrib_LABEL.json

A label has three parts, the version of an archive has four (0.6.0 and 0.6.0.6); some of cuDNN 8.9 have four in both. A
platform has the fields of its archive, or one set of fields for each CUDA major (``cuda12``); one manifest has both.
"""

import json
import re
from collections.abc import Iterator

from tenv.core.dataclass import dataclass
from tenv.core.errors import NetworkError
from tenv.core.names import is_sha256
from tenv.core.toml_reader import Table

NVIDIA_PLATFORMS = {"linux-64": "linux-x86_64", "linux-aarch64": "linux-sbsa", "win-64": "windows-x86_64"}
"""NVIDIA's names of tenv's platforms. NVIDIA's ``linux-aarch64`` means Tegra, for which PyTorch has no builds."""

NVIDIA = "https://developer.download.nvidia.com/compute/"
"""Where NVIDIA serves its archives, which are under its license."""
_PATH = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]*(/[A-Za-z0-9_+-][A-Za-z0-9._+-]*)*")
_CUDA = re.compile(r"cuda(\d{1,3})(\.\d+)?")
_LABEL = re.compile(r"\d+(\.\d+){0,3}")
_NOT_CONTENT = ("release_date", "release_label", "release_product")
_SIZE = re.compile(r"\d{1,15}")


@dataclass(frozen=True, slots=True)
class Product:
    """A product in NVIDIA's redist."""

    name: str
    """Its name in the redist."""
    components: tuple[str, ...] = ()
    """The components that a request by its name means; empty for the one that it has."""

    @property
    def base(self) -> str:
        """The base URL of the paths in its manifests."""
        return f"{NVIDIA}{self.name}/redist/"

    def manifest_url(self, label: str) -> str:
        """Return the URL of the manifest of a release."""
        return f"{self.base}redistrib_{label}.json"


_PRODUCTS = {
    "cusparselt": Product("cusparselt", ("libcusparse_lt",)),
    "cudnn": Product("cudnn", ("cudnn",)),
    "cuda-compat": Product("nvidia-driver", ("cuda_compat",)),
}


def product(name: str) -> Product:
    """Return the product for a name in a manifest; an unknown name is the name of a product in the redist."""
    return _PRODUCTS.get(name, Product(name))


def labels(version: str) -> tuple[str, ...]:
    """Return the candidate labels of a version's manifest, the likeliest first."""
    parts = version.split(".")
    return tuple(dict.fromkeys((".".join(parts[:3]), version)))


@dataclass(frozen=True, slots=True)
class RedistFile:
    """One archive of a redist manifest."""

    component: str
    """The component."""
    version: str
    """Its version."""
    cuda_major: int | None
    """Its CUDA major; None if it serves all."""
    path: str
    """Its path below the product's base URL."""
    sha256: str
    """Its digest in hex."""
    size: int | None
    """Its size in bytes; None if unknown."""


@dataclass(frozen=True, slots=True)
class RedistManifest:
    """A redist manifest."""

    table: Table
    """Its content."""
    label: str
    """The release."""

    def components(self) -> list[str]:
        """Return the names of its components."""
        return [name for name, value in self.table.data.items() if name not in _NOT_CONTENT and isinstance(value, dict)]

    def files(self, component: str, platform: str) -> tuple[RedistFile, ...]:
        """Return the archives of a component for one of NVIDIA's platforms.

        Raises:
            NetworkError: A value of the component is not valid.
        """
        if component not in self.table.data:
            return ()
        part = self.table.table(component)
        if platform not in part.data:
            return ()
        version = part.required_text("version")
        if not re.fullmatch(r"\d+(\.\d+){0,5}", version):
            raise part.fail("version", f"`{version[:40]}` is not a version")
        return tuple(self._files(component, version, part.table(platform)))

    def _files(self, component: str, version: str, row: Table) -> Iterator[RedistFile]:
        for key in row.data:
            if match := _CUDA.fullmatch(key):
                yield _read_file(component, version, int(match[1]), row.table(key))
        if "relative_path" in row.data or not any(_CUDA.fullmatch(key) for key in row.data):
            yield _read_file(component, version, None, row)


def parse_manifest(raw: bytes, url: str) -> RedistManifest:
    """Read a redist manifest.

    Args:
        raw: Its bytes.
        url: Its URL, for messages.

    Raises:
        NetworkError: The bytes are not a redist manifest, but a login page or a partial file, for example.
    """
    start = raw[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<")):
        hint = "a proxy may have sent a login page: open the address in a browser"
        raise NetworkError(f"{url}: is a web page, not a redist manifest", hint=hint)
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise NetworkError(f"{url}: is not a redist manifest: not JSON: {reason}") from error
    if not isinstance(data, dict):
        raise NetworkError(f"{url}: is not a redist manifest: not a JSON object")
    table = Table(data, file=url, error=NetworkError)
    label = table.text("release_label")
    if label and not _LABEL.fullmatch(label):
        raise table.fail("release_label", f"`{label[:40]}` is not a version")
    manifest = RedistManifest(table, label)
    if not manifest.components():
        raise NetworkError(f"{url}: is not a redist manifest: it has no component")
    return manifest


def _read_file(component: str, version: str, cuda_major: int | None, row: Table) -> RedistFile:
    path = row.required_text("relative_path")
    if not _PATH.fullmatch(path):
        raise row.fail("relative_path", f"`{path[:80]}` is not a path below the product's base URL")
    sha256 = row.required_text("sha256").lower()
    if not is_sha256(sha256):
        raise row.fail("sha256", "is not 64 hex digits")
    return RedistFile(component, version, cuda_major, path, sha256, _size(row))


def _size(row: Table) -> int | None:
    """Return a size, which is a string in NVIDIA's manifests."""
    value = row.data.get("size")
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and value.isascii() and _SIZE.fullmatch(value):
        return int(value)
    raise row.fail("size", "is not a number of bytes")
