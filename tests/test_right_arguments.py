"""What is right, if uncommon, is taken and does what is meant: values of other libraries, views, stand-ins."""

from __future__ import annotations

import datetime
import enum
import functools
import itertools
import json
import numbers
import uuid
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple, Self
from unittest.mock import Mock

import pytest
from pydantic import BaseModel

import textgrad_engine as tg
from textgrad_engine import data, func, llm, nn, ops, testing
from textgrad_engine.data import DataLoader, Dataset, Subset, check_splits, ids_of, random_split
from textgrad_engine.errors import DataError, ScoreError
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train.fields import check_examples, inputs_of
from textgrad_engine.train.prediction import as_prediction

ROWS = [{"id": f"t{number}", "text": f"{number}", "target": f"{number % 2}"} for number in range(6)]


class Scalar:
    """A value of numpy's, of which nothing is known but what its methods give."""

    def __init__(self, value: Any) -> None:
        self.value = value

    shape = ()

    def tolist(self) -> Any:
        return self.value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __str__(self) -> str:
        return str(self.value)


class Whole(Scalar):
    """A whole number of numpy's."""

    def __index__(self) -> int:
        return int(self.value)

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.value)

    def __abs__(self) -> Whole:
        return Whole(abs(self.value))

    def __add__(self, other: Any) -> Any:
        return self.value + other

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        return bool(self.value == other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < other)

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > other)

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= other)

    def __str__(self) -> str:
        return str(self.value)


class Real(Whole):
    """A number of numpy's that is no float, as float32 is."""


numbers.Integral.register(Whole)
numbers.Real.register(Real)
Flag = type("bool", (Scalar,), {"__module__": "numpy"})
"""A truth of numpy's."""


class Series:
    """As pandas' are: positions by `iloc`, and an index of any numbers."""

    iloc = None

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __contains__(self, label: object) -> bool:
        return False

    def __getitem__(self, label: int) -> Any:
        return self.values[label - 5]

    def tolist(self) -> list[Any]:
        return self.values


class Array(Series):
    """One of numpy's, as a column of lists has them that is read from a file: no two are simply equal."""

    def tolist(self) -> list[Any]:
        return self.values

    def __eq__(self, other: object) -> Any:
        return Array([each == other for each in self.values])

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise ValueError("the truth of an array with several entries is ambiguous")


class MapStyle:
    """As PyTorch's datasets are."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return self.rows[index % len(self.rows)]


class Record(BaseModel):
    """An example as a pydantic model."""

    text: str = "a"


class Pair(NamedTuple):
    """An example as a named tuple."""

    text: str


@dataclass
class Case:
    """An example as a dataclass."""

    text: str = "a"


DATASETS: dict[str, Callable[[], Any]] = {
    "tuple": lambda: tuple(ROWS),
    "deque": lambda: deque(ROWS),
    "UserList": lambda: UserList(ROWS),
    "view": lambda: dict(enumerate(ROWS)).values(),
    "map-style": lambda: MapStyle(ROWS),
    "Series": lambda: Series(ROWS),
    "proxies": lambda: [MappingProxyType(row) for row in ROWS],
    "UserDicts": lambda: [UserDict(row) for row in ROWS],
    "ChainMaps": lambda: [ChainMap(row) for row in ROWS],
}


@pytest.mark.parametrize("kind", DATASETS)
def test_examples_come_in_any_sequence_and_any_mapping(kind: str) -> None:
    """All that takes examples takes them, by their own ids and in their order."""
    made = DATASETS[kind]
    check_examples(made(), "train", "fit")
    names = tuple(row["id"] for row in ROWS)
    assert ids_of(made()) == names
    assert Dataset(made()).ids == names
    assert [row["id"] for row in Subset(made(), [2, 0])] == ["t2", "t0"]
    assert [row["id"] for batch in DataLoader(made(), 4) for row in batch] == list(names)
    parts = random_split(made(), [0.5, 0.5], seed=0, clusters="target", together=["text"])
    assert sorted(name for part in parts for name in part.ids) == list(names)
    assert len(check_splits(made(), ROWS[:2])) == 2


@pytest.mark.parametrize("kind", DATASETS)
def test_a_program_is_evaluated_and_trained_on_them(kind: str) -> None:
    """Scores are by example."""
    model = FunctionModel(lambda request: request.messages[-1].text)
    program = nn.ChatCompletion("{text}", system=nn.Parameter("Repeat."), model=model)
    assert tg.evaluate(program, DATASETS[kind](), nn.ExactMatch()).scores == (1, 1, 0, 0, 0, 0)


@pytest.mark.parametrize("given", [Whole(7), uuid.UUID(int=7), 7, "7"])
def test_ids_are_whole_numbers_of_any_library_and_uuids(given: Any) -> None:
    """They are told as text."""
    assert ids_of([{"id": given}]) == (str(given),)


@pytest.mark.parametrize(
    ("row", "repair"),
    [
        (Record(), r"a Record; give row\.model_dump\(\)"),
        (Case(), r"a Case; give dataclasses\.asdict\(row\)"),
        (Pair("a"), r"a Pair; give row\._asdict\(\)"),
        (("a", "b"), "a tuple; an example is a dict of its fields"),
    ],
)
def test_a_row_that_is_no_mapping_is_refused_with_what_makes_one_of_it(row: Any, repair: str) -> None:
    """Wherever rows are read."""
    with pytest.raises(TypeError, match=f"fit: example 0 of train is {repair}"):
        check_examples([row], "train", "fit")
    with pytest.raises(DataError, match=repair):
        Dataset([row])
    with pytest.raises(DataError, match=repair):
        random_split([row, row], [0.5, 0.5], seed=0, clusters="text")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((row for row in ROWS), "a dataset has a length.*got generator; of a stream take a part"),
        (DataLoader(ROWS), r"a DataLoader, which gives minibatches; give the dataset .*, its \.dataset"),
        ("rows.jsonl", r"the path .rows\.jsonl.; data\.load"),
        ({"text": ["a"]}, "this is a dict of text; of several splits give one"),
        ({0: ROWS[0]}, r"a dict of examples by their numbers; give them in a list: list\(examples.values\(\)\)"),
    ],
)
def test_what_is_no_dataset_is_refused_in_words(given: Any, says: str) -> None:
    """By all that need examples at their positions."""
    takers: list[Callable[[Any], Any]] = [
        DataLoader, ids_of, lambda rows: Subset(rows, [0]), lambda rows: random_split(rows, [0.5, 0.5], seed=0),
        lambda rows: check_splits(rows, ROWS), lambda rows: check_splits(ROWS, ROWS, rows),
    ]  # fmt: skip
    for take in takers:
        with pytest.raises(TypeError, match=says):
            take(given)


def test_flags_and_counts_of_another_library_are_plain_in_a_loader() -> None:
    """Its state is JSON."""
    sampler = data.RandomSampler(ROWS, replacement=Flag(True), num_samples=Whole(4), seed=Whole(1))  # type: ignore[arg-type]
    assert (sampler.replacement, type(sampler.num_samples), len(list(sampler))) == (True, int, 4)
    loader = DataLoader(ROWS, Whole(2), Flag(True), drop_last=Flag(False), seed=Whole(1))  # type: ignore[arg-type]
    assert (loader.state_dict()["batch_size"], loader.state_dict()["drop_last"]) == (2, False)
    assert type(data.WeightedRandomSampler([1.0], Whole(3)).num_samples) is int  # type: ignore[arg-type]
    assert [len(part) for part in random_split(ROWS, [Whole(4), Whole(2)], seed=0)] == [4, 2]  # type: ignore[list-item]


@pytest.mark.parametrize("scale", [[0, 10], (Whole(0), Real(10.0)), UserList([0, 10])])
def test_a_scale_is_any_pair_of_numbers(scale: Any) -> None:
    """It is kept as Python's own, as it goes into schemas and run folders."""
    for loss in (nn.Metric(lambda a, b: 5, "marks", scale=scale), nn.Judge("Be kind.", scale=scale)):
        assert loss.scale == (0, 10)
        assert all(type(end) in (int, float) for end in loss.scale or ())


@pytest.mark.parametrize("scale", [None, (0, 10, 20), "01", {0: 0, 1: 10}, (0, "10")])
def test_a_judge_without_a_scale_says_what_one_is(scale: Any) -> None:
    """None, too: a judge has to know where its scores end."""
    for make in (nn.Judge, functools.partial(ops.judge, tg.Variable("a"))):
        with pytest.raises(TypeError, match=r"a scale is the lowest and the highest score, such as \(0, 10\), got"):
            make("Be kind.", scale=scale)


@pytest.mark.parametrize("number", [Whole(2), Real(2.0), Fraction(2), 2])
def test_prices_and_weights_are_numbers_of_any_library(number: Any) -> None:
    """They are kept as Python's own."""
    price = llm.Price(number, number, number)
    assert (price.input, price.output, price.cached) == (2, 2, 2)
    assert type(price.input) in (int, float)
    weighted = nn.Weighted({"a": nn.ExactMatch(), "b": nn.ExactMatch()}, {"a": number, "b": 1})
    assert type(weighted.weights["a"]) in (int, float)
    assert weighted.weights["a"] == 2


def test_counts_of_another_library_are_counts() -> None:
    """Also where a number may be one of several, or a sequence stand in its place."""
    assert [part.data for part in ops.split("a,b,c", ",", Whole(1))] == ["a", "b,c"]  # type: ignore[arg-type]
    assert testing.simulated_task(4, interactions=Whole(1), parameters=Whole(2)) is not None  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", [len, lambda text: 1.0, lambda text, *, least=1: least])
def test_a_metric_that_takes_the_answer_alone_is_given_it_alone(metric: Callable[..., Any]) -> None:
    """Examples may have targets, which other metrics of the run look at."""
    loss = nn.Metric(metric, "at least one letter", scale=(0, 9))
    assert loss(tg.Variable("a"), "a").data == 1
    assert nn.Weighted({"short": loss, "right": nn.ExactMatch()})(tg.Variable("a"), "a").data > 0.5


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (Whole(3), 3), (Real(0.5), 0.5), (Fraction(1, 2), 0.5), (Decimal("0.5"), 0.5), (Flag(True), True),
        (Series(["a", "b"]), ["a", "b"]), ([Whole(3), ["a", Real(0.5)]], [3, ["a", 0.5]]),
    ],
)  # fmt: skip
def test_a_variable_holds_python_s_own_for_what_is_of_another_library(given: Any, kept: Any) -> None:
    """A number, an array, a column; also where its data is assigned."""
    made, assigned = tg.Variable(given), tg.Variable("a")
    assigned.data = given
    for each in (made, assigned):
        assert each.data == kept
        assert type(each.data) is type(kept)


def test_targets_of_another_library_are_what_they_hold() -> None:
    """A batch of predictions beside a column of targets scored 0 without a word, as each was compared with the column.

    So did an answer that is true beside a truth of numpy's, and a number beside one of torch's.
    """
    batch = tg.Variable(["a", "b"])
    for column in (Series(["a", "c"]), tg.Variable(["a", "c"]), ["a", "c"]):
        assert nn.ExactMatch()(batch, column).data == 1
        assert nn.Metric(lambda got, wanted: got == wanted, "equal")(batch, column).data == 1
        with pytest.raises(ValueError, match="a batch of 3 predictions has 2 targets"):
            _ = nn.ExactMatch()(tg.Variable(["a", "b", "c"]), column).data
    for target, answer in ((Scalar(3), "3"), (Whole(3), "3"), (Flag(True), "true"), (Scalar("a"), "a")):
        assert nn.ExactMatch()(answer, target).data == nn.ExactMatch()(tg.Variable([answer]), [target]).data == 1
        assert nn.JSONMatch()(answer, target).data == 1
    assert nn.JSONMatch()('{"n": 3, "all": [1, 2]}', {"n": Scalar(3), "all": Series([1, 2])}).data == 1
    assert nn.JSONMatch()("[1, 2]", Series([1, 2])).data == 1
    with pytest.raises(TypeError, match="the target is a list"):
        _ = nn.ExactMatch()("a", Series(["a"])).data


def test_a_column_is_a_batch_to_vmap_as_to_pmap() -> None:
    """``func.vmap(program)(table["text"])``; feedback on it comes back as on a list."""
    column = Series(["a", "b"])
    assert func.vmap(lambda text: text + "!")(column).data == func.vmap(lambda text: text + "!")(["a", "b"]).data
    assert [text.data for text in func.pmap(lambda text: tg.Variable(text) + "!")(column)] == ["a!", "b!"]

    def loss(row: Any) -> tg.Variable:
        return ops.exact_match_evaluator(row["text"], "a")[0]

    assert [bool(said) for said in func.vmap(func.grad(loss))({"text": column})["text"].data] == [False, True]


@pytest.mark.parametrize("column", [Series(["x1", "x2"]), ["x1", "x2"]])
def test_a_judge_is_shown_of_a_column_what_belongs_to_the_answer(column: Any) -> None:
    """Beside a batch each answer was judged by all targets and all inputs at once."""
    model = testing.FunctionModel(lambda request: {"score": 1, "explanation": ""})
    answers = tg.Variable(["a1", "a2"])
    with tg.use_models(forward=model):
        _ = nn.Judge("Right?")(answers, column).data
        _ = ops.judge(answers, "Right?", inputs={"question": column})[0].data
        messages = [{"role": "user", "content": "{prediction} {target}"}]
        _ = ops.lm_judge_evaluator(None, messages, answers, column)[0].data
    asked = ["".join(message.text for message in request.messages) for request in model.requests]
    assert [("x1" in text, "x2" in text) for text in asked] == [(True, False), (False, True)] * 3


def test_what_fills_a_slot_of_a_call_is_text_for_operations_too() -> None:
    """Dates, paths and ids are written in one way."""
    day, name = datetime.date(2024, 2, 29), uuid.UUID(int=7)
    assert ops.format("{day} {name} {seen}", day=day, name=name, seen=Flag(True)).data == f"2024-02-29 {name} True"
    assert ops.join([tg.Variable("a"), day, PurePosixPath("b")], ",").data == "a,2024-02-29,b"


class Triage(nn.Module):
    """A program with an argument that is no field of the examples."""

    def forward(self, text: str, mark: str = "") -> str:
        return f"{text}{mark}"


@pytest.mark.parametrize(
    ("program", "needed"),
    [
        (functools.partial(nn.ChatCompletion("{text}{mark}"), mark="!"), ["text"]),
        (functools.partial(functools.partial(nn.ChatCompletion("{text}"))), ["text"]),
        (functools.partial(Triage(), mark="!"), ["text"]),
        (functools.partial(lambda mark, text: text, "!"), ["text"]),
        (functools.partial(lambda style, text, mark: text, "short", mark="!"), ["text"]),
        (Mock(return_value="a"), []),
    ],
)
def test_a_program_may_be_a_partial_or_a_stand_in(program: Any, needed: list[str]) -> None:
    """It is called with the fields that are not given already, also where the examples have those."""
    required, optional = inputs_of(program)
    assert (required, [name for name in optional if name == "mark"]) == (needed, [])


@pytest.mark.parametrize(
    ("loss", "given", "own"),
    [
        (nn.ExactMatch(), Flag(True), True),
        (nn.ExactMatch(), Whole(3), 3),
        (nn.ExactMatch(), Real(0.5), 0.5),
        (nn.JSONMatch(), Flag(False), False),
        (nn.JSONMatch(), Array(["a", "b"]), ["a", "b"]),
        (nn.JSONMatch(), {"late": Flag(True), "n": Whole(2)}, {"late": True, "n": 2}),
        (nn.JSONMatch(any_order=True), {"rows": Array([Array([Whole(1)]), Real(0.5)])}, {"rows": [[1], 0.5]}),
        (nn.OnField(nn.ExactMatch(), "late"), {"late": Flag(True)}, {"late": True}),
    ],
)  # fmt: skip
def test_a_target_of_another_library_is_compared_as_python_s_own(loss: Any, given: Any, own: Any) -> None:
    """A truth was compared as "True", and an array was never right, without a word, or ended the run."""
    for answer in (json.dumps(own), "[0]" if isinstance(own, list) else '{"late": 0}'):
        scores = [loss(tg.Variable(answer, role="answer"), target) for target in (given, own)]
        assert scores[0].data == scores[1].data == float(answer == json.dumps(own))


def test_what_is_told_of_such_a_target_is_what_is_told_of_python_s_own() -> None:
    """The critic reads it."""
    answer = tg.Variable("no", role="answer")
    for given, own in ((Flag(True), True), (Array(["a", "b"]), ["a", "b"])):
        told = [ops.deterministic_evaluator(answer, each, lambda got, wanted: 0, "it")[1].data for each in (given, own)]
        assert told[0] == told[1]


def test_an_array_is_no_text_to_exact_match() -> None:
    """As a list is none."""
    with pytest.raises(TypeError, match="exact match compares texts, and the target is a list"):
        _ = nn.ExactMatch()(tg.Variable("a"), Array(["a"])).data


@pytest.mark.parametrize(("given", "kept"), [(Whole(3), 3), (Fraction(1, 2), 0.5), (Flag(True), True)])
def test_a_program_may_return_numbers_of_other_libraries(given: Any, kept: Any) -> None:
    """They are one prediction."""
    assert as_prediction(given).data == kept


async def waiting(text: str) -> str:
    return text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (waiting("a"), "this one a coroutine: write it as a plain def"),
        (None, "returned None$"),
        (Record(), "returned a Record$"),
        (["a", Record()], "returned a list; a batch holds strings or numbers, got Record"),
    ],
)
def test_what_is_no_prediction_is_told(given: Any, says: str) -> None:
    """And nothing warns of what nobody awaits."""
    with pytest.raises(ScoreError, match=says):
        as_prediction(given)


def test_messages_of_our_own_are_messages() -> None:
    """As in a Request."""
    model = FunctionModel(lambda request: request.messages[-1].text)
    assert ops.chat_completion(model, [llm.Message(role="user", content="{text}")], {"text": "a"}).data == "a"


def test_a_script_that_never_ends_is_refused() -> None:
    """It would be read for ever; one that ends is taken."""
    for endless in (itertools.cycle(["a"]), itertools.repeat("a")):
        with pytest.raises(TypeError, match=r"answers never end; FunctionModel\(lambda request: next\(answers\)\)"):
            testing.ScriptedModel(endless)
    assert testing.ScriptedModel(itertools.repeat("a", 3)).left == 3


def test_a_module_that_does_not_call_its_base_says_so() -> None:
    """Not that it lacks an attribute that nobody has heard of."""

    class Plain(nn.Module):
        def __init__(self) -> None:
            self.style = "short"

    with pytest.raises(AttributeError, match=r"Plain\.__init__ did not call super\(\)\.__init__\(\)"):
        list(Plain().parameters())


class Words(str, enum.Enum):  # noqa: UP042
    """Texts by name, as before Python had StrEnum: `str` gives the name of one, and not its text."""

    GREETING = "hello"
    FIELD = "target"
    SEPARATOR = "-"


class Number(int, enum.Enum):
    """Numbers by name."""

    TWO = 2


class Queue(enum.Enum):
    """Members whose class says in what words they are sent."""

    BILLING = 1

    def __str__(self) -> str:
        return "billing"


class Tone(str, enum.Enum):  # noqa: UP042
    """Texts whose members have another value beside, such as a number in a database."""

    def __new__(cls, text: str, number: int) -> Self:
        made = str.__new__(cls, text)
        made._value_ = number  # type: ignore[assignment]
        return made

    DRY = ("dry", 7)


def test_a_member_is_sent_as_the_text_that_it_is_and_not_as_its_value() -> None:
    """They are the same mostly, and a program goes by the text."""
    assert tg.Variable(Tone.DRY).data == ops.join([Tone.DRY, ""], "").data == "dry"


def test_a_member_that_is_no_text_is_sent_in_its_own_words() -> None:
    """The number that it has says nothing to a model."""
    model = FunctionModel(lambda request: request.messages[-1].text)
    assert ops.chat_completion(model, [{"role": "user", "content": Queue.BILLING}]).data == "billing"


def test_members_of_enums_are_sent_as_their_texts() -> None:
    """As slots, prompts, templates, contents of messages, roles, targets and feedback."""
    model = FunctionModel(lambda request: request.messages[-1].text)
    word: Any = Words.GREETING
    for call in (
        lambda: nn.ChatCompletion("{x}", model=model)(x=word),
        lambda: nn.ChatCompletion(word, model=model)(),
        lambda: nn.ChatCompletion(nn.Parameter(word), model=model)(),
        lambda: ops.chat_completion(model, [{"role": "user", "content": word}]),
        lambda: ops.format("{x}", x=word),
        lambda: ops.join([word, ""], ""),
    ):
        assert call().data == "hello"  # type: ignore[no-untyped-call]
    assert str(tg.Variable(word)) == tg.Variable("a", role=word).role.lower() == "hello"
    assert ops.format("{n}", n=Number.TWO).data == str(tg.Variable(Number.TWO)) == "2"
    assert ops.join(["a", "b"], Words.SEPARATOR).data == "a-b"
    program = nn.ChatCompletion("{x}", model=model)
    found = tg.evaluate(program, [{"x": word, "target": word}], nn.ExactMatch(), target=Words.FIELD)
    assert found.mean == 1
