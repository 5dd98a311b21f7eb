"""`Searcher`: what its step takes, what it refuses, and what it leaves in the parameters."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import pytest

from textgrad_engine import nn, no_grad
from textgrad_engine.errors import AuthenticationFailed
from textgrad_engine.optim.cells import Origin
from textgrad_engine.optim.change import Change
from textgrad_engine.optim.search.objective import Objective as Wanted
from textgrad_engine.optim.search.objective import Texts
from textgrad_engine.optim.search.searcher import Decision, Searcher
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective

ROWS = [{"id": word, "word": word, "target": word} for word in ("ant", "bee")]


class Several(nn.Module):
    """A program with a parameter for each text."""

    def __init__(self, *texts: str) -> None:
        super().__init__()
        model = FunctionModel(lambda request: request.messages[-1].text)
        self.count = len(texts)
        for n, text in enumerate(texts):
            system = nn.Parameter(text, role=f"prompt {n}")
            setattr(self, f"call{n}", nn.ChatCompletion("{word}", system=system, model=model))

    def forward(self, word: str) -> Any:
        for n in range(self.count):
            word = getattr(self, f"call{n}")(word=word)
        return word


program = Several


def objective(of: nn.Module, **settings: Any) -> Objective:
    return Objective(of, nn.ExactMatch(), ROWS, **settings)


class Counting(Searcher):
    """Decides to write the next number, until it is at the last."""

    def __init__(self, params: Any, last: int = 3) -> None:
        super().__init__(params, {})
        self.last, self.number, self.begun = last, 0, 0

    def texts(self) -> Texts:
        return tuple(f"{n}/{self.number}" for n, _ in enumerate(self.variables()))

    def _begin(self, objective: Wanted) -> None:
        super()._begin(objective)
        self.begun += 1

    def decide(self, objective: Wanted) -> Decision | None:
        if self.number == self.last:
            return None
        self.number += 1
        return Decision(self.number, "count", kept=True)


@pytest.mark.parametrize("closure", [None, lambda: 1.0, 0.5])
def test_a_step_takes_an_objective(closure: Any) -> None:
    """And says how to get one, or who does it."""
    with pytest.raises(TypeError, match=r"step\(train\.Objective\(program, loss, examples\)\).*Trainer\.fit does it"):
        Counting(program("a").parameters()).step(closure)


def test_an_objective_of_ones_own_is_told_what_it_lacks() -> None:
    """It has all but one of what an objective has, so how to make one is no answer."""

    class Own:
        def __getattr__(self, name: str) -> Any:
            if name == "breaking":
                raise AttributeError(name)
            return getattr(whole, name)

    whole = objective(program("a"))
    with pytest.raises(TypeError, match=r"got Own, which lacks breaking \(optim\.Objective says what it gives\)"):
        Counting(program("a").parameters()).step(Own())  # type: ignore[arg-type]


def test_another_programs_objective_is_refused() -> None:
    """Scores of other texts would decide about these."""
    with pytest.raises(ValueError, match="is about Parameter 'prompt 0', and the optimizer trains"):
        Counting(program("a").parameters()).step(objective(program("a")))


def test_an_objective_of_other_parameters_is_refused() -> None:
    """Some of them, or in another order: texts are told apart by their place."""
    both = program("a", "b")
    first, second = both.parameters()
    with pytest.raises(
        ValueError, match=r"is about .*'prompt 0', .*'prompt 1', and .* trains Parameter 'prompt 1'; .*parameters="
    ):
        Counting([second]).step(objective(both))
    with pytest.raises(ValueError, match="trains Parameter 'prompt 1', Parameter 'prompt 0'"):
        Counting([second, first]).step(objective(both))
    Counting([second, first]).step(objective(both, parameters=[second, first]))
    assert (first.data, second.data) == ("1/1", "0/1")


def test_the_objective_may_not_change_on_the_way() -> None:
    """What is known of the examples would be that of others; closed, it may."""
    here = program("a")
    search = Counting(here.parameters())
    search.step(objective(here))
    other = objective(here)
    with pytest.raises(ValueError, match=r"begun with another objective; close\(\) it first"):
        search.step(other)
    search.close()
    search.step(other)
    assert (search.number, search.begun) == (2, 2)


def test_the_parameters_hold_the_best_texts_after_each_step() -> None:
    """Written as a change of their own, so that a backward pass over older calls says so; equal texts are no change."""
    here = program("a")
    (system,) = here.parameters()
    search, asked = Counting(here.parameters()), objective(here)
    for number in (1, 2, 3):
        decided = search.step(asked)
        assert decided is search.decided
        assert (system.data, search.steps, search.finished) == (f"0/{number}", number, False)
    version = system._version
    assert search.step(asked) is None
    assert (search.decided, search.steps, search.finished, system._version) == (None, 3, True, version)


def test_hooks_are_called_around_every_step() -> None:
    """As with any optimizer; after it the parameters are written."""
    here = program("a")
    (system,) = here.parameters()
    search, seen = Counting(here.parameters()), []
    search.register_step_pre_hook(lambda *_: seen.append(f"before {system.data}"))
    search.register_step_post_hook(lambda *_: seen.append(f"after {system.data}"))
    search.step(objective(here))
    assert seen == ["before a", "after 0/1"]


def test_an_error_leaves_the_parameters_as_they_are() -> None:
    """The next step goes on."""
    here = program("a")
    (system,) = here.parameters()
    search, asked = Counting(here.parameters()), objective(here)
    search.step(asked)
    real = search.decide

    def failing(objective: Wanted) -> Any:
        raise AuthenticationFailed("no", status=401)

    search.decide = failing  # type: ignore[method-assign]
    with pytest.raises(AuthenticationFailed):
        search.step(asked)
    assert (system.data, search.steps, search.changes) == ("0/1", 1, [])
    search.decide = real  # type: ignore[method-assign]
    search.step(asked)
    assert system.data == "0/2"


def test_texts_that_were_changed_by_hand_are_overwritten_with_the_best() -> None:
    """Between steps the search owns its parameters."""
    here = program("a")
    (system,) = here.parameters()
    search, asked = Counting(here.parameters()), objective(here)
    search.step(asked)
    with no_grad():
        system.data = "by hand"
    search.step(asked)
    assert system.data == "0/2"


@pytest.mark.parametrize(("given", "name"), [({}, "decide"), ({"decide": None}, "texts"), ({"step": None}, "texts")])
def test_a_subclass_that_lacks_something_is_refused_when_it_is_made(given: dict[str, Any], name: str) -> None:
    """Not at its first step, when a run has begun; one with a `step` of its own needs no `decide`."""
    own = type("Own", (Searcher,), {key: lambda self, objective: None for key in given})
    with pytest.raises(TypeError, match=f"Own is a Searcher without `{name}`; give it `def {name}"):
        own(program("a").parameters(), {})


def test_a_subclass_says_that_it_has_no_expected_score() -> None:
    """Which a Trainer asks for, and a loop of one's own need not."""
    with pytest.raises(NotImplementedError, match="Counting needs `expected`"):
        Counting(program("a").parameters()).expected  # noqa: B018


@pytest.mark.parametrize("texts", ["a text", ("one",), (1, 2), None])
def test_texts_of_ones_own_search_are_looked_at_before_they_are_written(texts: Any) -> None:
    """The letters of a text would be taken for the parameters' texts, and a missing one would stay as it is."""

    class Own(Counting):
        def texts(self) -> Texts:
            return texts  # type: ignore[no-any-return]

    of = program("one", "two")
    with pytest.raises(TypeError, match=r"Own.texts\(\) gave .*; give a tuple with a text for each of the 2 par"):
        Own(of.parameters()).step(objective(of))
    assert [parameter.data for parameter in of.parameters()] == ["one", "two"]


def test_what_is_no_decision_is_refused() -> None:
    """It would be taken for one in the middle of a run."""

    class Own(Counting):
        def decide(self, objective: Wanted) -> Decision | None:
            return True  # type: ignore[return-value]

    of = program("one")
    with pytest.raises(TypeError, match=r"Own.decide gave True; give an optim.Decision, or None"):
        Own(of.parameters()).step(objective(of))


def test_what_a_search_of_ones_own_changed_is_noted() -> None:
    """A decision that names no change is one all the same: reports show what the texts became."""
    of = program("one")
    search = Counting(of.parameters())
    search.step(objective(of))
    assert [(change.before, change.after) for change in search.changes] == [("one", "0/1")]
    assert search.steps == 1


def test_a_decision_that_changed_the_texts_was_kept_whatever_it_says() -> None:
    """`kept` is no default that one may forget: a Trainer would take the seed texts for the best ones."""

    class Forgetful(Counting):
        def decide(self, objective: Wanted) -> Decision | None:
            made = super().decide(objective)
            if self.number == 2:  # nothing better was found
                self.number = 1
                return Decision(2, "count", why="no better")
            return made and Decision(made.number, made.kind, why="better")

    of = program("one")
    search, wanted = Forgetful(of.parameters()), objective(of)
    first, second = search.step(wanted), search.step(wanted)
    assert first is not None
    assert second is not None
    assert (first.kept, first.why, second.kept) == (True, "better", False)
    assert search.decided is second


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, pickle.dumps], ids=["deepcopy", "copy", "pickle"])
def test_a_search_that_is_under_way_says_how_it_is_copied(copied: Any) -> None:
    """What it goes on with holds threads; a state is what a copy begins with, and a closed search is copied."""
    of = program("one")
    search, wanted = Counting(of.parameters()), objective(of)
    copied(search)
    search.step(wanted)
    with pytest.raises(TypeError, match=r"Counting is under way: keep its state_dict\(\), or close\(\) it before"):
        copied(search)
    search.close()
    copied(search)
    search.step(wanted)
    assert search.steps == 2


def test_a_search_of_ones_own_may_say_why_each_line_reads_as_it_does() -> None:
    """The best text may hold lines of several proposals, of which this decision made the last."""
    first, second = (Origin(step, "asked for", (), f"{step}.1") for step in (1, 2))

    class Grown(Counting):
        def decide(self, objective: Wanted) -> Decision | None:
            (prompt,) = self.variables()
            self.state[prompt]["origins"] = ("one\ntwo", [first, second])
            return Decision(2, "growth", changes=(Change(prompt, "one", "one\ntwo"),), kept=True)

        def texts(self) -> Texts:
            return ("one\ntwo",)

    of = program("zero")
    search = Grown(of.parameters())
    search.step(objective(of))
    assert search.origins(*of.parameters()) == [first, second]
    other = Grown(of.parameters())
    other.load_state_dict(search.state_dict())
    assert other.origins(*of.parameters()) == [first, second]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"number": "1"}, "Decision: number must be a whole number, got '1'; write 1"),
        ({"kind": None}, "Decision: kind must be a text, got None"),
        ({"examples": "ant"}, "Decision: examples must be a sequence of texts, got 'ant'"),
        ({"scores": 0.5}, "Decision: scores must be a sequence of numbers or None, got 0.5"),
        ({"scores": ["high"]}, "Decision: scores must be a sequence of numbers or None, got the list ['high']"),
        ({"changes": ["Be kind."]}, "Decision: changes must be a sequence of Change objects, got the list"),
        ({"race": 0.4}, "Decision: race must be a RaceRecord or None, got 0.4"),
        ({"kept": "yes"}, "Decision: kept must be True or False, got 'yes'"),
        ({"problems": [ValueError("no answer")]}, "Decision: problems must be a sequence of texts, got the list"),
    ],
)
def test_a_decision_of_a_search_of_ones_own_is_looked_at_when_it_is_made(wrong: dict[str, Any], says: str) -> None:
    """A run ended by it only behind the validation that was paid for, or wrote it down as it was."""
    with pytest.raises(TypeError, match=re.escape(says)):
        Decision(**{"number": 1, "kind": "count", **wrong})


def test_a_change_of_a_search_of_ones_own_is_looked_at_when_it_is_made() -> None:
    """Its parameter, not the name of that."""
    with pytest.raises(TypeError, match="Change: variable must be a Variable, got 'system'"):
        Change("system", "one", "two")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Change: after must be a text, got the list"):
        Change(nn.Parameter("one", role="system"), "one", ["two"])  # type: ignore[arg-type]


def test_lists_in_a_decision_are_taken_and_kept_as_the_record_has_them() -> None:
    """pydantic warned of each of them when the step was written down."""
    made = Decision(1, "count", examples=["ant"], scores=[1, None], problems=[])  # type: ignore[arg-type]
    assert made == Decision(1, "count", examples=("ant",), scores=(1, None))
