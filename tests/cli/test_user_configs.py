"""Ten configs of ten users: each is read, and says what it would cost, without a key and without a call."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..runner import Result

ROWS: Callable[[int], dict[str, Any]] = lambda n: {  # noqa: E731
    "id": f"m{n}",
    "mail": f"mail {n}",
    "label": ("billing", "shipping")[n % 2],
    "facts": {"name": f"Ada {n}", "age": n},
}
PROGRAM = '[program]\nsystem = "Sort the mail."\nuser = "{mail}"\n'
DATA = '[data]\ntrain = "train.jsonl"\nval = "val.jsonl"\ntest = "test.jsonl"\n'
LABEL = DATA + 'target = "label"\n'
OPENAI = '[models]\nforward = "openai/gpt-5-mini"\n'

CODE = """
from typing import Literal

from pydantic import BaseModel

from textgrad_engine import nn, ops


class Facts(BaseModel):
    name: str
    age: int


class Rag(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.ChatCompletion("{mail}", system=nn.Parameter("Write a search query.", role="query prompt"))
        self.reply = nn.ChatCompletion("{mail}: {found}", system=nn.Parameter("Sort.\\nNever guess.", role="prompt"))

    def forward(self, mail):
        query = self.query(mail=mail)
        return self.reply(mail=mail, found=ops.straight_through(search(query.data), query))


def search(query):
    return f"nothing about {query}"


def contains(answer, target, inputs):
    return target in answer, f"{inputs['mail']} wants {target}."
"""

CONFIGS = {
    "classification": PROGRAM + LABEL + OPENAI,
    "extraction": PROGRAM
    + 'response_format = "code:Facts"\n'
    + DATA
    + 'target = "facts"\n[[metric]]\nfield = "name"\n[[metric]]\nfield = "age"\nweight = 2\n'
    + OPENAI,
    "retrieval": '[program]\nclass = "code:Rag"\n'
    + LABEL
    + '[metric]\nfunction = "code:contains"\npurpose = "whether the label is there"\n'
    + OPENAI,
    "judge": PROGRAM
    + DATA
    + '[metric]\nname = "judge"\ninstructions = "Is it kind?"\nscale = [1, 5]\n'
    + OPENAI
    + 'judge = "openai/gpt-5"\n',
    "several prompts": '[program]\nclass = "code:Rag"\n'
    + LABEL
    + OPENAI
    + '[optimizer]\nmax_edits = 6\n[optimizer.prompts."reply.system"]\nfrozen = ["Never guess."]\nmax_tokens = 200\n',
    "local server": PROGRAM
    + LABEL
    + '[models]\nforward = "qwen3:8b"\nbase_url = "http://localhost:11434/v1"\nmax_in_flight = 2\ncontext = 8192\n'
    + "call_deadline = 900\n[models.config]\ntemperature = 0\n[budget]\ncalls = 2000\n",
    "azure": PROGRAM
    + LABEL
    + '[models]\nforward = "my-mini"\nbackward = "my-big"\nbase_url = "https://me.openai.azure.com/openai/v1"\n'
    + 'requests_per_minute = 300\ntokens_per_minute = 200_000\n[models.headers]\napi-key = {env = "AZURE_KEY"}\n'
    + "[models.prices.my-mini]\ninput = 0.25\noutput = 2\n[models.prices.my-big]\ninput = 1.25\noutput = 10\n"
    + "[budget]\ndollars = 3\n",
    "two metrics": PROGRAM
    + 'response_format = { type = "object", properties = { why.type = "string", label.type = "string" } }\n'
    + LABEL
    + '[[metric]]\nfield = "label"\nweight = 2\n[[metric]]\nname = "judge"\ninstructions = "A reason?"\nfield = "why"\n'
    + OPENAI,
    "folds": PROGRAM + '[data]\ntrain = "train.jsonl"\ntarget = "label"\n' + OPENAI,
    "controls": "seed = 3\n"
    + PROGRAM
    + LABEL
    + OPENAI
    + '[optimizer]\nname = "PatchSearch"\n[train]\nmax_steps = 4\ntokens_weight = 0.01\n'
    + '[guards]\nnever_break = ["m20"]\nfloors.label = { billing = 0.5 }\n',
}
OPTIONS = {"folds": ["--folds", "4"], "controls": ["--controls"]}


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\ufeff"], ids=["lf", "crlf", "bom"])
@pytest.mark.parametrize("user", CONFIGS)
def test_a_user_s_config_says_what_it_would_cost(
    user: str, ends: str, cli: Callable[..., Result], tmp_path: Path
) -> None:
    """With the line ends and the mark that editors of Windows write, too."""
    for split, first in (("train", 0), ("val", 20), ("test", 40)):
        lines = [json.dumps(ROWS(first + n)) + "\n" for n in range(12)]
        (tmp_path / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "code.py").write_text(CODE, encoding="utf-8")
    text = CONFIGS[user].replace("\n", "\r\n") if ends == "\r\n" else CONFIGS[user]
    (tmp_path / "config.toml").write_bytes((ends.strip() + text).encode())
    done = cli("estimate", tmp_path, "--json", *OPTIONS.get(user, []))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["calls"]["forward"]["low"] > 0
    assert ("judge" in found["calls"]) == (user in ("judge", "two metrics"))
    assert (found["dollars"] is None) == (user == "local server")
