"""``textgrad-engine resume``: the result of a whole run, whatever ended it, and nothing paid for twice."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine import nn, optim, use_models
from textgrad_engine.cli import run_data
from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.store import RunFolder, read_run
from textgrad_engine.store.lock import Lock
from textgrad_engine.store.paid import numbers_aside, paid_for
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer
from textgrad_engine.train import Trainer
from textgrad_engine.train.events import Evaluated, Event

from .test_interrupt import start, wait_for_a_question, wait_for_line
from .test_interrupt_points import at_event
from .test_train import TICKETS, timeless


class Killed(Exception):
    """The process is no more."""


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has the next run be killed when it has written down so many events, calls included; 0 is never.

    They are counted from the first event of a kind, if one is named.
    """
    real, dead = RunFolder.on_event, list[RunFolder]()

    def at(number: int, after: type = object) -> None:
        written, begun = itertools.count(1), False

        def on_event(self: RunFolder, event: Event) -> None:
            nonlocal begun
            begun = begun or isinstance(event, after)
            if self not in dead and number and begun and next(written) > number:
                dead.append(self)
            if self in dead:
                raise Killed
            real(self, event)

        monkeypatch.setattr(RunFolder, "on_event", on_event)

    return at


SEARCH = (
    ('name = "TGD"\nmax_edits = 12', 'name = "PatchSearch"\nlanes = 4\n'),
    ("max_epochs = 1\n", "max_steps = 8\n"),
    ("batch_size = 6\n", ""),
)


def killed(cli: Any, *args: Any) -> bool:
    """Whether a command was killed."""
    try:
        cli(*args)
    except Killed:
        return True
    return False


@pytest.mark.parametrize(("optimizer", "first"), [("TGD", 1), ("PatchSearch", 15)])
def test_killed_anywhere_it_ends_as_if_it_had_not_been(
    cli: Any, small: Any, tmp_path: Path, dying: Any, optimizer: str, first: int
) -> None:
    """Steps and searches in several lanes, by turns: every file but for its times, and calls are bought once."""
    folder = small(*([] if optimizer == "TGD" else SEARCH))
    whole = tmp_path / "whole"
    assert cli("train", folder, "--quiet", "--run-dir", whole).exit_code == 0
    assert (whole / "best_prompt.txt").read_bytes() != (whole / "seed" / "system.txt").read_bytes()
    every = len(list(paid_for(whole)))
    events = every + sum(1 for event in read_run(whole).events if event["event"] != "RunEnded")
    for number in range(first, events, events // 3):
        path = tmp_path / str(number)
        dying(number)
        assert killed(cli, "train", folder, "--quiet", "--run-dir", path)
        bought = len(list(paid_for(path)))
        dying(0)
        result = cli("resume", path)
        assert result.exit_code == 0, result.stderr
        assert f"Of {every:,} calls, {bought:,} had been paid for before" in result.stderr
        assert "did not come up again" not in result.stderr
        assert timeless(path) == timeless(whole)


@pytest.mark.parametrize("number", [1, 4, 15])
def test_killed_when_the_seed_prompt_was_just_validated_nothing_has_changed(
    cli: Any, small: Any, tmp_path: Path, dying: Any, number: int
) -> None:
    """A search goes on with the same examples of the same prompt, and not all of them had an answer."""
    folder, path = small(*SEARCH), tmp_path / "run"
    dying(number, Evaluated)
    assert killed(cli, "train", folder, "--quiet", "--run-dir", path)
    dying(0)
    result = cli("resume", path, "--quiet")
    assert result.exit_code == 0, result.stderr


def test_killed_while_it_is_resumed_it_is_resumed_again(cli: Any, small: Any, tmp_path: Path, dying: Any) -> None:
    """From what all of them had paid for."""
    folder, whole, path = small(*SEARCH), tmp_path / "whole", tmp_path / "run"
    cli("train", folder, "--quiet", "--run-dir", whole)
    bought = 0
    for number, command in (
        (150, ("train", folder, "--run-dir", path)),
        (40, ("resume", path)),
        (160, ("resume", path)),
    ):
        dying(number)
        assert killed(cli, *command, "--quiet")
        before, bought = bought, sum(not paid.again for paid in paid_for(path))
        assert bought >= before
    dying(0)
    document = json.loads(cli("resume", path, "--json").stdout)
    assert document["resumed"]["played_back"]["calls"] == bought
    assert document["resumed"]["not_asked_again"]["calls"] == 0
    assert timeless(path) == timeless(whole)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise on Windows")
def test_the_command_itself_is_ended_and_resumed(cli: Any, small: Any, tmp_path: Path) -> None:
    """The real process, with a real server: where it can, it prints the result so far, with an exit code of its own.

    Only what was under way is asked again.
    """
    folder, whole = small(("max_epochs = 1", "max_epochs = 2")), tmp_path / "whole"
    with LoopbackServer(TicketsModel(seed=0)) as server:
        assert cli("train", folder, "--base-url", server.base_url, "--quiet", "--run-dir", whole).exit_code == 0
    expected = timeless(whole)
    for sent in (signal.SIGKILL, signal.SIGINT):
        path = tmp_path / sent.name
        with (
            LoopbackServer(TicketsModel(seed=0), latency=0.05) as server,
            start(tmp_path, "train", str(folder), "--base-url", server.base_url, "--run-dir", str(path)) as process,
        ):
            wait_for_line(process.stderr, "step 2/4")
            process.send_signal(sent)
            stdout, stderr = process.communicate(timeout=60)
        found = read_run(path)
        if sent == signal.SIGKILL:
            assert (process.returncode, found.result) == (-sent, None)
        else:
            assert process.returncode == 128 + sent, stderr
            assert "stopping: waiting for answers in flight; Ctrl-C again gives them up" in stderr
            assert f"`textgrad-engine resume {path}` goes on with it." in stderr
            assert "Interrupted after" in stdout
            assert "test         not measured" in stdout
            assert "\n  + " in stdout
            assert "Traceback" not in stderr
            assert found.result is not None
            assert found.result.status == "interrupted"
            assert len(list(found.completions())) == found.result.total.calls
            best = (path / "best_prompt.txt").read_text(encoding="utf-8")
            assert best == found.result.best["system"] != found.seed["system"]
        bought = len(list(paid_for(path)))
        with LoopbackServer(TicketsModel(seed=0)) as server:
            result = cli("resume", path, "--base-url", server.base_url)
            assert result.exit_code == 0, result.stderr
            assert server.requests == len(list(paid_for(whole))) - bought
            kept = json.loads((path / "config.json").read_text(encoding="utf-8"))["config"]
            assert kept["models"]["base_url"] == server.base_url
        resumed = timeless(path)
        for name in resumed.keys() - {"config.json"}:  # the address is another one
            assert resumed[name] == expected[name], name
        assert resumed.keys() == expected.keys()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise on Windows")
def test_sigterm_while_it_is_resumed_keeps_what_was_paid_for(cli: Any, small: Any, tmp_path: Path, dying: Any) -> None:
    """As Ctrl-C does in train: the result so far, and the way on."""
    folder, path = small(), tmp_path / "run"
    dying(60)
    assert killed(cli, "train", folder, "--run-dir", path)
    dying(0)
    bought = len(list(paid_for(path)))
    with (
        LoopbackServer(TicketsModel(seed=0), latency=0.3) as server,
        start(tmp_path, "resume", str(path), "--base-url", server.base_url) as process,
    ):
        wait_for_a_question(server, process)
        with pytest.raises(Exception, match=f"process {process.pid} is at work on this run"):
            Lock(path)
        refused = cli("resume", path)
        assert (refused.exit_code, "is at work on this run; wait for its end" in refused.stderr) == (2, True)
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 143, stderr
    assert "stopping: waiting for answers in flight; SIGTERM again gives them up" in stderr
    assert "Ctrl-C" not in stderr  # nobody may sit there
    assert "Interrupted after" in stdout or "Interrupted before" in stdout
    assert f"`textgrad-engine resume {path}` goes on with it." in stderr
    assert sum(not paid.again for paid in paid_for(path)) > bought
    with LoopbackServer(TicketsModel(seed=0), faults=lambda n: Fault(401)) as server:
        assert cli("resume", path, "--base-url", server.base_url, "--quiet").exit_code == 1
    assert sum(not paid.again for paid in paid_for(path) if "text" in paid.entry) > bought


@pytest.mark.parametrize(("optimizer", "first"), [("TGD", 1), ("PatchSearch", 4)])
def test_ctrl_c_twice_at_any_event_of_a_resume_loses_nothing(
    cli: Any, small: Any, tmp_path: Path, optimizer: str, first: int
) -> None:
    """What was paid for only grows, and the end is that of a whole run."""
    folder = small(("max_epochs = 1", "max_epochs = 1\nmax_steps = 1"), rows=6)
    whole, cut, path = tmp_path / "whole", tmp_path / "cut", tmp_path / "run"
    cli("train", folder, "--quiet", "--optimizer", optimizer, "--run-dir", whole)
    with at_event(8, 2):
        assert cli("train", folder, "--quiet", "--optimizer", optimizer, "--run-dir", cut).exit_code == 130
    bought = len(list(paid_for(cut)))
    for number in itertools.count(first, 6):
        shutil.copytree(cut, path)
        with at_event(number, 2) as pressed:
            result = cli("resume", path, "--quiet")
        assert sum(not paid.again for paid in paid_for(path)) >= bought
        if not pressed.was:
            break
        assert result.exit_code == 130
        assert cli("resume", path, "--quiet").exit_code == 0
        assert timeless(path) == timeless(whole)
        shutil.rmtree(path)
    assert number > 5


def test_a_resume_that_is_killed_early_takes_no_result_from_the_folder(
    cli: Any, small: Any, tmp_path: Path, dying: Any
) -> None:
    """show, eval and shrink find what they found before, and who looks hears why."""
    path = tmp_path / "run"
    assert cli("train", small(), "--budget-calls", 80, "--quiet", "--run-dir", path).exit_code == 3
    before, best = cli("show", path), (path / "best_prompt.txt").read_text(encoding="utf-8")
    dying(20)
    assert killed(cli, "resume", path, "--budget-calls", 9000)
    dying(0)
    now = cli("show", path)
    assert (now.exit_code, now.stdout) == (before.exit_code, before.stdout)
    assert now.stderr.startswith(
        "note: the run was resumed, but is not yet as far as before; this shows how far it was"
    )
    assert (path / "best_prompt.txt").read_text(encoding="utf-8") == best
    assert json.loads(cli("show", path, "--json").stdout)["status"] == "budget"
    assert cli("eval", path).exit_code == 0
    assert cli("resume", path, "--quiet").exit_code == 0
    assert "note:" not in cli("show", path).stderr


def test_calls_that_are_gone_are_bought_again_on_request_only(cli: Any, small: Any, cut: Path, tmp_path: Path) -> None:
    """A file that was emptied is no word of consent."""
    whole = tmp_path / "whole"
    assert cli("train", tmp_path / "small", "--quiet", "--run-dir", whole).exit_code == 0
    (cut / "completions.jsonl").write_bytes(b"")
    before = timeless(cut)
    result = cli("resume", cut)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "calls that were paid for can no longer be found" in result.stderr
    assert f"restore it, or have them bought again: textgrad-engine resume {cut} --anyway" in result.stderr
    assert timeless(cut) == before
    assert cli("resume", cut, "--anyway", "--quiet").exit_code == 0
    assert timeless(cut) == timeless(whole)


def test_a_finished_run_is_said_to_be_finished(cli: Any, trained: tuple[Path, Any]) -> None:
    """A script may call it as often as it likes."""
    path = trained[0]
    before = timeless(path)
    result = cli("resume", path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        f"{path} is finished, so there is nothing to resume; `textgrad-engine show {path}` prints its result\n"
    )
    quiet = cli("resume", path, "--quiet")
    assert quiet.stderr == ""
    assert quiet.stdout.startswith(f"{path}: val 0.")
    assert json.loads(cli("resume", path, "--json").stdout) == json.loads(cli("show", path, "--json").stdout)
    assert timeless(path) == before


def test_a_budget_below_what_is_on_record_is_told_before_anything(cli: Any, small: Any, tmp_path: Path) -> None:
    """Nothing can be bought with it, and it is not the option that would go on with the run."""
    path = tmp_path / "run"
    assert cli("train", small(), "--run-dir", path, "--budget-calls", 30).exit_code == 3
    told = " ".join(cli("resume", path, "--budget-calls", 20).stderr.split())
    assert "The budget has room for 20 calls, but the 30 calls on record count in it: nothing new is" in told


def test_a_finished_run_whose_test_was_kept_short_is_tested_further(cli: Any, small: Any, tmp_path: Path) -> None:
    """`train`, `show` and `resume` name what does that, and without a larger budget nothing is begun."""
    path = tmp_path / "run"
    config = small(("batch_size = 6", "batch_size = 12\nmax_steps = 1"), rows=80)
    trained = cli("train", config, "--run-dir", path, "--budget-calls", 300)
    result = read_run(path).result
    assert result is not None
    assert result.kept_short
    assert result.best_test is not None
    assert trained.exit_code == 0
    larger = f"`textgrad-engine resume {path} --budget-calls N` goes on with a larger budget."
    before = timeless(path)
    for told in (trained, cli("show", path), cli("resume", path)):
        assert told.stderr.endswith(f"{larger}\n")
    assert timeless(path) == before
    assert cli("resume", path, "--budget-calls", 5000).exit_code == 0
    again = read_run(path)
    assert again.result is not None
    assert again.result.best_test is not None
    assert len(result.best_test) < len(again.result.best_test) == 80
    assert (again.finished, again.result.untested) == (True, "")


def test_what_is_no_run_to_resume_is_refused(cli: Any, tmp_path: Path) -> None:
    """No folder, no run folder, a run from Python: each with what to do."""
    assert "there is no such run folder" in cli("resume", tmp_path / "none").stderr
    assert "this is no run folder" in cli("resume", tmp_path).stderr
    program = nn.ChatCompletion("{word}", system=nn.Parameter("x", role="system prompt"))
    rows = [{"word": word, "target": word} for word in "abcd"]

    def fail(request: Any) -> Any:
        raise KeyboardInterrupt if request.purpose == "backward" else ValueError("no good")

    with use_models(forward=FunctionModel(fail)), pytest.raises(ValueError, match="no good"):
        Trainer(run_dir=tmp_path / "run").fit(
            program, nn.ExactMatch(), optim.TGD(program.parameters()), rows[:2], rows[2:]
        )
    result = cli("resume", tmp_path / "run")
    assert result.exit_code == 2
    assert "or go on with it, with tg.Trainer(run_dir=..., resume=True)" in result.stderr
    shown = cli("show", tmp_path / "run").stdout
    assert "tg.Trainer(run_dir=..., resume=True) begins it, as nothing is on record" in shown


@pytest.fixture
def cut(cli: Any, small: Any, tmp_path: Path, dying: Any) -> Path:
    """A run that was killed after its first validation."""
    path = tmp_path / "run"
    dying(60)
    assert killed(cli, "train", small(), "--run-dir", path)
    dying(0)
    return path


def test_a_look_at_the_test_set_before_the_run_came_to_its_end_is_counted_at_its_end(cli: Any, cut: Path) -> None:
    """Who evaluates what a killed run had, and goes on with it, is not told that the test set was opened once."""
    assert cli("eval", cut).exit_code == 0
    resumed = cli("resume", cut)
    assert resumed.exit_code == 0, resumed.stderr
    said = "The test set was opened 2 times, by the run at its end and by evaluations of it."
    assert said in " ".join(resumed.stdout.split())
    document = json.loads(cli("show", cut, "--json").stdout)
    assert document["test_openings"] == 2


def test_an_evaluation_of_a_run_without_a_result_says_so(cli: Any, cut: Path) -> None:
    """What was the best prompt when a run was killed may be the seed prompt, and is no result of it."""
    said = f"note: {cut}: no result: it was killed after 0 steps; this is the best prompt so far"
    for more in ((), ("--json",)):
        assert said in cli("eval", cut, *more).stderr
    assert f"{cut}: best prompt so far on test.jsonl" in cli("eval", cut).stdout
    quiet = cli("eval", cut, "--quiet")
    assert (quiet.stdout.startswith(f"{cut}: best prompt so far 0."), quiet.stderr) == (True, "")
    assert "so far" not in cli("eval", cut, "--seed-prompt", "--quiet").output
    assert cli("resume", cut, "--quiet").exit_code == 0
    after = cli("eval", cut)
    assert ("note:" in after.stderr, "best prompt so far" in after.stdout) == (False, False)


def test_the_document_of_a_resume_counts_the_looks_that_show_counts(cli: Any, cut: Path) -> None:
    """A script reads the same number, whichever command gave it."""
    assert cli("eval", cut).exit_code == 0
    assert json.loads(cli("resume", cut, "--json").stdout)["test_openings"] == 2


def test_a_budget_without_room_for_one_call_leaves_the_run_as_it_was(cli: Any, cut: Path) -> None:
    """Who mistyped it has lost nothing."""
    before = {file: file.read_bytes() for file in cut.rglob("*") if file.is_file()}
    resumed = cli("resume", cut, "--budget-tokens", 1)
    assert (resumed.exit_code, f"The run in {cut} is as it was before." in resumed.stderr) == (2, True)
    assert {file: file.read_bytes() for file in cut.rglob("*") if file.is_file()} == before


def test_killed_before_its_first_event_it_begins(cli: Any, small: Any, cut: Path, tmp_path: Path) -> None:
    """Its folder holds the config, and nothing else that tells anything."""
    whole = tmp_path / "whole"
    assert cli("train", tmp_path / "small", "--quiet", "--run-dir", whole).exit_code == 0
    for name in ("seed", "best"):
        shutil.rmtree(cut / name)
    (cut / "best_prompt.txt").unlink()
    for name in ("events.jsonl", "completions.jsonl"):
        (cut / name).write_bytes(b"")
    assert "begins it, as nothing is on record yet." in " ".join(cli("show", cut).stdout.split())
    assert cli("resume", cut, "--quiet").exit_code == 0
    assert timeless(cut) == timeless(whole)


@pytest.mark.parametrize(("split", "name"), [("train", "training"), ("val", "validation"), ("test", "test")])
def test_changed_data_is_refused(cli: Any, cut: Path, tmp_path: Path, split: str, name: str) -> None:
    """Nothing is asked, nothing is moved."""
    file = tmp_path / "small" / f"{split}.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    before = timeless(cut)
    result = cli("resume", cut)
    assert result.exit_code == 2
    assert f"{split}.jsonl: these are not the {name} examples that {cut} had; put them back" in result.stderr
    assert timeless(cut) == before


def test_data_that_is_gone_is_named(cli: Any, cut: Path, tmp_path: Path) -> None:
    """Nobody is told that the command line had changed anything."""
    (tmp_path / "small" / "val.jsonl").unlink()
    before = timeless(cut)
    result = cli("resume", cut)
    assert result.exit_code == 2
    assert "[data] val = 'val.jsonl': " in result.stderr
    assert "command line" not in result.stderr
    assert timeless(cut) == before


def test_a_run_folder_that_was_moved_away_from_its_data_says_so(cli: Any, cut: Path, tmp_path: Path) -> None:
    """The config is not there, so no line of it can be to blame; moved together, they go on."""
    (tmp_path / "else").mkdir()
    moved = shutil.copytree(cut, tmp_path / "else" / "run")
    before = timeless(moved)
    result = cli("resume", moved)
    assert result.exit_code == 2
    assert f"lay in {tmp_path / 'else' / 'small'}, as seen from the run folder" in result.stderr
    assert "put the run folder back where it was" in result.stderr
    assert timeless(moved) == before
    shutil.copytree(tmp_path / "small", tmp_path / "else" / "small")
    assert cli("resume", moved, "--quiet").exit_code == 0


def test_a_run_folder_that_was_moved_to_another_config_says_so(cli: Any, cut: Path, tmp_path: Path) -> None:
    """There is a folder where the data lay as seen from it, but not the data: it is no slip in the config."""
    (tmp_path / "else" / "small").mkdir(parents=True)
    moved = shutil.copytree(cut, tmp_path / "else" / "run")
    before = timeless(moved)
    result = cli("resume", moved, "--budget-calls", "5000")
    assert result.exit_code == 2
    assert "[data] train = 'train.jsonl': " in result.stderr
    assert "If the run folder was moved, put it back" in result.stderr
    assert "command line" not in result.stderr
    assert timeless(moved) == before


@pytest.mark.skipif(os.name == "nt", reason="Windows removes no folder that somebody is in")
def test_a_run_goes_on_where_the_working_directory_is_gone(
    cli: Any, cut: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell may stand in a folder that a job has tidied away; absolute paths lead on."""
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = cli("resume", cut, "--quiet")
    monkeypatch.undo()
    assert result.exit_code == 0, result.stderr


PROGRAM = """\
from textgrad_engine import nn
class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.rules = nn.Parameter('Choose the queue of the ticket: billing, shipping, returns, account, technical or '
            'trust.', role='system prompt')
        self.chat = nn.ChatCompletion('{ticket}', system=self.rules)
    def forward(self, ticket):
        return self.chat(ticket=ticket)
"""


@pytest.fixture
def own(cli: Any, small: Any, tmp_path: Path, dying: Any) -> Callable[[int], Path]:
    """A run of a program of the user's own that was killed after so many events."""

    def make(number: int) -> Path:
        folder, path = small(), tmp_path / "run"
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        config = (folder / "config.toml").read_text(encoding="utf-8")
        first, last = config.index("system ="), config.index("[data]")
        config = config[:first] + 'class = "program:Sorter"\n' + config[last:]
        (folder / "config.toml").write_text(config, encoding="utf-8")
        dying(number)
        assert killed(cli, "train", folder, "--run-dir", path)
        dying(0)
        return path

    return make


def test_a_changed_program_is_told_before_it_pays(
    cli: Any, own: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What differs, and the two ways on; the other seed prompt in its code is none, as the run's own is put in."""

    def anew(*args: Any) -> Any:
        for name in [name for name in sys.modules if name.startswith("_config_") and name.endswith("_program")]:
            monkeypatch.delitem(sys.modules, name)  # as in a process of its own
        return cli(*args)

    path = own(30)
    file = tmp_path / "small" / "program.py"
    file.write_text(PROGRAM.replace("Choose the", "Find the"), encoding="utf-8")
    shutil.copytree(path, tmp_path / "other")
    assert anew("resume", tmp_path / "other", "--quiet").exit_code == 0
    file.write_text(PROGRAM.replace("'{ticket}'", "'Ticket: {ticket}'"), encoding="utf-8")
    before = timeless(path)
    result = anew("resume", path, "--budget", "7")
    assert result.exit_code == 2
    assert "validating the seed texts asks for something else than was recorded" in result.stderr
    assert '+   "content": "Ticket: ' in result.stderr
    assert f"nothing was asked, and {path} is as it was; --anyway goes on, and pays for what is new" in result.stderr
    assert "Traceback" not in result.stderr
    assert timeless(path) == before
    result = anew("resume", path, "--anyway")
    assert result.exit_code == 0
    bought = len(before["completions.jsonl"].splitlines())
    assert f"{bought} recorded calls did not come up again, as the run went another way" in " ".join(
        result.stderr.split()
    )
    assert numbers_aside(path) == [1]
    assert read_run(path).usage().calls == read_run(path).result.total.calls + bought  # type: ignore[union-attr]


def test_files_that_were_changed_since_are_told(
    cli: Any, small: Any, tmp_path: Path, dying: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on with its own settings and seed prompt, which are not what somebody has just edited."""
    monkeypatch.chdir(tmp_path)
    config = (TICKETS / "config.toml").read_text(encoding="utf-8")
    system = config[config.index("system =") : config.index("user =")]
    folder, path = small((system, 'system_file = "prompt.txt"\n')), tmp_path / "run"
    file = folder / "prompt.txt"
    file.write_text(f"{system[12:-4]}\n", encoding="utf-8")
    dying(60)
    assert killed(cli, "train", folder, "--run-dir", path)
    dying(0)
    asis = shutil.copytree(path, tmp_path / "as-it-is")
    assert "changed since" not in cli("resume", asis).stderr
    file.write_text("Sort the ticket.\n", encoding="utf-8")
    with (folder / "config.toml").open("a", encoding="utf-8") as more:
        more.write("[guards]\nreruns = 3\n")
    for number, options in enumerate([(), ("--quiet",), ("--json",)]):
        result = cli("resume", shutil.copytree(path, tmp_path / f"told-{number}"), *options)
        assert result.exit_code == 0, result.stderr
        assert " ".join(result.stderr.split()).startswith(
            "note: small/config.toml and small/prompt.txt were changed since the run was begun. The run goes on with "
            "what it began with; options of `resume` change limits and endpoint, and `train` begins a new one with "
            "them as they are."
        )
        seed = read_run(tmp_path / f"told-{number}").seed["system"]
        assert seed == read_run(path).seed["system"] != "Sort the ticket."


@pytest.mark.parametrize(
    ("optimizer", "prompt", "who"),
    [
        ("TGD", "feedback", "the critic is asked"),
        ("TGD", "optimizer_patch", "the optimizer is asked"),
        ("PatchSearch", "feedback", "the critic is asked"),
        ("PatchSearch", "optimizer_patch", "the optimizer is asked"),
        ("ParetoSearch", "feedback", "the critic is asked"),
        ("ParetoSearch", "optimizer_rewrite", "the optimizer is asked"),
    ],
)
def test_changed_prompts_of_critic_and_optimizer_are_told_before_they_are_paid_for(
    cli: Any, small: Any, tmp_path: Path, dying: Any, optimizer: str, prompt: str, who: str
) -> None:
    """They are not used in the first validation; as those of another version, of which nothing else tells."""
    folder, path = small(), tmp_path / "run"
    dying(110)
    assert killed(cli, "train", folder, "--optimizer", optimizer, "--run-dir", path)
    dying(0)
    assert {"backward", "optimizer"} <= {paid.entry["purpose"] for paid in paid_for(path)}
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    text = (TICKETS.parents[1] / "prompts" / f"{prompt}.md").read_text(encoding="utf-8")
    (folder / "own").mkdir()
    (folder / "own" / f"{prompt}.md").write_text(text.rstrip() + "\nBe kind.\n", encoding="utf-8")
    config["config"]["prompts"] = "own"
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    before = timeless(path)
    result = cli("resume", path)
    assert result.exit_code == 2
    assert f"{who} for something else than was recorded" in " ".join(result.stderr.split())
    assert "+Be kind." in result.stderr
    assert timeless(path) == before
    result = cli("resume", path, "--anyway", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["resumed"]["not_asked_again"]["calls"] > 0


def test_what_a_budget_had_end_elsewhere_is_not_called_a_change(cli: Any, small: Any, tmp_path: Path) -> None:
    """The tests of the text that was best then do not come up again, though nobody changed anything."""
    folder = small(("max_epochs = 1", "max_epochs = 3"), rows=40)
    path = tmp_path / "run"
    assert cli("train", folder, "--budget-calls", 360, "--quiet", "--run-dir", path).exit_code == 3
    result = cli("resume", path, "--budget-calls", 9000)
    assert result.exit_code == 0
    assert "another way this time (its budget had ended it elsewhere, or" in " ".join(result.stderr.split())


def test_a_larger_budget_goes_on(cli: Any, small: Any, tmp_path: Path) -> None:
    """What was paid for counts; the config in the folder tells the budget that holds now."""
    folder, whole, path = small(), tmp_path / "whole", tmp_path / "run"
    model = ("--model", "openai/gpt-5-mini")
    with pytest.MonkeyPatch.context() as patch, LoopbackServer(TicketsModel(seed=0)) as server:
        patch.setenv("OPENAI_API_KEY", "k")
        address = (*model, "--base-url", server.base_url)
        assert cli("train", folder, *address, "--budget", "9", "--quiet", "--run-dir", whole).exit_code == 0
        first = cli("train", folder, *address, "--budget", "0.02", "--run-dir", path)
        assert first.exit_code == 3
        assert f"`textgrad-engine resume {path} --budget DOLLARS` goes on with a larger budget." in first.stderr
        assert "--budget DOLLARS` goes on with a larger budget" in cli("show", path).stderr
        assert json.loads(cli("show", path, "--json").stdout)["way_on"] in first.stderr
        bought, asked = len(list(paid_for(path))), server.requests
        again = cli("resume", path)
        assert (again.exit_code, server.requests) == (3, asked)
        assert json.loads(cli("resume", path, "--json").stdout)["way_on"] in first.stderr
        result = cli("resume", path, "--budget", "9")
        assert result.exit_code == 0, result.stderr
        assert json.loads(cli("show", path, "--json").stdout)["way_on"] is None
        assert server.requests == asked + len(list(paid_for(whole))) - bought
    assert timeless(path) == timeless(whole)


@pytest.mark.parametrize(
    ("less", "more", "said"),
    [
        (("--budget-calls", 60), ("--budget-calls", 6000), "--budget-calls N"),
        (("--budget-tokens", 20_000), ("--budget-tokens", 10**9), "--budget-tokens N"),
        (
            ("--budget-calls", 60, "--budget-tokens", 10**9),
            ("--budget-calls", 6000),
            "--budget-calls N",
        ),
    ],
)
def test_limits_in_calls_and_tokens_are_raised_by_options_as_well(
    cli: Any, small: Any, tmp_path: Path, less: tuple[Any, ...], more: tuple[Any, ...], said: str
) -> None:
    """As that in dollars; train, resume, and the config in the folder know them."""
    folder, whole, path = small(), tmp_path / "whole", tmp_path / "run"
    assert cli("train", folder, "--quiet", *less[2:], *more, "--run-dir", whole).exit_code == 0
    first = cli("train", folder, *less, "--run-dir", path)
    assert first.exit_code == 3, first.stderr
    assert f"`textgrad-engine resume {path} {said}` goes on with a larger budget." in first.stderr
    assert f"resume {path} {said}` goes on with a larger budget." in cli("show", path).stderr
    assert cli("resume", path).exit_code == 3
    assert cli("resume", path, *more, "--quiet").exit_code == 0
    assert timeless(path) == timeless(whole)


def test_a_run_goes_on_as_it_was_begun(cli: Any, small: Any, tmp_path: Path, dying: Any) -> None:
    """--controls, --no-feedback and --no-critic are no less a part of it than the config."""
    for options in (("--controls",), ("--no-feedback",), ("--no-critic",)):
        folder = small(("max_epochs = 1", "max_epochs = 1\nfeedback_batch_size = 3"))
        whole, path = tmp_path / f"whole{options[0]}", tmp_path / f"run{options[0]}"
        cli("train", folder, *options, "--quiet", "--run-dir", whole)
        dying(50)
        assert killed(cli, "train", folder, *options, "--run-dir", path)
        dying(0)
        printed = cli("resume", path)
        assert timeless(path) == timeless(whole)
        assert ("a control: the optimizer got no feedback" in printed.stdout) is (options == ("--no-feedback",))
        assert ("backward" in printed.stdout) is (options == ("--controls",))
        assert ("TGD against" in " ".join(printed.stdout.split())) is (options == ("--controls",))


def test_a_run_of_before_that_was_kept_goes_on_in_the_usual_way(cli: Any, cut: Path) -> None:
    """Its config.json has no word about controls and the cache."""
    config = json.loads((cut / "config.json").read_text(encoding="utf-8"))
    for name in ("controls", "cache"):
        del config[name]
    (cut / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert cli("resume", cut, "--quiet").exit_code == 0


def test_the_minutes_of_a_sitting_are_given_to_it(cli: Any, cut: Path) -> None:
    """Too few of them end the search where it is, and the run is tested."""
    done = cli("resume", cut, "--max-minutes", "0.00001")
    assert done.exit_code == 0
    assert "The search ended after 0 steps, as its time of 1e-05 minutes was over" in " ".join(done.stdout.split())


def test_an_endpoint_that_is_down_is_asked_anew(cli: Any, small: Any, tmp_path: Path) -> None:
    """A refused key ends a run; with the right one it goes on."""
    folder, path = small(), tmp_path / "run"
    with LoopbackServer(TicketsModel(seed=0), faults=lambda n: Fault(401) if n > 40 else None) as server:
        result = cli("train", folder, "--base-url", server.base_url, "--run-dir", path)
    assert result.exit_code == 1
    assert f"`textgrad-engine resume {path}` goes on" in result.stderr
    assert f"`textgrad-engine resume {path}` goes on with it." in " ".join(cli("show", path).stdout.split())
    with LoopbackServer(TicketsModel(seed=0)) as server:
        result = cli("resume", path, "--base-url", server.base_url)
        assert result.exit_code == 0
        assert server.requests == read_run(path).result.total.calls - 40  # type: ignore[union-attr]


def test_quiet_says_one_line_and_json_is_one_document(cli: Any, cut: Path, tmp_path: Path) -> None:
    """As train does."""
    shutil.copytree(cut, tmp_path / "other")
    result = cli("resume", cut, "--quiet")
    assert (result.stderr, result.stdout.count("\n")) == ("", 1)
    result = cli("resume", tmp_path / "other", "--json")
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert document["status"] == "finished"
    assert document["resumed"]["played_back"]["calls"] > 20


def test_the_help_fits_and_names_what_it_does(cli: Any) -> None:
    """Who looks for the command finds it."""
    shown = cli("resume", "--help").stdout
    assert "Go on with a run that was killed or interrupted" in " ".join(shown.split())
    for option in (
        "--budget",
        "--budget-calls",
        "--budget-tokens",
        "--base-url",
        "--cache",
        "--anyway",
        "--quiet",
        "--json",
    ):
        assert option in shown
    assert "--seed" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "resume" in cli("--help").stdout


def test_data_with_signed_addresses_is_that_of_a_run_of_before(
    cli: Any, small: Any, tmp_path: Path, dying: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those were told apart by whole addresses; the test set that such a run has opened is opened."""
    folder, path = small(), tmp_path / "runs" / "before"
    for split in ("train", "val", "test"):
        file = folder / f"{split}.jsonl"
        signed = "See https://files.example/a.png?access_token=f00dfacef00dface. "
        file.write_text(file.read_text(encoding="utf-8").replace('"ticket": "', f'"ticket": "{signed}'), "utf-8")
    with monkeypatch.context() as before:
        before.setattr(run_data, "unsigned", lambda value: value)
        dying(60)
        assert killed(cli, "train", folder, "--run-dir", path)
        dying(0)
    assert cli("resume", path, "--quiet").exit_code == 0
    entry = cli("eval", path, "--data", folder / "test.jsonl", "--json")
    assert json.loads(entry.stdout)["split"] == "test"
    assert cli("train", folder, "--run-dir", path.parent / "now", "--quiet").exit_code == 0
    assert json.loads((path.parent / "now" / "config.json").read_text(encoding="utf-8"))["looks_before"] >= 1
