"""``train --folds``: every example tests once, and a prompt is trained on all of them.

The folder of such a run holds ``folds.json``, and a run folder for each fold and for the final run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer

from textgrad_engine import report
from textgrad_engine.cli import build, resume_words, runs
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import read_data
from textgrad_engine.cli.folds_shown import folds_as_json, folds_in_a_line, write_report
from textgrad_engine.cli.foresight import early_end, foreseen_of_folds, shared_with_controls
from textgrad_engine.cli.output import WRONG, checking, say, write, write_json
from textgrad_engine.cli.progress import progress_for
from textgrad_engine.cli.run_data import SPLITS, check_there, digest_of, digests_of, looks_at, row_digests
from textgrad_engine.cli.running import CODES, Job, announce, refusing_changes
from textgrad_engine.data import Dataset, Subset, ids_of
from textgrad_engine.errors import ConfigError, RunError
from textgrad_engine.llm.budget import charge
from textgrad_engine.llm.cache import Cache
from textgrad_engine.nn import Module
from textgrad_engine.report.notes import looked_at_before
from textgrad_engine.report.rows import Together
from textgrad_engine.report.terminal import complain
from textgrad_engine.report.words import plural
from textgrad_engine.store import (
    FOLDS,
    FinishedRun,
    Folds,
    FoldsWriter,
    Run,
    RunFolder,
    check_unlocked,
    read_folds,
    read_run,
    whole_of,
    write_folds,
)
from textgrad_engine.store.cut import begun_with
from textgrad_engine.train import TrainResult
from textgrad_engine.train.evaluator import clusters_of
from textgrad_engine.train.events import current_part
from textgrad_engine.train.fold_parts import Part
from textgrad_engine.train.folds import parts_of
from textgrad_engine.train.shares import fit_parts
from textgrad_engine.train.splits import clusters_of_equals


def last_of(folds: Folds) -> Run:
    """The run of a cross-validation that was begun or gone on with last, of those that keep their config.

    A larger budget, or another endpoint, is in the config of those alone that went on with it.

    Raises:
        RunError: none was begun, or none keeps it; or somebody is at work on one.
    """
    for path in (folds.path, *[each.path for each in folds.runs.values()]):
        check_unlocked(path)
    runs = [run for run in folds.runs.values() if run.by_command is not None or folds.from_python]
    if runs:
        return max(runs, key=lambda run: str(begun_with(run).get("time", "")))
    if any(any(run.completions()) for run in folds.runs.values()):
        raise RunError(
            f"{folds.path}: none of its runs has a config.json, and some were paid for; restore that of one of them"
        )
    raise RunError(
        f"{folds.path}: no fold was begun and nothing was paid for, so there is nothing to go on with; remove the "
        f"folder, and begin with `textgrad-engine train CONFIG --folds {folds.folds}`"
    )


def part_of(config: Config, run: Run) -> Part | None:
    """What one of the runs of a cross-validation works with, by the config and the data of now; None for other runs.

    Args:
        config: of the run.
        run: the run.

    Raises:
        RunError: the examples are not those that it was begun with, or a file is damaged.
        TextgradError: the data cannot be read, or not be dealt.
    """
    if (whole := whole_of(run.path)) is None:
        return None
    _, parts = dealt_as_before(read_folds(whole), config, run)
    return next((part for part in parts if part.name == run.path.resolve().name), None)


def dealt_as_before(folds: Folds, config: Config, run: Run) -> tuple[Dataset, list[Part]]:
    """All examples of a cross-validation, and what each of its runs works with, by the config and the data of now.

    Args:
        folds: the cross-validation.
        config: of its runs.
        run: one of them.

    Raises:
        RunError: the examples are not those that it was begun with, or a file is damaged.
        TextgradError: the data cannot be read, or not be dealt.
    """
    check_there(run, config, *SPLITS)
    every, parts = parts_for(config, build.make_program(config), read_data(config), folds.folds)
    check_as_before(folds, every, parts)
    return every, parts


class _Dealt(Dataset):
    """Examples of other datasets, with the places that they have there; of a part with the ids, too."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], where: Sequence[Callable[[], str]]) -> None:
        self._where = where
        super().__init__(rows)

    def where(self, index: int) -> str:
        return self._where[index]()


def dealt(rows: Sequence[dict[str, Any]] | None) -> Dataset:
    """What a `Part` has in one of its sets, as a dataset: with the ids and the places that it has among all.

    Args:
        rows: the set; None for one that it does not have.
    """
    if not isinstance(rows, Dataset | Subset):
        return Dataset(rows or ())
    made = _Dealt(rows, [functools.partial(rows.where, index) for index in range(len(rows))])
    made.ids = rows.ids  # those that are made of positions are of the positions there
    return made


def parts_for(
    config: Config, program: Module, splits: Sequence[Dataset | None], folds: int
) -> tuple[Dataset, list[Part]]:
    """All examples of a config's files together, and what each run works with.

    Args:
        config: of the run.
        program: whose inputs tell which examples are the same.
        splits: what the files hold: training, validation and test examples. Where the training examples validate, too,
            they are there once.
        folds: how many.

    Raises:
        ConfigError: they cannot be dealt to so many folds, or the config has guards.
    """
    if config.guards.never_break or config.guards.floors:
        config.fail("[guards] are about validation examples, and every fold has others; take them out", "guards")
    files = {id(rows): rows for rows in splits if rows is not None}
    places = [functools.partial(rows.where, index) for rows in files.values() for index in range(len(rows))]
    every = _Dealt([row for rows in files.values() for row in rows], places)
    try:
        return every, parts_of(program, every, folds=folds, seed=config.seed, clusters=config.data.clusters)
    except ValueError as error:
        raise ConfigError(f"--folds {folds}: {error}") from None


def check_shown(config: Config, folds: int | None) -> None:
    """Check that a run tells what its prompt is worth: on validation or test examples, or by folds.

    Raises:
        ConfigError: it does not.
    """
    if folds is None and config.data.val is None and config.data.test is None:
        config.fail(
            "[data] names train alone, so nobody would know what a prompt is worth: with `--folds 5` every example is "
            'tested with a prompt trained on the others; or split the file, and add test = "test.jsonl"',
            "data",
        )


def check_as_before(folds: Folds, every: Dataset, parts: Sequence[Part]) -> None:
    """Check that the examples are those that a cross-validation was begun with.

    Raises:
        RunError: they were changed.
    """
    same = list(folds.ids) == list(ids_of(every))
    for part in parts:
        if same and part.name in folds.runs:
            splits = {"train": part.train, "val": part.val, "test": part.test}
            digests = {name: digests_of(Dataset(rows)) for name, rows in splits.items() if rows is not None}
            config = folds.runs[part.name].config
            known = {} if config is None else config.get("digests", {})
            same = config is None or (  # killed before it could be written
                known.keys() == digests.keys() and all(known[name] in digests[name] for name in known)
            )
    if not same:
        raise RunError(f"{folds.path}: these are not the examples that it was begun with; put data and config back")


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
    begun: Run | None = None,
    anyway: bool = False,
    jobs: int | None = None,
) -> None:
    """Train and test on each fold, and train on all examples; what is in the folder already is not paid for again.

    Args:
        config: of the run.
        job: what it works with.
        path: where it is written down.
        way: how it was begun.
        folds: how many.
        name: what it is called.
        cache: where answers are kept, if anywhere.
        quiet: show nothing.
        begun: where a cross-validation goes on, a run of it, whose config is kept for all.
        anyway: where a run goes on, pay for what has changed or is gone; those that are finished are not looked into.
        jobs: at most so many runs at once; None for all of them, but for one where code of the user's own is run.
    """
    every, parts = parts_for(config, job.program, tuple(job.splits.values()), folds)
    column = config.data.clusters
    clusters = clusters_of(every, column) if column else clusters_of_equals(job.program, every)
    with checking():
        shares = _opened(path, every, folds, clusters)
        before = read_folds(path).looks_before
    looks = looked_at_before(before) if before else ""
    about = [f"{name}: {plural(folds, 'fold')} of {plural(len(every), 'example')}", f"Folder: {path}"]
    about += runs.prices_in_words(config)
    shared = shared_with_controls(config, way.controls)
    early = ""
    if begun is None:
        scored = [rows for part in parts for rows in (part.val, part.test or ())]
        early = early_end(config, scored, job.models, cached=cache is not None)
    announce(about, [early, shared, foreseen_of_folds(config, job.program, job.metric, every), looks], quiet)

    told, together = set[str](), Together()

    def fit(part: Part) -> TrainResult:
        with checking():
            finished = _finished(path / part.name)
        if anyway and finished is not None and finished.result is not None:
            say(f"\n{current_part.get()}\nIt is finished, and taken as it is.", quiet)
            charge(finished.result.total)
            return finished.result
        program = build.make_program(config)
        optimizer = build.make_optimizer(config, program, part.train, feedback=way.feedback)
        with checking():
            folder = (
                FinishedRun(finished)
                if finished is not None
                else _folder_of(config, path / part.name, part, way, before, begun, anyway)
            )
        with progress_for(quiet, told, together) as progress, refusing_changes(folder):
            trainer = build.make_trainer(config, job.guards, controls=way.controls, callbacks=(folder, *progress))
            return trainer.fit(program, job.metric, optimizer, part.train, part.val, part.test)

    with shares, build.surroundings(config, job.models, cache=cache):
        fit_parts(parts, fit, shares, jobs or jobs_of(config, parts))


def jobs_of(config: Config, parts: Sequence[Part]) -> int:
    """How many runs go on at once where nobody says so."""
    return 1 if config.own_code() else len(parts)


def _opened(path: Path, every: Dataset, folds: int, clusters: Sequence[str]) -> FoldsWriter:
    """The folder of a cross-validation, in which is written down of what examples it is, where that is not there."""
    writer = FoldsWriter(path)
    if not (path / FOLDS).is_file():
        write_folds(
            path,
            ids_of(every),
            folds=folds,
            clusters=clusters,
            looks_before=looks_at(every, path),
            rows=" ".join(row_digests(every)),
            digest=digest_of(every),
        )
    return writer


def _folder_of(
    config: Config, path: Path, part: Part, way: runs.Way, before: int, begun: Run | None, anyway: bool
) -> RunFolder:
    """The run folder of a part: a new one, or one that goes on."""
    splits = {"train": part.train, "val": part.val, "test": part.test}
    described = runs.describe(
        config, path, {key: None if rows is None else Dataset(rows) for key, rows in splits.items()}, way
    )
    if begun is not None:  # the config that a run goes on with has the seed prompt in it, and another name
        kept = runs.with_limits(begun, config)
        described.update({"name": runs.name_in(begun), "config": kept["config"]})
        del described["files"]  # they may have been changed since
        described.update({key: kept[key] for key in ("ends_line", "files") if key in kept})  # of before they lack them
    described["looks_before"] = before  # at examples of all folds: the other folds lie beside this one
    return RunFolder(path, config=described, resume=(path / "events.jsonl").is_file(), anyway=anyway)


def _finished(path: Path) -> Run | None:
    """The run in a folder, where it came to its end."""
    found = read_run(path) if (path / "events.jsonl").is_file() else None
    return found if found is not None and found.result is not None and found.result.status == "finished" else None


def end_folds(path: Path, *, quiet: bool, as_json: bool) -> NoReturn:
    """Print the result of a cross-validation, and end the command with its exit code.

    Raises:
        typer.Exit: always.
    """
    folds = read_folds(path)
    found = folds.found
    if as_json:
        write_json({"run": str(path), **folds_as_json(folds)})
    elif quiet:
        write(folds_in_a_line(folds))
    else:
        write_report(folds)
        complain(report.folds_in_a_line(found))
        if found.final is not None:
            what = "The prompt to use" if found.use == "final" else "The final prompt, not shown to be better,"
            complain(f"{what} is in {resume_words.best_files(path / 'final', found.final.best)}")
    if found.status != "finished":
        say(resume_words.goes_on_together(folds), quiet or as_json)
    if any(each.shortage for each in found.runs):
        raise typer.Exit(WRONG)
    raise typer.Exit(CODES[found.status])
