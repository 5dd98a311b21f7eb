"""What Python's operators do with a `Variable`: `+`, `*`, `/`, the field of an answer, ``answer["label"]``, and a loop.

They are operations of `ops`, which is above this file and registers them here when it is loaded. The first use of an
operator sees to that.
"""

from __future__ import annotations

import importlib
import numbers
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from textgrad_engine.autograd.value import Scalar, Value, label_of

if TYPE_CHECKING:
    from textgrad_engine.autograd.variable import Variable


def _registered_by(module: str, name: str) -> Any:
    """A rule that loads the module which registers it, and then is it."""

    def first_use(*operands: Any) -> Any:
        importlib.import_module(module)  # by name: the import statement would point upwards
        return getattr(Operators, name)(*operands)

    return staticmethod(first_use)


class Operators(Value):
    """The part of a `Variable` that makes operations of operators."""

    __slots__ = ()

    add_rule: ClassVar[Callable[[Any, Any], Variable]] = _registered_by("textgrad_engine.ops.text", "add_rule")
    """What ``+`` does."""

    copy_rule: ClassVar[Callable[[Any], Variable]] = _registered_by("textgrad_engine.ops.text", "copy_rule")
    """What `clone` does."""

    scale_rule: ClassVar[Callable[[Any, Any], Variable]] = _registered_by("textgrad_engine.ops.text", "scale_rule")
    """What ``*`` and ``/`` do."""

    field_rule: ClassVar[Callable[..., Variable]] = _registered_by("textgrad_engine.ops.field", "field_rule")
    """What ``answer["label"]`` does."""

    unbind_rule: ClassVar[Callable[[Any], list[Variable]]] = _registered_by(
        "textgrad_engine.ops.entries", "unbind_rule"
    )
    """What ``for entry in batch`` goes over."""

    def __add__(self, other: Variable | Scalar) -> Variable:
        return Operators.add_rule(self, other)

    def __radd__(self, other: Scalar) -> Variable:
        return Operators.add_rule(other, self)

    def __mul__(self, factor: float) -> Variable:
        return Operators.scale_rule(self, factor)

    def __rmul__(self, factor: float) -> Variable:
        return Operators.scale_rule(self, factor)

    def __truediv__(self, divisor: float) -> Variable:
        given: object = divisor
        return Operators.scale_rule(self, 1 / divisor if isinstance(given, numbers.Real) and given != 0 else divisor)

    if not TYPE_CHECKING:  # for type checkers they are not there at all

        def __sub__(self, other: Any = None) -> Any:
            raise TypeError(
                f"{label_of(self)} takes no minus, nor is anything divided by it: feedback asks for a higher score and "
                "cannot be turned round. Let the loss itself give more for what is wanted, or count with the .data, "
                "through which no feedback goes"
            )

        __rsub__ = __neg__ = __rtruediv__ = __sub__

    def __getitem__(self, key: str | int) -> Variable:
        return Operators.field_rule(self, key)

    def __iter__(self) -> Iterator[Variable]:
        return iter(Operators.unbind_rule(self))

    def __reversed__(self) -> Iterator[Variable]:  # Python's own would read fields by their numbers
        return reversed(Operators.unbind_rule(self))
