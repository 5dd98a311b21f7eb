"""OPRO: what the optimizer is shown, and what changes the parameters."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from textgrad_engine import llm, nn, optim, use_models
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.llm import Request
from textgrad_engine.optim.demos import Demo
from textgrad_engine.optim.proposers import Brief, propose
from textgrad_engine.optim.proposers.by_scores import ByScores
from textgrad_engine.testing import FunctionModel, ScriptedModel
from textgrad_engine.testing.simulated import SimulatedTask
from textgrad_engine.train import Objective


def search(world: Any, **settings: Any) -> optim.OPRO:
    return optim.OPRO(world.program.parameters(), **{"seed": 1, "rounds": 1, "per_round": 2, **settings})


def shown(request: Request) -> list[tuple[str, str]]:
    """The texts with their scores, as the optimizer sees them."""
    pattern = r"Score (\S+)(?: of 100)?:\n<tried-(\w+)>\n(.*?)\n</tried-\2>"
    found = re.findall(pattern, request.messages[-1].text, re.DOTALL)
    return [(score, text) for score, _, text in found]


def test_lost_answers_are_noted_and_dropped_texts_not_scored(world: Any) -> None:
    """The round goes on with what there is."""
    here = world(ContentFiltered("no"), "", "", "Repeat. HALF")
    decided = here.steps(search(here, per_round=3))
    assert any(each.problems for each in decided)
    assert any(each.why.startswith("dropped: ") for each in decided)
    assert here.system.data == "Repeat. HALF"


def test_no_feedback_is_asked_for(world: Any) -> None:
    """There is no backward pass in OPRO."""
    here = world("Repeat. HALF")
    here.steps(search(here))
    assert here.asked("backward") == []


def test_texts_are_shown_with_their_scores_the_best_last(world: Any) -> None:
    """As the paper has them: ascending, in whole percents; and a few tasks with their answers."""
    here = world("Repeat. HALF", "Repeat. SHOUT", "Repeat loudly.", "Repeat.")
    optimizer = search(here, rounds=2, per_round=2, examples=2)
    optimizer.to_the_end = True
    here.steps(optimizer)
    first, _, third, _ = here.asked("optimizer")
    assert shown(first) == [("0", "Repeat.")]
    assert shown(third) == [("0", "Repeat."), ("50", "Repeat. HALF"), ("100", "Repeat. SHOUT")]
    tasks = re.findall(r"<target-\w+>\n(\w+)\n", first.messages[-1].text)
    assert len(tasks) == 2
    assert set(tasks) <= {row["target"] for row in here.rows}


def test_scores_of_another_scale_are_shown_as_what_they_are_worth(world: Any) -> None:
    """Half of ten points is half, also before any text has more than one point."""
    here = world("Repeat. ONE", "Repeat. HALF")
    metric = nn.Metric(lambda said, target: 10.0 if said == target else 0.5, "the word in capitals", scale=(0, 10))
    optimizer = search(here, rounds=2, per_round=1)
    objective = Objective(here.program, metric, here.rows)
    with use_models(forward=here.model):
        while optimizer.step(objective) is not None:
            pass
    first, second = here.asked("optimizer")
    assert shown(first) == [("5", "Repeat.")]
    assert "Score 5 of 100:" in first.messages[-1].text
    assert shown(second) == [("5", "Repeat."), ("5", "Repeat. ONE")]


def test_each_proposal_of_a_round_sees_other_tasks(world: Any) -> None:
    """So proposals differ also when the model is deterministic."""
    here = world("Repeat. HALF")
    here.steps(search(here, per_round=4))
    assert len({request.messages[-1].text for request in here.asked("optimizer")}) > 1


def test_long_tasks_are_shown_without_their_middle_and_leave_room_for_the_texts() -> None:
    """Three contracts of 100 kB took all of the room, so one text was shown, or the request did not fit."""
    asked: list[str] = []

    def model(request: Request) -> Any:
        if request.purpose != "optimizer":
            return "no"
        asked.append(request.messages[-1].text)
        return {"text": f"Repeat {len(asked)}.", "reason": ""}

    program = nn.ChatCompletion("{page}", system=nn.Parameter("Repeat.", role="system prompt"))
    rows = [{"page": f"Begin {n}. " + "word " * 20_000 + f" End {n}.", "target": f"T{n}"} for n in range(4)]
    optimizer = optim.OPRO(program.parameters(), rounds=2, per_round=2)
    small = llm.resolve(FunctionModel(model), context=8192)
    with use_models(forward=FunctionModel(model), optimizer=small):
        objective = Objective(program, nn.ExactMatch(), rows)
        while optimizer.step(objective) is not None:
            pass
    assert len(asked) == 4
    assert asked[-1].count("<tried-") == 3
    assert all(text.count("more characters …]") == 3 for text in asked)
    assert max(map(llm.tokens.count, asked)) < 3500
    assert re.search(r"Begin (\d)\..*End \1\..*T\1", asked[-1], re.DOTALL)


def test_only_so_many_of_the_best_are_shown(world: Any) -> None:
    """The trajectory does not outgrow the prompt: by number, and by tokens, from the worst."""
    here = world(*(f"Repeat {n} times." for n in range(6)), "Repeat. HALF")
    here.steps(search(here, rounds=3, per_round=4, shown=3))
    assert [len(shown(request)) for request in here.asked("optimizer")][-1] == 3
    there = world(*(f"Repeat {n} times." for n in range(6)), "Repeat. HALF")
    there.steps(search(there, rounds=3, per_round=4, max_feedback_tokens=12))
    assert shown(there.asked("optimizer")[-1])[-1] == ("50", "Repeat. HALF")
    assert len(shown(there.asked("optimizer")[-1])) < 4


def test_the_highest_score_on_training_changes_the_parameters_only_if_validation_agrees() -> None:
    """Here the text that is best on the training examples is worse on the others."""

    def model(request: Request) -> Any:
        if request.purpose == "optimizer":
            return {"text": "by heart", "reason": ""}
        system, word = request.messages[0].text, request.messages[-1].text
        return word.upper() if (system == "by heart") == word.startswith("t") else word

    program = nn.ChatCompletion("{word}", system=nn.Parameter("repeat", role="system prompt"))
    train = [{"word": f"t{n}", "target": f"T{n}"} for n in range(4)]
    val = [{"word": f"v{n}", "target": f"V{n}"} for n in range(4)]
    optimizer = optim.OPRO(program.parameters(), rounds=1, per_round=1)
    optimizer.to_the_end = True
    with use_models(forward=FunctionModel(model)):
        decided = optimizer.step(Objective(program, nn.ExactMatch(), train, val))
    assert decided is not None
    assert not decided.kept
    assert decided.why == "scores 1.000, the highest so far, but is no better on validation (0.000)"
    assert program.system.data == "repeat"
    assert decided.race is not None


def test_several_parameters_take_turns_each_with_its_own_texts(two: Any) -> None:
    """A text of the first prompt is never proposed for the second."""

    asked: list[Request] = []

    def model(request: Request) -> Any:
        if request.purpose == "optimizer":
            asked.append(request)
            return {"text": f"new {len(asked)}", "reason": ""}
        return request.messages[-1].text

    program = two()
    optimizer = optim.OPRO(program.parameters(), rounds=2, per_round=2)
    optimizer.to_the_end = True
    objective = Objective(program, nn.ExactMatch(), [{"word": "a", "target": "a"}])
    with use_models(forward=FunctionModel(model)):
        roles = [decided.changes[0].variable.role for _ in range(4) if (decided := optimizer.step(objective))]
    assert roles == ["second prompt", "first prompt"] * 2
    for request in asked:
        mine = "one" if "The text is the first prompt" in request.messages[-1].text else "two"
        assert mine in {text for _, text in shown(request)}
        assert {"one": "two", "two": "one"}[mine] not in {text for _, text in shown(request)}


def test_it_climbs_on_a_simulated_task(parcels: Callable[..., SimulatedTask]) -> None:
    """By scores alone, from the seed prompt some of the way to the optimum."""
    task = parcels(train=48, val=48)
    program = task.program()
    optimizer = optim.OPRO(program.parameters(), rounds=10, seed=1)
    objective = Objective(program, task.loss, task.train, task.val)
    with use_models(forward=task.model):
        while optimizer.step(objective) is not None:
            pass
    assert task.progress(str(program.system.data)) > 0.3


def test_a_text_that_gets_no_answers_is_lost_and_the_rounds_go_on(world: Any) -> None:
    """A round of one text; the problem is noted."""
    here = world("Repeat. BREAK", "Repeat. SHOUT")
    here.withhold(lambda text, word: "BREAK" in text)
    lost, kept = here.steps(search(here, rounds=2, per_round=1))
    assert (lost.kept, lost.lost) == (False, True)
    assert lost.why == lost.problems[0] == "the examples could not be run: ContentFiltered: withheld"
    assert (kept.kept, here.system.data) == (True, "Repeat. SHOUT")


def test_texts_that_get_no_answers_cost_the_others_of_a_round_nothing(world: Any) -> None:
    """Two of three break the program, and the third is scored and kept."""
    here = world("BREAK one", "BREAK two", "Repeat. SHOUT")
    here.withhold(lambda text, word: "BREAK" in text)
    decided = {each.changes[0].after: each for each in here.steps(search(here, per_round=3))}
    assert decided["Repeat. SHOUT"].kept
    assert decided["BREAK one"].why == decided["BREAK two"].why == "its texts got no answers"


def test_the_first_of_a_round_may_get_no_answers_on_validation(world: Any) -> None:
    """It is lost, as nothing says that it is better there."""
    here = world("SHOUT", "Repeat. SHOUT")
    real, train = here.answer, list[str]()

    def answer(request: Request) -> Any:
        if request.purpose == "forward" and request.messages[0].text == "SHOUT":
            train.append(request.messages[-1].text)
            if len(train) > len(here.rows):
                raise ContentFiltered("withheld")
        return real(request)

    here.model._fn = answer
    lost, other = here.steps(search(here, rounds=2, per_round=1))
    assert (lost.kept, lost.lost, other.lost) == (False, True, False)
    assert lost.why == "the examples could not be run: ContentFiltered: withheld"
    assert other.why == "scores 1.000, and is better on validation (1.000)"


def test_seed_texts_that_get_no_answers_end_it(world: Any) -> None:
    """Nothing can be compared with them."""
    here = world("Repeat. SHOUT")
    here.withhold(lambda text, word: "BREAK" in text)
    here.system.data = "BREAK"
    with pytest.raises(ContentFiltered):
        here.steps(search(here))


def test_tasks_are_spoken_of_only_where_some_are_shown() -> None:
    """A program without right answers has none to show, and a model told to learn from them would make some up."""
    demo = Demo((("mail", "Where is my bill?"),), "billing")
    model = ScriptedModel([{"text": "Sort it.", "reason": ""}] * 2)
    brief = Brief("prompt", "Sort.", (None,), others=(("Sort.", 0.5),))
    for demos in ((), (demo,)):
        asyncio.run(propose(ByScores(), replace(brief, demos=demos), model))
    said = ["each with the right answer" in message.text for r in model.requests for message in r.messages]
    assert said == [False, False, False, True]


def test_of_answers_that_are_part_of_what_the_program_says_it_is_told() -> None:
    """A program that answers JSON was shown to be right with a word, so a text that asks for the word looked best."""
    shown = [Demo((("mail", "Where is it?"),), "shipping", part=part) for part in (True, False)]
    texts = []
    for demo in shown:
        model = ScriptedModel([{"text": "Sort it.", "reason": "r"}])
        brief = Brief("prompt", "Sort.", (None,), others=(("Sort.", 0.5),), demos=(demo,))
        asyncio.run(ByScores().propose(brief, model, ""))
        texts.append(model.requests[0].messages[-1].text)
    assert "Right in the answer:\n" in texts[0]
    assert "leave its form as it is" in texts[0]
    assert "Right answer:\n" in texts[1]
    assert "form" not in texts[1]
