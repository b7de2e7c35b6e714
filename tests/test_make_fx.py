"""make_fx beside real torch: the operators of its graphs, the tensors from outside, what graphs compute, and what is refused."""
import importlib
import re

import pytest
from same import same

from torchlike.fx.experimental.proxy_tensor import make_fx

# Functions whose graphs are PyTorch's (but for `mul.Scalar`, and `detach` where results are saved), with the shapes of their arguments
SAME = """x + 1|3; x.sin().cos() * 2|3; torch.func.grad(lambda z: (z.sin() ** 2).sum())(x)|3; torch.func.grad_and_value(lambda z: (z * z).sum())(x)|3
torch.func.grad(torch.func.grad(lambda z: (z ** 3).sum()))(x.sum())|3; torch.func.grad(lambda w: (y @ w).relu().sum())(x)|34 23; (x[i], x[:, 1:], x[..., None], x[::2], x[-1])|33
x.clone().mul_(2).add_(x).relu_()|3; (torch.cat([x, y], 1), torch.stack([x, x]), x.split(1), x.chunk(2, 1))|24 24; (torch.zeros_like(x), torch.full_like(x, 2), x.new_zeros(2))|3
x + torch.zeros(3) + torch.ones(3) + torch.full((3,), 2.) + torch.eye(3)[0] + torch.linspace(0, 1, 3) + torch.arange(3) + torch.arange(0, 6, 2)|3
x * torch.tensor([1., 2, 3]) + torch.tensor(2.)|3; x * torch.tensor(3).item()|3; torch.where(x > 0, x, -x) + (x == x).float() + torch.clamp(x, 0, 1)|3
(x.sum(), x.mean(0, keepdim=True), x.var(), x.std(1), x.max(), x.amax(1), x.argmax(1), x.norm(), x.prod(), x.cumsum(0), x.logsumexp(1), x.min(0))|33
(x @ y, torch.addmm(x, x, x), x.mv(x[0]), torch.dot(x[0], x[1]), x.T)|33 33; (F.relu(x), F.gelu(x), F.softmax(x, -1), x.sigmoid(), F.softplus(x), F.glu(x))|34
(F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y), F.cross_entropy(x, i), F.binary_cross_entropy_with_logits(x, y))|23 23; F.layer_norm(x, (4,), y, z)|24 4 4
(x.sort(), x.topk(2), x.tril(), x.repeat(2, 1), x.permute(1, 0), x.flatten(), x.masked_fill(x > 0, 0), x.unbind()[0])|33; F.dropout(x, .5)|24; x + torch.randn(3) + torch.rand(3)|3
(x.double(), x.to(torch.float16), x.int(), x.bool(), x.float())|3; F.scaled_dot_product_attention(x, x, x, is_causal=True)|1248; F.conv2d(x, y, z[0], padding=1)|1255 3233 33
{'a': x, 'b': [x * 2, None]}|3; (x, x)|3; torch.ones(3)|3; F.embedding(i, x) * 2|43; x.max(0)|33; x.detach() * 2|3; x.clone().index_put_((torch.tensor([0]),), x[0])|3
torch.func.grad(lambda z: z.t().as_strided((2, 2), (1, 2), 1).sin().sum())(x)|34"""
TESTED = [program.strip() for line in SAME.split("\n") for program in line.split(";") if program.strip()]


def fx(torch):
    return importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor")


def written(torch, program):
    """A function of x, y, z, and arguments of the shapes that its line names."""
    source, shapes = program.split("|")
    names = {"torch": torch, "F": torch.nn.functional, "i": torch.tensor([0, 1])}
    letters = "xyz"[:len(shapes.split())]
    given = [torch.randn([int(n) for n in shape.strip(".")] or [2]) for shape in shapes.split()]
    return eval(f"lambda {', '.join(letters)}: {source}", names), given


def code(module):
    """A graph's code in torch's words."""
    return re.sub(r"torchlike", "torch", module.code).replace("aten.mul.Scalar", "aten.mul.Tensor")


def operators(module):
    return [op for op in re.findall(r"torch\.ops\.([\w.]+)", code(module)) if op != "aten.detach.default"]


def close(torch, a, b):
    leaves = importlib.import_module(f"{torch.__name__}.utils._pytree").tree_leaves
    pairs = list(zip(leaves(a), leaves(b), strict=True))
    assert all(x is y is None or torch.allclose(x.detach().double(), y.detach().double(), rtol=1e-4, atol=1e-5) for x, y in pairs), (a, b)
    return len(pairs)


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("program", TESTED)
def test_graphs(oracle, subject, program, mode):
    """The operators and their arguments are torch's, and the graph does with other arguments what the function does."""
    if mode == "fake" and "i]" in program or "(i," in program or ", i)" in program:
        mode = "real"  # i is from outside
    made = {}
    for torch in (oracle, subject):
        torch.manual_seed(0)
        f, given = written(torch, program)
        made[torch] = fx(torch).make_fx(f, tracing_mode=mode)(*given)
    assert operators(made[subject]) == operators(made[oracle])
    outside = [[n.name.rpartition("_")[0] for n in m.graph.nodes if n.op == "get_attr"] for m in made.values()]
    assert outside[0] == outside[1]
    other = [t * .5 + .1 for t in given]
    subject.manual_seed(1)
    want = f(*other)
    subject.manual_seed(1)
    close(subject, made[subject](*other), want)


@same
def test_code(torch):
    """To the letter, with a module's parameters, nested arguments and results, and what nodes tell."""
    torch.manual_seed(0)
    layer, make_fx = torch.nn.Linear(3, 2), fx(torch).make_fx
    first = make_fx(layer)(torch.ones(2, 3))
    second = make_fx(lambda d, n: {"a": d["x"][0] * n, "b": None})({"x": [torch.ones(2)]}, 3)
    meta = [(n.name, repr(n.meta["val"]), repr(n.meta["tensor_meta"])) for n in first.graph.nodes if n.op == "call_function"]
    own = first._parameters["_param_constant0"] is layer.weight
    return ([code(m) for m in (first, second)], meta, [*first._parameters], first(torch.ones(1, 3)), second({"x": [torch.ones(2)]}, 3), own,
            type(first).__name__, isinstance(first, torch.fx.GraphModule))


@same
def test_training_steps(torch):
    """Gradients by torch.func, autograd.grad and backward, functions with a backward of their own, an update."""
    F, make_fx = torch.nn.functional, fx(torch).make_fx
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    weights, x, y = {k: p.detach().clone() for k, p in model.named_parameters()}, torch.randn(4, 3), torch.tensor([0, 1, 1, 0])

    def loss(p, x, y):
        return F.cross_entropy(torch.func.functional_call(model, p, (x,)), y)

    def step(p, x, y):
        grads = torch.func.grad(loss)(p, x, y)
        return {k: v - .1 * grads[k] for k, v in p.items()}

    def by_autograd(p, x, y):
        p = {k: v.detach().requires_grad_() for k, v in p.items()}
        value = loss(p, x, y)
        return value, [v - .1 * g for v, g in zip(p.values(), torch.autograd.grad(value, list(p.values())))]

    def by_backward(x, y):
        F.cross_entropy(model(x), y).backward()
        return [p.grad for p in model.parameters()]

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].cos()
    made = [make_fx(step)(weights, x, y), make_fx(by_autograd)(weights, x, y),
            make_fx(lambda x: torch.autograd.grad(Own.apply(x).sum(), x))(torch.randn(3, requires_grad=True))]
    results = made[0](weights, x + 1, y), made[1](weights, x + 1, y), made[2](torch.ones(3))
    close(torch, results[0], step(weights, x + 1, y))
    graph = make_fx(by_backward)(x, y)
    kinds = [type(p.grad).__name__ for p in model.parameters()]
    model.zero_grad()
    return results, [len([op for op in operators(m) if ".t." not in op]) for m in made], graph(x + 1, y), kinds


def test_functions_of_batches(subject):
    """vmap, jacobians and hessians, layers without an operator of PyTorch's: graphs do what the functions do."""
    torch, F = subject, subject.nn.functional
    torch.manual_seed(0)
    conv = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(18, 2))
    attention, lstm = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.nn.LSTM(3, 4)
    func = torch.func
    for f, shape in ((func.vmap(lambda a: a.sin() @ a), (4, 3)), (func.vmap(func.grad(lambda a: (a ** 2).sum())), (4, 3)), (func.jacrev(lambda a: a.sin() * a), (3,)),
                     (func.jacfwd(lambda a: a.sin() * a), (3,)), (func.hessian(lambda a: (a.sin() * a).sum()), (3,)), (lambda a: func.jvp(torch.tanh, (a,), (a,)), (3,)),
                     (lambda a: torch.autograd.grad(conv(a).square().sum(), [*conv.parameters()]), (2, 1, 8, 8)), (lambda a: attention(a, a, a)[0], (2, 5, 8)),
                     (lambda a: lstm(a)[0], (4, 2, 3)), (lambda a: torch.autograd.grad(lstm(a)[0].sum(), lstm.weight_hh_l0), (4, 2, 3)),
                     (lambda a: (F.avg_pool2d(a, 2), F.interpolate(a, scale_factor=2), F.group_norm(a, 1), F.unfold(a, 2)), (1, 1, 4, 4))):
        module = make_fx(f)(torch.randn(shape))
        other = torch.randn(shape)
        assert close(torch, module(other), f(other))


def test_writes_into_what_is_outside(subject):
    """A module's buffers: written when the graph is made, and by each run of it."""
    torch = subject
    norm = torch.nn.BatchNorm1d(3)
    module = make_fx(norm)(torch.ones(2, 3))
    assert int(norm.num_batches_tracked) == 1
    x = torch.randn(4, 3)
    other = torch.nn.BatchNorm1d(3)
    other(torch.ones(2, 3))
    close(torch, module(x), other(x))
    assert int(norm.num_batches_tracked) == 2
    close(torch, norm.running_mean, other.running_mean)


@same
def test_gradients_of_selections(torch):
    """Of parts whose elements lie in one place, of what an expanded tensor has there, of masks that are spread or spread the tensor, of draws."""
    x, make_fx = torch.arange(1.0, 7.0), fx(torch).make_fx
    functions = [lambda z: z.as_strided((2, 3), (1, 1)), lambda z: z.expand(3, 6).as_strided((2, 3), (1, 1)), lambda z: torch.as_strided(z[1:5], (2,), (3,)),
                 lambda z: z.masked_select(z > 2), lambda z: z.view(2, 3).masked_select(z[:3] > 1), lambda z: torch.masked_select(z, z.view(6, 1) > z), torch.bernoulli]

    def slope(f):
        return lambda z: torch.autograd.grad(f(z).sin().sum(), z)[0]
    x = (x / 7).requires_grad_()
    return [make_fx(slope(f))(x)(x) for f in functions]


@same
def test_functionalize(torch):
    """Operators that make new tensors for those that write, through views; arguments are written at the end."""
    def into_view(x):
        y = x.clone()
        y[0].mul_(2)
        return y

    def into_shape(x):
        y = x.clone()
        v = y.view(-1)
        y.add_(1)
        return v * 2

    def into_two(x):
        y = torch.zeros(3, 3)
        y[0] = x[0]
        y.t()[1:].sub_(x[1:])
        y.diagonal().add_(1)
        y.unsqueeze(0).transpose(0, 1).exp_()
        return y, y[1]

    def into_argument(x):
        x[0].add_(1)
        return x * 2

    def plain(x):
        x.add_(1)
        return x

    def many(x):
        y = x.clone()
        y.zero_()
        y.fill_(2)
        y.clamp_(0, 1)
        y.sub_(x, alpha=2)
        y.masked_fill_(x > 0, 0)
        y.copy_(x.double())
        y.bernoulli_()
        return y
    made = []
    for f in (into_view, into_shape, into_two, into_argument, plain, many):
        x = torch.arange(9.0).reshape(3, 3)
        module = fx(torch).make_fx(torch.func.functionalize(f))(x.clone())
        writes = [op for op in operators(module) if op.split(".")[1].endswith("_")]
        given, given_too = x.clone(), x.clone()
        torch.manual_seed(0)
        found = module(given)
        torch.manual_seed(0)
        close(torch, found, f(given_too))
        made.append((writes, found, given, given_too))
    return made


@same
def test_decompositions(torch):
    """Functions in the place of operators, which may decline."""
    make_fx, aten, F, asked = fx(torch).make_fx, torch.ops.aten, torch.nn.functional, []

    def declined(*args, **kwargs):
        asked.append(1)
        return NotImplemented
    table = {aten.silu.default: lambda x: x * torch.sigmoid(x), aten.addmm.default: lambda b, x, w: b + x @ w, aten.relu.default: declined}
    layer = torch.nn.Linear(3, 3)
    module = make_fx(lambda x: F.relu(layer(F.silu(x))), decomposition_table=table)(torch.randn(2, 3))
    return operators(module), bool(asked)


@same
def test_numbers_drawn_of_parameters(torch):
    """By operators, with gradients of zero; nothing is drawn while a graph is written of tensors without data."""
    p, make_fx = torch.rand(4, 5), fx(torch).make_fx

    def gradient(p):
        leaf = p.detach().requires_grad_()
        return torch.autograd.grad((torch.normal(leaf, 1.5) * leaf).sum() + leaf.bernoulli().sum(), leaf)[0]

    def drawn(f, mode):
        module = make_fx(f, tracing_mode=mode)(p)
        torch.manual_seed(3)
        return module(p), module
    found = []
    for mode in ("real", "fake"):
        for f in (lambda p: p.bernoulli(), lambda p: torch.bernoulli(p, 0.3), lambda p: p.multinomial(3), lambda p: torch.multinomial(p, 7, replacement=True),
                  lambda p: torch.normal(p, p), lambda p: torch.normal(p, 2.0), lambda p: torch.normal(p), lambda p: torch.normal(1.0, p), lambda p: torch.poisson(p)):
            numbers, module = drawn(f, mode)
            found.append((numbers, operators(module)))
        numbers, module = drawn(gradient, mode)
        found.append((numbers, [op for op in operators(module) if "normal" in op or "bernoulli" in op]))
    return found


@same
def test_a_class_the_pytree_was_told_of(torch):
    """An argument of a graph that is a container of a program's own."""
    pytree = importlib.import_module(f"{torch.__name__}.utils._pytree")

    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b
    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda values, _: Pair(*values))
    x = torch.ones(2)
    module = fx(torch).make_fx(lambda p, y: p.a * 2 + p.b * y)(Pair(x, x * 3), x * 1)
    try:
        module(x, x)
    except Exception as e:
        refused = type(e).__name__
    return module(Pair(x, x), x * 5), refused


@same
def test_refusals(torch):
    make_fx, m = fx(torch).make_fx, importlib.import_module(f"{torch.__name__}._subclasses.fake_tensor")
    x, layer = torch.ones(3), torch.nn.Linear(3, 2)

    def said(f, *args, **options):
        try:
            return make_fx(f, **options)(*args)
        except Exception as e:
            return f"{type(e).__name__}: {e}".replace("torchlike", "torch")
    errors = [said(lambda x: x * x.sum().item(), x), said(lambda x: x if x.sum() > 0 else -x, x), said(lambda x: x, x, x), said(lambda x, y=2: x, x),
              said(lambda x: x, x, tracing_mode="unreal"),
              said(lambda x: layer(x), x, tracing_mode="fake").partition("(P")[0]]
    allowed = make_fx(lambda x: layer(x), tracing_mode="fake", _allow_non_fake_inputs=True)(x)
    with m.FakeTensorMode() as mode:
        inside = make_fx(lambda x: x * 2)(torch.ones(3))
    return errors, operators(allowed), allowed(x).shape, operators(inside), repr(inside(mode.from_tensor(x)))


@same
def test_modes(torch):
    """Which mode is on, and a block without it; graphs within graphs; functorch's name."""
    p, seen = fx(torch), []

    def f(x):
        seen.append(p.get_proxy_mode() is not None)
        with p.disable_proxy_modes_tracing():
            seen.append(p.get_proxy_mode() is None)
            torch.ones(2) + 1
        return p.make_fx(lambda z: z * 2)(x)(x) + 1
    module = p.make_fx(f)(torch.ones(2))
    return seen, p.get_proxy_mode(), operators(module), module(torch.ones(2))


def test_what_is_not_followed(subject):
    """Sizes that are symbols, and the like: a clear error, no wrong graph."""
    x = subject.ones(2, 3)
    for options in ({"tracing_mode": "symbolic"}, {"pre_dispatch": True}, {"record_module_stack": True}, {"proxy_module_inputs": True}):
        with pytest.raises(NotImplementedError, match="make_fx"):
            make_fx(lambda x: x, **options)(x)
    with pytest.raises(NotImplementedError, match="drawn at random"):
        make_fx(lambda x: subject.nn.functional.dropout1d(x, training=True))(x)
    with pytest.raises(NotImplementedError, match="functionalize"):
        make_fx(subject.func.functionalize(lambda x: x.clone().add_(1), remove="mutations_and_views"))(x)
