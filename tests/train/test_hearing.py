"""Training without a critic: the optimizer reads the cases themselves."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Trainer, llm, nn, optim
from textgrad_engine.errors import DataError, RunError
from textgrad_engine.optim import Optimizer
from textgrad_engine.report.lineage import problems_of
from textgrad_engine.testing import FunctionModel, SimulatedTask, simulated_task
from textgrad_engine.train import cross_validate
from textgrad_engine.train.estimate import estimate

OPTIMIZERS: dict[str, Callable[[Any], Optimizer]] = {
    "TGD": lambda params: optim.TGD(params, max_edits=6),
    "TGD rewriting": lambda params: optim.TGD(params, mode="rewrite"),
    "PatchSearch": lambda params: optim.PatchSearch(params, batch_size=12),
    "ParetoSearch": lambda params: optim.ParetoSearch(params, batch_size=8, proposals=16),
    "BeamSearch": lambda params: optim.BeamSearch(params, rounds=2, beam=2),
}


def task(**settings: Any) -> SimulatedTask:
    return simulated_task(**{"rules": 4, "train": 32, "val": 24, "test": 16, "seed": 3, **settings})


def seen(each: SimulatedTask) -> tuple[FunctionModel, list[llm.Request]]:
    """The task's model, and what the optimizer's model is asked."""
    asked: list[llm.Request] = []

    async def model(request: llm.Request) -> llm.Completion:
        assert request.purpose in ("forward", "optimizer")
        if request.purpose == "optimizer":
            asked.append(request)
        return await each.model.complete(request)

    return FunctionModel(model), asked


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_learns_from_the_cases_alone(name: str) -> None:
    """No critic is asked, and what its model is asked shows cases and says what to do with them."""
    given = task()
    program, (model, asked) = given.program(), seen(given)
    with tg.use_models(forward=model):
        result = Trainer(critic=False, max_epochs=2, batch_size=16).fit(
            program, given.loss, OPTIMIZERS[name](program.parameters()), given.train, given.val
        )
    assert result.best_val.mean > result.seed_val.mean
    assert "backward" not in result.usage
    shown = [request.messages[-1].text for request in asked if "\n[1]" in request.messages[-1].text]
    assert shown
    for text in shown:
        assert text.count("system message: this text.") >= 1
        assert text.count("nobody has said yet what this text lacks") == 1
        assert "The answer was:" not in text


def test_a_critics_words_are_not_taken_for_cases() -> None:
    given = task()
    program, asked = given.program(), []

    async def model(request: llm.Request) -> llm.Completion:
        if request.purpose == "optimizer":
            asked.append(request.messages[-1].text)
        return await given.model.complete(request)

    with tg.use_models(forward=FunctionModel(model)):
        Trainer(batch_size=16).fit(program, given.loss, optim.TGD(program.parameters()), given.train, given.val)
    assert asked
    assert not [text for text in asked if "nobody has said yet" in text]


def test_two_prompts_in_a_chain_are_trained() -> None:
    given = task(parameters=2)
    program, (model, _) = given.program(), seen(given)
    with tg.use_models(forward=model):
        result = Trainer(critic=False, max_steps=2, batch_size=16).fit(
            program, given.loss, optim.TGD(program.parameters(), max_edits=6), given.train, given.val
        )
    assert len(result.steps) == 2
    heard = {change.name for step in result.steps for change in step.changes if change.feedback}
    assert heard == {name for name, _ in program.named_parameters()}


def test_a_run_is_resumed_with_the_critic_it_was_begun_with(tmp_path: Any) -> None:
    """A critic is a setting that decides what is asked."""
    given = task()

    def run(resume: bool, critic: bool, steps: int) -> None:
        program = given.program()
        with tg.use_models(forward=given.model), tg.budget(calls=steps):
            Trainer(critic=critic, batch_size=16, run_dir=tmp_path / "run", resume=resume).fit(
                program, given.loss, optim.TGD(program.parameters()), given.train, given.val
            )

    run(resume=False, critic=False, steps=60)
    with pytest.raises(RunError, match=r"critic=True instead of critic=False"):
        run(resume=True, critic=True, steps=400)
    run(resume=True, critic=False, steps=400)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_estimate_asks_no_critic_and_holds(name: str) -> None:
    """Each figure of the run is in its range, and what is usual of what the optimizer reads is of the right size."""
    given = task()
    trainer = Trainer(critic=False, max_epochs=2, batch_size=16)
    one, other = given.program(), given.program()
    sets = given.train, given.val, given.test
    found = estimate(trainer, one, given.loss, OPTIMIZERS[name](one.parameters()), *sets)
    assert set(found.calls) == {"forward", "optimizer"}
    with tg.use_models(forward=given.model):
        result = trainer.fit(other, given.loss, OPTIMIZERS[name](other.parameters()), *sets)
    for purpose, used in result.usage.items():
        assert found.calls[purpose].low <= used.calls <= found.calls[purpose].high
        assert found.input_tokens[purpose].low <= used.input_tokens <= found.input_tokens[purpose].high
    told, used = found.input_tokens["optimizer"], result.usage["optimizer"]
    mean = used.input_tokens / used.calls
    assert mean / 2.5 < told.usual / found.calls["optimizer"].usual < 2.5 * mean


def test_a_judge_is_asked_all_the_same() -> None:
    """It scores answers; a critic says what a score asks of the texts."""
    asked = []

    def model(request: llm.Request) -> Any:
        asked.append(request.purpose)
        if request.purpose == "judge":
            return {"score": 0, "explanation": "Too short."}
        if request.purpose == "optimizer":
            return {"edits": [{"op": "add", "line": 1, "text": "Say more.", "reason": "", "feedback": [1]}]}
        return "no"

    program = nn.ChatCompletion("{q}", system=nn.Parameter("Answer."))
    rows = [{"q": "one"}, {"q": "two"}]
    with tg.use_models(forward=FunctionModel(model)):
        Trainer(critic=False, max_steps=1).fit(
            program, nn.Judge("Is it long?"), optim.TGD(program.parameters()), rows, rows
        )
    assert set(asked) == {"forward", "judge", "optimizer"}


@pytest.mark.parametrize(
    "make",
    [
        optim.OPRO,
        optim.BootstrapDemos,
        lambda params: optim.TGD(params, use_feedback=False),
        lambda params: optim.ParetoSearch(params, proposer=optim.proposers.Demonstrations(2)),
    ],
    ids=["OPRO", "BootstrapDemos", "TGD without feedback", "ParetoSearch that shows examples"],
)
def test_that_no_critic_is_asked_is_refused_where_none_would_be(make: Callable[[Any], Optimizer]) -> None:
    """It would change nothing, so whoever asks for it means another optimizer."""
    program = nn.ChatCompletion("{q}", system=nn.Parameter("Answer."), model=FunctionModel(lambda request: "no"))
    rows = [{"q": "one", "target": "no"}, {"q": "two", "target": "yes"}]
    with pytest.raises(ValueError, match=r"Trainer\(critic=False\) means nothing to this \w+, which asks no critic"):
        Trainer(critic=False, max_steps=1).fit(program, nn.ExactMatch(), make(program.parameters()), rows, rows)


def test_a_page_that_is_longer_than_the_critics_context_ends_no_run() -> None:
    """The critic is shown its ends, the step tells of it, and the others are as they were."""
    rows = [{"page": f"Page {n}. " + "words " * (9000 if n % 4 == 0 else 9), "target": "B"} for n in range(16)]
    asked: list[str] = []

    def answer(request: llm.Request) -> Any:
        if request.purpose == "forward":
            return "B" if "say B" in request.messages[0].text else "A"
        if request.purpose == "backward":
            asked.append(request.messages[-1].text)
            return {"case_1": {"system": "Always say B."}}
        return {"edits": [{"op": "add", "line": 1, "text": "Always say B.", "reason": "r", "feedback": [1]}]}

    program = nn.ChatCompletion("{page}", system=nn.Parameter("Answer.", role="system prompt"))
    small = llm.resolve(FunctionModel(answer, name="small"), context=4096)
    with tg.use_models(forward=FunctionModel(answer), backward=small):
        result = Trainer(max_epochs=1, batch_size=8).fit(
            program, nn.ExactMatch(), optim.TGD(program.parameters()), rows[:8], rows[8:]
        )
    assert result.best["system"] == "Answer.\nAlways say B."
    (step,) = result.steps
    (problem,) = problems_of(step)
    assert problem == (
        "the critic's context had no room for 2 messages or pieces of feedback, or for the middle of such, named in "
        "the log"
    )
    assert sum("more characters …]" in text for text in asked) == 2
    assert all(llm.tokens.count(text) < 2048 for text in asked)


def test_cases_that_are_longer_than_the_optimizers_context_lose_no_step(caplog: pytest.LogCaptureFixture) -> None:
    """Each example has a page of 5,000 tokens: its middle is left out, which is said, and its ends are there."""
    rows = [
        {"page": f"Begin {n}.\n" + "words of a long page " * 1000 + f"\nEnd {n}.", "target": "B"} for n in range(20)
    ]
    asked: list[str] = []

    def answer(request: llm.Request) -> Any:
        if request.purpose == "forward":
            return "B" if "say B" in request.messages[0].text else "A"
        asked.append(request.messages[-1].text)
        return {"edits": [{"op": "add", "line": 1, "text": "Always say B.", "reason": "r", "feedback": [1]}]}

    program = nn.ChatCompletion("{page}", system=nn.Parameter("Answer.", role="system prompt"))
    optimizer = optim.PatchSearch(program.parameters(), batch_size=4)
    small = llm.resolve(FunctionModel(answer, name="small"), context=4096)
    with tg.use_models(forward=FunctionModel(answer), optimizer=small):
        trainer = Trainer(critic=False, max_epochs=1, batch_size=4)
        result = trainer.fit(program, nn.ExactMatch(), optimizer, rows[:8], rows[8:])
    assert "say B" in result.best["system"]
    assert not any(step.problems for step in result.steps)
    for text in asked:
        assert llm.tokens.count(text) < 4096
        assert text.count("more characters …]") == text.count("Begin ") == text.count("End ") >= 1
        assert "\n</message-" in text
    assert "the middle of long messages was left out" in caplog.text


# notes


def noted(each: SimulatedTask) -> list[dict[str, Any]]:
    return [{**row, "why": f"note {n}" if n % 2 else None} for n, row in enumerate(each.train)]


def test_notes_that_nobody_would_read_are_refused() -> None:
    """Before anything is asked: no example has the field, the program is shown it, or the optimizer hears nothing."""
    given = task()
    program = given.program()
    field = next(name for name in given.train[0] if name not in ("target", "id"))
    sets = given.train, given.val
    with pytest.raises(DataError, match=r"has no field 'why' for the notes, and nor has any other; it has"):
        Trainer(notes="why").fit(program, given.loss, optim.TGD(program.parameters()), *sets)
    with pytest.raises(DataError, match=f"notes='{field}'.: the program is shown that field"):
        Trainer(notes=field).fit(program, given.loss, optim.TGD(program.parameters()), *sets)
    with pytest.raises(ValueError, match=r"notes='why'.* means nothing to this OPRO, which hears no feedback"):
        Trainer(notes="why").fit(program, given.loss, optim.OPRO(program.parameters()), noted(given), given.val)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_who_gives_feedback_is_shown_the_notes_of_its_examples(name: str) -> None:
    """In steps and in searches; the program and the optimizer are shown none."""
    given = task()
    program, shown = given.program(), dict[str, int]()

    async def model(request: llm.Request) -> llm.Completion:
        for message in request.messages:
            shown[request.purpose] = shown.get(request.purpose, 0) + message.text.count("<note-")
        return await given.model.complete(request)

    with tg.use_models(forward=FunctionModel(model)):
        Trainer(notes="why", max_steps=1, batch_size=16).fit(
            program, given.loss, OPTIMIZERS[name](program.parameters()), noted(given), given.val
        )
    assert shown["backward"] > 0
    assert (shown["forward"], shown["optimizer"]) == (0, 0)


def test_an_estimate_counts_notes() -> None:
    """They are a part of what the critic reads."""
    given = task()
    program = given.program()
    rows = [{**row, "why": "because " * 400} for row in given.train]
    made = [
        estimate(
            Trainer(notes=notes), program, given.loss, optim.TGD(program.parameters()), rows, given.val
        ).input_tokens["backward"]
        for notes in (None, "why")
    ]
    assert made[1].high > made[0].high + 400 * 16


def six(notes: dict[int, Any]) -> tuple[list[dict[str, Any]], FunctionModel]:
    """Six examples, of which these have notes, by position; and a model that is right once it is told."""
    rows = [{"id": f"t{n}", "q": f"q{n}", "target": "B", **({"why": notes[n]} if n in notes else {})} for n in range(6)]

    def answer(request: llm.Request) -> Any:
        if request.purpose == "backward":
            return {"case_1": {"system": "Say B."}}
        if request.purpose == "optimizer":
            return {"edits": [{"op": "add", "line": 1, "text": "Say B.", "reason": "", "feedback": [1]}]}
        return "B" if "Say B." in request.messages[0].text else "A"

    return rows, FunctionModel(answer)


def start() -> tuple[nn.ChatCompletion, Optimizer]:
    program = nn.ChatCompletion("{q}", system=nn.Parameter("Answer.", role="system prompt"))
    return program, optim.TGD(program.parameters())


@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC")])
def test_notes_are_found_whichever_way_an_accent_is_written(forms: tuple[Any, Any]) -> None:
    """As fields of the program are, so one that it is shown is none for notes, either."""
    given, named = (unicodedata.normalize(form, "Erklärung") for form in forms)
    rows, model = six({})
    rows = [{**row, given: "Look twice."} for row in rows]
    program, optimizer = start()
    with tg.use_models(forward=model):
        Trainer(notes=named, max_steps=1).fit(program, nn.ExactMatch(), optimizer, rows, rows[:1])
    assert any("Look twice." in request.messages[-1].text for request in model.requests)
    shown = nn.ChatCompletion("{q} {Erklärung}", system=nn.Parameter("Answer.", role="system prompt"))
    with pytest.raises(DataError, match="the program is shown that field"):
        Trainer(notes=named).fit(shown, nn.ExactMatch(), optim.TGD(shown.parameters()), rows, rows[:1])


def test_of_few_notes_a_fold_may_train_on_none() -> None:
    """Examples without one need not have the field; a cross-validation had ended in the middle, with what it cost."""
    rows, model = six({4: "Look twice."})
    with tg.use_models(forward=model):
        found = cross_validate(start, nn.ExactMatch(), rows, folds=3, trainer=Trainer(notes="why", max_steps=1))
    assert len(found.folds) == 3
    read = [request.messages[-1].text for request in model.requests if request.purpose == "backward"]
    assert sum("Look twice." in text for text in read) == 3  # in two folds, and on all examples


def test_notes_that_no_fold_could_have_are_refused_before_the_first_one() -> None:
    rows, model = six({})
    with tg.use_models(forward=model), pytest.raises(DataError, match=r"has no field 'why' for the notes"):
        cross_validate(start, nn.ExactMatch(), rows, folds=3, trainer=Trainer(notes="why"))
    assert model.requests == []


def test_a_note_is_words_whatever_a_table_has_for_it() -> None:
    """An image had been sent as a text of its letters, and an empty list as a note."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 200}}
    chat = [{"role": "user", "content": "Why B?"}, {"role": "assistant", "content": "It is late."}]
    rows, model = six({0: picture, 1: [], 2: {}, 3: chat, 4: ["a", "b"], 5: float("nan")})
    program, optimizer = start()
    with tg.use_models(forward=model):
        Trainer(notes="why", max_steps=1).fit(program, nn.ExactMatch(), optimizer, rows, rows[:1])
    read = [request.messages[-1].text for request in model.requests if request.purpose == "backward"]
    noted = [text.partition("<note-")[2] for text in read if "<note-" in text]
    assert len(noted) == 3
    assert sum("[image, 2 kB]" in text for text in noted) == 1
    assert sum("It is late.\n</message-" in text for text in noted) == 1
    assert sum('\n["a", "b"]\n' in text for text in noted) == 1
    assert not any("base64" in text for text in read)


def test_how_many_share_a_feedback_call_is_told_to_who_has_a_say_in_it() -> None:
    """A search has a setting of its own; the trainer's was taken, and did nothing."""
    given = task()
    program, asked = given.program(), FunctionModel(lambda request: pytest.fail("nothing is to be asked"))
    search = optim.PatchSearch(program.parameters())
    with (
        tg.use_models(forward=asked),
        pytest.raises(ValueError, match=r"write PatchSearch\(feedback_batch_size=4\) instead$"),
    ):
        Trainer(feedback_batch_size=4).fit(program, given.loss, search, given.train, given.val)
    search = optim.PatchSearch(program.parameters(), feedback_batch_size=4)
    with tg.use_models(forward=given.model):
        assert (
            Trainer(feedback_batch_size=4, max_steps=1).fit(program, given.loss, search, given.train, given.val).steps
        )
