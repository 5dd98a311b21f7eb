"""A cross-validation for people and for machines: each fold, the verdict of all, what it is about, and what to use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textgrad_engine.llm.money import cost
from textgrad_engine.report.document import evaluation_as_json, finite, floors_as_json, usage_as_json
from textgrad_engine.report.metric_parts import Parts, parts_table, parts_within
from textgrad_engine.report.notes import looked_at_before
from textgrad_engine.report.printing import Sentences, fitted, hanging, indented, open_table, padded, printed, styled
from textgrad_engine.report.view import measured, remark_on, said
from textgrad_engine.report.words import capital, count, duration, interval, plural, score
from textgrad_engine.store.files import typed
from textgrad_engine.store.folds import Folds
from textgrad_engine.train.detectable import enough_examples
from textgrad_engine.train.pooled import CrossValidation
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.standing import missed_in_words
from textgrad_engine.wording import told

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def render_folds(folds: Folds, *, title: str = "", width: int = 80, color: bool = False) -> str:
    """The report as text.

    Args:
        folds: the cross-validation, as `store.read_folds` gives it of its folder.
        title: what it is about, such as its folder.
        width: columns.
        color: with the terminal's codes for colors.

    Raises:
        TypeError: it is something else, such as what `tg.cross_validate` gave, which has no folder by itself.
    """
    if not isinstance(folds, Folds):
        raise TypeError(
            f"render_folds: folds must be what store.read_folds(folder) gives, got {told(folds)}; a cross-validation "
            "has a folder where its trainer has a run_dir, and without one print(it), and report.render(it.final)"
        )
    found, head = folds.found, headline_of(folds)
    parts: list[RenderableType] = [styled(f"{title}: {head}" if title else capital(head), "bold"), ""]
    if found.folds:
        parts.append(padded(fitted(_scores(found)), 2))
    if verdict := verdict_of(folds):
        parts.append(hanging(f"  {'verdict':11}", "", verdict, "bold"))
    if found.folds:
        parts.append("")
    if (metrics := parts_of_folds(found)) is not None:
        parts += parts_table(metrics)
    if advice := advice_of(folds, folds.path):
        parts += [indented(advice[0], 2, "bold"), *(Sentences(each, 2) for each in advice[1:]), ""]
    parts += [indented(each, 2) for each in against_controls(found)]
    parts += [indented(note, 2, "dim") for note in notes_of(folds)]
    total = found.total
    used = f"{plural(total.calls, 'call')}, {count(total.total_tokens)} tokens, {cost(total.dollars)}"
    parts += ["", indented(f"used {used}, {duration(found.seconds)}", 2), ""]
    return printed(parts, width, color)


def headline_of(folds: Folds) -> str:
    """How many folds of how many examples, and how it ended, in words."""
    found = folds.found
    ended = {"finished": "", "interrupted": "interrupted", "budget": f"{_spent(found)} was spent"}[found.status]
    if folds.missing and not found.stopped:
        ended = "it still goes on" if folds.locked else "it did not finish"
    remark = remark_on(folds.config)
    several = f"{plural(folds.folds, 'fold')} of {plural(found.examples, 'example')}"
    return "; ".join([several, *filter(None, [ended, remark])])


def verdict_of(folds: Folds) -> str:
    """The verdict of all folds, in words; "" where none was tested."""
    found = folds.found
    if found.comparison is None:
        return ""
    tested, missed = _tested(found), missed_in_words(found.floors)
    on = "all folds" if tested == folds.folds else f"{tested} of {folds.folds} folds"
    return f"{said(found.comparison)} on {on}{f'; {missed}' if missed else ''}"


def _scores(found: CrossValidation) -> Table:
    table = open_table()
    table.add_column("", min_width=8, no_wrap=True)
    for name in ("tested on", "seed prompt", "best prompt", ""):
        table.add_column(name, no_wrap=True)
    for number, each in enumerate(found.folds, 1):
        table.add_row(f"fold {number}", *_tested_on(each))
    if found.seed is not None and found.best is not None:
        table.add_row("all", str(len(found.seed)), measured(found.seed), measured(found.best), "", style="bold")
    return table


def parts_of_folds(found: CrossValidation) -> Parts | None:
    """What each metric gave on the examples of all folds."""
    return parts_within([("seed prompt", found.seed), ("best prompts", found.best)])


def _tested_on(each: TrainResult) -> tuple[str, str, str, str]:
    if each.seed_test is None or each.best_test is None:
        return "not tested", "", "", ""
    kept = "" if each.best != each.seed else "unchanged"
    return str(len(each.best_test)), score(each.seed_test.mean), score(each.best_test.mean), kept


def _tested(found: CrossValidation) -> int:
    """How many folds were tested."""
    return sum(each.seed_test is not None and each.best_test is not None for each in found.folds)


def advice_of(folds: Folds, path: Path) -> list[str]:
    """Which prompt to use, and what is known of it, in sentences, the prompt first; empty without a final run.

    Args:
        folds: the cross-validation.
        path: its folder, as the reader is to be told.
    """
    found = folds.found
    final, compared = found.final, found.comparison
    if final is None or compared is None:
        return []
    if final.best == final.seed:
        if final.status == "finished":
            return ["The prompt to use: the seed prompt, as the run on all examples found none that does better"]
        why = "The run on all examples was ended before it had found a change that is worth keeping."
        return ["The final prompt is still the seed prompt", f"{why} {folds.way_on} goes on with it."]
    where = path / "final" / ("best_prompt.txt" if len(final.best) == 1 else "best")
    measure = f"`textgrad-engine eval {typed(path)} --data FILE` measures the prompt on other examples."
    gain, unseen = score(compared.difference, True), "on examples that they had not seen"
    if found.use == "seed":
        did = "did worse" if compared.verdict == "worse" else "did no better"
        return ["The prompt to use: the seed prompt", f"The folds' prompts {did} {unseen}: {gain}."]
    if found.use == "final":
        sizes = [len(each.best_test) for each in found.folds if each.best_test is not None]
        trained_on = found.examples - round(sum(sizes) / len(sizes))
        title = f"The prompt to use: {where}"
        known = (
            f"It was trained on all {plural(found.examples, 'example')}, so none tests it. But the folds' prompts, "
            f"each made in the same way from about {trained_on} of them, gained {gain} on average {unseen}, in "
            f"{found.gained} of {plural(_tested(found), 'fold')}. A single prompt may be better or worse than that "
            "average."
        )
    elif compared.lost:
        title = "Which prompt to use is open, as the folds' prompts lose answers"
        known = (
            f"They came to {gain} {interval(compared.interval, True)} {unseen}, of those that are left, and "
            f"{compared.remark}. Their runs say why; until that is repaired, keep the seed prompt."
        )
    else:
        title = "Which prompt to use is open, as these examples do not tell"
        known = (
            f"The folds' prompts came to {gain} {interval(compared.interval, True)} {unseen}, which may be luck. If a "
            f"change costs you nothing, take the final prompt, {where}; if you have to be sure, keep the seed prompt, "
            f"or collect more examples{_enough(found)}."
        )
    unfinished = " The run on all examples did not finish, so it may have learned too little."
    cut = "" if final.status == "finished" else unfinished
    return [title, f"{known}{cut} {measure}"]


def _enough(found: CrossValidation) -> str:
    """How many examples would show the difference that was seen, in words; "" where no number would."""
    assert found.seed is not None
    assert found.best is not None
    needed = enough_examples(found.seed, found.best)
    if needed is None:
        return ""
    step = 10 ** max(0, len(str(needed)) - 2)
    return f": some {count(-(-needed // step) * step)} show a difference of that size 4 times in 5"


def against_controls(found: CrossValidation) -> Iterator[str]:
    """What feedback is worth, beside each control, in sentences."""
    for each in found.controls:
        same = f" In {plural(each.same, 'fold')} both came to the same prompt." if each.same else ""
        yield (
            f"Against {each.name} (test mean {score(each.test.mean)}): {said(each.comparison)} on "
            f"{plural(each.comparison.n, 'example')} of {plural(each.folds, 'fold')}.{same}"
        )


def notes_of(folds: Folds) -> list[str]:
    """What is to be known when reading the verdict, in sentences."""
    found, notes = folds.found, []
    if found.comparison is not None and (remark := found.comparison.remark or found.comparison.caveat):
        notes.append(f"{capital(remark)}.")
    tested = 0 if found.seed is None else len(found.seed)
    if tested:
        notes.append(
            "Each example was tested once, with a prompt that was trained without it. The verdict is about the mean of "
            "these prompts. With other examples of the task the gain may differ by more than the interval says."
        )
    if tested and folds.looks_before:
        notes.append(looked_at_before(folds.looks_before))
    if tested < found.examples:
        notes.append(f"{found.examples - tested} of {plural(found.examples, 'example')} were not tested.")
    if folds.missing:
        notes.append(f"Without a result so far, and not counted here: {', '.join(folds.missing)}.")
    wanted = [each.controls for each in found.runs if each.controls is not None]
    if any(each.each for each in wanted):
        notes.append("What the controls found in each run is in its own report.")
    if without := sum(bool(each.problem) for each in wanted):
        notes.append(f"The budget had no room for controls in {without} of {plural(len(wanted), 'run')}; raise it.")
    if found.final is not None:
        notes += [f"In the run on all examples, {sentence}." for sentence in found.final.terms]
    notes += _idle(found)
    notes += [f"Fold {number}: {each.untested}." for number, each in enumerate(found.folds, 1) if each.untested]
    if shortage := _shortage(found):
        notes.append(f"{capital(shortage)}.")
    if found.final is not None and found.comparison is None:
        notes.append("The final prompt is trained on all examples, and itself tested on none.")
    return notes


def _idle(found: CrossValidation) -> Iterator[str]:
    """Why searches were ended before their steps were over: by their time, at the top, in vain, or with money left."""
    numbers: dict[str, list[str]] = {}
    for number, each in enumerate(found.folds, 1):
        if each.idle:
            numbers.setdefault(each.idle, []).append(str(number))
    for why, alike in numbers.items():
        yield f"Fold{'s' if alike[1:] else ''} {', '.join(alike)}: {why}."
    if found.final is not None:
        for why in filter(None, [found.final.idle, found.final.unspent]):
            yield f"The run on all examples: {why}."


def _spent(found: CrossValidation) -> str:
    """What a budget ended, in words; the last run has all that is left of it, so one that finishes has left some."""
    if found.spent_its_part:
        return "the optimizer's part of the budget"
    some = sum(each.status == "budget" for each in found.folds)
    left = found.final is not None and found.final.status == "finished"
    return f"the part of {plural(some, 'fold')} of the budget" if left else "the budget"


def _shortage(found: CrossValidation) -> str:
    """Why a run asked for nothing at all, where its part of the budget allowed not even one call; else ""."""
    why = next((each.shortage for each in found.runs if each.shortage), "")
    return why and f"each run may use an equal part of what is left of the budget: {why}"


def folds_in_a_line(found: CrossValidation) -> str:
    """The same in one line."""
    if (shortage := _shortage(found)) and not found.total.calls:
        return f"nothing was asked: {shortage}"
    ended = {"finished": "", "interrupted": "interrupted", "budget": f"{_spent(found).removeprefix('the ')} spent"}
    parts = [*filter(None, [ended[found.status]])]
    if found.seed is None or found.best is None or found.comparison is None:
        return "; ".join([*parts, "no fold was tested"])
    parts.append(f"tested {score(found.seed.mean)} -> {score(found.best.mean)}")
    parts.append(f"{found.comparison.verdict} over {plural(_tested(found), 'fold')}")
    parts[-1] += f" ({score(found.comparison.difference, True)})"
    return "; ".join([*parts, *filter(None, [missed_in_words(found.floors)])])


def _final_as_json(final: TrainResult) -> dict[str, Any]:
    return {
        "status": final.status,
        "idle": final.idle or None,
        "texts": final.best,
        "terms": list(final.terms),
        "floors": floors_as_json(final.floors),
    }


def folds_as_json(folds: Folds) -> dict[str, Any]:
    """The same as plain JSON values; the status is null where runs are missing and none says why."""
    found, missing = folds.found, folds.missing
    return {
        "status": None if missing and not found.stopped else found.status,
        "shortage": _shortage(found) or None,
        "missing": missing,
        "examples": found.examples,
        "test_openings_before": folds.looks_before,
        "verdict": None if found.comparison is None else found.comparison.verdict,
        "comparison": None if found.comparison is None else finite(asdict(found.comparison)),
        "tested": {"seed": evaluation_as_json(found.seed), "best": evaluation_as_json(found.best)},
        "floors": floors_as_json(found.floors),
        "folds": [
            {
                "status": each.status,
                "idle": each.idle or None,
                "seed": evaluation_as_json(each.seed_test),
                "best": evaluation_as_json(each.best_test),
                "texts": each.best,
            }
            for each in found.folds
        ],
        "final": None if found.final is None else _final_as_json(found.final),
        "use": found.use,
        "controls": [
            {
                "name": each.name,
                "test": evaluation_as_json(each.test),
                "comparison": finite(asdict(each.comparison)),
                "folds": each.folds,
                "same": each.same,
                "usage": usage_as_json(each.usage),
            }
            for each in found.controls
        ],
        "total": usage_as_json(found.total),
        "seconds": round(found.seconds, 3),
    }
