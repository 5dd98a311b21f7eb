"""What a run of the Trainer found."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from textgrad_engine.attributes import attributes_told
from textgrad_engine.llm.response import Usage
from textgrad_engine.optim.cells import Origin
from textgrad_engine.train.comparison import Comparison
from textgrad_engine.train.controls import CONTROLS, Controls
from textgrad_engine.train.doubtful import Doubtful
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.events import Status, StepEnded
from textgrad_engine.train.front import FrontPoint
from textgrad_engine.train.none_kept import none_kept
from textgrad_engine.train.standing import Standing, missed_in_words


@attributes_told
@dataclass(frozen=True)
class TrainResult:
    """What a run of the Trainer found.

    Attributes:
        status: how it ended.
        seed: the trained texts by dotted name, before the run.
        best: the texts that were selected on the validation set; the program holds them after `fit`.
        origins: for each line of the best texts, the step, reason and feedback that wrote it. For a seed line None, or
            step 0 if a line next to it was removed.
        seed_val: the seed texts on the validation set; None when the run ended before that.
        best_val: the best texts on the validation set. Selected on it, so it flatters them.
        seed_test: the seed texts on the test set; None without a test set, or when the run ended before it was opened.
        best_test: the best texts on the test set.
        comparison: best against seed; None when neither set was evaluated with both.
        compared_on: the set that `comparison` is about. On the validation set it flatters the best texts.
        steps: every step, in order.
        usage: what the run used, by the purpose of the calls.
        seconds: how long it took.
        openings: how often the test set was opened by the run.
        overlaps: which examples are in two sets, exactly or nearly, in words.
        controls: the searches without feedback (with no more calls), if they were asked for; `usage` includes theirs.
        front: the Pareto front, longest first: the texts that no other beats in tokens or score without losing in the
            other. They answered all validation examples that the seed texts did, and passed the guards. With a
            `latency_weight` less time counts in the same way.
        untested: why the test set or a part of it was not run (the budget), or has no score (most of its answers are
            lost, or each text lost those to other examples); else "".
        terms: what counted beside the score (the cost of tokens and time) and where the guards stand, in sentences.
        idle: why the optimizer was not asked for more: it proposed nothing useful again and again, or nothing better
            could be shown; else "".
        shortage: why nothing was asked at all: the budget does not allow even one call; else "".
        unspent: how much of the budget was left when it ended the run, and why, if that is a tenth or more; else "".
        doubtful: training and validation examples that no text that was tried got right, while most of them led to the
            same other answer: their right answers may be wrong.
        test_usage: what the program's own calls used on the test set, with the ``"best"`` texts and, if they differ,
            the ``"seed"`` texts: what the prompt costs in use. Answers from a cache count.
        floors: how the texts stand to each floor of the guards on the validation set, and then on the test set, as far
            as both were run there and it has such examples.
    """

    status: Status
    seed: dict[str, str]
    best: dict[str, str]
    origins: dict[str, list[Origin | None]]
    seed_val: Evaluation | None
    best_val: Evaluation | None
    seed_test: Evaluation | None
    best_test: Evaluation | None
    comparison: Comparison | None
    compared_on: Literal["test", "val"] | None
    steps: tuple[StepEnded, ...]
    usage: dict[str, Usage]
    seconds: float
    openings: int = 0
    overlaps: tuple[str, ...] = ()
    controls: Controls | None = None
    front: tuple[FrontPoint, ...] = ()
    shortage: str = ""
    untested: str = ""
    terms: tuple[str, ...] = ()
    idle: str = ""
    unspent: str = ""
    doubtful: tuple[Doubtful, ...] = ()
    test_usage: dict[str, Usage] = field(default_factory=dict)
    floors: tuple[Standing, ...] = ()

    @property
    def total(self) -> Usage:
        """What the run used in all."""
        return sum(self.usage.values(), Usage())

    @property
    def candidates(self) -> int:
        """How many changed texts were validated; the more there were, the more the best of them is flattered.

        A text that was proposed again, or came up for another decision, is one.
        """
        validated = zip(self.steps, _texts_of(self.steps))
        return len({texts for step, texts in validated if step.val_mean is not None or step.race is not None})

    @property
    def kept_short(self) -> bool:
        """Whether a budget left out the controls, or a part of the test set, of a run that came to its end."""
        no_controls = self.controls is not None and bool(self.controls.problem)
        a_part = bool(self.untested) and self.best_test is not None
        return self.status == "finished" and (a_part or no_controls)

    @property
    def spent_its_part(self) -> bool:
        """Whether the optimizer's part of a budget ended it, as controls have parts of their own: all of them were run.

        So the budget was not spent, and a larger one leaves the optimizer a larger part.
        """
        each = () if self.controls is None else self.controls.each
        scored = [made.val if self.best_test is None else made.test for made in each]
        return self.status == "budget" and len(scored) == len(CONTROLS) and None not in scored

    def __str__(self) -> str:
        ended = "budget (the optimizer's part)" if self.spent_its_part else self.status
        parts = [f"{ended} after {len(self.steps)} step{'' if len(self.steps) == 1 else 's'}"]
        for name, seed, best in (("val", self.seed_val, self.best_val), ("test", self.seed_test, self.best_test)):
            if seed is not None and best is not None:
                parts.append(f"{name} {seed.mean:.3f} -> {best.mean:.3f}{best.part_run}")
        if self.seed == self.best and self.comparison is not None:
            parts.append(f"the best texts are the seed texts: {none_kept(self)}")
        elif self.comparison is not None:
            chose = ", which chose them" if self.compared_on == "val" else ""
            every, n = self.best_test if self.compared_on == "test" else self.best_val, self.comparison.n
            some = f", by {n} of {len(every)} examples" if every is not None and n < len(every) else ""
            parts.append(f"{self.comparison} ({self.compared_on}{chose}{some})")
            parts += filter(None, [missed_in_words(self.floors)])
        no_controls = "" if self.controls is None else self.controls.problem
        parts += [why for why in (self.idle, self.shortage, self.unspent, self.untested, no_controls) if why]
        parts.append(str(self.total))
        return "; ".join(parts)

    def __repr__(self) -> str:  # short, as it is what a notebook shows of a cell's last line
        return f"TrainResult({self})"


def tried(seed: Evaluation, steps: Sequence[StepEnded]) -> list[Evaluation]:
    """What is known of the candidates that were raced on the validation set and not taken in the end.

    Args:
        seed: the seed texts on the validation set.
        steps: of the run.

    Returns:
        Their scores, None for examples that they were not run on; of the step kept last there is none, as its texts are
        the best ones. For ``compare(seed, best, candidates=...)``.
    """
    which = _texts_of(steps)
    last = max((number for number, step in enumerate(steps) if step.kept), default=-1)
    known: dict[Hashable, dict[str, float | None]] = {}  # by text, as one may have been raced twice
    for number, step in enumerate(steps):
        if step.race is not None and (last < 0 or which[number] != which[last]):
            known.setdefault(which[number], {}).update(zip(step.race.examples, step.race.after))
    found = []
    for each in known.values():
        scores = tuple(each.get(name) for name in seed.ids)
        found.append(Evaluation(seed.ids, scores, (None,) * len(scores), {}, clusters=seed.clusters, scale=seed.scale))
    return found


def _texts_of(steps: Sequence[StepEnded]) -> list[Hashable]:
    """What tells the texts that a step tried from those of others, as far as its changes say; else its place."""
    best: dict[str, str] = {}
    found: list[Hashable] = []
    for place, step in enumerate(steps):
        texts = best | {change.name: change.after for change in step.changes}
        found.append(tuple(sorted(texts.items())) if step.changes else place)
        best = texts if step.kept else best
    return found
