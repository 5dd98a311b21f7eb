"""What `nn.JSONMatch` compares: an answer that is JSON with the value that is expected."""

from __future__ import annotations

import json
from typing import Any

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine import nn
from textgrad_engine.llm import ResponseFormat
from textgrad_engine.ops.json_match import MOST_TOLD, json_match
from textgrad_engine.testing import ScriptedModel

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.booleans())
@settings(max_examples=50, deadline=None)
def test_a_value_is_itself_however_it_is_written(value: Any, any_order: bool) -> None:
    """As JSON with or without spaces, with its keys in another order, as a text or as a value."""
    texts = [json.dumps(value), json.dumps(value, indent=2, sort_keys=True), json.dumps(value, ensure_ascii=False)]
    for text in texts:
        assert json_match(text, value, any_order=any_order) == (1.0, "")
        assert json_match(text, texts[0], any_order=any_order) == (1.0, "")


@pytest.mark.parametrize(
    ("answer", "expected", "says"),
    [
        ("I do not know.", {"a": 1}, ["It is no JSON: "]),
        ("Sure.", [{"name": "pay", "arguments": {}}], ['- expected [{"name": "pay", "arguments": {}}], got "Sure."']),
        ("I do not know.", [{"name": "Ann"}], ["It is no JSON: "]),
        ("None.", [], ["It is no JSON: "]),
        ('{"a": 1', {"a": 1}, ["It is no JSON: "]),
        ("[" * 100_000, [1], ["It is no JSON: "]),
        ('{"a": 1, "b": 2}', {"a": 1}, ["- at b: expected nothing, got 2"]),
        ('{"a": 1}', {"a": 1, "b": [2]}, ["- at b: expected [2], got nothing"]),
        ('{"a": {"b": [1, {"c": "x"}]}}', {"a": {"b": [1, {"c": "y"}]}}, ['- at a.b[1].c: expected "y", got "x"']),
        ("[1, 2, 3]", [1, 2], ["- at [2]: expected nothing, got 3"]),
        ("[]", {}, ["- expected {}, got []"]),
        ("[]", "", ['- expected "", got []']),
        ("{}", None, ["- expected null, got {}"]),
        ('"a"', ["a"], ['- expected ["a"], got "a"']),
        ("true", 1, ["- expected 1, got true"]),
        ("[2, 1]", [1, 2], ["- at [0]: expected 1, got 2", "- at [1]: expected 2, got 1"]),
        (json.dumps({"long": "x" * 900}), {"long": ""}, [f'- at long: expected "", got "{"x" * 199}…']),
    ],
)
def test_where_it_differs_is_told(answer: str, expected: Any, says: list[str]) -> None:
    """Each place with what was expected and what is there; what is long is cut."""
    score, remark = json_match(answer, expected)
    assert score == 0.0
    assert len(remark.splitlines()) == len(says)
    for said, wanted in zip(remark.splitlines(), says):
        assert said.startswith(wanted)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('Here it is:\n```json\n{"a": 1}\n```', {"a": 1}),
        ('{"a": 1.0, "b": "x "}', {"b": "x", "a": 1}),
        ('{"n": "12"}', {"n": 12}),
        ('{"name": "caf\\u0065\\u0301"}', {"name": "caf\u00e9"}),
        ("Rome", "Rome"),
        ('"Rome"', "Rome"),
        ("12", "12.0"),
        ('{"3": [1, 2]}', {3: (1, 2)}),
    ],
)
def test_what_is_the_same(answer: str, expected: Any) -> None:
    """Texts and numbers as exact match has them."""
    assert json_match(answer, expected) == (1.0, "")


@pytest.mark.parametrize("any_order", [False, True])
def test_names_of_fields_are_one_however_they_are_encoded(any_order: bool) -> None:
    """As names of columns are: tables from some systems spell a letter with two characters, and models with one."""
    one, other = ({name: 1, "rows": [{name: 2}]} for name in ("t\u00ean", "te\u0302n"))
    assert json_match(json.dumps(one), other, any_order=any_order)[0] == 1
    two = {**one, **other}
    assert json_match(json.dumps(two), one, any_order=any_order)[0] == 0


def test_what_cannot_be_seen_is_told_by_its_number() -> None:
    """Feedback that shows the same value twice can be acted on by nobody."""
    said = json_match('{"a": "x\u00a0\u00e9"}', {"a": "x \u00e9"})[1]
    assert said == '- at a: expected "x \u00e9", got "x\\u00a0\u00e9"'


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ('b: expected "yes", got "no"\n- at c', '["b: expected \\"yes\\", got \\"no\\"\\n- at c"]'),
        ("b: expected 1, got 2; c", '["b: expected 1, got 2; c"]'),
        ("", '[""]'),
        ("k" * 10_000, f'["{"k" * 200}…"]'),
        ("first name", "first name"),
        ("größe.max", "größe.max"),
    ],
)
def test_a_key_of_an_answer_is_told_as_one_key_whatever_it_says(key: str, where: str) -> None:
    """A critic trusts what the check says was expected, so no answer may say that in its place."""
    said = json_match(json.dumps({"a": {key: 1}}), {"a": {}})[1]
    path = f"a{where}" if where.startswith("[") else f"a.{where}"
    assert said == f"- at {path}: expected nothing, got 1"


def test_many_differences_are_counted() -> None:
    """The whole stands below them anyway."""
    remark = json_match(json.dumps(list(range(50))), [0] * 50)[1].splitlines()
    assert len(remark) == MOST_TOLD + 1
    assert remark[-1] == f"- and {49 - MOST_TOLD} more"


@pytest.mark.parametrize(
    ("answer", "expected", "says"),
    [
        ('["b", "a"]', ["a", "b"], []),
        ('[{"t": [2, 1.0]}, 3]', [3.0, {"t": [1, 2]}], []),
        ('["a", "a"]', ["a", "b"], ['- at [any]: expected "b", got nothing', '- at [any]: expected nothing, got "a"']),
        ('{"tags": ["a"]}', {"tags": ["a", "a"]}, ['- at tags[any]: expected "a", got nothing']),
        (
            json.dumps([str(n) for n in range(5000)]),
            list(range(5000, 0, -1)),
            ["- at [any]: expected 5000, got nothing", '- at [any]: expected nothing, got "0"'],
        ),
        (json.dumps(["1"] * 5000), ["1.0"] * 5000, ["- at [any]: "] * MOST_TOLD + ["- and"]),
    ],
)
def test_lists_in_any_order(answer: str, expected: Any, says: list[str]) -> None:
    """As often as each is expected; very many are not compared each with each."""
    score, remark = json_match(answer, expected, any_order=True)
    assert (score, len(remark.splitlines())) == (float(not says), len(says))
    for said, wanted in zip(remark.splitlines(), says):
        assert said.startswith(wanted)


@pytest.mark.parametrize(
    ("answer", "expected", "score"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 2}, 1),
        ({"a": 1, "b": 3}, {"a": 1, "b": 2}, 1 / 2),
        ({"a": 1}, {"a": 1, "b": [2, 3]}, 1 / 3),
        ({"a": 1, "b": [2, 3]}, {"a": 1}, 1 / 3),
        (
            [{"name": "pay", "arguments": {"to": "A", "sum": 3}}],
            [{"name": "pay", "arguments": {"to": "A", "sum": 4}}],
            2 / 3,
        ),
        ({"a": [], "b": {}}, {"a": [], "b": {"c": 1}}, 1 / 2),
        ("none", {"a": 1}, 0),
        ([], [], 1),
    ],
)
def test_graded_it_is_the_part_that_is_right(answer: Any, expected: Any, score: float) -> None:
    """Of all values that are expected or there; what is empty counts as one."""
    assert json_match(json.dumps(answer), expected, graded=True)[0] == pytest.approx(score)


@given(VALUES, VALUES, st.booleans())
@settings(max_examples=50, deadline=None)
def test_grades_are_between_nothing_and_all(one: Any, other: Any, any_order: bool) -> None:
    """Full marks are for the same value alone, and whoever wants all or nothing is told the same differences."""
    score, remark = json_match(json.dumps(one), other, any_order=any_order, graded=True)
    whole = json_match(json.dumps(one), other, any_order=any_order)
    assert 0 <= score <= 1
    assert whole == (float(score == 1), remark)


def test_the_critic_is_told_where_an_answer_differs() -> None:
    """Of a field, too, whose target may be that of the whole or its own."""
    model = ScriptedModel(['{"tags": ["late"], "n": 1}'] * 2)
    critic = ScriptedModel([{"case_1": {"system": "Look for damage."}}] * 2)
    program = nn.ChatCompletion("{mail}", system=nn.Parameter("Tag it.", role="system prompt"), model=model)
    loss = nn.OnField(nn.JSONMatch(any_order=True), "tags")
    for target in ({"tags": ["late", "broken"], "n": 2}, ["late", "broken"]):
        with tg.use_models(backward=critic):
            score = loss(program(mail="Late, and broken."), target)
            score.backward()
        assert score.data == 0.0
        assert '- at [any]: expected "broken", got nothing' in critic.requests[-1].messages[-1].text
        assert "On the field tags of this answer" in critic.requests[-1].messages[-1].text


def test_targets_of_a_batch_are_those_of_its_entries() -> None:
    """A list of answers has a list of targets; of one answer a list is the target."""
    answers = [tg.Variable("[1]", role="answer"), tg.Variable("[2]", role="answer")]
    assert nn.JSONMatch()(answers, [[1], [3]]).data == 1.0
    assert nn.JSONMatch()(answers[0], [1]).data == 1.0


class Place(pydantic.BaseModel):
    city: str
    code: str | None = None


class Order(pydantic.BaseModel):
    name: str
    to: Place | None = None
    lines: list[Place] = []


def test_a_field_that_the_target_lacks_may_be_null() -> None:
    """A form has a model answer with every field; else no answer were right, whatever the prompt says."""
    right = Order(name="Ann", to=Place(city="Rome"), lines=[Place(city=f"c{n}") for n in range(150)])
    schema = ResponseFormat.of(Order).json_schema
    assert schema["required"] == ["name", "to", "lines"]
    assert schema["$defs"]["Place"]["required"] == ["city", "code"]
    target = right.model_dump(exclude_none=True)
    for any_order in (False, True):
        for graded in (False, True):
            assert json_match(right.model_dump_json(), target, any_order=any_order, graded=graded) == (1.0, "")
    turned = {**target, "lines": target["lines"][::-1]}
    assert json_match(right.model_dump_json(), turned, any_order=True) == (1.0, "")
    assert json_match('{"name": "Ann", "to": null}', {"name": "Bob"}, graded=True)[0] == 0.0


@pytest.mark.parametrize("any_order", [False, True])
def test_a_field_that_is_null_in_the_target_must_be_there(any_order: bool) -> None:
    """Who expects null says so; and a value in the place of nothing is wrong as before."""
    for answer, expected, said in [
        ('[{"a": 1}]', [{"a": 1, "b": None}], "expected null, got nothing"),
        ('[{"a": 1, "b": 0}]', [{"a": 1}], "expected nothing, got 0"),
        ('[{"a": 1, "b": []}]', [{"a": 1}], "expected nothing, got []"),
        ("[1, null]", [1], "expected nothing, got null"),
    ]:
        score, remark = json_match(answer, expected, any_order=any_order)
        assert (score, remark.endswith(said)) == (0.0, True)


@pytest.mark.parametrize(
    ("answer", "expected", "score"),
    [
        (["a", "b"], ["a"], 1 / 2),
        (["a"], ["b", "a"], 1 / 2),
        (["a", "b", "c", "d"], ["c", "b", "a"], 3 / 4),
        ({"tags": ["a"], "n": 2}, {"tags": ["a"], "n": 1}, 1 / 2),
        ([[], ["a"]], [["a"], ["b"]], 1 / 3),
        ([], ["a"], 0.0),
        ([{"n": 1, "m": 2}, {"n": 1, "m": 3}], [{"n": 1, "m": 3}, {"n": 1, "m": 4}], 3 / 4),
        ([{"sku": "B", "n": 1}, {"sku": "A", "n": 1}], [{"sku": "A", "n": 2}, {"sku": "B", "n": 3}], 2 / 4),
        ([{"n": 1, "m": [2, 3]}], [{"n": "1", "m": [3, 4]}, {"n": 5}], 2 / 5),
        ([{"n": 1}], [{"n": 2}], 0.0),
    ],
)
def test_the_part_of_a_list_in_any_order(answer: Any, expected: Any, score: float) -> None:
    """Each value that is right counts, the last one, too."""
    assert json_match(json.dumps(answer), expected, any_order=True, graded=True)[0] == pytest.approx(score)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([float(n) for n in range(150)], list(range(150))[::-1]),
        ([{"n": [f" {n} ", n]} for n in range(150)], [{"n": [n + 0.0, str(n)]} for n in range(150)]),
        ({"n": ["1.0", 2]}, {"n": [2.0, 1]}),
    ],
)
def test_long_lists_in_any_order_are_compared_by_their_values(answer: Any, expected: Any) -> None:
    """However many of them are written otherwise."""
    assert json_match(json.dumps(answer), expected, any_order=True) == (1.0, "")


def test_of_a_record_in_any_order_the_fields_that_differ_are_told() -> None:
    """Not two records, in each of which the critic has to look for what is wrong."""
    lines = [{"what": "lamp", "price": 10}, {"what": "bulb", "price": 3}]
    remark = json_match(json.dumps(lines[::-1]), [lines[1], {**lines[0], "price": 11}], any_order=True)[1]
    assert remark == "- at [any].price: expected 11, got 10"


def test_lists_in_any_order_are_not_compared_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred records with a hundred tags each, all a little wrong, took hours."""
    compared: list[Any] = []
    monkeypatch.setattr("textgrad_engine.ops.json_match.alike", lambda *both: compared.append(both))
    records = [{"tags": [f"{n}-{m}" for m in range(20)]} for n in range(20)]
    wrong = [{"tags": [*each["tags"][1:], "x"]} for each in records]
    score, remark = json_match(json.dumps(wrong), records, any_order=True)
    assert (score, len(compared)) == (0.0, 0)
    assert remark.endswith("- and 30 more")


@pytest.mark.parametrize("any_order", [False, True])
def test_what_is_equal_to_the_letter_is_not_looked_at_any_closer(
    monkeypatch: pytest.MonkeyPatch, any_order: bool
) -> None:
    """Of two megabytes each value was written and read as a number: 5 s of CPU, now 0.2 s, and 2.6 s of others."""
    looked: list[Any] = []
    monkeypatch.setattr("textgrad_engine.ops.json_match.alike", lambda *pair: looked.append(pair))
    monkeypatch.setattr("textgrad_engine.ops.json_match.number_of", looked.append)
    rows = [{"id": n, "name": f"item {n}", "tags": ["a", "b"], "in stock": True} for n in range(500)]
    assert json_match(json.dumps(rows), rows, any_order=any_order) == (1.0, "")
    assert looked == []
    other = [*rows[:-1], {**rows[-1], "tags": ["a", "c"]}]
    assert json_match(json.dumps(other), rows, any_order=any_order, graded=True)[0] > 0.99
    assert len(looked) <= (505 if any_order else 1)  # each name once, whichever side it is on


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(1, True, False), (0.0, -0.0, True), (1, 1.0, True), (2**60, 2.0**60, True), (0, False, False), ("", None, False)],
)
@pytest.mark.parametrize("any_order", [False, True])
def test_what_is_equal_to_python_is_the_same_only_where_it_is_to_json(
    one: Any, other: Any, same: bool, any_order: bool
) -> None:
    """True is no 1, as a target is written."""
    assert json_match([[one, "x"]], [[other, "x"]], any_order=any_order)[0] == same


def test_what_is_nested_deeply_is_compared_in_any_order() -> None:
    """As deeply as JSON can be read."""
    deep = "[" * 400 + "{}" + "]" * 400
    assert json_match(deep.format(1), deep.format("1.0"), any_order=True) == (1.0, "")
    assert json_match(deep.format(1), deep.format(2), any_order=True)[0] == 0.0


def test_what_is_nested_as_deeply_as_can_be_read_has_a_score() -> None:
    """It may be read and yet be too deep to be written again; an error would end the run, also when it is resumed."""
    for depth in range(900, 1010):
        deep = '{"a":' * depth + "1" + "}" * depth
        score, remark = json_match(deep, '{"a": [1]}')
        assert score == 0.0
        assert remark


def test_a_target_that_python_alone_would_read_as_a_number_is_a_text() -> None:
    """NaN is not even itself."""
    assert json_match("NaN", "NaN") == json_match("Infinity", "Infinity") == (1.0, "")


def test_without_a_target_it_says_so() -> None:
    """And not which argument of a function inside was missing; null may be expected all the same."""
    answer = tg.Variable("null", role="answer")
    with pytest.raises(TypeError, match="JSONMatch needs a target, got None: does the example have a field for it"):
        nn.JSONMatch()(answer)
    assert nn.JSONMatch()(answer, "null").data == 1.0
    assert nn.OnField(nn.JSONMatch(), "n")(tg.Variable('{"n": null}', role="answer"), {"n": None}).data == 1.0
