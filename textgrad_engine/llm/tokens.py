"""How many tokens a text has: exactly where the vocabulary is on this disk, else an estimate. Never the network."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from textgrad_engine.llm.request import Request

__all__ = ["IMAGE", "count", "count_request", "method"]

_MESSAGE_OVERHEAD = 4
"""Tokens that a chat format spends on each message besides its text."""

IMAGE = 1_700
"""Tokens that an image counts as: the most that the high-detail tiles of most models come to."""

_LONGEST_EXACT = 200_000
"""Characters above which the estimate is used anyway: tokenizing would hold up the event loop for too long."""

# tiktoken's own file names and digests: it fetches the file anew, without a timeout, when the digest does not match.
_VOCABULARIES = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
_SOURCE = "https://openaipublic.blob.core.windows.net/encodings/"


def count(text: str, model: str | None = None) -> int:
    """The number of tokens of a text.

    Args:
        text: the text.
        model: the model that will read it; without one, or where its vocabulary is not on this disk, the number is an
            estimate: four ASCII characters a token, every other character one token.

    Example:
        >>> count("Sort the ticket.")
        4
    """
    encoding = _encoding(_vocabulary(model)) if model and len(text) <= _LONGEST_EXACT else None
    if encoding is not None:
        return len(encoding.encode_ordinary(text))
    if text.isascii():
        return -(-len(text) // 4)
    ascii_only = len(text.encode("ascii", "ignore"))
    return -(-ascii_only // 4) + len(text) - ascii_only


def count_request(request: Request, model: str | None = None) -> int:
    """The number of tokens that a request has: messages with the chat format around them, tools and schema.

    An image counts as `IMAGE` tokens, whatever its size; other parts that are not text are not counted.
    """
    total = sum([count(message.text, model) + _MESSAGE_OVERHEAD for message in request.messages])
    for message in request.messages:
        if not isinstance(message.content, str):
            total += IMAGE * sum([part.get("type") == "image_url" for part in message.content])
    config = request.config
    if config.tools:
        total += count(json.dumps([dict(tool) for tool in config.tools], ensure_ascii=False), model)
    if config.response_format is not None:
        total += count(json.dumps(dict(config.response_format.json_schema), ensure_ascii=False), model)
    return total


def method(model: str | None = None) -> str:
    """How `count` counts for a model: ``"estimate"``, or the name of the vocabulary.

    Example:
        >>> method()
        'estimate'
    """
    vocabulary = _vocabulary(model) if model else None
    return vocabulary if vocabulary is not None and _encoding(vocabulary) is not None else "estimate"


@functools.lru_cache(maxsize=256)
def _vocabulary(model: str) -> str | None:
    if _cache_folder() is None:
        return None
    import tiktoken.model  # heavy; only where a vocabulary may be on disk

    try:
        name = tiktoken.model.encoding_name_for_model(model.rpartition("/")[2])
    except KeyError:
        return None
    return name if name in _VOCABULARIES else None


@functools.lru_cache(maxsize=8)
def _encoding(name: str | None) -> Any:
    folder = _cache_folder()
    if name is None or folder is None:
        return None
    file = folder / hashlib.sha1(f"{_SOURCE}{name}.tiktoken".encode(), usedforsecurity=False).hexdigest()
    if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != _VOCABULARIES[name]:
        return None
    import tiktoken  # heavy; its file is there and whole, so that it will not download one

    return tiktoken.get_encoding(name)


def _cache_folder() -> Path | None:
    named = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    folder = Path(tempfile.gettempdir(), "data-gym-cache") if named is None else Path(named)
    return folder if named != "" and folder.is_dir() else None
