import math

from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.llm.window import Window

EVENT = st.one_of(
    st.tuples(st.just("ok"), st.floats(0.01, 100), st.booleans()),
    st.tuples(st.just("bad"), st.floats(-5, 5), st.integers(1, 600)),
)


@given(st.lists(EVENT, max_size=200), st.integers(1, 8), st.integers(8, 300))
def test_it_stays_between_floor_and_ceiling_and_depends_on_nothing_else(events, floor, ceiling):
    """Whatever happens, something goes on and the limit holds; the same events give the same window."""

    def play():
        window, now, seen = Window(ceiling, floor, ceiling), 10.0, []
        for kind, one, two in events:
            now += 1
            if kind == "ok":
                window.succeeded("forward", one, full=two)
            else:
                window.congested(now + one, now, two)
            seen.append(window.room)
        return seen

    seen = play()
    assert all(floor <= room <= ceiling for room in seen)
    assert play() == seen


def test_one_bad_moment_is_one_cut():
    """64 calls in flight that all meet the same 429 must not take the window to its floor."""
    window = Window(64, 1, 64)
    assert [window.congested(sent=1.0, now=2.0 + i / 100, in_flight=64) for i in range(64)] == [True] + [False] * 63
    assert window.room == 32
    assert window.congested(sent=3.0, now=4.0, in_flight=32)
    assert window.room == 16


def test_it_rises_only_while_it_is_full():
    """What was never needed is not known to work."""
    window = Window(10, 1, 320)
    for _ in range(100):
        window.succeeded("forward", 1.0, full=False)
    assert window.room == 10
    for _ in range(10):
        window.succeeded("forward", 1.0, full=True)
    assert window.room == 20


def test_it_does_not_rise_when_answers_take_longer():
    """A server that queues what it gets is not asked for more."""
    window = Window(10, 1, 320)
    for _ in range(10):
        window.succeeded("forward", 1.0, full=True)
    assert window.room == 20
    for _ in range(60):
        window.succeeded("forward", 4.0, full=True)
    assert window.room == 20


def test_purposes_are_measured_apart():
    """An optimizer's long answers say nothing about the endpoint's load."""
    window = Window(4, 1, 64)
    for _ in range(20):
        window.succeeded("forward", 1.0, full=True)
        window.succeeded("optimizer", 30.0, full=True)
    assert window.room > 10


def test_an_endpoint_that_is_slower_for_good_becomes_the_new_measure():
    """Else one quick answer from a cache would hold the window down for ever."""
    window = Window(10, 1, 320)
    window.succeeded("forward", 0.001, full=True)
    for _ in range(600):
        window.succeeded("forward", 1.0, full=True)
    assert window.room > 20


def test_without_a_ceiling_the_first_cut_is_of_what_was_in_flight():
    """Half of infinity would be no cut."""
    window = Window(math.inf, 1, math.inf)
    window.congested(1.0, 2.0, in_flight=100)
    assert window.room == 50


def test_it_comes_back_to_its_ceiling_in_32_rounds():
    """A bad minute does not make a slow hour."""
    window, rounds = Window(256, 1, 256), 0
    for moment in range(10):
        window.congested(float(moment), moment + 0.5, 1)
    assert window.room == 1
    while window.room < 256:
        rounds += 1
        for _ in range(int(window.room)):
            window.succeeded("forward", 1.0, full=True)
    assert rounds <= 32
