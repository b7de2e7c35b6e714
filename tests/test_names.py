"""Small names that programs touch: streams, futures, older autocast names, sizes, copies of views, removed functions, parallel helpers."""
import copy
import importlib
import io
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import torchlike


def module(torch, name):
    return importlib.import_module(f"{torch.__name__}.{name}")


def told(call):
    """A call's result as text, or its error's class."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = repr(call())
        except Exception as error:
            found = type(error).__name__
    return found.replace("torchlike.", "torch."), [w.category.__name__ for w in caught]


SAME = [
    "torch.return_types.max((1, 2)), torch.return_types.max([1, 2])[1]", "torch.return_types.max((1,))", "torch.return_types.max(3)", "torch.return_types.max()",
    "[(r.n_fields, type(r).n_sequence_fields, r.n_unnamed_fields) for r in (torch.eye(2).min(0), torch.linalg.svd(torch.eye(2)))]",
    "type(torch.linalg.slogdet(torch.eye(2)))(x for x in (1, 2))", "type(torch.svd(torch.eye(2)))((1, 2, 3)).U",
    "torch.get_autocast_cpu_dtype()", "torch.is_autocast_cpu_enabled()", "torch.get_autocast_gpu_dtype()", "torch.get_device_module().__name__",
    "torch.get_device_module('cuda').__name__", "torch.get_device_module('meta')", "torch.get_device_module(3)", "torch.legacy_contiguous_format",
    "torch.solve(torch.eye(2), torch.eye(2))", "torch.eye(2).eig()", "torch.eye(2).symeig()", "torch.lstsq(torch.eye(2), torch.eye(2))",
    "torch.matrix_rank(torch.eye(2))",
    "torch.sym_int(2.7), torch.sym_int(-2.7), torch.sym_float(2), torch.sym_max(1, 2.0), torch.sym_min(1, 2), torch.sym_min(1.0, 2)",
    "torch.sym_not(True), torch.sym_ite(True, 1, 2), torch.sym_sum([1, 2])", "torch.sym_ite(True, 1, 2.0)",
    "isinstance(3, torch.SymInt), isinstance(True, torch.SymBool)", "torch.Stream()", "torch.Stream(device='cpu') == torch.Stream()", "torch.Event()",
    "torch.Event().query()", "torch.Event('cpu').record()", "torch.Stream().record_event()", "torch.Event().elapsed_time(torch.Event())",
    "torch.Stream('cuda')", "torch.Event(device='cuda')", "torch.Stream().query(), torch.Stream().device, torch.Stream().stream_id",
    "torch.ones(2).dequantize(), torch.dequantize(torch.ones(2, dtype=torch.int32))", "torch.dequantize(3)",
    "torch.expand_copy(torch.ones(2, 1), (2, 3)).stride()", "torch.slice_copy(torch.arange(6), 0, 1, None, 2)",
    "torch.select_copy(torch.eye(2), 0, 1)", "torch.split_copy(torch.arange(4), 2)", "torch.unbind_copy(torch.eye(2), 1)",
    "torch.permute_copy(torch.ones(2, 3), (1, 0)).stride()", "torch.view_copy(torch.arange(4), (2, 2))",
    "torch.unfold_copy(torch.arange(4), 0, 2, 1)", "torch.t_copy(torch.ones(2, 3)).shape", "torch.diagonal_copy(torch.eye(2))",
    "torch.view_as_real_copy(torch.ones(1, dtype=torch.complex64))", "torch.as_strided_copy(torch.arange(4), (2,), (2,))",
    "torch.narrow_copy(torch.arange(4), 0, 1, 2)", "torch.arange(4).narrow_copy(0, 1, 2)",
    "torch.torch is torch", "[x.tolist() for x in torch.arange(4).split(split_size=[1, 3], dim=0)]", "torch.split(torch.arange(4), split_size=2)",
    "torch.arange(4).split(split_size_or_sections=2)", "torch.empty(2, 3, 4, 4, memory_format=torch.channels_last).clone().stride()",
    "torch.empty((2, 3, 4, 4, 5), memory_format=torch.channels_last_3d, requires_grad=True).stride()",
    "torch.empty(3, memory_format=torch.channels_last)", "torch.empty(3, memory_format=torch.preserve_format)",
    "torch.empty(3, memory_format=torch.contiguous_format).stride()", "torch.zeros(2, 3, 4, 4, memory_format=torch.channels_last)",
    "torch.empty(1, 3, 4, 4, memory_format=torch.channels_last, out=torch.empty(2))",
    "__import__('importlib').import_module(torch.__name__ + '.fx.experimental.proxy_tensor').get_proxy_mode()",
    "__import__('importlib').import_module(torch.__name__ + '._subclasses.fake_tensor').is_fake(torch.empty(2, device='meta'))",
    "torch.is_autocast_enabled('mps'), torch.get_autocast_dtype('mps'), torch.get_autocast_dtype('xpu'), torch.get_autocast_dtype('hpu')",
    "torch._assert_async(torch.tensor([2.0]))", "torch._assert_async(torch.ones(2))", "torch._assert_async(True)",
    "torch._C._are_functorch_transforms_active()",
    "torch.utils.data._utils.collate.np_str_obj_array_pattern.pattern",
    "torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2).expand(3, 2, 2))._unbroadcasted_scale_tril.shape",
]


@pytest.mark.parametrize("expression", SAME)
def test_same(subject, oracle, expression):
    assert told(lambda: eval(expression, {"torch": subject})) == told(lambda: eval(expression, {"torch": oracle}))


def test_numpy_of_a_parameter(subject, oracle):
    """Without gradients the array may be had at once; with them the tensor must be detached first."""
    def told_of(torch):
        x = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            return x.numpy().tolist(), told(lambda: torch.enable_grad()(x.numpy)())
    assert told_of(subject) == told_of(oracle)


def test_assert_async(subject, oracle):
    """Where torch's CPU raises at once, a pending condition is looked at with the next value."""
    for torch in (subject, oracle):
        for args, message in (((), "Expected Tensor with single nonzero value, but got zero"), (("too small",), "too small")):
            with pytest.raises(RuntimeError, match=message):
                x = torch.ones(3)
                torch._assert_async(x.sum() > 5, *args)
                x.sum().item()


def test_whether_a_transform_is_active(subject, oracle):
    def seen(torch):
        found, ask = [], torch._C._are_functorch_transforms_active

        def f(x):
            found.append(ask())
            return (x * x).sum()
        x = torch.ones(2, 2)
        for transform in (torch.func.grad, torch.func.vmap, torch.func.jacrev, torch.func.hessian, lambda g: torch.vmap(torch.func.grad(g)), lambda g: g):
            transform(f)(x)
            found.append(ask())
        torch.func.jvp(f, (x,), (x,))
        try:
            torch.func.grad(lambda x: 1 / 0)(x)
        except ZeroDivisionError:
            found.append(ask())
        return found
    assert set(seen(subject)) == {True, False}
    assert dict.fromkeys(seen(subject)[:2]) == dict.fromkeys(seen(oracle)[:2]) and seen(subject)[-1] == seen(oracle)[-1] and not seen(subject)[-1]
    assert [a for a in seen(subject) if not a] == [a for a in seen(oracle) if not a]


def test_view_copies_share_nothing(subject):
    x = subject.zeros(2, 2)
    subject.t_copy(x).add_(1)
    assert x.sum() == 0


def test_autocast_by_older_names(subject):
    with pytest.warns(DeprecationWarning):
        subject.set_autocast_cpu_dtype(subject.float16)
    assert subject.get_autocast_dtype("cpu") is subject.float16
    subject.set_autocast_dtype("cpu", subject.bfloat16)


def test_futures(subject, oracle):
    def facts(torch):
        futures = module(torch, "futures")
        a, b, order = futures.Future(), futures.Future(), []
        after = a.then(lambda f: f.wait() + 1)
        a.add_done_callback(lambda f: order.append(f.value()))
        waiting = futures.collect_all([a, b])
        out = [a.done(), waiting.done()]
        threading.Timer(0.01, lambda: b.set_result(5)).start()
        a.set_result(1)
        out += [after.wait(), order, futures.wait_all([a, b]), waiting.done(), a.value(), isinstance(a, torch.Future)]
        bad = futures.Future()
        bad.set_exception(ValueError("no"))
        bad.add_done_callback(lambda f: f.wait())  # goes to the log
        for call in (bad.wait, lambda: a.set_result(2), lambda: bad.then(lambda f: f.wait()).wait(), lambda: a.then(lambda: 3).wait(), lambda: a.then(3),
                     lambda: futures.wait_all([a, bad]), lambda: futures.collect_all([bad, a]).wait(), lambda: futures.Future().value(),
                     lambda: pickle.dumps(a), lambda: torch.save(a, io.BytesIO()), lambda: torch.jit.wait(None)):
            try:
                out.append(call())
            except Exception as error:
                first = str(error).split("\n")[0]
                out.append((type(error).__name__, first if first.startswith(("Got the", "Attempting", "Can not", "Future can't")) else ""))
        late, given, failed = futures.Future(), futures.Future(), futures.Future()
        collected = [futures.collect_all([late, given]), futures.collect_all([late, failed.then(lambda f: 1 / 0)])]
        given.set_exception(ValueError("no"))
        failed.set_result(1)
        out += [c.done() for c in collected]  # what a callback raised ends the waiting
        late.set_result(1)
        return out + [c.done() for c in collected]
    assert facts(subject) == facts(oracle)


def test_traced_functions(subject):
    jit, calls = subject.jit, []
    net = subject.nn.Linear(2, 2)
    assert jit.trace(net, subject.ones(1, 2)) is net
    assert jit.trace(lambda x, y: calls.append(1) or x + y, (subject.ones(1), subject.ones(1)))(1, 2) == 3 and len(calls) == 2
    with pytest.raises(RuntimeError, match="eval"):
        jit.freeze(net)
    assert jit.optimize_for_inference(net).training is False and jit.freeze(net) is net
    assert jit.wait(jit.fork(lambda x: x + 1, 2)) == 3
    with pytest.raises(ZeroDivisionError):
        jit.wait(jit.fork(lambda: 1 / 0))


def test_assert_close(subject, oracle):
    """Class and message of every refusal, and what passes."""
    def found(torch):
        t, nan, out = torch.tensor, float("nan"), []
        pairs = [(t([1.0, 2, 3]), t([1.0, 2, 4])), (t([1.0, 2]), t([1.0, 2])), (t([1, 2]), t([1, 3])), (t(1.0), t(2.0)), (1.0, 1.1), (1, 2), (1.0, 1.0), (t([1.0]),
                t([1.0]).double()),
                 (t([1.0]), t([1.0, 2])), ([t([1.0])], [t([2.0])]), ({"a": t([1.0, 2.0])}, {"a": t([1.0, 3.0])}), (t([nan]), t([nan])), (t([1.0]), 1.0),
                         (np.ones(2), np.ones(2) * 2),
                 ("a", "a"), (None, None), (None, t(1.0)), (t([[1.0, 2], [3, 4]]), t([[1.0, 2], [3, 5.0]])), (t([True]), t([False])), (t([1 + 1j]), t([1 + 2j])),
                         (t([1.0, 2]), [1.0, 2]),
                 ([[t(1.0)]], [[t(2.0)]]), (True, False), (t([float("inf")]), t([1.0])), (t([0.0, 1]), t([1e-6, 1])), (torch.ones(2, 1).expand(2, 2),
                         torch.ones(2, 2)), (t(3), t(3.0)), (1, 1.0)]
        options = [{}, {"rtol": 0, "atol": 0}, {"rtol": 0.5, "atol": 0}, {"equal_nan": True}, {"check_dtype": False}, {"rtol": 1.0}, {"check_stride": True},
                {"atol": 2.0, "rtol": 0.0}]
        for a, b in pairs:
            for more in options:
                try:
                    module(torch, "testing").assert_close(a, b, **more)
                    out.append("close")
                except Exception as error:
                    out.append(f"{type(error).__name__} {error}".replace("torchlike._tensor", "torch").replace("torchlike", "torch"))
        for msg in ("words", lambda text: "first " + text[:9]):
            with pytest.raises(AssertionError) as error:
                module(torch, "testing").assert_close(t(1.0), t(2.0), msg=msg)
            out.append(str(error.value))
        return out
    for mine, real in zip(found(subject), found(oracle), strict=True):
        assert mine == real


def test_make_tensor(subject, oracle):
    def found(torch):
        make, out = module(torch, "testing").make_tensor, []
        torch.manual_seed(3)
        for name, more in (("float32", {}), ("float64", {"low": 0, "high": 2}), ("int64", {}), ("uint8", {}), ("bool", {}), ("complex64", {}), ("float16", {}),
                ("float32", {"noncontiguous": True}),
                           ("int32", {"low": -1, "high": 2, "exclude_zero": True}), ("float32", {"requires_grad": True}), ("int8", {"low": -1e9}), ("float32",
                                   {"low": 3, "high": 1}),
                           ("int64", {"requires_grad": True}), ("float32", {"low": float("nan")}), ("uint8", {"low": -5, "high": -1})):
            try:
                x = make((3, 4), dtype=getattr(torch, name), device="cpu", **more)
                out.append((x.tolist(), x.stride(), x.requires_grad, str(x.dtype)))
            except Exception as error:
                out.append(f"{type(error).__name__} {error}")
        return out
    for mine, real in zip(found(subject), found(oracle), strict=True):
        if isinstance(real, tuple):
            np.testing.assert_allclose(np.array(mine[0]), np.array(real[0]), rtol=1e-6)
            assert mine[1:] == real[1:]
        else:
            assert mine == real


def test_causal_biases(subject, oracle):
    def facts(torch):
        bias, attend = module(torch, "nn.attention.bias"), torch.nn.functional.scaled_dot_product_attention
        torch.manual_seed(0)
        q, k, v = torch.randn(2, 3, 8, requires_grad=True), torch.randn(2, 5, 8), torch.randn(2, 5, 8)
        out = []
        for make in (bias.causal_upper_left, bias.causal_lower_right):
            m = make(3, 5)
            attend(q, k, v, m).sum().backward()
            out += [repr(m), m.variant.name, q.grad.numpy(), attend(q, k, v, attn_mask=m, scale=0.3).detach().numpy(),
                    told(lambda m=m: attend(q, k, v, m, is_causal=True))[0]]
        return [*out, told(lambda: bias.causal_upper_left(2))[0], told(lambda: bias.causal_lower_right(5, 3))[1]]
    for mine, real in zip(facts(subject), facts(oracle), strict=True):
        np.testing.assert_allclose(mine, real, rtol=1e-5, atol=1e-6) if isinstance(real, np.ndarray) else None
        assert isinstance(real, np.ndarray) or mine == real


def test_parallel_helpers(subject):
    torch, parallel = subject, subject.nn.parallel
    x, words = torch.arange(5.0), {"a": torch.arange(4), "b": "same"}
    pieces = parallel.scatter((x, words, [torch.ones(2, 2)]), [-1, "cpu"])
    assert [len(p[0]) for p in pieces] == [3, 2] and pieces[1][1]["b"] == "same" and pieces[1][2][0].shape == (1, 2)
    joined = parallel.gather([{"y": torch.ones(2), "z": torch.tensor(1.0)}, {"y": torch.zeros(1), "z": torch.tensor(2.0)}], "cpu")
    assert joined["y"].tolist() == [1, 1, 0] and joined["z"].tolist() == [1, 2]
    net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.BatchNorm1d(1))
    copies = parallel.replicate(net, ["cpu", "cpu"])
    out = parallel.parallel_apply(copies, [torch.ones(2, 2), (torch.zeros(2, 2),)])
    (out[0].sum() + (out[1] * torch.arange(2.0).view(2, 1)).sum() + copies[0][0].weight.sum()).backward()
    assert net[0].weight.grad.tolist() == [[1, 1]] and copies[0][0] is not net[0] and list(copies[0].parameters()) == []
    with pytest.raises(AssertionError):
        parallel.parallel_apply(copies, [1])


@pytest.mark.parametrize("space", ["", ".nn.functional", ".linalg", ".fft", ".special"])
def test_functions_can_be_pickled(subject, space):
    """As processes of a pool need it; torch's are found by their names too."""
    import types
    names = vars(importlib.import_module(subject.__name__ + space))
    functions = [f for name, f in names.items() if isinstance(f, types.FunctionType) and not name.startswith("_")]
    assert len(functions) > 15 and [f.__name__ for f in functions if pickle.loads(pickle.dumps(f)) is not f] == []


SAME_FUNCTIONS = """
import importlib, pickle, types
spaces = [importlib.import_module(f"torchlike{name}") for name in ("", ".nn.functional", ".linalg", ".fft", ".special")]
torch, Tensor = spaces[0], spaces[0].Tensor
before = [(space, name, f) for space in (*spaces, Tensor) for name, f in vars(space).items() if isinstance(f, types.FunctionType) and not name.startswith("_")]

class Doubled(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, dispatch_sizes_strides_policy="sizes")
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        called.append(str(func))
        if "size" in str(func):
            return args[0].inner.shape
        return cls(args[0].inner * 2)

class Other:
    __torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: func.__name__)

called = []
x = Doubled(torch.ones(3))
x.size(), x.relu_(), torch.relu_(x), torch.eye(2).to_sparse().sum(), torch.add(Other(), 1), print(*called)
print([name for space, name, f in before if vars(space)[name] is not f or space is not Tensor and pickle.loads(pickle.dumps(f)) is not f], len(before) > 1000)
"""


def test_functions_stay_the_same_objects():
    """Whatever kinds of tensors a program makes: it may hold them, and have them as keys."""
    run = subprocess.run([sys.executable, "-c", SAME_FUNCTIONS], capture_output=True, text=True, timeout=120)
    assert run.stdout.splitlines() == ["aten.sym_size.default aten.relu_.default aten.relu_.default", "[] True"], run.stdout + run.stderr


def test_results_and_generators_are_pickled_beside_another_torch():
    """Their classes have torch's names, under which pickle would find real torch's."""
    largest, generator = torchlike.arange(6.0).view(2, 3).max(0), torchlike.Generator().manual_seed(3)
    for copied in (pickle.loads(pickle.dumps(largest)), copy.deepcopy(largest)):
        assert type(copied) is torchlike.return_types.max and copied.values.tolist() == [3, 4, 5] and copied.indices.tolist() == [1, 1, 1]
    for copied in (pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator)):
        assert type(copied) is torchlike.Generator and copied.device == generator.device and copied.get_state().equal(generator.get_state())
