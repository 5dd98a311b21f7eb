"""A paired race: a candidate and the current texts on the same examples, in growing batches, until the sign is clear.

The examples are cut into strata (those that the current texts fail come first, as a change shows there first); the
difference of the means is put together from the strata by their sizes, so that looking at failures first does not
flatter the candidate. Buying examples only while they can change the decision is the idea of racing (Maron and Moore
1994, Hoeffding races); the decision itself is Bayesian, as a posterior may be looked at after every batch.

NOTE [How often it is wrong]
    Simulated over 48 to 200 examples and accuracies of 0.3 to 0.9 (``tests/optim/search/test_race.py``). A candidate
    that is in truth no better, and changes as many examples for the better as for the worse, wins so often: with 1%
    of the examples each way in 3 races of 100 (9 where it is worst: many examples, most of them right), with 2% in 9
    (21), with 5% in 17 (42). One that is better by 3, 5, 8 or 20 points wins in 48, 59, 83 or 95 of 100. More could
    be asked for, and would cost as much in gains not seen. Where the balance decides a race that has run all it may,
    the same candidates win in 11, 17 and 25 of 100 (25, 28 and 46) at 0.6 and in 7, 12 and 20 at 0.8, and those
    better by 3 and 5 points in 55 and 72 at 0.6, and in 51 and 71 at 0.8. Where answers come out the other way by
    themselves, in 2, 5 or 10 of 100, one that does the same as the current texts wins in 8, 15 or 19 races of 100 (35
    where it is worst) when nobody has measured that, and in 4, 8 or 11 (15) when the race knows (by the balance in
    17, 21 or 21 (34) at 0.6, and in 11, 14 or 16 (23) at 0.8); one better by 8 points wins in 81, 71 or 60 and in 79,
    67 or 54.

    A patch whose edits are left out by what they do on examples that it is then raced on wins by luck more often
    (``benchmarks/trimmed_races.py``, the same sizes and accuracies, the balance deciding at the end). One of 4, 8 or
    12 edits that are worth nothing, of which each changes 2% of the examples each way, wins in 38, 58 or 68 of 100
    (79 where it is worst), and as it is, untrimmed, in 17, 22 or 22. Those that win look 7 to 11 points better in
    their races and are not better at all. That is the price of wins that were lost: where one edit of these repairs
    8% of the examples and another one breaks 8%, the patch wins in 82, 88 or 91 of 100 instead of 49, 55 or 59, and
    is 7 points better in truth.

    So a win is what a search goes on with, not what it claims: edits are tried without later, and what a run says in
    the end rests on a sealed test set.

NOTE [Clusters]
    Where examples come in clusters, the variance of the mean is what it is without them, and, where those of one
    cluster change alike, as much more as the sums over clusters vary more than single examples do (the clustered
    standard error of Cameron and Miller 2015, which `train.clusters` has, too, with its factor for few of them). And a
    cluster that has changed counts once. Simulated over documents of 8 questions, 80% of which change with their
    document where that does, as often for the better as for the worse: with 24 documents, of which 15 in 100 change
    each way, the same texts win in 13 races of 100 instead of 32, with 12 in 9 instead of 32. Of 24 documents, of which
    a further 15 or 30 in 100 get better, 47 and 83 are found instead of 71 and 91. Where the questions of a document
    change one by one, 50, 85 and 94 gains are found instead of 58, 86 and 95.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Literal

Outcome = Literal["better", "worse", "no difference"]

ACCEPT = 0.95
"""A candidate is better when the probability of that is at least this."""

PRIOR_WEIGHT = 1.0
"""The prior counts like so many examples without a difference in each stratum."""

PRIOR_SPREAD = 0.3
"""The standard deviation of a difference before any was seen, as a share of the scores' scale."""

FEWEST = 2
"""A single example never decides."""

KEEP = 0.6
"""Where an edit is tried without, it stays when it is this probable that the texts are worse without it."""

BATCH = 12
"""So many examples are in the first batch; each further one is twice as large."""

PATIENCE = 32
"""After so many examples, a candidate that is no more likely better than worse is not run any further."""

PROMISING = 0.5
"""A candidate that is this probably better when the examples in use run out is worth more of them."""

AT_THE_END, AT_THE_END_LONGER = 0.6, 0.8
"""When no more may be run, texts are better at this probability: such as have no more lines, and longer ones."""

MANY = 64
"""With fewer examples than this nothing is decided by less than `ACCEPT`, as two of them could."""

GLANCE = 8
"""So many examples where a difference shows first, and none there: it is not looked for any further."""


class Race:
    """Which examples to run next, and whether the difference is decided.

    Args:
        strata: positions of examples, each once; the first stratum is where a difference shows first. Inside a stratum
            the order is that of running.
        first: how many examples the first batch has; each further one is twice as large.
        allowance: at most so many examples in all; None for all there are.
        until: ``"better"`` for a candidate that is of use only when it is better: a race ends early when nothing gets
            better where that shows first. ``"worse"`` for one that is taken unless it is worse, as it is shorter: a
            race ends early when nothing gets worse where that shows first, unless `glance` is None.
        accept: the probability at which "better" (and, mirrored, "worse") is decided.
        reject: the probability at which "worse" is decided, where that is another.
        at_the_end: the probability at which "better" is decided when all was run that may be, and that is `MANY`
            examples or more: waiting brings nothing then. None for `accept`.
        fewest: so many examples must have changed for "better" or "worse".
        least: so many examples must have been run for "better", or all that may be.
        hopeful: the positions where the candidate can be better at all; None for all. A race until "better" ends when
            too few of them are left. In strata without any, the prior expects as much harm as was seen in one of them.
        glance: a race ends early when so many examples of the first stratum show nothing; None runs on to the end. Of a
            race until ``"worse"`` nothing else is decided then before the end: that a few failures come out right says
            little, as these were picked for failing, and some come out right with any other text.
        handicap: by so much the candidate's mean must be higher to be as good, for it costs more in another way, such
            as tokens; negative when it costs less.
        scale: the distance between the worst and the best score.
        noise: the variance of one example's score between runs of the same texts, in units of the score.
        clusters: the cluster of each position, such as the document that several questions are about: its examples may
            get better and worse together. () when each stands for itself. See NOTE [Clusters].

    Raises:
        ValueError: there is no example, one comes twice, or a number is out of range.

    Example:
        >>> race = Race([[0, 1, 2, 3], [4, 5]], first=6)
        >>> race.next()
        [0, 1, 2, 3, 4, 5]
        >>> for position in (0, 1, 2, 3):
        ...     race.add(position, before=0.0, after=1.0)
        >>> for position in (4, 5):
        ...     race.add(position, before=1.0, after=1.0)
        >>> race.outcome
        'better'
    """

    def __init__(
        self,
        strata: Sequence[Sequence[int]],
        *,
        first: int = BATCH,
        allowance: int | None = None,
        until: Literal["better", "worse"] = "better",
        accept: float = ACCEPT,
        reject: float | None = None,
        at_the_end: float | None = None,
        fewest: int = FEWEST,
        least: int = 0,
        hopeful: Collection[int] | None = None,
        glance: int | None = GLANCE,
        handicap: float = 0.0,
        scale: float = 1.0,
        noise: float = 0.0,
        clusters: Sequence[str] = (),
    ) -> None:
        self._waiting = [list(stratum) for stratum in strata if stratum]
        every = [position for stratum in self._waiting for position in stratum]
        if not every or len(set(every)) < len(every):
            raise ValueError("a race needs examples, each in one stratum, once")
        levels = accept, accept if reject is None else reject, accept if at_the_end is None else at_the_end
        if min(first, fewest, 1 if allowance is None else allowance) < 1 or scale <= 0 or noise < 0:
            raise ValueError(
                f"a race needs first, fewest and allowance >= 1, scale > 0 and noise >= 0; got first={first}, "
                f"fewest={fewest}, allowance={allowance}, scale={scale}, noise={noise}"
            )
        if not all(0.5 < level < 1 for level in levels):
            raise ValueError(
                f"a race needs accept, reject and at_the_end between 0.5 and 1, got {accept}, {reject} and {at_the_end}"
            )
        self._stratum = {position: n for n, stratum in enumerate(self._waiting) for position in stratum}
        self._sizes = [len(stratum) for stratum in self._waiting]
        self._differences: list[list[float]] = [[] for _ in self._waiting]
        self._costs: list[list[float]] = [[] for _ in self._waiting]
        self._cluster_of = clusters
        self._clusters: list[list[str]] = [[] for _ in self._waiting]  # of each difference, where there are any
        self._batch, self._left = first, len(every) if allowance is None else min(allowance, len(every))
        self._fewest, self._least, self._glance, self.handicap = fewest, least, glance, handicap
        self._hopeful = set(every if hopeful is None else hopeful)
        self._hopeless = [self._hopeful.isdisjoint(stratum) for stratum in self._waiting]
        self._until, (self._accept, self._reject, self._at_the_end) = until, levels
        # Two runs differ by twice the noise of one. The strata know the first of them, which leaves the second: no
        # example is taken to be steadier than that, also where none has changed yet.
        self._prior, self._noise = max((PRIOR_SPREAD * scale) ** 2, 2 * noise), noise
        self._open: set[int] = set()

    def next(self) -> list[int]:
        """The positions of the next batch: half of them from the first stratum; empty when the race is over."""
        if self._open:
            raise RuntimeError(
                f"{len(self._open)} examples of the last batch have no scores yet; give them to add() first"
            )
        if self.outcome is not None:
            return []
        size = min(self._batch, self._left)
        self._batch *= 2
        head = self._waiting[0]
        rest = [position for stratum in self._alternating() for position in stratum]
        from_head = min(len(head), max(-(-size // 2), size - len(rest)))
        chosen = head[:from_head] + rest[: size - from_head]
        taken = set(chosen)
        self._waiting = [[position for position in stratum if position not in taken] for stratum in self._waiting]
        self._left -= len(chosen)
        self._hopeful.difference_update(chosen)
        self._open = set(chosen)
        return chosen

    def add(self, position: int, before: float | None, after: float | None, cost: float = 0.0) -> None:
        """Tell an example's scores; None where no answer was to be had, which says nothing about either.

        Args:
            position: the example.
            before: its score with the current texts.
            after: its score with the candidate.
            cost: what the example costs more with the candidate than with the current texts, in units of the score;
                negative when it costs less. It comes off the difference, so how much it varies counts as well.

        Raises:
            ValueError: the example is not in the last batch, or was told before.
        """
        if position not in self._open:
            raise ValueError(f"no scores of position {position} are wanted; those of {sorted(self._open)} are")
        self._open.remove(position)
        if before is not None and after is not None:
            stratum = self._stratum[position]
            self._differences[stratum].append(after - before)
            self._costs[stratum].append(cost)
            if self._cluster_of:
                self._clusters[stratum].append(self._cluster_of[position])

    @property
    def outcome(self) -> Outcome | None:
        """What is decided; None while the next batch can change it."""
        if self._open:
            return None
        every = self._by_cluster()
        up, down = sum(change > 0 for change in every), sum(change < 0 for change in every)
        priced = any(any(costs) for costs in self._costs)
        early = self._run >= self._least and (self._until == "better" or self._glance is not None)
        if (
            (early or not self._left)
            and (up >= self._fewest or self.handicap < 0 or priced)
            and self.probability >= self._accept
        ):
            return "better"
        if (down >= self._fewest or self.handicap > 0) and self.probability <= 1 - self._reject:
            return "worse"
        if priced and self.probability <= 1 - self._accept:  # by cost alone: what varies needs the stricter level
            return "worse"
        if not self._left:
            by_balance = self._until == "better" and up >= self._fewest and len(every) >= MANY
            return "better" if by_balance and self.probability >= self._at_the_end else "no difference"
        return "no difference" if self._in_vain(up, down) else None

    @property
    def probability(self) -> float:
        """How probable it is that the candidate's mean is higher by more than its handicap, by what was added."""
        posteriors = self._posteriors()
        spread = math.sqrt(sum(share**2 * variance for share, _, variance in posteriors) + self._together(posteriors))
        return 0.5 * (1 + math.erf((self._mean() - self.handicap) / spread / math.sqrt(2)))

    @property
    def difference(self) -> float:
        """The difference of the means by the strata's sizes, without the prior."""
        return self._weighted(self._differences)

    @property
    def cost(self) -> float:
        """The mean of the costs by the strata's sizes, without the prior."""
        return self._weighted(self._costs)

    def _weighted(self, values: list[list[float]]) -> float:
        total = sum(size for size, found in zip(self._sizes, values) if found)
        parts = (size * sum(found) / len(found) for size, found in zip(self._sizes, values) if found)
        return sum(parts) / total if total else 0.0

    def _in_vain(self, up: int, down: int) -> bool:
        if self.handicap * (1 if self._until == "better" else -1) < 0:  # it can be decided though nothing changes
            return False
        if self._until == "better" and up + len(self._hopeful) < self._fewest:
            return True
        if self._until == "better" and self._run >= PATIENCE and self.probability < 0.5:
            return True
        if self._glance is None or len(self._differences[0]) < min(self._sizes[0], self._glance):
            return False
        return (up if self._until == "better" else down) == 0

    @property
    def _run(self) -> int:
        return sum(map(len, self._differences))

    def _by_cluster(self) -> list[float]:
        """What has changed: a number for each cluster, or for each example where there are none."""
        if not self._cluster_of:
            return [change for stratum in self._differences for change in stratum]
        sums: dict[str, float] = {}
        for changes, clusters in zip(self._differences, self._clusters):
            for change, cluster in zip(changes, clusters):
                sums[cluster] = sums.get(cluster, 0.0) + change
        return list(sums.values())

    def _together(self, posteriors: Sequence[tuple[float, float, float]]) -> float:
        """The variance that the mean has beyond that of examples which stand for themselves; see NOTE [Clusters]."""
        sums: dict[str, float] = {}
        alone = 0.0
        for (share, mean, _), changes, costs, clusters in zip(
            posteriors, self._differences, self._costs, self._clusters
        ):
            for change, cost, cluster in zip(changes, costs, clusters):
                part = share * (change - cost - mean) / (len(changes) + PRIOR_WEIGHT)
                sums[cluster] = sums.get(cluster, 0.0) + part
                alone += part**2
        number = len(sums)
        more = sum(part**2 for part in sums.values()) - alone
        return max(0.0, more) * number / (number - 1) if number > 1 else 0.0

    def _mean(self) -> float:
        return sum(share * mean for share, mean, _ in self._posteriors())

    def _posteriors(self) -> list[tuple[float, float, float]]:
        total = sum(self._sizes)
        harm = self._harm()
        found = []
        for size, changes, costs, hopeless in zip(self._sizes, self._differences, self._costs, self._hopeless):
            differences = [change - cost for change, cost in zip(changes, costs)]
            weight = len(differences) + PRIOR_WEIGHT
            expected = harm if hopeless else 0.0
            mean = (sum(differences) + PRIOR_WEIGHT * expected) / weight
            squares = PRIOR_WEIGHT * (self._prior + expected**2) + sum(change**2 for change in differences)
            found.append((size / total, mean, max(squares / weight - mean**2, self._noise) / weight))
        return found

    def _harm(self) -> float:
        """What is to be expected, until it is seen, where a candidate can only do harm: as much as where it does most.

        Of what is right, the examples that a candidate is about are looked at first. That some of them get worse says
        something of the others, too, of which only few are run before a decision.
        """
        pairs = zip(self._differences, self._hopeless)
        return min([0.0, *(sum(changes) / len(changes) for changes, hopeless in pairs if hopeless and changes)])

    def _alternating(self) -> list[list[int]]:
        # One of each further stratum in turn, so that none is left out of an early decision.
        others = self._waiting[1:]
        longest = max((len(stratum) for stratum in others), default=0)
        return [[stratum[n] for stratum in others if n < len(stratum)] for n in range(longest)]


def balance(before: Sequence[str], after: Sequence[str]) -> float:
    """The probability at which texts are better when no more may be run, for `Race`; of equals the shorter ones stay.

    Args:
        before: the current texts.
        after: the new ones.
    """
    now, then = (sum(text.count("\n") for text in texts) for texts in (before, after))
    return AT_THE_END_LONGER if then > now else AT_THE_END


def first_batch(changed: Sequence[int]) -> int:
    """How many examples a race begins with when these are its first stratum: all of them, and as many others."""
    return max(BATCH, 2 * len(changed))
