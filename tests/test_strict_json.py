"""What Python's reader takes and JSON does not have is refused, wherever the library reads JSON of others."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.strict_json import DECODER, NoJSONError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_json_is_read_as_python_reads_it(value: object) -> None:
    """All that may be written is read again."""
    assert DECODER.decode(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("NaN", "NaN is no JSON"),
        ('{"a": [-Infinity]}', "-Infinity is no JSON"),
        ('{"a": 1e400}', "the number 1e400 is too large"),
        ("-1" + "0" * 400 + ".0", "the number -10{38} is too large"),
    ],
)
def test_what_is_no_json_is_named(text: str, why: str) -> None:
    """Beside what is no JSON for Python, either."""
    with pytest.raises(NoJSONError, match=f"^{why}$"):
        DECODER.decode(text)
    with pytest.raises(json.JSONDecodeError):
        DECODER.decode("{")
