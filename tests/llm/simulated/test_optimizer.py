from collections import Counter

import pytest

from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.llm.simulated.optimizer import BLAND
from textgrad_engine.llm.simulated.rules import read_policy

GIFT = "Tickets about gift cards go to account."
CUSTOMS = "State a rule: customs duties -> billing."
SEEDS = range(60)


def test_without_feedback_it_writes_nothing_that_helps(ask_json, optimizer_request, head):
    """A rewrite without gradients is a control, not a way to learn."""
    (edit,) = ask_json(optimizer_request(head, []))["edits"]
    assert edit["text"] in BLAND
    assert edit["feedback"] == []
    text = ask_json(optimizer_request(head, [], kind="rewrite"))["text"]
    assert read_policy(text).rules == ()


def test_vague_feedback_teaches_no_rule(ask_json, optimizer_request, head):
    """What names no queue cannot become a rule."""
    edits = ask_json(optimizer_request(head, [("Read the whole ticket before deciding.", 3)]))["edits"]
    assert [edit["text"] in BLAND for edit in edits] == [True]


def test_edits_answer_the_most_supported_feedback_and_name_it(ask_json, optimizer_request, head):
    """Items that share a lesson become one edit that lists them all."""
    feedback = [(CUSTOMS, 2), (GIFT, 2), ("Add that gift vouchers belong in account, not in billing.", 3)]
    for seed in SEEDS:
        edits = ask_json(optimizer_request(head, feedback), TicketsModel(seed))["edits"]
        assert edits[0]["feedback"] == [2, 3]
        assert edits[0]["op"] == "add"
        assert edits[0]["line"] == 8
        assert edits[0]["reason"]


def test_most_edits_are_right_and_some_are_garbled(ask_json, optimizer_request, head):
    """The optimizer is sometimes wrong; validation has to catch it."""
    queues = Counter(
        rule.queue
        for seed in range(200)
        for edit in ask_json(optimizer_request(head, [(GIFT, 2)]), TicketsModel(seed))["edits"]
        for rule in read_policy(f"{head}\n{edit['text']}").rules
    )
    assert queues["account"] > 160
    assert 2 < sum(queues.values()) - queues["account"] < 40


def test_a_line_that_says_otherwise_is_replaced(ask_json, optimizer_request, head):
    """Two lines never disagree because of an edit."""
    edits = ask_json(optimizer_request(f"{head}\n- Gift cards go to trust.", [(GIFT, 2)]))["edits"]
    assert (edits[0]["op"], edits[0]["line"]) == ("replace", 9)
    assert edits[0]["text"].startswith("- ")


def test_what_the_text_says_already_is_not_said_again(ask_json, optimizer_request, head):
    """No edit is better than a repetition."""
    assert ask_json(optimizer_request(f"{head}\nSend gift vouchers to account.", [(GIFT, 2)]))["edits"] == []


@pytest.mark.parametrize("kind", ["patch", "rewrite"])
def test_placeholders_survive(ask_json, optimizer_request, head, kind):
    """A line that holds a placeholder is neither replaced nor dropped."""
    text = f"{head}\nFor {{shop}}: gift cards go to trust."
    for seed in SEEDS:
        answer = ask_json(optimizer_request(text, [(GIFT, 2)], kind=kind), TicketsModel(seed))
        if kind == "patch":
            assert all(edit["op"] == "add" for edit in answer["edits"])
        else:
            assert "{shop}" in answer["text"]


def test_no_more_edits_than_allowed(ask_json, optimizer_request, head):
    """`max_edits` is a limit, whatever else happens."""
    feedback = [
        (GIFT, 2),
        (CUSTOMS, 2),
        ("Warranty claims go to technical.", 2),
        ("Login trouble goes to technical.", 5),
    ]
    for seed in SEEDS:
        request = optimizer_request(head, feedback, max_edits=2)
        assert len(ask_json(request, TicketsModel(seed))["edits"]) <= 2


def test_a_rewrite_sometimes_drops_a_line(ask_json, optimizer_request, head):
    """Whole rewrites are the riskier way, as with real models."""
    lost = 0
    for seed in range(100):
        text = ask_json(optimizer_request(head, [(GIFT, 2)], kind="rewrite"), TicketsModel(seed))["text"]
        lost += len(set(head.split("\n")) - set(text.split("\n")))
    assert 10 < lost < 45


def test_one_complaint_is_not_enough_for_precedence_but_two_are(ask_json, optimizer_request, head):
    """Words like "even if" are written only where several items ask for them."""
    wish = "Tickets about safety hazards go to trust, also when the mail speaks of warranty claims."
    for times in (1, 2):
        edits = ask_json(optimizer_request(head, [(wish, times)]), TicketsModel(3))["edits"]
        rules = [rule for edit in edits for rule in read_policy(f"{head}\n{edit['text']}").rules]
        assert [rule.priority for rule in rules] == [times == 2]


def test_rejected_edits_count_against_trying_them_again(ask_json, optimizer_request, head):
    """History is read: what failed before steps back behind what was not tried."""
    feedback = [(GIFT, 2), (CUSTOMS, 2)]
    past = ["added 'Gift cards go to account.' — taken back: validation score 0.500 -> 0.400"]
    first = ask_json(optimizer_request(head, feedback))["edits"]
    again = ask_json(optimizer_request(head, feedback, history=past))["edits"]
    assert first[0]["feedback"] == [1]
    assert again[0]["feedback"] == [2]


@pytest.mark.parametrize("kind", ["patch", "rewrite"])
def test_the_kind_is_recognised_without_a_response_format(ask_json, optimizer_request, head, kind):
    """Endpoints without structured output get the same JSON."""
    answer = ask_json(optimizer_request(head, [(GIFT, 2)], kind=kind, structured=False))
    assert answer == ask_json(optimizer_request(head, [(GIFT, 2)], kind=kind))


def test_a_merge_takes_over_what_the_text_says_nothing_of(ask_json, optimizer_request, head):
    """A rule about something else is added, one that contradicts is not, and what both have is left alone."""
    text = f"{head}\nGift cards go to account."
    other = " | You sort support mail.\n+| Gift cards go to trust.\n+| Customs duties go to billing."
    edits = ask_json(optimizer_request(text, [], kind="crossover", other=other))["edits"]
    assert [(edit["op"], edit["line"], edit["text"]) for edit in edits] == [("add", 9, "Customs duties go to billing.")]
    assert ask_json(optimizer_request(text, [], kind="crossover", other=" | You sort support mail."))["edits"] == []


def test_a_merge_takes_over_a_rule_once_and_no_line_that_says_none(ask_json, optimizer_request, head):
    """The rules of a line were read while they were looked for, and then there were none left to be known."""
    other = "+| Be kind.\n+| Chargebacks go to trust.\n+| Send chargebacks to trust."
    edits = ask_json(optimizer_request(head, [], kind="crossover", other=other))["edits"]
    assert [edit["text"] for edit in edits] == ["Chargebacks go to trust."]
