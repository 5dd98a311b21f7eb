"""The report for people: in a terminal, in a pipe, 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from textgrad_engine.llm.money import cost, money
from textgrad_engine.report.difference import diff_of
from textgrad_engine.report.difference_tables import changes_table, tells_of_show
from textgrad_engine.report.doubts import note_of
from textgrad_engine.report.front import Front, front_within
from textgrad_engine.report.metric_parts import parts_of_result, parts_table
from textgrad_engine.report.printing import (
    Sentences,
    fitted,
    group,
    hanging,
    indented,
    open_table,
    padded,
    printed,
    styled,
    unwrapped,
)
from textgrad_engine.report.tools import ToolRow
from textgrad_engine.report.unfinished import so_far
from textgrad_engine.report.view import ParameterView, View, headline, view_of
from textgrad_engine.report.words import capital, count, duration, plural, score, short
from textgrad_engine.train.events import StepEnded
from textgrad_engine.train.none_kept import none_kept
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.standing import missed_in_words
from textgrad_engine.wording import told

if TYPE_CHECKING:
    from rich.console import RenderableType

    from textgrad_engine.store.reader import Run

SHOWN_CHARACTERS = 320

SHOWN_TOOLS = 10
"""So many of the names are shown that models call tools by; they may call what there is not."""


_COMMANDS = "`show` and `eval` are commands that read the folder of a run, which Trainer(run_dir=...) writes."


def render(
    result: TrainResult,
    *,
    title: str = "",
    remark: str = "",
    openings: int | None = None,
    before: int = 0,
    tools: Sequence[ToolRow] = (),
    width: int = 80,
    color: bool = False,
) -> str:
    """The report as text: scores and verdict, cost, and the prompt's diff with what asked for each line.

    Args:
        result: of a run, or read back from its folder.
        title: what the report is about, e.g. the run folder; without one it says what reads such a folder.
        remark: what was special about it, e.g. that it is a control.
        openings: how often the test set was opened, evaluations since the run included; None for the run's own.
        before: how often other runs had opened the same test examples before this one.
        tools: what the program's tools gave (`tools_of`).
        width: columns.
        color: with the terminal's codes for colors.

    Raises:
        TypeError: it is no result of a run; of a cross-validation each of `folds` and `final` is one.
    """
    given: Any = result
    if not isinstance(given, TrainResult):
        inside = "give its .result; " if isinstance(getattr(given, "result", None), TrainResult) else ""
        raise TypeError(
            f"render: result must be a TrainResult, got {told(given)}; {inside}an evaluation and a cross-validation "
            "are printed as they are, and render_folds shows the folder of the latter"
        )
    view = view_of(result, openings, before)
    ended = f"{view.headline}; {remark}" if remark else view.headline
    parts: list[RenderableType] = [*_headline(title, ended), "", _scores(view), ""]
    if view.notes:
        parts += [*(indented(note, 2, "dim") for note in view.notes), ""]
    if (metrics := parts_of_result(result)) is not None:
        parts += parts_table(metrics)
    parts += [_usage(view), ""]
    if tools:
        parts += [*_tools(tools), ""]
    if (front := front_within(result)) is not None:
        parts += [*_front(front), ""]
    if view.controls and result.controls is not None:
        parts += [*_controls(view, result.controls.calls), ""]
    parts += changes_table(view.parameters)
    if view.problems:
        parts.append(styled("Not everything went well", "bold"))
        parts += [indented(problem, 2) for problem in view.problems[:10]]
        if len(view.problems) > 10:
            parts.append(indented(f"and {len(view.problems) - 10} more, in events.jsonl", 2))
        parts.append("")
    if not title and (front is not None or any(note_of(result)) or any(map(tells_of_show, view.parameters))):
        parts += [indented(_COMMANDS, 2, "dim"), ""]
    return printed(parts, width, color)


def _tools(rows: Sequence[ToolRow]) -> Iterator[RenderableType]:
    table = open_table()
    table.add_column("tool", max_width=40, overflow="ellipsis", no_wrap=True)
    for name in ("calls", "came to nothing"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows[:SHOWN_TOOLS]:
        table.add_row(styled(row.name), count(row.calls), count(row.failed) if row.failed else "")
    yield styled("What the tools gave", "bold")
    yield ""
    yield padded(fitted(table), 2)
    yield ""
    for row in rows[:SHOWN_TOOLS]:
        for problem, times in row.problems.most_common(2):
            cut = problem if len(problem) <= SHOWN_CHARACTERS else f"{problem[:SHOWN_CHARACTERS]}…"
            yield hanging("  ", "  ", f"{row.name[:40]}, {plural(times, 'time')}: {cut}")
    if any(row.failed for row in rows):
        yield ""
    more = f"There are {plural(len(rows) - SHOWN_TOOLS, 'more name')}. " if len(rows) > SHOWN_TOOLS else ""
    yield indented(f"{more}Each call and what it gave is in tools.jsonl of the run folder.", 2, "dim")


def render_unfinished(run: Run, *, remark: str = "", width: int = 80, color: bool = False) -> str:
    """What is known of a run that has no result, because it ended with an error, was killed, or is still going.

    Args:
        run: the run folder.
        remark: what can be done about it; "" where it is still going.
        width: columns.
        color: with the terminal's codes for colors.
    """
    found = so_far(run)
    used = found.total
    parts: list[RenderableType] = [*_headline(str(run.path), headline(run)), ""]
    if run.error:
        what, *notes = run.error.split("\n")
        if run.by_command is not None:  # the command line's own line asked
            notes = [note.split(", asked for at ")[0] for note in notes]
        parts += [hanging("  ", "  ", f"It ended with an error: {what}"), *(indented(note, 4) for note in notes), ""]
    if run.evaluations:
        parts += [_steps(run), ""]
    parts.append(
        indented(
            f"On record: {plural(used.calls, 'call')}, {count(used.total_tokens)} tokens, {cost(used.dollars)}.", 2
        )
    )
    if remark:
        parts += [Sentences(remark, 2)]
    parts.append("")
    parts += changes_table(
        [
            ParameterView(name, diff_of(name, seed, run.best[name], found.origins[name], run.steps))
            for name, seed in run.seed.items()
        ]
    )
    return printed(parts, width, color)


def _steps(run: Run) -> RenderableType:
    table = open_table()
    for name in ("step", "train", "validation", ""):
        table.add_column(name)
    first = next((each for each in run.evaluations if each.step == 0), None)
    if first is not None:
        table.add_row("seed", "", score(first.evaluation.mean), "")
    for step in run.steps:
        train = "" if step.train_mean is None else score(step.train_mean)
        val = _tried(step) if step.val_mean is None else score(step.val_mean)
        table.add_row(str(step.step), train, val, "kept" if step.kept else "")
    return padded(fitted(table), 2)


def _tried(step: StepEnded) -> str:
    """What trying out a proposal brought: on how many examples it did better, and on how many worse."""
    if step.race is None:
        return "" if any(change.after != change.before for change in step.changes) else "no change"
    return f"+{len(step.race.gained)} -{len(step.race.lost)} of {len(step.race.examples)}"


def one_line(result: TrainResult) -> str:
    """The result in one line.

    Args:
        result: of a run.
    """
    parts = []
    if result.status != "finished":
        spent = "optimizer's part of the budget spent" if result.spent_its_part else "budget spent"
        ended = "budget without room for a further call" if result.unspent else spent
        parts.append({"interrupted": "interrupted", "budget": ended}[result.status])
    for name, seed, best in (
        ("val", result.seed_val, result.best_val),
        ("test", result.seed_test, result.best_test),
    ):
        if seed is not None and best is not None:
            parts.append(f"{name} {score(seed.mean)} -> {score(best.mean)}{best.part_run}")
    if result.shortage:
        return f"nothing was asked: {result.shortage}"
    if result.seed_val is None:
        parts.append("nothing was measured")
    elif result.seed == result.best:
        parts.append(none_kept(result))
    elif result.comparison is not None:
        found = result.comparison
        every = result.best_test if result.compared_on == "test" else result.best_val
        some = f" by {found.n} of {plural(len(every), 'example')}" if every is not None and found.n < len(every) else ""
        parts.append(f"{found.verdict} on {result.compared_on} ({score(found.difference, True)}){some}")
        parts += filter(None, [missed_in_words(result.floors)])
    if result.untested:
        parts.append("not tested" if result.best_test is None else f"tested on {len(result.best_test)} examples only")
    return "; ".join(parts)


def _headline(title: str, ended: str) -> list[RenderableType]:
    # A path that is broken over two lines can be neither copied nor clicked on.
    return [*([unwrapped(title, "bold")] if title else []), styled(capital(ended))]


def _scores(view: View) -> RenderableType:
    from rich.table import Table

    best = {"good": "bold green", "bad": "bold red", "plain": "bold"}[view.tone]
    table = open_table()
    table.add_column("")
    table.add_column("seed prompt", no_wrap=True)
    table.add_column("best prompt", no_wrap=True, style=best)
    table.add_column("", no_wrap=True, style="dim")
    for row in (*view.scores, *view.taken):
        table.add_row(row.name, row.seed, row.best, row.size)
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(width=10)
    grid.add_column()
    grid.add_row("verdict", styled(view.verdict, best))
    return padded(group([fitted(table), grid]), 2)


def _usage(view: View) -> RenderableType:
    table = open_table()
    table.add_column("", min_width=10)
    for name in ("calls", "tokens", "cost", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in view.usage:
        last = row is view.usage[-1]
        table.add_row(
            row.purpose,
            count(row.usage.calls),
            count(row.usage.total_tokens),
            money(row.usage.dollars),
            duration(view.seconds) if last else "",
            style="bold" if last else None,
        )
    return padded(fitted(table), 2)


def _front(front: Front) -> Iterator[RenderableType]:
    yield styled(front.title, "bold")
    yield ""
    table = open_table()
    for name in ("", *front.heads):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for number, (row, name) in enumerate(zip(front.rows, front.names), start=1):
        table.add_row(str(number), *row, name, style="bold" if name == "best prompt" else "")
    yield padded(fitted(table), 2)
    yield ""
    yield indented("`show --front N` prints one of them, `eval --front N` scores it on other examples.", 2, "dim")


def _controls(view: View, calls: int) -> Iterator[RenderableType]:
    yield styled(f"Beside controls, which got no feedback and up to {plural(calls, 'call')} each", "bold")
    yield ""
    table = open_table(gap=2)
    table.add_column("")
    table.add_column("val", no_wrap=True)
    table.add_column("test", no_wrap=True)
    for name in ("calls", "tokens", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in view.controls:
        used = ["", "", ""]
        if row.usage is not None:
            used = [count(row.usage.calls), short(row.usage.total_tokens), money(row.usage.dollars)]
        table.add_row(styled(row.name), row.val, row.test, *used, style="bold" if row is view.controls[-1] else "")
    yield padded(fitted(table), 2)
    yield ""
    for said in view.against:
        yield hanging("  ", "  ", said)
