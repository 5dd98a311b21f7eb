"""Forms that a class describes: what an answer must have, and what is refused before anything is paid for."""

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, RootModel, create_model
from typing_extensions import TypedDict

from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm.parsing import check_json
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.llm.strict import is_strict


class Queue(Enum):
    billing = "billing"
    returns = "returns"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


@dataclass
class Point:
    x: int
    y: int = 0


class Entry(TypedDict):
    name: str
    size: int


@pytest.mark.parametrize(
    ("kind", "field", "good", "bad"),
    [
        (Queue, Field(description="where it goes"), "billing", "trash"),
        (Cat, Field(description="the animal"), {"kind": "cat", "lives": 9}, {"kind": "dog", "lives": 9}),
        (Cat | Dog, Field(discriminator="kind"), {"kind": "dog", "tricks": []}, {"kind": "cat", "tricks": []}),
        (list[Annotated[Cat | Dog, Field(discriminator="kind")]], ..., [{"kind": "dog", "tricks": []}], [{}]),
        (tuple[int, str], ..., [1, "a"], ["a", 1]),
        (set[int], ..., [1, 2], ["a"]),
        (Annotated[str, Field(min_length=2)], ..., "ab", "a"),
        (bytes, ..., "ab", 1),
        (Point, ..., {"x": 1, "y": 2}, {"x": "one", "y": 2}),
        (Entry, ..., {"name": "a", "size": 1}, {"name": "a", "size": "big"}),
        (str, Field(validation_alias=AliasChoices(AliasPath("deep", 0), "plain")), "by its plain alias", None),
        (Literal["a", 1] | None, ..., None, 2),
    ],
)  # fmt: skip
def test_what_strict_output_has_no_keyword_for_is_held_to_all_the_same(kind, field, good, bad):
    """The endpoint is told a schema that it knows, and the answer is checked by the whole one."""
    wanted = ResponseFormat.of(create_model("M", f=(kind, field)))
    assert wanted.described["strict"]
    assert is_strict(wanted.described["schema"])
    if good == "by its plain alias":
        assert check_json('{"plain": "a"}', wanted)
        return
    assert check_json(json.dumps({"f": good}), wanted)
    with pytest.raises(MalformedResponse):
        check_json(json.dumps({"f": bad}), wanted)


@pytest.mark.parametrize("kind", [Point, Entry])
def test_dataclasses_and_typed_dicts_are_forms(kind):
    """Whoever has one for the answer needs no second class for the form."""
    wanted = pickle.loads(pickle.dumps(ResponseFormat.of(kind)))
    assert (wanted.name, wanted.has_model, wanted.described["strict"]) == (kind.__name__, True, True)
    good = {"x": 1, "y": 2} if kind is Point else {"name": "a", "size": 1}
    assert check_json(json.dumps(good), wanted)
    with pytest.raises(MalformedResponse):
        check_json("{}", wanted)


@pytest.mark.parametrize(
    "path", [AliasPath("a", "b"), AliasPath("a", 0), AliasPath("a"), AliasChoices(AliasPath("a", 1))]
)
def test_a_field_that_only_a_path_leads_to_is_refused_where_the_form_is_made(path):
    """The schema would ask for a key that the class does not read, so every answer would be paid for and refused."""
    deep = create_model("Deep", f=(str, Field(validation_alias=path)))
    for model in (deep, create_model("Outer", rows=(list[deep | None], ...))):
        with pytest.raises(ValueError, match=r"field 'f' is read from the path a.*plain alias"):
            ResponseFormat.of(model)

    class ByName(BaseModel):
        model_config = ConfigDict(validate_by_name=True)
        f: str = Field(validation_alias=path)

    assert check_json('{"f": "x"}', ResponseFormat.of(ByName))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (create_model("M", f=(Callable, ...)), "M cannot be described to a model"),
        (create_model("M", f=("Nowhere", ...)), "you should define `Nowhere`"),
        (BaseModel, "cannot be described"),
        (RootModel[list[int]], "a list or a number goes into a property"),
        (Cat(kind="cat", lives=1), "got an instance of Cat, not the class"),
        (list[Cat], "got list"),
    ],
)
def test_what_describes_no_object_is_refused_with_what_would(wanted: Any, said):
    """As a ValueError, as everything that a setting can be is."""
    with pytest.raises(ValueError, match=said):
        ResponseFormat.of(wanted)
