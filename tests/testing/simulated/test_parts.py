import asyncio

import pytest

import textgrad_engine as tg
from textgrad_engine import ops, optim, templates
from textgrad_engine.llm import GenerateConfig, Message, Request, ResponseFormat, repeat
from textgrad_engine.llm.simulated.reading import Item, Task
from textgrad_engine.optim.patch import REWRITE_SCHEMA
from textgrad_engine.testing import simulated_task
from textgrad_engine.testing.simulated.groups import KINDS
from textgrad_engine.testing.simulated.lessons import Lesson, lessons_in, rejected
from textgrad_engine.testing.simulated.proposer import BLAND, Proposer
from textgrad_engine.testing.simulated.reducer import reduce_items
from textgrad_engine.testing.simulated.vocabulary import attributes_in

REWRITE = ResponseFormat(name="rewrite", json_schema=REWRITE_SCHEMA)
TRIED = templates.load("optimizer_scores").render(
    role="prompt",
    tried=[{"text": "Answer with the code only.", "score": "30", "of": "100"}],
    demos=[{"inputs": [["parcel", "Parcel: glass, tea, wine, 3.1 kg, for Ada Berg"]], "answer": "K4", "part": False}],
    constraints=[],
    problem="",
    refused="",
)
CAREFUL = Proposer(seed=0, sloppiness=0.0)


def asked(lines, *feedback, history=(), max_edits=4):
    items = tuple(Item(number, 1, text) for number, text in enumerate(feedback, 1))
    return Task(tuple(lines), items, tuple(history), max_edits, "")


def failing(task, prompt):
    for row in task.train:
        got = task.model.task.answer(prompt, row["parcel"])
        if got != row["target"]:
            yield row, task.model.critic.say(prompt, row["parcel"], row["target"], got)


def train(task, **settings):
    program = task.program()
    optimizer = optim.TGD(program.parameters(), **settings)
    trainer = tg.Trainer(2, batch_size=16, feedback_batch_size=4)
    with tg.use_models(forward=task.model):
        return trainer.fit(program, task.loss, optimizer, task.train, task.val)


def test_the_critic_names_what_decides_as_often_as_it_should():
    """With quality 1 every advice on a missing rule is the rule; with 0 none is."""
    for quality in (1.0, 0.0):
        task = simulated_task(seed=1, critic=quality, noise=0.0)
        for row, said in failing(task, task.seed_prompt):
            (name,) = [name for name in attributes_in(row["parcel"]) if name in task.world.by_attribute]
            right = [(lesson.attribute, lesson.other) for lesson in lessons_in(said)] == [(name, row["target"])]
            assert right == (quality == 1.0)


def test_the_critic_speaks_only_of_what_it_is_shown():
    """Every attribute in its sentence is in the parcel or in the prompt."""
    task = simulated_task(seed=2, interactions=4, critic=0.6)
    for prompt in (task.seed_prompt, task.optimum_prompt, f"{task.optimum_prompt}\n{task.world.fillers[0]} -> K1"):
        for row, said in failing(task, prompt):
            assert set(attributes_in(said)) <= {*attributes_in(row["parcel"]), *attributes_in(prompt)}


@pytest.mark.parametrize("kind", KINDS)
def test_following_the_critic_leads_out_of_each_trap(kind):
    """What rules do to each other can be found out: some case says it."""
    task = simulated_task(4, interactions=[kind], seed=1, critic=1.0, noise=0.0, train=400)
    group = next(group for group in task.world.groups if group.kind == kind)
    (a, first), (b, second) = group.lines
    stated = {
        "rival": [(a, second)],
        "pair": [(a, first)],
        "order": [(b, second), (a, first)],
        "company": [(a, first), (b, second)],
    }[kind]
    prompt = "\n".join([task.seed_prompt, *[f"{name} -> {code}" for name, code in stated]])
    said = {lesson for _, text in failing(task, prompt) for lesson in lessons_in(text)}
    wanted = {
        "rival": ("rule", a, first),
        "pair": ("rule", b, second),
        "order": ("order", a, b),
        "company": ("remove", a, ""),
    }[kind]
    assert wanted in {(lesson.kind, lesson.attribute, lesson.other) for lesson in said}


def test_a_line_that_misleads_is_blamed():
    """A critic that sees a distractor's line decide says that the line must go."""
    task = simulated_task(seed=3, critic=1.0, noise=0.0)
    name = task.world.distractors[0][0]
    prompt = f"{task.optimum_prompt}\n{name} -> {task.world.usual}"
    said = {lesson for _, text in failing(task, prompt) for lesson in lessons_in(text)}
    assert {(lesson.kind, lesson.attribute) for lesson in said} == {("remove", name)}


def test_edits_follow_the_support_and_respect_the_limit():
    """The lesson that most items share comes first; nothing beyond the limit; an edit names its items."""
    task = asked(["Sort."], "glass -> K1", "Norway -> K2", "Parcels to Norway get K2.", "wine -> K3", max_edits=2)
    edits = CAREFUL.patch(task)["edits"]
    assert [attributes_in(edit["text"]) for edit in edits] == [("Norway",), ("glass",)]
    assert [edit["feedback"] for edit in edits] == [[2, 3], [1]]


def test_each_lesson_has_its_edit():
    """Replace what is wrong, take out what does harm, move what is in the wrong place."""
    lines = ["Code only.", "glass -> K1", "wine -> K2", "tea -> K3"]
    replaced = CAREFUL.patch(asked(lines, "glass -> K5"))["edits"]
    assert [(edit["op"], edit["line"]) for edit in replaced] == [("replace", 2)]
    removed = CAREFUL.patch(asked(lines, "The line about wine does harm here; drop it or change it."))["edits"]
    assert [(edit["op"], edit["line"]) for edit in removed] == [("remove", 3)]
    moved = CAREFUL.patch(asked(lines, "The line about tea must come before the line about glass."))["edits"]
    assert [(edit["op"], edit["line"], edit["text"]) for edit in moved] == [("remove", 4, ""), ("add", 1, "tea -> K3")]


def test_a_line_with_other_rules_loses_one_of_them_only():
    """Taking out a rule must not take its neighbours along."""
    edits = CAREFUL.patch(asked(["glass -> K1; wine -> K2"], "Remove the line about glass."))["edits"]
    assert [(edit["op"], edit["text"]) for edit in edits] == [("replace", "wine -> K2")]


def test_what_was_rejected_is_mostly_not_proposed_again():
    """The history in a request is consulted."""
    repeated = 0
    for number in range(40):
        history = (f"added 'glass -> K1' — taken back: score 0.{number:02} -> 0.2",)
        edits = CAREFUL.patch(asked(["Sort."], "glass -> K1", "wine -> K2", history=history))["edits"]
        assert any("wine" in edit["text"] for edit in edits)
        repeated += any("glass" in edit["text"] for edit in edits)
    assert 0 < repeated < 15


def test_a_removal_that_was_rejected_is_not_the_rule_that_was_rejected():
    """History tells of lines that were removed or replaced: what failed there is the removal, or the new line."""
    past = [
        "removed 'glass -> K1' — taken back: score 0.5 -> 0.4",
        "replaced 'wine -> K2' by 'wine -> K3' — refused: no better",
        "added 'tea -> K4' — kept: score 0.5 -> 0.6",
    ]
    assert rejected(past) == {Lesson("remove", "glass"), Lesson("rule", "wine", "K3")}


def test_further_samples_differ_and_the_first_one_stands():
    """Asking again at a temperature gives other answers; the first sample is what is said without a `repeat`."""
    task = simulated_task(seed=1)
    request = Request(messages=(Message(role="user", content=TRIED),), config=GenerateConfig(response_format=REWRITE))

    def sample(number):
        with repeat(number):
            return asyncio.run(task.model.complete(request)).text

    assert sample(0) == asyncio.run(task.model.complete(request)).text
    assert len({sample(number) for number in range(8)}) > 3


def test_tidying_takes_out_what_says_nothing_new():
    """The words of prompts/tidy.md are understood: repeated and bland lines go, all else stays."""
    lines = ["Code only.", "glass -> K1", BLAND[0], "Parcels with glass get code K1.", "wine -> K2"]
    said = templates.load("tidy").render()
    edits = CAREFUL.patch(asked(lines, said))["edits"]
    assert [(edit["op"], edit["line"]) for edit in edits] == [("remove", 3), ("remove", 4)]
    assert CAREFUL.patch(asked(["Code only.", "glass -> K1"], said))["edits"] == []


def test_a_sloppy_proposer_spoils_at_the_rate_it_is_given():
    """Sloppiness is a knob: 0 never changes a proposal, 1 always does."""
    tasks = [asked(["Code only.", "tea -> K1"], f"glass -> K{n}", "wine -> K2") for n in range(1, 10)]
    for task in tasks:
        plain = CAREFUL.rewrite(task)["text"]
        assert Proposer(0, 1.0).rewrite(task)["text"] != plain
        assert Proposer(0, 0.0).rewrite(task)["text"] == plain


def test_merged_feedback_names_every_item():
    """The contract of the reduce request: few pieces, each number once at least."""
    items = [Item(n, 1, text) for n, text in enumerate(["glass -> K1", "wine -> K2", "Glass: K1", "Hm.", "tea: K3"], 1)]
    for limit in (1, 2, 3, 4):
        pieces = reduce_items(items, limit)["items"]
        assert len(pieces) <= limit
        assert sorted(number for piece in pieces for number in piece["numbers"]) == [1, 2, 3, 4, 5]


def test_the_simulation_reads_the_library_s_own_requests():
    """Driven through nn and optim, feedback becomes rules in the prompt: additive training climbs clearly."""
    task = simulated_task(seed=0)
    result = train(task)
    assert task.progress(result.best["system"]) > 0.8
    assert result.best_val.mean > result.seed_val.mean + 0.4


def test_rewriting_reads_the_library_s_own_requests():
    """The rewrite prompt is read as well as the patch prompt."""
    task = simulated_task(6, seed=1)
    assert task.progress(train(task, mode="rewrite").best["system"]) > 0.6


def test_without_feedback_there_is_no_progress():
    """The control that withholds feedback gets bland lines only."""
    task = simulated_task(6, seed=1, train=32, val=32)
    assert task.progress(train(task, use_feedback=False).best["system"]) <= 0.05


def test_merging_feedback_reads_the_library_s_own_request():
    """`ops.reduce` accepts what the simulation answers at once."""
    task = simulated_task(3)
    pieces = ["glass -> K1", "wine -> K2", "Glass means K1.", "Look closer."]
    merged = ops.reduce(pieces, 2, task.model)
    assert len(merged) == 2


def test_nothing_depends_on_the_order_of_calls():
    """The same run at concurrency 1, 64 and without a limit ends with the same text."""
    task = simulated_task(6, interactions=2, seed=9, train=32, val=32)
    found = []
    for concurrency in (1, 64, None):
        program = task.program()
        trainer = tg.Trainer(1, batch_size=16, concurrency=concurrency)
        with tg.use_models(forward=task.model):
            result = trainer.fit(program, task.loss, optim.TGD(program.parameters()), task.train, task.val)
        found.append((result.best, result.best_val.scores))
    assert found[0][0] != result.seed
    assert found[0] == found[1] == found[2]
