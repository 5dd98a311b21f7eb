"""Variables of tests, and what was said about them."""

from __future__ import annotations

from typing import Any

from textgrad_engine import Variable


def leaf(data: Any = "p", role: str = "") -> Variable:
    """A Variable that wants feedback."""
    return Variable(data, role=role, requires_grad=True)


def wanting(data: Any, role: str = "") -> Variable:
    """The same, of what a test is about."""
    return leaf(data, role)


def texts(gradient: Any) -> list[Any]:
    """What the items of a gradient say."""
    return [item.data for item in gradient]


def said(variable: Variable) -> list[Any]:
    """What was said about a Variable, in order."""
    return texts(variable.grad)
