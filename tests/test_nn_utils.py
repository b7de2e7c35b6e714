"""nn.init and nn.utils: the same numbers, names, printing and errors as real torch."""
from __future__ import annotations

import copy
import importlib

import pytest
from nn_models import said
from same import same

# ----------------------------------------------------------------------------------------------------- initial values
FILLS = [("uniform_", (0.5, 2.0)), ("normal_", (1.0, 0.1)), ("trunc_normal_", ()),
         ("trunc_normal_", (0.0, 1.0, 1.5, 2.5)), ("constant_", (3.0,)), ("ones_", ()), ("zeros_", ()),
         ("xavier_uniform_", (2.0,)), ("xavier_normal_", ()), ("kaiming_uniform_", ()),
         ("kaiming_normal_", (0.1, "fan_out")), ("kaiming_uniform_", (0, "fan_in", "relu")), ("orthogonal_", ()),
         ("orthogonal_", (2.0,))]


@pytest.mark.parametrize("shape", [(3, 5), (20, 4), (4, 3, 2, 2)], ids=str)
@pytest.mark.parametrize(("name", "args"), FILLS, ids=lambda x: str(x))
@same(tol=3.0)
def test_fill(torch, name, args, shape):
    w = torch.nn.Parameter(torch.empty(shape))
    out = getattr(torch.nn.init, name)(w, *args)
    return w, out is w, w.requires_grad, w.is_leaf


@same
def test_structured_fills(torch):
    init = torch.nn.init
    sparse = init.sparse_(torch.empty(10, 3), 0.35)
    return [init.eye_(torch.empty(2, 3)), init.dirac_(torch.empty(4, 2, 3)), init.dirac_(torch.empty(4, 2, 3, 2),
                                                                                         groups=2), sparse,
            [init.calculate_gain(n) for n in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")],
            init.calculate_gain("leaky_relu", 0.3), init.uniform(torch.empty(2)), init.xavier_normal(torch.empty(2, 2))]


@same
def test_refused_fills(torch):
    init = torch.nn.init
    return [said(init.eye_, torch.empty(2)), said(init.dirac_, torch.empty(2, 2)),
            said(init.dirac_, torch.empty(3, 2, 2), groups=2),
            said(init.xavier_uniform_, torch.empty(2)), said(init.kaiming_normal_, torch.empty(2)),
            said(init.kaiming_normal_, torch.empty(2, 2), mode="x"),
            said(init.orthogonal_, torch.empty(2)), said(init.sparse_, torch.empty(2), 0.1), said(init.calculate_gain,
                                                                                                  "other"),
            said(init.calculate_gain, "leaky_relu", "x"), init.kaiming_uniform_(torch.empty(0, 2)).shape]


@same(tol=3.0)
def test_generator_of_a_fill(torch):
    g = torch.Generator()
    g.manual_seed(3)
    init, leaf = torch.nn.init, torch.zeros(3, requires_grad=True)
    return [init.normal_(torch.empty(3), generator=g), init.xavier_uniform_(torch.empty(3, 2), generator=g), init._no_grad_uniform_(leaf, -1, 2, g), leaf.requires_grad,
            init._no_grad_normal_(leaf, 1, 2, g), init._no_grad_trunc_normal_(leaf, 0, 1, -2, 2, g), init._no_grad_fill_(torch.empty(2), 3), init._no_grad_zero_(torch.ones(2))]


# ---------------------------------------------------------------------------------------------------------- gradients
def with_gradients(torch):
    m = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    m(torch.tensor([[1.0, 2.0]])).mul(10).sum().backward()
    m[1].bias.grad = None
    return m


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf"), 3])
@same
def test_clip_grad_norm(torch, norm_type):
    m = with_gradients(torch)
    norm = torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5, norm_type)
    return norm, [p.grad for p in m.parameters()], torch.nn.utils.clip_grad_norm_(m[0].weight, 100.0), m[0].weight.grad


@same
def test_other_clipping(torch):
    utils, m = torch.nn.utils, with_gradients(torch)
    total = utils.get_total_norm([p.grad for p in m.parameters() if p.grad is not None])
    utils.clip_grads_with_norm_(m.parameters(), 1.0, total)
    scaled = [None if p.grad is None else p.grad.clone() for p in m.parameters()]
    utils.clip_grad_value_(m.parameters(), 0.05)
    m[0].weight.grad[0, 0] = float("nan")
    return [total, scaled, [p.grad for p in m[1:].parameters()], utils.clip_grad_norm_([], 1.0),
            said(utils.clip_grad_norm_, m.parameters(), 1.0, error_if_nonfinite=True)]


@same
def test_parameters_as_a_vector(torch):
    utils, m = torch.nn.utils, torch.nn.Linear(2, 2)
    vector = utils.parameters_to_vector(m.parameters())
    utils.vector_to_parameters(torch.arange(6.0), m.parameters())
    return vector, m.state_dict(), m.weight.requires_grad, said(utils.vector_to_parameters, 3, m.parameters())


# ------------------------------------------------------------------------------------------------------------ sequences
@same
def test_packing(torch):
    rnn = torch.nn.utils.rnn
    x = torch.arange(24.0).reshape(4, 3, 2).requires_grad_()
    seen = []
    for packed in (rnn.pack_padded_sequence(x, [4, 2, 1]), rnn.pack_padded_sequence(x, torch.tensor([1, 4, 2]),
                                                                                    enforce_sorted=False),
                   rnn.pack_padded_sequence(x.transpose(0, 1), [4, 3, 3], batch_first=True),
                   rnn.pack_sequence([torch.ones(2, 2), torch.zeros(3, 2)], enforce_sorted=False)):
        seen.append([packed.data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices,
                     repr(packed._replace(data=0)), rnn.pad_packed_sequence(packed),
                     rnn.pad_packed_sequence(packed, batch_first=True,
                                                                              padding_value=-1.0, total_length=6),
                     rnn.unpack_sequence(packed), packed.double().data.dtype, packed.is_cuda])
    rnn.pack_padded_sequence(x, [4, 2, 1]).data.pow(2).sum().backward()
    return seen, x.grad


@same
def test_padding(torch):
    rnn = torch.nn.utils.rnn
    parts = [torch.ones(2, 2), torch.full((3, 2), 2.0), torch.zeros(1, 2)]
    padded = rnn.pad_sequence(parts)
    return [padded, rnn.pad_sequence(parts, batch_first=True, padding_value=9.0), rnn.pad_sequence(parts,
                                                                                                   padding_side="left"),
            rnn.unpad_sequence(padded.clone(), torch.tensor([2, 3, 1])), rnn.invert_permutation(torch.tensor([2, 0,
                                                                                                              1])),
            rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([3])])]


@same
def test_sequences_without_padding(torch):
    rnn = torch.nn.utils.rnn
    x, found = torch.arange(24.0).reshape(3, 4, 2), []
    for batch, lengths, first in ((x, [2, 9, 0, 1], False), (x, [1, 2.5, -1], True), (x[..., 0], [1, 2, 3], True)):
        found.append(rnn.unpad_sequence(batch.clone(), torch.tensor(lengths), batch_first=first))
    for lengths in (torch.tensor([2, 2]), torch.tensor(2), [2, 2, 1, 1]):
        try:
            rnn.unpad_sequence(x.clone(), lengths)
        except (ValueError, TypeError, AttributeError) as error:
            found += [type(error).__name__, str(error)]
    return found


@same
def test_refused_sequences(torch):
    rnn = torch.nn.utils.rnn
    x = torch.ones(3, 2, 1)
    return [said(rnn.pack_padded_sequence, x, [1, 3]), said(rnn.pack_padded_sequence, x, [3, 0]),
            said(rnn.pack_padded_sequence, x, [3]),
            said(rnn.pad_sequence, 3), said(rnn.pad_sequence, []), said(rnn.pad_sequence, [x], padding_side="up"),
            said(rnn.pad_packed_sequence, rnn.pack_sequence([torch.ones(3)]), total_length=2)]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("order", [[4, 2, 1], [1, 4, 2]], ids=str)
@same(tol=3.0)
def test_packed_recurrence(torch, kind, order):
    layer = getattr(torch.nn, kind)(2, 3, 2, bidirectional=True)
    x = torch.arange(24.0).reshape(4, 3, 2).div(10).requires_grad_()
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, order, enforce_sorted=order == [4, 2, 1])
    output, hidden = layer(packed)
    output.data.pow(2).sum().backward()
    state = tuple(torch.ones(4, 3, 3) for _ in range(2)) if kind == "LSTM" else torch.ones(4, 3, 3)
    return output.data, output.batch_sizes, hidden, x.grad, [p.grad for p in layer.parameters()], layer(packed,
                                                                                                        state)[1]


@same
def test_refused_recurrence(torch):
    nn, one = torch.nn, torch.ones
    packed = nn.utils.rnn.pack_sequence([one(3, 2), one(2, 2)])
    return [
        said(nn.LSTM(2, 3), one(4, 1, 5)), said(nn.LSTM(2, 3), one(4, 1, 2), (one(1, 2, 3), one(1, 1, 3))),
        said(nn.LSTM(2, 3), one(4, 1, 2), (one(2, 3), one(1, 1, 3))), said(nn.GRU(2, 3), one(4, 1, 2), one(1, 2, 3)),
        said(nn.LSTM(2, 3), one(4, 1, 2), (one(1, 1, 3), one(1, 2, 3))), said(nn.LSTM(2, 3), one(4, 2), (one(1, 1, 3),
                                                                                                         one(1, 1, 3))),
        said(nn.LSTM(2, 3), one(4, 1, 2).double()), said(nn.RNN, 2, 3, nonlinearity="bad"), said(nn.RNN, 2, 3, 1,
                                                                                                 "bad"),
        said(nn.LSTM, 2, 3, dropout=2), said(nn.LSTM, 2, 3, dropout=True), said(nn.GRU, 2, 3, proj_size=2),
        said(nn.LSTM, 2, 3, proj_size=3),
        said(nn.LSTM, 2, 3, proj_size=-1), said(nn.LSTM, 2, 0), said(nn.LSTM, 0, 3), said(nn.LSTM, 2, 3, 0),
        said(nn.LSTM, 2.0, 3),
        said(nn.LSTM, 2, 3, bias=1), said(nn.LSTM, 2, 3, batch_first=1), said(nn.RNN(2, 3), one(4)), said(nn.GRU(2, 3),
                                                                                                          one(4)),
        said(nn.LSTM(2, 3), one(4)), said(nn.GRU(2, 3), packed, one(1, 4, 3)), said(nn.GRU(5, 3), packed),
        said(nn.RNN(2, 3), one(4, 5, 2), one(1, 3)),
        said(nn.RNN(2, 3), one(4, 2), one(1, 1, 3)), said(nn.LSTMCell(2, 3), one(1, 5)),
        said(nn.LSTMCell(2, 3), one(1, 1, 2)),
        said(nn.RNNCell(2, 3), one(4, 2), one(5, 3)), said(nn.GRUCell(2, 3), one(4, 2), one(4, 2)),
        said(nn.GRUCell(2, 3), one(4, 2), one(1, 4, 3)),
        said(nn.LSTMCell(2, 3), one(4, 2), (one(4, 3), one(4, 4))), said(nn.LSTMCell(2, 3), one(4, 2), (one(1, 4, 3),
                                                                                                        one(4, 3))),
    ]


# ------------------------------------------------------------------------------------------------- weights as functions
@pytest.mark.parametrize("dim", [0, 1, None])
@same(strides=None, tol=3.0)
def test_weight_norm(torch, dim):
    nn = torch.nn
    old, new = nn.utils.weight_norm(nn.Linear(3, 2), dim=dim), nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 2, 2),
                                                                                                     dim=dim)
    x, y = torch.ones(1, 3), torch.ones(1, 3, 4)
    (old(x).pow(2).sum() + new(y).pow(2).sum()).backward()
    seen = [old.state_dict(), new.state_dict(), repr(old), repr(new), old(x), new(y), new.weight, old.weight_g.grad,
            old.weight_v.grad, new.parametrizations.weight.original0.grad, new.parametrizations.weight.original1.grad]
    nn.utils.remove_weight_norm(old)
    nn.utils.parametrize.remove_parametrizations(new, "weight")
    return [*seen, old.state_dict(), new.state_dict(), repr(new), said(nn.utils.remove_weight_norm, old)]


@same(tol=10.0)
def test_spectral_norm(torch):
    nn = torch.nn
    old = nn.utils.spectral_norm(nn.ConvTranspose1d(3, 2, 2))
    new = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))
    x, y = torch.ones(1, 3, 4), torch.ones(1, 3)
    (old(x).pow(2).sum() + new(y).pow(2).sum()).backward()
    seen = [list(old.state_dict()), dict(old.state_dict()._metadata[""]), list(new.state_dict()), repr(new),
            old.weight_orig.grad, new.parametrizations.weight.original.grad, old.eval()(x), new.eval()(y),
            torch.linalg.matrix_norm(new.weight, 2)]
    nn.utils.remove_spectral_norm(old)
    return [*seen, old.state_dict(), said(nn.utils.spectral_norm, nn.Linear(1, 1), n_power_iterations=0)]


@same
def test_spectral_norm_of_the_first_version(torch):
    """Such state dicts hold the divided weight and no second vector."""
    m = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 4))
    with torch.no_grad():
        m.weight_orig.copy_((torch.arange(12.0).view(4, 3) ** 2).sin())
        m.weight_u.copy_(torch.tensor([0.5, -0.5, 0.1, 0.7]))
        m.bias.zero_()
    m(torch.ones(1, 3))
    state, weight = m.state_dict(), m.weight.detach().clone()
    del state._metadata[""]["spectral_norm"]
    seen = [m.load_state_dict(state)]
    del state["weight_v"]
    seen += [said(m.load_state_dict, state), m.load_state_dict(state, strict=False)]
    state["weight"] = weight
    torch.nn.init.zeros_(m.weight_v)
    return [*seen, m.load_state_dict(state), m.weight_v, m.eval()(torch.ones(2, 3)), sorted(state)]


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)], ids=str)
@pytest.mark.parametrize("map_name", ["matrix_exp", "cayley", "householder", None])
@same
def test_orthogonal(torch, shape, map_name):
    m = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(*shape), orthogonal_map=map_name)
    w = m.weight
    small = w if w.size(0) <= w.size(1) else w.T
    start = bool(torch.allclose(small @ small.T, torch.eye(len(small)), atol=1e-5))
    with torch.no_grad():
        m.parametrizations.weight.original.copy_(torch.arange(1.0, w.numel() + 1).reshape(w.shape).div(10))
    m(torch.ones(1, shape[0])).pow(2).sum().backward()
    small = m.weight if w.size(0) <= w.size(1) else m.weight.T
    end = bool(torch.allclose(small @ small.T, torch.eye(len(small)), atol=1e-4))
    return start, end, list(m.state_dict()), m.parametrizations.weight.original.grad.shape, repr(m)


@same
def test_parametrizations(torch):
    nn, parametrize = torch.nn, torch.nn.utils.parametrize

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

        def right_inverse(self, x):
            return x.triu()

    class Doubled(nn.Module):
        def forward(self, x):
            return x * 2

    class Wider(nn.Module):
        def forward(self, x):
            return torch.cat([x, x])

    m = nn.Linear(2, 2)
    parametrize.register_parametrization(m, "weight", Symmetric())
    m.weight = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assigned = m.weight
    parametrize.register_parametrization(m, "weight", Doubled())
    with parametrize.cached():
        same_object = m.weight is m.weight
    m(torch.ones(1, 2)).sum().backward()
    copied = copy.deepcopy(m)
    other = nn.Linear(2, 2)
    parametrize.transfer_parametrizations_and_params(m, other)
    return [assigned, m.weight, same_object, m.weight is m.weight, type(m).__name__,
            parametrize.type_before_parametrizations(m).__name__, parametrize.is_parametrized(m),
            parametrize.is_parametrized(m, "bias"), m.parametrizations.weight.original.grad, copied.weight,
            other.weight, repr(m), said(setattr, m, "weight", torch.ones(2, 2)), said(m.__reduce_ex__, 2),
            said(parametrize.register_parametrization, nn.Linear(2, 2), "none", Doubled()),
            said(parametrize.register_parametrization, nn.Linear(2, 2), "weight", Wider()),
            said(parametrize.register_parametrization, m, "weight", Wider()), said(parametrize.remove_parametrizations,
                                                                                   nn.Linear(1, 1), "weight"),
            parametrize.remove_parametrizations(m, "weight", leave_parametrized=False).weight, type(m).__name__]


@same
def test_pruning_methods_get_the_default_mask_by_name(torch):
    prune = importlib.import_module(f"{torch.__name__}.nn.utils.prune")

    class Alternate(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, *, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask
    m = torch.nn.Linear(3, 2)
    Alternate.apply(m, "weight")
    return m.weight, m.weight_mask


@same
def test_prune(torch):
    nn, prune = torch.nn, importlib.import_module(f"{torch.__name__}.nn.utils.prune")
    m = nn.Linear(4, 3)
    prune.l1_unstructured(m, "weight", 0.25)
    first = m.weight.clone()
    prune.ln_structured(m, "weight", 1, 2, 0)
    second = m.weight.clone()
    prune.random_unstructured(m, "bias", 1)
    m(torch.ones(1, 4)).sum().backward()
    state, names, pruned = m.state_dict(), list(m._forward_pre_hooks), prune.is_pruned(m)
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=3)
    prune.custom_from_mask(a, "bias", torch.tensor([1.0, 0.0]))
    prune.remove(m, "weight")
    zeros = prune.identity(nn.Linear(2, 2), "weight")
    prune.random_structured(zeros, "weight", 1, 0)
    return [first, second, state, len(names), pruned, m.state_dict(), a.weight, b.weight, a.bias,
            prune.is_pruned(nn.ReLU()), zeros.weight,
            said(prune.remove, m, "weight"), said(prune.l1_unstructured, a, "bias", "x"), said(prune.l1_unstructured, b,
                                                                                               "bias", 9),
            said(prune.l1_unstructured, b, "bias", -1), said(prune.ln_structured, b, "bias", 1, 2, 0),
            list(b.state_dict())]


# --------------------------------------------------------------------------------------------------------- others
@same(tol=3.0)
def test_fusion(torch):
    nn = torch.nn
    seen = []
    for layer, bn, x in ((nn.Conv2d(2, 3, 2, bias=False), nn.BatchNorm2d(3), torch.ones(2, 2, 3, 3)),
                         (nn.Linear(2, 3), nn.BatchNorm1d(3), torch.ones(2, 2))):
        bn(torch.arange(12.0).reshape(4, 3, 1, 1) if isinstance(bn, nn.BatchNorm2d) else torch.arange(12.0).reshape(4,
                                                                                                                    3))
        fuse = nn.utils.fuse_conv_bn_eval if isinstance(bn, nn.BatchNorm2d) else nn.utils.fuse_linear_bn_eval
        refused = said(fuse, layer, bn)
        fused = fuse(layer.eval(), bn.eval())
        seen += [refused, fused.state_dict(), fused(x), bn(layer(x))]
    return seen


@same
def test_functional_call(torch):
    nn, call = torch.nn, torch.nn.utils.stateless.functional_call
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    m.append(nn.Linear(2, 2))
    m[2].weight = m[0].weight
    before = copy.deepcopy(m.state_dict())
    given = {"0.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]], requires_grad=True), "1.running_mean": torch.zeros(2)}
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    out = call(m, given, x)
    out.pow(2).sum().backward()
    return [out, given["0.weight"].grad, given["1.running_mean"], before, m.state_dict(), said(call, m, given, (x,),
                                                                                               strict=True),
            said(call, m, {"none.weight": x}, x), said(call, m, {"0.weight": x, "2.weight": x + 1}, x)]


@same
def test_data_parallel(torch):
    m = torch.nn.DataParallel(torch.nn.Linear(2, 2))
    return m(torch.ones(1, 2)), m.state_dict(), repr(m)


@same(tol=3.0)
def test_gradients_of_convolutions(torch):
    grad, seen = torch.nn.grad, []
    for n in (1, 2, 3):
        x, w = torch.arange(2.0 * 2 * 5**n).reshape(2, 2, *[5] * n), torch.arange(3.0 * 2 * 2**n).reshape(3, 2,
                                                                                                          *[2] * n)
        out = getattr(torch.nn.functional, f"conv{n}d")(x, w, stride=2, padding=1)
        seen += [getattr(grad, f"conv{n}d_input")(x.shape, w, torch.ones_like(out), stride=2, padding=1),
                 getattr(grad, f"conv{n}d_weight")(x, w.shape, torch.ones_like(out), stride=2, padding=1)]
    return seen


@same
def test_packing_refuses(torch):
    pack, x = torch.nn.utils.rnn.pack_padded_sequence, torch.ones(3, 2, 1)
    return [said(pack, torch.ones(0, 0), []), said(pack, torch.ones(3, 0), []), said(pack, x, torch.tensor([[1, 2]])), said(pack, torch.ones(0, 2, 3), [2, 1]),
            pack(x, torch.tensor([2.0, 1.0])).batch_sizes]


@same
def test_amounts_of_pruning(torch):
    """Pruning methods outside of PyTorch call these."""
    prune = torch.nn.utils.prune
    return [said(prune._validate_pruning_amount_init, "many"), said(prune._validate_pruning_amount_init, 1.5), said(prune._validate_pruning_amount_init, -1),
            said(prune._validate_pruning_amount, 20, 19), prune._compute_nparams_toprune(0.4, 17), prune._compute_nparams_toprune(3, 17)]


@pytest.mark.parametrize("value", [0.0, -1.5, 7, float("-inf"), float("nan")])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("kind", ["float32", "float16", "int64", "bool"])
def test_pad_many_known_sequences(subject, value, batch_first, side, kind):
    """A batch of samples is padded at once; what cannot be filled so is refused as ever."""
    made = []
    for torch in (subject, importlib.import_module("torch")):
        sequences = [torch.arange(n * 2).reshape(n, 2).to(getattr(torch, kind)) for n in (3, 0, 5, 1, 5, 2, 4, 4, 1)]
        try:
            padded = torch.nn.utils.rnn.pad_sequence(sequences, batch_first, value, side)
            made.append((padded.tolist().__repr__(), str(padded.dtype).split(".")[1], padded.stride()))
        except RuntimeError:
            made.append("refused")
    assert made[0] == made[1]


@pytest.mark.parametrize("kind", ["plain", "twice the same", "parts of one memory", "two types", "halves", "a number", "empty", "differentiable"])
@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
def test_clipping_of_many_kinds(subject, kind, norm_type):
    made = []
    for torch in (subject, importlib.import_module("torch")):
        shapes = [(3, 2), (4,), (2, 1, 3)] + [()] * (kind == "a number") + [(0, 3)] * (kind == "empty" and norm_type != float("inf"))
        parameters = [torch.nn.Parameter(torch.zeros(s, dtype=torch.float16 if kind == "halves" else torch.float32)) for s in shapes]
        memory = torch.arange(40.0).to(parameters[0].dtype)
        for p, start in zip(parameters, (0, 6, 10, 16, 17)):
            part = memory[start:start + p.numel()].view(p.shape)
            p.grad = part if kind == "parts of one memory" else part.clone()
        if kind == "twice the same":
            parameters.append(parameters[0])
        if kind == "two types":
            parameters[0] = parameters[0].double()
            parameters[0].grad = torch.ones(3, 2, dtype=torch.float64)
        aliases = [p.grad.view(-1) for p in parameters]
        total = torch.nn.utils.clip_grad_norm_(parameters, 2.0, norm_type)
        found = [total, *[p.grad for p in parameters], *aliases]
        if kind == "differentiable":
            given = [torch.ones(3, requires_grad=True), torch.ones(2)]
            found.append(torch.nn.utils.get_total_norm(given, norm_type))
            assert not found[-1].requires_grad
        made.append(found)
    for a, b in zip(*made, strict=True):
        assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
        assert a.flatten().tolist() == pytest.approx(b.flatten().tolist(), rel=1e-3 if kind == "halves" else 1e-6)
