"""What there is in `textgrad_engine.llm`."""

from textgrad_engine.llm.account import Budget, Remaining
from textgrad_engine.llm.budget import Budgeted, budget
from textgrad_engine.llm.cache import Cache, cache_folder
from textgrad_engine.llm.cached import Cached, caching
from textgrad_engine.llm.cachekey import repeat
from textgrad_engine.llm.callable import CallableModel
from textgrad_engine.llm.check import Check
from textgrad_engine.llm.deadline import Deadline
from textgrad_engine.llm.fallback import DOWN, Fallback
from textgrad_engine.llm.limits import Limit
from textgrad_engine.llm.listening import on_token
from textgrad_engine.llm.meters import Meter, meter
from textgrad_engine.llm.model import Model, Wrapper, innermost
from textgrad_engine.llm.openai import OpenAIModel
from textgrad_engine.llm.prices import price, set_price
from textgrad_engine.llm.record import record
from textgrad_engine.llm.recording import Recording
from textgrad_engine.llm.replay import Replay, replay
from textgrad_engine.llm.request import GenerateConfig, Message, Purpose, Request
from textgrad_engine.llm.resolve import Defaults, resolve
from textgrad_engine.llm.response import Completion, FinishReason, Price, Usage
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.llm.retry import Retry, RetryPolicy
from textgrad_engine.llm.roles import model_for, set_models, use_models
from textgrad_engine.llm.samples import samples
from textgrad_engine.llm.spans import Traced
from textgrad_engine.llm.stop import Stop
from textgrad_engine.llm.taped import Taped
from textgrad_engine.llm.usage import CallRecord, Metered, call_key, call_key_scope, observe

__all__ = [
    "Budget",
    "Budgeted",
    "Cache",
    "Cached",
    "CallRecord",
    "CallableModel",
    "Check",
    "Completion",
    "DOWN",
    "Deadline",
    "Defaults",
    "Fallback",
    "FinishReason",
    "GenerateConfig",
    "Limit",
    "Message",
    "Meter",
    "Metered",
    "Model",
    "OpenAIModel",
    "Price",
    "Purpose",
    "Recording",
    "Remaining",
    "Replay",
    "Request",
    "ResponseFormat",
    "Retry",
    "RetryPolicy",
    "Stop",
    "Taped",
    "Traced",
    "Usage",
    "Wrapper",
    "budget",
    "cache_folder",
    "caching",
    "call_key",
    "call_key_scope",
    "innermost",
    "meter",
    "model_for",
    "observe",
    "on_token",
    "price",
    "record",
    "repeat",
    "replay",
    "resolve",
    "samples",
    "set_models",
    "set_price",
    "use_models",
]
