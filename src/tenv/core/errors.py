"""Every error that tenv raises on purpose.

They are in one file so that each has its own code and one exit status, and so that nothing below the command line
calls ``sys.exit``. This module imports nothing from tenv.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, ClassVar


class Exit(IntEnum):
    """The exit statuses. Each has one meaning."""

    DONE = 0
    CHECK = 1
    USAGE = 2
    MANIFEST = 3
    HOST = 4
    SOLUTION = 5
    NETWORK = 6
    LOCK = 7
    ENVIRONMENT = 8
    BUG = 70
    PROGRAM = 126
    INTERRUPTED = 130


class TenvError(Exception):
    """An error that the user can fix.

    Attributes:
        code: A stable kebab-case name, printed as ``error[code]``.
        status: The exit status of a command that ends with this error.
        message: The fault and its place, without a full stop if it is one sentence.
        hint: The next command or edit, or an empty string.
        detail: The full output of an underlying tool for `--verbose`, or an empty string.
        findings: The findings that caused it, as JSON values.
        data: The command's partial results, as JSON values for the envelope.
        step: The step of a long command that failed, or an empty string.
    """

    code: ClassVar[str] = "tenv"
    status: ClassVar[Exit] = Exit.BUG
    findings: Sequence[dict[str, str]] = ()
    data: Any = None
    step: str = ""

    def __init_subclass__(cls, code: str, status: Exit | None = None) -> None:
        """Set the code and the status of a class of errors; without a status, it has its parent's."""
        cls.code = code
        cls.status = cls.status if status is None else status

    def __init__(self, message: str, *, hint: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.detail = detail


class BugError(TenvError, code="bug", status=Exit.BUG):
    """A bug in tenv."""


class UsageError(TenvError, code="usage", status=Exit.USAGE):
    """The command line is invalid."""


class UnknownTargetError(UsageError, code="unknown-target"):
    """No manifest of that name in the project, the configuration folder or the built-in targets."""


class HostReportError(UsageError, code="host-report"):
    """A host report is unreadable, or has another schema."""


class FormatError(UsageError, code="format"):
    """A format of another tool can't hold the target, or tenv does not read the format of a file."""


class FileExistsAlreadyError(UsageError, code="file-exists"):
    """A file to write exists, and overwriting it was not requested."""


class FactsError(TenvError, code="facts", status=Exit.USAGE):
    """A facts file of the user is unusable.

    The status is that of usage, not of the manifest: the user's settings name the file, and no target is at fault.
    """


class ManifestError(TenvError, code="manifest", status=Exit.MANIFEST):
    """A manifest is invalid."""


class HostError(TenvError, code="host", status=Exit.HOST):
    """The host lacks a requirement of the target."""


class UnfitHostError(HostError, code="unfit-host"):
    """The rules found an error, so the target can't be built on this host."""

    def __init__(self, message: str, findings: Sequence[dict[str, str]], *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.findings = findings


class UnbuildableLockError(UnfitHostError, code="lock-unbuildable", status=Exit.LOCK):
    """The lock lacks parts of a build, or mixes releases, so the target can be built on no host."""


class TorchError(HostError, code="torch"):
    """The environment that a toolkit is made for has no torch, or one that no toolkit can be made for."""


class NoTargetError(HostError, code="no-target"):
    """No target supports both this host and the PyTorch revision.

    Attributes:
        data: The targets, each with the reason against it.
    """

    def __init__(self, message: str, data: Any, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.data = data


class NoSolutionError(TenvError, code="no-solution", status=Exit.SOLUTION):
    """No set of packages satisfies the manifest."""


class NetworkError(TenvError, code="network", status=Exit.NETWORK):
    """An index or a mirror did not answer, or its answer is invalid.

    Attributes:
        untouched: Whether the environment is unchanged.
        unanswered: Whether the server gave no answer, so that the next request takes as long and ends like this one.
    """

    untouched = False
    unanswered = False


class CertificateError(NetworkError, code="certificate"):
    """A server's certificate is invalid, or not signed by an authority in the user's settings."""


class HashMismatchError(NetworkError, code="hash-mismatch"):
    """A file does not have the digest in the lock."""


class ArchiveRefusedError(NetworkError, code="archive-refused"):
    """An archive is damaged or malicious; nothing of it is kept."""


class BundleRefusedError(NetworkError, code="bundle-refused"):
    """A bundle is damaged, cut or altered; nothing of it is used."""


class UnsafePackageError(NetworkError, code="unsafe-package"):
    """A package has names outside the prefix or inside files that it does not own."""


class LockMissingError(TenvError, code="lock-missing", status=Exit.LOCK):
    """There is no lock for the target."""


class LockStaleError(TenvError, code="lock-stale", status=Exit.LOCK):
    """The lock does not satisfy its manifest."""


class LockCorruptError(TenvError, code="lock-corrupt", status=Exit.LOCK):
    """The lock is unreadable, or has another schema."""


class LockConflictError(LockCorruptError, code="lock-conflict"):
    """The lock has conflict markers of an unresolved merge."""


class EnvironmentMissingError(TenvError, code="environment-missing", status=Exit.ENVIRONMENT):
    """There is no environment of that target here."""


class EnvironmentBrokenError(TenvError, code="environment-broken", status=Exit.ENVIRONMENT):
    """An environment exists but is not ready."""


class EnvironmentStaleError(TenvError, code="environment-stale", status=Exit.LOCK):
    """An environment does not have the files of its lock, and `--locked` was asked for."""


class EnvironmentBusyError(TenvError, code="environment-busy", status=Exit.ENVIRONMENT):
    """Another process uses the environment, and the wait for it was not requested or timed out."""


class ForeignFolderError(TenvError, code="foreign-folder", status=Exit.ENVIRONMENT):
    """An unmanaged folder exists in the place of an environment."""


class StorageError(TenvError, code="storage", status=Exit.ENVIRONMENT):
    """The disk is full, or a folder is not writable."""


class ProgramError(TenvError, code="program", status=Exit.PROGRAM):
    """A program that `run`, `shell` or `gdb` was to become exists, and the system can't start it.

    The status is that of shells, since these commands end as the programs that they start.
    """


class CancelledError(TenvError, code="cancelled", status=Exit.INTERRUPTED):
    """The user ended the command with Ctrl-C or a signal."""
