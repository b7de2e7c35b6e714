"""torch.nn.utils._per_sample_grad: a backward that leaves one gradient per example in the parameters' grad_sample."""
import importlib

import pytest
from nn_models import said
from same import same

LAYERS = {
    "linear": (lambda nn: nn.Linear(4, 3), (5, 4)),
    "linear of sequences": (lambda nn: nn.Linear(4, 3, bias=False), (5, 2, 4)),
    "conv1d in groups": (lambda nn: nn.Conv1d(2, 4, 3, groups=2), (5, 2, 7)),
    "conv2d to the same size": (lambda nn: nn.Conv2d(2, 3, 3, padding="same", dilation=2), (4, 2, 6, 6)),
    "conv2d reflected": (lambda nn: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect", stride=2), (4, 2, 6, 6)),
    "conv3d": (lambda nn: nn.Conv3d(1, 2, 2), (3, 1, 3, 3, 3)),
    "layer norm": (lambda nn: nn.LayerNorm(4), (3, 2, 4)),
    "group norm": (lambda nn: nn.GroupNorm(2, 4), (3, 4, 5)),
    "instance norm": (lambda nn: nn.InstanceNorm1d(4, affine=True, track_running_stats=True), (3, 4, 5)),
    "embedding": (lambda nn: nn.Embedding(6, 3, padding_idx=1), None),
}


def per_sample(torch):
    return importlib.import_module(f"{torch.__name__}.nn.utils._per_sample_grad").call_for_per_sample_grads


def expanded(torch):
    return importlib.import_module(f"{torch.__name__}.nn.utils._expanded_weights").ExpandedWeight


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("layer", LAYERS)
@same(strides=None)
def test_layers(torch, layer, reduction):
    make, shape = LAYERS[layer]
    module = make(torch.nn)
    x = torch.tensor([[0, 1, 2], [5, 5, 1]]) if shape is None else torch.randn(shape, requires_grad=True)
    outs = [per_sample(torch)(module, loss_reduction=reduction)(x) for _ in range(2)]
    for out in outs:  # what is there already is added to
        getattr((out + 1).sigmoid().flatten(1).sum(1), reduction)().backward()
    return outs[0], type(outs[0]).__name__, [(p.grad, p.grad_sample) for p in module.parameters()], x.grad, list(module.buffers())


@same(strides=None)
def test_modules(torch):
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(12, 2))
    net[0].bias.requires_grad_(False)
    x = torch.randn(3, 1, 4, 4)
    per_sample(torch)(net, batch_size=3)(x).sum().backward()
    return [getattr(p, "grad_sample", None) for p in net.parameters()], said(per_sample(torch), net)[:80]


@same
def test_what_is_refused(torch):
    nn, call = torch.nn, per_sample(torch)
    linear = nn.Linear(2, 2)
    settings = [said(call, linear, loss_reduction="no"), said(call, 3), said(call, linear, batch_size="a"), said(call, linear, batch_size=0)]
    calls = [(linear, (2,)), (linear, (0, 2)), (nn.BatchNorm1d(2), (3, 2)), (nn.LayerNorm((2, 3)), (2, 3)), (nn.Bilinear(2, 2, 2), (3, 2), (3, 2)),
             (nn.Bilinear(2, 2, 2), (3, 2), (4, 2)), (linear,)]
    ran = [said(call(module), *map(torch.randn, shapes)) for module, *shapes in calls]
    ran += [said(call(nn.Embedding(3, 2)), torch.tensor([1, 2])), said(call(linear, batch_size=3), torch.randn(2, 2))]
    weight = expanded(torch)(nn.Parameter(torch.ones(2, 3)), 3, "sum")
    asked = [tuple(weight.shape), weight.dtype == torch.float32, said(lambda: weight.requires_grad), said(lambda: weight + 1), said(weight.sum)]
    return settings, ran, asked, said(expanded(torch), torch.ones(2), 3, "sum"), said(expanded(torch), 2, 3, "sum")


@same
def test_classes_that_take_functions_over_are_not_asked_by_autograd(torch):
    asked = []

    class Watching(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(getattr(func, "__name__", func))
            return super().__torch_function__(func, types, args, kwargs or {})

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return y * 2

        @staticmethod
        def backward(ctx, g):
            return None, g * 2
    x = torch.Tensor._make_subclass(Watching, torch.ones(2), True)
    y = torch.ones(2, requires_grad=True)
    Double.apply(x, y).sum().backward()
    return asked, y.grad
