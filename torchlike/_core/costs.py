"""Rough estimates of what programs cost and gain: they decide which tier runs one, never what it computes."""
from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from .fusions import emitted, is_fused
from .registry import BackwardOp

# Rough seconds that compiling saves on the CPU, for each operation: one that is fused, its derivative; another, its derivative (what each takes in NumPy, less
# what it takes compiled, as fitted to some twenty small steps in both tiers)
FUSED, FUSED_BACKWARD, NUMPY_OP, NUMPY_BACKWARD = 5e-7, 2.5e-6, 4e-6, 1.2e-5
NUMPY_WORK = 5e-10  # for each unit of work
CACHED, FAR = 0.2, 1 << 15  # times that much, of a fused operation of no more work: NumPy finds its arrays in the processor's cache
HOST_OP = 8e-6  # of an operation of a program on another device
PRODUCT = 1 / 50  # a multiply-add of a product, in units of work: BLAS is as quick as XLA, so little of it is saved;
DEPTHWISE = 2  # of a depthwise convolution, which NumPy multiplies without BLAS
LOOPED = 10  # operations in a round of an operation that loops in Python
CONVOLUTION, HOST_CONVOLUTION = 10, 5  # operations in a convolution
MULTIPLY_ADD, FETCHED_BYTE = 1.6e-11, 1.25e-10  # rough seconds of a multiply-add of a product on the host; to bring it a byte from a GPU
HALF = 4  # times as long take 16-bit floats in NumPy
START, PASSED = 5e-5, 4e-6  # rough seconds to start an executable on the CPU, and for each input, with the result that most of them are updated to
DISPATCH, HANDED = 2e-4, 6e-6  # the same on another device, with what is on the host
OP_COMPILE, PROGRAM_COMPILE = 0.03, 0.5  # rough seconds: one op's compilation, a whole program's fixed part
SECONDS_PER_OP, SECONDS_PER_RESULT = 0.02, 0.012  # an operation in it; each result of one with several (an optimizer's step)
SECONDS_PER_FUSED = 0.0015  # an elementwise operation or a view: it becomes a part of others
SECONDS_PER_COPY = 0.0008  # of it in a kernel
SECONDS_PER_LOOP = 0.4  # an operation that is a loop in XLA as well
SECONDS_PER_KERNEL = 0.25  # an operation with the platform's own kernel
SECONDS_PER_SCATTER = 0.1  # an operation that XLA's CPU backend makes a loop over the indices of
AGAIN = 0.1  # of these seconds takes an operation that the program has already: XLA compiles kernels that are alike once,
RESULT_AGAIN = 0.25  # and a result of a form that the same operation has already
_PRODUCTS = frozenset((
    "mm", "bmm", "grouped_mm", "matmul", "unrounded_matmul", "linear", "linear_alone", "einsum", "euclidean_dist", "convolution", "conv_transpose", "attention",
    "fused_attention", "tiled_attention", "scaled_dot_product_attention", "lstm_sequence", "projected_lstm_sequence", "gru_sequence",
    "rnn_sequence", "linear_cross_entropy", "linear_cross_entropy_training"))
_AS_QUICK = frozenset(("mm", "bmm", "matmul", "linear", "linear_alone"))  # whose own kernel compiles as quickly as the default
STEP = 0.25  # of an optimizer's step, which NumPy makes in blocks as well
# Operations whose NumPy form loses many times its units of work, or nothing, as XLA's own is no quicker: times their work counts in what compiling
# saves (a core, megabytes of float32, benchmarks/operation_cases.py in both tiers)
_SAVED = {
    "erf": 2.5, "erfc": 15, "lgamma": 7, "digamma": 3, "digamma_backward": 14, "polygamma": 30, "polygamma_backward": 80, "special_zeta": 50,
    "i0": 40, "special_i1": 40, "special_ndtr": 10, "special_log_ndtr": 18, "special_erfcx": 22, "special_entr": 3,
    "gelu": 3.5, "gelu_backward": 2.2, "expm1": 2.4, "log1p": 2.2, "sinh": 2, "acosh": 3.4, "atanh": 2, "hypot": 2.6, "remainder": 2.4, "floor_divide": 4,
    "softplus": 2.3, "celu": 2, "argmax": 3, "median_dim": 4, "logcumsumexp_backward": 10, "topk": 15, "searchsorted": 20, "cdist": 50, "cdist_backward": 20,
    "grid_sampler_2d_backward": 18, "cumsum": 3.5, "cumsum_backward": 3.5,
    **dict.fromkeys(("add", *(name + of for name in ("convolution", "conv_transpose", "linear", "relu", "hardtanh", "native_batch_norm") for of in ("", "_backward"))), 0.6),
    **dict.fromkeys(("sinc", "sinc_backward", "log2", "pow", "mode", "sort", "argsort", "isin", "igamma", "igammac", "standard_gamma", "special_bessel_j0"), 0),
}
_SCATTERS = frozenset("scatter scatter_reduce index_reduce masked_scatter index_put index_write gather_backward index_backward embedding_backward".split())


def program_seconds(steps: list, live: Collection[int], device) -> float:
    """Of compiling a program with these results."""
    counts = Counter(_opened([s.plan for s in steps]))
    seconds = PROGRAM_COMPILE + sum([compile_seconds(plan, device) * (1 + AGAIN * (n - 1)) for plan, n in counts.items()])
    return seconds + SECONDS_PER_COPY * emitted(steps, live) if device.type == "cpu" else seconds


def _opened(plans: Iterable) -> Iterator:
    """Plans, with those inside of traced calls in their place."""
    for plan in plans:
        if plan.op.inlined:
            yield from _opened(s.plan for s in plan.op.steps)
        else:
            yield plan


def gain(plans: Sequence, n_inputs: int, device) -> float:
    """Seconds that a run saves by being compiled: on another device, all that the host takes."""
    seconds = sum([(plan.cost or _cost(plan))[1] for plan in plans])
    return seconds - START - PASSED * n_inputs if device.type == "cpu" else seconds - DISPATCH - HANDED * n_inputs


def is_short(n_operations: int, work: float, n_inputs: int) -> bool:
    """Whether a program of this work is over before recording its operations, rather than computing each at once, has saved anything."""
    return HOST_OP * n_operations + NUMPY_WORK * work <= DISPATCH + HANDED * n_inputs


def seconds_at_once(plan) -> float:
    """Rough seconds of an operation that is computed at once; is_short compares their sum."""
    return HOST_OP + NUMPY_WORK * (plan.cost[0] if plan.cost else work(plan))  # what compiling would save is not asked yet


def total_work(plans: Sequence) -> float:
    """Units of work of a program."""
    return sum([(plan.cost or _cost(plan))[0] for plan in plans])


def _cost(plan) -> tuple[float, float]:
    """Units of work of an operation, and the seconds that compiling saves, but for what it takes to start the program."""
    w = work(plan)
    if plan.device.type == "cpu":
        seconds = NUMPY_WORK * w * _saved(plan.op.name)
        if is_fused(plan):
            seconds = seconds * (CACHED if w <= FAR else 1) + (FUSED_BACKWARD if isinstance(plan.op, BackwardOp) else FUSED)
        else:
            seconds += _for_itself(plan)
    else:
        seconds = host_seconds(plan) + HOST_OP * (LOOPED * _rounds(plan) or (HOST_CONVOLUTION if "conv" in plan.op.name else 1))
    found = plan.cost = w, seconds
    return found


def _for_itself(plan) -> float:
    """What compiling saves of an operation that is not fused, however small its arrays."""
    rounds = _rounds(plan)
    if rounds:
        return NUMPY_OP * LOOPED * rounds
    if "conv" in plan.op.name:
        return NUMPY_OP * CONVOLUTION
    return NUMPY_BACKWARD if isinstance(plan.op, BackwardOp) else NUMPY_OP


def _saved(name: str) -> float:
    found = _SAVED.get(name)
    if found is None:
        return STEP if name.startswith("optim_") else 1
    return found


def compile_seconds(plan, device) -> float:
    if device.type in plan.op.device_kernels and plan.op.name not in _AS_QUICK:
        return SECONDS_PER_KERNEL
    if plan.op.name in _SCATTERS:
        return SECONDS_PER_SCATTER
    if _rounds(plan):
        return SECONDS_PER_LOOP
    if is_fused(plan):
        return SECONDS_PER_FUSED
    if plan.op.name == "scaled_gradients" or plan.op.free:  # as many multiplications, or slices
        return SECONDS_PER_FUSED * len(plan.outs)
    if plan.single:
        return SECONDS_PER_OP
    forms = len(set(plan.outs))
    return SECONDS_PER_RESULT * (forms + RESULT_AGAIN * (len(plan.outs) - forms))


def _rounds(plan) -> int:
    """Of an operation whose NumPy form loops in Python, and of its derivative."""
    if isinstance(plan.op, BackwardOp):
        plan = plan.statics[0]
    return plan.avals[0].shape[0] if plan.op.loops else 0


def host_seconds(plan) -> float:
    """Of an operation's elements in NumPy."""
    if plan.op.free:
        return 0.0
    avals = [*filter(None, plan.avals), *plan.outs]
    sizes = [a.numel for a in avals]
    seconds = NUMPY_WORK * sum(sizes) + MULTIPLY_ADD * multiply_adds(plan)
    if plan.op.name.startswith("linalg"):
        seconds += LOOPED * MULTIPLY_ADD * max(sizes) * max((a.shape[-1] for a in avals if a.ndim), default=1)
    return seconds * (HALF if any(a.dtype.itemsize == 2 for a in avals) else 1)


def multiply_adds(plan) -> float:
    """Of a product, roughly: of (m, k), (k, n) and (m, n) it is m k n, and a backward has two of them."""
    if plan.op.name.removesuffix("_backward") not in _PRODUCTS:
        return 0
    sizes = sorted([a.numel for a in (*filter(None, plan.avals), *plan.outs)])
    return math.sqrt(math.prod(sizes[-3:])) * (1 + isinstance(plan.op, BackwardOp))


def work(plan) -> float:
    """A rough count of elements that XLA touches in less time than NumPy; decides only how early a program is compiled."""
    if plan.op.free:
        return 0
    sizes = [a.numel for a in plan.avals if a is not None] + [o.numel for o in plan.outs]
    if _has_products(plan.op.name):
        return (DEPTHWISE if _is_depthwise(plan) else PRODUCT) * _products(plan)
    return sum(sizes[1:-1] if plan.op.overwrites else sizes)


@functools.cache
def _has_products(name: str) -> bool:
    return not name.startswith("upsample") and ("conv" in name or "matmul" in name or "linear" in name)  # as upsample_bilinear2d has none


def _is_depthwise(plan) -> bool:
    if isinstance(plan.op, BackwardOp):
        plan = plan.statics[0]
    return plan.op.name == "convolution" and plan.avals[0].shape[1] > plan.avals[1].shape[1] == 1


def _products(plan) -> float:
    """Multiply-adds of a convolution or a linear layer; its derivative makes as many for each of the two gradients."""
    if isinstance(plan.op, BackwardOp):
        forward, needs = plan.statics
        return _products(forward) * max(1, sum(needs[:2]))
    sizes = [a.numel for a in plan.avals if a is not None] + [o.numel for o in plan.outs]
    if plan.op.name in ("convolution", "conv_transpose"):
        x, w, *_ = plan.avals
        return (plan.outs[0] if plan.op.name == "convolution" else x).numel * w.numel / max(1, w.shape[0])
    return math.sqrt(math.prod(sorted(sizes)[-3:]))  # of (m, k), (k, n) and (m, n) this is m k n
