import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.errors import ContextOverflow
from textgrad_engine.llm import Budgeted, Fallback, GenerateConfig, OpenAIModel, resolve
from textgrad_engine.llm.context import (
    LeftOut,
    Room,
    Sized,
    by_worth,
    context_window,
    counting_left_out,
    fit,
    note_left_out,
    on_left_out,
    room_for,
    room_of,
)
from textgrad_engine.llm.resolve import Defaults
from textgrad_engine.llm.statuses import error_of
from textgrad_engine.testing import FunctionModel, ScriptedModel


@pytest.mark.parametrize("context", [0, -1])
def test_a_context_that_nothing_fits_is_refused_where_it_is_stated(context):
    """A typo must not show up as an overflow of every request."""
    with pytest.raises(ValueError, match=f"a positive number, got {context}"):
        OpenAIModel("m", base_url="http://localhost:1/v1", context=context)
    with pytest.raises(ValueError, match=f"a positive number, got {context}"):
        resolve(ScriptedModel([]), context=context)


def test_a_context_can_not_be_stated_for_what_is_resolved_already():
    """The setting would have nowhere to go, and must not be ignored."""
    with pytest.raises(TypeError, match="resolved already"):
        resolve(resolve(ScriptedModel([])), context=100)


@pytest.mark.parametrize(
    ("model", "context"),
    [
        (resolve("openai/gpt-4o"), 128_000),
        (resolve("openai/gpt-4o", context=9000), 9000),
        (resolve("gpt-4o", base_url="http://localhost:1/v1", context=4096), 4096),
        (OpenAIModel("nobody-knows-this", base_url="http://localhost:1/v1"), None),
        (OpenAIModel("nobody-knows-this", base_url="http://localhost:1/v1", context=512), 512),
        (resolve("simulated/tickets"), None),
        (resolve("simulated/tickets", context=700), 700),
        (resolve(ScriptedModel([], name="gpt-4o")), None),
        (Fallback("openai/gpt-4o", "openai/gpt-4"), 8192),
        (Fallback(ScriptedModel([]), "openai/gpt-4"), 8192),
        (Fallback(ScriptedModel([]), ScriptedModel([])), None),
    ],
)
def test_the_context_of_a_model_is_what_was_stated_else_what_the_table_knows(model, context):
    """Of two models the smaller counts, since either may be asked; what is unknown is not guessed."""
    assert context_window(model) == context


def test_a_model_of_ones_own_can_state_its_context():
    """An attribute is enough, as for `free` and `defaults`."""
    model = FunctionModel(lambda request: "x")
    model.context = 300
    assert context_window(Budgeted(model)) == 300


def test_of_a_stack_the_outermost_statement_counts_also_one_that_is_made_later():
    """Where a stack states its context is found when it is made; what is stated there may change."""
    model = ScriptedModel([])
    stack = Budgeted(Sized(Budgeted(Sized(model, 300)), 200))
    assert context_window(stack) == 200
    stack.inner.context = 150
    assert context_window(stack) == 150
    plain = Budgeted(Budgeted(model))
    assert context_window(plain) is None
    model.context = 100
    assert context_window(plain) == 100


def test_a_stated_context_changes_nothing_of_the_call(run, ask):
    """It is for those who write requests."""
    model = ScriptedModel(["yes"])
    assert run(Sized(model, 10).complete(ask())).text == "yes"
    assert model.requests == [ask()]
    assert repr(Sized(model, 10)) == "Sized(ScriptedModel(1 answers, name='scripted'), context=10)"


def test_half_of_a_context_is_filled_and_less_where_the_answer_may_be_long():
    """The other half is for the answer and for the error of the estimate."""
    small = Sized(Defaults(ScriptedModel([]), GenerateConfig(max_tokens=900)), 1000)
    assert room_of(Sized(ScriptedModel([]), 1000)) == Room("scripted", 1000, 500, 1000)
    assert room_of(small) == Room("scripted", 1000, 75, 100)
    assert room_of(ScriptedModel([])) is None


def test_the_budget_of_an_optimizer_is_cut_to_what_its_model_reads():
    """The default of 8,000 tokens of feedback is more than small models read at all."""
    small = Sized(ScriptedModel([]), 4000)
    assert room_for(small, 8000) == 2000
    assert room_for(small, 8000, ["a" * 4000, "b" * 400]) == 900
    assert room_for(small, 500, ["a" * 4000]) == 500
    assert room_for(small, 8000, ["a" * 400_000]) == 1
    assert room_for(ScriptedModel([]), 8000, ["a" * 400_000]) == 8000


COSTS = st.lists(st.integers(0, 50), max_size=12)


@given(COSTS, st.integers(-10, 200), st.randoms(use_true_random=False), st.integers(0, 3))
def test_what_is_kept_fits_and_nothing_more_would(costs, room, random, least):
    """Law: the sum stays within the room, none that fits beside the more valuable ones is left out, and order stays."""
    order = list(range(len(costs)))
    random.shuffle(order)
    kept = fit(costs, room, order, least=least)
    assert kept == sorted(set(kept))
    first = order[:least]
    assert set(first) <= set(kept)
    spent = sum(costs[n] for n in first)
    for position in order[least:]:
        assert (position in kept) == (spent + costs[position] <= room)
        spent += costs[position] if position in kept else 0
    assert spent <= max(room, sum(costs[n] for n in first))


def test_the_worst_score_is_worth_most_and_of_equals_the_newest():
    """That is what a critic learns most from."""
    assert by_worth([0.5, None, 0.0, 1.0, 0.0, None]) == [4, 2, 0, 3, 5, 1]
    assert by_worth([]) == []


def test_what_is_left_out_is_in_the_log_and_told(caplog):
    """A run that was not shown everything must be recognisable as one."""
    room = Room("small", 1000, 500, 1000)
    told = []
    with caplog.at_level(logging.WARNING, logger="textgrad_engine"), on_left_out(told.append):
        note_left_out(LeftOut("feedback on train/3", "small", 1, 4), room)
    note_left_out(LeftOut("feedback on train/4", "small", 2, 0), room)
    assert told == [LeftOut("feedback on train/3", "small", 1, 4)]
    assert caplog.records[0].getMessage() == (
        "feedback on train/3: 1 message and 4 pieces of feedback left out, for which the context of 'small' (1000 "
        "tokens) has no room"
    )


def test_a_run_tells_of_fewer_the_more_there_are(caplog):
    """A line for each example that an agent's critic is asked about hides all others; who listens hears of each."""
    room, told = Room("small", 1000, 500, 1000), []
    with counting_left_out(), on_left_out(told.append):
        for number in range(20):
            note_left_out(LeftOut(f"feedback on r{number}", "small", 1, 0), room)
    said = [record.getMessage() for record in caplog.records]
    assert [line.partition(":")[0].split()[-1] for line in said] == ["r0", "r1", "r3", "r7", "r15"]
    assert said[-1].endswith("has no room, and had none in 15 requests before")
    assert len(told) == 20


def test_a_request_that_cannot_be_fitted_is_an_error_that_names_it_and_cost_nothing():
    """It says what is too long, how long, and what to do, also to who has a config and no code."""
    error = Room("small", 1000, 500, 900).overflow("feedback on train/3", 2400)
    assert isinstance(error, ContextOverflow)
    assert error.sent is False
    assert str(error).startswith("feedback on train/3 is about 2,400 tokens long")
    assert "context=... (llm.resolve, or the config's [models])" in str(error)


def test_the_error_of_an_endpoint_says_how_to_state_the_context():
    """Where the size is not known nothing is fitted, and this is where one finds out."""
    error = error_of(400, '{"error": {"message": "maximum context length is 4096 tokens"}}', {}, "m", "here")
    assert isinstance(error, ContextOverflow)
    assert "state it with context=..." in str(error)
