"""gradcheck, gradgradcheck and a Function's jvp beside real torch: what passes, and what is said of what does not."""
import time
import warnings

import numpy as np
import pytest

import torchlike
from torchlike.autograd import _jacobians


def made(torch, **methods):
    """A Function that doubles, with methods of its own."""
    return type("Made", (torch.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 2)} | {k: staticmethod(f) for k, f in methods.items()}).apply


def functions(torch):
    return {
        "right": made(torch, backward=lambda ctx, g: g * 2, jvp=lambda ctx, t: t * 2),
        "wrong": made(torch, backward=lambda ctx, g: g * 3),
        "wrong forward": made(torch, backward=lambda ctx, g: g * 2, jvp=lambda ctx, t: t * 3),
        "no jvp": made(torch, backward=lambda ctx, g: g * 2),
        "constant": made(torch, backward=lambda ctx, g: torch.full_like(g, 2)),
        "random": made(torch, backward=lambda ctx, g: g * 2 * (1 + torch.rand(g.shape, dtype=torch.float64) * 1e-9)),
        "squares": made(torch, backward=lambda ctx, g: g.detach() * g.detach()),
        "imaginary": made(torch, forward=lambda ctx, x: x * 2j, backward=lambda ctx, g: g.real * -2j),
        "exp": torch.exp, "conj": torch.conj, "abs": torch.abs, "svdvals": torch.linalg.svdvals,
        "complex": lambda x: torch.complex(x, x * x), "pair": lambda x: (x * 2, x.sum().exp()), "detached": lambda x: x.detach(),
        "part detached": lambda x: (x * 2, x.detach()), "number": lambda x: x.sum().item(), "round": torch.round, "index": torch.argmax,
        "cube": lambda x: x ** 3, "leaves out": lambda x: x[..., :1] * 2,
    }


def inputs(torch):
    torch.manual_seed(3)
    return {"real": torch.rand(3, dtype=torch.float64, requires_grad=True), "one": torch.rand(1, dtype=torch.float64, requires_grad=True),
            "number": torch.rand((), dtype=torch.float64, requires_grad=True), "matrix": torch.rand(2, 3, dtype=torch.float64, requires_grad=True),
            "complex": torch.rand(3, dtype=torch.complex128, requires_grad=True), "no grad": torch.rand(2, dtype=torch.float64),
            "empty": torch.rand(0, dtype=torch.float64, requires_grad=True),
            "expanded": torch.rand(1, dtype=torch.float64, requires_grad=True).expand(3)}


def outcome(torch, check, function, on, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(torch.autograd, check)(functions(torch)[function], (inputs(torch)[on],), **options)
        except Exception as error:
            return type(error).__name__, str(error).split("\n")[0]


BOTH = {"check_forward_ad": True}
PROGRAMS = [
    *[(name, on, options) for name, on in (("exp", "real"), ("exp", "complex"), ("abs", "complex"), ("complex", "real"), ("pair", "number"),
                                           ("svdvals", "matrix"), ("exp", "empty"), ("leaves out", "matrix"))
      for options in ({}, BOTH, {"fast_mode": True}, {"fast_mode": True, **BOTH}, {"check_batched_grad": True})],
    *[(name, "real", options) for name in ("right", "wrong", "wrong forward", "no jvp", "squares") for options in ({}, BOTH, {"fast_mode": True, **BOTH})],
    ("conj", "complex", {}), ("imaginary", "complex", {}), ("imaginary", "complex", {"fast_mode": True}), ("constant", "real", {}),
    ("constant", "one", {}), ("random", "real", {}), ("random", "real", {"nondet_tol": 1e-5}), ("wrong", "real", {"raise_exception": False}),
    ("detached", "real", {}), ("part detached", "real", {}), ("number", "real", {}), ("round", "real", {}), ("index", "real", {}),
    ("exp", "no grad", {}), ("exp", "expanded", {}), ("exp", "real", {"check_backward_ad": False}),
    ("wrong", "real", {"check_backward_ad": False, "check_forward_ad": True}), ("exp", "real", {"check_batched_forward_grad": True}),
    ("exp", "real", {"check_batched_forward_grad": True, **BOTH}), ("exp", "real", {"check_batched_grad": True, "check_backward_ad": False, **BOTH}),
]


@pytest.mark.parametrize(("function", "on", "options"), PROGRAMS)
def test_gradcheck(subject, oracle, function, on, options):
    assert outcome(subject, "gradcheck", function, on, options) == outcome(oracle, "gradcheck", function, on, options)


@pytest.mark.parametrize("options", [{}, {"fast_mode": True}, {"check_fwd_over_rev": True}, {"check_batched_grad": True}])
@pytest.mark.parametrize(("function", "on"), [("cube", "real"), ("cube", "complex"), ("right", "real"), ("squares", "real"), ("pair", "number")])
def test_gradgradcheck(subject, oracle, function, on, options):
    if function == "right" and "check_fwd_over_rev" in options:
        options = {**options, "raise_exception": False}
    assert outcome(subject, "gradgradcheck", function, on, options) == outcome(oracle, "gradgradcheck", function, on, options)


def test_forward_derivatives_of_functions(subject, oracle):
    """A Function's jvp is its forward derivative: several arguments, some without a tangent, saved tensors, results used on."""
    def found(torch):
        fa = torch.autograd.forward_ad

        class Both(torch.autograd.Function):
            @staticmethod
            def forward(ctx, n, x, y):
                ctx.save_for_forward(x, y)
                ctx.n = n
                return x * y * n, x + y

            @staticmethod
            def jvp(ctx, n, s, t):
                x, y = ctx.saved_tensors
                assert n is None
                return (s * y + t * x) * ctx.n * 10, s + t
        x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
        with warnings.catch_warnings(), fa.dual_level():
            warnings.simplefilter("ignore")
            a = fa.make_dual(x, torch.ones(2))
            u, v = Both.apply(2, a.sin(), y)
            parts = [fa.unpack_dual(t).tangent for t in (u, v, u * v)]
            mixed = fa.unpack_dual(torch.complex(a, a * a).abs().double()).tangent
            try:
                missing = fa.unpack_dual(functions(torch)["no jvp"](a))
            except NotImplementedError as error:
                missing = str(error)
        return [t.numpy().round(4).tolist() for t in (*parts, mixed)], missing
    assert found(subject) == found(oracle)


def test_what_differs_is_shown_as_tensors(subject, oracle):
    def shown(torch):
        x = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
        with pytest.raises(RuntimeError) as error:
            torch.autograd.gradcheck(functions(torch)["wrong"], (x,))
        return str(error.value)
    assert shown(subject) == shown(oracle)
    assert "numerical:tensor([[2.0000," in shown(subject)


@pytest.mark.parametrize("apart", [False, True])
def test_gradgradcheck_draws_what_torch_draws(subject, oracle, apart):
    def after(torch):
        x = inputs(torch)["matrix"]
        torch.autograd.gradgradcheck(torch.sin, (x,), gen_non_contig_grad_outputs=apart)
        return torch.rand(3).tolist()
    assert after(subject) == after(oracle)


def test_fast_mode_allows_what_elements_may_differ_by(oracle, subject):
    """It compares weighed sums of all elements."""
    def passes(torch, off):
        f = made(torch, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 2 + off * g.sum())
        x = torch.linspace(-1, 1, 400, dtype=torch.float64).reshape(20, 20).requires_grad_()
        return torch.autograd.gradcheck(f, (x,), fast_mode=True, atol=1e-4, rtol=0.0, raise_exception=False)
    for off in (0.0, 2e-5, 8e-5, 1.5e-4, 1e-2):
        assert passes(subject, off) == passes(oracle, off) == (off < 1e-4), off


SPARSE = {"dense": lambda x: x.to_dense(), "twice": lambda x: (x * 2).to_dense(), "sum": lambda x: x.sum(), "relu": lambda x: x.to_dense().relu(),
          "detached": lambda x: x.detach().to_dense(), "wrong": lambda x: x.detach().to_dense() * x.to_dense()}
LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


def sparse_input(torch, layout, whole):
    torch.manual_seed(4)
    x = torch.rand(2, 4, dtype=torch.float64) + 0.1
    if not whole:
        x[0, :2] = 0
    return x.to_sparse(layout=getattr(torch, layout), blocksize=(1, 2) if "bs" in layout else None).requires_grad_()


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradcheck_of_sparse_inputs(subject, oracle, layout, masked, fast):
    """Every element specified, and with `masked` some left out."""
    def outcomes(torch, name, whole):
        try:
            return torch.autograd.gradcheck(SPARSE[name], (sparse_input(torch, layout, whole),), masked=masked, fast_mode=fast)
        except Exception as error:
            return type(error).__name__, str(error).split("\n")[0]
    for name in SPARSE:
        for whole in (True, False) if masked and name != "sum" else (True,):
            found = outcomes(subject, name, whole)
            assert found == outcomes(oracle, name, whole), (name, whole)
            assert (found is True) == (name not in ("detached", "wrong")), (name, whole)


def test_gradcheck_of_entries_at_one_place(subject):
    x = subject.sparse_coo_tensor([[0, 0, 1]], subject.tensor([1.0, 2.0, 3.0], dtype=subject.float64), (3,)).requires_grad_()
    assert subject.autograd.gradcheck(lambda x: x.to_dense() ** 2, (x,), masked=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        subject.autograd.gradcheck(lambda x: x.to_dense() * x.detach().to_dense(), (x,), masked=True)


def test_gradients_of_sparse_inputs_have_their_form(subject, oracle):
    def said(torch):
        x = torch.ones((2, 2), dtype=torch.float64).to_sparse().requires_grad_()
        more = made(torch, forward=lambda ctx, x: x * 1, backward=lambda ctx, g: g.to_sparse())

        def added(x):
            y = x.to_dense()
            y.register_hook(lambda g: g + 1e-2)
            return y
        found = []
        for f, at, masked in ((more, torch.ones(1, dtype=torch.float64, requires_grad=True), False), (added, x, True)):
            with pytest.raises(RuntimeError) as error:
                torch.autograd.gradcheck(f, (at,), masked=masked, atol=1e-1)
            found.append(str(error.value))
        return found
    assert said(subject) == said(oracle)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_as_sparse_gradcheck(subject, oracle, layout, masked):
    def outcomes(torch):
        check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
        x = sparse_input(torch, layout, False)
        kept = torch.autograd.gradcheck
        found = [check(lambda x: x * 2, x, masked=masked), check(lambda x, y: x.to_dense() * y, (x, x.to_dense().detach().requires_grad_()), masked=masked)]
        try:
            check(lambda x: x.detach().to_dense() * x.to_dense(masked_grad=masked), (x,), masked=masked)
        except Exception as error:
            found.append((type(error).__name__, str(error).split("\n")[0]))
        return found, kept is torch.autograd.gradcheck
    assert outcomes(subject) == outcomes(oracle)
    assert outcomes(subject)[0][:2] == [True, True]


def test_gradcheck_of_tensors_whose_class_dispatches(subject, oracle):
    def found(torch):
        tree_map = torch.utils._pytree.tree_map

        class Logged(torch.Tensor):
            @staticmethod
            def __new__(cls, inner):
                made = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, device=inner.device, requires_grad=inner.requires_grad)
                made.inner = inner.detach() if inner.requires_grad else inner
                return made

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                plain = [tree_map(lambda x: x.inner if isinstance(x, cls) else x, a) for a in (args, kwargs or {})]
                return tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, func(*plain[0], **plain[1]))
        x = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
        return torch.autograd.gradcheck(lambda x: x.exp() * x, (Logged(x).requires_grad_(),)), torch.autograd.gradcheck(
            lambda x: x.exp() * x, (Logged(x).requires_grad_(),), fast_mode=True), Logged

    right, fast, cls = found(oracle)
    assert (right, fast) == (True, True)
    right, fast, cls = found(subject)
    assert (right, fast) == (True, True)
    x = cls(subject.ones(2, dtype=subject.float64)).requires_grad_()
    assert not subject.autograd.gradcheck(lambda x: x.exp() * x.detach(), (x,), raise_exception=False)


def test_directions_of_many_elements_take_one_product():
    """A product with all directions for each element of the output took longer than the backwards did."""
    x = torchlike.rand(1500, dtype=torchlike.float64, requires_grad=True)
    out = x[:200] * 2
    along = _jacobians.directions(x)

    def seconds(f):
        start = time.perf_counter()
        f()
        return time.perf_counter() - start
    g = np.zeros(1500)
    one_by_one = min(seconds(lambda: [along @ g for _ in range(200)]) for _ in range(3))
    assert min(seconds(lambda: _jacobians.backward(out, x, along, None)) for _ in range(3)) < 0.7 * one_by_one
    assert (_jacobians.backward(out, x, along, None) == 2 * np.eye(1500)[:, :200]).all()
