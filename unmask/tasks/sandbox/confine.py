"""Confines a process: its own namespaces, its own root, no privileges, hard limits, a filter of system calls.

It is written by hand, with ctypes, because bubblewrap is often not installed. This file is sent as text to a fresh
interpreter, so it imports only the standard library. `enter` returns only in the confined process; the processes above
it wait for that one and end with it.

The filter refuses what namespaces do not cover: sockets of every family (some, such as those between virtual machines,
have no namespaces), memory that no limit counts (System V shared memory and queues, memory files), keys, io_uring, and
calls that only privileged or debugging programs make.
"""

import ctypes
import errno
import os
import resource
import signal
import struct
import sys
from typing import IO, Any

REFUSED = 97  # exit status if confinement failed
_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000  # mount uts ipc user pid net
_BIND, _REC, _PRIVATE, _REMOUNT, _READ_ONLY = 0x1000, 0x4000, 0x40000, 0x20, 0x1
_NOSUID, _NODEV, _KEPT, _RELATIME = 0x2, 0x4, 0x8 | 0x400 | 0x800, 0x200000
_DETACH = 2
_MOUNT_SETATTR, _HERE, _RECURSIVE = 442, -100, 0x8000
_PDEATHSIG, _DUMPABLE, _BOUND_DROP = 1, 4, 24
_CAPABILITIES = 0x20080522  # version 3 of the kernel's header
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
ROOT = "/proc"  # where the new root is built: it always exists and holds nothing that we bind


def enter(runtime: dict[str, Any], limits: dict[str, int], outer: int) -> None:
    """Confine this process, with only the files of `runtime` to read; root becomes the outside user `outer`."""
    try:
        _write("/proc/self/oom_score_adj", "1000")  # the kernel kills this process first if memory runs out
        _unshare(outer)
        _fork(limits["patience"], report=True)  # the child is the first process of the new namespace
        _build(limits["disk"], **runtime)
        refuse_system_calls()
    except OSError as error:
        print(f"{error.strerror} ({error.filename})", file=sys.stderr)
        os._exit(REFUSED)
    # Signals to a namespace's first process are special, so the program is the second.
    _fork(limits["patience"], report=False)
    _drop(outer)


def limit(limits: dict[str, int]) -> None:
    """Set resource limits, never above those this process already has."""
    for kind, soft, hard in (
        (resource.RLIMIT_AS, limits["memory"], limits["memory"]),
        (resource.RLIMIT_CPU, limits["seconds"], limits["seconds"] + 1),  # SIGXCPU, a second before SIGKILL
        (resource.RLIMIT_NPROC, limits["processes"], limits["processes"]),
        (resource.RLIMIT_FSIZE, limits["disk"], limits["disk"]),
        (resource.RLIMIT_NOFILE, 64, 64),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        allowed = resource.getrlimit(kind)[1]
        hard = hard if allowed == resource.RLIM_INFINITY else min(hard, allowed)
        resource.setrlimit(kind, (min(soft, hard), hard))


def _call(name: str, *args: object, where: str = "") -> None:
    if getattr(_LIBC, name)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), where or (f"mount {args[1]}" if name == "mount" else name))


def _unshare(outer: int) -> None:
    """Enter new namespaces. Only a process outside may map two users, so a child writes the maps and exits."""
    me, user, group = os.getpid(), os.getuid(), os.getgid()
    ready, go = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(go)
        os._exit(_map(me, user, group, outer) if os.read(ready, 1) else 0)
    os.close(ready)
    _call("unshare", _NEW)
    os.write(go, b"!")
    os.close(go)
    if os.waitpid(helper, 0)[1]:
        os._exit(REFUSED)
    _write("/proc/sys/user/max_user_namespaces", "0")  # otherwise the program could become root in its own namespace


def _map(pid: int, user: int, group: int, outer: int) -> int:
    """Map outside users into the namespace: the caller becomes 0 and `outer` becomes 1."""
    other = f"\n1 {outer} 1" if outer else ""
    try:
        if user:
            _write(f"/proc/{pid}/setgroups", "deny")
        _write(f"/proc/{pid}/uid_map", f"0 {user} 1{other}")
        _write(f"/proc/{pid}/gid_map", f"0 {group} 1{other}")
    except OSError as error:
        print(f"{error.strerror} (user map)", file=sys.stderr)
        return REFUSED
    return 0


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _fork(patience: int, report: bool) -> None:
    """Return in the child; the parent waits and hides the exit status of the program."""
    child = os.fork()
    if child == 0:
        _call("prctl", _PDEATHSIG, signal.SIGKILL)
        return
    _call("prctl", _DUMPABLE, 0)
    signal.alarm(patience + 2)  # in case the parent is gone
    os.closerange(3, 1 << 16)  # otherwise a reader would wait for a pipe end that is open here
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(REFUSED if report and status == REFUSED else 0)


def _build(disk: int, paths: list[str], hidden: list[str], links: list[tuple[str, str]]) -> None:
    _call("mount", None, b"/", None, _REC | _PRIVATE, None)
    with open("/proc/self/mountinfo") as mounts:  # the new root is about to cover it
        _mount_memory(ROOT, "size=1m,mode=755")
        for path in paths:
            _bind(path)
        for path in hidden:
            _mount_memory(ROOT + path, "size=4k,mode=755")
        for path, target in links:
            _link(path, target)
        for device in DEVICES:
            _touch(ROOT + device)
        for folder in ("/work", "/dev/shm"):
            os.mkdir(ROOT + folder)
        _protect(mounts)
    for device in DEVICES:
        _call("mount", device.encode(), (ROOT + device).encode(), None, _BIND, None)
    _mount_memory(f"{ROOT}/work", f"size={disk},nr_inodes=1k,mode=777")
    _mount_memory(f"{ROOT}/dev/shm", "size=64k,nr_inodes=64,mode=777")  # for semaphores
    os.chdir(ROOT)
    _call("pivot_root", b".", b".")
    _call("umount2", b".", _DETACH)
    os.chdir("/work")


def _bind(path: str) -> None:
    """Bind a path with all mounts below it, because a namespace cannot separate them."""
    if os.path.isdir(path):
        os.makedirs(ROOT + path, mode=0o755, exist_ok=True)
    else:
        _touch(ROOT + path)
    _call("mount", path.encode(), (ROOT + path).encode(), None, _BIND | _REC, None)


def _touch(path: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    os.close(os.open(path, os.O_CREAT, 0o644))


def _link(path: str, target: str) -> None:
    if not os.path.lexists(ROOT + path):
        os.makedirs(os.path.dirname(ROOT + path), mode=0o755, exist_ok=True)
        os.symlink(target, ROOT + path)


def _protect(mounts: IO[str]) -> None:
    """Make everything below the new root read-only, without privileges and devices."""
    attributes = (ctypes.c_uint64 * 4)(_READ_ONLY | _NOSUID | _NODEV)
    if _LIBC.syscall(_MOUNT_SETATTR, _HERE, ROOT.encode(), _RECURSIVE, attributes, ctypes.sizeof(attributes)) == 0:
        return
    for line in mounts:  # Linux before 5.12 changes one mount at a time, and some containers refuse the newer call
        path = line.split()[4].encode().decode("unicode_escape")
        if path == ROOT or path.startswith(f"{ROOT}/"):
            kept = os.statvfs(path).f_flag
            flags = _BIND | _REMOUNT | _READ_ONLY | _NOSUID | _NODEV | kept & _KEPT | (kept & 0x1000 and _RELATIME)
            _call("mount", None, path.encode(), None, flags, None)


def _mount_memory(path: str, options: str) -> None:
    _call("mount", b"tmpfs", path.encode(), b"tmpfs", _NOSUID | _NODEV, options.encode())


def _drop(outer: int) -> None:
    for capability in range(64):
        _LIBC.prctl(_BOUND_DROP, capability, 0, 0, 0)
    if outer:
        os.setgroups([])
        os.setresgid(1, 1, 1)
        os.setresuid(1, 1, 1)
    _call("capset", (ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)())


_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_X32 = 0x40000000  # larger numbers belong to a different table of calls
_JOIN_SESSION_KEYRING = 1
# Each call with its number on x86-64 and in the table that newer machines share.
_CALLS = """
    socket 41 198, shmget 29 194, shmat 30 196, msgget 68 186, semget 64 190, mq_open 240 180,
    memfd_create 319 279, keyctl 250 219, add_key 248 217, request_key 249 218, ptrace 101 117,
    process_vm_readv 310 270, process_vm_writev 311 271, bpf 321 280, userfaultfd 323 282, perf_event_open 298 241,
    unshare 272 97, setns 308 268, mount 165 40, umount2 166 39, pivot_root 155 41, name_to_handle_at 303 264,
    open_by_handle_at 304 265, kexec_load 246 104, init_module 175 105, finit_module 313 273,
    fanotify_init 300 262, quotactl 179 60, acct 163 89, syslog 103 116, io_setup 206 0
"""
# These have the same number in every table: io_uring, mounts by handle, files of other processes, secret memory.
_SHARED = [425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 447]
_CLONE3 = 435  # its arguments cannot be inspected; libc uses clone if this does not exist
_MACHINES = {  # the kernel's name of each, and its column in _CALLS
    "x86_64": (0xC000003E, 0),
    "aarch64": (0xC00000B7, 1),
    "riscv64": (0xC00000F3, 1),
}


def refuse_system_calls() -> None:
    """Refuse the listed system calls to this process and all that it starts."""
    machine = os.uname().machine
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, "no filter of system calls for this machine", machine)
    kind, column = _MACHINES[machine]
    calls = {name: int(numbers[column]) for name, *numbers in map(str.split, _CALLS.split(","))}
    _LIBC.syscall(calls["keyctl"], _JOIN_SESSION_KEYRING, None)  # leaves the caller's keys, if there are any
    code = _program(kind, [*calls.values(), *_SHARED])
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    for arguments in ((_NO_NEW_PRIVS, 1, 0, 0, 0), (_SECCOMP, _FILTER, program)):
        _call("prctl", *arguments, where="the filter of system calls")


def _program(kind: int, refused: list[int]) -> bytes:
    """Return a BPF program: comparisons, each followed by the action to take if it is true."""
    lines = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, kind), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS), (_LOAD, 0, 0, 0)]
    lines += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    lines += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    for number in refused:
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    return b"".join(struct.pack("HBBI", *line) for line in [*lines, (_RETURN, 0, 0, _ALLOW)])
