"""Lets the kernel refuse every lock on a file with an error, then runs another program.

python failing_locks.py ERRNO PROGRAM [ARGUMENT...]: as on a network drive whose lock server is away. The kernel answers
`fcntl` with F_SETLK or F_SETLKW, and `flock`, with the error, in this process and in those that it starts. Source:
seccomp(2), SECCOMP_SET_MODE_FILTER.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess
import sys

# The numbers of fcntl and flock: asm/unistd_64.h, asm-generic/unistd.h.
CALLS = {"x86_64": (72, 73), "aarch64": (25, 32)}
F_SETLK, F_SETLKW = 6, 7
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER_MODE = 38, 22, 2
# linux/bpf_common.h: load a word, jump if equal, return; linux/seccomp.h: the offsets in seccomp_data.
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER, SECOND_ARGUMENT = 0, 24
ALLOW, ERROR = 0x7FFF0000, 0x00050000


class Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def refuse_locks(error: int) -> None:
    """Let every lock of this process fail from now on."""
    fcntl, flock = CALLS[platform.machine()]
    steps = [
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 5, 0, flock),
        (EQUAL, 0, 3, fcntl),
        (LOAD, 0, 0, SECOND_ARGUMENT),
        (EQUAL, 2, 0, F_SETLK),
        (EQUAL, 1, 0, F_SETLKW),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, ERROR | error),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and not libc.prctl(
        PR_SET_SECCOMP, FILTER_MODE, ctypes.byref(Filter(len(steps), code)), 0, 0
    )
    assert done, os.strerror(ctypes.get_errno())


if __name__ == "__main__":
    refuse_locks(int(sys.argv[1]))
    sys.exit(subprocess.call(sys.argv[2:]))
