"""A proposer that comes to nothing of use: it is not asked for ever, and the result says why."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.llm import Request
from textgrad_engine.optim import Optimizer, proposers
from textgrad_engine.optim.search.vain import FEWEST_VAIN, MOST_REFUSED, MOST_VAIN, Vain
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Trainer, TrainResult

ROWS = [{"id": f"w{n}", "word": f"w{n}", "target": f"W{n}"} for n in range(24)]

OPTIMIZERS: dict[str, Callable[[Any], Optimizer]] = {
    "TGD": lambda params: optim.TGD(params, mode="rewrite"),
    "no feedback": lambda params: optim.TGD(params, use_feedback=False),
    "Pareto": lambda params: optim.ParetoSearch(params, proposals=60),
    "Beam": lambda params: optim.BeamSearch(params, rounds=20),
    "OPRO": optim.OPRO,
    "Random": lambda params: optim.RandomSearch(params, proposers.Unaided()),
}

Answers = Callable[[int], Any]


def same(number: int) -> Any:
    return {"text": "Repeat.", "reason": "it is good"}


def breaking(number: int) -> Any:
    return {"text": f"Say {number}.", "reason": "why not"}


def withheld(number: int) -> Any:
    raise ContentFiltered("no")


def fit(name: str, answers: Answers, run_dir: Path | None = None, **settings: Any) -> tuple[TrainResult, int]:
    """The result, and how often the optimizer was asked."""
    asked = 0

    def model(request: Request) -> Any:
        nonlocal asked
        if request.purpose == "backward":
            return feedback_for(request, f"Say to shout, {len(request.messages[-1].text)}.")
        if request.purpose == "optimizer":
            asked += 1
            return answers(asked)
        text = request.messages[-1].text
        return text.upper() if "Shout" in request.messages[0].text else text

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    optimizer = OPTIMIZERS[name](program.parameters())
    for group in optimizer.param_groups:
        group["constraints"] = (optim.Requires(["Repeat"]),)
    with tg.use_models(forward=FunctionModel(model)):
        trainer = Trainer(max_epochs=20, batch_size=4, run_dir=run_dir, **settings)
        return trainer.fit(program, nn.ExactMatch(), optimizer, ROWS, ROWS[:8]), asked


@pytest.mark.parametrize("answers", [same, breaking])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_nothing_of_use_ends_it(name: str, answers: Answers) -> None:
    """Whether the text stays the same or what is proposed breaks a contract; in the result's own words."""
    result, asked = fit(name, answers)
    assert result.status == "finished"
    assert asked <= 2 * 4 * 24  # each twice, to have it repaired, in three rounds of a beam
    assert result.idle.startswith("the last ")
    assert "so no more were asked for" in str(result)
    assert len(result.steps) < 100


@pytest.mark.parametrize("name", ["TGD", "OPRO", "Pareto"])
def test_what_is_of_use_now_and_then_goes_on(name: str) -> None:
    """One in seven is enough."""
    result, _ = fit(
        name,
        lambda number: breaking(number) if number % 7 else {"text": f"Repeat {number}.", "reason": ""},
        max_steps=MOST_VAIN + MOST_REFUSED,
    )
    assert result.idle == ""


@pytest.mark.parametrize("name", ["TGD", "Pareto", "Random"])
def test_who_writes_another_text_each_time_is_given_more_tries(name: str) -> None:
    """One whose first twenty break a contract may keep it the next time; one that says the same again will not."""
    late = {"text": "Repeat. Shout.", "reason": "it keeps the contract"}
    found, _ = fit(name, lambda number: breaking(number) if number <= 40 else late)
    assert found.best == {"system": "Repeat. Shout."}
    for answers, most in ((same, FEWEST_VAIN), (lambda number: breaking(1), FEWEST_VAIN + 1), (breaking, MOST_REFUSED)):
        result, _ = fit(name, answers)
        assert result.best == result.seed
        assert len(result.steps) == most


def test_answers_that_are_lost_are_told_otherwise() -> None:
    """They end a run with an error that names the first of them."""
    with pytest.raises(tg.errors.ModelError, match="came to nothing"):
        fit("OPRO", withheld)


def test_what_was_tried_before_is_of_no_use(tmp_path: Path) -> None:
    """The same text again and again was raced once; the folder says why the run ended."""
    result, _ = fit("TGD", lambda number: {"text": "Repeat it.", "reason": "again"}, tmp_path / "run")
    assert len(result.steps) == 1 + FEWEST_VAIN
    assert "the last one: it was tried before" in result.idle
    body = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert body["idle"] == result.idle


def test_a_search_that_was_saved_goes_on_counting() -> None:
    """And one that was over is over."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    one, other = optim.OPRO(program.parameters()), optim.OPRO(program.parameters())
    for _ in range(5):
        one.vain.count("nothing was proposed")
    other.load_state_dict(one.state_dict())
    assert other.vain == one.vain
    before = {name: value for name, value in one.state_dict().items() if name != "vain"}
    other.load_state_dict(before)  # of before it was counted
    assert other.vain == Vain()


@pytest.mark.parametrize("name", ["OPRO", "Pareto", "TGD"])
def test_another_run_begins_to_count_anew(name: str) -> None:
    """What broke the contracts of the run before may keep those of now."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    optimizer = OPTIMIZERS[name](program.parameters())
    optimizer.param_groups[0]["constraints"] = (optim.Requires(["Repeat"]),)

    def model(request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            return {"text": "Shout.", "reason": "asked for"}
        text = request.messages[-1].text
        return text.upper() if "Shout" in request.messages[0].text else text

    with tg.use_models(forward=FunctionModel(model)):
        trainer = Trainer(max_epochs=20, batch_size=4, max_steps=30)
        found = trainer.fit(program, nn.ExactMatch(), optimizer, ROWS, ROWS[:8])
        assert "so no more were asked for" in found.idle
        optimizer.param_groups[0]["constraints"] = ()
        again = trainer.fit(program, nn.ExactMatch(), optimizer, ROWS, ROWS[:8])
    assert again.best == {"system": "Shout."}


def test_proposals_of_one_round_are_not_enough() -> None:
    """Their requests are alike."""
    vain = Vain()
    for number in range(24):
        assert not vain.over
        vain.count("it was tried before", more=number % 8 < 7)
    assert vain.over
    vain.count("")
    assert not vain.over


def test_a_round_whose_last_one_is_lost_counts() -> None:
    """And one of which all are lost does not."""
    vain = Vain()
    for number in range(16):
        vain.count("it breaks a contract" if number < 4 else None, more=number % 4 < 3)
    assert vain.rounds == 1
    for number in range(8):
        vain.count(None if number % 4 == 3 else "it breaks a contract", more=number % 4 < 3)
    assert (vain.rounds, vain.over) == (3, True)


def test_what_is_paid_for_of_a_round_is_tried() -> None:
    """Eight in a row may be full amid a round, which was asked for as a whole."""
    vain = Vain()
    for number in range(9):
        vain.count("it was tried before" if number else "", more=number % 2 == 0)
    assert vain.proposals == 8
    assert not vain.over
    vain.count(None)  # the last one of the round was lost
    assert vain.over


def test_texts_that_are_refused_count_for_less_until_one_could_be_tried() -> None:
    """Each once, of several texts those that go together; a run that was saved has them, too."""
    vain = Vain()
    for number in range(MOST_REFUSED):
        assert not vain.over
        vain.count("it breaks a contract", refused=["", f"text {number}"])
        vain = Vain(**asdict(vain))
    assert vain.over
    vain = Vain()
    for _ in range(FEWEST_VAIN + 1):
        assert not vain.over
        vain.count("it breaks a contract", refused=["the same text", ""])
    assert vain.over
    vain.count("")
    assert vain == Vain(earlier=FEWEST_VAIN + 1, useful=1, why="it breaks a contract")


def test_how_many_in_a_row_are_enough_goes_by_chance() -> None:
    """Where seven of ten break a contract, eight in a row mean nothing; there is an end all the same."""
    vain = Vain()
    for number in range(70):
        vain.count("it breaks a contract" if number % 10 < 7 else "")
    ended = 0
    while not vain.over:
        vain.count("it breaks a contract")
        ended += 1
    assert FEWEST_VAIN < ended < MOST_VAIN
    assert Vain(proposals=FEWEST_VAIN, rounds=FEWEST_VAIN).over
    assert Vain(proposals=MOST_VAIN, rounds=MOST_VAIN, earlier=999, useful=1).over
