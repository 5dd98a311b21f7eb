"""How many functions of ours run for a chat completion: what a call costs on this machine follows from it.

Timings are no tests; `benchmarks/engine_overhead.py` has them. A step too many in a loop over 5,000 calls shows here.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from types import FrameType
from typing import Any, Self

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, dispatch, nn
from textgrad_engine.llm import Completion, Request

CALLS = 200


class Instant:
    """A model in this process that answers at once."""

    name = "instant"
    free = True

    async def complete(self, request: Request) -> Completion:
        """Feedback, or an answer."""
        return Completion(text='{"case_1": {"system": "shorter"}}' if request.purpose == "backward" else "answer")


class Steps:
    """Counts the functions of this library that begin, on this thread and on the one of the event loop.

    How often the loop looks for work depends on how long it takes, so that is left out.
    """

    def __init__(self) -> None:
        self.here, self.there = Counter[str](), Counter[str]()

    def _on_loop(self, profile: Any) -> None:
        done = threading.Event()

        def switch() -> None:
            sys.setprofile(profile)
            done.set()

        dispatch.call_soon(switch)
        assert done.wait(10)

    def _counting(self, found: Counter[str]) -> Any:
        def profile(frame: FrameType, event: str, _: Any) -> None:
            name = frame.f_code.co_qualname
            if event == "call" and "textgrad_engine" in frame.f_code.co_filename and not name.startswith("LoopThread."):
                found[name] += 1

        return profile

    def __enter__(self) -> Self:
        self._on_loop(self._counting(self.there))
        sys.setprofile(self._counting(self.here))
        return self

    def __exit__(self, *exc: object) -> None:
        sys.setprofile(None)
        self._on_loop(None)


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> Any:
    """As in a program without OpenTelemetry, which other tests load and which is asked about each call.

    Whoever else watches what runs, such as a tool that measures coverage, watches again when the test is over.
    """
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    known = sys.getprofile()
    yield
    sys.setprofile(known)


def each(found: Counter[str]) -> float:
    """How many for each call."""
    return sum(found.values()) / CALLS


def asked(chat: nn.ChatCompletion) -> list[Variable]:
    answers = [chat(question=f"question {number}") for number in range(CALLS)]
    for answer in answers:
        assert answer.data == "answer"
    return answers


def test_a_chat_completion_takes_few_steps(before: None) -> None:
    """Forward 47 here and 54 on the loop, backward 66 and 47; a few more where an answer has to be waited for."""
    prompt = nn.Parameter("Answer.", role="system prompt")
    chat = nn.ChatCompletion("{question}", system=prompt)
    with tg.use_models(forward=Instant()):
        tg.backward(asked(chat), ["wrong"] * CALLS)  # fills the caches
        with Steps() as forward:
            answers = asked(chat)
        with Steps() as backward:
            tg.backward(answers, ["wrong"] * CALLS)
    assert len(prompt.grad) == 2 * CALLS
    assert each(forward.here) <= 55, forward.here.most_common(12)
    assert each(forward.there) <= 55, forward.there.most_common(12)
    # Which thread takes an answer in depends on who is quicker, and what it takes does not.
    assert each(backward.here) + each(backward.there) <= 113.5, (backward.here + backward.there).most_common(20)
