"""`Objective.runs`: which calls a program makes on an example, which texts each uses, what it is given and answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn, ops, optim
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.llm import Completion, Request
from textgrad_engine.optim.demo_runs import Asked, Run
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Objective
from textgrad_engine.train.asked import Asking

ROWS = [{"id": f"t{n}", "word": word, "target": word.upper()} for n, word in enumerate(("ant", "bee", "cat"))]


def answer(request: Request) -> Any:
    """The first letter of the system prompt, and what is asked."""
    if request.purpose == "backward":
        return feedback_for(request, "Wrong.")
    return f"{request.messages[0].text[:1]}:{request.messages[-1].text}"


class Program(nn.Module):
    """Two prompts, used as a function of it and of a word says.

    Args:
        way: the function.
    """

    def __init__(self, way: Any) -> None:
        super().__init__()
        self.one = nn.Parameter("one", role="first prompt")
        self.two = nn.Parameter("two", role="second prompt")
        self.way = way

    def forward(self, word: str) -> Any:
        return self.way(self, word)

    def ask(self, prompt: Any, **values: Any) -> Any:
        """Ask with one of the prompts."""
        names = " ".join(f"{{{name}}}" for name in values)
        return nn.ChatCompletion(names, system=prompt)(**values)


def runs(way: Any, answers: Any = answer, *, feedback: bool = False) -> list[Run | None]:
    """What a program does on the examples, while it is evaluated or while feedback is taken."""
    program = Program(way)
    objective = Objective(program, nn.Metric(lambda said, wanted: 1.0 * (said == wanted), "it is right"), ROWS)
    objective.note_calls()
    texts = ("one", "two")
    model = FunctionModel(answers)
    with tg.use_models(forward=model):
        if feedback:
            objective.feedback(texts, range(3))
        else:
            objective.scores(texts, range(3), "train")
        count = len(model.requests)
        found = objective.runs(texts, range(3))
    assert len(model.requests) == count  # nothing is run, or asked, once more
    return found


def asked(way: Any, answers: Any = answer, **more: Any) -> list[tuple[tuple[int, ...], Any, str]]:
    """The calls of the first example: the texts, what was given, the answer."""
    found = runs(way, answers, **more)
    assert found[0] is not None
    return [(each.texts, dict(each.given), each.answer) for each in found[0].asked]


def chain(program: Any, word: str) -> Any:
    return program.ask(program.two, draft=program.ask(program.one, word=word), word=word)


CHAIN = [((0,), {"word": "ant"}, "o:ant"), ((1,), {"draft": "o:ant", "word": "ant"}, "t:o:ant ant")]


@pytest.mark.parametrize("feedback", [False, True])
def test_each_call_has_the_prompt_that_it_uses_and_not_those_before_it(feedback: bool) -> None:
    """Whether or not something is recorded for a backward pass."""
    assert asked(chain, feedback=feedback) == CHAIN
    found = runs(chain, feedback=feedback)
    assert [run and run.whole.answer for run in found] == ["t:o:ant ant", "t:o:bee bee", "t:o:cat cat"]


def test_python_between_two_calls_hides_neither() -> None:
    """Joined to what it was made of or not: it is the call that was right, not the way of feedback."""

    def reading(program: Any, word: str) -> Any:
        return program.ask(program.two, draft=str(program.ask(program.one, word=word)), word=word)

    def joining(program: Any, word: str) -> Any:
        draft = program.ask(program.one, word=word)
        return program.ask(program.two, draft=ops.straight_through(str(draft), draft), word=word)

    def plain(program: Any, word: str) -> str:
        with tg.no_grad():
            return str(chain(program, word))

    assert asked(reading) == asked(joining) == asked(plain) == CHAIN
    assert asked(joining, feedback=True) == CHAIN


def test_a_step_that_a_branch_leaves_out_is_not_there() -> None:
    """Of one example it is, of another not."""

    def branch(program: Any, word: str) -> Any:
        said = program.ask(program.one, word=word)
        return program.ask(program.two, draft=said) if "bee" in str(said) else said

    assert [len(run.asked) for run in runs(branch) if run] == [1, 2, 1]


def test_a_loop_and_pmap_are_in_the_order_of_the_program() -> None:
    """Whichever answer comes first."""
    later = {"a": "b", "b": "c"}
    done: dict[str, asyncio.Event] = {}

    async def backwards(request: Request) -> str:
        item = request.messages[-1].text
        mine = done.setdefault(item, asyncio.Event())
        if item in later:  # each waits for the one that was asked after it
            await done.setdefault(later[item], asyncio.Event()).wait()
        mine.set()
        return item.upper()

    def mapped(program: Any, word: str) -> Any:
        parts = func.pmap(lambda item: str(program.ask(program.one, item=item)))(list("abc"))
        return program.ask(program.two, parts="".join(parts))

    def looped(program: Any, word: str) -> Any:
        parts = [program.ask(program.one, item=item) for item in "abc"]
        return program.ask(program.two, parts=ops.join(parts, ""))

    def batched(program: Any, word: str) -> Any:
        return program.ask(program.two, parts="".join(program.ask(program.one, item=list("abc")).data))

    expected = [((0,), {"item": item}, item.upper()) for item in "abc"] + [((1,), {"parts": "ABC"}, "ABC")]
    for way in (mapped, looped, batched):
        done.clear()
        assert asked(way, backwards) == expected, way.__name__


def test_vmap_inside_of_a_program_is_seen_entry_by_entry() -> None:
    """As a loop is."""

    def way(program: Any, word: str) -> Any:
        parts = func.vmap(lambda item: program.ask(program.one, item=item))(["a", "b"])
        return program.ask(program.two, parts=" ".join(parts.data))

    assert asked(way) == [
        ((0,), {"item": "a"}, "o:a"),
        ((0,), {"item": "b"}, "o:b"),
        ((1,), {"parts": "o:a o:b"}, "t:o:a o:b"),
    ]


def test_a_prompt_counts_wherever_it_stands_and_is_not_what_was_given() -> None:
    """As a part of a longer system prompt, as the template, in a slot, or as a piece of a message."""

    def longer(program: Any, word: str) -> Any:
        return program.ask(ops.join([program.one, "Be brief."], " "), word=word)

    def template(program: Any, word: str) -> Any:
        return nn.ChatCompletion(ops.add(program.one, " {word}"), system="s")(word=word)

    def slot(program: Any, word: str) -> Any:
        return nn.ChatCompletion("{rules} {word}", system="s")(rules=program.one, word=word)

    def piece(program: Any, word: str) -> Any:
        content = [program.one, "\n\nThe word: ", word]
        return ops.chat_completion(None, [{"role": "user", "content": content}])

    def messages(program: Any, word: str) -> Any:
        prompt = {"role": "system", "content": [program.one, program.two]}
        return ops.chat_completion(None, [prompt, {"role": "user", "content": f"The word: {word}"}])

    for way in (longer, template, slot):
        assert [(texts, given) for texts, given, _ in asked(way)] == [((0,), {"word": "ant"})], way.__name__
    assert asked(piece)[0][:2] == ((0,), {"user": "The word: ant"})
    assert asked(messages)[0][:2] == ((0, 1), {"user": "The word: ant"})


@pytest.mark.parametrize("kind", ["trained by another", "frozen", "buffer"])
@pytest.mark.parametrize("way", ["alone", "together", "feedback"])
def test_a_text_of_the_program_that_is_not_trained_is_not_what_an_example_was_given(kind: str, way: str) -> None:
    """A demonstration has the example in it, and not once more the task that the prompt around it states."""

    class TaskAndExamples(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.examples = nn.Parameter("one", role="examples")
            if kind == "buffer":
                self.register_buffer("task", tg.Variable("Sort it.", role="task"))
            else:
                self.task = nn.Parameter("Sort it.", role="task", requires_grad=kind == "trained by another")
            self.chat = nn.ChatCompletion("{task} {word} {land}", system="{task}\n{examples}")

        def forward(self, word: str) -> Any:
            land = ops.add(self.task, " Rome")  # has something else in it, too
            return self.chat(word=word, land=land, task=self.task, examples=self.examples)

    program = TaskAndExamples()
    objective = Objective(program, nn.ExactMatch(), ROWS, parameters=[program.examples])
    objective.note_calls()
    with tg.use_models(forward=FunctionModel(answer)):
        if way == "together":
            objective.matrix([("one",), ("two",)], range(3), "train")
        elif way == "feedback":
            objective.feedback(("one",), range(3))
        else:
            objective.scores(("one",), range(3), "train")
        (run, *_) = objective.runs(("one",), range(3))
    assert run is not None
    assert dict(run.asked[0].given) == {"word": "ant", "land": "Sort it. Rome"}


def test_a_prompt_that_two_parts_share_is_one() -> None:
    """Under whichever name a part has it."""

    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.draft = nn.ChatCompletion("{word}", system=nn.Parameter("one", role="prompt"))
            self.final = nn.ChatCompletion("{draft}", system=self.draft.system)

        def forward(self, word: str) -> Any:
            return self.final(draft=self.draft(word=word))

    objective = Objective(Shared(), nn.ExactMatch(), ROWS)
    with tg.use_models(forward=FunctionModel(answer)):
        (run,) = objective.runs(("one",), [0])
    assert run is not None
    assert run.asked == (Asked((0,), (("word", "ant"),), "o:ant"), Asked((0,), (("draft", "o:ant"),), "o:o:ant"))


def test_a_call_with_tools_is_one_call_with_its_last_answer() -> None:
    """What is said between is not shown."""

    def look_up(word: str) -> str:
        """Look a word up."""
        return f"{word} is an animal"

    def way(program: Any, word: str) -> Any:
        return nn.ChatCompletion("{word}", system=program.one, tools=[look_up])(word=word)

    def answers(request: Request) -> Any:
        if request.messages[-1].role == "tool":
            return "an animal"
        call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"word": "ant"}'}}
        return Completion(text="", tool_calls=(call,), finish_reason="tool_calls")

    assert asked(way, answers) == [((0,), {"word": "ant"}, "an animal")]


def test_a_call_that_failed_without_the_end_depending_on_it_is_left_out() -> None:
    """An example has its score, and its other calls."""

    def way(program: Any, word: str) -> Any:
        program.ask(program.one, lost=word)
        return program.ask(program.two, word=word)

    for error in (ContentFiltered("nothing"), ValueError("a bug")):

        def losing(request: Request, error: Exception = error) -> str:
            if request.messages[0].text == "one":
                raise error
            return "said"

        assert asked(way, losing) == [((1,), {"word": "ant"}, "said")]


def test_an_example_that_goes_unanswered_has_no_run() -> None:
    """The others have."""

    def losing(request: Request) -> str:
        if "bee" in request.messages[-1].text:
            raise ContentFiltered("nothing")
        return "said"

    assert [run is None for run in runs(chain, losing)] == [False, True, False]


def test_a_judge_is_no_part_of_the_program() -> None:
    """What the loss asks is not what the program asks."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("one", role="prompt"))
    objective = Objective(program, nn.Judge("Is it right?"), ROWS)
    judge = FunctionModel(lambda request: {"score": 1, "explanation": ""})
    with tg.use_models(forward=FunctionModel(answer), judge=judge):
        (run,) = objective.runs(("one",), [0])
    assert run is not None
    assert len(run.asked) == 1
    assert judge.requests


def test_texts_that_are_run_together_have_the_calls_that_each_has_alone() -> None:
    """Of several candidates at once, with a first prompt that is not trained and asked once for both of them."""

    def objective() -> tuple[Objective, FunctionModel]:
        first = nn.ChatCompletion("{word}", system=nn.Parameter("fixed", role="fixed prompt"))
        second = nn.ChatCompletion("{draft}", system=nn.Parameter("one", role="prompt"))
        third = nn.ChatCompletion("{last}", system=nn.Parameter("two", role="prompt"))
        program = nn.Sequential(first, second, third)
        trained = [second.system, third.system]
        return Objective(program, nn.ExactMatch(), ROWS, parameters=trained), FunctionModel(answer)

    candidates = [("one", "two"), ("eins", "two")]
    (together, model), (alone, _) = objective(), objective()
    with tg.use_models(forward=model):
        together.note_calls()
        together.matrix(candidates, range(3), "train")
        assert len(model.requests) == 3 + 6 + 6
        both = [together.runs(texts, range(3)) for texts in candidates]
        assert len(model.requests) == 15
        assert both == [alone.runs(texts, range(3)) for texts in candidates]
    assert both[1][2] is not None
    assert [(each.texts, each.answer) for each in both[1][2].asked] == [
        ((), "f:cat"), ((0,), "e:f:cat"), ((1,), "t:e:f:cat")
    ]  # fmt: skip


def test_validation_examples_have_their_runs_where_these_are_asked_for_first() -> None:
    """A score that came before is not paid for again, and nobody has noted what was asked for it."""
    objective = Objective(Program(chain), nn.ExactMatch(), ROWS, ROWS[:2])
    texts = ("one", "two")
    with tg.use_models(forward=FunctionModel(answer)):
        objective.scores(texts, [0])
        found = objective.runs(texts, [0, 1], "val")
    assert found[0] is None
    assert found[1] is not None
    assert [each.answer for each in found[1].asked] == ["o:bee", "t:o:bee bee"]


@pytest.mark.parametrize(("optimizer", "notes"), [
    (lambda given: optim.PatchSearch(given), False),
    (lambda given: optim.OPRO(given), False),
    (lambda given: optim.RandomSearch(given, proposer=optim.proposers.Unaided()), False),
    (lambda given: optim.ParetoSearch(given), False),
    (lambda given: optim.BeamSearch(given), False),
    (lambda given: optim.TGD(given), False),
    (lambda given: optim.ParetoSearch(given, proposer=optim.proposers.Demonstrations()), True),
    (lambda given: optim.BeamSearch(given, proposer=optim.proposers.Demonstrations()), True),
    (lambda given: optim.BootstrapDemos(given), True),
])  # fmt: skip
def test_only_for_an_optimizer_that_shows_examples_is_it_noted_what_is_asked(
    optimizer: Any, notes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes memory and time of each call; TGD's own runs are those of the trainer's validation."""
    noted: list[Any] = []
    monkeypatch.setattr(Asking, "process", lambda self, function, args: noted.append(1) or function.apply(*args))
    program = Program(chain)

    def refusing(request: Request) -> str:
        raise ContentFiltered("nothing")

    with tg.use_models(forward=FunctionModel(answer), optimizer=FunctionModel(refusing)):
        trainer = tg.Trainer(max_steps=1, batch_size=2)
        trainer.fit(program, nn.ExactMatch(), optimizer(program.parameters()), ROWS, ROWS)
    assert bool(noted) == notes


def test_a_proposer_of_ones_own_may_show_what_was_solved() -> None:
    """Nobody knows whether it reads `Brief.demos`, so it is there."""
    shown: list[Any] = []

    class Mine(optim.proposers.Rewrite):
        async def propose(self, brief: Any, model: Any, problem: str) -> Any:
            shown.extend(brief.demos)
            return optim.proposers.Proposal(brief.text)

    program = nn.ChatCompletion("{word}", system=nn.Parameter("one", role="prompt"))
    rows = [{**row, "target": "o:bee"} for row in ROWS]
    with tg.use_models(forward=FunctionModel(answer)):
        optim.ParetoSearch(program.parameters(), proposer=Mine()).step(Objective(program, nn.ExactMatch(), rows))
    assert "o:bee" in [demo.answer for demo in shown]


def test_what_a_model_is_told_of_a_tool_is_no_prompt_of_the_call() -> None:
    """No example is shown in a description: an endpoint takes a short one, and it speaks of one tool."""

    def way(program: Any, word: str) -> Any:
        tools = [nn.Tool({"type": "function", "function": {"name": "look"}}, program.two)]
        return nn.ChatCompletion("{word}", system=program.one, tools=tools)(word=word)

    assert asked(way) == [((0,), {"word": "ant"}, "o:ant")]
