"""Operations that fail: what is raised for whom. The last rank is gone by then."""
import datetime
import os
import re
import sys
import warnings

import job
import torch
import torch.distributed as dist

warnings.simplefilter("ignore")
WHAT = sys.argv[1]
rank, world = job.start(**({"timeout": datetime.timedelta(seconds=3)} if WHAT == "timeout" else {}))


def tell(error):
    """What was raised, but for addresses, where gloo's sources were, and how the loss of a peer was noticed."""
    text = " ".join(re.sub(r"\[\S*\]\S*", "", str(error).split("\n")[0]).split())
    text = re.sub(r"Connection closed by peer|(Read error )?Connection reset by peer", "lost", text)
    job.say(f"{type(error).__module__}.{type(error).__name__}: {text}")


def model():
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))


def ended():
    """The last rank leaves once all have come here; the others wait until its connections are closed."""
    dist.barrier()
    if rank == world - 1:
        os._exit(0)
    try:
        dist.barrier()
    except RuntimeError as error:
        tell(error)


def after_the_loss():
    """Each way in which an operation can fail, one after the other."""
    parallel = torch.nn.parallel.DistributedDataParallel(model())
    parallel(torch.ones(2, 4)).sum().backward()
    loss = parallel(torch.ones(2, 4)).sum()
    ended()

    def started():
        return dist.all_reduce(torch.ones(3), async_op=True)

    for name, fails in (("sync", lambda: dist.all_reduce(torch.ones(3))),
                        ("async", lambda: started().wait()),
                        ("future", lambda: started().get_future().wait()),
                        ("then", lambda: started().get_future().then(lambda done: done.value()[0]).wait()),
                        ("construct", lambda: torch.nn.parallel.DistributedDataParallel(model())),
                        ("backward", loss.backward)):
        job.say(name)
        try:
            fails()
        except Exception as error:
            tell(error)


def main():
    if WHAT == "lost":
        after_the_loss()
    elif WHAT == "functional":
        from torch.distributed import _functional_collectives as functional

        ended()
        job.say(functional.all_reduce(torch.ones(3), "sum", dist.group.WORLD) + 1)
    elif WHAT == "shapes":
        dist.all_reduce(torch.ones(3))
        dist.all_reduce(torch.ones(3 + rank))
    elif WHAT == "calls":
        if rank == 0:
            dist.all_reduce(torch.ones(3))
        else:
            dist.broadcast(torch.ones(3), 0)
    elif WHAT == "timeout":
        store = dist.distributed_c10d._get_default_store()
        dist.barrier()
        if rank == world - 1:
            try:
                store.wait(["over"], datetime.timedelta(seconds=60))
            finally:
                os._exit(0)
        try:
            dist.all_reduce(torch.ones(3))
        finally:
            store.set("over", "1")


try:
    main()
except Exception as error:
    tell(error)
job.say("goes on")
sys.stdout.flush()
os._exit(0)
