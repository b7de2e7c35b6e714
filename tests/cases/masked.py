"""torch.masked: reductions and normalizations of what a mask keeps."""
from case import Name, bools, case, cplx, ints, lit, pos, s, t

MASK = lit([[True, False, True, True], [False] * 4, [True, True, False, True]], "bool", grad=False)
ROW, COLUMN = lit([True, False, True, True], "bool", grad=False), lit([[True], [False], [True]], "bool", grad=False)
BAD = (s(t(3, 4), 5, mask=MASK), s(t(3, 4), 0, mask=bools(2, 3, 4)), s(t(3, 4), 0, mask=bools(2, 4)))


def reduction(name: str, *more, **flags):
    return case(f"torch.masked.{name}", s(t(3, 4), mask=MASK), s(t(3, 4)), s(t(3, 4), 1, mask=ROW), s(t(3, 4), 0, keepdim=True, mask=COLUMN), *more,
        **{"errors": BAD, "strides": True, "tol": 5, **flags})


def along(name: str, *more, **flags):
    return case(f"torch.masked.{name}", s(t(3, 4), 1, mask=ROW), s(t(3, 4), 0, mask=MASK), s(t(3, 4), -1), s(t(), 0),
        s(t(3, 4), 1, dtype=Name("float64"), mask=ROW), *more, **{"errors": BAD, "strides": True, "tol": 5, **flags})


BOTH = (s(t(3, 4), (0, 1), keepdim=True, mask=MASK), s(t(3, 4), dim=(), mask=MASK), s(t(), mask=lit(True, dtype="bool")))
INTS = s(ints(3, 4), 0, mask=MASK)
SPREAD = (s(t(3, 4), (0, 1), keepdim=True, mask=MASK), s(t(3, 4), 1, False, mask=ROW), s(t(3, 4), 1, correction=0, mask=ROW), INTS, s(cplx(3, 4), 1, mask=ROW))

CASES = [
    reduction("sum", *BOTH, INTS, s(cplx(3, 4), mask=MASK)),
    reduction("prod", *BOTH, INTS, s(cplx(3, 4), 1, mask=MASK)),
    reduction("mean", *BOTH, s(ints(3, 4), dtype=Name("float64"), mask=MASK), errors=(*BAD, s(ints(3, 4)), s(t(3, 4), dtype=Name("int32")))),
    reduction("amax", *BOTH, INTS, errors=(*BAD, s(bools(3, 4), mask=MASK), s(cplx(3, 4), mask=MASK))),
    reduction("amin", *BOTH, INTS, errors=(*BAD, s(bools(3, 4), mask=MASK), s(cplx(3, 4), mask=MASK))),
    reduction("argmax", INTS, s(t(3, 4), 1, dtype=Name("int32"), mask=MASK), errors=(*BAD, s(bools(3, 4), mask=MASK))),
    reduction("argmin", INTS, s(t(3, 4), 1, dtype=Name("int32"), mask=MASK), errors=(*BAD, s(bools(3, 4), mask=MASK))),
    case("torch.masked.median", s(t(3, 4), mask=ROW), s(t(3, 4)), s(t(3, 4), 0, keepdim=True, mask=MASK), s(ints(3, 4), 1, mask=ROW),
         errors=(*BAD, s(ints(3, 4), 1, mask=MASK)), vmap=False),
    reduction("var", *SPREAD, errors=(*BAD, s(t(3, 4), unbiased=True, correction=1))),
    reduction("std", *SPREAD, errors=(*BAD, s(t(3, 4), unbiased=True, correction=1)), grad=False),
    reduction("logsumexp", *BOTH, errors=BAD),
    *[case(f"torch.masked.{name}", s(t(3, 4), 2.0, 1, mask=ROW), s(t(3, 4), 1, 0, mask=COLUMN), s(t(3, 4), float("inf"), 1), s(t(3, 4), -float("inf"), 1, mask=ROW),
           errors=(s(ints(3, 4), 2, 1), s(t(3, 4), 2, 5)), tol=5) for name in ("norm", "normalize")],
    along("cumsum", INTS, s(cplx(3, 4), 1, mask=ROW)), along("cumprod", INTS),
    *[along(name, errors=(*BAD, s(ints(3, 4), 0, mask=MASK), s(cplx(3, 4), 0, mask=MASK))) for name in ("softmax", "log_softmax", "softmin")],
    case("torch.masked.logaddexp", s(t(3, 4), t(3, 4), input_mask=MASK), s(t(3, 4), pos(3, 4), input_mask=MASK, other_mask=ROW), s(t(3, 4), t(3, 4)),
         errors=(s(t(3, 4), t(3, 4), input_mask=bools(2, 3, 4)),), gradgrad=False),
]
