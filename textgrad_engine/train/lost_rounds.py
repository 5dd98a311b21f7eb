"""When lost answers end a run: not single ones, but a critic or an optimizer that never answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from textgrad_engine.errors import BadRequest, MalformedResponse, ModelError
from textgrad_engine.llm.charged import own_copy
from textgrad_engine.optim import Optimizer

FEWEST_LOST_ROUNDS, MOST_LOST_ROUNDS = 3, 10
"""So many rounds in a row without an answer of the critic or the optimizer end a run; mostly a round is one step."""

LEVEL = 1e-4
"""As many in a row as are lost by chance more rarely than this, by how many were lost before, end it in between."""


_OF_ONE_REQUEST = ("messages", "response_format", "tools")
"""What differs from request to request, so that another one's may be taken where one's is refused."""


_MOST_HEARD = 1000
"""So many refusals in words of their own are remembered."""


AT_THE_END = 1e-2
"""The same of the last rounds of a run, of which some have no more than five: nothing asks for what they lost later."""


class LostRounds:
    """The rounds of steps in a row that came to nothing.

    Proposals that were made at the same time are lost together, so it is rounds of them that are counted: those in
    which all that there were of one kind were lost.

    Those that are lost until a run is over are held against less of it, as a resumed run asks for them and a finished
    one does not.

    Three end a run in which nothing was answered before. Later on it has to be more than bad luck: of a critic whose
    filter withholds one answer in ten, three are lost in a row in 8 of 100 runs of 100 steps.

    One ends it where its answers are lost to a setting that the endpoint does not take, or to a model that is gone: all
    after it would be refused alike.

    Args:
        optimizer: whose steps they are.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._count, self._told = 0, ""
        self._earlier: list[bool] = []  # of each round that was answered or lost, before those that are counted now
        self._answered = False
        self._round: dict[str, list[str]] = {}  # why steps were lost since a round began ("": not), by kind
        self._refusals: dict[str, BadRequest] = {}  # of what each request has, by their words

    def hear(self, error: BaseException | None) -> None:
        """Take note of what a call has failed with; it may be called on any thread."""
        counts = isinstance(error, BadRequest) and error.setting and error.setting not in _OF_ONE_REQUEST
        if counts and len(self._refusals) < _MOST_HEARD:
            self._refusals.setdefault(str(error), cast("BadRequest", error))

    def check(self, heard: bool, problems: Sequence[str], number: int, *, kind: str = "", more: bool = False) -> None:
        """Count a step, lost or not.

        Args:
            heard: whether what the step goes by was to be had: feedback, where its optimizer reads any.
            problems: answers that were not to be had, in words.
            number: of the step.
            kind: of the step.
            more: whether more steps of its round follow.

        Raises:
            BadRequest: it was lost to a setting that the endpoint does not take, or to a model that is not there.
            ModelError: more rounds in a row have lost their answers than chance loses.
        """
        lost = bool(problems) and (not heard or not self._optimizer.changes)
        # Those of other steps are among them: of lanes side by side one is decided about while others are under way.
        found = next((words for words in [*self._refusals] if words in problems[0]), None) if lost else None
        if found is not None:
            error = own_copy(self._refusals[found])
            error.add_note(
                f"this made step {number} fail, as it would each later one; a resumed run takes the step anew"
            )
            raise error
        self._round.setdefault(kind, []).append(problems[0] if lost else "")
        self._answered |= heard and not lost
        if more:
            return
        steps, self._round = self._round, {}
        answered, self._answered = self._answered, False
        first = next((whys[0] for whys in steps.values() if all(whys)), "")
        if not first:
            self._earlier += [True] * self._count + [False] * answered
            self._count = 0
            return
        self._count += 1
        what = "steps" if sum(map(len, steps.values())) == 1 else "rounds of steps"
        self._told = f"{what} in a row came to nothing, step {number} being the last; its first problem: {first}"
        self._refuse(LEVEL)

    def end(self) -> None:
        """Look at the last rounds of a run that is over.

        Raises:
            ModelError: three or more in a row have lost their answers, and chance loses as many in one of 100 runs.
        """
        if self._count:
            self._refuse(AT_THE_END)

    def _refuse(self, level: float) -> None:
        """Raise where more rounds in a row were lost than chance loses, by those before them."""
        most = FEWEST_LOST_ROUNDS
        if self._earlier and not all(self._earlier):
            share = (sum(self._earlier) + 0.5) / (len(self._earlier) + 2)
            most = min(max(math.ceil(math.log(level) / math.log(share)), FEWEST_LOST_ROUNDS), MOST_LOST_ROUNDS)
        if self._count >= most:
            repair = ""
            if f"{MalformedResponse.__name__}: " in self._told:  # as of an app that is all models in one
                repair = (
                    "; use_models(backward=..., optimizer=...), in a config [models], names one that keeps to a form"
                )
            raise ModelError(f"{self._count} {self._told}{repair}")
