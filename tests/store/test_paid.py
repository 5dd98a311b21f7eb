"""What a run has paid for, where it was cut and gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from textgrad_engine.store import paid

MANY = 500


def line(number: int, place: list[int]) -> str:
    return json.dumps({"request": {"messages": []}, "text": "yes", "time": str(number), "place": place})


def test_equal_answers_are_told_apart_without_looking_at_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    may_be = paid._may_be
    monkeypatch.setattr(paid, "_may_be", lambda *pair: looks.append(pair) or may_be(*pair))
    content = "".join(line(number, [0, number % 2]) + "\n" for number in range(MANY))
    (tmp_path / "answers-1.jsonl").write_text(content, encoding="utf-8")
    (tmp_path / "completions.jsonl").write_text(content + line(MANY, [0, 0]) + "\n", encoding="utf-8")

    again = [each.again for each in paid.paid_for(tmp_path)]

    assert again == [False] * MANY + [True] * MANY + [False]
    assert len(looks) <= MANY


def test_what_was_kept_without_its_place_was_given_again_to_any(tmp_path: Path) -> None:
    (tmp_path / "answers-1.jsonl").write_text(line(0, []) + "\n" + line(1, [0, 1]) + "\n", encoding="utf-8")
    again = [line(2, [0, 1]), line(3, [0, 2]), line(4, [0, 1])]
    (tmp_path / "completions.jsonl").write_text("\n".join(again) + "\n", encoding="utf-8")

    assert [each.again for each in paid.paid_for(tmp_path)] == [False, False, True, True, False]
