"""torch.distributed.pipelining: a stage on each rank, unseeded, with dropout; SCHEDULE and SHAPES say how."""
import os

import job
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed import pipelining



class Stage(pipelining.PipelineStage):
    def _get_init_p2p_neighbors_ops(self):
        """They only wake NCCL. Torch 2.9 sends an int64 where the other side waits for a float32, which gloo does not
        let pass."""
        return []


rank, size = job.start()
WIDTH, ROWS, PARTS = 16, 8, 4
layer = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.2), nn.Tanh())
shapes = {}
if os.environ.get("SHAPES") == "given":  # else the stages tell each other
    shapes = {name: torch.empty(ROWS // PARTS, WIDTH) for name in ("input_args", "output_args")}
stage = Stage(layer, rank, size, torch.device("cpu"), **shapes)
schedule = getattr(pipelining, os.environ.get("SCHEDULE", "Schedule1F1B"))(stage, PARTS, loss_fn=F.mse_loss)
optimizer = torch.optim.Adam(layer.parameters(), 1e-2)
for step in range(4):
    optimizer.zero_grad()
    if rank == 0:
        schedule.step(torch.randn(ROWS, WIDTH))
    elif rank == size - 1:
        losses = []
        schedule.step(target=torch.randn(ROWS, WIDTH), losses=losses)
        job.say(f"step {step} {[loss.item() for loss in losses]}")
    else:
        schedule.step()
    optimizer.step()
    job.say(f"step {step} {job.digest(*(p.grad for p in layer.parameters()))}")
job.say_weights(layer)
dist.destroy_process_group()
