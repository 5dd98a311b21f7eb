"""GEPA and TextGrad on a simulated task. Run by ``benchmarks/optimizers.py`` in a process and, if need be, an
interpreter of its own: it imports nothing of textgrad_engine.

    python others.py gepa < job.json

The job (JSON on standard input): ``base_url``, ``prompt``, ``train`` and ``val`` (rows with ``parcel`` and
``target``), ``seed``, ``calls`` (how many examples may be run at most), ``width`` (how many at once) and ``batch`` (how
many in a step). Each line on standard output is JSON: when it began (all is imported by then), each text that did best
on the validation set so far with the time, and when it was done.

What departs from how the packages come is in the docstrings; all of it is in their favour.
"""

from __future__ import annotations

import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai

Row = dict[str, str]


class Asking:
    """The endpoint, asked from threads, and what is told about the best prompt."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.client = openai.OpenAI(base_url=job["base_url"], api_key="none", max_retries=5, timeout=60)
        self.pool = ThreadPoolExecutor(job["width"])
        print(json.dumps({"began": time.time()}), flush=True)

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


def told(prompt: str) -> None:
    """Tell that a prompt is the best so far."""
    print(json.dumps({"at": time.time(), "prompt": prompt}), flush=True)


def verdict(code: str, row: Row) -> str:
    """The feedback that all optimizers of the benchmark get: the expected answer and the given one."""
    if code.strip() == row["target"]:
        return "The answer is right."
    return f"The answer is wrong. Expected exactly: {row['target']}\nGot: {code}"


def gepa(job: dict[str, Any]) -> None:
    """GEPA as `gepa.optimize` runs it, with an adapter that asks in parallel and its evaluation cache switched on."""
    import gepa as library
    from gepa.core.adapter import EvaluationBatch

    asking = Asking(job)

    class Adapter:
        propose_new_texts = None

        def evaluate(self, batch: list[Row], candidate: dict[str, str], capture_traces: bool = False) -> Any:
            codes = asking.codes(candidate["system"], batch)
            scores = [float(code.strip() == row["target"]) for code, row in zip(codes, batch)]
            traces = [
                {"Inputs": row["parcel"], "Generated Outputs": code, "Feedback": verdict(code, row)}
                for code, row in zip(codes, batch)
            ]
            return EvaluationBatch(outputs=codes, scores=scores, trajectories=traces if capture_traces else None)

        def make_reflective_dataset(self, candidate: Any, batch: Any, components: list[str]) -> dict[str, Any]:
            return dict.fromkeys(components, batch.trajectories)

    best = -1.0

    class Watch:
        def on_valset_evaluated(self, event: dict[str, Any]) -> None:
            nonlocal best
            if event["average_score"] > best:
                best = event["average_score"]
                told(event["candidate"]["system"])

    result = library.optimize(
        seed_candidate={"system": job["prompt"]},
        trainset=job["train"],
        valset=job["val"],
        adapter=Adapter(),
        reflection_lm=lambda prompt: asking.say(
            [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        ),
        reflection_minibatch_size=job["batch"],
        max_metric_calls=job["calls"],
        cache_evaluation=True,
        seed=job["seed"],
        logger=type("Quiet", (), {"log": lambda self, message: None})(),
        callbacks=[Watch()],
    )
    told(result.best_candidate["system"])


def textgrad(job: dict[str, Any]) -> None:
    """TextGrad as its authors' prompt optimization runs it: a step, then validation, and back when that is worse.

    Two things are kinder to it than there: the examples of a minibatch are run at once, and answers that are right are
    not sent through the backward pass.
    """
    import textgrad as library
    from textgrad.autograd import StringBasedFunction
    from textgrad.engine.base import EngineLM

    asking = Asking(job)

    class Engine(EngineLM):
        model_string = "parcels"

        def generate(self, prompt: str, system_prompt: str | None = None, **_: Any) -> str:
            head = [{"role": "system", "content": system_prompt}] if system_prompt else []
            return asking.say([*head, {"role": "user", "content": prompt}])

        __call__ = generate

    engine = Engine()
    library.set_backward_engine(engine, override=True)
    prompt = library.Variable(job["prompt"], requires_grad=True, role_description="system prompt to the language model")
    model = library.BlackboxLLM(engine, prompt)
    optimizer = library.TextualGradientDescent(engine=engine, parameters=[prompt])
    check = StringBasedFunction(
        lambda prediction, ground_truth_answer: verdict(prediction.value, {"target": ground_truth_answer.value}),
        function_purpose="says whether the prediction is exactly the ground truth answer",
    )

    def run(row: Row) -> Any:
        asked = library.Variable(row["parcel"], requires_grad=False, role_description="query to the language model")
        truth = library.Variable(row["target"], requires_grad=False, role_description="correct answer for the query")
        prediction = model(asked)
        loss = check(inputs={"prediction": prediction, "ground_truth_answer": truth})
        return prediction.value.strip() == row["target"], loss

    def validated() -> float:
        codes = asking.codes(prompt.value, job["val"])
        return sum(code.strip() == row["target"] for code, row in zip(codes, job["val"])) / len(codes)

    rng = random.Random(job["seed"])
    spent, best = len(job["val"]), validated()
    told(prompt.value)
    size = job["batch"]
    order: list[Row] = []
    while spent + size + len(job["val"]) <= job["calls"]:
        if len(order) < size:
            order = rng.sample(job["train"], len(job["train"]))
        rows, order = order[:size], order[size:]
        optimizer.zero_grad()
        losses = [loss for right, loss in asking.pool.map(run, rows) if not right]
        spent += size
        if not losses:
            continue
        before = prompt.value
        library.sum(losses).backward()
        optimizer.step()
        score = validated() if prompt.value != before else best
        spent += len(job["val"])
        if score < best:
            prompt.set_value(before)
        elif prompt.value != before:
            best = score
            told(prompt.value)


if __name__ == "__main__":
    name = sys.argv[1]
    {"gepa": gepa, "textgrad": textgrad}[name](json.load(sys.stdin))
    print(json.dumps({"done": time.time()}), flush=True)
