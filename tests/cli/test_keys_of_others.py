"""Keys of a config that are arguments of another library: the error names ours, or says what there is instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from textgrad_engine.cli.config_file import load_config
from textgrad_engine.errors import ConfigError

CONFIG = """\
[program]
system = "Sort the ticket."
user = "{ticket}"
[data]
train = "train.jsonl"
target = "queue"
[models]
forward = "openai/gpt-5-mini"
[optimizer]
name = "ParetoSearch"
[train]
max_steps = 2
"""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("name =", "reflection_minibatch_size = 3\nname ="), "reflection_minibatch_size'; here it is 'batch_size'"),
        (("name =", "use_merge = true\nname ="), "'use_merge'; here it is 'merges'"),
        (("name =", "max_metric_calls = 9\nname ="), r"'max_metric_calls'; \[budget\] calls = N bounds the calls"),
        (("name =", 'auto = "light"\nname ='), r"'auto'; \[budget\] calls = N bounds the calls"),
        (("name =", 'reflection_lm = "a"\nname ='), r"'reflection_lm'; \[models\] optimizer = "),
        (("name =", 'component_selector = "all"\nname ='), "'component_selector'; leave it out: the prompt that is"),
        (("name =", "skip_perfect_score = true\nname ="), "'skip_perfect_score'; leave it out: nothing is said of"),
        (("max_steps", "num_threads"), r"'num_threads'; \[models\] max_in_flight bounds calls at once"),
        (("forward =", "lm ="), "'lm'; here it is 'forward'$"),
        (("forward =", 'reflection_lm = "a"\nforward ='), r"'reflection_lm'; \[models\] optimizer = "),
        (("forward =", 'api_base = "a"\nforward ='), "'api_base'; here it is 'base_url'"),
        (("system =", "prompt ="), "'prompt'; system is the prompt, which is trained, and user what it is asked"),
        (("train =", "trainset ="), "'trainset'; here it is 'train'$"),
        (("target =", "label ="), "'label'; here it is 'target'"),
    ],
)
def test_a_key_that_is_called_otherwise_here_is_told_by_ours(
    change: tuple[str, str], says: str, tmp_path: Path
) -> None:
    """A likeness of letters would say another one: feedback_batch_size, api_key."""
    (tmp_path / "train.jsonl").write_text('{"ticket": "dark", "queue": "light"}\n', encoding="utf-8")
    (tmp_path / "config.toml").write_text(CONFIG.replace(*change), encoding="utf-8")
    with pytest.raises(ConfigError, match=f"has no key .*{says}") as caught:
        load_config(tmp_path)
    assert "\n" not in str(caught.value), "nothing is said to be missing that is there by another name"
