"""What the lanes of a patch search do: propose a patch, try an edit without, race rivals, from a copy of the board."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from textgrad_engine import ops, templates
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.optim.between import edits_between
from textgrad_engine.optim.cells import Evidence
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.gather import gather
from textgrad_engine.optim.patch import Edit, apply_patch
from textgrad_engine.optim.proposers import Brief, Proposal, Proposer
from textgrad_engine.optim.proposers.base import patched
from textgrad_engine.optim.revert import edits_in, revert
from textgrad_engine.optim.search.board import Accepted, Board, Refused
from textgrad_engine.optim.search.credit import credit, shares
from textgrad_engine.optim.search.drafts import Desk, Job
from textgrad_engine.optim.search.found import Found, Kind
from textgrad_engine.optim.search.hearing import Share
from textgrad_engine.optim.search.objective import Objective, Texts, handicap_of, slower_by
from textgrad_engine.optim.search.population import Candidate
from textgrad_engine.optim.search.proving import Racing, proven, trimmed_race
from textgrad_engine.optim.search.race import BATCH, FEWEST, GLANCE, KEEP, MANY, PROMISING, Race, balance, first_batch
from textgrad_engine.optim.search.racing import LosesAnswers, answered, run_race
from textgrad_engine.optim.search.sparing import is_better, spared
from textgrad_engine.optim.telling import history_of
from textgrad_engine.optim.transforms import Gathered


@dataclass(frozen=True)
class Course:
    """What a race is run on, and until when; see `Race` and `Board.strata`."""

    seed: str
    first: Sequence[int] = ()
    then: Sequence[int] = ()
    batch: int = BATCH
    until: Literal["better", "worse"] = "better"
    reject: float | None = None
    fewest: int = FEWEST
    glance: int | None = GLANCE
    least: int = 0

    def beginning_on(self, changed: Sequence[int]) -> Course:
        """The course of another race, with all these in its first batch, and others beside them."""
        return Course(self.seed, changed, batch=first_batch(changed), least=self.least)


@dataclass(frozen=True)
class Workshop:
    """What all lanes share.

    Attributes:
        desk: where patches are asked for.
        proposer: makes the patches.
        momentum: so many entries of the history are shown to a proposer.
        feedback_batch_size: how many examples may share one feedback call.
        allowance: at most so many examples in a race; None for all.
    """

    desk: Desk
    proposer: Proposer
    momentum: int
    feedback_batch_size: int
    allowance: int | None

    def patch(
        self,
        objective: Objective,
        board: Board,
        number: int,
        positions: tuple[int, ...],
        max_edits: int,
        seed: str,
        sharing: Share,
    ) -> Found:
        """Take feedback on a minibatch, share it, ask for a patch of at most so many edits, trim and race it."""
        with ops.feedback_batch_size(self.feedback_batch_size):
            said = sharing(lambda: objective.feedback(board.texts, positions))
        found = replace(
            self._nothing(board, number, "patch"),
            examples=positions,
            scores=said.scores,
            feedback=sum(map(len, said.gradients)),
            problems=said.problems,
        )
        briefs: dict[int, Brief] = {}
        wanted = {n: share for n, share in enumerate(shares(credit(said.gradients), max_edits)) if share}
        best = Candidate(board.texts, board.origins)
        roles = [variable.role for variable in self.desk.variables]
        past = {n: history_of(board.history, n, board.texts, roles, self.momentum) for n in wanted}
        heard = [self.desk.heard(said.gradients[n], best, n, number, past[n]) for n in wanted]
        for (n, share), shown in zip(wanted.items(), gather(heard)):
            if isinstance(shown, str):
                found = replace(found, problems=(*found.problems, shown), lost=True)
            elif shown.items:
                briefs[n] = self._brief(board, n, shown, share, number)
        found = self._ask(found, briefs)
        support = support_of_all(objective, found)
        first = objective.near(support or positions, board.failing)[:GLANCE]
        then = objective.near(support or positions, board.right)[:GLANCE]
        looked = [] if self.desk.problem(found.base, found.texts) else [*first, *then]
        racing = self._racing(objective, board, Course(seed, first, then, batch=2 * BATCH))
        others = board.others(first, random.Random(seed), then)
        found = proven(objective, self.desk.variables, found, looked, others, racing)
        return self._unless_worse(objective, board, found, support or positions, seed)

    def _racing(self, objective: Objective, board: Board, course: Course) -> Racing:
        """Races proposals on a course, or first where the ones before them changed something."""

        def race(found: Found, changed: Sequence[int]) -> Found:
            return self._raced(objective, board, found, course.beginning_on(changed) if changed else course)

        return race

    def _unless_worse(self, objective: Objective, board: Board, found: Found, about: Sequence[int], seed: str) -> Found:
        """Race what is shorter, and was not shown to be better, until it is worse, on all the examples that may be run.

        A race until "better" ends where nothing gets better; where a line is missed that is gone, it may not have run.
        """
        if not ties(found):
            return found
        others = [n for n in range(len(objective.val)) if n not in board.val]
        random.Random(seed).shuffle(others)
        near = objective.near(about, [*board.right, *others])[:GLANCE] if about else ()
        course = Course(seed, [*near, *board.right], others, until="worse", reject=KEEP, fewest=1, glance=None)

        def race(rest: Found) -> Found:
            return self._raced(objective, board, replace(rest, race=None), course)

        def wins(rest: Found) -> bool:
            return is_better(rest) or ties(rest)

        return spared(objective, self.desk.variables, race(found), race, wins)

    def tidying(self, objective: Objective, board: Board, number: int, seed: str) -> Found:
        """Ask to have lines removed that say the same; patches that did not know of each other were put together."""
        said = FeedbackItem(templates.load("tidy").render(), 1, "", ())
        concerned = dict.fromkeys(entry.parameter for entry in board.accepted)
        briefs = {
            n: self._brief(board, n, Gathered((said,)), max(board.texts[n].count("\n"), 1), number)
            for n in sorted(concerned)
        }
        found = self._ask(self._nothing(board, number, "tidying"), briefs)
        return self._raced(objective, board, found, Course(seed, until="worse", glance=None))

    def ablation(
        self, objective: Objective, board: Board, number: int, about: tuple[Accepted, ...], seed: str
    ) -> Found:
        """Try the texts without some edits, first on examples like those that asked for them.

        All examples are run that may be, unless the texts get worse: words in common find few of those that a line is
        about, and a line may be of use for one example in a hundred.
        """
        texts, origins = list(board.texts), list(board.origins)
        for entry in about:
            if entry.edit not in edits_in(texts[entry.parameter], origins[entry.parameter]):
                continue  # it went with another one of these
            text, own = revert(texts[entry.parameter], origins[entry.parameter], entry.edit)
            texts[entry.parameter], origins[entry.parameter] = text, tuple(own)
        found = replace(
            self._nothing(board, number, "ablation"),
            texts=tuple(texts),
            origins=tuple(origins),
            changes=self._changes(board.texts, tuple(texts)),
            about=about,
        )
        right = [*board.right, *(n for n in range(len(objective.val)) if n not in board.val)]  # few may be in use
        first = [n for entry in about for n in objective.near(entry.support, right)[:GLANCE]]
        course = Course(seed, first, until="worse", reject=KEEP, fewest=1, glance=None)
        return self._raced(objective, board, found, course)

    def rival(self, objective: Objective, board: Board, found: Found, first: Sequence[int], seed: str) -> Found:
        """Race the best texts against themselves with another patch's way with the same lines."""
        found = self._raced(objective, board, found, Course(seed, first[:GLANCE]))
        return self._unless_worse(objective, board, found, (), seed)

    def union(self, objective: Objective, board: Board, number: int, together: tuple[Refused, ...], seed: str) -> Found:
        """Try edits together that were refused one by one, for which reason a good beginning is no proof."""
        texts, origins = list(board.texts), list(board.origins)
        changes = []
        for n, variable in enumerate(self.desk.variables):
            last = texts[n].count("\n") + 1
            edits: list[Edit] = []
            evidence: list[Evidence] = []
            for entry in together:
                if entry.parameter == n:
                    answers = tuple(range(len(evidence) + 1, len(evidence) + len(entry.evidence) + 1))
                    evidence += entry.evidence
                    edits.append(replace(entry.edit, line=last, feedback=answers, id=""))
            if edits:
                texts[n], own = apply_patch(texts[n], origins[n], edits, evidence, number)
                origins[n] = tuple(own)
                items = tuple(FeedbackItem(item.text, 1, "", item.examples) for item in evidence)
                changes.append(Change(variable, board.texts[n], texts[n], tuple(edits), items, 0, ""))
        found = replace(
            self._nothing(board, number, "union"), texts=tuple(texts), origins=tuple(origins), changes=tuple(changes)
        )
        support = support_of_all(objective, found)
        first = objective.near(support, board.failing)[:GLANCE]
        racing = self._racing(objective, board, Course(seed, first, batch=2 * BATCH, least=MANY))
        return trimmed_race(objective, self.desk.variables, found, racing)

    def _nothing(self, board: Board, number: int, kind: Kind) -> Found:
        return Found(number, kind, board.texts, board.origins, board.texts, board.origins)

    def _brief(
        self,
        board: Board,
        n: int,
        shown: Gathered,
        max_edits: int,
        number: int,
    ) -> Brief:
        best = Candidate(board.texts, board.origins)
        return self.desk.brief(
            best,
            n,
            step=number,
            max_edits=max_edits,
            items=shown.items,
            left_out=shown.left_out,
            history=shown.history,
        )

    def _ask(self, found: Found, briefs: Mapping[int, Brief]) -> Found:
        """Ask for proposals for several parameters at once; one that is lost costs the others nothing."""
        if not briefs:
            return replace(found, lost=found.lost or (bool(found.problems) and not found.feedback))
        texts, origins = list(found.base), list(found.base_origins)
        changes, problems = [], list(found.problems)
        answers = self.desk.ask([Job(self.proposer, brief) for brief in briefs.values()])
        for (n, brief), answer in zip(briefs.items(), answers):
            if isinstance(answer, str):
                problems.append(answer)
                continue
            made = in_edits(answer, brief)
            texts[n], origins[n] = made.text, made.origins
            told = brief.items, brief.left_out
            changes.append(Change(self.desk.variables[n], brief.text, made.text, made.edits, *told, made.problem))
        return replace(
            found,
            texts=tuple(texts),
            origins=tuple(origins),
            changes=tuple(changes),
            problems=tuple(problems),
            lost=not changes,
        )

    def _changes(self, before: Texts, after: Texts) -> tuple[Change, ...]:
        pairs = zip(self.desk.variables, before, after)
        return tuple(Change(variable, old, new, (), (), 0, "") for variable, old, new in pairs if old != new)

    def _raced(self, objective: Objective, board: Board, found: Found, course: Course) -> Found:
        if found.texts == found.base:
            return found
        if problem := self.desk.problem(found.base, found.texts):
            return replace(found, dropped=problem)
        both = [found.base, found.texts]
        scores = answered(lambda some: objective.matrix(both, some))
        slower = slower_by(objective, *both)
        try:
            more = [n for n in range(len(objective.val)) if n not in board.val][: len(board.val)]
            race = self._race(objective, board, found, course, last=not more)
            record = run_race(race, objective.val, scores, slower)
            undecided = course.until == "better" and record.outcome == "no difference"
            if more and undecided and record.probability >= PROMISING:
                # What was run is known by now, so the same race on more examples costs the new ones only.
                race = self._race(objective, _wider(objective, board, both, more), found, course, last=True)
                record = run_race(race, objective.val, scores, slower)
            return replace(found, race=record)
        except UNANSWERED as error:  # texts may break the program; others can still be run
            problem = f"the race was given up: {error}"
            lost = not isinstance(error, LosesAnswers)
            return replace(found, problems=(*found.problems, problem), dropped=problem, lost=lost)

    def _race(self, objective: Objective, board: Board, found: Found, course: Course, *, last: bool) -> Race:
        """The race of a proposal; the last one runs all the examples that it may be run on."""
        first = course.first or (board.right if course.until == "worse" else ())
        return Race(
            board.strata(first, random.Random(course.seed), course.then),
            first=course.batch,
            allowance=self.allowance,
            scale=board.scale,
            handicap=handicap_of(objective, found.base, found.texts),
            noise=board.noise,
            clusters=objective.clusters,
            until=course.until,
            reject=course.reject,
            at_the_end=balance(found.base, found.texts) if last else None,
            fewest=course.fewest,
            glance=course.glance,
            least=course.least,
            hopeful=board.hopeful if course.until == "better" else None,
        )


def _wider(objective: Objective, board: Board, both: list[Texts], more: Sequence[int]) -> Board:
    """The board with more validation examples, run with two texts at once; as it is where most go unanswered."""
    try:
        known = zip(more, objective.matrix(both, more)[0])
    except UNANSWERED:
        return board
    return replace(board, val={**board.val, **{n: score for n, score in known if score is not None}})


def is_shorter(before: Texts, after: Texts) -> bool:
    r"""Whether texts have no more lines and fewer characters than the ones before.

    Example:
        >>> is_shorter(("Sort it.",), ("Sort.",)), is_shorter(("Sort it.",), ("a\nb",))
        (True, False)
    """
    fewer_lines = sum(text.count("\n") for text in after) <= sum(text.count("\n") for text in before)
    return fewer_lines and sum(map(len, after)) < sum(map(len, before))


def ties(found: Found) -> bool:
    """Whether a proposal is shorter, and its race has shown no difference: of equals the shorter one is kept."""
    return found.race is not None and found.race.outcome == "no difference" and is_shorter(found.base, found.texts)


def in_edits(made: Proposal, brief: Brief) -> Proposal:
    """A proposal as edits, also where it was written as a whole: only edits can be moved to other texts, or taken back.

    Args:
        made: the proposal.
        brief: what it was made for.
    """
    if made.edits or made.text == brief.text:
        return made
    shown = [item.evidence for item in brief.items]
    edits, evidence = edits_between(brief.text, made.text, made.origins)
    reason = next((edit.reason for edit in edits if edit.reason), "")
    own = []
    for edit in edits:
        asked = [evidence[number - 1] for number in edit.feedback] if edit.op != "remove" else shown
        numbers = tuple(shown.index(each) + 1 for each in asked if each in shown)
        own.append(replace(edit, reason=edit.reason or reason, feedback=numbers, id=""))
    return replace(patched(brief, own), problem=made.problem)


def support_of_all(objective: Objective, found: Found) -> list[int]:
    """The training examples that asked for the edits of a proposal, by position, edit after edit."""
    return [n for change in found.changes for edit in change.edits for n in support_of(objective, change, edit)]


def support_of(objective: Objective, change: Change, edit: Edit) -> tuple[int, ...]:
    """The training examples that asked for an edit, by position."""
    names = dict.fromkeys(name for number in edit.feedback for name in change.items[number - 1].examples)
    positions = {name: n for n, name in enumerate(objective.train)}
    return tuple(positions[name] for name in names if name in positions)
