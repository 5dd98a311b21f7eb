"""Tables in terminals of any width: no cell is cut off, and no word of one is broken."""

from __future__ import annotations

import builtins
import re

import pytest
from rich.table import Table

from textgrad_engine.report.printing import fitted, padded, printed, sentences

CELLS = ("validation", "0.448 [0.348, 0.553]", "0.989 [0.938, 0.998]", "87 examples")


def table() -> Table:
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    made.add_column("")
    for name in ("seed prompt", "best prompt", ""):
        made.add_column(name, no_wrap=True)
    made.add_row(*CELLS)
    made.add_row("test", "not tested", "", "")
    return made


def shown(width: int) -> str:
    return printed([padded(fitted(table()), 2)], width, color=False)


@pytest.mark.parametrize("width", range(40, 101))
def test_nothing_is_cut_off(width: int) -> None:
    """At any width that a terminal has, each cell is there as a whole."""
    text = shown(width)
    assert all(cell in text for cell in (*CELLS, "seed prompt", "best prompt"))
    assert max(map(len, text.split("\n"))) <= width


def test_with_room_it_is_a_table() -> None:
    """Columns come closer before rows become lists."""
    assert shown(80) == (
        "               seed prompt            best prompt\n"
        "  validation   0.448 [0.348, 0.553]   0.989 [0.938, 0.998]   87 examples\n"
        "  test         not tested\n"
    )
    assert "  validation 0.448 [0.348, 0.553] 0.989" in shown(70)


def test_without_room_each_row_is_a_list() -> None:
    """An entry is called by its column, what has no name stands at the top, and empty cells are left out."""
    assert shown(40) == (
        "  validation, 87 examples\n"
        "    seed prompt  0.448 [0.348, 0.553]\n"
        "    best prompt  0.989 [0.938, 0.998]\n"
        "  test\n"
        "    seed prompt  not tested\n"
    )


def test_a_first_column_with_a_name_says_it() -> None:
    """A number alone would say nothing."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for name in ("step", "a", "b"):
        made.add_column(name, no_wrap=True)
    made.add_row("3", "x" * 20, "y" * 20)
    assert re.match(r"step 3\n  a  x{20}\n  b  y{20}\n", printed([fitted(made)], 40, color=False))


def test_it_can_be_shown_again_with_more_room() -> None:
    """Who makes the terminal wider gets the wide table."""
    made = fitted(table())
    printed([padded(made, 2)], 70, color=False)
    assert printed([padded(made, 2)], 80, color=False) == shown(80)


def test_in_a_notebook_the_text_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is shown but what the user prints."""

    class ZMQInteractiveShell:
        """What a kernel of Jupyter is known by."""

    before = shown(80)
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    assert shown(80) == before


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_command_in_a_sentence_is_in_one_line(width: int) -> None:
    """Broken, it would be two commands where it is pasted, or another path in quotes; the rest is wrapped."""
    command = "`textgrad-engine resume 'runs of today/a  b' --budget-calls N`"
    text = f"It was killed amid its work. {command} goes on with it."
    lines = printed([sentences(text, 2)], width, color=False).split("\n")
    assert [command in line for line in lines].count(True) == 1
    assert all(line.startswith("  ") and len(line) <= width for line in lines if line and command not in line)
    assert " ".join(line.strip() for line in lines).strip() == text
