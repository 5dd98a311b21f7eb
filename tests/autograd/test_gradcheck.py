from __future__ import annotations

import asyncio
import contextlib
import functools
import html
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, func, nn, ops
from textgrad_engine.autograd import gradcheck
from textgrad_engine.errors import AutogradError
from textgrad_engine.ops.echo import observed
from textgrad_engine.ops.model_call import ChatCompletion
from textgrad_engine.testing import FunctionModel, ScriptedModel

from ..values import wanting


def critic(text: str | Variable) -> Variable:
    """Ask the critic something, as a rule of a user's would."""
    return ops.chat_completion(None, [{"role": "user", "content": text}], purpose="backward")


class Pair(tg.Function):
    """Two texts one after the other; the examples of the zoo break its rule, which is sound."""

    @staticmethod
    def forward(a: Variable, b: Variable) -> Variable:
        return Variable(f"{a.data} {b.data}", role="both")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        return grad_out, grad_out


def broken(rule: Callable[..., Any]) -> type[Pair]:
    return type(rule.__name__, (Pair,), {"backward": staticmethod(rule)})


def found(fn: Any, *inputs: Any, **options: Any) -> str:
    """What gradcheck says of it."""
    given = inputs or (wanting("one", "first"), wanting("two", "second"))
    with pytest.raises(AutogradError) as caught:
        gradcheck(fn, given, **options)
    assert not gradcheck(fn, given, raise_exception=False, **options)
    return str(caught.value)


def checks(message: str) -> list[str]:
    """The names of the checks that found something, each once."""
    lines = [line[2:] for line in message.split("\n") if line.startswith("- ")]
    return list(dict.fromkeys(line.partition(" (")[0] for line in lines))


# the zoo: each of these is found, and by its name


def test_a_gradient_too_few() -> None:
    """The engine's own message is shown."""
    message = found(broken(lambda ctx, grad_out: grad_out).apply)
    assert checks(message) == ["one gradient for each input"]
    assert "got:      AutogradError: <lambda>.backward returned 1 gradients, expected 2" in message


def test_an_input_that_gets_nothing() -> None:
    """None where feedback is wanted."""
    message = found(broken(lambda ctx, grad_out: (grad_out, None)).apply)
    assert checks(message) == ["one gradient for each input"]
    assert "(input 1, 'second')\n    expected: feedback on it\n    got:      None, or empty" in message


def test_an_input_that_the_output_does_not_depend_on() -> None:
    """Its data was taken out of the graph."""
    message = found(lambda a, b: a + b.data)
    assert checks(message) == ["one gradient for each input"]
    assert "(input 1, 'second')" in message
    assert "no output depends on it" in message
    assert checks(found(lambda a, b: (a + b).detach())) == ["one gradient for each input"]


def test_a_rule_that_does_not_listen() -> None:
    """It says the same whatever was said."""
    message = found(broken(lambda ctx, grad_out: ("bad", grad_out)).apply)
    assert checks(message)[0] == "feedback reaches every gradient"
    assert "(input 0, 'first')" in message
    assert "'feedbackmark1', in its gradient\n    got:      'bad'" in message


def test_a_critic_that_is_not_told_the_feedback() -> None:
    """What it repeats shows what its prompt held."""

    def rule(ctx: Any, grad_out: Variable) -> Any:
        a, b, _ = ctx.saved_variables
        answer = critic(f"Say what is wrong with {a.data} and {b.data}.")
        return answer, answer

    message = found(broken(rule).apply)
    assert "feedback reaches every gradient" in checks(message)
    assert "(the critic repeats what its prompt holds)\n    got:      'criticmark valuemark0 valuemark1'" in message


def test_a_critic_that_is_not_shown_the_input() -> None:
    """It is asked about a text that it cannot see."""

    def rule(ctx: Any, grad_out: Variable) -> Any:
        a, _, _ = ctx.saved_variables
        answer = critic(f"About {a.data}: {grad_out.data}")
        return answer, answer

    message = found(broken(rule).apply)
    assert "each input in its own request" in checks(message)
    assert "expected: its value 'two valuemark1' in the request that asks for feedback on it" in message
    assert "got:      a critic that was shown valuemark0" in message
    assert "(input 0" not in message


def test_gradients_that_are_swapped() -> None:
    """Each input gets the answer to the other's request."""

    def rule(ctx: Any, grad_out: Variable) -> Any:
        a, b, _ = ctx.saved_variables
        return critic(f"About {b.data}: {grad_out.data}"), critic(f"About {a.data}: {grad_out.data}")

    message = found(broken(rule).apply)
    assert checks(message)[0] == "each input in its own request"
    assert "a critic that was shown valuemark1" in message
    assert "a critic that was shown valuemark0" in message


def test_gradients_that_are_swapped_without_a_critic() -> None:
    """Each is about the other's value; that of gradients that name no value nothing can tell."""

    def rule(ctx: Any, grad_out: Variable) -> Any:
        a, b, _ = ctx.saved_variables
        return f"on {b.data!r}: {grad_out.data}", f"on {a.data!r}: {grad_out.data}"

    message = found(broken(rule).apply)
    assert checks(message) == ["each gradient about its own input"]
    assert "expected: \"on 'one valuemark0': feedbackmark1\"" in message
    assert "got:      \"on 'two valuemark1': feedbackmark1\"" in message
    assert gradcheck(broken(rule).apply, (wanting("one"), wanting("two")), check_values=False)


def test_gradients_that_tell_each_input_where_the_other_stands_are_sound() -> None:
    """They name the other's value, in words of their own."""

    def rule(ctx: Any, grad_out: Variable) -> Any:
        a, b, _ = ctx.saved_variables
        return f"in front of {b.data!r}: {grad_out.data}", f"behind {a.data!r}: {grad_out.data}"

    assert gradcheck(broken(rule).apply, (wanting("one"), wanting("two")))


def test_a_rule_that_hears_the_first_item_only() -> None:
    """Feedback of several uses or losses arrives as several items."""
    message = found(broken(lambda ctx, grad_out: (grad_out.grad[0], grad_out)).apply)
    assert checks(message) == ["all items of feedback"]
    assert "'feedbackmark1', then 'feedbackmark2', in its gradient\n    got:      'feedbackmark1'" in message


def test_a_rule_that_is_silent_about_several_items() -> None:
    """A result that is used twice would lose all feedback."""
    message = found(broken(lambda ctx, grad_out: (grad_out if len(grad_out.grad) == 1 else None, grad_out)).apply)
    assert checks(message) == ["all items of feedback"]
    assert "(input 0, 'first')\n    expected: feedback on it\n    got:      None, or empty" in message


class Upper(tg.Function):
    """A batch in, a batch out; the examples below break its rule."""

    @staticmethod
    def forward(ctx: Any, texts: Variable) -> Variable:
        return Variable([text.upper() for text in texts.data])

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        return grad_out


def test_a_rule_that_takes_feedback_on_a_batch_for_a_text() -> None:
    """It is a list with a text for each entry, as in any pass."""
    assert gradcheck(Upper.apply, wanting(["one", "two"]))
    deaf = type("Deaf", (Upper,), {"backward": staticmethod(lambda ctx, grad_out: grad_out.data.strip())})
    message = found(deaf.apply, wanting(["one", "two"]))
    assert checks(message) == ["one gradient for each input"]
    assert "AttributeError: 'list' object has no attribute 'strip'" in message


@pytest.mark.parametrize("ask", [critic, str])
def test_a_rule_that_hears_one_entry_of_a_batch_only(ask: Any) -> None:
    """What is said about another is lost, on the way to the critic or to the gradient."""

    def rule(ctx: Any, grad_out: Variable) -> Any:
        return Variable([str(ask(f"ONE valuemark0, TWO valuemark0: {grad_out.data[0]}")), ""])

    deaf = type("Deaf", (Upper,), {"backward": staticmethod(rule)})
    message = found(deaf.apply, wanting(["one", "two"]), vary_inputs=False, check_values=False)
    assert checks(message) == ["feedback on every entry of a batch"]
    assert "expected: the words said about this entry of the outputs, 'entrymark1', in a gradient" in message
    assert "entrymark0" in message.partition("got:")[2]


def test_every_entry_of_several_batches_has_a_mark_of_its_own() -> None:
    """Also in batches of batches; a rule that hears those of one output only is not sound."""

    class Two(tg.Function):
        @staticmethod
        def forward(ctx: Any, text: Variable) -> Any:
            return Variable([[text.data, "a"], ["b"]]), Variable("alone"), Variable(["c", "d"])

        @staticmethod
        def backward(ctx: Any, rows: Variable, text: Variable, entries: Variable) -> Any:
            said = [*itertools.chain.from_iterable(rows.data), text.data, *entries.data]
            return " ".join(said[:-1] if text.data and said else said)

    message = found(Two.apply, wanting("text"))
    assert "in a gradient\n    got:      ['feedbackmark1 entrymark0 feedbackmark1 entrymark1 feedbackmark1 " in message
    assert message.count("the words said about this entry of the outputs") == 1
    assert "'entrymark4', in a gradient" in message


def test_a_rule_that_turns_items_around() -> None:
    """Their order means something: it is that of the uses."""
    message = found(broken(lambda ctx, grad_out: (grad_out.grad[::-1], grad_out)).apply)
    assert checks(message) == ["all items of feedback"]


def test_a_rule_that_needs_both_inputs_to_want_feedback() -> None:
    """One of them may be frozen."""

    def rule(ctx: Any, grad_out: Variable) -> Any:
        return (grad_out, grad_out) if all(ctx.needs_input_grad) else (None, None)

    message = found(broken(rule).apply)
    assert checks(message) == ["each input alone"]
    assert "(input 0, 'first')" in message
    assert "(input 1, 'second')" in message


def test_a_rule_that_cannot_do_without_one_output() -> None:
    """Only one of several outputs may have feedback."""

    class Two(tg.Function):
        @staticmethod
        def forward(ctx: Any, text: Variable) -> Any:
            ctx.set_materialize_grads(False)
            return Variable("x"), Variable("y")

        @staticmethod
        def backward(ctx: Any, first: Variable, second: Variable) -> Any:
            return f"{first.data} {'' if second is None else second.data}"

    message = found(Two.apply, wanting("t"))
    assert checks(message) == ["feedback on output 1 alone"]
    assert "AttributeError: 'NoneType' object has no attribute 'data'" in message


class Halves(tg.Function):
    """Two outputs of one input; the examples below break its rule."""

    num_outputs = 2

    @staticmethod
    def forward(text: Variable) -> Any:
        return Variable(text.data[:1]), Variable(text.data[1:])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, first: Variable, second: Variable) -> Any:
        return f"{first.data} {second.data}"


@pytest.mark.parametrize("ask", [critic, str])
def test_a_rule_that_does_not_listen_to_one_output(ask: Any) -> None:
    """What is said about that output alone is lost, on the way to the critic or to the gradient."""

    def rule(ctx: Any, first: Variable, second: Variable) -> Any:
        return ask(f"{ctx.saved_variables[0].data}: {first.data}")

    deaf = type("Deaf", (Halves,), {"backward": staticmethod(rule)})
    message = found(deaf.apply, wanting("text"))
    assert checks(message) == ["feedback on output 1 alone"]
    assert "expected: the words said about this output, 'feedbackmark2', in a gradient\n    got:      [" in message
    assert gradcheck(Halves.apply, wanting("text"))


def test_a_rule_that_listens_to_the_second_output_only_when_the_first_is_silent() -> None:
    """Each output alone is heard, and together one of them is lost."""

    def rule(ctx: Any, first: Variable, second: Variable) -> Any:
        return first.data or second.data

    message = found(type("Either", (Halves,), {"backward": staticmethod(rule)}).apply, wanting("text", "whole"))
    assert checks(message) == ["feedback on all outputs"]
    assert "(input 0, 'whole')\n    expected: the words said about output 1, 'feedbackmark2', in its" in message
    assert "got:      'feedbackmark1'" in message


def test_a_rule_that_keeps_what_it_heard_before() -> None:
    """State between uses: the second use repeats the first."""
    heard: list[str] = []

    def rule(ctx: Any, grad_out: Variable) -> Any:
        heard.append(grad_out.data)
        return " ".join(heard[-2:]), grad_out

    assert "fan-out accumulates in order" in checks(found(broken(rule).apply))


def test_a_rule_that_says_something_else_each_time() -> None:
    """Replay, caches and tests need the same bytes; the message shows both."""
    count = itertools.count()
    message = found(broken(lambda ctx, grad_out: (f"{grad_out.data} #{next(count)}", grad_out)).apply)
    assert "same on repeat" in checks(message)
    assert "expected: 'feedbackmark1 #0'" in message


def test_a_request_that_differs_each_time() -> None:
    """Also where the answer happens to be the same."""
    count = itertools.count()

    def rule(ctx: Any, grad_out: Variable) -> Any:
        a, b, _ = ctx.saved_variables
        answer = critic(f"{next(count)}: {a.data}, {b.data}, {grad_out.data}")
        return answer, answer

    message = found(broken(rule).apply)
    assert "same on repeat (requests)" in message


def test_a_rule_whose_result_depends_on_who_answers_first() -> None:
    """Critics that are asked at the same time are taken in the order of their answers."""

    async def rule(ctx: Any, grad_out: Variable) -> Any:
        a, b, _ = ctx.saved_variables

        async def ask(word: str, value: Variable) -> str:
            answer = critic(f"{word} {a.data} {b.data} {grad_out.data}")
            await answer
            return f"{word} {answer.data}"

        answers = [await done for done in asyncio.as_completed([ask("one", a), ask("two", b), ask("three", a)])]
        return " ".join(answers), grad_out

    message = found(broken(rule).apply)
    assert "same at any concurrency" in checks(message)
    assert set(checks(message)) <= {"same at any concurrency", "same on repeat", "fan-out accumulates in order"}


def test_a_function_that_is_not_symmetric_though_it_says_so() -> None:
    """The first input gets more than the second."""
    rule = broken(lambda ctx, grad_out: (f"{grad_out.data}, at length", grad_out))
    message = found(rule.apply, symmetric=True)
    assert checks(message) == ["swapping inputs swaps gradients"]
    assert "(input 0, 'first', put in the place of input 1)" in message
    assert "expected: 'feedbackmark1, at length'\n    got:      'feedbackmark1'" in message
    assert gradcheck(rule.apply, (wanting("one"), wanting("two")))


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (lambda ctx, grad_out: (f"{{about}} {grad_out.data}".format(about="it"), grad_out), "KeyError"),
        (lambda ctx, grad_out: (("On %s: " + grad_out.data) % "it", grad_out), "TypeError"),
        (lambda ctx, grad_out: (grad_out.data.replace("<", "&lt;"), grad_out), "'&lt;/feedback>"),
        (lambda ctx, grad_out: (grad_out.data.encode("ascii", "ignore").decode(), grad_out), "</feedback>"),
    ],
)
def test_a_rule_that_hostile_feedback_breaks(rule: Any, error: str) -> None:
    """Formatting, escaping and dropping characters all lose or change what was said."""
    message = found(broken(rule).apply)
    assert checks(message) == ["hostile text in feedback"]
    assert error in message


def test_a_critic_whose_prompt_hostile_text_breaks() -> None:
    """What is put into a template by a second pass is filled again."""

    def rule(ctx: Any, grad_out: Variable) -> Any:
        a, b, _ = ctx.saved_variables
        answer = critic(f"{a.data} {b.data} {grad_out.data}".replace("{slot}", "it"))
        return answer, answer

    message = found(broken(rule).apply)
    assert checks(message) == ["hostile text in feedback", "hostile text in inputs"]
    assert "got:      1 requests without it, the first of them" in message


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        (lambda value, said: f"{value[:40]}: {said}", ["hostile text in inputs"]),
        (lambda value, said: f"{html.escape(value)}: {said}", ["hostile text in inputs"]),
        (lambda value, said: f"{value}: {said[:40]}", ["hostile text in feedback"]),
        (lambda value, said: f"{value}: {html.escape(said)}", ["hostile text in feedback"]),
    ],
)
@pytest.mark.parametrize("number", [0, 1])
def test_a_request_that_changes_what_the_other_inputs_request_shows_whole(
    number: int, changed: Any, names: Any
) -> None:
    """Each input's own request counts, the one whose answer is its gradient."""

    def rule(ctx: Any, grad_out: Variable) -> Any:
        values = [saved.data for saved in ctx.saved_variables[:2]]
        shown = [f"{value}: {grad_out.data}" for value in values]
        shown[number] = changed(values[number], grad_out.data)
        return critic(shown[0]), critic(shown[1])

    message = found(broken(rule).apply)
    assert checks(message) == names
    assert f"(input {number}" in message
    assert f"(input {1 - number}" not in message
    assert "expected: as it is in the request that asks for feedback on it: '</feedback>" in message


def test_a_forward_that_hostile_inputs_break() -> None:
    """The same for what the user put in."""

    class Formatted(Pair):
        @staticmethod
        def forward(a: Variable, b: Variable) -> Variable:
            return Variable(f"{a.data}: {{}}".format(b.data))

    message = found(Formatted.apply)
    assert checks(message) == ["hostile text in inputs"]
    assert "forward takes its inputs with words added" in message


def test_several_things_at_once_are_all_named() -> None:
    """One run of gradcheck is enough; the first error is the cause of what is raised."""
    count = itertools.count()

    def rule(ctx: Any, grad_out: Variable) -> Any:
        return f"{next(count)} {grad_out.grad[0].data}".format(), "{}".format(grad_out.data)  # noqa: UP032

    with pytest.raises(AutogradError, match=r"gradcheck of rule\.apply found:") as caught:
        gradcheck(broken(rule).apply, (wanting("one"), wanting("two")))
    names = checks(str(caught.value))
    assert {"all items of feedback", "same on repeat", "hostile text in feedback"} <= set(names)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_call_for_empty_feedback_is_found() -> None:
    """The engine runs no rule for a zero; whatever asks all the same is seen in the requests."""

    def fn(a: Variable) -> Variable:
        return a + "!"

    calls = itertools.count()

    @contextlib.contextmanager
    def restless(seed: int) -> Iterator[Any]:  # stands in for a program that goes on asking
        class Seen:
            repeats = None

            @property
            def requests(self) -> list[str]:
                return ["a request"] * next(calls)

        yield Seen()

    message = found(fn, wanting("a"), observe=restless)
    assert "empty feedback makes no call\n    expected: no request\n    got:      1 requests" in message


# misuse


def test_what_cannot_be_checked_is_refused() -> None:
    """No input wants feedback; pairs of inputs that there are not."""
    with pytest.raises(ValueError, match="no input wants feedback"):
        gradcheck(lambda a: a, Variable("a"))
    with pytest.raises(ValueError, match="symmetric names input 2; 2 want feedback"):
        gradcheck(Pair.apply, (wanting("a"), wanting("b")), symmetric=[(0, 2)])


def test_an_error_of_the_function_itself_is_raised_as_it_is() -> None:
    """It has nothing to do with the rule."""

    def fn(a: Variable) -> Variable:
        raise LookupError("mine")

    for raise_exception in (True, False):
        with pytest.raises(LookupError, match="mine"):
            gradcheck(fn, wanting("a"), raise_exception=raise_exception)


def test_a_function_that_accepts_certain_texts_only_is_checked_as_it_is() -> None:
    """The message says how."""

    def fn(queue: Variable) -> Variable:
        if queue.data not in ("billing", "shipping"):
            raise ValueError(f"no such queue: {queue.data}")
        return queue + "!"

    message = found(fn, wanting("billing"))
    assert (
        "(where it cannot: vary_inputs=False)\n    got:      ValueError: no such queue: billing valuemark0" in message
    )
    assert gradcheck(fn, wanting("billing"), vary_inputs=False)


def test_a_satisfied_loss_is_told_apart() -> None:
    """It sends nothing because there is nothing to say."""
    message = found(lambda p: ops.exact_match_evaluator(p, "a")[0], wanting("a"), vary_inputs=False)
    assert "a loss that is satisfied sends nothing" in message


# what it leaves alone


def test_it_touches_nobodys_feedback_and_asks_no_model_of_the_users() -> None:
    """Inputs, parameters of the program, and money."""
    model = ScriptedModel([])
    chat = nn.ChatCompletion("{ticket}", system=nn.Parameter("Sort.", role="prompt"))
    ticket = wanting("My bill?", "ticket")
    with tg.use_models(forward=model, backward=model), tg.no_grad():
        assert gradcheck(lambda text: chat(ticket=text), ticket)
    assert model.requests == []
    assert (ticket.grad, ticket.data, chat.system.grad) == ([], "My bill?", [])


def test_models_of_ones_own_are_observed_with_less_precision() -> None:
    """What they answer is theirs; what they were told is checked."""

    @contextlib.contextmanager
    def observe(seed: int) -> Iterator[Any]:
        def answer(request: Any) -> Any:
            seen.requests.append(request.messages[-1].text)
            return {"case_1": {"user": "shorter"}} if request.purpose == "backward" else "fine"

        class Seen:
            repeats = None

        seen: Any = Seen()
        seen.requests = []
        with tg.use_models(forward=FunctionModel(answer)):
            yield seen

    chat = nn.ChatCompletion("{ticket}")

    def fn(prompt: Variable) -> Variable:
        return ops.chat_completion(None, [{"role": "user", "content": prompt}])

    assert gradcheck(fn, wanting("Be brief.", "prompt"), observe=observe)
    assert gradcheck(fn, wanting("Be brief.", "prompt"), observe=observe, vary_inputs=False)
    assert chat.slots == ("ticket",)

    def deaf(ctx: Any, grad_out: Variable) -> Any:
        answer = ops.chat_completion(None, [{"role": "user", "content": "What is wrong?"}])
        return answer, answer

    message = found(broken(deaf).apply, observe=observe, vary_inputs=False)
    assert checks(message)[:2] == ["feedback reaches every gradient", "each input in its own request"]
    assert "got:      1 requests without it, the first of them 'What is wrong?'" in message


def test_inputs_are_one_variable_or_a_sequence_of_arguments() -> None:
    """A list of arguments is as good as a tuple, as in PyTorch; what is no Variable is handed on."""
    seen: list[Any] = []

    def fn(a: Variable, b: str = "", *rest: Any) -> Variable:
        seen.append((b, rest))
        return a + b

    for inputs in (A, (A,), [A], [A, "b", [1, {"c": None}]]):
        assert gradcheck(fn, inputs)
    assert seen[0] == ("", ())
    assert seen[-1] == ("b", ([1, {"c": None}],))


def test_one_variable_given_twice_is_one_input() -> None:
    """It is one leaf, and its feedback that of both places."""
    assert gradcheck(lambda a, b: a + b, (A, A))


def test_values_may_be_left_unchecked() -> None:
    """Where a rule shows the critic a rewritten input on purpose."""

    def rule(ctx: Any, grad_out: Variable) -> Any:
        answer = critic(f"Two texts, not shown. {grad_out.data}")
        return answer, answer

    assert checks(found(broken(rule).apply)) == ["each input in its own request", "hostile text in inputs"]
    assert gradcheck(broken(rule).apply, (wanting("a"), wanting("b")), check_values=False)


# the library's own operations are sound

MESSAGES = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Sort {ticket}."}]


def chained(ticket: Variable, prompt: Variable) -> Variable:
    first = ops.chat_completion(None, [{"role": "system", "content": prompt}, *MESSAGES[1:]], {"ticket": ticket})
    return ops.chat_completion(None, [{"role": "system", "content": prompt}, *MESSAGES[1:]], {"ticket": first + "!"})


def merged(*given: Variable) -> list[Variable]:
    answer = {"items": [{"text": "one", "numbers": [2, 1]}, {"text": "two", "numbers": [3]}]}
    return ops.reduce(given, max_items=2, model=FunctionModel(lambda request: answer))


def vmapped(prompt: Variable, tickets: Variable) -> Variable:
    def one(prompt: Variable, ticket: Variable) -> Variable:
        return ops.chat_completion(None, [{"role": "user", "content": prompt}], {"ticket": ticket})

    return func.vmap(one, in_dims=(None, 0))(prompt, tickets)


MODULE = nn.ChatCompletion("Sort {ticket}.", system="Be kind.")


def mapped_by_columns(first: Variable, second: Variable) -> Variable:
    return func.vmap(lambda a, b: ops.join([a, b], "/"))(first, second)


A, B, C = wanting("one", "first"), wanting("two", "second"), wanting("three", "third")
PROMPT = wanting("Sort {ticket}.", "prompt")
BATCH = wanting(["one", "two", "three"], "tickets")

SOUND: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "a rule of one's own": (Pair.apply, (A, B), {"symmetric": True}),
    "add": (ops.add, (A, B), {"symmetric": True}),
    "add a batch": (ops.add, (BATCH, A), {}),
    "add numbers": (ops.add, (wanting(1), wanting(2.5)), {"symmetric": True}),
    "sum": (lambda *given: ops.sum(given), (A, B, C), {"symmetric": True}),
    "join": (lambda given, by: ops.join(given, by), ([A, B, C], wanting(", ")), {"symmetric": [(0, 1), (1, 2)]}),
    "split": (lambda text: ops.split(text, "/"), wanting("a/b/c", "path"), {}),
    "format": (lambda text, **slots: ops.format(text, ticket=A), PROMPT, {}),
    "clone": (lambda text: text.clone(), A, {}),
    "reduce": (merged, (A, B, C), {}),
    "chat completion": (
        lambda system, ticket: ops.chat_completion(
            None, [{"role": "system", "content": [system, " Go on."]}, MESSAGES[1]], {"ticket": ticket}
        ),
        (A, B),
        {},
    ),
    "chat completion with a part": (
        lambda url: ops.chat_completion(
            None, [{"role": "user", "content": ["Look:", {"type": "image_url", "image_url": {"url": url}}]}]
        ),
        wanting("cat.png", "picture"),
        {},
    ),
    "chat completion of a batch": (lambda t, p: chained(t, p), (BATCH, A), {}),
    "two chat completions": (chained, (A, B), {}),
    "chat completion under vmap": (vmapped, (PROMPT, BATCH), {}),
    "chat module": (lambda ticket: nn.ChatCompletion("Sort {ticket}.", system="Be kind.")(ticket=ticket), A, {}),
    "chat module used side by side": (lambda *given: [MODULE(ticket=text) for text in given], (A, B, C), {}),
    "chat module used in a chain": (lambda ticket: MODULE(ticket=MODULE(ticket=ticket)), A, {}),
    "join batches": (lambda *given: ops.join(given), (BATCH, A, wanting(["x", "y", "z"], "others")), {}),
    "format a batch": (lambda text, ticket: ops.format(text, ticket=ticket), (PROMPT, BATCH), {}),
    "join under vmap": (mapped_by_columns, (BATCH, wanting(["x", "y", "z"], "others")), {}),
    "exact match": (lambda got: ops.exact_match_evaluator(got, "x"), A, {}),
    "exact match of a batch": (lambda got: ops.exact_match_evaluator(got, "x")[0], BATCH, {}),
    "deterministic": (
        lambda got: ops.deterministic_evaluator(got, "x", lambda a, b: (0, f"{a} is not {b}"), "equality"),
        A,
        {},
    ),
    "judge": (lambda got: ops.judge(got, "Is it fine?")[0], A, {}),
    "judge of a batch": (lambda got: ops.judge(got, "Is it fine?")[0], BATCH, {}),
    "judge with a scale": (
        lambda got: nn.Judge("Is it fine?", scale=(1, 5))(got),
        A,
        {"observe": functools.partial(observed, score=3)},
    ),
    "judge that is judged": (lambda rule: ops.judge("x", rule, eval_mode=False), wanting("Is it fine?", "rule"), {}),
    "judge by messages": (
        lambda got: ops.lm_judge_evaluator(None, [{"role": "user", "content": "Judge {prediction}"}], got)[0],
        A,
        {},
    ),
    "text loss": (lambda got: ops.text_loss(got, "Is it fine?"), A, {}),
    "text loss of a batch": (lambda got: ops.text_loss(got, "Is it fine?"), BATCH, {}),
    "a sum of losses": (
        lambda a, b: ops.sum([ops.exact_match_evaluator(a, "x")[0], ops.exact_match_evaluator(b, "x")[0]]),
        (A, B),
        {"symmetric": True},
    ),
}


@pytest.mark.parametrize("together", [1, 3])
@pytest.mark.parametrize("name", SOUND)
def test_the_librarys_own_operations_pass(name: str, together: int) -> None:
    """Every rule that ships is checked by the tool that ships, also where several examples share a question."""
    fn, inputs, options = SOUND[name]
    with ops.feedback_batch_size(together):
        assert gradcheck(fn, inputs, **options)


def test_feedback_that_went_to_the_wrong_case_of_a_shared_question_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check that holds when questions are shared is no weaker."""
    rule = ChatCompletion.backward_many
    monkeypatch.setattr(ChatCompletion, "backward_many", staticmethod(lambda ctxs, grads: rule(ctxs, grads)[::-1]))
    with ops.feedback_batch_size(3), pytest.raises(AutogradError, match="fan-out accumulates in order"):
        gradcheck(lambda ticket: MODULE(ticket=ticket), A)


class Half(tg.Function):
    """A score in, a score out; the examples below break its rule, which is sound."""

    @staticmethod
    def forward(ctx: Any, score: Variable) -> Variable:
        return Variable(score.data / 2, role="half")

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        return grad_out


@pytest.mark.parametrize("rule", [lambda ctx, g: g, lambda ctx, g: g.clone(), lambda ctx, g: g.data])
def test_a_rule_that_passes_the_start_of_a_pass_on(rule: Any) -> None:
    """A clone of it, or its text, is the start as well."""
    assert gradcheck(type("Sound", (Half,), {"backward": staticmethod(rule)}).apply, wanting(1.0))


def test_a_rule_that_loses_the_start_of_a_pass() -> None:
    """Words go through it; a loss in front of it would look satisfied, since the start has none."""
    lossy = type("Lossy", (Half,), {"backward": staticmethod(lambda ctx, g: str(g.data))})
    message = found(lossy.apply, wanting(1.0))
    assert "a pass begins at a number" in message
    assert "the start of a pass has no words" in message
