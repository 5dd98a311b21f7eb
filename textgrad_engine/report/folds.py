"""A cross-validation for people and for machines: each fold, the verdict of all, and what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from textgrad_engine.report.document import evaluation_as_json, finite, usage_as_json
from textgrad_engine.report.printing import fitted, hanging, indented, padded, printed, styled
from textgrad_engine.report.view import looked_at_before, measured, said
from textgrad_engine.report.words import cost, count, duration, plural, score
from textgrad_engine.train import CrossValidation, TrainResult

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = ["folds_as_json", "folds_in_a_line", "render_folds"]


def render_folds(
    found: CrossValidation,
    *,
    title: str = "",
    remark: str = "",
    missing: Sequence[str] = (),
    before: int = 0,
    width: int = 80,
    color: bool = False,
) -> str:
    """The report as text.

    Args:
        found: the cross-validation.
        title: what it is about, such as its folder.
        remark: what was special about it, e.g. that it is a control.
        missing: the runs that have no result, the last ones of all.
        before: how often other runs had opened the same examples for a test.
        width: columns.
        color: with the terminal's codes for colors.
    """
    ended = {"finished": "", "interrupted": "interrupted", "budget": "the budget was spent"}[found.status]
    if missing and not found.stopped:
        ended = "it did not come to its end"
    folds = plural(len(found.folds) + sum(name != "final" for name in missing), "fold")
    head = "; ".join([f"{folds} of {plural(found.examples, 'example')}", *filter(None, [ended, remark])])
    parts: list[RenderableType] = [styled(f"{title}: {head}" if title else head.capitalize(), "bold"), ""]
    if found.folds:
        parts.append(padded(fitted(_scores(found)), 2))
    if found.comparison is not None:
        tested = _tested(found)
        where = "all folds" if f"{plural(tested, 'fold')}" == folds else f"{tested} of {folds}"
        parts.append(hanging(f"  {'verdict':11}", "", f"{said(found.comparison)} on {where}", "bold"))
    if found.folds:
        parts.append("")
    parts += [indented(note, 2, "dim") for note in _notes(found, missing, before)]
    total = found.total
    used = f"{plural(total.calls, 'call')}, {count(total.total_tokens)} tokens, {cost(total.dollars)}"
    parts += ["", styled(f"  used {used}, {duration(found.seconds)}"), ""]
    return printed(parts, width, color)


def _scores(found: CrossValidation) -> Table:
    from rich.table import Table  # heavy, and wanted only when something is shown

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("", min_width=8, no_wrap=True)
    for name in ("tested on", "seed prompt", "best prompt", ""):
        table.add_column(name, no_wrap=True)
    for number, each in enumerate(found.folds, 1):
        table.add_row(f"fold {number}", *_tested_on(each))
    if found.seed is not None and found.best is not None:
        table.add_row("all", str(len(found.seed)), measured(found.seed), measured(found.best), "", style="bold")
    return table


def _tested_on(each: TrainResult) -> tuple[str, str, str, str]:
    if each.seed_test is None or each.best_test is None:
        return "not tested", "", "", ""
    kept = "" if each.best != each.seed else "(the seed prompt)"
    return str(len(each.best_test)), score(each.seed_test.mean), score(each.best_test.mean), kept


def _tested(found: CrossValidation) -> int:
    """How many folds were tested."""
    return sum(each.seed_test is not None and each.best_test is not None for each in found.folds)


def _notes(found: CrossValidation, missing: Sequence[str], before: int) -> list[str]:
    notes = []
    if found.comparison is not None and found.comparison.remark:
        remark = found.comparison.remark
        notes.append(f"{remark[:1].upper()}{remark[1:]}.")
    tested = 0 if found.seed is None else len(found.seed)
    if tested:
        notes.append(
            "Each example was tested once, with a prompt that was trained without it. The verdict is about the mean of "
            "these prompts. With other examples of the task the gain may differ by more than the interval says."
        )
    if tested and before:
        notes.append(looked_at_before(before))
    if tested < found.examples:
        notes.append(f"{found.examples - tested} of {plural(found.examples, 'example')} were not tested.")
    if missing:
        notes.append(f"Without a result so far, and not counted here: {', '.join(missing)}.")
    if any(each.controls for each in found.runs):
        notes.append("What the controls found is in the report of each run, by its own folder.")
    notes += [f"Fold {number}: {each.untested}." for number, each in enumerate(found.folds, 1) if each.untested]
    shortage = next((each.shortage for each in found.runs if each.shortage), "")
    if shortage:
        notes.append(f"Each run may use an equal part of what is left of the budget: {shortage}.")
    if found.final is not None:
        notes.append("The final prompt is trained on all examples, and itself tested on none.")
    return notes


def folds_in_a_line(found: CrossValidation) -> str:
    """The same in one line."""
    parts = [] if found.status == "finished" else [{"interrupted": "interrupted"}.get(found.status, "budget spent")]
    if found.seed is None or found.best is None or found.comparison is None:
        return "; ".join([*parts, "no fold was tested"])
    parts.append(f"tested {score(found.seed.mean)} -> {score(found.best.mean)}")
    parts.append(f"{found.comparison.verdict} over {plural(_tested(found), 'fold')}")
    return "; ".join([*parts, f"({score(found.comparison.difference, True)})"]).replace("; (", " (")


def folds_as_json(found: CrossValidation, missing: Sequence[str] = (), before: int = 0) -> dict[str, Any]:
    """The same as plain JSON values; the status is null where runs are missing and none says why."""
    return {
        "status": None if missing and not found.stopped else found.status,
        "missing": list(missing),
        "examples": found.examples,
        "test_openings_before": before,
        "verdict": None if found.comparison is None else found.comparison.verdict,
        "comparison": None if found.comparison is None else finite(asdict(found.comparison)),
        "tested": {"seed": evaluation_as_json(found.seed), "best": evaluation_as_json(found.best)},
        "folds": [
            {
                "status": each.status,
                "seed": evaluation_as_json(each.seed_test),
                "best": evaluation_as_json(each.best_test),
                "texts": each.best,
            }
            for each in found.folds
        ],
        "final": None if found.final is None else {"status": found.final.status, "texts": found.final.best},
        "total": usage_as_json(found.total),
        "seconds": round(found.seconds, 3),
    }
