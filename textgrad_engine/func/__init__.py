"""Function transforms."""

from textgrad_engine.func.pmap import pmap

__all__ = ["pmap"]
