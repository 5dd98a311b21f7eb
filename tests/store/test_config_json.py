"""What stands in ``config.json``: the kinds of what commands keep there are checked, what Python keeps is its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.errors import RunError
from textgrad_engine.store import read_run


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"folder": 3}, r"config\.json: was damaged: folder is 3, and should be a text; restore it"),
        ({"looks_before": None}, r"looks_before is None, and should be a whole number"),
        ({"digests": ["x"]}, r"digests is the list \['x'\], and should be a table"),
        ({"rows": {"test": 3}}, r"rows\.test is 3, and should be a text"),
        ({"cache": "no"}, r"cache is 'no', and should be True or False"),
        ({"config": "x"}, r"was damaged, as it holds no config"),
    ],
)
def test_a_value_of_another_kind_in_a_config_is_named(
    written: tuple[Path, Any], wrong: dict[str, Any], message: str
) -> None:
    """As of somebody who edited it; what the commands keep there is known."""
    kept = {"format": 1, "folder": "..", "config": {}, **wrong}
    (written[0] / "config.json").write_text(json.dumps(kept), encoding="utf-8")
    with pytest.raises(RunError, match=message):
        read_run(written[0])


def test_what_python_keeps_in_a_config_is_its_own(written: tuple[Path, Any]) -> None:
    """`RunFolder(path, config=...)` takes anything, under whatever names."""
    kept = {"format": 1, "version": 3, "cache": "redis", "config": "prod", "rows": 12}
    (written[0] / "config.json").write_text(json.dumps(kept), encoding="utf-8")
    assert read_run(written[0]).config == kept
