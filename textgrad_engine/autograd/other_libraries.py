"""What attributes of a Variable or a context are called in other libraries, for the error of who asks for them here.

Descriptors, as a `__getattr__` would make every attribute of every Variable slower: a sixth of a plain operation.
"""

from __future__ import annotations

from typing import Any

_OF_TEXT = ("casefold", "lower", "lstrip", "removeprefix", "removesuffix", "replace", "rstrip", "strip", "upper")
_OF_ANSWERS = ("answer", "label", "output", "rationale", "reasoning")

NAMES = {
    **dict.fromkeys(("value", "text", "content", "final_output", "get_value", "set_value"), ".data"),
    **dict.fromkeys(("item", "numpy", "tolist"), ".data"),
    **dict.fromkeys(("role_description", "get_role_description", "set_role_description", "role_desc"), ".role"),
    **dict.fromkeys(("gradients", "get_gradient_text", "get_gradient_and_context_text", "feedback"), ".grad"),
    **dict.fromkeys(("requires_opt", "trainable"), ".requires_grad"),
    **dict.fromkeys(("reset_gradients", "zero_grad"), ".grad = None"),
    "detach_": ".detach()",
    "mean": "ops.sum(losses) / len(losses)",
    "sum": "ops.sum",
    **dict.fromkeys(("shape", "size"), "len(variable)"),
    **dict.fromkeys(("cpu", "cuda", "device", "to"), "the variable itself, as a text is on no device"),
    "unbind": "ops.unbind",
    **{name: f".data.{name}(), which ops.straight_through(result, answer) joins to the answer" for name in _OF_TEXT},
    **{name: f".data.{name}()" for name in ("endswith", "startswith")},
    **dict.fromkeys(("split", "splitlines"), "ops.split"),
    "format": "ops.format",
    **{name: f'variable["{name}"], a field of an answer that is JSON' for name in _OF_ANSWERS},
    **dict.fromkeys(
        ("get", "items", "keys", "model_dump", "parsed", "toDict"),
        'json.loads(variable.data); variable["field"] is a field with its graph',
    ),
    "tool_calls": "json.loads(answer.data), as calls of tools that are only described are the answer",
}
"""Ours by those of TextGrad, DSPy, AdalFlow, Trace, PyTorch and SDKs for agents, and by the methods of a text."""


class NotHere:
    """An attribute that is not there, and says what it is called here, also to who assigns to it.

    A subclass whose instances have attributes of their own may have it as one of these.

    Args:
        here: what it is called here; an attribute with its dot.

    Example:
        >>> from textgrad_engine import Variable
        >>> hasattr(Variable("Sort."), "role_description")
        False
        >>> Variable("Sort.").role_description
        Traceback (most recent call last):
        AttributeError: 'Variable' object has no attribute 'role_description'; here it is .role
    """

    def __init__(self, here: str) -> None:
        self.here = here

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, value: Any, owner: type) -> Any:
        own = getattr(value, "__dict__", {})
        if self.name in own:
            return own[self.name]
        raise self._missing(owner)

    def __set__(self, value: Any, given: Any) -> None:
        if not hasattr(value, "__dict__"):
            raise self._missing(type(value))
        value.__dict__[self.name] = given

    def __delete__(self, value: Any) -> None:
        if self.name not in getattr(value, "__dict__", {}):
            raise self._missing(type(value))
        del value.__dict__[self.name]

    def _missing(self, owner: type) -> AttributeError:
        return AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}; here it is {self.here}")
