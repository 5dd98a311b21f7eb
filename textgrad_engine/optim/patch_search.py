"""`PatchSearch`: many small patches at the same time, raced, put together, and each of their edits tried without.

What it does about known weaknesses of prompt search: a patch is a few edits with their reasons, not a new text, so what
several proposals found can be put together instead of one of them winning (TextGrad, arXiv 2406.07496, and ProTeGi,
arXiv 2305.03495, keep one text of several; GEPA, arXiv 2507.19457, merges whole components). A proposal is kept when a
paired race shows that it is better (`optim.search.race`), never because one number is above another. What was refused
is shown to the proposer, with what became of it. Every edit that was kept is tried without, and goes when nothing is
lost.
"""

from __future__ import annotations

import functools
import math
import operator
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.checks import at_least, check
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.contracts import Contract
from textgrad_engine.optim.proposers import Patch, Proposer
from textgrad_engine.optim.search.agenda import company, due
from textgrad_engine.optim.search.drafts import Desk
from textgrad_engine.optim.search.found import Found
from textgrad_engine.optim.search.hearing import Hearing
from textgrad_engine.optim.search.lanes import Lanes
from textgrad_engine.optim.search.moving import moved
from textgrad_engine.optim.search.noise import MEASURED, noise_of
from textgrad_engine.optim.search.objective import Objective, Texts
from textgrad_engine.optim.search.on_board import BoardSearcher
from textgrad_engine.optim.search.patch_volume import patch_volume
from textgrad_engine.optim.search.searcher import Decision
from textgrad_engine.optim.search.settling import MANY_TOGETHER, SHORTER, Settling, challenger
from textgrad_engine.optim.search.volume import Sizes, Volume
from textgrad_engine.optim.search.work import Workshop, ties
from textgrad_engine.optim.transforms import FeedbackTransform

AHEAD = 2
"""While nothing is found, at most so many times as many proposals as lanes are worked on at a time."""

FEWEST_FAILING = 16
"""With fewer failures than this among the examples of races, more examples are taken in."""

FEWEST_EDITS = 8
"""A patch may have so many edits, however many lanes there are, where `max_edits` allows it."""

MOST_VAIN = 2
"""After so many times without success, refused edits are not tried together until another patch was kept."""

STUCK = 4
"""After so many proposals in a row that brought nothing, other things are tried than patches for failures."""

SHARE = 4
"""A minibatch is to be at most one part of so many of the examples that may fail; else fewer lanes draw one."""

STRAGGLERS = 4
"""Patches are begun together when at most one part of so many of the lanes is still to be settled."""


class PatchSearch(BoardSearcher):
    """Searches with patches, several at the same time, and proves each by a paired race.

    A proposal takes a minibatch of training examples that fail, runs backward, and asks for a patch of the parameters
    that the feedback reached. It drops the edits that do harm, and races the patched texts against the best ones on
    validation examples. Up to `lanes` proposals are worked on at a time. They are settled in the order in which they
    began: a patch that won is applied to the current best texts, even if these have changed since; if both changed the
    same lines, the two are raced. With a seed and a deterministic model the result does not depend on which answer
    comes first. docs/search.md explains it.

    Each edit that was kept is later ablated: it is dropped if the texts are no worse without it. Refused edits that
    answer similar examples are tried together, as some help only in company. The search is `finished` when all failing
    examples were tried `most_tries` times without getting better.

    Args:
        params: the parameters, or groups of them with their own settings.
        model: the model that writes patches; None stands for the optimizer of `use_models`.
        lanes: the most proposals worked on at a time. There are fewer while minibatches are a large part of what fails
            and patches are kept, as they would find the same, and twice as many while nothing is found. Proposals that
            begin together share their feedback.
        batch_size: how many failures are wanted in a proposal's minibatch; if few examples fail, up to eight times as
            many are run to find them.
        max_edits: the most edits in a patch, over all parameters; lanes that begin together share them, down to eight
            for each.
        constraints: texts that the model is told, and contracts that are checked (`optim.contracts`).
        momentum: how many refused or removed edits the model is shown, with what became of them: those of the same
            text, and, if these are fewer, some of other texts.
        max_tokens: the most tokens in a parameter. None stands for 2,000, or for 1.5 times the longest text of its
            group at the start, if that is more.
        max_feedback_tokens: the most tokens of feedback that are shown; beyond it whole items are left out.
        transforms: changes to the feedback before it is shown, e.g. ``[cluster(), worst_first()]``; None is
            ``[dedupe()]``. They must be stateless, as proposals do not know of each other.
        feedback_batch_size: how many examples may share one feedback call.
        proposer: makes the patches.
        pool: on how many validation examples races begin; as many more are added when few of these still fail.
        allowance: the most validation examples in a race; None for all.
        most_tries: how often an example is drawn in vain before it is given up.
        ablate_every: after how many kept patches their edits are ablated.
        seed: of the minibatches and of the order of examples in races.

    Raises:
        ValueError: there is no parameter, or a setting is out of range.
        TypeError: a setting is of a wrong kind.

    Example:
        >>> from textgrad_engine import nn, use_models
        >>> from textgrad_engine.testing import FunctionModel
        >>> from textgrad_engine.train import Objective
        >>> def model(request):
        ...     if request.purpose == "backward":
        ...         cases = request.config.response_format.json_schema["properties"]
        ...         return {case: {"system": "Say to shout."} for case in cases}
        ...     if request.purpose == "optimizer":
        ...         return {"edits": [{"op": "add", "line": 1, "text": "Shout.", "reason": "asked", "feedback": [1]}]}
        ...     text = request.messages[-1].text
        ...     return text.upper() if "Shout" in request.messages[0].text else text
        >>> system = nn.Parameter("Repeat.", role="system prompt")
        >>> program = nn.ChatCompletion("{word}", system=system)
        >>> rows = [{"word": word, "target": word.upper()} for word in "one two three four five six seven".split()]
        >>> search = PatchSearch(program.parameters(), lanes=1)
        >>> with use_models(forward=FunctionModel(model)):
        ...     decided = search.step(Objective(program, nn.ExactMatch(), rows))
        >>> decided.why
        'better'
        >>> system.data.split()
        ['Repeat.', 'Shout.']
        >>> search.close()
    """

    _several = ", and lanes={n} to work on so many at a time"

    @names_told
    def __init__(
        self,
        params: Iterable[Variable | Mapping[str, Any]],
        model: str | Model | None = None,
        *,
        lanes: int = 8,
        batch_size: int = 48,
        max_edits: int = 8,
        constraints: Iterable[Contract | str] = (),
        momentum: int = 12,
        max_tokens: int | None = None,
        max_feedback_tokens: int = 8000,
        transforms: Iterable[FeedbackTransform] | None = None,
        feedback_batch_size: int = 8,
        proposer: Proposer | None = None,
        pool: int = 48,
        allowance: int | None = 96,
        most_tries: int = 2,
        ablate_every: int = 8,
        seed: int = 0,
    ) -> None:
        settings = {
            "constraints": constraints,
            "max_tokens": max_tokens,
            "max_feedback_tokens": max_feedback_tokens,
            "transforms": transforms,
        }
        super().__init__(params, settings)
        self.model, self.allowance = model, allowance
        self.proposer = self._proposer(proposer, Patch())
        counts = at_least(1, "lanes", "batch_size", "max_edits", "feedback_batch_size", "pool")
        tries = at_least(1, "allowance", "most_tries", "ablate_every")
        check(PatchSearch.__init__, locals(), counts, tries, at_least(0, "momentum"))
        self.lanes, self.batch_size, self.max_edits, self.momentum = lanes, batch_size, max_edits, momentum
        self.feedback_batch_size, self.pool = feedback_batch_size, pool
        self.most_tries, self.ablate_every, self.seed = most_tries, ablate_every, operator.index(seed)
        self._lanes: Lanes[Found] = Lanes(lanes, ahead=AHEAD if lanes > 1 else 1)
        self._base: Texts = ()
        self._round = 0  # the last proposal that was begun when the first one after the round before was settled

    def volume(self, sizes: Sizes) -> Volume:
        """How much it will do; see `Searcher.volume`."""
        return patch_volume(self, sizes, lanes=self._lanes.count, begun=self._lanes.most, measured=MEASURED)

    def close(self) -> None:
        """Wait for the proposals under way and drop them; what they were to try is due again at the next step."""
        self._lanes.close()
        if self._board is not None:
            self._board.put_back()
        super().close()

    def _begin(self, objective: Objective) -> None:
        super()._begin(objective)
        self._workshop = Workshop(
            desk=Desk.of(self, self.model),
            proposer=self.proposer,
            momentum=self.momentum,
            feedback_batch_size=self.feedback_batch_size,
            allowance=self.allowance,
        )
        self._positions = {name: n for n, name in enumerate(objective.val)}
        self._take_up(objective)
        self._round = 0
        self._waiting = list(range(len(objective.val)))
        random.Random(self.seed).shuffle(self._waiting)
        self._waiting = [n for n in self._waiting if n not in self.board.val]
        objective.adopt(self.board.texts)

    def decide(self, objective: Objective) -> Decision | None:
        """Settle the proposal that was begun first, after the lanes are filled; see `Searcher.decide`."""
        # Note on bases: proposals under way share the texts they started from, so what a race buys of these is bought
        # once for all of them. Lanes are therefore filled together, when all but a few are settled: one that began at
        # once would not know what its neighbours are about to bring. When nothing was found for a while and the texts
        # are the same, a lane that is free goes on.
        together = self._lanes.under_way <= self._lanes.count // STRAGGLERS
        if together:
            self._widen(objective)
            self._base = self.board.texts
        if together or (self._in_vain(objective) and self._base == self.board.texts):
            self._fill(objective)
        if not self._lanes.under_way:
            return None
        found, held = self._taken(), self.board.snapshot()
        try:
            return self._settle(objective, found)
        except BaseException:  # a budget, or Ctrl-C, while guards run examples; it is settled the next time
            self._board = held
            self._lanes.give_back(found, found.number)
            raise

    def _taken(self) -> Found:
        """What became of the oldest proposal; where it failed, what it was to try is due again."""
        number = self._lanes.oldest
        try:
            return self._lanes.take()
        except BaseException:
            if self._lanes.oldest != number:  # else it goes on: the wait for it was interrupted
                self.board.put_back(number)
            raise

    def _fill(self, objective: Objective) -> None:
        """Begin work in free lanes; patches that are begun together share what they hear.

        As soon as a proposal has brought nothing, lanes that no patch is worth try edits without, as is done in the end
        anyway. Not before: it would be paid for ahead of the gains of the next patch, and that takes some edits along.
        """
        hearing = Hearing(self._lanes.count)
        try:
            while self._has_room(objective):
                if hearing.full:
                    hearing.begin()
                    hearing = Hearing(self._lanes.count)
                if (work := self._next(objective, hearing)) is None:
                    break
                with objective.proposal(self.board.begun):
                    self._lanes.put(work, self.board.begun)
            while self._is_idle() and (work := self._without(objective, stuck=True)) is not None:
                with objective.proposal(self.board.begun):
                    self._lanes.put(work, self.board.begun)
        except BaseException:  # a Ctrl-C too, between a place and its work
            hearing.give_up()
            raise
        hearing.begin()

    def _has_room(self, objective: Objective) -> bool:
        under_way = self._lanes.under_way
        wanted = self.remaining is None or under_way < self.remaining
        # Where nothing is found, patches differ, or fail: then one more lane is worth its calls.
        useful = self._useful(objective) + self.board.quiet
        most = self._lanes.most if self._in_vain(objective) else self._lanes.count
        return wanted and under_way < min(most, useful)

    def _is_idle(self) -> bool:
        """Whether there are lanes without work beside some that have it, after a proposal that brought nothing."""
        under_way = self._lanes.under_way
        wanted = self.remaining is None or under_way < self.remaining
        return wanted and self.board.quiet > 0 and 0 < under_way < self._lanes.count

    def _in_vain(self, objective: Objective) -> bool:
        """Whether as many proposals in a row brought nothing as find different lessons: then none waits for others."""
        return self.board.quiet >= self._useful(objective)

    def _useful(self, objective: Objective) -> int:
        """How many lanes can find different lessons: minibatches that are a large part of what fails find the same."""
        left = self.board.open(len(objective.train), self.most_tries)
        return min(self._lanes.count, max(1, left // (SHARE * self.batch_size))) if left else self._lanes.count

    def _widen(self, objective: Objective) -> None:
        """Race on more validation examples when few of those in use are failed, as only these can show a gain."""
        board = self.board
        self._waiting = [n for n in self._waiting if n not in board.val]  # a race may have run on more of them
        while self._waiting and (not board.val or len(board.failing) < FEWEST_FAILING):
            pools = 1
            if board.val:  # so many at once as it takes if others fail as often, since each time is waited for
                lacking, seen = FEWEST_FAILING - len(board.failing), max(len(board.failing), 1)
                pools = math.ceil(lacking * len(board.val) / (seen * self.pool))
            more, left = self._waiting[: pools * self.pool], self._waiting[pools * self.pool :]
            try:
                scores = objective.scores(board.texts, more)
            except UNANSWERED:
                if not board.val and not left:
                    raise
                self._waiting = left
                continue  # most of these went unanswered, so races go on without them
            found = {n: score for n, score in zip(more, scores) if score is not None}
            if not board.val:
                board.noise = noise_of(objective, board.texts, found, self.seed)
            self._waiting = left  # only now: a budget, or Ctrl-C, leaves them to the next step
            board.val |= found

    def _nothing_to_show(self, objective: Objective) -> str:
        """Why no patch can win its race, in words; what is left to find out then is which edits the texts do without.

        What is expected of texts that patches were put together in may not be so: all examples are run with them, as in
        the end they are in any case.
        """
        board = self.board
        if self.to_the_end or self._waiting or not board.nothing_to_show(objective):
            return ""
        try:
            scores = objective.scores(board.texts, range(len(objective.val)))
        except UNANSWERED:
            return ""
        board.val = {n: score for n, score in enumerate(scores) if score is not None}
        return board.nothing_to_show(objective)

    # What to try next. Only the board decides, and it changes in the order of the proposals.

    def _next(self, objective: Objective, hearing: Hearing) -> Callable[[], Found] | None:
        board, shop = self.board, self._workshop
        number = board.begun + 1
        seed = f"{self.seed}/{number}"
        work = functools.partial(self._work, objective)
        if board.together >= MANY_TOGETHER:
            return self._tidy(objective)
        while board.rivals:
            rival = board.rivals.pop(0)
            there, _ = moved(challenger(rival, number, self.variables()), self.variables(), board.texts, board.origins)
            if there.texts != board.texts:
                first = [self._positions[name] for name in rival.gained]
                board.begin(rival=rival)
                return work(shop.rival, there, first, seed)
        rng = random.Random(seed)
        self.at_the_top = self._nothing_to_show(objective)
        most = 0 if self.at_the_top else self.batch_size
        positions = board.draw(most, len(objective.train), rng, self.most_tries)
        if board.together and not positions and not self._lanes.under_way:
            return self._tidy(objective)
        stuck = not positions or board.quiet >= max(self._lanes.count, STUCK)
        if (without := self._without(objective, stuck=stuck)) is not None:
            return without
        if stuck and not self.at_the_top and board.tried_together < MOST_VAIN and (edits := company(board, objective)):
            return work(shop.union, number, edits, seed)
        if not positions:
            return None
        board.begin(examples=tuple(positions))
        # Patches that do not know of each other are put together: the more of them, the smaller each.
        steps = min(self.max_edits, max(FEWEST_EDITS, self.max_edits // self._useful(objective)))
        share = functools.partial(hearing.share, hearing.place())
        return work(shop.patch, number, tuple(positions), steps, seed, share)

    def _tidy(self, objective: Objective) -> Callable[[], Found]:
        """Have the texts tidied, into which patches were put together."""
        board = self.board
        together, board.together = board.together, 0
        board.begin(together=together)
        return self._work(objective, self._workshop.tidying, board.begun, f"{self.seed}/{board.begun}")

    def _without(self, objective: Objective, *, stuck: bool) -> Callable[[], Found] | None:
        """The next edits to try without; None where none are."""
        if not (about := due(self.board, self.ablate_every, stuck=stuck)):
            return None
        number = self.board.begun
        return self._work(objective, self._workshop.ablation, number, about, f"{self.seed}/{number}")

    def _work(self, objective: Objective, what: Callable[..., Found], *arguments: Any) -> Callable[[], Found]:
        return functools.partial(what, objective, self.board.snapshot(), *arguments)

    # What became of it.

    def _settle(self, objective: Objective, found: Found) -> Decision:
        board = self.board
        decided = Settling(board, self._workshop, objective, self._positions).settle(found)
        if decided.kept:
            self._note_origins(zip(self.variables(), board.texts, board.origins))
            if (found.kind in SHORTER or ties(found)) and self._base == found.base:
                self._base = board.texts  # what is under way is hardly the worse for a line less
        if found.number > self._round:
            self._round = board.begun
        return replace(decided, more=found.number < self._round)
