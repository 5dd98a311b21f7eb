"""Feedback transforms in the searches that show feedback: what the proposer reads, and what lines keep of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.llm import Request
from textgrad_engine.optim.search.searcher import Decision, Searcher
from textgrad_engine.optim.transforms import Context, FeedbackTransform, Gathered, chain, cluster, momentum, summarise
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective, Trainer
from textgrad_engine.train.estimate import estimate

WORDS = ("ant", "bee", "cat", "dog")
ROWS = [{"id": word, "word": word, "target": word.upper()} for word in WORDS]
CAPITALS = "Write the word in capital letters only, as case {} shows."

SEARCHES: dict[str, Callable[..., Searcher]] = {
    "PatchSearch": lambda params, **more: optim.PatchSearch(params, lanes=1, batch_size=4, **more),
    "ParetoSearch": lambda params, **more: optim.ParetoSearch(params, batch_size=4, proposals=1, **more),
    "BeamSearch": lambda params, **more: optim.BeamSearch(params, rounds=1, paraphrases=0, errors=4, **more),
}
every_search = pytest.mark.parametrize("name", SEARCHES)


class Told(FeedbackTransform):
    """Notes what it may know of the step, and says how many items there were."""

    def __init__(self, sends: Callable[[Gathered], Gathered]) -> None:
        self.sends = sends
        self.contexts: list[Context] = []

    async def update(self, gathered: Gathered, state: dict[str, Any], context: Context) -> Any:
        self.contexts.append(context)
        return self.sends(gathered), state


class World:
    """Words to be written in capitals; a critic that says so in other words for each, and a merger of such feedback."""

    def __init__(self, name: str, merges: Any = "Shout all of them.", **settings: Any) -> None:
        self.merges = merges
        self.model = FunctionModel(self.answer)
        self.program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
        self.search = SEARCHES[name](self.program.parameters(), **settings)

    def answer(self, request: Request) -> Any:
        wanted = request.config.response_format
        if wanted is not None and wanted.name == "reduce":
            if isinstance(self.merges, Exception):
                raise self.merges
            return {"items": [{"text": self.merges, "numbers": [1, 2, 3, 4]}]}
        if request.purpose == "backward":
            cases = wanted.json_schema["properties"]
            return {case: dict.fromkeys(part["properties"], CAPITALS.format(case)) for case, part in cases.items()}
        if request.purpose == "optimizer":
            fields = wanted.json_schema["properties"]
            if "edits" in fields:
                return {"edits": [{"op": "add", "line": 1, "text": "SHOUT", "reason": "asked", "feedback": [1]}]}
            return {name: "Repeat.\nSHOUT" if name == "text" else "asked" for name in fields}
        system, word = request.messages[0].text, request.messages[-1].text
        return word.upper() if "SHOUT" in system else word

    def step(self) -> Decision:
        with use_models(forward=self.model):
            decided = self.search.step(Objective(self.program, nn.ExactMatch(), ROWS))
        self.search.close()
        assert decided is not None
        return decided

    def asked(self, kind: str) -> list[str]:
        """What the optimizer's model was asked, for a proposal or to merge feedback."""
        found = [request for request in self.model.requests if request.purpose == "optimizer"]
        merging = [request.config.response_format.name == "reduce" for request in found]  # type: ignore[union-attr]
        return [r.messages[-1].text for r, merges in zip(found, merging) if merges is (kind == "merge")]


@every_search
@pytest.mark.parametrize(
    ("transforms", "error", "message"),
    [
        (cluster(), TypeError, "transforms is a sequence"),
        ([print], TypeError, "a feedback transform has"),
        ([cluster(), momentum(3)], ValueError, r"makes proposals side by side, and Momentum\(window=3\) remembers"),
    ],
)
def test_what_is_no_transform_or_would_remember_in_vain_is_refused(
    name: str, transforms: Any, error: Any, message: str
) -> None:
    """For all parameters, and for a group: nothing is accepted and ignored."""
    prompt = nn.Parameter("Repeat.", role="prompt")
    with pytest.raises(error, match=message):
        SEARCHES[name]([prompt], transforms=transforms)
    with pytest.raises(error, match=message):
        SEARCHES[name]([{"params": [prompt], "transforms": transforms}])


@pytest.mark.parametrize("make", [*SEARCHES.values(), optim.TGD])
def test_transforms_given_one_by_one_are_those_of_every_group(make: Callable[..., optim.Optimizer]) -> None:
    """An iterator is gone over once."""
    groups = [{"params": [nn.Parameter(text, role="prompt")]} for text in ("A", "B")]
    made = make(groups, transforms=iter([cluster()]))
    assert [group["transforms"] for group in made.param_groups] == [chain(cluster())] * 2


@every_search
def test_a_merger_that_gives_no_answer_costs_its_proposal_alone(name: str) -> None:
    """It is noted; no proposal is asked for on feedback that was not made ready."""
    here = World(name, ContentFiltered("no"), transforms=[summarise(1)])
    decided = here.step()
    assert not decided.kept
    assert decided.problems == ("the feedback was not transformed: ContentFiltered: no",)
    assert here.asked("proposal") == []


@every_search
def test_transforms_that_leave_nothing_ask_nothing(name: str) -> None:
    """Defect of section 9: rewriting with no feedback at all."""
    here = World(name, transforms=[Told(lambda gathered: replace(gathered, items=()))])
    assert here.step().changes == ()
    assert here.asked("proposal") == []


@every_search
def test_without_them_equal_texts_become_one(name: str) -> None:
    """As ever: four texts that differ in a word stay four."""
    here = World(name)
    (change,) = here.step().changes
    assert [item.times for item in change.items] == [1, 1, 1, 1]
    assert here.asked("proposal")[0].count("Write the word in capital letters only") == 4


@every_search
def test_the_proposer_reads_what_transforms_made_of_it(name: str) -> None:
    """One item for what was said in nearly the same words; it stands for all its examples, and so does the line."""
    here = World(name, transforms=[cluster(0.5, 1)])
    decided = here.step()
    (shown,) = here.asked("proposal")
    assert shown.count("Write the word in capital letters only") == 1
    assert "4 times" in shown
    (change,) = decided.changes
    assert [(item.times, sorted(item.examples)) for item in change.items] == [(4, sorted(WORDS))]
    assert decided.kept
    origins = here.search.origins(here.program.system)
    if name == "PatchSearch":  # the others write the whole text anew, and name no feedback
        assert origins[1] is not None
        assert sorted(origins[1].evidence[0].examples) == sorted(WORDS)


@every_search
def test_transforms_may_ask_the_optimizers_model(name: str) -> None:
    """Its answer is shown instead of what it stands for; the calls are the optimizer's."""
    here = World(name, transforms=[summarise(1)])
    (change,) = here.step().changes
    assert len(here.asked("merge")) == 1
    (shown,) = here.asked("proposal")
    assert "Shout all of them." in shown
    assert "capital letters" not in shown
    assert [(item.text, item.times) for item in change.items] == [("Shout all of them.", 4)]


@every_search
def test_the_budget_of_tokens_comes_behind_them(name: str) -> None:
    """What they make longer is still cut to whole items, and counted."""
    longer = Told(lambda g: replace(g, items=tuple(replace(item, text=item.text * 9) for item in g.items)))
    here = World(name, transforms=[longer], max_feedback_tokens=130)
    (change,) = here.step().changes
    assert (len(change.items), change.left_out) == (1, 3)


@every_search
def test_they_know_the_step(name: str) -> None:
    """The text, its role, and the number; what they add to the history is shown."""
    told = Told(lambda gathered: replace(gathered, history=(*gathered.history, "asked for often")))
    here = World(name, transforms=[told])
    here.step()
    (context,) = told.contexts
    assert (context.text, context.role, context.step) == ("Repeat.", "system prompt", 1)
    assert "asked for often" in here.asked("proposal")[0]


@every_search
def test_an_estimate_counts_what_they_ask(name: str) -> None:
    """A request more for each proposal, and one to repair it; a placeholder can be merged."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))

    def most(transforms: list[FeedbackTransform] | None) -> tuple[float, float, float]:
        made = SEARCHES[name](program.parameters(), transforms=transforms)
        found = estimate(Trainer(max_steps=2), program, nn.ExactMatch(), made, ROWS, ROWS)
        calls = found.calls["optimizer"]
        assert calls.usual is not None
        return calls.high, calls.usual, found.input_tokens["optimizer"].high

    with_them, without = most([summarise(1)]), most(None)
    assert all(more > few for more, few in zip(with_them, without))
    here = World(name, transforms=[summarise(1)])
    here.step()
    assert len(here.asked("merge")) + len(here.asked("proposal")) <= with_them[0]


def test_settings_can_still_be_saved() -> None:
    """Without transforms of one's own the state of a search is plain data."""
    here = World("ParetoSearch")
    here.step()
    assert json.loads(json.dumps(here.search.state_dict()))["param_groups"][0]["transforms"] is None
