"""repr, str and format of tensors equal real torch's, character for character."""

import importlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from same import same

import torchlike
from torchlike import _tensor_str

REALS = ("float16", "bfloat16", "float32", "float64")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")

_numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=32),
    st.integers(-200, 200).map(float),
    st.sampled_from([0.0, -0.0, 1e-4, 9.9e-5, 1e8, 1.1e8, 1000.0, 1001.0, 0.5, np.nan, np.inf, -np.inf]),
)
_arrays = hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5), elements=_numbers)
_options = st.fixed_dictionaries(
    {
        "precision": st.sampled_from([None, 0, 1, 2, 4, 9]),
        "threshold": st.sampled_from([None, 0, 3, 10, 1000]),
        "edgeitems": st.sampled_from([None, 0, 1, 2, 3]),
        "linewidth": st.sampled_from([None, 1, 12, 40, 80, 200]),
        "profile": st.sampled_from([None, "default", "short", "full", "no such profile"]),
        "sci_mode": st.sampled_from([None, None, True, False]),
    }
)


@pytest.fixture(autouse=True)
def _default_options():
    yield
    for namespace in (torch, _tensor_str):
        namespace.set_printoptions(profile="default")
    for library in (torch, torchlike):
        library.set_default_dtype(library.float32)


def _in_torch(array: np.ndarray, dtype: str) -> torch.Tensor:
    t = torch.from_numpy(array)
    if dtype in COMPLEX:
        t = torch.complex(t, t.flip(-1) if t.ndim else t)
    if dtype in INTEGERS:
        t = t.nan_to_num(0, 100, -100).clamp(-1e9, 1e9).to(torch.int64)
    return t.to(getattr(torch, dtype))


@settings(max_examples=400, deadline=None)
@given(_arrays, st.sampled_from(REALS + FLOAT8 + COMPLEX + INTEGERS), _options, st.sampled_from(REALS), st.booleans())
def test_every_dtype_shape_and_option(array, dtype, options, default_dtype, requires_grad):
    for namespace in (torch, _tensor_str):
        namespace.set_printoptions(profile="default")
        namespace.set_printoptions(**options)
    assert _tensor_str.get_printoptions() == torch._tensor_str.get_printoptions()
    torch.set_default_dtype(getattr(torch, default_dtype))
    t = _in_torch(array, dtype)
    if requires_grad and dtype not in INTEGERS:
        t.requires_grad_()
    data = t.detach().float() if dtype == "bfloat16" or dtype in FLOAT8 else t.detach()
    printed = _tensor_str.tensor_str(
        data.numpy(), dtype=dtype, default_dtype=default_dtype, requires_grad=t.requires_grad
    )
    assert printed == repr(t)


@same
def test_plain_tensors(torch):
    shapes = [(), (3,), (2, 3), (2, 1, 2), (0,), (2, 0), (1001,), (30, 40)]
    dtypes = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "bool", "complex64"]
    return [repr(torch.ones(shape, dtype=getattr(torch, dtype))) for shape in shapes for dtype in dtypes]


@same
def test_float8(torch):
    return [str(torch.tensor([1.0, 2.5, -100.0]).to(dtype)) for dtype in (torch.float8_e4m3fn, torch.float8_e5m2)]


@same
def test_autograd_suffixes(torch):
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    return [repr(x), repr(x * 2), repr((x + 1)[0]), repr(x.detach()), repr(x.double().sum())]


@same
def test_meta(torch):
    with torch.device("meta"):
        made = torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64), torch.zeros((), requires_grad=True)
    return [repr(x) for x in made]


@same
def test_views_and_writes(torch):
    x = torch.arange(12.0).reshape(3, 4)
    x.t()[1] = -1.5
    return [repr(x), repr(x.t()), repr(x[:, ::2])]


@same
def test_parameters(torch):
    p = torch.nn.Parameter(torch.ones(2, 3))
    half = torch.nn.Parameter(torch.zeros(2, dtype=torch.float16), requires_grad=False)
    return [repr(p), str(half), f"{p}", repr([p])]


@same
def test_subclass(torch):
    class Image(torch.Tensor):
        pass

    return repr(torch.ones(2, 3).as_subclass(Image))


@same
def test_format_spec(torch):
    x = torch.tensor(3.14159)
    one = torch.tensor([1.5])
    return [f"{x:.3f}", f"{x:8.2e}|", f"{torch.tensor(7):5d}", f"{torch.tensor(2.5)}", f"{one}", f"{x!r}", format(x)]


@same
def test_format_refusals(torch):
    def error(t):
        with pytest.raises(TypeError) as caught:
            format(t, ".2f")
        return str(caught.value)

    return [error(torch.ones(1)), error(torch.zeros((), device="meta")), error(torch.nn.Parameter(torch.tensor(1.0)))]


@same
def test_default_dtype_needs_no_suffix(torch):
    torch.set_default_dtype(torch.float64)
    return [repr(torch.ones(2)), repr(torch.ones(2, dtype=torch.float32)), repr(torch.ones(1, dtype=torch.complex128))]


@same
def test_set_printoptions_reaches_repr(torch):
    x = torch.arange(6.0) / 7
    torch.set_printoptions(precision=2, threshold=3, edgeitems=1)
    few = repr(x)
    torch.set_printoptions(profile="full", sci_mode=True)
    return [few, repr(x)]


@same
def test_tensor_contents(torch):
    return torch.Tensor.__repr__(torch.ones(2, dtype=torch.int32), tensor_contents="...")


def test_parts_of_the_text(subject, oracle):
    """What classes with a repr of their own are printed from."""
    def facts(torch):
        parts, x = importlib.import_module(f"{torch.__name__}._tensor_str"), torch.arange(40.)
        shown = [parts._tensor_str(x, 7), parts._tensor_str(x.reshape(2, 20), 3), parts._tensor_str(torch.ones(0, 2), 3),
                 parts._str_intern(x[:3], tensor_contents="[hi]")]
        return shown, [parts._add_suffixes("a" * n, ["b=1", "cc=2"], 4, forced) for n in (5, 70, 73, 74, 79) for forced in (False, True)]
    assert facts(subject) == facts(oracle)


def test_printoptions_context_restores():
    before = _tensor_str.get_printoptions()
    with pytest.raises(KeyError), _tensor_str.printoptions(precision=1, sci_mode=True):
        assert _tensor_str.get_printoptions()["sci_mode"] is True
        raise KeyError
    assert _tensor_str.get_printoptions() == before


def test_printing_under_jit_shows_the_tracer():
    import jax

    shown = []

    def f(x):
        shown.append(repr(torchlike.from_jax(x)))
        return x

    jax.jit(f)(np.ones(3, np.float32))
    assert shown[0].startswith("tensor(") and "float32[3]" in shown[0] and shown[0].endswith("size=(3,))")
