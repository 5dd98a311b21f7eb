"""What one training step costs: calls by purpose, and wall time against the critical path.

Run:  python benchmarks/step_cost.py

One step (forward, backward, optimizer) on 32 examples with a model that gets every other example wrong. It answers
after 200 ms, or, in the rows marked "varied", after 50 to 800 ms, a different time for each call. The critical path is
the longest chain of answers that wait for each other: an example's and its critic's, and then the optimizer's.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time

import textgrad_engine as tg
from textgrad_engine import llm, nn, optim
from textgrad_engine.autograd import example
from textgrad_engine.testing import FunctionModel

EXAMPLES = 32


def respond(request: llm.Request) -> object:
    """A program that is wrong on odd numbers, a critic and an optimizer."""
    if request.purpose == "backward":
        assert request.config.response_format is not None
        cases = request.config.response_format.json_schema["properties"]
        return {case: {"system": "Say which numbers are odd."} for case in cases}
    if request.purpose == "optimizer":
        edit = {"op": "add", "line": 1, "text": "1, 3, 5 … are odd.", "reason": "asked for", "feedback": [1]}
        return {"edits": [edit]}
    return "even"


def seconds_for(request: llm.Request, latency: float, varied: bool) -> float:
    """How long the answer takes; a function of the request when it is varied."""
    if not varied:
        return latency
    return latency * 4 ** random.Random(request.messages[-1].text).uniform(-1, 1)


def step(latency: float, feedback_batch_size: int, varied: bool = False) -> tuple[float, float, dict[str, int]]:
    """Run one step; returns its seconds, those of its critical path, and the calls by purpose."""

    async def answer(request: llm.Request) -> object:
        await asyncio.sleep(seconds_for(request, latency, varied))
        return respond(request)

    rows = [{"number": str(n), "target": "odd" if n % 2 else "even"} for n in range(EXAMPLES)]
    records: list[llm.CallRecord] = []
    with tg.use_models(forward=FunctionModel(answer)), llm.meter() as used, llm.observe(records.append):
        system = nn.Parameter("Is the number odd or even?", role="system prompt")
        program = nn.ChatCompletion("{number}", system=system)
        loss = nn.ExactMatch()
        optimizer = optim.TGD(program.parameters())
        start = time.perf_counter()
        losses = []
        for row in rows:
            with example(row["number"]):
                losses.append(loss(program(number=row["number"]), row["target"]))
        with tg.ops.feedback_batch_size(feedback_batch_size):
            tg.backward(losses)
        optimizer.step()
        seconds = time.perf_counter() - start
    assert "are odd" in system.data
    return seconds, critical_path(records, latency, varied), {k: usage.calls for k, usage in used.by_purpose.items()}


def critical_path(records: list[llm.CallRecord], latency: float, varied: bool) -> float:
    """The longest chain of answers that wait for each other, in seconds."""
    took = [(record, seconds_for(record.request, latency, varied)) for record in records]
    forward = {record.key: seconds for record, seconds in took if record.purpose == "forward"}
    chains = [*forward.values()]
    for record, seconds in took:
        if record.purpose == "backward":
            chains.append(seconds + max(forward[name] for name in record.key.split(", ")))
    return max(chains) + sum(seconds for record, seconds in took if record.purpose == "optimizer")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the model takes to answer")
    parser.add_argument("--repeats", type=int, default=5, help="the median is printed")
    options = parser.parse_args()
    step(0.0, 1)  # loads what is loaded lazily
    names = ("answers", "forward", "backward", "optimizer", "wall s", "path s", "ratio", "goal")
    print(f"{'feedback_batch_size':>20}" + "".join(f"{name:>10}" for name in names))
    for size, varied in ((1, False), (4, False), (16, False), (1, True)):
        runs = [step(options.latency, size, varied) for _ in range(options.repeats)]
        wall = statistics.median(seconds for seconds, _, _ in runs)
        _, path, calls = runs[0]
        counts = f"{calls['forward']:>10}{calls['backward']:>10}{calls['optimizer']:>10}"
        how = "varied" if varied else f"{options.latency * 1000:g} ms"
        print(f"{size:>20}{how:>10}{counts}{wall:>10.3f}{path:>10.3f}{wall / path:>10.3f}{1.1:>10}")


if __name__ == "__main__":
    main()
