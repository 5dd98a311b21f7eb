"""`pytest -l` prints the local variables of every frame of a traceback, and so do error trackers: no key among them."""

import os
import re
import subprocess
import sys
from pathlib import Path

KEY = "canary/without.any=known+form0123"

RUN = """
import ast, asyncio, contextlib, functools, gc, math, os

import pytest

from textgrad_engine.llm import (
    Completion, GenerateConfig, Message, OpenAIModel, Request, ResponseFormat, innermost, on_token, resolve
)
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer

# pytest keeps what it makes of sixty tracebacks, and parses the file of each frame anew.
gc.disable()
ast.parse = functools.cache(ast.parse)

SSE = {"content-type": "text/event-stream"}
FORMAT = ResponseFormat(name="A", json_schema={"type": "object"})


def plain(request):
    return Completion(text="no JSON")


def broken(request, piece):
    raise KeyError("a bug of the listener")


def ask(*script, api="chat", listener=None, seconds=None, calls=1, timeout=60.0, stack=False, **config):
    request = Request(messages=(Message(role="user", content="hello"),), config=GenerateConfig(**config))
    with LoopbackServer(FunctionModel(plain), script=script) as server:

        async def main():
            model = OpenAIModel(
                "m", base_url=server.base_url, api_key=os.environ["CANARY"], api=api, timeout=timeout
            )
            used = resolve(model) if stack else model
            try:
                with on_token(listener) if listener else contextlib.nullcontext():
                    asked = asyncio.gather(*(used.complete(request) for _ in range(calls)))
                    await asyncio.wait_for(asked, seconds)
            finally:
                await model.aclose()

        asyncio.run(main())


class Hidden(bytes):
    def __repr__(self):
        return "hidden"


LONG = Hidden(b"x" * 2**25)


def body():
    return Hidden(f"<html>{os.environ['CANARY']}".encode())


def events():
    return Hidden(f"data: {os.environ['CANARY']}\\n\\n".encode())


def quiet(request, piece):
    pass


TURNS = [("chat", None), ("responses", quiet)], [("responses", None), ("chat", quiet)]


# Each way to fail on both APIs, streamed and not; which API is streamed takes turns.
def pytest_generate_tests(metafunc):
    if metafunc.cls:
        turn = sorted(vars(TestBoth)).index(metafunc.function.__name__) % 2
        metafunc.parametrize(("api", "listener"), TURNS[turn])


class TestBoth:
    def test_401(self, api, listener): ask(Fault(401), api=api, listener=listener)
    def test_500(self, api, listener): ask(Fault(500), api=api, listener=listener)
    def test_html(self, api, listener): ask(Fault(200, body=body()), api=api, listener=listener)
    def test_event(self, api, listener): ask(Fault(200, SSE, events()), api=api, listener=listener)
    def test_drop(self, api, listener): ask(Fault(200, body="x" * 999, drop=True), api=api, listener=listener)
    def test_long(self, api, listener): ask(Fault(200, body=LONG), api=api, listener=listener)
    def test_hang(self, api, listener): ask(Fault(delay=math.inf), api=api, listener=listener, seconds=0.3)
    def test_silence(self, api, listener): ask(Fault(delay=math.inf), api=api, listener=listener, timeout=0.2)
    def test_no_json(self, api, listener): ask(api=api, listener=listener, response_format=FORMAT, stack=True)
    def test_extra(self, api, listener): ask(api=api, listener=listener, extra={"x": object()})
    def test_reserved(self, api, listener): ask(api=api, listener=listener, extra={"n": 3})
    def test_echo(self, api, listener): ask(api=api, listener=listener); assert False
    def test_stack(self, api, listener): ask(Fault(400), api=api, listener=listener, stack=True)


def test_listener(): ask(listener=broken)
def test_wide(): ask(*[Fault(500)] * 80, calls=80)
def test_wide_hang(): ask(*[Fault(delay=math.inf)] * 80, calls=80, seconds=1)
def test_typo(): OpenAIModel("m", api_key=os.environ["CANARY"], temprature=1)
def test_api(): OpenAIModel("m", api_key=os.environ["CANARY"], api="other")
def test_unsupported(): OpenAIModel("m", api_key=os.environ["CANARY"], api="responses", seed=1)
def test_address(): OpenAIModel("m", "nonsense", api_key=os.environ["CANARY"])
def test_unknown(): resolve("nonsense", api_key=os.environ["CANARY"])
def test_setting(): resolve("openai/m", api_key=os.environ["CANARY"], temprature=1)
def test_embedded(): resolve("simulated/none", api_key=os.environ["CANARY"])
def test_range(): resolve("openai/m", api_key=os.environ["CANARY"], max_tokens=0)
def test_format(): asyncio.run(
    OpenAIModel("m", api_key=os.environ["CANARY"] + "\\x00").complete(Request(messages=()))
)
def test_network(): asyncio.run(OpenAIModel("m", api_key=os.environ["CANARY"]).complete(Request(messages=())))
"""

STEPS = """
import asyncio, math, os, sys, traceback

from textgrad_engine.llm import Message, OpenAIModel, Request
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer


async def main(address):
    model = OpenAIModel("m", base_url=address, api_key=os.environ["CANARY"])
    request = Request(messages=(Message(role="user", content="hello"),))
    await model.complete(request)
    for turns in range(60):
        asked = asyncio.ensure_future(model.complete(request))
        for _ in range(turns):
            await asyncio.sleep(0)
        if asked.done():
            break
        asked.cancel()
        try:
            await asked
        except asyncio.CancelledError as error:
            print(turns, "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format()))
    print("in all", turns)
    await model.aclose()


with LoopbackServer(FunctionModel(lambda request: "ok")) as server:
    asyncio.run(main(server.base_url))
"""


def run(tmp_path: Path, *command: str) -> str:
    env = {**os.environ, "CANARY": KEY, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take seconds to load
    env.pop("OPENAI_API_KEY", None)
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=env, timeout=150, cwd=tmp_path
    )
    return done.stdout + done.stderr


def test_the_locals_of_a_failing_test_do_not_show_the_key(tmp_path: Path) -> None:
    """Every way to fail that a user meets, on both APIs, streamed or not, few calls or many."""
    (tmp_path / "test_run.py").write_text(RUN)
    options = ("-p", "textgrad_engine.testing.plugin", "-p", "no:cacheprovider", "--showlocals", "--tb=long")
    said = run(tmp_path, "-m", "pytest", *options, "test_run.py")
    assert re.search(r"\b39 failed in", said), said[-3000:]
    assert "SecretStr('**********')" in said  # the frames with the key in them are shown
    assert KEY not in said
    assert KEY[:16] not in said


def test_a_call_that_is_given_up_at_any_moment_does_not_show_the_key(tmp_path: Path) -> None:
    """Cancelled while it connects, writes or waits, deep in the HTTP package, whose frames hold the headers."""
    (tmp_path / "steps.py").write_text(STEPS)
    said = run(tmp_path, "steps.py")
    turns = re.search(r"in all (\d+)", said)
    assert turns, said
    assert int(turns[1]) > 3
    assert "openai.py" in said
    assert KEY not in said
