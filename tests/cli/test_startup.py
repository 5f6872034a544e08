"""Help, lists and misspelt words are answered without loading torch."""

import subprocess
import sys

import pytest

from unmask.cli.app import COMMANDS, commands

RUN = """
import sys
sys.argv = ["unmask", *{words!r}]
from unmask.cli import main
try:
    main()
except SystemExit as ended:
    print("ended", ended.code)
print("loaded", "torch" in sys.modules)
"""
COMPLETE = """
import sys
from unmask.cli.app import commands
group = commands()
top = group.make_context("unmask", [], resilient_parsing=True)
print(*(item.value for item in group.shell_complete(top, {words[0]!r})))
print("loaded", "torch" in sys.modules)
"""


def run(*words: str, code: str = RUN) -> str:
    """Run in a separate process: this one has loaded torch."""
    ran = subprocess.run([sys.executable, "-c", code.format(words=words)], capture_output=True, text=True, check=True)
    return ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        (["--help"], 0, "Answer a prompt, or each"),
        (["--version"], 0, "unmask 0."),
        (["list", "decoders"], 0, "order-token-search (ots)"),
        (["list", "models", "--json"], 0, "GSAI-ML/LLaDA-8B-Instruct"),
        ([], 2, "Usage: unmask [OPTIONS] COMMAND"),
        (["genrate"], 2, "did you mean 'generate'?"),
        (["--version-of-what"], 2, "No such option"),
        (["generate", "-h"], 0, "Usage: unmask generate [OPTIONS]"),
        (["eval", "--help"], 0, "--engine"),
        (["bench", "--help"], 0, "--sweep"),
        (["serve", "--help"], 0, "--max-body"),
        (["models", "inspect", "--help"], 0, "Describe a checkpoint"),
        (["eval", "--engine", "lcal"], 2, "did you mean 'local'?"),
        (["serve", "--engine", "lcal"], 2, "did you mean 'local'?"),
        (["grade", "--task", "gsm8k", "--data", "nowhere", "x"], 2, "nowhere"),
    ],
)
def test_help_lists_and_grading_do_not_load_torch(words: list[str], code: int, shown: str):
    output = run(*words)
    assert shown in output
    assert f"ended {code}" in output
    assert "loaded False" in output


def test_a_command_that_runs_loads_torch():
    assert "loaded True" in run("models", "inspect", "tiny")


def test_commands_are_completed_without_loading_torch():
    assert run("g", code=COMPLETE).splitlines() == ["generate grade", "loaded False"]


def test_every_command_and_option_has_help():
    group = commands()
    assert len(group.commands) == len(COMMANDS) + 1
    for name, command in group.commands.items():
        assert command.help, name
        for each in [*getattr(command, "commands", {}).values(), command]:
            assert [option.name for option in each.params if not getattr(option, "help", None)] in ([], ["context"])


def test_choices_are_shown_in_the_help(command):
    _, text, _ = command("eval", "--help")
    assert all(choices in text for choices in ("local|ray", "ours|d1", "namespaces|rlimits"))
