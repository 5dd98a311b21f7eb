"""Scores of many candidates at once are those of each candidate alone, whatever the program does with its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from textgrad_engine import Function, Variable, budget, func, nn, ops, use_models
from textgrad_engine.errors import BudgetExceeded, EmptyResponse
from textgrad_engine.llm import Request
from textgrad_engine.llm.usage import CallRecord, observe
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective, evaluate, trials

ROWS = [{"id": name, "word": name, "target": name.upper()} for name in ("ant", "bee", "cat", "dog")]
CANDIDATES = [("SHOUT",), ("HALF",), ("say",)]
KNOWN = {"ant": "ANT", "dog": "DOG"}


def answer(request: Request) -> Any:
    """Shouts where the prompt asks for it, or on words before C."""
    system, word = request.messages[0].text, request.messages[-1].text
    if request.purpose == "judge":
        return {"score": 1.0 if "BEE" in word or "ANT" in word else 0.0, "explanation": "seen"}
    return word.upper() if "SHOUT" in system or ("HALF" in system and word < "c") else word


@pytest.fixture
def grids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many candidates each nested vmap had that was run."""
    found: list[int] = []

    def run(program: Any, loss: Any, candidates: Sequence[Any], rows: Any) -> Any:
        found.append(len(candidates))
        return original(program, loss, candidates, rows)

    original = trials.run_grid
    monkeypatch.setattr(trials, "run_grid", run)
    return found


class Seen:
    """What was scored, and what was asked for it."""

    def __init__(
        self,
        program: nn.Module,
        loss: Any = None,
        model: Any = answer,
        *,
        together: bool = True,
        rows: Any = ROWS,
        candidates: Sequence[tuple[str, ...]] = CANDIDATES,
        **settings: Any,
    ) -> None:
        self.calls: Counter[Any] = Counter()
        objective = Objective(program, loss or nn.ExactMatch(), rows, **settings)
        texts = [each * len(objective.names) for each in candidates]
        with use_models(forward=FunctionModel(model)), observe(self.on_call):
            if together:
                self.scores = objective.matrix(texts, range(4))
            else:
                self.scores = [objective.scores(each, range(4)) for each in texts]

    def on_call(self, record: CallRecord) -> None:
        said = None if record.completion is None else record.completion.text
        self.calls[record.purpose, record.key, str(record.request.messages), said] += 1


class Plain(nn.Module):
    """One call."""

    def __init__(self) -> None:
        super().__init__()
        self.chat = nn.ChatCompletion("{word}", system=nn.Parameter("say", role="system prompt"))

    def forward(self, word: Any) -> Any:
        return self.chat(word=word)


class Table(Plain):
    """Answers what is in a table without a call."""

    def forward(self, word: Any) -> Any:
        return Variable(KNOWN[word], role="answer") if word in KNOWN else self.chat(word=word)


class Equal(Plain):
    """Compares its field with a text."""

    def forward(self, word: Any) -> Any:
        return Variable("BEE", role="answer") if word == "bee" else self.chat(word=word)


class Typed(Plain):
    """Looks at the kind of its field."""

    def forward(self, word: Any) -> Any:
        return self.chat(word=word) if isinstance(word, str) else Variable("", role="answer")


class Reading(Plain):
    """Looks at its first answer to decide whether to ask again."""

    def forward(self, word: Any) -> Any:
        said = self.chat(word=word)
        return said if said.data.isupper() else self.chat(word=word)


class ReadingLate(Plain):
    """Looks at an answer for some examples only, and not for the first one."""

    def forward(self, word: Any) -> Any:
        said = self.chat(word=word)
        return said if word == "ant" or said.data.isupper() else Variable(said.data.upper(), role="answer")


class ReadingTexts(Plain):
    """Branches on the text that is searched for."""

    def forward(self, word: Any) -> Any:
        return Variable(word.upper(), role="answer") if self.chat.system.data == "say" else self.chat(word=word)


class Chain(nn.Module):
    """Two calls, the second with the answer of the first, and two prompts."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.ChatCompletion("{word}", system=nn.Parameter("say", role="first"))
        self.second = nn.ChatCompletion("{draft}", system=nn.Parameter("say", role="second"))

    def forward(self, word: Any) -> Any:
        return self.second(draft=self.first(word=word))


class Parts(Plain):
    """A batch of its own inside."""

    def forward(self, word: Any) -> Any:
        return func.vmap(lambda part: self.chat(word=part))([word, word])


class Rollout(Function):
    """Code of the user's own that takes a prompt and a plain text, and waits."""

    @staticmethod
    async def forward(prompt: Variable, word: str) -> Variable:
        return Variable(word.upper() if prompt.data == "SHOUT" else word, role="trajectory")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    @staticmethod
    def backward(ctx: Any, gradient: Variable) -> Any:
        return gradient, None


class Agent(nn.Module):
    """An async Function that is given a field."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt = nn.Parameter("say", role="prompt")

    def forward(self, word: Any) -> Any:
        return Rollout.apply(self.prompt, word)


def chat(**config: Any) -> nn.ChatCompletion:
    """The library's own module."""
    return nn.ChatCompletion("{word}", system=nn.Parameter("say", role="system prompt"), **config)


def chain() -> nn.Sequential:
    """Two of them, the second with the answer of the first."""
    return nn.Sequential(chat(), chat())


def begun_the_same() -> nn.Sequential:
    """Two of them, of which the first is not trained."""
    return nn.Sequential(nn.ChatCompletion("{word}", system="say"), chat())


def template() -> nn.ChatCompletion:
    """One whose user message is trained."""
    return nn.ChatCompletion(nn.Parameter("{word}", role="user template"), system="SHOUT")


def comparing(prediction: Variable, target: Any) -> Variable:
    """A loss that treats one target in a way of its own."""
    return Variable(0.5) if target == "CAT" else nn.ExactMatch()(prediction, target)


def alike(prediction: str, target: str) -> tuple[float, str]:
    """A metric's function that looks at what it gets."""
    assert type(prediction) is type(target) is str
    return (1.0, "") if prediction == target else (0.5 if target == "CAT" else 0.0, f"{prediction} is not {target}")


def as_long(prediction: str, target: int) -> float:
    """A metric's function of a number."""
    return float(len(prediction) == target and prediction.isupper())


def reading(prediction: Variable, target: str) -> Variable:
    """A loss that looks at the prediction."""
    return nn.ExactMatch()(prediction, target if len(prediction.data) else "")


LOSSES = {
    "exact match": nn.ExactMatch(),
    "comparing": comparing,
    "reading": reading,
    "judge": nn.Judge("Is it loud?"),
    "metric": nn.Metric(alike, purpose="whether they are alike"),
}
PROGRAMS = [Plain, Table, Equal, Typed, Reading, ReadingLate, ReadingTexts, Chain, Agent, chat, chain]
EACH_LOSS = [(Plain, loss) for loss in LOSSES] + [(chain, loss) for loss in LOSSES]
EACH_PROGRAM = [(make, loss) for make in PROGRAMS for loss in ("exact match", "judge") if (make, loss) not in EACH_LOSS]


@pytest.mark.parametrize(
    ("make", "loss"), EACH_LOSS + EACH_PROGRAM, ids=lambda c: c if isinstance(c, str) else c.__name__
)
def test_many_candidates_get_the_scores_that_each_gets_alone(make: Any, loss: str) -> None:
    """From the same requests, under the same names of examples; and they are those of `evaluate`.

    Each loss with a program of one call and with one of several, and each program with a loss that asks and one that
    does not.
    """
    together, alone = (Seen(make(), LOSSES[loss], together=both) for both in (True, False))
    assert together.scores == alone.scores
    assert together.calls == alone.calls
    for texts, row in zip(CANDIDATES, together.scores):
        program = make()
        for parameter in program.parameters():
            parameter.data = texts[0]
        with use_models(forward=FunctionModel(answer)):
            assert list(evaluate(program, ROWS, LOSSES[loss]).scores) == row


@pytest.mark.parametrize("make", [chat, chain, begun_the_same])
@pytest.mark.parametrize("loss", [nn.ExactMatch(), nn.Judge("Is it loud?"), nn.Metric(alike, purpose="alike")])
def test_programs_of_the_library_s_modules_go_through_nested_vmap(make: Any, loss: Any, grids: list[int]) -> None:
    """All candidates in one."""
    Seen(make(), loss)
    assert grids == [3]


def hooked() -> nn.Module:
    """With code of somebody's own around the library's."""
    made = chat()
    made.register_forward_pre_hook(lambda _, args: None)
    return made


def hooked_inside() -> nn.Module:
    """With such code behind its first part."""
    made = chain()
    made[0].register_forward_hook(lambda _, args, result: None)
    return made


def replaced() -> nn.Module:
    """With another forward."""
    made = chat()
    made.forward = lambda word: Variable("ANT" if word == "ant" else word, role="answer")  # type: ignore[method-assign]
    return made


class OwnChat(nn.ChatCompletion):
    """A subclass may do anything."""

    def forward(self, word: Any) -> Any:
        return Variable("BEE", role="answer") if word == "bee" else super().forward(word=word)


def own() -> nn.Module:
    """One of these."""
    return OwnChat("{word}", system=nn.Parameter("say", role="system prompt"))


def own_inside() -> nn.Module:
    """One of these as a part."""
    return nn.Sequential(chat(), own())


class OwnMatch(nn.ExactMatch):
    """A subclass of a loss."""


@pytest.mark.parametrize("make", [hooked, hooked_inside, replaced, own, own_inside, Plain])
def test_other_code_is_run_with_each_example_by_itself(make: Any, grids: list[int]) -> None:
    """Nobody can tell beforehand what it looks at."""
    together, alone = Seen(make()), Seen(make(), together=False)
    assert (together.scores, together.calls, grids) == (alone.scores, alone.calls, [])


@pytest.mark.parametrize(
    "given",
    [
        {"loss": OwnMatch()},
        {"loss": comparing},
        {"rows": [{**row, "target": len(row["word"])} for row in ROWS], "loss": nn.Metric(as_long, purpose="length")},
        {"rows": [row if row["word"] != "cat" else {**row, "word": 7} for row in ROWS]},
        {"concurrency": 2},
        {"latency_weight": 0.0},
        {"candidates": [("SHOUT",), ("HALF {word}",), ("say",)]},
    ],
    ids=["own loss", "loss function", "targets", "fields", "concurrency", "latency", "slots"],
)
def test_what_one_batch_cannot_stand_for_is_run_by_itself(given: dict[str, Any], grids: list[int]) -> None:
    """Fields and targets that are no texts, slots that only some candidates have, and what is limited or noted."""
    together, alone = Seen(chat(), **given), Seen(chat(), together=False, **given)
    assert (together.scores, together.calls, grids) == (alone.scores, alone.calls, [])


@pytest.mark.parametrize(("kind", "together"), [("pet", [3]), (7, [])])
def test_targets_of_several_fields_are_one_batch_where_all_are_texts(
    kind: str | int, together: list[int], grids: list[int]
) -> None:
    """A number among them is no text, and each example is run by itself."""
    rows = [{**row, "kind": kind if row["word"] == "cat" else "pet"} for row in ROWS]
    judge = nn.OnMatch(nn.Judge("Is it loud?"), "(?s).*")
    loss = nn.Weighted({"said": nn.ExactMatch(), "kind": judge}, targets={"said": "target", "kind": "kind"})
    seen = Seen(chat(), loss, rows=rows)
    alone = Seen(chat(), loss, rows=rows, together=False)
    assert (seen.scores, seen.calls, grids) == (alone.scores, alone.calls, together)


def test_what_no_candidate_changes_is_asked_for_once() -> None:
    """The answers of a first prompt that is not trained are the same for all."""
    together, alone = Seen(begun_the_same()), Seen(begun_the_same(), together=False)
    assert together.scores == alone.scores
    assert (together.calls.total(), alone.calls.total()) == (4 + 12, 12 + 12)
    assert together.calls.keys() == alone.calls.keys()


def test_trained_templates_have_the_slots_of_each_example() -> None:
    """Each candidate's text around each example's field."""
    candidates = [("{word}",), ("a {word}",), ("{word}",)]
    together, alone = Seen(template(), candidates=candidates), Seen(template(), together=False, candidates=candidates)
    assert (together.scores, together.calls) == (alone.scores, alone.calls)
    assert together.scores[:2] == [[1.0] * 4, [0.0] * 4]


def test_candidates_have_samples_of_their_own() -> None:
    """Each asked for once."""
    said = iter(range(100))
    seen = Seen(
        chat(temperature=1.0), nn.Metric(lambda said, _: float(said), purpose="number"), lambda _: str(next(said))
    )
    assert sorted(str(score) for row in seen.scores for score in row) == sorted(f"{n}.0" for n in range(12))


def test_equal_examples_have_samples_of_their_own(grids: list[int]) -> None:
    """As each candidate has them alone: two copies of an example are two draws, and one lost answer costs one score."""
    rows = [{"id": f"{n}", "word": "ant", "target": "1"} for n in range(4)]
    said = iter(range(100))
    seen = Seen(
        nn.Sequential(chat(temperature=1.0), chat(temperature=1.0)),
        nn.Metric(lambda said, _: float(said), purpose="number"),
        lambda request: str(next(said)) if request.messages[-1].text == "same" else "same",
        rows=rows,
    )
    assert grids == [3]
    assert sorted(score for row in seen.scores for score in row) == [float(n) for n in range(12)]
    assert seen.calls.total() == 24


def test_a_budget_that_ends_in_between_has_bought_the_first_candidates_whole(grids: list[int]) -> None:
    """One after the other, so that what was paid for says something about them."""
    objective = Objective(chat(), nn.ExactMatch(), ROWS)
    with use_models(forward=FunctionModel(answer)), budget(calls=6), pytest.raises(BudgetExceeded):
        objective.matrix(CANDIDATES, range(4))
    assert grids == [3]
    assert [objective.missing(texts) for texts in CANDIDATES] == [0, 2, 4]


def test_a_program_without_fields_is_asked_for_each_example(grids: list[int]) -> None:
    """Nothing in its requests tells the examples apart, and each call has the name of its own."""
    program = nn.ChatCompletion("dog", system=nn.Parameter("say", role="system prompt"))
    together, alone = Seen(program), Seen(program, together=False)
    assert (together.scores, together.calls, grids) == (alone.scores, alone.calls, [])


def test_a_branch_on_a_field_sees_the_text() -> None:
    """What stands in a table is right with every candidate."""
    assert Seen(Table()).scores == [[1.0] * 4, [1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]]


def test_a_loss_compares_its_target() -> None:
    """It is the text of the example there, too."""
    assert [row[2] for row in Seen(Plain(), comparing).scores] == [0.5] * 3


def test_an_async_function_gets_its_field_as_text() -> None:
    """As it does everywhere else."""
    assert Seen(Agent()).scores == [[1.0] * 4, [0.0] * 4, [0.0] * 4]


def test_batches_inside_the_program_are_numbered_behind_the_example() -> None:
    """So that it can be told which call was whose."""

    def worst(prediction: Variable, wanted: str) -> Variable:
        return ops.exact_match_evaluator(prediction, wanted, reduction_fn=min)[0]

    seen = Seen(Parts(), worst)
    assert seen.scores == [[1.0] * 4, [1.0, 1.0, 0.0, 0.0], [0.0] * 4]
    assert {key[1] for key in seen.calls} >= {"ant[0]", "dog[1]"}


@pytest.mark.usefixtures("no_backoff")
def test_a_lost_answer_costs_one_score() -> None:
    """The others keep theirs, and nothing is asked again for it."""

    def failing(request: Request) -> Any:
        if request.messages[0].text == "SHOUT" and request.messages[-1].text == "bee":
            raise EmptyResponse("nothing")
        return answer(request)

    for program in (Plain(), chat()):
        lost_one(Seen(program, model=failing))


def lost_one(seen: Seen) -> None:
    """What is seen where a candidate has no answer for an example."""
    assert seen.scores == [[1.0, None, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [0.0] * 4]
    assert seen.calls.total() == 12


def test_what_is_known_is_not_asked_for_again() -> None:
    """Neither of a candidate of which some examples are known, nor of one of which all are."""
    for program in (Plain(), chat()):
        objective = Objective(program, nn.ExactMatch(), ROWS)
        model = FunctionModel(answer)
        with use_models(forward=model):
            objective.scores(("SHOUT",), [0, 1])
            found = objective.matrix(CANDIDATES, range(4))
            again = objective.matrix(CANDIDATES, range(4))
        assert found == again == [[1.0] * 4, [1.0, 1.0, 0.0, 0.0], [0.0] * 4]
        assert len(model.requests) == 12


def test_a_program_that_fails_says_so_in_its_own_words() -> None:
    """The error is the user's, with a note about the example."""

    class Broken(Plain):
        def forward(self, word: Any) -> Any:
            raise KeyError("no such thing")

    with pytest.raises(KeyError, match="no such thing") as caught:
        Seen(Broken())
    assert caught.value.__notes__ == ["while running the program on example 'ant'"]
