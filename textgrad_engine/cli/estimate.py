"""``textgrad-engine estimate``: what a run of train would cost, before it is paid for."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer

from textgrad_engine.cli import build, runs
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import images_elsewhere, read_data
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.folds import check_shown, jobs_of, parts_for
from textgrad_engine.cli.foresight import foreseen, foreseen_of_folds, shared_with_controls
from textgrad_engine.cli.model_tables import Models
from textgrad_engine.cli.models import make_models
from textgrad_engine.cli.options import (
    BaseUrl,
    BudgetLimit,
    CallsLimit,
    ConfigPath,
    Controls,
    FoldsCount,
    Json,
    JudgeName,
    ModelName,
    ModelPrices,
    NoCritic,
    OptimizerName,
    PromptFiles,
    TokensLimit,
)
from textgrad_engine.cli.output import OK, checking, command, width, write, write_json
from textgrad_engine.cli.prompt_files import begun_with
from textgrad_engine.cli.settings import Budget
from textgrad_engine.cli.spending import limits_in_words, limits_of, price_of, short_of
from textgrad_engine.errors import ConfigError
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.money import money
from textgrad_engine.llm.prices import price_of as cost_of
from textgrad_engine.llm.response import Usage
from textgrad_engine.optim.optimizer import Optimizer
from textgrad_engine.optim.search.searcher import Searcher
from textgrad_engine.optim.search.volume import Range
from textgrad_engine.report.printing import harmless
from textgrad_engine.report.words import duration, plural, short
from textgrad_engine.train.estimate import estimate as estimated
from textgrad_engine.train.estimate import estimate_parts
from textgrad_engine.train.estimated import Estimate
from textgrad_engine.train.fold_parts import Part, waves_of

_TABLE = 70
"""Columns that the table takes."""


@command
def estimate(
    config: ConfigPath,
    model: ModelName = None,
    judge: JudgeName = None,
    base_url: BaseUrl = None,
    price: ModelPrices = None,
    budget: BudgetLimit = None,
    budget_calls: CallsLimit = None,
    budget_tokens: TokensLimit = None,
    optimizer: OptimizerName = None,
    prompt: PromptFiles = None,
    no_critic: NoCritic = False,
    controls: Controls = False,
    folds: FoldsCount = None,
    latency: Annotated[
        float | None,
        typer.Option(
            "--latency",
            metavar="SECONDS",
            min=0,
            help="Seconds that an answer takes, to estimate the time of a search. Default: 1.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Estimate what train would cost, as a range; no model is asked.

    The first examples are put through the program and through the prompts of critic and optimizer, with a placeholder
    for the model, so the size of the requests is real. Some things cannot be known beforehand, such as how many answers
    will be wrong. So the result is a range, from a run that finds nothing to one that buys all that its settings allow.
    Beside it is what is usual, from runs on simulated tasks: it may be off by a factor of two. You are told if a budget
    is less than the usual, as it may end the run early. --latency estimates how long a search takes, if each answer
    takes so long and the endpoint takes all requests at once.
    """
    with checking():
        if latency is not None and not math.isfinite(latency):
            raise ConfigError(f"--latency {latency}: name a number of seconds")
        found = load_config(config, model, judge).with_overrides(
            model=model,
            judge=judge,
            base_url=base_url,
            price=price_of(price),
            limits=limits_of(budget, budget_calls, budget_tokens),
            optimizer=optimizer,
            critic=not no_critic,
        )
        if prompt:
            found = begun_with(found, config, prompt, folds)
        check_shown(found, folds)
        sets, elsewhere = read_data(found), images_elsewhere(found)
        program, metric = build.make_program(found), build.make_metric(found)
        guards = build.make_guards(found, sets[1], sets[0], sets[2])
        models = make_models(found, model, judge=judge, needs_key=False)
        trainer = build.make_trainer(found, guards, controls=controls)
        lowest = min([(each.scale or (0.0, 1.0))[0] for _, each in found.metrics()])

        def of(part: Part) -> Estimate:
            made = build.make_program(found)
            trained = build.make_optimizer(found, made, part.train)
            _check_says_how_much(found, trained)
            examples = part.train, part.val, part.test
            return estimated(trainer, made, metric, trained, *examples, models=models, lowest_score=lowest)

        every, parts = (None, [Part("", *sets)]) if folds is None else parts_for(found, program, sets, folds)
        with build.prompts_of(found):
            limited = any(limit is not None for limit in found.budget.model_dump().values())
            result = estimate_parts(waves_of(parts, jobs_of(found, parts), limited=limited), of)
        if latency is not None and result.waits is None:
            raise ConfigError(
                f"--latency tells the time of a search, and {found.optimizer.name} is none; leave it out, or name a "
                "search with --optimizer"
            )
    of_all = _Found(found, result, len(parts), 1.0 if latency is None else latency)
    if as_json:
        write_json(_as_document(of_all))
    else:
        shown = foreseen(found, program, metric, sets[2])
        if every is not None:
            shown = foreseen_of_folds(found, program, metric, every)
        unpriced = sorted({found.models.roles()[role] for role, each in models.items() if not _is_priced(each)})
        early = _spent_early(found.budget, of_all.below, _limits_at(result, "low"))
        write(_for_people(of_all, unpriced, [early, shared_with_controls(found, controls), elsewhere], shown))
    raise typer.Exit(OK)


@dataclasses.dataclass(frozen=True)
class _Found:
    """An estimate, and what it is of.

    Attributes:
        runs: how many it is of.
        latency: seconds that an answer takes.
    """

    config: Config
    result: Estimate
    runs: int
    latency: float

    @property
    def names(self) -> list[str]:
        """The models that would be asked."""
        models = self.config.models
        return sorted({models.roles().get(purpose, models.forward) for purpose in self.result.calls})

    @property
    def seconds(self) -> Range | None:
        """See `seconds_at`."""
        return seconds_at(self.config.models, self.result)

    @property
    def below(self) -> list[str]:
        """The limits of the budget that are less than what is usual."""
        return short_of(self.config.budget, _limits_at(self.result, "usual"))


def _for_people(found: _Found, unpriced: Sequence[str], cautions: Sequence[str], shown: str) -> str:
    """An estimate as it is printed.

    Args:
        found: the estimate.
        unpriced: the models whose prices nobody knows.
        cautions: what may go otherwise, in sentences; "" for nothing.
        shown: what the test examples can show.
    """
    columns = min(width(), 80)
    parts = [[_table(found, columns, unpriced)]]
    parts.append([line for sentence in cautions for line in textwrap.wrap(sentence, columns)])
    parts.append(textwrap.wrap(shown, columns))
    return harmless("\n\n".join(["\n".join(part) for part in parts if part]))


def _as_document(found: _Found) -> dict[str, Any]:
    """An estimate for machines."""
    config, result, seconds = found.config, found.result, found.seconds
    stated = {name: price.model_dump() for name, price in config.models.prices.items()}
    shown = {"models": found.names, "prices": stated, "runs": found.runs, **dataclasses.asdict(result)}
    shown["seconds"] = None if seconds is None else dataclasses.asdict(seconds)
    if result.waits is not None:
        shown["seconds_waited"] = dataclasses.asdict(result.waits * found.latency)
    shown["budget"] = {**config.budget.model_dump(), "below_usual": found.below}
    return shown


def _is_priced(model: Model) -> bool:
    return cost_of(model, Usage(input_tokens=1, output_tokens=1, calls=1)) is not None


def seconds_at(models: Models, result: Estimate) -> Range | None:
    """How long the limits per minute make a run take at least; None where the config states none."""
    roles = models.roles()
    if not any(models.endpoint(name).rates() for name in roles.values()):
        return None
    ends = []
    for end in ("low", "high", "usual"):
        minutes = []
        for name in roles.values():
            mine = [purpose for purpose in result.calls if roles.get(purpose, models.forward) == name]
            calls = sum(getattr(result.calls[purpose], end) for purpose in mine)
            tokens = sum(
                getattr(part[purpose], end) for purpose in mine for part in (result.input_tokens, result.output_tokens)
            )
            own = models.endpoint(name)
            minutes.append(calls / (own.requests_per_minute or math.inf))
            minutes.append(tokens / (own.tokens_per_minute or math.inf))
        ends.append(60 * max(minutes))
    return Range(*ends)


def _table(found: _Found, columns: int, unpriced: Sequence[str]) -> str:
    """An estimate for people.

    Args:
        found: the estimate.
        columns: the width.
        unpriced: the models whose prices nobody knows.
    """
    result, seconds = found.result, found.seconds
    steps = f"t most {plural(result.steps, 'step')} on {', '.join(found.names)}"
    several = f"{plural(found.runs, 'run')} together, a{steps}"
    lines = textwrap.wrap(f"A{steps}" if found.runs == 1 else several, columns)
    if result.assumed:
        lines += textwrap.wrap(f"(if {result.assumed})", columns)
    parts = [result.calls, result.input_tokens, result.output_tokens]
    sums = [sum(part.values(), Range()) for part in parts]
    rows = [(purpose, [_ends(part[purpose]) for part in parts]) for purpose in sorted(result.calls)]
    rows.append(("all", [_ends(found) for found in sums]))
    rows.append(("usually", [short(round(found.usual)) for found in sums]))
    lines += ["", *_rows(rows, columns)]
    unknown = f"unknown: nobody knows the price of {' and '.join(unpriced)}; --price states it"
    cost = unknown if result.dollars is None else _told(result.dollars, money)
    lines += ["", *_beside("cost", cost, columns)]
    for each in (f"(reasoning tokens come on top; tokens: {result.counted})", *runs.prices_in_words(found.config)):
        lines += _beside("", each, columns)
    if result.waits is not None:
        at = f"{_told(result.waits * found.latency, duration)} at {found.latency:g} s an answer"
        lines += ["", *_beside("waiting", f"{at}, if the endpoint takes all requests at once", columns)]
    if seconds is not None:
        at = f"{_told(seconds, duration)} at the limits per minute of [models], or more"
        lines += ["", *_beside("time", at, columns)]
    return "\n".join(lines)


def _beside(name: str, text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, columns, initial_indent=f"{name:12}", subsequent_indent=12 * " ")


def _check_says_how_much(config: Config, optimizer: Optimizer) -> None:
    """Refuse a search of the user's own of which nothing can be estimated.

    Raises:
        ConfigError: it has no `volume`.
    """
    if isinstance(optimizer, Searcher) and type(optimizer).volume is Searcher.volume:
        config.fail(
            f"[optimizer] name = {config.optimizer.name!r}: {type(optimizer).__name__} does not say how much it will "
            "do, so there is no estimate; give it a method volume(sizes), as in docs/extending.md, or train with "
            "--budget or --budget-calls",
            "optimizer",
            "name",
        )


def _limits_at(result: Estimate, end: str) -> Budget:
    """A budget that has room for one end of what is estimated."""
    calls, tokens = (
        sum((each for part in parts for each in part.values()), Range())
        for parts in ([result.calls], [result.input_tokens, result.output_tokens])
    )
    dollars = None if result.dollars is None else getattr(result.dollars, end)
    return Budget.model_construct(dollars=dollars, calls=getattr(calls, end), tokens=getattr(tokens, end))


def _spent_early(budget: Budget, low: Sequence[str], least: Budget) -> str:
    """That limits are below what is usual, and whether they are below the least that a run takes; "" where none is."""
    if not low:
        return ""
    room = f"The budget has room for {limits_in_words(budget, low)}, which is less than usual"
    if not (short := short_of(budget, least)):
        return f"{room}: it may end the run early."
    takes = Budget.model_construct(
        dollars=least.dollars, calls=math.floor(least.calls or 0), tokens=math.floor(least.tokens or 0)
    )
    return f"{room}, and a run takes {limits_in_words(takes, short)} at the least: it will end early."


def _told(found: Range, word: Callable[[float], str]) -> str:
    """A range in words, with what is usual."""
    return f"{word(found.low)} to {word(found.high)}, usually {word(found.usual)}"


def _ends(found: Range) -> str:
    return f"{short(round(found.low))} to {short(round(found.high))}"


def _rows(rows: list[tuple[str, list[str]]], columns: int) -> Iterator[str]:
    """A table with a row for each name, or where there is no room for it, its parts below the name."""
    names = ("calls", "input tokens", "output tokens")
    if columns >= _TABLE:
        for name, shown in [("", list(names)), *rows]:
            yield f"{name:12}{shown[0]:>18}{shown[1]:>20}{shown[2]:>20}"
        return
    for name, shown in rows:
        yield name
        yield from [f"  {part:15}{value:>20}" for part, value in zip(names, shown)]
