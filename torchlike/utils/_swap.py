"""torch.utils.swap_tensors: two tensors exchange everything but who they are."""
from __future__ import annotations

import contextlib
import gc
import sys
import weakref
from collections.abc import Iterator

from .._core.garbage import all_known
from .._core.graph import AccumulateGrad
from .._fields import fields
from .._tensor import Tensor

_POISONED = ("Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run backward on a tensor that was "
             "swapped. For a module m with `torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or dtype of the "
             "module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve this, please only change the device/dtype before "
             "running forward (or after both forward and backward).")


_rounds: list[dict[int, Tensor] | None] = []  # of open `many` blocks the outermost: the tensors that have views, by id, once somebody asked


@contextlib.contextmanager
def many() -> Iterator[None]:
    """Inside of the block many tensors are swapped: all live views are looked for once, not for each tensor."""
    _rounds.append(_rounds[0] if _rounds else None)
    try:
        yield
    finally:
        _rounds.pop()


def _has_views(t: Tensor) -> bool:
    """Whether another tensor is a view of t."""
    if not _rounds:
        with all_known():
            return any(getattr(r, "_base", None) is t or (isinstance(r, dict) and r.get("_base") is t) for r in gc.get_referrers(t._storage))
    if _rounds[0] is None:
        with all_known():
            bases = [fields(o).get("_base") for o in gc.get_objects() if issubclass(type(o), Tensor)]
        _rounds[0] = {id(b): b for b in bases if b is not None}
    return id(t) in _rounds[0]


def _weakly_held(t: Tensor) -> bool:
    """Whether anybody but the graph, which finds a leaf so, has a weak reference to t. Those without callback are one object: its holders count."""
    own = t._edge.ref if isinstance(t._edge, AccumulateGrad) else None
    return any(r is not own for r in weakref.getweakrefs(t)) or own is not None and sys.getrefcount(own) > 3  # here, in the edge, in the call


def _check_views(t: Tensor, name: str) -> None:
    """A view finds what it is a view of by the tensor, so that must stay what it is."""
    st = t._storage
    if st is None or sys.getrefcount(st) <= 3:  # t's, here, in the call: nobody shares it, so the search, which is slow, is not needed
        return
    if not _has_views(t):
        return
    if not t.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    raise RuntimeError(f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got 3 make sure you are not holding references to the "
                       "tensor in other places.")


def _refuse(grads: tuple) -> None:
    raise RuntimeError(_POISONED)


def _poison(t: Tensor) -> None:
    """A graph that was made with t must not reach what t has become."""
    edge = t._edge
    if edge.__class__ is AccumulateGrad and sys.getrefcount(edge) > 3:  # here, in t, in the call
        edge.register_prehook(_refuse)


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """t1 becomes what t2 was (data, gradient, class, attributes) and the other way round; whoever holds one of them holds it still."""
    for t, name in ((t1, "t1"), (t2, "t2")):
        if _weakly_held(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    for t, name in ((t1, "t1"), (t2, "t2")):
        _check_views(t, name)
    for t in (t1, t2):
        _poison(t)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    first, second = fields(t1), fields(t2)
    before = dict(first)
    for into, content in ((first, dict(second)), (second, before)):
        into.clear()
        into.update(content)
    for t in (t1, t2):
        if isinstance(t._edge, AccumulateGrad):
            t._edge.ref = weakref.ref(t)
