"""torch._foreach_*: one function over a list of tensors. Recording fuses them, so each is the plain operation, repeated."""
from __future__ import annotations

from .._core.errors import class_name
from .._public import FUNCTIONS
from .._tensor import Tensor


def _tensors(name: str, given, argument: str = "self") -> list[Tensor]:
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"_foreach_{name}() received an invalid combination of arguments: {argument} must be a tuple of Tensors, not {class_name(given)}")
    if not given:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for i, t in enumerate(given):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument {int(argument == 'src')}, but got {class_name(t)}")
    return list(given)


def _column(name: str, given, n: int) -> list:
    """An argument as one item for each of n tensors: a list (of tensors, of numbers), or the same thing for all."""
    if not isinstance(given, (list, tuple)):
        return [given] * n
    if len(given) != n:
        if given and isinstance(given[0], Tensor):
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {n} and {len(given)}")
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    return list(given)


def _publish(name: str, method: str, words: tuple[tuple[str, ...], ...], in_place: bool = False, keywords: tuple[str, ...] = ()) -> None:
    """_foreach_<name>: Tensor.<method> of each tensor. `words`: the names that torch's overloads give each further argument."""
    def run(self, *args, **named):
        args = list(args)
        for names in words[len(args):]:
            args += [named.pop(w) for w in names if w in named]
        if len(args) != len(words) or set(named) - set(keywords):
            raise TypeError(f"_foreach_{name}() received an invalid combination of arguments")
        tensors = _tensors(name, self)
        for a in args:
            if isinstance(a, Tensor) and a.ndim:
                raise RuntimeError(f"scalar tensor expected to be 0 dim but it has {a.ndim} dimensions and {a.numel()} elements.")
        columns = [_column(name, a, len(tensors)) for a in args]
        made = [getattr(t, method)(*row, **named) for t, *row in zip(tensors, *columns)]
        return self if in_place else tuple(made)
    run.__name__ = run.__qualname__ = f"_foreach_{name}"
    run.__doc__ = f"Tensor.{method} of each tensor of a list."
    FUNCTIONS[f"_foreach_{name}"] = run


def _both(name: str, words: tuple = (), keywords: tuple[str, ...] = ()) -> None:
    _publish(name, name, words, keywords=keywords)
    _publish(name + "_", name + "_", words, True, keywords)


for _name in ("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma", "log", "log10", "log1p",
              "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"):
    _both(_name)
_OTHER = (("other", "scalar", "scalars"),)
for _name in ("add", "sub"):
    _both(_name, _OTHER, ("alpha",))
for _name in ("mul", "div", "clamp_min", "clamp_max"):
    _both(_name, _OTHER)
for _name, _method in (("maximum", "clamp_min"), ("minimum", "clamp_max")):
    _publish(_name, _method, _OTHER)
    _publish(_name + "_", _method + "_", _OTHER, True)
_both("lerp", (("tensors1",), ("weights", "weight")))
_publish("mm", "mm", (("mat2",),))
_publish("zero_", "zero_", (), True)
_publish("clone", "clone", (), keywords=("memory_format",))
_publish("max", "max", ())
_publish("pow_", "pow_", (("exponent",),), True)


def _foreach_pow(self, exponent) -> tuple:
    """Each tensor to a power, or a number to the power of each tensor."""
    if isinstance(self, (list, tuple)):
        tensors = _tensors("pow", self)
        return tuple(t.pow(e) for t, e in zip(tensors, _column("pow", exponent, len(tensors))))
    return tuple(FUNCTIONS["pow"](self, e) for e in _tensors("pow", exponent, "exponent"))


def _foreach_copy_(self, src, non_blocking=False) -> list | tuple:
    """Each tensor of src into the one of self at its place."""
    tensors, sources = _tensors("copy_", self), _tensors("copy_", src, "src")
    for t, source in zip(tensors, _column("copy_", sources, len(tensors))):
        t.copy_(source, non_blocking)
    return self


def _foreach_norm(self, ord=2, dtype=None) -> tuple:
    """The vector norm of each tensor."""
    return tuple(FUNCTIONS["norm"](t, ord, dtype=dtype) for t in _tensors("norm", self))


def _foreach_powsum(self, ord=2, dtype=None) -> tuple:
    """The sum of |x| ** ord of each tensor."""
    return tuple(t.abs().pow(ord).sum(dtype=dtype) for t in _tensors("powsum", self))


def _product(method: str):
    def run(self, tensor1, tensor2, value=1, *, scalars=None):
        tensors = _tensors(method, self)
        n = len(tensors)
        value = value if scalars is None else scalars
        if isinstance(value, Tensor):
            if value.ndim != 1:
                raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {value.ndim} instead.")
            if not value.is_contiguous():
                raise RuntimeError("Expected scalars to be contiguous.")
            value = value.tolist()
            if len(value) != n:
                raise RuntimeError(f"Expected length of scalars to match input of length {n} but got {len(value)} instead.")
        rows = zip(tensors, _column(method, tensor1, n), _column(method, tensor2, n), _column(method, value, n))
        made = [getattr(t, method)(a, b, value=v) for t, a, b, v in rows]
        return self if method.endswith("_") else tuple(made)
    run.__name__ = run.__qualname__ = f"_foreach_{method}"
    run.__doc__ = f"Tensor.{method} of each tensor of a list."
    FUNCTIONS[f"_foreach_{method}"] = run


for _name in ("addcmul", "addcdiv", "addcmul_", "addcdiv_"):
    _product(_name)
for _f in (_foreach_copy_, _foreach_pow, _foreach_norm, _foreach_powsum):
    FUNCTIONS[_f.__name__] = _f
