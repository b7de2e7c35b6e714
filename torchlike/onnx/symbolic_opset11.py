"""Operations of opset 11 as ONNX nodes, for functions registered with `register_custom_op_symbolic`."""
from __future__ import annotations

from typing import Any

import numpy as np


def unsqueeze(g: Any, self: Any, dim: int) -> Any:
    """A dimension of size 1 at `dim`."""
    return g.op("Unsqueeze", self, g.op("Constant", value_t=np.asarray([dim])))


def squeeze(g: Any, self: Any, dim: int) -> Any:
    """Without the dimension `dim`, of size 1."""
    return g.op("Squeeze", self, g.op("Constant", value_t=np.asarray([dim])))


def select(g: Any, self: Any, dim: int, index: Any) -> Any:
    """The elements of `self` at `index` along `dim`."""
    return g.op("Gather", self, index, axis_i=dim)
