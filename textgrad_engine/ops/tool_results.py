"""What a tool gave, as a model is told of it: a text, and the images in it as images."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from textgrad_engine import fences, pytree
from textgrad_engine.autograd import Variable
from textgrad_engine.llm.attachments import as_read_again
from textgrad_engine.llm.images import address_of, is_image, part_problem


def content_of(result: Any) -> str | list[dict[str, Any]]:
    """What a model is told: a text as it is, anything else as JSON, around the images that are in it.

    What is no text in one (half of a character, as names of files may have, or bytes that are not UTF-8) is replaced.

    Args:
        result: what the tool gave. Images are content parts, as `data.image_part` makes them, wherever they stand.

    Raises:
        ValueError: an image is one that no model could get.

    Example:
        >>> picture = {"type": "image_url", "image_url": {"url": "https://example.org/rome.png"}}
        >>> [part.get("text", "an image") for part in content_of({"place": "Rome", "map": picture})]
        ['{"place":"Rome","map":', 'an image', '}']
    """
    data = pytree.map_leaves(_as_told, result)
    if isinstance(data, str) and not isinstance(result, bytes | bytearray):
        return data
    text = to_json(data, fallback=str).decode()
    if '"image_url"' not in text:
        return text
    images: list[Mapping[str, Any]] = []
    mark = fences.nonce_for(text, "image")
    around = to_json(_without_images(json.loads(text), mark, images)).decode()
    if not images:
        return text
    content: list[dict[str, Any]] = []
    for number, piece in enumerate(around.split(f'"{mark}"')):
        content += [_kept(images[number - 1])] if number else []
        content += [{"type": "text", "text": piece}] if piece else []
    return content


def _as_told(leaf: Any) -> Any:
    value = leaf.data if isinstance(leaf, Variable) else leaf
    if isinstance(value, bytes | bytearray):
        return value.decode(errors="replace")
    return sendable(value) if isinstance(value, str) and not value.isascii() else value


def sendable(text: str) -> str:
    """A text without lone surrogates, as names of files may have them; a request that holds one is refused."""
    return text.encode(errors="replace").decode()


def _without_images(value: Any, mark: str, images: list[Mapping[str, Any]]) -> Any:
    if is_image(value) and isinstance(value.get("image_url"), dict):
        images.append(value)
        return mark
    if isinstance(value, dict):
        return {key: _without_images(each, mark, images) for key, each in value.items()}
    return [_without_images(each, mark, images) for each in value] if isinstance(value, list) else value


def _kept(image: Mapping[str, Any]) -> dict[str, Any]:
    """An image as it comes out of a record again, so that what it is sent with is the same request then.

    Raises:
        ValueError: no model could get it.
    """
    if problem := part_problem(image):
        raise ValueError(f"it gave {problem}")
    kept = as_read_again(image)
    given, again = [(address_of(each) or "").partition(";")[0] for each in (image, kept)]
    if given.lower() != again.lower():
        raise ValueError(f"it gave an image of the kind {given[:60]!r}; data.image_part(path) makes a part of a file")
    return kept
