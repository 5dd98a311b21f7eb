import asyncio
import traceback

import httpx
import pytest
import respx
from pydantic import SecretStr

from textgrad_engine import errors
from textgrad_engine.llm import OpenAIModel, innermost, resolve
from textgrad_engine.llm.cachekey import keys_of
from textgrad_engine.llm.headers import concealed_headers, plain, secrets_in
from textgrad_engine.llm.redact import secrets_of
from textgrad_engine.testing import FunctionModel

URL = "https://gateway.example.com/v1/chat/completions"
GATEWAY = "https://gateway.example.com/v1"
SECRET = "canary/gateway.secret+0123"
ANSWER = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}],
    "model": "m",
    "usage": {"prompt_tokens": 11, "completion_tokens": 7},
}


@pytest.fixture
def router():
    with respx.mock(using="httpcore2", assert_all_called=False) as mocked:
        yield mocked


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"x team": "a"}, "'x team' has no name that a header can have"),
        ({"": "a"}, "'' has no name"),
        ({"x-a:": "a"}, "'x-a:' has no name"),
        ({"x-ä": "a"}, "has no name"),
        ({1: "a"}, "1 has no name"),
        ({"Content-Type": "a"}, "'Content-Type' says how a request is sent.*leave it out"),
        ({"accept-encoding": "br"}, "says how a request is sent"),
        ({"x-a": ""}, "'x-a' has no value"),
        ({"x-a": 5}, "'x-a' has a value of the type int, and should have a text"),
        ({"x-a": None}, "type NoneType"),
        ({"x-a": "a\r\nx-b: c"}, "not plain ASCII in one line"),
        ({"x-a": "grün"}, "not plain ASCII"),
        ({"x-a": " a"}, "without spaces around it"),
        ({"x-a": "a", "X-A": "b"}, "'X-A' is there as 'x-a' already"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_where_the_model_is_made(headers, problem):
    """The HTTP package would say it in the middle of a run, with the value."""
    with pytest.raises(ValueError, match=f"the header {problem}|{problem}"):
        OpenAIModel("m", base_url=GATEWAY, headers=headers)


@pytest.mark.parametrize("headers", ["x-key: abc", ["x-key", "abc"], 5, b"abc", ""])
def test_headers_that_are_no_mapping_are_refused_without_being_shown(headers):
    """A line as curl takes it; it may hold a key."""
    with pytest.raises(TypeError, match=r'headers are values by name, such as \{"x-team": "search"\}, got a') as raised:
        OpenAIModel("m", base_url=GATEWAY, headers=headers)
    assert "abc" not in str(raised.value)


@pytest.mark.parametrize("make", [OpenAIModel, resolve])
@pytest.mark.parametrize("value", [f"{SECRET}\n", SecretStr(f"{SECRET}\n")])
def test_no_frame_of_an_error_about_a_secret_shows_it(make, value):
    """Debuggers and `pytest -l` list the local variables of the frames that raised."""
    with pytest.raises(ValueError, match="x-api-key") as caught:
        make("m", base_url=GATEWAY, headers={"x-api-key": value})
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    shown = [repr(value) for frame in frames[1:] for name, value in frame.f_locals.items() if name != "self"]
    assert len(shown) > 10
    assert [each for each in shown if SECRET in each] == []
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("wrong", [b"k-0123", ["k-0123"], {"key": "k-0123"}])
@pytest.mark.parametrize("make", [OpenAIModel, resolve])
def test_a_key_of_a_wrong_kind_is_refused_without_being_shown(make, wrong):
    """Errors are logged, and sent to trackers."""
    with pytest.raises(TypeError, match=r"^api_key must be a text, a SecretStr or None, got a value of type \w+$"):
        make("openai/m", api_key=wrong)


def test_headers_belong_to_an_endpoint():
    """An option that means nothing is refused, not ignored."""
    with pytest.raises(TypeError, match="headers belong to a model's name"):
        resolve(FunctionModel(lambda request: ""), headers={"x-a": "b"})
    with pytest.raises(TypeError, match="'simulated/tickets' is asked in this process"):
        resolve("simulated/tickets", headers={"x-a": "b"})


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_headers_are_sent_with_each_request_beside_the_usual_ones(router, ask, api):
    """Portkey's and Helicone's gateways, and Azure's, want some of their own."""
    route = router.post(url__startswith=GATEWAY).mock(return_value=httpx.Response(500))
    headers = {"X-Team": "search", "x-gateway-key": SECRET, "user-agent": "ours"}
    model = OpenAIModel("m", base_url=GATEWAY, api_key="k-0123456789", api=api, headers=headers)

    async def main():
        for _ in range(2):
            with pytest.raises(errors.ServerFailed):
                await model.complete(ask())
        await model.aclose()

    asyncio.run(main())
    for call in route.calls:
        got = call.request.headers
        assert (got["x-team"], got["x-gateway-key"], got["user-agent"]) == ("search", SECRET, "ours")
        assert (got["authorization"], got["content-type"]) == ("Bearer k-0123456789", "application/json")
        assert len(got.get_list("user-agent")) == 1


@pytest.mark.parametrize("base_url", [GATEWAY, "https://api.openai.com/v1"])
def test_a_header_may_stand_in_the_place_of_the_key(router, ask, send, monkeypatch, base_url):
    """A gateway with Basic authentication has no key; one that is in the environment is not sent then."""
    monkeypatch.setenv("OPENAI_API_KEY", "")
    route = router.post(f"{base_url}/chat/completions").mock(return_value=httpx.Response(200, json=ANSWER))
    model = OpenAIModel("m", base_url=base_url, headers={"authorization": "Basic dXNlcjpwYXNz"})
    assert send(model, ask()).text == "fine"
    assert route.calls[0].request.headers.get_list("authorization") == ["Basic dXNlcjpwYXNz"]


@pytest.mark.parametrize(
    "place", ["https://elsewhere.example.net", "http://gateway.example.com", "https://gateway.example.com:8443"]
)
def test_a_redirect_takes_no_header_elsewhere(router, ask, send, place):
    """The HTTP package holds back the key alone; the secret of a gateway went wherever an answer pointed."""
    there = f"{place}/v1/chat/completions"
    route = router.post(there).mock(return_value=httpx.Response(200, json=ANSWER))  # first: the other has no port
    router.post(URL).mock(return_value=httpx.Response(307, headers={"location": there}))
    headers = {"X-Gateway-Key": SECRET, "x-team": "search"}
    send(OpenAIModel("m", base_url=GATEWAY, api_key="k-0123456789", headers=headers), ask())
    got = route.calls[0].request.headers
    assert not {"x-gateway-key", "x-team", "authorization"} & set(got.keys())
    assert route.calls[0].request.content


def test_a_redirect_on_the_same_host_keeps_them(router, ask, send):
    """Such as one to another path."""
    router.post(URL).mock(return_value=httpx.Response(307, headers={"location": "/v2/chat/completions"}))
    route = router.post("https://gateway.example.com/v2/chat/completions")
    route.mock(return_value=httpx.Response(200, json=ANSWER))
    send(OpenAIModel("m", base_url=GATEWAY, api_key="k-0123456789", headers={"x-team": "search"}), ask())
    assert route.calls[0].request.headers["x-team"] == "search"


@pytest.mark.parametrize(
    "name", ["x-portkey-api-key", "Helicone-Auth", "cf-aig-authorization", "api-key", "X_TOKEN", "X-AuthToken"]
)
def test_a_secret_is_one_by_its_name(name):
    """In Python a value comes from `os.environ` as a plain text."""
    model = OpenAIModel("m", base_url=GATEWAY, headers={name: f"Bearer {SECRET}"})
    for said in (repr(model), str(vars(model)), repr(resolve(model))):
        assert SECRET not in said
        assert name in said
    assert {f"Bearer {SECRET}", SECRET} <= set(secrets_of(resolve(model)))


@pytest.mark.parametrize("value", ["Bearer abcdef0123456789abcdef", "https://ann:pw1@host/v1", "sk-0123456789abcdef01"])
def test_a_secret_is_one_by_its_form(value):
    """Whatever the name of the header that passes it on."""
    model = OpenAIModel("m", base_url=GATEWAY, headers={"x-upstream": value})
    for said in (repr(model), str(vars(model)), str(model.cache_key)):
        assert value not in said
    assert value in secrets_of(resolve(model))


def test_what_is_no_secret_is_shown_and_not_taken_out_of_texts():
    """The address of an application, as OpenRouter wants it, may stand in data, too."""
    address = "https://example.com/our-application"
    model = OpenAIModel("m", base_url=GATEWAY, headers={"http-referer": address, "x-portkey-provider": "openai"})
    assert address in repr(model)
    assert address not in secrets_of(model)
    hidden = concealed_headers({"http-referer": SecretStr(address)})
    assert (plain(hidden), len(secrets_in(hidden))) == ({}, 1)


def test_an_error_that_quotes_a_header_is_shown_without_it(router, ask, send):
    """Gateways say which key is wrong."""
    said = {"error": {"message": f"unknown gateway key {SECRET}, got 'Bearer {SECRET}'"}}
    router.post(URL).mock(return_value=httpx.Response(401, json=said))
    model = OpenAIModel("m", base_url=GATEWAY, api_key="k-0123456789", headers={"x-gateway-auth": f"Bearer {SECRET}"})
    with pytest.raises(errors.AuthenticationFailed, match=r"unknown gateway key \[redacted\]") as caught:
        send(model, ask())
    assert SECRET not in str(caught.value)


def test_headers_tell_kept_answers_apart_and_secrets_do_not(ask):
    """Another route of a gateway is another model; another key is not."""

    def key(headers):
        return keys_of(OpenAIModel("m", base_url=GATEWAY, headers=headers), ask())[0]

    assert key(None) == key({}) == key({"x-gateway-key": "one"}) == key({"x-gateway-key": "two"})
    assert len({key(None), key({"x-route": "a"}), key({"x-route": "b"})}) == 3
    assert key({"X-Route": "a", "x-b": "c"}) == key({"x-b": "c", "x-route": "a"})


def test_a_resolved_name_has_them():
    """The command line comes this way."""
    model = innermost(resolve("m", base_url=GATEWAY, headers={"x-team": "search"}))
    assert model.headers == {"x-team": "search"}
