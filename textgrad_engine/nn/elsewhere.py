"""What stands here for methods that PyTorch's modules have, for the error of somebody who calls them."""

_ON_RESULT = "; have a forward hook call result.register_hook(...), which sees the feedback on it"

ELSEWHERE = {
    "add_module": "; assign it: module.name = part",
    "apply": "; go through them: for part in module.modules()",
    "get_parameter": "; take it from dict(module.named_parameters())",
    "get_submodule": "; take it from dict(module.named_modules())",
    "register_backward_hook": _ON_RESULT,
    "register_full_backward_hook": _ON_RESULT,
}
"""By the name of the method, how the message goes on."""
