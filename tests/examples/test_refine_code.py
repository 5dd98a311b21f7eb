from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine.testing import FunctionModel

SCRIPT = Path(__file__).parents[2] / "examples" / "refine_code.py"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def twice(n): return n", "twice(2) == 4 is not so; the left side gives 2"),
        ("print(1)\ndef twice(n): return 2 * n - 1", "twice(2) == 4 is not so; the left side gives 3"),
        ("def twice(n): return n / 0", "twice(2) == 4 ends in ZeroDivisionError"),
        ("```python\ndef twice(n): return 2 * n\n```", "twice(2) == 4 ends in SyntaxError"),
        ("import os\nos._exit(0)", "twice(2) == 4 ends the process"),
        ("import os\nos.write(1, b'[]')\nos._exit(0)", "twice(2) == 4 ends the process"),
        ("import os\nos.write(1, b'\\xff')\ndef twice(n): return n", "twice(2) == 4 is not so"),
    ],
)
def test_code_that_fails_is_told_how(example: dict[str, Any], code: str, words: str) -> None:
    """Whatever a model writes, the run goes on, and the next version hears of it."""
    (failure,) = example["failures"](code, ["twice(2) == 4"])
    assert failure.startswith(words)


def test_what_code_gives_is_cut(example: dict[str, Any]) -> None:
    """Ten million characters would be more than any optimizer reads."""
    for code in ("def twice(n): return 'a' * 10**7", "def twice(n): raise ValueError('a' * 10**7)"):
        (failure,) = example["failures"](code, ["twice(2) == 4"])
        assert len(failure) < 300


def test_the_code_of_each_task_becomes_right(run: Callable[[], str]) -> None:
    """Run as a user runs it: tests that no model was shown pass, nobody asks a critic, and that it is simulated."""
    shown = run()
    told = [line for line in shown.split("\n") if line.startswith("Hidden tests")]
    assert told == [
        "Hidden tests: 1 of 2 passed before, 2 after.",
        "Hidden tests: 2 of 3 passed before, 3 after.",
        "Hidden tests: 0 of 2 passed before, 2 after.",
    ]
    assert 'Calls: {"forward": 3, "optimizer": 5}' in shown
    assert "A simulated model answered" in shown


def test_the_optimizer_is_told_what_fails_and_not_to_be_general(example: dict[str, Any]) -> None:
    """An edit of code that its tests judge is to be concrete; the code is shown once, and no hidden test ever."""
    model = FunctionModel(example["simulated"])
    task = example["TASKS"][0]
    with tg.use_models(forward=model):
        example["improve"](task)
    asked = [request.messages[-1].text for request in model.requests if request.purpose == "optimizer"]
    assert "longest_run('aabbb') == 3 is not so; the left side gives 2" in asked[0]
    assert "that what you write be general is not asked of this text" in asked[0]
    assert asked[0].count("def longest_run") == 1
    assert "replaced" in asked[1]  # the edit before
    assert not any(test in text for text in asked for test in task.hidden)
