"""Programs with parts, for tests of what they are made of."""

from __future__ import annotations

from typing import Any

from textgrad_engine import Variable, nn


class Leaf(nn.Module):
    def __init__(self, text: str = "text") -> None:
        super().__init__()
        self.prompt = nn.Parameter(text, role="prompt")

    def forward(self, value: Any) -> Any:
        return self.prompt + value


class Tree(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Parameter("head", role="head", requires_grad=False)
        self.left, self.right = Leaf("left"), Leaf("right")
        self.register_buffer("memory", Variable("nothing yet", role="memory"))


class Pair(nn.Module):
    """A part under two names, or two parts."""

    def __init__(self, *, tied: bool) -> None:
        super().__init__()
        self.a = Leaf("text")
        self.b = self.a if tied else Leaf("text")

    def forward(self, value: Any) -> Any:
        return self.a(value) + self.b(value)
