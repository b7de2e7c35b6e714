"""Making tensors: from data, filled, ranges, like others, windows."""
from case import ALL_DTYPES, Case, Name, case, ints, lit, s, t

DATA = (1, 1.5, True, 2j, [1, 2], [1, 2.5], [True, 2], [[1, 2], [3, 4]], [], [[], []], [1, 2j], (1, 2), [(1, 2), (3,
    4)], 2 ** 40, [2 ** 40], -1, [True, False])


def made(name: str, *samples, **flags) -> Case:
    return case(name, *samples, **{"grad": False, "vmap": False, "method": False, "inplace": False, **flags})


def typed(*args, **kwargs):
    """The same call once more for each dtype."""
    return tuple(s(*args, **kwargs, dtype=Name(d)) for d in ALL_DTYPES)


CASES = [
    made("torch.tensor", *[s(d) for d in DATA], *typed([0, 1, 2]), *typed([0.0, 1.5]), s(1j, dtype=Name("bool")), s([1j, 0j], dtype=Name("bool")),
         s([1.5, 2.5], dtype=Name("int64")), s([1.0], requires_grad=True), s(float("nan")),
         s([[1.0, 2.0]], device="cpu"), errors=(s([[1, 2], [3]]), s("a"), s(["a"]), s(None), s([None]), s({1: 2}),
         s([1, 2], requires_grad=True), s([[1, 2], 3]), s([1j], dtype=Name("float32")), s(2 ** 70),
         s([300], dtype=Name("uint8")), s(1.0, dtype="float32"))),
    made("torch.as_tensor", *[s(d) for d in DATA[:9]], s([1, 2], dtype=Name("float64")), s(t(2, 3)),
         s(t(2), dtype=Name("float64")), errors=(s("a"), s([[1, 2], [3]]))),
    made("torch.asarray", s([1, 2]), s(t(2, 3)), s([1.0], dtype=Name("int32"))),
    made("torch.scalar_tensor", s(1.5), s(2), s(3, dtype=Name("int64"))),
    *[made(f"torch.{n}", s(2, 3), s((2, 3)), s([2]), s(()), s(0), s(2, dtype=Name("bool")), s(size=(2, 2)),
         s(2, requires_grad=True), s(2, device="cpu"), *typed(2),
         errors=(s(-1), s(2, -1), s("a"), s(1.5), s(2, dtype=3), s((2, "a"))), values=n != "empty") for n in ("zeros",
         "ones", "empty")],
    made("torch.full", s((2, 3), 1.5), s((2,), 3), s((2,), True), s((2,), 1j), s((), 4),
         s((2,), 1, dtype=Name("float32")), s((2,), 2.7, dtype=Name("int64")), s(size=(2,), fill_value=1.0),
         *typed((2,), 1), errors=(s(2, 1.0), s((2,), "a"), s((-1,), 1.0), s((2,)))),
    made("torch.arange", s(5), s(2, 7), s(1, 10, 3), s(5.0), s(0, 1, 0.25), s(5, 0, -2), s(0),
         s(5, dtype=Name("float32")), s(1, 2.5, 0.5), s(2, 2), s(start=1, end=4), s(3, dtype=Name("int32")),
         s(0.5, 3), s(True), s(end=4), *[s(4, dtype=Name(d)) for d in ALL_DTYPES[1:10]], errors=(s(), s(5, 0),
         s(0, 5, 0), s(0, 5, -1), s("a"), s(0, float("inf")), s(0, float("nan")), s(3, dtype=Name("bool")))),
    made("torch.range", s(1, 4), s(0, 2, 0.5)),
    made("torch.linspace", s(0, 1, 5), s(-1, 1, steps=4), s(0, 10, 1), s(0, 10, 0), s(0, 9, 4, dtype=Name("int64")),
         s(3, -3, 7), s(0, 1, 3, dtype=Name("float64")), s(0.1, 0.9, 11), s(lit(0.0), lit(1.0), 3),
         errors=(s(0, 1), s(0, 1, -1), s(0, 1, 2.5), s("a", 1, 2), s(0, float("nan"), 3, dtype=Name("int64")),
         s(0, 300, 3, dtype=Name("uint8")), s(0, 1e40, 3))),
    made("torch.logspace", s(0, 2, 3), s(0, 1, 4, base=2.0), s(0, 3, 4, dtype=Name("float64")), errors=(s(0, 1, -1),),
         tol=3),
    made("torch.eye", s(3), s(2, 3), s(3, 2, dtype=Name("int64")), s(0), s(2, dtype=Name("bool")),
         errors=(s(-1), s(2, -1), s(2.5))),
    *[made(f"torch.{n}_like", s(t(2, 3)), s(ints(2)), s(t(2), dtype=Name("float64")), s(t(2, 3, layout="transposed")),
         s(t(2), requires_grad=True), s(t(0)), s(t(2, 2, 3, 3, layout="channels_last")), errors=(s(2), s([1, 2])),
         dtypes=ALL_DTYPES, values=n != "empty", strides=True) for n in ("zeros", "ones", "empty")],
    made("torch.full_like", s(t(2, 3), 1.5), s(ints(2), 3), s(t(2), 1, dtype=Name("int32")), s(ints(2), True),
         errors=(s(t(2)), s(ints(2), 1j), s(t(2), "a")), dtypes=ALL_DTYPES, strides=True),
    *[made(f"Tensor.new_{n}", s(t(2, 3), 2, 2), s(ints(2), (2,)), s(t(2), (2, 3), dtype=Name("float64")),
         s(t(2), 3, requires_grad=True), errors=(s(t(2), -1), s(t(2), "a")), dtypes=ALL_DTYPES,
         values=n != "empty") for n in ("zeros", "ones", "empty")],
    made("Tensor.new_full", s(t(2), (2, 3), 1.5), s(ints(2), (2,), 3), s(t(2), (2,), 1, dtype=Name("bool")),
         errors=(s(t(2), 2, 1.0), s(t(2), (2,)))),
    made("Tensor.new_tensor", s(t(2), [1, 2]), s(ints(2), [1.5, 2.5]), s(ints(2), 3),
         s(t(2), [1], dtype=Name("int32"))),
    made("Tensor.new", s(t(2), 2, 3), s(t(2), [1.0, 2.0]), s(ints(2), [1]), s(t(2)), values=False),
    made("torch.empty_strided", s((2, 3), (1, 2)), s((2,), (1,), dtype=Name("int64")),
         errors=(s((2,), (1, 1)), s((2,), (-1,))), values=False, strides=True),
    made("Tensor.new_empty_strided", s(t(2), (2, 3), (1, 2)), values=False, strides=True),
    made("torch.empty_permuted", s((2, 3), (1, 0)), values=False, strides=True),
    *[made(f"torch.{n}_indices", s(3, 3), s(3, 4, 1), s(4, 3, -1), errors=(s(-1, 2),)) for n in ("tril", "triu")],
    *[made(f"torch.{n}_window", s(5), s(5, periodic=False), s(6, dtype=Name("float64")), s(1), s(0), errors=(s(-1),),
         tol=3) for n in ("hann", "hamming", "blackman", "bartlett", "kaiser")],
    made("torch.kaiser_window", s(5, True, 8.0), s(6, periodic=False, beta=4.0), tag="beta", tol=3),
    made("torch.from_numpy", s(t(2, 3)), s(ints(3)), fn=lambda torch, x: torch.from_numpy(x.numpy()), errors=()),
    made("torch.frombuffer", s(t(4)),
         fn=lambda torch, x: torch.frombuffer(bytearray(x.numpy().tobytes()), dtype=torch.float32)),
    case("torch.fill", s(t(2, 3), 5.0), s(t(2), t()), s(ints(2), 3), errors=(s(t(2), t(2)), s(t(2), "a")),
         dtypes=ALL_DTYPES, vmap=False),
    case("torch.promote_types", s(Name("float32"), Name("int64")), s(Name("uint8"), Name("int8")), grad=False),
    case("torch.can_cast", s(Name("float32"), Name("int64")), s(Name("int32"), Name("float16")), grad=False),
]
