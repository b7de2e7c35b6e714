"""What libraries ask about Triton: its kernels run on PyTorch's tensors, not on these."""


def has_triton_package() -> bool:
    """False, also where the package is installed."""
    return False


has_triton = has_triton_tma = has_triton_tma_device = has_triton_experimental_host_tma = has_triton_tensor_descriptor_host_tma = has_triton_package
has_triton_stable_tma_api = has_datacenter_blackwell_tma_device = has_triton_package
