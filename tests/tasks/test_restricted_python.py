"""The subset of Python agrees with Python on honest programs; hostile programs fail and leave no trace."""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.tasks.generated.mini_code import _child, results
from unmask.tasks.generated.restricted_python import LONGEST, ProgramError

HONEST = {
    "return [x * 2 for x in xs if x % 2]": [2, 6],
    "return sum(x for x in xs)": 6,
    "return xs[::-1] + [len(xs)] * 2": [3, 2, 1, 3, 3],
    "t = 0\n for i, x in enumerate(xs):\n  t += i * x\n return t": 8,
    "a, b = 1, 1\n while b < 50:\n  a, b = b, a + b\n return b": 55,
    "for x in xs:\n  if x > 1:\n   break\n else:\n  return 0\n return x": 2,
    "for x in xs:\n  if x < 3:\n   continue\n  return x": 3,
    "ys = []\n for x in xs:\n  ys.append(x)\n ys.reverse()\n ys[0] += 5\n return ys": [8, 2, 1],
    "return 'a-b'.replace('-', '+').upper() + str(-7 // 2)": "A+B-4",
    "return ''.join(sorted('hello'))[1:3]": "hl",
    "return max(xs) if xs else None": 3,
    "return 1 < 2 < 3 and not 2 in [1] and 'a' in 'cat'": True,
    "return [(x, y) for x in xs for y in xs if x < y]": [(1, 2), (1, 3), (2, 3)],
    "return xs == [1, 2, 3] and xs != (1, 2, 3) and xs is not None": True,
    "return 2 ** 10 % 7 - -3": 5,
    "x = 5\n ys = [x for x in xs]\n return x": 5,
    "return int('42') + abs(-1) + min(4, 2) + [5, 6].index(6)": 46,
    "ys = xs\n ys += [4]\n return xs": [1, 2, 3, 4],
    "ys = xs\n ys *= 2\n return xs": [1, 2, 3, 1, 2, 3],
    "ys = xs\n ys = ys + [4]\n return xs": [1, 2, 3],
    "xs += (4,)\n xs += 'a'\n return xs": [1, 2, 3, 4, "a"],
    "return reversed(xs) == [3, 2, 1]": False,
    "return list(reversed(xs)) + sorted(reversed(xs))": [3, 2, 1, 1, 2, 3],
    "g = (x for x in xs)\n return [list(g), list(g)]": [[1, 2, 3], []],
    "n = 1\n g = (x * n for x in xs)\n n = 10\n return sum(g)": 60,
    "g = (x for x in xs)\n return [next(g), next(g), next(g), next(g, 0)]": [1, 2, 3, 0],
    "return any(x > 1 // (3 - x) for x in xs[1:])": True,
    "g = (y for y in [1, 2])\n return [2 in g, 2 in g]": [True, False],
    "return (x for x in xs) == (x for x in xs)": False,
    "return range(3) == [0, 1, 2]": False,
    "return range(9)[2:5][1]": 3,
    "d = {}\n for x in xs:\n  d[x % 2] = d.get(x % 2, 0) + x\n return [d[0], d[1], len(d), sorted(d)]": [
        2,
        4,
        2,
        [0, 1],
    ],
    "d = {x: x * x for x in xs}\n return [sum(d.values()), [k + v for k, v in d.items()], 2 in d]": [
        14,
        [2, 6, 12],
        True,
    ],
    "return {'a': [1]} == {'a': [1]} and {1, 2} == {2, 1} and {} != set()": True,
    "seen = set()\n for x in xs + xs: seen.add(x)\n return sorted(seen)": [1, 2, 3],
    "return sorted({x % 2 for x in xs} - {0})": [1],
    "s = {1}\n u = s\n u |= {2}\n return [sorted(s), 6 & 3, 6 | 1, sorted({1, 2} & {2, 3})]": [[1, 2], 2, 7, [2]],
    "return f'{xs[0]}-{len(xs):02d}' + f'{3:>3}'": "1-03  3",
    "return sorted(xs, reverse=True)": [3, 2, 1],
    "return sorted(['bb', 'a', 'ccc'], key=len, reverse=True)": ["ccc", "bb", "a"],
    "return sorted(xs, key=lambda x: -x % 3)": [3, 2, 1],
    "return [max(xs, key=lambda x: -x), min([], default=7), sum(xs, 10)]": [1, 7, 16],
    "return [i * x for i, x in enumerate(xs, start=1)]": [1, 4, 9],
    "return [a * b for a, b in zip(xs, xs[1:])]": [2, 6],
    "pass": None,
}
ENDLESS = [  # stopped by the count of steps, by the limits of the child process, or by Python itself
    *("while True: pass", "for i in range(10 ** 70): pass", "for x in xs: xs.append(x)", "return f(xs)"),
    *("return [f(xs) for x in xs]", "return [i for i in range(10 ** 5) for j in range(10 ** 5)]"),
    *("return list(iter(int, 1))", "return [0] * 10 ** 9", "return 'a' * 10 ** 9"),
    *("return list(range(10 ** 9))", "return 10 ** 10 ** 8", "return sum(range(10 ** 10))"),
    *("x = 3\n while True: x = x * x", "x = 'a'\n while True: x += x", "x = []\n while True: x.append(x)"),
    "x, y = [1], [1]\n for i in range(60): x, y = [x, x], [y, y]\n return x == y",
    *("x = (1,)\n for i in range(60): x = (x, x)\n return {x}", "d = {}\n while True: d[len(d)] = 1"),
    "return " + "not " * 900 + "1",
    "return " + "(" * 900 + "1" + ")" * 900,
    "return " + "-" * 3900 + "1",
    "x = [1]\n for i in range(50000): x = [x]\n return x",
]
ESCAPES = [  # refused before anything runs
    *("return xs.__class__", "return xs.__class__.__base__.__subclasses__()", "return xs.__len__()"),
    *("return ().__class__.__mro__", "return f.__globals__", "return f.__code__"),
    *("return (x for x in xs).gi_frame", "return (x for x in xs).gi_frame.f_back.f_globals"),
    *("return __import__('os')", "return __import__('os').system('true')", "return ＿＿import＿＿('os')"),
    *("return __builtins__", "return __builtins__['abs']", "__builtins__ = {}\n return abs(1)"),
    *("return __name__", "return '{0.__class__}'.format(xs)", "return '{0}'.format_map(xs)"),
    *("return f'{xs.__class__}'", "return f'{xs!r}'", "return f'{1:{10 ** 9}}'", "return f'{3:99999999}'"),
    *("return sorted(xs, key=lambda x: x.__class__)", "return sorted(xs, key=lambda x, g=f: g)"),
    *("return (lambda: 1)()", "return [x for x in xs][0].bit_length", "return str.mro()"),
    *("return int.from_bytes", "return dict.fromkeys(xs)", "return sorted(xs, **{'key': f})"),
    *("return str(xs, encoding='utf-8')", "xs.append = 1", "import os", "from os import system", "global x"),
    *("nonlocal xs", "yield 1", "await xs", "return [x async for x in xs]", "raise ValueError"),
    *("try: pass\n except: pass", "with xs: pass", "del xs", "assert False", "class A: pass", "def g(): pass"),
    *("def __init__(): pass", "match xs:\n  case []: pass", "(xs := 1)", "return [*xs]", "return 1.5"),
    *("return b'a'", "return 1 / 2", "return 1 << 9", "type x = int"),
]
MISSING = [
    *("getattr", "setattr", "vars", "dir", "globals", "locals", "eval", "exec", "compile", "open", "input", "print"),
    *("type", "object", "super", "breakpoint", "help", "memoryview", "bytes", "classmethod", "map", "repr", "exit"),
]


def value(body: str) -> str:
    return results(f"def f(xs):\n {body}", [[[1, 2, 3]]])[0]


@pytest.mark.parametrize("body", HONEST)
def test_honest_programs_return_what_python_returns(body):
    assert value(body) == repr(HONEST[body])


@pytest.mark.parametrize("body", ENDLESS)
def test_endless_and_huge_programs_fail_and_the_next_one_runs(body):
    with pytest.raises(ProgramError):
        value(body)
    assert value("return xs") == "[1, 2, 3]"


@pytest.mark.parametrize("body", ESCAPES)
def test_escapes_are_refused_before_the_program_runs(body):
    with pytest.raises(ProgramError, match=r"not supported|not allowed|SyntaxError|only|must"):
        results(f"def f(xs):\n {body}", [])


@pytest.mark.parametrize("name", MISSING)
def test_other_builtins_are_missing(name):
    for body in (f"return {name}", f"return {name}('1')", f"return sorted(xs, key={name})"):
        with pytest.raises(ProgramError, match="NameError"):
            value(body)


@pytest.mark.parametrize(
    "body", ["return 1 // 0", "return y", "return xs[9]", "return {xs: 1}", "return int('x')", "f = 1\n return f()"]
)
def test_exceptions_are_failures(body):
    with pytest.raises(ProgramError, match="Error: "):
        value(body)


@pytest.mark.parametrize(
    "source",
    [
        *("", "x = 1", "\0", "def f(", "import os\ndef f(xs): return 1", "def f(xs): return 1\nf(1)", "\ud800"),
        *("@f\ndef f(xs): return 1", "def f(xs=[]): return xs", "def f(*xs): return xs", "def f(**xs): return xs"),
        *("def g(xs): return 1", "def f(): return 1", "def f(a, b): return 1", "async def f(): pass"),
        *("def f(x): return 1\ndef f(x): return 2", "def f(x, *, y): return 1", "def f(x, /): return 1"),
        "#" * (LONGEST + 1),
    ],
)
def test_other_programs_are_refused(source):
    with pytest.raises(ProgramError):
        results(source, [[[1, 2, 3]]])


def test_annotations_are_ignored():
    assert results("def f(n: List[int]) -> Any:\n return n", [[1]]) == ["1"]


def test_a_helper_and_recursion_work():
    program = "def g(n): return 1 if n < 2 else n * g(n - 1)\ndef f(n): return g(n)"
    assert results(program, [[20]]) == ["2432902008176640000"]


def test_one_program_cannot_change_the_next():
    assert results("def f(xs):\n xs.append(1)\n return xs", [[[]], [[]]]) == ["[1]", "[1]"]
    with pytest.raises(ProgramError):
        results("def f(n):\n abs = 1\n return g(n)", [[1]])
    assert results("def f(n): return abs(n)", [[-1]]) == ["1"]


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="needs /proc")
def test_the_child_process_may_open_no_file_and_start_no_process():
    value("return 1")
    process = _child().process
    assert process is not None
    limits = Path(f"/proc/{process.pid}/limits").read_text()
    for line in ("Max open files            0", "Max file size             0", "Max processes             0"):
        assert line in limits
    assert sorted(os.listdir(f"/proc/{process.pid}/fd"), key=int)  # the child is alive


@settings(max_examples=150, deadline=None)
@given(st.text("defxs():\n return0129+-*/%[],'=<>ifornotlambda.", max_size=120) | st.text(max_size=60))
def test_any_text_is_a_program_or_refused(text):
    for source in (text, f"def f(xs):\n return {text}", f"def f(xs):\n {text}"):
        with contextlib.suppress(ProgramError):
            assert len(results(source, [[[1, 2]]])) == 1
