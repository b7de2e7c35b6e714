"""Bad input on purpose: the same exception classes as torch's, and an engine that stays usable afterwards."""
from __future__ import annotations

import math

import numpy as np
import pytest

from same import caught, error, same

NOT_TENSORS = (None, "text", 3, 1.5, [1.0], (1, 2), {"a": 1}, object(), np.ones(2), print)
UNARY = ("abs", "exp", "sum", "mean", "relu", "sigmoid", "sort", "t", "isnan", "neg", "max", "cumsum", "flatten", "squeeze", "softmax", "clone", "argmax", "std", "norm", "unbind", "nonzero", "inverse", "numel", "all")
BINARY = ("add", "mul", "matmul", "eq", "maximum", "dot", "pow", "div", "where", "cat", "stack", "gather", "index_select", "bmm", "einsum", "equal", "allclose", "outer", "cross", "masked_select")
DIMS = ("sum", "mean", "softmax", "cumsum", "argmax", "sort", "unsqueeze", "squeeze", "flip", "unbind", "logsumexp", "amax", "std", "median", "prod", "all", "topk", "chunk", "select", "var", "log_softmax", "cummax", "norm", "argsort", "kthvalue", "mode", "roll", "narrow", "split", "max")


@pytest.mark.parametrize("name", UNARY)
@same
def test_non_tensors_to_unary(torch, name):
    return [error(getattr(torch, name), x) for x in NOT_TENSORS], error(getattr(torch, name)), error(getattr(torch, name), torch.ones(2), no_such_argument=1)


@pytest.mark.parametrize("name", BINARY)
@same
def test_non_tensors_to_binary(torch, name):
    function, x = getattr(torch, name), torch.ones(2)
    return [error(function, x, bad) for bad in NOT_TENSORS], [error(function, bad, x) for bad in NOT_TENSORS], error(function, x)


@pytest.mark.parametrize("name", DIMS)
@same
def test_bad_dims(torch, name):
    function, x, scalar = getattr(torch, name), torch.arange(6.0).view(2, 3), torch.tensor(1.0)
    first = {"topk": (1,), "chunk": (1,), "kthvalue": (1,), "roll": (1,), "split": (1,), "norm": (2,)}.get(name, ())
    rest = {"select": (0,), "narrow": (0, 1)}.get(name, ())
    dims = (2, -3, 100, -100, 0.5, "0", 2 ** 70, None, (0, 5), [0, 0], True)
    return [error(function, x, *first, d, *rest) for d in dims], [error(function, scalar, *first, d, *rest) for d in (0, -1, 1, -2)]


@same
def test_shapes_that_do_not_fit(torch):
    a, b = torch.ones(2, 3), torch.ones(4, 5)
    F = torch.nn.functional
    return [error(f, a, b) for f in (torch.add, torch.mul, torch.matmul, torch.mm, torch.maximum, torch.where, torch.atan2, torch.dot, torch.mv, F.mse_loss, F.linear, F.cosine_similarity, torch.cdist, torch.equal, torch.cross)] + \
        [error(torch.cat, [a, b]), error(torch.stack, [a, b]), error(a.view, 5), error(a.expand, 3, 3), error(a.reshape, 4), error(torch.bmm, a, b), error(torch.broadcast_tensors, a, b), error(a.copy_, b), error(torch.einsum, "ij,jk", a, b),
         error(torch.addmm, a, a, a), error(F.conv2d, a, b), error(F.cross_entropy, a, torch.tensor([0, 1, 2])), error(F.embedding, torch.tensor([9]), a), error(F.layer_norm, a, (2,)), error(F.batch_norm, a, torch.ones(2), torch.ones(2))]


@same
def test_out_of_range_indices(torch):
    x = torch.arange(6.0).view(2, 3)
    big = torch.tensor([7])
    return [error(lambda: x[2]), error(lambda: x[0, 3]), error(lambda: x[-3]), error(lambda: x[big]), error(lambda: x[:, big]), error(lambda: x[2 ** 40]), error(lambda: x[0, 0, 0]), error(x.__setitem__, 5, 1.0), error(x.__setitem__, (0, 9), 1.0), error(x.__setitem__, big, 1.0),
            error(torch.gather, x, 1, big.view(1, 1)), error(torch.index_select, x, 0, big), error(x.scatter, 1, big.view(1, 1), 1.0), error(x.index_add, 0, big, x[:1]), error(torch.take, x, big), error(x.index_fill, 0, big, 0.0), error(x.index_copy, 0, big, x[:1]),
            error(torch.nn.functional.one_hot, torch.tensor([3]), 2), error(torch.nn.functional.nll_loss, x, torch.tensor([0, 3])), error(x.select, 0, 2), error(x.narrow, 0, 1, 5), error(torch.topk, x, 9), error(lambda: x[[0, 5]]), error(lambda: x[torch.tensor([-3])]), error(lambda: x.scatter_add(0, big.view(1, 1), x[:1, :1]))]


@same
def test_index_computed_on_device_is_checked_at_observation(torch):
    x = torch.arange(4.0)
    index = torch.tensor([1, 2]) * 3
    return error(lambda: x[index].sum().item()), x[index - 3].sum()


@same
def test_engine_survives_errors_in_the_middle(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    kinds = [error(torch.add, y, torch.ones(4)), error(lambda: y[9]), error(torch.matmul, y, torch.ones(2)), error(lambda: y.view(7))]
    z = (y + 1).sum()
    z.backward()
    return kinds, z, x.grad


@same
def test_engine_survives_users_exception_while_recording(torch):
    x = torch.ones(3, requires_grad=True)
    pending = [x * i for i in range(5)]
    try:
        for p in pending:
            p.add_(1)
            if p is pending[3]:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        seen = "interrupted"
    sum(p.sum() for p in pending).backward()
    return seen, pending, x.grad


@same
def test_empty_tensors(torch):
    e, m = torch.empty(0), torch.empty(0, 3)
    F = torch.nn.functional
    return [caught(f) for f in (e.sum, e.mean, e.prod, e.max, e.min, e.argmax, e.std, e.var, e.norm, e.any, e.all, e.sort, e.median, e.unique, e.numpy, e.tolist, e.item, lambda: e[0], lambda: e[:0], lambda: e.view(0, 5), lambda: e.view(-1), lambda: e.reshape(3, 0), lambda: m.sum(0), lambda: m.max(0),
            lambda: m.max(1), lambda: m @ torch.ones(3, 2), lambda: torch.ones(2, 0) @ torch.ones(0, 2), lambda: torch.cat([e, torch.ones(2)]), lambda: torch.stack([e, e]), lambda: e.softmax(0), lambda: F.cross_entropy(m, torch.empty(0, dtype=torch.long)), lambda: F.mse_loss(e, e), lambda: torch.topk(e, 0),
            lambda: F.linear(m, torch.ones(2, 3)), lambda: e + 1, lambda: e * torch.ones(1), lambda: e + torch.ones(2), lambda: bool(e), lambda: float(e), lambda: e.cumsum(0), lambda: m.flatten(), lambda: m.mean(1), lambda: e.logsumexp(0), lambda: e.split(2), lambda: e.chunk(3), lambda: torch.arange(0), lambda: F.conv1d(torch.ones(0, 1, 4), torch.ones(1, 1, 2)),
            lambda: F.max_pool2d(torch.ones(0, 1, 4, 4), 2), lambda: F.batch_norm(m, None, None, training=True), lambda: m.unbind(0), lambda: list(m), lambda: m.t().contiguous(), lambda: m.expand(0, 3), lambda: e.nonzero(), lambda: torch.nn.functional.embedding(torch.empty(0, dtype=torch.long), torch.ones(2, 2)), lambda: repr(m), lambda: m.amax(1), lambda: m.argmin(1), lambda: e.quantile(0.5), lambda: torch.randperm(0), lambda: torch.multinomial(e, 1))]


@same
def test_zero_dim_tensors(torch):
    x = torch.tensor(2.5)
    return [caught(f) for f in (x.sum, lambda: x.sum(0), lambda: x.max(0), lambda: x[0], lambda: x[...], lambda: x[None], lambda: len(x), lambda: list(x), lambda: x.view(1), lambda: x.t(), lambda: x.softmax(0), lambda: x.softmax(1), lambda: x @ x, lambda: torch.cat([x, x]), lambda: torch.stack([x, x]), lambda: x.sort(),
            lambda: x.unbind(), lambda: x.expand(3), lambda: x.repeat(2), lambda: x.flatten(), lambda: x.topk(1), lambda: x.cumsum(0), lambda: x.std(), lambda: x.median(), lambda: x.mean(0, keepdim=True), lambda: int(x), lambda: round(float(x), 1), lambda: f"{x:.2f}", lambda: x.size(0), lambda: x.unsqueeze(0), lambda: x.argmax(), lambda: x.split(1), lambda: x.nonzero(), lambda: x.unique())]


@same
def test_nan_and_inf(torch):
    x = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0])
    F = torch.nn.functional
    return [caught(f) for f in (x.sum, x.max, x.min, x.argmax, x.argmin, x.sort, x.mean, x.prod, lambda: x.topk(3), lambda: x.clamp(-1, 1), lambda: x.relu(), lambda: x.sign(), lambda: x.softmax(0), lambda: x[1:].softmax(0), lambda: x.cummax(0), lambda: x.median(), lambda: x.nanmedian(), lambda: torch.maximum(x, torch.zeros(6)),
            lambda: torch.fmin(x, torch.zeros(6)), lambda: x.unique(), lambda: x.isnan(), lambda: x == x, lambda: x.round(), lambda: x.floor(), lambda: x.norm(), lambda: x[1:].logsumexp(0), lambda: x[2:3].logsumexp(0), lambda: x.bool(), lambda: x.any(), lambda: x.nan_to_num(), lambda: x / 0, lambda: 1 / x, lambda: x ** 0, lambda: x % 2, lambda: x // 2, lambda: torch.atan2(x, x),
            lambda: x.amax(), lambda: x.cumsum(0), lambda: F.gelu(x), lambda: F.silu(x), lambda: F.elu(x), lambda: F.softplus(x), lambda: F.hardswish(x), lambda: x.sqrt(), lambda: x.log(), lambda: x.exp(), lambda: x.tanh(), lambda: x.sigmoid(), lambda: x.count_nonzero(), lambda: x.nansum(), x.isfinite, lambda: repr(x), lambda: x.tolist()[1:])]


@same
def test_huge_integers(torch):
    return [caught(f) for f in (lambda: torch.tensor(2 ** 63 - 1) - 1, lambda: torch.tensor(2 ** 64), lambda: torch.ones(2) * 2 ** 70, lambda: torch.zeros(2 ** 62, 2 ** 10), lambda: torch.arange(2 ** 62, 2 ** 62 + 2), lambda: torch.ones(3).view(2 ** 63), lambda: torch.ones(2)[2 ** 62:], lambda: torch.tensor([2 ** 62]).float(),
            lambda: torch.tensor(-2 ** 63), lambda: abs(torch.tensor(-2 ** 63)), lambda: torch.ones(2).expand(2 ** 40, 2).shape, lambda: torch.tensor([2 ** 62, 2 ** 62]).sum(), lambda: torch.tensor(2 ** 40) * 2 ** 30, lambda: torch.full((2,), 2 ** 40), lambda: torch.full((2,), 2 ** 64), lambda: torch.tensor([3]) ** 50)]


@same
def test_devices(torch):
    x = torch.ones(2)
    return [error(x.to, "cuda:99"), error(torch.device, "nowhere"), error(torch.device, "cpu:x"), error(torch.zeros, 2, device="gpu"), error(torch.device), str(torch.device("cuda", 1)), repr(torch.device("cpu")), torch.device("cuda:1").index, torch.device("cpu") == torch.device("cpu"), torch.device("meta").type,
            torch.zeros(2, 3, device="meta").shape, error(torch.zeros(2, device="meta").item), error(torch.zeros(2, device="meta").tolist), error(torch.zeros(1, device="meta").numpy), (torch.zeros(2, device="meta") @ torch.zeros(2, 3, device="meta")).shape, error(lambda: torch.zeros(2, device="meta") + torch.ones(2)), str((torch.zeros(2, device="meta") + 1).device)]


@same
def test_wrong_dtypes(torch):
    i, f, b, c = torch.tensor([1, 2]), torch.ones(2), torch.tensor([True, False]), torch.tensor([1j, 2])
    F = torch.nn.functional
    return [caught(call) for call in (i.mean, b.mean, i.std, lambda: i.softmax(0), lambda: F.relu(b), lambda: b - b, lambda: -b, lambda: b - 1, lambda: ~f, lambda: f & f, lambda: i.exp(), lambda: i.sqrt(), lambda: torch.matmul(i, f), lambda: torch.dot(i, f), lambda: f[f], lambda: f[i - 1], lambda: c > c, lambda: c.max(), lambda: c.sort(), lambda: c.floor(), lambda: c.clamp(0, 1),
            lambda: F.mse_loss(i, i), lambda: F.cross_entropy(f, f), lambda: F.cross_entropy(torch.ones(2, 2), f), lambda: F.dropout(i, 0.5), lambda: i.add_(1.5), lambda: i.div_(2), lambda: i.requires_grad_(), lambda: torch.where(i, f, f), lambda: torch.nonzero(f), lambda: i.norm(), lambda: i.var(), lambda: F.embedding(f, torch.ones(2, 2)), lambda: torch.gather(f, 0, f), lambda: torch.randn(2, dtype=torch.int32),
            lambda: torch.linspace(0, 1, 3, dtype=torch.bool), lambda: F.linear(i.view(1, 2), f.view(1, 2)), lambda: f.bitwise_and(f), lambda: i << f, lambda: torch.addmm(f, f.view(1, 2), i.view(2, 1)), lambda: F.conv1d(torch.ones(1, 1, 3, dtype=torch.long), torch.ones(1, 1, 2)), lambda: torch.cumsum(b, 0), lambda: b.sum(), lambda: torch.complex(i, i), lambda: torch.polar(i, i), lambda: i.erf(), lambda: i.logsumexp(0), lambda: torch.fft.fft(i), lambda: torch.linalg.inv(torch.ones(2, 2, dtype=torch.long)))]


@same
def test_conversions_to_python(torch):
    return [error(int, torch.ones(2)), error(bool, torch.ones(2)), error(float, torch.tensor(1j)), error(torch.ones(2).item), error(lambda: [1, 2][torch.tensor(1.0)]), [1, 2][torch.tensor(1)], error(lambda: range(torch.tensor(2.5))), list(range(torch.tensor(3))), error(hash, torch.ones(1)), error(lambda: torch.ones(2) and True), error(lambda: {torch.ones(1): 2}),
            error(lambda: "a" + torch.ones(1)), error(lambda: torch.ones(1) + "a"), error(lambda: torch.ones(2) < "a"), torch.ones(2) == "a", torch.ones(2) != None, error(lambda: torch.ones(2) @ 3), error(lambda: 3 @ torch.ones(2)), error(lambda: torch.ones(2) + [1, 2]), error(lambda: len(torch.tensor(1))), error(np.asarray, torch.ones(2, requires_grad=True)), error(lambda: del_item(torch.ones(2)))]  # noqa: E711


def del_item(x):
    del x[0]


@same
def test_attributes(torch):
    x = torch.ones(2)
    x.note = "kept"
    return [x.note, error(getattr, x, "no_such_attribute"), error(setattr, x, "shape", (1,)), error(setattr, x, "dtype", torch.int64), error(getattr, torch, "no_such_function"), error(delattr, x, "nothing"), hasattr(x, "absent"), error(setattr, x, "device", "cpu"), error(setattr, x, "is_leaf", True), error(setattr, x, "data", 3), error(setattr, x, "requires_grad", "yes")]


@same
def test_recursion_in_modules(torch):
    module = torch.nn.Module()
    module.self = module
    other = torch.nn.Module()
    other.child = module
    return [len(list(module.modules())), len(list(other.named_modules())), error(lambda: setattr(module, "weight", 1) or module.no_such)]


@same
def test_module_errors(torch):
    nn = torch.nn
    m = nn.Linear(2, 3)
    return [error(m), error(m, torch.ones(3)), error(m, [1.0]), error(m.load_state_dict, {}), error(m.load_state_dict, {"weight": torch.ones(1), "bias": torch.ones(3)}), error(m.load_state_dict, 3), error(nn.Linear, -1, 2), error(nn.Linear), error(nn.Linear, "a", 2), error(m.register_parameter, "a.b", None), error(m.register_parameter, "", None), error(m.register_parameter, "forward", None),
            error(m.register_buffer, "w", 3), error(m.add_module, "x", 3), error(setattr, m, "weight", torch.ones(2)), error(nn.Module().forward, 1), error(nn.Sequential, 3), error(nn.Conv2d, 3, 4, 3, groups=2), error(nn.Dropout, 1.5), error(nn.MultiheadAttention, 5, 2), error(nn.LSTM(2, 3), torch.ones(2, 5, 3)), error(nn.ModuleList([m]).__getitem__, 4), error(nn.Embedding, 3, 2, padding_idx=5),
            error(nn.BatchNorm2d(3), torch.ones(2, 3)), error(nn.Parameter, 3), error(m.get_submodule, "no.where"), error(m.get_parameter, "none"), error(nn.CrossEntropyLoss(), torch.ones(2, 2), torch.tensor([0.5, 1.0])), error(nn.utils.clip_grad_norm_, 3, 1.0), error(m.to, torch.int64), error(m.to, "gpu")]


@same
def test_optimizer_errors(torch):
    p = torch.ones(2, requires_grad=True)
    O = torch.optim
    return [error(O.SGD, []), error(O.SGD, [p], lr=-1), error(O.SGD, p), error(O.Adam, [p], betas=(1.5, 0.9)), error(O.SGD, [p * 2]), error(O.SGD, [3]), error(O.SGD, [p], momentum=-1), error(O.SGD, [p], lr=0.1, nesterov=True), error(O.Adam, [p], eps=-1), error(O.SGD, [{"params": [p]}, {"params": [p]}]), error(O.SGD([p], lr=0.1).load_state_dict, {"param_groups": [], "state": {}}), error(O.SGD, [p], lr="a"), error(O.Adam, [p], weight_decay=-1),
            error(O.SGD([p], lr=0.1).add_param_group, {"params": [p]}), error(O.SGD([p], lr=0.1).add_param_group, 3), error(O.RMSprop, [p], alpha=-1), error(O.Adagrad, [p], lr_decay=-1), error(O.LBFGS([p]).step)]


@same
def test_ambiguous_and_surplus_arguments(torch):
    x = torch.ones(2, 3)
    return [error(torch.add, x), error(torch.add, x, x, x), error(torch.sum, x, 0, False, 3), error(x.view), error(x.permute, "a"), error(x.reshape), error(x.transpose, 0), error(torch.zeros), error(torch.cat), error(torch.cat, [x], 0, 1, 2), error(torch.cat, [x], dim=0, axis=1), error(x.sum, dim=0, axis=0), error(torch.clamp, x, 1, 2, 3), error(x.expand), error(torch.full, 2), error(torch.arange),
            error(torch.linspace, 1), error(x.to), error(x.fill_), error(x.item, 1), error(torch.ones, 2, dtype="float32"), error(torch.where, x > 0, x), error(torch.einsum, x), error(torch.manual_seed), error(torch.manual_seed, "a"), error(x.backward, 1, 2, 3, 4, 5, 6), error(torch.tensor), error(torch.tensor, 1, 2), error(torch.no_grad, 1), error(torch.stack, x, 5), error(torch.split, x), error(torch.nn.functional.pad, x), error(torch.sum, input=x, nothing=2), error(torch.mm, x), caught(lambda: torch.sum(input=x, axis=1)), caught(lambda: torch.add(input=x, other=1))]


@same
def test_ctrl_c_inside_backward(torch):
    """A KeyboardInterrupt raised in a hook leaves the engine usable."""
    x = torch.ones(2, requires_grad=True)
    y = x * 2

    def stop(g):
        raise KeyboardInterrupt
    handle = y.register_hook(stop)
    try:
        y.sum().backward()
        seen = "went through"
    except KeyboardInterrupt:
        seen = "interrupted"
    handle.remove()
    (x * 3).sum().backward()
    return seen, x.grad
