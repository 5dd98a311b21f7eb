"""Signed addresses and what is kept of a run: no signature is, and what is signed anew tomorrow was paid for."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import llm, nn, optim
from textgrad_engine.llm import Completion, Message, Request
from textgrad_engine.llm.cachekey import keys_of
from textgrad_engine.signed import unsigned
from textgrad_engine.testing import FunctionModel, LoopbackServer, feedback_for

SECRET = "f00dfacef00dfacef00dfacef00dface"


def address(number: int, day: int) -> str:
    return (
        f"https://files.example/{number}.png?X-Amz-Algorithm=AWS4&X-Amz-Credential=AKIA{SECRET}&X-Amz-Date=2026112{day}"
        f"&X-Amz-Expires=300&X-Amz-SignedHeaders=host&X-Amz-Signature={SECRET}{day}"
    )


def picture(number: int, day: int) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": address(number, day)}}


def fn(request: Request) -> Any:
    if request.purpose == "backward":
        return feedback_for(request, "Say red.")
    if request.purpose == "optimizer":
        reason = f"As {address(5, 1)} is."
        return {"edits": [{"op": "add", "line": 1, "text": "Say red.", "reason": reason, "feedback": [1]}]}
    if request.config.tools and request.messages[-1].role != "tool":
        text = request.messages[-1].text
        arguments = json.dumps({"address": text[text.index("https") :]})
        call = {"id": "1", "type": "function", "function": {"name": "fetch", "arguments": arguments}}
        return Completion(text="", finish_reason="tool_calls", tool_calls=(call,))
    return "red" if "Say red." in request.messages[0].text else f"blue, as {request.messages[-1].text}"


class Run:
    """A run on pictures, or on texts that name them; it can be cut, and resumed on a day with other signatures."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind, self.model, self.fetched = folder, kind, FunctionModel(fn), list[str]()

    def go(self, day: int, calls: int | None = None) -> Any:
        def fetch(address: str) -> str:
            """Gets a file."""
            self.fetched.append(address)
            return f"got {address}"

        rows = [
            {
                "id": f"t{n}",
                "input": picture(n, day) if self.kind == "images" else f"Look at {address(n, day)}",
                "target": "red",
            }
            for n in range(12)
        ]
        tools = [fetch] if self.kind == "tools" else None
        chat = nn.ChatCompletion("{input}", system=nn.Parameter("Look.", role="system prompt"), tools=tools)
        trainer = tg.Trainer(max_epochs=2, batch_size=4, run_dir=self.folder, resume=True)
        with tg.use_models(forward=self.model), tg.budget(calls=calls):
            return trainer.fit(chat, nn.ExactMatch(), optim.TGD(chat.parameters()), rows[:4], rows[4:8], rows[8:])

    def kept(self) -> str:
        files = [file for file in self.folder.rglob("*") if file.is_file()]
        return "".join(file.read_text() for file in files)


@pytest.mark.parametrize("kind", ["images", "texts", "tools"])
def test_a_run_folder_holds_no_signature_and_another_day_pays_for_nothing_again(tmp_path: Path, kind: str) -> None:
    """Its result is that of a run that nothing cut, and what tools are given is whole."""
    whole, cut = Run(tmp_path / "whole", kind), Run(tmp_path / "cut", kind)
    expected = whole.go(day=1)
    cut.go(day=1, calls=15)
    assert cut.go(day=2).best == expected.best
    assert len(cut.model.requests) == len(whole.model.requests)
    assert SECRET in repr(cut.model.requests)  # what is sent is as it was given
    assert SECRET not in cut.kept()
    assert "https://files.example/5.png" in cut.kept()
    assert all(SECRET in each for each in cut.fetched)
    assert len(cut.fetched) == len(whole.fetched)
    asked = len(cut.model.requests)
    assert cut.go(day=3).best == expected.best  # the finished run is played back
    assert len(cut.model.requests) == asked


def test_a_folder_of_before_that_holds_whole_addresses_is_resumed(tmp_path: Path) -> None:
    """It was written when requests were written down as they are sent."""
    run, whole = Run(tmp_path / "run", "images"), Run(tmp_path / "whole", "images")
    whole.go(day=1)
    run.go(day=1, calls=15)
    file = run.folder / "completions.jsonl"
    text = file.read_text()
    for number in range(12):
        text = text.replace(unsigned(address(number, 1)) + '"', address(number, 1) + '"')
    assert SECRET in text
    file.write_text(text)
    result = run.go(day=2)
    assert len(run.model.requests) == len(whole.model.requests)
    assert result.total.calls == len(whole.model.requests)
    assert SECRET not in run.kept()


def test_a_cassette_holds_no_signature_and_is_replayed_on_another_day(tmp_path: Path) -> None:
    """Answers that repeat an address have it as it is signed then."""
    model = FunctionModel(lambda request: f"it is {request.messages[-1].content[0]['image_url']['url']}")

    def ask(day: int) -> str:
        return str(nn.ChatCompletion("{input}", model=model)(input=picture(1, day)))

    with llm.record(tmp_path / "cassette.jsonl"):
        ask(1)
    assert SECRET not in (tmp_path / "cassette.jsonl").read_text()
    with llm.replay(tmp_path / "cassette.jsonl"):
        assert ask(2) == f"it is {address(1, 2)}"
    assert len(model.requests) == 1


def asking(day: int, number: int = 1) -> Request:
    content = [{"type": "text", "text": f"Is it red, and {address(9, 1)}?"}, picture(number, day)]
    return Request(messages=(Message(role="user", content=content),))


def test_the_cache_knows_an_image_that_is_signed_anew_and_keeps_no_signature(tmp_path: Path) -> None:
    """Another picture is another one."""

    async def main() -> None:
        model = FunctionModel(lambda request: f"it is {request.messages[0].content[1]['image_url']['url']}")
        with LoopbackServer(model) as server, llm.caching(tmp_path) as cache:
            resolved = llm.resolve(llm.OpenAIModel("m", base_url=server.base_url, api_key="k"))
            await resolved.complete(asking(1))
            again = await resolved.complete(asking(2))
            assert (again.cached, again.text) == (True, f"it is {address(1, 2)}")
            await resolved.complete(asking(2, number=2))
            assert server.requests == 2
            cache.close()
        assert not any(SECRET.encode() in file.read_bytes() for file in tmp_path.iterdir())

    asyncio.run(main())


def test_a_cache_of_before_has_answers_about_whole_addresses(tmp_path: Path) -> None:
    """They are found once more where the address is the same, and kept as others are."""

    async def main() -> None:
        model = FunctionModel(lambda request: "red")
        with LoopbackServer(model) as server, llm.caching(tmp_path) as cache:
            resolved = llm.resolve(llm.OpenAIModel("m", base_url=server.base_url, api_key="k"))
            key, before = keys_of(resolved, asking(1))
            cache._worker.file.put(before, "me", Completion(text="blue", usage=llm.Usage(calls=1)).model_dump_json())
            first, then = await resolved.complete(asking(1)), await resolved.complete(asking(2))
            assert (first.text, first.cached, first.saved.calls) == ("blue", True, 1)
            assert (then.text, then.cached, then.saved.calls) == ("blue", True, 1)
            assert server.requests == 0
            assert key == keys_of(resolved, asking(2))[0]

    asyncio.run(main())
