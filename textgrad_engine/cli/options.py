"""The options that commands share, each described once."""

from __future__ import annotations

import math
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
        help="Show where the best prompt is better and where worse: test scores by the value in a column, such "
        "as the answer.",
        autocompletion=completion.columns,
    ),
]
Repeats = Annotated[
    int,
    typer.Option("--repeats", metavar="N", min=1, help="Run each example N times; its score is the mean."),
]
ClustersColumn = Annotated[
    str | None,
    typer.Option(
        "--clusters", metavar="COLUMN", help="A column that says which examples belong together (clusters), if any do."
    ),
]
FrontNumber = Annotated[
    int | None,
    typer.Option(
        "--front",
        metavar="N",
        min=1,
        help="Use text N of the front instead of the best prompt. The front, numbered in the report, has the "
        "texts that no other beats in length, score and metrics at once.",
    ),
]
Controls = Annotated[
    bool,
    typer.Option(
        "--controls",
        help="Also run two controls: rewrites without feedback, and random edits. Each gets at most as many "
        "calls as the optimizer used. This about triples the calls; a budget is shared among the three.",
    ),
]
NoCritic = Annotated[
    bool,
    typer.Option(
        "--no-critic",
        help="Ask no critic: the optimizer reads the wrong answers itself. That takes fewer calls, and longer "
        "requests to the optimizer.",
    ),
]
FoldsCount = Annotated[
    int | None,
    typer.Option(
        "--folds",
        metavar="K",
        min=2,
        help="Cross-validate, if there are few examples: cut all of the config's examples into K parts, test "
        "each with a prompt trained on the others, then train on all. This takes about K + 1 times the "
        "calls.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        help="Of --folds, have at most N runs go on at once. Default: all of them, as that takes about the time of one "
        "(of two with a budget, as the last run gets what the others leave); but 1 if the config names code of your "
        "own, which may not be made for several threads.",
        show_default=False,
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
        help="Use this model for everything, e.g. openai/gpt-5-mini. It replaces the config's models and their "
        "context size.",
    ),
]
JudgeName = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="NAME",
        help="Use this model as the judge, if a metric asks one. With --model, that model does everything else.",
    ),
]
PromptFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--prompt",
        metavar="FILE",
        help="Begin with the text in a file instead of the config's, e.g. the best prompt of another run. If "
        "there are several texts: NAME=FILE, once for each.",
    ),
]
MaxMinutes = Annotated[
    float | None,
    typer.Option(
        "--max-minutes",
        metavar="MINUTES",
        help="End the search in time for validation and test to fit into so many minutes. Calls in flight are "
        "waited for. Each run of --folds gets as many minutes, and --controls take theirs on top.",
    ),
]
OptimizerName = Annotated[
    str | None,
    typer.Option(
        "--optimizer",
        metavar="NAME",
        help=f"Use this optimizer instead of the config's: {', '.join(NAMES)}, or module:name. It has its own "
        "default settings; only the config's contracts stay.",
        autocompletion=completion.optimizers,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="An OpenAI-compatible endpoint, e.g. http://localhost:11434/v1 for Ollama. The config's headers are"
        " sent only to the config's own endpoint.",
    ),
]
ModelPrices = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="PRICE",
        help="The price of models whose price is not known, in US dollars per million tokens: "
        "input=0.4,output=1.6; add ,cached=0.1 if cached input is cheaper. If all prices are known, it "
        "replaces them.",
    ),
]
_APART = re.compile(r"\d{1,3}(,\d{3})+")


def dollars(text: str) -> float:
    """An amount of money, also as messages print it: with its sign, and with cents its thousands apart.

    Raises:
        typer.BadParameter: it is none, or less than 0; or it has a comma that may be that of thousands or of cents.

    Example:
        >>> dollars("2.5"), dollars("$1,200.50")
        (2.5, 1200.5)
    """
    plain = text.strip().removeprefix("$").strip()
    whole, point, cents = plain.partition(".")
    try:
        value = float(f"{whole.replace(',', '')}.{cents}" if point and _APART.fullmatch(whole) else plain)
    except ValueError:
        value = math.nan
    if value >= 0:
        return value
    write = ""
    if meant := re.fullmatch(r"(\d*),(\d+)", plain):
        thousands = f"{plain.replace(',', '')} or " if _APART.fullmatch(plain) else ""
        write = f"; write {thousands}{meant[1] or 0}.{meant[2]}"
    raise typer.BadParameter(f"{text!r} is no number of dollars from 0 up{write}")


BudgetLimit = Annotated[
    float | None,
    typer.Option("--budget", metavar="USD", parser=dollars, help="Spend at most this, in US dollars."),
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


CallsLimit = Annotated[
    int | None,
    typer.Option(
        "--budget-calls",
        metavar="N",
        parser=at_least_one,
        help="Stop before more than N calls are answered.",
    ),
]
TokensLimit = Annotated[
    int | None,
    typer.Option(
        "--budget-tokens",
        metavar="N",
        parser=at_least_one,
        help="Use at most N tokens, input and output together.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        help="Seed of everything random, such as the order of the examples, and of simulated models. Default: "
        "the config's. It is not sent to endpoints.",
    ),
]
RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run-dir", metavar="DIR", help="Where to write the run; a new or empty folder. Default: runs/NAME-N."
    ),
]
_CACHE = "Keep the endpoint's answers on disk, and do not pay twice for the same request."
UseCache = Annotated[bool, typer.Option("--cache/--no-cache", help=_CACHE)]
AddCache = Annotated[bool, typer.Option("--cache", help=_CACHE)]
"""Without the opposite, which takes a column of its own from the help of many options."""
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors, and one line at the end.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document to stdout and nothing else, also after an error.")
]
