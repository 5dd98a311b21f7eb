"""Time as a third objective: what counts as the latency of an example, and how far it may decide."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.errors import ServerFailed
from textgrad_engine.llm import CallableModel, Completion, Request, RetryPolicy, resolve
from textgrad_engine.llm.cache import Cache
from textgrad_engine.optim.search.objective import tokens_of
from textgrad_engine.optim.search.race import Race
from textgrad_engine.report import as_json, render
from textgrad_engine.store import read_run
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Evaluation, Objective, Trainer, TrainResult, evaluate
from textgrad_engine.train.front import front_of
from textgrad_engine.train.latency import Stopwatch, latency_change
from textgrad_engine.train.unguided import does_better

from .shouting import OPTIMIZERS, improving

ROWS = [{"id": f"w{n}", "word": f"w{n}", "target": f"W{n}" if n % 2 else f"w{n}"} for n in range(48)]
SLOW, QUICK = 2.0, 0.5
"""Seconds of an answer with a prompt that says to shout, and without."""


def seconds_of(request: Request) -> float:
    noise = random.Random(request.messages[0].text + request.messages[-1].text).uniform(-0.1, 0.1)
    return noise + (SLOW if "Shout" in request.messages[0].text else QUICK)


def answer(request: Request) -> Any:
    """Shouts where that is right, and takes its time for it; no time passes, the answers state it."""
    if request.purpose != "forward":
        return improving(request, "Shout.", "Repeat. Shout.")
    text = request.messages[-1].text
    said = text.upper() if "Shout" in request.messages[0].text and int(text[1:]) % 2 else text
    return Completion(text=said, latency=seconds_of(request))


def program_of(model: Any = None) -> nn.Module:
    return nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"), model=model)


def fit(name: str, weight: float | None, fn: Callable[[Request], Any] = answer, **settings: Any) -> TrainResult:
    program = program_of()
    with use_models(forward=FunctionModel(fn)):
        return Trainer(batch_size=8, max_steps=3, latency_weight=weight, **settings).fit(
            program, nn.ExactMatch(), OPTIMIZERS[name](program.parameters()), ROWS[:16], ROWS[16:]
        )


@pytest.mark.parametrize(
    ("weight", "must_be"), [(-1.0, "at least 0"), (math.inf, "finite"), (math.nan, "a number or None")]
)
def test_a_weight_out_of_range(weight: float, must_be: str) -> None:
    """Said when the Trainer is made."""
    with pytest.raises(ValueError, match=f"latency_weight must be {must_be}, got"):
        Trainer(latency_weight=weight)


def test_an_answer_that_does_not_tell_leaves_its_example_out() -> None:
    """A zero would make it the fastest of all; so would a call that failed."""

    def partly(request: Request) -> Any:
        word = request.messages[-1].text
        return Completion(text=word, latency=0.0 if word == "w1" else 0.25)

    rows = ROWS[:3]
    found = evaluate(program_of(FunctionModel(partly)), rows, nn.ExactMatch(), timed=True)
    assert found.latency == (0.25, None, 0.25)
    assert latency_change(found, found).examples == 2  # type: ignore[union-attr]
    assert evaluate(program_of(FunctionModel(partly)), rows, nn.ExactMatch()).latency == ()


def test_what_counts_is_the_request_that_succeeded() -> None:
    """A retry, its pause and our own queue say nothing about the texts."""
    failed: list[str] = []

    def flaky(request: Request) -> Any:
        if not failed:
            failed.append(request.messages[-1].text)
            raise ServerFailed("later", status=503)
        return Completion(text="w0", latency=1.5)

    model = resolve(FunctionModel(flaky), policy=RetryPolicy(base=0.0), max_in_flight=1)
    found = evaluate(program_of(model), ROWS[:2], nn.ExactMatch(), timed=True)
    assert failed
    assert found.latency == (1.5, 1.5)


def test_a_cached_answer_counts_with_the_seconds_it_took(tmp_path: Path) -> None:
    """Not with the zero of reading it, however often it is read."""
    cache = Cache(tmp_path)

    class Named(FunctionModel):
        cache_key = "latency test"

    for _ in range(3):
        model = resolve(Named(answer), cache=cache)
        found = evaluate(program_of(model), ROWS[:2], nn.ExactMatch(), timed=True)
        assert found.latency == pytest.approx((QUICK, QUICK), abs=0.11)
    cache.close()


def test_the_calls_of_a_chain_add_up_and_those_of_a_judge_do_not() -> None:
    """The sum is exact, so it does not depend on which of them ended first."""

    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            model = FunctionModel(lambda request: Completion(text="x", latency=float(request.messages[-1].text)))
            self.calls = nn.ModuleList([nn.ChatCompletion(text, model=model) for text in ("0.1", "0.2", "0.3")])

        def forward(self, word: str) -> Any:
            first, *others = [call() for call in self.calls]
            for other in others:
                first = first + other
            return first

    judge = nn.Judge("Is it polite?", model=FunctionModel(lambda request: {"explanation": "", "score": 1}))
    found = evaluate(Chain(), ROWS[:1], judge, timed=True)
    assert found.latency == (math.fsum([0.1, 0.2, 0.3]),)


def test_what_an_app_asks_of_models_is_in_its_own_time() -> None:
    """Its seconds have theirs in them."""
    inside = nn.ChatCompletion("{q}", model=FunctionModel(lambda request: Completion(text="x", latency=0.5)))

    def app(messages: Any) -> Completion:
        return Completion(text=inside(q=messages[-1]["content"]).data, latency=2.0)

    found = evaluate(program_of(CallableModel(app)), ROWS[:2], nn.ExactMatch(), timed=True)
    assert found.latency == (2.0, 2.0)


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_of_a_weight_that_no_time_was_measured_for_it_is_said_that_it_decided_nothing(weight: float) -> None:
    """It was said that texts were compared by their time."""

    def untimed(request: Request) -> Any:
        said = answer(request)
        return said.model_copy(update={"latency": 0.0}) if isinstance(said, Completion) else said

    program = program_of(FunctionModel(untimed))
    with use_models(backward=FunctionModel(answer), optimizer=FunctionModel(answer)):
        result = Trainer(max_steps=1, latency_weight=weight, tokens_weight=0.01).fit(
            program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS[:8], ROWS[8:]
        )
    said = " ".join(result.terms)
    assert "no time was measured, as the program's model does not say how long its answers take" in said
    assert "less 0.01 for 1,000 tokens of the texts, so" in said


def test_a_watch_that_saw_no_call_knows_nothing() -> None:
    """A program that asks nobody has no latency."""
    watch = Stopwatch()
    with watch.running():
        pass
    assert watch.seconds is None


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_gain_that_does_not_pay_for_its_time(name: str) -> None:
    """Half a point for one and a half seconds is kept when a second costs a tenth, and not when it costs a point."""
    cheap, dear = fit(name, 0.1), fit(name, 1.0)
    assert "Shout" in cheap.best["system"]
    assert dear.best == dear.seed


@pytest.mark.parametrize("name", ["PatchSearch", "ParetoSearch"])
def test_a_weight_of_zero_changes_no_decision(name: str) -> None:
    """It has the time reported; what is found is what is found without it."""
    plain, timed = fit(name, None), fit(name, 0.0)
    assert timed.best == plain.best
    assert [(step.kept, step.why, step.race) for step in timed.steps] == [
        (step.kept, step.why, step.race) for step in plain.steps
    ]
    assert plain.best_val is not None
    assert timed.best_val is not None
    assert (plain.best_val.latency, len(timed.best_val.latency)) == ((), 32)


def test_the_scores_that_are_reported_stay_plain() -> None:
    """The weight decides, and changes no score; what it decided about is in the race's record."""
    result = fit("PatchSearch", 0.1)
    assert result.best_val is not None
    assert result.best_val.mean == 1.0
    kept = next(step for step in result.steps if step.kept)
    assert kept.race is not None
    assert kept.race.cost == pytest.approx(0.15, abs=0.02)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_which_answer_comes_first_decides_nothing(order: int) -> None:
    """Where the model states its latencies, a search that charges for them is as repeatable as one that does not."""
    drawn = random.Random(order)

    async def shuffled(request: Request) -> Any:
        for _ in range(drawn.randrange(20)):
            await asyncio.sleep(0)
        return answer(request)

    plain, mixed = fit("PatchSearch", 0.1), fit("PatchSearch", 0.1, shuffled)
    assert mixed.best == plain.best
    assert [(step.examples, step.why, step.race) for step in mixed.steps] == [
        (step.examples, step.why, step.race) for step in plain.steps
    ]


def test_noise_in_the_time_decides_no_race() -> None:
    """Times that only vary make a race neither won nor lost; a steady loss of time loses it, and a steady gain wins."""

    def outcome(cost: Callable[[random.Random], float], until: Any = "worse") -> str:
        race, rng = Race([list(range(96))], until=until, glance=None), random.Random(1)
        while batch := race.next():
            for position in batch:
                race.add(position, 1.0, 1.0, cost(rng))
        return str(race.outcome)

    assert outcome(lambda rng: rng.gauss(0.0, 0.2)) == "no difference"
    assert outcome(lambda rng: rng.gauss(0.2, 0.2)) == "worse"
    assert outcome(lambda rng: rng.gauss(-0.2, 0.2)) == "better"
    assert outcome(lambda rng: 0.0) == "no difference"


def test_a_false_win_by_noise_alone_is_rare() -> None:
    """A level of 95% looked at a few times, on a candidate that is as fast: stated, and kept."""
    wins = 0
    for seed in range(200):
        race, rng = Race([list(range(96))]), random.Random(seed)
        while batch := race.next():
            for position in batch:
                race.add(position, 1.0, 1.0, rng.gauss(0.0, 0.3))
        wins += race.outcome == "better"
    assert wins <= 10


def test_the_front_has_the_fast_texts_too(tmp_path: Path) -> None:
    """A longer text that is no better is on it when it is shown to be faster, and off it when it only may be.

    Of two that are as long and as good it has the faster one, whichever is looked at first.
    """
    slow, other, fast, lucky = (
        ("Repeat, and Shout.",),
        ("Repeat, and mind to be brief, and Shout.",),
        ("Repeat, and mind to be quick, and Shout.",),
        ("Repeat it, and Shout.",),
    )

    def timed(request: Request) -> Any:
        text, seconds = request.messages[-1].text, {other[0]: 0.7, fast[0]: 0.4}.get(request.messages[0].text, 1.0)
        seconds += random.Random(request.messages[0].text + text).uniform(-0.2, 0.2)
        return Completion(text=text.upper() if int(text[1:]) % 2 else text, latency=seconds)

    def front(weight: float | None) -> list[Any]:
        objective = Objective(program_of(FunctionModel(timed)), nn.ExactMatch(), ROWS, latency_weight=weight)
        objective.matrix([slow, other, fast, lucky], range(48))
        return [(point.texts["system"], point.latency) for point in front_of(objective, slow)]

    assert front(0.0) == [(fast[0], pytest.approx(0.4, abs=0.1)), (slow[0], pytest.approx(1.0, abs=0.1))]
    assert front(None) == [(slow[0], None)]
    assert tokens_of(other) == tokens_of(fast)


def test_report_folder_and_json_tell_the_time(tmp_path: Path) -> None:
    """With its interval, on the test set where there is one."""
    program = program_of()
    with use_models(forward=FunctionModel(answer)):
        result = Trainer(batch_size=8, max_steps=1, latency_weight=0.0, run_dir=tmp_path / "run").fit(
            program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS[:8], ROWS[8:24], ROWS[24:]
        )
    shown = " ".join(render(result).split())
    said = "test set: 0.49 s -> 2.00 s (slower: +1.47 to +1.54 s, 24 examples)."
    assert f"Time of an example's answers on the {said}" in shown
    assert "Score against length and time" in shown
    assert as_json(result)["test"]["best"]["latency"] == pytest.approx(SLOW, abs=0.1)
    assert [point["latency"] for point in as_json(result)["front"]] == pytest.approx([SLOW, QUICK], abs=0.1)
    found = read_run(tmp_path / "run").result
    assert found is not None
    assert found.front == result.front
    assert found.best_test is not None
    assert found.best_test.latency == result.best_test.latency  # type: ignore[union-attr]
    json.dumps(as_json(result), allow_nan=False)


def test_few_examples_show_no_difference() -> None:
    """Two texts on one example: nothing is claimed, and no interval is made up."""
    old, new = (Evaluation(("a",), (1.0,), ("",), {}, latency=(seconds,)) for seconds in (2.0, 1.0))
    change = latency_change(old, new)
    assert change is not None
    assert (change.verdict, change.interval) == ("not shown", (-math.inf, math.inf))
    assert latency_change(old, Evaluation(("a",), (1.0,), ("",), {})) is None


def claims(kind: str, faster: float = 1.0, n: int = 120) -> float:
    """Of 300 pairs of evaluations, in how many texts are said to be faster or slower that take `faster` times as long.

    Each example has a time of its own, by which the times with both texts are multiplied.
    """
    source = random.Random(kind)

    def spread(sigma: float) -> float:
        return math.exp(source.gauss(0, sigma) - sigma**2 / 2)

    def giant(share: float, size: float) -> float:
        return spread(0.1) * (size if source.random() < share else (1 - share * size) / (1 - share))

    draw = {
        "as one": (lambda: spread(0.3), lambda: spread(0.3)),
        "heavy tails": (lambda: spread(1.0), lambda: spread(1.0)),
        "giants in both": (lambda: giant(0.05, 6), lambda: giant(0.05, 6)),
        "unsteady": (lambda: spread(0.2), lambda: spread(1.0)),
        "very unsteady": (lambda: spread(0.2), lambda: spread(1.5)),
        "giants": (lambda: spread(0.1), lambda: giant(0.05, 6)),
    }[kind]
    ids, ones, found = tuple(map(str, range(n))), (1.0,) * n, 0
    for _ in range(300):
        own = [spread(0.5) for _ in range(n)]
        times = [tuple(each * part() for each in own) for part in draw]
        before, after = (Evaluation(ids, ones, ids, {}, latency=each) for each in times)
        after = replace(after, latency=tuple(faster * (each or 0.0) for each in after.latency))
        verdict = latency_change(before, after).verdict  # type: ignore[union-attr]
        found += verdict == "faster" if faster < 1 else verdict != "not shown"
    return found / 300


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        ("as one", 0.07),
        ("heavy tails", 0.07),
        ("giants in both", 0.09),
        ("unsteady", 0.09),
        ("very unsteady", 0.1),
        ("giants", 0.04),
    ],
)
def test_texts_whose_times_have_another_shape_are_seldom_taken_for_faster(kind: str, most: float) -> None:
    """The mean of both is the same here, and the few examples that make it so for one text are mostly too few.

    Claims in 100, of 500 pairs each with 40, 120 and 300 examples, by a t-interval, and with its longer tail:

        as one           6.0,  5.2,  4.0      5.8, 4.8, 4.0
        heavy tails      4.0,  3.0,  3.4      4.0, 3.0, 3.4
        giants in both   2.8,  6.4,  4.4      2.8, 6.4, 4.4
        unsteady         9.6, 10.0,  7.2      7.4, 7.0, 5.0
        very unsteady   19.4, 14.6, 10.8     13.2, 7.8, 6.6
        giants          20.0, 11.2,  8.2     12.4, 1.2, 2.6

    Seen to be faster by 15, 30, 20 and 25%: as one 52, 95 and 100, now 50, 94 and 100; heavy tails 20, 51 and 86, now
    20, 50 and 85; giants in both 14, 29 and 57, now 14, 29 and 56; unsteady 46, 71 and 88, now 38, 58 and 80. Flipping
    signs gives what the t-interval does. Logs find more where both have one shape (giants in both 63, 96 and 100), and
    claim 84 to 100 times in 100 that what is unsteady is faster.
    """
    assert claims(kind) <= most


def test_what_is_faster_is_seen_to_be() -> None:
    """Where both texts take times of one shape nothing is lost, and where one is unsteady a fifth."""
    assert claims("as one", 0.85) >= 0.85
    assert claims("unsteady", 0.75) >= 0.45


def test_documents_that_are_slow_together_are_no_examples_by_themselves() -> None:
    """Texts that are equally fast, run while the endpoint is more or less busy: claims at most 5 times in 100."""
    source = random.Random(1)
    names = tuple(str(n // 8) for n in range(96))
    ids, ones = tuple(str(n) for n in range(96)), (1.0,) * 96
    claims = {"clusters": 0, "examples": 0}
    for _ in range(200):
        found = []
        for _ in range(2):
            busy = [source.gauss(0, 0.3) for _ in range(12)]
            found.append(tuple(2 + busy[n // 8] + source.gauss(0, 0.3) for n in range(96)))
        for kind, clusters in (("clusters", names), ("examples", ())):
            before, after = (Evaluation(ids, ones, ids, {}, clusters=clusters, latency=times) for times in found)
            claims[kind] += latency_change(before, after).verdict != "not shown"  # type: ignore[union-attr]
    assert claims["clusters"] <= 14
    assert claims["examples"] > 60


def test_the_final_choice_charges_for_time_too() -> None:
    """Texts that won their races must be worth their time over the whole validation set, beside the seed texts."""

    def of(seconds: float, *scores: float) -> Evaluation:
        names = tuple(f"e{n}" for n in range(len(scores)))
        return Evaluation(names, scores, scores, {}, latency=(seconds,) * len(scores))

    seed, best = of(0.5, 0.0, 0.0, 1.0, 1.0), of(2.0, 1.0, 0.0, 1.0, 1.0)
    assert does_better(best, seed)
    assert does_better(best, seed, latency_weight=0.1)
    assert not does_better(best, seed, latency_weight=0.2)
    assert not does_better(best, seed, handicap=0.2, latency_weight=0.1)


def test_equal_means_are_equal_whatever_they_are_rounded_to() -> None:
    """0.1 + 0.2 - 0.3 is not 0 for a computer: no gain, and no loss that would cost the shorter texts their place."""

    def of(*scores: float) -> Evaluation:
        names = tuple(f"e{n}" for n in range(len(scores)))
        return Evaluation(names, scores, scores, {})

    zero = of(0.0, 0.0, 0.0)
    for up in (of(0.1, 0.2, -0.3), of(-0.1, -0.2, 0.3)):
        assert not does_better(up, zero)
        assert does_better(up, zero, ties=True)
