"""A cross-validation as one page that can be sent: the verdict of all folds, and the prompt to use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from textgrad_engine.llm.money import money
from textgrad_engine.llm.response import Usage
from textgrad_engine.report.folds import advice_of, against_controls, headline_of, notes_of, parts_of_folds, verdict_of
from textgrad_engine.report.html import Inside, Markup, element, joined
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
from textgrad_engine.report.page_texts import name_of, said
from textgrad_engine.report.pairing import setting_in
from textgrad_engine.report.slices import Sliced
from textgrad_engine.report.view import Tone, view_of
from textgrad_engine.report.words import capital, count, duration, plural, score
from textgrad_engine.store.folds import Folds
from textgrad_engine.train.pooled import CrossValidation
from textgrad_engine.train.result import TrainResult

_TONES: dict[str, Tone] = {"better": "good", "worse": "bad", "not shown": "plain"}


def page_of_folds(folds: Folds, slices: Sliced | None = None) -> str:
    """The page about a cross-validation, the same for the same folder, wherever it is.

    Args:
        folds: the folder; where runs are missing, what there is so far is shown.
        slices: what it measured on kinds of examples, if that is to be shown.

    Raises:
        RunError: a file is damaged.
    """
    name, found = folds.path.resolve().name, folds.found
    head = headline_of(folds)
    seed = next((run.seed for run in folds.runs.values()), {})
    controls = any(each.controls for each in found.runs)
    kept = None if folds.config is None else {**folds.config, "digests": {}}  # that of each run are of its part only
    main = [
        *section("Which prompt to use", _advice(folds)),
        *section("Scores", [*_scores(folds), *metrics(parts_of_folds(found))]),
        *slices_shown(slices),
        *section("What to know when reading this", _notes(folds)),
        *_changes(found),
        *section("Beside controls", _controls(found)),
        *section("Cost", _cost(folds)),
        *section("How to run it again", again(kept, seed, f"--folds {folds.folds}", controls=controls)),
    ]
    title = f"{name}: {verdict_of(folds) or head}"
    return page(title, joined("the folder ", name_of(name)), _header(folds, name, head), main)


def _header(folds: Folds, name: str, head: str) -> Iterator[Inside]:
    found = folds.found
    yield element("p", "Report on a cross-validation of a prompt optimization", class_="kind")
    yield element("h1", name_of(name))
    yield element("p", f"{capital(head)}. ", *models_of(folds.config), class_="lead")
    verdict, _, rest = (verdict_of(folds) or "not measured: no fold was tested").partition(": ")
    tone = "plain" if found.comparison is None else _TONES[found.comparison.verdict]
    yield element("p", element("strong", capital(verdict)), f" {capital(rest)}", class_=f"verdict {tone}")
    yield element("dl", *_figures(found), class_="tiles")


def _figures(found: CrossValidation) -> Iterator[Markup]:
    if found.seed is not None and found.best is not None:
        yield tile("Tested", f"{score(found.seed.mean)} \N{RIGHTWARDS ARROW} {score(found.best.mean)}")
        yield tile("Folds that gained", f"{found.gained} of {sum(each.best_test is not None for each in found.folds)}")
    if found.final is not None:
        parameters = view_of(found.final).parameters
        added, removed = (sum(each.number_of(op) for each in parameters) for op in ("added", "removed"))
        yield tile("Lines of the final prompt", f"+{added} \N{MINUS SIGN}{removed}")
    yield tile("Cost", money(found.total.dollars))
    yield tile("Calls", count(found.total.calls))
    if found.seconds:
        yield tile("Time", duration(found.seconds))


def _advice(folds: Folds) -> Iterator[Markup]:
    first, *further = advice_of(folds, Path(folds.path.resolve().name)) or [""]
    if not first:
        return
    yield element("p", element("strong", said(first)))
    yield from (element("p", said(each)) for each in further)


def _scores(folds: Folds) -> Iterator[Markup]:
    found = folds.found
    if found.seed is not None and found.best is not None:
        rows = [("all folds, seed prompt", "seed", found.seed), ("all folds, best prompts", "best", found.best)]
        yield from scores_plot(rows, found.comparison, "test")
    if found.folds:
        made = [_fold(number, each) for number, each in enumerate(found.folds, 1)]
        yield table("Fold by fold", ["", "tested on", "seed prompt", "best prompt", "difference", ""], made, strong=-1)


def _fold(number: int, each: TrainResult) -> list[str]:
    name = f"fold {number}"
    if each.seed_test is None or each.best_test is None:
        return [name, "not tested", "", "", "", ""]
    means = each.seed_test.mean, each.best_test.mean
    kept = "" if each.best != each.seed else "unchanged"
    return [name, count(len(each.best_test)), *map(score, means), score(means[1] - means[0], True), kept]


def _notes(folds: Folds) -> Iterator[Markup]:
    notes: list[Inside] = [said(note) for note in notes_of(folds)]
    if str(setting_in(folds.config, "config", "models", "forward")).startswith("simulated/"):
        notes.append(SIMULATED)
    notes += [said(f"{name}: {note}") for name, run in folds.runs.items() for note in run.notes]
    if notes:
        yield element("ul", *(element("li", note) for note in notes))


def _changes(found: CrossValidation) -> Iterator[Markup]:
    if found.final is not None:
        for parameter in view_of(found.final).parameters:
            yield from changes_in(found.final, parameter, "the final prompt")


def _controls(found: CrossValidation) -> Iterator[Markup]:
    sentences = list(against_controls(found))
    if sentences:
        yield element("p", "Over all folds, on examples that neither had seen.", class_="hint")
        yield element("ul", *(element("li", said(sentence)) for sentence in sentences))


def _cost(folds: Folds) -> Iterator[Markup]:
    found = folds.found
    used = {name: run.result.total for name, run in folds.runs.items() if run.result is not None}
    rows = [_used(name, usage) for name, usage in [*used.items(), ("all", found.total)]]
    heads = ["run", "calls", "tokens in", "tokens out", "cost"]
    yield table("Cost by run", heads, rows, strong=len(rows) - 1)
    many = plural(len(used), "run")
    yield element("p", f"{capital(many)} one after the other, {duration(found.seconds)} in all.", class_="hint")


def _used(name: str, usage: Usage) -> list[str]:
    return [name, count(usage.calls), count(usage.input_tokens), count(usage.output_tokens), money(usage.dollars)]
