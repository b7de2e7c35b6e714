"""Zeros away from the diagonal."""
from __future__ import annotations

from typing import Any

from ...._functions import torch
from ....nn import Module
from .base_sparsifier import BaseSparsifier

__all__ = ["NearlyDiagonalSparsifier"]


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Matrices keep the `nearliness` diagonals in the middle (an odd number; 1 keeps the diagonal alone, 0 nothing). ValueError for an even one, and for more
    than the matrix has."""

    def __init__(self, nearliness: int = 1) -> None:
        super().__init__(defaults={"nearliness": nearliness})

    def update_mask(self, module: Module, tensor_name: str, nearliness: int, **kwargs: Any) -> None:
        """Ones near the diagonal."""
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        mask.data = torch.zeros_like(mask)
        if nearliness <= 0:
            return
        if nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        away = nearliness // 2
        if away >= min(mask.shape):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        mask.data = torch.ones_like(mask).tril(away).triu(-away)
