"""Tensor: what the user holds. A value, its autograd edge, and, once it has aliases, the storage they share.

`apply` is the record path: every operation of torchlike goes through it. Methods are attached by `torchlike.ops`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from . import _gradient_dtype
from ._alias import missing
from ._core import dtype as dt
from ._core import program, runs
from ._core.aval import Aval
from ._core.grad_mode import inference, mode
from ._core.graph import NOT_A_LEAF, UNDER_INFERENCE, UNDER_NO_GRAD, AccumulateGrad, Node, Outside, Stale, node_class
from ._core.history import warn
from ._core.layout import Examples, Layout, contiguous, extent, joined, overlapping
from ._core.program import record
from ._core.registry import OPS, Plan, View
from ._core.shown import Shown
from ._core.value import Value, is_tracer, of_array
from ._fields import AttributesOf, Fields, fields, share, show
from ._plainly import _disabled_torch_dispatch_impl, _disabled_torch_function_impl
from ._plainly import state as overriding
from ._size import Size, _size  # noqa: F401  (_size: pickles made before name it here)
from ._storage import LONG_AGO, Past, Storage, is_traced, past_autograd, put, through, without_overlaps

if TYPE_CHECKING:
    from ._core import device as dev

OTHER_KIND = "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."


class Tensor(Fields, metaclass=Shown):
    """torch.Tensor."""

    __module__ = "torch"
    __dict__ = AttributesOf()
    _storage: Storage | None = None
    _edge: Node | None = None  # the node whose output `_out` this tensor is; AccumulateGrad for a leaf that requires grad
    _out = 0
    _grad: Tensor | None = None
    _grad_dtype: tuple[dt.dtype | None] | None = None  # of a leaf's gradients, where that is not its own; (None,): any
    _base: Tensor | None = None  # the tensor this is a differentiable view of
    _chain: tuple = ()  # view operations from the storage's root to here: ((op, numbers, statics), ...)
    _seen = 0  # the storage version that _value belongs to
    _layout: Layout | None = None  # None: contiguous at offset 0
    _writes = 0  # version while there is no storage
    _plain = True  # results of operations on it are plain Tensors
    _of_data: list[int] | None = None  # made by `.data`, or a view of such: the count of writes through these
    _inference = False  # made under inference_mode
    _idle = None  # the end of the graph with hooks, of a leaf that requires no grad for now
    _dispatches = False  # of a class with `__torch_dispatch__`: see _dispatch/
    _sparse = False  # has no Value: see torchlike.sparse
    _former = False  # what another tensor was before it took another shape in place, and is a view of now: nobody else holds it
    _several: tuple[str | None, int, int, str] | None = None  # of a view that autograd does not let be written, as one of several made by one
    # function: its name (None under no_grad), which, the version then, the reason
    _heeded = None  # of a class: the `__torch_function__` that it goes by
    _unplaced: tuple | None = None  # of a view that takes a position which was not known (a Value in `_chain`), so that the offset of `_layout` is not
    # known either: the index that asked for it, and the chain of the tensor that was asked

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        show(cls)
        share(cls, Tensor)
        if cls.__torch_dispatch__ is not _disabled_torch_dispatch_impl:
            from ._dispatch.held import prepare
            prepare(cls)
            if _handler(cls) is _handler(Tensor):
                cls.__torch_function__ = _disabled_torch_function_impl
        cls._heed()

    @classmethod
    def _heed(cls) -> None:
        """Do as the class's `__torch_function__` says: when the class is made, and where an instance is made and it has another one since."""
        found = cls._heeded = _handler(cls)
        if not cls._dispatches:
            cls._plain = found is not _handler(Tensor)  # what functions make is plain, until `__torch_function__` makes it something else
        if found is not _handler(Tensor) and found is not _disabled_torch_function_impl:
            from .overrides import override
            override(cls)

    @classmethod
    def __torch_function__(cls, func: Callable, types: Iterable[type], args: tuple = (), kwargs: dict | None = None) -> Any:
        """What a subclass that takes functions over falls back to: func itself, with results of the subclass."""
        from .overrides import default_torch_function
        return default_torch_function(cls, func, types, args, kwargs)

    __torch_dispatch__ = staticmethod(_disabled_torch_dispatch_impl)

    @staticmethod
    def _of(value: Value) -> Tensor:
        t = _new(Tensor)
        t._value = value
        return t

    # -- values and aliases ------------------------------------------------------------------------------------------

    def _current(self) -> Value:
        """The value now, also after writes through aliases."""
        st = self._storage
        if st is None:
            return self._value
        if st.host is not None:
            st.host.look(self, st)
        if self._seen != st.version:
            self._refresh(st)
        return self._value

    def _refresh(self, st: Storage) -> None:
        """Another alias wrote: look again through the chain of views."""
        if program.state.capture is not None and program.state.capture.refreshed(self):
            return
        base = self._root()
        if base is not None:
            base._current()
        past = st.past
        if past is not None:
            self._follow_growth(st)
            first, last = past.unseen
            if first <= self._seen + 1 and st.version == last and self._of_data is None:
                self._value = through(st.value, self._chain)
                self._follow_flag(base)
                self._seen = st.version
                return
        chain = None if base is None or base._edge is None or self._several is not None else self._chain_from(base)
        if chain is None:
            self._value = through(st.value, self._chain)
            if base is not None and self._several is not None and (base._edge is not None or self._edge is not None):
                if self._written != self._several[2]:
                    self._end_graph(Stale)
            elif base is not None and self._edge.__class__ is not AccumulateGrad:
                self._edge = None
        else:
            before, mode.enabled = mode.enabled, True
            t = base
            try:
                for op, numbers, statics in chain:
                    t = apply(op, (_plain_copy(t), *numbers), statics)
            finally:
                mode.enabled = before
            self._value = t._value
            self._move_to(t)
        self._seen = st.version

    def _follow_growth(self, st: Storage) -> None:
        """What it views of memory that grew since it looked is a view of the former memory."""
        if st.past is not None and self._seen != LONG_AGO:
            for version, link in st.past.growths:
                if self._seen < version:
                    self._chain = (link, *self._chain)

    def _chain_from(self, base: Tensor) -> tuple | None:
        """The views from the base to here; where the base itself became another view since (`resize_`), one window of it, or None where it no
        longer reaches as far."""
        n = len(base._chain)
        if self._chain[:n] == base._chain:
            return self._chain[n:]
        whole, mine = base._strided(), self._strided()
        if not whole.offset <= mine.offset <= extent(mine) <= extent(whole):
            return None
        return ((OPS["as_strided"], (), (whole.strides, mine.shape, mine.strides, mine.offset - whole.offset)),)

    def _follow_flag(self, base: Tensor | None) -> None:
        """A view made before its base began to require gradients requires them too, and they end there."""
        if base is None or self._value.aval.dtype.category < dt.FLOAT:
            return
        if self._edge is None and base._edge is not None:
            self._end_graph(Outside)
        elif isinstance(self._edge, Outside) and base._edge is None:
            self._edge = None

    def _end_graph(self, end: type[Outside]) -> None:
        self._edge = end(self)
        self._plain = False  # so that `apply` looks

    def _flagged(self) -> None:
        """requires_grad was switched: views of this tensor shall look."""
        st = self._storage
        if st is not None and self._base is None:
            self._current()
            Past.add(st)
            self._seen = st.version

    def _root(self) -> Tensor | None:
        """The base, which may itself have become a view in place (`unsqueeze_`); None once it has other memory (`base.data = x`)."""
        base = self._base
        if base is not None:
            if base._base is not None:
                base = self._base = base._base
            if base._storage is not self._storage:
                base = self._base = None
        return base

    def _ensure_storage(self) -> Storage:
        st = self._storage
        if st is None:
            st = self._storage = Storage(self._value, self._layout, self._writes)
            self._seen = st.version
        return st

    def _view(self, op: View, statics: tuple, *numbers: int, position: Value | None = None) -> Tensor:
        """A view of this tensor; aliases its storage. A `position` is a number that is not known yet."""
        st = self._storage
        if st is not None and st.host is not None and position is None and (out := st.host.view(self, op, statics, numbers)) is not None:
            return out
        value, layout = self._current(), self._layout
        rest = (*numbers, *statics) if numbers else statics if position is None else (0, *statics)
        made_layout = op.layout_of_contiguous(value.aval, rest) if layout is None else op.layout(layout, rest)
        if position is not None:
            numbers = (position,)
        if self._plain and value.__class__ is Value and (st is None or st.host is None) and not inference[0]:  # as in apply, which asks for more
            values = [value, *numbers] if numbers else [value]
            plan, made = record(op, values, statics)
            out = _new(Tensor)
            out._value = made[0]
            if self._edge is not None and mode.enabled and plan.differentiable:
                out._edge = _node(op, plan, [(self._edge, self._out), *[None] * len(numbers)], values, made)
        else:
            out = apply(op, (self, *numbers), statics)
        if value.array is program.META_ARRAY:
            if value.__class__ is Value:
                out._layout = made_layout
            elif out is not None and out._dispatches:  # None: what a class may return
                out._base = value.tensor if value.tensor._base is None else value.tensor._base
            return out
        self._shows(out, (op, numbers, statics), made_layout)
        if position is not None or self._unplaced:
            out._unplaced = op, ()
        return out

    def _shows(self, out: Tensor, link: tuple, layout: Layout | None) -> None:
        """`out`, which holds what `link` takes of this tensor, is a view of it."""
        st = self._ensure_storage()
        out._storage, out._seen = st, st.version
        if program.state.capture is not None:
            program.state.capture.viewed(out)
        chain, base = self._chain, self._base
        if chain and link[0].name == "view" and chain[-1][0] is link[0] and base is not None and len(chain) > len(base._chain):
            chain = chain[:-1]  # only the last shape counts: `x = x.view(..)` in a loop makes no longer and longer chain, which every write goes through
        out._chain = (*chain, link)
        out._layout = layout
        if self._of_data is not None:
            out._of_data = self._of_data
        if self._inference:  # only its memory is known to it: autograd does not track what it is a view of
            out._edge = None
            return
        out._base = self if self._base is None else self._base
        if not mode.enabled:
            out._several = None, 0, out._written, UNDER_INFERENCE if mode.inference else UNDER_NO_GRAD
            if out._base._edge is not None and self._value.aval.dtype.category >= dt.FLOAT:
                out._end_graph(Outside)
        elif self._several is not None:
            out._several = link[0].torch_name.removesuffix("Backward0"), 0, out._written, self._several[3]

    def _alias(self) -> Tensor:
        """A tensor of the same storage, layout and value, outside autograd (detach)."""
        st = self._ensure_storage()
        value = self._value if st.host is not None and st.host.is_apart(self) else self._current()  # it looks for itself, when it is looked at
        out = _new(Tensor)
        out._value, out._storage, out._seen = value, st, self._seen
        out._chain, out._layout = self._chain, self._layout
        if value.__class__ is Value and is_tracer(value.array):
            link = OPS["detached"], (), ()
            out._value, out._chain = record(link[0], [value], ())[1][0], (*self._chain, link)
        if self._unplaced:
            out._unplaced = self._unplaced
        if self._of_data is not None:
            out._of_data = self._of_data
        if self._inference:
            out._inference, out._plain = True, False
        return out

    def _check_write(self, repeats: bool = False) -> None:
        """torch's errors for an in-place operation on a leaf, on an inference tensor outside inference_mode, or, unless it `repeats` one
        value, on a tensor of which several elements are one place in memory."""
        if self._inference and not mode.inference and self._of_data is None:  # `.data` counts writes of its own
            raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor "
                               "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.")
        if mode.enabled:
            if self._edge.__class__ is AccumulateGrad:
                view = "" if self._base is None or self._base._former else "a view of "
                raise RuntimeError(f"{view}a leaf Variable that requires grad is being used in an in-place operation.")
            if isinstance(self._edge, Outside):
                raise RuntimeError(self._refusal("is being"))
            base = self._base
            if base is not None and (base._edge.__class__ is AccumulateGrad or base._edge is None and not base._former and self._fresh_edge() is not None):
                self._refuse_several()  # of a leaf, which may itself be a view of what requires no gradient
                raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
            if base is not None and self._edge is not None and self._edge.until_written:
                self._refresh(self._storage)
        if repeats:
            return
        for op, _, _ in self._chain:
            if op.overlaps and overlapping(self._layout):
                raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single "
                                   "memory location. Please clone() the tensor before performing the operation.")

    def _is_alone(self) -> bool:
        """Whether a write concerns nobody but this tensor: no alias, no graph that is being made, no trace."""
        return (self._storage is None and (self._edge is None or not mode.enabled) and not self._inference and not self._dispatches
                and program.state.capture is None)

    def _assign(self, new: Tensor, repeats: bool = False) -> Tensor:
        """In-place: this tensor (and all its aliases) now hold `new`, a tensor of the same shape and dtype."""
        if self._is_alone() and new._storage is None and (mode.enabled or not (is_traced(new._value) or is_traced(self._value))):  # most are
            self._value = new._value
            self._writes += 1
            if new._edge is not None and mode.enabled:
                self._edge, self._out = new._edge, new._out
            return self
        self._check_write(repeats)
        if program.state.capture is not None:
            program.state.capture.writes(self)
        st = self._storage
        if st is not None and st.host is not None:
            if st.host.put(self, st, new):
                return self
            st.host.sync(st)
        value = new._current()
        traced = not mode.enabled and (is_traced(value) or is_traced(self._value if st is None else st.value))
        if traced:
            value = past_autograd(self._current(), value)
        if st is None:
            self._value = value
            self._writes += 1
            if mode.enabled:
                self._move_to(new)
            return self
        self._current()
        base = self._root()
        if base is not None:
            base._current()
        chain = self._chain
        if any(op.overlaps for op, _, _ in chain):
            chain = without_overlaps(chain, self._strided(), self._value.aval.dtype, st)
        graph = mode.enabled and base is not None and (base._edge is not None or new._edge is not None)
        if graph:
            self._refuse_several()
            if base._chain:
                chain = self._chain_from(base)
                if chain is None:
                    raise RuntimeError("this view's base was resized and no longer holds it")
            if self._edge is not None and new._edge is not None:
                _lead_past_hooks(new._edge, self._edge, base._edge)
            written = _put_chain(_plain_copy(base), chain, new)
            root = written._value if not base._chain else put(st.value, base._chain, written._value)
            base._move_to(written)
        else:
            root = put(st.value, chain, value)
            if mode.enabled and base is None:
                self._move_to(new)
        st.value = past_autograd(st.value, root) if traced and root is not value else root
        self._count_write(st)
        if st.host is not None:
            st.host.write(st)
        if not graph:
            self._value = value
            if base is None or base._edge is None and (self._several is None or self._edge is None):  # others look again for their place in the graph
                self._seen = st.version
        if base is not None and not base._chain:
            base._value, base._seen = st.value, st.version
        return self

    def _move_to(self, other: Tensor) -> None:
        """self's place in the graph is other's from now on; a gradient that self retains is the one there."""
        hooks = None if self._edge is None else self._edge.hooks
        retained = None if hooks is None else hooks.retain.pop(self._out, None)
        self._edge, self._out = other._edge, other._out
        if retained is not None and self._edge is not None:
            self._edge._hooks().retain[self._out] = retained

    def _count_write(self, st: Storage) -> None:
        if self._of_data is None:
            st.version += 1
        else:
            Past.add(st)
            self._of_data[0] += 1

    def _refuse_several(self) -> None:
        if self._several is not None:
            raise RuntimeError(self._refusal("is being"))

    def _refusal(self, what: str) -> str:
        name, which, _, reason = self._several or (None, 0, 0, UNDER_NO_GRAD)
        edge = self._edge
        ended = edge is None or isinstance(edge, AccumulateGrad) and edge.__class__ is not Stale
        if name is None or ended:
            view = "A view was created in"
        elif reason is UNDER_NO_GRAD or reason is UNDER_INFERENCE:
            view = f"Output {which} of {name} is a view of a view which was created in"
        else:
            return f"Output {which} of {name} is a view and {what} modified inplace. {reason}"
        if reason is UNDER_INFERENCE:
            return f"{view} inference mode and {what} modified inplace in normal mode. {reason}"
        return f"{view} no_grad mode and {what} modified inplace with grad mode enabled. {reason}"

    # -- facts ---------------------------------------------------------------------------------------------------------

    @property
    def _aval(self) -> Aval:
        return self._value.aval

    @property
    def shape(self) -> Size:
        a = self._value.aval
        if a.size is None:
            a.size = Size(a.shape)
        return a.size

    @property
    def dtype(self) -> dt.dtype:
        return self._value.aval.dtype

    @property
    def device(self) -> dev.device:
        return self._value.aval.device

    @property
    def ndim(self) -> int:
        return self._value.aval.ndim

    @property
    def requires_grad(self) -> bool:
        edge = self._edge
        return (edge if self._base is None or not (edge is None or isinstance(edge, Outside)) else self._fresh_edge()) is not None

    def _fresh_edge(self):
        self._find_edge()
        return self._edge

    def _find_edge(self) -> None:
        """Where in the graph a view is, after writes through aliases."""
        if self._base is not None and (self._storage.host is None or not self._storage.host.is_apart(self)):
            self._current()

    @requires_grad.setter
    def requires_grad(self, value: bool):
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        self._find_edge()  # a view of what was written may have a graph by now
        if value:
            if self._edge is None or self._edge.__class__ is Outside:
                if self._inference and not mode.inference:
                    raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
                if self._value.aval.dtype.category < dt.FLOAT:  # a class may have a `dtype` of its own
                    raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
                self._edge, self._idle = self._idle or AccumulateGrad(self), None
                self._edge.aval = self._value.aval
                self._flagged()
        elif self._edge is not None:
            if not isinstance(self._edge, AccumulateGrad):
                raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a "
                                   "computed variable in a subgraph that doesn't require differentiation use "
                                   "var_no_grad = var.detach().")
            if self._edge.hooks is not None or self._edge.post_accumulate is not None:
                self._idle = self._edge
            self._edge = None
            self._flagged()

    @property
    def is_leaf(self) -> bool:
        self._find_edge()
        self._refuse_stale()
        return self._edge is None or isinstance(self._edge, AccumulateGrad)

    def _refuse_stale(self) -> None:
        if self._edge.__class__ is Stale:
            raise RuntimeError(self._refusal("its base or another view of its base has been"))

    @property
    def grad_fn(self) -> Node | None:
        self._find_edge()
        self._refuse_stale()
        return None if isinstance(self._edge, AccumulateGrad) else self._edge

    @property
    def output_nr(self) -> int:
        return self._out

    @property
    def _version(self) -> int:
        if self._inference and self._of_data is None:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._written

    @property
    def _written(self) -> int:
        """How often in-place operations wrote its memory."""
        st = self._storage
        if self._of_data is not None:
            return self._of_data[0]
        return self._writes if st is None else st.version - st.unseen

    @property
    def grad(self) -> Tensor | None:
        if program.state.capture is not None:
            program.state.capture.asks_for_gradients((self,))
        if self._grad is None and self._edge is not None and not isinstance(self._edge, AccumulateGrad) and not self.retains_grad:
            warn(NOT_A_LEAF)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None):
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            _gradient_dtype.check(self, value)
            if value.device is not self.device:
                raise RuntimeError("assigned grad has data located on a different device")
            if value._aval.shape != self._aval.shape:
                raise RuntimeError(f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(self.shape)}'. Please ensure "
                                   "that the gradient and the tensor are the same size")
        self._grad = value

    @grad.deleter
    def grad(self):
        self._grad = None

    grad_dtype = property(_gradient_dtype.shown, _gradient_dtype.set_)

    @property
    def data(self) -> Tensor:
        _refuse_batched("accessing `data` under vmap transform is not allowed", self)
        out = self._alias()
        if not self.__class__._plain:
            if self._dispatches:
                return out._current().apart() if out._dispatches else out
            if self.__class__.__torch_function__ is not _disabled_torch_function_impl:
                out.__class__ = self.__class__
        out._of_data = [0]
        return out

    @data.deleter
    def data(self):
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @data.setter
    def data(self, other: Tensor):
        if not isinstance(other, Tensor):
            raise TypeError("Variable data has to be a tensor, but got " + type(other).__name__)
        _refuse_batched("mutating directly with `.data` under vmap transform is not allowed.", self, other)
        if self._dispatches or other._dispatches:
            from ._dispatch.held import take_facts
            return take_facts(self, other)
        if other._sparse:
            raise RuntimeError(OTHER_KIND)
        value = other._current()
        if self._edge is not None and value.aval.dtype.category < dt.FLOAT:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        st = other._ensure_storage() if value.array is not program.META_ARRAY else None
        self._value, self._layout, self._chain, self._unplaced = value, other._layout, other._chain, other._unplaced
        self._storage, self._base = st, None
        if st is not None:
            self._seen = st.version
        if isinstance(self._edge, AccumulateGrad):
            self._edge.aval = value.aval

    def _strided(self) -> Layout:
        if self._unplaced:
            self._find_place()
        return self._layout or contiguous(self._value.aval.shape)

    def _find_place(self) -> None:
        """Read the positions that its views take, now that somebody asks where in memory it lies."""
        self._current()
        st = self._storage
        layout, chain = st.layout or contiguous(st.value.aval.shape), []
        for op, numbers, statics in self._chain:
            numbers = tuple([int(program.concrete(x)) if x.__class__ is Value else x for x in numbers])
            layout = op.layout(layout, (*numbers, *statics))
            chain.append((op, numbers, statics))
        self._chain, self._layout, self._unplaced = tuple(chain), layout, None

    @overload
    def stride(self, dim: None = None) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...
    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """Steps in elements between neighbours along each dimension (or along `dim`)."""
        strides = (self._layout or contiguous(self._value.aval.shape)).strides
        if dim is None:
            return strides
        if dim.__class__ is bool:
            raise TypeError("argument 'dim' must be int, not bool")
        if not -len(strides) <= dim < len(strides):
            if not strides:
                raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
            raise IndexError(f"Dimension out of range (expected to be in range of [{-len(strides)}, {len(strides) - 1}], but got {dim})")
        return strides[dim]

    def storage_offset(self) -> int:
        if program.state.capture is not None:
            program.state.capture.offsets = True
        return self._strided().offset

    def data_ptr(self) -> int:
        """The address of the first element: on the CPU memory that can be read, and written until the tensor is next looked at; elsewhere a number."""
        if self._value.array is program.META_ARRAY or self._value.aval.numel == 0:
            return 0
        self._find_edge()
        return self._ensure_storage().address + self._strided().offset * self.dtype.itemsize

    # -- to the host ---------------------------------------------------------------------------------------------------

    def _host_array(self) -> np.ndarray:
        """The data as a NumPy array that must not be written."""
        runs.looked()
        value = self._value
        if self._storage is None and value.__class__ is Value and value.array.__class__ is np.ndarray:  # what is looked at most
            program.raise_failed_checks()
            return value.array
        array = self._known()
        if array is None and program.state.program.__class__ is not program.Program:
            from ._functorch._rules import observe  # above this file
            array = observe(self)
        if array is None:
            array = program.concrete(self._value)
        if array is program.META_ARRAY:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        program.raise_failed_checks()
        return np.asarray(array)

    def _known(self):
        """The data, where no pending program need run for it: a loop over the elements of a known tensor looks at each view."""
        array = self._current().array
        if array is not None:
            return array
        root = None if self._storage is None else self._storage.value
        if root is None or root.array is None or root.aval.device.type != "cpu" or is_tracer(root.array) or self._unplaced:
            return None
        array = np.asarray(root.array)
        for op, numbers, statics in self._chain:
            if op.numpy is not True:
                return None
            array = op.kernel(np, array, *numbers, *statics)
        return np.asarray(array)  # the kernels of an element give a scalar

    def __hash__(self):
        return id(self)


_new = object.__new__


def _handler(cls: type):
    """What takes the functions of a class over, bound to no class."""
    f = cls.__torch_function__
    return getattr(f, "__func__", f)


def _refuse_batched(words: str, *tensors: Tensor) -> None:
    """RuntimeError inside of vmap, where one of the tensors has examples."""
    if program.state.program.__class__ is program.Program:
        return
    from ._functorch._rules import refuse_batched  # above this file
    for t in tensors:
        refuse_batched(t, words)


def _plain_copy(t: Tensor) -> Tensor:
    """The same value and edge, without aliases."""
    if t._dispatches:
        return t._current().copied()
    out = _new(Tensor)
    out._value, out._edge, out._out = t._current(), t._edge, t._out
    return out


def _lead_past_hooks(writer: Node, view: Node, base: Node | None) -> None:
    """The gradient of a written view's former value goes to the base without being seen by hooks on the view: as in torch, whose write takes the
    view's place in the graph."""
    path = [view]
    while path[-1] is not base and path[-1].plan is not None and isinstance(path[-1].plan.op, View) and path[-1].edges[0] is not None:
        path.append(path[-1].edges[0][0])
    if path[-1] is not base or all(node.hooks is None for node in path[:-1]):
        return
    edge = path[-2].edges[0]
    for node in reversed(path[:-1]):
        silent = node.__class__(node.plan, [edge, *node.edges[1:]], node.needs, node.saved)
        edge = silent, 0
    writer.edges = [edge if e is not None and e[0] is view else e for e in writer.edges]


def _put_chain(root: Tensor, chain: tuple, new: Tensor) -> Tensor:
    """root with the part that `chain` views replaced by new."""
    if not chain:
        return new
    op, numbers, statics = chain[0]
    if len(chain) > 1:
        new = _put_chain(apply(op, (root, *numbers), statics), chain[1:], new)
    return apply(op.put, (root, new, *numbers), statics)


def is_told_to_nobody() -> bool:
    """Whether operations go straight to the program: no forward differentiation, no mode, both of which put their own `record` here."""
    return record is program.record or getattr(record, "idle", bool)()


def apply(op, args, statics: tuple = ()):
    """Record `op` on Tensors, Python numbers and None: the Tensor (or tuple of Tensors) that results.

    This is the hot path. Errors of shape and dtype are raised here, on the user's line; computing happens later.
    """
    values = []
    edges = []
    special = laid = needs = False
    for x in args:
        if isinstance(x, Fields):
            st = x._storage
            if st is None:
                values.append(x._value)
            else:
                if st.host is not None and op.picks and not values and (out := st.host.pick(op, args, statics)) is not None:
                    return out
                values.append(x._current())
            edge = x._edge
            if edge is None:
                edges.append(None)
            else:
                edges.append((edge, x._out))
                needs = True
            if x._layout is not None:
                laid = True
            if not x._plain:
                special = True
        else:
            values.append(x)
            edges.append(None)
    plan, made = record(op, values, statics)
    node = _node(op, plan, edges, values, made) if needs and mode.enabled and plan.differentiable else None
    if plan.single:
        out = _new(Tensor)
        out._value = made[0]
        if node is not None:
            out._edge = node
        return _special(op, args, out, plan, special) if special or laid or inference[0] else out
    outs = []
    for i, v in enumerate(made):
        out = _new(Tensor)
        out._value = v
        if node is not None and v.aval.dtype.category >= dt.FLOAT:
            out._edge, out._out = node, i
        outs.append(_special(op, args, out, plan, special) if special or laid or inference[0] else out)
    return tuple(outs)


def _node(op, plan, edges, values, made) -> Node:
    pattern = 0  # of inputs with an edge
    for edge in edges:
        pattern += pattern + (edge is not None)
    needs, ins, outs, cls = plan.nodes.get(pattern) or _node_facts(op, plan, edges, pattern)
    saved = [values[i] for i in ins] if ins else []
    if outs:
        saved += [made[i] for i in outs]
    node = _new(cls)  # Node(plan, edges, needs, saved) at half its cost
    node.plan, node.edges, node.needs, node.saved, node.hooks = plan, edges, needs, saved, None
    if mode.watchers:
        for watch in mode.watchers:
            watch(node, values)
    return node


def _node_facts(op, plan, edges, pattern: int) -> tuple:
    """What nodes of a plan have in common: which inputs need gradients, what is saved, and their class."""
    name = op.torch_name  # or a function of the plan
    needs = tuple(e is not None for e in edges)
    found = plan.nodes[pattern] = (needs, *plan.saved(needs), node_class(name if name.__class__ is str else name(plan)))
    return found


def _special(op, args, out: Tensor, plan: Plan, special: bool) -> Tensor:
    """Results of non-contiguous inputs keep their strides; and where some inputs are `special`, results on subclasses of Tensor are of the
    subclass, and nothing is saved for gradients that end at once."""
    if out._value.__class__ is not Value:
        return out._value.place(args, out)
    if op.pointwise and out._value.aval.ndim:
        layouts = [a._layout if isinstance(a, Fields) else None for a in args]
        out._layout = _joined_layout(args, layouts, plan)
        if out._edge is not None:
            out._edge.layouts = layouts
    if not special and not inference[0]:
        return out
    for i, a in enumerate(args):
        if isinstance(a, Fields) and not a._plain:
            if a._inference:
                if out._edge is not None and i in out._edge.plan.saved(out._edge.needs)[0]:
                    raise RuntimeError("Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
                                       "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
                                       "`torch.no_grad()` instead of `torch.inference_mode()`.")
            elif isinstance(a._edge, Outside):
                if out._edge is not None:
                    a._refuse_stale()
                    out._edge.forgo(i)
            elif a.__class__ is not Tensor and not overriding.disabled and not a._dispatches:
                out = instance(out, _lower(out.__class__, a.__class__))
    if args[0]._inference if isinstance(op, View) else mode.inference:  # a view is what its base is
        out._inference, out._plain = True, False
    return out


def _joined_layout(args, layouts: list, plan: Plan) -> Layout | None:
    """The layout of an elementwise result, whose inputs have these where they are not contiguous."""
    key = tuple(layouts)
    found = plan.joined.get(key, plan)
    if found is plan or Examples in map(type, layouts):
        found = joined(plan.outs[0].shape, tuple([a._layout or contiguous(a._value.aval.shape) for a in args if isinstance(a, Fields)]))
        if Examples not in map(type, layouts):
            plan.joined[key] = found
    return found


def _lower(a: type, b: type) -> type:
    """That of two classes which is below the other: what functions of tensors of both make."""
    if issubclass(a, b):
        return a
    if not issubclass(b, a):
        raise TypeError(f"unsupported operands: neither of the classes '{a.__name__}' and '{b.__name__}' is a subclass of the other")
    return b


def heed(cls: type) -> None:
    """An instance of cls is made: its `__torch_function__` may have been set since the class was."""
    if cls is not Tensor and _handler(cls) is not cls._heeded:
        cls._heed()


def instance(made: Tensor, cls: type) -> Tensor:
    """A tensor that nobody else holds as an instance of a class."""
    heed(cls)
    if cls._dispatches and not made._dispatches:
        from ._dispatch.held import holding
        return holding(made, cls)
    try:
        made.__class__ = cls
    except TypeError:  # the class has slots
        other = object.__new__(cls)
        fields(other).update(fields(made))
        return other
    return made


def as_tensor_value(array: np.ndarray, device=None) -> Tensor:
    """A Tensor over a host array that nobody will write."""
    return Tensor._of(of_array(array, device))


def __getattr__(name: str):
    if name == "_rebuild_from_type_v2":  # of a layer above this one
        from ._pickled import _rebuild_from_type_v2
        return _rebuild_from_type_v2
    raise missing(name, __name__)
