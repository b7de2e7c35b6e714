"""torch._functorch: what libraries replace in vmap (tensordict), the former `functorch` functions, modules as functions."""
import subprocess
import sys
from importlib import import_module

import pytest
from same import caught, same


def _vmap_module(torch):
    return import_module(f"{torch.__name__}._functorch.vmap")


@same
def test_one_example_in_and_all_out(torch):
    """A container that vmap does not know, taken apart by functions in the place of vmap's own, as tensordict does."""
    class Box:
        def __init__(self, **held):
            self.held = held

    source = _vmap_module(torch)
    names = "_process_batched_inputs", "_create_batched_inputs", "_unwrap_batched"
    before = [getattr(source, name) for name in names]
    levels = []

    def process(in_dims, args, func):
        return next(iter(args[0].held.values())).shape[0], [0], list(args), None

    def create(dims, flat, level, spec):
        levels.append(level)
        return [Box(**{k: source._add_batch_dim(x, 0, level) for k, x in flat[0].held.items()})]

    def unwrap(out, out_dims, level, size, func):
        return Box(**{k: source._maybe_remove_batch_dim("f", x, level, size, 1) for k, x in out.held.items()})
    w = torch.tensor(3.0, requires_grad=True)
    try:
        for name, f in zip(names, (process, create, unwrap)):
            setattr(source, name, f)
        out = torch.vmap(lambda b: Box(a=b.held["a"] * w, b=b.held["b"].sum() + b.held["a"]))(Box(a=torch.arange(6.0).view(2, 3), b=torch.ones(2, 4)))
    finally:
        for name, f in zip(names, before):
            setattr(source, name, f)
    (out.held["a"].sum() + out.held["b"].sum()).backward()
    return out.held["a"].detach(), out.held["b"], w.grad, levels


@same
def test_an_example_kept_for_the_next_call(torch):
    """tensordict keeps the examples of a locked container: they serve the next call of the same level, with what the source holds then."""
    source = _vmap_module(torch)
    x, kept = torch.arange(4.0).requires_grad_(), []

    def call(y):
        if not kept:
            kept.append(source._add_batch_dim(x, 0, 1))
        return kept[0] * y
    first = torch.vmap(call)(torch.ones(4))
    with torch.no_grad():
        x.mul_(2)
    second = torch.vmap(call)(torch.ones(4) * 3)
    second.sum().backward()
    return first.detach(), second.detach(), x.grad


@same
def test_views_from_outside_as_examples(torch):
    source = _vmap_module(torch)
    base = torch.arange(6.0)
    view = base.view(2, 3)
    base += 1  # the view looks again inside of the call
    return torch.vmap(lambda y: source._add_batch_dim(view, 0, 1).sum() + y)(torch.zeros(2)), view


@same
def test_all_examples_taken_apart_during_the_call(torch):
    """tensordict keeps what a function writes to a lazy stack: one piece per example, stacked again where it is read, and there after the call."""
    C, source, found = import_module(f"{torch.__name__}._C")._functorch, _vmap_module(torch), []
    for dim in 0, 1:
        w, kept = torch.tensor(2.0, requires_grad=True), []

        def f(x, dim=dim, w=w, kept=kept):
            whole = C._remove_batch_dim(x * w + 1, 1, 2, dim)
            kept.extend([whole, *whole.unbind(dim), C._remove_batch_dim(torch.ones(3), 1, 2, 0)])
            return source._add_batch_dim(torch.stack(kept[1:3], dim), dim, 1) * 2 + x
        out = torch.vmap(f)(torch.arange(6.0).view(2, 3))
        (out.sum() + 10 * kept[0].sum() + kept[1].sum()).backward()
        found.append([t.detach() for t in (out, *kept)] + [w.grad])
    return found


@same
def test_views_from_outside_that_are_kept(torch):
    """Of a tensor that the function captured: of its memory, and in its graph, when the call is over, too."""
    x, plain, kept = torch.arange(4.0).requires_grad_(), torch.arange(4.0), []

    def f(y):
        kept.extend([x[1:3], x.view(2, 2).unbind()[1], plain[2:]])
        return y * 2
    torch.vmap(f)(torch.ones(2))
    (kept[0].sum() + 3 * kept[1].sum()).backward()
    plain += 1
    return [t.detach() for t in kept], x.grad


@same
def test_which_tensors_are_mapped(torch):
    C = import_module(f"{torch.__name__}._C")._functorch
    seen = [C.is_batchedtensor(torch.ones(2))]

    def inner(y, x):
        seen.extend([C.is_batchedtensor(x), C.is_batchedtensor(y), C.is_batchedtensor(x.sin()), C.is_batchedtensor(torch.ones(1))])
        return x + y

    def f(x):
        seen.extend([C.is_batchedtensor(x), C.is_batchedtensor(x * 2), C.is_batchedtensor(torch.zeros(2)), tuple(C.get_unwrapped(x).shape)])
        return torch.vmap(inner, (0, None))(torch.ones(3), x.sum())
    return torch.vmap(f)(torch.ones(2, 3)), seen


@same
def test_errors_of_results(torch):
    vmap, x = torch.vmap, torch.ones(2, 3)
    return (caught(lambda: vmap(lambda a: a, out_dims=None)(x)), caught(lambda: vmap(lambda a: 3)(x)),
            vmap(lambda a: (a, 3), out_dims=(1, None))(x), vmap(lambda a: torch.ones(1), out_dims=None)(x))


def _functional(torch):
    return import_module(f"{torch.__name__}._functorch.make_functional")


@same
def test_modules_as_functions(torch):
    m = _functional(torch)
    torch.manual_seed(0)
    net, x = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)), torch.ones(5, 3)
    f, p = m.make_functional(net)
    grads = torch.func.grad(lambda p: f(p, x).pow(2).sum())(p)
    shared = torch.nn.Linear(3, 3)
    g, q = m.make_functional(torch.nn.Sequential(shared, shared), disable_autograd_tracking=True)
    return (f(p, x).detach(), [g.detach() for g in grads], f.param_names, f.names_map, [t.is_meta for t in f.parameters()],
            len(q), g.names_map, q[0].requires_grad, type(q[0]).__name__, g(q, x))


@same
def test_modules_with_buffers_and_several_of_a_kind(torch):
    m = _functional(torch)
    f, p, b = m.make_functional_with_buffers(torch.nn.BatchNorm1d(2))
    out = f(p, b, torch.arange(8.0).view(4, 2))
    models = [torch.nn.Linear(2, 1) for _ in range(3)]
    with torch.no_grad():
        for i, model in enumerate(models):
            for t in model.parameters():
                t.fill_(i)
    g, q, c = m.combine_state_for_ensemble(models)
    return (out.detach(), b, f.param_names, f.buffer_names, f.all_names_map, torch.vmap(g, (0, 0, None))(q, c, torch.ones(2)),
            [(t.shape, t.requires_grad) for t in q], c, caught(lambda: m.make_functional(torch.nn.BatchNorm1d(2))),
            caught(lambda: m.combine_state_for_ensemble([])),
            caught(lambda: m.combine_state_for_ensemble([models[0], torch.nn.Linear(2, 1).eval()])),
            caught(lambda: m.combine_state_for_ensemble([models[0], torch.nn.ReLU()])))


@same
def test_the_former_functions_warn(torch):
    deprecated = import_module(f"{torch.__name__}._functorch.deprecated")
    said = []
    for name in ("grad", "vmap", "jacrev", "functionalize"):
        with pytest.warns(FutureWarning) as caught_warnings:
            getattr(deprecated, name)(lambda x: x)
        said.append(str(caught_warnings[0].message))
    with pytest.warns(FutureWarning) as caught_warnings:
        deprecated.make_functional(torch.nn.Linear(1, 1))
    return said, str(caught_warnings[0].message)


def test_settings_without_an_import(tmp_path):
    """gpt-fast sets `torch._functorch.config`, which PyTorch's torch._dynamo has imported."""
    program = tmp_path / "program.py"
    program.write_text("import torch\nimport torch._dynamo.config\ntorch._functorch.config.enable_autograd_cache = 7\n"
                       "from torch._functorch import config\nprint(config.enable_autograd_cache)\n"
                       "try:\n    torch._functorch.nothing\nexcept AttributeError as e:\n    print(str(e).split(':')[0])\n")
    found = [subprocess.run([sys.executable, *run, program], capture_output=True, text=True).stdout.splitlines() for run in ((), ("-m", "torchlike.run"))]
    assert found == [["7", "module 'torch._functorch' has no attribute 'nothing'"]] * 2


def test_the_package_functorch_is_ours(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import functorch, sys\nfrom functorch import vmap, make_functional\nimport torch\n"
                       "assert functorch.__version__ == torch.__version__\n"
                       "print(vmap(torch.sin)(torch.zeros(2)).tolist(), 'torch._functorch.package' in sys.modules)\n"
                       "try:\n    import functorch.dim\nexcept ImportError as e:\n    print(e)\n"
                       "from functorch.experimental.control_flow import map\nimport functorch.einops\n"
                       "print(functorch.einops.rearrange(map(torch.neg, torch.ones(2, 3)), 'a b -> (b a)').tolist())\n")
    out = subprocess.run([sys.executable, "-W", "ignore", "-m", "torchlike.run", program], capture_output=True, text=True)
    assert out.stdout.splitlines() == ["[0.0, 0.0] False", "No module named 'functorch.dim': functorch.dim is not supported yet by torchlike", str([-1.0] * 6)], out.stderr


def _package(torch, name):
    """A module of the package `functorch`, PyTorch's or ours."""
    return import_module(("functorch" if torch.__name__ == "torch" else f"{torch.__name__}._functorch.package") + f".{name}")


@same
def test_rearrange(torch):
    rearrange = _package(torch, "einops").rearrange
    assert rearrange is import_module(f"{torch.__name__}.func").rearrange
    x = torch.arange(24.).reshape(2, 3, 4)
    good = [("a b c -> b c a", {}), ("a b c -> a (c b)", {}), ("a (b1 b2) c -> b1 a b2 c", {"b1": 3}), ("... c -> c ...", {}),
            ("a ... -> (...) a", {}), ("a ... -> (a ...)", {}), ("a b c -> a 1 b () c 1", {}), ("a b (c1 c2)->c2 a   b c1", {"c1": 2, "c2": 2})]
    bad = [("a b c -> a b", {}), ("a b -> a b", {}), ("a b c d -> a b c d", {}), ("a b c -> a b c", {"d": 3}), ("a a c -> a c", {}), ("a b c", {}),
           ("a b (c -> a b c", {}), ("a b ((c)) -> a b c", {}), ("a b 2 -> a b", {}), ("... ... c -> c", {}), ("(... b) c -> c ... b", {"b": 3}),
           ("a b c. -> a b c", {}), ("a b 3c -> a b 3c", {}), ("a b c_ -> a b c_", {}), ("a b c -> a b ...", {}), ("a b c -> a b c", {"c": "x"})]
    unfit = [("a b (c1 c2) -> a b c1 c2", {}), ("a b (c1 c2) -> a b c1 c2", {"c1": 3}), ("a b c -> b c a", {"a": 3})]

    def said(p, sizes):
        return caught(lambda: rearrange(x, p, **sizes))
    return ([rearrange(x, p, **sizes) for p, sizes in good], rearrange([x, x + 1], "n a b c -> a n (b c)"),
            rearrange(x.requires_grad_(), "a b c -> (b a) c").grad_fn is None, [said(*call) for call in bad],
            [said(*call)[0] for call in unfit], caught(lambda: rearrange(torch.tensor(1.0), "a ... -> ... a")))


@same
def test_chunk_vmap_and_map(torch):
    chunk_vmap = _package(torch, "experimental").chunk_vmap
    flow = _package(torch, "experimental.control_flow")
    x = torch.arange(15.).reshape(5, 3).requires_grad_()
    y = chunk_vmap(lambda row, k: (row.sin() * k, row.sum()), (0, None), (1, 0), chunks=3)(x, 2.0)
    y[0].sum().backward()
    torch.manual_seed(0)
    drawn = chunk_vmap(lambda row: row + torch.rand(()), randomness="same", chunks=2)(torch.zeros(4, 1))
    mapped = flow.map(lambda row, k: {"twice": row["x"] * k, "sum": row["x"].sum() + row["n"]}, {"x": x, "n": torch.arange(5)}, torch.tensor(2.))
    return (y, x.grad, drawn[0].item() == drawn[2].item(), mapped, flow.cond(torch.tensor(True), torch.sin, torch.cos, (x,)),
            chunk_vmap(torch.sin, chunks=9)(x))


@same
def test_looks_at_one_example(torch):
    """What is said where a function under vmap looks at a value that every example has of its own."""
    x = torch.arange(6.0).reshape(3, 2)
    looks = (lambda t: t if t.sum() > 0 else -t, lambda t: t[0] > 0 and t[1] > 0, lambda t: torch.is_nonzero(t[0]), lambda t: t.sum().item(),
             lambda t: float(t[0]), lambda t: [1] * int(t[0]), lambda t: 2.0 in t, lambda t: f"{t[0]:.1f}", lambda t: torch.arange(t[0]), lambda t: t[:t[0].long()],
             lambda t: t.tolist(), lambda t: t.numpy(), lambda t: t.nonzero(), lambda t: torch.where(t), lambda t: t.unique(), lambda t: t.unique_consecutive(),
             lambda t: t[t > 0], lambda t: t.masked_select(t > 0), lambda t: torch.equal(t, t), lambda t: torch.allclose(t, t))
    y = torch.ones(2)
    return ([caught(torch.vmap(f), x) for f in looks], caught(torch.vmap(lambda t: y.mul_(t)), x), y,
            caught(torch.vmap(lambda t: t.sum().backward()), x.clone().requires_grad_()))


NESTED = {
    "grad": lambda f, t: f.grad(t), "vmap": lambda f, t: f.vmap(t), "in_dims": lambda f, t: f.vmap(t, in_dims=1), "two grads": lambda f, t: f.grad(lambda x: f.grad(t)(x).sum()),
    "grad in vmap": lambda f, t: f.vmap(f.grad(t)), "vmap in grad": lambda f, t: f.grad(lambda x: f.vmap(t)(x).sum()), "two vmaps": lambda f, t: f.vmap(f.vmap(t), in_dims=1),
    "jvp": lambda f, t: lambda x: f.jvp(t, (x,), (x,)), "vjp": lambda f, t: lambda x: f.vjp(t, x), "jacfwd": lambda f, t: f.jacfwd(t), "hessian": lambda f, t: f.hessian(t),
    "all": lambda f, t: f.vmap(f.grad(lambda x: f.vmap(f.grad(t))(x).sum())),
}


@pytest.mark.parametrize("name", list(NESTED))
@same
def test_wrappers(torch, name):
    """How tensors inside of transforms print, and what wraps them."""
    C, seen = import_module(f"{torch.__name__}._C")._functorch, []
    ask = C.is_batchedtensor, C.is_gradtrackingtensor, C.is_functorch_wrapped_tensor, C.maybe_get_level, C.maybe_get_bdim
    outside = torch.ones(2)

    def traced(x):
        seen.extend([repr(x), str(x * 2), f"{x[None]}", C.maybe_current_level(), [[f(t) for f in ask] for t in (x, outside)], [f(x.sin()) for f in ask[:-1]], repr(outside)])
        if C.is_batchedtensor(x) or C.maybe_get_level(x) == 1:
            seen.append(repr(C.get_unwrapped(x)))
        return (x * x).sum()
    NESTED[name](torch.func, traced)(torch.arange(12.0).reshape(2, 2, 3) if name == "all" else torch.arange(6.0).reshape(2, 3))
    return seen, C.maybe_current_level(), caught(C.get_unwrapped, outside), [f(outside) for f in ask]


@same
def test_what_a_mapped_function_prints_can_still_be_differentiated(torch):
    x, texts = torch.arange(6.0).reshape(2, 3).requires_grad_(), []

    def f(t):
        texts.append(repr(t * 2).count("Tensor("))
        return (t * 2).sin().sum()
    torch.vmap(torch.func.grad(f))(x).sum().backward()
    return texts, x.grad, torch.func.jacfwd(torch.func.jacrev(f))(x.detach()), torch.func.jvp(f, (x,), (x,))
