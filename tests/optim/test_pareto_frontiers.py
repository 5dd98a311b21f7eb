"""ParetoSearch where the score is made of several metrics: what lives on by each frontier, and what refuses one."""

from __future__ import annotations

import copy
import itertools
import json
from types import SimpleNamespace
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.errors import ContentFiltered, ReturnError
from textgrad_engine.llm import Request
from textgrad_engine.optim.patch import origins_of_rewrite
from textgrad_engine.optim.search.population import Candidate
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.testing.simulated import simulated_task
from textgrad_engine.train import Objective

ROWS = [{"id": word, "word": word, "target": word.upper()} for word in ("ant", "bee", "cat", "dog")]
SEED, LOUD, BRIEF, BOTH = "a\nb\nc", "LOUD\nb\nc", "a\nb\nBRIEF", "LOUD\nb\nBRIEF"
BY_METRIC: tuple[Any, ...] = ("objective", "hybrid", "cartesian")


def answer(request: Request) -> Any:
    """LOUD makes capitals of a word, BRIEF leaves the tail away; the optimizer has nothing to add."""
    if request.purpose == "backward":
        return feedback_for(request, "Say it otherwise.")
    if request.purpose == "optimizer":
        return {"text": SEED, "reason": ""}
    text, word = request.messages[0].text, request.messages[-1].text
    return (word.upper() if "LOUD" in text else word) + ("" if "BRIEF" in text else " and so on")


def loud(said: str, _: str) -> float:
    return float(said[:3].isupper())


def brief(said: str, _: str) -> float:
    return 5.0 if len(said) < 4 else 1.0


METRICS = {
    "loud": nn.Metric(loud, "is said loudly", scale=(0, 1)),
    "brief": nn.Metric(brief, "is brief", scale=(1, 5)),
}
LOSS = nn.Weighted(METRICS, {"loud": 3, "brief": 1})


class Here:
    """A search, after its first step, in whose population are the seed text and some children of it."""

    def __init__(
        self, *texts: str, loss: Any = LOSS, model: Any = answer, weight: float = 0.0, **settings: Any
    ) -> None:
        self.system = nn.Parameter(SEED, role="system prompt")
        program = nn.ChatCompletion("{word}", system=self.system)
        self.model = FunctionModel(model)
        self.search = optim.ParetoSearch(program.parameters(), **{"seed": 1, **settings})
        self.objective = Objective(program, loss, ROWS, tokens_weight=weight)
        self.step()
        population = self.search.population
        (origins,) = population.candidates[0].origins
        for step, text in enumerate(texts, 1):
            own = tuple(origins_of_rewrite(SEED, origins, text, "asked for", (), step))
            number = population.add(Candidate((text,), (own,), (0,)))
            with use_models(forward=self.model):
                population.score(self.objective, [number], range(len(ROWS)))

    def step(self) -> Any:
        with use_models(forward=self.model):
            return self.search.step(self.objective)

    @property
    def frontier(self) -> dict[str, int]:
        """In how many places each text is the best."""
        candidates = self.search.population.candidates
        return {candidates[number].texts[0]: count for number, count in self.search._frontier().items()}


# What is refused.


def one_of_ones_own(answer: Any, target: Any) -> Any:
    return LOSS(answer, target)


@pytest.mark.parametrize("frontier", BY_METRIC)
@pytest.mark.parametrize("loss", [nn.ExactMatch(), nn.Weighted({"right": nn.ExactMatch()}), one_of_ones_own])
def test_a_score_of_one_metric_is_refused_before_anything_is_asked(frontier: Any, loss: Any) -> None:
    """It says which setting, and what to do; the search can go on with an objective of several."""
    system = nn.Parameter(SEED, role="system prompt")
    program = nn.ChatCompletion("{word}", system=system)
    search = optim.ParetoSearch(program.parameters(), frontier=frontier, proposals=1)
    model = FunctionModel(answer)
    with use_models(forward=model):
        with pytest.raises(
            ValueError, match=rf"^ParetoSearch\(frontier='{frontier}'\) keeps .* nn\.Weighted of several"
        ):
            search.step(Objective(program, loss, ROWS))
        assert (model.requests, search.steps, system.data) == ([], 0, SEED)
        assert search.step(Objective(program, LOSS, ROWS)) is not None


def of_ones_own(objective: Objective, **more: Any) -> Any:
    """An objective that has what `optim.Objective` says, and no more."""
    names = {*optim.Objective.__annotations__, *(name for name in vars(optim.Objective) if name[0] != "_")}
    return SimpleNamespace(**{name: getattr(objective, name) for name in names}, **more)


def test_an_objective_that_does_not_tell_of_metrics_is_searched_by_its_score() -> None:
    """As before there were any; where they are wanted, it is refused."""
    found = []
    for wrapped in (False, True):
        task = simulated_task(rules=4, train=16, val=16, test=4, noise=0.0, seed=3)
        program = task.program()
        search = optim.ParetoSearch(program.parameters(), proposals=4, seed=1)
        objective: Any = Objective(program, task.loss, task.train, task.val)
        with use_models(forward=task.model):
            given = of_ones_own(objective) if wrapped else objective
            found.append([search.step(given).why for _ in range(4)])  # type: ignore[union-attr]
    assert found[0] == found[1]
    search = optim.ParetoSearch(program.parameters(), frontier="hybrid")
    with pytest.raises(ValueError, match="this score is one"):
        search.step(of_ones_own(objective))


@pytest.mark.parametrize("given", [None, (1.0,)])
def test_an_objective_that_tells_too_little_of_metrics_is_told(given: Any) -> None:
    """What has a score has one by each metric: else texts would be off the frontier, and nobody knew why."""
    here = Here(LOUD, frontier="hybrid", proposals=9)
    told: Any = of_ones_own(
        here.objective, metrics=("loud", "brief"), by_metric=lambda texts, positions: [given for _ in positions]
    )
    here.search.close()
    here.search.load_state_dict({**here.search.state_dict(), "population": None})
    with (
        use_models(forward=here.model),
        pytest.raises(ReturnError, match=r"by_metric gave .* example 0, .* each of loud, brief"),
    ):
        here.search.step(told)


# What lives on.


@pytest.mark.parametrize(
    ("frontier", "wanted"),
    [
        ("instance", {LOUD: 4}),
        ("objective", {LOUD: 1, BRIEF: 1}),
        ("hybrid", {LOUD: 5, BRIEF: 1}),
        ("cartesian", {LOUD: 4, BRIEF: 4}),
    ],
)
def test_a_text_lives_on_where_it_is_best(frontier: Any, wanted: dict[str, int]) -> None:
    """LOUD has 0.75 of every example, and BRIEF, with 0.25, all of the lesser metric."""
    assert Here(LOUD, BRIEF, frontier=frontier).frontier == wanted


@pytest.mark.parametrize("frontier", BY_METRIC)
def test_who_is_best_by_both_metrics_drives_both_out(frontier: Any) -> None:
    """It loses nowhere."""
    assert Here(LOUD, BRIEF, BOTH, frontier=frontier).frontier.keys() == {BOTH}


@pytest.mark.parametrize(("frontier", "drawn"), [("instance", {LOUD}), ("objective", {LOUD, BRIEF})])
def test_parents_are_drawn_from_the_frontier(frontier: Any, drawn: set[str]) -> None:
    """What is best by a metric is changed, too."""
    numbers = itertools.count()

    def model(request: Request) -> Any:
        return {"text": f"Try {next(numbers)}.", "reason": ""} if request.purpose == "optimizer" else answer(request)

    here = Here(LOUD, BRIEF, model=model, frontier=frontier, proposals=11)
    assert {here.step().changes[0].before for _ in range(10)} == drawn


@pytest.mark.parametrize(("frontier", "kind"), [("instance", "mutation"), *((each, "merge") for each in BY_METRIC)])
def test_texts_that_are_each_best_by_a_metric_are_merged(frontier: Any, kind: str) -> None:
    """The merged text has what both have learned; by examples one of them is no longer there."""
    here = Here(LOUD, BRIEF, frontier=frontier, proposals=9)
    state = here.search.state_dict()
    here.search.load_state_dict({**state, "memory": {**state["memory"], "merge_due": True}})
    decided = here.step()
    assert decided.kind == kind
    assert here.system.data == (BOTH if kind == "merge" else SEED)


@pytest.mark.parametrize("frontier", BY_METRIC)
def test_who_got_no_answers_is_best_nowhere(frontier: Any) -> None:
    """Those that were answered beside too many that were not are no scores, by any metric."""
    here = Here(LOUD, frontier=frontier)
    population = here.search.population
    population.add(Candidate((BRIEF,), population.candidates[0].origins, (0,)))
    population.add(Candidate((BOTH,), population.candidates[0].origins, (0,)))

    def model(request: Request) -> Any:
        if request.messages[0].text == BRIEF and request.messages[-1].text != "dog":
            raise ContentFiltered("withheld")
        return answer(request)

    here.model._fn = model
    with use_models(forward=here.model):
        population.score(here.objective, [2, 3], range(len(ROWS)))
    assert population.scores[2] == dict.fromkeys(range(4))
    assert population.by_metric[2] == {}
    assert here.frontier.keys() == {BOTH}


def test_losing_an_example_is_no_way_to_win_a_metric() -> None:
    """The seed is brief on all words but one; who loses that one, and is as brief on the others, is no better."""

    def model(request: Request) -> Any:
        text, word = request.messages[0].text, request.messages[-1].text
        if request.purpose == "forward" and "LOSES" in text and word == "ant":
            raise ContentFiltered("withheld")
        return word if request.purpose == "forward" and word != "ant" else answer(request)

    here = Here("LOSES", model=model, frontier="objective")
    assert here.search.population.means_by_metric(1) == here.search.population.means_by_metric(0) == (0.0, 0.75)
    assert here.frontier == {SEED: 2, "LOSES": 2}


@pytest.mark.parametrize("frontier", BY_METRIC)
def test_what_tokens_cost_is_taken_off_each_metric(frontier: Any) -> None:
    """Of texts that are alike by both metrics the shorter one is the best."""
    longer = f"{LOUD} and do so whatever else is asked of you"
    assert Here(longer, LOUD, frontier=frontier).frontier.keys() == {longer, LOUD}
    assert Here(longer, LOUD, frontier=frontier, weight=1.0).frontier.keys() == {LOUD}


# What does not matter, and what stays.


EARLY = nn.Metric(lambda said, _: float(said < "M"), "the code is early in the alphabet", scale=(0, 1))
TASK = simulated_task(rules=3, train=8, val=8, test=4, noise=0.0, seed=3)


def new(frontier: Any) -> tuple[Any, optim.ParetoSearch]:
    program = TASK.program()
    return program.system, optim.ParetoSearch([program.system], frontier=frontier, proposals=5, seed=2)


def run(system: Any, search: optim.ParetoSearch, most: int = 8, **settings: Any) -> list[Any]:
    """What was decided, and the frontier after each step."""
    loss = nn.Weighted({"right": TASK.loss, "early": EARLY}, {"right": 3, "early": 1})
    program = nn.ChatCompletion("{parcel}", system=system)
    objective = Objective(program, loss, TASK.train, TASK.val, **settings)
    found: list[Any] = []
    with use_models(forward=TASK.model):
        while len(found) < most and (decided := search.step(objective)) is not None:
            found.append((decided.number, decided.kind, decided.why, search.texts(), search._frontier()))
    return found


@pytest.fixture(scope="module", name="whole")
def _whole() -> dict[str, list[Any]]:
    return {frontier: run(*new(frontier)) for frontier in BY_METRIC}


@pytest.mark.parametrize("frontier", BY_METRIC)
def test_answers_in_another_order_change_nothing(whole: dict[str, list[Any]], frontier: Any) -> None:
    """One example at a time, or all at once: the same decisions."""
    assert len({texts for *_, texts, _ in whole[frontier]}) > 1
    assert run(*new(frontier), concurrency=1) == whole[frontier]


@pytest.mark.parametrize("frontier", BY_METRIC)
def test_a_state_put_back_goes_on(whole: dict[str, list[Any]], frontier: Any) -> None:
    """Through JSON, half-way."""
    system, search = new(frontier)
    before = run(system, search, most=3)
    state = json.loads(json.dumps(search.state_dict()))
    other, again = new(frontier)
    other.data = system.data
    again.load_state_dict(state)
    assert before + run(other, again) == whole[frontier]


def test_by_examples_nobody_looks_at_metrics() -> None:
    """The default: its state has nothing of them, and that of a run of before is taken."""
    here = Here(LOUD, BRIEF, proposals=9)
    state = copy.deepcopy(here.search.state_dict())
    assert (state["population"]["metrics"], state["population"]["by_metric"]) == ((), [{}, {}, {}])
    del state["population"]["metrics"], state["population"]["by_metric"]
    here.search.load_state_dict(state)
    here.step()
    assert here.frontier.keys() == {LOUD}


def test_a_state_without_metrics_begins_a_new_population_where_they_are_wanted() -> None:
    """Nobody knows what they gave; numbers go on, and what was asked is known to the objective."""
    here = Here(LOUD, BRIEF, proposals=9)
    state = here.search.state_dict()
    again = Here(frontier="hybrid", proposals=9)
    again.search.load_state_dict(state)
    assert again.step().number == 2
    assert (len(again.search.population.candidates), again.search.population.metrics) == (1, ("loud", "brief"))


def test_a_state_with_metrics_goes_on_by_another_frontier() -> None:
    """They are known, whatever is made of them."""
    state = Here(LOUD, BRIEF, frontier="hybrid", proposals=9).search.state_dict()
    for frontier, wanted in (("cartesian", {LOUD, BRIEF}), ("instance", {LOUD})):
        here = Here(frontier=frontier, proposals=9)
        here.search.load_state_dict(state)
        here.step()
        assert here.frontier.keys() == wanted
