"""Requests in DSPy's form: an objective, and fields between markers, or in JSON where that is asked for (dspy 3.4).

What is inside is either the task, whose instructions are the objective, or one of DSPy's own questions, told by the
field that is wanted: MIPROv2 (arXiv 2406.11695) has solved examples described, ten at a time, what was said of them put
into two or three sentences, and new instructions written with these; `dspy.GEPA` shows cases with feedback.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from textgrad_engine.llm.simulated.chance import chance
from textgrad_engine.testing.simulated.critic import Critic
from textgrad_engine.testing.simulated.proposer import Proposer
from textgrad_engine.testing.simulated.task_model import parcel_in

from .conversations import advice_on, rewritten
from .observations import observed, summed_up, taken_up

_OBJECTIVE = re.compile(r"In adhering to this structure, your objective is:[^\n]*\n(.*)", re.DOTALL)
_REPLY = re.compile(r"\n\nRespond with (?:the corresponding output fields|(a JSON object))[^\n]*\Z")
_NAME = re.compile(r"`(?:\[\[ ## )?(\w+)(?: ## \]\])?`")
_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\]\n", re.MULTILINE)
_SOLVED = re.compile(r"(Parcel: [^\n]*?\bfor [A-Z]\w+ [A-Z]\w+)\W.{0,40}?\b(K[1-9])\b", re.DOTALL)
_GENERAL = {
    "observations": "Each example is a parcel with its handling code.",
    "summary": "Each example is a parcel with its handling code.",
    "program_description": "The program gives each parcel its handling code.",
    "module_description": "The module gives each parcel its handling code.",
}


@dataclass(frozen=True)
class Form:
    """A request in DSPy's form.

    Attributes:
        objective: what is to be done; of the task its instructions.
        given: the fields that are shown.
        wanted: the names of the fields that are to be filled in.
        as_json: whether as a JSON object, instead of between markers.
    """

    objective: str
    given: Mapping[str, str]
    wanted: tuple[str, ...]
    as_json: bool

    @property
    def kind(self) -> Literal["forward", "optimizer"]:
        """Whether the program asks or an optimizer."""
        own = {*_GENERAL, "proposed_instruction", "new_instruction"} & {*self.wanted}
        return "optimizer" if own else "forward"

    def answer(self, critic: Critic, proposer: Proposer, sample: tuple[int, ...] = ()) -> str:
        """The answer in the form that was asked for."""
        if self.kind == "optimizer":
            return self._filled(_proposed(self, critic, proposer, sample))
        shown = "\n".join(self.given.values())
        _, parcel = parcel_in(shown) or ("", shown)
        return self._filled(dict.fromkeys(self.wanted, critic.task.answer(self.objective, parcel, sample)))

    def _filled(self, values: Mapping[str, str]) -> str:
        if self.as_json:
            return json.dumps({name: values.get(name, "") for name in self.wanted}, ensure_ascii=False)
        parts = [f"[[ ## {name} ## ]]\n{values.get(name, '')}" for name in self.wanted]
        return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def form_of(system: str, user: str) -> Form | None:
    r"""The form that a request has; None when it is not in DSPy's.

    Example:
        >>> form = form_of(
        ...     "In adhering to this structure, your objective is: \n        Sort parcels.",
        ...     "[[ ## parcel ## ]]\nParcel: glass\n\nRespond with the corresponding output fields, starting with the "
        ...     "field `[[ ## code ## ]]`, and then ending with the marker for `[[ ## completed ## ]]`.",
        ... )
        >>> form.objective, form.given["parcel"], form.wanted
        ('Sort parcels.', 'Parcel: glass', ('code',))
    """
    objective, reply = _OBJECTIVE.search(system), _REPLY.search(user)
    if objective is None or reply is None:
        return None
    _, *fields = _FIELD.split(user[: reply.start()])
    given = {name: value.strip() for name, value in zip(fields[::2], fields[1::2])}
    wanted = tuple(name for name in _NAME.findall(reply[0]) if name != "completed")
    return Form(textwrap.dedent(objective[1]).strip(), given, wanted, reply[1] is not None)


def _proposed(form: Form, critic: Critic, proposer: Proposer, sample: tuple[int, ...]) -> dict[str, str]:
    """What an optimizer is answered, by field; instructions are as good as the proposer makes them of what is shown."""
    if "new_instruction" in form.wanted:
        prompt = form.given.get("current_instruction", "")
        said = advice_on(prompt, _plain(form.given.get("examples_with_feedback", "")), critic, sample)
        return {"new_instruction": rewritten(prompt, said, proposer, sample) if said else prompt}
    if "proposed_instruction" in form.wanted:
        sample = (*sample, int(chance(*form.given.values()) * 2**32))  # demonstrations and tips make another proposal
        said = taken_up(form.given.get("dataset_description", ""), proposer.seed, sample)
        return {"proposed_instruction": rewritten(form.given.get("basic_instruction", ""), said, proposer, sample)}
    solved = _SOLVED.findall(form.given.get("examples", ""))
    told = {
        "observations": observed(solved, form.given.get("prior_observations", "")),
        "summary": summed_up(form.given.get("observations", "")),
    }
    return {name: told.get(name) or _GENERAL.get(name, "") for name in form.wanted}


def _plain(examples: str) -> str:
    """Examples in JSON as lines of text, each with its name before it; other text as it is."""
    try:
        rows = json.loads(examples)
    except ValueError:
        return examples
    lines = []
    for row in rows if isinstance(rows, list) else [rows]:
        for name, value in row.items() if isinstance(row, dict) else [("", row)]:
            parts = value.values() if isinstance(value, dict) else [value]
            lines.append(f"{name}: {' '.join(str(part) for part in parts)}")
    return "\n".join(lines)
