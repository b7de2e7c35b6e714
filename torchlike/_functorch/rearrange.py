"""rearrange(x, "b (h d) -> b h d", h=2): a reshape, a permutation and a reshape that a pattern of names describes."""
from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

from .._public import FUNCTIONS
from .._tensor import Tensor


class DimensionBindError(Exception):
    """Sizes that do not fit a pattern."""


REST = "..."
BARE = (REST,)  # outside of parentheses


def rearrange(tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int) -> Tensor:
    """`tensor` (several of one shape are stacked first) with its dimensions as on the pattern's right side. Names in parentheses are
    one dimension; all their sizes but one have to be given. `1` or `()` is a dimension of size 1, `...` all that are not named."""
    if not isinstance(tensor, Tensor):
        tensor = FUNCTIONS["stack"](tensor)
    left, right = _parsed(pattern, axes_lengths)
    sizes = _sizes(left, tensor.shape, axes_lengths)
    if not tensor.ndim:
        return tensor
    rest = [f"{REST}{i}" for i in range(tensor.ndim - (len(left) - 1))] if BARE in left else []
    for i, name in enumerate(rest):
        sizes[name] = tensor.shape[left.index(BARE) + i]
    order = [name for group in left for name in _spread(group, rest)]
    apart = tensor.reshape([sizes[name] for name in order])
    groups = [[n] for n in rest] if BARE in right else []
    place = right.index(BARE) if groups or BARE in right else None
    wanted = right if place is None else [*right[:place], *groups, *right[place + 1:]]
    moved = apart.permute([order.index(name) for group in wanted for name in _spread(group, rest)])
    return moved.reshape([_product(sizes[name] for name in _spread(group, rest)) for group in wanted])


def _spread(group: list[str], rest: list[str]) -> list[str]:
    return [name for part in group for name in (rest if part == REST else [part])]


def _product(numbers) -> int:
    result = 1
    for n in numbers:
        result *= n
    return result


# -- patterns ------------------------------------------------------------------------------------------------------------


def _parsed(pattern: str, lengths: dict) -> tuple[list[list[str]], list[list[str]]]:
    """The groups of names on both sides."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = map(_side, sides)
    names = [{name for group in side for name in group} for side in (left, right)]
    if REST in names[1] and REST not in names[0]:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if any(REST in group and group != BARE for group in left):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    for length in lengths.values():
        if not isinstance(length, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)}")
    one_sided = names[0] ^ names[1]
    if one_sided:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {one_sided}")
    unknown = set(lengths) - names[0]
    if unknown:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")
    return left, right


def _side(text: str) -> list[list[str]]:
    """One side of a pattern: a list of names per dimension, none for one of size 1."""
    if "." in text.replace(REST, "", 1):
        raise ValueError("Expression may contain dots only inside ellipsis (...)" + ("; only one ellipsis for tensor " if REST in text else ""))
    groups: list[list[str]] = []
    seen: set[str] = set()
    inside = False
    for word in re.findall(r"[()]|\.\.\.|[^\s()]+?(?=\.\.\.|[\s()]|$)", text):
        if word == "(":
            if inside:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            inside = True
            groups.append([])
        elif word == ")":
            if not inside:
                raise ValueError("Brackets are not balanced")
            inside = False
        elif word == "1":
            if not inside:
                groups.append([])
        else:
            _check_name(word)
            if word in seen:
                raise ValueError(f"Indexing expression contains duplicate dimension '{word}'")
            seen.add(word)
            if inside:
                groups[-1].append(word)
            else:
                groups.append(BARE if word == REST else [word])
    if inside:
        raise ValueError(f"Imbalanced parentheses in expression: '{text}'")
    return groups


def _check_name(name: str) -> None:
    if name == REST:
        return
    if name.isdecimal():
        raise ValueError("rearrange only supports unnamed axes of size 1")
    if not name.isidentifier():
        raise ValueError(f"Invalid axis identifier: {name}\nnot a valid python identifier")
    if name[0] == "_" or name[-1] == "_":
        raise ValueError(f"Invalid axis identifier: {name}\naxis name should should not start or end with underscore")
    if keyword.iskeyword(name):
        raise ValueError(f"Invalid axis identifier: {name}\nit is a keyword")


# -- sizes ---------------------------------------------------------------------------------------------------------------


def _sizes(left: list[list[str]], shape: Sequence[int], lengths: dict[str, int]) -> dict[str, int]:
    """The size of every name."""
    place = left.index(BARE) if BARE in left else None
    named = len(left) - (place is not None)
    if len(shape) < named or place is None and len(shape) != named:
        raise ValueError(f"Number of dimensions in pattern ({named}) must be equal to the number of dimensions in the tensor ({len(shape)})")
    groups = left
    if place is not None:
        groups, shape = left[:place] + left[place + 1:], [*shape[:place], *shape[len(shape) - (named - place):]]
    found: dict[str, int] = {}
    for group, size in zip(groups, shape):
        unknown = [name for name in group if name not in lengths]
        known = _product(lengths[name] for name in group if name in lengths)
        if len(unknown) > 1:
            raise DimensionBindError(f"cannot infer the sizes of two dimensions at once {unknown[0]} and {unknown[1]}")
        if unknown and (not known or size % known):
            raise DimensionBindError(f"inferred dimension does not evenly fit into larger dimension: {size} vs "
                                     f"{tuple(lengths.get(name, '?') for name in group)}")
        if not unknown and size != known:
            raise DimensionBindError(f"Dimension sizes to do not match ({size} != {known}) when matching dimension pack {tuple(group)}")
        found.update((name, lengths.get(name, size // max(known, 1))) for name in group)
    return found
