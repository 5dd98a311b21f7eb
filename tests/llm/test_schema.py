import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm import ResponseFormat
from textgrad_engine.llm import schema as schemas
from textgrad_engine.llm.parsing import check_json
from textgrad_engine.llm.schema import check_schema, schema_problem
from textgrad_engine.nn import ChatCompletion


class Edit(BaseModel):
    op: str = Field(pattern="^(add|remove)$")
    line: int | None = None


class Patch(BaseModel):
    edits: list[Edit] = Field(max_length=2)
    weights: dict[str, float] = {}


SCHEMA = Patch.model_json_schema()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], r"\$: expected object, got a list of 0"),
        ({}, "'edits' is missing; there are none"),
        ({"edits": [{"op": "add"}, {}]}, r"\$.edits\[1\]: the required key 'op'"),
        ({"edits": [{"op": "move"}]}, r"\$.edits\[0\].op: expected text matching"),
        ({"edits": [{"op": "add", "line": "3"}]}, r"\$.edits\[0\].line: fits none of the 2 alternatives"),
        ({"edits": [{"op": "add"}] * 3}, "a length of at most 2, got a list of 3"),
        ({"edits": [], "weights": {"a": None}}, r"\$.weights.a: expected number, got null"),
    ],
)
def test_a_problem_names_its_place(value, problem):
    """The message goes back to a model or a person; it must say where."""
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(schema_problem(value, SCHEMA))


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (1, {"type": "boolean"}),
        (True, {"type": "number"}),
        (True, {"enum": [1]}),
        (1.5, {"type": "integer"}),
        ("c", {"enum": ["a", "b"]}),
        (2, {"const": 3}),
        (5, {"maximum": 4}),
        (1, {"allOf": [{"type": "integer"}, {"minimum": 2}]}),
        ([1, "a"], {"prefixItems": [{"type": "integer"}], "items": {"type": "integer"}}),
        (1, False),
    ],
)
def test_what_does_not_fit_is_found(value, schema):
    """Each keyword that is understood is also enforced."""
    assert schema_problem({"x": value}, {"properties": {"x": schema}}) is not None


KEYS = st.sampled_from(["a", "b", "c"])
PLAIN = st.recursive(
    st.just({"type": "string"}) | st.just({"type": "integer"}) | st.just({"type": "string", "minLength": 1}),
    lambda below: st.builds(
        lambda properties, required, more: {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": more,
        },
        st.dictionaries(KEYS, below, max_size=3),
        st.lists(KEYS, max_size=3, unique=True),
        st.booleans(),
    ),
    max_leaves=4,
)
VALUES = st.recursive(st.text("xy", max_size=2) | st.integers(0, 1), lambda v: st.dictionaries(KEYS, v, max_size=3))


@given(VALUES, PLAIN)
def test_what_fits_at_first_sight_fits(value, schema):
    """Law: the short way through, which most answers take, finds nothing good that the long way does not."""
    if schemas.plainly_fits(value, schema):
        assert next(schemas._problems(value, schema, "$", schema), None) is None


def test_an_object_of_texts_fits_at_first_sight():
    """Else the short way is none."""
    text = {"type": "string"}
    inner = {"type": "object", "properties": {"system": text}, "required": ["system"], "additionalProperties": False}
    outer = {"type": "object", "properties": {"case_1": inner}, "required": ["case_1"], "additionalProperties": False}
    assert schemas.plainly_fits({"case_1": {"system": "shorter"}}, outer)
    assert not schemas.plainly_fits({"case_1": {"system": 1}}, outer)


LOOP = {"A": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/A"}]}}


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ({"type": "text"}, r"\$\.properties\.a: the schema names the type 'text', and JSON has"),
        ({"type": ["string", 5]}, "the type 5"),
        ({"$ref": "other.json"}, r"only references into itself \(#/...\)"),
        ({"$ref": "#name"}, "only references into itself"),
        ({"$ref": "#/$defs/Nothing"}, "does not hold"),
        ({"$ref": 5}, r"\$ref must be text"),
        ({"$ref": "#/$defs/A"}, r"\$\.properties\.a\.\$ref: the schema refers to itself"),
        ({"minimum": "3"}, "minimum must be a number, got '3'"),
        ({"exclusiveMinimum": True}, "exclusiveMinimum must be a number"),
        ({"pattern": None}, "pattern must be text"),
        ({"enum": 5}, "enum must be a list"),
        ({"required": "a"}, "required must be a list"),
        ({"properties": ["a"]}, "properties must be an object"),
        ({"items": [{"type": "string"}]}, r"\$\.properties\.a\.items: expected a schema"),
        ({"prefixItems": [5]}, r"prefixItems\[0\]: expected a schema"),
        ({"anyOf": ["null"]}, r"anyOf\[0\]: expected a schema"),
        ({"additionalProperties": "no"}, "additionalProperties: expected a schema"),
    ],
)
def test_a_schema_that_no_answer_can_be_checked_against_is_refused_where_it_is_given(inside, said):
    """An answer would be paid for first, and the error of the check would be nobody's fault but the schema's."""
    schema = {"type": "object", "$defs": LOOP, "properties": {"a": inside}}
    with pytest.raises(ValueError, match=said):
        check_schema(schema)
    with pytest.raises(ValueError, match=said):
        ResponseFormat(name="a", json_schema=schema)
    with pytest.raises(ValueError, match=said):
        ChatCompletion("{q}", response_format=schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"Node": {"properties": {"next": {"$ref": "#/$defs/Node"}}}}, "$ref": "#/$defs/Node"},
        {"properties": {"a": {"items": {"$ref": "#"}}}},
        {"properties": {"$ref": {"type": "string"}, "enum": True, "required": {"type": ["string", "null"]}}},
        {"type": "object", "$defs": {"Unused": {"$ref": "other.json"}}, "description": 5},
    ],
)
def test_a_schema_that_can_be_used_is_taken(schema):
    """Schemas of trees refer to themselves; names of properties are no keywords; what nothing uses does no harm."""
    check_schema(schema)


@pytest.mark.parametrize("pattern", [r"^\p{Lu}", "a{99999999999}"])
def test_a_pattern_of_another_dialect_is_left_to_the_endpoint(pattern):
    """Pydantic's patterns are Rust's, JSON Schema's are JavaScript's, and neither is wrong."""
    schema = {"type": "object", "properties": {"name": {"type": "string", "pattern": pattern}}}
    check_schema(schema)
    assert schema_problem({"name": "Ann"}, schema) is None


def test_an_answer_that_is_too_deep_to_be_checked_is_malformed():
    """It was paid for, so it must be an error that carries what it cost, and may be asked for again."""
    deep = {"properties": {"a": {"$ref": "#"}}}
    with pytest.raises(MalformedResponse, match="nested too deeply"):
        check_json('{"a":' * 900 + "{}" + "}" * 900, ResponseFormat(name="deep", json_schema=deep))


@given(st.builds(Patch, edits=st.lists(st.builds(Edit, op=st.sampled_from(["add", "remove"])), max_size=2)))
def test_what_pydantic_makes_fits_what_pydantic_describes(patch):
    """The schema of a pydantic model accepts its own values, in plain and in strict form."""
    assert schema_problem(patch.model_dump(), SCHEMA) is None
    assert schema_problem(patch.model_dump(), ResponseFormat.of(Patch).json_schema) is None


def test_strict_formats_close_every_object_and_keep_names_that_look_like_keywords():
    """OpenAI refuses open objects; a field that is called 'default' is still a field."""

    class Odd(BaseModel):
        default: int = 3
        inner: Edit

    schema = ResponseFormat.of(Odd).json_schema
    assert schema["required"] == ["default", "inner"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Edit"]["required"] == ["op", "line"]
