"""Comparisons, tests of values, membership."""
from case import ALL_DTYPES, REAL_DTYPES, bools, case, cplx, ints, lit, pos, s, t
from cases.elementwise import SPECIAL

CASES = [
    *[case(f"torch.{n}", s(ints(3, 4), ints(3, 4)), s(t(3, 4), 0.5), s(t(3, 1), t(4)), s(t(3), ints(3)), s(SPECIAL, SPECIAL), s(t(), t(0)),
           s(ints(3), 1.5), s(bools(3), bools(3)), errors=(s(t(3), t(4)), s(t(3), "a"), s(t(3), None)), dtypes=ALL_DTYPES, grad=False)
      for n in ("eq", "ne", "lt", "le", "gt", "ge", "greater", "greater_equal", "less", "less_equal", "not_equal")],
    case("torch.equal", s(t(3), t(3)), s(ints(3), ints(3)), s(t(3), t(2)), s(lit([1.0]), lit([1.0])), s(t(0), t(0)),
         errors=(s(t(3), 1.0), s(t(3), [1])), grad=False, vmap=False),
    case("torch.allclose", s(t(3), t(3)), s(lit([1.0, 2.0]), lit([1.0, 2.0 + 1e-7])), s(lit([1.0]), lit([1.1]), rtol=0.2), s(SPECIAL, SPECIAL),
         s(SPECIAL, SPECIAL, equal_nan=True), s(lit([1.0]), lit([1.05]), 0.0, 0.1), errors=(s(t(3), t(3, dtype="float64")), s(t(3), 1.0)),
         grad=False, vmap=False),
    case("torch.isclose", s(t(3), t(3)), s(lit([1.0, 2.0]), lit([1.0, 2.0 + 1e-7])), s(SPECIAL, SPECIAL, equal_nan=True),
         s(lit([1.0, 2.0]), lit([1.1, 2.5]), rtol=0.0, atol=0.2), s(ints(3), ints(3)), errors=(s(t(3), ints(3)),), grad=False),
    case("torch.isin", s(ints(3, 4), ints(2)), s(ints(4), 2), s(3, ints(4)), s(ints(4), ints(3), invert=True), s(t(3), t(2)),
         s(ints(4), ints(3), assume_unique=True), grad=False, method=False),
    case("torch.is_tensor", s(t(2)), s(3), s([1.0]), grad=False, vmap=False),
    *[case(f"torch.{n}", s(t(2)), s(ints(2)), s(cplx(2)), s(bools(2)), errors=(s(2),), grad=False, vmap=False, dtypes=ALL_DTYPES)
      for n in ("is_floating_point", "is_complex")],
    case("torch.is_nonzero", s(lit(0.0)), s(lit([3])), s(lit(False, "bool")), errors=(s(t(2)), s(t(0))), grad=False, vmap=False),
    case("torch.is_conj", s(cplx(2)), s(t(2)), grad=False, vmap=False),
    case("torch.is_same_size", s(t(2), t(2)), s(t(2), t(3)), grad=False, vmap=False),
    case("torch.bucketize", s(t(3, 4), lit([-1.0, 0.0, 1.0])), s(lit([0.0, 1.0]), lit([-1.0, 0.0, 1.0]), right=True), s(0.5, lit([0.0, 1.0])),
         s(ints(3), lit([1, 3], "int64"), out_int32=True), grad=False, method=False, vmap=False),
    case("torch.searchsorted", s(lit([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]), lit([[3.0, 6.0], [3.0, 6.0]])), s(lit([1.0, 3.0, 5.0]), t(2, 2, low=0, high=6)),
         s(lit([1.0, 3.0, 5.0]), 3.0), s(lit([1.0, 3.0, 5.0]), lit([3.0]), right=True), s(lit([1.0, 3.0, 5.0]), lit([3.0]), side="right"),
         s(lit([1.0, 3.0, 5.0]), lit([3.0]), out_int32=True), s(lit([5.0, 1.0, 3.0]), lit([3.0]), sorter=lit([1, 2, 0], "int64")),
         errors=(s(lit([[1.0, 3.0]]), lit([[1.0], [2.0]])), s(lit([1.0, 3.0]), lit([3.0]), right=False, side="nope")),
         grad=False, method=False, vmap=False),
    case("torch.count_nonzero", s(ints(3, 4, high=1)), s(ints(3, 4, high=1), dim=0), s(ints(3, 4, high=1), dim=(0, 1)), s(bools(3)), grad=False,
         dtypes=ALL_DTYPES),
    case("torch.nonzero", s(ints(3, 4, high=1)), s(bools(3)), s(bools(2, 2), as_tuple=True), s(lit(1.0)), s(lit(0.0)), s(t(0, 2)),
         grad=False, vmap=False, dtypes=ALL_DTYPES, values=True),
    case("torch.argwhere", s(ints(3, 4, high=1)), s(bools(3)), s(lit(1.0)), grad=False, vmap=False),
    case("torch.bincount", s(ints(8)), s(ints(8), minlength=9), s(ints(8), t(8)), s(ints(0)), s(ints(8), weights=ints(8)),
         errors=(s(t(3)), s(ints(2, 2)), s(lit([-1], "int64")), s(ints(3), minlength=-1), s(ints(3), t(2))), grad=False, vmap=False),
    case("torch.histc", s(t(20), bins=5), s(t(20), bins=4, min=-1, max=1), s(pos(9)), errors=(s(t(3), bins=0), s(t(3), min=2, max=1)),
         grad=False, vmap=False, dtypes=REAL_DTYPES),
    case("torch.histogram", s(t(20), bins=5), s(t(20), 4, range=(-1.0, 1.0)), s(t(8), lit([-1.0, 0.0, 2.0])), s(t(6), 3, weight=pos(6), density=True),
         grad=False, vmap=False),
    case("torch.result_type", s(t(2), ints(2)), s(ints(2), 1.5), s(t(dtype="float64"), t(2)), s(1, 2.0), s(bools(2), 3), grad=False, vmap=False),
]
