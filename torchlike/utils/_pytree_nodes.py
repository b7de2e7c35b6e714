"""The kinds of containers that trees are made of: keys into them, their registry, named tuples, data classes."""
from __future__ import annotations

import dataclasses
import functools
import sys
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """Step into a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """Step into a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """Step to an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple[KeyEntry, ...]


class NodeDef(NamedTuple):
    """How one kind of container comes apart and together."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list, Context]]
    unflatten_fn: Callable[[Iterable, Context], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list, Context]] | None


class _SerializeNodeDef(NamedTuple):
    """How a kind of container is written in a serialized TreeSpec."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: Callable | None
    from_dumpable_context: Callable | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})  # interchangeable when trees are compared
BUILTIN_TYPES = STANDARD_DICT_TYPES | {tuple, list, namedtuple, deque}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list, Context]],
    unflatten_fn: Callable[[Iterable, Context], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable | None = None,
    from_dumpable_context: Callable | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list, Context]] | None = None,
) -> None:
    """Make `cls` a container: `flatten_fn(obj) -> (children, context)`, `unflatten_fn(children, context) -> obj`.

    Raises ValueError when it is one already.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if serialized_type_name is not None:
        SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(
            cls, serialized_type_name, to_dumpable_context, from_dumpable_context
        )


def _register_pytree_node(cls: type, flatten_fn: Callable, unflatten_fn: Callable, **options: Any) -> None:
    """The older name; registering again overwrites."""
    warnings.warn("`torch.utils._pytree._register_pytree_node` is deprecated. "
                  "Please use `torch.utils._pytree.register_pytree_node` instead.", FutureWarning, stacklevel=2)
    if SUPPORTED_NODES.pop(cls, None):
        warnings.warn(f"{cls} is already registered as pytree node. Overwriting the previous registration.",
                      stacklevel=2)
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Give a named tuple class a name in serialized structures."""
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(
        cls, serialized_type_name, lambda _: serialized_type_name, lambda _: cls
    )


def _deregister_pytree_node(cls: type) -> None:
    del SUPPORTED_NODES[cls]
    SUPPORTED_SERIALIZED_TYPES.pop(cls, None)


def register_dataclass(cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
                       serialized_type_name: str | None = None) -> None:
    """Make a data class (or, with `field_names`, a class with such a constructor) a container of its fields."""
    dropped = drop_field_names or []
    if dataclasses.is_dataclass(cls):
        names = [f.name for f in dataclasses.fields(cls) if f.init]
        if field_names is None:
            field_names = names
        missing = set(names) - set(field_names) - set(dropped)
        unknown = (set(field_names) | set(dropped)) - set(names)
        if missing:
            raise ValueError(
                "field_names does not include all dataclass fields.\n"
                f"Missing fields in `field_names`: {missing}. If you want to include these fields in the pytree, "
                "please add them to `field_names`, otherwise please add them to `drop_field_names`.\n"
            )
        if unknown:
            raise ValueError(
                "field_names includes names that are not fields of the dataclass.\n"
                f"Unexpected fields in `field_names`: {unknown}. Please remove these fields, or add them to the class."
            )
    elif field_names is None:
        raise ValueError(
            "field_names must be specified with a list of all fields used to initialize "
            f"{cls}, as it is not a dataclass."
        )
    fields = list(field_names)

    def flatten_with_keys(obj):
        # a field that is None is left out, and left to the constructor when the object is rebuilt
        present = [n for n in fields if getattr(obj, n) is not None]
        absent = [n for n in fields if getattr(obj, n) is None]
        return [(GetAttrKey(n), getattr(obj, n)) for n in present], [present, absent]

    def flatten(obj):
        pairs, context = flatten_with_keys(obj)
        return [value for _, value in pairs], context

    def unflatten(values, context):
        present, absent = context
        return cls(**dict(zip(present, values)), **dict.fromkeys(absent))

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
                         flatten_with_keys_fn=flatten_with_keys)


def register_constant(cls: type) -> None:
    """Make `cls` a container of nothing: its objects are part of the structure, compared with `==`."""
    if cls.__eq__ is object.__eq__ or cls.__hash__ is object.__hash__:
        raise TypeError(f"register_constant(cls) expects {cls} to have non-default `__eq__` and `__hash__`: "
                        "they decide whether two structures are equal.")
    register_pytree_node(cls, lambda obj: ([], obj), lambda _, obj: obj, flatten_with_keys_fn=lambda obj: ([], obj))


def is_namedtuple_class(cls: type) -> bool:
    """Whether `cls` was made by namedtuple, or inherits from one."""
    fields = getattr(cls, "_fields", None)
    return (isinstance(cls, type) and issubclass(cls, tuple) and isinstance(fields, tuple)
            and all(isinstance(f, str) for f in fields)
            and callable(getattr(cls, "_make", None)) and callable(getattr(cls, "_asdict", None)))


def is_namedtuple_instance(obj: object) -> bool:
    """Whether `obj` is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether `obj` is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_class(cls: type) -> bool:
    """Whether `cls` is a C struct sequence, as time.struct_time is."""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (isinstance(cls, type) and cls.__bases__ == (tuple,)
            and all(isinstance(getattr(cls, n, None), int) for n in counts))


def is_structseq_instance(obj: object) -> bool:
    """Whether `obj` is a C struct sequence."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether `obj` is a C struct sequence, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    return kind if kind in SUPPORTED_NODES or not is_namedtuple_class(kind) else namedtuple


def _tuple_flatten(d):
    return list(d), None


def _tuple_flatten_with_keys(d):
    return [(SequenceKey(i), v) for i, v in enumerate(d)], None


def _tuple_unflatten(values, context):
    return tuple(values)


def _list_flatten(d):
    return d, None


_list_flatten_with_keys = _tuple_flatten_with_keys


def _list_unflatten(values, context):
    return list(values)


def _dict_flatten(d):
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d):
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


def _dict_unflatten(values, context):
    return dict(zip(context, values))


_odict_flatten = _ordereddict_flatten = _dict_flatten
_ordereddict_flatten_with_keys = _dict_flatten_with_keys


def _ordereddict_unflatten(values, context):
    return OrderedDict(zip(context, values))


_odict_unflatten = _ordereddict_unflatten


def _defaultdict_flatten(d):
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_flatten_with_keys(d):
    return _dict_flatten_with_keys(d)[0], [d.default_factory, list(d)]


def _defaultdict_unflatten(values, context):
    return defaultdict(context[0], zip(context[1], values))


def imported_class(module: str, name: str) -> type:
    """The class of this name. Text may only name classes, of modules that the program has imported: reading it runs nobody's code."""
    if module not in sys.modules:
        raise ModuleNotFoundError(f"a serialized TreeSpec names {module}.{name}, but {module} is not imported", name=module)
    found = functools.reduce(getattr, name.split("."), sys.modules[module])
    if not isinstance(found, type):
        raise TypeError(f"a serialized TreeSpec names {module}.{name}, which is no class")
    return found


def _defaultdict_dump(context: Context) -> DumpableContext:
    factory, keys = context
    return {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__, "dict_context": keys}


def _defaultdict_load(written: DumpableContext) -> Context:
    return [imported_class(written["default_factory_module"], written["default_factory_name"]), written["dict_context"]]


def _deque_flatten(d):
    return list(d), d.maxlen


def _deque_flatten_with_keys(d):
    return _tuple_flatten_with_keys(d)[0], d.maxlen


def _deque_unflatten(values, context):
    return deque(values, maxlen=context)


def _namedtuple_flatten(d):
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d):
    return [(GetAttrKey(f), v) for f, v in zip(d._fields, d)], type(d)


def _namedtuple_unflatten(values, context):
    return context(*values)


for _node in (
    NodeDef(tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    NodeDef(list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    NodeDef(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys),
    NodeDef(OrderedDict, _ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys),
    NodeDef(defaultdict, _defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys),
    NodeDef(deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys),
):
    SUPPORTED_NODES[_node.type] = _node
    if _node.type is not namedtuple:
        _text = (_defaultdict_dump, _defaultdict_load) if _node.type is defaultdict else (None, None)
        SUPPORTED_SERIALIZED_TYPES[_node.type] = _SerializeNodeDef(_node.type, f"{_node.type.__module__}.{_node.type.__name__}", *_text)
del _node, _text
