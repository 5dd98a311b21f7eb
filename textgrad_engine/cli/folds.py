"""``train --folds``: every example tests once, and a prompt is trained on all of them.

The folder of such a run holds ``folds.json``, and a run folder for each fold and for the final run.
"""

from __future__ import annotations

import json
import logging
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer

from textgrad_engine import report
from textgrad_engine.cli import build, runs, way_on
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.output import FAILED, WRONG, checking, colors, complain, say, width, write, write_json
from textgrad_engine.cli.progress import progress_for
from textgrad_engine.cli.run_data import digest_of, looks_at
from textgrad_engine.cli.running import CODES, Job, refusing_changes
from textgrad_engine.data import Dataset, ids_of
from textgrad_engine.data.load import check_reach
from textgrad_engine.errors import ConfigError, RunError
from textgrad_engine.llm.cache import Cache
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.view import looked_at_before
from textgrad_engine.report.words import cost, plural
from textgrad_engine.store import FOLDS, FORMAT, FinishedRun, Run, RunFolder, read_run, typed, write_atomically
from textgrad_engine.store.files import unwritable
from textgrad_engine.store.records import dumps
from textgrad_engine.train import CrossValidation, TrainResult
from textgrad_engine.train.crossval import Part, fit_parts, parts_of, pooled
from textgrad_engine.train.evaluator import clusters_of
from textgrad_engine.train.splits import clusters_of_equals
from textgrad_engine.train.statistics import minimum_detectable_effect

__all__ = ["carry_out_folds", "check_as_before", "end_folds", "first_of", "folds_in", "parts_for", "show_folds"]


def folds_in(path: Path) -> int | None:
    """Of how many folds the cross-validation in a folder is; None where there is none.

    Raises:
        RunError: the file that says so was damaged.
        OSError: the folder cannot be looked into.
    """
    check_reach(path)
    return _kept(path)["folds"] if (path / FOLDS).is_file() else None


def first_of(path: Path) -> Run:
    """The first run of the cross-validation in a folder, whose config is that of all.

    Raises:
        RunError: there is none, or it was damaged.
    """
    if not all((path / "fold-1" / name).is_file() for name in ("config.json", "events.jsonl")):
        raise RunError(
            f"{path}: no fold was begun and nothing was paid for, so there is nothing to go on with; remove the "
            f"folder, and begin with `textgrad-engine train CONFIG --folds {folds_in(path)}`"
        )
    return read_run(path / "fold-1")


def _read(path: Path) -> tuple[CrossValidation, list[str]]:
    """The cross-validation in a folder, as far as its runs have a result, and the names of those that have none.

    Raises:
        RunError: a file is missing or damaged.
    """
    kept = _kept(path)
    done, missing = [], []
    for name in [*(f"fold-{number + 1}" for number in range(kept["folds"])), "final"]:
        result = read_run(path / name).result if (path / name / "events.jsonl").is_file() else None
        if result is None:
            missing.append(name)
        else:
            done.append((Part(name, (), (), None if name == "final" else ()), result))
    try:
        return pooled(done, kept["ids"], kept["clusters"], sum(result.seconds for _, result in done)), missing
    except (LookupError, ValueError):
        raise RunError(f"{path / FOLDS}: it names other examples than the folds have; restore it") from None


def _kept(path: Path) -> dict[str, Any]:
    """What is known of a cross-validation besides its runs.

    Raises:
        RunError: the file was damaged.
    """
    try:
        kept = json.loads((path / FOLDS).read_bytes())
        before = int(kept.get("looks_before", 0))
        return {
            "folds": int(kept["folds"]),
            "ids": list(kept["ids"]),
            "clusters": list(kept["clusters"]),
            "looks_before": before,
        }
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


def check_as_before(path: Path, every: Dataset, parts: Sequence[Part]) -> None:
    """Check that the examples are those that a cross-validation was begun with.

    Raises:
        RunError: they were changed; or a file is missing or damaged.
    """
    same = _kept(path)["ids"] == list(ids_of(every))
    for part in parts:
        if same and (path / part.name / "events.jsonl").is_file():
            splits = {"train": part.train, "val": part.val, "test": part.test}
            digests = {name: digest_of(Dataset(rows)) for name, rows in splits.items() if rows is not None}
            config = read_run(path / part.name).config
            same = config is None or config.get("digests") == digests  # killed before it could be written
    if not same:
        raise RunError(f"{path}: these are not the examples that it was begun with; put data and config back")


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
    if not (path / FOLDS).is_file():
        before = looks_at(every, path)
        kept = {"format": FORMAT, "folds": folds, "ids": ids_of(every), "clusters": names, "looks_before": before}
        with checking():
            _keep(path, kept)
    about = [f"{name}: {plural(folds, 'fold')} of {plural(len(every), 'example')}", f"Folder: {path}"]
    say("\n".join([*about, *runs.prices_in_words(config)]), quiet)
    if config.metric.kind == "exact_match":
        least = minimum_detectable_effect(len(set(names)) or len(every), discordance=0.2)
        units = f"{plural(len(every), 'example')}{f' in {len(set(names))} clusters' if names else ''} together"
        seen = f"{units} show a true difference of {least:.2g} 4 times in 5, where a fifth of the answers change."
        say("\n".join(textwrap.wrap(seen, 80)), quiet)
    if before := _kept(path)["looks_before"]:
        say("\n".join(textwrap.wrap(looked_at_before(before), 80)), quiet)
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
        done = fit_parts(parts, fit, _finished(path, parts))
    return pooled(done, ids_of(every), names, time.monotonic() - began)


def _finished(path: Path, parts: Sequence[Part]) -> dict[str, Usage]:
    """What the runs used that came to their end."""
    there = [part.name for part in parts if (path / part.name / "events.jsonl").is_file()]
    results = {name: read_run(path / name).result for name in there}
    return {name: each.total for name, each in results.items() if each is not None and each.status == "finished"}


def _keep(path: Path, known: dict[str, Any]) -> None:
    """Write down what is known of a cross-validation.

    Raises:
        RunError: it cannot be written.
    """
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
        if found.result is not None and found.result.status == "finished":
            return FinishedRun(found)
        return RunFolder(path, config=described, resume=True, anyway=anyway)
    return RunFolder(path, config=described)


def show_folds(path: Path, *, as_json: bool) -> None:
    """Print what there is of a cross-validation.

    Raises:
        RunError: a file is missing or damaged.
        typer.Exit: runs have no result, and none says why.
    """
    found, missing = _read(path)
    if as_json:
        write_json({"run": str(path), **report.folds_as_json(found, missing, _kept(path)["looks_before"])})
    else:
        _write(found, path, missing)
        if any((path / name / "events.jsonl").is_file() and read_run(path / name).locked for name in missing):
            complain("It still goes on.")
        elif (missing or found.status != "finished") and (path / "fold-1" / "events.jsonl").is_file():
            complain(_goes_on(found, path))
    if missing and not found.stopped:
        raise typer.Exit(FAILED)


def _write(found: CrossValidation, path: Path, missing: Sequence[str]) -> None:
    begun = (path / "fold-1" / "events.jsonl").is_file()
    shown = report.render_folds(
        found,
        title=str(path),
        remark=runs.remark_on(read_run(path / "fold-1").config) if begun else "",
        missing=missing,
        before=_kept(path)["looks_before"],
        width=width(),
        color=colors(),
    )
    write("\n" + shown)


def _goes_on(found: CrossValidation, path: Path) -> str:
    larger = ", with a larger --budget, --budget-calls or --budget-tokens" if found.status == "budget" else ""
    return f"`textgrad-engine resume {typed(path)}` goes on with it{larger}."


def end_folds(found: CrossValidation, path: Path, *, quiet: bool, as_json: bool) -> NoReturn:
    """Print a result, and end the command with its exit code.

    Raises:
        typer.Exit: always.
    """
    _, missing = _read(path)
    if as_json:
        write_json({"run": str(path), **report.folds_as_json(found, missing, _kept(path)["looks_before"])})
    elif quiet:
        total = found.total
        write(f"{path}: {report.folds_in_a_line(found)}; {plural(total.calls, 'call')}, {cost(total.dollars)}")
    else:
        _write(found, path, missing)
        complain(report.folds_in_a_line(found))
        if found.final is not None:
            complain(f"The final prompt is in {way_on.best_files(path / 'final', found.final.best)}")
    if found.status != "finished":
        say(_goes_on(found, path), quiet or as_json)
    if any(each.shortage for each in found.runs):
        raise typer.Exit(WRONG)
    raise typer.Exit(CODES[found.status])
