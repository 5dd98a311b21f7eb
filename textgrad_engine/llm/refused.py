"""Which setting of a request an endpoint says that it does not take."""

from __future__ import annotations

import re

from textgrad_engine.llm.refusals import Refusal

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


def left_out(setting: str) -> str:
    """What repairs a request with a setting that is refused."""
    instead = "extra={'random_seed': ...} is Mistral's name for it" if setting == "seed" else "extra={...} passes it on"
    return (
        f"leave the setting {setting!r} out where it is given (a call or module of yours, llm.resolve, OpenAIModel, or "
        f"the config's [models.config]); what this endpoint calls otherwise is given by its own name, as {instead}"
    )
