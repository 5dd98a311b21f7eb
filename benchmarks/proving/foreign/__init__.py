"""Requests in other words than this library's, as other optimizers ask them, read and answered for a simulated task."""

from textgrad_engine.testing.simulated.model import Reader

from .conversations import part_of
from .problems import problem_of
from .proposals import proposal_of
from .signatures import form_of

READERS: tuple[Reader, ...] = (form_of, problem_of, proposal_of, part_of)
"""What `ParcelsModel.readers` wants for the systems of ``others.py``."""
