"""The role of a result, made of the roles of what it was made from."""

from __future__ import annotations

from typing import Any

from textgrad_engine import pytree
from textgrad_engine.autograd import Variable


def joined_role(*values: Any) -> str:
    """The role of a result: the roles of the variables among `values`, each once, also those of earlier results.

    So a text that is added to in turns keeps a short role.

    Example:
        >>> both = joined_role(Variable("a", role="question"), "b", [Variable("c", role="answer")])
        >>> both, joined_role(Variable("ac", role=both), Variable("d", role="question"))
        ('question and answer', 'question and answer')
    """
    roles = dict.fromkeys([leaf.role for leaf in pytree.leaves(values) if isinstance(leaf, Variable)])
    roles.pop("", None)
    if len(roles) < 2:
        return next(iter(roles), "")
    return _AND.join(dict.fromkeys([part for role in roles for part in role.split(_AND)]))


_AND = " and "
