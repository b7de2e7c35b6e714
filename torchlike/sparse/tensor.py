"""SparseTensor: what COO and compressed tensors have in common.

A sparse tensor holds dense ones: where its entries are, and their values (`_entries`). The graph of differentiation runs through the
values, and operations on it are made of operations on them, so that recording, autograd and compilation know nothing of sparseness.
It has no Value of its own: see `_valueless.py`.
"""
from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .._core import dtype as dt
from .._core import program
from .._core.aval import Aval, aval
from .._core.grad_mode import mode
from .._core.registry import Op
from .._fields import fields
from .._public import SPARSE_FORMS
from .._tensor import OTHER_KIND, Size, Tensor, _plain_copy, apply, as_tensor_value
from .._valueless import Valueless
from ..ops.layouts import LAYOUTS


class SparseTensor(Valueless):
    """Base of the layouts. `_entries` are the values, `_dims` the shape."""

    _dims: tuple
    _of_leaf = False  # the gradient of a leaf, whose values it shares
    _whole: tuple | None = None  # (the strided tensor that it was made of, the version of the values then), where that requires grad
    _viewed = False  # whether it was made by a function that makes views
    layout_name = ""
    index_names: tuple[str, ...] = ()  # the attributes that say where entries are
    forms = SPARSE_FORMS

    @property
    def _entries(self) -> Tensor:
        """The values. Looking at them ends the replay of a compiled function: which entries there are is not known to its guards."""
        capture = program.state.capture
        if capture is not None:
            capture.interrupted("a sparse tensor")
        return self._held

    @_entries.setter
    def _entries(self, entries: Tensor) -> None:
        fields(self)["_value"] = None  # for those who go through all tensors
        self._held = entries

    def made_of(self, t: Tensor | None) -> SparseTensor:
        """Remember the strided tensor that this one was made of: gradients that do not come from entries alone are its."""
        if t is not None and t.requires_grad and mode.enabled:
            self._whole = _plain_copy(t), self._entries._written
        return self

    def whole(self) -> Tensor | None:
        """The strided tensor that this one was made of, where it is known."""
        return None if self._whole is None or self._whole[1] != self._entries._written else self._whole[0]

    def become(self, made: Tensor, name: str) -> Tensor:
        """Take over a result, as `out=` of function `name` or in place."""
        if not isinstance(made, type(self)):
            made.refuse(f"{name}.out") if isinstance(made, SparseTensor) else self.refuse(f"{name}.out")
        if not dt.can_cast(made.dtype, self.dtype):
            raise RuntimeError(f"result type {made.dtype.short} can't be cast to the desired output type {self.dtype.short}")
        return self.adopt(made)

    def _is_view(self) -> bool:
        return self._viewed

    def as_view(self) -> SparseTensor:
        """This tensor, which says that it is a view of another."""
        self._viewed = True
        return self

    # -- facts ---------------------------------------------------------------------------------------------------------

    @property
    def _aval(self) -> Aval:
        return aval(self._dims, self._entries.dtype, self._entries.device)

    shape = property(lambda self: Size(self._dims))
    dtype = property(lambda self: self._entries.dtype)
    device = property(lambda self: self._entries.device)
    layout = property(lambda self: LAYOUTS[self.layout_name])
    is_sparse = property(lambda self: self.layout_name == "sparse_coo")
    is_sparse_csr = property(lambda self: self.layout_name == "sparse_csr")
    class_name = property(lambda self: "".join(p.capitalize() for p in self.layout_name.split("_")).replace("Coo", ""))

    def is_same_size(self, other: Tensor) -> bool:
        return tuple(other.shape) == self._dims

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return False

    def is_inference(self) -> bool:
        return self._entries.is_inference()

    # -- autograd: the values' place in the graph ------------------------------------------------------------------------

    _edge = property(lambda self: self._entries._edge)
    _out = property(lambda self: self._entries._out)
    is_leaf = property(lambda self: self._entries.is_leaf)
    grad_fn = property(lambda self: self._entries.grad_fn)
    output_nr = property(lambda self: self._entries.output_nr)
    retains_grad = property(lambda self: self._entries.retains_grad)

    @property
    def requires_grad(self) -> bool:
        return self._entries.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and not self._entries.requires_grad:
            self._entries = self._entries.detach()
        self._entries.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        self.requires_grad = requires_grad
        return self

    @property
    def _grad(self) -> Tensor | None:
        g = self._entries._grad
        if g is None:
            return None
        made = self._as_gradient(g)
        made._of_leaf, made._unique = True, made._nnz() < 2
        return made

    @_grad.setter
    def _grad(self, g: Tensor | None) -> None:
        self._entries._grad = None if g is None else self._gradient_entries(g)

    def _gradient_entries(self, g: Tensor) -> Tensor:
        if not isinstance(g, type(self)):
            raise NotImplementedError("torchlike: a sparse tensor's gradient has its layout")
        return g._entries

    def _as_gradient(self, g: Tensor) -> Tensor:
        """The gradient of the values as that of the tensor: of the same pattern."""
        return self._like(g)

    # -- made from it ----------------------------------------------------------------------------------------------------

    def _like(self, entries: Tensor) -> Tensor:
        """The same places with other values."""
        raise NotImplementedError

    def detach(self) -> Tensor:
        return self._like(self._entries.detach())

    def _become_data(self, other: Tensor) -> None:
        """`self.data = other`: other's places and values, and the own place in the graph."""
        if type(other) is not type(self):
            raise RuntimeError(OTHER_KIND)
        entries, made = self._entries, other.detach()
        entries.data = made._entries
        fields(self).update(fields(made))
        self._whole = None
        self._entries = entries

    data = property(detach, _become_data)

    def clone(self, *, memory_format: Any = None) -> Tensor:
        return self._like(self._entries.clone())

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """Another dtype or device."""
        entries = self._entries.to(*[a._entries if isinstance(a, SparseTensor) else a for a in args], **kwargs)
        return self if entries is self._entries else self._like(named(entries, "ToCopy"))._moved(entries.device)

    def _moved(self, device: Any) -> Tensor:
        """With the places on the device as well."""
        raise NotImplementedError

    def type(self, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        made = self._entries.type(dtype, non_blocking, **kwargs)
        return made.replace("torch.", "torch.sparse.") if isinstance(made, str) else self.to(made.dtype)

    def cuda(self, device: Any = None, *args: Any, **kwargs: Any) -> Tensor:
        return self.to(self._entries.cuda(device).device)

    def __deepcopy__(self, memo: dict) -> Tensor:
        if id(self) not in memo:
            if not self.is_leaf:
                self._entries.__deepcopy__(memo)  # raises
            made = memo[id(self)] = self.detach().clone()
            made.requires_grad = self.requires_grad
            if self.grad is not None:
                made.grad = copy.deepcopy(self.grad, memo)
        return memo[id(self)]

    # -- what has no meaning ---------------------------------------------------------------------------------------------

    def numpy(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"can't convert {self.class_name} layout tensor to numpy. Use Tensor.to_dense() first.")

    __array__ = numpy

    def item(self) -> NoReturn:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        self.refuse("_local_scalar_dense")

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.to_dense())

    def is_nonzero(self) -> bool:
        """Whether the only element is not zero."""
        return bool(self)

    def storage(self) -> NoReturn:
        raise NotImplementedError(f"Cannot access storage of {'Sparse' if self.is_sparse else 'SparseCsr'}TensorImpl")

    untyped_storage = is_shared = share_memory_ = storage

    def backward(self, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
        """The gradient of self with respect to the leaves; `gradient` counts where self has elements."""
        from ..autograd import backward
        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def retain_grad(self) -> None:
        self._entries.retain_grad()

    def register_hook(self, hook: Callable) -> Any:
        """hook(grad) -> None or a replacement, both sparse; of a replacement what counts are the elements that self specifies."""
        def of_entries(g: Tensor | None) -> Tensor | None:
            return self._entries_of(hook(None if g is None else self._as_gradient(g)))
        return self._entries.register_hook(of_entries)

    def register_post_accumulate_grad_hook(self, hook: Callable) -> Any:
        return self._entries.register_post_accumulate_grad_hook(lambda _: hook(self))

    def _same_places(self, other: SparseTensor) -> bool:
        """Whether entry k of one lies where entry k of the other does."""
        pairs = [(getattr(self, name), getattr(other, name, None)) for name in self.index_names]
        return type(other) is type(self) and all(a is b or a.shape == b.shape and bool((a == b).all()) for a, b in pairs)

    def _entries_of(self, g: Tensor | None) -> Tensor | None:
        """Any gradient of this tensor as one of its entries."""
        return None if g is None else g._entries if g._sparse and self._same_places(g) else self._masked(g)

    def _masked(self, g: Tensor) -> Tensor:
        return (g.to_dense() if g._sparse else g).sparse_mask(self.detach())._entries

    @property
    def nbytes(self) -> NoReturn:
        raise RuntimeError("nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the nbytes of the indices and "
                           "values.")

    def data_ptr(self) -> NoReturn:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    tolist = data_ptr

    def contiguous(self, memory_format: Any = None) -> NoReturn:
        raise RuntimeError("unsupported memory format option Contiguous")

    def reshape(self, *shape: Any) -> NoReturn:
        raise RuntimeError("reshape is not implemented for sparse tensors")

    flatten = reshape

    def expand(self, *sizes: Any) -> NoReturn:
        raise RuntimeError(f"expand is unsupported for {self.class_name} tensors")

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError("Cannot assign to a sparse tensor")

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)


@functools.cache
def _identity(name: str) -> Op:
    return Op(f"sparse_{name}", lambda xp, x: x, shape=lambda a: (a.shape, a.dtype), vjp=lambda xp, g: (g,), torch_name=name if "Backward" in name else f"{name}Backward0")


def named(values: Tensor, name: str) -> Tensor:
    """values, as the result of an operation that torch calls `name`."""
    return values if values._edge is None or not mode.enabled else apply(_identity(name), (values,))


def on_device(array: np.ndarray, like: Tensor) -> Tensor:
    """Indices that the host worked out, beside the others."""
    return as_tensor_value(np.ascontiguousarray(array), like.device)
