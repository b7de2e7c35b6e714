"""What enumerations of objects' lives found: all that can be saved, every schedule and utility of training, nested and masked tensors."""
import io

import pytest
import torch as oracle_of_names
from test_expressions import lines, outcome

SHORT = {
    "ONE": 'o = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0); o.param_groups[0]["initial_lr"] = 1.0; L = torch.optim.lr_scheduler',
    "FLOAT8": "('float8_e4m3fn', 'float8_e5m2', 'float8_e4m3fnuz', 'float8_e5m2fnuz')",
    "NT(": "torch.nested.nested_tensor(", "TWO": "[torch.ones(2), torch.ones(3)], JAGGED", "JAGGED": "layout=torch.jagged",
}

TRAINING = """
ONE; s = L.CosineAnnealingWarmRestarts(o, 2, last_epoch=4); [(o.step(), s.step(), s.get_last_lr())[2] for _ in range(5)]
ONE; s = L.CosineAnnealingWarmRestarts(o, 1, 2, last_epoch=6); [(o.step(), s.step(), s.get_last_lr(), s.T_i)[2:] for _ in range(5)]
ONE; s = L.SequentialLR(o, [L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.5)], [0]); s.get_last_lr(), [(o.step(), s.step(), s.get_last_lr())[2] for _ in range(3)]
import torch.optim.swa_utils as S; S.AveragedModel(nn.BatchNorm1d(2)).update_parameters(nn.Linear(2, 2))
import torch.optim.swa_utils as S; S.AveragedModel(nn.Linear(2, 2)).update_parameters(nn.Linear(2, 2, bias=False))
torch.amp.GradScaler("cpu").step(torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0))
nn.init.kaiming_normal_(torch.zeros(3), nonlinearity="x")
[p.requires_grad for p in nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 2, 2, bias=False).eval(), nn.BatchNorm2d(2).eval()).parameters()]
[p.requires_grad for p in nn.utils.fuse_linear_bn_eval(nn.Linear(1, 2).eval(), nn.BatchNorm1d(2).eval()).parameters()]
torch.norm(torch.ones(2, 3, 4), p="fro", dim=[0, 1, 2])
torch.norm(torch.ones(2, 3, 4), p=None, dim=[0, 1, 2]), torch.ones(2, 3, 4).norm(dim=(0, 2))
torch.masked.normalize(torch.arange(6.0).view(2, 3), 2, (0, 1), mask=torch.tensor([True, False, True]))
"""

NESTED = """
x = NT([torch.ones(2, 3), torch.zeros(1, 3)], JAGGED); [p.tolist() for y in (x.data, x.mT, x.mH, x.real) for p in y.unbind()], x.nbytes
x = NT([torch.ones(2, 3), torch.zeros(1, 3)], JAGGED); x.T
x = NT([torch.ones(2, 3), torch.zeros(1, 3)]); x.is_floating_point(), x.is_complex(), x.element_size(), x.storage_offset(), [p.tolist() for p in x.data.unbind()]
x = NT(TWO); x.values().mul_(3); [p.tolist() for p in x.unbind()]
x = NT([torch.ones(2), torch.ones(2, 1)[0]]); x.values()[1:].zero_(); x[0][0] = 7; x.values(), [p.tolist() for p in x.unbind()]
v = torch.ones(5, 2); x = torch.nested.nested_tensor_from_jagged(v, torch.tensor([0, 2, 5])); x.values()[0] = 9; x[1][0] = 8; v, x.values()
v = torch.ones(5, 2); x = torch.nested.nested_tensor_from_jagged(v, torch.tensor([0, 2, 4])); x.values().shape[1]
x = NT(TWO, requires_grad=True); (x.values() * torch.arange(5.0)).sum().backward(); [p.tolist() for p in x.grad.unbind()]
x = NT(TWO, requires_grad=True); g, = torch.autograd.grad((x * 2).to_padded_tensor(0.0).sum(), x); [p.tolist() for p in g.unbind()]
x = NT(TWO, requires_grad=True); y = x * 2; g, = torch.autograd.grad(y, x, y.detach()); [p.tolist() for p in g.unbind()]
x = NT(TWO); w = torch.ones(2, requires_grad=True); torch.autograd.grad((w * 2).sum(), [w, x.requires_grad_()])
x = NT([torch.ones(2, 1), torch.ones(3, 1), torch.ones(1, 1)], JAGGED); [[p.tolist() for p in y.unbind()] for y in x.chunk(2)], [p.shape for p in x.movedim(1, 2).unbind()]
x = NT([torch.tensor([1, 2]), torch.tensor([0])], JAGGED); F.one_hot(x).values(), F.one_hot(x, 4).values(), nn.EmbeddingBag.from_pretrained(torch.arange(6.0).view(3, 2))(x)
[p.tolist() for p in NT(torch.ones(2, 3), JAGGED).unbind()]
NT([torch.ones(1, 2), torch.ones(2, 2)]).to_padded_tensor(0.0, (3, 2, 3))
NT([torch.ones(1, 2), torch.ones(2, 2)], JAGGED).to_padded_tensor(0.0, (3, 4, 3))
"""

DISTRIBUTIONS = """
x = torch.tensor([-float("inf"), -0.0, -2.0, 4.0]); [x.pow(e).tolist() for e in (torch.tensor(0.5), torch.tensor([0.5]), torch.tensor(0.5).expand(4), torch.tensor([[0.5], [2.0]]))]
x = torch.tensor([-float("inf"), -0.0, -2.0, 4.0]).repeat(500); [x.pow(e)[:4].tolist() for e in (torch.tensor(0.5), torch.tensor(0.5).expand(2000))], x[0] ** torch.tensor(0.5)
torch.distributions.transforms.PowerTransform(2.0).inv(torch.tensor([-float("inf"), -0.0, 4.0]))
T = torch.distributions.transforms; T.IndependentTransform(T.ExpTransform(), 1)(torch.tensor(0.3))
T = torch.distributions.transforms; T.IndependentTransform(T.ExpTransform(), 1).inv(torch.tensor(0.3))
T = torch.distributions.transforms; T.SoftmaxTransform().forward_shape((2, 3)), T.SoftmaxTransform().inverse_shape(())
"""

EDGES = """
[torch.tensor([1e10, -480.0, 464.0, float("inf"), float("nan"), 3.0], dtype=getattr(torch, d)).float() for d in FLOAT8]
[torch.tensor([1e10, -480.0, 464.0, float("inf"), float("nan"), 3.0]).to(getattr(torch, d)).float() for d in FLOAT8]
[torch.tensor(x, dtype=getattr(torch, d)).float() for d in FLOAT8 for x in (465, -1e39, 2.5)]
torch.zeros(2).to(torch.float8_e4m3fn).fill_(1e10)
torch.full((2,), float("inf"), dtype=torch.float8_e5m2fnuz)
torch.full((2,), 250.0, dtype=torch.float8_e4m3fnuz)
[torch.full((2,), x, dtype=torch.float8_e5m2).float() for x in (float("inf"), 57344.0, float("nan"))], torch.full((2,), 448, dtype=torch.float8_e4m3fn).float()
torch.tensor([0.0, -3.0, 1e-30], dtype=torch.float8_e8m0fnu).float(), torch.tensor(-3.0, dtype=torch.float8_e8m0fnu).item()
x = torch.tensor([[2.0], [3.0]], requires_grad=True); g, = torch.autograd.grad(x.prod(1).sum(), x, create_graph=True); g.requires_grad, torch.autograd.grad(g.sum(), x)
x = torch.tensor([2.0], requires_grad=True); g, = torch.autograd.grad(x.prod(), x, create_graph=True); g.requires_grad, torch.autograd.grad(g.sum(), x)
x = torch.arange(20.0).view(4, 5).requires_grad_(); y = F.adaptive_avg_pool2d(x, 1); y.sum().backward(); y, x.grad
F.adaptive_avg_pool2d(torch.arange(120.0).view(1, 1, 2, 3, 4, 5), (1, 1)), F.adaptive_avg_pool3d(torch.arange(40.0).view(2, 4, 5), 1)
F.adaptive_avg_pool2d(torch.zeros(2, 0, 4), 1), F.adaptive_avg_pool2d(torch.zeros(2, 3, 4), 1).shape
F.adaptive_avg_pool2d(torch.zeros(4), 1)
F.adaptive_avg_pool2d(torch.zeros(4, 5), (1, 1))
m = nn.BatchNorm1d((2,)); m, m(torch.zeros(3, 2)), nn.BatchNorm2d([2], affine=False)(torch.ones(1, 2, 1, 1)), nn.BatchNorm1d((2, 3)).weight.shape
exec("with torch.inference_mode(): x = torch.ones(2)"); x.data.mul_(3); x, x.data._version, x.data.is_inference(), x.data.mul_(2)._version
exec("with torch.inference_mode(): x = torch.ones(2)"); x.mul_(3)
"""

MASKED = """
x = torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])); x.is_nested, x.data.to_tensor(3.0), x.real.get_mask(), x.element_size(), x.storage_offset()
x = torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])); x.isfinite().to_tensor(False), torch.isclose(x, x).to_tensor(False)
"""


@pytest.mark.parametrize("program", lines(TRAINING, NESTED, DISTRIBUTIONS, EDGES, MASKED))
def test_same_outcome(oracle, subject, program):
    for short, long in SHORT.items():
        program = program.replace(short, long)
    mine = outcome(subject, program.replace("import torch.", f"import {subject.__name__}."))[0]
    assert mine == outcome(oracle, program)[0]


def saved(torch):
    """Objects, and what a library that has loaded one is asked."""
    nn, z = torch.nn, torch.tensor([1 + 2j, 3 - 1j])
    lazy, learned = nn.LazyLinear(2), type("Learned", (nn.Parameter,), {})
    return {
        "imaginary part of a conjugate": (z.conj().imag, lambda t, x: (x.tolist(), x.is_neg())),
        "negated": (torch._neg_view(torch.ones(2)), lambda t, x: (x.tolist(), x.is_neg())),
        "a tensor and its conjugate": ([z, z.conj()], lambda t, x: (x[1].is_conj(), x[0].fill_(2j), x[1].tolist())[::2]),
        "rnn": (nn.LSTM(1, 1), lambda t, x: x(t.ones(2, 1, 1))[0].shape),
        "two layers": (nn.GRU(1, 2, 2, bidirectional=True), lambda t, x: x(t.ones(2, 1, 1))[0].shape),
        "old spectral norm": (nn.utils.spectral_norm(nn.Linear(1, 1, bias=False)), lambda t, x: x(t.ones(1)).abs().tolist()),
        "lazy": (lazy, lambda t, x: (x(t.ones(1, 3)).shape, repr(x))),
        "generator": (torch.Generator().manual_seed(5), lambda t, x: (t.rand(3, generator=x).tolist(), x.initial_seed(), x.device.type)),
        "heir of Parameter": (learned(torch.ones(2)), lambda t, x: (type(x) is t.nn.Parameter, x.requires_grad, x.tolist())),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, zipped", [(n, zipped) for n in saved(oracle_of_names) for zipped in (True, False) if zipped or n != "generator"])
def test_saved_by_one_loaded_by_the_other(oracle, subject, name, zipped):
    """A generator is loaded by PyTorch from zipped files only."""
    found = []
    for writer in (oracle, subject):
        made, ask = saved(writer)[name]
        file = io.BytesIO()
        writer.save(made, file, _use_new_zipfile_serialization=zipped)
        for reader in (oracle, subject):
            file.seek(0)
            found.append(ask(reader, reader.load(file, weights_only=False)))
    assert found == [found[0]] * 4


def test_bound_methods_in_files(subject):
    """A lazy module's hooks are methods of its own; no other method is."""
    lazy = subject.nn.LazyLinear(2)
    lazy.register_forward_pre_hook(lazy.share_memory)
    file = io.BytesIO()
    subject.save(lazy, file)
    file.seek(0)
    with pytest.raises(Exception, match="getattr is not allowed for 'share_memory' of LazyLinear"):
        subject.load(file, weights_only=False)
