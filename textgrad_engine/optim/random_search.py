"""`RandomSearch`: the control. Proposals that know nothing of what went wrong, kept by the same race as any other's.

What a search gains over this one, at equal calls, is what its feedback is worth; what this one gains is what trying out
alone is worth. `RandomEdits` proposes without a model, `Unaided` with one that gets no feedback. `Rewrite` and `Patch`
can be given, too, but their words are about feedback, and without any an obedient model changes nothing.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pydantic import TypeAdapter

from textgrad_engine.autograd import Variable
from textgrad_engine.checks import at_least, check
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.between import edits_between
from textgrad_engine.optim.contracts import Contract
from textgrad_engine.optim.proposers import Brief, Proposal, Proposer
from textgrad_engine.optim.proposers.base import patched
from textgrad_engine.optim.proposers.unaided import MOST_SHOWN
from textgrad_engine.optim.search.board import Board
from textgrad_engine.optim.search.drafts import Desk, Draft, Job
from textgrad_engine.optim.search.noise import MEASURED, noise_of
from textgrad_engine.optim.search.objective import Objective, Texts, handicap_of, slower_by
from textgrad_engine.optim.search.on_board import BoardSearcher
from textgrad_engine.optim.search.population import Candidate
from textgrad_engine.optim.search.race import KEEP, Race, balance
from textgrad_engine.optim.search.racing import RaceRecord, answered, run_race
from textgrad_engine.optim.search.searcher import Decision
from textgrad_engine.optim.search.vain import Vain
from textgrad_engine.optim.search.volume import Range, Sizes, Volume
from textgrad_engine.optim.search.work import is_shorter
from textgrad_engine.optim.telling import history_of, tried


@dataclass(frozen=True)
class RandomEdits:
    r"""A proposer without a model: it removes, moves, doubles or swaps lines, or words of a line, at random.

    Args:
        seed: of the random edits, which also depend on the text and on the number of the proposal.
        edits: how many changes a proposal makes.

    Raises:
        ValueError: `edits` is less than 1.

    Example:
        >>> import asyncio
        >>> brief = Brief(role="prompt", text="Sort.\nBe brief.", origins=(None, None))
        >>> asyncio.run(RandomEdits(seed=1).propose(brief, None, "")).text != brief.text
        True
    """

    seed: int = 0
    edits: int = 1

    def __post_init__(self) -> None:
        check(RandomEdits, vars(self), at_least(1, "edits"))

    async def propose(self, brief: Brief, model: Model, problem: str) -> Proposal:
        """Change the text at random; see `Proposer`."""
        rng = random.Random(f"{self.seed}/{brief.step}/{brief.role}/{brief.text}/{problem}")
        lines = brief.text.split("\n")
        for _ in range(self.edits):
            place = rng.randrange(len(lines))
            words = lines[place].split(" ")
            if len(words) > 1 and (len(lines) < 2 or rng.random() < 0.5):
                lines[place] = " ".join(_shaken(words, rng))
            else:
                lines = _shaken(lines, rng)
        edits, _ = edits_between(brief.text, "\n".join(lines))
        return patched(brief, [replace(edit, reason="at random") for edit in edits])


def _shaken(parts: list[str], rng: random.Random) -> list[str]:
    """The parts with one of them removed, moved or doubled, or two swapped."""
    found = list(parts)
    place = rng.randrange(len(found))
    kind = rng.choice(("remove", "move", "double", "swap") if len(found) > 1 else ("double",))
    if kind == "remove":
        del found[place]
    elif kind == "move":
        part = found.pop(place)
        found.insert(rng.randrange(len(found) + 1), part)
    elif kind == "double":
        found.insert(rng.randrange(len(found) + 1), found[place])
    else:
        other = rng.randrange(len(found))
        found[place], found[other] = found[other], found[place]
    return found


@dataclass(frozen=True)
class _Tried:
    """A proposal that was raced, where it could be, before guards look at it."""

    draft: Draft
    why: str
    is_new: bool = False
    kept: bool = False
    race: RaceRecord | None = None
    lost: bool = False
    vain: bool = False


class RandomSearch(BoardSearcher):
    """Tries proposals made without feedback, one after the other, and keeps those that win a paired race.

    A shorter text is kept, too, if no difference is shown on all the examples that may be run.

    It is the control for any other search: the same race (`optim.search.race`), the same contracts, the same memory of
    what was tried and did not help, but no feedback. It is `finished` after `proposals`, or when the proposer only
    repeats itself or proposes what cannot be run.

    Args:
        params: the parameters, or groups of them with their own settings.
        proposer: makes the proposals: `RandomEdits`, or `proposers.Unaided` and the like, which ask a model.
        model: the model that is asked; None stands for the optimizer of `use_models`.
        proposals: how many proposals are tried.
        max_edits: the most edits in a proposal, if the proposer makes edits.
        constraints: texts that the model is told, and contracts that are checked (`optim.contracts`).
        momentum: how many earlier proposals the proposer is shown, with what became of them (`Unaided` is shown whole
            texts, 4 at most).
        max_tokens: the most tokens in a parameter. None stands for 2,000, or for 1.5 times the longest text of its
            group at the start, if that is more.
        allowance: the most validation examples in a race; None for all.
        seed: of the order of examples in races, and of which parameter comes when.

    Raises:
        ValueError: there is no parameter, or a setting is out of range.
        TypeError: a setting is of a wrong kind.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import FunctionModel
        >>> from textgrad_engine.train import Objective
        >>> model = FunctionModel(lambda request: "no" if "never" in request.messages[0].text else "yes")
        >>> system = nn.Parameter("Agree never.", role="system prompt")
        >>> program = nn.ChatCompletion("{question}", system=system, model=model)
        >>> rows = [{"question": str(n), "target": "yes"} for n in range(6)]
        >>> search = RandomSearch(program.parameters(), RandomEdits(seed=4))
        >>> objective = Objective(program, nn.ExactMatch(), rows)
        >>> while (decision := search.step(objective)) and not decision.kept:
        ...     pass
        >>> "never" in system.data, decision.why
        (False, 'better')
    """

    _several = "; proposals= says how many it tries, one after the other"

    reads_feedback = False

    @names_told
    def __init__(
        self,
        params: Iterable[Variable | Mapping[str, Any]],
        proposer: Proposer,
        model: str | Model | None = None,
        *,
        proposals: int = 64,
        max_edits: int = 4,
        constraints: Iterable[Contract | str] = (),
        momentum: int = 12,
        max_tokens: int | None = None,
        allowance: int | None = None,
        seed: int = 0,
    ) -> None:
        # It shows no feedback, so there is no limit for that.
        settings = {"constraints": constraints, "max_tokens": max_tokens}
        super().__init__(params, settings)
        self.proposer, self.model, self.proposals = self._proposer(proposer), model, proposals
        ranges = at_least(0, "momentum"), at_least(1, "proposals", "max_edits", "allowance")
        check(RandomSearch.__init__, locals(), *ranges)
        self.max_edits, self.momentum, self.allowance, self.seed = max_edits, momentum, allowance, seed
        self._tried: dict[Texts, None] = {}  # in the order of trying, which the proposer is shown
        self._begun: Draft | None = None  # what is not raced yet
        self._won: _Tried | None = None  # what is, and guards have not looked at

    def volume(self, sizes: Sizes) -> Volume:
        """How much it will do; see `Searcher.volume`."""
        most = sizes.decisions(self.proposals)
        usual = sizes.usually(most)
        asks = 0 if isinstance(self.proposer, RandomEdits) else 1
        race = sizes.val if self.allowance is None else min(sizes.val, self.allowance)
        return Volume(
            decisions=Range(0, most, usual),
            # The texts of now are run again where they have changed; of guarded examples both are run.
            examples=Range(
                0,
                most * (2 * min(sizes.val, 2 * race) + 2 * sizes.guarded) + MEASURED,  # what is shorter is raced twice
                usual * race / 4 + min(MEASURED, sizes.val),
            ),
            asked=Range(0, 2 * most * asks, usual * asks),
            waits=(Range(0, 1 + 12 * most, 1 + usual), Range(), Range(0, 2 * most * asks, usual * asks)),
            growth=Range(0, self.room_to_grow(), 100),
            told=Range(0, 200 * self.momentum, 60 * self.momentum),
            rewrites=bool(asks),
        )

    def state_dict(self) -> dict[str, Any]:
        """State and settings as plain data, with what was tried."""
        begun = {} if self._begun is None else {"begun": asdict(self._begun)}
        won = {} if self._won is None else {"won": asdict(self._won)}
        return {**super().state_dict(), "tried": list(map(list, self._tried)), **begun, **won}

    def _reading(self, state: Mapping[str, Any]) -> Callable[[], None]:
        take = super()._reading(state)
        tried = dict.fromkeys(tuple(texts) for texts in state["tried"])
        begun = TypeAdapter(Draft | None).validate_python(state.get("begun"))
        won = TypeAdapter(_Tried | None).validate_python(state.get("won"))

        def take_all() -> None:
            take()
            self._tried, self._begun, self._won = tried, begun, won

        return take_all

    def _begin(self, objective: Objective) -> None:
        super()._begin(objective)
        self._desk = Desk.of(self, self.model)
        if self._take_up(objective):
            self._tried, self._begun, self._won = {self.board.texts: None}, None, None
            self.vain = Vain()
        objective.adopt(self.board.texts)

    def decide(self, objective: Objective) -> Decision | None:
        """Race the next proposal; see `Searcher.decide`."""
        board = self.board
        found = self._won or self._tried_out(objective, board)
        if found is None:
            return None
        draft, kept, why, race = found.draft, found.kept, found.why, found.race
        if kept:
            self._won = found  # guards run examples again, which a budget or Ctrl-C may end; the next step asks them
            if refusal := objective.refusal(board.texts, draft.candidate.texts):
                kept, why = False, f"refused: {refusal}"
            self._won = None
        if found.is_new:
            self._remember(draft, why)
        if kept and race is not None:
            self._adopt(objective, board, draft, race)
        return Decision(
            number=draft.number,
            kind=draft.kind,
            changes=self._desk.changes(draft),
            race=race,
            kept=kept,
            why=why,
            problems=draft.problems,
            lost=found.lost,
            vain=found.vain,
        )

    def _tried_out(self, objective: Objective, board: Board) -> _Tried | None:
        """The next proposal, raced; None where nothing is left to try."""
        if not board.val:
            found = objective.scores(board.texts, range(len(objective.val)))
            known = {n: score for n, score in enumerate(found) if score is not None}
            board.noise = noise_of(objective, board.texts, known, self.seed)
            board.val = known  # only now: a budget, or Ctrl-C, leaves them to the next step
        if self._begun is None:
            self.at_the_top = "" if self.to_the_end else board.nothing_to_show(objective)
            if self.at_the_top or board.begun - board.before >= self.proposals:
                return None
            self._begun = self._draft(board)
            board.begun = self._begun.number
        tried = self._looked_at(objective, board, self._begun)
        self._begun = None
        return tried

    def _looked_at(self, objective: Objective, board: Board, draft: Draft) -> _Tried:
        """A proposal, raced unless it was tried before; where that is interrupted, the next step goes on with it."""
        nothing = draft.dropped or "nothing was proposed"
        if draft.candidate.texts in self._tried:
            board.quiet += 1
            return _Tried(draft, nothing if draft.candidate.texts == board.texts else "it was tried before", vain=True)
        try:
            kept, why, race = self._judged(objective, board, draft)
        except UNANSWERED as error:  # texts may break the program; others can still be run
            board.quiet += 1
            why = f"the race was given up: {type(error).__name__}: {error}"
            self._tried[draft.candidate.texts] = None
            draft = replace(draft, problems=(*draft.problems, why))
            return _Tried(draft, why, is_new=True, lost=True, vain=True)
        board.quiet = 0
        self._tried[draft.candidate.texts] = None
        return _Tried(draft, why, is_new=True, kept=kept, race=race)

    def _draft(self, board: Board) -> Draft:
        """One proposal for one parameter; they take turns, as nothing says which one needs it."""
        number = board.begun + 1
        parameter = number % len(board.texts)
        best = Candidate(board.texts, board.origins)
        roles = [variable.role for variable in self.variables()]
        brief = self._desk.brief(
            best,
            parameter,
            step=number,
            max_edits=self.max_edits,
            history=history_of(board.history, parameter, board.texts, roles, self.momentum),
            tried=self._shown(parameter),
            repeats=board.quiet,
        )
        # A further sample each time: the brief may be the same as before.
        (answer,) = self._desk.ask([Job(self.proposer, brief, sample=number)])
        return self._desk.filled(Draft(number, "random", best), parameter, brief, answer)

    def _shown(self, parameter: int) -> tuple[str, ...]:
        """The texts of a parameter that were tried last and are not used."""
        texts = dict.fromkeys(texts[parameter] for texts in self._tried)
        texts.pop(self.board.texts[parameter], None)
        most = min(self.momentum, MOST_SHOWN)
        return tuple(texts)[-most:] if most else ()

    def _judged(self, objective: Objective, board: Board, draft: Draft) -> tuple[bool, str, RaceRecord]:
        """Whether a proposal is to be kept by its race, or by another one where it is shorter; in a few words why."""
        race = self._raced(objective, board, draft)
        if race.outcome != "no difference" or not is_shorter(board.texts, draft.candidate.texts):
            return race.outcome == "better", str(race.outcome), race
        race = self._raced(objective, board, draft, until="worse")
        shorter = ", and shorter" if race.outcome == "no difference" else ""
        return race.outcome != "worse", f"{race.outcome}{shorter}", race

    def _raced(
        self, objective: Objective, board: Board, draft: Draft, until: Literal["better", "worse"] = "better"
    ) -> RaceRecord:
        rng = random.Random(f"{self.seed}/{draft.number}")
        how: dict[str, Any] = {"reject": KEEP, "fewest": 1, "glance": None} if until == "worse" else {}
        race = Race(
            board.strata(board.right if until == "worse" else (), rng),
            allowance=self.allowance,
            until=until,
            **how,
            at_the_end=balance(board.texts, draft.candidate.texts),
            handicap=handicap_of(objective, board.texts, draft.candidate.texts),
            scale=board.scale,
            noise=board.noise,
            clusters=objective.clusters,
        )
        both = [board.texts, draft.candidate.texts]
        scores = answered(functools.partial(objective.matrix, both))
        return run_race(race, objective.val, scores, slower_by(objective, *both))

    def _adopt(self, objective: Objective, board: Board, draft: Draft, race: RaceRecord) -> None:
        board.texts, board.origins = draft.candidate.texts, draft.candidate.origins
        board.kept += 1
        objective.adopt(board.texts)
        self._note_origins(zip(self.variables(), board.texts, board.origins))
        board.settle(race, {name: n for n, name in enumerate(objective.val)}, exact=True)

    def _remember(self, draft: Draft, outcome: str) -> None:
        """Keep for the proposer what was tried and what became of it."""
        numbers = [written.parameter for written in draft.written]
        self.board.history.extend(tried(zip(numbers, self._desk.changes(draft)), outcome))
