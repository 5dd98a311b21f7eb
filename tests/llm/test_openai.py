import asyncio
import gc
import json
import traceback

import httpx
import pytest
import respx

from textgrad_engine import errors
from textgrad_engine.llm import (
    Check,
    GenerateConfig,
    Message,
    OpenAIModel,
    Request,
    ResponseFormat,
    innermost,
    meter,
    resolve,
)
from textgrad_engine.llm.charged import usage_of, was_sent
from textgrad_engine.llm.response import completion_from_json
from textgrad_engine.llm.transport import REFUSE_REQUESTS
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer

KEY = "sk-canary-0123456789"
URL = "https://api.openai.com/v1/chat/completions"
FORMAT = ResponseFormat(
    name="Verdict",
    json_schema={
        "type": "object",
        "properties": {"score": {"type": "integer"}},
        "required": ["score"],
        "additionalProperties": False,
    },
)


def body(text="fine", finish_reason="stop", **fields):
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    choices = [{"index": 0, "message": message, "finish_reason": finish_reason}]
    return {"id": "c1", "object": "chat.completion", "model": "m-1", "choices": choices, "usage": usage} | fields


@pytest.fixture
def api():
    with respx.mock(using="httpcore2", assert_all_called=False) as router:
        yield router.post(URL)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


def sent(route, number=-1):
    return json.loads(route.calls[number].request.content)


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, errors.AuthenticationFailed),
        (403, {"error": {"message": "no access"}}, errors.AuthenticationFailed),
        (400, {"error": {"message": "No connected db.", "type": "no_db_connection"}}, errors.AuthenticationFailed),
        (400, [{"error": {"message": "API key not valid. Please pass a valid API key."}}], errors.AuthenticationFailed),
        (402, {"error": {"message": "pay"}}, errors.QuotaExhausted),
        (404, {"error": {"message": "no such model"}}, errors.BadRequest),
        (400, {"error": {"message": "bad", "code": "invalid_value"}}, errors.BadRequest),
        (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, errors.ContextOverflow),
        (400, {"error": {"message": "This model's maximum context length is 8192 tokens"}}, errors.ContextOverflow),
        (400, {"error": {"message": "request (9 tokens) exceeds the available context size"}}, errors.ContextOverflow),
        (400, {"error": {"message": "exceeds the maximum number of tokens allowed (8)."}}, errors.ContextOverflow),
        (408, {}, errors.DeadlineExceeded),
        (409, {}, errors.APIError),
        (422, {"detail": "no"}, errors.BadRequest),
        (429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, errors.RateLimited),
        (429, {"error": {"message": "no money", "code": "insufficient_quota"}}, errors.QuotaExhausted),
        (500, {"error": "plain words"}, errors.ServerFailed),
        (503, "<html>Bad Gateway</html>", errors.ServerFailed),
        (529, [1], errors.ServerFailed),
    ],
)
def test_each_refusal_is_an_error_of_ours_and_is_sent_once(api, ask, status, said, kind, send):
    """The SDK's own retries are off, and its exceptions do not come through."""
    api.mock(return_value=httpx.Response(status, **({"text": said} if isinstance(said, str) else {"json": said})))
    with pytest.raises(errors.APIError) as caught:
        send(OpenAIModel("gpt-5-mini", api_key=KEY), ask())
    assert type(caught.value) is kind
    assert caught.value.status == status
    assert api.call_count == 1


def test_a_refused_key_is_looked_for_where_it_may_come_from(api, ask, send):
    """That of a config is in a variable of its own, so OPENAI_API_KEY alone sent people to the wrong one."""
    api.mock(return_value=httpx.Response(401, json={"error": {"message": "Incorrect API key"}}))
    with pytest.raises(errors.AuthenticationFailed) as caught:
        send(OpenAIModel("gpt-5-mini", api_key=KEY), ask())
    for place in ("OPENAI_API_KEY", "llm.resolve(name, api_key=...)", "the variable that api_key names in the config"):
        assert place in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        {"text": "<html><body>Welcome to the proxy</body></html>"},
        {"text": ""},
        {"text": '{"choices": [{"mess'},
        {"json": [1, 2]},
        {"json": "just text"},
        {"json": body() | {"choices": None}},
        {"json": body() | {"choices": []}},
        {"json": {"error": {"message": "upstream failed"}}},
        {"json": {"choices": [{"finish_reason": "stop", "message": None}]}},
        {"json": body(finish_reason=None)},
        {"json": body(finish_reason="error")},
        {"json": body(text=5)},
    ],
)
def test_a_body_that_is_no_completion_is_malformed(api, ask, answer, send):
    """The SDK hands a str for an HTML body and accepts null choices; here these are typed errors."""
    api.mock(return_value=httpx.Response(200, **answer))
    with pytest.raises(errors.MalformedResponse, match="gpt-5-mini"):
        send(OpenAIModel("gpt-5-mini", api_key=KEY), ask())


def test_a_web_page_instead_of_an_answer_leads_to_the_base_url(api, ask, send):
    """A base_url without its /v1 is mostly answered by the server's own page, with status 200."""
    api.mock(return_value=httpx.Response(200, text="\n<!DOCTYPE html><title>Open WebUI</title>"))
    with pytest.raises(errors.MalformedResponse, match=r"Open WebUI.*that is a web page: is base_url right"):
        send(OpenAIModel("gpt-5-mini", api_key=KEY), ask())


@pytest.mark.parametrize("status", [200, 401, 400, 500])
def test_the_key_is_in_no_error_no_repr_and_no_traceback(api, ask, status, send):
    """An endpoint that echoes the key must not put it into logs."""
    model = OpenAIModel("gpt-5-mini", api_key=KEY)
    api.mock(return_value=httpx.Response(status, json={"error": {"message": f"bad key {KEY}"}}))
    with pytest.raises(errors.ModelError) as caught:
        send(model, ask())
    shown = "".join(traceback.format_exception(caught.value)) + repr(model) + repr(vars(model)) + repr(resolve(model))
    assert KEY not in shown
    assert caught.value.__context__ is None
    assert "[API key]" in str(caught.value)


@pytest.mark.parametrize("before", range(165, 200, 5))
def test_a_key_that_is_cut_off_where_a_body_is_quoted_is_not_in_the_error(api, ask, send, before):
    """A proxy's page may repeat the headers that it was sent, and the message quotes where that begins."""
    key = "4f9c0d1e2b3a49587766554433221100"  # as Azure's
    api.mock(return_value=httpx.Response(200, text=f"<p>{'x' * before}{key}</p>"))
    with pytest.raises(errors.MalformedResponse) as caught:
        send(OpenAIModel("m", api_key=key), ask())
    assert key[: len(key) // 2] not in str(caught.value)


@pytest.mark.parametrize("key", ["ollama", "message", "not-needed", KEY])
def test_an_answer_is_what_the_endpoint_said(api, ask, key, send):
    """The keys of local servers are words, and an answer, a score or the JSON's own names may hold them."""
    said = f"start it with `{key} serve`"
    message = {"role": "assistant", "content": said}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "model": "m", "usage": None}
    api.mock(return_value=httpx.Response(200, json=body))
    assert send(OpenAIModel("gpt-5-mini", api_key=key), ask()).text == said


@pytest.mark.parametrize("end", ["?api-key=CANARY", "#CANARY", "/?a=b&CANARY"])
def test_an_address_with_a_query_is_refused_without_showing_it(monkeypatch, end):
    """No path can be put behind it, and the address is written into run folders, cassettes and errors."""
    for make in (lambda url: OpenAIModel("m", base_url=url), lambda url: resolve("m", base_url=url)):
        with pytest.raises(ValueError, match=r"http://a/v1/?' with something behind .*OPENAI_API_KEY") as caught:
            make(f"http://ann:CANARY@a/v1{end}")
        assert "CANARY" not in str(caught.value)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://a/v1{end}")
    with pytest.raises(ValueError, match="leave that out"):
        OpenAIModel("m")


@pytest.mark.parametrize("around", ["{}\n", " {}/ ", "\t{}"])
def test_spaces_around_an_address_are_none_of_it(monkeypatch, around):
    """A variable that is read from a file or a secret ends in a line break."""
    address = around.format("http://localhost:1/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    for model in (OpenAIModel("m", base_url=address), OpenAIModel("m")):
        assert model.base_url == "http://localhost:1/v1"


def test_an_address_with_what_cannot_be_sent_in_it_is_refused():
    """The SDK would end the run with a traceback at its first call."""
    with pytest.raises(ValueError, match="is no address"):
        OpenAIModel("m", base_url="http://localhost:1\n/v1")


@pytest.mark.parametrize("there", [404, 405, 200])
@pytest.mark.parametrize(("status", "lost"), [(301, ", where it came without what was asked"), (308, "")])
def test_an_address_that_sends_requests_on_is_named_with_the_one_behind_it(ask, send, there, status, lost):
    """Most redirects make a GET of what was posted, so a status or a page of the other address was all one saw."""
    with respx.mock(using="httpcore2") as router:
        moved = {"location": "https://b/v2/chat/completions?key=CANARY"}
        router.post("http://a/v1/chat/completions").mock(return_value=httpx.Response(status, headers=moved))
        router.route(host="b").mock(return_value=httpx.Response(there, text="<html>"))
        with pytest.raises(errors.ModelError) as caught:
            send(OpenAIModel("m", base_url="http://a/v1", api_key=KEY), ask())
    (said,) = caught.value.__notes__
    assert said == (
        f"http://a/v1 sent the request on to https://b/v2/chat/completions (status {status}){lost}; name that address "
        "as base_url, without /chat/completions at its end"
    )


@pytest.mark.parametrize("mark", ["?", "#"])
def test_half_a_password_is_not_shown_either(mark):
    """It may have characters in it that end an address."""
    with pytest.raises(ValueError, match="'http://a/v1' is no address"):
        OpenAIModel("m", base_url=f"http://ann:CAN{mark}ARY@a/v1")


def test_without_a_key_nothing_is_sent_and_the_repair_is_named(api, ask, send):
    """The first thing that a newcomer forgets."""
    with pytest.raises(errors.AuthenticationFailed, match="OPENAI_API_KEY") as caught:
        send(OpenAIModel("gpt-5-mini"), ask())
    with pytest.raises(errors.AuthenticationFailed, match="line break"):
        send(OpenAIModel("gpt-5-mini", api_key="sk-a\nb"), ask())
    assert api.call_count == 0
    assert not was_sent(caught.value)


def test_a_timeout_and_a_broken_connection_are_told_apart_from_what_was_never_sent(api, ask, send):
    """A budget gives back only what was certainly not charged."""
    import httpcore2

    for raised, kind, reached in (
        (httpcore2.ReadTimeout, errors.DeadlineExceeded, True),
        (httpcore2.RemoteProtocolError, errors.ConnectionFailed, True),
        (httpcore2.ConnectError, errors.ConnectionFailed, False),
        (httpcore2.ConnectTimeout, errors.DeadlineExceeded, False),
    ):
        api.mock(side_effect=raised)
        with pytest.raises(kind) as caught:
            send(OpenAIModel("gpt-5-mini", api_key=KEY), ask())
        assert was_sent(caught.value) is reached


def test_every_setting_is_passed_on_exactly(api, ask, send):
    """Sampling settings silently dropped: a defect of earlier systems."""
    api.mock(return_value=httpx.Response(200, json=body()))
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    config = GenerateConfig(
        temperature=0.0,
        top_p=0.5,
        max_tokens=9,
        stop=("END",),
        seed=0,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        reasoning_effort="low",
        response_format=FORMAT,
        tools=(tool,),
        tool_choice="auto",
        extra={"top_k": 3},
    )
    send(OpenAIModel("openai/gpt-5-mini", api_key=KEY, temperature=1.0), ask(config=config))
    assert sent(api) == {
        "model": "gpt-5-mini",
        "messages": [{"role": "user", "content": "hello"}],
        "temperature": 0.0,
        "top_p": 0.5,
        "max_completion_tokens": 9,
        "stop": ["END"],
        "seed": 0,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "reasoning_effort": "low",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "Verdict", "schema": FORMAT.json_schema, "strict": True},
        },
        "tools": [tool],
        "tool_choice": "auto",
        "top_k": 3,
    }
    assert set(GenerateConfig.model_fields) == config.model_fields_set  # a new field must be added here


def test_what_is_not_set_is_not_sent(api, ask, send):
    """The endpoint's own defaults hold."""
    api.mock(return_value=httpx.Response(200, json=body()))
    send(OpenAIModel("gpt-5-mini", api_key=KEY), ask())
    assert set(sent(api)) == {"model", "messages"}
    assert api.calls[0].request.headers["authorization"] == f"Bearer {KEY}"


def test_what_a_gateway_says_of_other_kinds_of_calls_is_no_part_of_a_call(api, ask, send):
    """It writes its own objects out, with null for what a call has not; a record of that could not be read again."""
    call = {"id": "1", "type": "custom", "custom": {"name": "f", "input": "x"}}
    answer = body(text=None, finish_reason="tool_calls")
    answer["choices"][0]["message"]["tool_calls"] = [{**call, "function": None}]
    api.mock(return_value=httpx.Response(200, json=answer))
    completion = send(OpenAIModel("gpt-5-mini", api_key=KEY), ask())
    assert completion.tool_calls == (call,)
    assert completion_from_json(json.loads(completion.model_dump_json())) == completion


def test_usage_finish_reason_and_tool_calls_are_read(api, ask, send):
    """Cached and reasoning tokens are billed apart."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answer = body(text=None, finish_reason="tool_calls")
    answer["choices"][0]["message"]["tool_calls"] = [call]
    answer["usage"] |= {
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    api.mock(return_value=httpx.Response(200, json=answer))
    completion = send(OpenAIModel("gpt-5-mini", api_key=KEY), ask())
    assert (completion.text, completion.finish_reason, completion.tool_calls) == ("", "tool_calls", (call,))
    usage = completion.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens) == (11, 7, 4, 5)
    assert completion.model == "m-1"
    assert completion.latency > 0


def test_tokens_that_an_endpoint_counts_beside_its_sums_are_added(api, ask, send):
    """More cached tokens than input would make its price negative, and give the budget money back."""
    answer = body()
    answer["usage"] |= {
        "prompt_tokens_details": {"cached_tokens": 2000},
        "completion_tokens_details": {"reasoning_tokens": 300},
    }
    api.mock(return_value=httpx.Response(200, json=answer))
    usage = send(OpenAIModel("gpt-5-mini", api_key=KEY), ask()).usage
    assert (usage.input_tokens, usage.cached_tokens) == (2011, 2000)
    assert (usage.output_tokens, usage.reasoning_tokens) == (307, 300)


def test_missing_usage_is_estimated_and_says_so(api, ask, send):
    """Local servers often leave the usage out; zero would be wrong."""
    api.mock(return_value=httpx.Response(200, json=body(usage=None)))
    completion = send(OpenAIModel("gpt-5-mini", api_key=KEY), ask("a" * 40))
    assert completion.usage.input_tokens >= 10
    assert completion.raw["usage_estimated"] is True


def test_zeros_in_the_place_of_usage_are_estimated(api, ask, send):
    """Gateways that do not count send zeros: taken as they are, no limit in tokens or dollars would ever be reached."""
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    api.mock(return_value=httpx.Response(200, json=body(usage=zeros)))
    completion = send(OpenAIModel("gpt-5-mini", api_key=KEY), ask("a" * 40))
    assert completion.usage.input_tokens >= 10
    assert completion.usage.output_tokens >= 1
    assert completion.raw["usage_estimated"] is True


@pytest.mark.parametrize("number", [2**64 - 1, 10**400], ids=["wrapped", "no float"])
def test_numbers_that_no_call_can_have_used_are_taken_for_none(api, ask, send, number):
    """Counters that wrapped around would spend any budget at once, and what a float cannot hold lost the answer."""
    said = {"prompt_tokens": number, "completion_tokens": number, "total_tokens": number, "cost": number}
    details = {"prompt_tokens_details": {"cached_tokens": number}, "cost_in_usd_ticks": number}
    for usage in (said, said | details, said | {"cost": 1e308}, body()["usage"] | {"cost": 1e308, **details}):
        api.mock(return_value=httpx.Response(200, json=body(usage=usage)))
        with meter() as spent:
            completion = send(resolve("openai/gpt-5-mini", api_key=KEY), ask("a" * 40))
        assert completion.text == body()["choices"][0]["message"]["content"]
        assert 10 <= spent.total.input_tokens < 100
        assert 1 <= spent.total.output_tokens < 100
        assert spent.total.dollars < 0.01


def test_what_is_counted_of_a_usage_with_a_zero_is_kept(api, ask, send):
    """Some servers say nothing of a prompt that they had cached, and count the answer with its thoughts."""
    counted = {"prompt_tokens": 0, "completion_tokens": 321, "total_tokens": 321}
    api.mock(return_value=httpx.Response(200, json=body(usage=counted)))
    completion = send(OpenAIModel("gpt-5-mini", api_key=KEY), ask("a" * 40))
    assert completion.usage.input_tokens >= 10
    assert completion.usage.output_tokens == 321


@pytest.mark.parametrize(
    ("finish_reason", "message", "kind"),
    [
        ("length", {"content": "half"}, errors.TruncatedResponse),
        ("content_filter", {"content": ""}, errors.ContentFiltered),
        ("stop", {"content": None, "refusal": "I cannot help"}, errors.ContentFiltered),
        ("stop", {"content": None}, errors.EmptyResponse),
    ],
)
def test_an_answer_that_is_not_finished_is_an_error(api, ask, finish_reason, message, kind):
    """Only a finished answer may become feedback or a parameter."""
    answer = body(finish_reason=finish_reason)
    answer["choices"][0]["message"] = {"role": "assistant", **message}
    api.mock(return_value=httpx.Response(200, json=answer))
    model = OpenAIModel("gpt-5-mini", api_key=KEY)

    async def main():
        try:
            await Check(model).complete(ask())
        finally:
            await model.aclose()

    with pytest.raises(kind) as caught:
        asyncio.run(main())
    assert usage_of(caught.value).output_tokens == 7


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "'response_format' is not supported by this model"),
        (500, "1 validation error: {'type': 'literal_error', 'loc': ('body', 'response_format', 'type')}"),
    ],
    ids=["as it should be", "llama-cpp-python"],
)
def test_an_endpoint_without_response_format_is_asked_in_words_from_then_on(api, ask, status, said):
    """The fallback is remembered: one refusal, not one for each call."""
    api.mock(
        side_effect=[
            httpx.Response(status, json={"error": {"message": said}}),
            httpx.Response(200, json=body('{"score": 1}')),
            httpx.Response(200, json=body('{"score": 2}')),
        ]
    )
    model = OpenAIModel("m", api_key=KEY, response_format=FORMAT)

    async def main():
        first, second = await model.complete(ask()), await model.complete(ask())
        await model.aclose()
        return first, second

    answers = asyncio.run(main())
    assert [answer.text for answer in answers] == ['{"score": 1}', '{"score": 2}']
    assert "response_format" in sent(api, 0)
    for number, answer in enumerate(answers, 1):
        assert sent(api, number)["messages"][-1]["content"] == f"hello\n\n{answer.words}"
        assert "response_format" not in sent(api, number)
        assert '"score": {"type": "integer"}' in sent(api, number)["messages"][-1]["content"]
        assert sent(api, number)["messages"][-1]["content"].startswith("hello\n\n")


def test_a_server_that_breaks_is_no_reason_to_fall_back(api, ask, send):
    """A 500 that has nothing to do with the format is a matter for the retry loop."""
    api.mock(return_value=httpx.Response(500, json={"error": {"message": "lost the response_format somewhere"}}))
    with pytest.raises(errors.ServerFailed):
        send(OpenAIModel("m", api_key=KEY, response_format=FORMAT), ask())
    assert api.call_count == 1


def test_a_schema_that_is_wrong_is_no_reason_to_fall_back(api, ask, send):
    """The caller's mistake must not be hidden by asking in words."""
    said = {"error": {"message": "Invalid schema for response_format 'Verdict': 'required' is missing"}}
    api.mock(return_value=httpx.Response(400, json=said))
    with pytest.raises(errors.BadRequest, match="Invalid schema"):
        send(OpenAIModel("m", api_key=KEY, response_format=FORMAT), ask())
    assert api.call_count == 1


def test_a_message_that_is_no_text_is_refused_before_it_is_sent(api, ask, send):
    """A lone surrogate cannot be sent as UTF-8."""
    with pytest.raises(errors.RequestRefused, match="surrogate"):
        send(OpenAIModel("m", api_key=KEY), ask("\ud800"))
    assert api.call_count == 0


def test_real_requests_are_refused_in_tests_and_mocked_ones_are_not(api, ask, monkeypatch, send):
    """A test cannot reach a paid endpoint by accident; a mocked one is no accident."""
    monkeypatch.setenv(REFUSE_REQUESTS, "1")
    api.mock(return_value=httpx.Response(200, json=body()))
    assert send(OpenAIModel("m", api_key=KEY), ask()).text == "fine"
    api.pass_through()
    with pytest.raises(errors.RequestRefused, match="allow_requests") as caught:
        send(OpenAIModel("m", api_key=KEY), ask())
    assert not was_sent(caught.value)


def test_retry_after_is_on_the_error(api, ask, send):
    """The retry loop and the limit read it there."""
    api.mock(return_value=httpx.Response(429, headers={"Retry-After": "3"}, json={}))
    with pytest.raises(errors.RateLimited) as caught:
        send(OpenAIModel("m", api_key=KEY), ask())
    assert caught.value.retry_after == 3.0


def test_an_endpoint_of_one_s_own_needs_no_key(ask, send):
    """Local servers ask for none; tokens are limited by the name that they know."""
    seen = []
    with LoopbackServer(FunctionModel(lambda request: seen.append(request) or "fine")) as server:
        model = OpenAIModel("openai/llama", base_url=server.base_url, max_tokens=5)
        assert send(model, ask()).text == "fine"
    assert seen[0].config.max_tokens == 5
    assert seen[0].config.extra == {}


def test_a_server_that_is_not_there_and_one_that_breaks_off(ask, send):
    """Real sockets: refused before sending, and broken in the middle of the body."""
    with LoopbackServer(
        FunctionModel(lambda request: "fine"), script=[Fault(200, body="x" * 999, drop=True)]
    ) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        with pytest.raises(errors.ConnectionFailed) as broken:
            send(model, ask())
    with pytest.raises(errors.ConnectionFailed, match="is the server running") as absent:
        send(model, ask())
    assert was_sent(broken.value)
    assert not was_sent(absent.value)


def test_one_model_works_on_one_loop_after_the_other_and_cleans_up(ask, send):
    """A client belongs to its loop: asyncio.run twice must not share connections."""
    with LoopbackServer(FunctionModel(lambda request: "fine")) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        assert send(model, ask()).text == "fine"
        assert send(model, ask()).text == "fine"

        async def dropped():
            own = OpenAIModel("m", base_url=server.base_url)
            await own.complete(ask())
            del own
            gc.collect()
            for _ in range(20):  # turns of the loop in which the finalizer closes the connections
                await asyncio.sleep(0)

        asyncio.run(dropped())


def test_image_parts_are_sent_as_they_are(api, send):
    """Pictures beside text, by address or in base64, with whatever else the part holds."""
    api.mock(return_value=httpx.Response(200, json=body()))
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]
    send(OpenAIModel("m", api_key=KEY), Request(messages=(Message(role="user", content=parts),)))
    assert sent(api)["messages"] == [{"role": "user", "content": parts}]


@pytest.mark.parametrize(("of_the_model", "of_the_request", "arrives"), [(7, None, 7), (7, 0, 0), (None, 3, 3)])
def test_a_seed_reaches_the_endpoint(api, ask, of_the_model, of_the_request, arrives):
    """Zero is a seed; that of the request goes before that of the model."""
    api.mock(return_value=httpx.Response(200, json=body()))
    model = resolve("openai/m", api_key=KEY, seed=of_the_model)

    async def main():
        await model.complete(ask(config=GenerateConfig(seed=of_the_request)))
        await innermost(model).aclose()

    asyncio.run(main())
    assert sent(api)["seed"] == arrives


@pytest.mark.parametrize("part", [object(), float("nan"), {1, 2}, lambda: None])
def test_what_is_no_json_is_refused_before_it_is_sent(api, ask, part, send):
    """A typed error, not the transport's TypeError from the depths."""
    api.mock(return_value=httpx.Response(200, json=body()))
    with pytest.raises(errors.RequestRefused, match="no JSON") as caught:
        send(OpenAIModel("m", api_key=KEY), ask(config=GenerateConfig(extra={"x": part})))
    assert not was_sent(caught.value)
    assert api.call_count == 0


def test_a_schema_that_cannot_be_held_to_is_sent_as_a_loose_one(api, ask, send):
    """Endpoints refuse a strict schema with free keys; the answer is checked here either way."""
    api.mock(return_value=httpx.Response(200, json=body("{}")))
    for schema, strict in (({"type": "object"}, False), (FORMAT.json_schema, True)):
        send(OpenAIModel("m", api_key=KEY, response_format=schema), ask())
        assert sent(api)["response_format"]["json_schema"]["strict"] is strict


def test_limits_of_numbers_in_a_strict_schema_are_told_and_not_sent_as_keywords(api, ask, send):
    """Some endpoints refuse them, as "minimum is not permitted"; a loose schema is sent as it is."""
    limited = {"type": "number", "minimum": 0, "maximum": 1}
    schema = FORMAT.json_schema | {"properties": {"score": limited}}
    api.mock(return_value=httpx.Response(200, json=body('{"score": 80}')))
    for wanted, shown in (
        (schema, {"type": "number", "description": "minimum: 0, maximum: 1"}),
        (schema | {"additionalProperties": True}, limited),
    ):
        send(OpenAIModel("m", api_key=KEY, response_format=wanted), ask())
        assert sent(api)["response_format"]["json_schema"]["schema"]["properties"]["score"] == shown


def test_tool_messages_keep_the_call_they_answer(api, send):
    """Without its id, an endpoint refuses a tool's answer."""
    api.mock(return_value=httpx.Response(200, json=body()))
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = (
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content="42", tool_call_id="1"),
    )
    send(OpenAIModel("m", api_key=KEY), Request(messages=messages))
    assert sent(api)["messages"] == [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "42", "tool_call_id": "1"},
    ]
