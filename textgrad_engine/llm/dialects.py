"""How an endpoint wants to be asked, found out by what it refuses.

Endpoints that call themselves compatible differ in some names. Where a refusal says which, the request is sent once
more in the other way, and later ones at once. What would change what is asked (a setting left out) is never done.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from textgrad_engine.errors import AuthenticationFailed, BadRequest, ContextOverflow, ServerFailed
from textgrad_engine.llm.request import GenerateConfig
from textgrad_engine.llm.wire_tool_calls import are_broken

_log = logging.getLogger("textgrad_engine.llm.dialects")

_ABOUT_FORMAT = re.compile(
    r"response[_ ]?format|response[_ ]?schema|json[_ ]?schema|structured[_ ]?output|text\.format"
    r"|response mime type|json mode|constraint that has too many states|schema in generationconfig"  # Gemini, Groq
    r"|request contains an invalid argument"  # all that Gemini says of many a schema, and of other things, too
    r"|output_config\.format|schema is too complex"  # Anthropic
    r"|guided|grammar"  # vLLM, SGLang, llama.cpp
)
_SLIP_IN_A_TEST = ": scripterror: "
"""What `testing.LoopbackServer` says of a mistake in a test; the words behind it are of no endpoint."""

_NO_PROVIDER_FOR_ALL = "can handle the requested parameters"
"""What OpenRouter says, with 404, where each provider of a model lacks something that `require_parameters` wants."""

_MARK = "['\"`]?"
"""Around names that an endpoint quotes, or does not."""

_NEW_NAME = re.compile(rf"max_completion_tokens.{{0,20}}instead|max_tokens{_MARK} is not supported")
_ONLY_STREAMS = re.compile(
    r"only supports? (?:the )?stream|stream['\"`]? (?:must|should|needs to|has to) be (?:set to )?['\"`]?true"
    r"|(?:requires?|set|enable) (?:the )?['\"`]?stream|streaming is (?:strongly )?(?:required|recommended)"
    r"|(?:for|not support|without) non-?streaming"
)
_NO_USAGE = re.compile(r"stream_options|include_usage")
_NO_SYSTEM = re.compile(
    rf"system{_MARK} (?:role|message|instruction|prompt)s? (?:is |are )?not (?:supported|enabled|allowed)"
    rf"|role {_MARK}system{_MARK} (?:is )?not (?:supported|enabled|allowed)"
    rf"|(?:does|do)(?: not|n't) support (?:the )?{_MARK}system"
    r"|developer instruction is not enabled"  # Gemini's endpoint, of Gemma
    r"|roles must alternate|only user and assistant roles"  # templates of Gemma and Mistral
)
_NO_USER_AFTER_TOOL = re.compile(rf"role {_MARK}user{_MARK} after role {_MARK}tool\b")  # Mistral
_NO_SUCH_MODEL = re.compile(
    r"model\W.{0,300}(?:not found|not exist|invalid|unknown)|(?:not a valid|invalid|unknown|no such) model"
)
_NO_ACCESS = re.compile(r"access.{0,20}\bmodel\b")  # litellm's proxy, of a key that is for some models only


@dataclass(frozen=True)
class Dialect:
    """How one endpoint is asked.

    Attributes:
        form: how structured output is asked for: ``"asked"`` by ``response_format``, ``"in words too"`` where that is
            ignored, ``"in words"`` where it is refused.
        most: what ``max_tokens`` is called; OpenAI itself has renamed it.
        stream: whether it is asked for the answer in pieces though nobody wants to see them, as it has no other.
        usage: whether a stream is asked for its usage.
        system: whether it takes system messages; else their text is put before the first message of the user.
        tool_images: whether images that tools gave stand in their messages; else behind them, in one of the user.
        mend_calls: whether calls of tools whose arguments are no JSON object go back without these.
        name: what the model is called.
    """

    form: Literal["asked", "in words too", "in words"] = "asked"
    most: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream: bool = False
    usage: bool = True
    system: bool = True
    tool_images: bool = False
    mend_calls: bool = False
    name: str = ""


def after(
    error: BadRequest | ServerFailed | AuthenticationFailed,
    asked: Dialect,
    config: GenerateConfig,
    sent: dict[str, Any],
) -> Dialect | None:
    """The way to ask that a refusal leads to; None where it leads to none.

    Args:
        error: the refusal.
        asked: the way in which it was asked.
        config: the settings, with the defaults filled in.
        sent: the body that was refused.
    """
    said = str(error).replace(f" to {asked.name!r} ", " ").lower()  # a name such as "grammar-7b" is no sign
    if _SLIP_IN_A_TEST in said:
        return None
    if asked.name.startswith("openai/") and _is_about_name(error, said):
        return replace(asked, name=asked.name.removeprefix("openai/"))
    if isinstance(error, AuthenticationFailed):
        return None
    if error.status in (400, 422) and not isinstance(error, ContextOverflow):
        if "max_tokens" in sent and "max_tokens" not in config.extra and _NEW_NAME.search(said):
            return replace(asked, most="max_completion_tokens")
        if "stream" not in sent and _ONLY_STREAMS.search(said):
            return replace(asked, stream=True)
        if "stream_options" in sent and _NO_USAGE.search(said):
            return replace(asked, usage=False)
        if not asked.tool_images and _NO_USER_AFTER_TOOL.search(said):
            return replace(asked, tool_images=True)
    # whatever it says: vLLM quotes its JSON decoder, and llama.cpp's server breaks
    mendable = error.status in (400, 422, 500) and not isinstance(error, ContextOverflow)
    if mendable and not asked.mend_calls and are_broken(sent):
        return replace(asked, mend_calls=True)
    # 500 where a template that refuses them breaks the server
    if asked.system and error.status in (400, 422, 500) and _NO_SYSTEM.search(said) and _has_system(sent):
        _log.warning(
            "%r takes no system messages, so their text is put before the first message of the user", asked.name
        )
        return replace(asked, system=False)
    if asked.form != "in words" and config.response_format is not None and _is_about_format(error, said):
        return replace(asked, form="in words")
    return None


def _has_system(sent: dict[str, Any]) -> bool:
    return any(message.get("role") in ("system", "developer") for message in sent.get("messages", ()))


def _is_about_name(error: BadRequest | ServerFailed | AuthenticationFailed, said: str) -> bool:
    if error.status in (401, 403):
        return _NO_ACCESS.search(said) is not None
    return error.status == 404 or (error.status == 400 and _NO_SUCH_MODEL.search(said) is not None)


def _is_about_format(error: BadRequest | ServerFailed, said: str) -> bool:
    if error.status == 500:  # what llama-cpp-python's server answers to a request that does not fit its types
        return "response_format" in said and "validation error" in said
    if error.status == 404:
        return _NO_PROVIDER_FOR_ALL in said
    # a schema that is wrong is the caller's to mend; asking in words instead would hide it
    return error.status in (400, 422) and "invalid schema" not in said and _ABOUT_FORMAT.search(said) is not None
