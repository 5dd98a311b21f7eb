"""From the table [optimizer.contracts] to what a new prompt must keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from textgrad_engine.cli.config import Config
from textgrad_engine.cli.settings import Contracts
from textgrad_engine.data.names import listed, suggest
from textgrad_engine.optim.contracts import (
    Contract,
    Forbids,
    FrozenLines,
    Lacks,
    Language,
    Matches,
    MaxCharacters,
    NoCopying,
    Placeholders,
    Requires,
)
from textgrad_engine.optim.contracts.standard import kept_by_some
from textgrad_engine.slots import composed, slots_of


def make_contracts(
    config: Config, texts: Mapping[str, str], examples: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[Contract, ...]]:
    """The contracts that the config names, for each prompt.

    Args:
        config: names them.
        texts: the seed texts of what is trained, by name; they hold the lines that are to be frozen.
        examples: the training examples, of which nothing is copied.

    Raises:
        ConfigError: one cannot be used, or there is no such prompt; the message names the key.
    """
    settings = config.optimizer
    _check_names(config, texts)
    every = _made(config, settings.contracts, _TABLE, texts.values(), examples)
    own = {
        name: _made(config, asked, (*_PROMPTS, name), [texts[name]], examples)
        for name, asked in settings.prompts.items()
    }
    return {name: (*every, *own.get(name, ())) for name in texts}


def check_texts(config: Config, texts: Mapping[str, str]) -> None:
    """Check that the prompts have what is to stay in them, for who makes no optimizer.

    Args:
        config: names it.
        texts: the seed texts of what is trained, by name.

    Raises:
        ConfigError: one does not, or there is no such prompt; the message names the key.
    """
    settings = config.optimizer
    _check_names(config, texts)
    _check_there(config, settings.contracts, _TABLE, tuple(texts.values()))
    for name, asked in settings.prompts.items():
        _check_there(config, asked, (*_PROMPTS, name), (texts[name],))


def check_shared(config: Config, texts: Mapping[str, str]) -> None:
    """Check that what all of several prompts must have is not what only some of them have.

    Nothing that is written for the others would be kept that does not say it, too.

    Args:
        config: names the contracts.
        texts: the seed texts of what is trained, by name.

    Raises:
        ConfigError: it is; the message names the key and the table where it belongs.
    """
    asked = config.optimizer.contracts
    wanted: list[Contract] = [
        *([Requires(asked.requires)] if asked.requires is not None else []),
        *([Matches(asked.matches)] if asked.matches is not None else []),
        *([Placeholders(asked.placeholders)] if asked.placeholders is not None else []),
    ]
    found = kept_by_some(wanted, list(texts.values()))
    if found is not None:
        contract, *places = found
        having, lacking = (list(texts)[place] for place in places)
        if isinstance(contract, Placeholders):
            key, value = "placeholders", f"{{{''.join(contract.kept or ())}}}"
        elif isinstance(contract, Requires):
            key, value = "requires", contract.phrases[0]
        else:
            key, value = "matches", contract.pattern
        config.fail(
            f"[optimizer.contracts] {key}: the prompt {having!r} keeps {value!r}, and {lacking!r} does not, so "
            f'nothing new in that one would be kept; put it into [optimizer.prompts."{having}"]',
            *_TABLE,
            key,
        )


def _check_names(config: Config, texts: Mapping[str, str]) -> None:
    """Refuse a table for a prompt that is not there.

    Raises:
        ConfigError: there is one; the message names it.
    """
    for name in config.optimizer.prompts:
        if name not in texts:
            config.fail(
                f"[optimizer.prompts] names {name!r}, and no prompt that is trained has that name"
                + (suggest(name, list(texts)) or f"; they are {', '.join(texts)}"),
                *_PROMPTS,
                name,
            )


def _made(
    config: Config,
    asked: Contracts,
    table: tuple[str, ...],
    texts: Iterable[str],
    examples: Sequence[Mapping[str, Any]],
) -> tuple[Contract, ...]:
    """The contracts of one table.

    Raises:
        ConfigError: one cannot be used; the message names the key.
    """
    kinds: dict[str, tuple[Any, Callable[[Any], Contract]]] = {
        "placeholders": (asked.placeholders, Placeholders),
        "requires": (asked.requires, Requires),
        "forbids": (asked.forbids, Forbids),
        "matches": (asked.matches, Matches),
        "lacks": (asked.lacks, Lacks),
        "frozen": (asked.frozen, FrozenLines),
        "frozen_between": (asked.frozen_between, lambda markers: FrozenLines(between=(markers[0], markers[1]))),
        "language": (asked.language, Language),
        "max_characters": (asked.max_characters, MaxCharacters),
        "no_copying": (asked.no_copying or None, lambda _: NoCopying(examples, target=config.target_columns())),
    }
    made = []
    for key, (value, make) in kinds.items():
        if value is None:
            continue
        try:
            made.append(make(value))
        except ValueError as error:
            config.fail(f"{_shown(table)} {key}: {error}", *table, key)
    _check_there(config, asked, table, tuple(texts))
    return tuple(made)


def _check_there(config: Config, asked: Contracts, table: tuple[str, ...], texts: Sequence[str]) -> None:
    """A line that is not there would freeze nothing, in silence; and a slot would have to come in with the first edit.

    Raises:
        ConfigError: one is not there; the message names the key.
    """
    where = "no prompt that is trained" if table == _TABLE else f"the prompt {table[-1]!r} never"
    slots = list(dict.fromkeys(slot for text in texts for slot in slots_of(text)))
    for position, slot in enumerate(asked.placeholders or ()):
        if composed(slot) not in slots:
            config.fail(
                f"{_shown(table)} placeholders: {where} has the slot {{{slot}}}, so nothing new would be kept without "
                f"it; {f'there are {listed(slots)}' if slots else 'leave it out, as there are no slots'}",
                *table,
                "placeholders",
                position,
            )
    for position, line in enumerate(asked.frozen or ()):
        if FrozenLines([line]).nowhere_in(texts):
            config.fail(
                f"{_shown(table)} frozen: {where} has the line {line!r}; copy it from there",
                *table,
                "frozen",
                position,
            )
    for position, marker in enumerate(asked.frozen_between or ()):
        if not any(marker in line for text in texts for line in text.split("\n")):
            config.fail(
                f"{_shown(table)} frozen_between: {where} has {marker!r}; put the two markers "
                "around the lines that are to stay",
                *table,
                "frozen_between",
                position,
            )


def _shown(table: tuple[str, ...]) -> str:
    *outer, last = table
    return f"[{'.'.join(table)}]" if table == _TABLE else f'[{".".join(outer)}."{last}"]'


_TABLE = ("optimizer", "contracts")
_PROMPTS = ("optimizer", "prompts")
