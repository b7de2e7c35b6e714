"""torch.jit._get_trace_graph beside real torch: what programs read there that count operations."""
import pytest
from same import same

OF_SIZES = {"aten::size", "prim::NumToTensor", "aten::Int", "prim::Constant", "prim::ListConstruct", "aten::slice"}  # sizes are numbers here


def network(torch):
    nn = torch.nn
    F = nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
            self.up, self.line, self.same = nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv1d(4, 4, 3, groups=2), nn.Conv1d(4, 2, 3, padding="same")
            self.linear, self.norm, self.table = nn.Linear(8, 5), nn.LayerNorm(5), nn.Embedding(7, 5)
            self.register_buffer("shift", torch.ones(5), persistent=False)

        def forward(self, x, i):
            h = F.max_pool2d(self.features(x), 2)
            up = self.up(h)
            z = self.norm(self.linear(F.adaptive_avg_pool2d(h, 1).flatten(1))) + self.table(i) * 2 + self.shift
            y = self.same(self.line(up.flatten(2)))
            y = F.gelu(y) + F.silu(y)
            y.add_(1)
            a, b = y.split(1, 1)
            products = torch.einsum("bi,bj->bij", z, z) @ z.unsqueeze(2)
            return torch.bmm(products.transpose(1, 2), products), torch.cat([a, b], 1).softmax(-1).sum(), F.interpolate(up, scale_factor=2, mode="bilinear")
    return Net()


def shape(value):
    return value.type().sizes() if value.isCompleteTensor() else None


def constants(node):
    """What an operation is told, lists opened."""
    found = []
    for value in node.inputs():
        if value.type().kind() == "ListType":
            found.append([v.toIValue() for v in value.node().inputs() if not v.isCompleteTensor()])
        elif not value.isCompleteTensor():
            found.append(value.toIValue())
    return found


def cudnn(node):  # switches that say nothing of what is computed
    return {"aten::_convolution": 4, "aten::batch_norm": 1, "aten::layer_norm": 1}.get(node.kind(), 0)


@same
def test_operations_of_a_network(torch):
    net = network(torch).eval()
    graph, out = torch.jit._get_trace_graph(net, (torch.randn(2, 3, 8, 8), torch.tensor([1, 2])))
    yield type(graph) is torch._C.Graph, [shape(v) for v in graph.inputs()], [v.type().kind() for v in graph.outputs()], [tuple(x.shape) for x in out]
    for node in graph.nodes():
        assert type(node) is torch._C.Node
        if node.kind() not in OF_SIZES:
            told = constants(node)
            yield (node.kind(), [(v.type().kind(), shape(v)) for v in node.inputs()], [(v.type().kind(), shape(v)) for v in node.outputs()],
                   told[:len(told) - cudnn(node)], node.inputsSize(), node.outputsSize(), node.scopeName())
    yield [v.node().kind() for v in graph.outputs()], sorted(n.kind() for n in graph.nodes() if n.kind() not in OF_SIZES)


@same
def test_a_value_of_a_graph(torch):
    graph, out = torch.jit._get_trace_graph(torch.nn.Linear(3, 2), torch.ones(4, 3))
    (node,) = graph.nodes()
    x, weight, bias = node.inputs()
    kind = weight.type()
    yield (node.output().debugName() == next(graph.outputs()).debugName(), node.output().node().kind(), kind.sizes(), kind.strides(), kind.dim(), kind.dtype() is torch.float32,
           str(kind.device()), weight.requires_grad(), x.requires_grad(), weight.toIValue(), type(weight) is torch._C.Value, out.shape)
    yield [(v.debugName(), shape(v)) for v in graph.inputs()]
    yield [shape(v) for v in torch.jit._get_trace_graph(lambda x: x.relu(), (torch.ones(2),))[0].inputs()]


@same
def test_scopes_that_hooks_push(torch):
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(3, 2)))

    def push(name):
        return lambda m, args: torch._C._get_tracing_state().push_scope(name)
    handles = []
    for name, m in net.named_modules():
        handles += [m.register_forward_pre_hook(push(name)), m.register_forward_hook(lambda m, args, out: torch._C._get_tracing_state().pop_scope())]
    graph, _ = torch.jit._get_trace_graph(net, (torch.ones(1, 3),))
    for handle in handles:
        handle.remove()
    return [(n.kind(), n.scopeName()) for n in graph.nodes()], torch._C._get_tracing_state()


@same
def test_it_is_tracing(torch):
    net, seen = torch.nn.BatchNorm1d(2), []
    net.register_forward_hook(lambda *_: seen.append(torch.jit.is_tracing()))
    graph, out = torch.jit._get_trace_graph(net, (torch.arange(6.0).view(3, 2),))
    return seen, out.detach(), [n.kind() for n in graph.nodes() if n.kind() == "aten::batch_norm"], torch.jit.is_tracing()


def test_the_module_is_what_it_was(subject):
    net = subject.nn.Sequential(subject.nn.BatchNorm1d(2), subject.nn.Dropout())
    before = subject.get_rng_state()
    _, out = subject.jit._get_trace_graph(net, (subject.arange(6.0).view(3, 2),))
    assert net[0].running_mean.tolist() == [0, 0] and net[0].num_batches_tracked == 0 and not out.requires_grad
    assert subject.equal(before, subject.get_rng_state())


def test_what_is_not_supported(subject):
    with pytest.raises(NotImplementedError, match="return_inputs"):
        subject.jit._get_trace_graph(subject.nn.ReLU(), (subject.ones(1),), return_inputs=True)
