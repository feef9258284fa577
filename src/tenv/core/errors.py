"""Every error that tenv raises on purpose.

They stand in one file so that each has its own code, one exit status and one voice, and so that
nothing below the command line ever calls ``sys.exit``. This module imports nothing of tenv.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, ClassVar

__all__ = [
    "ArchiveRefusedError",
    "BugError",
    "CancelledError",
    "EnvironmentBrokenError",
    "EnvironmentBusyError",
    "EnvironmentMissingError",
    "EnvironmentStaleError",
    "Exit",
    "FactsError",
    "FileExistsAlreadyError",
    "ForeignFolderError",
    "FormatError",
    "HashMismatchError",
    "HostError",
    "HostReportError",
    "LockConflictError",
    "LockCorruptError",
    "LockMissingError",
    "LockNewerError",
    "LockStaleError",
    "ManifestError",
    "NetworkError",
    "NoSolutionError",
    "NoTargetError",
    "StorageError",
    "TenvError",
    "UnfitHostError",
    "UnknownTargetError",
    "UnsafePackageError",
    "UsageError",
]


class Exit(IntEnum):
    """The exit statuses; each has one meaning."""

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
    INTERRUPTED = 130


class TenvError(Exception):
    """An error that a person can do something about.

    Attributes:
        code: A stable kebab-case name, printed as ``error[code]``.
        status: The exit status of a command that ends with this error.
        message: What is wrong and where, without a full stop when it is one sentence.
        hint: The next command or edit, or an empty string.
        detail: What a tool below said, in full, for those who ask for it; empty mostly.
        findings: The findings that it stands for, as plain values.
        data: What the command had found out by then, as plain values for the JSON envelope.
        step: The step of a long command in which it came up, or an empty string.
    """

    code: ClassVar[str] = "tenv"
    status: ClassVar[Exit] = Exit.BUG
    findings: Sequence[dict[str, str]] = ()
    data: Any = None
    step: str = ""

    def __init__(self, message: str, *, hint: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.detail = detail


class BugError(TenvError):
    """Something that tenv itself did wrong."""

    code = "bug"
    status = Exit.BUG


class UsageError(TenvError):
    """The words of the command line do not fit together."""

    code = "usage"
    status = Exit.USAGE


class UnknownTargetError(UsageError):
    """No manifest of that name in the project, the user's folder or the built-in targets."""

    code = "unknown-target"


class HostReportError(UsageError):
    """A host report can't be read, or a newer tenv wrote it."""

    code = "host-report"


class FormatError(UsageError):
    """A format of another tool can't hold what it would have to, or a file is of none that tenv reads."""

    code = "format"


class FileExistsAlreadyError(UsageError):
    """A file that would be written is there, and overwriting it was not asked for."""

    code = "file-exists"


class FactsError(TenvError):
    """A file of facts that the user added can't be used.

    The status is that of usage, not of the manifest: the file is named by the caller's settings, and no target is at
    fault.
    """

    code = "facts"
    status = Exit.USAGE


class ManifestError(TenvError):
    """A manifest says something that the format does not allow."""

    code = "manifest"
    status = Exit.MANIFEST


class HostError(TenvError):
    """The host lacks what the target asks of it."""

    code = "host"
    status = Exit.HOST


class UnfitHostError(HostError):
    """The rules found an error that keeps the target from being built on this host."""

    code = "unfit-host"

    def __init__(self, message: str, findings: Sequence[dict[str, str]], *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.findings = findings


class NoTargetError(HostError):
    """No target is both for this host and for what shall be built.

    Attributes:
        data: The targets with the reason against each.
    """

    code = "no-target"

    def __init__(self, message: str, data: Any, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.data = data


class NoSolutionError(TenvError):
    """No set of packages satisfies the manifest."""

    code = "no-solution"
    status = Exit.SOLUTION


class NetworkError(TenvError):
    """An index or a mirror did not answer, or not with what was asked.

    Attributes:
        untouched: Whether the environment that was being changed is still as it was.
    """

    code = "network"
    status = Exit.NETWORK
    untouched = False


class CertificateError(NetworkError):
    """A server's certificate is not valid, or not signed by an authority that the user's settings name."""

    code = "certificate"


class HashMismatchError(NetworkError):
    """A file's bytes are not those that the lock names."""

    code = "hash-mismatch"


class ArchiveRefusedError(NetworkError):
    """An archive is damaged, or holds what no honest one does; nothing of it is kept."""

    code = "archive-refused"


class UnsafePackageError(NetworkError):
    """A package holds names that lead out of the prefix, or into what is not its own."""

    code = "unsafe-package"


class LockMissingError(TenvError):
    """There is no lock for the target."""

    code = "lock-missing"
    status = Exit.LOCK


class LockStaleError(TenvError):
    """The lock no longer satisfies its manifest."""

    code = "lock-stale"
    status = Exit.LOCK


class LockCorruptError(TenvError):
    """The lock can't be read as a lock."""

    code = "lock-corrupt"
    status = Exit.LOCK


class LockConflictError(LockCorruptError):
    """The lock holds the marks of an unresolved merge."""

    code = "lock-conflict"


class LockNewerError(LockCorruptError):
    """The lock was written by a newer tenv in a form that this one does not know."""

    code = "lock-newer"


class EnvironmentMissingError(TenvError):
    """No environment of that target has been created here."""

    code = "environment-missing"
    status = Exit.ENVIRONMENT


class EnvironmentBrokenError(TenvError):
    """An environment is there but not ready for use."""

    code = "environment-broken"
    status = Exit.ENVIRONMENT


class EnvironmentStaleError(TenvError):
    """An environment does not have the files of its lock, and `--locked` was asked for."""

    code = "environment-stale"
    status = Exit.LOCK


class EnvironmentBusyError(TenvError):
    """Another process holds the environment, and waiting for it was not asked for or took too long."""

    code = "environment-busy"
    status = Exit.ENVIRONMENT


class ForeignFolderError(TenvError):
    """A folder that tenv did not make stands where an environment should be."""

    code = "foreign-folder"
    status = Exit.ENVIRONMENT


class StorageError(TenvError):
    """The disk is full, or a folder can't be written."""

    code = "storage"
    status = Exit.ENVIRONMENT


class CancelledError(TenvError):
    """The user ended the command with Ctrl-C or a signal."""

    code = "cancelled"
    status = Exit.INTERRUPTED
