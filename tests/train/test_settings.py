"""What decides what a run asks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from textgrad_engine.data import DataLoader
from textgrad_engine.nn import Parameter
from textgrad_engine.optim import OPRO, TGD, BeamSearch, BootstrapDemos, Optimizer, ParetoSearch, PatchSearch
from textgrad_engine.optim.proposers import Rewrite
from textgrad_engine.train import Guards, Trainer
from textgrad_engine.train.settings import Setting, settings_of

LOADER = DataLoader([{"word": "ant"}], batch_size=1)


def settings(optimizer: Optimizer, **trainer: Any) -> dict[str, Setting]:
    return settings_of(Trainer(**trainer), optimizer, LOADER)


@pytest.mark.parametrize("kind", [TGD, PatchSearch, ParetoSearch, BeamSearch, OPRO, BootstrapDemos])
def test_every_optimizer_tells_its_class_and_its_own_numbers(kind: Any) -> None:
    """As JSON; no parameter, model or object, of which nobody knows in another process whether it is the same."""
    found = settings(kind([Parameter("x")]))
    assert json.loads(json.dumps(found)) == found
    assert (found["optimizer"], found["batch_size"], found[f"{kind.__name__}.max_tokens"]) == (kind.__name__, 1, 2000)
    assert not {f"{kind.__name__}.{name}" for name in ("params", "model", "rounds", "proposals", "sets")} & set(found)


def test_each_group_tells_of_itself() -> None:
    """So that a group that is set otherwise is named."""
    groups = [{"params": [Parameter("x")], "max_edits": 1}, {"params": [Parameter("y")], "proposer": Rewrite()}]
    found = settings(TGD(groups))
    assert (found["param_groups[0].max_edits"], found["param_groups[1].max_edits"]) == (1, 12)
    assert "param_groups[1].proposer" not in found
    assert "TGD.max_edits" not in found


def test_a_key_that_an_optimizer_of_ones_own_takes_is_none() -> None:
    """Settings are written down; numbers of its own are, and texts that ours takes, too."""

    class Remote(TGD):
        def __init__(self, params: Any, secret: str, retries: int) -> None:
            super().__init__(params, mode="rewrite")
            self.secret, self.retries = secret, retries

    class Appending(Optimizer):
        def __init__(self, params: Any, **defaults: Any) -> None:
            super().__init__(params, defaults)

        def step(self, closure: Any = None) -> None:
            """Changes nothing."""

    key = "swordfish-42-swordfish"
    found = settings(Remote([Parameter("x")], key, 3))
    assert (found["optimizer"], found["Remote.mode"], found["Remote.retries"]) == ("Remote", "rewrite", 3)
    assert key not in found.values()
    assert key not in settings(Appending([Parameter("x")], secret=key)).values()


def test_the_lanes_of_a_search_are_told() -> None:
    """As many proposals are asked for before the first one is settled, so they hear other things."""
    assert settings(PatchSearch([Parameter("x")], lanes=2))["PatchSearch.lanes"] == 2


def test_the_frontier_of_a_search_is_told() -> None:
    """It decides whose text is changed next."""
    assert settings(ParetoSearch([Parameter("x")]))["ParetoSearch.frontier"] == "instance"
    assert settings(ParetoSearch([Parameter("x")], frontier="hybrid"))["ParetoSearch.frontier"] == "hybrid"


def test_guards_are_told_in_whatever_order_they_were_named() -> None:
    """What they refuse is not what the next proposal is made of, so a run would go on with other requests."""

    def told(**guards: Any) -> Setting:
        return settings(TGD([Parameter("x")]), guards=Guards(**guards))["guards"]

    assert settings(TGD([Parameter("x")]))["guards"] is None
    assert told(never_break=["b", "a"], floors={("kind", 1): 1}) == "never_break a, b; reruns 2; floors kind=1: 1"
    assert told(never_break=["a"], reruns=0) == "never_break a", "as a run of before has it, which had none"
    assert told(metrics={"b": 0.5, "a": 1}) == told(metrics={"a": 1.0, "b": 0.5}) == "metrics a: 1, b: 0.5"
    assert told(metrics={"a": 0.5}) != told(metrics={"a": 0.75})


def test_what_only_says_how_far_or_how_fast_is_left_out() -> None:
    plain = settings(TGD([Parameter("x")]))
    assert settings(TGD([Parameter("x")]), max_epochs=9, max_steps=3, patience=1, concurrency=2, controls=True) == plain
    assert settings(TGD([Parameter("x")]), seed=1, tokens_weight=0.1, clusters="thread") != plain
