"""docs/ci.md: the scripts of its workflows do what the page says, run as a runner runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.testing import LoopbackServer

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
PROMPT = """\
You sort the support mail of Quillmoss. Read the ticket and choose its queue:
billing, shipping, returns, account, technical or trust.
Answer with the name of the queue and nothing else.
"""
CONFIG = """
[program]
system_file = "prompt.txt"
user = "{ticket}"
[data]
train = "train.jsonl"
val = "val.jsonl"
test = "test.jsonl"
target = "queue"
[models]
forward = "simulated/tickets"
[train]
max_steps = 3
batch_size = 32
"""


def script(step: str) -> str:
    """What a step of a workflow runs."""
    found = re.search(rf"- name: {step}\n(?:        if: .*\n)?        run: \|\n((?: {{10}}.*\n)+)", PAGE)
    assert found is not None
    return textwrap.dedent(found[1])


@pytest.fixture
def runs(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a step in a checkout, beside which is one of before the change."""
    for name in ("checkout", "before"):
        folder = tmp_path / name / "triage"
        folder.mkdir(parents=True)
        for split in ("train", "val", "test"):
            shutil.copy(ROOT / f"examples/tickets/{split}.jsonl", folder)
        (folder / "prompt.txt").write_text(PROMPT, encoding="utf-8")
        (folder / "config.toml").write_text(CONFIG, encoding="utf-8")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "textgrad-engine").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m textgrad_engine "$@"\n')
    (programs / "textgrad-engine").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TEXTGRAD_CACHE_DIR": str(tmp_path / "answers"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }

    def run(step: str, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", *(options or ["-e"]), "-c", script(step)],  # as GitHub's runner does
            cwd=tmp_path / "checkout",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="GitHub's runners have it")


@pytest.mark.parametrize(
    ("prompt", "code", "told"),
    [
        (PROMPT, 0, "is the same, so there is nothing to compare"),
        (PROMPT + "If a ticket is about gift cards, choose account.\n", 0, "better"),
        ("Answer with a queue.\n", 4, "worse"),
    ],
)
def test_a_pull_request_fails_where_its_prompt_is_worse(
    runs: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, prompt: str, code: int, told: str
) -> None:
    """The summary says why."""
    (tmp_path / "checkout/triage/prompt.txt").write_text(prompt, encoding="utf-8")
    done = runs("Compare the prompts")
    assert done.returncode == code, done.stderr
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("```\n")
    assert summary.endswith("```\n")
    assert told in summary
    assert told in done.stdout


@pytest.mark.parametrize("options", [("-e",), ("-eo", "pipefail")], ids=["no shell named", "shell: bash"])
def test_what_compare_says_on_the_way_is_in_the_log_at_once_and_in_the_summary(
    runs: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Each once, and before the report; the step ends with its exit code by either shell of the runners."""
    (tmp_path / "checkout/triage/prompt.txt").write_text("Answer with a queue.\n", encoding="utf-8")
    done = runs("Compare the prompts", *options)
    assert done.returncode == 4
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    log = (tmp_path / "checkout/log.txt").read_text(encoding="utf-8")
    assert "worse than the prompt of" in log
    assert done.stdout == log + (tmp_path / "checkout/told.txt").read_text(encoding="utf-8")
    assert summary.count(log) == 1


def test_a_pull_request_does_not_pay_for_the_prompt_that_the_main_branch_has_paid_for(
    runs: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """The main branch asks about the examples that pull requests compare on, and keeps the answers."""
    with LoopbackServer(TicketsModel(seed=0)) as server:
        price = "prices = { small = { input = 1, output = 1 } }"
        models = f'forward = "small"\nbase_url = "{server.base_url}"\n{price}\n'
        for name in ("checkout", "before"):
            config = tmp_path / name / "triage/config.toml"
            config.write_text(CONFIG.replace('forward = "simulated/tickets"\n', models), encoding="utf-8")
        done = runs("Keep the answers of the new prompt")
        assert (done.returncode, server.requests) == (0, 87), done.stderr
        (tmp_path / "checkout/triage/prompt.txt").write_text(PROMPT + "Be quick.\n", encoding="utf-8")
        done = runs("Compare the prompts")
        assert (done.returncode, server.requests) == (0, 2 * 87), done.stderr


@pytest.mark.skipif(shutil.which("patch") is None, reason="the step patches a file")
def test_a_prompt_that_was_shown_to_be_better_is_put_in_its_place(
    runs: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """By the patch that `diff` prints; the run folder is there to be uploaded."""
    done = runs("Train")
    assert done.returncode == 0, done.stderr
    checkout = tmp_path / "checkout"
    now, best = ((checkout / name).read_text().strip() for name in ("triage/prompt.txt", "run/best_prompt.txt"))
    assert now == best != PROMPT.strip()
    assert (checkout / "run/report.html").is_file()
    assert "better:" in (tmp_path / "summary.md").read_text()
