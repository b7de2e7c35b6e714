"""gradcheck, gradgradcheck and a Function's jvp beside real torch: what passes, and what is said of what does not."""
import warnings

import pytest


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
