"""Reading a run folder, also of a run that was killed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textgrad_engine.attributes import attributes_told
from textgrad_engine.data.paths import check_reach
from textgrad_engine.errors import RunError
from textgrad_engine.llm.response import Usage, usage_from_json
from textgrad_engine.store.config_json import config_of, is_of_command
from textgrad_engine.store.files import FOLDS, read_lines, read_object, typed
from textgrad_engine.store.lock import is_locked
from textgrad_engine.store.paid import paid_for, place_of
from textgrad_engine.store.records import event_from_json
from textgrad_engine.store.sittings import Reach, error_of, overtaken, sittings_of
from textgrad_engine.train.events import Evaluated, RunStarted, StepEnded
from textgrad_engine.train.front import FrontPoint
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.settings import NESTED
from textgrad_engine.user_paths import expanded


@attributes_told
@dataclass(frozen=True)
class Run:
    """What a run folder holds; of a run that was resumed, what is known from the sitting that came farthest (`Reach`).

    Attributes:
        path: the folder.
        config: what is in ``config.json``: what the command line wrote, or what `RunFolder` was given in Python; None
            where there is none.
        result: what the run found; None when it ended with an error, was killed, or is still going.
        seed: the trained texts by name, before the run.
        best: the best texts so far, by name.
        events: every event as plain JSON, in order.
        earlier: the same of the other sittings, as long as they are kept.
        steps: the steps, in order.
        evaluations: every evaluation on the validation and test sets, in order.
        evals: the lines of ``evals.jsonl``: what `textgrad-engine eval` did with the run.
        notes: what is not as it should be, in words; "()" when all is well.
        error: what the run ended with, class and message first, a note a line; "" when it ended otherwise, or not yet.
        locked: whether somebody was writing into the folder. That is looked at before anything is read, so a run that
            ends meanwhile is not taken for one that was killed.
    """

    path: Path
    config: dict[str, Any] | None = field(repr=False)
    result: TrainResult | None
    seed: dict[str, str] = field(repr=False)
    best: dict[str, str] = field(repr=False)
    events: tuple[dict[str, Any], ...] = field(repr=False)
    steps: tuple[StepEnded, ...] = field(repr=False)
    evaluations: tuple[Evaluated, ...] = field(repr=False)
    evals: tuple[dict[str, Any], ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    error: str = ""
    earlier: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    locked: bool = False

    @property
    def reach(self) -> Reach:
        """How far it has come."""
        return Reach(len(self.steps), self.result is not None, len(self.evaluations))

    @property
    def finished(self) -> bool:
        """Whether it came to its end, and no larger budget would bring more.

        A run of before that drew its part of the test set otherwise (`train.settings.NESTED`) may lose it to one.
        """
        if self.result is None or self.result.status != "finished":
            return False
        begun: dict[str, Any] = next((each for each in reversed(self.events) if each.get("event") == "RunStarted"), {})
        return not (self.result.kept_short and begun.get("settings", {}).get(NESTED))

    @property
    def by_command(self) -> dict[str, Any] | None:
        """What the command line wrote into ``config.json``; None for a run from Python, whatever that keeps there."""
        return self.config if self.config is not None and is_of_command(self.config) else None

    @property
    def looks_before(self) -> int:
        """How often other runs had opened the same test examples when this one was begun, as far as it was noted."""
        return int((self.by_command or {}).get("looks_before", 0))

    def completions(self) -> Iterator[dict[str, Any]]:
        """Every completion that was paid for as plain JSON, read one at a time; a torn last line is left out.

        Those of a run that was resumed and cut again, or that it did not ask for again, are among them.

        Raises:
            RunError: a file is missing or damaged.
        """
        return (paid.entry for paid in paid_for(self.path) if not paid.again)

    def tools(self) -> Iterator[dict[str, Any]]:
        """Every call of a tool, and what it gave, as plain JSON, read one at a time; none in runs of before.

        Raises:
            RunError: a file is damaged.
        """
        return (paid.entry for paid in paid_for(self.path, "tools.jsonl", or_none=True) if not paid.again)

    def shrunk(self) -> dict[str, str]:
        """The short texts by name, which `textgrad-engine shrink` wrote.

        Raises:
            RunError: there are none, or their file was damaged.
        """
        path = self.path / "shrink.json"
        body = read_object(path)
        if body is None:
            raise RunError(
                f"{self.path}: there is no short prompt; `textgrad-engine shrink {typed(self.path)}` makes one"
            )
        texts = body.get("after")
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            raise RunError(f"{path}: was damaged, as it holds no texts; restore it, or shrink the run again")
        return dict(texts)

    def texts(self, prompt: str) -> dict[str, str]:
        """The texts of one of its prompts by name.

        Args:
            prompt: ``"best"``, ``"seed"``, ``"shrunk"``, or ``"front N"`` for the Nth text of the front, from 1.

        Raises:
            RunError: there is no such prompt.
        """
        if prompt == "shrunk":
            return self.shrunk()
        if prompt.startswith("front "):
            return {**self.best, **self.on_front(int(prompt.removeprefix("front "))).texts}
        return self.seed if prompt == "seed" else self.best

    def on_front(self, number: int) -> FrontPoint:
        """A text of the front by its number, from 1.

        Raises:
            RunError: there is no result, or no text of that number.
        """
        front = () if self.result is None else self.result.front
        if 1 <= number <= len(front):
            return front[number - 1]
        there = f"it has {len(front) or 'none'}{'; `show` has a table of it' if len(front) > 1 else ''}"
        if self.result is None:
            there = "only a run that came to its end has one"
        raise RunError(f"{self.path}: there is no text {number} on the front: {there}")

    def usage(self) -> Usage:
        """What the completions on record used, those of a killed run too.

        Raises:
            RunError: the file is missing or damaged.
        """
        return sum(self.usage_by_purpose().values(), Usage())

    def usage_by_purpose(self) -> dict[str, Usage]:
        """The same by the purpose of the calls.

        Raises:
            RunError: the file is missing or damaged.
        """
        found: dict[str, Usage] = {}
        for paid in paid_for(self.path):
            purpose = str(paid.entry.get("purpose"))
            if paid.again:
                continue
            try:
                found[purpose] = found.get(purpose, Usage()) + usage_from_json(paid.entry.get("usage", {}))
            except (TypeError, ValueError):
                place = place_of(self.path, "completions.jsonl", paid)
                raise RunError(f"{place}: the usage was damaged; restore the file") from None
        return dict(sorted(found.items()))


def read_run(path: str | Path) -> Run:
    """Read a run folder; the completions are read when they are asked for.

    Args:
        path: the folder.

    Raises:
        RunError: there is no such folder, it is no run folder, or a file in it is missing or damaged.
        PermissionError: a folder on the way is closed to this user.

    Example:
        >>> import os, tempfile
        >>> from textgrad_engine import Trainer, optim, use_models
        >>> from textgrad_engine.testing import simulated_task
        >>> task, folder = simulated_task(rules=4, seed=1, train=16, val=16), os.path.join(tempfile.mkdtemp(), "run")
        >>> program = task.program()
        >>> with use_models(forward=task.model):
        ...     result = Trainer(max_steps=1, run_dir=folder).fit(
        ...         program, task.loss, optim.TGD(program.parameters()), task.train, task.val
        ...     )
        >>> read_run(folder).best == result.best
        True
    """
    path = expanded(path)
    check_reach(path)
    if not path.is_dir():
        others = others_beside(path) or "; `textgrad-engine train CONFIG` makes one"
        if path.is_file():
            whose = next((each for each in path.parents[:2] if (each / "events.jsonl").is_file()), None)
            named = others if whose is None else f"; name {whose}"
            raise RunError(f"{path}: this is a file, and a run folder is wanted{named}")
        raise RunError(f"{path}: there is no such run folder{others}")
    if not (path / "events.jsonl").is_file():
        several = next((path / name for name in ("final", "fold-1") if (path / name).is_dir()), None)
        inner = f"one of the runs in it, such as {several}"
        if several is None:
            inner = f"what `train` wrote{_offered((path, path / 'runs', Path('runs')))}"
        if (path / FOLDS).is_file():
            raise RunError(f"{path}: this is the folder of a cross-validation, which read_folds reads; or name {inner}")
        raise RunError(f"{path}: this is no run folder, it has no events.jsonl; name {inner}")
    locked = is_locked(path)
    notes: list[str] = []
    sittings = sittings_of(path, notes)
    last = sittings[-1]
    told = max(reversed(sittings), key=lambda each: each.reach)  # of equal ones the last
    if last.result is not None and last.result.status == "finished":
        told = last
    if told is not last:
        notes.append(overtaken(last))
    result, steps = told.result, told.steps
    events = tuple(event for each in sittings if each is not told for event in each.events)
    seed = dict(result.seed) if result is not None else _seed_of((*told.events, *events))
    return Run(
        path=path,
        config=config_of(path / "config.json"),
        result=result,
        seed=seed,
        best=dict(result.best) if result is not None else _best_of(seed, steps),
        events=told.events,
        steps=steps,
        evaluations=told.evaluations,
        evals=tuple(read_lines(path / "evals.jsonl", notes)) if (path / "evals.jsonl").is_file() else (),
        notes=tuple(notes),
        error=error_of(last.events),
        earlier=events,
        locked=locked,
    )


def _seed_of(events: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The texts that a run began with; none where it was killed before that."""
    for event in events:
        if event.get("event") == "RunStarted" and isinstance(found := event_from_json(event), RunStarted):
            return dict(found.parameters)
    return {}


def _best_of(seed: dict[str, str], steps: tuple[StepEnded, ...]) -> dict[str, str]:
    best = dict(seed)
    for step in steps:
        if step.kept:
            best |= {change.name: change.after for change in step.changes}
    return best


def others_beside(path: Path) -> str:
    """What the folder beside it has to offer, or the one in which `train` makes them."""
    return _offered((path.parent, path.parent / "runs"), path.name)


def _offered(folders: Iterable[Path], name: str = "") -> str:
    """What the first of some folders that has run folders has to offer, those first whose name is like one."""
    for folder in filter(Path.is_dir, folders):
        found = sorted(each.parent.name for name in ("events.jsonl", FOLDS) for each in folder.glob(f"*/{name}"))
        if found:
            near = difflib.get_close_matches(name, found, n=8, cutoff=0.4)  # the likely one first, of many
            shown = list(dict.fromkeys([*near, *found]))[:8]
            more = f" and {len(found) - len(shown)} more" if len(found) > len(shown) else ""
            return f"; {folder} has {', '.join(shown)}{more}"
    return ""
