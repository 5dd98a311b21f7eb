"""What an optimizer is given to train, read as groups; the checks of their settings are in `settings`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.value import label_of


def groups_of(given: Sequence[Any]) -> Sequence[Any]:
    """What an optimizer was given, as groups.

    Raises:
        TypeError: some of it are groups, and some are not.
    """
    groups = [isinstance(each, Mapping) for each in given]
    if not any(groups):
        return [{"params": given}]
    if not all(groups):
        number = groups.index(False)
        raise TypeError(
            f"params[{number}] is {told(given[number])}, and params[{groups.index(True)}] is a group; give parameters "
            'only or groups only: {"params": [...]} makes a group of it'
        )
    return given


def trained_in(group: Mapping[str, Any], where: str) -> list[Variable]:
    """The parameters of a group.

    Args:
        group: with its "params".
        where: it is, for errors.

    Raises:
        TypeError: it is no group, its "params" are no sequence, or one of them can't be trained.
        ValueError: it has no "params".

    Example:
        >>> prompt = Variable("Sort.", role="system prompt", requires_grad=True)
        >>> [each.role for each in trained_in({"params": prompt}, "param_groups[0]")]
        ['system prompt']
    """
    given: object = group
    if not isinstance(given, Mapping):
        raise TypeError(f'{where}: a group is {{"params": [...]}} with settings of its own, got {told(given)}')
    if "params" not in given:
        has = f"only {', '.join(map(repr, given))}" if given else "nothing in it"
        raise ValueError(f'{where} has no "params": write {{"params": [...], ...}}; it has {has}')
    params = given["params"]
    if not isinstance(params, Variable | Iterable):
        raise TypeError(f'{where}: "params" is a sequence of Variables, got {type(params).__name__}')
    variables: list[Any] = [params] if isinstance(params, Variable) else list(params)
    for variable in variables:
        if not isinstance(variable, Variable):
            raise TypeError(
                f"an optimizer trains Variables, got {type(variable).__name__}; program.parameters() gives them, "
                "without names"
            )
        if not variable.is_leaf:
            raise TypeError(
                f"{label_of(variable)} is a result, not a leaf: it cannot be trained. To improve the text itself, make "
                "a leaf of it: answer = nn.Parameter(answer)"
            )
    return variables


def told(value: object) -> str:
    """What somebody gave, in a few words for an error."""
    return label_of(value) if isinstance(value, Variable) else f"{type(value).__name__} {value!r:.60}"
