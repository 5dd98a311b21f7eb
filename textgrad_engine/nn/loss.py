"""Losses as modules: each gives one Variable, a score (higher is better) or a criticism, that backward can begin at."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.callables import signature_of
from textgrad_engine.checks import check
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.model import Model
from textgrad_engine.nn.metric_functions import names_inputs, needs_two, scoring, takes_target
from textgrad_engine.nn.module import OneVariable
from textgrad_engine.ops.criteria import criteria_of
from textgrad_engine.ops.evaluators import check_purpose, deterministic_evaluator
from textgrad_engine.ops.exact_match import exact_match_evaluator
from textgrad_engine.ops.images import MOST_IMAGES, checked_images
from textgrad_engine.ops.json_match import json_match
from textgrad_engine.ops.judges import Judging, judge_settings, judged_by
from textgrad_engine.ops.rubrics import checked_by, rubric_settings
from textgrad_engine.ops.scores import as_scale
from textgrad_engine.ops.text_loss import text_loss


def needs_target(loss: Callable[..., Any]) -> bool:
    """Whether a single loss cannot do without a target: its forward, or a metric's function, has no default for it.

    Example:
        >>> needs_target(ExactMatch()), needs_target(Metric(len, "length")), needs_target(Judge("Is it polite?"))
        (True, False, False)
    """
    if isinstance(loss, Metric):
        return needs_two(loss.fn)
    if isinstance(loss, Rubric):
        return takes_criteria(loss)
    forward = getattr(loss, "forward", None)
    parameters = [] if forward is None else list(signature_of(forward).parameters.values())
    second = parameters[1:2] if forward is not None and takes_target(forward) else []
    return any(each.default is inspect.Parameter.empty for each in second)


def takes_criteria(loss: Callable[..., Any]) -> bool:
    """Whether the target of a single loss is what it looks for in an answer, and not an answer.

    Example:
        >>> takes_criteria(Rubric()), takes_criteria(Rubric(["It is polite."])), takes_criteria(ExactMatch())
        (True, False, False)
    """
    return isinstance(loss, Rubric) and loss.criteria is None


class ExactMatch(OneVariable):
    """1 where the prediction is the target's text, else 0 (white space at the ends aside); see
    `ops.exact_match_evaluator`.

    Example:
        >>> ExactMatch()(Variable("billing"), "billing").data
        1
    """

    def forward(self, prediction: Variable, target: Variable | str) -> Variable:
        """Score a prediction."""
        return exact_match_evaluator(prediction, target)[0]


class Metric(OneVariable):
    """A score from a Python function; see `ops.deterministic_evaluator`.

    Args:
        fn: ``fn(prediction, target)`` returns a number (1, or the highest score of the scale, is full marks), or
            (number, what is wrong in words). The prediction is the answer as text, also where that is JSON. If it names
            ``inputs``, it gets a dict of the fields that the program was called with, as the Trainer and `evaluate`
            know them (for Variables their data, which is waited for). ``fn(prediction, inputs)`` and ``fn(prediction)``
            get no target. The critic is told that the target was expected, so put what must not be in an answer into
            ``inputs``. ``fn(*, prediction, target)`` is called by name, and ``fn(gold, pred)``, whose names say so,
            with the target first.
        purpose: what it checks, in words; the critic is told.
        success_fn: says of a score whether nothing needs to change; by default ``score >= 1``, and with a scale only
            the highest score does. One that takes a list of scores is first asked about all scores of a batch, as in
            `ops.deterministic_evaluator`.
        scale: the lowest and the highest score, such as ``(0, 10)``. Without it scores that are not between 0 and 1
            have no known end: an optimizer then takes the best that it has seen for right.

    Raises:
        TypeError: the purpose is no text, or the function cannot be called so.
        ValueError: the scale does not run from a lower to a higher score.

    Example:
        >>> def short(answer, target):
        ...     wrong = len(answer.split()) - target
        ...     return max(0, 1 - wrong / 10), f"{wrong} words too many"
        >>> Metric(short, "the length in words")(Variable("It is in Rome", role="answer"), 2).data
        0.8
    """

    @names_told
    def __init__(
        self,
        fn: Callable[..., Any],
        purpose: str,
        success_fn: Callable[[Any], bool] | None = None,
        scale: tuple[float, float] | None = None,
    ) -> None:
        super().__init__()
        scale = None if scale is None else as_scale(scale)
        check_purpose(purpose)
        check(Metric.__init__, locals() | {"scale": None})
        self.fn, self.purpose, self.success_fn, self.scale = fn, purpose, success_fn, scale
        self._called = self._read()

    def extra_repr(self) -> str:
        """The purpose, and the scale."""
        return f"{self.purpose!r}{f', scale={self.scale}' if self.scale else ''}"

    @property
    def reads_inputs(self) -> bool:
        """Whether the function names ``inputs``."""
        return self._function[-1]

    @property
    def _function(self) -> tuple[Callable[..., Any], Callable[..., Any], bool, bool]:
        if self._called[0] is not self.fn:  # it was given another one since
            self._called = self._read()
        return self._called

    def _read(self) -> tuple[Callable[..., Any], Callable[..., Any], bool, bool]:
        """The function, how it is called, and whether with target and inputs: to look costs more than most metrics."""
        return self.fn, scoring(self.fn), takes_target(self.fn), names_inputs(self.fn)

    def forward(self, prediction: Variable, target: Any = None, inputs: Mapping[str, Any] | None = None) -> Variable:
        """Score a prediction."""
        _, fn, targeted, reads_inputs = self._function
        if inputs is not None and reads_inputs:
            texts = {name: each.data if isinstance(each, Variable) else each for name, each in inputs.items()}
            fn = functools.partial(fn, inputs=texts)
        target = target if targeted else None
        return deterministic_evaluator(prediction, target, fn, self.purpose, self.success_fn, scale=self.scale)[0]


class JSONMatch(Metric):
    """1 where the answer is JSON with the value that is expected, else 0; the critic is told where they differ.

    The order of an object's fields does not count. Texts, numbers and truth values in it are compared as `ExactMatch`
    compares them. The target is a dict or a list, or a text that holds one, as in a ``.csv``. An answer that calls
    tools which are no functions is the list of its calls, each with ``"name"`` and ``"arguments"``.

    Args:
        any_order: whether the order of lists does not count, as of tags.
        graded: whether an answer that differs scores the share of right values among all that are expected or given;
            otherwise it scores 0.

    Raises:
        TypeError: one is no truth value.

    Example:
        >>> JSONMatch()(Variable('{"to": "Rome", "day": 3}', role="answer"), {"day": 3, "to": "Rome"}).data
        1.0
        >>> JSONMatch(any_order=True)(Variable('["late", "broken"]', role="answer"), ["broken", "late"]).data
        1.0
        >>> JSONMatch(graded=True)(Variable('{"to": "Rome", "day": 4}', role="answer"), {"day": 3, "to": "Rome"}).data
        0.5
    """

    @names_told
    def __init__(self, *, any_order: bool = False, graded: bool = False) -> None:
        check(JSONMatch.__init__, locals())
        of_lists = ", lists in any order" if any_order else ""
        how = "how much of it is the JSON that is expected" if graded else "whether it is the JSON that is expected"
        compare = functools.partial(json_match, any_order=any_order, graded=graded)
        super().__init__(compare, f"{how}{of_lists}", scale=(0, 1))
        self.any_order, self.graded = any_order, graded

    def forward(self, prediction: Variable, target: Any = None, inputs: Mapping[str, Any] | None = None) -> Variable:
        """Score a prediction.

        Raises:
            TypeError: there is no target.
        """
        if target is None:
            raise TypeError(
                "JSONMatch needs a target, got None: does the example have a field for it? Where null is the right "
                'answer, give the text "null"'
            )
        return super().forward(prediction, target, inputs)

    def extra_repr(self) -> str:
        """How values are compared."""
        return ", ".join([f"{name}=True" for name in ("any_order", "graded") if getattr(self, name)])


class Judge(OneVariable):
    """A score that a model gives by criteria in words; see `ops.judge`.

    The Trainer and `evaluate` show it the prediction, the target if there is one, and the fields of the example that
    the program was called with, images among them.

    Args:
        instructions: the criteria.
        scale: the lowest and the highest score.
        success_fn: says of a score whether nothing needs to change; by default only the highest score does. One
            that takes a list of scores is first asked about all scores of a batch, as in `ops.judge`.
        model: asks this model; None stands for the judge of `use_models`.
        eval_mode: False sends feedback to the instructions instead of the prediction, to make the judge better.
        images: how many images it is shown at most; 0 for a judge that reads none, who is told where they are.

    Raises:
        TypeError: a setting is of a wrong kind.
        ValueError: the scale does not run from a lower to a higher score, or `images` is below 0.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> model = ScriptedModel([{"score": 4, "explanation": "No greeting."}])
        >>> judge = Judge("Is it polite?", scale=(1, 5), model=model)
        >>> judge(Variable("Pay at once, please.", role="reply")).data
        4.0
    """

    @names_told
    def __init__(
        self,
        instructions: str | Variable,
        scale: tuple[float, float] = (0, 1),
        success_fn: Callable[[float], bool] | None = None,
        model: str | Model | None = None,
        eval_mode: bool = True,
        images: int = MOST_IMAGES,
    ) -> None:
        super().__init__()
        scale = as_scale(scale)
        self.images = checked_images(images, "images")
        check(Judge.__init__, locals() | _batch_of(instructions))
        self.instructions, self.scale, self.success_fn, self.model = instructions, scale, success_fn, model
        self.eval_mode = eval_mode
        self._settings = judge_settings(model, scale)

    def extra_repr(self) -> str:
        """The criteria, where they are no part, and the scale."""
        return f"{f'{self.instructions!r}, ' if isinstance(self.instructions, str) else ''}scale={self.scale}"

    def forward(
        self, prediction: Variable, target: Variable | str | None = None, inputs: Mapping[str, Any] | None = None
    ) -> Variable:
        """Score a prediction."""
        settings = self._settings = judge_settings(self.model, self.scale, self._settings)
        how = Judging(settings, self.scale, self.images, self.success_fn, sum, self.eval_mode)
        return judged_by(how, prediction, self.instructions, target, inputs)[0]


class Rubric(OneVariable):
    """The share of several criteria that a model finds met, each checked by itself; see `ops.rubric`.

    The critic is told which are not met, and why. The score of one call has as many steps as there are criteria, so it
    distinguishes answers to which a `Judge`, with one number for all, may give the same. The Trainer and `evaluate`
    show the model what they show a `Judge`.

    Args:
        criteria: texts, or dicts with ``"criterion"`` and ``"points"`` (default 1; below 0 for what an answer must not
            do). None: each example has its own, as its target.
        model: asks this model; None stands for the judge of `use_models`.
        images: how many images it is shown at most; 0 for a model that reads none, who is told where they are.

    Raises:
        TypeError: a setting is of a wrong kind.
        ValueError: there are no criteria, or none with points above 0; or `images` is below 0.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> marks = {"1": {"explanation": "It is.", "met": True}, "2": {"explanation": "Nothing.", "met": False}}
        >>> loss = Rubric(["It is polite.", "It says what happens next."], model=ScriptedModel([marks, marks]))
        >>> loss(Variable("We are sorry.", role="reply")).data
        0.5
        >>> own = [{"criterion": "It is polite.", "points": 3}, {"criterion": "It names the shop.", "points": 1}]
        >>> Rubric(model=loss.model)(Variable("We are sorry.", role="reply"), own).data
        0.75
    """

    scale = (0.0, 1.0)

    @names_told
    def __init__(
        self,
        criteria: Sequence[str | Mapping[str, Any]] | str | None = None,
        *,
        model: str | Model | None = None,
        images: int = MOST_IMAGES,
    ) -> None:
        super().__init__()
        self.images = checked_images(images, "images")
        check(Rubric.__init__, {"model": model})
        self.criteria, self.model = criteria, model
        self._settings = rubric_settings(model)

    @property
    def criteria(self) -> Sequence[str | Mapping[str, Any]] | str | None:
        """The criteria, None where each example has its own; what is set is checked, and a copy of what was given."""
        return self._criteria

    @criteria.setter
    def criteria(self, criteria: Sequence[str | Mapping[str, Any]] | str | None) -> None:
        if criteria is not None:
            _checked_criteria(criteria)
        self._criteria = copy.deepcopy(criteria)

    def extra_repr(self) -> str:
        """How many criteria there are."""
        if self.criteria is None:
            return "each example's own"
        count = len(criteria_of(self.criteria))
        return f"{count} {'criterion' if count == 1 else 'criteria'}"

    def forward(self, prediction: Variable, target: Any = None, inputs: Mapping[str, Any] | None = None) -> Variable:
        """Score a prediction.

        Args:
            prediction: the text to look at.
            target: the criteria, where the examples have their own; else a reference answer, if there is one.
            inputs: what the prediction was made from.

        Raises:
            TypeError: the criteria are the target, and there is none.
            ScoreError: they are the target, and it is no criteria.
        """
        if self.criteria is None and target is None:
            raise TypeError(
                "Rubric() takes the criteria from the target, got None: does the example have a field for them? The "
                "same for all examples are nn.Rubric([...])"
            )
        of_all = () if self.criteria is None else criteria_of(self.criteria)
        criteria, reference = (of_all, target) if of_all else (target, None)
        settings = self._settings = rubric_settings(self.model, self._settings)
        return checked_by(settings, prediction, criteria, reference, inputs, self.images, sum, of_all)[0]


class TextLoss(OneVariable):
    """What a model finds wrong with a prediction, in words; "" for nothing. It is no score; see `ops.text_loss`.

    What the prediction answers is not put into the instructions, which are trusted: ``loss(answer, inputs={"question":
    question})`` shows it as material.

    Args:
        instructions: what to look at.
        model: asks this model; None stands for the judge of `use_models`.
        images: how many images among the inputs it is shown at most; 0 for a model that reads none.

    Raises:
        TypeError: a setting is of a wrong kind.
        ValueError: `images` is below 0.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> critic = ScriptedModel([{"nothing_wrong": False, "criticism": "It does not say why."}])
        >>> answer = Variable("4", role="answer", requires_grad=True)
        >>> TextLoss("Does it say why?", model=critic)(answer, inputs={"question": "2 + 2?"}).backward()
        >>> answer.grad[0].data
        'It does not say why.'
    """

    @names_told
    def __init__(
        self, instructions: str | Variable, model: str | Model | None = None, images: int = MOST_IMAGES
    ) -> None:
        super().__init__()
        check(TextLoss.__init__, locals() | {"images": 0} | _batch_of(instructions))
        self.instructions, self.model = instructions, model
        self.images = checked_images(images, "images")

    def forward(
        self, prediction: Variable, target: Variable | str | None = None, inputs: Mapping[str, Any] | None = None
    ) -> Variable:
        """Criticize a prediction."""
        return text_loss(
            prediction, self.instructions, target=target, inputs=inputs, model=self.model, images=self.images
        )


def _checked_criteria(criteria: Any) -> None:
    """Refuse what are no criteria.

    Raises:
        TypeError, ValueError: as `ops.criteria.criteria_of`.
    """
    try:
        criteria_of(criteria)
    except (TypeError, ValueError) as error:
        raise type(error)(f"the criteria of a Rubric: {error}") from None


def _batch_of(instructions: Any) -> dict[str, Any]:
    """What to look at instead of instructions for each entry of a batch, which are looked at in the call."""
    return {"instructions": ""} if isinstance(instructions, list) else {}
