"""Sorting, selection of the largest, unique values."""
from case import INT_DTYPES, REAL_DTYPES, bools, case, distinct, ints, lit, s, t

TIES = lit([3.0, 1.0, 3.0, 2.0, 1.0])
NAN = lit([2.0, float("nan"), -1.0, float("inf")])

CASES = [
    case("torch.sort", s(distinct(3, 5)), s(distinct(3, 5), 0), s(distinct(3, 5), -1, True), s(TIES, stable=True),
         s(TIES, stable=True, descending=True), s(NAN), s(NAN, descending=True), s(t()), s(t(0)),
         s(bools(4), stable=True), errors=(s(t(3), 1), s(t(3), "a")), dtypes=INT_DTYPES + REAL_DTYPES, vmap=False,
         method=True),
    case("Tensor.sort", s(distinct(3, 5), descending=True), s(distinct(3, 5), dim=0)),
    case("torch.argsort", s(distinct(3, 5)), s(distinct(3, 5), 0), s(distinct(5), descending=True),
         s(TIES, stable=True), s(TIES, dim=0, stable=True, descending=True), errors=(s(t(3), 1),), grad=False,
         dtypes=INT_DTYPES + REAL_DTYPES, vmap=False),
    case("torch.msort", s(distinct(3, 5)), s(distinct(4)), vmap=False),
    case("torch.topk", s(distinct(3, 5), 2), s(distinct(3, 5), 2, 0), s(distinct(5), 3, largest=False),
         s(distinct(5), 0), s(distinct(5), 5), s(distinct(5), k=2, dim=-1, sorted=True), s(NAN, 2), s(t(), 1),
         errors=(s(t(3), 4), s(t(3), 1, 1), s(t(3), -1), s(t(3))), dtypes=INT_DTYPES + REAL_DTYPES, vmap=False),
    case("torch.kthvalue", s(distinct(3, 5), 2), s(distinct(3, 5), 1, 0), s(distinct(5), 5, keepdim=True),
         errors=(s(t(3), 4), s(t(3), 0), s(t(3), 1, 1)), vmap=False, dtypes=INT_DTYPES + REAL_DTYPES),
    case("torch.unique", s(ints(8)), s(ints(8), return_inverse=True), s(ints(8), return_counts=True),
         s(ints(3, 4, high=2), return_inverse=True, return_counts=True),
         s(lit([[1, 2], [1, 2], [0, 3]], "int64"), dim=0),
         s(lit([[1, 2], [1, 2], [0, 3]], "int64"), dim=0, return_inverse=True, return_counts=True),
         s(lit([[1, 1], [2, 2]], "int64"), dim=1), s(TIES), s(bools(5)), s(ints(0)), s(ints(8), sorted=True),
         errors=(s(ints(3), dim=1),), grad=False, vmap=False, method=True, dtypes=INT_DTYPES),
    case("torch.unique_consecutive", s(lit([1, 1, 2, 2, 1], "int64")),
         s(lit([1, 1, 2, 2, 1], "int64"), return_inverse=True, return_counts=True),
         s(lit([[1, 2], [1, 2], [0, 3]], "int64"), dim=0), grad=False, vmap=False),
]
