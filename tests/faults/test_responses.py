"""The same weather by the Responses API: failures inside a body, streams that break off, answers cut short."""

import json

import pytest

from textgrad_engine import errors
from textgrad_engine.llm import GenerateConfig, ResponseFormat, budget, meter, on_token
from textgrad_engine.testing import Fault

SSE = {"content-type": "text/event-stream"}
HALF = 'event: x\ndata: {"type": "response.output_text.delta", "delta": "half an"}\n\n'
USAGE = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
WANTED = GenerateConfig(
    response_format=ResponseFormat(
        name="Verdict",
        json_schema={"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]},
    )
)


def answered(text, status="completed", **fields):
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return Fault(200, body={"status": status, "output": [item], "usage": USAGE} | fields)


def failed(code, **fields):
    return Fault(200, body={"status": "failed", "output": [], "error": {"code": code, "message": "no"}} | fields)


def event(**fields):
    return f"data: {json.dumps(fields)}\n\n"


@pytest.mark.parametrize(
    "fault",
    [
        failed("server_error"),
        failed("rate_limit_exceeded"),
        failed(502),
        Fault(200, body={"error": {"code": 429, "message": "of the model behind"}}),
        answered("x", "in_progress"),
        Fault(200, body={"choices": []}),
        Fault(200, {"content-type": "text/html"}, "<html>"),
        Fault(503),
        Fault(0),
    ],
)
def test_what_may_pass_is_asked_again_once(bench, fault):
    """Two requests, one backoff; the first may have been charged, and was where its body says what it used."""
    here = bench(fault, api="responses")
    with budget(calls=3) as b:
        (completion,) = here.ask()
    assert (completion.text, completion.attempts) == ("echo of hello", 2)
    assert (here.server.requests, here.sleeps) == (2, here.backoff(1))
    stated = isinstance(fault.body, dict) and "usage" in fault.body
    assert (b.spent.calls, b.unknown.calls) == ((2, 0) if stated else (1, 1))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (failed("invalid_prompt"), errors.BadRequest),
        (failed("insufficient_quota"), errors.QuotaExhausted),
        (failed("context_length_exceeded"), errors.ContextOverflow),
        (failed("image_content_policy_violation"), errors.ContentFiltered),
        (Fault(401), errors.AuthenticationFailed),
        (Fault(404), errors.BadRequest),
    ],
)
def test_what_waiting_cannot_mend_fails_at_once(bench, fault, kind):
    """One request, no sleep."""
    here = bench(fault, api="responses")
    (error,) = here.ask()
    assert type(error) is kind
    assert (here.server.requests, here.sleeps) == (1, [])


@pytest.mark.parametrize(
    ("reason", "kind"), [("max_output_tokens", errors.TruncatedResponse), ("content_filter", errors.ContentFiltered)]
)
def test_an_unfinished_answer_is_not_asked_for_again_and_counts(bench, reason, kind):
    """One request; what it used is in the sums and in the budget."""
    here = bench(answered("half an ans", "incomplete", incomplete_details={"reason": reason}), api="responses")
    with meter() as m, budget(calls=3) as b:
        (error,) = here.ask()
    assert type(error) is kind
    assert (here.server.requests, here.sleeps) == (1, [])
    assert (m.total.output_tokens, b.spent.total_tokens) == (3, 8)


def test_json_that_does_not_fit_is_sent_back_once_with_what_is_wrong(bench):
    """The model sees its own answer, as an item of its own."""
    here = bench(answered('{"score": "high"}'), answer=lambda request: {"score": 3}, api="responses")
    (completion,) = here.ask(config=WANTED)
    assert json.loads(completion.text) == {"score": 3}
    assert (completion.attempts, here.server.requests, here.sleeps) == (2, 2, [])
    (repair,) = here.heard
    assert [message.role for message in repair.messages] == ["user", "assistant", "user"]
    assert repair.messages[1].text == '{"score": "high"}'
    assert repair.config.response_format == WANTED.response_format


STREAMS = {
    "ends early": Fault(200, SSE, HALF),
    "breaks": Fault(200, SSE, HALF + "x" * len(HALF), drop=True),
    "fails": Fault(200, SSE, HALF + event(type="response.failed", response={"status": "failed", "error": None})),
    "reports an error": Fault(200, SSE, HALF + event(type="error", code="server_error", message="overloaded")),
    "is not JSON": Fault(200, SSE, HALF + "data: {oops\n\n"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_breaks_off_is_void_and_asked_for_again(bench, name):
    """Half an answer never becomes one; who listens hears that it begins anew."""
    here = bench(STREAMS[name], api="responses")
    pieces = []
    with on_token(lambda request, piece: pieces.append(piece)):
        (completion,) = here.ask()
    assert (completion.text, here.server.requests, here.sleeps) == ("echo of hello", 2, here.backoff(1))
    assert pieces[0] == "half an"
    assert "".join(pieces[pieces.index(None) + 1 :]) == "echo of hello"


def test_a_stream_that_failed_in_its_last_event_takes_back_what_was_told(bench):
    """The body of the event is read after the stream; the listener must hear of it all the same."""
    here = bench(STREAMS["fails"], api="responses")
    pieces = []
    with on_token(lambda request, piece: pieces.append(piece)):
        here.ask()
    assert pieces == ["half an", None, "echo", " of", " hello"]


def test_a_stream_is_counted_like_any_answer(bench):
    """The same completion, usage included, as without streaming."""
    here = bench(answer=lambda request: "one two\u2028three\n", api="responses")
    pieces = []
    with on_token(lambda request, piece: pieces.append(piece)):
        (streamed,) = here.ask()
    (whole,) = here.ask()
    assert "".join(pieces) == streamed.text == whole.text == "one two\u2028three\n"
    assert streamed.usage == whole.usage
