"""`cluster`: what was said in nearly the same words is said once, without asking a model."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from textgrad_engine.checks import Range, at_least, check
from textgrad_engine.optim.feedback import FeedbackItem, joined
from textgrad_engine.optim.transforms.base import Gathered, Stateless
from textgrad_engine.optim.words import grams, terms_of

Likeness = dict[int, float]
"""How like an item each other one is that is like enough, by its position; the item itself is 1."""


@dataclass(frozen=True)
class Cluster(Stateless):
    """See `cluster`."""

    threshold: float
    n: int

    def apply(self, gathered: Gathered) -> Gathered:
        """Near-duplicates become one item."""
        items = gathered.items
        alike = self._alike(items)
        found: list[tuple[int, FeedbackItem]] = []
        free = set(range(len(items)))
        weights = [_weight(position, alike, items, free) for position in range(len(items))]
        heap = [(-weight, position) for position, weight in enumerate(weights)]
        heapq.heapify(heap)
        while heap:
            negative, centre = heapq.heappop(heap)
            if centre not in free or weights[centre] != -negative:
                continue  # it was taken, or weighs less by now and stands further down, too
            members = sorted(alike[centre].keys() & free)
            among = set(members)
            medoid = max(members, key=lambda each: (_weight(each, alike, items, among), -each))
            found.append((members[0], joined((items[n] for n in members), items[medoid].text)))
            free -= among
            for position in {other for each in members for other in alike[each]} & free:
                weights[position] = _weight(position, alike, items, free)
                heapq.heappush(heap, (-weights[position], position))
        return replace(gathered, items=tuple(item for _, item in sorted(found, key=lambda pair: pair[0])))

    def _alike(self, items: Sequence[FeedbackItem]) -> list[Likeness]:
        """For each item those that share enough of its runs of words (Jaccard), found by the runs that they share.

        What is said of different things is not alike, and that it is of the same says nothing about how alike it is.
        Most words of a case are those of all cases, so that it is like its equals only.
        """
        runs = []
        for item in items:
            words = [] if item.case else terms_of(item.text.removeprefix(item.about))
            # A text without a word, such as "?!", is like its equals only.
            runs.append({(item.about, *run) for run in grams(words, self.n)} or {("", item.text)})
        # Two texts that are like enough share one of the rarest runs of both, of as many as a text may have of its own
        # (Bayardo, Ma, Srikant, "Scaling up all pairs similarity search", 2007).
        seen = Counter(run for own in runs for run in own)
        holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
        found: list[Likeness] = [{position: 1.0} for position in range(len(runs))]
        for position, own in enumerate(runs):
            least = math.ceil(self.threshold * len(own) - 1e-9)
            rarest = sorted(own, key=lambda run: (seen[run], run))[: len(own) - least + 1]
            for other in {other for run in rarest for other in holders[run]}:
                count = len(own & runs[other])
                if (value := count / (len(own) + len(runs[other]) - count)) >= self.threshold:
                    found[position][other] = found[other][position] = value
            for run in rarest:
                holders[run].append(position)
        return found


def _weight(position: int, alike: list[Likeness], items: Sequence[FeedbackItem], among: set[int]) -> float:
    """How like an item is to others, each weighed by how often it was said."""
    likeness = alike[position]
    return sum(likeness[other] * items[other].times for other in sorted(likeness.keys() & among))


_SHARE = Range("above 0 and at most 1", lambda value: 0 < value <= 1, ("threshold",))


def cluster(threshold: float = 0.8, n: int = 2) -> Cluster:
    """Items that share most of their runs of words become one, in the words of the one that is most like the others.

    The words are those of the medoid, so that somebody did say so. Clusters are stars: the item with the most that is
    like it takes that with it, again and again until none is left. So nothing is joined through a chain of others, and
    the result does not depend on the order of the items but where two weigh the same. The item stands where the first
    of the cluster stood.

    Cases that are shown as they were, where no critic is asked, become one only where they are equal.

    Args:
        threshold: how like two texts must be, above 0 and at most 1: the share of their runs that both have (Jaccard).
            Low values join what differs in the one word that matters.
        n: words in a run; with 1 the order of words does not count. In scripts without spaces two letters of Chinese or
            Japanese are a word, and four of Thai and its like.

    Raises:
        ValueError: a number is out of its range.

    Source: stars as in Aslam, Pelekhov, Rus, "The star clustering algorithm" (2004, JGAA 8:95); runs of words as in
    Broder, "On the resemblance and containment of documents" (1997).

    Example:
        >>> from textgrad_engine.optim.feedback import FeedbackItem
        >>> texts = "Say it in one line.", "Say it in one single line.", "Give reasons."
        >>> left = cluster(0.4).apply(Gathered(tuple(FeedbackItem(text, 1, "", ()) for text in texts)))
        >>> [(item.text, item.times) for item in left.items]
        [('Say it in one line.', 2), ('Give reasons.', 1)]
    """
    check(cluster, locals(), _SHARE, at_least(1, "n"))
    return Cluster(threshold, n)
