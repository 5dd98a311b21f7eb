"""What changed in a text, printed: the lines near a change, and behind each who asked for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from textgrad_engine.report.difference import Asked, DiffLine
from textgrad_engine.report.evidence import in_words, merged
from textgrad_engine.report.printing import hanging, indented, styled
from textgrad_engine.report.view import ParameterView
from textgrad_engine.report.words import plural

if TYPE_CHECKING:
    from rich.console import RenderableType

CONTEXT = 2
"""Lines that stayed are shown up to so far from a changed one."""

SHOWN_ITEMS = 3
"""So many pieces of feedback are shown of a line, and so many edits that stood in its place before."""

SHOWN_FEEDBACK = 200
"""Characters of a piece of feedback that are shown: large critics write so much that nobody would read all of it."""


def changes_table(parameters: Sequence[ParameterView]) -> Iterator[RenderableType]:
    """What changed in each text; those that are as before are named together, behind the others."""
    alone = len(parameters) == 1
    for parameter in parameters:
        if parameter.changed:
            yield from _diff(parameter, alone=alone)
            yield ""
    if as_before := [parameter.name for parameter in parameters if not parameter.changed]:
        named = "the prompt" if alone else ", ".join(as_before)
        yield hanging("", "", f"What changed in {named}: nothing", "bold")
        yield ""


def _diff(parameter: ParameterView, *, alone: bool) -> Iterator[RenderableType]:
    what = "the prompt" if alone else parameter.name
    yield styled(f"What changed in {what}: ", "bold").append(parameter.counts, style="not bold")
    yield ""
    shown = _near_changes(parameter.lines)
    skipped = 0
    for line, behind, near in zip(parameter.lines, _behind(parameter.lines), shown):
        if not near:
            skipped += 1
            continue
        if skipped:
            yield indented(f"({plural(skipped, 'line')} as before)", 4, "dim")
            skipped = 0
        yield from _diff_line(line, told_behind=behind is not None and _story(line) == _story(behind))
    if skipped:
        yield indented(f"({plural(skipped, 'line')} as before)", 4, "dim")
    if tells_of_show(parameter):
        yield ""
        yield indented("--line N with `show` has all that was said of a line.", 2, "dim")


def tells_of_show(parameter: ParameterView) -> bool:
    """Whether more was said of one of its lines than is shown, so that ``show --line`` is named."""
    return any(map(_is_cut, parameter.lines))


def _is_cut(line: DiffLine) -> bool:
    """Whether not all is shown that was said of an added line."""
    items = merged(line.evidence)
    left = len(items) > SHOWN_ITEMS or any(len(item.text) > SHOWN_FEEDBACK for item in items)
    return line.op == "added" and (left or any(asked.evidence for asked in line.earlier))


def _own(line: DiffLine) -> Asked:
    return Asked(line.step, line.reason, line.evidence)


def _near_changes(lines: Sequence[DiffLine]) -> list[bool]:
    changed = [position for position, line in enumerate(lines) if line.op != "same"]
    near = {at for position in changed for at in range(position - CONTEXT, position + CONTEXT + 1)}
    return [position in near for position in range(len(lines))]


def _story(line: DiffLine) -> tuple[object, ...]:
    """What is told of a line: of the lines of solved examples, which are one edit, the same of each."""
    return line.op, line.step, line.reason, line.evidence, line.earlier


def _behind(lines: Sequence[DiffLine]) -> list[DiffLine | None]:
    """For each line the next one of which something may be told: not of one that the line behind it replaced."""
    found: list[DiffLine | None] = []
    last: DiffLine | None = None
    for line in reversed(lines):
        found.append(last)
        last = last if line.replaced else line
    return found[::-1]


def _diff_line(line: DiffLine, *, told_behind: bool) -> Iterator[RenderableType]:
    """A line, and who asked for it, where that is not told behind the next one."""
    mark, style = {"same": (" ", ""), "added": ("+", "green"), "removed": ("-", "red")}[line.op]
    yield hanging(f"  {mark} ", "", line.shown, style)
    if line.op == "same" or line.replaced or told_behind:
        return
    if line.step is not None or line.reason or line.evidence:
        yield from _asked(_own(line))
    for asked in line.earlier[:SHOWN_ITEMS]:
        heard = len(merged(asked.evidence))
        yield _step_and_reason(asked, "before that, ", f" ({plural(heard, 'piece')} of feedback)" if heard else "")
    if (more := len(line.earlier) - SHOWN_ITEMS) > 0:
        yield indented(f"and {plural(more, 'earlier edit')} of it", 6, "dim")


def _asked(asked: Asked) -> Iterator[RenderableType]:
    """A step, its reason and the feedback that it answers."""
    yield _step_and_reason(asked, "", "" if asked.evidence else " (cites no feedback)")
    items = merged(asked.evidence)
    for item in items[:SHOWN_ITEMS]:
        yield hanging(" " * 6, " " * 2, f"{in_words(item.examples)}: {_shortened(item.text)}", "dim")
    if (more := len(items) - SHOWN_ITEMS) > 0:
        yield indented(f"and {plural(more, 'more piece')} of feedback", 6, "dim")


def _step_and_reason(asked: Asked, when: str, behind: str) -> RenderableType:
    by = "a step of an earlier run" if asked.step is None else f"step {asked.step}"
    return hanging(" " * 6, " " * 2, f"{when}{by}: {asked.reason or 'no reason given'}{behind}", "dim")


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_FEEDBACK else text[: SHOWN_FEEDBACK - 1].rstrip() + "…"
