"""Parameters of Triton kernels for products of sparse blocks, by operation, device and shapes: where libraries keep what they have measured for their own kernels.

The table begins empty, because torchlike has no such kernels (XLA compiles these products): what a library finds here, it has put here.
"""
from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Hashable
from typing import Any

from .. import cuda
from .._core import dtype as dt

_NAMES = {"scatter_mm": ("GROUP_SIZE", "SPLIT_N", "TILE_M", "TILE_N", "num_stages", "num_warps"),
          **dict.fromkeys(("bsr_dense_addmm", "_int_bsr_dense_addmm"), ("GROUP_SIZE_ROW", "SPLIT_N", "num_stages", "num_warps"))}
_TABLES: dict[tuple, dict[tuple, tuple]] = {}


def update(op: str, device_name: str, version: Hashable, key: tuple, value: tuple) -> None:
    """Keeps the parameters `value` for an operation's inputs `key`; an empty one is left out, with a warning."""
    if not value:
        warnings.warn(f"skipping empty value for {op}: device_name={device_name!r} version={version!r} key={key!r}", stacklevel=2)
        return
    _TABLES.setdefault((op, device_name, version), {})[key] = value


def get_meta(op: str, key: tuple, device_name: str | None = None, version: Hashable = (0, dt.float16, 0.5), exact: bool = False) -> dict | None:
    """The parameters by name that were kept for an operation's inputs, None where there are none; for a key with "*" in it those of all keys that fit.
    NotImplementedError for an operation that has no such parameters."""
    if device_name is None:
        device_name = cuda.get_device_name() if cuda.is_available() else ""
    table = _TABLES.get((op, device_name, version))
    if table is None:
        return None
    found = {k: values for k, values in table.items() if len(k) == len(key) and all(given in ("*", have) for have, given in zip(k, key))}
    if found and op not in _NAMES:
        raise NotImplementedError(f"names for op={op!r}")
    named = {k: dict(zip(_NAMES[op], values)) for k, values in found.items()} if found else {}
    return named if "*" in key else named.get(key)


def minimize(target_func: Callable[[dict], float], initial_parameters: dict, reference_parameters: dict, step_func: Callable[[str, Any, int, dict], Any],
             max_step: int = 2, verbose: bool = False, all_values: dict | None = None) -> tuple[dict, float, float, str]:
    """Looks for the parameters of the smallest `target_func(parameters)`, going from the initial ones to neighbours at most `max_step` steps away in all.

    `step_func(name, value, direction, parameters)` gives a parameter's value some steps up or down, the same where there is none. What raises is left out.
    Returns the parameters, how many per cent less they take than the reference, the target there, and a text of how much more their neighbours take;
    ({}, -1, -1, the error) where neither the initial nor the reference parameters work. `all_values` keeps what was measured, by the values in the
    order of their names.
    """
    names, seen = sorted(initial_parameters), {} if all_values is None else all_values
    steps = sorted((sum(map(abs, d)), d) for d in itertools.product(range(-max_step, max_step + 1), repeat=len(names)) if 0 < sum(map(abs, d)) <= max_step)

    def key_of(parameters: dict) -> tuple:
        return tuple(parameters[name] for name in names)

    def measure(parameters: dict) -> float | None:
        key = key_of(parameters)
        if key not in seen:
            try:
                seen[key] = target_func(parameters)
            except Exception as error:  # a kernel that does not fit the device, among others
                seen[key] = str(error)
                if verbose:
                    print(f"{parameters} lead to failure: {error}.")
        return None if isinstance(seen[key], str) else seen[key]

    def moved(parameters: dict, directions: tuple) -> dict | None:
        """The parameters so many steps away; None where one cannot go there."""
        found = dict(parameters)
        for name, direction in zip(names, directions):
            if direction:
                found[name] = step_func(name, parameters[name], direction, parameters)
                if found[name] == parameters[name]:
                    return None
        return found

    reference, best, least = measure(reference_parameters), initial_parameters, measure(initial_parameters)
    if least is None:
        if reference is None:
            return {}, -1, -1, str(seen[key_of(initial_parameters)])
        best, least = reference_parameters, reference
    reference, first, start = least if reference is None else reference, least, key_of(best)
    while True:
        neighbours = (moved(best, d) for _, d in steps)
        found = next((p for p in neighbours if p is not None and key_of(p) not in seen and (t := measure(p)) is not None and t < least), None)
        if found is None:
            break
        best, least = found, seen[key_of(found)]
    same = [k for k, t in seen.items() if not isinstance(t, str) and abs(1 - t / least) < 0.001]  # of those that take as long, always the same one
    best = dict(zip(names, start if start in same else min(same)))
    gained = (1 - least / reference) * 100
    if gained < 0:
        return minimize(target_func, reference_parameters, reference_parameters, step_func, max_step, verbose, seen)
    return best, gained, least, _sensitivity(best, names, moved, seen, key_of, least, first, max_step)


def _sensitivity(best: dict, names: list[str], moved: Callable, seen: dict, key_of: Callable, least: float, first: float, max_step: int) -> str:
    """How many per cent more the target is where one parameter is some steps away, the most sensitive parameter first."""
    found = []
    for place, name in enumerate(names):
        more = []
        for direction in (d for d in range(-max_step, max_step + 1) if d):
            parameters = moved(best, tuple(direction if i == place else 0 for i in range(len(names))))
            there = None if parameters is None else seen.get(key_of(parameters))
            more.append((there / least - 1) * 100 if isinstance(there, float) else 0)
        found.append((max(more), more, name))
    parts = [f"timing0={first:.3f}"]
    for _, more, name in sorted(found, reverse=True):
        below, above = ("|".join(f"{x:.1f}" for x in side) for side in (more[:max_step], more[max_step:]))
        parts.append(f"{name}={best[name]} ({below}...{above} %)")
    return ", ".join(parts)
