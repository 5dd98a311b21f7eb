import asyncio
import json
from typing import Annotated, Literal

import httpx
import pytest
import respx
from pydantic import BaseModel, Field, RootModel

from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm import Completion, GenerateConfig, OpenAIModel, ResponseFormat, resolve
from textgrad_engine.llm.parsing import unwrapped
from textgrad_engine.llm.schema import check_schema, schema_problem
from textgrad_engine.llm.strict import is_strict, strictly, wrapped
from textgrad_engine.testing import FunctionModel


class Edit(BaseModel):
    op: str = Field(pattern="^(add|remove)$")
    line: int | None = None


class Patch(BaseModel):
    edits: list[Edit] = Field(max_length=2)
    weights: dict[str, float] = {}


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1)


class Dog(BaseModel):
    kind: Literal["dog"]
    puppies: list["Dog"]


class Pet(RootModel[Cat | Dog]):
    """Alternatives at the root."""


class Tagged(RootModel[Annotated[Cat | Dog, Field(discriminator="kind")]]):
    """The same, told apart by a field."""


CLOSED = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        CLOSED | {"properties": {"a": {"type": "string"}}},
        CLOSED | {"additionalProperties": {"type": "number"}},
        CLOSED | {"properties": {"a": {"type": "object"}}, "required": ["a"]},
        CLOSED | {"properties": {"a": {"type": "array", "items": {"type": "object"}}}, "required": ["a"]},
        CLOSED | {"properties": {"a": {"anyOf": [{"type": "object"}, {"type": "null"}]}}, "required": ["a"]},
        CLOSED | {"properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"]},
        CLOSED | {"$defs": {"A": {"type": "object"}}},
        CLOSED | {"oneOf": [CLOSED]},
    ],
)
def test_a_schema_that_endpoints_refuse_as_a_strict_one_is_known(schema):
    """It is sent as a loose one instead: the answer is checked here either way."""
    assert not is_strict(schema)


@pytest.mark.parametrize(
    "schema",
    [
        CLOSED,
        CLOSED
        | {
            "properties": {"properties": {"type": "string"}, "not": {"type": "null"}},
            "required": ["not", "properties"],
        },
        CLOSED | {"properties": {"a": {"enum": ["oneOf", {"type": "object"}]}}, "required": ["a"]},
    ],
)
def test_a_closed_schema_is_strict(schema):
    """Names and values of the user's are no keywords."""
    assert is_strict(schema)


def test_limits_of_numbers_become_descriptions_wherever_they_stand():
    """Names and values of the user's that read like them stay, and so do all other keywords."""
    limited = {"type": "integer", "description": "marks", "minimum": 1, "exclusiveMaximum": 6}
    schema = CLOSED | {
        "properties": {
            "minimum": {"type": "array", "items": limited, "maxItems": 3},
            "either": {"anyOf": [{"type": "number", "maximum": 0.5}, {"const": "minimum"}]},
        },
        "$defs": {"maximum": {"type": "string"}},
        "definitions": {"minimum": {"type": "string"}},
        "required": ["minimum", "either"],
    }
    eased = strictly(schema)
    told = {"type": "integer", "description": "marks; minimum: 1, exclusiveMaximum: 6"}
    assert eased["properties"]["minimum"] == {"type": "array", "items": told, "maxItems": 3}
    either = [{"type": "number", "description": "maximum: 0.5"}, {"const": "minimum", "type": "string"}]
    assert eased["properties"]["either"] == {"anyOf": either}
    assert {key: eased[key] for key in eased if key != "properties"} == {
        key: schema[key] for key in schema if key != "properties"
    }


TEXT, REF = {"type": "string"}, {"$ref": "#/$defs/A"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (REF | {"description": "d", "default": None}, {"anyOf": [REF], "description": "d"}),
        ({"oneOf": [REF, TEXT], "discriminator": {"propertyName": "k"}}, {"anyOf": [REF, TEXT]}),
        ({"allOf": [REF], "title": "T"}, {"anyOf": [REF], "title": "T"}),
        (TEXT | {"format": "date"}, TEXT | {"format": "date"}),
        (TEXT | {"format": "uri"}, TEXT | {"description": 'format: "uri"'}),
        (TEXT | {"minLength": 2}, TEXT | {"description": "minLength: 2"}),
        (TEXT | {"pattern": "^a$"}, TEXT | {"pattern": "^a$"}),
        (TEXT | {"pattern": "^(?!a)"}, TEXT | {"description": 'pattern: "^(?!a)"'}),
        (TEXT | {"pattern": r"\(?=a"}, TEXT | {"pattern": r"\(?=a"}),
        ({"type": "array", "items": TEXT, "uniqueItems": True},
         {"type": "array", "items": TEXT, "description": "uniqueItems: true"}),
        ({"type": "array", "prefixItems": [TEXT, REF, TEXT], "minItems": 3, "maxItems": 3},
         {"type": "array", "items": {"anyOf": [TEXT, REF]}, "minItems": 3, "maxItems": 3,
          "description": f"prefixItems: {json.dumps([TEXT, REF, TEXT])}"}),
        ({"enum": ["a", 1, None]}, {"enum": ["a", 1, None], "type": ["string", "integer", "null"]}),
    ],
)  # fmt: skip
def test_what_strict_output_does_not_know_is_told_in_words_and_still_checked(given, told):
    """OpenAI answers such a schema with 400, which ends a run; pydantic makes all of these of plain annotations."""
    schema = CLOSED | {"properties": {"a": given}, "required": ["a"], "$defs": {"A": {"type": "integer"}}}
    assert strictly(schema)["properties"]["a"] == told
    assert is_strict(strictly(schema))
    assert schema["properties"]["a"] is given


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"description": "anything"},
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": "array", "prefixItems": [TEXT]},
        {"type": ["object", "null"]},
        {"not": TEXT},
        {"allOf": [REF, TEXT]},
        TEXT | {"if": TEXT},
    ],
)
def test_what_no_words_could_stand_for_makes_a_schema_a_loose_one(given):
    """A value without a type, an open object, a combination."""
    assert strictly(CLOSED | {"properties": {"a": given}, "required": ["a"]}) is None


def test_strict_output_has_an_object_at_its_root():
    """OpenAI refuses alternatives there."""
    assert strictly({"anyOf": [CLOSED]}) is None


def test_a_plain_pydantic_model_is_strict_and_one_with_free_keys_is_not():
    """The usual case is held to its schema by the endpoint; `dict[str, float]` cannot be."""
    assert is_strict(ResponseFormat.of(Edit).json_schema)
    assert not is_strict(ResponseFormat.of(Patch).json_schema)


@pytest.mark.parametrize(
    "odd",
    [
        {"$defs": {"unused": {"pattern": 5}}},
        {"$defs": {"unused": {"anyOf": 5}}},
        {"$defs": []},
        {"format": ["odd"]},
        {"properties": {"pair": {"type": "array", "prefixItems": [], "items": False}}, "required": ["pair"]},
    ],
)
def test_what_no_strict_schema_can_say_is_sent_as_it_is(odd):
    """Nothing of it is ever checked against an answer, so `check_schema` has nothing against it."""
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False, **odd}
    made = ResponseFormat.of(schema)
    assert made.described == {"name": "answer", "schema": schema, "strict": False}


@pytest.mark.parametrize("wanted", [Pet, Tagged])
def test_alternatives_at_the_root_are_told_as_the_one_property_of_an_object(wanted):
    """OpenAI refused them at the first call; so it can hold a model to them while it writes."""
    made = ResponseFormat.of(wanted)
    told = made.described
    assert told["strict"]
    assert is_strict(told["schema"])
    check_schema(told["schema"])
    assert (told["schema"]["type"], list(told["schema"]["properties"])) == ("object", ["alternative"])
    assert len(told["schema"]["properties"]["alternative"]["anyOf"]) == 2
    cat, dog = {"kind": "cat", "lives": 9}, {"kind": "dog", "puppies": []}
    for pet, good in ((cat, True), (dog, True), ({"kind": "x"}, False)):
        assert (schema_problem({"alternative": pet}, told["schema"]) is None) is good
        assert (made.problem(pet, json.dumps(pet)) is None) is good


@pytest.mark.parametrize(
    ("root", "fits"),
    [
        ({"$ref": "#/$defs/A", "$defs": {"A": CLOSED}}, {}),
        ({"$ref": "#/definitions/A", "definitions": {"A": CLOSED}}, {}),
        ({"allOf": [CLOSED]}, {}),
        ({"type": "object", "oneOf": [CLOSED]}, {}),
        # references to the root lead to it where it has gone, names of the user's are none, and values stay
        (
            {"anyOf": [CLOSED | {"properties": {"$ref": {"$ref": "#"}}, "required": ["$ref"]}, CLOSED]},
            {"$ref": {"$ref": {}}},
        ),
        (
            {"anyOf": [CLOSED | {"properties": {"enum": {"$ref": "#"}}, "required": ["enum"]}, CLOSED]},
            {"enum": {}},
        ),
        (
            {"anyOf": [CLOSED | {"properties": {"a": {"enum": [{"$ref": "#"}]}}, "required": ["a"]}]},
            {"a": {"$ref": "#"}},
        ),
    ],
)
def test_a_root_that_is_put_into_an_object_means_what_it_meant(root, fits):
    """Wherever it refers to."""
    around = wrapped(root)
    check_schema(around)
    assert schema_problem(fits, root) is None
    assert schema_problem({"alternative": fits}, around) is None
    wrong = {"alternative": {**fits, "else": 1}}
    assert (schema_problem(wrong, around) is None) == (schema_problem(wrong["alternative"], root) is None)


def test_what_is_an_object_at_its_root_stays_as_it_is():
    """Nearly all formats are."""
    assert wrapped(CLOSED) is None
    assert not ResponseFormat.of(Edit).is_wrapped


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"alternative": {"kind": "cat", "lives": 9}}', '{"kind": "cat", "lives": 9}'),
        ('```json\n{"alternative": {"kind": "cät"}}\n```', '{"kind": "cät"}'),
        ('<think>Hm.</think>{"alternative": {}}', "{}"),
        ('{"kind": "cat"}', '{"kind": "cat"}'),
        ('{"alternative": {}, "kind": "cat"}', '{"alternative": {}, "kind": "cat"}'),
        ('{"alternative": [1]}', "[1]"),
        ('[{"alternative": {}}]', '[{"alternative": {}}]'),
        ("cat", "cat"),
        ("", ""),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_the_one_property_is_taken_off_and_nothing_else_is(text, answer):
    """A server that takes no notice of the form may answer without it; what is no such answer is told as it is."""
    assert unwrapped(text) == answer


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_an_endpoint_is_asked_for_the_wrapped_form_and_the_answer_is_without_it(ask, api):
    """In both of OpenAI's APIs; whoever asks sees nothing of it."""
    said = '{"alternative": {"kind": "cat", "lives": 9}}'
    usage = {"prompt_tokens": 11, "completion_tokens": 7}
    chat = {"choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}], "usage": usage}
    item = {"type": "message", "content": [{"type": "output_text", "text": said}]}
    body = chat if api == "chat" else {"object": "response", "status": "completed", "output": [item]}
    model = OpenAIModel("m", api_key="k-0123456789", api=api)

    async def main(request):
        try:
            return await resolve(model).complete(request)
        finally:
            await model.aclose()

    with respx.mock(using="httpcore2") as router:
        route = router.post(url__startswith="https://api.openai.com/v1")
        route.mock(return_value=httpx.Response(200, json=body))
        completion = asyncio.run(main(ask(config=GenerateConfig(response_format=Pet))))
    assert json.loads(completion.text) == {"kind": "cat", "lives": 9}
    sent = json.loads(route.calls[0].request.content)
    told = sent["response_format"]["json_schema"] if api == "chat" else sent["text"]["format"]
    assert told["schema"] == ResponseFormat.of(Pet).described["schema"]


def test_an_answer_that_fits_no_alternative_is_malformed(ask, run):
    """Also one from a model in this process, which is asked for the form itself."""
    good, bad = '{"kind": "dog", "puppies": []}', Completion(text='{"kind": "dog"}')
    request = ask(config=GenerateConfig(response_format=Pet))
    model = resolve(FunctionModel(lambda request: good))
    assert run(model.complete(request)).text == good
    with pytest.raises(MalformedResponse, match="none of the 2 alternatives"):
        run(resolve(FunctionModel(lambda request: bad)).complete(request))


def test_a_copy_with_another_schema_is_told_as_that():
    """What is kept of the first one is not that of the second."""
    made = ResponseFormat.of(Pet)
    assert made.is_wrapped
    copied = made.model_copy(update={"json_schema": CLOSED})
    assert not copied.is_wrapped
    assert copied.described["schema"] == CLOSED
