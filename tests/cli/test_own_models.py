"""`[models] forward = "module:name"`: a model object of the user's own, where a class and a metric may stand, too."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli import build
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.models import make_models
from textgrad_engine.errors import ConfigError
from textgrad_engine.llm import OpenAIModel, innermost
from textgrad_engine.testing import FunctionModel

OWN = '''"""A model of one's own."""
from textgrad_engine.llm.simulated import TicketsModel

class Gateway:
    """Answers as the embedded model does, under a name of its own."""

    free = True
    name = "gateway"

    def __init__(self):
        self.asked, self.inner = [], TicketsModel(seed=0)

    async def complete(self, request):
        self.asked.append(request)
        return await self.inner.complete(request)

def make():
    return Gateway()

short = lambda request: "no"
model = Gateway()
number = 7
unnamed = Gateway()
unnamed.name = 5
empty = Gateway()
empty.complete = None
'''
NAMED = ('forward = "simulated/tickets"', 'forward = "own:model"')


@pytest.fixture
def folder(small: Any) -> Path:
    """A config whose model is an object in a module beside it."""
    made: Path = small(NAMED)
    (made / "own.py").write_text(OWN, encoding="utf-8")
    return made


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("llama3:latest", "there is no module 'llama3'.*--base-url http://localhost:11434/v1"),
        ("own:modle", "own.py has no 'modle'; did you mean 'model'?"),
        ("own:number", "is no model but 7; a model has a name and `async def complete"),
        ("own:Gateway", r"is no model but the class Gateway.*; name an instance of it: model = Gateway\(...\)"),
        (
            "own:make",
            r"no model but the function make\(\).*; name what it makes, model = make\(\), or .*FunctionModel\(make\)",
        ),
        ("own:short", r"model = short\(\), or if it answers itself, model = FunctionModel\(short\)"),
        ("own:unnamed", "is no model but a value of type Gateway"),
        ("own:empty", "is no model but a value of type Gateway"),
        ("broken:model", r"ZeroDivisionError: .*broken.py:1\)"),
        ("script:model", r"SystemExit\('usage'\) \(.*script.py:2, in <module>\); .* under `if __name__ == "),
    ],
)
def test_what_is_no_model_is_named_with_its_line(folder: Path, name: str, said: str) -> None:
    """Before anything is asked; a server's model with a colon in its name is told what it lacks."""
    (folder / "broken.py").write_text("1 / 0\n", encoding="utf-8")
    (folder / "script.py").write_text("import sys\nsys.exit('usage')\n", encoding="utf-8")
    config = folder / "config.toml"
    config.write_text(config.read_text(encoding="utf-8").replace("own:model", name), encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"(?s)config.toml:\d+: \[models\] forward = '{name}':? .*{said}"):
        make_models(load_config(folder))


def test_an_option_that_names_no_model_speaks_of_itself(cli: Any, folder: Path) -> None:
    """Who typed --model is not sent to a line of the file."""
    result = cli("train", folder, "--model", "nowhere:model")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --model nowhere:model: there is no module 'nowhere'")


def test_with_an_address_it_is_the_servers_name(folder: Path) -> None:
    """Ollama's names have colons, too."""
    roles = make_models(load_config(folder).with_overrides(base_url="http://127.0.0.1:1/v1"))
    inside = innermost(roles["forward"])
    assert isinstance(inside, OpenAIModel)
    assert inside.name == "own:model"


def test_settings_reach_it_and_roles_share_it(small: Any) -> None:
    """What [models.config] says is in its requests, as in those to an endpoint."""
    folder = small((NAMED[0], 'forward = "own:model"\nbackward = "own:model"\n[models.config]\ntemperature = 0.25'))
    (folder / "own.py").write_text(
        "from textgrad_engine.testing import FunctionModel\n"
        "model = FunctionModel(lambda request: str(request.config.temperature))\n",
        encoding="utf-8",
    )
    config = load_config(folder)
    roles = make_models(config)
    assert roles["forward"] is roles["backward"]
    assert isinstance(innermost(roles["forward"]), FunctionModel)
    with build.surroundings(config, roles):
        assert build.make_program(config)(ticket="hello").data == "0.25"


def test_a_run_with_it_is_estimated_trained_resumed_and_evaluated(cli: Any, folder: Path, tmp_path: Path) -> None:
    """Every command finds it again, also from the run folder alone."""
    assert "on own:model" in cli("estimate", folder).stdout
    run = tmp_path / "run"
    trained = cli("train", folder, "--run-dir", run)
    assert trained.exit_code == 0, trained.output
    assert "$0.00" in trained.stdout
    lines = (run / "completions.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["model"] for line in lines} == {"gateway"}
    (run / "result.json").unlink()
    events = (run / "events.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run / "events.jsonl").write_text("".join(events[:-1]), encoding="utf-8")
    resumed = cli("resume", run)
    assert resumed.exit_code == 0, resumed.output
    assert "had been paid for before" in resumed.stderr
    evaluated = json.loads(cli("eval", run, "--json").stdout)
    assert evaluated["models"] == {"forward": "own:model"}


@pytest.mark.parametrize(("given", "said"), [("None", "None"), ("'billing'", "'billing'")])
def test_a_model_that_gives_no_completion_is_told_in_a_line(cli: Any, folder: Path, given: str, said: str) -> None:
    """No line of the user's is on the way to it, so nothing but a traceback of ours was shown."""
    own = (folder / "own.py").read_text(encoding="utf-8")
    (folder / "own.py").write_text(own.replace("return await self.inner.complete(request)", f"return {given}"))
    done = cli("eval", folder)
    assert done.exit_code == 1
    assert f"error: the model 'gateway': Gateway.complete() gave {said}; give llm.Completion(text=...)" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are text there")
def test_a_folder_may_have_a_name_in_another_encoding(folder: Path) -> None:
    """Such as that of an archive made on another system, or any beyond ASCII where the locale is C."""
    moved = folder.rename(Path(os.fsdecode(os.fsencode(folder.parent) + b"/" + "\u4efb\u52a1".encode("gbk"))))
    assert make_models(load_config(moved))["forward"].name == "gateway"


@pytest.mark.parametrize(
    "name",
    [
        "\u092e\u0949\u0921\u0932",
        "\u0e42\u0e21\u0e40\u0e14\u0e25\u0e01\u0e49\u0e2d\u0e19",
        "mo\u0302_hi\u0300nh",
        "\u6a21\u578b",
    ],
)
def test_code_may_have_any_name_that_python_takes(folder: Path, name: str) -> None:
    """Also one with signs on its letters, as words of Hindi, Thai and Vietnamese have."""
    (folder / f"{name}.py").write_text((folder / "own.py").read_text("utf-8") + f"\n{name} = model\n", "utf-8")
    config = folder / "config.toml"
    config.write_text(config.read_text("utf-8").replace("own:model", f"{name}:{name}"), "utf-8")
    assert make_models(load_config(folder))["forward"].name == "gateway"
