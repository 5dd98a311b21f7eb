"""The models of a config: who does which role, with what limits, at which price."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli import build
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.models import make_models
from textgrad_engine.errors import ConfigError
from textgrad_engine.llm import OpenAIModel, innermost, model_for
from textgrad_engine.llm.context import context_window


def test_roles_of_one_name_share_one_model(small: Any) -> None:
    """So that one endpoint has one limit of what is in flight."""
    models = 'forward = "a"\nbackward = "b"\noptimizer = "b"\nbase_url = "http://127.0.0.1:1/v1"\n'
    sampling = "[models.config]\ntemperature = 0.5\nseed = 9"
    config = load_config(small(('forward = "simulated/tickets"', models + sampling)))
    roles = make_models(config)
    assert roles["backward"] is roles["optimizer"] is not roles["forward"]
    inside = innermost(roles["forward"])
    assert isinstance(inside, OpenAIModel)
    assert inside.base_url == "http://127.0.0.1:1/v1"
    assert (inside.defaults.temperature, inside.defaults.seed) == (0.5, 9)
    with build.surroundings(config, roles) as limits:
        assert model_for("judge") is roles["forward"]
        assert model_for("optimizer") is roles["optimizer"]
        assert limits.calls == 5000


def test_a_stated_context_reaches_every_model_but_one_of_another_name(small: Any) -> None:
    """It is that of the models that the file names; what --model names has its own."""
    named = 'forward = "a"\nbackward = "b"\nbase_url = "http://127.0.0.1:1/v1"\ncontext = 4096'
    config = load_config(small(('forward = "simulated/tickets"', named)))
    assert [context_window(model) for model in make_models(config).values()] == [4096, 4096]
    (other,) = make_models(config.with_overrides(model="c")).values()
    assert context_window(other) is None
    embedded = load_config(small(('forward = "simulated/tickets"', 'forward = "simulated/tickets"\ncontext = 9')))
    assert context_window(make_models(embedded)["forward"]) == 9


def test_limits_per_minute_reach_every_model(small: Any) -> None:
    """Who states what the endpoint allows must not be refused by it, with whatever model."""
    rates = 'forward = "a"\nbackward = "b"\nbase_url = "http://127.0.0.1:1/v1"\nrequests_per_minute = 90\n'
    config = load_config(small(('forward = "simulated/tickets"', rates + "tokens_per_minute = 5e4")))
    for changed in (config, config.with_overrides(model="c")):
        for model in make_models(changed).values():
            assert "requests_per_minute=90" in repr(model)
            assert "tokens_per_minute=50000" in repr(model)
    embedded = load_config(
        small(('forward = "simulated/tickets"', 'forward = "simulated/tickets"\nrequests_per_minute = 9'))
    )
    assert "requests_per_minute=9" in repr(make_models(embedded)["forward"])


def test_how_many_are_asked_at_once_and_how_long_one_may_take_reach_every_model(small: Any) -> None:
    """A server of one's own may be slow, or take only so many."""
    models = (
        'forward = "a"\nbackward = "b"\nbase_url = "http://127.0.0.1:1/v1"\nmax_in_flight = 3\ncall_deadline = 900\n'
    )
    config = load_config(small(('forward = "simulated/tickets"', models)))
    for changed in (config, config.with_overrides(model="c")):
        for model in make_models(changed).values():
            assert "max_in_flight=3" in repr(model)
            assert ", 900)" in repr(model)


def test_the_api_is_that_of_every_endpoint(small: Any) -> None:
    """Also of a model that the command line names; an embedded one has none."""
    asked = 'forward = "a"\nbase_url = "http://127.0.0.1:1/v1"\napi = "responses"'
    config = load_config(small(('forward = "simulated/tickets"', asked)))
    for changed in (config, config.with_overrides(model="b")):
        assert "api='responses'" in repr(make_models(changed)["forward"])
    embedded = load_config(small(('forward = "simulated/tickets"', 'forward = "simulated/tickets"\napi = "responses"')))
    assert make_models(embedded)


def test_a_setting_that_the_api_lacks_is_named_with_its_line(small: Any) -> None:
    """Not a traceback, and not a setting dropped in silence."""
    asked = 'forward = "a"\nbase_url = "http://127.0.0.1:1/v1"\napi = "responses"\n[models.config]\nseed = 1'
    config = load_config(small(('forward = "simulated/tickets"', asked)))
    with pytest.raises(ConfigError, match=r":\d+: .*Responses API has no setting 'seed'"):
        make_models(config)


def test_what_extra_cannot_pass_on_is_named_with_its_line_before_anything_is_asked(cli: Any, small: Any) -> None:
    """Not after the run folder was made, as an error while running."""
    asked = 'forward = "a"\nbase_url = "http://127.0.0.1:1/v1"\nconfig = { extra = { n = 3 } }'
    done = cli("estimate", small(('forward = "simulated/tickets"', asked)))
    assert done.exit_code == 2
    assert re.search(r"config\.toml:\d+: \[models\] forward = 'a': extra=\{'n': \.\.\.\} cannot be sent", done.stderr)


def test_the_seed_of_the_run_is_that_of_the_models(small: Any) -> None:
    """One seed makes the whole run repeatable."""
    inside: Any = innermost(make_models(load_config(small(("seed = 0", "seed = 4"))))["forward"])
    assert inside.seed == 4


def test_a_key_is_wanted_by_openai_only(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of one's own asks for none."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    config = load_config(small(('forward = "simulated/tickets"', 'forward = "openai/gpt-5-mini"')))
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        make_models(config)
    assert make_models(config.with_overrides(base_url="http://127.0.0.1:1/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert make_models(config)


def test_another_judge_leaves_the_others_and_keeps_the_prices_of_both(small: Any) -> None:
    """Beside ``--model`` or by itself; the file's judge is not asked where another does everything."""
    prices = "[models.prices]\n" + "".join(f"{name} = {{ input = 1, output = 1 }}\n" for name in ("a", "b"))
    change = (
        'forward = "simulated/tickets"',
        f'forward = "a"\njudge = "b"\nbase_url = "http://127.0.0.1:1/v1"\n{prices}',
    )
    own = load_config(small(change)).models
    for options, roles, priced in (
        ({"judge": "c"}, {"forward": "a", "judge": "c"}, ["a"]),
        ({"model": "c"}, {"forward": "c"}, []),
        ({"model": "c", "judge": "b"}, {"forward": "c", "judge": "b"}, ["b"]),
    ):
        found = own.changed(**options)
        assert (found.roles(), sorted(found.prices)) == (roles, priced)


@pytest.mark.parametrize("command", ["train", "estimate"])
def test_a_judge_that_nothing_answers_to_or_nobody_asks_is_named(cli: Any, small: Any, command: str) -> None:
    """By its option, before anything is asked."""
    done = cli(command, small(), "--judge", "simulated/tickets")
    assert done.exit_code == 2
    assert "--judge simulated/tickets: no [metric] asks a judge; leave it out" in " ".join(done.stderr.split())
    judged = small(('name = "exact_match"', 'name = "judge"\ninstructions = "Is it right?"'))
    done = cli(command, judged, "--judge", "simulated/nobody")
    assert done.exit_code == 2
    assert "error: --judge simulated/nobody: " in " ".join(done.stderr.split())
    done = cli(command, judged, "--model", "simulated/nobody", "--judge", "simulated/nobody")
    assert "error: --model simulated/nobody: " in " ".join(done.stderr.split())


def test_another_model_is_compared_where_the_judge_stays(cli: Any, small: Any, tmp_path: Path) -> None:
    """Else scores of two judges would be held against each other, which is refused with what keeps the judge."""
    path = small(('name = "exact_match"', 'name = "judge"\ninstructions = "Is it right?"'))
    (path / "others.py").write_text(
        "from textgrad_engine.llm import resolve\n\ncheap = resolve('simulated/tickets')\n", encoding="utf-8"
    )
    run = tmp_path / "run"
    assert cli("train", path, "--run-dir", run, "-q").exit_code == 0
    done = cli("eval", run, "--model", "others:cheap", "--not-worse")
    assert done.exit_code == 2
    assert "scores are those of another judge; --judge names it" in " ".join(done.stderr.split())
    done = cli("eval", run, "--model", "others:cheap")
    assert "not compared, as the judge was another one (--judge)" in done.stdout
    done = cli("eval", run, "--model", "others:cheap", "--judge", "simulated/tickets", "--not-worse")
    assert done.exit_code == 0
    assert "others:cheap" in done.stdout
    assert "best prompt, simulated/tickets, in the run" in " ".join(done.stdout.split())
