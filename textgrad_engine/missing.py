"""What a name that a package lacks is called here, or which of its own is meant: for who comes from another library,
looks in the wrong part, or mistypes.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection

from textgrad_engine.wording import nearest

ELSEWHERE = {
    "AdalComponent": "Trainer",
    "Adam": "optim.TGD",
    "AdamW": "optim.TGD",
    "aggregate": "ops.reduce",
    "Assert": "ops.straight_through",
    "asyncify": "nn.Module.aforward",
    "BatchSampler": "data.DataLoader",
    "BestOfN": "ops.straight_through",
    "BlackboxLLM": "nn.ChatCompletion",
    "BootstrapFewShot": "optim.BootstrapDemos",
    "BootstrapFewShotWithRandomSearch": "optim.BootstrapDemos",
    "BootstrapOptimizer": "optim.BootstrapDemos",
    "Buffer": "nn.Module.register_buffer",
    "bundle": "ops.straight_through",
    "cat": "ops.join",
    "ChainOfThought": "nn.ChatCompletion",
    "Component": "nn.Module",
    "ConcatDataset": "data.Dataset",
    "configure": "set_models",
    "context": "use_models",
    "COPRO": "optim.OPRO",
    "CosineAnnealingLR": "optim.schedules.CosineEdits",
    "CrossEntropyLoss": "nn.ExactMatch",
    "DataClass": "nn.ChatCompletion",
    "EarlyStopping": "Trainer",
    "EngineLM": "llm.resolve",
    "EvalFnToTextLoss": "nn.Metric",
    "Evaluate": "evaluate",
    "FormattedLLMCall": "nn.ChatCompletion",
    "functional": "ops",
    "FunctionCtx": "autograd.Context",
    "Generator": "nn.ChatCompletion",
    "GEPA": "optim.ParetoSearch",
    "GEPAAdapter": "llm.CallableModel",
    "get_engine": "llm.resolve",
    "grad": "autograd.grad",
    "GradComponent": "Function",
    "History": "nn.ChatCompletion",
    "Identity": "nn.Sequential",
    "ImageQALoss": "nn.TextLoss",
    "inference_mode": "no_grad",
    "InputField": "nn.ChatCompletion",
    "inspect_history": "llm.observe",
    "jacobian": "func.jacrev",
    "JsonOutputParser": "nn.ChatCompletion",
    "KFold": "cross_validate",
    "KNNFewShot": "optim.BootstrapDemos",
    "LabeledFewShot": "optim.BootstrapDemos",
    "LambdaLR": "optim.schedules.EditSchedule",
    "Linear": "nn.ChatCompletion",
    "LinearLR": "optim.schedules.LinearEdits",
    "LLMAsTextLoss": "nn.TextLoss",
    "LLMCall": "nn.ChatCompletion",
    "LM": "set_models",
    "loss": "nn",
    "lr_scheduler": "optim.schedules",
    "manual_seed": "Trainer",
    "mean": "ops.sum",
    "MIPROv2": "optim.PatchSearch",
    "MLFlowLogger": "train.Callback",
    "ModelCheckpoint": "train.Callback",
    "MSELoss": "nn.Metric",
    "MultiFieldEvaluation": "nn.TextLoss",
    "MultimodalLLMCall": "nn.ChatCompletion",
    "node": "nn.Parameter",
    "optimize": "optim.ParetoSearch",
    "optimize_anything": "nn.Metric",
    "OptoPrime": "optim.TGD",
    "OutputField": "nn.ChatCompletion",
    "Parallel": "func.pmap",
    "Predict": "nn.ChatCompletion",
    "Prediction": "nn.Module",
    "ProTeGi": "optim.BeamSearch",
    "ReAct": "nn.ChatCompletion",
    "Refine": "ops.straight_through",
    "Retrieve": "ops.straight_through",
    "save": "nn.Module.state_dict",
    "set_backward_engine": "set_models",
    "set_backward_model_client": "set_models",
    "settings": "set_models",
    "SGD": "optim.TGD",
    "Signature": "nn.ChatCompletion",
    "SIMBA": "optim.PatchSearch",
    "stack": "ops.join",
    "StepLR": "optim.schedules.StepEdits",
    "streamify": "llm.on_token",
    "StringBasedFunction": "Function",
    "SubsetRandomSampler": "data.Subset",
    "Suggest": "ops.straight_through",
    "teleprompt": "optim",
    "Tensor": "Variable",
    "tensor": "Variable",
    "TensorDataset": "data.Dataset",
    "TextualGradientDescent": "optim.TGD",
    "TextualGradientDescentwithMomentum": "optim.TGD",
    "TGDOptimizer": "optim.TGD",
    "track_usage": "llm.meter",
    "train_test_split": "data.random_split",
    "value_and_grad": "func.grad_and_value",
    "WandbLogger": "train.Callback",
}
"""What other libraries call it, or have at the top where two of ours have the name; docs/porting.md has more."""

_ROOT = __name__.partition(".")[0]
_IN_ONE_PART = {"autograd.functional": "func", f"{_ROOT}.utils": "data"}
"""What is called otherwise here where it was looked for in this part of another library."""

_PARTS = ("nn", "optim", "data", "func", "ops", "llm", "autograd", "train", "testing", "store")
"""Where a name may be that is not where it was looked for, and the order in which that is looked up."""


def missing(package: str, name: str, known: Collection[str], *, imported: bool) -> Exception:
    """The error about a name that a package does not have.

    Args:
        package: its full name.
        name: that was looked for.
        known: the public names that it has.
        imported: whether it was looked for by ``from package import name``: Python says nothing there of what an
            `AttributeError` says, so where a line is known that imports it, the error is one that has it.

    Example:
        >>> print(missing("textgrad_engine.optim", "GEPA", ["TGD"], imported=False))
        module 'textgrad_engine.optim' has no attribute 'GEPA'; it is optim.ParetoSearch (docs/porting.md)
        >>> print(missing("textgrad_engine.func", "vamp", ["vmap"], imported=False))
        module 'textgrad_engine.func' has no attribute 'vamp'; did you mean 'vmap'?
        >>> print(missing("textgrad_engine", "TGD", ["optim"], imported=True))
        there is no 'TGD' in 'textgrad_engine'; it is optim.TGD: from textgrad_engine.optim import TGD
    """
    own = _IN_ONE_PART.get(f"{package.removeprefix(f'{_ROOT}.')}.{name}")
    here = own or ELSEWHERE.get(name) or next((f"{part}.{name}" for part in _PARTS if name in _names(part)), "")
    if not here:
        return AttributeError(f"module {package!r} has no attribute {name!r}{nearest(name, known, 0.7)}", name=name)
    *part_of, inner = here.split(".")[:2]  # of a method its class is imported
    part = "".join(part_of)
    shown = here if part or package == _ROOT else f"{_ROOT}.{here}"
    if imported:
        line = f"from {'.'.join(filter(None, (_ROOT, part)))} import {inner}"
        return ImportError(f"there is no {name!r} in {package!r}; it is {shown}: {line}", name=package)
    page = " (docs/porting.md)" if name in ELSEWHERE else ""
    return AttributeError(f"module {package!r} has no attribute {name!r}; it is {shown}{page}", name=name)


def _names(part: str) -> list[str]:
    names: list[str] = importlib.import_module(f"{_ROOT}.{part}").__all__
    return names
