"""The command line: every command, registered in one application."""

from typing import Annotated, Any

import typer

from unmask.cli import boundary
from unmask.cli.bench import bench
from unmask.cli.demo import demo
from unmask.cli.env import env
from unmask.cli.eval import eval_, grade, lm_eval
from unmask.cli.generate import fill, generate, score
from unmask.cli.list import list_
from unmask.cli.models import inspect, random, train
from unmask.cli.report import export, report, tree, view
from unmask.cli.reproduce import reproduce
from unmask.cli.serve import serve
from unmask.version import __version__

COMMANDS = {
    "bench": bench,
    "demo": demo,
    "env": env,
    "eval": eval_,
    "export": export,
    "fill": fill,
    "generate": generate,
    "grade": grade,
    "list": list_,
    "lm-eval": lm_eval,
    "report": report,
    "reproduce": reproduce,
    "score": score,
    "serve": serve,
    "train": train,
    "tree": tree,
    "view": view,
}
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}  # lm-eval passes other options to the harness

app = typer.Typer(
    name="unmask",
    cls=boundary.CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for name, command in COMMANDS.items():
    app.command(name, context_settings=PASS_ON if name == "lm-eval" else None)(command)
models = typer.Typer(name="models", help="Inspect checkpoints, or write random ones.", no_args_is_help=True)
models.command()(inspect)
models.command()(random)
app.add_typer(models)


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


def commands() -> Any:
    """Return the group of all commands, with the options of shell completion."""
    return typer.main.get_command(app)


def main() -> None:
    """Run `unmask`. Only answers go to standard output; bad input ends with one sentence and exit code 2."""
    boundary.run(commands())
