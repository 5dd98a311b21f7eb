"""The law of `vmap`: for each example exactly what a loop over the function gives, whatever the function does.

`tests/properties/test_func_laws.py` has the same of texts. Here the programs hold transforms themselves, tools, fields,
hooks and results of plain code; and of feedback everything is compared that anybody can read of it: the words, their
role, and where they came from, back to the first. What is computed once where nothing depends on the example is no
concern here: every call of a model, and every rule that makes one piece of feedback of several, has prompt and text.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine import dispatch, func, nn, ops
from textgrad_engine.autograd.examples import example as named
from textgrad_engine.errors import ModelError, RequestRefused
from textgrad_engine.llm import Completion, Request
from textgrad_engine.ops.pass_on import joined_role
from textgrad_engine.testing import FunctionModel

SOME = settings(max_examples=25, deadline=None)


def digest(*texts: Any) -> str:
    return hashlib.sha256("\0".join(map(str, texts)).encode()).hexdigest()


class Shuffled:
    """A model whose answers come in an order of their own; each is the digest of what was asked.

    Args:
        patience: turns of the loop that an answer takes at most.
        fails: one of so many requests is refused; 0 for none.
    """

    def __init__(self, patience: int, fails: int = 0) -> None:
        self.patience, self.fails = patience, fails
        self.model = FunctionModel(self._answer)

    async def _answer(self, request: Request) -> Any:
        asked = digest(*[(message.role, message.text) for message in request.messages])
        for _ in range(int(asked[-2:], 16) % (self.patience + 1)):  # turns of the loop, not time
            await asyncio.sleep(0)
        if self.fails and int(asked[-4:], 16) % self.fails == 0:
            raise RequestRefused(f"refused {asked[:4]}")
        wanted = request.config.response_format
        if wanted is not None:
            return _filled(wanted.json_schema, wanted.name, asked)
        if request.config.tools and request.messages[-1].role != "tool" and int(asked[0], 16) < 12:
            arguments = json.dumps({"word": "abcd"[int(asked[1], 16) % 4]})
            called = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": arguments}}
            return Completion(text="", finish_reason="tool_calls", tool_calls=(called,))
        return "abcd"[int(asked[0], 16) % 4]

    def asked(self) -> Counter[Any]:
        """Every request, as often as it was made."""
        return Counter((r.purpose, *[(m.role, m.text) for m in r.messages]) for r in self.model.requests)


def _filled(schema: Any, key: str, asked: str) -> Any:
    if schema["type"] == "object":
        return {name: _filled(below, name, asked) for name, below in schema["properties"].items()}
    if schema["type"] == "number":
        return int(asked[1], 16) % 2
    if schema["type"] == "boolean":
        return int(asked[2], 16) < 2
    return "" if int(digest(asked, key)[0], 16) < 4 else f"{key} {asked[:6]}"


def look_up(word: str) -> str:
    """What is known of a word."""
    return f"{word} is a letter."


FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "labelled",
        "schema": {
            "type": "object",
            "properties": {"why": {"type": "string"}, "label": {"type": "string"}},
            "required": ["why", "label"],
            "additionalProperties": False,
        },
    },
}


def chat(prompt: Any, text: Any, more: Any, **config: Any) -> tg.Variable:
    messages = [
        {"role": "system", "content": prompt},
        {"role": "user", "content": [{"type": "text", "text": "About "}, text, " {more}"]},
    ]
    return ops.chat_completion(None, messages, {"more": more}, **config)


def heard(prompt: Any, text: Any, more: Any) -> tg.Variable:
    """What comes by on the way back is changed by a hook."""
    value = ops.join([prompt, text, more], "/")
    if value.requires_grad:
        value.register_hook(lambda gradient: f"heard: {gradient.data}" if gradient.data else None)
    return value


def by_code(prompt: Any, text: Any, more: Any) -> tg.Variable:
    return ops.straight_through(ops.join([text, more], "-"), *[v for v in (prompt, text) if isinstance(v, tg.Variable)])


class Asks(nn.Module):
    """A module with one prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt = nn.Parameter("Ask.", role="prompt of a module")

    def forward(self, text: Any, more: Any) -> tg.Variable:
        return chat(self.prompt, text, more)


ASKS = Asks()


def called(prompt: Any, text: Any, more: Any) -> tg.Variable:
    return func.functional_call(ASKS, {"prompt": prompt}, text, more)


def wrong(prompt: Any, text: Any, more: Any) -> tg.Variable:
    return ops.exact_match_evaluator(chat(prompt, text, more), "a")[0]


def graded(prompt: Any, text: Any, more: Any) -> tg.Variable:
    """Feedback of a level inside, as a text."""
    on_prompt, on_text = func.grad(lambda p, t: wrong(p, t, more), argnums=(0, 1))(prompt, text)
    return ops.join([on_prompt, on_text], ", ")


def pulled(prompt: Any, text: Any, more: Any) -> tg.Variable:
    value, pull = func.vjp(lambda p, t: ops.join([chat(p, t, more), t], "+"), prompt, text)
    on_prompt, on_text = pull("be brief")
    return ops.join([value, on_prompt, on_text], ", ")


def pushed(prompt: Any, text: Any, more: Any) -> tg.Variable:
    value, change = func.jvp(
        lambda p, t: ops.join([chat(p, t, more), t], "+"), (prompt, text), ("shorter", ops.join([text, "?"]))
    )
    return ops.join([value, change], ", ")


def each_by_itself(prompt: Any, text: Any, more: Any) -> tg.Variable:
    rows = func.jacrev(lambda p: (wrong(p, text, more), wrong(text, p, more)))(prompt)
    return ops.join(rows, ", ")


def pieces(prompt: Any, text: Any, more: Any) -> tg.Variable:
    return ops.join(list(reversed(ops.split(ops.join([prompt, text, more], "|"), "|", 1))), "+")


Operation = Callable[[Any, Any, Any], tg.Variable]

OPERATIONS: dict[str, Operation] = {
    "add": lambda prompt, text, more: ops.add(text, more),
    "chat": chat,
    "code": by_code,
    "field": lambda prompt, text, more: chat(prompt, text, more, response_format=FORM)["label"],
    "format": lambda prompt, text, more: ops.format("{a}: {b}", a=more, b=text),
    "functional_call": called,
    "grad": graded,
    "hook": heard,
    "jacrev": each_by_itself,
    "join": lambda prompt, text, more: ops.join([prompt, text, more], "+"),
    "jvp": pushed,
    "pieces": pieces,
    "tools": lambda prompt, text, more: chat(prompt, text, more, tools=[look_up]),
    "vjp": pulled,
}


def scaled(answer: Any, target: Any) -> tg.Variable:
    exact = ops.exact_match_evaluator(answer, target)[0]
    return 0.75 * exact + ops.judge(answer, "Is it right?", target=target)[0] / 4


WEIGHTED = nn.Weighted({"right": nn.ExactMatch(), "judged": nn.Judge("Is it right?")}, {"right": 3, "judged": 1})


LOSSES: dict[str, Callable[[Any, Any], tg.Variable]] = {
    "criticism": lambda answer, target: ops.text_loss(answer, "What is wrong?", target=target),
    "exact": lambda answer, target: ops.exact_match_evaluator(answer, target)[0],
    "judge": lambda answer, target: ops.judge(answer, "Is it right?", target=target)[0],
    "scaled": scaled,
    "weighted": WEIGHTED,
}


@dataclass(frozen=True)
class Program:
    """Operations one after the other, each on prompt, text and an earlier value; a loss at the end.

    Attributes:
        steps: the operations, each with the value that it takes beside prompt and text: 0 is the text, 1 a constant.
        loss: the loss.
    """

    steps: tuple[tuple[str, int], ...]
    loss: str

    def answer(self, prompt: Any, text: Any) -> tg.Variable:
        values: dict[int, Any] = {0: text, 1: "constant"}
        for number in sorted(self.used()):  # what nobody reads is not run: its requests would come at any time
            kind, more = self.steps[number - 2]
            values[number] = OPERATIONS[kind](prompt, text, values[more])
        result: tg.Variable = values[len(self.steps) + 1]
        return result

    def used(self) -> list[int]:
        """The values that have a part in the answer, which is the last, from this on."""
        found = [len(self.steps) + 1]
        while (more := self.steps[found[-1] - 2][1]) > 1:
            found.append(more)
        return found

    def __call__(self, prompt: Any, text: Any) -> tg.Variable:
        return LOSSES[self.loss](self.answer(prompt, text), "a")


@st.composite
def programs(draw: Any, kinds: tuple[str, ...] = tuple(sorted(OPERATIONS))) -> Program:
    count = draw(st.integers(1, 3))
    steps = [(draw(st.sampled_from(kinds)), draw(st.integers(0, number + 1))) for number in range(count)]
    return Program(tuple(steps), draw(st.sampled_from(sorted(LOSSES))))


PLAIN = tuple(sorted(set(OPERATIONS) - {"grad", "jacrev", "jvp", "pieces", "vjp"}))
"""Those that go neither backward nor forward themselves, and wait for nothing: where one fails, the others go on."""

texts = st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=3)
patience = st.integers(0, 5)


def source_of(item: tg.Variable) -> Any:
    """Where feedback came from, back to the first."""
    source = item.source
    if source is None:
        return None
    told = tuple([told_of(reason) for reason in source.because])
    return *[getattr(source, field.name) for field in fields(source) if field.name != "because"], told


def told_of(item: tg.Variable) -> Any:
    """All that can be read of a piece of feedback."""
    return item.data, item.role, source_of(item)


def leaf(text: str, role: str) -> tg.Variable:
    return tg.Variable(text, role=role, requires_grad=True)


def example_names(count: int) -> list[str]:
    return [f"e{number}" for number in range(count)]


def in_loop(function: Callable[..., Any], *columns: list[Any]) -> list[Any]:
    """The function on each example, under its name."""
    found = []
    for name, *values in zip(example_names(len(columns[0])), *columns):
        with named(name):
            found.append(function(*values))
    return found


def mapped(function: Callable[..., Any], *columns: Any) -> Any:
    return func.vmap(function, names=example_names(len(columns[0])))(*columns)


async def _turn() -> None:
    await asyncio.sleep(0)


@dataclass
class Ran:
    """What came of a program on a model of its own."""

    result: Any
    asked: Counter[Any]


def run(work: Callable[[], Any], order: int, fails: int = 0) -> Ran:
    model = Shuffled(order, fails)
    with tg.use_models(forward=model.model):
        result = work()
        for _ in range(100):  # what nobody reads is under way still
            dispatch.run(_turn)
    return Ran(result, model.asked())


@SOME
@given(programs(), texts, patience)
def test_what_a_leaf_hears_is_that_of_a_loop(program: Program, given: list[str], order: int) -> None:
    """Feedback by feedback, with roles and sources, on the shared prompt and on each text; values and requests."""

    def whole(together: bool) -> Any:
        prompt, leaves = leaf("P", "prompt"), [leaf(text, "text") for text in given]
        losses = (
            mapped(lambda text: program(prompt, text), leaves)
            if together
            else in_loop(lambda text: program(prompt, text), leaves)
        )
        roots = [losses] if together else losses
        values = losses.data if together else [loss.data for loss in losses]
        role = losses.role if together else joined_role(losses)
        if wanting := [root for root in roots if root.requires_grad]:
            tg.backward(wanting)
        return values, role, [told_of(item) for item in prompt.grad], [[told_of(i) for i in v.grad] for v in leaves]

    together, apart = run(lambda: whole(True), order), run(lambda: whole(False), 0)
    assert together.result == apart.result
    assert_asked(together.asked, apart.asked)


def assert_asked(together: Counter[Any], apart: Counter[Any]) -> None:
    """The same requests; one that does not depend on the example, as feedback is a zero for all, is made once."""
    assert set(together) == set(apart)
    assert together <= apart


def columns_of(results: list[Any]) -> Any:
    """The results of a loop as `vmap` gives them: data and role of each output."""
    if isinstance(results[0], tuple):
        return [columns_of(list(column)) for column in zip(*results)]
    return [result.data for result in results], joined_role(results)


def read(result: Any) -> Any:
    return [read(part) for part in result] if isinstance(result, tuple) else (result.data, result.role)


def twice(program: Program) -> Callable[..., Any]:
    """Feedback on feedback."""

    def second(prompt: Any, text: Any) -> tg.Variable:
        on_prompt, on_text = func.grad(program, argnums=(0, 1))(prompt, text)
        return ops.text_loss(ops.join([on_prompt, on_text], "; "), "Is it concrete?")

    return func.grad_and_value(second, argnums=(0, 1))


def edited(program: Callable[..., Any]) -> Callable[..., Any]:
    return lambda prompt, text: func.jvp(program, (prompt, text), ("becomes Q", "longer"))


def edited_inside(program: Program) -> Callable[..., Any]:
    """What an edit changes in feedback, and what feedback says of a changed answer."""

    def changed(prompt: Any, text: Any) -> tg.Variable:
        value, change = func.jvp(program.answer, (prompt, text), ("becomes Q", ops.join([text, "?"])))
        return ops.text_loss(ops.join([value, change], "; "), "Is it an improvement?")

    return func.grad_and_value(changed, argnums=(0, 1))


def pulled_back(program: Program) -> Callable[..., Any]:
    def both(prompt: Any, text: Any) -> Any:
        value, pull = func.vjp(program.answer, prompt, text)
        return value, *pull("be brief")

    return both


TRANSFORMS: dict[str, Callable[[Program], Callable[..., Any]]] = {
    "grad": lambda program: func.grad_and_value(program, argnums=(0, 1)),
    "grad of grad": twice,
    "grad of jvp": edited_inside,
    "jacrev": lambda program: func.jacrev(program, argnums=(0, 1)),
    "jvp": edited,
    "jvp of grad": lambda program: edited(func.grad_and_value(program)),
    "vjp": pulled_back,
}


@SOME
@given(programs(), st.sampled_from(sorted(TRANSFORMS)), texts, patience)
@example(Program((("functional_call", 1), ("add", 1), ("field", 1)), "weighted"), "grad of grad", ["x"], 1)
@example(Program((("grad", 1),), "criticism"), "jvp of grad", ["y"], 0)
def test_transforms_of_a_program_are_those_of_a_loop(program: Program, name: str, given: list[str], order: int) -> None:
    """Also around each other.

    Those that are always tried have feedback on feedback know for how much of a score it counts, and edited feedback
    know of which part of a text it was said.
    """
    if "jvp" in name and "code" in {kind for kind, _ in program.steps}:
        return  # no edit goes through code
    one = TRANSFORMS[name](program)
    prompts = ["P"] * len(given)
    together = run(lambda: read(mapped(one, prompts, given)), order)
    apart = run(lambda: columns_of(in_loop(one, [tg.Variable(p) for p in prompts], [tg.Variable(t) for t in given])), 0)
    assert together.result == apart.result
    assert_asked(together.asked, apart.asked)


@settings(SOME, max_examples=20)
@given(programs(), texts, patience)
@example(Program((("grad", 1), ("field", 2)), "criticism"), ["x"], 0)
def test_two_levels_are_two_loops(program: Program, given: list[str], order: int) -> None:
    """Prompt by prompt and text by text, with the feedback on both; also on what is made of feedback.

    In the one that is always tried the feedback is a zero for one of the prompts.
    """
    one = func.grad_and_value(program, argnums=(0, 1))
    prompts = ["P", "Q"]

    def matrix() -> Any:
        rows = func.vmap(lambda prompt: func.vmap(lambda text: one(prompt, text))(given))(prompts)
        return [part.data for part in (*rows[0], rows[1])]

    def loops() -> Any:
        cells = [[one(tg.Variable(p), tg.Variable(t)) for t in given] for p in prompts]
        parts = [[[*gradients, value] for gradients, value in row] for row in cells]
        return [[[cell[part].data for cell in row] for row in parts] for part in range(3)]

    together, apart = run(matrix, order), run(loops, 0)
    assert together.result == apart.result
    assert_asked(together.asked, apart.asked)


def test_of_two_levels_edited_feedback_knows_its_place() -> None:
    """Also for an example whose feedback no edit changes, beside one whose feedback one does."""
    one = edited(twice(Program((("field", 1),), "scaled")))
    prompts, given = ["P", "Q"], ["y", "x"]
    together = run(lambda: func.vmap(lambda p: func.vmap(lambda t: one(p, t))(given))(prompts), 0)
    apart = run(lambda: [one(tg.Variable(p), tg.Variable(t)) for p in prompts for t in given], 0)
    assert_asked(together.asked, apart.asked)


def place(text: Any, answer: Any) -> tg.Variable:
    return ops.format(ops.join([text, answer, "{a}"]), a=ops.join([text, answer]))


@settings(SOME, max_examples=10)
@given(texts, st.sampled_from(sorted(LOSSES)), patience)
def test_an_answer_in_several_places_hears_once(given: list[str], loss: str, order: int) -> None:
    """What is said of the whole text, as in a loop; also where that is feedback on feedback."""

    def first(prompt: Any, text: Any) -> tg.Variable:
        return LOSSES[loss](place(text, chat(prompt, text, "m")), "a")

    def second(prompt: Any, text: Any) -> tg.Variable:
        return ops.text_loss(func.grad(first)(prompt, text), "Is it concrete?")

    one = func.grad_and_value(second)
    prompts = ["P"] * len(given)
    together = run(lambda: read(mapped(one, prompts, given)), order)
    apart = run(lambda: columns_of(in_loop(one, [tg.Variable(p) for p in prompts], [tg.Variable(t) for t in given])), 0)
    assert together.result == apart.result
    assert_asked(together.asked, apart.asked)


@SOME
@given(programs(PLAIN), texts, patience)
def test_an_example_that_fails_fails_alone(program: Program, given: list[str], order: int) -> None:
    """The batch fails as the first of them does, and the others ask all the same."""
    prompt = tg.Variable("P", role="prompt")

    def outcomes(losses: list[tg.Variable]) -> Any:
        return [outcome(loss) for loss in losses]

    together = run(lambda: outcome(mapped(lambda text: program(prompt, text), given)), order, fails=3)
    apart = run(lambda: outcomes(in_loop(lambda text: program(prompt, tg.Variable(text)), given)), 0, fails=3)
    failed = [each for each in apart.result if isinstance(each, str) and each.startswith("RequestRefused")]
    assert together.result == (failed[0] if failed else apart.result)
    assert_asked(together.asked, apart.asked)


def outcome(value: tg.Variable) -> Any:
    """The data, or what it failed with."""
    try:
        return value.data
    except ModelError as error:
        return f"{type(error).__name__}: {error}"
