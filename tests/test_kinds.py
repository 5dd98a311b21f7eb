"""What annotations take, and the words for what they do not."""

from __future__ import annotations

import functools
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any, Literal, Protocol
from unittest.mock import AsyncMock, Mock, create_autospec

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI

from textgrad_engine.kinds import Kind, is_coroutine_function, kind_of
from textgrad_engine.llm import Price, Wrapper, set_models


def test_a_name_of_a_model_in_the_place_of_one_leads_to_what_makes_one() -> None:
    """A wrapper takes a model alone, and most else takes its name as well."""
    with pytest.raises(TypeError, match=r"got 'openai/gpt-5'; llm\.resolve\('openai/gpt-5'\) makes one of a name"):
        Wrapper("openai/gpt-5")  # type: ignore[arg-type]


def test_a_client_in_the_place_of_a_model_leads_to_what_makes_one() -> None:
    """Other libraries take one; here address and key are given to `llm.resolve`."""
    with pytest.raises(TypeError, match=r"got a value of type AsyncOpenAI; llm\.resolve\('openai/NAME', base_url="):
        set_models(forward=AsyncOpenAI(api_key="k"))  # type: ignore[arg-type]


class Speaker:
    def speak(self) -> str:
        return "a"


class Indexed:
    """As an array without dimensions: a position, but no number to count with."""

    def __index__(self) -> int:
        return 3


class Speaks(Protocol):
    def speak(self) -> str: ...


class Loud:
    def speak(self) -> str:
        return "A"


async def awaited(text: str) -> str:
    return text


def plain(text: str) -> str:
    return text


def kind(annotation: Any) -> Kind:
    found = kind_of(annotation)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("annotation", "right", "wrong"),
    [
        (int, [3, -1], [True, 3.0, "3", None, [3], Indexed()]),
        (float, [3, 0.5, float("inf"), Fraction(1, 2)], [True, float("nan"), "0.5", None, Decimal("0.5")]),
        (float | Decimal, [0.5, Decimal("0.5")], [Decimal("nan"), Decimal("inf")]),
        (bool, [True], [1, "true", None]),
        (str | None, ["a", None], [b"a", ["a"], 3]),
        (Path | str, ["a", PurePath("a")], [b"a", 3]),
        (Literal["a", 1], ["a", 1], ["b", True, None]),
        (Sequence[str], [["a"], ("a",), {"a"}, {"a": 1}.keys(), (each for each in "a")], ["a", [1], {"a": 1}, 3]),
        (Sequence[Any], ["a", [1]], [3, None]),
        (tuple[float, float], [(0, 1), [0.5, 1]], [(0,), ("a", "b"), "ab"]),
        (Mapping[str, int], [{"a": 1}], [[("a", 1)], "a", None]),
        (Callable[[str], str], [plain, str.upper, functools.partial(plain), Mock()], [3, awaited, AsyncMock()]),
        (Callable[[str], str | Awaitable[str]], [plain, awaited], ["plain"]),
        (Callable[..., Speaker], [plain, Speaker], [Loud, Speaks]),
        (Speaker, [Speaker(), Loud(), Mock()], [Speaker, "a", 3, None]),
        (Speaks, [Speaker(), Mock()], [Speaker, plain]),
        (type[Speaker], [Speaker], [Speaker()]),
    ],
)
def test_a_kind_takes_what_could_be_right(annotation: Any, right: list[Any], wrong: list[Any]) -> None:
    """And nothing that cannot be meant."""
    found = kind(annotation)
    assert [each for each in right if not found.takes(each)] == []
    assert [each for each in wrong if found.takes(each)] == []


@pytest.mark.parametrize("annotation", [Any, object, int | Any])
def test_what_may_be_anything_has_no_kind(annotation: Any) -> None:
    """There is nothing to refuse."""
    assert kind_of(annotation) is None


@pytest.mark.parametrize(
    ("annotation", "wrong", "repair"),
    [
        (int, "3", "; write 3"),
        (int, 2.0, "; write 2"),
        (int, 2.5, ""),
        (int, "three", ""),
        (float | None, "0.5", "; write 0.5"),
        (float | None, "3", "; write 3"),
        (float | None, "1e6", "; write 1000000"),
        (float, "inf", "; write inf"),
        (float, Decimal("0.1"), "; write 0.1"),
        (int, Decimal("2.5"), ""),
        (int, Indexed(), "; write 3"),
        (float, timedelta(minutes=1), "; write 60"),
        (int | None, math.inf, "; write None"),
        (int, math.inf, ""),
        (bool, 1, "; write True"),
        (bool, "False", "; write False"),
        (Iterable[str], "a", "; write ['a']"),
        (Iterable[str], ["a", 3], "; [1] of it is 3"),
        (Literal["random", "given"] | None, "Random", "; did you mean 'random'?"),
        (Speaker, Speaker, "; give an instance of it: Speaker(...)"),
        (Callable[[str], str], awaited, "; nobody awaits it: write `def`"),
    ],
)
def test_a_repair_is_what_was_likely_meant(annotation: Any, wrong: Any, repair: str) -> None:
    """Nothing is said where nobody knows."""
    found = kind(annotation)
    assert not found.takes(wrong)
    assert found.repair(wrong) == repair


def test_words_say_all_that_is_taken() -> None:
    """As a person would list it."""
    assert kind(Literal["a", "b", "c"] | None).words[0] == "'a', 'b', 'c' or None"
    assert kind(Sequence[int | str] | None).words[0] == "a sequence of whole numbers or texts, or None"
    assert kind(Speaks).words[0] == "an object with speak() (a Speaks)"


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())))
def test_a_union_takes_what_one_of_its_parts_takes(value: Any) -> None:
    """And has no other say."""
    for parts in ((int, str), (float, None), (bool, Sequence[int])):
        union = kind(parts[0] | parts[1])  # type: ignore[operator]
        assert union.takes(value) == any(kind(part).takes(value) for part in parts)


def test_a_dict_in_the_place_of_a_record_is_told_to_be_made_one() -> None:
    """Of the record's own fields only, as any other dict is a slip of another kind."""
    kind = kind_of(Price | None)
    assert kind is not None
    assert kind.repair({"input": 1, "output": 2}) == "; write Price(input=…, output=…)"
    assert kind.repair({"in": 1}) == kind.repair({}) == ""


def test_a_mock_of_a_method_is_no_coroutine_function() -> None:
    """`inspect` takes every flag of its code for set, and a callback was refused as one that nobody awaits."""
    stand_in = create_autospec(Speaker, instance=True)
    assert not is_coroutine_function(stand_in.speak)
    assert is_coroutine_function(AsyncMock())
    assert is_coroutine_function(functools.partial(awaited, "a"))
