"""A run as one page that can be sent: nothing in it is loaded from elsewhere, and nothing in it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from textgrad_engine.errors import RunError
from textgrad_engine.file_errors import reason_of
from textgrad_engine.llm.money import money
from textgrad_engine.report.figures import scatter
from textgrad_engine.report.front import front_within
from textgrad_engine.report.html import GENERATOR, Inside, Markup, data, element, joined
from textgrad_engine.report.metric_parts import parts_of_result
from textgrad_engine.report.page_parts import (
    SIMULATED,
    again,
    changes_in,
    metrics,
    models_of,
    page,
    scores_plot,
    section,
    slices_shown,
    table,
    tile,
)
from textgrad_engine.report.page_texts import SHOWN_ITEMS, name_of, said, steps
from textgrad_engine.report.pairing import setting
from textgrad_engine.report.slices import Sliced
from textgrad_engine.report.tools import ToolRow, tools_of
from textgrad_engine.report.unfinished import so_far
from textgrad_engine.report.view import View, headline, view_of
from textgrad_engine.report.words import capital, count, duration, plural, score
from textgrad_engine.store.reader import Run
from textgrad_engine.train.result import TrainResult
from textgrad_engine.untrusted_files import check_plain

SHOWN_RESULT = 600
"""Characters of what a tool was given, and of what it gave."""

SHOWN_TOOLS = 10
"""So many of the names that models call tools by."""


def page_of(run: Run, openings: int | None = None, remark: str = "", slices: Sliced | None = None) -> str:
    """The page about a run, the same for the same folder, whatever the time and wherever it is.

    Args:
        run: the run folder; one without a result is shown as far as it came.
        openings: how often the test split was looked at, evaluations since the run included; None for the run's own.
        remark: what was special about it, e.g. that it is a control.
        slices: what it measured on kinds of examples, if that is to be shown.

    Raises:
        RunError: the record of calls, or of tools, is damaged.
    """
    name = run.path.resolve().name
    result = run.result or so_far(run)
    view = view_of(result, openings, run.looks_before)
    title = f"{name}: {view.verdict if run.result else headline(run)}"
    main = [
        *_error(run),
        *section("Scores", [*_scores(result), *metrics(parts_of_result(result))]),
        *slices_shown(slices),
        *section("What to know when reading this", _notes(run, view)),
        *(each for parameter in view.parameters for each in changes_in(result, parameter)),
        *section("Steps", steps(result)),
        *section("Beside controls", _controls(result, view)),
        *section("Score against length", _front(result)),
        *section("Cost", _cost(view, run.result is not None)),
        *section("What the tools gave", _tools(tools_of(run.tools()))),
        *section("How to run it again", again(run.by_command, run.seed, controls=result.controls is not None)),
    ]
    return page(title, joined("the run folder ", name_of(name)), _header(run, name, remark, view, result), main)


def is_page(path: Path) -> bool:
    """Whether a file is a page that `page_of` made.

    Raises:
        RunError: it cannot be read.
    """
    try:
        check_plain(path)
        with path.open("rb") as file:
            return GENERATOR.encode() in file.read(2_000)
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {reason_of(error)}") from None


def _header(run: Run, name: str, remark: str, view: View, result: TrainResult) -> Iterator[Inside]:
    yield element("p", "Report on a prompt optimization", class_="kind")
    yield element("h1", name_of(name))
    ended = [each for each in (headline(run) if run.result is not None else "", remark) if each]
    yield element(
        "p", f"{capital('; '.join(ended))}. " if ended else "", *models_of(run.by_command), *_sizes(run), class_="lead"
    )
    verdict, _, rest = (view.verdict if run.result is not None else headline(run)).partition(": ")
    yield element(
        "p", element("strong", capital(verdict)), f" {capital(rest)}" if rest else "", class_=f"verdict {view.tone}"
    )
    yield element("dl", *_figures(result, view), class_="tiles")


def _sizes(run: Run) -> Iterator[Inside]:
    """On how many examples it worked."""
    started = next((event for event in run.events if event.get("event") == "RunStarted"), {})
    sizes = [f"{started[key] or 'none'} to {word}" for key, word in _SETS.items() if isinstance(started.get(key), int)]
    if sizes:
        yield f"Examples: {', '.join(sizes)}."


_SETS = {"train": "train", "val": "validate", "test": "test"}


def _figures(result: TrainResult, view: View) -> Iterator[Markup]:
    for label, seed, best in (
        ("Test score", result.seed_test, result.best_test),
        ("Validation score", result.seed_val, result.best_val),
    ):
        if seed is not None and best is not None and result.seed != result.best:
            yield tile(label, f"{score(seed.mean)} \N{RIGHTWARDS ARROW} {score(best.mean)}")
        elif seed is not None:
            yield tile(f"{label}, seed", score(seed.mean))
    changed = [sum(each.number_of(op) for each in view.parameters) for op in ("added", "removed")]
    yield tile("Lines of the prompt", f"+{changed[0]} \N{MINUS SIGN}{changed[1]}")
    yield tile("Cost", money(result.total.dollars))
    yield tile("Calls", count(result.total.calls))
    if result.seconds:
        yield tile("Time", duration(result.seconds))


def _error(run: Run) -> Iterator[Markup]:
    if run.result is None and run.error:
        yield joined(*section("The error it ended with", [element("pre", said(run.error))]))


def _scores(result: TrainResult) -> Iterator[Markup]:
    rows = [
        (name, kind, found)
        for name, kind, found in (
            ("validation, seed prompt", "seed", result.seed_val),
            ("validation, best prompt", "best", result.best_val),
            ("test, seed prompt", "seed", result.seed_test),
            ("test, best prompt", "best", result.best_test),
        )
        if found is not None and (kind == "seed" or result.seed != result.best)
    ]
    if not rows:
        return
    yield from scores_plot(rows, result.comparison if result.seed != result.best else None, result.compared_on)


def _notes(run: Run, view: View) -> Iterator[Markup]:
    notes: list[Inside] = [said(note) for note in view.notes]
    if str(setting(run, "config", "models", "forward")).startswith("simulated/"):
        notes.append(SIMULATED)
    notes += [said(note) for note in run.notes]
    if notes:
        yield element("ul", *(element("li", note) for note in notes))
    if view.problems:
        yield element("h3", "Not everything went well")
        shown = [element("li", said(problem)) for problem in view.problems[:SHOWN_ITEMS]]
        if (more := len(view.problems) - SHOWN_ITEMS) > 0:
            shown.append(element("li", f"and {more} more, in events.jsonl"))
        yield element("ul", *shown)


def _controls(result: TrainResult, view: View) -> Iterator[Markup]:
    if result.controls is None or not view.controls:
        return
    yield element(
        "p",
        f"Each control got no feedback and up to {plural(result.controls.calls, 'call')}; what the optimizer gains "
        "over them is what its feedback is worth.",
        class_="hint",
    )
    rows = []
    for row in view.controls:
        used = row.usage
        rows.append(
            [row.name, row.val, row.test]
            + (["", "", ""] if used is None else [count(used.calls), count(used.total_tokens), money(used.dollars)])
        )
    yield table(
        "The prompts beside each other",
        ["", "validation", "test", "calls", "tokens", "cost"],
        rows,
        strong=len(rows) - 1,
    )
    yield element("ul", *(element("li", said(sentence)) for sentence in view.against))


def _front(result: TrainResult) -> Iterator[Markup]:
    if (front := front_within(result)) is None:
        return
    kinds = {"best prompt": "best", "seed prompt": "seed", "": "other"}
    yield scatter(
        [(point.tokens, point.score, kinds[name]) for point, name in zip(result.front, front.names)],
        "Tokens of the prompt from left to right, validation score from bottom to top",
    )
    yield element(
        "p",
        f"Tokens of the prompt from left to right, validation score from bottom to top, {front.where}. No other "
        f"prompt beats one of these in {'all columns' if len(front.heads) > 2 else 'both'}.",
        class_="hint",
    )
    rows = [(f"{n} {name}".strip(), *row) for n, (name, row) in enumerate(zip(front.names, front.rows), start=1)]
    strong = front.names.index("best prompt") if "best prompt" in front.names else -1
    yield table("Texts by their tokens", ["", *front.heads], rows, strong=strong)


def _cost(view: View, whole: bool) -> Iterator[Markup]:
    rows = [
        [
            row.purpose,
            count(row.usage.calls),
            count(row.usage.input_tokens),
            count(row.usage.output_tokens),
            money(row.usage.dollars),
        ]
        for row in view.usage
    ]
    yield table("Cost by purpose", ["purpose", "calls", "tokens in", "tokens out", "cost"], rows, strong=len(rows) - 1)
    for row in view.taken:
        what = f"{row.name.capitalize()} of the program on test"
        yield element("p", f"{what}: {row.seed} with the seed prompt, {row.best} with the best one.")
    yield element("p", f"It took {duration(view.seconds)}." if whole else "What is on record so far.", class_="hint")


def _tools(rows: Sequence[ToolRow]) -> Iterator[Markup]:
    if not rows:
        return
    shown = rows[:SHOWN_TOOLS]
    rows_of = [[row.name, count(row.calls), count(row.failed)] for row in shown]
    yield table("Tools", ["tool", "calls", "came to nothing"], rows_of, strong=-1)
    for row in shown:
        told: list[Inside] = []
        for problem, times in row.problems.most_common(SHOWN_ITEMS):
            told.append(element("li", f"{plural(times, 'time')} it came to nothing: ", data(problem, SHOWN_RESULT)))
        for arguments, text in row.samples:
            called = element("code", data(arguments, SHOWN_RESULT))
            told.append(element("li", called, " gave ", data(text, SHOWN_RESULT)))
        yield element("details", element("summary", name_of(row.name)), element("ul", *told))
    more = f"There are {plural(len(rows) - SHOWN_TOOLS, 'more name')}. " if len(rows) > SHOWN_TOOLS else ""
    yield element("p", f"{more}Each call and what it gave is in tools.jsonl of the run folder.", class_="hint")
