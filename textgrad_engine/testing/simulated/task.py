"""`simulated_task`: a prompt-optimization task whose optimum is known."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textgrad_engine import nn
from textgrad_engine.testing.simulated.critic import Critic
from textgrad_engine.testing.simulated.groups import Kind
from textgrad_engine.testing.simulated.instructions import lines_of
from textgrad_engine.testing.simulated.model import ParcelsModel
from textgrad_engine.testing.simulated.proposer import Proposer
from textgrad_engine.testing.simulated.task_model import Behaviour, TaskModel
from textgrad_engine.testing.simulated.vocabulary import BY_NAME, CODES
from textgrad_engine.testing.simulated.world import World, make_world

__all__ = ["SimulatedTask", "simulated_task"]

_SLACK = 4
_FLAT = 0.5
_SEED_PROMPT = (
    "You give each parcel its handling code.\n"
    f"The codes are {', '.join(CODES)}.\n"
    "A parcel line lists what is known about the parcel.\n"
    "Answer with the code only."
)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class SimulatedTask:
    """A task with a known optimum, from `simulated_task`.

    Attributes:
        model: answers everything: the program's calls, the critic's, the optimizer's.
        train, val, test: examples, dicts with ``id``, ``parcel`` and ``target``.
        seed_prompt: what `program` starts with.
        optimum_prompt: the best prompt there is.
        world: what is true of parcels; only for looking at a result, an optimizer must not use it.
        loss: scores an answer.
    """

    model: ParcelsModel
    train: list[dict[str, Any]]
    val: list[dict[str, Any]]
    test: list[dict[str, Any]]
    seed_prompt: str
    optimum_prompt: str
    world: World
    loss: nn.ExactMatch = field(default_factory=nn.ExactMatch)

    @functools.cached_property
    def optimum(self) -> float:
        """The expected accuracy of `optimum_prompt` on `test`."""
        return self.expected(self.optimum_prompt)

    def program(self) -> nn.ChatCompletion:
        """A new program with the seed prompt as its one parameter, ``system``."""
        return nn.ChatCompletion("{parcel}", system=nn.Parameter(self.seed_prompt, role="system prompt"))

    def expected(self, prompt: str, rows: Iterable[Row] | None = None) -> float:
        """The expected accuracy of a prompt, exactly, over the slips that each wording draws anew; no calls.

        Args:
            prompt: the system prompt.
            rows: examples; the test set by default.

        Raises:
            ValueError: there are no rows.
        """
        chances = [
            self.model.task.probability(prompt, row["parcel"], row["target"])
            for row in (self.test if rows is None else rows)
        ]
        if not chances:
            raise ValueError("expected: rows is empty, so there is nothing to average over")
        return sum(chances) / len(chances)

    def progress(self, prompt: str) -> float:
        """How far a prompt is on the way from the seed prompt (0) to the optimum (1), in expected test accuracy.

        On a flat task there is no way to go, and it is 0.
        """
        start = self.expected(self.seed_prompt)
        return (self.expected(prompt) - start) / (self.optimum - start) if self.optimum > start else 0.0


def simulated_task(
    rules: int = 12,
    *,
    noise: float = 0.02,
    distractors: int = 4,
    interactions: int | Sequence[Kind] = 0,
    seed: int = 0,
    train: int = 96,
    val: int = 96,
    test: int = 192,
    flat: bool = False,
    critic: float = 0.85,
    sloppiness: float = 0.1,
) -> SimulatedTask:
    """A task where the best prompt is known, to find out whether an optimizer finds it.

    Items are parcels, a line such as ``Parcel: glass, to Norway, gift wrapped, 3.1 kg, for Ada Berg``; the right answer
    is a handling code. The simulated task model applies the rules that its instructions state ("Parcels with glass get
    code K4"), and without one gives the usual code, which is right for about three in ten. All chance is a hash of the
    seed and the content, so nothing depends on the order of calls.

    How a prompt is read: every statement that names an attribute and a code is a rule, in whatever words; of two about
    one attribute the later counts. A line about an attribute that decides nothing draws all parcels with it. A prompt
    longer than the optimum by more than four lines loses 1.5 points of accuracy with each further line; a statement is
    a line, however it is laid out. How rules interact is described in `textgrad_engine.testing.simulated.groups`.

    Args:
        rules: how many true rules; the most frequent applies three times as often as the least frequent.
        noise: the rate of slips. Half of it belongs to the parcel, half is drawn anew with each wording of the prompt.
        distractors: attributes that look relevant and decide nothing; each likes to go with an attribute that does.
        interactions: so many groups of two rules that interact, the kinds in turn (rival, pair, order, company); or
            the kinds.
        seed: which world.
        train: how many training examples.
        val: how many validation examples.
        test: how many test examples.
        flat: the answer is right in half of the cases whatever the prompt says, drawn anew with each wording: there
            is nothing to gain.
        critic: how often the critic names what decides.
        sloppiness: how often a proposal has something silly in it: a wrong code, a bland or repeated line, a line too
            many or one that was dropped.

    Raises:
        ValueError: a number is out of range, or a kind is unknown.

    Example:
        >>> task = simulated_task(rules=3, seed=1)
        >>> task.expected(task.seed_prompt) < 0.45 < 0.95 < task.optimum
        True
    """
    for name, rate in (("noise", noise), ("critic", critic), ("sloppiness", sloppiness)):
        if not 0 <= rate <= 1:
            raise ValueError(f"{name} is a rate between 0 and 1, got {rate}")
    for name, count in (("train", train), ("val", val), ("test", test)):
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    world = make_world(seed, rules, distractors, interactions)
    best = [
        f"Parcels {BY_NAME[name].spoken} get code {code}."
        for group in sorted(world.groups, key=lambda group: -group.share)
        for name, code in group.best
    ]
    optimum_prompt = _SEED_PROMPT if flat else "\n".join([_SEED_PROMPT, *best])
    behaviour = Behaviour(noise, lines_of(optimum_prompt) + _SLACK, _FLAT if flat else None)
    task_model = TaskModel(world, behaviour)
    model = ParcelsModel(task_model, Critic(task_model, critic), Proposer(seed, sloppiness))
    splits = {
        name: [
            {"id": f"{name}-{number}", "parcel": parcel, "target": target}
            for number, (parcel, target) in enumerate(world.parcels(name, count), 1)
        ]
        for name, count in (("train", train), ("val", val), ("test", test))
    }
    return SimulatedTask(model, splits["train"], splits["val"], splits["test"], _SEED_PROMPT, optimum_prompt, world)
