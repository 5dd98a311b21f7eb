"""What waits for answers, wherever it is called: in a loop of one's own, awaited there, and on the private loop."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import textgrad_engine as tg
from textgrad_engine import dispatch, func, nn, ops, optim, pytree
from textgrad_engine.errors import AutogradError, DispatchError
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import ashrink, shrink

PATIENCE = 60.0
"""Seconds until a test that would hang fails instead; no test waits that long."""

ROWS = [{"word": word, "target": "a"} for word in ("a", "b", "c", "d")]


class Sorter(nn.Module):
    """A program with one prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt = nn.Parameter("Sort.", role="prompt")

    def forward(self, word: Any) -> tg.Variable:
        return chat(self.prompt, word)


class Reader(Sorter):
    """A program that looks at an answer before it goes on."""

    def forward(self, word: Any) -> tg.Variable:
        first = chat(self.prompt, word)
        return chat(self.prompt, f"again: {first.data}")


def chat(prompt: Any, text: Any = "text") -> tg.Variable:
    return ops.chat_completion(None, [{"role": "system", "content": prompt}, {"role": "user", "content": text}])


def wrong(prompt: Any) -> tg.Variable:
    return ops.exact_match_evaluator(chat(prompt), "a")[0]


def prompt() -> tg.Variable:
    return tg.Variable("P", role="prompt", requires_grad=True)


def pieces() -> list[tg.Variable]:
    return [chat("P", text) for text in ("one", "two", "three")]


def trained() -> tuple[Any, ...]:
    program = Sorter()
    return program, nn.ExactMatch(), optim.TGD(program.parameters()), ROWS[:2], ROWS[2:]


class Waits(NamedTuple):
    """A call that waits for answers.

    Attributes:
        blocking: makes it.
        twin: what is awaited instead.
        named: how the error on the private loop names the twin.
    """

    blocking: Callable[[], Any]
    twin: Callable[[], Any]
    named: str


def _closure(optimizer: optim.Optimizer) -> Callable[[], Any]:
    (leaf,) = optimizer.variables()
    return lambda: wrong(leaf).backward()


def _step() -> Any:
    chosen = optim.TGD(Sorter().parameters())
    return chosen.step(_closure(chosen))


async def _astep() -> Any:
    chosen = optim.TGD(Sorter().parameters())
    return await chosen.astep(_closure(chosen))


async def _value() -> Any:
    return (await chat("P")).data


async def _pulled() -> Any:
    _, pull = await func.avjp(chat, "P")
    return await pull("too long")


def _start() -> Any:
    program = Sorter()
    return program, optim.TGD(program.parameters())


MANY = [{"word": str(number), "target": "a"} for number in range(10)]

WAITS: dict[str, Waits] = {
    "Variable.data": Waits(lambda: chat("P").data, _value, "await variable"),
    "Variable.backward": Waits(
        lambda: wrong(prompt()).backward(), lambda: wrong(prompt()).abackward(), "await variable.abackward"
    ),
    "tg.backward": Waits(
        lambda: tg.backward([wrong(prompt())]), lambda: tg.abackward([wrong(prompt())]), "await tg.abackward"
    ),
    "autograd.grad": Waits(
        lambda: tg.autograd.grad(wrong(leaf := prompt()), leaf),
        lambda: tg.autograd.agrad(wrong(leaf := prompt()), leaf),
        "await autograd.agrad",
    ),
    "autograd.gradcheck": Waits(
        lambda: tg.autograd.gradcheck(chat, prompt()),
        lambda: tg.autograd.agradcheck(chat, prompt()),
        "await autograd.agradcheck",
    ),
    "func.pmap": Waits(
        lambda: func.pmap(Reader())(["a", "b"]), lambda: func.apmap(Reader())(["a", "b"]), "await func.apmap"
    ),
    "func.grad": Waits(lambda: func.grad(wrong)("P"), lambda: func.agrad(wrong)("P"), "await func.agrad(f)"),
    "func.grad_and_value": Waits(
        lambda: func.grad_and_value(wrong)("P"),
        lambda: func.agrad_and_value(wrong)("P"),
        "await func.agrad_and_value",
    ),
    "func.vjp": Waits(lambda: func.vjp(chat, "P")[1]("too long"), _pulled, "func.avjp"),
    "func.jacrev": Waits(
        lambda: func.jacrev(lambda p: [wrong(p), wrong(p)])("P"),
        lambda: func.ajacrev(lambda p: [wrong(p), wrong(p)])("P"),
        "await func.ajacrev",
    ),
    "func.hessian": Waits(lambda: func.hessian(wrong)("P"), lambda: func.ahessian(wrong)("P"), "await func.ahessian"),
    "func.vmap": Waits(
        lambda: func.vmap(chat, chunk_size=1)(["a", "b"]),
        lambda: func.avmap(chat, chunk_size=1)(["a", "b"]),
        "await func.avmap",
    ),
    "ops.reduce": Waits(
        lambda: ops.reduce(pieces(), max_items=1), lambda: ops.areduce(pieces(), max_items=1), "await ops.areduce"
    ),
    "nn.Module.__call__": Waits(lambda: Reader()("a"), lambda: Reader().aforward("a"), "await module.aforward"),
    "optim.Optimizer.step": Waits(_step, _astep, "await optimizer.astep"),
    "tg.evaluate": Waits(
        lambda: tg.evaluate(Sorter(), ROWS, nn.ExactMatch()),
        lambda: tg.aevaluate(Sorter(), ROWS, nn.ExactMatch()),
        "await tg.aevaluate",
    ),
    "tg.cross_validate": Waits(
        lambda: tg.cross_validate(_start, nn.ExactMatch(), MANY, folds=2, final=False),
        lambda: tg.across_validate(_start, nn.ExactMatch(), MANY, folds=2, final=False),
        "await tg.across_validate",
    ),
    "tg.Trainer.fit": Waits(
        lambda: tg.Trainer(max_epochs=1).fit(*trained()),
        lambda: tg.Trainer(max_epochs=1).afit(*trained()),
        "await trainer.afit",
    ),
    "train.shrink": Waits(
        lambda: shrink(Sorter(), nn.ExactMatch(), ROWS),
        lambda: ashrink(Sorter(), nn.ExactMatch(), ROWS),
        "await train.ashrink",
    ),
}


@pytest.fixture
def gate() -> threading.Event:
    """Open, unless a test closes it; then no model answers."""
    found = threading.Event()
    found.set()
    return found


@pytest.fixture(autouse=True)
def model(gate: threading.Event) -> Any:
    """Its answers come later than they are asked for."""

    async def answer(request: Request) -> Any:
        await asyncio.sleep(0)
        while not gate.is_set():
            await asyncio.to_thread(gate.wait, PATIENCE)
        wanted = request.config.response_format
        if wanted is None:
            return "b"
        if "items" in wanted.json_schema["properties"]:
            return {"items": [{"text": "all of it", "numbers": [1, 2, 3]}]}
        return _filled(wanted.json_schema)

    with tg.use_models(forward=FunctionModel(answer)) as found:
        yield found


def _filled(schema: Any) -> Any:
    if schema["type"] == "object":
        return {name: _filled(below) for name, below in schema["properties"].items()}
    return [] if schema["type"] == "array" else "be brief"


def read(result: Any) -> Any:
    return [leaf.data if isinstance(leaf, tg.Variable) else leaf for leaf in pytree.leaves(result)]


@pytest.mark.parametrize("name", WAITS)
def test_what_waits_works_in_a_loop_of_ones_own(name: str) -> None:
    """As in a cell of a notebook, where a loop runs already; it is blocked meanwhile."""

    async def cell() -> Any:
        return read(WAITS[name].blocking())

    assert repr(asyncio.run(cell())) == repr(read(WAITS[name].blocking()))


@pytest.mark.parametrize("name", WAITS)
def test_what_is_awaited_does_not_block_the_loop(name: str, gate: threading.Event) -> None:
    """No model answers before the loop has gone on to open the gate."""

    async def handler() -> Any:
        gate.clear()
        task = asyncio.ensure_future(WAITS[name].twin())
        await asyncio.sleep(0)
        gate.set()
        return read(await task)

    assert repr(asyncio.run(asyncio.wait_for(handler(), PATIENCE))) == repr(read(WAITS[name].blocking()))


@pytest.mark.parametrize("name", WAITS)
def test_on_the_private_loop_the_twin_is_named(name: str) -> None:
    """Inside of an `async def forward`, where to wait would be to wait for oneself."""

    async def forward() -> Any:
        return read(WAITS[name].blocking())

    with pytest.raises(DispatchError, match=r"Inside an `async def`, use `") as raised:
        dispatch.run(forward)
    assert WAITS[name].named in str(raised.value)


@pytest.mark.parametrize(
    "name", sorted(set(WAITS) - {"tg.cross_validate", "tg.evaluate", "tg.Trainer.fit", "train.shrink"})
)
def test_the_twin_gives_the_same(name: str) -> None:
    """And what is counted of a run is its own."""
    assert read(asyncio.run(_of(WAITS[name].twin))) == read(WAITS[name].blocking())


async def _of(twin: Callable[[], Any]) -> Any:
    return await twin()


def test_what_waits_for_nothing_needs_no_twin() -> None:
    """Its results are pending, on the private loop too."""

    async def forward() -> Any:
        edited = func.jvp(chat, ("P",), ("shorter",))
        mapped = func.vmap(chat)(["a", "b"])
        part = func.jacfwd(chat)("P")
        replaced = func.functional_call(Sorter(), {"prompt": tg.Variable("Q")}, "a")
        return [(await value).data for value in (*edited, mapped, part, replaced)]

    assert dispatch.run(forward) == ["b", "be brief", ["b", "b"], "be brief", "b"]


def test_every_twin_is_known_here() -> None:
    """Of the public packages: a name that begins with an a, before the name of something else."""
    told = {entry.named for entry in WAITS.values()}
    for part in ("autograd", "func", "ops", "train"):
        names = importlib.import_module(f"textgrad_engine.{part}").__all__
        for name in names:
            if name.startswith("a") and name[1:] in names:
                assert any(name in each for each in told), f"{part}.{name}"


def test_an_async_function_is_no_function_of_pmap() -> None:
    """It would give coroutines that nobody awaits; the error says what goes on many of them."""

    async def agent(word: str) -> str:
        return word

    class Agent:
        async def __call__(self, word: str) -> str:
            return word

    for transform in (func.pmap, func.apmap):
        for given in (agent, Agent()):
            with pytest.raises(TypeError, match=r"got an `async def`.*asyncio\.gather"):
                transform(given)
        with pytest.raises(TypeError, match="give the module itself"):
            transform(Sorter().aforward)


@pytest.mark.parametrize(
    "waiting",
    [
        func.avmap(func.agrad(wrong)),
        func.ajacrev(func.agrad(wrong)),
        lambda given: dispatch.aside(lambda: func.jvp(func.agrad(wrong), (given[0],), ("b",))),
    ],
)
def test_a_twin_inside_of_a_transform_is_told_what_stands_there(waiting: Any) -> None:
    """Its coroutine is closed, too, and not told of as never awaited."""

    async def main() -> None:
        with pytest.raises(AutogradError, match=r"take a plain def, as func\.avmap\(func\.grad\(f\)\)"):
            await waiting(["a"])

    asyncio.run(main())
