"""Functions that tests/test_onnx.py exports: name -> (function of (torch, *tensors), shapes or arrays of the tensors).

A function in DYNAMIC is exported with the dimensions named there dynamic, and run at other sizes too: name -> (function, tensors at the
example's sizes, tensors at others, dynamic dimensions of each).
"""
import numpy as np

import torchlike

_rng = np.random.default_rng(0)


def _r(*shape):
    return _rng.standard_normal(shape).astype(np.float32)


def _F(torch):
    return torch.nn.functional


def _unary(names, space):
    return lambda torch, x: tuple(getattr(_F(torch) if space == "F" else torch, n)(x) for n in names.split())


def _written(torch, x):
    y = x.clone()
    y[:, 0] = 1
    y[:, 1:3] += 2
    y[0] = x[1]
    y[:, ::2] *= 2
    z = x + 1
    z.mul_(2)
    z[:, 2:].fill_(3)
    v = z.view(-1)
    v[0] = 9
    return y, z, v


def _strides(torch, x):
    up, down = _F(torch).max_pool2d(x, 3, 2, 1), _F(torch).avg_pool2d(x, 2)
    return _F(torch).interpolate(down, size=up.shape[-2:]) + up + x.shape[2] // 2


X, Y, X3, IMAGE = _r(2, 4), _r(2, 4), _r(2, 3, 4), _r(2, 3, 8, 8)
INDEX = np.array([1, 0])
FUNCTIONS = {
    "unary": (_unary("neg abs exp sin cos tan atan sinh cosh tanh asinh sigmoid floor ceil sign relu erf square exp2 expm1 erfc trunc frac round isnan isinf "
                     "isfinite nan_to_num", "torch"), [X]),
    "unary_of_fractions": (_unary("sqrt reciprocal asin acos atanh rsqrt log1p log2 log10 log", "torch"), [abs(X) / 4 + 0.05]),
    "activations": (_unary("gelu silu mish softplus hardswish hardsigmoid hardtanh relu6 elu selu celu leaky_relu logsigmoid softsign tanhshrink hardshrink "
                           "softshrink glu", "F"), [X]),
    "binary": (lambda torch, x, y: tuple(getattr(torch, n)(x, y) for n in "add sub mul div maximum minimum eq ne lt le gt ge atan2 hypot fmax fmin logaddexp "
                                         "remainder fmod floor_divide isclose".split()), [X, Y]),
    "powers": (lambda torch, x: (x ** 2, x ** 0.5, 2 ** x, torch.pow(x, x)), [abs(X)]),
    "integers": (lambda torch, a, b: (a // b, a % b, a / b, a + 1.5, a & b, a | b, a ^ b, ~a, -a, a * 2, a.sum(0)), [np.array([[7, -7], [5, 3]]), np.array([[2, 2], [-3, 5]])]),
    "kinds": (lambda torch, a, b: (a + b, a * b, b > a, torch.where(a > 0, b, 0.0), b.int(), b.double(), a.bool()), [np.array([1, -2, 3]), _r(3)]),
    "bools": (lambda torch, a, b: (a & b, a | b, ~a, a ^ b, a.any(), a.all(-1), a.sum(), torch.logical_not(b)), [X > 0, Y > 0]),
    "lookups": (lambda torch, x: (torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), torch.logit(x.sigmoid(), 1e-6), torch.heaviside(x, x), x.topk(3)[0],
                                  torch.special.xlogy(abs(x), abs(x) + 1), _F(torch).bilinear(x, x + 1, torch.ones(3, 4, 4)), x.unbind(1)[2].T), [X]),
    "formulas": (lambda torch, x, y: (x.clamp(-1, 1), x.clamp(min=0), torch.addcmul(x, x, y, value=0.5), torch.lerp(x, y, 0.3), torch.add(x, y, alpha=2),
                                      torch.where(x > y, x, y)), [X, Y]),
    "reductions": (lambda torch, x: (x.sum(), x.sum(1), x.mean((0, 2), keepdim=True), x.amax(1), x.amin((1, 2)), x.max(), x.min(), x.prod(1), x.logsumexp(-1),
                                     x.norm(), x.norm(dim=1), x.norm(p=1, dim=-1), x.std(), x.var(1), x.std(-1, unbiased=False), x.argmax(), x.argmax(1),
                                     x.argmin(-1, keepdim=True), *x.max(1), *x.min(-1, keepdim=True)), [X3]),
    "scans": (lambda torch, x: (x.cumsum(1), *x.topk(2), *x.sort(-1), x.argsort(0, descending=True), *x.kthvalue(2), *x.median(1)), [X]),
    "views": (lambda torch, x: (x.T, x.permute(1, 0), x.unsqueeze(1), x[:, None].squeeze(1), x.view(2, 2, 2), x.flatten(), x.expand(3, 2, 4), x.unfold(1, 2, 1),
                                x.diagonal(), x.movedim(0, 1), x.unflatten(1, (2, 2)), *x.chunk(2, 1), *x.split([1, 3], 1), *x.unbind(0), *x.tensor_split(2, 1)), [X]),
    "copies": (lambda torch, x: (x.repeat(2, 3), x.flip(1), x.roll(1, 0), x.roll(2), x.tile(2, 1), torch.stack([x, x], 1), torch.cat([x, x], -1),
                                 x.repeat_interleave(2, 1), x.tril(), x.triu(1)), [X]),
    "indexing": (lambda torch, x: (x[0], x[:, -1], x[..., 1:3], x[:, ::2], x[:, [0, 2]], x[[0, 1], [2, 3]], x[None, ..., None], x[1:, 1:], x[0, 1:3],
                                   x[torch.tensor([0, 1])[:, None], torch.tensor([1, 2])], x.index_select(1, torch.tensor([0, 2])), x.narrow(1, 1, 2),
                                   x.gather(1, torch.tensor([[0, 1], [2, 3]]))), [X]),
    "indices": (lambda torch, x, i: (x[i], x.gather(1, i.unsqueeze(1)), x[:, i], x[torch.arange(2), i], torch.nn.functional.one_hot(i, 4)), [X, INDEX]),
    "writes": (_written, [X]),
    "scatter": (lambda torch, x: (x.scatter(1, torch.tensor([[0], [1]]), 5.0), x.scatter_add(1, torch.tensor([[0, 0], [1, 1]]), x), x.masked_fill(x > 0, -1.0),
                                  x.index_add(1, torch.tensor([0, 2]), x[:, :2]), x.index_fill(1, torch.tensor([0]), 3.0),
                                  x.index_copy(1, torch.tensor([1, 0]), x[:, 2:]), x.index_put((torch.tensor([0]), torch.tensor([1])), torch.tensor(4.0))), [X]),
    "masks": (lambda torch, x: (x[x > 0], torch.masked_select(x, x > 0), x.nonzero(), x[x[:, 0] > 0]), [_r(6, 4)]),
    "made": (lambda torch, x: (torch.zeros(2, 3) + x[:, :1], torch.ones_like(x), torch.arange(4) * x, torch.eye(2) @ x, torch.linspace(0, 1, 4) + x), [X]),
    "products": (lambda torch, x: (x @ x.T, torch.bmm(x[:, None], x[..., None]), x @ torch.ones(4), torch.addmm(torch.ones(2), x, torch.ones(4, 2), alpha=2),
                                   torch.outer(x[0], x[1]), torch.einsum("ij,kj->ik", x, x), torch.einsum("bi,bi->b", [x, x]), torch.cdist(x, x + 1)), [X]),
    "distances": (lambda torch, x: (torch.cdist(x, x[:1] + 1, 1.0), torch.cdist(x[None], x + 1, 3.0), torch.cdist(x, x + 1, float("inf")), torch.pdist(x),
                                    torch.pdist(torch.cat([x, x * 2]), 1.0)), [X]),
    "norms": (lambda torch, x: (_F(torch).layer_norm(x, (8, 8)), _F(torch).group_norm(x, 3), _F(torch).instance_norm(x), _F(torch).normalize(x, dim=1),
                                _F(torch).rms_norm(x, (8,)), _F(torch).local_response_norm(x, 2), _F(torch).cosine_similarity(x, x + 1)), [IMAGE]),
    "pools": (lambda torch, x: (_F(torch).max_pool2d(x, 3, 2, 1), _F(torch).avg_pool2d(x, 3, 2, 1, count_include_pad=False), _F(torch).max_pool2d(x, 3, 2, ceil_mode=True),
                                _F(torch).adaptive_avg_pool2d(x, (2, 4)), _F(torch).adaptive_avg_pool2d(x, 3), _F(torch).adaptive_max_pool2d(x, 2),
                                _F(torch).lp_pool2d(x, 2, 2), *_F(torch).max_pool2d(x, 2, return_indices=True), _F(torch).avg_pool1d(x[0], 2)), [IMAGE]),
    "convolutions": (lambda torch, x: (_F(torch).conv2d(x, torch.ones(4, 3, 3, 3), padding="same"), _F(torch).conv2d(x, torch.ones(6, 1, 3, 3), groups=3, dilation=2),
                                       _F(torch).conv_transpose2d(x, torch.ones(3, 2, 3, 3), stride=2, padding=1, output_padding=1),
                                       _F(torch).conv2d(x[0], torch.ones(4, 3, 3, 3)), _F(torch).unfold(x, 2, stride=2), _F(torch).fold(_F(torch).unfold(x, 2), (8, 8), 2)),
                     [IMAGE]),
    "padding": (lambda torch, x: (_F(torch).pad(x, (1, 2, 0, 1), value=3.0), _F(torch).pad(x, (-1, 1)),
                                  *[_F(torch).pad(x, (1, 1, 2, 0), mode=m) for m in ("reflect", "replicate", "circular")]), [IMAGE]),
    "resampling": (lambda torch, x: (*[_F(torch).interpolate(x, mode=m, **how) for m in ("nearest", "nearest-exact", "bilinear", "bicubic")
                                       for how in ({"scale_factor": 2}, {"size": (11, 5)}, {"scale_factor": (1.5, 0.5)})],
                                     _F(torch).interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
                                     _F(torch).interpolate(x, size=5, mode="bilinear", antialias=True), _F(torch).pixel_unshuffle(x, 2),
                                     _F(torch).grid_sample(x, x[:, :2, :, :4].permute(0, 2, 3, 1).clamp(-1, 1), align_corners=False),
                                     _F(torch).affine_grid(x[:, 0, :2, :3], (len(x), 1, 4, 5), align_corners=False)), [IMAGE]),
    "losses": (lambda torch, x, y, t: (_F(torch).mse_loss(x, y), _F(torch).l1_loss(x, y, reduction="sum"), _F(torch).smooth_l1_loss(x, y, beta=0.5),
                                       _F(torch).huber_loss(x, y, delta=0.5, reduction="none"), _F(torch).cross_entropy(x, t),
                                       _F(torch).nll_loss(_F(torch).log_softmax(x, 1), t, reduction="none")), [X, Y, np.array([3, 0])]),
    "attention": (lambda torch, x, m: (_F(torch).scaled_dot_product_attention(x, x, x), _F(torch).scaled_dot_product_attention(x, x, x, is_causal=True),
                                       _F(torch).scaled_dot_product_attention(x, x, x, m), _F(torch).scaled_dot_product_attention(x, x[:, :1], x[:, :1], enable_gqa=True)),
                  [_r(2, 4, 5, 3), np.tri(5, dtype=bool)]),
}

BATCH, TOKENS, PLANE = {0: "b"}, {0: "b", 1: "t"}, {0: "b", 2: "h", 3: "w"}
DYNAMIC = {
    "reductions": (lambda torch, x: (x.sum(), x.mean((0, 2), keepdim=True), x.std(1), x.var(0), x.argmax(1), x.norm(dim=1)), [X3], [_r(5, 6, 4)], [TOKENS]),
    "views": (lambda torch, x: (x.reshape(-1), x.flatten(1), x.view(x.shape[0] * x.shape[1], -1), x.transpose(0, 1).reshape(x.shape[1], -1), x.expand(3, -1, -1, -1),
                                x[:, 1:], x[:, :-1], x[:, -1], x[-1], x.repeat(2, 3, 1), x.roll(1, 1), x.flip(1), x.repeat_interleave(2, 1), x.tril()),
              [X3], [_r(5, 6, 4)], [TOKENS]),
    "made": (lambda torch, x: (torch.zeros(x.shape[0], 3) + 1, torch.ones_like(x), torch.arange(x.shape[1]) * x, torch.eye(x.shape[0]), torch.linspace(0, 1, x.shape[1]),
                               torch.tril(torch.ones(x.shape[1], x.shape[1])), x * x.shape[0], x / x.shape[1] ** 0.5, torch.tensor(x.shape[0]) + x,
                               x.size(0) * x.size(1) + x, x[: x.shape[0] // 2]), [X], [_r(5, 7)], [TOKENS]),
    "writes": (_written, [X], [_r(5, 4)], [BATCH]),
    "indices": (lambda torch, x, i: (x[i], x.gather(1, i.unsqueeze(1)), x[torch.arange(x.shape[0]), i]), [X, INDEX], [_r(3, 4), np.array([1, 2, 0])], [BATCH, BATCH]),
    "images": (lambda torch, x: (_F(torch).max_pool2d(x, 3, 2, 1), _F(torch).adaptive_avg_pool2d(x, 1), _F(torch).interpolate(x, scale_factor=2, mode="bilinear"),
                                 _F(torch).interpolate(x, size=(x.shape[2] * 2, x.shape[3] + 1)), _F(torch).group_norm(x, 3)), [IMAGE], [_r(1, 3, 9, 12)], [PLANE]),
    "strides": (lambda torch, x: (_strides(torch, x),), [_r(1, 3, 16, 16)], [_r(2, 3, 27, 22)], [PLANE]),  # ceil(h / 2), floor(h / 2), and sums of those
    "hints": (lambda torch, x, y: (x + y, torch.cat([x, y])), [X, Y], [_r(5, 4), _r(5, 4)], [{0: torchlike.export.Dim.DYNAMIC}, {0: torchlike.export.Dim.AUTO}]),
    "attention": (lambda torch, x: (_F(torch).scaled_dot_product_attention(x, x, x, is_causal=True),), [_r(2, 4, 5, 3)], [_r(3, 4, 8, 3)], [{0: "b", 2: "t"}]),
}
