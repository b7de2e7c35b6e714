"""torch._subclasses.fake_tensor beside real torch: which facts fake tensors have, which modes make them, and what they refuse."""
import copy
import importlib
import re

from forked import started
from same import same

import torchlike


def fake(torch):
    return importlib.import_module(f"{torch.__name__}._subclasses.fake_tensor")


def said(f):
    """A result's text, or its error's, without addresses."""
    try:
        text = repr(f())
    except Exception as e:
        text = f"{type(e).__name__}: {e}"
    return re.sub(r"<torch.*?>", "<mode>", text.replace("torchlike", "torch"))


@same
def test_facts(torch):
    """Of tensors made from real ones: device, dtype, strides, gradients, and the mode; one tensor has one fake tensor."""
    mode = fake(torch).FakeTensorMode()
    real = torch.randn(2, 3)
    x, view = mode.from_tensor(real), mode.from_tensor(torch.randn(2, 3).t())
    kinds = [mode.from_tensor(t) for t in (torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2)), torch.ones(2, dtype=torch.int64), torch.ones(()))]
    return [*map(repr, (x, view, *kinds)), f"{x}", f"{kinds[3]}", x.shape, x.dtype, x.device, x.fake_device, x.stride(), view.stride(), x.is_leaf, kinds[0].is_leaf,
            type(x).__name__, isinstance(x, torch.Tensor), isinstance(x, fake(torch).FakeTensor), isinstance(kinds[1], torch.nn.Parameter), x.fake_mode is mode,
            mode.from_tensor(real) is x, mode.from_tensor(torch.randn(2, 3)) is x, x.nbytes, x.numel(), repr(copy.deepcopy(x)), repr(copy.deepcopy(kinds[1])),
            fake(torch).is_fake(x), fake(torch).is_fake(real), repr(fake(torch).FakeTensorMode().from_tensor(x)), repr(x.to("meta"))]


@same
def test_operations(torch):
    """Shapes, dtypes and strides as with data; devices that are not there."""
    F, mode = torch.nn.functional, fake(torch).FakeTensorMode()

    def of(*shape, **kinds):
        return mode.from_tensor(torch.ones(*shape, **kinds))
    x, i = of(2, 3), of(2, dtype=torch.int64)
    made = [x + 1, x + x.sum(0), x @ x.t(), x.view(-1), x[0], x[:, 1:], x.T, x.unsqueeze(0), x.expand(4, 2, 3), x.half(), x.long(), torch.cat([x, x]), x.sort(), x.max(1),
            torch.zeros_like(x), torch.randn_like(x), x.new_zeros(3), x[i], x.detach(), x.clone().add_(1), x.clone().zero_(), x.clone().mul_(x), x.softmax(1),
            F.conv2d(of(1, 1, 5, 5), of(2, 1, 3, 3)), F.cross_entropy(x, i), F.embedding(i, x), F.layer_norm(x, (3,)), F.dropout(x), F.max_pool2d(of(1, 1, 4, 4), 2),
            F.scaled_dot_product_attention(*[of(1, 2, 5, 8)] * 3)]
    with mode:
        there = torch.zeros(2, device="cuda")
        made += [there, there + 1, there + torch.zeros(()), there.new_ones(3), torch.empty_like(there, device="cpu"), torch.zeros((), device="cuda:1") + there.device.index]
    return [repr(t) for t in made], [t.stride() for t in made if isinstance(t, torch.Tensor)]


@same
def test_in_the_mode(torch):
    """Everything that is made is fake, modules too; numbers that the program wrote down are known."""
    m = fake(torch)
    with m.FakeTensorMode() as mode:
        made = [torch.empty(2), torch.zeros(2, 3), torch.randn(2, 3), torch.rand(2, requires_grad=True), torch.arange(4), torch.full((2,), 3.), torch.eye(2),
                torch.tensor([1, 2]), torch.as_tensor([1.]), torch.Tensor(2, 3), torch.ones(2) + torch.ones(()), torch.nn.Parameter(torch.randn(2))]
        number = torch.tensor(3) * 2
        known = number.item(), torch.tensor(2.5).tolist(), int(torch.tensor(3)), bool(torch.tensor(1) > 0)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Dropout(), torch.nn.Flatten(),
                                    torch.nn.Linear(72, 2))
        out = model(torch.randn(2, 3, 8, 8))
        out.sum().backward()
        grads = [repr(p.grad) for p in model.parameters()]
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        deep, made_of = repr(layer(torch.randn(2, 5, 8)).shape), m.unset_fake_temporarily
        with made_of():
            outside = torch.ones(2)
        again = torch.ones(2)
    return ([*map(repr, made)], known, repr(out.shape), [*map(repr, model.state_dict().values())], grads, deep, outside, repr(again), torch.ones(1),
            all(p.fake_mode is mode for p in model.parameters()))


@same
def test_refusals(torch):
    """What only data would tell, tensors with data, several modes."""
    m = fake(torch)
    mode, other = m.FakeTensorMode(), m.FakeTensorMode()
    x = mode.from_tensor(torch.ones(2, 3))
    errors = [said(f) for f in (
        lambda: x.sum().item(), lambda: bool(x.sum()), lambda: x.tolist(), lambda: x.numpy(), lambda: x.nonzero(), lambda: x[x > 0], lambda: x.unique(),
        lambda: torch.equal(x, x), lambda: torch.allclose(x, x), lambda: x + torch.ones(2, 3), lambda: torch.ones(2, 3) + x, lambda: x[torch.tensor([0])],
        lambda: torch.masked_select(x, x > 0), lambda: float(x.sum()))]
    with mode:
        here = torch.zeros(2)
        errors.append(said(lambda: here + torch.zeros(2, device="cuda")))
        errors.append(said(lambda: (torch.tensor(2.) + here.sum()).item()))
    mixed = said(lambda: other.from_tensor(torch.ones(2, 3)) + x).partition(" NYI")[0]
    return errors, mixed, [issubclass(e, RuntimeError) for e in (m.DataDependentOutputException, m.DynamicOutputShapeException)]


@same
def test_real_tensors_may_be_let_in(torch):
    m, real = fake(torch), torch.ones(2)
    with m.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        made = real + 1, mode.from_tensor(torch.ones(2)) * real
    return [repr(t) for t in made], real


@same
def test_gradients(torch):
    mode = fake(torch).FakeTensorMode()
    w = mode.from_tensor(torch.ones(3, requires_grad=True))
    y = (w * 2).exp()
    g, = torch.autograd.grad(y.sum(), w, create_graph=True)
    y.sum().backward()
    return repr(w.grad), repr(g.detach()), g.requires_grad, y.grad_fn is not None


@same
def test_generator_is_left_alone(torch):
    """Nothing is drawn for what has no data."""
    torch.manual_seed(0)
    with fake(torch).FakeTensorMode():
        torch.nn.Linear(3, 4)
        torch.randn(5)
        torch.empty(3).normal_()
    return torch.rand(3)


@same
def test_what_is_drawn(torch):
    """Numbers that functions draw for themselves, or of parameters: in the mode, of fake tensors outside of it, and on meta."""
    F, m = torch.nn.functional, fake(torch)
    programs = (torch.bernoulli, lambda x: torch.normal(x, 1.), torch.poisson, lambda x: torch.multinomial(x, 2), lambda x: F.rrelu(x, training=True))
    with m.FakeTensorMode() as mode:
        made = [repr(f(torch.ones(3))) for f in programs]
        made += [repr(F.dropout2d(torch.ones(3, 2, 2, 2))), repr(F.gumbel_softmax(torch.ones(3))), repr(torch.nn.init.sparse_(torch.empty(3, 4), .5))]
    outside = [repr(f(mode.from_tensor(torch.ones(3)))) for f in programs]
    return made, outside, [(tuple(t.shape), t.dtype, t.device.type) for t in (f(torch.ones(3, device="meta")) for f in programs)]


@same
def test_which_mode(torch):
    """torch._guards finds the mode that is on, or that of arguments."""
    guards, m = importlib.import_module(f"{torch.__name__}._guards"), fake(torch)
    mode = m.FakeTensorMode()
    x = mode.from_tensor(torch.ones(2))
    found = guards.detect_fake_mode([torch.ones(1), {"a": x}]) is mode, guards.detect_fake_mode([torch.ones(1)]), guards.active_fake_mode()
    with mode:
        found += guards.active_fake_mode() is mode, guards.detect_fake_mode(None) is mode
        with m.unset_fake_temporarily() as was:
            found += was is mode, guards.active_fake_mode()
    return found


def test_memory():
    """A model far larger than the machine's memory has its shapes."""
    with fake(torchlike).FakeTensorMode():
        layers = [torchlike.nn.Linear(400_000, 400_000) for _ in range(4)]
        out = torchlike.ones(2, 400_000)
        for layer in layers:
            out = layer(out)
    assert tuple(out.shape) == (2, 400_000)


def test_asking_costs_nothing():
    """The class alone makes no operation look at its arguments: only a mode does."""
    made = started("-c", "import torchlike as torch; from torchlike import _tensor; from torchlike._core import program; "
                   "from torchlike._subclasses.fake_tensor import FakeTensor, FakeTensorMode; "
                   "print(isinstance(torch.ones(2), FakeTensor), _tensor.record is program.record); FakeTensorMode(); print(_tensor.record is program.record)")
    assert made.stdout.split() == ["False", "True", "False"]


def test_operations_on_meta_know_one_device_after_the_mode(subject):
    """What the mode asked of a factory by its operator had a device of its own, which later operations were told of: an error there, KeyError in compiled programs."""
    x = subject.ones(5, device="meta")
    with fake(subject).FakeTensorMode() as mode:
        aten = subject.ops.aten
        mode.dispatch(aten.arange.default, (), (7,), {"device": subject.device("cpu"), "dtype": subject.int64})
        mode.dispatch(subject.ops.torchlike.arange.default, (), (0, 1), {"statics": (9, subject.int64, subject.device("cpu"))})
    for n in (7, 9):
        made = subject.arange(n, device="meta")
        assert made.device is x.device and (made.unsqueeze(-1) + x).shape == (n, 5)
