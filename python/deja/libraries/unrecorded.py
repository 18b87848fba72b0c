"""Other libraries that send between processes without a call that Deja records. The recording says so when the program
uses one, and a replay ends there.
"""

import functools
import os

from deja import engine

# By module: what begins to use it, and what is said.
_PARTS = {
    "torch.distributed.rpc": (
        "init_rpc",
        "torch.distributed.rpc (TensorPipe): its messages are not recorded, and a replay ends at init_rpc; "
        "process groups are recorded",
    ),
    "torch.distributed._symmetric_memory": (
        "rendezvous",
        "symmetric memory of torch.distributed: what other ranks write there is not recorded, and a replay ends at its "
        "rendezvous; process groups are recorded",
    ),
    "jax._src.distributed": (
        "State.initialize",
        "jax.distributed (gRPC, collectives of jaxlib): what its processes send each other is not recorded, and a replay ends "
        "at initialize; `deja record --single` records a job of one process",
    ),
    "tensorflow.python.distribute.collective_all_reduce_strategy": (
        "CollectiveAllReduceExtended._initialize_multi_worker",
        "MultiWorkerMirroredStrategy of TensorFlow (gRPC): what its workers send each other is not recorded, and a replay ends "
        "where they are initialized; `deja record --single` records a job of one worker",
    ),
    "xgboost.collective": (
        "init",
        "collective of XGBoost (sockets): what its workers send each other is not recorded, and a replay ends at init; "
        "`deja record --single` records a training of one process",
    ),
    "ray._private.worker": (
        "connect",
        "Ray: what its processes send each other (gRPC, shared memory) is not recorded, and a replay ends where the process "
        "connects to them; start the training function with torchrun to replay it",
    ),
    "horovod.common.basics": (
        "HorovodBasics.init",
        "Horovod: what its background threads send each other is not recorded, and a replay ends at init; "
        "`deja record --single` records a job of one process over gloo",
    ),
    "streaming.base.dataset": (
        "StreamingDataset.__init__",
        "streaming of MosaicML in several ranks of one machine: what they write into shared memory for each other is not "
        "recorded, and a replay ends where the data set is made; one rank a machine is recorded",
    ),
}


# By module: variables of launchers that have the number of processes which send to each other. Without any it is one.
_SIZES = {
    "horovod.common.basics": ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE"),
    "streaming.base.dataset": ("LOCAL_WORLD_SIZE",),
}

# By module, for one process: the method that says after the beginning that it is not recorded either, and what is said.
_ALONE = {
    "horovod.common.basics": (
        "mpi_enabled",
        "Horovod over MPI: how often its background thread calls MPI is not recorded, and a replay ends at init; "
        "over gloo a job of one process is recorded",
    ),
}


def _is_alone(module):
    """What processes of one rank share is in its replay."""
    return module in _SIZES and all(os.environ.get(name, "1") == "1" for name in _SIZES[module])


def install(module):
    path, what = _PARTS[module.__name__]
    *owners, name = path.split(".")
    owner = functools.reduce(lambda found, part: getattr(found, part, None), owners, module)
    real = getattr(owner, name, None)
    is_alone = _is_alone(module.__name__)
    if engine.mode() == engine.OFF or real is None or is_alone and module.__name__ not in _ALONE:
        return

    @functools.wraps(real)
    def told(*args, **kwargs):
        engine.not_recorded(what)
        made = real(*args, **kwargs)
        engine.not_recorded(what)  # the process may have become a rank meanwhile
        return made

    @functools.wraps(real)
    def told_alone(self, *args, **kwargs):
        made = real(self, *args, **kwargs)
        is_unrecorded, said = _ALONE[module.__name__]
        if getattr(self, is_unrecorded)():
            engine.not_recorded(said)
        return made

    setattr(owner, name, told_alone if is_alone else told)

