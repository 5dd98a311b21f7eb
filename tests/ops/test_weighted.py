"""The mean of several scores: for how much of it each counts, told to whoever hears what was said of it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine import Variable, nn, ops
from textgrad_engine.llm import Request
from textgrad_engine.ops.weights import shares_of
from textgrad_engine.optim.feedback import item_of
from textgrad_engine.testing import FunctionModel, feedback_for

ANSWER = '{"label": "late", "why": "so"}'

LABEL = "Of the score, label counts for 75%:\n"
BOTH = "Of the score, label counts for 75%, why for 25%:\n"


def two() -> nn.Weighted:
    """Of a label that is compared, and a reason that a judge never finds good."""
    losses = {"label": nn.OnField(nn.ExactMatch(), "label"), "why": nn.OnField(nn.Judge("Is it a reason?"), "why")}
    return nn.Weighted(losses, {"label": 3, "why": 1})


class Asked:
    """A model that answers with JSON, a judge that says no, and a critic; remembers what the critic was asked."""

    def __init__(self) -> None:
        self.critic: list[str] = []
        self.model = FunctionModel(self._answer)

    def _answer(self, request: Request) -> Any:
        if request.purpose == "judge":
            return {"score": 0, "explanation": "Say because."}
        if request.purpose == "forward":
            return ANSWER
        self.critic.append(request.messages[-1].text)
        assert request.config.response_format is not None
        return feedback_for(request, "Do better.")

    def pieces(self, number: int = 0) -> list[str]:
        """What stands between the tags of feedback in one request to the critic."""
        return re.findall(r"<feedback-\w+>\n(.*?)\n</feedback-", self.critic[number], re.DOTALL)


@given(st.lists(st.floats(min_value=5e-324, max_value=1.7e308), min_size=1, max_size=6))
def test_shares_are_parts_of_one_however_large_or_small_weights_are(weights: list[float]) -> None:
    """No sum of them is infinite, and equal weights have equal shares."""
    shares = shares_of(weights)
    assert sum(shares) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in shares)
    assert shares_of(weights * 2)[: len(weights)] == pytest.approx([share / 2 for share in shares])


def test_the_critic_is_told_for_how_much_each_metric_counts() -> None:
    """Once for each piece of feedback, that of a judge too; else a trifle is put right at the cost of the rest."""
    asked = Asked()
    prompt = nn.Parameter("Route.", role="system prompt")
    with tg.use_models(forward=asked.model):
        two()(nn.ChatCompletion("{mail}", system=prompt)(mail="hello"), "lost").backward()
    label, why = asked.pieces()
    assert label.startswith(f"{LABEL}On the field label of this answer: The answer is wrong.")
    assert why == "Of the score, why counts for 25%:\nOn the field why of this answer: Say because."


def test_the_critic_of_an_earlier_prompt_hears_it_as_well() -> None:
    """Its feedback was made from that on both metrics; and so does whoever rewrites the prompts."""
    asked = Asked()
    first, second = nn.Parameter("Sum up.", role="first"), nn.Parameter("Route.", role="second")
    with tg.use_models(forward=asked.model):
        mail = nn.ChatCompletion("{mail}", system=first)(mail="hello")
        two()(nn.ChatCompletion("{mail}", system=second)(mail=mail), "lost").backward()
    assert asked.pieces(1) == [f"{BOTH}Do better."]
    assert [item_of(each.grad[0]).text for each in (first, second)] == [f"{BOTH}Do better."] * 2


def test_what_one_metric_alone_said_counts_for_that_one() -> None:
    """The other one is satisfied, and silent."""
    asked = Asked()
    prompt = nn.Parameter("Route.", role="system prompt")
    judge = FunctionModel(lambda request: {"score": 1, "explanation": ""})
    with tg.use_models(forward=asked.model, judge=judge):
        two()(nn.ChatCompletion("{mail}", system=prompt)(mail="hello"), "lost").backward()
    assert prompt.grad[0].source is not None
    assert prompt.grad[0].source.shares == (("label", 0.75),)


def test_a_share_of_a_share_is_its_part_of_the_whole() -> None:
    """Where one of several scores is itself one of several."""
    inner = nn.Weighted({"right": nn.ExactMatch(), "same": nn.ExactMatch()}, {"right": 1, "same": 4})
    answer = Variable("late", role="answer", requires_grad=True)
    nn.Weighted({"inner": inner, "other": nn.ExactMatch()})(answer, "lost").backward()
    shares = [item.source.shares for item in answer.grad if item.source is not None]
    assert shares == [(("right", pytest.approx(0.1)),), (("same", pytest.approx(0.4)),), (("other", 0.5),)]


def test_a_score_of_one_metric_counts_for_all_of_it_and_nobody_is_told() -> None:
    """A sentence in each request for nothing."""
    answer = Variable("late", role="answer", requires_grad=True)
    nn.Weighted({"right": nn.ExactMatch()})(answer, "lost").backward()
    assert item_of(answer.grad[0]).text == answer.grad[0].data


def test_a_text_that_is_scored_itself_hears_it_too() -> None:
    """No critic stands between: an optimizer is told, and that it was said of this very text."""
    text = nn.Parameter("late", role="letter")
    nn.Weighted({"right": nn.ExactMatch(), "again": nn.ExactMatch()}, {"right": 1, "again": 199})(
        text, "lost"
    ).backward()
    items = [item_of(item) for item in text.grad]
    assert [item.text.split("\n")[0] for item in items] == [
        "Of the score, right counts for 0.5%:",
        "Of the score, again counts for 99.5%:",
    ]
    assert all(item.direct for item in items)


def test_each_example_of_a_batch_hears_it() -> None:
    """Inside of `vmap`, of a batch as a list, and of a gradient of a function."""
    asked = Asked()
    prompt = nn.Parameter("Route.", role="system prompt")
    chat = nn.ChatCompletion("{mail}", system=prompt)
    with tg.use_models(forward=asked.model):
        tg.func.vmap(lambda mail, target: two()(chat(mail=mail), target))(["u", "v"], ["lost", "lost"]).backward()
        inside = tg.func.grad(lambda text, mail: two()(tg.func.functional_call(chat, {"system": text}, mail=mail), "x"))
        tg.func.vmap(inside, in_dims=(None, 0))(prompt.detach(), ["u", "v"])
    assert [[piece.split("\n")[0] for piece in asked.pieces(number)] for number in range(4)] == [
        ["Of the score, label counts for 75%:", "Of the score, why counts for 25%:"]
    ] * 4
    batch = Variable(["late", "lost"], role="answers", requires_grad=True)
    nn.Weighted({"right": nn.ExactMatch(), "kind": nn.Judge("Is it kind?", model=asked.model)})(
        batch, "lost"
    ).backward()
    assert [item.source.shares for item in batch.grad if item.source] == [(("right", 0.5),), (("kind", 0.5),)]


def test_entries_of_a_batch_that_were_said_different_things_hear_their_own_share() -> None:
    """Where entries come from one list, and only some hear of a metric."""
    one, other = (Variable(text, role="answer", requires_grad=True) for text in ("late", "lost"))
    judge = FunctionModel(lambda request: {"score": int("late" in request.messages[-1].text), "explanation": "Why?"})
    loss = nn.Weighted(
        {"right": nn.ExactMatch(), "kind": nn.Judge("Is it kind?", model=judge)}, {"right": 3, "kind": 1}
    )
    total = ops.sum([loss(one, "lost"), loss(other, "lost")])
    total.backward()
    assert [item_of(item).text.split("\n")[0] for item in (*one.grad, *other.grad)] == [
        "Of the score, right counts for 75%:",
        "Of the score, kind counts for 25%:",
    ]
