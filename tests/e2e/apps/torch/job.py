"""What the programs of this folder share: a job over gloo, its output, and a seed where the test wants one.

With JOB_DEVICE=cuda it is a job over NCCL, on the first GPU.
"""
import hashlib
import os
import random

import torch
import torch.distributed as dist


DEVICE = torch.device(os.environ.get("JOB_DEVICE", "cpu"))


def start(**options):
    """Without JOB_SEED nothing is seeded."""
    torch.set_num_threads(1)
    if DEVICE.type == "cuda":
        torch.cuda.set_device(0)
    dist.init_process_group("nccl" if DEVICE.type == "cuda" else "gloo", **options)
    if "JOB_SEED" in os.environ:
        seed = int(os.environ["JOB_SEED"]) + dist.get_rank()
        torch.manual_seed(seed)
        random.seed(seed)
    return dist.get_rank(), dist.get_world_size()


def say(text):
    os.write(1, f"rank {dist.get_rank()} {text}\n".encode())


def digest(*values):
    state = hashlib.sha256()
    for value in values:
        is_tensor = isinstance(value, torch.Tensor)
        state.update(value.detach().contiguous().cpu().numpy().tobytes() if is_tensor else repr(value).encode())
    return state.hexdigest()[:16]


def say_weights(model):
    weights = [p.to_local() if hasattr(p, "to_local") else p for p in model.parameters()]
    say(f"weights {digest(*weights)}")
