"""torch.nn.quantized.dynamic: the older name of torch.ao.nn.quantized.dynamic."""
from ....ao.nn.quantized.dynamic import GRU, LSTM, GRUCell, Linear, LSTMCell, RNNCell

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "Linear", "RNNCell"]
