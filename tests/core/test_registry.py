"""Specs: one text form, read back to the same object, and refusals that name the nearest right word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import unmask.decoders  # noqa: F401  registers
from unmask.core import decoder
from unmask.errors import UnmaskError
from unmask.registry import Registry

thing: Registry[object] = Registry("thing")


@thing("plain-thing", "pt")
@dataclass(frozen=True)
class Thing:
    count: int = 1
    share: float = 0.5
    loud: bool = False
    name: str = "none given"
    most: int | None = None
    mood: Literal["glad", "sad"] = "glad"


@thing("wrapper")
@dataclass(frozen=True)
class Wrapper:
    times: int
    inner: object = Thing()


part: Registry[object] = Registry("part")


@part("wheel")
@dataclass(frozen=True)
class Wheel:
    size: int = 1


@thing("cart")
@dataclass(frozen=True)
class Cart:
    wheel: Wheel | None = None


@thing("bare")
@dataclass(frozen=True)
class Bare:
    pass


def test_an_alias_is_the_thing_itself():
    assert thing.make("pt(count=3)") == Thing(count=3)
    assert thing.aliases("plain-thing") == ["pt"]
    assert list(thing) == ["bare", "cart", "plain-thing", "wrapper"]


def test_settings_are_read_by_their_types_and_dashes_are_underscores():
    value = thing.make("plain-thing( count = 2, share=1e-3, loud=true, name='a, b', most=none, mood=sad )")
    assert value == Thing(2, 0.001, True, "a, b", None, "sad")


def test_objects_pass_through_and_settings_can_be_added():
    assert thing.make(Thing(), count=7) == Thing(count=7)
    assert thing.make("plain-thing(share=0.1)", count=7) == Thing(count=7, share=0.1)


WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)  # what a spec may hold


@given(
    st.builds(
        Thing,
        count=WHOLE,
        share=st.floats(allow_nan=False),
        loud=st.booleans(),
        name=st.text(),
        most=st.none() | WHOLE,
        mood=st.sampled_from(["glad", "sad"]),
    )
)
def test_a_spec_reads_back_to_the_same_object(value: Thing):
    assert thing.make(thing.spec(value)) == value


def test_specs_nest():
    value = Wrapper(2, Wrapper(3, Thing(name="x y")))
    assert thing.make("wrapper(times=2, inner=wrapper(times=3, inner=pt(name='x y')))") == value
    assert thing.make(thing.spec(value)) == value
    assert thing.spec(Bare()) == "bare"


def test_a_nested_spec_of_another_kind_is_built_by_its_own_registry():
    assert thing.make("cart(wheel=wheel(size=3))") == Cart(Wheel(3))
    assert thing.make("cart(wheel=none)") == Cart()
    assert thing.spec(Cart(Wheel(3))) == "cart(wheel=wheel(size=3))"


@pytest.mark.parametrize("name", list(decoder))
def test_every_decoder_reads_back_from_its_own_spec(name: str):
    default = decoder.make(name)
    assert decoder.make(decoder.spec(default)) == default


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("plain-thign", "unknown thing 'plain-thign': did you mean 'plain-thing'?"),
        ("zzz", "unknown thing 'zzz': known: bare, cart, plain-thing, pt, wrapper"),
        ("pt(cuont=1)", "thing 'pt' has no setting 'cuont': did you mean 'count'?"),
        ("bare(x=1)", "thing 'bare' has no setting 'x': it has no settings"),
        ("pt(count=many)", "pt(count=…) takes a whole number, not 'many'"),
        ("pt(share=much)", "pt(share=…) takes a number, not 'much'"),
        ("pt(loud=perhaps)", "pt(loud=…) takes true or false, not 'perhaps'"),
        ("pt(mood=mad)", "pt(mood=…) cannot be 'mad': did you mean 'sad'?"),
        ("pt(count=4(x=1))", "pt(count=…) takes a plain value, not '4(x=…)'"),
        ("pt(name=a(b=1))", "pt(name=…) takes a plain value, not 'a(b=…)'"),
        ("pt(mood=sad(x=1, y=2))", "pt(mood=…) takes a plain value, not 'sad(x=…)'"),
        ("cart(wheel=bare)", "unknown part 'bare': known: wheel"),
        ("wrapper", "thing 'wrapper' needs times=…"),
        ("pt(count=1, count=2)", "'pt(count=1, count=2)' sets count twice"),
        ("", "'' does not read as name(key=value, …): a name is missing"),
        ("pt(count)", "'pt(count)' does not read as name(key=value, …): each setting is key=value"),
        ("pt(count=1", "'pt(count=1' does not read as name(key=value, …): a closing parenthesis is missing"),
        ("pt(count=1))", "'pt(count=1))' does not read as name(key=value, …): ')' is left over"),
        ("pt x", "'pt x' does not read as name(key=value, …): 'x' is left over"),
    ],
)
def test_specs_that_do_not_read_are_refused(spec: str, sentence: str):
    with pytest.raises(UnmaskError) as refusal:
        thing.make(spec)
    assert str(refusal.value) == sentence


def test_two_things_cannot_share_a_name():
    fresh: Registry[object] = Registry("thing")
    fresh("one", "uno")(Bare)
    with pytest.raises(UnmaskError, match="thing name 'uno' is already registered"):
        fresh("uno")(Thing)


def test_an_object_that_is_not_registered_has_no_name():
    with pytest.raises(UnmaskError, match="int is not a registered thing"):
        thing.name(3)
