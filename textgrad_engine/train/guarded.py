"""What guards come to on the examples of a set: floors under the scores of some, and examples that must not break."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from textgrad_engine.train.scores import ALIKE, apart
from textgrad_engine.train.standing import Split, Standing, in_a_sentence

if TYPE_CHECKING:
    from textgrad_engine.train.evaluation import Evaluation

Scores: TypeAlias = Mapping[int, float | None]
"""Scores by the positions of the examples; None where no answer was to be had."""

RERUNS = 2
"""So often an example is run again before it counts as broken, where nothing else is said: of what is off one time in
ten one in a thousand is off three times in a row."""

_NOT_IN_EACH = "in one run, but not in each"

_MOST_TOLD = 3
"""So many broken examples are named."""


def is_worse(before: float | None, after: float | None) -> bool:
    """Whether an example that must never break did worse; one that could not be run did.

    Args:
        before: its score with the texts of now; None where no answer was to be had.
        after: that with the new ones.
    """
    return after is None or (before is not None and after < before - ALIKE)


@dataclass(frozen=True)
class Floor:
    """A floor under the mean score of some validation examples.

    Attributes:
        under: what it is under, in words.
        least: the floor.
        positions: of the examples.
        worst: the worst score that there can be; None where nobody knows.
        metric: which of the metrics that a score is made of gives these scores; None where it is the score itself.
    """

    under: str
    least: float
    positions: tuple[int, ...]
    worst: float | None = None
    metric: int | None = None

    @property
    def of(self) -> str:
        """What it is under, and of a slice how many examples that has."""
        count = len(self.positions)
        under = in_a_sentence(self.under)
        return under if self.metric is not None else f"{under} ({count} example{'' if count == 1 else 's'})"

    def broken(self, before: Scores, after: Scores) -> str:
        """How it is broken, in words; "" where it is not.

        Args:
            before: the scores with the texts of now.
            after: those with the new texts.
        """
        pairs = [(before[n], after[n]) for n in self.positions]
        told = f"{self.of} has a floor of {self.least:g}"
        if all(new is None for _, new in pairs):
            return f"{told}: none could be run"
        lost = sum(new is None for old, new in pairs if old is not None)
        worst = self._worst(pairs)
        counted = [(old, worst if new is None else new) for old, new in pairs if (old, new) != (None, None)]
        mean = sum(new for _, new in counted) / len(counted)
        both = [(old, new) for old, new in counted if old is not None]
        fell = not both or sum(new - old for old, new in both) < -ALIKE
        if mean >= self.least - ALIKE or not fell:
            return ""
        was = f"{sum(old for old, _ in both) / len(both):.3f} -> " if both else ""
        why = f", as {lost} could not be run" if lost else ""
        return f"{told}: {was}{apart(mean, self.least)[0]}{why}"

    def stands(self, seed: Scores, best: Scores, split: Split = "val") -> Standing:
        """How the seed texts and the best ones stand to it.

        Args:
            seed: the scores of the seed texts.
            best: those of the best texts.
            split: whose examples they are.
        """
        means = []
        for scores in (seed, best):
            known = [score for n in self.positions if (score := scores[n]) is not None]
            means.append(sum(known) / len(known) if known else None)
        lost = sum(best[n] is None for n in self.positions)
        return Standing(self.under, self.least, split, len(self.positions), means[0], means[1], lost)

    def standing(self, seed: Scores, best: Scores) -> str:
        """Whether the best texts reach it, in a sentence.

        Args:
            seed: the scores of the seed texts.
            best: those of the best texts.
        """
        found = self.stands(seed, best)
        stands = "is reached" if found.reached else "is not reached"
        return f"the floor of {self.least:g} under {self.of} {stands}: {found.means}"

    def _worst(self, pairs: Sequence[tuple[float | None, float | None]]) -> float:
        """What an example counts for that could not be run."""
        if self.worst is not None:
            return self.worst
        return min([0.0, *(score for pair in pairs for score in pair if score is not None)])


@dataclass(frozen=True)
class Guarded:
    """`Guards` on one validation set.

    Attributes:
        names: the ids of its examples.
        never_break: the examples that must not get worse, by position.
        floors: the floors.
        reruns: so often one of `never_break` that did worse is run again before it counts as broken.
        passing: the score with which one of `never_break` is not broken, whatever it was before; None for no such.
    """

    names: tuple[str, ...]
    never_break: tuple[int, ...]
    floors: tuple[Floor, ...]
    reruns: int = 0
    passing: float | None = None

    @property
    def positions(self) -> tuple[int, ...]:
        """The examples that must be run, each once."""
        found = [*self.never_break, *(position for floor in self.floors for position in floor.positions)]
        return tuple(dict.fromkeys(found))

    @property
    def most_runs(self) -> int:
        """The most runs of examples that it takes to look at one text; a floor's are run again, too, edit by edit."""
        return len(self.positions) * (1 + self.reruns)

    @property
    def most_again(self) -> int:
        """The most runs that are made again of what a text as a whole breaks."""
        return len(self.never_break) * self.reruns

    def due(self, before: Scores, *, by_edit: bool = False) -> Scores:
        """What examples have to reach: what they did before, or of `never_break` what passes, where that is less.

        Args:
            before: what each reached with the texts of now; None where no answer was to be had.
            by_edit: to find the edits that break something: what is in a slice with a floor has to reach what it did,
                as an edit with which it passes may be the one that the floor is missed by.

        Example:
            >>> Guarded(("a", "b", "c"), (0, 1), (), passing=0.75).due({0: 1.0, 1: 0.5, 2: 1.0})
            {0: 0.75, 1: 0.5, 2: 1.0}
        """
        most = {} if self.passing is None else dict.fromkeys(self.never_break, self.passing)
        for floor in self.floors if by_edit else ():
            if floor.metric is None:
                most = {n: enough for n, enough in most.items() if n not in floor.positions}
        return {n: score if score is None else min(score, most.get(n, score)) for n, score in before.items()}

    def culprits(
        self,
        before: Scores,
        after: Scores,
        metrics: Sequence[tuple[Scores, Scores]] = (),
        reached: tuple[Scores, Scores] | None = None,
    ) -> tuple[int, ...]:
        """The positions of the examples that `broken` speaks of: those that must not get worse, or of a floor, and did.

        Args:
            before: as for `broken`.
            after: likewise.
            metrics: likewise.
            reached: likewise.
        """
        if not self.broken(before, after, metrics, reached):
            return ()
        was, now = reached or (before, after)
        level = self.due(was)
        found = {position for position in self.never_break if is_worse(level[position], now[position])}
        for floor in self.floors:
            was, now = (before, after) if floor.metric is None else metrics[floor.metric]
            found |= {n for n in floor.positions if was[n] is not None and is_worse(was[n], now[n])}
        return tuple(position for position in self.positions if position in found)

    def broken(
        self,
        before: Scores,
        after: Scores,
        metrics: Sequence[tuple[Scores, Scores]] = (),
        reached: tuple[Scores, Scores] | None = None,
    ) -> str:
        """What is broken, in words; "" when nothing is.

        Args:
            before: the scores with the texts of now.
            after: the scores with the new texts.
            metrics: the same of each metric that the score is made of, on its own scale.
            reached: the most that examples of `never_break` came to with each, in several runs; None where each was
                run once.
        """
        was, now = reached or (before, after)
        level, worse = self.due(was), []
        enough = "" if self.passing is None else f", and {self.passing:g} would pass"
        for position in self.never_break:
            old, new = was[position], now[position]
            if new is None:
                worse.append(f"{self.names[position]} must never break: it could not be run")
            elif old is not None and is_worse(level[position], new):
                worse.append(f"{self.names[position]} must never break: {self._fell(old, new)}{enough}")
        more = len(worse) - _MOST_TOLD
        low = self.low(before, after, metrics)
        return "; ".join([*worse[:_MOST_TOLD], *([f"and {more} more of them"] if more > 0 else []), *low])

    def _fell(self, old: float, new: float) -> str:
        """Two scores that tell that the second is worse, and not what would pass."""
        told = [apart(old, new), *([] if self.passing is None else [apart(new, self.passing)])]
        decimals = max(len(each.partition(".")[2]) for each, _ in told)
        return f"{old:z.{decimals}f} -> {new:z.{decimals}f}"

    def low(self, before: Scores, after: Scores, metrics: Sequence[tuple[Scores, Scores]] = ()) -> list[str]:
        """What of the floors is broken, in words.

        Args:
            before: as for `broken`.
            after: likewise.
            metrics: likewise.
        """
        pairs = [(before, after) if floor.metric is None else metrics[floor.metric] for floor in self.floors]
        return [told for floor, pair in zip(self.floors, pairs) if (told := floor.broken(*pair))]

    def breaks_below(self, top: float | None, before: Scores, after: Scores) -> bool:
        """Whether an example that must never break did worse that was not at the best score before.

        One that could not be run tells nothing of its mark.

        Args:
            top: the best score that there can be; None where nobody knows.
            before: the most that each came to with the texts of now.
            after: that with the new ones.
        """
        level = self.due(before)
        ran = [n for n in self.never_break if before[n] is not None and after[n] is not None]
        return any(is_worse(level[n], after[n]) and (top is None or is_worse(top, before[n])) for n in ran)

    def standing(
        self,
        seed: Scores,
        best: Scores,
        top: float | None = None,
        metrics: Sequence[tuple[Scores, Scores]] = (),
        tested: Sequence[Standing] | None = None,
    ) -> tuple[str, ...]:
        """How the best texts stand to the guards, a sentence for each floor, and one for examples that are not right.

        A guard keeps what there is: a floor that the seed texts miss need not be reached, and an example that they
        fail may stay so.

        Args:
            seed: the scores of the seed texts.
            best: those of the best texts.
            top: the best score that there can be; None where nobody knows.
            metrics: the scores of the seed and the best texts by each metric that the score is made of.
            tested: how they stand to the floors on the test set; None where that was not run.

        Example:
            >>> from textgrad_engine.train import Guards
            >>> guarded = Guards(("a",), {("q", "x"): 0.5}).on([{"id": "a", "q": "x"}, {"q": "y"}], scale=(0, 1))
            >>> guarded.standing({0: 0.0, 1: 1.0}, {0: 0.25, 1: 1.0})[0]
            "the floor of 0.5 under q = 'x' (1 example) is not reached: 0.000 -> 0.250"
        """
        told = [
            floor.standing(*((seed, best) if floor.metric is None else metrics[floor.metric]))
            + ("" if tested is None else _on_test(floor, tested))
            for floor in self.floors
        ]
        level = self.due(seed)
        ran = [n for n in self.never_break if best[n] is not None]
        fell = [n for n in ran if self.reruns and is_worse(level[n], best[n])]
        passed = [n for n in fell if is_worse(seed[n], level[n])]  # in another run, maybe with less than before
        others = [n for n in fell if n not in passed]
        told += self._of_some(others, f"did worse than with the seed prompt {_NOT_IN_EACH}")
        if self.passing is not None:
            told += self._of_some(passed, f"scored below {_rounded(self.passing)} {_NOT_IN_EACH}")
        top = top if self.passing is None else self.passing
        if top is not None:
            wrong = [n for n in ran if is_worse(top, best[n])]
            below = f"{{score}} below {_rounded(top)}"
            known = [n for n in wrong if seed[n] is not None and n not in fell]
            told += self._of_some(known, below + ", as {they} did with the seed prompt")
            told += self._of_some(
                [n for n in wrong if seed[n] is None], below + ", and could not be run with the seed prompt"
            )
        return tuple(told)

    def _of_some(self, found: Sequence[int], what: str) -> list[str]:
        """A sentence on some of the examples that must never break; of none none."""
        if not found:
            return []
        more = [f"{len(found) - _MOST_TOLD} more"] if len(found) > _MOST_TOLD else []
        who = " and ".join([", ".join([self.names[n] for n in found[:_MOST_TOLD]]), *more])
        scores, they = ("scores", "it") if len(found) == 1 else ("score", "they")
        return [f"of {len(self.never_break)} that must never break, {who} {what.format(score=scores, they=they)}"]


def standings(floors: Sequence[Floor], seed: Evaluation, best: Evaluation, split: Split) -> tuple[Standing, ...]:
    """How the seed texts and the best ones stand to floors, on the examples that both were run on.

    Args:
        floors: by the positions of these examples.
        seed: the seed texts on them.
        best: the best texts on them.
        split: whose examples they are.
    """
    found = []
    for floor in floors:
        scored = [each if floor.metric is None else each.parts[floor.metric] for each in (seed, best)]
        was, now = (dict(enumerate(each.scores)) for each in scored)
        found.append(floor.stands(was, now, split))
    return tuple(found)


def _rounded(mark: float) -> str:
    """A mark that was set, with three decimals, or with all that it has where these are more."""
    rounded = f"{mark:.3f}"
    return rounded if abs(float(rounded) - mark) <= ALIKE else f"{mark:g}"


def _on_test(floor: Floor, tested: Sequence[Standing]) -> str:
    """What to say behind how the best texts stand to a floor of how they do on the test set, which was run."""
    found = next((each for each in tested if (each.of, each.least) == (floor.under, floor.least)), None)
    if found is None:
        return "; no test example has that"
    some = "" if floor.metric is not None else f" ({found.examples} example{'' if found.examples == 1 else 's'})"
    return f"; on test{some} it is{'' if found.reached else ' not'}: {found.means}"
