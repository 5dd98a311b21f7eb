"""`PatchSearch`: many small patches at the same time, raced, put together, and each of their edits tried without.

What it does about known weaknesses of prompt search: a patch is a few edits with their reasons, not a new text, so what
several proposals found can be put together instead of one of them winning (TextGrad, arXiv 2406.07496, and ProTeGi, arXiv
2305.03495, keep one text of several; GEPA, arXiv 2507.19457, merges whole components). A proposal is kept when a paired
race shows that it is better (`optim.search.Race`), never because one number is above another. What was refused is shown to
the proposer, with what became of it. Every edit that was kept is tried without, and goes when nothing is lost by that.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from textgrad_engine import dispatch, ops, templates
from textgrad_engine.autograd import Variable
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.roles import model_for
from textgrad_engine.optim.contracts import Contract, contracts_for
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.gather import gather
from textgrad_engine.optim.optimizer import Change
from textgrad_engine.optim.patch import Edit, Origin, apply_patch, stamped
from textgrad_engine.optim.proposers import Brief, Patch, Proposal, Proposer, propose
from textgrad_engine.optim.rebase import rebase
from textgrad_engine.optim.revert import edits_in, revert
from textgrad_engine.optim.search.board import Accepted, Board, Refused
from textgrad_engine.optim.search.credit import credit, shares
from textgrad_engine.optim.search.lanes import Lanes
from textgrad_engine.optim.search.objective import Objective, Texts
from textgrad_engine.optim.search.race import GLANCE, Race, RaceRecord, run_race
from textgrad_engine.optim.search.searcher import Decision, Searcher

__all__ = ["PatchSearch"]

FEWEST_FAILING = 8
"""With fewer failures than this among the examples of races, more examples are taken in."""


@dataclass(frozen=True)
class _Found:
    """What a lane brings back."""

    number: int
    kind: str
    base: Texts
    base_origins: tuple[tuple[Origin | None, ...], ...]
    texts: Texts
    origins: tuple[tuple[Origin | None, ...], ...]
    examples: tuple[int, ...] = ()
    scores: tuple[float | None, ...] = ()
    feedback: int = 0
    changes: tuple[Change, ...] = ()
    race: RaceRecord | None = None
    problems: tuple[str, ...] = ()
    about: tuple[Accepted, ...] = ()


@dataclass(frozen=True)
class _Moved:
    """A proposal on texts that have changed since it was made."""

    texts: Texts
    origins: tuple[tuple[Origin | None, ...], ...]
    changes: tuple[Change, ...]
    disputed: bool


class PatchSearch(Searcher):
    """Searches with patches, several at the same time, and proves each by a paired race.

    A proposal takes a minibatch of training examples that fail, goes backward, asks for a patch of the parameters that the
    feedback reached, and races the patched texts against the best ones on validation examples. `lanes` proposals are
    under way at a time. They are settled in the order in which they were begun: one that won is put into the best texts of
    then, also when those have changed since; where both changed the same lines, the two are raced. With a seed and a
    deterministic model the result does not depend on which answer comes first.

    An edit that was kept is later tried without: it goes when the texts are not worse for it. Edits that did no harm alone
    are tried together, as some help only in company. The search is `finished` when all examples that fail were tried
    `most_tries` times without getting better.

    Args:
        params: the parameters, or groups of them with settings of their own.
        model: asks this model for patches; None stands for the optimizer of `use_models`.
        lanes: how many proposals are under way at a time.
        batch_size: training examples of a proposal.
        max_edits: at most so many edits in a patch, over all parameters.
        constraints: texts that the model is told, and contracts that are checked (`optim.contracts`).
        momentum: how many refused or removed edits the model is shown, with what became of them.
        max_tokens: at most so many tokens in a parameter.
        max_feedback_tokens: at most so many tokens of feedback are shown; whole items are left out beyond it.
        feedback_batch_size: so many examples may share one feedback call.
        proposer: makes the patches.
        pool: races begin on so many validation examples, and on so many more when few of those are failed any longer.
        allowance: at most so many validation examples in a race; None for all.
        most_tries: how often an example is drawn without getting better before it is given up.
        ablate_every: after so many kept patches, their edits are tried without.
        seed: of the minibatches and of the order of examples in races.

    Raises:
        ValueError: there is no parameter, or a setting is out of range.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import FunctionModel
        >>> from textgrad_engine.train import Objective
        >>> def model(request):
        ...     if request.purpose == "backward":
        ...         return {f"case_{n}": {"system": "Say to shout."} for n in range(1, 9)}
        ...     if request.purpose == "optimizer":
        ...         return {"edits": [{"op": "add", "line": 1, "text": "Shout.", "reason": "asked", "feedback": [1]}]}
        ...     text = request.messages[-1].text
        ...     return text.upper() if "Shout" in request.messages[0].text else text
        >>> system = nn.Parameter("Repeat.", role="system prompt")
        >>> program = nn.ChatCompletion("{word}", system=system, model=FunctionModel(model))
        >>> rows = [{"word": word, "target": word.upper()} for word in "one two three four five six seven eight".split()]
        >>> search = PatchSearch(program.parameters(), model=FunctionModel(model), lanes=1)
        >>> search.step(Objective(program, nn.ExactMatch(), rows)).why
        'better'
        >>> system.data.split()
        ['Repeat.', 'Shout.']
        >>> search.close()
    """

    def __init__(
        self,
        params: Iterable[Variable] | Iterable[dict[str, Any]],
        model: str | Model | None = None,
        *,
        lanes: int = 4,
        batch_size: int = 16,
        max_edits: int = 4,
        constraints: Iterable[Contract | str] = (),
        momentum: int = 12,
        max_tokens: int = 2000,
        max_feedback_tokens: int = 8000,
        feedback_batch_size: int = 8,
        proposer: Proposer | None = None,
        pool: int = 48,
        allowance: int | None = None,
        most_tries: int = 2,
        ablate_every: int = 8,
        seed: int = 0,
    ) -> None:
        if isinstance(constraints, str):
            raise TypeError(f"constraints is a sequence of texts and contracts, got one text; write [{constraints!r}]")
        settings = {"constraints": tuple(constraints), "max_tokens": max_tokens, "max_feedback_tokens": max_feedback_tokens}
        for name, value in (
            ("lanes", lanes),
            ("batch_size", batch_size),
            ("max_edits", max_edits),
            ("max_tokens", max_tokens),
            ("max_feedback_tokens", max_feedback_tokens),
            ("feedback_batch_size", feedback_batch_size),
            ("most_tries", most_tries),
            ("ablate_every", ablate_every),
            ("pool", pool),
        ):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        super().__init__(params, settings)
        self.model, self.proposer = model, proposer or Patch()
        self.batch_size, self.max_edits, self.momentum = batch_size, max_edits, momentum
        self.feedback_batch_size, self.pool, self.allowance = feedback_batch_size, pool, allowance
        self.most_tries, self.ablate_every, self.seed = most_tries, ablate_every, seed
        self._lanes: Lanes[_Found] = Lanes(lanes)
        self._board: Board | None = None
        self._base: Texts = ()
        self._begun = 0
        self._rivals: deque[_Found] = deque()
        self._doubtful: deque[tuple[Accepted, ...]] = deque()
        self._ablated = self._put_together = 0
        self._alone = False
        self._united: set[tuple[Edit, ...]] = set()
        self._history: list[str] = []

    @property
    def board(self) -> Board:
        """What the search knows; for reports and tests.

        Raises:
            RuntimeError: no step was made yet.
        """
        if self._board is None:
            raise RuntimeError("the search has no board before its first step")
        return self._board

    @property
    def expected(self) -> float:
        """The mean validation score that the best texts are expected to have."""
        return self.board.mean

    def texts(self) -> Texts:
        """The best texts so far."""
        return self.board.texts

    def close(self) -> None:
        """Wait for the proposals under way and drop them; the next step begins anew from the texts of then."""
        self._lanes.close()
        if self._board is not None:
            self._board.busy.clear()
        super().close()

    def _begin(self, objective: Objective) -> None:
        super()._begin(objective)
        variables = self._variables()
        texts = tuple(str(variable.data) for variable in variables)
        objective.adopt(texts)
        self._positions = {name: n for n, name in enumerate(objective.val)}
        self._trained = {name: n for n, name in enumerate(objective.train)}
        if self._board is None or self._board.texts != texts:
            self._board = Board(texts, [tuple(self.origins(variable)) for variable in variables])
        self._waiting = list(range(len(objective.val)))
        random.Random(self.seed).shuffle(self._waiting)
        self._waiting = [n for n in self._waiting if n not in self._board.val]

    def _widen(self, objective: Objective) -> None:
        """Race on more validation examples when few of those in use are failed, as only these can show a gain."""
        board = self.board
        while self._waiting and (not board.val or len(board.failing) < FEWEST_FAILING):
            more, self._waiting = self._waiting[: self.pool], self._waiting[self.pool :]
            for position, score in zip(more, objective.scores(board.texts, more)):
                if score is not None:
                    board.val[position] = score

    def _decide(self, objective: Objective) -> Decision | None:
        # Note on bases: proposals under way share the texts they started from, so what a race buys of these is bought once
        # for all of them. When the texts change, what is under way is settled before anything new begins.
        if not self._lanes.under_way:
            self._alone = False
            self._widen(objective)
            self._base = self.board.texts
        while self._lanes.free and not self._alone and self._base == self.board.texts and (work := self._next(objective)) is not None:
            with objective.proposal(self._begun):
                self._lanes.put(work)
        if not self._lanes.under_way:
            return None
        found = self._lanes.take()
        return self._settle(objective, found)

    # What to try next. Only the board decides, and it changes in the order of the proposals.

    def _next(self, objective: Objective) -> Callable[[], _Found] | None:
        board = self.board
        rng = random.Random(f"{self.seed}/{self._begun + 1}")
        if self._put_together > 1:
            self._put_together, self._alone = 0, True
            self._begun += 1
            return self._tidying(objective, self._begun, rng)
        while self._rivals:
            if (moved := self._moved(rival := self._rivals.popleft())).texts != board.texts:
                self._begun += 1
                return self._rivalry(objective, self._begun, rival, moved, rng)
        if about := self._due():
            self._begun += 1
            for entry in about:
                entry.round = board.kept
            return self._ablation(objective, self._begun, about, rng)
        positions = board.draw(self.batch_size, len(objective.train), rng, self.most_tries)
        if board.quiet >= self._lanes.count or not positions:
            if edits := self._company():
                self._begun += 1
                return self._union(objective, self._begun, edits, rng)
        if not positions:
            return None
        self._begun += 1
        board.busy.update(positions)
        return self._exploration(objective, self._begun, tuple(positions), rng)

    def _due(self) -> tuple[Accepted, ...]:
        """The edits to try without next: when enough patches were kept since, or nothing new is found."""
        board = self.board
        board.accepted = [
            entry
            for entry in board.accepted
            if entry.identity in edits_in(board.texts[entry.parameter], board.origins[entry.parameter])
        ]
        while self._doubtful:
            if left := tuple(entry for entry in self._doubtful.popleft() if entry in board.accepted):
                return left
        untried = [entry for entry in board.accepted if entry.round < 0]
        if untried and (board.quiet >= self._lanes.count or board.kept - self._ablated >= self.ablate_every):
            if len(untried) == 1:
                self._ablated = board.kept
            return (untried[0],)
        return ()

    def _company(self) -> tuple[Refused, ...]:
        """Edits that did no harm alone and were not tried together yet."""
        board = self.board
        found: dict[tuple[int, str], Refused] = {}
        for entry in board.refused:
            if entry.harmless and entry.edit.op == "add" and entry.edit.text not in board.texts[entry.parameter]:
                found.setdefault((entry.parameter, " ".join(entry.edit.text.casefold().split())), entry)
        together = tuple(found.values())[-8:]
        key = tuple(entry.edit for entry in together)
        if len(together) < 2 or key in self._united:
            return ()
        self._united.add(key)
        return together

    # Work for a lane. Everything that it needs is taken from the board now; the board goes on without it.

    def _exploration(
        self, objective: Objective, number: int, positions: tuple[int, ...], rng: random.Random
    ) -> Callable[[], _Found]:
        board = self.board
        base, origins, history = board.texts, tuple(board.origins), tuple(self._history[-self.momentum :])
        failing = board.failing
        val, shuffled = board.copy_of_val(), random.Random(rng.random())

        def work() -> _Found:
            with ops.feedback_batch_size(self.feedback_batch_size):
                said = objective.feedback(base, positions)
            found = _Found(
                number=number,
                kind="patch",
                base=base,
                base_origins=origins,
                texts=base,
                origins=origins,
                examples=positions,
                scores=said.scores,
                feedback=sum(map(len, said.gradients)),
                problems=said.problems,
            )
            try:
                proposals = self._proposals(base, origins, said.gradients, history, number)
            except UNANSWERED as error:
                lost = f"the optimizer gave no answer: {type(error).__name__}: {error}"
                return replace(found, problems=(*found.problems, lost))
            texts, after, changes = list(base), list(origins), []
            for parameter, (change, proposal) in proposals.items():
                texts[parameter], after[parameter] = proposal.text, proposal.origins
                changes.append(change)
            found = replace(found, texts=tuple(texts), origins=tuple(after), changes=tuple(changes))
            support = [n for change in found.changes for edit in change.edits for n in self._support(change, edit)]
            first = objective.near(support or positions, failing)[:GLANCE]
            race = self._race(val.strata(first, shuffled))
            return replace(found, race=self._run(objective, race, base, found.texts))

        return work

    def _proposals(
        self,
        base: Texts,
        origins: tuple[tuple[Origin | None, ...], ...],
        gradients: Sequence[Sequence[Variable]],
        history: tuple[str, ...],
        number: int,
    ) -> dict[int, tuple[Change, Proposal]]:
        """For each parameter that feedback reached, a patch of the size of its share."""
        variables = self._variables()
        briefs: dict[int, Brief] = {}
        left_out: dict[int, int] = {}
        for n, share in enumerate(shares(credit(gradients), self.max_edits)):
            if share:
                items, left_out[n] = gather(gradients[n], self._group(variables[n])["max_feedback_tokens"])
                briefs[n] = self._brief(n, base[n], origins[n], tuple(items), history, share, number)
        found = {}
        for n, made in self._ask(briefs).items():
            brief = briefs[n]
            change = Change(variables[n], brief.text, made.text, made.edits, brief.items, left_out[n], made.problem)
            found[n] = change, made
        return found

    def _brief(
        self,
        parameter: int,
        text: str,
        origins: tuple[Origin | None, ...],
        items: tuple[FeedbackItem, ...],
        history: tuple[str, ...],
        max_edits: int,
        number: int,
    ) -> Brief:
        variable = self._variables()[parameter]
        group = self._group(variable)
        return Brief(
            role=variable.role,
            text=text,
            origins=origins,
            items=items,
            history=history,
            contracts=contracts_for(group["constraints"], group["max_tokens"]),
            max_edits=max_edits,
            step=number,
        )

    def _group(self, variable: Variable) -> dict[str, Any]:
        return next(group for group in self.param_groups if any(own is variable for own in group["params"]))

    def _ask(self, briefs: dict[int, Brief]) -> dict[int, Proposal]:
        """Proposals for several parameters, asked for at once."""

        async def ask() -> list[Proposal]:
            model = model_for("optimizer", self.model)
            return await asyncio.gather(*(propose(self.proposer, brief, model) for brief in briefs.values()))

        return dict(zip(briefs, dispatch.run(ask, label="the proposals of a search"))) if briefs else {}

    def _ablation(
        self, objective: Objective, number: int, about: tuple[Accepted, ...], rng: random.Random
    ) -> Callable[[], _Found]:
        board = self.board
        base, origins = board.texts, tuple(board.origins)
        texts, after, changes = self._without(about)
        right = board.right
        first: list[int] = []
        for entry in about:
            first += [n for n in objective.near(entry.support, right)[:GLANCE] if n not in first]
        race = self._race(board.strata(first, rng), until="worse")

        def work() -> _Found:
            found = _Found(number, "ablation", base, origins, texts, after, changes=changes, about=about)
            return replace(found, race=self._run(objective, race, base, texts))

        return work

    def _without(
        self, about: tuple[Accepted, ...]
    ) -> tuple[Texts, tuple[tuple[Origin | None, ...], ...], tuple[Change, ...]]:
        """The best texts of now without some edits."""
        board = self.board
        texts, every = list(board.texts), list(board.origins)
        for entry in about:
            text, origins = revert(texts[entry.parameter], every[entry.parameter], entry.identity)
            texts[entry.parameter], every[entry.parameter] = text, tuple(origins)
        changes = [
            Change(variable, before, after, (), (), 0, "")
            for variable, before, after in zip(self._variables(), board.texts, texts)
            if before != after
        ]
        return tuple(texts), tuple(every), tuple(changes)

    def _tidying(self, objective: Objective, number: int, rng: random.Random) -> Callable[[], _Found]:
        """Have lines removed that say the same, after patches that did not know of each other were put together."""
        board = self.board
        said = FeedbackItem(templates.load("tidy").render(), 1, "", ())
        base, origins = board.texts, tuple(board.origins)
        variables = self._variables()
        briefs = {
            n: self._brief(n, base[n], origins[n], (said,), (), max(text.count("\n"), 1), number)
            for n, text in enumerate(base)
            if any(entry.parameter == n for entry in board.accepted)
        }
        race = self._race(board.strata(sorted(board.right, key=lambda n: rng.random()), rng), until="worse")

        def work() -> _Found:
            found = _Found(number, "tidying", base, origins, base, origins)
            try:
                made = self._ask(briefs)
            except UNANSWERED as error:
                return replace(found, problems=(f"the optimizer gave no answer: {type(error).__name__}: {error}",))
            texts, every = list(base), list(origins)
            for n, proposal in made.items():
                texts[n], every[n] = proposal.text, proposal.origins
            changes = [
                Change(variables[n], base[n], proposal.text, proposal.edits, (said,), 0, proposal.problem)
                for n, proposal in made.items()
            ]
            found = replace(found, texts=tuple(texts), origins=tuple(every), changes=tuple(changes))
            return replace(found, race=self._run(objective, race, base, found.texts))

        return work

    def _rivalry(
        self, objective: Objective, number: int, rival: _Found, moved: _Moved, rng: random.Random
    ) -> Callable[[], _Found]:
        board = self.board
        found = _Found(
            number, "rival", board.texts, tuple(board.origins), moved.texts, moved.origins, changes=moved.changes
        )
        first = [self._positions[name] for name in rival.race.gained] if rival.race is not None else []
        race = self._race(board.strata(first[: self.batch_size], rng))
        return lambda: replace(found, race=self._run(objective, race, found.base, found.texts))

    def _union(
        self, objective: Objective, number: int, together: tuple[Refused, ...], rng: random.Random
    ) -> Callable[[], _Found]:
        board = self.board
        base, every, texts, changes = board.texts, list(board.origins), list(board.texts), []
        for parameter, variable in enumerate(self._variables()):
            edits = [entry.edit for entry in together if entry.parameter == parameter]
            if edits:
                last = len(texts[parameter].split("\n"))
                edits = [replace(edit, line=last, feedback=()) for edit in edits]
                text, origins = apply_patch(texts[parameter], every[parameter], edits, (), number)
                changes.append(Change(variable, base[parameter], text, tuple(edits), (), 0, ""))
                texts[parameter], every[parameter] = text, tuple(origins)
        race = self._race(board.strata((), rng))
        found = _Found(
            number, "union", base, tuple(board.origins), tuple(texts), tuple(every), changes=tuple(changes)
        )
        return lambda: replace(found, race=self._run(objective, race, base, found.texts))

    def _race(self, strata: list[list[int]], *, until: Literal["better", "worse"] = "better") -> Race:
        return Race(strata, allowance=self.allowance, scale=self.board.scale, until=until)

    def _run(self, objective: Objective, race: Race, base: Texts, texts: Texts) -> RaceRecord | None:
        if texts == base:
            return None
        return run_race(
            race,
            objective.val,
            lambda positions: objective.matrix([base, texts], positions),
        )

    # What became of it.

    def _settle(self, objective: Objective, found: _Found) -> Decision:
        board = self.board
        board.busy.difference_update(found.examples)
        board.learn(found.examples, found.scores)
        kept, why, changes = False, "nothing was proposed", found.changes
        if found.race is not None:
            if found.kind == "tidying":
                kept, why = self._settle_tidying(objective, found, found.race)
            elif found.about:
                kept, why, changes = self._settle_ablation(objective, found, found.race)
            elif found.race.outcome == "better":
                kept, why, changes = self._settle_winner(objective, found, found.race)
            else:
                why = "worse" if found.race.outcome == "worse" else "no difference shown"
                self._refuse(found, found.race, why)
        elif problems := [change.problem for change in found.changes if change.problem]:
            why = f"dropped: {problems[0]}"
        if found.kind != "tidying":
            board.quiet = 0 if kept and not found.about else board.quiet + 1
        return Decision(
            number=found.number,
            kind=found.kind,
            examples=tuple(objective.train[n] for n in found.examples),
            scores=found.scores,
            feedback=found.feedback,
            changes=changes,
            race=found.race,
            kept=kept,
            why=why,
            edits=tuple(entry.identity for entry in found.about),
            problems=found.problems,
        )

    def _settle_winner(
        self, objective: Objective, found: _Found, record: RaceRecord
    ) -> tuple[bool, str, tuple[Change, ...]]:
        board = self.board
        gained = tuple(self._positions[name] for name in record.gained)
        if found.base == board.texts:
            self._adopt(objective, found.texts, found.origins)
            board.settle(record, self._positions, exact=True)
            self._enter(found)
            return True, "better", found.changes
        if not any(board.val.get(n, board.top) < board.top for n in gained):
            return False, "what it gains was gained by another patch in the meantime", found.changes
        moved = self._moved(found)
        if moved.texts == board.texts:
            return False, "another patch has said the same in the meantime", found.changes
        if moved.disputed:
            self._rivals.append(found)
            return False, "better, but what was kept in the meantime has changed the same lines: the two are raced", ()
        self._adopt(objective, moved.texts, moved.origins)
        board.settle(record, self._positions, exact=False)
        self._put_together += 1
        self._enter(replace(found, changes=moved.changes))
        return True, "better, and put together with what was kept in the meantime", moved.changes

    def _moved(self, found: _Found) -> _Moved:
        """A proposal's edits on the best texts of now; where these have changed the same lines, its own way."""
        board = self.board
        texts, every, changes, disputed = list(board.texts), list(board.origins), [], False
        for change in found.changes:
            parameter = self._number(change.variable)
            own = stamped(change.edits, found.number)
            rebased = rebase(own, change.before, texts[parameter], found.base_origins[parameter], every[parameter])
            edits = [*rebased.edits, *(edit for conflict in rebased.conflicts for edit in conflict.instead)]
            disputed = disputed or bool(rebased.conflicts)
            if edits:
                evidence = [item.evidence for item in change.items]
                text, origins = apply_patch(texts[parameter], every[parameter], edits, evidence, found.number)
                changes.append(replace(change, before=texts[parameter], after=text, edits=tuple(edits)))
                texts[parameter], every[parameter] = text, tuple(origins)
        return _Moved(tuple(texts), tuple(every), tuple(changes), disputed)

    def _settle_tidying(self, objective: Objective, found: _Found, record: RaceRecord) -> tuple[bool, str]:
        if record.outcome == "worse":
            return False, "it is worse without"
        self._adopt(objective, found.texts, found.origins)
        self.board.settle(record, self._positions, exact=True)
        return True, f"{record.outcome} without"

    def _settle_ablation(
        self, objective: Objective, found: _Found, record: RaceRecord
    ) -> tuple[bool, str, tuple[Change, ...]]:
        board, about = self.board, found.about
        if record.outcome == "worse":
            if len(about) > 1:  # one of them is needed, or they stand in for each other
                half = len(about) // 2
                self._doubtful.extend((about[:half], about[half:]))
            return False, "it is worse without", found.changes
        if found.base != board.texts:  # others are gone since, which this one may stand in for
            waiting = self._doubtful.pop() if self._doubtful and len(about) == 1 else ()
            self._doubtful.append((*waiting, *about))
            return False, f"{record.outcome} without, to be tried again as the texts have changed", found.changes
        self._remember_removed(about, record.outcome)
        for entry in about:
            board.accepted.remove(entry)
        self._adopt(objective, found.texts, found.origins)
        board.settle(record, self._positions, exact=True)
        return True, f"{record.outcome} without", found.changes

    def _adopt(self, objective: Objective, texts: Texts, origins: tuple[tuple[Origin | None, ...], ...]) -> None:
        board = self.board
        board.texts, board.origins = texts, list(origins)
        objective.adopt(texts)
        for variable, text, own in zip(self._variables(), texts, origins):
            self.state.setdefault(variable, {})["origins"] = (text, list(own))

    def _enter(self, found: _Found) -> None:
        board = self.board
        board.kept += 1
        for change in found.changes:
            parameter = self._number(change.variable)
            for edit in stamped(change.edits, found.number):
                board.accepted.append(Accepted(parameter, edit.id, self._support(change, edit)))

    def _refuse(self, found: _Found, record: RaceRecord, why: str) -> None:
        for change in found.changes:
            parameter = self._number(change.variable)
            for edit in change.edits:
                self.board.refused.append(Refused(parameter, edit, change.before, not record.lost))
        self._remember(found.changes, why)

    def _support(self, change: Change, edit: Edit) -> tuple[int, ...]:
        """The training examples that asked for an edit."""
        names = dict.fromkeys(name for number in edit.feedback for name in change.items[number - 1].examples)
        return tuple(self._trained[name] for name in names if name in self._trained)

    def _remember_removed(self, about: tuple[Accepted, ...], outcome: str) -> None:
        removed = templates.load("edit_removed")
        for entry in about:
            origins = self.board.origins[entry.parameter]
            lines = self.board.texts[entry.parameter].split("\n")
            text = " / ".join(
                line for line, origin in zip(lines, origins) if origin is not None and origin.edit == entry.identity
            )
            self._history.append(removed.render(text=repr(text), outcome=outcome))

    def _remember(self, changes: Sequence[Change], outcome: str) -> None:
        """Keep for the proposer what was tried and what became of it."""
        words, past = templates.load("edit_in_words"), templates.load("past_edit")
        for change in changes:
            for edit in change.edits:
                said = words.render(op=edit.op, text=repr(edit.text))
                self._history.append(past.render(edit=said, outcome=outcome))

    def _number(self, variable: Variable) -> int:
        return next(n for n, other in enumerate(self._variables()) if other is variable)
