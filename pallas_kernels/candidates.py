"""Which configurations `benchmarks/gpu.py --tune` times and the lowering gate lowers."""

from pallas_kernels.attention import gpu as attention
from pallas_kernels.attention import gpu_backward as attention_backward
from pallas_kernels.grouped import gpu as grouped
from pallas_kernels.losses import gpu as losses
from pallas_kernels.norm import gpu as norm
from pallas_kernels.recurrent import gpu as recurrent

_NORM = {"norm_forward": norm.CANDIDATES, "norm_backward": norm.CANDIDATES}

# operation -> kernel -> configurations
CANDIDATES: dict[str, dict[str, tuple]] = {
    "attention": {"attention_forward": attention.CANDIDATES, "attention_backward": attention_backward.CANDIDATES},
    "layer_norm": _NORM,
    "rms_norm": _NORM,
    "group_norm": _NORM,
    "cross_entropy": {"cross_entropy": losses.CANDIDATES},
    "grouped_mm": {"grouped_product": grouped.CANDIDATES, "grouped_outer": grouped.CANDIDATES},
    "recurrent_layer": {"recurrent_forward": recurrent.CANDIDATES, "recurrent_backward": recurrent.CANDIDATES},
}
