"""What the runs of a cross-validation say together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from textgrad_engine.attributes import attributes_told
from textgrad_engine.llm.response import Usage
from textgrad_engine.train.comparison import Comparison, compared, score_changes
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.events import Status
from textgrad_engine.train.fold_parts import Part
from textgrad_engine.train.metric_scores import MetricScores
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.scores import ALIKE
from textgrad_engine.train.standing import Standing, missed_in_words


@attributes_told
@dataclass(frozen=True)
class AgainstControl:
    """What the folds' runs found with feedback, beside what a control found without it (`Trainer(controls=True)`).

    Attributes:
        name: what the control did, in words.
        test: on each example the control's texts of its own fold.
        comparison: the folds' best texts against these, on the examples that both were tested on.
        folds: in how many folds both were.
        same: in how many of these both came to the same texts.
        usage: what the control's searches used.
    """

    name: str
    test: Evaluation
    comparison: Comparison
    folds: int
    same: int
    usage: Usage


@attributes_told
@dataclass(frozen=True)
class CrossValidation:
    """What `cross_validate` found: whether optimizing helps on a task, and a prompt trained on all of its examples.

    Attributes:
        folds: the result of each fold's run, as far as they came.
        final: the run on all examples, whose texts are the ones to use; None if it was not reached. No example tests
            it.
        seed: the seed texts on the examples of all folds, in the order of the examples.
        best: on each example the texts of its own fold's run, which never saw it.
        comparison: `best` against `seed`; None when no fold was tested. It is about the mean of the folds' texts, not
            about the final ones.
        examples: how many there are; those that `seed` lacks were not tested.
        seconds: how long it took.
        controls: the folds' texts against those of each control, as far as folds were tested with both.
    """

    folds: tuple[TrainResult, ...]
    final: TrainResult | None
    seed: Evaluation | None
    best: Evaluation | None
    comparison: Comparison | None
    examples: int
    seconds: float
    controls: tuple[AgainstControl, ...] = ()

    @property
    def runs(self) -> tuple[TrainResult, ...]:
        """Every run, that on all examples last."""
        return self.folds if self.final is None else (*self.folds, self.final)

    @property
    def status(self) -> Status:
        """How it ended: interrupted if a run was, else by its budget if one was."""
        ends: set[Status] = {each.status for each in self.runs}
        return "interrupted" if "interrupted" in ends else "budget" if "budget" in ends else "finished"

    @property
    def stopped(self) -> bool:
        """Whether one of its runs ended those behind it, too: by Ctrl-C, or as there was no room for a first look."""
        return any(each.status == "interrupted" or each.shortage for each in self.runs)

    @property
    def spent_its_part(self) -> bool:
        """Whether what ended runs by a budget was the optimizer's part of it; see `TrainResult.spent_its_part`."""
        return self.status == "budget" and all(each.spent_its_part for each in self.runs if each.status == "budget")

    @property
    def total(self) -> Usage:
        """What all runs used."""
        return sum((each.total for each in self.runs), Usage())

    @property
    def gained(self) -> int:
        """In how many folds that were tested the texts did better than the seed texts, where both have an answer."""
        pairs = [(each.seed_test, each.best_test) for each in self.folds]
        return sum(a is not None and b is not None and sum(score_changes(a, b)) > ALIKE for a, b in pairs)

    @property
    def floors(self) -> tuple[Standing, ...]:
        """How the folds' texts stand to the floors under metrics, on all examples that were tested."""
        if self.seed is None or self.best is None:
            return ()
        least = {each.of: each.least for fold in self.folds for each in fold.floors}
        return tuple(
            Standing(new.called, least[new.called], "test", len(self.best), old.mean, new.mean, len(self.best) - new.n)
            for old, new in zip(self.seed.parts, self.best.parts)
            if new.called in least
        )

    @property
    def use(self) -> Literal["final", "seed"] | None:
        """Which texts there is a reason to use; None where the examples do not tell, or there is no result yet.

        The final ones, where optimizing was shown to help on the examples that it had not seen; the seed texts, where
        it did not help there, or the final run found nothing that does better. Of the final texts themselves nothing is
        measured but the score on their own examples.
        """
        if self.final is None or self.comparison is None:
            return None
        if self.comparison.difference <= 0 or (self.final.best == self.final.seed and self.final.status == "finished"):
            return "seed"
        shown = self.comparison.verdict == "better" and self.final.best != self.final.seed
        return "final" if shown else None

    def __str__(self) -> str:
        parts = [f"{self.status} after {len(self.folds)} fold{'' if len(self.folds) == 1 else 's'}"]
        if self.seed is not None and self.best is not None and self.comparison is not None:
            parts.append(f"tested {self.seed.mean:.3f} -> {self.best.mean:.3f}")
            parts.append(f"{self.comparison} (of the folds' prompts)")
            parts += filter(None, [missed_in_words(self.floors)])
            if (untested := self.examples - len(self.seed)) > 0:
                parts.append(f"{untested} of {self.examples} examples were not tested")
        if self.final is not None:
            parts.append("the final prompt is trained on all examples, and itself tested on none")
        if self.final is not None and self.comparison is not None:
            why = "these examples do not tell" if self.final.best != self.final.seed else "its run found nothing so far"
            told = {"seed": "the seed prompt", "final": "the final prompt", None: f"open, as {why}"}
            parts.append(f"to use: {told[self.use]}")
        return "; ".join(parts)

    def __repr__(self) -> str:  # short, as it is what a notebook shows of a cell's last line
        return f"CrossValidation({self})"


def pooled(
    runs: Sequence[tuple[Part, TrainResult]], ids: Sequence[str], clusters: Sequence[str], seconds: float
) -> CrossValidation:
    """Put the results of the runs together.

    Args:
        runs: by `shares.fit_parts`.
        ids: of all examples.
        clusters: of each; empty when each stands for itself.
        seconds: how long it took.
    """
    folds = tuple(result for part, result in runs if part.test is not None)
    final = next((result for part, result in runs if part.test is None), None)
    tested = [(a, b) for each in folds if (a := each.seed_test) is not None and (b := each.best_test) is not None]
    if not tested:
        return CrossValidation(folds, final, None, None, None, len(ids), seconds)
    place = {name: position for position, name in enumerate(ids)}
    before, after = (_joined([pair[side] for pair in tested], place, clusters) for side in (0, 1))
    comparison = compared(before, after)
    controls = tuple(_against_controls(folds, place, clusters))
    return CrossValidation(folds, final, before, after, comparison, len(ids), seconds, controls)


def _against_controls(
    folds: Sequence[TrainResult], place: dict[str, int], clusters: Sequence[str]
) -> Iterator[AgainstControl]:
    """What the folds' texts do beside those of each control."""
    every = [(fold, each) for fold in folds if fold.controls is not None for each in fold.controls.each]
    for name in dict.fromkeys(each.name for _, each in every):
        both = [
            (control, control.test, fold.best_test, fold.best == control.best)
            for fold, control in every
            if control.name == name and control.test is not None and fold.best_test is not None
        ]
        if not both:
            continue
        control = _joined([each[1] for each in both], place, clusters)
        best = _joined([each[2] for each in both], place, clusters)
        if (comparison := compared(control, best)) is None:
            continue
        used = sum((each[0].usage for each in both), Usage())
        same = sum(each[3] for each in both)
        yield AgainstControl(name, control, comparison, len(both), same, used)


def _joined(each: Sequence[Evaluation], place: dict[str, int], clusters: Sequence[str]) -> Evaluation:
    """The evaluations of all folds as one, in the order of the examples."""
    ids = [name for one in each for name in one.ids]
    order = sorted(range(len(ids)), key=lambda position: place[ids[position]])

    def joined(values: Callable[[Evaluation], Sequence[Any]]) -> tuple[Any, ...]:
        found = [value for one in each for value in values(one)]
        return tuple(found[position] for position in order) if found else ()

    def part_of(at: int) -> MetricScores:
        return replace(each[0].parts[at], scores=joined(lambda one: one.parts[at].scores))

    # Folds of before have none beside those that were run since.
    everywhere = len({tuple(part.name for part in one.parts) for one in each}) == 1
    made = Evaluation(
        joined(lambda one: one.ids),
        joined(lambda one: one.scores),
        joined(lambda one: one.predictions),
        {name: error for one in each for name, error in one.failures.items()},
        scale=each[0].scale,
        latency=joined(lambda one: one.latency),
        parts=tuple([part_of(at) for at in range(len(each[0].parts))]) if everywhere else (),
    )
    return replace(made, clusters=tuple(clusters[place[name]] for name in made.ids)) if clusters else made
