"""What tells the data of a run from other data."""

from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine.cli import run_data
from textgrad_engine.cli.run_data import digest_of, digests_of, row_digests, rows_of_splits
from textgrad_engine.data import Dataset

SIGNED = "https://files.example/a.png?v=2&sv=2024-11-04&se=2026-11-24&sr=b&sp=r&sig=aBc%3D"
ROWS = Dataset([{"id": "a", "q": "Grüße"}, {"id": "b", "q": SIGNED}])


def test_data_has_the_digests_that_are_in_run_folders() -> None:
    """Else `resume` and `eval` of runs of before would take their own data for other data."""
    assert digests_of(ROWS) == ["f1d01c7868e2dce0", "1c9cbc8a06e75c14"]
    assert digests_of(Dataset([{"id": "a", "q": "1 + 1?"}])) == ["657c6b2e6e9b0483", "657c6b2e6e9b0483"]


def test_each_row_is_written_once_for_a_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of thousands of documents or images each writing takes seconds."""
    written: list[Any] = []
    monkeypatch.setattr(run_data, "dumps", lambda row: written.append(row) or b"")
    digest_of(ROWS)
    assert [row["id"] for row in written] == ["a", "b"]


@pytest.mark.parametrize(("rows", "opens"), [({"test": "x"}, True), ({"val": "x"}, False), (1.5, False), (None, False)])
def test_a_line_about_an_evaluation_may_hold_anything(rows: Any, opens: bool) -> None:
    """A folder may come from anybody, and what counts the openings of its test set reads all of these lines."""
    assert run_data.opens_test({"event": "EvaluationStarted", "rows": rows}) is opens


BEFORE = ["91feef3c623f", "8a23f5b4708f"]


def test_rows_are_known_by_the_digests_that_folders_of_before_have_of_them() -> None:
    """Theirs have 12 digits, which 5,000,000 rows do not tell apart."""
    rows = row_digests(ROWS)
    assert [len(row) for row in rows] == [16, 16]
    assert [row[:12] for row in rows] == BEFORE
    for digits in (12, 16):
        kept = {"digests": {"test": "other"}, "rows": {"test": " ".join(row[:digits] for row in [*rows, "f" * 16])}}
        assert rows_of_splits(kept, ROWS) == {"test": 2}
        assert rows_of_splits(kept, Dataset([{"q": "1 + 1?"}, ROWS[0]])) == {"test": 1}
    assert rows_of_splits({"rows": {"test": rows[0][:11]}}, ROWS) == {}
