"""Requests of Trace's OptoPrime: a computation as code, its values, and what was said of its end (trace-opt 0.1.3).

A variable of it is to be changed; the answer is JSON, or ``TERMINATE`` where there is nothing to improve (arXiv
2406.16218). What was said of an answer, and of which parcel, is found along the calls of the code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from textgrad_engine.testing.simulated.critic import Critic
from textgrad_engine.testing.simulated.proposer import Proposer
from textgrad_engine.testing.simulated.task_model import PARCEL

from .conversations import EXPECTED, rewritten

_SECTION = re.compile(
    r"^#(Instruction|Code|Documentation|Variables|Parameters|Constraints|Inputs|Others|Outputs|Feedback)\n",
    re.MULTILINE,
)
_VALUE = re.compile(r"^\(\w+\) ([\w.<>]+)=", re.MULTILINE)
_CALL = re.compile(r"^(\S+) = \S+?\((.*)\)$", re.MULTILINE)
_ARGUMENT = re.compile(r"\w+=([^\s,]+)")


@dataclass(frozen=True)
class Problem:
    """A computation with a text in it that is to be changed.

    Attributes:
        variable: the name of that text.
        calls: of each computed value what it was computed from, by name, in order.
        values: all values as text, by name.
    """

    variable: str
    calls: Mapping[str, tuple[str, ...]]
    values: Mapping[str, str]
    kind: Literal["optimizer"] = "optimizer"

    def answer(self, critic: Critic, proposer: Proposer, sample: tuple[int, ...] = ()) -> str:
        """A new value of the variable."""
        prompt = self.values[self.variable]
        said = [text for case in self._cases() if (text := critic.say(prompt, *case, sample))]
        if not said:
            return "TERMINATE"
        text = rewritten(prompt, said, proposer, sample)
        return json.dumps({"reasoning": " ".join(said), "answer": "", "suggestion": {self.variable: text}})

    def _cases(self) -> Iterator[tuple[str, str, str]]:
        """Parcel, expected code and given answer of each value that says what was expected of one answer."""
        for name, used in self.calls.items():
            expected = EXPECTED.search(self.values.get(name, ""))
            parcels = {found[1] for value in self._behind(name) if (found := PARCEL.search(value))}
            given = [self.values.get(part, "") for part in used if part in self.calls]
            if expected and len(parcels) == len(given) == 1:
                yield parcels.pop(), expected[1], given[0].strip()

    def _behind(self, name: str) -> Iterator[str]:
        """The values that one was computed from, near and far, each once."""
        seen: set[str] = set()
        waiting = [*self.calls.get(name, ())]
        while waiting:
            part = waiting.pop()
            if part not in seen:
                seen.add(part)
                yield self.values.get(part, "")
                waiting += self.calls.get(part, ())


def problem_of(system: str, user: str) -> Problem | None:
    """The problem that a request shows; None when it shows none."""
    _, *parts = _SECTION.split(user)
    sections = dict(zip(parts[::2], parts[1::2]))
    changeable = _values(sections.get("Parameters", sections.get("Variables", "")))
    if "Code" not in sections or not changeable:
        return None
    calls = {found[1]: tuple(_ARGUMENT.findall(found[2])) for found in _CALL.finditer(sections["Code"])}
    values = {**changeable}
    for name in ("Inputs", "Others", "Outputs"):
        values |= _values(sections.get(name, ""))
    return Problem(next(iter(changeable)), calls, values)


def _values(section: str) -> dict[str, str]:
    _, *parts = _VALUE.split(section)
    return {name: value.strip() for name, value in zip(parts[::2], parts[1::2])}
