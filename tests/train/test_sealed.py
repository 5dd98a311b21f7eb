"""The test set: no model sees it while anything is left to choose, and each opening is counted."""

from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine.errors import BudgetExceeded
from textgrad_engine.llm import budget
from textgrad_engine.train.run import Run
from textgrad_engine.train.sealed import SealedTest
from textgrad_engine.train.search import SearchRun
from textgrad_engine.train.step import StepRun


def test_it_cannot_be_opened_while_training_goes_on() -> None:
    """The rows are not to be had, however one asks; how many there are may be known."""
    sealed = SealedTest([{"a": 1}, {"a": 2}])
    assert len(sealed) == 2
    with pytest.raises(RuntimeError, match="sealed until training is over"):
        sealed.open()
    assert sealed.openings == 0
    assert "a" not in repr(sealed).removeprefix("SealedTest(2 examples")


def test_each_opening_is_counted() -> None:
    """Two looks are not one."""
    sealed = SealedTest([{"a": 1}])
    sealed.end_training()
    assert sealed.open() == sealed.open() == [{"a": 1}]
    assert sealed.openings == 2


def test_a_run_has_no_other_way_to_its_test_set(world: Any, rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither kind of run holds the rows: evaluating on them in the middle of training fails before a call."""
    assert issubclass(SearchRun, Run)
    assert issubclass(StepRun, Run)
    here = world("SHOUT")
    step = StepRun.step

    def peeking(self: StepRun, *args: Any) -> bool:
        assert rows("lynx")[0] not in [value for value in vars(self).values() if isinstance(value, list)]
        assert isinstance(self.test, SealedTest)
        self.score_texts("test", self.test.open(), 0)
        return step(self, *args)

    monkeypatch.setattr(StepRun, "step", peeking)
    with pytest.raises(RuntimeError, match="sealed"):
        here.fit(rows("ant", "bee"), rows("cat", "dog"), rows("lynx"))
    assert here.asked("forward", "lynx") == 0


def test_no_critic_and_no_optimizer_sees_a_test_example(world: Any, rows: Any) -> None:
    """The last requests of a run are the only ones about it, and they are forward ones."""
    here = world("HALF", "SHOUT")
    train, val = rows("ant", "bee", "cat", "dog"), rows("eel", "fox", "gnu", "hen", "ibis", "jay", "kiwi")
    result = here.fit(train, val, rows("lynx"))
    assert result.openings == 1
    about = [n for n, request in enumerate(here.model.requests) if "lynx" in str(request).lower()]
    assert about
    last = max(n for n, request in enumerate(here.model.requests) if request.purpose != "forward")
    assert min(about) > last


def test_without_a_test_set_nothing_is_opened(world: Any, rows: Any) -> None:
    """Zero, not one."""
    assert world().fit(rows("ant", "bee"), rows("cat")).openings == 0


def test_a_run_that_ends_while_it_tests_has_opened_it(world: Any, rows: Any) -> None:
    """The answers were seen, if not all of them; one that ends before has not."""
    here = world()
    with budget(calls=5):
        assert here.fit(rows("ant", "bee"), rows("cat"), rows("eel", "fox", "gnu")).status == "budget"
    seen = here.fit(rows("ant"), rows("cat"))
    assert seen.openings == 0
    here = world()

    def stop(request: Any) -> None:
        if request.messages[-1].text == "lynx":
            raise BudgetExceeded("no money left")

    here.before = stop
    result = here.fit(rows("ant", "bee"), rows("cat"), rows("kiwi", "lynx"))
    assert (result.status, result.best_test, result.openings) == ("budget", None, 1)
