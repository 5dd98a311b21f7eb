"""How long a program's answers take, example by example, and whether that differs between two texts.

NOTE [What the latency of an example is]
    The seconds that the models took for the calls of its forward pass, added up: from sending the request that
    succeeded to its answer (`Completion.latency`). Waiting in our own queues, attempts that failed and the pauses
    between them are not in it, as these say more about the run than about the texts; nor are the calls of a judge or a
    critic. Calls that overlap are added up all the same, but what an app asks of models of ours while it answers
    (`llm.CallableModel`) is in its own time. An answer from the cache counts with the seconds it took when it was paid
    for. Where an answer does not tell, the latency of its example is unknown, and the example is left out. Endpoints
    and apps are timed; any other model inside this process says it itself, or nothing is known.

NOTE [How far it can be trusted]
    It is noisy, and it drifts with the load of the endpoint: texts that were run at another time, or beside more other
    calls, look slower than they are. So it is compared on the same examples only, its variance counts in every decision
    (`optim.search.race`), and by default it decides nothing. With a `latency_weight` it does, and then a search depends
    on what was measured: two runs are equal only where the models' latencies are. That no result depends on which
    answer comes first still holds where a model states its latencies, as a replayed or a simulated one does; where they
    are measured, an answer that comes later is a slower one.
    Where the load goes up and down more slowly than examples are answered, half of all comparisons of equal texts say
    that one is faster, as each was run at a time of its own; no formula for one evaluation of each knows that.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

from textgrad_engine.attributes import attributes_told
from textgrad_engine.llm.usage import CallRecord, observe
from textgrad_engine.train.clusters import clustered_t
from textgrad_engine.train.evaluation import Evaluation


class Stopwatch:
    """Adds up how long the models take for the forward calls that are dispatched while it runs; see the notes above.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.llm import Completion
        >>> from textgrad_engine.testing import FunctionModel
        >>> program = nn.ChatCompletion("{q}", model=FunctionModel(lambda request: Completion(text="4", latency=0.5)))
        >>> watch = Stopwatch()
        >>> with watch.running():
        ...     answer = program(q="2 + 2?")
        >>> answer.data, watch.seconds
        ('4', 0.5)
    """

    def __init__(self) -> None:
        self._found: list[tuple[CallRecord, float | None]] = []

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """What is dispatched inside the block is timed, also when it ends later."""
        with observe(self._note):
            yield

    @property
    def seconds(self) -> float | None:
        """The sum so far; None when there was no call, or one that does not tell how long it took."""
        around = {record.id for record, took in self._found if record.id and took}
        found = [took for record, took in self._found if record.tool not in around]
        known = [took for took in found if took is not None]
        if not known or len(known) < len(found):
            return None
        return math.fsum(known)  # exact, so that it does not depend on the order in which calls end

    def _note(self, record: CallRecord) -> None:
        if record.purpose != "forward":
            return
        answer = record.completion
        seconds = None if answer is None else answer.saved_latency if answer.cached else answer.latency
        self._found.append(
            (record, seconds or None)
        )  # no answer takes no time at all: a model that says 0 does not tell


@attributes_told
@dataclass(frozen=True)
class LatencyChange:
    """How the latency of examples differs between two texts, on those where both are known.

    Attributes:
        before: the mean with the old texts, in seconds.
        after: the mean with the new ones.
        interval: the 95% interval of the mean difference.
        examples: over so many examples.
    """

    before: float
    after: float
    interval: tuple[float, float]
    examples: int

    @property
    def verdict(self) -> str:
        """``"faster"``, ``"slower"`` or ``"not shown"``: whether the interval leaves out 0."""
        low, high = self.interval
        return "slower" if low > 0 else "faster" if high < 0 else "not shown"


def latency_change(before: Evaluation, after: Evaluation) -> LatencyChange | None:
    """What new texts change about the time that answers take; None where it was not measured.

    Where the examples come in clusters, whole clusters are what counts, as in `compare`: the questions of one document
    are often slow together.

    Args:
        before: the old texts on some examples.
        after: the new texts on the same examples.

    Example:
        >>> old, new = (Evaluation(("a", "b", "c"), (1, 1, 1), (), {}, latency=found)
        ...             for found in ((1.0, 2.0, None), (0.5, 1.4, 1.0)))
        >>> found = latency_change(old, new)
        >>> round(found.before, 3), round(found.after, 3), found.examples
        (1.5, 0.95, 2)
    """
    both = list(zip(before.latency, after.latency))
    kept = [position for position, pair in enumerate(both) if None not in pair]
    if not kept:
        return None
    old, new = ([times[n] or 0.0 for n in kept] for times in (before.latency, after.latency))
    names = before.clusters or after.clusters or range(len(both))
    _, low, high, _ = clustered_t([b - a for a, b in zip(old, new)], [names[n] for n in kept])
    return LatencyChange(math.fsum(old) / len(old), math.fsum(new) / len(new), (low, high), len(kept))
