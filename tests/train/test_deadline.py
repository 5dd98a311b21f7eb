"""`Trainer(max_minutes=)`: no step is begun that would have the end come too late."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.llm import Meter, Model, Request, resolve
from textgrad_engine.store.resume import Earlier
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import deadline
from textgrad_engine.train.deadline import Deadline

ROWS = [{"id": f"w{n}", "word": f"w{n}", "target": f"W{n}"} for n in range(60)]


class Clock:
    """A clock that goes on by so many seconds with each answer of a model, and each time it is looked at.

    As any of its kind, it does not count from when a run began.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.answer = 0.0
        self.look = 0.0

    def monotonic(self) -> float:
        self.now += self.look
        return 50_000.0 + self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(deadline, "time", found)
    return found


def sorter(clock: Clock) -> FunctionModel:
    """Knows a word in capitals where the prompt says so; asks for the next rule that is missing."""

    def answer(request: Request) -> Any:
        clock.now += clock.answer
        if request.purpose == "backward":
            return feedback_for(request, "Say how to write it.")
        if request.purpose == "optimizer":
            rule = f"Write in capitals {request.messages[-1].text.count('in capitals') + 1}."
            edit = {"op": "add", "line": 1, "text": rule, "reason": "asked for", "feedback": [1]}
            return {"edits": [edit]}
        word = request.messages[-1].text
        known = request.messages[0].text.count("in capitals")
        return word.upper() if int(word[1:]) % 10 < 2 * known else word

    return FunctionModel(answer)


def fit(clock: Clock, optimizer: Any = optim.TGD, *, model: Model | None = None, **settings: Any) -> tg.TrainResult:
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    trainer = tg.Trainer(**{"max_epochs": 9, "batch_size": 20, **settings})
    with tg.use_models(forward=model or sorter(clock)):
        return trainer.fit(program, nn.ExactMatch(), optimizer(program.parameters()), ROWS[:20], ROWS[20:40], ROWS[40:])


@pytest.mark.parametrize("optimizer", [optim.TGD, optim.PatchSearch])
def test_the_search_ends_in_time_and_the_test_set_tells_what_it_is_worth(clock: Clock, optimizer: Any) -> None:
    """A run of so many steps, in a little less than its time; without a limit it goes on."""
    clock.answer = 1.0
    free = fit(clock, optimizer)
    whole, clock.now = clock.now, 0.0
    result = fit(clock, optimizer, max_minutes=whole / 60 / 2)
    assert 0 < len(result.steps) < len(free.steps)
    assert result.status == "finished"
    assert result.best_test is not None
    assert "its time of" in result.idle
    assert f"after {len(result.steps)} step" in str(result)
    if optimizer is optim.TGD:  # of a search proposals are under way that nobody can foresee
        assert clock.now <= whole / 2


def test_what_the_end_takes_is_kept() -> None:
    """As long as the examples of the first validation took, one after the other; a step as long as those so far."""
    limit = Deadline(1.0, None)
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deadline, "time", clock)
        limit.begin()
        clock.now = 10.0
        limit.learn(20, Meter())  # half a second each
        assert not limit.is_over(0, 90)  # 10 + 0.5 + 45
        assert limit.is_over(0, 100)
        clock.now = 30.0
        assert not limit.is_over(4, 40)  # 30 + 5 + 20
        assert limit.is_over(1, 40)  # 30 + 20 + 20
    assert limit.in_words.startswith("the search ended after 1 step, as its time of 1 minute was over")


def test_a_validation_that_a_cache_answered_does_not_make_the_end_free(clock: Clock, tmp_path: Path) -> None:
    """The steps tell how long a call takes."""
    clock.answer = 1.0
    clerk: Any = sorter(clock)
    clerk.cache_key = "sorter"
    model = resolve(clerk, cache=tmp_path)
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    with tg.use_models(forward=model):
        tg.evaluate(program, ROWS[20:40], nn.ExactMatch())
    paid, clock.now = clock.now, 0.0
    result = fit(clock, model=model, max_minutes=2.5)
    assert paid == 20
    assert result.idle.startswith("the search ended after 1 step")  # a second one would end after 166 s with its test
    assert result.best_test is not None
    assert clock.now <= 150


def test_after_a_cache_answered_an_example_takes_what_the_calls_of_the_steps_took() -> None:
    """As many of them as the kept answers to an example."""
    limit, clock = Deadline(1.0, None), Clock()
    used: Any = SimpleNamespace(total=SimpleNamespace(calls=0), cached=40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deadline, "time", clock)
        limit.begin()
        clock.now = 1.0
        limit.learn(20, used)
        clock.now, used.total.calls = 21.0, 20  # two seconds for the two calls of each
        assert not limit.is_over(2, 10)  # 21 + 10 + 20
        assert limit.is_over(1, 10)  # 21 + 20 + 20


def test_without_a_limit_it_is_never_over(clock: Clock) -> None:
    """However late it is."""
    limit = Deadline(None, None)
    limit.begin()
    limit.learn(1, Meter())
    clock.now = 1e9
    assert not limit.is_over(0, 1)
    assert limit.in_words == ""


@pytest.mark.parametrize("optimizer", [optim.TGD, optim.PatchSearch])
def test_a_finished_run_is_given_again_however_fast_it_is_played_back(
    clock: Clock, optimizer: Any, tmp_path: Path
) -> None:
    """It ends after as many steps, also where the limit is another one by now, or none."""
    clock.answer = 1.0
    result = fit(clock, optimizer, max_minutes=4, run_dir=tmp_path / "run")
    assert "its time of" in result.idle
    clock.answer = 0.0
    for limit in ({"max_minutes": 4}, {"max_minutes": 0.1}, {}):
        again = fit(clock, optimizer, run_dir=tmp_path / "run", resume=True, **limit)
        assert (again.best, len(again.steps), again.idle) == (result.best, len(result.steps), result.idle)


def test_a_finished_run_that_had_no_limit_is_given_again_whatever_the_limit_is_now(
    clock: Clock, tmp_path: Path
) -> None:
    """However long it takes to play it back."""
    result = fit(clock, run_dir=tmp_path / "run")
    clock.look = 3600.0
    again = fit(clock, run_dir=tmp_path / "run", resume=True, max_minutes=0.1)
    assert (again.best, len(again.steps), again.idle) == (result.best, len(result.steps), result.idle)


@pytest.mark.parametrize("epochs", [1, 9])
def test_a_run_that_had_come_to_its_end_was_not_ended_by_its_time(clock: Clock, epochs: int) -> None:
    """Its epochs were over, or all was right; a further step would have been too late, and none was to come."""
    clock.answer = 1.0
    free = fit(clock, max_epochs=epochs)
    whole, clock.now = clock.now, 0.0
    result = fit(clock, max_epochs=epochs, max_minutes=(whole - 10) / 60 if epochs == 1 else (whole + 20) / 60)
    assert (len(result.steps), result.idle) == (len(free.steps), free.idle)


def test_what_the_first_validation_took_is_on_record(clock: Clock, tmp_path: Path) -> None:
    """To play it back takes no time, and the test set does; of several sittings it is that which paid for it."""
    fit(clock, run_dir=tmp_path / "run", max_steps=1)
    file = tmp_path / "run" / "events.jsonl"
    events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for event in events:
        if event.get("number") == 1 and "time" in event:
            event["time"] = (
                "2026-01-01T00:00:10.000Z" if event["event"] == "PhaseStarted" else "2026-01-01T00:01:50.000Z"
            )
    again = [{**each, "time": "2026-01-02T00:00:00.000Z"} for each in events if each["event"] != "RunEnded"]
    for sittings in ([*events, *again], [*again, *events]):
        (tmp_path / "run" / "result.json").unlink(missing_ok=True)
        file.write_text("".join(json.dumps(each) + "\n" for each in sittings), encoding="utf-8")
        limit = Deadline(1.0, Earlier(tmp_path / "run"))
        limit.learn(20, Meter())  # five seconds each
        assert not limit.is_over(0, 10)
        assert limit.is_over(0, 12)


def test_a_run_that_was_killed_while_it_tested_searches_on_with_more_time_alone(clock: Clock, tmp_path: Path) -> None:
    """With the same limit its search is over, as it was told to be; nothing that is on record is asked again."""
    clock.answer = 1.0
    result = fit(clock, max_minutes=4, run_dir=tmp_path / "run")
    events = (tmp_path / "run" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    up = next(number for number, line in enumerate(events) if json.loads(line)["event"] == "TimeIsUp")
    for minutes, goes_on in ((4, False), (40, True)):
        (tmp_path / "run" / "result.json").unlink()
        (tmp_path / "run" / "events.jsonl").write_text("\n".join(events[: up + 1]) + "\n", encoding="utf-8")
        clock.answer = 0.0
        again = fit(clock, max_minutes=minutes, run_dir=tmp_path / "run", resume=True)
        assert (len(again.steps) > len(result.steps)) is goes_on


def test_who_had_no_time_for_a_step_is_not_told_that_nothing_better_could_be_shown(clock: Clock) -> None:
    """The verdict tells what the run knows: nothing was tried."""
    clock.answer = 1.0
    result = fit(clock, max_minutes=1e-9)
    assert (result.steps, "after 0 steps" in result.idle) == ((), True)
    assert "the best texts are the seed texts: the run ended before its first step" in str(result)


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf"), "5", True])
def test_a_limit_is_a_number_of_minutes(minutes: Any) -> None:
    """More than none, and not without end, for which it is left out."""
    with pytest.raises((TypeError, ValueError), match="max_minutes"):
        tg.Trainer(max_minutes=minutes)
