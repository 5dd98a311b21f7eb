"""What ``textgrad-engine init`` says of answers: of those unnamed, of one that most rows have, of rows at odds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from textgrad_engine.cli.init_answers import LABELS, Answer, can_be_listed
from textgrad_engine.cli.init_task import Task
from textgrad_engine.data.casefold import folded
from textgrad_engine.data.split import key_of
from textgrad_engine.ops.alike import number_of, plain
from textgrad_engine.ops.evaluators import written
from textgrad_engine.ops.extract import last_match
from textgrad_engine.report.words import plural
from textgrad_engine.store.files import typed

MOST = 0.9
"""One answer in so large a part of the rows is told of: a prompt scores as much by it alone."""

_SHOWN = 40
"""Characters of an answer that are shown."""


def labels_in_words(task: Task) -> Iterator[str]:
    """What is to be known of answers that are texts or truth values, in sentences."""
    exact = [each for each in task.answers.each if each.metric == {"name": "exact_match"}]
    if task.is_plain and not (task.chats and task.chats.prompt is not None):
        yield from filter(None, map(_unnamed, exact))
    if not task.is_judged:
        yield from filter(None, map(_spelled, exact))
    if not task.answers.fields and exact and not task.is_judged:
        yield from _one_sided(exact[0])


def _unnamed(answer: Answer) -> str:
    """That the first prompt does not name answers that come again, and why; "" where it does, or they are numbers."""
    times = answer.times
    if (
        answer.labels
        or "" in times
        or 2 * len(times) > times.total()
        or all(number_of(each) is not None for each in times)
    ):
        return ""
    once = [each for each in times if times[each] == 1]
    if len(times) > LABELS:
        why = f"as it names {LABELS} at most"
    elif once:
        number = "one is there" if len(once) == 1 else f"{len(once)} are there"
        why = f"as {number} once alone, such as {once[0]!r:.{_SHOWN}}"
    else:
        odd = next(each for each in times if not can_be_listed(each))
        why = f"as some would not be read in it as they are, such as {odd!r:.{_SHOWN}}"
    return (
        f"The prompt does not name the {len(times)} values of {answer.name!r}, {why}: name them in prompt.txt, if an "
        "answer is to be one of them."
    )


def _spelled(answer: Answer) -> str:
    """That answers are written in several ways, of which exact match makes several answers; "" where none is."""
    if 2 * len(answer.times) > answer.times.total():
        return ""
    ways: dict[str, list[str]] = {}
    for each in sorted(answer.times):
        ways.setdefault(" ".join(folded(each).split()), []).append(f"{each!r:.{_SHOWN}}")
    found = [every for every in ways.values() if len(every) > 1]
    if not found:
        return ""
    *first, last = found[0]
    more = f" (and {plural(len(found) - 1, 'more such answer')})" if len(found) > 1 else ""
    return (
        f"Exact match tells {', '.join(first)} and {last} apart, which are {answer.name!r} in different rows{more}: "
        "write them in one way, if they are one answer."
    )


def _one_sided(answer: Answer) -> Iterator[str]:
    """That one answer is that of all rows, or of nearly all."""
    times = answer.times
    [(most, number)] = times.most_common(1)
    rows = times.total()
    said = f"{answer.name!r} is {most!r:.{_SHOWN}} in"
    if number == rows > 1:
        yield f"{said} all {rows} rows, so a prompt that says it always is right, and nothing is to be learned."
    elif MOST * rows <= number < rows:
        yield (
            f"{said} {number} of {rows} rows, so a prompt that says it always scores {number / rows:.3f}: "
            f"`show RUN --by {typed(Path(answer.column))}` tells what became of the others."
        )


def _comparing(answer: Answer) -> Callable[[Any], str]:
    """How the metric of an answer compares values: a text of each, equal for those that it takes for one."""
    final, any_order = answer.final, bool(answer.metric.get("any_order"))

    def compared(value: Any) -> str:
        if final is not None and isinstance(value, str):
            return last_match(final.pattern, value) or ""
        if isinstance(value, list) and any_order:
            value = sorted(value, key=written)
        if isinstance(value, list | dict):
            return json.dumps(value, sort_keys=True)
        return plain(written(value if isinstance(value, str | bool | None) else number_of(value)))

    return compared


def at_odds_in_words(task: Task) -> Iterator[str]:
    """That rows with the same inputs have different answers, and what they leave to be right."""
    if task.is_judged or any(each.are_criteria for each in task.answers.each):
        return
    found: dict[str, Counter[tuple[str, ...]]] = {}
    columns = [map(_comparing(each), each.values) for each in task.answers.each]
    for row, *said in zip(task.seen, *columns):
        found.setdefault(key_of(row, task.shown), Counter())[tuple(said)] += 1
    if odd := [each for each in found.values() if len(each) > 1]:
        rows, right = sum(each.total() for each in odd), sum(max(each.values()) for each in odd)
        yield (
            f"{plural(rows, 'row')} have the same {' and '.join(task.shown)} as another one, and another answer: at "
            f"most {right} of them can be right."
        )


def names_in_words(task: Task) -> Iterator[str]:
    """That a column which seems to name the rows is shown, as it is not called ``id``."""
    for name in task.shown:
        if name != "id" and name.casefold() == "id" and "id" not in task.table.columns:
            yield (
                f"The model is shown the column {name!r}: called 'id' it would name the examples instead, and be no "
                "part of them."
            )
