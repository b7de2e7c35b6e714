"""functorch.compile: forward and backward graphs compiled ahead of time, beside real torch."""
import copy
import importlib

from same import same


def _compile(torch):
    return importlib.import_module("functorch.compile" if torch.__name__ == "torch" else "torchlike._functorch.package.compile")


class Seen:
    """A compiler that keeps what it is given."""

    def __init__(self):
        self.graphs = []

    def __call__(self, module, inputs):
        self.graphs.append(([str(n.target) for n in module.graph.nodes if n.op == "call_function"], [tuple(x.shape) for x in inputs],
                            [n.name for n in module.graph.nodes if n.op == "placeholder"]))
        return module


def words(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as raised:
        return type(raised).__name__, str(raised)[:100]
    return "no error"


def loss(x, w):
    return (x @ w).relu().sum() + (x * 2).mean()


@same
def test_forward_and_backward(torch):
    """Their operators, what one saves for the other, and that other values run without a new graph."""
    x, w, forward, backward = torch.randn(3, 4), torch.randn(4, 2, requires_grad=True), Seen(), Seen()
    compiled, found = _compile(torch).aot_function(loss, forward, backward), []
    for n in range(3):
        y = compiled(x * n, w)
        y.backward()
        found += [y, w.grad.clone()]
    return found, forward.graphs, backward.graphs


@same
def test_without_gradients(torch):
    x, forward, backward, inference = torch.randn(3, 4), Seen(), Seen(), Seen()
    y = _compile(torch).aot_function(loss, forward, backward, inference_compiler=inference)(x, torch.ones(4, 2))
    return y, forward.graphs, backward.graphs, inference.graphs


@same
def test_nested_results(torch):
    def f(given, scale):
        return {"a": (given["x"] * given["w"]).sin(), "n": given["x"].argmax(), "c": [scale * 2, given["x"]]}
    w = torch.ones(3, requires_grad=True)
    made = _compile(torch).aot_function(f, _compile(torch).nop)({"x": torch.arange(3.0), "w": w}, scale=4)
    made["a"].sum().backward()
    return made, w.grad, made["a"].requires_grad, made["n"].requires_grad


@same
def test_written_arguments(torch):
    def f(a, b):
        a.add_(1)
        return a * b
    forward, backward, a, b = Seen(), Seen(), torch.zeros(2), torch.ones(2, requires_grad=True)
    compiled = _compile(torch).aot_function(f, forward, backward)
    compiled(a, b).sum().backward()
    y = compiled(a, b)
    return a, y, b.grad, forward.graphs, backward.graphs


@same
def test_modules(torch):
    """Their parameters' gradients, and running statistics."""
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU())
    plain, compiled, x = copy.deepcopy(net), _compile(torch).aot_module(net, _compile(torch).nop), torch.randn(5, 4)
    for _ in range(3):
        compiled(x).square().sum().backward()
        plain(x).square().sum().backward()
    close = [torch.allclose(a, b, atol=1e-5) for a, b in zip([*net.buffers(), *(p.grad for p in net.parameters())],
                                                             [*plain.buffers(), *(p.grad for p in plain.parameters())])]
    return close, compiled(x), [name for name, _ in compiled.named_parameters()]


@same
def test_simplified(torch):
    class Net(torch.nn.Linear):
        def forward(self, x):
            return (super().forward(x),)
    net, x, forward = Net(4, 3), torch.randn(2, 4), Seen()
    made = _compile(torch).aot_module_simplified(net, (x,), forward, Seen())
    made(x)[0].sum().backward()
    return made(x)[0], net.weight.grad, net.bias.grad, forward.graphs, words(_compile(torch).aot_module_simplified, torch.nn.Linear(4, 3), (x,), forward)


@same
def test_the_smallest_saved(torch):
    """min_cut_rematerialization_partition: fewer bytes than the default, and the same gradients."""
    def f(x, w):
        return ((x @ w).sin().cos().exp() * 2).sum()
    x, w = torch.randn(3, 4), torch.randn(4, 5, requires_grad=True)
    def run(partition):
        kept = []
        compiled = _compile(torch).aot_function(f, lambda module, inputs: lambda *args: kept.append(module(*args)) or kept[-1], _compile(torch).nop, partition)
        gradient, = torch.autograd.grad(compiled(x, w), w)
        return gradient, sum(t.numel() for t in kept[0][1:] if t is not x and t is not w)
    default, smallest = run(_compile(torch).default_partition), run(_compile(torch).min_cut_rematerialization_partition)
    return default[0], smallest[0], smallest[1] < default[1]


@same
def test_random_numbers_are_not_drawn_twice(torch):
    x = torch.randn(400, requires_grad=True)
    partition = _compile(torch).min_cut_rematerialization_partition
    y = _compile(torch).aot_function(lambda x: torch.nn.functional.dropout(x, 0.5) * 3, _compile(torch).nop, partition_fn=partition)(x)
    y.sum().backward()
    return torch.equal(y == 0, x.grad == 0), 100 < int((y == 0).sum()) < 300


@same
def test_boxed(torch):
    c = _compile(torch)
    x, w = torch.randn(3, 4), torch.randn(4, 2, requires_grad=True)
    return c.make_boxed_func(lambda a, b: a + b)([1, 2]), c.aot_function(loss, c.make_boxed_compiler(lambda module, inputs: module.forward))(x, w)


@same
def test_refused(torch):
    """A second derivative, and tensors that are no arguments."""
    c, outside, x = _compile(torch), torch.ones(2), torch.tensor([0.3, 0.4], requires_grad=True)
    y, = torch.autograd.grad(c.aot_function(lambda x: x.sin() * x, c.nop)(x).sum(), x, create_graph=True)
    return y, words(y.sum().backward), words(c.aot_function(lambda x: x * outside, c.nop), x)[0]
