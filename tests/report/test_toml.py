"""Settings as TOML: what is read back from it is what was written."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.report.toml import as_toml

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["a\nb", "'''", "a\n'", "\n\n", "\\", '"""', "a\r\nb", "\x7f", "a\n\x00", "x\n'''y"]
)
PLAIN = TEXTS | st.integers(-(2**40), 2**40) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, min_size=1, max_size=3)
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_it_is_read_back(values: dict[str, Any]) -> None:
    """Any key, any text, tables in tables and in lists."""
    assert tomllib.loads(as_toml(values)) == values


def test_what_is_null_is_left_out() -> None:
    """TOML has no null, and a table of nulls is no table."""
    assert as_toml({"a": None, "b": {"c": None}, "d": [{"e": None, "f": 1}]}) == "d = [{ f = 1 }]"


def test_an_empty_table_further_in_is_read_back() -> None:
    """It may be the schema of a field that takes anything; one of the first two levels is a setting that is not set."""
    values = {"a": {"b": {"c": {}, "d": [{}, {"e": {}}]}}}
    assert tomllib.loads(as_toml(values)) == values
    assert as_toml({"a": {"b": {}, "c": 1}}) == "[a]\nc = 1"
