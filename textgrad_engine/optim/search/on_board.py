"""`BoardSearcher`: base of the searches that keep one best candidate, and what they know, on a board."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from textgrad_engine.optim.search.board import Board
from textgrad_engine.optim.search.objective import Objective, Texts
from textgrad_engine.optim.search.searcher import Searcher
from textgrad_engine.optim.texts import texts_now


class BoardSearcher(Searcher):
    """Base of searches with a `Board`; a subclass proposes, and decides what is kept."""

    _races = True

    _board: Board | None = None

    @property
    def board(self) -> Board:
        """What the search knows, for reports and tests.

        Raises:
            RuntimeError: no step was made yet.
        """
        if self._board is None:
            raise RuntimeError("the search has no board before its first step")
        return self._board

    @property
    def expected(self) -> float:
        """The mean validation score that the best texts are expected to have."""
        return self.board.mean

    def texts(self) -> Texts:
        """The best texts so far."""
        return self.board.texts

    def state_dict(self) -> dict[str, Any]:
        """State and settings as plain data, with all that the search knows."""
        board = None if self._board is None else self._board.state_dict()
        return {**super().state_dict(), "board": board}

    def _reading(self, state: Mapping[str, Any]) -> Callable[[], None]:
        take = super()._reading(state)
        try:
            board = None if state["board"] is None else TypeAdapter(Board).validate_python(state["board"])
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(
                f"the state's board cannot be read: {'.'.join(map(str, first['loc']))}: {first['msg']}; it is of "
                f"another version of {type(self).__name__}: begin a new search with the texts that it has found"
            ) from None

        def take_all() -> None:
            take()
            self._board = board

        return take_all

    def _take_up(self, objective: Objective) -> bool:
        """See that there is a board about the texts of now and the examples of an objective; say whether it is new."""
        variables = self.variables()
        texts = texts_now(variables)
        examples = (tuple(objective.train), tuple(objective.val))
        held = self._board
        if held is not None and (held.texts, held.examples, held.digest) == (texts, examples, objective.digest):
            return False
        origins = tuple(tuple(self.origins(variable)) for variable in variables)
        begun = 0 if held is None else held.begun  # the edits of before keep their ids
        self._board = Board(
            texts,
            origins,
            limits=objective.scale,
            begun=begun,
            before=begun,
            examples=examples,
            digest=objective.digest,
        )
        return True
