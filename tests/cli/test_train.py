"""``textgrad-engine train``: the whole job, what it prints, and everything that must be found before it begins."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest

from textgrad_engine.cli import runs
from textgrad_engine.llm.simulated import TicketsModel
from textgrad_engine.testing import Fault, LoopbackServer
from textgrad_engine.train import Trainer

from ..conftest import timeless

TICKETS = Path(__file__).parents[2] / "examples" / "tickets"


PROBLEMS = {
    "no config": (None, "there is no such file"),
    "unknown key": (("max_edits = 12", "max_edit = 4"), "config.toml:30: [optimizer] has no key 'max_edit'"),
    "no data": (('val = "val.jsonl"', 'val = "vall.jsonl"'), "[data] val = 'vall.jsonl'"),
    "no column": (('target = "queue"', 'target = "quue"'), "there is no column 'quue'"),
    "no such model": (
        ('forward = "simulated/tickets"', 'forward = "gpt-9"'),
        "config.toml:26: [models] forward = 'gpt-9'",
    ),
    "no key": (('forward = "simulated/tickets"', 'forward = "openai/gpt-5-mini"'), "OPENAI_API_KEY is not set"),
    "no price": (
        ('forward = "simulated/tickets"', 'forward = "m"\nbase_url = "http://127.0.0.1:1/v1"'),
        "the price of 'm' is not known",
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_what_can_be_checked_is_checked_before_the_run(
    problem: str, cli: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, one plain message, no traceback, and no run folder left behind."""
    change, message = PROBLEMS[problem]
    monkeypatch.chdir(tmp_path)
    folder = small() if change is None else small(change, ("calls = 5000", "calls = 5000\ndollars = 1.0"))
    result = cli("train", folder / "none" if change is None else folder)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert not (tmp_path / "runs").exists()


def test_an_unreadable_row_is_named(cli: Any, small: Any) -> None:
    """A broken line of the data is found before a cent is spent."""
    folder = small()
    with (folder / "train.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "x", \n')
    result = cli("train", folder)
    assert result.exit_code == 2
    assert "train.jsonl:13" in result.stderr


def test_the_price_of_a_model_of_the_command_line_is_stated_there(cli: Any, small: Any) -> None:
    """In the file it would be that of no model of the config, and refused."""
    folder = small()
    text = (folder / "config.toml").read_text("utf-8")
    (folder / "config.toml").write_text(re.sub(r"calls = \d+", "dollars = 1", text), encoding="utf-8")
    result = cli("train", folder, "--model", "m", "--base-url", "http://127.0.0.1:1/v1")
    assert result.exit_code == 2
    assert "[budget] dollars: the price of 'm' is not known" in result.stderr
    assert "state it with --price input=0.4,output=1.6, dollars" in result.stderr
    assert "models.prices" not in result.stderr


def test_errors_about_options_name_the_option(cli: Any, small: Any) -> None:
    """Who mistyped --model is not sent to a line of the config."""
    result = cli("train", small(), "--model", "gpt-9")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --model gpt-9: nothing answers")
    result = cli("train", small(), "--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--budget", "1")
    assert result.stderr.startswith("error: --budget 1: the price of 'm' is not known")
    assert "limit calls or tokens with --budget-calls or --budget-tokens instead" in result.stderr
    assert "for every model" not in result.stderr
    folder = small()
    config = (folder / "config.toml").read_text("utf-8")
    config = config.replace(
        'forward = "simulated/tickets"', 'forward = "m"\njudge = "n"\nbase_url = "http://127.0.0.1:1/v1"'
    )
    (folder / "config.toml").write_text(config, "utf-8")
    result = cli("train", folder, "--budget", "1")
    assert "dollars per million tokens, or as [models.prices." in result.stderr
    result = cli("train", small(), "--budget", "inf")
    assert result.stderr == "error: --budget inf: name a number of dollars, or leave it out for no limit\n"


def test_a_used_run_folder_is_refused(cli: Any, small: Any, tmp_path: Path) -> None:
    """A run never writes over another."""
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "notes.txt").write_text("mine", encoding="utf-8")
    result = cli("train", small(), "--run-dir", tmp_path / "used")
    assert result.exit_code == 2
    assert "must be new or empty" in result.stderr


def test_wrong_usage_is_exit_code_2(cli: Any) -> None:
    """Typer's own errors have the same code."""
    assert cli("train").exit_code == 2
    commas = [("2,5", "; write 2.5"), (",50", "; write 0.50"), ("2,500", "; write 2500 or 2.500")]
    for given, told in (*commas, ("two", ""), ("nan", ""), ("-1", "")):
        result = cli("train", TICKETS, f"--budget={given}")
        assert result.exit_code == 2
        said = " ".join(result.stderr.replace("│", " ").split())
        assert f"'{given}' is no number of dollars from 0 up{told} " in said
    for option in ("--budget", "--budget-calls", "--budget-tokens"):
        for value in ("-1", "nan"):
            assert cli("train", TICKETS, option, value).exit_code == 2
    assert cli("trian", TICKETS).exit_code == 2


def test_limits_are_read_as_messages_print_them(cli: Any, small: Any, tmp_path: Path) -> None:
    """A message says "raise it to 1,014 or more", and that is copied; what is no such number is refused by name."""
    for option in ("--budget-calls", "--budget-tokens"):
        done = cli("train", small(), option, "1,234,567", "--run-dir", tmp_path / option)
        assert done.exit_code == 0, done.output
        kept = json.loads((tmp_path / option / "config.json").read_text(encoding="utf-8"))
        assert kept["config"]["budget"][option.removeprefix("--budget-")] == 1_234_567
        for value in ("0", "1.5", "1,2", "1,0000", ",100", "ten", "1,000,"):
            refused = cli("train", small(), option, value)
            assert refused.exit_code == 2
            assert f"Invalid value for '{option}': {value!r} is no whole number from 1" in refused.stderr


def test_the_debug_variable_shows_the_traceback(cli: Any, small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants to know where an error came from can see it."""
    folder = small(("max_edits = 12", "max_edit = 4"))
    monkeypatch.setenv("TEXTGRAD_DEBUG", "1")
    with pytest.raises(ValueError, match="max_edit"):
        cli("train", folder)


BROKEN = """\
from textgrad_engine import nn


def score(prediction, target):
    return 1 / 0


class Program(nn.Module):
    def __init__(self):
        super().__init__()
        self.chat = nn.ChatCompletion("{ticket}", system=nn.Parameter("Sort.", role="system prompt"))

    def forward(self, ticket):
        return self.chat(tikcet=ticket)


class Unmade(nn.Module):
    def __init__(self):
        raise KeyError("no such thing")


def first(prediction, target):
    return next(word for word in prediction if word == target)


def leaves(prediction, target):
    raise SystemExit


def interrupts(prediction, target):
    raise KeyboardInterrupt
"""

OWN_ERRORS = {
    "metric": ('[metric]\nfunction = "broken:score"\npurpose = "x"\n', 1, ":5, in score: ZeroDivisionError: division"),
    "program": ('class = "broken:Program"\n', 1, ":14, in forward: TypeError: ChatCompletion: the user template has"),
    "constructor": ('class = "broken:Unmade"\n', 2, ":19, in __init__: KeyError: 'no such thing'"),
    "next": ('[metric]\nfunction = "broken:first"\npurpose = "x"\n', 1, ":23, in first: RuntimeError: StopIteration"),
}


@pytest.mark.parametrize("which", OWN_ERRORS)
def test_an_error_of_the_users_own_code_is_a_message(
    which: str, cli: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own line is what is wanted of a long traceback; where the calls paid for are is said as of other errors."""
    named, code, said = OWN_ERRORS[which]
    folder = small()
    (folder / "broken.py").write_text(BROKEN, encoding="utf-8")
    text = (folder / "config.toml").read_text(encoding="utf-8")
    if "function" in named:
        text = text.replace('[metric]\nname = "exact_match"\n', named)
    else:
        text = re.sub(r'system = """.*?user = "{ticket}"\n', named, text, flags=re.DOTALL)
    (folder / "config.toml").write_text(text, encoding="utf-8")
    result = cli("train", folder, "--run-dir", tmp_path / "run")
    assert result.exit_code == code
    assert f"error: {folder / 'broken.py'}{said}" in result.stderr
    assert "with TEXTGRAD_DEBUG=1 in the environment, the whole traceback is shown" in result.stderr
    assert (f"what was paid for until then is in {tmp_path / 'run'}" in result.stderr) is ("function" in named)
    nothing = f"nothing was answered; `textgrad-engine resume {tmp_path / 'run'}` begins it"
    assert (nothing in result.stderr) is (which == "program")
    assert "Traceback" not in result.stderr
    monkeypatch.setenv("TEXTGRAD_DEBUG", "1")
    with pytest.raises((ZeroDivisionError, TypeError, KeyError, RuntimeError)):
        cli("train", folder, "--run-dir", tmp_path / "again")


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("leaves", 1, ":27, in leaves: SystemExit(); have it raise an error, and not exit\n"),
        ("interrupts", 130, "interrupted; "),
    ],
)
def test_a_run_whose_metric_exits_is_no_success(name: str, code: int, said: str, cli: Any, small: Any) -> None:
    """It ended with what the metric exited with, 0 say, and without a word; and no line of Typer's asked for it."""
    folder = small(('name = "exact_match"', f'function = "broken:{name}"\npurpose = "x"'))
    (folder / "broken.py").write_text(BROKEN, encoding="utf-8")
    result = cli("train", folder, "--run-dir", folder / "run")
    assert result.exit_code == code
    assert said in result.stderr
    assert "asked for at" not in result.stderr
    assert f"`textgrad-engine resume {folder / 'run'}` goes on with it" in result.stderr


METRIC_THAT_IMPORTS_LATER = """\
def score(prediction, target):
    import helper_of_this_metric
    return helper_of_this_metric.score(prediction, target)
"""


def test_user_code_can_import_its_neighbours_while_it_runs(cli: Any, small: Any, tmp_path: Path) -> None:
    """Not only while it is imported; afterwards the path is as it was."""
    folder = small(('name = "exact_match"', 'function = "later:score"\npurpose = "equality"'), rows=4)
    (folder / "later.py").write_text(METRIC_THAT_IMPORTS_LATER, encoding="utf-8")
    helper = "def score(prediction, target):\n    return float(prediction == target)\n"
    (folder / "helper_of_this_metric.py").write_text(helper, encoding="utf-8")
    before = list(sys.path)
    result = cli("train", folder, "--run-dir", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    assert sys.path == before


def test_a_mistake_of_the_library_keeps_its_traceback(cli: Any, small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message of one line about it would help nobody."""
    monkeypatch.setattr(Trainer, "fit", Trainer.__repr__)  # called with more than it takes
    with pytest.raises(TypeError, match="positional argument"):
        cli("train", small(), "--run-dir", small() / "run")


def test_an_endpoint_that_refuses_the_key_is_exit_code_1(cli: Any, small: Any, tmp_path: Path) -> None:
    """An error while running is told apart from a wrong config; what is said of the folder is so."""
    with LoopbackServer(TicketsModel(seed=0), api_key="right") as server:
        result = cli("train", small(), "--base-url", server.base_url, "--run-dir", tmp_path / "run")
    assert result.exit_code == 1
    assert "Incorrect API key" in result.stderr
    assert f"nothing was answered; `textgrad-engine resume {tmp_path / 'run'}` begins it" in result.stderr
    assert "was paid for" not in result.stderr
    assert "Traceback" not in result.output


def test_the_tickets_get_better(trained: tuple[Path, Any], figures: Any) -> None:
    """The first line of the README: from a naive prompt to one that knows the house rules."""
    path, result = trained
    found = figures(path)
    assert found["seed_test"] < 0.6
    assert found["best_test"] > 0.85
    assert "verdict      better" in result.stdout
    assert f"{found['best_test']:.3f}" in result.stdout


def test_the_report_fits_80_columns_and_has_no_codes(trained: tuple[Path, Any]) -> None:
    """In a pipe it is plain text that any pager shows as it is."""
    path, result = trained
    assert "\x1b" not in result.output
    long = [line for line in result.output.splitlines() if len(line) > 80 and str(path) not in line]
    assert long == []


def test_a_pipe_gets_a_line_for_each_step(trained: tuple[Path, Any]) -> None:
    """A log tells how it went, on stderr."""
    _, result = trained
    lines = [line for line in result.stderr.splitlines() if line.startswith("step ")]
    assert len(lines) == 13
    assert re.match(r"step  0/12  seed prompt val 0\.\d\d +87 calls  \S+ tok  \$0\.00$", lines[0])
    assert re.match(
        r"step  1/12  train 0\.\d\d  val 0\.\d\d kept  best 0\.\d\d  \d+ calls  \S+ tok  \$0\.00$", lines[1]
    )
    assert not any(line.startswith("step ") for line in result.stdout.splitlines())


def test_every_changed_line_says_who_asked_for_it(trained: tuple[Path, Any]) -> None:
    """The diff names the tickets and the feedback."""
    path, result = trained
    before = (path / "seed" / "system.txt").read_text(encoding="utf-8").splitlines()
    best = (path / "best" / "system.txt").read_text(encoding="utf-8").splitlines()
    assert result.stdout.count("\n  + ") == len([line for line in best if line not in before])
    assert re.search(r"\n      step \d+: .*\n      t\d{3}(, t\d{3})*: ", result.stdout)


def test_the_run_folder_holds_everything(trained: tuple[Path, Any]) -> None:
    """The best prompt as plain text, the config, every event and every completion."""
    path, _ = trained
    assert {file.name for file in path.iterdir()} >= {
        "best", "best_prompt.txt", "completions.jsonl", "config.json", "events.jsonl", "result.json", "seed",
    }  # fmt: skip
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    assert config["name"] == "tickets"
    assert config["config"]["models"]["forward"] == "simulated/tickets"
    assert not Path(config["folder"]).is_absolute()


def test_one_seed_gives_one_result(cli: Any, small: Any, tmp_path: Path) -> None:
    """Two runs with one seed are the same but for their times, every file of them."""
    folder = small(("max_epochs = 1", "max_epochs = 3"))
    for name in ("first", "again"):
        assert cli("train", folder, "--run-dir", tmp_path / name, "--quiet").exit_code == 0
    first, second = timeless(tmp_path / "first"), timeless(tmp_path / "again")
    assert first.keys() == second.keys()
    for name in first:
        assert first[name] == second[name], name


def test_another_seed_gives_another_run(cli: Any, small: Any, tmp_path: Path) -> None:
    """--seed is not ignored."""
    for seed in ("1", "2"):
        assert cli("train", small(), "--seed", seed, "--run-dir", tmp_path / seed, "--quiet").exit_code == 0
    assert timeless(tmp_path / "1")["completions.jsonl"] != timeless(tmp_path / "2")["completions.jsonl"]


def test_without_feedback_it_does_clearly_worse(cli: Any, trained: tuple[Path, Any], figures: Any) -> None:
    """The control: what the machinery gains comes from the feedback."""
    path = trained[0].parent / "control"
    result = cli("train", TICKETS, "--run-dir", path, "--no-feedback")
    assert result.exit_code == 0
    assert "; a control: the optimizer got no feedback" in result.stdout
    assert figures(path)["best_test"] < figures(trained[0])["best_test"] - 0.25


def test_without_a_critic_the_report_says_what_asked_for_a_line(cli: Any, small: Any, tmp_path: Path) -> None:
    """Which answers were wrong, and what was expected; not the whole case, which the run folder has."""
    path = tmp_path / "run"
    result = cli("train", small(), "--no-critic", "--run-dir", path)
    assert result.exit_code == 0, result.stderr
    used, said = result.stdout.split("What changed in the prompt")
    assert re.search(r"^  optimizer +\d", used, re.MULTILINE)
    assert not re.search(r"^  backward", used, re.MULTILINE)
    assert re.search(r"t\d{3}: The answer is wrong\. Expected exactly `\w+`, got `\w+`\.", " ".join(said.split()))
    assert "message-" not in said
    assert json.loads((path / "config.json").read_text(encoding="utf-8"))["config"]["train"]["critic"] is False


def test_two_ways_to_do_without_feedback_are_one_too_many(cli: Any, small: Any, tmp_path: Path) -> None:
    result = cli("train", small(), "--no-critic", "--no-feedback", "--run-dir", tmp_path / "run")
    assert result.exit_code == 2
    assert "--no-critic means nothing beside --no-feedback" in " ".join(result.stderr.split())
    assert not (tmp_path / "run").exists()


def test_the_whole_command_over_http_gives_the_same_scores(
    cli: Any, small: Any, figures: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The adapter, the wire and the limits change nothing; and the key is in no file and no output."""
    folder = small()
    assert cli("train", folder, "--run-dir", tmp_path / "here").exit_code == 0
    canary = "sk-canary-" + "7Q" * 12
    monkeypatch.setenv("OPENAI_API_KEY", canary)
    path = tmp_path / "http"
    with LoopbackServer(TicketsModel(seed=0), script=[Fault(500)], api_key=canary) as server:
        result = cli("train", folder, "--base-url", server.base_url, "--run-dir", path)
    assert result.exit_code == 0, result.output
    assert figures(path) == figures(tmp_path / "here")
    assert (path / "best_prompt.txt").read_text() == (tmp_path / "here/best_prompt.txt").read_text()
    assert (path / "best_prompt.txt").read_text() != (path / "seed/system.txt").read_text()
    assert canary not in result.output
    for file in path.rglob("*"):
        if file.is_file():
            assert canary.encode() not in file.read_bytes(), file


def test_quiet_says_one_line(cli: Any, small: Any, tmp_path: Path) -> None:
    """For scripts that want to know whether it worked."""
    result = cli("train", small(), "--run-dir", tmp_path / "run", "--quiet")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    assert re.search(r"run: val 0\.\d{3} -> 0\.\d{3}; test 0\.\d{3} -> 0\.\d{3}; .* calls, \$0\.00\n$", result.stdout)


def test_the_one_line_tells_how_often_the_test_set_had_been_opened(cli: Any, small: Any, tmp_path: Path) -> None:
    """Who runs it again and again reads no report, and takes the first "better" for one."""
    folder = small()
    for number in range(3):
        line = cli("train", folder, "--run-dir", tmp_path / "runs" / str(number), "--quiet").stdout
        before = ("", "; test opened 1 time before", "; test opened 2 times before")[number]
        assert line.endswith(f" calls, $0.00{before}\n")
    said = cli("eval", tmp_path / "runs" / "0", "--quiet").stdout
    assert said.endswith(" on test.jsonl, opened 1 time before\n")
    val = cli("eval", tmp_path / "runs" / "0", "--quiet", "--data", folder / "val.jsonl")
    assert "opened" not in val.stdout


def test_json_is_one_document(cli: Any, small: Any, tmp_path: Path) -> None:
    """For machines: nothing else is on stdout, nothing at all on stderr."""
    result = cli("train", small(), "--run-dir", tmp_path / "run", "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert document["run"] == str(tmp_path / "run")
    assert document["status"] == "finished"
    assert document["test"]["best"]["examples"] == 12
    assert document["parameters"]["system"]["best"] == (tmp_path / "run" / "best_prompt.txt").read_text(
        encoding="utf-8"
    )


def test_a_spent_budget_prints_the_result_so_far(cli: Any, small: Any, tmp_path: Path) -> None:
    """Exit code 3, the limit kept, what is missing called so."""
    result = cli("train", small(("calls = 5000", "calls = 30")), "--run-dir", tmp_path / "run")
    assert result.exit_code == 3
    assert "The budget was spent" in result.stdout
    assert "test         not measured" in result.stdout
    assert len((tmp_path / "run" / "completions.jsonl").read_text(encoding="utf-8").splitlines()) <= 30


def test_a_budget_without_room_for_one_call_was_not_spent(cli: Any, small: Any, tmp_path: Path) -> None:
    """Nothing was asked, so the budget is what to change, and there is nothing to have a verdict on."""
    result = cli("train", small(("calls = 5000", "tokens = 900")), "--run-dir", tmp_path / "run")
    said = " ".join(result.stdout.split())
    assert result.exit_code == 2
    assert "Nothing was asked: the budget of 900 tokens does not allow a single call" in said
    found = re.search(r"the first one may need ([\d,]+), for its text .* raise the budget to that or more", said)
    assert found is not None
    assert 1_000 < int(found[1].replace(",", "")) < 20_000
    assert "verdict not measured" in said
    for word in ("spent", "did better"):
        assert word not in result.stdout + result.stderr
    assert " ".join(cli("show", tmp_path / "run").stdout.split()) == said


def test_run_folders_are_numbered(cli: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --run-dir each run gets the next free folder, and says which."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "small-7").mkdir(parents=True)
    (tmp_path / "runs" / "small-old").mkdir()
    result = cli("train", small(), "--quiet")
    assert result.stdout.startswith(str(Path("runs") / "small-8"))
    assert (tmp_path / "runs" / "small-8" / "result.json").is_file()


def test_a_program_of_a_class_is_trained(cli: Any, small: Any, tmp_path: Path) -> None:
    """``class = "module:Class"`` trains every parameter of the user's own module, each into a file of its own name."""
    folder = small()
    (folder / "program.py").write_text(
        "from textgrad_engine import nn\n"
        "class Sorter(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.rules = nn.Parameter('Choose the queue of the ticket: billing, shipping, returns, account, "
        "technical or trust.', role='system prompt')\n"
        "        self.chat = nn.ChatCompletion('{ticket}', system=self.rules)\n"
        "    def forward(self, ticket):\n"
        "        return self.chat(ticket=ticket)\n",
        encoding="utf-8",
    )
    config = (folder / "config.toml").read_text(encoding="utf-8")
    start, end = config.index("system ="), config.index("[data]")
    (folder / "config.toml").write_text(config[:start] + 'class = "program:Sorter"\n' + config[end:], encoding="utf-8")
    result = cli("train", folder, "--run-dir", tmp_path / "run")
    assert result.exit_code == 0, result.output
    names = [file.name for file in (tmp_path / "run" / "best").iterdir()]
    assert names == ["rules.txt"]
    assert cli("eval", tmp_path / "run").exit_code == 0


@pytest.mark.parametrize(
    ("taken", "prompt", "code", "said"),
    [
        ("ticket", "", 2, "has nothing to train; make a prompt of it an nn.Parameter"),
        ("**fields", "", 2, "config.toml:5: [program] class = 'program:Sorter': a value of type Sorter takes **fields"),
        (
            "**fields",
            "nn.Parameter('Sort.'); self.slots = 'ticket'",
            2,
            "'program:Sorter': the slots of Sorter are the text",
        ),
        ("ticket", "nn.Parameter('Sort.')", 1, "a tuple, a list or a dataclass; this one returned None"),
    ],
)
def test_a_program_that_cannot_be_trained_is_told_of_in_words(
    cli: Any, small: Any, taken: str, prompt: str, code: int, said: str
) -> None:
    """A class that forgot its nn.Parameter, one that names no column or a text of them, and one without a return."""
    folder = small()
    (folder / "program.py").write_text(
        "from textgrad_engine import nn\n"
        "class Sorter(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        f"        self.rules = {prompt or None}\n"
        f"    def forward(self, {taken}):\n"
        "        pass\n",
        encoding="utf-8",
    )
    config = (folder / "config.toml").read_text(encoding="utf-8")
    start, end = config.index("system ="), config.index("[data]")
    (folder / "config.toml").write_text(config[:start] + 'class = "program:Sorter"\n' + config[end:], encoding="utf-8")
    result = cli("train", folder)
    assert result.exit_code == code
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_search_ends_in_time_for_its_test(cli: Any, small: Any, tmp_path: Path) -> None:
    """With the option or the config's key; the run comes to its end, and says why it was short."""
    in_file = [("max_epochs = 1", "max_epochs = 9\nmax_minutes = 0.00001")]
    for number, (change, *options) in enumerate([(in_file,), ([], "--max-minutes", "0.00001")]):
        done = cli("train", small(*change), "--run-dir", tmp_path / f"run{number}", *options)
        assert done.exit_code == 0
        said = " ".join(done.stdout.split())
        assert "The search ended after 0 steps, as its time of 1e-05 minutes was over with what the end takes." in said
        assert "test 0." in said
    for wrong in ("0", "-1", "nan", "soon"):
        done = cli("train", small(), "--max-minutes", wrong)
        assert (done.exit_code, "max" in done.stderr) == (2, True)


def test_controls_stand_beside_the_result(cli: Any, small: Any, tmp_path: Path) -> None:
    """--controls: the table and the verdicts, in the report, in JSON, and in `show` again."""
    path = tmp_path / "run"
    printed = cli("train", small(), "--controls", "--run-dir", path)
    assert printed.exit_code == 0
    assert "TGD against random edits: " in " ".join(printed.stdout.split())
    assert cli("show", path).stdout == printed.stdout
    document = json.loads(cli("show", path, "--json").stdout)
    assert [each["name"] for each in document["controls"]["each"]] == ["rewrites without feedback", "random edits"]
    assert document["test_openings"] == json.loads((path / "result.json").read_text())["openings"]


def test_what_tokens_and_seconds_cost_reaches_the_run(cli: Any, small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of the config that nobody reads would be a promise that is not kept."""
    given: list[dict[str, Any]] = []

    def trainer(**settings: Any) -> Trainer:
        given.append(settings)
        return Trainer(**{**settings, "max_epochs": 1, "max_steps": 1})

    monkeypatch.setattr("textgrad_engine.cli.build.Trainer", trainer)
    for line, expected in (
        ("tokens_weight = 0.5\nlatency_weight = 0.25", (0.5, 0.25)),
        ("latency_weight = 0", (0.0, 0.0)),
        ("", (0.0, None)),
    ):
        folder = small(("batch_size = 6", f"batch_size = 12\n{line}"))
        assert cli("train", folder, "--quiet", "--run-dir", folder / f"run{len(given)}").exit_code == 0
        assert (given[-1]["tokens_weight"], given[-1]["latency_weight"]) == expected
    bad = cli("train", small(("batch_size = 6", "batch_size = 12\nlatency_weight = -1")))
    assert (bad.exit_code, "[train] latency_weight = -1" in bad.stderr) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="a backslash is no part of a file's name there")
def test_paths_in_a_run_folder_of_windows_are_read_everywhere(
    cli: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder is often made on one machine and looked at on another."""
    folder = small(('train = "train.jsonl"', r"train = 'data\train.jsonl'"), rows=3)
    (folder / "train.jsonl").rename(folder / r"data\train.jsonl")
    monkeypatch.setattr(runs, "PurePath", PureWindowsPath)
    assert cli("train", folder, "--run-dir", tmp_path / "run", "-q").exit_code == 0
    kept = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))["config"]
    assert kept["data"]["train"] == "data/train.jsonl"
    assert kept["data"]["val"] == "val.jsonl"


@pytest.mark.parametrize("folds", [(), ("--folds", "3")])
def test_a_budget_that_does_not_even_score_the_seed_prompt_is_told_before_it_is_spent(
    cli: Any, small: Any, tmp_path: Path, folds: tuple[str, ...]
) -> None:
    """Who reads it can press Ctrl-C; it asks nobody, and stops nobody."""

    def said(*limits: str) -> str:
        path = tmp_path / "-".join(limits)
        result = cli("train", small(), *folds, *limits, "--run-dir", path)
        assert result.exit_code in (0, 2, 3)
        return " ".join(result.stderr.partition("seed prompt val")[0].split())

    calls = 24 if not folds else 3 * (24 + 12) + 36  # the folds validate on 24 examples, and the final run on 36
    early = f"has room for {calls - 1} calls, but the seed prompt alone takes about {calls} calls or more on"
    assert early in said("--budget-calls", str(calls - 1))
    assert "seed prompt alone" not in said("--budget-calls", str(calls))
    if not folds:
        assert re.search(
            "room for 900 tokens, but .* takes about [0-9],[0-9]+ tokens or more", said("--budget-tokens", "900")
        )
        assert "seed prompt alone" not in said("--budget-calls", str(calls - 1), "--cache")


def test_of_a_program_of_ones_own_nobody_knows_beforehand_how_often_it_asks(
    cli: Any, small: Any, tmp_path: Path
) -> None:
    """One that answers most examples by itself was said to end early, and came to its end."""
    folder = small()
    config = (folder / "config.toml").read_text(encoding="utf-8")
    start, end = config.index('system = """'), config.index("[data]")
    (folder / "config.toml").write_text(config[:start] + 'class = "sparing:Sorter"\n' + config[end:], encoding="utf-8")
    (folder / "sparing.py").write_text(
        "from textgrad_engine import Variable, nn\n\n\nclass Sorter(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        '        self.chat = nn.ChatCompletion("{ticket}", system=nn.Parameter("Sort.", role="system prompt"))\n\n'
        "    def forward(self, ticket):\n"
        '        return self.chat(ticket=ticket) if "t" == ticket[-2] else Variable("billing", role="queue")\n',
        encoding="utf-8",
    )
    done = cli("train", folder, "--budget-calls", "20", "--run-dir", tmp_path / "run")
    assert "seed prompt alone" not in done.stderr
    assert "seed prompt val" in done.stderr


def test_a_run_folder_in_the_place_of_a_config_is_told_what_takes_one(
    cli: Any, trained: tuple[Path, Any], tmp_path: Path
) -> None:
    """It has no config.toml, and nobody is to look for one there."""
    folds = tmp_path / "folds"
    folds.mkdir()
    (folds / "folds.json").write_text("{}", encoding="utf-8")
    for path in (trained[0], folds):
        for command in ("train", "estimate"):
            told = cli(command, path)
            assert told.exit_code == 2
            assert told.stderr == (
                f"error: {path}: this is a run folder, and a config is wanted, such as that which it was made from; "
                f"`textgrad-engine resume {path}` goes on with a run\n"
            )
