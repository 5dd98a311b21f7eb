"""Single examples of a run: what `show --examples` prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from textgrad_engine.cli.measured import Measured, measured_at
from textgrad_engine.cli.output import colors, width
from textgrad_engine.report.looked_at import LookedAt, looked_at_as_json, looked_at_in_words, worst_of
from textgrad_engine.report.printing import printed, styled
from textgrad_engine.report.slices import WHOSE
from textgrad_engine.store import is_folds

if TYPE_CHECKING:
    from rich.console import RenderableType


def of_path(path: Path) -> tuple[Measured, list[LookedAt]]:
    """The validation examples of the run in a folder that do not have the best score; of folds all of their examples.

    Test examples are not shown: who changes prompt or data by these flatters the next test on them.

    Args:
        path: the folder.

    Raises:
        TextgradError: there are none, as `measured_at` says.
    """
    found = measured_at(path, val=not is_folds(path))
    return found, worst_of(found.rows(), found.after, found.before)


def as_document(path: Path, measured: Measured, found: list[LookedAt], most: int) -> dict[str, Any]:
    """What ``--json`` prints."""
    shown = looked_at_as_json(found[:most], measured.config.target_columns())
    worse = None if measured.before is None else sum(each.worse for each in found)
    return {
        "run": str(path),
        "split": measured.split,
        "without_best": len(found),
        "worse": worse,
        "examples": shown,
    }


def in_words(path: Path, measured: Measured, found: list[LookedAt], most: int) -> str:
    """What is printed for people."""
    parts: list[RenderableType] = [styled(f"{path}: {WHOSE[measured.split]}", "bold"), ""]
    parts += looked_at_in_words(found, most, measured.config.target_columns(), "the seed prompt")
    return printed(parts, width(), colors())
