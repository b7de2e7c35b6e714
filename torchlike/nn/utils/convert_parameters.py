"""Parameters as one flat vector, and back."""
from __future__ import annotations

from collections.abc import Iterable

from torchlike._tensor import Tensor
from torchlike.nn.modules.utils import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, flattened and concatenated."""
    import torchlike as torch

    parameters = list(parameters)
    _check_devices(parameters)
    return torch.cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make each parameter a view of its slice of `vec`."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    parameters = list(parameters)
    _check_devices(parameters)
    start = 0
    for p in parameters:
        p.data = vec[start:start + p.numel()].view_as(p).data
        start += p.numel()


def _check_devices(parameters: list[Tensor]) -> None:
    if len({p.device for p in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
