"""RandomSearch, the control: no feedback is asked for, and nothing is kept without a race."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine import Variable, nn, optim, use_models
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.llm import Request
from textgrad_engine.optim import RandomEdits, RandomSearch, Requires
from textgrad_engine.optim.proposers import Brief, Patch, Rewrite, Unaided
from textgrad_engine.testing import FunctionModel, ScriptedModel
from textgrad_engine.testing.simulated import SimulatedTask
from textgrad_engine.train import Objective


def test_numbers_out_of_range_are_refused() -> None:
    """With the name of the setting."""
    prompt = [Variable("x", role="prompt", requires_grad=True)]
    for wrong, match in (
        ({"proposals": 0}, "proposals must be at least 1"),
        ({"momentum": -1}, "momentum must be at least 0"),
        ({"allowance": 0}, "allowance must be at least 1"),
    ):
        with pytest.raises(ValueError, match=match):
            RandomSearch(prompt, RandomEdits(), **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="edits must be at least 1, got 0"):
        RandomEdits(edits=0)


def test_no_feedback_is_asked_for(world: Any) -> None:
    """The prompt says that there is none, and no critic is called."""
    here = world("Repeat loudly.", "Repeat. SHOUT", "Repeat.")
    decided = here.steps(RandomSearch(here.program.parameters(), Rewrite(), proposals=3))
    assert here.asked("backward") == []
    assert "There is no feedback on it." in here.asked("optimizer")[0].messages[-1].text
    assert [(each.kept, each.why) for each in decided[:2]] == [(False, "no difference"), (True, "better")]
    assert here.system.data == "Repeat. SHOUT"


def test_what_did_not_help_is_shown_to_the_proposer(world: Any) -> None:
    """Line by line, also where the text was written anew."""
    here = world("Repeat.\nLoudly.", "Repeat.\nQuietly.", "Repeat.")
    here.steps(RandomSearch(here.program.parameters(), Rewrite(), proposals=3))
    first, second, third = (request.messages[-1].text for request in here.asked("optimizer"))
    assert "tried before" not in first
    assert "- added 'Loudly.' — no difference" in second
    assert "- added 'Quietly.' — no difference" in third


def test_each_request_of_the_control_shows_the_texts_that_were_tried_last(world: Any) -> None:
    """So that the next one differs, and no request is one that was made before; the same run makes the same ones."""
    texts = [f"Repeat, please, number {n}." for n in range(6)]
    asked = []
    for _ in range(2):
        here = world(*texts, "Repeat.", texts[5])
        here.steps(RandomSearch(here.program.parameters(), Unaided(), proposals=9))
        asked.append([request.messages[-1].text for request in here.asked("optimizer")])
    first, *_, last = asked[0]
    assert asked[0] == asked[1]
    assert len(set(asked[0])) == len(asked[0]) == 9
    assert "tried before" not in first
    assert [f"\n{text}\n</version-" in last for text in texts] == [False, False, True, True, True, True]
    assert "None of your last 2 proposals was a new text" in last


def test_the_control_is_not_told_to_keep_the_text(world: Any) -> None:
    """`Rewrite` says to give it back where no feedback asks for a change, which a model without any obeys."""
    here = world("Repeat. SHOUT")
    here.steps(RandomSearch(here.program.parameters(), Unaided(), proposals=1))
    (request,) = here.asked("optimizer")
    assert "feedback" not in request.messages[-1].text
    assert "give the text as it was" not in request.messages[0].text
    assert here.system.data == "Repeat. SHOUT"


def test_without_momentum_nothing_that_was_tried_is_shown(world: Any) -> None:
    """As for every proposer."""
    here = world("Repeat loudly.", "Repeat quietly.")
    here.steps(RandomSearch(here.program.parameters(), Unaided(), proposals=2, momentum=0))
    assert not any("<version-" in request.messages[-1].text for request in here.asked("optimizer"))


def test_a_text_is_tried_once(world: Any) -> None:
    """When the proposer only repeats itself, the search is over."""
    here = world("Repeat loudly.")
    decided = here.steps(RandomSearch(here.program.parameters(), Rewrite(), proposals=50))
    assert [each.why for each in decided] == ["no difference"] + ["it was tried before"] * 8
    assert len(here.asked("forward")) == 8 + 8 + 8  # with the given texts, again to measure the noise, with the new one


@pytest.mark.parametrize("proposer", [Rewrite(), Patch()])
def test_of_equals_the_shorter_text_is_kept(world: Any, proposer: Any) -> None:
    """On all examples that may be run, of which none got worse."""
    removed = {"edits": [{"op": "remove", "line": 2, "text": "", "reason": "idle", "feedback": []}]}
    here = world(removed if isinstance(proposer, Patch) else "Repeat. SHOUT")
    here.system.data = "Repeat. SHOUT\nThis line does nothing."
    search = RandomSearch(here.program.parameters(), proposer, proposals=1)
    search.to_the_end = True
    (decided,) = here.steps(search)
    assert (decided.kept, decided.why) == (True, "no difference, and shorter")
    assert len(decided.race.examples) == 8
    assert here.system.data == search.texts()[0] == "Repeat. SHOUT"


def test_a_shorter_text_that_is_worse_is_not_kept(world: Any) -> None:
    """One of eight answers lost is no tie, though no proof at the usual level."""
    here = world("Repeat. SHOUT")
    here.system.data = "Repeat. SHOUT. This helps with the hen."
    real = here.answer
    here.model._fn = lambda request: (
        "hen"
        if request.purpose == "forward" and request.messages[-1].text == "hen" and "hen" not in request.messages[0].text
        else real(request)
    )
    search = RandomSearch(here.program.parameters(), Rewrite(), proposals=1)
    search.to_the_end = True
    (decided,) = here.steps(search)
    assert (decided.kept, decided.why, decided.race.lost) == (False, "worse", ("hen",))
    assert here.system.data.endswith("the hen.")


def test_a_race_goes_no_farther_than_it_is_allowed(world: Any) -> None:
    """A text that makes no difference is run on so many examples, and given up."""
    here = world("Repeat loudly.")
    (decided,) = here.steps(RandomSearch(here.program.parameters(), Rewrite(), proposals=1, allowance=5))
    assert (decided.kept, len(decided.race.examples)) == (False, 5)


def test_a_lost_answer_and_a_broken_contract_change_nothing(world: Any) -> None:
    """Both are noted."""
    here = world(ContentFiltered("nothing"), "Shout.", "Shout.", "Shout.")
    contract = Requires(["Repeat"])
    search = RandomSearch(here.program.parameters(), Rewrite(), proposals=2, constraints=[contract])
    lost, dropped = here.steps(search)
    assert lost.problems == ("the optimizer gave no answer: ContentFiltered: nothing",)
    assert dropped.why.startswith("dropped: ")
    assert here.system.data == "Repeat."


def test_several_parameters_take_turns() -> None:
    """Nothing says which one needs a change."""
    first, second = nn.Parameter("a b c d", role="first"), nn.Parameter("e f g h", role="second")

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = first, second
            self.chat = nn.ChatCompletion("{word}", system=first)

        def forward(self, word: Any) -> Any:
            return self.chat(word=word)

    program = Two()
    search = RandomSearch(program.parameters(), RandomEdits(1), proposals=4)
    objective = Objective(program, nn.ExactMatch(), [{"word": "a", "target": "a"}])
    with use_models(forward=ScriptedModel(["b"] * 10)):
        roles = [decided.changes[0].variable.role for _ in range(4) if (decided := search.step(objective))]
    assert roles == ["second", "first", "second", "first"]


def test_random_edits_do_not_climb(parcels: Callable[..., SimulatedTask]) -> None:
    """What trying out alone is worth on the simulated task: nothing."""
    task = parcels()
    program = task.program()
    search = RandomSearch(program.parameters(), RandomEdits(2), proposals=30)
    objective = Objective(program, task.loss, task.train, task.val)
    with use_models(forward=task.model):
        while search.step(objective) is not None:
            pass
    assert task.progress(str(program.system.data)) <= 0.05


def proposed(edits: RandomEdits, text: str, step: int = 1) -> Any:
    brief = Brief(role="prompt", text=text, origins=(None,) * (text.count("\n") + 1), step=step)
    return asyncio.run(edits.propose(brief, FunctionModel(lambda request: ""), ""))


def test_random_edits_remove_move_double_or_swap_a_line() -> None:
    """Each of them comes up, and nothing else does."""
    found = {proposed(RandomEdits(1), "a\nb\nc", step).text.replace("\n", "") for step in range(200)}
    moved = {"bca", "cab"}  # of the others, each is a swap of two, too
    swapped = {"bac", "cba", "acb", "abc"}
    removed = {"bc", "ac", "ab"}
    assert {each for each in found if len(each) < 4} == moved | swapped | removed
    assert {"aabc", "abca", "abbc", "abcb", "abcc", "cabc"} <= found
    assert all(len(each) == 4 and set(each) == set("abc") for each in found - moved - swapped - removed)


TEXTS = st.text(alphabet="ab \n.", max_size=40)


@given(TEXTS, st.integers(0, 5), st.integers(1, 3))
def test_random_edits_are_what_they_say(text: str, seed: int, edits: int) -> None:
    """The same seed, the same edits; the words are those of the text; there is an origin for each line."""
    made, again = (proposed(RandomEdits(seed, edits), text) for _ in range(2))
    assert made == again
    assert set(made.text.split()) <= set(text.split())
    assert len(made.origins) == made.text.count("\n") + 1


def test_random_edits_differ_from_step_to_step() -> None:
    """Else a search would try one thing again and again."""
    text = "Sort the mail.\nBe brief.\nAnswer with one word only."
    assert len({proposed(RandomEdits(0), text, step).text for step in range(20)}) > 10


def test_optim_exports_the_controls() -> None:
    """They are part of the public surface."""
    assert optim.RandomSearch is RandomSearch
    assert optim.RandomEdits is RandomEdits


def test_other_validation_examples_are_run_anew() -> None:
    """A search that was closed goes on with another objective: what it knows is of the examples of before."""
    model = FunctionModel(lambda request: "yes" if "kind" in request.messages[0].text else "no")
    system = nn.Parameter("Be kind to all.", role="system prompt")
    program = nn.ChatCompletion("{question}", system=system, model=model)
    search = RandomSearch(program.parameters(), RandomEdits(seed=4))
    for targets in (["yes"] * 6, ["yes"] * 2 + ["no"] * 10, ["no", "yes", "yes"]):
        rows = [{"question": f"{len(targets)}/{n}", "target": target} for n, target in enumerate(targets)]
        objective = Objective(program, nn.ExactMatch(), rows)
        search.step(objective)
        assert len(search.board.val) == len(rows)
        known = [score for score in objective.scores(search.texts(), range(len(rows))) if score is not None]
        assert search.expected == sum(known) / len(rows)
        search.close()


def test_lines_kept_with_other_examples_have_ids_of_their_own() -> None:
    """By its id an edit can be taken out again: one that was kept before must not go with it."""

    def answer(request: Request) -> Any:
        text = request.messages[-1].text
        if request.purpose == "optimizer":
            line = "LATE" if "| EARLY" in text else "EARLY"
            return {"edits": [{"op": "add", "line": 1, "text": line, "reason": "tried", "feedback": []}]}
        return text.upper() if ("EARLY" if text < "g" else "LATE") in request.messages[0].text else text

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    search = RandomSearch(program.parameters(), Patch(), proposals=2)
    with use_models(forward=FunctionModel(answer)):
        for words in ("abcdef", "ghijkl"):
            rows = [{"id": word, "word": word, "target": word.upper()} for word in words]
            objective = Objective(program, nn.ExactMatch(), rows)
            while search.step(objective) is not None:
                pass
            search.close()
    assert program.system.data == "Repeat.\nLATE\nEARLY"
    ids = [origin.edit for origin in search.origins(program.system) if origin is not None]
    assert len(set(ids)) == 2


def test_a_text_that_gets_no_answers_is_lost_and_the_search_goes_on(world: Any) -> None:
    """Its race is given up, the problem is noted, and the next proposal is raced."""
    here = world("Repeat. BREAK", "Repeat. SHOUT")
    here.withhold(lambda text, word: "BREAK" in text)
    lost, kept = here.steps(RandomSearch(here.program.parameters(), Rewrite(), proposals=2))
    assert (lost.kept, lost.lost, lost.race) == (False, True, None)
    assert lost.why == lost.problems[0]
    assert "8 of 8 examples had no answer with the proposed texts" in lost.why
    assert (kept.kept, kept.lost, here.system.data) == (True, False, "Repeat. SHOUT")


@pytest.mark.parametrize("anew", [False, True])
def test_what_won_its_race_is_kept_though_guards_were_interrupted(world: Any, anew: bool) -> None:
    """They run examples again, which a budget or Ctrl-C may end. The text was lost, as it counted as tried."""
    here = world("Repeat. SHOUT")
    search = RandomSearch(here.program.parameters(), Rewrite(), proposals=2)
    objective = Objective(here.program, nn.ExactMatch(), here.rows, here.rows)
    refusal = objective.refusal

    def interrupted(*asked: Any) -> str:
        objective.refusal = refusal  # type: ignore[method-assign]
        raise KeyboardInterrupt

    objective.refusal = interrupted  # type: ignore[method-assign]
    with use_models(forward=here.model):
        with pytest.raises(KeyboardInterrupt):
            search.step(objective)
        calls = len(here.model.requests)
        if anew:
            state = json.loads(json.dumps(search.state_dict()))
            search.close()
            search = RandomSearch(here.program.parameters(), Rewrite(), proposals=2)
            search.load_state_dict(state)
        decided = search.step(objective)
    assert decided is not None
    assert (decided.number, decided.kept, decided.why) == (1, True, "better")
    assert len(here.model.requests) == calls
    assert here.system.data == "Repeat. SHOUT"


@pytest.mark.parametrize("anew", [False, True])
def test_a_proposal_whose_race_is_interrupted_is_raced_the_next_time(world: Any, anew: bool) -> None:
    """By the next step, or by that of a search with the state of this one: it is paid for, and one of `proposals`."""
    here = world("Repeat. SHOUT")
    search = RandomSearch(here.program.parameters(), Rewrite(), proposals=1)
    objective = Objective(here.program, nn.ExactMatch(), here.rows, here.rows)
    matrix = objective.matrix

    def interrupted(candidates: Any, *asked: Any, **more: Any) -> Any:
        if len(candidates) < 2:
            return matrix(candidates, *asked, **more)
        objective.matrix = matrix  # type: ignore[method-assign]
        raise KeyboardInterrupt

    objective.matrix = interrupted  # type: ignore[method-assign]
    with use_models(forward=here.model):
        with pytest.raises(KeyboardInterrupt):
            search.step(objective)
        if anew:
            state = json.loads(json.dumps(search.state_dict()))
            search.close()
            search = RandomSearch(here.program.parameters(), Rewrite(), proposals=1)
            search.load_state_dict(state)
        decided = search.step(objective)
    assert decided is not None
    assert (decided.number, decided.kept, decided.why) == (1, True, "better")
    assert here.system.data == "Repeat. SHOUT"
