"""Overlap between the sets of a run: told before anything is paid for, in the log, the events and the result."""

from __future__ import annotations

import logging
import random
from typing import Any

import pytest

from textgrad_engine import nn, use_models
from textgrad_engine.train import Evaluation, compare, evaluate
from textgrad_engine.train.events import RunStarted
from textgrad_engine.train.splits import clusters_of_equals, warn_of_overlaps


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


@pytest.mark.parametrize(("test", "where"), [(None, "only other examples show it"), ("eel", "the test set shows it")])
def test_where_the_training_examples_validate_the_result_says_so(
    world: Any, rows: Any, test: str | None, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The report called them the validation set, as if others had chosen the prompt."""
    train = rows("ant", "bee")
    with caplog.at_level(logging.WARNING, logger="textgrad_engine"):
        (said,) = world().fit(train, train, rows(test) if test else None).overlaps
    assert said.startswith("the training examples validate, too")
    assert said.endswith(where)
    assert not caplog.records, "it is on purpose"


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


def asked(times: int) -> list[dict[str, Any]]:
    """Each question so many times, the first ones first."""
    return [{"word": f"number {n}", "target": "yes"} for _ in range(times) for n in range(24)]


def test_equal_examples_of_a_set_are_named_and_count_as_one() -> None:
    """Case and white space aside. Copies for training are the user's matter: oversampling a rare class is usual."""
    program = nn.ChatCompletion("{word}")
    train = [{"word": "seed", "target": "yes"}] * 5
    test = [*asked(2), {"word": " Number  3", "target": "no"}]
    val = [{"word": "other", "target": "yes"}]
    assert warn_of_overlaps(program, train, val, test) == (
        "25 of 49 test examples have the same inputs as another one there, and count as one: '24' as '0'",
    )
    assert warn_of_overlaps(program, train, val, asked(1)) == ()


def test_a_few_equal_examples_are_named_and_stand_for_themselves() -> None:
    """One in 24 does little harm, and clusters would cost the exact test."""
    program = nn.ChatCompletion("{word}")
    test = [*asked(1), {"word": "number 3", "target": "yes"}]
    assert warn_of_overlaps(program, [{"word": "a"}], [{"word": "b"}], test) == (
        "1 of 25 test examples have the same inputs as another one there: '24' as '3'",
    )
    assert clusters_of_equals(program, test) == ()
    assert clusters_of_equals(program, [{"word": "a"}] * 5) == ()  # one cluster has no interval
    assert clusters_of_equals(lambda **fields: None, asked(2)) == ()  # nobody knows what it reads


def test_a_question_asked_five_times_makes_nobody_better() -> None:
    """24 questions, two programs that are right on half of them by chance: taken for 120 it is one run in six."""
    found = {True: 0, False: 0}
    program = nn.ChatCompletion("{word}")
    groups = clusters_of_equals(program, asked(5))
    names = tuple(map(str, range(120)))
    for seed in range(100):
        drawn = random.Random(seed)
        old, new = ([float(drawn.random() < 0.5) for _ in range(24)] * 5 for _ in range(2))
        for clustered in found:
            before, after = (
                Evaluation(names, tuple(scores), (None,) * 120, {}, clusters=groups if clustered else ())
                for scores in (old, new)
            )
            found[clustered] += compare(before, after).verdict != "not shown"
    assert found[True] <= 6 < 25 < found[False]


def test_one_question_that_is_a_tenth_of_the_examples_shows_no_more_than_one_does() -> None:
    """Ten of a hundred are one question, and it alone got better: one change of 91, and p = 0.002 if taken for ten."""
    program, questions = nn.ChatCompletion("{word}"), [*range(91), *[0] * 9]
    groups = clusters_of_equals(program, [{"word": f"number {n}"} for n in questions])
    names, old, new = tuple(map(str, range(100))), (0.0,) * 100, tuple(float(n == 0) for n in questions)
    verdicts = [
        compare(*(Evaluation(names, scores, scores, {}, clusters=clusters) for scores in (old, new))).verdict
        for clusters in ((), groups)
    ]
    assert verdicts == ["better", "not shown"]
    assert clusters_of_equals(program, [{"word": f"number {n}"} for n in [*range(90), *range(10)]]) == ()  # pairs
    assert len(set(clusters_of_equals(program, [{"word": f"number {n}"} for n in [*range(89), *range(11)]]))) == 89


def test_an_evaluation_and_a_run_take_equal_examples_for_one(world: Any, rows: Any) -> None:
    """The interval is that of the questions there are, and is told with their number."""
    here = world("SHOUT")
    val = [{**row, "id": f"{n}{row['id']}"} for n in range(2) for row in rows("ant", "bee", "cat")]
    result = here.fit(rows("dog", "eel"), val, [{**row, "id": f"t{row['id']}"} for row in val])
    assert result.seed_val.clusters == result.best_test.clusters[:0] + ("0ant", "0bee", "0cat") * 2
    assert result.comparison.clusters == 3
    with use_models(forward=here.model):
        assert len(set(evaluate(here.program, val, nn.ExactMatch()).clusters)) == 3
        by_hand = evaluate(here.program, [{**row, "page": row["id"]} for row in val], nn.ExactMatch(), clusters="page")
    assert len(set(by_hand.clusters)) == 6
