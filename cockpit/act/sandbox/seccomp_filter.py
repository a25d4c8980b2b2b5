"""The filter of system calls in the sandbox: a classic BPF program that the kernel runs at each call.

It is a list of what is refused: what reaches other processes and terminals, the kernel's keys, mounts,
modules, clock and tracing, new namespaces, io_uring (which would pass by the filter), and sockets of
other families than the common ones (a virtual machine's host answers on one that no network namespace
hides). Bubblewrap loads it just before the command. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
from functools import cache

_LOAD, _EQUAL, _GREATER_EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
"""Offsets in the kernel's description of a call; of an argument, its low half."""
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_OTHER_ABI = 0x40000000
"""The bit of calls by the x32 ABI of x86-64, which have numbers of their own."""

_NAMESPACES = 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000 | 0x20000
_TIME_NAMESPACE = 0x80
"""For ``unshare`` alone: in ``clone`` these bits are the signal at the child's end."""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI types into a terminal as if the user did; TIOCLINUX pastes a selection."""
_SOCKETS = (0, 1, 2, 10, 16)
"""Unspecified, local, IPv4, IPv6, and the kernel's routing tables."""

_UNIX = 1
_NODES = {"x86_64": (133, 259), "aarch64": (33,)}
"""``mknod`` and ``mknodat``, which make named pipes as well."""

_SINCE_424 = {
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443, "open_tree_attr": 467,
}  # fmt: skip
"""Every architecture has the same numbers for these."""
_IO_URING = (425, 426, 427)
_CLONE3 = 435

_REFUSED: dict[str, dict[str, int]] = {
    "x86_64": {
        "modify_ldt": 154, "pivot_root": 155, "_sysctl": 156, "adjtimex": 159, "chroot": 161, "acct": 163,
        "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
        "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
        "nfsservctl": 180, "ptrace": 101, "syslog": 103, "uselib": 134, "vhangup": 153,
        "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246, "add_key": 248,
        "request_key": 249, "keyctl": 250, "migrate_pages": 256, "move_pages": 279,
        "perf_event_open": 298, "fanotify_init": 300, "open_by_handle_at": 304, "clock_adjtime": 305,
        "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
    },
    "aarch64": {
        "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "nfsservctl": 42,
        "chroot": 51, "vhangup": 58, "quotactl": 60, "acct": 89, "kexec_load": 104, "init_module": 105,
        "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "reboot": 142,
        "settimeofday": 170, "adjtimex": 171, "add_key": 217, "request_key": 218, "keyctl": 219,
        "swapon": 224, "swapoff": 225, "migrate_pages": 238, "move_pages": 239, "perf_event_open": 241,
        "fanotify_init": 262, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
        "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
    },
}  # fmt: skip
_JUDGED = {
    "x86_64": {"ioctl": 16, "socket": 41, "clone": 56, "unshare": 272},
    "aarch64": {"ioctl": 29, "socket": 198, "clone": 220, "unshare": 97},
}
"""Calls that are judged by an argument."""
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's names of the architectures."""


def filter_program(machine: str | None = None, *, reading: bool = False) -> bytes | None:
    """Return the filter for ``machine`` (this one's architecture when left out); None where there is none.

    With ``reading`` it also refuses unix sockets (a pair of them stays), device nodes and named pipes.
    """
    return _assemble(platform.machine() if machine is None else machine, reading)


def open_filter(program: bytes) -> int:
    """Return a file descriptor from which bubblewrap reads ``program``; the caller closes it."""
    descriptor = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    os.write(descriptor, program)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


@cache
def _assemble(machine: str, reading: bool) -> bytes | None:
    if machine not in _ARCHITECTURES:
        return None
    judged = _JUDGED[machine]
    code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        # Calls by another architecture's numbers would pass by this list.
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_GREATER_EQUAL, 0, 1, _OTHER_ABI), _refuse(errno.ENOSYS)]
    nodes = _NODES[machine] if reading else ()
    sockets = tuple(family for family in _SOCKETS if not (reading and family == _UNIX))
    for number in sorted({*_REFUSED[machine].values(), *_SINCE_424.values(), *nodes}):
        code += [(_EQUAL, 0, 1, number), _refuse(errno.EPERM)]
    # Its flags are behind a pointer, where no filter can look; programs fall back to clone.
    for number in (_CLONE3, *_IO_URING):
        code += [(_EQUAL, 0, 1, number), _refuse(errno.ENOSYS)]
    for name, bits in (("clone", _NAMESPACES), ("unshare", _NAMESPACES | _TIME_NAMESPACE)):
        code += [
            (_EQUAL, 0, 4, judged[name]),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_ANY_BIT, 0, 1, bits),
            _refuse(errno.EPERM),
            (_RETURN, 0, 0, _ALLOW),
        ]
    first, second = _TERMINAL_INPUT
    code += [
        (_EQUAL, 0, 5, judged["ioctl"]),
        (_LOAD, 0, 0, _SECOND_ARGUMENT),
        (_EQUAL, 1, 0, first),
        (_EQUAL, 0, 1, second),
        _refuse(errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code += [(_EQUAL, 0, 2 + len(sockets), judged["socket"]), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    for place, family in enumerate(sockets):
        code.append((_EQUAL, len(sockets) - place, 0, family))
    code += [_refuse(errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _refuse(number: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _ERROR | number)
