"""The list and dict that hold a node's arguments: they refuse changes, which the graph would not see."""
from __future__ import annotations

from typing import Any, NoReturn

from ..utils._pytree import _dict_flatten, _dict_flatten_with_keys, _list_flatten, _list_flatten_with_keys, register_pytree_node

_HELP = """If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"'{type(self).__name__}' object does not support mutation. {_HELP}")


class immutable_list(list):
    """A list that cannot be changed."""

    __delitem__ = __setitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple:
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dict that cannot be changed."""

    __delitem__ = __setitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple:
        return type(self), (tuple(self.items()),)


register_pytree_node(immutable_list, _list_flatten, lambda values, context: immutable_list(values), flatten_with_keys_fn=_list_flatten_with_keys,
                     serialized_type_name="torch.fx.immutable_collections.immutable_list")
register_pytree_node(immutable_dict, _dict_flatten, lambda values, keys: immutable_dict(zip(keys, values)),
                     flatten_with_keys_fn=_dict_flatten_with_keys, serialized_type_name="torch.fx.immutable_collections.immutable_dict")
