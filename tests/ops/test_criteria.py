"""The criteria of a rubric, as users and tables write them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.ops.criteria import Criterion, criteria_of, full_marks, numbered, score_of, written

REFUSED: dict[str, tuple[Any, str]] = {
    "nothing": (None, "they are a list of texts, or a text with one in each line; got None"),
    "a number": (3, "got an int"),
    "a dict": ({"criterion": "a"}, "got a dict"),
    "bytes": (b"a", "got a bytes"),
    "none in a list": ([], "there are none; give one at least"),
    "none in a text": (" \n- \n", "there are none"),
    "none in JSON": ("[]", "there are none"),
    "an empty one": (["a", " "], "criterion 2 has no text; write a dict, such as"),
    "a number among them": (["a", 2], "criterion 2 is an int 2, and should be a text, or a dict"),
    "a slip in a key": ([{"criterion": "a", "point": 2}], "criterion 1 has the key 'point'; did you mean 'points'?"),
    "another key": ([{"text": "a"}], "criterion 1 has the key 'text'; write a dict"),
    "no text": ([{"points": 2}], "criterion 1 has no text"),
    "points of 0": ([{"criterion": "a", "points": 0}], "criterion 1 has the points 0, and should have a number"),
    "points that are none": ([{"criterion": "a", "points": "2"}], "criterion 1 has the points '2'"),
    "endless points": ([{"criterion": "a", "points": float("inf")}], "criterion 1 has the points inf"),
    "points that are too many": (
        [{"criterion": "a", "points": 1e308}, {"criterion": "b", "points": 1e308}],
        "too large to be added up",
    ),
    "only bad ones": ([{"criterion": "a", "points": -1}], "an answer gets points for none of them"),
    "what Python wrote": (
        str([{"criterion": "a", "points": 2}]),
        "Expecting property name enclosed in double quotes at character 3; .* str\\(criteria\\) is not",
    ),
    "a list of texts by Python": ("['a', 'b']", "no list in JSON: Expecting value at character 2; write one"),
    "JSON that was cut off": ('["a", {"crit', "no list in JSON: Unterminated string"),
    "one as JSON": (' {"criterion": "a"}', "no list in JSON: an object; write one"),
    "one as JSON in each line": ('{"criterion": "a"}\n{"criterion": "b"}', "no list in JSON: Extra data"),
    "one twice": (["a", "b", " a"], "criterion 3 is criterion 1 again; take one out"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_are_no_criteria_is_refused(case: str) -> None:
    """Which entry it is, and what to write."""
    value, why = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=why):
        criteria_of(value)


def test_a_text_has_one_in_each_line() -> None:
    """As a cell of a table has them, with the marks of a list or without; a hyphen or a year is no mark."""
    text = "- It greets.\n* It ends.\n\n  3) It has a date.\n1999 is named.\n-5 is named."
    found = [each.text for each in criteria_of(text)]
    assert found == ["It greets.", "It ends.", "It has a date.", "1999 is named.", "-5 is named."]


def test_a_text_may_be_such_a_list_as_json() -> None:
    """A CSV holds nothing else; one that only begins like JSON is a text."""
    rows = [{"criterion": "It greets.", "points": 5, "tags": ["a"]}, "It ends."]
    assert criteria_of(json.dumps(rows)) == (Criterion("It greets.", 5), Criterion("It ends."))
    assert criteria_of("[sic] stays in.")[0].text == "[sic] stays in."


def test_what_is_bad_and_what_is_good_may_have_one_text() -> None:
    """They are two: one that must be met and one that must not would contradict each other, which is the user's."""
    assert [each.name for each in criteria_of(["a", {"criterion": "a", "points": -1}])] == ["a", "not: a"]


CRITERIA = st.lists(
    st.builds(Criterion, st.text("ab \n1.", min_size=1).filter(str.strip), st.sampled_from([-2, -1, 1, 2.5])),
    min_size=1,
    max_size=5,
    unique_by=lambda each: (each.text.strip(), each.points > 0),
).filter(lambda each: any(one.points > 0 for one in each))


@given(CRITERIA)
def test_written_down_they_read_the_same(criteria: list[Criterion]) -> None:
    """As a value of a call and as a list."""
    found = criteria_of(criteria)
    assert criteria_of(written(found)) == tuple(Criterion(each.text.strip(), each.points) for each in found)


@given(CRITERIA, st.data())
def test_a_score_is_a_part_of_full_marks(criteria: list[Criterion], data: st.DataObject) -> None:
    """Never below 0 nor above 1; to meet one more that is good never costs anything, nor one less that is bad."""
    met = data.draw(st.lists(st.booleans(), min_size=len(criteria), max_size=len(criteria)))
    score = score_of(criteria, met)
    assert 0 <= score <= 1
    for number, each in enumerate(criteria):
        better = [*met[:number], each.points > 0, *met[number + 1 :]]
        assert score_of(criteria, better) >= score
    assert score_of(criteria, [each.points > 0 for each in criteria]) == 1
    assert full_marks(criteria) > 0


@given(CRITERIA)
def test_a_judge_can_tell_them_apart(criteria: list[Criterion]) -> None:
    """A line that begins with a number is the first of a criterion, whatever its text says."""
    lines = numbered(criteria_of(criteria)).split("\n")
    assert [line.partition(".")[0] for line in lines if line[0] != " "] == [str(n + 1) for n in range(len(criteria))]
