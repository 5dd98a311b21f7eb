"""`OPRO`: optimization by prompting (arXiv 2309.03409), a model that is shown what was tried and how well it did.

What is the paper's: the optimizer sees the best texts so far with their scores, in ascending order, and a few of the
tasks with their right answers; it proposes several new texts a step, which are scored on the training set and shown in
the next one. There is no feedback on single answers.

What is not:

- Each proposal of a step is shown other tasks, where the paper draws them once a step and relies on a temperature of 1:
  so proposals differ also when a model is deterministic, or its answers come from a cache.
- With several texts in the program, they take turns, as scores do not tell which is at fault; each is shown with the
  best score that the program had with it. The paper has one text.
- There are 25 rounds where nothing is said, as scoring costs most of the calls; the paper has up to 200.
- The parameters change only when the best of a step is better on the validation set, too; the paper has no such set and
  reports that scores on the training set flatter. The best is the best of those that guards do not refuse. The test set
  stays sealed, and the final choice is the Trainer's.
- Where tokens or seconds have a price, the scores that are shown and ranked by are those that are left when it is paid.
- Of tasks that are long, such as contracts, the middle is left out: pages would leave no room for the texts.
- Scores of any scale are shown as the paper shows accuracies, from 0 to 100, where the loss names its scale.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.checks import at_least, check
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.model import Model
from textgrad_engine.optim.contracts import Contract
from textgrad_engine.optim.demos import fitted_demo, note_unshown
from textgrad_engine.optim.proposers.by_scores import ByScores
from textgrad_engine.optim.search.drafts import Draft, Job
from textgrad_engine.optim.search.evolving import Outcome, PopulationSearcher, Round, in_words, lost, unanswered
from textgrad_engine.optim.search.objective import Objective, Split, after_costs, rows_of, worths
from textgrad_engine.optim.search.population import Candidate
from textgrad_engine.optim.search.volume import Range, Sizes, Volume, rounded_up

MOST_OF_TASK = 1000
"""Tokens of a task that are shown at most; its middle is left out beyond that."""


class OPRO(PopulationSearcher):
    """Searches by showing a model the texts that were tried, with their scores.

    Each step decides about one text; the first step of a round does the work of the whole round. It is optimization by
    prompting (arXiv 2309.03409); ``help("textgrad_engine.optim.opro")`` says where it departs from the paper.

    Args:
        params: the parameters, or groups of them with their own settings.
        model: the model that writes new texts; None stands for the optimizer of `use_models`.
        rounds: how many rounds.
        per_round: how many new texts are asked for at once.
        shown: how many of the best texts are shown, with their scores.
        examples: how many tasks are shown with their answers; the middle of long ones is cut. Each takes 1,000 tokens
            at most, and all of them half of the room for feedback.
        score_on: ``"train"`` as in the paper, or ``"val"``: then every score also counts for the selection.
        sample: how many examples a score is the mean of; they are drawn once. None for all.
        constraints: texts that the model is told, and contracts that are checked (`optim.contracts`).
        max_tokens: the most tokens in a parameter. None stands for 2,000, or for 1.5 times the longest text of its
            group at the start, if that is more.
        max_feedback_tokens: the most tokens of texts with scores that are shown; beyond it the worst are left out.
        seed: of everything random.

    Raises:
        ValueError: there is no parameter, or a setting is out of range.
        TypeError: a setting is of a wrong kind.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import FunctionModel
        >>> from textgrad_engine.train import Objective
        >>> def model(request):
        ...     if request.purpose == "optimizer":
        ...         return {"text": "Repeat. Shout.", "reason": "the tasks are answered in capitals"}
        ...     text = request.messages[-1].text
        ...     return text.upper() if "Shout" in request.messages[0].text else text
        >>> system = nn.Parameter("Repeat.", role="system prompt")
        >>> program = nn.ChatCompletion("{word}", system=system, model=FunctionModel(model))
        >>> rows = [{"word": word, "target": word.upper()} for word in "one two three four".split()]
        >>> search = OPRO(program.parameters(), model=FunctionModel(model))
        >>> search.step(Objective(program, nn.ExactMatch(), rows)).why
        'scores 1.000, the highest so far, and is better on validation (1.000)'
        >>> system.data
        'Repeat. Shout.'
    """

    reads_feedback = False

    @names_told
    def __init__(
        self,
        params: Iterable[Variable | Mapping[str, Any]],
        model: str | Model | None = None,
        *,
        rounds: int = 25,
        per_round: int = 8,
        shown: int = 20,
        examples: int = 3,
        score_on: Split = "train",
        sample: int | None = 64,
        constraints: Iterable[Contract | str] = (),
        max_tokens: int | None = None,
        max_feedback_tokens: int = 8000,
        seed: int = 0,
    ) -> None:
        settings = {
            "constraints": constraints,
            "max_tokens": max_tokens,
            "max_feedback_tokens": max_feedback_tokens,
        }
        super().__init__(params, settings, model, seed)
        check(OPRO.__init__, locals(), at_least(0, "examples"), at_least(1, "rounds", "per_round", "shown", "sample"))
        self.rounds, self.per_round, self.shown, self.examples = rounds, per_round, shown, examples
        self.score_on, self.sample = score_on, sample
        self._round = 0
        self._marks: dict[int, float] = {}
        self._refused: set[int] = set()

    def volume(self, sizes: Sizes) -> Volume:
        """How much it will do; see `Searcher.volume`."""
        most = sizes.decisions(self.rounds * self.per_round)
        rounds = rounded_up(most, self.per_round)
        scored = sizes.train if self.score_on == "train" else sizes.val
        scored = scored if self.sample is None else min(scored, self.sample)
        texts, usual = rounds * self.per_round, rounded_up(round(sizes.usually(most)), self.per_round)
        tried = self.shown * (self.room_to_grow() + 200)
        return Volume(
            decisions=Range(0, most, sizes.usually(most)),
            examples=Range(
                0,
                scored * (1 + texts) + rounds * (sizes.val + sizes.guarded * (1 + self.per_round)),
                scored * (1 + 0.8 * usual * self.per_round) + min(usual, 3) * sizes.val,
            ),
            asked=Range(0, 2 * texts, usual * self.per_round),
            waits=(Range(0, 3 * rounds + 1, usual + 3), Range(), Range(0, 2 * rounds, usual)),
            growth=Range(0, self.room_to_grow(), 100),
            told=Range(0, max(tried, self.most_told()) + self.examples * MOST_OF_TASK, 0.5 * self.shown * 200),
        )

    def _memory(self) -> dict[str, Any]:
        return {"round": self._round, "marks": dict(self._marks), "refused": sorted(self._refused)}

    def _remember(self, memory: Mapping[str, Any]) -> None:
        self._round = int(memory.get("round", 0))
        self._marks = {int(number): float(mark) for number, mark in memory.get("marks", {}).items()}
        self._refused = {int(number) for number in memory.get("refused", ())}

    def _propose(self, objective: Objective) -> Round | Sequence[Outcome]:
        if self._round >= self.rounds:
            return ()
        if not self._marks:
            self._score(objective, [0])
            if self.examples:
                note_unshown(objective, "OPRO", "its model is not shown them")
        self._round += 1
        drafts = self._drafts(objective)
        arms: dict[int, int] = {}
        reasons: dict[int, str] = {}
        for draft in drafts:
            if self.population.number_of(draft.candidate.texts) is None:
                arms[draft.number] = self.population.add(draft.candidate)
            else:
                nothing = draft.candidate.texts == self.population.candidates[draft.candidate.parents[0]].texts
                reasons[draft.number] = (draft.dropped or "nothing was proposed") if nothing else "it was tried before"
        record, before = max(self._marks.values(), default=0.0), self._best
        new, failed = list(arms.values()), dict[int, str]()
        try:
            self._score(objective, new)
        except UNANSWERED as error:  # all of them may break the program; others can still be tried
            failed = dict.fromkeys(new, in_words(error))
        vain = tuple(draft.number for draft in drafts if draft.number in reasons and draft.written)
        return Round(tuple(drafts), before, arms, reasons, vain, failed, record)

    def _decided(self, objective: Objective, run: Round) -> Sequence[Outcome]:
        failed = dict(run.failed)
        (first, refused), better = self._first(objective, list(run.arms.values())), False
        if first is not None:
            try:
                better = self._is_better(objective, first)
            except UNANSWERED as error:
                failed[first] = in_words(error)
        outcomes, paid = [], after_costs(objective)
        for draft in run.drafts:
            arm = run.arms.get(draft.number)
            if arm is None:
                outcomes.append(Outcome(draft, run.reasons[draft.number], vain=draft.number in run.vain))
                continue
            if arm in failed:
                outcomes.append(lost(draft, failed[arm]))
                continue
            if arm not in self._marks:
                outcomes.append(unanswered(draft))
                continue
            why = f"scores {self._marks[arm]:z.3f}{paid}"
            if self._marks[arm] > run.record:
                why += ", the highest so far" if arm == first else ", higher than all before"
            race = self.population.compared(arm, run.before, objective.clusters)
            if arm in refused:
                why = refused[arm]
            elif arm == first and race is not None:
                word = "and is better" if better else "but is no better"
                why += f", {word} on validation ({self.population.mean(arm):z.3f}{paid})"
            outcomes.append(Outcome(draft, why, arm if arm == first and better else None, race))
        return outcomes

    def _drafts(self, objective: Objective) -> list[Draft]:
        """New texts, all asked for at once."""
        allowed = [number for number in self._marks if number not in self._refused]
        best = max(allowed, key=lambda number: (self._marks[number], -number), default=0)
        candidate = self.population.candidates[best]
        jobs: list[Job] = []
        drafts: list[Draft] = []
        for sample in range(self.per_round):
            number = self._next_number()
            rng = random.Random(f"{self.seed}/{number}")
            parameter = number % len(candidate.texts)
            size = len(objective.train)
            positions = tuple(sorted(rng.sample(range(size), min(self.examples, size))))
            tasks = [demo for demo in objective.demos(positions) if demo is not None and not demo.unshown]
            most = min(MOST_OF_TASK, self._desk.room(parameter, ()) // (2 * max(1, len(tasks))))
            demos = tuple(fitted_demo(demo, most) for demo in tasks)
            brief = self._desk.brief(candidate, parameter, step=number, others=self._tried(parameter), demos=demos)
            shown = [text for demo in demos for _, text in demo.inputs]
            proposer = ByScores(self._desk.room(parameter, shown), self.population.limits)
            jobs.append(Job(proposer, brief, sample))
            stays = Candidate(candidate.texts, candidate.origins, (best,))
            drafts.append(Draft(number, "proposal", stays, examples=positions))
        answers = self._desk.ask(jobs)
        return [
            self._desk.filled(draft, draft.number % len(candidate.texts), job.brief, answer)
            for draft, job, answer in zip(drafts, jobs, answers)
        ]

    def _tried(self, parameter: int) -> tuple[tuple[str, float | None], ...]:
        """The best texts of a parameter so far, each with the best score that the program had with it."""
        found: dict[str, float] = {}
        for number, mark in self._marks.items():
            text = self.population.candidates[number].texts[parameter]
            found[text] = max(mark, found.get(text, mark))
        return tuple(sorted(found.items(), key=lambda each: each[1])[-self.shown :])

    def _score(self, objective: Objective, numbers: list[int]) -> None:
        """Give candidates the score that the model is shown: the mean, less what the candidate costs."""
        size = len(objective.train if self.score_on == "train" else objective.val)
        order = list(range(size))
        random.Random(f"{self.seed}/sample").shuffle(order)
        positions = sorted(order if self.sample is None else order[: self.sample])
        if not numbers:
            return
        if self.score_on == "val":
            self.population.score(objective, numbers, positions)
            rows = [[self.population.scores[number][n] for n in positions] for number in numbers]
        else:
            rows = rows_of(objective, [self.population.candidates[n].texts for n in numbers], positions, "train")
        for number, row in zip(numbers, rows):
            paid = worths(objective, self.population.candidates[number].texts, positions, row, self.score_on)
            known = [score for score in paid if score is not None]
            if known:
                self._marks[number] = sum(known) / len(known)

    def _first(self, objective: Objective, numbers: list[int]) -> tuple[int | None, dict[int, str]]:
        """The best of new candidates that score above the parameters' texts, and what guards say of those before it."""
        least = self._marks.get(self._best, float("-inf"))
        above = [number for number in numbers if self._marks.get(number, least) > least]
        above.sort(key=lambda number: (-self._marks[number], self.population.length(number)))
        first, refused = self._leader(objective, above)
        self._refused.update(refused)
        return first, refused

    def _is_better(self, objective: Objective, first: int) -> bool:
        """Whether a candidate is better than the parameters' texts on the validation set, too."""
        self.population.score(objective, [self._best, first], range(len(objective.val)))
        return self.population.lead(first, self._best) > 0
