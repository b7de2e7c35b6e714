"""What torchaudio asks its library about itself."""
from .._custom_operator import kernel
from ..library import define

define("_torchaudio::is_align_available", "() -> bool")
define("_torchaudio::cuda_version", "() -> int?")


@kernel("_torchaudio::is_align_available", "default")
def is_align_available() -> bool:
    """torchaudio.functional.forced_align works."""
    return True


@kernel("_torchaudio::cuda_version", "default")
def cuda_version() -> None:
    """None: no CUDA library is behind these operations."""
