"""torch.ao.nn.quantized.functional, and float modules that are fused for quantization, beside real torch."""
from importlib import import_module

import pytest
from same import same


def _functions(torch):
    return import_module(f"{torch.__name__}.ao.nn.quantized.functional")


def _numbers(torch, *shape, kind="quint8"):
    torch.manual_seed(3)
    return torch.quantize_per_tensor(torch.randn(*shape) * 2, 0.05, {"quint8": 128, "qint8": 3}[kind], getattr(torch, kind))


def shown(x):
    return x.shape, x.q_scale(), x.q_zero_point(), str(x.dtype).split(".")[1], x.int_repr()


def words(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as raised:
        return type(raised).__name__, str(raised)[:90]
    return "no error"


IMAGES = {"avg_pool2d": [(2,), (3, 1, 1)], "adaptive_avg_pool2d": [(2,), ((None, 3),)], "max_pool2d": [(2,), (3, 2, 1)], "celu": [(0.043, 100), (0.043, 100, 0.5)],
          "elu": [(0.043, 100), (0.043, 100, 0.5)], "clamp": [(-0.3, 0.9)], "hardsigmoid": [()], "hardswish": [(0.05, 100)], "hardtanh": [(), (-0.5, 0.5)],
          "leaky_relu": [(), (0.2,), (0.2, False, 0.11, 100)], "threshold": [(0.5, 0.2)], "interpolate": [((3, 3),), (None, 2.0), ((7, 13), None, "bilinear")],
          "upsample": [((12, 12),)], "upsample_nearest": [(None, 2)], "upsample_bilinear": [(None, 2)]}


@pytest.mark.parametrize("name", IMAGES)
def test_images(oracle, subject, name):
    def facts(torch):
        function, q = getattr(_functions(torch), name), _numbers(torch, 2, 3, 6, 6)
        return [shown(function(q, *args)) for args in IMAGES[name]]
    for want, found in zip(facts(oracle), facts(subject), strict=True):
        assert want[0] == found[0] and want[1:4] == found[1:4]
        assert (want[4].numpy() == found[4].numpy()).all()


@same
def test_other_shapes(torch):
    f = _functions(torch)
    return (shown(f.max_pool1d(_numbers(torch, 2, 3, 8), 2)), shown(f.avg_pool3d(_numbers(torch, 2, 3, 4, 6, 6), 2)),
            shown(f.adaptive_avg_pool3d(_numbers(torch, 2, 3, 4, 6, 6), 2)), shown(f.hardsigmoid(_numbers(torch, 5, 6, kind="qint8"))))


@same
def test_products(torch):
    f = _functions(torch)

    def weight(*shape):
        return torch.quantize_per_tensor(torch.randn(*shape), 0.03, 0, torch.qint8)
    x = _numbers(torch, 2, 3, 6, 6)
    bias, w = torch.randn(4), weight(4, 3, 3, 3)
    found = [f.conv2d(x, w, bias, 2, 1, 1, 1, "zeros", 0.13, 5), f.conv2d(x, w, None), f.conv1d(_numbers(torch, 2, 3, 8), weight(4, 3, 3), bias, 1, 1),
             f.conv3d(_numbers(torch, 2, 3, 4, 6, 6), weight(4, 3, 2, 3, 3), bias, scale=0.13, zero_point=100), f.linear(x, weight(5, 6)),
             f.linear(x, weight(5, 6), torch.randn(5), 0.13, 100)]
    return ([shown(y) for y in found], words(f.conv2d, x, w, bias, padding_mode="reflect"), words(f.conv2d, x[0], w, bias), words(f.conv2d, x, x, bias),
            words(f.conv2d, x.dequantize(), w, bias))


@same
def test_in_place(torch):
    f = _functions(torch)
    found = []
    for function in (f.hardtanh, f.hardsigmoid, f.leaky_relu):
        x = _numbers(torch, 2, 3)
        found.append((function(x, inplace=True) is x, shown(x)))
    return found


@same
def test_refused(torch):
    f, x, q = _functions(torch), torch.ones(1, 1, 4, 4), _numbers(torch, 1, 1, 4, 4)
    return ([words(getattr(f, name), x, *args) for name, args in (("avg_pool2d", (2,)), ("adaptive_avg_pool2d", (2,)), ("celu", (1.0, 0)), ("clamp", (0, 1)),
                                                                ("hardsigmoid", ()), ("interpolate", (2,)), ("threshold", (1, 1)))],
            words(f.max_pool2d, q, 2, return_indices=True), words(f.threshold, q, None, 1.0), words(f.threshold, q, 1.0, None))


@same
def test_fused_floats(torch):
    fused, nn = import_module(f"{torch.__name__}.ao.nn.intrinsic"), torch.nn
    conv, linear, x = nn.Conv2d(3, 3, 3, padding=1), nn.Linear(6, 5), torch.randn(2, 3, 6, 6)
    return (fused.ConvAdd2d(conv, torch.add)(x, x), fused.ConvAddReLU2d(conv, torch.add, nn.ReLU())(x, x), fused.LinearLeakyReLU(linear, nn.LeakyReLU(0.1))(x),
            fused.LinearTanh(linear, nn.Tanh())(x), repr(fused.ConvAddReLU2d(conv, torch.add, nn.ReLU())), words(fused.LinearTanh, linear, nn.ReLU()))
