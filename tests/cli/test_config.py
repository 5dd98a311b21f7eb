"""The config file: whatever is wrong with it is said with file, line and repair, before anything is paid for."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.cli import runs
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_checks import idle_keys
from textgrad_engine.cli.config_data import check_columns, read_data
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.cli.model_tables import ModelPrice, Sampling
from textgrad_engine.cli.optimizer_names import NAMES
from textgrad_engine.cli.settings import Budget
from textgrad_engine.cli.spending import ModelOptions
from textgrad_engine.cli.toml_lines import key_lines
from textgrad_engine.cli.user_code import path_restored
from textgrad_engine.data import Dataset
from textgrad_engine.errors import ConfigError, DataError
from textgrad_engine.llm.request import GenerateConfig
from textgrad_engine.report.toml import as_toml

GOOD = """\
seed = 7

[program]
system = "Sort the ticket."
user = "{ticket}"

[data]
train = "train.jsonl"
val = "val.jsonl"
test = "test.csv"
target = "queue"

[metric]
name = "exact_match"

[models]
forward = "openai/gpt-5-mini"

[models.config]
temperature = 0

[optimizer]
name = "TGD"

[train]
max_epochs = 2

[budget]
dollars = 1.5
"""


def project(folder: Path, text: str = GOOD, **files: str) -> Path:
    """A folder with a config and three splits."""
    (folder / "config.toml").write_bytes(text.encode())
    contents = {
        "train.jsonl": '{"ticket": "no signal", "queue": "network"}\n{"ticket": "wrong bill", "queue": "billing"}\n',
        "val.jsonl": '{"ticket": "slow", "queue": "network"}\n',
        "test.csv": "ticket,queue\nrefund please,billing\n",
        **{name.replace("__", "."): content for name, content in files.items()},
    }
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def function_of(config: Config) -> Any:
    """The function of its one metric."""
    (found,) = config.metrics()
    return config.metric_function(*found)


def change(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


PROBLEMS = {
    "syntax": (change("seed = 7", "seed 7"), ":1: column 6: not TOML: Expected '='"),
    "syntax at the end": (GOOD + 'x = """', ":30: end of the file: not TOML"),
    "bare word": (
        change('"TGD"', "TGD"),
        r':23: column 8: not TOML: Invalid value; text is written in quotes "\.\.\."',
    ),
    "backslash": (
        change('"val.jsonl"', r'"data\val.jsonl"'),
        r":9: column \d+: not TOML: .*a backslash is written \\\\",
    ),
    "backslash before U": (
        change('"val.jsonl"', r'"C:\Users\val.jsonl"'),
        r":9: column \d+: not TOML: .*a backslash is written \\\\",
    ),
    "backslash before t": (change('"train.jsonl"', r'"data\train.jsonl"'), ":8: .*write the path in single quotes"),
    "key twice": (
        change("seed = 7", "seed = 7\nseed = 8"),
        ":2: .*not TOML: Cannot overwrite a value; seed is there in line 1 already: take one out",
    ),
    "key twice in a table": (
        change('user = "{ticket}"', 'user = "{ticket}"\nsystem = "B"'),
        ":6: .*; system is there in line 4 already: take one out",
    ),
    "table twice": (GOOD + "[train]\n", r":30: .*not TOML: Cannot declare.*; \[train\] begins in line 25 already"),
    "metric twice": (
        GOOD + "[metric]\n",
        r":30: .*\[metric\] begins in line 13 already: put its keys there, or write each of several metrics as \[\[met",
    ),
    "metric once and several times": (
        GOOD + "[[metric]]\n",
        r":30: .*\[metric\] begins in line 13 already: .*\[\[metric\]\], the first one, too",
    ),
    "text without an end": (
        change('"Sort the ticket."', '"Sort the ticket.'),
        r":4: .*not TOML: Illegal character.*; the text has no \" at its end",
    ),
    "a space that is none": (
        change("seed = 7", "seed\u00a0= 7"),
        r":1: column 5: not TOML: .*; here stands U\+00A0, and outside of quotes TOML takes ASCII alone",
    ),
    "quotes of a word processor": (
        change('"TGD"', "\u201cTGD\u201d"),
        r":23: column 8: not TOML: .*; here stands \u201c \(U\+201C\), and outside of quotes .*: \"text\", =",
    ),
    "a wide sign": (change("seed = 7", "seed \uff1d 7"), r":1: column 6: not TOML: .*; here stands \uff1d \(U\+FF1D\)"),
    "YAML": (
        "program:\n  user: x\n",
        r":1: .*not TOML: .*how YAML writes it: TOML wants key = value, below the \[table",
    ),
    "YAML's beginning": ("---\nprogram:\n", ":1: .*how YAML writes it"),
    "a colon": (change('target = "queue"', 'target: "queue"'), ":11: .*how YAML writes it: TOML wants key = value"),
    "JSON": ('{"program": {"user": "x"}}', ":1: .*how JSON writes it: TOML wants key = value"),
    "a key that is there under another name": (
        change("forward =", "foward ="),
        r"^\S+:17: \[models\] has no key 'foward'; did you mean 'forward'\?$",
    ),
    "proposer": (
        change('name = "TGD"', 'name = "TGD"\nproposer = "human"'),
        r"\[optimizer\] has no key 'proposer'; mode says .* such as proposers.Human, is set in Python",
    ),
    "list without an entry": (
        GOOD + "[optimizer.contracts]\nrequires = []\n",
        r":31: \[optimizer\.contracts\] requires = \[\]: should have at least 1, and has 0",
    ),
    "text for a table": (
        change("forward =", 'headers = "x: y"\nforward ='),
        r":17: \[models\] headers = 'x: y': should be a table, such as \{name = ",
    ),
    "unknown key": (
        change("max_epochs", "max_epoch"),
        r":26: \[train\] has no key 'max_epoch'; did you mean 'max_epochs'",
    ),
    "unknown key, nothing near": (
        change("max_epochs", "zzz"),
        r":26: \[train\] has no key 'zzz'; it knows max_epochs, batch",
    ),
    "unknown table": (
        change("[budget]", "[budgets]"),
        r":28: there is no key or table 'budgets'; did you mean 'budget'",
    ),
    "key of another table": (
        change("max_epochs = 2", "dollars = 2"),
        r":26: .* no key 'dollars'; it belongs in \[budget\]",
    ),
    "top key in a table": (change("max_epochs = 2", "prompts = 'p'"), ":26: .* it belongs above the first table"),
    "sampling in models": (
        change("forward =", "temperature = 1\nforward ="),
        r":17: .*it belongs in \[models\.config\]",
    ),
    "no requests per minute": (
        change("forward =", "requests_per_minute = 0\nforward ="),
        r":17: \[models\] requests_per_minute = 0: should be greater than or equal to 1",
    ),
    "endless tokens per minute": (
        change("forward =", "tokens_per_minute = inf\nforward ="),
        r":17: \[models\] tokens_per_minute = inf: should be a finite number",
    ),
    "tokens per minute in words": (
        change("forward =", 'tokens_per_minute = "2M"\nforward ='),
        r":17: \[models\] tokens_per_minute = '2M': should be a valid number",
    ),
    "limit per minute of a budget": (
        change("dollars = 1.5", "requests_per_minute = 60"),
        r":29: \[budget\] has no key 'requests_per_minute'; it belongs in \[models\]",
    ),
    "limit per minute among the sampling settings": (
        change("temperature = 0", "temperature = 0\nrequest_per_minute = 60"),
        r":21: \[models.config\] has no key 'request_per_minute'; it knows",
    ),
    "class_": (
        change("system =", "class_ = 'a:B'\nsystem ="),
        r":4: \[program\] has no key 'class_'; did you mean 'class'",
    ),
    "unknown optimizer key": (GOOD.replace('"TGD"', '"TGD"\nmax_edit = 3'), ":24: .*did you mean 'max_edits'"),
    "wrong type": (change("max_epochs = 2", 'max_epochs = "2"'), r":26: \[train\] max_epochs = '2': should be a whole"),
    "bool for a number": (change("seed = 7", "seed = true"), r":1: seed = True: should be a whole number"),
    "date for a text": (change('"queue"', "1979-05-27"), r":11: \[data\] target = .*should be a valid string"),
    "out of range": (change("max_epochs = 2", "max_epochs = 0"), r":26: .*should be greater than 0"),
    "infinite budget": (change("dollars = 1.5", "dollars = inf"), r":29: .*finite number"),
    "wrong word": (change('"TGD"', '"SGD"'), r":23: .* name = 'SGD': should be one of 'TGD', .*; here it is 'TGD'"),
    "wrong mode": (
        change('"TGD"', '"TGD"\nmode = "pach"'),
        r":24: .* should be 'patch' or 'rewrite'; did you mean 'patch'",
    ),
    "notes that are shown": (
        change('target = "queue"', 'target = "queue"\nnotes = "ticket"'),
        r":\d+: \[program\] user shows the model \{ticket\}, people's notes \(\[data\] notes\); take it out",
    ),
    "notes that nobody reads": (
        change('target = "queue"', 'target = "queue"\nnotes = "why"')
        .replace('"TGD"', '"OPRO"')
        .replace("max_epochs = 2", ""),
        r":\d+: \[data\] notes means nothing to OPRO, which hears no feedback; take it out",
    ),
    "no pattern": (
        change('"exact_match"', '"exact_match"\npattern = "("'),
        r":15: \[metric\] pattern = '\(': the pattern '\(' is no regular expression",
    ),
    "wrong metric": (change('"exact_match"', '"exact"'), r":14: .*'exact_match', 'json_match', 'judge' or 'rubric'"),
    "no table": (
        change('[models]\nforward = "openai/gpt-5-mini"\n\n[models.config]\ntemperature = 0\n', ""),
        r":1: the table \[models\] is missing; add \[models\] with forward = ",
    ),
    "no key": (
        change('forward = "openai/gpt-5-mini"', ""),
        r":16: the key \[models\] forward is missing; add forward =",
    ),
    "no train": (change('train = "train.jsonl"\n', ""), r':7: the key \[data\] train is missing; add train = "train'),
    "a value for a table": (
        "train = 3\n" + GOOD.replace("[train]\nmax_epochs = 2\n", ""),
        r":1: train is a table; write \[train\]",
    ),
    "api key": (change("forward =", 'api_key = "x"\nforward ='), ":17: models.api_key: .*OPENAI_API_KEY"),
    "api key in extra": (
        change("temperature = 0", 'extra = {"api-key" = "x"}'),
        ":20: models.config.extra.api-key: .*OPENAI",
    ),
    "api key as a value": (change('"TGD"', '"sk-abcdefghijklmnopqrstu"'), ":23: optimizer.name: .*OPENAI_API_KEY"),
    "api key in a list": (
        change("temperature = 0", 'stop = [\n"a",\n"sk-abcdefghijklmnopqrstu"]'),
        ":22: .*OPENAI_API_KEY",
    ),
    "api key as a model's name": (
        change('"openai/gpt-5-mini"', '"openai/sk-abcdefghijklmnopqrstu1"'),
        ":17: models.forward: .*OPENAI_API_KEY",
    ),
    "bad address": (change("forward =", 'base_url = "localhost:1"\nforward ='), r":17: .*no address such as http://"),
    "bad port": (change("forward =", 'base_url = "http://a:b/v1"\nforward ='), r":17: .*no address such as"),
    "password in address": (
        change("forward =", 'base_url = "http://me:pw@a/v1"\nforward ='),
        ":17: .*holds a key or password",
    ),
    "key in address": (
        change("forward =", 'base_url = "http://a/v1?api-version=1"\nforward ='),
        r":17: .*'http://a/v1' with something behind '\?'.*OPENAI_API_KEY",
    ),
    "price of no model": (
        GOOD + '[models.prices."openai/gpt5-mini"]\ninput = 1\noutput = 2\n',
        r":30: \[models\.prices\.\"openai/gpt5-mini\"\] is no model of this .*; did you mean 'openai/gpt-5-mini'",
    ),
    "negative price": (
        GOOD + '[models.prices."openai/gpt-5-mini"]\ninput = -0.4\noutput = 2\n',
        r":31: \[models\.prices\.\"openai/gpt-5-mini\"\] input = -0\.4: should be greater than or equal to 0",
    ),
    "endless price": (
        GOOD + '[models.prices."openai/gpt-5-mini"]\ninput = 1\noutput = inf\n',
        r":32: .* output = inf: should be a finite number",
    ),
    "text for a price": (
        GOOD + '[models.prices."openai/gpt-5-mini"]\ninput = "0.4"\noutput = 2\n',
        r":31: .* input = '0\.4': should be a valid number",
    ),
    "unknown key of a price": (
        GOOD + '[models.prices."openai/gpt-5-mini"]\ninput = 1\noutput = 2\ncache = 1\n',
        r":33: \[models\.prices\.\"openai/gpt-5-mini\"\] has no key 'cache'; did you mean 'cached'",
    ),
    "price without output": (
        GOOD + '[models.prices."openai/gpt-5-mini"]\ninput = 1\n',
        r":30: the key \[models\.prices\.\"openai/gpt-5-mini\"\] output is missing; add output = 1\.6, dollars",
    ),
    "price of a name with dots": (
        GOOD.replace("openai/gpt-5-mini", "openai/gpt-4.1") + "[models.prices.gpt-4.1]\ninput = 1\noutput = 2\n",
        r"a name with dots stands in quotes: \[models\.prices\.\"gpt-4\.1\"\]",
    ),
    "price of a name that is no bare key": (
        GOOD + '[models.prices]\n"modèle" = 0.4\n',
        r":31: \[models\.prices\] .* is a table; write \[models\.prices\.\"modèle\"\]",
    ),
    "a number for a price": (
        GOOD + '[models.prices]\n"openai/gpt-5-mini" = 0.4\n',
        r":31: \[models\.prices\] .* is a table; write \[models\.prices\.\"openai/gpt-5-mini\"\]",
    ),
    "header that is no text": (
        GOOD + "[models.headers]\nx-team = 5\n",
        r":31: \[models\.headers\] x-team = 5: should be a text, or {env = \"NAME\"}",
    ),
    "header from elsewhere": (
        GOOD + '[models.headers]\nx-team = {file = "x"}\n',
        r":31: \[models\.headers\] x-team = .*should be a text, or {env = \"NAME\"}",
    ),
    "header from no variable": (GOOD + '[models.headers]\nx-team = {env = ""}\n', ":31: .*should be a text, or {env"),
    "secret in a header": (
        GOOD + '[models.headers]\nx-gateway-token = "abc"\n',
        r":31: models\.headers\.x-gateway-token: a key does not belong .*write {env = \"NAME\"} in its place",
    ),
    "secret by its form in a header": (
        GOOD + '[models.headers]\nx-team = "sk-abcdefghijklmnopqrstu"\n',
        r":31: models\.headers\.x-team: a key does not belong",
    ),
    "header that is a secret by its form": (
        GOOD + '[models.headers]\nx-upstream = "Bearer abcdef0123456789abcdef"\n',
        r":31: models\.headers\.x-upstream: a key does not belong",
    ),
    "header with a password": (
        GOOD + '[models.headers]\nx-upstream = "https://ann:pw1@host/v1"\n',
        r":31: models\.headers\.x-upstream: a key does not belong",
    ),
    "secret for the name of a variable": (
        GOOD + '[models.headers]\nx-gateway-key = {env = "sk-abcdefghijklmnopqrstu"}\n',
        r":31: models\.headers\.x-gateway-key\.env: a key does not belong",
    ),
    "an endpoint of nobody": (
        GOOD + "[models.endpoints.large]\n",
        r":30: \[models\.endpoints\.large\] is no model of this .*; take it out, or ask that model, with --model large",
    ),
    "a wrong key of an endpoint": (
        GOOD + '[models.endpoints."openai/gpt-5-mini"]\nbase_uri = "http://localhost:1/v1"\n',
        r":31: \[models\.endpoints\.\"openai/gpt-5-mini\"\] has no key 'base_uri'; did you mean 'base_url'",
    ),
    "a wrong setting of an endpoint": (
        GOOD + '[models.endpoints."openai/gpt-5-mini".config]\ntemperature = "0"\n',
        r":31: \[models\.endpoints\.\"openai/gpt-5-mini\"\.config\] temperature = '0': should be a valid number",
    ),
    "a wrong key of an endpoint's settings": (
        GOOD + '[models.endpoints."openai/gpt-5-mini".config]\ntemprature = 0\n',
        r":31: \[models\.endpoints\.\"openai/gpt-5-mini\"\.config\] .*'temprature'; did you mean 'temperature'",
    ),
    "an address of an endpoint": (
        GOOD + '[models.endpoints."openai/gpt-5-mini"]\nbase_url = "localhost:1/v1"\n',
        r":31: \[models\.endpoints\.\"openai/gpt-5-mini\"\] base_url = 'localhost:1/v1' is no address such as",
    ),
    "a password of an endpoint": (
        GOOD + '[models.endpoints."openai/gpt-5-mini"]\nbase_url = "http://me:pass@localhost/v1"\n',
        r":31: \[models\.endpoints\.\"openai/gpt-5-mini\"\] base_url holds a key or .*api_key = {env = \"NAME\"}",
    ),
    "a header of an endpoint": (
        GOOD + '[models.endpoints."openai/gpt-5-mini".headers]\nhost = "me"\n',
        r":31: \[models\.endpoints\.\"openai/gpt-5-mini\"\.headers\] host says how a request is sent",
    ),
    "a secret header of an endpoint": (
        GOOD + '[models.endpoints."openai/gpt-5-mini".headers]\nx-api-key = "k-1"\n',
        r":31: models\.endpoints\.openai/gpt-5-mini\.headers\.x-api-key: a key does .* write {env = \"NAME\"} in its",
    ),
    "the key of an endpoint": (
        GOOD + '[models.endpoints."openai/gpt-5-mini"]\napi_key = "k-1"\n',
        r":31: models\.endpoints\.openai/gpt-5-mini\.api_key: a key does .*, or write {env = \"NAME\"} in its place",
    ),
    "a key that no variable holds": (
        GOOD + '[models.endpoints."openai/gpt-5-mini"]\napi_key = {var = "NAME"}\n',
        r":31: \[models\.endpoints\.\"openai/gpt-5-mini\"\] api_key.*: should be {env = \"NAME\"}, for the key that",
    ),
    "secret in a table that is no header": (
        change("temperature = 0", 'extra = {"api-key" = {env = "KEY"}}'),
        ":20: models.config.extra.api-key: .*OPENAI",
    ),
    "name that no header has": (
        GOOD + '[models.headers]\n"x team" = "a"\n',
        r":31: \[models\.headers\] \"x team\" has no name that a header can have",
    ),
    "header of our own": (
        GOOD + '[models.headers]\nContent-Type = "a"\n',
        r":31: .*Content-Type says how a request is sent",
    ),
    "header of two lines": (
        GOOD + '[models.headers]\nx-a = "a\\nb"\n',
        ":31: .*x-a has a value that is not plain ASCII",
    ),
    "header twice": (GOOD + '[models.headers]\nx-a = "1"\nX-A = "2"\n', ":32: .*X-A is there as x-a already"),
    "missing data": (
        change('"train.jsonl"', '"trian.jsonl"'),
        r":8: \[data\] train = .*no such file; did you mean 'train.jsonl'",
    ),
    "data is a folder": (change('"train.jsonl"', '"."'), r":8: \[data\] train = .*this is a folder"),
    "one file for two": (
        change('"val.jsonl"', '"./train.jsonl"'),
        r":9: \[data\] val is the file of train; split it into two files; or leave val out",
    ),
    "one file for all": (
        change('"val.jsonl"\ntest = "test.csv"', '"train.jsonl"'),
        r":9: \[data\] val is the file of train; split it into two files$",
    ),
    "no prompts": (change("seed = 7", 'prompts = "nowhere"'), ":1: prompts: there is no folder .*nowhere"),
    "no user": (change('user = "{ticket}"', ""), r':3: \[program\] lacks user = "{question}"'),
    "no system": (change('system = "Sort the ticket."', ""), r":3: \[program\] lacks system ="),
    "nothing to optimize": (
        change('system = "Sort the ticket."\nuser = "{ticket}"', ""),
        ':3: .* class = "module:Class"',
    ),
    "system twice": (change("user =", 'system_file = "p.txt"\nuser ='), ":5: .*system and system_file"),
    "class and user": (change('system = "Sort the ticket."', 'class = "a:B"'), r":5: \[program\] has class and user"),
    "no system file": (change('system = "Sort the ticket."', 'system_file = "p.txt"'), ":4: .*no such file"),
    "no name of a slot": (
        change('"{ticket}"', '"Von {e-mail}"'),
        r":5: \[program\] user has no {slot} .*; {e-mail} is text, as a slot's name is letters, digits and _",
    ),
    "no slot": (
        change('"{ticket}"', '"ticket {{ticket}}"'),
        r":5: \[program\] user has no {slot} .*; {{ticket}} is text in it, as .*: {ticket}",
    ),
    "the answer is shown": (
        change('"{ticket}"', '"{ticket} {queue}"'),
        r":5: \[program\] user shows the model {queue}",
    ),
    "the answer is shown by the system prompt": (
        change('"Sort the ticket."', '"Sort the ticket. {queue}"'),
        r":4: \[program\] system shows the model {queue}",
    ),
    "two metrics": (change('"exact_match"', '"judge"\nfunction = "m:f"'), r":15: \[metric\] has name and function"),
    "judge without words": (change('"exact_match"', '"judge"'), r":13: \[metric\] judge wants instructions = "),
    "judge with blank words": (
        change('"exact_match"', '"judge"\ninstructions = " "'),
        ":15: .*judge wants instructions",
    ),
    "purpose of exact match": (
        change('"exact_match"', '"exact_match"\npurpose = "x"'),
        ":15: .*purpose means nothing to exact",
    ),
    "scale upside down": (
        change('"exact_match"', '"judge"\ninstructions = "x"\nscale = [5, 0]'),
        ":16: .*lowest score comes",
    ),
    "scale of three": (change('"exact_match"', '"judge"\ninstructions = "x"\nscale = [1, 2, 3]'), ":16: .*at most 2"),
    "scale of words": (
        change('"exact_match"', '"judge"\ninstructions = "x"\nscale = [1,\n"b"]'),
        r":17: .*scale\[1\] = 'b'",
    ),
    "function without purpose": (
        change('name = "exact_match"', 'function = "json:loads"'),
        r":13: .*function wants purpose",
    ),
    "function misspelt": (
        change('name = "exact_match"', 'function = "json:load5"\npurpose = "x"'),
        ":14: .*did you mean 'load'",
    ),
    "no such module": (
        change('name = "exact_match"', 'function = "no_such_m:f"\npurpose = "x"'),
        ":14: .*no module 'no_such_m'",
    ),
    "no function": (
        change('name = "exact_match"', 'function = "json:__name__"\npurpose = "x"'),
        ":14: .*cannot be called",
    ),
    "function of no argument": (
        change('name = "exact_match"', 'function = "os:getcwd"\npurpose = "x"'),
        r":14: .*getcwd.. is called with the prediction and the target, and takes \(\): too many positional arguments",
    ),
    "no colon": (
        change('name = "exact_match"', 'function = "json.loads"\npurpose = "x"'),
        ':14: .*expected "module:name"',
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_problem_is_named_with_file_line_and_repair(case: str, line_end: str, tmp_path: Path) -> None:
    """Every wrong setting is found when the file is read, at its own line, whatever the line ends."""
    text, message = PROBLEMS[case]
    project(tmp_path, text.replace("\n", line_end))
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'config.toml'}:")
    assert "sk-abc" not in str(caught.value)


def test_all_wrong_values_are_named_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Somebody with three typing errors runs the command twice, not four times."""
    text = GOOD.replace("seed", "sed").replace("max_epochs = 2", "max_epochs = -2").replace('"TGD"', "1")
    with pytest.raises(ConfigError) as caught:
        load_config(project(tmp_path, text))
    lines = str(caught.value).split("\n")
    assert [line.removeprefix(f"{tmp_path / 'config.toml'}:").split(":")[0] for line in lines] == ["1", "23", "26"]


def test_a_missing_config_is_explained(tmp_path: Path) -> None:
    """A wrong path, a folder without a config, another kind of file: each has its own repair."""
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(ConfigError, match=r"config\.toml: there is no such file"):
        load_config(tmp_path)
    with pytest.raises(ConfigError, match=r"there is no such file; did you mean 'notes\.txt'"):
        load_config(tmp_path / "note.txt")
    with pytest.raises(
        ConfigError, match=r"a config is a \.toml file.*`textgrad-engine init FOLDER --data .*notes\.txt"
    ):
        load_config(tmp_path / "notes.txt")
    (tmp_path / "task").mkdir()
    (tmp_path / "task/config.toml").write_text(GOOD)
    with pytest.raises(ConfigError, match=r"no such file; the folder has task; a config is a \.toml file"):
        load_config(tmp_path / "mine")
    (tmp_path / "tickets.toml").write_text(GOOD)
    with pytest.raises(ConfigError, match=r"no such file; name one of tickets\.toml"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ":1: the file is empty"),
        (b'a = 1\nb = "\xff"', ":2: byte 6 of the line is 0xff, which is not UTF-8"),
        (GOOD.encode("utf-16"), ":1: the file is UTF-16"),
        (b"a = " + b"[" * 100_000, ":1: .*nested too deeply"),
    ],
)
def test_a_config_that_is_no_text_is_explained(content: bytes, message: str, tmp_path: Path) -> None:
    """Bytes that cannot be read are named by their line, too."""
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        load_config(tmp_path)


def test_a_good_config_is_read(tmp_path: Path) -> None:
    """Settings, defaults, and the paths that they count from; a mark at the start of the file does not matter."""
    project(tmp_path, "\ufeff" + GOOD)
    for path in (tmp_path, str(tmp_path), tmp_path / "config.toml"):
        config = load_config(path)
        assert (config.path, config.folder) == (tmp_path / "config.toml", tmp_path)
    assert (config.seed, config.train.max_epochs, config.train.batch_size) == (7, 2, 32)
    assert config.models.roles() == {"forward": "openai/gpt-5-mini"}
    assert config.models.config.given() == {"temperature": 0}
    assert config.optimizer.given() == {}
    assert config.metric.kind == "exact_match"
    assert config.system_text() == "Sort the ticket."
    assert config.input_columns() == ("ticket",)
    assert config.program_class() is None
    assert function_of(config) is None
    assert config.budget.dollars == 1.5
    train, val, test = read_data(config)
    assert test is not None
    assert (len(train), len(val), len(test)) == (2, 1, 1)
    assert train.ids == ("train:1", "train:2")


@pytest.mark.parametrize(("name", "told"), [("tiket", True), ("quue", False), ("ticket", False), ("format", False)])
def test_a_column_that_is_misspelt_in_the_seed_prompt_is_told_of(
    name: str, told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes to the model as text, as other names in braces may on purpose, and nobody would see it."""
    read_data(load_config(project(tmp_path, change("Sort the ticket.", f"Sort {{{name}}}."))))
    said = [record.getMessage() for record in caplog.records if "goes to the model as text" in record.getMessage()]
    assert [f"{{{name}}}" in each and "config.toml:4: [program] system" in each for each in said] == [True] * told


def test_empty_clusters_are_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A cell of a table that says nothing is one cluster with all others that do not, and makes intervals wide."""
    (tmp_path / "task").mkdir()
    folder = tmp_path / "task"
    (folder / "docs.csv").write_text("ticket,target,doc\na,x,d1\nb,x,\nc,x, \nd,x,d2\n", encoding="utf-8")
    (folder / "config.toml").write_text(
        'program = { system = "Sort.", user = "{ticket}" }\ndata = { train = "docs.csv", clusters = "doc" }\n'
        'models = { forward = "simulated/tickets" }\n',
        encoding="utf-8",
    )
    read_data(load_config(folder))
    [said] = [record.getMessage() for record in caplog.records]
    assert "docs.csv: the column 'doc' is empty in 2 rows, which count as one cluster; give each that stands" in said
    assert "config.toml:2: [data] clusters asks for it" in said


def test_a_test_split_is_optional(tmp_path: Path) -> None:
    """Without one there is none."""
    assert read_data(load_config(project(tmp_path, change('test = "test.csv"\n', ""))))[2] is None


def test_every_optional_setting_is_kept(tmp_path: Path) -> None:
    """No setting is accepted and lost on its way to the model or the optimizer."""
    text = change("temperature = 0", 'stop = ["#", "\\n"]\nmax_tokens = 9\nextra = {top_k = 3}')
    text = text.replace('"TGD"', '"TGD"\nmode = "rewrite"\nmomentum = 2\nmax_tokens = 99')
    config = load_config(project(tmp_path, text))
    assert config.models.config.given() == {"stop": ("#", "\n"), "max_tokens": 9, "extra": {"top_k": 3}}
    assert GenerateConfig(**config.models.config.given()).stop == ("#", "\n")
    assert config.optimizer.given() == {"mode": "rewrite", "momentum": 2, "max_tokens": 99}


def test_sampling_settings_are_those_of_a_request() -> None:
    """A setting that the library gains or loses is noticed here."""
    of_the_program = {"response_format", "tools", "tool_choice"}
    assert set(Sampling.model_fields) == set(GenerateConfig.model_fields) - of_the_program


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"train__jsonl": '{"tiket": "a", "queue": "b"}'},
            (
                r"train\.jsonl:1: .*'ticket' .*columns are tiket, queue; did you mean 'tiket'"
                r".*config\.toml:5: \[program\] user asks"
            ),
        ),
        (
            {"val__jsonl": '{"ticket": "a", "queue": "b"}\n\n{"ticket": "c"}'},
            r"val\.jsonl:3: .*no column 'queue'.*config\.toml:11: \[data\] target asks",
        ),
        ({"val__jsonl": '{"ticket": null, "queue": "b"}'}, r"val\.jsonl:1: column 'ticket' is null"),
        (
            {"val__jsonl": '{"ticket": "a", "queue": true}\n{"ticket": "b", "queue": {"name": "b"}}'},
            r"val\.jsonl:2: column 'queue' is an object .* name = .json_match. .*config\.toml:11: \[data\] target",
        ),
        ({"val__jsonl": '{"ticket": "a", "queue": ["b"]}'}, r"val\.jsonl:1: column 'queue' is a list in this row"),
        ({"test__csv": "ticket,queue\na\n"}, r"test\.csv:2: the row has 1 field"),
        ({"train__jsonl": "oops"}, r"train\.jsonl:1: column 1: not JSON"),
    ],
)
def test_data_that_does_not_fit_is_named_with_both_lines(
    files: Mapping[str, str], message: str, tmp_path: Path
) -> None:
    """The line of the data, and the line of the config that asks for the column."""
    config = load_config(project(tmp_path, **files))
    with pytest.raises(DataError, match=message):
        read_data(config)


def test_a_column_of_clusters_is_in_every_split(tmp_path: Path) -> None:
    """An example without one would be by itself, in silence."""
    text = change('target = "queue"\n', 'target = "queue"\nclusters = "customer"\n')
    rows = '{"ticket": "no signal", "queue": "network", "customer": "c1"}\n'
    config = load_config(project(tmp_path, text, train__jsonl=rows))
    with pytest.raises(DataError, match=r"val\.jsonl:1: .*'customer'.*config\.toml:12: \[data\] clusters asks for it"):
        read_data(config)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"val__jsonl": '{"ticket": "new", "queue": "a"}\n{"ticket": "wrong bill", "queue": "b"}\n'},
            (
                r"config\.toml:9: \[data\] val and train overlap: "
                r".*val\.jsonl:2 has the same 'ticket' as .*train\.jsonl:2; keep"
            ),
        ),
        (
            {"test__csv": "ticket,queue\nslow,a\nslow,b\n"},
            r":10: \[data\] test and val overlap: .*test\.csv:2 has the same 'ticket' as .*val\.jsonl:1, and 1 more",
        ),
        (
            {
                "train__jsonl": '{"id": 1, "ticket": "a", "queue": "x"}',
                "val__jsonl": '{"id": "1", "ticket": "b", "queue": "x"}',
            },
            r":9: .*val\.jsonl:1 has the same id '1' as .*train\.jsonl:1",
        ),
    ],
)
def test_an_example_in_two_splits_is_refused(files: Mapping[str, str], message: str, tmp_path: Path) -> None:
    """A score on examples that were trained on proves nothing; both rows are named."""
    config = load_config(project(tmp_path, **files))
    with pytest.raises(ConfigError, match=message):
        read_data(config)


@pytest.mark.parametrize("column", ["e-mail", "Review Text (de/en)", "2nd"])
@pytest.mark.parametrize(
    ("line", "key", "old", "new"),
    [
        (4, "system", '"Sort the ticket."', '"Read {%s}."'),
        (4, "system_file", 'system = "Sort the ticket."', 'system_file = "prompt.txt"'),
        (5, "user", '"{ticket}"', '"{%s}: {ticket}"'),
    ],
)
def test_a_column_that_no_slot_can_be_called_is_no_text(
    line: int, key: str, old: str, new: str, column: str, tmp_path: Path
) -> None:
    """It would be sent as it stands, and the prompt trained without what it was to read."""
    text = change(old, new.replace("%s", column))
    config = load_config(project(tmp_path, text, prompt__txt=f"Read {{{column}}}."))
    read_data(config)  # braces that name no column are text
    data = json.dumps({"ticket": "no signal", "queue": "network", column: "x"}) + "\n"
    with pytest.raises(ConfigError) as error:
        read_data(load_config(project(tmp_path, text, train__jsonl=data)))
    assert f"config.toml:{line}: [program] {key} has {{{column}}}, and the column {column!r} of " in str(error.value)
    assert str(error.value).endswith("rename the column, there and in the data")


def test_ids_made_up_from_lines_do_not_overlap(tmp_path: Path) -> None:
    """train/data.jsonl and val/data.jsonl both have a line 1."""
    text = change('"train.jsonl"', '"a/data.jsonl"').replace('"val.jsonl"', '"b/data.jsonl"')
    for name, ticket in (("a", "x"), ("b", "y")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.jsonl").write_text(json.dumps({"ticket": ticket, "queue": "q"}))
    train, val, _ = read_data(load_config(project(tmp_path, text)))
    assert train.ids == val.ids == ("data:1",)


def test_a_judge_needs_no_reference_answer(tmp_path: Path) -> None:
    """The target column is wanted only where something speaks of it."""
    judged = change('"exact_match"', '"judge"\ninstructions = "Polite?"\nscale = [0, 5]')
    rows = Dataset([{"ticket": "a"}])
    with pytest.raises(DataError, match="'queue'"):
        check_columns(load_config(project(tmp_path, judged)), rows)
    config = load_config(project(tmp_path, judged.replace('target = "queue"\n', "")))
    check_columns(config, rows)
    check_columns(Config.of(config.resolved(), config.path), rows)
    with pytest.raises(DataError, match="'target' is null"):
        check_columns(config, Dataset([{"ticket": "a", "target": None}]))
    assert config.metric.scale == [0, 5]


CLASS = change('system = "Sort the ticket."\nuser = "{ticket}"', 'class = "program:Triage"')
TRIAGE = """\
from helper import WORD
class Triage:
    word = WORD
    def forward(self, ticket, hint="", *more, mood, **rest): ...
"""


def test_a_class_is_found_beside_the_config(tmp_path: Path) -> None:
    """Its neighbours can be imported; two projects with a program.py each get their own; the path ends as it was."""
    before = list(sys.path)
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        folder = project(tmp_path / name, CLASS, program__py=TRIAGE, helper__py=f"WORD = {name!r}")
        with path_restored():
            config = load_config(folder)
            assert config.input_columns() == ("ticket", "mood")
            found.append(config.program_class())
            assert load_config(folder).program_class() is found[-1]
            assert sys.path[-1] == str(folder.resolve())
            assert sys.path.count(sys.path[-1]) == 1
            assert name == sys.modules["helper"].WORD
    assert found[0] is not found[1]
    assert sys.path == before
    with pytest.raises(DataError, match=r"'mood'.*config\.toml:4: \[program\] class asks for it"):
        read_data(config)


def test_a_package_beside_the_config_works_too(tmp_path: Path) -> None:
    """Dotted modules and relative imports."""
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__init__.py").write_text("")
    (tmp_path / "program" / "base.py").write_text("class Base:\n    def forward(self, ticket): ...\n")
    (tmp_path / "program" / "sub.py").write_text("from .base import Base\nclass Triage(Base): ...\n")
    config = load_config(project(tmp_path, CLASS.replace("program:", "program.sub:")))
    assert config.input_columns() == ("ticket",)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def Triage(): ...", ":4: .* is no class but <function"),
        ("class Triage: ...", ":4: .*has no method forward"),
        ("class Triag: ...", r":4: .*program\.py has no 'Triage'; did you mean 'Triag'"),
        ("class", r":4: .*SyntaxError: invalid syntax \(program\.py, line 1\)"),
        ("x = 1\nraise KeyError('k')", r":4: .*KeyError: 'k' \(.*program\.py:2\)"),
        ("import no_such_thing", r":4: .*No module named 'no_such_thing' \(.*program\.py:1\)"),
    ],
)
def test_a_class_that_cannot_be_used_is_explained(code: str, message: str, tmp_path: Path) -> None:
    """An error of the user's module is shown with its place, and the config's line that names it."""
    with pytest.raises(ConfigError, match=message):
        load_config(project(tmp_path, CLASS, program__py=code))


@pytest.mark.parametrize("named", ["ticket, queue", "ticket, queue=None", "ticket, *, queue=''"])
def test_a_class_that_is_shown_the_answer_is_refused(named: str, tmp_path: Path) -> None:
    """As a template is; a parameter with a default would be filled, too."""
    code = f"class Triage:\n    def forward(self, {named}): ...\n"
    with pytest.raises(
        ConfigError, match=r":4: \[program\] class = .*forward names queue, the answer by \[data\] target"
    ):
        load_config(project(tmp_path, CLASS, program__py=code))
    judged = CLASS.replace('target = "queue"\n', "").replace('"exact_match"', '"judge"\ninstructions = "Is it right?"')
    load_config(project(tmp_path, judged, program__py=code.replace("queue=None", "target=None").replace("queue", "x")))


@pytest.mark.parametrize(
    ("value", "why"),
    [('["new", "vip"]', "a list, which would be a batch"), ("[]", "a list"), ('{"a": 1}', "an object")],
)
@pytest.mark.parametrize(
    ("text", "line"),
    [
        (change('"{ticket}"', '"{ticket} {labels}"'), r"5: \[program\] user"),
        (change('"Sort the ticket."', '"Sort. {labels}"'), r"4: \[program\] system"),
    ],
)
def test_what_is_no_text_in_a_slots_column_is_refused(
    value: str, why: str, text: str, line: str, tmp_path: Path
) -> None:
    """With the data's line and the config's: it would turn one example into several calls."""
    train = f'{{"ticket": "slow", "labels": "old", "queue": "a"}}\n{{"ticket": "b", "labels": {value}, "queue": "c"}}\n'
    config = load_config(project(tmp_path, text, train__jsonl=train))
    with pytest.raises(
        DataError, match=rf"train\.jsonl:2: column 'labels' holds {why}.*config\.toml:{line} asks for it"
    ):
        read_data(config)


def test_a_metric_function_is_imported(tmp_path: Path) -> None:
    """Beside the config, or installed."""
    text = change('name = "exact_match"', 'function = "score:near"\npurpose = "closeness"')
    function = function_of(load_config(project(tmp_path, text, score__py="def near(a, b): return 0.5")))
    assert function is not None
    assert function("a", "b") == 0.5
    assert load_config(project(tmp_path, text.replace("score:near", "math:dist"))).metric.kind == "function"
    reads_inputs = "def near(a, b, *, inputs): return len(inputs)"
    function = function_of(load_config(project(tmp_path, text.replace("score:", "fields:"), fields__py=reads_inputs)))
    assert function is not None
    assert function("a", "b", inputs={"ticket": "x"}) == 1
    for module, arguments in (("first", "inputs, targets"), ("second", "answer, inputs"), ("last", "a, b, inputs")):
        code = {f"{module}__py": f"def near({arguments}): return 1"}
        assert function_of(load_config(project(tmp_path, text.replace("score:", f"{module}:"), **code)))


def test_a_check_of_form_needs_no_target(tmp_path: Path) -> None:
    """As in Python: a function of answer and inputs is called without one; any other is told which column lacks."""
    text = change('name = "exact_match"', 'function = "form:brief"\npurpose = "brevity"').replace(
        'target = "queue"', ""
    )
    files = {"train__jsonl": '{"ticket": "slow"}\n', "val__jsonl": '{"ticket": "dark"}\n', "test__csv": "ticket\nhot\n"}
    form = "def brief(answer, inputs): return len(answer) < len(inputs['ticket'])"
    config = load_config(project(tmp_path, text, form__py=form, **files))
    assert [len(split or ()) for split in read_data(config)] == [1, 1, 1]
    files["shape__py"] = form.replace("answer, inputs", "answer, wanted, inputs")
    config = load_config(project(tmp_path, text.replace("form:", "shape:"), **files))
    with pytest.raises(DataError, match="there is no column 'target' in any row"):
        read_data(config)


def test_a_system_prompt_can_be_a_file(tmp_path: Path) -> None:
    """Its text counts, without the line break at the end of the file."""
    text = change('system = "Sort the ticket."', 'system_file = "süd.txt"')
    folder = project(tmp_path, text)
    for end in ("\r\n", "\r"):
        (folder / "süd.txt").write_bytes(f"\ufeffSort.{end}Well.{end}".encode())
        (folder / "config.toml").write_bytes(text.replace("\n", end).encode())
        assert load_config(folder).system_text() == "Sort.\nWell."
    (folder / "süd.txt").write_bytes(b"caf\xe9")
    with pytest.raises(ConfigError, match=r"config\.toml:4: \[program\] system_file: .*süd\.txt:1: byte 4 .*UTF-8"):
        load_config(folder)


def test_what_is_resolved_can_be_read_again(tmp_path: Path) -> None:
    """The run folder's copy is plain JSON, holds the defaults, keeps relative paths, and makes an equal config."""
    config = load_config(project(tmp_path))
    values = json.loads(json.dumps(config.resolved()))
    assert values["train"] == {
        "max_epochs": 2,
        "batch_size": 32,
        "critic": True,
        "feedback_batch_size": 1,
        "feedback_images": 16,
    }
    assert values["data"]["train"] == "train.jsonl"
    assert str(tmp_path) not in json.dumps(values)
    again = Config.of(values, config.path)
    assert again.resolved() == values
    with pytest.raises(ConfigError, match=r"config\.toml: \[train\] has no key"):
        Config.of({**values, "train": {"x": 1}}, config.path)


@pytest.mark.parametrize("optimizer", ["TGD", "PatchSearch"])
def test_a_run_folder_keeps_every_setting(optimizer: str, tmp_path: Path) -> None:
    """Those that nobody set too, so that a later version with other defaults cannot tell another story of the run."""
    config = load_config(project(tmp_path, change('"TGD"', f'"{optimizer}"').replace("max_epochs = 2", "")))
    kept = json.loads(json.dumps(runs.describe(config, tmp_path / "run", {}, runs.Way())))["config"]
    for name, section in (
        (None, config),
        *((name, getattr(config, name)) for name in ("models", "train", "optimizer")),
    ):
        table = kept if name is None else kept[name]
        idle = {key for table_of_key, key, _ in idle_keys(config) if table_of_key == name}
        assert set(table) == set(type(section).model_fields) - idle
    assert (kept["budget"], kept["models"]["config"]["top_p"]) == (
        {"dollars": 1.5, "calls": None, "tokens": None},
        None,
    )
    assert Config.model_validate(kept).resolved() == config.resolved()


@pytest.mark.parametrize(
    ("optimizer", "critic"),
    [(name, True) for name in NAMES] + [(name, False) for name in ("TGD", "PatchSearch", "ParetoSearch", "BeamSearch")],
)
def test_the_settings_of_a_run_are_a_config(optimizer: str, critic: bool, tmp_path: Path) -> None:
    """A report shows them to be saved beside the data; what has no effect on the run would be refused."""
    path = project(tmp_path, GOOD.replace("[train]", "[train]\nfeedback_batch_size = 4"))
    config = load_config(path).with_overrides(optimizer=optimizer, critic=critic)
    kept = json.loads(json.dumps(runs.describe(config, tmp_path / "run", {}, runs.Way())))["config"]
    (tmp_path / "config.toml").write_text(as_toml(kept), encoding="utf-8")
    again = load_config(path)
    assert again.resolved() == config.resolved()


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    """A model on the command line does every role, so that no call goes to the model it replaces."""
    own = 'base_url = "http://localhost:1/v1"\njudge = "simulated/tickets"\ncontext = 900\napi = "chat"\nforward ='
    config = load_config(project(tmp_path, change("forward =", own)))
    changed = config.with_overrides(model="m", limits=Budget(dollars=0), seed=0)
    assert changed.models.roles() == {"forward": "m"}
    assert (changed.models.base_url, changed.models.api) == ("http://localhost:1/v1", "chat")
    assert (config.models.context, changed.models.context) == (900, None)  # it belongs to the model that was replaced
    said = ModelOptions("m", judge=None, base_url=None, price=None, limits=(None, None, None))
    assert runs.changed(config, said, Budget()).models == changed.models
    assert changed.models.config == config.models.config
    assert (changed.budget.dollars, changed.seed) == (0, 0)
    assert changed.train == config.train
    assert config.seed == 7
    assert config.models.judge == "simulated/tickets"
    assert config.with_overrides().resolved() == config.resolved()
    assert changed.with_overrides(base_url="https://x/v1").models.base_url == "https://x/v1"
    with pytest.raises(ConfigError, match=r":13: \[metric\] said"):
        changed.fail("[metric] said", "metric", "nowhere")


def test_what_belongs_to_an_endpoint_or_a_model_does_not_go_to_another(tmp_path: Path) -> None:
    """A gateway's secret would go to whatever --base-url names; a model's price is not that of another."""
    gateway = 'base_url = "https://gateway.example.com/v1"\njudge = "m"\nforward ='
    prices = '[models.prices.m]\ninput = 1\noutput = 2\n[models.prices."openai/gpt-5-mini"]\ninput = 3\noutput = 4\n'
    headers = '[models.headers]\nx-team = "search"\nx-gateway-key = {env = "GATEWAY_KEY"}\n'
    config = load_config(project(tmp_path, change("forward =", gateway) + prices + headers))
    kept = {"x-team": "search", "x-gateway-key": {"env": "GATEWAY_KEY"}}
    assert config.models.headers == config.with_overrides(model="m").models.headers == kept
    assert config.with_overrides(base_url=config.models.base_url).models.headers == kept
    assert config.with_overrides(base_url=f"{config.models.base_url}/").models.headers == kept
    assert config.with_overrides(base_url="http://localhost:1/v1").models.headers == {}
    m, mini = ModelPrice(input=1, output=2), ModelPrice(input=3, output=4)
    assert config.models.prices == {"m": m, "openai/gpt-5-mini": mini}
    assert config.with_overrides(model="m").models.prices == {"m": m}
    assert config.with_overrides(model="x").models.prices == {}
    stated = ModelPrice(input=5, cached=1, output=6)
    assert config.with_overrides(price=stated).models.prices == {"m": stated, "openai/gpt-5-mini": stated}
    assert config.with_overrides(model="x", price=stated).models.prices == {"x": stated}
    assert Config.of(config.resolved(), config.path).models == config.models


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"base_url": "nowhere"}, "--base-url: base_url = 'nowhere' is no address such as"),
        ({"base_url": "http://a:b@c"}, "--base-url: base_url holds a key or password"),
        ({"base_url": "http://:b@c"}, "--base-url: base_url holds a key or password"),
        ({"model": ""}, r".*config\.toml: \[models\] forward = '': .*\(as changed on the command line\)"),
    ],
)
def test_an_override_is_checked_like_the_file(override: dict[str, Any], message: str, tmp_path: Path) -> None:
    """A wrong option is an error before anything is paid for, and not blamed on a line of the file."""
    config = load_config(project(tmp_path))
    with pytest.raises(ConfigError, match=f"^{message}"):
        config.with_overrides(**override)


SYNTAX = {
    "dotted keys": (
        "train.max_epochs = 3\ntrain . batch_size=4",
        {("train", "max_epochs"): 1, ("train", "batch_size"): 2},
    ),
    "inline tables": ("a = {b = 1, c = {d = 2}}\ne = 1", {("a", "b"): 1, ("a", "c", "d"): 1, ("e",): 2}),
    "tabs and spaces": ("\t[ a . b ] # c = 1\n\n\tx\t=\t1\t# y = 2\n  z=2", {("a", "b", "x"): 3, ("a", "b", "z"): 4}),
    "quoted keys": ('"a b" = 1\n\'c\'."d\\"#" = 2\n["[x]"]\ny = 1', {("a b",): 1, ("c", 'd"#'): 2, ("[x]", "y"): 4}),
    "long texts": ('a = """\n[x]\nb = 1 \\""" # "" \n"""\nc = 2', {("a",): 1, ("c",): 5}),
    "quotes at the end of long texts": (
        "a = \"\"\"x\"\"\"\"\"\nb = '''y'''''\nc = \"\"\nd = ''",
        {("b",): 2, ("c",): 3, ("d",): 4},
    ),
    "raw texts": ("a = '\\'\nb = '''\n\\'''\nc = 1", {("b",): 2, ("c",): 4}),
    "lists over lines": (
        "a = [ # x = 1\n  1, # ]\n  [2,\n3],\n  {b = 1},\n]\nc = 1",
        {("a", 1, 1): 4, ("a", 2, "b"): 5, ("c",): 7},
    ),
    "lists of tables": ("[[a]]\nx = 1\n[[a]]\nx = 2\n[b]\ny = 1", {("a", 0, "x"): 2, ("a", 1, "x"): 4, ("b", "y"): 6}),
    "dates and numbers": ("a = 1979-05-27 07:32:00Z\nb = +1_000.5e-3\nc = true\nd = 0xff", {("b",): 2, ("d",): 4}),
}


@pytest.mark.parametrize("case", SYNTAX)
def test_lines_are_right_in_every_syntax(case: str) -> None:
    """All of TOML's ways to write a key and a value; what is in a text or a comment is no key."""
    text, wanted = SYNTAX[case]
    tomllib.loads(text)
    lines = key_lines(text)
    assert {path: lines.get(path) for path in wanted} == wanted


def paths(value: object, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {path} - {()} | {deeper for key, item in items for deeper in paths(item, (*path, key))}


scalars = st.sampled_from(
    ["1", "-2.5", "true", '"a # = ["', "'b ] }'", '"""\nx = 1\n"""', "'''\n[t]\n'''", "1979-05-27", '"\\""', "[]", "{}"]
)
spaced = st.sampled_from(["", " ", "\n", " # k = [\n"])
values = st.recursive(
    scalars,
    lambda inner: (
        st.builds(
            lambda items, gap: "[" + gap + ("," + gap).join(items) + gap + "]", st.lists(inner, max_size=3), spaced
        )
        | st.lists(inner, max_size=3).map(lambda v: "{" + ", ".join(f"i{n} = {x}" for n, x in enumerate(v)) + "}")
    ),
    max_leaves=5,
)
keys = st.sampled_from(["{n}", "a{n}.b", '"q {n}"', "'#{n}'. c"])
statements = st.tuples(keys, values, st.sampled_from(["", " # c", "\n", "\n[t{n}]", "\n\n[[l{n}]]", "\n[u{n}.v]"]))


@given(st.lists(statements, min_size=1, max_size=6))
def test_the_keys_with_a_line_are_those_that_tomllib_reads(parts: list[tuple[str, str, str]]) -> None:
    """Whatever is written, no key is missed or invented, and each is where its name stands."""
    text = "".join(f"{key} = {value}{end}\n".replace("{n}", str(n)) for n, (key, value, end) in enumerate(parts))
    lines = key_lines(text)
    assert set(lines) == paths(tomllib.loads(text))
    rows = text.split("\n")
    assert all(str(path[-1]) in rows[line - 1] for path, line in lines.items() if isinstance(path[-1], str))


@pytest.mark.parametrize(("written", "read"), [("1e4", 10_000), ("20_000.0", 20_000), ("30", 30)])
def test_a_budget_may_be_written_with_an_exponent(written: str, read: int, tmp_path: Path) -> None:
    """As in Python; a part of a call is none."""
    project(tmp_path, change("dollars = 1.5", f"calls = {written}\ntokens = {written}"))
    budget = load_config(tmp_path).budget
    assert (budget.calls, budget.tokens) == (read, read)
    assert type(budget.calls) is int
    project(tmp_path, change("dollars = 1.5", "calls = 2.5"))
    with pytest.raises(ConfigError, match="calls"):
        load_config(tmp_path)


def test_a_tilde_in_a_path_is_the_home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    project(tmp_path)
    assert load_config(tmp_path).file("~/train.jsonl") == tmp_path / "home" / "train.jsonl"
