"""DSPy's optimizers on a simulated task: the prompt is the instruction of a program of one predictor.

Run by ``others.py``; what departs from how they come is in the docstrings.
"""

from __future__ import annotations

import logging
from typing import Any

import dspy
from asking import began, told, verdict
from dspy.teleprompt import GEPA, MIPROv2
from dspy.utils.callback import BaseCallback

STEPS = 5
"""After how many minibatches MIPROv2 runs the best candidate on the whole validation set: its own number."""

CANDIDATES = 18
"""As many instructions as MIPROv2 proposes with ``auto="heavy"``."""


class Watch(BaseCallback):
    """Tells each instruction that did best on the whole validation set so far."""

    def __init__(self, whole: int) -> None:
        self.whole, self.best = whole, -1.0
        self.running: dict[str, Any] = {}

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Remember which program is run, on how many examples."""
        self.running[call_id] = (inputs["program"], len(inputs.get("devset") or instance.devset))

    def on_evaluate_end(self, call_id: str, outputs: Any, exception: Exception | None = None) -> None:
        """Tell its instruction if it is the best one."""
        program, count = self.running.pop(call_id)
        if exception is None and count == self.whole and outputs.score > self.best:
            self.best = outputs.score
            told(program.signature.instructions)


def _given(job: dict[str, Any]) -> tuple[dspy.LM, dspy.Predict, list[dspy.Example], list[dspy.Example]]:
    """The model, the program and the examples."""
    logging.disable(logging.WARNING)
    model = dspy.LM("openai/parcels", api_base=job["base_url"], api_key="none", num_retries=5)
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)  # a disk's would give other seeds' answers
    dspy.configure(lm=model, callbacks=[Watch(len(job["val"]))])
    program = dspy.Predict(dspy.Signature("parcel -> code", job["prompt"]))
    train, val = (
        [dspy.Example(parcel=row["parcel"], code=row["target"]).with_inputs("parcel") for row in job[part]]
        for part in ("train", "val")
    )
    model("hello")  # what is loaded with the first call belongs to no optimizer
    began()
    return model, program, train, val


def miprov2(job: dict[str, Any]) -> None:
    """MIPROv2 as its tutorial for instructions alone has it: no demonstrations, 18 proposals as with ``auto="heavy"``.

    As many trials as the calls allow, in minibatches of 35 with the best one on all of the validation set after five.
    """
    _, program, train, val = _given(job)
    trials = 1
    while len(val) + (trials + 1) * job["batch"] + -(-(trials + 1) // STEPS) * len(val) <= job["calls"]:
        trials += 1
    optimizer = MIPROv2(
        metric=lambda row, answer, trace=None: answer.code.strip() == row.code,
        auto=None,
        num_candidates=CANDIDATES,
        max_bootstrapped_demos=0,
        max_labeled_demos=0,
        num_threads=job["width"],
        seed=job["seed"],
    )
    best = optimizer.compile(
        program,
        trainset=train,
        valset=val,
        num_trials=trials,
        minibatch_size=job["batch"],
        minibatch_full_eval_steps=STEPS,
    )
    told(best.signature.instructions)


def gepa(job: dict[str, Any]) -> None:
    """`dspy.GEPA` with a metric that says what was expected."""
    model, program, train, val = _given(job)

    def metric(row: Any, answer: Any, trace: Any = None, name: Any = None, own_trace: Any = None) -> dspy.Prediction:
        said = verdict(answer.code, {"target": row.code})
        return dspy.Prediction(score=float(answer.code.strip() == row.code), feedback=said)

    optimizer = GEPA(
        metric=metric,
        max_metric_calls=job["calls"],
        reflection_lm=model,
        reflection_minibatch_size=job["batch"],
        num_threads=job["width"],
        seed=job["seed"],
    )
    told(optimizer.compile(program, trainset=train, valset=val).signature.instructions)
