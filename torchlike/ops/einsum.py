"""Sums of products whose dimensions are named by letters."""
from __future__ import annotations

import functools
import math

import numpy as np

from .._core import dtype as dt
from .._core.errors import class_name
from .._core.registry import Op
from .._public import named, public
from .._tensor import Tensor, apply
from .matmul import matmul, need_scalar_type, wide


def _einsum(xp, *rest):
    *arrays, equation = rest
    arrays = wide(xp, *arrays)
    return xp.einsum(equation, *arrays, optimize=True) if xp is np else xp.einsum(equation, *arrays)


EINSUM = Op("einsum", _einsum)


@functools.lru_cache(1024)
def _parse_einsum(equation: str, shapes: tuple) -> str:
    """The equation of operands of these shapes with an explicit right side and named dimensions for '...'; torch's errors."""
    if " " in equation:
        if ". " in equation:
            for i, term in enumerate(equation.partition("->")[0].split(",")):
                if "." in term.replace("...", "") and "..." not in term:
                    raise RuntimeError(f"einsum(): found '.' for operand {i} that is not part of any ellipsis")
        equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise RuntimeError(f"einsum(): {'fewer' if len(terms) > len(shapes) else 'more'} operands were provided than specified in the equation")
    letters = [c for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation]
    lead, sizes = 0, {}
    for i, (term, shape) in enumerate(zip(terms, shapes)):
        plain = term.replace("...", "", 1)
        if "." in plain:
            raise RuntimeError(f"einsum(): found '.' for operand {i} " + ("for which an ellipsis was already found" if "..." in term else
                                                                         "that is not part of any ellipsis"))
        bad = next((c for c in plain if not (c.isascii() and c.isalpha())), None)
        if bad is not None:
            place = sum(len(before) + 1 for before in terms[:i]) + term.index(bad)
            raise RuntimeError(f"einsum(): invalid subscript given at index {place} in the equation string, subscripts must be in [a-zA-Z]")
        extra = len(shape) - len(plain)
        if extra < 0 or (extra and "..." not in term):
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({len(plain)}) {'is more than' if '...' in term else 'does not match'} "
                               f"the number of dimensions ({len(shape)}) for operand {i}{'' if '...' in term else ' and no ellipsis was given'}")
        lead = max(lead, extra if "..." in term else 0)
    stars = letters[:lead]
    out_terms = []
    for i, (term, shape) in enumerate(zip(terms, shapes)):
        extra = len(shape) - len(term.replace("...", ""))
        term = term.replace("...", "".join(stars[lead - extra:]))
        own: dict = {}
        for c, n in zip(term, shape):
            if own.setdefault(c, n) != n:
                raise RuntimeError(f"einsum(): subscript {c} is repeated for operand {i} but the sizes don't match, {n} != {own[c]}")
        for place, (c, n) in enumerate(zip(term, shape)):
            have = sizes.setdefault(c, n)
            if have != n and 1 not in (have, n):
                if c in stars:
                    raise RuntimeError(f"einsum(): dimension {place} covered by ellipsis in operand {i}has size {n} which does not broadcast "
                                       f"with previously seen ellipsis with size {have} for the respective dimension")
                raise RuntimeError(f"einsum(): subscript {c} has size {n} for operand {i} which does not broadcast with previously seen size {have}")
            sizes[c] = max(have, n)
        out_terms.append(term)
    if arrow:
        if "." in right.replace("...", "", 1):
            raise RuntimeError("einsum(): found '.' for output " + ("but an ellipsis (...) was already found" if "..." in right else
                                                                    "that is not part of any ellipsis (...)"))
        result = right.replace("...", "".join(stars))
        for i, c in enumerate(result):
            if not (c.isascii() and c.isalpha()):
                raise RuntimeError(f"einsum(): invalid subscript given at index {len(left) + 2 + right.index(c)} in the equation string, subscripts must be "
                                   "in [a-zA-Z]")
            if c in result[:i]:
                raise RuntimeError(f"einsum(): output subscript {c} appears more than once in the output")
            if c not in sizes:
                raise RuntimeError(f"einsum(): output subscript {c} does not appear in the equation for any input operand")
    else:
        counts: dict = {}
        for c in "".join(out_terms):
            counts[c] = counts.get(c, 0) + 1
        result = "".join(stars) + "".join(sorted(c for c, n in counts.items() if n == 1 and c not in stars))
    return ",".join(out_terms) + "->" + result


@functools.lru_cache(1024)
def _pair(equation: str, first: tuple, second: tuple) -> tuple | None:
    """For two operands of these shapes: how each is permuted and reshaped for one batched product, and how that becomes the result. None
    where it is no product, as there is no sum over what both have; () where other sums come first."""
    left, right = equation.split("->")
    s, t = left.split(",")
    if len(set(s)) != len(s) or len(set(t)) != len(t):
        return None
    sizes = dict(zip(s, first)) | {c: n for c, n in zip(t, second) if n != 1 or c not in s}
    if any(n != sizes[c] for c, n in zip(s, first)) or any(n != sizes[c] for c, n in zip(t, second)):
        return None
    batch = [c for c in right if c in s and c in t]
    summed = [c for c in s if c in t and c not in right]
    fa, fb = [c for c in s if c not in t], [c for c in t if c not in s]
    if all(sizes[c] == 1 for c in summed):
        return None
    if any(c not in right for c in fa + fb):
        return ()
    n = lambda names: tuple(sizes[c] for c in names)  # noqa: E731
    order = lambda names, term: tuple(map(term.index, names))  # noqa: E731
    k, names = math.prod(n(summed)), batch + fa + fb
    return ((order(batch + fa + summed, s), (*n(batch), math.prod(n(fa)), k)),
            (order(batch + summed + fb, t), (*n(batch), k, math.prod(n(fb)))),
            (n(names), order(right, names)))


def _laid(x: Tensor, order: tuple, shape: tuple) -> Tensor:
    x = x if order == tuple(range(len(order))) else x.permute(order)
    return x if x.shape == shape else x.reshape(shape)


def _pair_product(equation: str, a: Tensor, b: Tensor) -> Tensor | None:
    """A two-operand contraction as one batched product of permuted operands (views and a matmul, quick in every tier)."""
    pair = _pair(equation, tuple(a.shape), tuple(b.shape))
    if pair is None:
        return None
    need_scalar_type(a, b)
    if not pair:
        return None
    first, second, (shape, order) = pair
    return matmul(_laid(a, *first), _laid(b, *second)).reshape(shape).permute(order)


@functools.lru_cache(1024)
def _steps(equation: str, shapes: tuple, cheapest: bool) -> list[tuple[int, int, str]]:
    """A contraction of several operands as some of two: the numbers of those two, which go, and their equation; their result comes last, or first if they
    come as they are given."""
    left, right = equation.split("->")
    terms, steps = left.split(","), []
    path = np.einsum_path(equation, *(np.broadcast_to(np.float32(0), shape) for shape in shapes), optimize="greedy")[0][1:] if cheapest else []
    while len(terms) > 1:
        i, j = sorted(path.pop(0)) if path and len(path[0]) == 2 else (0, 1)
        s, t = terms[i], terms[j]
        del terms[j], terms[i]
        kept = {*right, *"".join(terms)}
        made = "".join(c for c in dict.fromkeys(s + t) if c in kept) if terms else right
        steps.append((i, j, f"{s},{t}->{made}"))
        terms.insert(len(terms) if cheapest else 0, made)
    return steps


def _of_several(equation: str, operands: list) -> Tensor:
    cheapest = len({x.dtype for x in operands}) == 1  # else errors are those of PyTorch's order
    for i, j, step in _steps(equation, tuple([tuple(x.shape) for x in operands]), cheapest):
        second, first = operands.pop(j), operands.pop(i)
        operands.insert(len(operands) if cheapest else 0, _of_two(step, first, second))
    return operands[0]


def _of_two(equation: str, a: Tensor, b: Tensor) -> Tensor:
    made = _pair_product(equation, a, b)
    return apply(EINSUM, (a, b), (equation,)) if made is None else made


def _of_one(equation: str, x: Tensor) -> Tensor:
    """Of one operand: diagonals of it, sums along dimensions, and their order; a view of it where nothing is summed."""
    term, right = equation.split("->")
    names = list(term)
    for c in dict.fromkeys(term):
        while names.count(c) > 1:
            first = names.index(c)
            second = names.index(c, first + 1)
            x, names = x.diagonal(0, first, second), [n for i, n in enumerate(names) if i not in (first, second)] + [c]
    x = x.permute([*map(names.index, right), *[i for i, n in enumerate(names) if n not in right]])
    return x.sum(list(range(len(right), x.ndim))) if x.ndim > len(right) else x


def _sums_one(equation: str) -> bool:
    """Whether some dimension that is summed over is one operand's alone."""
    left, right = equation.split("->")
    terms = left.split(",")
    return any(c not in right and sum(c in term for term in terms) == 1 for c in set(left) - {","})


@functools.lru_cache(1024)
def _last_step(equation: str) -> str:
    """The node of torch's last step: what has dimensions that are summed over loses them there by a view."""
    left, right = equation.split("->")
    return "MulBackward0" if set(left) - {","} <= set(right) else "ViewBackward0"


def _letter(i) -> str:
    """The subscript of a number in a list: capital letters come first, also in the order of a result that is not named."""
    if i is Ellipsis:
        return "..."
    if not 0 <= i < 52:
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return chr(ord("A") + i if i < 26 else ord("a") + i - 26)


@public(method=False)
def einsum(equation=None, *operands) -> Tensor:
    """Sums of products named by subscripts, as numpy.einsum; also the sublist form."""
    if not operands:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")
    if not isinstance(equation, str):
        flat = [equation, *operands]
        if not all(isinstance(sub, (list, tuple)) for sub in flat[1::2]):
            raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {class_name(equation)}")
        out = flat[-1] if len(flat) % 2 else None
        pairs = list(zip(flat[0::2], flat[1::2]))
        equation = ",".join("".join(map(_letter, sub)) for _, sub in pairs)
        if out is not None:
            equation += "->" + "".join(map(_letter, out))
        operands = [t for t, _ in pairs]
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not operands:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")
    for i, x in enumerate(operands):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {class_name(x)}")
    parsed = _parse_einsum(equation, tuple([tuple(x.shape) for x in operands]))
    if len(operands) == 1:
        return _of_one(parsed, *operands)
    if operands[0].dtype.category < dt.FLOAT and _sums_one(parsed):
        operands = [x.to(dt.int64) if x.dtype.category < dt.FLOAT else x for x in operands]  # that sum comes first, as by sum()
    made = _of_two(parsed, *operands) if len(operands) == 2 else _of_several(parsed, list(operands))
    return named(made, _last_step(parsed)) if made._edge is not None else made
