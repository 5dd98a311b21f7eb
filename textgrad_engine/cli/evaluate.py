"""``textgrad-engine eval``: use what a run found on a dataset, and say how good it is there."""

from __future__ import annotations

import contextlib
import math
import textwrap
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from textgrad_engine.cli import build, runs
from textgrad_engine.cli.config import Config, check_columns
from textgrad_engine.cli.options import (
    BaseUrl,
    BudgetLimit,
    CallsLimit,
    Json,
    ModelName,
    Quiet,
    RunPath,
    TokensLimit,
    limits_of,
)
from textgrad_engine.cli.output import (
    BUDGET_SPENT,
    INTERRUPTED,
    TOO_LOW,
    checking,
    command,
    complain,
    width,
    write,
    write_json,
)
from textgrad_engine.cli.progress import score_bar
from textgrad_engine.data import Dataset, load
from textgrad_engine.errors import BudgetExceeded, RunError
from textgrad_engine.llm.response import Usage
from textgrad_engine.llm.usage import meter
from textgrad_engine.report.document import evaluation_as_json, usage_as_json
from textgrad_engine.report.view import lost, size
from textgrad_engine.report.words import cost, count, duration, interval, plural, score
from textgrad_engine.slots import composed
from textgrad_engine.store import Run, append_evaluation, read_run
from textgrad_engine.train import Evaluation
from textgrad_engine.train.evaluator import attempt, scale_of
from textgrad_engine.train.interrupt import stopping_on_interrupt
from textgrad_engine.train.scores import ALIKE

__all__ = ["evaluate"]


@command
def evaluate(
    run: RunPath,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FILE", help="The examples (.jsonl, .json, .csv). Default: the run's test split."
        ),
    ] = None,
    seed_prompt: Annotated[
        bool, typer.Option("--seed-prompt", help="Evaluate the prompt as it was before the run, not the best one.")
    ] = False,
    shrunk: Annotated[
        bool, typer.Option("--shrunk", help="Evaluate the short prompt that shrink wrote, not the best one.")
    ] = False,
    repeats: Annotated[
        int,
        typer.Option("--repeats", metavar="N", min=1, help="Run each example so often; its score is the mean."),
    ] = 1,
    clusters: Annotated[
        str | None,
        typer.Option(
            "--clusters", metavar="COLUMN", help="The column that says which examples belong together, if any do."
        ),
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(
            "--at-least",
            metavar="SCORE",
            help="End with exit code 4 where the mean score is less. What was not answered counts as the lowest score.",
        ),
    ] = None,
    model: ModelName = None,
    base_url: BaseUrl = None,
    budget: BudgetLimit = None,
    budget_calls: CallsLimit = None,
    budget_tokens: TokensLimit = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Evaluate the best prompt of a run: mean score with its 95% interval.

    Models, metric and seed are those of the run's config; its [budget] was the run's, and does not hold here: the
    options do. Each time the test split is opened, that is counted. Where the budget is spent, or after Ctrl-C, the
    score is that of what was answered, with what the rest could make of it.
    """
    with checking():
        found = read_run(run)
        prompt, texts = _texts(found, seed_prompt=seed_prompt, shrunk=shrunk)
        limits = limits_of(budget, budget_calls, budget_tokens)
        config = runs.changed(runs.config_of(found, texts), model=model, base_url=base_url, limits=limits)
        path, dataset = _dataset(config, data)
        if clusters is not None:
            dataset.require(clusters := composed(clusters))
        elif config.data.clusters in dataset.columns:
            clusters = config.data.clusters
        program = build.make_program(config)
        runs.load_texts(program, texts, found.path)
        metric = build.make_metric(config)
        if at_least is not None:
            _check_least(at_least, (0.0, 1.0) if config.metric.kind == "exact_match" else scale_of(metric))
        models = build.make_models(config, model)
        build.check_prices(config, models, budget)
        with build.prompts_of(config):
            pass
        about = {
            "data": str(path) if data is not None else config.data.test,
            "split": runs.split_of(found, dataset),
            "rows": runs.rows_of_splits(found, dataset),
            "digest": runs.digest_of(dataset),
            "prompt": prompt,
            "models": config.models.roles(),
            "seed": config.seed,
        }
        append_evaluation(found.path, {"event": runs.EVALUATION_STARTED, **about})
    began = time.monotonic()
    with (
        build.surroundings(config, models),
        meter() as used,
        score_bar(len(dataset) * repeats, quiet or as_json) as on_score,
        stopping_on_interrupt(),
    ):
        evaluation, ended = attempt(
            program,
            dataset,
            metric,
            target=config.data.target,
            repeats=repeats,
            clusters=clusters,
            on_score=on_score,
        )
    spent = isinstance(ended, BudgetExceeded)
    entry = {
        **about,
        "status": "finished" if ended is None else "budget" if spent else "interrupted",
        **(evaluation_as_json(evaluation) or {}),
        "usage": usage_as_json(used.total),
        "seconds": round(time.monotonic() - began, 3),
    }
    openings = runs.openings(found) + 1 if runs.opens_test(entry) else None
    with contextlib.ExitStack() as stack:  # what cannot be written is printed all the same
        stack.callback(append_evaluation, found.path, {"event": runs.EVALUATION_ENDED, **entry})
        if evaluation is not None:
            _print(found, entry, evaluation, used.total, openings, quiet=quiet, as_json=as_json)
    if ended is None:
        if at_least is not None and evaluation is not None and (fell := _short_of(evaluation, at_least)):
            complain(fell)
            raise typer.Exit(TOO_LOW)
        return
    if spent and evaluation is None:
        raise ended
    answered = 0 if evaluation is None else len(evaluation.answered)
    complain(f"{ended if spent else 'interrupted'}; {answered} of {plural(len(dataset), 'example')} got a score")
    raise typer.Exit(BUDGET_SPENT if spent else INTERRUPTED)


def _texts(run: Run, *, seed_prompt: bool, shrunk: bool) -> tuple[str, dict[str, str]]:
    """Which texts of a run are evaluated, in a word, and the texts by name.

    Raises:
        RunError: two were asked for, or they are not there.
    """
    if seed_prompt and shrunk:
        raise RunError("--seed-prompt and --shrunk name two prompts; leave one of them out")
    if shrunk:
        return "shrunk", run.shrunk()
    return ("seed", run.seed) if seed_prompt else ("best", run.best)


def _dataset(config: Config, data: Path | None) -> tuple[Path, Dataset]:
    if data is None and config.data.test is None:
        raise RunError("the run's config names no test split; name a file with --data FILE")
    path = data if data is not None else config.file(config.data.test or "")
    dataset = load(path)
    check_columns(config, dataset)
    return path, dataset


def _print(
    run: Run,
    entry: dict[str, Any],
    evaluation: Evaluation,
    used: Usage,
    openings: int | None,
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    measured = f"{score(evaluation.mean)} {interval(evaluation.interval)}"
    if as_json:
        scores = [
            {"id": name, "score": value, "prediction": said}
            for name, value, said in zip(evaluation.ids, evaluation.scores, evaluation.predictions)
        ]
        for item, samples in zip(scores, evaluation.samples):
            item["samples"] = samples
        write_json({"run": str(run.path), **entry, "test_openings": openings, "scores": scores})
    elif quiet:
        write(f"{run.path}: {entry['prompt']} prompt {measured} on {entry['data']}")
    else:
        where = _shared(entry, runs.SPLITS, "the run's") or "no split of the run"
        lines = [
            "",
            f"{run.path}: {entry['prompt']} prompt on {entry['data']} ({where})",
            "",
            f"  score   {measured}   {size(evaluation)}",
            *_spread(evaluation),
            f"  model   {', '.join(dict.fromkeys(entry['models'].values()))}",
            f"  used    {_used(used)}, {duration(entry['seconds'])}",
            *_remarks(entry, evaluation, openings),
        ]
        write("\n".join(lines))


def _check_least(least: float, scale: tuple[float, float] | None) -> None:
    """Refuse a least score that no score can tell anything about.

    Raises:
        RunError: it is no number, or not among the scores that there can be.
    """
    low, high = scale or (-math.inf, math.inf)
    if not math.isfinite(least) or not low <= least <= high:
        raise RunError(f"--at-least {least:g}: give a score from {low:g} to {high:g}, as the run's metric has them")


def _short_of(evaluation: Evaluation, least: float) -> str:
    """What is said of a score that is too low; "" of one that is not."""
    lost = evaluation.unanswered
    at_worst = evaluation.mean if not lost else -math.inf if evaluation.bounds is None else evaluation.bounds[0]
    if at_worst >= least - ALIKE:
        return ""
    if math.isinf(at_worst):
        return f"{plural(lost, 'answer')} missing, so the score may be below --at-least {least:g}"
    counted = f", with the lowest score for {plural(lost, 'missing answer')}" if lost else ""
    return f"the score {score(at_worst)} is below --at-least {least:g}{counted}"


def _shared(entry: Mapping[str, Any], splits: Collection[str], whose: str) -> str:
    """What the data has of some of the run's splits, in words; "" where it has nothing."""
    if entry["split"] in splits:
        return f"{whose} {runs.SPLITS[entry['split']]} split"
    rows = {name: number for name, number in entry["rows"].items() if name in splits}
    return " and ".join(
        [f"{plural(number, 'row')} of {whose} {runs.SPLITS[name]} split" for name, number in rows.items()]
    )


def _used(used: Usage) -> str:
    return f"{plural(used.calls, 'call')}, {count(used.total_tokens)} tokens, {cost(used.dollars)}"


def _spread(evaluation: Evaluation) -> Iterator[str]:
    """What repeats tell: whether more of them or more examples would make the score more certain."""
    if (spread := evaluation.spread) is not None:
        between, within = (math.sqrt(variance) for variance in spread)
        yield f"  spread  {score(between)} from example to example, {score(within)} from sample to sample"


def _remarks(entry: dict[str, Any], evaluation: Evaluation, openings: int | None) -> Iterator[str]:
    """What a reader must know to judge the score."""
    remarks = []
    if evaluation.unanswered:
        remarks.append(lost(evaluation))
    if openings is not None:
        times = "once so far" if openings == 1 else f"{openings} times so far, by the run and by eval"
        remarks.append(
            f"The test split was opened {times}. The more often one looks at it and then chooses, the more its score "
            "flatters."
        )
    if entry["prompt"] != "seed" and (worked := _shared(entry, ("train", "val"), "its")):
        remarks.append(f"The run worked with {worked}, so this score flatters the prompt.")
    for remark in remarks:
        yield ""
        yield from textwrap.wrap(remark, min(width(), 100), initial_indent="  ", subsequent_indent="  ")
