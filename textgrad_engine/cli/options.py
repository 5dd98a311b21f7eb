"""The options that commands share, each described once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from textgrad_engine.cli import completion
from textgrad_engine.cli.optimizer_names import NAMES

ConfigPath = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG",
        help="A folder that holds config.toml, or a .toml file.",
        show_default=False,
        autocompletion=completion.configs,
    ),
]
ByColumn = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="COLUMN",
        help="Where the best prompt is better, and where worse: scores on the test examples by their value in a "
        "column, such as the answer.",
        autocompletion=completion.columns,
    ),
]
Repeats = Annotated[
    int,
    typer.Option("--repeats", metavar="N", min=1, help="Run each example so often; its score is the mean."),
]
ClustersColumn = Annotated[
    str | None,
    typer.Option(
        "--clusters", metavar="COLUMN", help="The column that says which examples belong together, if any do."
    ),
]
FrontNumber = Annotated[
    int | None,
    typer.Option(
        "--front",
        metavar="N",
        min=1,
        help="Text N of the front instead of the best prompt: of those that none beats in length, score or a metric, "
        "which the report numbers.",
    ),
]
Controls = Annotated[
    bool,
    typer.Option(
        "--controls",
        help="Also give a rewrite without feedback and random edits at most as many calls as the optimizer used, "
        "and show them beside its result. This about triples the calls; a budget is shared among the three.",
    ),
]
NoCritic = Annotated[
    bool,
    typer.Option(
        "--no-critic",
        help="Ask no critic: the optimizer reads the wrong answers themselves. Fewer calls, and longer requests to it.",
    ),
]
FoldsCount = Annotated[
    int | None,
    typer.Option(
        "--folds",
        metavar="K",
        min=2,
        help="Where there are few examples: cut all of the config's examples into K parts, test each with a prompt "
        "trained on the others, then train on all of them. This takes about K + 1 times the calls.",
    ),
]
RunPath = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="A run folder that train wrote, e.g. runs/tickets-1.",
        show_default=False,
        autocompletion=completion.run_folders,
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Use this model for everything, e.g. openai/gpt-5-mini, instead of the config's models and their context.",
    ),
]
JudgeName = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="NAME",
        help="Have this model judge, where a metric asks one; with --model, that does all else.",
    ),
]
PromptFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--prompt",
        metavar="FILE",
        help="Begin with the text in a file instead of the config's, such as the best one of another run; of several "
        "texts NAME=FILE, once for each.",
    ),
]
MaxMinutes = Annotated[
    float | None,
    typer.Option(
        "--max-minutes",
        metavar="MINUTES",
        help="Begin no step that would leave too little of so many minutes for validation and test; what is under way "
        "is waited for. Each run of --folds has as many, and --controls come on top.",
    ),
]
OptimizerName = Annotated[
    str | None,
    typer.Option(
        "--optimizer",
        metavar="NAME",
        help=f"Use this optimizer instead of the config's: {', '.join(NAMES)}, or module:name. Its own defaults hold; "
        "only what new texts must keep stays as in the config.",
        autocompletion=completion.optimizers,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="An OpenAI-compatible endpoint, e.g. http://localhost:11434/v1 for Ollama. The config's headers are "
        "for its own, and not sent to another.",
    ),
]
ModelPrices = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="PRICE",
        help="What models cost whose price is not known, in US dollars per million tokens: input=0.4,output=1.6; "
        "with ,cached=0.1 where cached input is cheaper. Where all are known, it takes their place.",
    ),
]
BudgetLimit = Annotated[
    float | None,
    typer.Option("--budget", metavar="USD", min=0.0, help="Stop before more than this is spent, in US dollars."),
]


def at_least_one(text: str) -> int:
    """A whole number, also as messages print it, with its thousands apart.

    Raises:
        typer.BadParameter: it is none, or less than 1.

    Example:
        >>> at_least_one("1,014")
        1014
    """
    try:
        value = int(text.replace(",", "") if _APART.fullmatch(text) else text)
    except ValueError:
        value = 0
    if value < 1:
        raise typer.BadParameter(f"{text!r} is no whole number from 1 up")
    return value


_APART = re.compile(r"\d{1,3}(,\d{3})+")

CallsLimit = Annotated[
    int | None,
    typer.Option(
        "--budget-calls",
        metavar="N",
        parser=at_least_one,
        help="Stop before more calls than this are answered.",
    ),
]
TokensLimit = Annotated[
    int | None,
    typer.Option(
        "--budget-tokens",
        metavar="N",
        parser=at_least_one,
        help="Stop before more tokens than this are used, input and output.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        help="Seed of all that is drawn, such as the order of the examples, and of simulated models. Default: the "
        "config's. It is not sent to endpoints.",
    ),
]
RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run-dir", metavar="DIR", help="Where to write the run; a new or empty folder. Default: runs/NAME-N."
    ),
]
_CACHE = "Keep the endpoint's answers on disk, and do not pay again for a request that was answered before."
UseCache = Annotated[bool, typer.Option("--cache/--no-cache", help=_CACHE)]
AddCache = Annotated[bool, typer.Option("--cache", help=_CACHE)]
"""Without the opposite, which takes a column of its own from the help of many options."""
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors and one line at the end.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document to stdout, and nothing else there, also of an error.")
]
