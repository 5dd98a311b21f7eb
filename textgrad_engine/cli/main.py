"""``textgrad-engine``: the program's commands."""

from __future__ import annotations

import sys
from typing import Annotated, ClassVar

import typer

from textgrad_engine.cli.commands import Command, Commands
from textgrad_engine.cli.output import epilog, epilog_of_reading, version, width
from textgrad_engine.cli.streams import ending, open_streams

_CACHE = "--cache takes no folder, TEXTGRAD_CACHE_DIR in the environment names one"


class _Program(Commands):
    all: ClassVar = {
        "init": Command(
            "textgrad_engine.cli.init",
            epilog_of_reading(wrong="wrong usage or data, or a file is in the way"),
            "init",
            {"allow_extra_args": True},  # a table behind the folder is told where it goes
        ),
        "train": Command(
            "textgrad_engine.cli.train",
            epilog(),
            "train",
            behind=f"another run folder is named by --run-dir, a prompt by --prompt; {_CACHE}",
        ),
        "resume": Command("textgrad_engine.cli.resume", epilog(), "resume", behind=_CACHE),
        "eval": Command(
            "textgrad_engine.cli.evaluate",
            epilog(
                spent="the score of what was answered was printed",
                interrupted="the score of what was answered was printed, unless Ctrl-C was pressed twice",
                also="4 the score is below --at-least, or worse where --not-worse was asked, or with either a floor is "
                "not reached; ",
            ),
            "evaluate",
            behind=f"examples are named by --data FILE, a prompt by --prompt FILE; {_CACHE}",
        ),
        "compare": Command(
            "textgrad_engine.cli.compare",
            epilog(
                spent="what was answered was compared",
                interrupted="what was answered was compared, unless Ctrl-C was pressed twice",
                also="4 --not-worse was asked, and another one is worse than the first, has fewer answers or misses a "
                "floor; ",
            ),
            "compare",
            behind="another config is named by --config, a prompt or run by --prompt, "
            "a model by --model; once for each",
        ),
        "estimate": Command(
            "textgrad_engine.cli.estimate", epilog_of_reading(wrong="wrong usage, config or data"), "estimate"
        ),
        "show": Command(
            "textgrad_engine.cli.show",
            epilog_of_reading(
                failed="an error while running, or the run has no result: what is known is shown",
                also="4 not shown to be better, or a floor not reached, where --exit-code was asked; ",
            ),
            "show",
        ),
        "calls": Command("textgrad_engine.cli.calls", epilog_of_reading(), "calls"),
        "diff": Command("textgrad_engine.cli.diff", epilog_of_reading(), "diff"),
        "report": Command(
            "textgrad_engine.cli.report", epilog_of_reading(), "report", behind="the page is named by --out FILE"
        ),
        "shrink": Command(
            "textgrad_engine.cli.shrink",
            epilog(
                spent="what was found until then was printed and written; "
                "nothing was if the whole prompt could not be validated",
                interrupted="the same command goes on",
            ),
            "shrink",
            behind=_CACHE,
        ),
    }


app = typer.Typer(
    name="textgrad-engine",
    cls=_Program,
    help="Make LLM prompts better from examples, and prove it on held-out data.",
    epilog=epilog(
        also="4 the score of eval is below --at-least, or worse where --not-worse was asked, or show --exit-code was "
        "asked of a run that was not shown to be better, or with one of these a floor is not reached; "
    ),
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_PANELS = 60
"""Columns below which help is not put into panels, which would leave no room for words."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"textgrad-engine {version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command that the arguments name."""
    open_streams()
    narrow = width() if width() < _PANELS else None
    if narrow:
        app.rich_markup_mode = None
    # Completion goes by the name, also with ``python -m``.
    sys.exit(ending(lambda: app(prog_name=app.info.name, terminal_width=narrow)))
