import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgrad_engine import errors
from textgrad_engine.llm import Message, Request, wire
from textgrad_engine.llm.outputs import body_of, completion_of

REQUEST = Request(messages=(Message(role="user", content="a" * 40),))
USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 18,
}


def said(*parts, **fields):
    content = [{"type": "output_text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"type": "message", "role": "assistant", "content": content, **fields}


def body(*output, status="completed", **fields):
    return {"id": "r1", "status": status, "model": "m-1", "output": list(output), "usage": USAGE} | fields


def read(found):
    return completion_of(json.dumps(found).encode(), REQUEST, "m", 0.5)


def stream(*events, ends=True):
    """What a stream of these events is read to, and the pieces that were told."""
    pieces = []
    lines = b"".join(b"event: x\ndata: " + json.dumps(event).encode() + b"\n\n" for event in events)

    async def parts():
        for start in range(0, len(lines), 7):  # no division of the bytes means anything
            yield lines[start : start + 7]

    return json.loads(asyncio.run(body_of(parts(), pieces.append, "m"))), pieces


def delta(text):
    return {"type": "response.output_text.delta", "delta": text}


@pytest.mark.parametrize(
    "found",
    [
        [],
        "text",
        {"error": {"message": "upstream failed"}},
        body(status="completed", error={"code": "x"}),
        body(said("x"), status="in_progress"),
        body(said("x"), status="queued"),
        body(said("x"), status="cancelled"),
        body(said("x"), status=None),
        body(said("x"), status="incomplete", incomplete_details={"reason": "steered"}),
        body(said("x"), status="incomplete", incomplete_details=None),
        body() | {"output": None},
        body("text"),
        body({"type": {}, "content": []}),
        body({"type": "message", "content": "text"}),
        body({"type": "message", "content": None}),
        body(said({"type": "output_text", "text": None})),
        body({"type": "function_call", "name": "f", "arguments": "{}"}),
        body({"type": "function_call", "name": "f", "arguments": {}, "call_id": "1"}),
        {"choices": [{"message": {"content": "a chat completion"}, "finish_reason": "stop"}]},
    ],
)
def test_a_body_that_is_no_finished_response_is_malformed(found):
    """Under way, taken back, or of another kind: typed, so that it is asked for again."""
    with pytest.raises(errors.MalformedResponse, match="'m'"):
        read(found)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", errors.ServerFailed),
        ("vector_store_timeout", errors.ServerFailed),
        ("something_new", errors.ServerFailed),
        ("rate_limit_exceeded", errors.RateLimited),
        ("insufficient_quota", errors.QuotaExhausted),
        ("context_length_exceeded", errors.ContextOverflow),
        ("invalid_prompt", errors.BadRequest),
        ("invalid_image_url", errors.BadRequest),
        ("image_too_large", errors.BadRequest),
        ("failed_to_download_image", errors.BadRequest),
        ("image_content_policy_violation", errors.ContentFiltered),
        ("bio_policy", errors.ContentFiltered),
    ],
)
def test_a_failure_is_the_error_that_its_code_means(code, kind):
    """So that the retry loop, the limits and the user see what they would see of a status."""
    with pytest.raises(errors.ModelError, match=f"went wrong.*{code}") as caught:
        read(body(status="failed", error={"code": code, "message": "went wrong"}))
    assert type(caught.value) is kind
    assert caught.value.usage.output_tokens == 7


@pytest.mark.parametrize("error", [None, "text", {"code": None, "message": None}, {}])
def test_a_failure_that_says_nothing_may_pass(error):
    """It is tried again like any breakdown of a server."""
    with pytest.raises(errors.ServerFailed, match=r"no reason given|text"):
        read(body(status="failed", error=error, usage=None))


def test_usage_text_reasoning_and_calls_are_read():
    """Cached and reasoning tokens are billed apart; what has no place of its own is kept."""
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "thought"}], "content": None}
    called = {"type": "function_call", "id": "fc", "call_id": "1", "name": "f", "arguments": "{}"}
    own = {"type": "custom_tool_call", "call_id": "2", "name": "g", "input": "free"}
    searched = {"type": "web_search_call", "status": "completed"}
    cited = {"type": "output_text", "text": " b", "annotations": [{"type": "url_citation"}]}
    completion = read(body(reasoning, searched, said("a", cited), called, own))
    assert (completion.text, completion.finish_reason, completion.model) == ("a b", "tool_calls", "m-1")
    assert completion.tool_calls == (
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "2", "type": "custom", "custom": {"name": "g", "input": "free"}},
    )
    usage = completion.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens) == (11, 7, 4, 5)
    raw = {"id": "r1", "reasoning": "thought", "annotations": [{"type": "url_citation"}], "output": [searched]}
    assert completion.raw == raw


def test_comments_on_the_way_are_no_part_of_the_answer():
    """Some models say what they are doing first; JSON with a remark before it would be none."""
    items = said("I am looking.", phase="commentary"), said('{"a": 1}', phase="final_answer")
    assert read(body(*items)).text == '{"a": 1}'
    assert read(body(said("I am looking.", phase="commentary"))).text == "I am looking."


def test_missing_usage_is_estimated_and_says_so():
    """Zero would be wrong."""
    completion = read(body(said("fine"), usage=None))
    assert completion.usage.input_tokens >= 10
    assert completion.raw["usage_estimated"] is True


@pytest.mark.parametrize(
    "found", [body(said("x"), status="incomplete"), body(said("x"), status="queued"), body(error={"message": "broke"})]
)
def test_what_a_response_without_an_answer_says_it_used_is_known(found):
    """It is paid for like any other."""
    with pytest.raises(errors.ModelError) as caught:
        read(found)
    assert caught.value.usage.total_tokens == USAGE["input_tokens"] + USAGE["output_tokens"]
    assert not caught.value.usage_estimated


def test_thoughts_and_calls_count_where_nothing_is_said_of_tokens():
    """Most of what reasoning models are paid for stands beside the answer."""
    thoughts = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I wonder. " * 100}]}
    called = {"type": "function_call", "name": "f", "arguments": json.dumps({"at": "sky " * 100}), "call_id": "1"}
    for item in (thoughts, called):
        assert read(body(item, said("x"), usage=None)).usage.output_tokens > 100


@pytest.mark.parametrize("thoughts", ["", "I wonder."])
def test_what_nobody_counted_is_the_same_by_either_api(thoughts):
    """It is the same text; escaped, arguments in Chinese would be half as much again."""
    called = {"name": "f", "arguments": json.dumps({"q": "\u67e5\u8be2\u8ba2\u5355" * 50}, ensure_ascii=False)}
    reasoned = [{"type": "reasoning", "summary": [{"type": "summary_text", "text": thoughts}]}] if thoughts else []
    response = read(body(*reasoned, said("x"), {"type": "function_call", "call_id": "1", **called}, usage=None))
    message = {"content": "x", "reasoning": thoughts, "tool_calls": [{"id": "1", "function": called}]}
    choices = [{"message": message, "finish_reason": "tool_calls"}]
    chat = wire.completion_of(json.dumps({"choices": choices}).encode(), REQUEST, "m", 0.5)
    assert response.usage.output_tokens == chat.usage.output_tokens


def test_a_stream_ends_with_the_whole_response():
    """The pieces are told, and the last event says what an answer in one piece would."""
    whole = body(said("one two"))
    events = {"type": "response.created", "response": {}}, delta("one"), delta(""), delta(" two")
    assert stream(*events, {"type": "response.completed", "response": whole}) == (whole, ["one", " two"])


@pytest.mark.parametrize("with_items", [True, False])
def test_a_last_event_without_items_is_completed_from_those_before(with_items):
    """Some servers leave them out at the end; the answer must not turn out empty."""
    done = [{"type": "response.output_item.done", "item": said("one two")}] if with_items else []
    events = delta("one"), delta(" two"), *done
    whole, _ = stream(*events, {"type": "response.completed", "response": body()})
    assert read(whole).text == "one two"


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "code": "server_error", "message": "x", "param": None}, errors.ServerFailed),
        ({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "x"}}, errors.RateLimited),
        ({"type": "response.failed", "error": {"code": "invalid_prompt"}}, errors.BadRequest),
        ({"type": "response.completed", "response": None}, errors.MalformedResponse),
        ([], errors.MalformedResponse),
    ],
)
def test_a_stream_that_breaks_off_with_an_error_is_that_error(event, kind):
    """Half an answer never becomes one."""
    with pytest.raises(errors.ModelError) as caught:
        stream(delta("half"), event)
    assert type(caught.value) is kind


@pytest.mark.parametrize("events", [(), (delta("half"),), ({"type": "response.output_text.done", "text": "half"},)])
def test_a_stream_that_just_ends_is_a_broken_connection(events):
    """No event of the end: not finished, whatever was said."""
    with pytest.raises(errors.ConnectionFailed, match="ended after"):
        stream(*events)


# Few values and fields, so that their combinations are met: random JSON is refused at its first field.
values = st.sampled_from([None, 5, "a", [], {}, [None], [{}]])
FIELDS = ("call_id", "name", "arguments", "phase")
parts = st.fixed_dictionaries(
    {"type": st.sampled_from(["output_text", "refusal", "summary_text"]), "text": st.just("a") | values},
    optional={"annotations": values, "refusal": values},
)
items = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "reasoning", "function_call", "other"])},
    optional={"content": values | st.lists(parts, max_size=2), "summary": values | st.lists(parts, max_size=2)}
    | dict.fromkeys(FIELDS, st.just("a") | values),
)


@settings(max_examples=500)
@given(st.lists(items, max_size=2) | values, st.sampled_from(["completed"] * 5 + ["failed"]), values)
def test_any_body_is_a_completion_or_a_typed_error(output, status, other):
    """Whatever an endpoint makes of the format."""
    found = {"status": status, "output": output, "usage": other, "error": other if status == "failed" else None}
    try:
        completion = read(found)
    except errors.ModelError:
        return
    assert status == "completed"
    assert isinstance(completion.text, str)
