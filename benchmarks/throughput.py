"""What the library costs on top of the SDK and of bare HTTP: wall time and processor time of a call.

    python benchmarks/throughput.py [--examples 500] [--latency 0.2] [--rounds 3]

A server in a process of its own answers after 200 ms. 500 examples are asked with 32, 200 and 500 in flight:

- `nn`: a module, `nn.ChatCompletion`, called in a loop; values, graph and the whole stack of the library
- `llm`: the same requests by `llm.resolve(...).complete(...)`: the stack without values and graph
- `sdk`: `openai.AsyncOpenAI` as it comes, with a semaphore
- `sdk+a`: the same over aiohttp, where it is installed
- `http`: aiohttp where it is installed, else httpx2, with a semaphore, reading the text out of the JSON

All in one run, each after a warm-up, the best of three rounds taken in turns. CPU is that of this process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import openai

from textgrad_engine import dispatch, nn
from textgrad_engine.llm import Completion, Message, Request, Usage, innermost, resolve
from textgrad_engine.llm import clients as adapter
from textgrad_engine.testing import LoopbackServer

WIDTHS = (32, 200, 500)


class Echo:
    """Answers with the question, and keeps nothing."""

    name = "echo"
    free = True

    async def complete(self, request: Request) -> Completion:
        """The question."""
        return Completion(text=request.messages[-1].text, usage=Usage(input_tokens=5, output_tokens=3, calls=1))


async def _all(one: Callable[[str], Awaitable[str]], texts: list[str], width: int) -> list[str]:
    room = asyncio.Semaphore(width)

    async def held(text: str) -> str:
        async with room:
            return await one(text)

    return await asyncio.gather(*(held(text) for text in texts))


class ByModule:
    """`nn.ChatCompletion` in a plain loop."""

    def __init__(self, url: str, width: int) -> None:
        self.model = resolve("m", base_url=url, max_in_flight=width)
        self.chat = nn.ChatCompletion("{text}", model=self.model)

    def run(self, texts: list[str]) -> list[str]:
        """Ask for all, then read all."""
        answers = [self.chat(text=text) for text in texts]
        return [str(answer.data) for answer in answers]

    def close(self) -> None:
        """Close the connections."""
        dispatch.run(innermost(self.model).aclose)  # type: ignore[attr-defined]


class _OnALoop:
    def __init__(self) -> None:
        self.runner = asyncio.Runner()

    def close(self) -> None:
        """Close the connections and the loop."""
        self.runner.run(self.end())
        self.runner.close()

    async def end(self) -> None:
        """Close the connections."""


class ByStack(_OnALoop):
    """`llm.resolve(...)`."""

    def __init__(self, url: str, width: int) -> None:
        super().__init__()
        self.model = resolve("m", base_url=url, max_in_flight=width)

    def run(self, texts: list[str]) -> list[str]:
        """Ask for all at once; the stack holds back what is too much."""

        async def one(text: str) -> str:
            return (await self.model.complete(Request(messages=(Message(role="user", content=text),)))).text

        async def work() -> list[str]:
            return await asyncio.gather(*(one(text) for text in texts))

        return self.runner.run(work())

    async def end(self) -> None:
        """Close the connections."""
        await innermost(self.model).aclose()  # type: ignore[attr-defined]


class BySDK(_OnALoop):
    """The bare SDK, with the HTTP client that it makes itself."""

    def __init__(self, url: str, width: int) -> None:
        super().__init__()
        self.width = width
        self.client = openai.AsyncOpenAI(base_url=url, api_key="none", http_client=self.http())

    def http(self) -> Any:
        """The HTTP client to use; None for its own."""
        return None

    def run(self, texts: list[str]) -> list[str]:
        """Ask for all, so many at once."""

        async def one(text: str) -> str:
            answer = await self.client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
            return answer.choices[0].message.content or ""

        return self.runner.run(_all(one, texts, self.width))

    async def end(self) -> None:
        """Close the connections."""
        await self.client.close()


class BySDKOverAiohttp(BySDK):
    """The bare SDK over aiohttp, which has to be told that there is no limit of 100 connections."""

    def http(self) -> Any:
        """The SDK's own client over aiohttp."""
        return openai.DefaultAioHttpClient(limits=httpx2.Limits(max_connections=0))


class ByHTTP(_OnALoop):
    """Bare HTTP."""

    def __init__(self, url: str, width: int) -> None:
        super().__init__()
        self.url = f"{url}/chat/completions"
        self.width = width
        self.session: Any = None

    def run(self, texts: list[str]) -> list[str]:
        """Ask for all, so many at once."""
        return self.runner.run(self.work(texts))

    async def work(self, texts: list[str]) -> list[str]:
        """With aiohttp, or with httpx2."""
        try:
            import aiohttp
        except ImportError:
            return await self.with_httpx2(texts)
        if self.session is None:
            self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

        async def one(text: str) -> str:
            body = {"model": "m", "messages": [{"role": "user", "content": text}]}
            async with self.session.post(self.url, json=body) as response:
                return str(json.loads(await response.read())["choices"][0]["message"]["content"])

        return await _all(one, texts, self.width)

    async def with_httpx2(self, texts: list[str]) -> list[str]:
        """The same with httpx2."""
        if self.session is None:
            self.session = httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=None))

        async def one(text: str) -> str:
            body = {"model": "m", "messages": [{"role": "user", "content": text}]}
            response = await self.session.post(self.url, json=body)
            return str(response.json()["choices"][0]["message"]["content"])

        return await _all(one, texts, self.width)

    async def end(self) -> None:
        """Close the connections."""
        if self.session is not None:
            await (self.session.aclose() if hasattr(self.session, "aclose") else self.session.close())


WAYS: dict[str, Callable[[str, int], Any]] = {
    "nn": ByModule,
    "llm": ByStack,
    "sdk": BySDK,
    "sdk+a": BySDKOverAiohttp,
    "http": ByHTTP,
}


def measure(url: str, width: int, examples: int, rounds: int) -> dict[str, tuple[float, float]]:
    """The best wall time, and the best CPU time, of each way, in seconds."""
    best: dict[str, tuple[float, float]] = {}
    ways = {name: make(url, width) for name, make in WAYS.items()}
    try:
        for way in ways.values():
            way.run([f"warm-up {number}" for number in range(width)])
        for number in range(rounds):
            texts = [f"question {number}/{index}" for index in range(examples)]
            for name, way in ways.items():
                wall, cpu = time.perf_counter(), time.process_time()
                answers = way.run(texts)
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                assert answers == texts, f"{name} lost or mixed up answers"
                known = best.get(name, (wall, cpu))
                best[name] = (min(wall, known[0]), min(cpu, known[1]))
    finally:
        for way in ways.values():
            way.close()
    return best


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=500)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-aiohttp", action="store_true", help="as if aiohttp were not installed")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        with LoopbackServer(Echo(), latency=options.latency) as server:
            print(server.base_url, flush=True)
            sys.stdin.read()
        return
    if options.no_aiohttp:
        sys.modules["aiohttp"] = None  # type: ignore[assignment]
        adapter.has_aiohttp = lambda: False
    if options.no_aiohttp or not adapter.has_aiohttp():
        del WAYS["sdk+a"]
    command = [sys.executable, str(Path(__file__).resolve()), "--serve", "--latency", str(options.latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        url = child.stdout.readline().strip()
        print(f"{options.examples} examples at {options.latency * 1000:g} ms, best of {options.rounds}")
        print("in flight  way    wall s  x sdk  CPU ms/call   x sdk")
        for width in WIDTHS:
            found = measure(url, width, options.examples, options.rounds)
            wall_sdk, cpu_sdk = found["sdk"]
            for name, (wall, cpu) in found.items():
                each = cpu / options.examples * 1000
                print(f"{width:9}  {name:5} {wall:7.2f}  {wall / wall_sdk:5.2f}  {each:11.2f}  {cpu / cpu_sdk:6.2f}")
        child.stdin.close()


if __name__ == "__main__":
    main()
