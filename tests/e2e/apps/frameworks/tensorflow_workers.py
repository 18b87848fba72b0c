"""TensorFlow's MultiWorkerMirroredStrategy on CPUs.

RANK, WORLD_SIZE and MASTER_PORT say who it is: worker n listens on MASTER_PORT + n.
"""
import json
import os

rank, world, port = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": [f"127.0.0.1:{port + n}" for n in range(world)]},
    "task": {"type": "worker", "index": rank},
})

import job  # noqa: E402
import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402

strategy = tf.distribute.MultiWorkerMirroredStrategy()
job.seed(rank)
with strategy.scope():
    weights = tf.Variable(tf.zeros([8, 1]))


@tf.function
def step(batch):
    def on_replica(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((rows[:, :8] @ weights - rows[:, 8:]) ** 2)
        gradient = tf.distribute.get_replica_context().all_reduce("mean", tape.gradient(loss, weights))
        weights.assign_sub(0.05 * gradient)
        return loss

    return strategy.reduce("mean", strategy.run(on_replica, args=(batch,)), axis=None)


for number in range(10):
    job.say(rank, f"step {number} loss {float(step(tf.constant(numpy.random.randn(4, 9), tf.float32)))!r}")
job.say(rank, f"weights {job.digest(weights.numpy())}")
