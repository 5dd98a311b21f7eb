"""Autograd for text: variables, functions, the graph, and the backward pass."""

from textgrad_engine.autograd.api import abackward, agrad, backward, get_gradient_edge, grad
from textgrad_engine.autograd.context import Context
from textgrad_engine.autograd.examples import example
from textgrad_engine.autograd.function import Function
from textgrad_engine.autograd.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from textgrad_engine.autograd.gradcheck import agradcheck, gradcheck
from textgrad_engine.autograd.gradient import is_seed
from textgrad_engine.autograd.graph import AccumulateGrad, FunctionNode, GradientEdge, Node, Source
from textgrad_engine.autograd.hooks import register_multi_grad_hook
from textgrad_engine.autograd.layers import Layer
from textgrad_engine.autograd.once import once_differentiable
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.lazily import telling

__all__ = [
    "AccumulateGrad",
    "Context",
    "Function",
    "FunctionNode",
    "GradientEdge",
    "Layer",
    "Node",
    "Source",
    "Variable",
    "abackward",
    "agrad",
    "agradcheck",
    "backward",
    "enable_grad",
    "example",
    "get_gradient_edge",
    "grad",
    "gradcheck",
    "is_grad_enabled",
    "is_seed",
    "no_grad",
    "once_differentiable",
    "register_multi_grad_hook",
    "set_grad_enabled",
]

telling(__name__)
