"""Batch normalization: y = (x - E[x]) / sqrt(Var[x] + eps) * weight + bias over batch and space.

Ioffe and Szegedy, 2015.
"""
from __future__ import annotations

from typing import Any

from torchlike._tensor import Tensor
from torchlike.nn import functional as F
from torchlike.nn import init
from torchlike.nn.modules.lazy import LazyModuleMixin
from torchlike.nn.modules.module import Module
from torchlike.nn.parameter import UninitializedBuffer, UninitializedParameter, empty_parameter

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
           "SyncBatchNorm"]


class _NormBase(Module):
    """Parameters, running statistics and printing that batch and instance normalization share."""

    _version = 2  # since version 2 there is num_batches_tracked
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    _ndims: tuple[int, ...] = ()

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:
        import torchlike as torch

        super().__init__()
        self.num_features = num_features
        shape = num_features if isinstance(num_features, (tuple, list)) else (num_features,)
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, empty_parameter(*shape, device=device, dtype=dtype) if wanted else None)
        stats = (None, None, None)
        if track_running_stats:
            stats = (torch.zeros(num_features, device=device, dtype=dtype),
                     torch.ones(num_features, device=device, dtype=dtype),
                     torch.tensor(0, dtype=torch.long, device=device))
        for name, value in zip(("running_mean", "running_var", "num_batches_tracked"), stats):
            self.register_buffer(name, value)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget what was seen: mean 0, variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, and no running statistics."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._ndims:
            raise ValueError(f"expected {' or '.join(f'{n}D' for n in self._ndims)} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool,
                              missing_keys: list, unexpected_keys: list, error_msgs: list) -> None:
        import torchlike as torch

        key = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats and key not in state_dict:
            mine = self.num_batches_tracked
            state_dict[key] = torch.tensor(0, dtype=torch.long) if mine is None or mine.is_meta else mine
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                                      error_msgs)


class _BatchNorm(_NormBase):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # plain average of all batches so far
                factor = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        keep = not self.training or self.track_running_stats
        return F.batch_norm(input, self.running_mean if keep else None, self.running_var if keep else None, self.weight,
                            self.bias, use_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """(N, C) or (N, C, L), normalized per channel C."""

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """(N, C, H, W), normalized per channel C."""

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """(N, C, D, H, W), normalized per channel C."""

    _ndims = (5,)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A normalization that takes `num_features` from its first input."""

    weight: UninitializedParameter
    bias: UninitializedParameter

    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            import torchlike as torch

            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = torch.tensor(0, dtype=torch.long, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """BatchNorm1d without `num_features`."""

    cls_to_become = BatchNorm1d
    _ndims = (2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """BatchNorm2d without `num_features`."""

    cls_to_become = BatchNorm2d
    _ndims = (4,)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """BatchNorm3d without `num_features`."""

    cls_to_become = BatchNorm3d
    _ndims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of all processes; with one process, over its own."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_group: Any = None, device: Any = None, dtype: Any = None, *,
                 bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _check_non_zero_input_channels(self, input: Tensor) -> None:
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        return self._synchronized(input) if self.training and self._several_processes() else super().forward(input)

    def _several_processes(self) -> bool:
        from torchlike import distributed
        return distributed.is_initialized() and distributed.get_world_size(self.process_group) > 1

    def _synchronized(self, input: Tensor) -> Tensor:
        """With the mean and variance of the batches of all processes, which may differ in size."""
        from torchlike.distributed.nn import all_reduce
        from torchlike.ops.joining import cat
        axes, channels = [d for d in range(input.dim()) if d != 1], input.shape[1]
        shape = (1, channels) + (1,) * (input.dim() - 2)
        sums = all_reduce(cat([input.sum(axes), input.new_full((1,), input.numel() / channels)]), group=self.process_group)
        count = sums[-1].detach()
        mean = sums[:-1] / count
        centered = input - mean.view(shape)
        var = all_reduce((centered * centered).sum(axes), group=self.process_group) / count
        if self.track_running_stats:
            self._track(mean.detach(), (var * (count / (count - 1))).detach())
        out = centered * (var + self.eps).rsqrt().view(shape)
        return out if self.weight is None else out * self.weight.view(shape) + (0 if self.bias is None else self.bias.view(shape))

    def _track(self, mean: Tensor, var: Tensor) -> None:
        self.num_batches_tracked.add_(1)
        momentum = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
        self.running_var.mul_(1 - momentum).add_(var, alpha=momentum)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace every BatchNorm layer in `module` by a SyncBatchNorm with the same parameters and statistics."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                            process_group)
            if module.affine:
                converted.weight = module.weight
                converted.bias = module.bias
            converted.running_mean = module.running_mean
            converted.running_var = module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
