"""What a search will cost: a range that the run keeps to, and what is usual beside it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import Trainer, llm, nn, optim, use_models
from textgrad_engine.errors import DataError
from textgrad_engine.optim.proposers import Rewrite
from textgrad_engine.optim.search.searcher import Searcher
from textgrad_engine.optim.search.volume import Range, Sizes
from textgrad_engine.testing import FunctionModel, SimulatedTask, simulated_task
from textgrad_engine.train import Guards
from textgrad_engine.train.estimate import estimate
from textgrad_engine.train.estimated import Placeholder

ROWS = [{"id": str(n), "word": f"word {n}", "target": "yes"} for n in range(20)]

SEARCHES: dict[str, Callable[[Any, int], Searcher]] = {
    "PatchSearch": lambda params, seed: optim.PatchSearch(params, seed=seed),
    "PatchSearch, 1 lane": lambda params, seed: optim.PatchSearch(params, lanes=1, batch_size=6, seed=seed),
    "ParetoSearch": lambda params, seed: optim.ParetoSearch(params, proposals=24, seed=seed),
    "BeamSearch": lambda params, seed: optim.BeamSearch(params, rounds=2, seed=seed),
    "BeamSearch, ucb": lambda params, seed: optim.BeamSearch(params, rounds=2, beam=2, selection="ucb", seed=seed),
    "OPRO": lambda params, seed: optim.OPRO(params, rounds=4, seed=seed),
    "OPRO on val": lambda params, seed: optim.OPRO(params, rounds=3, score_on="val", sample=None, seed=seed),
    "BootstrapDemos": lambda params, seed: optim.BootstrapDemos(params, sets=6, seed=seed),
    "rewrites": lambda params, seed: optim.RandomSearch(params, Rewrite(), proposals=16, seed=seed),
    "random edits": lambda params, seed: optim.RandomSearch(params, optim.RandomEdits(seed), proposals=16, seed=seed),
}


def parts() -> tuple[nn.Module, Any]:
    return nn.ChatCompletion("{word}", system=nn.Parameter("Say yes.", role="system prompt")), nn.ExactMatch()


def checked(name: str, task: SimulatedTask, seed: int, trainer: Trainer, **changes: Any) -> Any:
    """Estimate, run, and hold every figure of the run against its range."""
    program = task.program()
    search = SEARCHES[name](program.parameters(), seed)
    found = estimate(trainer, program, task.loss, search, task.train, task.val, task.test)
    with use_models(forward=task.model):
        result = trainer.fit(program, task.loss, search, task.train, task.val, task.test)
    assert set(result.usage) <= set(found.calls)
    for purpose, calls in found.calls.items():
        used = result.usage.get(purpose, llm.Usage())
        for told, actual in (
            (calls, used.calls),
            (found.input_tokens[purpose], used.input_tokens),
            (found.output_tokens[purpose], used.output_tokens),
        ):
            assert told.low <= actual <= told.high, (purpose, told, actual)
            assert told.low <= told.usual <= told.high, (purpose, told)
    assert len(result.steps) <= found.steps
    return found, result


@pytest.mark.parametrize(("name", "seed"), list(zip(SEARCHES, itertools.cycle((0, 2)))))
def test_a_run_keeps_to_its_estimate(name: str, seed: int) -> None:
    """Calls and tokens by purpose, on a task where there is something to be had."""
    task = simulated_task(rules=6, interactions=2, train=16, val=16, test=4, seed=seed)
    checked(name, task, seed, Trainer(seed=seed))


@pytest.mark.parametrize("name", SEARCHES)
def test_no_proposal_of_the_rehearsal_is_sent_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The placeholder answers with a text that it was shown; a request that repairs one is no usual request."""
    asked: list[str] = []
    real = Placeholder.complete

    async def complete(self: Placeholder, request: llm.Request) -> llm.Completion:
        if request.purpose == "optimizer":
            asked.append(request.messages[-1].text)
        return await real(self, request)

    monkeypatch.setattr(Placeholder, "complete", complete)
    task = simulated_task(flat=True, train=32, val=32, test=16, seed=4)
    program = task.program()
    estimate(Trainer(), program, task.loss, SEARCHES[name](program.parameters(), 4), task.train, task.val)
    assert not [text for text in asked if "could not be used" in text]


@pytest.mark.parametrize("name", SEARCHES)
def test_so_does_a_run_that_is_cut_short(name: str) -> None:
    """By patience on a task where nothing is to be had, and by its number of steps with two prompts."""
    flat = simulated_task(flat=True, train=12, val=12, test=4, seed=4)
    checked(name, flat, 4, Trainer(patience=2))
    two = simulated_task(rules=6, parameters=2, train=12, val=12, test=4, seed=5)
    checked(name, two, 5, Trainer(max_steps=6))


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("name", SEARCHES)
def test_what_is_usual_is_never_more_than_the_most(name: str, steps: int) -> None:
    """Of a search of few steps and few training examples the same things count for both."""
    program, loss = parts()
    search = SEARCHES[name](program.parameters(), 0)
    found = estimate(Trainer(max_steps=steps), program, loss, search, ROWS[:1], ROWS[1:])
    for part in (found.calls, found.input_tokens, found.output_tokens, {"waits": found.waits}):
        assert all(told.low <= told.usual <= told.high for told in part.values() if told is not None)


@pytest.mark.parametrize("name", ["PatchSearch", "ParetoSearch", "BeamSearch"])
def test_guards_are_in_the_most(name: str) -> None:
    """They run examples for each new text."""
    task = simulated_task(rules=8, interactions=4, sloppiness=0.4, train=16, val=16, test=8, seed=2)
    right = tuple(row["id"] for row in task.val[:8])
    guarded, _ = checked(name, task, 2, Trainer(guards=Guards(right)))
    program = task.program()
    plain = estimate(
        Trainer(), program, task.loss, SEARCHES[name](program.parameters(), 2), task.train, task.val, task.test
    )
    assert guarded.calls["forward"].high > plain.calls["forward"].high


def test_what_is_usual_is_of_the_right_size() -> None:
    """Within a factor of three of the calls of a default run on the task that it was taken from."""
    task = simulated_task(seed=6)
    program = task.program()
    search = optim.PatchSearch(program.parameters())
    found = estimate(Trainer(), program, task.loss, search, task.train, task.val, task.test)
    with use_models(forward=task.model):
        result = Trainer().fit(program, task.loss, search, task.train, task.val, task.test)
    usual = sum(calls.usual for calls in found.calls.values())
    assert usual / 3 < result.total.calls < 3 * usual


def test_long_documents_are_asked_about_one_by_one() -> None:
    """As they share no feedback call; short ones share one by eight."""
    program, loss = parts()
    calls = []
    for length in (1, 20_000):
        rows = [{"word": "word " * length, "target": "yes"} for _ in range(20)]
        found = estimate(Trainer(max_steps=2), program, loss, optim.PatchSearch(program.parameters()), rows, rows)
        calls.append(found.calls["backward"].usual)
    assert calls[1] == pytest.approx(8 * calls[0])


def test_the_most_is_a_bound_only_where_something_limits_the_search() -> None:
    """Elsewhere it says what it rests on."""
    program, loss = parts()
    search = optim.PatchSearch(program.parameters())
    free = estimate(Trainer(), program, loss, search, ROWS, ROWS)
    assert free.assumed.startswith("each example is drawn at most 3 times")
    limited = estimate(Trainer(max_steps=4), program, loss, search, ROWS, ROWS)
    assert (limited.assumed, limited.steps) == ("", 4)
    assert limited.calls["forward"].high < free.calls["forward"].high


def test_nobody_is_asked_and_nothing_changes() -> None:
    """A run after it is the run it would have been."""
    task = simulated_task(rules=4, train=24, val=24, test=8, seed=1)

    def steps(told_before: bool) -> Any:
        program = task.program()
        search = optim.PatchSearch(program.parameters(), seed=1)
        model = FunctionModel(lambda request: "")
        if told_before:
            before = search.state_dict()
            with use_models(forward=model):
                estimate(Trainer(), program, task.loss, search, task.train, task.val)
            assert search.state_dict() == before
        assert model.requests == []
        with use_models(forward=task.model):
            result = Trainer().fit(program, task.loss, search, task.train, task.val)
        return [(step.kind, step.examples, step.why) for step in result.steps], result.best

    assert steps(told_before=True) == steps(told_before=False)


def test_prices_and_controls() -> None:
    """Dollars with what is usual, with controls on top, too; how long these are waited for is not told."""
    program, loss = parts()
    search = optim.OPRO(program.parameters(), rounds=2)
    models = {"forward": llm.resolve("openai/gpt-5-mini", api_key="none")}
    plain = estimate(Trainer(), program, loss, search, ROWS, ROWS, models=models)
    assert plain.dollars is not None
    assert plain.dollars.usual is not None
    assert 0 < plain.dollars.low < plain.dollars.usual < plain.dollars.high
    more = estimate(Trainer(controls=True), program, loss, search, ROWS, ROWS, models=models)
    assert more.dollars is not None
    assert more.waits is None
    for now, before in ((more.dollars, plain.dollars), (more.calls["forward"], plain.calls["forward"])):
        assert now.usual is not None
        assert before.usual is not None
        assert before.usual < now.usual < now.high
        assert before.low < now.low < now.usual


@pytest.mark.parametrize("name", ["BootstrapDemos", "random edits"])
def test_controls_have_texts_written_where_the_search_does_not(name: str) -> None:
    """The rewrite is a control of these, too, and its model may be the dearest."""
    task = simulated_task(rules=4, seed=2, train=12, val=12, test=12)
    with_controls, result = checked(name, task, 1, Trainer(max_steps=6, controls=True))
    without, _ = checked(name, task, 1, Trainer(max_steps=6))
    assert result.usage["optimizer"].calls > 0
    assert with_controls.calls.keys() - without.calls.keys() == {"optimizer"}


def test_a_field_that_lacks_is_an_error_as_in_fit() -> None:
    """What would end the run ends the estimate, in the same words."""
    program, loss = parts()
    search = optim.PatchSearch(program.parameters())
    with pytest.raises(DataError, match="'word'"):
        estimate(Trainer(), program, loss, search, [{"target": "x"}], ROWS)


def test_a_search_that_does_not_say_how_much_it_does() -> None:
    """One of a user's own: no figure is made up for it."""

    class Own(optim.OPRO):
        volume = Searcher.volume

    program, loss = parts()
    with pytest.raises(TypeError, match=r"Own does not say how much it will do.*volume\(sizes\)"):
        estimate(Trainer(), program, loss, Own(program.parameters()), ROWS, ROWS)


def test_answers_that_are_waited_for_grow_with_fewer_lanes() -> None:
    """Lanes are what makes a search quick, and cost little more."""
    program, loss = parts()
    one, eight = (
        estimate(Trainer(), program, loss, optim.PatchSearch(program.parameters(), lanes=lanes), ROWS * 20, ROWS * 3)
        for lanes in (1, 8)
    )
    assert one.waits is not None
    assert eight.waits is not None
    assert (one.waits.usual or 0) > 1.5 * (eight.waits.usual or 0)


def test_limits_of_decisions() -> None:
    """What the search and the trainer allow, and what is usual with patience."""
    assert Sizes(10, 10, steps=5, patience=3).decisions(8) == 5
    assert Sizes(10, 10, steps=5).decisions(3) == Sizes(10, 10).decisions(3) == 3
    assert Sizes(10, 10, patience=2).usually(100) == 8
    assert Range(1, 3, 2) + Range(1, 1, 1) == Range(2, 4, 3)
