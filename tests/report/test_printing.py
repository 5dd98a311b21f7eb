"""Tables in terminals of any width: no cell is cut off, and no word of one is broken."""

from __future__ import annotations

import builtins
import re

import pytest
from rich.cells import cell_len
from rich.table import Table

from textgrad_engine.report.looked_at import line_of
from textgrad_engine.report.printing import Sentences, fitted, hanging, padded, printed, wrapped

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
    lines = printed([Sentences(text, 2)], width, color=False).split("\n")
    assert [command in line for line in lines].count(True) == 1
    assert all(line.startswith("  ") and len(line) <= width for line in lines if line and command not in line)
    assert " ".join(line.strip() for line in lines).strip() == text


def test_wide_letters_take_two_columns_each() -> None:
    """A name in Chinese has as many letters as an English one and twice the width: values stand below each other."""
    names = ["\u5de5\u5355", "expected", "\u90e8\u95e8\u540d\u79f0\u548c\u5730\u533a", "\ud2f0\ucf13"]
    lines = printed([line_of(name, "x") for name in names], 80, color=False).splitlines()
    assert {cell_len(line) for line in lines} == {len("    expected   x")}
    first, second = printed([hanging("\u5de5\u5355: ", "", "x" * 74 + " y")], 80, color=False).splitlines()[:2]
    assert (cell_len(first), second) == (80, "      y")


@pytest.mark.parametrize(
    ("text", "columns", "first", "lines"),
    [
        ("well-known e-mail of x", 10, "", ["well-known", "e-mail of", "x"]),  # no hyphen is an end of a line
        ("one  two\nthree", 20, "", ["one two three"]),
        ("a longer-than-that word", 8, "", ["a", "longer-t", "han-that", "word"]),
        ("to be or not", 12, " 0.75 [0.1] ", [" 0.75 [0.1] to be or not"]),
        ("\x1b[2Jclear", 30, "", ["\ufffd[2Jclear"]),
        ("x " * 80, 200, "", [("x " * 80).strip()]),
        ("", 9, "  ", []),
    ],
)
def test_lines_are_broken_alike_whatever_letters_are_in_them(
    text: str, columns: int, first: str, lines: list[str]
) -> None:
    """A text with one foreign name in it was broken at other places, and cut at 100 columns."""
    assert wrapped(text, columns, first) == lines
    foreign = [line.replace("e", "\xe9").replace("x", "\xf8") for line in lines]
    assert wrapped(text.replace("e", "\xe9").replace("x", "\xf8"), columns, first) == foreign


def test_a_wide_letter_takes_two_columns() -> None:
    """A long word is broken where the line ends, and no letter is."""
    assert wrapped("\u6f22\u5b57\u6f22\u5b57 ok", 7) == ["\u6f22\u5b57\u6f22", "\u5b57 ok"]


@pytest.mark.parametrize(
    "text",
    ["\u8bf7\u53ea\u56de\u7b54\u90e8\u95e8\u7684\u540d\u79f0\u3002" * 20, "\ubd80\uc11c \uc774\ub984\ub9cc " * 20],
)
def test_wrapped_lines_fit_a_terminal(text: str) -> None:
    """Counted by letters, they are twice as wide as the terminal where these are wide."""
    lines = wrapped(text, 40, "  weight ")
    assert max(map(cell_len, lines)) <= 40
    assert lines[0].startswith("  weight ")
    assert all(line.startswith(9 * " ") for line in lines[1:])
    assert "".join(lines).replace("weight", "").replace(" ", "") == text.replace(" ", "")
    assert wrapped("to be or not to be", 9, "a: ") == ["a: to be", "   or not", "   to be"]
