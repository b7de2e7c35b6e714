"""LSTM, GRU and plain recurrent sequences."""

from pallas_kernels.recurrent.api import recurrent as recurrent
from pallas_kernels.recurrent.api import recurrent_layer as recurrent_layer
