"""Hugging Face datasets: files of each rank, load_dataset, map with two processes, filter, shuffle, a torch loader.

    hf_datasets.py FOLDER
"""
import json
import os
import random
import sys
from pathlib import Path

os.environ["HF_DATASETS_CACHE"] = str(Path(sys.argv[1]) / f"cache-{os.environ['RANK']}")
os.environ["HF_HUB_OFFLINE"] = "1"

import job
import torch
import torch.distributed as dist
from datasets import load_dataset


def longer(row):
    return {"length": len(row["text"]), "noise": random.random()}


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    job.seed_torch(rank)
    rows = Path(sys.argv[1]) / f"rows-{rank}.jsonl"
    rows.write_text("".join(json.dumps({"text": "x" * random.randrange(40), "label": n % 3}) + "\n" for n in range(96)))
    data = load_dataset("json", data_files=str(rows), split="train")
    data = data.map(longer, num_proc=2).filter(lambda row: row["length"] > 2).shuffle(seed=random.randrange(1000))
    data = data.remove_columns("text").with_format("torch")
    total = torch.zeros(1)
    for step, batch in enumerate(torch.utils.data.DataLoader(data, batch_size=16, shuffle=True, num_workers=2)):
        total += (batch["length"] * batch["noise"]).sum()
        job.say(rank, f"step {step} lengths {batch['length'].tolist()}")
    dist.all_reduce(total)
    job.say(rank, f"total {total.item()!r}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
