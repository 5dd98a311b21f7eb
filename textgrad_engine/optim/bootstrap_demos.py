"""`BootstrapDemos`: solved examples in the prompt, chosen by trying random sets (DSPy, arXiv 2310.03714).

It is DSPy's BootstrapFewShotWithRandomSearch: a teacher, which is the program with labelled examples in its prompt, is
run on training examples; where its answer is right, what each prompt's call was given and what it answered become a
demonstration for that prompt. Sets of up to so many of these, filled up with labelled examples, are drawn at random and
scored on the validation set, and the best one stays; so are the labelled examples alone, and the first demonstrations
in the order of the data. NOTE [Whose demonstration] in ``demo_runs.py`` says which call of a run is shown, and which
prompt the data's answers: of a program of several steps that of the last one, where it is given fields of the example.

Where it departs:

- The teacher is run once over the training set, with one set of labelled examples, on those that it does not show; all
  sets are drawn from what it solved. DSPy runs it anew for each set, until it has solved enough. Once is
  one wait, and tells what fails, too.
- The teacher shows the first labelled examples of the data, and so do the texts with labelled examples alone; DSPy
  draws them.
- Where the teacher gets no answers, as its examples are more than a context holds, sets are of labelled examples alone.
- A proposer may show less than a set: a few of each label, or those that are nearest to what the teacher got wrong.
- DSPy has to know the steps of a program. Here a program is any code, and what it asks is seen while it runs
  (`train.asked`): nothing is run or paid for to find that out. The runs of the seed texts on the validation set, which
  every search begins with, tell which prompts are used together.
- All steps of a program show a set at once, as in DSPy. Prompts that are used by the same call, such as its system
  prompt and its template, show sets in turn, as one of them is enough; the scores tell where it helps.
- Labelled examples are for the last step, and of several specialists for the one that the teacher asks about them.
  DSPy shows them to each, without what they lack.
- Of a call with tools the last answer is shown, not the turns before it.
- The demonstrations are lines of the prompt's own text (`proposers.Demonstrations`), so contracts hold for them: that
  of the length, and `NoCopying`, which leaves no set to try but of fields of a word or two.
- Examples that are longer than a prompt may be are in no set, unless all are.
- What is measured on the validation set selects; the test set stays sealed, and the final choice is the Trainer's, so
  that all searches end by one rule.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.value import label_of
from textgrad_engine.checks import at_least, check
from textgrad_engine.errors import UNANSWERED
from textgrad_engine.keywords import names_told
from textgrad_engine.optim.contracts import Contract
from textgrad_engine.optim.demo_runs import Run, Steps
from textgrad_engine.optim.demos import Demo, note_unshown
from textgrad_engine.optim.proposers import Demonstrations, Proposer
from textgrad_engine.optim.proposers.demonstrations import is_too_long
from textgrad_engine.optim.search.drafts import Draft, Job
from textgrad_engine.optim.search.evolving import Outcome, PopulationSearcher, in_words, lost
from textgrad_engine.optim.search.objective import Objective, after_costs
from textgrad_engine.optim.search.population import Candidate
from textgrad_engine.optim.search.searcher import Decision
from textgrad_engine.optim.search.volume import Range, Sizes, Volume

_log = logging.getLogger("textgrad_engine.optim.bootstrap_demos")


class BootstrapDemos(PopulationSearcher):
    r"""Searches for the examples that a prompt should show.

    The first step tries labelled examples alone, the second the first demonstrations, and each later one a random set.
    No model is asked for texts. It is DSPy's random search over bootstrapped demonstrations (arXiv 2310.03714);
    ``help("textgrad_engine.optim.bootstrap_demos")`` says where it departs.

    Args:
        params: the parameters, or groups of them with their own settings.
        sets: how many random sets are tried.
        bootstrapped: the most demonstrations in a set, for each prompt: examples that the program solved itself.
        labelled: a set is filled up to so many examples with labelled ones; 0 for none.
        least: the score from which an example counts as solved. None stands for the best possible score. If the loss
            names no scale, that is 1 if all scores are between 0 and 1, else the best score seen.
        proposer: which examples of a set are shown: ``Demonstrations(4, "label")`` shows about as many examples of each
            label, ``Demonstrations(4, "nearest")`` those nearest to training examples that the teacher gets wrong. None
            shows the whole set. With a large `bootstrapped`, the second step chooses from all that was solved.
        constraints: contracts that are checked (`optim.contracts`).
        max_tokens: the most tokens in a parameter. Examples that do not fit are left out; those that are longer by
            themselves are in no set. None stands for 2,000, or for 1.5 times the longest text of its group at the
            start, if that is more.
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

    reads_feedback = False

    @names_told
    def __init__(
        self,
        params: Iterable[Variable | Mapping[str, Any]],
        *,
        sets: int = 16,
        bootstrapped: int = 4,
        labelled: int = 16,
        least: float | None = None,
        proposer: Proposer | None = None,
        constraints: Iterable[Contract | str] = (),
        max_tokens: int | None = None,
        seed: int = 0,
    ) -> None:
        # It shows no feedback, so there is no limit for that.
        settings = {"constraints": constraints, "max_tokens": max_tokens}
        super().__init__(params, settings, None, seed)
        self.sets, self.bootstrapped, self.labelled, self.least = sets, bootstrapped, labelled, least
        self.proposer = None if proposer is None else self._proposer(proposer)
        check(BootstrapDemos.__init__, locals(), at_least(0, "labelled"), at_least(1, "sets", "bootstrapped"))
        self._steps: Steps | None = None
        self._runs: dict[int, Run] | None = None
        self._right: frozenset[int] = frozenset()

    @property
    def reads_runs(self) -> bool:
        """Always: demonstrations are made of these."""
        return True

    def volume(self, sizes: Sizes) -> Volume:
        """How much it will do; see `Searcher.volume`. No model is asked for texts."""
        most = sizes.decisions(self.sets + 2)
        usual = sizes.usually(most)
        taught = max(0, sizes.train - self.labelled) if most > 1 else 0
        return Volume(
            decisions=Range(0, most, usual),
            examples=Range(0, sizes.train + most * (sizes.val + 2 * sizes.guarded), taught + 0.9 * usual * sizes.val),
            waits=(Range(0, 2 * most, usual), Range(), Range()),
            growth=Range(0, self.room_to_grow(), self.room_to_grow() / 4),
        )

    def _memory(self) -> dict[str, Any]:
        return {
            "steps": None if self._steps is None else asdict(self._steps),
            "runs": None if self._runs is None else {position: asdict(run) for position, run in self._runs.items()},
            "right": sorted(self._right),
        }

    def _remember(self, memory: Mapping[str, Any]) -> None:
        steps, runs = memory.get("steps"), memory.get("runs")
        self._steps = None if steps is None else TypeAdapter(Steps).validate_python(steps)
        self._runs = None if runs is None else TypeAdapter(dict[int, Run]).validate_python(runs)
        self._right = frozenset(memory.get("right", ()))

    def decide(self, objective: Objective) -> Decision | None:
        """What became of the next texts with demonstrations; see `Searcher.decide`."""
        if self._steps is None:  # these runs give the seed texts their scores, too
            texts = self.population.candidates[0].texts
            self._steps = Steps.of(objective.runs(texts, range(len(objective.val)), "val"), len(texts))
            note_unshown(objective, "BootstrapDemos", "such an example is shown to no prompt that is given these")
            if self._steps.of_tools and len(self._steps.of_tools) == len(texts):
                _log.warning(
                    "all texts that are trained describe tools, and no examples are shown there, so there is nothing "
                    "to do; BootstrapDemos shows them in prompts, as in nn.ChatCompletion(system=nn.Parameter(...))"
                )
            if unseen := [label_of(self.variables()[text]) for text in self._steps.unseen]:
                _log.warning(
                    "no call on a validation example is seen to use %s, so there is nothing to show there, unless the "
                    "runs of training examples have such calls. A prompt is seen where it is given as it is, as in "
                    "nn.ChatCompletion(system=prompt), or put together by ops.join and the like; a text that Python "
                    "makes of its .data is not it. Nor is it seen where it is asked inside of a tool",
                    " or ".join(unseen),
                )
        return super().decide(objective)

    def _propose(self, objective: Objective) -> Sequence[Outcome]:
        if self._count >= self.sets + 2:
            return ()
        number = self._next_number()
        place = self._count
        kind = "labels" if place == 1 else "bootstrap"
        draft = self._shown(kind, number, self._chosen(objective, place))
        seed = self.population.candidates[0]
        if draft.candidate.texts == seed.texts:
            return (Outcome(draft, draft.dropped or f"there is nothing to show: {self._lacking(objective, place)}"),)
        if self.population.number_of(draft.candidate.texts) is not None:
            return (Outcome(draft, "it was tried before"),)
        arm = self.population.add(draft.candidate)
        try:
            self.population.score(objective, [arm], range(len(objective.val)))
        except UNANSWERED as error:
            return (lost(draft, in_words(error)),)
        race = self.population.compared(arm, self._best, objective.clusters)
        mean = f"{self.population.mean(arm):z.3f}{after_costs(objective)}"
        if self.population.lead(arm, self._best) > 0:
            return (Outcome(draft, f"the best on validation ({mean})", arm, race),)
        return (Outcome(draft, f"not the best on validation ({mean})", None, race),)

    def _lacking(self, objective: Objective, place: int) -> str:
        """Why a set is empty, in words."""
        if place > 1:
            most = "had the best score" if self.least is None else f"scored {self.least:g} or more"
            return f"no example that {most} has a call to show" if self._right else f"no training example {most}"
        if self.labelled == 0:
            return "labelled is 0"
        if all(demo is None for demo in objective.demos(range(len(objective.train)))):
            return "the training examples have no target that is a whole answer"
        if self._program.branches and not self._runs:
            return "no run of a training example tells which of the prompts it gets to"
        return "no prompt's call is given fields of the example and answers with the target itself (no field of JSON)"

    def _chosen(self, objective: Objective, place: int) -> dict[int, dict[int, Demo]]:
        """The demonstrations of a set: for each prompt that shows it those of it, by the position of their example."""
        # The teacher also tells what fails, which a proposer may want to know from the first set on, and which prompts
        # behind a branch an example gets to.
        if place > 1 or self.proposer is not None or self._program.branches:
            self._teach(objective)
        if place == 1:
            return self._labels(objective)
        rng = random.Random(f"{self.seed}/{place}")
        shown = [texts[(place - 1) % len(texts)] for texts in self._program.together]
        demos = {text: (self._labelled(objective, text), self._bootstrapped(text)) for text in shown}
        kinds = zip(*demos.values())  # labelled examples, then what was solved, of all prompts
        order = list(dict.fromkeys(position for kind in kinds for each in kind for position in each))
        size = self.bootstrapped
        if place > 2:
            rng.shuffle(order)
            size = rng.randint(1, self.bootstrapped)
        return {text: self._filled_up(order, size, *both) for text, both in demos.items()}

    def _filled_up(
        self, order: Sequence[int], size: int, labelled: dict[int, Demo], solved: dict[int, Demo]
    ) -> dict[int, Demo]:
        """Of what one prompt can show the first in this order."""
        own = [position for position in order if position in solved][:size]
        filled = [position for position in order if position not in own and position in labelled]
        chosen = {position: solved[position] for position in own}
        return chosen | {position: labelled[position] for position in filled[: max(0, self.labelled - len(own))]}

    def _labels(self, objective: Objective) -> dict[int, dict[int, Demo]]:
        """The first labelled examples, for each prompt that may show them; of those of one call the first."""
        found = {texts[0]: self._labelled(objective, texts[0]) for texts in self._program.together}
        return {text: dict(list(demos.items())[: self.labelled]) for text, demos in found.items()}

    def _labelled(self, objective: Objective, text: int) -> dict[int, Demo]:
        """The training examples that have a right answer, with it, as a prompt may show them."""
        found = objective.demos(range(len(objective.train)))
        runs = self._runs or {}
        shown = {n: self._program.labelled(demo, text, runs.get(n)) for n, demo in enumerate(found) if demo is not None}
        return self._short({position: demo for position, demo in shown.items() if demo is not None}, text)

    def _bootstrapped(self, text: int) -> dict[int, Demo]:
        """What a prompt's calls were given and answered in the runs of the teacher that were right."""
        found = {n: run.of_text(text) for n, run in (self._runs or {}).items() if n in self._right}
        return self._short({position: demo for position, demo in found.items() if demo is not None}, text)

    def _short(self, demos: dict[int, Demo], text: int) -> dict[int, Demo]:
        """Those that a prompt may be long enough for; all where there are none, which the proposer tells of."""
        contracts = self._desk.contracts(text)
        return {position: demo for position, demo in demos.items() if not is_too_long(demo, contracts)} or demos

    def _failed(self, text: int) -> tuple[str, ...]:
        """What a prompt's calls were given in the runs of the teacher that were not right."""
        found = [run.of_text(text) for n, run in (self._runs or {}).items() if n not in self._right]
        return tuple([" ".join(given for _, given in demo.inputs) for demo in found if demo is not None])

    def _teach(self, objective: Objective) -> None:
        """Run the teacher over the training examples that it does not show, once."""
        if self._runs is not None:
            return
        labels = self._labels(objective)
        teacher = self._shown("teacher", self._begun, labels).candidate.texts
        if teacher == self.population.candidates[0].texts:  # nothing can be shown, so nothing need be left out
            labels = {}
        shown = {position for demos in labels.values() for position in demos}
        positions = [n for n in range(len(objective.train)) if n not in shown]
        try:
            scores = dict(zip(positions, objective.scores(teacher, positions, "train")))
            runs = zip(positions, objective.runs(teacher, positions))
        except UNANSWERED as error:  # such as one whose examples are longer than the context; fewer may still fit
            _log.warning(
                "the program that shows labelled examples solved nothing, so that only these are shown: %s: %s",
                *(type(error).__name__, str(error).partition("\n")[0]),
            )
            self._runs = {}
            return
        self._runs = {n: run for n, run in runs if run is not None and scores[n] is not None}
        least = self.population.top(scores.values()) if self.least is None else self.least
        self._right = frozenset([n for n, score in scores.items() if score is not None and score >= least])

    @property
    def _program(self) -> Steps:
        assert self._steps is not None
        return self._steps

    def _shown(self, kind: str, number: int, sets: Mapping[int, Mapping[int, Demo]]) -> Draft:
        """The seed texts with demonstrations in some of them: for each its own, by the position of their example."""
        seed = self.population.candidates[0]
        positions = tuple(dict.fromkeys(position for demos in sets.values() for position in demos))
        draft = Draft(number, kind, Candidate(seed.texts, seed.origins, (0,)), examples=positions)
        jobs = []
        for text, demos in sets.items():
            if demos:
                proposer = None if kind == "teacher" else self.proposer
                shown, failed = tuple(demos.values()), self._failed(text)
                brief = self._desk.brief(seed, text, step=number, demos=shown, queries=failed)
                jobs.append((text, Job(proposer or Demonstrations(k=len(demos)), brief)))
        for (text, job), answer in zip(jobs, self._desk.ask([job for _, job in jobs])):
            draft = self._desk.filled(draft, text, job.brief, answer)
        return draft
