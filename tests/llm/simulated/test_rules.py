import pytest

from textgrad_engine.llm.simulated.concept import QUEUES
from textgrad_engine.llm.simulated.critic import _SAYINGS
from textgrad_engine.llm.simulated.lexicon import LEXICON
from textgrad_engine.llm.simulated.optimizer import _CLAUSES, _WORDINGS
from textgrad_engine.llm.simulated.rules import Rule, queue_names, read_policy, rules_in

HEAD = "\n".join(f"- {queue}: mail for that team" for queue in QUEUES)


def only(line: str) -> Rule:
    (rule,) = rules_in(line, QUEUES)
    return rule


@pytest.mark.parametrize(
    "line",
    [
        "Be accurate and consistent.",
        "Read the whole ticket before deciding.",
        "Gift cards matter to us.",
        "Answer with account, billing, returns, shipping, technical or trust.",
        "",
    ],
)
def test_a_line_without_concept_and_queue_is_no_rule(line: str):
    """Advice in general does not teach the task model anything."""
    assert list(rules_in(line, QUEUES)) == []


@pytest.mark.parametrize(
    "line",
    [
        "Gift cards go to account.",
        "Route anything about a gift card to account, not billing.",
        "gift vouchers -> account",
        "- Gift card: account",
        "If the customer asks about a gift card, choose account.",
        "Not billing but account is right for gift cards.",
        "Gift cards never belong in billing: send them to account.",
        "Send to account all mail on gift cards.",
        "The account team handles gift cards.",
        "Gift cards go to the **account** queue because billing cannot see balances.",
        "Even if a refund is asked for, gift cards belong in account.",
        "Gift cards go to account, even if the mail also speaks of refunds, login or customs.",
    ],
)
def test_paraphrases_state_the_same_rule(line: str):
    """A rule is found by meaning, as far as plain matching goes, not by one wording."""
    rule = only(line)
    assert (rule.concept, rule.queue, rule.negated) == ("gift_card", "account", False)


def test_a_negated_rule_only_excludes():
    """ "Not billing" says nothing about where else."""
    assert only("Gift cards are not for billing.") == Rule("gift_card", "billing", negated=True)


def test_one_line_may_hold_several_rules():
    """Each concept goes to the queue that follows it."""
    rules = list(rules_in("Chargebacks go to trust, gift cards to account; customs duties go to billing.", QUEUES))
    assert [(rule.concept, rule.queue) for rule in rules] == [
        ("chargeback", "trust"),
        ("gift_card", "account"),
        ("customs", "billing"),
    ]


@pytest.mark.parametrize(
    "words", ["before anything else", "whatever else it says", "even if other things come up", "always"]
)
def test_priority_words_are_understood(words: str):
    """Priorities in the instructions are not lost."""
    assert only(f"Safety hazards go to trust, {words}.").priority
    assert not only("Safety hazards go to trust.").priority


def test_queues_are_read_from_the_text():
    """The model answers with the names that the prompt uses."""
    assert queue_names("- money: bills\n- boxes: parcels\n- rest: anything\nNote: be kind") == (
        "money",
        "boxes",
        "rest",
    )
    assert queue_names("Sort the mail.") == ()
    assert read_policy("Sort the mail.").queues == QUEUES


def test_a_list_under_a_heading_is_read():
    """People write rules as a heading with bullets, too."""
    policy = read_policy(f"{HEAD}\nThese always go to account:\n- gift cards\n- Wi-Fi trouble\n\nBe kind.")
    assert [(rule.concept, rule.queue) for rule in policy.rules] == [("gift_card", "account"), ("pairing", "account")]


def test_the_phrase_behind_a_queue_counts_where_it_differs_from_the_guess():
    """House rules may also be written into the list of queues."""
    policy = read_policy("- billing: invoices, customs\n- shipping: parcels\n- account: profiles, gift cards")
    assert {(rule.concept, rule.queue) for rule in policy.rules} == {("customs", "billing"), ("gift_card", "account")}
    assert policy.described["invoice"] == "billing"


def test_contradictions_are_counted_and_priority_settles_them():
    """Two lines that disagree are a defect of the text, unless one of them claims precedence."""
    assert read_policy(f"{HEAD}\nGift cards go to account.\nSend gift cards to trust.").contradictions == 1
    settled = read_policy(f"{HEAD}\nGift cards go to account.\nAlways send gift cards to trust.")
    assert settled.contradictions == 0
    assert [rule.queue for rule in settled.about("gift_card")] == ["trust"]


def test_every_wording_of_critic_and_optimizer_is_read_as_the_rule_it_states():
    """The loop from criticism to rule to behaviour has no wording that falls through."""
    for concept in LEXICON:
        other = next(queue for queue in QUEUES if queue != concept.queue)
        for phrase in concept.phrases:
            slots = {
                "phrase": phrase,
                "Phrase": phrase[0].upper() + phrase[1:],
                "queue": other,
                "answer": concept.queue,
            }
            lines = [
                saying.format(**slots, clause=", also when the mail speaks of customs fees") for saying in _SAYINGS
            ]
            lines += [wording.format(**slots, clause=clause) for wording in _WORDINGS for clause in ("", *_CLAUSES)]
            for line in lines:
                first = next(rules_in(line, QUEUES), None)
                assert first is not None, line
                assert (first.concept, first.queue, first.negated) == (concept.name, other, False), line
