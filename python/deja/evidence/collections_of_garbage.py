"""Full collections of Python's garbage: a rank that is in one is late for the others."""

import gc

from deja.evidence import seen

_OLDEST = 2


def install():
    if seen.is_on():
        gc.callbacks.append(_tell)


@seen.safely
def _tell(phase, info):
    if info.get("generation") == _OLDEST:
        seen.tell("garbage", phase=phase, collected=info.get("collected", 0))
