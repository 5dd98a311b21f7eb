"""Training loops, evaluation and its statistics."""

from typing import TYPE_CHECKING

from textgrad_engine.lazily import lazily

if TYPE_CHECKING:
    from textgrad_engine.train.public import *

lazily(__name__)
