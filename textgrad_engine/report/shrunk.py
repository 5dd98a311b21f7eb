"""What shrinking a prompt came to, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textgrad_engine.optim.sentences import places_of
from textgrad_engine.report.printing import fitted, hanging, indented, open_table, padded, printed, styled
from textgrad_engine.report.view import said
from textgrad_engine.report.words import cost, count, interval, plural, score
from textgrad_engine.train import ShrinkResult

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
        "noise": "answers change too much by themselves for so few examples to tell",
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
        *([hanging("  ", "  ", f"{remark[:1].upper()}{remark[1:]}.")] if (remark := result.comparison.remark) else []),
        "",
        *_front(result),
        "",
    ]
    for name, lost in result.refused.items():
        which = "The prompt" if len(result.removed) == 1 else name
        parts += [hanging("  ", "  ", f"{which} stays as it was: {_refusal(result, lost)}"), ""]
    for name, numbers in result.removed.items():
        what = "the prompt" if len(result.removed) == 1 else name
        parts.append(styled(f"Left out of {what}: {plural(len(numbers), 'line') if numbers else 'nothing'}", "bold"))
        places = places_of(result.before[name])
        parts += [hanging("  - ", "", places[number - 1].text.rstrip(), "red") for number in numbers]
        parts.append("")
    return printed(parts, width, color)


def _refusal(result: ShrinkResult, lost: float) -> str:
    if result.ended == "budget" and lost > 1:
        return "the budget was spent before the shorter text that was found could be compared with it once more."
    could = f"may cost up to {lost:.2f} of the scale" if lost <= 1 else "cost answers"
    more = "A larger budget, more examples" if result.ended == "budget" else "More examples"
    return (
        f"the shorter text that was found {could}, as far as {plural(result.comparison.n, 'example')} can tell. "
        f"{more}, a judge that is less noisy, or a larger --margin may show that it is as good."
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
