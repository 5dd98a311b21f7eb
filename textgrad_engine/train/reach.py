"""Which of the trained texts feedback can reach: said before most of the money is spent, and again at the end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence

from textgrad_engine.autograd import AccumulateGrad, Node, Variable
from textgrad_engine.errors import AutogradError
from textgrad_engine.ops.tools import NO_FEEDBACK, have_been_called

__all__ = ["Reach"]

_log = logging.getLogger("textgrad_engine.train.reach")


class Reach:
    """What is known of a run's losses: whether any leads back to a text that is trained, and to which ones.

    Code that reads an answer's ``.data`` cuts the graph, and of what came before nothing would ever be heard.
    """

    def __init__(self) -> None:
        self._some = False
        self._trained: tuple[str, ...] = ()
        self._beside = 0  # losses that lead to texts which are not trained
        self._lock = threading.Lock()  # the lanes of a search have their first minibatches at the same time

    def look(self, losses: Sequence[Variable], parameters: Mapping[str, Variable]) -> list[Variable]:
        """The losses that lead back to a text; the log tells which of the trained ones none of the first leads back to.

        Those of a minibatch may all lead to other texts: what is trained may be a branch that few examples take.

        Call it before the pass, which frees the graph.

        Args:
            losses: of a minibatch.
            parameters: the Variables that are trained, by the names of the texts.
        """
        roots = [loss for loss in losses if loss.requires_grad]
        with self._lock:
            if self._some or not roots:
                return roots
            found = _leaves_of(roots)
            if not found:  # of calls with tools, of which nobody knows beforehand whether feedback goes through them
                return []
            heard = [name for name, parameter in parameters.items() if id(parameter) in found]
            self._some = bool(heard) or not parameters
            if not self._some:
                if not self._beside:
                    _log.warning(
                        "none of the first %d losses leads back to what is trained (%s): they lead to other texts "
                        "alone (%s), so no feedback on them changes anything. A program that uses what is trained for "
                        "other examples is as it should be. Else give the optimizer those texts, too, or join what "
                        "Python made of an answer's .data to that by ops.straight_through(result, answer)%s",
                        len(roots),
                        ", ".join(parameters),
                        ", ".join([leaf.role or "a text without a role" for leaf in found.values()]),
                        _about_tools(". And "),
                    )
                self._trained = tuple(parameters)
                self._beside += len(roots)
            if heard and (unheard := [name for name in parameters if name not in heard]):
                _log.warning(
                    "none of the first %d losses leads back to %s: no feedback on them gets there. A program that "
                    "reads the .data of an answer and goes on with what Python makes of it joins the two by "
                    "ops.straight_through(result, answer); one that uses other prompts for these examples is as it "
                    "should be%s",
                    len(roots),
                    " or ".join(unheard),
                    _about_tools(". And "),
                )
        return roots

    def refuse_if_cut_off(self, scores: Sequence[float | None]) -> None:
        """Refuse to go on when no loss so far leads back to a text: nothing would ever be heard about one.

        Args:
            scores: of the minibatch; None where there is none.

        Raises:
            AutogradError: some example has a score.
        """
        known = [score for score in scores if score is not None]
        if known and not self._some and not self._beside:
            raise AutogradError(
                f"none of the {len(known)} losses of this minibatch requires grad, so no feedback would reach the "
                "texts. The program must return the Variable that it computes from its parameters, not its .data, a "
                "new Variable or what .detach() gives, and not under no_grad(); what Python made of an answer's .data "
                "is joined to that by ops.straight_through(result, answer). The loss must use what it returns"
                f"{_about_tools('. And ')}."
            )

    def tell_at_the_end(self) -> None:
        """Say it once more where the whole run has led to other texts alone, so that its end is not misread."""
        if self._beside and not self._some:
            _log.warning(
                "none of the %d losses of this run leads back to what is trained (%s), so nothing was learned about "
                "it; see the warning of the first minibatch",
                self._beside,
                ", ".join(self._trained),
            )


def _about_tools(before: str) -> str:
    return f"{before}{NO_FEEDBACK}" if have_been_called() else ""


def _leaves_of(roots: Iterable[Variable]) -> dict[int, Variable]:
    """The leaves behind some losses, by id."""
    waiting: list[Node] = [root._gradient_node() for root in roots]
    seen, leaves = set(map(id, waiting)), dict[int, Variable]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, AccumulateGrad):
            leaves[id(node.variable)] = node.variable
        for edge in node.edges:
            if edge is not None and id(edge.node) not in seen:
                seen.add(id(edge.node))
                waiting.append(edge.node)
    return leaves
