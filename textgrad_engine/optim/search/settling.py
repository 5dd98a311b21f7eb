"""What becomes of what lanes bring back: kept, put together with what was kept in the meantime, or remembered.

Proposals are settled in the order in which they were begun, and only here does the board of a patch search learn of
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from textgrad_engine.autograd import Variable
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.patch import stamped
from textgrad_engine.optim.search.board import Accepted, Board, Refused, Rival
from textgrad_engine.optim.search.found import Found, edits_of, number_of, trimmed_in_words, with_edits
from textgrad_engine.optim.search.moving import moved
from textgrad_engine.optim.search.objective import Objective
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.optim.search.searcher import Decision
from textgrad_engine.optim.search.sparing import spared_in_words
from textgrad_engine.optim.search.work import Workshop, support_of, ties
from textgrad_engine.optim.search.written import Written
from textgrad_engine.optim.telling import Tried, tried

MANY_TOGETHER = 3
"""After so many patches were put together, the proposer is asked to remove lines that say the same."""

NEAREST = 2
"""An edit is still wanted when one of so many gained examples fails that are most like those that asked for it."""

SHORTER = ("tidying", "ablation")
"""What is taken unless it is worse, as it leaves lines out."""

_Judged: TypeAlias = tuple[bool, str, tuple[Change, ...]]


class Settling:
    """Settles proposals.

    Args:
        board: what the search knows; it is changed.
        shop: has the parameters and their contracts.
        objective: says what must not break, and which examples are alike.
        positions: the validation examples' positions by their ids.
    """

    def __init__(self, board: Board, shop: Workshop, objective: Objective, positions: Mapping[str, int]) -> None:
        self._board, self._shop, self._objective, self._positions = board, shop, objective, positions

    def settle(self, found: Found) -> Decision:
        """Decide about a proposal, in the order of their numbers, and note on the board what came of it.

        Raises:
            ModelError: a guard's examples could not be run at all, or the budget is spent.
        """
        board = self._board
        board.learn(found.examples, found.scores, lost=found.lost)
        if found.race is not None and found.base == board.texts:
            board.observe(found.race, self._positions)
        kept, why, changes = self._judged(found)
        if found.kind == "union":
            board.vain += 1
        if found.kind != "tidying":
            board.quiet = 0 if kept and not found.about and not ties(found) else board.quiet + 1
        board.end(found.number)
        return Decision(
            number=found.number,
            kind=found.kind,
            examples=tuple(self._objective.train[n] for n in found.examples),
            scores=found.scores,
            feedback=found.feedback,
            changes=changes,
            race=found.race,
            kept=kept,
            why=why,
            edits=tuple(entry.edit for entry in found.about),
            problems=found.problems,
            lost=found.lost,
        )

    def _judged(self, found: Found) -> _Judged:
        """Whether it is kept, in a few words why, and what it changed."""
        if found.race is None:
            dropped = [found.dropped, *(change.problem for change in found.changes)]
            why = next((f"dropped: {problem}" for problem in dropped if problem), "")
            return False, why or ("no answer" if found.lost else "nothing was proposed"), found.changes
        if found.kind in SHORTER:
            return self._settle_shorter(found, found.race)
        if found.race.outcome == "better" or ties(found):
            self._remember(found.spared, f"refused: {found.spared_for}", each=True)
            kept, why, changes = self._settle_winner(found, found.race)
            return kept, why + spared_in_words(found) + trimmed_in_words(found), changes
        why = "worse" if found.race.outcome == "worse" else "no difference shown"
        for change in found.changes if found.kind == "patch" else ():
            n = self._number(change)
            for edit in change.edits:
                evidence = tuple(change.items[number - 1].evidence for number in edit.feedback)
                self._board.refused.append(Refused(n, edit, evidence))
        self._remember(found.changes, why)
        return False, why + trimmed_in_words(found), found.changes

    def _settle_winner(self, found: Found, race: RaceRecord) -> _Judged:
        board = self._board
        if found.base == board.texts:
            if refusal := self._objective.refusal(found.base, found.texts, found.number):
                return self._refused(found.changes, refusal)
            self._adopt(found, exact=True)
            return True, race.in_words + (", and shorter" if ties(found) else ""), found.changes
        if ties(found):  # others may be gone since, which it leaves no need for
            board.rivals.append(self._rival(found, race))
            return False, f"{race.in_words}, and shorter; to be raced again, as the texts have changed", found.changes
        gained = [self._positions[name] for name in race.gained]
        if not any(map(board.can_gain, gained)):
            return False, "what it gains was gained by another patch in the meantime", found.changes
        wanted = self._still_wanted(found, gained)
        there, disputed = moved(wanted, self._shop.desk.variables, board.texts, board.origins)
        if there.texts == board.texts:
            return False, "another patch has said the same in the meantime", found.changes
        if disputed:
            board.rivals.append(self._rival(found, race))
            why = f"{race.in_words}, but the same lines were changed in the meantime: the two are raced"
            return False, why, found.changes
        if problem := self._shop.desk.problem(board.texts, there.texts):
            return False, f"dropped with what was kept in the meantime: {problem}", found.changes
        if refusal := self._objective.refusal(board.texts, there.texts, found.number):
            return self._refused(there.changes, refusal)
        self._adopt(there, exact=False)
        board.together += 1
        return True, f"{race.in_words}, and put together with what was kept in the meantime", there.changes

    def _still_wanted(self, found: Found, gained: Sequence[int]) -> Found:
        """A winner without the edits whose gains were gained in the meantime: what is nearest to who asked for them."""
        board, variables, wanted = self._board, self._shop.desk.variables, []
        for change in found.changes:
            for placed in edits_of(replace(found, changes=(change,)), variables):
                support = support_of(self._objective, change, placed[1])
                nearest = self._objective.near(support, gained)[:NEAREST] if support else gained
                if any(map(board.can_gain, nearest)):
                    wanted.append(placed)
        return with_edits(found, variables, wanted)

    def _refused(self, changes: tuple[Change, ...], refusal: str) -> _Judged:
        """A patch that won its race and breaks what must not break."""
        self._remember(changes, f"refused: {refusal}")
        return False, f"refused: {refusal}", changes

    def _settle_shorter(self, found: Found, race: RaceRecord) -> _Judged:
        """An ablation or a tidied text: taken unless it is worse."""
        if race.outcome == "worse":
            if len(found.about) > 1:  # one of them is needed, or they stand in for each other
                half = len(found.about) // 2
                self._board.doubtful.extend((found.about[:half], found.about[half:]))
            return False, "it is worse without", found.changes
        longer = sum(map(len, found.texts)) > sum(map(len, found.base))
        if race.outcome == "no difference" and longer:  # of equals the shorter one stays
            return False, "no difference shown, and it is longer", found.changes
        if found.base != self._board.texts:  # others are gone since, which these may stand in for
            if found.kind == "tidying":
                self._board.together = MANY_TOGETHER
            else:
                doubtful = self._board.doubtful
                waiting = doubtful.pop() if doubtful and len(found.about) == 1 else ()
                doubtful.append((*waiting, *found.about))
            return False, f"{race.outcome} without; to be tried again, as the texts have changed", found.changes
        if refusal := self._objective.refusal(found.base, found.texts, found.number):
            return False, f"refused: {refusal}", found.changes
        self._remember_removed(found, race.outcome)
        self._adopt(found, exact=True)
        return True, f"{race.outcome} without", found.changes

    def _rival(self, found: Found, race: RaceRecord) -> Rival:
        written = tuple(Written.of(change, self._number(change)) for change in found.changes)
        return Rival(found.number, found.base, found.base_origins, written, race.gained)

    def _adopt(self, found: Found, *, exact: bool) -> None:
        board = self._board
        board.texts, board.origins = found.texts, found.origins
        self._objective.adopt(found.texts, found.number)
        if found.race is not None:
            board.settle(found.race, self._positions, exact=exact)
        if found.about:
            board.accepted = [entry for entry in board.accepted if entry not in found.about]
        if found.kind in ("patch", "rival", "union"):
            board.kept += 1
            if not ties(found):
                board.vain = 0
                board.give_another_try()  # what was given up may be within reach of the new texts
            for change in found.changes:
                for edit in stamped(change.edits, found.number):
                    support = support_of(self._objective, change, edit)
                    board.accepted.append(Accepted(self._number(change), edit.id, support))

    def _remember(self, changes: Sequence[Change], outcome: str, *, each: bool = False) -> None:
        """Keep for the proposer what was tried and what became of it, or of each edit by itself."""
        numbered = [(self._number(change), change) for change in changes]
        self._board.history.extend(tried(numbered, outcome, each=each))

    def _remember_removed(self, found: Found, outcome: str) -> None:
        for entry in found.about:
            lines = zip(self._board.texts[entry.parameter].split("\n"), self._board.origins[entry.parameter])
            text = " / ".join(line for line, origin in lines if origin is not None and origin.edit == entry.edit)
            if text:
                self._board.history.append(Tried(entry.parameter, repr(text), outcome, removed=True))

    def _number(self, change: Change) -> int:
        return number_of(change, self._shop.desk.variables)


def challenger(rival: Rival, number: int, variables: Sequence[Variable]) -> Found:
    """A rival as a proposal of its own; its edits keep the ids of the first one.

    Args:
        rival: the patch.
        number: the number of the new proposal.
        variables: the parameters.
    """
    changes = []
    for each in rival.written:
        edits = tuple(stamped(each.edits, rival.number))
        changes.append(replace(each.change(variables[each.parameter]), edits=edits))
    base, origins = rival.base, rival.origins
    return Found(number, "rival", base, origins, base, origins, changes=tuple(changes))
