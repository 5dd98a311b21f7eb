"""``textgrad-engine estimate`` says what train would cost."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from textgrad_engine.cli.estimate import seconds_at
from textgrad_engine.cli.model_tables import Models
from textgrad_engine.optim.search.volume import Range
from textgrad_engine.train.estimated import Estimate

TICKETS = Path(__file__).parent.parent.parent / "examples" / "tickets"


def test_a_config_that_is_none_exits_2(cli, tmp_path: Path) -> None:
    """Nothing to estimate is wrong usage, as for train."""
    assert cli("estimate", str(tmp_path / "nowhere")).exit_code == 2


def test_a_latency_without_end_is_refused(cli) -> None:
    """JSON has no word for what would come of it."""
    done = cli("estimate", str(TICKETS), "--optimizer", "PatchSearch", "--latency", "inf")
    assert done.exit_code == 2
    assert "--latency inf: name a number of seconds" in done.stderr


def test_a_latency_is_refused_where_no_time_is_told(cli) -> None:
    """Of one step after the other nobody works out how long they take: the option was taken, and did nothing."""
    done = cli("estimate", str(TICKETS), "--latency", "5")
    assert done.exit_code == 2
    assert "--latency tells the time of a search, and TGD is none" in done.stderr
    usual = cli("estimate", str(TICKETS), "--optimizer", "PatchSearch").stdout
    assert usual == cli("estimate", str(TICKETS), "--optimizer", "PatchSearch", "--latency", "1").stdout
    assert " at 1 s an answer" in usual


def test_a_price_range_needs_no_key(cli, monkeypatch) -> None:
    """One wants to know the price before one has an account."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = cli("estimate", str(TICKETS), "--model", "openai/gpt-5-mini", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert 0 < found["dollars"]["low"] < found["dollars"]["high"]
    assert found["models"] == ["openai/gpt-5-mini"]


def test_the_table_fits_a_terminal(cli) -> None:
    """It is read in 80 columns."""
    done = cli("estimate", str(TICKETS))
    assert done.exit_code == 0, done.output
    assert "At most 12 steps on simulated/tickets" in done.stdout
    assert max(map(len, done.stdout.split("\n"))) <= 80


def test_in_a_narrow_terminal_the_parts_stand_below_each_other(cli, monkeypatch) -> None:
    """Lines that wrap make no table."""
    monkeypatch.setenv("COLUMNS", "40")
    done = cli("estimate", str(TICKETS))
    assert done.exit_code == 0, done.output
    assert "forward\n  calls " in done.stdout
    table = done.stdout.partition("\ncost")[0]
    assert max(map(len, table.split("\n"))) <= 40


def test_limits_per_minute_say_how_long_it_takes_at_least(cli, small) -> None:
    """Who is allowed ten requests a minute wants to know that it takes hours, before it does."""
    plain = json.loads(cli("estimate", str(small()), "--json").stdout)
    assert plain["seconds"] is None
    calls, tokens = (sum(part["high"] for part in plain[key].values()) for key in ("calls", "input_tokens"))
    tokens += sum(part["high"] for part in plain["output_tokens"].values())
    forward = 'forward = "simulated/tickets"'
    for rate, expected in (("requests_per_minute = 10", calls * 6), ("tokens_per_minute = 1e5", tokens * 6e-4)):
        folder = small((forward, f"{forward}\n{rate}"))
        found = json.loads(cli("estimate", str(folder), "--json").stdout)
        assert found["seconds"]["high"] == pytest.approx(expected)
        assert 0 < found["seconds"]["low"] < found["seconds"]["usual"] < found["seconds"]["high"]
    shown = cli("estimate", str(folder)).stdout
    assert re.search(
        r"time +\S.* to .*, usually .* at the limits per minute of .models., or more", " ".join(shown.split())
    )
    assert max(map(len, shown.split("\n"))) <= 80


def test_a_budget_that_is_less_than_usual_is_told_of(cli, small) -> None:
    """`init` writes one into its config, and who adds --folds 5 would pay for all of it and get half of a result."""

    def said(**limits: int) -> str:
        folder = small(("calls = 5000", "\n".join(f"{name} = {limit}" for name, limit in limits.items())))
        done = cli("estimate", str(folder))
        assert done.exit_code == 0, done.output
        return " ".join(done.stdout.split())

    assert "has room for" not in said() + said(calls=10**6, tokens=10**9)
    assert "has room for 20 calls, which is less than usual" in said(calls=20, tokens=10**9)
    assert "has room for 20 calls and 1,000 tokens, which is less" in said(calls=20, tokens=1000)
    sure = "less than usual, and a run takes 24 calls at the least: it will end early."
    assert sure in said(calls=23, tokens=10**9)
    assert "less than usual: it may end the run early." in said(calls=24, tokens=10**9)


def test_the_budget_may_be_that_of_the_command_that_it_stands_for(cli, small) -> None:
    """`estimate` in the place of `train`, with all that followed."""
    done = cli("estimate", small(), "--budget-calls", "20", "--budget-tokens", "1000", "--json")
    assert json.loads(done.stdout)["budget"] == {
        "dollars": None, "calls": 20, "tokens": 1000, "below_usual": ["calls", "tokens"],
    }  # fmt: skip
    done = cli("estimate", small(("calls = 5000", "")), "--model", "openai/gpt-5-mini", "--budget", "0.0001")
    assert "The budget has room for $0.00010, which is less than usual" in " ".join(done.stdout.split())


def test_each_model_has_its_own_limit_per_minute() -> None:
    """Two models share no limit, so the slower of them decides, not their sum."""
    calls = {"forward": Range(100, 200, 120), "backward": Range(10, 90, 20), "optimizer": Range(3, 6, 5)}
    none = dict.fromkeys(calls, Range())
    result = Estimate(calls, none, none, None, 3, "")
    one = Models(forward="a", requests_per_minute=10)
    two = Models(forward="a", backward="b", requests_per_minute=10)
    assert seconds_at(one, result) == Range(113 * 6, 296 * 6, 145 * 6)
    assert seconds_at(two, result) == Range(103 * 6, 206 * 6, 125 * 6)
    assert seconds_at(Models(forward="a"), result) is None


def test_controls_are_estimated(cli) -> None:
    """Two further searches with as many calls as the optimizer's at most, and at least their validation."""
    without = json.loads(cli("estimate", str(TICKETS), "--json").stdout)["calls"]
    with_them = json.loads(cli("estimate", str(TICKETS), "--controls", "--json").stdout)["calls"]
    assert with_them["backward"] == without["backward"]
    assert with_them["forward"]["low"] == without["forward"]["low"] + 2 * 87
    before = sum(found["high"] for found in without.values())
    assert with_them["forward"]["high"] == without["forward"]["high"] + 2 * (before + 87 + 113)


def test_what_controls_leave_of_a_budget_is_told(cli, small) -> None:
    """Before anything is paid for, by `estimate` and by `train`; of no budget nothing has to be shared."""
    shared = "the optimizer may use one part in 3, and each of the 2 controls as many calls as it did"
    for command in ("estimate", "train"):
        done = cli(command, str(small(("calls = 5000", "calls = 90"))), "--controls")
        assert shared in " ".join((done.stdout + done.stderr).split())
    for config, flags in ((small(), ()), (small(("[budget]\ncalls = 5000", "")), ("--controls",))):
        assert shared not in " ".join(cli("estimate", str(config), *flags).stdout.split())


@pytest.mark.parametrize("optimizer", ["TGD", "PatchSearch"])
def test_a_program_that_cannot_read_a_placeholder_says_what_to_do(cli, small, optimizer: str) -> None:
    """Its own error says nothing of the answer that nobody gave."""
    text = (TICKETS / "config.toml").read_text(encoding="utf-8")
    program = text[text.index("[program]") : text.index("[data]")]
    folder = small((program, '[program]\nclass = "strict:Strict"\n\n'))
    (folder / "strict.py").write_text(
        "from textgrad_engine import nn\n"
        "class Strict(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.chat = nn.ChatCompletion('{ticket}', system=nn.Parameter('Sort.', role='system prompt'))\n"
        "    def forward(self, ticket):\n"
        "        return int(self.chat(ticket=ticket).data)\n",
        encoding="utf-8",
    )
    done = cli("estimate", str(folder), "--optimizer", optimizer)
    assert done.exit_code == 2
    assert "strict.py:7, in forward: ValueError" in done.stderr
    assert "puts '?' in the place of an answer" in done.stderr
    assert "have the code give '' for such an answer" in done.stderr


def test_a_budget_below_what_is_usual_is_told_to_machines_too(cli, small) -> None:
    """As the sentence tells people."""

    def budget(limits: str) -> dict[str, object]:
        folder = small(("[budget]\ncalls = 5000\n", f"[budget]\n{limits}\n"))
        found: dict[str, object] = json.loads(cli("estimate", str(folder), "--json").stdout)["budget"]
        return found

    none = {"dollars": None, "calls": None, "tokens": None}
    assert budget("") == {**none, "below_usual": []}
    assert budget("calls = 20\ntokens = 30") == {**none, "calls": 20, "tokens": 30, "below_usual": ["calls", "tokens"]}
    assert budget("calls = 100_000\ntokens = 30") == {**none, "calls": 100_000, "tokens": 30, "below_usual": ["tokens"]}


SEARCH = """
from textgrad_engine import optim


class Silent(optim.Searcher):
    def __init__(self, params):
        super().__init__(params, {})

    def texts(self):
        return tuple(each.data for each in self.variables())

    expected = 0.0

    def decide(self, objective):
        return None


class Stated(Silent):
    def volume(self, sizes):
        rounds = sizes.decisions(3)
        each = 8 + sizes.val
        return optim.Volume(optim.Range(0, rounds, rounds), optim.Range(0, rounds * each, rounds * each))


class Wrong(Silent):
    def volume(self, sizes):
        return 5
"""


def with_search(small, name: str) -> str:
    folder = small()
    text = (folder / "config.toml").read_text(encoding="utf-8")
    changed = re.sub(r"\[optimizer\]\n(.+\n)*", f'[optimizer]\nname = "own:{name}"\n', text)
    (folder / "config.toml").write_text(changed, encoding="utf-8")
    (folder / "own.py").write_text(SEARCH, encoding="utf-8")
    return str(folder)


def test_a_search_of_ones_own_says_how_much_it_does(cli, small) -> None:
    """With a method `volume`, whose sizes are those of the data."""
    done = cli("estimate", with_search(small, "Stated"), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["steps"] == 3


def test_a_search_of_ones_own_that_does_not_is_told_the_repairs(cli, small) -> None:
    """With the line of the file; the options of the command line stand for what Python has."""
    done = cli("estimate", with_search(small, "Silent"))
    assert done.exit_code == 2, done.output
    assert re.search(r"config\.toml:\d+: \[optimizer\] name = 'own:Silent': Silent does not say", done.stderr)
    assert "volume(sizes)" in done.stderr
    assert "--budget-calls" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_no_volume_is_named(cli, small) -> None:
    """It would fail where it is multiplied."""
    done = cli("estimate", with_search(small, "Wrong"))
    assert done.exit_code == 2, done.output
    assert "Wrong.volume() gave 5; give an optim.Volume" in done.stderr
