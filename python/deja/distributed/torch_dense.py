"""Tensors as the recorder takes them: runs of bytes with the number of an element type.

engine.operation() takes them where they lie, if each is dense and in host memory. Dense has them in any case.
"""

import array

import torch

from deja import engine
from deja.torch_dtypes import SIZED_DTYPES

BYTES = 255  # the type of tensors whose types differ, or have no number
NO_TENSORS = -1
_STRIDED = torch.strided

if engine.describe_tensors is not None:
    engine.describe_tensors(torch.Tensor, _STRIDED, SIZED_DTYPES)


def _strided(tensor):
    """Sparse ones with their zeros: how many elements a sparse result has is not known before."""
    return tensor.detach() if tensor.layout is torch.strided else tensor.detach().to_dense()


def flat(tensors):
    """The tensors of lists of lists, one after the other; of a tensor itself."""
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    found = []
    for tensor in tensors or ():
        found += flat(tensor)
    return found


class Dense:
    """Tensors as runs of bytes: themselves, or copies of those that have gaps or lie elsewhere."""

    __slots__ = ("_tensors", "_copies", "dtype", "pieces")

    def __init__(self, tensors, read):
        self._tensors, self._copies = tensors, ()
        kind, words = None, array.array("Q")
        for tensor in tensors:
            if not (tensor.is_cpu and tensor.layout is _STRIDED and tensor.is_contiguous()):
                tensor = self._copied(tensor, read)
            own = tensor.dtype
            kind = own if kind is None or kind is own else BYTES
            known = SIZED_DTYPES.get(own)
            words.append(tensor.data_ptr())
            words.append(tensor.numel() * (tensor.element_size() if known is None else known[1]))
        # The number of the type of all the tensors; BYTES: they differ, or it has none; NO_TENSORS: there is none.
        self.dtype = NO_TENSORS if kind is None else SIZED_DTYPES.get(kind, (BYTES,))[0]
        self.pieces = words.tobytes()  # as engine.group_call() takes them

    def runs(self):
        """(address, bytes) of each."""
        words = array.array("Q", self.pieces)
        return list(zip(words[::2], words[1::2]))

    def _copied(self, tensor, read):
        copy = _strided(tensor).cpu().contiguous() if read else torch.empty(tensor.shape, dtype=tensor.dtype)
        self._copies = (*self._copies, (tensor, copy))
        return copy

    def read_back(self):
        """The copies hold what the tensors hold now."""
        for tensor, copy in self._copies:
            copy.copy_(_strided(tensor))

    def write_back(self):
        """The tensors hold what the copies hold."""
        for tensor, copy in self._copies:
            if tensor.layout is torch.strided:
                tensor.detach().copy_(copy)
            else:  # a detached one has indices and values of its own
                with torch.no_grad():
                    tensor.copy_(copy.to_sparse())


def dtype_of(read, written):
    """The number of the element type of all these tensors, from those of what is read and of what is written."""
    if read == written or written == NO_TENSORS:
        return BYTES if read == NO_TENSORS else read
    return written if read == NO_TENSORS else BYTES
