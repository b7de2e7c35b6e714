"""torch.ops.aten, torch._C and torch.utils.flop_counter, beside real torch."""
import copy
import functools
import importlib
import subprocess
import sys
import warnings

import pytest


def both(subject, oracle, facts):
    assert facts(subject) == facts(oracle)


def test_packets_and_overloads(subject, oracle):
    """Names, texts, identity, what is missing."""
    def facts(torch):
        p = torch.ops.aten.cat
        out = [str(p), repr(p), str(p.default), repr(p.default), p.overloads(), list(p), p.default.name(), p.out.name(), p.default._overloadname,
               p.default.overloadpacket is p, p.default._overloadpacket is p,
               p.default._opname, p.__name__, p.default.__name__, p.__module__, p._qualified_op_name, p.default.namespace,
               p.default is torch.ops.aten.cat.default, copy.deepcopy([p, p.default]) == [p, p.default], hasattr(p, "Tensor"), torch.ops.aten._foreach_maximum_.overloads()]
        for name in ("nope", "cat.nope"):
            with pytest.raises(AttributeError) as error:
                exec(f"torch.ops.aten.{name}", {"torch": torch})
            out.append(str(error.value))
        return out
    both(subject, oracle, facts)


def test_operators_in_torch(subject, oracle):
    """Operators that torch has as functions too, which functions of programs call in their backward."""
    def facts(torch):
        out, x, g = [], torch.arange(12.).reshape(3, 4).sin(), torch.arange(12.).reshape(3, 4).cos()
        for dim in 0, -1:
            p, logs = torch._softmax(x, dim, False), torch._log_softmax(x, dim, False)
            out += [t.double().numpy().round(5).tolist() for t in (p, logs, torch._softmax_backward_data(g, p, dim, x.dtype),
                                                                  torch._log_softmax_backward_data(g, logs, dim, torch.float32))]
        with pytest.raises(IndexError) as error:
            torch._softmax_backward_data(g, p, 5, x.dtype)
        return *out, str(error.value), [t.tolist() for t in torch._unique2(torch.tensor([3, 1, 1]), return_inverse=True)]
    both(subject, oracle, facts)


def test_derivatives_by_name(subject, oracle):
    """Arguments under the operators' names, as in EDM's networks, and of what is no result."""
    def facts(torch):
        aten, g, x = torch.ops.aten, torch.arange(6.).reshape(2, 3).cos(), torch.linspace(-1, 1, 6).reshape(2, 3)
        made = [torch._softmax_backward_data(grad_output=g, output=x, dim=1, input_dtype=torch.float32),
                torch._log_softmax_backward_data(g, x, input_dtype=torch.float32, dim=0), aten.tanh_backward(grad_output=g, output=x),
                aten.sigmoid_backward.default(g, output=x), aten.gelu_backward(grad_output=g, self=x), aten.gelu_backward(g, x, approximate="tanh"),
                aten.leaky_relu_backward(g, x, negative_slope=0.1, self_is_result=False), aten.softplus_backward(g, x, beta=1, threshold=20),
                aten.hardtanh_backward(g, x, min_val=-0.5, max_val=0.5), aten.mse_loss_backward(grad_output=torch.ones(()), self=g, target=x, reduction=1),
                aten.select_backward(g[0], input_sizes=[2, 3], dim=0, index=1), aten.silu_backward(g, self=x),
                aten.threshold_backward(grad_output=g, self=x, threshold=0), aten.threshold_backward(g, x, -0.4), aten.threshold_backward(g, x.log(), 0.5)]
        return [t.double().numpy().round(5).tolist() for t in made]
    both(subject, oracle, facts)


def test_indices_of_compressed_rows(subject, oracle):
    """torch._convert_indices_from_coo_to_csr and back, which torch_geometric makes its matrices with."""
    def facts(torch):
        out = []
        for rows, n in (([0, 0, 2], 4), ([], 3), ([1], 2)):
            for dtype in torch.int64, torch.int32:
                for small in False, True:
                    rows_, others = torch.tensor(rows, dtype=dtype), torch.arange(len(rows), dtype=dtype)
                    pointers = torch._convert_indices_from_coo_to_csr(rows_, n, out_int32=small)
                    out += [pointers, torch._convert_indices_from_csr_to_coo(pointers, others),
                            torch.ops.aten._convert_indices_from_csr_to_coo.default(pointers, others, out_int32=small, transpose=True)]
        for wrong in [[0, 1]], [0.5, 1.0]:
            with pytest.raises((RuntimeError, NotImplementedError)) as error:
                torch._convert_indices_from_coo_to_csr(torch.tensor(wrong), 2)
            out.append(error.value)
        return [(str(x.dtype), x.tolist()) if isinstance(x, torch.Tensor) else (type(x).__name__, str(x)) for x in out]
    both(subject, oracle, facts)


def test_calls(subject, oracle):
    """Public functions under their operators' names, and operators that have no public function."""
    def facts(torch):
        a, x = torch.ops.aten, torch.arange(12.).reshape(3, 4)
        grads = a.convolution_backward.default(torch.ones(1, 2, 3), torch.arange(5.).reshape(1, 1, 5), torch.ones(2, 1, 3), [2], [1], [0], [1], False, [0], 1,
                                               [True, True, True])
        turned = a.convolution_backward.default(torch.ones(1, 3, 4), torch.ones(1, 2, 2), torch.ones(2, 3, 3), [3], [1], [0], [1], True, [0], 1,
                                                [True, False, True])
        made = [a.add.Tensor(x, 1), a.add(x, x, alpha=3), a._to_copy.default(x, dtype=torch.float64), a.slice.Tensor(x, 1, 0, 9223372036854775807, 2),
                a.slice.Tensor(x, -1, 1), a.index.Tensor(x, [None, torch.tensor([1, 2])]), a.select.int(x, 0, 1), a.sum.dim_IntList(x, [1]),
                a.linalg_inv.default(torch.eye(2)), a.mm.default(x, x.t()), a.unbind.int(x)[0], a.relu_.default(x - 3), a.silu_(x - 3), a.hardswish_(x - 3),
                a.mish_.default(x - 3), a.hardsigmoid_.default(x - 3), a.sort.stable(x, stable=True)[1],
                a.gelu.default(x, approximate="tanh"), a._sparse_addmm.default(torch.ones(3, 3), x, x.t(), beta=2), *grads, turned[0], turned[2],
                a.convolution.default(torch.ones(1, 1, 5), torch.ones(2, 1, 3), None, [2], [1], [1], False, [0], 1),
                a._convolution.default(torch.ones(1, 1, 5), torch.ones(2, 1, 3), None, [2], [1], [1], False, [0], 1, False, False, True, True),
                a._convolution.deprecated(torch.ones(1, 2, 5), torch.ones(2, 1, 3), None, [2], [1], [1], True, [1], 1, False, False, True)]
        return ([(str(m.dtype), m.double().round(decimals=4).tolist()) for m in made],
                a.alias.default(x).data_ptr() == x.data_ptr(), a.sym_size.int(x, 1), a.sym_numel.default(x), a.sym_stride.int(x, 0), turned[1])
    both(subject, oracle, facts)


def test_names_of_the_c_part(subject, oracle):
    """Arguments of `to`, the tracing state, classes that take nothing over."""
    def facts(torch):
        c = importlib.import_module(f"{torch.__name__}._C")
        tensor = type("Plainly", (torch.Tensor,), {"__torch_function__": c._disabled_torch_function_impl})
        x = torch.ones(3).as_subclass(tensor)
        kinds = [type(y).__name__ for y in (x, x + 1, torch.add(x, 1), x.sum(), x.detach(), torch.cat([x, x]), x.clone())]
        called = c._disabled_torch_function_impl(torch.add, (tensor,), (x, 2), {})
        parsed = [str(c._nn._parse_to(*given)) for given in (("cpu", torch.float64), (torch.zeros(1),), ())]
        return kinds, type(called).__name__, called.tolist(), parsed, c._get_tracing_state(), c._is_tracing(), c._get_default_device(), c.Generator is torch.Generator
    both(subject, oracle, facts)


def test_aliases_and_modes_as_the_c_part_says(subject, oracle):
    """tensordict 0.15 asks both."""
    def facts(torch):
        c, overrides = importlib.import_module(f"{torch.__name__}._C"), importlib.import_module(f"{torch.__name__}.overrides")
        a = torch.ones(3)
        found = [c._is_alias_of(a, b) for b in (a, a[1:], a.detach(), a.clone(), torch.nn.Parameter(a), torch.ones(3))]
        found.append(c._is_torch_function_mode_enabled())
        with overrides.TorchFunctionMode():
            found.append(c._is_torch_function_mode_enabled())
            with c.DisableTorchFunctionSubclass():
                found.append(c._is_torch_function_mode_enabled())
            with c.DisableTorchFunction():
                found.append(c._is_torch_function_mode_enabled())
        return found
    both(subject, oracle, facts)


def test_questions_are_not_taken_over(subject, oracle):
    """is_tensor and its kin look at any object, also one with `__torch_function__`."""
    def facts(torch):
        importlib.import_module(f"{torch.__name__}.overrides")

        class Thing:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return "taken"
        thing = Thing()
        return torch.is_tensor(thing), torch.is_storage(thing), torch.typename(thing).rpartition(".")[2], torch.numel(thing), torch.zeros_like(thing)
    both(subject, oracle, facts)


def test_records_of_a_file(subject, oracle, tmp_path):
    """PyTorchFileReader."""
    def facts(torch):
        path = tmp_path / f"{torch.__name__}.pt"
        torch.save({"a": torch.arange(3.), "b": [1]}, path)
        r = torch.PyTorchFileReader(str(path))
        stored = r.get_storage_from_record("data/0", 3, torch.float32)
        with pytest.raises(RuntimeError):
            r.get_record("nope")
        with pytest.raises(RuntimeError):
            torch.PyTorchFileReader(str(tmp_path / "nope"))
        with open(path, "rb") as f:
            order = torch.PyTorchFileReader(f).get_record("byteorder")
        return (r.has_record("data/0"), r.has_record("x"), set(r.get_all_records()) >= {"data.pkl", "data/0"}, r.get_record("version"), order,
                stored.shape, stored.dtype == torch.float32, stored.untyped_storage().nbytes(), r.get_record_size("data/0"), len(r.serialization_id()) > 0)
    both(subject, oracle, facts)


def _counted(torch, run, **options):
    module = importlib.import_module(f"{torch.__name__}.utils.flop_counter")
    with module.FlopCounterMode(display=False, **options) as counter:
        run()
    return {name: {str(op): cost for op, cost in counts.items()} for name, counts in counter.get_flop_counts().items() if counts}


def test_flops(subject, oracle):
    """Forward and backward, by module, in PyTorch's numbers; values looked at and optimizer steps inside."""
    def facts(torch):
        nn = torch.nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.up = nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.ConvTranspose2d(2, 2, 2)
                self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

            def forward(self, x):
                x = self.conv(x).relu().mean((2, 3))
                x.sum().item()
                return self.up((self.body(x) @ torch.ones(4, 8)).reshape(2, 2, 2, 2))
        m, x = Net(), torch.randn(2, 3, 16, 16)
        optimizer = torch.optim.SGD(m.parameters(), 0.1)

        def train():
            for _ in range(2):
                optimizer.zero_grad()
                m(x).sum().backward()
                optimizer.step()
        w = torch.randn(6, 1, 3, requires_grad=True)

        def alone():
            q = torch.randn(2, 3, 10, requires_grad=True)
            nn.functional.conv1d(q, w, groups=3).sum().backward()
            torch.einsum("bij,bjk->bik", torch.randn(2, 3, 4), torch.randn(2, 4, 5))
            torch.randn(3, 4).mv(torch.randn(4))

        def layers(device):
            given = {"device": device, "requires_grad": True}
            nn.Sequential(nn.Conv2d(3, 4, 3, device=device), nn.ReLU(), nn.Flatten(), nn.Linear(16, 5, device=device))(torch.randn(2, 3, 4, 4, device=device)).sum().backward()
            for options, heads in (({}, 4), ({"is_causal": True, "enable_gqa": True}, 2), ({"dropout_p": 0.5}, 4)):
                q, k, v = torch.randn(2, 4, 5, 8, **given), torch.randn(2, heads, 7, 8, device=device), torch.randn(2, heads, 7, 6, **given)
                nn.functional.scaled_dot_product_attention(q, k, v, **options).sum().backward()
            for kind in (nn.GRU, nn.LSTM, nn.RNN):
                net = kind(4, 6, 2, bidirectional=True, device=device)
                net(torch.randn(3, 2, 4, device=device))[0].sum().backward()
                if kind is nn.GRU:
                    net(torch.randn(3, 2, 4, **given), torch.randn(4, 2, 6, **given))[0].sum().backward()

        def projected():
            for x in (torch.randn(3, 2, 4), torch.randn(3, 2, 4, requires_grad=True)):
                nn.LSTM(4, 6, 2, proj_size=5, bidirectional=True)(x)[0].sum().backward()
        return _counted(torch, lambda: m(x)), _counted(torch, train), _counted(torch, alone), sum(_counted(torch, projected)["Global"].values()), [
            _counted(torch, functools.partial(layers, d))["Global"] for d in ("cpu", "meta")]
    both(subject, oracle, facts)


def test_module_tracker(subject, oracle):
    """The names of the modules that run, in forward and backward."""
    def facts(torch):
        seen, net = [], torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Sequential(torch.nn.Tanh()))
        tracker = importlib.import_module(f"{torch.__name__}.utils.module_tracker").ModuleTracker()
        with tracker:
            net[0].register_forward_hook(lambda *given: seen.append((sorted(tracker.parents), tracker.is_bw)))
            net[1][0].register_forward_hook(lambda m, args, y: y.register_hook(lambda g: seen.append(sorted(tracker.parents))) and None)
            net(torch.ones(1, 2, requires_grad=True)).sum().backward()
        return seen, tracker.parents
    both(subject, oracle, facts)


def test_flops_by_formulas_of_ones_own(subject, oracle):
    """Of a program's own operator, whose kernel does not count then; of one of PyTorch's; and for one counter alone."""
    def facts(torch):
        module = importlib.import_module(f"{torch.__name__}.utils.flop_counter")
        library, aten = importlib.import_module(f"{torch.__name__}.library"), torch.ops.aten

        def twice(x: torch.Tensor) -> torch.Tensor:
            return (x @ x) * ((x @ x).sum().item() > 0)  # looks at a value
        op = library.custom_op(f"{torch.__name__}_flops::twice", twice, mutates_args=())
        packet = getattr(torch.ops, f"{torch.__name__}_flops").twice
        asked = []

        @module.register_flop_formula(packet)
        def by_shape(*args, **kwargs):
            asked.append((args, kwargs))
            return 9001

        @module.register_flop_formula([aten.erfinv], get_raw=True)
        def by_tensor(x, *args, out_val=None, **kwargs):
            return x.numel() + out_val.shape[0]
        x = torch.ones(3, 3)

        def run():
            op(x)
            x.erfinv()
            return x @ x + x
        with module.FlopCounterMode(display=False) as counter:
            run()
        with module.FlopCounterMode(display=False, custom_mapping={aten.add: lambda a, b, out_shape, **kwargs: a[0] + out_shape[1],
                                                                   aten.mm: lambda a, b, out_shape, **kwargs: 5}) as other:
            run()
        refused = []
        for target in (packet, aten.mm, run):
            try:
                module.register_flop_formula(target)(run)
            except (RuntimeError, ValueError) as error:
                refused.append(type(error))
        del module.flop_registry[aten.erfinv], module.flop_registry[packet]
        return [sorted(c.get_flop_counts()["Global"].values()) for c in (counter, other)], counter.get_total_flops(), asked, refused
    both(subject, oracle, facts)


def test_classes_that_take_over_are_told_of_the_operator(oracle, subject):
    def told(torch):
        seen = []

        class Mine(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append((str(func), type(func).__name__, [t.__name__ for t in types]))
                return super().__torch_function__(func, types, args, kwargs or {})

        class Other:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append((str(func), [t.__name__ for t in types]))
                return 5
        aten, x, y = torch.ops.aten, torch.ones(2).as_subclass(Mine), torch.ones(2)
        made = [aten.abs(x), aten.abs.default(x), aten.add(x, 1), aten.add.Tensor(y, x), aten.abs_(x), aten.cat([x, y]), aten.sum(x), aten.mul(y, other=x),
                aten.abs(Other()), aten.add(y, Other()), aten.abs.default(Other()), aten.abs(y)]
        return list(seen), [(type(m).__name__, m.tolist() if isinstance(m, torch.Tensor) else m) for m in made]
    assert told(subject) == told(oracle)


FIRST = """
import sys
torch = __import__(sys.argv[1])

class Handler:
    def __call__(self, func, types, args=(), kwargs=None):
        return str(func)

class Other:
    __torch_function__ = Handler()
print(torch.ops.aten.add(torch.ones(1), Other()), torch.ops.aten.neg.default(Other()))
"""


def test_the_first_class_of_a_process_is_told_of_the_operator(subject):
    """Also one that derives from no Tensor, whose handler is no function."""
    texts = [subprocess.run([sys.executable, "-c", FIRST, name], capture_output=True, text=True, timeout=120)
             for name in ("torch", subject.__name__)]
    assert texts[0].stdout == texts[1].stdout == "aten.add aten.neg.default\n", texts[1].stderr


def test_of_masked_tensors_are_masked_tensors(oracle, subject):
    def made(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            m = torch.masked.masked_tensor(torch.tensor([1.0, -2, 3]), torch.tensor([True, False, True]))
            for x in (torch.ops.aten.abs(m), torch.ops.aten.add(m, m), torch.ops.aten.neg.default(m)):
                yield type(x).__name__, x.to_tensor(0.0).tolist()
    assert list(made(subject)) == list(made(oracle))


def test_flops_of_meta_tensors_inside_a_transformation(subject):
    def f(x):
        return x.sum() + (subject.ones(3, 4, device="meta") @ subject.ones(4, 2, device="meta")).shape[0]
    assert subject.vmap(f)(subject.ones(2, 3)).tolist() == [6, 6]
    assert _counted(subject, lambda: subject.vmap(f)(subject.ones(2, 3)))["Global"] == {"aten.mm": 48}


def test_a_formula_of_ones_own_counts_forwards(subject):
    """PyTorch calls it for each product of the backward, too, which are one operation here and counted with the formula of that."""
    def run():
        (subject.ones(2, 3, requires_grad=True) @ subject.ones(3, 4)).sum().backward()
    assert _counted(subject, run, custom_mapping={subject.ops.aten.mm: lambda a, b, out_shape=None: 7})["Global"] == {"aten.mm": 7 + 48}
