"""The texts of parameters as they are now, and how others are put in their place."""

from __future__ import annotations

from collections.abc import Iterable

from textgrad_engine.autograd import Variable, no_grad


def texts_now(variables: Iterable[Variable]) -> tuple[str, ...]:
    """The text of each."""
    return tuple(str(variable.data) for variable in variables)


def write_texts(variables: Iterable[Variable], texts: Iterable[str]) -> None:
    """Put a text into each; one that is there already is not written again, which would count as a change.

    Example:
        >>> one, other = Variable("Sort.", requires_grad=True), Variable("Be kind.", requires_grad=True)
        >>> write_texts([one, other], ["Sort it.", "Be kind."])
        >>> texts_now([one, other])
        ('Sort it.', 'Be kind.')
    """
    with no_grad():
        for variable, text in zip(variables, texts):
            if variable.data != text:
                variable.data = text
