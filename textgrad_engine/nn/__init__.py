"""Programs as modules with named parameters, in PyTorch's shape."""

from textgrad_engine.lazily import telling
from textgrad_engine.nn.chat import ChatCompletion
from textgrad_engine.nn.containers import ModuleDict, ModuleList, Sequential
from textgrad_engine.nn.loss import ExactMatch, JSONMatch, Judge, Metric, Rubric, TextLoss
from textgrad_engine.nn.module import Module
from textgrad_engine.nn.parameter import Parameter
from textgrad_engine.nn.parameters import ParameterDict, ParameterList
from textgrad_engine.nn.scores import OnField, OnMatch, Weighted
from textgrad_engine.nn.tool import Tool

__all__ = [
    "ChatCompletion",
    "ExactMatch",
    "JSONMatch",
    "Judge",
    "Metric",
    "Module",
    "ModuleDict",
    "ModuleList",
    "OnField",
    "OnMatch",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "Rubric",
    "Sequential",
    "TextLoss",
    "Tool",
    "Weighted",
]

telling(__name__)
