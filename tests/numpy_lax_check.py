"""Comparing the NumPy evaluation of a function's jaxpr with XLA's."""

import jax
import jax.numpy as jnp
import numpy as np

from torchlike._core import numpy_lax


def interpret(f, *args):
    """f evaluated in NumPy; the flat list of results."""
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(f)(*args)
    assert numpy_lax.supported(jaxpr) is None, numpy_lax.supported(jaxpr)
    flat = [np.asarray(x) for x in jax.tree.leaves(args)]
    before = [x.copy() for x in flat]
    out = numpy_lax.compile_jaxpr(jaxpr)(*flat)
    for x, y in zip(flat, before):
        assert x.tobytes() == y.tobytes(), "an input was written to"
    return out


def same(got, want, ulps=8, scale=0.0, message=""):
    """Equal shapes and dtypes; floats equal up to `ulps` of the value or of `scale` times the array's largest."""
    want = np.asarray(want)
    assert got.__class__ is np.ndarray
    assert (got.shape, got.dtype) == (want.shape, want.dtype), (
        f"{message}: {got.dtype}{got.shape}, XLA {want.dtype}{want.shape}"
    )
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want, err_msg=message)
        return
    eps = float(jnp.finfo(want.dtype).eps)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    size = np.abs(want[np.isfinite(want)])
    np.testing.assert_allclose(
        got, want, rtol=ulps * eps, atol=ulps * eps * (scale * size.max() if size.size else 0) + 1e-37, err_msg=message
    )


def agree(cases: dict, ulps=8, scale=0.0, grad_scale=None):
    """`cases`: name -> (function, *args). All are compiled by XLA as one program. With `grad_scale`, the gradients of
    the float results with respect to the float arguments are compared too, to that scale. Failures are gathered."""
    functions, arguments = {}, {}
    for name, (f, *args) in cases.items():
        functions[name], arguments[name] = f, args
        if grad_scale is not None:
            g, differentiated = _gradient(f, args)
            functions[name + " vjp"], arguments[name + " vjp"] = g, differentiated
    with jax.enable_x64(True):
        program = jax.jit(lambda a: {n: jax.tree.leaves(f(*a[n])) for n, f in functions.items()}).lower(arguments)
        wants = program.compile(compiler_options={"xla_backend_optimization_level": 0})(arguments)  # compiles faster
    failures = []
    for name, f in functions.items():
        try:
            got = interpret(f, *arguments[name])
            for i, (x, y) in enumerate(zip(got, wants[name], strict=True)):
                same(x, y, ulps, grad_scale if name.endswith(" vjp") else scale, f"{name}[{i}]")
        except Exception as error:
            error.add_note(name)
            failures.append(error)
    if failures:
        raise ExceptionGroup("not as XLA", failures)


def _gradient(f, args):
    floats = [i for i, x in enumerate(args) if jnp.issubdtype(np.asarray(x).dtype, np.inexact)]

    def gradient(*args):
        def of_floats(*diff):
            full = list(args)
            for i, x in zip(floats, diff):
                full[i] = x
            return [o for o in jax.tree.leaves(f(*full)) if jnp.issubdtype(o.dtype, np.inexact)]

        outs, pull = jax.vjp(of_floats, *[args[i] for i in floats])
        return pull([jnp.sin(jnp.arange(1, o.size + 1)).reshape(o.shape).astype(o.dtype) for o in outs])

    return gradient, args


def floats(*shape, dtype=np.float32, low=-2.0, high=2.0, seed=0):
    return np.random.default_rng((seed, *shape)).uniform(low, high, shape).astype(dtype)


def integers(*shape, dtype=np.int32, low=-100, high=100, seed=0):
    return np.random.default_rng((seed, *shape)).integers(low, high, shape).astype(dtype)
