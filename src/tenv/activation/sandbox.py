"""Run a program that may write to only one folder: ``python -I sandbox.py FOLDER PROGRAM [ARGUMENT…]``.

It uses Linux's Landlock (https://docs.kernel.org/userspace-api/landlock.html), which needs kernel 5.13 and no
privilege. On other kernels, the program runs without the restriction: its scripts are as trusted as the packages, and
this is a second line of defense. The file imports nothing from tenv, since it runs by path.
"""

import ctypes
import os
import sys

__all__: list[str] = []

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_VERSION_ONLY = 1
_NO_NEW_PRIVILEGES = 38
_WRITE_FILE = 1 << 1
_CHANGE = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
"""The rights to write a file and to remove and make whatever can stand in a folder."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_TRUNCATE_SINCE = 3


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def _confine(folder: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_ONLY))
    if version < 1:
        return
    rights = _CHANGE | (_REFER if version > 1 else 0) | (_TRUNCATE if version >= _TRUNCATE_SINCE else 0)
    handled = ctypes.c_uint64(rights)
    rules = libc.syscall(_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), ctypes.c_uint32(0))
    if rules < 0:
        return
    file_rights = _WRITE_FILE | (rights & _TRUNCATE)
    for path, allowed in ((folder, rights), ("/dev/null", file_rights)):
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        beneath = _Beneath(allowed, parent)
        libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(beneath), ctypes.c_uint32(0))
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    libc.syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0))


if __name__ == "__main__":
    if sys.platform == "linux":
        _confine(sys.argv[1])
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 (the point of this file)
