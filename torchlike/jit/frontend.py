"""What TorchScript's compiler says of Python that it does not take."""
from __future__ import annotations

from typing import Any

from .._core.shown import Shown


class FrontendError(Exception, metaclass=Shown):
    """A function's source is no TorchScript; the text ends with the line."""

    __module__ = "torch.jit.frontend"

    def __init__(self, source_range: Any, msg: str) -> None:
        super().__init__(source_range, msg)
        self.source_range, self.msg = source_range, msg

    def __str__(self) -> str:
        return f"{self.msg}:\n{self.source_range}"


class NotSupportedError(FrontendError):
    """A form that is not supported."""

    __module__ = "torch.jit.frontend"


class UnsupportedNodeError(NotSupportedError):
    """A kind of statement or expression that TorchScript has not."""

    __module__ = "torch.jit.frontend"


class FrontendTypeError(FrontendError):
    """A wrong type in a function's head."""

    __module__ = "torch.jit.frontend"
