"""torch.nn.functional."""
from ..ops.matmul import linear  # noqa: F401
from ..ops.softmax import log_softmax, softmax  # noqa: F401
from ..ops.unary import sigmoid, tanh  # noqa: F401
from ._functional.activation import gelu, relu, silu  # noqa: F401
from ._functional.attention import scaled_dot_product_attention  # noqa: F401
from ._functional.cross_entropy import cross_entropy, nll_loss  # noqa: F401
from ._functional.dropout import (  # noqa: F401
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from ._functional.embedding import embedding, one_hot  # noqa: F401
from ._functional.normalization import (  # noqa: F401
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)
