"""What two runs were measured on alike: nothing is compared that is not the same, and what is said says why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from textgrad_engine.report.pairing import pairing_of, same_conditions
from textgrad_engine.train import Evaluation, TrainResult, compare

IDS = tuple(f"e{number}" for number in range(20))


def scored(*scores: float | None, ids: tuple[str, ...] = IDS, **fields: Any) -> Evaluation:
    return Evaluation(ids[: len(scores)], scores, ("x",) * len(scores), {}, **fields)


def config(**changes: Any) -> dict[str, Any]:
    body = {
        "digests": {"test": "same", "val": "same"},
        "rows": {"test": " ".join(f"row{number}" for number in range(20))},
        "config": {
            "metric": {"name": "exact_match"},
            "data": {"target": "queue"},
            "models": {"forward": "small"},
            "program": {"user": "{ticket}"},
        },
    }
    return {**body, **changes}


def with_config(**sections: Any) -> dict[str, Any]:
    return config(config={**config()["config"], **sections})


LOW, HIGH = scored(*[0.0] * 16, *[1.0] * 4), scored(*[0.0] * 2, *[1.0] * 18)


@pytest.fixture
def pair(run_of: Any, result: TrainResult) -> Any:
    """Two runs by what their best texts scored on the test set, and their configs."""

    def make(first: Evaluation | None, second: Evaluation | None, one: Any = None, other: Any = None) -> Any:
        configs = [config() if each is None else each or None for each in (one, other)]
        found = [
            run_of(replace(result, best_test=test), name, config=its)
            for name, test, its in zip("ab", (first, second), configs)
        ]
        return pairing_of(found[0], found[1], "test")

    return make


def test_a_run_without_a_result_has_nothing_to_compare(run_of: Any, result: TrainResult) -> None:
    """The one that lacks it is named."""
    found = pairing_of(run_of(result, "a"), run_of(None, "b"), "test")
    assert (found.comparison, found.why) == (None, "B has no best prompt measured on test")
    assert found.changed is None


def test_untested_runs_are_named(pair: Any) -> None:
    """Both of them; and one where nothing was answered counts as not measured."""
    assert pair(None, None).why == "A and B have no best prompt measured on test"
    assert pair(scored(None, None), LOW).why == "A has no best prompt measured on test"


def test_a_folder_of_before_a_setting_has_it_not_set(pair: Any) -> None:
    """An empty table says the same as none, and so does one of nulls."""
    for empty in ({}, {"temperature": None, "extra": {}}):
        assert pair(LOW, HIGH, None, with_config(models={"forward": "small", "config": empty})).remarks == ()
    found = pair(LOW, HIGH, None, with_config(models={"forward": "small", "config": {"temperature": 1.0}}))
    assert "models.config is not the same" in found.remarks[0]


def test_the_same_examples_are_compared_pair_by_pair(pair: Any) -> None:
    """The second against the first."""
    found = pair(LOW, HIGH)
    assert found.why == ""
    assert found.remarks == ()
    assert found.comparison.verdict == "better"
    assert found.comparison.difference == pytest.approx(0.7)
    assert pair(HIGH, LOW).comparison.verdict == "worse"


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"metric": {"name": "judge", "instructions": "Is it kind?"}}, "metric.name and metric.instructions are"),
        ({"data": {"target": "team"}}, "data.target is"),
    ],
)
def test_scores_that_mean_other_things_are_not_compared(pair: Any, other: Any, named: str) -> None:
    """Another metric, another answer that is right."""
    found = pair(LOW, HIGH, None, with_config(**other))
    assert found.comparison is None
    assert found.why == f"their scores mean different things, as {named} not the same"


def test_other_code_behind_a_name_is_told(run_of: Any, result: TrainResult) -> None:
    """A metric that was rewritten gives other scores, and its name in the config is the same."""
    before = config(files={"config.toml": "1", "metric.py": "1", "gone.py": "1"})
    first, second = (
        run_of(result, name, config=its)
        for name, its in (("a", before), ("b", config(files={"config.toml": "2", "metric.py": "2"})))
    )
    found = pairing_of(first, second, "test")
    assert found.comparison is not None
    assert found.remarks == ("metric.py is other code in A than in B, so their scores may mean different things.",)
    assert not same_conditions(first, second)
    for kept in (before, config()):  # the same code, and a folder of before, of which nobody knows
        assert pairing_of(first, run_of(result, "c", config=kept), "test").remarks == ()
        assert same_conditions(first, run_of(result, "c", config=kept))


def test_judges_are_the_same_where_their_models_are(pair: Any) -> None:
    """A role that is not named falls back to the forward model."""
    judge = {"name": "judge", "instructions": "Is it kind?"}
    one = with_config(metric=judge)
    assert pair(LOW, HIGH, one, one).comparison is not None
    other = with_config(metric=judge, models={"forward": "large"})
    assert "models.judge is not the same" in pair(LOW, HIGH, one, other).why
    other = with_config(metric=judge, models={"forward": "large", "judge": "small"})
    found = pair(LOW, HIGH, one, other)
    assert found.comparison is not None
    assert any("models.forward is not the same" in remark for remark in found.remarks)
    other = with_config(metric=judge, prompts="my_prompts")  # what a judge is told is one of them
    assert "prompts is not the same" in pair(LOW, HIGH, one, other).why


def test_the_endpoint_that_counts_is_that_of_the_programs_model(pair: Any) -> None:
    """Where the critic is asked decides no answer, and who judges is another judge at another endpoint."""
    here, there = {"base_url": "http://here/v1"}, {"base_url": "http://there/v1"}
    critics = {"forward": "small", "backward": "large", **here}
    one, other = (with_config(models={**critics, "endpoints": {"large": each}}) for each in (here, there))
    assert pair(LOW, HIGH, one, other).remarks == ()
    same = with_config(models={"forward": "small", **there, "endpoints": {"small": {**here, "api": None}}})
    assert pair(LOW, HIGH, one, same).remarks == ()
    other = with_config(models={**critics, "endpoints": {"small": there}})
    assert "models.base_url is not the same" in pair(LOW, HIGH, one, other).remarks[0]
    judge = {"name": "judge", "instructions": "Is it kind?"}
    judges = {"forward": "small", "judge": "large", **here}
    one, other = (with_config(metric=judge, models={**judges, "endpoints": {"large": each}}) for each in (here, there))
    assert pair(LOW, HIGH, one, one).comparison is not None
    assert "models.judge is not the same" in pair(LOW, HIGH, one, other).why


def test_scales_that_differ_are_not_compared(run_of: Any, changed: Any) -> None:
    """From 1 to 5 and from 0 to 1."""
    five = scored(*[3.0] * 4, scale=(1.0, 5.0))
    first, second = run_of(changed(best_val=five, best_test=five), "a"), run_of(changed(), "b")
    assert pairing_of(first, second, "test").why == "their scores are on different scales"


def test_a_part_of_the_test_set_is_compared_by_its_examples(pair: Any) -> None:
    """Where the budget ended one of them early."""
    few = scored(*[0.0] * 10)
    found = pair(few, HIGH)
    assert found.comparison.n == 10
    assert found.remarks == (
        "They were measured on 10 and 20 examples, of which 10 are the same; only these count here.",
    )


def test_other_files_are_compared_where_their_rows_are_the_same(pair: Any) -> None:
    """Whatever their ids and order: the digests of the rows know."""
    rows = " ".join(f"row{number}" for number in (*range(19, 9, -1), *range(50, 60)))
    other = config(digests={"test": "other"}, rows={"test": rows})
    turned = scored(0.0, *[1.0] * 19, ids=tuple(f"z{number}" for number in range(20)))
    found = pair(LOW, turned, None, other)
    assert found.comparison.n == 10
    in_order = scored(*LOW.scores[10:]), scored(*[1.0] * 9, 0.0)
    assert found.comparison == compare(*in_order)  # six gain and the last one loses, if nothing is mixed up
    assert "of which 10 are the same" in found.remarks[0]
    assert [each.id for each in found.changed.better] == [f"e{number}" for number in range(10, 16)]
    assert [each.id for each in found.changed.worse] == ["e19"]  # by the ids of A, as the rows of B have others


def test_test_sets_without_a_common_example_are_not_compared(pair: Any) -> None:
    """Equal ids say nothing where the digests differ."""
    other = config(digests={"test": "other"}, rows={"test": " ".join(f"r{number}" for number in range(20))})
    assert pair(LOW, HIGH, None, other).why == "no example is in the test sets of both"
    other = config(digests={"test": "other"}, rows={})
    assert pair(LOW, HIGH, None, other).why == "their test sets differ, and which rows both have is not on record"


def test_rows_of_a_folder_of_before_are_known_by_the_digits_that_it_has(pair: Any) -> None:
    """Its digests are the first twelve of sixteen."""
    rows = [f"{number:012}abcd" for number in range(20)]
    now = config(digests={"test": "x"}, rows={"test": " ".join(rows)})
    before = config(digests={"test": "y"}, rows={"test": " ".join(row[:12] for row in rows[::-1])})
    found = pair(LOW, HIGH, now, before)
    assert found.comparison is not None
    assert found.comparison.n == 20
    other = config(digests={"test": "y"}, rows={"test": " ".join(f"{row[:12]}ffff" for row in rows)})
    assert pair(LOW, HIGH, now, other).why == "no example is in the test sets of both"


def test_equal_rows_are_paired_one_by_one(pair: Any) -> None:
    """A row that is there twice is there twice."""
    one = config(digests={"test": "x"}, rows={"test": "r r s"})
    other = config(digests={"test": "y"}, rows={"test": "s r"})
    found = pair(scored(1.0, 0.0, 1.0), scored(0.0, 1.0), one, other)
    assert found.comparison.n == 2
    assert found.comparison.difference == pytest.approx(-0.5)  # r: 1 -> 1, s: 1 -> 0


def test_runs_from_python_are_compared_by_ids_and_it_is_said(pair: Any) -> None:
    """They keep no digests; nobody knows whether e0 is the same ticket in both."""
    found = pair(LOW, HIGH, None, {})
    assert found.comparison.verdict == "better"
    assert found.remarks[0].startswith("The folder of B keeps no digest of its data: that the examples are the same")
    assert "B was started from Python" in found.remarks[1]
    other = scored(*HIGH.scores, ids=tuple(f"z{number}" for number in range(20)))
    found = pair(LOW, other, {}, {})
    assert (
        found.why == "the folders of A and B keep no digest of their data, and the examples of A and B have other ids"
    )


def test_clusters_that_differ_are_not_compared(pair: Any) -> None:
    """Two documents in one run and one in the other."""
    one, other = scored(0.0, 1.0, clusters=("a", "a")), scored(0.0, 1.0, clusters=("a", "b"))
    assert pair(one, other).why == "their examples come in other clusters"


def test_clusters_are_the_same_whatever_they_are_called(pair: Any) -> None:
    """Those of equal examples are named by a place in the data, which is another where a row stands before them."""
    one = config(digests={"test": "x"}, rows={"test": "r r s s"})
    other = config(digests={"test": "y"}, rows={"test": "q r r s s"})
    first = scored(0.0, 0.0, 0.0, 1.0, clusters=("0", "0", "2", "2"))
    found = pair(first, scored(1.0, 1.0, 0.0, 0.0, 1.0, clusters=("0", "1", "1", "3", "3")), one, other)
    assert (found.why, found.comparison.n, found.comparison.clusters) == ("", 4, 2)


def test_no_example_with_two_scores(pair: Any) -> None:
    """Each was answered where the other was not."""
    assert "no example has a score in both" in pair(scored(None, 1.0), scored(1.0, None)).why


@pytest.mark.parametrize(
    ("fields", "kept", "same"),
    [
        ({}, {}, True),
        ({}, with_config(models={"forward": "large"}), False),
        ({}, with_config(metric={"name": "judge"}), False),
        ({}, config(digests={"test": "other", "val": "same"}), False),
        ({}, config(digests={"test": "same", "val": "other"}), False),
        ({}, config(digests={"test": "same"}), False),
        ({"best_test": scored(1.0)}, {}, False),  # on a part of the examples
        ({"best_test": None}, config(digests={"test": "other", "val": "same"}), True),  # nothing was measured there
        ({}, None, False),  # run from Python
    ],
)
def test_luck_alone_tells_two_runs_apart_that_asked_the_same_of_the_same_examples(
    run_of: Any, result: TrainResult, fields: dict[str, Any], kept: Any, same: bool
) -> None:
    """As far as that is known: of anything else it would not be luck."""
    first = run_of(result, "a", config=config())
    second = run_of(replace(result, **fields), "b", config=None if kept is None else kept or config())
    assert same_conditions(first, second) is same_conditions(second, first) is same
    assert not same_conditions(first, run_of(None, "c", config=config()))
