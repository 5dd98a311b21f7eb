import pytest

import textgrad_engine as tg
from textgrad_engine import optim
from textgrad_engine.testing import simulated_task
from textgrad_engine.testing.simulated.vocabulary import SIGN


def feedback_by_prompt(task, rows):
    program = task.program()
    with tg.use_models(forward=task.model):
        losses = [task.loss(program(row["note"]), row["target"]) for row in rows]
        tg.backward(losses)
    return [str(item.data) for item in program.reader.system.grad], [
        str(item.data) for item in program.coder.system.grad
    ]


def test_prompts_of_another_task_are_refused():
    """A text without a name, or a wrong name, would silently score something else."""
    task = simulated_task(3, parameters=2)
    with pytest.raises(ValueError, match=r"has the prompts reader\.system, coder\.system, got system"):
        task.expected("a prompt")
    with pytest.raises(ValueError, match="parameters must be 1 or 2, got 3"):
        simulated_task(3, parameters=3)


def test_the_best_prompts_explain_every_sign_that_decides():
    """Both prompts are needed: with one of them at its best, a part of the way is left."""
    task = simulated_task(6, parameters=2, seed=1)
    only = [{**task.seed_prompts, name: text} for name, text in task.optimum_prompts.items()]
    assert task.expected(only[0]) == task.expected(task.seed_prompts)
    assert task.expected(task.seed_prompts) < task.expected(only[1]) < task.optimum
    assert task.optimum > 0.95


def test_feedback_goes_to_the_prompt_that_is_at_fault():
    """A sign that hides what decides is the reader's fault alone, every other failure the coder's alone."""
    task = simulated_task(6, parameters=2, seed=2, critic=1.0, noise=0.0)
    needy = [row for row in task.train if row["target"] != task.world.usual]
    hidden = [row for row in needy if SIGN.search(row["note"])]
    plain = [row for row in needy if not SIGN.search(row["note"])]
    reader, coder = feedback_by_prompt(task, hidden[:4])
    assert len(reader) == 4
    assert all(SIGN.search(text) for text in reader)
    assert coder == []
    reader, coder = feedback_by_prompt(task, plain[:4])
    assert reader == []
    assert len(coder) == 4


def test_training_improves_both_prompts():
    """The chain of two critics and two proposals works through the library's own requests."""
    task = simulated_task(4, parameters=2, seed=1, train=48, val=48)
    program = task.program()
    with tg.use_models(forward=task.model):
        trainer = tg.Trainer(4, batch_size=16, feedback_batch_size=4)
        result = trainer.fit(program, task.loss, optim.TGD(program.parameters()), task.train, task.val)
    assert task.progress(result.best) > 0.7
    assert all(result.best[name] != text for name, text in task.seed_prompts.items())


def test_a_reader_that_is_too_long_loses_what_it_explains():
    """Length costs in both prompts, and the expected accuracy says how much."""
    task = simulated_task(4, parameters=2, seed=1)
    padded = task.optimum_prompts["reader.system"] + "\nMind this." * 14
    assert task.expected({**task.optimum_prompts, "reader.system": padded}) < task.optimum - 0.02
