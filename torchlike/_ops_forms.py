"""Operators of torch.ops.aten that are public functions in another form: their arguments in other places, more results, written or not written."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import fft, linalg
from ._core import dtype as dt
from ._ops_backward import REDUCTIONS
from ._public import FUNCTIONS
from ._tensor import Tensor
from ._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from .nn import functional
from .nn.utils.rnn import pad_sequence
from .nn.utils.weight_norm import norm_except_dim


def _cast(dtype: dt.dtype) -> Callable:
    return lambda self, non_blocking=False: self.to(dtype, non_blocking=non_blocking)


def copy_of(view: Callable) -> Callable:
    """The operator that copies what a view shows."""
    return lambda self, *args, **kwargs: view(self, *args, **kwargs).clone()


# -- layers -------------------------------------------------------------------------------------------------------------------

_PADS = ("reflect", "replicate", "circular", "constant")


def _pad_enum(self: Tensor, pad: Sequence[int], mode: int, value: float | None = None) -> Tensor:
    return functional.pad(self, list(pad), _PADS[mode], value)


def _pad_circular(self: Tensor, pad: Sequence[int]) -> Tensor:
    return functional.pad(self, list(pad), "circular")


def _convolution_mode(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: str, dilation: Any, groups: int) -> Tensor:
    return getattr(functional, f"conv{weight.ndim - 2}d")(input, weight, bias, stride, padding, dilation, groups)


def _sized(n: int) -> Callable:
    """A convolution that takes its kernel's size, too."""
    def run(self: Tensor, weight: Tensor, kernel_size: Any, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> Tensor:
        return getattr(functional, f"conv{n}d")(self, weight, bias, stride, padding, dilation)
    return run


def _sized_transposed(n: int) -> Callable:
    def run(self: Tensor, weight: Tensor, kernel_size: Any, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
            dilation: Any = 1) -> Tensor:
        return getattr(functional, f"conv_transpose{n}d")(self, weight, bias, stride, padding, output_padding, 1, dilation)
    return run


def _native_batch_norm_legit(input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    """With running statistics, which it writes, or without: then there are three more arguments and not five."""
    mean, var = rest[:2] if len(rest) > 3 else (None, None)
    return FUNCTIONS["native_batch_norm"](input, weight, bias, mean, var, *rest[-3:])


def _native_batch_norm_legit_functional(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, training: bool,
                                        momentum: float, eps: float) -> tuple:
    """The running statistics are results."""
    mean, var = running_mean.clone(), running_var.clone()
    return *FUNCTIONS["native_batch_norm"](input, weight, bias, mean, var, training, momentum, eps), mean, var


def _fused_rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None) -> tuple[Tensor, Tensor]:
    dims = list(range(-len(normalized_shape), 0))
    scale = (input.float() if input.dtype.itemsize < 4 else input).square().mean(dims, keepdim=True)
    return functional.rms_norm(input, normalized_shape, weight, eps), (scale + (np.finfo(scale.dtype.np).eps if eps is None else eps)).rsqrt()


def _weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    return FUNCTIONS["_weight_norm"](v, g, dim), norm_except_dim(v, dim)


def _norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    if dim == -1:
        return v.norm(pow)
    return v.norm(pow, [d for d in range(v.ndim) if d != dim % v.ndim], keepdim=True)


def _safe_softmax(self: Tensor, dim: int, dtype: dt.dtype | None = None) -> Tensor:
    """softmax, where rows of -inf give zeros, and have zeros for gradients."""
    nothing = self.isneginf().all(dim, keepdim=True)
    return functional.softmax(self.masked_fill(nothing, 0), dim, dtype=dtype).masked_fill(nothing, 0)


def _prelu_kernel(self: Tensor, weight: Tensor) -> Tensor:
    return FUNCTIONS["where"](self > 0, self, weight * self)


def _rrelu_with_noise(self: Tensor, noise: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator: Any = None) -> Tensor:
    """It writes what it multiplied by into `noise` while training."""
    if not training:
        return functional.leaky_relu(self, (lower + upper) / 2)
    drawn = FUNCTIONS["empty"](self.shape, dtype=self.dtype, device=self.device).uniform_(lower, upper, generator=generator)
    noise.copy_(FUNCTIONS["where"](self <= 0, drawn, 1.0).detach())
    return self * noise


def _log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    return functional.logsigmoid(self), (-self.abs()).exp()


def _multilabel_margin_loss_forward(self: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """The loss, and which classes are targets: those before the first -1 of a row."""
    given = (target < 0).cumsum(-1) == 0
    marked = FUNCTIONS["zeros_like"](self).scatter_add(-1, target.clamp(min=0), given.to(self.dtype))
    return functional.multilabel_margin_loss(self, target, reduction=REDUCTIONS[reduction]), (marked > 0).to(self.dtype)


def _nll_loss2d(self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1, ignore_index: int = -100) -> Tensor:
    return functional.nll_loss(self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])


# -- arithmetic and look-ups --------------------------------------------------------------------------------------------------


def _norm_of(normalization: int) -> tuple[str, str]:
    """What forward and backward call a normalization that PyTorch counts."""
    return (("backward", "forward"), ("ortho", "ortho"), ("forward", "backward"))[normalization]


def _fft_c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    """Unlike fft.fft, both directions scale by the same count."""
    return (fft.fftn if forward else fft.ifftn)(self, dim=tuple(dim), norm=_norm_of(normalization)[not forward])


def _fft_r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    return (fft.rfftn if onesided else fft.fftn)(self, dim=tuple(dim), norm=_norm_of(normalization)[0])


def _fft_c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    sizes = [self.shape[d] for d in dim[:-1]] + [last_dim_size]
    return fft.irfftn(self, s=sizes, dim=tuple(dim), norm=_norm_of(normalization)[1])


def _unique_dim(self: Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> tuple:
    """All three results are made whatever was asked for."""
    return FUNCTIONS["unique"](self, sorted, True, True, dim)


def _unique_dim_consecutive(self: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False) -> tuple:
    return FUNCTIONS["unique_consecutive"](self, True, True, dim)


def _unsafe_index(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return self[tuple(slice(None) if i is None else i for i in indices)]


def _unsafe_index_put(self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    return self.index_put(indices, values, accumulate)


def _trilinear(i1: Tensor, i2: Tensor, i3: Tensor, expand1: Sequence[int], expand2: Sequence[int], expand3: Sequence[int], sumdim: Sequence[int],
               unroll_dim: int = 1) -> Tensor:
    """The sum over some dimensions of the product of three tensors, each of which is given dimensions first."""
    for dims, place in ((expand1, 0), (expand2, 1), (expand3, 2)):
        for d in sorted(dims):
            i1, i2, i3 = [x.unsqueeze(d) if k == place else x for k, x in enumerate((i1, i2, i3))]
    product = i1 * i2 * i3
    return product.sum(list(sumdim)) if len(sumdim) else product


def _embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
                   per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int = -1) -> tuple:
    """`torch.embedding_bag`, to which no row is the padding where padding_idx is -1."""
    return FUNCTIONS["embedding_bag"](weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
                                      padding_idx if padding_idx >= 0 else None)


def _aminmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return tuple(FUNCTIONS["aminmax"](self, dim=dim, keepdim=keepdim))


def _constrained(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """RuntimeError for a number out of its range."""
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{'-inf' if min is None else min}, {'inf' if max is None else max}].")


FORMS: dict[str, Callable] = {
    **{f"_cast_{name}": _cast(t) for name, t in (("Byte", dt.uint8), ("Char", dt.int8), ("Short", dt.int16), ("Int", dt.int32), ("Long", dt.int64),
                                                 ("Half", dt.float16), ("Float", dt.float32), ("Double", dt.float64))},
    **{f"_adaptive_avg_pool{n}d": getattr(functional, f"adaptive_avg_pool{n}d") for n in (2, 3)},
    "_pad_enum": _pad_enum, "_pad_circular": _pad_circular, "_convolution_mode": _convolution_mode,
    "thnn_conv2d": _sized(2), "slow_conv_dilated2d": _sized(2), "slow_conv3d": _sized(3), "slow_conv_dilated3d": _sized(3),
    **{f"slow_conv_transpose{n}d": _sized_transposed(n) for n in (2, 3)},
    "_native_batch_norm_legit": _native_batch_norm_legit, "_native_batch_norm_legit_functional": _native_batch_norm_legit_functional,
    "_fused_rms_norm": _fused_rms_norm, "_weight_norm_interface": _weight_norm_interface, "norm_except_dim": _norm_except_dim,
    "_safe_softmax": _safe_softmax, "_prelu_kernel": _prelu_kernel, "rrelu_with_noise": _rrelu_with_noise, "log_sigmoid_forward": _log_sigmoid_forward,
    "multilabel_margin_loss_forward": _multilabel_margin_loss_forward, "nll_loss2d": _nll_loss2d,
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), _embedding_bag),
    "_fft_c2c": _fft_c2c, "_fft_r2c": _fft_r2c, "_fft_c2r": _fft_c2r,
    "_linalg_eigh": lambda A, UPLO="L", compute_v=True: tuple(linalg.eigh(A, UPLO)) if compute_v else (linalg.eigvalsh(A, UPLO), A.new_zeros(0)),
    "_linalg_eigvals": lambda self: linalg.eigvals(self),
    "unique_dim": _unique_dim, "unique_dim_consecutive": _unique_dim_consecutive,
    "_unsafe_index": _unsafe_index, "_unsafe_index_put": _unsafe_index_put, "_trilinear": _trilinear, "_aminmax": _aminmax,
    "_stack": lambda tensors, dim=0: FUNCTIONS["stack"](tensors, dim),
    "_is_all_true": lambda self: self.all(), "_is_any_true": lambda self: self.any(),
    "_euclidean_dist": lambda x1, x2: FUNCTIONS["cdist"](x1, x2, compute_mode="use_mm_for_euclid_dist"),
    "_cdist_forward": lambda x1, x2, p, compute_mode: FUNCTIONS["cdist"](x1, x2, p), "_pdist_forward": lambda self, p=2.0: functional.pdist(self, p),
    "_logcumsumexp": lambda self, dim: self.logcumsumexp(dim),
    "_index_put_impl_": lambda self, indices, values, accumulate=False, unsafe=False: self.index_put_(indices, values, accumulate),
    "nonzero_numpy": lambda self: list(self.nonzero(as_tuple=True)),
    "pad_sequence": lambda sequences, batch_first=False, padding_value=0.0, padding_side="right": pad_sequence(
        list(sequences), batch_first, padding_value, padding_side),
    "flatten_dense_tensors": lambda tensors: _flatten_dense_tensors(tensors),
    "unflatten_dense_tensors": lambda flat, tensors: list(_unflatten_dense_tensors(flat, tensors)),
    "lift": lambda self: self, "lift_fresh": lambda self: self, "_conj": lambda self: self.conj(), "_conj_physical": lambda self: self.conj_physical(),
    "_reshape_alias": lambda self, size, stride: self.as_strided(size, stride), "_reshape_copy": lambda self, size: self.reshape(size).clone(),
    **{f"{name}_copy": copy_of(getattr(Tensor, name)) for name in ("crow_indices", "col_indices", "ccol_indices", "row_indices", "indices", "values")},
    "_neg_view_copy": copy_of(FUNCTIONS["_neg_view"]), "_conj_copy": copy_of(Tensor.conj),
    "_to_dense": lambda self, dtype=None, masked_grad=None: self.to_dense(dtype, masked_grad=masked_grad), "_sparse_mm": lambda sparse, dense: sparse @ dense,
    "can_cast": dt.can_cast, "promote_types": dt.promote_types, "is_distributed": lambda self: False, "is_vulkan_available": lambda: False,
    "sym_constrain_range": _constrained, "sym_constrain_range_for_size": _constrained,
    "gelu_": lambda self, approximate="none": self.copy_(functional.gelu(self, approximate=approximate)), "relu6_": lambda self: self.copy_(functional.relu6(self)),
}
