"""torch.view_copy and its kin: the result of a view in memory of its own."""
from .._public import FUNCTIONS as F
from .._public import with_out
from .._tensor import Tensor
from .memory_formats import contiguous_format

_VIEWS = ("alias", "as_strided", "detach", "diagonal", "expand", "narrow", "permute", "select", "slice", "split", "split_with_sizes", "squeeze", "t",
          "transpose", "unbind", "unfold", "unsqueeze", "view", "view_as_complex", "view_as_real")


def _slice(self, dim=0, start=None, end=None, step=1):
    return self[(slice(None),) * (dim % self.ndim) + (slice(start, end, step),)]


_OTHERS = {"alias": lambda self: self, "slice": _slice, "view_as_complex": F["view_as_complex"], "view_as_real": F["view_as_real"]}


def own(x: Tensor) -> Tensor:
    """x in contiguous memory of its own."""
    return x.clone(memory_format=contiguous_format)


def _copying(name: str) -> None:
    view = _OTHERS.get(name) or getattr(Tensor, name)

    def copy(input: Tensor, *args, **kwargs):
        out = view(input, *args, **kwargs)
        return own(out) if isinstance(out, Tensor) else tuple(map(own, out))
    copy.__name__ = copy.__qualname__ = name + "_copy"
    copy.__doc__, copy.__annotations__["return"] = f"Tensor.{name}, copied.", view.__annotations__.get("return", "Tensor")
    F[copy.__name__] = with_out(copy)


for _name in _VIEWS:
    _copying(_name)
Tensor.narrow_copy = F["narrow_copy"]
