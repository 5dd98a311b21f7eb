"""The task model: gives a parcel a code by the rules in its instructions, and slips at known rates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from textgrad_engine.llm.simulated.chance import chance, pick
from textgrad_engine.testing.simulated.groups import Group
from textgrad_engine.testing.simulated.instructions import Instructions, read_instructions
from textgrad_engine.testing.simulated.vocabulary import CODES, attributes_in
from textgrad_engine.testing.simulated.world import World

PARCEL = re.compile(r"(Parcel: [^\n<]*\bfor [A-Z]\w+ [A-Z]\w+)")
"""A parcel's line, wherever it stands in a text."""

_NOTE = re.compile(r"(Note: [^\n<]*\bfor [A-Z]\w+ [A-Z]\w+)")
_BY_LINE = 0.015
_DRESSED = 0.3
_TAUGHT = 0.5


def parcel_in(text: str) -> tuple[str, str] | None:
    """What stands before the last parcel line of a text, and the line; None when there is none."""
    found = list(PARCEL.finditer(text))
    return (text[: found[-1].start()].strip(), found[-1][1]) if found else None


def note_in(text: str) -> str | None:
    """The last note of a text; None when there is none."""
    found = _NOTE.findall(text)
    return found[-1] if found else None


@dataclass(frozen=True)
class Behaviour:
    """How reliable the task model is.

    Attributes:
        noise: the rate of slips; half of it belongs to the parcel, half is drawn anew with each wording of the prompt.
        most_lines: the length of a prompt from which on each further line costs 1.5 points.
        flat: None, or the rate of right answers whatever the prompt says, drawn anew with each wording.
        most_lines_of_reader: `most_lines` of the first of two prompts.
    """

    noise: float
    most_lines: int
    flat: float | None = None
    most_lines_of_reader: int = 0


@dataclass(frozen=True)
class TaskModel:
    """Gives codes to parcels, as `behaviour` says, in `world`."""

    world: World
    behaviour: Behaviour

    def decide(self, instructions: Instructions, parcel: str) -> tuple[str, str | None]:
        """The code before any slip, and the misleading attribute that decided, if one did.

        A line about an attribute that decides nothing draws all parcels with it: the first such line in the prompt.
        """
        has = attributes_in(parcel)
        group = self.world.group_of(has)
        for name, code in instructions.rules:
            if name in has and name not in self.world.by_attribute:
                return code, name
        if group is None:
            return self.world.usual, None
        stated = self._taught(instructions, group, parcel) if instructions.examples else instructions.codes
        return group.code(stated, frozenset(has), self.world.draw(parcel)), None

    def _taught(self, instructions: Instructions, group: Group, parcel: str) -> Mapping[str, str]:
        """What the prompt states, and what its examples teach where it states nothing.

        An example teaches half of the parcels that its deciding attributes mean its code.
        """
        stated = dict(instructions.codes)
        if chance(self.world.seed, "taught", parcel) < _TAUGHT:
            for names, code in instructions.examples:
                for name in group.attributes:
                    if name in names:
                        stated.setdefault(name, code)
        return stated

    def slip_rate(self, instructions: Instructions) -> float:
        """How often a right answer is lost, drawn anew with each wording: half the noise, and what the length costs."""
        return min(0.9, self.behaviour.noise / 2 + _BY_LINE * max(0, instructions.lines - self.behaviour.most_lines))

    def is_hard(self, parcel: str) -> bool:
        """Whether the parcel goes wrong with any prompt."""
        return chance(self.world.seed, "hard", self.world.plain(parcel)) < self.behaviour.noise / 2

    def read(self, prompt: str, note: str) -> str:
        """The parcel line that the first of two prompts makes of a note: it puts the signs in words that it explains.

        A prompt that is too long loses all of that for a part of the notes, drawn anew with each wording.
        """
        known = read_instructions(prompt).signs
        if chance("reading", self.world.seed, prompt, note) < self.misreading(prompt):
            known = {}
        return self.world.plain(note.replace("Note:", "Parcel:", 1), known)

    def misreading(self, prompt: str) -> float:
        """How often the first of two prompts loses what it explains, because it is too long."""
        return min(0.9, _BY_LINE * max(0, read_instructions(prompt).lines - self.behaviour.most_lines_of_reader))

    def answer(self, prompt: str, parcel: str, sample: tuple[int, ...] = ()) -> str:
        """What the model says; a pure function of the seed, the prompt, the parcel and the number of the sample."""
        key = (self.world.seed, prompt, parcel, *sample)
        target = self.world.target(parcel)
        if self.behaviour.flat is not None:
            right = chance("flat", *key) < self.behaviour.flat
            return target if right else pick([code for code in CODES if code != target], "flat which", *key)
        instructions = read_instructions(prompt)
        code, _ = self.decide(instructions, parcel)
        if self.is_hard(parcel) or chance("slip", *key) < self.slip_rate(instructions):
            code = pick([other for other in CODES if other not in (code, target)], "slip which", *key)
        dressed = not instructions.bare and chance("dressed", *key) < _DRESSED
        return f"The code is {code}." if dressed else code

    def probability(self, prompt: str, parcel: str, target: str) -> float:
        """How likely the answer is the target, over the draws that each wording of the prompt makes."""
        if self.behaviour.flat is not None:
            right = self.behaviour.flat
            return right if target == self.world.target(parcel) else (1 - right) / (len(CODES) - 1)
        instructions = read_instructions(prompt)
        if self.is_hard(parcel) or self.decide(instructions, parcel)[0] != target:
            return 0.0
        return (1 - self.slip_rate(instructions)) * (1.0 if instructions.bare else 1 - _DRESSED)
