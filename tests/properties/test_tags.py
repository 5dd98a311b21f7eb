"""Laws of texts between tags: what comes out is what was put in, or an error; never a part, never somebody else's."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm import GenerateConfig, Message, Request, ResponseFormat, inwords, tokens
from textgrad_engine.llm.tags import Part, nonce_of, parts_of, put_together, texts_in
from textgrad_engine.llm.wire import messages_of
from textgrad_engine.optim.patch import REWRITE_SCHEMA

REWRITE = ResponseFormat(name="rewrite", json_schema=REWRITE_SCHEMA)
TWO = parts_of(REWRITE_SCHEMA)
N = "0a1b2c3d"
TAGS = [f"<{slash}{label}-{N}>" for label in ("text", "reason") for slash in ("", "/")]

PIECES = st.sampled_from(
    [
        *TAGS,
        N,
        f"<text -{N}>",
        "</text>",
        "<text-00000000>",
        "</text-00000000>",
        "{{ nonce }}",
        "{text}",
        "</text-",
        "\x00",
        "\u202e",
        "\u200f",
        "\ud800",
        "\r\n",
        "\n",
        "```",
        '{"text": "x", "reason": "y"}',
        "assistant: ",
        "<|im_end|>",
        "\\",
        '"',
    ]
)
HOSTILE = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=8).map("".join)


def written(text, reason, nonce=N):
    return f"<text-{nonce}>\n{text}\n</text-{nonce}>\n<reason-{nonce}>\n{reason}\n</reason-{nonce}>"


@given(HOSTILE, HOSTILE)
def test_a_text_comes_out_whole_or_not_at_all(text, reason):
    """Whatever a text holds: without the nonce it is returned to the letter, with it the answer is refused."""
    said = written(text, reason)
    if N in text + reason:
        with pytest.raises(ValueError, match="tag"):
            texts_in(said, TWO, N)
    else:
        assert texts_in(said, TWO, N) == [text, reason]


@given(st.lists(st.one_of(st.sampled_from(TAGS), st.sampled_from(["a", "\n", "<text>"])), max_size=10))
@example([TAGS[0], "a", TAGS[1], TAGS[2], "b", TAGS[3]])
@example([TAGS[2], TAGS[3], TAGS[0], TAGS[1]])
def test_only_one_pair_for_each_text_side_by_side_is_read(tokens_of_answer):
    """Zero, two, nested, crossed, unclosed: of all orders of the tags just two are an answer."""
    said = "".join(tokens_of_answer)
    order = [each for each in tokens_of_answer if each in TAGS]
    if order in (TAGS, TAGS[2:] + TAGS[:2]):
        between = re.compile(rf"<(text|reason)-{N}>\n?(.*?)\n?</\1-{N}>", re.DOTALL)
        found = {match[1]: match[2] for match in between.finditer(said)}
        assert texts_in(said, TWO, N) == [found["text"], found["reason"]]
    else:
        with pytest.raises(ValueError, match="tag"):
            texts_in(said, TWO, N)


@given(st.lists(HOSTILE, max_size=4))
def test_the_nonce_occurs_nowhere_in_the_request(contents):
    """So that nothing that is shown to the model can be a tag; and equal requests get equal words."""
    request = Request(messages=tuple([Message(role="user", content=content) for content in contents]))
    nonce = nonce_of(request, REWRITE)
    assert not any(nonce in content for content in contents)
    again = Request(messages=tuple([Message(role="user", content="".join(content)) for content in contents]))
    assert messages_of(again, REWRITE) == messages_of(request, REWRITE)
    assert messages_of(request, REWRITE)[-1]["content"].count(nonce) == 4


@given(HOSTILE, HOSTILE, HOSTILE)
def test_what_is_read_is_json_of_the_schema(asked, text, reason):
    """All that stands above the adapter sees structured output, as from any other endpoint."""
    request = Request(messages=(Message(role="user", content=asked),))
    said = written(text, reason, nonce_of(request, REWRITE))
    try:
        found = json.loads(inwords.read(said, REWRITE, request, "'m'"))
    except MalformedResponse:
        assert nonce_of(request, REWRITE) in text + reason
    else:
        assert found == {"text": text, "reason": reason}


LABEL = st.text("abcdefghij_", min_size=1, max_size=30)
TEXT = st.fixed_dictionaries({"type": st.just("string")}, optional={"description": st.text(max_size=40)})


def closed(properties):
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


SCHEMAS = st.dictionaries(LABEL, st.one_of(TEXT, st.dictionaries(LABEL, TEXT, max_size=3).map(closed)), max_size=5)


@given(SCHEMAS.map(closed), HOSTILE)
def test_the_words_are_in_the_most_that_a_request_can_be(schema, said):
    """A budget reserves this, whichever form is asked for, and the words come on top of what the user wrote."""
    plain = Request(messages=(Message(role="user", content=said),))
    wanted = ResponseFormat(name="answer", json_schema=schema)
    asked = plain.model_copy(update={"config": GenerateConfig(response_format=wanted)})
    words = inwords.words_for(wanted, asked)
    assert tokens.most_of_request(asked) >= tokens.most_of_request(plain) + len(words.encode("utf-8", "surrogatepass"))


@given(st.lists(st.lists(LABEL, min_size=1, max_size=2, unique=True), min_size=1, max_size=3))
def test_texts_are_put_where_the_schema_has_them(cases):
    """Two texts of one name belong to different cases."""
    schema = closed({f"case_{n}": closed({key: {"type": "string"} for key in keys}) for n, keys in enumerate(cases)})
    parts = parts_of(schema)
    if parts is None:
        assert sum(map(len, cases)) > 4 or any(len(key) > 50 for keys in cases for key in keys)
        return
    whole = json.loads(put_together(parts, [part.label for part in parts]))
    assert whole == {f"case_{n}": {key: f"case_{n}.{key}" for key in keys} for n, keys in enumerate(cases)}


@pytest.mark.parametrize(
    "filling", ["<text-", f"<text-{N[:-1]}", f"<text-{N}>", "</", N, "{", "```", "\n", "\\"], ids=repr
)
def test_ten_megabytes_are_read_or_refused_in_linear_time(filling):
    """The test's own time limit is what would be passed."""
    text = filling * (10_000_000 // len(filling))
    parts = (Part(("text",), ""),)
    said = f"<text-{N}>\n{text}\n</text-{N}>"
    if N in filling:
        with pytest.raises(ValueError, match="tag"):
            texts_in(said, parts, N)
    else:
        assert texts_in(said, parts, N) == [text]
    request = Request(messages=(Message(role="user", content=text),))
    assert nonce_of(request, REWRITE) not in text
