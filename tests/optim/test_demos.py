from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine.optim.demos import Demo, by_label, by_likeness, demos_and_queries, solved

ROWS = [
    {"mail": "My bill?", "target": "billing"},
    {"mail": "Hi"},
    {"mail": "My card", "target": "account"},
    {"subject": "?", "target": "other"},
    {"mail": ["a", 1], "target": 2},
]
IDS = ["t1", "t2", "t3", "t4", "t5"]


def test_only_right_answers_are_shown() -> None:
    """What scored too low, went unanswered, has no score or lacks a field is no model to follow."""
    found = solved(IDS, ROWS, ["billing", "hello", None, "other", "x"], [1.0, 0.4, 1.0, 1.0, None], fields=["mail"])
    assert [demo.example for demo in found] == ["t1"]
    nan = float("nan")
    assert solved(IDS[:1], ROWS[:1], ["billing"], [nan], fields=["mail"]) == []


def test_what_is_shown_is_what_was_answered() -> None:
    """The program's own words, not the reference; values that are no texts are JSON."""
    found = solved(IDS, ROWS, ["Billing!", "hello", "account", None, {"n": 2}], [1.0] * 5, fields=["mail"], least=0.5)
    assert [(demo.inputs, demo.answer, demo.label) for demo in found] == [
        ((("mail", "My bill?"),), "Billing!", "billing"),
        ((("mail", "Hi"),), "hello", ""),
        ((("mail", "My card"),), "account", "account"),
        ((("mail", '["a", 1]'),), '{"n": 2}', "2"),
    ]


def test_lists_of_different_lengths_are_refused() -> None:
    """One id too few would put answers down to the wrong examples."""
    with pytest.raises(ValueError, match="got 4, 5, 1 and 1"):
        solved(IDS[:4], ROWS, ["x"], [1.0], fields=["mail"])


def demo(text: str, label: str = "") -> Demo:
    return Demo((("mail", text),), "x", label)


def test_labels_take_turns() -> None:
    """None is lost, and within a label the order stays."""
    demos = [demo("1", "a"), demo("2", "a"), demo("3", "b"), demo("4", "a"), demo("5", "b"), demo("6", "c")]
    assert [each.inputs[0][1] for each in by_label(demos)] == ["1", "3", "6", "2", "5", "4"]
    assert by_label([]) == []


def test_queries_take_turns() -> None:
    """Each gets its nearest before one gets a second; equal ones are one; none is shown twice or lost."""
    demos = [demo("the app crashes"), demo("my card is lost"), demo("the app crashes often"), demo("我的卡丢了")]
    order = by_likeness(demos, ["app crashes often", "app crashes often", "lost card", "卡丢了"])
    assert [each.inputs[0][1] for each in order[:3]] == ["the app crashes often", "my card is lost", "我的卡丢了"]
    assert sorted(map(repr, order)) == sorted(map(repr, demos))
    assert by_likeness(demos, []) == demos


def test_what_fails_is_asked_about_and_not_shown() -> None:
    """What was just solved is shown with the program's words, other examples with theirs, where they have any."""

    class Examples:
        train = ("t1", "t2", "t3", "t4", "t5")

        def demos(self, positions: Any, texts: Any = None) -> list[Demo | None]:
            said = {0: "one", 1: "two", 3: None, 4: "five"} if texts is None else {0: "eins", 1: "zwei", 2: None}
            found = []
            for n in positions:
                answer = said.get(n)
                found.append(None if answer is None else Demo((("mail", f"mail {n + 1}"),), answer, "", self.train[n]))
            return found

    found = demos_and_queries(Examples(), ("Sort.",), {0: 1.0, 1: 0.5, 2: 1.0, 4: None}, 1.0)
    assert [(demo.example, demo.answer) for demo in found["demos"]] == [("t1", "eins"), ("t5", "five")]
    assert found["queries"] == ("mail 2",)
