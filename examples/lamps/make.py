"""Draws the pictures of this example and writes its data; the same on every machine.

python examples/lamps/make.py
"""

import json
import random
from pathlib import Path

from textgrad_engine.testing import png

HERE = Path(__file__).parent
COLORS = {
    "red": (220, 30, 30),
    "green": (40, 180, 60),
    "yellow": (235, 215, 40),
    "blue": (40, 70, 220),
    "white": (245, 245, 245),
    "violet": (140, 40, 190),
    "orange": (245, 130, 20),
    "cyan": (40, 200, 220),
}
RULES = {
    "red": "stop",
    "green": "go",
    "yellow": "wait",
    "blue": "call",
    "white": "go",
    "violet": "stop",
    "orange": "call",
    "cyan": "wait",
}
SIZE = 12


def panel(color: str, chance: random.Random) -> bytes:
    """A lamp on a dark panel, never twice in the same shade at the same place."""
    red, green, blue = (min(255, max(0, part + chance.randint(-9, 9))) for part in COLORS[color])
    x, y, radius = chance.randint(4, 7), chance.randint(4, 7), chance.randint(2, 3)
    inside = [[(at - x) ** 2 + (row - y) ** 2 <= radius**2 for at in range(SIZE)] for row in range(SIZE)]
    return png([[(red, green, blue) if lit else (60, 60, 60) for lit in row] for row in inside])


def main() -> None:
    """Write the pictures and the three files that name them."""
    chance = random.Random(0)
    (HERE / "panels").mkdir(exist_ok=True)
    for split, count in (("train", 32), ("val", 24), ("test", 32)):
        lines = []
        for number in range(1, count + 1):
            color = list(COLORS)[number % len(COLORS)]
            name = f"panels/{split}-{number:02d}.png"
            (HERE / name).write_bytes(panel(color, chance))
            row = {"id": f"{split}-{number:02d}", "panel": name, "machine": f"press {chance.randint(1, 9)}"}
            lines.append(json.dumps({**row, "action": RULES[color]}) + "\n")
        (HERE / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
