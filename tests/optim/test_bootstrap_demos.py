"""BootstrapDemos: which examples are shown, where they come from, and that the scores decide."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from textgrad_engine import nn, optim, use_models
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.llm import Request
from textgrad_engine.optim.proposers import Demonstrations
from textgrad_engine.testing import FunctionModel
from textgrad_engine.testing.simulated import SimulatedTask
from textgrad_engine.train import Objective

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")
TRAIN = [{"id": word, "word": word, "target": word.upper()} for word in WORDS]
VAL = [{"id": f"v{word}", "word": word[::-1], "target": word[::-1].upper()} for word in WORDS]


def answer(request: Request) -> str:
    """Shouts when it is shown at least two examples; and it knows the word fox."""
    word = request.messages[-1].text
    return word.upper() if request.messages[0].text.count("Right answer:") >= 2 or word == "fox" else word


def run(train: Any = TRAIN, val: Any = VAL, system: str = "Repeat.", **settings: Any) -> Any:
    program = nn.ChatCompletion("{word}", system=nn.Parameter(system, role="system prompt"))
    optimizer = optim.BootstrapDemos(program.parameters(), **{"sets": 2, "labelled": 3, "seed": 1, **settings})
    objective = Objective(program, nn.ExactMatch(), train, val)
    model = FunctionModel(answer)
    decided = []
    with use_models(forward=model):
        while (found := optimizer.step(objective)) is not None:
            decided.append(found)
    return decided, str(program.system.data), model


def shown(text: str) -> list[tuple[str, str]]:
    return re.findall(r"word: (\w+)\nRight answer: (\w+)", text)


def test_examples_without_answers_leave_nothing_to_show() -> None:
    """No target and nothing solved: each step says so, and nothing is scored."""
    loss = nn.Metric(lambda said, wanted=None: 0.0, "nothing is right")
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    rows = [{"word": word} for word in WORDS]
    optimizer = optim.BootstrapDemos(program.parameters(), sets=1)
    objective = Objective(program, loss, rows)
    with use_models(forward=FunctionModel(answer)):
        decided = [found for _ in range(3) if (found := optimizer.step(objective))]
    assert [each.why for each in decided] == ["there is nothing to show"] * 3
    assert program.system.data == "Repeat."


def test_a_contract_against_copying_leaves_no_set_to_try() -> None:
    """Whoever forbids to copy training answers gets no demonstrations, and is told why."""
    contract = optim.NoCopying([" ".join(row.values()) for row in TRAIN], n=1)
    decided, text, _ = run(constraints=[contract])
    assert all(each.why.startswith("dropped: not one solved example fits") for each in decided)
    assert text == "Repeat."


def test_the_first_set_is_labelled_examples_in_order() -> None:
    """Their right answers come from the data."""
    decided, _, _ = run()
    assert decided[0].kind == "labels"
    assert shown(decided[0].changes[0].after) == [("ant", "ANT"), ("bee", "BEE"), ("cat", "CAT")]
    assert decided[0].examples == ("ant", "bee", "cat")


def test_what_the_teacher_solved_is_shown_with_its_own_answer() -> None:
    """The teacher is the program with labelled examples; those it shows are not among what it solved."""
    decided, _, _ = run(bootstrapped=2, labelled=3)
    assert decided[1].kind == "bootstrap"
    assert [word for word, _ in shown(decided[1].changes[0].after)] == ["dog", "eel", "ant"]


def test_without_labelled_examples_only_what_the_program_solves_is_shown() -> None:
    """The plain program knows one word."""
    decided, text, _ = run(labelled=0)
    assert decided[0].why == "there is nothing to show"
    assert shown(decided[1].changes[0].after) == [("fox", "FOX")]
    assert text == "Repeat."  # one example does not help


def test_the_teacher_is_run_once_over_the_training_set() -> None:
    """All sets are drawn from what it solved; a set costs its validation and nothing else."""
    decided, _, model = run(sets=5)
    tried = [each for each in decided if each.race is not None]
    assert len(model.requests) == 8 + (8 - 3) + 8 * len(tried)


def test_random_sets_differ_and_keep_to_their_sizes() -> None:
    """Up to `bootstrapped` solved ones, filled up to `labelled` in all."""
    decided, _, _ = run(sets=6, bootstrapped=2, labelled=4)
    sets = [tuple(word for word, _ in shown(each.changes[0].after)) for each in decided[2:]]
    assert len(set(sets)) > 3
    assert all(len(words) == 4 == len(set(words)) for words in sets)


def test_what_the_teacher_fails_is_known_from_the_first_set_on_and_saved() -> None:
    """A proposer that looks for what is near to it finds the same in a run that was resumed."""
    rows = [{"word": word, "target": "yes"} for word in ("easy one", "hard two", "easy six", "hard three", "easy four")]

    def easy(request: Request) -> str:
        return "yes" if request.messages[-1].text.startswith("easy") else "no"

    def begun() -> tuple[optim.BootstrapDemos, Objective]:
        program = nn.ChatCompletion("{word}", system=nn.Parameter("Answer.", role="system prompt"))
        way = Demonstrations(1, "nearest")
        optimizer = optim.BootstrapDemos(program.parameters(), labelled=3, sets=1, proposer=way)
        return optimizer, Objective(program, nn.ExactMatch(), rows)

    (optimizer, objective), (again, other) = begun(), begun()
    with use_models(forward=FunctionModel(easy)):
        first = optimizer.step(objective)
        again.load_state_dict(optimizer.state_dict())
        found = [optimizer.step(objective), again.step(other)]
    assert first is not None
    assert "word: hard two\nRight answer: yes" in first.changes[0].after
    assert all(each is not None and "word: hard two" in each.changes[0].after for each in found)


def test_the_best_set_on_validation_is_in_the_parameters() -> None:
    """The seed text's own lines stay."""
    decided, text, _ = run()
    assert decided[0].kept
    assert text.startswith("Repeat.\n<examples-")
    assert not any(each.kept for each in decided[1:])  # no set does better than the first


def test_several_prompts_get_their_sets_in_turn(two: Any) -> None:
    """The scores tell where demonstrations help."""

    program = two()
    optimizer = optim.BootstrapDemos(program.parameters(), sets=2, labelled=2)
    objective = Objective(program, nn.ExactMatch(), TRAIN, VAL)
    with use_models(forward=FunctionModel(answer)):
        decided = [found for _ in range(4) if (found := optimizer.step(objective))]
    assert [each.changes[0].variable.role for each in decided] == ["first prompt", "second prompt"] * 2
    assert all("<examples-" in each.changes[0].after for each in decided)


def test_it_climbs_on_a_simulated_task(parcels: Callable[..., SimulatedTask]) -> None:
    """Examples teach the task model half of what rules would."""
    task = parcels(train=48, val=48)
    program = task.program()
    optimizer = optim.BootstrapDemos(program.parameters(), sets=6, seed=1)
    objective = Objective(program, task.loss, task.train, task.val)
    with use_models(forward=task.model):
        while optimizer.step(objective) is not None:
            pass
    assert task.progress(str(program.system.data)) > 0.2


def test_demonstrations_that_get_no_answers_are_lost_and_the_search_goes_on(world: Any) -> None:
    """All that are to be tried are tried, and none is taken."""
    here = world("")
    real = here.answer

    def answer(request: Request) -> Any:
        if request.messages[0].text != "Repeat.":
            raise ContentFiltered("too long")
        return real(request)

    here.model._fn = answer
    decided = here.steps(optim.BootstrapDemos(here.program.parameters(), sets=2))
    assert {each.why for each in decided if each.lost} == {"the examples could not be run: ContentFiltered: too long"}
    assert sum(each.lost for each in decided) > 1
    assert here.system.data == "Repeat."
