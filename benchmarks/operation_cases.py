"""Operations at the sizes that people use, for operations.py: family, name, inputs, and what is computed of them.

An input is a shape (normal random numbers), or a function of NumPy's generator that makes an array.
"""
from __future__ import annotations

import numpy as np

CASES: list[tuple] = []


def case(family: str, name: str, run, *inputs, grad: bool = True) -> None:
    """`run(torch, *tensors)`; `grad`: its backward pass is timed as well."""
    CASES.append((family, name, run, inputs, grad))


def positive(*shape):
    return lambda rng: rng.uniform(0.1, 2, shape).astype(np.float32)


def unit(*shape):
    return lambda rng: rng.uniform(-0.99, 0.99, shape).astype(np.float32)


def integers(high: int, *shape, low: int = 0, dtype=np.int64):
    return lambda rng: rng.integers(low, high, shape).astype(dtype)


def permutation(n: int):
    return lambda rng: rng.permutation(n)


def booleans(*shape):
    return lambda rng: rng.random(shape) < 0.5


def doubles(*shape):
    return lambda rng: rng.standard_normal(shape)


def definite(*shape):
    def make(rng):
        a = rng.standard_normal((*shape, shape[-1])).astype(np.float32)
        return a @ a.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32)
    return make


def complexes(*shape):
    return lambda rng: (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


BIG = (1024, 1024)

for _name in ("abs", "neg", "exp", "sin", "cos", "tanh", "sigmoid", "erf", "floor", "round", "sign", "square", "expm1", "atan", "sinh", "sinc", "erfc", "trunc", "frac",
              "nan_to_num", "isnan", "isfinite", "relu"):
    case("pointwise", _name, lambda t, a, n=_name: getattr(t, n)(a), BIG, grad=not _name.startswith("is"))
for _name in ("log", "sqrt", "rsqrt", "log1p", "lgamma", "digamma", "reciprocal", "log2", "log10", "acosh"):
    case("pointwise", _name, lambda t, a, n=_name: getattr(t, n)(a), positive(*BIG))
for _name in ("asin", "acos", "atanh", "erfinv", "logit"):
    case("pointwise", _name, lambda t, a, n=_name: getattr(t, n)(a), unit(*BIG))
for _name in ("add", "mul", "sub", "div", "maximum", "atan2", "hypot", "fmod", "remainder", "logaddexp", "xlogy", "eq", "lt", "copysign"):
    case("pointwise", _name, lambda t, a, b, n=_name: getattr(t, n)(a, b), BIG, positive(*BIG), grad=_name not in ("eq", "lt"))
case("pointwise", "a ** b", lambda t, a, b: a ** b, positive(*BIG), BIG)
case("pointwise", "a ** 3", lambda t, a: a ** 3, BIG)
case("pointwise", "a ** 0.5", lambda t, a: a ** 0.5, positive(*BIG))
case("pointwise", "a // b", lambda t, a, b: a // b, BIG, positive(*BIG), grad=False)
case("pointwise", "a % 3", lambda t, a: a % 3, BIG, grad=False)
case("pointwise", "where", lambda t, a, b: t.where(a > 0, a, b), BIG, BIG)
case("pointwise", "clamp", lambda t, a: a.clamp(-1, 1), BIG)
case("pointwise", "lerp", lambda t, a, b: t.lerp(a, b, 0.1), BIG, BIG)
case("pointwise", "addcmul", lambda t, a, b, c: t.addcmul(a, b, c, value=0.5), BIG, BIG, BIG)
case("pointwise", "a + row", lambda t, a, b: a + b, BIG, (1024,))
case("pointwise", "a * column", lambda t, a, b: a * b, BIG, (1024, 1))
case("pointwise", "chain of ten", lambda t, a: ((a * 2 + 1).tanh() * a - a.sigmoid()).relu() / 3 + a.abs() * 0.5, BIG)
case("pointwise", "float64 exp", lambda t, a: a.exp(), doubles(*BIG))
case("pointwise", "float64 add", lambda t, a, b: a + b, doubles(*BIG), doubles(*BIG))
case("pointwise", "bfloat16 mul add", lambda t, a, b: a.bfloat16() * b.bfloat16() + 1, BIG, BIG, grad=False)
case("pointwise", "complex mul", lambda t, a, b: a * b, complexes(*BIG), complexes(*BIG), grad=False)
case("pointwise", "complex abs", lambda t, a: a.abs(), complexes(*BIG), grad=False)
case("integers", "add", lambda t, a, b: a + b, integers(100, *BIG), integers(100, *BIG), grad=False)
case("integers", "mul int32", lambda t, a, b: a * b, integers(100, *BIG, dtype=np.int32), integers(100, *BIG, dtype=np.int32), grad=False)
case("integers", "//", lambda t, a, b: a // b, integers(1000, *BIG), integers(100, *BIG, low=1), grad=False)
case("integers", "%", lambda t, a, b: a % b, integers(1000, *BIG), integers(100, *BIG, low=1), grad=False)
case("integers", "xor and shift", lambda t, a, b: (a ^ b) >> 2, integers(1000, *BIG), integers(1000, *BIG), grad=False)
case("integers", "sum", lambda t, a: a.sum(), integers(1000, *BIG), grad=False)
case("integers", "uint8 image to float", lambda t, a: a.permute(0, 3, 1, 2).float() / 255, integers(256, 16, 128, 128, 3, dtype=np.uint8), grad=False)
case("integers", "== and sum", lambda t, a, b: (a == b).sum(), integers(10, *BIG), integers(10, *BIG), grad=False)
case("integers", "one_hot", lambda t, a: t.nn.functional.one_hot(a, 100), integers(100, 10000), grad=False)
case("integers", "gcd", lambda t, a, b: t.gcd(a, b), integers(1000, 256, 256, low=1), integers(1000, 256, 256, low=1), grad=False)
case("booleans", "and or not", lambda t, a, b: (a & b) | ~a, booleans(*BIG), booleans(*BIG), grad=False)
case("booleans", "any dim", lambda t, a: a.any(1), booleans(*BIG), grad=False)
case("booleans", "all", lambda t, a: a.all(), booleans(*BIG), grad=False)

for _name in ("sum", "mean", "std", "var", "prod", "amax", "argmax", "logsumexp", "norm", "median"):
    for _dim in (0, 1):
        case("reductions", f"{_name} dim {_dim}", lambda t, a, n=_name, d=_dim: getattr(t, n)(a, dim=d), positive(*BIG), grad=_name != "argmax")
for _name in ("sum", "mean", "std", "amax", "argmax", "norm", "median", "count_nonzero", "nansum", "prod"):
    case("reductions", _name, lambda t, a, n=_name: getattr(t, n)(a), BIG, grad=_name not in ("argmax", "count_nonzero", "prod"))
case("reductions", "max dim (values, indices)", lambda t, a: t.max(a, 1), BIG)
case("reductions", "sum (0, 2, 3)", lambda t, a: a.sum((0, 2, 3)), (32, 64, 28, 28))
case("reductions", "mean (2, 3)", lambda t, a: a.mean((2, 3)), (32, 64, 28, 28))
case("reductions", "quantile", lambda t, a: t.quantile(a, 0.9, dim=1), (256, 1024))
case("reductions", "kthvalue", lambda t, a: a.kthvalue(10, 1), (256, 1024))
case("reductions", "mode", lambda t, a: a.mode(1), integers(50, 256, 1024), grad=False)
case("reductions", "float64 sum", lambda t, a: a.sum(), doubles(*BIG))
for _name in ("cumsum", "cumprod", "logcumsumexp", "cummax"):
    for _dim in (0, 1):
        case("scans", f"{_name} dim {_dim}", lambda t, a, n=_name, d=_dim: getattr(t, n)(a, d), unit(1024, 512))
case("scans", "cumsum int64", lambda t, a: a.cumsum(0), integers(10, 1 << 20), grad=False)
case("scans", "diff", lambda t, a: a.diff(), BIG)
case("sorting", "sort rows", lambda t, a: a.sort(1), (512, 1024))
case("sorting", "sort one", lambda t, a: a.sort(), (1 << 18,))
case("sorting", "argsort int64", lambda t, a: a.argsort(), integers(1 << 20, 1 << 18), grad=False)
case("sorting", "topk 10 of 1000", lambda t, a: a.topk(10, 1), (512, 1000))
case("sorting", "topk 50 of 50000", lambda t, a: a.topk(50, 1), (8, 50000))
case("sorting", "unique", lambda t, a: a.unique(), integers(1000, 1 << 18), grad=False)
case("sorting", "unique inverse counts", lambda t, a: a.unique(return_inverse=True, return_counts=True), integers(1000, 1 << 17), grad=False)
case("sorting", "searchsorted", lambda t, a, b: t.searchsorted(a.cumsum(0), b), positive(10000), positive(1 << 17), grad=False)
case("sorting", "bucketize", lambda t, a: t.bucketize(a, t.linspace(-3, 3, 50)), (1 << 18,), grad=False)
case("sorting", "bincount", lambda t, a: t.bincount(a, minlength=1000), integers(1000, 1 << 18), grad=False)
case("sorting", "histc", lambda t, a: t.histc(a, 100), (1 << 18,), grad=False)
case("sorting", "isin", lambda t, a, b: t.isin(a, b), integers(10000, 1 << 17), integers(10000, 100), grad=False)

case("indexing", "rows x[i]", lambda t, a, i: a[i], (10000, 256), integers(10000, 4096))
case("indexing", "index_select 1", lambda t, a, i: a.index_select(1, i), BIG, integers(1024, 512))
case("indexing", "pairs x[i, j]", lambda t, a, i, j: a[i, j], BIG, integers(1024, 1 << 17), integers(1024, 1 << 17))
case("indexing", "gather 1", lambda t, a, i: a.gather(1, i), BIG, integers(1024, 1024, 256))
case("indexing", "take_along_dim", lambda t, a: t.take_along_dim(a, a.argsort(1), 1), (256, 1024))
case("indexing", "scatter", lambda t, a, i, s: a.scatter(1, i, s), BIG, integers(1024, 1024, 64), (1024, 64))
case("indexing", "scatter_add 0", lambda t, a, i, s: a.scatter_add(0, i, s), (1000, 64), integers(1000, 20000, 64), (20000, 64))
case("indexing", "scatter_reduce amax", lambda t, a, i, s: a.scatter_reduce(0, i, s, "amax"), (1000, 64), integers(1000, 20000, 64), (20000, 64))
case("indexing", "index_add 0", lambda t, a, i, s: a.index_add(0, i, s), (1000, 64), integers(1000, 20000), (20000, 64))
case("indexing", "index_put accumulate", lambda t, a, i, s: a.index_put((i,), s, accumulate=True), (1000, 64), integers(1000, 20000), (20000, 64))
case("indexing", "x[mask]", lambda t, a, m: a[m], BIG, booleans(*BIG))
case("indexing", "x[rows mask]", lambda t, a, m: a[m], (10000, 64), booleans(10000))
case("indexing", "masked_fill", lambda t, a, m: a.masked_fill(m, -1e9), BIG, booleans(*BIG))
case("indexing", "x[mask] = 0", lambda t, a, m: a.clone().index_put_((m,), t.zeros(())), BIG, booleans(*BIG), grad=False)
case("indexing", "nonzero", lambda t, a: (a > 1).nonzero(), BIG, grad=False)
case("indexing", "strided x[:, ::2]", lambda t, a: a[:, ::2] * 2, BIG)
case("indexing", "x[1:-1] slices (heat)", lambda t, a: a[1:-1, 2:] + a[1:-1, :-2] + a[2:, 1:-1] + a[:-2, 1:-1] - 4 * a[1:-1, 1:-1], BIG)
case("indexing", "flip", lambda t, a: a.flip(1), BIG)
case("indexing", "roll", lambda t, a: a.roll(3, 1), BIG)
case("indexing", "roll of windows' dimensions", lambda t, a: a.roll((-3, -3), (1, 2)), (8, 56, 56, 96))
case("indexing", "columns, beside another result", lambda t, a, i: (a.relu()[:, i] * 2, a * 2), BIG, integers(1024, 512))
case("indexing", "tril", lambda t, a: a.tril(), BIG)
case("indexing", "repeat", lambda t, a: a.repeat(4, 2), (512, 256))
case("indexing", "repeat_interleave", lambda t, a: a.repeat_interleave(4, 0), (1024, 256))
case("indexing", "cat 0", lambda t, a, b: t.cat([a, b]), BIG, BIG)
case("indexing", "cat 1", lambda t, a, b: t.cat([a, b], 1), BIG, BIG)
case("indexing", "stack", lambda t, a, b: t.stack([a, b], -1), BIG, BIG)
case("indexing", "transpose contiguous", lambda t, a: a.t().contiguous(), BIG)
case("indexing", "permute NCHW to NHWC", lambda t, a: a.permute(0, 2, 3, 1).contiguous(), (32, 64, 28, 28))
case("indexing", "pad constant", lambda t, a: t.nn.functional.pad(a, (2, 2, 2, 2)), (32, 32, 56, 56))
case("indexing", "pad reflect", lambda t, a: t.nn.functional.pad(a, (2, 2, 2, 2), "reflect"), (16, 32, 56, 56))
case("indexing", "unfold", lambda t, a: t.nn.functional.unfold(a, 3, padding=1), (8, 16, 56, 56))
case("indexing", "fold", lambda t, a: t.nn.functional.fold(a, (56, 56), 3, padding=1), (8, 144, 3136))
case("indexing", "tensor.unfold", lambda t, a: a.unfold(1, 16, 8) * 1, (128, 4096))
case("indexing", "embedding", lambda t, i, w: t.nn.functional.embedding(i, w), integers(20000, 64, 128), (20000, 128))
case("indexing", "embedding_bag mean", lambda t, i, w: t.nn.functional.embedding_bag(i, w, mode="mean"), integers(20000, 512, 20), (20000, 64))
case("indexing", "embedding_bag sum of many", lambda t, i, w: t.nn.functional.embedding_bag(i, w, mode="sum"), integers(20000, 4096, 50), (20000, 128))
case("indexing", "meshgrid and stack", lambda t, a, b: t.stack(t.meshgrid(a, b, indexing="ij"), -1), (512,), (512,))
case("indexing", "cartesian distances", lambda t, a: (a[:, None] - a[None]).square().sum(-1), (512, 3))

case("products", "512 x 512", lambda t, a, b: a @ b, (512, 512), (512, 512))
case("products", "64 x 784 x 512", lambda t, a, b: a @ b, (64, 784), (784, 512))
case("products", "batched 32 x 128", lambda t, a, b: a @ b, (32, 128, 128), (32, 128, 128))
case("products", "batched 512 x 16", lambda t, a, b: a @ b, (2048, 16, 16), (2048, 16, 16))
case("products", "4 x 4 of 2000", lambda t, a, b: a @ b, (2000, 4, 4), (2000, 4, 4))
case("products", "chain of 4 x 4", lambda t, a, b: a @ b @ a @ b @ a, (1000, 4, 4), (1000, 4, 4))
case("products", "matrix vector", lambda t, a, b: a @ b, (2048, 1024), (1024,))
case("products", "vector matrix", lambda t, a, b: a @ b, (1024,), (1024, 2048))
case("products", "dot", lambda t, a, b: a @ b, (1 << 20,), (1 << 20,))
case("products", "outer", lambda t, a, b: t.outer(a, b), (1024,), (1024,))
case("products", "float64 512", lambda t, a, b: a @ b, doubles(512, 512), doubles(512, 512))
case("products", "complex 256", lambda t, a, b: a @ b, complexes(256, 256), complexes(256, 256), grad=False)
case("products", "bfloat16 512", lambda t, a, b: a.bfloat16() @ b.bfloat16(), (512, 512), (512, 512), grad=False)
case("products", "int64 128", lambda t, a, b: a @ b, integers(100, 128, 128), integers(100, 128, 128), grad=False)
case("products", "a @ a.T", lambda t, a: a @ a.T, (512, 256))
case("products", "3d @ 2d", lambda t, a, b: a @ b, (16, 64, 256), (256, 256))
case("products", "einsum bhid,bhjd->bhij", lambda t, a, b: t.einsum("bhid,bhjd->bhij", a, b), (8, 8, 64, 32), (8, 8, 64, 32))
case("products", "einsum bij,bjk,bk->bi", lambda t, a, b, c: t.einsum("bij,bjk,bk->bi", a, b, c), (32, 64, 64), (32, 64, 64), (32, 64))
case("products", "einsum bij,bjk,bkl->bil", lambda t, a, b, c: t.einsum("bij,bjk,bkl->bil", a, b, c), (1000, 4, 4), (1000, 4, 4), (1000, 4, 4))
case("products", "bilinear", lambda t, a, b, w: t.nn.functional.bilinear(a, b, w), (64, 64), (64, 64), (32, 64, 64))
case("products", "kron", lambda t, a, b: t.kron(a, b), (32, 32), (32, 32))
case("products", "tensordot", lambda t, a, b: t.tensordot(a, b, 2), (64, 32, 32), (32, 32, 64))
case("products", "cdist", lambda t, a, b: t.cdist(a, b), (512, 64), (512, 64))
case("products", "cdist p=1", lambda t, a, b: t.cdist(a, b, p=1), (256, 32), (256, 32))
case("products", "matrix_power", lambda t, a: t.matrix_power(a, 5), unit(256, 256))
case("products", "matrix_exp", lambda t, a: t.matrix_exp(a), unit(16, 32, 32))
case("products", "matrix_exp of 1000", lambda t, a: t.matrix_exp(a), (1000, 3, 3))
case("linear algebra", "inv", lambda t, a: t.linalg.inv(a), definite(256))
case("linear algebra", "inv batch", lambda t, a: t.linalg.inv(a), definite(256, 16))
case("linear algebra", "solve", lambda t, a, b: t.linalg.solve(a, b), definite(256), (256, 16))
case("linear algebra", "cholesky", lambda t, a: t.linalg.cholesky(a), definite(256))
case("linear algebra", "cholesky batch", lambda t, a: t.linalg.cholesky(a), definite(256, 16))
case("linear algebra", "triangular solve", lambda t, a, b: t.linalg.solve_triangular(a.tril(), b, upper=False), definite(256), (256, 64))
case("linear algebra", "qr", lambda t, a: t.linalg.qr(a), (256, 128))
case("linear algebra", "svd", lambda t, a: t.linalg.svd(a, full_matrices=False)[1], (128, 128))
case("linear algebra", "eigh", lambda t, a: t.linalg.eigh(a)[0], definite(128))
case("linear algebra", "eig", lambda t, a: t.linalg.eig(a)[0], (64, 64), grad=False)
case("linear algebra", "det batch", lambda t, a: t.linalg.det(a), unit(1024, 8, 8))
case("linear algebra", "slogdet", lambda t, a: t.linalg.slogdet(a)[1], definite(256))
case("linear algebra", "lstsq", lambda t, a, b: t.linalg.lstsq(a, b)[0], (256, 64), (256, 8))
case("linear algebra", "pinv", lambda t, a: t.linalg.pinv(a), (128, 64))
case("linear algebra", "4 x 4 inverses", lambda t, a: t.linalg.inv(a), definite(2000, 4))
case("linear algebra", "3 x 3 inverses", lambda t, a: t.linalg.inv(a), definite(4096, 3))
case("Fourier", "fft", lambda t, a: t.fft.fft(a).abs(), (256, 1024))
case("Fourier", "rfft irfft", lambda t, a: t.fft.irfft(t.fft.rfft(a)), (256, 1024))
case("Fourier", "fft2", lambda t, a: t.fft.fft2(a).real, (16, 128, 128))
case("Fourier", "stft", lambda t, a: t.stft(a, 400, 160, window=t.hann_window(400), return_complex=True).abs(), (4, 16000))
case("Fourier", "fft prime", lambda t, a: t.fft.fft(a).abs(), (64, 1009))

IMAGES = (16, 64, 28, 28)
for _name in ("gelu", "silu", "elu", "selu", "leaky_relu", "hardswish", "hardsigmoid", "mish", "softplus", "logsigmoid", "tanhshrink", "relu6", "celu", "softsign", "glu"):
    case("networks", _name, lambda t, a, n=_name: getattr(t.nn.functional, n)(a), BIG)
case("networks", "gelu tanh", lambda t, a: t.nn.functional.gelu(a, approximate="tanh"), BIG)
case("networks", "prelu", lambda t, a, w: t.nn.functional.prelu(a, w), IMAGES, (64,))
case("networks", "softmax", lambda t, a: a.softmax(-1), BIG)
case("networks", "softmax dim 0", lambda t, a: a.softmax(0), BIG)
case("networks", "log_softmax", lambda t, a: a.log_softmax(-1), BIG)
case("networks", "softmax of images' channels", lambda t, a: a.softmax(1), IMAGES)
case("networks", "gumbel_softmax", lambda t, a: t.nn.functional.gumbel_softmax(a), (1024, 256))
case("networks", "normalize", lambda t, a: t.nn.functional.normalize(a), (4096, 128))
case("networks", "layer_norm", lambda t, a, w, b: t.nn.functional.layer_norm(a, (512,), w, b), (1024, 512), (512,), (512,))
case("networks", "rms_norm", lambda t, a, w: t.nn.functional.rms_norm(a, (512,), w), (1024, 512), (512,))
case("networks", "group_norm", lambda t, a, w, b: t.nn.functional.group_norm(a, 8, w, b), IMAGES, (64,), (64,))
case("networks", "instance_norm", lambda t, a: t.nn.functional.instance_norm(a), IMAGES)
case("networks", "batch_norm train", lambda t, a, w, b: t.nn.functional.batch_norm(a, None, None, w, b, True), IMAGES, (64,), (64,))
case("networks", "batch_norm eval", lambda t, a, m, v, w, b: t.nn.functional.batch_norm(a, m.detach(), v.detach(), w, b), IMAGES, (64,), positive(64), (64,), (64,))
case("networks", "batch_norm of rows", lambda t, a, w, b: t.nn.functional.batch_norm(a, None, None, w, b, True), (1024, 256), (256,), (256,))
case("networks", "local_response_norm", lambda t, a: t.nn.functional.local_response_norm(a, 5), IMAGES)
case("networks", "dropout", lambda t, a: t.nn.functional.dropout(a, 0.5), BIG)
case("networks", "dropout2d", lambda t, a: t.nn.functional.dropout2d(a, 0.5), IMAGES)
case("networks", "linear", lambda t, a, w, b: t.nn.functional.linear(a, w, b), (256, 512), (512, 512), (512,))
case("networks", "linear of one row", lambda t, a, w, b: t.nn.functional.linear(a, w, b), (1, 2048), (2048, 2048), (2048,))
case("networks", "attention", lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v), (4, 8, 128, 64), (4, 8, 128, 64), (4, 8, 128, 64))
case("networks", "attention causal", lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), (2, 8, 256, 64), (2, 8, 256, 64), (2, 8, 256, 64))
case("networks", "attention, one query", lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v), (4, 8, 1, 64), (4, 8, 1024, 64), (4, 8, 1024, 64))
case("convolutions", "conv1d", lambda t, a, w: t.nn.functional.conv1d(a, w, padding=1), (16, 64, 256), (64, 64, 3))
case("convolutions", "conv1d wide kernel", lambda t, a, w: t.nn.functional.conv1d(a, w, stride=5), (4, 1, 16000), (64, 1, 10))
case("convolutions", "conv1d causal dilated", lambda t, a, w: t.nn.functional.conv1d(t.nn.functional.pad(a, (8, 0)), w, dilation=4), (8, 32, 512), (32, 32, 3))
case("convolutions", "conv2d 3 x 3", lambda t, a, w: t.nn.functional.conv2d(a, w, padding=1), IMAGES, (64, 64, 3, 3))
case("convolutions", "conv2d 1 x 1", lambda t, a, w: t.nn.functional.conv2d(a, w), IMAGES, (128, 64, 1, 1))
case("convolutions", "conv2d stride 2", lambda t, a, w: t.nn.functional.conv2d(a, w, stride=2, padding=1), IMAGES, (128, 64, 3, 3))
case("convolutions", "conv2d 7 x 7 of pictures", lambda t, a, w: t.nn.functional.conv2d(a, w, stride=2, padding=3), (4, 3, 128, 128), (64, 3, 7, 7))
case("convolutions", "conv2d depthwise", lambda t, a, w: t.nn.functional.conv2d(a, w, padding=1, groups=64), IMAGES, (64, 1, 3, 3))
case("convolutions", "conv2d grouped", lambda t, a, w: t.nn.functional.conv2d(a, w, padding=1, groups=8), IMAGES, (64, 8, 3, 3))
case("convolutions", "conv2d dilated", lambda t, a, w: t.nn.functional.conv2d(a, w, padding=2, dilation=2), IMAGES, (64, 64, 3, 3))
case("convolutions", "conv3d", lambda t, a, w: t.nn.functional.conv3d(a, w, padding=1), (2, 16, 16, 32, 32), (16, 16, 3, 3, 3))
case("convolutions", "conv_transpose2d 4, 2, 1", lambda t, a, w: t.nn.functional.conv_transpose2d(a, w, stride=2, padding=1), (16, 64, 14, 14), (64, 32, 4, 4))
case("convolutions", "conv_transpose2d 2, 2", lambda t, a, w: t.nn.functional.conv_transpose2d(a, w, stride=2), (16, 64, 14, 14), (64, 32, 2, 2))
case("convolutions", "conv_transpose1d", lambda t, a, w: t.nn.functional.conv_transpose1d(a, w, stride=4, padding=2), (4, 64, 256), (64, 32, 8))
case("pooling", "max_pool2d 2", lambda t, a: t.nn.functional.max_pool2d(a, 2), (32, 64, 28, 28))
case("pooling", "max_pool2d 3, 2, 1", lambda t, a: t.nn.functional.max_pool2d(a, 3, 2, 1), (16, 64, 56, 56))
case("pooling", "max_pool1d", lambda t, a: t.nn.functional.max_pool1d(a, 2), (32, 64, 512))
case("pooling", "max_pool3d", lambda t, a: t.nn.functional.max_pool3d(a, 2), (4, 16, 16, 32, 32))
case("pooling", "avg_pool2d 2", lambda t, a: t.nn.functional.avg_pool2d(a, 2), (32, 64, 28, 28))
case("pooling", "avg_pool2d 3, 1, 1", lambda t, a: t.nn.functional.avg_pool2d(a, 3, 1, 1), (16, 64, 28, 28))
case("pooling", "adaptive_avg_pool2d 1", lambda t, a: t.nn.functional.adaptive_avg_pool2d(a, 1), (32, 64, 28, 28))
case("pooling", "adaptive_avg_pool2d 6 of 28", lambda t, a: t.nn.functional.adaptive_avg_pool2d(a, 6), (32, 64, 28, 28))
case("pooling", "adaptive_max_pool2d 7", lambda t, a: t.nn.functional.adaptive_max_pool2d(a, 7), (32, 64, 28, 28))
case("pooling", "lp_pool2d", lambda t, a: t.nn.functional.lp_pool2d(a, 2, 2), positive(16, 64, 28, 28))
for _mode in ("nearest", "bilinear", "bicubic", "area"):
    case("resampling", f"interpolate x 2 {_mode}", lambda t, a, m=_mode: t.nn.functional.interpolate(a, scale_factor=2, mode=m), (8, 32, 28, 28))
case("resampling", "interpolate to 17 bilinear", lambda t, a: t.nn.functional.interpolate(a, size=(17, 17), mode="bilinear"), (16, 64, 28, 28))
case("resampling", "interpolate antialias", lambda t, a: t.nn.functional.interpolate(a, size=(32, 32), mode="bilinear", antialias=True), (8, 3, 128, 128))
case("resampling", "interpolate linear", lambda t, a: t.nn.functional.interpolate(a, scale_factor=4, mode="linear"), (8, 32, 1024))
case("resampling", "grid_sample", lambda t, a, g: t.nn.functional.grid_sample(a, g, align_corners=False), (8, 16, 64, 64), unit(8, 64, 64, 2))
case("resampling", "grid_sample of volumes", lambda t, a, g: t.nn.functional.grid_sample(a, g, align_corners=False), (2, 4, 16, 32, 32), unit(2, 16, 32, 32, 3))
case("resampling", "grid_sample of many channels", lambda t, a, g: t.nn.functional.grid_sample(a, g, align_corners=False), (2, 64, 128, 128), unit(2, 128, 128, 2))
case("resampling", "affine_grid", lambda t, a: t.nn.functional.affine_grid(a, (16, 3, 64, 64), align_corners=False), (16, 2, 3))
case("resampling", "pixel_shuffle", lambda t, a: t.nn.functional.pixel_shuffle(a, 2), (16, 64, 28, 28))
case("losses", "cross_entropy", lambda t, a, y: t.nn.functional.cross_entropy(a, y), (1024, 1000), integers(1000, 1024))
case("losses", "cross_entropy of a vocabulary", lambda t, a, y: t.nn.functional.cross_entropy(a, y), (256, 20000), integers(20000, 256))
case("losses", "cross_entropy of images", lambda t, a, y: t.nn.functional.cross_entropy(a, y), (8, 21, 64, 64), integers(21, 8, 64, 64))
case("losses", "cross_entropy smoothed", lambda t, a, y: t.nn.functional.cross_entropy(a, y, label_smoothing=0.1), (1024, 1000), integers(1000, 1024))
case("losses", "cross_entropy of probabilities", lambda t, a, b: t.nn.functional.cross_entropy(a, b.softmax(-1)), (1024, 512), (1024, 512))
case("losses", "mse", lambda t, a, b: t.nn.functional.mse_loss(a, b), BIG, BIG)
case("losses", "l1", lambda t, a, b: t.nn.functional.l1_loss(a, b), BIG, BIG)
case("losses", "smooth_l1", lambda t, a, b: t.nn.functional.smooth_l1_loss(a, b), BIG, BIG)
case("losses", "bce_with_logits", lambda t, a, b: t.nn.functional.binary_cross_entropy_with_logits(a, b.sigmoid()), BIG, BIG)
case("losses", "bce", lambda t, a, b: t.nn.functional.binary_cross_entropy(a.sigmoid(), b.sigmoid().detach()), BIG, BIG)
case("losses", "kl_div", lambda t, a, b: t.nn.functional.kl_div(a.log_softmax(-1), b.softmax(-1), reduction="batchmean"), (1024, 512), (1024, 512))
case("losses", "cosine_similarity", lambda t, a, b: t.nn.functional.cosine_similarity(a, b), (4096, 128), (4096, 128))
case("losses", "triplet_margin", lambda t, a, b, c: t.nn.functional.triplet_margin_loss(a, b, c), (4096, 128), (4096, 128), (4096, 128))
case("losses", "multi_margin", lambda t, a, y: t.nn.functional.multi_margin_loss(a, y), (1024, 100), integers(100, 1024))
case("losses", "ctc", lambda t, a, y: t.nn.functional.ctc_loss(a.log_softmax(-1), y, [100] * 16, [20] * 16), (100, 16, 30), integers(30, 16, 20, low=1))
case("losses", "gaussian_nll", lambda t, a, b, v: t.nn.functional.gaussian_nll_loss(a, b, v), BIG, BIG, positive(*BIG))


def layer(family: str, name: str, make, *inputs, grad: bool = True):
    """A module that is made once."""
    made: dict = {}

    def run(t, *tensors):
        if t.__name__ not in made:
            made[t.__name__] = make(t)
        out = made[t.__name__](*tensors)
        return out[0] if isinstance(out, tuple) else out
    case(family, name, run, *inputs, grad=grad)


layer("recurrent", "LSTM", lambda t: t.nn.LSTM(64, 128), (50, 16, 64))
layer("recurrent", "LSTM both ways, two layers", lambda t: t.nn.LSTM(64, 64, 2, bidirectional=True), (30, 16, 64))
layer("recurrent", "GRU", lambda t: t.nn.GRU(64, 128), (50, 16, 64))
layer("recurrent", "RNN", lambda t: t.nn.RNN(64, 128), (50, 16, 64))
layer("recurrent", "LSTM of one sequence", lambda t: t.nn.LSTM(32, 64), (100, 1, 32))
layer("networks", "MultiheadAttention", lambda t: t.nn.MultiheadAttention(128, 4, batch_first=True), (8, 64, 128), (8, 64, 128), (8, 64, 128))
layer("networks", "TransformerEncoderLayer", lambda t: t.nn.TransformerEncoderLayer(128, 4, 256, 0.0, batch_first=True), (8, 64, 128))

case("random", "rand", lambda t: t.rand(1024, 1024))
case("random", "randn", lambda t: t.randn(1024, 1024))
case("random", "randint", lambda t: t.randint(0, 100, (1024, 1024)))
case("random", "randperm", lambda t: t.randperm(100000))
case("random", "bernoulli", lambda t, p: t.bernoulli(p), lambda rng: rng.random((512, 512)).astype(np.float32), grad=False)
case("random", "multinomial", lambda t, p: t.multinomial(p, 10), positive(256, 1000), grad=False)
case("random", "multinomial with replacement", lambda t, p: t.multinomial(p, 1000, replacement=True), positive(16, 1000), grad=False)
case("random", "normal_", lambda t: t.empty(512, 512).normal_(1, 2))
case("random", "exponential_", lambda t: t.empty(512, 512).exponential_())
case("random", "poisson", lambda t, a: t.poisson(a), positive(256, 256), grad=False)
case("random", "gamma", lambda t, a: t._standard_gamma(a), positive(256, 256), grad=False)
case("random", "rand_like > p", lambda t, a: t.rand_like(a) > 0.5, BIG, grad=False)
for _name in ("i0", "i1", "ndtr", "entr", "log_ndtr", "erfcx", "bessel_j0"):
    case("special", _name, lambda t, a, n=_name: getattr(t.special, n)(a), positive(512, 512), grad=False)
case("special", "polygamma", lambda t, a: t.polygamma(1, a), positive(512, 512))
case("special", "gammainc", lambda t, a, b: t.special.gammainc(a, b), positive(256, 256), positive(256, 256), grad=False)
case("special", "zeta", lambda t, a: t.special.zeta(a + 1, a), positive(256, 256), grad=False)
case("making", "zeros", lambda t: t.zeros(1024, 1024))
case("making", "ones_like", lambda t, a: t.ones_like(a), BIG, grad=False)
case("making", "arange", lambda t: t.arange(1 << 20))
case("making", "linspace", lambda t: t.linspace(0, 1, 1 << 20))
case("making", "eye", lambda t: t.eye(1024))
case("making", "tril_indices", lambda t: t.tril_indices(512, 512))
case("making", "clone", lambda t, a: a.clone(), BIG)
case("making", "to float64", lambda t, a: a.double(), BIG)
case("making", "to half and back", lambda t, a: a.half().float(), BIG, grad=False)
case("making", "to bfloat16 and back", lambda t, a: a.bfloat16().float(), BIG, grad=False)
case("making", "to int64", lambda t, a: a.long(), BIG, grad=False)


def optimizer(name: str, **arguments) -> None:
    made: dict = {}

    def run(t, *tensors):
        if t.__name__ not in made:
            weights = [t.nn.Parameter(a.clone()) for a in tensors]
            for w in weights:
                w.grad = w.detach() * 0.1
            made[t.__name__] = weights, getattr(t.optim, name)(weights, **arguments)
        weights, step = made[t.__name__]
        step.step()
        return weights[0].detach()
    case("optimizers", name, run, *[(256, 256)] * 8, (1024, 256), grad=False)


for _name, _arguments in (("SGD", {"lr": 1e-3, "momentum": 0.9}), ("Adam", {}), ("AdamW", {}), ("RMSprop", {}), ("Adagrad", {}), ("Adadelta", {}), ("Adamax", {}), ("NAdam", {}),
                          ("RAdam", {}), ("ASGD", {}), ("Rprop", {})):
    optimizer(_name, **_arguments)


def _clip(t, *grads):
    weights = [t.nn.Parameter(g.detach()) for g in grads]
    for w, g in zip(weights, grads):
        w.grad = g.clone()
    t.nn.utils.clip_grad_norm_(weights, 1.0)
    return weights[0].grad


case("optimizers", "clip_grad_norm_", _clip, *[(256, 256)] * 8, grad=False)
case("in place", "add_ mul_ clamp_", lambda t, a: a.clone().add_(1).mul_(2).clamp_(-1, 1), BIG, grad=False)
case("in place", "x[:, 1:] -= x[:, :-1]", lambda t, a: _minus(a.clone()), BIG, grad=False)
case("in place", "x[i] = rows", lambda t, a, i, b: _put(a.clone(), i, b), (10000, 64), permutation(10000), (10000, 64), grad=False)
case("in place", "average of weights", lambda t, a, b: a.clone().mul_(0.99).add_(b, alpha=0.01), BIG, BIG, grad=False)


def _minus(a):
    a[:, 1:] -= a[:, :-1].clone()
    return a


def _put(a, i, b):
    a[i] = b
    return a
