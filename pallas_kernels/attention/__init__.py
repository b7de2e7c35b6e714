"""Scaled dot-product attention."""

from pallas_kernels.attention.api import attention as attention
