"""What all searches keep to: the same decisions whatever the order of answers, state to put back, the record."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from textgrad_engine import budget, nn, no_grad, optim, use_models
from textgrad_engine.errors import AuthenticationFailed, BudgetExceeded
from textgrad_engine.llm import meter
from textgrad_engine.optim.proposers import Patch
from textgrad_engine.optim.search.population import Candidate, Population
from textgrad_engine.optim.search.searcher import Decision, Searcher
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.testing.simulated import SimulatedTask, simulated_task
from textgrad_engine.train import Objective

Make = Callable[[Any], Searcher]

SEARCHES: dict[str, Make] = {
    "ParetoSearch": lambda params: optim.ParetoSearch(params, proposals=8, seed=1),
    "ParetoSearch by patches": lambda params: optim.ParetoSearch(params, proposer=Patch(), proposals=8, seed=1),
    "BeamSearch": lambda params: optim.BeamSearch(params, beam=2, rounds=2, batch_size=8, successors=3, seed=1),
    "BeamSearch by UCB": lambda params: optim.BeamSearch(
        params, beam=2, rounds=2, batch_size=8, successors=3, selection="ucb", seed=1
    ),
    "OPRO": lambda params: optim.OPRO(params, rounds=3, per_round=3, seed=1),
    "OPRO on val": lambda params: optim.OPRO(params, rounds=3, per_round=3, score_on="val", sample=None, seed=1),
    "BootstrapDemos": lambda params: optim.BootstrapDemos(params, sets=4, bootstrapped=2, labelled=4, seed=1),
    "RandomSearch": lambda params: optim.RandomSearch(params, optim.RandomEdits(1), proposals=8, seed=1),
    "RandomSearch by a model": lambda params: optim.RandomSearch(params, Patch(), proposals=6, seed=1),
}


@pytest.fixture(scope="module", params=SEARCHES, name="make")
def _make(request: pytest.FixtureRequest) -> Make:
    return SEARCHES[request.param]


@pytest.fixture(scope="module", name="task")
def _task() -> SimulatedTask:
    return simulated_task(rules=4, train=16, val=16, test=4, noise=0.0, seed=3)


class Whole(NamedTuple):
    """A search from its beginning to its end: its decisions, and who wrote each line of the text that it found."""

    steps: tuple[Any, ...]
    origins: tuple[Any, ...]


@pytest.fixture(scope="module", name="whole")
def _whole(make: Make, task: SimulatedTask) -> Whole:
    program = task.program()
    search = make(list(program.parameters()))
    found = tuple(steps(task, program, search))
    return Whole(found, tuple(search.origins(program.system)))


def steps(task: SimulatedTask, program: nn.Module, search: Searcher, most: int = 10_000, **settings: Any) -> Any:
    """The decisions, as plain values, and the texts after each."""
    objective = Objective(program, task.loss, task.train, task.val, **settings)
    found = []
    with use_models(forward=task.model):
        while len(found) < most and (decided := search.step(objective)) is not None:
            found.append((*said(decided), search.texts(), search.expected))
            assert search.texts() == tuple(str(parameter.data) for parameter in program.parameters())
    return found


def said(decided: Decision) -> tuple[Any, ...]:
    changes = [(change.before, change.after, change.edits, change.items) for change in decided.changes]
    return (
        decided.number, decided.kind, decided.examples, decided.scores, decided.feedback, changes, decided.race,
        decided.kept, decided.why, decided.problems,
    )  # fmt: skip


def test_it_does_not_matter_which_answer_comes_first(make: Make, task: SimulatedTask, whole: Whole) -> None:
    """One example at a time or all at once: the same decisions, the same texts, the same origins of lines."""
    program = task.program()
    search = make(list(program.parameters()))
    assert tuple(steps(task, program, search, concurrency=1)) == whole.steps
    assert tuple(search.origins(program.system)) == whole.origins
    assert [entry[0] for entry in whole.steps] == list(range(1, len(whole.steps) + 1))


def test_each_line_that_was_found_knows_its_proposal(task: SimulatedTask, whole: Whole) -> None:
    """So a report can say why it is there; lines of the seed text have nobody to name."""
    text, numbers = whole.steps[-1][-2][0], {entry[0] for entry in whole.steps}
    before = str(task.program().system.data).split("\n")
    new = [origin for line, origin in zip(text.split("\n"), whole.origins, strict=True) if line not in before]
    assert new or text.split("\n") == before  # nothing was found
    assert all(origin is not None and origin.step in numbers for origin in new)


def test_what_is_expected_of_the_best_text_is_the_first_ones_mean_and_what_it_gained() -> None:
    """It was run on few examples, which may be the harder ones: its own mean says less than what it gained there."""
    search = optim.OPRO([nn.Parameter("Sort.", role="prompt")])
    search._population = Population(("a", "b", "c", "d"))
    for text, scores in (("Sort.", {0: 0.0, 1: 0.5, 2: 1.0, 3: 1.0}), ("Sort it.", {0: 0.5, 1: 0.75})):
        number = search.population.add(Candidate((text,), ((None,),)))
        search.population.scores[number] = dict(scores)
    assert search.expected == 0.625
    search._best = 1
    assert search.expected == 0.625 + 0.375
    search.population.scores[1] = {}
    assert search.expected == 0.625
    search.population.scores[0] = {0: None}
    assert search.expected == float("-inf")


def test_state_put_back_goes_on_as_if_nothing_had_happened(make: Make, task: SimulatedTask, whole: Whole) -> None:
    """After any step, also in the middle of a round: a new search with the state and the texts decides the same."""
    for cut in (1, len(whole.steps) // 2):
        program = task.program()
        search = make(list(program.parameters()))
        before = steps(task, program, search, most=cut)
        state = copy.deepcopy(search.state_dict())
        search.close()
        other = task.program()
        with no_grad():
            other.system.data = program.system.data
        again = make(list(other.parameters()))
        again.load_state_dict(state)
        assert (*before, *steps(task, other, again)) == whole.steps
        assert again.finished


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_search_that_a_budget_ends_goes_on_as_if_nothing_had_happened(
    make: Make, task: SimulatedTask, whole: Whole, part: float
) -> None:
    """In a loop of one's own: texts that were proposed and not decided about were never tried again."""
    program = task.program()
    with meter() as used:
        steps(task, program, make(list(program.parameters())))
    program = task.program()
    search = make(list(program.parameters()))
    objective = Objective(program, task.loss, task.train, task.val)
    found = []
    with use_models(forward=task.model):
        with budget(calls=int(part * used.total.calls)), contextlib.suppress(BudgetExceeded):
            while (decided := search.step(objective)) is not None:
                found.append((*said(decided), search.texts(), search.expected))
        while (decided := search.step(objective)) is not None:
            found.append((*said(decided), search.texts(), search.expected))
    assert tuple(found) == whole.steps


def test_other_examples_begin_a_new_search(make: Make, task: SimulatedTask) -> None:
    """What was tried and scored before is of other examples, whichever of the two sets has changed: all is tried anew.

    Numbers go on: edits that stand in the texts are named by them.
    """
    program = task.program()
    search = make(list(program.parameters()))
    steps(task, program, search)
    few = task.train[: len(task.train) // 2]
    for train, val in ((task.val, task.train), (few, task.train), (few, task.val)):
        search.close()
        state = search.state_dict()
        begun = state.get("board", state)["begun"]
        objective = Objective(program, task.loss, train, val)
        search.to_the_end = True  # the text that was found is right on all of some of them
        with use_models(forward=task.model):
            numbers = [found.number for _ in range(3) if (found := search.step(objective)) is not None]
        assert numbers
        assert numbers == list(range(begun + 1, begun + 1 + len(numbers)))
    search.close()


def test_other_examples_under_the_same_ids_begin_a_new_search(make: Make, task: SimulatedTask) -> None:
    """Examples without ids are named by their positions, so those of any two sets of one size have the same names."""
    train, val = ([{k: v for k, v in row.items() if k != "id"} for row in rows] for rows in (task.train, task.val))
    program = task.program()
    search = make(list(program.parameters()))
    with use_models(forward=task.model):
        search.step(Objective(program, task.loss, train, val))
        search.close()
        search.step(Objective(program, task.loss, [dict(row) for row in train], val))  # equal ones are the same
        search.close()
        state = search.state_dict()
        assert state.get("board", state)["before"] == 0
        begun = state.get("board", state)["begun"]
        search.step(Objective(program, task.loss, train, val[::-1]))
        search.close()
    state = search.state_dict()
    assert state.get("board", state)["before"] == begun


def test_what_was_kept_tells_the_best_texts(task: SimulatedTask, whole: Whole) -> None:
    """Whoever reads the journal of a run that was killed takes the changes of what was kept, one after the other."""
    text = task.seed_prompt
    for entry in whole.steps:
        changes, kept, texts = entry[5], entry[7], entry[10]
        if kept:
            for _, after, _, _ in changes:
                text = after
        assert (text,) == texts


def two_prompts(request: Any) -> Any:
    """Words in a or b are put right by the first prompt, others by the second one; the critic speaks to both."""
    if request.purpose == "backward":
        return feedback_for(request, "Say more.")
    system, text = request.messages[0].text, request.messages[-1].text
    if request.purpose == "optimizer":
        return {"text": "one FIRST" if "first prompt" in text else "two SECOND", "reason": "asked for"}
    known = ("FIRST" in system and text[0] in "ab") or ("SECOND" in system and text[0] in "cd")
    return text.upper() if known else text


@pytest.mark.parametrize("make_it", [optim.ParetoSearch, optim.BeamSearch, optim.OPRO])
def test_the_record_of_several_parameters_tells_all_best_texts(make_it: Any, two: Any) -> None:
    """A candidate that becomes the best brings texts that another step wrote: the decision names these, too."""
    rows = [{"word": word, "target": word.upper()} for word in ("ant", "bee", "cat", "dog", "apple", "crow")]
    for seed in range(4):
        program = two()
        search = make_it(program.parameters(), seed=seed)
        objective = Objective(program, nn.ExactMatch(), rows, rows)
        texts = {parameter.role: str(parameter.data) for parameter in program.parameters()}
        with use_models(forward=FunctionModel(two_prompts)):
            for _ in range(40):
                if (decided := search.step(objective)) is None:
                    break
                if decided.kept:
                    texts |= {change.variable.role: change.after for change in decided.changes}
                assert list(texts.values()) == [str(parameter.data) for parameter in program.parameters()]
        search.close()
        assert list(texts.values()) == ["one FIRST", "two SECOND"]
        assert search.expected == 1.0


def test_state_is_plain_data(make: Make, task: SimulatedTask) -> None:
    """It can be written as JSON, but for the origins that every optimizer keeps with its parameters."""
    program = task.program()
    search = make(list(program.parameters()))
    steps(task, program, search, most=2)
    state = {key: value for key, value in search.state_dict().items() if key != "state"}
    fresh = make(list(program.parameters()))
    fresh.load_state_dict({**json.loads(json.dumps(state)), "state": {}})
    assert fresh.texts() == search.texts()
    assert fresh.expected == search.expected


def test_after_close_it_begins_anew_where_the_texts_are_others(make: Make, task: SimulatedTask) -> None:
    """A search that is used again does not go on from texts that are gone."""
    program = task.program()
    search = make(list(program.parameters()))
    steps(task, program, search, most=3)
    search.close()
    with no_grad():
        program.system.data = task.seed_prompt + "\nBe quick."
    (entry,) = steps(task, program, search, most=1)
    assert all(before == task.seed_prompt + "\nBe quick." for before, *_ in entry[5])


def test_a_refused_key_ends_it(make: Make) -> None:
    """What fails for all is raised, and the parameters stay."""
    program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat.", role="system prompt"))
    search = make(list(program.parameters()))
    rows = [{"word": "a", "target": "A"}]

    def refuse(request: Any) -> Any:
        raise AuthenticationFailed("no such key", status=401)

    with use_models(forward=FunctionModel(refuse)), pytest.raises(AuthenticationFailed):
        search.step(Objective(program, nn.ExactMatch(), rows))
    assert program.system.data == "Repeat."


def test_before_the_first_step_there_is_nothing_to_show(make: Make) -> None:
    """Said in words, not as an attribute that is missing."""
    search = make([nn.Parameter("Repeat.", role="system prompt")])
    with pytest.raises(RuntimeError, match="before its first step"):
        search.texts()


@pytest.mark.parametrize(
    ("make_it", "wrong", "match"),
    [
        (optim.ParetoSearch, {"batch_size": 0}, "batch_size must be at least 1, got 0"),
        (optim.ParetoSearch, {"merges": -1}, "merges must be at least 0, got -1"),
        (optim.BeamSearch, {"beam": 0}, "beam must be at least 1, got 0"),
        (optim.BeamSearch, {"paraphrases": -1}, "paraphrases must be at least 0"),
        (optim.BeamSearch, {"selection": "best"}, "selection must be 'rejects' or 'ucb', got 'best'"),
        (optim.OPRO, {"rounds": 0}, "rounds must be at least 1, got 0"),
        (optim.OPRO, {"sample": 0}, "sample must be at least 1, got 0"),
        (optim.OPRO, {"examples": -1}, "examples must be at least 0, got -1"),
        (optim.OPRO, {"score_on": "test"}, "score_on must be 'train' or 'val', got 'test'"),
        (optim.BootstrapDemos, {"labelled": -1}, "labelled must be at least 0, got -1"),
        (optim.BootstrapDemos, {"sets": 0}, "sets must be at least 1, got 0"),
    ],
)
def test_settings_out_of_range_are_refused(make_it: Any, wrong: dict[str, Any], match: str) -> None:
    """Before anything is asked, with the name of the setting."""
    with pytest.raises(ValueError, match=match):
        make_it([nn.Parameter("Repeat.", role="system prompt")], **wrong)


def test_one_text_is_no_list_of_constraints() -> None:
    """Letters would be taken for constraints."""
    with pytest.raises(TypeError, match=r"write \['Be brief.'\]"):
        optim.ParetoSearch([nn.Parameter("Repeat.", role="system prompt")], constraints="Be brief.")


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("name", ["ParetoSearch", "BootstrapDemos", "BeamSearch", "OPRO", "OPRO on val"])
def test_a_decision_that_is_interrupted_while_guards_look_is_made_again(
    name: str, anew: bool, task: SimulatedTask
) -> None:
    """Guards may run examples again, so a budget or Ctrl-C may end them; what was tried is paid for.

    By the next step, or by that of a search that is given the state of this one.
    """
    program = task.program()
    search = SEARCHES[name](list(program.parameters()))
    objective = Objective(program, task.loss, task.train, task.val)
    refusal, cut = objective.refusal, list[bool]()

    def interrupted(*asked: Any) -> str:
        if not cut:
            cut.append(True)
            raise KeyboardInterrupt
        return refusal(*asked)

    objective.refusal = interrupted  # type: ignore[method-assign]
    found = []
    with use_models(forward=task.model):
        while True:
            try:
                decided = search.step(objective)
            except KeyboardInterrupt:
                if anew:
                    state = json.loads(json.dumps(search.state_dict()))
                    search.close()
                    search = SEARCHES[name](list(program.parameters()))
                    search.load_state_dict(state)
                continue
            if decided is None:
                break
            found.append(said(decided))
    whole = task.program()
    assert cut
    assert found == [each[:10] for each in steps(task, whole, SEARCHES[name](list(whole.parameters())))]
