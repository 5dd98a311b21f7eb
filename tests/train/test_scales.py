"""Scores that are not between 0 and 1: what is right is what the loss's scale says, and nothing where nobody knows."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn, optim
from textgrad_engine.errors import ScoreError, TruncatedResponse
from textgrad_engine.optim.proposers import Brief, Proposal
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train.shrinking import shrink

OPTIMIZERS: dict[str, Callable[..., optim.Optimizer]] = {
    "TGD": optim.TGD,
    "PatchSearch": optim.PatchSearch,
    "BeamSearch": optim.BeamSearch,
}

LOSSES: dict[str, Callable[[], nn.Module]] = {
    "judge": functools.partial(nn.Judge, "Is it kind?", scale=(1, 5)),
    "metric without a scale": functools.partial(
        nn.Metric, lambda said: 5 if "kindly" in said else 3, "kindness", lambda score: score >= 5
    ),
    "metric with a scale": functools.partial(
        nn.Metric, lambda said: 5 if "kindly" in said else 3, "kindness", scale=(1, 5)
    ),
}
"""All of them give every answer the same middling score at first."""


def respond(request: llm.Request, worst: int = 3) -> Any:
    said = "\n".join(message.text for message in request.messages)
    schema = {} if request.config.response_format is None else request.config.response_format.json_schema
    if request.purpose == "judge":
        return {"score": 5 if "kindly" in said else worst, "explanation": "It is not kind."}
    if request.purpose == "backward":
        return {case: {"system": "Say to be kind."} for case in schema["properties"]}
    if request.purpose == "optimizer":
        if "edits" in schema["properties"]:
            edit = {"op": "add", "line": 1, "text": "Be kind.", "reason": "asked", "feedback": [1]}
            return {"edits": [edit]}
        return {"text": "Answer.\nBe kind.", "reason": "asked"}
    return ("kindly " if "Be kind." in said else "rude ") + request.messages[-1].text


def rows(letter: str, count: int = 16) -> list[dict[str, Any]]:
    return [{"id": f"{letter}{n}", "q": f"question {letter} {n}"} for n in range(count)]


def program() -> nn.Module:
    return nn.ChatCompletion("{q}", system=nn.Parameter("Answer.", role="system prompt"))


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_where_all_scores_are_one_middling_one_better_texts_are_found(name: str, loss: str) -> None:
    """That no score is higher than another does not make them right."""
    here = program()
    with tg.use_models(forward=FunctionModel(respond)):
        result = tg.Trainer(max_steps=3, batch_size=8).fit(
            here, LOSSES[loss](), OPTIMIZERS[name](here.parameters()), rows("t"), rows("v")
        )
    assert "Be kind." in result.best["system"]
    assert result.best_val is not None
    assert result.best_val.mean == 5.0


class Kind:
    """Proposes one line, and shows nothing of what went wrong."""

    async def propose(self, brief: Brief, model: Any, problem: str) -> Proposal:
        return Proposal(f"{brief.text}\nBe kind.", (*brief.origins, None))


def test_a_search_without_feedback_and_shrinking_know_the_scale_of_the_loss() -> None:
    """A race on a scale of 1 to 5 expects differences of that size."""
    here, loss = program(), nn.Judge("Is it kind?", scale=(1, 5))
    with tg.use_models(forward=FunctionModel(respond)):
        search = optim.RandomSearch(here.parameters(), Kind())
        search.step(tg.train.Objective(here, loss, rows("t")))
        assert (search.board.top, search.board.scale) == (5.0, 4.0)
        assert shrink(here, loss, rows("v")).before_val.scale == (1.0, 5.0)


def test_what_a_run_tells_of_lost_answers_is_by_the_scale_of_the_loss() -> None:
    """As `evaluate` tells it: at worst they had scored lowest."""

    def sometimes(request: llm.Request) -> Any:
        if request.purpose == "forward" and request.messages[-1].text.endswith(("v 3", "v 7")):
            raise TruncatedResponse("too long")
        return respond(request)

    here, loss = program(), nn.Judge("Is it kind?", scale=(1, 5))
    with tg.use_models(forward=FunctionModel(sometimes)):
        direct = tg.evaluate(here, rows("v"), loss)
        result = tg.Trainer(max_steps=2).fit(here, loss, optim.PatchSearch(here.parameters()), rows("t"), rows("v"))
    assert result.seed_val is not None
    assert result.comparison is not None
    assert (result.seed_val.scale, result.seed_val.bounds) == ((1.0, 5.0), direct.bounds)
    assert result.comparison.bounds is not None


@pytest.mark.parametrize("kind", [optim.TGD, optim.PatchSearch])
@pytest.mark.parametrize("scale", [(-math.inf, 0.0), (-math.inf, math.inf)])
def test_on_a_scale_without_an_end_what_is_better_is_kept(kind: Any, scale: tuple[float, float]) -> None:
    """Measured by an endless scale, no difference would be one."""
    asked = itertools.count()

    def answer(request: llm.Request) -> Any:
        if request.purpose == "forward":
            return "x" * (1 + request.messages[0].text.count("Be"))
        properties = request.config.response_format.json_schema["properties"]
        if request.purpose == "backward":
            return {case: {"system": "Be nicer."} for case in properties}
        text = f"Be {next(asked)}."
        return {"edits": [{"op": "add", "line": 1, "text": text, "reason": "", "feedback": [1]}]}

    rows = [{"id": f"q{n}", "word": str(n), "target": "xxx"} for n in range(40)]
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Say.", role="system prompt"))
    loss = nn.Metric(lambda got, wanted: -abs(len(got) - len(wanted)), "their lengths", scale=scale)
    with tg.use_models(forward=FunctionModel(answer)):
        result = tg.Trainer(max_steps=2).fit(program, loss, kind(program.parameters()), rows[:20], rows[20:])
    assert result.best_val is not None
    assert result.best_val.mean > -2


class Marked(nn.Module):
    """A loss of a user's own, which says from where to where its scores go."""

    def __init__(self, scale: Any, score: float = 1.0) -> None:
        super().__init__()
        self.scale, self.score = scale, score

    def forward(self, prediction: Any, target: Any) -> Any:
        return self.score * nn.ExactMatch()(prediction, target)


@pytest.mark.parametrize(
    ("scale", "says"),
    [
        ((1, 0), r"the `scale` of the loss Marked: a scale runs from the lowest to the highest score, got \(1, 0\)"),
        (["a", "b"], "the `scale` of the loss Marked: a scale is the lowest and the highest score, such as"),
        ((0, 1, 2), "the `scale` of the loss Marked: a scale is the lowest and the highest score, such as"),
    ],
)
def test_a_scale_of_a_loss_of_ones_own_that_is_none_is_refused_before_anything_is_asked(scale: Any, says: str) -> None:
    """It was passed over without a word, and full marks were what had been seen."""
    here, model = program(), FunctionModel(lambda request: "x")
    said = [{**row, "target": "x"} for row in rows("v")]
    with tg.use_models(forward=model):
        with pytest.raises((TypeError, ValueError), match=says):
            tg.evaluate(here, said, Marked(scale))
        with pytest.raises((TypeError, ValueError), match=says):
            tg.Trainer().fit(here, Marked(scale), optim.TGD(here.parameters()), said, said)
    assert model.requests == []


def test_a_score_that_is_not_on_the_scale_of_its_loss_is_refused() -> None:
    """All examples had the best score, 0.5, where they had 1."""
    here = program()
    said = [{**row, "target": "x"} for row in rows("v")]
    with tg.use_models(forward=FunctionModel(lambda request: "x")):
        assert tg.evaluate(here, said, Marked((0, 5), 5.0)).mean == 5
        assert tg.evaluate(here, said, Marked(0.5)).scale is None  # no scale, though it is called so
        for run in (
            lambda loss: tg.evaluate(here, said, loss),
            lambda loss: tg.Trainer().fit(here, loss, optim.TGD(here.parameters()), said, said),
        ):
            with pytest.raises(ScoreError, match="the loss gave 5, and its `scale` is from 0 to 1; let it say from wh"):
                run(Marked((0, 1), 5.0))
