"""Contracts: what a parameter must keep when it is rewritten; checked before a proposal is used."""

from textgrad_engine.optim.contracts.aims import aiming
from textgrad_engine.optim.contracts.base import Contract, Wish, broken
from textgrad_engine.optim.contracts.copying import NoCopying
from textgrad_engine.optim.contracts.detect import LANGUAGES
from textgrad_engine.optim.contracts.frozen import FrozenLines
from textgrad_engine.optim.contracts.language import Language
from textgrad_engine.optim.contracts.length import MaxCharacters, MaxTokens, NotEmpty
from textgrad_engine.optim.contracts.pattern import Lacks, Matches
from textgrad_engine.optim.contracts.phrases import Forbids, Requires
from textgrad_engine.optim.contracts.placeholders import Placeholders
from textgrad_engine.optim.contracts.standard import contracts_for

__all__ = [
    "LANGUAGES",
    "Contract",
    "Forbids",
    "FrozenLines",
    "Lacks",
    "Language",
    "Matches",
    "MaxCharacters",
    "MaxTokens",
    "NoCopying",
    "NotEmpty",
    "Placeholders",
    "Requires",
    "Wish",
    "aiming",
    "broken",
    "contracts_for",
]
