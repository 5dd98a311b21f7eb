"""A model that sees: as program, critic and optimizer it decodes the pictures that a request holds, and nothing else.

It knows what most people would say of a red, a green and a yellow lamp. Whatever else the plant has agreed on it does
only if the prompt says so. As critic it names the lamp of a case; where it is not shown the picture, it cannot.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from textgrad_engine.llm import Request
from textgrad_engine.testing import Answer, FunctionModel, pixels_of

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
OBVIOUS = {"red": "stop", "green": "go", "yellow": "wait"}
RULE = re.compile(r"The (\w+) lamp means (\w+)\.")


def seen(part: Mapping[str, Any]) -> str:
    """The color of the lamp in a picture: of what is not the panel."""
    lit = Counter(color for row in pixels_of(part) for color in row if color != (60, 60, 60))
    lamp = lit.most_common(1)[0][0]
    return min(COLORS, key=lambda name: sum((a - b) ** 2 for a, b in zip(COLORS[name], lamp)))


def images(request: Request) -> list[Mapping[str, Any]]:
    """The pictures in a request, in order."""
    content = request.messages[-1].content
    return [] if isinstance(content, str) else [part for part in content if part["type"] == "image_url"]


def answer(request: Request) -> str:
    """What the operator does, by the rules in the prompt, else by common sense."""
    rules: dict[str, str] = {**OBVIOUS, **dict(RULE.findall(request.messages[0].text))}
    return rules.get(seen(images(request)[0]), "wait")


def feedback(request: Request) -> Answer:
    """For each case which lamp it was, and what that means, as far as the picture is shown."""
    shown, text = images(request), request.messages[-1].text
    tags = dict(re.findall(r"^- (<image_\d+-\w{8}/>) stands for image (\d+)$", text, re.MULTILINE))
    told = {}
    for number, case in enumerate(re.split(r"\n## Case \d+\n", text)[1:], 1):
        wanted = re.findall(r"Expected exactly `(\w+)`", case)[0]
        lamps = [seen(shown[int(place) - 1]) for tag, place in tags.items() if tag in case]
        lesson = f"The {lamps[0]} lamp means {wanted}." if lamps else f"Some lamps mean {wanted}."
        told[f"case_{number}"] = {"system": lesson}
    return told


def edits(request: Request) -> Answer:
    """A line for each lesson that the text does not have yet."""
    text, _, said = request.messages[-1].text.partition("Feedback on it")
    items = re.findall(r'(?s)\[(\d+)\].*?\nFeedback:(?: "|\n<\S+>\n)(.*?)(?:"\n|\n</)', said)
    lessons = dict.fromkeys(lesson for _, lesson in items if lesson not in text)
    edit = {"op": "add", "line": 1, "reason": "Operators do what the plant has agreed on."}
    by = {lesson: [int(number) for number, item in items if item == lesson] for lesson in lessons}
    return {"edits": [{**edit, "text": lesson, "feedback": by[lesson]} for lesson in by]}


ROLES: dict[str, Callable[[Request], Answer]] = {"forward": answer, "backward": feedback, "optimizer": edits}
model = FunctionModel(lambda request: ROLES[request.purpose](request), name="lamps")
