"""Whether the sets of a run are apart, looked at before anything is paid for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from textgrad_engine.data.overlap import check_splits, describe
from textgrad_engine.train.calling import inputs_of

__all__ = ["warn_of_overlaps"]

_log = logging.getLogger("textgrad_engine.train.splits")

Rows = Sequence[dict[str, Any]]


def warn_of_overlaps(program: Callable[..., Any], train: Rows, val: Rows, test: Rows | None) -> tuple[str, ...]:
    """Look for examples that are in two sets, exactly or nearly, by the fields that the program is given.

    Args:
        program: whose inputs are compared.
        train: the training examples.
        val: the validation examples.
        test: the test examples, if any.

    Returns:
        A sentence for each pair of sets that share some; each is logged as a warning, too.

    Example:
        >>> from textgrad_engine import nn
        >>> program = nn.ChatCompletion("{question}")
        >>> warn_of_overlaps(program, [{"question": "1 + 1?"}], [{"question": "2 + 2?"}], None)
        ()
    """
    required, optional = inputs_of(program)
    fields = [*required, *optional]
    # A program without any names of its own inputs gets none; then there is nothing to compare by.
    found = check_splits(train, val, test, fields=fields) if fields else []
    sizes = {"val": len(val), "test": 0 if test is None else len(test)}
    sentences = tuple(describe(found, sizes))
    for sentence in sentences:
        _log.warning("%s", sentence)
    return sentences
