"""Losses, and functions that score, as users write them: what they are called with, by place or by name."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from textgrad_engine.callables import in_words, signature_of
from textgrad_engine.wording import told

_GIVEN = ("prediction", "target")
_PREDICTIONS = frozenset({"prediction", "predicted", "pred", "answer", "output", "y_pred"})
_TARGETS = frozenset({"target", "expected", "gold", "example", "label", "reference", "y_true"})
_BY_PLACE = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD

Score: TypeAlias = Callable[[Any, Any, Mapping[str, Any] | None], Any]
"""A loss that is called with a prediction, the target, and the fields that the program was called with, if known."""


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
    if not parameters or any(each.kind is each.VAR_POSITIONAL for each in parameters) or "target" in _named(parameters):
        return True
    return len(places) > 1 and places[1] != "inputs"


def needs_two(function: Callable[..., Any]) -> bool:
    """Whether a function cannot be called with a prediction alone, and the fields where it names ``inputs``."""
    parameters = _parameters(function)
    places = [each for each in parameters if each.kind in _BY_PLACE and each.name != "inputs"]
    named = [each for each in parameters if each.name == _named(parameters).get("target")]
    return any(each.default is each.empty for each in [*places[1:2], *named])


def forward_of(loss: Any) -> Any:
    """What a loss is called by: the forward of a module, or of a class of these; a function as it is.

    Example:
        >>> forward_of(len) is len
        True
    """
    return getattr(loss, "forward", loss)


def with_fields(loss: Callable[..., Any]) -> Score:
    """How a loss is called: one whose forward names ``inputs``, as nn.Judge's, is shown what the program was given.

    Args:
        loss: a Module or any callable; called with the prediction, the target, and maybe ``inputs=``. One that takes
            the prediction alone, or ``inputs`` behind it, is given no target, as a function for nn.Metric.

    Example:
        >>> from textgrad_engine import Variable
        >>> score = with_fields(lambda prediction, target, inputs: inputs)
        >>> score(Variable("Rome"), None, {"land": "Italy", "hint": None})
        {'land': 'Italy'}
    """
    return _Called(loss)


class _Called:
    """A loss whose arguments were looked at: once, as that costs more than most losses."""

    def __init__(self, loss: Callable[..., Any]) -> None:
        forward = forward_of(loss)
        self._plain = told(loss) if inspect.isroutine(loss) else ""
        self._loss = loss if forward is not loss else scoring(loss)
        self._targeted, self._reads_inputs = takes_target(forward), names_inputs(forward)

    def __call__(self, prediction: Any, wanted: Any, fields: Mapping[str, Any] | None) -> Any:
        given = (prediction, wanted) if self._targeted else (prediction,)
        named: dict[str, Any] = {}
        if self._reads_inputs:
            known = None if fields is None else {name: value for name, value in fields.items() if value is not None}
            named = {"inputs": known}
        try:
            return self._loss(*given, **named)
        except (AttributeError, TypeError) as error:
            if self._plain and _by_variables(error):
                error.add_note(
                    f"{self._plain} was called as a loss, which is given Variables and gives one; of a function that "
                    "scores plain texts, nn.Metric(function, purpose) makes one"
                )
            raise


def _by_variables(error: Exception) -> bool:
    """Whether an error comes of what a function of the user did with a Variable, not of an operation in it."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    name = str(frames[-1])
    return not name.startswith("textgrad_engine.") or name == __name__ or name.startswith("textgrad_engine.autograd.")


class CalledLosses:
    """Losses with how they are called (`with_fields`); one that takes the place of another is looked at anew.

    Example:
        >>> CalledLosses()[lambda prediction: len(prediction)]("Rome", "Italy", None)
        4
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[..., Any], Score]] = {}  # copies and pickles have other ids

    def __getitem__(self, loss: Callable[..., Any]) -> Score:
        known = self._known.get(id(loss))
        if known is None or known[0] is not loss:
            known = self._known[id(loss)] = loss, with_fields(loss)
        return known[1]


def scoring(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that scores, as one that is given the prediction and the target by place.

    It is itself given by name what stands behind a star, and the target first where its names say so: (gold, pred).

    Raises:
        TypeError: it cannot be called with these.

    Example:
        >>> scoring(lambda *, prediction, target: prediction == target)("a", "a")
        True
        >>> scoring(lambda gold, pred: gold.index(pred))("b", "ab")
        1
    """
    try:
        signature = signature_of(function)
    except (TypeError, ValueError):
        return function
    parameters = _parameters(function)
    first, second = [*(each.name for each in parameters if each.kind in _BY_PLACE), "", ""][:2]
    target_first = first in _TARGETS and second in _PREDICTIONS
    by_name = _named(parameters)
    by_place, named = _arranged(("", "") if takes_target(function) else ("",), by_name)
    try:
        signature.bind(*by_place, **named, **({"inputs": {}} if names_inputs(function) else {}))
    except TypeError as error:
        raise TypeError(
            f"{told(function)} is called with the prediction and the target, and takes {in_words(signature)}: {error}; "
            "write (prediction, target), or (prediction) or (prediction, inputs) where there is no target"
        ) from None
    return functools.partial(_call, function, by_name, target_first) if by_name or target_first else function


def _call(
    function: Callable[..., Any], by_name: Mapping[str, str], target_first: bool, *given: Any, **inputs: Any
) -> Any:
    by_place, named = _arranged(given, by_name)
    return function(*(by_place[::-1] if target_first else by_place), **named, **inputs)


def _arranged(given: Sequence[Any], by_name: Mapping[str, str]) -> tuple[list[Any], dict[str, Any]]:
    """Prediction and target by place, and by name."""
    pairs = list(zip(_GIVEN, given))
    named = {by_name[name]: value for name, value in pairs if name in by_name}
    return [value for name, value in pairs if name not in by_name], named


def _named(parameters: Sequence[inspect.Parameter]) -> dict[str, str]:
    """What a function calls prediction and target behind a star; one that may be left out only by their own names."""
    found: dict[str, str] = {}
    for each in sorted(parameters, key=lambda each: each.name not in _GIVEN):
        for given, names in zip(_GIVEN, (_PREDICTIONS, _TARGETS)):
            if each.kind is each.KEYWORD_ONLY and (
                each.name == given or (each.name in names and each.default is each.empty)
            ):
                found.setdefault(given, each.name)
    return found


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Those that are still to be given: what a partial has settled by name stays as it is."""
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError):  # a callable that does not say how it is called
        return []
    settled = function.keywords if isinstance(function, functools.partial) else {}
    return [each for each in parameters if each.name not in settled]
