"""Functions that score, as users write them: what they are called with, by place or by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from textgrad_engine.callables import signature_of
from textgrad_engine.kinds import told

_GIVEN = ("prediction", "target")
_PREDICTIONS = frozenset({"prediction", "predicted", "pred", "answer", "output", "y_pred"})
_TARGETS = frozenset({"target", "expected", "gold", "example", "label", "reference", "y_true"})
_BY_PLACE = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD


def names_inputs(function: Callable[..., Any]) -> bool:
    """Whether a function has an argument called ``inputs``, behind the first one, which is the prediction.

    Example:
        >>> names_inputs(lambda prediction, target, inputs: 1), names_inputs(lambda inputs, targets: 1)
        (True, False)
    """
    return "inputs" in [each.name for each in _parameters(function)[1:]]


def takes_target(function: Callable[..., Any]) -> bool:
    """Whether a metric's function is given a target: not where the prediction is all it takes, or ``inputs`` is second.

    Example:
        >>> takes_target(lambda prediction, target, inputs: 1), takes_target(lambda prediction, inputs: 1)
        (True, False)
        >>> takes_target(len), takes_target(max), takes_target(lambda prediction, *, target: 1)
        (False, True, True)
    """
    parameters = _parameters(function)
    places = [each.name for each in parameters if each.kind in _BY_PLACE]
    if not parameters or any(each.kind is each.VAR_POSITIONAL for each in parameters) or _target_by_name(parameters):
        return True
    return len(places) > 1 and places[1] != "inputs"


def needs_two(function: Callable[..., Any]) -> bool:
    """Whether a function cannot be called with a prediction alone, and the fields where it names ``inputs``."""
    parameters = _parameters(function)
    places = [each for each in parameters if each.kind in _BY_PLACE and each.name != "inputs"]
    return any(each.default is each.empty for each in [*places[1:2], *_target_by_name(parameters)])


def scoring(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that scores, as one that is given the prediction and the target by place.

    It is itself given by name what stands behind a star, and both where it says "target" before "prediction".

    Raises:
        TypeError: it cannot be called with these, or by its names takes the target first.

    Example:
        >>> scoring(lambda *, prediction, target: prediction == target)("a", "a")
        True
        >>> scoring(lambda target, prediction: target.index(prediction))("b", "ab")
        1
        >>> scoring(lambda gold, pred: gold.index(pred))
        Traceback (most recent call last):
        TypeError: the function <lambda>() takes (gold, pred) and is given the prediction first: write (pred, gold)
    """
    try:
        signature = signature_of(function)
    except (TypeError, ValueError):
        return function
    parameters = list(signature.parameters.values())
    first, second = [*(each.name for each in parameters if each.kind in _BY_PLACE), "", ""][:2]
    bare = [each.replace(annotation=each.empty) for each in parameters]
    takes = f"takes {signature.replace(parameters=bare, return_annotation=signature.empty)}"
    swapped = (second, first) == _GIVEN
    if not swapped and first in _TARGETS and second in _PREDICTIONS:
        raise TypeError(f"{told(function)} {takes} and is given the prediction first: write ({second}, {first})")
    behind_a_star = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    by_name = [name for name in _GIVEN if swapped or name in behind_a_star]
    given = ("", "") if takes_target(function) else ("",)
    try:
        by_place, named = _arranged(given, by_name)
        signature.bind(*by_place, **named, **({"inputs": {}} if names_inputs(function) else {}))
    except TypeError as error:
        raise TypeError(
            f"{told(function)} is called with the prediction and the target, and {takes}: {error}; write (prediction, "
            "target), or (prediction) or (prediction, inputs) where there is no target"
        ) from None
    if not by_name:
        return function

    @functools.wraps(function)
    def fitted(*given: Any, **inputs: Any) -> Any:
        by_place, named = _arranged(given, by_name)
        return function(*by_place, **named, **inputs)

    return fitted


def _arranged(given: Sequence[Any], by_name: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Prediction and target by place, and by name."""
    pairs = list(zip(_GIVEN, given))
    return [value for name, value in pairs if name not in by_name], {n: value for n, value in pairs if n in by_name}


def _target_by_name(parameters: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
    return [each for each in parameters if each.kind is each.KEYWORD_ONLY and each.name == "target"]


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(signature_of(function).parameters.values())
    except (TypeError, ValueError):  # a callable that does not say how it is called
        return []
