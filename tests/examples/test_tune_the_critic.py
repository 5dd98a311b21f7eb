from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import textgrad_engine as tg
from textgrad_engine.testing import FunctionModel

SCRIPT = Path(__file__).parents[2] / "examples" / "tune_the_critic" / "main.py"


def test_feedback_that_has_nothing_to_criticize_changes_nothing(example: dict[str, Any]) -> None:
    """No second pass, and no call of an optimizer."""

    def satisfied(request: Any) -> Any:
        answer = example["simulated"](request)
        concrete = "quotes the exact words" in request.messages[-1].text
        return {"nothing_wrong": True, "criticism": ""} if concrete else answer

    model = FunctionModel(satisfied)
    with tg.use_models(forward=model):
        critic, seen = example["tune"](4)
    assert critic.data == "Say what is wrong with the prompt."
    assert len(seen) == 1
    assert "optimizer" not in {request.purpose for request in model.requests}


def test_the_critic_becomes_concrete(run: Callable[[], str]) -> None:
    """Run as a user runs it: before, after each step, the new instructions, what it cost; and that it is simulated."""
    shown = run()
    before, *steps = shown.split("After step ")
    assert before.count("The prompt could be better.") == 3
    assert '"Say on which day the parcel comes."' in steps[0]
    assert 'See "Where is my parcel?"' not in steps[0]
    assert 'See "Where is my parcel?"' in steps[1]
    assert "Always give the exact words to add, in quotes." in shown
    assert len(steps) == 2
    calls = json.loads(next(line for line in shown.split("\n") if line.startswith("Calls: ")).removeprefix("Calls: "))
    assert calls["optimizer"] == 2
    assert "A simulated model answered" in shown


def test_the_prompt_is_not_touched_by_the_second_pass(example: dict[str, Any]) -> None:
    """Only the critic's instructions were asked for; the feedback on them says where it came from."""
    with tg.use_models(forward=FunctionModel(example["simulated"])):
        prompt = tg.nn.Parameter("Answer.", role="prompt of the support desk")
        critic = tg.nn.Parameter("Say what is wrong.", role="instructions of the critic")
        feedback = example["feedback_on_prompt"](prompt, critic)
        criticism = [tg.ops.text_loss(item, example["WANTED"]) for item in feedback]
        tg.backward(criticism, inputs=[critic])
    assert prompt.grad == []
    assert [item.data for item in critic.grad] == ["Demand the exact words to add, in quotes."] * 3
    assert critic.grad[0].source.because[0].data == "On case_1.system: It quotes no words to add."
