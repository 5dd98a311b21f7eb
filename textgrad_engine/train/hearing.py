"""How a trainer has feedback asked for, of a critic or of none, and what it has proposers told of its aims."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textgrad_engine import ops, templates
from textgrad_engine.data import examples_of, ids_of
from textgrad_engine.errors import DataError
from textgrad_engine.ops.evaluators import written
from textgrad_engine.ops.fillers import is_nan
from textgrad_engine.ops.material import chat_in_words
from textgrad_engine.optim import Optimizer
from textgrad_engine.optim.contracts import aiming
from textgrad_engine.slots import by_composed_name, composed
from textgrad_engine.train.events import current_part
from textgrad_engine.train.fields import inputs_of, lacking

if TYPE_CHECKING:
    from textgrad_engine.train.trainer import Trainer


@contextlib.contextmanager
def hearing(trainer: Trainer, train: Sequence[dict[str, Any]]) -> Iterator[None]:
    """Inside the block, backward passes go as a trainer is set to, and proposers are told what it aims at.

    Args:
        trainer: whose settings hold.
        train: the training examples, which may have notes.
    """
    with contextlib.ExitStack() as stack:
        if not trainer.critic:
            stack.enter_context(ops.critic(None))
        if trainer.notes is not None:
            stack.enter_context(ops.notes(notes_in(train, trainer.notes)))
        stack.enter_context(ops.feedback_batch_size(trainer.feedback_batch_size))
        stack.enter_context(ops.feedback_images(trainer.feedback_images))
        stack.enter_context(aiming(aims_of(trainer)))
        yield


def aims_of(trainer: Trainer) -> Iterator[str]:
    """What a trainer's texts are kept or refused by besides their score, in words (the prompt ``aim``).

    Of examples that must never break nothing is said: they are validation examples, and a text is wanted for all cases.

    Args:
        trainer: whose weights and guards they are.
    """
    guards, say = trainer.guards, functools.partial(templates.load("aim").render, under="", whole=False)
    for what, weight in (("tokens", trainer.tokens_weight), ("seconds", trainer.latency_weight)):
        if weight:
            yield say(what=what, amount=f"{weight:g}")
    if guards is not None:
        for (field, value), least in guards.floors.items():
            yield say(what="floor", amount=f"{least:g}", under=f"{field} = {value!r}")
        for name, least in guards.metrics.items():
            yield say(what="floor", amount=f"{least:g}", under=repr(" ".join(name.split())), whole=True)


def check_notes(
    notes: str | None, program: Callable[..., Any], optimizer: Optimizer, train: Sequence[Mapping[str, Any]]
) -> None:
    """Refuse notes that nobody would read, and such as the program would be given.

    Args:
        notes: the name of the field that holds them; None for none.
        program: what is trained.
        optimizer: what trains it.
        train: the training examples.

    Raises:
        ValueError: the optimizer hears no feedback.
        DataError: the program is shown the field, or no example has it; in a fold others may have it.
    """
    if notes is None:
        return
    if not optimizer.hears_critic:
        name = type(optimizer).__name__
        raise ValueError(f"Trainer(notes={notes!r}) means nothing to this {name}, which hears no feedback; take it out")
    if any(composed(notes) in names for names in inputs_of(program)):
        raise DataError(
            f"Trainer(notes={notes!r}): the program is shown that field, so its answers would go by what people noted; "
            "name another field, or take it out of the program's forward or template"
        )
    if not current_part.get():  # of a few notes all may be on examples that a fold tests
        require_notes(train, notes)


def check_shared(trainer: Trainer, optimizer: Optimizer) -> None:
    """Refuse a number of examples to a feedback call that the optimizer's own would outdo.

    Args:
        trainer: whose setting it is.
        optimizer: what trains; a search has a setting of its own.

    Raises:
        ValueError: the two differ, and the trainer's is not the default.
    """
    given, own = trainer.feedback_batch_size, getattr(optimizer, "feedback_batch_size", None)
    if own is not None and given not in (1, own):
        name = type(optimizer).__name__
        raise ValueError(
            f"Trainer(feedback_batch_size={given}) means nothing to this {name}, which has {own} of its own: "
            f"write {name}(feedback_batch_size={given}) instead"
        )


def require_notes(examples: Sequence[Mapping[str, Any]], field: str) -> None:
    """Refuse examples of which none has the field that is to hold the notes.

    Args:
        examples: the examples.
        field: the name of the field.

    Raises:
        DataError: none has it.
    """
    rows = list(examples_of(examples))
    if not any(composed(field) in by_composed_name(dict(row)) for row in rows):
        raise DataError(lacking(rows[0], ids_of(examples)[0], field, " for the notes, and nor has any other"))


def notes_in(train: Sequence[Mapping[str, Any]], field: str) -> dict[str, str]:
    """The notes on examples by their ids; those without one are left out.

    Args:
        train: the examples.
        field: the name of the field that holds them.

    Example:
        >>> notes_in([{"id": "a", "why": "It is late."}, {"id": "b", "why": None}, {"id": "c"}], "why")
        {'a': 'It is late.'}
    """
    named = zip(ids_of(train), [by_composed_name(dict(row)).get(composed(field)) for row in examples_of(train)])
    return {name: written(chat_in_words(note)) for name, note in named if not _is_none(note)}


def _is_none(note: Any) -> bool:
    """Whether nothing was noted; of who annotated, the list of what they said may be empty."""
    return note is None or is_nan(note) or (isinstance(note, str | list | dict) and not note)
