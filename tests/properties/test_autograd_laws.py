import asyncio
import threading
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

import textgrad_engine as tg
from textgrad_engine import ops
from textgrad_engine.autograd import grad

FEW = settings(max_examples=60, deadline=None)


@dataclass(frozen=True)
class Step:
    """One operation of a program: what it is, and which of the values before it are its inputs."""

    kind: str
    inputs: tuple[int, ...]
    patience: int
    silent: bool
    down: str


@dataclass(frozen=True)
class Program:
    leaves: tuple[bool, ...]
    steps: tuple[Step, ...]
    roots: tuple[int, ...]


class Parts(tg.Function):
    """Two outputs and one that is not differentiable; the inputs stand in nested containers."""

    @staticmethod
    def forward(ctx, parts):
        ctx.save_for_backward(*parts["all"])
        outs = tuple([tg.Variable(f"{name}{len(parts['all'])}") for name in ("head", "constant", "tail")])
        ctx.mark_non_differentiable(outs[1])
        return outs

    @staticmethod
    def backward(ctx, head, constant, tail):
        said = [*head.grad, *tail.grad]
        return {"all": [[item.data + f"/{n}" for item in said] for n, _ in enumerate(ctx.saved_variables)]}


def parts(*values):
    head, constant, tail = Parts.apply({"all": list(values)})
    assert not constant.requires_grad
    return ops.join([tail, constant, head])


OPERATIONS = {
    "add": lambda *values: values[0] + values[-1],
    "copy": lambda *values: values[0].clone(),
    "format": lambda *values: ops.format("{a} {b}", a=values[0], b=values[-1]),
    "join": lambda *values: ops.join(values, "+"),
    "parts": parts,
    "split": lambda *values: ops.join(ops.split(ops.join(values, "|"), "|")[::-1], "+"),
    "sum": lambda *values: ops.sum(values),
}


KINDS = ["ask", "ask", "now", "shared", *sorted(OPERATIONS)]


@st.composite
def programs(draw, kinds=KINDS):
    """Random graphs: asynchronous critics, immediate ones and plain operations, over leaves that may be constants."""
    leaves = draw(st.lists(st.booleans(), min_size=1, max_size=3).map(lambda flags: (True, *flags)))
    steps = []
    for number in range(draw(st.integers(1, 8))):
        size = len(leaves) + number
        steps.append(
            Step(
                draw(st.sampled_from(kinds)),
                tuple(draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=3))),
                draw(st.integers(0, 5)),
                draw(st.sampled_from([False] * 5 + [True])),
                draw(st.sampled_from(["", "", "", "rule", "forward"])),
            )
        )
    size = len(leaves) + len(steps)
    roots = draw(st.lists(st.integers(len(leaves), size - 1), min_size=1, max_size=3))
    return Program(tuple(leaves), tuple(steps), tuple(roots))


class Run:
    """A program that was run, with the questions that its backward passes asked."""

    def __init__(self, program, *, dispatched=True, patient=True, down=(), turned=False):
        self.program, self.asked = program, []
        self.down, self.turned = down, turned
        self._lock = threading.Lock()
        self.leaves = [tg.Variable(f"leaf {n}", f"leaf {n}", flag) for n, flag in enumerate(program.leaves)]
        self.values = list(self.leaves)
        rules = {"ask": self._rule(dispatched, patient), "now": self._rule(False, False)}
        rules["shared"] = type("Shared", (rules["now"],), {"backward_group": staticmethod(lambda ctx: "all")})
        for number, step in enumerate(program.steps):
            inputs = [self.values[index] for index in step.inputs]
            if step.kind in OPERATIONS:
                value = OPERATIONS[step.kind](*inputs)
            else:
                value = rules[step.kind].apply(f"n{number}", step, *inputs)
            self.values.append(value)
        self.roots = [self.values[index] for index in program.roots if self.values[index].requires_grad]

    def _rule(self, dispatched, patient):
        def note(ctx, said):
            with self._lock:
                self.asked.append(ctx.name)
            if ctx.down == "rule" and "rule" in self.down:
                raise ConnectionError(f"the rule of {ctx.name}")
            answer = "" if ctx.silent else f"{ctx.name}({said})"
            return (None, None, *[f"{answer}@{n}" if answer else "" for n in range(ctx.count)])

        def start(ctx, name, step, *inputs):
            ctx.name, ctx.silent, ctx.count, ctx.down = name, step.silent, len(inputs), step.down
            ctx.patience = 5 - step.patience if self.turned else step.patience
            return tg.Variable(name)

        async def wait(ctx):
            for _ in range(ctx.patience if patient else 0):  # turns of the loop, not time
                await asyncio.sleep(0)

        async def forward(ctx, name, step, *inputs):
            result = start(ctx, name, step, *inputs)
            await wait(ctx)
            if ctx.down == "forward" and "forward" in self.down:
                raise ConnectionError(f"the forward of {ctx.name}")
            return result

        async def backward(ctx, grad_out):
            await wait(ctx)
            return note(ctx, grad_out.data)

        def together(ctxs, grad_outs):
            return [note(ctx, grad_out.data) for ctx, (grad_out,) in zip(ctxs, grad_outs, strict=True)]

        if not dispatched:
            return rule(start, lambda ctx, grad_out: note(ctx, grad_out.data), together)
        return rule(forward, backward, together)

    def gradients(self):
        return [str(root_number) for root_number in range(len(self.roots))]

    def backward(self, **options):
        if self.roots:
            tg.backward(self.roots, self.gradients(), **options)
        return self

    def feedback(self):
        return [[item.data for item in leaf.grad] for leaf in self.leaves]


def rule(forward, backward, together):
    rules = {"forward": forward, "backward": backward, "backward_many": together}
    return type("Rule", (tg.Function,), {name: staticmethod(function) for name, function in rules.items()})


def blamed(program, **options):
    """The error that a program or its backward pass ends with; no leaf has changed, if there is one."""
    leaves = []
    try:
        run = Run(program, **options)
        leaves = run.leaves
        run.backward()
    except ConnectionError as error:
        assert not any(leaf.grad for leaf in leaves)
        return str(error)
    return None


@FEW
@given(programs())
def test_feedback_does_not_depend_on_when_anything_finishes(program):
    """Shuffled completion, immediate completion and no concurrency at all give the same feedback in the same order."""
    shuffled = Run(program).backward()
    quick = Run(program, patient=False).backward()
    plain = Run(program, dispatched=False).backward()
    assert shuffled.feedback() == quick.feedback() == plain.feedback()
    assert sorted(shuffled.asked) == sorted(plain.asked)


@FEW
@given(programs())
def test_each_node_is_asked_at_most_once_and_only_when_it_matters(program):
    """Once per node; never with an empty gradient, never where nothing wants the answer."""
    run = Run(program).backward()
    assert len(run.asked) == len(set(run.asked))
    wanting = {f"n{n}" for n, value in enumerate(run.values[len(run.leaves) :]) if value.requires_grad}
    assert set(run.asked) <= wanting
    for leaf, items in zip(run.leaves, run.feedback(), strict=True):
        assert leaf.requires_grad or items == []
        assert all(items)
        assert all("()" not in item for item in items)


@FEW
@given(programs(), st.data())
def test_inputs_give_a_part_of_the_whole(program, data):
    """The same feedback for those leaves, none for others, and no question that the whole pass would not ask."""
    whole, part = Run(program).backward(), Run(program)
    wanted = [n for n, flag in enumerate(program.leaves) if flag and data.draw(st.booleans())]
    if not wanted:
        return
    part.backward(inputs=[part.leaves[n] for n in wanted])
    for n, items in enumerate(part.feedback()):
        assert items == (whole.feedback()[n] if n in wanted else [])
    assert set(part.asked) <= set(whole.asked)


@FEW
@given(programs())
def test_grad_finds_what_backward_accumulates(program):
    """And leaves .grad alone; what was not used is None."""
    whole, run = Run(program).backward(), Run(program)
    if not run.roots:
        return
    wanting = [leaf for leaf in run.leaves if leaf.requires_grad]
    found = grad(run.roots, wanting, run.gradients(), allow_unused=True)
    expected = [items for leaf, items in zip(whole.leaves, whole.feedback(), strict=True) if leaf.requires_grad]
    assert [[item.data for item in items or []] for items in found] == expected
    assert run.feedback() == [[] for _ in run.leaves]


@FEW
@given(programs(), st.integers(0, 7))
def test_a_pass_that_failed_at_any_question_counts_for_nothing(program, number):
    """Whichever question fails, no leaf changes, and the retried pass equals one that never failed."""
    whole, run = Run(program).backward(), Run(program)
    if number >= len(whole.asked):
        return
    down, lock = {whole.asked[number]}, run._lock

    class Failing:
        def __enter__(self):
            lock.acquire()

        def __exit__(self, *exc):
            lock.release()
            if run.asked[-1] in down:
                raise ConnectionError("down")

    run._lock = Failing()
    try:
        run.backward()
    except ConnectionError:
        pass
    else:
        raise AssertionError("the question was not asked")
    assert run.feedback() == [[] for _ in run.leaves]
    down.clear()
    assert run.backward().feedback() == whole.feedback()


@settings(FEW, max_examples=100)
@given(programs(["ask", "ask", "now", "shared", "join"]))
def test_which_failure_is_blamed_does_not_depend_on_when_anything_fails(program):
    """Of several forwards and rules that fail, at any order of completion."""
    both, rules = ("forward", "rule"), ("rule",)
    orders = [{"turned": False}, {"turned": True}, {"patient": False}]
    assert len({blamed(program, down=both, **order) for order in orders}) == 1
    assert len({blamed(program, down=rules, **order) for order in [*orders, {"dispatched": False}]}) == 1


@FEW
@given(programs(), st.integers(1, 3))
def test_retained_graphs_give_the_same_again(program, times):
    """n passes append n times the same feedback, with or without a graph of its own."""
    once, run = Run(program).backward(), Run(program)
    for number in range(times):
        run.backward(retain_graph=True, create_graph=number % 2 == 1)
    assert run.feedback() == [items * times for items in once.feedback()]
