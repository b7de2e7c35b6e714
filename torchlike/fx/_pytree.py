"""Flattening values along a structure that is known: what traced code does with arguments that are containers."""
from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from ..utils._pytree import TreeSpec, tree_flatten

FlattenFuncSpec = Callable[[Any, TreeSpec], list[Any]]
FlattenFuncExactMatchSpec = Callable[[Any, TreeSpec], bool]
SUPPORTED_NODES: dict[type, FlattenFuncSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[type, FlattenFuncExactMatchSpec | None] = {}


def register_pytree_flatten_spec(cls: type[Any], flatten_fn_spec: FlattenFuncSpec,
                                 flatten_fn_exact_match_spec: FlattenFuncExactMatchSpec | None = None) -> None:
    """How the children of a container are found along a spec, and whether a container fits a spec exactly."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """The leaves of `pytree`, which has the structure `spec`."""
    if spec.is_leaf():
        return [pytree]
    if spec.type not in SUPPORTED_NODES:  # one that torch.utils._pytree was told of
        leaves, found = tree_flatten(pytree)
        if found != spec:
            raise RuntimeError(f"Real spec {found} of object {pytree} is different from expected spec {spec}. Please file an issue at "
                               "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml")
        return leaves
    children = SUPPORTED_NODES[spec.type](pytree, spec)
    return [leaf for child, s in zip(children, spec.children()) for leaf in tree_flatten_spec(child, s)]


def _sequence(x: Any, spec: TreeSpec) -> list[Any]:
    return [x[i] for i in range(spec.num_children)]


def _same_length(x: Any, spec: TreeSpec) -> bool:
    return len(x) == spec.num_children


register_pytree_flatten_spec(dict, lambda d, spec: [d[k] for k in spec.context], _same_length)
register_pytree_flatten_spec(list, _sequence, _same_length)
register_pytree_flatten_spec(tuple, _sequence, _same_length)
register_pytree_flatten_spec(namedtuple, _sequence, _same_length)
