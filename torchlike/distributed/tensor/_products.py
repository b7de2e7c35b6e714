"""Sharding rules of matrix products: along a dimension of the mesh at most one index is cut; of an index that is summed over, the ranks get terms."""
from __future__ import annotations

from collections import Counter
from typing import Any

from ._call import Call
from ._dtensor import DTensor
from ._layout import Placements
from .placement_types import Partial, Placement, Replicate, Shard


def _product(call: Call, a: DTensor, b: DTensor, of_a: str, of_b: str, of_out: str, bias: DTensor | None = None, of_bias: str = "") -> Any:
    """`out = a b + bias`, the indices of each by letters."""
    cut = [_index(_cut_index(a, of_a, i), _cut_index(b, of_b, i), a, b, of_a, of_b) for i in range(call.mesh.ndim)]
    letters = {id(a): of_a, id(b): of_b, **({} if bias is None else {id(bias): of_bias})}
    out = tuple(_place(letter, of_out, Partial()) for letter in cut)

    def wanted(t: DTensor) -> Placements:
        absent = Partial() if t is bias else Replicate()
        return tuple(_place(letter, letters[id(t)], absent if letter and letter not in of_out else Replicate()) for letter in cut)
    return call.locally(wanted, out)


def _place(letter: str | None, letters: str, absent: Placement) -> Placement:
    if letter is None:
        return Replicate()
    return Shard(letters.index(letter)) if letter in letters else absent


def _cut_index(t: DTensor, letters: str, i: int) -> str | None:
    p = t._placements[i]
    return letters[p.dim] if isinstance(p, Shard) else None


def _index(p: str | None, q: str | None, a: DTensor, b: DTensor, of_a: str, of_b: str) -> str | None:
    """The index to cut: the operands' own; where they differ, that of the larger one."""
    if p is not None and q is not None and p != q:
        p = p if a._global.numel() >= b._global.numel() else q
    found = p or q
    sizes = {t._global[letters.index(found)] for t, letters in ((a, of_a), (b, of_b)) if found and found in letters}
    return found if len(sizes) == 1 else None  # not one that is repeated


def matmul(call: Call) -> Any:
    a, b = call.args[:2] if call.name != "__rmatmul__" else call.args[1::-1]
    return _product(call, a, b, *_letters(a.dim(), b.dim()))


def _letters(m: int, n: int) -> tuple[str, str, str]:
    stack = "abcdefgh"[:max(m, n) - 2] if max(m, n) > 2 else ""
    of_a = "k" if m == 1 else stack[len(stack) - (m - 2):] + "mk"
    of_b = "k" if n == 1 else stack[len(stack) - (n - 2):] + "kn"
    return of_a, of_b, stack + ("m" if m > 1 else "") + ("n" if n > 1 else "")


def linear(call: Call) -> Any:
    x, weight, bias = call.given(0, "input"), call.given(1, "weight"), call.given(2, "bias")
    stack = "abcdefgh"[:x.dim() - 1]
    return _product(call, x, weight, stack + "k", "nk", stack + "n", bias, "n")


def added(call: Call) -> Any:
    """addmm, addmv, baddbmm."""
    if call.inplace:
        return NotImplemented
    bias, a, b = call.args[:3]
    of_a, of_b, of_out = _letters(a.dim(), b.dim())
    if bias._global != call.shapes().shape and bias.dim() != 1:
        return NotImplemented
    return _product(call, a, b, of_a, of_b, of_out, bias, of_out[-bias.dim():] if bias.dim() else "")


def einsum(call: Call) -> Any:
    operands = call.args[1:] if not isinstance(call.args[1], (list, tuple)) else call.args[1]
    sums, _, out = call.args[0].replace(" ", "").partition("->")
    of = sums.split(",")
    if "..." in sums or len(operands) != 2 or "->" not in call.args[0] or any(n > 1 for s in of for n in Counter(s).values()) or \
            any(letter not in out and sum(letter in s for s in of) == 1 for letter in sums.replace(",", "")):
        return NotImplemented
    return _product(call, *operands, *of, out)


RULES = {**dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "__rmatmul__"), matmul), "linear": linear,
         **dict.fromkeys(("addmm", "addmv", "baddbmm"), added), "einsum": einsum}
