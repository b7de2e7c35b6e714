"""LSTM, GRU and the cells of one step with quantized weights."""
from __future__ import annotations

import numbers
from typing import Any

from ......_core import dtype as dt
from ......_core.history import warn
from ......_public import FUNCTIONS
from ......_tensor import Tensor
from ......nn._packed import PackedSequence
from ......nn.modules import rnn as floats
from ......nn.modules.container import ModuleList
from ......nn.modules.module import Module
from ......ops.creation import zeros
from ...modules.utils import _quantize_weight
from .linear import weight_observer


def pack_weight_bias(qweight: Tensor, bias: Tensor | None, dtype: Any) -> Any:
    """A weight and a bias ready for products."""
    from ......_quantized import linear
    return (linear.pack if dtype is dt.qint8 else linear.pack_half)(qweight, bias)


def _random(rows: int, columns: int, dtype: Any, scale: float) -> Tensor:
    weight = FUNCTIONS["randn"](rows, columns, dtype=dt.float32)
    return FUNCTIONS["quantize_per_tensor"](weight, scale, 0, dt.qint8) if dtype is dt.qint8 else weight


def _cell(packed_ih: Any, packed_hh: Any, reduce_range: bool = True) -> Any:
    from ......_quantized.recurrent import CellParams
    return CellParams(packed_ih, packed_hh, reduce_range)


def _quantized(weight: Tensor, make_observer: Any) -> Tensor:
    observer = make_observer()
    weight = weight.detach().float()
    if observer.dtype is not dt.qint8:
        return weight
    observer(weight)
    return _quantize_weight(weight, observer)


class PackedParameter(Module):
    """A cell's products as a module, which are saved as they are."""

    def __init__(self, param: Any) -> None:
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, *lists: Any) -> None:
        self.param = state_dict[prefix + "param"]
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)


class RNNBase(Module):
    """What LSTM and GRU have in common."""

    _version = 2

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False, dtype: Any = dt.qint8) -> None:
        super().__init__()
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if dropout > 0 and num_layers == 1:
            warn(f"dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, but got "
                 f"dropout={dropout} and num_layers={num_layers}")
        self.mode, self.input_size, self.hidden_size, self.num_layers, self.bias = mode, input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.dtype, self.version, self.training = batch_first, float(dropout), bidirectional, dtype, 2, False
        if mode not in floats._GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        gates, cells = floats._GATES[mode] * hidden_size, []
        for layer in range(num_layers):
            for _ in range(1 + bidirectional):
                width = input_size if layer == 0 else hidden_size * (1 + bidirectional)
                weights = [_random(gates, n, dtype, 0.1) for n in (width, hidden_size)]
                biases = [FUNCTIONS["randn"](gates, dtype=dt.float32) for _ in range(2)]
                cells.append(PackedParameter(_cell(*(pack_weight_bias(w, b, dtype) for w, b in zip(weights, biases)))))
        self._all_weight_values = ModuleList(cells)

    def _names(self) -> list[str]:
        return [f"l{layer}{suffix}" for layer in range(self.num_layers) for suffix in ("", "_reverse")[:1 + self.bidirectional]]

    def _get_name(self) -> str:
        return "DynamicQuantizedRNN"

    def extra_repr(self) -> str:
        """Sizes, and what is not as usual."""
        usual = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        return ", ".join([str(self.input_size), str(self.hidden_size), *(f"{name}={getattr(self, name)}" for name, x in usual.items() if getattr(self, name) != x)])

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """RuntimeError for an input of other dimensions or width."""
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of a state."""
        batch = input.size(0 if self.batch_first else 1) if batch_sizes is None else int(batch_sizes[0])
        return self.num_layers * (1 + self.bidirectional), batch, self.hidden_size

    def check_hidden_size(self, hx: Tensor, expected_hidden_size: tuple, msg: str = "Expected hidden size {}, got {}") -> None:
        """RuntimeError for a state of another shape."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.size())))

    def _run(self, input: Tensor | PackedSequence, states: tuple[Tensor, ...] | None, count: int) -> tuple[Any, tuple[Tensor, ...]]:
        """Outputs as the input lies, and last states; without states, from zeros."""
        packed = isinstance(input, PackedSequence)
        data, sizes, order, back = input if packed else (input, None, None, None)
        self.check_input(data, sizes)
        expected = self.get_expected_hidden_size(data, sizes)
        if states is None:
            states = (zeros(*expected, dtype=data.dtype, device=data.device),) * count
        else:
            for state, what in zip(states, ("hidden[0]", "hidden[1]") if count == 2 else ("hidden",)):
                self.check_hidden_size(state, expected, f"Expected {what} size {{}}, got {{}}")
            if order is not None:
                states = tuple(s.index_select(1, order) for s in states)
        from ......_quantized.recurrent import layers
        x = data.transpose(0, 1) if self.batch_first and not packed else data
        made, last = layers(self.mode, [c.param for c in self._all_weight_values], x, states, self.bidirectional, self.dropout, self.training,
                            None if sizes is None else sizes.tolist())
        if packed:
            return PackedSequence(made, sizes, order, back), last if back is None else tuple(s.index_select(1, back) for s in last)
        return made.transpose(0, 1) if self.batch_first else made, last

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, *lists: Any) -> None:
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)

    def get_weight(self) -> dict[str, Tensor]:
        """Weights by the names that float layers have for them."""
        return {f"weight_{kind}_{name}": getattr(c.param, kind).weight for name, c in zip(self._names(), self._all_weight_values) for kind in ("ih", "hh")}

    def get_bias(self) -> dict[str, Tensor]:
        """Biases by the names that float layers have for them."""
        return {f"bias_{kind}_{name}": getattr(c.param, kind).bias for name, c in zip(self._names(), self._all_weight_values) for kind in ("ih", "hh")}

    def set_weight_bias(self, weight_bias_dict: dict[str, Tensor]) -> None:
        """Take other weights and biases, by these names."""
        def packed(of: str) -> Any:
            weight = weight_bias_dict["weight_" + of]
            return pack_weight_bias(weight, weight_bias_dict["bias_" + of], weight.dtype)
        self._all_weight_values = ModuleList([PackedParameter(_cell(packed("ih_" + name), packed("hh_" + name))) for name in self._names()])

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> RNNBase:
        """The quantized form of an LSTM or GRU that has a `qconfig`. AssertionError for another module."""
        if type(mod) not in (floats.LSTM, floats.GRU):
            raise AssertionError("nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        observer = weight_observer(mod)
        kind = observer().dtype
        if kind not in (dt.qint8, dt.float16):
            raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {kind}")
        if not mod.bias:
            raise AssertionError("mod.bias must be True")
        if mod.proj_size:
            raise RuntimeError("torchlike: a quantized LSTM has no projections")
        made = (LSTM if type(mod) is floats.LSTM else GRU)(mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout,
                                                          mod.bidirectional, dtype=kind)
        made.set_weight_bias({name: _quantized(x, observer) if name.startswith("weight") else x for name, x in mod.named_parameters(recurse=False)})
        return made


class LSTM(RNNBase):
    """torch.nn.LSTM with quantized weights: input (steps, batch, features) or a PackedSequence, hx two states."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedLSTM"

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        """Outputs, and both last states."""
        made, (h, c) = self._run(input, hx, 2)
        return made, (h, c)


class GRU(RNNBase):
    """torch.nn.GRU with quantized weights: input (steps, batch, features) or a PackedSequence, hx a state."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedGRU"

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Outputs, and the last state."""
        made, (h,) = self._run(input, None if hx is None else (hx,), 1)
        return made, h


class RNNCellBase(Module):
    """What the cells have in common."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, num_chunks: int = 4, dtype: Any = dt.qint8) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.weight_dtype = input_size, hidden_size, bias, dtype
        rows = num_chunks * hidden_size
        if bias:
            self.bias_ih, self.bias_hh = (FUNCTIONS["randn"](rows, dtype=dt.float32) for _ in range(2))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self._packed_weight_ih = pack_weight_bias(_random(rows, input_size, dtype, 1.0), self.bias_ih, dtype)
        self._packed_weight_hh = pack_weight_bias(_random(rows, hidden_size, dtype, 1.0), self.bias_hh, dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedRNNBase"

    def extra_repr(self) -> str:
        """Sizes, and what is not as usual."""
        more = [f"bias={self.bias}"] if self.bias is not True else []
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            more.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join([str(self.input_size), str(self.hidden_size), *more])

    def check_forward_input(self, input: Tensor) -> None:
        """RuntimeError for another width."""
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)}, expected {self.input_size}")

    def check_forward_hidden(self, input: Tensor, hx: Tensor, hidden_label: str = "") -> None:
        """RuntimeError for a state of another shape."""
        if input.size(0) != hx.size(0):
            raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{hidden_label} batch size {hx.size(0)}")
        if hx.size(1) != self.hidden_size:
            raise RuntimeError(f"hidden{hidden_label} has inconsistent hidden_size: got {hx.size(1)}, expected {self.hidden_size}")

    def _start(self, input: Tensor, states: tuple[Tensor, ...] | None, count: int) -> tuple[Tensor, ...]:
        self.check_forward_input(input)
        if states is None:
            return (zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device),) * count
        for state, label in zip(states, ("[0]", "[1]") if count == 2 else ("",)):
            self.check_forward_hidden(input, state, label)
        return states

    def _params(self) -> Any:
        return _cell(self._packed_weight_ih, self._packed_weight_hh)

    def get_weight(self) -> dict[str, Tensor]:
        """Both weights."""
        return {"weight_ih": self._packed_weight_ih.weight, "weight_hh": self._packed_weight_hh.weight}

    def get_bias(self) -> dict[str, Tensor]:
        """Both biases."""
        return {"bias_ih": self._packed_weight_ih.bias, "bias_hh": self._packed_weight_hh.bias}

    def set_weight_bias(self, weight_bias_dict: dict[str, dict[str, Tensor]]) -> None:
        """Take other weights and biases."""
        weights, biases = weight_bias_dict["weight"], weight_bias_dict["bias"]
        self._packed_weight_ih = pack_weight_bias(weights["weight_ih"], biases["bias_ih"], self.weight_dtype)
        self._packed_weight_hh = pack_weight_bias(weights["weight_hh"], biases["bias_hh"], self.weight_dtype)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, *lists: Any) -> None:
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            setattr(self, name, state_dict.pop(prefix + name))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> RNNCellBase:
        """The quantized form of a cell that has a `qconfig`. AssertionError for another module."""
        kinds = {floats.LSTMCell: LSTMCell, floats.GRUCell: GRUCell, floats.RNNCell: RNNCell}
        if type(mod) not in kinds:
            raise AssertionError("nn.quantized.dynamic.RNNCellBase.from_float only works for nn.LSTMCell, nn.GRUCell and nn.RNNCell")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        observer = weight_observer(mod)
        kind = observer().dtype
        if kind not in (dt.qint8, dt.float16):
            raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {kind}")
        options = {"nonlinearity": mod.nonlinearity} if type(mod) is floats.RNNCell else {}
        made = kinds[type(mod)](mod.input_size, mod.hidden_size, bias=mod.bias, dtype=kind, **options)
        if not mod.bias:
            raise AssertionError("mod.bias must be True")
        made.set_weight_bias({"weight": {"weight_ih": _quantized(mod.weight_ih, observer), "weight_hh": _quantized(mod.weight_hh, observer)},
                              "bias": {"bias_ih": mod.bias_ih, "bias_hh": mod.bias_hh}})
        return made


class RNNCell(RNNCellBase):
    """torch.nn.RNNCell with quantized weights."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", dtype: Any = dt.qint8) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, dtype=dtype)
        self.nonlinearity = nonlinearity

    def _get_name(self) -> str:
        return "DynamicQuantizedRNNCell"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state (batch, hidden_size)."""
        (h,) = self._start(input, None if hx is None else (hx,), 1)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        params = self._params()
        return getattr(params.of_input(input) + params.of_state(h), self.nonlinearity)()


class LSTMCell(RNNCellBase):
    """torch.nn.LSTMCell with quantized weights."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, num_chunks=4, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedLSTMCell"

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The next states (batch, hidden_size)."""
        from ......_quantized.recurrent import lstm_step
        params = self._params()
        states = self._start(input, hx, 2)
        return lstm_step(params, params.of_input(input), states)


class GRUCell(RNNCellBase):
    """torch.nn.GRUCell with quantized weights."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = dt.qint8) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedGRUCell"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state (batch, hidden_size)."""
        from ......_quantized.recurrent import gru_step
        params = self._params()
        states = self._start(input, None if hx is None else (hx,), 1)
        return gru_step(params, params.of_input(input), states)[0]
