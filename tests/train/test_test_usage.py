"""`TrainResult.test_usage`: what a prompt takes once it is used, by the calls on the test set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn, optim
from textgrad_engine.llm import Completion, Request, Usage
from textgrad_engine.report import render
from textgrad_engine.testing import FunctionModel, feedback_for

ROWS = [{"id": f"w{n}", "word": f"w{n}", "target": f"W{n}"} for n in range(30)]


def answer(request: Request) -> Any:
    """Shouts where the prompt says so; a call takes a token for each character, and as many cents."""
    if request.purpose == "backward":
        return feedback_for(request, "Say to shout.")
    if request.purpose == "optimizer":
        return {"edits": [{"op": "add", "line": 1, "text": "Shout.", "reason": "asked for", "feedback": [1]}]}
    if request.purpose == "judge":
        said = request.messages[-1].text
        return {"explanation": "r", "score": int("W1" in said or "W2" in said)}
    word, length = request.messages[-1].text, sum(len(message.text) for message in request.messages)
    said = word.upper() if "Shout" in request.messages[0].text else word
    usage = Usage(input_tokens=length, output_tokens=1, calls=1, dollars=length / 100)
    return Completion(text=said, usage=usage)


def fit(loss: Any, test: Any = ROWS[20:], **settings: Any) -> tg.TrainResult:
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    with tg.use_models(forward=FunctionModel(answer)):
        optimizer = optim.TGD(program.parameters())
        return tg.Trainer(**settings).fit(program, loss, optimizer, ROWS[:10], ROWS[10:20], test)


def test_it_is_that_of_the_programs_calls_with_both_prompts(tmp_path: Path) -> None:
    """Ten examples each; seven characters of prompt before, seven and a line more now."""
    result = fit(nn.ExactMatch())
    seed, best = (result.test_usage[name] for name in ("seed", "best"))
    assert (seed.calls, best.calls) == (10, 10)
    assert seed.input_tokens == 10 * (len("Repeat.") + 3)
    assert best.input_tokens - seed.input_tokens == 10 * len("\nShout.")
    shown = render(result)
    assert "  tokens       11 an example" in shown
    assert "  cost         $100.00 for 1,000" in shown
    assert "18 an example" in shown


def test_judges_are_no_part_of_it() -> None:
    """They are asked while a prompt is tested, and not when it is used."""
    result = fit(nn.Judge("Is it loud?"))
    assert {usage.calls for usage in result.test_usage.values()} == {10}


def test_what_a_cache_answers_counts_as_it_would_have_been_paid(tmp_path: Path) -> None:
    """A second run from the cache tells the same of its prompts."""
    found = []
    for _ in range(2):
        with llm.caching(tmp_path / "cache"):
            shouter: Any = FunctionModel(answer)
            shouter.cache_key, shouter.free = "shouter", False
            model = llm.resolve(shouter)
            program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
            with tg.use_models(forward=model):
                optimizer = optim.TGD(program.parameters())
                result = tg.Trainer().fit(program, nn.ExactMatch(), optimizer, ROWS[:10], ROWS[10:20], ROWS[20:])
        found.append(result)
    first, second = found
    assert second.total.calls < first.total.calls
    for name in ("seed", "best"):
        assert second.test_usage[name].total_tokens == first.test_usage[name].total_tokens


@pytest.mark.parametrize("settings", [{"max_minutes": 1e-9}])
def test_one_prompt_takes_what_it_takes(settings: Any) -> None:
    """Where the seed prompt stays it is run once, and stands for both; without a test nothing is known."""
    result = fit(nn.ExactMatch(), **settings)
    assert list(result.test_usage) == ["best"]
    assert render(result).count("11 an example") == 2
    assert fit(nn.ExactMatch(), None).test_usage == {}
