"""The releases of a package on the indexes in use, read from their pages (PEP 503, PEP 691)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import NetworkError
from tenv.core.http import Interrupted, Unanswered
from tenv.core.names import WheelFile, normalize
from tenv.core.threads import each
from tenv.sources.wheels.connections import bare_url
from tenv.sources.wheels.index_requests import indexes_in_use
from tenv.sources.wheels.index_settings import index_rows
from tenv.sources.wheels.uv import Uv
from tenv.targets.manifest import Manifest
from tenv.targets.wheel_origin import FLAT

_JSON = "application/vnd.pypi.simple.v1+json"
_NO_PAGE = (401, 403, 404)


@dataclass(frozen=True, slots=True)
class PublishedWheel:
    """A wheel on a page of an index."""

    file: WheelFile
    """Its name."""
    pythons: str
    """Its `requires-python`; empty for none."""
    index: str
    """The address of the index, without a login."""


def wheels_by_name(uv: Uv, manifest: Manifest | None, names: Sequence[str]) -> dict[str, list[PublishedWheel]]:
    """Return the wheels of packages on every index in use, without those that were withdrawn; none without a network.

    Args:
        uv: uv with the user's settings.
        manifest: The manifest whose indexes come before the user's; None for the latter alone.
        names: The packages.

    Raises:
        NetworkError: An index does not respond.
    """
    if not names or uv.offline or uv.environment.get("UV_NO_INDEX"):
        return {name: [] for name in names}
    shared = indexes_in_use(manifest, uv.environment, uv.users) if manifest else {}
    rows = index_rows({**uv.environment, **shared}, uv.configuration)
    named = manifest.indexes if manifest else ()
    own = [uv.users.address(index) for index in named if not uv.users.is_flat(index)]
    urls = [*own, *(str(row["url"]) for row in rows if row.get("format") != FLAT)]
    if not any(row.get("default") for row in rows):  # then uv's own default is in use
        urls += uv.index_urls(names[0], "3.12")[:1]
    pages = list(dict.fromkeys(url.rstrip("/") for url in urls if url.startswith("http")))
    found = each(lambda name: [row for url in pages for row in _read(uv, url, normalize(name))], names)
    return dict(zip(names, found, strict=True))


def _read(uv: Uv, url: str, name: str) -> list[PublishedWheel]:
    try:
        with uv.http.get(f"{url}/{name}/", {"Accept": f"{_JSON}, text/html;q=0.5"}) as answer:
            if answer.status in _NO_PAGE:
                return []
            fault = "" if answer.ok else f"it answers with status {answer.status}"
            text = answer.content().decode("utf-8", "replace")
            is_json = "json" in answer.headers.get("Content-Type", "")
    except (Unanswered, Interrupted) as error:
        fault = str(error)
    if fault:
        raise NetworkError(f"can't ask {bare_url(url)} for {name}: {fault}", hint="run the same command again")
    rows = _of_json(text) if is_json else _of_html(text)
    return [PublishedWheel(file, pythons, bare_url(url)) for text, pythons in rows if (file := WheelFile.parse(text))]


def _of_json(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the `requires-python` of each file of a page."""
    try:
        data = json.loads(text)
    except ValueError:
        return
    files: Any = data.get("files") if isinstance(data, dict) else ()
    for row in files if isinstance(files, list) else ():
        if isinstance(row, Mapping) and not row.get("yanked"):
            yield str(row.get("filename") or ""), str(row.get("requires-python") or "")


def _of_html(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the `requires-python` of each file of a page."""
    page = _Page()
    page.feed(text)
    yield from page.rows


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[str, str]] = []
        self._pythons: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._pythons = (given.get("data-requires-python") or "") if tag == "a" and "data-yanked" not in given else None

    def handle_data(self, data: str) -> None:
        if self._pythons is not None and data.strip():
            self.rows.append((data.strip(), self._pythons))

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._pythons = None
