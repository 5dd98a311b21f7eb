"""What changed in a text, as the report prints it: short enough to read, and it says what it leaves out."""

from __future__ import annotations

from typing import Any

from textgrad_engine import nn, use_models
from textgrad_engine.llm import Request
from textgrad_engine.optim import TGD, Evidence, Origin
from textgrad_engine.report import render
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Trainer


def test_many_examples_and_long_feedback_are_cut_and_counted(changed: Any) -> None:
    """A line that fifty tickets asked for does not fill the screen; what is left out is said."""
    many = tuple(Evidence(f"feedback {n} " + "long " * 100, tuple(f"t{k}" for k in range(n, n + 12))) for n in range(9))
    text = render(changed(origins={"system": [None, None, Origin(1, "r", many)]}))
    assert "t0, t1, t2, t3, t4, t5, t6, t7 and 4 more: feedback 0" in text
    assert "and 6 more pieces of feedback" in text
    assert "…" in text


def test_what_lines_beside_each_other_have_in_common_is_told_once(changed: Any) -> None:
    """Solved examples are one edit of many lines, each of which was told what all of them are."""
    best = "Sort the mail.\nBe brief.\nAnswer.\nGo on.\nExample 1\nA: b"
    shown, other = Origin(1, "shows solved examples", ()), Origin(1, "nobody knew", ())
    text = render(changed(best={"system": best}, origins={"system": [None] * 3 + [other, shown, shown]}))
    assert "+ Example 1\n  + A: b\n      step 1: shows solved examples (cites no feedback)\n" in text
    assert "+ Go on.\n      step 1: nobody knew (cites no feedback)\n" in text


def test_unchanged_lines_far_from_a_change_are_counted_only(changed: Any) -> None:
    """A long prompt with one new line shows that line."""
    seed = "\n".join(f"line {n}" for n in range(40))
    text = render(changed(seed={"system": seed}, best={"system": seed + "\nnew"}, origins={}, steps=()))
    assert "(38 lines as before)" in text
    assert "line 37\n" not in text
    assert "line 38\n    line 39\n  + new" in text


def test_what_a_rewrite_was_asked_for_is_told_once_behind_its_lines() -> None:
    """All of them answer the same feedback; each stands beside the line that it was."""

    def answer(request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            return {"text": "letters: shout these\nwords: shout them\nnames: shout those", "reason": "asked"}
        prompt, word = (message.text for message in request.messages)
        return word.upper() if "shout" in prompt else word

    rows = [{"word": word, "target": word.upper()} for word in ("ab", "cd", "ef", "gh")]
    seed = nn.Parameter("letters: repeat these\nwords: repeat them\nnames: repeat those", role="system prompt")
    program = nn.ChatCompletion("{word}", system=seed, model=FunctionModel(answer))
    optimizer = TGD(program.parameters(), mode="rewrite", model=FunctionModel(answer))
    with use_models(backward=FunctionModel(answer)):
        result = Trainer(batch_size=4).fit(program, nn.ExactMatch(), optimizer, rows, rows)
    lines = [line.strip() for line in render(result).split("\n")]
    start = lines.index("- letters: repeat these")
    assert lines[start : start + 8] == [
        "- letters: repeat these",
        "+ letters: shout these",
        "- words: repeat them",
        "+ words: shout them",
        "- names: repeat those",
        "+ names: shout those",
        "step 1: asked",
        "0, 1, 2, 3: Say to shout.",
    ]
