"""What stands in the content of an answer's message: a text, nothing, or a list of parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def text_in(content: Any) -> str | None:
    """The text of a content, or of a piece of it that was streamed; None when it is neither text nor parts.

    Parts that are no text (what a model thought, a refusal) are left out.

    Example:
        >>> text_in([{"type": "thinking", "thinking": []}, {"type": "text", "text": "yes"}]), text_in(None), text_in(5)
        ('yes', '', None)
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        texts = [part.get("text") or "" for part in content if part.get("type", "text") == "text"]
        return "".join(texts) if all(isinstance(text, str) for text in texts) else None
    return None


def refusal_in(message: Any) -> str:
    """The words in which a message, or a piece of it, declines to answer: a field of its own, or parts of its content.

    Example:
        >>> refusal_in({"content": [{"type": "refusal", "refusal": "I cannot help with that."}]})
        'I cannot help with that.'
    """
    content = message.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    said = [message.get("refusal"), *(part.get("refusal") for part in parts if part.get("type") == "refusal")]
    return "".join([words for words in said if isinstance(words, str)])


def thoughts_in(message: Mapping[str, Any]) -> tuple[str, str]:
    """The field in which thoughts are told beside an answer, and these; "" and "" where there are none.

    Some endpoints tell them in two fields.

    Example:
        >>> thoughts_in({"content": "yes", "reasoning_content": "Why not?"})
        ('reasoning_content', 'Why not?')
    """
    told = [(name, message.get(name)) for name in ("reasoning_content", "reasoning")]
    return next(((name, said) for name, said in told if isinstance(said, str) and said.strip()), ("", ""))
