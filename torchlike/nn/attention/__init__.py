"""torch.nn.attention: the choice of attention kernels ."""
from torchlike.nn._functional.sdp_backends import SDPBackend, _cur_sdpa_kernel_backends, sdpa_kernel  # noqa: F401
from torchlike.nn.attention._registry import (
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
)

__all__ = ["SDPBackend", "activate_flash_attention_impl", "current_flash_attention_impl", "list_flash_attention_impls", "register_flash_attention_impl",
           "restore_flash_attention_impl", "sdpa_kernel"]
