"""Under which names the nodes of derivatives are shown, where these are differentiated in turn (`create_graph=True`).

torch computes most derivatives by its ordinary operations, and the node has the name of the last of them: that of `exp` is a product. Here each is
an operation of its own. Those that have a node of their own in torch too (TanhBackwardBackward0) are not listed.
"""
from ._core.aval import NUMBERS
from ._core.registry import OPS

_SHOWN = {
    "MulBackward0": "abs acos amax amin asin cos cosh erf exp expm1 kl_div lgamma linalg_vector_norm logsumexp mish mul mv nansum native_dropout pow_scalar "
                    "prod reciprocal rsqrt silu sin sinh square std var",
    "DivBackward0": "atan cumprod div log log10 log1p log2 logaddexp sqrt",
    "DivBackward1": "mean mean_dim binary_cross_entropy_with_logits",
    "MmBackward0": "mm",
    "BmmBackward0": "bmm",
    "NegBackward0": "neg rsub",
    "WhereBackward0": "clamp where",
    "ThresholdBackwardBackward0": "relu",
    "ExpandBackward0": "sum sum_dim",
    "FlipBackward0": "cumsum flip",
    "SoftmaxBackwardDataBackward0": "softmax",
    "LogSoftmaxBackwardDataBackward0": "log_softmax cross_entropy",
    "EmbeddingDenseBackwardBackward0": "embedding",
    "IndexPutImplBackward0": "index",
    "ScatterAddBackward0": "gather",
    "ScatterBackward0": "max_dim min_dim sort topk",
    "MaskedFillBackward0": "maximum minimum xlogy",
    "MaskedFillBackward1": "max_of_all min_of_all",
    "LinalgSolveExBackward0": "linalg_det",
    "ConstantPadNdBackward0": "constant_pad_nd",
    "ToCopyBackward0": "to_copy",
    "SliceBackward0": "cat",
    "CatBackward0": "split split_all",
    "StackBackward0": "unbind unbind_all",
    "SumBackward1": "repeat",
    "SelectBackwardBackward0": "select_at",
    "ViewBackward0": "view",
    "PermuteBackward0": "permute",
    "TransposeBackward0": "transpose",
    "TBackward0": "t",
    "SqueezeBackward1": "unsqueeze",
    "PreluKernelBackwardBackward0": "prelu",
    "TrilBackward0": "tril",
    "TriuBackward0": "triu",
}

for _name, _operations in _SHOWN.items():
    for _operation in _operations.split():
        OPS[_operation].backward.torch_name = _name


def _of_pow(plan) -> str:
    return "MulBackward0" if plan.statics[0].avals[0] in NUMBERS.values() else "WhereBackward0"


def _of_linear(plan) -> str:
    return "MmBackward0" if len(plan.statics[0].avals[0].shape) == 2 else "ViewBackward0"


OPS["pow"].backward.torch_name = _of_pow
for _operation in ("linear", "linear_alone"):
    OPS[_operation].backward.torch_name = _of_linear
