"""Tensors as the recorder takes them: runs of bytes with the number of an element type."""

import torch

from deja import engine
from deja.torch_dtypes import SIZED_DTYPES

BYTES = 255  # the type of tensors whose types differ, or have no number
_STRIDED = torch.strided


def _strided(tensor):
    """Sparse ones with their zeros: how many elements a sparse result has is not known before."""
    return tensor.detach() if tensor.layout is torch.strided else tensor.detach().to_dense()


class Dense:
    """Tensors as runs of bytes: themselves, or copies of those that have gaps or lie elsewhere."""

    __slots__ = ("_tensors", "_copies", "kind", "pieces")

    def __init__(self, tensors, read):
        self._tensors, self._copies = tensors, ()
        kind, words = None, []
        for tensor in tensors:
            if not (tensor.is_cpu and tensor.layout is _STRIDED and tensor.is_contiguous()):
                tensor = self._copied(tensor, read)
            own = tensor.dtype
            kind = own if kind is None or kind is own else BYTES
            known = SIZED_DTYPES.get(own)
            words.append(tensor.data_ptr())
            words.append(tensor.numel() * (tensor.element_size() if known is None else known[1]))
        self.kind = kind  # of all the tensors; BYTES where they differ; None: there is none
        self.pieces = engine.Pieces(words)

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
    """The number of the element type of all these tensors."""
    if read.kind is written.kind or written.kind is None:
        kind = read.kind
    else:
        kind = written.kind if read.kind is None else BYTES
    return SIZED_DTYPES.get(kind, (BYTES,))[0]
