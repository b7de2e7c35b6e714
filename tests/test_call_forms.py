"""Calls whose arguments fit no form of a function: PyTorch's words, to the letter, with all forms where it has several."""
import re
from pathlib import Path

import pytest

import torchlike

CALLS = """x.tril(f); torch.tril(x, f); x.tril("a"); x.size(f); x.size("a"); x.flatten("a"); x.transpose(0, "a"); x.view(1.5); x.view(2, 1.5); x.view("a"); x.view((2, 1.5))
x.reshape(2, 1.5); x.reshape(2.0, 3); x.reshape((2.0, 3)); torch.reshape(x, (2.0, 3)); x.expand(2.0, 3); x.expand(2, 3.0); x.repeat(2.0, 1); x.repeat(2, 1.0); x.permute(0, 1.0)
x.permute(0.0, 1); torch.zeros(2.0, 3); torch.zeros(2, 3.0); torch.ones((2, 3.0)); torch.randn(1.5, 3); torch.randn(3, 2.5); x.new_zeros(2.0, 1); x.new_zeros((2.0, 1))
torch.full((2.0,), 1); torch.empty(2.0); x.unflatten(1, (3.0, 1)); x.chunk(2.0); x.tile(2.0); x.tile((1, 2.0)); x.roll(1.0); x.squeeze(1.0); x.unsqueeze(1.0); x.sum(1.0)
x.mean("a"); x.topk(2.0); x.narrow(0, 0, 1.0); torch.arange(3, "a"); torch.cat([x, x], 1.0); torch.eye(2.0); torch.randint(0, 2.5, (2,)); torch.randint(0, 2, 2.0)
torch.randperm(3.0); torch.linspace(0, 1, 3.0); x.resize_(2.0, 3); x.as_strided((2.0,), (1,)); x.index_select(1.0, i); x.gather(0.0, i[None]); x.repeat_interleave(2.0)
torch.zeros(2, foo=1); x.sum(0, True, 5); x.sum(axes=1); x.max(0, 1, 2); x.max(dim="a"); torch.max(x, 1.0); torch.where(x, x); torch.where(x > 0, x); torch.where(x > 0, "a", x)
torch.matmul(x); torch.matmul(x, 3); torch.mm(x, [1]); torch.add(x); torch.add(x, "a"); torch.clamp(x, "a"); torch.pow(x, "a"); torch.sub("a", x); torch.exp(3); torch.exp()
torch.exp(x, x); torch.softmax(x); torch.softmax(x, "a"); torch.cat(x); torch.std(x, "a"); torch.argmax(x, 1.0); torch.sort(x, 1.0); x.sort("a")
torch.normal("a"); torch.bernoulli("a"); torch.multinomial(x); torch.gather(x, 0); x.scatter_(0, i[None]); x.scatter_(0, i[None], "a"); x.index_fill_(0, i, "a")
x.masked_fill_(x > 0, "a"); x.index_add(0, i); x.copy_("a"); x.fill_("a"); x.add_("a"); x.mul("a"); x.div(x, rounding_mode=5); x.clamp_("a"); torch.dot(x); torch.bmm(x)
torch.baddbmm(x, x); torch.addmm(x, x); torch.linalg.norm("a"); torch.linalg.solve(x); torch.fft.fft("a"); torch.fft.fft(x, "a"); torch.cumsum(x); torch.cumsum(x, "a")
torch.flip(x); torch.flip(x, "a"); torch.roll(x); torch.quantile(x, "a"); torch.searchsorted(x); torch.bucketize(x); torch.lerp(x, x); torch.diag("a"); torch.outer(x)
torch.isclose(x); torch.allclose(x, "a"); torch.equal(x, 3); torch.eq(x, "a"); torch.logical_and(x, 3); torch.maximum(x, 3); torch.squeeze(x, "a"); torch.transpose(x, 0)
torch.permute(x, 0); torch.unsqueeze(x); F.linear(x); F.linear(x, "a"); F.conv2d(x); F.conv2d(x[None, None], x[None, None], stride=1.5); F.gelu("a"); torch.rand(2, generator=5)
x.chunk(one); x.diagonal(one); x.unfold(1, one, 1); x.transpose(0, one); x.rot90(one); torch.histc(x, one); x.softmax(one); x.unsqueeze(one); x.cumsum(one)
x.flatten(one); x.size(one); F.one_hot(i, one); x.kthvalue("a"); torch.topk(x, "a"); torch.split(x); torch.stack([x], 1.5); torch.meshgrid(5); torch.trace()
torch.linspace(0, 1); torch.Tensor([1], [2]); torch.Tensor(2, dtype=torch.int); torch.Tensor(x, x); torch.Tensor(foo=1); x.new([1], [2]); x.to([1]); x.to(x, x)
x.to(torch.nn.Linear(1, 1)); x.to(dtype="float"); x.to(torch.float, torch.float); torch.nn.Linear(1, 1).to(dtype="f"); torch.nn.Linear(1, 1).to(x, x); x.std(1, 2, 3)
torch.where(x, 1, "a"); torch.std(x, 1, "a"); x.repeat_interleave(1, 2, 3, 4); torch.clamp(x, "a", 1); x.to(torch.float, 1, 2); F.softmax(x, 1, dtype="float")
F.log_softmax(x, 1, dtype="float"); F.softmin(x, 1, dtype=1); F.ctc_loss(x, i, 2, 3); F.ctc_loss(x, i, [2], [3.5]); F.ctc_loss(x, i, [2], i)
torch.arange(one); torch.arange(0, one); torch.linspace(0, 1, one); torch.logspace(0, 1, steps=one); torch.stack([x], one)
F.pixel_shuffle(x, one); F.pixel_shuffle(x, 2.0); F.pixel_unshuffle(x[None], True); F.channel_shuffle(x[None], True); F.softmax(x, 1.0); F.log_softmax(x, "a"); F.softmin(x, 1.0)
F.softmax(x, 1, dtype="a"); x.split("a"); x.split(1.5); x.split([1, "a"]); x.split(one.expand(2)); x.split([1.0, 1]); torch.split(x, None); x.split(); x.split(1, 1, 1)
x.random_("a"); x.random_(1.5); x.random_(0, 3.0); x.random_(low=3); x.random_(generator=3); x.round(decimals=1.5); x.round(decimals="a"); x.round(decimals=None)
torch.as_tensor(x, "a"); torch.as_tensor([1], torch.float64); torch.as_tensor(x, dtype="a"); torch.as_tensor([1], copy=True); torch.as_tensor([1], requires_grad=True)
torch.Tensor(x, 3); torch.Tensor([1, 2], 3); torch.Tensor(x, x); torch.FloatTensor(x, 3); torch.Tensor(None, 3); torch.Tensor(foo=3)
F.pad(x, [1.5, 1]); F.pad(x, [1, "a"]); F.pad(x, (1, 1), value="a"); F.pad(x, (1, 1), mode=3); F.pad(x, (1, 1), value=one.expand(2)); F.pad(x, (True, 1)); F.pad(x, 1)
F.max_pool2d(x[None], 2.0); F.max_pool2d(x[None], [2.0, 2]); F.max_pool2d(x[None], [2, "a"]); F.max_pool2d(x[None], 2, None, "a"); F.max_pool1d(x, "a", return_indices=True)
F.max_pool2d(x[None], None, return_indices=True); F.avg_pool1d(x, [2.0]); F.lp_pool1d(x, 2, 2.0); F.adaptive_avg_pool2d(x[None], 2.0); F.adaptive_max_pool1d(x, [2.0])
F.adaptive_avg_pool1d(x, "a"); F.adaptive_avg_pool2d(x[None], (2.0, 2)); F.interpolate(x[None], size=2.5); F.interpolate(x[None], size="a", mode="linear")
F.interpolate(x[None], scale_factor="a"); F.interpolate(x[None, None], size=True); F.interpolate(x[None, None], scale_factor=["a", 2], mode="bicubic", antialias=True)
F.interpolate(x[None, None], size=[2, 2.5]); F.interpolate(x[None, None], size=2.5, mode="area"); F.interpolate(x[None, None], size=one.expand(2)); torch.autocast("cpu")(3)
x.diagonal("a"); x.unfold(1); x.unfold(); x.transpose(); x.transpose(1, dim=1); x.permute(); x.expand(); x.expand(foo=1); x.repeat(); x.flip(True); x.tile(True); x.resize_(True)
x.view(foo=1); x.view(dtype=3); x.view(True, -1); x.reshape((True, 6)); torch.reshape(x, (True, 6)); x.reshape(foo=1); x.permute(x, x); x.swapaxes_(x, x); x.unsqueeze_(x)
x.new_zeros(True); x.new_zeros(2, dim=1); x.new_ones((2,), foo=1); x.new_empty(2, size=3); torch.zeros(True); torch.empty(True, 2); torch.full((True,), 1); torch.rand(True)
x.stride(foo=1); x.stride(True); x.stride(1, 2); x.size(foo=1); x.size(0, 1); x.float(1); x.long(None); x.cpu(torch.preserve_format); x.contiguous(torch.channels_last)
x.is_contiguous(3); x.type(foo=1); x.type(torch.float, 1); x.copy_(x, 1); x.copy_(2.0, 1); x.copy_(src=x); x.mul(); x.mul(1, 2); x.mul_(1, 2); x.eq(); x.lt(1, 2); x.maximum(x, x)
x.select(None); x.gather(None); x.sort(None); torch.argsort(x, None); x.median(None); x.cumsum(None); x.squeeze(2.0, 6); x.squeeze(dim="a"); torch.sum(x, dim="a", keepdim=True)
torch.addmm(x, x, beta="a", mat2=x); torch.addmm(input=x, foo=1); torch.addbmm(input=x, foo=1); x.add(x, beta=2, foo=1); x.add_(0, 0, 0); x.svd("a"); x.qr("a"); x.sum((True,))
x.unflatten(0); x.unflatten(0, "a"); x.backward(foo=1); x.backward(1, 2, 3, 4, 5); x.register_hook(); x.unique(foo=1); x.dim_order(1, 2); x.polygamma("a"); x.sparse_mask(1)
torch.sqrt_(); torch.sqrt_(x, 1); torch.sqrt_(foo=1); torch.clamp_(x, "a"); torch.gcd_(x, "a"); torch.addmv_(x); torch.addmv_(x, x); torch.logit_(x, 1, 2)
F.dropout(x, 0.5, 1); F.dropout(x, 0.5, None); F.dropout2d(x[None], 0.5, "a"); F.alpha_dropout(x, 0.5, 0); torch.dropout(x, 0.5, "a"); torch.native_dropout(x, 0.5, "a")
x.diff(2.5); x.fill_diagonal_(1, 1); torch.frobenius_norm(x); x.sum(axis=0, out=None, dim=0)
torch.zeros(2, 3, dtype="float32"); torch.zeros(2, 3, layout=1); torch.zeros(2, 3, device=1.5); x.new_zeros(2, 3, dtype=str); torch.empty(2, 3, memory_format=1)
torch.zeros(size=2); torch.rand(size=2); torch.ones(2, 3, out=1); torch.empty(2, out=[]); torch.exp(x, out=1); torch.zeros(2, 3, size=(2,)); torch.zeros("a", 3, dtype="a")"""
BY_NAME = """torch.abs_(input=x); torch.relu_(input=x); torch.clamp_(input=x, min=2)
x.copy_(other=torch.zeros(3)); x.squeeze(0, 1); x.view(2, True, 3); x.contiguous(memory_format=torch.contiguous_format)"""
TAKEN = "x.sum(one); x.squeeze(one); x.topk(one).values; x.kthvalue(one).values; x.tril(one); x.roll(one); x.narrow(0, 0, one); x.select(1, one); x.view(one, 6)"


def said(torch, call):
    names = {"torch": torch, "F": torch.nn.functional, "x": torch.ones(2, 3), "i": torch.tensor([0]), "f": torch.tensor(2.0), "one": torch.tensor([1])}
    torch.manual_seed(0)
    try:
        return eval(call, names).shape
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("call", [c.strip() for c in CALLS.replace("\n", ";").split(";")])
def test_words(subject, oracle, call):
    want = said(oracle, call)
    assert want[0] == "TypeError"
    assert said(subject, call) == want


@pytest.mark.parametrize("call", TAKEN.split("; "))
def test_tensors_of_one_integer_are_sizes(subject, oracle, call):
    want = said(oracle, call)
    assert want[0] != "TypeError"
    assert said(subject, call) == want


FORMS: dict = {}
for line in (Path(torchlike.__file__).parent / "_call_forms.txt").read_text().splitlines():
    FORMS.setdefault(line.partition("(")[0], []).append(line.partition("(")[2][:-1])


@pytest.mark.parametrize("call", [c.strip() for c in BY_NAME.replace("\n", ";").split(";")])
def test_taken(subject, oracle, call):
    assert said(subject, call) == said(oracle, call)
    assert not isinstance(said(oracle, call)[0], str)


@pytest.mark.parametrize("name", sorted(FORMS))
def test_written_forms_are_pytorchs(oracle, name):
    spaces = [oracle, oracle._C._VariableFunctions, oracle._C._nn, oracle._C._linalg, oracle._C._fft, oracle._C._special]
    last = name.rpartition(".")[2]
    functions = [getattr(oracle.ones(1), last)] if "." in name else [getattr(space, last) for space in spaces if hasattr(space, last)]
    found = set()
    for count in range(21):
        for function in functions:
            try:
                function(*[object()] * count)
            except Exception as error:
                words = str(error)
                if "expected one of" in words:
                    found.add(tuple(re.findall(r"^ \* \((.*)\)$", words, re.MULTILINE)))
                elif "invalid combination" in words:
                    found.add((words.split("but expected (", 1)[1].rstrip()[:-1],))
    assert tuple(FORMS[name]) in found
