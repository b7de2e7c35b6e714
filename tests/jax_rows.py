"""A row of the case table inside JAX's transformations: what `jax.jit`, `jax.grad` and `jax.vmap` make of the call, held against the eager call.

Nothing is compiled: a transformed call is traced, lowered to XLA's text (where JAX refuses what it cannot compile under its own settings of dtypes)
and evaluated by NumPy. Primitives that NumPy has no form of are compiled.
"""
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from case import Case, Sample, call, function_of, inputs, seed_of, specs, tensor
from compare import Difference, differences, observe

import torchlike as torch
from torchlike._core import numpy_lax

# What asks for values, or returns as many results as the data says: JAX refuses it, on the user's line.
ASKS = (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError, jax.errors.TracerBoolConversionError)


def tensors_of(tree: Any) -> list:
    return [x for x in jax.tree_util.tree_leaves(tree, is_leaf=lambda x: isinstance(x, torch.Tensor)) if isinstance(x, torch.Tensor)]


def evaluated(function: Callable, *args: Any) -> list:
    """The tensors that the jitted function returns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*will be truncated.*")  # in silence a float32 took a float64's place
        traced = jax.jit(function).trace(*args)
        lowered = traced.lower()
    arrays = [np.asarray(x) for x in jax.tree_util.tree_leaves(args)]
    with jax.enable_x64(True):
        if numpy_lax.supported(traced.jaxpr) is None:
            made = [torch.from_jax(jax.numpy.asarray(x)) for x in numpy_lax.compile_jaxpr(traced.jaxpr)(*arrays)]
            return made
    return tensors_of(lowered.compile()(*args))


def weighted(results: list) -> Any:
    """A sum of float results in which each element counts otherwise."""
    total = 0
    for x in results:
        x = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
        if x.is_floating_point():
            total = total + (x * torch.arange(1, x.numel() + 1, dtype=x.dtype).reshape(x.shape).cos()).sum().double()
    return total


def jitted(row: Case, sample: Sample) -> tuple[list, list]:
    function, given = function_of(torch, row), [x.contiguous() for x in inputs(torch, row, sample)]
    torch.manual_seed(0)
    want = tensors_of(call(torch, function, sample, [x.clone() for x in given]))
    torch.manual_seed(0)
    return want, evaluated(lambda *xs: tensors_of(call(torch, function, sample, list(xs))), *given)


def differentiated(row: Case, sample: Sample) -> tuple[list, list] | None:
    """Gradients of a sum of the results, and the results; None where there are none."""
    function, given = function_of(torch, row), [x.contiguous() for x in inputs(torch, row, sample)]
    places = [i for i, spec in enumerate(specs(sample)) if spec.differentiable]
    if not (row.grad and places):
        return None
    leaves = [x.clone().requires_grad_(i in places) for i, x in enumerate(given)]
    torch.manual_seed(0)
    results = tensors_of(call(torch, function, sample, leaves))
    loss = weighted(results)
    if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
        return None
    try:
        loss.backward()
    except RuntimeError:  # PyTorch has no derivative either
        return None
    want = [torch.zeros_like(given[i]) if leaves[i].grad is None else leaves[i].grad.resolve_conj() for i in places]

    def f(*xs):
        tensors = list(given)
        for i, x in zip(places, xs):
            tensors[i] = x
        made = tensors_of(call(torch, function, sample, tensors))
        return weighted(made).jax(), made
    torch.manual_seed(0)
    got = evaluated(jax.grad(f, argnums=tuple(range(len(places))), has_aux=True), *[given[i] for i in places])
    n = len(places)
    return want + results, [g.conj().resolve_conj() if g.is_complex() else g for g in got[:n]] + got[n:]  # JAX's convention


def batched(row: Case, sample: Sample, examples: int = 2) -> tuple[list, list] | None:
    if not row.vmap:
        return None
    function = function_of(torch, row)
    batch = []
    for i, spec in enumerate(specs(sample)):
        varies = spec.kind != "data" and spec.dtype.startswith(("float", "complex"))
        first = inputs(torch, row, sample)[i]
        batch.append(torch.stack([tensor(torch, spec, seed_of(row.id, i, b)).contiguous() if b and varies else first.contiguous() for b in range(examples)]))
    one_by_one = [tensors_of(call(torch, function, sample, [x[b].clone() for x in batch])) for b in range(examples)]
    if len({tuple((x.shape, x.dtype) for x in made) for made in one_by_one}) > 1:  # as many results as the data says
        return None
    want = [torch.stack([x.detach() for x in made]) for made in zip(*one_by_one)]
    return want, evaluated(jax.vmap(lambda *xs: tensors_of(call(torch, function, sample, list(xs)))), *batch)


def found(check: Callable, row: Case, sample: Sample, tol: float) -> Iterator[Difference | str]:
    """What a check of a row found; the name of the error where JAX refused a question for values, "none" where the row has nothing to check."""
    try:
        pair = check(row, sample)
    except ASKS as error:
        yield type(error).__name__
        return
    if pair is None:
        yield "none"
        return
    want, got = pair
    for i, (w, g) in enumerate(zip(want, got, strict=True)):
        yield from (d for d in differences(observe(w.detach()), observe(g), strides=None, values=row.values, tol=row.tol * tol,
                                           where=f"{check.__name__} {i}"))
