"""What one training step costs: calls by purpose, and wall time against the critical path.

Run:  python benchmarks/step_cost.py

One step (forward, backward, optimizer) on 32 examples with a model that answers after 200 ms and gets every other
example wrong. The critical path is three answers one after the other: an example's, the critic's, the optimizer's.
"""

from __future__ import annotations

import argparse
import statistics
import time

import textgrad_engine as tg
from textgrad_engine import llm, nn, optim
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


def step(latency: float, feedback_batch_size: int) -> tuple[float, dict[str, int]]:
    """Run one step; returns its seconds and the calls by purpose."""
    rows = [{"number": str(n), "target": "odd" if n % 2 else "even"} for n in range(EXAMPLES)]
    with tg.use_models(forward=FunctionModel(respond, latency=latency)), llm.meter() as used:
        system = nn.Parameter("Is the number odd or even?", role="system prompt")
        program = nn.ChatCompletion("{number}", system=system)
        loss = nn.ExactMatch()
        optimizer = optim.TGD(program.parameters())
        start = time.perf_counter()
        losses = [loss(program(number=row["number"]), row["target"]) for row in rows]
        with tg.ops.feedback_batch_size(feedback_batch_size):
            tg.backward(losses)
        optimizer.step()
        seconds = time.perf_counter() - start
    assert "are odd" in system.data
    return seconds, {purpose: usage.calls for purpose, usage in used.by_purpose.items()}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the model takes to answer")
    parser.add_argument("--repeats", type=int, default=5, help="the median is printed")
    options = parser.parse_args()
    step(0.0, 1)  # loads what is loaded lazily
    print(f"{EXAMPLES} examples, half of them wrong, {options.latency * 1000:g} ms an answer")
    names = ("forward", "backward", "optimizer", "wall s", "ratio", "goal")
    print(f"{'feedback_batch_size':>20}" + "".join(f"{name:>10}" for name in names))
    for size in (1, 4, 16):
        runs = [step(options.latency, size) for _ in range(options.repeats)]
        wall = statistics.median(seconds for seconds, _ in runs)
        calls = runs[0][1]
        counts = f"{calls['forward']:>10}{calls['backward']:>10}{calls['optimizer']:>10}"
        print(f"{size:>20}{counts}{wall:>10.3f}{wall / (3 * options.latency):>10.3f}{1.1:>10}")


if __name__ == "__main__":
    main()
