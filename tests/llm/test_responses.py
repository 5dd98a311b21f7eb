import asyncio
import json

import httpx
import pytest
import respx

from textgrad_engine import errors
from textgrad_engine.llm import (
    Cache,
    Check,
    GenerateConfig,
    Message,
    OpenAIModel,
    Request,
    ResponseFormat,
    innermost,
    resolve,
)
from textgrad_engine.llm.responses import UNSUPPORTED, arguments
from textgrad_engine.llm.usage import usage_of, was_sent
from textgrad_engine.testing import FunctionModel, LoopbackServer, ScriptedModel

KEY = "sk-canary-0123456789"
FORMAT = ResponseFormat(
    name="Verdict",
    json_schema={
        "type": "object",
        "properties": {"score": {"type": "integer"}},
        "required": ["score"],
        "additionalProperties": False,
    },
)


def said(text, **fields):
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}], **fields}


def body(*output, status="completed", **fields):
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    items = list(output) or [said("fine")]
    return {
        "id": "r1",
        "object": "response",
        "status": status,
        "model": "m-1",
        "output": items,
        "usage": usage,
    } | fields


@pytest.fixture
def api():
    with respx.mock(using="httpcore2", assert_all_called=False) as router:
        yield router.post("https://api.openai.com/v1/responses")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def model_of(**settings):
    return OpenAIModel("gpt-5-mini", api_key=KEY, api="responses", **settings)


def send(model, request):
    async def main():
        try:
            return await model.complete(request)
        finally:
            await innermost(model).aclose()

    return asyncio.run(main())


def sent(route, number=-1):
    return json.loads(route.calls[number].request.content)


def refused(request, config=None):
    with pytest.raises(errors.RequestRefused) as caught:
        arguments("m", request, config or request.config)
    assert not was_sent(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("setting", "value"), [("frequency_penalty", 0.0), ("presence_penalty", 0.5), ("seed", 0), ("stop", ("END",))]
)
def test_a_setting_that_the_api_lacks_is_an_error_where_the_model_is_made_and_where_it_is_asked(ask, setting, value):
    """None is dropped; zero is a value too."""
    assert setting in UNSUPPORTED
    with pytest.raises(TypeError, match=f"Responses API has no setting '{setting}'.*api='chat'"):
        model_of(**{setting: value})
    with pytest.raises(errors.RequestRefused, match=f"'{setting}'.*extra=") as caught:
        send(model_of(), ask(config=GenerateConfig(**{setting: value})))
    assert not was_sent(caught.value)


@pytest.mark.parametrize("name", ["n", "stream", "model", "messages", "input", "background"])
def test_what_the_adapter_decides_cannot_be_passed_by_it(ask, name):
    """An answer in the background would be none, and is paid for."""
    assert f"extra={{'{name}'" in refused(ask(config=GenerateConfig(extra={name: True})))


def test_an_unknown_api_is_refused_where_the_model_is_made():
    """A typo must not fall back to chat completions."""
    with pytest.raises(ValueError, match="'chat' or 'responses', got 'response'"):
        OpenAIModel("m", api="response")


def test_the_api_belongs_to_an_endpoint():
    """An option that means nothing is refused, not ignored."""
    with pytest.raises(TypeError, match="is a model already"):
        resolve(ScriptedModel([]), api="responses")
    with pytest.raises(TypeError, match="api='responses'"):
        resolve("simulated/tickets", api="responses")


@pytest.mark.parametrize(
    ("role", "part"),
    [
        ("user", {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}),
        ("user", {"type": "input_text", "text": "would pass by the limit on text"}),
        ("assistant", {"type": "video"}),
        ("user", {}),
    ],
)
def test_a_content_part_that_the_api_lacks_is_refused_with_its_place(role, part):
    """Nothing of a message is left out in silence."""
    text = {"type": "text", "text": "Listen:"}
    messages = (Message(role="system", content="s"), Message(role=role, content=[text, part]))
    assert f"message 2 ({role})" in refused(Request(messages=messages))


@pytest.mark.parametrize("call", [{"id": "1", "type": "other"}, {"id": "1", "type": "function"}, {}])
def test_a_tool_call_in_no_known_form_is_refused(call):
    """It would reach the endpoint as a call of nothing."""
    assert "message 1 (assistant)" in refused(
        Request(messages=(Message(role="assistant", content="", tool_calls=(call,)),))
    )


def test_every_setting_is_passed_on_exactly(api, ask):
    """Under the names of this API; what it shares with nobody goes through `extra`, and is merged where it nests."""
    api.mock(return_value=httpx.Response(200, json=body(said('{"score": 1}'))))
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    config = GenerateConfig(
        temperature=0.0,
        top_p=0.5,
        max_tokens=9,
        reasoning_effort="low",
        response_format=FORMAT,
        tools=(tool, {"type": "web_search"}),
        tool_choice={"type": "function", "function": {"name": "f"}},
        extra={"text": {"verbosity": "low"}, "reasoning": {"summary": "auto"}, "top_logprobs": 2},
    )
    send(model_of(temperature=1.0), ask(config=config))
    assert sent(api) == {
        "model": "gpt-5-mini",
        "input": [{"role": "user", "content": "hello"}],
        "store": False,
        "stream": False,
        "temperature": 0.0,
        "top_p": 0.5,
        "max_output_tokens": 9,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {
            "format": {"type": "json_schema", "name": "Verdict", "schema": FORMAT.json_schema, "strict": True},
            "verbosity": "low",
        },
        "tools": [
            {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False},
            {"type": "web_search"},
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "top_logprobs": 2,
    }
    assert set(GenerateConfig.model_fields) == config.model_fields_set | set(UNSUPPORTED)  # a new field is added here


def test_what_is_not_set_is_not_sent_and_nothing_is_stored(api, ask):
    """The endpoint's own defaults hold, except that it would keep other people's data for a month."""
    api.mock(return_value=httpx.Response(200, json=body()))
    send(model_of(), ask())
    asked = {"model": "gpt-5-mini", "input": [{"role": "user", "content": "hello"}]}
    assert sent(api) == {**asked, "store": False, "stream": False}
    assert api.calls[0].request.headers["authorization"] == f"Bearer {KEY}"
    send(model_of(extra={"store": True}), ask())
    assert sent(api)["store"] is True


def test_messages_parts_and_tool_calls_become_items():
    """The same request as for chat completions: images, files, refusals, calls and their answers."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    own = {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "free text"}}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}}
    messages = (
        Message(role="developer", content="Be brief."),
        Message(
            role="user", content=[{"type": "text", "text": "Look:"}, image, {"type": "image_url", "image_url": "u"}]
        ),
        Message(
            role="user", content=[{"type": "file", "file": {"file_id": "f1"}}, {"type": "input_image", "file_id": "f2"}]
        ),
        Message(role="assistant", content=[{"type": "text", "text": "I"}, {"type": "refusal", "refusal": "won't"}]),
        Message(role="assistant", content="", tool_calls=(call, own)),
        Message(role="tool", content="42", tool_call_id="c1"),
        Message(role="tool", content=[{"type": "text", "text": "43"}], tool_call_id="c2"),
    )
    assert arguments("m", Request(messages=messages), GenerateConfig())["input"] == [
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look:"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"},
                {"type": "input_image", "image_url": "u", "detail": "auto"},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "input_file", "file_id": "f1"}, {"type": "input_image", "file_id": "f2"}],
        },
        {
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I"}, {"type": "refusal", "refusal": "won't"}],
        },
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "free text"},
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "43"}]},
    ]


def test_tools_keep_their_meaning(ask):
    """A function that said nothing of strictness was checked loosely, and is here too, where strict is the default."""
    grammar = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}
    tools = (
        {"type": "function", "function": {"name": "f"}},
        {"type": "function", "function": {"name": "g", "parameters": {}, "strict": True}},
        {"type": "function", "name": "h", "parameters": {}},
        {"type": "custom", "custom": {"name": "i", "format": grammar}},
    )
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [tools[0]]}}
    config = GenerateConfig(tools=tools, tool_choice=allowed)
    made = arguments("m", ask(config=config), config)
    assert made["tools"] == [
        {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False},
        {"type": "function", "name": "g", "parameters": {}, "strict": True},
        {"type": "function", "name": "h", "parameters": {}},
        {"type": "custom", "name": "i", "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}},
    ]
    assert made["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "f"}],
    }


@pytest.mark.parametrize("status", [200, 401, 500])
def test_the_key_is_in_no_error(api, ask, status):
    """An endpoint that echoes the key must not put it into logs."""
    api.mock(return_value=httpx.Response(status, json={"error": {"message": f"bad key {KEY}"}}))
    with pytest.raises(errors.ModelError) as caught:
        send(model_of(), ask())
    assert KEY not in str(caught.value)
    assert "[API key]" in str(caught.value)


def test_an_endpoint_without_the_api_says_what_to_do(api, ask):
    """Many servers have chat completions only."""
    api.mock(return_value=httpx.Response(404, json={"error": {"message": "Not Found"}}))
    with pytest.raises(errors.BadRequest) as caught:
        send(model_of(), ask())
    assert any("api='chat'" in note for note in caught.value.__notes__)


def test_a_body_that_fails_later_is_marked_with_what_it_used(api, ask):
    """A response that failed half-way is paid for."""
    api.mock(return_value=httpx.Response(200, json=body(status="failed", error={"code": "server_error"})))
    with pytest.raises(errors.ServerFailed) as caught:
        send(model_of(), ask())
    assert usage_of(caught.value).output_tokens == 7


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (body(said("half"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}), "Truncated"),
        (body(said("half"), status="incomplete", incomplete_details={"reason": "content_filter"}), "ContentFiltered"),
        (body({"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}), "ContentFiltered"),
        (body({"type": "reasoning", "summary": []}), "Empty"),
    ],
)
def test_an_answer_that_is_not_finished_is_an_error_that_knows_its_cost(api, ask, answer, kind):
    """Only a finished answer may become feedback or a parameter, whichever API it came by."""
    api.mock(return_value=httpx.Response(200, json=answer))
    with pytest.raises(errors.AnswerError) as caught:
        send(Check(model_of()), ask())
    assert type(caught.value).__name__.startswith(kind)
    assert usage_of(caught.value).output_tokens == 7


def test_an_endpoint_without_structured_output_is_asked_in_words_from_then_on(api, ask):
    """The fallback is the same as with chat completions."""
    refusal = {"error": {"message": "Unsupported parameter: 'text.format' is not supported with this model."}}
    api.mock(
        side_effect=[
            httpx.Response(400, json=refusal),
            httpx.Response(200, json=body(said('{"score": 1}'))),
            httpx.Response(200, json=body(said('{"score": 2}'))),
        ]
    )
    model = model_of(response_format=FORMAT)

    async def main():
        first, second = await model.complete(ask()), await model.complete(ask())
        await model.aclose()
        return first.text, second.text

    assert asyncio.run(main()) == ('{"score": 1}', '{"score": 2}')
    assert sent(api, 0)["text"]["format"]["name"] == "Verdict"
    for number in (1, 2):
        assert "text" not in sent(api, number)
        assert '"score": {"type": "integer"}' in sent(api, number)["input"][-1]["content"]


def test_the_cache_keeps_the_two_apis_apart(ask, tmp_path):
    """They are different programs on the endpoint's side, and may answer differently."""
    answers = iter(["by chat", "by responses"])
    with LoopbackServer(FunctionModel(lambda request: next(answers))) as server:

        async def main():
            cache = Cache(tmp_path)
            models = [resolve("m", base_url=server.base_url, api=api, cache=cache) for api in (None, "responses")]
            texts = [(await model.complete(ask())).text for model in (*models, *models)]
            for model in models:
                await innermost(model).aclose()
            cache.close()
            return texts

        assert asyncio.run(main()) == ["by chat", "by responses"] * 2
        assert server.requests == 2


def test_the_api_is_in_the_repr():
    """What a run used can be read off it."""
    assert repr(model_of()) == "OpenAIModel('gpt-5-mini', api='responses')"
    assert "api='responses'" in repr(resolve("openai/gpt-5-mini", api="responses"))
