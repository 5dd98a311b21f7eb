"""Which of the trained texts feedback can reach: said before most of the money is spent, and again at the end."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from textgrad_engine.autograd import AccumulateGrad, Node, Variable
from textgrad_engine.errors import AutogradError
from textgrad_engine.ops.tools import NO_FEEDBACK, have_been_called
from textgrad_engine.train.rehearsal import is_rehearsed

_log = logging.getLogger("textgrad_engine.train.reach")  # as it was called: programs filter by it


class Reach:
    """What is known of a run's losses: whether any leads back to a text that is trained, and to which ones.

    Code that reads an answer's ``.data`` cuts the graph, and of what came before nothing would ever be heard.

    Args:
        examples: how many training examples there are.
    """

    def __init__(self, examples: int) -> None:
        self._examples = examples
        self._some = False
        self._cut_off: set[Hashable] = set()  # the examples so far of which no loss leads anywhere
        self._lost: Counter[Hashable] = Counter()  # how often an example had no answer
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
                        "alone (%s), so no feedback on them changes anything. All is well if the program uses what is "
                        "trained for other examples. Else give the optimizer those texts, too; if Python makes the "
                        "result from an answer's .data, return ops.straight_through(result, answer)%s",
                        len(roots),
                        ", ".join(parameters),
                        ", ".join([leaf.role or "a text without a role" for leaf in found.values()]),
                        _caveat(),
                    )
                self._trained = tuple(parameters)
                self._beside += len(roots)
            if heard and (unheard := [name for name in parameters if name not in heard]):
                _log.warning(
                    "none of the first %d losses leads back to %s: no feedback on them gets there. All is well if the "
                    "program uses other prompts for these examples. Else: if Python makes something from an answer's "
                    ".data, go on with ops.straight_through(result, answer); put a parameter into a text by "
                    "ops.format, + or {slots}, as an f-string is plain text%s",
                    len(roots),
                    " or ".join(unheard),
                    _caveat(),
                )
        return roots

    def refuse_if_cut_off(self, examples: Iterable[Hashable], scores: Iterable[float | None]) -> None:
        """Refuse to go on when no loss of any training example leads back to a text: nothing is ever heard about one.

        What is trained may be used for few examples. So as long as there are others, that is told once, and the run
        goes on. Those that had no answer twice are waited for no longer.

        Args:
            examples: what tells those of the minibatch from others.
            scores: of each; None where there is none.

        Raises:
            AutogradError: all of them had a score by now.
        """
        with self._lock:
            pairs = list(zip(examples, scores))
            known = {each for each, score in pairs if score is not None}
            self._lost.update(each for each, score in pairs if score is None)
            if self._some or self._beside or not (known or self._cut_off):
                return
            told = bool(self._cut_off)
            self._cut_off |= known
            count = len(self._cut_off)
            waived = sum(times > 1 for each, times in self._lost.items() if each not in self._cut_off)
        repair = (
            "The program must return the Variable that it computes from its parameters, not its .data, a new Variable "
            "or what .detach() gives, and not under no_grad(). Put a parameter into a text by ops.format, + or "
            "{slots}, as an f-string is plain text. If Python makes the result from an answer's .data, return "
            "ops.straight_through(result, answer). A judge's own instructions are trained only with eval_mode=False. "
            "The loss must use what the program returns"
            f"{_caveat()}"
        )
        if count + waived >= self._examples and not is_rehearsed():
            which = f"{count} training examples that were answered" if waived else f"{count} training examples"
            raise AutogradError(
                f"none of the losses of the {which} requires grad, so no feedback would reach the texts. {repair}."
            )
        if not told:
            _log.warning(
                "none of the losses of the first %d of %d training examples requires grad, so no feedback on them "
                "reaches a text. All is well if the program uses what is trained for other examples. Else: %s",
                count,
                self._examples,
                repair,
            )

    def tell_at_the_end(self) -> None:
        """Say it once more where the whole run has led to other texts alone, so that its end is not misread."""
        if self._some or is_rehearsed():
            return
        if self._beside:
            _log.warning(
                "none of the %d losses of this run leads back to what is trained (%s), so nothing was learned about "
                "it; see the warning of the first minibatch",
                self._beside,
                ", ".join(self._trained),
            )
        elif self._cut_off:
            _log.warning(
                "none of the losses of the %d training examples that this run came to requires grad, so nothing was "
                "learned; see the warning of the first minibatch",
                len(self._cut_off),
            )


def _caveat() -> str:
    if is_rehearsed():
        return f". But {_REHEARSED}"
    return f". And {NO_FEEDBACK}" if have_been_called() else ""


_REHEARSED = (
    "an estimate puts '?' in the place of each answer, so no tool is called, and code that goes by an answer goes by "
    "that one; what is asked in other cases is not seen here"
)


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
