import pytest

from textgrad_engine.llm.simulated.concept import QUEUES
from textgrad_engine.llm.simulated.concepts import concepts_in_ticket, find, fold, own_words
from textgrad_engine.llm.simulated.lexicon import LEXICON


def names(ticket: str) -> list[str]:
    return [concept.name for concept in concepts_in_ticket(ticket)]


def test_text_without_any_concept_has_none():
    """A ticket about nothing known is not forced into a concept."""
    assert names("hello?") == []


def test_what_is_mentioned_in_passing_does_not_count():
    """Distractors do not decide where a ticket goes."""
    assert names("Where is my refund? By the way, the login works again.") == ["refund"]


def test_an_aside_counts_when_there_is_nothing_else():
    """A ticket whose only topic stands in an aside is still read."""
    assert names("It's not about much, just my gift card.") == ["gift_card"]


def test_quoted_mail_and_signature_do_not_count():
    """Only what the sender wrote now is read."""
    ticket = "On Tue, 3 May, Joost wrote:\n> Your gift card?\nNo, where is my refund\n-- \nLogin Ltd, customs brokers"
    assert own_words(ticket) == "No, where is my refund"
    assert names(ticket) == ["refund"]


def test_quoted_mail_counts_when_there_is_nothing_else():
    """A reply that says only "still the same" is read together with what it answers."""
    assert names("> My planter won't pair\n\nstill the same") == ["pairing"]


def test_what_stands_out_comes_first():
    """A hazard is noticed before everything else in the same mail."""
    assert names("Invoice please. Oh, and the lamp caught fire.")[0] == "safety_hazard"


@pytest.mark.parametrize(
    ("ticket", "expected"),
    [
        ("Wir möchten das Abo kündigen, Samen-Abo Nr. 3", "cancel_subscription"),
        ("ma carte cadeau ne marche pas", "gift_card"),
        ("olvidé mi contraseña", "login"),
        ("GIFTCARD???", "gift_card"),
        ("I can\u2019t log in", "login"),
        ("dazi doganali", "customs"),
    ],
)
def test_other_languages_accents_and_case_are_recognised(ticket: str, expected: str):
    """Real mail is not written in tidy English."""
    assert expected in names(ticket)


def test_every_phrase_is_recognised_as_its_own_concept():
    """What critic and optimizer write is what task model and optimizer read."""
    for concept in LEXICON:
        assert concept.phrases
        for phrase in concept.phrases:
            assert concept in [mention.concept for mention in find(phrase)], (concept.name, phrase)


def test_lexicon_is_well_formed():
    """Names are unique, queues known, and patterns can match folded text."""
    assert len({concept.name for concept in LEXICON}) == len(LEXICON) >= 30
    assert {concept.queue for concept in LEXICON} == set(QUEUES)
    for concept in LEXICON:
        for pattern in concept.patterns:
            plain = pattern.replace("\\W", "")
            assert plain == fold(plain), (concept.name, pattern)
