import __future__

import functools
import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn, ops, optim
from textgrad_engine.autograd import Function, Variable
from textgrad_engine.callables import check_method, signature_of, types_of_arguments
from textgrad_engine.func import functional_call
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train.estimate import estimate

ROWS = [{"ticket": f"ticket {number}", "target": "billing"} for number in range(4)]

PROMPT = nn.Parameter("Sort.", role="system prompt")

SOURCE = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from somewhere_else import Score, Ticket

class Triage(nn.Module):
    def __init__(self):
        super().__init__()
        self.chat = nn.ChatCompletion(system=nn.Parameter("Sort.", role="prompt of the sorter"), user="{ticket}")

    def forward(self, ticket: Ticket, note: Ticket | None = None) -> Score:
        return self.chat(ticket=ticket)

class Loss(nn.Module):
    def forward(self, prediction: Ticket, target: Score) -> Score:
        return nn.ExactMatch()(prediction, target)

def metric(prediction: Ticket, target: Score, inputs: dict[str, Ticket]) -> Score:
    return prediction == target and bool(inputs["ticket"])

class Loud(Function):
    @staticmethod
    def forward(ctx: Ticket, text: Ticket, mark: Ticket = "!") -> Score:
        return Variable(text.data + mark)

    @staticmethod
    def backward(ctx: Ticket, grad_out: Ticket) -> Score:
        return grad_out

def find(number: int, most: "int" = 3) -> Score:
    '''Finds tickets.'''
    return f"ticket {number}"

def find_alike(ticket: Ticket) -> str:
    '''Finds tickets like one.'''
"""


def written() -> dict[str, Any]:
    """Code of a user's with annotations that are only for type checkers, as it is written in this version of Python."""
    flags = 0 if sys.version_info >= (3, 14) else __future__.annotations.compiler_flag
    names: dict[str, Any] = {"nn": nn, "Function": Function, "Variable": Variable, "__name__": "code_of_a_user"}
    exec(compile(SOURCE, "<code of a user>", "exec", flags=flags, dont_inherit=True), names)
    return names


@pytest.fixture
def models():
    says = FunctionModel(lambda request: "billing")
    with tg.use_models(forward=says, backward=says, optimizer=says):
        yield


# Whoever annotates for type checkers alone may train, evaluate and estimate a program, and use every kind of function.


@pytest.mark.parametrize("loss", ["Loss", "metric"])
def test_a_program_is_trained_whose_annotations_nobody_can_evaluate(loss, models):
    code = written()
    program, scored = code["Triage"](), code[loss]
    scored = scored() if loss == "Loss" else nn.Metric(scored, purpose="right")
    trainer = tg.Trainer(max_epochs=1, batch_size=2)
    assert tg.evaluate(program, ROWS, scored).mean == 1
    assert estimate(trainer, program, scored, optim.TGD(program.parameters()), ROWS, ROWS, ROWS).calls
    assert trainer.fit(program, scored, optim.TGD(program.parameters()), ROWS, ROWS, ROWS).best == {
        "chat.system": "Sort."
    }


def test_a_function_is_applied_by_name_and_functional_call_counts_arguments(models):
    code = written()
    assert code["Loud"].apply(Variable("hello"), mark="?").data == "hello?"
    assert functional_call(code["Triage"](), {"chat.system": "Other."}, ("no signal",)).data == "billing"


def test_a_function_that_is_called_wrongly_says_so_and_not_that_an_annotation_is_unknown():
    with pytest.raises(TypeError, match="positional argument"):
        written()["Loud"].apply(Variable("hello"), "!", "too much")


def test_what_a_tool_returns_need_not_be_known_and_what_it_takes_does():
    code = written()
    (described,), _ = ops.tools.tools_of([code["find"]], 5, "here")
    assert {name: kind["type"] for name, kind in described["function"]["parameters"]["properties"].items()} == {
        "number": "integer",
        "most": "integer",
    }
    with pytest.raises(TypeError, match=r"'find_alike' has a type that is not known where it is defined: .*Ticket"):
        ops.tools.tools_of([code["find_alike"]], 5, "here")


# The two readers.


def test_the_types_of_arguments_are_those_of_methods_and_of_wrapped_functions_too():
    class Shelf:
        def find(self, text: str, most: "int" = 3) -> "Nothing":  # noqa: F821
            """Finds."""

    @functools.wraps(Shelf.find)
    def wrapped(*args, **kwargs):
        return Shelf.find(*args, **kwargs)

    expected = {"text": str, "most": int}
    assert types_of_arguments(Shelf.find) == types_of_arguments(Shelf().find) == types_of_arguments(wrapped) == expected


def test_how_a_function_is_called_is_told_of_what_is_no_def_too():
    assert list(signature_of(functools.partial(written()["metric"], "p")).parameters) == ["target", "inputs"]
    assert list(signature_of(written()["Triage"]().forward).parameters) == ["ticket", "note"]
    with pytest.raises(TypeError):
        signature_of("no function")


def test_how_a_function_is_called_is_read_anew_where_it_has_changed() -> None:
    """It is kept, as it takes long; a method has its own, and what is set later counts."""

    class Sorter:
        def forward(self, ticket: str, note: str = "") -> str:
            return ticket + note

    own, bound = Sorter.forward, Sorter().forward
    for _ in range(2):
        assert list(signature_of(own).parameters) == ["self", "ticket", "note"]
        assert list(signature_of(bound).parameters) == ["ticket", "note"]
    own.__defaults__ = ("a", "b")
    assert [each.default for each in signature_of(bound).parameters.values()] == ["a", "b"]
    own.__code__ = (lambda self, mail, note: mail).__code__
    assert list(signature_of(bound).parameters) == ["mail", "note"]
    assert list(signature_of(own).parameters) == ["self", "mail", "note"]
    own.__signature__ = signature_of(lambda anything: 1)  # type: ignore[attr-defined]
    assert list(signature_of(own).parameters) == ["anything"]

    def keyed(*, note: str = "") -> str:
        return note

    assert signature_of(keyed).parameters["note"].default == ""
    keyed.__kwdefaults__["note"] = "late"
    assert signature_of(keyed).parameters["note"].default == "late"


class OfAnotherShape:
    """What has all methods that are asked for, and none that can be called."""

    name = "own"

    def propose(self, brief: Any) -> None: ...

    def on_event(self) -> None: ...

    def describe(self, before: str) -> str:
        return ""

    def problem(self, after: str) -> str | None: ...

    def init(self) -> dict[str, Any]:
        return {}

    def update(self, gathered: Any) -> Any: ...

    def record(self, state: Any, lines: Any, outcome: str) -> Any: ...

    async def complete(self, messages: Any, config: Any) -> None: ...


class Unscheduled(optim.schedules.EditSchedule):
    def edits(self) -> int:  # type: ignore[override]
        return 3


class Unmeasured(optim.Searcher):
    expected = 0.5

    def decide(self, objective: Any) -> None: ...

    def texts(self) -> tuple[str, ...]:
        return ("a",)

    def volume(self) -> Any: ...  # type: ignore[override]


class Undecided(optim.Searcher):
    expected = 0.5

    def decide(self) -> None: ...  # type: ignore[override]

    def texts(self) -> tuple[str, ...]:
        return ("a",)


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (
            lambda own: optim.TGD([PROMPT], proposer=own),
            r"propose takes (brief), and is called with (brief, model, pro",
        ),
        (
            lambda own: tg.Trainer(callbacks=[own]),
            "on_event takes (), and is called with (event); write `def on_event(",
        ),
        (
            lambda own: optim.TGD([PROMPT], constraints=[own]),
            "problem takes (after), and is called with (before, after)",
        ),
        (
            lambda own: optim.PatchSearch([PROMPT], transforms=[own]),
            "update takes (gathered), and is called with (gath",
        ),
        (lambda own: llm.resolve(own), "complete takes (messages, config), and is called with (request); write `def c"),
        (lambda own: Unscheduled(optim.TGD([PROMPT])), "edits takes (), and is called with (step); write `def edits("),
        (
            lambda own: estimate(
                tg.Trainer(),
                nn.ChatCompletion("{ticket}", system=PROMPT),
                nn.ExactMatch(),
                Unmeasured([PROMPT], {}),
                ROWS,
                ROWS,
            ),
            "volume takes (), and is called with (sizes)",
        ),
        (
            lambda own: Undecided([PROMPT], {}),
            "Undecided.decide takes (), and is called with (objective); write `def d",
        ),
    ],
)
def test_a_method_that_cannot_be_called_is_told_of_before_anything_is_asked(
    use: Callable[[Any], object], says: str
) -> None:
    """It ended a run with what Python says of a call in here, when the first validation was paid for."""
    with pytest.raises(TypeError, match=re.escape(says)):
        use(OfAnotherShape())


def test_a_method_may_take_more_than_it_is_given_and_need_not_say_what() -> None:
    class Wide:
        def on_event(self, *events: Any, level: int = 0) -> None: ...

    check_method(Wide(), "on_event", "event")
    check_method(SimpleNamespace(on_event=print), "on_event", "event")
    check_method(Mock(spec=["on_event"]), "on_event", "event")


class Waits:
    """Contract, callback and transform of which methods are `async` that nobody awaits."""

    def describe(self, before: str) -> str:
        return ""

    async def problem(self, before: str, after: str) -> str | None: ...

    def init(self) -> dict[str, Any]:
        return {}

    async def update(self, gathered: Any, state: Any, context: Any) -> Any: ...

    async def record(self, state: Any, lines: Any, outcome: str) -> Any: ...


class Yields:
    """What has a `yield` where something is to be returned."""

    name = "own"

    def propose(self, brief: Any, model: Any, problem: str) -> Any:
        yield optim.proposers.Proposal("Sort.")

    def on_event(self, event: Any) -> Any:
        yield event

    async def complete(self, request: Any) -> Any:
        yield llm.Completion("yes")


def searcher(**methods: Any) -> Any:
    made = {"expected": 0.5, "texts": lambda self: ("a",), "decide": lambda self, objective: None} | methods
    return type("Own", (optim.Searcher,), made)([PROMPT], {})


async def waits(self: Any, objective: Any = None) -> None: ...


def yields(self: Any, objective: Any) -> Any:
    yield objective


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (
            lambda: optim.TGD([PROMPT], constraints=[Waits()]),
            "Waits.problem is an `async def`, and nobody awaits it: wr",
        ),
        (lambda: optim.TGD([PROMPT], transforms=[Waits()]), "Waits.record is an `async def`, and nobody awaits it"),
        (
            lambda: searcher(decide=waits),
            "Own.decide is an `async def`, and nobody awaits it: write `def decide(self, o",
        ),
        (lambda: searcher(texts=waits), "Own.texts is an `async def`, and nobody awaits it: write `def texts(self)`"),
        (
            lambda: searcher(decide=yields),
            "Own.decide has a `yield`, so a call of it gives a generator, and does nothing",
        ),
        (lambda: optim.TGD([PROMPT], proposer=Yields()), "Yields.propose has a `yield`"),
        (lambda: tg.Trainer(callbacks=[Yields()]), "Yields.on_event has a `yield`"),
        (lambda: llm.resolve(Yields()), "Yields.complete has a `yield`"),
    ],
)
def test_what_would_wait_for_nobody_or_do_nothing_is_told_of_before_anything_is_asked(
    use: Callable[[], object], says: str
) -> None:
    """A callback that was a generator did nothing; a contract that was a coroutine ended a run at its first step."""
    with pytest.raises(TypeError, match=re.escape(says)):
        use()


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (
            lambda: llm.on_token(lambda piece: None).__enter__(),
            "on_token: callback takes (piece), and is called with (request, piece); write `def callback(request, ",
        ),
        (lambda: llm.observe(lambda: None).__enter__(), "observe: callback takes (), and is called with (record)"),
        (
            lambda: tg.evaluate(lambda text: text, [], nn.ExactMatch(), on_score=lambda: None),
            "evaluate: on_score takes (), and is called with (position)",
        ),
    ],
)
def test_a_function_that_is_to_be_told_of_calls_is_looked_at_before_one_is_made(
    use: Callable[[], object], says: str
) -> None:
    """It failed at the first call, which was paid for, and said to have failed in the model."""
    with pytest.raises(TypeError, match=re.escape(says)):
        use()


def test_what_can_be_called_so_may_be_told_of_calls() -> None:
    """Also what takes more that has a default, anything, or does not say."""
    model = FunctionModel(lambda request: "yes")
    seen: list[object] = []
    mock = Mock()
    for told in (seen.append, mock, print, lambda record, more=None: seen.append(record), lambda *records: None):
        with llm.observe(told):
            assert nn.ChatCompletion("Is it late?", model=model)().data == "yes"
    assert len(seen) == 2
    assert mock.call_count == 1
    for heard in (lambda *heard: None, Mock(), print):
        with llm.on_token(heard):
            assert nn.ChatCompletion("Is it late?", model=model)().data == "yes"
