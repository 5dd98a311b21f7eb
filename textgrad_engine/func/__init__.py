"""Function transforms, in the shape of `torch.func`."""

from textgrad_engine.func.awaited import agrad, agrad_and_value, ahessian, ajacrev, apmap, avjp, avmap
from textgrad_engine.func.ensemble import stack_module_state
from textgrad_engine.func.functional import functional_call
from textgrad_engine.func.grad import grad, grad_and_value, vjp
from textgrad_engine.func.jacobian import hessian, jacfwd, jacrev
from textgrad_engine.func.jvp import jvp
from textgrad_engine.func.own_rule import VmapInfo
from textgrad_engine.func.pmap import pmap
from textgrad_engine.func.trace import Trace, TraceRecord, trace
from textgrad_engine.func.vmap import vmap
from textgrad_engine.lazily import telling

__all__ = [
    "Trace",
    "TraceRecord",
    "VmapInfo",
    "agrad",
    "agrad_and_value",
    "ahessian",
    "ajacrev",
    "apmap",
    "avjp",
    "avmap",
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "pmap",
    "stack_module_state",
    "trace",
    "vjp",
    "vmap",
]

telling(__name__)
