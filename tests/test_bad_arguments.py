"""Arguments that torch takes or refuses: the same calls go through, and the others raise the same class."""
import warnings

import numpy as np
import pytest
from nn_models import said
from same import same

SIZES = """torch.range(3); torch.range(1, 4); torch.range(start=1, end=3); torch.range(1, 3, 0); torch.reshape(x, 3); torch.reshape(x, 6)
torch.reshape(x, (6,)); torch.reshape(x, -1)
torch.reshape(x, 2, 3); torch.reshape(x); torch.reshape(input=x, shape=[6]); x.reshape(6); x.reshape(2, 'a'); x.reshape(shape=(6,))
torch.permute(x, 0, 1); torch.permute(x, (1, 0))
torch.permute(input=x, dims=(1, 0)); x.permute(1, 0); x.permute(dims=(1, 0)); torch.arange(start=3); torch.arange(end=3); torch.arange()
torch.arange(3, step=2); torch.arange(1, 5, 2)
torch.arange(1, end=5); torch.arange(1, 5, step=2); torch.arange(start=1, end=5, step=3); torch.arange(3, start=1); torch.arange(1, 2, 3, 4)
torch.arange(1.5, dtype=torch.int64)
torch.arange(0.5, 2.5, dtype=torch.int64); torch.arange(1.5, dtype=torch.int32); torch.zeros(2, size=(2,)); torch.zeros(size=(2,))
torch.randint(2, 5, 2); torch.randint(0, 5, size=2)
torch.randint(5, (2,)); torch.randint(2, 5, (2,)); torch.randint(high=5, size=(2,)); torch.randint(low=1, high=5, size=(2,)); torch.randint_like(x, 5)
torch.randint_like(x)
torch.randint_like(x, 2, 5); torch.randint_like(x, low=2); torch.randint_like(x, high=5); torch.randint_like(x, low=2, high=5); torch.randint_like(x, 0)
torch.randint_like(x, 'a')
torch.renorm(x, 2, 0, 1.0); torch.renorm(x, 2, 0); torch.renorm(x, 2, 5, 1.0); torch.renorm(x, -1, 0, 1.0); torch.renorm(i, 2, 0, 1.0)
torch.renorm(3, 2, 0, 1.0)
torch.tensordot(x, x, 5); x[slice('a')]; torch.device('cpu', -2); torch.device('cpu', 0)"""
SIZE = """torch.Size([1.5]); torch.Size(['a']); torch.Size([True, 2]); torch.Size((torch.tensor(2), 3)); torch.Size(x); torch.Size(i); torch.Size([None])
torch.Size([np.float32(1)]); torch.Size([1], [2]); torch.Size([1]) + (1.5,); (1.5,) + torch.Size([1]); torch.Size([1]) + [1]; torch.Size([1]) * 1.5
torch.Size([1, 2]) + np.array([3, 4]); torch.Size([1, 2]) * np.array([3, 4]); torch.Size([1, 2]) * np.int64(2); torch.Size([1]) + np.float64(2); torch.Size([1]) * "a"
torch.Size([1, 2]) + np.array([1, 2, 3]); torch.Size([1]) + None
type('S', (torch.Size,), {}); torch.Size(iter([1, 2])); torch.Size([-1]); list(torch.Size([True]))"""
DRAWS = """x.random_(0); x.random_(3, 3); x.random_(1.5); x.random_(True); x.random_(2, None); x.random_(None); x.random_(None, None); x.random_(0, 5, 6)
x.random_(**{'from': 3}); x.random_(**{'from': 3}, to=5); x.random_(3, to=5); x.random_(to=3); x.random_(5, **{'from': 3}); x.random_(foo=1); b.random_(0)
x.uniform_(foo=1); x.uniform_(**{'from': 1.0}, to=2.0)
torch.range(0.); torch.range(end=3); torch.range(start=3); torch.range(); torch.range(0, step=1); torch.range(0, end=3); torch.range(0, 3, 1, 1)
torch.range(None, 3); torch.range(0, 3, 'a'); torch.range(0, 3, step=None); torch.range(0, 3, start=1); torch.range(torch.tensor(0), torch.tensor(2))"""
NUMBERS = """torch.add(2, 3); torch.add(2, 3.5); torch.add(True, 2); torch.sub(2, 3); torch.mul(2, 3j); torch.div(2, 3); torch.true_divide(1, 2)
torch.floor_divide(7, 2); torch.add(2, 'a')
torch.eq(2, 3); torch.maximum(2, 3); torch.pow(2, 3); torch.remainder(3, 2); torch.add(2, x); torch.mul(2, x); torch.add(x, None); +b; abs(b); b.abs()
torch.abs(b); -b; +x
torch.einsum('i,i', b[:1], b[:1]); torch.einsum('i,i', b, b); torch.einsum('i,i->i', b, b); torch.einsum('ij,jk', x[:1, :1], x[:1])
x.detach().requires_grad_('a'); x.var(unbiased='a'); torch.tensor([x]); torch.tensor([x[0, 0], 1]); torch.tensor([torch.ones(2), torch.ones(2)])
F.embedding(i, 3); torch.compile(3)
F.conv2d(None, x); F.conv1d([1.], x); F.conv2d(x, None); F.conv_transpose2d(None, x); F.embedding(None, x); F.layer_norm(None, (2,)); F.batch_norm(None, None, None)
torch.tensor(np.ones(2, dtype='>f4')); torch.tensor([np.ones(2), np.ones(2)])
torch.unique(x, 0); x.unique(1); x.unique(True); torch.unique(x, return_counts=1); x.unique_consecutive(0); torch.unique_consecutive(x, dim=0); torch.broadcast_tensors()
torch.linalg.householder_product(x.T, x); torch.orgqr(x.T, x[0, :2]); torch.linalg.householder_product(torch.ones(2, 3, 2), x[:, :2].T[:1]); x.max(x, x)
x.float().pinverse('a'); x.pinverse(x); x.addcmul(2, 3)
torch.sparse_coo_tensor([[0, 1]], 2.5); torch.sparse_coo_tensor([[1]], 2.5).to_dense(); torch.addcmul(x, x, 3); x.addcmul_(x, 3)"""
BIG = ["i + n", "i - n", "n - i", "i * n", "i < n", "i == n", "x + n", "x < n", "x.double() * n", "i.int() + n", "i // n", "i % n", "i / n", "x / n", "n ** i",
       "x ** n", "i & n", "i | n", "i << n",
       "torch.clamp(x, max=n)", "x.fill_(n)", "i.add_(n)", "torch.full((2,), n)", "torch.tensor(5) * n", "x.masked_fill(x > 0, n)", "torch.eq(i, n)"]


def outcome(torch, call, **more):
    import numpy as np
    torch.manual_seed(0)
    names = {"torch": torch, "np": np, "F": torch.nn.functional, "x": torch.arange(6.0).view(2, 3), "i": torch.arange(3), "b": torch.tensor([True, False]), **more}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = eval(call, names)
        except Exception as error:
            return type(error).__name__
    return (found.tolist(), str(found.dtype)) if isinstance(found, torch.Tensor) else str(found)


@pytest.mark.parametrize("call", [c.strip() for lines in (SIZES, SIZE, DRAWS, NUMBERS) for c in lines.replace("\n", ";").split(";")])
def test_taken_or_refused(subject, oracle, call):
    assert outcome(subject, call) == outcome(oracle, call)


@pytest.mark.parametrize("call", BIG)
def test_integers_without_a_sign(subject, oracle, call):
    """Numbers of 64 bits: those above 2^63 wrap among integers, and are floats among floats; larger ones are refused."""
    for n in (2**63 - 1, 2**63, 2**63 + 5, 2**64 - 1, 2**64, -2**63, -2**63 - 1):
        assert outcome(subject, call, n=n) == outcome(oracle, call, n=n), n


def test_gradients_beside_them(subject):
    x = subject.ones(2, requires_grad=True)
    (x * 2**63).sum().backward()
    assert x.grad.tolist() == [2.0**63, 2.0**63]


WORDS = {
    "fftn of a number": lambda torch: torch.fft.fftn(torch.tensor(1.0), dim=(0,)),
    "fft2 of a number": lambda torch: torch.fft.fft2(torch.tensor(1.0)),
    "an inferred size beside zero": lambda torch: torch.ones(1).reshape(0, -1),
    "an inferred size of nothing": lambda torch: torch.ones(0).reshape(0, -1),
    "movedim from one place twice": lambda torch: torch.movedim(torch.ones(2, 3, 4), (1, -2), (0, 1)),
    "movedim to one place twice": lambda torch: torch.movedim(torch.ones(2, 3, 4), (1, -1), (0, -3)),
    "movedim to fewer places": lambda torch: torch.movedim(torch.ones(2, 3, 4), (1, -1), (0,)),
    "cov with integer weights": lambda torch: torch.cov(torch.ones(2, 5), aweights=torch.tensor([1, 2])),
    "mean as integers": lambda torch: torch.mean(torch.ones(2), dtype=torch.long),
    "mean of integers": lambda torch: torch.mean(torch.ones(2, dtype=torch.long)),
    "index_add of another shape": lambda torch: torch.index_add(torch.ones(3, 2), 0, torch.tensor([0, 1]), torch.ones(2)),
    "multinomial into floats": lambda torch: torch.multinomial(torch.ones(3), 2, out=torch.ones(2)),
    "histogramdd with few bins": lambda torch: torch.histogramdd(torch.ones(2, 6), [2] * 5),
    "histogramdd with no bin": lambda torch: torch.histogramdd(torch.ones(2, 2), [2, 0]),
    "histogramdd with other weights": lambda torch: torch.histogramdd(torch.ones(2, 2), [2, 2], weight=torch.ones(3)),
    "histogramdd of a vector": lambda torch: torch.histogramdd(torch.ones(2), [2, 2]),
    "expand where two dimensions do not fit": lambda torch: torch.ones(3, 4).expand(2, 5),
    "expand of two dimensions": lambda torch: torch.ones(2, 3).expand(3, 3, 4),
    "masked_fill by numbers": lambda torch: torch.ones(2).masked_fill(torch.ones(2), 0),
    "masked_fill_ by integers": lambda torch: torch.ones(2).masked_fill_(torch.ones(2, dtype=torch.long), 0),
    "masked_fill by bytes": lambda torch: torch.ones(2).masked_fill(torch.ones(2, dtype=torch.uint8), 0),
    "zeros with an unknown argument": lambda torch: torch.zeros(2, foo=1),
    "ones with an unknown argument": lambda torch: torch.ones(2, dtyp=torch.long),
    "histogram of a reversed range": lambda torch: torch.histogram(torch.ones(2), 2, range=(2.0, 1.0)),
}


@pytest.mark.parametrize("name", WORDS)
def test_torch_words(subject, oracle, name):
    errors = []
    for torch in (subject, oracle):
        with pytest.raises(Exception) as error:
            WORDS[name](torch)
        errors.append((error.type, str(error.value)))
    assert errors[0] == errors[1]


OF_LEAVES = {
    "leaky_relu": lambda t, n: t.nn.functional.leaky_relu(t.ones(2), n),
    "dropout": lambda t, n: t.nn.functional.dropout(t.ones(2), n),
    "isclose rtol": lambda t, n: t.isclose(t.ones(2), t.ones(2), n),
    "isclose atol": lambda t, n: t.isclose(t.ones(2), t.ones(2), 0.5, n),
}


@pytest.mark.parametrize("name", OF_LEAVES)
def test_a_number_may_not_be_a_tensor_that_requires_a_gradient(oracle, subject, name):
    def said(t, needs):
        try:
            OF_LEAVES[name](t, t.tensor(0.5, requires_grad=needs))
        except TypeError as error:
            return str(error)
    assert said(oracle, True) == said(subject, True) is not None
    assert said(oracle, False) is said(subject, False) is None


WRONG = """torch.arctan(); torch.arctan(t, t); torch.arctan(t, foo=1); torch.outer(t); torch.gather(t, 0); torch.cumsum(t); torch.cumsum('a'); torch.bmm(t); torch.softmax(t)
torch.clamp(t, foo=1); torch.cat(); torch.cat(t); torch.concat(); torch.stack(t, 0, 0, 0); torch.linalg.inv(); torch.linalg.solve(t); torch.fft.fft(t, 1, 2, 3, 4)
torch.special.expit(t, 1); torch.where(t); torch.masked_select(t); torch.conv1d(t); torch.index_select(t, 0); torch.less(t); torch.topk(t)
torch.norm(); torch.diff('x'); torch.roll(t); torch.linspace(0); torch.full((2,)); torch.scatter(t, 0); torch.argsort(t, foo=2); t.gather(0); t.index_select(0); t.scatter_(0)
t.cumsum(); t.lerp(t); t.outer(); t.take(); t.unsqueeze(); torch.unsqueeze(t); torch.nn.functional.linear(t); torch.sqrt(t, t); torch.sum(t, dims=0); torch.tril(t, 0, 0)
torch.addmm(torch.ones(3), torch.ones(2, 3), torch.ones(3, 4))
torch.addmv(t, torch.ones(2, 3), torch.ones(3)); torch.baddbmm(torch.ones(5), torch.ones(1, 2, 3), torch.ones(1, 3, 4))
torch.addr(t, t[:2], torch.ones(4)); F.linear(torch.ones(3), torch.ones(4, 3), t); F.linear(torch.ones(2, 2, 3), torch.ones(4, 3), t); t.numpy(force=1)
torch.linalg.vector_norm(t, 'fro'); torch.linalg.vector_norm(t, ord='fro'); torch.addmm(torch.ones(2, 3, 4), torch.ones(2, 3), torch.ones(3, 4))
t.index_put_((torch.tensor([7]),), torch.tensor(1)); torch.from_numpy(np.float32(1)); torch.distributions.Normal(0., 1.).sample(3)
torch.distributions.transforms.CorrCholeskyTransform()(t[:2]); torch.sum(t, dim='a'); t.max('a'); torch.clamp(t, 'a'); torch.lerp(t, t, 'a'); t.mul_('a'); t.sub_(None)
torch.promote_types(1, 2); torch.can_cast(torch.float, 'a'); torch.device(3.5); torch.device('cuda', -1); torch.ones(0).argmax(); torch.ones(0).amax(); t.normal_(0, -1)
t.quantile(2.0); t.bernoulli_(2.0); torch.broadcast_shapes((2,), (3,)); torch.broadcast_shapes((2, 3), (4, 3), 1); torch.broadcast_shapes((0,), (1,)); torch.softmax(t, 'a')
F.embedding(torch.ones(2, 2), torch.tensor([0])); F.embedding(torch.tensor([0]), t); torch.ones(2).long().exponential_(); torch.nn.Conv2d(3, 4); torch.nn.ReLU(1, 2)
torch.nn.Softmax(1, 2); torch.nn.LazyConv1d(); torch.nn.ZeroPad2d(); torch.nn.MaxPool2d(); torch.nn.ConvTranspose1d(1); torch.nn.MaxUnpool2d(); torch.nn.ReflectionPad1d()
torch.topk(t, 'a'); t.any('a'); torch.cumsum(t, dim='a'); torch.isin('a', t); torch.fft.fft(t, 'a'); torch.unsqueeze(t, 'a')
t.sort(0, 1); torch.sort(t, 0, 2); t.argsort(0, 1); t.sort(stable=1); t.argsort(0, None); torch.argsort(t, 0, 'a'); t.topk(1, 0, 1); torch.searchsorted(t, t, right=1)
torch.linalg.cholesky(torch.eye(2), upper=1); torch.promote_types('f', 'f'); torch.promote_types(torch.int8, 'f'); torch.promote_types(2, 2)
t.to(t, 5); t.to(t, non_blocking=5); t.to(torch.float64, 5); t.to(torch.float64, True, 5); t.to(t, None); t.to(t, copy=1); t.to(t, False, True, True); t.to('cpu', 5)"""


@pytest.mark.parametrize("text", [x.strip() for x in WRONG.replace("\n", ";").split(";")])
@same
def test_words_about_wrong_calls(torch, text):
    names = {"torch": torch, "t": torch.ones(3), "F": torch.nn.functional, "np": np}
    found = str(said(eval, text, names)).split("\n")[0]
    return found.split(", but expected")[0]


WITHOUT_DIMENSIONS = """s.cummax(d); s.cummin(d); s.unbind(d); s.roll(1, d); s.roll((1, 1), (d, 0)); torch.linalg.cross(s, s, dim=d); torch.cross(s, s, d); s.stride(d)
torch.unique(s, dim=d); torch.unique_consecutive(s, dim=d); torch.slice_scatter(s, s, d); torch.select_scatter(s, s, d, 0); torch.trapezoid(s, dim=d)
torch.ones(0).roll(1, d); torch.tensor(1).softmax(d); torch.ones(2, dtype=torch.int64).log_softmax(d)"""


@pytest.mark.parametrize("text", [x.strip() for x in WITHOUT_DIMENSIONS.replace("\n", ";").split(";")])
@same
def test_words_about_dimensions_of_a_tensor_without_any(torch, text):
    return [str(said(eval, text, {"torch": torch, "s": torch.tensor(1.0), "d": d})).split("\n")[0] for d in (0, -1, 1, 100, -5)]


FACTORIES = """zeros(2, {0}); ones(2, {0}); empty(2, {0}); rand(2, {0}); full((2,), 1, {0}); eye(2, {0}); arange(3, {0}); scalar_tensor(1, {0}); linspace(0, 1, 3, {0})
zeros_like(x, {0}); ones_like(x, {0}); full_like(x, 1, {0}); empty_like(x, {0}); empty_strided((2,), (1,), {0}); tensor([1], {0}); fft.fftfreq(2, {0}); randint(3, (2,), {0})"""


@pytest.mark.parametrize("text", [x.strip() for x in FACTORIES.replace("\n", ";").split(";")])
@same
def test_words_about_integers_that_shall_require_a_gradient(torch, text):
    names = {"torch": torch, "x": torch.ones(2)}
    return [str(said(eval, f"torch.{text.format(more)}.dtype", names)).split("\n")[0]
            for more in ("dtype=torch.int64, requires_grad=True", "dtype=torch.uint8, requires_grad=False", "dtype=torch.float64, requires_grad=True", "requires_grad=1")]
