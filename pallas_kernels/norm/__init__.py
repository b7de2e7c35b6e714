"""LayerNorm, RMSNorm, GroupNorm and, with one group per channel, InstanceNorm."""

from pallas_kernels.norm.api import group_norm as group_norm
from pallas_kernels.norm.api import layer_norm as layer_norm
from pallas_kernels.norm.api import norm_gradients as norm_gradients
from pallas_kernels.norm.api import rms_norm as rms_norm
