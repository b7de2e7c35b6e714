"""torch.special: special functions."""
from .. import ops as _ops  # noqa: F401  (publishes FUNCTIONS)
from .._public import FUNCTIONS as _functions
from .._public import second as _second
from ..ops.polynomials import (  # noqa: F401
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)
from ..ops.special import (  # noqa: F401
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    entr,
    erfcx,
    i0e,
    i1,
    i1e,
    log_ndtr,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    ndtr,
    ndtri,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    spherical_bessel_j0,
    xlog1py,
    zeta,
)

# the rest are torch's own functions, here under SciPy's names
globals().update({name: _second(f"special_{name}", _functions[known]) for name, known in {
    "expit": "sigmoid", "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma", "multigammaln": "mvlgamma", "psi": "digamma",
    **{n: n for n in ("digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p", "log_softmax", "logit", "logsumexp", "polygamma",
                      "round", "sinc", "softmax", "xlogy")}}.items()})

__all__ = sorted(name for name in globals() if name[0] != "_")
