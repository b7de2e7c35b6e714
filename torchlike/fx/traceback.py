"""Notes that nodes carry along: annotations of code, stack traces, metadata of the node that is being run."""
from __future__ import annotations

import copy
import functools
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .node import Node

__all__ = ["annotate", "annotate_fn", "preserve_node_meta", "has_preserved_node_meta", "set_stack_trace", "format_stack", "set_current_meta",
           "get_current_meta"]

current_meta: dict[str, Any] = {}
should_preserve_node_meta = False


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Inside the block, nodes that an Interpreter makes get the metadata of the node that it runs."""
    global should_preserve_node_meta, current_meta
    before, meta = should_preserve_node_meta, current_meta.copy()
    try:
        should_preserve_node_meta = enable
        yield
    finally:
        should_preserve_node_meta, current_meta = before, meta


def has_preserved_node_meta() -> bool:
    """Whether preserve_node_meta is on."""
    return should_preserve_node_meta


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Inside the block, nodes get these notes under `meta["custom"]`; blocks within add to them."""
    missing = object()
    before = current_meta.get("custom", missing)
    current_meta["custom"] = {**(before if before is not missing else {}), **annotation_dict}
    try:
        yield
    finally:
        if before is missing:
            current_meta.pop("custom", None)
        else:
            current_meta["custom"] = before


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable], Callable]:
    """`annotate` for every call of a function."""
    def decorate(f: Callable) -> Callable:
        @functools.wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return f(*args, **kwargs)
        return call
    return decorate


def set_stack_trace(stack: list[str]) -> None:
    """The stack trace for the nodes to come."""
    if should_preserve_node_meta and stack:
        current_meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """The stack trace that was set, else the one of this place."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Inside the block the node's metadata are those of nodes to come."""
    global current_meta
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    before = current_meta
    current_meta = copy.copy(node.meta)
    try:
        yield
    finally:
        current_meta = before


def get_current_meta() -> dict[str, Any]:
    """The metadata for nodes to come."""
    return current_meta
