"""Reading examples, splitting them, and going over them in minibatches."""

from typing import TYPE_CHECKING

from textgrad_engine.lazily import lazily

if TYPE_CHECKING:
    from textgrad_engine.data.public import *

lazily(__name__, modules_too=("load",))
