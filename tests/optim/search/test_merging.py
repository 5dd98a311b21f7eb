"""Merging two candidates: each text from the one that changed it, line by line where both did."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from textgrad_engine import Variable, optim, use_models
from textgrad_engine.optim import Forbids
from textgrad_engine.optim.cells import Origin
from textgrad_engine.optim.patch import origins_of_rewrite
from textgrad_engine.optim.search.drafts import Desk
from textgrad_engine.optim.search.merging import Pair, merged, pairs_in
from textgrad_engine.optim.search.population import Candidate, Population
from textgrad_engine.testing import FunctionModel, ScriptedModel

SEED = ("Sort the mail.\nAnswer.", "Check it.")


def child(parent: Candidate, number: int, step: int, *texts: str) -> Candidate:
    origins: list[tuple[Origin | None, ...]] = []
    for old, own, new in zip(parent.texts, parent.origins, texts):
        origins.append(tuple(origins_of_rewrite(old, own, new, "asked for", (), step)))
    return Candidate(texts, tuple(origins), (number,))


def family(*children: tuple[str, str], means: tuple[float, ...] = (0.2, 0.6, 0.5)) -> Population:
    """A seed and its children, with one score each."""
    population = Population(("a",))
    seed = Candidate(SEED, ((None, None), (None,)))
    population.add(seed)
    for step, texts in enumerate(children, 1):
        population.add(child(seed, 0, step, *texts))
    population.scores = [{0: mean} for mean in means]
    return population


def desk(**settings: Any) -> Desk:
    variables = [Variable(text, role=f"prompt {n}", requires_grad=True) for n, text in enumerate(SEED)]
    return Desk.of(optim.ParetoSearch(variables, **settings), None)


def test_a_candidate_is_not_merged_with_its_own_ancestor() -> None:
    """The child has all that its parent has, or has given it up for a reason."""
    population = family(("Sort.\nAnswer.", "Check it."))
    population.add(child(population.candidates[1], 1, 2, "Sort it.\nAnswer.", "Check."))
    population.scores = [{0: 0.2}, {0: 0.6}, {0: 0.7}]
    assert pairs_in(population, [0, 1, 2]) == []


def test_there_is_nothing_to_merge_where_one_has_nothing_of_its_own() -> None:
    """Each must have changed something that the other has not."""
    texts = ("Sort.\nAnswer.", "Check it.")
    assert pairs_in(family(texts, texts), [1, 2]) == []
    assert pairs_in(family(texts, ("Sort.\nAnswer.", "Check.")), [1, 2]) == []


def test_of_two_that_do_as_well_the_earlier_one_is_the_better() -> None:
    """Its texts stay where there is no proposal."""
    population = family(("Sort.\nAnswer.", "Check it."), (SEED[0], "Check."), means=(0.2, 0.5, 0.5))
    assert pairs_in(population, [2, 1]) == [Pair(1, 2, 0)]
    population.scores[2] = {0: 0.6}
    assert pairs_in(population, [2, 1]) == [Pair(2, 1, 0)]


def test_a_pair_without_a_base_stands_in_nobodys_way() -> None:
    """One did worse than what it descends from; the others are merged all the same."""
    texts = [("Sort.\nAnswer.", "Check it."), (SEED[0], "Check."), ("Sort now.\nAnswer.", "Check it.")]
    population = family(*texts, means=(0.4, 0.1, 0.5, 0.6))
    assert [pair.key for pair in pairs_in(population, [1, 2, 3])] == [(2, 3)]


def test_an_ancestor_that_did_better_is_no_base() -> None:
    """What both lost since is not to be had by putting them together."""
    population = family(("Sort.\nAnswer.", "Check it."), ("Sort the mail.\nAnswer.", "Check."), means=(0.9, 0.6, 0.5))
    assert pairs_in(population, [1, 2]) == []


def test_the_ancestors_of_a_candidate_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 400 candidates on a frontier there are 80,000 pairs, and the ancestors of both were looked up for each."""
    texts = [(f"Sort {number}.", f"Check {number}.") for number in range(20)]
    population, asked, real = family(*texts, means=(0.0,) * 21), [], Population.ancestors

    def counting(own: Population, number: int) -> set[int]:
        asked.append(number)
        return real(own, number)

    monkeypatch.setattr(Population, "ancestors", counting)
    found = pairs_in(population, range(1, 21))
    assert [pair.key for pair in found] == list(itertools.combinations(range(1, 21), 2))
    assert sorted(asked) == list(range(1, 21))


def test_each_text_comes_from_the_one_that_changed_it() -> None:
    """System-aware: no model is asked."""
    population = family(("Sort.\nAnswer.", "Check it."), ("Sort the mail.\nAnswer.", "Check."))
    (pair,) = pairs_in(population, [1, 2])
    assert pair == Pair(1, 2, 0)
    draft = merged(desk(), population, pair, 3)
    assert draft.candidate.texts == ("Sort.\nAnswer.", "Check.")
    assert draft.candidate.parents == (1, 2)
    assert [origin.step if origin else None for own in draft.candidate.origins for origin in own] == [1, None, 2]
    assert [(each.parameter, each.before, each.after) for each in draft.written] == [(1, "Check it.", "Check.")]


def test_where_both_changed_a_text_other_lines_are_put_together() -> None:
    """Line by line, without a model; the lines keep the origins that they had."""
    population = family(("Sort.\nAnswer.", "Check it."), ("Sort the mail.\nAnswer.\nBe brief.", "Check it."))
    (pair,) = pairs_in(population, [1, 2])
    draft = merged(desk(), population, pair, 3)
    assert draft.candidate.texts == ("Sort.\nAnswer.\nBe brief.", "Check it.")
    assert [origin.step if origin else None for origin in draft.candidate.origins[0]] == [1, None, 2]
    (written,) = draft.written
    assert (written.before, [edit.op for edit in written.edits]) == ("Sort.\nAnswer.", ["add"])


def test_a_model_decides_where_both_changed_one_line() -> None:
    """It is shown the better one's lines with numbers, and what the other one has."""
    population = family(("Sort.\nAnswer.", "Check it."), ("Sort quickly.\nAnswer.", "Check it."))
    (pair,) = pairs_in(population, [1, 2])
    edit = {"op": "replace", "line": 1, "text": "Sort fast.", "reason": "both", "feedback": []}
    model = ScriptedModel([{"edits": [edit]}])
    with use_models(forward=model):
        draft = merged(desk(), population, pair, 3)
    assert draft.candidate.texts == ("Sort fast.\nAnswer.", "Check it.")
    assert "1| Sort.\n" in model.requests[0].messages[-1].text
    assert "+| Sort quickly." in model.requests[0].messages[-1].text


@pytest.mark.usefixtures("no_backoff")
def test_a_lost_answer_leaves_the_text_of_the_better_one() -> None:
    """As the paper has it where both have changed a prompt."""

    def silent(request: Any) -> Any:
        from textgrad_engine.errors import EmptyResponse

        raise EmptyResponse("nothing")

    population = family(("Sort.\nAnswer.", "Check it."), ("Sort quickly.\nAnswer.", "Check."))
    (pair,) = pairs_in(population, [1, 2])
    with use_models(forward=FunctionModel(silent)):
        draft = merged(desk(), population, pair, 3)
    assert draft.candidate.texts == ("Sort.\nAnswer.", "Check.")
    assert draft.problems == ("the optimizer gave no answer: EmptyResponse: nothing",)


def test_what_breaks_a_contract_together_is_dropped() -> None:
    """Each alone kept it for its own text; taken over, it is a change that is checked again."""
    population = family(("Sort.\nAnswer.", "Check it."), ("Sort the mail.\nAnswer.", "Check never."))
    (pair,) = pairs_in(population, [1, 2])
    draft = merged(desk(constraints=[Forbids(["never"])]), population, pair, 3)
    assert draft.candidate.texts == population.candidates[1].texts
    assert draft.dropped.startswith("dropped: ")


@pytest.mark.parametrize("means", [(0.2, 0.6, 0.5), (0.2, 0.5, 0.6)])
def test_the_better_one_is_the_base(means: tuple[float, float, float]) -> None:
    """Its words stay where there is a choice."""
    population = family(("Sort.\nAnswer.", "Check it."), ("Sort the mail.\nAnswer.", "Check."), means=means)
    (pair,) = pairs_in(population, [1, 2])
    assert pair.better == (1 if means[1] > means[2] else 2)
