"""A Variable that belongs to a module and is trained."""

from __future__ import annotations

from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.keywords import names_told


class Parameter(Variable):
    """A Variable that a `Module` registers when it is assigned; it requires grad by default.

    Args:
        data: its text; or a Variable, whose value is waited for and detached from its graph.
        role: what it is for; the critic and the optimizer are told. Default: the role of the given Variable.
        requires_grad: False freezes it.

    Example:
        >>> Parameter("Be brief.", role="system prompt").requires_grad
        True
        >>> Parameter(Variable("Paris", role="answer")).role
        'answer'
    """

    __slots__ = ()

    @names_told
    def __init__(self, data: Any, role: str = "", requires_grad: bool = True) -> None:
        if isinstance(data, Variable):
            data, role = data.data, role or data.role
        super().__init__(data, role, requires_grad)
