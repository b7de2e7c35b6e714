"""DTensor: a tensor with a mesh and a placement per dimension of the mesh.

To the engine a DTensor is its local tensor under another class: values, graph, gradients and optimizers work on each rank's piece.
What a program asks of it (its shape, operations) goes through `__torch_function__` and is answered for the whole (`_dispatch.py`).
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..._core.grad_mode import mode
from ..._fields import ENGINE, fields
from ..._tensor import Size, Tensor, _new
from ...autograd.function import Function
from ...overrides import override
from ..device_mesh import DeviceMesh, current_mesh
from ._dtensor_spec import DTensorSpec, TensorMeta
from ._layout import Placements, checked, moved
from ._moves import Spread
from .placement_types import Partial, Placement, Replicate, Shard


class DTensor(Tensor):
    """A tensor over a mesh; made by `distribute_tensor` or `DTensor.from_local`."""

    _plain = True  # what the engine makes of one is a local tensor
    _operators: ClassVar[dict[str, Callable]] = {}  # a program's own rules for operators, by their names
    _handle: ClassVar[Callable]  # the __torch_function__ that the first DTensor switches on

    def __new__(cls, local_tensor: Tensor | None = None, spec: DTensorSpec | None = None, *, requires_grad: bool = False) -> DTensor:
        if spec is None:
            return super().__new__(cls)
        meta = spec._meta()
        if local_tensor.requires_grad and not requires_grad:
            warnings.warn("To construct DTensor from torch.Tensor, it's recommended to use local_tensor.detach() and make requires_grad consistent.", stacklevel=2)
        return marked(local_tensor.detach(), spec.mesh, spec.placements, meta.shape).requires_grad_(requires_grad)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Everything is done by then."""

    @staticmethod
    def from_local(local_tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
                   run_check: bool = False, shape: Any = None, stride: Any = None, grad_placements: Sequence[Placement] | None = None) -> DTensor:
        """The tensor of which this is the piece of this rank; differentiable. Pieces are taken to be of one size unless `shape` is given."""
        if isinstance(local_tensor, DTensor):
            raise RuntimeError(f"the local_tensor argument only accepts torch.Tensor but got {type(local_tensor)} value.")
        mesh = current_mesh() if device_mesh is None else device_mesh
        found = checked(local_tensor.dim(), mesh, placements)
        if (shape is None) != (stride is None):
            raise RuntimeError(f"Found shape:{shape}, stride:{stride}.Please pass both shape and stride at the same time.")
        if shape is None:
            shape = list(local_tensor.shape)
            for i, p in enumerate(found):
                if isinstance(p, Shard):
                    shape[p.dim] *= mesh.size(i)
        if mesh.get_coordinate() is None:
            return marked(local_tensor.detach().new_empty(0), mesh, found, shape).requires_grad_(local_tensor.requires_grad)
        made = _FromLocal.apply(local_tensor, mesh, found, grad_placements, shape)
        made._base = made._several = None  # not a view: it may be written, where the local tensor is a leaf, too
        return marked(made, mesh, found, shape)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The piece of this rank; differentiable. `grad_placements` says how the gradient of it lies."""
        made = _ToLocal.apply(self, grad_placements) if mode.enabled and self._edge is not None else self._alias()
        if getattr(self, "_is_param", False):
            made._is_param = True
        return made

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor; differentiable."""
        return self.redistribute(placements=[Replicate()] * self._mesh.ndim).to_local(grad_placements=grad_placements)

    def redistribute(self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
                     async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None) -> DTensor:
        """The same tensor with other placements; differentiable."""
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if device_mesh is not None and device_mesh != self._mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        new = checked(len(self._global), self._mesh, placements)
        for p, q in zip(self._placements, new):
            if isinstance(q, Partial) and p != q:
                raise RuntimeError(f"Can not redistribute from {p} to {q}, redistributing to Partial is for internal use only!")
        local = piece(self)
        if forward_dtype is not None:
            local = local.to(forward_dtype)
        return marked(moved(local, self._global, self._mesh, self._placements, new), self._mesh, new, self._global)

    @property
    def _local_tensor(self) -> Tensor:
        return self._alias()

    @property
    def _spec(self) -> DTensorSpec:
        """The mesh, the placements and the whole's shape, strides and dtype."""
        return DTensorSpec(self._mesh, self._placements, TensorMeta(self._global, tuple(self.stride()), self.dtype))

    @property
    def device_mesh(self) -> DeviceMesh:
        return self._mesh

    @property
    def placements(self) -> Placements:
        return self._placements

    @property
    def grad(self) -> DTensor | None:
        """The gradient, which lies as the tensor does."""
        g = self._grad
        if g is not None and not isinstance(g, DTensor):
            self._grad = marked(g, self._mesh, gradient_placements(self._placements), self._global)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        Tensor.grad.__set__(self, value)

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def data(self) -> DTensor:
        return marked(Tensor.data.__get__(self), self._mesh, self._placements, self._global)

    @data.setter
    def data(self, other: Tensor) -> None:
        Tensor.data.__set__(self, other)
        if isinstance(other, DTensor):
            marked(self, other._mesh, other._placements, other._global)

    def _lay_state(self, state: dict[str, Any]) -> None:
        """What an optimizer keeps for this parameter, in the parameter's size, lies as it does."""
        for x in state.values():
            if isinstance(x, Tensor) and x._aval.shape == self._aval.shape and x._aval.ndim:
                marked(x, self._mesh, self._placements, self._global)

    def __reduce_ex__(self, protocol: int) -> tuple:
        extra = {name: x for name, x in vars(self).items() if name not in ("_mesh", "_placements", "_global")}
        return DTensor, (), (self._alias(), self._mesh, self._placements, tuple(self._global), self.requires_grad, extra)

    def __setstate__(self, state: tuple) -> None:
        local, mesh, placements, shape, requires_grad, extra = state
        fields(self).update({name: x for name, x in fields(local).items() if name in ENGINE})
        marked(self, mesh, placements, shape).requires_grad_(requires_grad)
        self.__dict__.update(extra)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"DTensor(local_tensor={self._alias()}, device_mesh={self._mesh}, placements={self._placements})"


DTensor.__module__ = "torch.distributed.tensor"


def gradient_placements(placements: Placements) -> Placements:
    """How a gradient lies: as its tensor, and whole where that is a sum."""
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)


def marked(t: Tensor, mesh: DeviceMesh, placements: Placements, shape: Sequence[int]) -> DTensor:
    """A local tensor that nobody else has, made the DTensor of which it is the piece."""
    if isinstance(t, DTensor) and "_mesh" in vars(t) and t._placements != tuple(placements):
        t = piece(t)  # a function has returned its argument, which stays as it is
    if "__torch_function__" not in DTensor.__dict__:  # the first one: until then torch's functions need not ask for it
        DTensor.__torch_function__ = classmethod(DTensor._handle)
        override(DTensor)
    t.__class__ = DTensor
    t._mesh, t._placements, t._global = mesh, tuple(placements), Size(shape)
    return t


def piece(d: Tensor) -> Tensor:
    """The local tensor as it is in the graph. Writing into it writes into the DTensor only where they share memory already."""
    made = _new(Tensor)
    fields(made).update({name: x for name, x in fields(d).items() if name in ENGINE and name != "_grad"})
    return made


def placed_piece(d: DTensor, placements: Placements) -> Tensor:
    """The local tensor under other placements."""
    return moved(piece(d), d._global, d._mesh, d._placements, placements)


def operand(d: DTensor, placements: Placements, split: Sequence[bool]) -> Tensor:
    """The local tensor for an operation whose work is split along some dimensions of the mesh."""
    local = in_place(d, placements)
    if local._edge is not None and mode.enabled:
        for i, p in enumerate(placements):
            if split[i] and p.is_replicate() and d._mesh.size(i) > 1:
                local = Spread.apply(piece(local), d._mesh.get_group(i))
    return local


def in_place(d: DTensor, placements: Placements) -> Tensor:
    """The local tensor under these placements: the DTensor itself where it lies so, since views of it have to be views of that very object.

    Only for functions that run while no class takes over.
    """
    return d if placements == d._placements else placed_piece(d, placements)


class _FromLocal(Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, mesh: DeviceMesh, placements: Placements, grad_placements: Any, shape: Any) -> Tensor:
        ctx.mesh, ctx.lies, ctx.wanted, ctx.shape = mesh, gradient_placements(placements), grad_placements, tuple(shape)
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        if ctx.wanted is not None:
            g = moved(g, ctx.shape, ctx.mesh, ctx.lies, checked(len(ctx.shape), ctx.mesh, ctx.wanted))
        return g, None, None, None, None


class _ToLocal(Function):
    @staticmethod
    def forward(ctx: Any, d: DTensor, grad_placements: Any) -> Tensor:
        lies = gradient_placements(d._placements)
        ctx.move = None if grad_placements is None else (d._global, d._mesh, checked(len(d._global), d._mesh, grad_placements), lies)
        local = d._alias()
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return g if ctx.move is None else moved(g, *ctx.move), None
