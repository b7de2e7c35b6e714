"""torch.autograd.functional: Jacobians, Hessians and their products with vectors."""
from __future__ import annotations

from collections.abc import Callable

from .._functions import torch
from .._public import FUNCTIONS
from .._tensor import Tensor
from .engine import grad
from .grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _ones_like(t: Tensor) -> Tensor:
    return FUNCTIONS["ones_like"](t)  # by its public name, where classes with `__torch_dispatch__` take it over


def _zeros_like(t: Tensor) -> Tensor:
    return FUNCTIONS["zeros_like"](t)


# -- arguments -----------------------------------------------------------------------------------------------------------


def _as_tuple(x, name: str, function: str) -> tuple[bool, tuple]:
    """(whether it was a tuple, a tuple of Tensors)."""
    single = not isinstance(x, tuple)
    parts = (x,) if single else x
    for i, t in enumerate(parts):
        if not isinstance(t, Tensor):
            which = f"given {name} has type" if single else f"value at index {i} has type"
            raise TypeError(f"The {name} given to {function} must be either a Tensor or a tuple of Tensors but the {which} {type(t)}.")
    return not single, parts


def _prepared(inputs: tuple, create_graph: bool) -> tuple:
    """Inputs as leaves of a graph of their own; views of the user's tensors when the graph must reach them."""
    if create_graph:
        return tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in inputs)
    return tuple(t.detach().requires_grad_() for t in inputs)


def _call(func: Callable, inputs: tuple, function: str) -> tuple[bool, tuple]:
    return _as_tuple(func(*inputs), "outputs of the user-provided function", function)


def _grad_postprocess(inputs: tuple, create_graph: bool) -> tuple:
    """Tensors, or tuples of them, out of the graph unless one is made; None stays."""
    if create_graph:
        return inputs
    return tuple(_grad_postprocess(t, create_graph) if isinstance(t, tuple) else t if t is None else t.detach() for t in inputs)


def _tuple_postprocess(parts: tuple, is_tuple: bool | tuple[bool, bool]):
    """What was given as one tensor comes back as one; of a table of results by inputs, both may have been."""
    if not isinstance(is_tuple, tuple):
        return parts if is_tuple else parts[0]
    rows = parts if is_tuple[1] else tuple(row[0] for row in parts)
    return rows if is_tuple[0] else rows[0]


_INDEPENDENT = "is independent of input {i}. This is not allowed in strict mode"
_SECOND = ("While computing the hessian, found that the {of} of the user-provided function with respect to input {i} is independent of the input. This "
           "is not allowed in strict mode. You should ensure that your function is twice differentiable and that the {of} depends on the inputs (this "
           "would be violated by a linear function for example).")


def _check_depend(gradients: tuple, of: str | None) -> None:
    """In strict mode first derivatives have to depend on the inputs. of: whose derivatives the error speaks of; None in jvp."""
    for i, g in enumerate(gradients):
        if not g.requires_grad:
            raise RuntimeError(_SECOND.format(of=of, i=i) if of else f"The gradient with respect to input {i} is independent of the inputs of the "
                               "user-provided function. This is not allowed in strict mode.")


def _check_strict(outputs: tuple, strict: bool, function: str) -> None:
    if strict:
        for i, o in enumerate(outputs):
            if not o.requires_grad:
                raise RuntimeError(f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
                                   "differentiable manner from the input when running in strict mode.")


def _gradients(outputs: tuple, inputs: tuple, grads, create_graph: bool, strict: bool = False, of: str = "output", depend: str = "") -> tuple:
    """Gradients with zeros for inputs that an output does not depend on. In strict mode there has to be none of these, and gradients
    of which a graph is made (`depend` names them) must not be the same for all inputs. of: what is differentiated."""
    used = [(o, g) for o, g in zip(outputs, grads) if o.requires_grad]
    if not used:
        found = (None,) * len(inputs)
    else:
        found = grad([o for o, _ in used], inputs, [g for _, g in used], create_graph=create_graph, retain_graph=True, allow_unused=True)
    if strict:
        for i, g in enumerate(found):
            if g is None:
                whose = of if of.startswith("Output") else f"The {of}"
                raise RuntimeError(f"{whose} of the user-provided function {_INDEPENDENT.format(i=i)}.")
            if create_graph and depend and not g.requires_grad:
                raise RuntimeError(f"The {depend} of the user-provided function {_INDEPENDENT.format(i=i)} when create_graph=True.")
    return tuple(_zeros_like(t) if g is None else g for t, g in zip(inputs, found))


def _vector(v, like: tuple, like_is_tuple: bool, what: str) -> tuple:
    _, parts = _as_tuple(v, "v", what)
    if len(parts) != len(like):
        if like_is_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(parts)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(parts, like)):
        if a.shape != b.shape:
            prefix = f"Entry {i} in " if like_is_tuple else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be {b.shape} but got {a.shape}.")
    return parts


# -- products ------------------------------------------------------------------------------------------------------------


def vjp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), v^T J): v may be missing where the output is one number."""
    with enable_grad():
        is_tuple, parts = _as_tuple(inputs, "inputs", "vjp")
        parts = _prepared(parts, create_graph)
        out_tuple, outputs = _call(func, parts, "vjp")
        _check_strict(outputs, strict, "vjp")
        if v is None:
            if len(outputs) != 1 or outputs[0].numel() != 1:
                raise RuntimeError("The vector v can only be None if the user-provided function returns a single Tensor with a single element.")
            vs = (_ones_like(outputs[0]),)
        else:
            vs = _vector(v, outputs, out_tuple, "vjp")
        made = _gradients(outputs, parts, vs, create_graph, strict, depend="jacobian")
    return _tuple_postprocess(_grad_postprocess(outputs, create_graph), out_tuple), _tuple_postprocess(_grad_postprocess(made, create_graph), is_tuple)


def jvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), J v), by differentiating a vector-Jacobian product with respect to its vector."""
    with enable_grad():
        is_tuple, parts = _as_tuple(inputs, "inputs", "jvp")
        parts = _prepared(parts, create_graph)
        if v is None:
            if len(parts) != 1 or parts[0].numel() != 1:
                raise RuntimeError("The vector v can only be None if the input to the user-provided function is a single Tensor with a single "
                                   "element.")
            vs = (_ones_like(parts[0]),)
        else:
            vs = _vector(v, parts, is_tuple, "jvp")
        out_tuple, outputs = _call(func, parts, "jvp")
        _check_strict(outputs, strict, "jvp")
        dummies = tuple(_zeros_like(o).requires_grad_() for o in outputs)
        back = _gradients(outputs, parts, dummies, True, strict)
        if strict:
            _check_depend(back, None)
        made = _gradients(back, dummies, vs, create_graph, strict, depend="jacobian")
    return _tuple_postprocess(_grad_postprocess(outputs, create_graph), out_tuple), _tuple_postprocess(_grad_postprocess(made, create_graph), out_tuple)


def _scalar(func: Callable, what: str) -> Callable:
    def checked(*inputs):
        out = func(*inputs)
        is_tuple, parts = _as_tuple(out, "outputs of the user-provided function", what)
        if is_tuple or not isinstance(parts[0], Tensor):
            raise RuntimeError(f"The function given to {what} should return a single Tensor")
        if parts[0].numel() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {what} should contain a single element")
        return parts[0].squeeze()
    return checked


def vhp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), v^T H) of a function with one number as result."""
    with enable_grad():
        is_tuple, parts = _as_tuple(inputs, "inputs", "vhp")
        parts = _prepared(parts, create_graph)
        vs = _one_vector(v, parts, is_tuple, "vhp")
        output = _scalar(func, "vhp")(*parts)
        _check_strict((output,), strict, "vhp")
        first = _gradients((output,), parts, (_ones_like(output),), True, strict)
        if strict:
            _check_depend(first, "jacobian")
        made = _gradients(first, parts, vs, create_graph, strict, "jacobian", "hessian")
    return _grad_postprocess((output,), create_graph)[0], _tuple_postprocess(_grad_postprocess(made, create_graph), is_tuple)


def hvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), H v) of a function with one number as result."""
    with enable_grad():
        is_tuple, parts = _as_tuple(inputs, "inputs", "hvp")
        parts = _prepared(parts, create_graph)
        vs = _one_vector(v, parts, is_tuple, "hvp")
        output = _scalar(func, "hvp")(*parts)
        _check_strict((output,), strict, "hvp")
        first = _gradients((output,), parts, (_ones_like(output),), True, strict)
        if strict:
            _check_depend(first, "jacobian")
        dummies = tuple(_zeros_like(g).requires_grad_() for g in first)
        back = _gradients(first, parts, dummies, True)
        made = _gradients(back, dummies, vs, create_graph, strict, "hessian", "hessian")
    return _grad_postprocess((output,), create_graph)[0], _tuple_postprocess(_grad_postprocess(made, create_graph), is_tuple)


def _one_vector(v, parts: tuple, is_tuple: bool, what: str) -> tuple:
    if v is not None:
        return _vector(v, parts, is_tuple, what)
    if len(parts) != 1 or parts[0].numel() != 1:
        raise RuntimeError("The vector v can only be None if the input to the user-provided function is a single Tensor with a single element.")
    return (_ones_like(parts[0]),)


# -- whole matrices ------------------------------------------------------------------------------------------------------


def jacobian(func: Callable, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode"):
    """All derivatives of outputs by inputs: output.shape + input.shape, nested in tuples as outputs and inputs are."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    if strategy == "forward-mode" and not create_graph:
        if strict:
            raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `strategy=\"forward-mode\"` are not supported together (yet). "
                               "Please either set `strict=False` or `strategy=\"reverse-mode\"`.")
        if not vectorize:
            raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`.")
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError("torch.autograd.functional.jacobian: `create_graph=True` and `strategy=\"forward-mode\"` are not supported together "
                                  "(yet). Please either set `create_graph=False` or `strategy=\"reverse-mode\"`.")
    with enable_grad():
        is_tuple, parts = _as_tuple(inputs, "inputs", "jacobian")
        parts = _prepared(parts, create_graph)
        out_tuple, outputs = _call(func, parts, "jacobian")
        rows: list[tuple] = []
        _check_strict(outputs, strict, "jacobian")
        if vectorize:
            if strict:
                raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set "
                                   "`strict=False` or `vectorize=False`.")
            vectorize = not any(t._dispatches for t in (*outputs, *parts))  # what a class does is not known before it does it
            rows = [_rows_at_once(output, parts, create_graph) for output in outputs if vectorize]
        for i, output in enumerate(() if vectorize else outputs):
            columns: list[list] = [[] for _ in parts]
            flat = output.reshape(-1)
            for at in range(output.numel()):  # a place is data: all of them are one program
                element = flat[at]
                made = _gradients((element,), parts, (_ones_like(element),), create_graph, strict, f"Output {i}", "jacobian")
                for column, g in zip(columns, made):
                    column.append(g)
            rows.append(tuple(
                torch.stack(c).reshape((*output.shape, *t.shape)) if c else t.new_zeros((*output.shape, *t.shape)) for c, t in zip(columns, parts)))
    rows = tuple(_tuple_postprocess(_grad_postprocess(r, create_graph), is_tuple) for r in rows)
    return _tuple_postprocess(rows, out_tuple)


def _rows_at_once(output: Tensor, inputs: tuple, create_graph: bool) -> tuple:
    """The derivatives of all elements of an output by one batched backward."""
    from .._functorch.vmap import vmap  # built on this package

    shapes = [(*output.shape, *t.shape) for t in inputs]
    if not output.requires_grad or not output.numel():
        return tuple(t.new_zeros(s) for t, s in zip(inputs, shapes))
    n = output.numel()
    units = torch.eye(n, dtype=output.dtype, device=output.device).reshape((n, *output.shape))

    def pull(unit):
        found = grad((output,), inputs, (unit,), create_graph=create_graph, retain_graph=True, allow_unused=True)
        return {i: g for i, g in enumerate(found) if g is not None}
    found = vmap(pull)(units)
    return tuple(found[i].reshape(s) if i in found else t.new_zeros(s) for i, (t, s) in enumerate(zip(inputs, shapes)))


def hessian(func: Callable, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode"):
    """Second derivatives of a function with one number as result."""
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    is_tuple, parts = _as_tuple(inputs, "inputs", "hessian")
    scalar = _scalar(func, "hessian")

    def gradient(*x):
        x = tuple(t if t.requires_grad else t.requires_grad_() for t in x)
        output = scalar(*x)
        _check_strict((output,), strict, "hessian")
        first = _gradients((output,), x, (_ones_like(output),), True)
        if strict:
            _check_depend(first, "jacobian")
        return first
    made = jacobian(gradient, parts, create_graph, strict, vectorize, outer_jacobian_strategy)
    return made if is_tuple else made[0][0]


def _construct_standard_basis_for(tensors: tuple, tensor_numels: tuple) -> tuple:
    """Unit vectors over all elements of `tensors`, as rows; cut where a tensor ends, each part in its tensor's dtype. Libraries (torchmin) use it."""
    total, parts, start = sum(tensor_numels), [], 0
    for t, n in zip(tensors, tensor_numels, strict=True):
        part = t.new_zeros(total, n)
        part.diagonal(-start).fill_(1)
        parts.append(part)
        start += n
    return tuple(parts)
