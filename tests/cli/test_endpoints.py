"""Models of one config at several endpoints: each is asked where, by which key and how its own table says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel, LoopbackServer, feedback_for

OPENAI = "canary/openai+secret012345"
LARGE = "canary/large+secret01234567"


def answer(request: Request) -> Any:
    """Something to every kind of request."""
    form = request.config.response_format
    if form is None:
        return "no idea"
    properties = form.json_schema["properties"]
    if "score" in properties:
        return {"explanation": "So it is.", "score": 1}
    if "edits" in properties:
        return {"edits": [{"op": "add", "line": 1, "text": "Say it.", "reason": "unsaid", "feedback": [1]}]}
    return feedback_for(request, "say it")


class Endpoint(LoopbackServer):
    """Keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(FunctionModel(answer))
        self.seen: list[tuple[str, Mapping[str, str], dict[str, Any]]] = []

    async def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Any:
        asked = json.loads(body)
        self.seen.append((asked["model"], dict(headers), asked))
        return await super().respond(method, path, headers, body)

    def of(self, what: str) -> set[Any]:
        """What the bodies say of something."""
        return {body.get(what) for _, _, body in self.seen}

    def keys(self) -> set[str]:
        return {headers["authorization"] for _, headers, _ in self.seen}


def beside(small: LoopbackServer, large: LoopbackServer, key: str = 'api_key = {env = "LARGE_KEY"}') -> tuple[str, str]:
    return (
        'forward = "simulated/tickets"',
        f"""forward = "small"
backward = "large"
optimizer = "large"
base_url = "{small.base_url}"
config = {{ temperature = 0 }}
max_in_flight = 2

[models.endpoints.large]
base_url = "{large.base_url}"
{key}
config = {{ reasoning_effort = "low" }}
headers = {{ x-team = "search" }}""",
    )


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch, cli: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI)
    monkeypatch.setenv("LARGE_KEY", LARGE)


@pytest.mark.usefixtures("held")
def test_a_small_model_of_ones_own_is_trained_by_a_large_one_elsewhere(cli: Any, small: Any, tmp_path: Path) -> None:
    """Each gets what its table says and nothing of the other's, least of all its key; later commands know it, too."""
    run = tmp_path / "run"
    with Endpoint() as own, Endpoint() as other:
        folder = small(beside(own, other), rows=6)
        done = cli("train", folder, "--run-dir", run)
        assert done.exit_code == 0, done.output
        assert (own.of("model"), other.of("model")) == ({"small"}, {"large"})
        assert (own.of("temperature"), other.of("temperature")) == ({0}, {None})
        assert (own.of("reasoning_effort"), other.of("reasoning_effort")) == ({None}, {"low"})
        assert (own.keys(), other.keys()) == ({"Bearer none"}, {f"Bearer {LARGE}"})
        assert {headers.get("x-team") for _, headers, _ in own.seen} == {None}
        assert {headers.get("x-team") for _, headers, _ in other.seen} == {"search"}
        asked = len(own.seen), len(other.seen)
        assert cli("resume", run).exit_code == 0
        assert cli("estimate", folder).exit_code == 0
        assert (len(own.seen), len(other.seen)) == asked
        done = cli("eval", run, "--json")
        assert done.exit_code == 0, done.output
        assert (len(own.seen), len(other.seen)) == (asked[0] + 6, asked[1])
        assert json.loads(done.stdout)["base_url"] == own.base_url
    assert [path for path in run.rglob("*") if path.is_file() and b"canary" in path.read_bytes()] == []


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    ("key", "sent"),
    [("", "none"), ('api_key = {env = "LARGE_KEY"}', LARGE), ('api_key = {env = "OPENAI_API_KEY"}', OPENAI)],
)
def test_the_key_of_one_endpoint_is_not_sent_to_another(
    cli: Any, small: Any, tmp_path: Path, key: str, sent: str
) -> None:
    """Whose `OPENAI_API_KEY` is, where there are two, is for the config to say."""
    with Endpoint() as own, Endpoint() as other:
        done = cli("train", small(beside(own, other, key), rows=4), "--run-dir", tmp_path / "run")
        assert done.exit_code == 0, done.output
    assert (own.keys(), other.keys()) == ({"Bearer none"}, {f"Bearer {sent}"})


@pytest.mark.usefixtures("held")
def test_one_endpoint_may_have_a_key_of_another_name(cli: Any, small: Any, tmp_path: Path) -> None:
    """Beside a model that asks no endpoint, too, one alone is sent `OPENAI_API_KEY` where nothing else is said."""
    with Endpoint() as own:
        at = f'forward = "small"\nbase_url = "{own.base_url}"'
        inside = (
            'backward = "simulated/tickets"\noptimizer = "simulated/tickets"\n\n[models.endpoints."simulated/tickets"]'
        )
        for number, (more, key) in enumerate(((f"{inside}\n", OPENAI), ('api_key = {env = "LARGE_KEY"}', LARGE))):
            own.seen.clear()
            folder = small(('forward = "simulated/tickets"', f"{at}\n{more}"), rows=4)
            done = cli("train", folder, "--run-dir", tmp_path / str(number))
            assert done.exit_code == 0, done.output
            assert own.keys() == {f"Bearer {key}"}


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("command", ["train", "estimate", "eval"])
def test_a_wrong_address_on_the_command_line_is_told_of_that_and_not_of_the_file(
    cli: Any, small: Any, command: str
) -> None:
    """Not of a line where a right one stands; and a password in it would be written down with what was evaluated."""
    folder = small(('forward = "simulated/tickets"', 'forward = "m"\nbase_url = "http://127.0.0.1:9/v1"'))
    for wrong, said in (("127.0.0.1:9/v1", "= '127.0.0.1:9/v1' is no address"), ("http://a:b@c", "holds a key")):
        done = cli(command, folder, "--base-url", wrong)
        assert done.exit_code == 2
        assert done.stderr.startswith(f"error: --base-url: base_url {said}")


@pytest.mark.parametrize("command", ["train", "estimate", "eval"])
@pytest.mark.parametrize("option", ["--model", "--judge", "--base-url"])
def test_a_key_in_an_option_is_refused(cli: Any, small: Any, command: str, option: str) -> None:
    """It would be written down with what was asked, and sent as the name of a model."""
    key = "sk-" + 8 * "a1B2"
    metric = 'name = "judge"\ninstructions = "Is it right?"'
    folder = small(('name = "exact_match"', metric), ('forward = "simulated/tickets"', 'forward = "m"'))
    done = cli(command, folder, option, f"http://127.0.0.1:9/{key}/v1" if option == "--base-url" else f"openai/{key}")
    assert (done.exit_code, key in done.output) == (2, False)
    assert done.stderr.startswith(f"error: {option} holds a key; set the environment variable OPENAI_API_KEY")


@pytest.mark.usefixtures("held")
def test_an_address_on_the_command_line_is_that_of_all_models(cli: Any, small: Any, tmp_path: Path) -> None:
    """Keys and headers stay at home; what a model is asked for goes along."""
    with Endpoint() as own, Endpoint() as other, Endpoint() as third:
        folder = small(beside(own, other), rows=4)
        done = cli("train", folder, "--run-dir", tmp_path / "run", "--base-url", third.base_url)
        assert done.exit_code == 0, done.output
        assert (own.seen, other.seen, third.of("model")) == ([], [], {"small", "large"})
        assert third.keys() == {f"Bearer {OPENAI}"}
        assert {
            (body["model"], body.get("temperature"), body.get("reasoning_effort")) for _, _, body in third.seen
        } == {
            ("small", 0, None),
            ("large", None, "low"),
        }
        assert not any("x-team" in headers for _, headers, _ in third.seen)
        third.seen.clear()
        done = cli("eval", tmp_path / "run", "--model", "large", "--data", folder / "test.jsonl")
        assert done.exit_code == 0, done.output
        assert third.of("reasoning_effort") == {"low"}


@pytest.mark.usefixtures("held")
def test_a_model_of_the_command_line_is_asked_where_its_table_says(cli: Any, small: Any, tmp_path: Path) -> None:
    """And any other where all are; a model inside this process needs neither table nor key."""
    with Endpoint() as own, Endpoint() as other:
        folder = small(beside(own, other), rows=4)
        for name, server in (("large", other), ("tiny", own)):
            done = cli("eval", folder, "--model", name)
            assert done.exit_code == 0, done.output
            assert (server.of("model"), len(own.seen) + len(other.seen)) == ({name}, 4)
            own.seen.clear()
            other.seen.clear()


@pytest.mark.usefixtures("held")
def test_who_judged_where_is_on_record(cli: Any, small: Any, tmp_path: Path) -> None:
    """Scores of one judge are compared wherever the program's model is; those of its namesake elsewhere are not."""
    judge = 'name = "judge"\ninstructions = "Is it right?"\nscale = [0, 1]'
    with Endpoint() as own, Endpoint() as other:
        at, roles = beside(own, other)
        roles = roles.replace('optimizer = "large"', 'optimizer = "large"\njudge = "large"')
        folder = small((at, roles), ('name = "exact_match"', judge), rows=4)
        done = cli("train", folder, "--run-dir", tmp_path / "run")
        assert done.exit_code == 0, done.output
        done = cli("eval", tmp_path / "run", "--json")
        assert done.exit_code == 0, done.output
        said = json.loads(done.stdout)
        assert (said["base_url"], said["judge_url"]) == (own.base_url, other.base_url)
        assert [(each["judge_url"], each["comparison"] is not None) for each in said["earlier"]] == [
            (other.base_url, True)
        ]
        done = cli("eval", tmp_path / "run", "--json", "--base-url", own.base_url)
        said = json.loads(done.stdout)
        assert "judge_url" not in said
        assert [each["comparison"] for each in said["earlier"]] == [None, None]


def test_a_variable_that_is_not_set_is_named(cli: Any, small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With file, line and repair, before anything is asked."""
    monkeypatch.delenv("LARGE_KEY", raising=False)
    with Endpoint() as own, Endpoint() as other:
        folder = small(beside(own, other), rows=4)
        done = cli("train", folder)
        assert done.exit_code == 2
        line = (folder / "config.toml").read_text().splitlines().index('api_key = {env = "LARGE_KEY"}') + 1
        assert " ".join(done.stderr.split()).startswith(
            f"error: {folder / 'config.toml'}:{line}: [models.endpoints.large] api_key has no value: it is what the "
            "environment variable LARGE_KEY holds; set that, or take it out where the endpoint needs no key"
        )
        assert cli("estimate", folder).exit_code == 0
    assert own.seen + other.seen == []


def test_openai_beside_a_server_of_ones_own_wants_its_key(
    cli: Any, small: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Which another variable may hold."""
    table = '[models.endpoints."openai/gpt-5"]\n'
    with Endpoint() as own:
        at = f'forward = "small"\nbackward = "openai/gpt-5"\nbase_url = "{own.base_url}"\n\n{table}'
        folder = small(('forward = "simulated/tickets"', at), rows=4)
        done = cli("train", folder, "--run-dir", tmp_path / "run")
        assert done.exit_code == 2
        assert "[models] backward = 'openai/gpt-5' needs a key" in done.stderr
        config = folder / "config.toml"
        config.write_text(config.read_text().replace(table, f'{table}api_key = {{env = "LARGE_KEY"}}\n'))
        done = cli("train", folder, "--run-dir", tmp_path / "run")
        assert '[models.endpoints."openai/gpt-5"] api_key has no value' in " ".join(done.stderr.split())
        assert own.seen == []
