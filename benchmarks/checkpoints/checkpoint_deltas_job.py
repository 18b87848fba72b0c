"""Trains a small GPT (training_data.py) with AdamW on float32 parameters, of which it keeps a copy in bfloat16 as mixed precision does, for
benchmarks/checkpoints/checkpoint_deltas.py. Says how long a step took."""
import json
import os
import statistics
import time

import deja
import deja.torch
import numpy as np
import torch
from torch.nn import functional as F

import training_data as gpt

STEPS = int(os.environ["JOB_STEPS"])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    text = gpt.tokens()
    model = gpt.Model()
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    copies = {name: p.detach().bfloat16() for name, p in model.named_parameters()}
    deja.torch.watch(model=model, optimizer=optimizer, copies=copies)
    taken = []
    for step in range(STEPS):
        begin = time.perf_counter()
        deja.step(step)
        rate = min((step + 1) / 10, 0.55 + 0.45 * np.cos(np.pi * step / STEPS))
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * rate
        inputs, targets = gpt.random_batch(text)
        loss = F.cross_entropy(model(inputs, []).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for name, p in model.named_parameters():
                copies[name].copy_(p)
        taken.append(time.perf_counter() - begin)
    print(json.dumps({"step": statistics.median(taken), "all": sum(taken)}), flush=True)


main()
