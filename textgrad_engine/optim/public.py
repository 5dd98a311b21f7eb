"""What there is in `textgrad_engine.optim`."""

from textgrad_engine.optim import proposers, schedules, transforms
from textgrad_engine.optim.beam_search import BeamSearch
from textgrad_engine.optim.bootstrap_demos import BootstrapDemos
from textgrad_engine.optim.cells import Evidence, Origin
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.contracts import (
    Contract,
    Forbids,
    FrozenLines,
    Lacks,
    Language,
    Matches,
    MaxCharacters,
    MaxTokens,
    NoCopying,
    NotEmpty,
    Placeholders,
    Requires,
    Wish,
)
from textgrad_engine.optim.opro import OPRO
from textgrad_engine.optim.optimizer import Optimizer
from textgrad_engine.optim.pareto_search import ParetoSearch
from textgrad_engine.optim.patch import Edit
from textgrad_engine.optim.patch_search import PatchSearch
from textgrad_engine.optim.random_search import RandomEdits, RandomSearch
from textgrad_engine.optim.search.objective import Objective
from textgrad_engine.optim.search.searcher import Decision, Searcher
from textgrad_engine.optim.search.volume import Range, Sizes, Volume
from textgrad_engine.optim.tgd import TGD

__all__ = [
    "BeamSearch",
    "BootstrapDemos",
    "Change",
    "Contract",
    "Decision",
    "Edit",
    "Evidence",
    "Forbids",
    "FrozenLines",
    "Lacks",
    "Language",
    "Matches",
    "MaxCharacters",
    "MaxTokens",
    "NoCopying",
    "NotEmpty",
    "OPRO",
    "Objective",
    "Optimizer",
    "Origin",
    "ParetoSearch",
    "PatchSearch",
    "Placeholders",
    "RandomEdits",
    "RandomSearch",
    "Range",
    "Requires",
    "Searcher",
    "Sizes",
    "TGD",
    "Volume",
    "Wish",
    "proposers",
    "schedules",
    "transforms",
]
