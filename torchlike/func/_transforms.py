"""torch.func: grad, vjp, jvp, jacobians and hessians as functions of functions; they nest, and compose with vmap."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._core.grad_mode import mode
from .._functions import torch as _torch
from .._functorch._layers import opened
from .._functorch.vmap import vmap
from .._public import FUNCTIONS
from .._tensor import Tensor
from ..autograd import _tangents
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten, treespec_pprint
from ._level import Level, copier, derivatives, replaced, split, tensors_of


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that returns (gradient, value) of a func with one number as result; ((value, aux)) with `has_aux`."""
    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        with Level() as level:
            lifted = level.lift(split(argnums, args))
            output = func(*replaced(args, argnums, lifted), **kwargs)
            aux = None
            if has_aux:
                if not (isinstance(output, tuple) and len(output) == 2):
                    raise RuntimeError("grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True")
                output, aux = output
            if not isinstance(output, Tensor):
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
            if output.ndim:
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {output.ndim} dims. "
                                   "Maybe you wanted to use the vjp or jacrev APIs instead?")
            _, spec = tree_flatten(lifted)
            grads = tree_unflatten(level.gradients([output], [None]), spec)
            if has_aux:
                _only_tensors(aux)
                return level.free(grads), (level.free(output), level.free(aux))
            return level.free(grads), level.free(output)
    return wrapped


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that returns the gradient of func, whose result is one number; (gradient, aux) with `has_aux`."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads
    return wrapped


def _only_tensors(tree: Any) -> None:
    for x in tree_flatten(tree)[0]:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")


def _with_aux(output, has_aux: bool, what: str) -> tuple:
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True")
    _only_tensors(output[1])
    return output


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(func(*primals), vjp_fn) or with the aux third; vjp_fn(cotangents) returns one gradient tree per primal."""
    with Level() as level:
        lifted = level.lift(primals)
        output, aux = _with_aux(func(*lifted), has_aux, "vjp(f, *primals)")
        outputs, out_spec = tensors_of(output, "vjp(f, *primals)")
        for o in outputs:
            if o.dtype.category < 2:
                raise RuntimeError(f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {o.dtype}")
        _, spec = tree_flatten(primals)
        result = level.free(output)

    def wrapper(cotangents, retain_graph: bool = True, create_graph: bool | None = None):
        given, given_spec = tree_flatten(cotangents)
        if given_spec != out_spec:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                               f"cotangents: {treespec_pprint(given_spec)}, primal output: {treespec_pprint(out_spec)}")
        level.outer = mode.enabled if create_graph is None else create_graph
        return tree_unflatten(level.gradients(outputs, given, keep=retain_graph), spec)
    return (result, wrapper, level.free(aux)) if has_aux else (result, wrapper)


def _pushforward(level: Level, outputs: list[Tensor]) -> Callable:
    """tangents -> J tangents, as the derivative of a vector-Jacobian product with respect to its vector."""
    with_graph = [o for o in outputs if o.requires_grad]
    dummies = [FUNCTIONS["zeros_like"](o.detach()).requires_grad_() for o in with_graph]
    level.mine.update(d._edge for d in dummies)
    back = derivatives(with_graph, level.inputs, dummies, True, True) if with_graph else []

    def push(tangents: list[Tensor]) -> list[Tensor]:
        create = level.outer and (level.reaches_outside(back) or any(t.requires_grad for t in tangents))
        made = iter(derivatives(back, dummies, tangents, True, create) if with_graph else ())
        return [next(made) if o.requires_grad else FUNCTIONS["zeros_like"](o) for o in outputs]
    return push


_INDEPENDENT = "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with strict=True."


def _dispatches(x: Any) -> bool:
    """Whether x is of a class with `__torch_dispatch__`, or stands for such a tensor: what the class does is not known before it does it,
    so forward derivatives are those of the backward, and examples are computed one after the other."""
    return isinstance(x, Tensor) and copier(x) is not None


def jvp(func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """(func(*primals), J tangents) or with the aux third."""
    return _jvp(func, primals, tangents, strict, has_aux, None)


def _jvp(func, primals, tangents, strict: bool, has_aux: bool, argnums) -> tuple:
    chosen = primals if argnums is None else split(argnums, primals)
    if not isinstance(primals, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat, spec = tree_flatten(chosen)
    flat_tangents, tangent_spec = tree_flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if primals is a "
                           f"tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure {tangent_spec}")
    if not flat:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to contain at least one Tensor.")
    for what, leaves in (("primals", flat), ("tangents", flat_tangents)):
        for x in leaves:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"jvp(f, primals, tangents): Expected {what} to only contain Tensors, got {type(x)}")
    for x in flat:
        if x.dtype.category < 2:
            raise ValueError(f"Expected primal to be floating point or complex, but got: {x.dtype}")
    for x, t in zip(flat, flat_tangents):
        if x.shape != t.shape:
            raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
                               f"Tensor is of size {list(x.shape)} while the given forward gradient is of size {list(t.shape)}.")
    if any(_dispatches(x) for x in (*tree_flatten(primals)[0], *flat_tangents)):
        with Level() as level:
            lifted = tree_unflatten(level.lift(flat), spec)
            output, aux = _with_aux(func(*(lifted if argnums is None else replaced(primals, argnums, lifted))), has_aux, "jvp(f, primals, tangents)")
            outputs, out_spec = tensors_of(output, "jvp(f, primals, tangents)")
            if strict and not all(o.requires_grad for o in outputs):
                raise RuntimeError(_INDEPENDENT)
            found = output, tree_unflatten(_pushforward(level, outputs)(flat_tangents), out_spec)
            return level.free((*found, aux) if has_aux else found)
    with _tangents.opened() as level, opened(level):
        duals = tree_unflatten([level.dual(x, t) for x, t in zip(flat, flat_tangents)], spec)
        args = duals if argnums is None else replaced(primals, argnums, duals)
        output, aux = _with_aux(func(*args), has_aux, "jvp(f, primals, tangents)")
        outputs, out_spec = tensors_of(output, "jvp(f, primals, tangents)")
        made = [level.tangent(o) for o in outputs]
        if strict and any(t is None for t in made):
            raise RuntimeError(_INDEPENDENT)
        plain = [o if t is None or o.__class__ is Tensor else o.as_subclass(Tensor) for o, t in zip(outputs, made)]
        made = [FUNCTIONS["zeros_like"](o.detach()) if t is None else t for o, t in zip(outputs, made)]
        found = tree_unflatten(plain, out_spec), tree_unflatten(made, out_spec)  # of no class of the program's, as PyTorch unwraps them
        return (*found, aux) if has_aux else found


def linearize(func: Callable, *primals: Any) -> tuple:
    """(func(*primals), jvp_fn): jvp_fn(*tangents) returns J tangents without running func again."""
    flat, spec = tree_flatten(primals)
    zeros = FUNCTIONS["zeros_like"]
    with Level() as level:
        if any(map(_dispatches, flat)):
            output = func(*tree_unflatten(level.lift(flat), spec))
            outputs, out_spec = tree_flatten(output)
            push = _pushforward(level, outputs)
        else:
            with _tangents.opened() as forward:
                forward.linear = True
                along = level.lift([zeros(x.detach()) for x in flat])
                output = func(*tree_unflatten([forward.dual(x, t) for x, t in zip(flat, along)], spec))
                outputs, out_spec = tree_flatten(output)
                made = [forward.tangent(o) for o in outputs]
                push = _pushforward(level, [zeros(o.detach()) if t is None else t for o, t in zip(outputs, made)])
        result = level.free(output)

    def jvp_fn(*tangents):
        given, given_spec = tree_flatten(tangents)
        if given_spec != spec:
            raise RuntimeError(f"Expected the tangents {given_spec} to have the same argspec as the primals {spec}")
        for i, (t, p) in enumerate(zip(given, flat)):
            if t.shape != p.shape:
                raise RuntimeError(f"tangent:{i} with shape {t.shape} in flattened pytree doesn't match the shape {p.shape} of the corresponding "
                                   "primal.")
            if t.dtype is not p.dtype:
                raise RuntimeError(f"tangent:{i} with dtype {t.dtype} in flattened pytree doesn't match the dtype {p.dtype} of the corresponding "
                                   "primal.")
        return level.free(tree_unflatten(push(given), out_spec))
    return result, jvp_fn


# -- whole Jacobians -----------------------------------------------------------------------------------------------------


def _units(tensors: list[Tensor]) -> list[Tensor]:
    """The unit vectors of the space of all the tensors' elements, one part per tensor: (total, *shape)."""
    total = sum(t.numel() for t in tensors)
    eye, zeros, cat = FUNCTIONS["eye"], FUNCTIONS["zeros"], FUNCTIONS["cat"]
    parts, before = [], 0
    for t in tensors:
        n = t.numel()
        rows = [zeros(before, n, dtype=t.dtype, device=t.device), eye(n, dtype=t.dtype, device=t.device),
                zeros(total - before - n, n, dtype=t.dtype, device=t.device)]
        parts.append(cat([r for r in rows if r.shape[0]] or rows[:1]).reshape(total, *t.shape))
        before += n
    return parts


def _one_by_one(f: Callable, tensors: list[Tensor]) -> Any:
    """What f makes of each unit vector of the tensors' space, stacked."""
    rows = [f(list(row)) for row in zip(*_units(tensors))]
    return tree_unflatten([_torch.stack(column) for column in zip(*(tree_flatten(row)[0] for row in rows))], tree_flatten(rows[0])[1])


def _only_real(name: str, what: str, tree: Any) -> None:
    for i, x in enumerate(tree_flatten(tree)[0]):
        if isinstance(x, Tensor) and x.is_complex():
            raise RuntimeError(f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}")


def jacrev(func: Callable, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable:
    """A function that returns the Jacobian of func, one backward per output element, batched by vmap."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        picked = split(argnums, args)
        found = vjp(lambda *new: func(*replaced(args, argnums, new[0] if isinstance(argnums, int) else new), **kwargs),
                    *((picked,) if isinstance(argnums, int) else picked), has_aux=has_aux)
        outputs, out_spec = tree_flatten(found[0])
        _only_real("jacrev", "inputs", picked)
        _only_real("jacrev", "outputs", outputs)

        def pull(units):
            return found[1](tree_unflatten(units, out_spec))
        if chunk_size == 1 or any(map(_dispatches, outputs)):  # what reads values works as well then
            rows = _one_by_one(pull, outputs)
        else:
            rows = vmap(pull, chunk_size=chunk_size)(_units(outputs))
        if isinstance(argnums, int):
            rows = rows[0]
        jacobians, start = [], 0
        for o in outputs:
            n = o.numel()
            jacobians.append(tree_map(lambda g: g.narrow(0, start, n).reshape((*o.shape, *g.shape[1:])), rows))  # noqa: B023
            start += n
        result = tree_unflatten(jacobians, out_spec)
        return (result, found[2]) if has_aux else result
    return wrapped


def jacfwd(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable:
    """A function that returns the Jacobian of func, one Jacobian-vector product per input element, batched by vmap."""
    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        picked = split(argnums, args)
        inputs, spec = tree_flatten(picked)
        _only_real("jacfwd", "inputs", inputs)
        wrapper = functools.partial(func, **kwargs) if kwargs else func

        def push(units):
            made = _jvp(wrapper, args, tree_unflatten(units, spec), False, has_aux, argnums)
            return made[1:]
        if any(map(_dispatches, tree_flatten(args)[0])):
            auxiliary: list = []

            def pushed(units):
                made = push(units)
                auxiliary[:] = made[1:]
                return made[0]
            made = _one_by_one(pushed, inputs), *auxiliary
        else:
            made = vmap(push, randomness=randomness, out_dims=(0, None) if has_aux else 0)(_units(inputs))
        outputs, out_spec = tree_flatten(made[0])
        _only_real("jacfwd", "outputs", outputs)

        def columns(o):
            parts, start = [], 0
            for x in inputs:
                part = o.narrow(0, start, x.numel())
                parts.append(part.movedim(0, -1).reshape((*o.shape[1:], *x.shape)))
                start += x.numel()
            return tree_unflatten(parts, spec)
        result = tree_unflatten([columns(o) for o in outputs], out_spec)
        return (result, made[1]) if has_aux else result
    return wrapped


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """A function that returns the second derivatives of func."""
    return jacfwd(jacrev(func, argnums), argnums)


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """func itself: values are immutable here, so every recorded program is free of mutations already. A graph of `make_fx` gets operators that make
    new tensors in the place of those that write, and copies into arguments at the end; with `mutations_and_views` that is refused (NotImplementedError)."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize(f, remove={remove!r}): expected 'mutations' or 'mutations_and_views'.")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        recorded = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor) and hasattr(type(x), "without_writes")]
        if not recorded:
            return func(*args, **kwargs)
        if remove != "mutations":
            raise NotImplementedError("torchlike: functionalize(remove='mutations_and_views') under make_fx")
        return type(recorded[0]).without_writes(recorded, lambda: func(*args, **kwargs))
    return wrapped
