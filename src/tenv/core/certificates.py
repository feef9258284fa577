"""Certificate authorities: one setting for wheels, archives and conda channels.

uv and requests verify servers with Mozilla's list, rattler with the operating system's, and each reads its own
settings. This module reads the user's setting once and passes it to requests, uv and rattler. The first of these
counts:

1. ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, which OpenSSL, uv and rattler read, instead of the default authorities;
2. ``REQUESTS_CA_BUNDLE``, then ``CURL_CA_BUNDLE``, likewise;
3. uv's ``UV_SYSTEM_CERTS`` or ``UV_NATIVE_TLS``, or ``system-certs`` in its ``uv.toml``: the operating system's;
4. pip's ``cert``, in addition to the default authorities, since pip uses it only for its own index.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tenv.core.dataclass import dataclass
from tenv.core.errors import CertificateError

if TYPE_CHECKING:
    import ssl

_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_REFUSED = re.compile(
    r"(?:certificate verify failed|invalid peer certificate): (?P<reason>.+?)\.?"
    r"(?: \(_ssl\.c:\d+\).*| (?:cause|Caused by|hint): .*)?$"
)
_UNKNOWN = re.compile(r"UnknownIssuer|unable to get (local )?issuer|self[- ]signed", re.IGNORECASE)
_ADDRESS = re.compile(r"https://[^\s`'\"()<>]+")


@dataclass(frozen=True, slots=True)
class Authorities:
    """The trusted certificate authorities."""

    setting: str = ""
    """The setting that names them; empty for the defaults of each library."""
    files: tuple[Path, ...] = ()
    """Files of certificates in PEM form."""
    folders: tuple[Path, ...] = ()
    """Folders of such files."""
    system: bool = False
    """Whether to use those of the operating system."""
    beside: bool = False
    """Whether the default ones count as well."""
    client: Path | None = None
    """A client certificate with its key (uv's ``SSL_CLIENT_CERT``)."""

    def context(self) -> "ssl.SSLContext":
        """Return the SSL context for Python's own connections.

        An unreadable file adds nothing: the connection then fails, and `refusal` reports why.
        """
        import ssl  # late: most commands make no connection

        if self.system:
            import truststore  # late: only for users who set it

            made: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        else:
            made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            for file in self._all_files():
                with contextlib.suppress(OSError):  # ssl.SSLError is a subclass: the file has no certificate
                    made.load_verify_locations(file)
        if self.client is not None:
            with contextlib.suppress(OSError):  # uv skips it, too
                made.load_cert_chain(self.client)
        return made

    def _all_files(self) -> Iterator[Path]:
        if self.beside or not (self.files or self.folders):
            import certifi  # late: most commands make no connection

            yield Path(certifi.where())
        yield from self.files
        for folder in self.folders:
            with contextlib.suppress(OSError):
                yield from sorted(path for path in folder.iterdir() if path.is_file())

    def variables(self, folder: Path) -> dict[str, str]:
        """Return the environment variables that name them to uv and rattler.

        Args:
            folder: Where to write a file that these variables name.
        """
        if self.beside:
            bundle = folder / "authorities.pem"
            bundle.write_bytes(b"\n".join(_read(file) for file in self._all_files()))
            return {"SSL_CERT_FILE": str(bundle)}
        found = {}
        if self.files:
            found["SSL_CERT_FILE"] = str(self.files[0])
        if self.folders:
            found["SSL_CERT_DIR"] = os.pathsep.join(map(str, self.folders))
        return found

    def git_variables(self, folder: Path) -> dict[str, str]:
        """Return the environment variables that name them to git, which knows the operating system's by itself.

        Args:
            folder: Where to write a file that these variables name: git takes one file.
        """
        if not (self.files or self.folders):
            return {}
        bundle = folder / "authorities.pem"
        bundle.write_bytes(b"\n".join(_read(file) for file in self._all_files()))
        return {"GIT_SSL_CAINFO": str(bundle)}

    def refusal(self, said: str, url: str = "") -> CertificateError | None:
        """Return the error about a certificate that OpenSSL or rustls rejected; None for other messages.

        Args:
            said: The library's message.
            url: The requested address; if empty, the first one in the message.
        """
        match = _REFUSED.search(" ".join(said.split()))  # uv wraps its lines at the width of the terminal
        if match is None:
            return None
        address = urlsplit(url or (found[0] if (found := _ADDRESS.search(said)) else ""))
        host = f"https://{address.netloc.rpartition('@')[2]}" if address.netloc else "the server"
        if not _UNKNOWN.search(match["reason"]):
            hint = "check the clock of this machine, then ask the server's administrator"
            return CertificateError(f"the certificate of {host} is not valid: {match['reason']}", hint=hint)
        if not self.setting:
            return CertificateError(
                f"the certificate of {host} is not signed by a trusted authority",
                hint="for your organization's own authority, set SSL_CERT_FILE=/path/to/authority.pem",
            )
        named = (*self.files, *self.folders)
        if named and not any(path.exists() for path in named):
            return self.nothing_found()
        listed = ", ".join(map(str, named)) or "those of the operating system"
        return CertificateError(
            f"the certificate of {host} is not signed by an authority in {self.setting}: {listed}",
            hint=f"add that authority's certificate in PEM form to {self.setting}",
        )

    def nothing_found(self) -> CertificateError:
        """Return the error about a setting that names no certificate."""
        found = [
            f"{path}, which {'has no certificate' if path.exists() else 'does not exist'}"
            for path in (*self.files, *self.folders)
        ]
        return CertificateError(
            f"{self.setting} names {' and '.join(found)}: no server can be verified",
            hint=f"set {self.setting} to a file of certificates in PEM form",
        )


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def find_authorities(environment: Mapping[str, str], *, system: str = "", pip_cert: str = "") -> Authorities:
    """Return the authorities in the user's settings.

    Args:
        environment: The environment of this process.
        system: The uv setting that selects the operating system's authorities; empty if none does.
        pip_cert: The value of pip's ``cert``; empty if it does not count.
    """
    client = next(iter(_paths(environment.get("SSL_CLIENT_CERT", ""))), None)
    files, folders = _paths(environment.get("SSL_CERT_FILE", "")), environment.get("SSL_CERT_DIR", "")
    if files or folders:
        setting = " and ".join(name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if environment.get(name))
        return Authorities(setting, files, _paths(*folders.split(os.pathsep)), client=client)
    for name in _BUNDLES:
        if environment.get(name):
            return _bundle(name, environment[name], client=client)
    if system:
        return Authorities(system, system=True, client=client)
    if pip_cert:
        return _bundle("pip's cert", pip_cert, client=client, beside=True)
    return Authorities(client=client)


def _paths(*names: str) -> tuple[Path, ...]:
    """Return absolute paths: uv runs in another folder."""
    return tuple(Path(os.path.expanduser(name)).absolute() for name in names if name)  # noqa: PTH111 (any user)


def _bundle(setting: str, name: str, *, client: Path | None, beside: bool = False) -> Authorities:
    paths = _paths(name)
    files, folders = ((), paths) if paths[0].is_dir() else (paths, ())
    return Authorities(setting, files, folders, beside=beside, client=client)
