"""Named classes that users choose from, and their one text form: `name(key=value, …)`."""

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
Class = TypeVar("Class", bound=type)  # a decorated class keeps its own type, so its settings are known
log = logging.getLogger("unmask")
_TOKEN = re.compile(r"""\s*([(),=]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s(),=]+)""", re.DOTALL)
ADDED = "added"  # in a field's metadata: at its default the setting is left out, so that older text forms stay the same
_registries: list[Registry[Any]] = []


class Registry(Generic[T]):
    """Frozen dataclasses by kebab-case name, from this package and from others through entry points."""

    def __init__(self, kind: str, plural: str | None = None):
        self.kind, self.plural = kind, plural or f"{kind}s"
        self._classes: dict[str, type[T]] = {}
        self._aliases: dict[str, str] = {}
        self._plugins_loaded = False
        _registries.append(self)

    def __call__(self, name: str, *aliases: str) -> Callable[[Class], Class]:
        """Decorator: `@decoder("threshold")` above a frozen dataclass."""

        def add(cls: Class) -> Class:
            for label in (name, *aliases):
                if label in self._classes or label in self._aliases:
                    raise UnmaskError(f"{self.kind} name {label!r} is already registered")
            self._classes[name] = typing.cast(type[T], cls)
            self._aliases |= dict.fromkeys(aliases, name)
            return cls

        return add

    def __iter__(self) -> Iterator[str]:
        self._load_plugins()
        return iter(sorted(self._classes))

    def aliases(self, name: str) -> list[str]:
        return [alias for alias, target in self._aliases.items() if target == name]

    def find(self, name: str) -> type[T]:
        if name not in self._classes and name not in self._aliases:
            self._load_plugins()
        name = self._aliases.get(name, name)
        if name not in self._classes:
            raise UnmaskError(f"unknown {self.kind} {name!r}: {nearest(name, [*self._classes, *self._aliases])}")
        return self._classes[name]

    def name(self, value: object) -> str:
        for name, cls in self._classes.items():
            if type(value) is cls:
                return name
        raise UnmaskError(f"{type(value).__name__} is not a registered {self.kind}")

    def make(self, spec: str | T, **settings: Any) -> T:
        """The object a spec such as `ots(beams=4)` names; an object passes through."""
        if not isinstance(spec, str):
            return dataclasses.replace(spec, **settings) if settings else spec  # type: ignore[type-var]
        return self._build(parse(spec), settings)

    def coerce(self, owner: object, *names: str) -> None:
        """Replace fields of a frozen dataclass that were given as text by the objects that the text names."""
        for name in names:
            if isinstance(given := getattr(owner, name), str):
                object.__setattr__(owner, name, self.make(given))

    def spec(self, value: T) -> str:
        """The text form of an object, every setting written out, unless it was added later and is at its default."""
        settings = ", ".join(
            f"{field.name.replace('_', '-')}={self.text(getattr(value, field.name))}"
            for field in dataclasses.fields(value)  # type: ignore[arg-type]
            if not (field.metadata.get(ADDED) and getattr(value, field.name) == field.default)
        )
        return f"{self.name(value)}({settings})" if settings else self.name(value)

    def text(self, value: Any) -> str:
        """A setting's value as it is written in a spec."""
        if dataclasses.is_dataclass(value):
            return self._registry_of(type(value)).spec(value)
        if isinstance(value, bool) or value is None:
            return str(value).lower()
        if isinstance(value, str) and not re.fullmatch(r"[^\s(),='\"]+", value):
            return "'" + re.sub(r"([\\'])", r"\\\1", value) + "'"
        return str(value)

    def _build(self, call: Call, settings: dict[str, Any]) -> T:
        cls = self.find(call.name)
        hints = typing.get_type_hints(cls)
        fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        values: dict[str, Any] = {}
        for key, value in call.settings.items():
            key = key.replace("-", "_")
            if key not in fields:
                hint = nearest(key, fields) if fields else "it has no settings"
                raise UnmaskError(f"{self.kind} {call.name!r} has no setting {key!r}: {hint}")
            values[key] = self._read(value, hints[key], f"{call.name}({key}=…)")
        values |= settings
        for key, field in fields.items():
            if key not in values and field.default is field.default_factory is dataclasses.MISSING:
                raise UnmaskError(f"{self.kind} {call.name!r} needs {key}=…")
        return cls(**values)

    def _read(self, value: Call, hint: Any, where: str) -> Any:
        kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        kinds = [typing.get_origin(kind) or kind for kind in kinds]
        text = value.name
        if types.NoneType in kinds and text.lower() == "none":
            return None
        plain = next((kind for kind in (typing.Literal, *_READERS) if kind in kinds), None)
        if plain is None:
            return self._registry_of(kinds[0])._build(value, {})
        if value.settings:
            raise UnmaskError(f"{where} takes a plain value, not '{text}({next(iter(value.settings))}=…)'")
        if plain is typing.Literal:
            options = typing.get_args(hint)
            if text not in options:
                raise UnmaskError(f"{where} cannot be {text!r}: {nearest(text, options)}")
            return text
        read, description = _READERS[plain]
        try:
            return read(text)
        except ValueError:
            raise UnmaskError(f"{where} takes {description}, not {text!r}") from None

    def _registry_of(self, kind: Any) -> Registry[Any]:
        """The registry whose classes are of this kind: this one where it has any, or where none has."""
        for registry in (self, *_registries):
            if any(kind in cls.__mro__ for cls in registry._classes.values()):
                return registry
        return self

    def _load_plugins(self) -> None:
        """Entry points of the group `unmask.decoders` (`.models`, `.tasks`) register themselves on import."""
        if self._plugins_loaded:
            return
        self._plugins_loaded = True
        for point in entry_points(group=f"unmask.{self.plural}"):
            try:
                point.load()
            except Exception as error:  # a broken plug-in must not break the package
                log.warning("the %s of %r cannot be used: %s", self.plural, point.value, error)


def _read_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _read_int(text: str) -> int:
    """In ASCII digits: Python's own reader takes digits of every script, and underscores between them."""
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(text)
    if len(text) > 20 or abs(int(text)) >= 2**63:
        raise UnmaskError(f"{text[:24]}{'…' * (len(text) > 24)} is too large: whole numbers end at 2^63")
    return int(text)


def _read_float(text: str) -> float:
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    return float(text)


_READERS: dict[Any, tuple[Callable[[str], Any], str]] = {
    bool: (_read_bool, "true or false"),
    int: (_read_int, "a whole number"),
    float: (_read_float, "a number"),
    str: (str, "text"),
}


@dataclasses.dataclass(frozen=True)
class Call:
    """A parsed spec: a name and the settings inside its brackets, each a spec again."""

    name: str
    settings: dict[str, Call]


def parse(text: str) -> Call:
    tokens = [match.group(1) for match in _TOKEN.finditer(text)]
    call, rest = _parse_call(tokens, text)
    if rest:
        raise UnmaskError(f"{text!r} does not read as name(key=value, …): {' '.join(rest)!r} is left over")
    return call


def _parse_call(tokens: list[str], text: str) -> tuple[Call, list[str]]:
    if not tokens or tokens[0] in "(),=":
        raise UnmaskError(f"{text!r} does not read as name(key=value, …): a name is missing")
    name, rest = _unquote(tokens[0]), tokens[1:]
    settings: dict[str, Call] = {}
    if rest[:1] != ["("]:
        return Call(name, settings), rest
    rest = rest[1:]
    while rest[:1] != [")"]:
        if not rest:
            raise UnmaskError(f"{text!r} does not read as name(key=value, …): a closing parenthesis is missing")
        if len(rest) < 3 or rest[1] != "=":
            raise UnmaskError(f"{text!r} does not read as name(key=value, …): each setting is key=value")
        key = rest[0]
        if key in settings:
            raise UnmaskError(f"{text!r} sets {key} twice")
        settings[key], rest = _parse_call(rest[2:], text)
        if rest[:1] == [","]:
            rest = rest[1:]
        elif rest and rest[0] != ")":
            raise UnmaskError(f"{text!r} does not read as name(key=value, …): a comma is missing before {rest[0]!r}")
    return Call(name, settings), rest[1:]


def _unquote(token: str) -> str:
    """Inside quotes a backslash escapes a quote or a backslash; elsewhere it is a plain character."""
    if len(token) < 2 or token[0] not in "'\"" or token[-1] != token[0]:
        return token
    return re.sub(r"""\\([\\'"])""", r"\1", token[1:-1])
