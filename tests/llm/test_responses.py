import asyncio
import contextlib
import json

import httpx
import pytest
import respx

from textgrad_engine import errors
from textgrad_engine.llm import (
    Cache,
    Check,
    Completion,
    GenerateConfig,
    Message,
    OpenAIModel,
    Request,
    ResponseFormat,
    innermost,
    on_token,
    resolve,
)
from textgrad_engine.llm.charged import usage_of, was_sent
from textgrad_engine.llm.dialects import Dialect
from textgrad_engine.llm.responses import UNSUPPORTED, arguments
from textgrad_engine.llm.tokens import count_request, most_of_request
from textgrad_engine.llm.wire import messages_of
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


def sent(route, number=-1):
    return json.loads(route.calls[number].request.content)


def refused(request):
    with pytest.raises(errors.RequestRefused) as caught:
        arguments(request, request.config, Dialect(name="m"))
    assert not was_sent(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("setting", "value"), [("frequency_penalty", 0.0), ("presence_penalty", 0.5), ("seed", 0), ("stop", ("END",))]
)
def test_a_setting_that_the_api_lacks_is_an_error_where_the_model_is_made_and_where_it_is_asked(
    ask, setting, value, send
):
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
    with pytest.raises(TypeError, match=f"extra=.'{name}': .* cannot be sent"):  # before anything is asked
        model_of(extra={name: True})


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


def test_every_setting_is_passed_on_exactly(api, ask, send):
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


def test_what_is_not_set_is_not_sent_and_nothing_is_stored(api, ask, send):
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
    assert arguments(Request(messages=messages), GenerateConfig(), Dialect(name="m"))["input"] == [
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
    made = arguments(ask(config=config), config, Dialect(name="m"))
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
def test_the_key_is_in_no_error(api, ask, status, send):
    """An endpoint that echoes the key must not put it into logs."""
    api.mock(return_value=httpx.Response(status, json={"error": {"message": f"bad key {KEY}"}}))
    with pytest.raises(errors.ModelError) as caught:
        send(model_of(), ask())
    assert KEY not in str(caught.value)
    assert "[API key]" in str(caught.value)


def test_an_endpoint_without_the_api_says_what_to_do(api, ask, send):
    """Many servers have chat completions only."""
    api.mock(return_value=httpx.Response(404, json={"error": {"message": "Not Found"}}))
    with pytest.raises(errors.BadRequest) as caught:
        send(model_of(), ask())
    assert any("api='chat'" in note for note in caught.value.__notes__)


def test_a_body_that_fails_later_is_marked_with_what_it_used(api, ask, send):
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
def test_an_answer_that_is_not_finished_is_an_error_that_knows_its_cost(api, ask, answer, kind, send):
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


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA..."}
CALLED = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"}
CUSTOM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "run", "input": "x"}


def test_a_conversation_goes_on_from_the_models_reasoning(api, ask, send):
    """Else it thinks all over again after each tool call; the items go back in their order and to the letter."""
    comment = said("Let me look.", phase="commentary", id="msg_1")
    output = [THOUGHT, comment, {**THOUGHT, "id": "rs_2"}, CALLED, CUSTOM]
    api.mock(return_value=httpx.Response(200, json=body(*output)))
    asked = ask()
    completion = send(model_of(), asked)
    assert completion.finish_reason == "tool_calls"
    answers = [Message(role="tool", content=str(n), tool_call_id=f"c{n}") for n in (1, 2)]
    send(model_of(), Request(messages=(*asked.messages, completion.as_message(), *answers)))
    assert sent(api)["input"] == [
        {"role": "user", "content": "hello"},
        *output,
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "2"},
    ]


@pytest.mark.parametrize(
    ("thought", "fields", "kept"),
    [
        (THOUGHT, {}, True),
        ({**THOUGHT, "encrypted_content": None, "content": [{"type": "reasoning_text", "text": "hm"}]}, {}, True),
        ({"type": "reasoning", "id": "rs_1", "summary": []}, {"store": True}, True),
        ({"type": "reasoning", "id": "rs_1", "summary": []}, {"store": False}, False),
        ({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}, {}, False),
    ],
)
def test_reasoning_that_cannot_be_sent_back_is_not(api, ask, thought, fields, kept, send):
    """An endpoint that stored nothing knows it by no number, and refuses it; the call then goes back by itself."""
    api.mock(return_value=httpx.Response(200, json=body(thought, CALLED, **fields)))
    said_so = send(model_of(), ask()).as_message()
    again = arguments(Request(messages=(said_so,)), GenerateConfig(), Dialect(name="m"))["input"]
    alone = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    assert again == ([thought, CALLED] if kept else [alone])


def test_reasoning_of_one_api_is_nothing_to_the_other(ask):
    """A conversation may go on with another model, as with `Fallback`; content and tool calls go along."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = Message(role="assistant", content="", tool_calls=(call,), items=(THOUGHT, CALLED))
    assert messages_of(Request(messages=(message,))) == [{"role": "assistant", "content": "", "tool_calls": [call]}]


def test_what_is_asked_for_in_words_is_not_lost_behind_the_items():
    """The last message is the one that gets the words."""
    last = Message(role="assistant", content="so far", items=(THOUGHT, said("so far")))
    config = GenerateConfig(response_format=FORMAT)
    asked = arguments(Request(messages=(last,), config=config), config, Dialect(name="m", form="in words"))
    assert "JSON schema" in asked["input"][-1]["content"]


def test_what_is_asked_for_in_words_does_not_stand_in_what_a_tool_gave():
    """There a model is right not to do as it is told; by either API."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turns = (
        Message(role="user", content="Look."),
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content="42", tool_call_id="c1"),
    )
    config = GenerateConfig(response_format=FORMAT)
    request = Request(messages=turns, config=config)
    for sent in (messages_of(request, FORMAT), arguments(request, config, Dialect(name="m", form="in words"))["input"]):
        assert "JSON schema" in sent[0]["content"]
        assert "JSON schema" not in str(sent[1:])


def test_reasoning_that_is_sent_back_counts():
    """It is input like any other, and a budget must hold it."""
    message = Message(role="assistant", content="", items=({**THOUGHT, "encrypted_content": "x" * 4000}, CALLED))
    asked, plain = Request(messages=(message,)), Request(messages=(message.model_copy(update={"items": None}),))
    assert count_request(asked) > count_request(plain) + 1000
    assert most_of_request(asked) > most_of_request(plain) + 4000


@pytest.mark.parametrize("streamed", [False, True])
def test_a_conversation_with_tools_and_reasoning_over_a_real_socket(streamed):
    """Through the whole stack: what the server sees in the second turn is what it said in the first."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    first = Completion(text="", finish_reason="tool_calls", tool_calls=(call,), items=(THOUGHT,))
    scripted = ScriptedModel([first, "done"])
    with LoopbackServer(scripted) as server:
        model = resolve("m", base_url=server.base_url, api="responses")
        user = Message(role="user", content="Look.")

        async def main():
            with on_token(lambda request, piece: None) if streamed else contextlib.nullcontext():
                said_so = (await model.complete(Request(messages=(user,)))).as_message()
                answer = Message(role="tool", content="42", tool_call_id="c1")
                completion = await model.complete(Request(messages=(user, said_so, answer)))
            await innermost(model).aclose()
            return completion

        assert asyncio.run(main()).text == "done"
    seen = scripted.requests[1].messages
    assert [message.role for message in seen] == ["user", "assistant", "tool"]
    assert [item["encrypted_content"] for item in seen[1].items] == ["gAAAA..."]
    assert seen[1].tool_calls == (call,)
