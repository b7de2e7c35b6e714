"""Which implementations scaled_dot_product_attention may use: torch's SDPBackend and the switches behind it."""
from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator


class SDPBackend(enum.Enum):
    """MATH is the plain formula; the others all stand for the fused kernels."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<SDPBackend.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"SDPBackend.{self.name}"

    def __int__(self) -> int:
        return self.value


FUSED = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION)
_USUAL = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH, SDPBackend.OVERRIDEABLE]


class _State:
    allowed = list(_USUAL)


state = _State()


def allows_math() -> bool:
    """Whether the plain formula may run."""
    return SDPBackend.MATH in state.allowed


def allows_fused() -> bool:
    """Whether a fused kernel may run."""
    return any(b in state.allowed for b in FUSED)


def is_allowed(backend: SDPBackend) -> bool:
    return backend in state.allowed


def set_allowed(backend: SDPBackend, enabled: bool) -> None:
    """One switch, as torch.backends.cuda.enable_flash_sdp and its kin set it."""
    if not isinstance(enabled, bool):
        raise RuntimeError(f"set_sdp_use_math expects a bool, but got {type(enabled).__name__}")
    state.allowed = [b for b in _USUAL if (b in state.allowed and b is not backend) or (b is backend and enabled)]


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The backends that are allowed now."""
    return list(state.allowed)


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority: bool = False) -> Iterator[dict]:
    """Only these backends (one SDPBackend or a list) inside the block."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}")
    chosen = set(backends) if isinstance(backends, list) else {backends}
    before, state.allowed = state.allowed, [b for b in _USUAL if b in chosen]
    try:
        yield {}
    finally:
        state.allowed = before
