"""Single examples: what got worse is not lost among what was never right."""

from __future__ import annotations

import json
import math

from textgrad_engine.report.looked_at import looked_at_as_json, looked_at_in_words, worst_of
from textgrad_engine.report.printing import printed
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.metric_scores import MetricScores


def scored(*scores: float | None, failures: dict[str, str] | None = None, **fields: object) -> Evaluation:
    ids = tuple("abcdefgh"[: len(scores)])
    said = tuple(None if each is None else f"said {each:g}" for each in scores)
    return Evaluation(ids, scores, said, failures or {}, **fields)  # type: ignore[arg-type]


ROWS = {name: {"id": name, "text": f"text of {name}", "more": 3, "target": "T"} for name in "abcdefgh"}


def shown(*args: object, most: int = 5, targets: tuple[str, ...] = ("target",)) -> str:
    found = worst_of(ROWS, *args)  # type: ignore[arg-type]
    return printed([*looked_at_in_words(found, most, targets, "the seed prompt")], 80, color=False)


def test_what_fell_farthest_comes_first_then_what_scores_least() -> None:
    """Those without an answer before others, and those with the best score not at all."""
    after = scored(1.0, 0.5, 0.0, 0.2, 0.0, None, None, failures={"f": "it was cut off", "g": "503"})
    before = scored(0.0, 0.5, 0.4, 1.0, 0.0, 0.3, None)
    found = worst_of(ROWS, after, before)
    assert [(each.id, each.worse) for each in found] == [
        ("f", True),
        ("d", True),
        ("c", True),
        ("g", False),
        ("e", False),
        ("b", False),
    ]
    assert [each.why for each in found[:2]] == ["it was cut off", ""]
    assert found[3].why == "503"


def test_without_anything_to_compare_the_lowest_come_first() -> None:
    """In the order of the data where they are equal."""
    found = worst_of(ROWS, scored(0.5, 0.0, 1.0, 0.0), None)
    assert [each.id for each in found] == ["b", "d", "a"]
    assert not any(each.worse for each in found)
    assert "worse" not in shown(scored(0.5, 0.0, 1.0, 0.0), None)


def test_the_best_score_is_that_of_the_scale() -> None:
    """Where nobody knows one it is the highest that there is; what was never run is no example to look at."""
    assert [each.id for each in worst_of(ROWS, scored(3.0, 5.0, scale=(1.0, 5.0)), None)] == ["a"]
    assert [each.id for each in worst_of(ROWS, scored(3.0, 7.0), None)] == ["a"]
    assert [each.id for each in worst_of(ROWS, scored(3.0, 7.0, scale=(0.0, math.inf)), None)] == ["a", "b"]
    assert worst_of(ROWS, scored(1.0, None, not_run=("b",)), None) == []
    assert [each.why for each in worst_of(ROWS, scored(None, None), None)] == ["no answer", "no answer"]


def test_it_says_what_was_asked_expected_and_said() -> None:
    """Once each; a text as one line, however long, and nothing in it that a terminal would take for a command."""
    ROWS["h"] = {"text": "x\n" * 400 + "\x1b[2J", "more": {"k": [1]}, "target": "T", "b": None}
    after, before = scored(*[1.0] * 6, 0.0, 0.0), scored(*[1.0] * 6, 1.0, 0.0)
    said = shown(after, before)
    assert "2 examples without the best score, 1 of them worse than with the seed prompt." in said
    assert "  g   0.000, with the seed prompt 1.000   worse\n    text       text of g\n    more       3\n" in said
    assert "    expected   T\n    said       said 0\n    before     said 1\n\n  h   0.000" in said
    assert said.count("before ") == 1  # of the other one both said the same
    assert "\x1b" not in said
    assert "more characters]" in said
    assert max(map(len, said.splitlines())) <= 80
    assert "and 1 more; --examples 2 shows all." in shown(after, before, most=1)
    assert shown(scored(1.0), None) == "  Every example has the best score.\n"


def test_several_answers_are_told_by_their_columns() -> None:
    """And a row that has none says nothing of it."""
    ROWS["a"] = {"text": "t", "queue": "billing", "euros": 3}
    ROWS["b"] = {"text": "t"}
    found = worst_of(ROWS, scored(0.0, 0.5), None)
    first, second = looked_at_as_json(found, ("queue", "euros"))
    assert (first["expected"], second["expected"]) == ({"queue": "billing", "euros": 3}, None)
    json.dumps([first, second], allow_nan=False)
    said = shown(scored(0.0, 0.5), None, targets=("queue", "euros"))
    assert '    expected   {"queue": "billing", "euros": 3}\n' in said
    assert said.count("expected") == 1


def test_what_an_answer_lost_by_is_named() -> None:
    """Of several metrics, and of criteria, those with less than full marks; nothing of an example without an answer."""
    by = (
        MetricScores("label", (1.0, 0.0, None), (0, 1), 3.0),
        MetricScores("why", (2.0, 5.0, None), (1, 5), 1.0),
        MetricScores("not: It lies.", (0.0, 1.0, None), (0, 1), -1.0, is_criterion=True),
    )
    after = scored(0.5, 0.25, None, failures={"c": "503"}, parts=by)
    rows = looked_at_as_json(worst_of(ROWS, after, None), ["target"])
    assert {row["id"]: row["parts"] for row in rows} == {
        "c": {}, "b": {"label": 0.0}, "a": {"why": 2.0, "not: It lies.": 0.0}
    }  # fmt: skip
    text = shown(after, None)
    assert text.count("lost by") == 2
    assert "    lost by    why: 2 of 5\n               not: It lies.\n" in text


def test_each_output_of_several_is_shown_by_its_name() -> None:
    """As JSON the first of them took all the room, with its line breaks as two characters each."""
    said = {"transcript": "user: Hi.\nassistant: " + "Yes. " * 100, "summary": "Nothing was said.\nTwice."}
    after = Evaluation(("a",), (0.5,), (said,), {})
    lines = shown(after, Evaluation(("a",), (0.7,), ({"summary": ["x"], "transcript": "A\nB"},), {})).splitlines()
    assert lines[6].startswith("    said       transcript: user: Hi. assistant: Yes. Yes. ")
    assert "               summary: Nothing was said. Twice." in lines
    assert '    before     summary: ["x"]' in lines
    assert "               transcript: A B" in lines
