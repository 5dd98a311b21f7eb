"""Every public function and constructor, given any one wrong argument, says so at once and before anything is asked."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import functools
import importlib
import inspect
import math
import numbers
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from operator import attrgetter
from pathlib import Path, PurePath
from typing import Any
from unittest.mock import Mock

import pytest

import textgrad_engine as tg
from textgrad_engine import data, errors, llm, nn, optim, testing, train
from textgrad_engine.optim import proposers, transforms
from textgrad_engine.testing import FunctionModel

Right = dict[str, Any]
PARTS = ("", "autograd", "data", "func", "llm", "nn", "ops", "optim", "testing", "train")


def nobody(request: llm.Request) -> str:
    raise AssertionError("a model was asked before the arguments were known to be right")


MODEL = FunctionModel(nobody)
REQUEST = llm.Request(messages=(llm.Message(role="user", content="a"),))
CASES = {"properties": {"case_1": {"properties": {"system": {"type": "string"}}}}}
CRITICISM = REQUEST.model_copy(
    update={"config": llm.GenerateConfig(response_format=llm.ResponseFormat(name="feedback", json_schema=CASES))}
)
ROWS = [{"text": str(number), "target": str(number)} for number in range(8)]
EVALUATION = train.Evaluation(("a", "b", "c"), (0.0, 1.0, 1.0), ("0", "1", "1"), {})


def prompt() -> nn.Parameter:
    return nn.Parameter("Repeat.", role="system prompt")


def program() -> nn.ChatCompletion:
    return nn.ChatCompletion("{text}", system=prompt(), model=MODEL)


def a_tool(number: int) -> str:
    """Does something."""
    return str(number)


def value(**settings: Any) -> tg.Variable:
    return tg.Variable("a", role="answer", **settings)


def tgd() -> optim.TGD:
    return optim.TGD([prompt()])


def searched(**settings: Any) -> Right:
    return {"params": [prompt()], "model": MODEL, "constraints": ["Be brief."], "seed": 1, **settings}


def trained() -> Right:
    made = program()
    return {"program": made, "loss": nn.ExactMatch(), "concurrency": 2, "target": "target"}


TOKENS: Right = {"max_tokens": 900, "max_feedback_tokens": 900, "transforms": [transforms.dedupe()]}
ROLES: Right = dict.fromkeys(("forward", "backward", "optimizer", "judge"), MODEL)
LIMITS: Right = {"dollars": 1.0, "calls": 5, "tokens": 900}
PASS: Right = {"retain_graph": True, "create_graph": False}

RIGHT: dict[str, Callable[[], Right]] = {
    "Trainer": lambda: {
        "max_epochs": 2, "batch_size": 4, "max_steps": 3, "patience": 2, "feedback_batch_size": 2, "feedback_images": 1,
        "target": "target", "notes": "text", "seed": 1, "concurrency": 2, "guards": train.Guards(("a",)),
        "clusters": "text", "tokens_weight": 0.1, "latency_weight": 0.1, "controls": True, "run_dir": "run",
        "resume": False, "callbacks": [],
    },
    "Variable": lambda: {"data": "a", "role": "answer", "requires_grad": True},
    "budget": lambda: dict(LIMITS),
    "compare": lambda: {"before": EVALUATION, "after": EVALUATION, "candidates": [], "confidence": 0.9, "seed": 1},
    "cross_validate": lambda: {
        "start": lambda: (made := program(), optim.TGD(made.parameters())), "loss": nn.ExactMatch(), "examples": ROWS,
        "folds": 2, "val": 0.2, "trainer": tg.Trainer(), "final": True,
    },
    "evaluate": lambda: trained() | {
        "dataset": ROWS, "repeats": 2, "clusters": "text", "timed": True, "on_score": lambda position: None
    },
    "backward": lambda: {"variables": value(requires_grad=True) + "!", "grad_variables": "b", "inputs": None, **PASS},
    "set_grad_enabled": lambda: {"mode": True},
    "set_models": lambda: dict(ROLES),
    "use_models": lambda: dict(ROLES),
    "autograd.example": lambda: {"name": "a"},
    "autograd.get_gradient_edge": lambda: {"variable": value(requires_grad=True)},
    "autograd.grad": lambda: {
        "outputs": value(requires_grad=True) + "!", "inputs": value(requires_grad=True), "grad_outputs": "b",
        "allow_unused": True, **PASS,
    },
    "autograd.gradcheck": lambda: {
        "fn": lambda a: a + "!", "raise_exception": True, "vary_inputs": True, "check_values": True,
        "inputs": value(requires_grad=True),
    },
    "autograd.is_seed": lambda: {"gradient": value()},
    "autograd.once_differentiable": lambda: {"backward": lambda ctx, grad: grad},
    "autograd.register_multi_grad_hook": lambda: {
        "variables": [value(requires_grad=True)], "fn": lambda *grads: None, "mode": "all"
    },
    "data.DataLoader": lambda: {
        "dataset": ROWS, "batch_size": 2, "shuffle": True, "sampler": None, "drop_last": False, "seed": 1
    },
    "data.Dataset": lambda: {"rows": ROWS[:1], "path": "rows.jsonl", "lines": [1]},
    "data.RandomSampler": lambda: {"data_source": ROWS, "replacement": True, "num_samples": 2, "seed": 1},
    "data.SequentialSampler": lambda: {"data_source": ROWS},
    "data.Subset": lambda: {"dataset": ROWS, "indices": [1]},
    "data.WeightedRandomSampler": lambda: {"weights": [1.0], "num_samples": 2, "replacement": True, "seed": 1},
    "data.check_splits": lambda: {"train": ROWS, "val": ROWS, "test": ROWS, "fields": ["text"]},
    "data.examples_of": lambda: {"dataset": ROWS},
    "data.ids_of": lambda: {"dataset": ROWS},
    "data.image_part": lambda: {"source": "https://example.org/a.png", "detail": "low"},
    "data.load": lambda: {"path": "rows.jsonl", "images": ["photo"], "detail": "low"},
    "data.random_split": lambda: {
        "dataset": ROWS, "fractions": [0.5, 0.5], "seed": 1, "clusters": "text", "together": ["text"]
    },
    "func.functional_call": lambda: {"module": program(), "overrides": {"system": "a"}},
    "func.grad": lambda: {"function": len, "argnums": 0, "has_aux": False},
    "func.grad_and_value": lambda: {"function": len, "argnums": 0, "has_aux": False},
    "func.hessian": lambda: {"function": len, "argnums": 0, "feedback": "a"},
    "func.jacfwd": lambda: {"function": len, "argnums": 0, "has_aux": False},
    "func.jacrev": lambda: {"function": len, "argnums": 0, "has_aux": False, "feedback": "a"},
    "func.jvp": lambda: {"function": lambda a: a, "primals": (value(),), "tangents": ("b",), "has_aux": False},
    "func.pmap": lambda: {"function": len, "concurrency": 2},
    "func.stack_module_state": lambda: {"models": [program()]},
    "func.vjp": lambda: {"function": lambda: value(), "has_aux": False},
    "func.vmap": lambda: {"function": len, "randomness": "same", "chunk_size": 2, "names": ["a"]},
    "llm.Budget": lambda: dict(LIMITS),
    "llm.Budgeted": lambda: {"inner": MODEL},
    "llm.Cache": lambda: {"path": "cache", "max_bytes": 1000, "lease": 1.0},
    "llm.Cached": lambda: {"inner": MODEL, "cache": None},
    "llm.CallableModel": lambda: {"fn": print, "name": "a", "price": llm.Price(1.0, 1.0), "cache_key": "a"},
    "llm.Check": lambda: {"inner": MODEL, "max_text": 100},
    "llm.Completion": lambda: {"text": "a", "finish_reason": "stop", "model": "m", "latency": 1.0, "attempts": 1},
    "llm.Deadline": lambda: {"inner": MODEL, "seconds": 1.0},
    "llm.Defaults": lambda: {"inner": MODEL, "defaults": llm.GenerateConfig()},
    "llm.Fallback": lambda: {"first": MODEL, "second": MODEL, "on": llm.DOWN, "cooldown": 1.0},
    "llm.GenerateConfig": lambda: {
        "temperature": 0.5, "top_p": 0.5, "max_tokens": 9, "stop": ("a",), "seed": 1, "frequency_penalty": 0.1,
        "presence_penalty": 0.1, "reasoning_effort": "low", "tools": ({"type": "function"},),
    },
    "llm.Limit": lambda: {
        "inner": MODEL, "max_in_flight": 9, "start": 2, "floor": 1, "requests_per_minute": 9.0,
        "tokens_per_minute": 9.0, "max_pause": 1.0, "max_quota_wait": 1.0,
    },
    "llm.Message": lambda: {"role": "user", "content": "a", "tool_call_id": "b"},
    "llm.Metered": lambda: {"inner": MODEL},
    "llm.OpenAIModel": lambda: {
        "name": "m", "base_url": "http://localhost:1/v1", "api_key": "k", "max_in_flight": 2, "timeout": 1.0,
        "api": "chat", "context": 900, "price": llm.Price(1.0, 1.0), "headers": {"x-a": "b"}, "temperature": 0.5,
    },
    "llm.Price": lambda: {"input": 1.0, "output": 1.0, "cached": 0.5},
    "llm.Recording": lambda: {"path": "recording.jsonl"},
    "llm.Replay": lambda: {"path": "recording.jsonl"},
    "llm.Request": lambda: {"messages": REQUEST.messages, "config": llm.GenerateConfig(), "purpose": "judge"},
    "llm.ResponseFormat": lambda: {"name": "a", "json_schema": {"type": "object"}},
    "llm.Retry": lambda: {"inner": MODEL, "policy": llm.RetryPolicy(), "clock": lambda: 0.0},
    "llm.RetryPolicy": lambda: {
        "max_attempts": 2, "answer_attempts": 2, "base": 1.0, "cap": 2.0, "max_retry_after": 1.0, "deadline": 1.0,
        "call_deadline": 1.0,
    },
    "llm.Taped": lambda: {"inner": MODEL},
    "llm.Traced": lambda: {"inner": MODEL},
    "llm.Usage": lambda: {"input_tokens": 1, "output_tokens": 1, "calls": 1, "dollars": 0.5},
    "llm.Wrapper": lambda: {"inner": MODEL},
    "llm.caching": lambda: {"path": "cache", "max_bytes": 1000},
    "llm.call_key_scope": lambda: {"key": "a"},
    "llm.innermost": lambda: {"model": MODEL},
    "llm.model_for": lambda: {"purpose": "judge", "override": MODEL},
    "llm.observe": lambda: {"callback": lambda record: None},
    "llm.on_token": lambda: {"callback": lambda request, piece: None},
    "llm.price": lambda: {"model_name": "m", "usage": llm.Usage(), "tier": "a"},
    "llm.record": lambda: {"path": "recording.jsonl"},
    "llm.repeat": lambda: {"index": 1},
    "llm.replay": lambda: {"path": "recording.jsonl"},
    "llm.resolve": lambda: {
        "model": "m", "base_url": "http://localhost:1/v1", "api_key": "k", "api": "chat", "seed": 1,
        "max_in_flight": 2, "requests_per_minute": 9.0, "tokens_per_minute": 9.0, "policy": llm.RetryPolicy(),
        "cache": False, "context": 900, "price": llm.Price(1.0, 1.0), "headers": {"x-a": "b"}, "temperature": 0.5,
    },
    "llm.samples": lambda: {"model": MODEL, "request": REQUEST, "n": 2},
    "llm.set_price": lambda: {"model": "m", "input_per_million": 1.0, "output_per_million": 1.0, "cached": 0.5},
    "nn.ChatCompletion": lambda: {
        "user": "{text}", "system": "a", "model": MODEL, "role": "b", "max_turns": 2, "temperature": 0.5,
    },
    "nn.JSONMatch": lambda: {"any_order": True, "graded": True},
    "nn.Judge": lambda: {
        "instructions": "a", "scale": (0, 1), "success_fn": lambda score: True, "model": MODEL, "eval_mode": True,
        "images": 1,
    },
    "nn.OnMatch": lambda: {"loss": nn.ExactMatch(), "pattern": "a", "default": "b"},
    "nn.Rubric": lambda: {"criteria": ["a"], "model": MODEL, "images": 1},
    "nn.Tool": lambda: {"function": a_tool, "description": "a", "arguments": ["number"]},
    "nn.Metric": lambda: {
        "fn": lambda a, b: 1.0, "purpose": "a", "success_fn": lambda score: True, "scale": (0.0, 1.0)
    },
    "nn.ModuleDict": lambda: {"modules": {"a": program()}},
    "nn.ModuleList": lambda: {"modules": [program()]},
    "nn.OnField": lambda: {"loss": nn.ExactMatch(), "path": ("label",), "default": "a"},
    "nn.Parameter": lambda: {"data": "a", "role": "a", "requires_grad": True},
    "nn.ParameterDict": lambda: {"parameters": {"a": prompt()}},
    "nn.ParameterList": lambda: {"parameters": [prompt()]},
    "nn.TextLoss": lambda: {"instructions": "a", "model": MODEL, "images": 1},
    "nn.Weighted": lambda: {"losses": {"a": nn.ExactMatch()}, "weights": {"a": 1.0}, "targets": {"a": "b"}},
    "ops.add": lambda: {"a": value(), "b": "b"},
    "ops.chat_completion": lambda: {
        "model": MODEL, "messages": [{"role": "user", "content": "{a}"}], "inputs": {"a": "b"}, "role": "a",
        "purpose": "judge", "max_turns": 2, "temperature": 0.5,
    },
    "ops.critic": lambda: {"instructions": "a"},
    "ops.deterministic_evaluator": lambda: {
        "prediction": value(), "eval_fn": lambda a, b: 1.0, "eval_fn_purpose": "a",
        "success_fn": lambda score: True, "reduction_fn": sum, "scale": (0.0, 1.0), "target": "a",
    },
    "ops.exact_match_evaluator": lambda: {"prediction": value(), "reduction_fn": sum, "target": "a"},
    "ops.feedback_batch_size": lambda: {"size": 2},
    "ops.feedback_images": lambda: {"most": 2},
    "ops.field": lambda: {"answer": value(), "path": ("label",), "default": "a"},
    "ops.format": lambda: {"template": "a"},
    "ops.join": lambda: {"values": [value(), "b"], "sep": ","},
    "ops.judge": lambda: {
        "prediction": value(), "instructions": "a", "target": "b", "inputs": {"a": "b"}, "scale": (0, 1),
        "success_fn": lambda score: True, "reduction_fn": sum, "eval_mode": True, "model": MODEL, "images": 1,
    },
    "ops.extract": lambda: {"answer": value(), "pattern": "a", "default": "b"},
    "ops.notes": lambda: {"by_example": {"a": "b"}},
    "ops.rubric": lambda: {
        "prediction": value(), "criteria": ["a"], "target": "b", "inputs": {"a": "b"}, "reduction_fn": sum,
        "model": MODEL, "images": 1,
    },
    "ops.lm_judge_evaluator": lambda: {
        "model": MODEL, "messages": [{"role": "user", "content": "{prediction} {a} {target}"}],
        "prediction": value(), "target": "b",
        "inputs": {"a": "b"}, "scale": (0, 1), "success_fn": lambda score: True, "reduction_fn": sum,
        "eval_mode": True,
    },
    "ops.reduce": lambda: {"feedbacks": ["a", "b"], "max_items": 1, "model": MODEL, "purpose": "backward"},
    "ops.scale": lambda: {"value": tg.Variable(1.0), "factor": 2.0},
    "ops.split": lambda: {"value": value(), "sep": ",", "maxsplit": 1},
    "ops.straight_through": lambda: {"result": "a", "causes": (value(),), "role": "b"},
    "ops.sum": lambda: {"values": [tg.Variable(1.0)]},
    "ops.text_loss": lambda: {
        "prediction": value(), "instructions": "a", "target": "b", "inputs": {"a": "b"}, "model": MODEL, "images": 1
    },
    "ops.unbind": lambda: {"batch": tg.Variable(["a"])},
    "optim.BeamSearch": lambda: searched(
        proposer=proposers.Rewrite(), beam=2, rounds=2, batch_size=2, gradients=2, errors=2, edits=2, paraphrases=1,
        successors=2, selection="ucb", evaluations=2, max_edits=2, **TOKENS,
    ),
    "optim.BootstrapDemos": lambda: {
        "params": [prompt()], "sets": 2, "bootstrapped": 2, "labelled": 2, "least": 0.5, "constraints": ["a"],
        "proposer": proposers.Demonstrations(), "max_tokens": 900, "seed": 1,
    },
    "optim.Forbids": lambda: {"phrases": ["a"], "match_case": True},
    "optim.FrozenLines": lambda: {"lines": ["a"], "between": ("<", ">")},
    "optim.Lacks": lambda: {"pattern": "a", "meaning": "b"},
    "optim.Language": lambda: {"code": "en"},
    "optim.Matches": lambda: {"pattern": "a", "full": True, "meaning": "b"},
    "optim.MaxCharacters": lambda: {"limit": 9},
    "optim.MaxTokens": lambda: {"limit": 9},
    "optim.NoCopying": lambda: {"examples": ["a b c"], "n": 2, "target": "a", "shortest": 2},
    "optim.OPRO": lambda: searched(
        rounds=2, per_round=2, shown=2, examples=2, score_on="val", sample=2, max_tokens=900, max_feedback_tokens=900
    ),
    "optim.Optimizer": lambda: {"params": [prompt()], "defaults": {}},
    "optim.ParetoSearch": lambda: searched(
        proposer=proposers.Rewrite(), batch_size=2, proposals=2, merges=2, frontier="hybrid", max_edits=2,
        feedback_batch_size=2, **TOKENS,
    ),
    "optim.PatchSearch": lambda: searched(
        lanes=2, batch_size=2, max_edits=2, momentum=2, feedback_batch_size=2, proposer=proposers.Patch(), pool=2,
        allowance=2, most_tries=2, ablate_every=2, **TOKENS,
    ),
    "optim.Placeholders": lambda: {"kept": ["a"]},
    "optim.RandomEdits": lambda: {"seed": 1, "edits": 2},
    "optim.RandomSearch": lambda: searched(
        proposer=optim.RandomEdits(), proposals=2, max_edits=2, momentum=2, max_tokens=900, allowance=2
    ),
    "optim.Requires": lambda: {"phrases": ["a"], "match_case": True},
    "optim.TGD": lambda: {
        "params": [prompt()], "model": MODEL, "constraints": ["a"], "momentum": 2, "mode": "rewrite", "max_edits": 2,
        "use_feedback": True, "examples": ["a"], "proposer": proposers.Patch(), "candidates": 2, **TOKENS,
    },
    "optim.Wish": lambda: {"text": "a"},
    "optim.Range": lambda: {"low": 1, "high": 3.5, "usual": 2},
    "optim.Volume": lambda: {
        "decisions": optim.Range(), "examples": optim.Range(), "feedback": optim.Range(), "asked": optim.Range(),
        "shared": 2, "waits": (optim.Range(),) * 3, "growth": optim.Range(), "told": optim.Range(), "rewrites": False,
        "assumed": "ten rounds",
    },
    "optim.proposers.Crossover": lambda: {"max_edits": 2},
    "optim.proposers.Demonstrations": lambda: {"k": 2, "select": "nearest"},
    "optim.proposers.Patch": lambda: {"max_edits": 2},
    "optim.proposers.Several": lambda: {"proposer": proposers.Patch(), "n": 2},
    "optim.schedules.ConstantEdits": lambda: {"optimizer": tgd(), "edits": 2},
    "optim.schedules.CosineEdits": lambda: {"optimizer": tgd(), "start": 2, "end": 2, "steps": 2},
    "optim.schedules.LinearEdits": lambda: {"optimizer": tgd(), "start": 2, "end": 2, "steps": 2},
    "optim.schedules.StepEdits": lambda: {"optimizer": tgd(), "start": 2, "every": 2, "factor": 0.5},
    "optim.transforms.cap": lambda: {"max_tokens": 9},
    "optim.transforms.cluster": lambda: {"threshold": 0.5, "n": 2},
    "optim.transforms.momentum": lambda: {"window": 2},
    "optim.transforms.summarise": lambda: {"max_items": 2},
    "testing.Fault": lambda: {"status": 500, "headers": {"a": "b"}, "delay": 1.0, "drop": True, "drip": 1.0},
    "testing.FunctionModel": lambda: {"fn": lambda request: "a", "name": "m", "latency": 1.0},
    "testing.LoopbackServer": lambda: {
        "model": MODEL, "latency": 1.0, "script": [None], "api_key": "k", "faults": lambda number: None
    },
    "testing.ScriptedModel": lambda: {"answers": ["a"], "name": "m"},
    "testing.feedback_for": lambda: {"request": CRITICISM, "said": "Be brief."},
    "testing.pixels_of": lambda: {"part": data.image_part(testing.png([[(1, 2, 3)]]))},
    "testing.png": lambda: {"pixels": [[(1, 2, 3)]]},
    "testing.simulated_task": lambda: {
        "rules": 4, "noise": 0.1, "distractors": 2, "interactions": 0, "seed": 1, "train": 4, "val": 4, "test": 4,
        "flat": True, "critic": 0.5, "sloppiness": 0.5, "parameters": 1,
    },
    "train.Guards": lambda: {"never_break": ("a",), "floors": {("a", "b"): 0.5}},
    "train.Objective": lambda: trained() | {
        "train": ROWS, "val": ROWS, "parameters": None, "guards": None, "clusters": "text", "tokens_weight": 0.1,
        "latency_weight": 0.1,
    },
    "train.shrink": lambda: trained() | {
        "val": ROWS, "parameters": None, "contracts": (), "guards": None, "clusters": "text", "doubt": 0.7,
        "allowance": 2, "max_tries": 2, "lanes": 2, "seed": 1, "on_score": lambda position: None,
    },
}  # fmt: skip
"""Right arguments of each; every one of them is replaced by wrong ones."""


RESULTS = {
    "Comparison", "CrossValidation", "Evaluation", "TrainResult", "autograd.AccumulateGrad", "autograd.FunctionNode",
    "autograd.GradientEdge", "autograd.Source", "data.Overlap", "func.TraceRecord", "func.VmapInfo", "llm.CallRecord",
    "llm.Remaining", "optim.Change", "optim.Decision", "optim.Edit", "optim.Evidence", "optim.Origin",
    "optim.Sizes", "testing.SimulatedTask", "train.Control", "train.Controls", "train.Doubtful",
    "train.FrontPoint", "train.ShrinkResult", "train.Standing",
}  # fmt: skip
"""What the library makes itself, and what is made for each call."""

TWINS = {
    "abackward", "across_validate", "aevaluate", "autograd.agrad", "autograd.agradcheck", "func.agrad",
    "func.agrad_and_value", "func.ahessian", "func.ajacrev", "func.apmap", "func.avjp", "func.avmap", "ops.areduce",
    "train.ashrink",
}  # fmt: skip
"""They hand on what they are given."""

BASES = {
    "Function", "autograd.Context", "autograd.Layer", "autograd.Node", "data.Example", "data.Examples",
    "llm.FinishReason", "llm.Model", "llm.Purpose", "nn.ExactMatch", "nn.Sequential", "optim.Contract",
    "optim.Objective", "optim.Searcher", "train.Callback", "train.StopTraining", "enable_grad", "no_grad",
}  # fmt: skip
"""Types, and what takes no argument but modules or functions (tested where they are)."""

READ_AS_JSON = {"llm.Completion", "llm.GenerateConfig", "llm.Message", "llm.Request", "llm.ResponseFormat", "llm.Usage"}
"""Records that are read back from files, where a number may stand as a text."""

RIGHT_TOO: dict[tuple[str, str], tuple[Any, ...]] = {
    **{(f"func.{name}", "argnums"): ([3],) for name in ("grad", "grad_and_value", "hessian", "jacfwd", "jacrev")},
    **{(f"ops.{name}", "prediction"): (3, "text") for name in (
        "deterministic_evaluator", "exact_match_evaluator", "judge", "rubric", "text_loss", "lm_judge_evaluator"
    )},
    ("ops.lm_judge_evaluator", "target"): (3.5,), ("ops.add", "a"): ("text", 3), ("ops.scale", "value"): (3,),
    ("llm.resolve", "cache"): ("yes",),
}  # fmt: skip
"""What looks wrong and is right: several numbers, a text to score, a folder."""

WRITTEN_OUT = {("ops.judge", "target"), ("ops.rubric", "target"), ("ops.text_loss", "target")}
"""Whatever it is, a judge is shown it in words."""

AWAITED = {("autograd.once_differentiable", "backward"), ("testing.FunctionModel", "fn")}
"""Functions that may be coroutine functions."""

WORDS = {
    "answer": "a (field|part) of a Variable", "eval_fn_purpose": "purpose", "grad_outputs": "gradient",
    "grad_variables": "a gradient", "inputs": "inputs|GradientEdges|wants feedback", "kept": "names of slots",
    "module": "nn.Module", "outputs": "begins at a Variable", "overrides": "a mapping of names",
    "override": "the name of a model", "prediction": "this loss scores one Variable", "sep": "sep|a value is",
    "template": "a value is a text", "value": "value|a number is scaled|takes a text", "values": "takes a list|values",
    "variables": "variables|begins at a Variable",
}  # fmt: skip
"""What is said of some arguments instead of their names."""


class Unlike:
    """Of no kind that anything is meant to be."""


class Named(enum.StrEnum):
    """Texts by name."""

    A = "target"
    B = "rewrite"


def numpy_like(number: int) -> Any:
    """A whole number of another library."""

    @numbers.Integral.register
    class Whole:
        def __index__(self) -> int:
            return number

        def __lt__(self, other: Any) -> bool:
            return number < other

        def __ge__(self, other: Any) -> bool:
            return number >= other

        def __le__(self, other: Any) -> bool:
            return number <= other

    return Whole()


async def coroutine_function(*args: Any) -> Any:
    return args


FUNCTIONS = {"Listener", "Reduction", "Rule", "Success"}
"""Names of types of functions; a class may be one, as it can be called."""


def wrong_for(annotation: str, right: Any) -> list[Any]:
    """Values that cannot be meant where a right one has this annotation."""
    if annotation == "Any":
        return []
    words = annotation.replace("|", " ").split()
    found: list[Any] = [Unlike(), *([] if "Callable" in annotation or FUNCTIONS & {*words} else [Unlike])]
    if isinstance(right, bool):
        found += ["yes", 2, *([] if "None" in words else [None])]
    elif isinstance(right, int) and "float" not in words:
        found += [2.5, math.nan, True, [3], coroutine_function, *([] if "str" in words else ["3"])]
    elif isinstance(right, int | float):
        found += [math.nan, True, [0.5], *([] if "str" in words else ["hot"])]
    elif isinstance(right, str):
        found += [3 if "bytes" in words else b"a", *([] if "float" in words or "Value" in words else [3.5]), len]
    elif callable(right) and not isinstance(right, nn.Module):
        found += [3, "text", *([] if "Any" in annotation or "Reduction" in words else [coroutine_function])]
    elif isinstance(right, list | tuple | dict):
        found += [3, *([] if "Callable" in annotation else [len])]
    else:
        found += [3, *([] if "str" in annotation else ["text"])]
    return found


def public(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = attrgetter(name)(tg)
    return found


def call(name: str, given: Right) -> None:
    """Call it, go into a block, and wait for what it gives."""
    function, given = public(name), dict(given)
    parameters = list(inspect.signature(function).parameters.values())
    several = next((n for n, each in enumerate(parameters) if each.kind is each.VAR_POSITIONAL), -1)
    places = [each.name for n, each in enumerate(parameters) if n < several or each.kind is each.POSITIONAL_ONLY]
    values = [given.pop(place) for place in places if place in given]
    values += given.pop(parameters[several].name, ()) if several >= 0 else ()
    result = function(*values, **given)
    if inspect.iscoroutine(result):
        asyncio.run(result)
    elif isinstance(result, contextlib.AbstractContextManager) and not isinstance(function, type):
        with result:
            pass
    for each in result if isinstance(result, tuple | list) else [result]:
        if isinstance(each, tg.Variable):
            each.data  # noqa: B018  what is computed later says it there


def wrong_cases(name: str) -> Iterator[tuple[str, Any]]:
    """Each argument with each wrong value."""
    parameters = inspect.signature(public(name)).parameters
    for argument, right in RIGHT[name]().items():
        if argument in parameters and parameters[argument].kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        annotation = str(parameters[argument].annotation) if argument in parameters else "float | None"
        for wrong in () if (name, argument) in WRITTEN_OUT else wrong_for(annotation, right):
            lax = name in READ_AS_JSON and isinstance(wrong, str | bytes | bool | float)
            awaited = wrong is coroutine_function and (name, argument) in AWAITED
            if (
                not lax
                and not awaited
                and not any(wrong is each or wrong == each for each in RIGHT_TOO.get((name, argument), ()))
            ):
                yield argument, wrong


def complaint(name: str, argument: str, wrong: Any) -> str:
    """What is not as it should be about how a wrong argument is refused; "" where all is well."""
    shown = f"{argument}={getattr(wrong, '__name__', None) or repr(wrong)}"
    try:
        call(name, RIGHT[name]() | {argument: wrong})
    except (TypeError, ValueError, errors.TextgradError) as error:
        said = str(error)
        return "" if re.search(WORDS.get(argument, argument), said) else f"{shown} is not named: {said:.200}"
    except Exception as error:
        return f"{shown}: {error!r:.200}"
    return f"{shown} is taken"


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_one_wrong_argument_is_refused_by_its_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked or written, in words."""
    monkeypatch.chdir(tmp_path)
    found = [complaint(name, argument, wrong) for argument, wrong in wrong_cases(name)]
    assert not [each for each in found if each]


@pytest.mark.parametrize("part", PARTS)
def test_everything_public_is_in_the_table(part: str) -> None:
    """What is new has to be put there."""
    module = importlib.import_module(f"textgrad_engine.{part}".rstrip("."))
    other = {*RIGHT, *RESULTS, *TWINS, *BASES}
    for name in module.__all__:
        found, place = getattr(module, name), f"{part}.{name}".lstrip(".")
        if callable(found) and place not in other and getattr(tg, name, None) is not found:
            assert not inspect.signature(found).parameters, f"{place} has arguments, and no right ones are stated here"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("Trainer", {"max_epochs": numpy_like(2), "tokens_weight": Fraction(1, 2), "run_dir": PurePath("run")}),
        ("Trainer", {"callbacks": iter([Mock(spec=["on_event"])]), "target": Named.A}),
        ("budget", {"tokens": 1e6, "calls": 3.0, "dollars": Decimal("0.5")}),
        ("data.random_split", {"fractions": (each for each in (0.5, 0.5)), "together": {"text": 1}.keys()}),
        ("data.DataLoader", {"batch_size": numpy_like(2)}),
        ("func.grad", {"argnums": numpy_like(0)}),
        ("func.jacrev", {"argnums": range(1)}),
        ("func.pmap", {"concurrency": numpy_like(2)}),
        ("func.vmap", {"chunk_size": numpy_like(2), "names": (each for each in "a")}),
        ("llm.Metered", {"inner": Mock(spec=["name", "complete"])}),
        ("llm.observe", {"callback": Mock()}),
        ("optim.Requires", {"phrases": (each for each in ("a", "b"))}),
        ("optim.TGD", {"params": (each for each in [prompt()]), "constraints": {"Be brief."}, "mode": Named.B}),
        ("testing.FunctionModel", {"fn": functools.partial(max, "a")}),
        ("testing.Fault", {"delay": math.inf}),
    ],
)
def test_what_is_right_is_taken(name: str, change: Right, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of other libraries, enums of texts, paths, generators, stand-ins."""
    monkeypatch.chdir(tmp_path)
    call(name, RIGHT[name]() | change)


def test_a_generator_is_not_used_up_by_its_check() -> None:
    """What it gives is kept."""
    assert optim.Requires(each for each in ("a", "b")).phrases == ("a", "b")


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"max_epochs": "3"}, TypeError, "Trainer: max_epochs must be a whole number, got '3'; write 3"),
        ({"max_epochs": 2.0}, TypeError, "Trainer: max_epochs must be a whole number, got 2.0; write 2"),
        ({"max_epochs": 0}, ValueError, "Trainer: max_epochs must be at least 1, got 0"),
        ({"tokens_weight": math.nan}, ValueError, "Trainer: tokens_weight must be a number, got nan"),
        ({"controls": "true"}, TypeError, "Trainer: controls must be True or False, got 'true'; write True"),
        ({"guards": train.Guards}, TypeError, "the class Guards; give an instance of it: Guards(...)"),
        ({"target": ["a"]}, TypeError, "Trainer: target must be a text, got the list ['a']"),
    ],
)
def test_the_message_names_what_was_wrong_and_the_repair(wrong: Right, error: type[Exception], says: str) -> None:
    """Which argument of what, what was expected, what came, what to write."""
    with pytest.raises(error) as caught:
        tg.Trainer(**wrong)
    assert says in str(caught.value)


@pytest.mark.parametrize("make", [tg.Trainer, lambda seed: optim.PatchSearch([prompt()], seed=seed)])
def test_a_seed_of_another_library_is_kept_as_a_plain_number(make: Callable[..., Any]) -> None:
    """The generators of `random` take no other."""
    assert type(make(seed=numpy_like(3)).seed) is int


def test_a_subclass_hands_on_its_arguments() -> None:
    """By `super().__init__`, and the error names the class that takes them."""

    class Mine(tg.Trainer):
        def __init__(self, epochs: int) -> None:
            super().__init__(max_epochs=epochs)

    assert Mine(2).max_epochs == 2
    with pytest.raises(TypeError, match=r"^Trainer: max_epochs must be a whole number, got None"):
        Mine(None)  # type: ignore[arg-type]
