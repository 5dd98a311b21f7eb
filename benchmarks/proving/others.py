"""Other systems on a simulated task: GEPA and TextGrad here, DSPy, AdalFlow and Trace in files of their own.

Run by ``benchmarks/optimizers.py`` in a process and, if need be, an interpreter of its own: it imports nothing of
textgrad_engine.

    python others.py gepa < job.json

The first argument is one of `SYSTEMS`.

The job (JSON on standard input): ``base_url``, ``prompt``, ``train`` and ``val`` (rows with ``parcel`` and
``target``), ``seed``, ``calls`` (how many examples may be run at most), ``width`` (how many at once) and ``batch`` (how
many in a step). Each line on standard output is JSON: when it began (all is imported by then), each text that did best
on the validation set so far with the time, and when it was done.

What departs from how the packages come is in the docstrings; all of it is in their favour.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from asking import Asking, Row, steps, told, verdict


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

    def step(text: str, rows: list[Row]) -> str | None:
        prompt.set_value(text)
        optimizer.zero_grad()
        losses = [loss for right, loss in asking.pool.map(run, rows) if not right]
        if not losses:
            return None
        library.sum(losses).backward()
        optimizer.step()
        return str(prompt.value)

    steps(asking, job, step)


def _in(module: str, name: str) -> Callable[[dict[str, Any]], None]:
    def run(job: dict[str, Any]) -> None:
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # its import would look for prices on the net
        getattr(importlib.import_module(module), name)(job)

    return run


SYSTEMS: dict[str, Callable[[dict[str, Any]], None]] = {
    "gepa": gepa,
    "textgrad": textgrad,
    "dspy-miprov2": _in("with_dspy", "miprov2"),
    "dspy-gepa": _in("with_dspy", "gepa"),
    "adalflow": _in("with_adalflow", "text"),
    "trace-optoprime": _in("with_trace", "optoprime"),
}

if __name__ == "__main__":
    SYSTEMS[sys.argv[1]](json.load(sys.stdin))
    print(json.dumps({"done": time.time()}), flush=True)
