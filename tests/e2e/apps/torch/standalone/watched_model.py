"""Says when a model that is watched goes: before the functions that the program has registered first for its end."""
import atexit
import weakref

atexit.register(print, "the end")

import deja.torch  # noqa: E402
import torch  # noqa: E402


def main():
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    weakref.finalize(model, print, "the model goes").atexit = False
    deja.torch.watch(model, optimizer)
    for _ in deja.steps(range(4)):
        optimizer.zero_grad()
        model(torch.ones(4)).sum().backward()
        optimizer.step()


main()
