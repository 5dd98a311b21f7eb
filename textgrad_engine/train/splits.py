"""Whether the sets of a run are apart, looked at before anything is paid for."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from textgrad_engine.data.dataset import ids_of
from textgrad_engine.data.overlap import check_splits, describe, repeated
from textgrad_engine.train.fields import inputs_of
from textgrad_engine.train.rehearsal import is_rehearsed

_MOST_COPIED = 1.2
"""Where examples are copies of more others than this in the mean, themselves included, equal ones are a cluster."""

_log = logging.getLogger("textgrad_engine.train.splits")

Rows = Sequence[dict[str, Any]]


def warn_of_overlaps(
    program: Callable[..., Any], train: Rows, val: Rows, test: Rows | None, *, shown: bool = False
) -> tuple[str, ...]:
    """Look for examples that are in two sets, exactly or nearly, or twice in one, by what the program is given.

    Args:
        program: whose inputs are compared.
        train: the training examples.
        val: the validation examples.
        test: the test examples, if any.
        shown: whether what shows the run on stderr says it, too.

    Returns:
        A sentence for each pair of sets that share some, and for the validation and the test set each if examples stand
        there more than once; each is logged as a warning, too, unless that would put it on stderr a second time. Where
        the training set itself validates, one that says so. Nothing where a run is only rehearsed.

    Example:
        >>> from textgrad_engine import nn
        >>> program = nn.ChatCompletion("{question}")
        >>> warn_of_overlaps(program, [{"question": "1 + 1?"}], [{"question": "2 + 2?"}], None)
        ()
    """
    fields = _fields_of(program)
    if not fields or is_rehearsed():
        return ()
    sizes = {"val": len(val), "test": 0 if test is None else len(test)}
    sentences = describe(check_splits(train, () if val is train else val, test, fields=fields), sizes)
    for name, rows in (("val", val), ("test", test or ())):
        firsts = repeated(rows, fields=fields)
        again = [(own, first) for own, first in zip(ids_of(rows), firsts) if own != first]
        if again:
            counted = ", and count as one" if clusters_of_equals(program, rows) else ""
            sentences.append(
                f"{len(again)} of {len(rows)} {name} examples have the same inputs as another one there{counted}: "
                f"{again[0][0]!r} as {again[0][1]!r}"
            )
    for sentence in () if shown and not _log.hasHandlers() else sentences:  # without handlers it is written to stderr
        _log.warning("%s", sentence)
    if val is train:  # on purpose, so it is told and no warning
        shows = "only other examples show it" if test is None else "the test set shows it"
        sentences.append(
            f"the training examples validate, too, so a line that is right for them alone may be kept; {shows}"
        )
    return tuple(sentences)


def clusters_of_equals(program: Callable[..., Any], rows: Rows) -> tuple[str, ...]:
    """The cluster of each example, where many have the same inputs: copies of a question show no more than one does.

    Of few copies the error is small, and clusters would cost an exact test. Where all copies score alike, the variance
    of a mean is as many times larger as an example has copies in the mean, itself included: there are more examples
    than Kish's effective number by that factor (`train.clusters`). Up to 1.2, as with ten pairs in a hundred examples,
    there are no clusters; one question that is asked ten times among a hundred comes to 1.9. Where all are the same,
    there are none either.

    Args:
        program: whose inputs are compared.
        rows: the examples.

    Example:
        >>> from textgrad_engine import nn
        >>> program = nn.ChatCompletion("{q}")
        >>> clusters_of_equals(program, [{"q": "1 + 1?"}, {"q": "2 + 2?"}, {"q": "1 + 1?"}])
        ('0', '1', '0')
        >>> clusters_of_equals(program, [{"q": "1 + 1?"}, {"q": "2 + 2?"}])
        ()
    """
    firsts = equals(program, rows) if _fields_of(program) else ()
    sizes = Counter(firsts).values()
    return firsts if len(sizes) > 1 and sum(size * size for size in sizes) > _MOST_COPIED * len(rows) else ()


def equals(program: Callable[..., Any], rows: Rows) -> tuple[str, ...]:
    """For each example the first one that has the same inputs, or itself, by its id.

    Args:
        program: whose inputs are compared; one that names none tells nothing apart but the examples.
        rows: the examples.
    """
    fields = _fields_of(program)
    return repeated(rows, fields=fields) if fields else ids_of(rows)


def _fields_of(program: Callable[..., Any]) -> list[str]:
    """The fields that a program names; without any names there is nothing to compare by."""
    required, optional = inputs_of(program)
    return [*required, *optional]
