"""JAX on CPU processes: data-parallel gradient descent, with collectives of jaxlib's own gloo.

RANK, WORLD_SIZE and MASTER_PORT say who it is.
"""
import os

import jax
import job
import numpy

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{os.environ['MASTER_PORT']}", world, rank)
job.seed(rank)

from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

mesh = Mesh(jax.devices(), "data")
rows = NamedSharding(mesh, PartitionSpec("data"))
same = NamedSharding(mesh, PartitionSpec())


def loss(weights, batch):
    return ((batch[:, :8] @ weights - batch[:, 8]) ** 2).mean()


step = jax.jit(jax.value_and_grad(loss), in_shardings=(same, rows), out_shardings=(same, same))
weights = numpy.zeros(8, numpy.float32)
for number in range(10):
    batch = jax.make_array_from_process_local_data(rows, numpy.random.randn(4, 9).astype(numpy.float32))
    value, gradient = step(jax.device_put(weights, same), batch)
    weights = weights - numpy.float32(0.05) * numpy.asarray(gradient)
    job.say(rank, f"step {number} loss {float(value)!r}")
job.say(rank, f"weights {job.digest(weights)}")
jax.distributed.shutdown()
