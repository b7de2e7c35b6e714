"""One step of a recurrence: RNNCell, LSTMCell, GRUCell."""
from __future__ import annotations

import math
from typing import Any

from torchlike import _VF
from torchlike._tensor import Tensor
from torchlike.nn import init
from torchlike.nn.modules.module import Module
from torchlike.nn.parameter import empty_parameter
from torchlike.ops.creation import zeros


class RNNCellBase(Module):
    """Parameters and checks of the cells; `num_chunks` is the number of gates."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = empty_parameter(gates, input_size, device=device, dtype=dtype)
        self.weight_hh = empty_parameter(gates, hidden_size, device=device, dtype=dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, empty_parameter(gates, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in +-1/sqrt(hidden_size), in order of registration."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check_dim(self, what: str, value: Tensor) -> None:
        if value.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {value.dim()}D instead")

    def _step(self, function: Any, input: Tensor, states: tuple[Tensor | None, ...]) -> tuple[Tensor, ...]:
        """Check, add the batch dimension if there is none, compute, and take it away again."""
        self._check_dim("input", input)
        for index, state in enumerate(states):
            if state is not None:
                self._check_dim(f"hx[{index}]" if len(states) > 1 else "hidden", state)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}")
        states = tuple(self._batched_state(input, index, state, batched) for index, state in enumerate(states))
        new = function(input, states if len(states) > 1 else states[0], self.weight_ih, self.weight_hh, self.bias_ih,
                       self.bias_hh)
        new = new if isinstance(new, tuple) else (new,)
        return new if batched else tuple(state.squeeze(0) for state in new)

    def _batched_state(self, input: Tensor, index: int, state: Tensor | None, batched: bool) -> Tensor:
        if state is None:
            return zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
        if not batched:
            state = state.unsqueeze(0)
        if input.size(0) != state.size(0):
            raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{index} batch size "
                               f"{state.size(0)}")
        if state.size(1) != self.hidden_size:
            raise RuntimeError(f"hidden{index} has inconsistent hidden_size: got {state.size(1)}, "
                               f"expected {self.hidden_size}")
        return state

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu: (N, H_in), (N, H_out) -> (N, H_out), or unbatched."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(_VF.rnn_tanh_cell if self.nonlinearity == "tanh" else _VF.rnn_relu_cell, input, (hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of LSTM: (N, H_in), ((N, H_out), (N, H_out)) -> (h', c'), or unbatched."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        if isinstance(hx, Tensor) and input.dim() == 2:  # the cell's state is missing
            raise TypeError("lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor")
        return self._step(_VF.lstm_cell, input, (None, None) if hx is None else tuple(hx))


class GRUCell(RNNCellBase):
    """One step of GRU: (N, H_in), (N, H_out) -> (N, H_out), or unbatched."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(_VF.gru_cell, input, (hx,))[0]
