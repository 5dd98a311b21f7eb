"""How many objects a call leaves to the garbage collector, which takes time again and again for each that stays."""

import gc
import threading

import pytest

import textgrad_engine as tg
from textgrad_engine import dispatch, nn, ops
from textgrad_engine.llm import Completion

CALLS = 2000


class Instant:
    """A model in this process that answers at once."""

    name = "instant"
    free = True

    async def complete(self, request):
        return Completion(text='{"case_1": {"system": "shorter"}}' if request.purpose == "backward" else "answer")


class Count:
    """Objects that the collector looks at, for each call, since the last time it was asked."""

    def __init__(self):
        self.before = 0
        self()

    def __call__(self):
        now = len(gc.get_objects())
        self.before, more = now, now - self.before
        return more / CALLS


@pytest.fixture
def count():
    """Counts while nothing is collected, so that the numbers are the same in every run."""
    with tg.use_models(forward=Instant()):
        prompt = nn.Parameter("Answer.", role="system prompt")
        for _ in range(100):  # contexts of other Functions, with other attributes
            ops.join([prompt, "!"])
        tg.backward(questions(nn.ChatCompletion("{question}", system=prompt)), ["wrong"] * CALLS)  # fills the caches
        gc.collect()
        gc.disable()
        yield Count()
        gc.enable()


def questions(chat):
    return [chat(question=f"question {number}") for number in range(CALLS)]


def test_a_call_leaves_few_objects(count):
    """Every 700 objects more are a collection of the youngest, and after some 120 of these everything is looked at."""
    prompt = nn.Parameter("Answer.", role="system prompt")
    chat = nn.ChatCompletion("{question}", system=prompt)
    answers = questions(chat)
    assert [answer.data for answer in answers] == ["answer"] * CALLS
    # The answer and the call that gives it, what that gave; the node, a weak reference to it, the context; what is
    # saved, and the stand-in for the answer in it.
    forward = count()
    assert forward <= 8.5
    at_the_end = []
    prompt.register_hook(lambda feedback: at_the_end.append(count()))
    tg.backward(answers, ["wrong"] * CALLS)
    # The feedback that it begins with, the visit of the node; what the critic said, its source, what that names, and
    # the entry for it at the prompt. The call is gone, and what it gave. (From which pass on a tuple is counted differs
    # between versions of Python; the halves are for what others make meanwhile, such as a plugin that keeps records.)
    assert forward + at_the_end[0] <= 13.5
    # The pass is over: visit and entry are gone; context, saved values, stand-in, weak reference.
    assert count() <= -5.5
    assert len(prompt.grad) == CALLS


def test_a_call_that_waits_for_its_turn_holds_few_objects(count):
    """Of a burst many lie in the queue, and a collection of the youngest comes the more often, the more each holds."""
    prompt = nn.Parameter("Answer.", role="system prompt")
    chat = nn.ChatCompletion("{question}", system=prompt)
    busy, go_on = threading.Event(), threading.Event()
    dispatch.call_soon(lambda: (busy.set(), go_on.wait(5)))
    busy.wait(5)
    count()
    answers = questions(chat)
    waiting = count()
    go_on.set()
    assert [answer.data for answer in answers] == ["answer"] * CALLS
    # Without what it gives, seven as in the end; and the context variables, the forward, its arguments, the prompt as
    # it is now, and the outputs.
    assert waiting <= 12.5
