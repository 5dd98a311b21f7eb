"""The folder of a cross-validation: what it holds is told in one place, and what is damaged is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import optim
from textgrad_engine.errors import RunError
from textgrad_engine.llm.amounts import UNLIMITED, Amount
from textgrad_engine.store import FoldsWriter, is_folds, read_folds, read_run, way_on_with, write_folds
from textgrad_engine.store.lock import is_locked
from textgrad_engine.testing import simulated_task
from textgrad_engine.train.fold_parts import OnRecord, Share
from textgrad_engine.train.folders import folds_folder


def test_what_python_made_is_read_as_what_the_command_line_made(tmp_path: Path) -> None:
    """Its verdict is that of the result."""
    task = simulated_task(rules=4, seed=1, train=20)

    def start() -> Any:
        program = task.program()
        return program, optim.TGD(program.parameters())

    def found(name: str, final: bool) -> Any:
        trainer = tg.Trainer(run_dir=tmp_path / name)
        with tg.use_models(forward=task.model):
            return tg.cross_validate(start, task.loss, task.train, folds=2, trainer=trainer, final=final)

    whole = found("whole", True)
    read = read_folds(tmp_path / "whole")
    assert read.found.comparison == whole.comparison
    assert read.final().best == whole.final.best
    assert (read.missing, read.from_python, read.clusters) == ([], True, ())
    assert "tg.cross_validate" in read.way_on
    found("without", False)
    without = read_folds(tmp_path / "without")
    assert without.missing == []
    with pytest.raises(RunError, match="final=False"):
        without.final()


def test_what_a_notebook_shows_of_a_folder_is_short(tmp_path: Path) -> None:
    """However many examples there are."""
    names = [str(number) for number in range(5000)]
    write_folds(tmp_path, names, folds=2, clusters=names)
    assert len(repr(read_folds(tmp_path))) < 200 + len(str(tmp_path))


def test_a_folder_in_which_nothing_was_begun(tmp_path: Path) -> None:
    """Killed before the first run."""
    write_folds(tmp_path / "a", ["x", "y"], folds=2, clusters=(), looks_before=3)
    read = read_folds(tmp_path / "a")
    assert is_folds(tmp_path / "a")
    assert (read.looks_before, read.missing, read.config) == (3, ["fold-1", "fold-2", "final"], None)
    assert read.found.comparison is None
    with pytest.raises(RunError, match="`textgrad-engine resume"):
        read.final()


@pytest.mark.parametrize(
    "change",
    [
        {"folds": 1},
        {"folds": "many"},
        {"ids": 3},
        {"rows": "abc"},
        {"looks_before": None},
        {"clusters": 0},
        "no JSON",
        "[]",
        "[" * 100_000,
    ],
)
def test_what_was_damaged_is_named(tmp_path: Path, change: Any) -> None:
    """With the file."""
    write_folds(tmp_path, ["x", "y"], folds=2, clusters=())
    file = tmp_path / "folds.json"
    file.write_text(change if isinstance(change, str) else json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(RunError, match=r"folds\.json: was damaged"):
        read_folds(tmp_path)


def test_what_a_run_was_given_is_read_back(tmp_path: Path) -> None:
    """And nothing is written where nothing is limited."""
    vast = Amount(UNLIMITED, UNLIMITED, UNLIMITED)
    with FoldsWriter(tmp_path) as writer:
        writer.keep_share("fold-1", Share(vast, vast))
    assert not list(tmp_path.iterdir())
    given = Share(Amount(100, UNLIMITED, 5 * 10**12), Amount(25, UNLIMITED, 10**12))
    FoldsWriter(tmp_path).keep_share("fold-1", given)
    (tmp_path / "fold-1").mkdir()
    (tmp_path / "fold-1/events.jsonl").write_bytes(b"")
    (tmp_path / "fold-1/completions.jsonl").write_bytes(b"")
    assert FoldsWriter(tmp_path).on_record("fold-1") == OnRecord(share=given)
    assert FoldsWriter(tmp_path).on_record("fold-2") == OnRecord()


@pytest.mark.parametrize("content", ["no JSON", "[1]", "[" * 100_000, '{"fold-1": {"free": [1]}}', '{"fold-1": 3}'])
def test_shares_that_were_damaged_are_named_with_the_repair(tmp_path: Path, content: str) -> None:
    """They can be done without."""
    (tmp_path / "shares.json").write_text(content)
    with pytest.raises(RunError, match=r"shares\.json: was damaged .* or delete it"):
        FoldsWriter(tmp_path)


def test_a_run_is_told_what_goes_on_with_all_of_them_though_another_is_damaged(tmp_path: Path) -> None:
    """What goes on is known without the runs."""
    write_folds(tmp_path / "a", ["x", "y"], folds=2, clusters=())
    (tmp_path / "a/fold-1").mkdir()
    (tmp_path / "a/fold-1/events.jsonl").write_text("damaged\n")
    assert way_on_with(tmp_path / "a").startswith("`textgrad-engine resume ")
    with pytest.raises(RunError, match="fold-1"):
        read_folds(tmp_path / "a")


def test_folders_of_cross_validations_are_offered_where_a_name_is_wrong(tmp_path: Path) -> None:
    """As those of runs are; and one that is taken for a run says what it is."""
    write_folds(tmp_path / "a", ["x", "y"], folds=2, clusters=())
    with pytest.raises(RunError, match=r"there is no such run folder; .* has a$"):
        read_run(tmp_path / "b")
    with pytest.raises(RunError, match="the folder of a cross-validation, which read_folds reads"):
        read_run(tmp_path / "a")


def test_what_is_no_cross_validation_is_not_called_a_damaged_one(tmp_path: Path) -> None:
    """There is nothing to be restored in the folder of a run, nor in one that is not there."""
    write_folds(tmp_path / "a", ["x", "y"], folds=2, clusters=())
    with pytest.raises(RunError, match=r"b: there is no such folder; .* has a$"):
        read_folds(tmp_path / "b")
    (tmp_path / "run").mkdir()
    with pytest.raises(RunError, match=r"run: this is no folder of a cross-validation, it has no folds\.json"):
        read_folds(tmp_path / "run")
    (tmp_path / "run/events.jsonl").touch()
    with pytest.raises(RunError, match="run: this is the folder of one run, which read_run reads"):
        read_folds(tmp_path / "run")


@pytest.mark.parametrize("damaged", [False, True])
def test_a_folder_that_was_refused_is_not_held_by_who_keeps_the_error(tmp_path: Path, damaged: bool) -> None:
    """A notebook keeps the last one with its frames; the cell is mended and run again."""
    rows = [{"id": str(number)} for number in range(4)]
    write_folds(tmp_path, [row["id"] for row in rows], folds=2, clusters=[], final=True)
    if damaged:
        (tmp_path / "shares.json").write_text("{", encoding="utf-8")
    with pytest.raises(RunError, match="was damaged" if damaged else "put them back") as kept:
        folds_folder(tmp_path, rows, folds=3, clusters=[], final=True, resume=True)
    assert kept.value.__traceback__ is not None
    assert not is_locked(tmp_path)


@pytest.mark.parametrize(
    ("ended", "seconds"),
    [
        (["10:00:10", "10:00:20", "10:00:30"], 30.0),  # one after the other
        (["10:00:20", "10:00:18", "10:00:25"], 17.0),  # at once
        (["10:00:20", "11:00:20", "10:00:20"], 20.0),  # one of them an hour later, as it was resumed
    ],
)
def test_while_several_runs_went_on_time_passed_once(tmp_path: Path, ended: list[str], seconds: float) -> None:
    """What all of them took together is longer than anybody waited."""
    task = simulated_task(rules=4, seed=1, train=6)
    with tg.use_models(forward=task.model):
        tg.cross_validate(
            lambda: (program := task.program(), optim.TGD(program.parameters())),
            task.loss,
            task.train,
            folds=2,
            trainer=tg.Trainer(max_steps=1, run_dir=tmp_path / "run"),
        )
    for name, time in zip(("fold-1", "fold-2", "final"), ended):
        for file, key, value in (
            ("events.jsonl", "time", f"2026-11-30T{time}.000Z"),
            ("result.json", "seconds", 10.0),
        ):
            path = tmp_path / "run" / name / file
            *before, last = path.read_text().strip().split("\n") if file == "events.jsonl" else [path.read_text()]
            path.write_text("\n".join([*before, json.dumps(json.loads(last) | {key: value})]) + "\n")
    assert read_folds(tmp_path / "run").found.seconds == seconds
