"""Connections that hang, drip and break, in one piece and streamed."""

import json
import math
import socket

import pytest

from textgrad_engine import errors
from textgrad_engine.llm import GenerateConfig, ResponseFormat, RetryPolicy, budget, on_token
from textgrad_engine.testing import Fault

TWICE = RetryPolicy(max_attempts=2)
SSE = {"content-type": "text/event-stream"}
HALF = 'data: {"choices": [{"index": 0, "delta": {"content": "half an"}}]}\n\n'
WHOLE = {"choices": [{"index": 0, "message": {"content": "late"}, "finish_reason": "stop"}]}


def test_an_endpoint_that_hangs_is_given_up_and_asked_again(bench):
    """The wall deadline ends it; it may have been charged, so the budget holds its worst case."""
    here = bench(Fault(delay=math.inf), deadline=20.0, late=21.0)
    with budget(calls=3) as b:
        (completion,) = here.ask()
    assert (completion.attempts, here.server.requests, here.sleeps) == (2, 2, here.backoff(1))
    assert (b.spent.calls, b.unknown.calls) == (1, 1)


def test_an_endpoint_that_hangs_for_ever_is_an_error(bench):
    """As many requests as the policy allows."""
    here = bench(*[Fault(delay=math.inf)] * 3, deadline=20.0, late=21.0, policy=TWICE)
    (error,) = here.ask()
    assert type(error) is errors.DeadlineExceeded
    assert here.server.requests == 2


def test_the_read_timeout_ends_a_silence(bench):
    """The adapter's own timeout, where no wall deadline is near."""
    here = bench(Fault(delay=math.inf), timeout=20.0, deadline=math.inf, late=21.0)
    (completion,) = here.ask()
    assert (completion.attempts, here.server.requests, here.sleeps) == (2, 2, here.backoff(1))


def test_a_slow_drip_does_not_pass_the_wall_deadline(bench):
    """Each piece comes within the read timeout, so that only the wall deadline can end it."""
    here = bench(Fault(200, body=WHOLE, drip=0.05), timeout=60.0, deadline=20.0, late=21.0)
    (completion,) = here.ask()
    assert (completion.text, here.server.requests, here.sleeps) == ("echo of hello", 2, here.backoff(1))


def test_a_slow_drip_that_ends_in_time_is_an_answer(bench):
    """Slow is not broken."""
    here = bench(Fault(200, body=WHOLE, drip=0.005))
    (completion,) = here.ask()
    assert (completion.text, here.server.requests) == ("late", 1)


@pytest.mark.parametrize("fault", [Fault(0), Fault(200, body=WHOLE, drop=True), Fault(500, body="x" * 5000, drop=True)])
def test_a_connection_that_breaks_is_made_again(bench, fault):
    """Before the headers, in the middle of a body, in the middle of an error; it may have been charged."""
    here = bench(fault)
    with budget(calls=3) as b:
        (completion,) = here.ask()
    assert (completion.text, here.server.requests, here.sleeps) == ("echo of hello", 2, here.backoff(1))
    assert (b.spent.calls, b.unknown.calls) == (1, 1)


def test_a_server_that_is_not_there_costs_nothing(bench):
    """Nothing was sent, so the budget has everything back."""
    here = bench()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]  # nobody listens there, and nobody else gets it meanwhile
        here.server = type("Absent", (), {"base_url": f"http://127.0.0.1:{port}/v1"})()
        with budget(calls=3) as b:
            (error,) = here.ask()
    assert type(error) is errors.ConnectionFailed
    assert here.sleeps == here.backoff(5)
    assert (error.sent, b.unknown.calls, b.remaining.calls) == (False, 0, 3)


STREAMS = {
    "ends early": Fault(200, SSE, HALF),
    "breaks": Fault(200, SSE, HALF + "x" * len(HALF), drop=True),
    "is empty": Fault(200, SSE, ""),
    "fails": Fault(200, SSE, HALF + 'data: {"error": {"message": "overloaded"}}\n\n'),
    "is not JSON": Fault(200, SSE, HALF + "data: {oops\n\n"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_breaks_off_is_void_and_asked_for_again(bench, name):
    """Half an answer never becomes one; who listens hears that it begins anew."""
    here = bench(STREAMS[name])
    pieces = []
    with on_token(lambda request, piece: pieces.append(piece)):
        (completion,) = here.ask()
    assert (completion.text, here.server.requests, here.sleeps) == ("echo of hello", 2, here.backoff(1))
    begun = [] if name == "is empty" else ["half an", None]
    assert pieces == [*begun, "echo", " of", " hello"]


def test_a_stream_is_told_piece_by_piece_and_counted_like_any_answer(bench):
    """The same completion, usage included, as without streaming."""
    here = bench(answer=lambda request: "one two  three\n")
    pieces = []
    with on_token(lambda request, piece: pieces.append(piece)):
        (streamed,) = here.ask()
    (whole,) = here.ask()
    assert "".join(pieces) == streamed.text == whole.text == "one two  three\n"
    assert len(pieces) == 4
    assert streamed.usage == whole.usage


def test_an_endpoint_that_does_not_stream_answers_all_the_same(bench):
    """A plain body to a request for a stream is an answer."""
    here = bench(Fault(200, body=WHOLE))
    with on_token(lambda request, piece: None):
        (completion,) = here.ask()
    assert (completion.text, here.server.requests) == ("late", 1)


@pytest.mark.parametrize(
    "last",
    [
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "unheard of"}]},
    ],
)
def test_an_answer_that_is_told_and_then_refused_is_taken_back(bench, last):
    """Cut off, or ended in no known way: who shows the pieces must not leave them standing."""
    here = bench(Fault(200, SSE, HALF + f"data: {json.dumps(last)}\n\ndata: [DONE]\n\n"))
    pieces = []
    with on_token(lambda request, piece: pieces.append(piece)):
        here.ask()
    assert pieces[:2] == ["half an", None]


def test_an_answer_that_is_told_and_then_sent_back_to_be_mended_is_taken_back(bench):
    """Bad JSON and the mended answer must not run into each other."""
    wanted = ResponseFormat(name="A", json_schema={"type": "object", "required": ["a"]})
    done = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    here = bench(Fault(200, SSE, HALF + f"data: {json.dumps(done)}\n\n"), answer=lambda request: {"a": 1})
    pieces = []
    with on_token(lambda request, piece: pieces.append(piece)):
        (completion,) = here.ask(config=GenerateConfig(response_format=wanted))
    assert pieces[:2] == ["half an", None]
    assert "".join(pieces[2:]) == completion.text == '{"a": 1}'


def test_an_answer_that_takes_too_long_to_tell_is_taken_back(bench):
    """The wall deadline ends a stream in the middle of a sentence."""
    whole = HALF * 40 + "data: [DONE]\n\n"
    here = bench(Fault(200, SSE, whole, drip=0.5), deadline=20.0)
    pieces = []

    def listen(request, piece):
        pieces.append(piece)
        if len(pieces) == 1:
            here.leap(21.0)

    with on_token(listen):
        (completion,) = here.ask()
    assert completion.text == "echo of hello"
    assert pieces[0] == "half an"
    assert "".join(pieces[pieces.index(None) + 1 :]) == "echo of hello"
