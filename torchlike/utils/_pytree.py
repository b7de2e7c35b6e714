"""Trees of Python containers: flatten to leaves and a TreeSpec, map, rebuild.

Containers are tuple, list, dict, OrderedDict, defaultdict, deque, named tuples and registered classes, matched by exact
type; everything else, None included, is a leaf. Dictionaries keep their own order.
"""
from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import json
import warnings
from collections import defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import Any

from ._pytree_nodes import (  # noqa: F401  (names of this module, too)
    BUILTIN_TYPES,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    Context,
    DumpableContext,
    FlattenFn,
    FromDumpableContextFn,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    MappingKey,
    NodeDef,
    PyTree,
    SequenceKey,
    ToDumpableContextFn,
    UnflattenFn,
    _defaultdict_flatten,
    _defaultdict_flatten_with_keys,
    _defaultdict_unflatten,
    _deque_flatten,
    _deque_flatten_with_keys,
    _deque_unflatten,
    _deregister_pytree_node,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _get_node_type,
    _is_namedtuple_instance,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _namedtuple_flatten,
    _namedtuple_flatten_with_keys,
    _namedtuple_unflatten,
    _odict_flatten,
    _odict_unflatten,
    _ordereddict_flatten,
    _ordereddict_flatten_with_keys,
    _ordereddict_unflatten,
    _register_namedtuple,
    _register_pytree_node,
    _SerializeNodeDef,
    _tuple_flatten,
    _tuple_flatten_with_keys,
    _tuple_unflatten,
    imported_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    register_constant,
    register_dataclass,
    register_pytree_node,
)

__all__ = ["Context", "DumpableContext", "FlattenFn", "FromDumpableContextFn", "LeafSpec", "PyTree", "PyTreeSpec", "ToDumpableContextFn", "TreeSpec",
           "UnflattenFn", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance", "is_structseq", "is_structseq_class",
           "is_structseq_instance", "key_get", "keystr", "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only",
           "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_",
           "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_dumps", "treespec_loads",
           "treespec_pprint"]


def tree_is_leaf(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether `tree` is a leaf, by itself or because `is_leaf(tree)` is true."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


@dataclasses.dataclass(init=False, frozen=True, eq=True, repr=False, slots=True)
class TreeSpec:
    """The structure of a tree: container type, context (keys, length limit, class), and specs of the children."""

    type: Any
    context: Context
    children_specs: list[TreeSpec]
    num_nodes: int = dataclasses.field(compare=False)
    num_leaves: int = dataclasses.field(compare=False)
    num_children: int = dataclasses.field(compare=False)

    def __init__(self, type: Any, context: Context, children_specs: list[TreeSpec]) -> None:
        put = functools.partial(object.__setattr__, self)
        put("type", type)
        put("context", context)
        put("children_specs", children_specs)
        put("num_nodes", 1 + sum(c.num_nodes for c in children_specs))
        put("num_leaves", 1 if type is None else sum(c.num_leaves for c in children_specs))
        put("num_children", len(children_specs))

    def __hash__(self) -> int:
        return hash((self.type, tuple(map(hash, self.children_specs))))  # the context may be a list

    def __repr__(self) -> str:
        if self.is_leaf():
            return "*"
        children = ",\n".join(map(repr, self.children_specs)).replace("\n", "\n  ")
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"

    def is_leaf(self) -> bool:
        return self.type is None

    def children(self) -> list[TreeSpec]:
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this structure with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator) -> PyTree:
        if self.type is None:
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn([c._build(leaves) for c in self.children_specs], self.context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of `tree` that stand where this structure has leaves; ValueError when it is another structure."""
        parts: list[PyTree] = []
        self._cut(tree, parts)
        return parts

    def _cut(self, tree: PyTree, parts: list) -> None:
        if self.type is None:
            parts.append(tree)
            return
        kind = _get_node_type(tree)
        both_dicts = self.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
        if kind != self.type and not both_dicts:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if both_dicts:
            children = self._in_own_order(tree)
        elif self.type is not deque and context != self.context:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        for spec, child in zip(self.children_specs, children):
            spec._cut(child, parts)

    def _in_own_order(self, tree: dict) -> list:
        keys = self.context[1] if self.type is defaultdict else self.context
        missing, extra = set(keys) - set(tree), set(tree) - set(keys)
        if missing or extra:
            message = "Node keys mismatch"
            message += f"; missing key(s): {missing}" if missing else ""
            message += f"; extra key(s): {extra}" if extra else ""
            raise ValueError(message + ".")
        return [tree[k] for k in keys]


PyTreeSpec = TreeSpec
_LEAF_SPEC = TreeSpec(None, None, [])


class _LeafSpecType(type):
    def __instancecheck__(cls, obj) -> bool:
        warnings.warn("`isinstance(treespec, LeafSpec)` is deprecated, "
                      "use `isinstance(treespec, TreeSpec) and treespec.is_leaf()` instead.",
                      FutureWarning, stacklevel=2)
        return isinstance(obj, TreeSpec) and obj.is_leaf()

    def __call__(cls) -> TreeSpec:
        return _LEAF_SPEC


class LeafSpec(metaclass=_LeafSpecType):
    """The older name of the structure of a leaf."""


def treespec_leaf() -> TreeSpec:
    """The structure of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple of these."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The structure of a dictionary of these."""
    specs = dict(mapping, **kwargs)
    return TreeSpec(dict, list(specs), list(specs.values()))


def tree_flatten(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of `tree`, and its structure."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, is_leaf, leaves)


def _flatten(node: PyTree, is_leaf: Callable[[PyTree], bool] | None, leaves: list[Any]) -> TreeSpec:
    """The structure of a tree, whose leaves are added to `leaves`: no function within another, which would keep them until a collection."""
    kind = _get_node_type(node)
    if kind not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(node)):
        leaves.append(node)
        return _LEAF_SPEC
    children, context = SUPPORTED_NODES[kind].flatten_fn(node)
    return TreeSpec(kind, context, [_flatten(c, is_leaf, leaves) for c in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of structure `treespec` with these leaves; ValueError when their number is wrong."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> Iterator[Any]:
    """The leaves of `tree`, one after another."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
    else:
        for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
            yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list[Any]:
    """The leaves of `tree`."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> TreeSpec:
    """The structure of `tree`."""
    return tree_flatten(tree, is_leaf)[1]


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments."""
    return [leaf for tree in itertools.chain(args, kwargs.values()) for leaf in tree_iter(tree)]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree,
             is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """A tree like `tree` of `func(leaf, *parts of the others at the same place)`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(r) for r in rests)))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree,
              is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """Like `tree_map`, for the effect of `func` alone; returns `tree`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *(spec.flatten_up_to(r) for r in rests)), maxlen=0)
    return tree


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable], Callable]:
    """A decorator: the function applies to objects of the type(s), or for which the predicate is true; others pass."""
    if isinstance(type_or_types_or_pred, (type, tuple, UnionType)):
        def chosen(x):
            return isinstance(x, type_or_types_or_pred)
    elif callable(type_or_types_or_pred):
        chosen = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(func):
        @functools.wraps(func)
        def apply(x):
            return func(x) if chosen(x) else x
        return apply

    return decorate


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree,
                  is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """`tree_map` over the leaves of the type(s), or for which the predicate is true."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree,
                   is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """Like `tree_map_only`, for the effect of `func` alone; returns `tree`."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether `pred` holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree,
                  is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether `pred` holds for all leaves of the type(s)."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree,
                  is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Whether `pred` holds for some leaf of the type(s)."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_leaves_with_path(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list[tuple[KeyPath, Any]]:
    """The leaves of `tree`, each with the path to it."""
    def walk(path, node):
        if tree_is_leaf(node, is_leaf):
            yield path, node
            return
        kind = _get_node_type(node)
        with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
        if with_keys is None:
            raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. "
                             "Please pass a flatten_with_keys_fn argument to register_pytree_node.")
        for key, child in with_keys(node)[0]:
            yield from walk((*path, key), child)

    return list(walk((), tree))


def tree_flatten_with_path(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
                           ) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves of `tree` with their paths, and its structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree,
                       is_leaf: Callable[[PyTree], bool] | None = None) -> PyTree:
    """`tree_map` with `func(path, leaf, *parts of the others)`."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [p for p, _ in pairs], [x for _, x in pairs]
    return spec.unflatten(map(func, paths, leaves, *(spec.flatten_up_to(r) for r in rests)))


def keystr(kp: KeyPath) -> str:
    """A path as it would be written in Python."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What stands at the path `kp` of `obj`."""
    return functools.reduce(lambda node, key: key.get(node), kp, obj)


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: Callable[[PyTree], bool] | None = None
                              ) -> list[Any] | None:
    """The leaves of `tree`, each repeated for all leaves of `treespec` below its place; None when they do not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _get_node_type(tree) != treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    parts = [_broadcast_to_and_flatten(c, s, is_leaf) for c, s in zip(children, treespec.children_specs)]
    return None if any(p is None for p in parts) else list(itertools.chain.from_iterable(parts))


def _context_text(context: Context) -> str:
    def member(x: Any) -> dict:
        if isinstance(x, enum.Enum):
            return {"__enum__": True, "fqn": f"{type(x).__module__}:{type(x).__qualname__}", "name": x.name}
        raise TypeError(f"{type(x).__name__} is neither JSON nor a member of an enumeration")

    try:
        return json.dumps(context, default=member)
    except TypeError as error:
        raise TypeError("Unable to serialize context. Please make the context json dump-able, or register a custom serializer using "
                        "_register_pytree_node.") from error


def _context_of(text: str) -> Context:
    def member(found: dict) -> Any:
        if not found.get("__enum__"):
            return found
        kind = imported_class(*found["fqn"].split(":"))
        if not issubclass(kind, enum.Enum):
            raise TypeError(f"{found['fqn']} is no enumeration")
        return kind[found["name"]]

    return json.loads(text, object_hook=member)


def _children_text(spec: TreeSpec) -> dict:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    written = SUPPORTED_SERIALIZED_TYPES.get(spec.context if spec.type is namedtuple else spec.type)
    if written is None and spec.type is namedtuple:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {spec.context} because we didn't register a "
            "serializated_type_name. Please register using `_register_namedtuple`."
        )
    if written is None and spec.type not in SUPPORTED_NODES:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if written is None:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call with a "
            "`serialized_type_name` kwarg."
        )
    if written.to_dumpable_context is not None:
        context = written.to_dumpable_context(spec.context)
    else:
        context = _context_text(spec.context)
    return {
        "type": written.serialized_type_name,
        "context": context,
        "children_spec": [_children_text(c) for c in spec.children_specs],
    }


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The structure as JSON text, in PyTorch's protocol 1."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    if protocol not in (None, 1):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((1, _children_text(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` wrote."""
    protocol, data = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    by_name = {written.serialized_type_name: written for written in SUPPORTED_SERIALIZED_TYPES.values()}

    def build(node):
        if node["type"] is None:
            return _LEAF_SPEC
        if node["type"] not in by_name:
            raise NotImplementedError(f"Deserializing {node['type']} in pytree is not registered.")
        written = by_name[node["type"]]
        read = written.from_dumpable_context or _context_of
        context = read(node["context"])
        kind = namedtuple if is_namedtuple_class(written.typ) else written.typ
        return TreeSpec(kind, context, [build(c) for c in node["children_spec"]])

    return build(data)


def treespec_pprint(treespec: TreeSpec) -> str:
    """The tree of this structure with a * for each leaf."""
    class Star:
        def __repr__(self):
            return "*"
    return repr(treespec.unflatten([Star()] * treespec.num_leaves))
