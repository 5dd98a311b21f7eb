"""What there is in `textgrad_engine.report`."""

from textgrad_engine.report.beside import beside_as_json, beside_of, changes_as_json, changes_of
from textgrad_engine.report.beside_tables import render_beside, render_patches
from textgrad_engine.report.document import as_json
from textgrad_engine.report.folds import folds_as_json, folds_in_a_line, render_folds
from textgrad_engine.report.folds_page import page_of_folds
from textgrad_engine.report.lineage import lineage_as_json, lineage_of, step_as_json, step_of
from textgrad_engine.report.lineage_tables import render_line, render_step
from textgrad_engine.report.page import is_page, page_of
from textgrad_engine.report.progress import Lines, Progress
from textgrad_engine.report.scoring import score_bar
from textgrad_engine.report.tables import one_line, render, render_unfinished
from textgrad_engine.report.tools import tools_of
from textgrad_engine.report.view import View, view_of

__all__ = [
    "Lines",
    "Progress",
    "View",
    "as_json",
    "beside_as_json",
    "beside_of",
    "changes_as_json",
    "changes_of",
    "folds_as_json",
    "folds_in_a_line",
    "is_page",
    "lineage_as_json",
    "lineage_of",
    "one_line",
    "page_of",
    "page_of_folds",
    "render",
    "render_beside",
    "render_folds",
    "render_line",
    "render_patches",
    "render_step",
    "render_unfinished",
    "score_bar",
    "step_as_json",
    "step_of",
    "tools_of",
    "view_of",
]
