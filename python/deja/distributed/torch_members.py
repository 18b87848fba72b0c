"""Members of a process group, noted before it is made: a rank that hangs there names those that it waits for."""

import functools
import sys

from deja import engine
from deja.evidence import seen


def install(module):
    """module: torch.distributed.distributed_c10d."""
    make = getattr(module, "new_group", None)
    if make is None or engine.mode() != engine.RECORDING:
        return

    @functools.wraps(make)
    def new_group(ranks=None, *args, **kwargs):
        _tell(module, ranks)
        return make(ranks, *args, **kwargs)

    module.new_group = new_group
    distributed = sys.modules.get("torch.distributed")
    if getattr(distributed, "new_group", None) is make:
        distributed.new_group = new_group


@seen.safely
def _tell(module, ranks):
    # One that is not to be in it makes nothing.
    if ranks is not None and module.get_rank() in ranks:
        seen.tell("group", members=",".join(str(int(rank)) for rank in sorted(ranks)))
