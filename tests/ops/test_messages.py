"""`Plan.given`: what one call is asked about, apart from what it is told."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine import Variable, func, nn, ops, use_models
from textgrad_engine.ops.planning import plan_of
from textgrad_engine.testing import ScriptedModel
from textgrad_engine.train import Objective

PROMPT = Variable("Sort {mail}.", role="prompt", requires_grad=True)
FOUND = Variable("a passage", role="passage")
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def given(content: Any, inputs: dict[str, Any] | None = None, role: str = "user") -> list[tuple[str, str]]:
    plan, values = plan_of([{"role": role, "content": content}], inputs or {})
    return plan.given(values, [at for at, value in enumerate(values) if value is PROMPT])


@pytest.mark.parametrize(("content", "inputs", "expected"), [
    ("The mail: {mail}", {"mail": "My {bill}?"}, [("mail", "My {bill}?")]),
    ("The mail: My bill?", {}, [("user", "The mail: My bill?")]),
    (PROMPT, {"mail": "My bill?"}, [("mail", "My bill?")]),
    ([PROMPT, "\n\nIn ", FOUND, "\n"], {}, [("user", "In a passage")]),
    (["Found: ", FOUND, "\nMail: {mail}"], {"mail": 7}, [("mail", "7"), ("user", "a passage")]),
    ("{rules} {mail}", {"rules": PROMPT, "mail": "hi"}, [("mail", "hi")]),
    ([{"type": "text", "text": "See {mail}"}, IMAGE], {"mail": "hi"}, [("mail", "hi")]),
    ([{"type": "text", "text": "See this."}, IMAGE], {}, [("user", "See this.\n[an image, not shown here]")]),
    ([PROMPT, " Found: a passage"], {"mail": "hi"}, [("mail", "hi"), ("user", "Found: a passage")]),
    (PROMPT, {}, []),
])  # fmt: skip
def test_slots_are_shown_by_name_and_other_messages_by_their_role(content: Any, inputs: Any, expected: Any) -> None:
    """Neither the prompt, wherever it stands, nor the template; slots in values are text."""
    assert given(content, inputs) == expected


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_prompt_is_told_and_not_given(role: str) -> None:
    """Also one that is not trained, and whatever is in it."""
    assert given(["Answer from this: ", FOUND], role=role) == []


def test_what_a_judge_marks_is_given_to_it() -> None:
    """By name, without its criteria, and without the target where there is none."""

    class Marks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.judge = nn.Judge(nn.Parameter("Be strict.", role="criteria"), eval_mode=False)

        def forward(self, answer: str) -> Any:
            return self.judge(Variable(answer, role="answer"))

    objective = Objective(Marks(), nn.Metric(lambda mark: mark, "the mark"), [{"answer": "Rome"}])
    with use_models(forward=ScriptedModel(['{"explanation": "Good.", "score": 1}'])):
        (run,) = objective.runs(("Be strict.",), [0])
    assert run is not None
    assert [(each.texts, each.given) for each in run.asked] == [((0,), (("prediction", "Rome"),))]


class Thing:
    """Has no text of its own."""


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (Thing(), "a value of the type Thing, which is no text; write it as one"),
        ({"a", "b"}, "a value of the type set, which is no text; write it as one"),
        (["Sort: ", {"a", "b"}], "a value of the type set, which is no text"),
        (b"x", r"a value of the type bytes, .* of an image, data\.image_part"),
        (["Sort: ", None], r"None, as where a function has no `return`; give '' for nothing"),
        (["Sort: ", [Thing(), "a"]], "a value of the type Thing"),
        ([lambda: "a"], "a value of the type function"),
    ],
)
def test_what_is_no_text_is_no_content(content: Any, says: str) -> None:
    """An address, or a set in an order of its own, would be in the request: no cache and no `resume` knew it again."""
    with pytest.raises(TypeError, match=rf"^the content of the user message has {says}"):
        given(content)


@pytest.mark.parametrize(
    "content", [3, 2.5, True, datetime.date(2026, 7, 5), ["a", 3], ("a", "b"), [["a", "b"], "c"], Path("notes.txt")]
)
def test_what_is_written_in_one_way_is_content(content: Any) -> None:
    """As it is in a slot."""
    model = ScriptedModel(["yes", "yes"])
    assert "yes" in ops.chat_completion(model, [{"role": "user", "content": content}]).data
    assert model.requests[0].messages[0].text in {"3", "2.5", "True", "2026-07-05", "a3", "ab", "ac", "notes.txt"}


def test_a_variable_in_a_content_is_not_read_by_its_check() -> None:
    """It may be pending, or a different one for each example."""
    system = nn.Parameter("Repeat.", role="system prompt")

    def asked(word: Variable) -> Variable:
        message = {"role": "user", "content": [[word, "b"], word]}
        return ops.chat_completion(None, [{"role": "system", "content": [system]}, message])

    with use_models(forward=ScriptedModel(["1", "2", "3", "4"])):
        assert len(func.vmap(asked)([Variable("x"), Variable("y")]).data) == 2
