"""The text itself is what is to be right: a solution, code that its tests judge, an answer that a critic looks at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, ops, optim
from textgrad_engine.testing import FunctionModel, ScriptedModel

NOT_GENERAL = "that what you write be general is not asked of this text"


def asked(model: ScriptedModel) -> str:
    """What the optimizer's model was asked last."""
    return [request.messages[-1].text for request in model.requests if request.purpose == "optimizer"][-1]


def edit(text: str) -> dict[str, object]:
    return {"edits": [{"op": "replace", "line": 1, "text": text, "reason": "wrong", "feedback": [1]}]}


def failing(code: str) -> tuple[float, str]:
    return 0.0, "double(2) == 4: AssertionError"


CODE = "def double(n): return f'{n}'"
LOSSES: dict[str, tuple[Callable[[], Callable[..., tg.Variable]], list[dict[str, object]]]] = {
    "metric": (lambda: nn.Metric(failing, "its tests"), []),
    "exact match": (lambda: lambda text: nn.ExactMatch()(text, "4"), []),
    "text loss": (lambda: nn.TextLoss("Right?"), [{"nothing_wrong": False, "criticism": "double(2) is 4."}]),
    "judge": (lambda: nn.Judge("Right?"), [{"score": 0, "explanation": "double(2) is 4."}]),
}


@pytest.mark.parametrize("mode", ["patch", "rewrite"])
@pytest.mark.parametrize("name", LOSSES)
def test_an_answer_may_be_put_right_concretely(name: str, mode: str) -> None:
    """The rules for prompts (say what is general, keep placeholders) would forbid what the feedback asks for."""
    loss, judged = LOSSES[name]
    better = "def double(n): return f'{2 * n} {unit}'"
    model = ScriptedModel([*judged, edit(better) if mode == "patch" else {"text": better, "reason": "wrong"}])
    answer = nn.Parameter(CODE, role="solution")
    optimizer = optim.TGD([answer], mode=mode)  # type: ignore[arg-type]
    with tg.use_models(forward=model):
        loss()(answer).backward()
        optimizer.step()
    assert answer.data == better
    assert NOT_GENERAL in asked(model)
    assert "placeholder" not in asked(model)


def test_the_text_is_not_quoted_once_more() -> None:
    """It may be long, and stands above its feedback with numbers before its lines."""
    model = ScriptedModel([edit("def double(n): return 2 * n")])
    answer = nn.Parameter(CODE, role="solution")
    nn.Metric(failing, "its tests")(answer).backward()
    with tg.use_models(optimizer=model):
        optim.TGD([answer]).step()
    assert asked(model).count(CODE) == 1
    assert "Got:\nthe text above" in asked(model)


def prompted(answer: tg.Variable) -> tg.Variable:
    """An answer that a model gave by the text."""
    chat = nn.ChatCompletion("Go.", system=answer)
    return chat()


@pytest.mark.parametrize(
    "made",
    [
        prompted,
        lambda text: ops.straight_through("4", text, role="result"),
        lambda text: ops.format("{code}\nprint(double(2))", code=text),
        lambda text: ops.field(text, "code", default="none"),
    ],
    ids=["a model's answer", "what code made of it", "a longer text", "a field"],
)
def test_what_is_made_of_a_text_is_not_the_text(made: Callable[[tg.Variable], tg.Variable]) -> None:
    """A prompt stays general, and its slots stay, whatever its answers are scored by."""

    def model(request: tg.llm.Request) -> object:
        if request.purpose == "backward":
            return {"case_1": {"system": "Say 4."}}
        return edit("Double {n}, not {m}.") if request.purpose == "optimizer" else "2"

    asked_of = FunctionModel(model)
    prompt = nn.Parameter("Double {n}.", role="system prompt")
    with tg.use_models(forward=asked_of):
        nn.Metric(failing, "its tests")(made(prompt)).backward()
        optimizer = optim.TGD([prompt])
        optimizer.step()
    assert prompt.data == "Double {n}."
    assert "the placeholder {m} is new" in optimizer.changes[0].problem
    last = asked_of.requests[-1].messages[-1].text
    assert NOT_GENERAL not in last
    assert "These placeholders stay, and no others come in: {n}." in last


def test_words_of_a_user_s_own_say_nothing_of_what_the_text_is() -> None:
    """They may come from a critic of his own; with them among the feedback, the rules for prompts hold."""
    model = ScriptedModel([edit("Double {n} and {m}."), edit("Double {n} and {m}.")])
    prompt = nn.Parameter("Double {n}.", role="system prompt")
    nn.Metric(failing, "its tests")(prompt).backward()
    (prompt + "").backward("Say 4.")
    with tg.use_models(optimizer=model):
        optim.TGD([prompt]).step()
    assert prompt.data == "Double {n}."
    assert NOT_GENERAL not in asked(model)


def test_a_model_s_answer_becomes_a_parameter() -> None:
    """As PyTorch makes one of a tensor; the answer itself is named with the repair, as TextGrad trains it."""
    system = nn.Parameter("Solve.", role="system prompt")
    answer = nn.ChatCompletion("{question}", system=system, model=ScriptedModel(["4"]), role="solution")(
        question="2+2?"
    )
    with pytest.raises(
        TypeError, match=r"is a result, not a leaf.*make a leaf of it: answer = nn\.Parameter\(answer\)"
    ):
        optim.TGD([answer])
    solution = nn.Parameter(answer)
    assert (solution.data, solution.role, solution.is_leaf, solution.requires_grad) == ("4", "solution", True, True)
    assert nn.Parameter(answer, role="draft").role == "draft"
    nn.Metric(failing, "its tests")(solution).backward()
    assert (len(solution.grad), system.grad) == (1, [])
