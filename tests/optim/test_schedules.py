from __future__ import annotations

import sys
from typing import Any

import pytest

from textgrad_engine.autograd import Variable
from textgrad_engine.optim import TGD, Optimizer
from textgrad_engine.optim.schedules import ConstantEdits, CosineEdits, EditSchedule, LinearEdits, StepEdits
from textgrad_engine.testing import FunctionModel


def prompt(text: str = "Sort.") -> Variable:
    return Variable(text, role="prompt", requires_grad=True)


def over(schedule: EditSchedule, steps: int) -> list[int]:
    found = []
    for _ in range(steps):
        found.append(schedule.get_last_edits()[0])
        schedule.step()
    return found


def test_what_a_schedule_of_ones_own_gives_is_checked_before_a_step_uses_it() -> None:
    """A step with half an edit would fail behind its feedback, which is paid for by then."""

    class Half(EditSchedule):
        def edits(self, step: int) -> int:
            return 2 if step == 0 else 0.5  # type: ignore[return-value]

    schedule = Half(TGD([prompt()]))
    with pytest.raises(TypeError, match=r"Half.edits\(1\) must be a whole number, got 0.5"):
        schedule.step()
    assert schedule.get_last_edits() == [2]


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (ConstantEdits, (0,), "edits must be at least 1, got 0"),
        (LinearEdits, (0, 1, 2), "start must be at least 1"),
        (LinearEdits, (2, 0, 2), "end must be at least 1"),
        (LinearEdits, (2, 1, 0), "steps must be at least 1"),
        (CosineEdits, (2, 1, 0), "steps must be at least 1"),
        (StepEdits, (2, 0), "every must be at least 1"),
        (StepEdits, (2, 1, 0.0), "factor must be above 0"),
        (StepEdits, (2, 1, float("inf")), "factor must be finite"),
        (StepEdits, (2, 1, float("nan")), "factor must be a number, got nan"),
    ],
)
def test_settings_are_checked(kind: Any, settings: tuple[Any, ...], message: str) -> None:
    """Nothing is set by a schedule that cannot be."""
    optimizer = TGD([prompt()], max_edits=9)
    with pytest.raises(ValueError, match=message):
        kind(optimizer, *settings)
    assert optimizer.param_groups[0]["max_edits"] == 9


def test_an_optimizer_without_the_setting_is_refused() -> None:
    """A schedule that changes nothing would be believed to."""
    with pytest.raises(TypeError, match="Optimizer has no such setting; TGD has"):
        ConstantEdits(Optimizer([prompt()], {}), 2)


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        (ConstantEdits, (3,), [3, 3, 3, 3, 3, 3]),
        (LinearEdits, (6, 1, 5), [6, 5, 4, 3, 2, 1, 1]),
        (LinearEdits, (1, 4, 2), [1, 3, 4, 4]),
        (CosineEdits, (5, 1, 4), [5, 4, 3, 2, 1, 1]),
        (StepEdits, (8, 2), [8, 8, 4, 4, 2, 2, 1, 1, 1]),
        (StepEdits, (1, 2, 1e300), [1, 1, int(1e300), int(1e300), sys.maxsize]),
        (StepEdits, (1, 1, 2.0), [1, 2, 4, 8]),
    ],
)
def test_the_number_changes_with_the_steps(kind: Any, settings: tuple[Any, ...], expected: list[int]) -> None:
    """From the first step on, never below 1, and it stays at the end."""
    assert over(kind(TGD([prompt()]), *settings), len(expected)) == expected


def test_all_groups_are_set() -> None:
    """Those added later too."""
    optimizer = TGD([{"params": [prompt()], "max_edits": 9}])
    schedule = LinearEdits(optimizer, 3, 1, 2)
    optimizer.add_param_group({"params": [prompt("b")]})
    schedule.step()
    assert schedule.get_last_edits() == [2, 2]


def test_a_schedule_goes_on_where_it_was() -> None:
    """As torch's do: the count is saved, the settings are those it is made with."""
    first = LinearEdits(TGD([prompt()]), 6, 1, 5)
    over(first, 3)
    second = LinearEdits(TGD([prompt()]), 6, 1, 5)
    second.load_state_dict(first.state_dict())
    assert (second.get_last_edits(), over(second, 3)) == ([3], [3, 2, 1])


def test_an_attached_schedule_follows_the_optimizers_count() -> None:
    """Under a trainer, which takes a step's state back and keeps its count; detached, nothing changes any more."""
    model = FunctionModel(lambda request: {"edits": []})
    text = prompt()
    optimizer = TGD([text], model=model)
    handle = LinearEdits(optimizer, 4, 1, 3).attach()

    def step() -> None:
        text.grad = Variable("more")
        held = optimizer.state_dict()
        optimizer.step()
        optimizer.load_state_dict({**held, "steps": optimizer.steps})

    for _ in range(5):
        step()
    handle.remove()
    optimizer.param_groups[0]["max_edits"] = 9
    step()
    shown = [request.messages[-1].text.split("Give at most ")[1][0] for request in model.requests]
    assert shown == ["4", "3", "2", "1", "1", "9"]


def test_what_a_schedule_of_ones_own_reads_is_set_before_the_base_class_is_made() -> None:
    """That asks for the number of the first step; the error says what comes first."""

    class Warmup(EditSchedule):
        def __init__(self, optimizer: Optimizer, most: int) -> None:
            super().__init__(optimizer)
            self.most = most

        def edits(self, step: int) -> int:
            return min(self.most, 1 + step)

    optimizer = TGD([Variable("Sort.", requires_grad=True)])
    words = r"Warmup\.edits reads self\.most, .* set it before `super\(\).__init__\(optimizer\)`"
    with pytest.raises(AttributeError, match=words):
        Warmup(optimizer, 3)
    assert optimizer.param_groups[0]["max_edits"] == 12


def test_another_mistake_in_a_schedule_of_ones_own_is_told_as_it_is() -> None:
    """Of an attribute of something else nothing can be said."""

    class Wrong(EditSchedule):
        def edits(self, step: int) -> int:
            return step.half  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(AttributeError, match=r"^'int' object has no attribute 'half'$"):
        Wrong(TGD([Variable("Sort.", requires_grad=True)]))


def test_a_schedule_that_does_not_make_its_base_class_says_so() -> None:
    """As an optimizer does; Python only names what is missing."""

    class Bare(EditSchedule):
        def __init__(self, optimizer: Optimizer) -> None:
            self.most = 3

        def edits(self, step: int) -> int:
            return self.most

    with pytest.raises(AttributeError, match=r"^Bare\.__init__ did not call super\(\)\.__init__\(optimizer\)$"):
        Bare(TGD([prompt()])).attach()


def test_a_notebook_shows_where_a_schedule_stands() -> None:
    """Not the address of an object."""
    schedule = StepEdits(TGD([prompt()]), 8, every=2)
    for _ in range(3):
        schedule.step()
    assert repr(schedule) == "StepEdits(count=3, max_edits=[4])"
