"""Where a unit's parameters are found: in its modules, but for those of units below it."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ...nn.modules.module import Module
from ...nn.parameter import Parameter

Places = list[tuple[Module, str]]  # (module, name), several where modules share a parameter


def own_modules(roots: Iterable[Module], unit: type) -> Iterator[Module]:
    """The modules and what is below them, down to those of the class `unit`."""
    seen: set[Module] = set()
    left = list(roots)[::-1]
    while left:
        m = left.pop()
        if m not in seen and not isinstance(m, unit):
            seen.add(m)
            yield m
            left += reversed(list(m.children()))


def own_params(roots: Iterable[Module], unit: type, skipped: Collection[Parameter]) -> list[tuple[Parameter, Places]]:
    """Their parameters, each with its places."""
    without, found = {id(p) for p in skipped}, {}
    for m in own_modules(roots, unit):
        for name, p in m._parameters.items():
            if p is not None and id(p) not in without:
                found.setdefault(id(p), (p, []))[1].append((m, name))
    return list(found.values())
