"""Word problems in English made of fixed sentences; the level is how many steps of arithmetic they take.

    Ada sells 6 toys at $9 each. Ada splits the money equally among 2 children. How many dollars does each
    child get?

    6*9=54
    54/2=27
    <answer>27</answer>

Half of the stories tell how it ended and ask how it began: then the lines work forward from the answer.
Two stories with the same arithmetic are the same problem, so the steps of a test problem never occur in training. The sentences of `mini-gsm` by scene: how a story opens, what can happen in it, how it can end.

Each sentence is paired with the arithmetic it asks for, where `v` is the running quantity:

    +  v+k      -  v-k      *  v*k      /  v/k      .  k (nothing to compute)
    +* v+j*k    -* v-j*k    -/ v-v/k    ++ v+(v+k)  *+ v+v*k    t- t-v

Openings have no `v` yet: they take `j` and `k` in that order. A leading `=` continues with the second person.
`{n}` and `{m}` are people, `{o}` things, `{f}` a fraction such as "a third"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from unmask.tasks.generated.base import Generated, Sketch, between, choose, tagged
from unmask.tasks.task import Problem, task

FRACTIONS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth"}
_NUMBER = re.compile(r"\$?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,12})")

Numbers = dict[str, int]
Turn = tuple[Numbers, list[str], int]  # the numbers of a sentence, the lines that compute the new quantity, and it
Story = tuple[str, list[str], int]  # question, worked lines, result


@task("mini-gsm")
@dataclass(frozen=True)
class MiniGsm(Generated):
    levels: ClassVar[range] = range(2, 7)

    level: int = 5  # steps

    def sketch(self, rng: Random) -> Sketch:
        while True:
            backward = rng.random() >= 0.5
            story = tell(rng, choose(rng, SCENES), self.level, backward)
            if story is not None:
                question, lines, result = story
                steps = "\n".join(lines)
                return Sketch(steps, question, f"{steps}\n<answer>{result}</answer>", {"result": result})

    def read(self, text: str) -> str | None:
        """The number without its dollar sign and commas; the text as it is if it is not a number."""
        content = tagged(text)
        number = _NUMBER.fullmatch(content or "")
        return str(int(number[1].replace(",", ""))) if number else content or None

    def fault(self, problem: Problem, answer: str) -> str:
        return "" if answer == str(problem.data["result"]) else "another number"


def tell(rng: Random, scene: Scene, level: int, backward: bool) -> Story | None:
    """A story of `level` steps; None if the numbers did not work out.

    A backward story tells how it ended and asks how it began: the lines work forward from the answer.
    """
    if backward and not scene.past:
        return None
    names = rng.sample(NAMES, level + 2)
    people, thing = names[:2], choose(rng, scene.things)
    kind, sentence = ("?", scene.some) if backward else choose(rng, scene.openings)
    numbers, lines, quantity = _open(rng, kind)
    sentences, start, last = [_write(sentence, names, thing, numbers)], quantity, False
    while len(lines) < level:
        left = level - len(lines)
        last = not backward and left <= 2 and rng.random() < 0.6
        kind, sentence = choose(rng, scene.ends if last else scene.turns)
        turn = _turn(rng, kind.lstrip("="), quantity, scene.cap)
        if turn is None or len(turn[1]) > left or (last and len(turn[1]) < left):
            return None
        numbers, more, quantity = turn
        lines += more
        sentences.append(_write(sentence, names, thing, numbers))
        if kind[0] == "=":
            del names[0]
    if backward:
        sentences += [_write(scene.end, names, thing, {"v": quantity}), _write(scene.past, people, thing, {})]
    elif not last:
        sentences.append(_write(scene.ask, names, thing, {}))
    return " ".join(sentences), lines, start if backward else quantity


def _write(sentence: str, names: list[str], thing: str, numbers: Numbers) -> str:
    return sentence.format(n=names[0], m=names[1], o=thing, f=FRACTIONS.get(numbers.get("k", 0), ""), **numbers)


def _open(rng: Random, kind: str) -> Turn:
    if kind == "?":
        return {}, [], between(rng, 3, 60)
    if kind == ".":
        k = between(rng, 5, 90)
        return {"k": k}, [], k
    if kind == "+":
        j, k = between(rng, 5, 60), between(rng, 5, 60)
    elif kind == "-":
        j = between(rng, 12, 99)
        k = between(rng, 2, j - 5)
    else:
        j, k = between(rng, 2, 9), between(rng, 3, 15)
    if kind == "/":
        j, k = j * k, j
    result = {"+": j + k, "-": j - k, "*": j * k, "/": j // k}[kind]
    return {"j": j, "k": k}, [f"{j}{kind}{k}={result}"], result


def _turn(rng: Random, kind: str, v: int, cap: int) -> Turn | None:
    """What happens to the quantity `v`; None if it would not stay a whole number from 1 to the cap."""
    if kind in ("/", "-/"):
        return _split(rng, kind, v)
    if kind in ("+*", "-*"):
        j, k = between(rng, 2, 9), between(rng, 2, 12)
        w = v + j * k if kind == "+*" else v - j * k
        return ({"j": j, "k": k}, [f"{j}*{k}={j * k}", f"{v}{kind[0]}{j * k}={w}"], w) if 0 < w <= cap else None
    if kind == "t-":
        t = v + between(rng, 2, 60)
        return ({"t": t}, [f"{t}-{v}={t - v}"], t - v) if t <= cap else None
    if kind in ("*", "*+"):
        k = between(rng, 2, 6)
        w = v * k
        lines = [f"{v}*{k}={w}"]
    else:
        k = between(rng, 2, min(60, v - 1) if kind == "-" else 60) if v > 3 else 1
        w = v - k if kind == "-" else v + k
        lines = [f"{v}{kind[0]}{k}={w}"]
    if kind in ("++", "*+"):
        lines.append(f"{v}+{w}={v + w}")
        w += v
    return ({"k": k}, lines, w) if 0 < w <= cap and k > 1 else None


def _split(rng: Random, kind: str, v: int) -> Turn | None:
    parts = [k for k in range(2, 13 if kind == "/" else 6) if v % k == 0 and v > k]
    if not parts:
        return None
    k = choose(rng, parts)
    q = v // k
    if kind == "/":
        return {"k": k}, [f"{v}/{k}={q}"], q
    return {"k": k}, [f"{v}/{k}={q}", f"{v}-{q}={v - q}"], v - q


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NAMES = _words(
    "Ada Amir Ana Ben Carl Dana Eli Emma Eva Finn Gina Hugo Ida Iris Ivan Jan Joy Kai Kim Lena "
    "Leo Lily Luca Maya Mia Nia Noah Nora Omar Otto Paul Pia Ravi Rosa Sam Sara Tara Tom Uma Zoe"
)


@dataclass(frozen=True)
class Scene:
    things: tuple[str, ...]
    openings: tuple[tuple[str, str], ...]
    turns: tuple[tuple[str, str], ...]
    ends: tuple[tuple[str, str], ...]  # last turns that ask about something else
    ask: str  # the question of a story without such an end
    some: str = ""  # opening, ending and question of a story that asks how it began
    end: str = ""
    past: str = ""
    cap: int = 999  # no quantity goes above this


GOODS = Scene(
    _words("apples balls beads books buttons cards coins dolls eggs marbles pears pens rocks shells stamps"),
    (
        (".", "{n} has {k} {o}."),
        ("*", "{n} has {j} boxes with {k} {o} in each."),
        ("*", "{n} buys {j} packs of {k} {o}."),
        ("+", "{n} has {j} red {o} and {k} blue {o}."),
        ("+", "{n} finds {j} {o} on Monday and {k} on Tuesday."),
        ("-", "{n} had {j} {o} but lost {k}."),
        ("/", "{j} {o} are shared equally by {k} children. {n} is one of them."),
    ),
    (
        ("+", "{m} gives {n} {k} more."),
        ("+", "{n} finds {k} more."),
        ("-", "{n} gives {k} to {m}."),
        ("-", "{n} sells {k}."),
        ("*", "A year later {n} has {k} times as many."),
        ("+*", "{n} buys {j} packs of {k} more."),
        ("-*", "{n} gives {k} to each of {j} friends."),
        ("-/", "{n} gives {f} of them to {m}."),
        ("=+", "{m} has {k} more {o} than {n}."),
        ("=-", "{m} has {k} fewer {o} than {n}."),
        ("=*", "{m} has {k} times as many {o} as {n}."),
    ),
    (
        ("/", "{n} puts them into bags of {k}. How many bags are there?"),
        ("/", "{n} gives them to {k} friends in equal parts. How many {o} does each friend get?"),
        ("*", "{n} sells them all at ${k} each. How many dollars does {n} get?"),
        ("t-", "{n} wants {t} {o}. How many more does {n} need?"),
        ("++", "{m} has {k} more {o} than {n}. How many {o} do {n} and {m} have together?"),
        ("*+", "{m} has {k} times as many {o} as {n}. How many {o} do {n} and {m} have together?"),
    ),
    "How many {o} does {n} have?",
    "{n} has some {o}.",
    "Now {n} has {v} {o}.",
    "How many {o} did {n} have at first?",
)

MONEY = Scene(
    _words("books caps games hats lamps mugs pens plants shirts toys"),
    (
        (".", "{n} has ${k}."),
        ("*", "{n} works {j} hours for ${k} an hour."),
        ("*", "For {j} weeks {n} saves ${k} a week."),
        ("*", "{n} sells {j} {o} at ${k} each."),
        ("+", "{n} gets ${j} from {m} and ${k} from an uncle."),
        ("-", "{n} had ${j} and paid ${k} for shoes."),
    ),
    (
        ("+", "{n} earns ${k} more."),
        ("+", "{m} pays {n} ${k}."),
        ("-", "{n} spends ${k} on lunch."),
        ("-", "{n} pays ${k} for a ticket."),
        ("-*", "{n} buys {j} {o} at ${k} each."),
        ("+*", "{n} sells {j} {o} at ${k} each."),
        ("-/", "{n} spends {f} of the money."),
        ("=+", "{m} has ${k} more than {n}."),
        ("=*", "{m} has {k} times as much money as {n}."),
    ),
    (
        ("/", "{n} splits the money equally among {k} children. How many dollars does each child get?"),
        ("/", "One ticket costs ${k}. How many tickets can {n} buy?"),
        ("t-", "A bike costs ${t}. How many more dollars does {n} need?"),
        ("++", "{m} has ${k} more than {n}. How many dollars do {n} and {m} have together?"),
    ),
    "How many dollars does {n} have?",
    "{n} has some money.",
    "Now {n} has ${v}.",
    "How many dollars did {n} have at first?",
)

CROWD = Scene(
    _words("birds cats children cows dogs ducks fans goats guests people players sheep"),
    (
        (".", "There are {k} {o} in a park."),
        ("*", "In a park there are {j} groups of {k} {o}."),
        ("*", "{j} vans each bring {k} {o} to a field."),
        ("+", "There are {j} old {o} and {k} young {o} in a field."),
        ("-", "Of {j} {o} in a park, {k} leave."),
    ),
    (
        ("+", "Then {k} more come."),
        ("-", "Then {k} leave."),
        ("*", "By noon there are {k} times as many."),
        ("+*", "Then {j} groups of {k} more come."),
        ("-*", "Then {j} groups of {k} leave."),
        ("-/", "Then {f} of them leave."),
    ),
    (
        ("/", "They stand in rows of {k}. How many rows are there?"),
        ("/", "They form {k} equal groups. How many {o} are in each group?"),
        ("*", "Each one gets {k} snacks. How many snacks are needed?"),
        ("t-", "There is room for {t}. How many more {o} fit in?"),
    ),
    "How many {o} are there now?",
    "There are some {o} in a park.",
    "Now there are {v} {o}.",
    "How many {o} were there at first?",
)

BAKING = Scene(
    _words("buns cakes cookies loaves muffins pies pizzas rolls tarts waffles"),
    (
        (".", "{n} bakes {k} {o}."),
        ("*", "{n} bakes {j} trays of {k} {o}."),
        ("*", "For {j} hours {n} bakes {k} {o} an hour."),
        ("+", "{n} bakes {j} {o} and {m} bakes {k}."),
        ("-", "{n} bakes {j} {o} but burns {k}."),
    ),
    (
        ("+", "{n} bakes {k} more."),
        ("-", "{n} sells {k}."),
        ("-", "{m} eats {k}."),
        ("+*", "{m} brings {j} trays of {k} more."),
        ("-*", "{n} fills {j} boxes with {k} each and sends them off."),
        ("-/", "{n} sells {f} of them."),
    ),
    (
        ("/", "The rest go into boxes of {k}. How many boxes are there?"),
        ("*", "The rest are sold at ${k} each. How many dollars does {n} get?"),
        ("t-", "{n} must have {t}. How many more {o} must {n} bake?"),
    ),
    "How many {o} are there now?",
    "{n} bakes some {o}.",
    "Now there are {v} {o}.",
    "How many {o} did {n} bake at first?",
)

TRIPS = Scene(
    ("km", "miles"),
    (
        (".", "{n} walks {k} {o}."),
        ("*", "For {j} days {n} walks {k} {o} a day."),
        ("*", "{n} drives {j} hours at {k} {o} an hour."),
        ("+", "{n} walks {j} {o} in the morning and {k} {o} at night."),
    ),
    (
        ("+", "Then {n} goes {k} {o} by bus."),
        ("+*", "Then for {j} days {n} rides {k} {o} a day."),
        ("=+", "{m} goes {k} {o} more than {n}."),
        ("=-", "{m} goes {k} {o} less than {n}."),
        ("=*", "{m} goes {k} times as far as {n}."),
    ),
    (
        ("t-", "The whole way is {t} {o}. How many {o} are left for {n}?"),
        ("/", "{m} does the same way in {k} equal days. How many {o} a day is that?"),
        ("*", "{n} does this {k} times. How many {o} is that?"),
        ("++", "{m} goes {k} {o} more than {n}. How many {o} do {n} and {m} go together?"),
        ("*+", "{m} goes {k} times as far as {n}. How many {o} do {n} and {m} go together?"),
    ),
    "How many {o} does {n} go?",
    "{n} walks some {o}.",
    "In all {n} goes {v} {o}.",
    "How many {o} did {n} walk at first?",
)

READING = Scene(
    ("pages",),
    (
        (".", "{n} reads {k} pages."),
        ("*", "For {j} days {n} reads {k} pages a day."),
        ("+", "{n} reads {j} pages on Monday and {k} on Sunday."),
    ),
    (
        ("+", "Then {n} reads {k} pages more."),
        ("+*", "Then {n} reads {k} pages a day for {j} days."),
        ("=+", "{m} reads {k} pages more than {n}."),
        ("=-", "{m} reads {k} pages less than {n}."),
        ("=*", "{m} reads {k} times as many pages as {n}."),
    ),
    (
        ("t-", "The book of {n} has {t} pages. How many pages are left?"),
        ("/", "{m} reads as much in {k} equal days. How many pages a day is that?"),
        ("++", "{m} reads {k} pages more than {n}. How many pages do {n} and {m} read together?"),
    ),
    "How many pages does {n} read?",
    "{n} reads some pages.",
    "In all {n} reads {v} pages.",
    "How many pages did {n} read at first?",
)

AGES = Scene(
    ("years",),
    (
        (".", "{n} is {k} years old."),
        ("+", "{n} was {j} years old {k} years ago."),
        ("-", "In {k} years {n} will be {j} years old."),
    ),
    (
        ("=+", "{m} is {k} years older than {n}."),
        ("=-", "{m} is {k} years younger than {n}."),
        ("=*", "{m} is {k} times as old as {n}."),
    ),
    (
        ("+", "How old will {n} be in {k} years?"),
        ("-", "How old was {n} {k} years ago?"),
        ("++", "{m} is {k} years older than {n}. How old are {n} and {m} together?"),
        ("*+", "{m} is {k} times as old as {n}. How old are {n} and {m} together?"),
    ),
    "How old is {n}?",
    cap=120,
)

SCENES = (GOODS, MONEY, CROWD, BAKING, TRIPS, READING, AGES)
