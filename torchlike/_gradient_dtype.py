"""`Tensor.grad_dtype`: the dtype of a leaf's gradients, which is its own unless set."""
from __future__ import annotations

from ._core.dtype import dtype


def get(t) -> dtype | None:
    """None: gradients of any dtype."""
    return t.dtype if t._grad_dtype is None else t._grad_dtype[0]


def shown(t) -> dtype | None:
    """The attribute's value; RuntimeError but for a leaf."""
    _need_leaf(t, "accessed")
    return get(t)


def set_(t, chosen: dtype | None) -> None:
    """RuntimeError but for a leaf, or where there is a gradient of another dtype."""
    grad = t.grad  # of what is no leaf, asking for it warns
    _need_leaf(t, "set")
    if chosen is not None and not isinstance(chosen, dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(chosen).__name__}")
    if chosen is not None and grad is not None and grad.dtype is not chosen:
        raise RuntimeError(f"Cannot set grad_dtype to '{chosen.short}' because there is already a gradient with dtype '{grad.dtype.c_name}'. Please clear "
                           "the gradient (.grad = None) before changing grad_dtype, or ensure the new grad_dtype matches the existing gradient's dtype.")
    t._grad_dtype = (chosen,)
    if t._edge is not None:
        t._edge.grad_dtype = chosen


def check(t, g) -> None:
    """RuntimeError for a gradient g that t may not have."""
    allowed = get(t)
    if allowed is not None and g.dtype is not allowed:
        raise RuntimeError(f"attempting to assign a gradient with dtype '{g.dtype.c_name}' to a tensor with grad_dtype '{allowed.short}'. The gradient must match "
                           "the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, "
                           "or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break "
                           "downstream systems that assume they match.")


def _need_leaf(t, what: str) -> None:
    if not t.is_leaf:
        raise RuntimeError(f"grad_dtype can only be {what} on leaf tensors.")
