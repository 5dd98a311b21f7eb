"""Optimizers: what rewrites parameters from their feedback, in the shape of `torch.optim`.

`TGD` goes step by step; the others search, and try texts out before they change a parameter.
"""

from typing import TYPE_CHECKING

from textgrad_engine.lazily import lazily

if TYPE_CHECKING:
    from textgrad_engine.optim.public import *

lazily(__name__)
