from __future__ import annotations

import asyncio
import sys
from typing import Any, ClassVar

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn, ops, pytree
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.autograd.graph import Node
from textgrad_engine.autograd.layers import LAYERS
from textgrad_engine.errors import AutogradError
from textgrad_engine.func.split import BatchSplit
from textgrad_engine.testing import FunctionModel

TEXTS, TARGETS = ["abc", "xyz", "q"], ["cba", "z", "r"]


def matches(text: Any, target: Any = "right") -> tg.Variable:
    return ops.exact_match_evaluator(text, target)[0]


class Reverse(tg.Function):
    """All its code reads data, as most rules do; `ran` is for what its backward rule was given."""

    ran: ClassVar[list[Any]] = []

    @staticmethod
    def forward(text: Any) -> tg.Variable:
        return tg.Variable(text.data[::-1], role="reversed")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        (text,) = inputs
        ctx.save_for_backward(text, text.data.upper(), output)
        ctx.length = len(text.data)

    @staticmethod
    def backward(ctx: Any, grad_out: tg.Variable) -> Any:
        text, upper, output = ctx.saved_variables
        Reverse.ran.append(grad_out.data)
        return f"{text.data} {upper} {output.data} {ctx.length} {grad_out.data}"


class Later(Reverse):
    """The same, dispatched; its forward and its rule run on the event loop."""

    @staticmethod
    async def forward(text: Any) -> tg.Variable:
        await asyncio.sleep(0)
        return Reverse.forward(text)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs, "", output)
        ctx.length = 0

    @staticmethod
    async def backward(ctx: Any, grad_out: tg.Variable) -> Any:
        await asyncio.sleep(0)
        return Reverse.backward(ctx, grad_out)


class Batched(Reverse):
    """Its forward has a rule of its own for whole batches."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, text: Any) -> Any:
        return tg.Variable([entry[::-1] for entry in text.data], role="reversed"), 0


@pytest.fixture(autouse=True)
def nothing_has_run() -> None:
    Reverse.ran.clear()


EVERY = pytest.mark.parametrize("function", [Reverse, Later, Batched])


def test_a_forward_that_takes_a_ctx_is_refused_in_a_batch_of_gradients_too() -> None:
    """The older style cannot be run apart from its context; the repair is named."""

    class OldStyle(tg.Function):
        @staticmethod
        def forward(ctx: Any, text: Any) -> tg.Variable:
            return tg.Variable(text.data)

        backward = Reverse.backward

    with pytest.raises(AutogradError, match=r"OldStyle.*setup_context\(ctx, inputs, output\)"):
        func.vmap(func.grad(lambda text: matches(OldStyle.apply(text))))(["a", "b"])


def test_a_rule_that_fails_for_one_example_fails_the_batch() -> None:
    """With its own error, whether it is plain or asynchronous."""

    class Breaks(Reverse):
        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable) -> Any:
            raise KeyError(ctx.saved_variables[0].data)

    class BreaksLater(Later):
        backward = Breaks.backward

    for function in (Breaks, BreaksLater):
        with pytest.raises(KeyError, match="xyz"):
            func.vmap(func.grad(lambda text: matches(function.apply(text), "cba")))(TEXTS)  # noqa: B023


@pytest.mark.parametrize("returned", [(1, 2), "ab", None])
def test_a_wrong_number_of_gradients_is_named_as_without_vmap(returned: Any) -> None:
    """The checks of a rule's result are those of a single call."""

    class Wrong(Reverse):
        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable) -> Any:
            return returned, "one too many"

    with pytest.raises(AutogradError, match=r"Wrong\.backward returned 2 gradients, expected 1"):
        func.vmap(func.grad(lambda text: matches(Wrong.apply(text))))(["a", "b"])


def test_a_forward_that_fails_fails_the_gradients_of_its_batch() -> None:
    """Before any rule has run: what is waited for is the whole batch."""

    class Fails(Later):
        @staticmethod
        async def forward(text: Any) -> tg.Variable:
            if text.data == "xyz":
                raise KeyError("no xyz")
            return tg.Variable("x")

    with pytest.raises(KeyError, match="no xyz"):
        func.vmap(lambda text: func.vjp(Fails.apply, text)[1]("words")[0])(TEXTS)
    with pytest.raises(KeyError, match="no xyz"):
        func.vmap(func.grad(lambda text: matches(Fails.apply(text))))(TEXTS)
    assert Reverse.ran == []


def test_a_pullback_kept_beyond_its_vmap_says_so() -> None:
    """Its contexts are one for each example, and there are no examples any more."""
    kept = []

    def program(text: Any) -> tg.Variable:
        out, pull = func.vjp(Reverse.apply, text)
        kept.append(pull)
        return out

    func.vmap(program)(TEXTS)
    with pytest.raises(AutogradError, match="made inside vmap, and its feedback is asked for after vmap ended"):
        kept[0]("words")


@EVERY
def test_rules_that_read_data_run_once_for_each_example(function: type[Reverse]) -> None:
    """As the loop does it, text for text; who has nothing to hear is not asked, and is a true zero."""
    gradient = func.grad(lambda text, target: matches(function.apply(text), target))
    alone = [gradient(text, target).data for text, target in zip(TEXTS, TARGETS)]
    assert alone[0] == ""
    assert all(text in said for text, said in zip(TEXTS[1:], alone[1:]))
    Reverse.ran.clear()
    assert func.vmap(gradient)(TEXTS, TARGETS).data == alone
    assert len(Reverse.ran) == 2


class Marks(tg.Function):
    """Two outputs; those that begin with its letters are marked."""

    @staticmethod
    def forward(text: Any) -> Any:
        return tg.Variable("1" + text.data), tg.Variable("2" + text.data)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(*[out for out, letter in zip(output, "ab") if letter in inputs[0].data])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return [part for grad in grads for part in grad.grad]


@pytest.mark.parametrize("outer", [False, True])
def test_an_output_that_one_example_marks_hears_nothing_there(outer: bool) -> None:
    """As in the loop: the others hear what is said about it, and an output that all mark is not recorded."""

    def loss(text: Any) -> tg.Variable:
        return matches(ops.join(list(Marks.apply(text)), "|"))

    def pulled(text: Any) -> Any:
        return func.vjp(lambda text: Marks.apply(text), text)[1]("one", "two")[0]

    texts = ["a", "b", "ab", "-"]
    for gradient in (func.grad(loss), pulled):
        alone = [gradient(text).data for text in texts]
        together = func.vmap(func.vmap(gradient))([texts]).data[0] if outer else func.vmap(gradient)(texts).data
        assert together == alone
        assert [bool(said) for said in alone] == [True, True, False, True]


@EVERY
def test_rules_in_chunks_and_in_two_levels_of_batches(function: type[Reverse]) -> None:
    """Nothing changes with the shape of the batch."""
    gradient = func.grad(lambda text, target: matches(function.apply(text), target))
    alone = [[gradient(text, target).data for text in TEXTS] for target in TARGETS]
    rows = func.vmap(func.vmap(gradient, in_dims=(0, None)), in_dims=(None, 0))
    assert rows(TEXTS, TARGETS).data == alone
    columns = func.vmap(func.vmap(gradient, in_dims=(None, 0)), in_dims=(0, None), chunk_size=2)
    assert [list(row) for row in zip(*columns(TEXTS, TARGETS).data)] == alone


@EVERY
def test_a_shared_leaf_hears_from_each_example(function: type[Reverse]) -> None:
    """Where the argument is the same for all, the feedback on it is one for each."""
    gradient = func.grad(lambda text, target: matches(function.apply(text), target))
    batch = func.vmap(gradient, in_dims=(None, 0))("abc", TARGETS)
    assert batch.data == [gradient("abc", target).data for target in TARGETS]


class Talks(Reverse):
    """Says as much as its text is long, piece by piece."""

    @staticmethod
    def backward(ctx: Any, grad_out: tg.Variable) -> Any:
        text = ctx.saved_variables[0].data
        return [f"{letter} of {text}" for letter in text] or None


def test_examples_may_be_given_different_numbers_of_items() -> None:
    """Each example keeps its own, in order."""

    def items(text: Any) -> Any:
        return func.vjp(Talks.apply, text)[1]("words")[0]

    batch = func.vmap(items)(["ab", "", "c"])
    assert batch.data == [items(text).data for text in ["ab", "", "c"]] == ["a of ab\nb of ab", "", "c of c"]


def test_the_start_of_a_pass_may_go_on_for_some_examples_only() -> None:
    """A rule that hands its gradient on, depending on data, hands on the start of a pass where there are no words."""

    class Gate(Reverse):
        @staticmethod
        def forward(score: Any) -> tg.Variable:
            return tg.Variable(score.data)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable) -> Any:
            return grad_out if ctx.saved_variables[0].data == 0 else None

    def loss(text: Any) -> tg.Variable:
        return ops.sum([Gate.apply(matches(text, "a")), matches(text + "!", "b!")])

    def twice(text: Any) -> tg.Variable:
        return ops.sum([loss(text), Gate.apply(Gate.apply(matches(text, "b")))])

    for program in (loss, twice):
        alone = [[item.data for item in func.grad(program)(text).grad] for text in ("a", "b", "c")]
        assert [len(items) for items in alone] == ([1, 1, 2] if program is loss else [2, 1, 3])
        assert func.vmap(func.grad(program))(["a", "b", "c"]).data == ["\n".join(items) for items in alone]


def test_variables_in_containers_and_in_attributes_are_those_of_the_example() -> None:
    """A context may keep its arguments as they are."""

    class Nested(tg.Function):
        @staticmethod
        def forward(parts: Any) -> tg.Variable:
            return tg.Variable(f"{parts['a']}{parts['b'][0]}")

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.parts = inputs[0]

        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable) -> Any:
            return ({"a": f"{ctx.parts['a']}: {grad_out}", "b": (f"{ctx.parts['b'][0]}: {grad_out}",)},)

    def pulled(a: Any, b: Any) -> Any:
        return func.vjp(lambda parts: Nested.apply(parts), {"a": a, "b": (b,)})[1]("words")[0]

    batch = func.vmap(pulled)(["a1", "a2"], ["b1", "b2"])
    assert batch["a"].data == ["a1: words", "a2: words"]
    assert batch["b"][0].data == ["b1: words", "b2: words"]


def test_marks_and_needs_are_those_of_the_call() -> None:
    """An output that no example differentiates has no history; one that some do has."""

    class Two(tg.Function):
        @staticmethod
        def forward(text: Any) -> Any:
            return tg.Variable(text.data), tg.Variable(len(text.data))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(*output[1:], *([output[0]] if inputs[0].data == "no" else []))
            ctx.text = inputs[0]

        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable, nothing: None) -> Any:
            assert nothing is None
            return f"{ctx.text}: {grad_out}"

    seen = []

    def pulled(text: Any) -> Any:
        def program(text: Any) -> Any:
            out, length = Two.apply(text)
            seen.append((out.requires_grad, length.requires_grad))
            return out

        return func.vjp(program, text)[1]("words")[0]

    assert func.vmap(pulled)(["a", "no"]).data == ["a: words", ""]
    assert func.vmap(pulled)(["no", "no"]).data == ["", ""]
    assert seen == [(True, False), (False, False)]


class Quotes(Reverse):
    """Its rule reads data, and what it says is made by operations, so that it can be differentiated."""

    @staticmethod
    def backward(ctx: Any, grad_out: tg.Variable) -> Any:
        text, _, output = ctx.saved_variables
        return ops.join([f"{len(text.data)} ", text, " gave ", output, f" ({grad_out.data[:3]}): ", grad_out])


class QuotesLater(Later):
    @staticmethod
    async def backward(ctx: Any, grad_out: tg.Variable) -> Any:
        await asyncio.sleep(0)
        return Quotes.backward(ctx, grad_out)


@pytest.mark.parametrize("function", [Quotes, QuotesLater])
def test_feedback_on_feedback_in_a_batch(function: type[Reverse]) -> None:
    """A level above the batch records what the rule does for each example."""

    def second(text: Any, target: Any) -> tg.Variable:
        return matches(func.grad(lambda draft: matches(function.apply(draft), target))(text), "")

    gradient = func.grad(second)
    alone = [gradient(text, target) for text, target in zip(TEXTS, TARGETS)]
    assert [len(one.grad) for one in alone] == [0, 2, 2]  # as the rule quotes it, and as it was reversed
    assert func.vmap(gradient)(TEXTS, TARGETS).data == [one.data for one in alone]
    by_target = func.vmap(func.vmap(gradient, in_dims=(0, None)), in_dims=(None, 0))(TEXTS, TARGETS)
    assert by_target.data == [[gradient(text, target).data for text in TEXTS] for target in TARGETS]
    once_more = func.grad(lambda text, target: matches(gradient(text, target), ""))
    assert func.vmap(once_more)(TEXTS, TARGETS).data == [once_more(*pair).data for pair in zip(TEXTS, TARGETS)]


def test_feedback_on_a_batch_of_feedback() -> None:
    """A level below the batch records each example by itself."""
    gradient = func.grad(lambda text: matches(Quotes.apply(text)))

    def batch(texts: Any) -> tg.Variable:
        return ops.sum([func.vmap(lambda text: matches(gradient(text), ""))(texts)])

    def loop(texts: Any) -> tg.Variable:
        return ops.sum([matches(gradient(text), "") for text in texts])

    texts = [tg.Variable(text) for text in TEXTS]
    mapped, looped = func.grad(batch)(texts), func.grad(loop)(texts)
    assert [one.data for one in mapped] == [one.data for one in looped]
    assert all(one.data for one in looped)


def test_items_of_different_examples_share_a_batch() -> None:
    """What is said to one example and to the next is one item of feedback on the batch, however many there are."""

    def second(text: Any) -> tg.Variable:
        return matches(func.grad(lambda draft: matches(Quotes.apply(Quotes.apply(draft))))(text), "")

    counts = []

    def counted(text: Any) -> tg.Variable:
        gradient = func.grad(second)(text)
        counts.append(len(gradient.grad))
        return gradient

    for size in (1, 2, 5):
        func.vmap(counted)([f"text {number}" for number in range(size)])
    assert counts[0] == counts[1] == counts[2] > 1


def test_the_graph_of_feedback_on_feedback_grows_with_the_batch_and_no_faster() -> None:
    """Taking a value apart for each example is one operation, not one for each."""
    sizes = []

    def second(text: Any) -> tg.Variable:
        loss = matches(func.grad(lambda draft: matches(Quotes.apply(Quotes.apply(draft))))(text), "")
        todo: list[Node] = [loss.grad_fn]
        seen = set(todo)
        while todo:
            for edge in todo.pop().edges:
                if edge is not None and edge.node not in seen:
                    seen.add(edge.node)
                    todo.append(edge.node)
        sizes.append(sum(node.num_outputs for node in seen))
        return loss

    for count in (10, 20, 40):
        func.vmap(func.grad(second))([f"text {number}" for number in range(count)])
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


def test_the_work_of_feedback_on_feedback_grows_with_the_batch_and_no_faster() -> None:
    """Of what was done for one example only that one is asked, and a batch in which one hears something is sparse."""
    steps = []

    def second(text: Any) -> tg.Variable:
        return matches(func.grad(lambda draft: matches(Quotes.apply(Quotes.apply(draft))))(text), "")

    for count in (10, 20, 40):
        called = 0

        def count_call(frame: Any, event: str, arg: object) -> None:
            nonlocal called
            called += event == "call"

        sys.setprofile(count_call)
        try:
            func.vmap(func.grad(second))([f"text {number}" for number in range(count)])
        finally:
            sys.setprofile(None)
        steps.append(called)
    assert steps[2] - steps[1] < 2.2 * (steps[1] - steps[0])


def test_a_value_that_a_rule_closes_over_is_that_of_the_example(model: FunctionModel, loss: Any) -> None:
    """Many critics at once, each tuned by what is said of the feedback that it gave."""

    def criticism(critic: Any, prompt: Any) -> tg.Variable:
        with ops.critic(critic):
            gradient = func.grad(lambda p: loss(p, "x", "y"))(prompt)
        return ops.text_loss(gradient, "Is it concrete?")

    gradient = func.grad(criticism, argnums=(0, 1))
    critics, prompts = ["C", "D", "E"], ["P", "Q", "P"]
    alone = [[value.data for value in gradient(critic, prompt)] for critic, prompt in zip(critics, prompts)]
    asked = sorted(request.messages[-1].text for request in model.requests)
    model.requests.clear()
    on_critics, on_prompts = func.vmap(gradient)(critics, prompts)
    assert [list(pair) for pair in zip(on_critics.data, on_prompts.data)] == alone
    assert len({said for pair in alone for said in pair}) == 6
    assert sorted(request.messages[-1].text for request in model.requests) == asked


def test_feedback_that_may_not_be_differentiated_says_so_in_a_batch() -> None:
    """once_differentiable holds for each example."""

    class Once(Reverse):
        @staticmethod
        @tg.autograd.once_differentiable
        def backward(ctx: Any, grad_out: tg.Variable) -> Any:
            return f"once: {grad_out.data}"

    gradient = func.grad(lambda text: matches(Once.apply(text)))
    assert [text[:5] for text in func.vmap(gradient)(["a", "thgir"]).data] == ["once:", ""]
    with pytest.raises(AutogradError, match=r"Once.backward cannot be differentiated"):
        func.vmap(func.grad(lambda text: matches(gradient(text), "")))(["a", "b"])


def test_calls_of_one_example_share_a_question_of_the_critic(model: FunctionModel) -> None:
    """feedback_batch_size counts within an example; those with nothing to hear are not in the question."""

    program = nn.ChatCompletion("{text}", system=nn.Parameter("P"))

    def loss(prompt: Any, first: Any, second: Any) -> tg.Variable:
        def answer(text: Any) -> Any:
            return func.functional_call(program, {"system": prompt}, text=text)

        return ops.sum([matches(answer(first), "A"), matches(answer(second), "B")])

    def asked(work: Any) -> tuple[Any, list[str]]:
        model.requests.clear()
        with ops.feedback_batch_size(2):
            result = work()
        return result, sorted(r.messages[-1].text for r in model.requests if r.purpose == "backward")

    gradient = func.grad(loss)
    pairs = [("x", "y"), ("a", "y"), ("a", "b")]
    alone = asked(lambda: [gradient("P", *pair).data for pair in pairs])
    together = asked(lambda: func.vmap(gradient, in_dims=(None, 0, 0))("P", *map(list, zip(*pairs))).data)
    assert alone == together
    assert ["case_2" in text for text in sorted(alone[1], key=len)] == [False, True]


def test_a_rule_samples_for_its_example(model: FunctionModel) -> None:
    """What the user said about chance holds for the questions of a rule, too."""

    class Asks(Reverse):
        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable) -> Any:
            message = {"role": "user", "content": ["why?"]}
            return ops.chat_completion(None, [message], purpose="backward", temperature=1.0, seed=7)

    gradient = func.grad(lambda text: matches(Asks.apply(text)))

    def seeds(randomness: Any, texts: Any = ("a", "b")) -> list[int | None]:
        model.requests.clear()
        func.vmap(gradient, randomness=randomness)(list(texts))
        return sorted(request.config.seed for request in model.requests)

    assert seeds("different") == [7, 8]
    assert seeds("same") == [7, 7]
    with pytest.raises(AutogradError, match="ChatCompletion samples its answers, and randomness='error'"):
        seeds("error")


def test_a_rule_samples_as_a_call_in_its_place_would(model: FunctionModel) -> None:
    """In chunks and in two levels of batches, each pair of examples has the number that it has forward."""

    def ask(text: Any) -> tg.Variable:
        return ops.chat_completion(None, [{"role": "user", "content": ["why ", text]}], temperature=1.0, seed=7)

    class Asks(Reverse):
        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable) -> Any:
            return ask(ctx.saved_variables[0])

    def seeds(function: Any, outer: Any, inner: Any) -> dict[str, int | None]:
        model.requests.clear()
        batch = func.vmap(func.vmap(function, randomness=inner), randomness=outer, chunk_size=1)
        assert batch([["a", "b"], ["c", "d"]]).data
        return {request.messages[0].text: request.config.seed for request in model.requests}

    in_rule = func.grad(lambda text: matches(Asks.apply(text)))
    for way in (("different", "different"), ("different", "same"), ("same", "different"), ("same", "same")):
        assert seeds(in_rule, *way) == seeds(ask, *way)


def test_feedback_knows_its_example_and_its_score(model: FunctionModel, chat: Any) -> None:
    """The record of where feedback came from is one for each example, numbered from the outermost batch."""
    seen = []

    class Looks(Reverse):
        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable) -> Any:
            seen.extend([(item.source.example, item.source.score, item.source.output) for item in grad_out.grad])
            return grad_out

    def loss(text: Any) -> tg.Variable:
        return ops.exact_match_evaluator(chat("P", Looks.apply(text)), "A")[0]

    func.vmap(func.vmap(func.grad(loss)))([["a", "b"], ["c", "d"]])
    assert sorted(seen) == [("[0][1]", 0.0, "B"), ("[1][0]", 0.0, "C"), ("[1][1]", 0.0, "D")]


def test_entries_of_a_batch_inside_an_example_are_named_behind_it(model: FunctionModel, chat: Any) -> None:
    """The example comes first, then the entry of its own batch."""
    prompt = nn.Parameter("P")
    texts = [tg.Variable(["a", "b"]), tg.Variable(["c", "d"])]
    answers = func.vmap(lambda text: chat(prompt, text))(texts)
    answers.backward([["one", "two"], ["three", "four"]])
    assert [item.source.example for item in prompt.grad] == ["[0][0]", "[0][1]", "[1][0]", "[1][1]"]


class Edits(Reverse):
    """A rule for edits that reads data."""

    @staticmethod
    def jvp(ctx: Any, edit: tg.Variable) -> Any:
        text, upper, output = ctx.saved_variables
        primal = ctx.primals[0].data
        return f"{primal} {text.data} {upper} {output.data}: {edit.data}" if edit.data else None


def test_rules_for_edits_run_once_for_each_example() -> None:
    """With the values and the edit of each; where nothing is edited, nothing changes."""

    def changed(text: Any, edit: Any) -> Any:
        return func.jvp(Edits.apply, (text,), (edit,))

    values = pytree.map_leaves(lambda v: v.data, func.vmap(changed)(TEXTS, ["longer", "", "x"]))
    alone = [pytree.map_leaves(lambda v: v.data, changed(*pair)) for pair in zip(TEXTS, ["longer", "", "x"])]
    assert values == tuple([list(column) for column in zip(*alone)])
    assert values[1][0] == "abc abc ABC cba: longer"
    assert func.vmap(lambda text: func.jvp(Edits.apply, (text,), ("all",))[1])(["a", "b"]).data == [
        "a a A a: all",
        "b b B b: all",
    ]


def test_a_wrong_number_of_changes_is_named_in_a_batch_too() -> None:
    """One for each output, or none."""

    class Wrong(Edits):
        @staticmethod
        def jvp(ctx: Any, edit: tg.Variable) -> Any:
            return 3

    with pytest.raises(AutogradError, match=r"Wrong\.jvp gives Variables, texts or None, got int 3"):
        func.vmap(lambda text: func.jvp(Wrong.apply, (text,), ("x",))[1])(["a"])


def test_words_of_one_example_and_the_start_of_another_stay_apart() -> None:
    """Where a rule says something to some examples and hands the start of the pass on to others, no words are lost."""

    class Says(Reverse):
        @staticmethod
        def forward(score: Any) -> tg.Variable:
            return tg.Variable(score.data)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable) -> Any:
            return grad_out if ctx.saved_variables[0].data else "words about the score"

    gradient = func.grad(Says.apply)
    assert [gradient(number).data for number in (0, 1)] == ["words about the score", ""]
    assert func.vmap(gradient)([0, 1]).data == func.vmap(func.grad(lambda n: Says.apply(n + 0)))([0, 1]).data
    assert func.vmap(gradient)([0, 1]).data == ["words about the score", ""]


def test_a_call_that_is_the_same_for_all_speaks_for_each_example() -> None:
    """Its rule runs for one example at a time, and what it says carries that one's name, counted over all chunks."""
    seen = []

    class Looks(Reverse):
        @staticmethod
        def backward(ctx: Any, grad_out: tg.Variable) -> Any:
            seen.extend([(item.source.node, item.source.example, EXAMPLE.get()) for item in grad_out.grad])
            return grad_out

    def loss(prompt: Any, text: Any) -> tg.Variable:
        shared = Reverse.apply(Looks.apply(prompt))
        return matches(ops.join([shared, text]), "z")

    func.vmap(func.grad(loss), in_dims=(None, 0), chunk_size=2)("P", ["a", "b", "c"])
    assert seen == [("ReverseBackward", f"[{number}]", f"[{number}]") for number in range(3)]


def test_a_value_that_was_edited_in_place_is_taken_apart_anew() -> None:
    """What a rule closes over is what it is now, not what it was when it was met before."""
    met: list[Any] = []

    def program(text: Any) -> tg.Variable:
        split, note = BatchSplit(LAYERS.get()[0]), text + "-"
        for added in ("", "!"):
            note += added
            met.append([part.data for part in split.parts(note)])
        return matches(note)

    func.vmap(func.grad(program))(["a", "b"])
    assert met == [["a-", "b-"], ["a-!", "b-!"]]
