"""A run of the Trainer with a searching optimizer: its journal, its ends, and what it may claim."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import data, llm, nn, optim, report, store
from textgrad_engine.errors import BadRequest, ContentFiltered, ModelError, NoModelError
from textgrad_engine.llm import Request
from textgrad_engine.optim import BeamSearch, PatchSearch, RandomSearch
from textgrad_engine.optim.proposers import Unaided
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.optim.search.settling import Settling
from textgrad_engine.testing import FunctionModel
from textgrad_engine.testing.simulated import SimulatedTask, simulated_task
from textgrad_engine.train import Trainer
from textgrad_engine.train.events import CallEnded, Event, PhaseEnded, PhaseStarted, RunEnded, StepEnded

from ..conftest import timeless


@pytest.fixture(scope="module")
def task() -> SimulatedTask:
    """A small task in which rules interact, so that rivals, unions and ablations come up."""
    return simulated_task(rules=6, interactions=2, seed=1, train=40, val=40, test=24)


def fit(task: SimulatedTask, *, before: Any = None, test: bool = True, search: Any = None, **settings: Any) -> Any:
    """Train; ``before`` is awaited ahead of every answer. Gives the result, the program and the model."""
    program = task.program()

    async def answer(request: Request) -> Any:
        waits = None if before is None else before(request)
        if waits is not None:
            await waits
        return await task.model.complete(request)

    model = FunctionModel(answer)
    options = {"lanes": 4, "batch_size": 8, "feedback_batch_size": 4, **(search or {})}
    with tg.use_models(forward=model):
        result = Trainer(**settings).fit(
            program, task.loss, PatchSearch(program.parameters(), **options), task.train, task.val,
            task.test if test else None,
        )  # fmt: skip
    return result, program, model


@pytest.mark.parametrize("own", [True, False])
def test_a_sampler_that_a_search_does_not_ask_is_named(
    task: SimulatedTask, caplog: pytest.LogCaptureFixture, own: bool
) -> None:
    """It draws what fails; whoever weighs rare examples by a sampler would wait for them in vain."""
    rows = task.train
    sampler = data.WeightedRandomSampler([1.0] * len(rows), 8, seed=0) if own else None
    program = task.program()
    with tg.use_models(forward=task.model):
        loader = data.DataLoader(rows, batch_size=4, sampler=sampler)
        Trainer(max_steps=1).fit(program, task.loss, RandomSearch(program.parameters(), Unaided()), loader, task.val)
    said = [each for each in caplog.messages if "does not ask the DataLoader's sampler" in each]
    assert len(said) == own
    assert all(each.startswith("RandomSearch draws") and "a WeightedRandomSampler;" in each for each in said)


class Listener:
    def __init__(self, then: Callable[[Event], None] = lambda event: None) -> None:
        self.events: list[Event] = []
        self.then = then

    def on_event(self, event: Event) -> None:
        self.events.append(event)
        self.then(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


# nothing depends on which answer comes first


def test_the_journal_does_not_depend_on_the_order_of_answers(tmp_path: Path) -> None:
    """Answers overtake each other in two orders, all at once or few at a time: the folders are equal to the byte."""

    task = simulated_task(rules=5, interactions=2, seed=2, train=20, val=20, test=8)

    def shuffled(order: int) -> Any:
        turn = 0

        async def wait() -> None:
            nonlocal turn
            turn += 1
            for _ in range((turn * 7919 * order) % 37):
                await asyncio.sleep(0)

        return lambda request: wait()

    runs = {}
    for order, concurrency in ((1, None), (5, 7)):
        path = tmp_path / f"{order}"
        result, _, _ = fit(
            task,
            before=shuffled(order),
            run_dir=path,
            concurrency=concurrency,
            search={"batch_size": 2, "max_edits": 2},
        )
        runs[order] = timeless(path)
    assert result.best != result.seed
    kinds = Counter(step.kind for step in result.steps)
    assert set(kinds) == {"patch", "ablation", "rival", "union", "tidying"}
    assert any("put together" in step.why for step in result.steps)
    assert {"events.jsonl", "completions.jsonl", "result.json", "best_prompt.txt"} <= set(runs[1])
    assert runs[1] == runs[5]


def test_decisions_are_journalled(task: SimulatedTask) -> None:
    """A step for each, in order, with what was proposed, the race that decided, and why."""
    listener = Listener()
    result, program, _ = fit(task, callbacks=[listener])
    steps = listener.of(StepEnded)
    assert tuple(steps) == result.steps
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    for step in steps:
        assert step.kind in ("patch", "ablation", "tidying", "rival", "union")
        assert step.why
        assert step.race is None or isinstance(step.race, RaceRecord)
        assert bool(step.ablated) is (step.kind == "ablation")
        if step.kept:
            assert step.race is not None
            assert step.changes
    # the phase of a proposal ends with the decision about it, so that a run that is resumed knows that it is over
    proposals = {event.number: event.step for event in listener.of(PhaseStarted) if event.phase == "search"}
    ended = [
        event for event in listener.events if isinstance(event, StepEnded) or getattr(event, "number", 0) in proposals
    ]
    decided = [
        (proposals[phase.number], step.step)
        for phase, step in itertools.pairwise(ended)
        if isinstance(phase, PhaseEnded) and isinstance(step, StepEnded)
    ]
    assert sorted(proposals.values()) == [number for number, _ in decided]
    assert all(number == step for number, step in decided)
    assert result.best == {"system": program.system.data}
    assert len(result.origins["system"]) == result.best["system"].count("\n") + 1
    assert result.candidates == len({step.changes[0].after for step in steps if step.race is not None})


def test_every_call_belongs_to_a_phase_that_is_closed(task: SimulatedTask) -> None:
    """Also those of proposals that were dropped at the end; a proposal's calls are in its own phase."""
    listener = Listener()
    fit(task, callbacks=[listener], patience=2)
    started = {event.number: event for event in listener.of(PhaseStarted)}
    assert sorted(started) == sorted(event.number for event in listener.of(PhaseEnded))
    purposes: dict[str, Counter[str]] = {}
    for call in listener.of(CallEnded):
        purposes.setdefault(started[call.phase].phase, Counter())[call.record.purpose] += 1
    assert set(purposes["search"]) == {"forward", "backward", "optimizer"}
    assert set(purposes["score"]) | set(purposes["test"]) == {"forward"}


def test_what_was_paid_for_is_not_paid_for_again(task: SimulatedTask) -> None:
    """No request of the program goes out twice within a proposal, nor for the texts of now; samples are others."""
    seen: Counter[tuple[Any, ...]] = Counter()
    phases: dict[int, str] = {}

    def then(event: Event) -> None:
        if isinstance(event, PhaseStarted):
            phases[event.number] = event.phase
        if isinstance(event, CallEnded) and event.record.purpose == "forward" and phases[event.phase] == "score":
            seen[tuple(message.text for message in event.record.request.messages)] += 1

    fit(task, callbacks=[Listener(then)], test=False)
    twice = [count for count in seen.values() if count > 1]
    assert len(twice) <= 8  # the examples that are run twice, to measure the noise
    assert set(twice) <= {2}


# how it ends


def test_the_seed_texts_come_back_when_nothing_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole validation set counts in the end; lines of the seed come from nobody."""
    task = simulated_task(rules=4, noise=0, train=24, val=24, test=8)

    def blindly(self: Settling, found: Any) -> Any:
        assert found.race is not None
        self._adopt(found, exact=False)
        return True, "taken blindly", found.changes

    monkeypatch.setattr(Settling, "_judged", blindly)

    async def answer(request: Request) -> Any:
        line = {"op": "add", "line": 1, "text": "Thank you.", "reason": "", "feedback": []}
        return {"edits": [line]} if request.purpose == "optimizer" else await task.model.complete(request)

    program = task.program()
    with tg.use_models(forward=FunctionModel(answer)):
        search = PatchSearch(program.parameters(), lanes=1)
        result = Trainer(max_steps=1).fit(program, task.loss, search, task.train, task.val)
    assert result.steps[0].kept
    assert result.best == result.seed == {"system": program.system.data}
    assert result.best_val == result.seed_val
    assert result.origins == {"system": [None] * 4}


@pytest.mark.parametrize("proposer", [None, Unaided()])
@pytest.mark.parametrize("loses", ["", "w60"])
def test_of_equals_the_shorter_texts_are_the_result(proposer: Unaided | None, loses: str) -> None:
    """A line of the seed prompt that does nothing goes in a step, and stays out of the result.

    Texts that lose an answer which the seed texts have are no equals, whatever the others score.
    """

    def answer(request: Request) -> Any:
        if request.purpose == "forward":
            word = request.messages[-1].text
            if word == loses and "kind" not in request.messages[0].text:
                raise BadRequest("refused", status=400)
            return word.upper() if int(word[1:]) % 2 else word
        properties = request.config.response_format.json_schema["properties"]
        if request.purpose == "backward":
            return {case: {"system": "'Be kind.' does nothing."} for case in properties}
        if "edits" not in properties:
            return {"text": "Repeat.", "reason": "shorter"}
        edit = {"op": "remove", "line": 2, "text": "", "reason": "", "feedback": [1]}
        return {"edits": [edit] if "Be kind.\n</text" in request.messages[-1].text else []}

    rows = [{"word": f"w{number}", "target": f"W{number}"} for number in range(120)]
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.\nBe kind.", role="system prompt"))
    params = list(program.parameters())
    search = PatchSearch(params) if proposer is None else RandomSearch(params, proposer, proposals=1)
    with tg.use_models(forward=FunctionModel(answer)):
        result = Trainer(max_steps=3).fit(program, nn.ExactMatch(), search, rows[:60], rows[60:])
    assert result.steps[0].kept
    assert result.steps[0].why == "no difference, and shorter"
    assert result.best == {"system": "Repeat.\nBe kind." if loses else "Repeat."}


@pytest.mark.parametrize("limit", [{"max_steps": 3}, {"patience": 2}])
def test_limits_of_the_trainer_end_it(task: SimulatedTask, limit: dict[str, int]) -> None:
    """So many decisions, or so many in a row that kept nothing; what was kept stays."""
    result, program, model = fit(task, test=False, **limit)
    assert result.status == "finished"
    assert result.best == {"system": program.system.data}
    if "max_steps" in limit:
        assert len(result.steps) == 3
        assert sum(request.purpose == "optimizer" for request in model.requests) == 3  # none was begun in vain
    else:
        assert [step.kept for step in result.steps[-2:]] == [False, False]


@pytest.mark.parametrize("calls", [None, 300])
def test_a_search_is_at_rest_after_its_run(task: SimulatedTask, calls: int | None) -> None:
    """Whatever ends it: what was proposed meanwhile is over, and the optimizer can be copied and kept."""
    program = task.program()
    search = PatchSearch(program.parameters(), lanes=3, batch_size=8, feedback_batch_size=4)
    with tg.use_models(forward=task.model), tg.budget(calls=calls) if calls else contextlib.nullcontext():
        result = Trainer(max_steps=3).fit(program, task.loss, search, task.train, task.val)
    assert result.status == ("budget" if calls else "finished")
    assert (search._lanes.under_way, search._lanes._pool) == (0, None)
    assert copy.deepcopy(search).state_dict()["param_groups"]


def test_patience_never_ends_a_round_that_is_paid_for() -> None:
    """`BeamSearch` makes a round's texts at once and tells of them one by one; the best of them may come last."""
    task = simulated_task(rules=6, seed=3, train=48, val=48, test=24)
    program = task.program()
    with tg.use_models(forward=task.model):
        result = Trainer(patience=2).fit(program, task.loss, BeamSearch(program.parameters()), task.train, task.val)
    assert [step.kept for step in result.steps[:2]] == [False, False]
    assert any(step.kept for step in result.steps)
    assert not any(step.kept for step in result.steps[-2:])
    assert result.best_val.mean > result.seed_val.mean


def test_a_spent_budget_gives_the_result_so_far() -> None:
    """Wherever it runs out: the limit holds, the program has the best texts, the journal says so."""
    task = simulated_task(rules=6, interactions=2, seed=1, train=24, val=24, test=8)
    needed = fit(task)[0].total.calls
    enough = needed + len(task.val)  # within a step, what the best texts are run on is kept for them, too
    for calls in (1, 60, needed // 2, needed - 30, enough):
        listener = Listener()
        with tg.budget(calls=calls) as spent:
            result, program, model = fit(task, callbacks=[listener])
        assert len(model.requests) <= calls
        assert spent.spent.calls == result.total.calls
        assert result.status == ("finished" if calls >= enough else "budget")
        kept = [step for step in result.steps if step.kept]
        if result.status == "budget" and kept:
            assert result.best["system"] == kept[-1].changes[0].after
            assert result.best_val is not None
        assert program.system.data == result.best["system"]
        assert listener.events[-1] == RunEnded(result.status, result)


@pytest.mark.parametrize("phase", ["score", "search", "test"])
def test_an_interrupt_gives_the_result_so_far(task: SimulatedTask, phase: str) -> None:
    """Ctrl-C, also while proposals are under way in several lanes: nothing more is sent."""
    asked: list[int] = []

    def then(event: Event) -> None:
        if isinstance(event, PhaseStarted) and (event.phase, event.step >= 2) == (phase, True) and not asked:
            signal.raise_signal(signal.SIGINT)
            asked.append(1)

    listener = Listener(then)
    result, program, _ = fit(task, callbacks=[listener])
    assert (result.status, asked) == ("interrupted", [1])
    assert program.system.data == result.best["system"]
    assert result.best_test is None
    stopped = next(
        n for n, event in enumerate(listener.events)
        if isinstance(event, PhaseStarted) and event.phase == phase and event.step >= 2
    )  # fmt: skip
    begun = {event.number for event in listener.events[stopped:] if isinstance(event, PhaseStarted)}
    sent = [event for event in listener.of(CallEnded) if event.phase in begun and event.record.completion is not None]
    assert sent == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("purpose", ["backward", "optimizer"])
def test_a_critic_or_optimizer_that_never_answers_ends_the_run(task: SimulatedTask, purpose: str) -> None:
    """After three rounds of its lanes, not after all proposals; the first problem is in the error."""

    def lost(request: Request) -> None:
        if request.purpose == purpose:
            raise ContentFiltered("withheld")

    with pytest.raises(ModelError, match=r"3 rounds of steps in a row came to nothing.*ContentFiltered: withheld"):
        fit(task, before=lost)


def test_races_that_are_never_answered_end_the_run(task: SimulatedTask) -> None:
    """Every proposal breaks the program: that is no search any more."""

    def lost(request: Request) -> None:
        if request.purpose == "forward" and request.messages[0].text != task.seed_prompt:
            raise ContentFiltered("withheld")

    with pytest.raises(ModelError, match=r"3 rounds of steps in a row came to nothing.*the race was given up"):
        fit(task, before=lost)


def test_a_lost_answer_now_and_then_does_not_end_it(task: SimulatedTask) -> None:
    """Every seventh critic and every fifth optimizer's answer is lost; the rest is used, and what was lost is told."""
    counts: Counter[str] = Counter()

    def lost(request: Request) -> None:
        counts[request.purpose] += 1
        if counts[request.purpose] % {"backward": 7, "optimizer": 5}.get(request.purpose, 10**9) == 0:
            raise ContentFiltered("withheld")

    result, _, _ = fit(task, before=lost, search={"lanes": 2})
    assert result.status == "finished"
    assert any(step.problems for step in result.steps)
    assert result.best_val.mean > result.seed_val.mean + 0.2


def test_a_missing_model_is_said_at_once(task: SimulatedTask) -> None:
    """Before the first example."""
    program = task.program()
    with pytest.raises(NoModelError, match="no model was named for 'forward' calls"):
        Trainer().fit(program, task.loss, PatchSearch(program.parameters()), task.train, task.val)


# which parameters


class Pair(nn.Module):
    """A program with two prompts of which the second one is the task's."""

    def __init__(self, seed: str) -> None:
        super().__init__()
        self.unused = nn.Parameter("Nobody reads this.", role="another prompt")
        self.call = nn.ChatCompletion("{parcel}", system=nn.Parameter(seed, role="system prompt"))

    def forward(self, parcel: str) -> Any:
        return self.call(parcel=parcel)


def test_some_of_the_programs_parameters_can_be_searched(task: SimulatedTask) -> None:
    """The others stay as they are; the result names all."""
    program = Pair(task.seed_prompt)
    with tg.use_models(forward=task.model):
        search = PatchSearch([program.call.system], batch_size=8)  # type: ignore[list-item]
        result = Trainer(max_steps=4).fit(program, task.loss, search, task.train, task.val)
    assert result.best["unused"] == "Nobody reads this."
    assert result.best["call.system"] != task.seed_prompt
    assert any(step.kept for step in result.steps)


def test_a_frozen_parameter_is_refused_before_anything_is_paid(task: SimulatedTask) -> None:
    """A search would change it."""
    program = Pair(task.seed_prompt)
    program.unused.requires_grad = False
    model = FunctionModel(lambda request: "K1")
    with tg.use_models(forward=model), pytest.raises(ValueError, match="'another prompt' does not require grad"):
        Trainer().fit(program, task.loss, PatchSearch(program.parameters()), task.train, task.val)
    assert model.requests == []


# what it may claim


def test_where_nothing_is_to_be_had_it_claims_nothing() -> None:
    """Tasks in which answers are right or wrong by chance: one may be called better, which 1 in 20 should be.

    Six in which the search takes other texts than the seed's all the same; in others there is no claim to make.
    """
    better, changed = [], []
    for seed in (0, 1, 2, 11, 23, 25):
        task = simulated_task(flat=True, seed=seed, train=16, val=16, test=48)
        result, _, _ = fit(task, search={"seed": seed, "lanes": 1})
        assert result.comparison is not None
        assert result.compared_on == "test"
        better.append(result.comparison.verdict == "better")
        changed.append(result.best != result.seed)
    assert sum(better) <= 1
    assert sum(changed) >= 5  # more than of as many seeds taken as they come


def test_where_something_is_to_be_had_it_finds_it() -> None:
    """Most of the way on an additive task; the sealed test set says so."""
    task = simulated_task(rules=6, seed=2, train=64, val=64, test=96)
    result, _, _ = fit(task)
    assert task.progress(result.best["system"]) > 0.9
    assert result.comparison is not None
    assert (result.comparison.verdict, result.compared_on) == ("better", "test")


class Oracle(optim.Searcher):
    """Knows the best texts; what it scores, what it says of them and what it has are those of a class below it."""

    def __init__(self, params: Any, found: str) -> None:
        super().__init__(params, {})
        self.found, self.best = found, ""

    def texts(self) -> tuple[str, ...]:
        return (self.best,)

    def decide(self, objective: optim.Objective) -> optim.Decision | None:
        if self.best == self.found:
            return None
        self.best = self.found
        return optim.Decision(1, "oracle", why="it knows")


def test_what_a_search_of_ones_own_found_is_the_result_also_where_it_does_not_say_kept(task: SimulatedTask) -> None:
    """The parameters hold it, so the run says so."""

    class Own(Oracle):
        expected = 1.0

    program = task.program()
    with tg.use_models(forward=task.model):
        result = Trainer().fit(program, task.loss, Own(program.parameters(), task.optimum_prompt), task.train, task.val)
    assert result.best == {"system": task.optimum_prompt}
    assert [step.kept for step in result.steps] == [True]


def test_a_search_of_ones_own_without_expected_is_refused_before_anything_is_asked(task: SimulatedTask) -> None:
    """Every step tells it, so a run would end at its first one, with the seed prompt paid for."""
    program = task.program()
    refused = pytest.raises(TypeError, match=r"^fit: Oracle is a Searcher without `expected`; give it a property")
    with tg.use_models(forward=task.model), llm.meter() as meter, refused:
        Trainer().fit(program, task.loss, Oracle(program.parameters(), "x"), task.train, task.val)
    assert meter.total.calls == 0


class Lucky(optim.Searcher):
    """Tries texts that are all as good, and takes the one that looks best; it races nothing."""

    def __init__(self, params: Any, proposals: int) -> None:
        super().__init__(params, {})
        self.proposals, self.means = proposals, dict[str, float]()

    @property
    def expected(self) -> float:
        return max(self.means.values())

    def texts(self) -> tuple[str, ...]:
        return (max(self.means, key=self.means.__getitem__),)

    def score(self, objective: optim.Objective, text: str) -> None:
        scores = [score or 0.0 for score in objective.scores((text,), range(len(objective.val)))]
        self.means[text] = sum(scores) / len(scores)

    def decide(self, objective: optim.Objective) -> optim.Decision | None:
        (prompt,) = self.variables()
        if not self.means:
            self.score(objective, str(prompt.data))
        if self.steps == self.proposals:
            return None
        (before,), new = self.texts(), f"{next(iter(self.means))}\nWording {self.steps}."
        self.score(objective, new)
        change = optim.Change(prompt, before, new)
        return optim.Decision(self.steps + 1, "wording", changes=(change,), why="luck")


def test_a_verdict_about_a_search_of_ones_own_knows_how_many_texts_it_tried(tmp_path: Path) -> None:
    """Without a test set the validation set judges the text that it chose: of many equal ones one looks good."""
    chance = simulated_task(rules=6, seed=3, flat=True, train=8, val=30, test=8)
    program, told = chance.program(), Listener()
    with tg.use_models(forward=chance.model):
        result = Trainer(callbacks=[told], run_dir=tmp_path / "run").fit(
            program, chance.loss, Lucky(program.parameters(), 15), chance.train, chance.val
        )
    assert result.comparison is not None
    assert result.comparison.p_value < 0.05  # by itself
    assert result.comparison.candidates == 15
    assert result.comparison.verdict == "not shown"
    assert result.candidates == 15
    steps = told.of(StepEnded)
    assert max(step.val_mean for step in steps) == result.best_val.mean
    assert all(step.val_mean is not None and step.best_val >= step.val_mean for step in steps)
    kept = store.read_run(tmp_path / "run").result
    assert kept is not None
    shown = report.render(kept)
    assert "chose the best prompt out of 16 (seed prompt included)" in " ".join(shown.split())


def test_a_search_of_ones_own_that_validates_in_part_has_no_validation_score_of_a_step(task: SimulatedTask) -> None:
    """A mean over some examples is none over all; what was tried counts all the same."""

    class Partly(Lucky):
        def score(self, objective: optim.Objective, text: str) -> None:
            self.means[text] = 0.0 if self.means else 1.0
            objective.scores((text,), range(5))

    program = task.program()
    with tg.use_models(forward=task.model):
        result = Trainer().fit(program, task.loss, Partly(program.parameters(), 3), task.train, task.val)
    assert [step.val_mean for step in result.steps] == [None] * 3
    assert result.best == result.seed
