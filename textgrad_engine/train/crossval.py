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
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.checks import check
from textgrad_engine.data import Examples, ids_of
from textgrad_engine.dispatch import waits
from textgrad_engine.keywords import names_told
from textgrad_engine.nn import Module
from textgrad_engine.optim import Optimizer
from textgrad_engine.train.evaluator import clusters_of
from textgrad_engine.train.fields import check_examples
from textgrad_engine.train.fold_parts import Part
from textgrad_engine.train.folders import folds_folder
from textgrad_engine.train.folds import parts_of
from textgrad_engine.train.hearing import require_notes
from textgrad_engine.train.interrupt import interruptible
from textgrad_engine.train.pooled import CrossValidation, pooled
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.shares import fit_parts
from textgrad_engine.train.splits import clusters_of_equals
from textgrad_engine.train.trainer import Trainer


@waits("await tg.across_validate(...)", always="Its runs wait for their answers")
@names_told
def cross_validate(
    start: Callable[[], tuple[Module, Optimizer]],
    loss: Callable[..., Variable],
    examples: Examples[Mapping[str, Any]],
    *,
    folds: int = 5,
    val: float = 0.0,
    trainer: Trainer | None = None,
    final: bool = True,
    n_jobs: int = 1,
) -> CrossValidation:
    """Find out whether optimizing helps on a task, with all of its examples, and train a prompt on all of them.

    For too few examples to set aside a test set. Each fold is tested once, with the texts that a run trained on the
    other folds; the verdict is about the pairs of all folds together. See the note in this module for what that
    estimates. It costs as many runs as there are folds, and one more. A budget around it is shared out: each run may
    use an equal part of what is left. With ``Trainer(run_dir=...)`` each run has its folder in there, ``fold-1`` to
    ``final``, and `store.read_folds`, `show`, `report` and `diff` read the whole; with ``resume=True`` what was paid
    for is not paid for again, and no run is given less of a budget than before.

    Args:
        start: makes a new program, with the same seed texts each time, and an optimizer of its parameters; called for
            each run.
        loss: as for `Trainer.fit`.
        examples: all of them. Those of one cluster (`Trainer(clusters=)`), and those with the same inputs, are in one
            fold.
        folds: the number of parts, each of which is tested once; the trainer's seed decides which examples go where.
        val: the share of the examples of a run that validates and gives no feedback. With 0 the training examples
            validate, too: of few examples that finds more (docs/search.md), and what is tested is apart in any case.
        trainer: its settings apply to every run; None for the defaults.
        final: train on all examples in the end.
        n_jobs: how many runs go on at once, each in a thread of its own; -1 for all. Then program, loss and callbacks
            are used by several threads, but each program by one run alone. The results are those of one run after the
            other, unless a budget ends a run. With a budget the folds go on at once, with equal parts of it, and the
            run on all examples has what they leave.

    Raises:
        TypeError: `start` does not give a program and its optimizer.
        ValueError: there are fewer than two folds, fewer examples that stand for themselves than folds, or fewer than
            two clusters for each; `val` is no share below 1 or leaves nothing; `n_jobs` is 0 or below -1; the trainer
            has guards, which name validation examples, or the folder of a single run; or `start` gives a program again
            that was trained, or that another run trains.
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
    every = check_examples(examples, "examples", "cross_validate")
    check(cross_validate, locals())
    if n_jobs < 1 and n_jobs != -1:
        raise ValueError(f"cross_validate: n_jobs should be 1 or more, or -1 for all runs at once, got {n_jobs}")
    trainer = Trainer() if trainer is None else trainer
    if trainer.guards is not None and (trainer.guards.never_break or trainer.guards.floors):
        raise ValueError(
            "the trainer has guards, which are about validation examples, and every fold has others; leave them out, "
            "but for floors under metrics"
        )
    if any(hasattr(each, "earlier") for each in trainer.callbacks):
        raise ValueError(
            "a callback of the trainer is the folder of one run, and there are several; leave it out, and name a "
            "folder for all of them by Trainer(run_dir=...)"
        )
    if trainer.notes is not None:
        require_notes(every, trainer.notes)
    first, _ = _started(start)
    parts = parts_of(first, every, folds=folds, val=val, seed=trainer.seed, clusters=trainer.clusters)

    parts = parts if final else parts[:-1]
    jobs = len(parts) if n_jobs == -1 else n_jobs
    ready = _all_started(start, first, parts) if jobs > 1 else {}

    def fit(part: Part) -> TrainResult:
        own = copy.copy(trainer)
        own.run_dir = None if trainer.run_dir is None else trainer.run_dir / part.name
        program, optimizer = ready.pop(part.name) if part.name in ready else _started(start)
        _check_anew(first, program)
        return own.fit(program, loss, optimizer, part.train, part.val, part.test)

    names = clusters_of(every, trainer.clusters) if trainer.clusters else clusters_of_equals(first, every)
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = None
        if trainer.run_dir is not None:
            place, resume = trainer.run_dir, bool(trainer.resume)
            folder = folds_folder(place, every, folds=folds, clusters=names, final=final, resume=resume)
            stack.enter_context(folder)
        runs = fit_parts(parts, fit, folder, jobs)
    return pooled(runs, ids_of(every), names, time.monotonic() - began)


async def across_validate(*args: Any, **kwargs: Any) -> CrossValidation:
    """`cross_validate` for code that has an event loop of its own; see `Trainer.afit`.

    Example:
        >>> import asyncio
        >>> from textgrad_engine import optim, use_models
        >>> from textgrad_engine.testing import simulated_task
        >>> task = simulated_task(rules=4, seed=1, train=20)
        >>> def start():
        ...     program = task.program()
        ...     return program, optim.TGD(program.parameters())
        >>> with use_models(forward=task.model):
        ...     found = asyncio.run(across_validate(start, task.loss, task.train, folds=2))
        >>> found.examples, len(found.folds)
        (20, 2)
    """
    return await interruptible(lambda: cross_validate(*args, **kwargs))


def _started(start: Callable[[], tuple[Module, Optimizer]]) -> tuple[Module, Optimizer]:
    """What `start` gives."""
    if isinstance(start, Module) or not callable(start):
        raise TypeError(
            "cross_validate: start should be a function that makes a new program and its optimizer, as it is called "
            f"for each run; got {type(start).__name__}"
        )
    made: Any = start()
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], Module)):
        given = type(made).__name__
        if isinstance(made, tuple):
            given = f"({', '.join([type(each).__name__ for each in made])})"
        raise TypeError(f"cross_validate: start should return (program, optimizer), got {given}")
    return made


def _all_started(
    start: Callable[[], tuple[Module, Optimizer]], first: Module, parts: Sequence[Part]
) -> dict[str, tuple[Module, Optimizer]]:
    """What `start` gives for each run, by its name.

    Raises:
        ValueError: two of them would train the same texts at once.
    """
    made: dict[str, tuple[Module, Optimizer]] = {}
    for part in parts:
        own = _started(start)
        for other in [first, *(program for program, _ in made.values())]:
            _check_anew(other, own[0])
        made[part.name] = own
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
