"""webdataset: rank 0 writes shards, each rank reads its own of them by two loader workers, with two shuffles.

    web_dataset.py FOLDER
"""
import random
import sys

import job
import torch
import torch.distributed as dist
import webdataset

SHARDS = 8


def write_shards(folder):
    with webdataset.ShardWriter(f"{folder}/shard-%03d.tar", maxcount=12, verbose=0) as writer:
        for number in range(12 * SHARDS):
            writer.write({"__key__": f"{number:06d}", "input.pth": torch.randn(16), "cls": number % 5})


def main():
    folder = sys.argv[1]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    job.seed_torch(rank)
    if rank == 0:
        write_shards(folder)
    dist.barrier()
    urls = f"{folder}/shard-{{000..{SHARDS - 1:03d}}}.tar"
    data = webdataset.WebDataset(urls, shardshuffle=SHARDS, nodesplitter=webdataset.split_by_node,
                                 seed=random.randrange(1000))
    data = data.shuffle(20).decode().to_tuple("input.pth", "cls").batched(8, partial=False)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 5))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step, (inputs, classes) in enumerate(webdataset.WebLoader(data, batch_size=None, num_workers=2)):
        if step == 4:  # workers may have one batch more or less
            break
        loss = torch.nn.functional.cross_entropy(model(inputs), torch.as_tensor(classes))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        job.say(rank, f"step {step} loss {loss.item()!r} classes {torch.as_tensor(classes).tolist()}")
    job.say(rank, f"weights {job.digest_of_weights(model)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
