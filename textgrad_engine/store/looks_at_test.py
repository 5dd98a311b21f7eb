"""The looks at a test set that are on record of a run, and which answers they were given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from textgrad_engine.llm.reserve import Part
from textgrad_engine.store.answers_on_record import Where


class RunTests:
    """What is on record of the tests of a run, to tell which part of its end an answer belongs to.

    In each sitting the best texts are tested first (`on_test.evaluate_test`). What is played back is written down
    again, so the file of a later sitting tells of which texts the answers of an earlier one are.
    """

    def __init__(self) -> None:
        self._phases: dict[int, dict[int, Counter[bytes]]] = {}
        self._new: dict[Where, bytes] = {}

    def add(self, where: Where, phase: int, name: bytes, *, again: bool) -> None:
        """Count an answer in.

        Args:
            where: it stands.
            phase: the number of the phase that it was asked in.
            name: of the answer (`identity_of`).
            again: whether it stands in a file before, too.
        """
        self._phases.setdefault(where[0], {}).setdefault(phase, Counter())[name] += 1
        if not again:
            self._new[where] = name

    def parts(self, last: int | None, kept: Callable[[int], bool]) -> dict[Where, Part]:
        """The parts that answers belong to; those of texts that are no longer the best ones to none.

        Args:
            last: the number of the file that tells of the texts which are the best ones; None where none does.
            kept: whether other texts than the seed texts were kept in the sitting of a file.
        """
        seed, best = Counter[bytes](), Counter[bytes]()
        for source, phases in self._phases.items():
            for number, names in phases.items():
                if number > min(phases) or not kept(source):
                    seed |= names
                elif source == last:
                    best = names.copy()
        found: dict[Where, Part] = {}
        for where, name in self._new.items():
            if seed[name]:
                found[where], seed[name] = "seed", seed[name] - 1
            elif best[name]:
                found[where], best[name] = "best", best[name] - 1
        return found


def merged(looks: list[set[bytes]]) -> list[set[bytes]]:
    """The looks at the test set that have nothing in common.

    One is known by what the best texts were answered. Of a run that was cut while it looked, and was taken up again, it
    is in two files, and in the second there is some of the first.
    """
    apart: list[set[bytes]] = []
    for found in looks:
        same = [look for look in apart if not look.isdisjoint(found)]
        apart = [look for look in apart if look not in same] + [found.union(*same)]
    return apart
