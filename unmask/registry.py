"""Names for things users can ask for, and the one text form of them: `name(key=value, …)`."""

from __future__ import annotations

import dataclasses
import logging
import re
import types
import typing
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from unmask.errors import UnmaskError, nearest

T = TypeVar("T")
Made = TypeVar("Made", bound=type)  # a decorated class keeps its own type, so its settings are known
log = logging.getLogger("unmask")
_TOKEN = re.compile(r"""\s*([(),=]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s(),=]+)""", re.DOTALL)


class Registry(Generic[T]):
    """Frozen dataclasses by kebab-case name, from this package and from others through entry points."""

    def __init__(self, kind: str, plural: str | None = None):
        self.kind, self.plural = kind, plural or f"{kind}s"
        self._made: dict[str, type[T]] = {}
        self._aliases: dict[str, str] = {}
        self._looked_outside = False

    def __call__(self, name: str, *aliases: str) -> Callable[[Made], Made]:
        """Decorator: `@decoder("threshold")` above a frozen dataclass."""

        def add(made: Made) -> Made:
            for word in (name, *aliases):
                if word in self._made or word in self._aliases:
                    raise UnmaskError(f"two {self.plural} want the name {word!r}")
            self._made[name] = typing.cast(type[T], made)
            self._aliases |= dict.fromkeys(aliases, name)
            return made

        return add

    def __iter__(self) -> Iterator[str]:
        self._look_outside()
        return iter(sorted(self._made))

    def aliases(self, name: str) -> list[str]:
        return [alias for alias, meant in self._aliases.items() if meant == name]

    def find(self, name: str) -> type[T]:
        if name not in self._made and name not in self._aliases:
            self._look_outside()
        name = self._aliases.get(name, name)
        if name not in self._made:
            raise UnmaskError(f"unknown {self.kind} {name!r}: {nearest(name, [*self._made, *self._aliases])}")
        return self._made[name]

    def name(self, value: object) -> str:
        for name, made in self._made.items():
            if type(value) is made:
                return name
        raise UnmaskError(f"{type(value).__name__} is not a registered {self.kind}")

    def make(self, spec: str | T, **settings: Any) -> T:
        """The object a spec such as `ots(beams=4)` names; an object passes through."""
        if not isinstance(spec, str):
            return dataclasses.replace(spec, **settings) if settings else spec  # type: ignore[type-var]
        return self._build(parse(spec), settings)

    def spec(self, value: T) -> str:
        """The text form of an object, every setting written out."""
        settings = (
            f"{field.name.replace('_', '-')}={self.word(getattr(value, field.name))}"
            for field in dataclasses.fields(value)  # type: ignore[arg-type]
        )
        inside = ", ".join(settings)
        return f"{self.name(value)}({inside})" if inside else self.name(value)

    def word(self, value: Any) -> str:
        """A setting's value as it is written in a spec."""
        if dataclasses.is_dataclass(value):
            return self.spec(typing.cast(T, value))
        if isinstance(value, bool) or value is None:
            return str(value).lower()
        if isinstance(value, str) and not re.fullmatch(r"[^\s(),='\"]+", value):
            return "'" + re.sub(r"([\\'])", r"\\\1", value) + "'"
        return str(value)

    def _build(self, call: Call, settings: dict[str, Any]) -> T:
        made = self.find(call.name)
        hints = typing.get_type_hints(made)
        known = [field.name for field in dataclasses.fields(made)]  # type: ignore[arg-type]
        values: dict[str, Any] = {}
        for key, word in call.settings.items():
            key = key.replace("-", "_")
            if key not in known:
                hint = nearest(key, known) if known else "it has no settings"
                raise UnmaskError(f"{self.kind} {call.name!r} has no setting {key!r}: {hint}")
            values[key] = self._read(word, hints[key], f"{call.name}({key}=…)")
        missing = [
            field.name
            for field in dataclasses.fields(made)  # type: ignore[arg-type]
            if field.name not in values | settings
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ]
        if missing:
            raise UnmaskError(f"{self.kind} {call.name!r} needs {missing[0]}=…")
        return made(**values | settings)

    def _read(self, word: Call, wanted: Any, where: str) -> Any:
        kinds = typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
        kinds = [typing.get_origin(kind) or kind for kind in kinds]
        text = word.name
        if types.NoneType in kinds and text.lower() == "none":
            return None
        if typing.Literal in kinds:
            options = typing.get_args(wanted)
            if text not in options:
                raise UnmaskError(f"{where} cannot be {text!r}: {nearest(text, options)}")
            return text
        for kind, read in _READERS.items():
            if kind in kinds:
                try:
                    return read(text)
                except ValueError:
                    raise UnmaskError(f"{where} takes {_SAID[kind]}, not {text!r}") from None
        return text if str in kinds else self._build(word, {})

    def _look_outside(self) -> None:
        """Entry points of the group `unmask.decoders` (`.models`, `.tasks`, …) register themselves on import."""
        if self._looked_outside:
            return
        self._looked_outside = True
        for point in entry_points(group=f"unmask.{self.plural}"):
            try:
                point.load()
            except Exception as error:  # whatever another package does wrong, ours goes on without it
                log.warning("the %s of %r cannot be used: %s", self.plural, point.value, error)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_READERS: dict[type, Callable[[str], Any]] = {bool: _truth, int: int, float: float}
_SAID = {bool: "true or false", int: "a whole number", float: "a number"}


@dataclasses.dataclass(frozen=True)
class Call:
    """A parsed spec: a name and the settings inside its brackets, each a spec again."""

    name: str
    settings: dict[str, Call]


def parse(text: str) -> Call:
    words = [match.group(1) for match in _TOKEN.finditer(text)]
    call, rest = _parse_call(words, text)
    if rest:
        raise UnmaskError(f"{text!r} does not read as name(key=value, …): {' '.join(rest)!r} is left over")
    return call


def _parse_call(words: list[str], text: str) -> tuple[Call, list[str]]:
    if not words or words[0] in "(),=":
        raise UnmaskError(f"{text!r} does not read as name(key=value, …): a name is missing")
    name, rest = _unquote(words[0]), words[1:]
    settings: dict[str, Call] = {}
    if rest[:1] != ["("]:
        return Call(name, settings), rest
    rest = rest[1:]
    while rest[:1] != [")"]:
        if len(rest) < 3 or rest[1] != "=":
            raise UnmaskError(f"{text!r} does not read as name(key=value, …): each setting is key=value")
        key = rest[0]
        if key in settings:
            raise UnmaskError(f"{text!r} sets {key} twice")
        settings[key], rest = _parse_call(rest[2:], text)
        if rest[:1] == [","]:
            rest = rest[1:]
        elif rest[:1] != [")"]:
            raise UnmaskError(f"{text!r} does not read as name(key=value, …): a bracket or comma is missing")
    return Call(name, settings), rest[1:]


def _unquote(word: str) -> str:
    """Inside quotes a backslash keeps a quote or a backslash; anywhere else it is itself."""
    if len(word) < 2 or word[0] not in "'\"" or word[-1] != word[0]:
        return word
    return re.sub(r"""\\([\\'"])""", r"\1", word[1:-1])
