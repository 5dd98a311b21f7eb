"""What a run found: how many candidates there were, and what is known of those that were not taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from textgrad_engine import nn
from textgrad_engine.autograd import Variable
from textgrad_engine.llm import Usage
from textgrad_engine.optim.search.racing import RaceRecord
from textgrad_engine.report import render
from textgrad_engine.train import Evaluation
from textgrad_engine.train.events import StepEnded
from textgrad_engine.train.result import tried


def step(number: int, race: RaceRecord | None, *, kept: bool = False) -> StepEnded:
    return StepEnded(number, 1, ("t",), 0.5, 0, 1, (), None, kept, 0.5, race=race)


def race(*known: tuple[str, float | None]) -> RaceRecord:
    names, after = tuple(name for name, _ in known), tuple(score for _, score in known)
    return RaceRecord("no difference", names, tuple(0.0 for _ in names), after, 0.5, 0.0)


SEED = Evaluation(("a", "b", "c"), (0.0, 1.0, 0.0), ("x",) * 3, {}, clusters=("1", "1", "2"), scale=(0.0, 1.0))


def test_what_was_raced_and_not_taken_counts_as_tried() -> None:
    """In dataset order, with nothing for what was not run; the texts kept last are the best ones, and no rival."""
    steps = [
        step(1, race(("c", 1.0), ("a", 0.0))),
        step(2, None),
        step(3, race(("a", 1.0)), kept=True),
        step(4, race(("b", None), ("a", 1.0)), kept=True),
        step(5, race(("a", 0.5))),
    ]
    found = tried(SEED, steps)
    assert [each.scores for each in found] == [(0.0, None, 1.0), (1.0, None, None), (0.5, None, None)]
    assert {(each.ids, each.clusters, each.scale) for each in found} == {(SEED.ids, SEED.clusters, SEED.scale)}
    assert tried(SEED, []) == []


def test_a_text_that_is_proposed_again_is_one_candidate(world: Any, rows: Any) -> None:
    """It is not paid for twice, and the report says out of how many the best one was chosen."""
    words = ("cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay")
    result = world("makes no difference", "makes no difference", "SHOUT", "more words").fit(
        rows("ant", "bee"), rows(*words), max_epochs=4
    )
    raced = [step.changes[0].after for step in result.steps if step.race is not None]
    assert len(raced) > len(set(raced)) > 1
    assert result.candidates == len(set(raced))
    assert result.comparison is not None
    assert result.comparison.candidates == len(set(raced))
    shown = " ".join(render(result).split())
    assert f"chose the best prompt out of {len(set(raced)) + 1} (seed prompt included)" in shown


def test_without_a_test_set_the_choice_is_corrected(world: Any, rows: Any) -> None:
    """The comparison on the validation set counts the candidates; the one on the test set has none to count."""
    words = ("cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay")
    proposals = ("makes no difference", "SHOUT", "more words")
    result = world(*proposals).fit(rows("ant", "bee"), rows(*words), max_epochs=3)
    assert result.comparison is not None
    assert result.compared_on == "val"
    assert result.candidates > 1
    assert result.comparison.candidates == result.candidates
    assert result.comparison.adjusted is not None
    tested = world(*proposals).fit(rows("ant", "bee"), rows(*words), rows("kiwi", "lynx"), max_epochs=3)
    assert tested.comparison is not None
    assert (tested.compared_on, tested.comparison.adjusted) == ("test", None)


def test_a_notebook_shows_it_in_a_line(world: Any, rows: Any) -> None:
    """How it ended, from what to what, and the comparison; not every step, text and score."""
    result = world("SHOUT").fit(rows("ant", "bee"), rows("cat", "dog", "eel"), rows("kiwi", "lynx"))
    assert repr(result) == f"TrainResult({result})"
    assert "val 0.000 -> 1.000" in repr(result)
    assert "\n" not in repr(result)
    assert len(repr(result)) < 350
    assert str(replace(result, steps=result.steps[:1])).startswith("finished after 1 step; ")
    assert str(replace(result, steps=())).startswith("finished after 0 steps; ")


def test_the_line_says_what_the_run_took_and_which_set_chose(world: Any, rows: Any) -> None:
    """What whoever pays asks next; and a gain on the examples that selected flatters."""
    result = world("SHOUT").fit(rows("ant", "bee"), rows("cat", "dog", "eel"))
    assert " (val, which chose them); " in str(result)
    assert str(result).endswith(f"; {result.total}")
    assert str(result.total) == f"{result.total.calls} calls, {result.total.total_tokens:,} tokens, $0.00"
    unknown = replace(result, usage={"forward": Usage(1000, 200, calls=3, dollars=None)})
    assert str(unknown).endswith("; 3 calls, 1,200 tokens, cost unknown")


def test_the_line_says_how_many_examples_the_verdict_goes_by(world: Any, rows: Any) -> None:
    """Where answers are lost, as everything else that tells of a run says."""
    result = world("SHOUT").fit(rows("ant", "bee"), rows("cat", "dog", "eel"), rows("kiwi", "lynx", "mole"))
    assert " (test); " in str(result)
    some = replace(result, comparison=replace(result.comparison, n=2))
    assert " (test, by 2 of 3 examples); " in str(some)


def test_a_program_that_keeps_its_answers_is_asked_about_where_no_text_changes_a_score(world: Any, rows: Any) -> None:
    """A cache of its own gives answers of before to new texts, and all of the run's calls would look well spent."""
    here, kept = world("SHOUT", "SHOUT louder"), dict[str, Variable]()
    asks = here.program

    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.asks = asks

        def forward(self, word: str) -> Variable:
            return kept[word] if word in kept else kept.setdefault(word, self.asks(word=word))

    here.program = Keeps()
    said = "no change did better (in 2 races no example's score changed: the metric may give no partial credit, or "
    result = here.fit(rows("ant", "bee", "cat", "dog"), rows("eel", "fox", "gnu"))
    assert said in str(result)
    assert said in " ".join(render(result).split())
    changed = step(3, race(("eel", 1.0)))
    for steps in ((*result.steps, changed), result.steps[:1]):
        assert "the seed texts: no change did better; " in str(replace(result, steps=steps))


def test_the_seed_texts_are_not_compared_with_themselves(world: Any, rows: Any) -> None:
    """That no difference was shown, and what would not have been seen, says nothing of one and the same text."""
    result = world("makes no difference").fit(rows("ant", "bee"), rows("cat", "dog", "eel"), rows("kiwi", "lynx"))
    assert result.best == result.seed
    assert "test 0.000 -> 0.000; the best texts are the seed texts: no change did better; " in str(result)
