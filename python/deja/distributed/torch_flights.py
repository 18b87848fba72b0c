"""Whether the program changes a tensor while an operation on it is under way: torch counts the changes of each.

Not of a view of a part: all parts of a tensor have one count.
"""

import torch

from deja.evidence import seen

# For others, torch writes what the operation has brought.
_WRITES_BY_ITSELF = {"allreduce", "broadcast", "reduce", "recv"}
are_wanted = seen.is_on()


@seen.safely
def watched(name, inputs, outputs, ends_elsewhere):
    """What tell_if_changed() gets when the operation has ended; None: nothing. Call it when the operation is under way,
    where such changes are wanted. ends_elsewhere: the program may be at another place then."""
    tensors = (inputs or outputs) if name in _WRITES_BY_ITSELF or name == "send" else [t for t in inputs if t not in _ids(outputs)]
    if len(tensors) != 1 or not _counts(tensors[0]):
        return None
    return name, tensors[0], tensors[0]._version, seen.own_frames(3) if ends_elsewhere else None


class _ids:
    """Tensors by identity: == of theirs compares elements."""

    def __init__(self, tensors):
        self._all = {id(tensor) for tensor in tensors}

    def __contains__(self, tensor):
        return id(tensor) in self._all


def _counts(tensor):
    if tensor.is_inference() or tensor.layout is not torch.strided:
        return False
    base = tensor._base
    return base is None or base.numel() == tensor.numel()


@seen.safely
def tell_if_changed(watched, operation):
    """Once the operation has ended."""
    name, tensor, before, issued = watched
    if tensor._version != before:
        ended = seen.place(3)
        issued = ended if issued is None else seen.text_of_place(issued)
        times = tensor._version - before
        seen.tell("changed", call=name, operation=operation, times=times, issued=issued, ended=ended)
