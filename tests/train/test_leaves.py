"""What stands for the parameters that are searched for: their class, attributes and hooks, and no change in them."""

from __future__ import annotations

from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, ops
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train import Objective

from .shouting import EVERY, LOUD, SEED, Chain, Shouting, chained, rows


def test_there_must_be_something_to_train() -> None:
    """A frozen program, and parameters that are another's."""
    here, other = Shouting(), Shouting()
    with pytest.raises(ValueError, match="Parameter 'system prompt' is no parameter of the program, which has system"):
        Objective(here.program, nn.ExactMatch(), rows(), parameters=list(other.program.parameters()))
    with pytest.raises(ValueError, match="nothing to train"):
        Objective(here.program, nn.ExactMatch(), rows(), parameters=[])
    here.program.requires_grad_(False)
    with pytest.raises(ValueError, match="no parameter that requires grad"):
        Objective(here.program, nn.ExactMatch(), rows())


@pytest.mark.parametrize("texts", [(), ("a", "b")])
def test_a_candidate_has_a_text_for_each_parameter(texts: tuple[str, ...]) -> None:
    """Whatever it is wanted for; nothing is asked, and the next candidate is not spoiled by it."""
    here = Shouting()
    for call in (here.objective.scores, here.feedback):
        with pytest.raises(ValueError, match=f"a text for each of system; got {len(texts)} texts"):
            call(texts, [0])
    assert here.asked == 0
    assert here.objective.scores(LOUD, [0]) == [1.0]


def test_some_of_the_parameters_in_an_order_of_ones_own() -> None:
    """The others stay as they are, get no feedback, and cost none."""
    program = Chain(FunctionModel(chained))
    draft, check = program.parameters()
    objective = Objective(program, nn.ExactMatch(), rows("ant"), parameters=[check, draft])
    assert (objective.names, objective.parameters) == (("check.system", "draft.system"), (check, draft))
    assert objective.texts_of({"draft.system": "D", "check.system": "C"}) == ("C", "D")
    only = Objective(program, nn.ExactMatch(), rows("ant"), parameters=[check])
    critic = FunctionModel(chained)
    with tg.use_models(backward=critic):
        assert [len(gradient) for gradient in only.feedback(("Check.",), [0]).gradients] == [1]
    assert len(critic.requests) == 1
    assert draft.grad == []


def test_the_program_is_not_changed() -> None:
    """Candidates are run side by side, so the parameters cannot hold them."""
    here = Shouting()
    (system,) = here.program.parameters()
    version = system._version
    here.objective.matrix([LOUD, ("x",)], EVERY)
    here.feedback(("y",), EVERY)
    assert (system.data, system._version, system.grad) == (*SEED, version, [])


class Tagged(nn.Parameter):
    """A parameter with an attribute that a program reads."""

    def __init__(self, data: str, role: str, kind: str) -> None:
        super().__init__(data, role)
        self.kind = kind


class Telling(nn.Module):
    """Two calls; it notes what it finds in the place of its texts."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.first = Tagged("Repeat the word.", role="first prompt", kind="draft")
        self.second = Tagged("Repeat the word.", role="second prompt", kind="answer")
        self.model, self.seen = model, set[Any]()

    def forward(self, word: str) -> tg.Variable:
        for text in (self.first, self.second):
            self.seen.add((type(text), text.kind))
            content = [{"role": "system", "content": text}, {"role": "user", "content": "{word}"}]
            word = ops.chat_completion(self.model, content, {"word": word})  # type: ignore[assignment]
        return word  # type: ignore[return-value]


def test_what_stands_for_a_parameter_has_its_class_and_attributes() -> None:
    """Of those that are searched, and of those that are not; for scores and for feedback."""
    shouting = Shouting()
    program = Telling(shouting.model)
    objective = Objective(program, nn.ExactMatch(), rows(), parameters=[program.second])
    with tg.use_models(backward=shouting.model):
        objective.feedback(SEED, [0])
    objective.matrix([SEED, LOUD], [0, 1])
    assert program.seen == {(Tagged, "draft"), (Tagged, "answer")}


def test_hooks_on_a_parameter_are_obeyed() -> None:
    """They see the feedback on what stands for it, and may replace it; the parameter itself stays as it is."""
    shouting = Shouting()
    parameter = shouting.program.system
    seen: list[Any] = []
    parameter.register_hook(lambda feedback: seen.append(feedback.data) or "Redacted.")
    parameter.register_post_accumulate_grad_hook(lambda leaf: seen.append((leaf.data, len(leaf.grad))))
    removed = parameter.register_hook(lambda feedback: seen.append("removed"))
    removed.remove()
    found = shouting.feedback(SEED, [0])
    assert seen == ["Say to shout.", (SEED[0], 1)]
    assert [item.data for item in found.gradients[0]] == ["Redacted."]
    assert parameter.grad == []


def test_a_hook_that_is_called_when_feedback_is_written_may_choose_from_it() -> None:
    """What it leaves in the gradient of the leaf is what a search gets."""
    shouting = Shouting()

    def first_only(leaf: tg.Variable) -> None:
        leaf.grad = leaf.grad[:1]

    shouting.program.system.register_post_accumulate_grad_hook(first_only)
    assert [len(gradient) for gradient in shouting.feedback(SEED, [0, 1, 2]).gradients] == [1]


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_hook_on_several_parameters_is_called_once_for_all(mode: Any) -> None:
    """With what is said of each of them; of a text that is not searched for, nothing is."""
    shouting = Shouting()
    program = Telling(shouting.model)
    program.third = nn.Parameter("unused", role="third prompt")
    calls: list[Any] = []
    tg.autograd.register_multi_grad_hook([*program.parameters()], calls.append, mode=mode)
    objective = Objective(program, nn.ExactMatch(), rows(), parameters=[program.first, program.second])
    with tg.use_models(backward=shouting.model):
        objective.feedback(SEED * 2, [0])
    if mode == "any":
        assert [gradient.data for gradient in calls] == ["Say to shout."]
    else:
        assert [[None if each is None else each.data for each in call] for call in calls] == [
            ["Say to shout.", "Say to shout.", None]
        ]


def test_hooks_may_come_and_go_while_a_lane_reads_them() -> None:
    """A hook that takes itself away runs in one lane, while another one asks for feedback of its own."""

    class Shared(dict[int, Any]):
        def values(self) -> Any:  # each step of a loop over it is one at which another thread may change it
            raise RuntimeError("dictionary changed size during iteration")

    shouting = Shouting()
    seen: list[Any] = []
    handle = shouting.program.system.register_hook(lambda feedback: seen.append(feedback.data))
    shouting.program.system._hooks = Shared(shouting.program.system._hooks)
    shouting.feedback(SEED, [0])
    handle.remove()
    assert seen == ["Say to shout."]


def test_hooks_of_texts_that_are_not_searched_for_are_silent() -> None:
    """There is no feedback on these, as nobody trains them."""
    shouting = Shouting()
    program = Telling(shouting.model)
    program.first.register_hook(lambda feedback: pytest.fail("nobody asked for it"))
    objective = Objective(program, nn.ExactMatch(), rows(), parameters=[program.second])
    with tg.use_models(backward=shouting.model):
        assert objective.feedback(SEED, [0]).problems == ()
