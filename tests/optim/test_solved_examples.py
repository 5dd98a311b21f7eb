"""`proposers.Demonstrations` in a run: which searches have solved examples for it, and what the others say."""

from __future__ import annotations

import re
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.errors import ConfigError
from textgrad_engine.llm import Request
from textgrad_engine.optim.proposers import Demonstrations
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Objective, Trainer
from textgrad_engine.train.estimate import estimate

KINDS = {"bill": "billing", "card": "account", "crash": "technical"}
MAILS = [f"{kind} {kind}s {kind}{n}" for n in range(4) for kind in KINDS]
SOLVED = [mail for mail in MAILS if "bill" in mail or mail.endswith("0")]
"""What the program answers right without being shown anything."""


class Mails:
    """Mails to sort: bills come out right, and the first mail of each kind; the others where an example of it is shown.

    Args:
        targets: whether the training examples say what is right.
    """

    def __init__(self, targets: bool = True) -> None:
        self.program = nn.ChatCompletion("{mail}", system=nn.Parameter("Sort.", role="system prompt"))
        self.model = FunctionModel(self.answer)
        self.val = [{"id": f"v{n}", "mail": mail, "target": KINDS[mail.split()[0]]} for n, mail in enumerate(MAILS)]
        self.train = [{**row, "id": f"t{n}"} for n, row in enumerate(self.val)]
        if not targets:
            self.train = [{name: row[name] for name in ("id", "mail")} for row in self.train]

    def answer(self, request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Wrong queue.")
        system, mail = request.messages[0].text, request.messages[-1].text
        kind = mail.split()[0]
        return KINDS[kind] if mail in SOLVED or f"mail: {kind}" in system else "none"

    def loss(self) -> Any:
        def right(said: str, wanted: Any = None) -> float:
            return float(said == wanted if wanted is not None else said != "none")

        return nn.Metric(right, "the queue is right")

    def steps(self, optimizer: Any, most: int = 1) -> list[Any]:
        objective = Objective(self.program, self.loss(), self.train, self.val)
        with use_models(forward=self.model):
            found = [decided for _ in range(most) if (decided := optimizer.step(objective)) is not None]
        optimizer.close()
        return found

    @property
    def text(self) -> str:
        return str(self.program.system.data)


def shown(text: str) -> list[tuple[str, str]]:
    return re.findall(r"mail: (\w+ \w+ \w+)\nRight answer: (\w+)", text)


def kinds_in(text: str) -> set[str]:
    assert all(KINDS[mail.split()[0]] == answer for mail, answer in shown(text))
    return {mail.split()[0] for mail, _ in shown(text)}


SEARCHES: dict[str, Any] = {
    "ParetoSearch": lambda params, way: optim.ParetoSearch(params, batch_size=6, proposals=1, proposer=way),
    "BeamSearch": lambda params, way: optim.BeamSearch(params, rounds=1, paraphrases=0, gradients=1, proposer=way),
}


@pytest.mark.parametrize("name", ["PatchSearch", "TGD", "RandomSearch"])
def test_who_has_no_solved_examples_says_so_at_once(name: str) -> None:
    """One proposal after the other would be dropped; the message names a search that has them."""
    here = Mails()
    with pytest.raises(ConfigError) as caught:
        getattr(optim, name)(here.program.parameters(), proposer=Demonstrations(4, "nearest"))
    said = str(caught.value)
    assert said.startswith(f"{name} knows no solved examples, so Demonstrations(k=4, select='nearest') has nothing")
    assert "BootstrapDemos(params, proposer=Demonstrations(4, 'nearest')), or 'label'" in said


@pytest.mark.parametrize("name", SEARCHES)
def test_examples_near_to_what_fails_are_shown(name: str) -> None:
    """Bills come out right, so nobody needs an example of them; nothing is run to find that out."""
    here = Mails()
    decided = here.steps(SEARCHES[name](here.program.parameters(), Demonstrations(2, "nearest")))
    assert decided[0].kept
    assert kinds_in(here.text) == {"card", "crash"}
    failed = {f"t{MAILS.index(mail)}" for mail, _ in shown(here.text)} & set(decided[0].examples)
    assert not failed - {f"t{MAILS.index(mail)}" for mail in SOLVED}
    asked = [request for request in here.model.requests if request.purpose == "forward"]
    feedback = {"ParetoSearch": 6 + 6, "BeamSearch": 12 + 4}[name]  # a minibatch twice; a minibatch and its errors
    assert len(asked) == 2 * len(here.val) + feedback


@pytest.mark.parametrize("name", SEARCHES)
def test_about_as_many_examples_of_each_label_are_shown(name: str) -> None:
    """Whatever fails."""
    here = Mails()
    here.steps(SEARCHES[name](here.program.parameters(), Demonstrations(3, "label")))
    assert kinds_in(here.text) == set(KINDS)


@pytest.mark.parametrize("name", SEARCHES)
def test_without_targets_what_was_solved_in_the_minibatch_is_shown(name: str) -> None:
    """With the program's own answers; the examples that fail have none."""
    here = Mails(targets=False)
    decided = here.steps(SEARCHES[name](here.program.parameters(), Demonstrations(4, "label")))
    found = shown(decided[0].changes[0].after)
    assert found
    assert all(mail in SOLVED for mail, _ in found)


@pytest.mark.parametrize("name", SEARCHES)
def test_no_critic_is_asked_what_nobody_reads(name: str) -> None:
    """Solved examples are chosen by what came out wrong, and not by what is said of it."""
    here = Mails()
    optimizer = SEARCHES[name](here.program.parameters(), Demonstrations(2, "nearest"))
    assert here.steps(optimizer)[0].kept
    assert {request.purpose for request in here.model.requests} == {"forward"}
    trainer = Trainer(max_steps=1)
    foreseen = estimate(trainer, here.program, here.loss(), optimizer, here.train, here.val)
    assert "backward" not in foreseen.calls


@pytest.mark.parametrize(("way", "kinds"), [
    (Demonstrations(2, "nearest"), {"card", "crash"}), (Demonstrations(2, "label"), {"bill", "card"}),
    (Demonstrations(3, "label"), {"bill", "card", "crash"}),
])  # fmt: skip
def test_bootstrapped_examples_are_chosen_by_label_or_nearest_to_what_fails(way: Any, kinds: set[str]) -> None:
    """A whole run: the program solves all bills and one mail of each other kind, which those that fail are like."""
    here = Mails()
    optimizer = optim.BootstrapDemos(here.program.parameters(), bootstrapped=12, labelled=0, sets=1, proposer=way)
    with use_models(forward=here.model):
        Trainer(max_steps=3).fit(here.program, here.loss(), optimizer, here.train, here.val)
    assert kinds_in(here.text) == kinds
    assert len(shown(here.text)) == way.k
    assert all(mail in SOLVED for mail, _ in shown(here.text))


class InTwoSteps(nn.Module):
    """What a mail is about, and where such a mail goes."""

    def __init__(self) -> None:
        super().__init__()
        self.about = nn.ChatCompletion("{mail}", system=nn.Parameter("About.", role="first prompt"))
        self.queue = nn.ChatCompletion("{about} in {mail}", system=nn.Parameter("Queue.", role="second prompt"))

    def forward(self, mail: str) -> Any:
        return self.queue(about=self.about(mail=mail), mail=mail)


@pytest.mark.parametrize("step", ["about", "queue"])
@pytest.mark.parametrize("name", SEARCHES)
def test_each_step_of_a_program_is_shown_its_own_examples(name: str, step: str) -> None:
    """What it was given and answered where the end was right; the data's answers are for the last one."""
    here = Mails()
    real = here.answer
    here.program = InTwoSteps()  # type: ignore[assignment]
    prompt = getattr(here.program, step).system
    here.program.requires_grad_(False)
    prompt.requires_grad_(True)

    def answer(request: Request) -> Any:
        if request.purpose == "backward":
            return real(request)
        asked = request.messages[-1].text
        if " in " not in asked:
            return f"{asked.split()[0]} matter"
        return KINDS["bill"] if asked.startswith("bill") else "none"

    here.model._fn = answer
    decided = here.steps(SEARCHES[name]([prompt], Demonstrations(12, "label")))
    text = decided[0].changes[0].after
    solved = re.findall(r"mail: (bill \w+ \w+)\nRight answer: (.*)", text)
    assert solved
    assert {said for _, said in solved} == {"bill matter" if step == "about" else "billing"}
    others = re.findall(r"Example \d+\nmail: (c\w+ \w+ \w+)\nRight answer: (.*)", text)
    assert bool(others) == (step == "queue")
    assert all(KINDS[mail.split()[0]] == said for mail, said in others)
    assert ("about: bill matter\nmail: bill" in text) == (step == "queue")
