"""Proposers: the ways to come to a new text for a parameter, one a file; `propose` adds the check of the contracts."""

from textgrad_engine.optim.proposers.base import Brief, Proposal, Proposer
from textgrad_engine.optim.proposers.crossover import Crossover
from textgrad_engine.optim.proposers.demonstrations import Demonstrations
from textgrad_engine.optim.proposers.human import Human
from textgrad_engine.optim.proposers.merge import Merge
from textgrad_engine.optim.proposers.patch import Patch
from textgrad_engine.optim.proposers.proposing import propose
from textgrad_engine.optim.proposers.rewrite import Rewrite
from textgrad_engine.optim.proposers.several import Several, propose_many
from textgrad_engine.optim.proposers.unaided import Unaided

__all__ = [
    "Brief",
    "Crossover",
    "Demonstrations",
    "Human",
    "Merge",
    "Patch",
    "Proposal",
    "Proposer",
    "Rewrite",
    "Several",
    "Unaided",
    "propose",
    "propose_many",
]
