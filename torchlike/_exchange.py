"""Functions that begin to do something else and stay the objects they are.

Programs hold them already (`from torch import add`), handlers know them by tables (`{torch.add: ...}`), and pickle asks whether what a module
has under their name is the same function.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any


def copied(f: FunctionType) -> FunctionType:
    """Another function that does what f does."""
    made = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    made.__kwdefaults__ = f.__kwdefaults__
    functools.update_wrapper(made, f)
    del made.__wrapped__
    made.__dict__.update(f.__dict__)
    return made


@functools.cache
def _shell(free: int) -> CodeType:
    """The code of a function that asks `_ask`, with so many variables of a closure.

    The compiler has to know of them: it is code of its own that puts them into a frame, where debuggers (and pytest) read them.
    """
    names = "".join(f"free{i}, " for i in range(free))
    scope: dict[str, Any] = {}
    exec(f"def around({names}):\n def shell(*args, _ask, **kwargs):\n  return _ask(*args, **kwargs)\n  {names}\n return shell", scope)
    return scope["around"](*range(free)).__code__.replace(co_filename=__file__)


def exchange(f: FunctionType, wrap: Callable[[FunctionType], Callable]) -> FunctionType:
    """Make f do what `wrap(plain)` does, where plain, which is returned, is a copy of what f was."""
    plain = copied(f)
    f.__wrapped__ = plain
    f.__defaults__, f.__kwdefaults__ = None, {"_ask": wrap(plain)}
    f.__code__ = _shell(len(f.__code__.co_freevars)).replace(co_name=f.__code__.co_name)
    return plain
