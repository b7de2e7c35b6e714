"""The trie of programs: a node is the prefix of all programs that begin alike.

Most programs of changing code never return, and Python's garbage collector visits every object that is kept, again and again. So a node
does without a dictionary as long as it leads to one other only, and a program can be taken out again (`take_out`).
"""
from __future__ import annotations

import sys
from collections.abc import Iterable


class Node:
    """A prefix of a program: one more operation (or one more input) than its parent.

    key      what leads here: (op, statics, *references), or an input's aval
    child    the node that this one led to first; others: further ones by their keys, and what record_all finds
    """

    __slots__ = ("parent", "key", "plan", "outs", "n_results", "child", "others", "program_info")

    def __init__(self, parent: Node | None, key, plan, n_results: int):
        self.parent, self.key, self.plan, self.n_results = parent, key, plan, n_results
        self.outs = () if plan is None else plan.outs
        self.child: Node | None = None
        self.others: dict | None = None
        self.program_info = None  # program_info.ProgramInfo once a program ended here

    @property
    def refs(self) -> tuple:
        """What the operation reads: results from 0 on, inputs from -1 down, the kinds of numbers, None."""
        return () if self.plan is None else self.key[2:]

    def find(self, key) -> Node | None:
        """The node to which `key` leads."""
        child = self.child
        if child is not None and child.key == key:
            return child
        return None if self.others is None else self.others.get(key)

    def add(self, key, plan, n_results: int) -> Node:
        """A new node to which `key` leads."""
        node = Node(self, key, plan, n_results)
        if self.child is None:
            self.child = node
        else:
            self.note(key, node)
        trie.size += 1
        return node

    def note(self, key, found) -> None:
        """Keep something by a key of its own: a node, or where a sequence of operations leads."""
        if self.others is None:
            self.others = {}
        self.others[key] = found

    def _drop(self, node: Node) -> None:
        if self.child is node:
            self.child = None
        else:
            del self.others[node.key]
        node.parent = None
        trie.size -= 1

    def text(self) -> tuple[tuple, tuple]:
        """Of the program that ends here: the inputs' avals; plan and references of each operation, in one flat tuple, one object for the garbage collector."""
        avals, operations, node = [], [], self
        while node.parent is not None:
            if node.plan is None:
                avals.append(node.key)
            else:
                operations += (node.key[2:], node.plan)
            node = node.parent
        return tuple(avals[::-1]), tuple(operations[::-1])


class Trie:
    """The root of all programs, and how many nodes hang below it (about: what goes on below a forgotten node counts until `keep_only` counts anew).

    set_aside   the roots of programs that were recorded under other settings, by these
    """

    def __init__(self):
        self.root = Node(None, None, None, 0)
        self.set_aside: dict = {}
        self.size = 0

    def change(self, before, after) -> None:
        """Programs from now on are those of the setting `after`; those of `before` are found again when it returns."""
        self.set_aside[before] = self.root
        self.root = self.set_aside.pop(after, None) or Node(None, None, None, 0)


trie = Trie()


def take_out(box: list[Node], most: int) -> None:
    """Take a program that was seen once out of the trie, if its info agrees: from its end, which is alone in `box`, up to `most` nodes, as far
    as nobody else is there."""
    node, holders = box.pop(), sys.getrefcount
    info = node.program_info
    if info is None or not info.is_passing() or node.child is not None or node.others or holders(node) != _ALONE + 1:  # info holds it, too
        return
    info.let_go()
    for _ in range(most):
        if (node.child is not None or node.others or holders(node) != _ALONE  # a program that is recorded or traced, or a captured step stands there
                or (node.program_info is not None and node.program_info is not info)):
            return
        parent = node.parent
        parent._drop(node)
        node, parent = parent, None


def keep_only(ends: Iterable[Node]) -> None:
    """Forget all programs but those that end at these nodes. Who stands at another one goes on there, where nobody else comes any more."""
    roots = {trie.root, *trie.set_aside.values()}
    kept = set(roots)
    for node in ends:
        while node is not None and node not in kept:
            kept.add(node)
            node = node.parent
    trie.size = len(kept) - len(roots)
    for node in kept:
        if node.child not in kept:
            node.child = None
        if node.others is not None:
            node.others = {key: found for key, found in node.others.items() if (found if found.__class__ is Node else found[0]) in kept} or None
            trie.size += sum(found.__class__ is not Node for found in (node.others or {}).values())


def _count_alone() -> int:
    """What take_out counts of a node that its parent and one variable hold."""
    parent = Node(None, None, None, 0)
    node, holders = Node(parent, None, None, 0), sys.getrefcount
    parent.child = node
    return holders(node)


_ALONE = _count_alone()
