"""Tensors as checkpoints describe them (storage, offset, size, stride), both ways."""

import collections
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import dtype as dtypes
from .._core import program
from .._core.device import device
from .._core.layout import Layout, contiguous_strides, is_contiguous, is_dense
from .._fields import ENGINE
from .._qscheme import SCHEMES
from .._storage import Storage
from .._tensor import Size, Tensor, as_tensor_value
from ..nn.modules._hooks import _WrappedHook
from ..nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter, UninitializedTensorMixin
from ..ops.bit_views import _neg_view
from ..ops.creation import empty
from ..ops.layouts import LAYOUTS, layout
from ..ops.objects import in_files
from ..ops.random import Generator
from ..ops.storages import _STORED, TypedStorage, UntypedStorage
from ..utils.hooks import warn_if_has_hooks
from . import locations, names
from .records import UNTYPED, StorageRecord, StorageType, check_bounds, storage_type, swap_bytes
from .unpickler import Resolved

# -- loading ----------------------------------------------------------------------------------------------------------


class LoadedStorage:
    """A storage of the file being loaded; the first tensor on it becomes the one that owns the memory."""

    def __init__(self, record: StorageRecord, swap: bool, place: Callable[[Any, str], device]) -> None:
        self.record, self._swap, self._owner = record, swap, None
        self.device = place(self, record.location)

    def flat(self, dtype: dtypes.dtype) -> np.ndarray:
        data, itemsize = self.record.data, _bytes_per_element(dtype)
        if data.nbytes % itemsize:
            raise RuntimeError(f"storage {self.record.key} has {data.nbytes} bytes: no whole number of {dtype}")
        if self._swap:
            data = swap_bytes(data, dtype.name, itemsize)
        if dtype is dtypes.complex32:
            return data.view(np.float16).astype(np.float32).view(np.complex64)
        return data.view(dtype.np)

    def tensor(self, dtype: dtypes.dtype, size: tuple, stride: tuple, offset: int) -> Tensor:
        check_bounds(size, stride, offset, _bytes_per_element(dtype), self.record.nbytes)
        layout = Layout(size, stride, offset)
        if self.device.type == "meta":
            return meta_tensor(dtype, size, stride)
        if self._owner is None:
            flat = self.flat(dtype)
            if offset == 0 and is_dense(layout) and int(np.prod(size, dtype=object)) == flat.size:
                order = _outermost_first(stride)
                in_memory = flat.reshape([size[dim] for dim in order])
                self._owner = self._tensor(in_memory.transpose(np.argsort(order)), dtype)
                self._owner._layout = None if is_contiguous(layout) else layout
                return self._owner
            self._owner = self._tensor(flat, dtype)
        if self._owner.dtype is not dtype:
            raise pickle.UnpicklingError(f"storage {self.record.key} is used as {self._owner.dtype} and as {dtype}")
        return self._owner.detach().as_strided(size, stride, offset)

    def _tensor(self, array: np.ndarray, dtype: dtypes.dtype) -> Tensor:
        made = as_tensor_value(array, self.device)
        return made if made.dtype is dtype else made.to(dtype)  # complex32, which NumPy does not know


def _bytes_per_element(dtype: dtypes.dtype) -> int:
    """In a file: here complex32 is complex64 of halves."""
    return 4 if dtype is dtypes.complex32 else dtype.itemsize


class StorageOfFile(TypedStorage):
    """What a file says of a storage, or of `size` elements of one: its tensors are made of it, and where the saved object
    holds the storage itself, it becomes a plain one when somebody looks."""

    __module__ = "torch.storage"

    def __new__(cls, loaded: LoadedStorage, start: int = 0, size: int | None = None) -> "StorageOfFile":
        made = object.__new__(cls)
        made.loaded, made.start = loaded, start
        made.dtype = dtypes.by_name(loaded.record.type.dtype or "uint8")
        made.elements = loaded.record.numel - start if size is None else size
        return made

    @property
    def _untyped_storage(self) -> UntypedStorage:
        window = self.tensor(self.dtype, (self.elements,), (1,), 0)
        whole = not self.start and self.elements == self.loaded.record.numel
        self.__class__ = TypedStorage
        self._untyped_storage = (window if whole else window.clone()).untyped_storage()
        return self._untyped_storage

    def part(self, start: int, size: int) -> "StorageOfFile":
        """Some of its elements, as a storage of the same memory."""
        return StorageOfFile(self.loaded, start, size)

    def tensor(self, dtype: dtypes.dtype, size: tuple, stride: tuple, offset: int) -> Tensor:
        """A tensor that lies in it."""
        return self.loaded.tensor(dtype, size, stride, offset + self.start)


StorageOfFile.__name__ = StorageOfFile.__qualname__ = "TypedStorage"  # what it is to whoever finds it in the loaded object


def meta_tensor(dtype: dtypes.dtype, size: tuple, stride: tuple) -> Tensor:
    made = empty(size, dtype=dtype, device="meta")
    layout = Layout(size, stride, 0)
    made._layout = None if is_contiguous(layout) else layout
    return made


def _rebuild_tensor(storage: StorageOfFile, storage_offset: int, size: tuple, stride: tuple) -> Tensor:
    return storage.tensor(storage.dtype, tuple(size), tuple(stride), storage_offset)


def _rebuild_tensor_v2(
    storage: StorageOfFile,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    backward_hooks: dict,
    metadata: dict | None = None,
) -> Tensor:
    return _finish(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, metadata)


def _rebuild_tensor_v3(
    storage: StorageOfFile,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    backward_hooks: dict,
    dtype: dtypes.dtype,
    metadata: dict | None = None,
) -> Tensor:
    return _finish(storage.tensor(dtype, tuple(size), tuple(stride), storage_offset), requires_grad, metadata)


def _finish(tensor: Tensor, requires_grad: bool, metadata: dict | None) -> Tensor:
    for name, on in (metadata or {}).items():
        if name not in ("conj", "neg"):
            raise pickle.UnpicklingError(f"unknown tensor metadata {name!r}")
        if on:
            tensor = tensor.conj() if name == "conj" else _neg_view(tensor)
    tensor.requires_grad = bool(requires_grad)
    return tensor


def _rebuild_meta_tensor_no_storage(dtype: dtypes.dtype, size: tuple, stride: tuple, requires_grad: bool) -> Tensor:
    return _finish(meta_tensor(dtype, tuple(size), tuple(stride)), requires_grad, None)


def _get_layout(name: str) -> layout:
    return LAYOUTS[name.removeprefix("torch.")]


def _rebuild_sparse_tensor(kind: layout, data: tuple) -> Tensor:
    """A sparse tensor from its parts, whose indices are checked: a file can say anything."""
    from .. import sparse

    if kind.name == "sparse_coo":
        places, entries, size, *coalesced = data
        return sparse.from_file(kind, (places,), entries, tuple(size), bool(coalesced and coalesced[0]))
    pointers, others, entries, size = data
    return sparse.from_file(kind, (pointers, others), entries, tuple(size), False)


def _rebuild_qtensor(storage: StorageOfFile, storage_offset: int, size: tuple, stride: tuple, quantizer_params: tuple, requires_grad: bool,
                     backward_hooks: dict) -> Tensor:
    """A quantized tensor from its integers and what they stand for."""
    from .._quantized.factories import from_parts

    integers = storage.tensor(_STORED[storage.dtype], tuple(size), tuple(stride), storage_offset)
    return from_parts(integers, storage.dtype, quantizer_params)


def _rebuild_packed_linear(weight: Tensor, bias: Tensor | None, half: bool) -> Any:
    """A quantized weight and a bias, ready for products."""
    from .._quantized.linear import PackedLinear

    return PackedLinear(weight, bias, bool(half))


def _rebuild_cell_params(packed_ih: Any, packed_hh: Any, reduce_range: bool) -> Any:
    """A quantized recurrent cell's products."""
    from .._quantized.recurrent import CellParams

    return CellParams(packed_ih, packed_hh, bool(reduce_range))


def _rebuild_nested_tensor(buffer: Tensor, sizes: Tensor, strides: Tensor, storage_offsets: Tensor) -> Tensor:
    """A nested tensor whose parts lie in one flat tensor."""
    from ..nested._buffers import _nested_view_from_buffer

    return _nested_view_from_buffer(buffer.detach(), sizes, strides, storage_offsets).requires_grad_(buffer.requires_grad)


def _rebuild_njt(state: dict) -> Tensor:
    """A jagged nested tensor from its packed values, and where each part begins (and, where there are gaps, how long it is)."""
    from ..nested._tensor import JAGGED, NestedTensor

    values, starts, lengths, ragged = state["values"].detach(), state["offsets"].tolist(), state.get("lengths"), int(state["_ragged_idx"])
    counts = [b - a for a, b in zip(starts, starts[1:])] if lengths is None else lengths.tolist()
    if min(counts, default=0) < 0 or any(a < 0 or a + n > values.shape[ragged - 1] for a, n in zip(starts, counts)):
        raise RuntimeError("the offsets of a jagged tensor do not fit its values")
    parts = [values.narrow(ragged - 1, a, n) for a, n in zip(starts, counts)]
    return NestedTensor(parts, JAGGED, None, ragged).requires_grad_(bool(state.get("requires_grad")))


class _NestedClass:
    """Stands in files for the class of jagged nested tensors, which is loaded when there is one."""


class _DimRange:
    """What PyTorch writes beside the lengths of jagged tensors for its compiler."""

    def __setstate__(self, state: Any) -> None:
        pass


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: dict) -> Parameter:
    return Parameter(data, bool(requires_grad))


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: dict, state: Any) -> Parameter:
    return _with_state(Parameter(data, bool(requires_grad)), state)


def _rebuild_wrapper_subclass(cls: type, dtype: dtypes.dtype, size: tuple, stride: tuple, storage_offset: int, layout: layout, device: device,
                              requires_grad: bool) -> Tensor:
    return Tensor._make_wrapper_subclass(cls, size, strides=stride, storage_offset=storage_offset, layout=layout, device=device, requires_grad=requires_grad,
                                         dtype=dtype)


def _rebuild_from_type_v2(function: Callable[..., Tensor], cls: type, args: tuple, state: Any) -> Tensor:
    if function is _rebuild_njt and cls is _NestedClass:
        return function(*args)
    if function not in _REBUILDS or not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise pickle.UnpicklingError(f"_rebuild_from_type_v2 is not allowed for {function!r} and {cls!r}")
    made = function(*args)
    return _with_state(made if type(made) is cls else made.as_subclass(cls), state)


def _with_state(tensor: Tensor, state: Any) -> Tensor:
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        if name not in ENGINE and hasattr(Tensor, name):
            raise pickle.UnpicklingError(f"a file may not replace Tensor.{name}")
        vars(tensor)[name] = value
    return tensor


_REBUILDS = (
    _rebuild_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
    _rebuild_meta_tensor_no_storage,
    _rebuild_sparse_tensor,
    _rebuild_nested_tensor,
    _rebuild_njt,
    _rebuild_qtensor,
    _rebuild_packed_linear,
    _rebuild_cell_params,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
    _rebuild_wrapper_subclass,
)

# -- saving -----------------------------------------------------------------------------------------------------------


class _Data:
    """A Parameter's tensor without its class and attributes."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class TensorSaver:
    """Gives tensors their construction and collects the storages they lie in, each once."""

    def __init__(self, legacy: bool = False) -> None:
        self._legacy = legacy
        self._storages: dict[int, tuple[StorageRecord, Storage, Any]] = {}  # the last is who holds it: ids must not be given anew
        self._dtypes: dict[int, dtypes.dtype] = {}

    def persistent_id(self, obj: Any) -> tuple | None:
        if isinstance(obj, TypedStorage):
            untyped = obj.untyped()
            obj = self._record_of(untyped._cell, obj.dtype, storage_type(obj.dtype.name), untyped)
        elif isinstance(obj, UntypedStorage):
            obj = self._record_of(obj._cell, dtypes.uint8, UNTYPED, obj)
        if not isinstance(obj, StorageRecord):
            return None
        persistent = ("storage", obj.type, obj.key, obj.location, obj.numel)
        return (*persistent, None) if self._legacy else persistent

    def reduce(self, obj: Any) -> Any:
        if isinstance(obj, _Data):
            return self._plain(obj.tensor, requires_grad=False)
        if isinstance(obj, Size):
            return Size, (tuple(obj),)
        if isinstance(obj, layout):
            return _get_layout, (repr(obj),)
        if isinstance(obj, Generator):
            return Generator, (obj.device,), (obj.initial_seed(), None, obj.get_state())
        if isinstance(obj, device):
            return device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if not isinstance(obj, Tensor) or isinstance(obj, UninitializedTensorMixin):
            return NotImplemented
        if obj.is_nested:
            return self._nested(obj)
        if _reduces_itself(type(obj)):
            before, in_files.apart = in_files.apart, self._parts  # for its `super().__reduce_ex__`
            try:
                return obj.__reduce_ex__(2)
            finally:
                in_files.apart = before
        if obj._dispatches and obj._storage.data is None:
            return obj.__reduce_ex__(2)
        if obj._sparse:
            return self._quantized(obj) if obj.is_quantized else self._sparse(obj)
        return self._parts(obj)

    def _parts(self, obj: Tensor) -> tuple[Callable[..., Tensor], tuple]:
        state = dict(vars(obj))
        if issubclass(type(obj), Parameter):  # whose heirs come back as Parameters, as in PyTorch
            args = (_Data(obj), obj.requires_grad, collections.OrderedDict())
            return (_rebuild_parameter_with_state, (*args, state)) if state else (_rebuild_parameter, args)
        warn_if_has_hooks(obj)
        rebuild, args = self._plain(obj, obj.requires_grad)
        if type(obj) is Tensor and not state:
            return rebuild, args
        return _rebuild_from_type_v2, (rebuild, type(obj), args, state or None)

    def _sparse(self, tensor: Tensor) -> tuple[Callable[..., Tensor], tuple]:
        if getattr(tensor, "_is_param", False):
            return _rebuild_parameter, (tensor.detach(), tensor.requires_grad, collections.OrderedDict())
        return _rebuild_sparse_tensor, (tensor.layout, tensor.parts())

    def _nested(self, tensor: Tensor) -> tuple[Callable[..., Tensor], tuple]:
        values, counts = tensor.values().detach().contiguous(), tensor._nested_tensor_size()
        if tensor.layout is not LAYOUTS["strided"]:
            state = {"values": values, "offsets": tensor.offsets(), "lengths": None, "_ragged_idx": tensor._ragged, "_metadata_cache": {},
                     "requires_grad": tensor.requires_grad}
            return _rebuild_njt, (state,)
        from ..nested._buffers import _nested_compute_contiguous_strides_offsets

        return _rebuild_nested_tensor, (values.requires_grad_(tensor.requires_grad), counts, *_nested_compute_contiguous_strides_offsets(counts))

    def _quantized(self, tensor: Tensor) -> tuple[Callable[..., Tensor], tuple]:
        if getattr(tensor, "_is_param", False):
            return _rebuild_parameter, (tensor.detach(), False, collections.OrderedDict())
        held, quantizer = tensor._held, tensor._quantizer
        held._current()
        record = self._record_of(held._ensure_storage(), tensor.dtype, storage_type(tensor.dtype.name), held)
        return _rebuild_qtensor, (record, held.storage_offset(), tuple(held.shape), (*held.stride(),), quantizer.parts(), False, collections.OrderedDict())

    def _plain(self, tensor: Tensor, requires_grad: bool) -> tuple[Callable[..., Tensor], tuple]:
        if tensor.device.type == "meta":
            return _rebuild_meta_tensor_no_storage, (tensor.dtype, tuple(tensor.shape), tensor.stride(), requires_grad)
        metadata = {name: True for name, on in (("conj", tensor.is_conj()), ("neg", tensor.is_neg())) if on}
        record = self._record(tensor)
        strides = (*tensor.stride(),)  # a tuple of its own: whether two equal ones are one object shows in a pickle
        args = (record, tensor.storage_offset(), tuple(tensor.shape), strides, requires_grad)
        if record.type is UNTYPED:
            return _rebuild_tensor_v3, (*args, collections.OrderedDict(), tensor.dtype)
        return _rebuild_tensor_v2, (*args, collections.OrderedDict(), *((metadata,) if metadata else ()))

    def _record(self, tensor: Tensor) -> StorageRecord:
        tensor._current()
        storage = tensor._ensure_storage()
        if storage.host is not None:
            storage.host.sync(storage)  # brings in what was written through a shared NumPy array
        return self._record_of(storage, tensor.dtype, storage_type(tensor.dtype.name), tensor)

    def _record_of(self, storage: Storage, dtype: dtypes.dtype, kind: StorageType, holder: Any) -> StorageRecord:
        if id(storage) not in self._storages:
            root = storage.value.aval
            nbytes = int(np.prod(root.shape, dtype=object)) * _bytes_per_element(root.dtype)
            record = StorageRecord(kind, str(len(self._storages)), locations.tag(holder), nbytes)
            self._storages[id(storage)] = (record, storage, holder)
            self._dtypes[id(storage)] = dtype
        record = self._storages[id(storage)][0]
        if self._dtypes[id(storage)] is dtype:
            return record
        if record.nbytes:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        return dataclasses.replace(record, type=kind)

    def storages(self) -> list[tuple[StorageRecord, Callable[[], np.ndarray]]]:
        """Every storage with a function that fetches its bytes, so that one at a time is on the host."""
        return [(record, lambda storage=storage: _bytes_of(storage)) for record, storage, _ in self._storages.values()]


def _bytes_of(storage: Any) -> np.ndarray:
    """A storage's memory as torch would lay it out, as uint8."""
    array = np.asarray(program.concrete(storage.value))
    program.raise_failed_checks()
    layout = storage.layout
    if layout is not None and layout.strides != contiguous_strides(layout.shape):
        array = array.transpose(_outermost_first(layout.strides))
    flat = np.ascontiguousarray(array).reshape(-1)
    if storage.value.aval.dtype is dtypes.complex32:
        flat = flat.view(np.float32).astype(np.float16)
    return flat.view(np.uint8)


def _outermost_first(strides: tuple) -> list[int]:
    """Dimensions in the order in which a dense tensor's elements lie in memory."""
    return sorted(range(len(strides)), key=lambda dim: -strides[dim])


def _reduces_itself(cls: type) -> bool:
    """Whether a subclass says itself how it is pickled: a user's, or a DTensor."""
    definer = next(base for base in cls.__mro__ if "__reduce_ex__" in vars(base) or "__reduce__" in vars(base))
    if vars(definer).get("__reduce_ex__") is not None and getattr(definer, "_dispatches", False):
        from .._dispatch.held import _reduced
        if vars(definer)["__reduce_ex__"] is _reduced:
            return False
    return definer is not object and (definer.__module__.split(".")[0] not in (names.PACKAGE, "torch") or "__setstate__" in vars(definer))


_NOT_IN_UTILS = {_rebuild_from_type_v2: "torch._tensor", _rebuild_njt: "torch.nested._internal.nested_tensor"}


def _register() -> None:
    for function in (*_REBUILDS, _rebuild_from_type_v2):
        module = _NOT_IN_UTILS.get(function, "torch._utils")
        names.register(module, function.__name__, Resolved(function, call=function))
    names.register("torch.serialization", "_get_layout", Resolved(_get_layout, call=_get_layout))
    names.register("torch.nested._internal.nested_tensor", "NestedTensor", Resolved(_NestedClass))
    names.register("torch._dynamo.decorators", "_DimRange", Resolved(_DimRange, new=_DimRange, state="method"))
    for scheme in SCHEMES.values():
        names.register("torch", scheme.name, Resolved(scheme))
    for dtype in dtypes._by_name.values():
        names.register("torch", dtype.name, Resolved(dtype))
    for cls in (Size, device):
        names.register("torch", cls.__name__, Resolved(cls, call=cls))
    names.register("torch", "Tensor", Resolved(Tensor))
    names.register("torch._C", "Generator", Resolved(Generator, call=Generator, state="method"), weights_only=False)
    names.register("torch.nn.modules.module", "_WrappedHook", names._restricted(_WrappedHook), weights_only=False)
    names.register("torch.nn.parameter", "Parameter", Resolved(Parameter))
    for cls in (UninitializedParameter, UninitializedBuffer):
        names.register("torch.nn.parameter", cls.__name__, Resolved(cls, call=cls), weights_only=False)


_register()
