"""Convert errors of rattler and of the disk to tenv's errors.

rattler's errors have no common base below Exception, so that callers catch that.
"""

import re

from tenv.core.certificates import Authorities
from tenv.core.errors import CertificateError, NetworkError, StorageError
from tenv.core.http import Http, Unanswered
from tenv.core.http_settings import HttpSettings, Patience

_UNSENT = re.compile(r"error sending request for url \((https://[^\s()]+)\)")


def one_line(error: Exception) -> str:
    """Return an error of rattler, which has a line for each cause, as one line.

    A cause that an earlier line ends in is left out: rattler repeats the causes of some errors, paths and all.
    """
    found: list[str] = []
    for line in str(error).splitlines():
        text = line.removeprefix("Caused by: ").strip().rstrip(".")
        if not any(text in earlier for earlier in found):
            found.append(text)
    return ": ".join(found) or type(error).__name__


def storage_error(error: OSError, what: str) -> StorageError:
    """Return the error about a full or unwritable disk."""
    where = f" ({error.filename})" if error.filename else ""
    return StorageError(f"{what}: {error.strerror or error}{where}", hint="free some space or choose another folder")


def refused_certificate(output: str, authorities: Authorities) -> CertificateError | None:
    """Return the error about a certificate that rattler rejected; None for other errors."""
    fault = connection_fault(output, authorities)
    return fault if isinstance(fault, CertificateError) else None


def unsent_server(output: str) -> str:
    """Return the scheme and the host of a request of HTTPS that rattler could not send; empty for other errors."""
    match = _UNSENT.search(output)
    return "/".join(match[1].split("/")[:3]) if match else ""


def connection_fault(output: str, authorities: Authorities) -> CertificateError | NetworkError | None:
    """Return the reason why a request could not be sent; None for other errors.

    rattler reports the address but not the cause, so the address is requested again.
    """
    if refusal := authorities.refusal(output):
        return refusal
    if match := _UNSENT.search(output):
        try:
            Http(HttpSettings(authorities, Patience(attempts=1))).head(match[1])
        except (CertificateError, NetworkError) as error:
            return error
        except Unanswered as error:
            return NetworkError(f"{match[1]}: {error}")
    return None
