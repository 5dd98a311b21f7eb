"""Optimizers: what rewrites parameters from their feedback, in the shape of `torch.optim`."""

from textgrad_engine.optim.contracts import (
    Contract,
    Forbids,
    FrozenLines,
    Lacks,
    Language,
    Matches,
    MaxTokens,
    NoCopying,
    NotEmpty,
    Placeholders,
    Requires,
    Wish,
)
from textgrad_engine.optim.optimizer import Change, Optimizer
from textgrad_engine.optim.patch import Edit, Evidence, Origin
from textgrad_engine.optim.tgd import TGD

__all__ = [
    "Change",
    "Contract",
    "Edit",
    "Evidence",
    "Forbids",
    "FrozenLines",
    "Lacks",
    "Language",
    "Matches",
    "MaxTokens",
    "NoCopying",
    "NotEmpty",
    "Optimizer",
    "Origin",
    "Placeholders",
    "Requires",
    "TGD",
    "Wish",
]
