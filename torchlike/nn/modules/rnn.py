"""Recurrent layers over sequences: RNN, LSTM, GRU. The cells of one step are in `_rnn_cells.py`.

A layer k in direction d has `weight_ih_lk`, `weight_hh_lk`, `bias_ih_lk`,
`bias_hh_lk` (and `weight_hr_lk` with projections),
with `_reverse` appended for the backward direction. The sums over time run in `torchlike.ops.rnn`.
"""
from __future__ import annotations

import math
import numbers
import operator
import warnings
from typing import Any

from torchlike import _VF
from torchlike._autocast import state as autocast_state
from torchlike._tensor import Tensor
from torchlike.nn import init
from torchlike.nn._packed import PackedSequence
from torchlike.nn.modules._rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from torchlike.nn.modules.module import Module
from torchlike.nn.parameter import empty_parameter
from torchlike.ops.creation import zeros

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _of_type(name: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")


class RNNBase(Module):
    """Checks, parameters and the shared part of forward."""

    __constants__ = ["mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout",
                     "bidirectional", "proj_size"]

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout) if isinstance(dropout, numbers.Number) else dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_arguments(dropout)
        self._all_weights = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:1 + bidirectional]:
                self._all_weights.append(self._make_weights(layer, suffix, device, dtype))
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    def _check_arguments(self, dropout: Any) -> None:
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element "
                             "being zeroed")
        if dropout > 0 and self.num_layers == 1:
            warnings.warn("dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                          f"num_layers greater than 1, but got dropout={dropout} and num_layers={self.num_layers}",
                          stacklevel=3)
        _of_type("bias", self.bias, bool)
        _of_type("batch_first", self.batch_first, bool)
        for name in ("input_size", "hidden_size"):
            _of_type(name, getattr(self, name), int)
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _make_weights(self, layer: int, suffix: str, device: Any, dtype: Any) -> list[str]:
        """Register the parameters of one layer in one direction; their names."""
        gates = _GATES[self.mode] * self.hidden_size
        out = self.proj_size or self.hidden_size
        shapes = {"weight_ih": (gates, self.input_size if layer == 0 else out * (1 + self.bidirectional)),
                  "weight_hh": (gates, out)}
        if self.bias:
            shapes.update(bias_ih=(gates,), bias_hh=(gates,))
        if self.proj_size > 0:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for kind, shape in shapes.items():
            name = f"{kind}_l{layer}{suffix}"
            setattr(self, name, empty_parameter(*shape, device=device, dtype=dtype))
            names.append(name)
        return names

    @property
    def _flat_weights(self) -> list[Tensor]:
        weights = [getattr(self, name) for name in self._flat_weights_names]
        given = self.__dict__.get("_given_weights")
        return given[1] if given is not None and all(map(operator.is_, weights, given[0])) else weights

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Tensor]) -> None:
        """Other tensors to compute with, which libraries assign; as in torch they count until a weight of a name is another one."""
        self.__dict__.pop("_given_weights", None)
        own = self._flat_weights
        if len(own) != len(weights) or not all(map(operator.is_, own, weights)):
            self.__dict__["_given_weights"] = own, list(weights)

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters, a list per layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing to do: XLA lays out weights itself."""

    def reset_parameters(self) -> None:
        """Uniform in +-1/sqrt(hidden_size), in order of registration."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def __getstate__(self) -> dict[str, Any]:
        """With the list of weights that PyTorch keeps beside them, for files that it reads."""
        state = super().__getstate__()
        return {**state, "_flat_weights": self._flat_weights} if all(name in self._parameters for name in self._flat_weights_names) else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"proj_size": 0, **state})
        for name in ("_flat_weights", "_flat_weight_refs"):  # kept by torch, computed here
            self.__dict__.pop(name, None)

    # --------------------------------------------------------------------------------------------------------- checks
    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise unless dtype, dimensions and feature size of the input fit."""
        dtype = getattr(self, self._flat_weights_names[0]).dtype
        if input.dtype != dtype and not autocast_state.enabled:
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert input: "
                             f"input.to({dtype}), or convert model: model.to({input.dtype})")
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, "
                               f"got {input.size(-1)}")

    def _hidden_shape(self, input: Tensor, batch_sizes: Tensor | None, size: int) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return self.num_layers * (1 + self.bidirectional), batch, size

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape that h_0 must have."""
        return self._hidden_shape(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx: Tensor, expected_hidden_size: tuple[int, int, int],
                          msg: str = "Expected hidden size {}, got {}") -> None:
        """Raise unless `hx` has the expected shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise unless input and hidden state fit each other and the layer."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The hidden state with its batch in the order of `permutation`."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # -------------------------------------------------------------------------------------------------------- forward
    def _zero_state(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        return zeros(self.get_expected_hidden_size(input, batch_sizes), dtype=input.dtype, device=input.device)

    def _batched_state(self, hx: Any, batched: bool) -> Any:
        """The given state with a batch dimension."""
        if batched:
            if hx.dim() != 3:
                raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")
            return hx
        if hx.dim() != 2:
            raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")
        return hx.unsqueeze(1)

    def _unbatched_state(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def _run(self, input: Tensor, batch_sizes: Tensor | None, hx: Any) -> tuple[Tensor, Any]:
        function = getattr(_VF, self.mode.lower())
        options = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            output, *hidden = function(input, hx, *options, self.batch_first)
        else:
            output, *hidden = function(input, batch_sizes, hx, *options)
        return output, hidden[0] if len(hidden) == 1 else tuple(hidden)

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            kind = "RNN" if self.mode.startswith("RNN") else self.mode
            raise ValueError(f"{kind}: Expected input to be 2D or 3D, got {input.dim()}D "
                             f"{'tensor ' if kind == 'RNN' else ''}instead")
        batched, batch_dim = input.dim() == 3, 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        hx = self._zero_state(input, None) if hx is None else self._batched_state(hx, batched)
        self.check_forward_args(input, hx, None)
        output, hidden = self._run(input, None, hx)
        if batched:
            return output, hidden
        return output.squeeze(batch_dim), self._unbatched_state(hidden)

    def _forward_packed(self, sequence: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        input, batch_sizes, sorted_indices, unsorted_indices = sequence
        if hx is None:
            hx = self._zero_state(input, batch_sizes)
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        output, hidden = self._run(input, batch_sizes, hx)
        return (PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices),
                self.permute_hidden(hidden, unsorted_indices))

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout",
                                                                                                            0),
                              ("bidirectional", False)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh), or relu in place of tanh. Elman, 1990.

    Input (L, N, H_in), (N, L, H_in) with `batch_first`, (L, H_in) or a PackedSequence; h_0 (layers * directions, N,
                                                                                             H_out).
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
                 *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        self.nonlinearity = nonlinearity
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, *args, **kwargs)


class LSTM(RNNBase):
    """i, f, o = sigmoid(...), g = tanh(...), c_t = f c_(t-1) + i g, h_t = o tanh(c_t).

    Hochreiter and Schmidhuber, 1997. Shapes as in RNN, with a pair (h_0, c_0). With `proj_size`, h_t is projected by
    `weight_hr` (Sak et al., 2014).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape that c_0 must have."""
        return self._hidden_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: tuple[Tensor, Tensor], batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes),
                               "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes),
                               "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: tuple[Tensor, Tensor], permutation: Tensor | None) -> tuple[Tensor, Tensor]:
        return tuple(super(LSTM, self).permute_hidden(state, permutation) for state in hx)

    def _zero_state(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[Tensor, Tensor]:
        cell = zeros(self.get_expected_cell_size(input, batch_sizes), dtype=input.dtype, device=input.device)
        return super()._zero_state(input, batch_sizes), cell

    def _batched_state(self, hx: tuple[Tensor, Tensor], batched: bool) -> tuple[Tensor, Tensor]:
        want = 3 if batched else 2
        if hx[0].dim() != want or hx[1].dim() != want:
            raise RuntimeError(f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, hx and cx should also be "
                               f"{want}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors")
        return (hx[0], hx[1]) if batched else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))

    def _unbatched_state(self, hx: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return hx[0].squeeze(1), hx[1].squeeze(1)


class GRU(RNNBase):
    """r, z = sigmoid(...), n = tanh(W_in x_t + b_in + r (W_hn h_(t-1) + b_hn)), h_t = (1 - z) n + z h_(t-1).

    Cho et al., 2014. Shapes as in RNN.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)
