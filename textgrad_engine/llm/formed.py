"""Answers that were to have a form, as an endpoint gives them: taken out of what they stand in, or seen to lack it."""

from __future__ import annotations

from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm import inwords
from textgrad_engine.llm.charged import is_estimated, mark
from textgrad_engine.llm.parsing import json_in, strip_fence, unwrapped
from textgrad_engine.llm.request import GenerateConfig, Request
from textgrad_engine.llm.response import Completion


def is_wrapped(config: GenerateConfig) -> bool:
    """Whether an endpoint is told of the wanted form as the one property of an object."""
    return config.response_format is not None and config.response_format.is_wrapped


def without_wrapping(completion: Completion, config: GenerateConfig) -> Completion:
    """An answer taken out of the object that it was wanted in, if it was."""
    wanted = config.response_format
    if wanted is None or not wanted.is_wrapped or completion.finish_reason != "stop":
        return completion
    text = unwrapped(completion.text)
    return completion if text == completion.text else completion.model_copy(update={"text": text})


def ignores_format(completion: Completion) -> bool:
    """Whether an answer that was to be JSON is finished and is none, so that nobody held the model to it."""
    bare = strip_fence(completion.text).strip()
    if completion.finish_reason != "stop" or not bare:
        return False
    try:
        return not isinstance(json_in(bare, among_words=False)[1], dict)
    except (ValueError, RecursionError):
        return True


def read_in_words(completion: Completion, request: Request, config: GenerateConfig, name: str) -> Completion:
    """An answer whose form was asked for in words, with the JSON that it comes to as its text.

    Raises:
        MalformedResponse: it has not the form that was asked for.
    """
    wanted = config.response_format
    if wanted is None:
        return completion
    completion = completion.model_copy(update={"words": inwords.words_for(wanted, request)})
    if completion.finish_reason != "stop" or completion.tool_calls or not completion.text.strip():
        return completion
    try:
        text = inwords.read(completion.text, wanted, request, f"{name!r} ({request.purpose})")
    except MalformedResponse as error:
        mark(error, usage=completion.usage, estimated=is_estimated(completion))
        raise
    return completion.model_copy(update={"text": text})
