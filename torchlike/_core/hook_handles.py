"""The handle that removes a hook again."""
from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any


class RemovableHandle:
    """Removes one hook from the dictionary it was put in; as a context manager, on leaving the block.

    Args:
        hooks_dict: dictionary of hooks, by handle id.
        extra_dict: a dictionary, or a list of them, from which the same id is removed too.
    """

    __module__ = "torchlike.utils.hooks"  # where PyTorch's is

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extras = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extras)

    def remove(self) -> None:
        """Remove the hook; harmless when it, or its owner, is gone already."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state) -> None:
        hooks, self.id, *extra = state
        # a dead owner leaves a dictionary of its own, so that remove() stays harmless
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        extras = extra[0] if extra else ()
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extras)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()
