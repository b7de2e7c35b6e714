"""What torch's functions do with nested tensors: most run on each part, with dimensions counted without the batch's."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._kinds import signature_of
from .._public import FUNCTIONS, first_name
from .._tensor import Tensor
from ..nn._functional.padding import pad
from ._tensor import JAGGED, STRIDED, NestedTensor

_POINTWISE = set("""abs neg exp exp2 expm1 log log1p log2 log10 sin cos tan tanh sinh cosh sqrt rsqrt square reciprocal sigmoid relu relu6 gelu silu mish elu selu
    celu softplus leaky_relu hardtanh hardswish hardsigmoid logsigmoid erf erfc floor ceil round trunc sign sgn clamp clamp_min clamp_max clip isnan isinf isfinite
    isposinf isneginf logical_not logical_and logical_or logical_xor add sub mul div true_divide floor_divide remainder pow maximum minimum fmod atan2 lerp where masked_fill
    eq ne lt le gt ge subtract multiply divide dropout feature_dropout alpha_dropout nan_to_num bitwise_not bitwise_and bitwise_or
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __pow__ __rpow__ __mod__ __neg__ __abs__ __invert__ __and__
    __or__ __xor__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ rsub linear to type float double half bfloat16 int long short bool cpu cuda detach clone contiguous
    zeros_like ones_like rand_like randn_like empty_like full_like positive threshold glu type_as conj""".split())
_IN_PLACE = {f"{name}_" for name in _POINTWISE} | {"zero_", "fill_", "copy_", "__iadd__", "__isub__", "__imul__", "__itruediv__"}
_REDUCTIONS = {"sum", "mean", "amax", "amin", "prod", "all", "any", "max", "min", "argmax", "argmin", "var", "std", "logsumexp", "norm"}


def _nested(x: Any) -> Iterator[NestedTensor]:
    if isinstance(x, NestedTensor):
        yield x
    elif isinstance(x, (tuple, list)):
        for y in x:
            yield from _nested(y)


def _part(x: Any, i: int, like: NestedTensor) -> Any:
    """An argument for part i: of a nested tensor its part; of a tensor with a batch dimension that item."""
    if isinstance(x, NestedTensor):
        return x._parts[i]
    if isinstance(x, Tensor) and x.ndim == like.dim() and x.ndim:
        return x[i if x.shape[0] == len(like._parts) else 0]
    return [_part(y, i, like) for y in x] if isinstance(x, list) else x


def _each(func: Callable, args: tuple, kwargs: dict, ragged: int | None = None) -> Any:
    """func on each part, with the others' parts of that number."""
    first, *others = [*_nested(args), *_nested(list(kwargs.values()))]
    for other in others:
        if len(other._parts) != len(first._parts):
            raise RuntimeError("Expected both nested tensors to have the same batch size")
        if first._layout_of is JAGGED and other._layout_of is JAGGED and other._lengths != first._lengths:
            raise RuntimeError(f"cannot call {func.__name__} on nested tensors of shapes {first.size()} and {other.size()}: their jagged dimensions differ")
    made = [func(*[_part(a, i, first) for a in args], **{k: _part(v, i, first) for k, v in kwargs.items()}) for i in range(len(first._parts))]
    if made and all(p is q for p, q in zip(made, first._parts)):  # nothing to convert
        return first
    if made and isinstance(made[0], (tuple, list)):
        return tuple([_wrapped(parts, first, ragged) for parts in zip(*made)])
    return _wrapped(made, first, ragged)


def _wrapped(parts: Any, like: NestedTensor, ragged: int | None = None) -> NestedTensor:
    return NestedTensor(parts, like._layout_of, like, like.__dict__["_ragged"] if ragged is None else ragged)


def _inner(x: NestedTensor, dim: int, extra: int = 0, said: tuple[str, str] = ("this operation is not supported on a nested tensor's batch dimension",) * 2) -> int:
    """A dimension counted in the parts."""
    n = x.dim() + extra
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    if dim % n == 0:
        raise RuntimeError(said[x._layout_of is JAGGED])
    return dim % n - 1


def _unsupported(name: str) -> NotImplementedError:
    return NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend.")


def call(func: Callable, args: tuple, kwargs: dict) -> Any:
    """func on arguments of which one is a nested tensor."""
    name = first_name(func)
    if name == "__get__":
        return func(args[0]._parts[0], *args[1:])
    if name in _POINTWISE:
        return _each(func, args, kwargs)
    if name in _IN_PLACE:
        _each(func, args, kwargs)
        return args[0]
    special = _SPECIAL.get(name)
    if special is not None:
        return special(func, *args, **kwargs)
    if name in _REDUCTIONS:
        return _reduced(func, name, *args, **kwargs)
    raise _unsupported(name)


# -- functions of dimensions ---------------------------------------------------------------------------------------------


def _along(func: Callable, x: NestedTensor, dim: int | None = None, *args: Any, **kwargs: Any) -> Any:
    """softmax and its kin."""
    if dim is None:
        raise RuntimeError("softmax(): Expected a dim for a nested tensor")
    if not x._parts:
        return _wrapped([], x)
    said = "Cannot apply softmax across nested dimension 0", "softmax(): not supported when reducing across the batch dimension for NestedTensor"
    return _each(func, (x, _inner(x, dim, said=said), *args), kwargs)


def _transposed(func: Callable, x: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    if x._layout_of is JAGGED and 0 in (dim0 % x.dim(), dim1 % x.dim()):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    a, b = (_inner(x, d, said=("Nested tensor dimension 0 cannot be transposed", "")) for d in (dim0, dim1))
    ragged = {a + 1: b + 1, b + 1: a + 1}.get(x._ragged, x._ragged)
    return _each(func, (x, a, b), {}, ragged)


def _permuted(func: Callable, x: NestedTensor, *dims: Any) -> NestedTensor:
    order = [d % x.dim() for d in (dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims)]
    if x._layout_of is STRIDED:
        raise _unsupported("permute")
    if len(order) != x.dim():
        raise ValueError(f"permute(): number of dimensions in the tensor input ({x.dim()}) does not match the length of the desired ordering of dimensions "
                         f"({len(order)}).")
    if len(set(order)) < len(order):
        raise ValueError("permute(): duplicate dims are not allowed.")
    if order[0]:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return _each(func, (x, [d - 1 for d in order[1:]]), {}, order.index(x._ragged))


def _not_first(name: str, doing: str) -> tuple[str, str]:
    return (f"{name}(): For nested tensors, {doing} dimension 0 is not supported at the moment if you need this feature, please open an issue on github "
            "describing your use case.", f"{name}(): not supported for NestedTensor on dim=0")


def _unsqueezed(func: Callable, x: NestedTensor, dim: int) -> NestedTensor:
    d = _inner(x, dim, 1, _not_first("unsqueeze", "unsqueezing"))
    return _each(func, (x, d), {}, x._ragged + (d < x._ragged))


def _squeezed(func: Callable, x: NestedTensor, dim: int | None = None) -> NestedTensor:
    if dim is None:
        raise RuntimeError("squeeze(): For nested tensors, squeeze without the dim argument is not supported at the moment, however you can use "
                           "squeeze(Tensor self, int dim) instead")
    d = _inner(x, dim, said=_not_first("squeeze", "squeezing"))
    if x._layout_of is JAGGED and d == x._ragged - 1:
        raise RuntimeError("squeeze(): not supported for NestedTensor on ragged dim")
    if x._layout_of is STRIDED and x._parts and all(part.shape == (1,) for part in x._parts):
        raise RuntimeError("squeeze(): For nested tensors, squeezing a nested tensor of singleton tensors is not supported at the moment, if you need this "
                           "feature, please open an issue on githubdescribing your use case.")
    return _each(func, (x, d), {}, x._ragged - (d < x._ragged - 1 and x.size(dim) == 1))


def _unflattened(func: Callable, x: NestedTensor, dim: int, sizes: Any) -> NestedTensor:
    d = _inner(x, dim)
    if x._layout_of is STRIDED:
        x.size()
    return _each(func, (x, d, list(sizes)), {}, x._ragged + (len(sizes) - 1 if d < x._ragged - 1 else 0))


def _flattened(func: Callable, x: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    a, b = _inner(x, start_dim), _inner(x, end_dim)
    if x._layout_of is JAGGED and a < b and a < x._ragged <= b + 1:
        raise RuntimeError("flatten(): a jagged dimension cannot be flattened together with others")
    return _each(func, (x, a, b), {}, x._ragged - (b - a if b < x._ragged - 1 else 0))


def _narrowed(func: Callable, x: NestedTensor, dim: int, start: int, length: int) -> NestedTensor:
    if dim % x.dim():
        return _each(func, (x, _inner(x, dim), start, length), {})
    if x._layout_of is JAGGED:
        raise RuntimeError("narrow(): not supported for NestedTensor on dim=0")
    return _wrapped(x._parts[start:start + length], x)


def _looked_up(func: Callable, x: NestedTensor, weight: Tensor, *args: Any, **kwargs: Any) -> NestedTensor:
    """Rows of a table: that has no batch dimension, whatever x's dimensions are."""
    return _wrapped([func(p, weight, *args, **kwargs) for p in x._parts], x)


def _of_one_size(func: Callable, a: Any, b: Any) -> bool:
    if not (isinstance(a, NestedTensor) and isinstance(b, NestedTensor)) or len(a._parts) != len(b._parts):
        return False
    if a._layout_of is JAGGED and a._symbol is not b._symbol:
        return False
    return all(p.shape == q.shape for p, q in zip(a._parts, b._parts))


def _viewed(func: Callable, x: NestedTensor, *sizes: Any) -> NestedTensor:
    """view and reshape: the batch's size first, and -1 (or the symbol) where sizes differ."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    if not sizes or sizes[0] not in (len(x._parts), -1):
        raise RuntimeError("view: the batch dimension of a nested tensor cannot change")
    parts = [func(p, [(p.shape[k] if s == -1 or s.__class__ is not int else s) if k < p.ndim else s for k, s in enumerate(sizes[1:])]) for p in x._parts]
    return _wrapped(parts, x)


def _divided(func: Callable, x: NestedTensor, size: Any, dim: int = 0) -> tuple:
    if x._layout_of is JAGGED and dim % x.dim() == 0 and first_name(func) == "chunk":
        n = len(x._parts)
        step = -(-n // size)
        return tuple([_wrapped(x._parts[i:i + step], x) for i in range(0, n, step)])
    return _each(func, (x, size, _inner(x, dim)), {})


def _joined(func: Callable, tensors: Any, dim: int = 0) -> NestedTensor:
    first = next(_nested(tensors))
    if dim % first.dim() == 0:
        return _wrapped([p for t in tensors for p in (t._parts if isinstance(t, NestedTensor) else t.unbind(0))], first)
    return _each(func, (list(tensors), _inner(first, dim)), {})


def _normalized(func: Callable, x: NestedTensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> NestedTensor:
    if x._layout_of is STRIDED and (weight is None or bias is None):
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    return _each(lambda p: func(p, shape, weight, bias, eps), (x,), {})


def _product(func: Callable, a: Any, b: Any) -> NestedTensor:
    plain = next((t for t in (a, b) if not isinstance(t, NestedTensor)), None)
    if plain is not None and next(_nested([a, b]))._layout_of is STRIDED:
        if func.__name__ != "bmm" and not (plain is b and a.dim() == 4 and b.dim() == 2):
            words = "nested self and non-nested other" if plain is b else "non-nested self and nested other"
            raise RuntimeError(f"Expected both to be nested, but got a {words}")
    if func.__name__ == "bmm":
        if any(t.dim() != 3 for t in (a, b)):
            raise RuntimeError(f"{'batch1' if a.dim() != 3 else 'batch2'} must be a 3D tensor")
        func = FUNCTIONS["mm"]  # of the parts
    return _each(func, (a, b), {})


def _attention(func: Callable, query: NestedTensor, key: NestedTensor, value: NestedTensor, attn_mask: Any = None, *args: Any, **kwargs: Any) -> NestedTensor:
    """Attention inside each part."""
    like = next(_nested([query, key, value]))
    made = [func(*[_part(t, i, like) for t in (query, key, value)], attn_mask, *args, **kwargs) for i in range(len(like._parts))]
    return _wrapped(made, like)


def _selected(func: Callable, x: NestedTensor, dim: int, index: int) -> Any:
    """A part, or a nested tensor without one of the dimensions that all parts have alike."""
    if dim % x.dim() == 0:
        return x[index]
    d = _inner(x, dim)
    if x._layout_of is JAGGED and d == x._ragged - 1:
        raise RuntimeError("select(): not supported for NestedTensor on ragged dim")
    return _each(func, (x, d, index), {}, x._ragged - (d < x._ragged - 1))


def _expanded(func: Callable, x: NestedTensor, *sizes: Any) -> NestedTensor:
    sizes = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if x._layout_of is STRIDED or len(sizes) != x.dim() or sizes[0] not in (len(x._parts), -1):
        raise _unsupported("expand")
    return _wrapped([func(p, [s if s.__class__ is int else -1 for s in sizes[1:]]) for p in x._parts], x)


def _encoded(func: Callable, x: NestedTensor, *args: Any, **kwargs: Any) -> NestedTensor:
    """An encoder layer, which takes batches: each part is one."""
    return _wrapped([func(p[None], *args, **kwargs)[0] for p in x._parts], x)


def _attended(func: Callable, query: NestedTensor, key: NestedTensor, value: NestedTensor, *args: Any, **kwargs: Any) -> tuple[NestedTensor, Tensor | None]:
    """Attention inside each part; the weights are a plain tensor, filled up with zeros."""
    if signature_of(func).bind(query, key, value, *args, **kwargs).arguments.get("mask") is not None:
        raise RuntimeError("NestedTensor with mask is not supported yet")
    same = query is key is value
    parts = [(p[None],) * 3 if same else tuple(x[None] for x in (p, k, v)) for p, k, v in zip(query._parts, key._parts, value._parts)]
    found, weights = zip(*[func(*three, *args, **kwargs) for three in parts])
    if weights[0] is not None:
        longest = max(w.shape[-1] for w in weights)
        weights = FUNCTIONS["cat"]([pad(w, (0, longest - w.shape[-1]) * 2) for w in weights])
    else:
        weights = None
    return _wrapped([x[0] for x in found], query), weights


def _root_mean_square(func: Callable, x: NestedTensor, shape: Any, *args: Any, **kwargs: Any) -> NestedTensor:
    return _wrapped([func(p, shape, *args, **kwargs) for p in x._parts], x)


def _gradients(func: Callable, outputs: Any, inputs: Any, grad_outputs: Any = None, **kwargs: Any) -> tuple:
    """torch.autograd.grad: of all parts, and with respect to all parts."""
    def parts(xs: Any) -> list:
        return [p for x in xs for p in (x._parts if isinstance(x, NestedTensor) else (x,))]

    if grad_outputs is not None:
        given = (grad_outputs,) if isinstance(grad_outputs, Tensor) else grad_outputs
        grad_outputs = [p for g, y in zip(given, outputs) for p in (g._parts if isinstance(g, NestedTensor) else (g,) * len(parts([y])))]
    elif any(isinstance(y, NestedTensor) for y in outputs):
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    nested = [isinstance(x, NestedTensor) for x in inputs]
    found = iter(func(parts(outputs), parts(inputs), grad_outputs, **{**kwargs, "allow_unused": kwargs.get("allow_unused") or any(nested)}))
    made: list = []
    for x in inputs:
        if not isinstance(x, NestedTensor):
            made.append(next(found))
            continue
        each = [next(found) for _ in x._parts]
        made.append(None if all(g is None for g in each) else
                    _wrapped([FUNCTIONS["zeros_like"](p) if g is None else g for p, g in zip(x._parts, each)], x))
    unused = [i for i, g in enumerate(made) if g is None]
    if unused and not kwargs.get("allow_unused"):
        raise RuntimeError(f"The differentiated Tensor at index {unused[0]} appears to not have been used in the graph. Set allow_unused=True if this is the "
                           "desired behavior.")
    return tuple(made)


def _summed_up(func: Callable, x: NestedTensor, weight: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """embedding_bag: each part is a bag."""
    if x._layout_of is STRIDED:
        raise _unsupported("embedding_bag")
    return func(x.values(), weight, x.offsets()[:-1], *args[1:], **{k: v for k, v in kwargs.items() if k != "offsets"})


def _one_hot(func: Callable, x: NestedTensor, num_classes: int = -1) -> NestedTensor:
    if x._layout_of is STRIDED:
        x.size()
    return _each(func, (x, int(x.max()) + 1 if num_classes == -1 else num_classes), {})


def _moved(func: Callable, x: NestedTensor, source: int, destination: int) -> NestedTensor:
    order = [d for d in range(x.dim()) if d != source % x.dim()]
    order.insert(destination % x.dim(), source % x.dim())
    return x.permute(*order)


def _reduced(func: Callable, name: str, x: NestedTensor, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    """A sum or its like: over everything, over the parts' own dimensions, or over the jagged one, which gives a plain tensor."""
    if x._layout_of is STRIDED:
        return _strided_sum(func, name, x, dim, keepdim, kwargs)
    if dim is None:
        return func(FUNCTIONS["cat"]([p.reshape(-1) for p in x._parts]), **kwargs)
    if not isinstance(dim, int):
        if len(dim) != 1:
            return _reduced_several(func, name, x, sorted({d % x.dim() for d in dim}), keepdim, kwargs)
        dim = dim[0]
    d = _inner(x, dim)
    made = [func(p, d, keepdim=keepdim, **kwargs) for p in x._parts]
    if d != x._ragged - 1:
        return _wrapped(made, x, x._ragged - (d < x._ragged - 1 and not keepdim)) if isinstance(made[0], Tensor) else type(made[0])(
            *[_wrapped(parts, x) for parts in zip(*made)])
    return FUNCTIONS["stack"](made) if isinstance(made[0], Tensor) else type(made[0])(*map(FUNCTIONS["stack"], zip(*made)))


def _reduced_several(func: Callable, name: str, x: NestedTensor, dims: list[int], keepdim: bool, kwargs: dict) -> Any:
    """Over the batch and the jagged dimension at once, or over dimensions of the parts."""
    if 0 not in dims:
        made = [func(p, [d - 1 for d in dims], keepdim=keepdim, **kwargs) for p in x._parts]
        return FUNCTIONS["stack"](made) if x._ragged in dims else _wrapped(made, x, x._ragged - (0 if keepdim else sum(d < x._ragged for d in dims)))
    if x._ragged not in dims:
        raise RuntimeError(f"{name}(): not supported along the batch dimension but not the ragged dimension for NestedTensor")
    made = func(x.values(), [d - 1 for d in dims if d], keepdim=keepdim, **kwargs)
    return made.unsqueeze(0) if keepdim else made


def _strided_sum(func: Callable, name: str, x: NestedTensor, dim: Any, keepdim: bool, kwargs: dict) -> NestedTensor:
    if name != "sum" or dim is None:
        raise _unsupported(name)
    dims = [dim] if isinstance(dim, int) else list(dim)
    if len(dims) != 1:
        raise RuntimeError("NestedTensor only allows reduction of a single dimension for now.")
    if dims[0] % x.dim() != x.dim() - 1:
        raise RuntimeError(f"NestedTensor can only be reduced across the last dimension for now got dimension {dims[0]} instead.")
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return _wrapped([func(p, -1, keepdim=True, **kwargs) for p in x._parts], x)


_SPECIAL: dict[str, Callable] = {
    "softmax": _along, "log_softmax": _along, "transpose": _transposed, "swapaxes": _transposed, "unsqueeze": _unsqueezed, "squeeze": _squeezed,
    "unflatten": _unflattened, "view": _viewed, "reshape": _viewed, "chunk": _divided, "split": _divided, "split_with_sizes": _divided, "cat": _joined, "concat": _joined,
    "layer_norm": _normalized, "matmul": _product, "__matmul__": _product, "__rmatmul__": lambda f, a, b: _product(f, a, b), "bmm": _product,
    "scaled_dot_product_attention": _attention, "flatten": _flattened, "narrow": _narrowed, "embedding": _looked_up, "is_same_size": _of_one_size,
    "select": _selected, "permute": _permuted, "_transformer_encoder_layer_fwd": _encoded, "_native_multi_head_attention": _attended,
    "expand": _expanded, "rms_norm": _root_mean_square, "grad": _gradients, "embedding_bag": _summed_up, "one_hot": _one_hot, "movedim": _moved,
    "moveaxis": _moved, "to_dense": lambda func, x, *args, **kwargs: x,
    "to_padded_tensor": lambda func, x, *args, **kwargs: type(x).to_padded_tensor(x, *args, **kwargs),
}
