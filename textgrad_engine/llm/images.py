"""Content parts that are no text, above all images: what they are, how large they are, how many tokens they take.

OpenAI counts an image in one of two ways (its guide "Images and vision"): most models by tiles of 512 pixels, after
the image was made to fit into 2,048 and its shorter side was made 768, with ``detail`` "low" as one tile's base alone;
small ones by patches of 32 pixels, of which there are 1,536 at most, times a factor.
"""

from __future__ import annotations

import base64
import binascii
import functools
import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from textgrad_engine.signed import unsigned

IMAGE = 1_700
"""Tokens that an image counts as where nothing is known of its size: the most that the tiles of most models come to."""

_KINDS = {"image_url": "an image", "input_audio": "a recording", "file": "a file"}
"""What content parts are called that are no text."""

_HEADER = 65_536
"""Bytes of an image in which its size is looked for; photographs have a preview before it."""


class _Tiles(NamedTuple):
    base: int
    tile: int


_PATCHES = (
    (re.compile(r"gpt-5[\w.]*-mini|gpt-4\.1-mini"), 1.62),
    (re.compile(r"gpt-5[\w.]*-nano|gpt-4\.1-nano"), 2.46),
    (re.compile(r"o4-mini"), 1.72),
)
_BY_TILES = (
    (re.compile(r"gpt-4o-mini"), _Tiles(2_833, 5_667)),
    (re.compile(r"gpt-5"), _Tiles(70, 140)),
    (re.compile(r"(?:^|/)o[13](?:\b|-)"), _Tiles(75, 150)),
    (re.compile(r"gpt-4"), _Tiles(85, 170)),
)
_MOST_PATCHES = 1_536


def is_part(value: Any) -> bool:
    """Whether a value is a content part that is no text: an image, a recording or a file.

    Example:
        >>> is_part({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}), is_part({"type": "text"})
        (True, False)
    """
    return isinstance(value, Mapping) and value.get("type") in _KINDS


def is_image(value: Any) -> bool:
    """Whether a value is a content part with an image, which an address or a data URL gives."""
    return isinstance(value, Mapping) and value.get("type") == "image_url"


def images_in(content: str | Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The images in the content of a message."""
    return [] if isinstance(content, str) else [part for part in content if is_image(part)]


def name_of_part(part: Mapping[str, Any]) -> str:
    """What a part is called where it is not shown.

    Example:
        >>> name_of_part({"type": "file", "file": {"file_id": "x"}}), name_of_part({"type": "custom"})
        ('a file', 'custom')
    """
    kind = part.get("type", "part")
    return _KINDS.get(kind, str(kind))


def part_problem(part: Mapping[str, Any]) -> str:
    """What is wrong about a content part, with the repair; "" where nothing is.

    Example:
        >>> part_problem({"type": "image_url", "image_url": "a.png"})
        "an image without an address, which stands in part['image_url']['url']; data.image_part('a.png') makes a part"
        >>> part_problem({"type": "image_url", "image_url": {"url": "a.png"}})
        "an image at 'a.png', where no model can get it; data.image_part('a.png') reads a file"
    """
    if not is_image(part):
        return ""
    url = address_of(part)
    if url is None:
        path = part.get("image_url")
        make = f"data.image_part({path[:60]!r})" if isinstance(path, str) else "data.image_part(path)"
        return f"an image without an address, which stands in part['image_url']['url']; {make} makes a part"
    if not re.match(r"(?i)https?://|data:image/|gs://|s3://", url):
        url = unsigned(url)[:60]
        return f"an image at {url!r}, where no model can get it; data.image_part({url!r}) reads a file"
    return ""


def address_of(part: Mapping[str, Any]) -> str | None:
    """The address or data URL of an image; None where it has none that is text.

    Example:
        >>> address_of({"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}})
        'https://example.org/a.png'
    """
    inside = part.get("image_url")
    url = inside.get("url") if isinstance(inside, Mapping) else None
    return url if isinstance(url, str) else None


def tokens_of(part: Mapping[str, Any], model: str | None = None) -> int:
    """About how many tokens an image takes; `IMAGE` where its size, or how its model counts, is not known.

    Args:
        part: the content part.
        model: the model that will see it.

    Example:
        >>> part = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}
        >>> tokens_of(part, "openai/gpt-4o"), tokens_of(part, "openai/gpt-5"), tokens_of(part)
        (85, 70, 1700)
    """
    inside = part.get("image_url")
    detail = inside.get("detail") if isinstance(inside, Mapping) else None
    url = address_of(part) or ""
    name = (model or "").lower()
    factor = next((each for pattern, each in _PATCHES if pattern.search(name)), None)
    if factor is not None:
        size = pixels(url)
        return math.ceil(factor * (_MOST_PATCHES if size is None else _patches(*size)))
    tiles = next((each for pattern, each in _BY_TILES if pattern.search(name)), None)
    if tiles is None:
        return IMAGE
    if detail == "low":
        return tiles.base
    size = pixels(url)
    return tiles.base + tiles.tile * (8 if size is None else _tiles(*size))


def _tiles(width: int, height: int) -> int:
    scale = min(1.0, 2048 / max(width, height))
    width, height = max(1, round(width * scale)), max(1, round(height * scale))
    scale = min(1.0, 768 / min(width, height))
    return math.ceil(round(width * scale) / 512) * math.ceil(round(height * scale) / 512)


def _patches(width: int, height: int) -> int:
    return min(_MOST_PATCHES, math.ceil(width / 32) * math.ceil(height / 32))


def pixels(url: str) -> tuple[int, int] | None:
    """Width and height of an image in a data URL, as its file says; None where that is not to be seen.

    Example:
        >>> pixels("data:image/gif;base64," + base64.b64encode(b"GIF89a" + bytes([3, 0, 2, 0])).decode())
        (3, 2)
    """
    before, comma, _ = url[:100].partition(",")
    if not (comma and url[:11].lower() == "data:image/" and before.lower().endswith(";base64")):
        return None
    return _pixels_in(url[len(before) + 1 : len(before) + 1 + _HEADER * 4 // 3])


def from_base64(encoded: str) -> bytes:
    """The bytes that a text in base64 stands for, in either of its alphabets.

    Python's own function for that of addresses warns of the other one from 3.15 on.

    Raises:
        ValueError: it is no base64.

    Example:
        >>> from_base64("+/8=") == from_base64("-_8=") == bytes([251, 255])
        True
    """
    return base64.b64decode(encoded.replace("-", "+").replace("_", "/"))


@functools.lru_cache(maxsize=256)
def _pixels_in(encoded: str) -> tuple[int, int] | None:
    try:
        head = from_base64(encoded[: len(encoded) // 4 * 4])
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            found = struct.unpack(">II", head[16:24])
        elif head.startswith((b"GIF87a", b"GIF89a")):
            found = struct.unpack("<HH", head[6:10])
        elif head.startswith(b"\xff\xd8"):
            found = _of_jpeg(head)
        elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            found = _of_webp(head)
        else:
            return None
    except (binascii.Error, ValueError, struct.error, IndexError):
        return None
    return (found[0], found[1]) if all(found) else None


def _of_jpeg(head: bytes) -> tuple[int, ...]:
    at = 2
    while head[at] == 0xFF:
        mark = head[at + 1]
        if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        (length,) = struct.unpack(">H", head[at + 2 : at + 4])
        at += 2 + max(2, length)
    return (0, 0)


def _of_webp(head: bytes) -> tuple[int, ...]:
    kind = head[12:16]
    if kind == b"VP8X":
        width, height = int.from_bytes(head[24:27], "little"), int.from_bytes(head[27:30], "little")
        return width + 1, height + 1
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", head[26:30])
    return width & 0x3FFF, height & 0x3FFF
