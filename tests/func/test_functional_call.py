from __future__ import annotations

import asyncio
import copy
import threading
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn, ops
from textgrad_engine.errors import AutogradError
from textgrad_engine.testing import FunctionModel


class Step(nn.Module):
    def __init__(self, text: str, role: str) -> None:
        super().__init__()
        self.prompt = nn.Parameter(text, role=role)

    def forward(self, text: Any) -> tg.Variable:
        return ops.join([self.prompt, ": ", text])


class Program(nn.Module):
    """Two steps, one parameter that both sides know, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.ModuleList([Step("one", "first step"), Step("two", "second step")])
        self.tone = nn.Parameter("kind", role="tone")
        self.other = Step("unused", "none")
        self.other.prompt = self.tone
        self.register_buffer("suffix", tg.Variable("."))

    def forward(self, text: Any) -> tg.Variable:
        for step in self.steps:
            text = step(text)
        return ops.join([text, " ", self.tone, "=", self.other.prompt, self.suffix])


PLAIN = "two: one: x kind=kind."


def test_an_unknown_name_lists_the_known_ones() -> None:
    """Nothing runs, and nothing has changed."""
    program = Program()
    known = "steps.0.prompt, steps.1.prompt, tone, other.prompt, suffix"
    with pytest.raises(KeyError, match=r"Program has no parameter or buffer 'steps.2.prompt'; it has") as caught:
        func.functional_call(program, {"tone": "rude", "steps.2.prompt": "three"}, "x")
    assert set(str(caught.value).split("it has ")[1].strip("\"'").split(", ")) == set(known.split(", "))
    with pytest.raises(KeyError, match="it has none"):
        func.functional_call(nn.Module(), {"a": "b"})
    assert program("x").data == PLAIN


def test_only_modules_and_texts_are_taken() -> None:
    """The message names what came."""
    with pytest.raises(TypeError, match=r"functional_call takes an nn.Module, got function"):
        func.functional_call(lambda text: text, {}, "x")
    with pytest.raises(TypeError, match=r"'tone' is replaced by a Variable or a text, got int 3"):
        func.functional_call(Program(), {"tone": 3}, "x")  # type: ignore[dict-item]


def test_two_values_for_one_parameter_are_refused() -> None:
    """It has two names; nobody could tell which value counts."""
    with pytest.raises(KeyError, match=r"'tone' and 'other.prompt' are one parameter"):
        func.functional_call(Program(), {"tone": "a", "other.prompt": "b"}, "x")


@pytest.mark.parametrize("value", [tg.Variable("rude", requires_grad=True), "rude"])
def test_one_value_for_both_names_of_a_parameter(value: Any) -> None:
    """As in PyTorch: it is the same, whichever name counts."""
    both = func.functional_call(Program(), {"tone": value, "other.prompt": value}, "x")
    assert both.data == func.functional_call(Program(), {"tone": value}, "x").data == "two: one: x rude=rude."


def test_a_forward_that_would_run_after_the_call_is_refused() -> None:
    """It would run with the module's own values."""

    class Asynchronous(Program):
        async def forward(self, text: Any) -> tg.Variable:  # type: ignore[override]
            return ops.join([self.tone, text])

    class Generating(Program):
        def forward(self, text: Any) -> Any:
            yield ops.join([self.tone, text])

    message = r"functional_call: the result of {} would be computed after the call, .* own values: it is {}"
    with pytest.raises(
        AutogradError, match=message.format("Asynchronous", "a coroutine. Transforms and their twins take a plain def")
    ):
        func.functional_call(Asynchronous(), {"tone": "rude"}, "x")
    with pytest.raises(AutogradError, match=message.format("Generating", "generator")):
        func.functional_call(Generating(), {"tone": "rude"}, "x")


def test_the_module_is_as_it_was_after_an_exception() -> None:
    """Whatever forward raises."""
    program = Program()

    class Broken(Program):
        def forward(self, text: Any) -> tg.Variable:
            assert str(self.tone) == "rude"
            raise KeyError("mine")

    broken = Broken()
    with pytest.raises(KeyError, match="mine"):
        func.functional_call(broken, {"tone": "rude"}, "x")
    assert str(broken.tone) == "kind"
    assert program("x").data == PLAIN


def test_nested_names_are_replaced_for_this_call_only() -> None:
    """Parameters and buffers, as Variables or texts; state and parameters of the module stay its own."""
    program = Program()
    before = copy.deepcopy(program.state_dict())
    replaced = {"steps.0.prompt": "uno", "steps.1.prompt": tg.Variable("due"), "suffix": "!"}
    assert func.functional_call(program, replaced, "x").data == "due: uno: x kind=kind!"
    assert program("x").data == PLAIN
    assert program.state_dict() == before


def test_a_parameter_with_two_names_is_replaced_under_both() -> None:
    """By whichever name it is given."""
    for name in ("tone", "other.prompt"):
        assert func.functional_call(Program(), {name: "rude"}, "x").data == "two: one: x rude=rude."


def test_keyword_arguments_and_hooks_work_as_in_a_call() -> None:
    """It is a call of the module."""
    program = Program()
    program.register_forward_hook(lambda module, args, result: result + " (hooked)")
    assert func.functional_call(program, {"tone": "rude"}, text="x").data.endswith("rude=rude. (hooked)")


def test_calls_nest_and_the_inner_one_wins() -> None:
    """What only the outer one names stays replaced inside."""
    program = Program()

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = program

        def forward(self, text: Any) -> tg.Variable:
            replaced = func.functional_call(self.inner, {"suffix": "?"}, text)
            return ops.join([replaced, " / ", self.inner(text)])

    result = func.functional_call(Outer(), {"inner.tone": "rude", "inner.suffix": "!"}, "x")
    assert result.data == "two: one: x rude=rude? / two: one: x rude=rude!"


def test_feedback_reaches_the_value_and_not_the_parameter() -> None:
    """A leaf of the caller's collects it; the module's own stays empty."""
    program, candidate = Program(), nn.Parameter("rude", role="candidate")
    func.functional_call(program, {"tone": candidate}, "x").backward("softer")
    assert [item.data for item in candidate.grad] == ["softer", "softer"]
    assert program.tone.grad == []
    assert [item.data for item in program.steps[0].prompt.grad] == ["softer"]


def test_a_value_without_a_role_gets_that_of_the_parameter(model: FunctionModel) -> None:
    """The critic is told what it is for, whatever transform it comes from; a role of its own stays."""
    program = nn.ChatCompletion("{x}", system=nn.Parameter("P", role="system prompt"))
    exact = lambda p: ops.exact_match_evaluator(func.functional_call(program, {"system": p}, x="a"), "y")[0]  # noqa: E731

    def roles() -> set[str]:
        asked = [request.messages[1].text for request in model.requests if request.purpose == "backward"]
        model.requests.clear()
        return {text.split("- `system`: ")[1].split("\n")[0] for text in asked}

    exact(nn.Parameter("Q")).backward()
    assert roles() == {"system prompt"}
    func.grad(exact)("Q")
    assert roles() == {"system prompt"}
    func.vmap(func.grad(exact))(["Q", "R"]).data  # noqa: B018
    assert roles() == {"system prompt"}
    exact(nn.Parameter("Q", role="candidate")).backward()
    assert roles() == {"candidate"}


def test_candidates_by_examples(model: FunctionModel) -> None:
    """A batch of prompts for one program: the matrix of scores, in both orders of nesting, and its feedback."""
    program = nn.ChatCompletion("{p}{x}", system=nn.Parameter("P"))

    def score(prompt: Any, x: Any, target: Any) -> tg.Variable:
        return ops.exact_match_evaluator(func.functional_call(program, {"system": prompt}, p=prompt, x=x), target)[0]

    rows = func.vmap(func.vmap(score, in_dims=(None, 0, 0)), in_dims=(0, None, None))
    assert rows(["p", "q"], ["a", "b", "c"], ["PA", "QB", "PC"]).data == [[1, 0, 1], [0, 1, 0]]
    columns = func.vmap(func.vmap(score, in_dims=(0, None, None)), in_dims=(None, 0, 0))
    assert columns(["p", "q"], ["a", "b", "c"], ["PA", "QB", "PC"]).data == [[1, 0], [0, 1], [1, 0]]
    candidates = nn.Parameter(["p", "q"], role="system prompt")
    ops.sum([rows(candidates, ["a", "b"], ["PA", "PB"])]).backward()
    (feedback,) = candidates.grad
    assert (feedback.data[0], bool(feedback.data[1])) == ("", True)


def test_threads_do_not_notice_each_other(model: FunctionModel) -> None:
    """One program, many values at the same time."""
    program = nn.ChatCompletion("{x}", system=nn.Parameter("P"))
    barrier = threading.Barrier(8, timeout=60)
    program.register_forward_pre_hook(lambda module, args: (barrier.wait(), None)[1])
    names = [f"t{number}" for number in range(8)]
    found = func.pmap(lambda name: func.functional_call(program, {"system": name}, x=name).data)(names)
    assert found == [name.upper() for name in names]
    assert {(r.messages[0].text, r.messages[1].text) for r in model.requests} == {(name, name) for name in names}


def test_a_call_that_is_still_under_way_keeps_its_value() -> None:
    """Inputs are taken when it is dispatched; the module is its own again at once."""
    released = threading.Event()

    class Later(tg.Function):
        @staticmethod
        async def forward(module: Any, gate: Any) -> tg.Variable:
            return tg.Variable(f"{gate} {module.tone}")

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    class Wait(tg.Function):
        @staticmethod
        async def forward() -> tg.Variable:
            await asyncio.to_thread(released.wait, 10)
            return tg.Variable("seen:")

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    class Slow(Program):
        def forward(self, text: Any) -> tg.Variable:
            return Later.apply(self, Wait.apply())

    program = Slow()
    pending = func.functional_call(program, {"tone": "rude"}, "x")
    assert not pending.done()
    assert str(program.tone) == "kind"
    released.set()
    assert pending.data == "seen: rude"


def test_grad_of_a_program_with_respect_to_its_prompts(model: FunctionModel) -> None:
    """A dict of parameters is an argument like any other."""
    program = Program()
    prompts = {name: parameter.data for name, parameter in program.named_parameters()}

    def loss(prompts: Any) -> tg.Variable:
        return ops.exact_match_evaluator(func.functional_call(program, prompts, "x"), "right")[0]

    gradient = func.grad(loss)(prompts)
    assert set(gradient) == {"steps.0.prompt", "steps.1.prompt", "tone"}
    assert all(entry.data.startswith("The answer is wrong") for entry in gradient.values())
    assert all(parameter.grad == [] for parameter in program.parameters())


class Walking(nn.Module):
    """A program that reads its texts by walking, and the same program by name."""

    def __init__(self, *, by_name: bool = False) -> None:
        super().__init__()
        self.first, self.second = nn.Parameter("one", role="rule"), nn.Parameter("two", role="rule")
        self.register_buffer("end", tg.Variable("."))
        self.by_name = by_name

    def forward(self, text: Any) -> tg.Variable:
        if self.by_name:
            return ops.join([self.first, self.second, self.end, text], " ")
        return ops.join([*self.parameters(), *(value for _, value in self.named_buffers()), text], " ")


def test_a_program_that_walks_over_its_parameters_gets_the_values_of_the_call() -> None:
    """Parameters, buffers and the state are those of the call inside it, and the module's own outside."""
    program = Walking()
    seen: list[Any] = []
    program.register_forward_pre_hook(lambda module, args: seen.append(module.state_dict()))
    replaced = {"first": "ONE", "end": "!"}
    assert func.functional_call(program, replaced, "x").data == "ONE two ! x"
    assert {name: entry["data"] for name, entry in seen[0].items()} == {"first": "ONE", "second": "two", "end": "!"}
    assert program("x").data == "one two . x"
    same = tg.Variable("same")
    assert func.functional_call(program, {"first": same, "second": same}, "x").data == "same same . x"


def test_transforms_of_a_program_that_walks_over_its_parameters() -> None:
    """Feedback and batches are those of the program that names them."""

    def loss(program: nn.Module) -> Any:
        return lambda texts: ops.exact_match_evaluator(func.functional_call(program, texts, "x"), "z")[0]

    texts = {"first": "A", "second": "B"}
    walking, named = (func.grad(loss(Walking(by_name=by_name)))(texts) for by_name in (False, True))
    assert {name: entry.data for name, entry in walking.items()} == {name: e.data for name, e in named.items()}
    assert all(entry.data for entry in walking.values())
    tried = func.vmap(lambda text: func.functional_call(Walking(), {"first": text}, "x"))(["A", "B"])
    assert tried.data == ["A two . x", "B two . x"]


@pytest.mark.parametrize("name", ["self", "module", "overrides", "args", "kwargs"])
def test_a_field_may_have_any_name(model: FunctionModel, name: str) -> None:
    """Slots and fields are the user's; the library's own arguments are no names among them."""
    chat = nn.ChatCompletion(f"{{{name}}}", system=nn.Parameter("S", role="system prompt"))
    given: Any = {name: "hello"}
    assert chat(**given).data == "HELLO"
    assert func.functional_call(chat, {"system": "T"}, **given).data == "HELLO"
    assert [request.messages[0].text for request in model.requests] == ["S", "T"]


def test_a_part_with_two_names_is_replaced_by_either() -> None:
    """They are one; two values for it are refused."""
    program = nn.Module()
    program.a = Step("P", "step")
    program.b = program.a
    program.forward = lambda text: program.a(program.b(text))
    for name in ("a.prompt", "b.prompt"):
        assert func.functional_call(program, {name: "Q"}, "x").data == "Q: Q: x"
    with pytest.raises(KeyError, match=r"'a.prompt' and 'b.prompt' are one parameter"):
        func.functional_call(program, {"a.prompt": "Q", "b.prompt": "R"}, "x")


def test_arguments_may_come_as_in_torch() -> None:
    """A tuple, a dict behind it, and several mappings of values; what would be ambiguous says what to type."""
    program, rude = Program(), "two: one: x kind=kind!"
    parameters, buffers = {"tone": "kind"}, {"suffix": "!"}
    assert func.functional_call(program, (parameters, buffers), ("x",)).data == rude
    assert func.functional_call(program, [parameters, buffers], "x").data == rude
    assert func.functional_call(program, buffers, (), {"text": "x"}).data == rude
    assert func.functional_call(program, buffers, (), text="x").data == rude
    assert func.functional_call(program, buffers, kwargs={"text": "x"}).data == rude
    assert func.functional_call(program, buffers, args=("x",), kwargs={}).data == rude
    assert func.functional_call(program, buffers, ("x",), kwargs={}).data == rude
    with pytest.raises(TypeError, match=r"came in a dict and by name \(text\)"):
        func.functional_call(program, buffers, (), {"text": "x"}, text="x")
    with pytest.raises(KeyError, match="'suffix' is given in two of the mappings"):
        func.functional_call(program, (buffers, buffers), "x")
    with pytest.raises(TypeError, match="got str 'x' at position 1"):
        func.functional_call(program, (buffers, "x"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a mapping of names says, or several of them do, got int 3"):
        func.functional_call(program, 3)  # type: ignore[arg-type]


def test_arguments_that_are_called_as_those_of_torch_are_the_modules_own() -> None:
    """A forward that names them, or takes any, is given them; one that takes neither has them as in torch."""
    named, any_name, neither = nn.Module(), nn.Module(), nn.Module()
    named.forward = lambda args, kwargs: f"{args} {kwargs}"
    any_name.forward = lambda **given: sorted(given)
    neither.forward = lambda text: text
    assert func.functional_call(named, {}, args="a", kwargs="b") == "a b"
    assert func.functional_call(any_name, {}, args=("a",), kwargs={}) == ["args", "kwargs"]
    assert func.functional_call(neither, {}, args="a") == func.functional_call(neither, {}, "a", kwargs={}) == "a"
    with pytest.raises(TypeError, match="unexpected keyword argument 'args'"):
        func.functional_call(neither, {}, args="a", text="b")
    with pytest.raises(TypeError, match="unexpected keyword argument 'kwargs'"):
        func.functional_call(neither, {}, "a", kwargs="b")


def test_a_tuple_that_is_itself_the_argument_says_how_it_is_given() -> None:
    """Alone it is all arguments, as in torch: the error would speak of a number of them that nobody typed."""
    program = nn.Module()
    program.forward = lambda pair: " ".join(pair)
    assert func.functional_call(program, {}, pair=("a", "b")) == "a b"
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given") as raised:
        func.functional_call(program, {}, ("a", "b"))
    assert "give it by name" in raised.value.__notes__[0]
    with pytest.raises(TypeError, match="sequence item 0") as raised:
        func.functional_call(program, {}, ((1,),))
    assert not hasattr(raised.value, "__notes__")


def test_a_whole_state_is_told_what_takes_its_place() -> None:
    """`functional_call(model, model.state_dict(), x)` is what one writes with PyTorch; the repairs run."""
    program = Program()
    state = program.state_dict()
    says = r"got an entry of a state_dict\(\); give dict\(module\.named_parameters\(\)\), or of a state that was kept "
    with pytest.raises(TypeError, match=says + r"\{name: entry\['data'\] for name, entry in state\.items\(\)\}"):
        func.functional_call(program, state, "x")  # type: ignore[arg-type]
    texts = {name: entry["data"] for name, entry in state.items()}
    for values in (texts, dict(program.named_parameters())):
        assert func.functional_call(program, values, "x").data == PLAIN
