"""Requests of AdalFlow's text optimizer: a prompt, feedback on it, and what was proposed in vain (adalflow 1.1).

What its backward engine asks is TextGrad's question in other words, and is answered as that is (`conversations`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import Literal

from textgrad_engine.llm.simulated.reading import Item, Task
from textgrad_engine.testing.simulated.critic import Critic
from textgrad_engine.testing.simulated.proposer import LESSONS, Proposer

_VARIABLE = re.compile(r"<VARIABLE>(.*?)</VARIABLE>", re.DOTALL)
_FEEDBACK = re.compile(r"<FEEDBACK>(.*?)</FEEDBACK>", re.DOTALL)
_FAILED = re.compile(r"<START_OF_CURRENT_ITERATION>(.*?)<END_OF_CURRENT_ITERATION>", re.DOTALL)
_ENTRY = re.compile(r"^\d+\. ", re.MULTILINE)
_FINE = "No noticeable error"


@dataclass(frozen=True)
class Proposal:
    """A request for a better prompt.

    Attributes:
        prompt: as it is.
        feedback: on it, from answers that were wrong.
        failed: what was proposed before in this step, each with its reasons.
    """

    prompt: str
    feedback: tuple[str, ...]
    failed: tuple[str, ...]
    kind: Literal["optimizer"] = "optimizer"

    def answer(self, critic: Critic, proposer: Proposer, sample: tuple[int, ...] = ()) -> str:
        """A new prompt as XML; the same one where nothing was wrong."""
        items = tuple(Item(number, 1, text) for number, text in enumerate(self.feedback, 1))
        made = {"text": self.prompt, "reason": "Nothing was wrong."}
        if items:
            history = tuple(f"rejected: {text}" for text in self.failed)
            made = proposer.rewrite(Task(tuple(self.prompt.split("\n")), items, history, LESSONS, ""), (), sample)
        parts = {"reasoning": made["reason"], "method": "editing", "proposed_variable": made["text"]}
        return f"<response>{''.join(f'<{name}>{escape(text)}</{name}>' for name, text in parts.items())}</response>"


def proposal_of(system: str, user: str) -> Proposal | None:
    """The request for a better prompt; None when it is something else."""
    asked = f"{system}\n{user}"
    variable = _VARIABLE.search(asked)
    if variable is None or "<proposed_variable>" not in asked:
        return None
    feedback = tuple(text.strip() for text in _FEEDBACK.findall(asked) if text.strip() and _FINE not in text)
    failed = _FAILED.search(asked)
    entries = _ENTRY.split(failed[1])[1:] if failed else []
    return Proposal(variable[1].strip(), feedback, tuple(" ".join(entry.split()) for entry in entries))
