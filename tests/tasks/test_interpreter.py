"""The small Python: agrees with the real one on honest programs, ends hostile ones quickly."""

import contextlib
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operations import operations
from unmask.tasks.generated.interpreter import LONGEST, STEPS, ProgramError, load

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
HOSTILE = [
    "while True: pass",
    "for i in range(10 ** 70): pass",
    "return [0] * 10 ** 9",
    "return (0,) * 10 ** 9",
    "return 'a' * 10 ** 9",
    "return 10 ** 10 ** 8",
    "x = 3\n while True: x = x * x",
    "x = 3\n for i in range(90): x *= x",
    "x = 'a'\n while True: x += x",
    "x = []\n while True: x.append(x)",
    "x = []\n while True: x = [x, x]",
    "x = [1]\n for i in range(60): x = [x, x]\n y = [1]\n for i in range(60): y = [y, y]\n return x == y",
    "x, y = [1], [1]\n for i in range(60): x, y = [x, x], [y, y]\n return x in [y]",
    "for x in xs: xs.append(x)",
    "a, b = range(10 ** 9)",
    "return list(range(10 ** 9))",
    "return sum(range(10 ** 9))",
    "return [i for i in range(10 ** 5) for j in range(10 ** 5)]",
    "return ('a' * 1000).replace('', 'b' * 1000)",
    "return ('a' * 999).join(['b' * 999] * 999)",
    "return f(xs)",
    "return f(f(xs))",
    "return [f(xs) for x in xs]",
    "return " + "not " * 900 + "1",
    "return " + "-" * 3900 + "1",
    "return " + "(" * 900 + "1" + ")" * 900,
    "return " + "[" * 90 + "1" + "]" * 91,
    "return " + "9" * 3900,
    "return xs.__class__",
    "return xs.__class__.__base__.__subclasses__()",
    "return xs.__len__()",
    "return ().__class__",
    "return getattr(xs, 'append')",
    "return __import__('os')",
    "return __builtins__",
    "return globals()",
    "return eval('1')",
    "return exec('1')",
    "return open('/etc/passwd')",
    "return type(xs)",
    "return '%99999999d' % 3",
    "return '{:99999999}'.format(3)",
    "return f'{3:99999999}'",
    "return '{0.__class__}'.format(xs)",
    "return 'a'.ljust(10 ** 9)",
    "return 'a'.center(10 ** 9)",
    "return 'a'.zfill(10 ** 9)",
    "return bytes(10 ** 9)",
    "return 1 << 10 ** 9",
    "return 1.5",
    "return 1 / 2",
    "return lambda: 1",
    "return sorted(xs, key=print)",
    "return print(1)",
    "import os",
    "global x",
    "yield 1",
    "raise ValueError",
    "try: pass\n except: pass",
    "del xs",
    "assert False",
    "with xs: pass",
    "class A: pass",
    "def g(): pass",
    "return zip(xs, xs)[0]",
    "return len(reversed(xs))",
    "return reversed(xs)[0]",
    "return {xs: 1}",
    "return {[1]}",
    "return {1: 2}[3]",
    "d = {1: 1}\n for k in d: d[k + 1] = 1",
    "g = (x for x in xs)\n next(g)\n next(g)\n next(g)\n return next(g)",
    "g = (x for x in range(10 ** 9))\n return list(g)",
    "d = {}\n while True: d[len(d)] = 1",
    "s = set()\n while True: s.add(len(s))",
    "return f'{xs!r}'",
    "return f'{xs}'",
    "return f'{1:{10 ** 9}}'",
    "return sorted(xs, cmp=1)",
    "return sorted(xs, **{})",
    "return {**{1: 2}}",
    "x = (1,)\n for i in range(60): x = (x, x)\n return {x}",
    "g = (y for y in xs)\n for i in range(50): g = (y for y in g)\n return list(g)",
    "xs.append = 1",
    "f = 1\n return f()",
    "return xs[10 ** 30]",
    "return xs[1:2:0]",
    "return 1 // 0",
    "return 2 ** -1",
    "return y",
    "return [1] < [2]",
    "return sorted([1, 'a'])",
    "xs.append(xs)\n return xs == xs[0:]",
    "return str([1] * 10)",
    "return int('9' * 500)",
    "(xs := 1)",
    "return [*xs]",
    "return max(*xs)",
]


@pytest.mark.parametrize("body", HONEST)
def test_honest_programs_give_what_python_gives(body):
    space: dict[str, Any] = {}
    exec(f"def f(xs):\n {body}", space)
    assert space["f"]([1, 2, 3]) == HONEST[body]
    assert load(f"def f(xs):\n {body}").gives("f", [[1, 2, 3]], HONEST[body])


@pytest.mark.parametrize("body", HOSTILE)
def test_hostile_programs_end_quickly(body):
    def refuse() -> None:
        with pytest.raises(ProgramError):
            load(f"def f(xs):\n {body}").call("f", [[1, 2, 3]])

    assert operations(refuse) < 40 * STEPS


def test_hostile_programs_stay_small():
    tracemalloc.start()
    for body in HOSTILE:
        with contextlib.suppress(ProgramError):
            load(f"def f(xs):\n {body}").call("f", [[1, 2, 3]])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 2**20


@pytest.mark.parametrize(
    "source",
    [
        *(
            "",
            "x = 1",
            "\0",
            "def f(",
            "import os\ndef f(xs): return 1",
            "def f(xs): return 1\nf(1)",
            "async def f(): pass",
        ),
        *(
            "@f\ndef f(xs): return 1",
            "def f(xs=[]): return xs",
            "def f(*xs): return xs",
            "def f(**xs): return xs",
        ),
        *("def g(xs): return 1", "def f(): return 1", "def f(a, b): return 1", "#" * (LONGEST + 1), "\ud800"),
        *("def f(x): return 1\ndef f(x): return 2", "def f(x, *, y): return 1", "def f(x, /): return 1"),
    ],
)
def test_other_programs_are_refused(source):
    with pytest.raises(ProgramError):
        load(source).call("f", [[1, 2, 3]])


def test_arguments_are_left_alone():
    xs = [[1], 2]
    load("def f(xs):\n xs.pop()\n xs[0].append(3)").call("f", [xs])
    assert xs == [[1], 2]


def test_a_helper_and_shallow_recursion_work():
    program = load("def g(n): return 1 if n < 2 else n * g(n - 1)\ndef f(n): return g(n)")
    assert program.call("f", [20]) == 2432902008176640000


@settings(max_examples=150, deadline=None)
@given(st.text("defxs():\n return0129+-*/%[],'=<>ifornotlambda.", max_size=120) | st.text(max_size=60))
def test_any_text_is_a_program_or_refused(text):
    for source in (text, f"def f(xs):\n return {text}", f"def f(xs):\n {text}"):
        with contextlib.suppress(ProgramError):
            load(source).call("f", [[1, 2]])
