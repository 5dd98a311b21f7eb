import dataclasses
import logging
from unittest.mock import MagicMock, Mock

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.nn.overlooked import overlooked
from textgrad_engine.testing import simulated_task


class Steps(nn.Module):
    """Has its main prompt where it is found, and what `held` gives in plain containers."""

    def __init__(self, main: nn.Module, **held: object) -> None:
        super().__init__()
        self.main = main
        for name, value in held.items():
            setattr(self, name, value)

    def forward(self, parcel: str) -> tg.Variable:
        return self.main(parcel=parcel)


def prompt() -> nn.Parameter:
    return nn.Parameter("Answer.", role="system prompt")


def chat() -> nn.ChatCompletion:
    return nn.ChatCompletion("{parcel}", system=prompt())


def test_parameters_in_plain_containers_are_named() -> None:
    """They are the usual slip of who comes from plain Python: such texts are asked, and never trained."""
    program = Steps(chat(), drafts=[chat()], texts={"a": prompt()}, pair=(prompt(),))
    program.drafts.append(chat())
    assert overlooked(program) == ["drafts[0].system", "drafts[1].system", "texts['a']", "pair[0]"]
    assert overlooked(nn.Sequential(program))[0] == "0.drafts[0].system"


def test_parameters_and_parts_of_a_class_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """Who comes from dataclasses writes them there, where modules have none: asked as they are, and never trained."""

    class Base(nn.Module):
        text = prompt()
        fixed = prompt().requires_grad_(False)
        drafts = (chat(),)

    class Program(Base):
        step = chat()
        number, checks = 1, "a"

    program = Program()
    assert overlooked(nn.Sequential(program)) == ["0.step.system", "0.text", "0.drafts[0].system"]
    assert list(program.parameters()) == []
    (said,) = caplog.messages
    assert "(step.system, text, drafts[0].system): they are not trained" in said
    assert "into __init__: self.text = " in said


def test_variables_that_want_feedback_and_are_no_parameters_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """TextGrad's are made so: a critic was asked about them and paid for, and no optimizer had them."""
    mine, kept = (tg.Variable("Answer.", requires_grad=True) for _ in range(2))
    program = Steps(chat(), mine=mine, pair=(kept,), plain=tg.Variable("a"), result=mine + "!")
    program.register_buffer("buffer", tg.Variable("b", requires_grad=True))
    program.buffers_too = [program.buffer]
    assert overlooked(program) == ["mine", "pair[0]"]
    assert len(list(program.parameters())) == 1
    (said,) = caplog.messages
    assert "make a Variable that is to be trained an nn.Parameter" in said


def test_what_an_instance_has_of_its_own_hides_what_its_class_has() -> None:
    """A default of the class that nobody asks is no text of the program; nor is one that is registered elsewhere."""

    class Program(nn.Module):
        step = None
        shared = prompt()

        def __init__(self) -> None:
            super().__init__()
            self.mine = Program.shared
            self.drafts = []

        drafts = (chat(),)

    assert overlooked(Program()) == []


def test_what_is_found_or_frozen_or_no_parameter_is_not_named() -> None:
    """A list beside what is registered, and texts that are meant to stay, are as they should be."""
    main = chat()
    frozen = prompt().requires_grad_(False)
    program = Steps(main, again=[main, main.system], fixed=[frozen], other=[1, "a", None, tg.Variable("b")], none={})
    program.steps = nn.ModuleList([chat()])
    assert overlooked(program) == []


@pytest.mark.parametrize("other", [nn.ExactMatch, nn.ParameterList, Mock(), MagicMock()])
def test_classes_and_mocks_in_plain_containers_are_no_modules(other: object) -> None:
    """A table of the losses that there are, or a part that a test put in, has nothing to be asked for."""
    program = Steps(chat(), losses={"other": other}, parts=[other])
    assert [parameter.data for parameter in program.parameters()] == ["Answer."]
    assert overlooked(program) == []


def test_a_module_that_has_no_hash_has_parameters_and_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """As one that is a dataclass, or is compared by an `__eq__` of its own."""

    @dataclasses.dataclass
    class Program(nn.Module):
        number: int = 1

        def __post_init__(self) -> None:
            super().__init__()
            self.chat, self.hidden = chat(), [prompt()]

    program = Program()
    for _ in range(2):
        assert [parameter.data for parameter in program.parameters()] == ["Answer."]
    assert len(caplog.messages) == 1


def test_a_run_tells_of_them_before_it_asks_anybody(caplog: pytest.LogCaptureFixture) -> None:
    """Else it is paid for, ends well, and half of the program was never looked at."""
    task = simulated_task(rules=2, seed=3, train=8, val=8, test=8)
    program = Steps(task.program(), drafts=[chat()])
    with tg.use_models(forward=task.model), caplog.at_level(logging.WARNING):
        tg.Trainer(max_steps=1).fit(program, task.loss, optim.TGD(program.parameters()), task.train, task.val)
    (said,) = [each for each in caplog.messages if "plain lists" in each]
    assert "(drafts[0].system): they are not trained" in said
    assert "nn.ModuleList" in said


def test_a_loop_of_one_s_own_is_told_of_them_where_it_makes_its_optimizer(caplog: pytest.LogCaptureFixture) -> None:
    """Once; and freezing a program, or forgetting its feedback, is no occasion."""
    program = Steps(chat(), texts=[prompt() for _ in range(12)])
    program.requires_grad_(True).zero_grad()
    assert caplog.messages == []
    optim.TGD(program.parameters())
    list(program.parameters())
    (said,) = caplog.messages
    assert "(texts[0], " in said
    assert "texts[9] and 2 more): they are not trained" in said


def test_an_optimizer_without_parameters_says_where_none_are_found() -> None:
    """The whole program in a list is an error at once."""
    program = nn.Module()
    program.steps = [chat()]
    with pytest.raises(
        ValueError, match=r"also in nn\.ModuleList, .* but none in plain lists or dicts, or in the class"
    ):
        optim.TGD(program.parameters())
