"""A loss of the user's own in a config: an `nn.Module`, which may read several outputs of a program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from textgrad_engine.cli import build
from textgrad_engine.cli.config_data import read_data
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.errors import ConfigError, DataError
from textgrad_engine.nn import OnField, Weighted

from ..runner import Result

CLI = Callable[..., Result]

CODE = """
from textgrad_engine import nn
from textgrad_engine.testing import FunctionModel

model = FunctionModel(lambda request: request.messages[-1].text.split()[-1])
other = FunctionModel(lambda request: request.messages[-1].text.split()[0], name="other")
marks = FunctionModel(lambda request: {"explanation": "", "score": 1}, name="marks")


class Search(nn.Module):
    def __init__(self):
        super().__init__()
        self.chat = nn.ChatCompletion("{question}", system=nn.Parameter("Answer.", role="system prompt"))

    def forward(self, question):
        return {"answer": self.chat(question=question), "source": self.chat(question="It is in d1")}


class Loss(nn.Module):
    def __init__(self, cited="d1"):
        super().__init__()
        self.right = nn.ExactMatch()
        self.cited = nn.Metric(lambda source, inputs: source == inputs["cited"], "the source", scale=(0, 1))
        self.wanted = cited
        self.scale = (0, 1)

    def forward(self, prediction, target):
        cited = self.cited(prediction["source"], inputs={"cited": self.wanted})
        return 0.5 * self.right(prediction["answer"], target) + 0.5 * cited


class Brief(nn.Module):
    def forward(self, prediction, inputs):
        return 0.25 * nn.Metric(len, "length")(prediction)


class Judged(nn.Module):
    def __init__(self):
        super().__init__()
        self.judge = nn.Judge("Is it polite?")

    def forward(self, prediction):
        return self.judge(prediction["answer"])


class Number(nn.Module):
    def forward(self, prediction):
        return 0.5


class Words(nn.Module):
    def forward(self, prediction):
        return prediction["answer"]


class Unsaid(nn.Module):
    def forward(self, prediction, target):
        return nn.ExactMatch()(prediction, target)


class Other(nn.Module):
    def forward(self, prediction, target, trace):
        return 1


class Plain:
    def __init__(self, prediction, target, trace): ...


strict = Loss(cited="d2")
brief = Brief()
unmade = lambda: 1
needs = type("Needs", (Loss,), {"__init__": lambda self, cited: Loss.__init__(self, cited)})
"""

CONFIG = """\
[program]
class = "code:Search"
[data]
train = "train.jsonl"
target = "answer"
[metric]
function = "code:Loss"
[models]
forward = "code:model"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder with the code and a config, parts of which are replaced."""

    def make(*change: tuple[str, str]) -> Path:
        text = CONFIG
        for old, new in change:
            assert old in text, old
            text = text.replace(old, new)
        rows = [{"question": f"Is it {n}", "answer": str(n if n % 2 else -1)} for n in range(8)]
        (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        (tmp_path / "code.py").write_text(CODE, encoding="utf-8")
        (tmp_path / "config.toml").write_text(text, encoding="utf-8")
        return tmp_path

    return make


@pytest.mark.parametrize(("name", "score"), [("Loss", 0.75), ("strict", 0.25)])
def test_a_loss_reads_all_outputs_of_a_program(name: str, score: float, cli: CLI, folder: Callable[..., Path]) -> None:
    """Its class or an object of it: such as an answer beside what it cites, as a DSPy metric does."""
    done = cli("eval", folder(("code:Loss", f"code:{name}")), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["mean"] == score


def test_a_loss_may_score_a_field_and_be_one_of_several(folder: Callable[..., Path]) -> None:
    """As a function may."""
    one = build.make_metric(load_config(folder(("code:Loss", 'code:brief"\nfield = "source'))))
    assert isinstance(one, OnField)
    both = '[[metric]]\nfunction = "code:Loss"\nweight = 3\n[[metric]]\nfield = "answer"\n'
    several = build.make_metric(load_config(folder(('[metric]\nfunction = "code:Loss"\n', both))))
    assert isinstance(several, Weighted)
    assert list(several.weights) == ["code:Loss", "exact_match of answer"]


def test_a_loss_that_names_no_target_needs_no_column_of_it(folder: Callable[..., Path]) -> None:
    """And one that does is told which column lacks."""
    without = ('target = "answer"\n', "")
    assert len(read_data(load_config(folder(without, ("code:Loss", "code:Brief"))))[0]) == 8
    with pytest.raises(DataError, match="there is no column 'target' in any row"):
        read_data(load_config(folder(without)))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Number", "error: a loss gives a Variable, got float; nn.Metric makes one of a plain function"),
        ("Words", "error: a score must be a number, and this loss gave str"),
    ],
)
def test_a_loss_that_gives_no_score_is_told_in_a_line(
    name: str, said: str, cli: CLI, folder: Callable[..., Path]
) -> None:
    """It is the user's own code that is to be mended."""
    done = cli("eval", folder(("code:Loss", f"code:{name}")))
    assert done.exit_code == 1
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_loss_that_asks_a_judge_lets_no_models_judge_themselves(cli: CLI, folder: Callable[..., Path]) -> None:
    """As a judge of the config does not."""
    given = ("compare", folder(("code:Loss", "code:Judged")), "--model", "code:model", "--model", "code:other")
    done = cli(*given)
    assert done.exit_code == 2
    assert "name one judge for all of them with --judge NAME" in " ".join(done.stderr.split())
    done = cli(*given, "--judge", "code:marks")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"code:Loss"', '"code:Loss"\npurpose = "x"'), r":8: \[metric\] purpose means nothing to a loss of your own"),
        (('"code:Loss"', '"code:Loss"\nscale = [0, 1]'), r":8: \[metric\] scale means nothing to a loss of your own"),
        (('"code:Loss"', '"code:Other"'), r":7: .*'code:Other': .* missing a required argument: 'trace'"),
        (('"code:Loss"', '"code:needs"'), r":7: .*'code:needs' cannot be made without arguments: .*; name an object"),
        (('"code:Loss"', '"code:Plain"\npurpose = "x"'), r":7: .*'code:Plain': .* missing a required argument"),
    ],
)
def test_what_is_wrong_with_a_loss_is_told_before_the_first_call(
    change: tuple[str, str], said: str, folder: Callable[..., Path]
) -> None:
    """With its line."""
    with pytest.raises(ConfigError, match=said):
        load_config(folder(change))


def test_a_loss_among_several_says_its_scale(folder: Callable[..., Path]) -> None:
    """Else nobody knows what part of it counts."""
    both = '[[metric]]\nfunction = "code:Unsaid"\nfield = "answer"\n[[metric]]\nfield = "answer"\n'
    config = load_config(folder(('[metric]\nfunction = "code:Loss"\n', both)))
    with pytest.raises(
        ConfigError, match=r":6: .*code:Unsaid of answer.* does not say .*; write self\.scale = \(0, 1\)"
    ):
        build.make_metric(config)
