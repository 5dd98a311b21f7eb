"""Overlap between the sets of a run: told before anything is paid for, in the log, the events and the result."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from textgrad_engine import nn
from textgrad_engine.train.events import RunStarted
from textgrad_engine.train.splits import warn_of_overlaps


def test_an_example_in_two_sets_is_told(world: Any, rows: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A warning, the first event, and the result say which; the run goes on, as the user may know why."""
    here = world()
    listener = here.listener()
    test = [{"id": "t1", "word": " ANT", "target": "ANT"}, *rows("kiwi")]
    with caplog.at_level(logging.WARNING, logger="textgrad_engine"):
        result = here.fit(rows("ant", "bee"), rows("cat", "dog"), test, callbacks=[listener])
    said = "1 of 2 test examples are in train, too (1 exactly): test example 't1' is train example 'ant'"
    assert result.overlaps == (said,)
    assert listener.of(RunStarted)[0].overlaps == (said,)
    assert [record.getMessage() for record in caplog.records if record.name == "textgrad_engine.train.splits"] == [said]


def test_nothing_is_said_where_nothing_overlaps(world: Any, rows: Any, caplog: pytest.LogCaptureFixture) -> None:
    """No warning that is always there."""
    with caplog.at_level(logging.WARNING, logger="textgrad_engine"):
        assert world().fit(rows("ant", "bee"), rows("cat"), rows("eel")).overlaps == ()
    assert "too (" not in caplog.text


def test_only_what_the_program_reads_is_compared() -> None:
    """A label or a date that two examples share makes no overlap, and one that differs hides none."""
    program = nn.ChatCompletion("{ticket}")
    train = [{"ticket": "no signal", "queue": "a"}]
    assert warn_of_overlaps(program, train, [{"ticket": "wrong bill", "queue": "a"}], None) == ()
    (said,) = warn_of_overlaps(program, train, [{"ticket": "No signal", "queue": "b"}], None)
    assert said.startswith("1 of 1 val examples are in train, too (1 exactly)")


def test_a_program_without_inputs_of_its_own_has_nothing_to_compare() -> None:
    """No sentence about every pair of empty texts."""
    assert warn_of_overlaps(lambda: "always this", [{"a": 1}], [{"a": 1}], [{"a": 1}]) == ()
