import asyncio
import re
import ssl
import subprocess
import sys
import traceback

import pytest

from textgrad_engine.errors import ConnectionFailed, RequestRefused
from textgrad_engine.llm import Completion, OpenAIModel, transport
from textgrad_engine.llm.charged import was_sent
from textgrad_engine.llm.transport import REFUSE_REQUESTS, WIDE, connect
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer

try:
    import aiohttp
except ImportError:
    aiohttp = None

needs_aiohttp = pytest.mark.skipif(aiohttp is None, reason="needs openai[aiohttp]")


def ask_many(model, ask, many):
    async def main():
        try:
            return await asyncio.gather(*(model.complete(ask(str(i))) for i in range(many)), return_exceptions=True)
        finally:
            await model.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize("wide", [pytest.param(True, marks=needs_aiohttp), False])
def test_hundreds_at_once_each_get_their_own_answer(ask, monkeypatch, wide):
    """With aiohttp and without it; all are at the server at the same time."""
    monkeypatch.setattr("textgrad_engine.llm.clients.has_aiohttp", lambda: wide)
    made = []

    def connected(*args, wide, **others):
        made.append(wide)
        return connect(*args, wide=wide, **others)

    monkeypatch.setattr("textgrad_engine.llm.clients.connect", connected)
    here, arrived = [], asyncio.Event()

    class TogetherModel:
        """Answers nobody before all are there."""

        name = "together"

        async def complete(self, request):
            here.append(request)
            if len(here) == 200:
                arrived.set()
            await asyncio.wait_for(arrived.wait(), 60)
            return Completion(text=request.messages[0].content, model="together")

    with LoopbackServer(TogetherModel()) as server:
        answers = ask_many(OpenAIModel("m", base_url=server.base_url), ask, 200)
        assert [answer.text for answer in answers] == [str(i) for i in range(200)]
        assert server.peak == 200
    assert made == ([False, True] if wide else [False])  # the first 64 go the usual way


@needs_aiohttp
def test_with_aiohttp_what_broke_off_is_not_taken_for_what_was_never_sent(ask):
    """The SDK calls a lost connection a timeout of connecting; a budget must hold what it may have cost."""
    script = [None] * (WIDE + 1) + [Fault(0), Fault(200, body="x" * 99, drop=True)]
    with LoopbackServer(FunctionModel(lambda request: "ok"), script=script, latency=0.1) as server:
        address = server.base_url
        results = ask_many(OpenAIModel("m", base_url=address), ask, len(script))
    failed = [result for result in results if isinstance(result, Exception)]
    assert [type(error) for error in failed] == [ConnectionFailed] * 2
    assert [error.sent for error in failed] == [None, None]
    absent = ask_many(OpenAIModel("m", base_url=address), ask, WIDE + 4)
    assert {type(error) for error in absent} == {ConnectionFailed}
    assert {error.sent for error in absent} == {False}


@pytest.mark.parametrize("wide", [pytest.param(True, marks=needs_aiohttp), False])
def test_what_is_no_http_is_a_broken_connection_with_many_in_flight_too(ask, monkeypatch, wide):
    """A run ended with a traceback of aiohttp's at one garbled response, where it is tried again without aiohttp."""
    monkeypatch.setattr("textgrad_engine.llm.clients.WIDE", 0)
    monkeypatch.setattr("textgrad_engine.llm.clients.has_aiohttp", lambda: wide)
    garbled = [Fault(99, body="x"), Fault(200, headers={"a": "\0"}, body="x")]
    with LoopbackServer(FunctionModel(lambda request: "ok"), script=garbled) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        failed = [each for _ in garbled for each in ask_many(model, ask, 1)]
    assert [type(error) for error in failed] == [ConnectionFailed] * 2
    assert [error.sent for error in failed] == [None] * 2
    assert all("\n" not in str(error) for error in failed)


@pytest.mark.parametrize("wide", [pytest.param(True, marks=needs_aiohttp), False])
def test_an_address_with_a_password_is_asked_with_many_in_flight_too(ask, monkeypatch, wide):
    """A server behind a password answered 64 calls at once, and aiohttp ended the run at the next one."""
    monkeypatch.setattr("textgrad_engine.llm.clients.WIDE", 0)
    monkeypatch.setattr("textgrad_engine.llm.clients.has_aiohttp", lambda: wide)
    heard = []

    class Server(LoopbackServer):
        async def respond(self, method, path, headers, body):
            heard.append(headers["authorization"])
            return await super().respond(method, path, headers, body)

    with Server(FunctionModel(lambda request: "ok")) as server:
        address = server.base_url.replace("://", "://ann:pw@")
        answers = ask_many(OpenAIModel("m", base_url=address, api_key="k"), ask, 2)
    assert [getattr(each, "text", each) for each in answers] == ["ok"] * 2
    assert heard == ["Basic YW5uOnB3"] * 2


def test_a_socks_proxy_is_asked_with_many_in_flight_too(ask, monkeypatch):
    """aiohttp speaks HTTP to it, which it does not answer: all calls above 64 at once failed."""
    monkeypatch.delenv(REFUSE_REQUESTS, raising=False)
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:9")
    monkeypatch.setattr("textgrad_engine.llm.clients.WIDE", 0)
    monkeypatch.setattr("textgrad_engine.llm.clients.has_aiohttp", lambda: True)
    made = []

    def connected(host, *args, wide, **others):
        made.append((host, wide))
        raise RequestRefused("this is as far as it goes")

    monkeypatch.setattr("textgrad_engine.llm.clients.connect", connected)
    for address in ("https://far.invalid/v1", "http://localhost:9/v1"):
        ask_many(OpenAIModel("m", base_url=address, api_key="k"), ask, 1)
    assert made == [("far.invalid", False), ("localhost", True)]


@needs_aiohttp
def test_a_program_that_ends_with_connections_of_aiohttp_ends_quietly():
    """A timer may be the last that knows a model, and the model is gone with the loop: too late to close anything."""
    script = """
import asyncio
from textgrad_engine.dispatch.thread import loop_thread
from textgrad_engine.llm import Message, OpenAIModel, Request, clients
from textgrad_engine.testing import LoopbackServer, ScriptedModel

clients.WIDE = 0

def ask(url):
    model, loop = OpenAIModel("m", base_url=url), loop_thread().loop
    asyncio.run_coroutine_threadsafe(model.complete(Request([Message("user", "Hi")])), loop).result()
    loop.call_soon_threadsafe(loop.call_later, 3600, id, model)

with LoopbackServer(ScriptedModel(["Hello"])) as server:
    ask(server.base_url)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_aiohttp
def test_with_aiohttp_real_requests_are_refused_in_tests_too(monkeypatch):
    """The other transport must not be the way round the guard."""
    monkeypatch.setenv(REFUSE_REQUESTS, "1")

    async def main():
        async with connect("api.openai.com", 5, wide=True) as client:
            await client.get("https://api.openai.com/v1/models")

    with pytest.raises(RequestRefused, match="allow_requests"):
        asyncio.run(main())


def test_a_proxy_of_the_environment_is_used_for_the_network_and_not_for_this_machine(monkeypatch):
    """A company's proxy is often the only way out, and never the way to a server of one's own."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")

    async def main():
        async with connect("api.openai.com", 5, wide=False) as far, connect("127.0.0.1", 5, wide=False) as near:
            return [len(client._mounts) for client in (far, near)]

    far, near = asyncio.run(main())
    assert far > 0
    assert near == 0


@needs_aiohttp
def test_with_aiohttp_a_proxy_of_the_environment_is_not_asked_for_this_machine(ask, monkeypatch):
    """The first 64 calls go past it, and so must those above."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with LoopbackServer(FunctionModel(lambda request: "ok"), latency=0.1) as server:
        results = ask_many(OpenAIModel("m", base_url=server.base_url), ask, WIDE + 2)
    assert {getattr(result, "text", result) for result in results} == {"ok"}


def test_clients_share_what_is_read_of_certificates_while_the_environment_names_the_same(monkeypatch, tmp_path):
    """To read them takes longer than a call; who names others has a client that knows those."""
    for name in transport._OF_CERTIFICATES:
        monkeypatch.delenv(name, raising=False)
    made = []
    monkeypatch.setattr("httpx2.create_ssl_context", lambda: made.append(True) or ssl.create_default_context())
    transport._encryption.cache_clear()
    for certificates in (None, None, str(tmp_path)):
        if certificates:
            monkeypatch.setenv("SSL_CERT_DIR", certificates)
        asyncio.run(connect("127.0.0.1", 1.0, wide=False).aclose())
    transport._encryption.cache_clear()
    assert len(made) == 2


@pytest.mark.parametrize(
    ("name", "value", "repair"),
    [
        ("HTTPS_PROXY", "http://ann:CANARY@proxy:port", r"\(HTTPS_PROXY\) holds what is no address of a proxy"),
        ("all_proxy", "ftp://ann:CANARY@proxy", r"\(all_proxy\) holds what is no address of a proxy"),
        ("SSL_CERT_FILE", "/nowhere/CANARY", r"\(SSL_CERT_FILE\) that cannot be read: no such file"),
    ],
)
def test_an_environment_that_lets_nothing_out_is_named_with_its_repair(ask, monkeypatch, name, value, repair):
    """It is no fault of the code, of which a traceback would tell, and a proxy's address may hold a password."""
    for other in (*transport._OF_CERTIFICATES, *transport._OF_PROXIES):
        monkeypatch.delenv(other, raising=False)
        monkeypatch.delenv(other.lower(), raising=False)
    monkeypatch.setenv(name, value)
    transport._encryption.cache_clear()
    (failed,) = ask_many(OpenAIModel("m", base_url="http://far.invalid/v1"), ask, 1)
    transport._encryption.cache_clear()
    assert isinstance(failed, RequestRefused)
    assert re.search(rf"nothing was sent to far\.invalid: .*{repair}", str(failed))
    assert "CANARY" not in "".join(traceback.format_exception(failed))
    assert not was_sent(failed)


def test_a_proxy_that_needs_a_package_says_which(ask, monkeypatch):
    """ALL_PROXY with a SOCKS address is usual where the way out is a tunnel; the HTTP package names one of its own."""
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    (failed,) = ask_many(OpenAIModel("m", base_url="http://far.invalid/v1"), ask, 1)
    assert isinstance(failed, RequestRefused)
    assert "(ALL_PROXY) names a SOCKS proxy" in str(failed)
    assert "`pip install socksio`" in str(failed)
