"""Layers whose weights are quantized, and whose inputs are quantized as they come."""
from . import modules  # noqa: F401
from .modules import GRU, LSTM, GRUCell, Linear, LSTMCell, RNNCell

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "RNNCell"]
