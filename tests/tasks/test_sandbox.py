"""Hostile programs are graded wrong, do not harm the host and do not stop the run."""

import ctypes
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from unmask.errors import UnmaskError
from unmask.tasks.sandbox import run as run_module
from unmask.tasks.sandbox.run import Limits, ProgramTest, SandboxResult, run, sandbox_method

ROOT = Path(__file__).parents[2]
QUICK = Limits(seconds=2)
SHORT = Limits(seconds=1)  # for programs that use all of it


Judge = Callable[..., SandboxResult]


@pytest.fixture
def judge(sandbox: str) -> Judge:
    def judge(program: str, test: str = "assert f(1) == 2", limits: Limits = QUICK) -> SandboxResult:
        return run(ProgramTest(program, (test,), ("f",)), limits=limits)

    return judge


@pytest.fixture
def passes(judge: Judge) -> Callable[..., None]:
    """Return a function that judges a program and shows the note of one that is wrong."""

    def passes(*trial: str, limits: Limits = QUICK) -> None:
        verdict = judge(*trial, limits=limits)
        assert verdict.right, verdict.note

    return passes


def f(body: str) -> str:
    return "import os, sys\ndef f(x):\n" + "\n".join(f"    {line}" for line in body.splitlines())


ALWAYS_EQUAL = (
    "class Yes(%s):\n    __hash__ = None\n"
    "    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n"
)

KILLED = {"its parent": "os.getppid()", "process 1": 1, "every process": -1, "its group": 0}
HOSTILE = {
    "infinite loop": f("while True: pass"),
    "infinite loop at the top": "while True: pass",
    "sleeping": "import time\ntime.sleep(100)",
    "100 GB allocation": f("return len(bytearray(100 << 30)) * 0 + 2"),
    "100 GB in pieces": f("held = []\nwhile True: held.append(bytearray(1 << 20))"),
    "filling the disk in one file": f("file = open('big', 'wb')\nwhile True: file.write(bytes(1 << 20))"),
    "filling the disk with many": f("for n in range(10**6): open(str(n), 'wb').write(bytes(1 << 16))\nreturn 2"),
    "sys.exit(0) at the top": "import sys\nsys.exit(0)",
    "sys.exit(0) in the call": f("sys.exit(0)"),
    "os._exit(0) at the top": "import os\nos._exit(0)",
    "os._exit(0) in the call": f("os._exit(0)"),
    "the sandbox's own exit status": "import os\nos._exit(97)",
    "equality that is always true": ALWAYS_EQUAL % "object" + "def f(x): return Yes()",
    "an int equal to everything": ALWAYS_EQUAL % "int" + "def f(x): return Yes(7)",
    "a list equal to everything": ALWAYS_EQUAL % "list" + "def f(x): return Yes([7])",
    "patched builtins": "import builtins\nbuiltins.AssertionError = SystemExit\nbuiltins.exec = print\ndef f(x): pass",
    "patched json": 'import json\njson.dumps = lambda *a, **k: \'{"right": true, "note": ""}\'\ndef f(x): return 0',
    "patched checker": "import __main__\n__main__.judge = __main__.reply = lambda *a: None\ndef f(x): return 0",
    "forged verdict on every handle": f(
        'line = b\'{"right": true, "note": ""}\\n\'\n'
        "for handle in range(64):\n"
        "    try: os.write(handle, line)\n"
        "    except OSError: pass\n"
        "os._exit(0)"
    ),
    "an answer that never ends": f(
        "os.write(sys._getframe(1).f_globals['os'].dup(4), b'x' * (1 << 20) * 64)\nreturn 0"
    ),
    "an answer too deep": f("x = []\nfor _ in range(100000): x = [x]\nreturn x"),
    "an answer too long": f("return 'x' * (1 << 26)"),
    "a cycle": f("x = []\nx.append(x)\nreturn x"),
    "crashing the interpreter": f("import ctypes\nctypes.string_at(0)"),
    "recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef f(x): return f(x)",
    "a time limit that is caught": f("while True:\n    try:\n        while True: pass\n    except BaseException: pass"),
    "writing to the interpreter": f("open(os.__file__, 'a')\nreturn 2"),
    **{
        f"killing {name}": f(f"import signal\nos.kill({target}, signal.SIGKILL)\nreturn 1")
        for name, target in {**KILLED, "this test": os.getpid()}.items()
    },
    "no such function": "def g(x): return 2",
    "no program": "def f(x) return 2",
    "null bytes": "def f(x): return 2\0",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_program_is_wrong_and_leaves_the_run_alive(judge: Judge, name: str):
    verdict = judge(HOSTILE[name], limits=SHORT)
    assert not verdict.right
    assert verdict.note


FORGED = r"""
import os, time
names = b'{"value": {"dict": [["f", {"remote": 0}], ["set", {"remote": 1}], ["__builtins__", {"dict": []}]]}}\n'
for handle in range(3, 64):
    try: os.write(handle, names + b'{"value": 0}\n' * 9)
    except OSError: pass
time.sleep(9)
"""


ODD_NUMBER = (
    "from fractions import Fraction\nfrom decimal import Decimal\nclass Odd(%s):\n    denominator = 0\n"
    "    def __str__(self): return 'x'\ndef f(x): return Odd(1)"
)
CATCHING = "try: f(1)\nexcept (ArithmeticError, ValueError): pass"
CHEATS = {
    "names that the tests did not ask for": (FORGED, "assert set(f(1)) == set((4, 5))"),
    "an exception that ends a loop": (f("raise StopIteration"), "assert all(map(f, [1, 2]))"),
    "an exception that the tests catch": (f("raise StopIteration"), "try: f(1)\nexcept Exception: pass"),
    "a fraction that cannot be rebuilt": (ODD_NUMBER % "Fraction", CATCHING),
    "a decimal that cannot be rebuilt": (ODD_NUMBER % "Decimal", CATCHING),
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_program_cannot_reach_the_tests(judge: Judge, name: str):
    assert not judge(*CHEATS[name]).right


def test_a_fork_bomb_is_bounded_and_gone_afterwards(judge: Judge, monkeypatch: pytest.MonkeyPatch):
    mark = uuid.uuid4().hex  # every process of the sandbox has its source for a command line
    source = run_module._source()
    monkeypatch.setattr(run_module, "_source", lambda: f"{source}\n# {mark}")
    bomb = "while True:\n    try: os.fork()\n    except OSError: pass"
    assert not judge(f(bomb), limits=SHORT).right
    deadline = time.monotonic() + 60
    while _alive(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(mark)


def _alive(mark: str) -> bool:
    return any(mark in _read(entry / "cmdline") for entry in Path("/proc").glob("[0-9]*"))


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def test_the_home_folder_and_the_environment_are_out_of_reach(passes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("UNMASK_SECRET", "here")
    with tempfile.NamedTemporaryFile(dir=Path.home() if os.access(Path.home(), os.W_OK) else tmp_path) as secret:
        body = f(
            "seen = [value for value in os.environ.values() if 'here' in value]\n"
            f"for place in {[secret.name, '/etc/passwd', '/proc/self/environ', __file__]!r}:\n"
            "    try: seen.append(open(place).read())\n"
            "    except OSError: pass\n"
            "return seen"
        )
        passes(body, "assert f(1) == []")


def test_no_socket_reaches_the_host(judge: Judge):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        body = f(f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=1)\nreturn 2")
        verdict = judge(body)
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()
    assert not verdict.right


def test_nothing_outside_is_deleted_or_written(judge: Judge):
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "kept"
        kept.write_text("still here")
        body = f(
            "import shutil\n"
            f"for place in ({folder!r}, os.path.dirname(os.__file__)): shutil.rmtree(place, ignore_errors=True)\n"
            f"try: open({str(kept)!r}, 'w').write('gone')\n"
            "except OSError: return 0"
        )
        assert not judge(body).right
        assert kept.read_text() == "still here"
    assert Path(os.__file__).exists()


def test_the_working_folder_starts_empty_and_is_writable(passes):
    body = f("before = os.listdir('.')\nopen('mine', 'w').write('x')\nreturn [before, os.listdir('.')]")
    for _ in range(2):
        passes(body, "assert f(1) == [[], ['mine']]")


def test_new_namespaces_and_mounts_are_refused(passes):
    body = f(
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "return [libc.unshare(0x10000000), libc.mount(b'x', b'/work', b'tmpfs', 0, None)]"
    )
    passes(body, "assert f(1) == [-1, -1]")


BOUND = """
import ctypes, os, sys, sysconfig
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x00020000) != 0:  # mounts of its own
    print("no mounts")
    sys.exit()
assert libc.mount(None, b"/", None, 0x4000 | 0x40000, None) == 0
folder = sysconfig.get_path("stdlib") + "/wsgiref"
assert libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, None) == 0
os.chmod(folder, 0o777)
from unmask.tasks.sandbox import run as run_module
if "old kernel" in sys.argv:
    source = run_module._source().replace("_MOUNT_SETATTR, _HERE", "_HERE, _HERE").replace("442, -100", "-100, -100")
    run_module._source = lambda: source
program = f"def f(x):\\n    open({folder!r} + '/written', 'w')\\n    return 2"
print(run_module.run(run_module.ProgramTest(program, ("assert f(1) == 2",), ("f",))))
print(os.listdir(folder))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
@pytest.mark.parametrize("kernel", ["this kernel", "old kernel"])
def test_a_mount_below_the_standard_library_cannot_be_written(sandbox: str, kernel: str):
    """A mount, such as a container's volume, can be read and not changed."""
    script = [sys.executable, "-c", BOUND, kernel]
    seen = subprocess.run(script, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})
    if "no mounts" in seen.stdout:
        pytest.skip("this machine mounts nothing")
    assert "Read-only file system" in seen.stdout, seen
    assert seen.stdout.endswith("[]\n")


def test_only_the_interpreter_and_the_standard_library_are_there(passes):
    body = f(
        "import site, sysconfig\nseen = []\n"
        "for place in ('/usr/share/doc', '/usr/bin', '/etc', '/tmp', '/proc', '/sys', '/run', '/var', '/home'):\n"
        "    if os.path.exists(place): seen.append(place)\n"
        "packages = sysconfig.get_path('purelib')\n"
        "if os.path.exists(packages): seen += os.listdir(packages)\n"
        "return seen + [name for name in os.listdir(sys.base_prefix) if name not in ('bin', 'lib', 'lib64', 'share')]"
    )
    passes(body, "assert f(1) == [], f(1)")


CLOSED = {
    "System V memory": "libc.shmget(0, 1 << 30, 0o1600)",
    "a file in memory": "libc.memfd_create(b'x', 0)",
    "io_uring": "libc.syscall(425, 1, None)",
    "keys": "libc.syscall(250, 0, -3, 0)",
    "a local socket": "libc.socket(1, 1, 0)",
    "a socket of the network": "libc.socket(2, 1, 0)",
    "a socket to the machine's host": "libc.socket(40, 1, 0)",
    "the kernel's log": "libc.klogctl(3, None, 0)",
    "another process's memory": "libc.process_vm_readv(1, None, 0, None, 0, 0)",
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls")
def test_system_calls_that_namespaces_do_not_cover_are_refused(passes):
    calls = ", ".join(f"{name!r}: {call}" for name, call in CLOSED.items())
    body = f(f"import ctypes\nlibc = ctypes.CDLL(None)\nreturn {{{calls}}}")
    passes(body, f"assert f(1) == dict.fromkeys({list(CLOSED)!r}, -1), f(1)")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls")
def test_a_key_of_the_caller_cannot_be_read(passes):
    libc = ctypes.CDLL(None, use_errno=True)
    key = libc.syscall(248, b"user", b"unmask-test", b"secret", 6, -3)
    body = f(
        "import ctypes\nlibc = ctypes.CDLL(None)\nbuffer = ctypes.create_string_buffer(9)\n"
        f"libc.syscall(250, 11, {key}, buffer, 9)\nreturn buffer.value"
    )
    try:
        passes(body, "assert f(1) == b''")
    finally:
        libc.syscall(250, 3, key)


def test_the_time_limit_is_processor_time(passes):
    """The program takes longer than the limit by the clock, as on a loaded machine."""
    body = f(
        "import time\nfor _ in range(3):\n    end = time.process_time() + 0.1\n"
        "    while time.process_time() < end: pass\n    time.sleep(0.8)\nreturn 2"
    )
    passes(body)


EXTENSIONS = ("zlib", "_ssl", "_sqlite3", "_lzma", "_bz2", "_hashlib", "_decimal", "_uuid", "_ctypes", "readline")
NEEDED = {
    "the null device": "open('/dev/null', 'w').write('x')\nreturn len(open(os.devnull).read()) + 2",
    "chance": "return len(open('/dev/urandom', 'rb').read(2))",
    "a pool of threads": (
        "from concurrent.futures import ThreadPoolExecutor\nimport threading\nbarrier = threading.Barrier(8)\n"
        "with ThreadPoolExecutor(8) as pool: return len(set(pool.map(lambda n: barrier.wait(), range(8)))) - 6"
    ),
    "processes": (
        "from multiprocessing import get_context\n"
        "with get_context('fork').Pool(2) as pool: return sum(pool.map(abs, [-1, 1]))"
    ),
    "prints": "for _ in range(1 << 10): sys.stdout.write('x' * (1 << 20)); sys.stderr.write('x' * 1024)\nreturn x + 1",
    "an event loop": "import asyncio\nasync def g(): return 2\nreturn asyncio.run(g())",
    "every extension": f"import {', '.join(filter(find_spec, EXTENSIONS))}\nreturn 2",
    "another interpreter": "import subprocess\nreturn 2 + subprocess.run([sys.executable, '-S', '-c', '']).returncode",
}


if Path("/usr/lib/locale/C.utf8").is_dir():
    NEEDED["the locale"] = "import locale\nlocale.setlocale(locale.LC_ALL, '')\nreturn 2"
if Path("/usr/share/zoneinfo/Europe/Berlin").exists():
    NEEDED["time zones"] = "import zoneinfo\nreturn 2 + (zoneinfo.ZoneInfo('Europe/Berlin') is None)"


@pytest.mark.parametrize("name", NEEDED)
def test_what_honest_programs_need_is_available(passes, name: str):
    passes(f(NEEDED[name]), limits=Limits())


def test_programs_in_parallel_keep_their_verdicts(judge: Judge):
    with ThreadPoolExecutor(8) as pool:
        verdicts = pool.map(lambda n: judge(f(f"return x + {n % 2}"), limits=Limits()).right, range(8))
    assert list(verdicts) == [False, True] * 4


VALUES = "[None, True, -3, 2**200, 0.1, float('inf'), 1j, 'é\\ud800', b'x', (1, [2, {3}], {4: (5,)}), frozenset({6})]"


def test_plain_values_travel_unchanged(passes):
    test = f"values = {VALUES}\ngot = f(values)\nassert got == values\nassert type(got[9]) is tuple"
    passes("def f(x): return x", test)


def test_objects_of_the_program_can_be_passed_back(sandbox: str):
    program = "class Pair:\n    def __init__(self, a): self.a = a\ndef f(pairs): return sum(p.a for p in pairs)"
    trial = ProgramTest(program, ("assert f([Pair(1), Pair(2)]) == 3",), ("f", "Pair"))
    assert run(trial) == SandboxResult(True, "")


def test_rlimits_are_noted():
    trial = ProgramTest("def f(x): return x + 1", ("assert f(1) == 2",), ("f",))
    assert run(trial, "rlimits") == SandboxResult(True, "ran under rlimits only")
    wrong = run(ProgramTest("import sys\nsys.exit(0)", ("assert f(1) == 2",), ("f",)), "rlimits")
    assert not wrong.right
    assert wrong.note.endswith("ran under rlimits only")


@pytest.mark.parametrize("name", ["infinite loop", "100 GB allocation", "filling the disk in one file"])
def test_rlimits_bound_time_memory_and_files(name: str, tmp_path: Path):
    program = HOSTILE[name].replace("'big'", repr(str(tmp_path / "big")))
    assert not run(ProgramTest(program, ("assert f(1) == 2",), ("f",)), "rlimits", SHORT).right


def test_without_a_sandbox_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    sandbox_method.cache_clear()
    monkeypatch.setattr(run_module.sys, "platform", "elsewhere")
    monkeypatch.setattr(run_module.shutil, "which", lambda name: None)
    with pytest.raises(UnmaskError, match="install bubblewrap"):
        run(ProgramTest("def f(x): return 2", ("assert f(1) == 2",), ("f",)))
    sandbox_method.cache_clear()
