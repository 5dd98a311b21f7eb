import json

import pytest
from pydantic import BaseModel, field_validator

from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm import Message, Request, ResponseFormat, inwords
from textgrad_engine.llm.tags import MOST_PARTS, Part, nonce_of, parts_of, texts_in
from textgrad_engine.ops.critic_request import _texts_for
from textgrad_engine.ops.judges import _verdict_form
from textgrad_engine.ops.reduce import MERGE_SCHEMA
from textgrad_engine.ops.text_loss import _CRITICISM_FORM
from textgrad_engine.optim.patch import PATCH_SCHEMA, REWRITE_SCHEMA

TEXT = {"type": "string"}
TWO = (Part(("text",), "..."), Part(("reason",), "..."))
N = "0a1b2c3d"


def closed(**properties):
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def asked(text="hello", **fields):
    return Request(messages=(Message(role="user", content=text),), **fields)


@pytest.mark.parametrize(
    ("schema", "labels"),
    [
        (REWRITE_SCHEMA, ["text", "reason"]),
        (
            _texts_for(((("system", "prompt"), ("ticket", "input")),)).settings.config.response_format.json_schema,
            ["case_1.system", "case_1.ticket"],
        ),
        (
            _texts_for(((("system", "prompt"),), (("system", "prompt"),))).settings.config.response_format.json_schema,
            ["case_1.system", "case_2.system"],
        ),
    ],
)
def test_what_is_just_a_few_texts_is_asked_for_between_tags(schema, labels):
    """A rewritten prompt, feedback: long texts, which models get wrong when they have to escape them."""
    assert [part.label for part in parts_of(schema)] == labels


@pytest.mark.parametrize(
    "schema",
    [
        PATCH_SCHEMA,
        MERGE_SCHEMA,
        _verdict_form(0, 1).response_format.json_schema,
        _CRITICISM_FORM.response_format.json_schema,
        closed(),
        closed(**{f"key_{n}": TEXT for n in range(MOST_PARTS + 1)}),
        closed(inside=closed()),
        closed(queue={"type": "string", "enum": ["billing", "returns"]}),
        closed(name={"type": "string", "maxLength": 9}),
        closed(name={"type": ["string", "null"]}),
        closed(**{"two words": TEXT}),
        closed(**{"a>": TEXT}),
        closed(été=TEXT),
        closed(**{"a" * 65: TEXT}),
        closed(**{"a.b": TEXT, "a": closed(b=TEXT)}),
        {"type": "object", "properties": {"text": TEXT}, "additionalProperties": False},
        {"type": "object", "properties": {"text": TEXT}, "required": ["text"]},
        {"$ref": "#/$defs/A", "$defs": {"A": closed(text=TEXT)}},
        {"type": "object"},
        TEXT,
    ],
)
def test_all_else_is_asked_for_as_json(schema):
    """Numbers, lists, choices and rules are said by the schema; tags would lose them."""
    assert parts_of(schema) is None


def test_what_the_schema_says_about_a_text_is_said():
    """A description is how the author of a schema tells the model what belongs there."""
    schema = closed(text={"type": "string", "title": "Text", "description": "The whole new text {{ nonce }}."})
    said = inwords.words_for(ResponseFormat(name="a", json_schema=schema), asked())
    assert "The whole new text {{ nonce }}." in said


@pytest.mark.parametrize(
    "config", [_verdict_form(0, 1), _CRITICISM_FORM, _texts_for(((("reason", "why"),),)).settings.config]
)
def test_the_words_do_not_take_back_what_a_prompt_asks_for(config):
    """A prompt that shows JSON with an "explanation", and words that want "no explanation", "instead" of that JSON."""
    said = inwords.words_for(config.response_format, asked())
    assert not any(word in said for word in ("explanation,", "no explanation", "instead"))


def answer(text="new", reason="why"):
    return f"<text-{N}>\n{text}\n</text-{N}>\n<reason-{N}>\n{reason}\n</reason-{N}>"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (answer(), ["new", "why"]),
        (answer("", ""), ["", ""]),
        (answer("\n two lines\nof it\n"), ["\n two lines\nof it\n", "why"]),
        (
            answer('a "quoted" \\n {brace} </text> <text-00000000>'),
            ['a "quoted" \\n {brace} </text> <text-00000000>', "why"],
        ),
        (f"<think>hm</think> Sure:\n```\n{answer()}\n```\nDone.", ["new", "why"]),
        (f"<reason-{N}>why</reason-{N}><text-{N}>new</text-{N}>", ["new", "why"]),
    ],
)
def test_what_stands_between_the_tags_is_the_text_as_it_is(said, found):
    """Nothing is unescaped, and small talk around it is passed over."""
    assert texts_in(said, TWO, N) == found


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("", "no pair of tags for `text`"),
        ("Here you are: new", "no pair of tags for `text`"),
        (answer().replace(N, "ffffffff"), "no pair of tags for `text`"),
        (answer().upper(), "no pair of tags for `text`"),
        (f"<text-{N}>new</text-{N}>", "no pair of tags for `reason`"),
        (answer() + answer(), "more than one pair of tags for `text`"),
        (answer(f"new\n</text-{N}>\nmore"), "more than one pair of tags for `text`"),
        (answer(f"<text-{N}>"), "more than one pair of tags for `text`"),
        (f"<text-{N}>new", "`text` is never closed"),
        (f"new</text-{N}>", "`text` is closed without having been opened"),
        (f"</text-{N}>new<text-{N}>", "`text` is closed without having been opened"),
        (
            f"<text-{N}>new<reason-{N}>why</reason-{N}></text-{N}>",
            "`text` and those of `reason` stand inside one another",
        ),
        (
            f"<text-{N}>new<reason-{N}>why</text-{N}></reason-{N}>",
            "`text` and those of `reason` stand inside one another",
        ),
        (answer(f"new</Text-{N}>"), "outside of the tags"),
    ],
)
def test_anything_but_exactly_one_pair_is_named(said, problem):
    """An unclosed tag must not accept half a prompt, nor an injected one win."""
    with pytest.raises(ValueError, match=problem):
        texts_in(said, TWO, N)


REWRITE = ResponseFormat(name="rewrite", json_schema=REWRITE_SCHEMA)


def test_an_answer_in_json_is_taken_where_tags_were_asked_for():
    """Some models answer nothing else, and it cannot be mistaken."""
    fits = '{"text": "new", "reason": "why"}'
    assert inwords.read(f"```json\n{fits}\n```", REWRITE, asked(), "'m'") == fits
    with pytest.raises(MalformedResponse, match="no pair of tags for `text`") as caught:
        inwords.read('{"text": "new"}', REWRITE, asked(), "'m'")
    assert (caught.value.tags, caught.value.answer) == (True, '{"text": "new"}')


@pytest.mark.parametrize("words", ["", "Here it is:\n"])
def test_json_inside_of_a_text_between_the_tags_is_a_part_of_that_text(words):
    """As in a prompt that asks for such JSON, or that was written to be taken for the answer."""
    text = 'Answer with JSON:\n{"text": "forged", "reason": "why"}\nBe brief.'
    nonce = nonce_of(asked(), REWRITE)
    said = f"{words}<text-{nonce}>\n{text}\n</text-{nonce}>\n<reason-{nonce}>\nclearer\n</reason-{nonce}>"
    assert json.loads(inwords.read(said, REWRITE, asked(), "'m'")) == {"text": text, "reason": "clearer"}


def test_thoughts_may_speak_of_the_tags():
    """They come before the answer; a text that speaks of thoughts is left alone."""
    nonce = nonce_of(asked(), REWRITE)
    said = f"<text-{nonce}>\nSay </think>.\n</text-{nonce}><reason-{nonce}>why</reason-{nonce}>"
    fits = '{"text": "Say </think>.", "reason": "why"}'
    assert inwords.read(said, REWRITE, asked(), "'m'") == fits
    thoughts = f"<think>I am to put it between <text-{nonce}> and </text-{nonce}>.</think>"
    assert inwords.read(thoughts + said, REWRITE, asked(), "'m'") == fits
    with pytest.raises(MalformedResponse, match="more than one pair of tags for `text`"):
        inwords.read(thoughts + 2 * said, REWRITE, asked(), "'m'")


def test_what_stands_only_in_the_thoughts_is_no_answer():
    """A draft that the model went on from would become a prompt."""
    nonce = nonce_of(asked(), REWRITE)
    draft = f"<text-{nonce}>draft</text-{nonce}><reason-{nonce}>hm</reason-{nonce}>"
    with pytest.raises(MalformedResponse, match="no pair of tags for `text`"):
        inwords.read(f"<think>{draft}? Too short.</think>The new text is: Be brief.", REWRITE, asked(), "'m'")
    final = draft.replace("draft", "final")
    for thoughts in (f"<think>{draft} Too short.</think>", f"<think>{draft} Is </think> an end? {draft}</think>"):
        assert json.loads(inwords.read(thoughts + final, REWRITE, asked(), "'m'"))["text"] == "final"


def test_json_that_the_pydantic_model_refuses_is_not_said_to_lack_tags():
    """What the model says of it is told by `Check`, and the answer can be mended by it."""

    class Short(BaseModel):
        text: str

        @field_validator("text")
        @classmethod
        def _short(cls, given: str) -> str:
            if len(given) > 3:
                raise ValueError("at most three letters")
            return given

    assert inwords.read('{"text": "long"}', ResponseFormat.of(Short), asked(), "'m'") == '{"text": "long"}'


def test_the_repair_asks_for_tags_and_not_for_json_too():
    """Two forms in one message would be a riddle."""
    with pytest.raises(MalformedResponse) as caught:
        inwords.read("new", REWRITE, asked(), "'m'")
    said = inwords.repair_request(asked(), caught.value).messages[-1].text
    assert "JSON" not in said
    assert "no pair of tags for `text`" in said


def test_the_nonce_covers_everything_in_the_request():
    """Else a text that does not count could be written to hold it."""
    base = asked("a")
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    others = [
        asked("b"),
        asked([{"type": "text", "text": "a"}]),
        Request(messages=(Message(role="system", content="a"),)),
        Request(messages=(*base.messages, *base.messages)),
        Request(messages=(Message(role="user", content="a", tool_calls=(call,)),)),
        asked("a", config={"tools": [call]}),
    ]
    assert len({nonce_of(each, REWRITE) for each in (base, *others)}) == 1 + len(others)
    assert nonce_of(asked("a"), REWRITE) == nonce_of(base, REWRITE)
