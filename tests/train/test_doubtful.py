"""Examples whose right answer may be wrong: which are named, and from what a run has asked anyway."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train.doubtful import Answer, Doubtful, doubtful_among


def answers(example: str, *said: Any, score: float = 0.0, split: Any = "val") -> list[Answer]:
    """What a text after the other led to."""
    return [Answer(split, example, (f"text {n}",), score, each) for n, each in enumerate(said)]


SOME_ARE_RIGHT = answers("right", "yes", score=1.0)


def ids(*found: list[Answer], limits: Any = None) -> list[str]:
    every = [answer for each in (*found, SOME_ARE_RIGHT) for answer in each]
    return [each.id for each in doubtful_among(every, limits)]


def test_most_texts_must_lead_to_the_same_other_answer() -> None:
    """Three texts at least; one that was right once is none; white space at the ends makes no other answer."""
    assert ids(answers("two", "no", "no"), answers("a", "no", " no\n", "no")) == ["a"]
    assert ids(answers("b", *["no", "no", "no", "maybe", "never"])) == ["b"]
    assert ids(answers("c", *["no", "no", "maybe", "never"])) == []
    once = [*answers("d", *["no"] * 9), Answer("val", "d", ("another",), 1.0, "yes")]
    assert ids(once) == []


def test_a_text_counts_once() -> None:
    """However often it was run on an example, as by the step and by a race."""
    again = [Answer("val", "a", ("the same",), 0.0, "no") for _ in range(5)]
    assert ids(again) == []
    assert ids([*again, *answers("a", "no", "no")]) == ["a"]


def test_the_surest_come_first() -> None:
    """By how many texts led there, then by how few led elsewhere; the two sets may have equal names."""
    found = doubtful_among(
        [
            *answers("a", *["no"] * 3),
            *answers("b", *["no"] * 5),
            *answers("c", *["no"] * 5, "maybe"),
            *answers("a", *["never"] * 4, split="train"),
            *SOME_ARE_RIGHT,
        ],
        None,
    )
    assert [(each.split, each.id, each.said, each.times, each.texts) for each in found] == [
        ("val", "b", "no", 5, 5),
        ("val", "c", "no", 5, 6),
        ("train", "a", "never", 4, 4),
        ("val", "a", "no", 3, 3),
    ]


@pytest.mark.parametrize(
    ("limits", "score", "named"),
    [
        ((0.0, 10.0), 9.0, ["a"]),  # a judge who never gives full marks
        ((0.0, 10.0), 10.0, []),
        (None, 0.5, ["a"]),
        (None, 1.0, []),
    ],
)
def test_right_is_what_has_the_best_score(limits: Any, score: float, named: list[str]) -> None:
    """Where the loss names its scale, that of the scale."""
    assert ids(answers("a", *["no"] * 3, score=score), limits=limits) == named


def test_where_nobody_knows_the_best_score_nothing_is_right() -> None:
    """Scores beyond 0 and 1 that are all equal say nothing."""
    assert doubtful_among(answers("a", *["no"] * 3, score=-4.0), None)[0].id == "a"


def test_answers_that_are_no_texts_are_compared_too() -> None:
    """Several outputs, whatever the order of their names."""
    one, other = {"a": 1, "b": ["x"]}, {"b": ["x"], "a": 1}
    (found,) = doubtful_among([*answers("a", one, other, one), *SOME_ARE_RIGHT], None)
    assert json.loads(found.said) == one
    assert ids(answers("a", one, {"a": 2}, None)) == []


def test_answers_with_names_that_are_no_texts_are_compared_too() -> None:
    """JSON has no such names; an answer that holds itself ends no run either."""
    endless: list[Any] = ["x"]
    endless.append(endless)
    for said in ({"a": "no", 1: 2}, {("x", "y"): 3}, {"a": endless}):
        (found,) = doubtful_among([*answers("a", *[said] * 3), *SOME_ARE_RIGHT], None)
        assert (found.said, found.times) == (repr(said), 3)


def sorter(request: Request) -> Any:
    """Knows a word in capitals where the prompt says so; asks for the next one that is missing."""
    if request.purpose == "backward":
        return feedback_for(request, "Say how to write it.")
    if request.purpose == "optimizer":
        rule = f"Write in capitals {request.messages[-1].text.count('in capitals') + 1}."
        edit = {"op": "add", "line": 1, "text": rule, "reason": "asked for", "feedback": [1]}
        return {"edits": [edit]}
    word = request.messages[-1].text
    known = request.messages[0].text.count("in capitals")
    return word.upper() if int(word[1:]) % 10 < 3 * known else word


def rows(numbers: range, wrong: int) -> list[dict[str, str]]:
    return [{"id": f"w{n}", "word": f"w{n}", "target": f"W{n}" if n != wrong else "W0"} for n in numbers]


TRAIN, VAL = rows(range(20), 4), rows(range(20, 60), 25)


def fit(optimizer: Any, val: Any = VAL, train: Any = TRAIN, **settings: Any) -> tuple[tg.TrainResult, FunctionModel]:
    model = FunctionModel(sorter)
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    trainer = tg.Trainer(max_epochs=8, batch_size=20, **settings)
    with tg.use_models(forward=model):
        result = trainer.fit(program, nn.ExactMatch(), optimizer(program.parameters()), train, val)
    return result, model


@pytest.mark.parametrize("optimizer", [optim.TGD, optim.PatchSearch])
def test_a_run_names_them_for_nothing(optimizer: Any) -> None:
    """A wrong right answer in each set, and those that were wrong for a while are not named."""
    result, _ = fit(optimizer)
    assert result.best_val is not None
    assert result.best_val.mean > 0.9
    found = {(each.split, each.id): each.said for each in result.doubtful}
    assert found == {("val", "w25"): "W25", ("train", "w4"): "W4"}


def test_where_the_training_examples_validate_an_example_is_named_once() -> None:
    """As one of them, with all that was tried on it in either way."""
    result, _ = fit(optim.TGD, TRAIN)
    assert [(each.split, each.id) for each in result.doubtful] == [("train", "w4")]


@pytest.mark.parametrize("optimizer", [optim.TGD, optim.PatchSearch])
def test_sets_that_are_named_by_positions_are_told_apart(optimizer: Any) -> None:
    """Two of equal size have equal names, and are not one set for that."""
    train, val = ([{"word": f"w{n}", "target": f"W{n if n != wrong else 0}"} for n in range(20)] for wrong in (4, 5))
    result, _ = fit(optimizer, val, train=train)
    assert {(each.split, each.id) for each in result.doubtful} == {("train", "4"), ("val", "5")}


class Aside(nn.Module):
    """Says something beside the answer, which of one example is never to be had."""

    def __init__(self) -> None:
        super().__init__()
        self.word = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
        self.aside = nn.ChatCompletion("{word}", system="Aside.")

    def forward(self, word: str) -> Any:
        return {"word": self.word(word=word), "aside": self.aside(word=word)}


@pytest.mark.usefixtures("no_backoff")
def test_an_output_that_is_lost_and_not_scored_counts_an_example_once() -> None:
    """Its minibatch has the score that the loss gave, and no more examples than it has."""

    def answer(request: Request) -> Any:
        if request.messages[0].text == "Aside." and request.messages[-1].text == "w1":
            raise MalformedResponse("gone")
        return sorter(request)

    program, loss = Aside(), nn.OnField(nn.ExactMatch(), "word")
    with tg.use_models(forward=FunctionModel(answer)):
        trainer = tg.Trainer(max_steps=1, batch_size=20)
        result = trainer.fit(
            program, loss, optim.TGD(program.parameters()), [{**each, "target": "W1"} for each in TRAIN], VAL
        )
    assert (result.steps[0].train_mean, result.steps[0].unanswered) == (0.0, 0)


def test_a_run_of_before_is_given_again(tmp_path: Path) -> None:
    """Its result lacks them; what it is played back to has them, and that is no difference."""
    result, _ = fit(optim.TGD, run_dir=tmp_path / "run")
    file = tmp_path / "run" / "result.json"
    body = json.loads(file.read_text(encoding="utf-8"))
    assert [Doubtful(**each) for each in body.pop("doubtful")] == list(result.doubtful)
    file.write_text(json.dumps(body), encoding="utf-8")
    again, model = fit(optim.TGD, run_dir=tmp_path / "run", resume=True)
    assert again.best == result.best
    assert not model.requests


def test_examples_without_a_right_answer_are_left_out() -> None:
    """A judge who never gives full marks says nothing about what is expected, where nothing is."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))

    def answer(request: Request) -> Any:
        return {"explanation": "meh", "score": 0.5} if request.purpose == "judge" else sorter(request)

    plain = [{"word": row["word"]} for row in TRAIN]
    found = []
    for given in (plain, TRAIN):
        with tg.use_models(forward=FunctionModel(answer)):
            optimizer = optim.PatchSearch(program.parameters())
            result = tg.Trainer(max_steps=6).fit(program, nn.Judge("Is it good?"), optimizer, given[:10], given[10:])
        found.append(len(result.doubtful))
    assert found[0] == 0 < found[1]
