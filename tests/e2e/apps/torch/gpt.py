"""A language model of GPT-2's shape, data parallel, on random tokens: a line when each step is done.

    gpt.py [--layers 12] [--width 768] [--tokens 512] [--batch 4] [--steps 20]
"""
import argparse

import job
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

VOCABULARY = 50257


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.grow, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        batch, tokens, width = x.shape
        parts = self.mix(self.first(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.dropout(self.out(seen.transpose(1, 2).reshape(batch, tokens, width)))
        return x + self.dropout(self.shrink(F.gelu(self.grow(self.second(x)))))


class Model(nn.Module):
    def __init__(self, layers, width, tokens):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(tokens, width)
        self.blocks = nn.Sequential(*(Block(width, width // 64) for _ in range(layers)))
        self.last = nn.LayerNorm(width)

    def forward(self, words):
        x = self.words(words) + self.places.weight[:words.shape[1]]
        return F.linear(self.last(self.blocks(x)), self.words.weight)


def main():
    parser = argparse.ArgumentParser()
    for name, value in {"layers": 12, "width": 768, "tokens": 512, "batch": 4, "steps": 20}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    job.start()
    model = nn.parallel.DistributedDataParallel(Model(args.layers, args.width, args.tokens).to(job.DEVICE))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
    for step in range(args.steps):
        words = torch.randint(VOCABULARY, (args.batch, args.tokens + 1), device=job.DEVICE)
        with torch.autocast(job.DEVICE.type, torch.bfloat16):
            logits = model(words[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), words[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        job.say(f"step {step} loss {loss.item()!r}")
    job.say_weights(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
