"""What there is in `textgrad_engine.data`."""

from textgrad_engine.data.dataloader import DataLoader
from textgrad_engine.data.dataset import Dataset, Example, Examples, Subset, examples_of, ids_of
from textgrad_engine.data.images import image_part
from textgrad_engine.data.load import load
from textgrad_engine.data.overlap import Overlap, check_splits
from textgrad_engine.data.sampler import RandomSampler, Sampler, SequentialSampler, WeightedRandomSampler
from textgrad_engine.data.split import random_split

__all__ = [
    "DataLoader",
    "Dataset",
    "Example",
    "Examples",
    "Overlap",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "WeightedRandomSampler",
    "check_splits",
    "examples_of",
    "ids_of",
    "image_part",
    "load",
    "random_split",
]
