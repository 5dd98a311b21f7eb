"""Patterns that would stop a process are told of when they are given."""

from __future__ import annotations

import pytest

from textgrad_engine import nn
from textgrad_engine.ops.backtracking import endless_part
from textgrad_engine.optim import Lacks, Matches


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        (r"(a+)+$", "(a+)+"),
        (r"^Label: (?:[A-Z]\w*\s?)+\.$", r"(?:[A-Z]\w*\s?)+"),
        (r"(?i)answer:\s*((?:\w+\s*)*):", r"(?:\w+\s*)*"),
        (r"((.*,)*)x", "(.*,)*"),
        (r"(?:x|xx){2,}y", "(?:x|xx){2,}"),
        (r"[(](\d+,?)*[)]", r"(\d+,?)*"),
        (r"((a+)+)?x", "(a+)+"),
        (r"(b)(a+)+\1", "(a+)+"),
        (r"(a+)+(?!zz)", "(a+)+"),
        (r"(a+)+$|.*", "(a+)+"),
        (r"((a+)+|b)x", "(a+)+"),
    ],
)
def test_the_part_that_goes_back_without_end_is_named(pattern: str, part: str) -> None:
    """By trying, so that no kind of pattern has to be foreseen."""
    assert endless_part(pattern) == part


@pytest.mark.parametrize(
    "pattern",
    [
        "Answer: (.*)",
        r"(?s)```(?:json)?\n(.*?)```",
        r"(?:[^,]+,)*[^,]+$",
        r"^(?:[-*] .*\n)+$",
        r"(?:\w+\s+)+\w+\.",
        r"(?:\w++\s*+)+$",
        r"(?>\w+\s*)+$",
        "(a+)+",  # nothing behind it that could fail
        r"Answer: ((?:\w+\s*)+)\n?",
        r"((?:\w+\s*)+).*",
        "(a+)+|b",
        "(?x) (a+)+  # letters",
        r"\(a+\)\+$",
        r"[()+*]+$",
        "(?x) ( \\d+ ) # (a+)+\n\\.",
        r"(a)(?:\1+)*$",
    ],
)
def test_what_ends_is_not_told_of(pattern: str) -> None:
    """A warning that is false would be in each log."""
    assert endless_part(pattern) == ""


def test_who_gives_such_a_pattern_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Before the run; with the pattern, the part, and the repair. Where a text must match whole, a part may be last."""
    Lacks(r"(?:b+)+!")
    Lacks(r"(?:b+)+!")
    Matches(r"(?:c+)+", full=True)
    Matches(r"(?:c+)+")
    nn.OnMatch(nn.ExactMatch(), r"Answer: (?:d+)+\.")
    said = [record.getMessage() for record in caplog.records]
    assert [each.split(" may ")[0] for each in said] == [
        "Lacks: the pattern '(?:b+)+!'",
        "Matches: the pattern '(?:c+)+'",
        "OnMatch: the pattern 'Answer: (?:d+)+\\\\.'",
    ]
    assert "'(?:b+)+' fits the same text in more and more ways. Let what it repeats fit in one way only" in said[0]
