"""From the table [optimizer.contracts] to what a new prompt must keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from textgrad_engine.cli.config import Config
from textgrad_engine.optim.contracts import (
    Contract,
    Forbids,
    FrozenLines,
    Lacks,
    Language,
    Matches,
    NoCopying,
    Requires,
)

__all__ = ["make_contracts"]


def make_contracts(config: Config, texts: Iterable[str], examples: Sequence[Mapping[str, Any]]) -> tuple[Contract, ...]:
    """The contracts that the config names.

    Args:
        config: names them.
        texts: the seed texts of what is trained, which hold the lines that are to be frozen.
        examples: the training examples, of which nothing is copied.

    Raises:
        ConfigError: one cannot be used; the message names the key.
    """
    asked = config.optimizer.contracts
    kinds: dict[str, tuple[Any, Callable[[Any], Contract]]] = {
        "requires": (asked.requires, Requires),
        "forbids": (asked.forbids, Forbids),
        "matches": (asked.matches, Matches),
        "lacks": (asked.lacks, Lacks),
        "frozen": (asked.frozen, FrozenLines),
        "frozen_between": (asked.frozen_between, lambda markers: FrozenLines(between=(markers[0], markers[1]))),
        "language": (asked.language, Language),
        "no_copying": (asked.no_copying or None, lambda _: NoCopying(examples, target=config.data.target)),
    }
    made = []
    for key, (value, make) in kinds.items():
        if value is None:
            continue
        try:
            made.append(make(value))
        except ValueError as error:
            config.fail(f"[optimizer.contracts] {key}: {error}", *_TABLE, key)
    _check_frozen(config, tuple(texts))
    return tuple(made)


def _check_frozen(config: Config, texts: Sequence[str]) -> None:
    """A line that is not there would freeze nothing, in silence."""
    asked = config.optimizer.contracts
    lines = {line.strip() for text in texts for line in text.split("\n")}
    for position, line in enumerate(asked.frozen or ()):
        if line.strip() not in lines:
            config.fail(
                f"[optimizer.contracts] frozen: no prompt that is trained has the line {line!r}; copy it from there",
                *_TABLE,
                "frozen",
                position,
            )
    for position, marker in enumerate(asked.frozen_between or ()):
        if not any(marker in line for line in lines):
            config.fail(
                f"[optimizer.contracts] frozen_between: no prompt that is trained has {marker!r}; put the two markers "
                "around the lines that are to stay",
                *_TABLE,
                "frozen_between",
                position,
            )


_TABLE = ("optimizer", "contracts")
