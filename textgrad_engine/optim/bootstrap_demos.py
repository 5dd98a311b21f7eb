"""`BootstrapDemos`: solved examples in the prompt, chosen by trying random sets (DSPy, arXiv 2310.03714).

It is DSPy's BootstrapFewShotWithRandomSearch: a teacher, which is the program with labelled examples in its prompt, is
run on training examples; where its answer is right, example and answer become a demonstration. Sets of up to so many of
these, filled up with labelled examples, are drawn at random and scored on the validation set, and the best one stays;
so are the labelled examples alone, and the first demonstrations in the order of the data.

Where it departs:

- The teacher is run once over the training set, with one set of labelled examples, on those that it does not show; all
  sets are drawn from what it solved. DSPy runs it anew for each set, until it has solved enough. Once is
  one wait, and tells what fails, too.
- A proposer may show less than a set: a few of each label, or those that are nearest to what the teacher got wrong.
- A demonstration is the input and the answer of the whole program, in one prompt of it; with several prompts, the sets
  go to them in turn, and the scores tell where they help. DSPy takes the inputs and outputs of each of its steps, for
  which it has to know them; here a program is any code, of which only its fields and its answer are seen.
- The demonstrations are lines of the prompt's own text (`proposers.Demonstrations`), so contracts hold for them: that
  of the length, and `NoCopying`, which leaves no set to try.
- What is measured on the validation set selects; the test set stays sealed, and the final choice is the Trainer's, so
  that all searches end by one rule.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from textgrad_engine.autograd import Variable
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.optim.contracts import Contract
from textgrad_engine.optim.demos import Demo, demos_and_queries
from textgrad_engine.optim.proposers import Demonstrations, Proposer
from textgrad_engine.optim.search.drafts import Draft, Job
from textgrad_engine.optim.search.evolving import Outcome, PopulationSearcher, lost
from textgrad_engine.optim.search.objective import Objective
from textgrad_engine.optim.search.population import Candidate
from textgrad_engine.optim.search.volume import Sizes, Span, Volume
from textgrad_engine.optim.settings import at_least

__all__ = ["BootstrapDemos"]


class BootstrapDemos(PopulationSearcher):
    r"""Searches for the examples that a prompt should show.

    The first step tries labelled examples alone, the second the first demonstrations, each further one a random set.
    No model is asked for texts.

    Args:
        params: the parameters, or groups of them with settings of their own.
        sets: so many random sets are tried.
        bootstrapped: at most so many demonstrations that the program solved itself in a set.
        labelled: a set is filled up with labelled examples to so many in all; 0 for none.
        least: the score from which an example counts as solved.
        proposer: what of a set is shown: ``Demonstrations(4, "label")`` shows about as many examples of each label,
            ``Demonstrations(4, "nearest")`` those nearest to training examples that the teacher gets wrong. None shows
            the whole set. With a large `bootstrapped`, the second step chooses from all that was solved.
        constraints: contracts that are checked (`optim.contracts`).
        max_tokens: at most so many tokens in a parameter; examples that do not fit are left out. None stands for
            2,000, or for half as many again as the longest of its group has in the beginning where that is more.
        seed: of the sets.

    Raises:
        ValueError: there is no parameter, or a setting is out of range.
        TypeError: a setting is of a wrong kind.

    Example:
        >>> from textgrad_engine import nn
        >>> from textgrad_engine.testing import FunctionModel
        >>> from textgrad_engine.train import Objective
        >>> def model(request):
        ...     text = request.messages[-1].text
        ...     return text.upper() if "ONE" in request.messages[0].text else text
        >>> system = nn.Parameter("Repeat.", role="system prompt")
        >>> program = nn.ChatCompletion("{word}", system=system, model=FunctionModel(model))
        >>> rows = [{"word": word, "target": word.upper()} for word in "one two three four".split()]
        >>> search = BootstrapDemos(program.parameters(), labelled=3)
        >>> search.step(Objective(program, nn.ExactMatch(), rows[:3], rows)).why
        'the best on validation (1.000)'
        >>> system.data.split("\n")[4:7]
        ['Example 1', 'word: one', 'Right answer: ONE']
    """

    _several = "; sets= says how many sets it tries, one after the other"
    _has_solved = True

    def __init__(
        self,
        params: Iterable[Variable] | Iterable[dict[str, Any]],
        *,
        sets: int = 16,
        bootstrapped: int = 4,
        labelled: int = 16,
        least: float = 1.0,
        proposer: Proposer | None = None,
        constraints: Iterable[Contract | str] = (),
        max_tokens: int | None = None,
        seed: int = 0,
    ) -> None:
        at_least(0, labelled=labelled)
        at_least(1, sets=sets, bootstrapped=bootstrapped)
        # It shows no feedback, so there is no limit for that.
        settings = {"constraints": constraints, "max_tokens": max_tokens}
        super().__init__(params, settings, None, seed)
        self.sets, self.bootstrapped, self.labelled, self.least = sets, bootstrapped, labelled, least
        self.proposer = None if proposer is None else self._proposer(proposer)
        self._solved: dict[int, Demo] | None = None
        self._failed: tuple[str, ...] = ()

    def volume(self, sizes: Sizes) -> Volume:
        """How much it will do; see `Searcher.volume`. No model is asked for texts."""
        most, least = sizes.decisions(self.sets + 2)
        assert most is not None
        assert least is not None
        usual = sizes.usually(most)
        taught = max(0, sizes.train - self.labelled) if least > 1 else 0
        return Volume(
            decisions=Span(least, usual, most),
            examples=Span(
                taught, taught + 0.9 * usual * sizes.val, sizes.train + most * (sizes.val + 2 * sizes.guarded)
            ),
            waits=(Span(least > 1, usual, 2 * most), Span(), Span()),
            growth=Span(0, self.room_to_grow() / 4, self.room_to_grow()),
        )

    def _memory(self) -> dict[str, Any]:
        solved = None if self._solved is None else {position: asdict(demo) for position, demo in self._solved.items()}
        return {"solved": solved, "failed": list(self._failed)}

    def _remember(self, memory: Mapping[str, Any]) -> None:
        solved = memory.get("solved")
        self._solved = None if solved is None else TypeAdapter(dict[int, Demo]).validate_python(solved)
        self._failed = tuple(memory.get("failed", ()))

    def _propose(self, objective: Objective) -> Sequence[Outcome]:
        if self._count >= self.sets + 2:
            return ()
        number = self._next_number()
        place = self._count
        kind = "labels" if place == 1 else "bootstrap"
        chosen = self._chosen(objective, place)
        parameter = (place - 1) % len(self.texts())
        draft = self._shown(kind, number, parameter, list(chosen.values()), tuple(chosen))
        seed = self.population.candidates[0]
        if draft.candidate.texts == seed.texts:
            return (Outcome(draft, draft.dropped or "there is nothing to show"),)
        if self.population.number_of(draft.candidate.texts) is not None:
            return (Outcome(draft, "it was tried before"),)
        arm = self.population.add(draft.candidate)
        try:
            self.population.score(objective, [arm], range(len(objective.val)))
        except UNANSWERED as error:
            return (lost(draft, error),)
        race = self.population.compared(arm, self._best)
        mean = self.population.mean(arm)
        if self.population.lead(arm, self._best) > 0:
            return (Outcome(draft, f"the best on validation ({mean:.3f})", arm, race),)
        return (Outcome(draft, f"not the best on validation ({mean:.3f})", None, race),)

    def _chosen(self, objective: Objective, place: int) -> dict[int, Demo]:
        """The demonstrations of a set, by the position of their example."""
        labelled = self._labelled(objective)
        # The teacher also tells what fails, which a proposer may want to know from the first set on.
        solved = self._bootstrapped(objective, labelled) if place > 1 or self.proposer is not None else {}
        if place == 1:
            return dict(list(labelled.items())[: self.labelled])
        order = list(labelled | solved)
        size = self.bootstrapped
        if place > 2:
            rng = random.Random(f"{self.seed}/{place}")
            rng.shuffle(order)
            size = rng.randint(1, self.bootstrapped)
        own = [position for position in order if position in solved][:size]
        filled = [position for position in order if position not in own and position in labelled]
        chosen = {position: solved[position] for position in own}
        return chosen | {position: labelled[position] for position in filled[: max(0, self.labelled - len(own))]}

    def _labelled(self, objective: Objective) -> dict[int, Demo]:
        """The training examples that have a right answer, with it."""
        found = objective.demos(range(len(objective.train)))
        return {position: demo for position, demo in enumerate(found) if demo is not None}

    def _bootstrapped(self, objective: Objective, labelled: dict[int, Demo]) -> dict[int, Demo]:
        """The training examples that the teacher solves, with its answers; it is run once."""
        if self._solved is None:
            shown = dict(list(labelled.items())[: self.labelled])
            teacher = self._shown("teacher", self._begun, 0, list(shown.values()), ()).candidate.texts
            if teacher == self.population.candidates[0].texts:  # nothing can be shown, so nothing need be left out
                shown = {}
            positions = [n for n in range(len(objective.train)) if n not in shown]
            scores = objective.scores(teacher, positions, "train")
            found = dict(zip(positions, scores))
            told = demos_and_queries(objective, teacher, found, self.least)
            right = [n for n, score in found.items() if score is not None and score >= self.least]
            demos = zip(right, objective.demos(right, teacher))
            self._solved = {position: demo for position, demo in demos if demo is not None}
            self._failed = told["queries"]
        return self._solved

    def _shown(self, kind: str, number: int, parameter: int, demos: list[Demo], positions: tuple[int, ...]) -> Draft:
        """The seed texts with demonstrations in one of them."""
        seed = self.population.candidates[0]
        draft = Draft(number, kind, Candidate(seed.texts, seed.origins, (0,)), examples=positions)
        if not demos:
            return draft
        proposer = None if kind == "teacher" else self.proposer
        brief = self._desk.brief(seed, parameter, step=number, demos=tuple(demos), queries=self._failed)
        (answer,) = self._desk.ask([Job(proposer or Demonstrations(k=len(demos)), brief)])
        return self._desk.filled(draft, parameter, brief, answer)
