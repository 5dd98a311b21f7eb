"""What a type checker knows of the public API; CI runs mypy over this file, and pytest runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypedDict, assert_type, get_type_hints

import pytest

import textgrad_engine as tg
from textgrad_engine import data, func, llm, nn, ops, optim, train
from textgrad_engine.autograd import Context
from textgrad_engine.optim import proposers
from textgrad_engine.testing import FunctionModel, simulated_task
from textgrad_engine.train import ShrinkResult, ashrink

ROWS = [{"word": word, "target": word} for word in ("one", "two", "three", "four")]


class Echo(nn.Module):
    """A program as users write it."""

    def __init__(self) -> None:
        super().__init__()
        self.chat = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))

    def forward(self, word: str) -> tg.Variable:
        return self.chat(word=word)


class Loud(tg.Function):
    """A function as users write it."""

    @staticmethod
    def forward(text: tg.Variable) -> tg.Variable:
        return tg.Variable(text.data.upper(), role=text.role)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_out: tg.Variable) -> tg.Variable:
        return grad_out


class Repeat(tg.Function):
    """One with a ctx, and with names and types of its own."""

    @staticmethod
    def forward(context: Any, text: tg.Variable, times: int = 2) -> tg.Variable:
        return tg.Variable(text.data * times, role=text.role)

    @staticmethod
    def backward(context: Any, feedback: tg.Variable) -> tuple[tg.Variable, None]:
        return feedback, None


class Cut(tg.Function):
    """One whose context has its own class for a type, and keeps an attribute in it."""

    @staticmethod
    def forward(ctx: Context, text: tg.Variable, length: int) -> tg.Variable:
        ctx.length = length
        assert_type(ctx.needs_input_grad, tuple[bool, ...])
        return tg.Variable(text.data[:length])

    @staticmethod
    def backward(ctx: Context, feedback: tg.Variable) -> tuple[str, None]:
        return f"in {ctx.length} letters: {feedback.data}", None


class Mine:
    """A model of one's own is one by its shape."""

    name = "mine"

    async def complete(self, request: llm.Request) -> llm.Completion:
        assert_type(request.messages[-1].text, str)
        return llm.Completion(text="yes", finish_reason="stop")


class Hands:
    """A model that hands on what another one gives, without an `async def` of its own; the library's do so, too."""

    name = "hands"

    def __init__(self, inner: llm.Model) -> None:
        self.inner = inner

    def complete(self, request: llm.Request) -> Coroutine[Any, Any, llm.Completion]:
        return self.inner.complete(request)


def echo(request: llm.Request) -> str:
    """Answers what it is asked."""
    return request.messages[-1].text


def test_values_and_the_graph() -> None:
    """Variables, their feedback, and where it comes from."""
    prompt = tg.Variable("Hi", role="prompt", requires_grad=True)
    whole = prompt + "!"
    assert_type(whole, tg.Variable)
    assert_type(str(whole), str)
    assert_type(prompt.grad, list[tg.Variable])
    assert_type(prompt.is_leaf, bool)
    whole.backward("shorter", retain_graph=True)
    found = tg.autograd.grad([whole], [prompt], ["longer"])
    assert_type(found, tuple[list[tg.Variable], ...])
    unused = tg.Variable("a", requires_grad=True)
    some = tg.autograd.grad([prompt + "?"], [prompt, unused], ["why?"], allow_unused=True)
    assert_type(some, tuple[list[tg.Variable] | None, ...])
    assert [found[0][0].data, some[1]] == ["longer", None]
    assert_type(asyncio.run(tg.autograd.agrad(prompt + "?", prompt, "why?")), tuple[list[tg.Variable], ...])
    assert_type(tg.autograd.get_gradient_edge(whole), tg.autograd.GradientEdge)
    handle = prompt.register_hook(lambda gradient: None)
    handle.remove()
    assert [item.data for item in prompt.grad] == ["shorter"]


def test_a_context_has_any_attribute() -> None:
    """As the page says; with the class as its type, checkers refused what runs."""
    prompt = tg.Variable("Hello", role="prompt", requires_grad=True)
    Cut.apply(prompt, 2).backward("shorter")
    assert [item.data for item in prompt.grad] == ["in 2 letters: shorter"]


def test_feedback_on_a_batch() -> None:
    """A list with a text for each entry, alone and among others."""
    words = tg.Variable(["one", "two"], role="words", requires_grad=True)
    (words + "!").backward(["shorter", "louder"])
    tg.backward([words + "!", words + "?"], [["shorter", "louder"], "why?"])
    (found,) = tg.autograd.grad(words + "!", words, ["shorter", "louder"])
    assert [item.data for item in found] == [["shorter", "louder"]]
    assert [item.data for item in words.grad[:2]] == [["shorter", "louder"], ["shorter", "louder"]]


def test_messages_and_what_holds_them() -> None:
    """Fields in order, and no others; a comment that has nothing to forgive is an error itself."""
    asked = llm.Request([llm.Message("user", "May I?")], llm.GenerateConfig(seed=1), "judge")
    assert_type(asked.messages, tuple[llm.Message, ...])
    assert_type(llm.Completion("yes", "stop", llm.Usage(1, 2), model="mine").usage, llm.Usage)
    with pytest.raises(ValueError, match="rol"):
        llm.Message(rol="user")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="purpose"):
        llm.Request([], llm.GenerateConfig(), "forwards")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="text"):
        llm.Completion()  # type: ignore[call-arg]


def test_a_model_gives_any_coroutine() -> None:
    """Of an `async def` in a protocol pyright wants an `async def`, and took `llm.Cached` and others for no models."""
    models: list[llm.Model] = [Hands(Mine()), llm.Metered(Mine()), llm.Cached(Mine())]
    assert [model.name for model in models] == ["hands", "mine", "mine"]
    assert get_type_hints(llm.Model.complete)["return"] == Coroutine[Any, Any, llm.Completion]


def test_operations_and_transforms() -> None:
    """Functions of texts, and functions of functions."""
    assert_type(ops.join(["a", tg.Variable("b")], sep=", "), tg.Variable)
    assert_type(ops.split("a b", sep=" "), list[tg.Variable])
    score, why = ops.exact_match_evaluator(tg.Variable("a"), "a")
    assert_type(score, tg.Variable)
    assert_type(why, tg.Variable)
    assert_type(func.vmap(lambda a: a + "!"), Callable[..., Any])
    assert_type(func.pmap(len)(["a", "bc"]), list[int])
    assert Loud.apply(tg.Variable("a")).data == "A"


def test_evaluation_training_and_shrinking() -> None:
    """What comes of the examples."""
    program = Echo()
    model: llm.Model = FunctionModel(echo)
    mine: llm.Model = Mine()
    with tg.use_models(forward=model, judge=mine), tg.budget(calls=1_000) as spent:
        assert_type(nn.ExactMatch()(program.chat(word="one"), "one"), tg.Variable)
        evaluation = tg.evaluate(program, ROWS, nn.ExactMatch())
        assert_type(evaluation, tg.Evaluation)
        assert_type(evaluation.mean, float)
        assert_type(evaluation.scores, tuple[float | None, ...])
        comparison = tg.compare(evaluation, evaluation)
        assert_type(comparison, tg.Comparison)
        assert_type(comparison.difference, float)
        result = tg.Trainer(max_steps=1).fit(
            program, nn.ExactMatch(), optim.PatchSearch(program.parameters()), ROWS, ROWS
        )
        assert_type(result, tg.TrainResult)
        assert_type(result.best, dict[str, str])
        assert_type(asyncio.run(ashrink(program, nn.ExactMatch(), ROWS)), ShrinkResult)
    assert spent.spent.calls > 0


def test_parameters_optimizers_and_data() -> None:
    """Modules and what is made of them."""
    program = Echo()
    for name, parameter in program.named_parameters():
        assert_type(name, str)
        assert_type(parameter, nn.Parameter)
    optimizer = optim.TGD(program.parameters(), None, ["be brief"], 4)
    optimizer.zero_grad()
    first, second = data.random_split(ROWS, [0.5, 0.5], seed=0)
    assert_type(first, data.Subset[dict[str, str]])
    for batch in data.DataLoader(second, batch_size=2):
        assert_type(batch, list[dict[str, str]])


async def check_awaited(program: nn.Module, loss: tg.Variable, optimizer: optim.Optimizer) -> None:
    """What is awaited gives what its twin gives; this is checked, and not run."""
    assert_type(await loss.abackward(), None)
    assert_type(await tg.abackward([loss]), None)
    assert_type(await tg.autograd.agrad(loss, loss), tuple[list[tg.Variable], ...])
    assert_type(await tg.autograd.agrad(loss, loss, allow_unused=True), tuple[list[tg.Variable] | None, ...])
    assert_type(await tg.aevaluate(program, ROWS, nn.ExactMatch()), tg.Evaluation)
    start = lambda: (program, optimizer)  # noqa: E731
    assert_type(await tg.across_validate(start, nn.ExactMatch(), ROWS), tg.CrossValidation)
    assert_type(await tg.Trainer().afit(program, nn.ExactMatch(), optimizer, ROWS, ROWS), tg.TrainResult)


class Row(TypedDict):
    """An example whose fields have types."""

    word: str
    target: str


class Rows:
    """A map-style dataset, as PyTorch has them."""

    def __len__(self) -> int:
        return len(ROWS)

    def __getitem__(self, index: int) -> dict[str, str]:
        return ROWS[index]


def test_examples_may_be_typed_and_in_any_dataset() -> None:
    """No cast is needed for any of them, nor for groups of parameters."""
    program, typed = Echo(), [Row(word="one", target="one")]
    chat = program.chat
    with tg.use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):
        assert_type(tg.evaluate(program, typed, nn.ExactMatch()).mean, float)
        assert tg.evaluate(program, Rows(), nn.ExactMatch()).mean == 1
    assert_type(data.DataLoader(typed), data.DataLoader[Row])
    assert_type(data.random_split(Rows(), [1.0], seed=0), list[data.Subset[dict[str, str]]])
    groups = optim.TGD([{"params": chat.parameters(), "max_edits": 2}])
    assert groups.param_groups[0]["max_edits"] == 2
    assert train.Guards(["one"], {("word", "one"): 0.5}).never_break == ("one",)


class Climb(optim.Searcher):
    """A search as users write it: with feedback, a proposer, and what it will do."""

    def __init__(self, params: Iterable[tg.Variable], rounds: int = 2) -> None:
        super().__init__(params, {})
        self.rounds = rounds
        self.scored: dict[tuple[str, ...], float] = {}

    def texts(self) -> tuple[str, ...]:
        return max(self.scored, key=self.scored.__getitem__)

    @property
    def expected(self) -> float:
        return max(self.scored.values())

    def score(self, objective: optim.Objective, texts: tuple[str, ...]) -> None:
        known = [score for score in objective.scores(texts, range(len(objective.val))) if score is not None]
        self.scored[texts] = sum(known) / len(known)

    def decide(self, objective: optim.Objective) -> optim.Decision | None:
        if not self.scored:
            self.score(objective, tuple(str(each.data) for each in self.variables()))
        if self.steps == self.rounds:
            return None
        (prompt,), before = self.variables(), self.texts()
        heard = objective.feedback(before, range(8))
        brief = proposers.Brief.of(prompt, heard.gradients[0], before[0], step=self.steps + 1)
        (made,) = self.wait_for(proposers.propose(proposers.Rewrite(), brief, llm.model_for("optimizer")))
        assert_type(made, proposers.Proposal)
        self.score(objective, (made.text,))
        change = optim.Change(prompt, before[0], made.text, edits=made.edits, items=brief.items)
        return optim.Decision(
            self.steps + 1, "rewrite", scores=heard.scores, changes=(change,), kept=self.texts() != before
        )

    def volume(self, sizes: optim.Sizes) -> optim.Volume:
        rounds = sizes.decisions(self.rounds)
        return optim.Volume(
            decisions=optim.Range(0, rounds, rounds),
            examples=optim.Range(0, rounds * (8 + sizes.val), rounds * (8 + sizes.val)),
            feedback=optim.Range(0, 8 * rounds, 5 * rounds),
            asked=optim.Range(0, 2 * rounds, rounds),
        )


class Told:
    """A callback as users write it."""

    def __init__(self) -> None:
        self.means: list[float] = []

    def on_event(self, event: train.events.Event) -> None:
        if isinstance(event, train.events.RunEnded):
            assert_type(event.result, tg.TrainResult)
            assert event.result.best_val is not None
            self.means.append(event.result.best_val.mean)


def test_a_search_and_a_callback_of_ones_own() -> None:
    """What they are given has types, and what they give back fits."""
    task = simulated_task(rules=4, seed=1, train=16, val=16)
    program, told = task.program(), Told()
    with tg.use_models(forward=task.model):
        result = tg.Trainer(callbacks=[told]).fit(program, task.loss, Climb(program.parameters()), task.train, task.val)
    assert len(result.steps) == 2
    assert told.means == [result.best_val.mean if result.best_val else 0.0]
