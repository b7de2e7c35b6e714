"""Checks of arguments that the public functions share: errors name the function, the argument and what was given."""

import operator
from typing import Any

import jax.numpy as jnp


def arrays(op: str, **named: Any) -> None:
    """Each must be an array, NumPy's or JAX's."""
    for name, x in named.items():
        if not (hasattr(x, "dtype") and hasattr(x, "shape")):
            raise TypeError(f"{op}: {name} must be an array, got {type(x).__name__}")


def optional(op: str, **named: Any) -> None:
    """Each must be an array or None."""
    arrays(op, **{name: x for name, x in named.items() if x is not None})


def floating(op: str, **named: Any) -> None:
    """Each must be a floating array or None."""
    optional(op, **named)
    for name, x in named.items():
        if x is not None and not jnp.issubdtype(x.dtype, jnp.floating):
            raise TypeError(f"{op}: {name} must be floating, got {x.dtype}")


def integers(op: str, **named: Any) -> None:
    """Each must be an array of integers or None."""
    optional(op, **named)
    for name, x in named.items():
        if x is not None and not jnp.issubdtype(x.dtype, jnp.integer):
            raise TypeError(f"{op}: {name} must hold integers, got {x.dtype}")


def number(op: str, name: str, x: Any) -> float:
    try:
        if not isinstance(x, (str, bytes)):
            return float(x)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{op}: {name} must be a number, got {x!r}")


def integer(op: str, name: str, x: Any) -> int:
    try:
        return operator.index(x)
    except TypeError:
        raise TypeError(f"{op}: {name} must be an integer, got {x!r}") from None


def flag(op: str, name: str, x: Any) -> bool:
    if not isinstance(x, (bool, jnp.bool_)) and str(getattr(x, "dtype", "")) != "bool":
        raise TypeError(f"{op}: {name} must be True or False, got {x!r}")
    return bool(x)


def dropout(op: str, rate: Any, seed: Any) -> float:
    rate = number(op, "dropout", rate)
    if not 0 <= rate < 1:
        raise ValueError(f"{op}: dropout must be in [0, 1), got {rate}")
    if rate and seed is None:
        raise ValueError(f"{op}: dropout needs a seed")
    return rate
