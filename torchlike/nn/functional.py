"""torch.nn.functional."""
import inspect as _inspect

from .. import _autocast
from .._public import FUNCTIONS as _functions
from .._public import asking as _asking
from .._public import called as _called
from .._public import with_out as _with_out
from ..ops.matmul import linear as _linear
from . import _reduction as _Reduction  # noqa: F401, N812  (losses of mmdetection and BasicSR)
from ._functional import (
    accelerated,  # noqa: F401  (registers kernels by platform)
    native,  # noqa: F401  (publishes torch.conv2d, torch.layer_norm, ...)
    native_norms,  # noqa: F401
)
from ._functional import encoder_layer as _encoder_layer  # noqa: F401  (torch._transformer_encoder_layer_fwd)
from ._functional import pooling as _pooling
from ._functional.activation import (  # noqa: F401
    gelu,
    glu,
    logsigmoid,
    mish,
    relu,
    sigmoid,
    silu,
    softplus,
    softsign,
    tanh,
    tanhshrink,
)
from ._functional.attention import scaled_dot_product_attention  # noqa: F401
from ._functional.cross_entropy import cross_entropy, nll_loss  # noqa: F401
from ._functional.ctc import ctc_loss  # noqa: F401
from ._functional.dropout import (  # noqa: F401
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from ._functional.embedding import embedding, one_hot  # noqa: F401
from ._functional.embedding_bag import embedding_bag  # noqa: F401
from ._functional.fold import (  # noqa: F401
    fold,
    unfold,
)
from ._functional.grid import affine_grid, grid_sample  # noqa: F401
from ._functional.group_normalization import group_norm, instance_norm  # noqa: F401
from ._functional.grouped import grouped_mm  # noqa: F401
from ._functional.linear_cross_entropy import linear_cross_entropy  # noqa: F401
from ._functional.margin_loss import (  # noqa: F401
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ._functional.multi_head import (  # noqa: F401
    _canonical_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
    multi_head_attention_forward,
)
from ._functional.normalization import (  # noqa: F401
    batch_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)
from ._functional.padding import pad  # noqa: F401
from ._functional.piecewise import (  # noqa: F401
    celu,
    elu,
    elu_,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    relu6,
    rrelu,
    selu,
    softshrink,
    threshold,
)
from ._functional.pooling import (  # noqa: F401
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ._functional.probability_loss import (  # noqa: F401
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    kl_div,
    multilabel_soft_margin_loss,
    soft_margin_loss,
)
from ._functional.regression_loss import (  # noqa: F401
    gaussian_nll_loss,
    huber_loss,
    l1_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from ._functional.resample import interpolate, upsample, upsample_bilinear, upsample_nearest  # noqa: F401
from ._functional.scaled import ScalingType, SwizzleType, scaled_grouped_mm, scaled_mm  # noqa: F401
from ._functional.softmax import gumbel_softmax, log_softmax, softmax, softmin  # noqa: F401

# what torch has in C++, which refuses what is no tensor before anything else
for _name in """adaptive_max_pool1d adaptive_max_pool1d_with_indices cosine_embedding_loss gumbel_softmax max_pool1d max_pool1d_with_indices max_pool2d
max_pool2d_with_indices max_pool3d multi_margin_loss multilabel_margin_loss nll_loss one_hot rms_norm triplet_margin_loss""".split():
    globals()[_name] = _called(globals()[_name])
    globals()[_name]._counts = _name == "one_hot"  # the others are Python in torch, and it is Python that counts their arguments

# what torch has in Python, which asks the classes of its arguments first
for _name, _f in list(globals().items()):
    if _inspect.isfunction(_f) and _name[0] != "_" and not hasattr(_f, "__wrapped__"):
        globals()[_name] = _asking(_f)

# the last line: every function above follows autocast where torch's does
globals().update({_name: _autocast.wrap(_f) for _name, _f in list(globals().items()) if _inspect.isfunction(_f)})
linear, avg_pool2d, avg_pool3d = map(_with_out, (_linear, _pooling.avg_pool2d, _pooling.avg_pool3d))

# functions of torch, which are the same here
globals().update({_name: _functions[_name] for _name in """adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc
conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity hardshrink native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu
relu_ rrelu_ selu_ threshold_""".split()})


class _OfOverrides:
    """A function of torch.overrides, which is loaded with the first class that takes functions over, or with the first call."""

    def __init__(self, name: str, shown: str):
        self._name, self.__name__, self.__qualname__ = name, shown, shown

    def __call__(self, *args, **kwargs):
        from .. import overrides
        return getattr(overrides, self._name)(*args, **kwargs)


# libraries take these from here, too; PyTorch's are compiled, but for the first, and say that they are private
handle_torch_function = _OfOverrides("handle_torch_function", "handle_torch_function")
has_torch_function, has_torch_function_unary, has_torch_function_variadic = (
    _OfOverrides(f"has_torch_function{_kind}", f"_has_torch_function{_kind}") for _kind in ("", "_unary", "_variadic"))
