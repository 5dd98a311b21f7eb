"""A comparison: what may be claimed, and what a missing claim is worth."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from textgrad_engine import Trainer, nn, optim, use_models
from textgrad_engine.data.contents import contents_of
from textgrad_engine.report.view import said
from textgrad_engine.testing import simulated_task
from textgrad_engine.train import Comparison, Evaluation, compare, evaluate
from textgrad_engine.train.detectable import enough_examples
from textgrad_engine.train.statistics import max_t, minimum_detectable_effect, paired_difference, sign_flip


def scored(*values: float | None, **fields: object) -> Evaluation:
    return Evaluation(tuple(str(n) for n in range(len(values))), values, values, {}, **fields)  # type: ignore[arg-type]


def test_candidates_are_of_the_same_examples() -> None:
    """What was tried elsewhere says nothing about luck here."""
    with pytest.raises(ValueError, match="differ in their ids"):
        compare(scored(0.0, 1.0), scored(1.0, 1.0), candidates=[scored(1.0)])


def test_of_whole_runs_it_is_told_what_of_them_is_compared() -> None:
    """Who has two results writes `compare(first, second)` first, and each has four evaluations."""
    task = simulated_task(rules=2, seed=1, train=4, val=4, test=4)
    program = task.program()
    with use_models(forward=task.model):
        result: Any = Trainer(max_steps=1).fit(
            program, task.loss, optim.TGD(program.parameters()), task.train, task.val, task.test
        )
    with pytest.raises(TypeError, match=r"compare: before must be an Evaluation, got .*; of a run give its best_test"):
        compare(result, result)
    with pytest.raises(TypeError, match=r"compare: after must be an Evaluation, got .*; of a run give its best_test"):
        compare(result.best_test, result)
    assert compare(result.best_test, result.best_test).difference == 0


def test_clusters_must_agree() -> None:
    """One of the two may leave them out, as one that was made by hand does."""
    before, after = scored(0.0, 1.0, clusters=("a", "b")), scored(1.0, 1.0, clusters=("a", "a"))
    with pytest.raises(ValueError, match="in the same clusters"):
        compare(before, after)
    assert compare(before, scored(1.0, 1.0)).clusters == compare(scored(0.0, 1.0), before).clusters == 2


def test_the_interval_of_a_difference_ends_at_the_largest_one() -> None:
    """Scores of a judge from 1 to 5 differ by 4 at most, others by what they can; the verdict is that of all of it."""
    before, after = (0.1, 0.1, 0.2, 0.9), (1.0, 1.0, 1.0, 0.5)
    found = compare(scored(*before), scored(*after))
    assert found.interval == paired_difference(before, after, bounds=(0, 1))[1:3]
    assert (found.interval[1], found.verdict) == (1.0, "not shown")
    assert compare(scored(*before), scored(*after), confidence=0.999).interval == (-1.0, 1.0)
    scale = (-5.0, 5.0)
    wide = compare(scored(*before, scale=scale), scored(*after, scale=scale)).interval
    assert wide == paired_difference(before, after, bounds=scale)[1:3]
    assert wide[1] > 1
    assert compare(scored(*before), scored(*after[:3], 1.5)).interval[1] > 1
    assert compare(scored(0.2), scored(0.4)).interval == (-1.0, 1.0)
    assert compare(scored(2.0), scored(4.0)).interval == (-math.inf, math.inf)


def test_many_examples_in_few_clusters_show_little() -> None:
    """Sixty gains in five documents are five; without clusters they would be called better."""
    before, after = [0.0] * 60, [1.0] * 30 + [0.0] * 30
    clusters = tuple(str(n // 12) for n in range(60))
    assert compare(scored(*before), scored(*after)).verdict == "better"
    found = compare(scored(*before, clusters=clusters), scored(*after, clusters=clusters))
    assert (found.verdict, found.clusters, found.difference) == ("not shown", 5, 0.5)
    assert found.remark == "with n = 60 in 5 clusters no difference would be seen reliably, however large"
    one = [scored(*each, clusters=("a",) * 60) for each in (before, after)]
    assert compare(*one).remark == "with n = 60 in 1 cluster no difference would be seen reliably, however large"
    ten = tuple(str(n // 6) for n in range(60))
    found = compare(scored(*before, clusters=ten), scored(*before, clusters=ten), candidates=[scored(*after)])
    assert found.remark.startswith("with n = 60 in 10 clusters and 2 candidates tried a difference under 0.")
    found = compare(scored(*before, clusters=ten), scored(*[1.0] * 12, *before[12:], clusters=ten))
    assert found.remark.startswith("with n = 60 in 10 clusters a difference under 0.6")


def test_copies_of_examples_can_show_as_much_as_the_examples() -> None:
    """Twenty questions that stand there twice each: interval and what would not be seen are those of twenty."""
    before, after = [1.0] * 17 + [0.0] * 3, [1.0] * 16 + [0.0] * 2 + [1.0] * 2
    once = compare(scored(*before), scored(*after))
    names = tuple(str(n // 2) for n in range(40))
    old, new = ([score for score in scores for _ in range(2)] for scores in (before, after))
    twice = compare(scored(*old, clusters=names), scored(*new, clusters=names))
    assert (twice.interval, twice.detectable) == (pytest.approx(once.interval), once.detectable)


def test_the_best_of_many_is_judged_as_such() -> None:
    """Better by itself, not shown as the best of thirty; and better still when the gain is large."""
    source = random.Random(2)
    before = [float(source.random() < 0.5) for _ in range(40)]
    after = [1.0 if n in (0, 3, 5, 8, 9, 14) else score for n, score in enumerate([0.0] * 15 + before[15:])]
    before[:15] = [0.0] * 15
    tried = [[float(source.random() < 0.45) for _ in range(40)] for _ in range(30)]
    alone = compare(scored(*before), scored(*after))
    assert (alone.verdict, alone.adjusted, alone.candidates) == ("better", None, 1)
    found = compare(scored(*before), scored(*after), candidates=[scored(*row) for row in tried])
    assert (found.verdict, found.candidates, found.p_value) == ("not shown", 31, alone.p_value)
    assert found.adjusted == max_t(before, [after, *tried])[0] > 0.05
    assert f"(of 31 candidates: {found.adjusted:.2g})" in str(found)
    assert "31 candidates tried" in found.remark
    sure = compare(scored(*[0.0] * 40), scored(*[1.0] * 40), candidates=[scored(*row) for row in tried])
    assert sure.verdict == "better"


def test_the_compared_one_may_be_among_the_candidates() -> None:
    """It is one candidate all the same, and alone it needs no correction."""
    before, after, other = scored(*[0.0] * 8), scored(*[1.0] * 8), scored(*[0.0, 1.0] * 4)
    assert compare(before, after, candidates=[after]).adjusted is None
    assert compare(before, after, candidates=[other]) == compare(before, after, candidates=[after, other])


def test_a_candidate_that_was_run_on_some_examples_counts_with_those() -> None:
    """A race that was given up early: what it was not run on says nothing."""
    before, after = scored(*[0.0] * 10, 1.0, None), scored(*[1.0] * 9, 0.0, 1.0, 1.0)
    partly = scored(1.0, 1.0, 1.0, *[None] * 9)
    found = compare(before, after, candidates=[partly])
    rows = [[1.0] * 9 + [0.0, 1.0], [1.0] * 3 + [0.0] * 7 + [1.0]]
    assert found.adjusted == max_t([0.0] * 10 + [1.0], rows)[0]


def test_not_shown_says_what_would_not_have_been_seen() -> None:
    """The size of a difference that the examples cannot show, in the words of the report."""
    before, after = [0.0] * 30 + [1.0] * 30, [0.0] * 28 + [1.0] * 29 + [0.0] * 3
    found = compare(scored(*before), scored(*after))
    assert found.verdict == "not shown"
    assert found.detectable == minimum_detectable_effect(60, discordance=7 / 62)
    assert found.remark == "with n = 60 a difference under 0.13 would not be seen reliably"
    assert str(found).endswith(f"n = 60; {found.remark}")
    shown = compare(scored(*[0.0] * 9), scored(*[1.0] * 9))
    assert shown.detectable is not None
    assert (shown.verdict, shown.remark) == ("better", "")


def test_nothing_is_impossible() -> None:
    """A p-value is never 0, and what is too small for a number is not told as one that is."""
    changes = [0.4 + n % 10 / 100 for n in range(2000)]
    assert "p < 1e-300," in str(compare(scored(*[0.0] * 2000), scored(*changes)))


def test_four_examples_show_nothing_at_all() -> None:
    """And say so, instead of naming a size."""
    found = compare(scored(0.0, 0.0, 0.0, 0.0), scored(1.0, 1.0, 1.0, 1.0))
    assert (found.verdict, found.detectable) == ("not shown", math.inf)
    assert found.remark == "with n = 4 no difference would be seen reliably, however large"
    five = compare(scored(*[0.0] * 5), scored(0.1, 0.2, 0.3, 0.2, 0.1))
    assert (five.verdict, five.detectable) == ("not shown", math.inf)
    single = compare(scored(0.2), scored(0.3))
    assert single.detectable == math.inf


def test_differences_that_are_all_equal_say_how_little_that_is() -> None:
    """Between known limits by the size that would not be seen; without them, nobody knows one."""
    equal = compare(scored(*[3.0] * 9, scale=(1.0, 5.0)), scored(*[3.0] * 9, scale=(1.0, 5.0)))
    assert equal.interval[0] == -equal.interval[1] < -0.5
    assert equal.remark.startswith("with n = 9 a difference under ")
    free = compare(scored(*[3.0] * 9), scored(*[4.0] * 9))
    assert (free.verdict, free.interval, free.detectable) == ("not shown", (-math.inf, math.inf), None)
    assert free.remark == "with n = 9 all alike and no scale of the scores, nobody knows what would be seen"


def test_a_verdict_without_a_known_scale_says_what_it_cannot_allow_for() -> None:
    """Rare large falls are allowed for where it is known how large one can be; elsewhere that they are not is said."""
    before, after = [3.0, 2.0] * 10, [3.3, 2.1, 3.2, 2.2] * 5
    free, named = (compare(scored(*before, scale=scale), scored(*after, scale=scale)) for scale in (None, (1.0, 5.0)))
    assert (free.verdict, free.bounded, named.bounded) == ("better", False, True)
    assert free.caveat.startswith("the scale of the scores is not known, so rare large changes")
    assert free.caveat in str(free)
    assert named.caveat == "" == compare(scored(0.0, 3.0), scored(0.1, 2.9)).caveat  # nothing is said there to doubt
    assert compare(scored(*[0.0] * 9), scored(*[1.0] * 9)).bounded  # noughts and ones have one


def test_more_candidates_can_see_less() -> None:
    """What is detectable goes by the level that is left for each."""
    before, after = scored(*[0.0, 1.0] * 20), scored(*[0.0, 1.0] * 19, 1.0, 1.0)
    alone, of_many = compare(before, after), compare(before, after, candidates=[scored(*[1.0, 0.0] * 20)] * 9)
    assert alone.detectable is not None
    assert of_many.detectable is not None
    assert of_many.detectable > alone.detectable


@pytest.mark.parametrize("clusters", [(), tuple(f"page {min(n, 29)}" for n in range(40))])
@pytest.mark.parametrize("scale", [None, (2.0, 3.0)])
def test_what_is_detectable_goes_by_the_level_and_by_the_unit_of_graded_scores(scale: Any, clusters: Any) -> None:
    """A level of 99% sees less; in points of a hundred it is a hundred times as much."""
    rows = [2.2, 2.5, 2.4, 2.9] * 10, [2.3, 2.5, 2.2, 2.8] * 10
    before, after = (scored(*row, scale=scale, clusters=clusters) for row in rows)
    points = (
        scored(*(100 * score for score in row), scale=scale and (200.0, 300.0), clusters=clusters) for row in rows
    )
    usual, strict = compare(before, after).detectable, compare(before, after, confidence=0.99).detectable
    assert usual is not None
    assert strict is not None
    assert strict > usual
    assert compare(*points).detectable == pytest.approx(100 * usual)


def test_missing_scores_bound_the_difference() -> None:
    """Against the second program at one end, for it at the other; none when nothing is missing, or nobody knows."""
    found = compare(scored(0.0, None, 1.0, 0.0), scored(1.0, 1.0, None, 0.0))
    assert (found.n, found.difference, found.bounds) == (2, 0.5, (0.0, 0.5))
    assert compare(scored(0.0, 1.0), scored(1.0, 1.0)).bounds is None
    assert compare(scored(3.0, None), scored(4.0, 5.0)).bounds is None


def test_few_examples_with_other_scores_need_the_signs_to_agree() -> None:
    """A t-test of eight three-valued scores finds too much; the p-value is the larger of the two."""
    before = [0.0] * 8
    after = [0.5, 0.5, 1.0, 0.5, 0.5, 0.0, 0.5, 0.0]
    found = compare(scored(*before), scored(*after))
    assert found.p_value == paired_difference(before, after, bounds=(0, 1)).p_value > sign_flip(after) == 2 / 2**6
    beyond = compare(scored(*before, 0.0), scored(*[2 * each for each in after], 1.0))
    assert beyond.p_value == sign_flip([*after, 0.5]) > paired_difference([0.0] * 9, [*after, 0.5]).p_value
    five = compare(scored(*[0.0] * 5), scored(0.1, 0.2, 0.3, 0.4, 0.5))
    assert (five.p_value > 0.0625, five.verdict) == (True, "not shown")


@pytest.mark.parametrize(
    ("n", "draw"),
    [
        (8, lambda source: source.choice((0, 0, 0, 0.5, 1))),
        (13, lambda source: source.betavariate(5, 0.5)),
        (40, lambda source: source.betavariate(2, 3)),
        (40, lambda source: float(source.random() < 0.6)),
    ],
)
def test_equal_programs_are_rarely_told_apart(n: int, draw: Callable[[random.Random], float]) -> None:
    """False claims, of better or worse: at most 5 in 100, whatever the scores look like."""
    source = random.Random(n)
    trials = 300
    claims = 0
    for trial in range(trials):
        before, after = (scored(*[draw(source) for _ in range(n)]) for _ in range(2))
        claims += compare(before, after, seed=trial).verdict != "not shown"
    assert claims / trials <= 0.06  # 5%, and the simulation's own error


def test_a_comparison_made_by_hand_needs_no_more_than_before() -> None:
    """The new fields have defaults."""
    found = Comparison(0.1, (-0.1, 0.3), 0.3, "not shown", 20)
    assert found.remark == ""
    assert str(found) == "not shown: +0.100 [-0.100, +0.300], p = 0.3, n = 20"


def test_what_loses_answers_is_not_better() -> None:
    """Texts that answers of one side are lost with did that; what is left of them says nothing of the rest."""
    before = [0.0] * 12 + [1.0] * 28
    found = compare(scored(*before), scored(*[1.0] * 12, *[None] * 10, *[1.0] * 18))
    assert (found.verdict, found.lost, found.n) == ("not shown", 10, 30)
    assert found.remark == "10 examples lost the answer that they had before, more than chance explains"
    assert found.interval[0] > 0  # by those that have an answer in both alone it would be


def test_what_loses_answers_does_not_make_the_others_worse() -> None:
    """Who gives no answer where it would be wrong is right wherever it gives one, also as the first of the two."""
    whole, silent = scored(*[1.0] * 28, *[0.0] * 12), scored(*[1.0] * 30, *[None] * 10)
    after = [*[1.0] * 22, *[0.0] * 8, *[1.0] * 5, *[0.0] * 5]  # as many right as of the former, on others
    found = compare(silent, scored(*after))
    assert (found.verdict, found.lost, found.lost_before, found.n) == ("not shown", 0, 10, 30)
    assert found.remark == "10 examples lacked the answer before that they have now, more than chance explains"
    assert found.interval[1] < 0  # by those that have an answer in both alone it would be
    assert compare(scored(*after), silent).lost == 10
    assert (compare(whole, scored(*[0.0] * 40)).verdict, compare(whole, scored(*[0.0] * 40)).lost_before) == (
        "worse",
        0,
    )


def test_equal_programs_of_which_one_withholds_wrong_answers_are_rarely_told_apart() -> None:
    """Whichever of the two it is: where it was the first one, nearly all of the others were called worse."""
    source = random.Random(3)

    def drawn(lost: float) -> Evaluation:
        scores = [float(source.random() < 0.7) for _ in range(100)]
        return scored(*[None if not score and source.random() < lost else score for score in scores])

    pairs = [(0.9, 0.0), (0.0, 0.9)] * 12
    assert sum(compare(drawn(one), drawn(other)).verdict != "not shown" for one, other in pairs) <= 2


@pytest.mark.parametrize("alike", [1, 2])
def test_what_falls_rarely_and_far_is_allowed_for_by_each_of_many(alike: int) -> None:
    """Arms that rise by little and fall far: by signs alone each is better, as if more such falls could not come.

    Of eleven that were as good as the first, any was called better in 34 of 100 cases (400 examples), and in 11 since.
    """
    clusters = tuple(str(n // alike) for n in range(400 * alike)) if alike > 1 else ()

    def arm(number: int) -> Evaluation:
        falls = range(3 * number, 3 * number + 3)
        return scored(*[0.0 if n // alike in falls else 0.816 for n in range(400 * alike)], clusters=clusters)

    first, arms = scored(*[0.8] * 400 * alike, clusters=clusters), [arm(number) for number in range(11)]
    alone, of_many = compare(first, arms[0]), compare(first, arms[0], candidates=arms)
    assert (alone.verdict, of_many.verdict) == ("better", "not shown")
    assert alone.interval == of_many.interval
    assert of_many.adjusted is not None
    assert of_many.adjusted > 0.2


def test_answers_lost_on_both_sides_are_nobodys_fault() -> None:
    """As a network loses them."""
    before = [None] * 5 + [0.0] * 12 + [1.0] * 23
    found = compare(scored(*before), scored(*[1.0] * 17, *[None] * 6, *[1.0] * 17))
    assert (found.verdict, found.lost, found.n) == ("better", 0, 29)


def sampled(source: random.Random, right: float, cut: float) -> Evaluation:
    """Forty examples with four samples each; of the wrong answers a share is cut off."""
    rows = []
    for _ in range(40):
        answers = [float(source.random() < right) for _ in range(4)]
        rows.append(tuple(None if not score and source.random() < cut else score for score in answers))
    known = [[score for score in row if score is not None] for row in rows]
    return scored(*[sum(row) / len(row) if row else None for row in known], samples=tuple(rows))


@pytest.mark.parametrize(("right", "cut"), [(0.6, 0.9), (0.5, 0.9), (0.6, 0.3)])
def test_texts_that_lose_samples_of_their_wrong_answers_are_not_better(right: float, cut: float) -> None:
    """As good as the others or worse; what is left of their samples is right more often, and says nothing."""
    source = random.Random(1)
    found = [compare(sampled(source, 0.6, 0.0), sampled(source, right, cut)) for _ in range(100)]
    assert [each for each in found if each.verdict == "better"] == []
    assert all(each.lost for each in found)


def test_samples_that_are_lost_on_both_sides_are_nobodys_fault() -> None:
    """A sample now and then, as a network loses them; and the samples of one example count as one."""
    before = scored(*[0.0] * 20, samples=((0.0, None, 0.0, 0.0),) * 4 + ((0.0,) * 4,) * 16)
    after = scored(*[1.0] * 20, samples=((1.0,) * 4,) * 14 + ((1.0, None, None, None),) * 6)
    found = compare(before, after)
    assert (found.verdict, found.lost) == ("better", 0)
    alone = scored(*[0.0] * 20, samples=((0.0,) * 4,) * 20)
    assert (compare(alone, after).verdict, compare(alone, after).lost) == ("not shown", 6)


@pytest.mark.parametrize(("before", "after"), [(1, 5), (5, 1), (2, 3)])
def test_who_asks_more_often_loses_no_more_by_chance(before: int, after: int) -> None:
    """Of five answers one is lost sooner than of one, where an endpoint loses one in twenty: `eval --repeats 5`."""
    source = random.Random(before)

    def asked(times: int, lost: float) -> Evaluation:
        rows = [tuple([None if source.random() < lost else 1.0 for _ in range(times)]) for _ in range(100)]
        return scored(*[next((score for score in row if score), None) for row in rows], samples=tuple(rows))

    assert sum(compare(asked(before, 0.05), asked(after, 0.05)).lost > 0 for _ in range(100)) <= 5
    assert all(compare(asked(before, 0.05), asked(after, 0.3)).lost for _ in range(20))
    assert not any(compare(asked(before, 0.3), asked(after, 0.05)).lost for _ in range(20))


def test_what_is_lost_goes_by_clusters() -> None:
    """Ten examples of one document whose answers are lost together may be lost by chance; of ten documents not."""
    before, after = [0.0] * 20 + [1.0] * 10, [1.0] * 20 + [None] * 10
    of_one = tuple(str(min(n, 20)) for n in range(30))
    assert compare(scored(*before, clusters=of_one), scored(*after, clusters=of_one)).lost == 0
    of_ten = tuple(str(n) for n in range(30))
    assert compare(scored(*before, clusters=of_ten), scored(*after, clusters=of_ten)).lost == 10


def found_on(rows: list[dict[str, Any]]) -> Evaluation:
    return evaluate(lambda text: text, rows, nn.ExactMatch())


def test_other_examples_are_told_where_only_positions_name_them() -> None:
    """The same positions in another file said "better" of two programs that nobody had run on the same examples."""
    first, other = ([{"text": f"{name}{n}", "target": "b"} for n in range(4)] for name in "ab")
    with pytest.raises(ValueError, match=r"named by their positions alone, and differ in text\. Evaluate both"):
        compare(found_on(first), found_on(other))
    with pytest.raises(ValueError, match="differ in target, text"):
        compare(found_on(first), found_on(first), candidates=[found_on([{**row, "target": "c"} for row in other])])
    again = [dict(reversed(row.items())) for row in first]
    assert compare(found_on(first), found_on(again)).n == 4
    assert compare(found_on(first), found_on([{**row, "hint": "h"} for row in first])).n == 4  # a column that is new
    assert compare(found_on(first), scored(1.0, 1.0, 0.0, 0.0)).n == 4  # made by hand


def test_ids_say_that_examples_are_the_same() -> None:
    """Such as those of a file that was translated."""
    first, other = ([{"id": f"t{n}", "text": name, "target": "b"} for n in range(4)] for name in "ab")
    assert compare(found_on(first), found_on(other)).difference == 1.0


def test_what_is_made_anew_for_each_set_does_not_make_examples_other_ones() -> None:
    """An object tells of itself by its address."""
    first, again = ([{"text": "b", "extra": [object()], "target": "b"} for _ in range(2)] for _ in range(2))
    assert compare(found_on(first), found_on(again)).n == 2


def test_what_nobody_can_write_down_makes_examples_no_other_ones() -> None:
    """Such as a tree whose branches know it; no example is refused for it."""
    tree: dict[str, Any] = {"leaf": "x"}
    tree["tree"] = tree
    rows = [{"text": "a", "target": "a", "tree": tree}, {"text": "b", "target": "a", "tree": 10**5000}]
    assert set(contents_of(rows)) == {"text", "target"}


def test_the_examples_that_would_do_are_more_than_these_or_nobody_knows_how_many() -> None:
    """Of clusters it would take more of these; and where there is no gain, no number shows one."""
    before, after = [0.0] * 20, [1.0] * 2 + [0.0] * 18
    needed = enough_examples(scored(*before), scored(*after))
    assert needed is not None
    assert needed > 20
    assert enough_examples(scored(*before, None), scored(*after, 1.0)) == needed  # one that has no score is none
    names = tuple(str(n // 2) for n in range(20))
    assert enough_examples(scored(*before, clusters=names), scored(*after, clusters=names)) is None
    assert enough_examples(scored(*after), scored(*before)) is None
    assert enough_examples(scored(*before), scored(*[1.0] * 20)) is None  # these show it already
    assert enough_examples(scored(None), scored(1.0)) is None


@pytest.mark.parametrize(
    ("lost", "gained", "verdict", "told"), [(10, 22, "not shown", "0.0501"), (25, 42, "better", "0.0498")]
)
def test_a_p_value_is_told_on_its_side_of_the_level(lost: int, gained: int, verdict: str, told: str) -> None:
    """Rounded to 0.05, it was that of both verdicts; it is told alike in a line and in a report."""
    before, after = scored(*[1.0] * lost, *[0.0] * gained), scored(*[0.0] * lost, *[1.0] * gained)
    found = compare(before, after)
    assert found.verdict == verdict
    assert f", p = {told}, n = " in str(found)
    assert said(found).endswith(f", p = {told},")
    chosen = replace(found, adjusted=0.05003, candidates=2)
    assert "(of 2 candidates: 0.05003)" in str(chosen)
    assert said(chosen).endswith("p = 0.05003 for the best of 2,")


@pytest.mark.parametrize("scale", [(0.0, 1.0), None])
def test_what_is_seen_reliably_among_clusters_of_several_sizes_is_more_than_their_interval_leaves_open(
    scale: tuple[float, float] | None,
) -> None:
    """A document of 30 questions beside 20 with one: differences of half of the interval are seen by luck."""
    names = tuple(str(max(0, n - 29)) for n in range(50))
    source = random.Random(3)
    changed = {name: source.choice([-0.4, -0.1, 0.0, 0.2, 0.5]) for name in names}
    before = scored(*[0.5 if scale else 3.5] * 50, clusters=names, scale=scale)
    after = scored(*[score + changed[name] for score, name in zip(before.answered, names)], clusters=names, scale=scale)
    found = compare(before, after)
    assert found.detectable is not None
    assert found.detectable > (found.interval[1] - found.interval[0]) / 2
    whole = tuple("a" if n < 4999 else "b" for n in range(5000))
    nearly = [scored(*[n % 7 + more for n in range(5000)], clusters=whole) for more in (0.0, 0.5)]
    moved = replace(nearly[1], scores=(*nearly[1].scores[:-1], 9.0))
    assert (compare(nearly[0], moved).interval, compare(nearly[0], moved).detectable) == (
        (-math.inf, math.inf),
        math.inf,
    )
