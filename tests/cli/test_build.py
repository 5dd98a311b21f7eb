"""From config to objects: every setting arrives where it belongs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, nn
from textgrad_engine.cli import build
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.errors import TemplateError
from textgrad_engine.testing import ScriptedModel
from textgrad_engine.train import Guards, Trainer


def test_a_plain_program_trains_its_system_prompt(small: Any) -> None:
    """The parameter is called system, and the user template is not trained."""
    config = load_config(small())
    program = build.make_program(config)
    assert [(name, p.data) for name, p in program.named_parameters()] == [("system", config.system_text())]


def test_the_optimizer_gets_its_settings(small: Any) -> None:
    """Nothing in the file is accepted and ignored."""
    config = load_config(small(("max_edits = 12", 'max_edits = 2\nmode = "patch"\nmomentum = 3\nmax_tokens = 99')))
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


@pytest.mark.parametrize(
    ("scale", "told"),
    [("", "from 0 to 1"), ("scale = [1, 5]", "from 1 to 5"), ("scale = [0.0, 2.5]", "from 0.0 to 2.5")],
)
def test_a_judge_is_told_its_scale_as_the_config_has_it(scale: str, told: str, small: Any) -> None:
    """Of a scale from 1.0 to 5.0 a judge takes other marks than of one from 1 to 5, which Python's asks of it."""
    table = f'name = "judge"\ninstructions = "Is it right?"\n{scale}'
    model = ScriptedModel([{"explanation": "", "score": 1}] * 2)
    config = load_config(small(('name = "exact_match"', table)))
    kept = json.loads(json.dumps(config.resolved()))  # in a run folder
    with tg.use_models(judge=model):
        for each in (config, Config.of(kept, config.path)):
            _ = build.make_metric(each)(Variable("x")).data
    assert [f"a number {told}}}" in request.messages[-1].text for request in model.requests] == [True, True]


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
