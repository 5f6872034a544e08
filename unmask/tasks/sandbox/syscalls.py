"""Closes the kernel's doors that namespaces leave open, by a filter of system calls.

This file is sent as text to a fresh interpreter, so it uses only the standard library. Refused are sockets of every
family (some, such as those between virtual machines, know no namespaces), memory that no limit counts (System V shared
memory and queues, memory files), keys, io_uring, and calls that only privileged or debugging programs make.
"""

import ctypes
import errno
import os
import struct

_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_X32 = 0x40000000  # numbers from here on belong to another table of calls
_JOIN_SESSION_KEYRING = 1
_CALLS = {  # numbers on x86-64, and in the table that newer machines share
    "socket": (41, 198),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "memfd_create": (319, 279),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "syslog": (103, 116),
    "io_setup": (206, 0),
}
# The same in every table: io_uring, mounts by handle, handles of other processes' files, secret memory.
_SHARED = [425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 447]
_CLONE3 = 435  # its arguments cannot be looked at; told that it does not exist, libc uses clone
_MACHINES = {  # the kernel's name for each, and its column
    "x86_64": (0xC000003E, 0),
    "aarch64": (0xC00000B7, 1),
    "riscv64": (0xC00000F3, 1),
}


def close_doors() -> None:
    """For this process and all that it starts, for good."""
    machine = os.uname().machine
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, "no filter of system calls for this machine", machine)
    libc = ctypes.CDLL(None, use_errno=True)
    kind, column = _MACHINES[machine]
    libc.syscall(
        _CALLS["keyctl"][column], _JOIN_SESSION_KEYRING, None
    )  # leaves the caller's keys; refused where there are none
    code = _program(kind, [*(numbers[column] for numbers in _CALLS.values()), *_SHARED])
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    for option, *arguments in ((_NO_NEW_PRIVS, 1, 0, 0, 0), (_SECCOMP, _FILTER, program)):
        if libc.prctl(option, *arguments) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), "the filter of system calls")


def _program(kind: int, refused: list[int]) -> bytes:
    """For the kernel's filter machine: a few tests, each followed by what to do if it holds."""
    lines = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, kind), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS), (_LOAD, 0, 0, 0)]
    lines += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    lines += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    for number in refused:
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    return b"".join(struct.pack("HBBI", *line) for line in [*lines, (_RETURN, 0, 0, _ALLOW)])
