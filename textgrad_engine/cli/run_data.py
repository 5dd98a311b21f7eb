"""Which data a run had, which of it other data holds, and how often its test split was looked at."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textgrad_engine.data.dataset import Dataset
from textgrad_engine.data.paths import missing_file
from textgrad_engine.errors import RunError
from textgrad_engine.signed import unsigned
from textgrad_engine.store.config_json import ROW_DIGITS_BEFORE
from textgrad_engine.store.reader import Run, read_run
from textgrad_engine.store.records import dumps

if TYPE_CHECKING:
    from textgrad_engine.cli.config import Config

_ENDED = "EvaluationEnded"


def started(about: Mapping[str, Any], *, goes_on: bool) -> dict[str, Any]:
    """The first line of an evaluation in ``evals.jsonl``; of one that was killed there is no other.

    Args:
        about: what is evaluated, on what.
        goes_on: one that did not come to its end, so it is no other look at its examples.
    """
    return {"event": "EvaluationStarted", **about, **({"goes_on": True} if goes_on else {})}


def ended(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The second line of an evaluation in ``evals.jsonl``: what came of it."""
    return {"event": _ENDED, **entry}


SPLITS = {"train": "training", "val": "validation", "test": "test"}


def digest_of(dataset: Dataset) -> str:
    """Sixteen hexadecimal digits that tell datasets apart by their examples, wherever they are kept.

    Addresses that were signed anew make no other dataset.
    """
    return _digest(unsigned(dict(row)) for row in dataset)


def digests_of(dataset: Dataset) -> list[str]:
    """Its digest, and that by which versions of before know it, which took addresses whole."""
    return [digest_of(dataset), _digest(dict(row) for row in dataset)]


def _digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """The digest of rows, one after the other: together, documents and images take hundreds of megabytes."""
    found, between = hashlib.sha256(), b""
    for row in rows:
        found.update(between + dumps(row))
        between = b"\n"
    return found.hexdigest()[:16]


def check_splits(run: Run, config: Config, splits: Mapping[str, Dataset | None]) -> None:
    """Check that data is what a run had.

    Args:
        run: the run.
        config: names the files.
        splits: what they hold now, by split; those that are left out are not looked at.

    Raises:
        RunError: it was changed.
    """
    known: Mapping[str, str] = (run.by_command or {}).get("digests", {})
    for name, rows in splits.items():
        if rows is not None and known.get(name) not in digests_of(rows):
            file = config.file(getattr(config.data, name) or config.data.train)
            raise RunError(
                f"{file}: these are not the {SPLITS[name]} examples that {run.path} had; put them back as they were"
            )


def check_there(run: Run, config: Config, *splits: str) -> None:
    """Check that data is where a run looks for it, as a run folder knows the place as seen from its own.

    Args:
        run: the run.
        config: names the files.
        splits: whose are looked for; those that the config does not name are left out.

    Raises:
        RunError: there is no such file, or not even its folder.
    """
    names = {split: name for split in splits if (name := getattr(config.data, split)) is not None}
    if not config.folder.is_dir():
        raise RunError(
            f"{run.path}: {' and '.join(['the config that it was begun with', *names.values()])} lay in "
            f"{config.folder}, as seen from the run folder, and there is no such folder; put the run folder back where "
            "it was, or the config and its data there"
        )
    for split, name in names.items():
        if not config.file(name).is_file():
            raise RunError(
                f"[data] {split} = {name!r}: {missing_file(config.file(name))}. If the run folder was moved, put it "
                f"back: {run.path} looks for its data where that lay as seen from there"
            )


def kept_of(splits: Mapping[str, Dataset | None]) -> dict[str, dict[str, str]]:
    """What is kept of data to tell it from other data: a digest of each split, and one of each of their rows."""
    there = {name: rows for name, rows in splits.items() if rows is not None}
    return {
        "digests": {name: digest_of(rows) for name, rows in there.items()},
        "rows": {name: " ".join(row_digests(rows)) for name, rows in there.items()},
    }


def split_of(kept: Mapping[str, Any], dataset: Dataset) -> str | None:
    """Which split a dataset is, of those of which `kept_of` was kept: "train", "val", "test", or None."""
    known: Mapping[str, str] = kept.get("digests", {})
    digests = digests_of(dataset)
    return next((name for name, its in known.items() if its in digests), None)


def rows_of_splits(kept: Mapping[str, Any], dataset: Dataset) -> dict[str, int]:
    """How many rows of a dataset are of which split, of those of which there are any.

    What is one of the splits as a whole counts as that one only. Runs of before that was kept know whole splits only.
    """
    if (split := split_of(kept, dataset)) is not None:
        return {split: len(dataset)}
    asked = list(zip(row_digests(dataset), row_digests(dataset, as_before=True)))
    rows: Mapping[str, str] = kept.get("rows", {})
    known = {name: set(digests.split()) for name, digests in rows.items()}
    counts = {
        name: sum(any(_is_among(row, digests) for row in forms) for forms in asked) for name, digests in known.items()
    }
    return {name: number for name, number in counts.items() if number}


def row_digests(dataset: Dataset, *, as_before: bool = False) -> list[str]:
    """Of each row what tells it apart by its content, whatever its id and the order of its columns in a file.

    It has 64 bits: with 48, two of 5,000,000 rows had the same in 4 of 100 cases, and one of other 5,000,000 in 9.

    Args:
        dataset: the rows.
        as_before: as versions of before know them, which took addresses whole.
    """
    rows = [{name: row[name] for name in sorted(row) if name != "id"} for row in dataset]
    return [hashlib.sha256(dumps(row if as_before else unsigned(row))).hexdigest()[:16] for row in rows]


def _is_among(digest: str, known: Container[str]) -> bool:
    """Whether a row is one of those that a run had; in folders of before their digests are shorter."""
    return digest in known or digest[:ROW_DIGITS_BEFORE] in known


def openings(run: Run) -> int:
    """How often the run's test split was looked at: by the run itself, and by evaluations since, ended or not.

    One that was ended and goes on is the same look.
    """
    events = (*run.earlier, *run.events)
    own = any(event.get("event") == "PhaseStarted" and event.get("phase") == "test" for event in events)
    return max(int(own), 0 if run.result is None else run.result.openings) + sum(
        1 for entry in run.evals if opens_test(entry) and entry.get("event") != _ENDED and not entry.get("goes_on")
    )


def looks_at(test: Dataset | None, path: Path) -> int:
    """How often test examples were opened so far by other runs that lie beside a run's folder, evaluations included.

    A run whose test split has at least half of these examples has opened them, whatever its files are called; so has a
    cross-validation, once, whose folds have. What cannot be read is left out.

    Args:
        test: the examples.
        path: the run folder, in the folder of the others.
    """
    others: list[Path] = []
    with contextlib.suppress(OSError):
        others += [each for each in path.absolute().parent.iterdir() if each.name != path.name]
    if test is None or not others:
        return 0
    forms, looks = [set(row_digests(test, as_before=as_before)) for as_before in (False, True)], 0
    for other in others:
        with contextlib.suppress(
            RunError, OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError
        ):  # whatever else lies there
            folds = (other / "folds.json").is_file()
            runs = [each for each in sorted(other.glob("fold-*")) if each.is_dir()] if folds else [other]
            theirs = set().union(*(_test_rows(each) for each in runs))
            if any(2 * sum(_is_among(row, theirs) for row in own) >= len(own) for own in forms):
                found = [openings(read_run(each)) for each in runs]
                looks += max(map(bool, found)) if folds else found[0]
    return looks


def _test_rows(path: Path) -> list[str]:
    """The digests of the test examples of the run in a folder; without its events, which may be many."""
    config = path / "config.json"
    rows: list[str] = json.loads(config.read_bytes())["rows"].get("test", "").split() if config.is_file() else []
    return rows


def opens_test(entry: Mapping[str, Any]) -> bool:
    """Whether an evaluation, as ``evals.jsonl`` has it, was on the test split or on a row of it."""
    rows = entry.get("rows")
    return entry.get("split") == "test" or (isinstance(rows, Mapping) and "test" in rows)
