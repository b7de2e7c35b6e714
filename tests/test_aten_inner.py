"""Operators of torch.ops.aten that PyTorch's own functions are made of: kernels with what a derivative reads, derivatives by those, updates of parameters."""
import warnings

import pytest
from same import caught, same

PLACES = """
x = torch.linspace(-2, 2, 24).reshape(2, 3, 4).sin()
y = torch.linspace(-1, 3, 24).reshape(2, 3, 4).cos()
m = torch.linspace(-2, 2, 12).reshape(3, 4).sin() + torch.arange(12.).reshape(3, 4) / 7
s = torch.tensor([[3., 1., 2.], [1., 4., 0.5], [2., 0.5, 7.]])
q4 = torch.linspace(-2, 2, 48).reshape(2, 2, 3, 4).sin()
k4 = torch.linspace(-1, 3, 80).reshape(2, 2, 5, 4).cos()
v4 = torch.linspace(-3, 3, 80).reshape(2, 2, 5, 4).sin()
lp = torch.linspace(-3, 3, 40).reshape(5, 2, 4).sin().log_softmax(2)
idx = torch.tensor([0, 1, 2, 2, 1])
off = torch.tensor([0, 2, 2])
gb = torch.linspace(-1, 1, 12).reshape(3, 4).cos()
A = dict(lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False)
S = dict(weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.1, nesterov=False, maximize=False, is_first_step=False)
G = dict(lr=0.1, lr_decay=0.01, weight_decay=0.1, eps=1e-8, maximize=False)

def bag(mode, weights=None, padding=-1):
    return aten._embedding_bag(m, idx, off, False, mode, False, weights, False, padding)

def params():
    return [torch.linspace(-1, 1, 6).reshape(2, 3), torch.ones(4)]

def grads():
    return [torch.linspace(1, 2, 6).reshape(2, 3).sin(), -torch.ones(4) * 0.3]

def zeros():
    return [torch.zeros(2, 3) + 0.1, torch.zeros(4) + 0.2]

def steps():
    return [torch.tensor(3.0), torch.tensor(3.0)]

def upd(f, *lists, **named):
    f(*lists, **named)
    return [list(written) for written in lists]

def outs(f, *given):
    f(*given)
    return given[1:3]

def attended():
    return aten._scaled_dot_product_flash_attention_for_cpu(q4, q4.sin(), v4[:, :, :3], 0.0, True)

def seen_set_data(t, data):
    aten.set_data(t, data)
    return t
"""

CALLS = """
aten._add_relu.Tensor(x, y, alpha=2)
aten._add_relu.Scalar(x, 0.5)
aten._add_relu_.Tensor(x.clone(), y)
aten._addmm_activation(torch.ones(4), m, torch.ones(4, 4), beta=2, alpha=0.5)
aten._addmm_activation(torch.ones(4), m, torch.ones(4, 4), use_gelu=True)
aten._weight_int8pack_mm(m, torch.arange(-8, 8).reshape(4, 4).to(torch.int8), torch.tensor([.1, .2, .3, .4]))
aten._weight_int8pack_mm(m, torch.ones(4, 3).to(torch.int8), torch.ones(4))
aten._weight_int8pack_mm(m.double(), torch.ones(4, 4).to(torch.int8), torch.ones(4))
aten._scaled_dot_product_attention_math(q4, k4, v4)
aten._scaled_dot_product_attention_math(q4, k4, v4, torch.ones(3, 5).tril().bool())
aten._scaled_dot_product_attention_math(q4, k4, v4, torch.ones(3, 5).tril())
aten._scaled_dot_product_attention_math(q4, q4, q4, None, 0.0, True)
aten._scaled_dot_product_attention_math(q4, k4, v4, None, 0.5, False, torch.ones(2, 2, 3, 5).tril().bool(), scale=0.3)
aten._scaled_dot_product_attention_math(q4.repeat(1, 2, 1, 1), k4, v4, enable_gqa=True)
aten._scaled_dot_product_attention_math(q4, k4, v4, torch.zeros(3, 5).bool())
aten._scaled_dot_product_flash_attention_for_cpu_backward(q4.cos(), q4, q4.sin(), v4[:, :, :3], *attended(), 0.0, True)
aten._masked_softmax(m, m > 0.5, 1, 2)
aten._masked_softmax(q4, torch.ones(3, 4).triu(1).bool(), 3, 2)
aten._masked_softmax(q4 @ q4.mT, torch.ones(3, 3).triu(1).bool(), 3, 0)
aten._masked_softmax(q4 @ q4.mT, torch.tensor([[False, True, False], [True, False, False]]), 3, 1)
aten._masked_softmax(m, torch.ones(3, 4).bool(), 1, 2)
aten._masked_softmax_backward(m.cos(), m.softmax(1), m > 0.5, 1)
aten._ctc_loss(lp, torch.tensor([[1, 2], [3, 0]]), [5, 4], [2, 1])[0]
aten._ctc_loss(lp, torch.tensor([[1, 2], [3, 3]]), [5, 5], [2, 2])
aten._ctc_loss(lp, torch.tensor([[1, 1], [3, 2]]), torch.tensor([5, 5]), torch.tensor([2, 2]))
aten._ctc_loss(lp, torch.tensor([1, 2, 3, 3]), [5, 5], [2, 2], 0)
aten._ctc_loss_backward(torch.tensor([1., 2.]), lp, torch.tensor([[1, 2], [3, 3]]), [5, 5], [2, 2], *aten._ctc_loss(lp, torch.tensor([[1, 2], [3, 3]]), [5, 5], [2, 2]), 0)
aten._ctc_loss_backward(torch.tensor([1., 2.]), lp, torch.tensor([[1, 2], [3, 0]]), [5, 4], [2, 1], *aten._ctc_loss(lp, torch.tensor([[1, 2], [3, 0]]), [5, 4], [2, 1]), 0, True)
aten._embedding_bag_backward(gb, idx, off, *bag(0)[1:], 5, False, 0, False, None)
aten._embedding_bag_backward(gb, idx, off, *bag(1)[1:], 5, False, 1, False, None)
aten._embedding_bag_backward(gb, idx, off, *bag(2)[1:], 5, False, 2, False, None)
aten._embedding_bag_backward(gb, idx, off, *bag(0)[1:], 5, False, 0, True, None)
aten._embedding_bag_backward(gb, idx, off, *bag(0, torch.arange(5.))[1:], 5, False, 0, False, torch.arange(5.))
aten._embedding_bag_backward(gb, idx, off, *bag(0)[1:], 5, True, 0, False, None)
aten._embedding_bag_backward(gb, idx, off, *bag(1, None, 2)[1:], 5, False, 1, False, None, 2)
aten._embedding_bag_dense_backward(gb, idx, torch.tensor([0, 0, 2, 2, 2]), torch.tensor([2, 0, 3]), torch.tensor([]).long(), 5, False, 1, None)
aten._embedding_bag_sparse_backward(gb, idx, off, torch.tensor([0, 0, 2, 2, 2]), torch.tensor([2, 0, 3]), 5, False, 0, None)
aten._embedding_bag_per_sample_weights_backward(gb, m, idx, off, torch.tensor([0, 0, 2, 2, 2]), 0)
aten._embedding_bag_per_sample_weights_backward(gb, m, idx, off, torch.tensor([0, 0, 2, 2, 2]), 0, 1)
aten._embedding_bag_per_sample_weights_backward(gb, m, idx, off, torch.tensor([0, 0, 2, 2, 2]), 1)
aten.embedding_renorm(m, torch.tensor([0, 2, 2]), 1.0, 2.0)
aten.embedding_renorm_(m.clone(), torch.tensor([[0], [1]]), 0.5, 1.0)
aten.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 2, -8, 7)
aten.fake_quantize_per_channel_affine_cachemask(m, torch.ones(3) / 9, torch.zeros(3, dtype=torch.int32), 0, -8, 7)
aten.fake_quantize_per_tensor_affine_cachemask_backward(x, x > 0)
aten.fake_quantize_per_channel_affine_cachemask_backward(x, x > 0)
upd(aten._fused_adam_, params(), grads(), zeros(), zeros(), [], steps(), **A)
upd(aten._fused_adamw_, params(), grads(), zeros(), zeros(), [], steps(), **A)
upd(aten._fused_adam_, params(), grads(), zeros(), zeros(), zeros(), steps(), **{**A, "amsgrad": True, "maximize": True})
upd(aten._fused_adamw_, params(), grads(), zeros(), zeros(), [], steps(), **A, grad_scale=torch.tensor(4.0), found_inf=torch.tensor(0.0))
upd(aten._fused_adamw_, params(), grads(), zeros(), zeros(), [], steps(), **A, grad_scale=torch.tensor(4.0), found_inf=torch.tensor(1.0))
upd(aten._fused_adamw_.tensor_lr, params(), grads(), zeros(), zeros(), [], steps(), **{**A, "lr": torch.tensor(0.2)})
aten._fused_adam(params(), grads(), zeros(), zeros(), [], steps(), **A)
upd(aten._fused_sgd_, params(), grads(), zeros(), **S)
upd(aten._fused_sgd_, params(), grads(), zeros(), **{**S, "nesterov": True, "dampening": 0.0})
upd(aten._fused_sgd_, params(), grads(), zeros(), **{**S, "is_first_step": True, "maximize": True})
upd(aten._fused_sgd_, params(), grads(), [], **{**S, "momentum": 0.0})
aten._fused_sgd(params(), grads(), zeros(), **S)
upd(aten._fused_adagrad_, params(), grads(), zeros(), steps(), **G)
aten._fused_adagrad(params(), grads(), zeros(), steps(), **G)
aten._foreach_copy(params(), grads())
aten._foreach_zero(params())
aten._amp_foreach_non_finite_check_and_unscale(grads(), torch.tensor([0.0]), torch.tensor([0.5]))
aten._amp_update_scale(torch.tensor(4.0), torch.tensor(1, dtype=torch.int32), torch.tensor(0.0), 2.0, 0.5, 2)
aten.cummaxmin_backward(y, x, x.cummax(1)[1], 1)
outs(aten._cummax_helper, x, torch.empty(2, 3, 4), torch.empty(2, 3, 4).long(), 1)
outs(aten._cummin_helper, x, torch.empty(2, 3, 4), torch.empty(2, 3, 4).long(), 2)
aten.matrix_exp_backward(s / 5, s.cos())
aten.glu_jvp(torch.nn.functional.glu(x, 2), x, y, 2)
aten._segment_reduce_backward(torch.ones(2, 4), torch.segment_reduce(m, "max", lengths=torch.tensor([2, 1])), m, "max", lengths=torch.tensor([2, 1]))
aten._segment_reduce_backward(torch.ones(2, 4), torch.segment_reduce(m, "mean", lengths=torch.tensor([2, 1])), m, "mean", lengths=torch.tensor([2, 1]))
aten._linalg_det(s)
aten._linalg_det(s + torch.arange(9.).reshape(3, 3))
aten._linalg_slogdet(s + torch.arange(9.).reshape(3, 3))
aten._linalg_svd(s, False, False)
aten._linalg_svd(m)[1]
aten._unsafe_masked_index(m, torch.tensor([[True], [False], [True]]), [torch.tensor([0, 99, 2])], 7.0)
aten._unsafe_masked_index(m, torch.tensor([True, False, True]), [None, torch.tensor([0, 99, 2])], 7.0)
aten._unsafe_masked_index_put_accumulate(m, torch.tensor([[True], [False], [True]]), [torch.tensor([0, 99, 0])], torch.ones(3, 4))
aten.rrelu_with_noise_(x.clone(), torch.ones_like(x), 0.1, 0.3)
aten._transform_bias_rescale_qkv(torch.linspace(-1, 1, 2*3*12).reshape(2, 3, 12), torch.arange(12.), 2)
aten._saturate_weight_to_fp16(torch.tensor([[1e6, -1e6, 2.0]]))
aten._chunk_cat([m, torch.ones(5, 2)], 0, 2)
aten._chunk_cat([x, y], 1, 2)
aten._choose_qparams_per_tensor(m)
aten._choose_qparams_per_tensor(m, True)
aten._choose_qparams_per_tensor(m * 0)
aten.normal_functional(m, 1.0, 2.0)
aten.native_norm(m.to_sparse())
aten.native_norm(m.to_sparse(), 3)
aten._to_cpu([x])
aten._lazy_clone(x)
aten._is_zerotensor(x)
aten.sym_is_contiguous(x.transpose(0, 1))
aten._masked_softmax(m, m, 1, 2)
aten._embedding_bag(m, idx, off, False, 1, False, None, False, -1)
aten._embedding_bag(m, idx, off, False, 1, False, None, False, 2)
seen_set_data(x.clone(), y)
"""


def known(torch):
    names = {"torch": torch, "aten": torch.ops.aten}
    exec(PLACES, names)
    return names


def plain(made):
    """Sparse results as strided ones."""
    if isinstance(made, (tuple, list)):
        return [plain(part) for part in made]
    return made.coalesce().to_dense() if getattr(made, "is_sparse", False) else made


@pytest.mark.parametrize("call", CALLS.split("\n")[1:-1])
def test_operators(oracle, subject, call):
    @same
    def program(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return caught(lambda: plain(eval(call, known(torch))))
    program(oracle, subject)


@same
def test_their_results_are_in_the_graph(torch):
    names = known(torch)
    x = names["x"].clone().requires_grad_()
    for make in (lambda: torch.ops.aten._scaled_dot_product_attention_math(x, names["y"], names["x"])[0],):
        x.grad = None
        (make() * 2).sum().backward()
        yield x.grad


@same
def test_drawn(torch):
    x = torch.ones(40)
    return torch.ops.aten.normal_functional(x, 1.0, 2.0), x
