"""The laws of the transforms, over random programs built from the library's operations.

NOTE [Shared parts]
    What does not depend on the example is computed once under `vmap`. Where that is plain text, its feedback arrives
    together instead of example by example, so only the order of items differs from that of a loop. A model's answer
    that is shared hears all feedback in one question, where a loop asks several: that is no equality but the purpose,
    so here every call of a model depends on prompt and example. So does every Function with a rule of its own, which
    may make one piece of feedback of several. A `vmap` rule of one's own goes backward once for all examples: it stands
    at the end of a program, where what it says arrives at each example as in the loop.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from dataclasses import dataclass
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine import func, ops, pytree
from textgrad_engine.autograd.gradient import combine
from textgrad_engine.testing import FunctionModel

FEW = settings(max_examples=30, deadline=None)


@dataclass(frozen=True)
class Step:
    """One operation, and which of the values before it are its inputs (0 is the prompt, 1 the text, 2 a constant)."""

    kind: str
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """A random program of a prompt, a text and a target, with an evaluator at its end.

    Attributes:
        steps: what is computed.
        evaluator: what is computed at last, of the answer and the target.
        last: the step whose value is the answer.
        finish: what is done with the answer, the prompt and the text first, "" for nothing.
    """

    steps: tuple[Step, ...]
    evaluator: str
    last: int
    finish: str = ""

    def __call__(self, prompt: Any, text: Any, target: Any) -> tg.Variable:
        return LOSSES[self.evaluator](self.answer(prompt, text), target)

    def answer(self, prompt: Any, text: Any) -> tg.Variable:
        values: dict[int, Any] = {0: prompt, 1: text, 2: "constant"}
        for number in sorted(self.used()):  # what nobody reads is not run: its requests would come at any time
            step = self.steps[number - 3]
            values[number] = OPERATIONS[step.kind](*[values[index] for index in step.inputs])
        return FINISHES[self.finish](values[self.last], prompt, text) if self.finish else values[self.last]

    def used(self) -> set[int]:
        """The steps that have a part in the answer."""
        todo, seen = [self.last], set()
        while todo:
            number = todo.pop()
            if number > 2 and number not in seen:
                seen.add(number)
                todo.extend(self.steps[number - 3].inputs)
        return seen

    def uses(self, value: int) -> bool:
        """Whether the prompt (0) or the text (1) has a part in the answer."""
        return bool(self.finish) or any(value in self.steps[number - 3].inputs for number in self.used())

    def shares(self, value: int) -> bool:
        """Whether a step that has a part in the answer does not depend on the prompt (0) or the text (1)."""
        if self.finish == "ruled":
            return True
        depends = {value}
        for number in sorted(self.used()):
            if depends & set(self.steps[number - 3].inputs):
                depends.add(number)
        return not self.used() <= depends


class Own(tg.Function):
    """Rules as users write them: all of them read data, and some of what they say is made by operations."""

    @staticmethod
    def forward(values: list[Any]) -> tg.Variable:
        return tg.Variable("/".join(map(str, values)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[0], output)
        ctx.length = len("".join(map(str, inputs[0])))

    @staticmethod
    def backward(ctx: Any, grad_out: tg.Variable) -> Any:
        *values, output = ctx.saved_variables
        return ([own_words(value, output, grad_out, getattr(ctx, "length", "")) for value in values],)

    @staticmethod
    def jvp(ctx: Any, edits: list[Any]) -> Any:
        given = [f"{value} {edit}" for value, edit in zip(ctx.primals[0], edits) if edit is not None and edit.data]
        return f"{ctx.saved_variables[-1].data}: {given}" if given else None


def own_words(value: Any, output: tg.Variable, grad_out: tg.Variable, length: Any) -> Any:
    """Nothing now and then, else something that depends on all values."""
    if not isinstance(value, tg.Variable) or int(digest(f"{value}{output}{grad_out}")[0], 16) < 4:
        return None
    return [ops.join([f"{length} ", value, " in ", output, ": ", grad_out]), f"{value} of {output}"]


class Later(Own):
    """The same, dispatched."""

    @staticmethod
    async def forward(values: list[Any]) -> tg.Variable:
        await asyncio.sleep(0)
        return Own.forward(values)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[0], output)

    @staticmethod
    async def backward(ctx: Any, grad_out: tg.Variable) -> Any:
        await asyncio.sleep(0)
        return Own.backward(ctx, grad_out)


class Two(Own):
    """Three outputs, of which one is not differentiable; the arguments are a dict of values."""

    @staticmethod
    def forward(values: dict[str, Any]) -> Any:
        texts = [str(value) for value in values.values()]
        return tg.Variable("<".join(texts)), tg.Variable("constant"), tg.Variable(">".join(texts))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.keys = tuple(inputs[0])
        ctx.save_for_backward(*inputs[0].values())

    @staticmethod
    def backward(ctx: Any, first: tg.Variable, nothing: tg.Variable, second: tg.Variable) -> Any:
        assert nothing.data == ""
        both = ops.join([*first.grad, *second.grad], "|")
        return ({key: own_words(value, first, both, "") for key, value in zip(ctx.keys, ctx.saved_variables)},)

    @staticmethod
    def jvp(ctx: Any, edits: dict[str, Any]) -> Any:
        given = [f"{key} {edit}" for key, edit in edits.items() if edit is not None and edit.data]
        return (f"{given}" if given else None), None, (given[0] if given else None)


class TwoLater(Two):
    """The same, dispatched."""

    num_outputs = 3

    @staticmethod
    async def forward(values: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return Two.forward(values)


def in_two(function: type[tg.Function], *values: Any) -> tg.Variable:
    first, constant, second = function.apply(dict(zip("abc", values)))
    return ops.join([second, constant, first], "+")


class Ruled(tg.Function):
    """A `vmap` rule of its own, made of operations on batches; what is said about the result is said to each value."""

    @staticmethod
    def forward(values: list[Any]) -> tg.Variable:
        return tg.Variable("/".join(map(str, values)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.primals_seen = len(inputs[0])

    @staticmethod
    def backward(ctx: Any, grad_out: tg.Variable) -> Any:
        return ([grad_out] * ctx.primals_seen,)

    @staticmethod
    def vmap(info: Any, in_dims: Any, values: list[Any]) -> Any:
        assert {dim for dims in in_dims if dims is not None for dim in dims} <= {0, None}
        return ops.join(values, "/"), 0

    @staticmethod
    def jvp(ctx: Any, edits: list[Any]) -> Any:
        return ops.join([edit for edit in edits if edit is not None], "; ")


def chat(first: Any, *rest: Any) -> tg.Variable:
    parts = [{"role": "user", "content": [part, " {slot}"]} for part in rest]
    messages = [{"role": "system", "content": first}, *parts]
    return ops.chat_completion(None, messages, {"slot": rest[-1]} if rest else None)


def ask(first: Any, *rest: Any) -> tg.Variable:
    """With a template that is computed, and a part that is no text."""
    image = {"type": "image_url", "image_url": {"url": rest[-1]}}
    messages = [
        {"role": "system", "content": [ops.join([first, *rest, " {slot}"])]},
        {"role": "user", "content": [image, *rest]},
    ]
    return ops.chat_completion(None, messages, {"slot": first})


def pieces(*values: Any) -> tg.Variable:
    """Split where they were joined, so that there are as many pieces for every example."""
    return ops.join([piece + "." for piece in reversed(ops.split(ops.join(values, "|"), "|"))], "+")


def entries(answer: Any, prompt: Any, text: Any) -> tg.Variable:
    """A batch inside each example."""
    messages = [{"role": "system", "content": [prompt]}, {"role": "user", "content": "{x}"}]
    return ops.join([ops.chat_completion(None, messages, {"x": [ops.join([answer, text, prompt]), text]}), prompt], "+")


OPERATIONS = {
    "add": lambda first, second="!", *_: ops.add(first, second),
    "join": lambda *values: ops.join(values, "+"),
    "sum": lambda *values: ops.sum(values),
    "format": lambda *values: ops.format("{a}{b}{c}"[: 3 * len(values)], **dict(zip("abc", values))),
    "chat": chat,
    "ask": ask,
    "own": lambda *values: Own.apply(list(values)),
    "own, later": lambda *values: Later.apply(list(values)),
    "pieces": pieces,
    "template": lambda *values: ops.format(ops.join([*values, "{a}"]), a=ops.join(values)),
    "two": functools.partial(in_two, Two),
    "two, later": functools.partial(in_two, TwoLater),
}
ON_BOTH = ("chat", "ask", "own", "own, later", "two", "two, later")
FINISHES = {"ruled": lambda *values: Ruled.apply(list(values)), "entries": entries}
JUDGE = [{"role": "user", "content": "Is {prediction} as good as {target}?"}]
LOSSES = {
    "exact": lambda answer, target: ops.exact_match_evaluator(answer, target)[0],
    "explained": lambda answer, target: ops.exact_match_evaluator(answer, target)[1],
    "metric": lambda answer, target: ops.deterministic_evaluator(answer, target, closeness, "closeness")[0],
    "judge": lambda answer, target: ops.judge(answer, "Is it right?", target=target)[0],
    "criticism": lambda answer, target: ops.text_loss(answer, "What is wrong?", target=target),
    "judge in words": lambda answer, target: ops.lm_judge_evaluator(None, JUDGE, answer, target, success_fn=bool)[0],
}


def closeness(answer: str, target: str) -> float:
    return float(digest(answer)[0] == digest(target)[0])


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def answer(request: Any) -> Any:
    """Answers a few words, and a critic with nothing to say now and then: all by the digest of what was asked."""
    seen = digest("\0".join(message.text for message in request.messages))
    wanted = request.config.response_format
    if wanted is None:
        return "abcd"[int(seen[0], 16) % 4]

    def fill(schema: Any, key: str) -> Any:
        if schema["type"] == "object":
            return {name: fill(below, name) for name, below in schema["properties"].items()}
        if schema["type"] == "number":
            return int(seen[1], 16) % 2
        if schema["type"] == "boolean":
            return int(seen[2], 16) < 2
        return "" if int(digest(seen + key)[0], 16) < 4 else f"{key} {seen[:6]}"

    return fill(wanted.json_schema, wanted.name)


@st.composite
def programs(draw: Any) -> Program:
    steps = []
    for number in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(sorted(OPERATIONS)))
        inputs = draw(st.lists(st.integers(0, number + 2), min_size=1, max_size=3))
        if kind in ON_BOTH:  # see NOTE [Shared parts]
            inputs = draw(st.permutations([0, 1, inputs[0]]))
        inputs = inputs[:2] if kind == "add" else inputs
        steps.append(Step(kind, tuple(inputs)))
    last = draw(st.integers(3, len(steps) + 2))
    finish = draw(st.sampled_from(["", "", "", *sorted(FINISHES)]))
    return Program(tuple(steps), draw(st.sampled_from(sorted(LOSSES))), last, finish)


examples = st.lists(st.tuples(st.sampled_from(["x", "y", "z"]), st.sampled_from("abc")), min_size=1, max_size=4)


class Asked:
    """Runs something with a model of its own, and keeps what was asked."""

    def __init__(self, work: Any) -> None:
        model = FunctionModel(answer)
        with tg.use_models(forward=model):
            self.result = read(work())
        self.requests = sorted({(r.purpose, *[m.text for m in r.messages]) for r in model.requests})


def read(tree: Any) -> Any:
    """The values as plain data; a gradient as the texts of its items."""
    return pytree.map_leaves(lambda v: v.data if isinstance(v, tg.Variable) else v, tree)


def items(gradient: Any, ordered: bool = True) -> Any:
    """The texts of the items of each gradient in a tree of them."""

    def texts(value: Any) -> Any:
        found = [item.data for item in value.grad]
        return found if ordered else sorted(found)

    return pytree.map_leaves(lambda v: texts(v) if isinstance(v, tg.Variable) else v, gradient)


def leaf(text: str) -> tg.Variable:
    return tg.Variable(text, requires_grad=True)


def columns(rows: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    texts, targets = zip(*rows)
    return list(texts), list(targets)


@FEW
@given(programs(), examples)
def test_grad_of_vmap_is_grad_of_the_loop(program: Program, rows: list[tuple[str, str]]) -> None:
    """Feedback by feedback, in order, on the shared prompt and on every text; and the same questions are asked."""
    texts, targets = columns(rows)

    batch = func.vmap(program, in_dims=(None, 0, 0))

    def mapped(prompt: Any, texts: Any) -> Any:
        return ops.sum([batch(prompt, texts, targets)])

    def looped(prompt: Any, texts: Any) -> Any:
        return ops.sum([program(prompt, text, target) for text, target in zip(texts, targets)])

    def at_once(loss: Any) -> Any:
        gradient, value = func.grad_and_value(loss, argnums=(0, 1))("P", texts)
        read(value)  # all that is asked for it has been asked then
        return items(gradient, ordered)

    def from_each(losses: Any) -> Any:
        """A sum of texts is no loss: where the losses are texts, a pass begins at each."""
        prompt, leaves = leaf("P"), [leaf(text) for text in texts]
        roots = losses(prompt, leaves)
        if program.uses(0) or program.uses(1):
            tg.backward(roots)
        read(roots)
        return items((prompt, leaves), ordered)

    ordered = not program.shares(1)
    if program.evaluator in ("explained", "criticism"):
        one = Asked(lambda: from_each(lambda p, xs: batch(p, xs, targets)))
        other = Asked(lambda: from_each(lambda p, xs: [program(p, x, target) for x, target in zip(xs, targets)]))
    else:
        one, other = Asked(lambda: at_once(mapped)), Asked(lambda: at_once(looped))
    assert one.result == other.result
    assert one.requests == other.requests


@FEW
@given(programs(), examples)
def test_vmap_of_grad_is_the_list_of_grads(program: Program, rows: list[tuple[str, str]]) -> None:
    """Text by text, and the same questions are asked."""
    texts, targets = columns(rows)
    one_by_one = func.grad_and_value(program, argnums=(0, 1))
    together = Asked(lambda: func.vmap(one_by_one, in_dims=(None, 0, 0))("P", texts, targets))
    apart = Asked(lambda: [one_by_one("P", text, target) for text, target in zip(texts, targets)])
    (on_prompt, on_text), values = together.result
    assert list(zip(zip(on_prompt, on_text), values)) == apart.result
    assert together.requests == apart.requests


UNLIKE = (
    Program((Step("chat", (0, 1, 0)), Step("add", (0,)), Step("add", (0, 3))), "exact", 5),
    Program((Step("chat", (0, 1, 0)), Step("add", (1,)), Step("add", (4, 3))), "exact", 5),
)
"""Programs whose critic says something to different inputs of these two examples."""


def feedback_on_feedback(program: Program) -> Any:
    """What is said about the feedback on prompt and text, on the prompt and on the text; and what is said about it."""

    def second(prompt: Any, text: Any, target: Any) -> tg.Variable:
        on_prompt, on_text = func.grad(program, argnums=(0, 1))(prompt, text, target)
        return ops.text_loss(ops.join([on_prompt, on_text], "; "), "Is it concrete?")

    def one(prompt: Any, text: Any, target: Any) -> Any:
        (on_prompt, on_text), value = func.grad_and_value(second, argnums=(0, 1))(prompt, text, target)
        return on_prompt, on_text, value  # to be read: then all that is asked has been asked

    return one


@FEW
@given(programs(), examples)
@example(UNLIKE[0], [("x", "a"), ("x", "b")])
@example(UNLIKE[1], [("x", "a"), ("x", "b")])
def test_vmap_of_feedback_on_feedback_is_the_list(program: Program, rows: list[tuple[str, str]]) -> None:
    """Also where a level above the batch records what the rules compute."""
    texts, targets = columns(rows)

    one_by_one = feedback_on_feedback(program)
    together = Asked(lambda: func.vmap(one_by_one, in_dims=(None, 0, 0))("P", texts, targets))
    apart = Asked(lambda: [one_by_one("P", text, target) for text, target in zip(texts, targets)])
    assert list(zip(*together.result)) == apart.result
    assert together.requests == apart.requests


@settings(FEW, max_examples=10)
@given(programs(), examples)
@example(UNLIKE[0], [("x", "a"), ("x", "b")])
@example(UNLIKE[1], [("x", "a"), ("x", "b")])
def test_vmap_of_vmap_of_feedback_on_feedback_is_two_loops(program: Program, rows: list[tuple[str, str]]) -> None:
    """Each pair of a prompt and an example has the order that it has alone, in both orders of nesting."""
    texts, targets = columns(rows)
    one = feedback_on_feedback(program)
    inner, outer = func.vmap(one, in_dims=(None, 0, 0)), func.vmap(one, in_dims=(0, None, None))
    prompts = ["P", "Q"]
    loops = Asked(lambda: [[one(prompt, text, target) for text, target in rows] for prompt in prompts])
    by_prompt = Asked(lambda: func.vmap(inner, in_dims=(0, None, None))(prompts, texts, targets))
    by_example = Asked(lambda: func.vmap(outer, in_dims=(None, 0, 0))(prompts, texts, targets))
    for part in range(3):
        expected = [[pair[part] for pair in row] for row in loops.result]
        assert by_prompt.result[part] == expected
        assert [list(row) for row in zip(*by_example.result[part])] == expected


@FEW
@example(Program((Step("ask", (0, 0, 1)),), "criticism", 3), [("x", "a")], ["P"])
@example(Program((Step("ask", (0, 1, 0)), Step("add", (1, 3)), Step("add", (0,))), "criticism", 4), [("x", "a")], ["P"])
@given(programs(), examples, st.lists(st.sampled_from("PQR"), min_size=1, max_size=3))
def test_two_levels_of_vmap_are_two_loops(program: Program, rows: list[tuple[str, str]], prompts: list[str]) -> None:
    """In both orders of nesting, each the other's transpose; feedback on each prompt comes in the loop's order.

    In a loop over Variables, as the texts of a batch are.
    """
    texts, targets = columns(rows)
    by_example = func.vmap(program, in_dims=(None, 0, 0))
    by_prompt = func.vmap(program, in_dims=(0, None, None))
    rows_first = Asked(lambda: func.vmap(by_example, in_dims=(0, None, None))(prompts, texts, targets))
    columns_first = Asked(lambda: func.vmap(by_prompt, in_dims=(None, 0, 0))(prompts, texts, targets))
    loops = Asked(lambda: [[program(p, text, target) for text, target in rows] for p in prompts])
    assert rows_first.result == loops.result
    assert [list(row) for row in zip(*columns_first.result)] == loops.result
    assert rows_first.requests == columns_first.requests

    def feedback(matrix: Any) -> Any:
        leaves = [leaf(prompt) for prompt in prompts]
        roots = matrix(leaves)
        read(roots)
        if program.uses(0):
            tg.backward(roots)
        return items(leaves, not program.shares(0) and not program.shares(1))

    mapped = Asked(lambda: feedback(lambda p: [func.vmap(by_example, in_dims=(0, None, None))(p, texts, targets)]))
    each = [(tg.Variable(text), target) for text, target in rows]
    looped = Asked(lambda: feedback(lambda p: [program(q, text, target) for q in p for text, target in each]))
    assert mapped.result == looped.result
    assert mapped.requests == looped.requests


@FEW
@example(Program((Step("ask", (0, 1, 0)), Step("add", (1, 3))), "criticism", 4), [("x", "a")])
@given(programs(), examples)
def test_jacrev_of_vmap_is_the_list_of_grads(program: Program, rows: list[tuple[str, str]]) -> None:
    """What each example alone says of the shared prompt; its text is a Variable, as one of a batch is."""
    if program.finish == "entries" and program.evaluator in ("explained", "criticism"):
        return  # a batch of texts inside each example: every entry has a row of its own
    texts, targets = columns(rows)
    ordered = not program.shares(1)
    jacobian = func.jacrev(func.vmap(program, in_dims=(None, 0, 0)))
    table = Asked(lambda: items(jacobian("P", texts, targets), ordered))
    each = [(tg.Variable(text), target) for text, target in rows]
    alone = Asked(lambda: [items(func.grad(program)("P", text, target), ordered) for text, target in each])
    assert table.result == alone.result


@FEW
@given(programs(), examples, st.sampled_from(["", "becomes Q"]))
def test_jvp_of_vmap_is_the_list_of_jvps(program: Program, rows: list[tuple[str, str]], edit: str) -> None:
    """The value and its change, example by example; and vmap of jvp is the same."""
    if program.finish:
        return  # a batch is not evaluated again, and a rule for batches goes forward by the rules of its operations
    texts, targets = columns(rows)

    def changed(text: Any, target: Any) -> Any:
        return func.jvp(lambda p, x: program(p, x, target), ("P", text), (edit, "longer"))

    whole = func.vmap(program, in_dims=(None, 0, 0))
    outside = Asked(lambda: func.jvp(lambda p, x: whole(p, x, targets), ("P", texts), (edit, ["longer"] * len(texts))))
    inside = Asked(lambda: func.vmap(changed)(texts, targets))
    apart = Asked(lambda: [changed(text, target) for text, target in rows])
    expected = [list(column) for column in zip(*apart.result)]
    assert [every(part, len(rows)) for part in outside.result] == expected
    assert [every(part, len(rows)) for part in inside.result] == expected
    assert outside.requests == inside.requests == apart.requests


def every(change: Any, size: int) -> Any:
    """A change that is nowhere is one empty text."""
    return [change] * size if change == "" else change


@FEW
@example(
    Program((Step("add", (0,)), Step("add", (0,)), Step("ask", (0, 1, 0)), Step("add", (0,))), "criticism", 5),
    [("y", "a")],
)
@given(programs(), examples)
def test_two_tapes_are_one_tape_with_create_graph(program: Program, rows: list[tuple[str, str]]) -> None:
    """Feedback on feedback is the same, item by item, and costs the same questions."""
    if not program.uses(0):
        return

    def losses(prompt: Any) -> Any:
        return [program(prompt, text, target) for text, target in rows]

    def criticism(gradient: Any) -> tg.Variable:
        return ops.text_loss(gradient, "Is it concrete?")

    def by_levels() -> Any:
        def second(prompt: Any) -> Any:
            values, pull = func.vjp(lambda p: tuple(losses(p)), prompt)
            return criticism(pull(*[None] * len(rows))[0]), values

        gradient, (value, values) = func.grad_and_value(second, has_aux=True)("P")
        return items(gradient), value, values

    def by_one_tape() -> Any:
        prompt = leaf("P")
        values = tuple(losses(prompt))
        (found,) = tg.autograd.grad(values, prompt, create_graph=True)
        assert found is not None
        gradient = found[0] if len(found) == 1 else combine(found) if found else tg.Variable("")
        value = criticism(gradient)
        if value.requires_grad:
            value.backward()
        return items(prompt), value, values

    two, one = Asked(by_levels), Asked(by_one_tape)
    assert two.result == one.result
    assert two.requests == one.requests
