"""How often a patch that is no better wins, trimmed or not: a lane of `PatchSearch` on patches whose effects are known.

    python benchmarks/trimmed_races.py [--runs 400] [--edits 1 4 8 12] [--flips 0.01 0.02 0.05] [--gain 0] [--harm 0]

A patch has some edits, which do their work one after the other. Each of them repairs some of the examples that are
failed and breaks as many of those that are right, drawn for each example; what the table calls "flips" is that part of
all examples. So however many edits are left in a patch, it is worth nothing in truth. With ``--gain`` the last edit
repairs so many examples more, with ``--harm`` the first one breaks so many more. Patches go through `Workshop.patch`:
looked at, trimmed, raced, and where the race is not won trimmed and raced again; nothing else of the search is there.
Examples have nothing in common with the feedback, so those that are looked at first are any.

For each kind of patch, over numbers of examples and accuracies (48, 96 and 200; 0.3, 0.6 and 0.9), the table tells

- how often it won, in the mean and where that is most, and how often the same patches won without trimming;
- how many of its edits were left in those that won, and how many points they won by on the examples of their races;
- the true difference of those that won, in points: what they bring in a world of examples without end.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

from textgrad_engine.autograd import Source, Variable
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.patch import Edit, apply_patch, stamped
from textgrad_engine.optim.patch_search import FEWEST_FAILING
from textgrad_engine.optim.proposers import Brief, Proposal
from textgrad_engine.optim.search.board import Board
from textgrad_engine.optim.search.drafts import Desk
from textgrad_engine.optim.search.objective import FeedbackOn, Texts
from textgrad_engine.optim.search.work import Workshop

SIZES = (48, 96, 200)
ACCURACIES = (0.3, 0.6, 0.9)
POOL = 48
ALLOWANCE = 96
SEED_TEXT = "Do it."
TRIM = "textgrad_engine.optim.search.proving.trimmed"


@dataclass(frozen=True)
class Kind:
    """A kind of patch, and where it is tried.

    Attributes:
        edits: how many edits it has.
        flips: the part of all examples that each edit changes for the better, and for the worse.
        gain: the part of all examples that the last edit repairs besides.
        harm: the part of all examples that the first edit breaks besides.
        size: how many validation examples there are.
        accuracy: the part of them that is right.
    """

    edits: int
    flips: float
    size: int
    accuracy: float
    gain: float = 0.0
    harm: float = 0.0

    def difference(self, left: Sequence[int]) -> float:
        """By how much texts with these edits of it are better, over examples without end."""
        right = self.accuracy
        for repairs, breaks in (self.chances(edit) for edit in left):
            right += (1 - right) * repairs - right * breaks
        return right - self.accuracy

    def chances(self, edit: int) -> tuple[float, float]:
        """How probable it is that an edit repairs an example that is failed, and that it breaks one that is right."""
        more = self.gain if edit == self.edits - 1 else 0.0
        worse = self.harm if edit == 0 else 0.0
        return min(1.0, (self.flips + more) / (1 - self.accuracy)), min(1.0, (self.flips + worse) / self.accuracy)


@dataclass(frozen=True)
class Tried:
    """What became of one patch: whether it won, by how much, and the edits that were in it then."""

    won: bool
    seen: float
    left: tuple[int, ...]


class Known:
    """An objective whose scores are known for each set of edits."""

    tokens_weight = latency_weight = 0.0
    scale = (0.0, 1.0)
    clusters: tuple[str, ...] = ()

    def __init__(self, kind: Kind, seed: int) -> None:
        rng = random.Random(seed)
        self.parameters = (Variable(SEED_TEXT, role="prompt", requires_grad=True),)
        self.train, self.val = ("t0",), tuple(f"v{n}" for n in range(kind.size))
        self.right = [rng.random() < kind.accuracy for _ in self.val]
        chances = [kind.chances(edit) for edit in range(kind.edits)]
        self.flips = [[tuple(rng.random() < chance for chance in both) for _ in self.val] for both in chances]

    def scores(self, texts: Texts, positions: Sequence[int], split: str = "val", *, repeat: int = 0) -> list[float]:
        """Right or wrong, by the edits that are in the text."""
        found = []
        for n in positions:
            right = self.right[n]
            for line in texts[0].split("\n")[1:]:
                right = right is not self.flips[int(line)][n][right]
            found.append(float(right))
        return found

    def matrix(self, candidates: Sequence[Texts], positions: Sequence[int], split: str = "val") -> list[list[float]]:
        """The same of several texts."""
        return [self.scores(texts, positions) for texts in candidates]

    def feedback(self, texts: Texts, positions: Sequence[int]) -> FeedbackOn:
        """One example says something."""
        said = Variable("Do it better.")
        said.source = Source(example="t0", output="")
        return FeedbackOn((0.0,), ((said,),))

    def near(self, positions: Sequence[int], among: Sequence[int]) -> list[int]:
        """Nothing is like anything."""
        return list(among)

    def broken(self, before: Texts, after: Texts, number: int = 0) -> tuple[int, ...]:
        """Nothing is guarded."""
        return ()

    def refusal(self, before: Texts, after: Texts, number: int = 0) -> str:
        """Nothing is guarded."""
        return ""


class Lines:
    """A proposer whose patch has one line for each edit."""

    def __init__(self, edits: int) -> None:
        self.edits = edits

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Always the same patch."""
        edits = stamped([Edit("add", 1, str(n), "asked", (1,)) for n in range(self.edits)], brief.step)
        evidence = [item.evidence for item in brief.items]
        text, origins = apply_patch(brief.text, brief.origins, edits, evidence, brief.step)
        return Proposal(text, tuple(origins), tuple(edits))


def tried(kind: Kind, seed: int, *, trimming: bool = True) -> Tried:
    """One patch, looked at, trimmed and raced as a lane does it.

    Args:
        kind: of patch.
        seed: of what each edit changes, and of the order of examples in races.
        trimming: False races it as it is.
    """
    known: Any = Known(kind, seed)
    settings = {"constraints": (), "max_tokens": 2000, "max_feedback_tokens": 8000, "transforms": None}
    shop = Workshop(
        desk=Desk(known.parameters, (settings,), None),
        proposer=Lines(kind.edits),
        momentum=0,
        feedback_batch_size=8,
        allowance=ALLOWANCE,
    )
    board, used = Board((SEED_TEXT,), ((None,),), limits=known.scale), 0
    while used < kind.size and len(board.failing) < FEWEST_FAILING:
        used = min(kind.size, used + POOL)
        board.val = dict(enumerate(known.scores(board.texts, range(used))))
    with contextlib.nullcontext() if trimming else mock.patch(TRIM, return_value=None):
        found = shop.patch(known, board, 1, (0,), kind.edits, str(seed), lambda hear: hear())
    left = tuple(int(line) for line in found.texts[0].split("\n")[1:])
    assert found.race is not None
    return Tried(found.race.outcome == "better", found.race.difference, left)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--edits", type=int, nargs="+", default=[1, 4, 8, 12])
    parser.add_argument("--flips", type=float, nargs="+", default=[0.01, 0.02, 0.05])
    parser.add_argument("--gain", type=float, default=0.0)
    parser.add_argument("--harm", type=float, default=0.0)
    arguments = parser.parse_args()
    print("edits  flips   won: mean   most   untrimmed   edits left   seen difference   true difference")
    for edits in arguments.edits:
        for flips in arguments.flips:
            more = arguments.gain, arguments.harm
            kinds = [Kind(edits, flips, size, right, *more) for size in SIZES for right in ACCURACIES]
            print(row(kinds, arguments.runs), flush=True)


def row(kinds: Sequence[Kind], runs: int) -> str:
    """A line of the table."""
    rates, without, left, seen, true = [], [], [], [], []
    for kind in kinds:
        every = [tried(kind, seed) for seed in range(runs)]
        won = [each for each in every if each.won]
        rates.append(len(won) / runs)
        without.append(sum(tried(kind, seed, trimming=False).won for seed in range(runs)) / runs)
        left += [len(each.left) for each in won]
        seen += [100 * each.seen for each in won]
        true += [100 * kind.difference(each.left) for each in won]
    told = f"{kinds[0].edits:5}  {kinds[0].flips:5.2f}   {statistics.mean(rates):9.2f}  {max(rates):5.2f}"
    told += f"   {statistics.mean(without):9.2f}"
    if not left:
        return told
    return f"{told}   {statistics.mean(left):10.1f}   {statistics.mean(seen):15.1f}   {statistics.mean(true):15.1f}"


if __name__ == "__main__":
    main()
