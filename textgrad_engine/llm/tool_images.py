"""Images that tools give, for endpoints whose tool messages hold text alone.

Chat completions take images in messages of the user (OpenAI: "Image URLs are only allowed for messages with role
'user'"). So those of a turn stand in one behind its tool messages, which say where each of them was. Mistral takes no
message of the user behind one of a tool, and images in these; the Responses API takes them where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from textgrad_engine import templates
from textgrad_engine.llm.images import images_in, is_image


def in_words(content: str | Sequence[Mapping[str, Any]]) -> str:
    """The text of what a tool gave, with the number of each image where it stands.

    Example:
        >>> picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
        >>> in_words([{"type": "text", "text": '{"map":'}, picture, {"type": "text", "text": "}"}])
        '{"map":[image 1]}'
    """
    if isinstance(content, str):
        return content
    texts, number = [], 0
    for part in content:
        number += is_image(part)
        texts.append(f"[image {number}]" if is_image(part) else str(part.get("text", "")))
    return "".join(texts)


def moved_behind(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages as they are sent, with the images of tool messages in a message of the user behind each turn of tools.

    Args:
        messages: as they are sent otherwise.
    """
    if not any(message["role"] == "tool" and images_in(message["content"]) for message in messages):
        return messages
    found: list[dict[str, Any]] = []
    names: dict[Any, str] = {}
    call, images = 0, list[dict[str, Any]]()
    for message in [*messages, None]:
        if message is None or message["role"] != "tool":
            if images:
                found.append({"role": "user", "content": images})
            call, images = 0, []
            if message is None:
                break
            names |= {made.get("id"): _name(made) for made in message.get("tool_calls") or ()}
            found.append(message)
            continue
        call += 1
        content = message["content"]
        for number, image in enumerate(images_in(content), 1):
            tool = names.get(message.get("tool_call_id"), "")
            label = templates.load("tool_image").render(number=number, call=call, tool=tool)
            images += [{"type": "text", "text": label}, dict(image)]
        found.append({**message, "content": in_words(content) if images_in(content) else content})
    return found


def _name(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    return str(function.get("name", "")) if isinstance(function, Mapping) else ""
