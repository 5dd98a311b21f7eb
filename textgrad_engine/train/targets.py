"""What a loss is called with beside the prediction: the target of an example, and what may be made of that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from textgrad_engine.errors import DataError
from textgrad_engine.nn import ChatCompletion, ExactMatch, JSONMatch, Judge, Metric, Rubric
from textgrad_engine.nn.loss import needs_target, takes_criteria
from textgrad_engine.nn.scores import OnField, OnMatch, Weighted, losses_in, takes_null
from textgrad_engine.ops.criteria import criteria_of
from textgrad_engine.ops.evaluators import are_messages
from textgrad_engine.ops.extract import last_match
from textgrad_engine.ops.fillers import is_nan
from textgrad_engine.slots import composed
from textgrad_engine.train.fields import composed_fields, fields_named_by, lacking
from textgrad_engine.train.prediction import said_in

_BY_VALUE = (ExactMatch, JSONMatch)
"""The losses that compare with the value itself; one that is derived from them may do otherwise."""


def inputs_and_target(
    program: Callable[..., Any], loss: Callable[..., Any], target: str
) -> Callable[[dict[str, Any], str], tuple[dict[str, Any], Any]]:
    """How an example becomes what a program is called with, and the target that its loss is called with.

    Args:
        program: as for `fields_named_by`.
        loss: as for `target_for`.
        target: the name of the target's field.

    Returns:
        A function of an example and its id.

    Raises:
        DataError: (from the function) as for `fields_named_by` and `target_for`; or the program would be shown the
            target.

    Example:
        >>> from textgrad_engine import nn
        >>> read = inputs_and_target(nn.ChatCompletion("{ticket}"), nn.ExactMatch(), "queue")
        >>> read({"ticket": "no signal", "queue": "technical"}, "train:1")
        ({'ticket': 'no signal'}, 'technical')
    """
    pick, target_of = fields_named_by(program), target_for(loss, target)
    held = [composed(field) for field in target_fields(loss, target)]

    def read(example: dict[str, Any], name: str) -> tuple[dict[str, Any], Any]:
        fields, wanted = pick(example, name), target_of(example, name)
        shown = None if wanted is None else next((field for field in held if field in fields), None)
        if shown is not None:
            raise DataError(
                f"example {name!r}: the program is shown {shown!r}, and that field holds the target, so it would be "
                f"given the answer; take {shown!r} out of the program's forward or template, or name another target "
                "(a source that a metric compares with may stand in the data twice, under two names)"
            )
        return fields, wanted

    return read


def target_fields(loss: Callable[..., Any], target: str) -> tuple[str, ...]:
    """The fields of an example that hold targets: the one, or those of the parts of an `nn.Weighted` with ``targets``.

    Args:
        loss: a Module or any callable.
        target: the name of the target's field, where the loss has one target.

    Raises:
        DataError: no part of the loss has its target in the field that `target` names.
    """
    if not isinstance(loss, Weighted) or loss.targets is None:
        return (target,)
    fields = tuple(dict.fromkeys(loss.targets.values()))
    if target != "target" and target not in fields:
        raise DataError(
            f"target={target!r} says nothing, as nn.Weighted(targets=...) says where each target is: in "
            f"{', '.join(map(repr, fields))}; take one of the two out"
        )
    return fields


def answer_in(program: Callable[..., Any], loss: Callable[..., Any], wanted: Any) -> Any:
    """What an answer should be by the target of an example, as it may be shown to a model; None where nobody knows.

    Several targets by column are no answer: it may have other names for them, and numbers where a table has texts. Nor
    are the criteria of an `nn.Rubric`, the field of an answer that is JSON, or a part of it without what is around it.

    Args:
        program: what answers; one of one's own may give several outputs by name, of which the field is a whole one.
        loss: a Module or any callable.
        wanted: the target.

    Example:
        >>> from textgrad_engine import nn
        >>> chat, loss = nn.ChatCompletion("{q}"), nn.OnMatch(nn.ExactMatch(), "Answer: (.*)")
        >>> answer_in(chat, nn.ExactMatch(), "4"), answer_in(chat, nn.Rubric(), "It greets.")
        ('4', None)
        >>> answer_in(chat, loss, "4"), answer_in(chat, loss, "It is even. Answer: 4")
        (None, 'It is even. Answer: 4')
    """
    if any(map(takes_criteria, losses_in(loss))):
        known = False
    elif isinstance(loss, Weighted):
        known = loss.targets is None and all(answer_in(program, each, wanted) is not None for each in loss.losses)
    elif isinstance(loss, OnMatch):
        known = isinstance(wanted, str) and last_match(loss.pattern, wanted) is not None
    elif isinstance(loss, OnField) and isinstance(program, ChatCompletion):
        known = not is_field(loss, wanted)
    else:
        known = True
    return wanted if known else None


def is_field(loss: Callable[..., Any], wanted: Any) -> bool:
    """Whether a target is but a field of an answer that is one text.

    Args:
        loss: a Module or any callable.
        wanted: the target.

    Example:
        >>> from textgrad_engine import nn
        >>> loss = nn.OnField(nn.ExactMatch(), "label")
        >>> is_field(loss, "late"), is_field(loss, {"why": "", "label": "late"}), is_field(nn.ExactMatch(), "late")
        (True, False, False)
    """
    if isinstance(loss, Weighted):
        return any(is_field(each, wanted) for each in loss.losses)
    return isinstance(loss, OnField) and not isinstance(wanted, Mapping if isinstance(loss.path[0], str) else list)


def target_for(loss: Callable[..., Any], target: str) -> Callable[[dict[str, Any], str], Any]:
    """How an example gives the target that a loss is called with.

    Args:
        loss: a Module or any callable. A Module whose forward has no default for the target needs one, and so does a
            Metric whose function has none for its second argument. An `nn.Weighted` with ``targets`` is called with
            a dict of the fields that these name.
        target: the name of the target's field.

    Returns:
        A function of an example and its id; it gives None for an example without a target.

    Raises:
        DataError: as `target_fields`; (from the function) the example has no such field, and the name is not the
            default one or the loss needs a target; or what a rubric takes for criteria is none.
    """
    fields = target_fields(loss, target)
    if isinstance(loss, Weighted) and loss.targets is not None:
        nullable: dict[str, list[bool]] = {field: [] for field in fields}
        for name, field in loss.targets.items():
            nullable[field].append(takes_null(loss.by_name[name]))
        picks = {field: _picked(field, needed=True, nullable=all(nullable[field])) for field in fields}
        target_of = lambda example, name: {field: pick(example, name) for field, pick in picks.items()}  # noqa: E731
    else:
        target_of = _picked(target, needed=target != "target" or any(map(needs_target, losses_in(loss))))
    return _empty_refused(loss, _criteria_checked(loss, target_of, target), target)


def _criteria_checked(
    loss: Callable[..., Any], target_of: Callable[[dict[str, Any], str], Any], field: str
) -> Callable[[dict[str, Any], str], Any]:
    """`target_of`, which refuses a target that is to be criteria and is none, before anything is paid for.

    Of a loss on a field of an answer a target may hold them further in, so these are looked at in the call.

    Args:
        loss: a Module or any callable.
        target_of: gives the target of an example with an id, or a dict of several by field.
        field: the name of the field, where it is one.

    Returns:
        The same; it raises DataError, too.
    """
    places = [(at, part) for each, at, part in _by_field(loss, field) if takes_criteria(_without_part(each))]
    if not places:
        return target_of

    def checked(example: dict[str, Any], name: str) -> Any:
        found = target_of(example, name)
        for at, part in places:
            wanted = part(found)
            of_batch = isinstance(wanted, list) and wanted and all(isinstance(each, list) for each in wanted)
            try:
                for each in wanted if of_batch else [wanted]:
                    criteria_of(each)
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"example {name!r} has no criteria in the field {at!r}: {error}; the same for all "
                    "examples are nn.Rubric([...])"
                ) from None
        return found

    return checked


def _by_field(loss: Callable[..., Any], field: str) -> list[tuple[Callable[..., Any], str, Callable[[Any], Any]]]:
    """The losses that are called with what a field of an example holds, with its name; one is the loss itself.

    Behind these how the target of each is found in what `target_for` gives.
    """
    if isinstance(loss, Weighted) and loss.targets is not None:
        return [(loss.by_name[name], at, itemgetter(at)) for name, at in loss.targets.items()]
    return [(loss, field, lambda found: found)]


def _empty_refused(
    loss: Callable[..., Any], target_of: Callable[[dict[str, Any], str], Any], field: str
) -> Callable[[dict[str, Any], str], Any]:
    """`target_of`, which refuses NaN inside of an object or a list that answers are compared with: nothing equals it.

    Args:
        loss: a Module or any callable.
        target_of: gives the target of an example with an id, or a dict of several by field.
        field: the name of the field, where it is one.

    Returns:
        The same; it raises DataError, too.
    """
    if not any(type(each) in _BY_VALUE for each in losses_in(loss)):
        return target_of
    losses = _by_field(loss, field)

    def checked(example: dict[str, Any], name: str) -> Any:
        found = target_of(example, name)
        for each, at, part in losses:
            for path, compared in _compared(each, part(found)):
                if (empty := _nan_in(compared, path)) is not None:
                    place, nan = empty
                    raise DataError(
                        f"example {name!r} has {nan} at {', '.join(map(repr, place))} of the field {at!r}, as tables "
                        "have it in an empty field, and no answer is equal to it; give it a value, or None where null "
                        "is right, or leave the example out"
                    )
        return found

    return checked


def _compared(
    loss: Callable[..., Any], wanted: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The parts of a target that answers are compared with, and where in it they stand."""
    if type(loss) in _BY_VALUE:
        yield path, wanted
    elif isinstance(loss, Weighted):
        for each in loss.losses:
            yield from _compared(each, wanted, path)
    elif isinstance(loss, OnMatch):
        yield from _compared(loss.loss, wanted, path)
    elif isinstance(loss, OnField):
        for key in loss.path:
            if isinstance(wanted, Mapping) or (isinstance(wanted, list) and isinstance(key, int)):
                held: Any = wanted
                try:
                    wanted, path = held[key], (*path, key)
                except (KeyError, IndexError):  # which is told when it is called with it
                    return
        yield from _compared(loss.loss, wanted, path)


def _nan_in(value: Any, path: tuple[str | int, ...]) -> tuple[tuple[str | int, ...], Any] | None:
    """Where NaN is inside of a target, and how it is written there; None where it is not, or is the target itself."""
    if isinstance(value, Mapping | list):
        entries = value.items() if isinstance(value, Mapping) else enumerate(value)
        return next((found for key, each in entries if (found := _nan_in(each, (*path, key)))), None)
    return (path, value) if path and is_nan(value) else None


def _without_part(loss: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(loss, OnMatch):
        loss = loss.loss
    return loss


def _picked(target: str, *, needed: bool, nullable: bool = False) -> Callable[[dict[str, Any], str], Any]:
    """How an example gives what one field holds.

    Args:
        target: the name of the field.
        needed: whether there must be something in it.
        nullable: whether that may be null.
    """
    target = composed(target)

    def pick(example: dict[str, Any], name: str) -> Any:
        example = composed_fields(example, name)
        found = example.get(target)
        if needed and is_nan(found):
            raise DataError(lacking(example, name, target, " for the target"))
        if needed and found is None and not (nullable and target in example):
            hint = "; target= says which field holds it" if target == "target" and target not in example else ""
            raise DataError(lacking(example, name, target, " for the target") + hint)
        return found

    return pick


def counting_entries(loss: Callable[..., Any]) -> Callable[[str, Any, Any], int]:
    """What counts the entries of a prediction that is a batch: of what a loss adds up of them, an example has the mean.

    Each entry has a target of its own. A loss other than those of `nn` makes one score of a batch as it likes.

    Args:
        loss: a Module or any callable.

    Returns:
        A function of an example's id, its prediction, which is waited for, and its target. It gives how many scores
        were added up for the example.

    Raises:
        DataError: (from the function) it is a batch of several, and the target is none of as many entries.

    Example:
        >>> from textgrad_engine import Variable, nn
        >>> counting_entries(nn.ExactMatch())("train:1", Variable(["new", "old"]), ["new", "vip"])
        2
    """
    adds = any(isinstance(each, ExactMatch | Metric | Judge | Rubric) for each in losses_in(loss))

    def count(name: str, prediction: Any, wanted: Any) -> int:
        said = said_in(prediction)
        if not adds or not isinstance(said, list) or len(said) == 1:  # nothing is added to the score of one
            return 1
        if are_messages(said):  # the loss says what to do
            return 1
        if isinstance(wanted, list) and len(wanted) == len(said):
            return max(1, len(said))
        raise DataError(
            f"example {name!r}: the program gave a batch of {len(said)} predictions for one target; have it give one "
            "text (a list that a ChatCompletion is called with is a batch: join it), or give the example a list of as "
            "many targets, and its score is the mean"
        )

    return count
