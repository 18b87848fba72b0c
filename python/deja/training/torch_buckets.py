"""Where DistributedDataParallel has the gradients of its parameters among the results of collectives.

It sums gradients in buckets, divided by the number of ranks before, and copies the sums to where the optimizer looks
for them. What it copied lies in the result of an all-reduce. (With gradient_as_bucket_view it copies nothing, and a
gradient's own address says where it is.)
"""

import collections
import functools
import os
import weakref

import torch

from deja import engine
from deja.distributed import torch_operations

_MOST_BYTES = 1 << 30  # of a model's gradients: torch tells how its buckets are divided by making others of zeros
_FLOAT32 = 4

_GLOO_VARIABLES = ("GLOO_SOCKET_IFNAME", "GLOO_DEVICE_TRANSPORT")

_TRIES = 3  # to learn how a model's are: they may be divided again

_models = weakref.WeakSet()
_layouts = weakref.WeakKeyDictionary()  # by model: what _layout_of said, each time that it was asked
_reduced = collections.deque(maxlen=1024)  # since the last look: address and elements
_last = []  # what was reduced then
_places = {}  # what places() says


def install(module):
    """module: torch.nn.parallel.distributed. From then on every model is known."""
    kind = module.DistributedDataParallel
    _name_backends(kind)
    if engine.mode() != engine.RECORDING:
        return
    make = kind.__init__

    @functools.wraps(make)
    def init(self, *args, **kwargs):
        make(self, *args, **kwargs)
        _models.add(self)

    kind.__init__ = init


def _name_backends(kind):
    """What a model says of itself has the name of the program's backend, not that of Deja's group."""
    tell = kind._get_ddp_logging_data

    @functools.wraps(tell)
    def logging_data(self):
        data = tell(self)
        if data.get("backend_name") == "deja_gloo":
            data["backend_name"] = "gloo"
            for name in _GLOO_VARIABLES:  # which torch adds for a group of that name
                data.setdefault(name.lower(), os.environ.get(name, "N/A"))
            data.setdefault("gloo_num_threads", torch.distributed.ProcessGroupGloo._Options()._threads)
        return data

    kind._get_ddp_logging_data = logging_data


def watch():
    """From now on it is noted what is reduced."""
    torch_operations.on_allreduce = _note


def _note(tensors):
    if len(tensors) == 1 and tensors[0].dtype is torch.float32:
        _reduced.append((tensors[0].data_ptr(), tensors[0].numel()))


def places():
    """The address of each gradient in the results of the last reductions, by the id of its parameter. There is none
    for a gradient that no model has copied."""
    global _last
    reduced = list(_reduced)
    _reduced.clear()
    if reduced and reduced != _last:
        _last = reduced
        for model in _models:
            if not model.gradient_as_bucket_view:
                _find(model, reduced)
    return _places


def _find(model, reduced):
    asked = _layouts.setdefault(model, [])
    addresses = _match(asked[-1], reduced) if asked else None
    if addresses is None and len(asked) < _TRIES:
        asked.append(_layout_of(model))
        addresses = _match(asked[-1], reduced)
    for start, (_, parts) in zip(addresses or (), asked[-1]):
        for key, offset in parts:
            _places[key] = start + offset


def _match(layout, reduced):
    """The addresses of the last reductions of buckets of these sizes. Buckets are reduced in their order."""
    addresses, at = [], len(reduced)
    for size, _ in reversed(layout):
        at -= 1
        while at >= 0 and reduced[at][1] != size:
            at -= 1
        if at < 0:
            return None
        addresses.append(reduced[at][0])
    return addresses[::-1]


def _layout_of(model):
    """For each bucket its elements, and of each parameter its id and the offset of its gradient in bytes."""
    if sum(p.numel() for p in model.parameters() if p.requires_grad) * _FLOAT32 > _MOST_BYTES:
        return []
    layout = []
    for bucket in model.reducer._get_zeros_like_grad_buckets():
        whole = bucket.buffer()
        if whole.dtype is torch.float32:
            offsets = (part.data_ptr() - whole.data_ptr() for part in bucket.gradients())
            layout.append((whole.numel(), list(zip(map(id, bucket.parameters()), offsets))))
    return layout
