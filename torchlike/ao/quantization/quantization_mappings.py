"""Which module takes the place of which."""
from __future__ import annotations

from ...nn.modules import rnn
from ...nn.modules.linear import Linear, NonDynamicallyQuantizableLinear
from ..nn.quantized import dynamic

DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict[type, type] = {
    rnn.GRUCell: dynamic.GRUCell, Linear: dynamic.Linear, rnn.LSTM: dynamic.LSTM, rnn.GRU: dynamic.GRU, rnn.LSTMCell: dynamic.LSTMCell,
    rnn.RNNCell: dynamic.RNNCell, NonDynamicallyQuantizableLinear: dynamic.Linear,
}


def get_default_dynamic_quant_module_mappings() -> dict[type, type]:
    """Of layers whose inputs are quantized as they come; a table of its own at each call."""
    return dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


