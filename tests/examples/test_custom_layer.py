from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn, ops
from textgrad_engine.testing import FunctionModel

SCRIPT = Path(__file__).parents[2] / "examples" / "custom_layer.py"
MAIL = "From ann@home.example: hello"


@pytest.fixture
def redact() -> Any:
    """The layer that the script defines."""
    return runpy.run_path(str(SCRIPT))["Redact"]


def loss(model: FunctionModel, mail: Any) -> tg.Variable:
    answer = ops.chat_completion(model, [{"role": "user", "content": mail}])
    return ops.exact_match_evaluator(answer, "nothing")[0]


def test_the_stack_is_as_before_when_the_block_fails(redact: Any) -> None:
    """The next call is not redacted."""
    model = FunctionModel(lambda request: "fine")
    with pytest.raises(KeyError), redact():
        raise KeyError
    loss(model, MAIL).data  # noqa: B018
    assert model.requests[0].messages[0].text == MAIL


BATCH = [MAIL, "no sender"]


@pytest.mark.parametrize(
    ("wrap", "argument"),
    [(lambda f: f, MAIL), (func.grad, MAIL), (func.vmap, BATCH), (lambda f: func.vmap(func.grad(f)), BATCH)],
)
def test_no_address_reaches_a_model_in_any_nesting(redact: Any, wrap: Any, argument: Any) -> None:
    """Plain, in grad, in vmap, in both; also with the layer inside of the transform."""

    def answer(request: Any) -> Any:
        return "fine" if request.purpose == "forward" else {"case_1": {"user": "greet"}}

    model = FunctionModel(answer)

    def inside(mail: Any) -> tg.Variable:
        with redact():
            return loss(model, mail)

    with tg.use_models(forward=model):
        with redact():
            wrap(lambda mail: loss(model, mail))(argument).data  # noqa: B018
        wrap(inside)(argument).data  # noqa: B018
    sent = [request.messages[0].text for request in model.requests if request.purpose == "forward"]
    assert "From [address]: hello" in sent
    assert not any("ann@" in text for text in sent)


def test_feedback_reaches_the_original(redact: Any) -> None:
    """What the layer does is recorded."""
    mail = nn.Parameter(MAIL, role="mail")
    model = FunctionModel(lambda r: "fine" if r.purpose == "forward" else {"case_1": {"user": "greet"}})
    with tg.use_models(forward=model), redact():
        loss(model, mail).backward()
    assert [item.data for item in mail.grad] == ["greet"]


def test_the_script_runs(run: Callable[[], str]) -> None:
    """As a user runs it, offline."""
    shown = run()
    assert shown.startswith("I was shown: From [address]: hello\n")
    assert "total               4 operations" in shown
    assert max(map(len, shown.split("\n"))) <= 80


def test_it_is_thirty_lines() -> None:
    """The class, as the documentation promises."""
    lines = SCRIPT.read_text(encoding="utf-8").split("\n")
    first = lines.index("class Redact(Layer):")
    last = lines.index("def main(arguments: Sequence[str] | None = None) -> None:")
    assert last - first <= 30


def test_a_chat_completion_with_tools_is_one_too(redact: Any) -> None:
    """Its texts pass the layer as those of any other."""

    def look_up(word: str) -> str:
        """A word."""
        return word

    model = FunctionModel(lambda request: "fine")
    with redact():
        assert nn.ChatCompletion("{mail}", model=model, tools=[look_up])(MAIL).data == "fine"
    assert model.requests[0].messages[0].text == "From [address]: hello"
