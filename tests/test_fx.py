"""torch.fx: what a trace records, the text of graphs and of generated code, and what cannot be traced: against real torch."""
import math
import operator
from collections import namedtuple
from importlib import import_module
from typing import Optional

import pytest
from same import caught, same

Pair = namedtuple("Pair", "a b")


def _fx(torch):
    return import_module(torch.__name__ + ".fx")


def _text(gm):
    return str(gm.graph), gm.code


def _net(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.seq = nn.Conv2d(3, 4, 3), nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            self.p = nn.Parameter(torch.ones(4))
            self.register_buffer("b", torch.ones(4))
            self.c = torch.arange(4.0)

        def forward(self, x, y: torch.Tensor = None, *, k=1.0):
            h = nn.functional.relu(self.conv(x), inplace=True).mean((2, 3)) + self.p * self.b - self.c
            a, b = h.size(0), h.shape[1]
            h = torch.cat([h.view(a, b), h], dim=1)[:, :4][..., None].squeeze(-1)
            w = self.seq(h)
            return {"out": w, "k": (h, k, -h, 1 / h, h // 2, h**2, 2**h, h @ h.t(), ~(h > 1), h.T, h.dtype)}
    return Net()


@same
def test_module(torch):
    net = _net(torch)
    gm = _fx(torch).symbolic_trace(net)
    x = torch.randn(2, 3, 5, 5)
    want, got = net(x), gm(x)
    return (*_text(gm), str(gm), str(dict(gm.named_children())), sorted(gm.state_dict()), want["out"], got["out"],
            [(n.name, n.op, str(n.users), str(n.all_input_nodes)) for n in gm.graph.nodes])


@same
def test_functions_as_torch_names_them(torch):
    F = torch.nn.functional

    def f(x):
        return (F.max_pool2d(x, 2), F.max_pool2d(x, 2, return_indices=True), F.adaptive_avg_pool2d(x, 1), F.gelu(x), F.linear(x, x), F.softmax(x, dim=-1),
                F.scaled_dot_product_attention(x, x, x, is_causal=True), torch.tanh(x), torch.meshgrid(x, x), torch.einsum("ij,jk->ik", x, x),
                torch.einsum("ij,jk->ik", [x, x]),
                torch.split(x, 2), torch.norm(x, 2), torch.linalg.norm(x), torch.fft.fft(x), torch.special.zeta(x, x), torch.unique(x), torch.max(x, 1),
                torch.cdist(x, x), torch.tensordot(x, x, dims=1), torch.stft(x, 4), torch.atleast_2d(x, x), F.upsample(x, 2), F.tanh(x), F.one_hot(x),
                F.l1_loss(x, x), F.relu_(x), F.conv2d(x, x), F.logsigmoid(x), F.cross_entropy(x, x), F.normalize(x), torch.ops.aten.add(x, x),
                torch.ops.aten.relu.default(x), torch.full((x.size(0), 2), 1.0), F.layer_norm(x, (2,)), F.interpolate(x, scale_factor=2), F.dropout(x))
    return _text(_fx(torch).symbolic_trace(f))


@same
def test_operators_of_the_programs_own(torch):
    """A registered operator is one step, not what its kernel does."""
    space = f"{torch.__name__}_fx"
    library = import_module(torch.__name__ + ".library")

    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2
    op = library.custom_op(f"{space}::doubled", doubled, mutates_args=())
    gm = _fx(torch).symbolic_trace(lambda x: op(x + 1) - getattr(torch.ops, space).doubled.default(x))
    return [t.replace(space, "space") for t in _text(gm)], gm(torch.ones(2))


@same
def test_ranges_of_the_profiler(torch):
    def f(x):
        handle = torch.ops.profiler._record_function_enter("range")
        y = x.relu()
        torch.ops.profiler._record_function_exit(handle)
        return y
    g = _fx(torch).Graph()
    x = g.placeholder("x")
    handle = g.call_function(torch.ops.profiler._record_function_enter, ("range",))
    y = g.call_function(torch.relu, (x,))
    g.call_function(torch.ops.profiler._record_function_exit, (handle,))
    g.output(y)
    gm = _fx(torch).GraphModule({}, g)
    with torch.autograd.profiler.profile() as p:
        f(gm(torch.ones(2)))
    return str(g), [(e.key, e.count) for e in p.key_averages() if e.key == "range"]


@same
def test_generated_code_runs(torch):
    F = torch.nn.functional

    def f(x):
        y = F.gelu(x) + F.linear(x, x) + F.softplus(x) + F.logsigmoid(x)
        return (y, torch.linalg.norm(y), torch.fft.rfft(y).abs(), torch.split(y, 2), torch.norm(y), torch.tensordot(y, y), torch.einsum("ij,jk->ik", y, y),
                F.softmax(y, -1), F.normalize(y), torch.ops.aten.add(y, y), abs(y), math.sqrt(2) * y, y.max(1)[0], torch.max(y, 1).values)
    x = torch.randn(3, 3)
    gm = _fx(torch).symbolic_trace(f)
    return f(x), gm(x), _text(gm)


@same
def test_leaves_of_torch_nn_opened(torch):
    fx, nn = _fx(torch), torch.nn

    class Open(fx.Tracer):
        def is_leaf_module(self, m, name):
            return False
    layers = [nn.Linear(3, 3), nn.Conv2d(2, 2, 3), nn.ConvTranspose1d(2, 2, 3), nn.LayerNorm(3), nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1),
              nn.Dropout(), nn.Embedding(4, 3), nn.Flatten(), nn.Upsample(scale_factor=2), nn.Softmax(1), nn.GELU(), nn.PReLU(), nn.Hardtanh(),
              nn.ZeroPad2d(1), nn.PixelShuffle(2), nn.GroupNorm(1, 3), nn.Identity()]
    return [str(Open().trace(nn.Sequential(m).eval())) for m in layers]


@same
def test_tensors_with_proxies(torch):
    c = torch.ones(3)
    fs = [lambda x: c + x, lambda x: c - x, lambda x: c // x, lambda x: c % x, lambda x: c**x, lambda x: c @ x, lambda x: c < x, lambda x: c == x,
          lambda x: c & x, lambda x: c[x], lambda x: c[0, x], lambda x: c.add(x), lambda x: c.view(x, 1), lambda x: c.mul_(x), lambda x: torch.add(c, x),
          lambda x: c.masked_fill(x, 1), lambda x: c.reshape((x, 2)), lambda x: torch.zeros((x, 2)), lambda x: torch.arange(0, x), lambda x: x + c,
          lambda x: x[c > 0], lambda x: torch.arange(x.shape[1], device=x.device), lambda x: torch._assert(x, "m"), lambda x: divmod(1, 2)]
    return [str(_fx(torch).symbolic_trace(f).graph) for f in fs], c, c.add(1)


@same
def test_refusals(torch):
    fx = _fx(torch)

    def loop(x):
        for _ in x:
            pass

    def unpack(x):
        a, b = x
        return a + b

    def assign(x):
        x[0] = 1
    fs = [lambda x: 1 if x.sum() > 0 else 2, loop, unpack, assign, lambda x: len(x), lambda x: int(x), lambda x: float(x), lambda x: bool(x), lambda x: [1][x],
          lambda x: range(x), lambda x: x in [1], lambda x: not x, lambda x: {x}, lambda x: object(), lambda x: type(x), lambda x: {x: 1}, lambda x: dict(**x),
          lambda x: f"{x}", lambda x: x is None, lambda x: isinstance(x, torch.Tensor), lambda x: round(x), lambda x: x.keys(), lambda x: x.a.b(1).c]
    words = []
    for f in fs:
        try:
            words.append(fx.symbolic_trace(f).code)
        except Exception as error:
            words.append((type(error).__name__, str(error)))
    return words, issubclass(fx.proxy.TraceError, ValueError), caught(fx.symbolic_trace, 3), fx._symbolic_trace.is_fx_tracing()


@same
def test_operators(torch):
    def f(x):
        return (x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 * x, x / 2, 2 / x, x // 2, 2 // x, x % 2, 2 % x, x**2, 2**x, x @ x, x << 1, x >> 1, x & x, x | x, x ^ x,
                -x, +x, ~x, abs(x), x == x, x != x, x < x, x <= x, x > x, x >= x, x[0], x[1:, None], x[..., x])
    return _text(_fx(torch).symbolic_trace(f))


@same
def test_signatures(torch):
    fx = _fx(torch)

    def typed(x: torch.Tensor, y: Optional[torch.Tensor] = None, z: list[int] = (1,), q: "torch.Tensor" = None,  # noqa: UP045
              s: torch.device = None, any: str = "", o: int | None = None, d: torch.dtype = torch.float32) -> tuple[torch.Tensor, int]:
        return x, 1

    def stars(x, *a, **k):
        return x + a[0] + k["z"]

    def keywords(x, *, b=2):
        return Pair(x, b), slice(x, None), range(2), float("inf"), torch.float32, torch.Size([1, 2]), {"a": [x]}, True, "s'", ..., torch.device("cpu")
    gms = [fx.symbolic_trace(f) for f in (typed, stars, keywords)]
    return [_text(gm) for gm in gms], gms[1](1, 2, z=3)


@same
def test_concrete_args(torch):
    fx = _fx(torch)

    def f(x, flag, n=3, m=None):
        x = x + 1 if flag else x
        for _ in range(n):
            x = x * 2
        return x if m is None else m

    def g(x, d):
        return x + d["a"] + d["b"][0]
    a = fx.symbolic_trace(f, concrete_args={"flag": True, "n": 2, "m": None})
    b = fx.symbolic_trace(g, concrete_args={"d": {"a": fx.PH, "b": (fx.PH, 3)}})
    x = torch.ones(1)
    return (*_text(a), *_text(b), a(x, True, 2), caught(a, x, False, 2), caught(a, x, True, 2, 5), b(x, {"a": x, "b": (x, 3)}), str(b.graph._codegen.pytree_info),
            caught(b, x, {"a": x, "b": (x, 4)}))


@same
def test_tracer_hooks(torch):
    fx, log = _fx(torch), []

    class T(fx.Tracer):
        proxy_buffer_attributes = True

        def is_leaf_module(self, m, name):
            log.append((type(m).__name__, name))
            return super().is_leaf_module(m, name)

        def call_module(self, m, forward, args, kwargs):
            log.append((self.path_of_module(m), str(args)))
            return super().call_module(m, forward, args, kwargs)

        def getattr(self, attr, value, cache):
            log.append((attr, type(value).__name__, type(super().getattr(attr, value, cache)).__name__))
            return super().getattr(attr, value, cache)
    net, t = _net(torch), T()
    g = t.trace(net)
    return (str(g), log, str([(n.name, list(n.meta.get("nn_module_stack", {}))) for n in g.nodes]), t.root is net, caught(t.path_of_module, torch.nn.ReLU()),
            str(fx.Tracer(param_shapes_constant=True).trace(net)), str(fx.Tracer(autowrap_functions=(_helper,)).trace(_calls_helper)))


@same
def test_create_proxy_of_one_s_own(torch):
    """torchvision's feature extraction overrides create_proxy without its last parameter."""
    fx, log = _fx(torch), []

    class T(fx.Tracer):
        def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None):
            log.append((kind, str(target)))
            return super().create_proxy(kind, target, args, kwargs, name, type_expr)

    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.by = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x * self.by
    return str(T().trace(Scale())), str(T(param_shapes_constant=True).trace(Scale())), log


def _helper(x):
    return 3 if x is None else x * 2


def _calls_helper(x):
    return _helper(x) + math.floor(x)


@same
def test_namespace(torch):
    fx = _fx(torch)
    g = fx.Graph()
    names = [g.placeholder(n).name for n in ("x", "x", "x_1", "self", "input", "1a", "a.b", "max", "for", "torch", "foo_2", "foo", "foo", "foo_2", "X", "device",
                                             "inf", "operator", "Foo", "fooBar", "_x", "__x", "getattr", "x_01")]
    F, aten = torch.nn.functional, torch.ops.aten
    names += [g.call_function(f).name for f in (torch.relu, F.relu, operator.add, math.sqrt, len, getattr, F.max_pool2d, aten.add.Tensor, F.logsigmoid, torch.max,
                                                F.conv2d, torch.linalg.norm)]
    names += [g.call_module(m).name for m in ("a.b.0", "0", "Layer1.conv")] + [g.call_method("__getitem__").name, g.get_attr("W").name]
    return names, str(g)


@pytest.mark.parametrize("when", ["before", "after"])
def test_functions_taken_before_fx_is_imported(tmp_path, when):
    """`from torch import relu` ahead of `import torch.fx` is traced all the same."""
    import subprocess
    import sys
    lines = ["from torch import sigmoid", "import torch.fx"]
    (tmp_path / "program.py").write_text("import torch\n" + "\n".join(lines if when == "before" else lines[::-1]) + """
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.act = ACT
    def forward(self, x):
        return sigmoid(self.act(x))
""".replace("ACT", "torch.nn.functional.relu") + "print(torch.fx.symbolic_trace(M()).graph)\n")
    want, got = (subprocess.run([sys.executable, *how, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=120)
                 for how in ((), ("-m", "torchlike.run")))
    assert got.stdout == want.stdout, got.stderr
    assert "torch.sigmoid" in want.stdout


def test_wrap_alone_loads_nothing(tmp_path):
    """Libraries import torch.fx for `wrap`: torch's functions must not look at their arguments for that."""
    import subprocess
    import sys
    code = ("import sys, torchlike as torch, torchlike.fx as fx; relu = torch.relu; fx.wrap('len'); "
            "assert not hasattr(relu, '_dispatches') and 'torchlike.overrides' not in sys.modules and 'torchlike.fx.graph' not in sys.modules; fx.symbolic_trace; "
            "assert torch.relu is relu and hasattr(relu, '_dispatches')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def annotated(x, scale: float = 1.0):
    return x * scale


@same
def test_annotations_of_a_pickled_graph(torch):
    """They are objects, not the texts that they are in a file with `from __future__ import annotations`."""
    fx = import_module(f"{torch.__name__}.fx")
    g = fx.symbolic_trace(annotated)
    if torch.__name__ == "torch":
        import pickle
        g = pickle.loads(pickle.dumps(g))
    else:
        from torchlike.fx.graph_module import _forward_from_src
        f = _forward_from_src(g.code, {})
        assert f.__annotations__ == {"scale": float}
    return g.code
