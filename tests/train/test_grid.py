"""Scores of many candidates through nested vmap: the same as one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from textgrad_engine import Variable, func, nn, ops, use_models
from textgrad_engine.errors import EmptyResponse
from textgrad_engine.llm import Request
from textgrad_engine.llm.usage import CallRecord, observe
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective
from textgrad_engine.train import objective as module

ROWS = [{"id": name, "word": name, "target": name.upper()} for name in ("ant", "bee", "cat", "dog")]
CANDIDATES = [("SHOUT",), ("HALF",), ("say",)]


def answer(request: Request) -> Any:
    """Shouts where the prompt asks for it, or on words before C."""
    system, word = request.messages[0].text, request.messages[-1].text
    if request.purpose == "judge":
        return {"score": 1.0 if "BEE" in word or "ANT" in word else 0.0, "explanation": "seen"}
    return word.upper() if "SHOUT" in system or ("HALF" in system and word < "c") else word


@pytest.fixture
def grids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many candidates each grid had that was run."""
    found: list[int] = []

    def run(program: Any, loss: Any, candidates: Sequence[Any], rows: Any) -> Any:
        found.append(len(candidates))
        return original(program, loss, candidates, rows)

    original = module.run_grid
    monkeypatch.setattr(module, "run_grid", run)
    return found


class Seen:
    """What was scored, and what was asked for it."""

    def __init__(self, program: nn.Module, loss: Any = None, model: Any = answer, **settings: Any) -> None:
        self.calls: Counter[Any] = Counter()
        self.asked = 0
        objective = Objective(program, loss or nn.ExactMatch(), ROWS, **settings)
        candidates = [texts * len(objective.names) for texts in CANDIDATES]
        with use_models(forward=FunctionModel(model)), observe(self.on_call):
            self.scores = objective.matrix(candidates, range(4))

    def on_call(self, record: CallRecord) -> None:
        self.asked += 1
        said = None if record.completion is None else record.completion.text
        self.calls[record.purpose, record.key, str(record.request.messages), said] += 1


def plain() -> nn.ChatCompletion:
    return nn.ChatCompletion("{word}", system=nn.Parameter("say", role="system prompt"))


class Chain(nn.Module):
    """Two calls, the second with the answer of the first, and two prompts."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.ChatCompletion("{word}", system=nn.Parameter("say", role="first"))
        self.second = nn.ChatCompletion("{draft}", system=nn.Parameter("say", role="second"))

    def forward(self, word: Any) -> Any:
        return self.second(draft=self.first(word=word))


class Branching(nn.Module):
    """Looks at its first answer to decide whether to ask again."""

    def __init__(self) -> None:
        super().__init__()
        self.chat = plain()

    def forward(self, word: Any) -> Any:
        said = self.chat(word=word)
        return said if said.data.isupper() else self.chat(word=word)


class Parts(nn.Module):
    """Batches of its own inside."""

    def __init__(self) -> None:
        super().__init__()
        self.chat = plain()

    def forward(self, word: Any) -> Any:
        return func.vmap(lambda part: self.chat(word=part))([word, word])


@pytest.mark.parametrize("make", [plain, Chain])
def test_the_grid_gives_what_single_runs_give(make: Any, grids: list[int]) -> None:
    """The same scores, from the same requests, under the same names of examples."""
    together, alone = Seen(make()), Seen(make(), concurrency=4)
    assert grids == [3]
    assert together.scores == alone.scores == [[1.0] * 4, [1.0, 1.0, 0.0, 0.0], [0.0] * 4]
    assert together.calls == alone.calls
    assert {key[1] for key in together.calls} == {"ant", "bee", "cat", "dog"}


def test_a_judge_scores_in_the_grid(grids: list[int]) -> None:
    """Also a loss that asks a model: the same requests."""
    together, alone = (Seen(plain(), nn.Judge("Is it loud?"), **settings) for settings in ({}, {"concurrency": 4}))
    assert grids == [3]
    assert together.scores == alone.scores == [[1.0, 1.0, 0.0, 0.0]] * 3
    assert together.calls == alone.calls


def test_a_function_of_the_users_scores_in_the_grid(grids: list[int]) -> None:
    """A metric is called with the values, when they are there."""
    seen = Seen(plain(), nn.Metric(lambda said, wanted: float(said == wanted), "equality"))
    assert (grids, seen.asked) == ([3], 12)
    assert seen.scores == [[1.0] * 4, [1.0, 1.0, 0.0, 0.0], [0.0] * 4]


def test_a_program_that_looks_at_an_answer_is_run_one_by_one(grids: list[int]) -> None:
    """And that is known beforehand: no call is made in vain."""
    seen = Seen(Branching())
    assert grids == []
    assert seen.scores[0] == [1.0] * 4
    assert seen.asked == 4 + (2 + 2 * 2) + 4 * 2


def test_a_loss_that_looks_at_the_prediction_is_run_one_by_one(grids: list[int]) -> None:
    """A plain function of values is no reason to pay twice."""

    def loss(prediction: Any, target: str) -> Any:
        return nn.ExactMatch()(prediction, target if len(prediction.data) else "")

    seen = Seen(plain(), loss)
    assert (grids, seen.asked) == ([], 12)
    assert seen.scores[0] == [1.0] * 4


def test_a_lost_answer_costs_one_score(grids: list[int]) -> None:
    """The others of the grid keep theirs, and nothing is asked again for it."""

    def failing(request: Request) -> Any:
        if request.messages[0].text == "SHOUT" and request.messages[-1].text == "bee":
            raise EmptyResponse("nothing")
        return answer(request)

    seen = Seen(plain(), model=failing)
    assert grids == [3]
    assert seen.scores == [[1.0, None, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [0.0] * 4]
    assert seen.asked == 12


def test_what_is_no_text_is_run_one_by_one(grids: list[int]) -> None:
    """A number in a field is given to the program as it is."""
    rows = [{"id": "a", "word": 7, "target": "ANT"}]
    objective = Objective(plain(), nn.ExactMatch(), rows)
    with use_models(forward=FunctionModel(lambda request: "ANT")):
        assert objective.matrix(CANDIDATES, [0]) == [[1.0]] * 3
    assert grids == []


def test_batches_inside_the_program_keep_their_numbers(grids: list[int]) -> None:
    """An inner batch is numbered behind the example's name, as without the grid."""

    def loss(prediction: Variable, wanted: str) -> Variable:
        return ops.exact_match_evaluator(prediction, wanted, reduction_fn=min)[0]

    together, alone = Seen(Parts(), loss), Seen(Parts(), loss, concurrency=4)
    assert grids == [3]
    assert together.scores == alone.scores
    assert together.calls == alone.calls
    assert {key[1] for key in together.calls} >= {"ant[0]", "dog[1]"}


def test_what_is_known_is_not_asked_for_again(grids: list[int]) -> None:
    """Candidates that miss the same examples form a grid; one that misses others is run by itself."""
    objective = Objective(plain(), nn.ExactMatch(), ROWS)
    model = FunctionModel(answer)
    with use_models(forward=model):
        objective.scores(("SHOUT",), [0, 1])
        found = objective.matrix(CANDIDATES, range(4))
        again = objective.matrix(CANDIDATES, range(4))
    assert found == again == [[1.0] * 4, [1.0, 1.0, 0.0, 0.0], [0.0] * 4]
    assert (grids, len(model.requests)) == ([2], 12)


def test_a_program_that_fails_says_so_in_its_own_words(grids: list[int]) -> None:
    """The rehearsal hides no error of the user's."""

    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.chat = plain()

        def forward(self, word: Any) -> Any:
            raise KeyError("no such thing")

    with pytest.raises(KeyError, match="no such thing"):
        Seen(Broken())
