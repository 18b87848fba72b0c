"""Another program of this folder, in this plain process, with what one recorded rank was given.

    served.py TRACE RANK PROGRAM.py        with CHANGE: what is done differently
"""
import os
import runpy
import sys

import torch
import torch.distributed as dist

import deja.torch

trace, rank, program = sys.argv[1], int(sys.argv[2]), sys.argv[3]
change = os.environ.get("CHANGE", "")
reduce, broadcast = dist.all_reduce, dist.broadcast
calls = 0


def changed(tensor, *args, **kwargs):
    """The fourth all_reduce has another input, or is another operation."""
    global calls
    calls += 1
    if calls == 4 and change == "input":
        tensor.view(-1)[2] += 1
    if calls == 4 and change == "operation":
        return broadcast(tensor, 1)
    return reduce(tensor, *args, **kwargs)


if change:
    dist.all_reduce = changed
sys.path.insert(0, os.path.dirname(program))
with deja.torch.TracePG(trace, rank, on_divergence=os.environ.get("ON_DIVERGENCE", "raise")) as group:
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as ended:
        assert not ended.code, ended.code
    except deja.torch.Divergence as found:
        print("divergence", found.kind, found.operation, found.number, found.element, found.recorded, found.live)
        print(found)
        sys.exit(4)
    except deja.torch.RecordingEnds as ended:
        print(f"RecordingEnds: {ended}")
        sys.exit(3)
    print(len(group.divergences), "divergences")
