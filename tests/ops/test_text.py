from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, func, nn, ops
from textgrad_engine.autograd import Source
from textgrad_engine.errors import AutogradError
from textgrad_engine.ops.batching import Stack, Unbind
from textgrad_engine.ops.parts import MOST_PLACES
from textgrad_engine.optim.feedback import item_of
from textgrad_engine.testing import FunctionModel, ScriptedModel

from ..values import said, wanting


@pytest.mark.parametrize("values", ["abc", Variable("abc"), Variable(["a", "b"]), {"a": 1}, None, 3])
@pytest.mark.parametrize("operation", [ops.join, ops.sum])
def test_what_is_no_list_of_values_is_refused(operation: Callable[[Any], Variable], values: Any) -> None:
    """A text would be taken letter by letter."""
    with pytest.raises(
        TypeError, match=rf"takes a list of .*, got {type(values).__name__}.*; write ops\.\w+\("
    ) as caught:
        operation(values)
    assert ("goes backward as it is" in str(caught.value)) == isinstance(values, Variable)


@pytest.mark.parametrize(
    ("operation", "where"),
    [
        (lambda none: ops.join(["a", none]), "at position 1"),
        (lambda none: ops.join(["a"], none), ""),
        (lambda none: ops.sum([none, 1]), "at position 0"),
        (lambda none: ops.format("{a}", a=none), r"for \{a\}"),
        (lambda none: ops.format(none), ""),
        (lambda none: ops.add("a", none), "at position 1"),
        (lambda none: Variable("a") + none, "at position 1"),
    ],
)
@pytest.mark.parametrize("value", [None, {"a": 1}, ("a",)])
def test_what_is_no_value_does_not_become_text(operation: Callable[[Any], Variable], where: str, value: Any) -> None:
    """None in a prompt is a mistake that was made elsewhere."""
    with pytest.raises(TypeError, match=rf"value is a text, a number or .* got {type(value).__name__}.*{where}"):
        operation(value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"maxsplit": "1"}, "maxsplit is a whole number, -1 for all pieces, got str '1'"),
        ({"maxsplit": True}, "maxsplit is a whole number"),
        ({"sep": ""}, "the separator is empty; None splits at white space"),
        ({"sep": 3}, "a separator is a text, or None"),
        ({"sep": Variable(" ")}, "a separator is a text, or None .*; of a Variable take its .data"),
        ({"value": 3}, "takes a text or a Variable, got int 3"),
    ],
)
def test_what_a_text_cannot_be_split_by_is_refused(options: dict[str, Any], words: str) -> None:
    """In words of the caller, not in those of `str.split`."""
    with pytest.raises((TypeError, ValueError), match=f"split: {words}"):
        ops.split(**{"value": Variable("a b"), **options})


def test_text_and_number_do_not_add_up() -> None:
    """A number that slips into a text is refused, not written out silently."""
    with pytest.raises(TypeError, match=r"text and number do not add up .*ops\.join"):
        ops.add("queue ", 3)


def test_scores_are_weighed_and_feedback_goes_on_as_it_is() -> None:
    """A pass begins at `0.7 * right + 0.3 * short`; each part speaks for itself, and a satisfied one is silent."""
    answer = wanting("a long answer", role="answer")
    right = nn.Metric(lambda text: (0.0, "It is wrong."), "rightness")
    short = nn.Metric(lambda text: (0.5, "It is long."), "brevity")
    kind = nn.Metric(lambda text: (1.0, "It is kind."), "kindness")
    loss = 0.5 * right(answer) + short(answer) * 0.4 + kind(answer) / 10
    assert loss.data == pytest.approx(0.3)
    loss.backward()
    heard = [text for text in said(answer) if text]
    assert ["wrong" in heard[0], "long" in heard[1], len(heard)] == [True, True, 2]
    assert tg.autograd.gradcheck(lambda score: 0.5 * score, [wanting(0.5, role="score")])
    assert func.vmap(lambda score: score / 2)([1.0, 0.5]).data == [0.5, 0.25]
    assert (2 * Variable([0.5, 0.25])).data == [1.0, 0.5]
    half = Fraction(1, 2)  # a number like those of numpy
    assert ((half * Variable(1.0)).data, (Variable(1.0) / half).data) == (0.5, 2.0)
    with pytest.raises(ValueError, match="larger than any number"):
        Variable(1.0) / 1e-320
    assert func.jvp(lambda score: 0.5 * score, (1.0,), ("becomes 0",))[1].data == "becomes 0"


@pytest.mark.parametrize(
    ("factor", "error", "words"),
    [
        (-1, ValueError, "the factor must be above 0, got -1; feedback asks for a higher score"),
        (0, ValueError, "above 0, got 0"),
        (float("nan"), ValueError, "above 0, got nan"),
        (float("inf"), ValueError, "larger than any number"),
        (10**400, ValueError, "larger than any number"),
        ("2", TypeError, "the factor is a number that you choose, such as 0.5; got str '2'"),
        (Variable(2.0), TypeError, "got a Variable"),
    ],
)
def test_a_factor_that_words_cannot_follow_is_refused(factor: Any, error: type, words: str) -> None:
    """A loss with a minus would ask for more of what it counts against."""
    for scaled in (lambda score: score * factor, lambda score: score / factor):
        with pytest.raises(error, match="scale: the factor"):
            scaled(Variable(0.5))
    with pytest.raises(error, match=words):
        factor * Variable(0.5)
    with pytest.raises(TypeError, match=r"a number is scaled, and this is the text 'Sort.'"):
        _ = (Variable("Sort.") * 2).data


def text_losses(*words: str) -> tuple[Variable, list[Variable]]:
    """Criticism of words that were made from one prompt, with the prompt."""
    prompt = wanting("Say ", role="prompt")
    loss = nn.TextLoss(
        "Is it kind?", model=FunctionModel(lambda request: {"nothing_wrong": False, "criticism": "Be kind."})
    )
    return prompt, [loss(prompt + word) for word in words]


@pytest.mark.parametrize(
    "total",
    [
        ops.sum,
        lambda losses: losses[0] + losses[1],
        lambda losses: ops.sum([*losses, "a remark"]),
        lambda losses: ops.sum(losses).clone(),
        lambda losses: ops.sum([Stack.apply(losses), ""]),
    ],
)
def test_a_pass_begins_at_a_sum_of_losses_that_are_texts(total: Callable[[list[Variable]], Variable]) -> None:
    """As it does in TextGrad: each of the losses begins, once."""
    prompt, losses = text_losses("yes", "no")
    total(losses).backward()
    assert said(prompt) == ["Be kind.", "Be kind."]


def test_no_pass_begins_at_a_sum_of_losses_and_other_texts() -> None:
    """What else is in it needs words to begin with."""
    prompt, losses = text_losses("yes")
    with pytest.raises(AutogradError, match="needs feedback to begin with"):
        ops.sum([*losses, prompt]).backward()


def test_a_pass_begins_at_thousands_of_losses_added_one_by_one() -> None:
    """Whether it may is found out without recursion, and each part is looked at once."""
    prompt, (loss,) = text_losses("yes")
    total = loss
    for _ in range(3000):
        total = total + ""
    total.backward()
    assert said(prompt) == ["Be kind."]


def test_the_sum_of_python_says_what_adds_losses() -> None:
    """It begins with 0; str() of a loss would cut it off from its graph."""
    _, losses = text_losses("yes", "no")
    _ = losses[0].data
    with pytest.raises(TypeError, match=r"Python's sum\(\) begins with 0: .*ops\.sum.*tg\.backward"):
        _ = sum(losses).data  # type: ignore[arg-type]


def test_batches_of_different_length_do_not_add_up() -> None:
    """Entries are never dropped by a zip."""
    with pytest.raises(ValueError, match="batches of 2 and 3 entries"):
        ops.add(Variable(["a", "b"]), Variable(["x", "y", "z"]))


def test_format_names_the_slot_that_the_template_lacks() -> None:
    """A value that would go nowhere is an error that names it and what there is."""
    with pytest.raises(ValueError, match=r"no \{colour\}.*\['size'\]"):
        ops.format("only {size}", colour="red")


def test_sum_passes_each_gradient_on_once() -> None:
    """Defect of section 9: a sum that doubles each gradient."""
    a, b = wanting("a"), wanting("b")
    ops.sum([a, b]).backward("too short")
    assert said(a) == ["too short"]
    assert said(b) == ["too short"]


def test_a_variable_added_to_itself_hears_it_from_both_places() -> None:
    """Two uses are two paths, as in PyTorch."""
    a = wanting("a")
    (a + a).backward("stop repeating")
    assert said(a) == ["stop repeating"] * 2


def test_sum_of_numbers_and_of_texts() -> None:
    """Losses add up; texts go one below the other."""
    assert ops.sum([Variable(1), Variable(0), 2.5]).data == 3.5
    assert ops.sum([Variable("a"), "b"]).data == "a\nb"
    assert ops.sum([Variable([1, 0]), Variable([1, 1])]).data == [2, 1]


def test_a_batch_takes_one_value_for_every_entry() -> None:
    """A scalar is added to each entry, from either side."""
    assert ops.add(Variable(["a", "b"]), "!").data == ["a!", "b!"]
    assert ops.add("> ", Variable(["a", "b"])).data == ["> a", "> b"]


def test_values_of_a_format_are_never_scanned_again() -> None:
    """Braces in a value are text: no injection of slots, no KeyError for JSON."""
    made = ops.format('{"id": 1} {a} {b}', a="{b}", b='{"x": "{a}"}')
    assert made.data == '{"id": 1} {b} {"x": "{a}"}'


def test_feedback_on_a_format_reaches_template_and_values() -> None:
    """Every input that wants feedback hears it once, frozen ones do not."""
    template, frozen, value = wanting("{a} and {b}"), Variable("A"), wanting("B")
    ops.format(template, a=frozen, b=value).backward("odd")
    assert (said(template), said(frozen), said(value)) == (["odd"], [], ["odd"])


def test_join_gives_feedback_to_the_parts() -> None:
    """A separator is no part of the role; every part hears the feedback once."""
    a, b = wanting("a", "question"), wanting("b", "answer")
    whole = ops.join([a, b], Variable("; ", role="separator"))
    assert (whole.data, whole.role) == ("a; b", "question and answer")
    whole.backward("swap them")
    assert (said(a), said(b)) == (["swap them"], ["swap them"])


def test_split_says_which_part_the_feedback_is_about() -> None:
    """The text hears of its parts by number, and nothing of parts without feedback."""
    text = wanting("one\ntwo\nthree", "list")
    parts = ops.split(text, "\n")
    assert [part.role for part in parts] == [f"part {n} of list" for n in (1, 2, 3)]
    parts[2].backward("misspelt", retain_graph=True)
    assert said(text) == ["On part 3 of 3: misspelt"]


def test_feedback_through_a_split_keeps_role_and_source() -> None:
    """Which example it is about, and what it scored, an optimizer wants to know of every piece."""
    text = Variable("a, b", role="list", requires_grad=True)
    with tg.autograd.example("t7"):
        ops.exact_match_evaluator(ops.split(text, ", ")[1], "c")[0].backward()
    (item,) = text.grad
    assert (item.role, item.source.example, item.source.score) == ("feedback of the evaluator", "t7", 0.0)


def test_split_takes_a_plain_text_too() -> None:
    """As the other operations do."""
    assert [part.data for part in ops.split("a, b", ", ")] == ["a", "b"]


def test_split_into_one_part_adds_no_words() -> None:
    """There is nothing to tell apart."""
    text = wanting("one")
    ops.split(text, "\n")[0].backward("wrong")
    assert said(text) == ["wrong"]


def test_operations_on_pending_values_do_not_wait() -> None:
    """Text made of an answer that is on its way is itself on its way."""
    model = ScriptedModel(["4"])
    answer = ops.chat_completion(model, [{"role": "user", "content": "2 + 2?"}])
    line = ops.format("{n}!", n=ops.join([answer, "2"]) + "0")
    assert line.data == "420!"


def test_the_role_of_a_result_names_each_input_once() -> None:
    """Roles do not grow with repeated use, such as that of a transcript with its turns."""
    a, b = Variable("a", role="question"), Variable("b", role="answer")
    assert (a + a + b + "c").role == "question and answer"
    transcript = Variable("", role="transcript")
    for _ in range(3):
        transcript = ops.join([transcript, a, b])
    assert transcript.role == "transcript and question and answer"


def test_a_slot_may_have_any_name() -> None:
    """Also that of the function's own parameter."""
    assert ops.format("{template}: {x}", template="t", x="y").data == "t: y"


WHOLE = "Said of a longer text, in which this one is "


def asked_about(request: Any) -> Any:
    if request.purpose == "backward":
        return {"case_1": {"user": "be right"}}
    return {"Where?": "Paris", "Which?": "Sidney"}[request.messages[-1].text]


def shown_to_critic(combine: Any) -> list[str]:
    """What the critic is shown for the two answers of one prompt, of which something is made that feedback is on."""
    model = FunctionModel(asked_about)
    with tg.use_models(forward=model):
        answers = [
            ops.chat_completion(None, [{"role": "user", "content": wanting(question)}])
            for question in ("Where?", "Which?")
        ]
        combine(*answers).backward("The second is wrong.")
    requests = [request.messages[-1].text for request in model.requests if request.purpose == "backward"]
    return [next(text for text in requests if answer in text) for answer in ("Paris", "Sidney")]


@pytest.mark.parametrize(
    ("combine", "first", "second"),
    [
        (lambda a, b: ops.format("First: {a}, second: {b}", a=a, b=b), "{a}", "{b}"),
        (lambda a, b: ops.join([a, "and", b], " "), "part 1 of 3", "part 3 of 3"),
        (lambda a, b: ops.sum([a, b]), "part 1 of 2", "part 2 of 2"),
        (lambda a, b: a + " / " + b, "part 1 of 2", "part 2 of 2"),
    ],
)
def test_a_critic_is_told_that_feedback_was_said_of_a_whole(combine: Any, first: str, second: str) -> None:
    """Else the right answer reads that it is wrong, and of a pair that is not there."""
    paris, sidney = shown_to_critic(combine)
    assert f"{WHOLE}{first}: The second is wrong." in paris
    assert f"{WHOLE}{second}: The second is wrong." in sidney


def test_what_a_hook_makes_of_feedback_on_a_whole_is_said_of_the_whole() -> None:
    """In other words, or of several pieces in one; but not where it says that it comes from somewhere else."""

    def heard(hook: Any, *said: Any) -> str:
        a, b = wanting("a"), wanting("b")
        with a.register_hook(hook):
            wholes = [ops.join([a, b]) if first else ops.join([b, a]) for first, _ in said]
            tg.backward(wholes, [text for _, text in said])
        (item,) = a.grad
        return item_of(item).text

    one, two = (True, "odd"), (True, "ugly")
    assert heard(lambda gradient: gradient.data.upper(), one) == f"{WHOLE}part 1 of 2: ODD"
    assert heard(lambda gradient: " and ".join(each.data for each in gradient.grad), one, two) == (
        f"{WHOLE}part 1 of 2: odd and ugly"
    )
    assert heard(lambda gradient: "both", one, (False, "ugly")) == "both"

    def own_words(gradient: Variable) -> Variable:
        said = Variable("Too long.", role="feedback")
        said.source = replace(gradient.grad[0].source or Source(), places=())
        return said

    assert heard(own_words, one) == "Too long."


def test_of_a_part_of_a_part_only_that_is_said() -> None:
    """A transcript of twenty turns would tell the first one of twenty places."""
    a, b, c = wanting("a"), wanting("b"), wanting("c")
    (a + b + c).backward("odd")
    assert [item_of(leaf.grad[0]).text for leaf in (a, b, c)] == [
        "Said of a longer text, of which this one is a part: odd",
        "Said of a longer text, of which this one is a part: odd",
        f"{WHOLE}part 2 of 2: odd",
    ]


def test_where_nothing_else_has_a_part_in_the_whole_feedback_is_on_it() -> None:
    """Literals are the program's; a template is filled, and what comes of it is its own; numbers have no places."""
    alone, template, value, number = wanting("a"), wanting("{x}!"), wanting("b"), wanting(1)
    ops.join([alone, "and more"]).backward("odd")
    ops.format(template, x=value).backward("odd")
    ops.sum([number, Variable(2)]).backward("too low")
    assert [item_of(leaf.grad[0]).text for leaf in (alone, template, number)] == ["odd", "odd", "too low"]
    assert item_of(value.grad[0]).text == f"{WHOLE}{{x}}: odd"


def test_a_critic_reads_once_what_was_said_of_a_text_with_the_answer_in_two_places() -> None:
    """It is one piece of feedback; each place hears it, as in PyTorch."""
    model = FunctionModel(asked_about)
    with tg.use_models(forward=model):
        answer = ops.chat_completion(None, [{"role": "user", "content": wanting("Where?")}])
        ops.format("{a}, {b}", a=answer, b=answer).backward("too cold")
    assert model.requests[-1].messages[-1].text.count("too cold") == 1


def test_the_place_of_a_part_outlives_a_split_and_a_batch() -> None:
    """A split speaks of its own parts; the entries of a batch are parts of what each was put into."""
    text = wanting("one two")
    ops.join([ops.split(text)[1], Variable("x")]).backward("odd")
    assert item_of(text.grad[0]).text == f"On part 2 of 2: {WHOLE}part 1 of 2: odd"
    entries = [wanting("a"), wanting("b")]
    batch = Stack.apply(entries)
    ops.format("{x}{y}", x=batch, y=Variable("!")).backward(["first", "second"])
    assert [item_of(entry.grad[0]).text for entry in entries] == [f"{WHOLE}{{x}}: first", f"{WHOLE}{{x}}: second"]


def test_the_place_of_a_part_is_told_to_a_batch_that_was_taken_apart() -> None:
    """What its entries hear becomes one list of texts, which has one place, or none that is that of all."""
    batch, alone, mixed = wanting(["a", "b"]), wanting(["c", "d"]), wanting(["e", "f"])
    func.vmap(lambda x: ops.join([x, Variable("!")]))(batch).backward(["odd", ""])
    assert (batch.grad[0].data, batch.grad[0].source.places) == (["odd", ""], ("part 1 of 2",))
    func.vmap(lambda x: x + "!")(alone).backward(["odd", ""])
    assert (alone.grad[0].data, alone.grad[0].source.places) == (["odd", ""], ())
    first, second = Unbind.apply(mixed, 2, "test")
    tg.backward([first + Variable("!"), second + "!"], ["odd", "even"])
    assert mixed.grad[0].data == [f"{WHOLE}part 1 of 2: odd", "even"]


def test_places_stay_few_where_a_text_grew_by_many_additions() -> None:
    """Each addition is a level: a place with all of them would take time and memory that grow with their square."""
    first = text = wanting("a")
    for _ in range(100):
        text = text + Variable("b")
    text.backward("odd")
    assert first.grad[0].source.places == ("part 1 of 2",) * MOST_PLACES


def test_numbers_have_places_in_a_text_that_is_made_of_them() -> None:
    """Only where they are added up there are none."""
    one, two = wanting(1), Variable(2)
    for whole in (ops.join([one, two], " of "), ops.format("{a} of {b}", a=one, b=two), one + two):
        whole.backward("odd")
    assert [item.source.places for item in one.grad] == [("part 1 of 2",), ("{a}",), ()]
