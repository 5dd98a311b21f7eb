"""What somebody gave is told in a few words, and no secret is among them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.wording import told


def test_what_stands_in_a_dict_is_not_told() -> None:
    """A model's settings may be given in the place of a model, its key among them."""
    assert told({"model": "m", "api_key": "k-0123"}) == "the dict with 'model', 'api_key'"
    assert told({}) == "the dict with nothing"


@given(st.text() | st.lists(st.text()) | st.binary() | st.dictionaries(st.text(), st.text()) | st.integers())
def test_what_is_told_of_a_value_is_short(value: Any) -> None:
    """However long it is, but for a number."""
    assert isinstance(value, int) or len(told(value)) < 80
