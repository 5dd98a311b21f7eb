"""Which setting of a request an endpoint says that it does not take, and which of every request."""

from __future__ import annotations

import re

from textgrad_engine.llm.refusals import Refusal
from textgrad_engine.llm.request import Request

_SETTINGS = (
    "temperature",
    "top_p",
    "seed",
    "stop",
    "frequency_penalty",
    "presence_penalty",
    "reasoning_effort",
    "max_tokens",
    "max_completion_tokens",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
)
_KIND_OF_WORD = r"\b(?:argument|field|input|key|name|parameter|property|setting)s?\b"
_REFUSES = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|extra[_ ](?:inputs|forbidden)|cannot (?:both )?be specified|"
    r"(?:not|n't) (?:currently )?(?:support|permit|allow|accept)|only the default|deprecated|no longer|may only be"
)


def refused_setting(refusal: Refusal) -> str:
    """The setting that an endpoint says it does not take; "" when it says something else.

    Example:
        >>> from textgrad_engine.llm.refusals import read
        >>> refused_setting(read('{"error": "Unsupported parameter: seed"}'))
        'seed'
    """
    low = refusal.all
    if not _REFUSES.search(low):
        return ""
    if refusal.parameter in _SETTINGS:
        return refusal.parameter
    for name in _SETTINGS:
        either = rf"(?:{name}|{name.replace('_', '')})"
        if re.search(
            rf"""['"`]{either}['"`]|{_KIND_OF_WORD}.{{0,40}}\b{either}\b"""
            rf"""|support {either}\b|\b{either} is (?:deprecated|no longer|not)\b""",
            low,
        ):
            return name
    return ""


_NO_MODEL = re.compile(
    r"model_not_(?:found|available|supported)|deploymentnotfound|\binvalid_model\b"
    r"|not_found_error model:"  # Anthropic
    r"|(?:not a valid|invalid|unknown|no such) model(?: id| name|:|$)"  # OpenRouter, Mistral, litellm
    r"|\bmodel not exist|not a chat model"  # DeepSeek, OpenAI
)
_MODEL_NOT_FOUND = re.compile(r"\bmodel\W[^.;]{0,300}?(?:not found|not exist)|models/\S+ is not found")
"""The same with status 404: of vLLM, Ollama and Groq, and of Gemini."""

_REFUSED_BY_NAME = re.compile(r"(?:unsupported|unknown)_(?:parameter|value)|extra_forbidden")
_ASKED = ("messages", "input")
"""Where what is asked stands in a request, which each has of its own."""


def refused_of_all(status: int, refusal: Refusal, asked: Request | None) -> str:
    """What of a request is refused whatever it asks, so that others like it need not be sent: a setting, or the model.

    Validation errors quote requests, so words that stand in what was asked say nothing.

    Args:
        status: the HTTP status.
        refusal: what was said.
        asked: the request; None where it is not known, so that nobody can tell what is quoted.

    Returns:
        The name of the setting, ``"model"``, or "" for anything else.

    Example:
        >>> from textgrad_engine.llm.refusals import read
        >>> refused_of_all(404, read('{"error": {"code": "model_not_found"}}'), Request(messages=()))
        'model'
    """
    if asked is None or status not in (400, 404, 422):
        return ""
    texts = [message.text.lower() for message in asked.messages]
    for pattern in (_NO_MODEL, _MODEL_NOT_FOUND)[: 1 + (status == 404)]:
        if any(not any(sign[0] in text for text in texts) for sign in pattern.finditer(refusal.all)):
            return "model"
    if status == 404:
        return ""
    setting = refused_setting(refusal)
    if setting and (refusal.parameter == setting or not any(setting in text for text in texts)):
        return setting
    name = refusal.parameter if refusal.parameter.isidentifier() and refusal.parameter not in _ASKED else ""
    return name if _REFUSED_BY_NAME.search(refusal.codes) else ""


def left_out(setting: str) -> str:
    """What repairs a request with a setting that is refused."""
    instead = "extra={'random_seed': ...} is Mistral's name for it" if setting == "seed" else "extra={...} passes it on"
    return (
        f"leave the setting {setting!r} out where it is given (a call or module of yours, llm.resolve, OpenAIModel, or "
        f"the config's [models.config]); what this endpoint calls otherwise is given by its own name, as {instead}"
    )
