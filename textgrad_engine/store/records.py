"""What happens in a run as plain JSON, and back; every time in it is named "time", "latency" or "seconds"."""

from __future__ import annotations

import functools
import json
import numbers
import operator
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from textgrad_engine.errors import RunError
from textgrad_engine.signed import unsigned
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.events import (
    Evaluated,
    Event,
    PhaseEnded,
    RunEnded,
    RunStarted,
    StepEnded,
)
from textgrad_engine.train.result import TrainResult
from textgrad_engine.wording import a_class

FORMAT = 1
"""The version of what a run folder holds; a reader refuses versions that it does not know."""


def use_that_version(kept: Mapping[str, Any]) -> str:
    """The repair of a file that another version wrote, by the content of its run's ``config.json``.

    Example:
        >>> use_that_version({"version": "0.2.0"}), use_that_version({})
        ('use the version that wrote it, 0.2.0', 'use the version that wrote it')
    """
    version = kept.get("version")
    return f"use the version that wrote it{f', {version}' if isinstance(version, str) else ''}"


def dumps(value: Any, indent: int | None = None) -> bytes:
    r"""JSON as UTF-8; a lone surrogate, which UTF-8 cannot hold, becomes its JSON escape.

    Example:
        >>> dumps({"text": "é\udc80"})
        b'{"text": "\xc3\xa9\\udc80"}'
    """
    return json.dumps(value, ensure_ascii=False, indent=indent, default=_plain).encode("utf-8", "backslashreplace")


def _plain(value: Any) -> int | float:
    """A number of another library, such as numpy's, as JSON has numbers."""
    if isinstance(value, numbers.Real):
        return operator.index(value) if isinstance(value, numbers.Integral) else float(value)
    raise TypeError(f"{a_class(type(value))} cannot be written as JSON")


def timestamp(seconds: float, precision: str = "milliseconds") -> str:
    """A time as people read it, in UTC.

    Args:
        seconds: since the epoch.
        precision: the last unit that is told.

    Example:
        >>> timestamp(0.5)
        '1970-01-01T00:00:00.500Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def event_to_json(event: Event, seconds: float, calls: int = 0, tools: int = 0) -> dict[str, Any]:
    """One line of ``events.jsonl``.

    Args:
        event: what happened; of `RunEnded` the status alone, as the result has its own file.
        seconds: when, since the epoch.
        calls: of a `PhaseEnded`, how many calls of models in the phase were written down.
        tools: the same of tools.
    """
    name = type(event).__name__
    if isinstance(event, RunEnded):
        body: dict[str, Any] = {"status": event.status}
    elif isinstance(event, Evaluated):
        body = {
            "number": event.number,
            "phase": event.phase,
            "step": event.step,
            "evaluation": evaluation_to_json(event.evaluation),
        }
    else:
        body = asdict(event)
        if isinstance(event, PhaseEnded):
            body = {"number": event.number, "lacking": True} if event.lacking else {"number": event.number}
            body |= {"calls": calls, "tools": tools} if tools else {"calls": calls}
    return _told({"event": name, **body, "time": timestamp(seconds)})


def event_from_json(entry: Mapping[str, Any]) -> RunStarted | Evaluated | StepEnded | None:
    """The event of a line, for those kinds that a reader needs as objects; None for the others.

    Raises:
        RunError: it has not the fields of such an event.
    """
    kind = {"RunStarted": RunStarted, "Evaluated": Evaluated, "StepEnded": StepEnded}.get(str(entry.get("event")))
    if kind is None:
        return None
    fields = {key: value for key, value in entry.items() if key not in ("event", "time")}
    found: RunStarted | Evaluated | StepEnded = _validated(kind, fields)
    if isinstance(found, Evaluated):
        _check_whole(found.evaluation, "evaluation")
    return found


def evaluation_to_json(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation, with its mean and interval for those who read the file with other tools."""
    found: dict[str, Any] = _adapter(Evaluation).dump_python(evaluation, mode="json", fallback=str)
    if not evaluation.contents:
        del found["contents"]
    if evaluation.answered:
        found |= {"mean": evaluation.mean, "interval": list(evaluation.interval)}
    return found


def evaluation_from_json(body: Mapping[str, Any]) -> Evaluation:
    """An evaluation that `evaluation_to_json` wrote.

    Raises:
        RunError: it is not what that writes.
    """
    found: Evaluation = _validated(Evaluation, body)
    _check_whole(found, "Evaluation")
    return found


def _check_whole(evaluation: Evaluation, where: str) -> None:
    """Refuse an evaluation of which something is lacking, as what is left would pass for that of other examples."""
    per_example = {
        "scores": evaluation.scores,
        "predictions": evaluation.predictions,
        "samples": evaluation.samples or evaluation.ids,
        "clusters": evaluation.clusters or evaluation.ids,
        "latency": evaluation.latency or evaluation.ids,
        **{f"parts.{place}.scores": part.scores for place, part in enumerate(evaluation.parts)},
    }
    for name, found in per_example.items():
        if len(found) != len(evaluation.ids):
            raise RunError(f"{where}.{name}: there are {len(found)} of them, and {len(evaluation.ids)} examples")


def result_to_json(result: TrainResult) -> dict[str, Any]:
    """All that a report needs, with the version of the format."""
    body: dict[str, Any] = _adapter(TrainResult).dump_python(result, mode="json", fallback=str)
    for name in _EVALUATIONS:
        evaluation = getattr(result, name)
        body[name] = None if evaluation is None else evaluation_to_json(evaluation)
    return _told({"format": FORMAT, **body})


def result_from_json(body: Mapping[str, Any]) -> TrainResult:
    """A result that `result_to_json` wrote.

    Raises:
        RunError: it is of another version, or is not what that writes.
    """
    if body.get("format") != FORMAT:
        raise RunError(f"it has format {body.get('format')!r}, and this version of textgrad_engine reads {FORMAT}")
    found: TrainResult = _validated(TrainResult, {key: value for key, value in body.items() if key != "format"})
    for name in _EVALUATIONS:
        if (evaluation := getattr(found, name)) is not None:
            _check_whole(evaluation, name)
    return found


_EVALUATIONS = ("seed_val", "best_val", "seed_test", "best_test")


_PROMPTS = frozenset({"parameters", "seed", "best", "before", "after", "texts"})
"""Under these names are texts of prompts. They stay as they are, for they are loaded again."""


def _told(body: Mapping[str, Any]) -> dict[str, Any]:
    """What happened, with addresses that nothing signs in what programs, critics and examples said."""

    def told(name: str, inside: Any) -> Any:
        if name in _PROMPTS:
            return inside
        if name == "edits":  # their texts are lines of prompts
            return [{**unsigned(each), "text": each["text"]} for each in inside]
        if isinstance(inside, Mapping) and name != "predictions":
            return _told(inside)
        if isinstance(inside, list | tuple) and name != "predictions":
            return [told("", each) for each in inside]
        return unsigned(inside)

    return {name: told(name, inside) for name, inside in body.items()}


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # Made on first use: it takes milliseconds, which importing should not.
    return TypeAdapter(kind)


def _validated(kind: Any, body: Mapping[str, Any]) -> Any:
    try:
        return _adapter(kind).validate_python(dict(body))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RunError(f"{where or kind.__name__}: {first['msg'].lower()}") from None
