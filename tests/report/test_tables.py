"""The report in words: honest, complete, 80 columns wide, and safe to print."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from textgrad_engine.llm import Usage
from textgrad_engine.optim import Evidence, Origin
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.report import as_json, one_line, render
from textgrad_engine.report.tables import render_unfinished
from textgrad_engine.train import Evaluation, TrainResult, compare
from textgrad_engine.train.events import Evaluated, ParameterChange
from textgrad_engine.train.standing import Standing

from .conftest import scored

WHOLE = """\
runs/tickets-1
Finished after 2 steps

               seed prompt            best prompt
  validation   0.400 [0.219, 0.613]   0.900 [0.699, 0.972]   20 examples
  test         0.400 [0.219, 0.613]   0.900 [0.699, 0.972]   20 examples
  verdict      better: +0.500 [+0.211, +0.698], p = 0.002, on test

  The validation set chose the best prompt out of 2 (seed prompt included), so
  its score there flatters it.
  The test set was opened once, at the end, for these two prompts, and it chose
  nothing.

               calls   tokens    cost         time
  forward         84    1,234   $0.25
  optimizer        2        0   $0.00
  all             86    1,234   $0.25   1 min 15 s

What changed in the prompt: 1 line added, 1 line removed, 2 lines as before

    Sort the mail.
  - Be brief.
      step 1: brevity hurts
      t3: It is too brief.
    Answer.
  + Gift cards go to account.
      step 1: nobody knew
      t9, t10: Say where gift cards go.

Not everything went well
  step 2: 1 example of the minibatch had no answer
  step 2: the proposal for system was dropped: the new text is empty
"""


def test_a_floor_that_is_not_reached_stands_beside_the_verdict(result: TrainResult) -> None:
    """Who reads "better" in a pipe, or in the one line of a quiet run, was told nothing of what fell behind it."""
    floors = (
        Standing("queue = 'billing'", 0.9, "val", 10, 0.7, 0.95),
        Standing("the metric 'safe'", 4, "val", 20, 3.5, 3.75),
        Standing("queue = 'billing'", 0.9, "test", 10, 0.7, 0.8),
        Standing("the metric 'safe'", 4, "test", 20, 3.5, 4.0),
    )
    missed = "floors not reached: the metric 'safe', 3.750 of 4 on validation; queue = 'billing', 0.800 of 0.9 on test"
    found = replace(result, floors=floors)
    for said in (one_line(found), str(found), " ".join(render(found).split())):
        assert missed in said
        assert said.index("better") < said.index(missed)
    assert [each["reached"] for each in as_json(found)["floors"]] == [True, False, False, True]
    kept = replace(found, best=found.seed)
    assert "not reached" not in one_line(kept) + str(kept)
    assert as_json(result)["floors"] == []


def test_one_line_tells_a_budget_that_is_spent_from_one_without_room(result: TrainResult) -> None:
    """Who raises it by what is left of it would be in the same place again."""
    spent = replace(result, status="budget")
    assert one_line(spent).startswith("budget spent; ")
    assert one_line(replace(spent, unspent="3 calls are left")).startswith("budget without room for a further call; ")


def test_one_line_says_of_how_many_examples_the_best_texts_have_a_score(result: TrainResult) -> None:
    """Races begin on what fails, so a budget that ended one left "val 0.400 -> 0.200" of texts that were better."""
    best = result.best_val
    assert best is not None
    part = replace(best, scores=(*best.scores[:5], *[None] * 15), not_run=best.ids[5:])
    found = replace(result, best_val=part)
    for said in (one_line(found), str(found)):
        assert "val 0.400 -> 0.600 (of 5 of 20 examples); test 0.400 -> 0.900;" in said


def test_one_line_says_by_how_many_examples_where_answers_are_missing(result: TrainResult) -> None:
    """Of a customer whose answers are all lost a nightly log said "better on test", and nothing else."""
    assert result.seed_test is not None
    assert "better on test (+0.500)" in one_line(result)
    assert "by 20" not in one_line(result)
    lost = replace(result.seed_test, scores=(*result.seed_test.scores[:15], *[None] * 5))
    found = replace(result, best_test=lost, comparison=replace(compare(result.seed_test, lost), verdict="better"))
    assert "better on test (+0.000) by 15 of 20 examples" in one_line(found)
    few = scored(*[1.0] * 3)
    assert "by 20" not in one_line(replace(result, seed_val=few, best_val=few)), "the test set has twenty"
    many = scored(*[1.0] * 30)
    assert " by " not in one_line(replace(result, seed_val=many, best_val=many))


def test_the_whole_report(result: TrainResult) -> None:
    """What people see, as it stands."""
    assert render(result, title="runs/tickets-1") == WHOLE


def test_who_gives_a_run_is_told_what_of_it_is_rendered(result: TrainResult) -> None:
    """As `store.read_run` gave it."""
    with pytest.raises(TypeError, match=r"got a value of type SimpleNamespace; give its \.result; an evaluation"):
        render(SimpleNamespace(result=result))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scores", "scale", "said"),
    [
        ((1.0, 1.0, 0.0), None, "fails 1 of 3 validation examples"),
        ((1.0, 0.0, 0.0), None, ""),
        ((4.0,), None, ""),
        ((5.0, 4.0, 5.0), (1.0, 5.0), "fails 1 of 3 validation examples"),
        ((1.0, 1.0, 1.0), (1.0, 5.0), ""),
    ],
)
def test_too_few_failures_to_win_on_are_named(
    result: TrainResult, changed: Any, scores: tuple[float, ...], scale: tuple[float, float] | None, said: str
) -> None:
    """With three examples nothing can be shown, and "no change did better" alone would blame the optimizer."""
    race = RaceRecord("no difference", ("a",), (0.0,), (0.0,), 0.5, 0.0)
    val = Evaluation(tuple("abc"[: len(scores)]), scores, ("",) * len(scores), {}, scale=scale)
    same = changed(best=result.seed, seed_val=val, best_val=val, steps=(replace(result.steps[0], race=race),))
    text = " ".join(render(same).split())
    assert ("better on 2 at least, so only a shorter text could be kept" in text) == bool(said)
    assert said in text
    assert "validation examples, and a change" not in render(changed(best=result.seed, seed_val=val, steps=()))


@pytest.mark.parametrize(
    ("scores", "scale", "said"),
    [((0.0, 60.0), None, True), ((0.0, 60.0), (0.0, 100.0), False), ((0.0, 1.0), None, False)],
)
def test_scores_whose_end_nobody_knows_are_named(
    changed: Any, scores: tuple[float, ...], scale: tuple[float, float] | None, said: bool
) -> None:
    """An interval from -23 to 79 of percents is no slip of ours; the metric has to say where they end."""
    val = Evaluation(("a", "b"), scores, ("", ""), {}, scale=scale)
    text = " ".join(render(changed(seed_val=val)).split())
    assert ("The loss names no scale, and scores are not from 0 to 1" in text) == said
    assert ("gives 1 or more count as right, and bring no feedback" in text) == said
    assert ("cannot allow for rare large falls that these examples lack, so a verdict may be luck" in text) == said


@pytest.mark.parametrize(
    ("seed", "after", "said"),
    [((0.0, 0.0), (0.0, 0.0), True), ((0.0, 0.0), (0.0, 0.5), False), ((0.0, 1.0), (0.0, 0.0), False)],
)
def test_scores_that_are_all_alike_are_named(
    result: TrainResult, changed: Any, seed: tuple[float, ...], after: tuple[float, ...], said: bool
) -> None:
    """An answer with two faults scores nothing until both are repaired: "no change did better" is then no news."""
    race = RaceRecord("no difference", ("a", "b"), seed, after, 0.5, 0.0)
    val = Evaluation(("a", "b"), seed, ("", ""), {})
    same = changed(best=result.seed, seed_val=val, best_val=val, steps=(replace(result.steps[0], race=race),))
    text = " ".join(render(same).split())
    assert ("Every validation example scored 0.000 with every text that was raced there" in text) == said
    assert "scored 0.000 with all" not in " ".join(render(changed(seed_val=val)).split())


def test_without_a_test_set_it_says_what_validation_is_worth(changed: Any) -> None:
    """A score on the set that chose the prompt is no proof, and is not called one."""
    text = render(changed(seed_test=None, best_test=None, compared_on="val"))
    assert "test         not measured           not measured" in text
    assert "on validation only" in text
    assert "which chose this prompt" in text
    assert "nobody knows how much of the gain is luck" in text


@pytest.mark.parametrize(
    ("best", "said"),
    [
        ({"system": "Sort.\nBe brief.", "user": "{ticket}"}, "What changed in system, user: nothing"),
        ({"system": "Sort.\nBe kind.", "user": "{ticket}"}, "What changed in user: nothing"),
    ],
)
def test_a_killed_run_says_which_texts_are_as_before(run_of: Any, best: dict[str, str], said: str) -> None:
    """As a finished one does: a diff of lines that are all as before would tell of none."""
    text = render_unfinished(run_of(None, seed={"system": "Sort.\nBe brief.", "user": "{ticket}"}, best=best))
    assert said in text
    assert text.count("What changed") == 1 + (best["system"] == "Sort.\nBe kind.")


def test_a_killed_run_says_of_a_step_that_nothing_was_changed(run_of: Any, result: TrainResult) -> None:
    """A change that was not raced, as no example of its minibatch had an answer, is none of these."""
    assert result.seed_val is not None
    dropped = result.steps[1]
    change = ParameterChange("system", "Sort.", "Sort it.")
    steps = (dropped, replace(dropped, step=3, changes=(change,)))
    first = Evaluated(1, "validate", 0, result.seed_val)
    run = run_of(None, seed={"system": "Sort."}, best={"system": "Sort."}, steps=steps, evaluations=(first,))
    told = {line.split()[0]: line for line in render_unfinished(run).splitlines() if line[:6].strip() in ("2", "3")}
    assert ("no change" in told["2"], "no change" in told["3"]) == (True, False)


def test_a_run_that_was_stopped_at_once(changed: Any) -> None:
    """Nothing was measured, and nothing is made up."""
    result = changed(
        status="interrupted", best=changed().seed, origins={"system": [None] * 3}, seed_val=None, best_val=None,
        seed_test=None, best_test=None, comparison=None, compared_on=None, steps=(), usage={},
    )  # fmt: skip
    text = render(result)
    assert "Interrupted before the first step; this is the result so far" in text
    assert text.count("not measured") >= 4
    assert "What changed in the prompt: nothing" in text
    assert as_json(result)["val"] == {"seed": None, "best": None}
    assert "verdict      not measured: the run ended before the seed prompt was scored" in text
    assert one_line(result) == "interrupted; nothing was measured"


def test_when_nothing_did_better(changed: Any) -> None:
    """The seed prompt is not compared with itself."""
    same = changed(
        best=changed().seed, best_test=changed().seed_test, comparison=compare(changed().seed_test, changed().seed_test)
    )
    assert "the best prompt is the seed prompt: no change did better" in render(same)
    assert as_json(same)["verdict"] is None
    assert "no change did better" in one_line(same)


def test_a_change_that_scored_higher_is_not_said_to_have_done_no_better(result: TrainResult, changed: Any) -> None:
    """The lines of the steps show its score, and too few examples may be all that was missing."""
    step = replace(result.steps[0], kept=False, val_mean=0.6, best_val=0.4)
    same = changed(best=result.seed, best_test=result.seed_test, steps=(step,))
    assert "the best prompt is the seed prompt: no change did clearly better" in render(same)
    assert "no change did clearly better" in one_line(same)


def test_a_run_that_ended_before_a_change_was_tried_does_not_blame_the_changes(
    result: TrainResult, changed: Any
) -> None:
    """And has no gap where no remarks are."""
    none = changed(status="interrupted", best=result.seed, best_val=result.seed_val, seed_test=None, best_test=None,
        comparison=None, compared_on=None, steps=())  # fmt: skip
    text = render(none)
    assert "the best prompt is the seed prompt: the run ended before its first step" in " ".join(text.split())
    assert "\n\n\n" not in text
    assert one_line(none).endswith("; the run ended before its first step")


@pytest.mark.parametrize(
    ("step", "calls", "said"),
    [
        ({"train_mean": 0.25}, 90, "the critic was asked 90 times and found nothing to change"),
        (
            {"train_mean": 0.25, "problems": ("no feedback: cut off",)},
            90,
            "nothing was tried, as answers were missing in 9 of 9 steps (step 1: no feedback: cut off)",
        ),
        ({"train_mean": 0.25, "feedback": 2}, 90, "no change did better"),
        ({"train_mean": 0.25}, 0, "no change did better"),
        ({"train_mean": 1.0}, 0, "all training answers were right, so there was nothing to learn"),
        ({"train_mean": None}, 0, "no change did better"),
    ],
)
def test_a_run_in_which_nothing_was_proposed_says_why(
    result: TrainResult, changed: Any, step: dict[str, Any], calls: int, said: str
) -> None:
    """A silent critic is paid for at every step, and "no change did better" would blame the optimizer."""
    quiet = replace(result.steps[0], kept=False, val_mean=None, **{"feedback": 0, "changes": (), **step})
    same = changed(best=result.seed, steps=(quiet,) * 9, usage={"backward": Usage(calls=calls)})
    assert f"the best prompt is the seed prompt: {said}" in " ".join(render(same).split())
    assert one_line(same).endswith(f"; {said}")


def test_a_search_that_had_nothing_to_try_names_two_reasons_at_most(result: TrainResult, changed: Any) -> None:
    """ "No change did better" would be about changes that there were none of; twenty reasons are for `show --step`."""
    step = replace(result.steps[0], kept=False, val_mean=None, race=None, changes=(), feedback=1, kind="patch")
    steps = tuple(replace(step, why=f"reason {number // 2}") for number in range(10))
    assert one_line(changed(best=result.seed, steps=steps)).endswith("; nothing was tried, as reason 0; reason 1")


def test_a_metric_whose_scores_are_all_above_1_is_told_to_name_its_scale(result: TrainResult, changed: Any) -> None:
    """Of 0 to 100 without scale=, 40 counts as right: nobody is asked for feedback, and nothing said why."""
    quiet = replace(result.steps[0], kept=False, val_mean=None, feedback=0, changes=(), train_mean=40.0)
    val = replace(result.seed_val, scores=tuple([40.0] * len(result.seed_val.scores)), scale=None, samples=())
    same = changed(best=result.seed, steps=(quiet,) * 3, seed_val=val, usage={})
    told = " ".join(render(same).split())
    assert "all training answers scored 1 or more, which counts as right if a metric names no scale" in told
    assert "nn.Metric(..., scale=(0, 100))" in told


@pytest.mark.parametrize(
    ("problems", "said"),
    [
        (("",) * 3, "the optimizer was asked 3 times and proposed no change"),
        (("too long",) * 3, "none of 3 proposals could be used"),
        (("too long", "", "too long"), "2 of 3 proposals could not be used, and the others changed nothing"),
    ],
)
def test_a_run_in_which_no_text_was_proposed_says_so(
    result: TrainResult, changed: Any, problems: tuple[str, ...], said: str
) -> None:
    """ "No change did better" would ask for better feedback, where the contract or the optimizer is at fault."""
    stays = ParameterChange("system", "Sort.", "Sort.")
    quiet = [
        replace(result.steps[0], kept=False, val_mean=None, changes=(replace(stays, problem=why),)) for why in problems
    ]
    same = changed(best=result.seed, steps=tuple(quiet))
    assert f"the best prompt is the seed prompt: {said}" in " ".join(render(same).split())
    assert one_line(same).endswith(f"; {said}")


@pytest.mark.parametrize(("times", "said"), [(1, "1 change did better and was"), (2, "2 changes did better and were")])
def test_changes_that_did_better_and_were_refused_are_told(
    result: TrainResult, changed: Any, times: int, said: str
) -> None:
    """ "No change did better" would blame the optimizer for what the guards decided."""
    race = RaceRecord("better", ("a",), (0.0,), (1.0,), 0.99, 1.0)
    step = replace(result.steps[0], kept=False, race=race, why="refused: with it the answer to w13 is wrong")
    same = changed(best=result.seed, best_test=result.seed_test, steps=(step,) * times)
    for text in (" ".join(render(same).split()), one_line(same)):
        assert f"{said} refused by the guards (" in text
        assert "with it the answer to w13 is wrong)" in text
        assert "no change did better" not in text


@pytest.mark.parametrize(
    ("race", "told"),
    [
        (None, True),
        (RaceRecord("no difference", ("a",), (0.0,), (1.0,), 0.7, 0.2), True),
        (RaceRecord("no difference", ("a",), (1.0,), (1.0,), 0.5, 0.0), False),
    ],
)
def test_what_a_search_would_have_taken_by_its_own_rule_is_told_as_refused(
    result: TrainResult, changed: Any, race: RaceRecord | None, told: bool
) -> None:
    """A beam goes by plain means, and what guards refuse may not be run any further; a shorter text did no better."""
    step = replace(result.steps[0], kept=False, race=race, why="refused: w13 must never break: 1.000 -> 0.000")
    same = changed(best=result.seed, best_test=result.seed_test, steps=(step,))
    assert ("refused by the guards (w13 must never break" in one_line(same)) is told


def test_how_often_it_is_found_is_said_of_sizes_alone(changed: Any) -> None:
    """Not of answers that were lost, nor where no difference would be seen."""
    seed, few = (Evaluation(tuple("abcde"[:n]), (0.0,) * n, ("",) * n, {}) for n in (5, 5))
    text = " ".join(render(changed(seed_test=seed, best_test=few, comparison=compare(seed, few))).split())
    assert "no difference would be seen reliably, however large." in text
    ids = tuple(str(n) for n in range(40))
    before = Evaluation(ids, (0.0,) * 12 + (1.0,) * 28, ids, {})
    after = Evaluation(ids, (1.0,) * 12 + (None,) * 10 + (1.0,) * 18, ids, {})
    text = " ".join(render(changed(comparison=compare(before, after))).split())
    assert "10 examples lost the answer that they had before, more than chance explains." in text


def test_no_difference_is_called_so(changed: Any) -> None:
    """ "not shown" is neither better nor as good."""
    seed = changed().seed_test
    text = render(changed(best_test=seed, comparison=compare(seed, seed)))
    assert "verdict      no difference shown: +0.000" in text


def test_not_shown_says_which_difference_would_have_been_missed(changed: Any) -> None:
    """Twenty examples cannot show much, and the report says how much."""
    seed = changed().seed_test
    again = Evaluation(seed.ids, (1.0, *seed.scores[1:]), seed.predictions, {})
    text = " ".join(render(changed(best_test=again, comparison=compare(seed, again))).split())
    assert "With n = 20 a difference under 0.37 would not be seen reliably (found 4 times in 5)." in text
    assert "would not be seen" not in render(changed())


def test_each_opening_of_the_test_set_is_told(changed: Any) -> None:
    """By the run, and by whoever looked since."""
    assert "The test set was opened once" in render(changed(openings=1))
    text = " ".join(render(changed(openings=1), openings=3).split())
    assert "The test set was opened 3 times, by the run at its end and by evaluations of it." in text
    assert "opened once" not in text
    assert as_json(changed(openings=1))["test_openings"] == 1
    assert as_json(changed(openings=1), 3)["test_openings"] == 3
    untested = changed(seed_test=None, best_test=None, compared_on="val")
    assert "The test set was" not in render(untested)


def test_an_opening_before_a_run_was_resumed_is_not_put_down_to_controls(changed: Any) -> None:
    """There were none, and what was seen then may have chosen how the run went on."""
    text = " ".join(render(changed(openings=2)).split())
    assert "The test set was opened 2 times, by the run before it was resumed and at its end. The more often" in text
    text = " ".join(render(changed(openings=2), openings=3).split())
    assert "opened 3 times, by the run before it was resumed, at its end, and by evaluations of it." in text
    assert "controls" not in text


def test_overlapping_splits_are_told(changed: Any) -> None:
    """What the run warned of at its beginning is not forgotten at its end."""
    said = "1 of 20 test examples are in train, too (1 exactly): test example 't1' is train example 'ant'"
    result = changed(overlaps=(said,))
    assert said in " ".join(render(result).split())
    assert as_json(result)["overlaps"] == [said]


def test_a_choice_on_validation_is_corrected_for_its_candidates(changed: Any) -> None:
    """The p-value that is shown is that of the best of so many."""
    seed, best = changed().seed_val, changed().best_val
    others = [Evaluation(seed.ids, tuple(reversed(seed.scores)), seed.predictions, {})] * 4
    found = compare(seed, best, candidates=others)
    text = " ".join(
        render(changed(seed_test=None, best_test=None, compared_on="val", comparison=found), width=120).split()
    )
    assert "for the best of 5, on validation only" in text


def test_samples_and_clusters_are_part_of_the_size(changed: Any) -> None:
    """A hundred answers to twenty examples about five documents are no hundred examples."""
    clusters = tuple(str(n % 5) for n in range(20))
    seed = changed().seed_val
    both = Evaluation(
        seed.ids, seed.scores, seed.predictions, {}, tuple((score,) * 5 for score in seed.scores), clusters
    )
    text = " ".join(render(changed(seed_val=both, best_val=both)).split())
    assert "20 examples in 5 clusters, 5 samples each" in text
    document = as_json(changed(seed_val=both))["val"]["seed"]
    assert (document["repeats"], document["clusters"]) == (5, 5)


def test_what_is_infinite_is_null_for_machines(changed: Any) -> None:
    """JSON has no infinity, and a reader that is strict would refuse the whole report."""
    one = Evaluation(("a",), (2.0,), ("x",), {})
    other = Evaluation(("a",), (4.0,), ("x",), {})
    document = as_json(changed(seed_test=one, best_test=other, comparison=compare(one, other)))
    json.dumps(document, allow_nan=False)
    assert document["comparison"]["interval"] == [None, None]
    assert document["comparison"]["detectable"] is None
    assert document["test"]["best"]["interval"] == [None, None]


def test_missing_answers_on_a_scale_without_an_end_bound_one_side(changed: Any) -> None:
    """There is no mean that it would be if they had scored highest, and for machines an infinite end is null."""
    scale = (0.0, math.inf)
    seed = Evaluation(tuple("abcd"), (0.0, 0.0, 1.0, 0.0), tuple("xxxx"), {}, scale=scale)
    best = Evaluation(tuple("abcd"), (1.0, 3.0, 4.0, None), tuple("xxxx"), {"d": "EmptyResponse: -"}, scale=scale)
    result = changed(seed_test=seed, best_test=best, comparison=compare(seed, best))
    text = " ".join(render(result).split())
    assert "Whatever they would have scored, the mean is at least 2.000." in text
    assert "Whatever the missing answers would have scored, the difference is at least +1.750." in text
    assert "nan" not in text
    document = as_json(result)
    json.dumps(document, allow_nan=False)
    assert document["test"]["best"]["bounds"] == [2.0, None]
    assert document["comparison"]["bounds"] == [1.75, None]


def test_missing_answers_bound_mean_and_difference(changed: Any) -> None:
    """How far off the figures could be, in the worst case."""
    seed = Evaluation(tuple("abcd"), (0.0, 0.0, 1.0, 0.0), tuple("xxxx"), {})
    best = Evaluation(tuple("abcd"), (1.0, 1.0, 1.0, None), tuple("xxxx"), {"d": "EmptyResponse: no content"})
    result = changed(seed_test=seed, best_test=best, comparison=compare(seed, best))
    text = " ".join(render(result).split())
    assert "Had they scored lowest, the mean would be 0.750, and had they scored highest, 1.000." in text
    assert "Whatever the missing answers would have scored, the difference is between +0.500 and +0.750." in text
    assert as_json(result)["test"]["best"]["bounds"] == [0.75, 1.0]
    assert as_json(result)["comparison"]["bounds"] == [0.5, 0.75]


def test_an_unknown_price_is_unknown(changed: Any) -> None:
    """Never a silent zero."""
    text = render(changed(usage={"forward": Usage(calls=1, dollars=None)}))
    assert text.count("unknown") == 2
    assert "$0.00" not in text


def test_unanswered_examples_are_told(changed: Any) -> None:
    """A mean over what was answered says so."""
    some = Evaluation(("a", "b"), (1.0, None), ("x", None), {"b": "EmptyResponse: no content"})
    text = " ".join(render(changed(seed_val=some)).split())
    assert "seed prompt, validation: 1 example without an answer left out, e.g. b: EmptyResponse: no content" in text


def test_what_one_prompt_lost_is_told_once(changed: Any) -> None:
    """Where nothing did better the best prompt is the seed prompt, and what it lost was printed twice."""
    some = Evaluation(("a", "b"), (1.0, None), ("x", None), {"b": "EmptyResponse: no content"})
    same = changed(seed_test=some, best_test=some)
    assert render(same).count("e.g. b:") == 2
    assert render(replace(same, best=same.seed, comparison=None)).count("e.g. b:") == 1
    assert render(replace(same, best=same.seed, comparison=None, seed_test=None)).count("e.g. b:") == 1


def test_colors_are_for_terminals(result: TrainResult) -> None:
    """Green for better in a terminal, no codes elsewhere."""
    assert "\x1b[" in render(result, color=True)
    assert "\x1b" not in render(result)


def test_what_people_and_models_wrote_cannot_steer_the_terminal(changed: Any) -> None:
    """Control codes and markup in prompts and feedback are text."""
    bad = "\x1b[2J\x07 [bold red]x[/] :smile:"
    origins = [None, None, Origin(1, bad, (Evidence(bad, ("t1",)),))]
    text = render(changed(best={"system": f"Sort the mail.\nAnswer.\n{bad}"}, origins={"system": origins}))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count("[bold red]x[/] :smile:") == 3


@given(text=st.text(max_size=300), width=st.integers(40, 120))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=50
)
def test_no_line_is_wider_than_asked_for(changed: Any, text: str, width: int) -> None:
    """Whatever is in the prompt: wide characters, long words, line breaks of all kinds."""
    from rich.cells import cell_len

    origins = [None] + [Origin(1, text, (Evidence(text, (text[:30],)),))] * text.count("\n")
    shown = render(changed(best={"system": text}, origins={"system": origins}), width=width)
    wide = [line for line in shown.split("\n") if cell_len(line) > width]
    assert all("seed prompt" in line or "[" in line for line in wide) if width < 64 else wide == []


def test_json_says_all_that_the_table_says(result: TrainResult) -> None:
    """For machines, with the same figures."""
    document = json.loads(json.dumps(as_json(result)))
    assert document["verdict"] == "better"
    assert document["test"]["best"] == {
        "mean": 0.9,
        "interval": list(result.best_test.interval),
        "examples": 20,
        "unanswered": 0,
    }  # type: ignore[union-attr]
    assert document["comparison"]["on"] == "test"
    assert document["total"]["dollars"] == pytest.approx(0.25)
    assert [line["op"] for line in document["parameters"]["system"]["diff"]] == ["same", "removed", "same", "added"]
    assert document["steps"][1]["problems"] == ["the new text is empty"]


def test_one_line(result: TrainResult) -> None:
    """For --quiet."""
    assert one_line(result) == "val 0.400 -> 0.900; test 0.400 -> 0.900; better on test (+0.500)"


def test_what_joins_letters_is_printed(changed: Any) -> None:
    """Persian and emoji need it; what turns the direction of writing is still taken out."""
    line = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f469\u200d\U0001f467"
    text = render(changed(best={"system": f"{line}\n\u202ex"}, origins={"system": [None, None]}))
    assert line in text
    assert "\u202e" not in text


def test_what_the_prompts_take_stands_below_their_scores(changed: Any) -> None:
    """Tokens an example, and dollars where it costs any; where an example was not run nothing is said."""
    seed, best = Usage(input_tokens=1800, output_tokens=200, calls=20, dollars=0.02), Usage(calls=20, dollars=0.0)
    shown = render(
        changed(test_usage={"seed": seed, "best": seed.model_copy(update={"input_tokens": 3800, "dollars": 0.05})})
    )
    assert "\n  tokens       100 an example         200 an example         on test\n" in shown
    assert "\n  cost         $1.00 for 1,000        $2.50 for 1,000        on test\n" in shown
    free = render(changed(test_usage={"best": best}))
    assert "0 an example" in free
    assert "for 1,000" not in free
    assert "an example" not in render(changed(test_usage={"best": best}, best_test=None))


def test_machines_are_told_null_where_there_is_nothing_to_say(result: TrainResult, changed: Any) -> None:
    """An empty text would be one more thing to ask for."""
    words = ("shortage", "unspent", "untested", "idle")
    assert [as_json(result)[name] for name in words] == [None] * 4
    assert [as_json(changed(**{name: "so"}))[name] for name in words] == ["so"] * 4
