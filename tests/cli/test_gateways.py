"""Models behind gateways: headers and prices, stated in the config or on the command line, from estimate to resume."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.llm import Request
from textgrad_engine.testing import Fault, FunctionModel, LoopbackServer, feedback_for

SECRET = "canary/gateway+secret0123"
TABLES = """
[models.prices.my-deployment]
input = 400
cached = 100
output = 1600

[models.headers]
x-team = "search"
x-gateway-key = {env = "GATEWAY_KEY"}

[budget]"""


class Gateway(LoopbackServer):
    """Keeps the headers that it was sent, and quotes one of them in an error."""

    def __init__(self) -> None:
        super().__init__(FunctionModel(answer), script=[Fault(400, body=f"<html>{SECRET}</html>")])
        self.seen: list[Mapping[str, str]] = []

    async def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Any:
        self.seen.append(dict(headers))
        return await super().respond(method, path, headers, body)


def answer(request: Request) -> Any:
    """Something to every kind of request."""
    if request.config.response_format is None:
        return "no idea"
    properties = request.config.response_format.json_schema["properties"]
    if "edits" in properties:
        return {"edits": [{"op": "add", "line": 1, "text": "Say it.", "reason": "unsaid", "feedback": [1]}]}
    return feedback_for(request, "say it")


def dollars_of(run: Path) -> float:
    """What a run has cost."""
    used = json.loads((run / "result.json").read_text())["usage"]
    return sum(usage["dollars"] for usage in used.values())


def behind(server: Gateway) -> tuple[tuple[str, str], ...]:
    return (
        ('forward = "simulated/tickets"', f'forward = "my-deployment"\nbase_url = "{server.base_url}"'),
        ("[budget]", TABLES.strip()),
    )


@pytest.mark.parametrize("held", [None, "", " \n"])
def test_a_variable_that_is_not_set_is_named_before_anything_is_asked(
    cli: Any, small: Any, monkeypatch: pytest.MonkeyPatch, held: str | None
) -> None:
    """With file, line and repair; `estimate` asks nobody, and needs none."""
    monkeypatch.delenv("GATEWAY_KEY", raising=False)
    if held is not None:
        monkeypatch.setenv("GATEWAY_KEY", held)
    with Gateway() as server:
        folder = small(*behind(server), rows=4)
        done = cli("train", folder)
        assert done.exit_code == 2
        assert "[models.headers] x-gateway-key has no value" in done.stderr
        assert "environment variable GATEWAY_KEY" in done.stderr
        line = (folder / "config.toml").read_text().splitlines().index('x-gateway-key = {env = "GATEWAY_KEY"}') + 1
        assert done.stderr.startswith(f"error: {folder / 'config.toml'}:{line}: [models.headers] x-gateway-key has no")
        assert cli("estimate", folder).exit_code == 0
    assert server.seen == []


def test_a_variable_whose_value_cannot_be_sent_is_named_without_it(
    cli: Any, small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be half of a secret."""
    monkeypatch.setenv("GATEWAY_KEY", f"{SECRET}\nx")
    with Gateway() as server:
        done = cli("train", small(*behind(server), rows=4))
    assert done.exit_code == 2
    assert "not plain ASCII in one line" in done.stderr
    assert "canary" not in done.output
    assert server.seen == []


def test_a_run_behind_a_gateway_is_paid_by_the_stated_price_and_goes_on_with_it(
    cli: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A budget in dollars ends it, `resume` and `eval` know price and headers, and the secret is nowhere."""
    caplog.set_level(0)
    monkeypatch.setenv("GATEWAY_KEY", SECRET)
    run, printed = tmp_path / "run", []
    with Gateway() as server:
        folder = small(*behind(server), rows=6)
        first = cli("train", folder, "--run-dir", run, "--budget", "15")
        assert first.exit_code == 3, first.output
        assert "Stated price of my-deployment: input $400, cached $100, output $1600" in first.stderr
        assert 0 < dollars_of(run) <= 15
        assert "<html>[redacted]" in (run / "completions.jsonl").read_text()
        printed += [first.stdout + first.stderr]
        for command in (
            ("resume", run, "--budget", "100000"),
            ("show", run),
            ("report", run),
            ("eval", run, "--data", folder / "test.jsonl", "--budget", "100000"),
            ("eval", run, "--data", folder / "test.jsonl", "--json"),
        ):
            done = cli(*command)
            assert done.exit_code == 0, done.output
            printed.append(done.stdout + done.stderr)
    assert "its costs are by stated prices" in printed[1]
    assert "its costs are by stated prices" in printed[2]
    assert {(each["x-team"], each["x-gateway-key"]) for each in server.seen} == {("search", SECRET)}
    kept = json.loads((run / "config.json").read_text())["config"]["models"]
    assert kept["prices"] == {"my-deployment": {"input": 400.0, "cached": 100.0, "output": 1600.0}}
    assert kept["headers"] == {"x-team": "search", "x-gateway-key": {"env": "GATEWAY_KEY"}}
    calls = [json.loads(line) for line in (run / "completions.jsonl").read_text().splitlines()[1:]]
    usages = [call["usage"] for call in calls if call.get("usage", {}).get("input_tokens")]
    assert usages
    for usage in usages:
        by_price = (usage["input_tokens"] * 400 + usage["output_tokens"] * 1600) / 1e6
        assert usage["dollars"] == pytest.approx(by_price)
    assert [text for text in (*printed, caplog.text) if SECRET in text] == []
    assert [path for path in tmp_path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()] == []


def test_another_address_on_the_command_line_gets_no_headers(
    cli: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The secret is that of the gateway which the config names; the variable need not be set then."""
    monkeypatch.delenv("GATEWAY_KEY", raising=False)
    with Gateway() as server, Gateway() as other:
        folder = small(*behind(server), rows=4)
        done = cli("train", folder, "--run-dir", tmp_path / "run", "--base-url", other.base_url, "--budget", "5000")
        assert done.exit_code == 0, done.output
    assert server.seen == []
    assert other.seen
    assert not any({"x-team", "x-gateway-key"} & set(each) for each in other.seen)


def test_a_price_on_the_command_line_is_that_of_each_model_and_is_kept(cli: Any, small: Any, tmp_path: Path) -> None:
    """So a limit in dollars can be kept without a change of the file, by `resume`, too."""
    run, price = tmp_path / "run", "input=400,output=1600"
    with Gateway() as server:
        folder = small(rows=6)
        to_it = ("--model", "x", "--base-url", server.base_url)
        refused = cli("train", folder, *to_it, "--budget", "1", "--run-dir", run)
        assert refused.exit_code == 2
        assert "--price input=0.4,output=1.6" in refused.stderr
        assert not run.exists()
        first = cli("train", folder, *to_it, "--budget", "15", "--price", price, "--run-dir", run)
        assert first.exit_code == 3, first.output
        assert "Stated price of x: input $400, output $1600" in first.stderr
        done = cli("resume", run, "--budget", "100000")
        assert done.exit_code == 0, done.output
        dear = cli("eval", run, "--data", folder / "test.jsonl", "--price", "input=800,output=1600", "--json")
        cheap = cli("eval", run, "--data", folder / "test.jsonl", "--json")
    costs = [json.loads(each.stdout)["usage"] for each in (cheap, dear)]
    used = [usage.get("total", usage) for usage in costs]
    assert used[1]["dollars"] - used[0]["dollars"] == pytest.approx(used[0]["input_tokens"] * 400 / 1e6)
    assert json.loads((run / "config.json").read_text())["config"]["models"]["prices"] == {
        "x": {"input": 400.0, "cached": None, "output": 1600.0}
    }


def test_a_price_on_the_command_line_leaves_known_ones_as_they_are(cli: Any, small: Any) -> None:
    """Else a critic whose price is known counts as a cheap model, and a limit in dollars is passed."""
    models = 'forward = "mine"\nbackward = "openai/gpt-5"\nbase_url = "http://127.0.0.1:1/v1"'
    folder = small(('forward = "simulated/tickets"', models), rows=6)
    unknown = " ".join(cli("estimate", folder).stdout.split())
    assert "cost unknown: nobody knows the price of mine; --price states it" in unknown
    given = json.loads(cli("estimate", folder, "--price", "input=4,output=16", "--json").stdout)
    assert given["prices"] == {"mine": {"input": 4.0, "cached": None, "output": 16.0}}
    config = folder / "config.toml"
    config.write_text(config.read_text() + "\n[models.prices.mine]\ninput = 1\noutput = 2\n")
    both = json.loads(cli("estimate", folder, "--price", "input=4,output=16", "--json").stdout)
    assert both["prices"] == dict.fromkeys(("mine", "openai/gpt-5"), given["prices"]["mine"])


@pytest.mark.parametrize(
    "command",
    [
        "estimate CONFIG --model ours",
        "train CONFIG --model ours --budget 100 --run-dir run",
        "eval CONFIG --model ours --budget 100",
        "compare CONFIG --model ours --prompt mine.txt --config other --budget 100 --no-cache",
        "compare CONFIG --model simulated/tickets --model ours --budget 100 --no-cache",
    ],
)
def test_the_config_states_what_a_model_costs_that_only_the_command_line_names(
    cli: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Its price, and where it is asked, so that a limit in dollars holds for it; a name of nobody is still refused."""
    monkeypatch.chdir(tmp_path)
    folder = small(rows=6)
    with LoopbackServer(FunctionModel(answer)) as server, (folder / "config.toml").open("a") as file:
        file.write(
            f'\n[models.prices.ours]\ninput = 4\noutput = 16\n[models.endpoints.ours]\nbase_url = "{server.base_url}"\n'
        )
        file.flush()
        shutil.copytree(folder, "other")
        Path("other/config.toml").write_text((folder / "config.toml").read_text().replace("planters", "plants"))
        Path("mine.txt").write_text("Sort the ticket into a queue.")
        done = cli(*(folder if word == "CONFIG" else word for word in command.split()), "--json")
        assert done.exit_code == 0, done.output
        assert server.requests > 0 or command.startswith("estimate")
    refused = cli("train", folder)
    assert refused.exit_code == 2
    assert "[models.prices.ours] is no model of this config, which asks simulated/tickets" in refused.stderr
    assert "take it out, or ask that model, with --model ours" in refused.stderr


def test_folds_and_estimate_know_the_price(cli: Any, small: Any, tmp_path: Path) -> None:
    """They go the same way."""
    folder = small(rows=6)
    text = (
        (folder / "config.toml")
        .read_text()
        .replace("[budget]", '[models.prices."simulated/tickets"]\ninput = 4\noutput = 16\n\n[budget]')
    )
    (folder / "config.toml").write_text(text)
    estimate = json.loads(cli("estimate", folder, "--json").stdout)
    assert estimate["prices"] == {"simulated/tickets": {"input": 4.0, "cached": None, "output": 16.0}}
    assert estimate["dollars"]["low"] > 0
    shown = cli("estimate", folder).stdout
    assert "Stated price of simulated/tickets: input $4, output $16" in " ".join(shown.split())
    done = cli("train", folder, "--folds", "2", "--run-dir", tmp_path / "folds", "--budget", "100")
    assert done.exit_code == 0, done.output
    assert "Stated price of simulated/tickets" in done.stderr
    assert "its costs are by stated prices" in " ".join(done.stdout.split())
    assert dollars_of(tmp_path / "folds" / "fold-1") > 0


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("0.4", "'0.4' is no part of that"),
        ("", "'' is no part of that"),
        ("input=0.4", "input and output must be there"),
        ("input=x,output=1", "input = 'x' is no number"),
        ("input=-1,output=1", "input is dollars per million tokens, a number from 0 to 1,000,000"),
        ("input=nan,output=1", "a number from 0 to 1,000,000"),
        ("input=1e308,output=1", "a number from 0 to 1,000,000"),
        ("input=1,output=inf", "output is dollars per million tokens, a number from 0 to 1,000,000"),
        ("input=1,output=2,input=3", "'input=3' is no part of that"),
        ("in=1,output=2", "'in=1' is no part of that"),
    ],
)
def test_a_price_that_is_none_is_explained(cli: Any, small: Any, said: str, problem: str) -> None:
    """With what to write instead."""
    done = cli("estimate", small(rows=4), "--price", said)
    assert done.exit_code == 2
    assert f"--price {said!r}: " in done.stderr
    assert problem in done.stderr


def test_a_model_in_this_process_needs_no_header(
    cli: Any, small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--model simulated/tickets` tries a config out, wherever its own models are."""
    monkeypatch.delenv("GATEWAY_KEY", raising=False)
    headers = '[models.headers]\nx-gateway-key = {env = "GATEWAY_KEY"}\n\n[budget]'
    done = cli("train", small(("[budget]", headers), rows=4), "--run-dir", tmp_path / "run", "--quiet")
    assert done.exit_code == 0, done.output
