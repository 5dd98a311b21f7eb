"""What shrinking a prompt came to, for people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from textgrad_engine.llm.money import cost
from textgrad_engine.optim.sentences import places_of
from textgrad_engine.report.printing import fitted, hanging, indented, open_table, padded, printed, styled
from textgrad_engine.report.view import said
from textgrad_engine.report.words import capital, count, interval, plural, score
from textgrad_engine.train import ShrinkResult
from textgrad_engine.train.scores import apart

if TYPE_CHECKING:
    from rich.console import RenderableType


def render_shrunk(result: ShrinkResult, *, title: str = "", width: int = 80, color: bool = False) -> str:
    """What shrinking came to: tokens and scores, the front, and the lines that went.

    Args:
        result: of `train.shrink`.
        title: what it is about, e.g. the run folder.
        width: columns.
        color: with the terminal's codes for colors.
    """
    used = result.usage
    spent = f"{plural(used.calls, 'call')}, {count(used.total_tokens)} tokens, {cost(used.dollars)}"
    why = {
        "finished": "",
        "tries": "no more were allowed",
        "budget": "the budget was spent",
        "runs": "that is as many runs as a search may take",
        "noise": "these examples could not show that a shorter text is as good",
    }[result.ended]
    ended = f"; {why}, so not every line was tried" if why else ""
    parts: list[RenderableType] = [
        styled(title, "bold"),
        styled(f"{plural(result.tried, 'shorter text')} raced with {spent}{ended}"),
        "",
        _scores(result),
        "",
        hanging("  ", "  ", f"The short prompt against the whole one: {said(result.comparison)} on validation."),
        indented("It was chosen there, so its score there flatters it.", 2, "dim"),
        *([hanging("  ", "  ", f"{capital(remark)}.")] if (remark := result.comparison.remark) else []),
        "",
        *_front(result),
        "",
    ]
    parts += [line for said in _shown(result) for line in (hanging("  ", "  ", said), "")]
    for name, numbers in result.removed.items():
        what = "the prompt" if len(result.removed) == 1 else name
        parts.append(styled(f"Left out of {what}: {plural(len(numbers), 'line') if numbers else 'nothing'}", "bold"))
        places = places_of(result.before[name])
        parts += [hanging("  - ", "", places[number - 1].text.rstrip(), "red") for number in numbers]
        parts.append("")
    return printed(parts, width, color)


def _shown(result: ShrinkResult) -> Iterator[str]:
    """What answers that chose nothing say of the texts that were found."""
    few = plural(result.comparison.n, "example")
    if any(result.removed.values()):
        yield (
            f"On other examples the short prompt may cost up to {score(result.at_worst)} of the scale (95%), as far as "
            f"{few} can tell; up to {score(result.margin)} is accepted."
        )
    for name, lost in result.refused.items():
        which = "The prompt" if len(result.removed) == 1 else name
        stays, text = "stays as it was", "a shorter text"
        if result.removed[name]:
            stays, text = "gets no shorter than this", "a still shorter text"
        if result.ended == "budget" and lost > 1:
            yield f"{which} {stays}: {text} was found, but the budget was spent before it was shown to be as good."
            continue
        most, taken = apart(lost, result.margin)
        could = f"may cost up to {most} of the scale where up to {taken} is accepted"
        could = could if lost <= 1 else "cost answers"
        more = "A larger budget, more examples" if result.ended == "budget" else "More examples"
        yield (
            f"{which} {stays}: {text} was found, but it {could}, as far as {few} can tell. {more}, a judge that is "
            "less noisy, or a larger --margin may show that it is as good."
        )
    if result.needed is not None:
        examples, margin = result.needed
        wider = f"; --margin {math.ceil(100 * margin) / 100:.2f} needs no more" if margin <= 1 else ""
        yield (
            f"So few examples ({result.comparison.n}), or answers that change by themselves so much, cannot show that "
            f"a text costs less than {score(result.margin)} of the scale. {count(examples)} can, or a judge that is "
            f"less noisy{wider}."
        )


def _scores(result: ShrinkResult) -> RenderableType:
    table = open_table()
    table.add_column("", no_wrap=True)
    table.add_column("tokens", justify="right")
    table.add_column("validation", no_wrap=True)
    rows = zip(("whole prompt", "short prompt"), result.tokens, (result.before_val, result.after_val))
    for name, size, found in rows:
        table.add_row(name, count(size), f"{score(found.mean)} {interval(found.interval)}")
    return padded(fitted(table), 2)


def _front(result: ShrinkResult) -> Iterator[RenderableType]:
    yield styled("Score against length, of all that was raced", "bold")
    yield ""
    table = open_table()
    table.add_column("tokens", justify="right")
    table.add_column("validation", justify="right")
    table.add_column("")
    for point in result.front:
        known = {"short prompt": result.after, "whole prompt": result.before}
        which = next((name for name, texts in known.items() if texts == point.texts), "")
        table.add_row(count(point.tokens), score(point.score), which)
    yield padded(fitted(table), 2)
