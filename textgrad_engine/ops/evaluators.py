"""Losses: what scores a prediction, and says in words what is wrong with it. Those that ask a model are in `judges.py`.

An evaluator has two outputs, the score (higher is better) and the explanation. A backward pass may begin at either,
without a gradient; a score that counts as a success sends a true zero.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from textgrad_engine import dispatch, fences, templates
from textgrad_engine.autograd import Function, Source, Variable, is_grad_enabled, is_seed
from textgrad_engine.errors import ScoreError
from textgrad_engine.llm.conversation import is_conversation
from textgrad_engine.ops.entries import stacked
from textgrad_engine.ops.model_call import ask
from textgrad_engine.ops.own_scores import outcome_of
from textgrad_engine.ops.pass_on import Compute, data_of
from textgrad_engine.ops.scores import Reduction, as_scale, reduced, successes
from textgrad_engine.ops.what_if import described_change, edited_text
from textgrad_engine.plain_values import as_own, as_python
from textgrad_engine.wording import a_class, told


class Evaluator(Function):
    """Base: outputs (score, explanation); the explanation is the feedback, empty for a success."""

    num_outputs = 2
    starts_backward = True

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save score and explanation; feedback on them leads to the prediction, and nowhere else."""
        if not ctx.needs_input_grad[0]:
            ctx.mark_non_differentiable(*output)
        ctx.count, ctx.of_leaf = len(inputs), is_leaf(inputs[0])
        ctx.save_for_backward(*output, inputs[0] if ctx.of_leaf else None)  # what is said is said of its text as it is

    @staticmethod
    def output_role(prediction: Variable, *rest: Any) -> tuple[str, str]:
        """The roles of score and explanation."""
        return roles_of(prediction)

    @staticmethod
    def backward(ctx: Any, *grad_outs: Variable) -> Any:
        """Say to the prediction what the explanation says."""
        score, explanation, _ = ctx.saved_variables
        return (feedback_of(score, explanation, grad_outs, ctx.of_leaf), *[None] * (ctx.count - 1))


def evaluated_again(evaluator: type[Evaluator], ctx: Any, edits: Sequence[Variable | None]) -> tuple[Variable, ...]:
    """What would change in score and explanation: a model makes the described edits, and the evaluator is run again.

    The score of a text that is only described cannot be known; so the change is that of one text which fits the
    description.
    """
    edited = [edited_text(value, edit, ask) for value, edit in zip(ctx.primals, edits)]
    outputs = ctx.saved_variables[: evaluator.num_outputs]
    return tuple([described_change(now, then) for now, then in zip(outputs, evaluator.apply(*edited), strict=True)])


def roles_of(prediction: Any) -> tuple[str, str]:
    """The roles of score and explanation: they name what is evaluated."""
    about = prediction.role if isinstance(prediction, Variable) and prediction.role else "prediction"
    return f"score of the {about}", f"feedback on the {about}"


def is_leaf(prediction: Any) -> bool:
    """Whether what is evaluated is a leaf, so that what is said is said of a text that may be trained itself."""
    return isinstance(prediction, Variable) and prediction.is_leaf


def feedback_of(
    score: Variable | None, explanation: Variable, grad_outs: Sequence[Variable], of_leaf: bool
) -> list[Variable] | None:
    """The explanation, and behind it what was said about the evaluator's own outputs.

    Args:
        score: the score, if there is one.
        explanation: what is wrong.
        grad_outs: the gradients of the evaluator's outputs.
        of_leaf: whether the prediction is a leaf.
    """
    said: list[Variable] = []
    shares: tuple[tuple[str, float], ...] = ()
    for grad in grad_outs:
        items = grad.grad
        if items and not is_seed(grad):
            said += items
            continue
        for item in items:
            if item.source is not None:
                shares += item.source.shares
    if explanation._layer is not None or (is_grad_enabled() and explanation.requires_grad):
        item = Compute.apply(_same, explanation, _FEEDBACK_ROLE)  # keeps its graph
    elif explanation._says_nothing():
        return said or None
    else:
        item = Variable(explanation.data, role=_FEEDBACK_ROLE)
    number = None if score is None or isinstance(explanation.data, list) else score.data  # no entry's own score
    scored = float(number) if isinstance(number, int | float) else None
    item.source = Source(score=scored, direct=of_leaf, shares=tuple(dict.fromkeys(shares)) if shares else ())
    return [item, *said]


_FEEDBACK_ROLE = "feedback of the evaluator"


def _same(text: Any) -> Any:
    return text


def count_of(prediction: Any) -> int | None:
    """How many entries a batch of predictions has, None for a single one."""
    data = data_of(prediction)
    return len(data) if isinstance(data, list) else None


def entries_of(value: Any, count: int | None) -> list[Any]:
    """A value as the entries of a batch; those of an array or a column of another library as they come from it."""
    data = data_of(value)
    if count is None:
        return [data]
    if isinstance(data, list) or isinstance(as_python(data), list):
        if len(data) != count:
            raise ValueError(f"a batch of {count} predictions has {len(data)} targets")
        return [data_of(entry) for entry in data]
    return [data] * count


def one_batch(prediction: Any) -> Any:
    """A list with Variables in it as one Variable, so that feedback on the batch reaches its entries."""
    refuse_several_outputs(prediction)
    if isinstance(prediction, list) and any(isinstance(entry, Variable) for entry in prediction):
        return stacked([entry if isinstance(entry, Variable) else Variable(entry) for entry in prediction])
    return prediction


def refuse_several_outputs(prediction: Any) -> None:
    """Refuse what is neither one value nor a batch, such as the several outputs of a program, or its messages.

    Raises:
        ScoreError: it is that; the outputs are named.
    """
    if not isinstance(prediction, Variable | str | int | float | list):
        raise ScoreError(
            f"this loss scores one Variable, got {outputs_in_words(prediction)}; have the program return one Variable, "
            "or a dict of several by name, of which nn.OnField(loss, name) scores one, in a config field = name; a "
            "loss that reads several of them is an nn.Module of your own (docs/porting.md)"
        )
    if are_messages(prediction):  # each would be scored by itself, and the scores added up
        raise ScoreError(
            f"this loss scores one text, got a conversation of {len(prediction)} messages; have the program return it "
            'as one, and each turn hears of it: ops.join([ops.format("{role}: {content}", **message) for message in '
            'messages], "\\n")'
        )


def are_messages(prediction: Any) -> TypeGuard[list[Any]]:
    """Whether a prediction is a conversation, and no batch; a list of records may have a field "role", too."""
    return is_conversation(prediction) and all("content" in message for message in prediction)


def outputs_in_words(value: Any) -> str:
    """What a program gave, with the names of its outputs.

    Example:
        >>> outputs_in_words({"answer": 1, "rationale": 2}), outputs_in_words((1, 2))
        ('a dict of answer, rationale', 'a tuple of 2')
    """
    kind = a_class(type(value))
    if dataclasses.is_dataclass(value):
        return f"{kind} of {', '.join(field.name for field in dataclasses.fields(value))}"
    if isinstance(value, Mapping):
        return f"{kind} of {', '.join(map(str, value))}"
    return f"{kind} of {len(value)}" if isinstance(value, tuple) else f"{kind}"


def written(value: Any) -> str:
    """How a value is compared as text, and shown: what is no text or number as JSON.

    Example:
        >>> written(" a"), written(True), written(3.0), written({"order": "A1"})
        (' a', 'true', '3.0', '{"order": "A1"}')
    """
    value = value if isinstance(value, str) else as_own(value)
    if isinstance(value, bool | dict | list) or value is None:
        return json.dumps(value, ensure_ascii=False, default=_in_json)
    return fences.as_text(value)


def _in_json(value: Any) -> str:
    return fences.as_text(value) if isinstance(value, set | frozenset) else str(value)


def beside_other(value: Any) -> str:
    """A value as it is shown beside one that it was compared with: as `written`, and equal numbers alike.

    Example:
        >>> beside_other(12.0), beside_other(12), beside_other("12.0"), beside_other(0.5)
        ('12', '12', '12.0', '0.5')
    """
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return written(int(value) if whole else value)


def scored(prediction: Any, scores: list[Any], texts: list[str], count: int | None, reduction: Reduction) -> Any:
    """Score and explanation of a prediction, made of those of its entries; `count` is None where it is no batch."""
    roles = roles_of(prediction)
    score = scores[0] if count is None else reduced(scores, reduction)
    return Variable(score, role=roles[0]), Variable(texts[0] if count is None else texts, role=roles[1])


class _Deterministic(Evaluator):
    @staticmethod
    async def forward(
        prediction: Variable,
        target: Any,
        eval_fn: Callable[..., Any],
        purpose: str,
        success_fn: Callable[[Any], bool] | None,
        reduction: Reduction,
        scale: tuple[float, float] | None,
    ) -> Any:
        count = count_of(prediction)
        pairs = list(zip(entries_of(prediction, count), entries_of(target, count)))
        arguments = [(got,) if target is None else (got, wanted) for got, wanted in pairs]
        calls = [dispatch.caught(outcome_of, eval_fn, purpose, each, scale) for each in arguments]
        outcomes = await asyncio.gather(*calls)
        if errors := [outcome for outcome in outcomes if isinstance(outcome, BaseException)]:
            if errors[1:]:
                errors[0].add_note(f"so did {len(errors) - 1} more of {len(pairs)} entries, next {errors[1]!r:.200}")
            raise errors[0]
        scores, remarks = [score for score, _ in outcomes], [remark for _, remark in outcomes]
        low, full = (None, 1) if scale is None else scale
        good = [score >= full for score in scores] if success_fn is None else successes(scores, success_fn)
        high = full if low is not None or success_fn is None else None
        prompt = templates.load("metric")
        texts = [
            ""
            if fine
            else prompt.render(
                purpose=purpose,
                score=in_digits(score, full),
                low=None if low is None else in_digits(low),
                high=None if high is None else in_digits(high),
                must_pass=success_fn is not None,
                prediction=beside_other(got),
                target=None if wanted is None else beside_other(wanted),
                explanation=remark,
            )
            for fine, score, (got, wanted), remark in zip(good, scores, pairs, remarks)
        ]
        return scored(prediction, scores, texts, count, reduction)

    @staticmethod
    def jvp(ctx: Any, *edits: Variable | None) -> Any:
        return evaluated_again(_Deterministic, ctx, edits)


def in_digits(number: float, full: float | None = None) -> str:
    """A number as it is written: with four digits behind the point, and never as full marks where it is less.

    Example:
        >>> in_digits(0.1 + 0.2), in_digits(2 / 3), in_digits(1234567.89), in_digits(0.00001234567)
        ('0.3', '0.6667', '1234567.89', '1.235e-05')
        >>> in_digits(0.99996, 1), in_digits(0.9999999999, 1)
        ('0.99996', '0.9999999999')
    """
    short = f"{round(number, 4):.12g}" if abs(number) >= 1 else f"{number:.4g}"
    return str(number) if full is not None and float(short) >= full > number else short


def check_purpose(purpose: object) -> None:
    """Refuse what is no text in words.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(purpose, str):
        why = f'a template string (t"…"): {found}' if (found := fences.unfilled(purpose)) else repr(purpose)[:60]
        raise TypeError(f"a metric's purpose is a text that says what it checks, got {why}")


def deterministic_evaluator(
    prediction: Variable,
    target: Any,
    eval_fn: Callable[..., Any],
    eval_fn_purpose: str,
    success_fn: Callable[[Any], bool] | None = None,
    reduction_fn: Reduction = sum,
    scale: tuple[float, float] | None = None,
) -> tuple[Variable, Variable]:
    """Score a prediction with a Python function, which runs in a thread (or on the loop when it is ``async def``).

    Args:
        prediction: a text, or a batch of texts: a Variable whose data is a list, or a list of Variables.
        target: what it is compared with; None for a function that takes the prediction alone.
        eval_fn: ``eval_fn(prediction, target)`` gives a number (1 is full marks, or the end of the scale; numpy's and
            torch's count, too), or a pair of the number and a text that says what is wrong. Called once for each entry
            of a batch, for all of them at the same time.
        eval_fn_purpose: what the function checks, in words; the critic is told.
        success_fn: says of a score whether nothing needs to change; by default ``score >= 1``, and with a scale only
            the highest score does. One written for afnio, which takes a list of scores (and raises TypeError for a
            number), is first asked about all scores of a batch: if it says True, nothing needs to change for any entry.
            If not, it is asked about each entry by itself, in a list with one score.
        reduction_fn: makes one score of a batch's scores; None gives the list of them.
        scale: the lowest and the highest score of one entry; None where nobody knows.

    Returns:
        (score, explanation), both pending; reading them raises ScoreError where the function gave no number, or one
        outside of the scale.

    Raises:
        TypeError: the prediction is several outputs, or the purpose is no text.
        ValueError: the scale does not run from a lower to a higher score.

    Example:
        >>> def short(text):
        ...     return len(text) <= 5
        >>> score, _ = deterministic_evaluator(Variable("four"), None, short, "at most five letters")
        >>> score.data
        True
    """
    prediction = one_batch(prediction)
    scale = None if scale is None else as_scale(scale)
    check_purpose(eval_fn_purpose)
    for name, function in (("eval_fn", eval_fn), ("success_fn", success_fn), ("reduction_fn", reduction_fn)):
        if function is not None and not callable(function):
            raise TypeError(f"deterministic_evaluator: {name} must be a function, got {told(function)}")
    score, explanation = _Deterministic.apply(
        prediction, target, eval_fn, eval_fn_purpose, success_fn, reduction_fn, scale
    )
    return score, explanation
