"""Activation checkpointing: keep a block's inputs only, and compute the block again in the backward (Chen et al. 2016)."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from torchlike import _autocast
from torchlike._core.grad_mode import mode
from torchlike._core.history import warn
from torchlike._core.traces import is_clean
from torchlike._device_module import get_device_module
from torchlike._tensor import Tensor, apply
from torchlike.autograd import _is_checkpoint_valid, engine
from torchlike.autograd.function import Function
from torchlike.autograd.grad_mode import enable_grad
from torchlike.ops.random import get_rng_state
from torchlike.utils._pytree import tree_leaves
from torchlike.utils._recomputing import BARRIER, CheckpointError, as_then, recomputed, set_checkpoint_debug_enabled, set_checkpoint_early_stop
from torchlike.utils._selective_checkpoint import CheckpointPolicy, SelectiveCheckpointContext, create_selective_checkpoint_contexts

__all__ = ["CheckpointError", "CheckpointPolicy", "DefaultDeviceType", "SelectiveCheckpointContext", "check_backward_validity", "checkpoint",
           "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable", "get_device_states", "noop_context_fn",
           "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states"]


class CheckpointFunction(Function):
    @staticmethod
    def forward(ctx, run, preserve, *args):
        check_backward_validity(args)
        ctx.run, ctx.autocast = run, _autocast.state.enabled
        ctx.state = get_rng_state() if preserve else None
        ctx.where = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.rest = [None if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*(args[i] for i in ctx.where))
        return run(*args)

    @staticmethod
    def backward(ctx, *grads):
        if not _is_checkpoint_valid():  # the gradients of some tensors only are asked for: those of parameters inside would go unseen
            raise RuntimeError("When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to .backward(). "
                               "To resolve this error, you can either set use_reentrant=False, or call .backward() without passing the `inputs` argument.")
        saved = ctx.saved_tensors
        if mode.enabled:
            fresh = list(saved)
        else:
            fresh = [t.requires_grad_(s.requires_grad) for t, s in zip(apply(BARRIER, [s.detach() for s in saved]), saved)] if saved else []
        args = list(ctx.rest)
        for i, t in zip(ctx.where, fresh):
            args[i] = t
        with as_then(ctx.autocast, ctx.state), enable_grad():
            outputs = ctx.run(*args)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, Tensor) and o.requires_grad and g is not None]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        inputs = [t for t in fresh if t.requires_grad]
        create = mode.enabled
        roots = engine._roots([o for o, _ in pairs], [g for _, g in pairs], create)
        found = _inner(roots, inputs, create)
        out = [None] * len(args)
        by_id = dict(zip(map(id, inputs), found))
        for i, t in zip(ctx.where, fresh):
            out[i] = by_id.get(id(t))
        return (None, None, *out)


def _inner(roots, captured: list, create: bool) -> list:
    """The block's backward: gradients of its inputs; parameters used inside get theirs as leaves."""
    handles, found = [], [None] * len(captured)
    for k, t in enumerate(captured):
        def keep(g, k=k):
            found[k] = g
        handles.append(t.register_hook(keep))
    before = [t._grad for t in captured]
    engine.run(roots, False, create, (), accumulate=False)
    for t, g, h in zip(captured, before, handles):
        t._grad = g
        h.remove()
    return found


def noop_context_fn() -> tuple:
    """No context around the forward, and none around the recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(function: Callable, *args, use_reentrant: bool | None = None, context_fn: Callable = noop_context_fn, determinism_check: str = "default",
               debug: bool = False, early_stop: bool = True, preserve_rng_state: bool = True, **kwargs):
    """function(*args) whose intermediate values are not kept: the backward runs it again, with the same random numbers and under the same
    autocast. Without `use_reentrant`, `determinism_check` ("none" or "default": shapes, dtypes and devices) compares what both runs save, and
    with `early_stop` the second ends where the last of it is there; with `debug` an error lists the operations of both."""
    if use_reentrant is None:
        warn("torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling checkpoint without "
             "use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to preserve the current default behavior, you "
             "can pass use_reentrant=True. Refer to docs for more details on the differences between the two variants.")
        use_reentrant = True
    if use_reentrant and (context_fn is not noop_context_fn or debug):
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    if use_reentrant and kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    run = function if not kwargs else lambda *a: function(*a, **kwargs)
    if not use_reentrant:
        return recomputed(run, args, context_fn, determinism_check, early_stop, preserve_rng_state, debug) if mode.enabled else run(*args)
    if not mode.enabled or not is_clean() and not any(isinstance(a, Tensor) and a.requires_grad for a in args):  # jax.grad sees through it
        return run(*args)
    return CheckpointFunction.apply(run, preserve_rng_state, *args)


def checkpoint_sequential(functions, segments: int, input, use_reentrant: bool | None = None, **kwargs):
    """A Sequential in `segments` parts, all but the last checkpointed."""
    if use_reentrant is None:
        warn("torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In version 2.9 we will raise an exception "
             "if use_reentrant is not passed. use_reentrant=False is recommended; the default is True.")
        use_reentrant = True
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(functions) // segments

    def part(start, end):
        def run(x):
            for f in functions[start:end]:
                x = f(x)
            return x
        return run
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(part(start, end), input, use_reentrant=use_reentrant, **kwargs)
    return part(end, len(functions))(input)


class DefaultDeviceType:
    """The kind of device whose random state a checkpoint keeps where its arguments do not show one."""

    _default_device_type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The kind, "cuda" unless it was set."""
        return DefaultDeviceType._default_device_type


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The accelerators that tensors in `args` lie on, by number, and the random state of each."""
    tensors = [x for x in tree_leaves(args) if isinstance(x, Tensor) and x.device.type not in ("cpu", "meta")]
    return [t.get_device() for t in tensors], [get_device_module(t.device).get_rng_state(t.device) for t in tensors]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Sets the random state of each of the accelerators, as `get_device_states` gave them."""
    kind = DefaultDeviceType.get_device_type() if device_type is None else device_type
    for i, state in zip(devices, states):
        get_device_module(kind).set_rng_state(state, f"{kind}:{i}")


def detach_variable(inputs: tuple) -> tuple:
    """The tensors among inputs as leaves that require what they required; other inputs as they are."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs) -> None:
    """Warn where no input requires a gradient."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warn("None of the inputs have requires_grad=True. Gradients will be None")
