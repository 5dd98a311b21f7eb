"""Operations on Variables, as functions: text, chat completion, evaluators."""

from typing import TYPE_CHECKING

from textgrad_engine.lazily import lazily

if TYPE_CHECKING:
    from textgrad_engine.ops.public import *

lazily(__name__, modules_too=("chat_completion", "extract", "field", "reduce", "straight_through", "text_loss"))
