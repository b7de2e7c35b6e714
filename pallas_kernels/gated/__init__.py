"""SwiGLU and its relatives."""

from pallas_kernels.gated.api import gated_linear as gated_linear
