"""torch.nn.attention: the choice of attention kernels ."""
from torchlike.nn._functional.sdp_backends import SDPBackend, _cur_sdpa_kernel_backends, sdpa_kernel  # noqa: F401

__all__ = ["SDPBackend", "sdpa_kernel"]
