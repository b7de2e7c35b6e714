"""torch.utils.weak: dictionaries with tensors as keys, by identity, that let go of an entry when its tensor is gone."""
from __future__ import annotations

import collections.abc
import copy
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from .._tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdRef", "WeakIdKeyDictionary", "WeakTensorKeyDictionary"]
WeakRef = weakref.ref


class WeakIdRef(weakref.ref):
    """A weak reference that hashes and compares by the identity of what it refers to; a dead one equals only itself."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable | None = None) -> None:
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, its = self(), other() if isinstance(other, weakref.ref) else None
        return mine is its if mine is not None and its is not None else self is other


class WeakIdKeyDictionary(collections.abc.MutableMapping):
    """A dictionary whose keys are objects by identity. It does not keep them alive."""

    def __init__(self, dict: Any = None, ref_type: type = WeakIdRef) -> None:
        self.ref_type, self.data = ref_type, {}
        if dict is not None:
            self.update(dict)

    def _ref(self, key: Any, kept: bool = False) -> Any:
        if not kept:
            return self.ref_type(key)
        owner = weakref.ref(self)

        def forget(ref: Any) -> None:
            this = owner()
            if this is not None:
                this.data.pop(ref, None)
        return self.ref_type(key, forget)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self._ref(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self._ref(key, True)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self._ref(key)]

    def __contains__(self, key: Any) -> bool:
        try:
            return self._ref(key) in self.data
        except TypeError:  # of which there are no weak references
            return False

    def __iter__(self) -> Iterator:
        for ref in list(self.data):
            key = ref()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list:
        """The weak references themselves."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """A new dictionary of the same entries."""
        made = type(self)(ref_type=self.ref_type)
        made.update(self)
        return made

    __copy__ = copy

    def __deepcopy__(self, memo: dict) -> WeakIdKeyDictionary:
        """Copies of the values under the same keys: a copied key would be gone at once."""
        made = type(self)(ref_type=self.ref_type)
        for key, value in list(self.items()):
            made[key] = copy.deepcopy(value, memo)
        return made

    def update(self, other: Any = (), /, **more: Any) -> None:
        """Take over the entries of a mapping or of pairs, all or, where reading them fails, none."""
        for key, value in (other if hasattr(other, "items") else dict(other)).items():
            self[key] = value
        for name, value in more.items():
            self[name] = value

    def __or__(self, other: Any) -> WeakIdKeyDictionary:
        if not isinstance(other, collections.abc.Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> WeakIdKeyDictionary:
        if not isinstance(other, collections.abc.Mapping):
            return NotImplemented
        made = type(self)(ref_type=self.ref_type)
        made.update(other)
        made.update(self)
        return made

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor; called, it is the tensor or None."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
