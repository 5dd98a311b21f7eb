"""What ``textgrad-engine init`` says of answers that are a choice, before anything is paid for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..runner import invoke


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said_of(rows: list[dict[str, Any]], *args: str) -> str:
    """What the command says of a table, in one line."""
    Path("table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = invoke("init", "task", "--data", "table.jsonl", "--model", "simulated/tickets", *args)
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def of_answers(answers: list[Any], *args: str) -> str:
    return said_of([{"mail": f"m{n}", "target": answer} for n, answer in enumerate(answers)], *args)


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([f"kind {n % 30}" for n in range(90)], "the 30 values of 'target', as it names 20 at most"),
        (["a", "b", "b", "a", "bb", "a"], "the 3 values of 'target', as one is there once alone, such as 'bb': "),
        (["a", "b\u00a0c"] * 2, r"the 2 values of 'target', as some would not be read in it as they are, such as 'b"),
        (["a", "{mail}"] * 2, "the 2 values of 'target', as some would not be read in it as they are, such as '{ma"),
    ],
)  # fmt: skip
def test_answers_that_the_first_prompt_does_not_name_are_told_of(answers: list[Any], why: str) -> None:
    """A model that is not told what there is to choose from guesses words of its own, and is always wrong."""
    assert f"The prompt does not name {why}" in of_answers(answers)


@pytest.mark.parametrize(
    "answers", [["a", "b"] * 3, [f"text {n}" for n in range(9)], [n % 25 for n in range(90)], ["a", "a", "", ""]]
)
def test_named_answers_texts_and_numbers_are_told_nothing(answers: list[Any]) -> None:
    """A text that seldom comes again is no choice, and of an empty one something else is said."""
    assert "does not name" not in of_answers(answers)


def test_whoever_has_a_prompt_names_the_answers_there() -> None:
    Path("mine.txt").write_text("Sort it by our list.", encoding="utf-8")
    assert "does not name" not in of_answers([f"kind {n % 30}" for n in range(90)], "--prompt", "mine.txt")


@pytest.mark.parametrize(("system", "told"), [("Sort it by our list.", False), ("", True)])
def test_chats_that_have_a_prompt_name_the_answers_there(system: str, told: bool) -> None:
    """Their system message is the prompt; where they have none, the first one is written as for any table."""
    before = [{"role": "system", "content": system}] if system else []
    answers = [{"role": "assistant", "content": f"kind {n % 30}"} for n in range(90)]
    rows = [{"messages": [*before, {"role": "user", "content": f"m{n}"}, end]} for n, end in enumerate(answers)]
    assert ("does not name the 30 values" in said_of(rows)) == told


def test_the_answers_of_a_field_are_told_of_by_its_name() -> None:
    rows = [{"mail": f"m{n}", "kind": f"kind {n % 30}", "n": n} for n in range(90)]
    assert "does not name the 30 values of 'kind', as" in said_of(rows, "--target", "kind", "--target", "n")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (["no"] * 19 + ["yes"], "'target' is 'no' in 19 of 20 rows, so a prompt that says it always scores 0.950: `sh"),
        (["no", "no ", "no"], "'target' is 'no' in all 3 rows, so a prompt that says it always is right, and"),
    ],
)  # fmt: skip
def test_one_answer_that_most_rows_have_is_told_of(answers: list[Any], said: str) -> None:
    """A score of 0.95 reads as if the prompt were good."""
    assert said in of_answers(answers)


@pytest.mark.parametrize("answers", [["no"] * 17 + ["yes"] * 3, ["no"]])
def test_answers_that_share_the_rows_are_told_nothing(answers: list[Any]) -> None:
    assert "always" not in of_answers(answers)


@pytest.mark.parametrize(
    ("answers", "named"),
    [
        (["Ja", "ja", "JA ", "nein"] * 3, "'JA', 'Ja' and 'ja'"),
        (["nein", "nei\u00adn", "ja"] * 3, r"'nein' and 'nei\xadn'"),
        (["sehr gut", "sehr\u00a0gut", "schlecht"] * 3, r"'sehr gut' and 'sehr\xa0gut'"),
        (["12", "\uff11\uff12", "x"] * 3, "'12' and '\uff11\uff12'"),
    ],
)
def test_answers_that_a_reader_takes_for_one_and_exact_match_does_not_are_told_of(
    answers: list[Any], named: str
) -> None:
    """Whoever typed a table wrote a class in several ways, and a right answer would be wrong in some rows."""
    assert f"Exact match tells {named} apart, which are 'target' in different rows" in of_answers(answers)


def test_answers_of_other_letters_are_not() -> None:
    assert "Exact match tells" not in of_answers(["ja", "nein", "ja ", "x2", "x\u00b2"] * 3)


def test_rows_with_equal_inputs_and_other_answers_are_told_of() -> None:
    """No prompt can be right on both, and they would be trained on as slips."""
    rows = [{"mail": f"m{n % 6}", "target": answer} for n, answer in enumerate("abcabcabdab ")]
    said = said_of([*rows, {"mail": "m6", "target": "a"}, {"mail": "m6", "target": "a "}])
    assert "4 rows have the same mail as another one, and another answer: at most 2 of them can be right." in said


@pytest.mark.parametrize(
    "answers",
    [
        ["Two and two.\n#### 4", "Count them.\n#### 4"],
        [["a", "b"], ["b", "a"]],
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
        [12, 12.0],
    ],
)
def test_answers_that_a_metric_takes_for_one_are_not_at_odds(answers: list[Any]) -> None:
    """The reasoning before an answer may be another one, and so may the order of tags and of fields."""
    assert "another answer" not in said_of([{"mail": f"m{n // 2}", "target": answers[n % 2]} for n in range(8)])


def test_an_answer_that_some_rows_lack_is_compared_too() -> None:
    rows = [{"mail": f"m{n // 2}", "sum": (None, "#### 4")[n % 2], "kind": "a"} for n in range(8)]
    assert "8 rows have the same mail as another one, and another" in said_of(
        rows, "--target", "sum", "--target", "kind"
    )


def test_rows_with_other_inputs_are_not() -> None:
    assert "another answer" not in of_answers(["a", "b"] * 3)


@pytest.mark.parametrize(("name", "other", "is_told"), [("ID", "n", True), ("ID", "id", False), ("mail", "n", False)])
def test_a_column_that_is_nearly_called_id_is_told_of(name: str, other: str, is_told: bool) -> None:
    """A spreadsheet writes it in capitals; shown to the model, it makes equal mails different ones."""
    rows = [{name: f"k{n}", other: n, "text": f"m{n}", "target": "ab"[n % 2]} for n in range(9)]
    assert (f"The model is shown the column {name!r}: called 'id' it" in said_of(rows)) == is_told


@pytest.mark.parametrize(("other", "told"), [("4", False), ("5", True)])
def test_answers_behind_their_reasoning_are_at_odds_by_what_is_compared(other: str, told: bool) -> None:
    """Two ways of thinking may come to one answer."""
    rows = [{"mail": "m0", "target": f"So it is.\n#### {n}"} for n in (4, 4)]
    rows += [{"mail": "m0", "target": f"As I see it.\n#### {other}"}, {"mail": "m1", "target": "Easy.\n#### 7"}]
    assert ("another answer" in said_of(rows)) == told
