"""The folder of a cross-validation: ``folds.json``, and a run folder for each fold and for the final run."""

from __future__ import annotations

import contextlib
import functools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from textgrad_engine.attributes import attributes_told
from textgrad_engine.data.paths import check_reach
from textgrad_engine.errors import RunError
from textgrad_engine.llm.amounts import UNLIMITED, Amount
from textgrad_engine.llm.response import Usage
from textgrad_engine.store.files import FOLDS, typed, unwritable, write_atomically
from textgrad_engine.store.lock import Lock, is_locked
from textgrad_engine.store.reader import Run, others_beside, read_run
from textgrad_engine.store.records import FORMAT, dumps
from textgrad_engine.train.fold_parts import OnRecord, Part, Share, left_for_spent
from textgrad_engine.train.pooled import CrossValidation, pooled
from textgrad_engine.untrusted_files import content_of
from textgrad_engine.user_paths import expanded

SHARES = "shares.json"
_DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


@attributes_told
@dataclass(frozen=True)
class Folds:
    """What the folder of a cross-validation holds.

    Attributes:
        path: the folder.
        folds: how many there are.
        ids: of all examples.
        clusters: of each; empty where each stands for itself.
        looks_before: how often other runs had opened these examples for a test when it was begun.
        rows: of each example the digest that tells it apart by its content; empty where `cross_validate` made it.
        digest: what tells the examples from others; "" where `cross_validate` made it.
        runs: the runs that were begun, by name: ``"fold-1"`` and so on, and ``"final"``.
        has_final: whether there is to be a run on all examples.
        from_python: whether `train.cross_validate` made it, and not the command line.
        at_work: whether somebody went on with it when it was read.
    """

    path: Path
    folds: int
    ids: tuple[str, ...] = field(repr=False)
    clusters: tuple[str, ...] = field(repr=False)
    looks_before: int
    rows: tuple[str, ...] = field(repr=False)
    digest: str
    runs: dict[str, Run] = field(repr=False)
    has_final: bool = True
    from_python: bool = False
    at_work: bool = False

    @property
    def names(self) -> list[str]:
        """The names of all runs, begun or not, in their order."""
        return _names(self.folds, self.has_final)

    @property
    def missing(self) -> list[str]:
        """The names of the runs without a result."""
        return [name for name in self.names if name not in self.runs or self.runs[name].result is None]

    @property
    def finished(self) -> bool:
        """Whether all of its runs came to their end."""
        return not self.missing and self.found.status == "finished"

    @property
    def locked(self) -> bool:
        """Whether somebody is still at work on it, or on one of its runs."""
        return self.at_work or any(run.locked for run in self.runs.values())

    @property
    def config(self) -> dict[str, Any] | None:
        """What the command line wrote into the first ``config.json`` that there is; its settings are those of all."""
        return next((run.by_command for run in self.runs.values() if run.by_command is not None), None)

    @property
    def way_on(self) -> str:
        """What goes on with it, as it is typed."""
        return way_on_with(self.path, self.from_python)

    @functools.cached_property
    def found(self) -> CrossValidation:
        """What it found, as far as its runs have a result.

        Raises:
            RunError: the examples are others than the folds have.
        """
        done = list(self._done())
        try:
            return pooled(done, self.ids, self.clusters, self._seconds)
        except (LookupError, ValueError):
            raise RunError(f"{self.path / FOLDS}: it names other examples than the folds have; restore it") from None

    @property
    def _seconds(self) -> float:
        """How long its runs took; while several went on at once, once."""
        spans = sorted(span for run in self.runs.values() if (span := _span(run)) is not None)
        total, until = 0.0, -math.inf
        for begun, ended in spans:
            total += max(0.0, ended - max(begun, until))
            until = max(until, ended)
        return total

    def _done(self) -> Iterator[tuple[Part, Any]]:
        for name in self.names:
            result = self.runs[name].result if name in self.runs else None
            if result is not None:
                yield Part(name, (), (), None if name == "final" else ()), result

    def left_for_spent(self, budget: Amount) -> Amount:
        """What resuming it with a budget gives runs beside what they spent; see `train.fold_parts`.

        Args:
            budget: of all runs, vast where there is no limit.
        """
        if self.missing:
            return Amount()
        try:
            shares = {name: _share_of(kept) for name, kept in _kept_shares(self.path / SHARES).items()}
        except _DAMAGE:  # whoever goes on with it is told
            return Amount()
        results = {name: self.runs[name].result for name in self.names}
        known = {
            name: OnRecord(result.total, result.status == "finished", shares.get(name), result.status == "budget")
            for name, result in results.items()
            if result is not None
        }
        return left_for_spent(known, budget)

    def final(self) -> Run:
        """The run on all examples, whose texts are to be used.

        Raises:
            RunError: it has no result.
        """
        if not self.has_final:
            raise RunError(
                f"{self.path}: there is no final prompt, as none was trained on all examples (final=False); name a "
                f"fold's run, such as {self.path / 'fold-1'}"
            )
        if "final" in self.missing:
            raise RunError(
                f"{self.path}: there is no final prompt yet, as the run on all examples has no result; "
                f"{self.way_on} goes on with it, or name a fold's run, such as {self.path / 'fold-1'}"
            )
        return self.runs["final"]


def _span(run: Run) -> tuple[float, float] | None:
    """From when to when a run went on, in seconds; None where it has no result."""
    if run.result is None:
        return None
    time = next((each.get("time", "") for each in reversed(run.events) if each.get("event") == "RunEnded"), "")
    try:
        ended = datetime.fromisoformat(time).timestamp()
    except (TypeError, ValueError):  # what somebody else wrote
        ended = 0.0
    return ended - run.result.seconds, ended


def is_folds(path: Path) -> bool:
    """Whether a folder is that of a cross-validation.

    Raises:
        PermissionError: it cannot be looked into.
    """
    check_reach(path)
    return (path / FOLDS).is_file()


def read_folds(path: str | Path) -> Folds:
    """Read the folder of a cross-validation.

    Args:
        path: the folder.

    Raises:
        RunError: it is none, or a file is missing or damaged.
    """
    path = expanded(path)
    if not is_folds(path):
        if not path.is_dir():
            raise RunError(f"{path}: there is no such folder{others_beside(path)}")
        if (path / "events.jsonl").is_file():
            raise RunError(f"{path}: this is the folder of one run, which read_run reads")
        raise RunError(
            f"{path}: this is no folder of a cross-validation, it has no {FOLDS}; name what `train --folds` or "
            "tg.cross_validate wrote"
        )
    at_work, kept = is_locked(path), _kept(path)
    runs = {
        name: read_run(path / name)
        for name in _names(kept.folds, kept.has_final)
        if (path / name / "events.jsonl").is_file()
    }
    return replace(kept, runs=runs, at_work=at_work)


def way_on_with(path: Path, from_python: bool | None = None) -> str:
    """What goes on with the cross-validation in a folder, as it is typed; its runs are not looked at.

    Args:
        path: the folder.
        from_python: whether Python made it; None where that is not known yet.

    Raises:
        RunError: ``folds.json`` is missing or damaged.
    """
    if _kept(path).from_python if from_python is None else from_python:
        return "tg.cross_validate(..., trainer=tg.Trainer(run_dir=..., resume=True))"
    return f"`textgrad-engine resume {typed(path)}`"


def _kept(path: Path) -> Folds:
    """What ``folds.json`` says, without any run."""
    try:
        kept = json.loads(content_of(path / FOLDS))
        rows, number, ids = tuple(str(kept.get("rows", "")).split()), int(kept["folds"]), tuple(kept["ids"])
        if number < 2 or len(rows) not in (0, len(ids)):
            raise ValueError(f"{number} folds, {len(rows)} digests of {len(ids)} examples")
        return Folds(
            path=path,
            folds=number,
            ids=ids,
            clusters=tuple(kept["clusters"]),
            looks_before=int(kept.get("looks_before", 0)),
            rows=rows,
            digest=str(kept.get("digest", "")),
            runs={},
            has_final=kept.get("final") is not False,
            from_python=kept.get("python") is True,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(f"{path / FOLDS}: was damaged ({error}); restore it") from None


class FoldsWriter:
    """Writes what a cross-validation gives each of its runs of a budget; see `train.shares.FoldsFolder`.

    Until its block is left, nobody else goes on with the cross-validation, also between two of its runs.

    Args:
        path: its folder, which is made where it is not there.

    Raises:
        RunError: another process is at work on it; or its file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: Lock | None = None
        with contextlib.suppress(OSError):  # who cannot write here keeps nobody out; it is told where it has to write
            path.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(path)
        self._file = path / SHARES
        self._shares: dict[str, dict[str, list[int | None]]] = {}
        if self._file.is_file():
            try:
                self._shares = _kept_shares(self._file)
                self._known = {name: _share_of(kept) for name, kept in self._shares.items()}
            except _DAMAGE as error:
                self.release()
                raise RunError(
                    f"{self._file}: was damaged ({error}); restore it, or delete it to share the budget out anew"
                ) from None
        else:
            self._known = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let others go on with it."""
        if self._lock is not None:
            self._lock.release()

    def on_record(self, name: str) -> OnRecord:
        """What one of its runs has on record; nothing where it was not begun."""
        path = self._path / name
        if not (path / "events.jsonl").is_file():
            return OnRecord()
        run, share = read_run(path), self._known.get(name)
        if run.result is not None and run.result.status == "finished":
            return OnRecord(run.result.total, finished=True, share=share)
        spent = run.result is not None and run.result.status == "budget"
        try:
            return OnRecord(run.usage(), share=share, spent=spent)
        except RunError:  # whoever goes on with the run is told
            return OnRecord(Usage() if run.result is None else run.result.total, share=share, spent=spent)

    def keep_share(self, name: str, share: Share) -> None:
        """Write down what a run is given, before it begins; nothing where there never was a limit.

        Raises:
            RunError: it cannot be written.
        """
        if not self._shares and _numbers(share.limit) == [None] * 3:
            return
        self._shares[name] = {"free": _numbers(share.free), "limit": _numbers(share.limit)}
        try:
            write_atomically(self._file, dumps(self._shares, indent=2) + b"\n")
        except OSError as error:
            raise unwritable(error, self._path) from None


def _numbers(amount: Amount) -> list[int | None]:
    """Calls, tokens and picodollars; None for no limit."""
    return [None if each >= UNLIMITED else each for each in (amount.calls, amount.tokens, amount.pico)]


def _kept_shares(file: Path) -> dict[str, dict[str, list[int | None]]]:
    return dict(json.loads(file.read_bytes()))


def _share_of(kept: dict[str, list[int | None]]) -> Share:
    free, limit = (
        Amount(*(UNLIMITED if each is None else int(each) for each in kept[key])) for key in ("free", "limit")
    )
    return Share(free, limit)


def write_folds(path: Path, ids: Sequence[str], *, folds: int, clusters: Sequence[str], **known: Any) -> None:
    """Write down of what examples a cross-validation is, before its first run.

    Args:
        path: its folder, which is made.
        ids: of all examples.
        folds: how many.
        clusters: of each example; empty where each stands for itself.
        known: what else is known of it, as `Folds` has it: ``looks_before``, ``rows`` (in one text), ``digest``,
            ``final``, ``python``.

    Raises:
        RunError: it cannot be written.
    """
    body = {"format": FORMAT, "folds": folds, "ids": list(ids), "clusters": list(clusters), **known}
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_atomically(path / FOLDS, dumps(body, indent=2) + b"\n")
    except OSError as error:
        raise RunError(f"{unwritable(error, path)}; name another place") from None


def _names(folds: int, has_final: bool) -> list[str]:
    return [*(f"fold-{number + 1}" for number in range(folds)), *(["final"] if has_final else [])]
