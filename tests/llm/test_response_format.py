"""The form of answers: taken in every way that people have one, told to endpoints, and held to afterwards."""

import json
import pickle
import re
from datetime import date
from typing import Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, Field, RootModel, ValidationInfo, create_model, field_validator

from textgrad_engine.llm import GenerateConfig, OpenAIModel, ResponseFormat, resolve

SCHEMA = {
    "title": "My verdict!",
    "type": "object",
    "properties": {"score": {"type": "integer"}},
    "required": ["score"],
    "additionalProperties": False,
}
T = TypeVar("T")


class Verdict(BaseModel):
    score: int = 0


class Box(BaseModel, Generic[T]):
    inside: T


@pytest.mark.parametrize(
    "wanted",
    [
        int,
        RootModel[list[int]],
        "json",
        {"type": "json_object"},
        {"type": "text"},
        {"type": "array", "items": {"type": "string"}},
        {},
        {"nane": "x"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": "text"},
        {"type": "json_schema", "json_schema": {"name": "A", "schema": None}},
    ],
)
def test_what_describes_no_object_is_refused_where_it_is_written(wanted):
    """Not by the endpoint, an hour later; and the way round is named."""
    with pytest.raises(ValueError, match="TypedDict or the JSON schema of an object"):
        ResponseFormat.of(wanted)
    with pytest.raises(ValueError, match="response_format"):
        GenerateConfig(response_format=wanted)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (SCHEMA, "My_verdict"),
        ({key: value for key, value in SCHEMA.items() if key != "title"}, "answer"),
        ({"$ref": "#/$defs/A", "$defs": {"A": SCHEMA}}, "answer"),
        ({"type": "json_schema", "json_schema": {"name": "V", "schema": SCHEMA, "strict": True}}, "V"),
        ({"type": "json_schema", "name": "V", "schema": SCHEMA}, "V"),
        ({"name": "V", "json_schema": SCHEMA}, "V"),
        (ResponseFormat(name="V", json_schema=SCHEMA), "V"),
    ],
)
def test_a_json_schema_is_taken_as_it_is(wanted, name):
    """In each form in which people have one."""
    made = GenerateConfig(response_format=wanted).response_format
    assert made.name == name
    assert "V" not in made.json_schema
    if "$ref" not in made.json_schema:
        assert made.json_schema["properties"] == SCHEMA["properties"]


def test_a_pydantic_model_is_taken_by_every_way_in():
    """One rule, wherever a setting is written."""
    wanted = ResponseFormat.of(Verdict)
    assert GenerateConfig(response_format=Verdict).response_format == wanted
    assert OpenAIModel("m", response_format=Verdict).defaults.response_format == wanted
    assert "Verdict" in repr(resolve("openai/m", response_format=Verdict))
    assert ResponseFormat.of(Box[int]).name == "Box_int"


def test_a_format_survives_being_written_down():
    """Settings are kept as JSON in run folders and cassettes."""
    config = GenerateConfig(response_format=Verdict)
    assert GenerateConfig.model_validate_json(config.model_dump_json()) == config


def test_fields_with_a_default_are_required_in_the_schema():
    """Strict structured output knows no optional properties."""

    class Deep(BaseModel):
        first: Verdict = Verdict()
        rest: list[Verdict] = Field(default_factory=list)

    schema = ResponseFormat.of(Deep).json_schema
    assert schema["required"] == ["first", "rest"]
    assert schema["$defs"]["Verdict"]["required"] == ["score"]


class Even(BaseModel):
    number: int = Field(multiple_of=2)
    day: date
    sizes: dict[Literal["s", "m"], int]
    last: int

    @field_validator("last")
    @classmethod
    def _the_same(cls, given: int, info: ValidationInfo) -> int:
        if given != info.data.get("number"):
            raise ValueError("last must be the number again")
        return given


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, None),
        ({"number": 3, "last": 3}, "$.number: Input should be a multiple of 2"),
        ({"day": "soon"}, "$.day: Input should be a valid date"),
        ({"sizes": {"xl": 3}}, "$.sizes.xl"),
        ({"last": 4}, "$.last: Value error, last must be the number again"),
        ({"last": "4"}, "$.last: expected integer"),
    ],
)
def test_an_answer_must_be_one_that_the_pydantic_model_takes(changed, problem):
    """Validators, formats and keys are the model's own, and a program that reads the answer goes by them."""
    answer = {"number": 2, "day": "2024-02-29", "sizes": {"s": 1}, "last": 2} | changed
    for config in (GenerateConfig(response_format=Even), GenerateConfig().over(GenerateConfig(response_format=Even))):
        for wanted in (config.response_format, config.model_copy(deep=True).response_format.model_copy()):
            found = wanted.problem(answer, json.dumps(answer))
            assert found == problem if problem is None else problem in found


class Odd(BaseModel):
    queue: str

    @field_validator("queue")
    @classmethod
    def _known(cls, given: str) -> str:
        if given == "long":
            raise ValueError("x" * 9999)
        if given == "surrogate":
            raise ValueError("\ud800")
        return {"billing": "billing"}[given]


@pytest.mark.parametrize(
    ("queue", "problem"),
    [
        ("billing", None),
        ("trust", r"\$: its rules failed: KeyError: 'trust' \(test_response_format.py:\d+\)"),
        ("long", r"\$.queue: Value error, x{100,480}\.\.\."),
        ("surrogate", r"\$: its rules failed: Unicode.*"),
    ],
)
def test_a_validator_that_fails_in_its_own_way_costs_an_answer_and_not_the_run(queue, problem):
    """Pydantic passes on all but ValueError and AssertionError, and what it says goes to the model, too."""
    found = ResponseFormat.of(Odd).problem({"queue": queue}, json.dumps({"queue": queue}))
    assert found is None if problem is None else re.fullmatch(problem, found)
    (found or "").encode()


def test_a_format_with_another_schema_is_not_that_of_the_model():
    """Nor is one that was read from a file; they still hold answers against the schema."""
    wanted = ResponseFormat.of(Even)
    odd = {"number": 3, "day": "2024-02-29", "sizes": {}, "last": 3}
    for other in (
        wanted.model_copy(update={"json_schema": {**wanted.json_schema, "title": "Other"}}),
        wanted.without_model(),
        ResponseFormat.model_validate_json(wanted.model_dump_json()),
    ):
        assert other.problem(odd, json.dumps(odd)) is None
        assert "'number' is missing" in other.problem({}, "{}")


def test_a_format_is_pickled_with_its_model_where_that_can_be_found_again():
    """A module with one inside is handed to other processes, whatever the class it was made of."""

    class Local(Even):
        pass

    odd = {"number": 3, "day": "2024-02-29", "sizes": {}, "last": 3}
    made = create_model("Made", __base__=Even)
    filled = create_model("Filled[int]", __base__=Even)  # as a generic one that a function fills in
    for model, kept in ((Even, True), (Local, False), (made, False), (filled, False)):
        config = pickle.loads(pickle.dumps(GenerateConfig(response_format=model)))
        assert config == GenerateConfig(response_format=model)
        assert (config.response_format.problem(odd, json.dumps(odd)) is not None) is kept


class Tree(BaseModel):
    name: str
    parts: list["Tree"]


def test_a_model_that_holds_itself_is_an_object_at_the_root():
    """Endpoints refuse a schema whose root is a reference, and know the one that it leads to."""
    wanted = ResponseFormat.of(Tree)
    assert (wanted.json_schema["type"], wanted.described["strict"]) == ("object", True)
    assert "$ref" not in wanted.json_schema
    tree = {"name": "a", "parts": [{"name": "b", "parts": []}]}
    assert wanted.problem(tree, json.dumps(tree)) is None
    assert "$.parts[0].name" in wanted.problem({"name": "a", "parts": [{"name": 1, "parts": []}]}, "")


def test_a_copy_of_a_format_with_another_schema_is_described_as_that():
    """What an endpoint is told is worked out once for a format, and never handed on to another one."""
    wanted = ResponseFormat(name="V", json_schema=SCHEMA)
    assert wanted.described["schema"] == SCHEMA
    other = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert wanted.model_copy(update={"json_schema": other}).described == {"name": "V", "schema": other, "strict": True}
    assert wanted.model_copy() == wanted
