"""The command line: one application, one way to end. Each command is a file of its own name beside this one."""

import json
import os
import sys
import typing
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from unmask.cli import boundary as edge
from unmask.errors import UnmaskError, nearest
from unmask.version import __version__

HELPS = {"-h", "--help"}

app = typer.Typer(
    name="unmask",
    cls=edge.Edge,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": sorted(HELPS)},
)


def _show_version(asked: bool) -> bool:
    if asked:
        typer.echo(f"unmask {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Decode masked diffusion language models by searching over order and tokens."""
    del version


# With the first sentence of their help, so that they can be listed without being imported.
COMMANDS = {
    "bench": "Measure the published loops and this package's decoders in turn, on the same weights and prompts.",
    "demo": "Compare low-confidence remasking, the paper's search and ours on Countdown problems: answers and cost.",
    "env": "Show versions, device, determinism, sandbox and data, to report what ran where.",
    "eval": "Evaluate a grid of models, tasks, decoders, lengths and seeds into a folder, which can be resumed.",
    "export": "Write the records of runs as one flat table: CSV, JSON lines or Parquet.",
    "fill": "Fill the gaps of a text, each written `<mask:n>` for n tokens.",
    "generate": "Answer a prompt, or each prompt of a file.",
    "grade": "Grade a file of outputs and print the accuracy.",
    "list": "List what is registered, with settings and defaults.",
    "lm-eval": "Run lm-evaluation-harness on a model of this package (pip install 'unmask[lm-eval]').",
    "models": "Look into checkpoints, or make random ones.",
    "report": "Tables, plots and pages of runs.",
    "reproduce": "Run the paper's experiments, by default on the embedded model, and print our figures beside the "
    "paper's.",
    "score": "Score texts after a prompt: the log-likelihood of each.",
    "serve": "Serve models over HTTP by OpenAI's interface, many requests decoded together.",
    "train": "Train a model of the LLaDA family on the generated tasks.",
    "tree": "Show the tree of a search: every candidate with its score and parent, and whether it was kept.",
    "view": "Make a page that plays traces: rows, order, confidence, the search and its cost, step by step.",
}
HELP = Path(__file__).with_name("help.json")  # the --help of each command, by its words; written by `make docs`


class LazyCommand(TyperCommand):
    """A command whose file, and with it torch, is imported when it is used; its help needs no import."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        name = self.name or ""
        if not extra.get("resilient_parsing") and not HELPS.isdisjoint(args) and (text := _known_help([name, *args])):
            typer.echo(text)
            raise typer.Exit
        _load(name)
        return typer.main.get_group(app).commands[name].make_context(info_name, args, parent, **extra)


def _load(name: str) -> None:
    import_module(f"unmask.cli.{name.replace('-', '_')}")


def _known_help(words: list[str]) -> str | None:
    """Of the command named by both words, as in `models inspect`, or by the first, as in `list decoders`."""
    known: dict[str, str] = json.loads(HELP.read_text(encoding="utf-8")) if HELP.exists() else {}
    return known.get(" ".join(words[:2])) or known.get(words[0])


def commands() -> TyperGroup:
    """All commands, not imported yet."""
    group = typing.cast(TyperGroup, typer.main.get_command(app))  # with the options of shell completion
    for name, sentence in COMMANDS.items():
        group.add_command(LazyCommand(name=name, help=sentence))
    return group


def whole() -> TyperGroup:
    """All commands, imported."""
    for name in COMMANDS:
        _load(name)
    return typer.main.get_group(app)


def main() -> None:
    """Bad input ends with one sentence on standard error and exit code 2; only answers go to standard output."""
    command = commands()
    try:
        edge.prepare_streams()
        edge.check_words(sys.argv[1:])
        code = command.main(prog_name="unmask", standalone_mode=False)
        sys.stdout.flush()  # a full disk is noticed here, and not while Python ends
    except UnmaskError as error:
        _end(_refuse(str(error)))
    except edge.Interrupted as error:
        _refuse(str(error))
        _end(130)
    except (edge.PipeClosed, BrokenPipeError):
        _end(141)
    except Exception as error:
        # Depending on its version, typer brings its own click or the real one: its errors are told by their methods.
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message(), file=sys.stderr)  # pyright: ignore[reportAttributeAccessIssue]
            _end(2)
        sentence = _sentence(error, command) if hasattr(error, "format_message") else edge.explain(error)
        if sentence is None or os.environ.get(edge.TRACEBACK):
            raise
        _end(_refuse(sentence))
    sys.exit(code if isinstance(code, int) else 0)


def _end(code: int) -> NoReturn:
    """What standard output could not take is dropped, so that Python does not complain of it while it ends."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _refuse(sentence: str) -> int:
    print(f"unmask: {' '.join(sentence.split())}", file=sys.stderr)
    return 2


def _remedy(type: str, msg: str, **_: Any) -> str:
    """For what pydantic found wrong with a number."""
    wanted = {"int": "give a whole number", "float": "give a number"}
    return wanted.get(type.partition("_")[0]) or f"choose a value {msg.removeprefix('Input should be ')}"


def _setting(option: str, context: Any) -> str | None:
    """Where an option that a command lacks is a setting of decoders."""
    if all(each.name != "decoder" for each in context.command.params):
        return None
    from unmask.runs.settings import decoder_with  # the command has loaded torch by now

    name = option.lstrip("-").replace("-", "_")
    decoder = decoder_with(name)
    return decoder and f"{option} is a setting of decoders: write --decoder '{decoder}({name}=…)'"


def _sentence(error: Any, command: Any) -> str:
    """Click's sentence; our own for a misspelt command, and for a word where a number is wanted."""
    text = error.format_message()
    if wrong := getattr(error.__cause__, "errors", list)():  # of pydantic, by which typer reads numbers
        return f"{max(error.param.opts, key=len)} {wrong[0]['input']!r} does not work: {_remedy(**wrong[0])}"
    if text.startswith("No such option") and (hint := _setting(error.option_name, error.ctx)):
        return hint
    if text.startswith("No such command"):
        wrong = text.split("'")[1]
        group = getattr(getattr(error, "ctx", None), "command", command)  # the one whose command was misspelt
        return f"no command {wrong!r}: {nearest(wrong, group.commands)}"
    return text or "a command is missing: see unmask --help"
