"""`unmask list` describes every setting, at any width."""

import dataclasses

from unmask.cli.list import KINDS, entry_lines, registered_entries
from unmask.describe import class_fields, source_constant, source_fields

ENTRIES = [entry for kind in KINDS for entry in registered_entries(kind)]


def test_every_setting_has_a_meaning():
    missing = [(entry["name"], each["name"]) for entry in ENTRIES for each in entry["settings"] if not each["meaning"]]
    assert missing == []


def test_a_field_on_several_lines_keeps_its_comment_and_a_base_class_lends_its_own():
    @dataclasses.dataclass
    class Base:
        first: int = 1  # from the base

    @dataclasses.dataclass
    class Wrapped(Base):
        first: int = 2
        second: tuple[str, ...] = dataclasses.field(
            default_factory=lambda: ("a", "b"),
        )  # on two lines
        third: str = "x"  # in parentheses

    comments = {name: text.comment for name, text in class_fields(Wrapped).items()}
    assert comments == {"first": "from the base", "second": "on two lines", "third": "in parentheses"}


def test_a_class_is_read_without_importing_it():
    sandbox = source_fields("unmask.cli.options", "TaskOptions")["sandbox"]
    assert (sandbox.choices, sandbox.default) == (("namespaces", "rlimits"), None)
    assert source_constant("unmask.cli.options", "MODEL") == "tiny"


def test_the_choices_of_a_setting_are_listed():
    (ots,) = [entry_lines(entry) for entry in ENTRIES if entry["name"] == "order-token-search"]
    assert "(score or majority)" in ots
