"""nn.functional: activations, normalisation, linear maps, embeddings, attention, resampling."""
from case import ALL_DTYPES, REAL_DTYPES, Case, Name, bools, case, cplx, distinct, ints, lit, pos, s, t

L = lambda data: lit(data, "int64")


def activation(leaf: str, *more, **flags) -> Case:
    return case(f"nn.functional.{leaf}", s(t(3, 4)), s(t()), s(t(2, 3, layout="transposed")), *more, **{"errors": (s([1.0]), s(t(2), 1, 2, 3, 4, 5)), "dtypes": REAL_DTYPES, "tol": 2, **flags})


def softmaxed(name: str, **flags) -> Case:
    return case(name, s(t(3, 4), -1), s(t(2, 3, 4), 1), s(t(), 0), s(t(3, 4), dim=0, dtype=Name("float64")), s(lit([[1e4, 0.0, -1e4]]), 1), s(lit([float("-inf"), 0.0, 1.0], grad=False), 0), s(t(0, 3), 1),
                errors=(s(t(2), 1), s(ints(2), 0), s(t(2), "a")), dtypes=REAL_DTYPES, tol=2, **flags)


ACTIVATIONS = [
    *[activation(n) for n in ("relu", "relu6", "sigmoid", "tanh", "silu", "mish", "selu", "logsigmoid", "hardsigmoid", "hardswish", "softsign", "tanhshrink")],
    activation("gelu", s(t(3), approximate="tanh"), errors=(s(t(2), approximate="x"),)), activation("elu", s(t(4), 0.5)), activation("celu", s(t(4), 0.5), errors=(s(t(2), 0.0),)), activation("leaky_relu", s(t(4), 0.2)), activation("hardtanh", s(t(4), -0.5, 0.7), errors=(s(t(3), 1.0, -1.0),)),
    activation("softplus", s(t(4), 2.0), s(t(4), 2.0, 1.0)), activation("softshrink", s(t(4), 0.2), errors=(s(t(3), -1.0),)), activation("hardshrink", s(t(4), 0.2)), case("nn.functional.threshold", s(t(3, 4), 0.1, 20.0), errors=(s(t(3)),)),
    case("nn.functional.prelu", s(t(2, 3), t(1)), s(t(2, 3, 4), t(3)), errors=(s(t(2, 3), t(2)),)), case("nn.functional.glu", s(t(3, 4)), s(t(4, 3), 0), errors=(s(t(3, 3)), s(t()))), case("nn.functional.normalize", s(t(3, 4)), s(t(3, 4), p=1, dim=0), s(t(2, 3, 2), 2.0, 1), s(lit([[0.0, 0.0], [3.0, 4.0]], grad=False)), s(t(3, 4), p=float("inf"), dim=1), errors=(s(t(3)), s(ints(2, 2))), gradgrad=False, tol=3),
    *[case(f"nn.functional.{n}", s(t(3, 4)), s(t(2, 3)), inplace=False, fn=(lambda torch, x, n=n: getattr(torch.nn.functional, n)(x * 1, inplace=True)), tag="inplace") for n in ("relu", "relu6", "silu", "elu", "leaky_relu", "hardtanh", "hardswish", "mish", "selu", "celu")],
    *[case(f"nn.functional.{n}_", s(t(3, 4)), fn=(lambda torch, x, n=n: (lambda y: [getattr(torch.nn.functional, n + "_")(y), y])(x * 1))) for n in ("relu", "elu", "leaky_relu", "hardtanh", "selu", "celu")],
    case("torch.relu_", s(t(3)), fn=lambda torch, x: torch.relu_(x * 1)), case("torch.selu", s(t(3))), case("torch.prelu", s(t(2, 3), t(3))), case("torch.celu", s(t(3))), case("torch.rrelu", s(t(3)), vmap=False),
    softmaxed("torch.softmax"), softmaxed("torch.log_softmax"), softmaxed("nn.functional.softmax"), softmaxed("nn.functional.log_softmax"), case("nn.functional.softmin", s(t(3, 4), 1), tol=2), case("nn.functional.softmax", s(t(3, 4)), s(t(3)), s(t(2, 3, 4)), tag="implicit dim", vmap=False, tol=2),
    case("torch.special.expit", s(t(3))), case("torch.special.expm1", s(t(3))), case("torch.special.erf", s(t(3))), case("torch.special.erfc", s(t(3))), case("torch.special.logit", s(pos(3, low=0.1, high=0.9)), s(lit([0.0, 0.5, 1.0]), 0.1)), case("torch.special.erfcx", s(t(4)), gradgrad=False, tol=5), case("torch.special.ndtr", s(t(3)), tol=3),
    case("torch.special.ndtri", s(pos(3, low=0.1, high=0.9)), tol=5), case("torch.special.log_ndtr", s(t(3)), tol=5), case("torch.special.gammaln", s(pos(3)), tol=5), case("torch.special.entr", s(pos(3)), s(lit([0.0, -1.0], grad=False))), case("torch.special.xlog1py", s(t(3), pos(3))), case("torch.special.i0e", s(t(3))), case("torch.special.i1", s(t(3)), tol=3),
    case("torch.special.log_softmax", s(t(3, 4), 1)), case("torch.special.softmax", s(t(3, 4), 1)), case("torch.special.logsumexp", s(t(3, 4), 1)), case("torch.special.zeta", s(pos(3, low=2), pos(3)), grad=False, tol=5), case("torch.special.bessel_j0", s(t(3)), grad=False, tol=5),
]

NORMS = [
    case("nn.functional.layer_norm", s(t(2, 3, 4), (4,)), s(t(2, 3, 4), (3, 4), t(3, 4), t(3, 4)), s(t(2, 4), (4,), weight=t(4)), s(t(2, 4), [4], None, t(4), 1e-3), errors=(s(t(2, 3), (4,)), s(t(2, 3), 3), s(t(2, 3), (3,), t(2))), tol=5, dtypes=REAL_DTYPES),
    case("nn.functional.rms_norm", s(t(2, 3, 4), (4,)), s(t(2, 4), (4,), t(4)), s(t(2, 4), (4,), t(4), 1e-2), errors=(s(t(2, 3), (4,)),), tol=5), case("nn.functional.group_norm", s(t(2, 4, 3), 2), s(t(2, 4, 3, 3), 4, t(4), t(4)), s(t(2, 4), 2, eps=1e-3), errors=(s(t(2, 3, 2), 2), s(t(2, 4, 2), 2, t(3))), tol=5, gradgrad=False),
    case("nn.functional.batch_norm", s(t(3, 4), t(4, grad=False), pos(4, grad=False)), s(t(3, 4, 2), None, None, t(4), t(4), True), s(t(3, 4, 2, 2), t(4, grad=False), pos(4, grad=False), t(4), t(4), False, 0.1, 1e-3), s(t(3, 4), None, None, None, None, True), errors=(s(t(3, 4), t(3), pos(3)), s(t(1, 4), None, None, None, None, True), s(t(3, 4), None, None)), vmap=False, tol=10),
    case("nn.functional.batch_norm", s(t(3, 4), lit([0.0] * 4, grad=False), lit([1.0] * 4, grad=False)), s(t(3, 4, 2), lit([0.5] * 4, grad=False), lit([2.0] * 4, grad=False)), fn=lambda torch, x, m, v: [torch.nn.functional.batch_norm(x, m, v, training=True, momentum=0.3), m, v], tag="running", vmap=False, tol=10),
    case("nn.functional.instance_norm", s(t(2, 3, 4)), s(t(2, 3, 4, 2), weight=t(3), bias=t(3)), s(t(2, 3, 4), t(3, grad=False), pos(3, grad=False), use_input_stats=False), errors=(s(t(2, 3, 1)),), vmap=False, tol=10, gradgrad=False), case("nn.functional.local_response_norm", s(t(2, 4, 3), 3), s(t(2, 4, 3, 3), 2, 1e-2, 0.5, 2.0), vmap=False, tol=3),
]

LINEAR = [
    case("nn.functional.linear", s(t(3, 4), t(2, 4)), s(t(3, 4), t(2, 4), t(2)), s(t(4), t(2, 4), t(2)), s(t(2, 3, 4), t(5, 4), t(5)), s(t(3, 4), t(4)), s(t(0, 4), t(2, 4)), errors=(s(t(3, 4), t(2, 3)), s(t(3, 4), ints(2, 4)), s(t(3, 4), t(2, 4), t(3)), s(t(3, 4), t(2, 4, dtype="float64"))), dtypes=REAL_DTYPES),
    case("nn.functional.bilinear", s(t(2, 3), t(2, 4), t(5, 3, 4), t(5)), s(t(3), t(4), t(2, 3, 4)), errors=(s(t(2, 3), t(3, 4), t(5, 3, 4)),), vmap=False), case("nn.functional.one_hot", s(ints(3, high=2), 4), s(ints(2, 3)), s(L(1), 3), errors=(s(L([3]), 2), s(L([-1]), 2), s(t(3)), s(L([]))), grad=False, vmap=False),
    case("nn.functional.embedding", s(ints(2, 3, high=4), t(5, 3)), s(ints(4, high=4), t(5, 3), padding_idx=1), s(L([1, 1, 2]), t(5, 3), -1), s(L([0, 1, 1]), t(3, 2), scale_grad_by_freq=True), s(ints(2, high=2, dtype="int32"), t(3, 2)), errors=(s(L([5]), t(5, 3)), s(L([-1]), t(5, 3)), s(t(2), t(5, 3)), s(L([0]), t(5, 3), 7)), vmap=False, gradgrad=False),
    case("nn.functional.embedding_bag", s(ints(2, 3, high=4), t(5, 3)), s(L([0, 1, 2, 3]), t(5, 3), L([0, 2])), s(ints(2, 3, high=4), t(5, 3), mode="sum"), s(ints(2, 3, high=4), t(5, 3), mode="max"), s(ints(2, 3, high=4), t(5, 3), mode="sum", per_sample_weights=t(2, 3)), vmap=False, gradgrad=False, errors=(s(ints(3), t(5, 3)), s(ints(2, 2), t(5, 3), mode="x"))),
    case("nn.functional.scaled_dot_product_attention", s(t(2, 3, 4), t(2, 5, 4), t(2, 5, 4)), s(t(1, 2, 3, 4), t(1, 2, 3, 4), t(1, 2, 3, 4), is_causal=True), s(t(1, 2, 3, 4), t(1, 2, 5, 4), t(1, 2, 5, 4), attn_mask=t(3, 5)), s(t(1, 2, 3, 4), t(1, 2, 4, 4), t(1, 2, 4, 4), lit([[True, False, True, True]] * 3, "bool")), s(t(1, 2, 3, 4), t(1, 2, 3, 4), t(1, 2, 3, 4), scale=0.3),
         s(t(1, 4, 3, 4), t(1, 2, 3, 4), t(1, 2, 3, 4), enable_gqa=True), s(t(3, 4), t(5, 4), t(5, 2)), errors=(s(t(1, 2, 3, 4), t(1, 2, 3, 5), t(1, 2, 3, 4)), s(t(4), t(4), t(4)), s(t(3, 4), t(3, 4), t(3, 4), t(3, 3), is_causal=True)), vmap=False, gradgrad=False, tol=5),
    case("nn.functional.cosine_similarity", s(t(3, 4), t(3, 4)), s(t(3, 4), t(4), dim=-1), s(t(3, 4), t(3, 4), 0), s(lit([0.0, 0.0], grad=False), t(2), dim=0), errors=(s(t(3), t(4), 0),), gradgrad=False, tol=3), case("torch.cosine_similarity", s(t(3, 4), t(3, 4)), gradgrad=False, tol=3), case("nn.functional.pairwise_distance", s(t(3, 4), t(3, 4)), s(t(3, 4), t(3, 4), 1.0, keepdim=True), s(t(4), t(4)), gradgrad=False, vmap=False, tol=3),
    case("nn.functional.pdist", s(t(4, 3)), s(t(3, 2), 1.0), gradgrad=False, vmap=False, tol=5, errors=(s(t(3)),)),
]

RESAMPLING = [
    case("nn.functional.pad", s(t(2, 3), (1, 2)), s(t(2, 3), (1, 1, 2, 0), value=5.0), s(t(2, 3), (-1, 1)), s(t(1, 2, 5), (1, 2), "reflect"), s(t(1, 2, 5), (1, 2), mode="replicate"), s(t(1, 2, 5), (2, 2), mode="circular"), s(t(1, 2, 4, 5), (1, 2, 2, 1), "reflect"), s(t(1, 2, 4, 5), (1, 2, 2, 1), "replicate"), s(t(1, 2, 4, 5), (1, 2, 2, 1), "circular"), s(ints(2), (1, 1)), s(t(2), ()), s(bools(2), (0, 1), value=True),
         s(t(1, 1, 3, 3, 3), (1, 1, 1, 1, 1, 1), "replicate"), s(t(1, 1, 3, 3, 3), (1, 1, 1, 1, 1, 1), "reflect"), errors=(s(t(2), (1,)), s(t(2), (1, 1, 1, 1)), s(t(1, 2, 3), (3, 3), "reflect"), s(t(2, 3), (1, 1), "x"), s(t(1, 2), (-2, -1)), s(t(2, 3), (1, 1), "reflect", 2.0)), vmap=False, dtypes=ALL_DTYPES),
    case("nn.functional.interpolate", *[s(t(1, 2, 4), scale_factor=2, mode=m) for m in ("nearest", "linear", "area", "nearest-exact")], *[s(t(1, 2, 4, 4), size=(3, 6), mode=m) for m in ("nearest", "bilinear", "bicubic", "area", "nearest-exact")], s(t(1, 2, 3, 4), scale_factor=(2, 1.5), mode="bilinear", align_corners=True), s(t(1, 2, 3, 4), 5, mode="bicubic", align_corners=True), s(t(1, 1, 2, 3, 4), size=(3, 3, 3), mode="trilinear"), s(t(1, 1, 2, 2, 2), scale_factor=2),
         s(t(1, 2, 6, 6), size=(3, 3), mode="bilinear", antialias=True), s(t(1, 2, 6, 6), size=(4, 3), mode="bicubic", antialias=True), s(t(1, 2, 5, 5), scale_factor=0.7, mode="bilinear"), s(t(1, 2, 5, 5), scale_factor=0.7, mode="bilinear", recompute_scale_factor=True), s(t(1, 1, 4, 4), size=2), s(t(1, 1, 3), size=7),
         errors=(s(t(1, 2, 4)), s(t(1, 2, 4), size=2, scale_factor=2), s(t(1, 2, 4), size=(2, 2)), s(t(1, 2, 4, 4), size=2, mode="linear"), s(t(1, 2, 4), size=2, mode="x"), s(t(1, 2, 4), size=2, align_corners=True), s(t(2, 4), size=2), s(t(1, 1, 4, 4), size=(0, 2), mode="bilinear")), vmap=False, gradgrad=False, tol=10),
    case("nn.functional.upsample_nearest", s(t(1, 2, 3), scale_factor=2), vmap=False, gradgrad=False), case("nn.functional.upsample_bilinear", s(t(1, 2, 3, 3), scale_factor=2), vmap=False, gradgrad=False), case("nn.functional.upsample", s(t(1, 2, 3), size=6), vmap=False, gradgrad=False),
    case("nn.functional.grid_sample", *[s(t(1, 2, 4, 5), t(1, 3, 2, 2, low=-1.3, high=1.3), mode=m, padding_mode=p, align_corners=a) for m in ("bilinear", "nearest", "bicubic") for p in ("zeros", "border", "reflection") for a in (False, True)], s(t(1, 1, 3, 3, 3), t(1, 2, 2, 2, 3, low=-1.2, high=1.2), align_corners=False), s(t(1, 1, 3, 3, 3), t(1, 2, 2, 2, 3, low=-1, high=1), "nearest", "border", True),
         errors=(s(t(1, 2, 3), t(1, 2, 2)), s(t(1, 2, 3, 3), t(2, 2, 2, 2)), s(t(1, 2, 3, 3), t(1, 2, 2, 3)), s(t(1, 2, 3, 3), t(1, 2, 2, 2), mode="x"), s(t(1, 1, 3, 3, 3), t(1, 2, 2, 2, 3), mode="bicubic")), vmap=False, gradgrad=False, tol=20),
    case("nn.functional.affine_grid", s(t(1, 2, 3), (1, 1, 3, 4)), s(t(1, 2, 3), (1, 1, 3, 4), align_corners=True), s(t(1, 3, 4), (1, 1, 2, 3, 2), align_corners=False), errors=(s(t(1, 3, 3), (1, 1, 3, 4)), s(t(1, 2, 3), (1, 1, 0, 4))), vmap=False), case("nn.functional.pixel_shuffle", s(t(1, 4, 2, 3), 2), s(t(4, 2, 2), 2), errors=(s(t(1, 3, 2, 2), 2), s(t(2, 2), 2), s(t(1, 4, 2, 2), 0))), case("nn.functional.pixel_unshuffle", s(t(1, 1, 4, 6), 2), errors=(s(t(1, 1, 3, 4), 2),)),
    case("nn.functional.channel_shuffle", s(t(1, 4, 2, 2), 2), errors=(s(t(1, 3, 2, 2), 2),)), case("nn.functional.unfold", s(t(1, 2, 4, 5), 2), s(t(1, 2, 4, 5), (2, 3), 1, 1, 2), s(t(1, 2, 5, 5), 3, dilation=2, padding=1), s(t(2, 4, 4), 2), errors=(s(t(1, 2, 2, 2), 3), s(t(2, 2), 1), s(t(1, 2, 4, 4), 0)), vmap=False), case("nn.functional.fold", s(t(1, 8, 12), (4, 5), 2), s(t(1, 8, 4), (4, 4), 2, stride=2), s(t(8, 4), (4, 4), 2, stride=2), errors=(s(t(1, 7, 4), (4, 4), 2, stride=2), s(t(1, 8, 5), (4, 4), 2, stride=2)), vmap=False),
]

CASES = ACTIVATIONS + NORMS + LINEAR + RESAMPLING
