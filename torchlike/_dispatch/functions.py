"""Functions that PyTorch has one operator for and torchlike records as several operations: on tensors that dispatch, the operator.

Each is an autograd Function, so that its gradient, in operators too, belongs to the call and not to the operations.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import _leaves
from .._arguments import as_dim
from .._core import dtype as dt
from .._core.layout import Layout, extent
from .._functions import torch
from .._ops import aten
from .._plainly import dispatching
from .._public import FUNCTIONS
from .._tensor import Tensor
from ..autograd.function import Function
from ..autograd.grad_mode import no_grad
from ..ops.memory_formats import contiguous_format, preserve_format
from ..ops.named_results import RETURN_TYPES
from .derivatives import fit, zeros
from .writes import any_dispatches


class _Operator(Function):
    """forward calls `func(*arguments)`, where numbers among `tensors` say which arguments are the tensors."""

    @staticmethod
    def forward(ctx: Any, back: Callable, call: Callable, *tensors: Tensor) -> Any:
        ctx.back, ctx.avals = back, [t._aval for t in tensors]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        made = call(*tensors)
        return tuple(made) if isinstance(made, list) else made

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple:
        made = ctx.back(ctx.needs_input_grad[2:], ctx.saved_tensors, *grads)
        return None, None, *[None if g is None else fit(g, a) for g, a in zip(made, ctx.avals)]


def run_as(name: str, back: Callable, call: Callable, *tensors: Tensor) -> Any:
    """`call(*tensors)` as a node of this name, whose gradients are `back(needs, tensors, *gradients)`."""
    return _named(name).apply(back, call, *tensors)


@functools.cache
def _named(name: str) -> type:
    return type(name, (_Operator,), {})


def _split(input: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple:
    sizes, dim = split_size_or_sections, as_dim(dim, input.ndim)
    if isinstance(sizes, (tuple, list)):
        func, sizes = aten.split_with_sizes.default, list(sizes)
    else:
        func = aten.split.Tensor
    rest = (sizes, dim) if dim else (sizes,)
    made = run_as("Split", lambda needs, saved, *gs: [_joined(gs, shapes, dim, saved[0])], lambda t: _leaves.hand_on(func, t, *rest), input)
    shapes = [tuple(t.shape) for t in made]
    return made


def _joined(grads: tuple, shapes: list, dim: int, like: Tensor) -> Tensor:
    return FUNCTIONS["cat"]([FUNCTIONS["zeros"](shape, dtype=like.dtype, device=like.device) if g is None else g for g, shape in zip(grads, shapes)], dim)


def _chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple:
    if chunks < 1:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    return _split(input, max(1, -(-input.shape[dim] // chunks)), dim)


def _unbind(input: Tensor, dim: int = 0) -> tuple:
    dim = as_dim(dim, input.ndim)
    rest, part = ((dim,) if dim else ()), tuple(n for i, n in enumerate(input.shape) if i != dim)

    def back(needs: tuple, saved: tuple, *gs: Tensor | None) -> list:
        return [FUNCTIONS["stack"]([FUNCTIONS["zeros"](part, dtype=saved[0].dtype, device=saved[0].device) if g is None else g for g in gs], dim)]
    return run_as("Unbind", back, lambda t: _leaves.hand_on(aten.unbind.int, t, *rest), input)


def _product(name: str) -> Callable:
    def run(input: Tensor, first: Tensor, second: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        def turned(t: Tensor) -> Tensor:
            return (t.t() if name == "addmm" else t.transpose(1, 2)).conj() if t.dtype.is_complex else t.t() if name == "addmm" else t.transpose(1, 2)

        def back(needs: tuple, saved: tuple, g: Tensor) -> list:
            product = FUNCTIONS["mm" if name == "addmm" else "bmm"]
            scaled = g if alpha == 1 else g * alpha
            return [(g if beta == 1 else g * beta) if needs[0] else None, product(scaled, turned(saved[2])) if needs[1] else None,
                    product(turned(saved[1]), scaled) if needs[2] else None]
        named = {k: v for k, v in (("beta", beta), ("alpha", alpha)) if v != 1}
        return run_as(name.capitalize(), back, lambda *ts: _leaves.hand_on(getattr(aten, name).default, *ts, **named), input, first, second)
    return run


def _masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return FUNCTIONS["where"](mask, value.to(input.dtype), input)
    return run_as("MaskedFill", lambda needs, saved, g: [g.masked_fill(saved[1], 0), None],
                lambda t, m: _leaves.hand_on(aten.masked_fill.Scalar, t, m, value), input, mask)


def _index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    if out is not None:
        _leaves.hand_on(aten.index_select.out, input, dim, index, out=out)
        return out

    def back(needs: tuple, saved: tuple, g: Tensor) -> list:
        start = zeros(g, list(saved[0].shape), dtype=g.dtype, layout=g.layout, device=g.device)
        return [start.index_add_(dim, saved[1], g) if not g.requires_grad else start.index_add(dim, saved[1], g), None]
    return run_as("IndexSelect", back, lambda t, i: _leaves.hand_on(aten.index_select.default, t, dim, i), input, index)


def _masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    def back(needs: tuple, saved: tuple, g: Tensor) -> list:
        t, m = saved
        spread = t.expand(FUNCTIONS["broadcast_shapes"](t.shape, m.shape))
        return [_leaves.hand_on(aten.zeros_like.default, spread, memory_format=preserve_format).masked_scatter(m, g), None]
    made = run_as("MaskedSelect", back, lambda t, m: _leaves.hand_on(aten.masked_select.default, t, m), input, mask)
    return made if out is None else out.copy_(made)


def _as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    size, stride, given = list(size), list(stride), () if storage_offset is None else (storage_offset,)
    own = Layout(tuple(input.shape), tuple(input.stride()), input.storage_offset())
    part = Layout(tuple(size), tuple(stride), own.offset if storage_offset is None else storage_offset)

    def back(needs: tuple, saved: tuple, g: Tensor) -> list:
        """Through the memory that both lie in: what lies there more than once is added up for the part, and shared out among the input's elements."""
        start = min(own.offset, part.offset)
        length = max(start, extent(own), extent(part)) - start
        memory = zeros(g, [length])
        if _may_share(part):
            memory = memory.index_add_(0, _places(length, part, start, g.device), g.reshape(-1))
        else:
            memory.as_strided(size, stride, part.offset - start).copy_(g)
        if _may_share(own):
            places = _places(length, own, start, g.device)
            memory = memory.div_(FUNCTIONS["zeros_like"](memory).index_add_(0, places, torch.ones(places.shape, dtype=g.dtype, device=g.device)))
        return [memory.as_strided(list(own.shape), list(own.strides), own.offset - start)]
    return run_as("AsStrided", back, lambda t: _leaves.hand_on(aten.as_strided.default, t, size, stride, *given), input)


def _may_share(a: Layout) -> bool:
    """Whether two elements may have one place."""
    reach = 0
    for stride, n in sorted((s, n) for n, s in zip(a.shape, a.strides) if n > 1):
        if stride <= reach:
            return 0 not in a.shape
        reach += stride * (n - 1)
    return False


def _places(length: int, a: Layout, start: int, device: Any) -> Tensor:
    """Where the elements lie in memory that begins at `start`."""
    return torch.arange(0, length, device=device).as_strided(list(a.shape), list(a.strides), a.offset - start).reshape(-1)


def _sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None, out: tuple | None = None) -> Any:
    if stable is None:
        func, given, named = aten.sort.default, (dim, descending) if descending else () if dim == -1 else (dim,), {}
    else:
        func, given, named = aten.sort.stable, (), {"stable": stable, **({} if dim == -1 else {"dim": dim}), **({"descending": True} if descending else {})}

    def back(needs: tuple, saved: tuple, *gs: Tensor | None) -> list:
        g = gs[0]
        return [None if g is None else zeros(g, list(saved[0].shape)).scatter(as_dim(dim, saved[0].ndim), made[1], g)]
    made = run_as("Sort", back, lambda t: _leaves.hand_on(func, t, *given, **named), input)
    if out is not None:
        made = tuple(target.copy_(found) for target, found in zip(out, made))
    return RETURN_TYPES["sort"](made)


def _argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False, out: Tensor | None = None) -> Tensor:
    made = _sort(input, dim, descending, stable=stable or None)[1]
    return made if out is None else out.copy_(made)


def _clone(input: Tensor, *, memory_format: Any = preserve_format) -> Tensor:
    named = {} if memory_format is None or memory_format is preserve_format else {"memory_format": memory_format}
    return run_as("Clone", lambda needs, saved, g: [g], lambda t: _leaves.hand_on(aten.clone.default, t, **named), input)


def _contiguous(input: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    return input if input.is_contiguous(memory_format=memory_format) else _clone(input, memory_format=memory_format)


def _one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    n = int(tensor.max().item()) + 1 if num_classes == -1 else num_classes
    return (tensor.unsqueeze(-1) == FUNCTIONS["arange"](n, dtype=tensor.dtype, device=tensor.device)).to(dt.int64)


def _dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, train: bool | None = None) -> Tensor:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not (training if train is None else train) or not p or not input.numel():
        return input
    with no_grad():
        if p == 1:
            kept = FUNCTIONS["zeros"]((), dtype=input.dtype, device=input.device)
        else:
            kept = _leaves.hand_on(aten.empty_like.default, input)
            _leaves.hand_on(aten.div_.Scalar, kept.bernoulli_(1 - p), 1 - p)
    return input.mul_(kept) if inplace else input * kept


def _drawn(name: str, func: Any, parameters: tuple, rest: tuple, generator: Any, out: Tensor | None) -> Tensor:
    """Numbers drawn for tensors' values, to which they pass on gradients of zero."""
    named = {} if generator is None else {"generator": generator}
    places = [i for i, x in enumerate(parameters) if isinstance(x, Tensor)]

    def call(*tensors: Tensor) -> Tensor:
        given = dict(zip(places, tensors))
        return _leaves.hand_on(func, *[given.get(i, x) for i, x in enumerate(parameters)], *rest, **named)

    def back(needs: tuple, saved: tuple, g: Tensor) -> list:
        return [zeros(g, list(t.shape)) if need else None for need, t in zip(needs, saved)]
    made = run_as(name, back, call, *[parameters[i] for i in places])
    return made if out is None else out.copy_(made)


def _bernoulli(input: Tensor, p: float | None = None, *, generator: Any = None, out: Tensor | None = None) -> Tensor:
    return _drawn("Bernoulli", aten.bernoulli.default if p is None else aten.bernoulli.p, (input,), () if p is None else (p,), generator, out)


def _multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Tensor | None = None) -> Tensor:
    return _drawn("Multinomial", aten.multinomial.default, (input,), (num_samples, replacement) if replacement else (num_samples,), generator, out)


def _normal(mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None, out: Tensor | None = None) -> Tensor:
    form = "_".join("Tensor" if isinstance(x, Tensor) else "float" for x in (mean, std))
    return _drawn("Normal", getattr(aten.normal, form), (mean,) if form == "Tensor_float" and std == 1 else (mean, std), (), generator, out)


def _poisson(input: Tensor, generator: Any = None) -> Tensor:
    return _drawn("Poisson", aten.poisson.default, (input,), (), generator, None)


HANDED: dict[str, Callable] = {"bernoulli": _bernoulli, "multinomial": _multinomial, "normal": _normal, "poisson": _poisson,
                               "split": _split, "chunk": _chunk, "unbind": _unbind, "addmm": _product("addmm"), "baddbmm": _product("baddbmm"),
                               "masked_fill": _masked_fill, "index_select": _index_select,
                               "masked_select": _masked_select, "as_strided": _as_strided, "sort": _sort, "argsort": _argsort,
                               "one_hot": _one_hot, "dropout": _dropout, "clone": _clone, "contiguous": _contiguous}


def where_any_dispatches(f: Callable, handed: Callable) -> Callable:
    """f, or `handed` where a tensor among its arguments dispatches."""
    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        return handed(*args, **kwargs) if not dispatching.disabled and any_dispatches(args) else f(*args, **kwargs)
    return run
