"""What in the metrics of a config goes together, and with the form of the answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textgrad_engine.cli.config_errors import table_of
from textgrad_engine.cli.settings import Metric
from textgrad_engine.cli.toml_lines import Keys
from textgrad_engine.data.names import listed, suggest
from textgrad_engine.llm.schema import as_list, follow
from textgrad_engine.nn.metric_functions import forward_of
from textgrad_engine.ops.criteria import criteria_of
from textgrad_engine.plain_values import is_number
from textgrad_engine.report.toml import toml_value
from textgrad_engine.wording import nearest

if TYPE_CHECKING:
    from textgrad_engine.cli.config import Config


_OF_KIND = {
    "judge": ("instructions", "scale", "images"),
    "rubric": ("criteria", "images"),
    "function": ("purpose", "scale"),
    "exact_match": (),
    "json_match": ("any_order", "graded"),
}
"""The keys that mean something to a metric of a kind; all kinds have `field`, `default`, `weight` and `floor`."""


def check_metrics(config: Config) -> None:
    """Each metric has what it needs, and nothing that means nothing to it."""
    found = config.metrics()
    for where, metric in found:
        table = table_of(where)
        if metric.name is not None and metric.function is not None:
            config.fail(f"{table} has name and function; take one of them out", *where, "function")
        function = config.metric_function(where, metric)
        own = forward_of(function) is not function
        allowed, kind = ((), "a loss of your own") if own else (_OF_KIND[metric.kind], metric.kind)
        for key in ("instructions", "criteria", "scale", "purpose", "images", "any_order", "graded"):
            if getattr(metric, key) is not None and key not in allowed:
                config.fail(f"{table} {key} means nothing to {kind}; take it out", *where, key)
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
            of_rubric = '; one under a criterion stands in that, { criterion = "...", floor = 0.9 }'
            config.fail(
                f"{table} floor is for one of several metrics, as no change is kept by which the score of one falls; "
                "take it out, or write several [[metric]]; floors under slices of the examples are in [guards]"
                f"{of_rubric if metric.kind == 'rubric' else ''}",
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
        _check_criteria(config, where, metric)
        _check_field(config, where, metric)
    if config.data.target not in ("target", *config.target_columns()):
        config.fail(
            f"[data] target = {config.data.target!r} is the column of no metric, as each [[metric]] names its own; "
            "take it out",
            "data",
            "target",
        )


_OF_CRITERION = ("criterion", "points", "floor", "tags")


def _check_criteria(config: Config, where: Keys, metric: Metric) -> None:
    """They are criteria, and a floor under one is a number that the part of the answers can be which do well by it."""
    if metric.rubric is None:
        return
    table = table_of(where)
    for place, each in enumerate(metric.criteria or ()):
        for key in each if isinstance(each, dict) else ():
            if key not in _OF_CRITERION and (meant := nearest(key, _OF_CRITERION)):
                config.fail(f"{table} criteria: criterion {place + 1} has the key {key!r}{meant}", *where, "criteria")
    try:
        criteria_of(metric.rubric)
    except (TypeError, ValueError) as error:
        config.fail(f"{table} criteria: {error}", *where, "criteria")
    for place, floor in metric.floors.items():
        if not is_number(floor) or not 0 <= floor <= 1:
            config.fail(
                f"{table} criteria: the floor of criterion {place + 1} is {floor!r}, and should be the part of the "
                "answers, from 0 to 1, that must do well by it at least",
                *where,
                "criteria",
            )
    if metric.floors and len(config.metrics()) > 1:
        config.fail(
            f"{table} criteria: a floor under a criterion is for a rubric that is the only metric; take it out, or "
            "write floor beside criteria, for the score of this metric",
            *where,
            "criteria",
        )
    if metric.floors and len(metric.rubric) == 1:
        config.fail(
            f"{table} criteria: a floor is for one of several criteria, as no change is kept by which the score of one "
            "falls; take it out",
            *where,
            "criteria",
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
