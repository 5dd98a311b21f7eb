"""Merging two candidates of a population that have a common ancestor: each text from the one that changed it.

The system-aware merge of GEPA (arXiv 2507.19457). Where both have changed a text, their changes are put together line
by line (`optim.rebase`); where they have changed the same lines, a model is asked to do it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from textgrad_engine.optim.between import edits_between
from textgrad_engine.optim.proposers import Crossover, Merge, Proposer
from textgrad_engine.optim.rebase import merge_patches
from textgrad_engine.optim.search.drafts import Answer, Desk, Draft, Job
from textgrad_engine.optim.search.population import Candidate, Population
from textgrad_engine.optim.search.written import Written


@dataclass(frozen=True)
class Pair:
    """Two candidates that can be merged.

    Attributes:
        better: the number of the one with the higher mean; of equals the earlier one.
        other: the number of the other one.
        ancestor: the number of their youngest common ancestor among those that do not score higher than either.
    """

    better: int
    other: int
    ancestor: int

    @property
    def key(self) -> tuple[int, int]:
        """The two numbers, the smaller one first."""
        return min(self.better, self.other), max(self.better, self.other)


def pairs_in(population: Population, numbers: Iterable[int]) -> list[Pair]:
    """The pairs of some candidates that each have what the other one lacks.

    Neither descends from the other; both do at least as well as an ancestor of theirs; and since that ancestor each has
    changed a text into something that the other one's is not.
    """
    found = []
    ancestors = {number: population.ancestors(number) for number in numbers}
    for one, other in itertools.combinations(sorted(ancestors), 2):
        above = ancestors[one], ancestors[other]
        if one in above[1] or other in above[0]:
            continue
        worst = min(population.mean(one), population.mean(other))
        common = [n for n in sorted(above[0] & above[1]) if population.mean(n) <= worst]
        if not common:
            continue
        old = population.candidates[common[-1]].texts
        texts = [population.candidates[n].texts for n in (one, other)]
        changed = [
            any(mine[n] not in (old[n], theirs[n]) for n in range(len(old)))
            for mine, theirs in (texts, reversed(texts))
        ]
        if all(changed):
            better, lesser = (one, other) if population.mean(one) >= population.mean(other) else (other, one)
            found.append(Pair(better, lesser, common[-1]))
    return found


def merged(desk: Desk, population: Population, pair: Pair, number: int) -> Draft:
    """The draft of two candidates merged; a text for which there is no proposal stays that of the better one.

    Args:
        desk: where a model is asked when both have changed the same lines.
        population: has the candidates.
        pair: which two.
        number: of the proposal.

    Raises:
        ModelError: the models cannot be asked at all.
    """
    ancestor, better, other = (population.candidates[n] for n in (pair.ancestor, pair.better, pair.other))
    texts, origins = list(better.texts), list(better.origins)
    jobs: dict[int, Job] = {}
    written: list[Written] = []
    for n, (old, mine, theirs) in enumerate(zip(ancestor.texts, better.texts, other.texts)):
        if theirs in (old, mine):
            continue
        if mine == old:
            texts[n], origins[n] = theirs, other.origins[n]
            written.append(Written(n, mine, theirs))
            continue
        brief = desk.brief(
            better,
            n,
            step=number,
            others=((theirs, population.mean(pair.other)),),
            other_origins=(other.origins[n],),
        )
        jobs[n] = Job(_merger(ancestor, better, other, n), brief)
    problems: list[str] = []
    answers: list[Answer] = desk.ask(list(jobs.values()))
    for (n, job), answer in zip(jobs.items(), answers):
        if isinstance(answer, str):
            problems.append(answer)
            continue
        texts[n], origins[n] = answer.text, answer.origins
        written.append(Written(n, job.brief.text, answer.text, answer.edits, problem=answer.problem))
    child = Candidate(tuple(texts), tuple(origins), (pair.better, pair.other))
    if problem := desk.problem(better.texts, child.texts):
        written = [Written(each.parameter, each.before, each.before, problem=problem) for each in written[:1]]
        child = better
    return Draft(number, "merge", child, tuple(written), problems=tuple(problems))


def _merger(ancestor: Candidate, better: Candidate, other: Candidate, n: int) -> Proposer:
    """By lines where the two have not changed the same ones; else a model, to which both are shown."""
    patches = [edits_between(ancestor.texts[n], each.texts[n], each.origins[n])[0] for each in (better, other)]
    if merge_patches(ancestor.texts[n], *patches).conflicts:
        return Crossover()
    return Merge(ancestor.texts[n], ancestor.origins[n])
