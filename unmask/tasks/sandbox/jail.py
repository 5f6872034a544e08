"""Confines a process: its own namespaces, its own root, no privileges, hard limits.

This file is sent as text to a fresh interpreter, so it uses only the standard library. `enter` returns only in the
confined process; the processes above it wait for that one and end with it.
"""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import IO, Any

REFUSED = 97  # exit status if confinement failed
_NEW = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000  # mount uts ipc user pid net
_BIND, _REC, _PRIVATE, _REMOUNT, _READ_ONLY = 0x1000, 0x4000, 0x40000, 0x20, 0x1
_NOSUID, _NODEV, _KEPT, _RELATIME = 0x2, 0x4, 0x8 | 0x400 | 0x800, 0x200000
_DETACH = 2
_MOUNT_SETATTR, _HERE, _RECURSIVE = 442, -100, 0x8000
_PDEATHSIG, _DUMPABLE, _BOUND_DROP = 1, 4, 24
_CAPABILITIES = 0x20080522  # version 3 of the kernel's header
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
ROOT = "/proc"  # where the new root is built: it always exists and holds nothing that we bind


def enter(runtime: dict[str, Any], disk: int, patience: int, outer: int, close_doors: Callable[[], None]) -> None:
    """Confine this process, with `runtime` to read and `disk` bytes to write; root runs as the outside user `outer`."""
    try:
        _write("/proc/self/oom_score_adj", "1000")  # we are killed first if memory runs out
        _unshare(outer)
        _fork(patience, tell=True)  # the child is the first process of the new namespace
        _build(disk, **runtime)
        close_doors()
    except OSError as error:
        print(f"{error.strerror} ({error.filename})", file=sys.stderr)
        os._exit(REFUSED)
    _fork(patience, tell=False)  # signals to a namespace's first process are special, so the program is the second
    _drop(outer)


def limit(memory: int, cpu: int, processes: int, disk: int) -> None:
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, cpu + 1),
        (resource.RLIMIT_NPROC, processes),
        (resource.RLIMIT_FSIZE, disk),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        allowed = resource.getrlimit(kind)[1]
        most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(kind, (most, most))
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (min(cpu, hard), hard))  # a signal, a second before the end


def _call(name: str, *args: object) -> None:
    if getattr(_libc(), name)(*args) != 0:
        number = ctypes.get_errno()
        where = f"mount {args[1]}" if name == "mount" else name
        raise OSError(number, os.strerror(number), where)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _unshare(outer: int) -> None:
    """Only a process outside the namespace may map two users, so a child writes the maps and exits."""
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
    _write("/proc/sys/user/max_user_namespaces", "0")  # or the program could become root in its own namespace


def _map(pid: int, user: int, group: int, outer: int) -> int:
    """Map outside users into the namespace: the caller is 0, `outer` is 1."""
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


def _fork(patience: int, tell: bool) -> None:
    """Return in the child; the parent waits and hides the exit status of the program."""
    child = os.fork()
    if child == 0:
        _call("prctl", _PDEATHSIG, signal.SIGKILL)
        return
    _call("prctl", _DUMPABLE, 0)
    signal.alarm(patience + 2)  # in case nobody is left to kill us
    os.closerange(3, 1 << 16)  # or a reader would wait for a pipe end that we hold open
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(REFUSED if tell and status == REFUSED else 0)


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
    """With all mounts below it: a namespace may not take apart what it was given."""
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
    """Nothing below the new root can be written, gives privileges or is a device, at any depth."""
    attributes = (ctypes.c_uint64 * 4)(_READ_ONLY | _NOSUID | _NODEV)
    if _libc().syscall(_MOUNT_SETATTR, _HERE, ROOT.encode(), _RECURSIVE, attributes, ctypes.sizeof(attributes)) == 0:
        return
    for line in mounts:  # Linux before 5.12 knows one mount at a time, and some containers refuse the newer call
        path = line.split()[4].encode().decode("unicode_escape")
        if path == ROOT or path.startswith(f"{ROOT}/"):
            kept = os.statvfs(path).f_flag
            flags = _BIND | _REMOUNT | _READ_ONLY | _NOSUID | _NODEV | kept & _KEPT | (kept & 0x1000 and _RELATIME)
            _call("mount", None, path.encode(), None, flags, None)


def _mount_memory(path: str, options: str) -> None:
    _call("mount", b"tmpfs", path.encode(), b"tmpfs", _NOSUID | _NODEV, options.encode())


def _drop(outer: int) -> None:
    for capability in range(64):
        _libc().prctl(_BOUND_DROP, capability, 0, 0, 0)
    if outer:
        os.setgroups([])
        os.setresgid(1, 1, 1)
        os.setresuid(1, 1, 1)
    _call("capset", (ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)())
