"""Who listens sees an answer as it comes, without what stands around it, and an error of theirs is raised."""

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.llm import Message, OpenAIModel, Request, on_token
from textgrad_engine.llm.listening import Teller, listeners
from textgrad_engine.testing import FunctionModel, LoopbackServer


def test_a_listener_that_raises_stops_the_call(ask):
    """A bug of the user's code is shown, not taken for weather."""

    def broken(request, piece):
        raise KeyError("bug")

    with LoopbackServer(FunctionModel(lambda request: "one two")) as server:
        model = OpenAIModel("m", base_url=server.base_url)

        async def main():
            try:
                with on_token(broken):
                    await model.complete(ask())
            finally:
                await model.aclose()

        with pytest.raises(KeyError, match="bug"):
            asyncio.run(main())
    assert listeners() == ()


WRAPPED = ' { "alternative" : {"kind": "cat", "of": {"a": [1]}} } \n'


@given(st.lists(st.integers(1, len(WRAPPED) - 1)))
def test_who_listens_does_not_hear_of_the_object_around_alternatives(cuts):
    """What is told is the answer that the program gets, in any division into pieces."""
    heard = []
    places = [0, *sorted(set(cuts)), len(WRAPPED)]
    with on_token(lambda request, piece: heard.append(piece)):
        teller = Teller(FunctionModel(str), wrapped=True)
        for start, end in itertools.pairwise(places):
            teller.tell(WRAPPED[start:end])
    assert "".join(heard) == '{"kind": "cat", "of": {"a": [1]}}'
    assert "" not in heard


@pytest.mark.parametrize("text", ['{"kind": "cat"}', '{"alternatives": 1}', "I cannot.", '{"alternative"', "{", "["])
def test_what_is_no_such_object_is_heard_as_it_comes(text):
    """An endpoint that does not hold its model to the form; of half a beginning nobody knows yet."""
    heard = []
    with on_token(lambda request, piece: heard.append(piece)):
        teller = Teller(FunctionModel(str), wrapped=True)
        for piece in text:
            teller.tell(piece)
    assert "".join(heard) == ("" if '{"alternative":'.startswith(text) else text)


@pytest.mark.parametrize("space", [" ", "\n\n", " }"])
def test_white_space_within_such_an_object_does_not_hold_up_the_loop(space):
    """Models that lose the thread in JSON mode write it without end; a pattern that backtracks takes its cube."""
    answer = f'{{"kind":{space * 100_000}"cat"}}'
    heard = []
    with on_token(lambda request, piece: heard.append(piece)):
        teller = Teller(FunctionModel(str), wrapped=True)
        teller.tell('{"alternative": ')
        teller.tell(answer[:-6])
        teller.tell(f"{answer[-6:]}}}")
    assert "".join(heard) == answer


def test_pieces_of_an_answer_with_alternatives_are_those_of_the_answer():
    """Through the whole client, with a schema whose root is a choice."""
    schema = {"anyOf": [{"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}]}
    heard = []

    async def ask(server):
        model = OpenAIModel("m", base_url=server.base_url, api_key="k", response_format=schema)
        with on_token(lambda request, piece: heard.append(piece)):
            return await model.complete(Request(messages=(Message(role="user", content="?"),), purpose="forward"))

    with LoopbackServer(FunctionModel(lambda request: '{"alternative": {"kind": "cat"}}')) as server:
        answer = asyncio.run(ask(server))
    assert answer.text == "".join(heard) == '{"kind": "cat"}'
