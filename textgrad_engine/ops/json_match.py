"""Whether an answer is the JSON that was expected, and where it is not: for `nn.JSONMatch`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from textgrad_engine import templates
from textgrad_engine.llm.parsing import json_in
from textgrad_engine.ops.alike import alike, number_of, plain
from textgrad_engine.ops.evaluators import written
from textgrad_engine.ops.graphemes import whole_to
from textgrad_engine.ops.unseen import seen, unseen
from textgrad_engine.plain_values import as_own
from textgrad_engine.slots import by_composed_name
from textgrad_engine.strict_json import DECODER

MOST_TOLD = 10
"""Differences that are told one by one; the whole of both values stands below them."""

_LONG = 200
"""Characters of a value that are told."""

_COMPARED = 100
"""So long a list in any order may be for each value to be compared with all that may be the same in another form."""

_FEW = 3
"""With how many of them each value of a longer list is."""

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
        if isinstance(wanted, dict | list) and not _are_calls(wanted):
            return 0.0, templates.load("json_match").render(problem=str(error), differences=[], more=0)
        got = answer
    if _are_equal(got, wanted):
        return 1.0, ""
    right = wrong = 0
    found = []
    for weight, difference in _compared(got, wanted, _names_in(got, wanted) if any_order else None):
        if difference is None:
            right += weight
        else:
            wrong += weight
            found.append(difference)
    if not found:
        return 1.0, ""
    shown = [
        {"where": _written_path(each.path), "expected": expected, "got": got}
        for each in found[:MOST_TOLD]
        for expected, got in [_told_apart(each)]
    ]
    remark = templates.load("json_match").render(problem="", differences=shown, more=len(found) - len(shown))
    return right / (right + wrong) if graded else 0.0, remark


def _are_equal(got: Any, wanted: Any) -> bool:
    """Whether two values are equal to the letter, as most right answers are; it takes no walk through them."""
    if not isinstance(got, dict | list) or type(got) is not type(wanted):
        return False
    try:
        return json.dumps(got, sort_keys=True) == json.dumps(wanted, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return False


def _are_calls(wanted: Any) -> bool:
    """Whether calls of tools are expected: who answers in words instead is to call them, and to write no JSON."""
    calls = wanted if isinstance(wanted, list) else []
    return bool(calls) and all(isinstance(each, dict) and each.keys() == _OF_A_CALL for each in calls)


_OF_A_CALL = {"name", "arguments"}


class _NoJSON(ValueError):
    """A text that holds no JSON."""


def _value_in(value: Any, *, leniently: bool = False) -> Any:
    """The value that a text holds as JSON; any other value as JSON would hold it, in which tuples are lists.

    Raises:
        _NoJSON: leniently looked for, and it holds none.
    """
    if not isinstance(value, str):
        try:
            value = as_own(value)
            return json.loads(json.dumps(value)) if isinstance(value, dict | list | tuple) else value
        except (TypeError, ValueError, RecursionError):  # it holds what JSON has no form for
            return value
    try:
        return json_in(value)[1] if leniently else DECODER.decode(value)
    except (ValueError, RecursionError) as error:
        if leniently:
            raise _NoJSON(str(error)) from None
        return value


class _Names(NamedTuple):
    """What tells values from others, in whatever order their lists are, by the `id` of each.

    Attributes:
        own: equal for values that are the same.
        loose: equal for those, too, that differ in whether they have numbers or texts that read as such, and in whether
            they have a field that is null.
    """

    own: dict[int, int]
    loose: dict[int, int]


def _names_in(*values: Any) -> _Names:
    """The names of some values and of all in them, made from the inside, as they may be nested deeply."""
    numbers: dict[Any, int] = {}
    own, loose = names = _Names({}, {})
    single: dict[tuple[type, Any], Any] = {}  # the first of those that are equal
    inner, waiting = [], list(values)
    while waiting:
        each = waiting.pop()
        inner.append(each)
        waiting += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
    forms: tuple[Any, Any]
    for each in reversed(inner):
        kind, place = type(each), id(each)
        if place in own:
            continue
        if kind in _SINGLE and (first := single.setdefault((kind, each), each)) is not each:
            own[place], loose[place] = own[id(first)], loose[id(first)]
            continue
        if isinstance(each, dict):
            fields = [(key, value, id(value)) for key, value in _by_name(each).items()]
            forms = (
                frozenset([(key, own[inside]) for key, _, inside in fields]),
                frozenset([(key, loose[inside]) for key, value, inside in fields if value is not None]),
            )
        elif isinstance(each, list):
            parts = list(map(id, each))
            forms = ("list", *sorted([own[part] for part in parts])), ("list", *sorted([loose[part] for part in parts]))
        elif kind is int and -(2**53) < each < 2**53:
            forms = each, float(each)
        else:
            text, number = plain(written(each)), number_of(each)
            forms = (text if isinstance(each, str) or number is None else each), (text if number is None else number)
        own[place], loose[place] = [numbers.setdefault(form, len(numbers)) for form in forms]
    return names


_SINGLE = (str, int, float, bool, type(None))
"""What is the same, and has one name, wherever values of one of these types are equal."""


def _compared(got: Any, wanted: Any, names: _Names | None) -> Iterator[tuple[int, _Difference | None]]:
    """What two values have in common, and where they differ, from the beginning; of each how many single values it is.

    Not by recursion, as both may be nested deeply. A field that is null and not wanted at all is no difference, as a
    form that requires all fields (`ResponseFormat.of`) leaves no other way to say that there is nothing.

    Args:
        got: the one.
        wanted: the other.
        names: those of all values in both, where the order of lists does not count; None where it does.
    """
    waiting: list[_Difference] = [_Difference((), wanted, got)]
    while waiting:
        path, wanted, got = each = waiting.pop()
        if isinstance(wanted, dict) and isinstance(got, dict) and (wanted or got):
            wanted, got = _by_name(wanted), _by_name(got)
            keys = [*wanted, *[key for key, value in got.items() if key not in wanted and value is not None]]
            inside = [_Difference((*path, key), wanted.get(key, _NOTHING), got.get(key, _NOTHING)) for key in keys]
            waiting += reversed(inside)
        elif isinstance(wanted, list) and isinstance(got, list) and names is not None and (wanted or got):
            lacking, beyond = _left_over(got, wanted, names)
            yield sum(map(_size, wanted)) - sum(map(_size, lacking)), None
            inside = [_Difference((*path, ...), *pair) for pair in _beside_each_other(lacking, beyond, names)]
            waiting += reversed(inside)
        elif isinstance(wanted, list) and isinstance(got, list) and (wanted or got):
            places = range(max(len(wanted), len(got)))
            waiting += reversed([_Difference((*path, n), _at(wanted, n), _at(got, n)) for n in places])
        elif _are_alike(got, wanted):
            yield 1, None
        else:
            yield max(_size(wanted), _size(got)), each


def _by_name(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of an object by their names, see NOTE [Names] in `slots`; as they are where two would be one."""
    try:
        return by_composed_name(fields)
    except ValueError:
        return fields


def _are_alike(got: Any, wanted: Any) -> bool:
    """Whether two values of which one has nothing in it are the same."""
    if (kind := type(got)) is type(wanted) and kind in _SINGLE and (got == wanted or kind is int):
        return bool(got == wanted)
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


def _left_over(got: list[Any], wanted: list[Any], names: _Names) -> tuple[list[Any], list[Any]]:
    """What is wanted and not there, and what is there and not wanted, in whatever order both are."""
    times = Counter([names.own[id(value)] for value in got])
    lacking = []
    for value in wanted:  # most have one name, which takes no comparing of each with each
        if times[name := names.own[id(value)]]:
            times[name] -= 1
        else:
            lacking.append(value)
    beyond = []
    for value in got:
        if times[name := names.own[id(value)]]:
            times[name] -= 1
            beyond.append(value)
    alike: dict[int, list[int]] = {}
    for place, value in enumerate(beyond):
        alike.setdefault(names.loose[id(value)], []).append(place)
    most = _COMPARED if max(len(lacking), len(beyond)) <= _COMPARED else _FEW
    missing, taken = [], set()
    for value in lacking:
        places = alike.get(names.loose[id(value)], [])
        same = next((place for place in places[:most] if _is_same(beyond[place], value, names)), None)
        if same is None:
            missing.append(value)
        else:
            places.remove(same)
            taken.add(same)
    return missing, [value for place, value in enumerate(beyond) if place not in taken]


def _is_same(got: Any, wanted: Any, names: _Names) -> bool:
    """Whether two values are the same; what is nested too deeply to be looked through is not."""
    try:
        return all(difference is None for _, difference in _compared(got, wanted, names))
    except RecursionError:
        return False


def _beside_each_other(lacking: list[Any], beyond: list[Any], names: _Names) -> list[tuple[Any, Any]]:
    """What is wanted beside what is there instead: of records those that have most fields in common; else nothing.

    Args:
        lacking: what is wanted and not there.
        beyond: what is there and not wanted.
        names: those of all values in both.
    """
    with_field: dict[tuple[str, int], list[int]] = {}
    for place, value in enumerate(beyond[:_COMPARED]):
        for key, inside in value.items() if isinstance(value, dict) else ():
            with_field.setdefault((key, names.loose[id(inside)]), []).append(place)
    common: Counter[tuple[int, int]] = Counter()
    for number, value in enumerate(lacking[:_COMPARED]):
        for key, inside in value.items() if isinstance(value, dict) else ():
            common.update([(number, place) for place in with_field.get((key, names.loose[id(inside)]), ())])
    of_lacking: dict[int, int] = {}
    taken: set[int] = set()
    for number, place in sorted(common, key=lambda pair: (-common[pair], pair)):
        if number not in of_lacking and place not in taken:
            of_lacking[number] = place
            taken.add(place)
    wanted = [(each, beyond[of_lacking[n]] if n in of_lacking else _NOTHING) for n, each in enumerate(lacking)]
    return [*wanted, *[(_NOTHING, each) for place, each in enumerate(beyond) if place not in taken]]


def _at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else _NOTHING


def _written_path(path: Sequence[Any]) -> str:
    """How a path is written; "" for the whole.

    A key that might be read as more than a key stands there as JSON has it: answers may be written to be misread.

    Example:
        >>> _written_path((0, "arguments", "to")), _written_path(("tags", ...)), _written_path(("a: 1, got", "b"))
        ('[0].arguments.to', 'tags[any]', '["a: 1, got"].b')
    """
    places = {...: "any"}
    steps = [_written_key(key) if isinstance(key, str) else f"[{places.get(key, key)}]" for key in path]
    return "".join(steps).removeprefix(".")


def _written_key(key: str) -> str:
    if key and key.isprintable() and len(key) <= _LONG and not _MORE_THAN_A_KEY.search(key):
        return f".{key}"
    shown = key if len(key) <= _LONG else f"{key[: whole_to(key, _LONG)]}…"
    return f"[{json.dumps(shown, ensure_ascii=False)}]"


_MORE_THAN_A_KEY = re.compile('["\u201c-\u201f]|: ')


def _told_apart(each: _Difference) -> tuple[str, str]:
    """What was expected, and what came; characters that cannot be seen by their numbers, where these alone differ."""
    expected, got = _told(each.expected), _told(each.got)
    return (seen(expected), seen(got)) if unseen(got, expected) else (expected, got)


def _told(value: Any) -> str:
    if value is _NOTHING:
        return "nothing"
    try:
        text = json.dumps(value, ensure_ascii=False, default=written)
    except RecursionError:  # it could be read, from fewer calls below
        return "what is nested too deeply to be told"
    return text if len(text) <= _LONG else f"{text[: whole_to(text, _LONG)]}…"
