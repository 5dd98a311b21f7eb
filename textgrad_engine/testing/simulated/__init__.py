"""Simulated tasks with a known optimum: the proving ground of the optimizers.

No figure made with them says anything about real models.
"""

from textgrad_engine.testing.simulated.model import ParcelsModel
from textgrad_engine.testing.simulated.task import SimulatedTask, simulated_task

__all__ = ["ParcelsModel", "SimulatedTask", "simulated_task"]
