"""Operators of torch.ops.aten that are functions in another form, or gradients of others, beside PyTorch's."""
import pytest
from same import outcomes, same

# what the expressions read
PLACES = """
x = torch.linspace(-2, 2, 24).reshape(2, 3, 4).sin()
far = torch.arange(24.0).reshape(2, 3, 4).sin()
y = torch.linspace(-1, 3, 24).reshape(2, 3, 4).cos()
m = torch.linspace(-2, 2, 12).reshape(3, 4).sin() + torch.arange(12.).reshape(3, 4) / 7
s = torch.tensor([[3., 1., 2.], [1., 4., 0.5], [2., 0.5, 7.]])
image = torch.linspace(-2, 2, 2 * 3 * 6 * 6).reshape(2, 3, 6, 6).sin()
volume = torch.linspace(-2, 2, 2 * 2 * 4 * 4 * 4).reshape(2, 2, 4, 4, 4).sin()
labels = torch.tensor([1, 0, 3])
many = torch.tensor([[1, 2, -1, 0], [0, -1, 2, 1], [3, 2, 1, 0]])
g2 = torch.linspace(-1, 1, 2 * 3 * 3 * 3).reshape(2, 3, 3, 3).cos()
"""

FORMS = """
aten._adaptive_avg_pool3d(volume, [2, 2, 2]) aten._pad_enum(x, [1, 2], 1) aten._pad_enum(x, [1, 2], 0, 3.0) aten._pad_circular(x, [1, 2])
aten.reflection_pad1d(x, [1, 2]) aten.replication_pad2d(image, [1, 2, 0, 1]) aten.reflection_pad3d(volume, [1, 1, 1, 1, 1, 1])
aten._convolution_mode(image, torch.ones(2, 3, 3, 3), None, [1, 1], "same", [1, 1], 1)
aten.thnn_conv2d(image, torch.ones(2, 3, 3, 3), [3, 3], torch.ones(2), [2, 2], [1, 1])
aten.slow_conv_dilated2d(image, torch.ones(2, 3, 2, 2), [2, 2], None, [1, 1], [0, 0], [2, 2]) aten.slow_conv3d(volume, torch.ones(2, 2, 2, 2, 2), [2, 2, 2])
aten.slow_conv_transpose2d(image, torch.ones(3, 2, 2, 2), [2, 2], None, [2, 2]) aten.slow_conv_transpose3d(volume, torch.ones(2, 2, 2, 2, 2), [2, 2, 2])
aten.slow_conv_dilated3d(volume, torch.ones(2, 2, 2, 2, 2), [2, 2, 2]) aten._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-5)
aten._native_batch_norm_legit(x, None, torch.ones(3), torch.zeros(3), torch.ones(3), True, 0.1, 1e-5)
aten._native_batch_norm_legit(x, None, None, torch.zeros(3), torch.ones(3), False, 0.1, 1e-5)
aten._native_batch_norm_legit_functional(x, torch.ones(3), None, torch.zeros(3), torch.ones(3), True, 0.1, 1e-5)
aten._fused_rms_norm(x, [4], torch.arange(4.), 1e-3) aten._fused_rms_norm(x, [3, 4], None, None) aten._weight_norm_interface(m, torch.ones(3, 1), 0)
aten._weight_norm(m, torch.ones(1, 4), 1) aten.norm_except_dim(x, 2, 1) aten.norm_except_dim(x) aten.norm_except_dim(x, 2, -1)
aten._safe_softmax(torch.tensor([[-float("inf")] * 2, [1.0, 2.0]]), 1) aten._prelu_kernel(x, torch.tensor(0.3)) aten.log_sigmoid_forward(m)
aten.rrelu_with_noise(x, torch.ones_like(x), 0.1, 0.3) aten.multilabel_margin_loss_forward(m, many, 1) aten.multilabel_margin_loss_forward(m, many, 0)
aten.nll_loss2d(image[:, :, :2, :2].log_softmax(1), torch.tensor([[[0, 1], [2, 0]], [[1, 1], [0, 2]]]), None, 2)
aten._embedding_bag(m, torch.tensor([0, 1, 2, 2]), torch.tensor([0, 2]), False, 1)[0]
aten._embedding_bag_forward_only(m, torch.tensor([0, 1, 2, 2]), torch.tensor([0, 2]), False, 2)[0] aten._fft_r2c(x, [1, 2], 0, True)
aten._fft_r2c(x, [2], 1, False) aten._fft_c2c(x + 1j * y, [0, 2], 2, True) aten._fft_c2c(x + 1j * y, [1], 2, False) aten._fft_c2c(x + 1j * y, [1], 1, False)
aten._fft_c2r(torch.fft.rfftn(x, dim=(1, 2)), [1, 2], 2, 4) aten._fft_c2r(x + 1j * y, [2], 0, 6) aten._linalg_eigh(s)[0] aten._linalg_eigh(s, "U", False)
aten._linalg_eigvals(s).real.sort()[0] aten.unique_dim(many, 0, True, False, True) aten.unique_dim_consecutive(many[[0, 0, 1]], 0) aten._unique(many)
aten._unsafe_index(m, [None, labels]) aten._unsafe_index_put(m, [torch.tensor([0, 0])], torch.ones(4), True)
aten._index_put_impl_(m.clone(), [torch.tensor([1])], torch.tensor(9.0)) aten._trilinear(x, y, x, [], [], [], [1])
aten._trilinear(m, torch.ones(5, 4, 4), m, [1, 3], [0], [1, 2], [2, 3]) aten._aminmax(x) aten._aminmax.dim(x, 1, True) aten._stack([x, y], 1)
aten._is_all_true(x > 0) aten._is_any_true(x > 0) aten._euclidean_dist(m, m + 1) aten._cdist_forward(m, m + 1, 1.0, None) aten._pdist_forward(m, 3.0)
aten._logcumsumexp(x, 1) aten.nonzero_numpy(x > 0) aten.pad_sequence([m, m[:1]], True, 7.0) aten.pad_sequence([m, m[:1]], padding_side="left")
aten.flatten_dense_tensors([x, m]) aten.unflatten_dense_tensors(torch.arange(36.0), [x, m]) aten.lift(x) aten.lift_fresh(x) aten._conj(x + 1j * y)
aten._conj_physical(x + 1j * y) aten._reshape_alias(m, [4, 3], [3, 1]) aten._reshape_copy(m, [2, 6]) aten._conj_copy(x + 1j * y) aten._neg_view(x)
aten._neg_view_copy(x) aten._cast_Int(x) aten._cast_Double(x) aten._cast_Half(x) aten._cast_Byte(m.abs()) aten.is_distributed(x) aten.is_vulkan_available()
aten.can_cast(torch.float32, torch.int32) aten.sym_constrain_range(3, min=1, max=5) aten.sym_constrain_range_for_size(3, min=2)
aten.sym_constrain_range(7, min=1, max=5) aten.gelu_(x.clone()) aten.gelu_(x.clone(), approximate="tanh") aten.relu6_(x * 9) aten.__iand__(many.clone(), 1)
aten.__lshift__(many, 1) aten.__irshift__.Tensor(many.clone(), torch.ones_like(many)) aten.grid_sampler_2d(image, torch.zeros(2, 3, 3, 2) + 0.3, 0, 0, False)
aten.grid_sampler_3d(volume, torch.zeros(2, 2, 2, 2, 3) + 0.3, 1, 1, True)
aten.col2im(torch.arange(48.0).reshape(1, 4, 12), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1]) aten._shape_as_tensor(x)
aten._reshape_from_tensor(x, torch.tensor([4, 6])) aten._dim_arange(x, 1)
aten._int_mm(torch.ones(17, 8, dtype=torch.int8), torch.ones(8, 16, dtype=torch.int8)) aten._assert_async(torch.tensor(1)) aten.hash_tensor(many)
aten.fake_quantize_per_tensor_affine(x, 0.1, 2, -8, 7)
aten.fake_quantize_per_channel_affine(m, torch.ones(3) / 9, torch.zeros(3, dtype=torch.int32), 0, -8, 7)
aten.gru_cell(m, m[:, :2], torch.ones(6, 4) / 5, torch.ones(6, 2) / 5) aten.lstm_cell(m, [m[:, :2], m[:, 2:]], torch.ones(8, 4) / 5, torch.ones(8, 2) / 5)
aten.rnn_tanh_cell(m, m, m[[0, 1, 2, 0]], m[[0, 1, 2, 0]]) aten.rnn_relu_cell(m, m, m[[0, 1, 2, 0]], m[[0, 1, 2, 0]])
aten._pack_padded_sequence(x, torch.tensor([3, 1]), True) aten._pad_packed_sequence(m, torch.tensor([2, 1]), True, 0.0, 4)
aten._amp_update_scale_(torch.tensor(4.0), torch.tensor(1, dtype=torch.int32), torch.tensor(0.0), 2.0, 0.5, 2) aten.to_sparse(s).to_dense()
aten.to_sparse_csr(s).to_dense() aten.sparse_dim(s.to_sparse()) aten.dense_dim(s.to_sparse()) aten.crow_indices(s.to_sparse_csr())
aten.values(s.to_sparse_csr()) aten.indices(s.to_sparse().coalesce()) aten.is_coalesced(s.to_sparse()) aten.coalesce(s.to_sparse()).to_dense()
aten.crow_indices_copy(s.to_sparse_csr()) aten.values_copy(s.to_sparse_csr()) aten._sparse_mm(s.to_sparse(), s) aten._to_dense(s.to_sparse())
aten.sparse_mask(s, (s > 2).to_sparse().coalesce()).to_dense()
aten.sparse_coo_tensor.indices_size(torch.tensor([[0, 1]]), torch.ones(2), [3], layout=torch.sparse_coo).to_dense()
aten.quantize_per_tensor(x, 0.1, 3, torch.qint8).int_repr() aten.int_repr(torch.quantize_per_tensor(x, 0.1, 3, torch.qint8))
aten.quantize_per_tensor_dynamic(x, torch.qint8, False).dequantize()
"""

GRADIENTS = """
aten.softshrink_backward(y, x, 0.5) aten.logit_backward(y, x.abs() / 3 + 0.1) aten.logit_backward(y, x.abs(), 0.2) aten.log_sigmoid_backward(y, x,
aten.log_sigmoid_forward(x)[1]) aten.infinitely_differentiable_gelu_backward(y, x) aten.cumprod_backward(y, x, 1, x.cumprod(1))
aten.gather_backward(torch.ones(3, 2), m, 1, torch.tensor([[0, 1], [2, 2], [1, 0]]), False)
aten.masked_select_backward(torch.arange(float((m > 0).sum())), m, m > 0) aten._pdist_backward(torch.arange(3.0), m, 2.0, aten._pdist_forward(m))
aten._cdist_backward(torch.ones(3, 3), m, m + 1, 2.0, aten._cdist_forward(m, m + 1, 2.0, None))
aten.rrelu_with_noise_backward(y, x, torch.full_like(x, 0.2), 0.1, 0.3, True, False)
aten.rrelu_with_noise_backward(y, x, torch.full_like(x, 0.2), 0.1, 0.3, False, False) aten.soft_margin_loss_backward(torch.tensor(2.0), x, y.sign(), 1)
aten.soft_margin_loss_backward(y, x, y.sign(), 0) aten.multi_margin_loss_backward(torch.tensor(2.0), m, labels, 1, 1.0)
aten.multi_margin_loss_backward(torch.ones(3), m, labels, 2, 0.5, torch.arange(4.0), 0) aten.multilabel_margin_loss_backward(torch.tensor(2.0), m, many, 1,
aten.multilabel_margin_loss_forward(m, many, 1)[1]) aten.reflection_pad1d_backward(torch.arange(42.0).reshape(2, 3, 7), x, [1, 2])
aten.replication_pad1d_backward(torch.arange(42.0).reshape(2, 3, 7), x, [1, 2]) aten.reflection_pad2d_backward(torch.ones(2, 3, 8, 8), image, [1, 1, 1, 1])
aten.replication_pad2d_backward(torch.ones(2, 3, 8, 8), image, [1, 1, 1, 1]) aten.reflection_pad3d_backward(torch.ones(2, 2, 6, 6, 6), volume, [1] * 6)
aten.replication_pad3d_backward(torch.ones(2, 2, 6, 6, 6), volume, [1] * 6) aten.avg_pool2d_backward(g2, image, [2, 2], [], [0, 0], False, True, None)
aten.avg_pool2d_backward(g2, image, [3, 3], [2, 2], [1, 1], False, False, None)
aten.avg_pool3d_backward(torch.ones(2, 2, 2, 2, 2), volume, [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, 3) aten._adaptive_avg_pool2d_backward(g2, image)
aten._adaptive_avg_pool3d_backward(torch.ones(2, 2, 3, 2, 1), volume) aten.adaptive_max_pool2d_backward(g2, image, aten.adaptive_max_pool2d(image, [3, 3])[1])
aten.adaptive_max_pool3d_backward(torch.ones(2, 2, 2, 2, 2), volume, aten.adaptive_max_pool3d(volume, [2, 2, 2])[1])
aten.max_pool2d_with_indices_backward(g2, image, [3, 3], [2, 2], [1, 1], [1, 1], False, aten.max_pool2d_with_indices(image, [3, 3], [2, 2], [1, 1])[1])
aten.max_pool3d_with_indices_backward(torch.ones(2, 2, 2, 2, 2), volume, [2] * 3, [2] * 3, [0] * 3, [1] * 3, False,
aten.max_pool3d_with_indices(volume, [2] * 3)[1]) aten.upsample_nearest1d_backward(torch.arange(36.0).reshape(2, 3, 6), [6], [2, 3, 4])
aten.upsample_linear1d_backward(torch.arange(36.0).reshape(2, 3, 6), [6], [2, 3, 4], False) aten.upsample_nearest2d_backward(image, [6, 6], [2, 3, 3, 2])
aten.upsample_bilinear2d_backward(image, [6, 6], [2, 3, 3, 4], True) aten.upsample_bicubic2d_backward(image, [6, 6], [2, 3, 3, 4], False)
aten.upsample_bilinear2d_backward(image, [6, 6], [2, 3, 3, 3], False, 2.0, 2.0) aten._upsample_nearest_exact2d_backward(image, [6, 6], [2, 3, 4, 4])
aten._upsample_nearest_exact1d_backward(torch.arange(36.0).reshape(2, 3, 6), [6], [2, 3, 4])
aten.upsample_nearest3d_backward(volume, [4, 4, 4], [2, 2, 2, 2, 3]) aten.upsample_trilinear3d_backward(volume, [4, 4, 4], [2, 2, 2, 2, 3], False)
aten._upsample_nearest_exact3d_backward(volume, [4, 4, 4], [2, 2, 2, 2, 3]) aten._upsample_bilinear2d_aa_backward(image, [6, 6], [2, 3, 9, 9], False)
aten._upsample_bicubic2d_aa_backward(image, [6, 6], [2, 3, 9, 9], True) aten.trace_backward(torch.tensor(2.0), [3, 4])
aten.unfold_backward(torch.arange(24.0).reshape(2, 4, 3), [2, 6], 1, 3, 1) aten.index_select_backward(m[[0, 1, 1]], [3, 4], 0, torch.tensor([2, 0, 2]))
aten.value_selecting_reduction_backward(torch.arange(3.0), 1, torch.tensor([1, 0, 3]), [3, 4], False)
aten.value_selecting_reduction_backward(torch.ones(3, 1), -1, torch.tensor([[1], [0], [3]]), [3, 4], True) aten.masked_scatter_backward(m, m > 0, [5, 2])
aten.affine_grid_generator_backward(torch.arange(72.0).reshape(2, 6, 6, 2), [2, 3, 6, 6], False)
aten.embedding_backward(x, torch.tensor([[0, 1, 1], [3, 2, 0]]), 5, 1, False, False)
aten.embedding_backward(x, torch.tensor([[0, 1, 1], [3, 2, 0]]), 5, -1, True, False)
aten.embedding_backward(x, torch.tensor([[0, 1, 1], [3, 2, 0]]), 5, 1, False, True).to_dense()
aten.embedding_sparse_backward(x, torch.tensor([[0, 1, 1], [3, 2, 0]]), 5, -1, False).to_dense()
aten.grid_sampler_2d_backward(g2, image, torch.linspace(-1, 1, 36).reshape(2, 3, 3, 2), 0, 1, False, [True, True])
aten.grid_sampler_3d_backward(torch.ones(2, 2, 2, 2, 2), volume, torch.linspace(-1, 1, 48).reshape(2, 2, 2, 2, 3), 0, 0, True, [True, True])
aten.native_batch_norm_backward(y, x, torch.arange(3.0), None, None, *aten.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[1:], True, 1e-5, [True, True, True])
aten.native_batch_norm_backward(y, x, None, torch.arange(3.0), torch.ones(3) * 2, None, None, False, 1e-5, [True, False, True])
aten.native_group_norm_backward(y, far, *aten.native_group_norm(far, None, None, 2, 3, 4, 3, 1e-5)[1:], torch.arange(3.0), 2, 3, 4, 3, [True, True, True])
aten.native_dropout_backward(y, x > 0, 2.0) aten._prelu_kernel_backward(y, x, torch.full_like(x, 0.3))
aten._weight_norm_interface_backward(m, m + 1, torch.ones(3, 1), aten.norm_except_dim(m + 1), 0)
aten.conv_tbc_backward(torch.ones(2, 3, 5), x, torch.arange(20.0).reshape(1, 4, 5), torch.ones(5), 0)
aten.fractional_max_pool2d_backward(torch.ones(2, 3, 2, 2), image, [2, 2], [2, 2], aten.fractional_max_pool2d(image, [2, 2], [2, 2], torch.zeros(2, 3, 2))[1])
"""


def expressions(text):
    """Calls that begin with `aten.` one after the other."""
    return ["aten." + part.strip() for part in text.replace("\n", " ").replace(" aten.", "\naten.").split("\naten.")[1:]]


def scope(torch):
    names = {"torch": torch, "aten": torch.ops.aten}
    exec(PLACES, names)
    return names


@same
def test_functions_in_another_form(torch):
    return outcomes(scope(torch), expressions(FORMS))


@same
def test_gradients(torch):
    return outcomes(scope(torch), expressions(GRADIENTS))


@same
def test_arguments_by_name_and_mask(torch):
    names = scope(torch)
    aten, image = torch.ops.aten, names["image"]
    return (aten.avg_pool2d_backward(names["g2"], self=image, kernel_size=[2, 2], stride=[2, 2], padding=[0, 0], ceil_mode=False,
                                     count_include_pad=True, divisor_override=None),
            aten.upsample_nearest2d_backward(image, output_size=[6, 6], input_size=[2, 3, 3, 3], scales_h=2.0, scales_w=2.0),
            aten.logit_backward(names["y"], names["x"].abs(), eps=0.1),
            aten.soft_margin_loss_backward.default(grad_output=torch.ones(()), self=names["x"], target=names["y"].sign(), reduction=2))


@pytest.mark.parametrize("masks", [(True, False), (False, True)])
@same
def test_masked_gradients(torch, masks):
    names = scope(torch)
    found = torch.ops.aten.grid_sampler_2d_backward(names["g2"], names["image"], torch.linspace(-1, 1, 36).reshape(2, 3, 3, 2), 0, 0, False, list(masks))
    return [x for x, wanted in zip(found, masks) if wanted]


@same
def test_gradients_that_are_part_of_a_graph(torch):
    names = scope(torch)
    aten, found = torch.ops.aten, []
    for call in (lambda g, x: aten.softshrink_backward(g, x, 0.5), lambda g, x: aten.infinitely_differentiable_gelu_backward(g, x),
                 lambda g, x: aten.reflection_pad1d_backward(torch.nn.functional.pad(g, [1, 2]), x, [1, 2])):
        g, x = names["y"].clone().requires_grad_(), names["x"].clone().requires_grad_()
        made = call(g, x)
        (made * names["m"]).sum().backward()
        found.append((made.requires_grad, g.grad, torch.zeros_like(x) if x.grad is None else x.grad))  # PyTorch's pads have a gradient of zeros
    return found


@pytest.mark.parametrize("name", ["random", "geometric", "cauchy", "log_normal"])
@same
def test_draws_that_do_not_write(torch, name):
    x = torch.zeros(20)
    given = {"random": (5,), "geometric": (0.3,)}.get(name, ())
    torch.manual_seed(3)
    return getattr(torch.ops.aten, name)(x, *given), x


def test_the_schemas_are_those_of_pytorch(subject, oracle):
    names = {e.partition("(")[0].removeprefix("aten.").partition(".")[0] for e in expressions(FORMS) + expressions(GRADIENTS)}
    without = []
    for name in sorted(names):
        ours, theirs = getattr(subject.ops.aten, name), getattr(oracle.ops.aten, name)
        for overload in ours.overloads():
            assert overload in theirs.overloads(), (name, overload)
            if "out" in overload or overload == "grad_input":
                continue
            assert str(getattr(ours, overload)._schema) == str(getattr(theirs, overload)._schema), name
        if not ours.overloads():
            without.append(name)
    assert not without and len(names) > 150
