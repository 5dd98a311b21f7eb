"""What a Variable's attributes are called in other libraries, for the error of somebody who asks for them here."""

from __future__ import annotations

from typing import Any

__all__ = ["no_attribute"]

_HERE = {
    **dict.fromkeys(("value", "text", "content", "get_value", "set_value", "item", "numpy", "tolist"), "data"),
    **dict.fromkeys(("role_description", "get_role_description", "role_desc", "description"), "role"),
    **dict.fromkeys(
        ("gradients", "gradient", "get_gradient_text", "get_gradient_and_context_text", "feedback"), "grad"
    ),
    **dict.fromkeys(("requires_opt", "trainable"), "requires_grad"),
    "reset_gradients": "grad = None",
    "zero_grad": "grad = None",
}


def no_attribute(value: Any, name: str) -> AttributeError:
    """The error of an attribute that a value does not have; it names ours where another library has it, or a text.

    Args:
        value: that was asked.
        name: of the attribute.

    Example:
        >>> from textgrad_engine import Variable
        >>> print(no_attribute(Variable("Sort."), "role_description"))
        'Variable' object has no attribute 'role_description'; here it is .role
    """
    text = f"{type(value).__name__!r} object has no attribute {name!r}"
    if name in _HERE:
        text += f"; here it is .{_HERE[name]}"
    elif not name.startswith("_") and hasattr(str, name):
        text += f"; its text has it, .data.{name}, which feedback does not follow: what feedback follows is in ops"
    return AttributeError(text, name=name, obj=value)
