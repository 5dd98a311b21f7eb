from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.errors import AuthenticationFailed, EmptyResponse
from textgrad_engine.llm import Request, Usage
from textgrad_engine.llm.cache import Cache
from textgrad_engine.llm.cached import Cached
from textgrad_engine.llm.response import Completion
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.proposers import Brief, Patch, Several, propose_many
from textgrad_engine.testing import FunctionModel, ScriptedModel

ITEMS = tuple(FeedbackItem(name, 1, "", ()) for name in ("first", "second", "third"))
BRIEF = Brief("prompt", "Sort.", (None,), ITEMS)


def patch(text: str, *feedback: int) -> dict[str, Any]:
    return {"edits": [{"op": "add", "line": 1, "text": text, "reason": "", "feedback": list(feedback)}]}


def many(model: ScriptedModel | FunctionModel | Cached, n: int, brief: Brief = BRIEF) -> list[Any]:
    return asyncio.run(propose_many(Several(Patch(), n), brief, model))


def test_no_candidate_is_no_number() -> None:
    """One at least."""
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        Several(Patch(), 0)


def test_equal_proposals_are_one_and_those_of_no_change_are_left_out() -> None:
    """What is returned can be raced: each text once, in the order of asking."""
    answers = [patch("b"), {"edits": []}, patch("a"), patch("b"), patch("a")]
    assert [made.text for made in many(ScriptedModel(answers), 5)] == ["Sort.\nb", "Sort.\na"]


def test_where_nothing_changes_one_says_why() -> None:
    """The caller always has something to put down."""
    bad = {"edits": [{"op": "remove", "line": 5, "text": "", "reason": "", "feedback": []}]}
    (made,) = many(ScriptedModel([bad] * 4), 2)
    assert made.text == "Sort."
    assert "removes line 5" in made.problem


def test_a_lost_answer_costs_one_candidate() -> None:
    """The others are used; when all are lost, the first error is raised."""
    assert [made.text for made in many(ScriptedModel([EmptyResponse("x"), patch("a")]), 2)] == ["Sort.\na"]
    with pytest.raises(EmptyResponse, match="one"):
        many(ScriptedModel([EmptyResponse("one"), EmptyResponse("two")]), 2)


def test_what_fails_for_all_is_raised() -> None:
    """A refused key is no lost answer."""
    with pytest.raises(AuthenticationFailed):
        many(ScriptedModel([patch("a"), AuthenticationFailed("no", status=401)]), 2)


def test_each_sees_another_item_first_and_names_items_by_their_numbers() -> None:
    """The same model at temperature 0 still proposes different things, and traces stay true."""

    def model(request: Request) -> dict[str, Any]:
        text = request.messages[-1].text
        first = min(("first", "second", "third"), key=lambda name: text.index(f'"{name}"'))
        return patch(f"about the {first}", 1, 3)

    found = many(FunctionModel(model), 3)
    assert [made.text.split("\n")[1] for made in found] == ["about the first", "about the second", "about the third"]
    assert [made.edits[0].feedback for made in found] == [(1, 3), (2, 1), (3, 2)]
    for made in found:
        named = [ITEMS[number - 1].text for number in made.edits[0].feedback]
        assert [evidence.text for evidence in made.origins[1].evidence] == named


def test_each_is_a_sample_of_its_own_for_the_cache(tmp_path: Path) -> None:
    """Without feedback to rotate the requests are equal: the cache has n answers, and gives the same n again."""

    class Counting:
        name, cache_key, calls = "counting", "counting", 0

        async def complete(self, request: Request) -> Completion:
            self.calls += 1
            return Completion(text=json.dumps(patch(str(self.calls))), usage=Usage(calls=1), model=self.name)

    model = Counting()
    brief = Brief("prompt", "Sort.", (None,))
    cached = Cached(model, Cache(tmp_path))
    first = [made.text for made in many(cached, 3, brief)]
    assert sorted(first) == ["Sort.\n1", "Sort.\n2", "Sort.\n3"]
    assert [made.text for made in many(cached, 3, brief)] == first
    assert model.calls == 3


def test_any_proposer_gives_a_list() -> None:
    """Callers need not know which it is."""
    (made,) = asyncio.run(propose_many(Patch(), BRIEF, ScriptedModel([patch("a")])))
    assert made.text == "Sort.\na"
