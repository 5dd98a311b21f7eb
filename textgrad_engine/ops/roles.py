"""The role of a result, made of the roles of what it was made from."""

from __future__ import annotations

from typing import Any

from textgrad_engine import pytree
from textgrad_engine.autograd import Variable

__all__ = ["joined_role"]


def joined_role(*values: Any) -> str:
    """The role of a result: the roles of the variables among `values`, each once.

    Example:
        >>> joined_role(Variable("a", role="question"), "b", [Variable("c", role="answer")])
        'question and answer'
    """
    leaves = [leaf for leaf in pytree.leaves(values) if isinstance(leaf, Variable)]
    return " and ".join(dict.fromkeys(leaf.role for leaf in leaves if leaf.role))
