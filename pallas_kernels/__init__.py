"""Hot operations as hand-written kernels, each beside a pure-JAX reference. JAX arrays in and out; usable alone."""
from pallas_kernels._dispatch import KernelUnavailable as KernelUnavailable
from pallas_kernels._dispatch import override as override
from pallas_kernels.attention import attention as attention
