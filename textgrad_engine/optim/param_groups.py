"""What an optimizer is given to train, read as groups; the checks of their settings are in `settings`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.value import label_of
from textgrad_engine.checks import in_order
from textgrad_engine.llm import tokens
from textgrad_engine.optim.contracts.frozen import FrozenLines
from textgrad_engine.optim.contracts.length import MaxCharacters, MaxTokens
from textgrad_engine.optim.contracts.standard import kept_by_some
from textgrad_engine.wording import told

_log = logging.getLogger("textgrad_engine.optim.param_groups")


def groups_of(given: Sequence[Any]) -> Sequence[Any]:
    """What an optimizer was given, as groups.

    Raises:
        TypeError: some of it are groups, and some are not.
    """
    groups = [isinstance(each, Mapping) for each in given]
    if not any(groups):
        return [{"params": given}]
    if not all(groups):
        one, group = groups.index(False), groups.index(True)
        raise TypeError(
            f"params[{one}] is {given_as(given[one])}, and params[{group}] is a group; give parameters only or groups "
            'only: {"params": [...]} makes a group of it'
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
        raise TypeError(f'{where}: a group is {{"params": [...]}} with settings of its own, got {given_as(given)}')
    if "params" not in given:
        has = f"only {', '.join(map(repr, given))}" if given else "nothing in it"
        raise ValueError(f'{where} has no "params": write {{"params": [...], ...}}; it has {has}')
    params = given["params"]
    if not isinstance(params, Variable | Iterable):
        raise TypeError(f'{where}: "params" is a sequence of Variables, got {told(params)}')
    variables: list[Any] = [params] if isinstance(params, Variable) else list(in_order(params, f'{where}: "params": '))
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


def warn_of_shared(group: Mapping[str, Any], kind: str) -> None:
    """Say so where a group asks of all its texts for what only some of them have.

    Args:
        group: with its "params" and settings.
        kind: the class of the optimizer.
    """
    variables = group["params"]
    found = kept_by_some(group.get("constraints", ()), [str(variable.data) for variable in variables])
    if found is not None:
        contract, keeps, lacks = found
        _log.warning(
            "%s asks for %r in all texts of a group: %s keeps it, and %s does not, so nothing new in that one is "
            "kept that does not say it, too; a contract of one text goes into its own group, {'params': [...], "
            "'constraints': [...]}",
            kind,
            contract,
            label_of(variables[keeps]),
            label_of(variables[lacks]),
        )


def warn_of_no_room(group: Mapping[str, Any], kind: str) -> None:
    """Say so where a text has more tokens than its group allows already.

    Args:
        group: with its "params" and settings.
        kind: the class of the optimizer.
    """
    own = [each for each in group.get("constraints", ()) if isinstance(each, MaxTokens | MaxCharacters)]
    most = group.get("max_tokens")
    limits = [*([] if most is None else [(MaxTokens(most), "max_tokens")]), *((each, repr(each)) for each in own)]
    for variable in group["params"]:
        text = str(variable.data)
        for limit, name in limits:
            unit, has = ("token", tokens.count(text)) if isinstance(limit, MaxTokens) else ("character", len(text))
            if has > limit.limit:
                _log.warning(
                    "%s allows %s in %s, which has %d: only texts that are shorter than the last one are kept, so no "
                    "line is added to it; raise %s, or leave it out",
                    kind,
                    f"{limit.limit} {unit}{'s' * (limit.limit != 1)}",
                    label_of(variable),
                    has,
                    name,
                )


def warn_of_frozen_nowhere(groups: Sequence[Mapping[str, Any]], kind: str) -> None:
    """Say so where lines are to be frozen that no text of all groups has, so that nothing is protected.

    Args:
        groups: with their "params" and settings.
        kind: the class of the optimizer.
    """
    texts = [str(variable.data) for group in groups for variable in group["params"]]
    frozen = [each for group in groups for each in group.get("constraints", ()) if isinstance(each, FrozenLines)]
    for line in dict.fromkeys(line for each in frozen for line in each.nowhere_in(texts)):
        _log.warning(
            "%s is to freeze %r, and none of its texts has that, so it protects nothing; copy it from there", kind, line
        )


def warn_of_unread(names: Iterable[str], where: str, kind: str, read: Iterable[str]) -> None:
    """Say so where names were set in a group that no step reads, such as PyTorch's.

    Args:
        names: those.
        where: the group is.
        kind: the class of the optimizer.
        read: the names that it reads.
    """
    for name in names:
        _log.warning(
            "%s does not read %r, which was set in %s; it reads %s", kind, name, where, ", ".join(sorted(read))
        )


def given_as(value: object) -> str:
    """What somebody gave, in a few words for an error: a Variable by its label."""
    return label_of(value) if isinstance(value, Variable) else told(value)
