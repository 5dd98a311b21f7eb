from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.optim.contracts import FrozenLines

OLD = "Sort the mail.\nNever give legal advice.\nBe brief.\n  Answer in JSON."
POLICY = "Intro.\n<policy>\nrule 1\nrule 2\n</policy>\nOutro."


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "needs the lines or two markers"),
        ({"lines": ["a", " "]}, ValueError, "none of them blank"),
        ({"lines": "a\nb"}, TypeError, r"write \['a', 'b'\]"),
        ({"between": ("<a>",)}, TypeError, "a pair of a text and a text"),
        ({"between": ("<a>", "")}, ValueError, "pair of markers"),
    ],
)
def test_what_freezes_nothing_is_refused(arguments: dict[str, Any], error: Any, message: str) -> None:
    """Nobody relies on a protection that is none."""
    with pytest.raises(error, match=message):
        FrozenLines(**arguments)


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        ("Sort.\nNever give legal advice.\nx\n  Answer in JSON.", None),
        ("Sort.\nNever give legal advice!\n  Answer in JSON.", "missing or changed"),
        ("Sort.\nNever give legal advice.\nAnswer in JSON.", "missing or changed"),
        ("  Answer in JSON.\nNever give legal advice.", "another one"),
        ("Never give legal advice.  Answer in JSON.", "missing or changed"),
    ],
)
def test_frozen_lines_stay_word_for_word_and_in_order(new: str, problem: str | None) -> None:
    """White space before them included; what stands between them is free."""
    contract = FrozenLines(["Never give legal advice.", "Answer in JSON.", "not in this text"])
    found = contract.problem(OLD, new)
    assert (found is None) if problem is None else (found is not None and problem in found)


def test_a_line_that_stands_there_twice_stays_twice() -> None:
    """Counting, not only looking for it."""
    assert FrozenLines(["a"]).problem("a\nb\na", "a\nb") is not None
    assert FrozenLines(["a"]).problem("a\nb\na", "a\na\na") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Sort.\r\nNever guess.\r\nBe brief.", "Sort it.\nNever guess.\nBe brief."),
        ("Sort.\nNever guess.\nBe brief.", "Sort it.\r\nNever guess.\r\nBe brief."),
        ("Sort.\nNever guess.  \nBe brief.\t", "Sort it.\nNever guess.\nBe brief."),
        ("Sort.\nNe\u0301ver guess.\nBe brief.", "Sort it.\nN\u00e9ver guess.\nBe brief."),
    ],
)
def test_a_rewrite_that_changes_only_what_nobody_sees_at_the_end_of_a_line_keeps_it(old: str, new: str) -> None:
    """Line ends of Windows, blanks behind a line, and how a letter is encoded do not come back from a model."""
    lines = FrozenLines(["Never guess.", "N\u00e9ver guess."])
    assert lines.problem(old, new) is None
    assert lines.problem(old, new.replace("guess.", "guess!")) is not None
    assert FrozenLines(between=("Sort", "brief")).problem(f"<\n{old}", f"<<\n{new}") is not None
    assert FrozenLines(between=("ver guess", "brief")).problem(old, new) is None


def test_a_line_is_known_however_its_letters_are_encoded() -> None:
    """Editors write the one, file systems the other; it would be frozen nowhere."""
    frozen = FrozenLines(["Caf\u00e9."])
    assert frozen.nowhere_in(["Sort.\nCafe\u0301."]) == []
    assert frozen.problem("Sort.\nCafe\u0301.", "Sort.\nCoffee.") is not None


def test_a_function_may_choose_the_lines() -> None:
    """Such as all headings."""
    headings = FrozenLines(lambda line: line.startswith("#"))
    assert headings.problem("# A\nx\n# B", "# A\ny\n# B\n# C") is None
    assert headings.problem("# A\nx\n# B", "# B\nx\n# A") is not None
    assert headings.describe("x") == ""


@pytest.mark.parametrize(
    ("new", "kept"),
    [
        (POLICY.replace("Intro.", "Changed.\nTwice."), True),
        (POLICY.replace("rule 1", "rule one"), False),
        (POLICY.replace("rule 1\n", "rule 1\nrule 1b\n"), False),
        (POLICY.replace("rule 2\n", ""), False),
        (POLICY.replace("<policy>\n", ""), False),
        (POLICY + "\n<policy>\nmy own\n</policy>", False),
        ("Outro.\n<policy>\nrule 1\nrule 2\n</policy>\nIntro.", True),
    ],
)
def test_a_block_between_markers_stays_whole(new: str, kept: bool) -> None:
    """Nothing is changed in it, taken out, or put in; around it everything is free."""
    assert (FrozenLines(between=("<policy>", "</policy>")).problem(POLICY, new) is None) is kept


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("a\n---\nb\n---\nc", ["---\nb\n---"]),
        ("a\n---\nb", ["---\nb"]),
        ("--- b ---\nc", ["--- b ---"]),
        ("c", []),
    ],
)
def test_markers_may_be_equal_or_open(text: str, blocks: list[str]) -> None:
    """A block that is never closed goes to the end: too much is frozen rather than too little."""
    assert FrozenLines(between=("---", "---")).blocks_of(text) == blocks


def test_the_optimizer_is_shown_what_stays() -> None:
    """Lines of a prompt are text, and stand between tags."""
    told = FrozenLines(["Be brief."], between=("<policy>", "</policy>")).describe(POLICY + "\nBe brief.")
    assert "\nBe brief.\n</lines-" in told
    assert "\n<policy>\nrule 1\nrule 2\n</policy>\n</block-" in told


lines = st.lists(st.sampled_from(["a", "b", "c", " a", ""]), max_size=8)


@given(old=lines, new=lines, frozen=st.sampled_from([["a"], ["a", "b"]]))
def test_frozen_lines_are_a_subsequence_of_what_is_allowed(old: list[str], new: list[str], frozen: list[str]) -> None:
    """Law, against a definition of its own: what is frozen can be read off the new text by leaving lines out."""
    wanted = [line for line in old if line.strip() in frozen]
    position = 0
    for line in new:
        if position < len(wanted) and line == wanted[position]:
            position += 1
    found = FrozenLines(frozen).problem("\n".join(old), "\n".join(new))
    assert (found is None) is (position == len(wanted))


@given(lines, st.integers())
def test_adding_lines_keeps_what_is_frozen(old: list[str], seed: int) -> None:
    """Law: lines put anywhere break nothing."""
    new, chance = list(old), random.Random(seed)
    for _ in range(3):
        new.insert(chance.randint(0, len(new)), "new")
    assert FrozenLines(["a", "b"]).problem("\n".join(old), "\n".join(new)) is None
