"""The judge and the critic of free text: they compare with a reference where one is shown, and else stay neutral.

Of a criterion the judge only sees whether the answer has its words.
"""

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


def marks(user: str) -> dict[str, object]:
    r"""Of each criterion whether it is met, in the shape of the format "rubric".

    One with something in quotes is met by an answer that has that, any other by one with half of its longer words.

    Example:
        >>> asked = '<criteria-0a1b2c3d>\n1. It says "on Monday".\n</criteria-0a1b2c3d>\n'
        >>> marks(asked + "<answer-0a1b2c3d>\nWe come on Monday.\n</answer-0a1b2c3d>")["1"]["met"]
        True
    """
    shown = {label: content for _, label, content in blocks(user)}
    answer, found = _plain(shown.get("answer", "")), dict[str, object]()
    for number, text in _CRITERION.findall(shown.get("criteria", "")):
        quoted = [_plain(part) for part in _QUOTED.findall(text)]
        words = quoted or [word for word in _plain(text).split() if len(word) > 3]
        there = [word for word in words if word in answer]
        met = len(there) == len(words) if quoted else 2 * len(there) >= len(words)
        lacking = ", ".join(f'"{word}"' for word in words if word not in there)
        found[number] = {"explanation": f"It lacks {lacking}." if lacking else "It has all of it.", "met": met}
    return found


_CRITERION = re.compile(r"^(\d+)\. (.*(?:\n .*)*)", re.MULTILINE)
_QUOTED = re.compile(r'"([^"]+)"')


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
