"""torch.signal.windows beside real torch's."""
import numpy as np
import pytest
from same import caught, same

NAMES = "bartlett blackman cosine exponential gaussian general_hamming hamming hann kaiser nuttall".split()


@pytest.mark.parametrize("name", NAMES)
@same
def test_window(torch, name):
    window = getattr(torch.signal.windows, name)
    made = [window(m, sym=sym, dtype=d) for m in (0, 1, 2, 5, 8) for sym in (True, False) for d in (None, torch.float64)]
    bad = [caught(window, -1), caught(window, 3, dtype=torch.float16), caught(window, 3, layout=torch.sparse_coo), caught(window, "a"), caught(window, 2.5)]
    return made, bad, window(4, requires_grad=True).requires_grad, window(1, requires_grad=True)


@same
def test_parameters(torch):
    w = torch.signal.windows
    made = [w.exponential(5, tau=2.0), w.exponential(5, center=1, sym=False), w.gaussian(6, std=0.7), w.kaiser(7, beta=3.0), w.kaiser(4, beta=0.0),
        w.general_cosine(6, a=[0.5, 0.3, 0.2]), w.general_cosine(6, a=(1.0,), sym=False), w.general_hamming(5, alpha=0.7)]
    bad = [caught(w.exponential, 5, tau=-1), caught(w.exponential, 5, center=2), caught(w.gaussian, 5, std=0), caught(w.kaiser, 5, beta=-1),
        caught(w.general_cosine, 5, a=3), caught(w.general_cosine, 5, a=[]), caught(w.general_cosine, 5)]
    return made, bad, sorted(w.__all__)


TRANSFORMS = [way + kind + size for kind in ("fft", "rfft", "hfft") for way in ("", "i") for size in ("", "2", "n")]


@pytest.mark.parametrize("name", TRANSFORMS)
@same(strides=True)
def test_a_transform_lies_as_in_torch(torch, name):
    rng, found = np.random.default_rng(len(name)), []
    for kind in (torch.float64, torch.complex128)[:1 if name.startswith(("rfft", "ihfft")) else 2]:
        for order in ((0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2)):
            x = torch.from_numpy(rng.standard_normal((3, 4, 5, 6))).permute(order).to(kind)
            for dims in ((1,), (2, 0), (3, 1, 2)):
                if name[-1] in "2n":
                    dims = dims[:2] if name[-1] == "2" and len(dims) > 1 else dims
                    made = [getattr(torch.fft, name)(x, s, dims) for s in (None, (4,) * len(dims))]
                else:
                    made = [getattr(torch.fft, name)(x, n, dims[0]) for n in (None, 3, 7)]
                found += [(y.is_conj(), y.resolve_conj()) for y in made]
    return found


@same
def test_ends_of_blackman_windows(torch):
    """Rounding errors of torch's precision, which are printed."""
    return [str(torch.blackman_window(n, periodic, dtype=dtype)) for n in (2, 4, 5, 9) for periodic in (True, False) for dtype in (torch.float32, torch.float64)]
