"""Operators of torch.ops.aten that PyTorch's own functions are made of, and that what compilers and libraries write calls: kernels with what a derivative reads,
derivatives by those, updates of parameters, and operators without writing of what writes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import linalg
from ._core import dtype as dt
from ._ops_forms import FORMS
from ._ops_gradients import _gradients
from ._public import FUNCTIONS
from ._tensor import Tensor
from .autograd.grad_mode import no_grad
from .nn import functional

_INFINITY = float("inf")


def _f(name: str) -> Callable:
    """A public function, found when it is called."""
    return lambda *args, **kwargs: FUNCTIONS[name](*args, **kwargs)


# -- sums and products with an activation -------------------------------------------------------------------------------------


def _add_relu(self: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    return functional.relu(FUNCTIONS["add"](self, other, alpha=alpha))


def _add_relu_(self: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    return self.copy_(_add_relu(self, other, alpha=alpha))


def _addmm_activation(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1, use_gelu: bool = False) -> Tensor:
    made = FUNCTIONS["addmm"](self, mat1, mat2, beta=beta, alpha=alpha)
    return functional.gelu(made) if use_gelu else functional.relu(made)


def _weight_int8pack_mm(self: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """(M, K) floats by a weight (N, K) of int8, each of whose rows has a scale: (M, N)."""
    if self.dtype not in (dt.float32, dt.float16, dt.bfloat16):
        raise RuntimeError("_weight_int8pack_mm_cpu : expect A to be either 32-bit or 16-bit float tensor.")
    if mat2.dtype is not dt.int8:
        raise RuntimeError("_weight_int8pack_mm_cpu : expect B to be int8 tensor.")
    if mat2.ndim != 2 or mat2.shape[1] != self.shape[1]:
        raise RuntimeError(f"_weight_int8pack_mm_cpu : expect B.size(1) == {self.shape[1]}")
    if scales.ndim != 1 or scales.shape[0] != mat2.shape[0]:
        raise RuntimeError(f"_weight_int8pack_mm_cpu : expect scales to be 1d tensor with size {mat2.shape[0]}")
    return (self.to(dt.float32) @ mat2.t().to(dt.float32) * scales.to(dt.float32)).to(self.dtype)


# -- attention and softmax ---------------------------------------------------------------------------------------------


def _scaled_dot_product_attention_math(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
                                       dropout_mask: Tensor | None = None, *, scale: float | None = None, enable_gqa: bool = False) -> tuple[Tensor, Tensor]:
    """Attention as products and a softmax, and the weights after dropout; `dropout_mask` is what stays, drawn by the caller."""
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    root = (query.shape[-1] ** -0.5 if scale is None else scale) ** 0.5  # on both sides: 16-bit products stay small
    scores = (query * root) @ (key * root).transpose(-2, -1)
    if is_causal:
        scores = scores.masked_fill(scores.new_ones(scores.shape[-2:], dtype=dt.bool_).tril().logical_not(), -_INFINITY)
    if attn_mask is not None:
        scores = scores + attn_mask  # numbers: whoever has a mask of bool has made them of it
    weights = functional.softmax(scores, -1) if attn_mask is None and not is_causal else FORMS["_safe_softmax"](scores, -1)
    if dropout_mask is not None:
        weights = weights.masked_fill(dropout_mask.logical_not(), 0.0)
        return weights @ (value * (1.0 / (1.0 - dropout_p))), weights
    if dropout_p:
        weights = functional.dropout(weights, dropout_p)
    return weights @ value, weights


def _attention_backward(grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, dropout_p: float, is_causal: bool, *,
                        attn_mask: Tensor | None = None, scale: float | None = None) -> tuple:
    """The gradients by the three inputs of attention without dropout."""
    return _gradients(lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, attn_mask, 0.0, is_causal, scale=scale), (query, key, value), grad_out)


def _masked_softmax(self: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None) -> Tensor:
    """softmax of what the mask (bool) leaves: it is of self's shape, (L, L) with type 0, or (B, L) with type 1."""
    if mask.dtype is not dt.bool_:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask_type == 2 and mask.shape != self.shape:
        raise RuntimeError("For mask_type == 2 mask shape should match input shape")
    if mask.ndim == 2 and self.ndim == 4:
        mask = mask[:, None, None, :] if mask_type == 1 else mask
    return functional.softmax(self.masked_fill(mask, -_INFINITY), self.ndim - 1 if dim is None else dim)


def _masked_softmax_backward(grad_output: Tensor, output: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    left = (grad_output * output).masked_fill(mask, 0.0)
    return (left - output * left.sum(output.ndim - 1 if dim is None else dim, keepdim=True)).masked_fill(mask, 0.0)


# -- connectionist temporal classification ----------------------------------------------------------------------------------------


def _ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, zero_infinity: bool = False) -> tuple[Tensor, Tensor]:
    """The loss (B,) of each sequence, and the logarithms (B, T, 2 S + 1) of the sums over the ways to a place among its labels with blanks between: -inf where
    there are none."""
    loss = functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, "none", False)
    with no_grad():
        times, places = (x.tolist() if isinstance(x, Tensor) else list(x) for x in (input_lengths, target_lengths))
        longest = max(places, default=0)
        if targets.ndim == 1:  # one behind the other
            parts = targets.split(places)
            targets = FUNCTIONS["stack"]([functional.pad(t, (0, longest - t.shape[0]), value=blank) for t in parts])
        batch, states = log_probs.shape[1], 2 * longest + 1
        labels = targets.new_full((batch, states), blank)
        labels[:, 1::2] = targets[:, :longest]
        wide = log_probs.detach().transpose(0, 1).gather(2, labels.long()[:, None, :].expand(batch, log_probs.shape[0], states))
        skips = FUNCTIONS["zeros"](batch, states, dtype=dt.bool_, device=log_probs.device)
        skips[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
        nowhere = wide.new_full((batch, states), -_INFINITY)
        inside = FUNCTIONS["arange"](states, device=log_probs.device) < 2 * FUNCTIONS["tensor"](places, device=log_probs.device)[:, None] + 1
        row = nowhere.clone()
        row[:, :2] = wide[:, 0, :2]
        rows = [row.masked_fill(inside.logical_not(), -_INFINITY)]
        for t in range(1, log_probs.shape[0]):
            before = rows[-1]
            one, two = (functional.pad(before, (n, 0), value=-_INFINITY)[:, :states] for n in (1, 2))
            ways = FUNCTIONS["stack"]([before, one, two.masked_fill(skips.logical_not(), -_INFINITY)])
            rows.append((ways.logsumexp(0) + wide[:, t]).masked_fill(inside.logical_not(), -_INFINITY))
        alpha = FUNCTIONS["stack"](rows, 1)
        late = FUNCTIONS["arange"](log_probs.shape[0], device=log_probs.device) >= FUNCTIONS["tensor"](times, device=log_probs.device)[:, None]
        alpha = alpha.masked_fill(late[:, :, None], -_INFINITY)
    return loss, alpha


def _ctc_loss_backward(grad: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, neg_log_likelihood: Tensor, log_alpha: Tensor,
                       blank: int, zero_infinity: bool = False) -> Tensor:
    return _gradients(lambda x: functional.ctc_loss(x, targets, input_lengths, target_lengths, blank, "none", zero_infinity), (log_probs,), grad)[0]


# -- bags of embeddings ---------------------------------------------------------------------------------------------------------


def _rows_of_bags(grad: Tensor, indices: Tensor, offset2bag: Tensor, bag_size: Tensor, num_weights: int, scale_grad_by_freq: bool, mode: int,
                  per_sample_weights: Tensor | None, padding_idx: int) -> Tensor:
    """The gradient that each index brings to its row."""
    rows = grad.index_select(0, offset2bag)
    if mode == 1:
        rows = rows / bag_size.index_select(0, offset2bag).clamp(min=1).to(rows.dtype)[:, None]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    if scale_grad_by_freq:
        rows = rows / FUNCTIONS["bincount"](indices, minlength=num_weights).index_select(0, indices).to(rows.dtype)[:, None]
    return rows.masked_fill((indices == padding_idx)[:, None], 0.0) if padding_idx >= 0 else rows


def _bags(indices: Tensor, offsets: Tensor, offset2bag: Tensor) -> Tensor:
    """Each index's bag, which a forward that needs it not leaves empty."""
    if offset2bag.numel() or not indices.numel():
        return offset2bag
    return FUNCTIONS["searchsorted"](offsets, FUNCTIONS["arange"](indices.shape[0], dtype=offsets.dtype, device=offsets.device), right=True) - 1


def _embedding_bag_dense_backward(grad: Tensor, indices: Tensor, offset2bag: Tensor, bag_size: Tensor, maximum_indices: Tensor, num_weights: int,
                                  scale_grad_by_freq: bool, mode: int, per_sample_weights: Tensor | None, padding_idx: int = -1) -> Tensor:
    """The gradient (num_weights, D) of the rows: of sums, means (mode 1) and maxima (mode 2)."""
    zeros = grad.new_zeros((num_weights, grad.shape[1]))
    if mode == 2:
        full = (bag_size > 0)[:, None]
        return zeros.scatter_add(0, maximum_indices.clamp(min=0).long(), grad.masked_fill(full.logical_not(), 0.0))
    return zeros.index_add(0, indices, _rows_of_bags(grad, indices, offset2bag, bag_size, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx))


def _embedding_bag_sparse_backward(grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, bag_size: Tensor, num_weights: int,
                                   scale_grad_by_freq: bool, mode: int, per_sample_weights: Tensor | None, padding_idx: int = -1) -> Tensor:
    """The same as a sparse tensor with a row for each index."""
    rows = _rows_of_bags(grad, indices, _bags(indices, offsets, offset2bag), bag_size, num_weights, scale_grad_by_freq, mode, per_sample_weights, -1)
    if padding_idx >= 0:
        kept = indices != padding_idx
        indices, rows = indices[kept], rows[kept]
    return FUNCTIONS["sparse_coo_tensor"](indices[None], rows, (num_weights, grad.shape[1]))


def _embedding_bag_backward(grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, bag_size: Tensor, maximum_indices: Tensor, num_weights: int,
                            scale_grad_by_freq: bool, mode: int, sparse: bool, per_sample_weights: Tensor | None, padding_idx: int = -1) -> Tensor:
    bags = _bags(indices, offsets, offset2bag)
    if sparse:
        return _embedding_bag_sparse_backward(grad, indices, offsets, bags, bag_size, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx)
    return _embedding_bag_dense_backward(grad, indices, bags, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx)


def _embedding_bag_per_sample_weights_backward(grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, mode: int,
                                               padding_idx: int = -1) -> Tensor:
    """The gradient of each index's weight: of sums only."""
    if mode != 0:
        raise RuntimeError("embedding_bag_backward: per_sample_weights only supported for mode='sum'")
    found = (grad.index_select(0, _bags(indices, offsets, offset2bag)) * weight.index_select(0, indices)).sum(-1)
    return found.masked_fill(indices == padding_idx, 0.0) if padding_idx >= 0 else found


def _embedding_renorm_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """The rows that are named, of a norm of at most max_norm."""
    with no_grad():
        rows = indices.reshape(-1).unique()
        found = self.index_select(0, rows)
        sizes = found.norm(norm_type, -1, keepdim=True)
        return self.index_copy_(0, rows, FUNCTIONS["where"](sizes > max_norm, found * (max_norm / (sizes + 1e-7)), found))


# -- faked quantizing, with what its derivative reads ------------------------------------------------------------------------------


def _cachemask(self: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int, made: Tensor) -> tuple[Tensor, Tensor]:
    with no_grad():
        numbers = FUNCTIONS["round"](self * (1.0 / scale)) + zero_point
        return made, (numbers >= quant_min) & (numbers <= quant_max)


def _per_tensor_cachemask(self: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int) -> tuple[Tensor, Tensor]:
    made = FUNCTIONS["fake_quantize_per_tensor_affine"](self, scale, zero_point, quant_min, quant_max)
    return _cachemask(self, scale, zero_point, quant_min, quant_max, made)


def _per_channel_cachemask(self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int) -> tuple[Tensor, Tensor]:
    made = FUNCTIONS["fake_quantize_per_channel_affine"](self, scale, zero_point, axis, quant_min, quant_max)
    shape = [-1 if d == axis % self.ndim else 1 for d in range(self.ndim)]
    return _cachemask(self, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max, made)


def _masked_gradient(grad: Tensor, mask: Tensor) -> Tensor:
    return grad * mask


# -- updates of parameters ---------------------------------------------------------------------------------------------------------


def _scaled_gradients(grads: Sequence[Tensor], grad_scale: Tensor | None, found_inf: Tensor | None) -> bool:
    """The gradients divided by their scale, in their place; whether there is a step to take."""
    if found_inf is not None and found_inf.item() == 1:
        return False
    if grad_scale is not None:
        for g in grads:
            g.div_(grad_scale.to(g.dtype))
    return True


def _number(lr: Any) -> float:
    return lr.item() if isinstance(lr, Tensor) else lr


def _adam(decoupled: bool) -> Callable:
    def run(self: Sequence[Tensor], grads: Sequence[Tensor], exp_avgs: Sequence[Tensor], exp_avg_sqs: Sequence[Tensor], max_exp_avg_sqs: Sequence[Tensor],
            state_steps: Sequence[Tensor], *, lr: Any, beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
            grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None:
        with no_grad():
            if not _scaled_gradients(grads, grad_scale, found_inf):
                return
            lr = _number(lr)
            for i, (p, g, m, v, step) in enumerate(zip(self, grads, exp_avgs, exp_avg_sqs, state_steps)):
                g = -g if maximize else g
                if weight_decay and decoupled:
                    p.mul_(1 - lr * weight_decay)
                elif weight_decay:
                    g = g + p * weight_decay
                m.lerp_(g, 1 - beta1)
                v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
                second = v
                if amsgrad:
                    second = max_exp_avg_sqs[i].copy_(FUNCTIONS["maximum"](max_exp_avg_sqs[i], v))
                n = step.item()
                p.addcdiv_(m, second.sqrt() / (1 - beta2**n) ** 0.5 + eps, value=-lr / (1 - beta1**n))
    return run


def _fused_sgd_(self: Sequence[Tensor], grads: Sequence[Tensor], momentum_buffer_list: Sequence[Tensor], *, weight_decay: float, momentum: float, lr: Any,
                dampening: float, nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None:
    with no_grad():
        if not _scaled_gradients(grads, grad_scale, found_inf):
            return
        lr = _number(lr)
        for i, (p, g) in enumerate(zip(self, grads)):
            g = -g if maximize else g
            if weight_decay:
                g = g + p * weight_decay
            if momentum:
                buffer = momentum_buffer_list[i]
                buffer.copy_(g if is_first_step else buffer * momentum + g * (1 - dampening))
                g = g + buffer * momentum if nesterov else buffer
            p.sub_(g * lr)


def _fused_adagrad_(self: Sequence[Tensor], grads: Sequence[Tensor], state_sums: Sequence[Tensor], state_steps: Sequence[Tensor], *, lr: Any, lr_decay: float,
                    weight_decay: float, eps: float, maximize: bool, grad_scale: Tensor | None = None, found_inf: Tensor | None = None) -> None:
    with no_grad():
        if not _scaled_gradients(grads, grad_scale, found_inf):
            return
        for p, g, total, step in zip(self, grads, state_sums, state_steps):
            g = -g if maximize else g
            if weight_decay:
                g = g + p * weight_decay
            total.addcmul_(g, g)
            p.addcdiv_(g, total.sqrt() + eps, value=-_number(lr) / (1 + (step.item() - 1) * lr_decay))


def _without_writing(writing: Callable, written: tuple[int, ...]) -> Callable:
    """The operator that returns copies of what `writing` writes: the arguments at these places, tensors or lists of them."""
    def run(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        for i in written:
            given[i] = [t.clone() for t in given[i]] if isinstance(given[i], (list, tuple)) else given[i].clone()
        writing(*given, **kwargs)
        return given[written[0]] if len(written) == 1 else tuple(given[i] for i in written)
    return run


# -- derivatives, and kernels that return what those read -----------------------------------------------------------------------------


def _cummaxmin_backward(grad: Tensor, input: Tensor, indices: Tensor, dim: int) -> Tensor:
    return FUNCTIONS["zeros_like"](input).scatter_add(dim, indices, grad) if input.numel() else input


def _helped(name: str) -> Callable:
    def run(self: Tensor, values: Tensor, indices: Tensor, dim: int) -> None:
        made = FUNCTIONS[name](self, dim)
        values.copy_(made[0])
        indices.copy_(made[1])
    return run


def _matrix_exp_backward(self: Tensor, grad: Tensor) -> Tensor:
    return _gradients(linalg.matrix_exp, (self,), grad)[0]


def _glu_jvp(glu: Tensor, x: Tensor, dx: Tensor, dim: int) -> Tensor:
    a, b = dx.chunk(2, dim)
    gate = x.chunk(2, dim)[1].sigmoid()
    return a * gate + glu * (1 - gate) * b


def _segment_reduce_backward(grad: Tensor, output: Tensor, data: Tensor, reduce: str, *, lengths: Tensor | None = None, offsets: Tensor | None = None, axis: int = 0,
                             initial: float | None = None) -> Tensor:
    return _gradients(lambda x: FUNCTIONS["segment_reduce"](x, reduce, lengths=lengths, offsets=offsets, axis=axis, initial=initial, unsafe=True), (data,), grad)[0]


def _factors(A: Tensor) -> tuple:  # noqa: N803  (torch's name)
    """LU and pivots, as torch makes them of a transposed matrix where that is contiguous."""
    made = linalg.lu_factor_ex(A.mT if A.is_contiguous() and not A.is_complex() else A)
    return made[0], made[1]


def _linalg_det(A: Tensor) -> tuple:  # noqa: N803
    return (linalg.det(A), *_factors(A))


def _linalg_slogdet(A: Tensor) -> tuple:  # noqa: N803
    return (*linalg.slogdet(A), *_factors(A))


def _linalg_svd(A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> tuple:  # noqa: N803
    if not compute_uv:
        return A.new_zeros(0), linalg.svdvals(A), A.new_zeros(0)
    return tuple(linalg.svd(A, full_matrices))


def _unsafe_masked_index(self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: float) -> Tensor:
    """self[indices] where the mask is set, fill elsewhere; indices elsewhere may be anything."""
    bounded = [None if i is None else i.clamp(0, n - 1) for i, n in zip(indices, self.shape)]
    found = self[tuple(slice(None) if i is None else i for i in bounded)]
    return found.masked_fill(mask.logical_not(), fill)


def _unsafe_masked_index_put_accumulate(self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor) -> Tensor:
    bounded = [None if i is None else i.clamp(-n, n - 1) for i, n in zip(indices, self.shape)]
    return FUNCTIONS["index_put"](self, tuple(slice(None) if i is None else i for i in bounded), values.masked_fill(mask.logical_not(), 0), True)


def _rrelu_with_noise_(self: Tensor, noise: Tensor, lower: float = 0.125, upper: float = 1.0 / 3, training: bool = False, generator: Any = None) -> Tensor:
    return self.copy_(FORMS["rrelu_with_noise"](self, noise, lower, upper, training, generator))


def _transform_bias_rescale_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: int) -> tuple:
    """(B, T, 3 D) of three products, and their biases, as queries (divided by the root of D / heads), keys and values (B, heads, T, D / heads)."""
    b, t, d = qkv.shape
    q, k, v = (qkv + qkv_bias).reshape(b, t, 3, num_heads, d // 3 // num_heads).permute(2, 0, 3, 1, 4)
    return q.contiguous() * (d // 3 // num_heads) ** -0.5, k.contiguous(), v.contiguous()


def _saturate_weight_to_fp16(weight: Tensor) -> Tensor:
    largest = 65504.0
    return weight.copy_(weight.clamp(-largest, largest))


def _set_data(self: Tensor, new_data: Tensor) -> None:
    self.data = new_data


def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Each tensor padded along dim so that it falls into num_chunks parts, and the parts of one number joined: (..., num_chunks, the rest)."""
    parts = []
    for t in tensors:
        size = -(-t.shape[dim] // num_chunks)
        padded = functional.pad(t, [0, 0] * (t.ndim - 1 - dim) + [0, size * num_chunks - t.shape[dim]])
        parts.append(padded.reshape(*t.shape[:dim], num_chunks, -1))
    return FUNCTIONS["cat"](parts, -1)


def _choose_qparams_per_tensor(self: Tensor, reduce_range: bool = False) -> tuple[float, int]:
    low, high = min(self.min().item(), 0.0), max(self.max().item(), 0.0)
    steps = 127 if reduce_range else 255
    scale = (high - low) / steps or 0.1
    return scale, int(max(0, min(steps, round(-low / scale))))


INNER: dict[str, Callable] = {
    "_add_relu": _add_relu, "_add_relu_": _add_relu_, "_addmm_activation": _addmm_activation, "_weight_int8pack_mm": _weight_int8pack_mm,
    "_scaled_dot_product_attention_math": _scaled_dot_product_attention_math, "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "_masked_softmax": _masked_softmax, "_masked_softmax_backward": _masked_softmax_backward,
    "_ctc_loss": _ctc_loss, "_ctc_loss_backward": _ctc_loss_backward,
    "_embedding_bag_backward": _embedding_bag_backward, "_embedding_bag_dense_backward": _embedding_bag_dense_backward,
    "_embedding_bag_sparse_backward": _embedding_bag_sparse_backward, "_embedding_bag_per_sample_weights_backward": _embedding_bag_per_sample_weights_backward,
    "embedding_renorm_": _embedding_renorm_, "embedding_renorm": _without_writing(_embedding_renorm_, (0,)),
    "fake_quantize_per_tensor_affine_cachemask": _per_tensor_cachemask, "fake_quantize_per_channel_affine_cachemask": _per_channel_cachemask,
    **dict.fromkeys(("fake_quantize_per_tensor_affine_cachemask_backward", "fake_quantize_per_channel_affine_cachemask_backward"), _masked_gradient),
    "_fused_adam_": _adam(False), "_fused_adamw_": _adam(True), "_fused_sgd_": _fused_sgd_, "_fused_adagrad_": _fused_adagrad_,
    "_fused_adam": _without_writing(_adam(False), (0, 1, 2, 3, 4)), "_fused_adamw": _without_writing(_adam(True), (0, 1, 2, 3, 4)),
    "_fused_sgd": _without_writing(_fused_sgd_, (0, 1, 2)), "_fused_adagrad": _without_writing(_fused_adagrad_, (0, 1, 2, 3)),
    "_foreach_copy": _without_writing(_f("_foreach_copy_"), (0,)), "_foreach_zero": _without_writing(_f("_foreach_zero_"), (0,)),
    "_amp_foreach_non_finite_check_and_unscale": _without_writing(_f("_amp_foreach_non_finite_check_and_unscale_"), (0, 1)),
    "_amp_update_scale": _without_writing(_f("_amp_update_scale_"), (0, 1)),
    "cummaxmin_backward": _cummaxmin_backward, "_cummax_helper": _helped("cummax"), "_cummin_helper": _helped("cummin"),
    "matrix_exp_backward": _matrix_exp_backward, "glu_jvp": _glu_jvp, "_segment_reduce_backward": _segment_reduce_backward,
    "_linalg_det": _linalg_det, "_linalg_slogdet": _linalg_slogdet, "_linalg_svd": _linalg_svd,
    "_unsafe_masked_index": _unsafe_masked_index, "_unsafe_masked_index_put_accumulate": _unsafe_masked_index_put_accumulate,
    "rrelu_with_noise_": _rrelu_with_noise_, "_transform_bias_rescale_qkv": _transform_bias_rescale_qkv, "_saturate_weight_to_fp16": _saturate_weight_to_fp16,
    "set_data": _set_data, "_chunk_cat": _chunk_cat, "_choose_qparams_per_tensor": _choose_qparams_per_tensor,
    "normal_functional": lambda self, mean=0.0, std=1.0, *, generator=None: self.clone().normal_(mean, std, generator=generator),
    "native_norm": lambda self, p=2, dim=None, keepdim=False, dtype=None: FUNCTIONS["norm"](self, p, dim, keepdim, dtype=dtype),
    "_to_cpu": lambda tensors: [t.cpu() for t in tensors], "_lazy_clone": lambda self: self.clone(), "_is_zerotensor": lambda self: False,
    "sym_is_contiguous": lambda self, memory_format=None: self.is_contiguous() if memory_format is None else self.is_contiguous(memory_format=memory_format),
}
