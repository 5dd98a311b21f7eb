"""Requests that are not this library's: what other optimizers ask a critic or a proposer, read by what it shows.

GEPA's reflection shows the instructions between fences, then examples with inputs, outputs and feedback, and wants new
instructions between fences (gepa 0.1, arXiv 2507.19457). TextGrad's backward engine is shown one conversation and an
objective and answers in prose; its optimizer is shown conversations with feedback and answers between tags (textgrad
0.1, arXiv 2406.07496). A request with cases and feedback in other words is read the same way, as far as it goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from textgrad_engine.llm.simulated.reading import Item, Task
from textgrad_engine.testing.simulated.critic import Critic
from textgrad_engine.testing.simulated.proposer import LESSONS, Proposer
from textgrad_engine.testing.simulated.task_model import PARCEL

_CODE = r"[`'\"*(]*\b(K[1-9])\b"
EXPECTED = re.compile(
    r"(?:expected|(?:correct|right) (?:answer|code)|ground[ _]truth|target|reference|should (?:be|have been))"
    rf"[^\n]{{0,80}}?{_CODE}",
    re.IGNORECASE,
)
"""Where a text says which code was expected; the code is its group."""

_GOT = re.compile(
    r"(?:generated outputs?|prediction|got|\banswer|\boutput|\bresponse)\w*\W"
    rf"(?:[^\n]{{0,60}}[:\n]\s*)?(?P<said>[^\n]{{0,20}}?{_CODE}[^\n]{{0,20}})",
    re.IGNORECASE,
)
_LM_OUTPUT = re.compile(r"^LM_OUTPUT: *(.*)$", re.MULTILINE)
_REWRITE_TAG = re.compile(r"<((?:IMPROVED|NEW|UPDATED)_\w+)>")
_WANTS_FENCE = re.compile(r"(?:within|between|inside|in)\s+(?:triple backticks|```)", re.IGNORECASE)
_WANTS_CRITICISM = re.compile(r"<OBJECTIVE_FUNCTION>|\bgive feedback\b|\bcritici[sz]", re.IGNORECASE)
_FENCED = re.compile(r"```[^\n]*\n(.*?)\n?```", re.DOTALL)
_TAGGED = {
    name: re.compile(rf"<{name}>(.*?)</{name}>", re.DOTALL)
    for name in ("LM_SYSTEM_PROMPT", "LM_OUTPUT", "OBJECTIVE_FUNCTION", "FEEDBACK", "VARIABLE")
}
_FINE = "The answer is right, so nothing needs to change."


@dataclass(frozen=True)
class Part:
    """A request for criticism or for a new text.

    Attributes:
        kind: ``"backward"`` for criticism, ``"optimizer"`` for a new text.
        user: what is asked.
        tag: the tag that the new text goes into, "" for fences.
    """

    kind: Literal["backward", "optimizer"]
    user: str
    tag: str = ""

    def answer(self, critic: Critic, proposer: Proposer, sample: tuple[int, ...] = ()) -> str:
        """The answer in the form that was asked for."""
        prompt = _instructions(self.user)
        if self.kind == "backward":
            return _criticism(prompt, self.user, critic, sample)
        said = [content.strip() for content in _TAGGED["FEEDBACK"].findall(self.user)]
        shown = bool(said) or any(_cases(self.user))
        if not said:
            said = advice_on(prompt, self.user, critic, sample)
        wanted = [text for text in said if text and text != _FINE]
        text = rewritten(prompt, wanted, proposer, sample) if wanted or not shown else prompt
        return f"<{self.tag}>{text}</{self.tag}>" if self.tag else f"```\n{text}\n```"


def part_of(system: str, user: str) -> Part | None:
    """What is asked for; None when it is no such request.

    Example:
        >>> part_of("", "Parcel: glass, 3.1 kg, for Ada Berg") is None
        True
        >>> part_of("Put it between <IMPROVED_VARIABLE> tags.", "The variable is ...").kind
        'optimizer'
    """
    if tag := _REWRITE_TAG.search(user) or _REWRITE_TAG.search(system):
        return Part("optimizer", user, tag[1])
    if _WANTS_FENCE.search(user) and _FENCED.search(user):
        return Part("optimizer", user)
    if _WANTS_CRITICISM.search(user):
        return Part("backward", user)
    return None


def advice_on(prompt: str, shown: str, critic: Critic, sample: tuple[int, ...] = ()) -> list[str]:
    """What somebody says of instructions who reads cases with their answers and feedback; nothing of right ones."""
    return [text for case in _cases(shown) if (text := critic.say(prompt, *case, sample))]


def rewritten(prompt: str, said: Sequence[str], proposer: Proposer, sample: tuple[int, ...] = ()) -> str:
    """The instructions as the proposer writes them anew from pieces of feedback."""
    items = tuple(Item(number, 1, text) for number, text in enumerate(said, 1))
    text: str = proposer.rewrite(Task(tuple(prompt.split("\n")), items, (), LESSONS, ""), (), sample)["text"]
    return text


def _instructions(user: str) -> str:
    """The instructions that are shown: in full in a conversation or between fences, else the variable as it is."""
    for found in (
        _TAGGED["LM_SYSTEM_PROMPT"].search(user),
        _FENCED.search(user),
        _TAGGED["VARIABLE"].search(user),
    ):
        if found:
            return found[1].strip()
    return ""


def _criticism(prompt: str, user: str, critic: Critic, sample: tuple[int, ...]) -> str:
    """Feedback in prose: on instructions for a case that is shown, else on an answer by itself."""
    objective = _TAGGED["OBJECTIVE_FUNCTION"].search(user)
    expected = EXPECTED.search(objective[1] if objective else user) or EXPECTED.search(user)
    parcels = PARCEL.findall(user)
    output = _TAGGED["LM_OUTPUT"].search(user) or _LM_OUTPUT.search(user)
    if parcels and prompt:
        got = output[1].strip() if output else _given(user)
        return critic.say(prompt, parcels[-1], expected and expected[1], got, sample) or _FINE
    got = _given(user)
    if expected and got != expected[1]:
        return f"The answer {got} is wrong. The correct answer is {expected[1]}."
    return _FINE if expected else "Say more about what is wanted."


def _cases(user: str) -> Iterator[tuple[str, str | None, str]]:
    """Parcel, expected code and given answer of each case that is shown, in order."""
    starts = [found.start() for found in PARCEL.finditer(user)]
    for start, end in zip(starts, [*starts[1:], len(user)]):
        text = user[start:end]
        parcel = PARCEL.match(text)
        rest = text[parcel.end() :] if parcel else text
        expected = EXPECTED.search(rest)
        if parcel and expected:
            yield parcel[1], expected[1], _given(rest[: expected.start()])


def _given(text: str) -> str:
    """The answer that a text says was given, "" when it says none."""
    found = _GOT.search(text)
    return found["said"].strip(" .`'\"*(") if found else ""
