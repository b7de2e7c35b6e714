"""Random numbers: with the same seed, torch's own numbers."""
from case import Case, Name, case, ints, lit, pos, s, t


def draws(name: str, *samples, **flags) -> Case:
    return case(name, *samples, **{"grad": False, "vmap": False, "inplace": False, "method": False, "out": False,
        **flags})


def edits(name: str, *samples, **flags) -> Case:
    """An in-place draw `x.f_(...)`."""
    leaf = name.rsplit(".", 1)[1]
    return draws(name, *samples, fn=lambda torch, x, *a, **k: getattr(x, leaf)(*a, **k), **flags)


CASES = [
    draws("torch.rand", s(5), s(2, 3), s((4, 5)), s(3, dtype=Name("float64")), s(0), s(()), s(40),
         s(3, dtype=Name("bfloat16")), s(3, dtype=Name("float16")), s(2, requires_grad=True),
         errors=(s(-1), s("a"), s(2, dtype=Name("int64")))),
    draws("torch.randn", s(5), s(2, 3), s(15), s(16), s(17), s(40), s((5, 7)), s(20, dtype=Name("float64")),
         s(3, dtype=Name("float64")), s(()), s(16, dtype=Name("bfloat16")), errors=(s(-1), s(2, dtype=Name("int64"))),
         tol=2),
    draws("torch.randint", s(10, (5,)), s(2, 7, (3, 4)), s(high=3, size=(4,)), s(0, 2 ** 40, (5,)),
         s(5, (3,), dtype=Name("int32")), s(-5, 5, (4,)), s(2, (5,), dtype=Name("bool")),
         s(9, (3,), dtype=Name("float32")), s(2 ** 33, (3,)),
         errors=(s(0, (3,)), s(5, 2, (3,)), s(3), s(300, (2,), dtype=Name("uint8")))),
    draws("torch.randperm", s(10), s(1), s(0), s(100), s(5, dtype=Name("int32")), s(6, dtype=Name("float32")),
         errors=(s(-1), s(300, dtype=Name("uint8")))),
    draws("torch.rand_like", s(t(2, 3)), s(t(5, 4, layout="transposed")), s(t(2, 3, 4, 5, layout="channels_last")), s(ints(3), dtype=Name("float32")), errors=(s(ints(3)),)),
    draws("torch.randn_like", s(t(2, 3)), s(t(5, 4, layout="transposed")), s(t(5, 5)), s(t(3, dtype="float64")), errors=(s(ints(3)),), tol=2),
    draws("torch.randint_like", s(t(5), 10), s(t(5, 4, layout="transposed"), 10), s(ints(4), 2, 9), errors=(s(t(2), 0),)),
    draws("torch.bernoulli", s(pos(4, 5, low=0, high=1)), s(t(6), 0.3), s(pos(5, low=0, high=1, dtype="float64")),
         errors=(s(lit([1.5])), s(t(2), -0.5), s(ints(3)))),
    draws("torch.multinomial", s(pos(5), 2), s(pos(2, 5), 3), s(pos(5), 20, replacement=True), s(pos(2, 4), 6, True),
         s(lit([0.0, 1.0, 0.0]), 1),
         errors=(s(pos(3), 4), s(pos(3), 0), s(lit([-1.0, 1.0]), 1), s(pos(2, 2, 2), 1), s(ints(3), 1))),
    draws("torch.normal", s(0.0, 1.0, (5,)), s(t(5), pos(5)), s(t(20), 2.0), s(1.0, pos(4)), s(0.0, 2.0, size=(4, 5)),
         errors=(s(0.0, -1.0, (2,)), s(t(2), pos(3))), tol=2),
    draws("torch.poisson", s(pos(6, low=0.5, high=20)), s(pos(40, low=5, high=300, dtype="float64")), s(lit([0.0, 1.0])),
         errors=(s(lit([-1.0])), s(ints(2)), s(1.0))),
    draws("torch.binomial", s(lit([5.0, 10.0, 40.0]), lit([0.3, 0.5, 0.9])), s(lit([[100.0], [3000.0]]), pos(9, low=0.01, high=0.99)),
         s(lit([3.0, 3.0, 0.0]), lit([0.0, 1.0, 0.5])), errors=(s(ints(2), pos(2)), s(pos(2), 0.5), s(pos(2), pos(2, dtype="float64")))),
    edits("Tensor.uniform_", s(t(5)), s(t(3, 4), -1, 1), s(t(4, dtype="float64")), s(t(5, layout="strided")),
         s(t(3, 2, layout="transposed")), s(t(5), lit(1.0), lit(3.0)), errors=(s(t(2), 1, 0), s(ints(2)))),
    edits("Tensor.normal_", s(t(5)), s(t(5), lit(1.0), lit(2)), s(t(20), lit(1.0), 0.5), s(t(20), 1.0, 2.0), s(t(3, 6, layout="transposed")),
         errors=(s(t(2), 0, -1), s(ints(2)), s(t(2), lit([1.0]), 2.0), s(t(2), "a", 1), s(t(2), 0, 1j)), tol=2),
    edits("Tensor.random_", s(ints(5)), s(t(5, 4, layout="transposed"), 10), s(ints(5), 10), s(ints(5), 2, 9), s(t(5)), s(t(4), 0, 2),
         s(ints(5, dtype="uint8")), s(ints(4, dtype="int32")), errors=(s(ints(2), 5, 2),)),
    edits("Tensor.bernoulli_", s(t(5)), s(t(5, 4, layout="transposed"), 0.5),
         s(t(5, 4, layout="transposed"), pos(5, 4, low=0, high=1)), s(t(6), 0.2), s(ints(5), 0.5), s(t(4), pos(4, low=0, high=1)),
         errors=(s(t(2), 2.0),)),
    edits("Tensor.exponential_", s(t(5), lit(0.4)), s(t(5)), s(t(20), 2.0), errors=(s(t(2), -1.0),)),
    edits("Tensor.geometric_", s(t(5), lit(0.4)), s(t(5), 0.3), s(t(5, 4, layout="transposed"), 0.3), s(ints(6), 0.5), errors=(s(t(2), 0.0),)),
    edits("Tensor.log_normal_", s(t(5), lit(0.4), lit(2.0)), s(t(5)), s(t(20), 0.5, 0.25), tol=3),
    edits("Tensor.cauchy_", s(t(5), lit(0.4), lit(2.0)), s(t(5)), s(t(4), 1.0, 2.0), tol=5),
    *[case(f"nn.functional.{n}", s(shape, 0.5), s(shape, p=0.3), s(shape, 0.5, False), s(shape, 0.0), s(shape, 1.0),
         errors=(s(shape, 1.5), s(shape, -0.1)), vmap=False, gradgrad=n == "dropout") for n,
         shape in (("dropout", t(4, 5)), ("dropout1d", t(2, 3, 4)), ("dropout2d", t(2, 3, 2, 2)),
         ("dropout3d", t(1, 3, 2, 2, 2)), ("alpha_dropout", t(4, 5)), ("feature_alpha_dropout", t(2, 3, 4)))],
    case("torch.native_dropout", s(t(4, 5), 0.5, True), s(t(4, 5, grad=False), 0.3, None), s(t(4, 5), 0.5, False), s(t(4, 5), 1.0, True), s(t(0, 5), 0.5, True),
         s(ints(3), 0.5, False), errors=(s(t(3), 1.5, True), s(t(3), 0.5), s(ints(3), 0.5, True)), vmap=False, gradgrad=False),
    case("torch.dropout", s(t(4, 5), 0.5, True), s(t(4, 5), 0.5, False), vmap=False),
    case("nn.functional.gumbel_softmax", s(t(3, 4)), s(t(3, 4), 0.5, True), vmap=False, gradgrad=False),
    case("nn.functional.rrelu", s(t(4, 5)), s(t(4, 5), 0.1, 0.3, True), vmap=False, gradgrad=False),
    draws("torch.manual_seed", s(3), fn=lambda torch, seed: (torch.manual_seed(seed), [torch.rand(3), torch.randn(3),
         torch.randn(20), torch.randint(9, (4,)), torch.randperm(5), torch.rand(1), torch.initial_seed()])[1], tol=2),
    draws("torch.Generator", s(7), fn=lambda torch,
         seed: [torch.rand(3, generator=torch.Generator().manual_seed(seed)),
         torch.randperm(6, generator=torch.Generator().manual_seed(seed)),
         torch.Generator().manual_seed(seed).initial_seed()]),
    draws("torch.get_rng_state", s(7), fn=lambda torch, seed: [torch.manual_seed(seed).get_state().shape,
         (lambda st: [torch.rand(3), torch.set_rng_state(st), torch.rand(3)])(torch.get_rng_state())]),
]
