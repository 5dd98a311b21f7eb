"""What is known of candidates: nothing is paid for twice, and who shares it does not depend on who is quicker."""

from __future__ import annotations

import asyncio
import threading
import weakref
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine.errors import AuthenticationFailed, BudgetExceeded
from textgrad_engine.train.evaluator import Scored
from textgrad_engine.train.events import current_phase
from textgrad_engine.train.guards import Guards
from textgrad_engine.train.known import Key, KnownScores

from .shouting import EVERY, LOUD, SEED, WORDS, Shouting, losing


def test_what_was_scored_is_not_paid_for_again() -> None:
    """Neither one by one nor in a matrix nor as an evaluation; other texts, examples, splits and samples are."""
    here = Shouting()
    objective = here.objective
    assert (objective.scores(SEED, [0, 1, 2]), here.asked) == ([0.0] * 3, 3)
    assert (objective.scores(SEED, [2, 1]), here.asked) == ([0.0] * 2, 0)
    assert (objective.scores(SEED, [2, 3]), here.asked) == ([0.0] * 2, 1)
    assert (objective.matrix([SEED, LOUD], [0, 4]), here.asked) == ([[0.0] * 2, [1.0] * 2], 3)
    assert (objective.matrix([LOUD, LOUD], [0, 0]), here.asked) == ([[1.0] * 2] * 2, 0)
    assert (objective.missing(SEED), objective.missing(LOUD)) == (3, 6)
    assert (objective.evaluation(SEED).mean, here.asked) == (0.0, 3)
    assert (objective.scores(SEED, [0], "train"), here.asked) == ([0.0], 1)
    assert (objective.scores(SEED, [0], repeat=1), here.asked) == ([0.0], 1)
    assert (objective.scores(SEED, [0], repeat=1), here.asked) == ([0.0], 0)


def test_feedback_is_paid_once_for_its_scores() -> None:
    """What the forward half of it gave is known; feedback itself is asked for anew, as it goes through a graph."""
    here = Shouting()
    assert here.feedback(SEED, [0, 3]).scores == (0.0, 0.0)
    assert here.asked == 4
    assert (here.objective.scores(SEED, [3, 0], "train"), here.asked) == ([0.0, 0.0], 0)
    assert (here.feedback(LOUD, [0]).gradients, here.asked) == (((),), 1)


def test_what_is_known_can_be_looked_at_without_asking() -> None:
    """At the end of a run that was cut off; half an evaluation says so."""
    here = Shouting(losing("bee"))
    here.objective.adopt(SEED)
    assert here.objective.known(SEED) is None
    here.objective.scores(SEED, [0, 1, 2])
    assert here.asked == 3
    found = here.objective.known(SEED)
    assert found is not None
    assert found.scores == (0.0, None, 0.0, None, None, None, None, None)
    assert set(found.failures) == {"bee"}
    assert set(found.not_run) == set(WORDS) - {"ant", "bee", "cat"}
    assert here.asked == 0


def test_a_spent_budget_ends_it_and_keeps_what_was_paid_for() -> None:
    """The rest is bought when there is money again."""
    here = Shouting(concurrency=1)
    with tg.budget(calls=5), pytest.raises(BudgetExceeded):
        here.objective.scores(LOUD, EVERY)
    assert here.asked == 5
    assert here.objective.missing(LOUD) == 3
    assert (here.objective.scores(LOUD, EVERY), here.asked) == ([1.0] * 8, 3)


def test_texts_of_now_are_run_once_for_all_threads() -> None:
    """Who comes second waits for the answers that are under way."""
    go, first_asked = threading.Event(), threading.Event()

    async def hold() -> None:
        first_asked.set()
        while not go.is_set():
            await asyncio.sleep(0)

    here = Shouting(lambda request: hold())
    here.objective.adopt(SEED)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(here.objective.scores(SEED, EVERY))) for _ in range(3)]
    threads[0].start()
    assert first_asked.wait(60)
    for thread in threads[1:]:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(60)
    assert (found, here.asked) == ([[0.0] * 8] * 3, 8)


def test_who_waits_for_a_failed_call_learns_why() -> None:
    """And who asks again asks anew."""
    first_asked, go = threading.Event(), threading.Event()
    broken = [True]

    async def fail() -> None:
        first_asked.set()
        while not go.is_set():
            await asyncio.sleep(0)
        if broken:
            raise AuthenticationFailed("no such key", status=401)

    here = Shouting(lambda request: fail())
    here.objective.adopt(SEED)
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            here.objective.scores(SEED, [0, 1])
        except AuthenticationFailed as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    threads[0].start()
    assert first_asked.wait(60)
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join(60)
    assert len(errors) == 2
    broken.clear()
    assert here.objective.scores(SEED, [0, 1]) == [0.0, 0.0]


def test_proposals_keep_to_themselves_until_texts_are_adopted() -> None:
    """Two that come to one text each pay for it: else what a proposal's calls are would depend on who was first."""
    here = Shouting()
    for number in (2, 1):
        with here.objective.proposal(number):
            assert here.objective.scores(LOUD, [0, number]) == [1.0, 1.0]
            assert here.objective.scores(LOUD, [0]) == [1.0]
        assert here.asked == 2
    with here.objective.proposal(3):
        assert here.objective.missing(LOUD) == 8
    here.objective.adopt(LOUD)
    with here.objective.proposal(3):
        assert (here.objective.missing(LOUD), here.objective.scores(LOUD, [0, 1, 2]), here.asked) == (5, [1.0] * 3, 0)


def test_a_proposal_goes_on_by_itself_when_texts_are_adopted_meanwhile() -> None:
    """How far it is when it is told of them depends on who is quicker; who decides about it knows of all."""
    known = KnownScores()
    key: Key = (LOUD, "val", 0, 0)
    with known.proposal(1):
        known.adopt(LOUD)
        with known.proposal(2):
            known.note(key, Scored(1.0))
        assert (known.read([key]), known.missing([key])) == ([None], 1)
    with known.proposal(1, told_of_all=True):
        known.adopt(SEED)
        with known.proposal(3):
            known.note((SEED, "val", 0, 0), Scored(0.5))
        assert known.read([key, (SEED, "val", 0, 0)]) == [Scored(1.0), Scored(0.5)]
    assert known.read([key]) == [Scored(1.0)]


@pytest.mark.parametrize("quicker", [False, True])
def test_what_guards_run_in_a_lane_does_not_depend_on_who_is_quicker(quicker: bool) -> None:
    """Of two that come to one text the first may have been decided about by then; the other one goes by itself."""
    here = Shouting(guards=Guards(("ant",)))
    objective = here.objective
    objective.adopt(SEED)
    with objective.proposal(1):
        assert objective.refusal(SEED, LOUD, 1) == ""
    assert here.asked == 2
    with objective.proposal(2):
        if quicker:
            objective.adopt(LOUD, 1)
        assert (objective.refusal(SEED, LOUD, 2), here.asked) == ("", 1)
        assert (objective.breaking(SEED, [LOUD], [0]), here.asked) == ([()], 0)
    objective.adopt(LOUD, 1)
    assert (objective.refusal(SEED, LOUD, 3), here.asked) == ("", 0)


@pytest.mark.parametrize("adopted", [False, True])
def test_a_result_that_is_there_is_held_without_its_future(adopted: bool) -> None:
    """A run has tens of thousands, and a future, with its lock, takes as much memory as a request."""
    known = KnownScores()
    key: Key = (LOUD, "val", 0, 0)
    with known.proposal(1):
        futures = [known.claim([[key]])[1].pop(key)]
        if adopted:
            known.adopt(LOUD)
        gone = weakref.ref(futures[0])
        futures.pop().set_result(Scored(1.0))
        assert known.read([key]) == [Scored(1.0)]
    assert gone() is None
    assert known.every()[0] == (key, Scored(1.0))


def test_what_later_proposals_found_is_not_shared_with_the_texts_of_an_earlier_one() -> None:
    """They may be under way still; what they found by then depends on how far they are."""
    known = KnownScores()
    keys: list[Key] = [(LOUD, "val", number, 0) for number in (1, 2, 3)]
    for number, key in enumerate(keys, 1):
        with known.proposal(number):
            known.note(key, Scored(number))
    known.adopt(LOUD, 2)
    with known.proposal(4):
        assert known.read(keys) == [Scored(1), Scored(2), None]
    assert [key for key, _ in known.every()] == [*keys[:2], *keys]


def test_adopting_texts_looks_at_no_results_of_others() -> None:
    """A search adopts hundreds of texts, and each adoption went through all that was ever found."""

    class Counting(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Counting.compared += 1
            return str.__eq__(self, other)

    known = KnownScores()
    every: list[tuple[str, ...]] = [(Counting(f"text {number}"),) for number in range(50)]
    for number, texts in enumerate(every):
        with known.proposal(number):
            for position in range(20):
                known.note((texts, "val", position, 0), Scored(number))
    Counting.compared = 0
    for texts in every:
        known.adopt(texts)
    assert Counting.compared <= 2 * len(every)
    with known.proposal(len(every)):
        assert known.read([(texts, "val", 19, 0) for texts in every]) == [Scored(n) for n in range(50)]


def test_what_came_to_nothing_is_not_adopted() -> None:
    """Who claims an example and fails knows nothing of it afterwards, and others pay for it themselves."""
    known = KnownScores()
    keys: list[Key] = [(LOUD, "val", number, 0) for number in (0, 1)]
    with known.proposal(1):
        _, claimed = known.claim([keys])
        claimed[keys[0]].set_result(Scored(1.0))
        known.give_up(claimed, BudgetExceeded("spent"))
    known.adopt(LOUD)
    with known.proposal(2):
        assert known.read(keys) == [Scored(1.0), None]
        assert known.claim([keys[1:]])[1].keys() == {keys[1]}


def test_calls_with_shared_texts_belong_to_the_phase_of_their_adoption() -> None:
    """Else whose they are would depend on which proposal asked first."""
    known = KnownScores()
    now = current_phase.get()
    token = current_phase.set(now + 1)
    known.adopt(LOUD)
    current_phase.reset(token)
    with known.proposal(1):
        assert (known.phase(LOUD), known.phase(SEED)) == (now + 1, now)
        with known.phase_of(LOUD):
            assert current_phase.get() == now + 1
    assert current_phase.get() == now
