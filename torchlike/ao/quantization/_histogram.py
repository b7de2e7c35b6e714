"""HistogramObserver: the range whose quantization would lose least of what was seen."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.history import warn
from ..._public import FUNCTIONS
from ..._tensor import Tensor
from ...ops.creation import zeros
from ...ops.from_data import tensor
from ._observers import _AFFINE, _EPS, _SYMMETRIC, UniformQuantizationObserverBase

_FINER = 16  # bins for one, where a histogram is spread over other ones
_STEP = 1e-5  # of what lies outside of the range


class HistogramObserver(UniformQuantizationObserverBase):
    """Counts in `bins` bins from the least to the largest element so far. `calculate_qparams` narrows the range while the squared error gets less."""

    histogram: Tensor
    min_val: Tensor
    max_val: Tensor

    def __init__(self, bins: int = 2048, dtype: Any = dt.quint8, qscheme: Any = _AFFINE, reduce_range: bool = False, quant_min: int | None = None,
                 quant_max: int | None = None, factory_kwargs: dict | None = None, eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any) -> None:
        if qscheme not in (_AFFINE, _SYMMETRIC):
            raise NotImplementedError("HistogramObserver's qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine.")
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.bins = bins
        self.register_buffer("histogram", zeros(bins, **(factory_kwargs or {})))
        self.register_buffer("min_val", tensor(float("inf"), **(factory_kwargs or {})))
        self.register_buffer("max_val", tensor(float("-inf"), **(factory_kwargs or {})))
        self.dst_nbins = 2 ** (8 * self.dtype.itemsize)
        self.upsample_rate = _FINER

    def forward(self, x_orig: Tensor) -> Tensor:
        """x_orig, counted."""
        if not x_orig.numel():
            return x_orig
        x = x_orig.detach()
        low, high = (t.item() for t in x.aminmax())
        if low == float("-inf") or high == float("inf"):
            warn("torch.inf detected in input tensor, ignoring input")
            x = x[x.abs() != float("inf")]
            if not x.numel():
                return x_orig
            low, high = (t.item() for t in x.aminmax())
        old_low, old_high = self.min_val.item(), self.max_val.item()
        unseen = old_low == float("inf") or old_high == float("-inf")
        new_low, new_high = (low, high) if unseen else (min(low, old_low), max(high, old_high))
        counts = FUNCTIONS["histc"](x, self.bins, min=new_low, max=new_high)
        if not unseen:
            counts = counts + (self.histogram if (new_low, new_high) == (old_low, old_high) else self._spread(old_low, old_high, new_low, new_high))
        self.histogram.resize_(counts.shape).copy_(counts)
        self.min_val.resize_(()).fill_(new_low)
        self.max_val.resize_(()).fill_(new_high)
        return x_orig

    def _spread(self, low: float, high: float, new_low: float, new_high: float) -> Tensor:
        """What was counted, in the bins of a wider range."""
        if low == high:
            return FUNCTIONS["histc"](tensor([low]), self.bins, min=new_low, max=new_high) * self.histogram.sum()
        n = self.bins * _FINER
        width = (np.float32(high) - np.float32(low)) / np.float32(n)
        middles = FUNCTIONS["linspace"](low, high, n + 1)[:-1] + 0.5 * float(width)
        edges = FUNCTIONS["linspace"](new_low, new_high, self.bins + 1)
        places = (FUNCTIONS["bucketize"](middles, edges, right=True) - 1).clamp(0, self.bins - 1)
        return FUNCTIONS["bincount"](places, self.histogram.repeat_interleave(_FINER) / _FINER, self.bins).to(self.histogram.dtype)

    def _error(self, first: int, last: int, histogram: np.ndarray, low: float, high: float) -> float:
        """The squared error if bins first..last were the range: what lies in a bin counts as spread evenly over it."""
        width = (high - low) / self.bins
        step = width * (last - first + 1) / self.dst_nbins  # of the quantized numbers
        if step == 0.0:
            return 0.0
        one = np.float32
        begin = (np.arange(self.bins) - first).astype(np.float32) * one(width)
        end = begin + one(width)
        from_number, to_number = (np.clip(np.floor_divide(x, one(step)), 0, self.dst_nbins - 1).astype(np.float32) for x in (begin, end))
        density = histogram / one(width)

        def norm(a: Any, b: Any) -> Any:
            return density * ((b * b * b - a * a * a) / one(3))
        half = one(step / 2)
        error = norm(begin - (from_number + one(0.5)) * one(step), half)
        error = error + (to_number - from_number - one(1)) * norm(-half, half)
        error = error + norm(-half, end - (to_number * one(step) + half))
        return float(error.sum(dtype=np.float32))

    def _non_linear_param_search(self) -> tuple[Tensor, Tensor]:
        """The ends of the range that loses least: from both sides, bins go while the error gets less."""
        histogram, low, high = self.histogram.cpu().numpy().astype(np.float32), self.min_val.item(), self.max_val.item()
        total, below = float(self.histogram.sum()), self.histogram.cumsum(0).cpu().numpy()
        alpha, beta, first, last, least = 0.0, 1.0, 0, self.bins - 1, float("inf")
        while alpha < beta:
            next_alpha, next_beta = alpha + _STEP, beta - _STEP
            left = max(first, min(last, int(np.searchsorted(below, np.float32(next_alpha * total), "left"))))
            right = min(last, max(first, int(np.searchsorted(below, np.float32(next_beta * total), "right")) - 1))
            next_first, next_last = first, last
            if left - first > last - right:
                next_first, alpha = left, next_alpha
            else:
                next_last, beta = right, next_beta
            if (next_first, next_last) == (first, last):
                continue
            error = self._error(next_first, next_last, histogram, low, high)
            if error > least:
                break
            least, first, last = error, next_first, next_last
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * first, self.min_val + width * (last + 1)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scale and zero point."""
        if self.min_val.item() == float("inf") and self.max_val.item() == float("-inf"):
            warn("must run observer before calling calculate_qparams. Returning default scale and zero point")
            return tensor([1.0], device=self.min_val.device), tensor([0], device=self.min_val.device)
        if self.bins != len(self.histogram):
            raise AssertionError("The number of bins in histogram should be equal to the number of bins supplied while making this observer")
        return self._calculate_qparams(*self._non_linear_param_search())

    def extra_repr(self) -> str:
        """The range."""
        return f"min_val={self.min_val}, max_val={self.max_val}"
