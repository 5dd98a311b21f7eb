"""The critic: says in a sentence what in a parcel explains the expected code; sometimes vague, sometimes wrong."""

from __future__ import annotations

from dataclasses import dataclass

from textgrad_engine.llm.simulated.chance import chance, pick
from textgrad_engine.testing.simulated.groups import Group
from textgrad_engine.testing.simulated.instructions import Instructions, read_instructions
from textgrad_engine.testing.simulated.task_model import TaskModel
from textgrad_engine.testing.simulated.vocabulary import BY_NAME, attributes_in, signs_in

VAGUE = (
    "Look at every detail of the parcel before you choose.",
    "The instructions should be clearer about cases like this.",
    "Be more careful with parcels that have several features.",
    "State the criteria more precisely.",
)
FORMAT_ADVICE = "Say that the answer is the code only and nothing else."
_RULES = (
    "Parcels {spoken} get code {code}.",
    "Add a rule: {name} -> {code}.",
    "The text should say that parcels {spoken} have code {code}, not {got}.",
    "State that {name} means {code}.",
    "For parcels {spoken} the code is {code} instead of {got}.",
)
_BOTH = (
    "Parcels {spoken} and {spoken2} get code {code}.",
    "Both {name} and {name2} matter here: the code is {code}.",
)
_REMOVALS = (
    "Remove the line about {name}: it sends this parcel wrong.",
    "The line about {name} does harm here; drop it or change it.",
    "What the text says about {name} misleads; take that line out.",
)
_ORDERS = (
    "The line about {name} must come before the line about {name2}.",
    "Put the line about {name} above the line about {name2}.",
)
_INSIGHT = 0.3
"""How often a critic that understands a parcel also sees that lines of the prompt get in each other's way."""
_SIGNS = (
    "Say that {sign} means {name}.",
    "The text should explain that {sign} stands for {name}.",
    "Add: {sign} is the sign for {name}.",
)


@dataclass(frozen=True)
class Critic:
    """Looks at one case: instructions, parcel, expected and given code.

    It knows nothing of other cases. What it names is in the parcel or in the instructions that it is shown; the world
    only tells it which of that decides.

    Attributes:
        task: the task model that it looks at.
        quality: how often it names what decides; else it names something else, or nothing.
    """

    task: TaskModel
    quality: float

    def say(self, prompt: str, parcel: str, expected: str | None, answer: str, sample: tuple[int, ...] = ()) -> str:
        """One sentence on the instructions; "" when nothing is wrong. Several samples of an answer may differ."""
        key = (self.task.world.seed, "critic", prompt, parcel, answer, *sample)
        if expected is None:
            return pick(VAGUE, *key, "vague")
        got = answer.strip()
        if got == expected:
            return ""
        if expected in got.replace(".", " ").split():
            return FORMAT_ADVICE
        if chance(*key, "mood") >= self.quality:
            return self._off(parcel, expected, got, key)
        return self._diagnosis(read_instructions(prompt), parcel, expected, got, key)

    def on_line(self, parcel: str, expected: str | None, answer: str) -> str:
        """One sentence on a parcel line that another prompt made; "" when the line says all that decides."""
        world = self.task.world
        hidden = [sign for sign, name in world.signs if name in world.by_attribute and sign in parcel]
        if expected is None or answer.strip() == expected or not hidden:
            return ""
        name = dict(world.signs)[hidden[0]]
        return f"The line should say {BY_NAME[name].listed} where it has the sign {hidden[0]}."

    def on_reading(self, line: str, feedback: str) -> str:
        """One sentence on the instructions that made a parcel line, from feedback on the line; "" without any."""
        key = (self.task.world.seed, "reading", line, feedback)
        if not feedback:
            return ""
        pairs = signs_in(feedback)
        if not pairs or chance(*key, "mood") >= self.quality:
            return pick(VAGUE, *key, "vague")
        return pick(_SIGNS, *key, "sign").format(sign=pairs[0][0], name=pairs[0][1])

    def _off(self, parcel: str, expected: str, got: str, key: tuple[object, ...]) -> str:
        """What a critic says that has not understood: another attribute of the parcel, or nothing definite."""
        others = [name for name in attributes_in(parcel) if name not in self.task.world.by_attribute]
        if not others or chance(*key, "off") < 0.4:
            return pick(VAGUE, *key, "vague")
        return _rule(pick(others, *key, "other"), expected, got, key)

    def _diagnosis(self, prompt: Instructions, parcel: str, expected: str, got: str, key: tuple[object, ...]) -> str:
        if self.task.behaviour.flat is not None:  # nothing decides, so anything is as plausible
            names = attributes_in(parcel)
            return _rule(pick(names, *key, "any"), expected, got, key) if names else pick(VAGUE, *key, "vague")
        code, misled_by = self.task.decide(prompt, parcel)
        if code == expected:  # a slip: the instructions are right
            return pick(VAGUE, *key, "vague")
        if misled_by is not None:
            return pick(_REMOVALS, *key, "removal").format(name=misled_by)
        has = attributes_in(parcel)
        group = self.task.world.group_of(has)
        if group is None:
            return pick(VAGUE, *key, "vague")
        own = [name for name in group.attributes if name in has]
        return self._of_group(group, own, prompt.codes, expected, got, key)

    def _of_group(
        self, group: Group, own: list[str], stated: dict[str, str], expected: str, got: str, key: tuple[object, ...]
    ) -> str:
        a, b = group.attributes[0], group.attributes[-1]
        if chance(*key, "insight") < _INSIGHT:
            if group.kind == "company" and own == [b] and stated.get(b) == expected:
                return pick(_REMOVALS, *key, "removal").format(name=a)
            if group.kind == "pair" and len(own) == 1:  # the usual code is right; a line about half a pair spoils it
                return pick(_REMOVALS, *key, "removal").format(name=own[0])
            if group.kind == "order" and len(own) == 2 and stated.get(a) == expected:
                return pick(_ORDERS, *key, "order").format(name=a, name2=b)
            if group.kind == "pair":
                return _rule(a, expected, got, key, b)
        if group.kind == "pair":
            return _rule(pick(own, *key, "which"), expected, got, key)
        return _rule(own[0], expected, got, key)


def _rule(name: str, code: str, got: str, key: tuple[object, ...], second: str = "") -> str:
    words = {"name": name, "spoken": BY_NAME[name].spoken, "code": code, "got": got}
    if second:
        return pick(_BOTH, *key, "both words").format(**words, name2=second, spoken2=BY_NAME[second].spoken)
    return pick(_RULES, *key, "rule words").format(**words)
