"""Trace's OptoPrime on a simulated task, in the loop of its authors' own comparison with TextGrad.

Run by ``others.py``; what departs from how it comes is in the docstrings.
"""

from __future__ import annotations

import warnings
from typing import Any

from asking import Asking, Row, steps, verdict
from opto import trace
from opto.optimizers import OptoPrime

ROLE = (
    "structured system prompt to a somewhat capable language model that specifies the behavior and strategies for the "
    "QA task"
)
"""What the authors' script says of the prompt."""


answers: dict[str, str] = {}
"""What was answered to the parcels of a minibatch, all of which are asked at once."""


@trace.bundle()
def query(system_prompt: str, parcel: str) -> str:
    """Query the language model with the system prompt and the input query."""
    return answers[parcel]


@trace.bundle()
def eval_response(response: str, ground_truth_answer: str) -> str:
    """Evaluate the response of the language model with respect to the ground truth answer."""
    return verdict(response, {"target": ground_truth_answer})


@trace.bundle()
def concat(*items: str) -> str:
    """Concatenate the items into a single string."""
    return "".join(f"{[number]}: {item}\n\n" for number, item in enumerate(items))


def optoprime(job: dict[str, Any]) -> None:
    """OptoPrime as the authors' script for prompts runs it: a step on a minibatch, validation, and back if worse.

    Two things are kinder to it than there: the examples of a minibatch are run at once, and what evaluates an answer
    says what was expected, not only 0 or 1.
    """
    warnings.simplefilter("ignore")
    asking = Asking(job)
    prompt = trace.node(job["prompt"], trainable=True, constraint=ROLE)
    optimizer = OptoPrime(
        [prompt],
        llm=lambda **asked: asking.client.chat.completions.create(model="parcels", **asked),
        prompt_symbols={"variables": "#Parameters"},
    )

    def step(text: str, rows: list[Row]) -> str | None:
        answers.update(zip((row["parcel"] for row in rows), asking.codes(text, rows)))
        if all(answers[row["parcel"]].strip() == row["target"] for row in rows):
            return None
        prompt._data = text
        optimizer.zero_feedback()
        target = concat(*(eval_response(query(prompt, row["parcel"]), row["target"]) for row in rows))
        target.backward("Improve correctness.")
        optimizer.step()
        return str(prompt.data)

    steps(asking, job, step)
