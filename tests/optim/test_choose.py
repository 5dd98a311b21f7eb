from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine.autograd import Variable, is_grad_enabled
from textgrad_engine.errors import AuthenticationFailed, EmptyResponse
from textgrad_engine.llm import Request
from textgrad_engine.optim.choose import GLANCE, best_of, scores_of
from textgrad_engine.optim.search.objective import FeedbackOn, Texts
from textgrad_engine.testing import FunctionModel

SYSTEM = Variable("Sort.", role="system", requires_grad=True)
USER = Variable("{mail}", role="user", requires_grad=True)


class Table:
    """An objective whose scores stand in a table, by the candidate's first text."""

    def __init__(self, scores: dict[str, list[float | None]], *parameters: Variable) -> None:
        self.table, self.parameters = scores, parameters
        self.train = tuple(f"t{n}" for n in range(len(next(iter(scores.values())))))
        self.val: tuple[str, ...] = ()
        self.clusters: tuple[str, ...] = ()
        self.scale = None
        self.digest = ""
        self.tokens_weight = self.latency_weight = 0.0
        self.asked: list[Any] = []

    def scores(self, texts: Texts, positions: Sequence[int], split: str = "val", *, repeat: int = 0) -> Any:
        raise NotImplementedError

    def matrix(self, candidates: Sequence[Texts], positions: Sequence[int], split: str = "val") -> Any:
        self.asked.append((list(candidates), list(positions), split))
        return [[self.table[texts[0]][position] for position in positions] for texts in candidates]

    def latencies(self, texts: Texts, positions: Sequence[int], split: str = "val") -> Any:
        raise NotImplementedError

    def feedback(self, texts: Texts, positions: Sequence[int]) -> FeedbackOn:
        raise NotImplementedError

    def demos(self, positions: Sequence[int]) -> Any:
        raise NotImplementedError

    def runs(self, texts: Texts, positions: Sequence[int], split: str = "train") -> Any:
        raise NotImplementedError

    def note_calls(self) -> None:
        raise NotImplementedError

    def near(self, positions: Sequence[int], among: Sequence[int]) -> list[int]:
        raise NotImplementedError

    def proposal(self, number: int) -> contextlib.AbstractContextManager[None]:
        raise NotImplementedError

    def refusal(self, before: Texts, after: Texts, number: int = 0) -> str:
        raise NotImplementedError

    def broken(self, before: Texts, after: Texts, number: int = 0) -> tuple[int, ...]:
        raise NotImplementedError

    def breaking(self, before: Texts, tries: Sequence[Texts], positions: Sequence[int]) -> list[tuple[int, ...]]:
        raise NotImplementedError

    def adopt(self, texts: Texts) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("given", ["0.5", "high", object(), [0.5, "x"], Variable("good"), [[0.5]]])
def test_what_is_no_score_is_said(given: Any) -> None:
    """A closure that returns the answers would let the first candidate win."""
    with pytest.raises(TypeError, match="the closure returns a score, or a sequence of scores"):
        scores_of(lambda: given, [{SYSTEM: "a"}, {SYSTEM: "b"}], [])


def test_different_numbers_of_scores_are_refused() -> None:
    """Means over different examples are no comparison."""
    answers = [[0.5], [0.5, 1.0]]
    with pytest.raises(TypeError, match="gave 1 and 2 scores"):
        scores_of(lambda: answers.pop(0), [{SYSTEM: "a"}, {SYSTEM: "b"}], [])


def test_parameters_are_put_back_whatever_happens() -> None:
    """Also those that only some candidates change; nothing is recorded in between."""
    seen = []

    def closure() -> float:
        seen.append((SYSTEM.data, USER.data, is_grad_enabled()))
        if len(seen) == 3:
            raise AuthenticationFailed("no", status=401)
        return 1.0

    with pytest.raises(AuthenticationFailed):
        scores_of(closure, [{SYSTEM: "a"}, {USER: "b {mail}"}, {}], [])
    assert seen == [("a", "{mail}", False), ("Sort.", "b {mail}", False), ("Sort.", "{mail}", False)]
    assert (SYSTEM.data, USER.data) == ("Sort.", "{mail}")


def test_all_candidates_are_under_way_before_one_is_read() -> None:
    """Calls of models take their inputs by value: ten candidates take the time of one."""
    everybody = asyncio.Event()

    async def answer(request: Request) -> str:
        if len(model.requests) == 8:
            everybody.set()
        await everybody.wait()
        return str(len(request.messages[0].text))

    model = FunctionModel(answer)

    def closure() -> list[Variable]:
        return [
            tg.ops.chat_completion(model, [{"role": "system", "content": SYSTEM}, {"role": "user", "content": m}])
            for m in ("x", "y")
        ]

    assert scores_of(closure, [{SYSTEM: "a" * n} for n in range(1, 5)], []) == [1.0, 2.0, 3.0, 4.0]
    assert model.peak == 8


@pytest.mark.usefixtures("no_backoff")
def test_lost_answers_are_left_out_for_all() -> None:
    """Who loses the hard example to an error does not win by that."""

    def answer(request: Request) -> str:
        system, user = (message.text for message in request.messages)
        if (system, user) == ("b", "hard"):
            raise EmptyResponse("nothing")
        return "1" if user == "easy" else "0"

    model = FunctionModel(answer)

    def closure() -> list[Variable | None]:
        return [
            tg.ops.chat_completion(model, [{"role": "system", "content": SYSTEM}, {"role": "user", "content": m}])
            for m in ("easy", "hard")
        ]

    assert scores_of(closure, [{SYSTEM: "a"}, {SYSTEM: "b"}], []) == [1.0, 1.0]


def test_without_a_common_example_each_has_its_own_mean() -> None:
    """And none where nothing was answered."""
    rows: list[Any] = [[None, 1.0], [0.5, None], [None, None]]
    assert scores_of(lambda: rows.pop(0), [{}, {}, {}], []) == [1.0, 0.5, None]


def test_an_objective_scores_training_examples_with_feedback_first() -> None:
    """All candidates on the same ones; texts that a candidate leaves alone are those of now."""
    table = Table({"a": [0.0, 1.0, 1.0], "Sort.": [0.0, 0.0, 1.0]}, SYSTEM, USER)
    assert scores_of(table, [{SYSTEM: "a"}, {USER: "b"}], ["t2", "t2", "unknown"]) == [2 / 3, 1 / 3]
    assert table.asked == [([("a", "{mail}"), ("Sort.", "b")], [2, 0, 1], "train")]


def test_a_glance_at_a_large_set_is_spread_over_it() -> None:
    """Examples are bought to choose among candidates, not to measure them."""
    table = Table({"a": [1.0] * 1000}, SYSTEM)
    scores_of(table, [{SYSTEM: "a"}], ["t999"])
    ((_, positions, _),) = table.asked
    assert len(positions) == len(set(positions)) == GLANCE
    assert positions[0] == 999
    assert max(b - a for a, b in itertools.pairwise(positions[1:])) < 1000 // 20


def test_an_objective_about_other_parameters_is_refused() -> None:
    """It would score the same text for every candidate."""
    with pytest.raises(ValueError, match=r"not about Variable 'system', which the optimizer trains"):
        scores_of(Table({"a": [1.0]}, USER), [{SYSTEM: "a"}], [])


def test_the_best_is_taken_and_of_equals_the_shortest() -> None:
    """Then the first; a candidate without a score only when none has one, and a score of 0 is one."""
    candidates = [{SYSTEM: text} for text in ("long long long", "short", "s", "tiny")]
    assert best_of(candidates, [0.5, 0.5, None, 0.1]) == 1
    assert best_of(candidates, [0.5, 0.9, None, 0.9]) == 3
    assert best_of(candidates, [None, 0.0, None, None]) == 1
    assert best_of(candidates, [None] * 4) == 2
    assert best_of(candidates, [-1.0, -2.0, None, -2.0]) == 0
