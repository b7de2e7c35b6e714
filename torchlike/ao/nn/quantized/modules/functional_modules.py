"""Arithmetic of quantized tensors as a module that knows the scale of its results."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....._tensor import Tensor
from .....nn.modules.linear import Identity
from .....nn.modules.module import Module
from .utils import Scaled, observed


class QFunctional(Scaled):
    """What FloatFunctional becomes: results have `scale` and `zero_point`, and go through `activation_post_process`."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        """The scale."""
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x: Any) -> Any:
        """Not what this module is for."""
        raise RuntimeError("Functional is not intended to use the 'forward'. Please use the underlying operation")

    def _run(self, name: str, *operands: Any) -> Tensor:
        from ....._quantized.operators import quantized
        return self.activation_post_process(getattr(quantized, name)(*operands, self.scale, self.zero_point))

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum."""
        return self._run("add", x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """The product."""
        return self._run("mul", x, y)

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu of the sum."""
        return self._run("add_relu", x, y)

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """The tensors joined."""
        return self._run("cat", x, dim)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """The quantized form of an observed FloatFunctional."""
        made = cls()
        made.scale, made.zero_point = observed(mod)
        return made


