"""Sending a tensor from one rank to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor import Tensor
from ._seen import seen_as
from .collectives import _in, _tensor, finished, read, root_of, written
from .process_group import ProcessGroup, member
from .store import DistNetworkError
from .work import Receiving, Work

_Group = ProcessGroup | None


@seen_as("send", lambda tensor, dst, group, tag, group_dst: _in(group, "isend", lambda g: ([tensor], g, root_of("send", g, dst, group_dst), tag)))
def isend(tensor: Tensor, dst: int | None = None, group: _Group = None, tag: int = 0, group_dst: int | None = None) -> Work | None:
    """Send to rank `dst`; the receiver asks with the same `tag`."""
    _tensor(tensor, "tensor")
    group = member(group, "isend")
    if group is None:
        return None
    root = root_of("send", group, dst, group_dst)
    if root == group.rank():
        raise ValueError("Invalid destination rank: destination rank should not be the same as the rank of the current process.")
    group.send(root, b"p%d" % tag, read(tensor))
    return finished([tensor])


def send(tensor: Tensor, dst: int | None = None, group: _Group = None, tag: int = 0, group_dst: int | None = None) -> None:
    """`isend`, waited for."""
    isend(tensor, dst, group, tag, group_dst)


@seen_as(lambda src, group_src, **others: "recv_any_source_" if src is None and group_src is None else "recv_",
         lambda tensor, src, group, tag, group_src: _in(group, "irecv", lambda g: (
             [tensor], g, *([] if src is None and group_src is None else [root_of("recv", g, src, group_src)]), tag)))
def irecv(tensor: Tensor, src: int | None = None, group: _Group = None, tag: int = 0, group_src: int | None = None) -> Work | None:
    """Receive from rank `src`, or from whichever rank sends first."""
    _tensor(tensor, "tensor")
    group = member(group, "irecv")
    if group is None:
        return None
    if src is None and group_src is None:
        sources = set(range(group.size())) - {group.rank()}
    else:
        sources = {root_of("recv", group, src, group_src)}
        if group.rank() in sources:
            raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")

    def receive(seconds: float | None) -> tuple[int, Any] | None:
        try:
            source, data = group.receive(sources, b"p%d" % tag, seconds)
        except DistNetworkError:
            if seconds is None:
                raise
            return None
        if len(data) != tensor.numel() * tensor.dtype.itemsize:
            raise RuntimeError(f"recv: {len(data)} bytes arrived for a tensor of {tensor.numel() * tensor.dtype.itemsize}")
        return group.ranks[source], data
    return group.posted(sources, b"p%d" % tag, Receiving(receive, lambda data: [written(tensor, np.frombuffer(data, tensor.dtype.np))]))


def recv(tensor: Tensor, src: int | None = None, group: _Group = None, tag: int = 0, group_src: int | None = None) -> int:
    """`irecv`, waited for: the rank that sent."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """One `isend` or `irecv` of a batch."""

    def __init__(self, op: Callable, tensor: Tensor, peer: int | None = None, group: _Group = None, tag: int = 0,
                 group_peer: int | None = None) -> None:
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``.")
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = op, _tensor(tensor, "tensor"), peer, group, tag, group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Several sends and receives, in any order: the works to wait for."""
    if not isinstance(p2p_op_list, list) or not p2p_op_list or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    works = [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]
    return [w for w in works if w is not None]


