"""The run folder: what happened, what was paid for, and the best texts."""

from typing import TYPE_CHECKING

from textgrad_engine.lazily import lazily

if TYPE_CHECKING:
    from textgrad_engine.store.public import *

lazily(__name__)
