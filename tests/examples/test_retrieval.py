from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.testing import FunctionModel

SCRIPT = Path(__file__).parents[2] / "examples" / "retrieval.py"


def test_both_prompts_are_trained(run: Callable[[], str]) -> None:
    """Run as a user runs it: a lesson in each prompt, the verdict, and that it is simulated."""
    writer, reader = run().split("reader.system:")
    assert "Give the name of the town in small letters, then river or population." in writer
    assert "Answer with the fact alone." in reader
    assert "val 0.000 -> 1.000; test 0.000 -> 1.000; better" in reader
    assert "A simulated model answered" in reader


def test_a_search_finds_both_too(example: dict[str, Any]) -> None:
    """The program is one like any other."""
    program = example["Answers"]()
    rows = example["ROWS"]
    with tg.use_models(forward=FunctionModel(example["simulated"])):
        metric = nn.Metric(example["score"], "the fact alone")
        result = tg.Trainer().fit(program, metric, optim.PatchSearch(program.parameters()), rows[:24], rows[24:])
    assert result.best_val.mean == 1


def test_the_writer_is_told_what_its_query_found(example: dict[str, Any]) -> None:
    """Without the join its prompt would hear nothing."""
    model = FunctionModel(example["simulated"])
    with tg.use_models(forward=model):
        program = example["Answers"]()
        row = example["ROWS"][0]
        answer = program(question=row["question"])
        nn.Metric(example["score"], "the fact alone")(answer, row["target"]).backward()
    assert len(program.writer.system.grad) == 1
    shown = [request.messages[-1].text for request in model.requests if request.purpose == "backward"]
    assert "Code of the program came from this text to the text that the search found:" in shown[-1]
    assert "(nothing was found)" in shown[-1]
