"""What stands here for methods that modules of PyTorch and DSPy have, for the error of somebody who calls them."""

_ON_RESULT = "; have a forward hook call result.register_hook(...), which sees the feedback on it"
_LOAD = "; module.load_state_dict(json.loads(text)) takes what state_dict gave"
_SAVE = "; its texts are plain data: json.dumps(module.state_dict())"

_NO_DEVICE = "; leave it out: its texts are on no device, and models answer where their endpoints are"

ELSEWHERE = {
    "acall": "; here it is aforward",
    "add_module": "; assign it: module.name = part",
    "apply": "; go through them: for part in module.modules()",
    "batch": "; call it in a plain loop, whose calls run at once, or by func.pmap(function) where it waits in between",
    "compile": "; leave it out: calls go on side by side as it is",
    **dict.fromkeys(("cpu", "cuda", "to", "to_empty"), _NO_DEVICE),
    **dict.fromkeys(("deepcopy", "reset_copy"), "; copy.deepcopy(module) makes one, with the texts as they are"),
    "dump_state": "; here it is state_dict",
    "get_buffer": "; take it from dict(module.named_buffers())",
    "get_parameter": "; take it from dict(module.named_parameters())",
    "get_submodule": "; take it from dict(module.named_modules())",
    "inspect_history": "; llm.observe(callback) sees each call; of a run, `textgrad-engine calls RUN` lists them",
    "load": _LOAD,
    "load_state": _LOAD,
    "named_predictors": "; go through its prompts: for name, prompt in module.named_parameters()",
    "predictors": "; go through its prompts: for prompt in module.parameters()",
    "register_backward_hook": _ON_RESULT,
    "register_full_backward_hook": _ON_RESULT,
    "register_full_backward_pre_hook": _ON_RESULT,
    "register_module": "; assign it: module.name = part",
    "save": _SAVE,
    "set_lm": "; name the model where a part is made, nn.ChatCompletion(model=...), or by tg.use_models(forward=...)",
}
"""By the name of the method, how the message goes on."""
