"""Credit: which parameters to edit, and by how much, from where the feedback went in the graph."""

from __future__ import annotations

from collections.abc import Sequence

from textgrad_engine.autograd import Variable


def credit(gradients: Sequence[Sequence[Variable]]) -> list[float]:
    """For each parameter the number of examples whose feedback reached it.

    An example that speaks to several parameters is shared equally among them, so that a critic that always finds
    something to say to everybody does not outweigh one that names the place. Empty feedback is no feedback.

    Args:
        gradients: for each parameter the feedback that reached it.

    Example:
        >>> credit([[Variable("be brief")], []])
        [1.0, 0.0]
    """
    reached: dict[str, list[int]] = {}
    for number, gradient in enumerate(gradients):
        for place, item in enumerate(gradient):
            if str(item.data).strip():
                name = item.source.example if item.source is not None and item.source.example else f"{number}/{place}"
                found = reached.setdefault(name, [])
                if number not in found:
                    found.append(number)
    totals = [0.0] * len(gradients)
    for numbers in reached.values():
        for number in numbers:
            totals[number] += 1 / len(numbers)
    return totals


def shares(credited: Sequence[float], edits: int) -> list[int]:
    """How many of the edits each parameter may get, by largest remainder; ties go to the earlier parameter.

    Example:
        >>> shares([6.0, 1.0, 0.0], 4)
        [3, 1, 0]
    """
    total = sum(credited)
    if not total:
        return [0] * len(credited)
    exact = [edits * part / total for part in credited]
    whole = [int(part) for part in exact]
    ranked = sorted(range(len(exact)), key=lambda n: (whole[n] - exact[n], n))
    for number in ranked[: edits - sum(whole)]:
        whole[number] += 1
    return whole
