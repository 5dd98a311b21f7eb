"""What a patch search tries beside patches for failures: edits without which nothing may be lost, edits in company."""

from __future__ import annotations

from textgrad_engine.data.casefold import folded
from textgrad_engine.optim.revert import edits_in
from textgrad_engine.optim.search.board import Accepted, Board, Refused
from textgrad_engine.optim.search.objective import Objective

MOST_TOGETHER = 8
"""At most so many refused edits are tried together."""

ALIKE = 4
"""Refused edits are tried together when they have one of so many failing examples in common that are most like theirs.
"""


def due(board: Board, every: int, *, stuck: bool) -> tuple[Accepted, ...]:
    """The edits to try without next; the board notes that this is begun.

    Args:
        board: what the search knows.
        every: after so many kept patches, each edit is tried without again.
        stuck: whether patches bring nothing any longer; then each edit is tried without that never was.
    """
    there = [edits_in(text, own) for text, own in zip(board.texts, board.origins)]
    accepted = [entry for entry in board.accepted if entry.edit in there[entry.parameter]]
    while board.doubtful:
        if about := tuple(entry for entry in board.doubtful.pop(0) if entry in accepted):
            board.begin(doubtful=about)
            return about
    for entry in accepted:
        name = f"{entry.parameter}/{entry.edit}"
        if board.kept - board.tested.get(name, 0) >= every or (stuck and name not in board.tested):
            before, board.tested[name] = board.tested.get(name), board.kept
            board.begin(turn=(name, before))
            return (entry,)
    return ()


def company(board: Board, objective: Objective) -> tuple[Refused, ...]:
    """Edits that were refused one by one and answer examples much alike, for some are of use only together.

    The same ones are tried once, also when they were proposed again.

    Args:
        board: what the search knows; it notes that this is begun.
        objective: says which examples are alike.
    """
    found: dict[tuple[int, str], Refused] = {}
    for entry in board.refused:
        if entry.edit.op == "add" and entry.edit.text not in board.texts[entry.parameter]:
            found[entry.parameter, " ".join(folded(entry.edit.text).split())] = entry
    places = {name: n for n, name in enumerate(objective.train)}
    about: dict[int, list[Refused]] = {}
    for entry in found.values():
        support = [places[name] for said in entry.evidence for name in said.examples if name in places]
        for position in objective.near(support, board.failing)[:ALIKE] if support else ():
            about.setdefault(position, []).append(entry)
    for cluster in sorted(about.values(), key=len, reverse=True):
        together = tuple(cluster[-MOST_TOGETHER:])
        key = tuple(f"{entry.parameter}/{entry.edit.text}" for entry in together)
        if len(together) > 1 and not any(set(key) <= set(tried) for tried in board.united):
            board.united.append(key)
            board.begin(united=key)
            return together
    return ()
