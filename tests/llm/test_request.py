import json
import pickle
import re
from datetime import date
from typing import Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, Field, RootModel, ValidationError, ValidationInfo, create_model, field_validator

from textgrad_engine import nn, ops
from textgrad_engine.llm import (
    Completion,
    GenerateConfig,
    Message,
    OpenAIModel,
    Request,
    ResponseFormat,
    Usage,
    resolve,
)
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


def test_a_single_stop_text_is_one():
    """As in the endpoints' APIs, where it may be a text or a list."""
    assert GenerateConfig(stop="END").stop == GenerateConfig(stop=["END"]).stop == ("END",)


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
        ("trust", r"\$: its rules failed: KeyError: 'trust' \(test_request.py:\d+\)"),
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


def test_messages_requests_and_completions_take_their_fields_in_order():
    """As their pages list them; what comes twice or too often is named."""
    asked = Request([Message("user", "May I?")], GenerateConfig(seed=1), "judge")
    assert asked == Request(
        messages=[{"role": "user", "content": "May I?"}], config=GenerateConfig(seed=1), purpose="judge"
    )
    used = Usage(output_tokens=2, calls=1)
    assert Completion("yes", "stop", used, attempts=2) == Completion(
        text="yes", finish_reason="stop", usage=used, attempts=2
    )
    with pytest.raises(TypeError, match="Request got 'purpose' twice"):
        Request([], GenerateConfig(), "judge", purpose="judge")
    with pytest.raises(TypeError, match=r"Request has 3 fields \(messages, config, purpose\), got 4 values"):
        Request([], GenerateConfig(), "judge", 1)


@pytest.mark.parametrize("make", [Completion, Usage, Request, Message])
def test_a_field_that_there_is_not_is_refused(make):
    """A misspelt one would be lost, and an answer that was cut would be taken for a whole one."""
    with pytest.raises(ValidationError, match=r"finsh_reason\n  Extra inputs are not permitted"):
        make(text="half an ans", finsh_reason="length")


def test_what_a_newer_version_has_recorded_is_read():
    """An answer that was paid for is not lost for a field that nobody here knows; who makes one hears of it."""
    entry = {"text": "yes", "usage": {"calls": 1, "audio_tokens": 7}, "logprobs": [1]}
    for read in (Completion.model_validate(entry), Completion.model_validate_json(json.dumps(entry))):
        assert read == Completion("yes")
    with pytest.raises(ValidationError, match=r"audio_tokens\n  Extra inputs are not permitted"):
        Usage(calls=1, audio_tokens=7)


def test_what_is_validated_is_held_to_how():
    """A record is not made by name behind it, where a text would do for a number."""
    with pytest.raises(ValidationError, match="attempts"):
        Completion.model_validate({"text": "yes", "attempts": "2"}, strict=True)
    with pytest.raises(ValidationError, match="self\n  Extra"):
        Message.model_validate({"role": "user", "content": "May I?", "self": 1})


def test_records_are_copied_pickled_and_validated_as_before():
    """The order of their fields is for who writes them by hand."""
    asked = Request([Message("user", "May I?")])
    for copied in (
        pickle.loads(pickle.dumps(asked)),
        asked.model_copy(),
        Request.model_validate(asked.model_dump()),
        Request.model_validate_json(asked.model_dump_json()),
    ):
        assert copied == asked


@pytest.mark.parametrize("place", ["OpenAIModel", "resolve", "ChatCompletion", "chat_completion"])
def test_wrong_sampling_settings_are_told_alike_wherever_they_are_given(place):
    """Which one, what is wrong about it, and what it was given to; and of a name that is none, what there is."""
    ways = {
        "OpenAIModel": lambda **config: OpenAIModel("m", base_url="http://localhost:1/v1", **config),
        "resolve": lambda **config: resolve("simulated/tickets", **config),
        "ChatCompletion": lambda **config: nn.ChatCompletion("{word}", **config),
        "chat_completion": lambda **config: ops.chat_completion(None, "Hello", **config),
    }
    with pytest.raises(ValueError, match=f"^{place}: temperature: Input should be a valid number") as caught:
        ways[place](temperature="hot")
    assert not isinstance(caught.value, ValidationError)
    with pytest.raises(TypeError, match=r"unknown sampling setting 'temperatur'.*temperature"):
        ways[place](temperatur=0.5)
