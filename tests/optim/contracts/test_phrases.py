from __future__ import annotations

from typing import Any

import pytest

from textgrad_engine.optim.contracts import Forbids, Requires


@pytest.mark.parametrize("contract", [Requires, Forbids])
@pytest.mark.parametrize(
    ("phrases", "error", "message"),
    [
        ("be brief", TypeError, r"got 'be brief'; write \['be brief'\]"),
        ([], ValueError, "no phrase"),
        (["a", " "], ValueError, "blank"),
        ([3], TypeError, r"\[0\] of it is 3"),
        ({3}, TypeError, "a phrase is a text, got int"),
        (["\u200b"], ValueError, "blank"),
    ],
)
def test_phrases_that_mean_nothing_are_refused(contract: Any, phrases: Any, error: Any, message: str) -> None:
    """A text would be taken letter by letter, and an empty list would check nothing."""
    with pytest.raises(error, match=f"{contract.__name__}.*{message}"):
        contract(phrases)


@pytest.mark.parametrize(
    ("phrase", "text", "there"),
    [
        ("JSON object", "Answer with a json\n  OBJECT.", True),
        ("as", "Assess the case", False),
        ("as", "as-is", True),
        ("C++", "Use c++.", True),
        ("Straße", "STRASSE", True),
        ("不要", "请不要喊", True),
        ("a.b", "axb", False),
        ("{ticket}", "Read {ticket}s", True),
        ("JSON", "以JSON格式回答", True),
        ("JSON", "JSON으로 답하세요", True),
        ("AI", "使用AI回答", True),
        ("AI", "使用MAIL回答", False),
        ("gr\u00f6\u00dfe", "GRO\u0308SSE", True),
        ("istanbul", "\u0130STANBUL", True),
        ("a a", "xa a a", True),
        ("can't", "We can\u2019t", True),
        ("d\u2019accord", "d'accord", True),
        ("opt-in", "opt\u2011in", True),
        ('say "yes"', "say \u201cyes\u201d", True),
        ("sag 'ja'", "sag \u201aja\u2018", True),
        ("can't", "cant", False),
        ("कर", "यहाँ कर नहीं", True),
        ("कर", "यह काम करना", False),
        ("कि", "किताब दो", False),
        ("क", "कि", False),
        ("JSON", "JSON में दें", True),
        ("환불", "환불은 안 됩니다", True),
        ("الله", "والله", True),
        ("as an AI", "as an **AI**", True),
        ("as an AI", "_as_ *an* `AI`", True),
        ("as an AI", "_as an AI model_ or __as an AI__", True),
        ("AI", "an _AI_ model", True),
        ("AI", "an __AI__ model", True),
        ("as an AI", "as_an_AI", False),
        ("AI", "my_AI", False),
        ("AI", "AI_model", False),
        ("AI", "AI_v 2", False),
        ("valid **JSON**", "valid **JSON**", True),
        ("a", "* a", True),
        ("a b", "a * b", False),
    ],
)
def test_a_phrase_is_found_as_whole_words(phrase: str, text: str, there: bool) -> None:
    """Case and line ends aside; where words are written without spaces, anywhere."""
    assert (Requires([phrase]).problem("", text) is None) is there
    assert (Forbids([phrase]).problem("", text) is not None) is there


def test_case_counts_where_it_is_asked_for() -> None:
    """And the optimizer is told."""
    assert Requires(["JSON"], match_case=True).problem("", "json") == 'the phrase "JSON" is missing'
    assert Forbids(["US"], match_case=True).problem("", "tell us") is None
    assert "spelt just so" in Requires(["JSON"], match_case=True).describe("")


def test_all_phrases_are_named() -> None:
    """The optimizer has one further try."""
    problem = Requires(["be brief", "in French", "x"]).problem("", "X")
    assert problem == 'the phrase "be brief" is missing; the phrase "in French" is missing'
    assert Forbids(["a", "b"]).describe("") == 'These phrases are not in the text: "a", "b".'


def test_forbidden_phrases_of_the_old_text_may_become_fewer() -> None:
    """Step by step, with few edits at a time; they may not stay as they are."""
    contract = Forbids(["please"])
    assert contract.problem("Please, please.", "Please.") is None
    assert contract.problem("Please.", "Please, now.") == 'the phrase "please" must not be in the text'
