"""Bad input on purpose: the same exception classes as torch's, and an engine that stays usable afterwards."""
import math

import numpy as np
import pytest
from nn_models import said
from same import error, outcomes, same

NOT_TENSORS = (None, "text", 3, 1.5, [1.0], (1, 2), {"a": 1}, object(), np.ones(2), print)
UNARY = ("abs", "exp", "sum", "mean", "relu", "sigmoid", "sort", "t", "isnan", "neg", "max", "cumsum", "flatten",
    "squeeze", "softmax", "clone", "argmax", "std", "norm", "unbind", "nonzero", "inverse", "numel", "all")
BINARY = ("add", "mul", "matmul", "eq", "maximum", "dot", "pow", "div", "where", "cat", "stack", "gather",
    "index_select", "bmm", "einsum", "equal", "allclose", "outer", "cross", "masked_select")
DIMS = ("sum", "mean", "softmax", "cumsum", "argmax", "sort", "unsqueeze", "squeeze", "flip", "unbind", "logsumexp",
    "amax", "std", "median", "prod", "all", "topk", "chunk", "select", "var", "log_softmax", "cummax", "norm",
    "argsort", "kthvalue", "mode", "roll", "narrow", "split", "max")


@pytest.mark.parametrize("name", UNARY)
@same
def test_non_tensors_to_unary(torch, name):
    function = getattr(torch, name)
    seen = {repr(bad)[:9]: error(function, bad) for bad in NOT_TENSORS}
    return seen, error(function), error(function, torch.ones(2), no_such_argument=1)


@pytest.mark.parametrize("name", BINARY)
@same
def test_non_tensors_to_binary(torch, name):
    function, x = getattr(torch, name), torch.ones(2)
    right = {f"x, {bad!r}"[:9]: error(function, x, bad) for bad in NOT_TENSORS}
    left = {f"{bad!r}, x"[:9]: error(function, bad, x) for bad in NOT_TENSORS}
    return right, left, error(function, x)


@pytest.mark.parametrize("name", DIMS)
@same
def test_bad_dims(torch, name):
    function, x, scalar = getattr(torch, name), torch.arange(6.0).view(2, 3), torch.tensor(1.0)
    first = {"topk": (1,), "chunk": (1,), "kthvalue": (1,), "roll": (1,), "split": (1,), "norm": (2,)}.get(name, ())
    rest = {"select": (0,), "narrow": (0, 1)}.get(name, ())
    dims = (2, -3, 100, -100, 0.5, "0", 2 ** 70, None, (0, 5), [0, 0], True)
    return ({f"matrix, {d}": error(function, x, *first, d, *rest) for d in dims},
            {f"scalar, {d}": error(function, scalar, *first, d, *rest) for d in (0, -1, 1, -2)})


@pytest.mark.parametrize("call", [
    "F.linear(f(28, 28).byte(), f(10, 784), f(10))", "F.linear(f(28, 28).byte(), f(10, 784))", "F.linear(f(2, 3, 4).byte(), f(5, 6), f(5))",
    "F.linear(f(4).byte(), f(5, 6), f(5))", "F.linear(f(2, 3), f(4, 7), f(4).byte())", "F.linear(f(2, 3), f(4, 3), f(5).byte())",
    "torch.mm(f(2, 3).byte(), f(4, 5))", "f(2, 3).byte() @ f(4, 5)",
    "f(2, 2, 3).byte() @ f(4, 5)", "f(2, 2, 3).byte() @ f(2, 4, 5)", "f(3).byte() @ f(4)", "f(2, 3).byte() @ f(4)", "torch.mv(f(2, 3).byte(), f(4))",
    "torch.bmm(f(2, 2, 3).byte(), f(2, 4, 5))", "torch.addmm(f(5), f(2, 3).byte(), f(4, 5))", "torch.addmv(f(2), f(2, 3).byte(), f(4))",
    "torch.addmv(f(2).byte(), f(2, 3), f(3))", "torch.baddbmm(f(5), f(2, 2, 3).byte(), f(2, 4, 5))"])
@same
def test_products_of_which_neither_shapes_nor_dtypes_fit(torch, call):
    """PyTorch's words, which tell of the one that it looks at first."""
    return said(lambda: eval(call, {"torch": torch, "F": torch.nn.functional, "f": torch.ones}))


@same
def test_shapes_that_do_not_fit(torch):
    a, b = torch.ones(2, 3), torch.ones(4, 5)
    F = torch.nn.functional
    return outcomes(locals(), [
        "torch.add(a, b)", "torch.mul(a, b)", "torch.matmul(a, b)", "torch.mm(a, b)", "torch.maximum(a, b)",
        "torch.where(a, b)", "torch.atan2(a, b)", "torch.dot(a, b)", "torch.mv(a, b)", "F.mse_loss(a, b)",
        "F.linear(a, b)", "F.cosine_similarity(a, b)", "torch.cdist(a, b)", "torch.equal(a, b)", "torch.cross(a, b)",
        "torch.cat([a, b])", "torch.stack([a, b])", "a.view(5)", "a.expand(3, 3)", "a.reshape(4)", "torch.bmm(a, b)",
        "torch.broadcast_tensors(a, b)", "a.copy_(b)", "torch.einsum('ij,jk', a, b)", "torch.addmm(a, a, a)",
        "F.conv2d(a, b)", "F.cross_entropy(a, torch.tensor([0, 1, 2]))", "F.embedding(torch.tensor([9]), a)",
        "F.layer_norm(a, (2,))", "F.batch_norm(a, torch.ones(2), torch.ones(2))"])


@same
def test_out_of_range_indices(torch):
    x = torch.arange(6.0).view(2, 3)
    big = torch.tensor([7])
    return outcomes(locals(), [
        "x[2]", "x[0, 3]", "x[-3]", "x[big]", "x[:, big]", "x[2 ** 40]", "x[0, 0, 0]", "x.__setitem__(5, 1.0)",
        "x.__setitem__((0, 9), 1.0)", "x.__setitem__(big, 1.0)", "torch.gather(x, 1, big.view(1, 1))",
        "torch.index_select(x, 0, big)", "torch.index_select(x, 1, big)", "x.scatter(1, big.view(1, 1), 1.0)", "x.index_add(0, big, x[:1])",
        "torch.take(x, big)", "x.index_fill(0, big, 0.0)", "x.index_copy(0, big, x[:1])",
        "torch.nn.functional.one_hot(torch.tensor([3]), 2)", "torch.nn.functional.nll_loss(x, torch.tensor([0, 3]))",
        "x.select(0, 2)", "x.narrow(0, 1, 5)", "torch.topk(x, 9)", "x[[0, 5]]", "x[torch.tensor([-3])]",
        "x.scatter_add(0, big.view(1, 1), x[:1, :1])"])


@same
def test_a_number_that_is_no_position_is_an_error_on_its_line(torch):
    x = torch.arange(5)
    return [(error(x.gather, 0, torch.full((2,), k)), error(x.__getitem__, torch.full((2,), k)), error(x.index_select, 0, torch.full_like(x, k)),
             error(x.take, x.new_full((2,), k)), error(torch.nn.functional.embedding, torch.full((2,), k), x.view(5, 1))) for k in (4, 5, -1, -6)]


@same
def test_index_computed_on_device_is_checked_at_observation(torch):
    x = torch.arange(4.0)
    index = torch.tensor([1, 2]) * 3
    return error(lambda: x[index].sum().item()), x[index - 3].sum()


@same
def test_engine_survives_errors_in_the_middle(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    kinds = [error(torch.add, y, torch.ones(4)), error(lambda: y[9]), error(torch.matmul, y, torch.ones(2)),
        error(lambda: y.view(7))]
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
    return outcomes(locals(), [
        "e.sum()", "e.mean()", "e.prod()", "e.max()", "e.min()", "e.argmax()", "e.std()", "e.var()", "e.norm()",
        "e.any()", "e.all()", "e.sort()", "e.median()", "e.unique()", "e.numpy()", "e.tolist()", "e.item()", "e[0]",
        "e[:0]", "e.view(0, 5)", "e.view(-1)", "e.reshape(3, 0)", "m.sum(0)", "m.max(0)", "m.max(1)",
        "m @ torch.ones(3, 2)", "torch.ones(2, 0) @ torch.ones(0, 2)", "torch.cat([e, torch.ones(2)])",
        "torch.stack([e, e])", "e.softmax(0)", "F.cross_entropy(m, torch.empty(0, dtype=torch.long))",
        "F.mse_loss(e, e)", "torch.topk(e, 0)", "F.linear(m, torch.ones(2, 3))", "e + 1", "e * torch.ones(1)",
        "e + torch.ones(2)", "bool(e)", "float(e)", "e.cumsum(0)", "m.flatten()", "m.mean(1)", "e.logsumexp(0)",
        "e.split(2)", "e.chunk(3)", "torch.arange(0)", "F.conv1d(torch.ones(0, 1, 4), torch.ones(1, 1, 2))",
        "F.max_pool2d(torch.ones(0, 1, 4, 4), 2)", "F.batch_norm(m, None, None, training=True)", "m.unbind(0)",
        "list(m)", "m.t().contiguous()", "m.expand(0, 3)", "e.nonzero()",
        "torch.nn.functional.embedding(torch.empty(0, dtype=torch.long), torch.ones(2, 2))", "repr(m)", "m.amax(1)",
        "m.argmin(1)", "e.quantile(0.5)", "torch.randperm(0)", "torch.multinomial(e, 1)"])


@same
def test_zero_dim_tensors(torch):
    x = torch.tensor(2.5)
    return outcomes(locals(), [
        "x.sum()", "x.sum(0)", "x.max(0)", "x[0]", "x[...]", "x[None]", "len(x)", "list(x)", "x.view(1)", "x.t()",
        "x.softmax(0)", "x.softmax(1)", "x @ x", "torch.cat([x, x])", "torch.stack([x, x])", "x.sort()", "x.unbind()",
        "x.expand(3)", "x.repeat(2)", "x.flatten()", "x.topk(1)", "x.cumsum(0)", "x.std()", "x.median()",
        "x.mean(0, keepdim=True)", "int(x)", "round(float(x), 1)", "f'{x:.2f}'", "x.size(0)", "x.unsqueeze(0)",
        "x.argmax()", "x.split(1)", "x.nonzero()", "x.unique()"])


@same
def test_nan_and_inf(torch):
    x = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0])
    F = torch.nn.functional
    return outcomes(locals(), [
        "x.sum()", "x.max()", "x.min()", "x.argmax()", "x.argmin()", "x.sort()", "x.mean()", "x.prod()", "x.topk(3)",
        "x.clamp(-1, 1)", "x.relu()", "x.sign()", "x.softmax(0)", "x[1:].softmax(0)", "x.cummax(0)", "x.median()",
        "x.nanmedian()", "torch.maximum(x, torch.zeros(6))", "torch.fmin(x, torch.zeros(6))", "x.unique()",
        "x.isnan()", "x == x", "x.round()", "x.floor()", "x.norm()", "x[1:].logsumexp(0)", "x[2:3].logsumexp(0)",
        "x.bool()", "x.any()", "x.nan_to_num()", "x / 0", "1 / x", "x ** 0", "x % 2", "x // 2", "torch.atan2(x, x)",
        "x.amax()", "x.cumsum(0)", "F.silu(x)", "F.elu(x)", "F.softplus(x)", "F.hardswish(x)",
        "x.sqrt()", "x.log()", "x.exp()", "x.tanh()", "x.sigmoid()", "x.count_nonzero()", "x.nansum()",
        "x.isfinite()", "repr(x)", "x.tolist()[1:]"])


@same
def test_huge_integers(torch):
    return outcomes(locals(), [
        "torch.tensor(2 ** 63 - 1) - 1", "torch.tensor(2 ** 64)", "torch.ones(2) * 2 ** 70",
        "torch.zeros(2 ** 62, 2 ** 10)", "torch.arange(2 ** 62, 2 ** 62 + 2)", "torch.ones(3).view(2 ** 63)",
        "torch.ones(2)[2 ** 62:]", "torch.tensor([2 ** 62]).float()", "torch.tensor(-2 ** 63)",
        "abs(torch.tensor(-2 ** 63))", "torch.ones(2).expand(2 ** 40, 2).shape",
        "torch.tensor([2 ** 62, 2 ** 62]).sum()", "torch.tensor(2 ** 40) * 2 ** 30", "torch.full((2,), 2 ** 40)",
        "torch.full((2,), 2 ** 64)", "torch.tensor([3]) ** 50"])


@same
def test_devices(torch):
    x = torch.ones(2)
    return outcomes(locals(), [
        "x.to('cuda:99')", "torch.device('nowhere')", "torch.device('cpu:x')", "torch.zeros(2, device='gpu')",
        "torch.device()", "str(torch.device('cuda', 1))", "repr(torch.device('cpu'))", "torch.device('cuda:1').index",
        "torch.device('cpu') == torch.device('cpu')", "torch.device('meta').type",
        "torch.zeros(2, 3, device='meta').shape", "torch.zeros(2, device='meta').item()",
        "torch.zeros(2, device='meta').tolist()", "torch.zeros(1, device='meta').numpy()",
        "(torch.zeros(2, device='meta') @ torch.zeros(2, 3, device='meta')).shape",
        "torch.zeros(2, device='meta') + torch.ones(2)", "str((torch.zeros(2, device='meta') + 1).device)"])


@same
def test_wrong_dtypes(torch):
    i, f, b, c = torch.tensor([1, 2]), torch.ones(2), torch.tensor([True, False]), torch.tensor([1j, 2])
    F = torch.nn.functional
    return outcomes(locals(), [
        "i.mean()", "b.mean()", "i.std()", "i.softmax(0)", "F.relu(b)", "b - b", "-b", "b - 1", "~f", "f & f",
        "i.exp()", "i.sqrt()", "torch.matmul(i, f)", "torch.dot(i, f)", "f[f]", "f[i - 1]", "c > c", "c.max()",
        "c.sort()", "c.floor()", "c.clamp(0, 1)", "F.mse_loss(i, i)", "F.cross_entropy(f, f)",
        "F.cross_entropy(torch.ones(2, 2), f)", "F.dropout(i, 0.5)", "i.add_(1.5)", "i.div_(2)", "i.requires_grad_()",
        "torch.where(i, f, f)", "torch.nonzero(f)", "i.norm()", "i.var()", "F.embedding(f, torch.ones(2, 2))",
        "torch.gather(f, 0, f)", "torch.randn(2, dtype=torch.int32)", "torch.linspace(0, 1, 3, dtype=torch.bool)",
        "F.linear(i.view(1, 2), f.view(1, 2))", "f.bitwise_and(f)", "i << f",
        "torch.addmm(f, f.view(1, 2), i.view(2, 1))",
        "F.conv1d(torch.ones(1, 1, 3, dtype=torch.long), torch.ones(1, 1, 2))", "torch.cumsum(b, 0)", "b.sum()",
        "torch.complex(i, i)", "torch.polar(i, i)", "i.erf()", "i.logsumexp(0)", "torch.fft.fft(i)",
        "torch.linalg.inv(torch.ones(2, 2, dtype=torch.long))"])


@same
def test_conversions_to_python(torch):
    return outcomes(locals(), ["int(torch.ones(2))", "bool(torch.ones(2))", "float(torch.tensor(1j))",
        "torch.ones(2).item()", "[1, 2][torch.tensor(1.0)]", "[1, 2][torch.tensor(1)]", "range(torch.tensor(2.5))",
        "list(range(torch.tensor(3)))", "isinstance(hash(torch.ones(1)), int)", "torch.ones(2) and True",
        "len({torch.ones(1): 2})", "'a' + torch.ones(1)", "torch.ones(1) + 'a'", "torch.ones(2) < 'a'",
        "torch.ones(2) == 'a'", "torch.ones(2) != None", "torch.ones(2) @ 3", "3 @ torch.ones(2)",
        "torch.ones(2) + [1, 2]", "len(torch.tensor(1))", "np.asarray(torch.ones(2, requires_grad=True))",
        "del_item(torch.ones(2))"])


def del_item(x):
    del x[0]


@same
def test_attributes(torch):
    x = torch.ones(2)
    x.note = "kept"
    return outcomes(locals(), [
        "x.note", "getattr(x, 'no_such_attribute')", "setattr(x, 'shape', (1,))", "setattr(x, 'dtype', torch.int64)",
        "getattr(torch, 'no_such_function')", "delattr(x, 'nothing')", "hasattr(x, 'absent')",
        "setattr(x, 'device', 'cpu')", "setattr(x, 'is_leaf', True)", "setattr(x, 'data', 3)",
        "setattr(x, 'requires_grad', 'yes')"])


@same
def test_recursion_in_modules(torch):
    module = torch.nn.Module()
    module.self = module
    other = torch.nn.Module()
    other.child = module
    return [len(list(module.modules())), len(list(other.named_modules())),
        error(lambda: setattr(module, "weight", 1) or module.no_such)]


@same
def test_module_errors(torch):
    nn = torch.nn
    m = nn.Linear(2, 3)
    return outcomes(locals(), [
        "m()", "m(torch.ones(3))", "m([1.0])", "m.load_state_dict({})",
        "m.load_state_dict({'weight': torch.ones(1), 'bias': torch.ones(3)})", "m.load_state_dict(3)",
        "nn.Linear(-1, 2)", "nn.Linear()", "nn.Linear('a', 2)", "m.register_parameter('a.b', None)",
        "m.register_parameter('', None)", "m.register_parameter('forward', None)", "m.register_buffer('w', 3)",
        "m.add_module('x', 3)", "setattr(m, 'weight', torch.ones(2))", "nn.Module().forward(1)", "nn.Sequential(3)",
        "nn.Conv2d(3, 4, 3, groups=2)", "nn.Dropout(1.5)", "nn.MultiheadAttention(5, 2)",
        "nn.LSTM(2, 3)(torch.ones(2, 5, 3))", "nn.ModuleList([m]).__getitem__(4)",
        "nn.Embedding(3, 2, padding_idx=5)", "nn.Embedding(3, 2, padding_idx=-4)", "nn.Embedding(None, 2, padding_idx=0)",
        "nn.Embedding(None, 2, padding_idx=1)", "nn.Embedding(3, 2, padding_idx='a')", "nn.BatchNorm2d(3)(torch.ones(2, 3))", "nn.Parameter(3)",
        "m.get_submodule('no.where')", "m.get_parameter('none')",
        "nn.CrossEntropyLoss()(torch.ones(2, 2), torch.tensor([0.5, 1.0]))", "nn.utils.clip_grad_norm_(3, 1.0)",
        "m.to(torch.int64)", "m.to('gpu')"])


@same
def test_optimizer_errors(torch):
    p = torch.ones(2, requires_grad=True)
    optim = torch.optim
    return outcomes(locals(), ["optim.SGD([])", "optim.SGD([p], lr=-1)", "optim.SGD(p)",
        "optim.Adam([p], betas=(1.5, 0.9))", "optim.SGD([p * 2])", "optim.SGD([3])", "optim.SGD([p], momentum=-1)",
        "optim.SGD([p], lr=0.1, nesterov=True)", "optim.Adam([p], eps=-1)",
        "optim.SGD([{'params': [p]}, {'params': [p]}])",
        "optim.SGD([p], lr=0.1).load_state_dict({'param_groups': [], 'state': {}})", "optim.SGD([p], lr='a')",
        "optim.Adam([p], weight_decay=-1)", "optim.SGD([p], lr=0.1).add_param_group({'params': [p]})",
        "optim.SGD([p], lr=0.1).add_param_group(3)", "optim.RMSprop([p], alpha=-1)",
        "optim.Adagrad([p], lr_decay=-1)", "optim.LBFGS([p]).step()"])


@same
def test_ambiguous_and_surplus_arguments(torch):
    x = torch.ones(2, 3)
    return outcomes(locals(), [
        "torch.add(x)", "torch.add(x, x, x)", "torch.sum(x, 0, False, 3)", "x.view()", "x.permute('a')",
        "x.reshape()", "x.transpose(0)", "torch.zeros()", "torch.cat()", "torch.cat([x], 0, 1, 2)",
        "torch.cat([x], dim=0, axis=1)", "x.sum(dim=0, axis=0)", "torch.clamp(x, 1, 2, 3)", "x.expand()",
        "torch.full(2)", "torch.arange()", "torch.linspace(1)", "x.to()", "x.fill_()", "x.item(1)",
        "torch.ones(2, dtype='float32')", "torch.where(x > 0, x)", "torch.einsum(x)", "torch.manual_seed()",
        "torch.manual_seed('a')", "x.backward(1, 2, 3, 4, 5, 6)", "torch.tensor()", "torch.tensor(1, 2)",
        "callable(torch.no_grad(1))", "torch.stack(x, 5)", "torch.split(x)", "torch.nn.functional.pad(x)",
        "torch.sum(input=x, nothing=2)", "torch.mm(x)", "torch.sum(input=x, axis=1)", "torch.add(input=x, other=1)"])


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


@same
def test_roundings_of_other_kinds(torch):
    tensors = {"bool": torch.tensor([True, False]), "long": torch.tensor([1, 2]), "complex": torch.tensor([1j])}
    found = {}
    for name in ("ceil", "floor", "trunc", "frac", "round"):
        for kind, x in tensors.items():
            found[name, kind] = [error(getattr(torch, name), x), error(getattr(x.clone(), name + "_")), error(getattr(torch, "_foreach_" + name), [x])]
    return found


@same
def test_packed_scalars_of_foreach_functions(torch):
    x = [torch.ones(2), torch.ones(2)]
    scalars = (torch.ones(2), torch.ones(4)[::2], torch.ones(3), torch.ones(2, 2), torch.ones(2, 2)[:, 0])
    return [error(f, x, x, x, s) for f in (torch._foreach_addcmul, torch._foreach_addcdiv) for s in scalars]


@same
def test_an_index_that_is_too_large_names_its_place_among_the_indices(torch):
    x, y, said = torch.ones(3, 2), torch.ones(4, 3, 2), []
    for f in (lambda: x[..., [0, 1, 2]], lambda: x[:, torch.tensor([2])], lambda: y[:, [3], [1]], lambda: y[[0], :, [5]], lambda: y[None, :, [0], [7]],
              lambda: y[[5]], lambda: x[..., 2], lambda: x.__setitem__((slice(None), [0, 2]), 1.0)):
        try:
            f()
        except IndexError as error:
            said.append(str(error))
    return said


@same
def test_element_types_without_a_kernel(torch):
    """Bools, integers and complex numbers where torch computes with others alone; and those which it does take."""
    F = torch.nn.functional
    b, c, i = torch.ones(3, 4).bool(), torch.ones(3, 4) * 1j, torch.ones(3, 4).int()
    k, q = torch.zeros(3, 4, dtype=torch.long), torch.ones(1, 1, 2, 4) * 1j
    losses = [f"F.{name}({x}, {x})" for name in ("mse_loss", "huber_loss", "smooth_l1_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
                                                 "cosine_similarity", "l1_loss") for x in "cib"]
    margins = [f"F.multi_margin_loss({x}, torch.tensor([0, 1, 2]))" for x in "bic"] + [f"F.multilabel_margin_loss({x}, k)" for x in "bic"]
    reduced = [f"{x}.scatter_reduce(0, k, {x}, '{how}')" for x in "bc" for how in ("sum", "prod", "mean", "amax", "amin")]
    reduced += [f"{x}.index_reduce(0, k[0, :3], {x}, '{how}')" for x in "bc" for how in ("prod", "mean", "amax", "amin")]
    return outcomes(locals(), losses + margins + reduced + [
        "b.trace()", "b.median()", "b.median(1)", "b.nanmedian()", "b.kthvalue(1)", "b.mode(1).values", "torch.searchsorted(b[0], b[0])", "torch.bucketize(b, b[0])",
        "torch.searchsorted(i[0].float(), b[0])", "torch.bucketize(True, torch.tensor([0, 1]))", "F.embedding_bag(k, i)", "F.embedding_bag(k, c)",
        "F.unfold(torch.ones(1, 1, 3, 3).long(), 2)", "F.unfold(torch.ones(1, 1, 3, 3).bool(), 2)", "F.scaled_dot_product_attention(q, q, q)"])


@same
def test_operators_that_go_straight_to_the_recorder_refuse_what_functions_refuse(torch):
    a, b, i, v = torch.ones(2, 2), torch.ones(2, 2).bool(), torch.arange(4).view(2, 2), torch.ones(2)
    half, three, none = torch.ones(2, 2).half(), torch.ones(3), torch.tensor(2.0)
    return outcomes(locals(), [f"{x} - {y}" for x in "abi" for y in ("a", "b", "i", "1", "True", "0.5", "none", "three", "1j")]
                    + [f"{x} - {y}" for x in ("1", "True", "0.5", "1j") for y in "abi"]
                    + [f"{x} @ {y}" for x in ("a", "b", "i", "v") for y in ("a", "b", "i", "v", "half", "three", "none", "2")] + ["half @ half", "b @ b", "i @ i[0]"]
                    + ["a.T", "v.unsqueeze(0).T", "a.clamp(0.5, 0.7)", "i.clamp(0.5)", "half.clamp(-1e5, 1e5)", "torch.linalg.solve(2 * a - a.T.cumsum(0), v)",
                       "torch.linalg.solve(torch.eye(2).expand(3, 2, 2), a)", "torch.linalg.solve(torch.eye(2), torch.ones(3, 2, 1))"])


@same
def test_variances_of_everything_have_no_out(torch):
    x, zero, three = torch.arange(12.0).reshape(3, 4), torch.empty(()), torch.empty(3)
    return outcomes(locals(), [f"torch.{f}({args})" for f in ("var", "std") for args in (
        "x, True, out=zero", "x, unbiased=False, out=zero", "x, 1, True, out=three", "x, dim=1, correction=0, out=three", "x, out=zero", "x, 1, out=three")])


REFUSED = """torch.sign(z); z.clamp(0); z.clamp_min(0); z.relu(); z.topk(1); b.topk(1); m + x; x + m; torch.nn.Linear(2, 2, device='meta')(x); F.dropout2d(x[0]); F.dropout3d(x[0])
F.dropout2d(x[0], training=False); NoInit()(x)"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", [t.strip() for t in REFUSED.replace("\n", ";").split(";")])
@same
def test_words_of_refusals(torch, text):
    class NoInit(torch.nn.Module):
        def __init__(self):
            self.x = 1
    names = {"torch": torch, "F": torch.nn.functional, "NoInit": NoInit, "z": torch.tensor([1 + 1j]), "b": torch.ones(2).bool(), "x": torch.ones(1, 2),
             "m": torch.ones(1, 2, device="meta")}
    return str(said(eval, text, names)).split("\n")[0]


@same
def test_a_copy_of_a_tensor_by_new_tensor_warns(torch):
    with pytest.warns(UserWarning, match="rather than tensor.new_tensor"):
        return torch.ones(2).new_tensor(torch.ones(1))
