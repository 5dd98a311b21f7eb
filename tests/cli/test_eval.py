"""``textgrad-engine eval``: the number that was printed, and what it is worth."""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import re
import shutil
import sys
import tempfile
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine
from textgrad_engine import llm
from textgrad_engine.cli import evaluate, evaluation_words, progress
from textgrad_engine.errors import BadRequest, ContentFiltered, ModelError, RunError, ServerFailed
from textgrad_engine.llm import Request, RetryPolicy
from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.report import scoring
from textgrad_engine.store import write_shrunk
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer
from textgrad_engine.train import Evaluation

TICKETS = Path(__file__).parents[2] / "examples" / "tickets"


@pytest.fixture
def run(trained: tuple[Path, Any]) -> Path:
    """A copy of the trained run, beside it, for this test alone."""
    path = trained[0].parent / "copy"
    if path.exists():
        shutil.rmtree(path)
    shutil.copytree(trained[0], path)
    return path


class Lossy:
    """Sorts tickets, but for the first ones that it is asked about, which it loses however often one asks.

    Attributes:
        lost: how many.
        error: what is said of these.
        asked: about which tickets.
    """

    def __init__(self) -> None:
        self.lost = 0
        self.error: ModelError = ServerFailed("503: try again later")
        self.asked: list[str] = []
        self.model = llm.resolve(FunctionModel(self._answer, name="lossy"), policy=RetryPolicy(max_attempts=1))

    def _answer(self, request: Request) -> str:
        ticket = request.messages[-1].text
        if ticket not in self.asked:
            self.asked.append(ticket)
        if self.asked.index(ticket) < self.lost:
            raise self.error
        return "billing"


@pytest.fixture
def lossy(monkeypatch: pytest.MonkeyPatch) -> Lossy:
    """The model ``lossy:model`` of configs and commands."""
    made = Lossy()
    monkeypatch.setitem(sys.modules, "lossy", made)
    return made


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """Fifty rows of the test split, for what is done several times."""
    file = tmp_path / "some.jsonl"
    file.write_text("\n".join(_rows("test")[:50]) + "\n", encoding="utf-8")
    return file


def test_a_run_that_is_not_there(cli: Any, tmp_path: Path) -> None:
    """Exit code 2; it may have been meant for a config, which can be evaluated and compared, too."""
    (tmp_path / "tickets").mkdir()
    (tmp_path / "tickets" / "config.toml").write_text("")
    for command in (("eval",), ("compare", "--model", "a", "--model", "b")):
        result = cli(command[0], tmp_path / "ticket", *command[1:])
        assert result.exit_code == 2
        assert f"{tmp_path / 'ticket'}: there is no such file; did you mean 'tickets'?" in result.stderr
        result = cli(command[0], tmp_path / "none" / "run", *command[1:])
        assert f"there is no folder {tmp_path / 'none'}; check the path" in result.stderr
    result = cli("compare", TICKETS, "--config", tmp_path / "ticket")
    assert f"--config {tmp_path / 'ticket'}: there is no such file; did you mean 'tickets'?" in result.stderr


def test_data_that_is_not_there(cli: Any, run: Path) -> None:
    """The file is named."""
    result = cli("eval", run, "--data", "new.jsonl")
    assert result.exit_code == 2
    assert "new.jsonl" in result.stderr


def test_data_that_is_not_where_the_run_folder_looks_for_it(cli: Any, run: Path, tmp_path: Path) -> None:
    """A run folder that was sent to somebody else knows its data by a path that leads nowhere there."""
    kept = json.loads((run / "config.json").read_text(encoding="utf-8"))
    (run / "config.json").write_text(json.dumps({**kept, "folder": str(tmp_path)}), encoding="utf-8")
    for command, split in (("eval", "test"), ("shrink", "val")):
        result = cli(command, run)
        assert result.exit_code == 2
        assert f"[data] {split} = '{split}.jsonl': " in result.stderr
        assert f"If the run folder was moved, put it back: {run} looks for its data" in result.stderr


def test_data_without_the_column(cli: Any, run: Path, tmp_path: Path) -> None:
    """File, line and column are named before anything is asked."""
    (tmp_path / "new.jsonl").write_text('{"ticket": "hello"}\n', encoding="utf-8")
    result = cli("eval", run, "--data", tmp_path / "new.jsonl")
    assert result.exit_code == 2
    assert "new.jsonl:1" in result.stderr
    assert "'queue'" in result.stderr


def test_a_run_from_python_has_no_config(cli: Any, run: Path) -> None:
    """It says what to do instead."""
    (run / "config.json").unlink()
    result = cli("eval", run)
    assert result.exit_code == 2
    assert "from Python, with tg.evaluate" in result.stderr


@pytest.mark.parametrize("kept", [{"config": "prod"}, {"config": {"metric": "exact"}}, {"stage": 3}])
@pytest.mark.parametrize(
    "asked", [("eval",), ("shrink",), ("resume",), ("show", "--by", "queue"), ("show", "--doubtful", "3")]
)
def test_what_python_keeps_of_a_run_is_no_config_of_a_command(
    cli: Any, run: Path, asked: tuple[str, ...], kept: dict[str, Any]
) -> None:
    """`RunFolder(path, config=...)` takes anything; it was called damaged, or ended with a traceback."""
    (run / "config.json").write_text(json.dumps({"format": 1, **kept}), encoding="utf-8")
    if asked[0] == "resume":
        (run / "result.json").unlink()  # else there is nothing to resume
    result = cli(asked[0], run, *asked[1:])
    told = " ".join(result.stderr.split())
    assert (result.exit_code, "as the run was started from Python" in told, "damaged, as" in told) == (2, True, False)


def test_a_damaged_config_is_named(cli: Any, run: Path) -> None:
    """Not a traceback."""
    body = json.loads((run / "config.json").read_text(encoding="utf-8"))
    del body["config"]["program"]
    (run / "config.json").write_text(json.dumps(body), encoding="utf-8")
    result = cli("eval", run)
    assert result.exit_code == 2
    assert "config.json: was damaged" in result.stderr


KEYS_OF_NOW = "[train] has no key 'warmup'"


@pytest.mark.parametrize("command", ["eval", "resume", "shrink"])
@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("99.0.0", "textgrad_engine 99.0.0 wrote it, and this is {here}: {wrong}; use the version that wrote it"),
        ("{here}", "is not as textgrad_engine {here} writes it: {wrong}; restore it, or use the version that wrote it"),
    ],
)
def test_a_run_with_a_setting_of_a_newer_version_is_not_called_damaged(
    cli: Any, run: Path, command: str, version: str, said: str
) -> None:
    """Whoever restored the file would find it as it was; what helps is the other version."""
    here = textgrad_engine.__version__
    if command == "resume":
        (run / "result.json").unlink()  # else there is nothing to resume
    body = json.loads((run / "config.json").read_text(encoding="utf-8"))
    body["version"] = version.format(here=here)
    body["config"]["train"]["warmup"] = 3
    (run / "config.json").write_text(json.dumps(body), encoding="utf-8")
    result = cli(command, run)
    assert result.exit_code == 2
    told = " ".join(result.stderr.split())
    assert f"config.json: {said.format(here=here, wrong=KEYS_OF_NOW)}" in re.sub(
        r"'warmup'; it knows [^;]*", "'warmup'", told
    )
    assert "damaged" not in told
    assert "pydantic" not in told


def test_a_run_without_a_test_split_needs_data(cli: Any, run: Path) -> None:
    """What validated it chose it, so nothing else is taken in its place."""
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    config["config"]["data"]["test"] = None
    (run / "config.json").write_text(json.dumps(config), encoding="utf-8")
    result = cli("eval", run)
    assert result.exit_code == 2
    assert "the run's config names no test split; name a file with --data FILE" in " ".join(result.stderr.split())


@pytest.mark.parametrize("least", ["nan", "1.5", "-0.1"])
def test_a_least_score_that_there_cannot_be(cli: Any, run: Path, least: str) -> None:
    """Exit code 2 before anything is asked: percent are no scores from 0 to 1, and nan is below nothing."""
    result = cli("eval", run, f"--at-least={least}")
    assert result.exit_code == 2
    assert "give a score from 0 to 1" in result.stderr
    assert not (run / "evals.jsonl").exists()


def test_a_score_below_the_least_has_an_exit_code_of_its_own(cli: Any, run: Path, figures: Any) -> None:
    """A check that runs every night tells a bad prompt from a run that failed."""
    measured = figures(run)["best_test"]
    low = cli("eval", run, "--at-least", str(measured + 0.01))
    assert low.exit_code == 4
    assert f"the score {measured:.3f} is below --at-least" in low.stderr
    assert f"  score   {measured:.3f} [" in low.stdout
    assert cli("eval", run, "--at-least", str(measured)).exit_code == 0
    assert json.loads(cli("eval", run, "--at-least", "1", "--json").stdout)["mean"] == measured


def test_a_score_that_is_the_least_but_for_rounding_is_enough() -> None:
    """The mean of three times 0.7 is 0.6999999999999998 for a computer."""
    same = Evaluation(("a", "b", "c"), (0.7, 0.7, 0.7), ("", "", ""), {})
    assert same.mean < 0.7
    assert not evaluation_words.short_of(same, 0.7)
    assert evaluation_words.short_of(same, 0.7001) == "the score 0.7000 is below --at-least 0.7001"


@pytest.mark.parametrize(
    ("scores", "scale", "least", "said"),
    [
        ((1.0, 1.0, None), None, 0.66, ""),
        (
            (1.0, 1.0, None),
            None,
            0.7,
            "the score 0.667 is below --at-least 0.7, with the lowest score for 1 missing answer",
        ),
        ((5.0, None, None), None, 3.0, "2 answers missing, so the score may be below --at-least 3"),
        ((-1.0, None), (-math.inf, 0.0), -3.0, "1 answer missing, so the score may be below --at-least -3"),
        ((5.0, 4.0), None, 3.0, ""),
    ],
)
def test_what_missing_answers_could_make_of_a_score(
    scores: tuple[float | None, ...], scale: tuple[float, float] | None, least: float, said: str
) -> None:
    """A check passes only where the lowest score there is would do; where nobody knows that, it does not."""
    names = tuple(f"e{n}" for n in range(len(scores)))
    found = Evaluation(names, scores, tuple("" if score is not None else None for score in scores), {}, scale=scale)
    assert evaluation_words.short_of(found, least) == said


def test_answers_that_are_missing_do_not_help_to_reach_the_least_score(cli: Any, run: Path) -> None:
    """Else a check would pass because the hard examples were refused."""
    body = json.loads((run / "config.json").read_text(encoding="utf-8"))
    with LoopbackServer(TicketsModel(seed=0), faults=lambda n: Fault(400) if n % 4 == 0 else None) as server:
        body["config"]["models"] = {"forward": "tickets", "base_url": server.base_url}
        (run / "config.json").write_text(json.dumps(body), encoding="utf-8")
        result = cli("eval", run, "--at-least", "0.9")
    assert result.exit_code == 4
    assert "with the lowest score for 28 missing answers" in result.stderr


def test_the_test_split_gives_the_number_that_was_printed(cli: Any, run: Path, figures: Any) -> None:
    """The result is real: it can be had again, exactly, from what is in the folder."""
    document = json.loads(cli("eval", run, "--json").stdout)
    assert document["mean"] == figures(run)["best_test"]
    assert document["split"] == "test"
    assert len(document["scores"]) == 113
    seed = json.loads(cli("eval", run, "--seed-prompt", "--json").stdout)
    assert seed["mean"] == figures(run)["seed_test"]
    best = cli("eval", run, "--data", TICKETS / "val.jsonl")
    assert f"{figures(run)['best_val']:.3f}" in best.stdout
    assert "this score flatters the prompt" in " ".join(best.stdout.split())


def test_each_opening_of_the_test_split_is_counted(cli: Any, run: Path) -> None:
    """Also when it is named as a file, from wherever."""
    first = " ".join(cli("eval", run).stdout.split())
    assert "opened 2 times so far" in first
    assert "no run counts this look" not in first
    assert "opened 3 times so far" in cli("eval", run, "--data", TICKETS / "test.jsonl").stdout
    assert "opened" not in cli("eval", run, "--data", TICKETS / "train.jsonl").stdout
    entries = [json.loads(line) for line in (run / "evals.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(entry["event"], entry["split"]) for entry in entries] == [
        (event, split) for split in ("test", "test", "train") for event in ("EvaluationStarted", "EvaluationEnded")
    ]
    assert [entry["status"] for entry in entries[1::2]] == ["finished"] * 3


def _rows(*splits: str) -> list[str]:
    return [row for split in splits for row in (TICKETS / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]


def test_rows_of_a_split_are_found_in_any_file(cli: Any, run: Path, tmp_path: Path) -> None:
    """The split and one row more, or a part of it, is still what the run worked with or is to be tested on."""
    new = json.dumps({"id": "new", "ticket": "Where is my parcel?", "queue": "shipping"})
    file = tmp_path / "some.jsonl"

    def evaluated(rows: list[str]) -> str:
        file.write_text("\n".join(rows) + "\n", encoding="utf-8")
        return " ".join(cli("eval", run, "--data", file).stdout.split())

    said = evaluated([*_rows("test"), new])
    assert "(113 rows of the run's test split)" in said
    assert "opened 2 times so far" in said
    assert "flatters the prompt" not in said
    said = evaluated([new, *_rows("train")[:3], _rows("test")[0]])
    assert "(3 rows of the run's training split and 1 row of the run's test split)" in said
    assert "opened 3 times so far" in said
    assert "The run worked with 3 rows of its training split, so this score flatters the prompt." in said
    other = [json.dumps({name: json.loads(row)[name] for name in ("queue", "ticket")}) for row in _rows("test")[:2]]
    assert "(2 rows of the run's test split)" in evaluated([*other, new])  # without ids, in another order of columns
    said = evaluated([new])
    assert "no split of the run" in said
    assert "opened" not in said
    body = json.loads((run / "config.json").read_text(encoding="utf-8"))
    del body["rows"]
    (run / "config.json").write_text(json.dumps(body), encoding="utf-8")
    assert "no split of the run" in evaluated([*_rows("test"), new])  # by a version that kept no such digests
    assert "test_openings" in json.loads(cli("eval", run, "--json").stdout)


def test_the_report_counts_the_openings_too(cli: Any, run: Path) -> None:
    """`show` says how often, whoever looked."""
    assert "The test set was opened once" in cli("show", run).stdout
    cli("eval", run, "--quiet")
    assert "The test set was opened 2 times" in cli("show", run).stdout
    assert json.loads(cli("show", run, "--json").stdout)["test_openings"] == 2


def test_repeats_and_clusters(cli: Any, run: Path, tmp_path: Path) -> None:
    """Each example as often as asked for, and the interval by the column that says what belongs together."""
    rows = [json.loads(line) for line in (TICKETS / "val.jsonl").read_text(encoding="utf-8").splitlines()[:9]]
    for number, row in enumerate(rows):
        row["thread"] = number // 3
    (tmp_path / "new.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    wanted = ("--data", tmp_path / "new.jsonl", "--repeats", 2)
    document = json.loads(cli("eval", run, *wanted, "--clusters", "thread", "--json").stdout)
    assert (document["examples"], document["repeats"], document["clusters"]) == (9, 2, 3)
    assert document["usage"]["calls"] == 18
    assert [len(item["samples"]) for item in document["scores"]] == [2] * 9
    shown = cli("eval", run, *wanted).stdout
    assert "9 examples, 2 samples each" in shown
    assert "from example to example" in shown
    lost = cli("eval", run, *wanted, "--clusters", "mail")
    assert lost.exit_code == 2
    assert "'mail'" in lost.stderr


def test_new_data_needs_nothing_but_the_run_folder(cli: Any, run: Path, tmp_path: Path) -> None:
    """A run folder that was taken elsewhere, without the training data, can still be used."""
    moved = tmp_path / "a" / "b" / "c"
    shutil.copytree(run, moved)
    rows = (TICKETS / "val.jsonl").read_text(encoding="utf-8").splitlines()[:5]
    (tmp_path / "new.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    result = cli("eval", moved, "--data", tmp_path / "new.jsonl")
    assert result.exit_code == 0, result.output
    assert "5 rows of the run's validation split" in result.stdout
    assert "5 examples" in result.stdout
    lost = cli("eval", moved)
    assert lost.exit_code == 2
    assert "test.jsonl" in lost.stderr


def test_quiet_says_one_line(cli: Any, run: Path, figures: Any) -> None:
    """Prompt, score and data, and how often the test split was looked at before."""
    result = cli("eval", run, "--quiet")
    assert result.stdout.startswith(f"{run}: best prompt {figures(run)['best_test']:.3f} [")
    assert result.stdout.endswith(" on test.jsonl, opened 1 time before\n")
    assert cli("eval", run, "--quiet").stdout.endswith(" on test.jsonl, opened 2 times before\n")
    other = cli("eval", run, "--data", TICKETS / "val.jsonl", "--quiet")
    flattered = "; the run worked with its validation split, which flatters the prompt"
    assert other.stdout.endswith(f" on {TICKETS / 'val.jsonl'}{flattered}\n")
    seed = cli("eval", run, "--data", TICKETS / "val.jsonl", "--seed-prompt", "--quiet")
    assert seed.stdout.endswith(f" on {TICKETS / 'val.jsonl'}\n")
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""


def test_quiet_says_how_many_answers_are_missing(cli: Any, run: Path, lossy: Any) -> None:
    """The mean of the others was printed as if it were that of all."""
    lossy.lost = 1
    one = cli("eval", run, "--model", "lossy:model", "--quiet")
    assert re.search(r" \d\.\d+ \[.*\] without 1 answer on test\.jsonl, opened", one.stdout)
    assert one.exit_code == 0


def test_another_model_can_be_asked(cli: Any, run: Path, figures: Any) -> None:
    """--base-url and --model go before what the run's config says."""
    with LoopbackServer(TicketsModel(seed=0)) as server:
        result = cli("eval", run, "--model", "mine", "--base-url", server.base_url)
        assert result.exit_code == 0, result.output
        assert server.requests == 113
    assert f"{figures(run)['best_test']:.3f}" in result.stdout
    assert "model   mine" in result.stdout
    assert "cost unknown" in result.stdout


def test_the_budget_of_the_run_was_the_runs(cli: Any, run: Path) -> None:
    """What training could spend says nothing of what an evaluation costs."""
    body = json.loads((run / "config.json").read_text(encoding="utf-8"))
    body["config"]["budget"]["calls"] = 10
    (run / "config.json").write_text(json.dumps(body), encoding="utf-8")
    result = cli("eval", run)
    assert result.exit_code == 0, result.output
    assert "Its [budget] is for train, and does not hold here" in " ".join(cli("eval", "--help").stdout.split())


def test_a_spent_budget_scores_what_was_answered(cli: Any, run: Path) -> None:
    """Exit code 3, with the mean of what was paid for and its bounds; the look at the test split is counted."""
    body = json.loads((run / "config.json").read_text(encoding="utf-8"))
    # The worst case of a call, which the budget must have room for.
    body["config"]["models"]["config"]["max_tokens"] = 60
    (run / "config.json").write_text(json.dumps(body), encoding="utf-8")
    with LoopbackServer(TicketsModel(seed=0)) as server:
        asked = ("eval", run, "--model", "gpt-5-mini", "--base-url", server.base_url, "--budget")
        result = cli(*asked, "0.004", "--json")
        document = json.loads(result.stdout)
        assert (result.exit_code, document["status"]) == (3, "budget")
        assert 0 < document["unanswered"] < 113
        assert document["unanswered"] + server.requests == 113
        low, high = document["bounds"]
        assert low < document["mean"] < high
        assert f"; {server.requests} of 113 examples got a score" in result.stderr
        assert "the budget of 0.004 dollars" in result.stderr
        assert "opened 2 times so far" in cli(*asked, "0.004").stdout  # the same look goes on
        started, ended = (run / "evals.jsonl").read_text(encoding="utf-8").splitlines()[:2]
        assert (json.loads(started)["event"], json.loads(ended)["mean"]) == ("EvaluationStarted", document["mean"])
        nothing = cli(*asked, "0.000001")
    assert (nothing.exit_code, nothing.stdout) == (2, "")
    assert "the budget of" in nothing.stderr


def test_calls_and_tokens_are_limited_as_well(cli: Any, run: Path) -> None:
    """Where a price is not known, these are all that there is."""
    for option, most in (("--budget-calls", 20), ("--budget-tokens", 40_000)):
        result = cli("eval", run, option, most, "--json")
        document = json.loads(result.stdout)
        assert (result.exit_code, document["status"]) == (3, "budget")
        used = document["usage"]
        assert 0 < (used["calls"] if option == "--budget-calls" else used["input_tokens"]) <= most


def test_what_cannot_be_recorded_is_not_paid_for(cli: Any, run: Path) -> None:
    """A run folder that cannot be written is found out beforehand."""
    (run / "evals.jsonl").mkdir()
    with LoopbackServer(TicketsModel(seed=0)) as server:
        result = cli("eval", run, "--model", "m", "--base-url", server.base_url)
        assert (result.exit_code, server.requests) == (2, 0)
    assert "the run folder cannot be written" in result.stderr


@pytest.fixture
def only_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run in a checkout that is only read; root may write to what only its mode protects."""

    def refuse(function: Any) -> Any:
        def refusing(*args: Any, **kwargs: Any) -> Any:
            place, flags = kwargs.get("dir", args[0] if args else ""), args[1] if len(args) > 1 else os.O_RDWR
            if isinstance(place, (str, Path)) and Path(place).is_relative_to(run) and flags & (os.O_RDWR | os.O_WRONLY):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(place))
            return function(*args, **kwargs)

        return refusing

    monkeypatch.setattr(os, "open", refuse(os.open))
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse(tempfile.TemporaryFile))
    return run


def test_a_run_folder_that_is_only_read_is_of_use_for_other_examples(cli: Any, only_read: Path) -> None:
    """A checkout of a build may be mounted so; a prompt can be checked there, and what is not kept is told."""
    before = sorted(only_read.rglob("*"))
    result = cli("eval", only_read, "--data", TICKETS / "val.jsonl", "--at-least", "0.5", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert (document["split"], document["test_openings"], document["examples"]) == ("val", None, 87)
    assert "the run folder cannot be written: " in result.stderr
    assert "nothing of this is kept there" in result.stderr
    ended = cli("eval", only_read, "--data", TICKETS / "val.jsonl", "--budget-calls", "20")
    assert ended.exit_code == 3
    assert "on record" not in ended.stderr
    assert sorted(only_read.rglob("*")) == before


@pytest.mark.parametrize("data", [(), ("--data", TICKETS / "test.jsonl")])
def test_a_look_at_the_test_split_that_cannot_be_counted_is_refused(
    cli: Any, only_read: Path, data: tuple[str | Path, ...]
) -> None:
    """Exit code 2, before anything is asked, with what can be done."""
    result = cli("eval", only_read, *data)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "looks at the test split are counted there, so evaluate on other examples, with --data FILE" in result.stderr


def test_what_can_be_recorded_no_longer_is_printed(cli: Any, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk may be full at the end; the result is paid for."""

    def append(folder: Path, entry: dict[str, Any]) -> None:
        if "mean" in entry:
            raise RunError("the run folder cannot be written: no space left")

    monkeypatch.setattr(evaluate, "append_evaluation", append)
    result = cli("eval", run, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["examples"] == 113
    assert "no space left" in result.stderr


def test_the_short_prompt_can_be_evaluated(cli: Any, run: Path, figures: Any) -> None:
    """What shrink wrote, by a name of its own in the record; without it there is nothing to evaluate."""
    lost = cli("eval", run, "--shrunk")
    assert lost.exit_code == 2
    assert "there is no short prompt" in lost.stderr
    assert not (run / "evals.jsonl").exists()
    short = json.loads((run / "result.json").read_text(encoding="utf-8"))["seed"]
    write_shrunk(run, short, {"after": short})
    document = json.loads(cli("eval", run, "--shrunk", "--json").stdout)
    assert (document["prompt"], document["test_openings"]) == ("shrunk", 2)
    assert document["mean"] == figures(run)["seed_test"] != figures(run)["best_test"]
    assert "shrunk prompt on" in cli("eval", run, "--shrunk").stdout
    assert cli("eval", run, "--shrunk", "--seed-prompt").exit_code == 2


def test_a_text_of_the_front_can_be_evaluated(cli: Any, run: Path, figures: Any) -> None:
    """Beside what the run and others have measured; one prompt at a time."""
    front = json.loads((run / "result.json").read_text(encoding="utf-8"))["front"]
    last = str(len(front))
    document = json.loads(cli("eval", run, "--front", last, "--json").stdout)
    assert (document["prompt"], document["mean"]) == (f"front {last}", figures(run)["seed_test"])
    assert [(each["prompt"], each["current"]) for each in document["earlier"]] == [("best", True), ("seed", True)]
    later = json.loads(cli("eval", run, "--json").stdout)
    assert (f"front {last}", True) in [(each["prompt"], each["current"]) for each in later["earlier"]]
    done = cli("eval", run, "--front", "1", "--shrunk", "--seed-prompt")
    assert (done.exit_code, "name 3 prompts; leave 2 of them out" in " ".join(done.stderr.split())) == (2, True)
    assert cli("eval", run, "--front", str(len(front) + 1)).exit_code == 2


def test_the_first_look_at_the_test_split_is_counted_as_one(cli: Any, run: Path) -> None:
    """Of a run that was killed before it tested: nobody looked but `eval`."""
    (run / "result.json").unlink()
    events = (run / "events.jsonl").read_text().splitlines(keepends=True)
    tested = next(number for number, line in enumerate(events) if json.loads(line).get("phase") == "test")
    (run / "events.jsonl").write_text("".join(events[:tested]))
    said = " ".join(cli("eval", run).stdout.split())
    assert "The test split was opened once so far. The more often" in said


# the prompt of a config


def test_a_config_is_evaluated_before_there_is_a_run(cli: Any, run: Path, figures: Any, small: Any) -> None:
    """How good is my prompt today? On the validation examples, as nothing is to be chosen by the others."""
    done = cli("eval", TICKETS)
    assert done.exit_code == 0, done.output
    assert f"{figures(run)['seed_val']:.3f}" in done.stdout
    assert "the config's prompt on val.jsonl (the config's validation split)" in done.stdout
    folder = small()
    before = sorted(path.name for path in folder.iterdir())
    assert cli("eval", folder / "config.toml", "--quiet").exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == before
    without = small(('val = "val.jsonl"\n', ""))
    document = json.loads(cli("eval", without, "--json").stdout)
    assert (document["config"], document["prompt"], document["data"]) == (str(without), "config", "train.jsonl")
    assert (document["split"], document["test_openings"]) == ("train", None)


def test_the_texts_of_two_configs_are_told_apart(cli: Any, small: Any, tmp_path: Path) -> None:
    """`text` was the same for all configs, so a script that keeps scores took a changed prompt for the one before."""
    folder = small()
    config = (folder / "config.toml").read_text(encoding="utf-8")
    system = tomllib.loads(config)["program"]["system"]
    (tmp_path / "same.txt").write_text(system, encoding="utf-8")
    named = ("--prompt", tmp_path / "same.txt")
    told = [json.loads(cli("eval", folder, *more, "--json").stdout)["text"] for more in ((), named)]
    assert told[0] == told[1]
    (folder / "config.toml").write_text(config.replace("You sort the", "Sort the"), encoding="utf-8")
    assert json.loads(cli("eval", folder, "--json").stdout)["text"] != told[0]


def test_a_look_at_the_test_examples_of_a_config_is_told(cli: Any, figures: Any, run: Path, tmp_path: Path) -> None:
    """Nobody counts it, and it flatters what is then changed; some of them in another file do, too."""
    done = cli("eval", TICKETS, "--data", TICKETS / "test.jsonl")
    assert f"{figures(run)['seed_test']:.3f}" in done.stdout
    assert "These are test examples of the config." in " ".join(done.stdout.split())
    some = (TICKETS / "test.jsonl").read_text(encoding="utf-8").splitlines()[:5]
    (tmp_path / "some.jsonl").write_text("\n".join(some) + "\n", encoding="utf-8")
    done = cli("eval", TICKETS, "--data", tmp_path / "some.jsonl")
    assert "(5 rows of the config's test split)" in " ".join(done.stdout.split())


@pytest.mark.parametrize("option", ["--seed-prompt", "--shrunk", "--front=1"])
def test_a_config_has_one_prompt(cli: Any, option: str) -> None:
    """The options that name another are refused."""
    done = cli("eval", TICKETS, option)
    assert done.exit_code == 2
    assert f"{option.removesuffix('=1')} is for runs" in done.stderr


def test_the_budget_of_a_config_is_for_training(cli: Any, small: Any) -> None:
    """And the least score is looked at as for a run."""
    folder = small(("calls = 5000", "calls = 3"))
    assert cli("eval", folder, "--at-least", "0.01").exit_code == 0
    assert cli("eval", folder, "--at-least", "0.99").exit_code == 4
    assert cli("eval", folder, "--budget-calls", "3").exit_code == 3


@pytest.mark.parametrize(("cache", "key"), [(("--cache",), "model.cache_key = 'own'"), (("--cache",), ""), ((), "")])
def test_an_evaluation_of_a_config_that_ends_early_says_what_the_cache_has(
    cli: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: tuple[str, ...], key: str
) -> None:
    """A job with a limit read that a part got a score, and not that the next one goes on; `compare` said so."""
    monkeypatch.setenv("TEXTGRAD_CACHE_DIR", str(tmp_path / "cache"))
    folder = small()
    own = "class Own:\n    name, free = 'own', True\n    async def complete(self, request):\n"
    own += (
        "        from textgrad_engine.llm import Completion\n        return Completion(text='billing')\nmodel = Own()\n"
    )
    (folder / "own.py").write_text(own + key, encoding="utf-8")
    asked = ("eval", folder, "--budget-calls", "8", "--model", "own:model", *cache)
    ended = cli(*asked)
    assert ended.exit_code == 3
    assert ("what was answered is in the cache: the same command goes on from there" in ended.stderr) is bool(key)
    assert cli(*asked).exit_code == (0 if key else 3)


def test_a_config_that_is_wrong_says_where(cli: Any, small: Any) -> None:
    """As for train."""
    folder = small(('target = "queue"', 'target = "que"'))
    done = cli("eval", folder)
    assert done.exit_code == 2
    assert "did you mean 'queue'?" in done.stderr


def test_a_line_that_is_to_stay_and_is_not_in_the_prompt_is_told_as_by_train(cli: Any, small: Any) -> None:
    """Before anything is asked: it was told only when training began, after the prompt had been measured."""
    folder = small(("max_edits = 12", 'max_edits = 12\n[optimizer.contracts]\nfrozen = ["Answer with the nmae."]'))
    told = [cli(command, folder) for command in ("eval", "train")]
    assert [done.exit_code for done in told] == [2, 2]
    assert "frozen: no prompt that is trained has the line 'Answer with the nmae.'; copy it" in told[0].stderr
    assert told[0].stderr == told[1].stderr


def test_one_that_did_not_come_to_its_end_goes_on_from_there(cli: Any, run: Path, some: Path) -> None:
    """Each answer is paid for once, whatever ended it: the budget, a key that was refused, a stop."""
    with LoopbackServer(TicketsModel(seed=0)) as server:
        whole = cli("eval", run, "--data", some, "--model", "m", "--base-url", server.base_url, "--json")
        calls = server.requests
    assert not (run / "unfinished").exists()
    before = sorted(run.iterdir())
    with LoopbackServer(TicketsModel(seed=0), faults=lambda n: Fault(401) if n == 31 else None) as server:
        asked = ("eval", run, "--data", some, "--model", "m", "--base-url", server.base_url)
        first = cli(*asked, "--budget-calls", "20")
        assert first.exit_code == 3
        said = " ".join(first.stderr.split())
        assert "20 of 50 examples got a score; what was answered is on record: the same command with a larger" in said
        assert said.endswith("with a larger --budget-calls goes on from there")
        again = cli(*asked, "--budget-calls", "20")
        assert (again.exit_code, server.requests) == (3, 20)
        assert "20 calls of before on record; only the rest is asked" in again.stderr
        refused = cli(*asked)
        assert refused.exit_code == 1
        assert len(list((run / "unfinished").iterdir())) == 1
        other = cli(*asked, "--seed-prompt", "--json")
        assert json.loads(other.stdout)["usage"]["calls"] == 50
        assert len(list((run / "unfinished").iterdir())) == 1
        last = cli(*asked, "--json")
        assert server.requests == 50 + calls + 1
    found, wanted = json.loads(last.stdout), json.loads(whole.stdout)
    assert (found["mean"], found["usage"], found["scores"]) == (wanted["mean"], wanted["usage"], wanted["scores"])
    assert sorted(run.iterdir()) == before
    # by the run, by the whole one, by the one of the seed prompt, and by the one of four starts
    assert (wanted["test_openings"], json.loads(other.stdout)["test_openings"], found["test_openings"]) == (2, 4, 4)
    assert json.loads(cli("show", run, "--json").stdout)["test_openings"] == 4


def test_what_the_endpoint_lost_can_be_asked_for_alone(cli: Any, run: Path, lossy: Any) -> None:
    """What was answered is not paid for again, and the look at the test split is the same; without --missing all is."""
    lossy.lost = 30
    first = cli("eval", run, "--model", "lossy:model")
    assert (first.exit_code, len(lossy.asked)) == (0, 113)
    said = " ".join(first.stdout.split())
    assert "30 examples without an answer left out" in said
    assert "opened 2 times so far" in said
    assert "The same command with --missing asks for what is lost alone." in said
    lossy.lost, lossy.asked = 10, []
    second = cli("eval", run, "--model", "lossy:model", "--missing", "--json")
    assert (second.exit_code, len(lossy.asked)) == (0, 30)
    assert json.loads(second.stdout)["unanswered"] == 10
    other = cli("eval", run, "--model", "lossy:model", "--seed-prompt", "--missing")
    assert other.exit_code == 2
    assert "no finished eval of the same prompt, examples and models lacks answers; leave out --missing" in " ".join(
        other.stderr.split()
    )
    lossy.lost, lossy.asked = 0, []
    last = json.loads(cli("eval", run, "--model", "lossy:model", "--missing", "--json").stdout)
    assert (len(lossy.asked), last["unanswered"], last["usage"]["calls"], last["test_openings"]) == (10, 0, 113, 2)
    assert not (run / "unfinished").exists()
    assert cli("eval", run, "--model", "lossy:model", "--missing").exit_code == 2
    assert len(lossy.asked) == 10


def test_all_is_asked_again_where_nobody_asks_for_what_is_missing_alone(cli: Any, run: Path, lossy: Any) -> None:
    """As it is another measurement; once it is whole, there is nothing left to ask for."""
    lossy.lost = 30
    cli("eval", run, "--model", "lossy:model")
    lossy.lost, lossy.asked = 0, []
    whole = cli("eval", run, "--model", "lossy:model", "--json")
    assert (len(lossy.asked), json.loads(whole.stdout)["test_openings"]) == (113, 3)
    assert not (run / "unfinished").exists()
    assert cli("eval", run, "--model", "lossy:model", "--missing").exit_code == 2


def test_what_is_missing_can_be_stopped_by_a_budget_and_goes_on(cli: Any, run: Path, lossy: Any) -> None:
    """By the same command with a larger one. What was lost may have been charged, so it counts, too."""
    lossy.lost = 30
    cli("eval", run, "--model", "lossy:model")
    lossy.lost, lossy.asked = 0, []
    asked = ("eval", run, "--model", "lossy:model", "--missing", "--budget-calls")
    assert cli(*asked, "113").exit_code == 3
    assert not lossy.asked
    assert cli(*asked, "130").exit_code == 3
    assert len(lossy.asked) == 17
    assert (cli(*asked, "200").exit_code, len(lossy.asked)) == (0, 30)
    assert not (run / "unfinished").exists()


def test_an_answer_that_another_time_would_be_the_same_is_not_missing(cli: Any, run: Path, lossy: Any) -> None:
    """The endpoint withheld it, so nothing is kept for it."""
    lossy.lost, lossy.error = 5, ContentFiltered("withheld")
    done = cli("eval", run, "--model", "lossy:model")
    assert "5 examples without an answer left out" in " ".join(done.stdout.split())
    assert "--missing" not in done.stdout
    assert not (run / "unfinished").exists()


@pytest.mark.parametrize(("mark", "value"), [("setting", "model"), ("unserved", True)])
def test_what_was_refused_as_the_model_was_gone_can_be_asked_for_alone(
    mark: str, value: Any, cli: Any, run: Path, lossy: Any
) -> None:
    """It says nothing of the examples, nor does a gateway that is restarted: what was answered stays paid for."""
    lossy.lost, lossy.error = 30, BadRequest("no such model", status=404)
    setattr(lossy.error, mark, value)
    assert "with --missing asks for what is lost alone" in " ".join(
        cli("eval", run, "--model", "lossy:model").stdout.split()
    )
    lossy.lost, lossy.asked = 0, []
    found = json.loads(cli("eval", run, "--model", "lossy:model", "--missing", "--json").stdout)
    assert (len(lossy.asked), found["unanswered"]) == (30, 0)


def test_a_verdict_by_scores_without_known_ends_says_what_it_cannot_allow_for(
    cli: Any, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the report of the run says it of its own."""
    points = types.ModuleType("points")
    points.five = lambda answer, queue: 5.0 * (answer == queue)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "points", points)
    kept = json.loads((run / "config.json").read_text(encoding="utf-8"))
    kept["config"]["metric"] = {"function": "points:five", "purpose": "points for the right queue"}
    (run / "config.json").write_text(json.dumps(kept), encoding="utf-8")
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    for name in ("seed_test", "best_test"):
        result[name] |= {"scale": None, "scores": [5 * each for each in result[name]["scores"]]}
    (run / "result.json").write_text(json.dumps(result), encoding="utf-8")
    said = " ".join(cli("eval", run, "--seed-prompt").stdout.split())
    assert "The scale of the scores is not known, so rare large changes" in said


def test_a_config_has_nothing_missing(cli: Any, small: Any) -> None:
    """As nothing is kept of it."""
    done = cli("eval", small(), "--missing")
    assert (done.exit_code, "--missing goes on with what a run folder keeps" in done.stderr) == (2, True)


def test_a_folder_that_is_only_read_has_nothing_missing(cli: Any, only_read: Path) -> None:
    """Likewise, and nothing is asked."""
    done = cli("eval", only_read, "--data", TICKETS / "val.jsonl", "--missing")
    assert (done.exit_code, "--missing goes on with what a run folder keeps" in done.stderr) == (2, True)


def test_a_cache_answers_it(cli: Any, run: Path, some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was answered once with --cache is not paid for again."""
    monkeypatch.setenv("TEXTGRAD_CACHE_DIR", str(tmp_path / "cache"))
    with LoopbackServer(TicketsModel(seed=0)) as server:
        asked = ("eval", run, "--data", some, "--model", "m", "--base-url", server.base_url, "--cache", "--json")
        found = [json.loads(cli(*asked).stdout)["mean"] for _ in range(2)]
        assert found[0] == found[1]
        assert server.requests == 50


def test_what_the_same_examples_gave_before_stands_beside_it(cli: Any, run: Path, figures: Any, tmp_path: Path) -> None:
    """The run's own test, another model, and other data by themselves: whether one is worse is told pair by pair."""
    seed = cli("eval", run, "--seed-prompt")
    assert f"{figures(run)['best_test']:.3f}   -" in seed.stdout
    assert "worse      best prompt, in the run" in seed.stdout
    assert "Not shown is not the same as equal: with n = 113 a difference under" in " ".join(seed.stdout.split())
    with LoopbackServer(TicketsModel(seed=0)) as server:
        address = server.base_url
        result = cli("eval", run, "--model", "mine", "--base-url", address, "--json")
        shown = cli("eval", run, "--model", "mine", "--base-url", address)
    assert "best prompt, simulated/tickets, at the usual endpoint, in the run" in " ".join(shown.stdout.split())
    best, its_seed, again = json.loads(result.stdout)["earlier"]
    assert (best["prompt"], best["time"], best["comparison"]["difference"]) == ("best", None, 0.0)
    assert its_seed["comparison"]["verdict"] == again["comparison"]["verdict"] == "better"
    assert again["time"] is not None
    said = cli("eval", run).stdout
    assert "seed prompt, in the run\n" in said
    assert "got worse" not in said  # beside the best prompt in the run, which is the same
    seed_first = json.loads(result.stdout)["earlier"][1]["changed"]
    assert f"got worse ({len(seed_first['better'])}): {seed_first['better'][0]['id']}, " in seed.stdout
    assert f"best prompt, mine, at {address}," in " ".join(said.split())
    assert all(len(line) <= 80 for line in said.splitlines() if line[:2] == "  " and address not in line)
    rows = (TICKETS / "val.jsonl").read_text(encoding="utf-8").splitlines()[:5]
    (tmp_path / "new.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert "pair by pair" not in cli("eval", run, "--data", tmp_path / "new.jsonl").stdout
    assert "pair by pair" in cli("eval", run, "--data", tmp_path / "new.jsonl").stdout


def test_what_is_worse_than_the_run_has_an_exit_code_where_that_is_asked(cli: Any, run: Path) -> None:
    """A script tries a cheaper model, or last month's endpoint: equal is no failure, and not shown is none."""
    assert cli("eval", run, "--not-worse").exit_code == 0
    assert cli("eval", run, "--seed-prompt").exit_code == 0
    worse = cli("eval", run, "--seed-prompt", "--not-worse")
    assert worse.exit_code == 4
    assert re.search(r"worse than the best prompt in the run: -0\.\d{3} \[-.*\] on 113 examples", worse.stderr)
    assert "score" in worse.stdout
    assert "beside the best prompt, in the run\n  got worse (" in worse.stdout
    both = cli("eval", run, "--seed-prompt", "--not-worse", "--at-least", "0.9", "--quiet")
    assert both.exit_code == 4
    assert "worse than the best prompt" in both.stderr
    assert "is below --at-least 0.9" in both.stderr


def test_answers_that_are_missing_are_worse_where_chance_loses_fewer(cli: Any, run: Path) -> None:
    """A model that refuses a quarter of the examples is not as good on the rest."""
    with LoopbackServer(TicketsModel(seed=0), faults=lambda n: Fault(400) if n % 4 == 0 else None) as server:
        result = cli("eval", run, "--model", "tickets", "--base-url", server.base_url, "--not-worse")
    assert result.exit_code == 4
    lost = r"\d+ examples lack an answer that the best prompt had in the run, which is rare by chance \(5%\)"
    assert re.search(lost, result.stderr)


def test_whether_it_is_worse_is_asked_only_where_that_can_be_told(cli: Any, run: Path) -> None:
    """Before anything is paid for: other examples, a config, and a run without a test tell nothing."""
    for args, why in (
        ((run, "--data", TICKETS / "val.jsonl"), "the run has measured its test split, and these are other examples"),
        ((TICKETS,), "--not-worse is for runs, whose result it compares with; `compare` tells of two prompts"),
    ):
        result = cli("eval", *args, "--not-worse")
        assert result.exit_code == 2
        assert why in " ".join(result.stderr.split())
        assert "see --at-least" in result.stderr
    assert not (run / "evals.jsonl").exists()
    body = json.loads((run / "result.json").read_text(encoding="utf-8"))
    for lost in ("best_test", "seed_test"):
        body[lost] = None
        (run / "result.json").write_text(json.dumps(body), encoding="utf-8")
        result = cli("eval", run, "--not-worse")
        assert result.exit_code == 2
        assert "the run has no result of its best prompt on its test split" in " ".join(result.stderr.split())
    result = cli("eval", run, "--data", TICKETS / "val.jsonl", "--not-worse")
    assert result.exit_code == 2
    assert "the run has measured nothing on a test split" in " ".join(result.stderr.split())


def test_a_metric_that_was_changed_since_the_run_is_told(
    cli: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scores stand beside those of then, under one name."""
    folder = small(('name = "exact_match"', 'function = "score:same"\npurpose = "the queue"'))
    code = "def same(prediction, target):\n    return float(prediction.strip() == target)\n"
    (folder / "score.py").write_text(code, encoding="utf-8")
    path = tmp_path / "run"
    assert cli("train", folder, "--run-dir", path, "--quiet").exit_code == 0
    assert "note:" not in cli("eval", path).stderr
    (folder / "score.py").write_text(code.replace("float", "0.5 * float"), encoding="utf-8")
    for name in [name for name in sys.modules if name.startswith("_config_") and name.endswith("_score")]:
        monkeypatch.delitem(sys.modules, name)  # as in a process of its own
    result = cli("eval", path, "--json")
    assert "score.py was changed since the run was begun, and is used as it is now" in " ".join(result.stderr.split())
    assert json.loads(result.stdout)["earlier"][0]["comparison"]["difference"] < 0


def test_of_what_was_ended_early_nothing_is_compared(cli: Any, run: Path) -> None:
    """Neither now nor later: it is of the first examples alone."""
    ended = cli("eval", run, "--budget-calls", 20)
    assert ended.exit_code == 3
    assert "pair by pair" not in ended.stdout
    document = json.loads(cli("eval", run, "--json").stdout)
    assert [each["time"] for each in document["earlier"]] == [None, None]


def test_a_log_learns_how_far_it_is(cli: Any, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that says nothing for minutes looks as if it hung; stdout has the result alone."""
    monkeypatch.setattr(progress, "ScoreLines", lambda write: scoring.ScoreLines(write, itertools.count().__next__))
    for args in ((str(TICKETS),), (str(run), "--data", str(TICKETS / "val.jsonl"), "--repeats", "2")):
        told = cli("eval", *args)
        lines = told.stderr.splitlines()
        total = 87 * (1 + ("--repeats" in args))
        assert 5 <= len(lines) <= 11
        assert all(re.match(rf"evaluate \d+/{total}, (about )?[\d.]+ (s|min)", line) for line in lines)
        assert lines[-1].startswith(f"evaluate {total}/{total}, ")
        assert "evaluate" not in told.stdout
        for option in ("--quiet", "--json"):
            assert cli("eval", *args, option).stderr == ""
