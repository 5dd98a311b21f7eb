"""``train --folds``: every example tests once, and a prompt is trained on all of them.

The folder of such a run holds ``folds.json``, and a run folder for each fold and for the final run.
"""

from __future__ import annotations

import json
import logging
import textwrap
import time
from pathlib import Path
from typing import Any, NoReturn

import typer

from textgrad_engine import report
from textgrad_engine.cli import build, runs, way_on
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.output import WRONG, checking, colors, complain, say, width, write, write_json
from textgrad_engine.cli.progress import progress_for
from textgrad_engine.cli.running import CODES, Job, refusing_changes
from textgrad_engine.cli.way_on import how_it_ended
from textgrad_engine.data import Dataset, ids_of
from textgrad_engine.data.load import check_reach
from textgrad_engine.errors import ConfigError, RunError
from textgrad_engine.llm.cache import Cache
from textgrad_engine.report.words import cost, plural
from textgrad_engine.store import FOLDS, FORMAT, FinishedRun, Run, RunFolder, read_run, typed, write_atomically
from textgrad_engine.store.files import unwritable
from textgrad_engine.store.records import dumps
from textgrad_engine.train import CrossValidation, TrainResult
from textgrad_engine.train.crossval import Part, fit_parts, parts_of, pooled
from textgrad_engine.train.evaluator import clusters_of
from textgrad_engine.train.splits import clusters_of_equals
from textgrad_engine.train.statistics import minimum_detectable_effect

__all__ = ["begun_with", "carry_out_folds", "end_folds", "folds_in", "parts_for", "read_folds", "unended"]


def folds_in(path: Path) -> int | None:
    """Of how many folds the cross-validation in a folder is; None where there is none.

    Raises:
        RunError: the file that says so was damaged.
        OSError: the folder cannot be looked into.
    """
    check_reach(path)
    return _kept(path)["folds"] if (path / FOLDS).is_file() else None


def read_folds(path: Path) -> CrossValidation:
    """The cross-validation in a folder, as far as its runs have a result.

    Raises:
        RunError: a file is missing or damaged.
    """
    kept = _kept(path)
    done = [
        (Part(name, (), (), None if name == _FINAL else ()), result)
        for name in _names(kept["folds"])
        if (path / name / "events.jsonl").is_file() and (result := read_run(path / name).result) is not None
    ]
    return pooled(done, kept["ids"], kept["clusters"], sum(result.seconds for _, result in done))


def unended(path: Path) -> str:
    """What became of the run that a cross-validation was at, and what goes on with it; "" where all have a result.

    Raises:
        RunError: a file was damaged.
    """
    way_on = f"`textgrad-engine resume {typed(path)}` goes on with it."
    for name in _names(_kept(path)["folds"]):
        if not (path / name / "events.jsonl").is_file():
            return f"It was ended before {path / name} was begun. {way_on}"
        found = read_run(path / name)
        if found.result is None:
            error = f" ({found.error})" if found.error else ""
            what = f"The run in {path / name} {how_it_ended(found)}{error}"
            return f"{what}." if found.locked else f"{what}. What it used is not counted here. {way_on}"
        if found.result.status == "interrupted" or found.result.shortage:
            return ""
    return ""


def begun_with(path: Path) -> Run:
    """The first run of a cross-validation, which says how all of them were begun.

    Raises:
        RunError: it was not begun.
    """
    first = path / _names(1)[0]
    if not (first / "config.json").is_file():
        raise RunError(f"{path}: nothing was asked, as it was ended before its first fold; begin it anew with `train`")
    return read_run(first)


_FINAL = "final"


def _names(folds: int) -> list[str]:
    """The names of the runs, in the order in which they are made."""
    return [*(f"fold-{number + 1}" for number in range(folds)), _FINAL]


def _kept(path: Path) -> dict[str, Any]:
    """What is known of a cross-validation besides its runs.

    Raises:
        RunError: the file was damaged.
    """
    try:
        kept = json.loads((path / FOLDS).read_bytes())
        return {"folds": int(kept["folds"]), "ids": list(kept["ids"]), "clusters": list(kept["clusters"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path / FOLDS}: was damaged ({error}); restore it") from None


def parts_for(config: Config, job: Job, folds: int) -> tuple[Dataset, list[Part]]:
    """All examples of a config's files together, and what each run works with.

    Raises:
        ConfigError: they cannot be dealt to so many folds, or the config has guards.
    """
    if config.guards.never_break or config.guards.floors:
        config.fail("[guards] are about validation examples, and every fold has others; take them out", "guards")
    every = Dataset([*job.train, *(() if job.val is job.train else job.val), *(job.test or ())])
    try:
        return every, parts_of(job.program, every, folds=folds, seed=config.seed, clusters=config.data.clusters)
    except ValueError as error:
        raise ConfigError(f"--folds {folds}: {error}") from None


def carry_out_folds(
    config: Config,
    job: Job,
    path: Path,
    way: runs.Way,
    *,
    folds: int,
    name: str,
    cache: Cache | None,
    quiet: bool,
    anyway: bool = False,
) -> CrossValidation:
    """Train and test fold by fold, then train on all examples; what is in the folder already is not paid for again.

    Args:
        config: of the run.
        job: what it works with.
        path: where it is written down.
        way: how it was begun.
        folds: how many.
        name: what it is called.
        cache: where answers are kept, if anywhere.
        quiet: show nothing.
        anyway: where a run goes on, pay for what has changed or is gone.
    """
    every, parts = parts_for(config, job, folds)
    names = clusters_of(every, config.data.clusters) if config.data.clusters else clusters_of_equals(job.program, every)
    with checking():
        _keep(path, {"format": FORMAT, "folds": folds, "ids": list(ids_of(every)), "clusters": list(names)})
    say("\n".join([f"{name}: {plural(folds, 'fold')} of {plural(len(every), 'example')}", f"Folder: {path}"]), quiet)
    if config.metric.kind == "exact_match":
        least = minimum_detectable_effect(len(set(names)) or len(every), discordance=0.2)
        units = f"{plural(len(every), 'example')}{f' in {len(set(names))} clusters' if names else ''} together"
        seen = f"{units} show a true difference of {least:.2g} 4 times in 5, where a fifth of the answers change."
        say("\n".join(textwrap.wrap(seen, 80)), quiet)
    logging.getLogger("textgrad_engine.train.splits").addHandler(logging.NullHandler())  # the progress says the same
    began = time.monotonic()

    def fit(part: Part) -> TrainResult:
        say("\nall examples" if part.test is None else f"\n{part.name.replace('-', ' ')} of {folds}", quiet)
        program = build.make_program(config)
        optimizer = build.make_optimizer(config, program, part.train, feedback=way.feedback)
        with checking():
            folder = _folder_of(config, path / part.name, part, way, anyway)
        with progress_for(quiet) as progress, refusing_changes(folder):
            trainer = build.make_trainer(config, None, controls=way.controls, callbacks=(folder, *progress))
            return trainer.fit(program, job.metric, optimizer, part.train, part.val, part.test)

    with build.surroundings(config, job.models, cache=cache):
        done = fit_parts(parts, fit)
    return pooled(done, ids_of(every), names, time.monotonic() - began)


def _keep(path: Path, known: dict[str, Any]) -> None:
    """Write down what is known of a cross-validation, or see that it is what was known when it was begun.

    Raises:
        RunError: it is not, or cannot be written.
    """
    if (path / FOLDS).is_file():
        kept = _kept(path)
        if any(kept[key] != known[key] for key in kept):
            raise RunError(f"{path}: it had other examples or clusters; put data and config back as they were")
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_atomically(path / FOLDS, dumps(known, indent=2) + b"\n")
    except OSError as error:
        raise RunError(f"{unwritable(error, path)}; name another place") from None


def _folder_of(config: Config, path: Path, part: Part, way: runs.Way, anyway: bool) -> RunFolder | FinishedRun:
    """The run folder of a part: a new one, one that goes on, or one that is finished."""
    splits = {"train": part.train, "val": part.val, "test": part.test}
    described = runs.describe(
        config, path, {key: None if rows is None else Dataset(rows) for key, rows in splits.items()}, way
    )
    if (path / "events.jsonl").is_file():
        found = read_run(path)
        if found.config is not None and found.config.get("digests") != described["digests"]:
            raise RunError(f"{path}: this run had other examples; put data and config back as they were")
        if found.result is not None and found.result.status == "finished":
            return FinishedRun(found)
        return RunFolder(path, config=described, resume=True, anyway=anyway)
    return RunFolder(path, config=described)


def end_folds(found: CrossValidation, path: Path, *, quiet: bool, as_json: bool) -> NoReturn:
    """Print a result, and end the command with its exit code.

    Raises:
        typer.Exit: always.
    """
    if as_json:
        write_json({"run": str(path), **report.folds_as_json(found)})
    elif quiet:
        total = found.total
        write(f"{path}: {report.folds_in_a_line(found)}; {plural(total.calls, 'call')}, {cost(total.dollars)}")
    else:
        write("\n" + report.render_folds(found, title=str(path), width=width(), color=colors()))
        complain(report.folds_in_a_line(found))
        if found.final is not None:
            complain(f"The final prompt is in {way_on.best_files(path / 'final', found.final.best)}")
    if found.status != "finished":
        larger = ", with a larger --budget, --budget-calls or --budget-tokens" if found.status == "budget" else ""
        say(f"`textgrad-engine resume {typed(path)}` goes on with it{larger}.", quiet or as_json)
    if any(each.shortage for each in found.runs):
        raise typer.Exit(WRONG)
    raise typer.Exit(CODES[found.status])
