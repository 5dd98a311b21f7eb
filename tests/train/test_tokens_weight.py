"""Tokens as a second objective: what a text may cost, and the front of score against tokens."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.llm import Request, tokens
from textgrad_engine.optim.choose import scores_of
from textgrad_engine.optim.search.race import Race
from textgrad_engine.report import as_json, render
from textgrad_engine.store import read_run
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Guards, Objective, Trainer, TrainResult
from textgrad_engine.train.estimate import estimate
from textgrad_engine.train.front import front_of
from textgrad_engine.train.hearing import aims_of

from .shouting import OPTIMIZERS, improving

LONG = "Shout. " + "And mind that every single letter of it is to be said in capitals, from first to last. " * 4
ROWS = [{"id": f"w{n}", "word": f"w{n}", "target": f"W{n}" if n % 2 else f"w{n}"} for n in range(48)]
"""Shouting is right for every second word, and wrong for none: it is only said where it counts."""


def answer(request: Request) -> Any:
    if request.purpose != "forward":
        return improving(request, LONG, f"Repeat. {LONG}")
    text = request.messages[-1].text
    return text.upper() if "Shout" in request.messages[0].text and int(text[1:]) % 2 else text


DEMOS = {"BootstrapDemos": lambda params: optim.BootstrapDemos(params, sets=1)}
"""It writes no text of that length."""


def fit(name: str, weight: float, seed: str = "Repeat.", **settings: Any) -> TrainResult:
    program = nn.ChatCompletion("{word}", system=nn.Parameter(seed, role="system prompt"))
    with use_models(forward=FunctionModel(answer)):
        return Trainer(batch_size=8, max_steps=3, tokens_weight=weight, **settings).fit(
            program, nn.ExactMatch(), (OPTIMIZERS | DEMOS)[name](program.parameters()), ROWS[:16], ROWS[16:]
        )


@pytest.mark.parametrize(("weight", "must_be"), [(-1.0, "at least 0"), (math.inf, "finite"), (math.nan, "a number")])
def test_a_weight_out_of_range(weight: float, must_be: str) -> None:
    """Said when the Trainer is made."""
    with pytest.raises(ValueError, match=f"tokens_weight must be {must_be}, got"):
        Trainer(tokens_weight=weight)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_gain_that_does_not_pay_for_its_tokens(name: str) -> None:
    """Half a point for about eighty tokens is kept when 1000 tokens cost a point, and not when they cost twenty."""
    assert 40 < tokens.count(LONG) < 120
    cheap, dear = fit(name, 1.0), fit(name, 20.0)
    assert "Shout" in cheap.best["system"]
    assert dear.best == dear.seed


def test_the_scores_that_are_reported_stay_plain() -> None:
    """The weight decides, and changes no score."""
    result = fit("PatchSearch", 1.0)
    assert result.seed_val is not None
    assert result.best_val is not None
    assert (result.seed_val.mean, result.best_val.mean) == (0.5, 1.0)
    assert result.comparison is not None
    assert result.comparison.difference == 0.5


@pytest.mark.parametrize("name", ["ParetoSearch", "BeamSearch", "OPRO", "BootstrapDemos"])
def test_a_step_says_that_the_means_it_tells_are_less_what_tokens_cost(name: str) -> None:
    """It said "the best on validation (0.919)" of a text that the report said scored 1.000 there."""
    told = [step.why for step in fit(name, 1.0).steps if re.search(r"\d\.\d{3}", step.why)]
    assert told
    assert all(re.search(r"\d\.\d{3} after costs", why) for why in told)
    assert not any("after costs" in step.why for step in fit(name, 0.0).steps)


def test_a_shorter_text_may_win_though_nothing_gets_better() -> None:
    """With a price on tokens a race needs no example that changed."""
    shorter = Race([list(range(200))], handicap=-0.2)
    while batch := shorter.next():
        for position in batch:
            shorter.add(position, 1.0, 1.0)
    assert shorter.outcome == "better"
    longer = Race([list(range(200))], handicap=0.2, until="worse")
    while batch := longer.next():
        for position in batch:
            longer.add(position, 1.0, 1.0)
    assert longer.outcome == "worse"


def test_without_a_weight_a_race_is_as_ever() -> None:
    """A handicap of 0 changes no decision."""
    race = Race([list(range(40))])
    while batch := race.next():
        for position in batch:
            race.add(position, 1.0, 1.0)
    assert race.outcome == "no difference"


def test_the_front_has_what_no_other_text_beats(tmp_path: Path) -> None:
    """The seed prompt is shortest and the best one scores highest; folder, report and JSON have both."""
    result = fit("TGD", 0.0, run_dir=tmp_path / "run")
    assert [(point.texts, point.score) for point in result.front] == [(result.best, 1.0), (result.seed, 0.5)]
    assert [point.tokens for point in result.front] == [
        tokens.count(each["system"]) for each in (result.best, result.seed)
    ]
    found = read_run(tmp_path / "run").result
    assert found is not None
    assert found.front == result.front
    shown = render(result)
    assert "Score against length, of prompts run on the whole validation set" in shown
    assert f"{result.front[0].tokens}        1.000   best prompt" in shown
    assert [point["score"] for point in as_json(result)["front"]] == [1.0, 0.5]


def test_a_text_that_is_beaten_or_not_run_to_the_end_is_not_on_the_front() -> None:
    """Longer and no better is beaten; of what was run in part nobody knows the mean."""
    model = FunctionModel(answer)
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="p"), model=model)
    objective = Objective(program, nn.ExactMatch(), ROWS[:8])
    texts = [("Repeat.",), ("Repeat it.",), ("Repeat, and Shout.",), ("Shout, and do Repeat it.",)]
    objective.matrix(texts, range(8))
    objective.scores(("Shout.",), range(7))
    assert [(point.texts["system"], point.score) for point in front_of(objective, ("Repeat.",))] == [
        ("Repeat, and Shout.", 1.0),
        ("Repeat.", 0.5),
    ]


def run(search: Any, weight: float, steps: int) -> tuple[Any, FunctionModel]:
    model = FunctionModel(answer)
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Say it.", role="system prompt"))
    made = search(program.parameters())
    made.to_the_end = True
    with use_models(forward=model):
        objective = Objective(program, nn.ExactMatch(), ROWS[:16], ROWS[16:], tokens_weight=weight)
        for _ in range(steps):
            made.step(objective)
    return made, model


def test_the_list_of_opro_is_of_scores_less_what_tokens_cost() -> None:
    """A model that is shown a long text as the best one writes longer ones."""

    def shown(weight: float) -> list[str]:
        _, model = run(lambda params: optim.OPRO(params, rounds=2, per_round=1), weight, 2)
        last = [request for request in model.requests if request.purpose == "optimizer"][-1].messages[-1].text
        return sorted(("Shout.", "Say it."), key=last.index)

    assert shown(0.0) == ["Say it.", "Shout."]
    assert shown(20.0) == ["Shout.", "Say it."]


def test_the_frontier_gives_examples_to_the_cheapest_that_has_them_right() -> None:
    """Without a price the better text drives the seed out; with one, the seed holds what it has right, too."""
    search = lambda params: optim.ParetoSearch(params, batch_size=8, proposals=1)  # noqa: E731
    assert run(search, 0.0, 1)[0]._frontier() == {1: 32}
    assert run(search, 1.0, 1)[0]._frontier() == {0: 16, 1: 16}


def test_a_minibatch_that_is_better_by_less_than_its_tokens_cost() -> None:
    """The child does not come into the population, so nothing is paid for its validation."""
    search, _ = run(lambda params: optim.ParetoSearch(params, batch_size=8, proposals=1), 20.0, 1)
    assert "not better on its minibatch" in search.decided.why
    assert len(search.population.candidates) == 1


@pytest.mark.parametrize("selection", ["rejects", "ucb"])
def test_the_beam_is_chosen_by_scores_less_what_tokens_cost(selection: str) -> None:
    """The bandit puts the short text first where the long one does not pay."""
    search = lambda params: optim.BeamSearch(params, rounds=1, batch_size=8, beam=2, selection=selection)  # noqa: E731
    cheap, dear = (run(search, weight, 1)[0] for weight in (1.0, 20.0))
    assert "Shout" in cheap.texts()[0]
    assert dear.texts() == ("Say it.",)


def test_the_expected_score_stays_plain() -> None:
    """A price decides; it is no part of the score that a run tells."""
    search, _ = run(lambda params: optim.ParetoSearch(params, batch_size=8, proposals=1), 1.0, 1)
    assert search.expected == 1.0


def test_the_candidates_of_a_step_are_chosen_by_scores_less_what_tokens_cost() -> None:
    """TGD with several candidates looks at the price as well."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Say it.", role="p"), model=FunctionModel(answer))
    (parameter,) = program.parameters()
    candidates = [{parameter: "Shout. Say it."}, {parameter: f"Shout. Say it. {LONG}"}]
    for weight in (0.0, 1.0):
        objective = Objective(program, nn.ExactMatch(), ROWS, tokens_weight=weight)
        short, long = scores_of(objective, candidates, ())
        assert (short == long) is (weight == 0.0)


def test_an_example_that_never_answers_takes_nobody_off_the_front() -> None:
    """Texts are told by the examples that the seed texts answered; one that lost another of these is not on it."""

    def losing(request: Request) -> Any:
        system, word = request.messages[0].text, request.messages[-1].text
        if word == "w3" or (word == "w5" and "loudly" in system):
            raise ContentFiltered("withheld")
        return answer(request)

    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="p"), model=FunctionModel(losing))
    objective = Objective(program, nn.ExactMatch(), ROWS[:8])
    objective.scores(("Repeat.",), range(4))
    assert front_of(objective, ("Repeat.",)) == ()
    objective.matrix([("Repeat.",), ("Repeat, loudly, and Shout.",)], range(8))
    objective.scores(("Repeat, and Shout.",), [n for n in range(8) if n != 3])
    assert [(point.texts["system"], point.score) for point in front_of(objective, ("Repeat.",))] == [
        ("Repeat, and Shout.", 1.0),
        ("Repeat.", 4 / 7),
    ]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"weight": 0.5}, "less 0.5 for 1,000 tokens of the texts, so"),
        ({"weight": 0.0, "latency_weight": 0.25}, "less 0.25 for a second of an answer, so"),
        (
            {"weight": 2, "latency_weight": 3},
            "less 2 for 1,000 tokens of the texts and 3 for a second of an answer, so",
        ),
    ],
)
def test_the_result_says_what_the_score_was_charged_with(settings: dict[str, Any], told: str) -> None:
    """A text with a higher score stood beside the best one, and nothing said why it was not that."""
    result = fit("TGD", **settings)
    assert told in result.terms[0]
    assert told in " ".join(render(result).split())
    assert as_json(result)["terms"] == [result.terms[0]]
    assert fit("TGD", 0.0).terms == ()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_whoever_proposes_a_text_is_told_what_counts_besides_its_score(name: str) -> None:
    """A line that does not pay for its length was proposed, run and refused, and proposed again, as nobody had said."""
    told: list[str] = []

    def asked(request: Request) -> Any:
        if request.purpose == "optimizer":
            told.append(request.messages[-1].text)
        return answer(request)

    def told_with(**settings: Any) -> list[str]:
        told.clear()
        program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
        with use_models(forward=FunctionModel(asked)):
            trainer = Trainer(batch_size=8, max_steps=3, **settings)
            trainer.fit(program, nn.ExactMatch(), OPTIMIZERS[name](program.parameters()), ROWS[:16], ROWS[16:])
        assert told
        return told[:]

    floors = {("word", "w17"): 0.5}
    for text in told_with(tokens_weight=0.05, latency_weight=0.01, guards=Guards(floors=floors)):
        assert text.count("each 1,000 tokens of the text cost it 0.05 of its score") == 1
        assert text.count("each second that an answer takes costs the text 0.01 of its score") == 1
        assert text.count("The mean score of cases with word = 'w17' must be 0.5 or more") == 1
    for text in told_with(latency_weight=0, guards=Guards(never_break=["w17"])):
        assert not re.search("cost|w17.*must|must be", text)


def test_floors_under_metrics_are_told_too_and_what_is_told_is_estimated() -> None:
    """Each in a line of its own, whatever the names hold; the estimate of a step counts the words."""
    guards = Guards(metrics={"safe\n- and obey": 0.95})
    (told,) = aims_of(Trainer(guards=guards))
    assert told.startswith("The mean of 'safe - and obey' must be 0.95 or more: a text with which it falls below ")
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    for make in (optim.TGD, optim.PatchSearch):
        optimizer, inputs = make(program.parameters()), []
        for weight in (0.0, 0.05):
            trainer = Trainer(batch_size=8, max_steps=1, tokens_weight=weight)
            found = estimate(trainer, program, nn.ExactMatch(), optimizer, ROWS[:16], ROWS[16:])
            inputs.append(found.input_tokens["optimizer"].high / found.calls["optimizer"].high)
        assert inputs[1] - inputs[0] > 20


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_mean_of_nothing_is_told_without_a_sign(name: str) -> None:
    """A wrong answer less what a few tokens cost is just below 0, and three decimals of that are those of 0."""
    rows = [{"word": f"w{n}", "target": f"W{n}"} for n in range(1, 25, 2)]
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    with use_models(forward=FunctionModel(answer)):
        trainer = Trainer(batch_size=4, max_steps=3, tokens_weight=0.01)
        result = trainer.fit(program, nn.ExactMatch(), OPTIMIZERS[name](program.parameters()), rows[:6], rows[6:])
    assert result.steps
    assert not [step.why for step in result.steps if "-0.000" in step.why]
