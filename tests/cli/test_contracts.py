"""The table [optimizer.contracts]: every key arrives, and what cannot be used is said with its line."""

from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine.cli import build
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import read_data
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.errors import ConfigError
from textgrad_engine.optim.contracts import (
    Contract,
    Forbids,
    FrozenLines,
    Lacks,
    Language,
    Matches,
    NoCopying,
    Placeholders,
    Requires,
)

ASKED = """max_edits = 4
constraints = ["Keep it polite."]

[optimizer.contracts]
"""
LINE = "Answer with the name of the queue and nothing else."


@pytest.fixture
def with_contracts(small: Any) -> Any:
    """Makes a config with such a table; its first key is on line 34."""
    return lambda table: load_config(small(("max_edits = 12", ASKED + table)))


def contracts_of(config: Config) -> list[Contract | str]:
    train, _, _ = read_data(config)
    optimizer = build.make_optimizer(config, build.make_program(config), train)
    return list(optimizer.param_groups[0]["constraints"])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("placeholders = 'x'", r":34: \[optimizer.contracts\] placeholders = 'x': should be a list in brackets"),
        ("requires = []", r":34: \[optimizer.contracts\] requires = \[\]: .*at least 1, and has 0"),
        ('requires = "x"', r":34: \[optimizer.contracts\] requires = 'x': should be a list in brackets"),
        ('require = ["x"]', r":34: \[optimizer.contracts\] has no key 'require'; did you mean 'requires'"),
        ("max_tokens = 9", r":34: \[optimizer.contracts\] has no key 'max_tokens'; it belongs in \[optimizer\]"),
        ('forbids = ["x", " "]', r":34: \[optimizer.contracts\] forbids: Forbids: a phrase is blank"),
        ('matches = "(a"', r":34: \[optimizer.contracts\] matches: .*is no regular expression: missing \)"),
        ('lacks = "a*"', r":34: \[optimizer.contracts\] lacks: .*matches the empty text"),
        ('language = "xx"', r":34: \[optimizer.contracts\] language: .*known are ar, de"),
        (
            f'frozen = [\n"{LINE}",\n"nothing else"]',
            r":36: \[optimizer.contracts\] frozen: .*has the line 'nothing else'",
        ),
        ('frozen_between = ["- billing", "- nowhere"]', r":34: .*frozen_between: .*has '- nowhere'"),
        ('frozen_between = ["a"]', r":34: .*at least 2, and has 1"),
        (
            'placeholders = ["ticket"]',
            r":34: .*placeholders: no prompt that is trained has the slot \{ticket\}, so nothing",
        ),
        ('matches = ""', r":34: .*matches = '': should not be empty"),
        ("no_copying = 8", r":34: .*no_copying = 8: should be a valid boolean"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_line(with_contracts: Any, table: str, message: str) -> None:
    """Before a call is paid for."""
    with pytest.raises(ConfigError, match=message):
        contracts_of(with_contracts(table))


def test_every_key_arrives(with_contracts: Any) -> None:
    """Nothing in the file is accepted and ignored; texts that are only told come first."""
    table = f"""
placeholders = []
requires = ["queue"]
forbids = ["please", "kindly"]
matches = '(?m)^- billing'
lacks = 'as an AI'
frozen = ["{LINE}"]
frozen_between = ["- billing", "- trust"]
language = "en"
no_copying = true
"""
    config = with_contracts(table)
    (told, *made, no_copying) = contracts_of(config)
    assert told == "Keep it polite."
    assert made == [
        Placeholders([]),
        Requires(["queue"]),
        Forbids(["please", "kindly"]),
        Matches("(?m)^- billing"),
        Lacks("as an AI"),
        FrozenLines([LINE]),
        FrozenLines(between=("- billing", "- trust")),
        Language("en"),
    ]
    assert isinstance(no_copying, NoCopying)
    train, _, _ = read_data(config)
    copied = no_copying.problem("", str(config.system_text()) + train[0]["ticket"])
    assert copied is not None
    label = no_copying.problem("", f"Answer {train[0]['queue']}.")
    assert label is None


def test_without_the_table_nothing_is_added(small: Any) -> None:
    """The default is no contract but those that always hold."""
    assert contracts_of(load_config(small())) == []


def test_the_settings_of_a_run_bring_them_back(with_contracts: Any) -> None:
    """What is written into the run folder is the same config again."""
    config = with_contracts('language = "en"\nfrozen_between = ["- billing", "- trust"]')
    again = Config.of(config.resolved(), config.path)
    assert again.optimizer == config.optimizer
    assert contracts_of(again) == contracts_of(config)
