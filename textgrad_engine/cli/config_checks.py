"""What in a config goes together, and what is there: the checks that need more than one key, or look outside of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from textgrad_engine.cli.config_errors import table_of
from textgrad_engine.cli.optimizers import OwnSettings, ParetoSearchSettings
from textgrad_engine.cli.settings import Metric
from textgrad_engine.cli.toml_lines import Keys
from textgrad_engine.data.dataset import listed, suggest
from textgrad_engine.data.paths import missing_file
from textgrad_engine.llm.headers import problem_of_name, problem_of_value
from textgrad_engine.llm.openai import checked_host
from textgrad_engine.llm.schema import as_list, follow
from textgrad_engine.ops.criteria import criteria_of
from textgrad_engine.report.toml import toml_key, toml_value
from textgrad_engine.slots import SLOT_NAMES, slots_of

if TYPE_CHECKING:
    from textgrad_engine.cli.config import Config


_OF_CALLS = {"response_format": "the form", "tools": "the tools", "max_turns": "the most turns"}


def _check_program(config: Config) -> None:
    program = config.program
    keys = ("system", "system_file", "user", *_OF_CALLS)
    texts = [key for key in keys if getattr(program, key) is not None]
    if program.class_ is not None:
        if texts and texts[0] in _OF_CALLS:
            config.fail(
                f"[program] has class and {texts[0]}; the class says {_OF_CALLS[texts[0]]} of each of its calls, as "
                f"nn.ChatCompletion(..., {texts[0]}=...), so take it out here",
                "program",
                texts[0],
            )
        if texts:
            config.fail(f"[program] has class and {texts[0]}; a program is the one or the other", "program", texts[0])
        _check_notes(config, "class")
        required, optional = config.columns()
        needed = () if config.may_lack_target else optional
        for target in [name for name in config.target_columns() if name in (*required, *needed)]:
            config.fail(
                f"[program] class = {program.class_!r}: its forward names {target}, the answer by "
                f"{config.target_key(target)}; take it out",
                "program",
                "class",
            )
        return
    runs = any(map(callable, config.tools() or ()))
    if program.max_turns is not None and not runs:
        config.fail(
            "[program] max_turns is how often a model with functions as tools is asked at most, and there are none; "
            "take it out",
            "program",
            "max_turns",
        )
    if "system" in texts and "system_file" in texts:
        config.fail("[program] has system and system_file; take one of them out", "program", "system_file")
    for key, example in (("system", 'system = "..." or system_file = "prompt.txt"'), ("user", 'user = "{question}"')):
        if not any(name.startswith(key) for name in texts):
            config.fail(f'[program] lacks {example}; or give class = "module:Class" instead of both', "program")
    slots = slots_of(program.user or "")
    if not slots:
        braces = re.search(r"(?<!\{)\{[^{}\n]+\}(?!\})", program.user or "")
        why = f"; {braces[0]} is text, as {SLOT_NAMES}" if braces else ""
        config.fail(
            f"[program] user has no {{slot}} that a column of the data fills, such as {{question}}{why}",
            "program",
            "user",
        )
    _check_notes(config, "user")
    required, optional = config.columns()
    for target in [name for name in config.target_columns() if name in (*required, *optional)]:
        key = "user" if target in required else program.system_key
        config.fail(
            f"[program] {key} shows the model {{{target}}}, the answer by {config.target_key(target)}; take it out",
            "program",
            key,
        )


def _check_notes(config: Config, key: str) -> None:
    """What people noted is for who gives feedback.

    Args:
        config: names the column.
        key: that says what the program is shown.
    """
    notes = config.data.notes
    if notes is not None and any(notes in columns for columns in config.columns()):
        config.fail(
            f"[program] {key} shows the model {{{notes}}}, and that is what people noted, by [data] notes; take it out",
            "program",
            key,
        )


def _check_files(config: Config) -> None:
    seen: dict[Path, str] = {}
    for key in ("train", "val", "test"):
        name = getattr(config.data, key)
        if name is None:
            continue
        file = config.file(name)
        if not file.is_file():
            hint = "" if name.isprintable() else r"; in double quotes '\t' is a tab, so write the path in single quotes"
            config.fail(f"[data] {key} = {name!r}: {missing_file(file)}{hint}", "data", key)
        if (earlier := seen.setdefault(file.resolve(), key)) != key:
            tested = key == "val" and config.data.test is not None
            without = "; or leave val out, then the training examples validate, too" if tested else ""
            config.fail(f"[data] {key} is the file of {earlier}; split it into two files{without}", "data", key)
    if config.data.image_detail is not None and not config.data.images:
        config.fail(
            "[data] image_detail means nothing without images; name the columns with images, such as "
            'images = ["photo"], or take it out',
            "data",
            "image_detail",
        )
    if config.prompts is not None and not config.file(config.prompts).is_dir():
        config.fail(
            f"prompts: there is no folder {config.file(config.prompts)}; make it, or take the key out", "prompts"
        )


_OF_KIND = {
    "judge": ("instructions", "scale", "images"),
    "rubric": ("criteria", "images"),
    "function": ("purpose", "scale"),
    "exact_match": (),
    "json_match": ("any_order", "graded"),
}
"""The keys that mean something to a metric of a kind; all kinds have `field`, `default`, `weight` and `floor`."""


def _check_metric(config: Config) -> None:
    found = config.metrics()
    for where, metric in found:
        table = table_of(where)
        if metric.name is not None and metric.function is not None:
            config.fail(f"{table} has name and function; take one of them out", *where, "function")
        allowed = _OF_KIND[metric.kind]
        for key in ("instructions", "criteria", "scale", "purpose", "images", "any_order", "graded"):
            if getattr(metric, key) is not None and key not in allowed:
                config.fail(f"{table} {key} means nothing to {metric.kind}; take it out", *where, key)
        if allowed[:1] in (("instructions",), ("purpose",)) and not (getattr(metric, allowed[0]) or "").strip():
            config.fail(
                f'{table} {metric.kind} wants {allowed[0]} = "...", what to look for in words', *where, allowed[0]
            )
        if metric.scale is not None and not metric.scale[0] < metric.scale[1]:
            config.fail(f"{table} scale = {metric.scale}: the lowest score comes first", *where, "scale")
        if metric.scale is not None and not math.isfinite(metric.scale[1] - metric.scale[0]):
            config.fail(
                f"{table} scale = {metric.scale}: the ends are too far apart for a mean; take a smaller scale",
                *where,
                "scale",
            )
        if metric.weight is not None and len(found) == 1:
            config.fail(f"{table} weight means nothing to one metric; take it out, or write several [[metric]]", *where)
        if metric.floor is not None and len(found) == 1:
            config.fail(
                f"{table} floor is for one of several metrics, as no change is kept by which the score of one falls; "
                "take it out, or write several [[metric]]; floors under slices of the examples are in [guards]",
                *where,
                "floor",
            )
        if metric.target is not None and len(found) == 1:
            config.fail(
                f"{table} target is for one of several metrics; write [data] target = {toml_value(metric.target)} "
                "instead",
                *where,
                "target",
            )
        if metric.criteria is not None:
            try:
                criteria_of(metric.criteria)
            except (TypeError, ValueError) as error:
                config.fail(f"{table} criteria: {error}", *where, "criteria")
        config.metric_function(where, metric)
        _check_field(config, where, metric)
    if config.data.target not in ("target", *config.target_columns()):
        config.fail(
            f"[data] target = {config.data.target!r} is the column of no metric, as each [[metric]] names its own; "
            "take it out",
            "data",
            "target",
        )


def _check_field(config: Config, where: Keys, metric: Metric) -> None:
    """A field is one that an answer can have, and what is compared as a whole is no JSON."""
    table, path = table_of(where), metric.path
    form = None if config.program.class_ is not None else config.response_format()
    if not path:
        if metric.pattern is not None:
            return
        if metric.default is not None:
            config.fail(f"{table} default stands for a field, and there is none; add field, or take it out", *where)
        if form is not None and metric.kind == "exact_match":
            fields = list(form.json_schema.get("properties", {}))
            such = f", such as field = {toml_value(fields[0])}" if fields else ""
            config.fail(
                f"{table} exact_match compares the whole answer, and that is JSON, by [program] response_format; name "
                f'the field that is compared{such}, or name = "json_match" for all of it',
                *where,
            )
        return
    if form is None and metric.default is None and config.program.class_ is None:
        config.fail(
            f"{table} field = {metric.field!r} is read of an answer that is JSON, and no [program] response_format "
            'holds the model to that; add it, or default = "", which is scored where an answer has no such field',
            *where,
            "field",
        )
    if form is not None and (problem := _lacking(form.json_schema, path)):
        config.fail(f"{table} field = {metric.field!r}: {problem}", *where, "field")


def _lacking(schema: Mapping[str, Any], path: Sequence[str | int]) -> str:
    """Why no answer has what a path leads to, by its schema; "" where one may have it."""
    by, node = "by [program] response_format", schema
    for depth, key in enumerate(path):
        while isinstance(node, Mapping) and "$ref" in node and "properties" not in node:
            node = follow(node["$ref"], schema)
        if not isinstance(node, Mapping) or not _OPEN.isdisjoint(node):
            return ""
        at = ".".join(map(str, path[:depth])) if depth else "an answer"
        kinds, known = as_list(node.get("type") or []), node.get("properties", {})
        if kinds and ("object" if isinstance(key, str) else "array") not in kinds:
            return f"{at} is of the type {' or '.join(kinds)} and has no {key!r} in it, {by}{_fields(known)}"
        if isinstance(key, int):
            first = node.get("prefixItems", ())
            node = first[key] if 0 <= key < len(first) else node.get("items", True)
        elif known and key not in known:
            return f"{at} has no such field, {by}{suggest(key, list(known)) or _fields(known)}"
        else:
            node = known.get(key, True)
    return ""


_OPEN = {"$ref", "anyOf", "oneOf", "allOf"}
"""What may add fields to those that stand beside it."""


def _fields(known: Mapping[str, Any]) -> str:
    return f"; it has {listed(known)}" if known else ""


def _check_endpoint(config: Config) -> None:
    url = config.models.base_url
    if url is None:
        return
    try:
        checked_host(url)
    except ValueError as error:
        config.fail(f"[models] {error}", "models", "base_url")
    parts = urlsplit(url)
    if parts.username or parts.password:
        config.fail("[models] base_url holds a key or password; set OPENAI_API_KEY instead", "models", "base_url")


def _check_prices(config: Config) -> None:
    """A price is that of a model which is asked: a name that is misspelt would leave another price in force."""
    names = list(config.models.roles().values())
    for name in config.models.prices:
        if name not in names:
            asked = ", ".join(dict.fromkeys(names))
            config.fail(
                f"[models.prices.{toml_key(name)}] is no model of this config, which asks {asked}"
                f"{suggest(name, names) or '; take it out; that of a --model is stated by --price'}",
                "models",
                "prices",
                name,
            )


def _check_headers(config: Config) -> None:
    """Headers can be sent; what comes from the environment is looked for when models are made."""
    seen: dict[str, str] = {}
    for name, value in config.models.headers.items():
        problem = problem_of_name(name)
        if not problem and isinstance(value, str):
            problem = problem_of_value(value)
        if not problem and (other := seen.setdefault(name.lower(), name)) != name:
            problem = f"is there as {other} already; names of headers do not differ in case"
        if problem:
            config.fail(f"[models.headers] {toml_key(name)} {problem}", "models", "headers", name)


def _check_optimizer(config: Config) -> None:
    """An optimizer of the user's own is imported, and can be made of what the file says."""
    own = config.optimizer
    if isinstance(own, OwnSettings):
        try:
            own.take(config.import_named(own.name, "optimizer", "name"))
        except TypeError as error:
            config.fail(f"[optimizer] name = {own.name!r}: {error}", "optimizer", "name")


def _check_frontier(config: Config) -> None:
    """What is best by one of several metrics, or criteria, can be kept where there are several."""
    own, metrics = config.optimizer, [metric for _, metric in config.metrics()]
    several = len(metrics) > 1 or len(metrics[0].criteria or ()) > 1
    if isinstance(own, ParetoSearchSettings) and own.frontier not in (None, "instance") and not several:
        config.fail(
            f"[optimizer] frontier = {toml_value(own.frontier)} keeps the texts that are best by one of several "
            "metrics, and there is one; write several [[metric]], or a rubric with criteria, or take it out",
            "optimizer",
            "frontier",
        )


Idle: TypeAlias = tuple[str, str, str]
"""A table, a key in it that has no effect on a run of the config, and what is said of it where it is in the file."""

_SHOWING = "demonstrations"
"""The way to show solved examples, for which nobody reads what is said of answers."""

_MODES_OF = {
    "max_edits": ("patch",),
    "schedule": ("patch",),
    "momentum": ("rewrite", "patch"),
    **dict.fromkeys(("transforms", "max_feedback_tokens", "feedback_batch_size"), ("rewrite", "patch")),
}
"""The ways to write new texts to which a key of [optimizer] means something."""


def idle_keys(config: Config) -> Iterator[Idle]:
    """The keys without effect: refused in a file, and not written down as what a run was set to."""
    yield from _idle_in_mode(config)
    yield from _idle_in_search(config)
    yield from _idle_without_critic(config)


def _idle_in_mode(config: Config) -> Iterator[Idle]:
    """Who writes a text anew makes no edits, and who asks nobody shows nothing."""
    mode = config.optimizer.way
    for key, modes in _MODES_OF.items():
        if mode is not None and mode not in modes:
            others = " or ".join(f'"{each}"' for each in modes)
            yield "optimizer", key, f'means nothing with mode = "{mode}"; take it out, or write mode = {others}'


def _idle_in_search(config: Config) -> Iterator[Idle]:
    """What a search does otherwise by itself."""
    has = type(config.optimizer).model_fields
    for key in config.optimizer.idle_in_train:
        instead = f"; set {key} in [optimizer]" if key in has else ""
        if key == "max_epochs":
            instead = "; limit [train] max_steps, or a [budget]"
        who = f"{config.optimizer.name}, which draws its own minibatches and ends by itself"
        yield "train", key, f"means nothing to {who}; take it out{instead}"


def _idle_without_critic(config: Config) -> Iterator[Idle]:
    """How a critic is asked, where none is."""
    if not config.train.critic:
        for table, key in (
            ("train", "feedback_batch_size"),
            ("train", "feedback_images"),
            ("optimizer", "feedback_batch_size"),
        ):
            yield table, key, "means nothing where [train] critic = false has no critic asked; take it out"
    elif not _hears_a_critic(config):
        who = f"{_named(config)}, which asks no critic"
        yield "train", "feedback_images", f"means nothing to {who}; take it out"
    if not _hears_a_critic(config):
        yield "data", "notes", f"means nothing to {_named(config)}, which hears no feedback; take it out"


def _hears_a_critic(config: Config) -> bool:
    """Whether the optimizer works from what is said of answers, as far as is known of it."""
    own = config.optimizer
    return isinstance(own, OwnSettings) or ("transforms" in type(own).model_fields and own.way != _SHOWING)


def _named(config: Config) -> str:
    """The optimizer, with what it is set to where that is why it asks no critic."""
    own = config.optimizer
    return f'{own.name} with mode = "{_SHOWING}"' if own.way == _SHOWING else str(own.name)


def _check_idle(config: Config) -> None:
    """Nothing in the file is without effect."""
    for table, key, why in idle_keys(config):
        if config.has_line(table, key):
            config.fail(f"[{table}] {key} {why}", table, key)


def _check_critic(config: Config) -> None:
    """Whether there is one makes a difference."""
    if not config.train.critic and not _hears_a_critic(config):
        who = f"{_named(config)}, which asks no critic"
        config.fail(
            f"[train] critic = false (--no-critic) means nothing to {who}; take it out",
            "train",
            "critic",
        )


CHECKS: tuple[Callable[[Config], None], ...] = (
    _check_endpoint,
    _check_prices,
    _check_headers,
    _check_files,
    _check_metric,
    _check_program,
    _check_critic,
    _check_optimizer,
    _check_frontier,
    _check_idle,
)
"""Each takes a config, and raises a ConfigError where something in it does not go with the rest."""
