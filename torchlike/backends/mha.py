"""torch.backends.mha: whether nn.MultiheadAttention and the layers of Transformers may take their way for inference, which nested tensors need."""

_enabled = True


def get_fastpath_enabled() -> bool:
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    global _enabled
    _enabled = value
