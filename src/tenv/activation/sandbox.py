"""Run a program that may do little beside writing to one folder: ``python -I sandbox.py FOLDER PROGRAM [ARGUMENT…]``.

With an empty FOLDER, such as for the build of a package, it may do all but open a socket.

On Linux it may not write elsewhere (Landlock, kernel 5.13: https://docs.kernel.org/userspace-api/landlock.html), open a
socket, send a signal, or change the mode, the owner or the attributes of a file (seccomp filters:
https://docs.kernel.org/userspace-api/seccomp_filter.html). Its child processes end with it (PR_SET_CHILD_SUBREAPER in
prctl(2)). None of it needs a privilege. The first line on standard error lists the rights that the kernel could not
deny. The program then runs all the same: its scripts are as trusted as the packages, and this is a second line of
defense. With ``SECONDS`` in TENV_SANDBOX_SECONDS it is killed after that time, with status 124. The file imports
nothing from tenv, since it runs by path.
"""

import contextlib
import ctypes
import os
import platform
import signal
import sys
import time

SECONDS = "TENV_SANDBOX_SECONDS"
SAYS = "tenv-sandbox: not denied:"

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_VERSION_ONLY = 1
_DEATH_SIGNAL, _SECCOMP, _SUBREAPER, _NO_NEW_PRIVILEGES = 1, 22, 36, 38
_WRITE_FILE = 1 << 1
_CHANGE = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
"""The rights to write a file and to remove and make whatever can stand in a folder."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_TRUNCATE_SINCE = 3

_EVERYWHERE = (424, 425, 426, 427, 452, 463, 466)
"""pidfd_send_signal, io_uring_setup to io_uring_register, fchmodat2, setxattrat, removexattrat."""

_RINGS = (425, 426, 427)
"""io_uring_setup to io_uring_register, which open sockets too."""

_DENIED = {
    # socket; kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo; ptrace, process_vm_readv and writev;
    # chmod to fchmodat, chown to fchownat; setxattr to fsetxattr, removexattr to fremovexattr
    "x86_64": (
        0xC000003E,
        (41, 62, 200, 234, 129, 297, 101, 310, 311, 90, 91, 268, 92, 93, 94, 260, 188, 189, 190, 197, 198, 199),
    ),
    "aarch64": (0xC00000B7, (198, 129, 130, 131, 138, 240, 117, 270, 271, 52, 53, 54, 55, 5, 6, 7, 14, 15, 16)),
}
"""By machine: its number in linux/audit.h, and the denied system calls of its asm/unistd.h."""

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050001  # the latter: with EPERM
_OTHER_CALLS = 0x40000000  # of the x32 ABI
_FILTERS = 2


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("value", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("code", ctypes.POINTER(_Instruction)))


def _confine_writing(libc: ctypes.CDLL, folder: str) -> bool:
    """Allow writing below one folder alone; return whether the kernel can do that."""
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_ONLY))
    if version < 1:
        return False
    rights = _CHANGE | (_REFER if version > 1 else 0) | (_TRUNCATE if version >= _TRUNCATE_SINCE else 0)
    handled = ctypes.c_uint64(rights)
    rules = libc.syscall(_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), ctypes.c_uint32(0))
    if rules < 0:
        return False
    file_rights = _WRITE_FILE | (rights & _TRUNCATE)
    for path, allowed in ((folder, rights), ("/dev/null", file_rights)):
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        beneath = _Beneath(allowed, parent)
        libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(beneath), ctypes.c_uint32(0))
    return bool(libc.syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0)) == 0)


def _deny_calls(libc: ctypes.CDLL, *, network: bool) -> bool:
    """Make the denied system calls fail with EPERM, or with `network` those of sockets alone.

    Returns:
        Whether the kernel can do that.
    """
    if platform.machine() not in _DENIED:
        return False
    machine, calls = _DENIED[platform.machine()]
    tests = [(_EQUAL, number) for number in ((calls[0], *_RINGS) if network else (*calls, *_EVERYWHERE))]
    last = len(tests) + 5
    rows = [(_LOAD, 0, 0, 4), (_EQUAL, 0, last - 2, machine), (_LOAD, 0, 0, 0), (_AT_LEAST, last - 4, 0, _OTHER_CALLS)]
    rows += [(code, last - at - 1, 0, value) for at, (code, value) in enumerate(tests, start=4)]
    rows += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _FAIL)]
    program = _Program(len(rows), (_Instruction * len(rows))(*(_Instruction(*row) for row in rows)))
    return bool(libc.prctl(_SECCOMP, _FILTERS, ctypes.byref(program), 0, 0) == 0)


def _start(libc: ctypes.CDLL, folder: str, program: list[str], *, reaps: bool) -> None:
    """Become the program, with all that the kernel can deny."""
    libc.prctl(_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if folder:
        missing = [] if _confine_writing(libc, folder) else ["writing to files"]
        missing += [] if _deny_calls(libc, network=False) else ["network", "signals", "modes of files"]
    else:
        missing = [] if _deny_calls(libc, network=True) else ["network"]
    missing += [] if reaps else ["programs that go on"]
    _say(missing)
    os.execv(program[0], program)  # noqa: S606 (the point of this file)


def _say(missing: list[str]) -> None:
    os.write(2, f"{SAYS} {', '.join(missing) or 'nothing'}\n".encode())


def _supervise(child: int, seconds: float) -> int:
    """Wait for a program, end its remaining child processes, and return its status."""
    status, end = 124, time.monotonic() + seconds
    while time.monotonic() < end:
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            status = os.waitstatus_to_exitcode(code)
            break
        time.sleep(0.005)
    else:
        os.kill(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):  # none is left
        while True:
            for orphan in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(orphan, signal.SIGKILL)
            os.waitpid(-1, 0)
    return status if status >= 0 else 128 - status


def _children() -> list[int]:
    """Return the processes that this one waits for; orphans of its children come to it."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 (pathlib would take as long to load as the rest)
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                if int(file.read().rpartition(b")")[2].split()[1]) == os.getpid():
                    found.append(int(name))
    return found


def _main(folder: str, program: list[str]) -> int:
    seconds = float(os.environ.pop(SECONDS, "") or "inf")
    if sys.platform != "linux":
        rest = ["writing to files", "network", "signals", "modes of files"] if folder else ["network"]
        _say([*rest, "programs that go on"])
        os.execv(program[0], program)  # noqa: S606
    libc = ctypes.CDLL(None, use_errno=True)
    reaps = libc.prctl(_SUBREAPER, 1, 0, 0, 0) == 0
    child = os.fork()
    if not child:
        try:
            _start(libc, folder, program, reaps=reaps)
        finally:
            os._exit(126)
    return _supervise(child, seconds)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], sys.argv[2:]))
