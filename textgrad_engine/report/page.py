"""A run as one page that can be sent: nothing in it is loaded from elsewhere, and nothing in it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from textgrad_engine.errors import RunError
from textgrad_engine.llm.response import Usage
from textgrad_engine.optim import Evidence
from textgrad_engine.report.difference import DiffLine, origins_from_steps
from textgrad_engine.report.evidence import in_words, merged
from textgrad_engine.report.figures import Axis, axis_row, gains, interval_row, scatter, stairs
from textgrad_engine.report.html import GENERATOR, Inside, Markup, data, document, element, joined
from textgrad_engine.report.lineage import EditLineage, Trial, lineage_of, step_of
from textgrad_engine.report.pairing import setting
from textgrad_engine.report.toml import as_toml
from textgrad_engine.report.view import ParameterView, View, headline, view_of
from textgrad_engine.report.words import count, duration, money, plural, score
from textgrad_engine.store import Run
from textgrad_engine.train import Evaluation, TrainResult
from textgrad_engine.train.events import StepEnded

__all__ = ["is_page", "page_of"]

SHOWN_LINE = 2_000
SHOWN_FEEDBACK = 1_000
SHOWN_NAME = 80
SHOWN_CONFIG = 20_000
"""Characters of a line of a prompt, of a piece of feedback, of a name, and of the config."""

SHOWN_ITEMS = 12
SHOWN_LINES = 1_000
SHOWN_STEPS = 250
"""Pieces of feedback at one line, lines of a prompt, and steps."""

NEAR = 3
"""Lines that stayed are shown up to so far from a changed one; the others are folded away."""


def page_of(run: Run, openings: int | None = None, remark: str = "") -> str:
    """The page about a run, the same for the same folder, whatever the time and wherever it is.

    Args:
        run: the run folder; one without a result is shown as far as it came.
        openings: how often the test split was looked at, evaluations since the run included; None for the run's own.
        remark: what was special about it, e.g. that it is a control.

    Raises:
        RunError: the record of calls is damaged.
    """
    name = run.path.resolve().name
    result = run.result or _so_far(run)
    view = view_of(result, openings)
    ended = headline(run)
    style = (files("textgrad_engine.report") / "page.css").read_text(encoding="utf-8")
    body = [
        element("header", *_header(run, name, f"{ended}; {remark}" if remark else ended, view, result)),
        element(
            "main",
            *_error(run),
            *_section("Scores", _scores(result)),
            *_section("What to know when reading this", _notes(run, view)),
            *(each for parameter in view.parameters for each in _changes(result, parameter, len(view.parameters))),
            *_section("Steps", _steps(run, result)),
            *_section("Beside controls", _controls(result, view)),
            *_section("Score against length", _front(result)),
            *_section("Cost", _cost(view, run.result is not None)),
            *_section("How to run it again", _again(run, result)),
        ),
        element("footer", "Made by ", element("code", "textgrad-engine report"), " from the run folder ", _name(name)),
    ]
    return document(f"{name}: {view.verdict if run.result else ended}", style, body)


def is_page(path: Path) -> bool:
    """Whether a file is a page that `page_of` made.

    Raises:
        RunError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return GENERATOR.encode() in file.read(2_000)
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from None


def _so_far(run: Run) -> TrainResult:
    """What is known of a run that has no result, as if it had been interrupted."""
    first = next((each.evaluation for each in run.evaluations if each.step == 0 and each.phase == "validate"), None)
    used: dict[str, Usage] = {}
    run.usage()  # whether it can be read
    for entry in run.completions():
        purpose = str(entry.get("purpose"))
        used[purpose] = used.get(purpose, Usage()) + Usage(**entry.get("usage", {}))
    return TrainResult(
        status="interrupted",
        seed=run.seed,
        best=run.best,
        origins={name: origins_from_steps(name, seed, run.steps) for name, seed in run.seed.items()},
        seed_val=first,
        best_val=None,
        seed_test=None,
        best_test=None,
        comparison=None,
        compared_on=None,
        steps=run.steps,
        usage=dict(sorted(used.items())),
        seconds=0.0,
    )


def _section(title: str, inside: Iterable[Inside]) -> Iterator[Markup]:
    parts = list(inside)
    if parts:
        yield joined("\n", element("section", element("h2", title), *parts))


def _name(text: str) -> Markup:
    return data(text, SHOWN_NAME)


# -- the top


def _header(run: Run, name: str, ended: str, view: View, result: TrainResult) -> Iterator[Inside]:
    yield element("p", "Report on a prompt optimization", class_="kind")
    yield element("h1", _name(name))
    yield element("p", _capital(ended), ". ", *_setup(run), class_="lead")
    said, _, rest = view.verdict.partition(": ")
    yield element(
        "p", element("strong", _capital(said)), f" {_capital(rest)}" if rest else "", class_=f"verdict {view.tone}"
    )
    yield element("dl", *_figures(result, view), class_="tiles")


def _setup(run: Run) -> Iterator[Inside]:
    if run.config is None:
        return
    models = setting(run, "config", "models") or {}
    names = dict.fromkeys(
        name for role in ("forward", "backward", "optimizer", "judge") if isinstance(name := models.get(role), str)
    )
    yield _name(str(setting(run, "config", "optimizer", "name")))
    yield " with "
    for number, name in enumerate(names):
        yield joined(", " if number else "", _name(name))
    started = next((event for event in run.events if event.get("event") == "RunStarted"), {})
    sizes = [f"{started[key]:,} to {word}" for key, word in _SETS.items() if isinstance(started.get(key), int)]
    if sizes:
        yield f"; examples: {', '.join(sizes)}"
    yield "."


_SETS = {"train": "train", "val": "validate", "test": "test"}


def _figures(result: TrainResult, view: View) -> Iterator[Markup]:
    for label, seed, best in (
        ("Test score", result.seed_test, result.best_test),
        ("Validation score", result.seed_val, result.best_val),
    ):
        if seed is not None and best is not None and result.seed != result.best:
            yield _tile(label, f"{score(seed.mean)} \N{RIGHTWARDS ARROW} {score(best.mean)}")
        elif seed is not None:
            yield _tile(f"{label}, seed", score(seed.mean))
    changed = [sum(each.number_of(op) for each in view.parameters) for op in ("added", "removed")]
    yield _tile("Lines of the prompt", f"+{changed[0]} \N{MINUS SIGN}{changed[1]}")
    yield _tile("Cost", money(result.total.dollars))
    yield _tile("Calls", count(result.total.calls))
    if result.seconds:
        yield _tile("Time", duration(result.seconds))


def _tile(label: str, value: str) -> Markup:
    return element("div", element("dt", label), element("dd", value))


def _error(run: Run) -> Iterator[Markup]:
    if run.result is None and run.error:
        yield joined(*_section("The error it ended with", [element("pre", data(run.error, SHOWN_FEEDBACK))]))


# -- the scores


def _scores(result: TrainResult) -> Iterator[Markup]:
    rows = [
        (name, kind, found)
        for name, kind, found in (
            ("validation, seed prompt", "seed", result.seed_val),
            ("validation, best prompt", "best", result.best_val),
            ("test, seed prompt", "seed", result.seed_test),
            ("test, best prompt", "best", result.best_test),
        )
        if found is not None
    ]
    if not rows:
        return
    ends = [end for _, _, found in rows for end in (found.mean, *found.interval)]
    axis = Axis.around(ends, limits=_limits([found for _, _, found in rows]))
    shown = [
        _row(name, interval_row(axis, found.mean, found.interval, kind), score(found.mean), found.interval, False)
        for name, kind, found in rows
    ]
    yield element("ul", *shown, _axis(axis), class_="plot")
    sizes = dict.fromkeys(f"{name.split(',')[0]}: {plural(len(found), 'example')}" for name, _, found in rows)
    yield element("p", f"Mean scores with their 95% intervals. {'; '.join(sizes)}.", class_="hint")
    compared = result.comparison
    if compared is None or result.seed == result.best:
        return
    kind = {"better": "good", "worse": "bad"}.get(compared.verdict, "best") if result.compared_on == "test" else "best"
    axis = Axis.around([0.0, compared.difference, *compared.interval])
    picture = interval_row(axis, compared.difference, compared.interval, kind, mark=0.0)
    on = {"test": "test", "val": "validation", None: ""}[result.compared_on]
    row = _row(f"difference on {on}", picture, score(compared.difference, True), compared.interval, True)
    yield element("ul", row, _axis(axis), class_="plot")
    yield element(
        "p",
        f"Best minus seed, pair by pair on {plural(compared.n, 'example')}. Left of 0 the best prompt is worse, right "
        "of it better; an interval that holds 0 shows no difference.",
        class_="hint",
    )


def _row(label: str, picture: Markup, value: str, interval: tuple[float, float], signed: bool) -> Markup:
    low, high = (score(end, signed) for end in interval)
    return element(
        "li",
        element("span", label, class_="label"),
        element("span", picture, class_="picture"),
        element("span", element("b", value), f" [{low}, {high}]", class_="value"),
    )


def _axis(axis: Axis) -> Markup:
    return element("li", element("span", axis_row(axis), class_="picture"), class_="axis", aria_hidden="true")


def _limits(found: Sequence[Evaluation]) -> tuple[float, float] | None:
    limits = [each.limits for each in found]
    known = [each for each in limits if each is not None]
    if len(known) < len(limits):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _notes(run: Run, view: View) -> Iterator[Markup]:
    notes: list[Inside] = [data(note, SHOWN_FEEDBACK) for note in view.notes]
    if str(setting(run, "config", "models", "forward")).startswith("simulated/"):
        notes.append("The model is a simulation inside the package: what it does is no evidence about real models.")
    notes += [data(note, SHOWN_FEEDBACK) for note in run.notes]
    if notes:
        yield element("ul", *(element("li", note) for note in notes))
    if view.problems:
        yield element("h3", "Not everything went well")
        shown = [element("li", data(problem, SHOWN_FEEDBACK)) for problem in view.problems[:SHOWN_ITEMS]]
        if (more := len(view.problems) - SHOWN_ITEMS) > 0:
            shown.append(element("li", f"and {more} more, in events.jsonl"))
        yield element("ul", *shown)


# -- what changed


def _changes(result: TrainResult, parameter: ParameterView, many: int) -> Iterator[Markup]:
    what = "the prompt" if many == 1 else parameter.name
    if not parameter.changed:
        yield joined(*_section(_cut(f"What changed in {what}"), [element("p", "Nothing.")]))
        return
    counts = (("added", "added"), ("removed", "removed"), ("same", "as before"))
    numbers = [(parameter.number_of(op), word) for op, word in counts]  # type: ignore[arg-type]
    said = ", ".join(f"{plural(number, 'line')} {word}" for number, word in numbers if number)
    inside: list[Inside] = [
        element("p", f"{said}. Open a changed line to see who asked for it, and what decided.", class_="hint"),
        element("ol", *_lines(result, parameter), class_="diff"),
        element(
            "details",
            element("summary", "The best prompt as a whole"),
            element("pre", data(result.best[parameter.name], SHOWN_LINE * 10), class_="whole"),
        ),
    ]
    yield joined(*_section(_cut(f"What changed in {what}"), inside))


def _cut(title: str) -> str:
    return title if len(title) <= SHOWN_NAME else f"{title[:SHOWN_NAME]}…"


def _lines(result: TrainResult, parameter: ParameterView) -> Iterator[Markup]:
    """The lines of a diff; those that stayed and are far from a change are folded."""
    changed = [place for place, line in enumerate(parameter.lines) if line.op != "same"]
    near = {at for place in changed for at in range(place - NEAR, place + NEAR + 1)}
    numbered = list(_numbered(parameter.lines))
    shown = numbered[:SHOWN_LINES]
    for apart, group in groupby(enumerate(shown), lambda each: each[0] not in near):
        lines = [line for _, line in group]
        made = [_line(result, parameter.name, number, line) for number, line in lines]
        if apart and len(made) > 1:
            summary = element("summary", f"{plural(len(made), 'line')} as before")
            yield element("li", element("details", summary, element("ol", *made, class_="diff")), class_="folded")
        else:
            yield from made
    if (more := len(numbered) - SHOWN_LINES) > 0:
        yield element("li", f"and {plural(more, 'more line')}", class_="folded")


def _numbered(lines: Sequence[DiffLine]) -> Iterator[tuple[int | None, DiffLine]]:
    number = 0
    for line in lines:
        if line.op == "removed":
            yield None, line
        else:
            number += 1
            yield number, line


def _line(result: TrainResult, parameter: str, number: int | None, line: DiffLine) -> Markup:
    mark = {"same": " ", "added": "+", "removed": "\N{MINUS SIGN}"}[line.op]
    inside = (
        element("span", "" if number is None else str(number), class_="number"),
        element("span", mark, class_="mark"),
        element("span", data(line.text, SHOWN_LINE), class_="text"),
    )
    if line.op == "same":
        return element("li", *inside, class_="same line")
    why = _why_added(result, parameter, number) if number is not None else _why_removed(result, parameter, line)
    summary = element("summary", *inside, class_="line")
    return element("li", element("details", summary, element("div", *why, class_="why")), class_=line.op)


def _why_added(result: TrainResult, parameter: str, number: int) -> Iterator[Markup]:
    found = lineage_of(result, number, parameter)
    if not found.edit:
        yield element("p", "Nobody noted who wrote this line.")
        return
    yield element("p", f"Edit {found.edit}: ", _said(found.reason or "no reason given"))
    yield from _feedback(found.evidence)
    for gone in found.replaced:
        yield element("p", "It stands for: ", element("code", data(gone.text, SHOWN_LINE)))
        if gone.origin is not None:
            yield from _feedback(gone.origin.evidence)
    if found.accepted is None:
        yield element("p", "No step of this run brought it in; an earlier one did.")
    else:
        yield from _trial("Accepted", found.accepted)
    for ablation in found.ablations:
        yield from _trial("Tried without", ablation)
    if not found.ablations:
        yield element("p", "It was never tried without this edit.")


def _why_removed(result: TrainResult, parameter: str, line: DiffLine) -> Iterator[Markup]:
    if line.step is None:
        yield element("p", "Nobody noted what removed this line.")
        return
    yield element("p", _said(line.reason or "no reason given"))
    yield from _feedback(line.evidence)
    found = step_of(result, line.step, parameter)
    yield from _trial("Removed", found.trial)
    for edit in found.edits:
        if line.text in edit.removed:
            for ablation in edit.ablations:
                yield from _trial("Tried with it", ablation)


def _said(text: str) -> Markup:
    return data(text, SHOWN_FEEDBACK)


def _feedback(evidence: Iterable[Evidence], asked: str = "Feedback that asked for it") -> Iterator[Markup]:
    items = merged(evidence)
    if not items:
        yield element("p", "It cites no feedback.")
        return
    shown = [
        element("li", element("span", _name(in_words(item.examples)), class_="ids"), " ", _said(item.text))
        for item in items[:SHOWN_ITEMS]
    ]
    if (more := len(items) - SHOWN_ITEMS) > 0:
        shown.append(element("li", f"and {plural(more, 'more piece')} of feedback"))
    yield element("p", f"{asked}:")
    yield element("ul", *shown, class_="feedback")


def _trial(word: str, trial: Trial) -> Iterator[Markup]:
    kind = f", {trial.kind}" if trial.kind else ""
    why = trial.why or ("kept" if trial.kept else "not kept")
    yield element("p", f"{word} in step {trial.step}{kind}: ", _said(why))
    yield from _race(trial)


def _race(trial: Trial) -> Iterator[Markup]:
    if (race := trial.race) is None:
        yield element("p", "The run folder holds no race for it.", class_="hint")
        return
    better, worse, all_ = len(race.gained), len(race.lost), len(race.examples)
    run = f"Race on {plural(all_, 'example')}: difference {score(race.difference, True)}"
    said = [f"{run}, better with probability {race.probability:.2f}."]
    for word, names in (("Better", race.gained), ("Worse", race.lost)):
        said.append(f"{word} on {in_words(names)}." if names else f"{word} on none.")
    yield element(
        "div",
        gains(better, worse, all_ - better - worse),
        *(element("p", data(sentence, SHOWN_LINE)) for sentence in said),
        class_="race",
    )


# -- the steps


def _steps(run: Run, result: TrainResult) -> Iterator[Markup]:
    if not result.steps:
        return
    if result.seed_val is not None:
        values = [result.seed_val.mean, *(step.best_val for step in result.steps)]
        yield stairs(values, [True, *(step.kept for step in result.steps)], "The best validation score, step by step")
        yield element(
            "p",
            "The best validation score after each step, beginning with the seed prompt; a dot is a step that was kept.",
            class_="hint",
        )
    shown = [_step(result, step) for step in result.steps[:SHOWN_STEPS]]
    yield element("ol", *shown, class_="steps")
    if (more := len(result.steps) - SHOWN_STEPS) > 0:
        yield element("p", f"and {plural(more, 'more step')}, in events.jsonl")


def _step(result: TrainResult, step: StepEnded) -> Markup:
    edits = sum(len(change.edits) or change.after != change.before for change in step.changes)
    inside = (
        element("span", str(step.step), class_="number"),
        element("span", step.kind or "step", class_="what"),
        element("span", "kept" if step.kept else "not kept", class_="kept" if step.kept else "dropped"),
        element("span", _outcome(step, edits), class_="outcome"),
    )
    return element(
        "li", element("details", element("summary", *inside), element("div", *_told(result, step), class_="why"))
    )


def _outcome(step: StepEnded, edits: int) -> Markup:
    said = [plural(edits, "edit") if edits else "no change"]
    if (race := step.race) is not None:
        said.append(f"+{len(race.gained)} \N{MINUS SIGN}{len(race.lost)} of {len(race.examples)}")
    if step.val_mean is not None:
        said.append(f"validation {score(step.val_mean)}")
    problem = next((change.problem for change in step.changes if change.problem), "")
    why = step.why or (f"dropped: {problem}" if problem else "")
    return joined(", ".join(said), *((": ", data(why, SHOWN_NAME * 2)) if why else ()))


def _told(result: TrainResult, step: StepEnded) -> Iterator[Markup]:
    found = step_of(result, step.step)
    heard = []
    if step.train_mean is not None:
        heard.append(f"{plural(len(step.examples), 'example')} with a mean score of {score(step.train_mean)}")
    if step.feedback:
        heard.append(f"{plural(step.feedback, 'piece')} of feedback")
    if step.unanswered:
        heard.append(f"{plural(step.unanswered, 'example')} without an answer")
    if heard:
        yield element("p", f"{_capital(', '.join(heard))}.")
    if found.edits:
        yield from _race(found.trial)
    for change in step.changes:
        if change.problem:
            yield element("p", "The proposal for ", _name(change.name), " was dropped: ", _said(change.problem))
    for problem in step.problems:
        yield element("p", _said(problem))
    for edit in found.edits:
        yield from _edit(edit, found.trial.kind == "ablation", many=len(result.best) > 1)
    if not found.edits:
        yield element("p", "It changed nothing.")


def _edit(edit: EditLineage, ablation: bool, many: bool) -> Iterator[Markup]:
    lines = [("removed", "\N{MINUS SIGN}", text) for text in edit.removed]
    lines += [("added", "+", text) for text in edit.added]
    if many:
        yield element("p", _name(edit.parameter), ":")
    yield element(
        "ol",
        *(
            element(
                "li",
                element("span", mark, class_="mark"),
                element("span", data(text, SHOWN_LINE), class_="text"),
                class_=f"{op} line",
            )
            for op, mark, text in lines[:SHOWN_LINES]
        ),
        class_="diff bare",
    )
    if edit.edit:
        mark = f"Without edit {edit.edit}, made because: " if ablation else f"Edit {edit.edit}: "
        yield element("p", mark, _said(edit.reason or "no reason given"))
    yield from _feedback(edit.evidence, "Feedback that had asked for it" if ablation else "Feedback that asked for it")


# -- controls, front, cost


def _controls(result: TrainResult, view: View) -> Iterator[Markup]:
    if result.controls is None:
        return
    yield element(
        "p",
        f"Each control got no feedback and up to {plural(result.controls.calls, 'call')}; what the optimizer does "
        "better than they is what its feedback is worth.",
        class_="hint",
    )
    rows = []
    for row in view.controls:
        used = row.usage
        rows.append(
            [row.name, row.val, row.test]
            + (["", "", ""] if used is None else [count(used.calls), count(used.total_tokens), money(used.dollars)])
        )
    yield _table(["", "validation", "test", "calls", "tokens", "cost"], rows, strong=len(rows) - 1)
    yield element("ul", *(element("li", _said(sentence)) for sentence in view.against))


def _front(result: TrainResult) -> Iterator[Markup]:
    if len(result.front) < 2:
        return
    known = {"best prompt": result.best, "seed prompt": result.seed}
    named = [
        next((name for name, texts in known.items() if texts.items() >= point.texts.items()), "")
        for point in result.front
    ]
    kinds = {"best prompt": "best", "seed prompt": "seed", "": "other"}
    yield scatter(
        [(point.tokens, point.score, kinds[name]) for point, name in zip(result.front, named)],
        "Tokens of the prompt from left to right, validation score from bottom to top",
    )
    yield element(
        "p",
        "Tokens of the prompt from left to right, validation score from bottom to top, of what was run on the whole "
        "validation set and beaten in neither.",
        class_="hint",
    )
    timed = any(point.latency is not None for point in result.front)
    rows = []
    for point, name in zip(result.front, named):
        took = [] if not timed else ["" if point.latency is None else f"{point.latency:.2f} s"]
        rows.append([name, count(point.tokens), score(point.score), *took])
    strong = named.index("best prompt") if "best prompt" in named else -1
    yield _table(["", "tokens", "validation", *(["time"] if timed else [])], rows, strong=strong)


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
    yield _table(["purpose", "calls", "tokens in", "tokens out", "cost"], rows, strong=len(rows) - 1)
    yield element("p", f"It took {duration(view.seconds)}." if whole else "What is on record so far.", class_="hint")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], strong: int) -> Markup:
    head = element("tr", *(element("th", each, scope="col") for each in heads))
    made = []
    for number, row in enumerate(rows):
        cells = [element("th", _name(row[0]), scope="row"), *(element("td", cell) for cell in row[1:])]
        made.append(element("tr", *cells, class_="strong" if number == strong else None))
    table = element("table", element("thead", head), element("tbody", *made))
    return element("div", table, class_="wide", tabindex=0, role="region", aria_label="table")


# -- again


def _again(run: Run, result: TrainResult) -> Iterator[Markup]:
    config = setting(run, "config")
    if not isinstance(config, Mapping):
        yield element(
            "p",
            "The run was started from Python, so its folder keeps no settings: run the program that started it. Every "
            "request, and the event of each step, is in the run folder.",
        )
        return
    version = setting(run, "version")
    made = f"textgrad_engine {version}" if version else "textgrad_engine, of a version that the folder does not name"
    flags = ["--no-feedback"] if setting(run, "feedback") is False else []
    flags += ["--controls"] if result.controls is not None else []
    seed = config.get("seed")
    yield element(
        "p",
        "Save the settings below as ",
        element("code", "config.toml"),
        " beside the data and run the command. The run was made with ",
        _name(made),
        f" and seed {seed}. A model that answers at random answers otherwise the next time.",
    )
    yield element("pre", " ".join(["textgrad-engine train config.toml", *flags]), class_="command")
    digests = setting(run, "digests")
    if isinstance(digests, Mapping) and digests:
        rows = [[split, str((config.get("data") or {}).get(split)), str(digest)] for split, digest in digests.items()]
        yield _table(["split", "file", "digest of the examples"], rows, strong=-1)
    yield element(
        "details",
        element("summary", "The settings"),
        element("pre", data(as_toml(config), SHOWN_CONFIG), class_="whole"),
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
