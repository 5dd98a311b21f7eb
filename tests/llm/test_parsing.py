"""What the text of an answer says: JSON or a typed error, whatever is around it."""

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm import ResponseFormat
from textgrad_engine.llm.check import MAX_TEXT
from textgrad_engine.llm.parsing import check_json, parsed

VERDICT = ResponseFormat(
    name="Verdict",
    json_schema={
        "type": "object",
        "properties": {"score": {"type": "integer"}, "why": {"type": "string"}},
        "required": ["score", "why"],
        "additionalProperties": False,
    },
)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.booleans(), st.integers(0, 2)), max_size=8))
def test_the_value_of_an_answer_is_its_own_whatever_was_checked_before(steps):
    """The value that was found when an answer was checked is handed out once, and for that answer only."""
    anything = ResponseFormat(name="any", json_schema={"type": "object"})
    for name, checks, reads in steps:
        text = json.dumps({"name": name, "list": []})
        if checks:
            check_json(text, anything)
        values = [parsed(text) for _ in range(reads)]
        for value in values:
            assert value == {"name": name, "list": []}
            value["list"].append("changed")
    with pytest.raises(ValueError, match="Expecting"):
        parsed("no JSON")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (r'{"score": 1, "why": "ok \ud800"}', r"\$.why, character 4"),
        (r'{"score": 1, "why": ["", {"a": "\uDFFF\ud83d"}]}', r"\$.why\[1\].a, character 1"),
        (r'{"score": 1, "wh\udfff": "x"}', r"a key of \$, character 3"),
    ],
)
def test_a_lone_surrogate_that_is_escaped_in_json_is_refused_with_its_place(text, place):
    """Its text would be a parameter that no request can be made with; a pair of them is an emoji."""
    with pytest.raises(MalformedResponse, match=f"lone surrogate, which is no text: {place}") as caught:
        check_json(text, VERDICT)
    str(caught.value).encode()
    assert check_json(r'{"score": 1, "why": "\ud83d\udeb2"}', VERDICT)


FITS = '{"score": 3, "why": "x"}'


@pytest.mark.parametrize(
    "text",
    [
        f"Here is the JSON:\n\n```json\n{FITS}\n```",
        f"Sure!\n```\n{FITS}\n```\nHope this helps {{you}}.",
        f"First I ran\n```python\nprint(1)\n```\nand so\n```json\n{FITS}\n```\n",
        f"Here is the JSON: {FITS}",
        f"{FITS}\n\nThe score is 3 as it is short.",
        f'<think>Or {{"score": 1, "why": "no"}}?</think>Here it is:\n{FITS}\nDone.',
        f"<thinking>Three.</thinking>\n```json\n{FITS}\n```",
    ],
)
def test_the_one_object_that_words_stand_around_is_the_answer(text):
    """It is paid for; to ask again would cost as much once more."""
    assert check_json(text, VERDICT) == FITS


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{FITS}\n```\nor\n```json\n{FITS}\n```",
        f"{FITS}\nor\n{FITS}",
        f"I would say {FITS} if I were asked.",
        f"<think>Is it\n{FITS}\nthen?</think>I cannot say.",
        f"<think>Is it\n```json\n{FITS}\n```\nthen?",
        f"```json\n{FITS[:-1]}\n```\nSorry.",
        f"Here it is:\n```python\nanswer = {FITS}\n```",
        "Here it is: [1]",
        "```json\n```\n```json",
    ],
)
def test_what_may_be_an_example_or_a_thought_is_no_answer(text):
    """Two objects, one within a sentence, or one that was only thought of."""
    with pytest.raises(MalformedResponse):
        check_json(text, VERDICT)


@pytest.mark.parametrize(
    "text",
    [
        "```json\n" + " " * MAX_TEXT,
        "```json\n{}\n```" + " " * MAX_TEXT + "x",
        "```" + "\t" * MAX_TEXT + "\n",
        "```json\n" + "\r\n" * 2_000_000 + "```",
        " " * MAX_TEXT + "```",
    ],
)
def test_an_answer_full_of_white_space_does_not_hold_up_the_loop(text):
    """Models that lose the thread in JSON mode do this; a pattern that backtracks would take days for it."""
    with pytest.raises(MalformedResponse):
        check_json(text, VERDICT)


@given(st.text())
def test_any_text_is_either_json_or_a_typed_error(text):
    """Hostile answers cannot raise anything but ours."""
    with contextlib.suppress(MalformedResponse):
        assert isinstance(json.loads(check_json(text, VERDICT)), dict)


@pytest.mark.parametrize(
    "piece",
    ["{", '{"a":', "```json\n", "```\n{}\n```\n", "{}\n", "\\", '"', "[", "\u202e", "\x00", "猫", "a" * 7 + "\n"],
)
def test_looking_at_ten_megabytes_takes_time_in_proportion(piece):
    """No hostile answer may hold up the event loop by backtracking."""
    quick = piece * (100_000 // len(piece))
    slow = piece * (1_000_000 // len(piece))

    def seconds(text):
        started = time.thread_time()
        with contextlib.suppress(MalformedResponse):
            check_json(text, VERDICT)
        return time.thread_time() - started

    base = max(min(seconds(quick) for _ in range(3)), 0.001)
    assert min(seconds(slow) for _ in range(2)) < 40 * base  # ten times the text; a square law would take a hundred
