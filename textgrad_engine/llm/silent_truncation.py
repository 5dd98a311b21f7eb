"""Servers that read less than they were sent, and say so only by the number of tokens that they count.

Ollama drops what is longer than its ``num_ctx`` (4,096 tokens unless somebody has said otherwise), answers with status
200, and its OpenAI-compatible endpoint takes no setting for that (ollama/ollama#3839, #17889).
"""

from __future__ import annotations

import re

from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Usage

_MOST_OF_A_TOKEN = 6
"""Characters that a token of a longer text has at most on average; English has 4.5, everything else less."""

_LEAST = 1_000
"""Tokens below which nothing is said: no server cuts so early, and some leave out those that they had cached."""

_RUN = re.compile(r"(.)\1{3,}", re.DOTALL)


def was_cut(request: Request, usage: Usage) -> bool:
    """Whether an endpoint has counted fewer tokens of input than the text of a request can possibly have.

    Args:
        request: what was sent.
        usage: what the endpoint said.

    Example:
        >>> from textgrad_engine.llm.request import Message
        >>> long = Request(messages=(Message(role="user", content="Sort this ticket. " * 2000),))
        >>> was_cut(long, Usage(input_tokens=4096)), was_cut(long, Usage(input_tokens=8003))
        (True, False)
    """
    texts = [message.text for message in request.messages]
    possible = _MOST_OF_A_TOKEN * (usage.input_tokens + usage.cached_tokens)  # some count what was cached beside it
    if usage.input_tokens < _LEAST or sum(map(len, texts)) <= possible:
        return False
    # a token may stand for a whole line of spaces or dashes
    return sum([len(_RUN.sub(r"\1\1\1", text)) for text in texts]) > possible
