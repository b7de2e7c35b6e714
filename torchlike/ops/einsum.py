"""Sums of products whose dimensions are named by letters."""
from __future__ import annotations

import math

import numpy as np

from .._core import dtype as dt
from .._core.errors import class_name
from .._core.registry import Op
from .._public import public
from .._tensor import Tensor, apply
from .matmul import matmul, need_scalar_type, wide


def _einsum(xp, *rest):
    *arrays, equation = rest
    arrays = wide(xp, *arrays)
    return xp.einsum(equation, *arrays, optimize=True) if xp is np else xp.einsum(equation, *arrays)


EINSUM = Op("einsum", _einsum)


def _parse_einsum(equation: str, tensors) -> str:
    """The equation with an explicit right side and named dimensions for '...'; torch's errors."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise RuntimeError(f"einsum(): {'fewer' if len(terms) > len(tensors) else 'more'} operands were provided than specified in the equation")
    letters = [c for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation]
    lead, sizes = 0, {}
    for i, (term, t) in enumerate(zip(terms, tensors)):
        plain = term.replace("...", "", 1)
        if "." in plain:
            raise RuntimeError(f"einsum(): found '.' for operand {i} " + ("for which an ellipsis was already found" if "..." in term else
                                                                         "that is not part of any ellipsis"))
        if not all(c.isalpha() for c in plain):
            bad = next(c for c in plain if not c.isalpha())
            raise RuntimeError(f"einsum(): invalid subscript given at index {term.index(bad)} in the equation string, subscripts must be in [a-zA-Z]")
        extra = t.ndim - len(plain)
        if extra < 0 or (extra and "..." not in term):
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({len(plain)}) {'is more than' if '...' in term else 'does not match'} "
                               f"the number of dimensions ({t.ndim}) for operand {i}{'' if '...' in term else ' and no ellipsis was given'}")
        lead = max(lead, extra if "..." in term else 0)
    stars = letters[:lead]
    out_terms = []
    for i, (term, t) in enumerate(zip(terms, tensors)):
        extra = t.ndim - len(term.replace("...", ""))
        term = term.replace("...", "".join(stars[lead - extra:]))
        own: dict = {}
        for c, n in zip(term, t.shape):
            if own.setdefault(c, n) != n:
                raise RuntimeError(f"einsum(): subscript {c} is repeated for operand {i} but the sizes don't match, {n} != {own[c]}")
        for place, (c, n) in enumerate(zip(term, t.shape)):
            have = sizes.setdefault(c, n)
            if have != n and 1 not in (have, n):
                if c in stars:
                    raise RuntimeError(f"einsum(): dimension {place} covered by ellipsis in operand {i}has size {n} which does not broadcast "
                                       f"with previously seen ellipsis with size {have} for the respective dimension")
                raise RuntimeError(f"einsum(): subscript {c} has size {n} for operand {i} which does not broadcast with previously seen size {have}")
            sizes[c] = max(have, n)
        out_terms.append(term)
    if arrow:
        result = right.replace("...", "".join(stars))
        for i, c in enumerate(result):
            if not c.isalpha():
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


def _pair_product(equation: str, a: Tensor, b: Tensor) -> Tensor | None:
    """A two-operand contraction as one batched product of permuted operands (views and a matmul, quick in every tier)."""
    left, right = equation.split("->")
    s, t = left.split(",")
    if len(set(s)) != len(s) or len(set(t)) != len(t):
        return None
    sizes = dict(zip(s, a.shape)) | {c: n for c, n in zip(t, b.shape) if n != 1 or c not in s}
    if any(n != sizes[c] for c, n in zip(s, a.shape)) or any(n != sizes[c] for c, n in zip(t, b.shape)):
        return None
    batch = [c for c in right if c in s and c in t]
    summed = [c for c in s if c in t and c not in right]
    fa, fb = [c for c in s if c not in t], [c for c in t if c not in s]
    need_scalar_type(a, b)
    if any(c not in right for c in fa + fb) or all(sizes[c] == 1 for c in summed):  # no sum, or one of single elements
        return None
    n = lambda names: [sizes[c] for c in names]  # noqa: E731
    order = lambda names, term: [term.index(c) for c in names]  # noqa: E731
    k = math.prod(n(summed))
    x = a.permute(order(batch + fa + summed, s)).reshape([*n(batch), math.prod(n(fa)), k])
    y = b.permute(order(batch + summed + fb, t)).reshape([*n(batch), k, math.prod(n(fb))])
    made = matmul(x, y).reshape(n(batch + fa + fb))
    names = batch + fa + fb
    return made.permute([names.index(c) for c in right])


def _sums_one(equation: str) -> bool:
    """Whether some dimension that is summed over is one operand's alone."""
    left, right = equation.split("->")
    terms = left.split(",")
    return any(c not in right and sum(c in term for term in terms) == 1 for c in set(left) - {","})


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
        name = lambda i: "..." if i is Ellipsis else chr(ord("a") + i) if i < 26 else chr(ord("A") + i - 26)  # noqa: E731
        equation = ",".join("".join(map(name, sub)) for _, sub in pairs)
        if out is not None:
            equation += "->" + "".join(map(name, out))
        operands = [t for t, _ in pairs]
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    for i, x in enumerate(operands):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {class_name(x)}")
    parsed = _parse_einsum(equation, operands)
    if operands[0].dtype.category < dt.FLOAT and _sums_one(parsed):
        operands = [x.to(dt.int64) for x in operands]  # that sum comes first, as by sum()
    if len(operands) == 2:
        quick = _pair_product(parsed, *operands)
        if quick is not None:
            return quick
    return apply(EINSUM, tuple(operands), (parsed,))
