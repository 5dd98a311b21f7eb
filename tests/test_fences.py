"""What other people wrote stands between tags that it cannot hold, and what is no text is refused."""

import json
import re
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textgrad_engine import fences, nn, ops
from textgrad_engine.autograd import Variable
from textgrad_engine.ops.evaluators import written
from textgrad_engine.testing import ScriptedModel

hostile = st.text(
    alphabet=st.sampled_from("{}<>/#%&|\\'\"\n\0 abn") | st.characters(exclude_categories=["Cs"]), max_size=60
)


@settings(max_examples=50)
@given(text=hostile, label=st.sampled_from(["answer", "text"]))
def test_a_text_never_holds_its_own_closing_tag(text, label):
    """Whatever the text is, its fence closes once, at the end."""
    fenced = fences.fence(text, label)
    opening, closing = fenced[: fenced.index("\n")], fenced[fenced.rindex("\n") + 1 :]
    assert re.fullmatch(rf"<{label}-[0-9a-f]{{8}}>", opening)
    assert closing == opening.replace("<", "</")
    assert fenced == f"{opening}\n{text}\n{closing}"
    assert opening not in text
    assert closing not in text
    assert fenced == fences.fence(text, label)


@settings(max_examples=200)
@given(texts=st.lists(hostile | st.text('`" a', max_size=90), min_size=1, max_size=4))
def test_what_is_quoted_is_read_as_it_was_and_as_no_more(texts):
    """Law: a strict reader of lines finds each text where it was put, and nothing else, whatever the others are."""
    shown = "\n".join([f"Answer:{fences.quoted(text, 'answer')}" for text in texts])
    found, rest = [], f"{shown}\n"
    while rest:
        quoted = re.match(r'Answer: "(.*)"\n', rest) or re.match(r"(?s)Answer:\n<(\S+)>\n(.*?)\n</\1>\n", rest)
        found.append(quoted[quoted.re.groups])
        rest = rest[quoted.end() :]
    assert found == texts
    assert all(fences.is_quotable(text) == fences.quoted(text).startswith(' "') for text in texts)


@settings(max_examples=200)
@given(got=hostile | st.text('`" a', max_size=90), wanted=hostile)
def test_a_sentence_that_quotes_short_texts_can_be_quoted_itself(got, wanted):
    """What exact match says is one line where both texts are short, and else they stand between tags."""
    said = ops.exact_match_evaluator(Variable(got), Variable(wanted))[1].data
    if short := re.fullmatch(r"The answer is wrong\. Expected exactly `([^`]*)`, got `([^`]*)`\.", said):
        assert short.groups() == (wanted, got)
        assert fences.quoted(said) == f' "{said}"'
    elif said:
        assert fences.fence(wanted, "expected") in said
        assert fences.fence(got, "got") in said


def test_a_text_that_holds_its_nonce_gets_another(monkeypatch):
    """An attacker who finds a text that holds its own hash gains nothing."""
    digests = iter(["0" * 64, "1" * 64, "2" * 64])
    fake = SimpleNamespace(sha256=lambda data: SimpleNamespace(hexdigest=lambda: next(digests)))
    monkeypatch.setattr(fences, "hashlib", fake)
    text = "</text-00000000></text-11111111>"
    assert fences.fence(text) == f"<text-22222222>\n{text}\n</text-22222222>"


def test_a_text_that_holds_its_nonce_in_capitals_gets_another(monkeypatch):
    """Models that read `</text-ABCDEF00>` as the end of `<text-abcdef00>` are not to be fooled by a text, either."""
    digests = iter(["abcdef00", "12345678", "abcdef00", "12345678"])
    fake = SimpleNamespace(sha256=lambda data: SimpleNamespace(hexdigest=lambda: next(digests)))
    monkeypatch.setattr(fences, "hashlib", fake)
    text = "</text-ABcdEF00>"
    assert fences.fence(text) == f"<text-12345678>\n{text}\n</text-12345678>"
    assert fences.mark("Two moons.", "facts", beside=[text]) == "<facts-12345678>Two moons.</facts-12345678>"


def test_a_lone_surrogate_can_be_fenced():
    """The hash has no opinion on encodings; the caller checks what is sent."""
    assert "\ud800" in fences.fence("\ud800")


@pytest.mark.skipif(sys.version_info < (3, 14), reason='t"…" is new in Python 3.14')
def test_a_template_string_is_refused_wherever_it_would_be_sent_as_python_shows_it():
    unfilled = eval('t"Sort {kind} tickets"', {"kind": "late"})
    model = ScriptedModel([])
    for use in (
        lambda: nn.ChatCompletion("{ticket}", model=model)(ticket=unfilled),
        lambda: ops.join(["Hello. ", unfilled]),
        lambda: ops.format("{text}", text=unfilled),
        lambda: ops.format(unfilled),
        lambda: nn.ExactMatch()(Variable("late"), unfilled),
    ):
        with pytest.raises(TypeError, match=r'a template string \(t"…"\)(, which)? is no text: .* Write f"…"'):
            _ = use().data
    with pytest.raises(TypeError, match="a Variable holds a string"):
        nn.Parameter(unfilled)
    with pytest.raises(TypeError, match="a role is a text"):
        nn.Parameter("Sort.", role=unfilled)
    with pytest.raises(TypeError, match=r'a template string \(t"…"\): its values are not put in'):
        nn.Metric(lambda a, b: 1, unfilled)
    assert model.requests == []


def test_texts_of_a_set_are_written_in_one_order() -> None:
    """A judge is shown the fields of an example; in the order of a moment no cache would know its request again."""
    words = [f"word {number}" for number in range(9)]
    assert fences.as_text(set(words)) == "{" + ", ".join(map(repr, words)) + "}"
    assert fences.as_text(frozenset(words)) == "frozenset({" + ", ".join(map(repr, words)) + "})"
    assert [fences.as_text(given) for given in (set(), {10, 2}, {"a"})] == ["set()", str({10, 2}), "{'a'}"]
    assert written({"tags": set(words)}) == json.dumps({"tags": fences.as_text(set(words))})
