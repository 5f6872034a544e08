"""What needs no model is answered before torch is loaded, in the same words."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from unmask.cli.app import COMMANDS, HELP, commands, whole

ASK = """
import sys
sys.argv = ["unmask", *{words!r}]
from unmask.cli import main
try:
    main()
except SystemExit as ended:
    print("ended", ended.code)
print("loaded", "torch" in sys.modules)
"""


def ask(*words: str, code: str = ASK) -> str:
    """A process of its own: this one has loaded everything."""
    ran = subprocess.run([sys.executable, "-c", code.format(words=words)], capture_output=True, text=True, check=True)
    return ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--help"], 0, "Answer a prompt, or each"),
        (["--version"], 0, "unmask 0."),
        (["list", "decoders"], 0, "order-token-search (ots)"),
        (["list", "models", "--json"], 0, "GSAI-ML/LLaDA-8B-Instruct"),
        ([], 2, "Usage: unmask [OPTIONS] COMMAND"),
        (["genrate"], 2, "did you mean 'generate'?"),
        (["--version-of-what"], 2, "No such option"),
        (["list", "decoders", "--help"], 0, "unmask list models --json"),
        (["generate", "-h"], 0, "Usage: unmask generate [OPTIONS]"),
        (["models", "--help"], 0, "inspect"),
        (["models", "inspect", "--help"], 0, "Say what a checkpoint is"),
    ],
)
def test_help_and_misspelt_commands_do_not_load_torch(words: list[str], code: int, said: str):
    shown = ask(*words)
    assert said in shown
    assert f"ended {code}" in shown
    assert "loaded False" in shown


def test_a_command_that_is_used_loads_what_it_needs():
    assert "loaded True" in ask("models", "inspect", "tiny")


def test_grading_does_not_load_torch():
    shown = ask("grade", "--task", "gsm8k", "--data", "nowhere", "x")
    assert "there is no data folder nowhere" in shown
    assert "loaded False" in shown


def test_every_command_is_waiting_under_its_own_first_sentence():
    loaded = whole().commands
    assert loaded.keys() == COMMANDS.keys()
    for name, sentence in COMMANDS.items():
        assert loaded[name].get_short_help_str(limit=300) == sentence
    assert list(COMMANDS) == sorted(COMMANDS)


def test_no_commands_file_is_forgotten():
    """A command's file says so in its first line."""
    folder = HELP.parent
    firsts = [re.match(r'"""`unmask ([a-z-]+)`', path.read_text("utf-8")) for path in sorted(folder.glob("*.py"))]
    named = {first[1] for first in firsts if first and Path(folder, f"{first[1].replace('-', '_')}.py").exists()}
    assert named == COMMANDS.keys()


def test_every_command_has_its_help_at_hand():
    known = json.loads(HELP.read_text("utf-8"))
    for name, command in whole().commands.items():
        assert name in known
        assert {f"{name} {inner}" for inner in getattr(command, "commands", {})} <= known.keys()


COMPLETE = """
import sys
from unmask.cli.app import commands
group = commands()
top = group.make_context("unmask", [], resilient_parsing=True)
print(*(item.value for item in group.shell_complete(top, {words[0]!r})))
print("loaded", "torch" in sys.modules)
"""


def test_commands_are_completed_without_loading_them():
    shown = ask("g", code=COMPLETE)
    assert shown.splitlines() == ["generate grade", "loaded False"]


def test_options_are_completed_as_if_the_command_had_not_waited():
    group = commands()
    top = group.make_context("unmask", [], resilient_parsing=True)
    name, command, rest = group.resolve_command(top, ["generate", "abc"])
    assert command is not None
    context = command.make_context(name, rest, parent=top, resilient_parsing=True)
    assert [item.value for item in context.command.shell_complete(context, "--le")] == ["--length"]
