from __future__ import annotations

import asyncio
import copy
import re
import threading
from typing import Any
from unittest import mock

import pytest

from textgrad_engine import Variable, nn, no_grad, ops
from textgrad_engine.errors import EmptyResponse
from textgrad_engine.llm import Completion, Request, resolve
from textgrad_engine.testing import FunctionModel

from .conftest import Leaf, Tree


def test_a_parameter_before_super_init_says_what_to_do() -> None:
    """The mistake is named where it is made, not as a missing attribute later."""

    class Broken(nn.Module):
        def __init__(self) -> None:
            self.prompt = nn.Parameter("x")

    with pytest.raises(AttributeError, match=r"Broken\.prompt was assigned before super\(\).__init__\(\)"):
        Broken()


def test_assigning_a_text_over_a_parameter_is_refused() -> None:
    """A prompt that silently stops being trained is the worst kind of typo."""
    leaf = Leaf()
    for value in ("new", 3, Variable("new")):
        with pytest.raises(TypeError, match=r"Leaf\.prompt is a Parameter and was assigned .*\.prompt\.data = "):
            leaf.prompt = value
    assert leaf.prompt.data == "text"
    leaf.prompt = nn.Parameter("other")
    assert [p.data for p in leaf.parameters()] == ["other"]


def test_an_unknown_attribute_is_named() -> None:
    """With the class that lacks it."""
    with pytest.raises(AttributeError, match="Leaf has no attribute 'promt'"):
        _ = Leaf().promt


def test_what_a_property_lacks_is_named_and_not_the_property() -> None:
    """The mistake is in its code, and the property is there."""

    class Program(Leaf):
        @property
        def shown(self) -> str:
            return self.promt + "!"

    with pytest.raises(AttributeError, match="Program has no attribute 'promt'"):
        _ = Program().shown


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("register_full_backward_hook", "result.register_hook"),
        ("apply", "for part in module.modules()"),
        ("to", "on no device"),
        ("get_buffer", "dict(module.named_buffers())"),
        ("register_module", "module.name = part"),
        ("get_submodule", "dict(module.named_modules())"),
        ("load", "module.load_state_dict(json.loads(text))"),
        ("named_predictors", "module.named_parameters()"),
        ("deepcopy", "copy.deepcopy(module)"),
        ("reset_copy", "copy.deepcopy(module)"),
        ("inspect_history", "llm.observe(callback)"),
    ],
)
def test_a_method_of_other_libraries_modules_is_told_what_stands_for_it(name: str, instead: str) -> None:
    """The names that are not here."""
    with pytest.raises(AttributeError, match=re.escape(instead)):
        getattr(Leaf(), name)


def test_a_module_without_forward_says_so() -> None:
    """Instead of returning None."""
    with pytest.raises(NotImplementedError, match="Module needs a `forward`"):
        nn.Module()("x")


def test_reassigning_and_deleting_unregisters() -> None:
    """A part that is gone has no parameters."""
    tree = Tree()
    tree.left = "no module any more"
    del tree.right
    assert [name for name, _ in tree.named_parameters()] == ["head"]
    assert tree.left == "no module any more"
    with pytest.raises(AttributeError):
        _ = tree.right


def test_a_plain_variable_is_no_parameter() -> None:
    """As a plain tensor is none."""
    leaf = Leaf()
    leaf.note = Variable("x", requires_grad=True)
    assert [name for name, _ in leaf.named_parameters()] == ["prompt"]


def test_modes_and_freezing_reach_every_part() -> None:
    """train, eval and requires_grad_ recurse and return the module."""
    tree = Tree()
    assert tree.eval() is tree
    assert [module.training for module in tree.modules()] == [False] * 3
    assert tree.train().left.training
    assert not any(p.requires_grad for p in tree.requires_grad_(False).parameters())


@pytest.mark.parametrize("mode", [[{"word": "ant"}], "no", 2])
def test_what_is_no_mode_is_refused(mode: Any) -> None:
    """`program.train(examples)` would train nothing, and say nothing."""
    tree = Tree()
    with pytest.raises(TypeError, match=r"train\(\) sets the mode, which is True or False, got "):
        tree.train(mode)
    assert tree.training is tree.left.training is True


def test_zero_grad_leaves_nothing_behind() -> None:
    """Defect of section 9: zero_grad that leaves context behind."""
    tree = Tree()
    (tree.left.prompt + tree.right.prompt).backward("longer")
    held = tree.left.prompt.grad
    tree.zero_grad()
    assert [p.grad for p in tree.parameters()] == [[], [], []]
    assert len(held) == 1


def test_forward_hooks_run_in_order_and_may_replace() -> None:
    """Pre hooks change arguments, hooks the result; a removed one is gone."""
    leaf = Leaf("hello ")
    first = leaf.register_forward_pre_hook(lambda module, args: (args[0].upper(),))
    leaf.register_forward_pre_hook(lambda module, args: args[0] + "!")
    last = leaf.register_forward_hook(lambda module, args, result: result + f" (from {args[0]})")
    leaf.register_forward_hook(lambda module, args, result: None)
    assert leaf("bob").data == "hello BOB! (from BOB!)"
    first.remove()
    first.remove()
    last.remove()
    assert leaf("bob").data == "hello bob!"


def test_repr_shows_the_tree() -> None:
    """What is in a program can be looked at."""
    shown = repr(Tree())
    assert shown.startswith("Tree(\n  (head): Parameter('head'")
    assert "\n  (left): Leaf(\n    (prompt): Parameter('left'" in shown
    assert repr(nn.ExactMatch()) == "ExactMatch()"
    assert repr(nn.Metric(len, "length", scale=(0, 9))) == "Metric('length', scale=(0, 9))"
    assert repr(nn.Judge("Is it polite?", scale=(1, 5))) == "Judge('Is it polite?', scale=(1, 5))"


def test_repr_shows_what_a_module_says_of_itself() -> None:
    """As in PyTorch, before its parts; and alone, where it has none."""

    class Cut(nn.Module):
        def __init__(self, prompt: str = "") -> None:
            super().__init__()
            if prompt:
                self.prompt = nn.Parameter(prompt)

        def extra_repr(self) -> str:
            return "at=3"

    class Split(nn.Module):
        def extra_repr(self) -> str:
            return "at=3\nby=' '"

    assert repr(Cut()) == "Cut(at=3)"
    assert repr(Split()) == "Split(\n  at=3\n  by=' '\n)"
    assert repr(Cut("hello")) == "Cut(\n  at=3\n  (prompt): Parameter('hello', requires_grad=True)\n)"


def test_a_deep_copy_is_a_program_of_its_own() -> None:
    """Parameters that are one stay one; feedback on the copy is the copy's, also while the first has a graph."""
    tree = Tree()
    held = tree.left.prompt + "!"
    other = copy.deepcopy(tree)
    assert other.state_dict() == tree.state_dict()
    assert other.left.prompt is not tree.left.prompt
    (other.left.prompt + "?").backward("on the copy")
    held.backward("on the first")
    assert [[item.data for item in program.left.prompt.grad] for program in (tree, other)] == [
        ["on the first"], ["on the copy"]
    ]  # fmt: skip


def test_what_is_assigned_again_keeps_its_place() -> None:
    """As in PyTorch: states of optimizers and the order of a program go by it."""
    tree = Tree()
    tree.register_parameter("tail", nn.Parameter("tail"))
    tree.register_buffer("notes", Variable("noted"))
    names = list(tree.state_dict())
    tree.left, tree.memory, tree.head = Leaf("new"), Variable("new"), nn.Parameter("new", role="head")
    tree.register_buffer("memory", Variable("newer"))
    with no_grad():
        tree.head += "!"
    assert list(tree.state_dict()) == names
    assert (tree.head.data, tree.left.prompt.data, tree.memory.data) == ("new!", "new", "newer")
    tree.head = None
    tree.memory = None
    assert list(tree.state_dict()) == [name for name in names if name not in ("head", "memory")]
    tree.head, tree.memory = nn.Parameter("back"), Variable("back")
    assert list(tree.state_dict()) == names


def test_what_becomes_something_else_moves() -> None:
    """A name stands for one thing."""
    tree = Tree()
    tree.memory = nn.Parameter("trained now")
    tree.left = nn.Parameter("no part now")
    tree.plain = "text"
    tree.plain = Leaf("a part now")
    assert [name for name, _ in tree.named_parameters()] == ["head", "memory", "left", "right.prompt", "plain.prompt"]
    assert list(tree.named_buffers()) == []
    assert "plain" not in vars(tree)


def test_a_part_that_a_test_patches_is_put_back_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """By pytest and by unittest, with a function or a mock: or no test after it has that part."""
    tree = Tree()
    names, left, memory = list(tree.state_dict()), tree.left, tree.memory
    with monkeypatch.context() as patch:
        patch.setattr(tree, "left", lambda text: "patched")
        patch.setattr(tree, "memory", "patched")
        assert tree.left("x") == tree.memory == "patched"
        assert "left.prompt" not in tree.state_dict()
        assert copy.deepcopy(tree).memory == "patched"
    assert (list(tree.state_dict()), tree.left, tree.memory) == (names, left, memory)
    with mock.patch.object(tree, "left") as patched:
        tree.left("x")
    patched.assert_called_once_with("x")
    assert (list(tree.state_dict()), tree.left) == (names, left)
    tree.left = "by hand"
    tree.left = left
    assert list(tree.state_dict()) == names


@pytest.mark.parametrize("name", ["memory", "left", "head"])
def test_what_a_test_patches_with_another_of_its_kind_is_put_back_where_it_was(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A buffer that comes back as a plain value is in no state, and parts in another order are other parameters."""
    tree = Tree()
    names, order, own = list(tree.state_dict()), list(tree.parameters()), getattr(tree, name)
    with mock.patch.object(tree, name, copy.deepcopy(own)):
        assert getattr(tree, name) is not own
        assert sorted(tree.state_dict()) == sorted(names)
    assert (list(tree.state_dict()), list(tree.parameters()), getattr(tree, name)) == (names, order, own)
    with monkeypatch.context() as patch:
        patch.delattr(tree, name)
        assert not hasattr(tree, name)
    assert (list(tree.state_dict()), list(tree.parameters()), getattr(tree, name)) == (names, order, own)


def test_what_was_taken_out_for_good_does_not_come_back() -> None:
    """None takes a part out, also one that another value was put over, and so does `del`."""
    tree = Tree()
    del tree.memory
    tree.memory = "plain"
    del tree.memory
    assert not hasattr(tree, "memory")
    tree.left = None
    del tree.left
    assert not hasattr(tree, "left")
    tree.right = "plain"
    tree.right = None
    del tree.right
    assert not hasattr(tree, "right")
    tree = Tree()
    tree.right = "plain"
    del tree.right
    del tree.right
    assert not hasattr(tree, "right")


class Shares(nn.Module):
    """Has one part, one parameter and one buffer, each under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt = self.same = nn.Parameter("a")
        self.first = nn.ModuleDict({"inner": nn.ParameterList([self.prompt, nn.Parameter("b")])})
        self.again = self.first
        self.register_buffer("memory", Variable("m"))
        self.register_buffer("also", self.memory)


def test_what_a_program_has_twice_comes_once_as_in_torch() -> None:
    """Among the children and buffers, too, as among parameters and modules; under all its names where one asks."""
    program = Shares()
    assert [name for name, _ in program.named_children()] == ["first"]
    assert list(program.children()) == [program.first]
    assert [name for name, _ in program.named_buffers()] == ["memory"]
    assert list(program.buffers()) == [program.memory]
    assert [name for name, _ in program.named_parameters()] == ["prompt", "first.inner.1"]
    every = [name for name, _ in program.named_parameters(remove_duplicate=False)]
    assert every == [name for name in program.state_dict() if name not in ("memory", "also")]
    assert every == ["prompt", "same", *(f"{part}.inner.{number}" for part in ("first", "again") for number in (0, 1))]
    assert [name for name, _ in program.named_buffers("p", remove_duplicate=False)] == ["p.memory", "p.also"]
    outer = nn.ModuleList([program])
    assert (list(outer.buffers(recurse=False)), len(list(outer.buffers()))) == ([], 1)


def test_tab_completes_the_names_of_parameters_and_parts() -> None:
    """`dir` has them, as in torch, but for those that are no attributes in Python's syntax."""
    program = Shares()
    assert {"prompt", "first", "memory", "forward", "training"} <= set(dir(program))
    assert "0" not in dir(nn.ModuleList([program]))


def test_a_plain_attribute_is_deleted() -> None:
    """Once, and what is not there is named."""
    module = nn.Module()
    module.cache = 1
    del module.cache
    assert not hasattr(module, "cache")
    with pytest.raises(AttributeError, match="cache"):
        del module.cache


def test_only_parameters_and_variables_are_registered() -> None:
    """The mistake is named where it is made, not at the first walk."""
    module = nn.Module()
    for value in ("text", Variable("text")):
        with pytest.raises(TypeError, match=r"Module: 'p' was to be a parameter, and is .* Give nn.Parameter\(text"):
            module.register_parameter("p", value)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Module: 'b' was to be a buffer, and is str 'text'. Give Variable\(text"):
        module.register_buffer("b", "text")  # type: ignore[arg-type]
    assert module.state_dict() == {}


class Locked:
    """A model that cannot be copied."""

    name = "locked"
    free = True

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked = 0

    async def complete(self, request: Request) -> Completion:
        with self.lock:
            self.asked += 1
        return Completion(text=request.messages[0].text)


class Asking(nn.Module):
    """A program that holds a model in every way."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.prompt = nn.Parameter("own", role="prompt")
        self.chat = nn.ChatCompletion(self.prompt, model=model)
        self.judge, self.critic = nn.Judge("right?", model=model), nn.TextLoss("style", model=model)
        self.model, self.more = model, {"a": [model]}

    def forward(self) -> Any:
        return ops.join(
            [self.chat(), ops.chat_completion(self.model, [{"role": "user", "content": self.prompt}])], ", "
        )


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_deep_copy_asks_the_same_models(wrapped: bool) -> None:
    """They hold connections, limits and counts, which a copy of the program shares."""
    inner = Locked()
    program = Asking(resolve(inner) if wrapped else inner)
    other = copy.deepcopy(program)
    with no_grad():
        other.prompt.data = "copy"
    assert (program().data, other().data, inner.asked) == ("own, own", "copy, copy", 4)
    held = (other.model, other.more["a"][0], other.chat.settings.model, other.judge.model, other.critic.model)
    assert all(model is program.model for model in held)
    assert other.more["a"] is not program.more["a"]


def test_a_deep_copy_is_counted_by_the_model_of_a_test() -> None:
    """A model that can be copied is shared all the same."""
    model = FunctionModel(lambda request: "answer")
    copy.deepcopy(nn.ChatCompletion("{x}", model=model))(x="1").data  # noqa: B018
    assert len(model.requests) == 1


def test_a_deep_copy_has_what_stands_in_slots() -> None:
    """A subclass may have some."""

    class WithSlots(Leaf):
        __slots__ = ("seen",)

        def __init__(self) -> None:
            super().__init__()
            self.seen = ["a"]

    first = WithSlots()
    other = copy.deepcopy(first)
    assert (other.seen, other.seen is first.seen, other("!").data) == (["a"], False, "text!")


def test_a_deep_copy_goes_by_the_state_that_a_module_gives_of_itself() -> None:
    """What cannot be copied is left out by `__getstate__`, as `copy` has it, and made anew by `__setstate__`."""

    class WithLock(Leaf):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

        def __getstate__(self) -> dict[str, Any]:
            return {name: value for name, value in vars(self).items() if name != "lock"}

        def __setstate__(self, state: dict[str, Any]) -> None:
            vars(self).update(state, lock=threading.Lock())

    first = WithLock()
    other = copy.deepcopy(nn.Sequential(first, first))
    assert other[0] is other[1]
    assert other[0].lock is not first.lock
    assert other("!").data == "texttext!"


class Waiting(nn.Module):
    """Looks at its first answer to decide what to do next."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.chat = nn.ChatCompletion("{text}", system=nn.Parameter("say", role="system prompt"), model=model)

    def forward(self, text: str) -> dict[str, Any]:
        first = self.chat(text=text)
        return {"first": first, "all": [self.chat(text=first.data + "!")]}


def test_aforward_does_not_block_the_loop() -> None:
    """Two programs that wait for answers in the middle go on together, and what they give is there."""
    both = threading.Barrier(2, timeout=60)

    def answer(request: Request) -> str:
        return request.messages[-1].text.upper()

    def meet(module: nn.Module, args: Any) -> None:
        both.wait()

    async def main() -> list[Any]:
        program = Waiting(FunctionModel(answer))
        program.register_forward_pre_hook(meet)
        return await asyncio.gather(program.aforward("a"), program.aforward("b"))

    found = asyncio.run(main())
    assert [(each["first"].done(), each["all"][0].done()) for each in found] == [(True, True)] * 2
    assert [(each["first"].data, each["all"][0].data) for each in found] == [("A", "A!"), ("B", "B!")]


@pytest.mark.usefixtures("no_backoff")
def test_aforward_raises_what_the_answer_raised() -> None:
    """Also where it is the last one, which nothing in forward waits for."""

    def failing(request: Request) -> str:
        if request.messages[-1].text.endswith("!"):
            raise EmptyResponse("nothing")
        return request.messages[-1].text

    with pytest.raises(EmptyResponse, match="nothing"):
        asyncio.run(Waiting(FunctionModel(failing)).aforward("a"))


def test_aforward_awaits_an_async_forward() -> None:
    """And what it gives is there, too."""

    class Awaiting(Waiting):
        async def forward(self, text: str) -> Any:  # type: ignore[override]
            first = await self.chat(text=text)
            return self.chat(text=f"{first}!")

    model = FunctionModel(lambda request: request.messages[-1].text.upper())
    found = asyncio.run(Awaiting(model).aforward("a"))
    assert (found.done(), found.data) == (True, "A!")


class LastCallWaits(Waiting):
    """What its `async def` forward gives is still to be answered."""

    async def forward(self, text: str) -> Any:  # type: ignore[override]
        return self.chat(text=text)


class WaitsInAGather(Waiting):
    """Its `async def` forward waits for several calls at once."""

    async def forward(self, text: str) -> Any:  # type: ignore[override]
        return await asyncio.gather(*[self.chat(text=text) for _ in range(2)])


@pytest.mark.parametrize("kind", [Waiting, LastCallWaits, WaitsInAGather])
def test_an_aforward_whose_wait_is_cancelled_asks_nothing_more(kind: type[Waiting]) -> None:
    """Its call is cancelled, too, also one of an `async def` forward."""
    begun, ended = threading.Event(), threading.Event()

    class Held:
        name = "held"

        async def complete(self, request: Request) -> Completion:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            raise AssertionError

    async def main() -> None:
        waiting = asyncio.ensure_future(kind(Held()).aforward("a"))
        assert await asyncio.to_thread(begun.wait, 60)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await asyncio.to_thread(ended.wait, 60)

    asyncio.run(main())
