from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine.testing import FunctionModel, ScriptedModel

SCRIPT = Path(__file__).parents[2] / "examples" / "delegate.py"


def test_both_prompts_learn_what_concerns_them(run: Callable[[], str], caplog: pytest.LogCaptureFixture) -> None:
    """Run as a user runs it: discretion in one prompt, the signature in the other, and that it is simulated."""
    request, letter = run().split("finish.system:")
    assert "Leave out names and addresses." in request
    assert "Sign the letter with the user's name." in letter
    assert "val 0.000 -> 1.000; test 0.000 -> 1.000; better" in letter
    assert "Simulated models answered" in letter
    assert caplog.messages == []  # such as that the sets are not apart


def test_each_half_of_the_loss_speaks_for_itself(example: dict[str, Any]) -> None:
    """What the request gives away concerns its prompt alone; what the letter lacks, the draft before it, too."""
    model, outside = FunctionModel(example["simulated"]), ScriptedModel(["A draft."] * 2)
    program, loss, row = example["Delegate"](outside), example["HelpfulAndDiscreet"](), example["ROWS"][0]
    with tg.use_models(forward=model):
        prediction = program(query=row["query"])
        score = loss(prediction, row["private"], {"query": row["query"]})
        assert score.data == 0
        score.backward()
        shown = [request.messages[-1].text for request in model.requests if request.purpose == "backward"]
        assert ["It gives away" in text for text in shown] == [False, True]
        assert not any("Expected" in text for text in shown)  # what must not be told is no answer that is wanted
        assert "- `draft`: draft by the outside model" in shown[0]
        assert [len(each.grad) for each in program.parameters()] == [1, 1]
        program.zero_grad()
        loss.discreet(program(query=row["query"])["request"], inputs={"private": row["private"]}).backward()
    assert [len(each.grad) for each in program.parameters()] == [1, 0]
