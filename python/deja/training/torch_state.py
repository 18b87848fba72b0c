"""What torch's objects are made of, as state for checkpoints.

Which tensors there are is fixed when the first step begins. They are registered by address, and each checkpoint begins
with a look at where they are now. Tensors that have gaps, or that are on a device, are copied when they are asked for.
What comes to be later (an optimizer's moments for a parameter that had no gradient yet) is pickled with the rest.
"""

import io

import torch

from deja import registered, rng
from deja.torch_dtypes import DTYPES

_CPU = torch.device("cpu")
_MOST_DIMS = 8


def local(tensor):
    """This rank's part of a tensor, whose memory can be written to."""
    tensor = tensor.detach()
    return getattr(tensor, "_local_tensor", tensor)


def is_plain(tensor):
    return (
        tensor.layout is torch.strided
        and tensor.device == _CPU
        and tensor.is_contiguous()
        and tensor.dim() <= _MOST_DIMS
        and tensor.dtype in DTYPES
        and not tensor.is_complex()
    )


class Tensors:
    """Named tensors whose set is fixed. find() yields (name, tensor) as they are now."""

    def __init__(self, find):
        self._find = find
        self._known = {}  # by name: the tensor, and its address if it is registered by that

    def names(self):
        return self._known.keys()

    def fix(self):
        for name, tensor in self._find():
            tensor = local(tensor)
            if tensor.numel() != 0:
                self._known[name] = [tensor, None]
                self._register(name)

    def refresh(self):
        """They are where they are now."""
        now = {name: local(tensor) for name, tensor in self._find()}
        for name, held in self._known.items():
            tensor = now.get(name)
            if tensor is None:
                registered.forget(name)
                continue
            held[0] = tensor
            if tensor.data_ptr() != held[1]:
                self._register(name)

    def _register(self, name):
        tensor = self._known[name][0]
        if is_plain(tensor):
            self._known[name][1] = tensor.data_ptr()
            registered.tensor(name, tensor.data_ptr(), tensor.shape, DTYPES[tensor.dtype])
        elif self._known[name][1] != 0:
            self._known[name][1] = 0
            registered.callbacks(name, lambda: self._copied(name), lambda data: self._copy_back(name, data))

    def _copied(self, name):
        copy = self._known[name][0].cpu().contiguous()
        yield copy.data_ptr(), copy.numel() * copy.element_size()

    def _copy_back(self, name, data):
        tensor = self._known[name][0]
        if len(data) != tensor.numel() * tensor.element_size():
            raise registered.DoesNotFit(f"has {tensor.numel() * tensor.element_size()} bytes, recorded {len(data)}")
        recorded = torch.frombuffer(bytearray(data), dtype=tensor.dtype).view(tensor.shape)
        with torch.no_grad():
            tensor.copy_(recorded)


def of_module(name, module):
    """Parameters and buffers."""

    def find():
        for key, tensor in module.named_parameters():
            yield f"{name}/{key}", tensor
        for key, tensor in module.named_buffers():
            yield f"{name}/{key}", tensor

    return Tensors(find)


class Optimizer:
    """Moments as tensors, all else pickled."""

    def __init__(self, name, optimizer):
        self._name, self._optimizer = name, optimizer
        self.tensors = Tensors(lambda: ((key, value) for key, value in self._state() if _is_tensor(value)))

    def _state(self):
        for number, parameter in enumerate(self._parameters()):
            for key, value in self._optimizer.state.get(parameter, {}).items():
                yield f"{self._name}/{number}/{key}", value

    def _parameters(self):
        return (parameter for group in self._optimizer.param_groups for parameter in group["params"])

    def fix(self):
        self.tensors.fix()
        registered.blob(self._name, self._save, self._load)

    def _save(self):
        fixed = self.tensors.names()
        rest = {key: value for key, value in self._state() if key not in fixed}
        groups = [{key: value for key, value in group.items() if key != "params"}
                  for group in self._optimizer.param_groups]
        return dumps((groups, rest))

    def _load(self, data):
        groups, rest = loads(data)
        if len(groups) != len(self._optimizer.param_groups):
            raise registered.DoesNotFit(
                f"has {len(self._optimizer.param_groups)} groups of parameters, recorded {len(groups)}"
            )
        for group, recorded in zip(self._optimizer.param_groups, groups):
            group.update(recorded)
        parameters = list(self._parameters())
        for name, value in rest.items():
            number, _, key = name[len(self._name) + 1 :].partition("/")
            self._optimizer.state[parameters[int(number)]][key] = value


class Gradients:
    """Of a module: what backward passes before the step have left."""

    def __init__(self, name, module):
        self._name, self._module = name, module

    def fix(self):
        registered.blob(self._name, self._save, self._load)

    def _save(self):
        return dumps([None if p.grad is None else local(p.grad) for p in self._module.parameters()])

    def _load(self, data):
        for parameter, recorded in zip(self._module.parameters(), loads(data)):
            if recorded is None or parameter.grad is None:
                parameter.grad = recorded
            else:
                local(parameter.grad).copy_(recorded)


def of_generator(name, generator):
    registered.blob(
        name,
        lambda: rng.tensor_bytes(generator.get_state()),
        lambda data: generator.set_state(rng.torch_state(data)),
    )


def of_state_dict(name, held):
    """Whatever has state_dict and load_state_dict."""
    registered.blob(name, lambda: dumps(held.state_dict()), lambda data: held.load_state_dict(loads(data)))


def of_dict(name, held):
    def load(data):
        recorded = loads(data)
        held.clear()
        held.update(recorded)

    registered.blob(name, lambda: dumps(held), load)


def dumps(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def loads(data):
    # What it reads is what this program has saved.
    options = {"weights_only": False} if torch.__version__ >= "1.13" else {}
    return torch.load(io.BytesIO(data), **options)


def _is_tensor(value):
    return isinstance(value, torch.Tensor)
