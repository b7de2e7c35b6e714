"""What happens when torch's functions are called with DTensors: facts are told of the whole, the rules answer operations, and what has
no rule is done with whole tensors on every rank."""
from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

from ..._core.layout import contiguous
from ..._ops import OpOverload, OpOverloadPacket
from ..._public import first_name
from ..._tensor import Tensor
from ...overrides import DisableTorchFunctionSubclass, qualified_name
from ...utils._pytree import tree_leaves, tree_map_only
from . import _lookups, _losses, _pointwise, _products, _reductions, _views
from ._call import _STRIDES_KEPT, Call, OutsideCall, replicated
from ._dtensor import DTensor, gradient_placements, marked, piece, placed_piece
from ._layout import moved
from ._registered import OWN_RULES
from .placement_types import Partial, Replicate

replicating = contextvars.ContextVar("replicating", default=False)  # whether plain tensors count as replicated ones
RULES: dict[str, Callable[[Call], Any]] = {**_pointwise.RULES, **_reductions.RULES, **_products.RULES, **_views.RULES, **_lookups.RULES, **_losses.RULES}
_STRIDES_KEPT.update(_pointwise.NAMES, ("norm", "vector_norm", "sum"), {n for n in _pointwise.RULES if n.endswith("_like")})
_PROPERTIES = {id(x): name for name, x in vars(Tensor).items() if isinstance(x, property)}


def _stride(d: DTensor, dim: int | None = None) -> Any:
    """Steps of the whole: its dimensions in the order in which they lie in the local tensor."""
    local = d._strided().strides
    order, step, made = sorted(range(len(local)), key=lambda k: (local[k], -k)), 1, [0] * len(local)
    if d._layout is None:
        made = list(contiguous(tuple(d._global)).strides)
    else:
        for k in order:
            made[k], step = (step, step * d._global[k]) if local[k] else (0, step)
    return tuple(made) if dim is None else made[dim]


_FACTS: dict[str, Callable] = {  # of the whole
    "shape": lambda d: d._global, "size": lambda d, dim=None: d._global if dim is None else d._global[dim], "ndim": lambda d: len(d._global),
    "dim": lambda d: len(d._global), "ndimension": lambda d: len(d._global), "numel": lambda d: d._global.numel(), "nelement": lambda d: d._global.numel(),
    "__len__": lambda d: d._global[0] if d._global else Tensor.__len__(piece(d)), "stride": _stride,
    "nbytes": lambda d: d._global.numel() * d.dtype.itemsize, "is_same_size": lambda d, other: d._global == other.shape,
}
# answered by the local tensor as it is
_OWN = {"dtype", "device", "requires_grad", "is_leaf", "grad_fn", "layout", "itemsize", "element_size", "is_floating_point", "is_complex", "is_meta", "is_cpu",
        "is_cuda", "is_sparse", "is_contiguous", "data_ptr", "storage_offset", "untyped_storage", "storage", "requires_grad_", "retain_grad", "is_quantized",
        "register_post_accumulate_grad_hook", "is_inference", "output_nr", "is_signed", "is_pinned", "share_memory_", "is_shared", "is_mkldnn",
        "retains_grad", "get_device", "is_conj", "is_neg", "_version", "is_xpu", "is_mps", "is_sparse_csr", "is_tensor", "is_nested", "is_mtia",
        "result_type", "can_cast", "is_distributed", "_is_view", "_base", "zero_grad"}


def _dispatch(cls: type, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    kwargs, name = kwargs or {}, qualified_name(func) if isinstance(func, (OpOverload, OpOverloadPacket)) else first_name(func)
    if name in ("__get__", "__set__"):
        name = _PROPERTIES.get(id(func.__self__), name) if name == "__get__" else "__set__"
    if name in _FACTS and isinstance(args[0], DTensor):
        return _FACTS[name](*args, **kwargs)
    if name in _OWN or name == "__set__":
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs)
    if name in _HOOKS:
        return _HOOKS[name](func, *args, **kwargs)
    args, kwargs = _all_spread(name, args, kwargs)
    first = next(x for x in tree_leaves((args, kwargs)) if isinstance(x, DTensor))
    call = (Call if first._mesh.get_coordinate() is not None else OutsideCall)(func, name, args, kwargs)
    if name.startswith("_foreach_"):
        return _pointwise.each(call) if len(call.tensors) > sum(isinstance(a, (list, tuple)) for a in args) else _one_each(call)
    rule = OWN_RULES.get(name) or RULES.get(name)
    result = NotImplemented if rule is None or "out" in kwargs else rule(call)
    return _whole(call) if result is NotImplemented else result


def _one_each(call: Call) -> Any:
    """A function on lists of one tensor: what it does to the tensors."""
    args = [a[0] if isinstance(a, (list, tuple)) else a for a in call.args]
    name = call.name.removeprefix("_foreach_")
    plain = Call(getattr(Tensor, name), name, tuple(args), call.kwargs)
    result = RULES.get(name, _whole)(plain)
    return None if call.inplace else [result]


def _all_spread(name: str, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments with plain tensors replaced by replicated ones, where that is allowed."""
    leaves = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    if all(isinstance(x, DTensor) for x in leaves):
        return args, kwargs
    first = next(x for x in leaves if isinstance(x, DTensor))
    allowed = replicating.get() or name == "cross_entropy" and _losses.class_parallel.get()
    for x in leaves:
        if not isinstance(x, DTensor) and x.numel() != 1 and not allowed:
            raise RuntimeError(f"{name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
                               "distributed operators!")

    def spread(t: Tensor) -> Tensor:
        return t if isinstance(t, DTensor) else marked(piece(t), first._mesh, (Replicate(),) * first._mesh.ndim, t._aval.shape)
    return tree_map_only(Tensor, spread, (args, kwargs))


def _whole(call: Call) -> Any:
    """The call with whole tensors; what it writes is written into the pieces."""
    everywhere = replicated(call)
    if isinstance(call, OutsideCall):
        return call.locally(None, everywhere)
    written = [call.first] if call.inplace or call.name in ("__setitem__",) else []
    given = call.kwargs.get("out")
    written += [t for t in tree_leaves(given) if isinstance(t, DTensor)]
    whole = {id(t): placed_piece(t, everywhere) for t in call.tensors}
    for t in written:
        whole[id(t)] = whole[id(t)].clone()
    result = call.on(lambda t: whole[id(t)])
    for t in written:
        made = whole[id(t)]
        if made._aval.shape != t._global:
            raise RuntimeError(f"{call.name}: a DTensor cannot take another shape in place")
        part = moved(made, t._global, t._mesh, everywhere, gradient_placements(t._placements))
        if any(isinstance(p, Partial) for p in t._placements):
            raise RuntimeError(f"{call.name}: in-place operations that require placement changes are not supported")
        with DisableTorchFunctionSubclass():
            t.copy_(part)
    if call.inplace:
        return call.first
    return given if given is not None else call.results(result, everywhere)


def _register_hook(func: Callable, d: DTensor, hook: Callable) -> Any:
    def with_whole(g: Tensor) -> Tensor | None:
        lies = gradient_placements(d._placements)
        made = hook(g if isinstance(g, DTensor) else marked(piece(g), d._mesh, lies, d._global))
        return placed_piece(made, lies) if isinstance(made, DTensor) else made
    with DisableTorchFunctionSubclass():
        return func(d, with_whole)


def _backward(func: Callable, d: DTensor, gradient: Tensor | None = None, *args: Any, **kwargs: Any) -> None:
    if gradient is None and d._global.numel() != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if isinstance(gradient, DTensor):
        gradient = placed_piece(gradient, gradient_placements(d._placements))
    func(piece(d), gradient, *args, **kwargs)


def _local(func: Callable, d: DTensor, *args: Any, **kwargs: Any) -> Any:
    """item, bool, float: of the local tensor, of a sum's term too, as in torch. RuntimeError on a rank outside of the mesh, which has none."""
    if d._mesh.get_coordinate() is None:
        raise RuntimeError("Cannot cast None to number")
    with DisableTorchFunctionSubclass():
        return func(piece(d), *args, **kwargs)


def _refused(func: Callable, *args: Any, **kwargs: Any) -> None:
    raise RuntimeError(f".{func.__name__}() is not supported for tensor subclasses, got DTensor")


def _of_whole(func: Callable, d: Tensor, *args: Any, **kwargs: Any) -> Any:
    args = tuple(placed_piece(a, (Replicate(),) * a._mesh.ndim) if isinstance(a, DTensor) else a for a in args)
    d = placed_piece(d, (Replicate(),) * d._mesh.ndim) if isinstance(d, DTensor) else d
    with DisableTorchFunctionSubclass():
        return func(d, *args, **kwargs)


def _equal(func: Callable, a: Tensor, b: Tensor) -> bool:
    return tuple(a.shape) == tuple(b.shape) and _of_whole(func, a, b)


def _same_size(func: Callable, a: Tensor, b: Tensor) -> bool:
    return tuple(a.shape) == tuple(b.shape)


def _new(func: Callable, d: DTensor, *args: Any, **kwargs: Any) -> DTensor:
    """new_zeros and its kin: replicated, or as the tensor where that is the size."""
    needs = kwargs.pop("requires_grad", False)
    with DisableTorchFunctionSubclass():
        made = func(piece(d), *args, **kwargs)
    return _lying(made, d).requires_grad_(needs)


def _lying(made: Tensor, d: DTensor) -> DTensor:
    if tuple(made._aval.shape) == tuple(d._global):
        lies = gradient_placements(d._placements)
        return marked(moved(made, d._global, d._mesh, (Replicate(),) * d._mesh.ndim, lies), d._mesh, lies, d._global)
    return marked(made, d._mesh, (Replicate(),) * d._mesh.ndim, made._aval.shape)


def _grad(func: Callable, outputs: Any, inputs: Any, grad_outputs: Any = None, *args: Any, **kwargs: Any) -> tuple:
    """torch.autograd.grad: gradients lie as the tensors do."""
    def local(x: Any) -> Any:
        return placed_piece(x, gradient_placements(x._placements)) if isinstance(x, DTensor) else x
    roots = [piece(x) if isinstance(x, DTensor) else x for x in outputs]
    found = func(roots, [piece(x) if isinstance(x, DTensor) else x for x in inputs], tree_map_only(DTensor, local, grad_outputs), *args, **kwargs)
    return tuple(marked(g, x._mesh, gradient_placements(x._placements), x._global) if isinstance(x, DTensor) and g is not None else g
                 for g, x in zip(found, inputs))


def _opened(func: Callable, *args: Any, **kwargs: Any) -> Any:
    """A function of nn.init that is made of others (and is without gradients, as they could not know): these are asked."""
    return func.__wrapped__(*args, **kwargs)


def _detach_(func: Callable, d: DTensor) -> DTensor:
    with DisableTorchFunctionSubclass():
        func(d)
    return d


_HOOKS: dict[str, Callable] = {
    "register_hook": _register_hook, "backward": _backward, "equal": _equal, "is_same_size": _same_size, "detach_": _detach_, "grad": _grad,
    **dict.fromkeys(("item", "__bool__", "__float__", "__int__", "__index__", "__format__", "is_nonzero"), _local),
    **dict.fromkeys(("constant_", "kaiming_uniform_"), _opened), **dict.fromkeys(("tolist", "numpy"), _refused), **dict.fromkeys(("allclose", "__contains__"), _of_whole),
    **dict.fromkeys(("new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided"), _new),
}
DTensor._handle = _dispatch
