"""erf of float32 arrays in NumPy, within 3 units in the last place, and the distribution function of normal numbers, within 1.2e-7.
Of arrays up to a few thousand elements erf and its inverse are scipy's in double, rounded once, as exact as torch's: that is quicker there.

erf(x) = tanh(x * p(x^2)). atanh(erf(x)) / x is smooth, so a polynomial of degree 8, fitted for the least relative error
of the result on |x| <= 4, does; beyond 4 erf is 1 in float32. NumPy's tanh is vectorised, scipy's erf is not.

erfinv(x) / x is smooth in log(1 - x^2), so the polynomial of Giles ("Approximating the erfinv function", 2010) does where |x| < 0.9966;
the few elements beyond (initial weights) go to scipy, which takes about 100 ns for each.

log(Phi(-|x|)) is smooth too: its polynomial was fitted for the least absolute error of Phi on |x| <= 5.6, beyond which Phi is 0 or 1.
"""
from __future__ import annotations

import numpy as np

_P = np.array([1.1283792128474355, 0.10277096580277323, -0.00020045380672860293, -0.0006065252311053324, 7.862452551649436e-05,
               -2.661246445547115e-06, -3.613389458843089e-07, 3.960167395721001e-08, -1.1345677953350267e-09], np.float32)
_FAR = np.float32(16.0)
_TAIL = np.array([-0.6931471655063888, -0.7978856867928037, -0.31829658672119854, -0.03639371276051635, 0.004904343572158468,
                  -0.00010110970404349012, -0.00012653224516259576, 2.6769835427480688e-05, -1.9214359228588964e-06], np.float32)
_END, _HALF, _SIGN = np.float32(5.6), np.float32(0.5), np.int32(-1 << 31)
_INVERSE = np.array([1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06, 3.43273939e-07,
                     2.81022636e-08], np.float32)
_CENTRE, _TAIL_BEGINS = np.float32(2.5), np.float32(0.9966)
_SMALL = 1 << 11  # elements, below which scipy's loop costs less than the calls of NumPy for a polynomial
_BLOCK = 1 << 14  # elements that stay in the first cache level during the polynomial


def _in_double(function, x):
    """scipy's own float32 loop of erfinv is off by more than a unit in the last place."""
    return function(x.astype(np.float64)).astype(np.float32) if getattr(x, "dtype", None) == np.float32 else function(x)


def erf(x: np.ndarray) -> np.ndarray:
    """erf, elementwise; float64, small arrays and scalars go to scipy."""
    if not isinstance(x, np.ndarray) or x.dtype != np.float32 or x.size < _SMALL:
        from scipy.special import erf as exact
        return _in_double(exact, x)
    flat = x.reshape(-1)
    out = np.empty_like(flat)
    square = np.empty(min(_BLOCK, flat.size), np.float32)
    for start in range(0, flat.size, _BLOCK):
        part, r = flat[start:start + _BLOCK], out[start:start + _BLOCK]
        s = square[:part.size]
        np.multiply(part, part, out=s)
        np.minimum(s, _FAR, out=s)
        r.fill(_P[-1])
        for c in _P[-2::-1]:
            r *= s
            r += c
        r *= part
        np.tanh(r, out=r)
    return out.reshape(x.shape)


def normal_distribution(x: np.ndarray) -> np.ndarray:
    """Phi(x) = (1 + erf(x / sqrt(2))) / 2, elementwise; what is no float32 array goes to scipy."""
    if not isinstance(x, np.ndarray) or x.dtype != np.float32 or x.size < 64:
        from scipy.special import erf as exact
        return (1 + exact(x * np.asarray(0.5 ** 0.5, x.dtype))) * np.asarray(0.5, x.dtype)
    flat, size = x.reshape(-1), min(_BLOCK, x.size)
    out, sizes, ends = np.empty_like(flat), np.empty(size, np.float32), np.full(size, _END)
    for start in range(0, flat.size, _BLOCK):
        part, r = flat[start:start + _BLOCK], out[start:start + _BLOCK]
        s = sizes[:part.size]
        np.abs(part, out=s)
        np.minimum(s, ends[:part.size], out=s)
        np.multiply(s, _TAIL[-1], out=r)
        for c in _TAIL[-2:0:-1]:
            r += c
            r *= s
        r += _TAIL[0]
        np.exp(r, out=r)
        np.subtract(_HALF, r, out=r)  # what is beyond a half has the sign of x
        bits, signs = r.view(np.int32), s.view(np.int32)
        np.bitwise_and(part.view(np.int32), _SIGN, out=signs)
        np.bitwise_xor(bits, signs, out=bits)
        r += _HALF
    return out.reshape(x.shape)


def erfinv(x: np.ndarray) -> np.ndarray:
    """The inverse of erf, elementwise; float64, small arrays and scalars go to scipy."""
    from scipy.special import erfinv as exact
    if not isinstance(x, np.ndarray) or x.dtype != np.float32 or x.size < _SMALL:
        return np.where(x == 0, x, _in_double(exact, x))  # scipy loses the sign of zero
    flat = x.reshape(-1)
    out, depths = np.empty_like(flat), np.empty(min(_BLOCK, flat.size), np.float32)
    with np.errstate(invalid="ignore", divide="ignore"):
        for start in range(0, flat.size, _BLOCK):
            part, r = flat[start:start + _BLOCK], out[start:start + _BLOCK]
            w = depths[:part.size]
            np.subtract(1, part, out=w)
            np.add(part, 1, out=r)
            w *= r
            np.log(w, out=w)
            np.negative(w, out=w)
            w -= _CENTRE
            np.multiply(w, _INVERSE[-1], out=r)
            for c in _INVERSE[-2:0:-1]:
                r += c
                r *= w
            r += _INVERSE[0]
            r *= part
        beyond = np.flatnonzero(~(np.abs(flat) < _TAIL_BEGINS))
        out[beyond] = _in_double(exact, flat[beyond])
    return out.reshape(x.shape)
