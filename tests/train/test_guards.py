"""Guards: a text that is better on the whole is not kept when it breaks what must not break."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.errors import BadRequest, DataError
from textgrad_engine.llm import Request
from textgrad_engine.optim import Optimizer, proposers
from textgrad_engine.testing import FunctionModel, simulated_task
from textgrad_engine.train import Evaluation, Guards, Objective, Trainer, TrainResult
from textgrad_engine.train.estimate import estimate
from textgrad_engine.train.guarded import standings
from textgrad_engine.train.guards import guarded_by
from textgrad_engine.train.metric_scores import MetricScores
from textgrad_engine.train.standing import Split, Standing, missed_in_words

from .shouting import improving

WORDS = [f"w{n}" for n in range(24)]
KEPT = "w13"
"""The one word that is right without shouting."""


def rows(*words: str) -> list[dict[str, Any]]:
    return [
        {"id": word, "word": word, "kind": "quiet" if word == KEPT else "loud", "target": word.upper()}
        | ({"target": word} if word == KEPT else {})
        for word in words
    ]


def answer(request: Request) -> Any:
    if request.purpose != "forward":
        return improving(request, "Shout.", "Repeat. Shout.")
    text = request.messages[-1].text
    return text.upper() if "Shout" in request.messages[0].text else text


OPTIMIZERS: dict[str, Callable[[Any], Optimizer]] = {
    "TGD": optim.TGD,
    "PatchSearch": lambda params: optim.PatchSearch(params, lanes=2),
    "RandomSearch": lambda params: optim.RandomSearch(params, proposers.Rewrite(), proposals=4),
    "ParetoSearch": optim.ParetoSearch,
}


def quietness(answer: str) -> float:
    return 1.0 if answer == answer.lower() else -1.0


def both() -> nn.Weighted:
    """Right answers count for more than quiet ones, and none but `KEPT` is both."""
    quiet = nn.Metric(quietness, "is quiet", scale=(-1, 1))
    return nn.Weighted({"right": nn.ExactMatch(), "quiet": quiet}, {"right": 4, "quiet": 1})


def fit(make: Callable[[Any], Optimizer], guards: Guards | None, loss: Any = None) -> TrainResult:
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    with use_models(forward=FunctionModel(answer)):
        return Trainer(batch_size=6, max_steps=4, guards=guards).fit(
            program, loss or nn.ExactMatch(), make(program.parameters()), rows(*WORDS[:12]), rows(*WORDS[12:])
        )


def test_guards_that_guard_nothing() -> None:
    """An empty list is most likely a mistake, and so is one text."""
    with pytest.raises(ValueError, match="guard nothing"):
        Guards()
    with pytest.raises(TypeError, match=r"write \['w1'\]"):
        Guards(never_break="w1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the floor of kind = 'loud' must be a number"):
        Guards(floors={("kind", "loud"): "0.8"})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="must be a number, got nan"):
        Guards(floors={("kind", "loud"): float("nan")})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"floors": {"billing": 0.5}}, r"field and value, such as \{\('queue', 'billing'\): 0.5\}; got 'billing': 0.5"),
        ({"floors": {"ab": 0.5}}, "names a slice by field and value, .*; got 'ab': 0.5"),
        ({"floors": {(1, 2): 0.5}}, r"names a slice by field and value, .*; got \(1, 2\): 0.5"),
        ({"floors": [0.5]}, r"floors maps slices to floors, such as .*; got list \[0.5\]"),
        ({"never_break": 3}, r"never_break is a sequence of ids, got int; write \[3\]"),
        ({"metrics": ["safe"]}, r"metrics maps names to floors, such as \{'safe': 0.9\}; got \['safe'\]"),
        ({"metrics": {3: 0.5}}, r"metrics names a metric by a text, such as \{'safe': 0.9\}; got 3"),
    ],
)
def test_guards_of_a_wrong_shape_say_which_is_right(settings: Any, message: str) -> None:
    """A name of two letters is no field with its value, either."""
    with pytest.raises(TypeError, match=message):
        Guards(**settings)


@pytest.mark.parametrize("floor", [5, -0.1])
def test_a_floor_that_no_score_can_have_is_refused(floor: float) -> None:
    """It would refuse everything, or nothing; where nobody knows the scale, it is taken as it is."""
    guards = Guards(floors={("kind", "loud"): floor})
    with pytest.raises(
        DataError, match=rf"the floor of kind = 'loud' is {floor}, and scores run from 0 to 1; .*betwee"
    ):
        guards.on(rows("w1"), scale=(0.0, 1.0))
    assert [each.least for each in guards.on(rows("w1"), scale=(-1.0, 5.0)).floors] == [floor]
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    trainer, words = Trainer(guards=guards), rows(*WORDS)
    with pytest.raises(DataError, match="scores run from 0 to 1"), use_models(forward=FunctionModel(answer)):
        trainer.fit(program, nn.Judge("Is it loud?"), optim.TGD(program.parameters()), words, words)
    with pytest.raises(DataError, match="scores run from 0 to 1"), use_models(forward=FunctionModel(answer)):
        trainer.fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), words, words)
    with pytest.raises(DataError, match="scores run from 0 to 1"):
        estimate(trainer, program, nn.ExactMatch(), optim.TGD(program.parameters()), words, words)
    with pytest.raises(DataError, match="scores run from 0 to 1"):
        Objective(program, nn.OnField(nn.ExactMatch(), "word"), words, guards=guards)


@pytest.mark.parametrize("value", ["true", "True", True])
def test_a_slice_is_named_as_the_table_has_it_or_as_python_does(value: Any) -> None:
    """`show --by` prints the true of a table as it stands there, and so a config names it."""
    found = [{"id": name, "vip": name != "b"} for name in "abc"]
    assert Guards(floors={("vip", value): 0.5}).on(found, scale=(0, 1)).floors[0].positions == (0, 2)


def test_a_slice_has_all_examples_whose_value_reads_as_it_is_called() -> None:
    """A table holds letters with signs as one character or as two, and cells that end in a space."""
    found = [{"id": str(n), "of": of} for n, of in enumerate(("Gr\u00f6\u00dfe", "Gro\u0308\u00dfe ", "Grosse"))]
    for value in ("Gr\u00f6\u00dfe", "Gro\u0308\u00dfe"):
        assert Guards(floors={("of", value): 0.5}).on(found, scale=(0, 1)).floors[0].positions == (0, 1)


@pytest.mark.parametrize(
    ("guards", "message"),
    [
        (Guards(("w99",)), "never_break names 'w99', and no validation example has that id"),
        (Guards(("w1",)), "never_break names 'w1', which is a training example; guards are about validation examples"),
        (Guards(floors={("kind", "lout"): 0.5}), "kind is 'loud', 'quiet'"),
        (Guards(floors={("knd", "loud"): 0.5}), "did you mean 'kind'"),
        (Guards(metrics={"quiet": 0.5}), "metrics names 'quiet', and the score is made by one metric"),
    ],
)
def test_what_is_guarded_must_be_there(guards: Guards, message: str) -> None:
    """Found before anything is asked, with what there is instead."""
    with pytest.raises(DataError, match=message):
        fit(optim.TGD, guards)


def test_an_example_that_is_named_twice_is_guarded_once() -> None:
    """Lists are put together of several; what broke is told once, and counted once."""
    guarded = Guards((WORDS[1], WORDS[0], WORDS[1])).on(rows(*WORDS[:3]))
    assert guarded.never_break == (1, 0)
    assert guarded.broken({0: 1.0, 1: 1.0}, {0: 1.0, 1: 0.0}) == "w1 must never break: 1.000 -> 0.000"


def test_an_example_of_another_set_is_named_as_such() -> None:
    """A near id of a validation example would look like a slip in the name, and guard another one."""
    sets = [[{"id": f"{kind}{n}", "kind": kind, "target": "x"} for n in range(3)] for kind in ("train", "val", "test")]
    others = {"training": sets[0], "test": sets[2]}
    for kind, name in (("training", "train1"), ("test", "test1")):
        said = f"'{name}', which is a {kind} example; guards are about validation examples alone, and they are val0 to"
        with pytest.raises(DataError, match=said):
            Guards((name,)).on(sets[1], others=others)
    with pytest.raises(DataError, match=r"kind is 'val'; guards are .*, and not about test examples"):
        Guards(floors={("kind", "test"): 0.5}).on(sets[1], others=others)
    with pytest.raises(DataError, match="no validation example has that id; did you mean 'val1'"):
        Guards(("val11",)).on(sets[1], others=others)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_without_guards_the_better_text_is_kept(name: str) -> None:
    """So that the refusals below are due to the guards."""
    assert "Shout" in fit(OPTIMIZERS[name], None).best["system"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_example_that_must_never_break(name: str) -> None:
    """Every optimizer minds it, and says what broke."""
    result = fit(OPTIMIZERS[name], Guards((KEPT,)))
    assert result.best == result.seed
    assert any(step.why == f"refused: {KEPT} must never break: 1.000 -> 0.000" for step in result.steps)
    assert not any(step.kept for step in result.steps)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_floor_under_a_slice(name: str) -> None:
    """A slice that would fall below its floor refuses; one that is below it and rises does not."""
    result = fit(OPTIMIZERS[name], Guards(floors={("kind", "quiet"): 0.8}))
    assert result.best == result.seed
    assert any("kind = 'quiet' (1 example) has a floor of 0.8: 1.000 -> 0.000" in step.why for step in result.steps)
    assert "Shout" in fit(OPTIMIZERS[name], Guards(floors={("kind", "loud"): 1.0})).best["system"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_floor_under_one_of_several_metrics(name: str) -> None:
    """What gains on the whole is refused where one of them falls below it; below it before, it may stay there."""
    assert "Shout" in fit(OPTIMIZERS[name], None, both()).best["system"]
    result = fit(OPTIMIZERS[name], Guards(metrics={"quiet": 0.9}), both())
    assert result.best == result.seed
    assert any("the metric 'quiet' has a floor of 0.9: 1.000 -> -1.000" in step.why for step in result.steps)
    assert result.terms == ("the floor of 0.9 under the metric 'quiet' is reached: 1.000 -> 1.000",)
    rising = fit(OPTIMIZERS[name], Guards(metrics={"right": 1.0}), both())
    assert "Shout" in rising.best["system"]
    assert rising.terms == ("the floor of 1 under the metric 'right' is not reached: 0.083 -> 0.917",)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"quite": 0.5}, "the score is made of no such metric; did you mean 'quiet'?"),
        ({"long": 0.5}, "the score is made of no such metric; they are right, quiet"),
        ({"quiet": 2}, "the floor of the metric 'quiet' is 2, and scores run from -1 to 1"),
        ({"right": -0.5}, "the floor of the metric 'right' is -0.5, and scores run from 0 to 1"),
    ],
)
def test_a_floor_under_a_metric_is_on_its_own_scale(metrics: dict[str, float], message: str) -> None:
    """What there is not, and what no mean can be, is told before anything is asked."""
    with pytest.raises(DataError, match=re.escape(message)):
        fit(optim.TGD, Guards(metrics=metrics), both())
    with pytest.raises(ValueError, match="the floor of the metric 'quiet' must be a number, got nan"):
        Guards(metrics={"quiet": float("nan")})


def test_a_floor_under_a_criterion_says_which_in_a_line() -> None:
    """A criterion may be a page; it was called a metric, and stood there whole in each step and in the report."""
    page = "It names:\n- the shop\n" + "- and more " * 20
    loss = nn.Rubric([page, {"criterion": "It lies.", "points": -1}])
    guarded = guarded_by(Guards(metrics={page.strip(): 0.5, "not: It lies.": 1}), rows("a"), loss)
    assert guarded is not None
    one, other = guarded.floors
    assert one.of.startswith("the criterion 'It names: - the shop - and more")
    assert one.of.endswith("…'")
    assert len(one.of) < 100
    assert other.of == "the criterion 'not: It lies.'"


def test_floors_under_criteria_that_begin_alike_are_told_apart() -> None:
    """In a sentence they look the same; what is told of one was the number of the other."""
    begin = "The answer names the customer, and the number of the order as the first line of the mail has it, "
    named = [f"{begin}in English", f"{begin}in German"]
    guards = Guards(metrics=dict.fromkeys(named, 0.9))
    parts = [MetricScores(name, (score,), (0, 1), 1.0, is_criterion=True) for name, score in zip(named, (0.25, 0.75))]
    found = Evaluation(("a",), (0.5,), (None,), {}, parts=tuple(parts))
    tested = standings(guards.floors_on(rows("a"), (0, 1), parts), found, found, "test")
    missed = missed_in_words(tested)
    assert ("0.250 of 0.9 on test" in missed, "0.750 of 0.9 on test" in missed) == (True, True)
    assert len(missed) < 300
    guarded = guards.on(rows("a"), (0, 1), parts)
    scores = [({0: score}, {0: score}) for score in (0.25, 0.75)]
    told = guarded.standing({0: 0.5}, {0: 0.5}, metrics=scores, tested=tested)
    assert [each.rpartition("on test it is not: ")[2] for each in told] == ["0.250 -> 0.250", "0.750 -> 0.750"]


def test_a_floor_under_what_is_no_criterion_is_told_where_criteria_are() -> None:
    loss = nn.Rubric(["It greets.", {"criterion": "It lies.", "points": -1}])
    with pytest.raises(DataError, match=r"names 'It lies'.* of no such metric; did you mean 'not: It lies\.'"):
        guarded_by(Guards(metrics={"It lies": 1}), rows("a"), loss)
    with pytest.raises(DataError, match=r"criteria that all examples share, nn\.Rubric\(\[\.\.\.\]\)"):
        guarded_by(Guards(metrics={"It lies": 1}), rows("a"), nn.Rubric())


def test_what_a_metric_could_not_score_counts_as_its_worst() -> None:
    """On its own scale, and the examples that fell in it are those that edits are tried on."""
    guarded = guarded_by(Guards(metrics={"quiet": 0.5}), rows(*WORDS[:4]), both())
    assert guarded is not None
    assert guarded.positions == (0, 1, 2, 3)
    ones: dict[int, float | None] = dict.fromkeys(range(4), 1.0)
    lost = ones | {2: None}
    told = "the metric 'quiet' has a floor of 0.5: "
    assert guarded.broken(ones, lost, [(ones, lost), (ones, lost)]) == ""
    fell = lost | {1: 0.5}
    assert guarded.broken(ones, ones, [(ones, ones), (ones, fell)]) == f"{told}1.000 -> 0.375, as 1 could not be run"
    assert guarded.culprits(ones, ones, [(ones, ones), (ones, fell)]) == (1, 2)


def test_the_result_says_how_the_best_texts_stand_to_the_guards() -> None:
    """A floor that is not reached was passed over in silence, as was an example that is wrong from the start."""
    guards = Guards((KEPT, "w14"), {("kind", "loud"): 0.9, ("kind", "quiet"): 0.8})
    assert fit(optim.TGD, guards).terms == (
        "the floor of 0.9 under kind = 'loud' (11 examples) is not reached: 0.000 -> 0.000",
        "the floor of 0.8 under kind = 'quiet' (1 example) is reached: 1.000 -> 1.000",
        "of 2 that must never break, w14 scores below 1.000, as it did with the seed prompt",
    )
    (said,) = fit(optim.TGD, Guards(floors={("kind", "loud"): 1.0})).terms
    assert said == "the floor of 1 under kind = 'loud' (11 examples) is reached: 0.000 -> 1.000"
    assert fit(optim.TGD, None).terms == ()


def test_that_scores_vary_where_a_guard_refuses_by_one_run_is_told() -> None:
    """Of a judge that is off by a point in three, a list of fifteen refuses nearly all that is no worse."""
    turn = itertools.count()

    def wobbly(said: str, target: str) -> float:
        return 0.9 * float(said == target) + 0.1 * float(next(turn) % 3 == 0)

    def told(loss: Any) -> list[str]:
        result = fit(optim.TGD, Guards((KEPT,), reruns=0), loss)
        assert any(step.why.startswith("refused: ") for step in result.steps)
        return [each for each in result.terms if "with the same texts" in each]

    assert told(nn.ExactMatch()) == []
    (said,) = told(nn.Metric(wobbly, "is right, in a mood", scale=(0, 1)))
    assert re.fullmatch(
        r"guards refused changes by one run of each example, but of \d examples that were run twice with the same "
        r"texts, \d got another score, so they may have refused changes that are no worse; with reruns=2 an "
        r"example that must never break is run again before it counts as broken",
        said,
    )


def test_that_scores_vary_where_a_floor_refuses_beside_examples_that_are_run_again_is_told() -> None:
    """Such examples are run again before they count as broken, and floors are not."""
    turn = itertools.count()

    def wobbly(said: str, target: str) -> float:
        return 0.9 * float(said == target) + 0.1 * float(next(turn) % 3 == 0)

    def told(guards: Guards) -> list[str]:
        result = fit(optim.TGD, guards, nn.Metric(wobbly, "is right, in a mood", scale=(0, 1)))
        assert any(step.why.startswith("refused: ") for step in result.steps)
        return [each for each in result.terms if each.startswith("floors")]

    assert told(Guards((KEPT,), {("kind", "loud"): 0.1})) == []
    (said,) = told(Guards(("w14",), {("kind", "quiet"): 0.8}))
    assert re.fullmatch(
        r"floors refused changes by one run of each example, but of \d examples that were run twice with the same "
        r"texts, \d got another score, so they may have refused changes that are no worse",
        said,
    )


def test_what_could_not_be_measured_reaches_no_floor() -> None:
    """An answer that is missing is not a right one."""
    guarded = Guards(("a",), {("q", "x"): 0.5}).on([{"id": "a", "q": "x"}, {"id": "b", "q": "x"}])
    (said,) = guarded.standing({0: 1.0, 1: None}, {0: None, 1: None})
    assert said == "the floor of 0.5 under q = 'x' (2 examples) is not reached: 1.000 -> not measured"
    (said,) = guarded.standing({0: 1.0, 1: 1.0}, {0: 1.0, 1: None})
    assert said.endswith("is reached: 1.000 -> 1.000, without 1 that could not be run")
    two = Guards(("a", "b")).on([{"id": "a"}, {"id": "b"}])
    assert two.standing({0: None, 1: 0.5}, {0: 0.5, 1: 0.5}, 1.0) == (
        "of 2 that must never break, b scores below 1.000, as it did with the seed prompt",
        "of 2 that must never break, a scores below 1.000, and could not be run with the seed prompt",
    )


@pytest.mark.parametrize(
    ("split", "best", "says"),
    [
        ("val", 0.95, "the floor of 0.9 under the metric 'safe' is reached on validation: 0.500 -> 0.950"),
        ("test", 0.8, "the floor of 0.9 under the metric 'safe' is not reached on test: 0.500 -> 0.800"),
        ("other", None, "the floor of 0.9 under the metric 'safe' is not reached: 0.500 -> not measured"),
    ],
)
def test_how_texts_stand_to_a_floor_is_printed_with_the_floor(split: Split, best: float | None, says: str) -> None:
    """It was two numbers, and nothing said of what."""
    assert str(Standing("the metric 'safe'", 0.9, split, 8, 0.5, best)) == says


def test_an_example_that_cannot_be_run_counts_as_broken() -> None:
    """What is not known to be right is not kept."""

    def refusing(request: Request) -> Any:
        if "Shout" in request.messages[0].text and request.messages[-1].text == KEPT:
            raise BadRequest("no", status=400)
        return answer(request)

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="p"), model=FunctionModel(refusing))
    three = Objective(program, nn.ExactMatch(), rows(*WORDS[12:]), guards=Guards((KEPT, "w12", "w14")))
    assert three.refusal(("Repeat.",), ("Shout.",)) == f"{KEPT} must never break: it could not be run"
    assert three.refusal(("Repeat.",), ("Repeat.",)) == ""


def test_many_broken_examples_are_told_in_short() -> None:
    """Three by name, and how many more."""
    guarded = Guards(tuple(WORDS[:5])).on(rows(*WORDS[:5]))
    told = guarded.broken(dict.fromkeys(range(5), 1.0), dict.fromkeys(range(5), 0.0))
    assert told.endswith("; and 2 more of them")
    assert told.count("must never break") == 3


def test_only_what_is_not_known_is_run() -> None:
    """What a proposal bought in its race is not paid for again."""
    asked: list[str] = []

    def counting(request: Request) -> Any:
        asked.append(request.messages[-1].text)
        return answer(request)

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="p"), model=FunctionModel(counting))
    objective = Objective(program, nn.ExactMatch(), rows(*WORDS[12:]), guards=Guards((KEPT, "w15"), reruns=0))
    objective.adopt(("Repeat.",))
    with objective.proposal(7):
        objective.matrix([("Repeat.",), ("Shout.",)], [1, 2])
    asked.clear()
    objective.refusal(("Repeat.",), ("Shout.",), 7)
    assert sorted(asked) == ["w15", "w15"]


def test_a_search_keeps_its_guards() -> None:
    """What was right with the seed prompt is right with the best one, whatever was put together on the way, at once."""
    task = simulated_task(rules=8, seed=2, train=48, val=64, interactions=4, sloppiness=0.4)
    program = task.program()
    with use_models(forward=task.model):
        objective = Objective(program, task.loss, task.train, task.val)
        before = objective.scores((task.seed_prompt,), range(64))
        possible = objective.scores((task.optimum_prompt,), range(64))
        right = tuple(row["id"] for row, *both in zip(task.val, before, possible) if both == [1.0, 1.0])
        result = Trainer(guards=Guards(right, reruns=0)).fit(
            program, task.loss, optim.PatchSearch(program.parameters(), lanes=4), task.train, task.val
        )
    assert result.best_val is not None
    after = dict(zip(result.best_val.ids, result.best_val.scores))
    assert all(after[name] == 1.0 for name in right)
    assert any("refused: " in step.why for step in result.steps)
    assert result.best_val.mean > sum(score or 0.0 for score in before) / 64


def test_lost_answers_of_a_slice_count_as_broken() -> None:
    """What had an answer has the worst score without one; what never had any counts for nothing."""
    data = [{"id": f"q{n}", "queue": "b"} for n in range(10)]
    guards = Guards(floors={("queue", "b"): 0.8})
    guarded = guards.on(data)
    right: dict[int, float | None] = dict.fromkeys(range(10), 1.0)
    lost: dict[int, float | None] = dict.fromkeys(range(10))
    told = "queue = 'b' (10 examples) has a floor of 0.8: "
    assert guarded.broken(right, lost | {0: 1.0}) == f"{told}1.000 -> 0.100, as 9 could not be run"
    assert guarded.culprits(right, lost | {0: 1.0}) == tuple(range(1, 10))
    assert guarded.broken(right, right | {3: None}) == ""
    assert guarded.broken(lost | {0: 1.0}, lost | {0: 1.0}) == ""
    assert guarded.broken(lost | {0: 1.0}, lost | {0: 0.5}) == f"{told}1.000 -> 0.500"
    assert guarded.culprits(lost | {0: 1.0}, lost | {0: 0.5}) == (0,)
    assert guarded.broken(right, lost) == f"{told}none could be run"
    assert (
        guards.on(data, scale=(-1.0, 1.0)).broken(right, right | {3: None, 4: None}).startswith(f"{told}1.000 -> 0.6")
    )


def test_what_is_below_a_floor_does_not_look_like_it() -> None:
    """With as many decimals as it takes: a mean of 0.4996 that is told as 0.500 does not say what is wrong with it."""
    found = [{"id": str(n), "kind": "a"} for n in range(2)]
    guarded = Guards(("0",), {("kind", "a"): 0.5}).on(found, (0.0, 1.0))
    assert guarded.broken({0: 0.6, 1: 0.4}, {0: 0.6, 1: 0.3992}) == (
        "kind = 'a' (2 examples) has a floor of 0.5: 0.500 -> 0.4996"
    )
    assert guarded.broken({0: 0.6, 1: 0.4}, {0: 0.5999, 1: 0.9}) == "0 must never break: 0.6000 -> 0.5999"


def test_nobody_is_to_blame_where_nothing_is_broken() -> None:
    """An example of a slice may fall as long as the floor under that holds."""
    found = [{"id": str(n), "kind": "a"} for n in range(2)]
    guarded = Guards((), {("kind", "a"): 0.5}).on(found, (0.0, 1.0))
    assert guarded.culprits({0: 0.6, 1: 0.6}, {0: 0.6, 1: 0.5}) == ()
    assert guarded.culprits({0: 0.6, 1: 0.6}, {0: 0.6, 1: 0.1}) == (1,)
    assert "0.498 -> 0.4996" in guarded.standing({0: 0.6, 1: 0.396}, {0: 0.6, 1: 0.3992})[0]


class Unguarded(optim.Searcher):
    """Takes one text after the other, and asks no guards."""

    def __init__(self, params: Any, *texts: str) -> None:
        super().__init__(params, {})
        self.left, self.best = list(texts), ""

    @property
    def expected(self) -> float:
        return 1.0

    def texts(self) -> tuple[str, ...]:
        return (self.best,)

    def decide(self, objective: optim.Objective) -> optim.Decision | None:
        if not self.left:
            return None
        self.best = self.left.pop(0)
        return optim.Decision(self.steps + 1, "next", kept=True, why="it is next")


class Fussy(optim.Searcher):
    """Runs the seed text twice, and refuses another one by itself."""

    expected = 0.0

    def texts(self) -> tuple[str, ...]:
        return ("Repeat.",)

    def decide(self, objective: optim.Objective) -> optim.Decision | None:
        for repeat in (0, 1):
            objective.scores(self.texts(), range(6), repeat=repeat)
        return None if self.steps else optim.Decision(1, "look", kept=False, why="refused: it is too long for me")


def test_what_a_search_refuses_by_itself_is_no_matter_of_guards() -> None:
    """It was told of a run without any that they may have refused what is no worse."""
    turn = itertools.count()
    wobbly = nn.Metric(lambda said, target: float(next(turn) % 3 == 0), "is right, in a mood", scale=(0, 1))
    assert fit(lambda params: Fussy(params, {}), None, wobbly).terms == ()
    both = nn.Weighted({"mood": wobbly, "right": nn.ExactMatch()})
    (reached,) = fit(lambda params: Fussy(params, {}), Guards(metrics={"mood": 0}), both).terms
    assert "is reached" in reached


def test_a_run_keeps_no_text_of_a_search_of_ones_own_that_the_guards_refuse() -> None:
    """Whether it asks them or not; what it finds after that is looked at beside the last text that they let through."""
    found = fit(lambda params: Unguarded(params, "Repeat it.", "Shout."), Guards(never_break=[KEPT]))
    assert found.best == {"system": "Repeat."}  # "Repeat it." is no better, and longer
    assert [(step.kept, step.why) for step in found.steps] == [
        (True, "it is next"),
        (False, f"refused: {KEPT} must never break: 1.000 -> 0.000"),
    ]
    assert [step.best_val for step in found.steps] == [1.0, 1.0]
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))

    def two(request: Request) -> str:
        """Shouts, or shouts all but the one word."""
        told, text = request.messages[0].text, request.messages[-1].text
        return text.upper() if "Shout" in told and not ("quiet" in told and text == KEPT) else text

    texts = ["Shout.", "Shout, quiet.", "Shout, louder."]
    with use_models(forward=FunctionModel(two)):
        result = Trainer(guards=Guards(never_break=[KEPT])).fit(
            program, nn.ExactMatch(), Unguarded(program.parameters(), *texts), rows(*WORDS[:12]), rows(*WORDS[12:])
        )
    assert result.best == {"system": "Shout, quiet."}
    assert program.system.data == "Shout, quiet."  # type: ignore[union-attr]
    assert [step.kept for step in result.steps] == [False, True, False]


class Asking(Unguarded):
    """Runs its text on all examples, and asks the guards before it goes on from it."""

    def decide(self, objective: optim.Objective) -> optim.Decision | None:
        if not self.left:
            return None
        new, old = (self.left.pop(0),), self.texts()
        objective.scores(new, range(len(objective.val)))
        refusal = objective.refusal(old, new)
        self.best = self.best if refusal else new[0]
        return optim.Decision(self.steps + 1, "next", kept=not refusal, why=refusal or "it is next")


def test_what_a_search_of_ones_own_has_run_is_not_run_again_for_guards() -> None:
    """Else it would be paid for twice, and where answers vary be refused by other ones than the search has seen."""
    runs: list[tuple[str, str]] = []

    def moody(request: Request) -> str:
        """Shouts, and the word that must not break from the second time on."""
        told, text = request.messages[0].text, request.messages[-1].text
        runs.append((told, text))
        return text.upper() if "Shout" in told and (text != KEPT or runs.count((told, text)) > 1) else text

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    search = Asking(program.parameters(), "Shout.")
    search.best = "Repeat."
    with use_models(forward=FunctionModel(moody)):
        result = Trainer(guards=Guards([KEPT], reruns=0)).fit(
            program, nn.ExactMatch(), search, rows(*WORDS[:12]), rows(*WORDS[12:])
        )
    assert (result.best, search.texts()) == ({"system": "Shout."}, ("Shout.",))
    assert [step.kept for step in result.steps] == [True]
    assert len(runs) == len(set(runs)) == 24


def fit_and_test(
    floors: dict[tuple[str, Any], float], words: list[dict[str, Any]], val: list[dict[str, Any]]
) -> TrainResult:
    """A run with a test set, in which shouting is learned."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    with use_models(forward=FunctionModel(answer)):
        trainer = Trainer(batch_size=6, max_steps=2, guards=Guards(floors=floors))
        return trainer.fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), rows(*WORDS[:12]), val, words)


def test_a_floor_that_holds_where_texts_were_chosen_and_not_on_test_is_told() -> None:
    """What guards refuse by is what flatters; a report said that a floor was reached, and of the test set nothing."""
    val = [{**row, "kind": "old" if n < 4 else "new"} for n, row in enumerate(rows(*WORDS[14:24]))]
    kinds = ["old", "old", "old", "old", "new", "new"]
    words = [
        {"id": f"t{n}", "word": f"t{n}", "kind": kind, "target": f"t{n}" if n in (1, 2, 3) else f"T{n}"}
        for n, kind in enumerate(kinds)
    ]
    result = fit_and_test({("kind", "old"): 0.9, ("kind", "new"): 0.5}, words, val)
    assert result.terms == (
        (
            "the floor of 0.9 under kind = 'old' (4 examples) is reached: 0.000 -> 1.000; "
            "on test (4 examples) it is not: 0.750 -> 0.250"
        ),
        (
            "the floor of 0.5 under kind = 'new' (6 examples) is reached: 0.000 -> 1.000; "
            "on test (2 examples) it is: 0.000 -> 1.000"
        ),
    )
    told = [(each.of, each.split, each.examples, each.seed, each.best, each.reached) for each in result.floors]
    assert told == [
        ("kind = 'old'", "val", 4, 0.0, 1.0, True),
        ("kind = 'new'", "val", 6, 0.0, 1.0, True),
        ("kind = 'old'", "test", 4, 0.75, 0.25, False),
        ("kind = 'new'", "test", 2, 0.0, 1.0, True),
    ]
    assert "better" not in str(result)
    missed = "floor not reached: kind = 'old', 0.250 of 0.9 on test"
    assert missed in str(result)


def test_a_slice_that_no_test_example_is_of_is_told() -> None:
    val = [{**row, "kind": "old" if n < 4 else "new"} for n, row in enumerate(rows(*WORDS[14:24]))]
    words = [{"id": f"t{n}", "word": f"t{n}", "kind": "new", "target": f"T{n}"} for n in range(6)]
    result = fit_and_test({("kind", "old"): 0.9}, words, val)
    assert [each.split for each in result.floors] == ["val"]
    assert result.terms[0].endswith("is reached: 0.000 -> 1.000; no test example has that")
