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

    def __init__(self, message: str, *, hint: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.detail = detail


class BugError(TenvError):
    """A bug in tenv."""

    code = "bug"
    status = Exit.BUG


class UsageError(TenvError):
    """The command line is invalid."""

    code = "usage"
    status = Exit.USAGE


class UnknownTargetError(UsageError):
    """No manifest of that name in the project, the configuration folder or the built-in targets."""

    code = "unknown-target"


class HostReportError(UsageError):
    """A host report is unreadable, or has another schema."""

    code = "host-report"


class FormatError(UsageError):
    """A format of another tool can't hold the target, or tenv does not read the format of a file."""

    code = "format"


class FileExistsAlreadyError(UsageError):
    """A file to write exists, and overwriting it was not requested."""

    code = "file-exists"


class FactsError(TenvError):
    """A facts file of the user is unusable.

    The status is that of usage, not of the manifest: the user's settings name the file, and no target is at fault.
    """

    code = "facts"
    status = Exit.USAGE


class ManifestError(TenvError):
    """A manifest is invalid."""

    code = "manifest"
    status = Exit.MANIFEST


class HostError(TenvError):
    """The host lacks a requirement of the target."""

    code = "host"
    status = Exit.HOST


class UnfitHostError(HostError):
    """The rules found an error, so the target can't be built on this host."""

    code = "unfit-host"

    def __init__(self, message: str, findings: Sequence[dict[str, str]], *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.findings = findings


class UnbuildableLockError(UnfitHostError):
    """The lock lacks parts of a build, or mixes releases, so the target can be built on no host."""

    code = "lock-unbuildable"
    status = Exit.LOCK


class TorchError(HostError):
    """The environment that a toolkit is made for has no torch, or one that no toolkit can be made for."""

    code = "torch"


class NoTargetError(HostError):
    """No target supports both this host and the PyTorch revision.

    Attributes:
        data: The targets, each with the reason against it.
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
    """An index or a mirror did not answer, or its answer is invalid.

    Attributes:
        untouched: Whether the environment is unchanged.
        unanswered: Whether the server gave no answer, so that the next request takes as long and ends like this one.
    """

    code = "network"
    status = Exit.NETWORK
    untouched = False
    unanswered = False


class CertificateError(NetworkError):
    """A server's certificate is invalid, or not signed by an authority in the user's settings."""

    code = "certificate"


class HashMismatchError(NetworkError):
    """A file does not have the digest in the lock."""

    code = "hash-mismatch"


class ArchiveRefusedError(NetworkError):
    """An archive is damaged or malicious; nothing of it is kept."""

    code = "archive-refused"


class BundleRefusedError(NetworkError):
    """A bundle is damaged, cut or altered; nothing of it is used."""

    code = "bundle-refused"


class UnsafePackageError(NetworkError):
    """A package has names outside the prefix or inside files that it does not own."""

    code = "unsafe-package"


class LockMissingError(TenvError):
    """There is no lock for the target."""

    code = "lock-missing"
    status = Exit.LOCK


class LockStaleError(TenvError):
    """The lock does not satisfy its manifest."""

    code = "lock-stale"
    status = Exit.LOCK


class LockCorruptError(TenvError):
    """The lock is unreadable, or has another schema."""

    code = "lock-corrupt"
    status = Exit.LOCK


class LockConflictError(LockCorruptError):
    """The lock has conflict markers of an unresolved merge."""

    code = "lock-conflict"


class EnvironmentMissingError(TenvError):
    """There is no environment of that target here."""

    code = "environment-missing"
    status = Exit.ENVIRONMENT


class EnvironmentBrokenError(TenvError):
    """An environment exists but is not ready."""

    code = "environment-broken"
    status = Exit.ENVIRONMENT


class EnvironmentStaleError(TenvError):
    """An environment does not have the files of its lock, and `--locked` was asked for."""

    code = "environment-stale"
    status = Exit.LOCK


class EnvironmentBusyError(TenvError):
    """Another process uses the environment, and the wait for it was not requested or timed out."""

    code = "environment-busy"
    status = Exit.ENVIRONMENT


class ForeignFolderError(TenvError):
    """An unmanaged folder exists in the place of an environment."""

    code = "foreign-folder"
    status = Exit.ENVIRONMENT


class StorageError(TenvError):
    """The disk is full, or a folder is not writable."""

    code = "storage"
    status = Exit.ENVIRONMENT


class ProgramError(TenvError):
    """A program that `run`, `shell` or `gdb` was to become exists, and the system can't start it.

    The status is that of shells, since these commands end as the programs that they start.
    """

    code = "program"
    status = Exit.PROGRAM


class CancelledError(TenvError):
    """The user ended the command with Ctrl-C or a signal."""

    code = "cancelled"
    status = Exit.INTERRUPTED
