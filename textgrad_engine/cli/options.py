"""The options that commands share, each described once."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from textgrad_engine.cli import completion
from textgrad_engine.cli.optimizers import NAMES
from textgrad_engine.cli.settings import Budget, ModelPrice
from textgrad_engine.errors import ConfigError
from textgrad_engine.llm.response import MOST_PRICE

ConfigPath = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG",
        help="A folder that holds config.toml, or a .toml file.",
        show_default=False,
        autocompletion=completion.configs,
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
OptimizerName = Annotated[
    str | None,
    typer.Option(
        "--optimizer",
        metavar="NAME",
        help=f"Use this optimizer instead of the config's, with its own defaults: {', '.join(NAMES)}, or module:name.",
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
        help="What each model costs, in US dollars per million tokens, where that is not known: input=0.4,output=1.6; "
        "with ,cached=0.1 where cached input is cheaper.",
    ),
]
BudgetLimit = Annotated[
    float | None,
    typer.Option("--budget", metavar="USD", min=0.0, help="Stop before more than this is spent, in US dollars."),
]
CallsLimit = Annotated[
    int | None,
    typer.Option("--budget-calls", metavar="N", min=1, help="Stop before more calls than this are answered."),
]
TokensLimit = Annotated[
    int | None,
    typer.Option(
        "--budget-tokens", metavar="N", min=1, help="Stop before more tokens than this are used, input and output."
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", help="Seed of the order of the examples and of the models."),
]
RunDir = Annotated[
    Path | None,
    typer.Option(
        "--run-dir", metavar="DIR", help="Where to write the run; a new or empty folder. Default: runs/NAME-N."
    ),
]
UseCache = Annotated[
    bool,
    typer.Option(
        "--cache/--no-cache",
        help="Keep the endpoint's answers on disk, and do not pay again for a request that was answered before.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors and one line at the end.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document to stdout, and nothing else there, also of an error.")
]


def price_of(said: str | None) -> ModelPrice | None:
    """The price that `ModelPrices` gave, if it did.

    Raises:
        ConfigError: it is none.

    Example:
        >>> price_of("input=0.4, output=1.6")
        ModelPrice(input=0.4, cached=None, output=1.6)
    """
    if said is None:
        return None
    given: dict[str, float] = {}
    for part in said.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        if name not in ModelPrice.model_fields or not equals or name in given:
            raise ConfigError(f"--price {said!r}: {_PRICE}; {part.strip()!r} is no part of that")
        try:
            given[name] = float(value)
        except ValueError:
            raise ConfigError(f"--price {said!r}: {name} = {value!r} is no number; {_PRICE}") from None
        if not 0 <= given[name] <= MOST_PRICE:
            raise ConfigError(
                f"--price {said!r}: {name} is dollars per million tokens, a number from 0 to {MOST_PRICE:,}"
            )
    if not {"input", "output"} <= given.keys():
        raise ConfigError(f"--price {said!r}: {_PRICE}; input and output must be there")
    return ModelPrice(**given)


_PRICE = "write dollars per million tokens as input=0.4,cached=0.1,output=1.6"


def limits_of(dollars: float | None, calls: int | None, tokens: int | None) -> Budget:
    """The limits that `BudgetLimit`, `CallsLimit` and `TokensLimit` gave, in the order of [budget].

    Raises:
        ConfigError: one is no number.

    Example:
        >>> limits_of(None, 500, None)
        Budget(dollars=None, calls=500, tokens=None)
    """
    if dollars is not None and not math.isfinite(dollars):
        raise ConfigError(f"--budget {dollars}: name a number of dollars, or leave it out for no limit")
    return Budget(dollars=dollars, calls=calls, tokens=tokens)
