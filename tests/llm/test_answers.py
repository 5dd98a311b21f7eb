"""Recorded answers that wait for their requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from textgrad_engine.llm.answers import Answer, Answers, belongs, entry_of
from textgrad_engine.llm.toolcalls import inside
from textgrad_engine.testing import ScriptedModel

from .test_resume import recorded


def test_what_all_examples_ask_for_is_looked_for_among_the_answers_of_one(ask: Any) -> None:
    """A call that is the same for thousands of examples, such as a plan, would take minutes."""
    every = [recorded(ask("plan"), f"of {n}", n, example=str(n)) for n in range(50)]
    answers, ranked = Answers(every, lambda each: each.model), []

    def rank(each: Answer) -> int:
        ranked.append(each)
        return each.nth

    equal = answers.equal_to(entry_of(ScriptedModel([], name="o"), ask("plan")))
    for n in reversed(range(50)):
        assert answers.take(equal, rank, str(n)) is every[n]
        answers.put_back(every[n])
        assert answers.take(equal, rank, str(n)) is every[n]
        assert answers.take(equal, rank, str(n)) is None
    assert len(ranked) <= 50 * 4
    answers.put_back(every[7])
    assert answers.take(equal, rank, "1") is None
    assert answers.take(equal, rank, "1", elsewhere=True) is every[7]


def test_what_many_calls_of_tools_ask_for_is_looked_for_among_the_answers_of_one(ask: Any) -> None:
    """Each has a place of its own; one of which none is left is given another's."""
    every = [replace(recorded(ask("today"), f"of {n}", n), tool=f"call {n}") for n in range(50)]
    answers, ranked = Answers(every, belongs), []

    def rank(each: Answer) -> int:
        ranked.append(each)
        return each.nth

    equal = answers.equal_to(entry_of(ScriptedModel([], name="o"), ask("today")))
    for n in reversed(range(1, 50)):
        with inside(f"call {n}"):
            assert answers.take(equal, rank, every[n].example) is every[n]
    assert len(ranked) <= 50 * 4
    with inside("call 1"):
        assert answers.take(equal, rank, every[0].example) is every[0]
        assert answers.take(equal, rank, every[0].example) is None
