"""What the programs of this folder share: a seed where the test wants one, and lines that name their rank."""
import hashlib
import os
import random


def seed(rank):
    """Without JOB_SEED nothing is seeded."""
    if "JOB_SEED" not in os.environ:
        return
    number = int(os.environ["JOB_SEED"]) + rank
    random.seed(number)
    import numpy

    numpy.random.seed(number)


def seed_torch(rank):
    import torch

    torch.set_num_threads(1)
    seed(rank)
    if "JOB_SEED" in os.environ:
        torch.manual_seed(int(os.environ["JOB_SEED"]) + rank)


def say(rank, text):
    os.write(1, f"rank {rank} {text}\n".encode())


def digest(*arrays):
    """numpy's result of each."""
    import numpy

    state = hashlib.sha256()
    for array in arrays:
        state.update(numpy.ascontiguousarray(array).tobytes())
    return state.hexdigest()[:16]


def digest_of_weights(model):
    weights = (p.to_local() if hasattr(p, "to_local") else p for p in model.parameters())
    return digest(*(p.detach().float().numpy() for p in weights))
