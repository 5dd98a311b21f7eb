"""Function transforms, in the shape of `torch.func`."""

from textgrad_engine.func.grad import grad, grad_and_value, vjp
from textgrad_engine.func.pmap import pmap
from textgrad_engine.func.vmap import VmapInfo, vmap

__all__ = ["VmapInfo", "grad", "grad_and_value", "pmap", "vjp", "vmap"]
