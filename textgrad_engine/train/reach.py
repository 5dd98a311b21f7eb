"""Which of the trained texts feedback can reach: said once, before most of the money is spent."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence

from textgrad_engine.autograd import AccumulateGrad, Node, Variable
from textgrad_engine.errors import AutogradError

__all__ = ["Reach"]

_log = logging.getLogger("textgrad_engine.train.reach")


class Reach:
    """What is known of a run's losses: whether any leads back to a text, and to which ones.

    Code that reads an answer's ``.data`` cuts the graph, and of what came before nothing would ever be heard.
    """

    def __init__(self) -> None:
        self._some = False
        self._lock = threading.Lock()  # the lanes of a search have their first minibatches at the same time

    def look(self, losses: Sequence[Variable], parameters: Mapping[str, Variable]) -> list[Variable]:
        """The losses that lead back to a text; of the first minibatch that has any, the log tells what none leads to.

        Call it before the pass, which frees the graph.

        Args:
            losses: of a minibatch.
            parameters: the Variables that are trained, by the names of the texts.
        """
        roots = [loss for loss in losses if loss.requires_grad]
        with self._lock:
            is_first, self._some = bool(roots) and not self._some, self._some or bool(roots)
        if is_first:
            found = _leaves_of(roots)
            if unheard := [name for name, parameter in parameters.items() if id(parameter) not in found]:
                _log.warning(
                    "none of the first %d losses leads back to %s: no feedback on them gets there. A program that "
                    "reads the .data of an answer and goes on with what Python makes of it joins the two by "
                    "ops.straight_through(result, answer); one that uses other prompts for these examples is as it "
                    "should be",
                    len(roots),
                    " or ".join(unheard),
                )
        return roots

    def refuse_if_cut_off(self, scores: Sequence[float | None]) -> None:
        """Refuse to go on when no loss so far leads back to a text: nothing would ever be heard about it.

        Args:
            scores: of the minibatch; None where there is none.

        Raises:
            AutogradError: some example has a score.
        """
        known = [score for score in scores if score is not None]
        if known and not self._some:
            raise AutogradError(
                f"none of the {len(known)} losses of this minibatch requires grad, so no feedback would reach the "
                "texts. The program must return the Variable that it computes from its parameters, not its .data, a "
                "new Variable or what .detach() gives, and not under no_grad(); what Python made of an answer's .data "
                "is joined to that by ops.straight_through(result, answer). The loss must use what it returns."
            )


def _leaves_of(roots: Iterable[Variable]) -> set[int]:
    """The ids of the leaves behind some losses."""
    waiting: list[Node] = [root._gradient_node() for root in roots]
    seen, leaves = set(map(id, waiting)), set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, AccumulateGrad):
            leaves.add(id(node.variable))
        for edge in node.edges:
            if edge is not None and id(edge.node) not in seen:
                seen.add(id(edge.node))
                waiting.append(edge.node)
    return leaves
