"""What operations put around feedback and edits stands in `prompts/`; a folder of the user's may say it otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn, ops, templates
from textgrad_engine.ops.images import not_shown
from textgrad_engine.testing import ScriptedModel


def on_part_of_a_split() -> str:
    text = tg.Variable("a b", requires_grad=True)
    ops.split(text)[1].backward("no")
    return str(text.grad[0].data)


def on_the_score_of_a_trained_judge() -> str:
    criteria = nn.Parameter("Is it right?", role="criteria")
    model = ScriptedModel([{"score": 0, "explanation": "wrong"}])
    score, _ = ops.judge("4", criteria, model=model, eval_mode=False)
    heard: list[str] = []
    answer = score.grad_fn.next_functions[0][0]  # the judge's answer
    handle = answer.register_prehook(lambda gradients: heard.append(gradients[0].data))
    with tg.use_models(backward=ScriptedModel([{"case_1": {"instructions": "name what counts"}}])), handle:
        score.backward("too strict")
    return heard[0]


def of_a_judge_without_a_reason() -> str:
    _, explanation = ops.judge("4", "Is it right?", model=ScriptedModel([{"score": 0, "explanation": ""}]))
    return str(explanation.data)


def edit_of_a_join() -> str:
    return str(func.jvp(lambda text: ops.join([text, "b"]), ("a",), ("longer",))[1].data)


def edit_of_a_split() -> str:
    return str(func.jvp(lambda text: ops.split(text)[0], ("a b",), ("longer",))[1].data)


def edit_of_a_score() -> str:
    with tg.use_models(forward=ScriptedModel([{"text": "b"}])):
        change = func.jvp(lambda text: ops.exact_match_evaluator(text, "b")[0], ("a",), ("becomes 'b'",))[1]
        return str(change.data)


WORDS: dict[str, tuple[str, Callable[[], str], str]] = {
    "on_part": ("place", on_part_of_a_split, "On part 2 of 2: no"),
    "on_part of a judge": ("place", on_the_score_of_a_trained_judge, "On the score: too strict"),
    "judge_without_reason": (
        "score, low, high",
        of_a_judge_without_a_reason,
        "The judge gave 0 on a scale from 0 to 1, without a reason.",
    ),
    "edit_of_part": ("place", edit_of_a_join, "In part 1 of 2: longer"),
    "share_of_edit": ("place", edit_of_a_split, "What falls on part 1 of 2 of this edit of the whole: longer"),
    "becomes": ("now, then", edit_of_a_score, "becomes 1 instead of 0"),
    "not_shown": ("what", lambda: not_shown({"type": "input_audio"}), "[a recording, not shown here]"),
}


@pytest.mark.parametrize("name", WORDS)
def test_the_words_are_those_of_the_prompt(name: str, tmp_path: Path) -> None:
    """Those that are shipped, and one's own."""
    slots, said, shipped = WORDS[name]
    prompt = name.partition(" ")[0]
    assert said() == shipped
    shown = " ".join(f"{{{{ {slot} }}}}" for slot in slots.split(", "))
    header = f"---\nname: {prompt}\npurpose: mine\nversion: 1\nslots: {slots}\n---\n# User\n"
    (tmp_path / f"{prompt}.md").write_text(f"{header}mine: {shown}\n", encoding="utf-8")
    with templates.use_prompts(tmp_path):
        own: Any = said()
    assert own.startswith("mine: ")
    assert own != shipped
