"""Special functions: gamma and its derivatives, Bessel functions, the normal distribution, entropy, polynomials."""
from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from .._arguments import as_int
from .._core import dtype as dt
from .._core.derivative import Underivable
from .._core.errors import not_implemented
from .._core.registry import Elementwise
from .._public import public, with_out
from .._tensor import Tensor, apply
from .circular import has_doubles, polynomial
from .host_calls import on_host
from .incomplete_gamma import incomplete
from .narrow import Stepped
from .pointwise import only, operands
from .unary import digamma, lgamma, special, trigamma


def _no_gradient(name: str) -> Underivable:
    return Underivable(f"the derivative for '{name}' is not implemented.", NotImplementedError)


_TAKING = {"input": lambda run: lambda input: run(input), "x": lambda run: lambda x: run(x),
           "input, other": lambda run: lambda input, other: run(input, other), "x, n": lambda run: lambda x, n: run(x, n)}


def elementwise_function(name: str, kernel, *grads, parameters: str = "input", low: bool = True, kind: type = Elementwise):
    """torch.special.<name> of one or two tensors, computed in floating point; without `grads` it has no derivative. low: also of 16-bit numbers on the CPU."""
    shown = "".join(p.capitalize() for p in name.replace("1p", "1_p").split("_"))  # xlog1py is Xlog1Py
    op = kind(f"special_{name}", kernel, promote="float", grads=grads or None, real=True, torch_name=f"Special{shown}Backward0")

    def run(*given) -> Tensor:
        if len(given) == 1 and not isinstance(given[0], Tensor):
            raise TypeError(f"special_{name}(): argument '{parameters}' (position 1) must be Tensor, not {type(given[0]).__name__}")
        out = apply(op, given if len(given) == 1 else operands(f"special_{name}", *given))
        if not low and out.dtype.itemsize < 4 and out.device.type == "cpu":
            raise not_implemented(f"{name}_cpu", out.dtype)
        return out
    f = _TAKING[parameters](run)
    f.__name__, f.__qualname__ = f"special_{name}", f"special_{name}"
    f.__doc__, f.__annotations__ = f"torch.special.{name}, elementwise.", {"return": "Tensor"}
    return with_out(f)


_ROOT_PI, _ROOT_2PI = math.sqrt(math.pi), math.sqrt(2 * math.pi)


def _c(value: float, like):
    return np.asarray(value, like.dtype)


def _density(xp, x):
    return xp.exp(-x * x / 2) * _c(1 / _ROOT_2PI, x)


def _entr(xp, x, rounded=lambda xp, x: x):
    inside = xp.where(x > 0, x, xp.ones_like(x))
    out = xp.where(x > 0, -inside * rounded(xp, xp.log(inside)), xp.where(x == 0, xp.zeros_like(x), xp.full_like(x, -np.inf)))
    return xp.where(xp.isnan(x), x, out)


def _xlog1py(xp, x, y, rounded=lambda xp, x: x):
    skip = (x == 0) & ~xp.isnan(y)
    return xp.where(skip, xp.zeros_like(x), x * rounded(xp, xp.log1p(xp.where(skip, xp.zeros_like(y), y))))


def _erfcx(xp, x):
    """exp(x ** 2) * erfc(x); where erfc leaves XLA's range, 1 / (x * sqrt(pi)) times the sum of (2n - 1)!! / (-2 x ** 2) ** n."""
    if xp is np:
        return special(np).erfcx(x)
    far = x > (8 if x.dtype.itemsize < 8 else 20)
    large = jnp.where(far, x, 30)
    part = -0.5 / (large * large)
    series = polynomial(part, [math.prod(range(1, 2 * n, 2)) for n in range(9)]) / (large * _c(_ROOT_PI, x))
    return jnp.where(far, series, special(jnp).erfcx(jnp.where(far, 1, x)))


def _log_ndtr(xp, x):
    if xp is np:
        return special(np).log_ndtr(x)
    below = x < -1
    t = x * _c(math.sqrt(0.5), x)
    tail = jnp.log(_erfcx(jnp, jnp.where(below, -t, 1)) / 2) - t * t
    return jnp.where(below, tail, jnp.log1p(special(jnp).erfc(jnp.where(below, 1, t)) / -2))


@jax.custom_jvp
def _hurwitz(x, y):
    """JAX has zeta(x, y) for positive y, and below there are only a few more terms."""
    x, y = jnp.broadcast_arrays(x, y)
    one, low, power = _c(1, x), (y <= 0) & (y != jnp.floor(y)), jnp.where(x > 1, x, _c(2, x))

    def add(state):
        total, at = state
        more = at <= 0
        return jnp.where(more, total + jnp.where(more, at, one) ** -power, total), jnp.where(more, at + 1, at)
    total, at = jax.lax.while_loop(lambda state: jnp.any(state[1] <= 0), add, (jnp.zeros_like(x), jnp.where(low, y, one)))
    out = total + jax.lax.zeta(power, jnp.where(low, at, y))
    for where, value in (((y <= 0) & (x != jnp.floor(x)), np.nan), ((y <= 0) & (y == jnp.floor(y)), np.inf), ((x < 1) | jnp.isnan(x + y), np.nan), (x == 1, np.inf)):
        out = jnp.where(where, _c(value, x), out)
    return out


@_hurwitz.defjvp
def _hurwitz_jvp(given, moved):  # torch has no derivative in x
    x, y = given
    return _hurwitz(x, y), -x * _hurwitz(x + 1, y) * moved[1]


def _zeta(xp, x, y):
    return special(np).zeta(x, y) if xp is np else _hurwitz(x, y)


entr = elementwise_function("entr", _entr, lambda xp, g, x: g * (-xp.log(x) - 1), kind=Stepped)
erfcx = elementwise_function("erfcx", _erfcx, lambda xp, g, x, out: g * (2 * x * out - _c(2 / _ROOT_PI, g)), low=False)
i0e = elementwise_function("i0e", lambda xp, x: special(xp).i0e(x), lambda xp, g, x, out: g * (special(xp).i1e(x) - xp.sign(x) * out))
i1e = elementwise_function("i1e", lambda xp, x: special(xp).i1e(x), lambda xp, g, x, out: g * xp.where(
    x == 0, _c(0.5, g), special(xp).i0e(x) - out * (xp.sign(x) + 1 / xp.where(x == 0, xp.ones_like(x), x))))
i1 = elementwise_function("i1", lambda xp, x: special(xp).i1(x), lambda xp, g, x, out: g * xp.where(
    x == 0, _c(0.5, g), special(xp).i0(x) - out / xp.where(x == 0, xp.ones_like(x), x)))
ndtr = elementwise_function("ndtr", lambda xp, x: special(xp).ndtr(x.astype(np.float32) if x.dtype.itemsize < 4 else x), lambda xp, g, x: g * _density(xp, x))
ndtri = elementwise_function("ndtri", lambda xp, x: special(xp).ndtri(x), lambda xp, g, out: g / _density(xp, out), low=False)
log_ndtr = elementwise_function("log_ndtr", _log_ndtr, lambda xp, g, x, out: g * xp.exp(-x * x / 2 - out) * _c(1 / _ROOT_2PI, g), low=False)
xlog1py = elementwise_function("xlog1py", _xlog1py,
                    lambda xp, g, x, y: xp.where((x == 0) & (y <= -1), xp.zeros_like(g), g * xp.log1p(xp.where((x == 0) & (y <= -1), xp.zeros_like(y), y))),
                    lambda xp, g, x, y: g * x / (y + 1), parameters="input, other", kind=Stepped)
zeta = elementwise_function("zeta", _zeta, _no_gradient("zeta"), lambda xp, g, x, y: g * -x * _zeta(xp, x + 1, y), parameters="input, other")


def _gamma_density(xp, a, x):
    return xp.exp((a - 1) * xp.log(x) - x - special(xp).gammaln(a))


def _incomplete(xp, name, a, x):
    lower = name == "gammainc"
    # XLA's float32 is off by 1e-3 from 10000 on
    wide = np.float64 if xp is not np and has_doubles() else a.dtype
    whole = getattr(special(xp), name)
    wider, arguments = wide != a.dtype and a.size, (a.astype(wide), x.astype(wide))
    made = (incomplete(whole, *xp.broadcast_arrays(*arguments), lower) if wider else whole(*arguments)).astype(a.dtype)
    for where, value in (((a == 0) & (x == 0), np.nan), ((a == 0) & (x > 0), lower), (xp.isposinf(x) & (a >= 0), lower),
                         (xp.isposinf(a) & (x >= 0), 1 - lower), (xp.isposinf(a) & xp.isposinf(x), np.nan)):
        made = xp.where(where, _c(value, a), made)
    return made


_IGAMMA = Elementwise("igamma", lambda xp, a, x: _incomplete(xp, "gammainc", a, x), promote=only("igamma_cpu", dt.FLOAT, dt.FLOAT),
                      grads=(_no_gradient("igamma: input"), lambda xp, g, a, x: g * _gamma_density(xp, a, x)))
_IGAMMAC = Elementwise("igammac", lambda xp, a, x: _incomplete(xp, "gammaincc", a, x), promote=only("igammac_cpu", dt.FLOAT, dt.FLOAT),
                       grads=(_no_gradient("igammac: input"), lambda xp, g, a, x: -g * _gamma_density(xp, a, x)))


@public(inplace=True, out=True)
def igamma(input, other: Tensor) -> Tensor:
    """The regularized lower incomplete gamma function P(input, other)."""
    return apply(_IGAMMA, operands("igamma", input, other, ()))


@public(inplace=True, out=True)
def igammac(input, other: Tensor) -> Tensor:
    """The regularized upper incomplete gamma function Q(input, other)."""
    return apply(_IGAMMAC, operands("igammac", input, other, ()))


def _polygamma(xp, x, n):
    if n == 1:
        return trigamma(xp, x)
    if xp is np:
        return special(np).polygamma(n, x)
    return _c((-1) ** (n + 1) * math.factorial(n), x) * _zeta(xp, xp.full_like(x, n + 1), x)


_POLYGAMMA = Elementwise("polygamma", _polygamma, promote="float", grads=(lambda xp, g, x, n: g * _polygamma(xp, x, n + 1),), real=True)


@public(method=False, out=True)
def polygamma(n: int, input) -> Tensor:
    """The n-th derivative of digamma."""
    n = as_int(n, "n", "polygamma(): ", " (position 1)")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return digamma(input) if n == 0 else apply(_POLYGAMMA, (input,), (n,))


def _polygamma_method(self, n: int) -> Tensor:
    """The n-th derivative of digamma."""
    return polygamma(n, self)


def _polygamma_in_place(self, n: int) -> Tensor:
    """self = polygamma(n, self)."""
    from .._writing import write_into
    self._check_write()
    return write_into(self, polygamma(n, self))


Tensor.polygamma, Tensor.polygamma_ = _polygamma_method, _polygamma_in_place


@public(inplace=True, out=True)
def mvlgamma(input, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p."""
    p = as_int(p, "p")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    x = input if input.dtype.category >= dt.FLOAT else input.to(dt.get_default_dtype())
    total = lgamma(x)
    for i in range(1, p):
        total = total + lgamma(x - i / 2)
    return total + p * (p - 1) / 4 * math.log(math.pi)


# -- Bessel functions, without derivatives in torch ----------------------------------------------


def _bessel(name: str, of_numpy, parameter: str = "input"):
    """A function that SciPy has (its name, or a function) and JAX lacks: the compiled tier calls the host."""
    def kernel(xp, x):
        f = of_numpy if callable(of_numpy) else getattr(special(np), of_numpy)
        if xp is np:
            return f(x)
        return on_host(lambda a: [f(a)], [jax.ShapeDtypeStruct(x.shape, x.dtype)], x)[0]
    return elementwise_function(name, kernel, parameters=parameter, low=False)


airy_ai = _bessel("airy_ai", lambda x: special(np).airy(x)[0].astype(x.dtype), "x")
bessel_j0, bessel_j1 = _bessel("bessel_j0", "j0"), _bessel("bessel_j1", "j1")
bessel_y0, bessel_y1 = _bessel("bessel_y0", "y0"), _bessel("bessel_y1", "y1")
modified_bessel_k0, modified_bessel_k1 = _bessel("modified_bessel_k0", "k0"), _bessel("modified_bessel_k1", "k1")
scaled_modified_bessel_k0, scaled_modified_bessel_k1 = _bessel("scaled_modified_bessel_k0", "k0e", "x"), _bessel("scaled_modified_bessel_k1", "k1e", "x")
modified_bessel_i0 = elementwise_function("modified_bessel_i0", lambda xp, x: special(xp).i0(x), low=False)
modified_bessel_i1 = elementwise_function("modified_bessel_i1", lambda xp, x: special(xp).i1(x), low=False)


def _spherical(xp, x):
    """sin(x) / x, with its limits."""
    plain = (x != 0) & ~xp.isinf(x)
    safe = xp.where(plain, x, xp.ones_like(x))
    return xp.where(plain, xp.sin(safe) / safe, (x == 0).astype(x.dtype))


spherical_bessel_j0 = elementwise_function("spherical_bessel_j0", _spherical, parameters="x", low=False)
