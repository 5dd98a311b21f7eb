"""What is known of texts that were tried, which nobody has to ask for again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from textgrad_engine.autograd import Variable
from textgrad_engine.optim.search.objective import Split, Texts
from textgrad_engine.train.doubtful import Answer, Answered
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.evaluator import Scored, evaluation_of
from textgrad_engine.train.grid import Row
from textgrad_engine.train.guarded import Guarded, Scores
from textgrad_engine.train.known import Key, KnownScores
from textgrad_engine.train.leaves import check_texts
from textgrad_engine.train.metric_scores import MetricScores, filled, parts_of_scales
from textgrad_engine.train.reruns import most_of
from textgrad_engine.train.scores import ALIKE

OnGuarded: TypeAlias = tuple[Scores, Scores, list[tuple[Scores, Scores]], tuple[Scores, Scores]]
"""What `Guarded` asks for: the scores with two candidates, the same of each metric that they are made of, and what the
examples that must never break reached with each."""


class Findings:
    """What is known of the texts that an `Objective` has tried; reading it asks no model.

    Attributes:
        train: the ids of the training examples.
        val: those of the validation examples.
        scale: the lowest and the highest score that there can be; None where the loss does not say.
        timed: whether latencies were noted.
        clusters: which cluster each validation example belongs to; empty where each stands for itself.
        guarded: what no new texts may break, by the positions of the validation examples; None for nothing.
        answered: what was answered on training examples beside what is known of candidates.
    """

    train: tuple[str, ...]
    val: tuple[str, ...]
    scale: tuple[float, float] | None
    timed: bool
    clusters: tuple[str, ...]
    guarded: Guarded | None
    answered: Answered
    _known: KnownScores
    _named: Mapping[str, Variable]
    _parts: Sequence[MetricScores]
    _rows: dict[Split, list[Row]]
    _train_validates: bool

    def latencies(self, texts: Texts, positions: Sequence[int], split: Split = "val") -> list[float | None]:
        """The seconds that the forward calls of some examples took with these texts; see `optim.search.objective`."""
        found = self._known.read([(texts, split, position, 0) for position in positions])
        return [None if each is None else each.latency for each in found]

    def by_metric(self, texts: Texts, positions: Sequence[int], split: Split = "val") -> list[tuple[float, ...] | None]:
        """What each metric gave some examples with these texts; see `optim.search.objective`."""
        found = self._known.read([(texts, split, position, 0) for position in positions])
        return [parts_of_scales(self._parts, each.parts) if each and each.parts else None for each in found]

    def missing(self, texts: Texts) -> int:
        """How many validation examples were not run with these texts yet."""
        return self._known.missing(self._validation(texts))

    def known(self, texts: Texts) -> Evaluation | None:
        """What is known of the validation set with these texts, without asking; None when that is nothing."""
        found = self._known.read(self._validation(texts))
        scores = [None if each is None else each.score for each in found]
        if all(score is None for score in scores):
            return None
        lost = {
            name: f"{type(each.failure).__name__}: {each.failure}"
            for name, each in zip(self.val, found)
            if each is not None and each.failure is not None
        }
        latency = tuple(None if each is None else each.latency for each in found) if self.timed else ()
        return Evaluation(
            self.val,
            tuple(scores),
            tuple(None for _ in scores),
            lost,
            clusters=self.clusters,
            scale=self.scale,
            latency=latency,
            not_run=tuple(name for name, each in zip(self.val, found) if each is None),
            parts=filled(self._parts, [[each.parts] if each and each.parts else [] for each in found]),
        )

    def validated(self, seed: Texts) -> list[tuple[Texts, Evaluation]]:
        """The texts that answered each validation example that the seed texts did, sorted, with what they came to.

        So all of them are told by the same examples, and one that never answers hides nobody. Those that break what the
        guards keep whole with the seed texts are left out. There are none before the seed texts were run on the whole
        validation set.

        Args:
            seed: the texts that a run began with.
        """
        results: dict[Texts, dict[int, Scored]] = {seed: {}}
        reached: dict[Texts, dict[int, float | None]] = {}
        tried: set[int] = set()
        reruns = 0 if self.guarded is None else self.guarded.reruns
        for (texts, split, position, repeat), result in self._known.every():
            if split == "val" and not repeat:
                if texts == seed:
                    tried.add(position)
                if result.score is not None:
                    results.setdefault(texts, {}).setdefault(position, result)
            if split == "val" and repeat <= reruns and result.score is not None:
                before = reached.setdefault(texts, {}).get(position)
                reached[texts][position] = result.score if before is None else max(before, result.score)
        shared = sorted(results[seed])
        if not shared or len(tried) < len(self.val):
            return []
        names = tuple(self.val[position] for position in shared)
        return [
            (
                texts,
                evaluation_of(names, [found[position] for position in shared], scale=self.scale, parts=self._parts),
            )
            for texts, found in sorted(results.items())
            if found.keys() >= results[seed].keys()
            and (texts == seed or not self._breaks(results[seed], found, (reached[seed], reached[texts])))
        ]

    def tried(self, but: Collection[Texts]) -> list[Evaluation]:
        """What is known of the validation set with all texts that were run on some of it, sorted by their texts.

        Args:
            but: texts that are left out.

        Returns:
            Their scores, None for examples that they were not run on.
        """
        results: dict[Texts, dict[int, float | None]] = {}
        for (texts, split, position, repeat), result in self._known.every():
            if split == "val" and not repeat and texts not in but:
                results.setdefault(texts, {})[position] = result.score
        count = len(self.val)
        return [
            Evaluation(
                self.val,
                tuple(found.get(n) for n in range(count)),
                (None,) * count,
                {},
                clusters=self.clusters,
                scale=self.scale,
            )
            for _, found in sorted(results.items())
        ]

    def _breaks(self, before: dict[int, Scored], after: dict[int, Scored], reached: tuple[Scores, Scores]) -> bool:
        """Whether the guards refuse texts by what is known of them; nothing is run."""
        if self.guarded is None:
            return False
        return bool(self.guarded.broken(*self._of_guarded(self.guarded, before, after, reached)))

    def _reached(self, texts: Texts, positions: Sequence[int], reruns: int) -> Scores:
        """What validation examples reached, in their first run and so many further ones, of those that there were."""
        runs = [self._known.read([(texts, "val", n, repeat) for n in positions]) for repeat in range(reruns + 1)]
        return most_of(positions, [[None if ran is None else ran.score for ran in row] for row in runs])

    def vary(self) -> tuple[int, int]:
        """How many validation examples came to another score when run again with the same texts, and of how many."""
        first: dict[tuple[Texts, int], float] = {}
        again: dict[tuple[Texts, int], list[float]] = {}
        for (texts, split, position, repeat), result in self._known.every():
            if split == "val" and result.score is not None:
                if repeat:
                    again.setdefault((texts, position), []).append(result.score)
                else:
                    first.setdefault((texts, position), result.score)
        twice = {key: scores for key, scores in again.items() if key in first}
        return sum(any(abs(each - first[key]) > ALIKE for each in twice[key]) for key in twice), len(twice)

    def answers(self) -> Iterator[Answer]:
        """What was answered on the training and validation examples, with each text that was tried on one.

        Those without a right answer are left out.
        """
        names = {"train": self.train, "val": self.val}
        with_target = {
            (split, name) for split, rows in self._rows.items() for name, _, wanted in rows if wanted is not None
        }
        yield from (answer for answer in self.answered.every() if (answer.split, answer.example) in with_target)
        for (texts, split, position, repeat), result in self._known.every():
            if not repeat and result.score is not None and (split, names[split][position]) in with_target:
                where: Split = "train" if self._train_validates else split
                yield Answer(where, names[split][position], texts, result.score, result.prediction)

    def _of_guarded(
        self,
        guarded: Guarded,
        before: Mapping[int, Scored],
        after: Mapping[int, Scored],
        reached: tuple[Scores, Scores],
    ) -> OnGuarded:
        """What `Guarded` asks for of two candidates, from their results and what some examples reached with each."""

        def by(found: Mapping[int, Scored], metric: int | None) -> Scores:
            each = {n: found.get(n) for n in guarded.positions}
            return {
                n: None if one is None or one.score is None else one.score if metric is None else one.parts[metric]
                for n, one in each.items()
            }

        pairs = [(by(before, metric), by(after, metric)) for metric in range(len(self._parts))]
        never = dict.fromkeys(guarded.never_break)
        return by(before, None), by(after, None), pairs, ({**never, **reached[0]}, {**never, **reached[1]})

    def _validation(self, texts: Texts) -> list[Key]:
        check_texts(self._named, texts)
        return [(texts, "val", position, 0) for position in range(len(self.val))]
