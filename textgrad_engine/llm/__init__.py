"""Asking models: requests, answers, the adapter to OpenAI-compatible endpoints, and the wrappers around every model.

Importing this loads none of `openai`, `tiktoken` and `genai_prices`; each is loaded by the first call that needs it.
"""

from typing import TYPE_CHECKING

from textgrad_engine.lazily import lazily

if TYPE_CHECKING:
    from textgrad_engine.llm.public import *

lazily(__name__, modules_too=("budget", "record", "replay", "resolve", "samples"))
