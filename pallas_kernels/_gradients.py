"""Kernels inside differentiated programs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import custom_derivatives

from pallas_kernels import _dispatch


def guarded(
    kernel: Callable, reference: Callable, *, interpret: bool, platforms: tuple[str, ...] = ("cuda",)
) -> Callable:
    """`kernel` where it runs, `reference` elsewhere; differentiating the result differentiates `reference`.

    A kernel sits inside a custom gradient rule, so its own derivative is only asked for by derivatives of derivatives.
    Both take the same positional arrays (None allowed) and return the same structure.
    """

    @jax.custom_vjp
    def call(*args):
        return kernel(*args) if interpret else _dispatch.on_platforms(platforms, kernel, reference, *args)

    def backward(args, gradients):
        floats, rebuild = float_leaves(args)
        _, pull = jax.vjp(lambda *leaves: reference(*rebuild(leaves)), *floats)
        return rebuild(pull(gradients), others=None)

    call.defvjp(lambda *args: (call(*args), args), backward)
    return call


def float_leaves(tree: Any) -> tuple[list[jax.Array], Callable]:
    """The floating leaves of `tree`, and a function that puts replacements back (other leaves kept, or `others`)."""
    leaves, structure = jax.tree.flatten(tree)
    floating = [jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves]

    def rebuild(new, **others):
        new = iter(new)
        kept = [
            next(new) if is_float else others.get("others", leaf)
            for leaf, is_float in zip(leaves, floating, strict=True)
        ]
        return jax.tree.unflatten(structure, kept)

    return [leaf for leaf, is_float in zip(leaves, floating, strict=True) if is_float], rebuild


def dense(gradient: Any, like: jax.Array) -> jax.Array:
    """A cotangent that may be a symbolic zero, as an array."""
    if isinstance(gradient, custom_derivatives.SymbolicZero):
        return jnp.zeros(like.shape, like.dtype)
    return gradient
