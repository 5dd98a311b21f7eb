"""The embedded simulated model, ``simulated/tickets``.

A simulation that lets people try and test the machinery offline; no evidence about real models.
"""

from textgrad_engine.llm.simulated.model import TicketsModel

__all__ = ["TicketsModel"]
