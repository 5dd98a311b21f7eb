import asyncio
import contextlib
import http.client
import json
import socket
import threading

import pytest

import textgrad_engine as tg
from textgrad_engine import errors, nn
from textgrad_engine.llm import Completion, Message, Request, ResponseFormat, budget, innermost, meter, resolve
from textgrad_engine.llm.cachekey import repeat, sample_number
from textgrad_engine.llm.retry import RetryPolicy
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer, ScriptedModel

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def post(server, body=HELLO, path="/v1/chat/completions", method="POST", headers=None, raw=None):
    host = server.base_url.removeprefix("http://").removesuffix("/v1")
    connection = http.client.HTTPConnection(host, timeout=60)
    try:
        connection.request(method, path, raw if raw is not None else json.dumps(body), headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null"), dict(response.getheaders())
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.AuthenticationFailed("x"), 401, "invalid_api_key"),
        (errors.QuotaExhausted("x"), 429, "insufficient_quota"),
        (errors.RateLimited("x", retry_after=2), 429, "rate_limit_exceeded"),
        (errors.ContextOverflow("x"), 400, "context_length_exceeded"),
        (errors.BadRequest("x", status=404), 404, "invalid_request_error"),
        (errors.ServerFailed("x", status=503), 503, "bad_gateway"),
        (errors.MalformedResponse("x"), 502, "bad_gateway"),
        (ZeroDivisionError("bug"), 500, "server_error"),
        (errors.ScriptError("x"), 400, "invalid_request_error"),
    ],
)
def test_errors_of_the_model_become_what_an_endpoint_would_say(error, status, code):
    """Clients are tested against the protocol, not against our exceptions."""
    with LoopbackServer(ScriptedModel([error])) as server:
        got, body, headers = post(server)
    assert (got, body["error"]["code"]) == (status, code)
    assert headers.get("retry-after") == ("2" if isinstance(error, errors.RateLimited) else None)


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"raw": b"{"}, 400),
        ({"body": {"model": "m"}}, 400),
        ({"body": {"model": "m", "messages": []}}, 400),
        ({"body": {"model": "m", "messages": [{"role": "nobody", "content": "x"}]}}, 400),
        ({"path": "/v2/chat"}, 404),
        ({"method": "PUT"}, 405),
        ({"method": "POST", "path": "/v1/models"}, 405),
    ],
)
def test_requests_that_are_wrong_are_refused(asked, status):
    """A server that accepts anything hides mistakes of the client."""
    with LoopbackServer(ScriptedModel([])) as server:
        got, body, _ = post(server, **asked)
    assert got == status
    assert body["error"]["message"]


def test_a_slip_in_a_script_is_told_at_once():
    """Taken for an outage, it would be waited for, and asked again and again."""
    with LoopbackServer(ScriptedModel(["Rome"])) as server:
        model = resolve("m", base_url=server.base_url, api_key="any")
        with tg.use_models(forward=model), pytest.raises(errors.BadRequest, match="1 answers and this is request 2"):
            [str(nn.ChatCompletion("{q}")(q=question)) for question in ("Italy?", "France?")]
    assert server.requests == 2


def test_a_slip_in_a_script_is_no_refusal_of_structured_output():
    """Taken for one, all later calls would be asked in words, and the test would fail somewhere else."""
    scripted = ScriptedModel(["Rome", {"city": "Paris"}])
    form = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    with LoopbackServer(scripted) as server:
        chat = nn.ChatCompletion(
            "{q}", model=resolve("m", base_url=server.base_url, api_key="any"), response_format=form
        )
        with pytest.raises(errors.BadRequest, match="answer 1 of ScriptedModel"):
            str(chat(q="Italy?"))
        assert chat(q="France?")["city"].data == "Paris"
    assert all(request.config.response_format is not None for request in scripted.requests)


def test_a_server_with_a_key_wants_it():
    """The way of a refused key can be tested end to end."""
    with LoopbackServer(ScriptedModel(["fine"]), api_key="right") as server:
        assert post(server, headers={"Authorization": "Bearer wrong"})[0] == 401
        assert post(server, headers={"Authorization": "Bearer right"})[0] == 200


def test_unfinished_answers_are_sent_as_such():
    """Length and filter are finish reasons on the wire, not errors."""
    cut = Completion(text="half", finish_reason="length")
    with LoopbackServer(ScriptedModel([errors.TruncatedResponse("x"), cut])) as server:
        reasons = [post(server)[1]["choices"][0]["finish_reason"] for _ in range(2)]
    assert reasons == ["length", "length"]


def test_settings_and_formats_reach_the_model():
    """What the client sends is what the model is asked."""
    seen = []
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "A", "schema": schema, "strict": True}}
    settings = {"temperature": 0, "max_completion_tokens": 7, "stop": "END", "top_k": 4, "response_format": wanted}
    with LoopbackServer(FunctionModel(lambda request: seen.append(request) or {"a": 1})) as server:
        status, body, _ = post(server, HELLO | settings)
    config = seen[0].config
    assert status == 200
    assert json.loads(body["choices"][0]["message"]["content"]) == {"a": 1}
    assert (config.temperature, config.max_tokens, config.stop, config.extra) == (0, 7, ("END",), {"top_k": 4})
    assert config.response_format == ResponseFormat(name="A", json_schema=schema)
    assert body["usage"]["prompt_tokens"] > 0


def test_who_asks_for_several_choices_gets_so_many():
    """As of OpenAI, the prompt counts once; each choice is another answer, and one that is cut off is one of them."""
    answers = ["a", errors.TruncatedResponse("x"), "b c"]
    with LoopbackServer(ScriptedModel(answers)) as server:
        status, body, _ = post(server, HELLO | {"n": 3})
        assert server.requests == 1
    said = [(each["index"], each["message"]["content"], each["finish_reason"]) for each in body["choices"]]
    assert (status, said) == (200, [(0, "a", "stop"), (1, "", "length"), (2, "b c", "stop")])
    with LoopbackServer(ScriptedModel(["a", "a", "b c"])) as server:
        one, two = (post(server, HELLO | {"n": n})[1]["usage"] for n in (1, 2))
    assert two["prompt_tokens"] == one["prompt_tokens"]
    assert two["completion_tokens"] > one["completion_tokens"]
    assert two["total_tokens"] == two["prompt_tokens"] + two["completion_tokens"]


def test_a_model_that_numbers_its_samples_itself_gives_those_that_it_gives_without_a_server():
    """They are inside of those of choices, of which the first has none, as it is the one that is asked for alone."""

    class Numbered:
        name, free = "numbered", True

        async def complete(self, request):
            with repeat(1):
                return Completion(text=str(sample_number(b"key")))

    with LoopbackServer(Numbered()) as server:
        bodies = [post(server, HELLO | more)[1] for more in ({}, {"n": 2})]
    said = [[each["message"]["content"] for each in body["choices"]] for body in bodies]
    assert said == [["(1,)"], ["(1,)", "(1, 1)"]]


def test_several_choices_are_streamed_each_with_its_number():
    """Each event says of which it is."""
    with LoopbackServer(ScriptedModel(["a b", "c"])) as server:
        address = server.base_url.removeprefix("http://").removesuffix("/v1")
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request("POST", "/v1/chat/completions", json.dumps(HELLO | {"n": 2, "stream": True}))
        lines = connection.getresponse().read().decode().split("\n\n")
        connection.close()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    said = {0: "", 1: ""}
    for event in events:
        (choice,) = event["choices"]
        said[choice["index"]] += choice["delta"].get("content", "")
    assert said == {0: "a b", 1: "c"}


@pytest.mark.parametrize("n", [0, 129, "2", True, 1.5])
def test_a_number_of_choices_that_no_endpoint_gives_is_refused(n):
    """Before the model is asked."""
    with LoopbackServer(ScriptedModel([])) as server:
        status, body, _ = post(server, HELLO | {"n": n})
    assert status == 400
    assert "n is a whole number from 1 to 128" in body["error"]["message"]


RESPONSES = "/v1/responses"


@pytest.mark.parametrize(
    "asked",
    [
        {"model": "m"},
        {"model": "m", "input": ""},
        {"input": "hello"},
        {"model": "m", "input": "hello", "seed": 1},
        {"model": "m", "input": "hello", "messages": []},
        {"model": "m", "input": [{"type": "message", "role": "user", "content": [{"type": "text", "text": "x"}]}]},
        {"model": "m", "input": [{"type": "unheard_of"}]},
    ],
)
def test_requests_that_are_none_of_the_responses_api_are_refused(asked):
    """Settings and parts of chat completions are no part of it, as with OpenAI."""
    with LoopbackServer(ScriptedModel([])) as server:
        status, body, _ = post(server, asked, RESPONSES)
    assert status == 400
    assert "no response" in body["error"]["message"]


def test_the_responses_api_asks_the_same_model():
    """Instructions, items, parts, tools and settings arrive as they would from chat completions."""
    seen = []
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}
    image = {"type": "input_image", "image_url": "data:x", "detail": "low"}
    asked = {
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Look:"}, image]},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call", "call_id": "2", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "42"},
        ],
        "max_output_tokens": 7,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "A", "schema": {"type": "object"}, "strict": True}},
        "tools": [tool],
        "tool_choice": "auto",
        "top_k": 4,
    }
    answer = Completion(
        text="", tool_calls=({"id": "3", "type": "function", "function": {"name": "f", "arguments": "{}"}},)
    )
    with LoopbackServer(FunctionModel(lambda request: seen.append(request) or answer)) as server:
        status, body, _ = post(server, asked, RESPONSES)
    (request,) = seen
    assert (status, body["status"]) == (200, "completed")
    assert [(item["type"], item["call_id"]) for item in body["output"]] == [("function_call", "3")]
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool"]
    assert request.messages[1].content[1] == {"type": "image_url", "image_url": {"url": "data:x", "detail": "low"}}
    assert [call["id"] for call in request.messages[2].tool_calls] == ["1", "2"]
    config = request.config
    assert (config.max_tokens, config.reasoning_effort, config.tool_choice) == (7, "low", "auto")
    assert config.response_format == ResponseFormat(name="A", json_schema={"type": "object"})
    assert config.tools[0]["function"]["name"] == "f"
    assert config.extra == {"reasoning": {"summary": "auto"}, "top_k": 4}


@pytest.mark.parametrize(
    ("finish_reason", "why"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_unfinished_responses_are_sent_as_such(finish_reason, why):
    """The status says it, as the finish reason does with chat completions."""
    with LoopbackServer(ScriptedModel([Completion(text="half", finish_reason=finish_reason)])) as server:
        _, body, _ = post(server, {"model": "m", "input": "hello"}, RESPONSES)
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": why})
    assert body["output"][0]["content"][0]["text"] == "half"


def test_it_lists_its_model_and_keeps_connections():
    """Two requests on one connection; `GET /v1/models` is how clients look around."""
    with LoopbackServer(ScriptedModel(["one"], name="mine")) as server:
        host = server.base_url.removeprefix("http://").removesuffix("/v1")
        connection = http.client.HTTPConnection(host, timeout=60)
        for _ in range(2):
            connection.request("GET", "/v1/models")
            assert json.loads(connection.getresponse().read())["data"][0]["id"] == "mine"
        connection.close()
        assert server.requests == 0


def test_a_client_that_connects_while_it_is_left_is_turned_away_and_it_ends(monkeypatch):
    """From Python 3.12 on it waited for that client, which may keep its connection for as long as it lives."""
    busy, goes_on = threading.Event(), threading.Event()
    with LoopbackServer(ScriptedModel([])) as server:
        address = server.base_url.removeprefix("http://").removesuffix("/v1")
        host, port = address.split(":")
        known = http.client.HTTPConnection(address, timeout=60)
        known.request("GET", "/v1/models")
        known.getresponse().read()
        schedule = server._loop.call_soon_threadsafe
        schedule(lambda: (busy.set(), goes_on.wait()))
        busy.wait()
        late = socket.create_connection((host, int(port)), timeout=60)  # which the loop does not see yet

        def scheduled(*args, **kwargs):
            made = schedule(*args, **kwargs)
            goes_on.set()
            return made

        monkeypatch.setattr(server._loop, "call_soon_threadsafe", scheduled)  # the end comes first, then the client
    with late, contextlib.suppress(ConnectionResetError):
        assert late.recv(1) == b""
    known.close()


def test_outside_its_block_there_is_no_address():
    """A forgotten `with` is named."""
    with pytest.raises(RuntimeError, match="with LoopbackServer"):
        _ = LoopbackServer(ScriptedModel([])).base_url


def test_the_whole_stack_survives_faults_and_loses_nothing():
    """Adapter, check, budget, limit, retry and meter together, over real sockets."""
    script = [Fault(500), Fault(429, {"retry-after-ms": "1"}), Fault(200, body="<html>"), None, Fault(503, body={})]
    policy = RetryPolicy(base=0.001)
    with LoopbackServer(FunctionModel(lambda request: request.messages[-1].text), script=script) as server:
        model = resolve("m", base_url=server.base_url, max_in_flight=16, policy=policy)

        requests = [Request(messages=(Message(role="user", content=str(number)),)) for number in range(60)]

        async def main():
            try:
                return await asyncio.gather(*(model.complete(request) for request in requests))
            finally:
                await innermost(model).aclose()

        with meter() as m, budget(calls=70) as b:
            completions = asyncio.run(main())
        assert [completion.text for completion in completions] == [str(i) for i in range(60)]
        assert server.requests == 64
        assert server.peak <= 16
    assert m.failed == 0
    assert m.total.calls == b.spent.calls == 60
    assert b.unknown.calls == 3  # two broken answers of status 5xx, and one body whose cost nobody knows
