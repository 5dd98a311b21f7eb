from __future__ import annotations

import base64
import struct

import pytest

from textgrad_engine.llm import Message, Request, images, tokens
from textgrad_engine.testing import png


def part(content: bytes | str, detail: str | None = None) -> dict[str, object]:
    url = content if isinstance(content, str) else f"data:image/png;base64,{base64.b64encode(content).decode()}"
    return {"type": "image_url", "image_url": {"url": url} if detail is None else {"url": url, "detail": detail}}


def sized(width: int, height: int) -> bytes:
    """The beginning of a PNG file of that size."""
    return png([[(0, 0, 0)]])[:16] + struct.pack(">II", width, height) + b"\x08\x02\0\0\0"


@pytest.mark.parametrize(
    ("model", "width", "height", "expected"),
    [
        ("openai/gpt-4o", 1024, 1024, 765),  # the examples of OpenAI's guide
        ("openai/gpt-4o", 2048, 4096, 1105),
        ("gpt-4.1", 100, 100, 255),
        ("gpt-5", 1024, 1024, 630),
        ("o1", 1024, 1024, 675),
        ("gpt-4o-mini", 512, 512, 8500),
        ("gpt-4.1-mini", 1024, 1024, 1659),
        ("openai/gpt-5-mini", 64, 33, 7),
        ("gpt-5-nano", 4000, 4000, 3779),
        ("claude-sonnet-4", 1024, 1024, 1700),
    ],
)
def test_an_image_counts_as_its_model_counts_it(model: str, width: int, height: int, expected: int) -> None:
    """By tiles or by patches; of other models the most that was known before."""
    assert images.tokens_of(part(sized(width, height)), model) == expected


def test_low_detail_is_one_tile_where_tiles_are_counted() -> None:
    """Models that count patches take no notice of it."""
    large = part(sized(2000, 2000), "low")
    assert [images.tokens_of(large, model) for model in ("gpt-4o", "gpt-5", "o1", "gpt-4o-mini")] == [85, 70, 75, 2833]
    assert images.tokens_of(large, "gpt-4.1-mini") == images.tokens_of(part(sized(2000, 2000)), "gpt-4.1-mini")


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (sized(640, 480), "image/png", (640, 480)),
        (b"GIF89a" + struct.pack("<HH", 5, 7), "image/gif", (5, 7)),
        (
            b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x0b\x08" + struct.pack(">HH", 30, 40) + b"\x03",
            "image/jpeg",
            (40, 30),
        ),
        (b"RIFF....WEBPVP8X" + b"\0" * 8 + b"\x09\0\0\x04\0\0", "image/webp", (10, 5)),
        (b"RIFF....WEBPVP8 " + b"\0" * 10 + struct.pack("<HH", 9, 8), "image/webp", (9, 8)),
        (b"\xff\xd8\xff\xe0\0\0", "image/jpeg", None),
        (b"\xff\xd8" + b"\xff\xe0\0\0" * 5000, "image/jpeg", None),
        (sized(0, 5), "image/png", None),
        (b"\x89PNG\r\n\x1a\n", "image/png", None),
        (b"", "image/png", None),
        (b"<svg/>", "image/svg+xml", None),
    ],
)
def test_the_size_is_read_from_the_file_or_not_known(content: bytes, kind: str, expected: object) -> None:
    """A file that is cut off, or lies about itself, is no error: it counts as an image of unknown size."""
    url = f"data:{kind};base64,{base64.b64encode(content).decode()}"
    assert images.pixels(url) == expected
    assert images.tokens_of(part(url), "gpt-4o") >= 255


@pytest.mark.parametrize(
    "url", ["data:image/png;base64,@@@", "data:image/png,plain", "data:image/png;base64", "x" * 10]
)
def test_what_is_no_image_has_no_size(url: str) -> None:
    """Whatever stands there came from somebody's data."""
    assert images.pixels(url) is None


def test_a_request_counts_each_of_its_images() -> None:
    """With its model, or with who will see it where texts are only estimated."""
    request = Request(messages=(Message(role="user", content=[part(sized(64, 64), "low")] * 3),))
    assert tokens.count_request(request, seen_by="gpt-4o") == 3 * 85 + 4
    assert tokens.count_request(request) == 3 * 1700 + 4


def test_the_most_of_a_request_is_above_what_is_counted_for_every_model() -> None:
    """A budget reserves it: the largest image, with the model that counts most for it."""
    request = Request(messages=(Message(role="user", content=[part(sized(9000, 9000), "high")]),))
    for model in ("gpt-4o", "gpt-4o-mini", "gpt-5-nano", "o1", "unknown"):
        assert tokens.most_of_request(request, model) >= tokens.count_request(request, seen_by=model)
