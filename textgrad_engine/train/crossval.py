"""`cross_validate`: does optimizing help on a task at all? Every example tests, none a prompt that it was used for.

NOTE [What cross-validation estimates]
    Of 50 examples a test set has some 20, and 20 show a difference of 0.4 and hardly a smaller one. Here every example
    is tested once, with a prompt that was trained without it. So all 50 count, at the price of as many runs as there
    are folds. What is estimated is no single prompt's gain. It is the mean gain of the folds' prompts, so what the
    optimizer makes of about so many examples of this task. The prompt that is kept is trained on all of them
    afterwards, and tested on nothing.

    The interval and the test are those of `compare`, for the pairs of all folds together. For the mean gain of the
    folds' own prompts that is right where one training example more or less changes little (Bayle, Bayle, Janson and
    Mackey, arXiv:2007.12671). For what the same procedure would gain with other examples of the task it is somewhat
    too narrow: folds share most of their training examples, so their gains go up and down together, and no estimate of
    that variance from one set of examples is unbiased (Bengio and Grandvalet, JMLR 5, 2004; Bates, Hastie and
    Tibshirani, arXiv:2104.00673). docs/search.md has how often it held in simulated runs. The correction of Nadeau and
    Bengio, Machine Learning 52 (2003), from the means of five folds, held no oftener and is twice as wide.
"""

from __future__ import annotations

import contextlib
import copy
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from textgrad_engine.autograd import Variable
from textgrad_engine.data import Subset, ids_of
from textgrad_engine.llm.response import Usage
from textgrad_engine.nn import Module
from textgrad_engine.optim import Optimizer
from textgrad_engine.train.calling import check_examples
from textgrad_engine.train.evaluator import Comparison, Evaluation, clusters_of, compare
from textgrad_engine.train.events import Status, folds_folder
from textgrad_engine.train.interrupt import interruptible
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.shares import fit_parts
from textgrad_engine.train.splits import clusters_of_equals, equals
from textgrad_engine.train.trainer import Trainer

__all__ = ["AgainstControl", "CrossValidation", "Part", "across_validate", "cross_validate", "parts_of", "pooled"]

Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Part:
    """What one of the runs of a cross-validation works with.

    Attributes:
        name: ``"fold-1"`` and so on; ``"final"`` for the run on all examples.
        train: the training examples.
        val: the validation examples; the training examples themselves where none are set aside.
        test: the examples of the fold; None for the final run.
    """

    name: str
    train: Rows
    val: Rows
    test: Rows | None


@dataclass(frozen=True)
class AgainstControl:
    """What the folds' runs found with feedback, beside what a control found without it (`Trainer(controls=True)`).

    Attributes:
        name: what the control did, in words.
        test: on each example the control's texts of its own fold.
        comparison: the folds' best texts against these, on the examples that both were tested on.
        folds: in how many folds both were.
        same: in how many of these both came to the same texts.
        usage: what the control's searches used.
    """

    name: str
    test: Evaluation
    comparison: Comparison
    folds: int
    same: int
    usage: Usage


@dataclass(frozen=True)
class CrossValidation:
    """What `cross_validate` found: whether optimizing helps on a task, and a prompt trained on all of its examples.

    Attributes:
        folds: the result of each fold's run, as far as they came.
        final: the run on all examples, whose texts are to be used; None where it was not come to. No example tests it.
        seed: the seed texts on the examples of all folds, in the order of the examples.
        best: on each example the texts of its own fold's run, which never saw it.
        comparison: `best` against `seed`; None when no fold was tested. It is about the mean of the folds' texts, not
            about the final ones.
        examples: how many there are; those that `seed` lacks were not tested.
        seconds: how long it took.
        controls: the folds' texts against those of each control, as far as folds were tested with both.
    """

    folds: tuple[TrainResult, ...]
    final: TrainResult | None
    seed: Evaluation | None
    best: Evaluation | None
    comparison: Comparison | None
    examples: int
    seconds: float
    controls: tuple[AgainstControl, ...] = ()

    @property
    def runs(self) -> tuple[TrainResult, ...]:
        """Every run, that on all examples last."""
        return self.folds if self.final is None else (*self.folds, self.final)

    @property
    def status(self) -> Status:
        """How it ended: interrupted if a run was, else by its budget if one was."""
        ends: set[Status] = {each.status for each in self.runs}
        return "interrupted" if "interrupted" in ends else "budget" if "budget" in ends else "finished"

    @property
    def stopped(self) -> bool:
        """Whether one of its runs ended those behind it, too: by Ctrl-C, or as there was no room for a first look."""
        return any(each.status == "interrupted" or each.shortage for each in self.runs)

    @property
    def total(self) -> Usage:
        """What all runs used."""
        return sum((each.total for each in self.runs), Usage())

    @property
    def gained(self) -> int:
        """In how many folds that were tested the texts did better than the seed texts."""
        pairs = [(each.seed_test, each.best_test) for each in self.folds]
        return sum(a is not None and b is not None and b.mean > a.mean for a, b in pairs)

    @property
    def use(self) -> Literal["final", "seed"] | None:
        """Which texts there is a reason to use; None where the examples do not tell, or there is no result yet.

        The final ones, where optimizing was shown to help on the examples that it had not seen; the seed texts, where
        it did not help there, or the final run found nothing that does better. Of the final texts themselves nothing is
        measured but the score on their own examples.
        """
        if self.final is None or self.comparison is None:
            return None
        if self.comparison.difference <= 0 or (self.final.best == self.final.seed and self.final.status == "finished"):
            return "seed"
        shown = self.comparison.verdict == "better" and self.final.best != self.final.seed
        return "final" if shown else None

    def __str__(self) -> str:
        parts = [f"{self.status} after {len(self.folds)} fold{'' if len(self.folds) == 1 else 's'}"]
        if self.seed is not None and self.best is not None and self.comparison is not None:
            parts.append(f"tested {self.seed.mean:.3f} -> {self.best.mean:.3f}")
            parts.append(f"{self.comparison} (of the folds' prompts)")
            if (untested := self.examples - len(self.seed)) > 0:
                parts.append(f"{untested} of {self.examples} examples were not tested")
        if self.final is not None:
            parts.append("the final prompt is trained on all examples, and itself tested on none")
        if self.final is not None and self.comparison is not None:
            why = "these examples do not tell" if self.final.best != self.final.seed else "its run found nothing so far"
            told = {"seed": "the seed prompt", "final": "the final prompt", None: f"open, as {why}"}
            parts.append(f"to use: {told[self.use]}")
        return "; ".join(parts)

    def __repr__(self) -> str:  # short, as it is what a notebook shows of a cell's last line
        return f"CrossValidation({self})"


def cross_validate(
    start: Callable[[], tuple[Module, Optimizer]],
    loss: Callable[..., Variable],
    examples: Rows,
    *,
    folds: int = 5,
    val: float = 0.0,
    trainer: Trainer | None = None,
    final: bool = True,
) -> CrossValidation:
    """Find out whether optimizing helps on a task, with all of its examples, and train a prompt on all of them.

    For somebody who has too few examples for a test set. Each fold of them is tested once, with what a run made of the
    others; the verdict is of the pairs of all folds together. See the note in this module for what that estimates.
    It costs as many runs as there are folds, and one more. A budget around it is shared out: each run may use an equal
    part of what is left. With ``Trainer(run_dir=...)`` each run has its folder in there, ``fold-1`` to ``final``, and
    `store.read_folds`, `show`, `report` and `diff` read the whole; with ``resume=True`` what was paid for is not paid
    for again, and no run is given less of a budget than before.

    Args:
        start: makes a new program, with the same seed texts each time, and an optimizer of its parameters; called for
            each run.
        loss: as for `Trainer.fit`.
        examples: all of them. Those of one cluster (`Trainer(clusters=)`), and those with the same inputs, are in one
            fold.
        folds: how many parts each of which is tested once; the examples are dealt by the trainer's seed.
        val: the share of the examples of a run that validates and gives no feedback. With 0 the training examples
            validate, too: of few examples that finds more (docs/guide.md), and what is tested is apart in any case.
        trainer: its settings are those of every run; None for the usual ones.
        final: train on all examples in the end.

    Raises:
        TypeError: `start` does not give a program and its optimizer.
        ValueError: there are fewer than two folds, fewer examples that stand for themselves than folds, or fewer than
            two clusters for each; `val` is no share below 1 or leaves nothing; the trainer has guards, which name
            validation examples, or the folder of a single run; or `start` gives a program again that was trained.
        RunError: there is something in the run folder, and `resume` was not said; it is of other examples; or another
            process is at work on it.
        Exception: what `Trainer.fit` raises.

    Example:
        >>> from textgrad_engine import optim, use_models
        >>> from textgrad_engine.testing import simulated_task
        >>> task = simulated_task(rules=4, seed=1, train=50)
        >>> def start():
        ...     program = task.program()
        ...     return program, optim.TGD(program.parameters())
        >>> with use_models(forward=task.model):
        ...     found = cross_validate(start, task.loss, task.train, folds=5, trainer=Trainer(max_epochs=3))
        >>> found.comparison.verdict, found.comparison.n, found.final.compared_on
        ('better', 50, 'val')
        >>> prompt = found.final.best["system"] if found.use == "final" else task.seed_prompt
    """
    trainer = Trainer() if trainer is None else trainer
    if trainer.guards is not None:
        raise ValueError(
            "the trainer has guards, which are about validation examples, and every fold has others; leave them out"
        )
    if any(hasattr(each, "earlier") for each in trainer.callbacks):
        raise ValueError(
            "a callback of the trainer is the folder of one run, and there are several; leave it out, and name a "
            "folder for all of them by Trainer(run_dir=...)"
        )
    check_examples(examples, "examples", "cross_validate")
    first, _ = _started(start)
    parts = parts_of(first, examples, folds=folds, val=val, seed=trainer.seed, clusters=trainer.clusters)

    def fit(part: Part) -> TrainResult:
        own = copy.copy(trainer)
        own.run_dir = None if trainer.run_dir is None else trainer.run_dir / part.name
        program, optimizer = _started(start)
        _check_anew(first, program)
        return own.fit(program, loss, optimizer, part.train, part.val, part.test)

    names = clusters_of(examples, trainer.clusters) if trainer.clusters else clusters_of_equals(first, examples)
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = None
        if trainer.run_dir is not None:
            place, resume = trainer.run_dir, trainer.resume
            folder = folds_folder(place, examples, folds=folds, clusters=names, final=final, resume=resume)
            stack.enter_context(folder)
        runs = fit_parts(parts if final else parts[:-1], fit, folder)
    return pooled(runs, ids_of(examples), names, time.monotonic() - began)


async def across_validate(*args: Any, **kwargs: Any) -> CrossValidation:
    """`cross_validate` for code that has an event loop of its own; see `Trainer.afit`."""
    return await interruptible(lambda: cross_validate(*args, **kwargs))


def parts_of(
    program: Callable[..., Any],
    examples: Rows,
    *,
    folds: int,
    val: float = 0.0,
    seed: int = 0,
    clusters: str | None = None,
) -> list[Part]:
    """What each run of a cross-validation works with, the run on all examples last.

    Args:
        program: whose inputs tell which examples are the same.
        examples: all of them.
        folds: how many.
        val: the share of a run's examples that only validates; 0 for none.
        seed: of the order in which the examples are dealt.
        clusters: the field that says which examples belong together.

    Raises:
        ValueError: as `cross_validate` has it.
        DataError: an example does not say what cluster it belongs to.

    Example:
        >>> parts = parts_of(lambda q: q, [{"q": str(n)} for n in range(6)], folds=3)
        >>> [(part.name, len(part.train), None if part.test is None else len(part.test)) for part in parts]
        [('fold-1', 4, 2), ('fold-2', 4, 2), ('fold-3', 4, 2), ('final', 6, None)]
    """
    if folds < 2:
        raise ValueError(f"folds must be at least 2, as each is tested with what was made of the others; got {folds}")
    if not 0 <= val < 1:
        raise ValueError(f"val is the share of examples that only validates, from 0 to less than 1, got {val}")
    together = clusters_of(examples, clusters) if clusters is not None else equals(program, examples)
    members: dict[str, list[int]] = {}
    for position, name in enumerate(together):
        members.setdefault(name, []).append(position)
    units = list(members.values())
    random.Random(seed).shuffle(units)
    what = "examples with inputs of their own" if clusters is None else f"clusters by {clusters!r}"
    if len(units) < folds:
        raise ValueError(f"{len(units)} {what} cannot be dealt to {folds} folds; take fewer folds, or more examples")
    if clusters is not None and len(units) < 2 * folds:
        raise ValueError(
            f"{len(units)} {what} cannot be dealt to {folds} folds: a fold of one cluster has no interval, so each "
            "takes two; take fewer folds, or examples of more clusters"
        )
    parts, fewest = [], 1 if clusters is None else 2  # clusters, of which one alone has no interval
    for number in range(folds):
        rest = [unit for place, unit in enumerate(units) if place % folds != number]
        parts.append(_part(f"fold-{number + 1}", examples, rest, val, seed, units[number::folds], what, fewest))
    return [*parts, _part("final", examples, units, val, seed, None, what, fewest)]


def _started(start: Callable[[], tuple[Module, Optimizer]]) -> tuple[Module, Optimizer]:
    """What `start` gives."""
    if isinstance(start, Module) or not callable(start):
        raise TypeError(
            "cross_validate: start should be a function that makes a new program and its optimizer, as it is called "
            f"for each run; got {type(start).__name__}"
        )
    made = start()
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], Module)):
        raise TypeError(f"cross_validate: start should return (program, optimizer), got {type(made).__name__}")
    return made


def _check_anew(first: Module, program: Module) -> None:
    """Check that a run begins where the first one did: else it is tested on examples that its seed texts have seen."""
    before, now = (
        {name: each for name, each in made.named_parameters() if each.requires_grad} for made in (first, program)
    )
    if shared := [name for name, each in now.items() if any(each is other for other in before.values())]:
        raise ValueError(
            f"cross_validate: start returns the same {shared[0]!r} each time, which one run would train after the "
            "other; have it make the program and its Parameters anew"
        )
    if {name: each.data for name, each in before.items()} != {name: each.data for name, each in now.items()}:
        raise ValueError("cross_validate: start returns other seed texts than before; have it begin with the same ones")


def pooled(
    runs: Sequence[tuple[Part, TrainResult]], ids: Sequence[str], clusters: Sequence[str], seconds: float
) -> CrossValidation:
    """Put the results of the runs together.

    Args:
        runs: by `shares.fit_parts`.
        ids: of all examples.
        clusters: of each; empty when each stands for itself.
        seconds: how long it took.
    """
    folds = tuple(result for part, result in runs if part.test is not None)
    final = next((result for part, result in runs if part.test is None), None)
    tested = [(a, b) for each in folds if (a := each.seed_test) is not None and (b := each.best_test) is not None]
    if not tested:
        return CrossValidation(folds, final, None, None, None, len(ids), seconds)
    place = {name: position for position, name in enumerate(ids)}
    before, after = (_joined([pair[side] for pair in tested], place, clusters) for side in (0, 1))
    shared = [None not in pair for pair in zip(before.scores, after.scores)]
    comparison = compare(before, after) if any(shared) else None
    controls = tuple(_against_controls(folds, place, clusters))
    return CrossValidation(folds, final, before, after, comparison, len(ids), seconds, controls)


def _against_controls(
    folds: Sequence[TrainResult], place: dict[str, int], clusters: Sequence[str]
) -> Iterator[AgainstControl]:
    """What the folds' texts do beside those of each control."""
    every = [(fold, each) for fold in folds if fold.controls is not None for each in fold.controls.each]
    for name in dict.fromkeys(each.name for _, each in every):
        both = [
            (control, control.test, fold.best_test, fold.best == control.best)
            for fold, control in every
            if control.name == name and control.test is not None and fold.best_test is not None
        ]
        if not both:
            continue
        control = _joined([each[1] for each in both], place, clusters)
        best = _joined([each[2] for each in both], place, clusters)
        if all(None in pair for pair in zip(control.scores, best.scores)):
            continue
        used = sum((each[0].usage for each in both), Usage())
        same = sum(each[3] for each in both)
        yield AgainstControl(name, control, compare(control, best), len(both), same, used)


def _part(
    name: str,
    examples: Rows,
    units: list[list[int]],
    val: float,
    seed: int,
    fold: list[list[int]] | None,
    what: str,
    fewest: int,
) -> Part:
    """The part of a fold, of these units the share `val` validates, and the fewest at least."""
    held = 0 if val == 0 else max(fewest, round(val * len(units)))
    if held >= len(units):
        raise ValueError(f"val={val} of {len(units)} {what} leaves none to train on; take a smaller share, or val=0")
    drawn = random.Random(f"{seed} {name}").sample(units, len(units))

    def some(of: list[list[int]]) -> Rows:
        return Subset(examples, sorted(position for unit in of for position in unit))

    train = some(drawn[held:])
    return Part(name, train, some(drawn[:held]) if held else train, None if fold is None else some(fold))


def _joined(each: Sequence[Evaluation], place: dict[str, int], clusters: Sequence[str]) -> Evaluation:
    """The evaluations of all folds as one, in the order of the examples."""
    ids = [name for one in each for name in one.ids]
    order = sorted(range(len(ids)), key=lambda position: place[ids[position]])

    def joined(values: Callable[[Evaluation], Sequence[Any]]) -> tuple[Any, ...]:
        found = [value for one in each for value in values(one)]
        return tuple(found[position] for position in order) if found else ()

    made = Evaluation(
        joined(lambda one: one.ids),
        joined(lambda one: one.scores),
        joined(lambda one: one.predictions),
        {name: error for one in each for name, error in one.failures.items()},
        scale=each[0].scale,
        latency=joined(lambda one: one.latency),
    )
    return replace(made, clusters=tuple(clusters[place[name]] for name in made.ids)) if clusters else made
