"""A certificate authority of a test's own, as organizations have them: servers on 127.0.0.1 that it has signed."""

import ssl
from pathlib import Path

import trustme

__all__ = ["Authority"]


class Authority:
    """A certificate authority that no list has.

    Attributes:
        file: Its certificate.
    """

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA(organization_name="An organization")
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "authority.pem"
        self._authority.cert_pem.write_to_path(str(self.file))

    def context(self, *names: str, clients: bool = False) -> ssl.SSLContext:
        """Return what a server needs to be served over TLS.

        Args:
            names: The names of the server; 127.0.0.1 without any.
            clients: Whether clients must show a certificate of this authority, too.
        """
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*(names or ("127.0.0.1", "localhost"))).configure_cert(made)
        if clients:
            self._authority.configure_trust(made)
            made.verify_mode = ssl.CERT_REQUIRED
        return made

    def client(self, folder: Path) -> Path:
        """Write a certificate of a client with its key, and return the file."""
        file = folder / "client.pem"
        self._authority.issue_cert("client.example").private_key_and_cert_chain_pem.write_to_path(str(file))
        return file
