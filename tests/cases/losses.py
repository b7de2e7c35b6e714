"""Losses, each with every reduction."""
from case import Case, case, ints, lit, pos, s, t

REDUCTIONS = ("mean", "sum", "none")


def L(data):
    return lit(data, "int64")


def loss(leaf: str, *args, more=(), **flags) -> Case:
    samples = [s(*args)] + [s(*args, reduction=r) for r in REDUCTIONS] + list(more)
    return case(f"nn.functional.{leaf}", *samples, **{"errors": (s(*args, reduction="x"),), "vmap": False, "tol": 5,
        **flags})


LOG = {"low": -3.0, "high": -0.1}
SIGNS = lit([1.0, -1.0, 1.0], grad=False)

CASES = [
    loss("mse_loss", t(3, 4), t(3, 4),
         more=(s(t(3), t(3), weight=pos(3, grad=False)), s(t(2, 3), t(3)), s(t(0), t(0))),
         errors=(s(t(3), t(3), reduction="x"), s(t(3), t(4)))),
    loss("l1_loss", t(3, 4), t(3, 4), more=(s(t(2, 1), t(3)),), errors=(s(t(3), t(4)),), gradgrad=False),
    loss("smooth_l1_loss", t(3, 4), t(3, 4), more=(s(t(3), t(3), beta=0.5), s(t(3), t(3), beta=0.0)),
         errors=(s(t(3), t(3), beta=-1.0),)),
    loss("huber_loss", t(3, 4), t(3, 4), more=(s(t(3), t(3), delta=0.5),)),
    loss("cross_entropy", t(3, 4), L([0, 3, 1]), more=(s(t(3, 4), L([0, 3, 1]), weight=pos(4, grad=False)),
         s(t(3, 4), L([0, -100, 1])), s(t(3, 4), L([0, 2, 1]), ignore_index=2),
         s(t(3, 4), L([0, 2, 1]), label_smoothing=0.1),
         s(t(3, 4), L([0, 2, 1]), label_smoothing=0.2, weight=pos(4, grad=False)),
         s(t(3, 4), L([0, -100, 1]), label_smoothing=0.2), s(t(3, 4), pos(3, 4, low=0, high=1)),
         s(t(3, 4), pos(3, 4), label_smoothing=0.1, weight=pos(4, grad=False)), s(t(2, 3, 4), ints(2, 4, high=2)),
         s(t(2, 3, 2, 2), ints(2, 2, 2, high=2)), s(t(4), L(2)),
         s(t(3, 4), L([0, 1, 2]), reduction="sum", weight=pos(4, grad=False)), s(t(2, 3), L([-100, -100])),
         s(t(3, 4), L([0, 3, 1]), reduction="none", weight=pos(4, grad=False)), s(t(2, 3, 2), pos(2, 3, 2))),
         errors=(s(t(3, 4), L([0, 4, 1])), s(t(3, 4), L([0, -1, 1])), s(t(3, 4), L([0, 1])),
         s(t(3, 4), lit([0.0, 1.0, 2.0])), s(t(3, 4), L([0, 1, 2]), weight=pos(3, grad=False)),
         s(t(3, 4), L([0, 1, 2]), reduction="x"), s(t(3, 4), L([0, 1, 2]), label_smoothing=2.0),
         s(t(3, 4), lit([0, 1, 2], "int32")))),
    loss("nll_loss", t(3, 4, **LOG), L([0, 3, 1]), more=(s(t(3, 4, **LOG), L([0, 3, 1]), weight=pos(4, grad=False)),
         s(t(3, 4, **LOG), L([0, -100, 1])), s(t(3, 4), L([0, 2, 1]), ignore_index=2, reduction="sum"),
         s(t(2, 3, 4), ints(2, 4, high=2)), s(t(2, 3, 2, 2), ints(2, 2, 2, high=2)), s(t(4), L(1))),
         errors=(s(t(3, 4), L([0, 4, 1])), s(t(3, 4), L([0, 1])), s(t(3, 4), lit([0.0, 1.0, 2.0])),
         s(t(3, 4), L([0, 1, 2]), weight=pos(3, grad=False)))),
    loss("binary_cross_entropy", pos(3, 4, low=0.1, high=0.9), pos(3, 4, low=0, high=1),
         more=(s(pos(3, low=0.1, high=0.9), pos(3, low=0, high=1), weight=pos(3, grad=False)),
         s(lit([0.0, 1.0], grad=False), lit([0.0, 1.0], grad=False)),
         s(lit([0.0, 1.0], grad=False), lit([1.0, 0.0], grad=False))), errors=(s(lit([1.5]), lit([1.0])),
         s(pos(3, low=0.1, high=0.9), pos(2)), s(pos(3, low=0.1, high=0.9), ints(3, high=1)))),
    loss("binary_cross_entropy_with_logits", t(3, 4), pos(3, 4, low=0, high=1),
         more=(s(t(3, 4), pos(3, 4, low=0, high=1), weight=pos(4, grad=False)),
         s(t(3, 4), pos(3, 4, low=0, high=1), pos_weight=pos(4, grad=False)),
         s(lit([100.0, -100.0]), lit([0.0, 1.0], grad=False))),
         errors=(s(t(3), t(2)), s(t(3), pos(3, low=0, high=1), reduction="x"))),
    loss("kl_div", t(3, 4, **LOG), pos(3, 4, low=0.1, high=0.9),
         more=(s(t(3, 4, **LOG), pos(3, 4, low=0.1, high=0.9), reduction="batchmean"),
         s(t(3, 4, **LOG), t(3, 4, **LOG), log_target=True),
         s(t(2, **LOG), lit([0.0, 1.0], grad=False), reduction="sum"))),
    loss("poisson_nll_loss", t(3, 4), pos(3, 4),
         more=(s(pos(3), pos(3), log_input=False), s(t(3), pos(3, low=2, high=5), full=True)), tol=10),
    loss("gaussian_nll_loss", t(3, 4), t(3, 4), pos(3, 4),
         more=(s(t(3, 4), t(3, 4), pos(3, 1)), s(t(3), t(3), pos(3), full=True)),
         errors=(s(t(3), t(3), lit([-1.0, 1.0, 1.0])), s(t(3), t(3), pos(2)))),
    loss("soft_margin_loss", t(3), SIGNS, errors=(s(t(3), t(2)),)),
    loss("hinge_embedding_loss", t(3), SIGNS, more=(s(t(3), SIGNS, margin=0.5),)),
    loss("margin_ranking_loss", t(3), t(3), SIGNS, more=(s(t(3), t(3), SIGNS, margin=0.3),),
         errors=(s(t(3, 2), t(3, 2), t(3)),)),
    loss("cosine_embedding_loss", t(3, 4), t(3, 4), SIGNS,
         more=(s(t(3, 4), t(3, 4), SIGNS, margin=0.2), s(t(4), t(4), lit(-1.0, grad=False))), gradgrad=False),
    loss("triplet_margin_loss", t(3, 4), t(3, 4), t(3, 4),
         more=(s(t(3, 4), t(3, 4), t(3, 4), 0.5, 1.0), s(t(3, 4), t(3, 4), t(3, 4), swap=True), s(t(4), t(4), t(4))),
         gradgrad=False),
    loss("triplet_margin_with_distance_loss", t(3, 4), t(3, 4), t(3, 4), gradgrad=False),
    loss("multilabel_soft_margin_loss", t(3, 4), pos(3, 4, low=0, high=1),
         more=(s(t(3, 4), pos(3, 4, low=0, high=1), weight=pos(4, grad=False)),)),
    loss("multi_margin_loss", t(3, 4), L([0, 3, 1]), more=(s(t(3, 4), L([0, 3, 1]), p=2),
         s(t(3, 4), L([0, 3, 1]), margin=0.5, weight=pos(4, grad=False)), s(t(4), L(1))), gradgrad=False),
    loss("multilabel_margin_loss", t(2, 4), L([[1, 3, -1, 0], [0, -1, 2, 1]]), gradgrad=False),
    case("margin_ranking_loss", s(t(3, 3), t(3, 3), SIGNS), s(t(3), t(2, 3), SIGNS, 0.2, 1), method=False, vmap=False),
    case("nn.functional.ctc_loss", s(t(6, 2, 4), L([[1, 2, 1], [3, 3, 1]]), L([6, 5]), L([3, 2])),
         s(t(6, 2, 4), L([1, 2, 1, 3, 3]), L([6, 6]), L([3, 2]), reduction="sum"),
         s(t(6, 2, 4), L([[1, 2], [3, 3]]), L([6, 6]), L([2, 2]), blank=0, reduction="none"),
         s(t(2, 1, 4), L([[1, 1, 1]]), L([2]), L([3]), zero_infinity=True),
         s(t(6, 2, 4), L([[1, 2, 1], [2, 3, 1]]), (6, 6), (3, 3)),
         fn=lambda torch, x, *a, **k: torch.nn.functional.ctc_loss(x.log_softmax(-1), *a, **k), vmap=False,
         gradgrad=False, tol=10),
]
