"""Whether an answer is the JSON that was expected, and where it is not: for `nn.JSONMatch`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from textgrad_engine import templates
from textgrad_engine.llm.parsing import json_in
from textgrad_engine.ops.evaluators import written
from textgrad_engine.ops.exact_match import alike

MOST_TOLD = 10
"""Differences that are told one by one; the whole of both values stands below them."""

_LONG = 200
"""Characters of a value that are told."""

_COMPARED = 100
"""Values of a list in any order, of which each is compared with each where they are not the same to the letter."""

_NOTHING = object()
"""In the place of what is not there."""


class _Difference(NamedTuple):
    """A place where two values differ.

    Attributes:
        path: the keys and places that lead there; ``...`` for one in a list whose order does not count.
        expected: what should be there; `_NOTHING` where nothing should.
        got: what is.
    """

    path: tuple[Any, ...]
    expected: Any
    got: Any


def json_match(answer: Any, expected: Any, *, any_order: bool = False, graded: bool = False) -> tuple[float, str]:
    """1 where an answer is JSON with the expected value, else 0; and where it differs, in words.

    Args:
        answer: a text that holds JSON, maybe in a fenced block; any other text stands for itself.
        expected: the value, or a text that holds it.
        any_order: whether the order of lists does not count.
        graded: whether an answer that differs is given the part of its values that are right: of all that are
            expected or there.

    Example:
        >>> json_match('{"to": "Rome", "legs": [1, 2.0]}', {"legs": [1, 2], "to": "Rome"})
        (1.0, '')
        >>> json_match('[{"name": "book"}]', [{"name": "pay", "sum": 3}])[1].splitlines()
        ['- at [0].name: expected "pay", got "book"', '- at [0].sum: expected 3, got nothing']
        >>> json_match('["b", "a"]', ["a", "b"], any_order=True)[0]
        1.0
        >>> json_match('{"a": 1, "b": 3, "c": 5}', {"a": 1, "b": 2}, graded=True)[0]
        0.3333333333333333
    """
    wanted = _value_in(expected)
    try:
        got = _value_in(answer, leniently=True)
    except _NoJSON as error:
        if isinstance(wanted, dict | list):
            return 0.0, templates.load("json_match").render(problem=str(error), differences=[], more=0)
        got = answer
    right = wrong = 0
    found = []
    for weight, difference in _compared(got, wanted, any_order):
        if difference is None:
            right += weight
        else:
            wrong += weight
            found.append(difference)
    if not found:
        return 1.0, ""
    shown = [
        {"where": _written_path(each.path), "expected": _told(each.expected), "got": _told(each.got)}
        for each in found[:MOST_TOLD]
    ]
    remark = templates.load("json_match").render(problem="", differences=shown, more=len(found) - len(shown))
    return right / (right + wrong) if graded else 0.0, remark


class _NoJSON(ValueError):
    """A text that holds no JSON."""


def _value_in(value: Any, *, leniently: bool = False) -> Any:
    """The value that a text holds as JSON; any other value as it is.

    Raises:
        _NoJSON: leniently looked for, and it holds none.
    """
    if not isinstance(value, str):
        return value
    try:
        return json_in(value)[1] if leniently else json.loads(value)
    except (ValueError, RecursionError) as error:
        if leniently:
            raise _NoJSON(str(error)) from None
        return value


def _compared(got: Any, wanted: Any, any_order: bool) -> Iterator[tuple[int, _Difference | None]]:
    """What two values have in common, and where they differ, from the beginning; of each how many single values it is.

    Not by recursion, as both may be nested deeply.
    """
    waiting: list[_Difference] = [_Difference((), wanted, got)]
    while waiting:
        path, wanted, got = each = waiting.pop()
        if isinstance(wanted, dict) and isinstance(got, dict) and (wanted or got):
            names = dict.fromkeys([*wanted, *got])
            inside = [_Difference((*path, name), wanted.get(name, _NOTHING), got.get(name, _NOTHING)) for name in names]
            waiting += reversed(inside)
        elif isinstance(wanted, list) and isinstance(got, list) and any_order and (wanted or got):
            lacking, beyond = _left_over(got, wanted)
            yield max(0, _size(wanted) - _size(lacking)), None
            yield from [(_size(value), _Difference((*path, ...), value, _NOTHING)) for value in lacking]
            yield from [(_size(value), _Difference((*path, ...), _NOTHING, value)) for value in beyond]
        elif isinstance(wanted, list) and isinstance(got, list) and (wanted or got):
            places = range(max(len(wanted), len(got)))
            waiting += reversed([_Difference((*path, n), _at(wanted, n), _at(got, n)) for n in places])
        elif _are_alike(got, wanted):
            yield 1, None
        else:
            yield max(_size(wanted), _size(got)), each


def _are_alike(got: Any, wanted: Any) -> bool:
    """Whether two values of which one has nothing in it are the same."""
    if _NOTHING in (got, wanted) or isinstance(got, dict | list) or isinstance(wanted, dict | list):
        return type(got) is type(wanted) and got == wanted
    return alike(got, wanted)


def _size(value: Any) -> int:
    """How many single values there are in a value; what is empty is one."""
    found, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list) and each:
            waiting += each.values() if isinstance(each, dict) else each
        else:
            found += each is not _NOTHING
    return found


def _left_over(got: list[Any], wanted: list[Any]) -> tuple[list[Any], list[Any]]:
    """What is wanted and not there, and what is there and not wanted, in whatever order both are."""
    times = Counter(map(_canonical, got))
    lacking = []
    for value in wanted:  # most are the same to the letter, which takes no comparing of each with each
        if times[name := _canonical(value)]:
            times[name] -= 1
        else:
            lacking.append(value)
    beyond = []
    for value in got:
        if times[name := _canonical(value)]:
            times[name] -= 1
            beyond.append(value)
    if max(len(lacking), len(beyond)) > _COMPARED:
        return lacking, beyond
    missing = []
    for value in lacking:
        same = next((n for n, each in enumerate(beyond) if _is_same(each, value)), None)
        if same is None:
            missing.append(value)
        else:
            del beyond[same]
    return missing, beyond


def _is_same(got: Any, wanted: Any) -> bool:
    return all(difference is None for _, difference in _compared(got, wanted, any_order=True))


def _canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=written)


def _at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else _NOTHING


def _written_path(path: Sequence[Any]) -> str:
    """How a path is written; "" for the whole.

    Example:
        >>> _written_path((0, "arguments", "to")), _written_path(("tags", ...))
        ('[0].arguments.to', 'tags[any]')
    """
    places = {...: "any"}
    steps = [f".{key}" if isinstance(key, str) else f"[{places.get(key, key)}]" for key in path]
    return "".join(steps).removeprefix(".")


def _told(value: Any) -> str:
    if value is _NOTHING:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=written)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"
