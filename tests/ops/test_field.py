"""A field of a JSON answer is a value of its own, and what is said of it reaches the prompt that asked for it."""

from __future__ import annotations

import pytest

import textgrad_engine as tg
from textgrad_engine import func, nn, ops, optim
from textgrad_engine.errors import MalformedResponse
from textgrad_engine.testing import FunctionModel, ScriptedModel


def answer(text: object) -> tg.Variable:
    return tg.Variable(text, role="answer", requires_grad=True)


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("broken", ("label",), r"^the answer is no JSON, so it has no field label \(Expecting value.*\): 'broken'"),
        ("[" * 100_000, ("label",), "is no JSON, .*(recursion|Stack overflow)"),
        ('{"label": NaN}', ("label",), "NaN is no JSON"),
        ('{"a": 1, "b": 2}', ("label",), "the answer has no field label; it has the fields a, b: .*response_format"),
        ("{}", ("label",), "it has no field"),
        ('{"a": {"b": 1}}', ("a", "label"), r"no field a\.label; it has at a the fields b"),
        ('{"a": [1, 2]}', ("a", 2), r"no field a\[2\]; it has at a a list of 2"),
        ('{"a": "text"}', ("a", 0), r'no field a\[0\]; it has at a "text"'),
        (r'{"a": "\ud800"}', ("a",), "half of a surrogate pair in the field a"),
        (
            '[{"name": "look_up", "arguments": {"city": "Rome"}}]',
            ("a",),
            "no field a; it has a list of 1: .* These are calls of tools: .* so raise max_turns; or let something",
        ),
    ],
)
def test_a_field_that_is_not_there_is_named_with_what_is(text: str, path: tuple[str | int, ...], words: str) -> None:
    """A typo is seen at the first answer, and hostile answers end nothing else."""
    with pytest.raises(MalformedResponse, match=words):
        ops.field(answer(text), *path)


def test_a_field_that_is_nested_too_deeply_to_be_written_is_none() -> None:
    """What can be read may be too deep for all that is done with it; an error of Python's would end the run."""
    for depth in (400, 700, 980, 985, 990, 995):
        value = ops.field(answer('{"a":' * depth + "1" + "}" * depth), "a", default="none")
        assert value.data == "none" or str(value.data).startswith('{"a": ')


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{}", "label"), r"reads a field of a Variable, got str '\{\}'; of plain data take it with json.loads"),
        ((answer("{}"),), "names no field"),
        ((answer("{}"), 1.5), "has a name, an entry of a list a number; got float 1.5"),
        ((answer("{}"), True), "got bool True"),
        ((answer(["{}", "{}"]), "a"), "got a batch of 2 answers"),
    ],
)
def test_what_is_no_field_is_refused_at_once(arguments: tuple[object, ...], words: str) -> None:
    """At the line that is wrong, not where the value is read."""
    with pytest.raises(TypeError, match=words):
        ops.field(*arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="default is a text or a number, got list"):
        ops.field(answer("{}"), "a", default=[])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "x"}', "x"),
        ('{"a": 3}', 3),
        ('{"a": 0.5}', 0.5),
        ('{"a": true}', "true"),
        ('{"a": null}', "null"),
        ('{"a": ["é"]}', '["é"]'),
        ('```json\n{"a": "x"}\n```', "x"),
        ('<think>a?</think>{"a": "x"}', "x"),
    ],
)
def test_texts_and_numbers_are_as_they_are_and_the_rest_is_json(text: str, value: object) -> None:
    """As models write JSON when they are asked for it in words, too."""
    assert answer(text)["a"].data == value


def test_the_answer_is_told_of_which_field_something_was_said() -> None:
    """With the score and where it came from; a field that is right says nothing."""
    whole = answer('{"reason": "late", "label": "shipping"}')
    nn.ExactMatch()(whole["label"], "billing").backward()
    (said,) = whole.grad
    words = "The answer is wrong. Expected exactly `billing`, got `shipping`."
    assert said.data == f"On the field label of this answer: {words}"
    assert said.source is not None
    assert said.source.score == 0
    whole.grad = None
    nn.ExactMatch()(whole["label"], "shipping").backward()
    assert whole.grad == []
    ops.join([whole["reason"], whole["label"]], ": ").backward("Shorter.")
    assert [item.data.partition(":")[0] for item in whole.grad] == [
        "On the field reason of this answer",
        "On the field label of this answer",
    ]
    assert "in which this one is part 2 of 2: Shorter." in whole.grad[1].data


def test_where_a_default_stood_for_the_field_the_answer_is_told_why() -> None:
    """So a prompt that has to say itself how to answer learns to; what the answer holds cannot pose as more."""
    whole = answer("It is billing. </default>")
    label = ops.field(whole, "label", default="none")
    nn.ExactMatch()(label, "billing").backward()
    said = whole.grad[0].data
    assert label.data == "none"
    assert said.startswith("The field label was read of this answer, which is no JSON, so it has no field label (Exp")
    assert "So this stood for it:\n<default-" in said
    assert said.index("\nnone\n") < said.index("Said of that:\nThe answer is wrong.")
    whole.grad = None
    ops.field(whole, "label", default="").backward("Say billing.")
    assert "nothing stood for it." not in said
    assert "So this stood for it:" not in whole.grad[0].data
    assert "nothing stood for it." in whole.grad[0].data


def test_nothing_waits_and_transforms_go_through() -> None:
    """The field of an answer that is under way is under way; of examples side by side each has its own."""
    model = ScriptedModel(['{"label": "billing"}'])
    chat = nn.ChatCompletion("{text}", model=model, role="answer")
    label = chat(text="charged twice")["label"]
    assert label.role == "label of the answer"
    assert label.data == "billing"

    def wrong(text: tg.Variable) -> tg.Variable:
        return nn.ExactMatch()(text["a"], "z")

    texts = ['{"a": "x"}', '{"a": "z"}']
    assert func.vmap(lambda text: text["a"])(texts).data == ["x", "z"]
    one, other = func.vmap(func.grad(wrong))(texts).data
    assert (one.partition(":")[0], other) == ("On the field a of this answer", "")
    edited = func.jvp(lambda text: text["a"], (texts[0],), ("make it y",))[1].data
    assert edited == "What falls on the field a of this edit of the whole: make it y"
    assert tg.autograd.gradcheck(lambda text: text["a"], [answer(texts[0])], vary_inputs=False)


class Sorter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.chat = nn.ChatCompletion("{ticket}", system=nn.Parameter("Sort it.", role="system prompt"))

    def forward(self, ticket: str) -> tg.Variable:
        return ops.field(self.chat(ticket=ticket), "queue", default="")


@pytest.mark.parametrize("optimizer", [optim.TGD, optim.PatchSearch])
def test_a_prompt_learns_to_answer_in_json(optimizer: type[optim.Optimizer]) -> None:
    """An answer in another form is wrong, and not unanswered: its prompt is told, and the next answers are read."""

    def model(request: tg.llm.Request) -> object:
        user = request.messages[-1].text
        if request.purpose == "forward":
            return '{"queue": "billing"}' if "JSON" in request.messages[0].text else "billing"
        if request.purpose == "optimizer":
            return {"edits": [{"op": "add", "line": 1, "text": "As JSON.", "reason": "asked for", "feedback": [1]}]}
        form = request.config.response_format
        assert form is not None
        said = "Ask for JSON." if "which is no JSON" in user else ""
        return {
            case: dict.fromkeys(fields["properties"], said) for case, fields in form.json_schema["properties"].items()
        }

    rows = [{"ticket": word * 9, "target": "billing"} for word in "abcdefghijklmnop"]
    program = Sorter()
    with tg.use_models(forward=FunctionModel(model)):
        trainer = tg.Trainer(max_epochs=1, batch_size=4)
        result = trainer.fit(program, nn.ExactMatch(), optimizer(program.parameters()), rows[:8], rows[8:])
    assert (result.seed_val.mean, result.best_val.mean) == (0, 1)
    assert result.seed_val.unanswered == 0
