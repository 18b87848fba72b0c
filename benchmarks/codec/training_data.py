#!/usr/bin/env python3
"""Tensors of a real training run, for benchmarks of the codec.

    benchmarks/codec/training_data.py FOLDER [--steps 400]

Trains a small GPT on the Python sources of this machine with AdamW, and writes the parameters, gradients, Adam moments and
activations of an early and of the last step, the parameters and moments also of the step before. Each set of tensors is
FOLDER/NAME.bin, the tensors one after the other, and FOLDER/NAME.sizes, a line with the bytes of each.
NAME is what-dtype-when. Needs PyTorch and NumPy (Debian: python3-torch).
"""
import argparse
import collections
import re
import sysconfig
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY = 4096
WIDTH = 256
LAYERS = 4
HEADS = 4
CONTEXT = 128
BATCH = 4
EARLY = 20


def tokens():
    """Words and signs of the standard library's sources, by frequency; the rest is one token."""
    sources = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:150]
    words = re.findall(r"\w+|[^\w\s]|\n", "\n".join(s.read_text(errors="replace") for s in sources))
    common = [word for word, _ in collections.Counter(words).most_common(VOCABULARY - 1)]
    number = {word: i for i, word in enumerate(common)}
    return torch.tensor([number.get(word, VOCABULARY - 1) for word in words])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1))

    def forward(self, x, seen):
        size = (x.shape[0], CONTEXT, HEADS, WIDTH // HEADS)
        q, k, v = (t.reshape(size).transpose(1, 2) for t in self.qkv(self.before(x)).chunk(3, dim=-1))
        weights = torch.softmax(q @ k.transpose(2, 3) / size[-1] ** 0.5 + self.mask, dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(x.shape))
        hidden = F.relu(self.up(self.after(x)))
        seen += [("attention", weights), ("hidden", hidden), ("residual", x)]
        return x + self.down(hidden)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        for table in (self.words, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, x, seen):
        x = self.words(x) + self.places.weight
        for block in self.blocks:
            x = block(x, seen)
        return self.head(self.norm(x))


def random_batch(text):
    """Pieces of the text: what goes in, and what is to come out."""
    begins = torch.randint(len(text) - CONTEXT - 1, (BATCH,))
    batch = torch.stack([text[b : b + CONTEXT + 1] for b in begins])
    return batch[:, :-1], batch[:, 1:]


def as_bf16(x):
    bits = x.view(np.uint32)
    return ((bits + (0x7FFF + (bits >> 16 & 1))) >> 16).astype(np.uint16)


def as_e5m2(x):
    bits = x.astype(np.float16).view(np.uint16).astype(np.uint32)
    return ((bits + (0x7F + (bits >> 8 & 1))) >> 8).astype(np.uint8)


def as_e4m3(x):
    """Scaled to the type's range; its exponent has another bias than float16's, hence 1/256."""
    scaled = x * (448 / max(np.abs(x).max(), 1e-30)) / 256
    bits = scaled.astype(np.float16).view(np.uint16).astype(np.uint32)
    rounded = (bits & 0x7FFF) + (0x3F + (bits >> 7 & 1))
    return ((bits >> 8 & 0x80) | np.minimum(rounded >> 7, 0x7E)).astype(np.uint8)


def write(folder, name, arrays):
    with open(folder / f"{name}.bin", "wb") as out:
        for array in arrays:
            out.write(array.tobytes())
    (folder / f"{name}.sizes").write_text("".join(f"{array.nbytes}\n" for array in arrays))


def write_floats(folder, what, when, tensors, scale=1.0):
    arrays = [t.detach().float().contiguous().numpy() for t in tensors]
    write(folder, f"{what}-fp32-{when}", arrays)
    write(folder, f"{what}-bf16-{when}", [as_bf16(a) for a in arrays])
    write(folder, f"{what}-fp16-{when}", [(a * scale).astype(np.float16) for a in arrays])
    return arrays


def write_step(folder, when, model, optimizer, seen, inputs):
    write_state(folder, when, model, optimizer)
    # Mixed-precision training scales the loss, or the gradients would be below what float16 has.
    gradients = write_floats(folder, "gradients", when, [p.grad for p in model.parameters()], scale=4096)
    write_floats(folder, "activations", when, [t for name, t in seen if name != "attention"])
    write_floats(folder, "attention", when, [t for name, t in seen if name == "attention"])
    parameters = [p.detach().numpy() for p in model.parameters()]
    write(folder, f"parameters-e4m3-{when}", [as_e4m3(a) for a in parameters])
    write(folder, f"gradients-e5m2-{when}", [as_e5m2(a * 4096) for a in gradients])
    # What a gradient in bfloat16 looks like once it is added up in float32.
    write(folder, f"gradients-fp32_of_bf16-{when}", [as_bf16(a).astype(np.uint32) << 16 for a in gradients])
    write(folder, f"tokens-int64-{when}", [inputs.numpy()])


def write_state(folder, when, model, optimizer):
    write_floats(folder, "parameters", when, model.parameters())
    for what, key in (("moment1", "exp_avg"), ("moment2", "exp_avg_sq")):
        write_floats(folder, what, when, [optimizer.state[p][key] for p in model.parameters()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    text = tokens()
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    warm_up = EARLY // 2
    for step in range(1, args.steps + 1):
        rate = min(step / warm_up, 0.55 + 0.45 * np.cos(np.pi * step / args.steps))
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * rate
        inputs, targets = random_batch(text)
        seen = []
        loss = F.cross_entropy(model(inputs, seen).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        when = {EARLY: "early", args.steps: "late"}.get(step)
        before = {EARLY - 1: "early", args.steps - 1: "late"}.get(step)
        if before:
            write_state(args.folder, f"{before}_before", model, optimizer)
        if when:
            write_step(args.folder, when, model, optimizer, seen, inputs.contiguous())
            print(f"step {step}: loss {loss.item():.2f}", flush=True)


if __name__ == "__main__":
    main()
