"""What the programs of other systems share: the endpoint, what is told about the best prompt, and the feedback.

Like ``others.py`` it imports nothing of textgrad_engine.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai

Row = dict[str, str]


class Asking:
    """The endpoint, asked from threads, and what is told about the best prompt."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.client = openai.OpenAI(base_url=job["base_url"], api_key="none", max_retries=5, timeout=60)
        self.pool = ThreadPoolExecutor(job["width"])
        began()

    def say(self, messages: list[dict[str, str]]) -> str:
        """One answer."""
        answer = self.client.chat.completions.create(model="parcels", messages=messages)  # type: ignore[arg-type]
        return answer.choices[0].message.content or ""

    def code(self, prompt: str, row: Row) -> str:
        """What the task model says of a parcel."""
        return self.say([{"role": "system", "content": prompt}, {"role": "user", "content": row["parcel"]}])

    def codes(self, prompt: str, rows: list[Row]) -> list[str]:
        """What it says of many, asked at once."""
        return list(self.pool.map(lambda row: self.code(prompt, row), rows))


def began() -> None:
    """Tell that all is imported and the first call may come."""
    print(json.dumps({"began": time.time()}), flush=True, file=sys.__stdout__)


def told(prompt: str) -> None:
    """Tell that a prompt is the best so far."""
    print(json.dumps({"at": time.time(), "prompt": prompt}), flush=True, file=sys.__stdout__)


def verdict(code: str, row: Row) -> str:
    """The feedback that all optimizers of the benchmark get: the expected answer and the given one."""
    if code.strip() == row["target"]:
        return "The answer is right."
    return f"The answer is wrong. Expected exactly: {row['target']}\nGot: {code}"


def steps(asking: Asking, job: dict[str, Any], step: Callable[[str, list[Row]], str | None]) -> None:
    """TextGrad's loop: a step on a minibatch, then the whole validation set, and back when that is worse.

    Args:
        asking: the endpoint.
        job: what is to be done.
        step: makes a new prompt of a prompt and a minibatch; None where all its answers are right.
    """

    def validated() -> float:
        codes = asking.codes(prompt, job["val"])
        return sum(code.strip() == row["target"] for code, row in zip(codes, job["val"])) / len(codes)

    prompt = job["prompt"]
    rng = random.Random(job["seed"])
    spent, best = len(job["val"]), validated()
    told(prompt)
    size = job["batch"]
    order: list[Row] = []
    while spent + size + len(job["val"]) <= job["calls"]:
        if len(order) < size:
            order = rng.sample(job["train"], len(job["train"]))
        rows, order = order[:size], order[size:]
        spent += size
        new = step(prompt, rows)
        if new is None:
            continue
        spent += len(job["val"])
        if new == prompt:
            continue
        before, prompt = prompt, new
        score = validated()
        if score < best:
            prompt = before
        else:
            best = score
            told(prompt)
