"""What a server and our client must be able to do together; each check knows nothing of the server but its `Server`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import answers
from servers import Server

import textgrad_engine as tg
from textgrad_engine import dispatch, errors, llm, nn, optim

QUICK = llm.RetryPolicy(max_attempts=3, base=0.01, cap=0.02, max_retry_after=0.1, call_deadline=240.0)

FORMAT = llm.ResponseFormat(
    name="Verdict",
    json_schema={
        "type": "object",
        "properties": {"verdict": {"type": "string"}, "score": {"type": "integer"}},
        "required": ["verdict", "score"],
        "additionalProperties": False,
    },
)


IN_WORDS = 50
"""Tokens that the schema and the sentence before it have at least, where JSON is asked for in words."""


class NotOffered(Exception):
    """The server does not do that; the text says what it does instead."""


class Answered(AssertionError):
    """A call that was to fail was answered."""


class Counted(llm.Wrapper):
    """Counts what is sent, and says when the first request is under way."""

    def __init__(self, inner: llm.Model) -> None:
        super().__init__(inner)
        self.sent = 0
        self.under_way = asyncio.Event()

    async def complete(self, request: llm.Request) -> llm.Completion:
        self.sent += 1
        self.under_way.set()
        return await self.inner.complete(request)


@dataclass
class Target:
    """A server, and the models that a check has made for it."""

    server: Server
    _made: list[llm.Model] = field(default_factory=list)

    def name(self, kind: str) -> str:
        """The model for a kind of check.

        Raises:
            NotOffered: the server has none.
        """
        if kind not in self.server.models:
            raise NotOffered("nothing that is sent makes it do that")
        return self.server.models[kind]

    def model(self, kind: str = "talk", **settings: Any) -> llm.Model:
        """The model by its name, as users make it."""
        where = {"base_url": self.server.base_url, "api_key": self.server.key}
        made = llm.resolve(self.name(kind), **where, policy=QUICK, **settings)
        self._made.append(made)
        return made

    def counted(self, name: str, key: str | None = None, **settings: Any) -> tuple[llm.Model, Counted]:
        """The same around an adapter whose requests are counted; also with a name or key that the server refuses."""
        inner = llm.OpenAIModel(name, self.server.base_url, key or self.server.key)
        counted = Counted(inner)
        self._made.append(inner)
        return llm.resolve(counted, policy=QUICK, **settings), counted

    async def aclose(self) -> None:
        """Close the connections of this loop and of the library's own."""
        for made in self._made:
            inside = llm.innermost(made)
            assert isinstance(inside, llm.OpenAIModel)
            await inside.aclose()
            await asyncio.to_thread(dispatch.run, inside.aclose)
        self._made.clear()


Problem = TypeVar("Problem", bound=BaseException)
Check = Callable[[Target], Awaitable[str | None]]
CHECKS: dict[str, Check] = {}


def check(title: str) -> Callable[[Check], Check]:
    """Put a check on the list: it returns a remark or None, raises `NotOffered`, or anything else when it failed."""

    def add(function: Check) -> Check:
        CHECKS[title] = function
        return function

    return add


def ask(text: str, *, system: str | None = None, **config: Any) -> llm.Request:
    """A request."""
    messages = [llm.Message(role="system", content=system)] if system else []
    messages.append(llm.Message(role="user", content=text))
    return llm.Request(messages=tuple(messages), config=llm.GenerateConfig(**config))


async def failure(call: Awaitable[Any], kind: type[Problem]) -> Problem:
    """The error of that kind that a call ends with.

    Raises:
        Answered: it ended with an answer.
    """
    try:
        answer = await call
    except kind as error:
        return error
    raise Answered(f"expected {kind.__name__}, got an answer: {answer!r}")


def expect(held: bool, otherwise: str) -> None:
    """An assertion that `python -O` keeps."""
    if not held:
        raise AssertionError(otherwise)


@check("plain completion")
async def plain(target: Target) -> str | None:
    found = await target.model().complete(ask("Where is the bicycle?"))
    expect(found.text == answers.TALK, f"answered {found.text!r}")
    expect((found.finish_reason, found.attempts) == ("stop", 1), f"{found.finish_reason}, {found.attempts} attempts")
    return None


@check("system and user message, not ASCII")
async def not_ascii(target: Target) -> str | None:
    request = ask("Wo steht das 🚲 in 東京? \u202eabc\u202c e\u0301", system="Antworte höflich.")
    found = await target.model().complete(request)
    expect(found.text == answers.TALK, f"answered {found.text!r}")
    return None


@check("usage counted by the server")
async def usage(target: Target) -> str | None:
    found = await target.model().complete(ask("Where is the bicycle?"))
    expect(not (found.raw or {}).get("usage_estimated"), "the answer has no usage")
    used = found.usage
    expect(used.input_tokens > 0 and used.output_tokens > 0 and used.calls == 1, f"{used!r}")
    return f"{used.input_tokens} and {used.output_tokens} tokens"


@check("cut off at max_tokens: `TruncatedResponse`")
async def cut(target: Target) -> str | None:
    model, counted = target.counted(target.name("cut"))
    error = await failure(model.complete(ask("Where is the bicycle?", max_tokens=2)), errors.TruncatedResponse)
    expect(counted.sent == 1, f"{counted.sent} requests")
    expect(error.usage is not None, "the error does not say what the answer used")
    return None


@check("temperature, top_p, seed and stop")
async def sampling(target: Target) -> str | None:
    model = target.model(temperature=0.3, top_p=0.9)
    texts = [(await model.complete(ask("Where?", seed=7, stop=("THE END",)))).text for _ in range(2)]
    expect(texts[0] == texts[1] == answers.TALK, f"answered {texts!r}")
    return None


@check("unknown setting")
async def unknown_setting(target: Target) -> str | None:
    try:
        target.model(wobble=1)
    except TypeError:
        ours = "`TypeError`, nothing sent"
    else:
        raise AssertionError("resolve(wobble=1) was accepted")
    model, counted = target.counted(target.name("talk"))
    try:
        await model.complete(ask("Where?", extra={"wobble": 1}))
    except errors.BadRequest as error:
        expect(counted.sent == 1, f"{counted.sent} requests")
        return f"{ours}; in `extra`: status {error.status}"
    return f"{ours}; in `extra`: sent, and ignored there"


@check("structured output")
async def structured(target: Target) -> str | None:
    return await _structured(target.model("json"))


async def _structured(model: llm.Model) -> str:
    bare = await model.complete(ask("Judge the bicycle."))
    ways = []
    for _ in range(2):
        found = await model.complete(ask("Judge the bicycle.", response_format=FORMAT, temperature=0, max_tokens=600))
        body = json.loads(found.text)
        expect(body.keys() == {"verdict", "score"} and isinstance(body["score"], int), f"answered {found.text!r}")
        ways.append(found.attempts)
    expect(ways in ([1, 1], [2, 1]), f"{ways} attempts: it should learn after the first what the server ignores")
    if found.usage.input_tokens < bare.usage.input_tokens + IN_WORDS:
        return "at once"
    return f"format {'ignored' if ways == [2, 1] else 'refused'}: asked in words from then on"


@check("streamed equals not streamed")
async def streamed(target: Target) -> str | None:
    return await _streamed(target.model(temperature=0))


async def _streamed(model: llm.Model) -> str:
    whole = await model.complete(ask("Where is the bicycle?"))
    pieces: list[str | None] = []
    with llm.on_token(lambda request, piece: pieces.append(piece)):
        found = await model.complete(ask("Where is the bicycle?"))
    expect(None not in pieces and "".join(map(str, pieces)) == found.text, f"pieces {pieces!r} of {found.text!r}")
    expect((found.text, found.finish_reason) == (whole.text, whole.finish_reason), f"{found!r} is not {whole!r}")
    expect(len(pieces) > 1, "it came in one piece")
    counted = not (found.raw or {}).get("usage_estimated")
    return f"{len(pieces)} pieces, {'with' if counted else 'without'} usage"


async def _by_responses(target: Target, kind: str, work: Callable[[llm.Model], Awaitable[str | None]]) -> str | None:
    try:
        return await work(target.model(kind, api="responses"))
    except errors.BadRequest as error:
        if error.status in (404, 405):
            raise NotOffered(f"status {error.status}: it has no Responses API") from None
        raise


@check("Responses API: plain completion, with usage")
async def responses_plain(target: Target) -> str | None:
    async def work(model: llm.Model) -> None:
        found = await model.complete(ask("Where is the bicycle?", system="Answer."))
        expect((found.text, found.finish_reason) == (answers.TALK, "stop"), f"{found!r}")
        expect(found.usage.output_tokens > 0 and not (found.raw or {}).get("usage_estimated"), f"{found.usage!r}")

    return await _by_responses(target, "talk", work)


@check("Responses API: structured output")
async def responses_structured(target: Target) -> str | None:
    return await _by_responses(target, "json", _structured)


@check("Responses API: streamed equals not streamed")
async def responses_streamed(target: Target) -> str | None:
    return await _by_responses(target, "talk", _streamed)


@check("wrong key: `AuthenticationFailed` at once, and the queue with it")
async def wrong_key(target: Target) -> str | None:
    if target.server.key is None:
        raise NotOffered("it asks for no key")
    model, counted = target.counted(target.name("talk"), key="sk-this-is-not-the-key", max_in_flight=4)
    calls = [failure(model.complete(ask(f"Where? {n}")), errors.AuthenticationFailed) for n in range(32)]
    found = await asyncio.gather(*calls)
    expect(counted.sent <= 4, f"{counted.sent} requests were sent for 32 calls, 4 at once")
    expect("sk-this-is-not" not in "".join(map(str, found)), "the error shows the key")
    return f"status {found[0].status}; {counted.sent} of 32 calls sent"


@check("unknown model: `BadRequest` at once")
async def unknown_model(target: Target) -> str | None:
    model, counted = target.counted("no-such-model")
    try:
        error = await failure(model.complete(ask("Where?")), errors.BadRequest)
    except Answered:
        raise NotOffered("it answers to any name") from None
    expect(counted.sent == 1, f"{counted.sent} requests")
    return f"status {error.status}"


async def _many(target: Target, number: int) -> str:
    model = target.model(max_in_flight=number)
    began = time.perf_counter()
    found = await asyncio.gather(*(model.complete(ask(f"Where is bicycle {n}?")) for n in range(number)))
    took = time.perf_counter() - began
    expect({each.text for each in found} == {answers.TALK}, "an answer is wrong")
    again = sum(each.attempts > 1 for each in found)
    return f"{took:.1f} s" + (f", {again} asked again" if again else "")


@check("64 calls at once")
async def many(target: Target) -> str | None:
    return await _many(target, 64)


@check("160 calls at once, the later ones over aiohttp")
async def very_many(target: Target) -> str | None:
    return await _many(target, 160)


@check("stopped: what is in flight finishes, what is queued is not sent")
async def stopped(target: Target) -> str | None:
    model, counted = target.counted(target.name("slow"), max_in_flight=1)
    request = ask(answers.COUNT, max_tokens=400)
    with llm.Stop() as stop:
        calls = [asyncio.create_task(model.complete(request)) for _ in range(8)]
        await counted.under_way.wait()
        stop.set()
        found = await asyncio.gather(*calls, return_exceptions=True)
    kinds = [type(each).__name__ for each in found]
    expect(kinds[1:] == ["Stopped"] * 7 and counted.sent == 1, f"{kinds}, {counted.sent} requests")
    expect(kinds[0] in ("Completion", "TruncatedResponse"), f"the call in flight ended with {found[0]!r}")
    return None


@check("cancelled: the call ends at once, the next one is answered")
async def cancelled(target: Target) -> str | None:
    model, counted = target.counted(target.name("endless"))
    call = asyncio.create_task(model.complete(ask(answers.COUNT, max_tokens=1000)))
    await counted.under_way.wait()
    await asyncio.sleep(0.1)  # so that it is with the server
    call.cancel()
    began = time.perf_counter()
    await failure(call, asyncio.CancelledError)
    took = time.perf_counter() - began
    expect(took < 1, f"it took {took:.1f} s")
    found = await target.model().complete(ask("Where is the bicycle?"))
    expect(found.text == answers.TALK, f"answered {found.text!r}")
    return None


@check("429: `RateLimited`, tried again")
async def limited(target: Target) -> str | None:
    model, counted = target.counted(target.name("limited"))
    answered = 0
    while True:  # a server with a real limit answers the first calls
        try:
            error = await failure(model.complete(ask("Where?")), errors.RateLimited)
            break
        except Answered:
            answered += 1
            if answered == 3:
                raise
    expect(counted.sent - answered == QUICK.max_attempts, f"{counted.sent} requests")
    asked = f", which asked to wait {error.retry_after:g} s" if error.retry_after else ""
    return (f"{answered} answered, then " if answered else "") + f"{QUICK.max_attempts} requests{asked}"


@check("500: `ServerFailed`, tried again")
async def broken(target: Target) -> str | None:
    model, counted = target.counted(target.name("broken"))
    await failure(model.complete(ask("Where?")), errors.ServerFailed)
    expect(counted.sent == QUICK.max_attempts, f"{counted.sent} requests")
    return f"{counted.sent} requests"


@check("context overflow: `ContextOverflow` at once")
async def overflow(target: Target) -> str | None:
    kind = "overflow" if "overflow" in target.server.models else "long"
    model, counted = target.counted(target.name(kind))
    try:
        error = await failure(model.complete(ask("word " * 1200, max_tokens=20)), errors.ContextOverflow)
    except Answered:
        raise NotOffered("it answers 6,000 tokens with a context of 4,096") from None
    expect(counted.sent == 1, f"{counted.sent} requests")
    return f"status {error.status}"


@check("a training step, end to end")
async def training(target: Target) -> str | None:
    return await asyncio.to_thread(_train, target)


def _train(target: Target) -> str:
    kinds = {"forward": "talk", "backward": "critic", "optimizer": "optimizer"}
    with tg.use_models(**{role: target.model(kind) for role, kind in kinds.items()}), llm.meter() as used:
        prompt = nn.Parameter("Say where the bicycle is.", role="system prompt")
        program = nn.ChatCompletion("Bicycle {number}?", system=prompt)
        optimizer = optim.TGD(program.parameters())
        losses = [nn.ExactMatch()(program(number=str(n)), "here") for n in range(4)]
        tg.backward(losses)
        feedback = [str(item.data) for item in prompt.grad]
        optimizer.step()
    expect(bool(feedback) and all(feedback), f"feedback {feedback!r}")
    expect(prompt.data.startswith("Say where the bicycle is.\n"), f"the prompt is {prompt.data!r}")
    expect(used.failed == 0, f"{used.failed} calls failed")
    return f"{used.total.calls} calls, {used.total.total_tokens:,} tokens; line added: “{prompt.data.splitlines()[1]}”"
