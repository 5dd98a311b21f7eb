"""Which of several failures a backward pass ends with.

NOTE [Blame]
    Many calls of a pass are under way at the same time, and several may fail, in any order. The error that is raised is
    that of the first in the order of the graph, so that a batch blames the same example in every run: the forward of a
    root first, in the order of the roots; then the rules, in the order in which they would run one after the other, the
    first root and the first edge before the second.

    So when something has failed, only what comes before it goes on, as that may fail, too; the pass ends when nothing
    of it is left. What is sent before something else comes before it in this order, so whatever the first failure needs
    is among what goes on. Rules that may share a call are not asked any more: they wait for all that goes on.
    As forwards come first, one that failed begins no rule, which would be paid for in vain. Rules that are begun by one
    call of `backward_many` fail as one, at the place of the first of them, as nothing says whose error it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from textgrad_engine.autograd.graph import Node
from textgrad_engine.autograd.walk import Visit, in_order_of_turns


class Blame:
    """The failures of a pass so far; see NOTE [Blame].

    Args:
        roots: where the pass begins.
        first: the visits of those roots that wait for no other.
    """

    def __init__(self, roots: Sequence[Node], first: Collection[Visit]) -> None:
        self._turns = in_order_of_turns(roots)
        self._first = first
        self._least: tuple[bool, int] | None = None
        self._error: BaseException | None = None

    def place(self, visit: Visit) -> tuple[bool, int]:
        """Where what a node waits for stands in the order: its forward, if it has not begun, or what its rule asked."""
        waits_for_forward = visit in self._first and visit.gradients is not None
        return not waits_for_forward, self._turns[visit.node]

    def note(self, visit: Visit, error: BaseException) -> None:
        """What a node waited for, or its rule, has failed."""
        place = self.place(visit)
        if self._least is None or place < self._least:
            self._least, self._error = place, error

    def still_waits(self, visit: Visit) -> bool:
        """Whether what a node waits for comes before what has failed."""
        return self._least is None or self.place(visit) < self._least

    def may_begin(self, visit: Visit) -> bool:
        """Whether a node's rule comes before what has failed."""
        return self._least is None or (True, self._turns[visit.node]) < self._least

    def end(self) -> None:
        """Raise the first error, if there is one."""
        error, self._error = self._error, None  # or it would stay as long as its own traceback
        if error is not None:
            try:
                raise error
            finally:
                del error
