"""`BeamSearch`: ProTeGi (arXiv 2305.03495), textual gradients, a beam, and a bandit that chooses who stays in it.

What is the paper's: each round expands every text of the beam. It is run on a minibatch; groups of a few errors each
give one criticism, a textual gradient; the text is edited in the direction opposite to each, once or several times; and
each new text, like the old one, is said in other words (Monte-Carlo successors). Of what comes of one text a random
few are kept, and a bandit finds the best `beam` of all of them by running them on few examples: successive rejects or
UCB.

What is not:

- A gradient is the feedback of our backward pass on such a group, traced through the graph, so that searches are
  compared on the same feedback; with several prompts in the program, the one to edit is drawn by how much of it went
  there (`optim.search.credit`). The paper has one prompt.
- Successive rejects is what selects where nothing is said: it has no constant to set, and waits less often. In the
  paper's comparison UCB did better, which is ``selection="ucb"``.
- The bandit draws its examples from the validation set, where the paper draws from the training set: who wrote a text
  has not seen these. The test set stays sealed, and the final choice is the Trainer's.
- All candidates are run on the same examples in the same order, so that they are compared in pairs, and what was bought
  in a round before is not bought again.
- Where tokens or seconds have a price, the bandit's means are of scores less it.
- A text that gets no answers (a filter, a full context) does not stay in the beam, also where there is room.
- Which successors are tried is drawn before the paraphrases are asked for: what would be thrown away costs nothing.

The texts of the parameters are always those of the best of the beam, by the bandit's means, as the paper has it at the
end: a plain ``>``, which is the method's rule. Texts that guards refuse stay in the beam, where an edit may repair
them, and the parameters get the next best; where all of the beam is refused, it is given up for the best text of now.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from textgrad_engine.autograd import Variable
from textgrad_engine.checks import at_least, check
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.contracts import Contract
from textgrad_engine.optim.demo_runs import demos_and_queries
from textgrad_engine.optim.gather import Heard, gather
from textgrad_engine.optim.proposers import Proposer, Rewrite
from textgrad_engine.optim.proposers.paraphrase import Paraphrase
from textgrad_engine.optim.search.bandit import BATCH, successive_rejects, ucb
from textgrad_engine.optim.search.credit import credit
from textgrad_engine.optim.search.drafts import Draft, Job
from textgrad_engine.optim.search.evolving import Outcome, PopulationSearcher, Round, in_words, lost, unanswered
from textgrad_engine.optim.search.lanes import Lanes
from textgrad_engine.optim.search.objective import FeedbackOn, Objective, after_costs, rows_of
from textgrad_engine.optim.search.population import Candidate
from textgrad_engine.optim.search.volume import Range, Sizes, Volume, rounded_up
from textgrad_engine.optim.settings import may_show, reads_words
from textgrad_engine.optim.transforms import FeedbackTransform, Gathered

Selection = Literal["rejects", "ucb"]


@dataclass(frozen=True)
class _Errors:
    """A group of examples that a candidate fails, their scores, and for each text what may be shown beside feedback."""

    parent: int
    positions: tuple[int, ...]
    scores: tuple[float | None, ...]
    shown: Sequence[Mapping[str, Any]]


class BeamSearch(PopulationSearcher):
    """Searches with a beam of texts: criticism of errors, edits against it, paraphrases, selection by a bandit.

    Each step decides about one text; the first step of a round does the work of the whole round. It is ProTeGi (arXiv
    2305.03495); ``help("textgrad_engine.optim.beam_search")`` says where it departs from the paper.

    Args:
        params: the parameters, or groups of them with their own settings.
        model: the model that writes new texts; None stands for the optimizer of `use_models`.
        proposer: edits a text by feedback; None is `proposers.Rewrite`, as in the paper.
        beam: how many texts stay after a round.
        rounds: how many rounds.
        batch_size: training examples on which the texts of a beam are run in a round.
        gradients: groups of errors for each text, each of which gives one criticism.
        errors: examples in a group.
        edits: new texts for each criticism.
        paraphrases: how many paraphrases of each new text, and of the old one.
        successors: the most new texts from one text that are tried.
        selection: ``"rejects"`` (successive rejects) or ``"ucb"``.
        evaluations: about how many validation examples the bandit runs for a candidate, on average.
        max_edits: the most edits in a proposal, if the proposer makes edits.
        constraints: texts that the model is told, and contracts that are checked (`optim.contracts`).
        max_tokens: the most tokens in a parameter. None stands for 2,000, or for 1.5 times the longest text of its
            group at the start, if that is more.
        max_feedback_tokens: the most tokens of feedback that are shown; beyond it whole items are left out.
        transforms: changes to the feedback before it is shown, e.g. ``[cluster(), worst_first()]``; None is
            ``[dedupe()]``. They must be stateless, as proposals do not know of each other.
        seed: of everything random.

    Raises:
        ValueError: there is no parameter, a setting is out of range, or `selection` is another word.
        TypeError: a setting is of a wrong kind.

    Example:
        >>> from textgrad_engine import nn, use_models
        >>> from textgrad_engine.testing import FunctionModel
        >>> from textgrad_engine.train import Objective
        >>> def model(request):
        ...     if request.purpose == "backward":
        ...         return {f"case_{n}": {"system": "Say to shout."} for n in range(1, 5)}
        ...     if request.purpose == "optimizer":
        ...         return {"text": "Repeat. Shout.", "reason": "asked for"}
        ...     text = request.messages[-1].text
        ...     return text.upper() if "Shout" in request.messages[0].text else text
        >>> system = nn.Parameter("Repeat.", role="system prompt")
        >>> program = nn.ChatCompletion("{word}", system=system)
        >>> rows = [{"word": word, "target": word.upper()} for word in "one two three four".split()]
        >>> search = BeamSearch(program.parameters())
        >>> with use_models(forward=FunctionModel(model)):
        ...     search.step(Objective(program, nn.ExactMatch(), rows)).why
        'first of the beam (1.000 on 4 examples)'
        >>> system.data
        'Repeat. Shout.'
    """

    _several = ", and edits={n} for so many new texts from each criticism"
    _has_solved = True

    @names_told
    def __init__(
        self,
        params: Iterable[Variable | Mapping[str, Any]],
        model: str | Model | None = None,
        *,
        proposer: Proposer | None = None,
        beam: int = 4,
        rounds: int = 6,
        batch_size: int = 64,
        gradients: int = 4,
        errors: int = 4,
        edits: int = 1,
        paraphrases: int = 2,
        successors: int = 8,
        selection: Selection = "rejects",
        evaluations: int = 16,
        max_edits: int = 4,
        constraints: Iterable[Contract | str] = (),
        max_tokens: int | None = None,
        max_feedback_tokens: int = 8000,
        transforms: Iterable[FeedbackTransform] | None = None,
        seed: int = 0,
    ) -> None:
        settings = {
            "constraints": constraints,
            "max_tokens": max_tokens,
            "max_feedback_tokens": max_feedback_tokens,
            "transforms": transforms,
        }
        super().__init__(params, settings, model, seed)
        self.proposer, self.max_edits = self._proposer(proposer, Rewrite()), max_edits
        wide = at_least(1, "beam", "rounds", "batch_size", "gradients", "errors", "edits")
        rest = at_least(1, "successors", "evaluations", "max_edits")
        check(BeamSearch.__init__, locals(), wide, rest, at_least(0, "paraphrases"))
        self.beam, self.rounds, self.batch_size = beam, rounds, batch_size
        self.gradients, self.errors, self.edits, self.paraphrases = gradients, errors, edits, paraphrases
        self.successors, self.selection, self.evaluations = successors, selection, evaluations
        self._beam = [0]
        self._round = 0

    @property
    def reads_runs(self) -> bool:
        """Whether its proposer may show what was solved."""
        return may_show(self.proposer)

    @property
    def hears_critic(self) -> bool:
        """Whether its proposer reads what is said of answers."""
        return reads_words(self.proposer)

    def volume(self, sizes: Sizes) -> Volume:
        """How much it will do; see `Searcher.volume`."""
        wide = self.beam * (self.gradients * self.edits + self.successors) + 1  # decisions of a round at most
        most = sizes.decisions(self.rounds * wide)
        rounds = min(self.rounds, most)
        batch = min(self.batch_size, sizes.train)
        usual = min(self.rounds, rounded_up(round(sizes.usually(most)), max(1, wide // 2)))
        wrong = min(self.gradients * self.errors, batch)
        arms = self.beam * (1 + self.successors)
        bandit = min(arms * sizes.val, arms * (self.evaluations + BATCH))
        asked = self.beam * (self.gradients * self.edits + self.successors)
        extra = self.most_asked_by_transforms()
        merged = self.beam * self.gradients  # what transforms may ask a model about
        return Volume(
            decisions=Range(0, most, min(most, usual * wide / 2)),
            examples=Range(
                0,
                rounds * (self.beam * (batch + wrong) + bandit + wide * 2 * sizes.guarded),
                usual * (0.5 * self.beam * (batch + wrong) + 0.5 * bandit),
            ),
            feedback=Range(0, rounds * self.beam * wrong, usual * self.beam * wrong),
            asked=Range(0, rounds * (2 * asked + extra * merged), usual * 0.6 * (asked + bool(extra) * merged)),
            shared=min(self.errors, wrong),
            waits=(
                Range(0, rounds * (2 + arms), usual * (2 + self.beam * self.successors / 4)),
                Range(0, rounds, usual),
                Range(0, (4 + extra) * rounds, (2 + bool(extra)) * usual),
            ),
            growth=Range(0, self.room_to_grow(), 100),
            told=Range(0, self.most_told(), 40 * self.errors),
        )

    def _memory(self) -> dict[str, Any]:
        return {"beam": list(self._beam), "round": self._round}

    def _remember(self, memory: Mapping[str, Any]) -> None:
        self._beam, self._round = [int(n) for n in memory.get("beam", [0])], int(memory.get("round", 0))

    def _propose(self, objective: Objective) -> Round | Sequence[Outcome]:
        if self._round >= self.rounds:
            return ()
        self._round += 1
        rng = random.Random(f"{self.seed}/round/{self._round}")
        try:
            groups = self._groups(objective, rng)
        except UNANSWERED as error:
            return (lost(Draft(self._next_number(), "round", self.population.candidates[self._best]), in_words(error)),)
        if not groups:
            stays = Draft(self._next_number(), "round", self.population.candidates[self._best])
            return (Outcome(stays, "no text of the beam got anything wrong on its minibatch"),)
        edited = self._edited(groups, self._feedback(objective, groups), rng)
        drawn, sources = self._drawn(edited, rng)
        drafts = [*edited, *self._paraphrased(sources)]
        reasons: dict[int, str] = {}
        vain: set[int] = set()
        arms: dict[int, int] = {}
        for draft in drafts:
            if (why := self._unusable(draft)) or (draft.kind == "edit" and draft.number not in drawn):
                vain.update([draft.number] if why and draft.written else [])
                reasons[draft.number] = why or f"not drawn: {self.successors} of what comes of a text are tried"
            else:
                arms[draft.number] = self.population.add(draft.candidate)
        before = self._best
        if arms:
            self._select(objective, list(arms.values()), rng)
        return Round(tuple(drafts), before, arms, reasons, tuple(sorted(vain)))

    def _decided(self, objective: Objective, run: Round) -> Sequence[Outcome]:
        arms, before = run.arms, run.before
        first, refused = self._leader(objective, self._beam)
        if first is None:  # what comes of refused texts mostly inherits why: begin again from the best one of now
            self._beam = [before]
        outcomes = []
        for draft in run.drafts:
            arm = arms.get(draft.number)
            if arm is None:
                outcomes.append(Outcome(draft, run.reasons[draft.number], vain=draft.number in run.vain))
            elif not self.population.known(arm):
                outcomes.append(unanswered(draft))
            else:
                why, leads = refused.get(arm) or self._place(arm, objective), arm if arm == first else None
                outcomes.append(Outcome(draft, why, leads, self.population.compared(arm, before, objective.clusters)))
        if first is not None and first not in (before, *arms.values()):
            again = Draft(self._next_number(), "selection", self.population.candidates[first])
            why = f"on more examples, an earlier text is {self._place(first, objective)}"
            outcomes.append(Outcome(again, why, first, self.population.compared(first, before, objective.clusters)))
        return outcomes

    # Expansion.

    def _groups(self, objective: Objective, rng: random.Random) -> list[_Errors]:
        """For each text of the beam groups of what it got wrong on one minibatch, which all of them are run on."""
        size = len(objective.train)
        positions = sorted(rng.sample(range(size), min(self.batch_size, size)))
        rows = rows_of(objective, [self.population.candidates[n].texts for n in self._beam], positions, "train")
        top = self.population.top(score for row in rows for score in row)
        found = []
        for parent, row in zip(self._beam, rows):
            wrong = [(n, score) for n, score in zip(positions, row) if score is not None and score < top]
            rng.shuffle(wrong)
            for start in range(0, min(len(wrong), self.gradients * self.errors), self.errors):
                group = sorted(wrong[start : start + self.errors])
                right = {n: score for n, score in zip(positions, row) if score is not None and score >= top}
                texts = self.population.candidates[parent].texts
                shown: list[dict[str, Any]] = [{} for _ in texts]
                if self.reads_runs:
                    scores = right | dict(group)
                    shown = [demos_and_queries(objective, texts, scores, top, n) for n in range(len(texts))]
                found.append(_Errors(parent, tuple(n for n, _ in group), tuple(score for _, score in group), shown))
        return found

    def _feedback(self, objective: Objective, groups: list[_Errors]) -> list[FeedbackOn]:
        """The feedback on each group, one criticism for all of it, all groups at once."""
        lanes: Lanes[FeedbackOn] = Lanes(len(groups))
        try:
            with self.hearing(self.errors):
                for group in groups:
                    texts = self.population.candidates[group.parent].texts
                    lanes.put(functools.partial(objective.feedback, texts, group.positions))
            return [lanes.take() for _ in groups]
        finally:
            lanes.close()

    def _edited(self, groups: list[_Errors], said: list[FeedbackOn], rng: random.Random) -> list[Draft]:
        """New texts from the feedback on each group, all asked for at once."""
        shown = self._gathered(groups, said, rng)
        started: list[tuple[Draft, int, Job | None]] = []
        for place, (group, feedback) in enumerate(zip(groups, said)):
            parent = self.population.candidates[group.parent]
            stays = Draft(
                number=0,
                kind="edit",
                candidate=replace(parent, parents=(group.parent,)),
                examples=group.positions,
                scores=group.scores,
                feedback=sum(map(len, feedback.gradients)),
                problems=feedback.problems,
            )
            parameter, found = shown.get(place, (0, Gathered(())))
            if isinstance(found, str):
                stays, found = replace(stays, problems=(*stays.problems, found)), Gathered(())
            if not found.items:
                started.append((replace(stays, number=self._next_number()), parameter, None))
                continue
            for sample in range(self.edits):
                number = self._next_number()
                brief = self._desk.brief(
                    stays.candidate,
                    parameter,
                    step=number,
                    max_edits=self.max_edits,
                    items=found.items,
                    left_out=found.left_out,
                    history=found.history,
                    **group.shown[parameter],
                )
                job = Job(self.proposer, brief, sample)
                started.append((replace(stays, number=number), parameter, job))
        answers = iter(self._desk.ask([job for *_, job in started if job is not None]))
        return [
            draft if job is None else self._desk.filled(draft, parameter, job.brief, next(answers))
            for draft, parameter, job in started
        ]

    def _gathered(
        self, groups: list[_Errors], said: list[FeedbackOn], rng: random.Random
    ) -> dict[int, tuple[int, Gathered | str]]:
        """By the place of a group, one of the texts that it has feedback on, and what is shown of that, or why not."""
        heard: list[tuple[int, int, Heard]] = []
        for place, (group, feedback) in enumerate(zip(groups, said)):
            credited = credit(feedback.gradients)
            if any(credited):
                parameter = rng.choices(range(len(credited)), weights=credited)[0]
                parent = self.population.candidates[group.parent]
                told = self._desk.heard(feedback.gradients[parameter], parent, parameter, self._round)
                heard.append((place, parameter, told))
        return {place: (n, each) for (place, n, _), each in zip(heard, gather([told for *_, told in heard]))}

    def _drawn(self, edited: list[Draft], rng: random.Random) -> tuple[set[int], list[tuple[Candidate, int, int]]]:
        """Which successors are tried.

        Returns:
            The numbers of the edits, and of the paraphrases what is to be said otherwise: a candidate, the number of
            its parent, and which sample of it.
        """
        drawn: set[int] = set()
        sources: list[tuple[Candidate, int, int]] = []
        for parent in self._beam:
            usable = [d for d in edited if d.candidate.parents == (parent,) and not self._unusable(d)]
            slots: list[Draft | tuple[Candidate, int, int]] = [*usable]
            for text in (*(draft.candidate for draft in usable), self.population.candidates[parent]):
                slots += [(text, parent, sample) for sample in range(self.paraphrases)]
            for place in sorted(rng.sample(range(len(slots)), min(self.successors, len(slots)))):
                slot = slots[place]
                if isinstance(slot, Draft):
                    drawn.add(slot.number)
                else:
                    sources.append(slot)
        return drawn, sources

    def _paraphrased(self, sources: list[tuple[Candidate, int, int]]) -> list[Draft]:
        """What is drawn in other words, all asked for at once; of several texts one that the sample's number names."""
        started = []
        for source, parent, sample in sources:
            number = self._next_number()
            parameter = (number + sample) % len(source.texts)
            stays = Draft(number, "paraphrase", replace(source, parents=(parent,)))
            brief = self._desk.brief(source, parameter, step=number)
            started.append((stays, parameter, Job(Paraphrase(), brief, sample)))
        answers = self._desk.ask([job for *_, job in started])
        return [self._desk.filled(*each[:2], each[2].brief, answer) for each, answer in zip(started, answers)]

    def _unusable(self, draft: Draft) -> str:
        """Why a draft is not tried; "" when it can be."""
        if not draft.written:  # a lost paraphrase has the text that it was to say in other words
            return draft.dropped or "nothing was proposed"
        number = self.population.number_of(draft.candidate.texts)
        if number is None:
            return ""
        nothing = number in draft.candidate.parents
        return (draft.dropped or "nothing was proposed") if nothing else "it was tried before"

    # Selection.

    def _select(self, objective: Objective, new: list[int], rng: random.Random) -> None:
        """Choose the next beam among the old one and new candidates."""
        population = self.population
        order = list(range(len(objective.val)))
        rng.shuffle(order)
        arms = [*self._beam, *sorted(new, key=population.length)]
        keep, budget = min(self.beam, len(arms)), self.evaluations * len(arms)

        def run(numbers: list[int], positions: list[int]) -> None:
            with contextlib.suppress(*UNANSWERED):  # an example that nobody gets an answer to tells nothing
                population.score(objective, numbers, positions)

        if self.selection == "rejects":
            self._beam = successive_rejects(arms, keep, budget, order, run, population.mean)
        else:
            self._beam = ucb(arms, keep, budget, order, run, population.mean, population.scale)
        # A text that gets no answers breaks the program. It would take the place of one that can be made better.
        self._beam = [arm for arm in self._beam if population.known(arm)] or [self._best]

    def _place(self, arm: int, objective: Objective) -> str:
        population = self.population
        mean = f"{population.mean(arm):z.3f}{after_costs(objective)}"
        seen = f"({mean} on {len(population.known(arm))} examples)"
        if arm not in self._beam:
            return f"rejected {seen}"
        return f"{'first' if self._beam[0] == arm else f'number {self._beam.index(arm) + 1}'} of the beam {seen}"
