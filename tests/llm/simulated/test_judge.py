import pytest


@pytest.mark.parametrize("kind", ["judge", "text_loss"])
def test_without_a_reference_it_stays_neutral(ask_json, scoring_request, kind):
    """Nothing to compare with is said, not hidden."""
    answer = ask_json(scoring_request(kind, "billing", None))
    assert answer.get("score", 3) == 3
    assert "compare" in (answer.get("explanation") or answer["criticism"])


def test_the_judge_compares_with_the_reference(ask_json, scoring_request):
    """Equal is best, contained is half, different is worst with the reason."""
    assert ask_json(scoring_request("judge", "Billing.", "billing")) == {"score": 5, "explanation": ""}
    assert ask_json(scoring_request("judge", "It is billing", "billing"))["score"] == 3
    wrong = ask_json(scoring_request("judge", "trust", "billing"))
    assert wrong["score"] == 1
    assert 'should be "billing"' in wrong["explanation"]


def test_the_text_loss_is_empty_when_satisfied(ask_json, scoring_request):
    """A satisfied loss sends a true zero."""
    assert ask_json(scoring_request("text_loss", "billing", "billing")) == {"nothing_wrong": True, "criticism": ""}
    assert "billing" in ask_json(scoring_request("text_loss", "trust", "billing"))["criticism"]
