from typing import Generic, TypeVar

import pytest
from pydantic import BaseModel, Field, ValidationError

from textgrad_engine.llm import GenerateConfig, OpenAIModel, ResponseFormat, resolve
from textgrad_engine.llm.request import INSTEAD

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


@pytest.mark.parametrize("name", INSTEAD)
def test_what_is_no_setting_is_named_with_what_is_used_instead(name):
    """Who knows the SDK writes n=4 or stream=True, and `extra` would not take it either."""
    for make in (
        GenerateConfig,
        lambda **given: OpenAIModel("m", **given),
        lambda **given: resolve("openai/m", **given),
    ):
        if name == "model" and make is not GenerateConfig:
            continue  # the parameter of that name
        with pytest.raises((ValidationError, TypeError)) as caught:
            make(**{name: 4})
        assert INSTEAD[name] in str(caught.value)


def test_the_ways_to_several_answers_and_to_pieces_are_named():
    """The two that people look for."""
    assert "llm.samples" in INSTEAD["n"]
    assert "llm.on_token" in INSTEAD["stream"]
    assert "llm.samples" in GenerateConfig.__doc__
    assert "llm.on_token" in GenerateConfig.__doc__


@pytest.mark.parametrize(
    "wanted",
    [
        int,
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
    with pytest.raises(ValueError, match="pydantic model or the JSON schema of an object"):
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


def test_a_copy_of_a_format_with_another_schema_is_described_as_that():
    """What an endpoint is told is worked out once for a format, and never handed on to another one."""
    wanted = ResponseFormat(name="V", json_schema=SCHEMA)
    assert wanted.described["schema"] == SCHEMA
    other = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert wanted.model_copy(update={"json_schema": other}).described == {"name": "V", "schema": other, "strict": True}
    assert wanted.model_copy() == wanted
