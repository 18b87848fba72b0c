"""By what torch.nn.utils.clip_grad_norm_ has multiplied the gradients that the next step of an optimizer uses."""

import functools

import torch

from deja import engine

_is_wanted = False
_factors = {}  # by the id of the parameter


def install(module):
    """module: torch.nn.utils.clip_grad, before anybody has taken functions out of it."""
    if engine.mode() != engine.RECORDING:
        return
    clip = module.clip_grad_norm_

    @functools.wraps(clip)
    def clip_grad_norm_(parameters, max_norm, *args, **kwargs):
        if _is_wanted and not isinstance(parameters, torch.Tensor):
            parameters = list(parameters)
        norm = clip(parameters, max_norm, *args, **kwargs)
        if _is_wanted:
            _note([parameters] if isinstance(parameters, torch.Tensor) else parameters, float(max_norm), norm)
        return norm

    module.clip_grad_norm_ = clip_grad_norm_


def watch():
    """From now on it is noted."""
    global _is_wanted
    _is_wanted = True


def factor_of(parameter):
    return _factors.get(id(parameter), 1.0)


def forget():
    """What comes next is another step's."""
    _factors.clear()


def _note(parameters, max_norm, norm):
    if not isinstance(norm, torch.Tensor) or norm.device.type != "cpu" or norm.numel() != 1:
        return
    with torch.no_grad():
        # As torch computes it, with the same roundings.
        factor = float(torch.clamp(max_norm / (norm.detach() + 1e-6), max=1.0))
    for parameter in parameters:
        _factors[id(parameter)] = factor_of(parameter) * factor
