"""Selective checkpointing: a policy says of each operation whether its result is kept for the backward or computed again."""
from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from torchlike._ops import OpOverload, OpOverloadPacket
from torchlike._tensor import Tensor
from torchlike.utils._python_dispatch import TorchDispatchMode
from torchlike.utils._pytree import tree_map

_MISMATCH = ("This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that changed between forward and "
             "backward.")
_RECOMPUTE, _CONSUMED = object(), object()
_Storage = dict[OpOverload, list]


class CheckpointPolicy(enum.Enum):
    """What happens to an operation's result. MUST and PREFER mean the same here; on the host there is nowhere to offload to, so as in PyTorch's eager
    mode *_CPU_OFFLOAD computes again."""
    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVES = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, True)


class SelectiveCheckpointContext:
    """What a policy is told beside the operation: its result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


class _Keeping(TorchDispatchMode):
    """The forward: keeps what the policy wants kept."""

    def __init__(self, policy: Callable, kept: _Storage) -> None:
        super().__init__()
        self.policy_fn, self.storage = policy, kept

    def __torch_dispatch__(self, func: OpOverload, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        wanted = self.policy_fn(SelectiveCheckpointContext(is_recompute=False, op_output=out), func, *args, **(kwargs or {}))
        self.storage[func].append(tree_map(lambda x: x.detach() if isinstance(x, Tensor) else x, out) if wanted in _SAVES else _RECOMPUTE)
        return out


class _Kept(TorchDispatchMode):
    """The recomputation: takes what was kept."""

    def __init__(self, kept: _Storage) -> None:
        super().__init__()
        self.storage = kept

    def __enter__(self) -> _Kept:
        self.counts: dict[OpOverload, int] = defaultdict(int)
        return super().__enter__()

    def __torch_dispatch__(self, func: OpOverload, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        i, found = self.counts[func], self.storage.get(func)
        self.counts[func] += 1
        if found is None:
            raise RuntimeError(f"{func} encountered during backward but not found in storage. {_MISMATCH}")
        if i >= len(found):
            raise RuntimeError(f"{func} invocation index {i} encountered during backward but not found in storage. {_MISMATCH}")
        entry = found[i]
        if entry is _CONSUMED:
            raise RuntimeError("Trying to backward an extra time. You are only allowed to backward once on any region computed under selective activation "
                               "checkpoint.")
        if entry is _RECOMPUTE:
            return func(*args, **(kwargs or {}))
        found[i] = _CONSUMED
        return entry


def create_selective_checkpoint_contexts(policy_fn_or_list: Callable | Sequence[OpOverload], allow_cache_entry_mutation: bool = False) -> tuple:
    """The contexts that checkpoint's context_fn returns, for a policy or a list of the operators whose results are kept.

    What is kept cannot be written over: values are immutable, so `allow_cache_entry_mutation` has nothing to allow.
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                hint = ("Please update the OpOverloadPacket to a specific OpOverload.For example, if you have `torch.ops.aten.mm`, change it to "
                        "`torch.ops.aten.mm.default`.") if isinstance(op, OpOverloadPacket) else ""
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {hint}")

        def policy(context: SelectiveCheckpointContext, op: OpOverload, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in policy_fn_or_list else CheckpointPolicy.PREFER_RECOMPUTE
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: _Storage = defaultdict(list)
    return _Keeping(policy, kept), _Kept(kept)
