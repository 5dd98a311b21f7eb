"""The orders of demonstrations."""

from __future__ import annotations

from textgrad_engine.optim.demo_orders import by_label, by_likeness
from textgrad_engine.optim.demos import Demo


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
