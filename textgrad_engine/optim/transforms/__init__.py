"""Feedback transforms: what happens to feedback between the backward pass and the optimizer's model; they chain."""

from textgrad_engine.optim.transforms.base import Chain, Context, FeedbackTransform, Gathered, chain, identity
from textgrad_engine.optim.transforms.cap import cap
from textgrad_engine.optim.transforms.cluster import cluster
from textgrad_engine.optim.transforms.dedupe import dedupe
from textgrad_engine.optim.transforms.momentum import momentum
from textgrad_engine.optim.transforms.order import newest_first, worst_first
from textgrad_engine.optim.transforms.summarise import summarise

__all__ = [
    "Chain",
    "Context",
    "FeedbackTransform",
    "Gathered",
    "cap",
    "chain",
    "cluster",
    "dedupe",
    "identity",
    "momentum",
    "newest_first",
    "summarise",
    "worst_first",
]
