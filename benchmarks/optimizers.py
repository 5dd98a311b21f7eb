"""Every optimizer on simulated tasks whose optimum is known, over HTTP: score, calls, tokens, wall time.

    python benchmarks/optimizers.py [--seeds 10] [--tasks additive interacting] [--only PatchSearch gepa]

Each run has an endpoint of its own in another process (`testing.LoopbackServer` with `testing.simulated_task`) that
answers after 200 ms and counts what it is asked. Each optimizer sees the same training and validation examples and the
same feedback: the expected answer. The score is that of the final prompt on the test set, expected over the slips of
the simulation and measured; it is computed here and costs no calls. GEPA, TextGrad, DSPy, AdalFlow and Trace are run
if this interpreter has them, or another one (`--others PATH`). The last two of ours are controls: without feedback.

The first table has medians over the seeds, the second how far everybody is with the same tokens and in the same time,
the third what `PatchSearch` needed as a part of what TextGrad did. The picture (SVG), all runs (JSON) and what of them
the tables need (`results.json`) go to the folder `--out`, and `--beside` takes such files in again. Time is told in
answers, of 200 ms each: wall time, or with `--virtual` the wait alone, which any load of the machine leaves as it is.
The model is a simulation: the figures compare optimizers on these tasks, and say nothing about real models.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proving.endpoint import Call, Noting, endpoint
from proving.picture import picture
from proving.results import Point, Run, common, dumped, equal_spend, line, loaded, table
from proving.virtual import Clock, virtual_time

import textgrad_engine as tg
from textgrad_engine import dispatch, llm, optim
from textgrad_engine.llm import Message, Request
from textgrad_engine.optim import Optimizer
from textgrad_engine.optim.proposers import Rewrite
from textgrad_engine.testing import SimulatedTask, simulated_task
from textgrad_engine.train.events import Event, StepEnded

OTHERS = Path(__file__).parent / "proving" / "others.py"
WIDTH = 32
"""How many examples the others run at once; more made neither GEPA nor TextGrad faster."""

TASKS: dict[str, dict[str, Any]] = {
    "additive": {"interactions": 0},
    "interacting": {"interactions": 6},
    "hard": {
        "rules": 16,
        "interactions": 8,
        "distractors": 6,
        "noise": 0.06,
        "critic": 0.7,
        "sloppiness": 0.2,
    },
    "unsteady": {"interactions": 6, "noise": 0.3},
    "careful": {"interactions": 6, "sloppiness": 0.0},
    "flat": {"flat": True},
}
"""Settings of `simulated_task`; ``hard`` is the interacting one with a critic and a proposer that are often wrong,
``unsteady`` with answers of which another wording of the prompt changes one in four or five, as with a small real model
(docs/experiments.md, "On a real model"), and ``careful`` with a proposer that never does anything silly."""


@dataclass(frozen=True)
class Entry:
    """An optimizer of this library in the benchmark.

    Attributes:
        make: makes it, from the parameters and the seed.
        trainer: settings of the `Trainer`.
    """

    make: Callable[[Iterable[Any], int], Optimizer]
    trainer: dict[str, Any] = field(default_factory=dict)


_STEPS = {"max_epochs": 100, "batch_size": 16, "feedback_batch_size": 8, "patience": 12}

OPTIMIZERS: dict[str, Entry] = {
    "PatchSearch": Entry(lambda params, seed: optim.PatchSearch(params, seed=seed)),
    "PatchSearch, a case a request": Entry(
        lambda params, seed: optim.PatchSearch(params, feedback_batch_size=1, seed=seed)
    ),
    "PatchSearch, no critic": Entry(lambda params, seed: optim.PatchSearch(params, seed=seed), {"critic": False}),
    "TGD": Entry(lambda params, seed: optim.TGD(params, momentum=4, max_edits=12), _STEPS),
    "ParetoSearch": Entry(lambda params, seed: optim.ParetoSearch(params, seed=seed)),
    "ParetoSearch, batches of 16": Entry(lambda params, seed: optim.ParetoSearch(params, batch_size=16, seed=seed)),
    "ParetoSearch, no critic": Entry(
        lambda params, seed: optim.ParetoSearch(params, batch_size=16, seed=seed), {"critic": False}
    ),
    "BeamSearch": Entry(lambda params, seed: optim.BeamSearch(params, seed=seed)),
    "OPRO": Entry(lambda params, seed: optim.OPRO(params, seed=seed)),
    "rewrites, no feedback": Entry(lambda params, seed: optim.RandomSearch(params, Rewrite(), seed=seed)),
    "random edits": Entry(lambda params, seed: optim.RandomSearch(params, optim.RandomEdits(seed), seed=seed)),
}
"""Another optimizer is another line."""

FLAGSHIP = "PatchSearch"
"""What the others are put beside."""

BESIDE = ("textgrad", "textgrad, batches of 3")
"""What it is compared with seed by seed."""


@dataclass(frozen=True)
class Other:
    """Another system in the benchmark.

    Attributes:
        system: its name in ``proving/others.py``.
        package: what must be importable for it.
        batch: examples a step.
        named: whether it is run only where it is named.
    """

    system: str
    package: str
    batch: int
    named: bool = False


OTHERS_SETTINGS: dict[str, Other] = {
    "gepa": Other("gepa", "gepa", 16),
    "textgrad": Other("textgrad", "textgrad", 16),
    "gepa, batches of 3": Other("gepa", "gepa", 3),
    "textgrad, batches of 3": Other("textgrad", "textgrad", 3),
    "dspy.GEPA": Other("dspy-gepa", "dspy", 16),
    "dspy.GEPA, batches of 3": Other("dspy-gepa", "dspy", 3),
    "dspy.MIPROv2": Other("dspy-miprov2", "dspy", 35),
    "adalflow": Other("adalflow", "adalflow", 4),
    "trace OptoPrime": Other("trace-optoprime", "opto", 16),
    "trace OptoPrime, batches of 3": Other("trace-optoprime", "opto", 3),
    "gepa, batches of 48": Other("gepa", "gepa", 48, named=True),
    "textgrad, batches of 48": Other("textgrad", "textgrad", 48, named=True),
    "trace OptoPrime, batches of 48": Other("trace-optoprime", "opto", 48, named=True),
}
"""16 is the best of 3, 8 and 16 for GEPA and TextGrad, on other seeds; `PatchSearch` takes 48. The other numbers are
the authors'."""

INSTALLED_AS = {"opto": "trace-opt", "dspy": "dspy[optuna]"}
"""What pip calls a package, where that is another name or needs more."""


@dataclass
class Track:
    """What an optimizer told of its way: when which prompt was its best, from `began` to `ended`."""

    began: float
    best: list[tuple[float, str]]
    ended: float = 0.0


def run_own(entry: Entry, task: SimulatedTask, url: str, seed: int, calls: int) -> Track:
    """Train with an optimizer of this library."""
    model = llm.resolve("parcels", base_url=url, api_key="none")
    hello = Request(messages=(Message(role="user", content="hello"),))
    dispatch.run(lambda: model.complete(hello))  # what is loaded with the first call belongs to no optimizer
    track = train(entry, task, model, seed, calls, time.time)
    dispatch.run(llm.innermost(model).aclose)  # type: ignore[attr-defined]
    return track


def train(
    entry: Entry, task: SimulatedTask, model: llm.Model, seed: int, calls: int, now: Callable[[], float]
) -> Track:
    """Train with an optimizer of this library and any model."""
    program = task.program()
    track = Track(now(), [])

    class Watch:
        def on_event(self, event: Event) -> None:
            if isinstance(event, StepEnded) and event.kept:
                track.best.append((now(), str(program.system.data)))

    trainer = tg.Trainer(seed=seed, callbacks=[Watch()], **entry.trainer)
    with tg.use_models(forward=model), tg.budget(calls=calls):
        result = trainer.fit(program, task.loss, entry.make(program.parameters(), seed), task.train, task.val)
    track.ended = now()
    track.best.append((track.ended, result.best["system"]))
    return track


def run_other(name: str, python: str, task: SimulatedTask, url: str, seed: int, calls: int) -> Track:
    """Train with another system, in a process of its own."""
    job = {"base_url": url, "prompt": task.seed_prompt, "train": task.train, "val": task.val}
    other = OTHERS_SETTINGS[name]
    asked = json.dumps(job | {"seed": seed, "calls": calls, "width": WIDTH, "batch": other.batch})
    done = subprocess.run([python, str(OTHERS), other.system], input=asked, capture_output=True, text=True, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not told or "done" not in told[-1]:
        raise SystemExit(f"{name} failed on seed {seed}:\n{done.stderr[-2000:]}")
    return Track(
        told[0]["began"], [(line["at"], line["prompt"]) for line in told if "prompt" in line], told[-1]["done"]
    )


def run(name: str, python: str, task_name: str, seed: int, calls: int, latency: float, clock: Clock | None) -> Run:
    """One optimizer on one task, and what it came to."""
    settings = {**TASKS[task_name], "seed": seed}
    task = simulated_task(**settings)
    if clock is not None:
        now = lambda: clock.now  # noqa: E731
        noting = Noting(task.model, latency, now)
        track = train(OPTIMIZERS[name], task, noting, seed, calls, now)
        return replace(_run_of(name, task_name, seed, task, track, noting.calls), latency=latency, virtual=True)
    with endpoint(settings, latency) as served:
        if name in OPTIMIZERS:
            track = run_own(OPTIMIZERS[name], task, served.base_url, seed, calls)
        else:
            track = run_other(name, python, task, served.base_url, seed, calls)
        return replace(_run_of(name, task_name, seed, task, track, served.calls()), latency=latency)


def _run_of(name: str, task_name: str, seed: int, task: SimulatedTask, track: Track, asked: Sequence[Call]) -> Run:
    calls = [call for call in asked if track.began <= call.at <= track.ended]
    points = [Point(0, 0.0, task.expected(task.seed_prompt), 0.0)]
    for at, prompt in track.best:
        tokens = sum(call.tokens for call in calls if call.at <= at)
        points.append(Point(tokens, at - track.began, task.expected(prompt), task.progress(prompt)))
    final = track.best[-1][1]
    right = sum(task.model.task.answer(final, row["parcel"]) == row["target"] for row in task.test)
    return Run(
        task=task_name,
        seed=seed,
        optimizer=name,
        prompt=final,
        expected=task.expected(final),
        measured=right / len(task.test),
        way=task.progress(final),
        optimum=task.optimum,
        calls=dict(Counter(call.purpose for call in calls)),
        tokens=sum(call.tokens for call in calls),
        seconds=track.ended - track.began,
        points=tuple(points),
        load=os.getloadavg()[0],
    )


def _installed(name: str, python: str) -> bool:
    asked = f"import importlib.util; exit(importlib.util.find_spec({name!r}) is None)"
    return subprocess.run([python, "-c", asked], capture_output=True, check=False).returncode == 0


def tables(runs: Sequence[Run], task_name: str) -> list[str]:
    """What is to be said of the runs on a task: tables in Markdown."""
    found = [table(common(runs, task_name), task_name), equal_spend(common(runs, task_name), task_name)]
    names = {one.optimizer for one in runs if one.task == task_name}
    beside = [name for name in BESIDE if name in names] if FLAGSHIP in names else []
    return found + [line(runs, task_name, FLAGSHIP, name) for name in beside]


def drawn(runs: Sequence[Run]) -> str:
    """The picture of the runs, as SVG."""
    shared = [one for task_name in dict.fromkeys(one.task for one in runs) for one in common(runs, task_name)]
    return picture(shared, own=list(OPTIMIZERS), strong=FLAGSHIP)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for, print the tables, write the picture and the runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["additive", "interacting", "hard"])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these optimizers; all by default")
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that every answer takes")
    parser.add_argument(
        "--virtual",
        action="store_true",
        help="ours alone, without HTTP, on a clock that only counts the wait for answers; any load of the machine",
    )
    parser.add_argument("--calls", type=int, default=1500, help="calls of an optimizer at most; examples of the others")
    parser.add_argument(
        "--others",
        default=sys.executable,
        metavar="PATH",
        help="the Python that has gepa, textgrad, dspy, adalflow or trace-opt",
    )
    parser.add_argument(
        "--beside",
        type=Path,
        nargs="+",
        default=[],
        metavar="RUNS.JSON",
        help="runs of another time, for tables and picture; with --seeds 0 there are no others",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("proving-ground"), help="folder for runs.json, results.json and picture.svg"
    )
    options = parser.parse_args(arguments)
    if shutil.which(options.others) is None:
        parser.error(f"--others {options.others}: there is no such program")
    for name in options.only or ():
        if options.virtual and name in OTHERS_SETTINGS:
            parser.error(f"--virtual runs ours alone, without HTTP, and {name} is not ours; leave one of them out")
    for path in options.beside:
        if not path.is_file():
            parser.error(f"--beside {path}: there is no such file")
    try:
        clock = virtual_time() if options.virtual else None
    except OSError:
        parser.error("--virtual reads from Linux what threads do, and this is none; leave it out")
    there = {
        other.package
        for other in OTHERS_SETTINGS.values()
        if not options.virtual and _installed(other.package, options.others)
    }
    names = [*OPTIMIZERS, *(name for name, other in OTHERS_SETTINGS.items() if other.package in there)]
    usual = [name for name in names if name in OPTIMIZERS or not OTHERS_SETTINGS[name].named]
    for name in options.only or ():
        if name in OTHERS_SETTINGS and name not in names:
            needed = OTHERS_SETTINGS[name].package
            needed = INSTALLED_AS.get(needed, needed)
            parser.error(
                f"{name} needs {needed!r}, which {options.others} has not; name a Python that has it: --others"
            )
        if name not in names:
            parser.error(f"there is no {name!r}; there are {', '.join([*OPTIMIZERS, *OTHERS_SETTINGS])}")
    runs = list({(one.task, one.optimizer, one.seed): one for path in options.beside for one in loaded(path)}.values())
    options.out.mkdir(parents=True, exist_ok=True)
    for task_name in options.tasks:
        for seed in range(options.first, options.first + options.seeds):
            for name in options.only or usual:
                made = run(name, options.others, task_name, seed, options.calls, options.latency, clock)
                runs = [one for one in runs if (one.task, one.optimizer, one.seed) != (task_name, name, seed)] + [made]
                (options.out / "runs.json").write_text(dumped(runs), encoding="utf-8")
                print(
                    f"{task_name} {seed} {name}: way {made.way:.0%}, {sum(made.calls.values())} calls, "
                    f"{made.tokens:,} tokens, {made.seconds:.1f} s",
                    file=sys.stderr,
                )
        for made_of_it in tables(runs, task_name):
            print(made_of_it, end="\n\n")
    (options.out / "results.json").write_text(dumped(runs, prompts=False), encoding="utf-8")
    (options.out / "picture.svg").write_text(drawn(runs), encoding="utf-8")


if __name__ == "__main__":
    main()
