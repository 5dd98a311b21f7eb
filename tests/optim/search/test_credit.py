"""Credit: which parameters are edited, and by how much."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.autograd import Source, Variable
from textgrad_engine.optim.search.credit import credit, shares

CREDIT = st.lists(st.one_of(st.just(0.0), st.floats(0.01, 50)), min_size=1, max_size=6)


def said(text: str, example: str | None = None) -> Variable:
    feedback = Variable(text, role="feedback")
    if example is not None:
        feedback.source = Source(example=example)
    return feedback


def test_without_feedback_there_is_nothing_to_edit() -> None:
    """No parameter, no feedback, or only white space: no edits, whatever may be spent."""
    assert credit([]) == []
    assert credit([[], []]) == [0.0, 0.0]
    assert credit([[said(""), said(" \n")], []]) == [0.0, 0.0]
    assert shares([], 4) == []
    assert shares([0.0, 0.0], 4) == [0, 0]


def test_an_edit_goes_where_the_feedback_went() -> None:
    """A critic that names the place decides; taking turns would edit what is right."""
    gradients = [[], [said("a", "1"), said("b", "2")]]
    assert credit(gradients) == [0.0, 2.0]
    assert shares(credit(gradients), 4) == [0, 4]


def test_an_example_counts_once_and_is_shared() -> None:
    """Who says three things to one parameter does not outweigh two others; who speaks to both is shared."""
    assert credit([[said("a", "1"), said("b", "1"), said("c", "1")], [said("d", "2"), said("e", "3")]]) == [1.0, 2.0]
    assert credit([[said("a", "1")], [said("b", "1"), said("c", "2")]]) == [0.5, 1.5]
    assert credit([[said("a", "1")], [said(" ", "1")]]) == [1.0, 0.0]


def test_feedback_without_a_source_counts_by_itself() -> None:
    """Feedback that somebody wrote by hand has no example."""
    assert credit([[said("a"), said("b")], [said("c")]]) == [2.0, 1.0]


def test_ties_go_to_the_earlier_parameter() -> None:
    """So that two runs divide alike."""
    assert shares([1.0, 1.0, 1.0], 4) == [2, 1, 1]
    assert shares([1.0, 1.0], 1) == [1, 0]


@given(CREDIT, st.integers(1, 20))
def test_all_edits_are_given_out(credited: list[float], edits: int) -> None:
    """No more, no fewer, none to a parameter without credit; each share is within one of what is exact."""
    found = shares(credited, edits)
    total = sum(credited)
    assert sum(found) == (edits if total else 0)
    for share, part in zip(found, credited):
        assert share >= 0
        assert part or not share
        if total:
            assert abs(share - edits * part / total) < 1 + 1e-9


@given(CREDIT, st.integers(1, 20))
def test_more_credit_is_never_fewer_edits(credited: list[float], edits: int) -> None:
    """Among parameters of one minibatch."""
    found = shares(credited, edits)
    ranked = sorted(range(len(found)), key=lambda n: credited[n])
    for lower, higher in itertools.pairwise(ranked):
        if credited[lower] < credited[higher]:
            assert found[lower] <= found[higher]


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["x", ""])), max_size=6), max_size=4))
def test_the_credit_is_that_of_the_examples(spoken: list[list[tuple[int, str]]]) -> None:
    """The credit of all parameters together is the number of examples that said anything."""
    gradients = [[said(text, str(example)) for example, text in gradient] for gradient in spoken]
    examples = {example for gradient in spoken for example, text in gradient if text}
    assert sum(credit(gradients)) == pytest.approx(len(examples))
