"""Records are given by name or in order, with no other fields than theirs, and are copied and pickled as ever."""

import json
import pickle

import pytest
from pydantic import ValidationError

from textgrad_engine.llm import Completion, GenerateConfig, Message, Request, Usage


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
