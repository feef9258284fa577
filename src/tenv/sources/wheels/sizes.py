"""The sizes of wheels, from their servers."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tenv.core.errors import NetworkError
from tenv.core.http import Http, Unanswered
from tenv.core.names import file_at
from tenv.core.progress import Progress
from tenv.core.untrusted import whole_number

__all__ = ["ask_sizes"]

_CONNECTIONS = 8


def ask_sizes(http: Http, urls: Iterable[str], progress: Progress) -> dict[str, int]:
    """Return the sizes of files by URL, without those that the server does not report.

    Raises:
        NetworkError: A server does not respond. An error, since a lock must not depend on chance.
    """

    def ask(url: str) -> tuple[str, int]:
        local = urlsplit(url).scheme == "file"
        size = Path(unquote(urlsplit(url).path)).stat().st_size if local else _ask(http, url)
        progress.advance()
        return url, size

    pool = ThreadPoolExecutor(_CONNECTIONS)
    try:
        return {url: size for url, size in pool.map(ask, urls) if size}
    finally:
        pool.shutdown(cancel_futures=True)


def _ask(http: Http, url: str) -> int:
    """Return the size of a file; 0 if its server does not report it."""
    try:
        with http.head(url) as answer:
            return whole_number(answer.headers.get("Content-Length", "")) or 0 if answer.ok else 0
    except Unanswered as error:
        raise NetworkError(
            f"can't read the size of {file_at(url)}: {error}", hint="run the same command again"
        ) from error
