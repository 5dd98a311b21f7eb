import asyncio
import itertools

import pytest

from textgrad_engine.llm import GenerateConfig, Message, Request, ResponseFormat
from textgrad_engine.testing import simulated_task
from textgrad_engine.testing.simulated.instructions import lines_of, read_instructions
from textgrad_engine.testing.simulated.lessons import lessons_in
from textgrad_engine.testing.simulated.vocabulary import CODES


def answer(task, prompt, row):
    messages = (Message(role="system", content=prompt), Message(role="user", content=row["parcel"]))
    return asyncio.run(task.model.complete(Request(messages=messages))).text


def neighbours(task):
    """Every prompt that is one line away from the optimum: a line less, more, other, or two of them swapped."""
    lines = task.optimum_prompt.split("\n")
    world = task.world
    names = [*world.by_attribute, *[name for name, _ in world.distractors], *world.fillers]
    rules = [f"{name} -> {code}" for name in names for code in CODES]
    for place in range(len(lines)):
        yield [*lines[:place], *lines[place + 1 :]]
        yield from ([*lines[:place], rule, *lines[place + 1 :]] for rule in rules)
    yield from ([*lines[:4], rule, *lines[4:]] for rule in rules)
    yield from ([*lines, rule] for rule in rules)
    for one, other in itertools.combinations(range(len(lines)), 2):
        swapped = list(lines)
        swapped[one], swapped[other] = lines[other], lines[one]
        yield swapped


def test_a_notebook_shows_its_prompts_and_not_its_rows():
    """These are thousands of characters, and the world and its model as many again."""
    task = simulated_task(rules=4)
    assert len(repr(task)) < 2_000
    assert task.seed_prompt[:20] in repr(task)


def test_without_rows_there_is_no_expectation():
    """An empty set has no mean, and says so instead of dividing by zero."""
    task = simulated_task(rules=2)
    with pytest.raises(ValueError, match="rows is empty"):
        task.expected(task.seed_prompt, [])


@pytest.mark.parametrize("interactions", [0, 4])
def test_no_single_change_improves_the_optimum(interactions):
    """The optimum is one: no line added, removed, replaced or swapped makes the expected accuracy higher."""
    task = simulated_task(8, interactions=interactions, seed=5, test=30)
    assert task.expected(task.optimum_prompt) == task.optimum
    assert max(task.expected("\n".join(lines)) for lines in neighbours(task)) <= task.optimum + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_the_way_from_the_seed_prompt_to_the_optimum_is_long(seed):
    """A seed prompt that is nearly right, or an optimum that is hardly better, would measure nothing."""
    for interactions in (0, 4, 6):
        task = simulated_task(seed=seed, interactions=interactions)
        assert 0.25 <= task.expected(task.seed_prompt) <= 0.4
        assert task.optimum >= (0.78 if interactions else 0.95)
        assert task.progress(task.seed_prompt) == 0
        assert task.progress(task.optimum_prompt) == 1


def test_a_line_about_a_distractor_hurts():
    """What decides nothing draws parcels away from what does, whatever code it is given."""
    task = simulated_task(seed=4)
    for name, _ in task.world.distractors:
        assert max(task.expected(f"{task.optimum_prompt}\n{name} -> {code}") for code in CODES) < task.optimum - 0.03


def test_length_costs_whatever_the_layout():
    """Four lines beyond the optimum are free; each further one costs 1.5 points, bland, repeated or in one line."""
    task = simulated_task(3, seed=1)
    bland = [f"Mind point {number}." for number in range(14)]
    free = task.expected("\n".join([task.optimum_prompt, *bland[:4]]))
    assert free == task.optimum
    for separator in ("\n", "; ", " "):
        longer = task.expected(f"{task.optimum_prompt}\n{separator.join(bland)}")
        assert free - longer == pytest.approx(0.15, abs=0.02)
    assert lines_of("glass, wine and tea -> K2") == 3
    assert lines_of("word " * 81) == 3


def test_of_two_lines_about_one_attribute_the_later_counts():
    """What is decided is also documented: the last statement wins, at its place."""
    assert read_instructions("glass -> K1\nwine -> K2\nGlass gets K3.").rules == (("wine", "K2"), ("glass", "K3"))


def test_solved_examples_are_no_rules_and_teach_a_part():
    """An example in a prompt names all attributes of a parcel; it must not be read as a rule about each of them."""
    task = simulated_task(3, seed=1)
    row = next(row for row in task.train if row["target"] != task.world.usual)
    prompt = f"{task.seed_prompt}\nExample 1\nparcel: {row['parcel']}\nRight answer: {row['target']}"
    assert read_instructions(prompt).rules == ()
    assert lines_of(prompt) == lines_of(task.seed_prompt) + 1
    assert task.expected(task.seed_prompt) < task.expected(prompt) < task.optimum


def test_the_expected_accuracy_is_what_measuring_gives():
    """The exact figure and the mean over many wordings are the same thing."""
    task = simulated_task(6, noise=0.2, interactions=2, seed=7, test=60)
    for prompt in (task.seed_prompt, task.optimum_prompt, task.optimum_prompt.replace("only", "please")):
        wordings = [prompt.replace("parcel its", f"parcel no. {number} its") for number in range(60)]
        measured = [
            task.model.task.answer(wording, row["parcel"]) == row["target"] for wording in wordings for row in task.test
        ]
        assert sum(measured) / len(measured) == pytest.approx(task.expected(prompt), abs=0.025)


def test_half_of_the_noise_belongs_to_the_parcel():
    """Some parcels go wrong with every wording; the rest of the slips move when a word changes."""
    task = simulated_task(3, noise=0.3, seed=2, test=400)
    wordings = [task.optimum_prompt.replace("You", f"You, no. {number},") for number in range(8)]
    wrong = [
        sum(task.model.task.answer(wording, row["parcel"]) != row["target"] for wording in wordings)
        for row in task.test
    ]
    assert 0.10 < sum(count == 8 for count in wrong) / 400 < 0.20
    assert 0.10 < sum(count / 8 for count in wrong if count < 8) / sum(count < 8 for count in wrong) < 0.20


def test_a_flat_task_is_flat():
    """Nothing that a prompt says changes how often the answer is right; every wording draws anew."""
    task = simulated_task(flat=True, seed=1)
    assert task.optimum == task.expected(task.seed_prompt) == task.expected("glass -> K4") == 0.5
    assert task.progress("glass -> K4") == 0
    rows = [*task.train, *task.val, *task.test]
    answers = {prompt: [answer(task, prompt, row) for row in rows] for prompt in (task.seed_prompt, "a", "b")}
    for given in answers.values():
        right = sum(one == row["target"] for one, row in zip(given, rows)) / len(rows)
        assert 0.42 < right < 0.58
    assert len({tuple(given) for given in answers.values()}) == 3


@pytest.mark.parametrize("seed", range(3))
def test_appending_everything_does_not_win(seed):
    """Who adds each rule that feedback asks for ends far from the optimum when rules interact."""
    task = simulated_task(seed=seed, interactions=6)
    prompt = task.seed_prompt
    for start in range(0, len(task.train), 16):
        lines = []
        for row in task.train[start : start + 16]:
            got = task.model.task.answer(prompt, row["parcel"])
            if got != row["target"]:
                said = lessons_in(task.model.critic.say(prompt, row["parcel"], row["target"], got))
                lines += [f"{lesson.attribute} -> {lesson.other}" for lesson in said if lesson.kind == "rule"]
        prompt = "\n".join([prompt, *dict.fromkeys(lines)])
    assert task.progress(prompt) < 0.75


def test_the_same_settings_give_the_same_task():
    """No state and no global random: a second task is equal to the first, and another seed gives another world."""
    one, two, other = simulated_task(seed=1), simulated_task(seed=1), simulated_task(seed=2)
    assert (one.train, one.optimum_prompt) == (two.train, two.optimum_prompt)
    assert one.optimum_prompt != other.optimum_prompt


def test_a_schema_is_obeyed():
    """Where a program wants structured output, the code comes in the place that the schema has."""
    task = simulated_task(6, seed=1, noise=0.0)
    right = next(row for row in task.train if row["target"] == task.world.usual)
    schema = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    config = GenerateConfig(response_format=ResponseFormat(name="code", json_schema=schema))
    messages = (Message(role="system", content=task.seed_prompt), Message(role="user", content=right["parcel"]))
    completion = asyncio.run(task.model.complete(Request(messages=messages, config=config)))
    assert completion.text == f'{{"code": "{task.world.usual}"}}'
