"""MosaicML's streaming: rank 0 writes shards, both ranks read them through shared memory and two loader workers.

    mosaic_streaming.py FOLDER
"""
import random
import sys

import job
import torch
import torch.distributed as dist
from streaming import MDSWriter, StreamingDataLoader, StreamingDataset


def write_shards(folder):
    columns = {"number": "int", "values": "ndarray:float32:16"}
    with MDSWriter(out=folder, columns=columns, compression="zstd", size_limit=2000) as writer:
        for number in range(96):
            writer.write({"number": number, "values": torch.randn(16).numpy()})


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    job.seed_torch(rank)
    remote, local = f"{sys.argv[1]}/remote", f"{sys.argv[1]}/local"
    if rank == 0:
        write_shards(remote)
    dist.barrier()
    data = StreamingDataset(remote=remote, local=local, shuffle=True, batch_size=8, shuffle_seed=9)
    for step, batch in enumerate(StreamingDataLoader(data, batch_size=8, num_workers=2)):
        total = batch["values"].sum() * random.random()
        dist.all_reduce(total)
        job.say(rank, f"step {step} total {total.item()!r} rows {batch['number'].tolist()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
