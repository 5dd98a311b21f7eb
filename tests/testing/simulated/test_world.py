from collections import Counter

import pytest

from textgrad_engine.testing import simulated_task
from textgrad_engine.testing.simulated.groups import KINDS, Group
from textgrad_engine.testing.simulated.vocabulary import attributes_in, rules_in


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rules": 0}, "rules must be at least 1, got 0"),
        ({"distractors": 60}, "distractors must be from 0 to 46 beside 12 rules, got 60"),
        ({"rules": 5, "interactions": 3}, "raise rules to 6 or ask for at most 2 interactions"),
        ({"interactions": -1}, "interactions must be at least 0"),
        ({"interactions": ["rivals"]}, "a sequence of rival, pair, order, company; got \\['rivals'\\]"),
        ({"noise": 1.5}, "noise must be between 0 and 1, got 1.5"),
        ({"critic": -0.1}, "critic must be between 0 and 1"),
        ({"val": 0}, "val must be at least 1, got 0"),
    ],
)
def test_settings_that_make_no_task_are_refused(settings, message):
    """A wrong number is named with what would do, before anything is drawn."""
    with pytest.raises(ValueError, match=message):
        simulated_task(**settings)


def test_every_item_needs_at_most_one_rule_in_an_additive_task():
    """Additive means that no line's worth depends on another line."""
    task = simulated_task(seed=3)
    for row in [*task.train, *task.val, *task.test]:
        deciding = [name for name in attributes_in(row["parcel"]) if name in task.world.by_attribute]
        assert len(deciding) <= 1
        expected = task.world.by_attribute[deciding[0]].codes[0] if deciding else task.world.usual
        assert row["target"] == expected


def test_rules_are_uneven_and_the_splits_share_no_parcel():
    """Three to one between the most and the least frequent rule; ids and parcels are unique over all splits."""
    task = simulated_task(seed=1, train=400)
    shares = [group.share for group in task.world.groups]
    assert max(shares) / min(shares) == pytest.approx(3.0)
    rows = [*task.train, *task.val, *task.test]
    assert len({row["id"] for row in rows}) == len({row["parcel"] for row in rows}) == len(rows)


def test_distractors_go_with_deciding_attributes_more_often_than_without():
    """A distractor must look relevant, else no optimizer would ever fall for it."""
    task = simulated_task(seed=2, train=2000)
    for name, friend in task.world.distractors:
        seen = Counter((friend in has, name in has) for has in (attributes_in(row["parcel"]) for row in task.train))
        with_friend = seen[True, True] / (seen[True, True] + seen[True, False])
        without = seen[False, True] / (seen[False, True] + seen[False, False])
        assert with_friend > 2 * without > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_the_lines_of_a_group_interact_as_its_kind_says(kind):
    """Each kind is a trap for keeping whatever is better alone."""
    group = Group(kind, ("a",) if kind == "rival" else ("a", "b"), ("K1", "K1" if kind == "pair" else "K2"), "K9", 1.0)
    a, b = group.lines
    none, first, second = group.value({}), group.value(dict([a])), group.value(dict([b]))
    both, turned = group.value(dict([a, b])), group.value(dict([b, a]))
    best = group.value(dict(group.best))
    if kind == "rival":
        assert none < second < first == best
        assert both == second  # the later line about one attribute is in force
    elif kind == "pair":
        assert first < none < both == turned == best
        assert second < none
    elif kind == "order":
        assert none < min(first, second)
        assert max(first, second) < both == best
        assert turned < both
    else:
        assert none < first < both < second == best
        assert group.best == (b,)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("Parcels with glass get code K4.", [("glass", "K4")]),
        ("- glass -> K4", [("glass", "K4")]),
        ("* **Glass**: `K4`", [("glass", "K4")]),
        ("Use K4 (not K1) for anything with GLASS or wine", [("glass", "K4"), ("wine", "K4")]),
        ("glass gets K4 and Norway gets K2", [("glass", "K4"), ("Norway", "K2")]),
        ("Parcels with glass get K4 instead of K2, also when they go to Norway", [("glass", "K4")]),
        ("glassware is K4", []),
        ("The codes are K1, K2 and K3.", []),
        ("Be careful with glass.", []),
    ],
)
def test_rules_are_read_in_many_wordings(text, rules):
    """Proposals are words, and the model must understand what a reader would."""
    assert [(rule.attribute, rule.code) for rule in rules_in(text)] == rules
