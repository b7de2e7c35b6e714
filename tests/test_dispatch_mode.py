"""TorchDispatchMode: the operators that a program records, beside real torch."""
import importlib

import numpy as np
import pytest

# programs whose operators are torch's, in its order (where torch also shows `detach` after an operation that saves its result, that is left out)
PROGRAMS = """F.linear(x, w, b); F.linear(x3, w, b); F.linear(x3, w); F.linear(x, w)|x.mm(w.t()); x3 @ w.T; x @ x[0]; x[0] @ x[0]; torch.bmm(x3, x3.mT)
F.scaled_dot_product_attention(q, q, q, is_causal=True)|F.softmax(x, -1); F.log_softmax(x, 0); F.layer_norm(x, (3,)); F.gelu(x); F.relu(x)
x[1:, None]; x[0]; x.sum(); x.sum(0); x.mean(); x.mean(1, keepdim=True); x.max(); x.max(0); x.var(); x.std(0); x.amax(1); x.logsumexp(1); x.norm()
x + 1; x * x; 2 - x; x / 2; x ** 2; 2 ** x; x > 0; x == x; -x; x.exp(); x.clamp(0, 1); x.abs(); torch.add(x, x, alpha=2)
x.view(-1); x.reshape(3, 4); x.T; x.t(); x.permute(1, 0); x.transpose(0, 1); x.unsqueeze(0); x.squeeze(); x.expand(2, 4, 3); x.clone()
torch.cat([x, x]); x.repeat(2, 1); x.to(torch.float64); torch.where(x > 0, x, -x); x.topk(2); x.argmax(); x.sort(); x.cumsum(0); torch.tril(x)
F.silu(x); x.sigmoid(); x.tanh(); F.softplus(x); F.leaky_relu(x); torch.div(x, 2, rounding_mode='trunc'); x.gather(1, i); F.embedding(i, w)
F.conv2d(im, k, padding=1)""".replace("\n", "|").split("|")


def things(torch):
    def leaf(*shape):
        return torch.linspace(-1, 1, torch.zeros(shape).numel()).reshape(shape).requires_grad_()
    return {"torch": torch, "F": torch.nn.functional, "x": leaf(4, 3), "w": leaf(5, 3), "b": leaf(5), "x3": leaf(2, 4, 3), "q": leaf(1, 2, 4, 8),
            "i": torch.tensor([[0]]), "im": leaf(1, 2, 4, 4), "k": leaf(3, 2, 3, 3)}


def mode_of(torch):
    return importlib.import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode


def test_words_about_arguments_once_a_graph_was_made(subject, oracle):
    def said(torch):
        x, one, found = torch.ones(2, 3), torch.tensor([1]), []
        importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx(lambda x: x + 1)(x)
        for call, *args in ((x.size, "a"), (x.size, one), (x.reshape, 2.0, 3), (x.permute, 0.0, 1), (x.unfold, 1, one, 1), (x.view, 1.5), (x.new_zeros, "a"),
                            (x.resize_, 2.0, 3), (x.as_strided, (2.0,), (1,)), (x.new_empty_strided, x, x)):
            with pytest.raises(TypeError) as raised:
                call(*args)
            found.append(str(raised.value))
        return found
    assert said(subject) == said(oracle)


@pytest.mark.parametrize("program", PROGRAMS)
def test_operators(subject, oracle, program):
    """Names, tensors among the arguments, results and gradients."""
    def facts(torch):
        class Log(mode_of(torch)):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                out = func(*args, **(kwargs or {}))
                if func is not torch.ops.aten.detach.default:
                    log.append((str(func), func.name(), func.overloadpacket.__name__, types, [tuple(a.shape) for a in args if isinstance(a, torch.Tensor)]))
                return out
        log, names = [], things(torch)
        with Log():
            made = [eval(line, names) for line in program.split(";")]
        values = [(m if isinstance(m, torch.Tensor) else m[0]) for m in made]
        total = sum(v.double().sum() for v in values if v.requires_grad)
        grads = torch.autograd.grad(total, [names["x"], names["w"]], allow_unused=True) if isinstance(total, torch.Tensor) else []
        return log, values, grads
    ours, theirs = facts(subject), facts(oracle)
    assert ours[0] == theirs[0]
    for mine, other in zip([*ours[1], *ours[2]], [*theirs[1], *theirs[2]]):
        assert (mine is None) == (other is None)
        if mine is not None:
            oracle.testing.assert_close(oracle.tensor(mine.tolist()), other.detach(), check_dtype=False, rtol=1e-4, atol=1e-5)


def test_what_a_mode_returns_counts(subject, oracle):
    """A mode changes results, calls other operators, is off inside, and modes nest."""
    def facts(torch):
        Mode, aten, seen = mode_of(torch), torch.ops.aten, []

        class Doubles(Mode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(f"doubles {func}")
                out = func(*args, **(kwargs or {}))
                return out * 2 if func is aten.mul.Tensor else out

        class CosForSin(Mode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(f"cos {func}")
                return aten.cos.default(*args) if func == aten.sin.default else func(*args, **(kwargs or {}))
        x = torch.tensor([1.0, 2.0])
        with Doubles():
            y = x * 3
            with CosForSin():
                z = x.sin() * 3
        after = x * 3
        return y.tolist(), z.tolist(), after.tolist(), seen
    assert facts(subject)[3] == facts(oracle)[3]
    for a, b in zip(facts(subject)[:3], facts(oracle)[:3]):
        assert a == pytest.approx(b)


def test_errors_and_state(subject, oracle):
    """An exception leaves no mode behind, and the mode that is on can be asked for."""
    def facts(torch):
        dispatch, out = importlib.import_module(f"{torch.__name__}.utils._python_dispatch"), []

        class Breaks(dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                raise KeyError("broken")
        with pytest.raises(KeyError):
            with Breaks() as one:
                out.append(dispatch._get_current_dispatch_mode() is one)
                torch.ones(2) + 1
        out += [dispatch._get_current_dispatch_mode(), dispatch._get_current_dispatch_mode_stack(), (torch.ones(2) + 1).tolist()]
        return out
    assert facts(subject) == facts(oracle)


def test_every_thread_has_its_own(subject):
    """A mode of one thread sees nothing of another."""
    import threading
    seen = []

    class Log(mode_of(subject)):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(threading.get_ident())
            return func(*args, **(kwargs or {}))
    with Log():
        other = threading.Thread(target=lambda: (subject.ones(2) + 1).sum().item())
        other.start()
        other.join()
        subject.ones(2) + 1
    assert set(seen) == {threading.get_ident()}


def test_operations_that_are_not_pytorchs_have_a_name_too(subject):
    """They are operators in a place of their own, and can be called."""
    names = []

    class Log(mode_of(subject)):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append((str(func), func.namespace))
            return func(*args, **(kwargs or {}))
    x = subject.arange(8.0).reshape(1, 1, 8).requires_grad_()
    with Log():
        y = subject.nn.functional.max_pool1d(x, 2)
    y.sum().backward()
    assert ("torchlike.max_pool.default", "torchlike") in names
    assert x.grad.tolist() == [[[0, 1, 0, 1, 0, 1, 0, 1]]]


def test_rows_of_the_case_table(subject):
    """What goes through a mode that only calls comes out the same: every 8th row of the table."""
    from case import call, function_of, inputs
    from cases import CASES
    from checks import flat
    from compare import Raised, attempt
    base = importlib.import_module(f"{subject.__name__}.utils._python_dispatch").BaseTorchDispatchMode

    def results(row, sample):
        subject.manual_seed(0)
        made = attempt(call, subject, function_of(subject, row), sample, inputs(subject, row, sample))
        return [made.__class__] if isinstance(made, Raised) else [
            (x.dtype, tuple(x.shape), np.array(x.resolve_conj().tolist())) for x in flat(made) if not x.is_sparse and x.device.type == "cpu"]
    for row in [r for r in CASES if r.values][::8]:
        for sample in row.samples:
            plain = results(row, sample)
            with base():
                seen = results(row, sample)
            assert len(plain) == len(seen), row.id
            for x, y in zip(plain, seen):
                assert x is y or x[:2] == y[:2], row.id
                if x is not y:
                    np.testing.assert_allclose(x[2], y[2], rtol=1e-4, atol=1e-5, err_msg=row.id)


@pytest.mark.parametrize("line", ["n.sum(0)", "n.sum()", "n.sum(0, dtype=torch.int16)", "n.sum(dtype=torch.float64)", "n.cumsum(0)", "n.cumsum(0, dtype=torch.int16)",
                                  "n.cumprod(0, dtype=torch.int16)", "x.sum(0)", "x.sum(0, dtype=torch.float64)", "s.softmax(0)", "s.log_softmax(0)"])
def test_operators_are_told_of_dtypes_and_dimensions(subject, oracle, line):
    def facts(torch):
        seen = []

        class Log(mode_of(torch)):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append((str(func), args[1:], {name: str(value).removeprefix("torch.") for name, value in (kwargs or {}).items()}))
                return func(*args, **(kwargs or {}))
        names = {"torch": torch, "n": torch.tensor([3, 4], dtype=torch.int16), "x": torch.ones(2), "s": torch.tensor(2.0, requires_grad=True)}
        with Log():
            made = eval(line, names)
        if made.requires_grad:
            made.backward()
        return seen[:1], made.tolist(), str(made.dtype).rpartition(".")[2], names["s"].grad is not None
    assert facts(subject) == facts(oracle)
