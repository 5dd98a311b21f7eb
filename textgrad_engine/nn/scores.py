"""Losses made of losses: one of a part of the answer, and one score of several."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.checks import check
from textgrad_engine.errors import ScoreError
from textgrad_engine.keywords import names_told
from textgrad_engine.nn.loss import ExactMatch, Metric, TextLoss, needs_target, takes_criteria
from textgrad_engine.nn.metric_functions import CalledLosses
from textgrad_engine.nn.module import Module, OneVariable
from textgrad_engine.ops.backtracking import warn_of_endless
from textgrad_engine.ops.evaluators import outputs_in_words, written
from textgrad_engine.ops.extract import check_part, extract, last_match
from textgrad_engine.ops.field import check_path, field
from textgrad_engine.ops.pass_on import Compute
from textgrad_engine.ops.score_parts import HEARD
from textgrad_engine.ops.weighted import weighted_mean
from textgrad_engine.plain_values import is_number, plain
from textgrad_engine.wording import told


class OnPart(OneVariable):
    """Base of a loss that another one makes of a part of the answer."""

    loss: Callable[..., Any]

    @property
    def losses(self) -> tuple[Callable[..., Any], ...]:
        """The loss inside."""
        return (self.loss,)

    @property
    def scale(self) -> Any:
        """The lowest and the highest score of the loss inside; None where nobody knows."""
        return getattr(self.loss, "scale", None)


class OnField(OnPart):
    """A loss on one field of an answer that is JSON, or on one output of a program that gives several by name.

    Args:
        loss: scores the field.
        path: the name of the field or output; for a nested one, the names and positions on the way. If the target is an
            object, the loss gets its value at the same place; null becomes the text "null", as in an answer.
        default: replaces the field if the answer is no JSON or lacks it; see `ops.field`.

    Raises:
        TypeError: the loss is no module or function, no field is named, or the default is neither a text nor a number.
        ValueError: the loss is a `Weighted` with targets, which are fields of the example.

    Example:
        >>> loss = OnField(ExactMatch(), "label")
        >>> answer = Variable('{"reason": "It is late.", "label": "late"}', role="answer")
        >>> loss(answer, "late").data, loss(answer, {"label": "lost"}).data
        (1, 0)
    """

    @names_told
    def __init__(self, loss: Callable[..., Any], *path: str | int, default: str | float | None = None) -> None:
        super().__init__()
        _check_inner("OnField: its loss", loss)
        check_path("OnField", path, default)
        self.loss, self.path, self.default = loss, path, default
        self._called = CalledLosses()

    def extra_repr(self) -> str:
        """The field, and what stands for one that is not there."""
        return f"path={self.path!r}" + ("" if self.default is None else f", default={self.default!r}")

    def forward(self, prediction: Any, target: Any = None, inputs: Mapping[str, Any] | None = None) -> Variable:
        """Score the field.

        Raises:
            ScoreError: the answer is several outputs, and none has that name.
        """
        part, path = prediction, self.path
        outputs = _named_outputs(prediction)
        if outputs is not None:
            if path[0] not in outputs:
                raise ScoreError(
                    f"OnField: there is no output {path[0]!r} of the program; it gives {', '.join(map(str, outputs))}"
                )
            part, path = outputs[path[0]], path[1:]
        if path:
            if not isinstance(part, Variable):
                raise ScoreError(
                    f"OnField: {path[0]!r} is read of one Variable, got {outputs_in_words(part)}; have the program "
                    "return one, or a dict of several by name"
                )
            part = field(part, *path, default=self.default)
        for key in self.path:
            if isinstance(target, Mapping) or (isinstance(target, list) and isinstance(key, int)):
                target = _at(target, key)
            elif target is _NULL:
                target = None
        if target is _NULL:
            target = written(None) if takes_null(self) else None
        found: Variable = self._called[self.loss](part, target, inputs)
        return found


class OnMatch(OnPart):
    r"""A loss on the part of an answer that a regular expression finds, such as the text after "Answer:".

    Args:
        loss: scores the part.
        pattern: the regular expression; of several matches the last one counts. If it has a group, the part is that
            group; see `ops.extract`. If the target is a text with such a part (an answer with its reasoning), the loss
            gets that part of it; any other target, and the criteria of a `Rubric`, it gets unchanged.
        default: replaces the part if the answer has none; the critic is told so.

    Raises:
        TypeError: the loss is no module or function, or the pattern or default no text.
        ValueError: the pattern is no regular expression, or has several groups; or the loss is a `Weighted` with
            targets, which are fields of the example.

    Example:
        >>> loss = OnMatch(ExactMatch(), r"Answer: (.*)")
        >>> loss(Variable("Two and two.\nAnswer: 4", role="answer"), "4").data, loss(Variable("4"), "4").data
        (1, 0)
    """

    @names_told
    def __init__(self, loss: Callable[..., Any], pattern: str, *, default: str = "") -> None:
        super().__init__()
        _check_inner("OnMatch: its loss", loss)
        check_part("OnMatch", pattern, default)
        warn_of_endless("OnMatch", pattern)
        self.loss, self.pattern, self.default = loss, pattern, default
        self._called = CalledLosses()

    def extra_repr(self) -> str:
        """The pattern, and what stands for a part that is not there."""
        return f"pattern={self.pattern!r}" + (f", default={self.default!r}" if self.default else "")

    def forward(self, prediction: Variable, target: Any = None, inputs: Mapping[str, Any] | None = None) -> Variable:
        """Score the part.

        Raises:
            ScoreError: the prediction is no Variable.
        """
        if not isinstance(prediction, Variable):
            raise ScoreError(
                f"OnMatch: a part is found in one Variable, got {outputs_in_words(prediction)}; have the program "
                "return one, or a dict of several by name, of which nn.OnField(nn.OnMatch(...), name) scores one"
            )
        if not any(map(takes_criteria, losses_in(self.loss))):  # they are no answer with such a part
            if isinstance(target, str):
                target = self._part_of(target)
            elif isinstance(target, Variable):  # inside `func.vmap` it stands for many texts
                target = Compute.apply(self._part_of, target, target.role)
        found: Variable = self._called[self.loss](extract(prediction, self.pattern, self.default), target, inputs)
        return found

    def _part_of(self, target: Any) -> Any:
        part = last_match(self.pattern, target) if isinstance(target, str) else None
        return target if part is None else part


class Weighted(OneVariable):
    """One score from 0 to 1 of several losses: their weighted mean, each scaled by its own scale.

    The feedback of each loss is passed on unchanged; a satisfied loss gives none.

    Args:
        losses: by name.
        weights: by the same names, above 0; only their ratios count. None weighs all alike.
        targets: by the same names, the field of an example that holds the target of a loss; a loss that is not named
            gets no target. The `Weighted` is then called with the example, or a dict of these fields, in the place of
            the target, as the Trainer and `evaluate` do. Null in a field matches null in the answer, for a loss that is
            `OnField`. None gives all losses the same target.

    Raises:
        ValueError: there are none; a weight is missing, not above 0, or of no loss; or a loss does not say from where
            to where its scores go, so nobody knows what part of that one is: nn.Metric and nn.Judge take ``scale=``.
            Or a target is of no loss, a loss that needs one has none, or a loss is itself a `Weighted` with targets.
        TypeError: losses, weights or targets are no dict, a loss is no module or function, or a name in `targets` is no
            text.

    Example:
        >>> from textgrad_engine.nn import Metric
        >>> brief = Metric(lambda text, _: 10 - len(text), "brevity: a point for each letter under ten", scale=(0, 10))
        >>> loss = Weighted({"right": ExactMatch(), "brief": brief}, {"right": 3, "brief": 1})
        >>> round(loss(Variable("shipping"), "shipping").data, 3)  # 3 of 4 for what is right, and 2 tenths of 1 of 4
        0.8
        >>> queue, urgency = (OnField(ExactMatch(), name) for name in ("queue", "urgency"))
        >>> loss = Weighted({"queue": queue, "urgency": urgency}, targets={"queue": "team", "urgency": "priority"})
        >>> answer = Variable('{"queue": "billing", "urgency": "high"}')
        >>> loss(answer, {"mail": "My bill!", "team": "billing", "priority": "low"}).data
        0.5
    """

    scale = (0.0, 1.0)

    @names_told
    def __init__(
        self,
        losses: Mapping[str, Callable[..., Any]],
        weights: Mapping[str, float] | None = None,
        targets: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        check(Weighted.__init__, locals())
        weights = dict.fromkeys(losses, 1.0) if weights is None else weights
        if not losses or losses.keys() != weights.keys():
            raise ValueError(f"Weighted: each loss has a weight; got losses {list(losses)} and weights {list(weights)}")
        for name, weight in weights.items():
            if not is_number(weight) or not 0 < plain(weight) <= sys.float_info.max:
                raise ValueError(f"Weighted: the weight of {name!r} is a number above 0, got {weight!r}")
        self.weights = {name: plain(weights[name]) for name in losses}
        for name, loss in losses.items():
            _check_inner(f"Weighted: the loss {name!r}", loss)
        self.scales = {name: _scale_of(name, loss) for name, loss in losses.items()}
        self.by_name, self._called = dict(losses), CalledLosses()
        self.targets = None if targets is None else _checked_targets(losses, targets)
        for place, loss in enumerate(losses.values()):  # so that what is trained in them is found
            setattr(self, f"loss{place}", loss)

    def extra_repr(self) -> str:
        """The weights."""
        return f"weights={self.weights!r}"

    def _shown_parts(self) -> dict[str, Any]:
        return dict(self.by_name)

    @property
    def losses(self) -> tuple[Callable[..., Any], ...]:
        """The losses inside, in the order of their names in `weights` and `scales`."""
        return tuple(self.by_name.values())

    def forward(self, prediction: Any, target: Any = None, inputs: Mapping[str, Any] | None = None) -> Variable:
        """Score a prediction.

        Raises:
            ScoreError: the losses have targets of their own, and the target is no example with these fields.
        """
        parts = {
            name: self._called[loss](prediction, self._target_of(name, target), inputs)
            for name, loss in self.by_name.items()
        }
        if (heard := HEARD.get()) is not None:
            heard.append(parts)
        return weighted_mean(list(parts.values()), list(self.weights.values()), list(self.scales.values()), list(parts))

    def _target_of(self, name: str, given: Any) -> Any:
        """The target of one loss.

        Args:
            name: of the loss.
            given: the target that all are called with, or the example.
        """
        if self.targets is None:
            return given
        if not isinstance(given, Mapping):
            raise ScoreError(
                f"Weighted: its losses have targets of their own (targets={self.targets}), so it is called with the "
                f"example in the place of the target, as loss(answer, row); got {type(given).__name__} {given!r:.60}"
            )
        column = self.targets.get(name)
        if column is None:
            return None
        if column not in given:
            raise ScoreError(
                f"Weighted: the target of {name!r} is in the field {column!r} of the example, and that has "
                f"{', '.join(map(str, given)) or 'none'}"
            )
        return written(None) if given[column] is None and takes_null(self.by_name[name]) else given[column]


def _checked_targets(losses: Mapping[str, Callable[..., Any]], targets: Mapping[str, str]) -> dict[str, str]:
    """The field of each loss's target.

    Raises:
        ValueError: one is of no loss, or a loss needs one, or has several itself.
        TypeError: a name is no text.
    """
    if more := [name for name in targets if name not in losses]:
        raise ValueError(f"Weighted: targets names {more[0]!r}, and the losses are {', '.join(map(repr, losses))}")
    for name, column in targets.items():
        if not isinstance(column, str):
            raise TypeError(
                f"Weighted: targets names the field of an example that holds the target of {name!r}, such as 'label'; "
                f"got {type(column).__name__} {column!r:.60}"
            )
    for name, loss in losses.items():
        if name not in targets and any(map(needs_target, losses_in(loss))):
            raise ValueError(f"Weighted: the loss {name!r} needs a target; say in targets which field holds it")
    return dict(targets)


def _check_inner(which: str, loss: Any) -> None:
    """Check what is to be a loss inside of another one.

    Raises:
        TypeError: it is no module or function.
        ValueError: it is called with the example, and the outer one with a target.
    """
    if isinstance(loss, type) or not callable(loss):
        instance = f"; give an instance of it: {loss.__name__}(...)" if isinstance(loss, type) else ""
        raise TypeError(f"{which} must be a module or a function, got {told(loss)}{instance}")
    if isinstance(loss, Weighted) and loss.targets is not None:
        raise ValueError(f"{which} is a Weighted with targets; give targets= to the outermost one, for all its losses")


def takes_null(loss: Callable[..., Any]) -> bool:
    """Whether null is a target, of the field of an answer; it is no criteria of a `Rubric`.

    Example:
        >>> from textgrad_engine.nn import Rubric
        >>> takes_null(OnField(ExactMatch(), "name")), takes_null(ExactMatch()), takes_null(OnField(Rubric(), "name"))
        (True, False, False)
    """
    return isinstance(loss, OnField) and not any(map(takes_criteria, losses_in(loss)))


def losses_in(loss: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """The single losses that a loss is made of; itself where it is one.

    Example:
        >>> [type(each).__name__ for each in losses_in(Weighted({"label": OnField(ExactMatch(), "label")}))]
        ['ExactMatch']
    """
    if not isinstance(loss, OnPart | Weighted):
        yield loss
        return
    for each in loss.losses:
        yield from losses_in(each)


_NULL = object()


def scores_between(loss: Callable[..., Any]) -> tuple[float, float] | None:
    """From where to where the scores of a loss go; None where nobody knows.

    Example:
        >>> from textgrad_engine import nn
        >>> scores_between(nn.ExactMatch()), scores_between(nn.Judge("Is it polite?", scale=(1, 5)))
        ((0.0, 1.0), (1.0, 5.0))
    """
    if all(isinstance(each, ExactMatch) for each in losses_in(loss)):
        return 0.0, 1.0
    match getattr(loss, "scale", None):
        case (int() | float() as low, int() | float() as high) if low < high:
            return float(low), float(high)
    return None


def _scale_of(name: str, loss: Callable[..., Any]) -> tuple[float, float]:
    """From where to where the scores of one of several losses go.

    Raises:
        ValueError: it does not say.
    """
    found = scores_between(loss)
    if found is not None and math.isfinite(found[1] - found[0]):
        return found
    if any(isinstance(each, TextLoss) for each in losses_in(loss)):
        raise ValueError(f"Weighted: the loss {name!r} is a TextLoss, which gives words and no score; take nn.Judge")
    repair = "give it scale=(0, 1), or what they are"
    if not any(isinstance(each, Metric) for each in losses_in(loss)):
        repair = "write self.scale = (0, 1) in its __init__, or what they are"
    if not isinstance(loss, Module):
        repair = "nn.Metric(function, purpose, scale=(0, 1)) makes a loss of a function, with what they are"
    raise ValueError(f"Weighted: the loss {name!r} does not say from where to where its scores go; {repair}")


def _named_outputs(prediction: Any) -> Mapping[Any, Any] | None:
    """The outputs of a program that gives several by name; None of one that gives one value."""
    if isinstance(prediction, Mapping):
        return prediction
    if dataclasses.is_dataclass(prediction) and not isinstance(prediction, Variable | Module | type):
        return {each.name: getattr(prediction, each.name) for each in dataclasses.fields(prediction)}
    return None


def _at(target: Any, key: str | int) -> Any:
    """What stands at a place of a target; None where it has no such place, and `_NULL` where it is null there."""
    try:
        return _NULL if target[key] is None else target[key]
    except (KeyError, IndexError, TypeError):
        return None
