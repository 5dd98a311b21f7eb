"""The judge and the critic of free text: they compare with a reference where one is shown, and else stay neutral."""

from __future__ import annotations

import re

from textgrad_engine.llm.simulated.reading import blocks

_SCALE = re.compile(r"scale runs from (-?\d+(?:\.\d+)?) \(worst\) to (-?\d+(?:\.\d+)?) \(best\)")


def judge(user: str) -> dict[str, object]:
    """Score and explanation, in the shape of the format "judge"."""
    match = _SCALE.search(blocks(user)[-1][0])
    low, high = (float(match[1]), float(match[2])) if match else (0.0, 1.0)
    answer, reference = _answer_and_reference(user)
    if reference is None:
        return {
            "score": _number((low + high) / 2),
            "explanation": "No reference answer was shown, so there is nothing to compare the answer with.",
        }
    if _plain(answer) == _plain(reference):
        return {"score": _number(high), "explanation": ""}
    partly = _plain(reference) in _plain(answer)
    return {"score": _number((low + high) / 2 if partly else low), "explanation": _difference(answer, reference)}


def text_loss(user: str) -> dict[str, object]:
    """What is wrong with an answer, in the shape of the format "criticism"."""
    answer, reference = _answer_and_reference(user)
    if reference is None:
        said = "It is not clear that the answer does what was asked; nothing is shown to compare it with."
    else:
        said = "" if _plain(answer) == _plain(reference) else _difference(answer, reference)
    return {"nothing_wrong": not said, "criticism": said}


def _answer_and_reference(user: str) -> tuple[str, str | None]:
    shown = {label: content for _, label, content in blocks(user)}
    return shown.get("answer", ""), shown.get("reference")


def _difference(answer: str, reference: str) -> str:
    return f'The answer is "{_short(answer)}", but it should be "{_short(reference)}".'


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).strip(" .\"'`")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value
