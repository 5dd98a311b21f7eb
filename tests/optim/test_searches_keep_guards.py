"""Guards in searches with a population: what they refuse stands in nobody's way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.llm import Request
from textgrad_engine.train import Guards, Objective

GUARDS = Guards(never_break=("ant",))


def guarded(world: Any, *proposals: str) -> Any:
    """The task of words where the first one is right already: MOST breaks it and does all others, HALF keeps it."""

    class Guarded(world):  # type: ignore[misc]
        def answer(self, request: Request) -> Any:
            text, word = request.messages[0].text, request.messages[-1].text
            if request.purpose == "forward" and ("ANT" in text or "MOST" in text):
                return word.upper() if (word == "ant") == ("ANT" in text) else word
            return super().answer(request)

    made = Guarded(*proposals)
    made.system.data = "ANT"
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda params: optim.BeamSearch(params, rounds=1, gradients=2, paraphrases=0),
        lambda params: optim.BeamSearch(params, rounds=1, gradients=2, paraphrases=0, selection="ucb"),
        lambda params: optim.OPRO(params, rounds=1, per_round=2),
    ],
    ids=["BeamSearch", "ucb", "OPRO"],
)
def test_the_best_text_that_guards_let_through_is_taken(world: Any, make: Callable[[Any], Any]) -> None:
    """A text with a higher score that is refused does not keep out the one behind it, and both decisions say so."""
    here = guarded(world, "Repeat. MOST", "Repeat. HALF")
    decided = here.steps(make(here.program.parameters()), guards=GUARDS)
    assert here.system.data == "Repeat. HALF"
    assert [each.kept for each in decided] == [False, True]
    assert decided[0].why == "refused: ant must never break: 1.000 -> 0.000"
    assert "refused" not in decided[1].why


def test_opro_goes_on_from_texts_that_may_be_kept(world: Any) -> None:
    """What is proposed later is put beside texts that guards let through, also where the search was saved."""
    here = guarded(world, "Repeat. MOST", "Repeat. HALF", "HALF again", "HALF once more")
    first, second = (optim.OPRO(here.program.parameters(), rounds=2, per_round=2) for _ in range(2))
    objective = Objective(here.program, nn.ExactMatch(), here.rows, here.rows, guards=GUARDS)
    with use_models(forward=here.model):
        for _ in range(2):
            first.step(objective)
        second.load_state_dict(first.state_dict())
        for _ in range(2):
            second.step(objective)
    texts = [each.texts[0] for each in second.population.candidates]
    parents = {texts[n] for each in second.population.candidates[3:] for n in each.parents}
    assert texts == ["ANT", "Repeat. MOST", "Repeat. HALF", "HALF again", "HALF once more"]
    assert parents == {"Repeat. HALF"}


def test_a_beam_that_is_refused_as_a_whole_is_given_up(world: Any) -> None:
    """What comes of refused texts inherits what they were refused for, so the search went on in vain to its end."""
    here = guarded(world, "Repeat. MOST", "Repeat. MOST again", "Repeat. HALF")
    beam = optim.BeamSearch(here.program.parameters(), rounds=2, beam=2, gradients=2, paraphrases=0)
    decided = here.steps(beam, guards=GUARDS)
    assert [each.why.partition(":")[0] for each in decided[:2]] == ["refused", "refused"]
    assert here.system.data == "Repeat. HALF"
    candidates = beam.population.candidates
    assert [(each.texts[0], each.parents) for each in candidates[3:]] == [("Repeat. HALF", (0,))]


def test_a_beam_in_which_one_text_is_kept_goes_on_with_all_of_it(world: Any) -> None:
    """An edit may repair what guards refuse."""
    here = guarded(world, "Repeat. MOST", "Repeat. HALF", "Repeat. HALF and more", "Repeat. MOST and ANT")
    beam = optim.BeamSearch(here.program.parameters(), rounds=2, beam=2, gradients=2, paraphrases=0)
    here.steps(beam, guards=GUARDS)
    assert {parent for each in beam.population.candidates[3:] for parent in each.parents} == {1, 2}
