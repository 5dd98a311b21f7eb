"""What stands here for methods that optimizers of DSPy and Trace have, for the error of somebody who calls them."""

ELSEWHERE = {
    "backward": "; a loss has it, tg.backward(losses) is for several, and value.backward(text) says what is wrong",
    "compile": "; tg.Trainer(...).fit(program, loss, optimizer, train, val, test) trains with it",
    "zero_feedback": "; here it is zero_grad",
}
"""By the name of the method, how the message goes on."""
