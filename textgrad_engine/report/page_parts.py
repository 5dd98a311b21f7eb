"""The pieces that pages about runs are made of: sections, tiles, plots of scores, tables, and how to run again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Literal

from textgrad_engine.report.figures import Axis, axis_row, interval_row
from textgrad_engine.report.html import Inside, Markup, data, document, element, joined
from textgrad_engine.report.metric_parts import Parts, parts_title
from textgrad_engine.report.page_texts import SHOWN_NAME, changes, name_of
from textgrad_engine.report.pairing import setting_in
from textgrad_engine.report.slices import Sliced, slices_in_words
from textgrad_engine.report.toml import as_toml
from textgrad_engine.report.view import ParameterView, size
from textgrad_engine.report.words import capital, plural, score
from textgrad_engine.train.comparison import Comparison
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.result import TrainResult

SHOWN_CONFIG = 20_000
"""Characters of the config."""

_SHOWN_CRITERION = 300
"""Characters of a criterion, which is a sentence and no name."""

SIMULATED = "The model is a simulation inside the package: what it does is no evidence about real models."


def page(title: str, made_from: Inside, header: Iterable[Inside], main: Iterable[Inside]) -> str:
    """A whole page.

    Args:
        title: of the page.
        made_from: the folder that it is about.
        header: what stands in it before all else.
        main: its parts.
    """
    style = (files("textgrad_engine.report") / "page.css").read_text(encoding="utf-8")
    footer = element("footer", "Made by ", element("code", "textgrad-engine report"), " from ", made_from)
    return document(title, style, [element("header", *header), element("main", *main), footer])


def section(title: Inside, inside: Iterable[Inside]) -> Iterator[Markup]:
    """A part of a page with its title; nothing where nothing is inside."""
    parts = list(inside)
    if parts:
        yield joined("\n", element("section", element("h2", title), *parts))


def changes_in(result: TrainResult, parameter: ParameterView, only: str = "the prompt") -> Iterator[Markup]:
    """What changed in a text, who asked for it, and what decided; `only` names the text where there is one only."""
    what: Inside = only if len(result.best) == 1 else element("code", name_of(parameter.name))
    yield from section(joined("What changed in ", what), changes(result, parameter))


def models_of(config: Any) -> Iterator[Inside]:
    """Which optimizer worked with which models, as far as a ``config.json`` tells; nothing where there is none."""
    optimizer = setting_in(config, "config", "optimizer", "name")
    roles = (setting_in(config, "config", "models", role) for role in ("forward", "backward", "optimizer", "judge"))
    used = dict.fromkeys(name for name in roles if isinstance(name, str))
    names = [*([optimizer] if isinstance(optimizer, str) else []), *used]
    if names:
        yield joined(*[each for name in names for each in (", ", name_of(name))][1:], ". ")


def tile(label: str, value: str) -> Markup:
    """A figure with its name."""
    return element("div", element("dt", label), element("dd", value))


def scores_plot(
    rows: Sequence[tuple[str, str, Evaluation]], compared: Comparison | None, on: Literal["test", "val"] | None
) -> Iterator[Markup]:
    """Mean scores with their intervals, and the difference between the best texts and the seed texts.

    Args:
        rows: what was scored on what, its kind (``"seed"``, ``"best"``), and the scores; at least one.
        compared: best against seed; None where there is nothing to compare.
        on: the set that it is about; the validation set chose the best texts.
    """
    ends = [end for _, _, found in rows for end in (found.mean, *found.interval)]
    axis = Axis.around(ends, limits=_limits([found for _, _, found in rows]))
    shown = [
        _row(name, interval_row(axis, found.mean, found.interval, kind), score(found.mean), found.interval, False)
        for name, kind, found in rows
    ]
    yield element("ul", *shown, _axis(axis), class_="plot")
    sizes: dict[str, dict[str, str]] = {}  # by set; of each size, with which texts it was measured
    for name, _, found in rows:
        where, _, whose = name.partition(", ")
        sizes.setdefault(where, {}).setdefault(size(found), whose)
    told = {where: [f"{much} with the {whose}" for much, whose in each.items()] for where, each in sizes.items()}
    measured = "; ".join(
        [f"{where}: {', '.join(told[where] if len(each) > 1 else each)}" for where, each in sizes.items()]
    )
    yield element("p", f"Mean scores with their 95% intervals. {capital(measured)}.", class_="hint")
    if compared is None:
        return
    kind = {"better": "good", "worse": "bad"}.get(compared.verdict, "best") if on == "test" else "best"
    axis = Axis.around([0.0, compared.difference, *compared.interval])
    picture = interval_row(axis, compared.difference, compared.interval, kind, mark=0.0)
    word = {"test": "test", "val": "validation", None: ""}[on]
    row = _row(f"difference on {word}", picture, score(compared.difference, True), compared.interval, True)
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


def table(
    label: str, heads: Sequence[str], rows: Sequence[Sequence[str]], strong: int, most: int = SHOWN_NAME
) -> Markup:
    """A table that may be scrolled sideways; a row may be set off, and `most` characters of a row's name are shown."""
    head = element("tr", *(element("th", each, scope="col") for each in heads))
    made = []
    for number, row in enumerate(rows):
        cells = [element("th", data(row[0], most), scope="row"), *(element("td", cell) for cell in row[1:])]
        made.append(element("tr", *cells, class_="strong" if number == strong else None))
    inside = element("table", element("thead", head), element("tbody", *made))
    return element("div", inside, class_="wide", tabindex=0, role="region", aria_label=label)


def metrics(parts: Parts | None) -> Iterator[Markup]:
    """What each of several metrics gave; nothing where there is one."""
    if parts is not None:
        yield element("h3", parts_title(parts))
        yield table(parts_title(parts), parts.heads, parts.rows, strong=-1, most=_SHOWN_CRITERION)


def slices_shown(found: Sliced | None) -> Iterator[Markup]:
    """Scores on kinds of examples; nothing where none are asked for."""
    if found is not None:
        heads, rows, note = slices_in_words(found.column, found.slices)
        hints = [element("p", each, class_="hint") for each in (note, *found.remarks())]
        yield from section(capital(f"{found.title}"), [table(found.title, heads, rows, strong=-1), *hints])


def again(
    kept: Mapping[str, Any] | None, seed_texts: Mapping[str, str], *flags: str, controls: bool
) -> Iterator[Markup]:
    """How to run it again.

    Args:
        kept: what ``config.json`` says; None for a run from Python.
        seed_texts: the texts that it began with, by name: a file that held one may have been changed since.
        flags: options of `train` that the run was made with, besides those that `kept` tells.
        controls: whether there are results of controls, as older folders do not keep whether they were asked for.
    """
    config, version, digests = (setting_in(kept, key) for key in ("config", "version", "digests"))
    if not isinstance(config, Mapping):
        yield element(
            "p",
            "The run was started from Python, so its folder keeps no settings: run the program that started it. Every "
            "request, and the event of each step, is in the run folder.",
        )
        return
    made = f"textgrad_engine {version}" if version else "textgrad_engine, of a version that the folder does not name"
    options = [*flags, *(["--controls"] if controls or setting_in(kept, "controls") is True else [])]
    options += ["--no-feedback"] if setting_in(kept, "feedback") is False else []
    seed = config.get("seed")
    form, config = _form_apart(_with_its_text(config, seed_texts))
    settings = as_toml(config)
    if len(settings) + len(form) <= SHOWN_CONFIG:
        how: list[Inside] = ["Save the settings below as ", element("code", "config.toml"), _place(config)]
        how += [", the form of the answers as ", element("code", FORM_FILE), " beside it"] if form else []
    else:
        how = ["The settings are too long for a page: run the config that the run was made from, or make one of "]
        how += [element("code", "config.json"), " in the run folder, save it", _place(config)]
    yield element(
        "p",
        *how,
        " and run the command. The run was made with ",
        name_of(made),
        f" and seed {seed}. A model that answers at random answers otherwise the next time.",
    )
    yield element("pre", " ".join(["textgrad-engine train config.toml", *options]), class_="command")
    if isinstance(digests, Mapping) and digests:
        rows = [[split, str(setting_in(config, "data", split)), str(digest)] for split, digest in digests.items()]
        yield table("The data", ["split", "file", "digest of the examples"], rows, strong=-1)
    yield element("details", element("summary", "The settings"), element("pre", data(settings, SHOWN_CONFIG)))
    if form:
        shown = element("pre", data(form, SHOWN_CONFIG))
        yield element("details", element("summary", "The form of the answers"), shown)


FORM_FILE = "answer.json"
"""What a form of the answers is called that has null in it, which is in no TOML."""


def _place(config: Mapping[str, Any]) -> str:
    """Where settings are to be saved, as the paths in them count from there."""
    files = [setting_in(config, "data", split) for split in ("train", "val", "test")]
    beside = all("/" not in file for file in files if isinstance(file, str))
    return " beside the data" if beside else " where the paths in it lead to the data"


def _with_its_text(config: Mapping[str, Any], seed_texts: Mapping[str, str]) -> Mapping[str, Any]:
    """The settings with the prompt that a run began with, where they name its file."""
    if setting_in(config, "program", "system_file") is None or "system" not in seed_texts:
        return config
    return {**config, "program": {**config["program"], "system_file": None, "system": seed_texts["system"]}}


def _form_apart(config: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The form of the answers as JSON, and the settings that name its file; "" where they can hold it themselves."""
    schema = setting_in(config, "program", "response_format")
    if not isinstance(schema, Mapping) or not _has_null(schema):
        return "", config
    named = {**config, "program": {**config["program"], "response_format": FORM_FILE}}
    return json.dumps(schema, indent=2, ensure_ascii=False), named


def _has_null(value: Any) -> bool:
    """Whether null is somewhere in a JSON value."""
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return value is None or any(map(_has_null, inside))
