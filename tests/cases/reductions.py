"""Reductions and scans."""
from case import ALL_DTYPES, REAL_DTYPES, Case, Name, bools, case, cplx, distinct, ints, lit, s, t

NAN = lit([[1.0, float("nan"), 3.0], [float("nan"), 0.5, -2.0]])
BAD_DIMS = (s(t(2, 3), 2), s(t(2, 3), -3), s(t(2, 3), "a"))


def reduction(name: str, *more, make=t, **flags) -> Case:
    """No dim, one dim, negative dim, keepdim, a 0-dim and an empty tensor."""
    samples = [s(make(2, 3, 4)), s(make(2, 3, 4), 1), s(make(2, 3, 4), -1, keepdim=True), s(make(2, 3, 4), dim=0),
        s(make()), s(make(3, 4, layout="transposed"), 0), s(make(), 0)]
    return case(name, *samples, *more, **{"errors": BAD_DIMS, **flags})


def several(name: str, *more, make=t, no_dims=None, **flags) -> Case:
    """A reduction that takes several dims as well. `no_dims`: the input of the call whose dims are ()."""
    return reduction(name, s(make(2, 3, 4), (0, 2)), s(make(2, 3, 4), dim=[0, 1], keepdim=True),
                     s(no_dims or make(2, 3), ()), *more, make=make, **flags)


EMPTY = (s(t(0)), s(t(0, 3), 0), s(t(0, 3), 1))

CASES = [
    several("torch.sum", *EMPTY, s(ints(3)), s(bools(3)), s(ints(3, dtype="uint8")), s(t(3), dtype=Name("float64")),
         s(ints(3), dtype=Name("float32")), s(cplx(2, 3), 0), s(ints(2, 3, dtype="int32"), 1),
         s(t(3, 4, layout="expanded"), 0), errors=BAD_DIMS + (s(t(2, 3), (0, 0)), s(t(2, 3), (0, -2))),
         dtypes=ALL_DTYPES),
    several("torch.mean", *EMPTY, s(ints(3), dtype=Name("float32")), s(cplx(2, 3), 0),
         errors=BAD_DIMS + (s(ints(3)), s(bools(2)), s(t(2, 3), (0, 0))), dtypes=ALL_DTYPES),
    several("torch.nansum", s(NAN), s(NAN, 1), s(NAN, dim=(0, 1)), s(ints(3)), dtypes=ALL_DTYPES),
    several("torch.nanmean", s(NAN), s(NAN, 1), s(NAN, dim=(0, 1), keepdim=True), dtypes=REAL_DTYPES),
    reduction("torch.prod", *EMPTY, s(ints(3, low=1)), s(lit([[0.0, 2.0], [3.0, 4.0]])),
         s(lit([[0.0, 0.0], [3.0, 4.0]]), 1), s(ints(3), dtype=Name("float32")), s(cplx(3)), dtypes=ALL_DTYPES),
    *[several(f"torch.{n}", s(t(2, 3), 1, unbiased=False), s(t(2, 3), correction=0),
         s(t(2, 3), dim=1, correction=2, keepdim=True), s(t(2, 3), unbiased=False), s(cplx(2, 3), 1), s(t(1)),
         s(t(2, 3), None), no_dims=t(2, 3, grad=False), errors=BAD_DIMS + (s(ints(3)),), gradgrad=n in ("var", "std"), tol=3,
         dtypes=ALL_DTYPES if n in ("var", "std") else ()) for n in ("var", "std", "var_mean", "std_mean")],
    *[reduction(f"torch.{n}", s(ints(3, high=1)), s(bools(2, 3)), s(bools(2, 3), 1), s(bools(2, 3, 2), (0, 1)),
         s(ints(3, dtype="uint8", high=1)), s(bools(0)), s(t(0, 3), 0), s(bools(2, 3), dim=1, keepdim=True),
         grad=False, dtypes=ALL_DTYPES) for n in ("all", "any")],
    *[several(f"torch.{n}", s(lit([[1.0, 1.0], [0.0, 1.0]])), s(lit([[1.0, 1.0], [0.0, 1.0]]), 1), s(ints(5)),
         s(bools(3)), s(NAN), s(NAN, 1), make=distinct, errors=BAD_DIMS + (s(t(0)), s(t(0, 2), 0), s(cplx(3))),
         dtypes=ALL_DTYPES) for n in ("amax", "amin")],
    *[reduction(f"torch.{n}", s(lit([3.0, 1.0, 3.0])), s(NAN), s(NAN, 1), s(ints(5)), s(bools(3)),
         s(t(2, 3), t(2, 3)), s(t(2, 3), t(3)), make=distinct,
         errors=BAD_DIMS + (s(t(0)), s(t(0, 2), 0), s(cplx(3)), s(t(3), t(4))), dtypes=ALL_DTYPES) for n in ("max",
         "min")],
    *[reduction(f"torch.{n}", s(NAN), s(ints(6)), s(lit([[1.0, 1.0], [0.0, 1.0]]), 1), s(t(2, 3), None),
         make=distinct, grad=False, errors=BAD_DIMS + (s(t(0)), s(cplx(3)), s(bools(3))),
         dtypes=ALL_DTYPES) for n in ("argmax", "argmin")],
    case("torch.aminmax", s(distinct(2, 3)), s(distinct(2, 3), dim=1), s(distinct(2, 3), dim=0, keepdim=True),
         errors=(s(t(0)), s(t(2), dim=1)), gradgrad=False),
    several("torch.logsumexp", s(ints(2, 3), 1), s(t(), ()), errors=BAD_DIMS, dtypes=REAL_DTYPES),
    *[case(f"torch.{n}", s(t(2, 3, 4), 1), s(t(2, 3, 4), -1), s(t(3), 0), s(ints(2, 3), 1),
         s(t(2, 3), dim=0, dtype=Name("float64")), s(t(), 0), s(t(0, 3), 0), s(bools(3), 0), s(cplx(3), 0),
         errors=(s(t(2), 1), s(t(2))), dtypes=ALL_DTYPES) for n in ("cumsum", "cumprod")],
    case("torch.logcumsumexp", s(t(2, 3), 1), s(t(3), 0), errors=(s(t(2), 1),), dtypes=REAL_DTYPES),
    *[case(f"torch.{n}", s(distinct(2, 5), 1), s(distinct(3), 0), s(lit([1.0, 3.0, 3.0, 2.0]), 0), s(ints(5), 0),
         errors=(s(t(2), 1),), gradgrad=False, vmap=False) for n in ("cummax", "cummin")],
    *[case(f"torch.{n}", s(distinct(3, 5)), s(distinct(3, 5), 1), s(distinct(3, 4), 0, keepdim=True),
         s(lit([1.0, float("nan"), 2.0])), s(t()), errors=(s(t(2), 1), s(cplx(2))),
         dtypes=REAL_DTYPES) for n in ("median", "nanmedian")],
    case("torch.mode", s(lit([[1, 2, 2], [3, 3, 1]], "int64"), 1), s(lit([1.0, 2.0, 2.0]), 0),
         s(lit([[1.0, 2.0, 1.0]]), 1, keepdim=True), errors=(s(t(2), 1),), vmap=False),
    *[case(f"torch.{n}", s(distinct(3, 5), 0.3), s(distinct(3, 5), 0.5, 1), s(distinct(3, 5), lit([0.1, 0.9]), dim=0),
         s(distinct(4), 0.37, interpolation="nearest"), s(distinct(4), 0.37, interpolation="lower"),
         s(distinct(4), 0.37, interpolation="higher"), s(distinct(4), 0.37, interpolation="midpoint"),
         s(distinct(2, 4), 0.25, 1, keepdim=True), s(lit([1.0, float("nan"), 2.0, 5.0]), 0.4), errors=(s(t(3), 1.5),
         s(t(3), lit([0.5], "float64")), s(ints(3), 0.5), s(t(0), 0.5), s(t(3), 0.5, interpolation="x")),
         vmap=False) for n in ("quantile", "nanquantile")],
    case("torch.norm", s(t(3, 4)), s(t(3, 4), 1), s(t(3, 4), 2, 1), s(t(3, 4), p=float("inf")),
         s(t(3, 4), p=3, dim=0), s(t(3, 4), "fro"), s(t(3, 4), p="fro", dim=(0, 1)), s(t(3, 4), dim=1, keepdim=True),
         s(t(3, 4), 0), s(t(3, 4), "nuc"), s(t(3, 4), p=-1, dim=1), s(cplx(3)),
         errors=(s(t(3), 2, 1), s(ints(3)), s(t(3), "x")), gradgrad=False, vmap=False, tol=3, out=False),
    case("torch.linalg.norm", s(t(3, 4)), s(t(3, 4), "fro"), s(t(3, 4), 1), s(t(3, 4), 2), s(t(3, 4), float("inf")),
         s(t(5), 3), s(t(3, 4), dim=1), s(t(2, 3, 4), dim=(1, 2)), s(t(3, 4), ord=2, dim=0, keepdim=True), s(cplx(3)),
         errors=(s(ints(3)), s(t(3), "fro")), gradgrad=False, vmap=False, tol=3),
    case("torch.linalg.vector_norm", s(t(3, 4)), s(t(3, 4), 1), s(t(3, 4), float("inf"), 1), s(t(3, 4), 0),
         s(t(3, 4), 3, dim=0, keepdim=True), s(t(3, 4), dim=(0, 1)), s(t(3, 4), dtype=Name("float64")), s(cplx(3)),
         s(lit([0.0, 0.0])), errors=(s(ints(3)), s(t(3), dim=1), s(ints(3), dtype=Name("float32")), s(t(3), dtype=Name("complex64")),
         s(cplx(3), dtype=Name("float32")), s(t(3), dtype=Name("float16")), s(t(3), dtype=Name("int64"))), tol=3),
    case("torch.linalg.matrix_norm", s(t(3, 4)), s(t(2, 3, 4), 1), s(t(3, 4), "nuc"), s(t(3, 4), -1),
         errors=(s(t(3)), s(t(3, 3), 3)), gradgrad=False, vmap=False, tol=3),
    case("torch.dist", s(t(3), t(3)), s(t(3), t(3), 1), s(t(3), t(3), float("inf")), s(t(2, 1), t(3), 3),
         gradgrad=False),
    case("torch.renorm", s(t(3, 4), 2, 0, 1.0), s(t(3, 4), 1, 1, 0.5), gradgrad=False, vmap=False),
    case("torch.trapezoid", s(t(3, 4)), s(t(3, 4), dx=0.5), s(t(4), lit([0.0, 1.0, 3.0, 4.0])), s(t(3, 4), dim=0)),
    case("torch.cumulative_trapezoid", s(t(3, 4)), s(t(4), lit([0.0, 1.0, 3.0, 4.0])), s(t(3, 4), dim=0)),
    case("torch.diff", s(t(3, 5)), s(t(5), 2), s(t(3, 5), dim=0), s(t(3), prepend=t(1)), s(t(3), 1, -1, t(1), t(2)),
         s(bools(4)), s(ints(4)), errors=(s(t()), s(t(3), -1), s(t(3), prepend=t(2, 2))), dtypes=ALL_DTYPES),
    *[case("torch.segment_reduce", s(t(6), how, lengths=ints(3, data=[2, 0, 4], kind="data")), s(t(3, 2), how, lengths=ints(2, data=[1, 2], kind="data")),
           s(t(2, 3), how, lengths=ints(2, 2, data=[[1, 2], [3, 0]], kind="data"), axis=1), s(t(6), how, offsets=ints(3, data=[0, 2, 6], kind="data")),
           s(t(6), how, lengths=ints(2, data=[2, 3], kind="data"), unsafe=True, initial=2), errors=(s(t(6), "x", lengths=ints(1, data=[6], kind="data")),
           s(t(6), how), s(t(6), how, lengths=ints(1, data=[5], kind="data")), s(ints(6), how, lengths=ints(1, data=[6], kind="data")),
           s(t(6), how, lengths=ints(2, data=[-1, 7], kind="data")), s(t(2, 3), how, lengths=ints(2, data=[1, 2], kind="data"), axis=1)),
           gradgrad=False, vmap=False, tag=how) for how in ("sum", "mean", "max", "min", "prod")],
    case("torch.gradient", s(t(5)), s(t(3, 4)), s(t(5), spacing=2.0), s(t(3, 4), dim=1),
         s(t(4), spacing=(lit([0.0, 1.0, 1.5, 3.0]),)), s(t(5), edge_order=2), vmap=False),
]
