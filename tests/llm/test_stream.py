import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.errors import ConnectionFailed, MalformedResponse, ModelError, ServerFailed
from textgrad_engine.llm.stream import body_of


def read(*lines):
    pieces = []

    async def stream():
        for line in lines:
            yield f"{line}\n".encode()

    body = json.loads(asyncio.run(body_of(stream(), pieces.append, "m")))
    return body, pieces


def chunk(reason=None, **delta):
    return "data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


@pytest.mark.parametrize("lines", [[], [": keep-alive"], [chunk(content="half")], ["event: message", ""]])
def test_a_stream_that_ends_before_the_answer_is_a_broken_connection(lines):
    """Half an answer is none."""
    with pytest.raises(ConnectionFailed, match="ended after"):
        read(*lines)


@pytest.mark.parametrize(
    "line",
    [
        "data: {",
        "data: []",
        'data: {"choices": 5}',
        'data: {"error": {"message": "x"}}',
        chunk().replace("{}", "5"),
        chunk(tool_calls=[1]),
        chunk(tool_calls=1),
    ],
)
def test_an_event_that_is_no_chunk_is_malformed(line):
    """Typed, so that it is asked for again."""
    with pytest.raises(MalformedResponse, match="'m'"):
        read(chunk(content="so far"), line, "data: [DONE]")


@given(
    st.lists(
        st.one_of(st.text(), st.text().map("data: {}".format), st.sampled_from([chunk(content="a"), chunk("stop")]))
    )
)
def test_any_stream_is_an_answer_or_a_typed_error(lines):
    """Whatever a proxy writes between the events."""
    try:
        body, pieces = read(*lines)
    except ModelError:
        return
    assert body["choices"][0]["message"]["content"] == "".join(pieces)


@given(st.lists(st.text(max_size=5), max_size=5), st.integers(1, 40), st.sampled_from(["\n\n", "\r\n\r\n"]))
def test_any_text_in_any_division_of_the_bytes_arrives(words, size, end):
    """U+2028 and others end a line for `str.splitlines`, and so for the HTTP package; JSON holds them as they are."""
    events = [json.dumps({"choices": [{"delta": {"content": word}}]}, ensure_ascii=False) for word in words]
    sent = "".join(f"data: {event}{end}" for event in [*events, "[DONE]"]).encode()
    pieces = []

    async def parts():
        for start in range(0, len(sent), size):
            yield sent[start : start + size]

    body = json.loads(asyncio.run(body_of(parts(), pieces.append, "m")))
    assert body["choices"][0]["message"]["content"] == "".join(pieces) == "".join(words)


def test_a_stream_that_is_no_text_is_malformed():
    """Half a character, or another encoding: typed, like any other rubbish."""

    async def parts():
        yield b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n'

    with pytest.raises(MalformedResponse, match="not JSON"):
        asyncio.run(body_of(parts(), lambda piece: None, "m"))


def test_tool_calls_and_usage_are_put_together():
    """Arguments come in pieces, by index; usage comes last, in an event of its own."""
    first = {"index": 0, "id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a"'}}
    body, pieces = read(
        chunk(role="assistant", content=""),
        chunk(tool_calls=[first]),
        chunk(tool_calls=[{"index": 1, "id": "2", "function": {"name": "g", "arguments": "{}"}}]),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
        chunk("tool_calls"),
        'data: {"choices": [], "usage": {"prompt_tokens": 3}}',
        "data: [DONE]",
    )
    (choice,) = body["choices"]
    assert [call["function"] for call in choice["message"]["tool_calls"]] == [
        {"name": "f", "arguments": '{"a": 1}'},
        {"name": "g", "arguments": "{}"},
    ]
    assert (choice["finish_reason"], body["usage"], pieces) == ("tool_calls", {"prompt_tokens": 3}, [])


@pytest.mark.parametrize("own", [{}, {"id": ""}, {"id": None}])
def test_calls_with_neither_number_nor_id_are_told_apart_where_one_is_whole(own):
    """Put into one, they would be the second function with the arguments of both."""

    def piece(name, arguments):
        return chunk(tool_calls=[{**own, "function": {"name": name, "arguments": arguments}}])

    said = (piece("f", '{"a"'), piece(None, ': "}"}'), piece("f", "{}"), piece("g", ""), chunk("tool_calls"))
    calls = read(*said)[0]["choices"][0]["message"]["tool_calls"]
    assert [(call["function"]["name"], call["function"]["arguments"]) for call in calls] == [
        ("f", '{"a": "}"}'),
        ("f", "{}"),
        ("g", ""),
    ]


def test_numbers_of_calls_that_cannot_be_ordered_leave_them_as_they_came():
    """Some servers write them as texts."""
    pieces = [{"index": n, "id": str(n), "function": {"name": "f", "arguments": "{}"}} for n in ("1", 0)]
    calls = read(chunk("tool_calls", tool_calls=pieces))[0]["choices"][0]["message"]["tool_calls"]
    assert [call["id"] for call in calls] == ["1", "0"]


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ("x", "delta is no object"),
        ({"delta": {"tool_calls": [{"function": {"arguments": {}}}]}}, "arguments are no text"),
    ],
)
def test_a_chunk_of_another_form_is_malformed(choice, says):
    """A run goes on behind it; it would not behind a TypeError."""
    with pytest.raises(MalformedResponse, match=says):
        read("data: " + json.dumps({"choices": [choice]}))


def test_an_error_inside_a_choice_is_what_its_own_status_says():
    """As it is where nothing is streamed."""
    failed = {"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "up"}}
    with pytest.raises(ServerFailed, match="status 502: up"):
        read(chunk(content="He"), "data: " + json.dumps({"choices": [failed]}))


@pytest.mark.parametrize("index", [{}, {"index": 0}, {"index": None}])
def test_calls_without_a_number_of_their_own_are_told_apart_by_their_ids(index):
    """Two calls of Gemini's endpoint are two, and an id that is made up for each piece makes no further one."""

    def piece(name, arguments, **more):
        return chunk(tool_calls=[{**index, **more, "function": {"name": name, "arguments": arguments}}])

    body, _ = read(
        piece("f", '{"a"', id="1"),
        piece(None, ": 1}", id="made up"),
        piece("f", '{"a"', id="2"),
        piece("f", ": 2", id="2"),
        piece("", "}"),
        chunk("tool_calls"),
        "data: [DONE]",
    )
    calls = body["choices"][0]["message"]["tool_calls"]
    assert [call["function"] for call in calls] == [{"name": "f", "arguments": f'{{"a": {n}}}'} for n in (1, 2)]


def test_a_call_without_a_number_comes_behind_those_that_have_one():
    """In the order in which they were made."""
    made = [{"index": n, "id": str(n), "function": {"name": f"f{n}", "arguments": "{}"}} for n in (0, 1, None)]
    body, _ = read(*[chunk(tool_calls=[call]) for call in made], chunk("tool_calls"), "data: [DONE]")
    assert [call["id"] for call in body["choices"][0]["message"]["tool_calls"]] == ["0", "1", "None"]


def test_content_that_is_streamed_in_parts_is_text():
    """Some endpoints send what a model thought as parts of another kind, before the answer's."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    body, pieces = read(
        chunk(content=[thought]),
        chunk(content=[{"type": "text", "text": "yes"}]),
        chunk(content=" sir"),
        chunk("stop"),
    )
    assert (body["choices"][0]["message"]["content"], pieces) == ("yes sir", ["yes", " sir"])


def test_an_error_in_the_stream_is_what_its_status_says():
    """As if it had been the status of the response; and it may have been charged."""
    with pytest.raises(ServerFailed, match="overloaded") as caught:
        read(chunk(content="so far"), 'data: {"error": {"code": 529, "message": "overloaded"}}')
    assert (caught.value.status, caught.value.sent) == (529, True)
