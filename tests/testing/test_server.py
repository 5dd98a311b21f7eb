import asyncio
import http.client
import json

import pytest

from textgrad_engine import errors
from textgrad_engine.llm import Completion, Message, Request, ResponseFormat, budget, innermost, meter, resolve
from textgrad_engine.llm.retry import RetryPolicy
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer, ScriptedModel

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def post(server, body=HELLO, path="/v1/chat/completions", method="POST", headers=None, raw=None):
    host = server.base_url.removeprefix("http://").removesuffix("/v1")
    connection = http.client.HTTPConnection(host, timeout=10)
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


def test_it_lists_its_model_and_keeps_connections():
    """Two requests on one connection; `GET /v1/models` is how clients look around."""
    with LoopbackServer(ScriptedModel(["one"], name="mine")) as server:
        host = server.base_url.removeprefix("http://").removesuffix("/v1")
        connection = http.client.HTTPConnection(host, timeout=10)
        for _ in range(2):
            connection.request("GET", "/v1/models")
            assert json.loads(connection.getresponse().read())["data"][0]["id"] == "mine"
        connection.close()
        assert server.requests == 0


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
