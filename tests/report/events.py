"""What a run tells, for tests of what shows it."""

from __future__ import annotations

from collections.abc import Callable

from textgrad_engine.llm import Completion, Message, Request, Usage
from textgrad_engine.llm.usage import CallRecord
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.train import Evaluation
from textgrad_engine.train.events import (
    CallEnded,
    ParameterChange,
    RunStarted,
    StepEnded,
)

STARTED = RunStarted({"system": "a"}, train=64, val=10, test=20, steps=4)
HALF = Evaluation(("a", "b"), (1.0, 0.0), ("x", "y"), {})


def called(phase: int, dollars: float | None = 0.0) -> CallEnded:
    request = Request(messages=(Message(role="user", content="hello"),))
    usage = Usage(input_tokens=900, output_tokens=100, calls=1, dollars=dollars)
    return CallEnded(phase, CallRecord("forward", "m", request, Completion(text="x", usage=usage), None, 0.0, "a"))


def step(number: int, val: float | None = 0.75, *, kept: bool = True, problem: str = "") -> StepEnded:
    change = ParameterChange("system", "a", "b", problem=problem)
    return StepEnded(number, 1, ("a",), 0.5, 0, 3, (change,), val, kept, 0.75)


def tried(number: int, kind: str, *, kept: bool = False, race: bool = True, problem: str = "") -> StepEnded:
    found = RaceRecord("better", ("a", "b", "c"), (0.0, 0.0, 1.0), (1.0, 1.0, 0.0), 0.9, 0.3) if race else None
    change = ParameterChange("system", "a", "b", problem=problem)
    return StepEnded(number, 0, ("a",), 0.5, 0, 3, (change,), None, kept, 0.75, kind=kind, race=found)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Notebook:
    """What a cell shows: one part of it, and how often that was changed."""

    def __init__(self) -> None:
        self.bundles: list[dict[str, str]] = []

    def __call__(self, bundle: dict[str, str]) -> Callable[[dict[str, str]], object]:
        assert not self.bundles
        self.bundles.append(bundle)
        return self.bundles.append

    @property
    def text(self) -> str:
        return self.bundles[-1]["text/plain"]
