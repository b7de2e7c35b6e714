"""Marks of where quantized arithmetic begins and ends. Until a model is converted they hand on what they get, as in PyTorch."""
from __future__ import annotations

from typing import Any

from ...nn.modules.module import Module


class _Mark(Module):
    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """x."""
        return x


class QuantStub(_Mark):
    """Where floats would become quantized numbers."""


class DeQuantStub(_Mark):
    """Where quantized numbers would become floats."""


class QuantWrapper(Module):
    """A module between the two marks."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Any) -> Any:  # noqa: N803  (torch's name)
        """The module's result."""
        return self.dequant(self.module(self.quant(X)))
