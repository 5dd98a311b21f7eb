"""What a run keeps back from its budget: the validation of its best texts, and the test of both prompts."""

from __future__ import annotations

import asyncio
import functools
import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, optim, report
from textgrad_engine.errors import AuthenticationFailed, BudgetExceeded, ConnectionFailed
from textgrad_engine.llm.amounts import PICO, UNLIMITED, Amount
from textgrad_engine.llm.budget import DEFAULT_MAX_TOKENS, charge
from textgrad_engine.llm.reserve import LastTest, Reserve, Waiting
from textgrad_engine.report import tables, view
from textgrad_engine.report.lineage import lineage_of
from textgrad_engine.testing import SimulatedTask, feedback_for, simulated_task
from textgrad_engine.train import Trainer, TrainResult
from textgrad_engine.train.ending import Ending, _in_words
from textgrad_engine.train.settings import NESTED


@pytest.fixture(scope="module")
def task() -> SimulatedTask:
    return simulated_task(rules=6, train=32, val=24, test=20, seed=3)


@pytest.fixture(scope="module")
def small() -> SimulatedTask:
    """For runs that are made several times, or begun anew in several sittings."""
    return simulated_task(rules=4, train=16, val=12, test=20, seed=3)


def fit(task: SimulatedTask, optimizer: str = "PatchSearch", model: Any = None, **settings: Any) -> TrainResult:
    program = task.program()
    steps = {"max_edits": 4} if optimizer == "TGD" else {}  # that a small budget has room for
    made = getattr(optim, optimizer)(program.parameters(), **steps)
    made.to_the_end = True
    with tg.use_models(forward=model or task.model):
        return Trainer(**settings).fit(program, task.loss, made, task.train, task.val, task.test)


@pytest.mark.parametrize("optimizer", ["PatchSearch", "TGD", "ParetoSearch", "OPRO"])
def test_a_search_that_spends_its_budget_is_tested_all_the_same(task: SimulatedTask, optimizer: str) -> None:
    """Both prompts are run on the whole test set, and the limit holds."""
    for calls in (120, 230) if optimizer in ("PatchSearch", "OPRO") else (170,):
        with tg.budget(calls=calls) as spent:
            result = fit(task, optimizer, max_epochs=50)
        assert (result.status, result.compared_on, result.openings) == ("budget", "test", 1)
        assert result.seed_test is not None
        assert result.best_test is not None
        assert len(result.seed_test) == len(result.best_test) == len(task.test)
        assert result.best_val is not None
        assert None not in result.best_val.scores  # nor is it compared on what happened to be raced
        assert result.untested == ""
        assert spent.spent.calls == result.total.calls <= calls


def test_the_test_set_goes_before_the_rest_of_the_validation_set() -> None:
    """Texts that won on a part of it are tested; to validate them on the rest of it would take the test's room."""
    task = simulated_task(rules=4, train=40, val=40, test=10, seed=1)
    cut_off = 0
    for calls in range(140, 170, 5):
        with tg.budget(calls=calls) as spent:
            result = fit(task, "TGD", max_epochs=50)
        assert (result.compared_on, result.untested) == ("test", "")
        assert spent.spent.calls <= calls
        assert result.best_val is not None
        cut_off += bool(result.best_val.not_run)
    assert cut_off == 4


def test_most_of_the_budget_goes_to_the_search(task: SimulatedTask) -> None:
    """What is left over at the end is less than a step takes."""
    with tg.budget(calls=300) as spent:
        fit(task, "TGD", max_epochs=50)
    assert spent.remaining.calls is not None
    assert spent.remaining.calls <= len(task.val)


def test_a_budget_too_small_for_all_of_the_test_set_is_tested_on_a_part() -> None:
    """A drawn one, that takes half of what is left after the first validation."""
    task = simulated_task(rules=6, train=32, val=24, test=80, seed=3)
    with tg.budget(calls=200) as spent:
        result = fit(task, "TGD", max_epochs=50)
    assert (result.status, result.compared_on, result.openings) == ("budget", "test", 1)
    assert result.seed_test is not None
    assert result.best_test is not None
    assert len(result.best_test) == 44
    assert result.best_test.ids == result.seed_test.ids != tuple(str(n) for n in range(44))
    assert result.untested == (
        "the budget had room for 44 of 80 test examples, drawn at random: all 80 with two prompts take about 160 "
        "calls, more than half of what was left after the first validation; raise it, or test fewer examples"
    )
    assert "tested on 44 examples only" in tables.one_line(result)
    assert spent.spent.calls <= 200
    enough = fit(task)  # a search that ends by itself has the whole of it
    assert enough.best_test is not None
    assert (len(enough.best_test), enough.untested) == (80, "")


def test_a_test_that_is_begun_is_ended() -> None:
    """Whatever the last step took: as many examples are drawn as can be run, with one prompt where none is better."""
    task = simulated_task(rules=6, train=16, val=12, test=60, seed=3)
    tested: dict[bool, list[int]] = {True: [], False: []}
    for calls in (94, 98, 102, 106, 130, 150, 170):
        with tg.budget(calls=calls):
            result = fit(task, "TGD", max_epochs=50)
        assert result.seed_test is not None
        assert result.best_test is not None
        assert len(result.seed_test) == len(result.best_test)
        tested[result.best != result.seed].append(len(result.best_test))
    assert tested[True] == sorted(tested[True])
    assert tested[False] == sorted(tested[False])
    assert 20 <= min(tested[True]) < max(tested[True]) < max(tested[False]) < 60


def test_a_budget_too_small_for_a_part_goes_to_the_search_and_says_so(task: SimulatedTask) -> None:
    """40 calls of test are more than half of what 24 of validation leave of 90; fewer than 20 examples tell little."""
    with tg.budget(calls=90) as spent:
        result = fit(task)
    assert (result.status, result.compared_on, result.openings) == ("budget", "val", 0)
    assert (result.seed_test, result.best_test) == (None, None)
    assert result.untested == (
        "the budget had no room for the test set: all 20 with two prompts take about 40 calls, more than half of what "
        "was left after the first validation; raise it, or test fewer examples"
    )
    assert result.untested in str(result)
    assert any("no room for the test set" in note for note in view.view_of(result).notes)
    assert "not tested" in tables.one_line(result)
    assert spent.spent.calls > 80


def test_a_step_that_is_cut_off_has_not_been() -> None:
    """Nor for the optimizer: what it says of each line, and what it would be taken up with, is of the best texts."""
    task = simulated_task(rules=6, train=32, val=12, seed=3)
    kept = 0
    for calls in range(60, 120, 8):
        program = task.program()
        optimizer = optim.TGD(program.parameters(), max_edits=2)
        with tg.budget(calls=calls), tg.use_models(forward=task.model):
            result = Trainer(max_epochs=50, batch_size=8).fit(program, task.loss, optimizer, task.train, task.val)
        assert result.status == "budget"
        assert optimizer.origins(program.system) == result.origins["system"]
        kept += any(origin is not None for origin in result.origins["system"])
    assert kept > 3


def test_a_step_whose_validation_is_cut_off_has_been(world: Any, rows: Any) -> None:
    """Its race decided; what that ran is what is known of the new text, and the journal tells who wrote its line."""
    val = [{"word": f"x{n}", "target": f"X{n}"} for n in range(36)]
    cut_off = 0
    for calls in range(60, 84, 3):
        made = world("SHOUT")
        with tg.budget(calls=calls):
            result = made.fit(rows("ant", "bee", "cat", "dog"), val, max_epochs=1)
        assert result.best_val is not None
        if result.best != result.seed:
            assert [step.kept for step in result.steps] == [True]
            assert result.best_val.mean == result.comparison.difference == result.steps[0].val_mean == 1.0
            assert lineage_of(result, 2).accepted is not None
            cut_off += None in result.best_val.scores
    assert cut_off > 2


def test_controls_are_tested_on_the_part_that_the_prompts_were_tested_on(tmp_path: Any) -> None:
    """Answers from a cache leave them room where the test set had none; the same examples are compared."""

    def respond(request: llm.Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            form = request.config.response_format
            return {"text": "SHOUT.", "reason": ""} if form is not None and form.name == "rewrite" else {"edits": []}
        word = request.messages[-1].text
        return word.upper() if "SHOUT" in request.messages[0].text else word

    model = tg.testing.FunctionModel(respond)
    model.cache_key, model.free = "shouting", False  # type: ignore[attr-defined]
    words = [{"word": f"x{n}", "target": f"X{n}"} for n in range(100)]
    results = []
    with llm.caching(tmp_path / "cache"):
        for calls in (5000, 75):
            program = tg.nn.ChatCompletion("{word}", system=tg.nn.Parameter("Repeat.", role="system prompt"))
            search = optim.TGD(program.parameters())
            with tg.budget(calls=calls), tg.use_models(forward=model):
                trainer = Trainer(max_steps=1, controls=True)
                results.append(trainer.fit(program, tg.nn.ExactMatch(), search, words[:8], words[8:20], words[20:]))
    for result, size in zip(results, (80, 75)):
        assert result.status == "finished"
        assert "no room for controls" not in str(result)
        assert result.best_test is not None
        assert result.controls is not None
        tested = [made.test for made in result.controls.each]
        assert [each.ids for each in tested if each is not None] == [result.best_test.ids] * 2
        assert len(result.best_test.ids) == size
        assert [made.compared_on for made in result.controls.each] == ["test", "test"]


@pytest.mark.parametrize("limit", ["tokens", "dollars"])
def test_tokens_and_money_are_kept_with_a_margin(
    task: SimulatedTask, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call is sent only if its worst case fits, so that of one call is kept, too."""
    used = fit(task, "TGD", max_epochs=3).total
    model = tg.testing.FunctionModel(task.model.complete, name="priced")
    monkeypatch.setattr(model, "free", False)
    tokens = used.total_tokens // 2 + 3 * DEFAULT_MAX_TOKENS
    llm.set_price("priced", 1.0, 1.0)
    program = task.program()
    with tg.budget(**{limit: tokens if limit == "tokens" else tokens / 1e6}), tg.use_models(forward=model):
        search = optim.TGD(program.parameters())
        result = Trainer(max_epochs=50).fit(program, task.loss, search, task.train, task.val, task.test)
    assert (result.status, result.compared_on) == ("budget", "test")
    assert result.total.total_tokens <= tokens


@pytest.mark.parametrize("limit", ["tokens", "dollars"])
def test_what_a_budget_has_left_that_no_call_fits_into_is_told(
    task: SimulatedTask, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who limits a run to little would take it for spent: a call is sent only if its longest answer fits."""
    model = tg.testing.FunctionModel(task.model.complete, name="priced")
    monkeypatch.setattr(model, "free", False)
    llm.set_price("priced", 1.0, 1.0)
    most = 2 * DEFAULT_MAX_TOKENS
    with tg.budget(**{limit: most if limit == "tokens" else most / 1e6}):
        result = fit(task, "TGD", model)
    left = most - result.total.total_tokens
    words = f"{left:,}" if limit == "tokens" else f"{left / 1e6:,.6g}"
    assert result.status == "budget"
    assert left > most / 4
    assert result.unspent.startswith(
        f"{words} {limit} of the budget are left: a call is sent only if its longest answer"
    )
    assert result.unspent in str(result)
    said = " ".join(tables.render(result).split())
    assert "The budget allowed no further call" in said
    assert f"{words} {limit} of the budget are left" in said
    assert "spent" not in tables.one_line(result)


class _Silent:
    """Answers as another model does, from an endpoint that does not say what they used."""

    name = "silent"

    def __init__(self, model: Any) -> None:
        self._model = model

    async def complete(self, request: llm.Request) -> llm.Completion:
        completion = await self._model.complete(request)
        return completion.model_copy(update={"raw": {"usage_estimated": True}})


def test_what_is_held_for_answers_that_did_not_say_what_they_used_is_told(task: SimulatedTask) -> None:
    """Their worst case counts, which is many times what was used, and the rest would seem to have vanished."""
    with tg.budget(tokens=40 * DEFAULT_MAX_TOKENS) as spent:
        result = fit(task, "TGD", _Silent(task.model))
    assert result.status == "budget"
    assert result.unspent.startswith(f"{spent.unknown.total_tokens:,} tokens of the budget are held for calls whose")
    assert "a lower max_tokens makes that less" in " ".join(tables.render(result).split())


def test_the_test_is_paid_for_first_where_answers_do_not_say_what_they_used(small: SimulatedTask) -> None:
    """Each holds its worst case, so the test of both prompts takes as many of these."""
    with tg.budget(tokens=150 * DEFAULT_MAX_TOKENS):
        result = fit(small, "TGD", _Silent(small.model), max_epochs=50)
    assert (result.status, result.compared_on) == ("budget", "test")


class _Dropping:
    """Answers as another model does, but that each fourth request loses its connection, of those of a range."""

    def __init__(self, model: Any, begin: int, end: int) -> None:
        self.name, self._model, self._begin, self._end = model.name, model, begin, end
        self.sent, self.answered = 0, list[llm.Request]()

    async def complete(self, request: llm.Request) -> llm.Completion:
        self.sent += 1
        if self._begin < self.sent <= self._end and self.sent % 4 == 0:
            raise ConnectionFailed("the connection was lost")
        self.answered.append(request)
        return await self._model.complete(request)


def dropping(task: SimulatedTask, begin: int = 0, end: int = 10**6) -> tuple[_Dropping, Any]:
    """Such a model, and what asks it again."""
    model = _Dropping(task.model, begin, end)
    return model, llm.resolve(model, policy=llm.RetryPolicy(base=0, cap=0))


@pytest.mark.parametrize("calls", [180, 240, 300])
def test_calls_that_fail_and_count_leave_the_test_its_room(task: SimulatedTask, calls: int) -> None:
    """They may have been answered; a test of as many calls as examples would end before its end."""
    model, retried = dropping(task)
    with tg.budget(calls=calls) as spent:
        result = fit(task, "TGD", retried, max_epochs=50)
    assert (result.status, result.compared_on, result.untested) == ("budget", "test", "")
    assert spent.unknown.calls > calls / 8
    assert model.sent == spent.spent.calls + spent.unknown.calls <= calls


def test_a_test_that_the_budget_ended_keeps_what_both_prompts_were_run_on(tmp_path: Path) -> None:
    """Connections that are lost from some call on take room that nobody could keep; what was paid for tells all the
    same, and with a larger budget the rest alone is asked for."""
    task = simulated_task(rules=6, train=32, val=24, test=40, seed=3)
    model, retried = dropping(task, begin=150)
    with tg.budget(calls=190):
        result = fit(task, "TGD", retried, max_steps=2, run_dir=tmp_path)
    assert (result.status, result.compared_on, result.openings) == ("budget", "test", 1)
    assert result.best != result.seed
    assert result.seed_test is not None
    assert result.best_test is not None
    size = len(result.best_test)
    assert result.seed_test.ids == result.best_test.ids
    assert 20 <= size < 40
    assert None not in result.seed_test.scores + result.best_test.scores
    assert (result.best_test.failures, result.best_test.not_run, result.test_usage) == ({}, (), {})
    assert result.comparison == tg.compare(result.seed_test, result.best_test)
    assert result.untested == (
        f"the budget was spent when {size} of 40 test examples had been run with each prompt; raise it, or test fewer "
        "examples"
    )
    assert f"tested on {size} examples only" in tables.one_line(result)
    with tg.budget(calls=300):
        again = fit(task, "TGD", retried, max_steps=2, run_dir=tmp_path, resume=True)
    assert again.best_test is not None
    assert (len(again.best_test), again.untested) == (40, "")
    assert again.total.calls == len(model.answered)


def test_a_test_of_the_seed_prompt_alone_that_the_budget_ended_is_kept() -> None:
    """Nothing better was found, and there is no second prompt to run."""
    task = simulated_task(rules=4, train=12, val=12, test=60, seed=1)
    with tg.budget(calls=110):
        result = fit(task, "TGD", dropping(task, begin=60)[1], max_steps=1)
    assert (result.status, result.compared_on, result.best) == ("budget", "test", result.seed)
    assert result.best_test is not None
    assert result.best_test == result.seed_test
    assert (result.best_test.failures, result.openings) == ({}, 1)
    assert 20 <= len(result.best_test) < 60
    assert result.untested.startswith(f"the budget was spent when {len(result.best_test)} of 60 test examples had been")


def test_too_few_examples_that_both_prompts_were_run_on_tell_nothing(task: SimulatedTask) -> None:
    """Less than 20, as of a part that is drawn."""
    with tg.budget(calls=240):
        result = fit(task, "TGD", dropping(task, begin=200)[1], max_epochs=50)
    assert (result.status, result.compared_on, result.best_test, result.openings) == ("budget", "val", None, 1)
    assert result.untested == (
        "the budget was spent before both prompts were run on the test set; raise it, or test fewer examples"
    )


def test_a_test_that_has_room_only_where_no_call_fails_is_begun() -> None:
    """Calls need not fail again, and where they do, what both prompts were run on is kept."""
    task = simulated_task(rules=6, train=32, val=24, test=20, seed=3)
    _, retried = dropping(task, begin=190, end=200)
    with tg.budget(calls=240):
        result = fit(task, "TGD", retried, max_epochs=50)
    assert (result.status, result.compared_on, result.untested) == ("budget", "test", "")


def test_millions_of_tokens_are_told_in_figures() -> None:
    """Documents take them, and 3.46448e+06 is no number for people."""
    told = _in_words(Amount(tokens=3_464_480), Amount(tokens=1_000_000))
    assert told.startswith("3,464,480 tokens, more than half of what was left")
    assert _in_words(Amount(pico=PICO // 8), Amount()).startswith("0.125 dollars")


def test_a_budget_that_is_spent_to_the_last_call_is_not_said_to_be_left(task: SimulatedTask) -> None:
    """Neither is one of calls, of which each takes one."""
    with tg.budget(calls=60):
        result = fit(task, "TGD")
    assert (result.status, result.unspent) == ("budget", "")


@pytest.mark.parametrize(("calls", "told"), [(60, ""), (120, "calls of the budget are left: they were kept")])
def test_of_several_limits_that_which_ended_the_run_is_told_of(task: SimulatedTask, calls: int, told: str) -> None:
    """`init` limits dollars, and who limits calls, too, was told that $2 had been kept for the end of the run."""
    with tg.budget(calls=calls, dollars=2, tokens=10**9):
        result = fit(task, "TGD")
    assert result.status == "budget"
    assert told in result.unspent
    assert bool(told) is bool(result.unspent)


@pytest.mark.parametrize("limit", ["calls", "tokens"])
def test_what_was_kept_for_the_test_of_new_texts_and_not_needed_is_told(task: SimulatedTask, limit: str) -> None:
    """A search that finds nothing leaves it over, and would be taken for one that had spent its budget."""
    most = 120 if limit == "calls" else 30_000
    with tg.budget(**{limit: most}):
        result = fit(task, "TGD")
    left = most - (result.total.calls if limit == "calls" else result.total.total_tokens)
    assert (result.status, result.best) == ("budget", result.seed)
    assert left > most / 10
    assert result.unspent == (
        f"{left:,} {limit} of the budget are left: they were kept for the end of the run, which took less than it "
        "could have"
    )
    assert "The budget allowed no further call" in " ".join(tables.render(result).split())


def test_what_was_paid_for_and_not_asked_for_again_is_not_told_to_be_left(small: SimulatedTask, tmp_path: Any) -> None:
    """A run that goes on may come to other texts; the test of those that were best before was paid for all the same."""
    with tg.budget(calls=105):
        first = fit(small, "ParetoSearch", run_dir=tmp_path)
    model = tg.testing.FunctionModel(small.model.complete, name=small.model.name)
    with tg.budget(calls=150):
        again = fit(small, "ParetoSearch", model, run_dir=tmp_path, resume=True)
    assert again.best != first.best
    assert (again.status, first.total.calls + len(model.requests), again.unspent) == ("budget", 150, "")


def test_what_a_cache_answered_of_the_end_is_told_to_be_left(task: SimulatedTask, tmp_path: Path) -> None:
    """Room was kept for the test, and its answers cost nothing."""
    answers = tg.testing.FunctionModel(task.model.complete, name="kept")
    answers.cache_key = "as the task has it"
    with llm.caching(tmp_path), tg.use_models(forward=answers):
        tg.evaluate(task.program(), task.test, task.loss)
    with llm.caching(tmp_path), tg.budget(calls=180):
        result = fit(task, "TGD", answers, max_epochs=50)
    assert result.status == "budget"
    assert result.seed != result.best
    assert result.unspent.startswith(f"{180 - result.total.calls} calls of the budget are left: they were kept for")


def test_controls_that_a_budget_has_no_room_for_are_missing_with_a_word(
    task: SimulatedTask, caplog: pytest.LogCaptureFixture
) -> None:
    """The search has all of it then; it is said as soon as it is known, before the rest is spent."""
    with tg.budget(calls=210):
        result = fit(task, controls=True)
    assert result.controls is not None
    assert result.controls.each == ()
    assert result.controls.calls > 24
    why = (
        "the budget had no room for controls: shared with them it would have left the search 4 calls, and the first "
        "validation alone took 24; raise it"
    )
    assert why in caplog.messages
    assert why in str(result)
    shown = view.view_of(result)
    assert any("no room for controls" in note for note in shown.notes)
    assert shown.controls == (), "a table of the optimizer beside nothing"
    assert report.as_json(result)["controls"]["problem"] == why
    assert result.compared_on == "test"


@pytest.mark.parametrize("optimizer", ["BeamSearch", "TGD"])
def test_a_search_that_came_to_no_step_beside_controls_says_why(
    task: SimulatedTask, optimizer: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Without controls the same budget is enough for steps, and nothing is said."""
    with tg.budget(calls=320):
        result = fit(task, optimizer, controls=True)
    assert result.controls is not None
    assert (result.steps, len(result.controls.each)) == ((), 2)
    why = (
        "no step fitted into what the budget has for the search beside controls, 64 calls with the first validation; "
        "raise it, or leave the controls out"
    )
    assert result.controls.problem == why
    assert why in str(result)
    assert why in caplog.messages
    with tg.budget(calls=320):
        alone = fit(task, optimizer)
    assert alone.steps
    assert "no step" not in str(alone)


def test_a_budget_too_small_to_test_the_texts_of_controls_says_that() -> None:
    """Not that the search would have had less than the first validation took, where it would have had more."""
    with tg.budget(calls=145):
        ending = Ending(100, 1, 80, controls=2)
        ending.learn(llm.Usage(calls=5), 5)
    assert (ending.controls, ending.tests) == (0, 36)
    assert ending.no_controls == (
        "the budget had no room for controls: 20 test examples with their texts, too, take about 80 calls, more than "
        "half of what was left after the first validation; raise it"
    )


def test_controls_that_a_search_which_ended_by_itself_left_room_for_are_no_problem() -> None:
    """No part was kept for them, and they were run all the same."""
    task = simulated_task(rules=6, train=4, val=24, test=20, seed=3)
    with tg.budget(calls=200):
        result = fit(task, "BootstrapDemos", max_steps=1, controls=True)
    assert result.controls is not None
    assert [made.compared_on for made in result.controls.each] == ["test", "test"]
    assert (result.status, result.controls.problem) == ("finished", "")


@pytest.fixture(scope="module")
def beside_controls(task: SimulatedTask) -> Callable[[str], tuple[TrainResult, Any]]:
    """What an optimizer came to with controls and 500 calls, each once, and what was spent."""

    @functools.cache
    def made(optimizer: str) -> tuple[TrainResult, Any]:
        with tg.budget(calls=500) as spent:
            return fit(task, optimizer, max_epochs=50, controls=True), spent

    return made


@pytest.mark.parametrize("optimizer", ["ParetoSearch", "OPRO", "TGD"])
def test_controls_have_their_part_of_a_budget_that_a_search_would_spend(beside_controls: Any, optimizer: str) -> None:
    """500 less 24, 40 for the test and 24 + 24 + 20 for each of two controls are 3 x 100; 24 were spent before."""
    result, spent = beside_controls(optimizer)
    assert result.controls is not None
    assert (result.status, result.compared_on) == ("budget", "test")
    assert bool(result.controls.problem) == (not result.steps) == (optimizer == "OPRO")  # whose steps take more
    assert result.controls.calls == 124
    assert [made.usage.calls for made in result.controls.each] == [124, 124]
    assert [made.compared_on for made in result.controls.each] == ["test", "test"]
    assert spent.spent.calls == result.total.calls <= 500


def test_what_controls_left_of_a_budget_is_not_laid_to_the_longest_answer(task: SimulatedTask) -> None:
    """The optimizer's part was spent; a lower max_tokens would not give it more."""
    with tg.budget(tokens=80_000) as spent:
        result = fit(task, "ParetoSearch", max_epochs=50, controls=True)
    assert (spent.remaining.tokens or 0) > 8_000
    assert (result.spent_its_part, result.unspent) == (True, "")


def test_a_search_whose_part_beside_controls_is_spent_says_so(beside_controls: Any) -> None:
    """That the budget was spent would have somebody look for what took the rest; it was where controls are cut, too."""
    result, spent = beside_controls("ParetoSearch")
    assert spent.remaining.calls
    assert result.spent_its_part
    steps = len(result.steps)
    assert str(result).startswith(f"budget (the optimizer's part) after {steps} steps; ")
    shown = " ".join(report.render(result, width=120).split())
    assert f"The optimizer's part of the budget, beside the controls, was spent after {steps} steps" in shown
    assert report.one_line(result).startswith("optimizer's part of the budget spent; ")
    assert result.controls is not None
    *others, last = result.controls.each
    for cut in (others, [*others, replace(last, test=None)]):
        found = replace(result, controls=replace(result.controls, each=tuple(cut)))
        assert not found.spent_its_part
        assert report.one_line(found).startswith("budget spent; ")
        assert f"The budget was spent after {steps} steps" in " ".join(report.render(found, width=120).split())
    assert not replace(result, status="finished").spent_its_part
    assert not replace(result, controls=None).spent_its_part


def test_the_test_of_controls_comes_out_of_the_part_for_tests() -> None:
    """Four prompts take twice as many calls as two, so fewer examples are drawn; a search is not starved by it."""
    task = simulated_task(rules=6, train=32, val=24, test=80, seed=3)
    with tg.budget(calls=500) as spent:
        result = fit(task, "ParetoSearch", controls=True)
    assert result.controls is not None
    assert result.best_test is not None
    assert len(result.best_test) == 476 // 2 // 4
    assert result.controls.calls == 24 + (476 - 4 * 59 - 2 * (24 + 24)) // 3
    assert "all 80 with two prompts and those of the controls take about 320 calls" in result.untested
    tested = [made.test for made in result.controls.each]
    assert [each.ids for each in tested if each is not None] == [result.best_test.ids] * 2
    assert spent.spent.calls <= 500


@pytest.mark.parametrize("limit", ["tokens", "dollars"])
def test_controls_have_their_part_of_tokens_and_money(
    task: SimulatedTask, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the search nor the first control takes what the second one is to have."""
    model = tg.testing.FunctionModel(task.model.complete, name="priced")
    monkeypatch.setattr(model, "free", False)
    llm.set_price("priced", 1.0, 1.0)
    tokens = 150_000
    with tg.budget(**{limit: tokens if limit == "tokens" else tokens / 1e6}):
        result = fit(task, "ParetoSearch", model, controls=True)
    assert result.controls is not None
    assert [made.tried > 0 for made in result.controls.each] == [True, True]
    assert [made.compared_on for made in result.controls.each] == ["test", "test"]
    assert result.controls.usage.total_tokens < tokens / 2
    assert result.total.total_tokens <= tokens


@pytest.mark.parametrize("kills", [(43, 130), (75, 210)], ids=["search, first control", "test, second control"])
def test_a_run_with_controls_and_a_budget_goes_on_where_it_was_killed(kills: tuple[int, ...], tmp_path: Any) -> None:
    """Amid the search, the test and both controls; with as many calls, none of them paid for twice."""
    task = simulated_task(rules=6, train=16, val=12, test=20, seed=3)
    with tg.budget(calls=280):
        whole = fit(task, "ParetoSearch", controls=True, run_dir=tmp_path / "whole")
    paid = 0
    for most in kills:
        model = until(task, most - paid)
        with tg.budget(calls=280), pytest.raises(AuthenticationFailed):
            fit(task, "ParetoSearch", model, controls=True, run_dir=tmp_path / "killed", resume=True)
        paid = most
    model = until(task, whole.total.calls - paid)
    with tg.budget(calls=280):
        again = fit(task, "ParetoSearch", model, controls=True, run_dir=tmp_path / "killed", resume=True)
    assert again.controls == whole.controls
    assert (again.best, again.best_test, again.total) == (whole.best, whole.best_test, whole.total)


def test_a_larger_budget_gives_the_search_more_than_it_had(tmp_path: Any) -> None:
    """What is on record of test and controls is what room is kept for, so that is not taken from the search twice."""
    task = simulated_task(rules=6, train=16, val=12, test=20, seed=3)
    with tg.budget(calls=280):
        first = fit(task, "ParetoSearch", max_epochs=50, controls=True, run_dir=tmp_path)
    with tg.budget(calls=450):
        again = fit(task, "ParetoSearch", max_epochs=50, controls=True, run_dir=tmp_path, resume=True)
    with tg.budget(calls=450):
        whole = fit(task, "ParetoSearch", max_epochs=50, controls=True)
    calls = [0 if each.controls is None else each.controls.calls for each in (first, again, whole)]
    assert 0 < calls[0] < calls[1] <= calls[2]
    assert again.total.calls <= 450


def test_a_larger_budget_is_not_spent_on_the_search_alone(task: SimulatedTask, tmp_path: Any) -> None:
    """Nor on what is left of the validation of texts that it finds: the test of those of before is not theirs."""
    with tg.budget(calls=150):
        first = fit(task, "TGD", max_epochs=50, run_dir=tmp_path)
    with tg.budget(calls=230):
        again = fit(task, "TGD", max_epochs=50, run_dir=tmp_path, resume=True)
    assert again.best != first.best
    assert (again.compared_on, again.untested) == ("test", "")
    assert len(again.steps) > len(first.steps)


def test_a_test_on_record_goes_before_controls_that_a_larger_budget_has_room_for(tmp_path: Any) -> None:
    """It costs nothing, and they would take its examples away, and find no room for the rest."""
    task = simulated_task(rules=4, train=32, val=12, test=60, seed=4)
    for calls in (155, 176):
        with tg.budget(calls=calls):
            found = fit(task, "TGD", max_steps=3, controls=True, run_dir=tmp_path, resume=True)
        assert found.best_test is not None
        assert len(found.best_test) == 60


@pytest.mark.parametrize(("before", "sizes"), [(False, [39, 98]), (True, [39, 81])])
def test_a_larger_part_of_the_test_set_holds_the_smaller_one(tmp_path: Any, before: bool, sizes: list[int]) -> None:
    """So a larger budget pays for what it adds alone. A run of before draws as it did, and is cut where it has no room
    for that."""
    task = simulated_task(rules=4, train=12, val=12, test=280, seed=5)
    drawn = []
    for calls in (50, 170, 330):
        with tg.budget(calls=calls):
            found = fit(task, "TGD", max_epochs=50, run_dir=tmp_path, resume=True)
        drawn.append(set() if found.best_test is None else set(found.best_test.ids))
        if before and calls == 50:
            events = tmp_path / "events.jsonl"
            first, *rest = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
            del first["settings"][NESTED]
            events.write_text("".join(json.dumps(each) + "\n" for each in (first, *rest)), encoding="utf-8")
    assert [len(each) for each in drawn] == [0, *sizes]
    assert before or drawn[1] < drawn[2]


def test_a_test_without_room_is_not_begun(tmp_path: Any) -> None:
    """Half of it would show nothing. One that was killed is ended by the budget that it was begun with, whatever was
    tried meanwhile, and nothing is asked twice."""
    task = simulated_task(rules=4, train=12, val=12, test=110, seed=5)
    model = tg.testing.FunctionModel(task.model.complete, name=task.model.name)
    with tg.budget(calls=140), pytest.raises(AuthenticationFailed):
        fit(task, "TGD", until(task, 110), max_steps=1, run_dir=tmp_path)
    for calls, status in ((100, "budget"), (140, "finished")):
        with tg.budget(calls=calls) as spent:
            found = fit(task, "TGD", model, max_steps=1, run_dir=tmp_path, resume=True)
        assert found.status == status
        assert (not model.requests) == (found.best_test is None) == (calls == 100)
    assert found.best_test is not None
    assert (len(found.best_test), len(model.requests), spent.spent.calls) == (36, 30, 140)


def test_a_run_that_came_to_its_end_has_the_rest_of_its_test_from_a_larger_budget(tmp_path: Any) -> None:
    """As it says itself; with the budget that it had nothing is asked, and in the end it is a whole run."""
    task = simulated_task(rules=4, train=12, val=12, test=110, seed=5)
    model = tg.testing.FunctionModel(task.model.complete, name=task.model.name)
    tested = []
    for calls in (140, 140, 200, 400, 400):
        with tg.budget(calls=calls):
            found = fit(task, "TGD", model, max_steps=1, run_dir=tmp_path, resume=True)
        assert found.best_test is not None
        assert (found.status, len(model.requests)) == ("finished", found.total.calls)
        assert found.kept_short == ("raise it" in found.untested)
        tested.append(len(found.best_test))
    assert tested == [36, 36, 66, 110, 110]
    whole = fit(task, "TGD", max_steps=1)
    assert (found.best, found.best_test, found.total) == (whole.best, whole.best_test, whole.total)


@pytest.mark.parametrize("killed_at", [None, 105, 117])
def test_a_test_is_known_again_in_the_third_sitting(tmp_path: Any, killed_at: int | None) -> None:
    """Of the seed texts alone in the first one, of better texts as well in the second; one more call adds to it."""
    task = simulated_task(rules=4, train=12, val=24, test=25, seed=2)
    if killed_at is not None:
        with tg.budget(calls=113):
            fit(task, run_dir=tmp_path, max_epochs=1)
        with tg.budget(calls=118), pytest.raises(AuthenticationFailed):
            fit(task, "PatchSearch", until(task, killed_at - 94), run_dir=tmp_path, max_epochs=1, resume=True)
    sizes = []
    for calls in (113, 118, 119) if killed_at is None else (118, 119):
        with tg.budget(calls=calls) as spent:
            found = fit(task, run_dir=tmp_path, max_epochs=1, resume=True)
        assert found.best_test is not None
        assert spent.spent.calls <= calls
        sizes.append(len(found.best_test))
    assert sizes[-2:] == [23, 24]


def until(task: SimulatedTask, most: int) -> Any:
    """A model whose key is revoked after so many calls, those under way included."""
    asked = 0

    async def answer(request: llm.Request) -> llm.Completion:
        nonlocal asked
        asked += 1
        if asked > most:
            raise AuthenticationFailed("the key was revoked", status=401)
        return await task.model.complete(request)

    return tg.testing.FunctionModel(answer, name=task.model.name)


def test_a_run_that_is_killed_behind_a_larger_budget_is_what_it_would_have_been(tmp_path: Any) -> None:
    """What failed when it was killed is asked again as any call of a search is, that leaves room for the test."""
    task = simulated_task(rules=4, train=12, val=12, test=60, seed=5)
    with tg.budget(calls=118):
        fit(task, "TGD", max_epochs=50, run_dir=tmp_path / "whole")
    kills = (1, 100)
    for most in kills:
        shutil.copytree(tmp_path / "whole", tmp_path / f"killed after {most}")
    with tg.budget(calls=318):
        whole = fit(task, "TGD", max_epochs=50, run_dir=tmp_path / "whole", resume=True)
    for most in kills:
        path = tmp_path / f"killed after {most}"
        with tg.budget(calls=318), pytest.raises(AuthenticationFailed):
            fit(task, "TGD", until(task, most), max_epochs=50, run_dir=path, resume=True)
        with tg.budget(calls=318):
            killed = fit(task, "TGD", max_epochs=50, run_dir=path, resume=True)
        assert (killed.best, killed.best_test, killed.total.calls) == (whole.best, whole.best_test, whole.total.calls)


@pytest.mark.parametrize("optimizer", ["TGD", "PatchSearch", "ParetoSearch", "OPRO"])
def test_a_budget_that_is_raised_in_turns_takes_nothing_back(
    small: SimulatedTask, optimizer: str, tmp_path: Any
) -> None:
    """Neither a step nor a test is lost, no limit is passed, and in the end it is the result of a whole run.

    They take turns: every second one has each second budget.
    """
    length: dict[str, Any] = {"max_epochs": 2} if optimizer == "TGD" else {"max_steps": 8}
    whole = fit(small, optimizer, **length)
    every = whole.total.calls
    model = tg.testing.FunctionModel(small.model.complete, name=small.model.name)
    steps, tested, found = 0, False, None
    shares = (0.0, 0.51, 0.7, 3.0) if optimizer in ("TGD", "ParetoSearch") else (0.5, 0.56, 0.8, 3.0)
    for calls in [round(share * every) + 10 for share in shares]:
        with tg.budget(calls=calls) as spent:
            found = fit(small, optimizer, model, **length, run_dir=tmp_path, resume=True)
        assert len(model.requests) <= calls
        assert found.status == "finished" or found.total.calls == spent.spent.calls
        assert len(found.steps) >= steps
        assert found.best_test is not None or not tested
        steps, tested = len(found.steps), found.best_test is not None
    assert found is not None
    assert (found.status, tested) == ("finished", True)
    assert (found.best, found.best_test, found.total.calls) == (whole.best, whole.best_test, every)


def test_a_larger_budget_that_gives_nothing_says_which_one_would(
    small: SimulatedTask, tmp_path: Any, caplog: Any
) -> None:
    """With one call fewer nothing is asked, with that one something is."""
    with tg.budget(calls=105):
        first = fit(small, "ParetoSearch", run_dir=tmp_path)
    assert not caplog.messages
    with tg.budget(calls=106):
        fit(small, "ParetoSearch", run_dir=tmp_path, resume=True)
    (told,) = caplog.messages
    enough = int(told.split("raise it to ")[1].split(" calls")[0])
    for calls, more in ((enough - 1, 0), (enough, 1)):
        with tg.budget(calls=calls):
            again = fit(small, "ParetoSearch", run_dir=tmp_path, resume=True)
        assert again.total.calls == first.total.calls + more


def test_controls_have_their_part_also_where_the_best_texts_are_not_validated_whole(task: SimulatedTask) -> None:
    """Without a test set the rest of the validation is the end, and their room is no reason to leave them out."""
    with tg.budget(calls=560), tg.use_models(forward=task.model):
        program = task.program()
        made = optim.TGD(program.parameters(), max_edits=4)
        result = Trainer(max_epochs=50, controls=True).fit(program, task.loss, made, task.train, task.val)
    assert result.best_val is not None
    assert result.best_val.not_run
    assert result.controls is not None
    assert [each.usage.calls for each in result.controls.each] == [result.controls.calls] * 2
    assert result.spent_its_part
    for each in result.controls.each:  # by all that was answered, as the verdict is
        assert each.comparison is not None
        assert each.comparison.n == len(result.best_val.answered)


def test_where_a_larger_budget_tests_more_the_one_that_would_do_is_not_promised(tmp_path: Any, caplog: Any) -> None:
    """Who raised it to the number that was told was told another one, as more was kept for the test then."""
    many = simulated_task(rules=4, train=16, val=12, test=60, seed=3)
    with tg.budget(calls=160):
        first = fit(many, "ParetoSearch", run_dir=tmp_path)
    with tg.budget(calls=161):
        fit(many, "ParetoSearch", run_dir=tmp_path, resume=True)
    (told,) = caplog.messages
    assert told.endswith("calls, as a larger part of the test set is run then")
    least = int(told.split("well beyond ")[1].split(" calls")[0])
    with tg.budget(calls=least):
        again = fit(many, "ParetoSearch", run_dir=tmp_path, resume=True)
    assert len(again.steps) == len(first.steps)


def test_answers_from_the_cache_count_for_what_an_example_takes(task: SimulatedTask, tmp_path: Any) -> None:
    """A run that is made again pays nothing for its first validation, and still keeps enough for its end."""
    model = tg.testing.FunctionModel(task.model.complete)
    model.cache_key, model.free = "parcels", False  # type: ignore[attr-defined]
    with llm.caching(tmp_path / "cache"):
        with tg.budget(calls=130):
            first = fit(task, model=model)
        with tg.budget(calls=130) as spent:
            second = fit(task, model=model)
    assert (first.compared_on, second.compared_on) == ("test", "test")
    assert len(first.steps) < len(second.steps)  # what was paid before leaves more to search with
    assert second.total.calls == spent.spent.calls <= 130


def test_without_a_budget_nothing_is_kept_or_refused(task: SimulatedTask) -> None:
    """All room there is."""
    later = Reserve()
    assert later.free == Amount(UNLIMITED, UNLIMITED, UNLIMITED)
    ending = Ending(seed=100, prompts=1, tests=10)
    ending.learn(llm.Usage(calls=24, input_tokens=2400, dollars=0.1), 24)
    ending.keep_for(300, 5)
    assert ending.shortage == ""


def test_the_part_of_the_end_grows_with_the_texts_and_shrinks_with_what_is_known() -> None:
    """10 test examples with two prompts, 100 tokens each with the seed texts; 300 bytes more are 100 tokens more."""
    with tg.budget(calls=1000, tokens=10**6, dollars=10.0):
        ending = Ending(seed=60, prompts=1, tests=10)
        ending.learn(llm.Usage(calls=24, input_tokens=2000, output_tokens=400, dollars=0.0024), 24)
        ending.keep_for(60, 0)
        assert (ending.kept.calls, ending.kept.tokens) == (20, 2500)
        ending.keep_for(360, 4)
        assert (ending.kept.calls, ending.kept.tokens) == (24, 1250 + 2500 + 1000)
        assert ending.kept.pico == 4750 * PICO // 10**6
        ending.keep_for(360, 0)
        assert ending.kept.calls == 20


def spend(account: Any, tokens: int, most: int) -> None:
    """A call that might have needed more than it took."""
    assert account.reserve(Amount(1, most, 0))
    account.settle(Amount(1, most, 0), llm.Usage(calls=1, input_tokens=tokens, dollars=0.0), charged=True)


def test_what_other_calls_may_need_is_not_kept_for_the_test() -> None:
    """An optimizer's answer may be many times as long as those of the program."""
    with tg.budget(tokens=20_000) as account:
        ending = Ending(seed=60, prompts=1, tests=20)
        spend(account, 100, most=300)
        ending.learn(llm.Usage(calls=1, input_tokens=100), 1)
        spend(account, 500, most=9000)
        ending.keep_for(60, 0)
        assert ending.kept.tokens == 20 * 2 * 125 + 300
        ending.keep_for(90, 0)  # a byte may be a token, and is a third of one in the mean
        assert ending.kept.tokens == 20 * 125 + round(20 * 110 * 1.25) + 300 + 30


@pytest.mark.parametrize(("left", "drawn"), [(5300, 20), (4300, 20), (4299, 0)])
def test_a_test_is_begun_that_has_room_if_it_takes_no_more_than_expected(left: int, drawn: int) -> None:
    """With nothing to spare, as what both prompts were run on is kept where it takes more."""
    with tg.budget(tokens=20_000) as account:
        ending = Ending(seed=60, prompts=1, tests=20)
        spend(account, 100, most=300)
        ending.learn(llm.Usage(calls=1, input_tokens=100), 1)
        spend(account, 19_900 - left, most=19_900)
        assert ending.drawn(60) == drawn


def test_without_a_limit_in_calls_their_failures_take_no_room() -> None:
    """There is nothing that they would be a part of."""
    with tg.budget(tokens=100_000) as account:
        ending = Ending(seed=60, prompts=1, tests=20)
        spend(account, 100, most=300)
        ending.learn(llm.Usage(calls=1, input_tokens=100), 1)
        account.hold(Amount(50, 0, 0))
        ending.keep_for(60, 0)
        assert ending.kept.calls == 40


def reply(chat: tg.nn.Module) -> str:
    return str(chat(x="a").data)


@pytest.fixture
def chat() -> tg.nn.Module:
    return tg.nn.ChatCompletion("{x}", model=tg.testing.FunctionModel(lambda request: "yes"))


def test_a_call_that_needs_what_is_kept_is_refused_and_the_message_says_what_for(chat: tg.nn.Module) -> None:
    """Inside the block only; and what is kept anew takes the place of what was kept before."""
    with tg.budget(calls=4) as b:
        with Reserve() as later:
            later.keep(Amount(calls=3))
            assert reply(chat) == "yes"
            with pytest.raises(BudgetExceeded, match=r"1 spent, 3 kept for the rest of the run, and the next call"):
                reply(chat)
            later.keep(Amount(calls=2))
            assert reply(chat) == "yes"
            assert (b.remaining.calls, later.free.calls) == (2, 2)
            with pytest.raises(BudgetExceeded):
                reply(chat)
        assert reply(chat) == "yes"


@pytest.mark.parametrize(("paid", "kept"), [(False, 7), (True, 4)])
def test_what_was_paid_for_is_not_kept_beside_what_it_is_kept_for(chat: tg.nn.Module, paid: bool, kept: int) -> None:
    """Of a run that goes on, the larger of both is kept; of other blocks each keeps its part."""
    with tg.budget(calls=10), Waiting() if paid else Reserve() as outer, Reserve() as inner:
        outer.keep(Amount(calls=3))
        inner.keep(Amount(calls=4))
        for _ in range(10 - kept):
            reply(chat)
        with pytest.raises(BudgetExceeded, match=f"{kept} kept"):
            reply(chat)


@pytest.mark.parametrize(("decided", "kept"), [(True, 5), (False, 8)])
def test_what_waits_is_shared_with_the_end_as_far_as_that_is_certain(
    chat: tg.nn.Module, decided: bool, kept: int
) -> None:
    """A search may find other texts, of which nothing is tested: then only what any texts ask for counts for both."""
    with tg.budget(calls=10), Waiting() as paid, Reserve(decided=decided) as later:
        later.parts = {"seed": Amount(calls=1), "best": Amount(calls=2), "controls": Amount(calls=1)}
        later.keep(Amount(calls=4))
        paid.add(Amount(calls=2), "seed")
        paid.add(Amount(calls=2), "best")
        paid.add(Amount(calls=1), None)
        for _ in range(10 - kept):
            reply(chat)
        with pytest.raises(BudgetExceeded, match=f"{kept} kept") as caught:
            reply(chat)
        assert caught.value.enough == "11 calls"
        if not decided:
            with Reserve(decided=True):  # as for what had failed, and is asked anew
                assert reply(chat) == "yes"


@pytest.mark.parametrize(("moved", "drawn"), [(False, 26), (True, 22)])
def test_what_is_on_record_of_a_test_leaves_room_for_more_of_it(moved: bool, drawn: int) -> None:
    """20 of each text are on record and 12 calls are free, one of them for nothing; other texts have none on record."""
    with tg.budget(calls=100 if not moved else 112), Waiting() as paid:
        ending = Ending(seed=60, prompts=1, tests=40)
        ending.learn(llm.Usage(calls=24, input_tokens=2400), 24)
        paid.add(Amount(calls=20), "seed")
        paid.add(Amount(calls=20), "best")
        paid.add(Amount(calls=48), None)
        paid.moved = moved
        assert ending.drawn(60) == drawn


@pytest.mark.parametrize(("best", "free", "drawn"), [("as before", 8, 26), ("another", 26, 24)])
def test_a_search_that_went_on_and_found_nothing_better_has_its_test_on_record(
    best: str, free: int, drawn: int
) -> None:
    """22 examples of each text are on record, and 4 more of both take 8 calls; of other texts all 24 are new."""
    with tg.budget(calls=92 + free), Waiting(LastTest(22, {"p": "as before"})) as paid:
        ending = Ending(seed=60, prompts=1, tests=40)
        ending.learn(llm.Usage(calls=24, input_tokens=2400), 24)
        paid.add(Amount(calls=22), "seed")
        paid.add(Amount(calls=22), "best")
        paid.add(Amount(calls=48), None)
        paid.moved = True
        paid.come_to({"p": best})
        assert ending.drawn(60) == drawn


def test_a_test_goes_before_controls_that_a_search_has_left_no_room_for() -> None:
    """As one that is played back may: 45 calls are enough for both prompts on 20 examples, and not for four."""
    with tg.budget(calls=20_000):
        ending = Ending(seed=60, prompts=1, tests=20, controls=2)
        ending.learn(llm.Usage(calls=24), 24)
        assert (ending.controls, ending.tests) == (2, 20)
        charge(llm.Usage(calls=455))
        assert ending.drawn(60) == 20


def test_a_reserve_is_of_the_budgets_around_it_only(chat: tg.nn.Module) -> None:
    """A budget made inside it is another matter; of nested reserves each keeps its part."""
    with tg.budget(calls=10), Reserve() as outer:
        outer.keep(Amount(calls=4))
        with tg.budget(calls=5), Reserve() as inner:
            inner.keep(Amount(calls=3))
            assert (outer.free.calls, inner.free.calls) == (10, 5)
            for _ in range(2):  # 3 of 10 and 2 of 5 are free
                reply(chat)
            with pytest.raises(BudgetExceeded, match="3 kept"):
                reply(chat)
            inner.keep(Amount())
            for _ in range(3):
                reply(chat)
        assert reply(chat) == "yes"
        with pytest.raises(BudgetExceeded, match="4 kept"):
            reply(chat)


def test_a_call_of_the_block_that_is_sent_after_it_cannot_have_what_is_kept() -> None:
    """It waited for a call under way to end, and is refused when that has used what it may."""
    asked, go = threading.Event(), threading.Event()

    async def answer(request: llm.Request) -> str:
        if "slow" in request.messages[-1].text:
            asked.set()
            while not go.is_set():
                await asyncio.sleep(0)
        return "yes"

    chat = tg.nn.ChatCompletion("{x}", model=tg.testing.FunctionModel(answer))
    for kept in (1, 0):
        asked.clear()
        go.clear()
        with tg.budget(calls=2) as b:
            with Reserve() as later:
                later.keep(Amount(calls=1))
                slow = chat(x="slow")
                assert asked.wait(10)
                waiting = chat(x="waiting")
            assert not waiting.done()
            later.keep(Amount(calls=kept))  # who waits may have what is no longer kept, without any call ending
            if kept:
                go.set()
                with pytest.raises(BudgetExceeded):
                    _ = waiting.data
            else:
                assert waiting.data == "yes"
                go.set()
            assert slow.data == "yes"
            assert b.remaining.calls == kept


def test_what_a_budget_ended_amid_its_validation_is_told_as_that() -> None:
    """A step stays that had won its race; what was never run is no lost answer, and no score is made of what was."""
    task = simulated_task(rules=4, seed=3, train=24, val=60, test=20)
    program = task.program()
    with tg.use_models(forward=task.model), tg.budget(calls=116):
        trainer = tg.Trainer(max_steps=4, batch_size=8)
        optimizer = optim.TGD(program.parameters())
        result = trainer.fit(program, task.loss, optimizer, task.train, task.val, task.test)
    (step,) = result.steps
    assert (result.status, step.kept, result.compared_on) == ("budget", True, "val")
    left_out = len(result.best_val.not_run)
    assert 0 < left_out == result.best_val.unanswered == 60 - result.comparison.n
    assert (result.best_val.failures, result.comparison.lost) == ({}, 0)
    assert step.best_val == step.val_mean < result.best_val.mean  # those run first are not like the others
    said = " ".join(report.render(result, width=80).split())
    assert f"{60 - left_out} of 60 examples" in said
    assert f"best prompt, validation: {left_out} of 60 examples were not run with it. Had they scored lowest" in said
    assert "answers were lost" not in said
