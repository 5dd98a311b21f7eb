import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from textgrad_engine.llm.simulated.concept import QUEUES
from textgrad_engine.llm.simulated.rules import read_policy
from textgrad_engine.llm.simulated.task import decide

FOLDER = Path(__file__).parents[2] / "examples" / "tickets"
SPLITS = ("train", "val", "test")
RULES = """
Safety cases (smoke, fire, burns, shocks) go to trust before anything else.
When a bank is asked to take a payment back (chargeback, dispute), choose trust, whatever else the mail says.
All gift card matters are for account.
Trouble joining Wi-Fi or pairing belongs to account, not technical.
Customs duty questions: billing.
Anyone who wants to cancel or pause the subscription -> billing.
Items damaged on the way are handled by shipping, never returns.
Return labels and postage go to shipping.
A missing part or wrong item is for returns.
Price matching and price drops go to returns, not billing.
Login and password trouble goes to technical, not account.
Warranty and guarantee cases go to technical."""


def rows(split: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (FOLDER / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]


ALL = {split: rows(split) for split in SPLITS}
SEED = tomllib.loads((FOLDER / "config.toml").read_text(encoding="utf-8"))["program"]["system"]


def shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[start : start + 3]) for start in range(max(1, len(words) - 2))}


def accuracy(system: str, split: str) -> float:
    policy = read_policy(system)
    return sum(decide(policy, row["ticket"], 0).queue == row["queue"] for row in ALL[split]) / len(ALL[split])


@pytest.mark.parametrize("split", SPLITS)
def test_rows_are_well_formed(split):
    """Every row has an id, a ticket and one of the six queues."""
    for row in ALL[split]:
        assert list(row) == ["id", "ticket", "queue"]
        assert re.fullmatch(r"t\d{3}", row["id"])
        assert row["ticket"] == row["ticket"].strip() != ""
        assert row["queue"] in QUEUES


def test_there_are_enough_and_no_two_are_alike():
    """At least 240 tickets, and nothing in one split gives away something in another."""
    everything = [row for split in SPLITS for row in ALL[split]]
    assert len(everything) >= 240
    assert len({row["id"] for row in everything}) == len(everything)
    seen = [shingles(row["ticket"]) for row in everything]
    for position, mine in enumerate(seen):
        for other in range(position):
            assert len(mine & seen[other]) / len(mine | seen[other]) < 0.25, (everything[position], everything[other])


@pytest.mark.parametrize("split", SPLITS)
def test_every_split_has_the_same_mix(split):
    """No queue is rare anywhere, so a score on one split speaks for the others."""
    counts = Counter(row["queue"] for row in ALL[split])
    assert set(counts) == set(QUEUES)
    assert all(0.12 < count / len(ALL[split]) < 0.22 for count in counts.values())


@pytest.mark.parametrize("split", SPLITS)
def test_about_half_is_governed_by_house_rules(split):
    """The seed prompt gets the ordinary half right, the policy nearly everything (slips left out)."""
    assert 0.40 < accuracy(SEED, split) < 0.52
    assert accuracy(SEED + RULES, split) > 0.96


def test_the_tickets_are_as_varied_as_mail():
    """Short and long, quoted threads, several languages, shouting."""
    tickets = [row["ticket"] for split in SPLITS for row in ALL[split]]
    lengths = sorted(len(ticket.split()) for ticket in tickets)
    assert lengths[len(lengths) // 10] <= 14
    assert lengths[-len(lengths) // 10] >= 40
    assert sum(length > 120 for length in lengths) >= 10
    assert sum("\n>" in f"\n{ticket}" for ticket in tickets) >= 10
    words = (
        r"ich|und|nicht|bitte|danke|kann|je|vous|merci|mon|el|mi|lo|una|della|ho|graag|het|gracias|quiero|gruß|grüße"
    )
    foreign = re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    assert sum(bool(foreign.search(ticket)) for ticket in tickets) >= 80
    assert sum(ticket.isupper() for ticket in tickets) >= 2
