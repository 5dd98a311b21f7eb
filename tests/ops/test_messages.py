"""`Plan.given`: what one call is asked about, apart from what it is told."""

from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine import Variable, nn, use_models
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
