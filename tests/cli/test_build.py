"""From config to objects: every setting arrives where it belongs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from textgrad_engine import Variable, nn
from textgrad_engine.cli import build
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.errors import ConfigError, TemplateError
from textgrad_engine.llm import OpenAIModel, innermost, model_for
from textgrad_engine.llm.context import context_window
from textgrad_engine.train import Guards, Trainer


def test_a_plain_program_trains_its_system_prompt(small: Any) -> None:
    """The parameter is called system, and the user template is not trained."""
    config = load_config(small())
    program = build.make_program(config)
    assert [(name, p.data) for name, p in program.named_parameters()] == [("system", config.system_text())]


def test_the_optimizer_gets_its_settings(small: Any) -> None:
    """Nothing in the file is accepted and ignored."""
    config = load_config(small(("max_edits = 4", 'max_edits = 2\nmode = "patch"\nmomentum = 3\nmax_tokens = 99')))
    optimizer = build.make_optimizer(config, build.make_program(config), feedback=False)
    group = optimizer.param_groups[0]
    assert {key: group[key] for key in ("max_edits", "mode", "momentum", "max_tokens", "use_feedback")} == {
        "max_edits": 2, "mode": "patch", "momentum": 3, "max_tokens": 99, "use_feedback": False,
    }  # fmt: skip


def test_the_trainer_gets_its_settings(small: Any) -> None:
    """The one that trains and the one of an estimate are made alike; nothing in the file is left behind."""
    settings = "max_steps = 7\npatience = 3\nfeedback_batch_size = 2\nfeedback_images = 0\n"
    settings += "tokens_weight = 0.1\nlatency_weight = 0.2"
    config = load_config(
        small(
            ("max_epochs = 1", f"max_epochs = 4\n{settings}"),
            ("seed = 0", "seed = 5"),
            ('target = "queue"', 'target = "queue"\nclusters = "id"'),
        )
    )
    guards = Guards(never_break=("v001",))
    assert repr(build.make_trainer(config, guards, controls=True)) == repr(
        Trainer(
            4, batch_size=6, max_steps=7, patience=3, feedback_batch_size=2, feedback_images=0, target="queue", seed=5,
            guards=guards, clusters="id", tokens_weight=0.1, latency_weight=0.2, controls=True,
        )
    )  # fmt: skip
    plain = build.make_trainer(load_config(small()), None, controls=False)
    assert repr(plain) == "Trainer(batch_size=6, target='queue')"
    without = load_config(small(("max_epochs = 1", "critic = false")))
    found = build.make_trainer(without, None, controls=False)
    assert repr(found) == "Trainer(max_epochs=3, batch_size=6, critic=False, target='queue')"


def test_metrics_are_made_from_their_names(small: Any) -> None:
    """Exact match, a judge with its scale, and a function of the user's."""
    assert isinstance(build.make_metric(load_config(small())), nn.ExactMatch)
    judge = build.make_metric(
        load_config(
            small(('name = "exact_match"', 'name = "judge"\ninstructions = "Is it right?"\nscale = [0.0, 5.0]'))
        )
    )
    assert isinstance(judge, nn.Judge)
    assert (judge.instructions, judge.scale) == ("Is it right?", (0.0, 5.0))
    folder = small(('name = "exact_match"', 'function = "score:close"\npurpose = "closeness"'))
    (folder / "score.py").write_text("def close(prediction, target):\n    return 0.5\n", encoding="utf-8")
    metric = build.make_metric(load_config(folder))
    assert isinstance(metric, nn.Metric)
    assert (metric.purpose, metric.scale, metric(Variable("x"), "y").data) == ("closeness", None, 0.5)
    (folder / "config.toml").write_text(
        (folder / "config.toml").read_text(encoding="utf-8").replace('"closeness"', '"closeness"\nscale = [0, 10]'),
        encoding="utf-8",
    )
    scaled = build.make_metric(load_config(folder))
    assert isinstance(scaled, nn.Metric)
    assert scaled.scale == (0.0, 10.0)


def test_roles_of_one_name_share_one_model(small: Any) -> None:
    """So that one endpoint has one limit of what is in flight."""
    models = 'forward = "a"\nbackward = "b"\noptimizer = "b"\nbase_url = "http://127.0.0.1:1/v1"\n'
    sampling = "[models.config]\ntemperature = 0.5\nseed = 9"
    config = load_config(small(('forward = "simulated/tickets"', models + sampling)))
    roles = build.make_models(config)
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
    assert [context_window(model) for model in build.make_models(config).values()] == [4096, 4096]
    (other,) = build.make_models(config.with_overrides(model="c")).values()
    assert context_window(other) is None
    embedded = load_config(small(('forward = "simulated/tickets"', 'forward = "simulated/tickets"\ncontext = 9')))
    assert context_window(build.make_models(embedded)["forward"]) == 9


def test_limits_per_minute_reach_every_model(small: Any) -> None:
    """Who states what the endpoint allows must not be refused by it, with whatever model."""
    rates = 'forward = "a"\nbackward = "b"\nbase_url = "http://127.0.0.1:1/v1"\nrequests_per_minute = 90\n'
    config = load_config(small(('forward = "simulated/tickets"', rates + "tokens_per_minute = 5e4")))
    for changed in (config, config.with_overrides(model="c")):
        for model in build.make_models(changed).values():
            assert "requests_per_minute=90" in repr(model)
            assert "tokens_per_minute=50000" in repr(model)
    embedded = load_config(
        small(('forward = "simulated/tickets"', 'forward = "simulated/tickets"\nrequests_per_minute = 9'))
    )
    assert "requests_per_minute=9" in repr(build.make_models(embedded)["forward"])


def test_how_many_are_asked_at_once_and_how_long_one_may_take_reach_every_model(small: Any) -> None:
    """A server of one's own may be slow, or take only so many."""
    models = (
        'forward = "a"\nbackward = "b"\nbase_url = "http://127.0.0.1:1/v1"\nmax_in_flight = 3\ncall_deadline = 900\n'
    )
    config = load_config(small(('forward = "simulated/tickets"', models)))
    for changed in (config, config.with_overrides(model="c")):
        for model in build.make_models(changed).values():
            assert "max_in_flight=3" in repr(model)
            assert ", 900)" in repr(model)


def test_the_api_is_that_of_every_endpoint(small: Any) -> None:
    """Also of a model that the command line names; an embedded one has none."""
    asked = 'forward = "a"\nbase_url = "http://127.0.0.1:1/v1"\napi = "responses"'
    config = load_config(small(('forward = "simulated/tickets"', asked)))
    for changed in (config, config.with_overrides(model="b")):
        assert "api='responses'" in repr(build.make_models(changed)["forward"])
    embedded = load_config(small(('forward = "simulated/tickets"', 'forward = "simulated/tickets"\napi = "responses"')))
    assert build.make_models(embedded)


def test_a_setting_that_the_api_lacks_is_named_with_its_line(small: Any) -> None:
    """Not a traceback, and not a setting dropped in silence."""
    asked = 'forward = "a"\nbase_url = "http://127.0.0.1:1/v1"\napi = "responses"\n[models.config]\nseed = 1'
    config = load_config(small(('forward = "simulated/tickets"', asked)))
    with pytest.raises(ConfigError, match=r":\d+: .*Responses API has no setting 'seed'"):
        build.make_models(config)


def test_the_seed_of_the_run_is_that_of_the_models(small: Any) -> None:
    """One seed makes the whole run repeatable."""
    inside: Any = innermost(build.make_models(load_config(small(("seed = 0", "seed = 4"))))["forward"])
    assert inside.seed == 4


def test_a_key_is_wanted_by_openai_only(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of one's own asks for none."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    config = load_config(small(('forward = "simulated/tickets"', 'forward = "openai/gpt-5-mini"')))
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        build.make_models(config)
    assert build.make_models(config.with_overrides(base_url="http://127.0.0.1:1/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert build.make_models(config)


def test_the_users_own_prompts_are_checked(small: Any, tmp_path: Path) -> None:
    """A file with a name that the library does not use is a mistake, found before the run."""
    folder = small(("seed = 0", 'seed = 0\nprompts = "mine"'))
    (folder / "mine").mkdir()
    (folder / "mine" / "critik.md").write_text("x", encoding="utf-8")
    with pytest.raises(TemplateError, match="no prompt 'critik'"), build.prompts_of(load_config(folder)):
        pass
    (folder / "mine" / "critik.md").unlink()
    own = "---\nname: metric\npurpose: a test\nslots: purpose, score\n---\n# User\n{{ purpose }}"
    (folder / "mine" / "metric.md").write_text(own, encoding="utf-8")
    with pytest.raises(TemplateError, match="must say 'slots: purpose"), build.prompts_of(load_config(folder)):
        pass
