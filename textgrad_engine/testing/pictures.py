"""Small pictures for tests: written as PNG, and seen again by a model that is a function."""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from textgrad_engine.checks import check, listed
from textgrad_engine.errors import ScriptError
from textgrad_engine.llm.images import address_of

Color = tuple[int, int, int]
"""Red, green and blue, each from 0 to 255."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png(pixels: Sequence[Sequence[Color]]) -> bytes:
    r"""A PNG file, the same on every machine.

    Args:
        pixels: the colors of each row, from the top.

    Raises:
        ValueError: there is no pixel, rows differ in length, or a color is not three whole numbers from 0 to 255.

    Example:
        >>> png([[(255, 0, 0)]])[:8]
        b'\x89PNG\r\n\x1a\n'
    """
    pixels = listed("png: pixels", pixels, "rows of colors")
    widths = {len(row) for row in pixels}
    if len(widths) != 1 or 0 in widths:
        raise ValueError(f"a picture has rows of one length, above 0; got rows of {sorted(widths) or 'no'} pixels")
    wrong = [
        color for row in pixels for color in row if not (len(color) == 3 and all(part in range(256) for part in color))
    ]
    if wrong:
        raise ValueError(f"a color is red, green and blue, each from 0 to 255, such as (255, 0, 0); got {wrong[0]!r}")
    header = struct.pack(">IIBBBBB", widths.pop(), len(pixels), 8, 2, 0, 0, 0)
    raw = b"".join(b"\0" + bytes([part for color in row for part in color]) for row in pixels)
    # Stored, not packed: what a library packs may differ from one version of it to the next.
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(raw, 0)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def pixels_of(part: Mapping[str, Any]) -> list[list[Color]]:
    """What a model sees in a content part with a picture that `png` made: the colors of each row.

    Args:
        part: the content part, with a data URL.

    Raises:
        ScriptError: it holds something else.

    Example:
        >>> from textgrad_engine.data import image_part
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp(), "red.png")
        >>> _ = file.write_bytes(png([[(255, 0, 0)]]))
        >>> pixels_of(image_part(file))
        [[(255, 0, 0)]]
    """
    check(pixels_of, locals())
    url = address_of(part) or ""
    try:
        content = base64.b64decode(url.removeprefix("data:image/png;base64,"), validate=True)
        body, at = b"", len(_SIGNATURE)
        while content.startswith(_SIGNATURE) and at < len(content):
            (length,) = struct.unpack(">I", content[at : at + 4])
            kind, inside = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
            if kind == b"IHDR":
                width, height, *form = struct.unpack(">IIBBBBB", inside)
            elif kind == b"IDAT":
                body += inside
            at += 12 + length
        raw, stride = zlib.decompress(body), 1 + 3 * width
        if form != [8, 2, 0, 0, 0] or len(raw) != stride * height or any(raw[row * stride] for row in range(height)):
            raise ValueError("it is of another form")
    except (binascii.Error, ValueError, struct.error, zlib.error, UnboundLocalError) as error:
        raise ScriptError(f"pixels_of reads what testing.png made, in a data URL; got {url[:60]!r}: {error}") from None
    rows = [raw[row * stride + 1 : (row + 1) * stride] for row in range(height)]
    return [[(row[at], row[at + 1], row[at + 2]) for at in range(0, len(row), 3)] for row in rows]
