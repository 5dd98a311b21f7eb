"""Cross-validation: every example tests once, none a prompt that it was used for, and nothing is claimed of nothing."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.errors import RunError
from textgrad_engine.llm import Request
from textgrad_engine.store import RunFolder, read_run
from textgrad_engine.testing import FunctionModel, simulated_task
from textgrad_engine.testing.simulated import SimulatedTask
from textgrad_engine.train import Evaluation, Guards, Trainer, cross_validate
from textgrad_engine.train.controls import CONTROLS
from textgrad_engine.train.events import Event, RunEnded, RunStarted
from textgrad_engine.train.folds import parts_of
from textgrad_engine.train.metric_scores import MetricScores
from textgrad_engine.train.pooled import pooled
from textgrad_engine.train.standing import Standing

from .questions import program, rows


@pytest.fixture(scope="module")
def task() -> SimulatedTask:
    return simulated_task(rules=4, seed=1, train=50, val=1, test=100)


def start_of(task: SimulatedTask) -> Callable[[], Any]:
    def start() -> Any:
        made = task.program()
        return made, optim.TGD(made.parameters(), max_edits=4)

    return start


# what it refuses


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"folds": 1}, "folds must be at least 2"),
        ({"folds": 7}, "6 examples with inputs of their own cannot be dealt to 7 folds"),
        ({"folds": 2, "val": 1.0}, "val is the share"),
        ({"folds": 2, "val": 0.9}, "leaves none to train on"),
        ({"trainer": Trainer(guards=Guards(never_break=["r1"]))}, "the trainer has guards"),
        ({"n_jobs": 0}, "n_jobs should be 1 or more, or -1 for all runs at once, got 0"),
        ({"n_jobs": -2}, "n_jobs should be 1 or more"),
    ],
)
def test_what_cannot_be_dealt_is_refused_before_anything_is_asked(given: dict[str, Any], message: str) -> None:
    """By name, with the repair."""
    with pytest.raises(ValueError, match=message):
        cross_validate(lambda: (program(), optim.TGD(program().parameters())), nn.ExactMatch(), rows(6), **given)


# what is said


def test_each_run_tells_which_it_is(task: SimulatedTask) -> None:
    """Callbacks hear of one run after the other; a run by itself is none of several."""

    class Parts:
        def __init__(self) -> None:
            self.heard: list[str] = []

        def on_event(self, event: Event) -> None:
            if isinstance(event, RunStarted):
                self.heard.append(event.part)

    parts = Parts()
    trainer = Trainer(max_steps=1, callbacks=[parts])
    with tg.use_models(forward=task.model):
        cross_validate(start_of(task), task.loss, task.train[:12], folds=2, trainer=trainer)
        cross_validate(start_of(task), task.loss, task.train[:12], folds=2, trainer=trainer, final=False)
        made, optimizer = start_of(task)()
        trainer.fit(made, task.loss, optimizer, task.train[:6], task.train[6:12])
    assert parts.heard == ["fold 1 of 2", "fold 2 of 2", "all examples", "fold 1 of 2", "fold 2 of 2", ""]


def test_a_gain_that_a_test_set_of_fifteen_cannot_show_is_shown_with_fifty(task: SimulatedTask) -> None:
    """All of the examples count, in their order, and the final prompt is trained on all of them and tested on none."""
    with tg.use_models(forward=task.model):
        found = cross_validate(start_of(task), task.loss, task.train, trainer=Trainer(max_epochs=3))
    assert found.comparison is not None
    assert found.comparison.verdict == "better"
    assert found.comparison.n == 50
    assert found.seed is not None
    assert found.seed.ids == tuple(row["id"] for row in task.train)
    assert found.final is not None
    assert found.final.best_test is None
    assert task.progress(found.final.best) > 0.9
    assert found.total.calls == sum(each.total.calls for each in found.runs)
    assert "the final prompt is trained on all examples, and itself tested on none" in str(found)


def test_nothing_is_claimed_where_nothing_is_to_be_had() -> None:
    """On a flat task of 50 examples, of two tries none is called better or worse, though folds take other texts."""
    changed = 0
    for seed in (0, 2):
        flat = simulated_task(rules=4, seed=seed, train=50, val=1, test=1, flat=True)
        with tg.use_models(forward=flat.model):
            found = cross_validate(start_of(flat), flat.loss, flat.train, folds=3, final=False)
        assert found.comparison is not None
        assert found.comparison.verdict == "not shown"
        changed += any(each.best != each.seed for each in found.runs)
    assert changed == 2


def test_the_interval_holds_the_mean_gain_of_the_folds_prompts() -> None:
    """In 95% of 400 simulated ones, where each fold's prompt has a gain of its own, tested by ten examples."""
    draw, held, wins = random.Random(5), 0, 0
    examples = rows(50)
    parts = parts_of(program(), examples, folds=5)
    for _ in range(400):
        gains = [draw.choice([-0.1, 0.0, 0.1, 0.2]) for _ in range(5)]
        results: list[Any] = []
        for part, gain in zip(parts, gains):
            assert part.test is not None
            ids = tuple(row["id"] for row in part.test)
            old = tuple(float(draw.random() < 0.5) for _ in ids)
            up, down = 0.15 + max(gain, 0) * 2, 0.15 - min(gain, 0) * 2
            new = tuple(1 - a if draw.random() < (down if a else up) else a for a in old)
            none = (None,) * len(ids)
            evaluations = [Evaluation(ids, scores, none, {}) for scores in (old, new)]
            results.append(SimpleNamespace(seed_test=evaluations[0], best_test=evaluations[1], controls=None))
        found = pooled([*zip(parts, results)], [row["id"] for row in examples], (), 0.0).comparison
        assert found is not None
        held += found.interval[0] <= sum(gains) / 5 <= found.interval[1]
        wins += found.verdict == "better" and sum(gains) <= 0
    assert held / 400 >= 0.93
    assert wins / 400 <= 0.025


@pytest.mark.parametrize("known", [(True, True), (True, False), (False, True)])
def test_what_each_metric_gave_is_told_where_all_folds_say_it(known: tuple[bool, bool]) -> None:
    """A fold that an older version ran does not, beside one that was run since."""
    parts = parts_of(program(), rows(4), folds=2, val=0)
    results: list[Any] = []
    for part, says in zip(parts, known):
        assert part.test is not None
        ids = tuple(row["id"] for row in part.test)
        score = MetricScores("kind", (0.5,) * len(ids), (0, 1), 1.0)
        each = Evaluation(ids, score.scores, (None,) * len(ids), {}, parts=(score,) if says else ())
        results.append(SimpleNamespace(seed_test=each, best_test=each, controls=None))
    found = pooled([*zip(parts, results)], [row["id"] for row in rows(4)], (), 0.0).best
    assert found is not None
    assert [part.n for part in found.parts] == ([4] if all(known) else [])


def test_a_floor_that_the_folds_texts_do_not_reach_is_told_beside_their_verdict() -> None:
    """It is one of the mean over all examples that tested, each on the metric's own scale."""
    parts = parts_of(program(), rows(4), folds=2, val=0)
    results: list[Any] = []
    for part, (seed, best) in zip(parts, [((1.0, 3.0), (5.0, 4.0)), ((2.0, 2.0), (4.0, None))]):
        assert part.test is not None
        ids = tuple(row["id"] for row in part.test)
        each = [
            Evaluation(ids, (0.0, 1.0), (None,) * 2, {}, parts=(MetricScores("safe", given, (1, 5), 1.0),))
            for given in (seed, best)
        ]
        floors = (Standing("the metric 'safe'", 4.5, "test", 2, None, None),)
        results.append(
            SimpleNamespace(seed_test=each[0], best_test=each[1], controls=None, floors=floors, status="finished")
        )
    found = pooled([*zip(parts, results)], [row["id"] for row in rows(4)], (), 0.0)
    assert found.floors == (Standing("the metric 'safe'", 4.5, "test", 4, 2.0, 13 / 3, 1),)
    assert "(of the folds' prompts); floor not reached: the metric 'safe', 4.333 of 4.5 on test" in str(found)


def test_floors_of_folds_under_criteria_that_begin_alike_keep_their_own_level() -> None:
    """They are known by their whole name, of which a sentence shows the beginning."""
    begin = "The answer names the customer, and the number of the order as the first line of the mail has it, "
    parts = parts_of(program(), rows(4), folds=2, val=0)
    results: list[Any] = []
    for part in parts[:2]:
        assert part.test is not None
        ids = tuple(row["id"] for row in part.test)
        two = tuple(MetricScores(f"{begin}{name}", (0.5, 0.5), (0, 1), 1.0) for name in ("first", "then"))
        each = Evaluation(ids, (0.5, 0.5), (None,) * 2, {}, parts=two)
        floors = tuple(
            Standing(score.called, least, "test", 2, 0.5, 0.5) for score, least in zip(two, (0.25, 0.75), strict=True)
        )
        results.append(SimpleNamespace(seed_test=each, best_test=each, controls=None, floors=floors, status="finished"))
    found = pooled([*zip(parts, results)], [row["id"] for row in rows(4)], (), 0.0)
    assert [(each.least, each.reached) for each in found.floors] == [(0.25, True), (0.75, False)]


def test_a_fold_gains_by_examples_that_both_texts_answered() -> None:
    """One whose best texts lost the answers that the seed texts got wrong did as well on the others, and no better."""
    parts = parts_of(program(), rows(8), folds=2, val=0)
    results: list[Any] = []
    for part, new in zip(parts, [(1.0, 1.0, None, None), (None, 1.0, 1.0, 0.0)]):
        assert part.test is not None
        ids = tuple(row["id"] for row in part.test)
        seed, best = (Evaluation(ids, scores, (None,) * 4, {}) for scores in ((1.0, 1.0, 0.0, 0.0), new))
        results.append(SimpleNamespace(seed_test=seed, best_test=best, controls=None))
    found = pooled([*zip(parts, results)], [row["id"] for row in rows(8)], (), 0.0)
    assert [each.best_test.mean for each in found.folds] == [1.0, 2 / 3]
    assert found.gained == 1


def test_clusters_count_over_all_folds() -> None:
    """Whoever names them gets an interval that knows them, of 10 documents in this case."""
    flat = simulated_task(rules=4, seed=2, train=40, val=1, test=1)
    examples = [{**row, "page": n // 4} for n, row in enumerate(flat.train)]
    with tg.use_models(forward=flat.model):
        found = cross_validate(start_of(flat), flat.loss, examples, trainer=Trainer(1, clusters="page"), final=False)
    assert found.comparison is not None
    assert found.comparison.clusters == 10


# how it ends


def test_a_budget_is_shared_out_so_that_every_fold_is_tested(task: SimulatedTask) -> None:
    """The first run must not spend what the others need."""
    with tg.use_models(forward=task.model), tg.budget(calls=900) as limit:
        found = cross_validate(start_of(task), task.loss, task.train, trainer=Trainer(max_epochs=30))
    assert found.status in ("budget", "finished")
    assert limit.spent.calls <= 900
    assert found.seed is not None
    assert len(found.seed) == 50
    assert len(found.runs) == 6
    assert found.comparison is not None
    assert found.comparison.verdict == "better"
    assert max(each.total.calls for each in found.runs) < 200


def test_a_budget_without_room_for_a_call_of_each_run_says_so(task: SimulatedTask) -> None:
    """Nothing is claimed of what was not tested."""
    with tg.use_models(forward=task.model), tg.budget(calls=3):
        found = cross_validate(start_of(task), task.loss, task.train)
    assert found.status == "budget"
    assert found.comparison is None
    assert found.total.calls <= 3


@pytest.mark.parametrize("n_jobs", [1, -1])
def test_resumed_it_is_what_it_was_and_nothing_is_asked_again(task: SimulatedTask, tmp_path: Path, n_jobs: int) -> None:
    """One folder for each run; what ended half-way goes on there."""
    asked: list[Request] = []

    def model(most: int) -> FunctionModel:
        async def answer(request: Request) -> Any:
            if len(asked) >= most:
                raise KeyError("the machine is gone")
            asked.append(request)
            return await task.model.complete(request)

        return FunctionModel(answer, name="one")

    def found(most: int, run_dir: Path, **settings: Any) -> Any:
        asked.clear()
        with tg.use_models(forward=model(most)):
            trainer = Trainer(2, run_dir=run_dir, **settings)
            return cross_validate(start_of(task), task.loss, train, folds=3, trainer=trainer, n_jobs=n_jobs)

    train = task.train[:18]
    whole = found(10**9, tmp_path / "whole")
    every = len(asked)
    assert sorted(each.name for each in (tmp_path / "whole").iterdir()) == [
        "final", "fold-1", "fold-2", "fold-3", "folds.json",
    ]  # fmt: skip
    with pytest.raises(KeyError):
        found(every // 2, tmp_path / "cut")
    again = found(10**9, tmp_path / "cut", resume=True)
    assert len(asked) <= every - every // 2 + 1
    assert str(again) == str(whole)
    assert again.final.best == whole.final.best
    found(0, tmp_path / "cut", resume=True)
    assert not asked

    def changed() -> tuple[nn.Module, optim.Optimizer]:
        program, _ = start_of(task)()
        with tg.no_grad():
            for parameter in program.parameters():
                parameter.data += " Think."
        return program, optim.TGD(program.parameters())

    with tg.use_models(forward=model(0)):
        trainer = Trainer(2, run_dir=tmp_path / "cut", resume="anyway")
        assert str(cross_validate(changed, task.loss, train, folds=3, trainer=trainer)) == str(whole)
    with pytest.raises(RunError, match="there is something in this folder"):
        found(10**9, tmp_path / "cut")
    trainer = Trainer(run_dir=tmp_path / "cut", resume=True)
    with pytest.raises(RunError, match="of 3 folds of 18 examples, and this one of 4 folds of 18; put them back"):
        cross_validate(start_of(task), task.loss, train, folds=4, trainer=trainer)
    with pytest.raises(RunError, match="of 18 examples, and this one of 3 folds of 12; put them back"):
        cross_validate(start_of(task), task.loss, train[:12], folds=3, trainer=trainer)
    with pytest.raises(RunError, match="and this one of 3 folds of 18 others, or in another order; put them back"):
        cross_validate(start_of(task), task.loss, train[::-1], folds=3, trainer=trainer)


@pytest.mark.parametrize(("n_jobs", "at_once"), [(2, 2), (-1, 4)])
def test_runs_that_go_on_at_once_are_what_they_are_one_after_the_other(
    task: SimulatedTask, n_jobs: int, at_once: int
) -> None:
    """With other calls and prompts nobody could say what a fold is worth."""
    begun, going_on, seen = threading.Barrier(at_once), set[str](), list[int]()

    class Watch:
        def for_run(self) -> Watch:
            return Watch()

        def on_event(self, event: Event) -> None:
            if isinstance(event, RunStarted):
                self.part = event.part
                going_on.add(event.part)
                seen.append(len(going_on))
                begun.wait(60)  # for as many as are to go on at once
            elif isinstance(event, RunEnded):
                going_on.remove(self.part)

    def found(n_jobs: int, *callbacks: Any) -> Any:
        trainer = Trainer(2, callbacks=callbacks)
        with tg.use_models(forward=task.model):
            return cross_validate(start_of(task), task.loss, task.train[:24], folds=3, trainer=trainer, n_jobs=n_jobs)

    alone, together = found(1), found(n_jobs, Watch())
    assert max(seen) == at_once
    assert str(together) == str(alone)
    assert [(each.best, each.total.calls) for each in together.runs] == [
        (each.best, each.total.calls) for each in alone.runs
    ]


@pytest.mark.parametrize(("recorded", "played"), [(1, -1), (-1, -1), (-1, 1)])
def test_a_cassette_gives_each_run_its_own_answers(
    task: SimulatedTask, tmp_path: Path, recorded: int, played: int
) -> None:
    """All runs ask the same of the seed texts, and a model that is not at temperature 0 says another thing each time:
    who got the answers of another run asked for what was never recorded."""
    moods = random.Random(0)

    async def moody(request: Request) -> Any:
        answer = await task.model.complete(request)
        if request.purpose == "forward" and moods.random() < 0.4:
            answer = answer.model_copy(update={"text": f"none of these {moods.random()}"})
        return answer

    def found(n_jobs: int) -> Any:
        made = cross_validate(start_of(task), task.loss, task.train[:18], folds=3, trainer=Trainer(1), n_jobs=n_jobs)
        return [(run.best, run.seed_val, run.best_val, run.total.calls) for run in made.runs]

    with tg.use_models(forward=FunctionModel(moody)), tg.llm.record(tmp_path / "cassette.jsonl"):
        then = found(recorded)
    with tg.llm.replay(tmp_path / "cassette.jsonl") as replay:
        assert found(played) == then
    assert replay.left == 0


def test_what_a_cassette_lacks_of_a_run_is_asked_anew_for_it_alone(task: SimulatedTask, tmp_path: Path) -> None:
    """Killed amid its second run: the first one is not asked for anything, and what it got is no other one's."""
    path, asked = tmp_path / "cassette.jsonl", list[str]()

    async def noting(request: Request) -> Any:
        asked.append(request.purpose)
        return await task.model.complete(request)

    def found(n_jobs: int) -> int:
        trainer = Trainer(1)
        with tg.use_models(forward=FunctionModel(noting)), tg.llm.record(path, resume=True):
            made = cross_validate(start_of(task), task.loss, task.train[:18], folds=3, trainer=trainer, n_jobs=n_jobs)
        return made.total.calls

    whole = found(1)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line).get("part", 1) == 1]
    assert 1 < len(kept) < len(lines)
    path.write_text("".join(kept), encoding="utf-8")
    del asked[:]
    assert found(-1) == whole
    assert len(asked) == len(lines) - len(kept)
    del asked[:]
    assert found(1) == whole
    assert not asked


def test_what_one_run_raises_ends_the_others_and_is_raised(task: SimulatedTask, tmp_path: Path) -> None:
    """They would be paid for, and nobody would see what they found; resumed, they go on."""
    broken = True

    async def answer(request: Request) -> Any:
        if broken and request.purpose == "optimizer":
            raise KeyError("no such shelf")
        return await task.model.complete(request)

    def found(**settings: Any) -> Any:
        trainer = Trainer(2, run_dir=tmp_path / "run", **settings)
        with tg.use_models(forward=FunctionModel(answer, name="one")):
            return cross_validate(start_of(task), task.loss, task.train[:24], folds=3, trainer=trainer, n_jobs=-1)

    with pytest.raises(KeyError, match="no such shelf"):
        found()
    broken = False
    assert found(resume=True).status == "finished"


@pytest.mark.parametrize("most", [30, 100])
def test_nothing_is_asked_for_runs_that_were_not_begun_where_those_that_were_cannot_go_on(
    task: SimulatedTask, tmp_path: Path, most: int
) -> None:
    """A prompt was changed after the first run, or amid it: the others went on with that, and nobody could go on with
    all of them any more."""
    asked: list[Request] = []
    make, at_most = start_of(task), most

    async def answer(request: Request) -> Any:
        if len(asked) >= at_most:
            raise KeyError("the machine is gone")
        asked.append(request)
        return await task.model.complete(request)

    def changed() -> tuple[nn.Module, optim.Optimizer]:
        program, _ = make()
        with tg.no_grad():
            for parameter in program.parameters():
                parameter.data += " Think."
        return program, optim.TGD(program.parameters(), max_edits=4)

    def found(start: Any, n_jobs: int) -> Any:
        asked.clear()
        trainer = Trainer(2, run_dir=tmp_path / "run", resume=True)
        with tg.use_models(forward=FunctionModel(answer, name="one")):
            return cross_validate(start, task.loss, task.train[:18], folds=3, trainer=trainer, n_jobs=n_jobs)

    with pytest.raises(KeyError):
        found(make, 1)
    assert read_run(tmp_path / "run" / "fold-1").result is not None or most == 30
    assert not (tmp_path / "run" / "fold-3").exists()
    at_most = 10**9
    with pytest.raises(RunError):
        found(changed, -1)
    assert not asked
    assert not (tmp_path / "run" / "fold-3").exists()
    assert found(make, -1).status == "finished"


def test_runs_at_once_that_would_train_the_same_text_are_refused(task: SimulatedTask) -> None:
    """Two threads would write into it."""
    first, second = start_of(task)(), start_of(task)()
    turns = iter([first, *[second] * 9])
    with pytest.raises(ValueError, match="returns the same 'system'"):
        cross_validate(lambda: next(turns), task.loss, task.train[:24], folds=3, n_jobs=-1)


def test_between_two_runs_nobody_else_goes_on_with_it(task: SimulatedTask, tmp_path: Path) -> None:
    """Two processes would take turns, and each would end where the other is at work."""
    refused, few = [], task.train[:12]
    make = start_of(task)

    def start() -> Any:
        if list(tmp_path.glob("fold-*")):
            with pytest.raises(RunError) as error:
                cross_validate(make, task.loss, few, folds=2, trainer=Trainer(run_dir=tmp_path, resume=True))
            refused.append(str(error.value))
        return make()

    with tg.use_models(forward=task.model):
        cross_validate(start, task.loss, few, folds=2, trainer=Trainer(run_dir=tmp_path))
        assert len(refused) == 2
        assert all(said.startswith(f"{tmp_path}: process ") and "is at work" in said for said in refused)
        cross_validate(make, task.loss, few, folds=2, trainer=Trainer(run_dir=tmp_path, resume=True))


def test_a_run_that_a_budget_ended_is_given_back_what_it_had(task: SimulatedTask, tmp_path: Path) -> None:
    """An equal part of a little more is less than what the last run had taken, which comes after all others."""

    def found(calls: int, **settings: Any) -> Any:
        with tg.use_models(forward=task.model), tg.budget(calls=calls):
            trainer = Trainer(run_dir=tmp_path / "run", **settings)
            return cross_validate(start_of(task), task.loss, task.train[:24], folds=3, trainer=trainer)

    before = found(160)
    after = found(before.total.calls + 10, resume=True)
    assert {each.status for each in before.runs} == {"budget"}
    assert all(b.total.calls >= a.total.calls for a, b in zip(before.runs, after.runs))
    assert after.total.calls <= before.total.calls + 10
    assert found(100_000, resume=True).status == "finished"


# what it says to use


def test_the_final_texts_are_to_be_used_only_where_folds_are_better(task: SimulatedTask) -> None:
    """Nothing is measured of the final texts themselves, so it is the folds that speak for them."""
    flat = simulated_task(rules=4, seed=2, train=30, flat=True)
    with tg.use_models(forward=task.model):
        found = cross_validate(start_of(task), task.loss, task.train, folds=3)
        without = cross_validate(start_of(task), task.loss, task.train[:12], folds=2, final=False)
    with tg.use_models(forward=flat.model):
        none = cross_validate(start_of(flat), flat.loss, flat.train, folds=3)
    assert (found.use, found.gained) == ("final", 3)
    assert without.use is None
    assert none.use == "seed"
    assert "to use: the seed prompt" in str(none)
    assert found.final is not None
    ended = replace(found, final=replace(found.final, status="budget", best=found.final.seed))
    assert str(ended).endswith("to use: open, as its run found nothing so far")
    assert "to use" not in str(replace(found, seed=None, best=None, comparison=None))


def test_controls_are_pooled_over_the_folds(task: SimulatedTask) -> None:
    """What feedback is worth shows on all examples, each control's texts tested by what they have not seen."""
    with tg.use_models(forward=task.model):
        trainer = Trainer(2, controls=True)
        found = cross_validate(start_of(task), task.loss, task.train, folds=3, trainer=trainer, final=False)
    assert [each.name for each in found.controls] == list(CONTROLS)
    for each in found.controls:
        assert (each.comparison.n, each.folds, len(each.test)) == (50, 3, 50)
        assert each.comparison.verdict == "better"
        own = [one for fold in found.folds for one in fold.controls.each if one.name == each.name]
        assert each.usage.calls == sum(one.usage.calls for one in own)
        assert each.test.mean == pytest.approx(sum(one.test.mean * len(one.test) for one in own) / 50)


def test_it_can_be_awaited(task: SimulatedTask) -> None:
    """Where an event loop runs already."""
    with tg.use_models(forward=task.model):
        found = asyncio.run(tg.across_validate(start_of(task), task.loss, task.train[:12], folds=2, final=False))
    assert len(found.folds) == 2


# what would give something else than it says


def test_a_program_that_was_trained_is_not_taken_for_a_new_one(task: SimulatedTask) -> None:
    """Its seed texts would have seen the examples of the folds after the first; nothing is paid for."""
    once = task.program()
    asked = FunctionModel(lambda request: "K1", name="one")
    with tg.use_models(forward=asked):
        with pytest.raises(ValueError, match="start returns the same 'system' each time"):
            cross_validate(lambda: (once, optim.TGD(once.parameters())), task.loss, task.train)
        with pytest.raises(TypeError, match="start should be a function"):
            cross_validate(once, task.loss, task.train)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"start should return \(program, optimizer\), got ChatCompletion"):
            cross_validate(lambda: once, task.loss, task.train)  # type: ignore[arg-type,return-value]
        three = once, optim.TGD(once.parameters()), tg.Trainer()
        with pytest.raises(TypeError, match=r"start should return .*, got \(ChatCompletion, TGD, Trainer\)$"):
            cross_validate(lambda: three, task.loss, task.train)  # type: ignore[arg-type,return-value]
    assert not asked.requests


def test_seed_texts_that_differ_from_run_to_run_are_refused(task: SimulatedTask) -> None:
    """Nobody could say what the verdict compares."""
    made: list[int] = []

    def start() -> Any:
        made.append(0)
        program = nn.ChatCompletion("{parcel}", system=nn.Parameter(f"Version {len(made)}.", role="system prompt"))
        return program, optim.TGD(program.parameters())

    with pytest.raises(ValueError, match="start returns other seed texts"):
        cross_validate(start, task.loss, task.train)


def test_a_fold_of_a_single_cluster_is_refused_before_anything_is_paid_for(task: SimulatedTask) -> None:
    """Its test set would end the third run, after two were paid for."""
    examples = [{**row, "page": n % 7} for n, row in enumerate(task.train)]
    with pytest.raises(ValueError, match="7 clusters by 'page' cannot be dealt to 5 folds: a fold of one cluster"):
        parts_of(task.program(), examples, folds=5, clusters="page")
    for part in parts_of(task.program(), examples, folds=3, clusters="page", val=0.01):
        assert all(len({row["page"] for row in some}) >= 2 for some in (part.train, part.val, part.test) if some)


def test_the_folder_of_one_run_is_refused_before_the_first_of_several(task: SimulatedTask, tmp_path: Path) -> None:
    """The second would find it taken, after the first was paid for."""
    with pytest.raises(ValueError, match=r"the folder of one run.*Trainer\(run_dir=...\)"):
        cross_validate(start_of(task), task.loss, task.train, trainer=Trainer(callbacks=[RunFolder(tmp_path / "x")]))
