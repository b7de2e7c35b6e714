"""Functions that begin to do something else and stay the objects they are.

Programs hold them already (`from torch import add`), handlers know them by tables (`{torch.add: ...}`), and pickle asks whether what a module
has under their name is the same function.
"""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
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


_ABOVE = sys._getframe().f_lineno + 1  # lines of this file above the text's own: tracebacks show its lines
_SHELL = """\
def around({names}):
    def shell(*args, _ask, **kwargs):
        return _ask(*args, **kwargs)
        {names}
    return shell
"""


@functools.cache
def _shell(free: int) -> CodeType:
    """The code of a function that asks `_ask`, with so many variables of a closure.

    The compiler has to know of them: it is code of its own that puts them into a frame, where debuggers (and pytest) read them.
    """
    scope: dict[str, Any] = {}
    exec(_SHELL.format(names="".join(f"free{i}, " for i in range(free))), scope)
    code = scope["around"](*range(free)).__code__
    return code.replace(co_filename=__file__, co_firstlineno=_ABOVE + code.co_firstlineno)


exchanges = [0]  # so far: tables of functions by their identity are good until the next one


def exchange(f: FunctionType, wrap: Callable[[FunctionType], Callable], marks: Sequence[str] = ()) -> FunctionType:
    """Make f do what `wrap(plain)` does, where plain, which is returned, is a copy of what f was, and have the attributes `marks`."""
    exchanges[0] += 1
    loan = _loans.pop(f, None)
    if loan is not None:
        loan.end()
    plain = copied(f)
    f.__wrapped__ = plain
    f.__defaults__, f.__kwdefaults__ = None, {"_ask": wrap(plain)}
    f.__code__ = _shell(len(f.__code__.co_freevars)).replace(co_name=f.__code__.co_name)
    f.__dict__.update(dict.fromkeys(marks, True))
    if loan is not None:
        lend(f, loan.wrap, loan.marks)
    return plain


class Loan:
    """A function that does something else for a while, again and again.

    Other threads call it in between: at each moment its code finds the defaults that it asks for.
    """

    def __init__(self, f: FunctionType, wrap: Callable[[FunctionType], Callable], marks: dict[str, Any]):
        self.f, self.wrap, self.marks = f, wrap, marks
        self.on = False
        plain = copied(f)
        self.during = {**marks, "__wrapped__": plain}
        self.before = {name: f.__dict__.get(name, self) for name in self.during}
        self.code, self.defaults = f.__code__, f.__kwdefaults__
        self.asking = {**(f.__kwdefaults__ or {}), "_ask": wrap(plain)}
        self.shell = _shell(len(f.__code__.co_freevars)).replace(co_name=f.__code__.co_name)

    def begin(self) -> None:
        """From now on f does what `wrap` made."""
        self.on = True
        self.f.__kwdefaults__ = self.asking
        self.f.__code__ = self.shell
        self.f.__dict__.update(self.during)

    def end(self) -> None:
        """f is what it was."""
        if self.on:
            self.on = False
            self.f.__code__ = self.code
            self.f.__kwdefaults__ = self.defaults
            for name, value in self.before.items():
                if value is self:
                    self.f.__dict__.pop(name, None)
                else:
                    self.f.__dict__[name] = value


_loans: dict[FunctionType, Loan] = {}


def lend(f: FunctionType, wrap: Callable[[FunctionType], Callable], marks: dict[str, Any]) -> None:
    """Make f do what `wrap(plain)` does, and have the attributes `marks`, until it is taken back."""
    loan = _loans.get(f)
    if loan is None:
        loan = _loans[f] = Loan(f, wrap, marks)
    loan.begin()


def take_back(f: FunctionType) -> None:
    """f is what it was before it was lent."""
    if f in _loans:
        _loans[f].end()
