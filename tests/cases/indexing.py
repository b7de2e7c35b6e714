"""Indexing in every form, reading and writing, and the named operations that gather and scatter."""
from case import ALL_DTYPES, Case, Sample, bools, case, cplx, ints, lit, pos, s, t


def L(data):
    return lit(data, "int64")


MASK3 = lit([True, False, True], "bool")
MASK34 = lit([[True, False, True, False], [False, False, True, True], [True, True, False, False]], "bool")

BASIC = [0, -1, (0, 1), (-1, -1), slice(None), slice(1, None), slice(None, -1), slice(None, None, 2), slice(1, 3, 2),
    slice(5, 9), slice(2, 1), slice(-2, None), None, ..., (..., 0), (None, 0), (0, None, ...), (slice(None), 1),
    (slice(1, None), slice(None, 2)), (..., None), (slice(None), None, slice(0, 2)), (0, ..., 1), (..., slice(1, 3)),
    (), True, False, (slice(None), slice(None, None, 3)), (L(1), 0), (0, slice(1, 3)), (..., ...)]
ADVANCED = [L([0, 2]), L([-1, 0, 0]), [0, 2], [[0, 1], [1, 2]], (L([0, 1]), L([1, 2])), ([0, 1], [1, 2]),
    (L([[0], [1]]), L([0, 2])), (slice(None), L([0, 2])), (L([0, 2]), slice(1, 3)), (..., L([1, 1])),
    (None, L([0, 1])), (L([0, 1]), None), MASK34, MASK3, (MASK3, 0),
    (slice(None), lit([True, False, True, True], "bool")), (MASK3, L([1, 2])), (L(2), slice(None)), (0, L([1, 2])),
    (L([0, 2]), 1), (slice(None, 2), [True, False, True, False]), lit([], "int64"), lit([0, 1, 1], "uint8"),
    lit([0, 2], "int32"), lit([[0, 1], [2, 0]], "int64"), (L([0]), L([1])), [0.5]]
DEEP = [(0, slice(None), L([0, 1])), (L([0, 1]), slice(None), L([1, 0])), (slice(None), L([0, 1]), L([1, 0])), (L([0,
    1]), L([1, 0]), slice(None)), (slice(None), MASK3, None), (..., L([0, 1]), slice(None)), (L([0, 1]), 0, L([1,
    0])), (slice(None), L([0, 1]), 0), (0, slice(None, None, 2), L([0, 1])), lit([[True, False, True], [False, True,
    False]], "bool"), (L([[0, 1]]), ..., 0), (None, L([1]), None, L([0]))]
BAD = [3, -4, (0, 4), (0, 0, 0), L([3]), L([0, -4]), lit([1.0, 2.0]), lit([True, False], "bool"), lit([[True],
    [False]], "bool"), "a", 1.5, (L([0, 1]), L([0, 1, 2])), slice(0, 3, -1), slice(None, None, 0), [3], {"a": 1}, (0,
    [0, 9])]


def read(torch, x, index):
    return x[index]


def write(torch, x, index, value):
    y = x.clone()
    y[index] = value
    return y


READ = case("Tensor.__getitem__", *[s(t(3, 4), i) for i in BASIC + ADVANCED], *[s(t(2, 3, 4), i) for i in DEEP],
    *[s(t(), i) for i in (None, ..., (), True, False)], errors=tuple(s(t(3, 4), i) for i in BAD) + (s(t(), 0), s(t(),
    slice(None)), s(t(0), 0)), fn=read, vmap=False)
VIEW = case("Tensor.__getitem__", *[s(t(3, 4, layout="transposed"), i) for i in BASIC if not isinstance(i, bool)],
    fn=read, tag="strides", strides=True, vmap=False, gradgrad=False)
WRITE = case("Tensor.__setitem__", *[s(t(3, 4), i, 7.5) for i in BASIC + ADVANCED],
    *[s(t(2, 3, 4), i, 2) for i in DEEP], *[s(t(), i, 3.0) for i in (..., (), None)], s(t(3, 4), 0, t(4)),
    s(t(3, 4), slice(None), t(4)), s(t(3, 4), (slice(None), 1), t(3)), s(t(3, 4), L([0, 2]), t(2, 4)),
    s(t(3, 4), L([0, 2]), t(4)), s(t(3, 4), MASK34, t(6)), s(t(3, 4), MASK34, t()), s(t(3, 4), MASK3, t(2, 4)),
    s(t(3, 4), (L([0, 1]), L([1, 2])), t(2)), s(t(3, 4), (L([0, 1]), slice(1, 3)), t(2, 2)), s(t(3, 4), 0, ints(4)),
    s(ints(3), 1, 2.7), s(ints(3), 1, t()), s(t(3, 4), (0, 1), t(1)), s(t(3, 4), slice(None), t(1, 1, 4)),
    s(t(3, 4), slice(0, 0), t(0, 4)), s(bools(3), 0, True), s(cplx(3), 1, 1 + 2j),
    s(t(3, 4), slice(None, None, 2), t(2, 4)), s(t(3, 4), 0, [1.0, 2.0, 3.0, 4.0][0]),
    errors=tuple(s(t(3, 4), i, 1.0) for i in BAD) + (s(t(3, 4), 0, t(3)), s(t(3, 4), MASK34, t(5)),
    s(t(3, 4), L([0, 1]), t(3, 4)), s(t(3), 0, t(2)), s(t(3), 0, "a"), s(t(3), 0, None), s(t(3), 0, 1j),
    s(ints(3), 0, 1j)), fn=write, vmap=False, gradgrad=False)


def changes(name: str, *samples: Sample, **flags) -> Case:
    return case(name, *samples, **{"vmap": False, **flags})


GATHER = [
    case("torch.gather", s(t(3, 4), 1, L([[0, 1], [2, 3], [1, 1]])), s(t(3, 4), 0, ints(0)), s(t(3, 4), 0, ints(0, 1, 1)), s(t(3, 4), 0, L([[0, 1, 2, 0]])),
         s(t(3, 4), -1, L([[3], [0], [1]])), s(t(), 0, L(0)), s(t(3), 0, L([])),
         s(t(3, 4), dim=1, index=L([[0], [1], [2]])), s(t(3), 0, lit([1, 0], "int32")), errors=(s(t(3, 4), 1, L([0])),
         s(t(3, 4), 1, L([[4]])), s(t(3, 4), 1, L([[-1]])), s(t(3), 1, L([0])), s(t(3), 0, lit([0.0])),
         s(t(2, 2), 0, L([[0, 0, 0]]))), dtypes=ALL_DTYPES),
    case("torch.take_along_dim", s(t(3, 4), L([[0], [1], [2]]), 1), s(t(3, 4), L([0, 5])),
         errors=(s(t(3), t(3), 0), s(t(3, 4), L([0]), 1)), vmap=False),
    case("torch.take", s(t(3, 4), L([0, 5, -1])), s(t(3), L([[0], [1]])),
         errors=(s(t(3), L([3])), s(t(3), lit([0.0]))), vmap=False),
    case("torch.index_select", s(t(3, 4), 0, L([2, 0])), s(t(3, 4), 1, L([1, 1])), s(t(3), 0, lit([0, 1], "int32")),
         s(t(3, 4), -1, L([0])), s(t(3), 0, L(1)), errors=(s(t(3), 0, L([3])), s(t(3), 0, L([-1])),
         s(t(3), 1, L([0])), s(t(3), 0, lit([0.0])), s(t(3), 0, L([[0]]))), dtypes=ALL_DTYPES),
    case("torch.masked_select", s(t(3, 4), MASK34), s(t(3, 4), lit([True, False, True, True], "bool")),
         s(t(4), MASK34), errors=(s(t(3), L([0, 1, 0])), s(t(3), lit([True, False], "bool"))), vmap=False),
    case("torch.masked_fill", s(t(3, 4), MASK34, 9.0), s(t(3, 4), lit([[True], [False], [True]], "bool"), t()),
         s(t(4), MASK34, -1), s(ints(3), MASK3, 2), s(ints(3), MASK3, 1.5), s(t(3, 4), MASK34, float("-inf")),
         errors=(s(t(3), L([0, 1, 0]), 1.0), s(t(3), MASK3, t(3)), s(t(3), lit([True, False], "bool"), 1.0),
         s(t(3), MASK3, "a")), dtypes=ALL_DTYPES),
    case("torch.masked_scatter", s(t(3, 4), MASK34, t(12)), s(t(3, 4), MASK34, t(6)), s(t(4), MASK34, t(9)), s(t(3), lit([False] * 3, "bool"), t(0)),
         errors=(s(t(3), MASK3, t(1)), s(t(3), L([0, 1, 1]), t(3)), s(t(3), MASK3, ints(3))), gradgrad=False,
         vmap=False),
    changes("torch.scatter", s(t(3, 4), 1, L([[0, 1], [2, 3], [1, 0]]), t(3, 2)), s(t(3, 4), 0, ints(0, 4), t(0, 4)), s(t(3, 4), 1, ints(0), t(0)),
         s(t(3, 4), 0, L([[0, 1, 2, 0]]), 5.0), s(t(3), 0, L([2]), t(3)),
         s(t(3), 0, L([0, 0, 1]), t(3), reduce="add"), s(t(3), 0, L([0, 2, 1]), pos(3), reduce="multiply"),
         s(ints(3), 0, L([1]), 9), s(t(3), 0, L([1]), value=2.0), errors=(s(t(3), 0, L([3]), t(1)),
         s(t(3), 0, L([0]), ints(1)), s(t(3), 1, L([0]), t(1)), s(t(3), 0, L([[0]]), t(1)),
         s(t(3), 0, L([0, 1]), t(1)), s(t(3), 0, L([0]), t(1), reduce="x"), s(t(3), 0, lit([0.0]), t(1))),
         gradgrad=False, grad=True),
    changes("torch.scatter_add", s(t(3, 4), 1, L([[0, 0], [2, 3], [1, 1]]), t(3, 2)), s(t(3), 0, L([0, 0, 2]), t(3)),
         errors=(s(t(3), 0, L([3]), t(1)), s(t(3), 0, L([0]), ints(1)), s(t(3), 0, L([-1]), t(1)))),
    changes("torch.scatter_reduce", *[s(t(3), 0, L([0, 0, 2, 2]), t(4, low=0.5), reduce=r,
         include_self=i) for r in ("sum", "mean", "amax", "amin", "prod") for i in (True, False)],
         errors=(s(t(3), 0, L([0]), t(1), reduce="x"),), gradgrad=False),
    changes("torch.index_add", s(t(3, 4), 0, L([0, 0]), t(2, 4)), s(t(3, 4), 1, L([1, 2]), t(3, 2), alpha=0.5),
         errors=(s(t(3), 0, L([3]), t(1)), s(t(3), 0, L([0]), t(2)), s(t(3), 0, L([0]), ints(1)),
         s(t(3), 1, L([0]), t(1))), dtypes=ALL_DTYPES),
    changes("torch.index_copy", s(t(3, 4), 0, L([0, 2]), t(2, 4)), s(t(3, 4), 1, L([3]), t(3, 1)),
         errors=(s(t(3), 0, L([3]), t(1)), s(t(3), 0, L([0]), ints(1)), s(t(3), 0, L([0]), t(2)))),
    changes("torch.index_fill", s(t(3, 4), 0, L([0, 2]), 1.5), s(t(3), 0, L([1]), t()),
         errors=(s(t(3), 0, L([3]), 1.0), s(t(3), 0, L([0]), t(2)))),
    changes("torch.index_reduce",
         *[s(t(3), 0, L([0, 0, 2]), t(3, low=0.5), r) for r in ("prod", "mean", "amax", "amin")], gradgrad=False),
    changes("torch.index_put", s(t(3, 4), (L([0, 1]), L([1, 2])), t(2)), s(t(3), (L([0, 0]),), t(2), accumulate=True),
         s(t(3, 4), (L([0, 1]),), t()), s(t(3, 4), (MASK34,), t()),
         errors=(s(t(3), (L([3]),), t()), s(t(3), (L([0]),), ints(1)), s(t(3), (L([0, 1]),), t(3)))),
    changes("torch.select_scatter", s(t(3, 4), t(4), 0, 1), errors=(s(t(3, 4), t(3), 0, 1),)),
    changes("torch.slice_scatter", s(t(4, 2), t(2, 2), 0, 1, 3), s(t(4), t(2), 0, 0, 4, 2)),
    changes("torch.diagonal_scatter", s(t(3, 3), t(3)), s(t(3, 4), t(3), 1)),
    changes("Tensor.fill_diagonal_", s(t(3, 3), 5.0), s(t(4, 3), 2), s(t(7, 3), 1.0, wrap=True),
         fn=lambda torch, x, *a, **k: x.clone().fill_diagonal_(*a, **k), errors=(s(t(3), 1.0),), gradgrad=False),
    changes("Tensor.put_", s(t(2, 3), L([0, 4]), t(2)), s(t(3), L([1, 1]), t(2), accumulate=True),
         fn=lambda torch, x, *a, **k: x.clone().put_(*a, **k), gradgrad=False, errors=(s(t(3), L([3]), t(1)),)),
    changes("torch.put", s(t(2, 3), L([0, 4]), t(2)), gradgrad=False),
]

CASES = [READ, VIEW, WRITE] + GATHER
