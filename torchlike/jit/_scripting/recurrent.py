"""Recurrent layers and packed sequences in TorchScript. Each function is compiled in place of a method or function of torch.nn."""
# ruff: noqa: UP006, UP035, UP045, A002  (the types as TorchScript calls them, the arguments as PyTorch does)
from __future__ import annotations

from types import FunctionType
from typing import List, Optional, Tuple

from ... import nn
from ..._tensor import Tensor
from ...nn._packed import PackedSequence
from ...nn.modules import _rnn_cells
from ...nn.modules.rnn import RNNBase
from ...nn.utils import rnn
from .operators import aten


def _zeros(self, input: Tensor, batch: int, size: int) -> Tensor:
    return aten.zeros([self.num_layers * (2 if self.bidirectional else 1), batch, size], dtype=input.dtype, device=input.device)


def _check(self, input: Tensor) -> None:
    if input.size(-1) != self.input_size:
        raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")


def _rnn(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    if input.dim() != 2 and input.dim() != 3:
        raise ValueError(f"RNN: Expected input to be 2D or 3D, got {input.dim()}D tensor instead")
    batched = input.dim() == 3
    place = 0 if self.batch_first else 1
    if not batched:
        input = input.unsqueeze(place)
        if hx is not None:
            hx = hx.unsqueeze(1)
    self.check_input(input)
    if hx is None:
        hx = self._zero_state(input, input.size(place), self.hidden_size)
    if self.mode == "GRU":
        out, hidden = aten.gru(input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
    elif self.mode == "RNN_TANH":
        out, hidden = aten.rnn_tanh(input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
    else:
        out, hidden = aten.rnn_relu(input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
    if not batched:
        out = out.squeeze(place)
        hidden = hidden.squeeze(1)
    return out, hidden


def _packed_rnn(self, input: PackedSequence, hx: Optional[Tensor] = None) -> Tuple[PackedSequence, Tensor]:
    data, sizes, order, back = input
    self.check_input(data)
    if hx is None:
        hx = self._zero_state(data, int(sizes[0]), self.hidden_size)
    elif order is not None:
        hx = hx.index_select(1, order)
    if self.mode == "GRU":
        out, hidden = aten.gru(data, sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
    elif self.mode == "RNN_TANH":
        out, hidden = aten.rnn_tanh(data, sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
    else:
        out, hidden = aten.rnn_relu(data, sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
    if back is not None:
        hidden = hidden.index_select(1, back)
    return PackedSequence(out, sizes, order, back), hidden


def _lstm(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
    if input.dim() != 2 and input.dim() != 3:
        raise ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
    batched = input.dim() == 3
    place = 0 if self.batch_first else 1
    if not batched:
        input = input.unsqueeze(place)
    self.check_input(input)
    if hx is None:
        h = self._zero_state(input, input.size(place), self.proj_size if self.proj_size > 0 else self.hidden_size)
        c = self._zero_state(input, input.size(place), self.hidden_size)
    else:
        h, c = hx
        if not batched:
            h = h.unsqueeze(1)
            c = c.unsqueeze(1)
    out, h, c = aten.lstm(input, [h, c], self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first)
    if not batched:
        return out.squeeze(place), (h.squeeze(1), c.squeeze(1))
    return out, (h, c)


def _packed_lstm(self, input: PackedSequence, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[PackedSequence, Tuple[Tensor, Tensor]]:
    data, sizes, order, back = input
    self.check_input(data)
    if hx is None:
        h = self._zero_state(data, int(sizes[0]), self.proj_size if self.proj_size > 0 else self.hidden_size)
        c = self._zero_state(data, int(sizes[0]), self.hidden_size)
    else:
        h, c = hx
        if order is not None:
            h = h.index_select(1, order)
            c = c.index_select(1, order)
    out, h, c = aten.lstm(data, sizes, [h, c], self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
    if back is not None:
        h = h.index_select(1, back)
        c = c.index_select(1, back)
    return PackedSequence(out, sizes, order, back), (h, c)


# -- cells --------------------------------------------------------------------------------------------------------------------


def _rows(input: Tensor, hx: Optional[Tensor], size: int) -> Tuple[Tensor, Tensor]:
    """A cell's input and state as batches."""
    batched = input.dim() == 2
    if not batched:
        input = input.unsqueeze(0)
    if hx is None:
        hx = aten.zeros([input.size(0), size], dtype=input.dtype, device=input.device)
    elif not batched:
        hx = hx.unsqueeze(0)
    return input, hx


def _rnn_cell(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
    batched = input.dim() == 2
    input, hx = _rows(input, hx, self.hidden_size)
    if self.nonlinearity == "tanh":
        out = aten.rnn_tanh_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    else:
        out = aten.rnn_relu_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    return out if batched else out.squeeze(0)


def _gru_cell(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
    batched = input.dim() == 2
    input, hx = _rows(input, hx, self.hidden_size)
    out = aten.gru_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    return out if batched else out.squeeze(0)


def _lstm_cell(self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
    batched = input.dim() == 2
    if not batched:
        input = input.unsqueeze(0)
    if hx is None:
        h = aten.zeros([input.size(0), self.hidden_size], dtype=input.dtype, device=input.device)
        c = h
    else:
        h, c = hx
        if not batched:
            h = h.unsqueeze(0)
            c = c.unsqueeze(0)
    h, c = aten.lstm_cell(input, [h, c], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    if not batched:
        return h.squeeze(0), c.squeeze(0)
    return h, c


# -- packed sequences ---------------------------------------------------------------------------------------------------------


def _inverse(permutation: Optional[Tensor]) -> Optional[Tensor]:
    if permutation is None:
        return None
    out = aten.empty_like(permutation)
    out[permutation] = aten.arange(0, permutation.numel(), device=permutation.device)
    return out


def _pack(input: Tensor, lengths: Tensor, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    order: Optional[Tensor] = None
    if not enforce_sorted:
        lengths, longest_first = aten.sort(lengths, descending=True)
        order = longest_first.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, sizes = aten._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, sizes, order, _inverse(order))


def _pad(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    longest = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(f"Expected total_length to be at least the length of the longest sequence in input, but got total_length={total_length} and max "
                             f"sequence length being {longest}")
        longest = total_length
    padded, lengths = aten._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, longest)
    back = sequence.unsorted_indices
    if back is not None:
        return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]
    return padded, lengths


def _pad_list(sequences: List[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
    return aten.pad_sequence(sequences, batch_first, padding_value, padding_side)


def methods() -> dict[FunctionType, FunctionType]:
    """What is compiled in place of which method or function."""
    return {RNNBase._zero_state: _zeros, nn.LSTM._zero_state: _zeros, RNNBase.check_input: _check, RNNBase.forward: _rnn,
            RNNBase._forward_packed: _packed_rnn, _rnn_cells.RNNCell.forward: _rnn_cell, _rnn_cells.GRUCell.forward: _gru_cell,
            _rnn_cells.LSTMCell.forward: _lstm_cell, rnn.pack_padded_sequence: _pack, rnn.pad_packed_sequence: _pad, rnn.pad_sequence: _pad_list,
            rnn.invert_permutation: _inverse}


LSTM = {"forward": _lstm, "_forward_packed": _packed_lstm}  # a class without methods of its own
