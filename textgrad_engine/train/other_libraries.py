"""What stands here for methods that trainers of Lightning and transformers have, for the error of who calls them."""

_SCORES = "; tg.evaluate(program, dataset, loss) scores a program, and fit(..., test) also tests at the end"
_KEEPS = "; Trainer(run_dir=...) keeps all of a run, and json.dumps(program.state_dict()) is what is in a program"

ELSEWHERE = {
    **dict.fromkeys(("evaluate", "test", "validate"), _SCORES),
    **dict.fromkeys(("load_checkpoint", "save_checkpoint", "save_model"), _KEEPS),
    "predict": "; call the program in a plain loop, whose calls run at once, or by func.pmap(program)(inputs)",
    "train": "; here it is fit(program, loss, optimizer, train, val, test)",
}
"""By the name of the method, how the message goes on."""
