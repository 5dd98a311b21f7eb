"""The words of the support trade: what the simulated model knows before it has read any instructions.

A concept's queue is the newcomer's guess. Where the house has a rule of its own that guess is wrong, and nothing in the
lexicon says so.
"""

from __future__ import annotations

from textgrad_engine.llm.simulated.common import COMMON_CONCEPTS
from textgrad_engine.llm.simulated.concept import Concept
from textgrad_engine.llm.simulated.sharp import SHARP_CONCEPTS

LEXICON: tuple[Concept, ...] = SHARP_CONCEPTS + COMMON_CONCEPTS
"""Every concept; the order carries no meaning."""
