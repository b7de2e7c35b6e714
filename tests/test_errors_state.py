"""After bad input everything goes on: values, versions, graphs, modes and settings are what they are in torch."""
import threading

import numpy as np
import pytest
from same import caught, error, outcomes, same

NOT_TENSORS = (None, "text", 3, 1.5, [1.0], (1, 2), {"a": 1}, object(), np.ones(2), print)
METHODS = ("add", "mul", "sub_", "matmul", "mm", "bmm", "mv", "dot", "outer", "eq", "maximum", "pow", "div_", "where", "gather", "index_select",
    "masked_select", "masked_fill", "copy_", "view_as", "expand_as", "type_as", "lerp", "addmm", "scatter", "index_add", "allclose", "equal",
    "logical_and", "bitwise_and", "clamp", "fill_", "cross", "kron", "dist", "atan2", "take", "index_put", "__matmul__", "__add__", "__getitem__")


@pytest.mark.parametrize("name", METHODS)
@same
def test_non_tensors_to_methods(torch, name):
    x = torch.ones(2)
    call = getattr(x, name)
    rest = {"gather": (0,), "index_select": (0,), "scatter": (0,), "index_add": (0,)}.get(name, ())
    last = {"masked_fill": (1.0,), "lerp": (0.5,), "addmm": (torch.ones(2, 2),), "scatter": (1.0,), "index_add": (torch.ones(1),),
        "where": (torch.ones(2),), "index_put": (torch.ones(1),)}.get(name, ())
    # NotImplemented is a value here, and fill_ and __getitem__ take numbers: the classes of the others count
    return {repr(bad)[:9]: error(call, *rest, bad, *last) for bad in NOT_TENSORS}, x * 2


@same
def test_numbers_that_a_dtype_cannot_hold(torch):
    f, i, u, b = torch.ones(2), torch.tensor([1, 2]), torch.tensor([1, 2], dtype=torch.uint8), torch.tensor([True, False])
    small = torch.tensor([1, 2], dtype=torch.int8)
    mask = torch.tensor([True, False])
    return outcomes(locals(), [
        "torch.full((2,), 2 ** 64)", "torch.full((2,), 2 ** 63)", "torch.full((2,), -2 ** 63 - 1)", "torch.full((2,), -2 ** 63)",
        "torch.full((2,), 1e300, dtype=torch.float32)", "torch.full((2,), math.inf)", "torch.full((2,), 1j, dtype=torch.float32)",
        "torch.full((2,), 1 + 0j, dtype=torch.int64)", "torch.full((2,), 300, dtype=torch.uint8)", "torch.full((2,), -1, dtype=torch.uint8)",
        "torch.full((2,), -300, dtype=torch.uint8)", "torch.full((2,), 1e10, dtype=torch.float16)", "torch.full((2,), 'a')", "torch.full((2,), None)",
        "torch.full((2,), f)", "torch.full_like(i, math.nan)", "torch.full_like(i, 1e30)", "torch.full_like(b, 5)", "i.fill_(2 ** 64)",
        "i.fill_(2 ** 63)", "u.fill_(256)", "f.fill_(1e300)", "f.fill_(1j)", "f.fill_('a')", "i.masked_fill(mask, 1.5)",
        "small.masked_fill(mask, 300)", "f.masked_fill(mask, 1e300)", "f.masked_fill(mask, -math.inf)", "small.index_fill(0, i - 1, 300)",
        "small.scatter(0, i - 1, 300)", "small.clamp(0, 300)", "u.clamp(min=-1)", "f + 2 ** 64", "i * 2 ** 64", "i < 2 ** 64", "f.pow(2 ** 64)",
        "f.clamp(2 ** 64)", "f.__setitem__(0, 2 ** 64)", "f.__setitem__(0, 1e300)", "i.__setitem__(0, math.nan)", "i.__setitem__(0, 2 ** 63)",
        "small.__setitem__(0, 300)", "f.__setitem__(0, 'a')", "f.__setitem__(0, None)", "f.__setitem__(0, [1.0])", "f.__setitem__(0, np.ones(1))",
        "f.__setitem__('a', 1.0)", "torch.tensor([2 ** 63])", "torch.tensor([1j], dtype=torch.float32)", "torch.tensor(['a'])",
        "torch.tensor([1, 'a'])", "torch.tensor([1, [2]])", "torch.tensor([None])", "torch.scalar_tensor(1e300)", "f.new_full((2,), 2 ** 64)",
        "torch.arange(2 ** 63)", "torch.arange(3, dtype=torch.bool)", "torch.arange(0, 1j)", "torch.randint(0, 2 ** 64, (2,))"])


@same
def test_sizes_and_counts_that_no_int64_holds(torch):
    x, huge = torch.ones(2, 3), 2 ** 63
    return outcomes(locals(), [f"x.{call}" for call in (
        "view(huge)", "reshape(huge)", "expand(huge)", "repeat(huge, 1)", "new_zeros(huge)", "sum(huge)", "sum((huge,))", "cumsum(huge)",
        "unsqueeze(huge)", "select(0, huge)", "narrow(0, huge, 1)", "topk(huge)", "chunk(huge)", "split(huge)", "roll(huge)", "flip(huge)",
        "permute(huge, 0)", "transpose(huge, 0)", "squeeze(huge)", "__getitem__(huge)", "__getitem__(2 ** 62)", "view(2 ** 62)", "norm(2, huge)")]
        + ["torch.zeros(huge)", "torch.zeros((huge,))", "torch.zeros(2 ** 62)", "torch.randperm(huge)"])


@same
def test_missing_and_mistyped_arguments(torch):
    x = torch.ones(2, 3)
    return outcomes(locals(), [f"x.{call}()" for call in ("expand", "repeat", "permute", "tile", "view", "reshape", "flip", "new_zeros", "unsqueeze",
        "gather", "matmul", "masked_fill", "where", "sum_to_size", "select", "topk", "cumsum", "softmax", "split")]
        + [f"torch.{call}()" for call in ("zeros", "ones", "empty", "rand", "randn", "randint", "randperm", "full", "arange", "cat", "where", "eye",
        "linspace", "einsum", "normal", "bernoulli")] + ["torch.einsum('i')", "torch.einsum('i', 3)", "torch.einsum(3, x)", "torch.randint(0.5, (2,))",
        "torch.randint(3, (-2,))", "torch.randperm(2.5)", "torch.full(2, 1.0)", "torch.hstack(x)", "torch.flip(x, 0)", "torch.where(x > 0, None, x)",
        "torch.clamp_min(x, None)", "torch.clamp(x, x, 1)", "x.topk(1.5)", "x.chunk('a')", "x.split(1.5)", "x.unsqueeze('a')", "x.sum('a')",
        "x.transpose(0, 1.5)", "x.softmax('a')", "x.view('a')", "x.expand('a')", "x.repeat(1.5)", "x.select(0, 1.5)", "x.narrow(0, 'a', 1)"])


@same
def test_gradients_of_nothing_and_data_deleted(torch):
    x = torch.ones(2, requires_grad=True)

    def delete():
        del x.data
    return error(torch.autograd.grad, (x * 2).sum(), []), error(torch.autograd.backward, (x * 2).sum(), inputs=[]), error(delete), x.grad, x


@same
def test_failed_edits_change_nothing(torch):
    """A refused in-place operation leaves values, version and graph; a refused `out=` leaves its target."""
    x = torch.arange(4.0)
    y, leaf, target = x.clone(), torch.ones(2, requires_grad=True), torch.zeros(3, dtype=torch.int64)
    view = y[1:3]
    i = torch.tensor([1, 2])
    tries = [error(y.add_, torch.ones(3)), error(y.__setitem__, 9, 1.0), error(y.copy_, torch.ones(5)), error(view.mul_, torch.ones(2, 2)),
        error(i.add_, 1.5), error(i.div_, 2), error(leaf.add_, 1), error(y.index_add_, 0, torch.tensor([7]), torch.ones(1)),
        error(y.scatter_, 0, torch.tensor([7]), 1.0), error(y.masked_fill_, torch.ones(4), 1.0), error(i.fill_, 2 ** 64),
        error(y.__setitem__, torch.tensor([9]), 1.0), error(torch.add, x, 1.5, out=target),
        error(torch.mul, leaf, leaf, out=torch.zeros(2)), error(y.clamp_, None, None), error(y.squeeze_, 7), error(y.transpose_, 0, 3)]
    return tries, y, view, y._version, i, i._version, leaf, leaf._version, target, y.add_(1), y._version


HOOKS = {
    "tensor": lambda torch, m, x, y, f: y.register_hook(f),
    "node": lambda torch, m, x, y, f: y.grad_fn.register_hook(f),
    "node before": lambda torch, m, x, y, f: y.grad_fn.register_prehook(f),
    "accumulated": lambda torch, m, x, y, f: m.weight.register_post_accumulate_grad_hook(f),
    "forward": lambda torch, m, x, y, f: m.register_forward_hook(f),
    "before forward": lambda torch, m, x, y, f: m.register_forward_pre_hook(f),
    "backward": lambda torch, m, x, y, f: m.register_full_backward_hook(f),
    "before backward": lambda torch, m, x, y, f: m.register_full_backward_pre_hook(f),
}


@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("kind", HOOKS)
@same
def test_exceptions_in_hooks(torch, kind, raised):
    """The exception passes through as it is; without the hook the same model trains on."""
    torch.manual_seed(0)
    m, x = torch.nn.Linear(3, 2), torch.ones(4, 3, requires_grad=True)
    y = x * 2

    def fail(*arguments):
        raise raised("from the hook")
    handle = HOOKS[kind](torch, m, x, y, fail)
    try:
        m(y).sum().backward()
        seen = "went through"
    except raised as stop:
        seen = str(stop)
    handle.remove()
    modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    m.zero_grad()
    x.grad = None
    m(x * 2).pow(2).sum().backward()
    return seen, modes, m.weight.grad, x.grad


def _function(torch, fail_in):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            if fail_in == "forward":
                raise ValueError("forward")
            return x * 2

        @staticmethod
        def backward(ctx, g):
            if fail_in == "backward":
                raise ValueError("backward")
            return {"wrong shape": g.new_ones(7), "too many": (g, g), "no tensor": "g"}.get(fail_in, g * 2)
    return Doubled.apply


@pytest.mark.parametrize("where", ["forward", "backward", "wrong shape", "too many", "no tensor"])
@same
def test_exceptions_in_functions(torch, where):
    x = torch.ones(3, requires_grad=True)
    first = error(lambda: _function(torch, where)(x).sum().backward())
    mode = torch.is_grad_enabled()
    x.grad = None
    _function(torch, None)(x).sum().backward()
    return first, mode, x.grad


def _fails(torch, x):
    torch.add(x, 1)
    raise ValueError("inside")


BLOCKS = {
    "no_grad": "torch.no_grad()", "enable_grad": "torch.enable_grad()", "inference_mode": "torch.inference_mode()",
    "set_grad_enabled": "torch.set_grad_enabled(False)", "autocast": "torch.autocast('cpu', torch.bfloat16)", "device": "torch.device('meta')",
    "anomaly": "torch.autograd.detect_anomaly(check_nan=False)", "saved": "torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)",
    "fork_rng": "torch.random.fork_rng()",
}


@pytest.mark.parametrize("name", BLOCKS)
@same
def test_blocks_left_by_an_exception(torch, name):
    x = torch.ones(2, 2, requires_grad=True)
    try:
        with eval(BLOCKS[name]):
            _fails(torch, torch.ones(2, 2))
    except ValueError as stop:
        seen = str(stop)
    y = (x @ x).sum()
    y.backward()
    return seen, torch.is_grad_enabled(), torch.is_inference_mode_enabled(), y.dtype, str(torch.zeros(1).device), x.grad


WRAPPED = {
    "vmap": "torch.func.vmap(f)(torch.ones(3, 2))", "grad": "torch.func.grad(f)(torch.ones(2))", "jacrev": "torch.func.jacrev(f)(torch.ones(2))",
    "jvp": "torch.func.jvp(f, (torch.ones(2),), (torch.ones(2),))", "functional": "torch.autograd.functional.jacobian(f, torch.ones(2))",
    "vmap of grad": "torch.func.vmap(torch.func.grad(f))(torch.ones(3, 2))",
    "checkpoint": "torch.utils.checkpoint.checkpoint(f, torch.ones(2, requires_grad=True), use_reentrant=False)",
}


@pytest.mark.parametrize("name", WRAPPED)
@same
def test_transforms_of_functions_that_fail(torch, name):
    import importlib
    importlib.import_module(torch.__name__ + ".utils.checkpoint")
    first = error(eval, WRAPPED[name], {"torch": torch, "f": lambda x: _fails(torch, x)})
    x = torch.ones(2, requires_grad=True)
    after = caught(eval, WRAPPED[name], {"torch": torch, "f": lambda x: (x * x).sum()})
    (x * 3).sum().backward()
    return first, after, x.grad, torch.is_grad_enabled()


def test_compiled_function_that_fails(subject):
    """An exception while a call is recorded, or replayed, leaves no recording behind."""
    torch, bad = subject, []

    @torch.compile
    def f(x):
        y = x * 2
        if bad:
            raise ValueError("inside")
        return y + 1
    for fail in (False, True, False, False, True, False):
        bad[:] = [1] * fail
        if fail:
            with pytest.raises(ValueError):
                f(torch.ones(3, requires_grad=True) if len(bad) else torch.ones(3))
        else:
            assert f(torch.ones(3)).tolist() == [3.0] * 3
        assert (torch.ones(2) * 5).tolist() == [5.0] * 2


@same
def test_infinite_recursion(torch):
    class Endless(torch.nn.Module):
        def forward(self, x):
            return self(x * 2)

    class Replaced:
        def __init__(self, x):
            self.x = x

        def __call__(self, g):
            return self(g * 2)
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    seen = [error(Endless(), x), error(Endless().eval(), x)]
    handle = y.register_hook(Replaced(x))
    seen.append(error(lambda: y.sum().backward()))
    handle.remove()
    (x * 3).sum().backward()
    return seen, x.grad, torch.is_grad_enabled()


@same
def test_modules_that_contain_themselves(torch):
    a, b = torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 2))
    a.inner, b.again = b, b
    b.back = a
    return (len(list(a.modules())), [n for n, _ in a.named_parameters()], a.requires_grad_(False).weight.requires_grad, error(a.state_dict), error(a.eval),
        error(a.apply, lambda m: None), error(repr, a), error(a.to, torch.float64), torch.ones(1) + 1)


@same
def test_long_graphs_need_no_stack(torch):
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(20000):
        y = y + 1
    y.sum().backward()
    del y
    return x.grad


@same
def test_optimizer_that_failed_goes_on(torch):
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([p], lr=0.1)

    def closure():
        (p * 2).sum()
        raise ValueError("closure")
    seen = [error(optimizer.step, closure)]
    handle = optimizer.register_step_pre_hook(lambda *a: _fails(torch, p.detach()))
    p.grad = torch.ones(2)
    seen.append(error(optimizer.step))
    handle.remove()
    before = p.detach().clone()
    optimizer.step()
    return seen, before, p, error(setattr, p, "grad", torch.ones(3)), p.grad


@same
def test_error_found_at_observation_is_raised_once(torch):
    x, index = torch.arange(4.0), torch.tensor([1, 2])
    good = x * 2
    seen = error(lambda: x.gather(0, index * 5).sum().item())
    return seen, good, x.gather(0, index), error(lambda: (x / 0).sum().item()), (x + 1).sum()


@same
def test_errors_in_other_threads(torch):
    found = []

    def work():
        found.append(error(torch.add, torch.ones(2), torch.ones(3)))
        torch.set_grad_enabled(False)
        found.append((torch.ones(2) * 3).sum().item())
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    return sorted(map(str, found)), torch.is_grad_enabled(), x.grad


@same
def test_random_state_after_errors(torch):
    """Refused calls draw nothing."""
    torch.manual_seed(3)
    seen = [error(torch.rand, -1), error(torch.randn, 2, dtype=torch.int64), error(torch.randint, 5, 5, (2,)), error(torch.multinomial, -torch.ones(2), 1),
        error(torch.normal, torch.ones(2), torch.ones(3)), error(torch.bernoulli, torch.tensor([2.0])), error(torch.randperm, -1),
        error(torch.nn.functional.dropout, torch.ones(2), 1.5), error(torch.nn.init.normal_, torch.ones(2, dtype=torch.int64))]
    return seen, torch.rand(3)


WRITES = {
    "index_put": lambda torch, x, i: x.__setitem__((i, 0), 7.0),
    "rows": lambda torch, x, i: x.__setitem__(i, 7.0),
    "index_fill": lambda torch, x, i: x.index_fill_(0, i, 1),
    "index_add": lambda torch, x, i: x.index_add_(0, i, torch.ones(2, 3)),
    "index_copy": lambda torch, x, i: x.index_copy_(0, i, torch.ones(2, 3)),
    "scatter": lambda torch, x, i: x.scatter_(0, i[:, None], torch.ones(2, 1)),
    "through a view": lambda torch, x, i: x.t()[1:].index_fill_(1, i, 1),
}


@pytest.mark.parametrize("name", WRITES)
@same
def test_a_write_at_pending_indices_that_are_out_of_range(torch, name):
    """The error comes when somebody looks; from then on the tensor is what it was before, and goes on."""
    x = torch.arange(12.0).view(4, 3)
    x.add_(1)
    with pytest.raises((IndexError, RuntimeError)):
        WRITES[name](torch, x, torch.arange(50_000)[:2] + 9 + torch.arange(50_000).sum() * 0)
        x.tolist()
    x.mul_(2)
    return x, x.sum()


def test_what_follows_a_write_that_failed(subject):
    """In torch the line itself raises, so nothing would."""
    if subject._core.program.is_immediate():
        return
    x = subject.arange(6.0).view(3, 2)
    pending = (subject.arange(50_000).sum() * 0 + 7).view(1)
    x[pending, 0] = 5.0
    y = x * 2
    parts = y.split(1)
    with pytest.raises(IndexError):
        x.tolist()
    assert x.tolist() == [[0, 1], [2, 3], [4, 5]] and y.tolist() == [[0, 2], [4, 6], [8, 10]] and parts[1].tolist() == [[4, 6]]
