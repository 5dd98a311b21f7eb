import pytest

from textgrad_engine.errors import AuthenticationFailed, BadRequest, ContextOverflow, ServerFailed
from textgrad_engine.llm import GenerateConfig, Message, Request
from textgrad_engine.llm.dialects import Dialect, after
from textgrad_engine.llm.statuses import error_of
from textgrad_engine.llm.wire import messages_of

CONFIG = GenerateConfig(response_format={"type": "object", "properties": {"a": {"type": "string"}}}, max_tokens=5)
SENT = {"max_tokens": 5, "stream_options": {}, "messages": [{"role": "system", "content": "s"}]}


@pytest.mark.parametrize(
    ("error", "other"),
    [
        (BadRequest("use 'max_completion_tokens' instead", status=400), {"most": "max_completion_tokens"}),
        (BadRequest("unknown field stream_options", status=422), {"usage": False}),
        (BadRequest("System role not supported", status=400), {"system": False}),
        (BadRequest("'system' role is not supported", status=400), {"system": False}),
        (BadRequest('"system" messages are not allowed', status=400), {"system": False}),
        (BadRequest("the role `system` is not supported", status=422), {"system": False}),
        (BadRequest("this model does not support the `system` role", status=400), {"system": False}),
        (BadRequest('"max_tokens" is not supported', status=400), {"most": "max_completion_tokens"}),
        (BadRequest("response_format is not supported", status=400), {"form": "in words"}),
        (BadRequest("no such model", status=404), {"name": "m"}),
        (BadRequest("openai/m is not a valid model ID", status=400), {"name": "m"}),
        (
            AuthenticationFailed("this key can only access models=['m']: not allowed to access model", status=403),
            {"name": "m"},
        ),
        (AuthenticationFailed("Incorrect API key", status=401), None),
        (AuthenticationFailed("no API key; it is not sent for json_schema"), None),
        (BadRequest("temperature is too hot", status=400), None),
        (BadRequest("Invalid schema for response_format", status=400), None),
        (ContextOverflow("too long for max_tokens; use max_completion_tokens instead", status=400), None),
        (ServerFailed("broke", status=500), None),
    ],
)
def test_a_refusal_leads_to_another_way_to_ask_or_to_none(error, other):
    """What was not refused for a reason that is known is not sent again."""
    asked = Dialect(name="openai/m")
    found = after(error, asked, CONFIG, SENT)
    assert (None if found is None else {k: v for k, v in vars(found).items() if v != getattr(asked, k)}) == other


def test_no_way_is_tried_twice():
    """An endpoint that refuses both would be asked for ever."""
    last = Dialect("in words", "max_completion_tokens", usage=False, system=False, name="m")
    sent = {"max_completion_tokens": 5, "messages": []}
    for said in ("use max_completion_tokens instead", "stream_options", "System role not supported", "json_schema"):
        assert after(BadRequest(said, status=400), last, CONFIG, sent) is None
    assert after(BadRequest("not found", status=404), last, CONFIG, sent) is None


PICTURE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


@pytest.mark.parametrize(
    ("messages", "sent"),
    [
        ([("system", "A"), ("developer", "B"), ("user", "C")], [("user", "A\n\nB\n\nC")]),
        ([("user", "C"), ("system", "A"), ("assistant", "D")], [("user", "A\n\nC"), ("assistant", "D")]),
        ([("system", "A")], [("user", "A")]),
        ([("system", "A"), ("user", [PICTURE])], [("user", [{"type": "text", "text": "A"}, PICTURE])]),
        ([("system", [PICTURE]), ("user", "C")], [("user", [PICTURE, {"type": "text", "text": "C"}])]),
        ([("user", "C")], [("user", "C")]),
    ],
)
def test_without_system_messages_their_text_comes_before_the_users(messages, sent):
    """In the order in which it was written, and nothing of it is lost."""
    request = Request(messages=tuple([Message(role=role, content=content) for role, content in messages]))
    assert messages_of(request, system=False) == [{"role": role, "content": content} for role, content in sent]


def test_the_name_of_a_model_is_no_sign():
    """Each refusal of one that is called after grammar was sent once more without `response_format`."""
    refusal = error_of(400, '{"error": "temperature is too hot"}', {}, "grammar-7b", "http://localhost/v1")
    assert after(refusal, Dialect(name="grammar-7b"), CONFIG, SENT) is None
