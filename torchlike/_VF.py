"""torch._VF: the functions of torch as modules call them. Looked up at each call: they may begin to dispatch to subclasses."""
import sys as _sys
from typing import Any as _Any


def __getattr__(name: str) -> _Any:
    return getattr(_sys.modules[__package__], name)
