from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine import data
from textgrad_engine.errors import ScriptError
from textgrad_engine.llm.images import pixels
from textgrad_engine.testing import pixels_of, png

COLOR = st.tuples(*[st.integers(0, 255)] * 3)


@given(st.integers(1, 5).flatmap(lambda width: st.lists(st.lists(COLOR, min_size=width, max_size=width), min_size=1)))
def test_a_model_sees_what_was_drawn(rows: list[list[tuple[int, int, int]]]) -> None:
    """Each pixel; and the file says its size where everybody looks for it."""
    part = data.image_part(png(rows))
    assert pixels_of(part) == rows
    assert pixels(part["image_url"]["url"]) == (len(rows[0]), len(rows))


@pytest.mark.parametrize("rows", [[], [[]], [[(0, 0, 0)], []]])
def test_what_has_no_shape_is_not_drawn(rows: list[list[tuple[int, int, int]]]) -> None:
    """It would be a file that nothing opens."""
    with pytest.raises(ValueError, match="rows of one length, above 0"):
        png(rows)


@pytest.mark.parametrize("color", [(1, 2), (1, 2, 3, 255), (1, 2, 256), (-1, 0, 0), (0.5, 0, 0), "red", "#f0"])
def test_what_is_no_color_is_not_drawn(color: Any) -> None:
    """With two parts or four, all that comes after it would be shifted."""
    with pytest.raises(ValueError, match="a color is red, green and blue, each from 0 to 255"):
        png([[(0, 0, 0), color]])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GIF89a",
        png([[(0, 0, 0)]])[:40],
        png([[(0, 0, 0)]]).replace(b"\x08\x02\0\0\0", b"\x08\x06\0\0\0"),
        png([[(0, 0, 0)]]).replace(b"\0\0\0\x01\x08\x02", b"\0\0\0\x02\x08\x02"),  # says that it has a row more
    ],
)
def test_what_testing_did_not_draw_is_a_mistake_in_the_test(content: bytes) -> None:
    """A model that guessed would hide it."""
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(content).decode()}"}}
    with pytest.raises(ScriptError, match=r"reads what testing\.png made"):
        pixels_of(part)
    with pytest.raises(ScriptError, match="https://example"):
        pixels_of({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}})
