import pytest

from textgrad_engine.llm.request import GenerateConfig, Message, Request
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.llm.simulated.rules import read_policy
from textgrad_engine.llm.simulated.task import error_rate, split_prompt

TICKETS = [f"Where is my refund of {number} euros? It's late." for number in range(400)]


def test_house_rules_are_not_known_beforehand(sort):
    """Without instructions that say so, the model makes the newcomer's guess."""
    assert sort("My gift card is not accepted.") == "billing"


def test_a_stated_rule_is_applied(sort):
    """A rule in the prompt changes the answer."""
    assert sort("My gift card is not accepted.", "Gift vouchers are for the account team.") == "account"


def test_a_rule_beats_the_guess_about_another_topic(sort):
    """A house rule decides also where the rest of the mail is ordinary."""
    ticket = "Invoice please, and the refund is late. Also my gift card is empty."
    assert sort(ticket, "Gift cards go to account.") == "account"


def test_priority_decides_among_rules(sort):
    """A rule that claims precedence wins over one that is spoken of first."""
    ticket = "The login fails. Customs want money."
    rules = "Login problems go to technical.\nCustoms go to billing{}."
    assert sort(ticket, rules.format("")) == "technical"
    assert sort(ticket, rules.format(", before anything else")) == "billing"


def test_a_negated_rule_keeps_the_guess_away(sort):
    """ "Not billing" is obeyed although nothing better is known."""
    assert sort("My gift card is empty.", "Gift cards are not for billing.") != "billing"


def test_contradicting_lines_are_a_coin_flip(sort):
    """Instructions that contradict themselves sort worse."""
    rules = "Refunds go to trust.\nRefunds go to account."
    answers = [sort(ticket, rules) for ticket in TICKETS[:100]]
    assert 30 < answers.count("trust") < 70
    assert answers.count("trust") + answers.count("account") > 90


def test_slips_come_at_the_stated_rate(sort):
    """`noise` is the rate of wrong answers, and 0 means none."""
    wrong = sum(sort(ticket, noise=0.1) != "billing" for ticket in TICKETS)
    assert 0.05 < wrong / len(TICKETS) < 0.16
    assert {sort(ticket) for ticket in TICKETS[:50]} == {"billing"}


def test_very_long_instructions_cost_accuracy(head):
    """A prompt cannot grow for ever without harm."""
    short, long = read_policy(head), read_policy(head + "\nBe kind." * 100)
    assert error_rate(short, 80, 0.04) == 0.04
    assert error_rate(long, 300, 0.04) > 0.15
    assert error_rate(short, 2000, 0.04) > 0.15


def test_without_a_request_for_the_bare_name_the_answer_is_a_sentence(sort):
    """Losing the line about the form of the answer is not free."""
    system = "Queues: billing, shipping, returns, account, technical, trust."
    assert sort("Where is my refund?", system=system) == "This ticket belongs in billing."


def test_queue_names_of_the_prompt_are_used(sort):
    """An answer never names a queue that the prompt does not have."""
    system = "Queues: red, green or blue. Gift cards go to blue. Name only."
    assert sort("my gift card", system=system) == "blue"
    assert sort("hello", system=system) in {"red", "green", "blue"}


def test_everything_in_one_user_message_works(ask, head):
    """A program without a system message is understood."""
    content = f"{head}\nGift cards go to account.\n\nTicket:\nMy gift card is empty."
    assert ask(Request(messages=(Message(role="user", content=content),))) == "account"
    content = content.replace("Ticket:\n", "")
    assert ask(Request(messages=(Message(role="user", content=content),))) == "account"


def test_a_heading_before_the_ticket_is_not_part_of_it():
    """Templates may introduce the ticket."""
    assert split_prompt("Sort.", "Ticket: hello") == ("Sort.", "hello")


@pytest.mark.parametrize(
    "queue_type", [{"type": "string"}, {"type": "string", "enum": ["shipping", "account", "billing"]}]
)
def test_structured_output_is_obeyed(ask_json, head, queue_type):
    """The answer's keys and types are those of the user's schema."""
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}, "queue": queue_type}}
    config = GenerateConfig(response_format=ResponseFormat(name="Sorted", json_schema=schema))
    messages = (Message(role="system", content=head), Message(role="user", content="refund?"))
    assert ask_json(Request(messages=messages, config=config)) == {"sure": False, "queue": "billing"}
