"""torch.qscheme: which way a quantized tensor's integers stand for numbers."""
from __future__ import annotations

from ._core.shown import Shown


class qscheme(metaclass=Shown):  # noqa: N801  (torch's name)
    """One object per scheme, so `is` compares."""

    __slots__ = ("name",)
    __module__ = "torch"

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple:
        return by_name, (self.name,)

    def __copy__(self) -> qscheme:
        return self

    def __deepcopy__(self, memo: dict) -> qscheme:
        return self


def by_name(name: str) -> qscheme:
    """The scheme of a name."""
    return SCHEMES[name]


SCHEMES = {name: qscheme(name) for name in ("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric",
                                            "per_channel_affine_float_qparams")}
