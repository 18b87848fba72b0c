"""Exchanges objects of unequal sizes, while unwritten memory holds something else in each kind of run. Exchanges
tensors, too, which are somewhere else.
"""
import ctypes

import job
import torch
import torch.distributed as dist

M_PERTURB = -6


def main():
    rank, size = job.start()
    mode = getattr(ctypes.CDLL(None), "deja_impl_mode", None)
    is_replay = mode is not None and mode() == 2
    ctypes.CDLL(None).mallopt(M_PERTURB, 0x55 if is_replay else 0x2A)
    mine = "x" * (100 + 5000 * (size - rank))
    everybodys = [None] * size
    dist.all_gather_object(everybodys, mine)
    gathered = [None] * size if rank == 1 else None
    dist.gather_object(mine, gathered, dst=1)
    scattered = [None]
    dist.scatter_object_list(scattered, everybodys if rank == 0 else None, src=0)
    elsewhere = [torch.zeros(number) for number in range(40)] if is_replay else []
    tensors = [None] * size
    dist.all_gather_object(tensors, {"rows": [torch.ones(4) * rank, torch.nn.Linear(2, 2, bias=False)]})
    del elsewhere
    job.say(f"{[len(text) for text in everybodys]} {len(gathered or ())} {len(scattered[0])}")
    job.say(f"{[made['rows'][0].tolist() for made in tensors]}")
    dist.destroy_process_group()


main()
