"""A budget shared out: equal parts, and nobody gets less than what it has on record."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine.llm import Usage
from textgrad_engine.llm.amounts import UNLIMITED, Amount
from textgrad_engine.llm.reserve import Reserve
from textgrad_engine.train.events import part_mark
from textgrad_engine.train.fold_parts import OnRecord, Part, Share, left_for_spent
from textgrad_engine.train.shares import fit_parts

PARTS = [Part(name, (), (), ()) for name in ("a", "b", "c", "d")]


class Kept:
    """A folder that keeps what it is told."""

    def __init__(self, on_record: dict[str, OnRecord]) -> None:
        self.known = on_record
        self.shares: dict[str, Share] = {}

    def on_record(self, name: str) -> OnRecord:
        return self.known.get(name, OnRecord())

    def keep_share(self, name: str, share: Share) -> None:
        self.shares[name] = share


def shares(limit: int, on_record: dict[str, OnRecord] | None = None, **ends: str) -> list[int]:
    """The calls that each run may make, where none makes any."""
    given: list[int] = []

    def fit(part: Part) -> Any:
        given.append(Reserve().free.calls)
        return SimpleNamespace(status=ends.get(part.name, "finished"), shortage="")

    with tg.budget(calls=limit):
        fit_parts(PARTS, fit, Kept(on_record or {}))
    return given


def taken(calls: int, *, finished: bool = False, free: int = 0, limit: int = 0, spent: bool = False) -> OnRecord:
    share = Share(Amount(free, UNLIMITED, UNLIMITED), Amount(limit, UNLIMITED, UNLIMITED)) if limit else None
    return OnRecord(Usage(calls=calls), finished, share, spent)


def test_what_nobody_took_goes_to_those_that_come_after() -> None:
    """Each may use an equal part of what is left."""
    assert shares(400) == [100, 133, 200, 400]


@pytest.mark.parametrize(
    ("on_record", "first"),
    [
        ({"c": taken(250)}, 50),  # the others share what is left besides
        ({"c": taken(250, finished=True)}, 50),
        ({"a": taken(180)}, 180),
        ({"a": taken(90), "b": taken(10)}, 100),
        ({"b": taken(300), "c": taken(200)}, 0),  # a limit that is lower than before
        ({"a": taken(90, limit=120), "b": taken(100, limit=130)}, 120),  # it keeps some of it back for its end
        (
            {"a": taken(90, limit=20, free=400), "b": taken(10)},
            20,
        ),  # as much is left as before
    ],
)
def test_what_is_on_record_is_not_shared_out(on_record: dict[str, OnRecord], first: int) -> None:
    """Else who comes later comes less far than before."""
    assert shares(400, on_record)[0] == first


def test_what_is_only_played_back_has_no_share() -> None:
    """It takes what it took."""
    assert shares(400, {"a": taken(390, finished=True)})[0] == 400


def test_nothing_is_begun_behind_a_run_that_was_interrupted() -> None:
    """Ctrl-C is for all of them."""
    assert len(shares(400, b="interrupted")) == 2


def test_without_a_limit_there_are_no_shares() -> None:
    """Of any kind."""
    seen: list[Any] = []

    def fit(part: Part) -> Any:
        seen.append(Reserve().free)
        return SimpleNamespace(status="finished", shortage="")

    with tg.budget():
        fit_parts(PARTS[:1], fit)
    assert seen[0].calls == seen[0].tokens == seen[0].pico > 10**15


def test_what_is_not_limited_stays_so_when_some_of_it_was_used() -> None:
    """A limit in tokens, however vast, would have requests sent with `max_tokens`, and money refuse unknown prices."""
    model = tg.testing.FunctionModel(lambda request: "yes")
    chat, given = tg.nn.ChatCompletion("{x}", model=model), list[Amount]()

    def fit(part: Part) -> Any:
        given.append(Reserve().free)
        assert chat(x=part.name).data == "yes"
        return SimpleNamespace(status="finished", shortage="")

    with tg.budget(calls=8):
        fit_parts(PARTS, fit)
    assert [(each.tokens, each.pico) for each in given] == [(UNLIMITED, UNLIMITED)] * 4
    assert {request.config.max_tokens for request in model.requests} == {None}


def test_what_is_given_is_written_down_before_the_run() -> None:
    """Who is killed goes on with the same."""
    folder = Kept({})

    def fit(part: Part) -> Any:
        assert folder.shares[part.name].limit.calls == Reserve().free.calls
        return SimpleNamespace(status="finished", shortage="")

    with tg.budget(calls=100):
        fit_parts(PARTS, fit, folder)
    assert folder.shares["a"] == Share(Amount(100, UNLIMITED, UNLIMITED), Amount(25, UNLIMITED, UNLIMITED))


def test_who_has_no_room_is_told_what_all_runs_take_together() -> None:
    """A run's part cannot be raised by itself: the others have as much of the whole, or what they took."""
    chat = tg.nn.ChatCompletion("{x}", model=tg.testing.FunctionModel(lambda request: "yes"))
    whole, enough = OnRecord(Usage(calls=4), finished=True), list[str]()

    def fit(part: Part) -> Any:
        if done and part.name == "d":
            return SimpleNamespace(status="finished", shortage="", total=whole.used)
        assert [chat(x=f"{part.name} {number}").data for number in range(2)] == ["yes", "yes"]
        third = chat(x=part.name)
        with pytest.raises(tg.errors.BudgetExceeded) as caught:
            str(third)
        enough.append(caught.value.enough)
        return SimpleNamespace(status="budget", shortage="", total=Usage(calls=2))

    done = False
    with tg.budget(calls=8):
        fit_parts(PARTS, fit)
    done = True
    with tg.budget(calls=11):
        assert chat(x="before").data == "yes"
        fit_parts(PARTS, fit, Kept({"d": whole}))
    assert enough == ["12 calls"] * 3 + ["9 calls"] + ["14 calls"] * 3  # the last one may have all that is left


# several at once


FOLDS = [Part(name, (), (), None if name == "final" else ()) for name in ("fold-1", "fold-2", "fold-3", "final")]


def given_at_once(limit: int | None, on_record: dict[str, OnRecord] | None = None) -> tuple[list[str], dict[str, int]]:
    """What begins together, by the names, and the calls that each run may make."""
    given: dict[str, int] = {}
    waves: list[str] = []
    begun = threading.Barrier(4 if limit is None else 3)

    def fit(part: Part) -> Any:
        given[part.name] = Reserve().free.calls
        if not on_record and (limit is None or part.test is not None):
            begun.wait(60)
        waves.append("final" if part.test is None else "fold")
        return SimpleNamespace(status="finished", shortage="", total=Usage())

    with tg.budget(calls=limit):
        fit_parts(FOLDS, fit, Kept(on_record or {}), jobs=4)
    return waves, given


def test_folds_that_go_on_at_once_have_equal_parts_and_the_last_run_what_they_leave() -> None:
    """It works with more examples, and its texts are the ones to use."""
    waves, given = given_at_once(400)
    assert waves == ["fold", "fold", "fold", "final"]
    assert given == {"fold-1": 100, "fold-2": 100, "fold-3": 100, "final": 400}


def test_without_a_limit_all_runs_go_on_at_once() -> None:
    """Nothing has to be left to anybody."""
    waves, given = given_at_once(None)
    assert sorted(waves) == ["final", "fold", "fold", "fold"]
    assert len(given) == 4


def test_what_is_on_record_counts_alike_for_runs_that_go_on_at_once() -> None:
    """Whichever of them was begun before, finished or not."""
    on_record = {"fold-3": taken(40, finished=True), "fold-1": taken(130)}
    _, given = given_at_once(400, on_record)
    assert (given["fold-1"], given["fold-2"], given["fold-3"]) == (130, 115, 400)


def test_what_some_left_goes_to_those_that_spent_theirs_once_all_have_ended() -> None:
    """Resumed with the same budget; where one was killed, all get what they would have had."""
    cut = taken(98, free=400, limit=100, spent=True)
    ended = {"fold-1": taken(40, finished=True), "fold-3": taken(60, finished=True), "fold-2": cut}
    assert given_at_once(400, {**ended, "final": taken(120, finished=True)})[1]["fold-2"] == 180
    assert given_at_once(400, {**ended, "final": taken(200, finished=True)})[1]["fold-2"] == 100
    assert given_at_once(400, {**ended, "final": taken(120)})[1]["fold-2"] == 100
    assert given_at_once(400, {**ended, "fold-1": cut, "final": taken(120, finished=True)})[1]["fold-2"] == 110


def test_what_is_left_for_those_that_spent_theirs_is_known_before() -> None:
    """So that nobody raises a budget that has room; it is nothing where one was killed, or none is left."""
    cut = taken(98, free=400, limit=100, spent=True)
    ended = {"fold-1": taken(40, finished=True), "fold-3": taken(60, finished=True), "fold-2": cut}
    free = Amount(400, UNLIMITED, UNLIMITED)
    for final, left in ((taken(120, finished=True), 80), (taken(200, finished=True), 0), (taken(120), 0)):
        assert left_for_spent({**ended, "final": final}, free).calls == left
        given = given_at_once(400, {**ended, "final": final})[1]["fold-2"]
        assert given == 100 + left


def test_what_is_on_record_is_played_back_before_anything_is_begun() -> None:
    """Where that is refused, as a prompt was changed, nothing was paid for with the other one."""
    order: list[str] = []

    def fit(part: Part) -> Any:
        order.append(part.name)
        return SimpleNamespace(status="interrupted" if part.name == ends else "finished", shortage="", total=Usage())

    on_record = {"fold-2": taken(40), "final": taken(90, finished=True), "fold-3": taken(0)}
    ends = ""
    runs = fit_parts(FOLDS, fit, Kept(on_record), jobs=4)
    assert order[:2] == ["final", "fold-2"]
    assert [part.name for part, _ in runs] == ["fold-1", "fold-2", "fold-3", "final"]
    del order[:]
    ends = "fold-2"
    runs = fit_parts(FOLDS, fit, Kept(on_record), jobs=4)
    assert order == ["final", "fold-2"]
    assert [part.name for part, _ in runs] == ["fold-2", "final"]


def test_of_runs_at_once_nothing_is_begun_either_behind_one_that_was_interrupted() -> None:
    """Else each one left a folder with a result of nothing, and the last one a "final prompt" that nobody trained."""
    begun: list[str] = []

    def fit(part: Part) -> Any:
        begun.append(part.name)
        return SimpleNamespace(status="interrupted", shortage="", total=Usage())

    runs = fit_parts(FOLDS, fit, jobs=2)
    assert len(begun) == len(runs) <= 2


def test_who_has_no_room_is_told_so_while_others_end() -> None:
    """What all runs take together is added up meanwhile, and that failed as soon as one more had ended."""
    chat = tg.nn.ChatCompletion("{x}", model=tg.testing.FunctionModel(lambda request: "yes"))
    began = {part.name: threading.Event() for part in PARTS}
    go_on = threading.Event()
    enough = list[str]()

    class Ended(SimpleNamespace):
        @property
        def total(self) -> Usage:
            go_on.set()  # c ends while this is looked up
            assert began["d"].wait(60)
            return Usage(calls=1)

    def fit(part: Part) -> Any:
        began[part.name].set()
        if part.name == "a":
            return Ended(status="finished", shortage="")
        if part.name == "b":
            assert began["c"].wait(60)
            with pytest.raises(tg.errors.BudgetExceeded) as caught:
                chat(x="1").data + chat(x="2").data
            enough.append(caught.value.enough)
        elif part.name == "c":
            assert go_on.wait(60)
        return SimpleNamespace(status="finished", shortage="", total=Usage(calls=1))

    with tg.budget(calls=4):
        fit_parts(PARTS, fit, jobs=2)
    assert enough == ["7 calls"]


def test_a_line_about_a_run_among_others_begins_with_its_fold() -> None:
    """All as wide, so that what comes behind stands below each other."""
    many = [*(Part(f"fold-{number}", (), (), ()) for number in range(1, 11)), FOLDS[-1]]

    def marks(parts: list[Part], jobs: int) -> dict[str, str]:
        told: dict[str, str] = {}

        def fit(part: Part) -> Any:
            told[part.name] = part_mark.get()
            return SimpleNamespace(status="finished", shortage="")

        fit_parts(parts, fit, jobs=jobs)
        return told

    assert set(marks(FOLDS, 1).values()) == {""}
    assert marks(FOLDS, 2) == {"fold-1": "1/3", "fold-2": "2/3", "fold-3": "3/3", "final": "all"}
    assert [marks(many, 11)[name] for name in ("fold-1", "fold-10", "final")] == [" 1/10", "10/10", "all  "]
