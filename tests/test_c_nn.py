"""torch._C._nn: what copies of torch.nn.functional call, beside real torch."""
import pytest
from same import same

PROGRAMS = """N.upsample_nearest2d(x, [8, 8]); N.upsample_nearest2d(x, None, [2.0, 2.0]); N.upsample_nearest2d(x, (7, 8), 2.0, 2.0)
N.upsample_nearest2d(x, output_size=[8, 8])
N.upsample_nearest2d(x, [8, 8], scales_h=2.0, scales_w=2.0); N.upsample_nearest2d(x, 8); N.upsample_nearest1d(x[0], [12])
N.upsample_nearest1d(x[0], None, [2.5])
N.upsample_nearest3d(x[None], None, [2.0, 1.0, 2.0]); N._upsample_nearest_exact2d(x, None, [2.0, 3.0]); N._upsample_nearest_exact1d(x[0], [11], None)
N.upsample_bilinear2d(x, [8, 9], False); N.upsample_bilinear2d(x, None, True, [2.0, 2.0]); N.upsample_bilinear2d(x, [8, 8], False, 2.0, 2.0)
N.upsample_linear1d(x[0], [12], False, None)
N.upsample_bilinear2d(x, [8, 9], False, 2.1, 2.4); N.upsample_bilinear2d(x, [9, 9], align_corners=True, scale_factors=None)
N.upsample_trilinear3d(x[None], None, False, [2.0, 2.0, 2.0]); N.upsample_bicubic2d(x, [8, 8], False); N.upsample_bicubic2d(x, None, False, [1.5, 2.0])
N._upsample_bilinear2d_aa(x, [2, 2], False, None); N._upsample_bicubic2d_aa(x, [3, 2], False, None)
N.nll_loss(y, t); N.nll_loss(y, t, None, 2, -100); N.nll_loss(y, t, torch.rand(5), reduction=1); N.nll_loss_nd(y, target=t, reduction=1, ignore_index=0)
N.nll_loss2d(x[:, :, :2], q, None, 1, -100)
N.cross_entropy_loss(y, t); N.cross_entropy_loss(y, t, None, 1, -100, 0.1); N.multi_margin_loss(y, t); N.multi_margin_loss(y, t, 1, 0.5, None, 2)
N.multilabel_margin_loss(y, torch.tensor([[1, 0, -1, 0, 0]] * 3), 1)
N.huber_loss(y, y * 2, 1, 0.5); N.huber_loss(y, y * 2); N.l1_loss(y, y * 2, 2); N.mse_loss(y, y * 3, reduction=1); N.smooth_l1_loss(y, y * 2, 1, 2.0)
N.soft_margin_loss(y, y.sign())
N.binary_cross_entropy(y.sigmoid(), y.sigmoid()); N.binary_cross_entropy(y.sigmoid(), y.sigmoid(), y.abs(), 1)
N.im2col(x, (2, 2), (1, 1), (0, 0), (1, 1)); N.im2col(x, 2, 1, 1, 2); N.col2im(N.im2col(x, 2, 1, 0, 1), (4, 4), (2, 2), (1, 1), (0, 0), (1, 1))
N.hardtanh(y); N.hardtanh(y, -0.5, 0.5); N.hardtanh_(z, -0.5, 0.5), z; N.leaky_relu(y, 0.1); N.leaky_relu_(z, 0.1), z; N.elu(y, 0.5); N.elu_(z), z
N.glu(torch.cat([y, y], 1)); N.silu(y)
N.silu_(z), z; N.mish(y); N.mish_(z), z; N.hardsigmoid(y); N.hardsigmoid_(z), z; N.hardswish(y); N.hardswish_(z), z; N.relu6(y * 9); N.relu6_(z), z
N.gelu_(z), z; N.log_sigmoid(y)
N.adaptive_avg_pool2d(x, (2, 2)); N.adaptive_avg_pool3d(x[None], 2); N.adaptive_max_pool2d(x, 2); N.adaptive_max_pool3d(x[None], (1, 2, 2))
N.avg_pool3d(x[None], 2)
N.max_pool2d_with_indices(x, 2); N.max_pool2d_with_indices(x, 2, 1, 1, 1, True); N.max_pool3d_with_indices(x[None], 2)
N.fractional_max_pool2d(x, 2, 2, torch.full((1, 2, 2), 0.5))
N.fractional_max_pool3d(x[None], 1, 1, torch.full((1, 1, 3), 0.5)); N.max_unpool2d(*N.max_pool2d_with_indices(x, 2), [4, 4])
N.max_unpool2d(*N.max_pool2d_with_indices(x, 2), (5, 4)); N.max_unpool3d(*N.max_pool3d_with_indices(x[None], 2), [2, 4, 4], [2, 2, 2], [0, 0, 0])
N.reflection_pad1d(x[0], 2); N.reflection_pad2d(x, (1, 2, 1, 0)); N.reflection_pad3d(x[None], 1); N.replication_pad1d(x[0], (1, 0))
N.replication_pad2d(x, 1); N.replication_pad3d(x[None], 1)
N.pad(x, (1, 1)); N.pad(x, (1, 1, 1, 1), "reflect"); N.pad_sequence([torch.ones(2), torch.ones(3)])
N.pad_sequence([torch.ones(2), torch.ones(3)], True, 2.0, "left")
N.flatten_dense_tensors([y, x]); N.unflatten_dense_tensors(torch.arange(47.0), [y, x]); N.thnn_conv2d(x, w, 3)
N.thnn_conv2d(x, w, (3, 3), torch.ones(3), (2, 1), (1, 1))
N.slow_conv3d(x[None], w[:, :1, None], (1, 3, 3))
N.upsample_nearest2d(x, [8, 8], [2.0, 2.0]); N.upsample_nearest2d(x, [8]); N.upsample_bilinear2d(x[0], [8, 8], True); N.reflection_pad2d(x, [1, 1])"""


@pytest.mark.parametrize("program", [p.strip() for line in PROGRAMS.splitlines() for p in line.split(";")])
@same
def test_function(torch, program):
    torch.manual_seed(0)
    x, y, t, w = torch.randn(1, 2, 4, 4), torch.randn(3, 5), torch.tensor([1, 0, 4]), torch.randn(3, 2, 3, 3)
    names = {"N": torch._C._nn, "torch": torch, "x": x, "y": y, "t": t, "w": w, "z": y.clone(), "q": torch.tensor([[[0, 1, 1, 0]] * 2])}
    try:
        return eval(program, names)
    except RuntimeError as error:
        return str(error)
