"""Hot operations as hand-written kernels, each beside a pure-JAX reference. JAX arrays in and out; usable alone."""

from pallas_kernels._dispatch import KernelUnavailable as KernelUnavailable
from pallas_kernels._dispatch import override as override
from pallas_kernels.attention import attention as attention
from pallas_kernels.grouped import grouped_mm as grouped_mm
from pallas_kernels.losses import cross_entropy as cross_entropy
from pallas_kernels.losses import linear_cross_entropy as linear_cross_entropy
from pallas_kernels.norm import group_norm as group_norm
from pallas_kernels.norm import layer_norm as layer_norm
from pallas_kernels.norm import norm_gradients as norm_gradients
from pallas_kernels.norm import rms_norm as rms_norm
from pallas_kernels.recurrent import recurrent as recurrent
from pallas_kernels.recurrent import recurrent_layer as recurrent_layer

# Operations that have a kernel of ours; the others are pure JAX.
KERNELS = (
    "attention",
    "cross_entropy",
    "group_norm",
    "grouped_mm",
    "layer_norm",
    "recurrent_layer",
    "rms_norm",
)
