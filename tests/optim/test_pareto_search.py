"""ParetoSearch: who is drawn, what comes into the population, and what is merged."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.llm import Request
from textgrad_engine.optim.patch import origins_of_rewrite
from textgrad_engine.optim.search.population import Candidate
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.testing.simulated import SimulatedTask
from textgrad_engine.train import Objective


def search(world: Any, **settings: Any) -> optim.ParetoSearch:
    return optim.ParetoSearch(world.program.parameters(), **{"seed": 1, **settings})


def grown(here: Any, optimizer: optim.ParetoSearch, leads: dict[str, list[int]]) -> None:
    """A first step, and then children of the seed text that were right on some validation examples."""
    here.steps(optimizer, most=1)
    population = optimizer.population
    (seed,), (origins,) = population.candidates[0].texts, population.candidates[0].origins
    for step, (text, right) in enumerate(leads.items(), 1):
        own = tuple(origins_of_rewrite(seed, origins, text, "asked for", (), step))
        number = population.add(Candidate((text,), (own,), (0,)))
        population.scores[number].update({n: float(n in right) for n in range(len(here.rows))})


def merging(here: Any, leads: dict[str, list[int]]) -> tuple[optim.ParetoSearch, Any]:
    """What becomes of the first merge of such candidates."""
    here.system.data = "a\nb\nc"
    optimizer = search(here)
    grown(here, optimizer, leads)
    state = optimizer.state_dict()
    optimizer.load_state_dict({**state, "memory": {**state["memory"], "merge_due": True}})
    (decided,) = here.steps(optimizer, most=1)
    assert decided.kind == "merge"
    return optimizer, decided


def test_an_epoch_is_put_into_its_order_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 5,000 examples, all were put into their order anew for each one that was drawn."""
    shuffles = []

    class Counting(random.Random):
        def shuffle(self, x: Any) -> None:
            shuffles.append(len(x))
            super().shuffle(x)

    system = nn.Parameter("Repeat.", role="system prompt")
    optimizer, size = optim.ParetoSearch([system], seed=3, batch_size=4), 10
    with monkeypatch.context() as patched:
        patched.setattr(random, "Random", Counting)
        found = [optimizer._minibatch(size) for _ in range(7)]
    assert shuffles == [size] * 3
    drawn: list[int] = []
    for epoch in range(3):
        order = list(range(size))
        random.Random(f"3/epoch/{epoch}").shuffle(order)
        drawn += order
    waiting = iter(drawn)
    for batch in found:
        own: dict[int, None] = {}
        while len(own) < 4:
            own[next(waiting)] = None
        assert batch == tuple(sorted(own))
    optimizer._drawn = 2 * 4  # in a second fit, on fewer examples, an epoch of the same name has another order
    assert optimizer._minibatch(4) == (0, 1, 2, 3)


def test_a_minibatch_without_failures_asks_nobody(world: Any) -> None:
    """Nothing went wrong: no critic, no optimizer, no scores on validation."""
    here = world("Repeat. SHOUT")
    here.system.data = "SHOUT"
    optimizer = search(here, proposals=3)
    optimizer.to_the_end = True
    decided = here.steps(optimizer)
    assert [each.why for each in decided] == ["all answers of its minibatch were right"] * 3
    assert here.asked("backward") == here.asked("optimizer") == []


def test_a_critic_that_says_nothing_is_not_told_as_right_answers(world: Any) -> None:
    """All answers were wrong, and nobody is asked for a text."""
    here = world("Repeat. SHOUT")
    real = here.answer
    here.model._fn = lambda request: feedback_for(request, "") if request.purpose == "backward" else real(request)
    decided = here.steps(search(here, proposals=2))
    assert [each.why for each in decided] == ["there was no feedback on its minibatch"] * 2
    assert here.asked("optimizer") == []


def test_a_lost_answer_of_the_optimizer_is_noted_and_passed_over(world: Any) -> None:
    """The next step goes on."""
    here = world(ContentFiltered("nothing"), "Repeat. SHOUT")
    lost, kept = here.steps(search(here, proposals=2))
    assert (lost.kept, lost.why) == (False, "the optimizer gave no answer: ContentFiltered: nothing")
    assert lost.problems == ("the optimizer gave no answer: ContentFiltered: nothing",)
    assert kept.kept
    assert here.system.data == "Repeat. SHOUT"


def test_a_text_that_breaks_its_contract_is_dropped(world: Any) -> None:
    """It is asked for once more, with the problem; nothing is scored with it."""
    here = world("word " * 60)
    (decided,) = here.steps(search(here, proposals=1, max_tokens=40))
    assert decided.why.startswith("dropped: ")
    assert decided.changes[0].problem
    assert len(here.asked("optimizer")) == 2
    assert len(here.asked("forward")) == 8 + 3


def test_a_text_that_is_to_stay_is_no_proposal(world: Any) -> None:
    """It is asked for once, and nothing is scored."""
    here = world("")
    (decided,) = here.steps(search(here, proposals=1))
    assert (decided.kept, decided.why) == (False, "nothing was proposed")
    assert (decided.changes[0].problem, decided.changes[0].after) == ("", "Repeat.")
    assert len(here.asked("optimizer")) == 1
    assert len(here.asked("forward")) == 8 + 3


def test_what_is_not_better_on_its_minibatch_costs_no_validation(world: Any) -> None:
    """Three examples with the old text, three with the new one."""
    here = world("Repeat loudly.")
    (decided,) = here.steps(search(here, proposals=1))
    assert (decided.kept, decided.why) == (False, "not better on its minibatch (0.000 -> 0.000)")
    assert decided.race is None
    assert len(here.asked("forward")) == 8 + 3 + 3


def test_what_is_better_joins_and_the_best_on_validation_is_in_the_parameters(world: Any) -> None:
    """HALF is better than nothing, SHOUT is better than HALF."""
    here = world("Repeat. HALF", "Repeat. SHOUT", "Repeat. SHOUT")
    optimizer = search(here, proposals=6)
    decided = here.steps(optimizer)
    kept = [each for each in decided if each.kept]
    assert [each.changes[0].after for each in kept] == ["Repeat. HALF", "Repeat. SHOUT"]
    assert kept[-1].why.endswith("and the best on validation (1.000)")
    assert kept[-1].race is not None
    assert (kept[-1].race.outcome, len(kept[-1].race.examples)) == ("better", 8)
    assert optimizer.expected == 1.0
    assert here.system.data == "Repeat. SHOUT"


def test_all_training_examples_are_drawn_before_one_comes_again(world: Any) -> None:
    """Epochs, as the paper has them: eight examples in minibatches of four are over after two steps."""
    here = world("Repeat loudly.")
    one, two, three = here.steps(search(here, proposals=3, batch_size=4))
    assert sorted(one.examples + two.examples) == sorted(row["id"] for row in here.rows)
    assert len(three.examples) == 4


def test_a_candidate_that_is_best_somewhere_is_drawn_again(world: Any) -> None:
    """The parent of a step need not be the best on average: here each of two knows one half of the words."""

    class Halves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.system = nn.Parameter("none", role="system prompt")
            self.chat = nn.ChatCompletion("{word}", system=self.system)

        def forward(self, word: Any) -> Any:
            return self.chat(word=word)

    def model(request: Request) -> Any:
        system, word = request.messages[0].text, request.messages[-1].text
        if request.purpose == "backward":
            return feedback_for(request, "more")
        if request.purpose == "optimizer":
            shown = request.messages[-1].text
            return {"text": "evens" if "odds" in shown else "odds" if "none" in shown else "evens", "reason": ""}
        number = int(word)
        right = (number % 2 == 0) == (system == "evens") if system in ("evens", "odds") else False
        return "yes" if right else "no"

    rows = [{"word": str(number), "target": "yes"} for number in range(9)]
    program = Halves()
    optimizer = optim.ParetoSearch(program.parameters(), proposals=20, merges=0, seed=2)
    objective = Objective(program, nn.ExactMatch(), rows, rows)
    with use_models(forward=FunctionModel(model)):
        while optimizer.step(objective) is not None:
            pass
    texts = [candidate.texts[0] for candidate in optimizer.population.candidates]
    assert texts == ["none", "odds", "evens"]
    assert program.system.data == "evens"


def test_who_leads_on_more_examples_is_drawn_more_often(world: Any) -> None:
    """Algorithm 2 of the paper: leads on seven examples against one, so about seven draws against one."""
    here = world("Repeat loudly.")
    optimizer = search(here, proposals=61)
    grown(here, optimizer, {"Repeat. MANY": [0, 1, 2, 3, 4, 5, 6], "Repeat. ONE": [7]})
    drawn = Counter(each.changes[0].before for each in here.steps(optimizer, most=60))
    assert drawn.keys() == {"Repeat. MANY", "Repeat. ONE"}
    assert drawn["Repeat. MANY"] > 45


def test_a_merge_that_does_worse_than_the_better_parent_is_not_taken_in(world: Any) -> None:
    """Each of two lines helps half of the words, and both together none."""

    class Clashing(world):  # type: ignore[misc]
        def answer(self, request: Request) -> Any:
            if request.purpose != "forward":
                return super().answer(request)
            system, word = request.messages[0].text, request.messages[-1].text
            odd = [row["word"] for row in self.rows].index(word) % 2 == 1
            return word.upper() if ("ODD" in system, "EVEN" in system) == (odd, not odd) else word

    here = Clashing("Repeat loudly.")
    optimizer, decided = merging(here, {"ODD\nb\nc": [1, 3, 5, 7], "a\nb\nEVEN": [0, 2, 4, 6]})
    assert not decided.kept
    assert decided.changes[0].after == "ODD\nb\nEVEN"
    assert decided.why.startswith("the merged texts do worse on ")
    assert len(optimizer.population.candidates) == 3


def test_the_prompt_that_more_of_the_feedback_went_to_is_changed_more_often(two_prompts: Any) -> None:
    """Seven examples speak to the second prompt and one to the first: about seven changes against one."""
    here = two_prompts
    optimizer = optim.ParetoSearch(here.program.parameters(), batch_size=8, proposals=60, seed=1)
    changed = Counter(each.changes[0].variable.role for each in here.steps(optimizer, most=60))
    assert changed.keys() == {"first prompt", "second prompt"}
    assert changed["second prompt"] > 45


def test_the_prompt_that_the_feedback_went_to_is_changed(two: Any) -> None:
    """Credit, not turns: the second of two prompts is never touched when nobody speaks of it."""

    def model(request: Request) -> Any:
        if request.purpose == "backward":
            cases = request.config.response_format.json_schema["properties"]
            said = {}
            for case, schema in cases.items():
                keys = schema["properties"]
                said[case] = {key: "" if key == "system" and len(keys) > 1 else "Shout." for key in keys}
            return said
        if request.purpose == "optimizer":
            return {"text": "SHOUT", "reason": "asked for"}
        text = request.messages[-1].text
        return text.upper() if request.messages[0].text == "SHOUT" else text

    program = two()
    rows = [{"word": word, "target": word.upper()} for word in ("a", "b", "c")]
    optimizer = optim.ParetoSearch(program.parameters(), proposals=1)
    with use_models(forward=FunctionModel(model)):
        decided = optimizer.step(Objective(program, nn.ExactMatch(), rows, rows))
    assert decided is not None
    assert decided.kept
    assert [change.variable.role for change in decided.changes] == ["first prompt"]
    assert (program.first.system.data, program.second.system.data) == ("SHOUT", "two")


def test_it_climbs_on_a_simulated_task_and_merges(parcels: Callable[..., SimulatedTask]) -> None:
    """Most of the way from the seed prompt to the optimum, in 60 proposals; some of what it tries are merges."""
    task = parcels(rules=6, train=48, val=48, seed=0)
    program = task.program()
    optimizer = optim.ParetoSearch(program.parameters(), proposals=60, seed=1)
    objective = Objective(program, task.loss, task.train, task.val)
    kinds = []
    with use_models(forward=task.model):
        while (decided := optimizer.step(objective)) is not None:
            kinds.append(decided.kind)
    assert task.progress(str(program.system.data)) > 0.8
    assert kinds.count("merge") in range(1, 6)
    assert optimizer.finished


@pytest.mark.parametrize("merges", [0, 2])
def test_no_more_merges_are_tried_than_allowed(parcels: Callable[..., SimulatedTask], merges: int) -> None:
    """None at all, when it is 0."""
    task = parcels()
    program = task.program()
    optimizer = optim.ParetoSearch(program.parameters(), proposals=40, merges=merges, seed=1)
    objective = Objective(program, task.loss, task.train, task.val)
    kinds = []
    with use_models(forward=task.model):
        while (decided := optimizer.step(objective)) is not None:
            kinds.append(decided.kind)
    assert kinds.count("merge") <= merges


def breaking(world: type[Any], *lines: str, after: int = 0) -> type[Any]:
    """The world of words where texts with all these lines get no answers, once they got so many."""

    class Breaking(world):  # type: ignore[misc]
        answered = 0

        def answer(self, request: Request) -> Any:
            if request.purpose == "forward" and all(line in request.messages[0].text for line in lines):
                if self.answered == after:
                    raise ContentFiltered("withheld")
                self.answered += 1
            return super().answer(request)

    return Breaking


@pytest.mark.parametrize("after", [0, 3])
def test_a_text_that_gets_no_answers_is_lost_and_the_search_goes_on(world: Any, after: int) -> None:
    """On its minibatch as well as on validation, where it would be the best; the problem is noted."""
    here = breaking(world, "BREAK", after=after)("SHOUT BREAK", "Repeat. SHOUT")
    lost, kept = here.steps(search(here, proposals=2))
    assert (lost.kept, lost.lost, lost.race) == (False, True, None)
    assert lost.why == lost.problems[-1] == "the examples could not be run: ContentFiltered: withheld"
    assert lost.changes[0].after == "SHOUT BREAK"
    assert (kept.kept, kept.lost) == (True, False)
    assert here.system.data == "Repeat. SHOUT"


def test_a_merge_that_gets_no_answers_is_lost(world: Any) -> None:
    """Each line by itself can be run, and both together break the program."""
    here = breaking(world, "ODD", "EVEN")("Repeat loudly.")
    optimizer, decided = merging(here, {"ODD\nb\nc": [1, 3, 5, 7], "a\nb\nEVEN": [0, 2, 4, 6]})
    assert decided.lost
    assert "ContentFiltered: withheld" in decided.why
    assert len(optimizer.population.candidates) == 3


def test_merged_texts_that_do_as_well_are_taken_in(world: Any) -> None:
    """As the paper has it: the merge must not do worse than the better parent, and need not do better."""
    here = world("Repeat loudly.")
    optimizer, decided = merging(here, {"ODD\nb\nc": [], "a\nb\nEVEN": []})
    assert decided.why.startswith("the merged texts do not do worse on 5 examples (0.000 -> 0.000)")
    assert len(optimizer.population.candidates) == 4


@pytest.mark.parametrize("count", [1, 2])
def test_a_lost_answer_is_no_failure_of_merged_texts(world: Any, count: int) -> None:
    """They are compared with the better parent on the examples that both answered."""

    class Losing(world):  # type: ignore[misc]
        lost = 0

        def answer(self, request: Request) -> Any:
            system, word = request.messages[0].text, request.messages[-1].text
            if request.purpose != "forward" or "ODD" not in system or "EVEN" not in system:
                return super().answer(request)
            if self.lost < count:
                self.lost += 1
                raise ContentFiltered("withheld")
            return word.upper()

    optimizer, decided = merging(
        Losing("Repeat loudly."), {"ODD\nb\nc": [0, 1, 2, 3, 4, 5, 6], "a\nb\nEVEN": [2, 3, 4, 5, 6, 7]}
    )
    assert decided.why.startswith(f"the merged texts do not do worse on {5 - count} examples (")
    assert len(optimizer.population.candidates) == 4
