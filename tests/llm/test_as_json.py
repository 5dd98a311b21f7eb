"""Requests as JSON: what an agent's turns come to is worked out once, and is what it would be anew."""

from __future__ import annotations

import copy
import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.llm import Completion, GenerateConfig, Message, Request, as_json
from textgrad_engine.llm.as_json import asked_of, forms_of, recorded, recorded_without
from textgrad_engine.llm.attachments import as_recorded
from textgrad_engine.llm.redact import redacted
from textgrad_engine.signed import unsigned
from textgrad_engine.testing import FunctionModel

SECRET, KEY = "canary-key-0123456789", "sk-0123456789abcdef01"
SIGNED = "https://files.example/a.png?v=2&sv=2024-11-04&se=2026-11-24&sr=b&sp=r&sig=aBc%3D"
TEXTS = ["", "plain", f"{SECRET} and {KEY}", f"Look at {SIGNED}", f"{SIGNED} {SECRET}"]


def called(text: str) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "look", "arguments": json.dumps({"at": text})}}


def request_of(text: str) -> Request:
    image = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    messages = (
        Message("system", text),
        Message("user", image),
        Message("assistant", text, tool_calls=[called(text)], items=[{"type": "reasoning", "password": text}]),
        Message("tool", text, tool_call_id="c"),
        Message("tool", [*image, {"type": "image_url", "image_url": {"url": SIGNED}}], tool_call_id="c"),
    )
    return Request(messages, GenerateConfig(temperature=0, extra={"api_key": text}))


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_kept_of_turns_is_what_it_would_be_anew(text: str) -> None:
    """Whoever asks first, and whatever the secrets are by then; a record of before is found by the same names."""
    request = request_of(text)
    for secrets in ([], [SECRET], ["files.example", SECRET], []):
        whole = {"model": "m", **asked_of(request)}
        assert whole["messages"] == [
            {name: value for name, value in each.model_dump(mode="json").items() if value is not None}
            for each in request.messages
        ]
        forms = forms_of("m", request, secrets)
        wanted = [json.dumps(each, sort_keys=True) for each in (redacted(whole, secrets), unsigned(whole), whole)]
        assert [json.dumps(each, sort_keys=True) for each in forms] == list(dict.fromkeys(wanted))
        assert json.dumps(recorded(request)) == json.dumps(as_recorded(asked_of(request)))
        kept = redacted(as_recorded(asked_of(request)), secrets)
        assert json.dumps(recorded_without(request, secrets)) == json.dumps(kept)


def test_what_is_kept_of_a_message_is_no_part_of_it() -> None:
    """It is equal to one that nobody has looked at, shown as that is, and a copy with another text has its own."""
    looked_at, other = (Message("tool", f"{SECRET} {SIGNED}", tool_call_id="c") for _ in range(2))
    forms = forms_of("m", Request([looked_at]), [SECRET])
    assert (looked_at, repr(looked_at), looked_at.model_dump()) == (other, repr(other), other.model_dump())
    for again in (copy.copy(looked_at), copy.deepcopy(looked_at), pickle.loads(pickle.dumps(looked_at))):
        assert again == other
        assert forms_of("m", Request([again]), [SECRET]) == forms
    changed = looked_at.model_copy(update={"content": "plain"})
    assert asked_of(Request([changed]))["messages"] == [{"role": "tool", "content": "plain", "tool_call_id": "c"}]


def test_a_turn_of_an_agent_is_cleaned_as_often_in_a_long_conversation_as_in_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 40 turns, each one cleaned all before it again, and a call took three times as long."""
    cleaned: Counter[str] = Counter()

    def counting(name: str) -> Any:
        real = getattr(as_json, name)

        def look(value: Any, *more: Any) -> Any:
            cleaned[name] += isinstance(value, dict) and value.get("role") in ("assistant", "tool")
            return real(value, *more)

        return look

    for name in ("redacted", "unsigned"):
        monkeypatch.setattr(as_json, name, counting(name))

    def look(number: int) -> str:
        """A page.

        Args:
            number: its number.
        """
        return f"page {number}: {SIGNED}"

    def agent(request: Request) -> Any:
        if request.purpose != "forward":
            return {"edits": []}
        done = sum(message.role == "tool" for message in request.messages)
        function = {"name": "look", "arguments": json.dumps({"number": done})}
        call = {"id": f"c{done}", "type": "function", "function": function}
        return "yes" if done == turns else Completion(text="", tool_calls=(call,))

    for turns in (5, 20):
        cleaned.clear()
        system = nn.Parameter("Look it up.", role="system prompt")
        program = nn.ChatCompletion("{q}", system=system, tools=[look], max_turns=turns + 1)
        rows = [{"q": "Is it?", "target": "yes"}]
        with tg.use_models(forward=FunctionModel(agent)):
            trainer = tg.Trainer(max_steps=1, run_dir=tmp_path / str(turns))
            trainer.fit(program, nn.ExactMatch(), optim.TGD(program.parameters()), rows, rows)
        assert len((tmp_path / str(turns) / "tools.jsonl").read_text().splitlines()) == turns
        # An answer is one message for the names of its calls, and another one for what follows.
        assert cleaned == {"redacted": 3 * turns - 2, "unsigned": 3 * turns}
