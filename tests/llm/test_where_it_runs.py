"""One endpoint's model from threads, notebooks, loops of the user's, and forked children, over real sockets."""

import asyncio
import os
import signal
import threading
import warnings

import pytest

from textgrad_engine import dispatch, ops
from textgrad_engine.llm import Fallback, Message, OpenAIModel, Request, innermost, resolve
from textgrad_engine.testing import FunctionModel, LoopbackServer, ScriptedModel
from textgrad_engine.testing.wire import Connection

USER = [{"role": "user", "content": "{text}"}]


@pytest.fixture
def made(monkeypatch):
    """Every connection that any server of the test has had."""
    connections = []
    begun = Connection.connection_made

    def count(self, transport):
        connections.append(self)
        begun(self, transport)

    monkeypatch.setattr(Connection, "connection_made", count)
    return connections


@pytest.fixture
def model(made):
    """A resolved model of a server that echoes; its connections are closed in the end."""
    with LoopbackServer(FunctionModel(lambda request: request.messages[-1].text)) as server:
        model = resolve("m", base_url=server.base_url)
        yield model
        dispatch.run(innermost(model).aclose)


def answer(model, text):
    return ops.chat_completion(model, USER, {"text": text})


def request(text):
    return Request(messages=(Message(role="user", content=text),))


def test_one_client_serves_a_whole_script(model, made):
    """A connection is made once, not for each call: that would be a TLS handshake each time."""
    assert [answer(model, str(number)).data for number in range(50)] == [str(number) for number in range(50)]
    assert len(made) == 1


def test_many_threads_share_one_client(model, made):
    """Each thread gets its own answers, and no thread brings a loop or a client of its own."""
    got = {}

    def work(name):
        got[name] = [answer(model, f"{name}/{number}").data for number in range(20)]

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {name: [f"{name}/{number}" for number in range(20)] for name in range(8)}
    assert len(made) <= 8


def test_a_notebook_reads_and_awaits_in_its_running_loop(model, made):
    """A cell is run by a loop in the main thread; reading blocks that loop for a moment, and hangs nothing."""

    async def cell(text):
        first = answer(model, text)
        second = answer(model, text + " again")
        return first.data, (await second).data

    assert threading.current_thread() is threading.main_thread()
    with asyncio.Runner() as notebook:
        assert notebook.run(cell("one")) == ("one", "one again")
        assert notebook.run(cell("two")) == ("two", "two again")
    assert len(made) <= 2


def test_a_loop_of_the_users_asks_by_itself(model):
    """A web handler awaits the model on its own loop, beside the private one, with a client of its own there."""

    async def handler():
        try:
            own = await asyncio.gather(*(model.complete(request(str(number))) for number in range(10)))
            private = [answer(model, str(number)) for number in range(10)]
            return [each.text for each in own], [(await each).data for each in private]
        finally:
            await innermost(model).aclose()

    numbers = [str(number) for number in range(10)]
    assert asyncio.run(handler()) == (numbers, numbers)
    assert asyncio.run(handler()) == (numbers, numbers)


def test_what_resolve_gives_is_closed_as_a_client_is():
    """By ``aclose``, or at the end of ``async with``; what is inside of it holds the connections of this loop."""

    async def main():
        with LoopbackServer(FunctionModel(lambda request: request.messages[0].text)) as server:
            async with resolve("m", base_url=server.base_url, api_key="k") as model:
                first = (await model.complete(request("one"))).text
                held = innermost(model)._clients.items()
            left = innermost(model)._clients.items()
            again = (await model.complete(request("two"))).text  # by new connections
            await model.aclose()
        return first, again, len(held), left, innermost(model)._clients.items()

    assert asyncio.run(main()) == ("one", "two", 1, [], [])


def test_both_models_of_a_fallback_are_closed_and_those_without_connections_let_it_be():
    """What a model of one's own has to close it says by the same name."""
    closed = []

    class Own(ScriptedModel):
        async def aclose(self):
            closed.append(self.name)

    async def main():
        async with resolve(Fallback(Own([], name="first"), Own([], name="second"))):
            pass
        async with resolve(ScriptedModel([])):
            pass

    asyncio.run(main())
    assert closed == ["first", "second"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_clean_and_leaves_its_parent_alone(model, made):
    """It asks by connections of its own; on the parent's, the two would read each other's answers."""
    assert answer(model, "before").data == "before"
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
        child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            try:
                said = " ".join(answer(model, f"child{number}").data for number in range(3))
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"
            os.write(writing, said.encode())
        finally:
            os._exit(0)
    os.close(writing)
    parents = [answer(model, f"parent{number}").data for number in range(20)]
    with os.fdopen(reading, "rb") as pipe:
        childs = pipe.read().decode()
    os.waitpid(child, 0)
    assert childs == "child0 child1 child2"
    assert parents == [f"parent{number}" for number in range(20)]
    assert len(made) == 2


def test_a_call_under_way_when_the_process_forks_is_answered_in_the_parent():
    """The parent's loop goes on as if nothing had been."""
    gate = threading.Event()

    async def held(asked):
        await asyncio.get_running_loop().run_in_executor(None, gate.wait)
        return asked.messages[-1].text

    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    with LoopbackServer(FunctionModel(held)) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        under_way = answer(model, "hello")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        gate.set()
        assert under_way.data == "hello"
        dispatch.run(model.aclose)
