"""Horovod over gloo, on torch; started by horovodrun."""
import horovod.torch as hvd
import job
import torch

hvd.init()
rank = hvd.rank()
job.seed_torch(rank)
model = torch.nn.Linear(16, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), 1e-3), model.named_parameters())
for step in range(10):
    loss = model(torch.randn(8, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    job.say(rank, f"step {step} loss {loss.item()!r}")
job.say(rank, f"weights {job.digest_of_weights(model)}")
hvd.shutdown()
