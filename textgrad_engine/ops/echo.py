"""The models of `autograd.gradcheck`: they cost nothing, write down what they are asked, and repeat the marks in it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from textgrad_engine.autograd.gradcheck_marks import CRITIC_MARK, FEEDBACK_MARK, VALUE_MARK, WHOLE_MARK, whole_marks
from textgrad_engine.autograd.rehearsal import ENTRY_MARK, OBSERVE
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.roles import use_models


class EchoModel:
    """Answers with the marks of the request, or, while the program runs forward, with a word that stands for it.

    Args:
        seed: shuffles the order in which requests that are under way at the same time are answered.
        score: the number in every answer that has one, such as a judge's.

    Attributes:
        requests: the text of every request so far.
        repeats: whether answers repeat marks.
    """

    free = True
    name = "echo"

    def __init__(self, seed: int = 0, score: float = 0.5) -> None:
        self.seed, self.score = seed, score
        self.requests: list[str] = []
        self.repeats: bool | None = False

    async def complete(self, request: Request) -> Completion:
        """Answer, after a number of turns of the event loop that depends on the request and the seed."""
        text = "\n\n".join(f"{message.role}:\n{message.text}" for message in request.messages)
        self.requests.append(text)
        for _ in range(hashlib.sha256(f"{self.seed}\0{text}".encode()).digest()[0] % 16 if self.seed else 0):
            await asyncio.sleep(0)
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]

        def words(shown: str) -> str:
            return _repeated(shown) if self.repeats else f"answer {digest}"

        wanted = request.config.response_format
        if wanted is None:
            return Completion(text=words(text))
        schema = wanted.json_schema
        parts = schema.get("properties")
        if parts is None:
            return Completion(text=json.dumps(self._fill(schema, words(text), schema)))
        filled = {key: self._fill(part, words(_shown_for(key, text)), schema) for key, part in parts.items()}
        return Completion(text=json.dumps(filled))

    def _fill(self, schema: Mapping[str, Any], words: str, root: Mapping[str, Any]) -> Any:
        """A value that the schema accepts, with the words wherever a text may stand."""
        if "$ref" in schema:
            target: Any = root
            for step in str(schema["$ref"]).removeprefix("#/").split("/"):
                target = target[step]
            return self._fill(target, words, root)
        for union in ("anyOf", "oneOf", "allOf"):
            if schema.get(union):
                return self._fill(schema[union][0], words, root)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return schema["enum"][0]
        kinds = schema.get("type", "object" if "properties" in schema else "string")
        kind = kinds[0] if isinstance(kinds, list) else kinds
        if kind == "object":
            return {key: self._fill(part, words, root) for key, part in schema.get("properties", {}).items()}
        if kind == "array":
            return [self._fill(schema.get("items", {}), words, root)]
        return {"number": self.score, "integer": round(self.score), "boolean": False, "null": None}.get(kind, words)


def _shown_for(key: str, text: str) -> str:
    """What of a request an answer's field is about: of several cases, the field's own and what comes before them."""
    before, *cases = re.split(r"(?m)^## Case \d+$", text)
    own = re.fullmatch(r"case_(\d+)", key)
    return before + cases[int(own[1]) - 1] if own and len(cases) >= int(own[1]) else text


def _repeated(text: str) -> str:
    marks = re.findall(rf"(?:{FEEDBACK_MARK}|{ENTRY_MARK})\d+", text, re.IGNORECASE)
    said = dict.fromkeys(mark.lower() for mark in marks)
    values = {mark.lower() for mark in re.findall(rf"{VALUE_MARK}\d+", text, re.IGNORECASE)}
    whole = {mark.lower() for mark in re.findall(rf"{WHOLE_MARK}\d+", text, re.IGNORECASE)}
    whole |= {f"{WHOLE_MARK}{number}" for number in whole_marks(text)}
    return " ".join([CRITIC_MARK, *said, *sorted(values), *sorted(whole)])


@contextlib.contextmanager
def observed(seed: int = 0, score: float = 0.5) -> Iterator[EchoModel]:
    """Inside the block, calls for every purpose are answered by one `EchoModel`.

    Args:
        seed: as in `EchoModel`.
        score: as in `EchoModel`; ``gradcheck(..., observe=functools.partial(observed, score=3))`` checks a program with
            a judge whose scale has no 0.5.
    """
    model = EchoModel(seed, score)
    with use_models(forward=model, backward=model, judge=model, optimizer=model):
        yield model


OBSERVE.append(observed)
