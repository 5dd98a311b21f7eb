"""``response_format``, ``field`` and several metrics in a config: what is refused, and what commands make of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from textgrad_engine.cli import build, runs
from textgrad_engine.cli.config import Config
from textgrad_engine.cli.config_data import read_data
from textgrad_engine.cli.config_file import load_config
from textgrad_engine.errors import ConfigError, DataError
from textgrad_engine.nn import ChatCompletion, ExactMatch, OnField, OnMatch, Rubric, Weighted
from textgrad_engine.store import read_run

from ..runner import Result

CLI = Callable[..., Result]

CLERK = """
import json
import re
from dataclasses import dataclass
from typing import Literal

from textgrad_engine.testing import FunctionModel


@dataclass
class Routing:
    why: str
    label: Literal["billing", "shipping"]


def brief(why, inputs):
    return 10 - min(10, len(why.split())), "Be brief."


def clerk(request):
    prompt, mail = request.messages[0].text, request.messages[-1].text
    if request.purpose == "judge":
        return {"score": 5 if "because" in mail else 3, "explanation": "Say because."}
    if request.purpose == "backward":
        cases = request.config.response_format.json_schema["properties"]
        rules = "Money is billing. Say because."
        return {case: dict.fromkeys(fields["properties"], rules) for case, fields in cases.items()}
    if request.purpose == "optimizer":
        last = max(int(number) for number in re.findall(r"^(\\d+)\\|", mail, re.MULTILINE))
        rules = [rule for rule in ("Money is billing.", "Say because.") if rule in mail.partition("Feedback")[2]]
        edit = {"op": "add", "line": last, "reason": "asked for", "feedback": [1]}
        return {"edits": [{**edit, "text": rule} for rule in rules]}
    label = "billing" if "charge" in mail and "Money is billing" in prompt else "shipping"
    why = "because it says so" if "Say because" in prompt else "it says so"
    return json.dumps({"why": why, "label": label}) if request.config.response_format else label


model = FunctionModel(clerk, name="clerk")
"""

CONFIG = """\
[program]
system = "Route the mail."
user = "{mail}"
response_format = "routing.json"

[data]
train = "train.jsonl"
val = "val.jsonl"
test = "test.jsonl"
target = "label"

[[metric]]
field = "label"
weight = 3

[[metric]]
name = "judge"
instructions = "Is the reason a reason?"
scale = [1, 5]
field = "why"

[models]
forward = "clerk:model"

[train]
max_epochs = 1
batch_size = 6
"""

SCHEMA = {
    "title": "routing",
    "type": "object",
    "properties": {"why": {"type": "string"}, "label": {"enum": ["billing", "shipping"]}},
    "required": ["why", "label"],
    "additionalProperties": False,
}


@pytest.fixture
def mail(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder of mail; ``change`` replaces parts of the config."""

    def make(*change: tuple[str, str], target: Callable[[str], Any] = str) -> Path:
        text = CONFIG
        for old, new in change:
            assert old in text, old
            text = text.replace(old, new)
        for split, offset in (("train", 0), ("val", 100), ("test", 200)):
            rows = [
                {
                    "mail": f"{'charge' if n % 2 else 'parcel'} {n + offset}",
                    "label": target("billing" if n % 2 else "shipping"),
                }
                for n in range(12)
            ]
            (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        (tmp_path / "clerk.py").write_text(CLERK, encoding="utf-8")
        (tmp_path / "routing.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
        (tmp_path / "config.toml").write_text(text, encoding="utf-8")
        return tmp_path

    return make


ONE = ('[[metric]]\nfield = "label"\nweight = 3\n', '[metric]\nfield = "label"\n')
RUBRIC = (
    'name = "judge"\ninstructions = "Is the reason a reason?"\nscale = [1, 5]\n',
    'name = "rubric"\ncriteria = ["It is late."]\n',
)
ONE_CRITERION = '[metric]\nname = "rubric"\ncriteria = [{ criterion = "a", floor = 0.5 }]\n\n'
UNDER_ALL = '[metric]\nname = "rubric"\ncriteria = ["a", "b"]\nfloor = 0.5\n\n'
NO_SECOND = (CONFIG[CONFIG.index('[[metric]]\nname = "judge"') : CONFIG.index("[models]")], "")
NO_FORM = ('response_format = "routing.json"\n', "")

PROBLEMS: dict[str, tuple[list[tuple[str, str]], str]] = {
    "no such file": ([("routing.json", "ruting.json")], r":4: .*no such file; did you mean 'routing\.json'"),
    "a list for a schema": ([("routing.json", "train.jsonl")], r":4: .*train\.jsonl:2: column 1: not JSON: Extra data"),
    "no such class": ([("routing.json", "clerk:Ruting")], r":4: .*has no 'Ruting'; did you mean 'Routing'"),
    "no class": ([("routing.json", "clerk:clerk")], r":4: .*expected a pydantic model, a dataclass"),
    "no schema of an object": (
        [('response_format = "routing.json"', 'response_format = { type = "array" }')],
        r":4: \[program\] response_format: expected .*the JSON schema of an object",
    ),
    "a schema that nothing can be held against": (
        [('"routing.json"', '{ type = "object", properties = { label = { minimum = "1" } } }')],
        r":4: .*\$\.properties\.label: minimum must be a number",
    ),
    "a number for a form": ([('"routing.json"', "5")], ':4: .*should be "module:Class", the name of a file'),
    "a form of a class": (
        [('system = "Route the mail."\nuser = "{mail}"', 'class = "clerk:Routing"')],
        r":3: \[program\] has class and response_format; .*take it out here",
    ),
    "a field that there is not": (
        [('field = "label"', 'field = "lable"')],
        r":13: \[\[metric\]\] field = 'lable': an answer has no such field.*did you mean 'label'",
    ),
    "the whole of what is JSON": (
        [('field = "label"\nweight = 3\n', "")],
        r":12: \[\[metric\]\] exact_match compares the whole answer, and that is JSON.*such as field = \"why\"",
    ),
    "the whole of what is JSON with quotes in its names": (
        [
            ('field = "label"\nweight = 3\n', ""),
            ('"routing.json"', """{ type = "object", properties = { 'say "it"' = { type = "string" } } }"""),
        ],
        r""":12: .*such as field = "say \\"it\\"\", or name = "json_match" for all of it$""",
    ),
    "a field of what is no JSON": (
        [NO_FORM, ONE, NO_SECOND],
        r":12: \[metric\] field = 'label' is read of an answer that is JSON, and no \[program\] response_format",
    ),
    "a default for nothing": (
        [ONE, NO_SECOND, NO_FORM, ('field = "label"\n', 'default = ""\n')],
        r":11: \[metric\] default stands for a field, and there is none",
    ),
    "a default that is no text": (
        [("weight = 3", "default = []")],
        r":14: .*default = \[\]: should be a text or a number",
    ),
    "a default that no score comes of": ([("weight = 3", "default = nan")], r":14: .*should be a text or a number"),
    "a field that is no name": ([('field = "label"', "field = true")], ":13: .*should be the name of a field"),
    "no way to a field": ([('field = "label"', "field = []")], ":13: .*should be the name of a field"),
    "the weight of one": ([NO_SECOND, ("[[metric]]", "[metric]")], ":12: .*weight means nothing to one metric"),
    "the weight of one in a list": ([NO_SECOND], ":12: .*weight means nothing to one metric"),
    "a scale without an end": (
        [("scale = [1, 5]", "scale = [1, inf]")],
        r":19: \[\[metric\]\] scale\[1\] = inf: should be a finite number",
    ),
    "a scale that is too long": ([("scale = [1, 5]", "scale = [-1e308, 1e308]")], r":19: .*too far apart for a mean"),
    "a weight of too many digits": (
        [("weight = 3", f"weight = 1{400 * '0'}")],
        r":14: \[\[metric\]\] weight = 10{99}: should be",
    ),
    "a field of a text": (
        [('field = "why"', 'field = ["why", 0]')],
        r":20: .*field = \['why', 0\]: why is of the type string and has no 0 in it",
    ),
    "an entry of an object": (
        [('field = "why"', "field = 0")],
        r":20: .*an answer is of the type object and has no 0 in it, .*it has why, label",
    ),
    "a date in a form": (
        [('"routing.json"', '{ type = "object", properties = { label = { const = 2026-01-01 } } }')],
        r":4: .*properties\.label\.const is 2026-01-01, which JSON has no word for; write it as text",
    ),
    "a number without end in a form": (
        [('"routing.json"', '{ type = "object", properties = { label = { maximum = inf } } }')],
        r":4: .*properties\.label\.maximum is inf, which JSON has no word for",
    ),
    "the target of one": (
        [NO_SECOND, ("[[metric]]", "[metric]"), ("weight = 3", 'target = "label"')],
        r":14: \[metric\] target is for one of several metrics; write \[data\] target = \"label\" instead",
    ),
    "a target column that is shown": (
        [("weight = 3", 'target = "mail"')],
        r":3: \[program\] user shows the model \{mail\}, the answer by \[\[metric\]\] target; take it out",
    ),
    "the target of no metric": (
        [("weight = 3", 'target = "team"'), ('field = "why"', 'field = "why"\ntarget = "team"')],
        r":10: \[data\] target = 'label' is the column of no metric, as each \[\[metric\]\] names its own; take it out",
    ),
    "no weight": ([("weight = 3", "weight = 0")], r":14: \[\[metric\]\] weight = 0: should be greater than 0"),
    "an endless weight": ([("weight = 3", "weight = inf")], r":14: .*should be a finite number"),
    "a misspelt key of the second": (
        [("instructions", "instruction")],
        r":18: \[\[metric\]\] has no key 'instruction'; here it is 'instructions'",
    ),
    "a second judge without criteria": (
        [('instructions = "Is the reason a reason?"\n', "")],
        r":16: \[\[metric\]\] judge wants instructions",
    ),
    "criteria that are none": (
        [RUBRIC, ('"It is late."', "3")],
        r":18: \[\[metric\]\] criteria: criterion 1 is an int 3, and should be a text, or a dict, such as",
    ),
    "criteria that are no list": (
        [RUBRIC, ('["It is late."]', '"It is late."')],
        r":18: \[\[metric\]\] criteria = 'It is late\.': should be a list in brackets",
    ),
    "a floor under a criterion of one of several metrics": (
        [RUBRIC, ('"It is late."', '{ criterion = "a", floor = 0.5 }, "b"')],
        r":18: \[\[metric\]\] criteria: a floor under a criterion is for a rubric that is the only metric; take it out",
    ),
    "a misspelt floor under a criterion": (
        [RUBRIC, ('"It is late."', '{ criterion = "a", flor = 0.5 }, "b"')],
        r":18: \[\[metric\]\] criteria: criterion 1 has the key 'flor'; did you mean 'floor'\?",
    ),
    "a floor under a rubric alone": (
        [(CONFIG[CONFIG.index("[[metric]]") : CONFIG.index("[models]")], UNDER_ALL)],
        r":\d+: \[metric\] floor is for one of several metrics.*; one under a criterion stands in that, \{ criterion",
    ),
    "a floor that is no part": (
        [RUBRIC, ('"It is late."', '{ criterion = "a", floor = 5 }')],
        r":18: \[\[metric\]\] criteria: the floor of criterion 1 is 5, and should be the part of the answers, from 0",
    ),
    "a floor under the only criterion": (
        [(CONFIG[CONFIG.index("[[metric]]") : CONFIG.index("[models]")], ONE_CRITERION)],
        r":14: \[metric\] criteria: a floor is for one of several criteria, as no change is kept by which the score of",
    ),
    "criteria of a judge": (
        [("instructions = ", 'criteria = ["a"]\ninstructions = ')],
        r":18: \[\[metric\]\] criteria means nothing to judge; take it out",
    ),
    "instructions of a rubric": (
        [RUBRIC, ("criteria = ", 'instructions = "a"\ncriteria = ')],
        r":18: \[\[metric\]\] instructions means nothing to rubric; take it out",
    ),
    "no metric at all": (
        [NO_SECOND, ONE, ('[metric]\nfield = "label"\n', ""), ("[program]", "metric = []\n[program]")],
        ":1: metric",
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_what_does_not_go_together_is_named_with_its_line(case: str, mail: Callable[..., Path]) -> None:
    """Of several metrics with that of the one that is wrong."""
    change, message = PROBLEMS[case]
    with pytest.raises(ConfigError, match=rf"config\.toml{message}"):
        load_config(mail(*change))


def test_a_target_without_the_field_is_named(mail: Callable[..., Path]) -> None:
    """With its line, before anything is paid for."""
    config = load_config(mail(target=lambda label: {"lable": label}))
    with pytest.raises(
        DataError, match=r"train\.jsonl:1: column 'label' is an object .* has no field 'label'; it has lable"
    ):
        read_data(config)
    config = load_config(mail(target=lambda label: {"label": [label]}))
    with pytest.raises(DataError, match="the field 'label' of column 'label' is a list in this row"):
        read_data(config)


def test_a_target_without_the_field_of_a_function_is_named(mail: Callable[..., Path]) -> None:
    """It would be called without a target, after the first answers were paid for; one that can do without is not."""
    judge = 'name = "judge"\ninstructions = "Is the reason a reason?"\nscale = [1, 5]\n'
    for function, refused in (("near", True), ("near_or_not", False), ("brief", False)):
        folder = mail((judge, f'function = "clerk:{function}"\npurpose = "p"\n'), target=lambda label: {"label": label})
        with (folder / "clerk.py").open("a", encoding="utf-8") as file:
            file.write(
                "\n\ndef near(why, target):\n    return 1\n\n\ndef near_or_not(why, target=None):\n    return 1\n"
            )
        config = load_config(folder)
        if not refused:
            assert len(read_data(config)[0]) == 12
            continue
        with pytest.raises(
            DataError, match=r"train\.jsonl:1: .* has no field 'why'; it has label .*:19: \[\[metric\]\]"
        ):
            read_data(config)


def test_a_target_that_is_no_criteria_is_named(mail: Callable[..., Path]) -> None:
    """With its line; where all examples have the same, their targets are looked at by no rubric."""
    own = ('name = "rubric"\ncriteria = ["It is late."]\nfield = "why"', 'name = "rubric"\nfield = "why"')
    config = load_config(mail(RUBRIC, own, target=lambda label: {"label": label, "why": []}))
    with pytest.raises(
        DataError,
        match=r"train\.jsonl:1: column 'label' holds no criteria in this row: there are none; give one at least; or "
        r"write criteria = \[...\] for all rows in \[\[metric\]\] \(.*:10: \[data\] target asks for it\)",
    ):
        read_data(config)
    assert len(read_data(load_config(mail(RUBRIC)))[0]) == 12


def test_targets_that_are_objects_give_each_metric_its_field(mail: Callable[..., Path]) -> None:
    """So one column holds all that is extracted."""
    config = load_config(mail(target=lambda label: {"label": label, "why": "x"}))
    assert [len(split or ()) for split in read_data(config)] == [12, 12, 12]


def test_names_of_fields_may_be_those_of_secrets(mail: Callable[..., Path]) -> None:
    """An answer may have a field for a password reset; a key by its form is refused there, too."""
    form = '{ type = "object", properties = { password = { type = "string" }, label = { type = "string" } } }'
    second = ('field = "why"', 'field = "password"')
    assert load_config(mail(('"routing.json"', form), second)).response_format() is not None
    with pytest.raises(ConfigError, match="a key does not belong in a config file"):
        load_config(mail(('"routing.json"', form.replace('"string"', '"sk-abcdefghijklmnopqrstu"')), second))


@pytest.mark.parametrize("form", ["routing.json", "clerk:Routing", "table"])
def test_a_form_is_a_file_a_class_or_a_table(form: str, mail: Callable[..., Path]) -> None:
    """All three hold the model to the same."""
    table = json.dumps(SCHEMA).replace('": ', '" = ').replace("false", "false")
    config = load_config(mail(('"routing.json"', table if form == "table" else f'"{form}"')))
    program = build.make_program(config)
    assert isinstance(program, ChatCompletion)
    made = program.settings.config.response_format
    assert made is not None
    assert set(made.json_schema["properties"]) == {"why", "label"}
    assert Config.of(config.resolved(), config.path).response_format() == made


def test_one_metric_is_itself_and_several_are_one_score(mail: Callable[..., Path]) -> None:
    """With equal ones told apart."""
    one = build.make_metric(load_config(mail(ONE, NO_SECOND)))
    assert isinstance(one, OnField)
    assert isinstance(one.loss, ExactMatch)
    several = build.make_metric(
        load_config(
            mail(
                ('name = "judge"\ninstructions = "Is the reason a reason?"\nscale = [1, 5]\n', ""),
                ('field = "why"', 'field = "label"'),
            )
        )
    )
    assert isinstance(several, Weighted)
    assert several.weights == {"exact_match of label": 3, "exact_match of label (2)": 1}


def test_no_metric_is_lost_among_others_of_its_name(mail: Callable[..., Path]) -> None:
    """Also where a field is called as a number behind a name would be."""
    wanted = ["a", "a", "a (2)", "price (EUR)", "price (EUR)"]
    config = load_config(
        mail(
            (CONFIG[CONFIG.index("[[metric]]") : CONFIG.index("[models]")], ""),
            ("[models]", "".join(f'[[metric]]\nfield = "{name}"\n' for name in wanted) + "[models]"),
            ('"routing.json"', '{ type = "object", properties = {} }'),
        )
    )
    several = build.make_metric(config)
    assert isinstance(several, Weighted)
    assert [each.path[0] for each in several.losses if isinstance(each, OnField)] == wanted
    assert list(several.weights) == [
        "exact_match of a",
        "exact_match of a (3)",
        "exact_match of a (2)",
        "exact_match of price (EUR)",
        "exact_match of price (EUR) (2)",
    ]


def test_a_field_behind_references_and_alternatives(mail: Callable[..., Path]) -> None:
    """What a form leaves open is not refused, and a reference is followed."""
    form = {
        "type": "object",
        "properties": {
            "label": {"$ref": "#/$defs/label"},
            "why": {"anyOf": [{"type": "object"}, {"type": "null"}]},
            "next": {"$ref": "#"},
            "all": {"type": "array", "items": {"$ref": "#/$defs/label"}},
            "more": {"properties": {"name": {"type": "string"}}},
        },
        "$defs": {"label": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }
    wrong = {'["label", "nam"]': "label has no such field.*did you mean 'name'", '["all", -1, "nam"]': "all.-1 has no"}
    right = ['["label", "name"]', '["why", "x", 2]', '["next", "next", "label"]', '["all", -1, "name"]']
    right += ['["more", "name"]', '["more", 0]']
    for field in (*wrong, *right):
        folder = mail(('field = "why"', f"field = {field}"))
        (folder / "routing.json").write_text(json.dumps(form), encoding="utf-8")
        if field in right:
            load_config(folder)
            continue
        with pytest.raises(ConfigError, match=wrong[field]):
            load_config(folder)


@pytest.mark.parametrize(("number", "why"), [("NaN", "NaN is no JSON"), ("1e400", "the number 1e400 is too large")])
def test_a_schema_file_holds_json(mail: Callable[..., Path], number: str, why: str) -> None:
    """Python reads NaN, and 1e400 as infinity, and no endpoint does."""
    folder = mail()
    (folder / "routing.json").write_text(f'{{"type": "object", "properties": {{"label": {{"maximum": {number}}}}}}}')
    with pytest.raises(ConfigError, match=rf":4: .*routing\.json: {why}; write a JSON schema into it"):
        load_config(folder)


def test_a_target_that_is_json_in_a_text_is_no_object(mail: Callable[..., Path]) -> None:
    """As a CSV file has it: the field of an answer would never be the same as all of it."""
    config = load_config(mail(target=lambda label: json.dumps({"label": label})))
    with pytest.raises(DataError, match=r"train\.jsonl:1: column 'label' is JSON written as a text .* \.jsonl"):
        read_data(config)
    config = load_config(mail(target=lambda label: json.dumps({"lable": label})))
    assert len(read_data(config)[0]) == 12


def test_a_function_among_several_scores_from_0_to_1_unless_it_says_otherwise(
    cli: CLI, mail: Callable[..., Path]
) -> None:
    """What lies outside would count for more than its weight."""
    judge = 'name = "judge"\ninstructions = "Is the reason a reason?"\nscale = [1, 5]\n'
    function = 'function = "clerk:brief"\npurpose = "length"\n'
    done = cli("eval", mail((judge, function)))
    assert done.exit_code == 1
    assert "gave 7 on a scale from 0 to 1; give it the scale=" in " ".join(done.stderr.split())
    done = cli("eval", mail((judge, function + "scale = [0, 10]\n")))
    assert done.exit_code == 0, done.output


def test_a_function_that_gives_no_score_is_told_in_a_line(cli: CLI, mail: Callable[..., Path]) -> None:
    """With the metric and the example, and no traceback: it is the user's own code that is to be mended."""
    judge = 'name = "judge"\ninstructions = "Is the reason a reason?"\nscale = [1, 5]\n'
    folder = mail((judge, 'function = "clerk:wordy"\npurpose = "wordiness"\n'))
    with (folder / "clerk.py").open("a", encoding="utf-8") as file:
        file.write('\n\ndef wordy(answer, target):\n    return "very"\n')
    done = cli("eval", folder)
    assert done.exit_code == 1
    assert "error: the metric 'wordiness' must return a number, or (number, text); got 'very'\n" in done.stderr
    assert "  in the metric 'wordiness', on example '" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ('field = "whi"', "there is no output 'whi' of the program; it gives label, why"),
        ("", "this loss scores one Variable, got a dict of label, why; .* in a config field = name"),
    ],
)
def test_an_output_that_a_class_does_not_give_is_told_in_a_line(
    field: str, said: str, cli: CLI, mail: Callable[..., Path]
) -> None:
    """Nobody knows it before the class is called."""
    program = 'system = "Route the mail."\nuser = "{mail}"\nresponse_format = "routing.json"'
    folder = mail((program, 'class = "clerk:Router"'), ('field = "why"', field))
    with (folder / "clerk.py").open("a", encoding="utf-8") as file:
        file.write("""

from textgrad_engine import nn


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.chat = nn.ChatCompletion(system=nn.Parameter("Route the mail."), user="{mail}")

    def forward(self, mail):
        return {"label": self.chat(mail=mail), "why": self.chat(mail=mail)}
""")
    done = cli("eval", folder)
    assert done.exit_code == 1
    assert re.search(said, " ".join(done.stderr.split()))
    assert "Traceback" not in done.stderr


def test_eval_tells_what_each_metric_gave(cli: CLI, mail: Callable[..., Path]) -> None:
    """A score of several says little by itself."""
    folder = mail()
    done = cli("eval", folder)
    assert done.exit_code == 0, done.output
    assert re.search(r"\n  score   0\.500 .*\n  of it   0\.500 exact_match of label, weight 3\n", done.stdout)
    assert "\n          3.000 judge of why, from 1 to 5, weight 1\n" in done.stdout
    found = json.loads(cli("eval", folder, "--json", "--repeats", "2").stdout)
    assert found["mean"] == pytest.approx(0.75 * 0.5 + 0.25 * 0.5)
    assert found["parts"] == [
        {"name": "exact_match of label", "mean": 0.5, "n": 12, "scale": [0, 1], "weight": 3},
        {"name": "judge of why", "mean": 3.0, "n": 12, "scale": [1, 5], "weight": 1},
    ]
    assert "parts" not in json.loads(cli("eval", mail(ONE, NO_SECOND), "--json").stdout)


def test_the_parts_add_up_to_the_score_where_answers_were_lost(cli: CLI, mail: Callable[..., Path]) -> None:
    """With repeats each example counts once, however many of its answers came."""
    folder = mail(NO_FORM, ('field = "why"', 'field = "why"\ndefault = ""'))
    with (folder / "clerk.py").open("a", encoding="utf-8") as file:
        file.write("""
asked = {}


def forgetful(request):
    if request.purpose != "forward":
        return clerk(request)
    mail = request.messages[-1].text
    time = asked[mail] = asked.get(mail, 0) + 1
    label = "billing" if time % 2 else "shipping"
    return json.dumps({"label": label}) if time <= 1 + int(mail.split()[1]) % 4 else "{}"


model = FunctionModel(forgetful, name="clerk")
""")
    text = (folder / "config.toml").read_text(encoding="utf-8")
    text = text.replace(
        'system = "Route the mail."', 'system = "R"\nresponse_format = { type = "object", properties = {} }'
    )
    (folder / "config.toml").write_text(text, encoding="utf-8")
    found = json.loads(cli("eval", folder, "--json", "--repeats", "4").stdout)
    label, why = found["parts"]
    assert found["unanswered"] > 0
    assert found["mean"] == pytest.approx((3 * label["mean"] + (why["mean"] - 1) / 4) / 4)


def test_at_least_is_of_the_one_score(cli: CLI, mail: Callable[..., Path]) -> None:
    """From 0 to 1, whatever the scales of the metrics are."""
    assert cli("eval", mail(), "--at-least", "0.6").exit_code == 4
    done = cli("eval", mail(), "--at-least", "3")
    assert (done.exit_code, "give a score from 0 to 1" in done.stderr) == (2, True)


def test_every_command_takes_several_metrics(cli: CLI, mail: Callable[..., Path], tmp_path: Path) -> None:
    """From the estimate to the report, and a run that its budget ended goes on to what it would have come to."""
    folder = mail()
    assert "judge" in json.loads(cli("estimate", folder, "--json").stdout)["calls"]
    assert cli("estimate", folder, "--folds", "2").exit_code == 0
    whole, cut, folds = tmp_path / "whole", tmp_path / "cut", tmp_path / "folds"
    done = cli("train", folder, "--run-dir", whole)
    assert done.exit_code == 0, done.output
    found = read_run(whole)
    assert found.result is not None
    assert found.best["system"].split("\n")[1:] == ["Money is billing.", "Say because."]
    assert found.result.best_test is not None
    assert found.result.best_test.mean == 1.0
    assert cli("train", folder, "--run-dir", cut, "--budget-calls", "90", "-q").exit_code == 3
    assert cli("resume", cut, "--budget-calls", "5000", "-q").exit_code == 0
    assert read_run(cut).best == found.best
    assert cli("report", whole).exit_code == 0
    assert cli("train", folder, "--folds", "2", "--run-dir", folds, "-q").exit_code == 0
    assert cli("show", folds).exit_code == 0
    assert "verdict" in json.loads(cli("show", folds, "--json").stdout)


def test_runs_by_other_metrics_or_weights_are_not_compared(cli: CLI, mail: Callable[..., Path], tmp_path: Path) -> None:
    """A higher score by another measure is no better prompt."""
    changes = {
        "a": [],
        "b": [("weight = 3", "weight = 2")],
        "c": [("instructions =", "instructions = 'Or' #")],
        "d": [],
        "e": [("weight = 3", 'weight = 6\nname = "exact_match"'), ("instructions =", "weight = 2\ninstructions =")],
    }
    for name, change in changes.items():
        assert cli("train", mail(*change), "--run-dir", tmp_path / name, "-q").exit_code == 0
    for other in "bc":
        done = cli("diff", tmp_path / "a", tmp_path / other)
        assert "their scores mean different things, as metric is not the same" in " ".join(done.stdout.split())
    assert "metric[1].weight" in cli("diff", tmp_path / "a", tmp_path / "b").stdout
    for same in "de":
        assert "nothing paired" not in cli("diff", tmp_path / "a", tmp_path / same).stdout


def test_a_run_keeps_the_schema_that_its_answers_had(cli: CLI, mail: Callable[..., Path], tmp_path: Path) -> None:
    """So `eval` asks what the run asked, also where the file is gone or another one."""
    folder, run = mail(), tmp_path / "run"
    assert cli("train", folder, "--run-dir", run, "-q").exit_code == 0
    (folder / "routing.json").write_text('{"type": "object", "properties": {"other": {"type": "string"}}}')
    kept = runs.config_of(read_run(run), read_run(run).best)
    form = kept.response_format()
    assert form is not None
    assert (form.name, set(form.json_schema["properties"])) == ("routing", {"why", "label"})
    (folder / "routing.json").unlink()
    done = cli("eval", run, "--json")
    assert json.loads(done.stdout)["mean"] == 1.0


@pytest.mark.parametrize("title", [None, "Who it goes to"])
def test_a_run_by_a_schema_of_any_title_goes_on(
    title: str | None, cli: CLI, mail: Callable[..., Path], tmp_path: Path
) -> None:
    """What it asks is what it asked, to the letter: else all that was paid for is unknown to it."""
    folder, run = mail(), tmp_path / "run"
    schema = {**SCHEMA, "title": title} if title else {key: value for key, value in SCHEMA.items() if key != "title"}
    (folder / "routing.json").write_text(json.dumps(schema), encoding="utf-8")
    asked = load_config(folder).response_format()
    assert cli("train", folder, "--run-dir", run, "--budget-calls", "60", "-q").exit_code == 3
    assert runs.config_of(read_run(run), read_run(run).best).response_format() == asked
    done = cli("resume", run, "--budget-calls", "5000", "-q")
    assert done.exit_code == 0, done.output


def test_a_default_is_scored_where_the_prompt_has_to_ask_for_json_itself(cli: CLI, mail: Callable[..., Path]) -> None:
    """The answers are wrong then, and not lost."""
    plain = ('field = "label"\n', 'field = "label"\ndefault = ""\n')
    found = json.loads(cli("eval", mail(NO_FORM, ONE, NO_SECOND, plain), "--json").stdout)
    assert (found["mean"], found["unanswered"]) == (0.0, 0)


OWN = [('target = "label"\n', ""), ("weight = 3", 'weight = 3\ntarget = "label"')]


def test_each_metric_may_have_a_target_column_of_its_own(cli: CLI, mail: Callable[..., Path], tmp_path: Path) -> None:
    """The judge beside it is shown none, unless it names one; training, resuming and folds know both."""
    config = load_config(mail(*OWN))
    loss = build.make_metric(config)
    assert isinstance(loss, Weighted)
    assert loss.targets == {"exact_match of label": "label"}
    assert config.target_columns() == ("label",)
    folder = mail(*OWN, ('field = "why"', 'field = "why"\ntarget = "mail_as_it_is"'))
    for split in ("train", "val", "test"):
        rows = [json.loads(line) for line in (folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]
        text = "".join([json.dumps({**row, "mail_as_it_is": row["mail"]}) + "\n" for row in rows])
        (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    run = tmp_path / "run"
    assert "judge" in json.loads(cli("estimate", folder, "--json").stdout)["calls"]
    done = cli("train", folder, "--run-dir", run, "--budget-calls", "90", "-q")
    assert done.exit_code == 3, done.output
    assert cli("resume", run, "--budget-calls", "5000", "-q").exit_code == 0
    found = read_run(run)
    assert found.result is not None
    assert found.result.best_test is not None
    assert found.result.best_test.mean == 1.0
    asked = map(json.loads, (run / "completions.jsonl").read_text(encoding="utf-8").splitlines())
    judged = [each for each in asked if each["purpose"] == "judge"]
    assert judged
    assert all("A reference answer:" in each["request"]["messages"][-1]["content"] for each in judged)
    assert cli("train", folder, "--folds", "2", "--run-dir", tmp_path / "folds", "-q").exit_code == 0


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("labl", r"no column 'labl' in any row; .* mail, label; did you mean 'label'.*:13: \[\[metric\]\] target"),
        ("team", r"no column 'team' in any row; the columns are mail, label \(.*:13: \[\[metric\]\] target asks"),
    ],
)
def test_a_target_column_that_there_is_not_is_named_with_those_there_are(
    column: str, said: str, mail: Callable[..., Path]
) -> None:
    """And the line that asks for it."""
    config = load_config(mail(OWN[0], ("weight = 3", f'target = "{column}"')))
    with pytest.raises(DataError, match=said):
        read_data(config)


def test_a_run_tells_what_each_metric_gave_wherever_it_tells_the_score(
    cli: CLI, mail: Callable[..., Path], tmp_path: Path
) -> None:
    """`show`, the page, `diff`, folds, and all of them as JSON; at 80 columns each metric is in a line."""
    folder, run, folds = mail(), tmp_path / "run", tmp_path / "folds"
    done = cli("train", folder, "--run-dir", run)
    line = re.compile(r"^  exact_match of label +75% +0\.500 +1\.000 +0\.500 +1\.000$", re.MULTILINE)
    assert line.search(done.stdout)
    assert line.search(cli("show", run).stdout)
    found = json.loads(cli("show", run, "--json").stdout)
    label = {"name": "exact_match of label", "n": 12, "scale": [0.0, 1.0], "weight": 3.0}
    why = {"name": "judge of why", "n": 12, "scale": [1.0, 5.0], "weight": 1.0}
    for split in ("val", "test"):
        assert found[split]["seed"]["parts"] == [{**label, "mean": 0.5}, {**why, "mean": 3.0}]
        assert found[split]["best"]["parts"] == [{**label, "mean": 1.0}, {**why, "mean": 5.0}]
    assert cli("report", run).exit_code == 0
    assert "judge of why, 1 to 5" in (run / "report.html").read_text(encoding="utf-8")
    beside = cli("diff", run, run).stdout
    assert re.search(r"^  judge of why, 1 to 5 +25% +5\.000 +5\.000 +5\.000 +5\.000$", beside, re.MULTILINE)
    assert json.loads(cli("diff", run, run, "--json").stdout)["a"]["test"]["best"]["parts"][1]["mean"] == 5.0
    assert cli("train", folder, "--folds", "2", "--run-dir", folds, "-q").exit_code == 0
    assert re.search(r"^  judge of why, 1 to 5 +25% +3\.000 +5\.000$", cli("show", folds).stdout, re.MULTILINE)
    tested = json.loads(cli("show", folds, "--json").stdout)["tested"]
    assert tested["best"]["parts"][1] == {**why, "n": tested["best"]["examples"], "mean": 5.0}
    assert cli("report", folds).exit_code == 0
    assert "judge of why, 1 to 5" in (folds / "report.html").read_text(encoding="utf-8")


def test_a_run_folder_of_before_shows_the_one_score(cli: CLI, mail: Callable[..., Path], tmp_path: Path) -> None:
    """It has not what each metric gave, and is read all the same."""
    run = tmp_path / "run"
    assert cli("train", mail(), "--run-dir", run, "-q").exit_code == 0
    for name in ("result.json", "events.jsonl"):
        text = (run / name).read_text(encoding="utf-8")
        assert '"parts"' in text
        (run / name).write_text(
            "".join([json.dumps(_without_parts(json.loads(line))) + "\n" for line in text.split("\n") if line])
            if name.endswith("jsonl")
            else json.dumps(_without_parts(json.loads(text))),
            encoding="utf-8",
        )
    done = cli("show", run)
    assert done.exit_code == 0, done.output
    assert "What each of" not in done.stdout
    assert "parts" not in json.loads(cli("show", run, "--json").stdout)["val"]["seed"]
    assert cli("report", run).exit_code == 0
    assert cli("diff", run, run).exit_code == 0


def _without_parts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_parts(each) for key, each in value.items() if key != "parts"}
    return [_without_parts(each) for each in value] if isinstance(value, list) else value


def test_a_pattern_finds_what_is_compared(mail: Callable[..., Path]) -> None:
    """In the field, if there is one; metrics are told apart by it, too."""
    one = build.make_metric(
        load_config(mail(ONE, NO_SECOND, ('field = "label"', "field = \"label\"\npattern = 'x(.*)'")))
    )
    assert isinstance(one, OnField)
    assert isinstance(one.loss, OnMatch)
    assert (one.loss.pattern, one.loss.default) == ("x(.*)", "")
    whole = mail(ONE, NO_SECOND, NO_FORM, ('field = "label"', "pattern = 'x(.*)'\ndefault = \"none\""))
    alone = build.make_metric(load_config(whole))
    assert isinstance(alone, OnMatch)
    assert alone.default == "none"
    several = build.make_metric(load_config(mail(('field = "label"', "field = \"label\"\npattern = 'x(.*)'"))))
    assert isinstance(several, Weighted)
    assert list(several.weights) == ["exact_match of label in x(.*)", "judge of why"]


def test_a_floor_under_a_criterion_guards_it(mail: Callable[..., Path]) -> None:
    """By the name that the criterion has in reports; the rubric itself has none."""
    made = """[metric]
name = "rubric"
criteria = ["It says why.", { criterion = "It lies.", points = -1, floor = 0.9 }]

"""
    config = load_config(mail((CONFIG[CONFIG.index("[[metric]]") : CONFIG.index("[models]")], made)))
    guards = build.make_guards(config, read_data(config)[1])
    assert guards is not None
    assert guards.metrics == {"not: It lies.": 0.9}
    loss = build.make_metric(config)
    assert isinstance(loss, Rubric)
    assert loss.criteria == ["It says why.", {"criterion": "It lies.", "points": -1}]
