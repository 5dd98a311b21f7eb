"""The checks that benchmarks/conformance makes of servers that are not ours, made here of one that is."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.errors import ContextOverflow
from textgrad_engine.llm import Completion, Request, Usage
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer

FOLDER = Path(__file__).parents[2] / "benchmarks" / "conformance"
NAMES = ("answers", "servers", "checks", "run")
KEY = "sk-conformance-0123456789abcdef"


@pytest.fixture
def conformance(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script, whose files import each other as scripts in one folder do."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setenv("OPENAI_API_KEY", "")
    for name in NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module("run")
    for name in NAMES:
        sys.modules.pop(name, None)


async def answer(request: Request) -> str | Completion:
    """What a good server would say."""
    said = importlib.import_module("answers")
    text = request.messages[-1].text
    if text == said.COUNT and request.config.max_tokens == 1000:
        await asyncio.Event().wait()  # until the client goes away
    if len(text) > 5000:
        raise ContextOverflow("this model's maximum context length is 4096 tokens")
    wanted = request.config.response_format
    found = next(answer for phrase, answer in said.HEARD if phrase in text)
    if wanted is not None and found == said.TALK:
        found = said.JSON
    cut = request.config.max_tokens == 2
    usage = Usage(input_tokens=9, output_tokens=3, calls=1)
    return Completion(text=found, finish_reason="length" if cut else "stop", usage=usage)


def asked(conformance: Any, server: LoopbackServer, *titles: str, key: str | None = KEY) -> dict[str, tuple[str, bool]]:
    """What the checks find out about a server of ours."""
    kinds = ("talk", "json", "critic", "optimizer", "slow", "endless", "cut", "long")
    models = dict.fromkeys(kinds, "parrot")
    target = importlib.import_module("servers").Server("ours", server.base_url, key, models)
    return {title: asyncio.run(conformance.outcome(title, target)) for title in titles or conformance.CHECKS}


def title(conformance: Any, begin: str) -> str:
    """The one check whose title begins so."""
    (found,) = [each for each in conformance.CHECKS if each.startswith(begin)]
    return found


def test_a_good_server_passes_every_check(conformance: Any) -> None:
    """What the checks want is what the protocol says, no habit of one server."""
    with LoopbackServer(FunctionModel(answer), api_key=KEY) as server:
        found = asked(conformance, server)
    assert [each for each, (_, good) in found.items() if not good] == [], found
    missing = {each for each, (text, _) in found.items() if text.startswith("not offered")}
    assert missing == {title(conformance, begin) for begin in ("429", "500", "unknown model")}


@pytest.mark.parametrize(
    ("begin", "body"),
    [
        ("plain completion", {"choices": [{"message": {"content": "Groesse"}, "finish_reason": "stop"}]}),
        ("usage counted", {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}),
        ("cut off", {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}),
        ("64 calls", {"choices": []}),
        ("streamed", {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}),
        ("structured", {"choices": [{"message": {"content": '{"verdict": 1}'}, "finish_reason": "stop"}]}),
        ("Responses API: plain", {"status": "completed", "output": []}),
        ("a training step", {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}),
    ],
)
def test_a_bad_server_fails_the_check(conformance: Any, begin: str, body: dict[str, Any]) -> None:
    """Every check can fail: each is shown an answer that it must not let pass."""
    name = title(conformance, begin)
    with LoopbackServer(FunctionModel(answer), faults=lambda number: Fault(200, body=body)) as server:
        text, good = asked(conformance, server, name, key=None)[name]
    assert not good
    assert text.startswith("**failed**: ")


def test_a_key_that_is_let_in_fails_the_check(conformance: Any) -> None:
    """A server that is said to want a key, and takes any."""
    name = title(conformance, "wrong key")
    with LoopbackServer(FunctionModel(answer)) as server:
        text, good = asked(conformance, server, name)[name]
    assert (good, "got an answer" in text) == (False, True)


def test_the_table_has_a_row_a_check_and_a_column_a_server(conformance: Any) -> None:
    """Bars in what a server said must not break it."""
    made = importlib.import_module("servers").Server
    servers = [
        made("one", "http://127.0.0.1:1/v1", None, {}, "one 1.0"),
        made("two", "http://127.0.0.1:1/v1", None, {}),
    ]
    text = conformance.table(servers, {"a | b": ["ok", "**failed**: x | y"]})
    assert text.splitlines()[0].split(": ")[1].startswith("one 1.0")
    assert text.splitlines()[2:] == [
        "| check | one | two |",
        "| --- | --- | --- |",
        "| a \\| b | ok | **failed**: x \\| y |",
    ]


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def test_a_server_is_stopped_whatever_happens(conformance: Any, tmp_path: Path) -> None:
    """An interrupted run leaves no process behind, and none that ignores the first request to end."""
    servers = importlib.import_module("servers")
    port = servers.free_port()
    stubborn = (
        "import http.server as h, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"h.ThreadingHTTPServer(('127.0.0.1', {port}), h.SimpleHTTPRequestHandler).serve_forever()"
    )
    place = servers.Place(tmp_path, patience=0.1)

    def interrupted() -> None:
        with place.running("web", [sys.executable, "-c", stubborn], port, "/", 60):
            assert listens(port)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not listens(port)


def test_a_server_that_does_not_start_says_why(conformance: Any, tmp_path: Path) -> None:
    """The end of what it printed, at once and not when the time is up."""
    servers = importlib.import_module("servers")
    command = [sys.executable, "-c", "raise SystemExit('no such model')"]
    with pytest.raises(SystemExit, match=r"web ended with code 1; .*web\.log ends with:\nno such model"):
        servers.Place(tmp_path).running("web", command, servers.free_port(), "/", 3600).__enter__()
