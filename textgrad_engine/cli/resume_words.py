"""What there is of a run that has not come to its end, and what goes on with it, in words."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textgrad_engine.errors import RunError
from textgrad_engine.llm.amounts import PICO, UNLIMITED, Amount
from textgrad_engine.llm.money import money
from textgrad_engine.llm.response import Usage
from textgrad_engine.plain_values import is_number
from textgrad_engine.report.pairing import setting_in
from textgrad_engine.report.words import plural
from textgrad_engine.store.files import typed, whole_of
from textgrad_engine.store.folds import Folds, read_folds, way_on_with
from textgrad_engine.store.reader import Run, read_run

LIMITS = {"dollars": "--budget DOLLARS", "calls": "--budget-calls N", "tokens": "--budget-tokens N"}
"""The options for the limits of [budget]."""


def best_files(path: Path, best: Mapping[str, str]) -> str:
    """Where the best texts are, in words."""
    return str(path / "best_prompt.txt") if len(best) == 1 else str(path / "best")


def begun(path: Path) -> bool:
    """Whether the run in a folder has come to where models are asked."""
    return (path / "seed").is_dir() or (path / "fold-1" / "seed").is_dir()


def left_in(path: Path) -> str:
    """What a run that was ended at once has left in its folder, in words."""
    shown = f"`textgrad-engine show {typed(path)}` prints"
    if (path / "result.json").is_file():
        return f"all of the run is in {path}, and {shown} the result"
    if (path / "fold-1" / "events.jsonl").is_file():
        again = f"`textgrad-engine resume {typed(path)}` goes on with it"
        return f"what was paid for until then is in {path}; {shown} what is known, and {again}"
    if not (path / "events.jsonl").is_file():
        return f"nothing was asked, and there is no run in {path}"
    try:
        run = read_run(path)
    except RunError as error:  # whatever it is that cannot be read now
        return f"what was paid for until then is in {path}, and cannot be read now: {error}"
    if not _answered(run):
        return f"nothing was answered; {_way_on(run)}"
    return (
        f"what was paid for until then is in {path}, with the best prompt so far and without a result.json; "
        f"{shown} what is known, and {_way_on(run)}"
    )


def goes_on_together(folds: Folds) -> str:
    """What goes on with a cross-validation that has not come to its end, in words."""
    if folds.from_python or folds.found.status != "budget":
        return f"{folds.way_on} goes on with it."
    options = "a larger --budget, --budget-calls or --budget-tokens"
    if not (left := _left_for_spent(folds)):
        return f"{folds.way_on} goes on with it, with {options}."
    return (
        f"{folds.way_on} goes on with it: {left} that other runs left of the budget go to those that spent their part. "
        f"A{options[1:]} adds to that."
    )


def _left_for_spent(folds: Folds) -> str:
    """What a resume gives runs that spent their part of the budget, in words; "" where some limit leaves nothing."""
    given = setting_in(folds.config, "config", "budget")
    limits = {name: limit for name in LIMITS if is_number(limit := setting_in(given, name))}
    pico = math.ceil(limits["dollars"] * PICO) if "dollars" in limits else UNLIMITED
    budget = Amount(limits.get("calls", UNLIMITED), limits.get("tokens", UNLIMITED), pico)
    left = folds.left_for_spent(budget)
    amounts = {"dollars": left.pico / PICO, "calls": left.calls, "tokens": left.tokens}
    words = {
        "dollars": money(amounts["dollars"]),
        "calls": plural(left.calls, "call"),
        "tokens": plural(left.tokens, "token"),
    }
    return " and ".join(words[name] for name in limits) if all(amounts[name] > 0 for name in limits) else ""


def goes_on(run: Run) -> str:
    """What goes on with a run that has not come to its end, in a sentence."""
    if run.result is not None and run.result.status == "budget" and (whole := whole_of(run.path)) is not None:
        with contextlib.suppress(RunError):  # of another run there; this one can be told of all the same
            if _left_for_spent(folds := read_folds(whole)):
                return goes_on_together(folds)
    raising: list[str] = []
    if run.result is not None and (run.result.status == "budget" or run.result.kept_short):
        raising = _raising(setting_in(run.by_command, "config", "budget"), run.result.total)
    if not raising:
        return f"{_way_on(run)}."
    nearest, *others = raising
    also = f" If another limit is the one without room: {', '.join(others)}." if others else ""
    path = typed(whole_of(run.path) or run.path)
    return f"`textgrad-engine resume {path} {nearest}` goes on with a larger budget.{also}"


def as_json(run: Run) -> dict[str, Any]:
    """Whether a process is at work on a run, and what goes on with it, as plain JSON values."""
    over = run.finished or run.locked
    return {"running": run.locked, "way_on": None if over else goes_on(run)}


def _way_on(run: Run) -> str:
    """The command that goes on with a run, and what it does."""
    what = "goes on with it" if _answered(run) else "begins it, as nothing is on record yet"
    if (whole := whole_of(run.path)) is not None:
        return f"{way_on_with(whole)} goes on with all the runs there"
    if run.by_command is None:
        return f"tg.Trainer(run_dir=..., resume=True) {what}"
    return f"`textgrad-engine resume {typed(run.path)}` {what}"


def _raising(limits: Any, used: Usage) -> list[str]:
    """The options for the limits that a run had, that of which most was used first; none where it keeps none."""
    spent = {"dollars": used.dollars or 0.0, "calls": used.calls, "tokens": used.total_tokens}
    own = {name: limit for name in LIMITS if is_number(limit := setting_in(limits, name))}
    shares = {name: spent[name] / limit if limit else math.inf for name, limit in own.items()}
    return [LIMITS[name] for name in sorted(shares, key=lambda name: -shares[name])]


def _answered(run: Run) -> bool:
    """Whether a run has paid for anything, or found it in the cache; what cannot be read was."""
    try:
        return any("text" in entry or _tokens(entry) for entry in run.completions())
    except RunError:
        return True


def _tokens(entry: Mapping[str, Any]) -> int:
    """What a call without a finished answer was charged for all the same."""
    return int(entry.get("usage", {}).get("output_tokens", 0))


def how_it_ended(run: Run) -> str:
    """What became of a run that has no result, in words."""
    if run.locked:
        return "still goes on"
    return "ended with an error" if run.error else "was killed"
