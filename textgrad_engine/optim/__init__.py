"""Optimizers: what rewrites parameters from their feedback, in the shape of `torch.optim`."""

from textgrad_engine.optim.contracts import Contract, MaxTokens, NotEmpty, Placeholders, Wish
from textgrad_engine.optim.optimizer import Change, Optimizer
from textgrad_engine.optim.patch import Edit, Evidence, Origin
from textgrad_engine.optim.tgd import TGD

__all__ = [
    "Change",
    "Contract",
    "Edit",
    "Evidence",
    "MaxTokens",
    "NotEmpty",
    "Optimizer",
    "Origin",
    "Placeholders",
    "TGD",
    "Wish",
]
