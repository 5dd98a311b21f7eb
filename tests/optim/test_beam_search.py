"""BeamSearch: what a round asks for, what it tries, and who stays in the beam."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.optim.search.volume import Sizes
from textgrad_engine.testing.simulated import SimulatedTask
from textgrad_engine.train import Objective


def search(world: Any, **settings: Any) -> optim.BeamSearch:
    return optim.BeamSearch(world.program.parameters(), **{"seed": 1, "rounds": 1, **settings})


def test_a_beam_that_gets_everything_right_asks_nobody(world: Any) -> None:
    """One decision a round, without a critic or an optimizer."""
    here = world("Repeat.")
    here.system.data = "SHOUT"
    optimizer = search(here, rounds=2)
    optimizer.to_the_end = True
    decided = here.steps(optimizer)
    assert [(each.kind, each.why) for each in decided] == [
        ("round", "no text of the beam got anything wrong on its minibatch")
    ] * 2
    assert here.asked("backward") == here.asked("optimizer") == []


def test_lost_answers_of_the_optimizer_are_noted(world: Any) -> None:
    """Each proposal says so, and the parameters stay."""
    here = world(ContentFiltered("no"))
    decided = here.steps(search(here, paraphrases=0))
    assert [each.why for each in decided] == ["the optimizer gave no answer: ContentFiltered: no"] * 2
    assert here.system.data == "Repeat."


def test_a_round_is_criticism_edits_and_paraphrases(world: Any) -> None:
    """Eight words wrong: two groups of four, one criticism and one edit each, one paraphrase of each text."""
    here = world("Repeat. A", "Repeat. B", "Repeat. C", "Repeat. D", "Repeat. E")
    decided = here.steps(search(here, gradients=2, paraphrases=1, successors=8))
    assert len(here.asked("backward")) == 2
    asked = [request.messages[-1].text for request in here.asked("optimizer")]
    assert sum("Feedback on it" in text for text in asked) == 2
    assert sum("<original-" in text for text in asked) == 3
    assert Counter(each.kind for each in decided) == {"edit": 2, "paraphrase": 3}
    edits = [each for each in decided if each.kind == "edit"]
    assert sorted(edits[0].examples + edits[1].examples) == sorted(row["id"] for row in here.rows)
    assert all(len(each.examples) == 4 and each.feedback == 4 for each in edits)


def test_a_lost_paraphrase_is_not_tried_as_the_text_that_it_was_to_say(world: Any) -> None:
    """It says that it was lost, whether that text is tried or not."""
    for successors in (2, 8):
        here = world("Repeat. A", "Repeat. B", *[ContentFiltered("no")] * 8)
        decided = here.steps(search(here, gradients=2, paraphrases=4, successors=successors))
        lost = [each for each in decided if each.kind == "paraphrase"]
        assert lost
        assert {each.why for each in lost} == {"the optimizer gave no answer: ContentFiltered: no"}
        assert all(each.race is None for each in lost)


def test_only_successors_that_are_drawn_are_tried_and_paraphrases_of_others_not_paid_for(world: Any) -> None:
    """Of two edits and six paraphrases, two are tried."""
    here = world("Repeat. A", "Repeat. B", "Repeat. C", "Repeat. D")
    decided = here.steps(search(here, gradients=2, paraphrases=2, successors=2))
    undrawn = [each for each in decided if each.why.startswith("not drawn")]
    paraphrases = [each for each in decided if each.kind == "paraphrase"]
    assert len(decided) - len(undrawn) == 2
    assert len(here.asked("optimizer")) == 2 + len(paraphrases)
    assert all(each.race is None and not each.kept for each in undrawn)


@pytest.mark.parametrize(("beam", "heard", "most"), [(1, 8, 8), (2, 12, 16)])
def test_no_more_examples_go_backward_than_it_says(world: Any, beam: int, heard: int, most: int) -> None:
    """Four of what each text of the beam gets wrong in each of two rounds; the first one begins with one text."""
    here = world(*[f"Repeat. {letter}" for letter in "ABCDEFGHIJKL"])
    optimizer = search(here, rounds=2, beam=beam, gradients=4, errors=1, paraphrases=0)
    said = optimizer.volume(Sizes(len(here.rows), len(here.rows))).feedback
    here.steps(optimizer)
    assert (len(here.asked("backward")), said.high) == (heard, most)


def test_the_parameters_hold_the_first_of_the_beam(world: Any) -> None:
    """The best of a round by the bandit; the others of the beam are told their place."""
    here = world("Repeat. HALF", "Repeat. SHOUT")
    optimizer = search(here, gradients=2, paraphrases=0)
    half, shout = here.steps(optimizer)
    assert (half.kept, shout.kept) == (False, True)
    assert half.why == "number 2 of the beam (0.500 on 8 examples)"
    assert shout.why == "first of the beam (1.000 on 8 examples)"
    assert here.system.data == "Repeat. SHOUT"
    assert optimizer.finished


def test_the_prompt_that_more_of_the_feedback_went_to_is_edited_more_often(two_prompts: Any) -> None:
    """Of each group of eight errors, seven speak to the second prompt: about seven edits against one."""
    settings = {"beam": 1, "rounds": 60, "gradients": 1, "errors": 8, "paraphrases": 0}
    decided = two_prompts.steps(search(two_prompts, **settings), most=60)
    edited = Counter(each.changes[0].variable.role for each in decided)
    assert edited.keys() == {"first prompt", "second prompt"}
    assert edited["second prompt"] > 45


def test_texts_that_were_tried_before_are_not_tried_again(world: Any) -> None:
    """Equal proposals, of one round or of two, are one candidate."""
    here = world("Repeat. HALF")
    optimizer = search(here, gradients=2, paraphrases=0, rounds=2)
    decided = here.steps(optimizer)
    assert [each.why for each in decided].count("it was tried before") >= 1
    assert [candidate.texts[0] for candidate in optimizer.population.candidates] == ["Repeat.", "Repeat. HALF"]


@pytest.mark.parametrize("selection", ["rejects", "ucb"])
def test_it_climbs_on_a_simulated_task(parcels: Callable[..., SimulatedTask], selection: Any) -> None:
    """Most of the way from the seed prompt to the optimum in four rounds, with either bandit."""
    task = parcels(rules=6, train=48, val=48)
    program = task.program()
    optimizer = optim.BeamSearch(program.parameters(), rounds=4, batch_size=24, selection=selection, seed=1)
    objective = Objective(program, task.loss, task.train, task.val)
    with use_models(forward=task.model):
        while optimizer.step(objective) is not None:
            pass
    assert task.progress(str(program.system.data)) > 0.8


def test_on_more_examples_an_earlier_text_may_lead_again(parcels: Callable[..., SimulatedTask]) -> None:
    """That is a decision of its own, so that the record always tells which texts are the best."""
    task = parcels(noise=0.3, rules=3, train=24, val=40)
    kinds: Counter[tuple[str, bool]] = Counter()
    for seed in (0, 2, 3):
        program = task.program()
        optimizer = optim.BeamSearch(program.parameters(), rounds=3, batch_size=12, evaluations=4, seed=seed)
        objective = Objective(program, task.loss, task.train, task.val)
        with use_models(forward=task.model):
            while (decided := optimizer.step(objective)) is not None:
                kinds[decided.kind, decided.kept] += 1
                assert optimizer.texts() == (program.system.data,)
    assert kinds["selection", True] > 0
    assert kinds["selection", False] == 0


def test_texts_that_get_no_answers_are_lost_and_do_not_stay_in_the_beam(world: Any) -> None:
    """A round of them, in place of which there is nothing better, does not end the search."""
    broken = [f"Repeat {number}. BREAK" for number in range(4)]
    here = world(*broken, "Repeat. SHOUT")
    here.withhold(lambda text, word: "BREAK" in text)
    optimizer = search(here, rounds=2, beam=5, errors=2, gradients=4, paraphrases=0)
    decided = here.steps(optimizer)
    lost = [each for each in decided if each.lost]
    assert [each.changes[0].after for each in lost] == broken
    assert {each.why for each in lost} == {"its texts got no answers"}
    assert not any(each.kept for each in lost)
    assert here.system.data == "Repeat. SHOUT"


def test_a_minibatch_without_answers_costs_its_round(world: Any) -> None:
    """The next one draws another."""
    here = world("Repeat. SHOUT")
    train = [{"id": f"t{number}", "word": f"bad{number}", "target": ""} for number in range(24)] + here.rows
    here.withhold(lambda text, word: word.startswith("bad"))
    optimizer = search(here, rounds=20, batch_size=2, gradients=1, paraphrases=0)
    objective = Objective(here.program, nn.ExactMatch(), train, here.rows)
    decided = []
    with use_models(forward=here.model):
        while (found := optimizer.step(objective)) is not None:
            decided.append(found)
    assert {each.why for each in decided if each.kind == "round"} == {
        "the examples could not be run: ContentFiltered: withheld"
    }
    assert all(each.lost for each in decided if each.kind == "round")
    assert here.system.data == "Repeat. SHOUT"


@pytest.mark.parametrize("lost", ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"])
def test_an_example_that_nobody_gets_an_answer_to_decides_nothing(world: Any, lost: str) -> None:
    """Wherever it comes in the order of the selection, which may run one example at a time."""
    here = world("Repeat. HALF", "Repeat. SHOUT", "Repeat.")
    here.withhold(lambda text, word: word == lost)
    optimizer = search(here, selection="rejects", rounds=3, evaluations=1)
    here.steps(optimizer)
    assert optimizer.finished
