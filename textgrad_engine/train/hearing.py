"""How a trainer has feedback asked for: of a critic or of none, about how many examples and images at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from textgrad_engine import ops

if TYPE_CHECKING:
    from textgrad_engine.train.trainer import Trainer


@contextlib.contextmanager
def hearing(trainer: Trainer, batch_size: int | None = None) -> Iterator[None]:
    """Inside the block, backward passes go as a trainer is set to.

    Args:
        trainer: whose settings hold.
        batch_size: so many examples may share one feedback call; None for the trainer's.
    """
    with contextlib.ExitStack() as stack:
        if not trainer.critic:
            stack.enter_context(ops.critic(None))
        stack.enter_context(ops.feedback_batch_size(batch_size or trainer.feedback_batch_size))
        stack.enter_context(ops.feedback_images(trainer.feedback_images))
        yield
