"""Thousands of calls against an endpoint that fails in every tenth answer: is anything lost, paid twice, or kept?

    python benchmarks/soak.py [calls]

Starts a server in a process of its own and asks it 20,000 times, 64 at once, through the usual stack. One request in
ten meets a fault: statuses, Retry-After, broken bodies, cut connections, slow answers. At the end every question has
its own answer, the budget has counted every answer once, and memory is what it was after the first quarter.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import hashlib
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from textgrad_engine.llm import Completion, Message, Request, RetryPolicy, Usage, budget, innermost, meter, resolve
from textgrad_engine.llm.request import GenerateConfig
from textgrad_engine.testing import Fault, LoopbackServer

_BODY = {"choices": [{"message": {"content": "a wrong answer"}, "finish_reason": None}]}

FAULTS = (
    Fault(408),
    Fault(409),
    Fault(429, {"retry-after-ms": "2"}),
    Fault(429, {"retry-after": "0.002"}),
    Fault(500),
    Fault(502, body="<html>Bad Gateway</html>"),
    Fault(503, {"retry-after-ms": "1"}),
    Fault(504),
    Fault(0),
    Fault(200, body=_BODY, drop=True),
    Fault(200, {"content-type": "text/html"}, "<html>Welcome</html>"),
    Fault(200, body={"choices": None}),
    Fault(200, body='{"choices": [{"mess'),
    Fault(200, body=_BODY),
    Fault(200, body=_BODY, drip=0.002),
    Fault(500, delay=0.05),
)

POLICY = RetryPolicy(max_attempts=12, answer_attempts=12, base=0.002, cap=0.02, call_deadline=10.0)


class Echo:
    """Answers with the question, and keeps nothing."""

    name = "echo"
    free = True

    async def complete(self, request: Request) -> Completion:
        """The question, as an answer of three tokens."""
        return Completion(text=request.messages[-1].text, usage=Usage(input_tokens=5, output_tokens=3, calls=1))


def fault_for(number: int) -> Fault | None:
    """What happens to a request: nothing for nine in ten, else one of the faults; the same in every run."""
    digest = hashlib.sha256(str(number).encode()).digest()
    return FAULTS[digest[1] % len(FAULTS)] if digest[0] < 26 else None


@dataclass(frozen=True)
class Result:
    """What a soak found out.

    Attributes:
        calls: how many questions were asked.
        right: how many got their own answer.
        failed: how many got an error.
        counted: answers that the budget counts as paid.
        unknown: requests that it holds at their worst case.
        limit: the tokens that the budget allowed.
        used: the tokens that it counts.
        seconds: wall time.
        cpu: processor time of this process.
        grown: MiB that this process grew by after the first quarter; the rise of its peak.
    """

    calls: int
    right: int
    failed: int
    counted: int
    unknown: int
    limit: int
    used: int
    seconds: float
    cpu: float
    grown: float


async def soak(base_url: str, calls: int, width: int = 64) -> Result:
    """Ask so many questions, by as many workers as may be in flight."""
    model = resolve("soaked", base_url=base_url, max_in_flight=width, policy=POLICY)
    todo = iter(range(calls))
    right = failed = 0
    quarter = 0.0

    async def worker() -> None:
        nonlocal right, failed, quarter
        for number in todo:
            text = f"question {number}"
            request = Request(messages=(Message(role="user", content=text),), config=GenerateConfig(max_tokens=20))
            try:
                answer = await model.complete(request)
                right += answer.text == text
            except Exception as error:  # counted, shown, and the soak goes on
                failed += 1
                print(f"{text}: {error!r}", file=sys.stderr)
            if number == calls // 4:
                quarter = _peak()

    started, cpu = time.perf_counter(), time.process_time()
    limit = calls * 40
    with budget(tokens=limit) as b, meter() as m:
        await asyncio.gather(*(worker() for _ in range(width)))
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert m.failed == failed
    assert b.reserved.calls == 0
    await innermost(model).aclose()  # type: ignore[attr-defined]
    gc.collect()
    used = b.spent.total_tokens + b.unknown.total_tokens
    return Result(calls, right, failed, b.spent.calls, b.unknown.calls, limit, used, seconds, cpu, _peak() - quarter)


def _peak() -> float:
    """The most memory that this process has had so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def _serve() -> None:
    with LoopbackServer(Echo(), faults=fault_for) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


def main() -> None:
    """Run the soak and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", type=int, nargs="?", default=20_000, help="how many (default 20,000)")
    calls = parser.parse_args().calls
    command = [sys.executable, str(Path(__file__).resolve()), "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            result = asyncio.run(soak(server.stdout.readline().strip(), calls))
        finally:
            server.stdin.close()
    print(f"{result.calls:,} calls: {result.right:,} right, {result.failed:,} failed")
    print(f"budget: {result.counted:,} answers and {result.unknown:,} requests of unknown cost counted,")
    print(f"        {result.used:,} of {result.limit:,} tokens")
    each = result.cpu / result.calls * 1000
    print(f"{result.seconds:.1f} s, {each:.2f} ms of CPU a call; memory +{result.grown:.1f} MiB")


if __name__ == "__main__":
    _serve() if sys.argv[1:] == ["serve"] else main()
