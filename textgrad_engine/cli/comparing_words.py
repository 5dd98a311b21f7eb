"""What a comparison of several prompts and models found, for people and for machines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from textgrad_engine.cli import run_data
from textgrad_engine.cli.comparing import Arm, Failure, Result, name_of, size_of
from textgrad_engine.cli.evaluation_words import (
    examples_of,
    floors_as_list,
    least_seen,
    measured,
    missed_floors,
    of_the_test,
)
from textgrad_engine.cli.output import colors, said_of, width
from textgrad_engine.llm.money import money
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.changed import changed_as_json, changed_in_lines, how_changed
from textgrad_engine.report.document import evaluation_as_json, finite, usage_as_json
from textgrad_engine.report.earlier import worse_in_words
from textgrad_engine.report.notes import lost
from textgrad_engine.report.printing import fitted, harmless, open_table, padded, printed, wrapped
from textgrad_engine.report.view import size
from textgrad_engine.report.words import capital, count, interval, plural, score
from textgrad_engine.train import Evaluation
from textgrad_engine.train.scores import ALIKE

if TYPE_CHECKING:
    from rich.table import Table


def in_words(arms: Sequence[Arm], found: Sequence[Result], failed: Sequence[Failure] = ()) -> str:
    """The scores, each beside the first, with all that one must know to judge them.

    Args:
        arms: all that were to be compared.
        found: what came of those that were come to, and that no error ended.
        failed: those that one ended.
    """
    subject, first = arms[0].task.subject, found[0]
    on = examples_of(subject, first.done.entry)
    many = "" if first.evaluation is None else f", {size(first.evaluation)}"
    lines = [
        "",
        *wrapped(harmless(f"{subject.path}: {size_of(arms)} on {on}{many}"), min(width(), 100)),
        "",
        printed([padded(fitted(_table(found)), 2)], width(), colors()).rstrip("\n"),
        "",
    ]
    for arm in arms:
        number = f"{arm.number:<{len(str(len(arms)))}}"
        lines += wrapped(f"{name_of(arm, arms)}{_short(arm, found, failed)}", min(width(), 100), f"  {number}  ")
    lines += _changes(found, len(arms))
    for remark in _remarks(found):
        lines += ["", *wrapped(remark, min(width(), 100), "  ")]
    return "\n".join(lines)


def in_one_line(arms: Sequence[Arm], found: Sequence[Result]) -> str:
    """What ``--quiet`` prints: the one with the highest mean of those that came to their end, and what may be said."""
    scored = [each for each in found if each.evaluation is not None]
    scored = [each for each in scored if each.done.ended is None] or scored
    best = max(scored, key=_mean)
    told = f"{arms[0].task.subject.path}: of {size_of(arms)} {name_of(best.arm, arms)} has the highest score"
    if best.evaluation is not None:
        told += f", {measured(best.evaluation)}"
        if unanswered := best.evaluation.unanswered:
            told += f" without {plural(unanswered, 'answer')}"
    if best.comparison is not None:
        difference, verdict = _beside(best)
        told += f"; {verdict} beside the first: {difference}"
    if best.arm.worked:
        told += f"; the run behind it worked with {best.arm.worked}, which flatters it"
    if same := [name_of(each.arm, arms) for each in scored if each is not best and _mean(each) >= _mean(best) - ALIKE]:
        told += f"; {_and(same)} {'has' if len(same) == 1 else 'have'} the same score"
    return harmless(told)


def _mean(result: Result) -> float:
    return -math.inf if result.evaluation is None else result.evaluation.mean


def _and(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def as_document(arms: Sequence[Arm], found: Sequence[Result], failed: Sequence[Failure] = ()) -> dict[str, Any]:
    """What ``--json`` prints: an entry for each arm, in their order; null for what was not come to.

    Args:
        arms: as for `in_words`.
        found: likewise.
        failed: likewise.
    """
    subject = arms[0].task.subject
    done: dict[int, Result | Failure] = {each.arm.number: each for each in found}
    done |= {each.arm.number: each for each in failed}
    early = (each.done.entry["status"] for each in found if each.done.ended is not None)
    ended = "failed" if failed else next(early, "finished")
    return {
        "config" if subject.run is None else "run": str(subject.path),
        "data": arms[0].task.about["data"],
        "split": arms[0].task.about["split"],
        "status": ended,
        "arms": [_arm_as_json(arm, done.get(arm.number)) for arm in arms],
    }


def worse_than_the_first(arms: Sequence[Arm], found: Sequence[Result]) -> list[str]:
    """Which arms are worse than the first, have fewer answers, or miss a floor of the config, and how, in words."""
    first, told = name_of(arms[0], arms), []
    for each in found[1:]:
        if each.comparison is None:
            why = f"no example has a score with it and with {first}, so nothing shows that it is not worse"
        else:
            why = worse_in_words(each.comparison, first) or missed_floors(each.done)
        told += [harmless(f"{name_of(each.arm, arms)}: {why}")] if why else []
    return told


def _short(arm: Arm, found: Sequence[Result], failed: Sequence[Failure]) -> str:
    """Why an arm has no score, in brackets; "" where it has one."""
    for each in found:
        if each.arm is arm:
            return "" if each.evaluation is not None else " (nothing was scored)"
    return " (failed)" if any(each.arm is arm for each in failed) else " (nothing was asked)"


def _arm_as_json(arm: Arm, done: Result | Failure | None) -> dict[str, Any]:
    task, found = arm.task, done if isinstance(done, Result) else None
    evaluation = None if found is None else found.evaluation
    plain = {} if evaluation is None else dict(zip(evaluation.ids, evaluation.scores))
    return {
        "number": arm.number,
        "prompt": task.about["prompt"],
        "config": arm.config or None,
        "models": task.about["models"],
        "evaluation": evaluation_as_json(evaluation),
        "scores": plain,
        "comparison": None if found is None or found.comparison is None else finite(asdict(found.comparison)),
        "changed": None if found is None else changed_as_json(found.changed),
        "floors": [] if found is None else floors_as_list(found.done.floors),
        "usage": None if found is None else usage_as_json(found.done.used),
        "program": None if found is None else usage_as_json(found.done.program),
        "error": said_of(done.error) if isinstance(done, Failure) else None,
    }


def _table(found: Sequence[Result]) -> Table:
    table = open_table()
    for head in ("", "score", "beside 1", ""):
        table.add_column(head, no_wrap=True)
    for head in ("tokens", *(["cost"] if _priced(found) else [])):
        table.add_column(head, justify="right", no_wrap=True)
    for each in found:
        if each.evaluation is not None:
            taken = _taken(each.done.scored, each.evaluation)
            table.add_row(str(each.arm.number), measured(each.evaluation), *_beside(each), *taken[: 1 + _priced(found)])
    return table


def _priced(found: Sequence[Result]) -> bool:
    return any(each.done.program.dollars for each in found)


def _beside(result: Result) -> tuple[str, str]:
    """The difference to the first, and the verdict."""
    if (found := result.comparison) is None:
        return "", ""
    return f"{score(found.difference, signed=True)} {interval(found.interval, signed=True)}", found.verdict


def _taken(used: Usage, evaluation: Evaluation) -> tuple[str, str]:
    """What the program's calls take: tokens of one example, and what 1,000 cost."""
    runs = sum(score is not None for row in evaluation.samples or [evaluation.scores] for score in row) or 1
    dollars = "?" if used.dollars is None else money(1000 * used.dollars / runs)
    return count(round(used.total_tokens / runs)), dollars


def _changes(found: Sequence[Result], arms: int) -> Iterator[str]:
    """Which examples got worse beside the first, and which better: a line each."""
    gap = [""]
    for each in found:
        if each.changed is not None:
            yield from gap
            gap = []
            mark = f"  {each.arm.number:<{len(str(arms))}}  "
            yield from changed_in_lines(each.changed, mark, min(width(), 100))


def _remarks(found: Sequence[Result]) -> Iterator[str]:
    """What a reader must know to judge the scores."""
    comparisons = [each.comparison for each in found if each.comparison is not None]
    if len(comparisons) > 1:
        yield (
            f"The verdicts allow for {len(comparisons)} comparisons (max-T): if none differs from the first, luck "
            "shows a difference in 5 of 100 cases. Each interval is a 95% one by itself."
        )
    yield from (f"Not shown is not the same as equal: {remark}." for remark in least_seen(comparisons))
    if caveats := [each.caveat for each in comparisons if each.caveat]:
        yield f"{capital(caveats[0])}."
    for each in found:
        if missed := missed_floors(each.done):
            yield f"Of {each.arm.number}: {missed}."
        if each.evaluation is not None and each.evaluation.unanswered:
            yield f"Of {each.arm.number}: {lost(each.evaluation)}"
        if (kept := each.comparison) is not None and kept.held_back:
            of, than, word = (each.arm.number, 1, "better") if kept.lost else (1, each.arm.number, "worse")
            yield (
                f"Of {each.arm.number}: answers of {of} were lost on "
                f"{plural(kept.lost or kept.lost_before, 'example')} where {than} has one, which is rare by chance "
                f"(5%), so it is not called {word}, whatever is left says."
            )
    changes = [each.changed for each in found if each.changed is not None]
    how = how_changed(changes)
    if any(each.some for each in changes) and not run_data.opens_test(found[0].done.entry):
        how += f"{' ' * bool(how)}`--example ID` shows one of them in full, with each answer."
    if how:
        yield how
    of_cost = ", the cost for 1,000 examples" if _priced(found) else ""
    yield (
        f"Tokens are the program's for one example{of_cost}. If you choose one of these by its score, that score "
        "flatters it."
    )
    behind: dict[str, list[Arm]] = {}
    for each in found:
        if each.arm.worked:
            behind.setdefault(each.arm.worked, []).append(each.arm)
    for worked, arms in behind.items():
        several = len({arm.run for arm in arms}) > 1
        flattered = "its score is" if len(arms) == 1 else "their scores are"
        numbers = _and([str(arm.number) for arm in arms])
        yield (
            f"The run{'s' * several} behind {numbers}{' each' * several} worked with {worked}, so {flattered} "
            "flattered here."
        )
    yield from of_the_test(found[-1].arm.task.subject, found[-1].done)
