"""An evaluation beside what the same examples gave before: only what is the same is compared, and it says with what."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from textgrad_engine.llm.ids import digest
from textgrad_engine.report.earlier import earlier_as_json, earlier_of, measured, named_beside, worse_than_the_run
from textgrad_engine.train import Evaluation, TrainResult, compare

IDS = tuple(f"e{number}" for number in range(20))
OWN = {"models": {"forward": "small"}, "base_url": None}


def scored(*scores: float | None, ids: tuple[str, ...] = IDS, **fields: Any) -> Evaluation:
    return Evaluation(ids[: len(scores)], scores, ("x",) * len(scores), {}, **fields)


LOW, HIGH, MIDDLE = scored(*[0.0] * 16, *[1.0] * 4), scored(*[0.0] * 2, *[1.0] * 18), scored(*[1.0] * 10, *[0.0] * 10)


def about(**changes: Any) -> dict[str, Any]:
    said = {"digest": "data", "split": None, "prompt": "best", "models": {"forward": "small"}, "base_url": None}
    return {**said, **changes}


def entry(evaluation: Evaluation | None, text: Any = "", **changes: Any) -> dict[str, Any]:
    """A line of ``evals.jsonl``, as it is read back from there."""
    said = {"event": "EvaluationEnded", "status": "finished", "text": digest(text)[:16], "time": "2026-11-27T08:00:00Z"}
    line: dict[str, Any] = json.loads(json.dumps({**about(), **said, **measured(evaluation), **changes}))
    return line


@pytest.fixture
def told(run_of: Any, result: TrainResult) -> Any:
    """What is told of an evaluation, by the lines of ``evals.jsonl``, what the run measured, and its config."""

    def make(
        *evals: dict[str, Any], now: Evaluation = HIGH, config: Any = None, tested: Any = (None, None), **asked: Any
    ) -> Any:
        found = replace(result, best_test=tested[0], seed_test=tested[1])
        run = run_of(found, evals=evals, config={"config": config or {"metric": {"name": "exact_match"}}})
        return earlier_of(run, about(**asked), now, OWN)

    return make


def test_nothing_was_measured_before(told: Any) -> None:
    """Nothing is said, of other examples neither."""
    assert told() == ()
    assert told(entry(LOW, digest="other")) == ()


@pytest.mark.parametrize(
    "line",
    [
        entry(LOW, status="budget"),
        entry(LOW, status="interrupted"),
        {**entry(LOW), "event": "EvaluationStarted", "status": None},
        entry(None, mean=0.2),
        entry(scored(*[1.0] * 19)),
        entry(scored(*[None] * 20)),
    ],
    ids=["budget", "interrupted", "begun", "of a version that kept no scores", "of fewer examples", "unanswered"],
)
def test_what_says_nothing_about_all_examples_is_left_out(told: Any, line: dict[str, Any]) -> None:
    """An evaluation that was ended early, killed, or of which no scores are on record."""
    assert told(line) == ()


@pytest.mark.parametrize(
    "damage",
    [
        {"scores": ["1"] * 20},
        {"scores": [[1.0]] * 19 + [1.0]},
        {"scores": [math.nan] * 20},
        {"models": "small"},
        {"models": {"forward": 3}},
        {"prompt": None},
        {"time": 7},
        {"base_url": ["x"]},
    ],
)
def test_what_was_written_by_others_is_left_out(told: Any, damage: dict[str, Any]) -> None:
    """It ends no evaluation that was paid for."""
    assert told({**entry(LOW), **damage}) == ()


def test_scores_are_compared_pair_by_pair(told: Any) -> None:
    """As in `compare`, the evaluation of now being what is better or worse."""
    (found,) = told(entry(LOW, models={"forward": "large"}, base_url="http://localhost/v1"))
    assert found.comparison == compare(LOW, HIGH)
    assert (found.comparison.verdict, found.mean) == ("better", LOW.mean)
    assert (found.models, found.base_url, found.time) == (
        {"forward": "large"},
        "http://localhost/v1",
        "2026-11-27T08:00:00Z",
    )


def test_what_changed_is_known_example_by_example(told: Any) -> None:
    """Of what is compared; scores of another judge say nothing of an example either."""
    (found,) = told(entry(scored(1.0, 0.0, None, 1.0)), now=scored(0.0, 0.0, 1.0, 1.0))
    assert [each.id for each in found.changed.worse] == ["e0"]
    assert [each.id for each in found.changed.lost_before] == ["e2"]
    judged = {"metric": {"name": "judge", "instructions": "Is it kind?"}}
    (found,) = told(entry(LOW, models={"forward": "small", "judge": "other"}), config=judged)
    assert (found.comparison, found.changed) == (None, None)


def test_examples_are_named_beside_the_best_prompt_in_the_run_else_beside_the_last_evaluation(told: Any) -> None:
    """Else beside nothing: each further row would have lines of its own."""
    lines = [entry(LOW), entry(MIDDLE, models={"forward": "large"}, time="2026-11-28T08:00:00Z")]
    assert named_beside(told(*lines, tested=(MIDDLE, LOW), split="test")).prompt == "best"
    last = named_beside(told(*lines))
    assert last is not None
    assert last.time == "2026-11-28T08:00:00Z"
    assert named_beside(told()) is None


def test_answers_that_were_missing_stay_missing(told: Any) -> None:
    """They are no wrong answers."""
    before = scored(None, *[1.0] * 19)
    (found,) = told(entry(before))
    assert found.comparison == compare(before, HIGH)
    assert found.comparison.n == 19


def test_samples_of_repeats_are_read_back(told: Any) -> None:
    """The score of an example is the mean of those that were answered."""
    samples = tuple((1.0, None, 0.0) if number < 10 else (1.0, 1.0, 0.0) for number in range(20))
    before = scored(*[0.5] * 10, *[2 / 3] * 10, samples=samples)
    (found,) = told(entry(before))
    assert found.comparison == compare(before, HIGH)
    assert found.comparison.bounds is not None


def test_clusters_are_those_of_now(told: Any) -> None:
    """Whatever those of before were."""
    clusters = tuple(str(number // 2) for number in range(20))
    now = replace(HIGH, clusters=clusters)
    other = replace(LOW, clusters=tuple(str(number % 5) for number in range(20)))
    in_run, since = told(entry(other), now=now, tested=(other, None), split="test")
    assert in_run.comparison == since.comparison == compare(LOW, now)
    assert since.comparison.clusters == 10


def test_of_equal_settings_it_is_the_last(told: Any) -> None:
    """In the order in which they ended."""
    lines = [
        entry(LOW, time="1"),
        entry(LOW, models={"forward": "large"}, time="2"),
        entry(MIDDLE, time="3"),
        entry(LOW, prompt="seed", time="4"),
        entry(LOW, "another text", time="5"),
    ]
    assert [each.time for each in told(*lines)] == ["2", "3", "4", "5"]


def test_a_role_that_the_same_model_has_anyway_makes_no_other_setting(told: Any) -> None:
    """``--model small --judge small`` is ``--model small``."""
    same, other = ({"forward": "small", "judge": name} for name in ("small", "large"))
    found = told(entry(LOW), entry(MIDDLE, models=same), entry(MIDDLE, models=other))
    assert [each.models for each in found] == [same, other]


def test_many_are_cut(told: Any) -> None:
    """To the last six, besides the run's own."""
    lines = [entry(LOW, models={"forward": f"model-{number}"}) for number in range(9)]
    found = told(*lines, tested=(MIDDLE, LOW), split="test")
    assert [each.models["forward"] for each in found] == ["small", "small", *(f"model-{n}" for n in range(3, 9))]


def test_the_run_itself_has_measured_its_test_split(told: Any) -> None:
    """With the best and the seed texts; what chose them is no measure of them."""
    best, seed = told(tested=(MIDDLE, LOW), split="test")
    assert [(each.prompt, each.current, each.time) for each in (best, seed)] == [
        ("best", True, None),
        ("seed", True, None),
    ]
    assert {"models": best.models, "base_url": best.base_url} == OWN
    assert best.comparison == compare(MIDDLE, HIGH)
    assert seed.comparison == compare(LOW, HIGH)
    assert told(tested=(MIDDLE, LOW), split="val") == ()
    assert told(tested=(None, None), split="test") == ()


def test_of_a_part_of_the_test_split_only_that_is_compared(told: Any) -> None:
    """A large one is tested in part, in an order of its own."""
    drawn = scored(0.0, 1.0, 0.0, ids=("e7", "e3", "e0"))
    (found,) = told(tested=(drawn, None), split="test")
    assert (found.comparison.n, found.comparison.difference) == (3, pytest.approx(1 / 3))
    assert told(tested=(scored(1.0, ids=("elsewhere",)), None), split="test") == ()


def test_a_run_that_kept_its_seed_text_has_one_prompt(run_of: Any, result: TrainResult) -> None:
    """It is not told of twice."""
    run = run_of(replace(result, best=result.seed, best_test=LOW, seed_test=LOW), config={"config": {}})
    (found,) = earlier_of(run, about(split="test"), HIGH, OWN)
    assert found.prompt == "seed"


def test_where_no_example_has_a_score_in_both_nothing_is_called_no_worse(run_of: Any, result: TrainResult) -> None:
    """Not even by what the seed text scored; a run that kept its seed text has no other."""
    now = scored(*[None] * 10, *[1.0] * 10)
    before = scored(*[1.0] * 10)
    run = run_of(replace(result, best_test=before, seed_test=HIGH), config={"config": {}})
    said = worse_than_the_run(run, earlier_of(run, about(split="test"), now, OWN))
    assert said.endswith("and of the best prompt in the run, so nothing shows that it is not worse")
    assert worse_than_the_run(run, earlier_of(run, about(split="test"), HIGH, OWN)) == ""
    run = run_of(replace(result, best=result.seed, best_test=before, seed_test=before), config={"config": {}})
    assert "of the seed prompt in the run" in worse_than_the_run(run, earlier_of(run, about(split="test"), now, OWN))
    assert worse_than_the_run(run, earlier_of(run, about(split="test"), HIGH, OWN)) == ""


def test_where_the_run_lost_answers_of_now_the_others_alone_do_not_show_what_is_worse(
    run_of: Any, result: TrainResult
) -> None:
    """No verdict then, and the check does not pass, as what was lost may have been right or wrong."""
    before, now = scored(*[1.0] * 12, *[None] * 8), scored(*[0.0] * 9, *[1.0] * 11)
    run = run_of(replace(result, best_test=before, seed_test=None), config={"config": {}})
    (found,) = earlier_of(run, about(split="test"), now, OWN)
    assert found.comparison is not None
    assert (found.comparison.verdict, found.comparison.lost_before) == ("not shown", 8)
    said = worse_than_the_run(run, [found])
    assert said.startswith("on the 12 examples with a score in both it is worse than the best prompt in the run, and")
    assert "answers were lost on 8 examples that are here, so nothing shows that it is not worse" in said


def test_texts_that_are_others_now_are_told(told: Any, result: TrainResult) -> None:
    """`resume` may have found better ones, and `shrink` shorter ones; it may also be gone."""
    lines = [entry(LOW, result.best), entry(LOW, {"system": "before"}), entry(LOW, result.best, prompt="shrunk")]
    assert [each.current for each in told(*lines)] == [True, False, False]


@pytest.mark.parametrize("metric", [{"name": "judge"}, [{"name": "exact_match"}, {"name": "judge"}]])
def test_scores_of_another_judge_are_not_compared(told: Any, metric: Any) -> None:
    """They mean something else; who judges is the forward model where nobody else is named."""
    lines = [
        entry(LOW, models={"forward": "large"}),
        entry(LOW, models={"forward": "large", "judge": "small"}),
        entry(LOW, base_url="http://localhost/v1"),
    ]
    found = told(*lines, config={"metric": metric}, tested=(MIDDLE, None), split="test")
    assert [each.comparison is not None for each in found] == [True, False, True, False]
    assert [each.comparison is not None for each in told(*lines)] == [True, True, True]


def test_it_is_plain_json(told: Any) -> None:
    """Infinite numbers, as of one example without a scale, are null."""
    (found,) = earlier_as_json(told(entry(scored(7.0)), now=scored(9.0)))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["comparison"]["interval"] == [None, None]
