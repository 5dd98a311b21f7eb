"""`simulated_task`: a prompt-optimization task whose optimum is known."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from textgrad_engine import nn
from textgrad_engine.autograd import Variable
from textgrad_engine.checks import at_least, between, check
from textgrad_engine.testing.simulated.critic import Critic
from textgrad_engine.testing.simulated.groups import Kind
from textgrad_engine.testing.simulated.instructions import lines_of, read_instructions
from textgrad_engine.testing.simulated.model import ParcelsModel
from textgrad_engine.testing.simulated.proposer import Proposer
from textgrad_engine.testing.simulated.task_model import Behaviour, TaskModel
from textgrad_engine.testing.simulated.vocabulary import BY_NAME, CODES
from textgrad_engine.testing.simulated.world import World, make_world

_SLACK = 4
_FLAT = 0.5
_ONLY, _READER, _CODER = "system", "reader.system", "coder.system"
_READER_PROMPT = (
    "You read notes of the warehouse.\n"
    "Write the parcel line of the note.\n"
    "Where you know what a sign means, write that instead."
)
_SEED_PROMPT = (
    "You give each parcel its handling code.\n"
    f"The codes are {', '.join(CODES)}.\n"
    "A parcel line lists what is known about the parcel.\n"
    "Answer with the code only."
)

Row = Mapping[str, Any]


class TwoSteps(nn.Module):
    """A program of two prompts: the reader makes a parcel's line of a note, the coder gives it a code.

    Args:
        prompts: the texts of ``reader.system`` and ``coder.system``.
    """

    def __init__(self, prompts: Mapping[str, str]) -> None:
        super().__init__()
        reader = nn.Parameter(prompts[_READER], role="system prompt of the reader of notes")
        coder = nn.Parameter(prompts[_CODER], role="system prompt that gives codes to parcels")
        self.reader = nn.ChatCompletion("{note}", system=reader, role="the parcel line that was read")
        self.coder = nn.ChatCompletion("{parcel}", system=coder, role="code")

    def forward(self, note: str | Variable) -> Variable:
        """The code of the parcel that a note is about."""
        code: Variable = self.coder(parcel=self.reader(note=note))
        return code


@dataclass(frozen=True)
class SimulatedTask:
    """A task with a known optimum, from `simulated_task`.

    Attributes:
        model: answers everything: the program's calls, the critic's, the optimizer's.
        train, val, test: examples, dicts with ``id``, ``parcel`` (with two prompts: ``note``) and ``target``.
        seed_prompts: what `program` starts with, by the name of the parameter.
        optimum_prompts: the best prompts there are.
        world: what is true of parcels; only for looking at a result, an optimizer must not use it.
        loss: scores an answer.
    """

    model: ParcelsModel = field(repr=False)
    train: list[dict[str, Any]] = field(repr=False)
    val: list[dict[str, Any]] = field(repr=False)
    test: list[dict[str, Any]] = field(repr=False)
    seed_prompts: Mapping[str, str]
    optimum_prompts: Mapping[str, str]
    world: World = field(repr=False)
    loss: nn.ExactMatch = field(default_factory=nn.ExactMatch)

    @property
    def seed_prompt(self) -> str:
        """The seed prompt; of two the one that gives codes."""
        return [*self.seed_prompts.values()][-1]

    @property
    def optimum_prompt(self) -> str:
        """The best prompt there is; of two the one that gives codes."""
        return [*self.optimum_prompts.values()][-1]

    @functools.cached_property
    def optimum(self) -> float:
        """The expected accuracy of the best prompts on `test`."""
        return self.expected(self.optimum_prompts)

    def program(self) -> nn.Module:
        """A new program that starts with the seed prompts."""
        if len(self.seed_prompts) == 2:
            return TwoSteps(self.seed_prompts)
        return nn.ChatCompletion("{parcel}", system=nn.Parameter(self.seed_prompt, role="system prompt"))

    def expected(self, prompts: str | Mapping[str, str], rows: Iterable[Row] | None = None) -> float:
        """The expected accuracy of a prompt, exactly, over the slips that each wording draws anew; no calls.

        Args:
            prompts: the system prompt, or the texts by the names of the parameters, as in `seed_prompts`.
            rows: examples; the test set by default.

        Raises:
            ValueError: there are no rows, or the prompts are not those of this task.
        """
        texts = {_ONLY: prompts} if isinstance(prompts, str) else dict(prompts)
        if texts.keys() != self.seed_prompts.keys():
            raise ValueError(f"this task has the prompts {', '.join(self.seed_prompts)}, got {', '.join(texts)}")
        chances = [self._chance(texts, row) for row in (self.test if rows is None else rows)]
        if not chances:
            raise ValueError("expected: rows is empty, so there is nothing to average over")
        return sum(chances) / len(chances)

    def _chance(self, texts: Mapping[str, str], row: Row) -> float:
        task = self.model.task
        if _ONLY in texts:
            return task.probability(texts[_ONLY], row["parcel"], row["target"])
        lost = task.misreading(texts[_READER])
        lines: tuple[tuple[float, Mapping[str, str]], ...] = (
            (1 - lost, read_instructions(texts[_READER]).signs),
            (lost, {}),
        )
        line = row["note"].replace("Note:", "Parcel:", 1)
        return sum(
            part * task.probability(texts[_CODER], self.world.plain(line, known), row["target"])
            for part, known in lines
            if part
        )

    def progress(self, prompts: str | Mapping[str, str]) -> float:
        """How far a prompt is on the way from the seed prompt (0) to the optimum (1), in expected test accuracy.

        On a flat task there is no way to go, and it is 0.
        """
        start = self.expected(self.seed_prompts)
        return (self.expected(prompts) - start) / (self.optimum - start) if self.optimum > start else 0.0


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
    parameters: Literal[1, 2] = 1,
) -> SimulatedTask:
    """A task where the best prompt is known, to find out whether an optimizer finds it.

    Items are parcels, a line such as ``Parcel: glass, to Norway, gift wrapped, 3.1 kg, for Ada Berg``; the right answer
    is a handling code. The simulated task model applies the rules that its instructions state ("Parcels with glass get
    code K4"), and without one gives the usual code, which is right for about three in ten. All chance is a hash of the
    seed and the content, so nothing depends on the order of calls.

    How a prompt is read: every statement that names an attribute and a code is a rule, in whatever words; of two about
    one attribute the later counts. A line about an attribute that decides nothing draws all parcels with it. A prompt
    longer than the optimum by more than four lines loses 1.5 points of accuracy with each further line; a statement is
    a line, however it is laid out. A solved example in the prompt counts as a line, and teaches half of the parcels
    that share its deciding attribute. How rules interact: `textgrad_engine.testing.simulated.groups`.

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
        parameters: 2 for a program of two prompts, ``reader.system`` and ``coder.system``: notes have signs in place
            of every second deciding attribute, and the reader must be told what they mean. Where a sign hides what
            decides, only the reader's prompt is at fault, else only the coder's.

    Raises:
        ValueError: a number is out of range, or a kind is unknown.

    Example:
        >>> task = simulated_task(rules=3, seed=1)
        >>> task.expected(task.seed_prompt) < 0.45 < 0.95 < task.optimum
        True
    """
    rates, sets = between(0, 1, "noise", "critic", "sloppiness"), at_least(1, "train", "val", "test")
    by_name = {"interactions": 0} if isinstance(interactions, list | tuple) else {}  # the kinds are looked at below
    check(simulated_task, locals() | by_name, rates, sets)
    world = make_world(seed, rules, distractors, interactions, signs=parameters == 2)
    seeds = {_ONLY: _SEED_PROMPT} if parameters == 1 else {_READER: _READER_PROMPT, _CODER: _SEED_PROMPT}
    best = seeds if flat else {name: "\n".join([text, *_best_lines(world, name)]) for name, text in seeds.items()}
    most = {name: lines_of(text) + _SLACK for name, text in best.items()}
    behaviour = Behaviour(noise, [*most.values()][-1], _FLAT if flat else None, most.get(_READER, 0))
    task_model = TaskModel(world, behaviour)
    model = ParcelsModel(task_model, Critic(task_model, critic), Proposer(seed, sloppiness))
    rows = functools.partial(_rows, world, parameters)
    return SimulatedTask(model, rows("train", train), rows("val", val), rows("test", test), seeds, best, world)


def _best_lines(world: World, name: str) -> list[str]:
    """What the best prompt of that name says beyond the seed prompt."""
    lines = [line for group in sorted(world.groups, key=lambda group: -group.share) for line in group.best]
    if name == _READER:
        used = {attribute for attribute, _ in lines}
        return [f"{sign} means {attribute}." for sign, attribute in world.signs if attribute in used]
    return [f"Parcels {BY_NAME[attribute].spoken} get code {code}." for attribute, code in lines]


def _rows(world: World, parameters: int, split: str, count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{split}-{number}",
            **({"parcel": parcel} if parameters == 1 else {"note": world.noted(parcel)}),
            "target": target,
        }
        for number, (parcel, target) in enumerate(world.parcels(split, count), 1)
    ]
