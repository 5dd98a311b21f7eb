"""The front of score, metrics and tokens: what may stand on it."""

from __future__ import annotations

from typing import Any

from textgrad_engine import nn, use_models
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Guards, Objective, shrink
from textgrad_engine.train.front import front_of

ROWS = [{"id": f"w{number}", "word": f"w{number}", "target": f"W{number}"} for number in range(12)]
GUARDS = Guards(never_break=("w0",))
SEED, KEEPS, BREAKS = "FIRST", "Say FIRST, and HALF of the others.", "Say ALL others."


def answer(request: Request) -> Any:
    text, word = request.messages[0].text, request.messages[-1].text
    number = int(word[1:])
    right = "FIRST" in text if number == 0 else "ALL" in text or ("HALF" in text and number % 2)
    return word.upper() if right else word


def program(text: str) -> nn.ChatCompletion:
    return nn.ChatCompletion("{word}", system=nn.Parameter(text, role="system prompt"))


def test_texts_that_guards_refuse_are_not_on_it() -> None:
    """Who takes a text from the front takes one that may be used; nothing is run to find out."""
    fronts = []
    for guards in (None, GUARDS):
        objective = Objective(program(SEED), nn.ExactMatch(), ROWS, guards=guards)
        model = FunctionModel(answer)
        with use_models(forward=model):
            objective.matrix([(SEED,), (KEEPS,), (BREAKS,)], range(len(ROWS)))
            asked = len(model.requests)
            fronts.append([point.texts["system"] for point in front_of(objective, (SEED,))])
        assert len(model.requests) == asked
    assert fronts == [[BREAKS, SEED], [KEEPS, SEED]]


def test_shorter_texts_that_guards_refuse_are_not_on_it() -> None:
    """They were raced and refused, so nobody is told what they would save."""
    fronts = []
    for guards in (None, GUARDS):
        with use_models(forward=FunctionModel(answer)):
            result = shrink(program("Say FIRST.\nSay ALL."), nn.ExactMatch(), ROWS, guards=guards, doubt=0.99)
        fronts.append([point.texts["system"] for point in result.front])
    assert "Say ALL." in fronts[0]
    assert "Say ALL." not in fronts[1]


def loud(said: str, _word: str) -> float:
    return float(said.isupper())


def brief(said: str, _word: str) -> float:
    return float(len(said) < 4)


def test_each_of_several_metrics_counts_by_itself() -> None:
    """Whoever would weigh them otherwise finds a text: one that is worse on the whole, and best by a metric."""

    def says(request: Request) -> str:
        text, word = request.messages[0].text, request.messages[-1].text
        loudly = word.upper() if "LOUD" in text else word
        return loudly if "BRIEF" in text and int(word[1:]) % 4 else loudly + "!" * 4

    texts = [("Say it.",), ("Say it BRIEF.",), ("Say it BRIEF, please.",), ("Say it LOUD for once.",)]
    metrics = {"loud": nn.Metric(loud, "is loud", scale=(0, 2)), "brief": nn.Metric(brief, "is brief", scale=(0, 1))}
    objective = Objective(program("Say it."), nn.Weighted(metrics, {"loud": 1, "brief": 3}), ROWS)
    with use_models(forward=FunctionModel(says)):
        objective.matrix(texts, range(len(ROWS)))
    found = front_of(objective, ("Say it.",))
    assert [point.texts["system"] for point in found] == ["Say it LOUD for once.", "Say it BRIEF.", "Say it."]
    assert [point.metrics for point in found] == [
        {"loud": 1.0, "brief": 0.0}, {"loud": 0.0, "brief": 0.75}, {"loud": 0.0, "brief": 0.0},
    ]  # fmt: skip
    assert [point.score for point in found] == [0.125, 0.5625, 0.0]


def test_of_one_metric_there_is_the_score_alone() -> None:
    """The same twice would be a column that tells nothing."""
    objective = Objective(program(SEED), nn.Weighted({"right": nn.ExactMatch()}), ROWS)
    with use_models(forward=FunctionModel(answer)):
        objective.matrix([(SEED,), (KEEPS,)], range(len(ROWS)))
    assert [point.metrics for point in front_of(objective, (SEED,))] == [{}, {}]


def test_criteria_are_no_objectives_of_their_own() -> None:
    """Ten of them would leave nearly all texts on the front; what each gave is told, and the score is compared."""

    def says(request: Request) -> Any:
        if request.purpose == "judge":
            answer = request.messages[-1].text.partition("<answer-")[2]
            return {str(n): {"explanation": "", "met": word in answer} for n, word in ((1, "LOUD"), (2, "BRIEF"))}
        return request.messages[0].text

    objective = Objective(program("Say it."), nn.Rubric(["It is loud.", "It is brief."]), ROWS)
    with use_models(forward=FunctionModel(says)):
        objective.matrix([("Say it.",), ("LOUD",), ("BRIEF and so on",)], range(len(ROWS)))
    found = front_of(objective, ("Say it.",))
    assert [(point.texts["system"], point.metrics) for point in found] == [("LOUD", {})]
    known = objective.evaluation(("BRIEF and so on",))
    assert [(part.name, part.mean) for part in known.parts] == [("It is loud.", 0.0), ("It is brief.", 1.0)]
