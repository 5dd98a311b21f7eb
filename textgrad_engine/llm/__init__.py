"""Asking models: requests, answers, the adapter to OpenAI-compatible endpoints, and the wrappers around every model.

Importing this loads none of `openai`, `tiktoken` and `genai_prices`; each is loaded by the first call that needs it.
"""

from textgrad_engine.llm.budget import Budget, Budgeted, Remaining, budget
from textgrad_engine.llm.check import Check
from textgrad_engine.llm.limits import Limit
from textgrad_engine.llm.model import Model, Wrapper, innermost
from textgrad_engine.llm.openai import OpenAIModel
from textgrad_engine.llm.prices import price, set_price
from textgrad_engine.llm.request import GenerateConfig, Message, Purpose, Request, ResponseFormat
from textgrad_engine.llm.resolve import Defaults, resolve
from textgrad_engine.llm.response import Completion, FinishReason, Usage
from textgrad_engine.llm.retry import Deadline, Retry, RetryPolicy
from textgrad_engine.llm.roles import model_for, set_models, use_models
from textgrad_engine.llm.stop import Stop
from textgrad_engine.llm.usage import CallRecord, Meter, Metered, call_key, call_key_scope, meter, observe

__all__ = [
    "Budget",
    "Budgeted",
    "CallRecord",
    "Check",
    "Completion",
    "Deadline",
    "Defaults",
    "FinishReason",
    "GenerateConfig",
    "Limit",
    "Message",
    "Meter",
    "Metered",
    "Model",
    "OpenAIModel",
    "Purpose",
    "Remaining",
    "Request",
    "ResponseFormat",
    "Retry",
    "RetryPolicy",
    "Stop",
    "Usage",
    "Wrapper",
    "budget",
    "call_key",
    "call_key_scope",
    "innermost",
    "meter",
    "model_for",
    "observe",
    "price",
    "resolve",
    "set_models",
    "set_price",
    "use_models",
]
