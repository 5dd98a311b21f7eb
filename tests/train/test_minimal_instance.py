from typing import Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from textgrad_engine.llm import ResponseFormat
from textgrad_engine.llm.schema import schema_problem
from textgrad_engine.train.minimal_instance import least


class Inner(BaseModel):
    kind: Literal["b"]
    names: list[str] = Field(min_length=2)


class Outer(BaseModel):
    inner: Inner
    either: Inner | str
    score: float = Field(gt=0, lt=1)
    level: int = Field(ge=2, le=4, multiple_of=2)
    color: Literal["red", "blue"]
    sure: bool
    pair: tuple[int, str]
    by_name: dict[str, int]
    text: str = Field(min_length=3)
    maybe: int | None
    again: Optional["Outer"] = None


@pytest.mark.parametrize("number", [0, 0.5, 7])
def test_the_least_answer_fits_the_schema_of_a_pydantic_model(number: float) -> None:
    """Nested, optional and recursive fields, alternatives, and limits."""
    schema = ResponseFormat.of(Outer).json_schema
    found = least(schema, "", number)
    assert schema_problem(found, schema) is None
    assert (found["again"], found["by_name"], found["text"]) == (None, {}, "???")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "as it is"),
        ({"type": ["null", "string"]}, None),
        ({"allOf": [{"type": "integer"}]}, 0),
        ({"properties": {"a": {}}}, {"a": "as it is"}),
        (True, "as it is"),
    ],
)
def test_what_stands_where_little_is_said(schema: Any, value: Any) -> None:
    """The text that was given, where one may stand."""
    assert least(schema, "as it is") == value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "items": {"type": "string"}}, ["?"]),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 0}, []),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2}, ["?", "?"]),
        ({"type": "array"}, []),
        ({"type": "array", "prefixItems": [{"type": "integer"}], "items": False}, [0]),
        ({"properties": {"of": {"type": "array", "items": {"$ref": "#"}}}}, {"of": [{"of": []}]}),
    ],
)
def test_a_list_has_so_many_entries_as_are_wished_for_where_it_may(schema: Any, value: Any) -> None:
    """One that holds others like itself ends with its first entry."""
    assert least(schema, "?", entries=1) == value


def test_a_schema_that_goes_on_for_ever_ends() -> None:
    """There is no such value, so whatever comes out; but something does."""
    schema = {"type": "object", "properties": {"more": {"$ref": "#"}}}
    assert least(schema)
