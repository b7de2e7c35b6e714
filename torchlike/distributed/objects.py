"""Collectives on Python objects, which travel pickled: only between processes that trust each other."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from .collectives import _only_at_root, root_of
from .process_group import ProcessGroup, member

_Group = ProcessGroup | None


def _pickled(obj: Any) -> np.ndarray:
    return np.frombuffer(pickle.dumps(obj), np.uint8)


def all_gather_object(object_list: list[Any], obj: Any, group: _Group = None) -> None:
    """`object_list` becomes the objects of all ranks."""
    group = member(group, "all_gather_object")
    if group is None:
        return
    mine, others = _pickled(obj), set(range(group.size())) - {group.rank()}
    arrived = group.exchange("all_gather_object")(dict.fromkeys(others, mine), others)
    for r in range(group.size()):
        object_list[r] = pickle.loads(arrived.get(r, mine))


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: _Group = None,
                  group_dst: int | None = None) -> None:
    """`object_gather_list` of rank `dst` becomes the objects of all ranks."""
    group = member(group, "gather_object")
    if group is None:
        return
    root = root_of("gather_object", group, 0 if dst is None and group_dst is None else dst, group_dst)
    _only_at_root(object_gather_list or [], group.rank() == root, "gather_list", "destination")
    mine, run = _pickled(obj), group.exchange("gather_object")
    if group.rank() != root:
        run({root: mine}, set())
        return
    arrived = run({}, set(range(group.size())) - {root})
    for r in range(group.size()):
        object_gather_list[r] = pickle.loads(arrived.get(r, mine))


def broadcast_object_list(object_list: list[Any], src: int | None = None, group: _Group = None, device: Any = None,
                          group_src: int | None = None) -> None:
    """`object_list` becomes that of rank `src`."""
    group = member(group, "broadcast_object_list")
    if group is None:
        return
    root = root_of("broadcast_object_list", group, 0 if src is None and group_src is None else src, group_src)
    run = group.exchange("broadcast_object_list")
    if group.rank() == root:
        run(dict.fromkeys(set(range(group.size())) - {root}, _pickled(list(object_list))), set())
    else:
        arrived = pickle.loads(run({}, {root})[root])
        object_list[:len(arrived)] = arrived


def scatter_object_list(scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None,
                        group: _Group = None, group_src: int | None = None) -> None:
    """The first entry of `scatter_object_output_list` becomes this rank's of the objects of rank `src`."""
    group = member(group, "scatter_object_list")
    if group is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = root_of("scatter_object_list", group, 0 if src is None and group_src is None else src, group_src)
    run = group.exchange("scatter_object_list")
    if group.rank() != root:
        scatter_object_output_list[0] = pickle.loads(run({}, {root})[root])
        return
    if scatter_object_input_list is None:
        raise ValueError("source rank must provide non-None scatter_object_input_list")
    run({r: _pickled(o) for r, o in enumerate(scatter_object_input_list) if r != root}, set())
    scatter_object_output_list[0] = pickle.loads(_pickled(scatter_object_input_list[root]))


def send_object_list(object_list: list[Any], dst: int | None = None, group: _Group = None, device: Any = None, group_dst: int | None = None,
                     use_batch: bool = False) -> None:
    """Send objects to rank `dst`."""
    group = member(group, "send_object_list")
    if group is None:
        return
    root = root_of("send", group, dst, group_dst)
    if root == group.rank():
        raise ValueError("Invalid destination rank: destination rank should not be the same as the rank of the current process.")
    group.send(root, b"objects", _pickled(list(object_list)))


def recv_object_list(object_list: list[Any], src: int | None = None, group: _Group = None, device: Any = None, group_src: int | None = None,
                     use_batch: bool = False) -> int:
    """`object_list` becomes what rank `src`, or any, sent: the rank that sent."""
    group = member(group, "recv_object_list")
    if group is None:
        return -1
    anybody = src is None and group_src is None
    sources = set(range(group.size())) - {group.rank()} if anybody else {root_of("recv", group, src, group_src)}
    source, data = group.receive(sources, b"objects")
    arrived = pickle.loads(data)
    object_list[:len(arrived)] = arrived
    return group.ranks[source]
