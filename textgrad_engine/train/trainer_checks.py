"""What a `Trainer` and its `fit` are given, checked before anything is asked."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sized
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.value import label_of
from textgrad_engine.callables import check_method
from textgrad_engine.data import DataLoader, Examples, examples_of, ids_of
from textgrad_engine.errors import DataError
from textgrad_engine.kinds import is_coroutine_function
from textgrad_engine.nn import Module, TextLoss
from textgrad_engine.optim import Optimizer
from textgrad_engine.optim.search.searcher import Searcher
from textgrad_engine.optim.shape import check_shape
from textgrad_engine.train.evaluator import clusters_of
from textgrad_engine.train.events import Callback
from textgrad_engine.train.fields import check_examples
from textgrad_engine.train.guards import guarded_by
from textgrad_engine.train.hearing import check_notes, check_shared
from textgrad_engine.train.metrics_of import parts_of
from textgrad_engine.train.run_state import Rows
from textgrad_engine.train.targets import inputs_and_target
from textgrad_engine.wording import a_class, told

if TYPE_CHECKING:
    from textgrad_engine.train.trainer import Trainer

P = ParamSpec("P")
R = TypeVar("R")


def missing_told(fit: Callable[P, R]) -> Callable[P, R]:
    """A `fit` which says what was left out: the optimizer, where Python would name the last argument, or `val`."""

    @functools.wraps(fit)
    def told_apart(*args: P.args, **kwargs: P.kwargs) -> R:
        if "val" not in kwargs and (len(args) == 5 or (len(args) < 5 and "train" in kwargs)):
            if not any(isinstance(each, Optimizer) for each in (*args, *kwargs.values())):
                raise TypeError(
                    "fit: there is no optimizer; write fit(program, loss, optimizer, train, val), with one such as "
                    "optim.TGD(program.parameters())"
                )
            raise TypeError(
                "fit: there are no validation examples, which decide what changes are kept; write fit(program, loss, "
                "optimizer, train, val). data.random_split(examples, [0.5, 0.5], seed=0) cuts what you have in two; "
                "if you have fewer than a hundred, tg.cross_validate makes more of them"
            )
        return fit(*args, **kwargs)

    return told_apart


def check_given(
    trainer: Trainer,
    program: Module,
    loss: Callable[..., Variable],
    optimizer: Optimizer,
    train: Rows,
    val: Rows,
    test: Rows | None,
) -> None:
    """Check what a `fit` is given, before anything is asked.

    Args:
        trainer: whose `fit` it is.
        program: what is to be trained.
        loss: what is to score it.
        optimizer: what is to train it.
        train: the training examples.
        val: the validation examples.
        test: the test examples, if any.

    Raises:
        DataError: an example does not fit, or all of a set are one cluster.
        TypeError: something is of another kind than is wanted.
        ValueError: they cannot be used together.
    """
    check_parts(program, loss, optimizer, call="fit")
    _check_expected(optimizer)
    _check_together(trainer, program, loss, optimizer, [train, val, *(() if test is None else (test,))])
    check_notes(trainer.notes, program, optimizer, train)
    check_shared(trainer, optimizer)
    guarded_by(trainer.guards, val, loss, train, test)
    if trainer.clusters is not None:
        for name, examples in (("val", val), ("test", test)):
            if examples is not None and len(set(clusters_of(examples, trainer.clusters))) < 2:
                raise DataError(
                    f"all examples of the {name} set have the same {trainer.clusters!r}, so they are one cluster, of "
                    "which no interval can be given; leave clusters away, or take examples of several"
                )


def _check_expected(optimizer: Optimizer) -> None:
    """Refuse a search of somebody's own that does not tell how good its best texts are."""
    expected = getattr(type(optimizer), "expected", None)
    if isinstance(optimizer, Searcher) and (expected is Searcher.expected or inspect.isroutine(expected)):
        name = type(optimizer).__name__
        if inspect.isroutine(expected):
            why = f"{name}.expected is a method; put `@property` above it, as it is read, and not called"
        else:
            why = (
                f"{name} is a Searcher without `expected`; give it a property that gives the mean validation "
                "score of the best texts so far, which each step tells"
            )
        raise TypeError(f"fit: {why}")


def _check_together(
    trainer: Trainer, program: Module, loss: Callable[..., Variable], optimizer: Optimizer, sets: list[Rows]
) -> None:
    """Refuse what a trainer, a program, a loss and an optimizer cannot do together, and rows that do not fit them."""
    own = {id(parameter) for parameter in program.parameters()}
    given = optimizer.variables()
    for variable in given:
        if id(variable) not in own:
            raise ValueError(
                f"the optimizer trains {label_of(variable)}, which is no parameter of the program; "
                "make it with program.parameters(), after the program's texts are nn.Parameters"
            )
        if isinstance(optimizer, Searcher) and not variable.requires_grad:
            raise ValueError(
                f"{label_of(variable)} does not require grad, and a search changes all of its parameters; "
                "leave it out of the optimizer"
            )
        if variable.requires_grad and not isinstance(variable.data, str):
            raise TypeError(
                f"{label_of(variable)} holds {told(variable.data)}, and a Trainer trains texts; leave it out of "
                "the optimizer, or freeze it: requires_grad_(False)"
            )
    if not any(variable.requires_grad for variable in given):
        raise ValueError(
            "the optimizer has no parameter that requires grad, so there is nothing to train; "
            "program.requires_grad_() unfreezes its texts"
        )
    if not trainer.critic and not optimizer.hears_critic:
        name = type(optimizer).__name__
        raise ValueError(f"Trainer(critic=False) means nothing to this {name}, which asks no critic; take it out")
    if isinstance(loss, TextLoss):
        raise TypeError(
            "the Trainer selects by a score, and a TextLoss gives words only. Score with nn.ExactMatch, nn.Metric "
            "or nn.Judge; a TextLoss goes with a loop of your own."
        )
    read = inputs_and_target(program, loss, trainer.target)
    for rows in sets:
        for row, name in zip(examples_of(rows), ids_of(rows)):
            read(row, name)


def check_parts(program: Module, loss: Callable[..., Variable], optimizer: Optimizer, *, call: str) -> None:
    """Refuse what is no program, loss or optimizer.

    Args:
        program: what is to be trained.
        loss: what is to score it.
        optimizer: what is to train it.
        call: what these were given to, such as ``"fit"``.

    Raises:
        TypeError: one of them is something else, or the class of one; or the optimizer cannot do what a run asks of it.
        ValueError: the optimizer searches by several metrics, and the loss is not made of them.
    """
    for name, value, is_one, wanted in (
        ("program", program, isinstance(program, Module), "an nn.Module, whose parameters are trained"),
        ("loss", loss, callable(loss), "a function or module that scores a prediction, such as nn.ExactMatch()"),
        ("optimizer", optimizer, isinstance(optimizer, Optimizer), "one, as optim.TGD(program.parameters()) is"),
    ):
        if isinstance(value, type) or not is_one:
            raise TypeError(f"{call}: {name} should be {wanted}; got {told(value)}")
        if name == "loss" and is_coroutine_function(value):
            raise TypeError(f"{call}: loss is {told(value)}, and nobody awaits it: write `def`")
    check_shape(optimizer)
    if isinstance(optimizer, Searcher):
        optimizer.check_metrics([part.name for part in parts_of(loss)])


def sets_of(
    trainer: Trainer,
    train: Examples[Mapping[str, Any]] | DataLoader[Any],
    val: Examples[Mapping[str, Any]],
    test: Examples[Mapping[str, Any]] | None,
    *,
    call: str,
) -> tuple[DataLoader[dict[str, Any]], Rows, Rows | None]:
    """The loader of a run's minibatches, and the other sets by position, once they are known to be some.

    Args:
        trainer: whose settings count where `train` is no loader.
        train: the training examples, or a loader of them.
        val: the validation examples.
        test: the test examples, if any.
        call: what the sets were given to, such as ``"fit"``.

    Raises:
        DataError: a set is empty, or the loader gives no minibatch.
        TypeError: a set is no sequence of dicts.
    """
    loader = train if isinstance(train, DataLoader) else None
    given = {"train": train if loader is None else loader.dataset, "val": val} | (
        {} if test is None else {"test": test}
    )
    sets = {}
    for name, rows in given.items():
        sets[name] = check_examples(rows, name, call)
        if len(sets[name]) == 0:
            raise DataError(f"the {name} set is empty")
    if loader is None:
        rows = sets["train"]
        loader = DataLoader(rows, batch_size=min(trainer.batch_size, len(rows)), shuffle=True, seed=trainer.seed)
    if len(loader) == 0:
        why = f"of {len(loader.dataset)} examples with batch_size={loader.batch_size} and drop_last={loader.drop_last}"
        if isinstance(loader.sampler, Sized) and len(loader.sampler) == 0:
            why = f"as its sampler, {a_class(type(loader.sampler))}, has a length of 0"
        raise DataError(f"the train loader gives no minibatch, {why}")
    return loader, sets["val"], sets.get("test")


def checked_callbacks(callbacks: Iterable[Callback]) -> tuple[Callback, ...]:
    """The callbacks; what is none is refused here, before a run has begun.

    Raises:
        TypeError: it is no iterable, or one of them has no `on_event`, or an `async` one.
    """
    if not isinstance(callbacks, Iterable):
        raise TypeError(f"callbacks should be a list of them, got {told(callbacks)}; write callbacks=[...]")
    every = tuple(callbacks)
    for position, callback in enumerate(every):
        if isinstance(callback, type) or not callable(getattr(callback, "on_event", None)):
            repair = "write a class with that method, and give an instance of it"
            if isinstance(callback, type) and hasattr(callback, "on_event"):
                repair = f"give an instance of it: {callback.__name__}(...)"
            raise TypeError(
                f"callbacks[{position}] is {told(callback)}, and a callback is an object with a method "
                f"on_event(event); {repair}"
            )
        if is_coroutine_function(callback.on_event):
            raise TypeError(
                f"callbacks[{position}] ({type(callback).__name__}) has an `async def on_event`, and nobody awaits it: "
                "write `def on_event`"
            )
        check_method(callback, "on_event", "event")
        minds_end = hasattr(callback, "on_end") or hasattr(callback, "for_run")
        if getattr(type(callback), "on_event", None) is Callback.on_event and not minds_end:
            raise TypeError(
                f"callbacks[{position}] ({type(callback).__name__}) would do nothing, as its on_event is that of "
                "Callback; write `def on_event(self, event)`"
            )
    return every
