"""AdalFlow's text optimizer on a simulated task, with its Trainer as its authors' examples set it.

Run by ``others.py``; what departs from how it comes is in the docstrings.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tiktoken
from asking import Row, began, told

tiktoken.get_encoding = lambda name: tiktoken.Encoding(  # a vocabulary would be fetched; its counts go to logs alone
    name, pat_str=".", mergeable_ranks={bytes([byte]): byte for byte in range(256)}, special_tokens={}
)
HOME = tempfile.TemporaryDirectory()
os.environ["HOME"] = HOME.name  # it keeps answers and checkpoints there, and would give those of other seeds

import adalflow as adal  # noqa: E402  what it reads when it is imported is set above
from adalflow.components.model_client.openai_client import OpenAIClient  # noqa: E402
from adalflow.optim.parameter import ParameterType  # noqa: E402

TEMPLATE = (
    "<START_OF_SYSTEM_PROMPT>\n{{system_prompt}}\n<END_OF_SYSTEM_PROMPT>\n<START_OF_USER>\n{{input_str}}\n<END_OF_USER>"
)


@dataclass
class Parcel:
    """An example."""

    id: str
    parcel: str
    target: str


class Program(adal.Component):
    """One call of the model; its system prompt is optimized."""

    def __init__(self, prompt: str, model: dict[str, Any]) -> None:
        super().__init__()
        self.runs: list[str] = []
        self.prompt = adal.Parameter(
            data=prompt,
            role_desc="To give task instruction to the language model in the system prompt",
            requires_opt=True,
            param_type=ParameterType.PROMPT,
        )
        self.llm = adal.Generator(
            **model, template=TEMPLATE, prompt_kwargs={"system_prompt": self.prompt}, use_cache=True
        )

    def call(self, parcel: str, id: str | None = None) -> Any:  # noqa: A002  its own name
        """The code of a parcel."""
        self.runs.append(parcel)
        return self.llm(prompt_kwargs={"input_str": parcel}, id=id)


def right(y: str, y_gt: str) -> float:
    """1 for the expected code."""
    return float(str(y).strip() == y_gt)


class Task(adal.AdalComponent):
    """The program with its loss, as AdalFlow wants them."""

    def __init__(self, prompt: str, model: dict[str, Any]) -> None:
        loss = adal.EvalFnToTextLoss(eval_fn=right, eval_fn_desc="exact_match: 1 if str(y) == str(y_gt) else 0")
        super().__init__(
            task=Program(prompt, model),
            eval_fn=right,
            loss_fn=loss,
            backward_engine_model_config=model,
            text_optimizer_model_config=model,
        )

    def prepare_task(self, sample: Parcel) -> Any:
        """The call of the program."""
        return self.task.call, {"parcel": sample.parcel, "id": sample.id}

    def prepare_eval(self, sample: Parcel, y_pred: Any) -> Any:
        """The score of an answer."""
        return self.eval_fn, {"y": y_pred.data if y_pred else "", "y_gt": sample.target}

    def prepare_loss(self, sample: Parcel, pred: Any) -> Any:
        """The loss of an answer."""
        truth = adal.Parameter(name="y_gt", data=sample.target, eval_input=sample.target, requires_opt=False)
        pred.eval_input = pred.data.data
        given = {"kwargs": {"y": pred, "y_gt": truth}, "id": sample.id, "gt": sample.target}
        return self.loss_fn, given


class Batches:
    """Shuffled minibatches until the calls are spent; tells the prompt whenever it has changed."""

    def __init__(self, task: Task, job: dict[str, Any]) -> None:
        self.task, self.job = task, job
        self.rows = examples(job["train"])
        self.rng = random.Random(job["seed"])
        self.last = ""

    def __len__(self) -> int:
        return len(self.rows) // self.job["batch"]

    def __iter__(self) -> Iterator[list[Parcel]]:
        size = self.job["batch"]
        self.rng.shuffle(self.rows)
        for start in range(0, len(self.rows) - size + 1, size):
            if self.task.task.prompt.data != self.last:
                self.last = self.task.task.prompt.data
                told(self.last)
            if len(self.task.task.runs) + len(self.job["val"]) + 2 * size > self.job["calls"]:
                return
            yield self.rows[start : start + size]


def examples(rows: list[Row]) -> list[Parcel]:
    """Rows as AdalFlow wants them."""
    return [Parcel(str(number), row["parcel"], row["target"]) for number, row in enumerate(rows)]


def text(job: dict[str, Any]) -> None:
    """Text optimization, "constrained": a proposal that does better on a few examples is run on the validation set.

    As the calls are what limits it, it takes as many steps as these allow, not the 12 of the examples.
    """
    logging.disable(logging.ERROR)
    model = {
        "model_client": OpenAIClient(api_key="none", base_url=job["base_url"]),
        "model_kwargs": {"model": "parcels"},
    }
    random.seed(job["seed"])
    task = Task(job["prompt"], model)
    trainer = adal.Trainer(
        adaltask=task,
        train_batch_size=job["batch"],
        strategy="constrained",
        max_steps=10_000,
        num_workers=job["width"],
        max_proposals_per_step=5,
    )
    began()
    with contextlib.redirect_stdout(io.StringIO()):  # it prints what it does
        trainer.fit(train_loader=Batches(task, job), val_dataset=examples(job["val"]))
    told(task.task.prompt.data)
