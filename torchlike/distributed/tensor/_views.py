"""Sharding rules of operations that rearrange a tensor: pieces stay where they are as long as they are pieces of the result too."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._core.dtype import dtype
from ..._functions import torch
from ...overrides import DisableTorchFunctionSubclass
from ._call import Call, without
from ._dtensor import in_place
from ._layout import local_shape
from ._reductions import _dims, _left, along
from .placement_types import Replicate, Shard, pieces


def _order(call: Call) -> list[int]:
    """For each dimension of the result, which of the tensor it is: read off a tensor whose sizes tell them apart."""
    probe = torch.empty(tuple(range(2, 2 + call.first.dim())), device="meta")
    return [n - 2 for n in call.on(lambda _: probe).shape]


def permuted(call: Call) -> Any:
    order = _order(call)
    return call.locally(lambda t: t._placements, tuple(Shard(order.index(p.dim)) if isinstance(p, Shard) else p for p in call.first._placements))


def unsqueeze(call: Call) -> Any:
    dim = call.given(1, "dim")
    dim += call.first.dim() + 1 if dim < 0 else 0
    return call.locally(lambda t: t._placements, tuple(Shard(p.dim + (p.dim >= dim)) if isinstance(p, Shard) else p for p in call.first._placements))


def squeeze(call: Call) -> Any:
    """Also of all dimensions of length 1, which are those of the whole: a piece may have others."""
    x, given = call.first, call.given(1, "dim")
    gone = [d for d in _dims(given, x.dim()) if x._global[d] == 1]
    wanted = without(x._placements, gone, partial=True)
    local = in_place(x, wanted)
    with DisableTorchFunctionSubclass():
        made = local.squeeze(tuple(gone)) if gone else local.view_as(local)
    return call.results(made, _left(wanted, gone, False), [[n for d, n in enumerate(x._global) if d not in gone]])


def reshaped(call: Call) -> Any:
    """view, reshape, flatten, unflatten."""
    x = call.first
    if any(isinstance(a, dtype) for a in (*call.args, *call.kwargs.values())):
        return NotImplemented
    shape = tuple(call.shapes().shape)
    groups = _groups(x._global, shape)
    wanted, out = [], []
    for i, p in enumerate(x._placements):
        q = p
        if isinstance(p, Shard):
            to = _carried(p.dim, x._global, shape, groups, call.mesh.size(i))
            _refuse_uneven(p.dim, shape, groups, i, call.mesh.size(i))
            several = sum(r.is_shard(p.dim) for r in x._placements) > 1
            p, q = (Replicate(), Replicate()) if to is None or several and x._global[p.dim] != shape[to] else (p, Shard(to))
        wanted.append(p)
        out.append(q)
    local = in_place(x, tuple(wanted))
    with DisableTorchFunctionSubclass():
        made = getattr(local, "view" if call.name in ("view", "view_as") else "reshape")(local_shape(shape, call.mesh, out))
    return call.results(made, tuple(out), [shape])


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Dimensions of both shapes that hold the same elements: (old ones, new ones)."""
    found, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        a, b = [], []
        m = n = 1
        if i < len(old):
            a.append(i)
            m, i = old[i], i + 1
        if j < len(new):
            b.append(j)
            n, j = new[j], j + 1
        while m != n and (i < len(old) or j < len(new)):
            if m < n and i < len(old) or j >= len(new):
                a.append(i)
                m, i = m * old[i], i + 1
            else:
                b.append(j)
                n, j = n * new[j], j + 1
        found.append((a, b))
    return found


def _carried(dim: int, old: Sequence[int], new: Sequence[int], groups: list, parts: int) -> int | None:
    """The dimension of the new shape whose pieces are those of a dimension of the old one."""
    a, b = next(g for g in groups if dim in g[0])
    a, b = [d for d in a if old[d] != 1 or d == dim], [d for d in b if new[d] != 1]
    if not a or a[0] != dim or not b:
        return None
    inside, within = math.prod(old[d] for d in a[1:]), math.prod(new[d] for d in b[1:])  # elements per step of each dimension
    same = [n * inside for n in pieces(old[dim], parts)] == [n * within for n in pieces(new[b[0]], parts)]
    return b[0] if same else None


def _refuse_uneven(dim: int, new: Sequence[int], groups: list, i: int, parts: int) -> None:
    """torch's error where a dimension that is cut becomes several, of which the first cannot be cut evenly."""
    b = [d for d in next(g for g in groups if dim in g[0])[1] if new[d] != 1]
    if len(b) > 1 and new[b[0]] % parts:
        raise RuntimeError(f"Cannot unflatten unevenly sharded tensor: output dimension {b[0]} (size {new[b[0]]}) is not evenly divisible by mesh dimension {i} "
                           f"(size {parts}). Please redistribute the tensor before this operation.")


def expanded(call: Call) -> Any:
    """expand, expand_as, broadcast_to."""
    x, shape = call.first, tuple(call.shapes().shape)
    ahead = len(shape) - x.dim()
    wanted = without(x._placements, [d for d in range(x.dim()) if x._global[d] != shape[d + ahead]], partial=True)
    out = tuple(Shard(p.dim + ahead) if isinstance(p, Shard) else p for p in wanted)
    local = in_place(x, wanted)
    with DisableTorchFunctionSubclass():
        made = local.expand(local_shape(shape, call.mesh, out))
    return call.results(made, out, [shape])


def _on_dim(place: int, name: str = "dim", default: int = 0, kept: bool = True):
    """A rule for what divides a dimension (split, chunk, narrow), or takes it away (select, unbind)."""
    def rule(call: Call) -> Any:
        x, dim = call.first, call.given(place, name, default)
        if not isinstance(dim, int) or len(call.tensors) > 1:
            return NotImplemented
        dim %= x.dim()
        if call.name == "unbind" and any(p.is_shard(dim) for p in x._placements):
            raise RuntimeError(f"Attempted to unbind along the sharded dimension {dim}. It cannot be performed without redistribution, which is disallowed by "
                               "the current operator.")
        wanted = without(x._placements, [dim], partial=True)
        return call.locally(lambda _: wanted, wanted if kept else _left(wanted, [dim], False))
    return rule


def joined(call: Call) -> Any:
    """cat and stack: the tensors lie as the one that is cut the most, whole along the dimension."""
    tensors = call.given(0, "tensors")
    new = call.name == "stack"
    ndim = max(t.dim() for t in tensors)
    if any(t.dim() != ndim for t in tensors):
        return NotImplemented
    dim = call.given(1, "dim", 0) % (ndim + new)
    first = max(tensors, key=lambda t: sum(p.is_shard() for p in t._placements))
    terms = all(t._placements == first._placements for t in tensors)
    wanted = without(first._placements, [] if new else [dim], partial=terms)
    return call.locally(lambda _: wanted, tuple(Shard(p.dim + (p.dim >= dim)) if new and isinstance(p, Shard) else p for p in wanted))


def indexed(call: Call) -> Any:
    """x[...] with numbers, slices, None and an ellipsis."""
    x, index = call.args
    index = index if isinstance(index, tuple) else (index,)
    if any(not (isinstance(k, (int, slice)) or k is None or k is ...) or isinstance(k, bool) for k in index):
        return NotImplemented
    taken = sum(k is not None and k is not ... for k in index)
    spread = [slice(None)] * (x.dim() - taken)
    at = next((n for n, k in enumerate(index) if k is ...), len(index))
    dims: list[int | None] = []  # the tensor's dimensions in the result
    touched, d = [], 0
    for k in (*index[:at], *spread, *index[at + 1:]):
        if k is None:
            dims.append(None)
            continue
        if isinstance(k, int):
            touched.append(d)
        else:
            if k != slice(None):
                touched.append(d)
            dims.append(d)
        d += 1
    wanted = without(x._placements, touched, partial=True)
    return call.locally(lambda _: wanted, tuple(Shard(dims.index(p.dim)) if isinstance(p, Shard) else p for p in wanted))


def last_whole(call: Call) -> Any:
    """view_as_real and view_as_complex."""
    return along(call, [call.first.dim() - 1])


RULES = {
    **dict.fromkeys(("transpose", "t", "T", "mT", "H", "mH", "adjoint", "permute", "movedim", "moveaxis", "swapaxes", "swapdims"), permuted),
    "unsqueeze": unsqueeze, "squeeze": squeeze,
    **dict.fromkeys(("view", "reshape", "flatten", "unflatten", "view_as", "reshape_as"), reshaped),
    **dict.fromkeys(("expand", "expand_as", "broadcast_to"), expanded),
    **dict.fromkeys(("split", "chunk", "split_with_sizes", "tensor_split"), _on_dim(2)),
    "narrow": _on_dim(1), "select": _on_dim(1, kept=False), "unbind": _on_dim(1, kept=False), "repeat_interleave": _on_dim(2, default=None),
    **dict.fromkeys(("cat", "concat", "concatenate", "stack"), joined), "__getitem__": indexed,
    "view_as_real": last_whole, "view_as_complex": last_whole,
}
