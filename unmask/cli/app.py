"""The command line: every command, registered in one application."""

from typing import Annotated, Any

import typer

from unmask.cli import boundary
from unmask.cli.bench import bench
from unmask.cli.demo import demo
from unmask.cli.eval import eval_, grade, lm_eval
from unmask.cli.generate import fill, generate, score
from unmask.cli.list import env, list_
from unmask.cli.models import inspect, random, train
from unmask.cli.options import option
from unmask.cli.report import export, report, tree, view
from unmask.cli.reproduce import reproduce
from unmask.cli.serve import serve
from unmask.version import __version__

COMMANDS = (bench, demo, env, eval_, export, fill, generate, grade, list_, lm_eval, report, reproduce, score, serve)
COMMANDS += (train, tree, view)
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}  # lm-eval passes other options to the harness

app = typer.Typer(
    name="unmask",
    cls=boundary.CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for command in COMMANDS:
    name = command.__name__.strip("_").replace("_", "-")
    app.command(name, context_settings=PASS_ON if command is lm_eval else None)(command)
models = typer.Typer(name="models", help="Inspect checkpoints, or write random ones.", no_args_is_help=True)
models.command()(inspect)
models.command()(random)
app.add_typer(models)


def _show_version(asked: bool) -> bool:
    if asked:
        typer.echo(f"unmask {__version__}")
        raise typer.Exit
    return asked


Version = Annotated[bool, option("Show the version and exit.", "--version", callback=_show_version, is_eager=True)]


@app.callback()
def root(version: Version = False) -> None:
    """Decode masked diffusion language models by searching over order and tokens."""


def commands() -> Any:
    """Return the group of all commands, with the options of shell completion."""
    return typer.main.get_command(app)


def main() -> None:
    """Run `unmask`. Only answers go to standard output; bad input ends with one sentence and exit code 2."""
    boundary.run(commands())
