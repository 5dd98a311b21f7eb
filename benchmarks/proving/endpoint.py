"""The simulated task as an endpoint: an HTTP server in a process of its own that writes down what it is asked."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from proving.foreign import READERS
from textgrad_engine.llm import Completion, Request
from textgrad_engine.llm.cachekey import repeat
from textgrad_engine.testing import LoopbackServer, simulated_task
from textgrad_engine.testing.simulated import ParcelsModel


@dataclass(frozen=True)
class Call:
    """One answered request.

    Attributes:
        at: when it was answered, in seconds since the epoch.
        purpose: what it was for, as its words say.
        tokens: of the request and of the answer.
    """

    at: float
    purpose: str
    tokens: int


class Noting:
    """The model, with a list of what it was asked.

    A critic or proposer that is asked the same again gives another sample, as at a temperature; the task model does
    not.

    Args:
        model: answers.
        latency: seconds that it waits before it does.
        now: the time.
    """

    name = "parcels"
    free = True

    def __init__(self, model: ParcelsModel, latency: float = 0.0, now: Callable[[], float] = time.time) -> None:
        self.model = model
        self.latency = latency
        self.now = now
        self.calls: list[Call] = []
        self._asked: Counter[str] = Counter()

    async def complete(self, request: Request) -> Completion:
        """Answer and note."""
        if self.latency:
            await asyncio.sleep(self.latency)
        purpose = self.model.purpose_of(request)
        number = 0
        if purpose != "forward":
            asked = request.model_dump_json()
            number, self._asked[asked] = self._asked[asked], self._asked[asked] + 1
        with repeat(number):
            completion = await self.model.complete(request)
        used = completion.usage.input_tokens + completion.usage.output_tokens
        self.calls.append(Call(self.now(), purpose, used))
        return completion


class Endpoint:
    """A running endpoint.

    Attributes:
        base_url: its address.
    """

    def __init__(self, base_url: str, pipe: Connection) -> None:
        self.base_url = base_url
        self._pipe = pipe

    def calls(self) -> list[Call]:
        """What was asked since the last time."""
        self._pipe.send("calls")
        found: list[Call] = self._pipe.recv()
        return found


@contextmanager
def endpoint(settings: dict[str, Any], latency: float) -> Iterator[Endpoint]:
    """Serve the model of `simulated_task(**settings)` inside the block; every answer takes `latency` seconds."""
    spawn = multiprocessing.get_context("spawn")  # a fork would inherit the event-loop thread's locks
    here, there = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(there, settings, latency), daemon=True)
    process.start()
    try:
        yield Endpoint(here.recv(), here)
        here.send("stop")
        process.join(10)
    finally:
        if process.is_alive():
            process.terminate()


def _serve(pipe: Connection, settings: dict[str, Any], latency: float) -> None:
    noting = Noting(replace(simulated_task(**settings).model, readers=READERS))
    with LoopbackServer(noting, latency=latency) as server:
        pipe.send(server.base_url)
        while pipe.recv() == "calls":
            calls, noting.calls = noting.calls, []
            pipe.send(calls)
