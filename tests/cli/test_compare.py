"""``textgrad-engine compare``: prompts and models on the same examples, each beside the first."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
import shutil
import signal
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from textgrad_engine.cli import progress
from textgrad_engine.cli.comparing import Result, beside_the_first, ended_early
from textgrad_engine.errors import BadRequest, RunError, Stopped
from textgrad_engine.llm import Completion, Request, Wrapper
from textgrad_engine.llm.money import money
from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.report import scoring
from textgrad_engine.testing import LoopbackServer
from textgrad_engine.train import Evaluation, compare, interrupt

from .conftest import TICKETS

GIFTS = "Sort the ticket into a queue.\nIf a ticket is about gift cards, choose account.\nAnswer with its name alone.\n"
OWN_MODEL = '''
from textgrad_engine.llm import Completion

class Always:
    """Gives the same queue for every ticket."""

    free = True

    def __init__(self, queue):
        self.queue, self.name = queue, f"own/{queue}"

    async def complete(self, request):
        return Completion(text=self.queue)

billing, account = Always("billing"), Always("account")
'''

MUTE = '''
class Mute:
    """Answers three quarters of the tickets."""

    name, free = "own/mute", True

    async def complete(self, request):
        told = len(request.messages[-1].text) % 4
        return Completion(text="account", finish_reason="stop" if told else "length")

mute = Mute()
'''
FLAKY = '''
from textgrad_engine.llm import Completion

class Flaky:
    """Says account; to one prompt one time in three billing."""

    name, free, asked = "own/flaky", True, 0

    async def complete(self, request):
        if "one of the queues" in request.messages[0].text:
            self.asked += 1
        return Completion(text="account" if self.asked % 3 != 1 else "billing")

flaky = Flaky()
'''
BROKEN = """
class Broken(Always):
    async def complete(self, request):
        raise ValueError("own")

broken = Broken("broken")
"""
UNSTEADY = '''
class Unsteady:
    """Answers every other time."""

    name, free, asked = "own/unsteady", True, 0

    async def complete(self, request):
        self.asked += 1
        return Completion(text="billing", finish_reason="stop" if self.asked % 2 else "length")

unsteady = Unsteady()
'''
NAMES = tuple(map(str, range(40)))
OWN_PROGRAM = """
from textgrad_engine import nn

class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.chat = nn.ChatCompletion("{ticket}", system=nn.Parameter("Sort.", role="p"))

    def forward(self, ticket):
        return self.chat(ticket=ticket)
"""

SHOWN = "ticket=words.BEFORE + ticket"
FORM = '{"type": "object", "properties": {"queue": {"type": "string"}}, "required": ["queue"]}'


@pytest.fixture
def task(small: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config of forty tickets, with a prompt beside it, a place for the cache, and models of one's own."""
    monkeypatch.setenv("TEXTGRAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    folder = small(rows=40)
    (tmp_path / "gifts.txt").write_text(GIFTS, encoding="utf-8")
    (tmp_path / "other.txt").write_text("Answer with one of the queues.", encoding="utf-8")
    (folder / "own.py").write_text(OWN_MODEL, encoding="utf-8")
    return folder


def document(cli: Any, *args: Any) -> Any:
    result = cli("compare", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def evaluation(arm: Any) -> Evaluation:
    scores = arm["scores"]
    return Evaluation(tuple(scores), tuple(scores.values()), tuple(scores.values()), {}, scale=(0.0, 1.0))


def test_each_prompt_stands_beside_the_configs_own(cli: Any, task: Path) -> None:
    """The scores are those of `eval`, and verdicts those of `tg.compare`, for as many as there are."""
    found = document(cli, task, "--prompt", "gifts.txt", "--prompt", "other.txt")
    assert [arm["prompt"] for arm in found["arms"]] == ["config", "in gifts.txt", "in other.txt"]
    assert (found["config"], found["data"], found["split"], found["status"]) == (
        str(task),
        "val.jsonl",
        "val",
        "finished",
    )
    for arm, prompt in zip(found["arms"], ((), ("--prompt", "gifts.txt"), ("--prompt", "other.txt"))):
        alone = json.loads(cli("eval", task, *prompt, "--json").stdout)
        assert arm["evaluation"]["mean"] == alone["mean"]
        assert arm["scores"] == {each["id"]: each["score"] for each in alone["scores"]}
    first, *others = map(evaluation, found["arms"])
    assert found["arms"][0]["comparison"] is None
    for arm, other in zip(found["arms"][1:], others):
        wanted = compare(first, other, candidates=others)
        assert arm["comparison"]["adjusted"] == wanted.adjusted is not None
        assert (arm["comparison"]["verdict"], arm["comparison"]["difference"]) == (wanted.verdict, wanted.difference)


def test_the_table_says_who_is_who_and_how_it_was_judged(cli: Any, task: Path) -> None:
    """In 80 columns, with the examples, what the prompts take, and what to make of it."""
    result = cli("compare", task, "--prompt", "gifts.txt", "--prompt", "other.txt")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    said = " ".join(result.stdout.split())
    assert f"{task.name}: 3 prompts on val.jsonl (the config's validation split), 40 examples" in said
    assert re.search(r"^      score +beside 1 +tokens$", result.stdout, re.MULTILINE)
    for number, name in enumerate(("the config's prompt", "prompt in gifts.txt", "prompt in other.txt"), 1):
        assert re.search(rf"^  {number}   0\.\d+ \[", result.stdout, re.MULTILINE)
        assert re.search(rf"^  {number}  {name}$", result.stdout, re.MULTILINE)
    assert "The verdicts allow for 2 comparisons (max-T): if none differs from the first, luck" in said
    assert "If you choose one of these by its score, that score flatters it." in said
    two = cli("compare", task, "--prompt", "gifts.txt")
    assert "max-T" not in two.stdout


def test_each_prompt_is_run_with_each_model(cli: Any, task: Path) -> None:
    """In the order in which they were named; models take the place of the config's."""
    models = "own:billing", "own:account"
    found = document(cli, task, "--prompt", "gifts.txt", "--model", models[0], "--model", models[1])
    named = [(arm["prompt"], arm["models"]["forward"]) for arm in found["arms"]]
    assert named == [(prompt, model) for prompt in ("config", "in gifts.txt") for model in models]
    text = cli("compare", task, "--model", models[0], "--model", models[1]).stdout
    assert "2 models on val.jsonl" in " ".join(text.split())
    assert "  2  the config's prompt with own:account\n" in text
    quiet = cli("compare", task, "--model", models[0], "--model", models[1], "--quiet").stdout
    assert quiet.count("\n") == 1
    assert "of 2 models the config's prompt with own:" in quiet
    each = [word for name in models for word in ("--model", name)]
    assert "of 2 prompts with 2 models" in cli("compare", task, "--prompt", "gifts.txt", *each, "--quiet").stdout


def test_a_check_ends_with_4_where_another_prompt_is_worse_than_the_first(cli: Any, task: Path) -> None:
    """As of a pull request: the first prompt is that of main, the other one that of the branch."""
    (task.parent / "bad.txt").write_text("Always answer: none of them.", encoding="utf-8")
    own = tomllib.loads((task / "config.toml").read_text(encoding="utf-8"))["program"]["system"]
    (task.parent / "good.txt").write_text(f"{own}\nGift cards go to account.", encoding="utf-8")
    worse = cli("compare", task, "--prompt", "good.txt", "--prompt", "bad.txt", "--not-worse", "--json")
    assert worse.exit_code == 4
    assert json.loads(worse.stdout)["arms"][2]["comparison"]["verdict"] == "worse"
    said = r"^prompt in bad\.txt: worse than the config's prompt: -0\.\d+ \[-0\.\d+, -0\.\d+\] on 40 examples$"
    assert re.search(said, worse.stderr, re.MULTILINE)
    assert "good.txt" not in worse.stderr
    assert cli("compare", task, "--prompt", "bad.txt").exit_code == 0
    assert cli("compare", task, "--prompt", "good.txt", "--not-worse").exit_code == 0


def test_a_check_does_not_pass_where_answers_or_a_floor_are_missed(cli: Any, task: Path) -> None:
    """Of all but the first: with what that misses the others are compared."""
    (task / "own.py").write_text(OWN_MODEL + MUTE, encoding="utf-8")
    lost = cli("compare", task, "--model", "own:account", "--model", "own:mute", "--not-worse")
    assert lost.exit_code == 4
    said = r"own:mute: \d+ examples lack an answer that the config's prompt with own:account had, which is rare"
    assert re.search(said, lost.stderr)
    with (task / "config.toml").open("a", encoding="utf-8") as file:
        file.write("\n[guards]\nfloors.queue = { account = 0.5 }\n")
    assert cli("compare", task, "--model", "own:billing", "--model", "own:account", "--not-worse").exit_code == 0
    floor = cli("compare", task, "--model", "own:account", "--model", "own:billing", "--not-worse", "--quiet")
    assert floor.exit_code == 4
    assert "with own:billing: floor not reached: queue = 'account'" in floor.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "one prompt with one model is nothing to compare; name others, such as --prompt mine.txt"),
        (("--prompt", "nothere.txt"), "--prompt nothere.txt: nothere.txt: there is no such file"),
        (
            ("--prompt", "gifts.txt", "--prompt", "gifts.txt"),
            "--prompt gifts.txt is named twice, so there is",
        ),
        (
            ("--prompt", "same.txt"),
            "--prompt same.txt: the prompt of small is the same, so there is nothing to compare; leave one",
        ),
        (("--model", "own:billing", "--model", "own:billing"), "--model own:billing is named twice"),
        (("--prompt", "small"), "--prompt small: this folder is no run; name a file that holds a prompt, or a run"),
        (
            ("--prompt", "small/config.toml"),
            "config.toml: this is a config, and all of it would be the prompt; write the text that is meant, its",
        ),
        (("--prompt", "gifts.txt", "--model", "own:nobody"), "own:nobody"),
        (("--prompt", "gifts.txt", "--judge", "own:billing"), "no [metric] asks a judge"),
    ],
)
def test_what_cannot_be_compared_is_told_before_anything_is_asked(
    cli: Any, task: Path, options: tuple[str, ...], message: str
) -> None:
    """With exit code 2, and the repair."""
    config = (task / "config.toml").read_text(encoding="utf-8")
    (Path.cwd() / "same.txt").write_text(tomllib.loads(config)["program"]["system"], encoding="utf-8")
    result = cli("compare", "small", *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not result.stdout


def test_a_prompt_that_was_not_changed_is_no_worse_and_is_not_asked(cli: Any, task: Path) -> None:
    """A check of a pull request goes over all prompts, and most of them are as they were."""
    own = tomllib.loads((task / "config.toml").read_text(encoding="utf-8"))["program"]["system"]
    (task.parent / "same.txt").write_text(own, encoding="utf-8")
    found = cli("compare", "small", "--prompt", "same.txt", "--not-worse")
    assert found.exit_code == 0
    assert "--prompt same.txt: the prompt of small is the same, so there is nothing to compare" in found.stderr
    document = json.loads(cli("compare", task, "--prompt", "same.txt", "--not-worse", "--json").stdout)
    assert (document["status"], [arm["usage"] for arm in document["arms"]]) == ("finished", [None])
    both = cli("compare", task, "--prompt", "same.txt", "--prompt", "gifts.txt", "--not-worse", "--json")
    assert "same.txt" in both.stderr
    assert [arm["prompt"] for arm in json.loads(both.stdout)["arms"]] == ["config", "in gifts.txt"]
    assert cli("compare", task, "--prompt", "same.txt").exit_code == 2
    models = ["--model", "own:billing", "--model", "own:account"]
    each = cli("compare", "small", "--prompt", "same.txt", *models, "--not-worse", "--quiet")
    assert each.stderr.count("--prompt same.txt: the prompt of small is the same") == 1, "for each model"


def test_another_config_is_run_with_its_own_settings(cli: Any, task: Path) -> None:
    """As of a branch, where the user message has changed, or the temperature."""
    branch = task.parent / "branch"
    shutil.copytree(task, branch)
    config = (branch / "config.toml").read_text(encoding="utf-8")
    same = cli("compare", "small", "--config", "branch")
    assert same.exit_code == 2
    assert "--config branch: the prompt of small is the same, so there is nothing to compare" in same.stderr
    assert cli("compare", task, "--config", "branch", "--not-worse").exit_code == 0
    (branch / "config.toml").write_text(config.replace("{ticket}", "Ticket: {ticket}"), encoding="utf-8")
    found = cli("compare", task, "--config", "branch", "--prompt", "gifts.txt")
    assert found.exit_code == 0
    assert "  2  prompt in gifts.txt\n" in found.stdout
    assert "  3  the prompt of branch\n" in found.stdout
    kept = json.loads(cli("compare", task, "--config", "branch", "--json").stdout)
    assert kept["arms"][1]["program"]["input_tokens"] > kept["arms"][0]["program"]["input_tokens"]
    assert [(arm["prompt"], arm["config"]) for arm in kept["arms"]] == [("config", None), ("config", "branch")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"exact_match"', '"json_match"'), "--config branch: its [metric] is not that of small, so scores cannot be"),
        (None, "--config gone: there is no such file; the folder has branch"),
        ("rows", "--config branch: its examples in"),
    ],
)
def test_a_config_of_something_else_is_refused(cli: Any, task: Path, change: Any, message: str) -> None:
    """Its scores would say nothing about these."""
    branch = task.parent / "branch"
    shutil.copytree(task, branch)
    if isinstance(change, tuple):
        config = (branch / "config.toml").read_text(encoding="utf-8")
        assert change[0] in config
        (branch / "config.toml").write_text(config.replace(*change), encoding="utf-8")
    if change == "rows":
        lines = (branch / "val.jsonl").read_text(encoding="utf-8").splitlines()
        (branch / "val.jsonl").write_text("\n".join(lines[1:]), encoding="utf-8")
    result = cli("compare", "small", "--config", "branch" if change else "gone")
    assert result.exit_code == 2
    assert message in result.stderr


def edit(folder: Path, *changes: tuple[str, str]) -> None:
    """Change the config in a folder."""
    config = (folder / "config.toml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in config
        config = config.replace(old, new)
    (folder / "config.toml").write_text(config, encoding="utf-8")


def names_a_program(folder: Path, code: str) -> None:
    (folder / "program.py").write_text(code, encoding="utf-8")
    config = (folder / "config.toml").read_text(encoding="utf-8")
    own = re.sub(r"\[program\]\n.*?\n\n", '[program]\nclass = "program:Sorter"\n\n', config, flags=re.DOTALL)
    (folder / "config.toml").write_text(own, encoding="utf-8")


def names_a_form(folder: Path) -> None:
    (folder / "form.json").write_text(FORM, encoding="utf-8")
    edit(
        folder,
        ("[program]\n", '[program]\nresponse_format = "form.json"\n'),
        ('"exact_match"', '"exact_match"\nfield = "queue"'),
    )


def names_tools(folder: Path) -> None:
    (folder / "tools.py").write_text('def look_up(name: str) -> str:\n    """Look."""\n    return name\n', "utf-8")
    edit(folder, ("[program]\n", '[program]\ntools = ["tools:look_up"]\n'))


def names_a_model(folder: Path) -> None:
    config = (folder / "config.toml").read_text(encoding="utf-8")
    forward = re.search(r'^forward = "(.+)"$', config, re.MULTILINE)
    assert forward is not None
    edit(folder, (forward[1], "own:billing"))


@pytest.mark.parametrize(
    ("names", "file", "change"),
    [
        (names_a_form, "form.json", ('"string"', '"string", "description": "One word."')),
        (names_tools, "tools.py", ("Look.", "Look up.")),
        (names_a_model, "own.py", ('"billing"', '"account"')),
    ],
)
def test_a_config_with_another_file_is_not_the_same(
    cli: Any, task: Path, names: Callable[[Path], None], file: str, change: tuple[str, str]
) -> None:
    """Both name it alike, and a check that took them for one would pass without asking."""
    names(task)
    branch = Path(shutil.copytree(task, task.parent / "branch"))
    text = (branch / file).read_text(encoding="utf-8")
    assert change[0] in text
    (branch / file).write_text(text.replace(*change), encoding="utf-8")
    found = cli("compare", task, "--config", "branch", "--not-worse", "--json")
    assert [arm["number"] for arm in json.loads(found.stdout)["arms"]] == [1, 2], found.stderr
    assert "of 2 prompts" in cli("compare", task, "--config", "branch", "--quiet").stdout


@pytest.mark.parametrize("where", ["above", "inside"])
@pytest.mark.parametrize(("file", "line"), [("words.py", "import words"), ("lib/words.py", "from lib import words")])
def test_the_program_of_each_config_imports_what_is_beside_it(
    cli: Any, task: Path, where: str, file: str, line: str
) -> None:
    """The module of the first one is in memory, and a branch that broke its own would pass for as good as before."""
    above, inside = (line, "") if where == "above" else ("", f"        {line}\n")
    shown = OWN_PROGRAM.replace("        return", f"{inside}        return").replace("ticket=ticket", SHOWN)
    names_a_program(task, f"{above}\n{shown}")
    (task / file).parent.mkdir(exist_ok=True)
    (task / file).write_text('BEFORE = ""\n', encoding="utf-8")
    branch = Path(shutil.copytree(task, task.parent / "branch"))
    (branch / file).write_text('BEFORE = "Sort this one: "\n', encoding="utf-8")
    for one, other in ((task, branch), (branch, task)):
        read = [arm["program"]["input_tokens"] for arm in document(cli, one, "--config", other)["arms"]]
        assert (read[0] < read[1]) is (one is task), read
        assert read[0] != read[1]


def test_a_program_that_two_configs_import_from_elsewhere_is_told_to_be_one(
    cli: Any, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an installed package of the branch: whatever has changed in it, both are equally good."""
    code = task.parent / "src" / "elsewhere.py"
    code.parent.mkdir()
    code.write_text(OWN_PROGRAM, encoding="utf-8")
    monkeypatch.syspath_prepend(code.parent)
    names_a_program(task, OWN_PROGRAM)
    branch = Path(shutil.copytree(task, task.parent / "branch"))
    assert "is imported from" not in cli("compare", task, "--config", branch).stderr
    for folder in (task, branch):
        edit(folder, ("program:Sorter", "elsewhere:Sorter"))
    config = (task / "config.toml").read_text(encoding="utf-8")
    (task / "other.toml").write_text(config.replace("seed = 0", "seed = 1"), encoding="utf-8")
    result = cli("compare", "small", "--config", "branch", "--config", "small/other.toml", "--not-worse", "--json")
    assert result.exit_code == 0
    assert result.stderr.count("is imported from") == 1, "of one folder there is one state"
    assert (
        f"note: the program of branch is imported from {code}, as that of small is, so a change of it does not show "
        "here; run `eval` of each where its own is installed" in " ".join(result.stderr.split())
    )


def test_a_config_does_not_find_what_is_beside_another_one(cli: Any, task: Path) -> None:
    """A branch that forgot a file fails, as it would alone."""
    names_a_program(task, "import words\n" + OWN_PROGRAM)
    branch = Path(shutil.copytree(task, task.parent / "branch"))
    (task / "words.py").write_text("", encoding="utf-8")
    result = cli("compare", task, "--config", branch)
    assert result.exit_code == 2
    assert "No module named 'words'" in result.stderr


def test_another_config_is_scored_by_the_first_ones_code(cli: Any, task: Path) -> None:
    """A score of another file would say nothing beside the first."""
    (task / "score.py").write_text("def score(answer, target):\n    return float(answer == target)\n", "utf-8")
    edit(task, ('name = "exact_match"', 'function = "score:score"\npurpose = "the queue"'))
    branch = Path(shutil.copytree(task, task.parent / "branch"))
    (branch / "score.py").write_text("def score(answer, target):\n    return 0.0\n", "utf-8")
    edit(branch, ("{ticket}", "Ticket: {ticket}"))
    first, other = document(cli, task, "--config", "branch")["arms"]
    assert first["evaluation"]["mean"] > 0
    assert other["evaluation"]["mean"] > 0


def test_a_config_with_another_judge_is_refused(cli: Any, task: Path) -> None:
    """Its marks mean nothing beside those of the first, also where its program's model gives them."""
    edit(task, ('name = "exact_match"', 'name = "judge"\ninstructions = "Is it right?"'))
    branch = Path(shutil.copytree(task, task.parent / "branch"))
    names_a_model(branch)
    result = cli("compare", task, "--config", "branch")
    assert result.exit_code == 2
    assert "name one judge for both with --judge NAME" in " ".join(result.stderr.split())


def test_clusters_of_another_config_are_those_of_the_first(cli: Any, task: Path) -> None:
    """Else their intervals could not stand beside each other, which was found out when all was paid for."""
    for split in ("train", "val", "test"):
        rows = [json.loads(line) for line in (task / f"{split}.jsonl").read_text("utf-8").splitlines()]
        rows = [{**row, "day": str(n // 4), "week": str(n // 8)} for n, row in enumerate(rows)]
        (task / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    branch = Path(shutil.copytree(task, task.parent / "branch"))
    edit(task, ("[data]\n", '[data]\nclusters = "day"\n'))
    edit(branch, ("[data]\n", '[data]\nclusters = "week"\n'), ("{ticket}", "Ticket: {ticket}"))
    found = document(cli, task, "--config", "branch")
    assert found["arms"][1]["comparison"]["clusters"] == 10


def test_models_that_would_judge_themselves_are_refused(cli: Any, task: Path) -> None:
    """Their marks mean nothing beside each other; one judge for all is another matter."""
    config = (task / "config.toml").read_text(encoding="utf-8")
    judged = config.replace('name = "exact_match"', 'name = "judge"\ninstructions = "Is it right?"')
    assert judged != config
    (task / "config.toml").write_text(judged, encoding="utf-8")
    result = cli("compare", task, "--model", "own:billing", "--model", "own:account")
    assert result.exit_code == 2
    assert "name one judge for all of them with --judge NAME" in " ".join(result.stderr.split())


def test_what_was_asked_is_not_asked_again(cli: Any, task: Path) -> None:
    """The same command, and one with a prompt more; --no-cache asks for all."""
    with LoopbackServer(TicketsModel(seed=0)) as server:
        options = ["--model", "sorter", "--base-url", server.base_url]
        before = document(cli, task, "--prompt", "gifts.txt", *options)
        assert server.requests == 80
        again = document(cli, task, "--prompt", "gifts.txt", *options)
        assert server.requests == 80
        tokens = [each["arms"][1]["program"]["input_tokens"] for each in (before, again)]
        assert tokens[0] == tokens[1] > 0
        assert again["arms"][1]["usage"]["calls"] == 0
        document(cli, task, "--prompt", "gifts.txt", "--prompt", "other.txt", *options)
        assert server.requests == 120
        document(cli, task, "--prompt", "gifts.txt", "--no-cache", *options)
        assert server.requests == 200


def test_a_budget_is_that_of_all_together_and_what_was_bought_stays(cli: Any, task: Path) -> None:
    """What was not come to is no lost answer, and the same command with more buys the rest alone."""
    with LoopbackServer(TicketsModel(seed=0)) as server:
        there = ["--model", "sorter", "--base-url", server.base_url, "--price", "input=1,output=1"]
        options = [task, "--prompt", "gifts.txt", *there]
        ended = cli("compare", *options, "--budget-calls", "60")
        assert ended.exit_code == 3
        assert server.requests == 60
        assert "the same command goes on from there" in ended.stderr
        assert "interrupted" not in ended.stderr
        said = " ".join(ended.stdout.split())
        assert "answers were lost" not in said
        assert "20 of 40 examples were not run with it" in said
        found = document(cli, *options, "--budget-calls", "80")
        assert server.requests == 80
        assert [arm["evaluation"]["examples"] for arm in found["arms"]] == [40, 40]
        assert "cost" in cli("compare", *options).stdout
        none = cli("compare", task, "--prompt", "other.txt", *there, "--no-cache", "--budget-tokens", "1")
        assert none.exit_code == 2


def test_the_cost_is_by_the_price_that_is_stated_now(cli: Any, task: Path) -> None:
    """Whatever was known of it when the answers were bought, that are in the cache by now."""
    with LoopbackServer(TicketsModel(seed=0)) as server:
        options = [task, "--prompt", "gifts.txt", "--model", "sorter", "--base-url", server.base_url]
        assert document(cli, *options)["arms"][0]["program"]["dollars"] is None
        for price in (1, 2):
            priced = [*options, "--price", f"input={price},output={price}"]
            for arm in document(cli, *priced)["arms"]:
                tokens = arm["program"]["input_tokens"] + arm["program"]["output_tokens"]
                assert arm["program"]["dollars"] == pytest.approx(price * tokens / 1e6)
                assert arm["usage"]["dollars"] == 0, "nothing is paid for twice"
        text = cli("compare", *priced).stdout
        for number, arm in enumerate(document(cli, *priced)["arms"], 1):
            of_thousand = money(1000 * arm["program"]["dollars"] / 40)
            assert re.search(rf"^  {number}   .* {re.escape(of_thousand)}$", text, re.MULTILINE)
        assert re.search(r"tokens +cost$", text, re.MULTILINE)
        unknown = cli("compare", *options).stdout
        assert re.search(r"tokens$", unknown, re.MULTILINE)
        assert "$" not in unknown, "nobody knows what they cost"
        assert server.requests == 80


def test_tokens_of_an_example_are_those_of_examples_with_a_score(cli: Any, task: Path) -> None:
    """A budget may end between an answer and its marks; what such took is no part of what one example takes."""
    metric = 'name = "judge"\ninstructions = "Is it right?"'
    config = (task / "config.toml").read_text(encoding="utf-8").replace('name = "exact_match"', metric)
    (task / "config.toml").write_text(config, encoding="utf-8")
    counted = (
        "from textgrad_engine.llm import Completion, Usage\n\n\n"
        "class Counted:\n    free, cache_key = True, 'a'\n\n"
        "    def __init__(self, name, text):\n        self.name, self.text = name, text\n\n"
        "    async def complete(self, request):\n"
        "        used = Usage(calls=1, input_tokens=10, output_tokens=5)\n"
        "        return Completion(text=self.text, usage=used)\n\n\n"
        "sorter = Counted('own/sorter', 'billing')\n"
        'judge = Counted(\'own/judge\', \'{"explanation": "so", "score": 1}\')\n'
    )
    (task / "own.py").write_text(counted, encoding="utf-8")
    options = [task, "--prompt", "gifts.txt", "--model", "own:sorter", "--judge", "own:judge"]
    ended = cli("compare", *options, "--no-cache", "--budget-calls", "135")
    assert ended.exit_code == 3, ended.stderr
    assert re.findall(r"^  [12]   1\.000 .* (\d+)$", ended.stdout, re.MULTILINE) == ["15", "15"]
    assert "examples were not run with it" in " ".join(ended.stdout.split())


def test_a_score_of_a_few_examples_is_not_the_highest(cli: Any, task: Path) -> None:
    """One that the budget ended after two examples, one of them right, is not beside those of all forty."""
    rows = (task / "val.jsonl").read_text(encoding="utf-8").splitlines()
    rows.sort(key=lambda row: "account" not in row)
    (task / "val.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    options = [task, "--model", "own:billing", "--model", "own:account", "--quiet"]
    ended = cli("compare", *options, "--budget-calls", "42")
    assert ended.exit_code == 3
    assert "own:billing has the highest score" in ended.stdout
    ended = cli("compare", *options, "--budget-calls", "2")
    assert "own:billing has the highest score" in ended.stdout, "there is no other"


TOLD = '''
import json, pathlib
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.llm import Completion

ROWS = [json.loads(line) for line in (pathlib.Path(__file__).parent / "val.jsonl").read_text("utf-8").splitlines()]
PLACES = {row["ticket"]: n for n, row in enumerate(ROWS)}

class Told:
    """Knows what is right, but for the tickets that it gets wrong, and those of which it says nothing."""

    free = True

    def __init__(self, name, wrong=(), silent=()):
        self.name, self.wrong, self.silent = f"own/{name}", wrong, silent

    async def complete(self, request):
        n = next(n for ticket, n in PLACES.items() if ticket in request.messages[-1].text)
        if n in self.silent:
            raise ContentFiltered("withheld")
        return Completion(text="neither" if n in self.wrong else ROWS[n]["queue"])

whole = Told("whole", wrong=range(12))
silent = Told("silent", silent=range(30, 40))
other = Told("other", wrong=range(8, 20))
'''


def test_an_arm_that_loses_answers_is_neither_the_better_one_nor_makes_others_worse(cli: Any, task: Path) -> None:
    """Whichever it is, the first or another, and why is said of it, whatever else the others would not have seen."""
    (task / "own.py").write_text(TOLD, encoding="utf-8")
    text = cli("compare", task, "--model", "own:whole", "--model", "own:other", "--model", "own:silent").stdout
    said = " ".join(text.split())
    assert re.search(r"^  3   1\.000 .*\+0\.400 \[\+0\.\d+, \+0\.\d+\] +not shown", text, re.MULTILINE)
    assert (
        "Of 3: answers of 3 were lost on 10 examples where 1 has one, which is rare by chance (5%), so it is not"
        in said
    )
    assert "so it is not called better, whatever is left says." in said
    assert "Not shown is not the same as equal: with n = 40 and 2 candidates tried a difference under" in said
    found = document(cli, task, "--model", "own:silent", "--model", "own:whole")
    comparison = found["arms"][1]["comparison"]
    assert (comparison["verdict"], comparison["lost_before"], comparison["lost"]) == ("not shown", 10, 0)
    assert comparison["interval"][1] < 0
    said = " ".join(cli("compare", task, "--model", "own:silent", "--model", "own:whole").stdout.split())
    assert "Of 2: answers of 1 were lost on 10 examples where 2 has one, which is rare by chance (5%), so it is" in said
    assert "so it is not called worse, whatever is left says." in said


def test_one_line_names_all_that_have_the_highest_score_and_says_what_is_missing(cli: Any, task: Path) -> None:
    """The first of several with one score is no better than the others, and a score without the hard ones no higher."""
    (task / "own.py").write_text(TOLD, encoding="utf-8")
    tied = cli("compare", task, "--model", "own:whole", "--model", "own:other", "--quiet").stdout
    assert "the config's prompt with own:whole has the highest score, 0.700 [" in tied
    assert tied.endswith("; the config's prompt with own:other has the same score\n")
    lossy = cli("compare", task, "--model", "own:whole", "--model", "own:silent", "--quiet").stdout
    assert re.search(r"own:silent has the highest score, 1\.000 \[.*\] without 10 answers; not shown beside the", lossy)


def test_what_the_others_gave_is_told_where_a_model_fails(cli: Any, task: Path) -> None:
    """An error ends that arm alone: the others may be at other endpoints, and what was paid for is there."""
    gone = "    async def complete(self, request):\n        raise ConnectionError('gone')\n"
    broken = f"\n\nclass Broken:\n    name, free = 'own/broken', True\n\n{gone}\n\nbroken = Broken()\n"
    (task / "own.py").write_text(OWN_MODEL + broken, encoding="utf-8")
    models = [word for name in ("billing", "broken", "account") for word in ("--model", f"own:{name}")]
    result = cli("compare", task, *models)
    assert result.exit_code == 1
    assert "gone" in result.stderr
    for number in (1, 3):
        assert re.search(rf"^  {number}   0\.\d+ \[", result.stdout, re.MULTILINE)
    assert "  2  the config's prompt with own:broken (failed)\n" in result.stdout
    assert "  3  the config's prompt with own:account\n" in result.stdout
    ended = cli("compare", task, *models, "--prompt", "gifts.txt")
    assert "error: the config's prompt with own:broken: " in ended.stderr, "each of them is told"
    assert ended.stderr.count(", in complete: ConnectionError: gone") == 2
    spent = cli("compare", task, *models, "--no-cache", "--budget-calls", "80")
    assert spent.exit_code == 1
    assert "the budget of 80 calls" in spent.stderr, "however many calls of the second one were begun before it ended"
    assert "gone" in spent.stderr


def test_what_is_worse_is_told_beside_what_fails(cli: Any, task: Path) -> None:
    """The failure decides about the exit code."""
    gone = "    async def complete(self, request):\n        raise ConnectionError('gone')\n"
    broken = f"\n\nclass Broken:\n    name, free = 'own/broken', True\n\n{gone}\n\nbroken = Broken()\n"
    (task / "own.py").write_text(f"{OWN_MODEL}{broken}mute = Always('none')\n", encoding="utf-8")
    models = [word for name in ("simulated/tickets", "own:broken", "own:mute") for word in ("--model", name)]
    result = cli("compare", task, *models, "--not-worse")
    assert result.exit_code == 1
    assert (
        "the config's prompt with own:mute: worse than the config's prompt with simulated/tickets: -0." in result.stderr
    )
    assert "gone" in result.stderr


def test_what_the_others_gave_is_in_the_document_of_an_error(cli: Any, task: Path) -> None:
    """A script would have to pay for it once more, where no cache has it."""
    gone = "    async def complete(self, request):\n        raise ConnectionError('gone')\n"
    broken = f"\n\nclass Broken:\n    name, free = 'own/broken', True\n\n{gone}\n\nbroken = Broken()\n"
    (task / "own.py").write_text(OWN_MODEL + broken, encoding="utf-8")
    models = [word for name in ("billing", "broken", "account") for word in ("--model", f"own:{name}")]
    result = cli("compare", task, *models, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["exit_code"], found["status"]) == (1, "failed")
    assert [arm["evaluation"] is not None for arm in found["arms"]] == [True, False, True]
    assert [len(arm["scores"]) for arm in found["arms"]] == [40, 0, 40]
    assert re.fullmatch(r"\S*own\.py:\d+, in complete: ConnectionError: gone", found["error"])
    assert found["arms"][1]["error"] == found["error"], "str() of an error of one's own says neither what nor where"
    assert [found["arms"][n]["error"] for n in (0, 2)] == [None, None]
    alone = json.loads(cli("compare", task, *models[2:], "--json").stdout)
    assert set(alone) == {"error", "notes", "exit_code"}, "there is no result"


@pytest.mark.parametrize("key", ["", "billing.cache_key, account.cache_key = 'b', 'a'"])
def test_only_what_is_in_the_cache_is_said_to_be_there(cli: Any, task: Path, key: str) -> None:
    """A model of one's own without a cache_key is asked anew."""
    (task / "own.py").write_text(f"{OWN_MODEL}\n{key}\n", encoding="utf-8")
    options = [task, "--model", "own:billing", "--model", "own:account", "--budget-calls", "60"]
    ended = cli("compare", *options)
    assert ended.exit_code == 3
    assert ("what was answered is in the cache" in ended.stderr) is bool(key)
    assert cli("compare", *options).exit_code == (0 if key else 3)


def test_a_runs_best_prompt_is_named_by_its_folder(cli: Any, task: Path, run: Callable[[], Path]) -> None:
    """And what it was chosen by is told, as that flatters it."""
    folder = run()
    chosen = cli("compare", task, "--prompt", folder)
    assert chosen.exit_code == 0, chosen.stderr
    said = " ".join(chosen.stdout.split())
    assert "The run behind 2 worked with 40 rows of its validation split, so its score is flattered here." in said
    assert re.search(r"  2   0\.9\d\d .* better ", chosen.stdout)
    quiet = cli("compare", task, "--prompt", folder, "--quiet").stdout
    assert quiet.endswith("; the run behind it worked with 40 rows of its validation split, which flatters it\n")
    fresh = cli("compare", task, "--prompt", folder, "--data", task / "test.jsonl")
    assert "The run behind" not in fresh.stdout
    assert "These are test examples of the config." in " ".join(fresh.stdout.split())


def test_runs_that_are_flattered_alike_are_told_together(cli: Any, task: Path) -> None:
    """Two runs are no one run, as the prompt of one with several models is; and three numbers have a comma."""
    assert cli("train", task, "--run-dir", "cut", "--budget-calls", "60").exit_code == 3
    assert cli("train", task, "--run-dir", "whole").exit_code == 0
    models = [word for name in ("billing", "account") for word in ("--model", f"own:{name}")]
    models += ["--model", "simulated/tickets"]
    one = " ".join(cli("compare", task, "--prompt", "whole", *models).stdout.split())
    assert "The run behind 4, 5 and 6 worked with its validation split, so their scores are flattered here." in one
    two = " ".join(cli("compare", "cut", "--data", task / "val.jsonl", "--prompt", "whole").stdout.split())
    assert "The runs behind 1 and 2 each worked with its validation split, so their scores are flattered here." in two


def test_looks_at_a_runs_test_split_are_counted_and_kept(cli: Any, run: Callable[[], Path], tmp_path: Path) -> None:
    """Each arm is one, and a later `eval` tells of them."""
    folder = run()
    mine = tmp_path / "mine.txt"
    mine.write_text("Answer with one of the queues.", encoding="utf-8")
    result = cli("compare", folder, "--prompt", mine, "--no-cache")
    assert result.exit_code == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert "(the run's test split), 113 examples" in said
    assert "  1  best prompt\n" in result.stdout
    assert "The test split was opened 3 times so far" in said
    beside = " ".join(cli("eval", folder).stdout.split())
    assert "prompt in" in beside
    assert "opened 4 times so far" in beside


def test_floors_that_one_of_them_misses_are_named(cli: Any, task: Path) -> None:
    """A model that is no worse on the whole may be so on one slice."""
    with (task / "config.toml").open("a", encoding="utf-8") as file:
        file.write("\n[guards.floors.queue]\naccount = 0.9\n")
    found = document(cli, task, "--model", "own:billing", "--model", "own:account")
    assert [[each["reached"] for each in arm["floors"]] for arm in found["arms"]] == [[False], [True]]
    said = " ".join(cli("compare", task, "--model", "own:billing", "--model", "own:account").stdout.split())
    assert "Of 1: floor not reached: queue = 'account', 0.000 of 0.9." in said
    assert "Of 2: floor" not in said


def test_a_prompt_of_another_program_is_refused(cli: Any, task: Path, tmp_path: Path, run: Callable[[], Path]) -> None:
    """It would take the place of no text."""
    names_a_program(task, OWN_PROGRAM)
    result = cli("compare", task, "--prompt", run())
    assert result.exit_code == 2
    assert "that run trained 'system', and the program of" in " ".join(result.stderr.split())


def test_equal_arms_are_told_apart_by_luck_no_more_often_than_said() -> None:
    """Of four that are equal to the first, any is called better or worse in about 5 of 100 cases at most."""
    drawn = random.Random(7)

    def arm(number: int) -> Result:
        scores = tuple(float(drawn.random() < 0.5) for _ in range(40))
        done: Any = SimpleNamespace(evaluation=Evaluation(NAMES, scores, scores, {}, scale=(0.0, 1.0)), ended=None)
        any_arm: Any = number
        return Result(any_arm, done)

    wrong = 0
    for _ in range(60):
        found = beside_the_first([arm(number) for number in range(5)])
        wrong += any(each.comparison is not None and each.comparison.verdict != "not shown" for each in found)
    assert wrong <= 6


def test_that_a_run_folder_keeps_nothing_is_said_once(
    cli: Any, task: Path, run: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds for all of them; a look at the test split, which nobody could count, is refused before any is asked."""

    def check(folder: Path) -> None:
        raise RunError(f"{folder} cannot be written")

    monkeypatch.setattr("textgrad_engine.cli.evaluating.check_writable", check)
    options = [run(), "--prompt", "gifts.txt", "--prompt", "other.txt"]
    found = cli("compare", *options, "--data", task / "val.jsonl")
    assert found.exit_code == 0, found.stderr
    assert found.stderr.count("nothing of this is kept there") == 1
    refused = cli("compare", *options)
    assert refused.exit_code == 2
    assert "looks at the test split are counted there" in " ".join(refused.stderr.split())


@pytest.mark.parametrize("by_option", [True, False])
def test_empty_clusters_are_told_of_once(
    cli: Any, task: Path, caplog: pytest.LogCaptureFixture, by_option: bool
) -> None:
    """The file is read for each prompt, and the option names a column as the config does."""
    for split in ("train", "val", "test"):
        path = task / f"{split}.jsonl"
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        some = [{**row, "thread": "" if split == "val" and n < 3 else str(n)} for n, row in enumerate(rows)]
        path.write_text("".join(json.dumps(row) + "\n" for row in some), encoding="utf-8")
    config = task / "config.toml"
    if not by_option:
        text = config.read_text(encoding="utf-8")
        config.write_text(text.replace("[data]", '[data]\nclusters = "thread"'), encoding="utf-8")
    option = ("--clusters", "thread") if by_option else ()
    told = cli("compare", task, "--prompt", "gifts.txt", "--prompt", "other.txt", *option)
    assert told.exit_code == 0, told.stderr
    [said] = [each.getMessage() for each in caplog.records if "is empty in 3 rows" in each.getMessage()]
    assert ("--clusters" if by_option else "[data] clusters") in said


# several at once


class Noting(Wrapper):
    """The simulated model; what it is asked for in which prompt, and a wait for as many prompts as are wanted."""

    def __init__(self, prompts: int = 1) -> None:
        super().__init__(TicketsModel(seed=0))
        self.prompts, self.asked = prompts, list[str]()
        self.all_there = asyncio.Event()

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request.messages[0].text)
        if len(set(self.asked)) >= self.prompts:
            self.all_there.set()
        async with asyncio.timeout(60):
            await self.all_there.wait()
        return await self.inner.complete(request)


def test_all_of_them_go_on_at_once_with_the_same_scores(cli: Any, task: Path) -> None:
    """Three prompts take the time of one; with a limit they go one by one, so that the first ones are whole."""
    found = {}
    rows = (task / "val.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (task / "some.jsonl").write_text("".join(rows[:20]), encoding="utf-8")  # those of all may be in flight at once
    for how, limit, together in (("at once", [], 3), ("one by one", ["--budget-calls", "60"], 1)):
        model = Noting(together)
        with LoopbackServer(model) as server:
            options = [task, "--prompt", "gifts.txt", "--prompt", "other.txt", "--model", "m", "--no-cache", *limit]
            options += ["--data", task / "some.jsonl"]
            found[how] = document(cli, *options, "--base-url", server.base_url)
        changes = sum(a != b for a, b in itertools.pairwise(model.asked))
        assert changes == 2 if limit else changes >= 2
    assert [arm["scores"] for arm in found["at once"]["arms"]] == [arm["scores"] for arm in found["one by one"]["arms"]]
    for arm, other in zip(found["at once"]["arms"], found["one by one"]["arms"]):
        assert arm["comparison"] == other["comparison"]
        assert arm["usage"] == other["usage"]


def test_limits_of_a_model_hold_for_all_that_ask_it_at_once(cli: Any, task: Path) -> None:
    """An endpoint that takes four calls at a time refused the rest, as each prompt had four of its own."""
    config = task / "config.toml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("[models]", "[models]\nmax_in_flight = 4"), encoding="utf-8")
    with LoopbackServer(TicketsModel(seed=0), latency=0.01) as server:
        options = [task, "--prompt", "gifts.txt", "--prompt", "other.txt", "--no-cache", "--base-url", server.base_url]
        document(cli, *options, "--model", "m")
        assert (server.requests, server.peak) == (120, 4)
        document(cli, *options, "--model", "m", "--model", "n")
        assert server.peak == 8  # it is a limit of each model


def test_ctrl_c_ends_all_of_them_and_what_they_did_not_come_to_is_not_lost(
    cli: Any, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is compared on what both have answered, and the command ends as interrupted."""

    heard, press = threading.Event(), interrupt._Listener.press

    def pressed(listener: Any) -> None:
        press(listener)
        heard.set()

    monkeypatch.setattr(interrupt._Listener, "press", pressed)

    class Pressing(Noting):
        async def complete(self, request: Request) -> Completion:
            answer = await super().complete(request)
            counts = [self.asked.count(each) for each in set(self.asked)]
            if len(counts) == 3 and min(counts) >= 5:
                if not self.pressed:
                    self.pressed = True
                    os.kill(os.getpid(), signal.SIGINT)
                assert await asyncio.to_thread(heard.wait, 60)  # what is sent meanwhile is all that may be in flight
            return answer

        pressed = False

    config = task / "config.toml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("[models]", "[models]\nmax_in_flight = 64"), encoding="utf-8")
    rows = [json.loads((task / "val.jsonl").read_text().splitlines()[0]) | {"id": f"r{n}"} for n in range(200)]
    many = task / "many.jsonl"
    many.write_text("".join(json.dumps(row | {"ticket": f"{row['ticket']} {row['id']}"}) + "\n" for row in rows))
    with LoopbackServer(Pressing()) as server:
        options = ["--prompt", "gifts.txt", "--prompt", "other.txt", "--model", "m", "--base-url", server.base_url]
        options += ["--data", many]  # more than are in flight at once
        done = cli("compare", task, *options, "--json")
        assert done.exit_code == 130
        found = json.loads(done.stdout)
        assert found["status"] == "interrupted"
        first, *others = found["arms"]
        assert sum(score is None for arm in found["arms"] for score in arm["scores"].values()) > 0
        for arm in others:
            pairs = zip(first["scores"].values(), arm["scores"].values())
            assert arm["comparison"]["n"] == sum(None not in pair for pair in pairs)
            assert (arm["comparison"]["lost"], arm["comparison"]["lost_before"]) == (0, 0)
        goes_on = document(cli, task, *options)
        assert server.requests == 600
        assert all(None not in arm["scores"].values() for arm in goes_on["arms"])


def test_what_an_interrupted_first_one_did_not_come_to_makes_no_other_one_better_or_worse() -> None:
    """They are no lost answers: with thirty of forty of these nothing was called worse, whatever the others said."""

    def arm(scores: Any, ended: Exception | None) -> Result:
        found = Evaluation(NAMES, tuple(scores), (None,) * 40, {}, scale=(0.0, 1.0))
        done: Any = SimpleNamespace(evaluation=found, ended=ended)
        return Result(SimpleNamespace(), done)  # type: ignore[arg-type]

    first = arm([1.0] * 20 + [None] * 20, Stopped("by Ctrl-C"))
    whole, cut = arm([0.0] * 40, None), arm([None] * 10 + [0.0] * 30, Stopped("by Ctrl-C"))
    for other, both in ((whole, 20), (cut, 10)):
        (_, beside) = beside_the_first([first, other])
        assert beside.comparison is not None
        assert (beside.comparison.n, beside.comparison.lost_before) == (both, 0)
        assert beside.comparison.verdict == "worse"
    assert ended_early([whole, first]) is first.done.ended
    assert ended_early([first, whole]) is first.done.ended
    assert ended_early([whole, whole]) is None


def test_where_one_of_them_fails_the_others_go_on(cli: Any, task: Path) -> None:
    """And nothing is told beside a first one that failed."""

    class Gone(Noting):
        async def complete(self, request: Request) -> Completion:
            if self.of in request.messages[0].text:
                raise BadRequest("no such prompt here")
            return await super().complete(request)

        of = "gift cards"

    options = [task, "--prompt", "gifts.txt", "--prompt", "other.txt", "--model", "m", "--no-cache", "--json"]
    with LoopbackServer(Gone()) as server:
        done = cli("compare", *options, "--base-url", server.base_url)
        assert done.exit_code == 1
        found = json.loads(done.stdout)
        scored = [arm["evaluation"] and arm["evaluation"]["examples"] for arm in found["arms"]]
        assert (scored[0], scored[2]) == (40, 40)
        assert not scored[1]
    first = Gone()
    first.of = "You sort the support mail"
    with LoopbackServer(first) as server:
        assert cli("compare", *options, "--base-url", server.base_url).exit_code == 1


def test_another_config_runs_with_the_code_beside_it(cli: Any, task: Path) -> None:
    """A check that ran the code of before twice would pass whatever was changed; what is imported late counts, too."""
    program = """
import words
from textgrad_engine import nn

class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt = nn.Parameter("Sort.", role="p")

    def forward(self, ticket):
        from more import late
        return f"{words.WORD} {late.WORD}"
"""
    text = re.sub(r'system = """[^"]*"""\n|user = .*\n', "", (task / "config.toml").read_text("utf-8"))
    (task / "config.toml").write_text(text.replace("[program]\n", '[program]\nclass = "program:Sorter"\n'), "utf-8")
    (task / "program.py").write_text(program, "utf-8")
    (task / "words.py").write_text('WORD = "billing"', "utf-8")
    (task / "more").mkdir()
    (task / "more" / "late.py").write_text('WORD = "now"', "utf-8")
    first, *others = [Path(shutil.copytree(task, task.parent / name)) for name in ("first", "early", "late", "same")]
    (others[0] / "words.py").write_text('WORD = "account"', "utf-8")
    (others[1] / "more" / "late.py").write_text('WORD = "later"', "utf-8")
    rows = [{"id": str(n), "ticket": f"mail {n}", "queue": "billing now"} for n in range(8)]
    (task.parent / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    configs = [each for name in ("early", "late", "same") for each in ("--config", name)]
    models = ("--model", "simulated/tickets", "--model", "own:billing")
    arms = document(cli, first, *configs, *models, "--data", "rows.jsonl")["arms"]
    assert [arm["evaluation"]["mean"] for arm in arms] == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]


def test_the_report_names_the_examples_that_changed(cli: Any, task: Path) -> None:
    """Of each prompt beside the first, a line each, in 80 columns; a reviewer wants to see what broke."""
    own = tomllib.loads((task / "config.toml").read_text(encoding="utf-8"))["program"]["system"]
    (task.parent / "good.txt").write_text(f"{own}\nGift cards go to account.", encoding="utf-8")
    result = cli("compare", task, "--prompt", "good.txt", "--prompt", "other.txt")
    found = document(cli, task, "--prompt", "good.txt", "--prompt", "other.txt")["arms"]
    assert found[0]["changed"] is None
    first = found[0]["scores"]
    lines = result.stdout.splitlines()
    for arm in found[1:]:
        changed = arm["changed"]
        for word, kind, sign in (("worse", "worse", -1), ("better", "better", 1)):
            wanted = {name for name, now in arm["scores"].items() if (now - first[name]) * sign > 0}
            assert {each["id"] for each in changed[kind]} == wanted
            assert all(each["before"] == first[each["id"]] for each in changed[kind])
            (line,) = [each for each in lines if each.startswith(f"  {arm['number']}  got {word} ({len(wanted)})")]
            assert len(line) <= 80
            assert not wanted or re.search(rf": ({'|'.join(wanted)})\b", line)
    assert any(arm["changed"]["worse"] for arm in found[1:])
    assert any(arm["changed"]["better"] for arm in found[1:])
    assert "Worse and better go by the scores of one run each" in " ".join(result.stdout.split())


def test_with_repeats_the_report_says_what_counts_as_a_change(cli: Any, task: Path) -> None:
    """What runs of one prompt may differ by is none."""
    (task / "own.py").write_text(FLAKY, encoding="utf-8")
    result = cli("compare", task, "--model", "own:flaky", "--prompt", "other.txt", "--repeats", "3", "--no-cache")
    assert result.exit_code == 0, result.stderr
    assert re.search(r"^  2  got worse \(\d\)", result.stdout, re.MULTILINE)
    said = " ".join(result.stdout.split())
    assert "Each example was run 3 times with each prompt, and counts as worse or better where four of five" in said
    assert re.search(r" \d+ more differs? by less, as runs of one prompt do\.", said)


def test_ids_of_others_stay_in_their_lines(cli: Any, task: Path) -> None:
    """In the report; the document has them as they are."""
    rows = [json.loads(line) for line in (task / "val.jsonl").read_text(encoding="utf-8").splitlines()]
    names = ["a\nb\r\n```", "\x1b[2Jred", "[bold]x[/bold]", "y" * 10_000]
    for row, name in zip([row for row in rows if row["queue"] in ("billing", "account")], names):
        row["id"] = name
    (task / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    models = ("--model", "own:billing", "--model", "own:account")
    result = cli("compare", task, *models)
    assert result.exit_code == 0, result.stderr
    assert "\x1b" not in result.stdout
    assert not [line for line in result.stdout.splitlines() if line.strip().startswith("`")]
    assert max(map(len, result.stdout.splitlines())) <= 80
    changed = document(cli, task, *models)["arms"][1]["changed"]
    assert {each["id"] for each in (*changed["worse"], *changed["better"])} >= set(names)


def test_what_was_not_come_to_did_not_change(cli: Any, task: Path) -> None:
    """Where a budget ends the second one, it has lost no answers."""
    spent = cli("compare", task, "--prompt", "gifts.txt", "--budget-calls", "60", "--json")
    assert spent.exit_code == 3
    changed = json.loads(spent.stdout)["arms"][1]["changed"]
    assert (changed["lost"], changed["lost_before"]) == ([], [])
    assert "no answer" not in cli("compare", task, "--prompt", "gifts.txt", "--budget-calls", "60", "--no-cache").stdout


def test_lost_answers_are_named_beside_what_got_worse(cli: Any, task: Path) -> None:
    """They have no score, and what the reviewer looks for first."""
    (task / "own.py").write_text(OWN_MODEL + MUTE, encoding="utf-8")
    models = ("--model", "own:account", "--model", "own:mute")
    arms = document(cli, task, *models)["arms"]
    lost = [each["id"] for each in arms[1]["changed"]["lost"]]
    assert lost == [name for name, now in arms[1]["scores"].items() if now is None]
    assert f"  2  no answer ({len(lost)}): {lost[0]}, " in cli("compare", task, *models).stdout


@pytest.mark.parametrize("limit", [(), ("--budget-calls", "500")])
def test_a_log_learns_how_far_each_prompt_is(
    cli: Any, task: Path, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, ...]
) -> None:
    """On stderr, by name, at once or one by one; stdout is as it is, and who wants to hear nothing hears nothing."""
    monkeypatch.setattr(progress, "ScoreLines", lambda write: scoring.ScoreLines(write, itertools.count().__next__))
    args = (task, "--prompt", "gifts.txt", *limit)
    told = cli("compare", *args)
    assert told.exit_code == 0
    lines = told.stderr.splitlines()
    for name in ("the config's prompt", "prompt in gifts.txt"):
        own = [line for line in lines if line.startswith(name)]
        assert 2 <= len(own) <= 11
        assert own[-1].startswith(f"{name} 40/40, ")
    assert len(lines) == len([line for line in lines if re.match(r".+ \d+/40, (about )?[\d.]+ (s|min)", line)])
    assert "/40" not in told.stdout
    for option in ("--quiet", "--json"):
        assert cli("compare", *args, option).stderr == ""


def test_one_example_is_shown_in_full_with_what_each_prompt_made_of_it(cli: Any, task: Path) -> None:
    """From the answers that were kept, so nothing is asked; a long text is not cut, and keeps its lines."""
    rows = [json.loads(line) for line in (task / "val.jsonl").read_text(encoding="utf-8").splitlines()]
    rows[3]["ticket"] = f"First line.\n  indented\n{'word ' * 200}end."
    (task / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with LoopbackServer(TicketsModel(seed=0)) as server:
        args = ("small", "--prompt", "other.txt", "--model", "m", "--base-url", server.base_url)
        scores = [arm["scores"] for arm in document(cli, *args)["arms"]]
        asked = server.requests
        name = rows[3]["id"]
        shown = cli("compare", *args, "--example", name)
        assert (shown.exit_code, shown.stderr, server.requests) == (0, "", asked)
        found = document(cli, *args, "--example", name)
    assert f"small: {name} in val.jsonl" in shown.stdout
    assert "    ticket     First line.\n                 indented\n" in shown.stdout
    assert shown.stdout.count("word") == 200
    assert f"    expected   {rows[3]['queue']}\n" in shown.stdout
    for arm, of_all, title in zip(found["arms"], scores, ("the config's prompt", "prompt in other.txt")):
        assert arm["score"] == of_all[name]
        assert f"  {arm['number']}  {title}   {arm['score']:.3f}\n    said       {arm['said']}" in shown.stdout
    assert found["example"] == {"id": name, "row": rows[3], "expected": rows[3]["queue"]}
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_an_example_without_an_id_goes_by_its_place(cli: Any, task: Path) -> None:
    """As the report names it; with repeats each answer has its score, and a failed one says why."""
    (task / "own.py").write_text(OWN_MODEL + MUTE, encoding="utf-8")
    rows = [json.loads(line) for line in (task / "val.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in rows:
        del row["id"]
    (task / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    args = (task, "--model", "own:account", "--model", "own:mute", "--repeats", "2")
    arms = document(cli, *args)["arms"]
    lost = arms[1]["changed"]["lost"][0]["id"]
    shown = cli("compare", *args, "--example", lost)
    assert shown.exit_code == 0
    row = rows[list(arms[0]["scores"]).index(lost)]
    right = f"{row['queue'] == 'account':.3f}"
    assert f"  1  the config's prompt with own:account   {right}\n" in shown.stdout
    assert shown.stdout.count(f"    said {right} account\n") == 2
    assert "  2  the config's prompt with own:mute   no answer\n    said       " in shown.stdout
    found = document(cli, *args, "--example", lost)["arms"]
    assert (found[0]["samples"], found[0]["said"]) == ([float(right)] * 2, ["account"] * 2)
    assert found[1]["score"] is None
    assert "length" in found[1]["why"]


def test_an_example_is_named_as_the_report_shows_it(cli: Any, task: Path) -> None:
    """A long id is cut there, and copied from there; where that fits several, the whole one is asked for."""
    rows = [json.loads(line) for line in (task / "val.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows):
        row["id"] = f"corpus/tickets/shard-0001/{number}/document"
    rows[0]["id"], rows[1]["id"] = f"0f{'8' * 60}e1", "two\nlines"
    (task / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    args = (task, "--model", "own:billing", "--model", "own:account")
    for word, name in (("0f8888888888…8888888888e1", rows[0]["id"]), ("two lines", rows[1]["id"])):
        assert document(cli, *args, "--example", word)["example"]["id"] == name
    result = cli("compare", *args, "--example", "corpus/ticket…document")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "38 examples of val.jsonl are shown so; give the whole id of one, which --json has" in result.stderr


def test_a_program_gets_the_id_of_one_example_as_the_table_has_it(cli: Any, task: Path) -> None:
    """A number, as it looks something up by that; the table's rows are as they are."""
    rows = [json.loads(line) for line in (task / "val.jsonl").read_text(encoding="utf-8").splitlines()]
    numbered = [row | {"id": number} for number, row in enumerate(rows, 1)]
    (task / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in numbered), encoding="utf-8")
    names_a_program(
        task, OWN_PROGRAM.replace("ticket):", "ticket, id):").replace("ticket=ticket", "ticket={3: 'x'}[id]")
    )
    models = ("--model", "own:billing", "--model", "own:account")
    found = document(cli, task, *models, "--example", "3")
    assert (found["example"]["id"], found["example"]["row"]["id"]) == ("3", 3)
    assert [arm["said"] for arm in found["arms"]] == ["billing", "account"]


def test_of_one_example_no_number_and_no_name_of_a_field_is_cut(cli: Any, task: Path) -> None:
    """Two fields whose names begin alike are two; a repeat without an answer says nothing, and no null."""
    (task / "own.py").write_text(OWN_MODEL + UNSTEADY, encoding="utf-8")
    (task / "marks.py").write_text(
        "def much(prediction, target):\n    return 1234.5 + len(prediction)\n", encoding="utf-8"
    )
    text = (task / "config.toml").read_text(encoding="utf-8")
    text = text.replace('name = "exact_match"', 'function = "marks:much"\npurpose = "the length"')
    (task / "config.toml").write_text(text, encoding="utf-8")
    rows = [json.loads(line) for line in (task / "val.jsonl").read_text(encoding="utf-8").splitlines()]
    rows[0] |= {"id": "one", "customer_message_date": "2026-01-01", "customer_message_form": "a\nb"}
    (task / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    args = (task, "--model", "own:account", "--model", "own:unsteady", "--repeats", "2", "--example", "one")
    shown = cli("compare", *args).stdout
    assert "    customer_message_date 2026-01-01\n    customer_message_form a\n                          b\n" in shown
    assert "    said 1241.500 account\n    said 1241.500 account\n" in shown
    assert "    said 1241.500 billing\n    no answer\n" in shown


def test_what_no_cache_keeps_of_an_example_is_not_said_to_be_there(cli: Any, task: Path) -> None:
    """Nothing tells a model of one's own without `cache_key` from others."""
    args = (task, "--model", "own:account", "--prompt", "gifts.txt", "--budget-calls", "1")
    name = json.loads((task / "val.jsonl").read_text(encoding="utf-8").splitlines()[0])["id"]
    result = cli("compare", *args, "--example", name)
    assert (result.exit_code, "in the cache" in result.stderr) == (3, False)


def test_the_document_of_one_example_says_what_ended_the_command(cli: Any, task: Path) -> None:
    """As all do, beside what the other prompts made of it."""
    (task / "own.py").write_text(OWN_MODEL + BROKEN, encoding="utf-8")
    name = json.loads((task / "val.jsonl").read_text(encoding="utf-8").splitlines()[0])["id"]
    result = cli("compare", task, "--model", "own:account", "--model", "own:broken", "--example", name, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["exit_code"]) == (1, 1)
    assert "ValueError: own" in found["error"]
    assert [arm["said"] for arm in found["arms"]] == ["account", None]


def test_an_image_is_named_as_the_table_names_it(cli: Any, task: Path) -> None:
    """There is no other file of it, where no run folder keeps one."""
    folder = task.parent / "lamps"
    shutil.copytree(TICKETS.parent / "lamps", folder)
    row = json.loads((folder / "val.jsonl").read_text(encoding="utf-8").splitlines()[2])
    args = (folder, "--prompt", "gifts.txt", "--example", row["id"])
    assert f"    panel      {row['panel']}\n" in cli("compare", *args).stdout
    assert document(cli, *args)["example"]["row"] == row


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--example", "t11"), "--example 't11': val.jsonl has no example with this id; did you mean"),
        (("--example", "a\x1b[2J\nb"), r"--example 'a\x1b[2J\nb': val.jsonl has no example with this id"),
        (("--example", "t114", "--not-worse"), "--example shows one example, and --not-worse is a check of all"),
        (("--example", "t201", "--data", "small/test.jsonl"), "is a test example, and whoever changes a prompt by"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_anything_is_asked(
    cli: Any, task: Path, options: tuple[str, ...], message: str
) -> None:
    """Test examples among it: as by `show --examples`, none is shown."""
    test = json.loads((task / "test.jsonl").read_text(encoding="utf-8").splitlines()[0])["id"]
    result = cli("compare", "small", "--prompt", "gifts.txt", *[test if each == "t201" else each for each in options])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


def test_looking_at_one_example_is_no_evaluation_of_a_run(cli: Any, task: Path, trained: tuple[Path, Any]) -> None:
    """It leaves nothing in its folder; of its own test examples none is shown."""
    run = task.parent / "run"
    shutil.copytree(trained[0], run)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    name = json.loads((task / "val.jsonl").read_text(encoding="utf-8").splitlines()[0])["id"]
    shown = cli("compare", run, "--prompt", "gifts.txt", "--data", task / "val.jsonl", "--example", name)
    assert shown.exit_code == 0, shown.stderr
    assert "  1  best prompt   " in shown.stdout
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_what_others_wrote_into_an_example_moves_no_cursor(
    cli: Any, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor ends the block of a summary that holds it, wherever its lines are broken."""
    rows = [json.loads(line) for line in (task / "val.jsonl").read_text(encoding="utf-8").splitlines()]
    rows[0] |= {"id": "a\n```\x1b[31m", "ticket": "x\n```\n\x1b[2Jy\u202ez [bold]b[/bold]", "[red]no\n```te": "n"}
    (task / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for columns in range(len(str(task)) + 2, len(str(task)) + 14):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = cli("compare", task, "--prompt", "gifts.txt", "--example", rows[0]["id"])
        assert shown.exit_code == 0, shown.stderr
        assert not [line for line in shown.stdout.splitlines() if re.match(r" {0,3}`", line)]
        assert all(line.isprintable() for line in shown.stdout.splitlines())
        assert "[bold]b[/bold]" in shown.stdout


def test_the_report_says_how_a_lost_answer_is_looked_at(cli: Any, task: Path) -> None:
    """Why there is none is what one wants to know; where none is named, none can be shown."""
    (task / "own.py").write_text(OWN_MODEL + MUTE + FLAKY, encoding="utf-8")
    said = " ".join(cli("compare", task, "--model", "own:account", "--model", "own:mute").stdout.split())
    assert "2 got worse (0) 2 got better (0) 2 no answer (" in said
    assert "`--example ID` shows one of them in full, with each answer." in said
    flaky = ("--model", "own:flaky", "--prompt", "other.txt", "--repeats", "3", "--no-cache", "--data", "one.jsonl")
    row = json.loads((task / "val.jsonl").read_text(encoding="utf-8").splitlines()[0]) | {"queue": "billing"}
    Path("one.jsonl").write_text("".join(json.dumps(row | {"id": f"{n}"}) + "\n" for n in range(2)), encoding="utf-8")
    said = " ".join(cli("compare", task, *flaky).stdout.split())
    assert "2 got worse (0) 2 got better (0)" in said
    assert re.search(r" [12] more differs? by less", said)
    assert "--example" not in said


def test_the_report_says_how_one_of_them_is_shown(cli: Any, task: Path) -> None:
    """Not of test examples, which are not shown, nor where nothing changed."""
    said = "`--example ID` shows one of them in full, with each answer."
    assert said in " ".join(cli("compare", task, "--prompt", "other.txt").stdout.split())
    tested = cli("compare", task, "--prompt", "other.txt", "--data", task / "test.jsonl")
    assert "got worse" in tested.stdout
    assert "--example" not in tested.stdout
