"""Every layer: the same weights from the same seed, state dict, printing, outputs and gradients as real torch."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from case import TensorSpec, array, ints, lit, seed_of, t
from same import same


@dataclass(frozen=True)
class Row:
    """A layer's class, its constructor's arguments, and the inputs of its forward.

    `grad` False: torch's gradient is not that of its forward, and is not compared.
    """
    name: str
    args: tuple = ()
    inputs: tuple = ()
    kwargs: dict = field(default_factory=dict)
    call: dict = field(default_factory=dict)
    grad: bool = True
    tag: str = ""

    @property
    def id(self) -> str:
        shown = [str(a) for a in self.args] + [f"{k}={v}" for k, v in self.kwargs.items()]
        return self.tag or f"{self.name}({','.join(shown)})".replace(" ", "")


def row(name: str, args: Any = (), *inputs: Any, call: dict | None = None, grad: bool = True, tag: str = "",
        **kwargs: Any) -> Row:
    return Row(name, args if isinstance(args, tuple) else (args,), inputs, kwargs, call or {}, grad, tag)


IMAGE = t(2, 4, 6, 5)
SIGNAL = t(2, 4, 7)
VOLUME = t(2, 2, 4, 3, 4)
FEATURES = t(3, 4)
SEQUENCE = t(5, 3, 4)

LINEAR = [
    row("Identity", (), FEATURES), row("Identity", (1, 2), FEATURES),
    row("Linear", (4, 3), FEATURES), row("Linear", (4, 3), t(2, 3, 4), bias=False), row("Linear", (20, 30), t(20)),
    row("Bilinear", (4, 3, 2), FEATURES, t(3, 3)), row("Bilinear", (4, 3, 2, False), FEATURES, t(3, 3)),
    row("LazyLinear", 3, FEATURES), row("LazyLinear", (3, False), FEATURES),
    row("Flatten", (), IMAGE), row("Flatten", (0, 1), IMAGE), row("Unflatten", (1, (2, 2)), FEATURES),
]

CONV = [
    row("Conv1d", (4, 6, 3), SIGNAL), row("Conv1d", (4, 6, 3), t(4, 7)),
    row("Conv1d", (4, 6, 3, 2, 1, 2, 2, False), SIGNAL), row("Conv1d", (4, 2, 4), SIGNAL, padding="same"),
    row("Conv2d", (4, 6, 3), IMAGE), row("Conv2d", (4, 6, (3, 2), (2, 1), (1, 0)), IMAGE),
    row("Conv2d", (4, 8, 3), IMAGE, groups=4, padding=1), row("Conv2d", (4, 4, 2), IMAGE, dilation=2, bias=False),
    *(row("Conv2d", (4, 3, 3), IMAGE, padding=(1, 2), padding_mode=mode) for mode in ("reflect", "replicate",
                                                                                      "circular")),
    row("Conv2d", (4, 3, (3, 2)), IMAGE, padding="same", padding_mode="reflect"),
    row("Conv2d", (4, 3, 3), IMAGE, padding="valid"),
    row("Conv3d", (2, 3, 2), VOLUME), row("Conv3d", (2, 2, (2, 1, 3)), VOLUME, stride=(1, 2, 1), padding=(1, 0, 1)),
    row("ConvTranspose1d", (4, 3, 3, 2, 1, 1), SIGNAL), row("ConvTranspose2d", (4, 3, 3), IMAGE),
    row("ConvTranspose2d", (4, 6, 3, 2, 1, 1, 2, False, 2), IMAGE),
    row("ConvTranspose2d", (4, 3, 3), IMAGE, stride=2, call={"output_size": [14, 11]}),
    row("ConvTranspose3d", (2, 3, 2), VOLUME),
    row("LazyConv1d", (3, 2), SIGNAL), row("LazyConv2d", (4, 3), IMAGE, padding=1), row("LazyConv3d", (3, 2), VOLUME),
    row("LazyConvTranspose1d", (3, 2), SIGNAL), row("LazyConvTranspose2d", (3, 2), IMAGE, stride=2),
    row("LazyConvTranspose3d", (3, 2), VOLUME, bias=False),
    row("Unfold", 2, IMAGE), row("Fold", ((4, 5), (2, 2)), t(2, 12, 12)),
]

NORM = [
    row("BatchNorm1d", 4, FEATURES), row("BatchNorm1d", 4, SIGNAL), row("BatchNorm1d", (4, 1e-3, None), SIGNAL),
    row("BatchNorm2d", 4, IMAGE), row("BatchNorm2d", 4, IMAGE, affine=False), row("BatchNorm2d", 4, IMAGE, bias=False),
    row("BatchNorm2d", 4, IMAGE, track_running_stats=False), row("BatchNorm3d", 2, VOLUME),
    row("LazyBatchNorm1d", (), SIGNAL), row("LazyBatchNorm2d", (), IMAGE, affine=False), row("LazyBatchNorm3d", (),
                                                                                             VOLUME),
    row("InstanceNorm1d", 4, SIGNAL), row("InstanceNorm1d", 4, t(4, 7), affine=True),
    row("InstanceNorm2d", 4, IMAGE, affine=True, track_running_stats=True), row("InstanceNorm3d", 2, VOLUME),
    row("LazyInstanceNorm1d", (), SIGNAL), row("LazyInstanceNorm2d", (), IMAGE), row("LazyInstanceNorm3d", (), VOLUME),
    row("LayerNorm", 4, FEATURES), row("LayerNorm", ([6, 5],), IMAGE, bias=False),
    row("LayerNorm", 4, FEATURES, elementwise_affine=False), row("GroupNorm", (2, 4), IMAGE),
    row("GroupNorm", (4, 4), SIGNAL, affine=False), row("GroupNorm", (1, 4), FEATURES, bias=False),
    row("RMSNorm", 4, FEATURES), row("RMSNorm", ([6, 5], 1e-3), IMAGE),
    row("LocalResponseNorm", 2, IMAGE), row("LocalResponseNorm", (3, 0.1, 0.5, 2.0), IMAGE),
    row("CrossMapLRN2d", 3, IMAGE, grad=False), row("CrossMapLRN2d", (4, 0.1), IMAGE, grad=False),
]

ACTIVATION = [
    *(row(name, (), FEATURES) for name in (
        "ReLU", "RReLU", "Hardtanh", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU", "Mish", "Hardswish", "ELU",
        "CELU", "SELU", "GLU", "GELU", "Hardshrink", "LeakyReLU", "LogSigmoid", "Softplus", "PReLU", "Softsign",
        "Softshrink", "Tanhshrink")),
    row("Threshold", (0.1, 2.0), FEATURES), row("Hardtanh", (-0.5, 0.25), FEATURES), row("ELU", 0.5, FEATURES),
    row("CELU", 0.5, FEATURES), row("GLU", 0, t(4, 3)), row("GELU", "tanh", FEATURES), row("LeakyReLU", 0.3, FEATURES),
    row("Softplus", (2.0, 1.0), FEATURES), row("PReLU", 4, IMAGE), row("RReLU", (0.1, 0.4), FEATURES),
    row("Softmax", 1, FEATURES), row("Softmin", 0, FEATURES), row("LogSoftmax", -1, FEATURES), row("Softmax2d", (),
                                                                                                   IMAGE),
    row("Softmax", (), FEATURES), row("AdaptiveLogSoftmaxWithLoss", (4, 12, [3, 7]), t(5, 4), lit([0, 2, 5, 11, 8],
                                                                                                  "int64"),
                                      div_value=2.0),
    row("AdaptiveLogSoftmaxWithLoss", (4, 9, [3]), t(4), lit(7, "int64"), head_bias=True),
]

POOL = [
    row("MaxPool1d", 2, SIGNAL), row("MaxPool1d", (3, 2, 1), SIGNAL, return_indices=True),
    row("MaxPool2d", 2, IMAGE), row("MaxPool2d", ((3, 2), 1, (1, 0), 1, False, True), IMAGE),
    row("MaxPool2d", 2, IMAGE, dilation=2, return_indices=True), row("MaxPool3d", 2, VOLUME),
    row("MaxUnpool1d", 2, t(1, 1, 3), lit([[[1, 2, 5]]], "int64")),
    row("MaxUnpool2d", 2, t(1, 1, 2, 2), lit([[[[0, 3], [9, 14]]]], "int64")),
    row("MaxUnpool3d", 2, t(1, 1, 1, 1, 2), lit([[[[[1, 6]]]]], "int64")),
    row("AvgPool1d", 2, SIGNAL), row("AvgPool1d", (3, 2, 1), SIGNAL, count_include_pad=False),
    row("AvgPool2d", 2, IMAGE), row("AvgPool2d", (3, 2, 1), IMAGE, ceil_mode=True, divisor_override=2),
    row("AvgPool2d", 50000, IMAGE, ceil_mode=True), row("AvgPool2d", (40, 40, 2), IMAGE, ceil_mode=True, count_include_pad=False),
    row("AvgPool2d", (40, 40, 2), IMAGE, ceil_mode=True), row("AvgPool1d", 50000, SIGNAL, ceil_mode=True),
    row("MaxPool2d", 50000, IMAGE, ceil_mode=True), row("MaxPool2d", (5, 9, 1, 2), IMAGE, ceil_mode=True),
    row("AvgPool3d", 2, VOLUME), row("LPPool1d", (2, 3), SIGNAL), row("LPPool2d", (3, 2, 1), t(2, 4, 6, 5, low=0.1)),
    row("LPPool3d", (2, 2), VOLUME), row("AdaptiveMaxPool1d", 3, SIGNAL), row("AdaptiveMaxPool2d", ((None, 2),), IMAGE),
    row("AdaptiveMaxPool2d", (2,), IMAGE, return_indices=True), row("AdaptiveMaxPool3d", 2, VOLUME),
    row("AdaptiveAvgPool1d", 3, SIGNAL), row("AdaptiveAvgPool2d", ((1, 1),), IMAGE),
    row("AdaptiveAvgPool2d", ((3, None),), IMAGE), row("AdaptiveAvgPool3d", 2, VOLUME),
    row("FractionalMaxPool2d", 2, IMAGE, output_size=3), row("FractionalMaxPool2d", 2, IMAGE, output_ratio=0.5),
    row("FractionalMaxPool3d", 2, t(1, 2, 6, 6, 6), output_size=(3, 2, 3)),
    row("Upsample", (), SIGNAL, scale_factor=2), row("Upsample", ((7, 8),), IMAGE, mode="bilinear"),
    row("Upsample", (), IMAGE, scale_factor=(2.0, 1.5), mode="bicubic", align_corners=True),
    row("UpsamplingNearest2d", 9, IMAGE), row("UpsamplingBilinear2d", (), IMAGE, scale_factor=2),
    row("PixelShuffle", 2, IMAGE), row("PixelUnshuffle", 2, t(2, 1, 4, 6)), row("ChannelShuffle", 2, IMAGE),
]

PAD = [
    *(row(f"{kind}Pad{n}d", 1, inputs) for kind in ("Circular", "Reflection", "Replication", "Zero")
      for n, inputs in ((1, SIGNAL), (2, IMAGE), (3, VOLUME))),
    row("ConstantPad1d", ((1, 2), 0.5), SIGNAL), row("ConstantPad2d", ((1, 2, 0, 3), 0.5), IMAGE),
    row("ConstantPad3d", (1, -1.0), VOLUME), row("ZeroPad2d", ((-1, 2, 1, -2),), IMAGE),
]

DROPOUT = [
    row("Dropout", (), FEATURES), row("Dropout", 0.3, t(40)), row("Dropout1d", (), SIGNAL), row("Dropout2d", 0.4,
                                                                                                IMAGE),
    row("Dropout3d", (), VOLUME), row("AlphaDropout", (), FEATURES), row("FeatureAlphaDropout", (), IMAGE),
]

EMBEDDING = [
    row("Embedding", (10, 3), ints(2, 4, high=9)), row("Embedding", (10, 3, 2), ints(5, high=9)),
    row("Embedding", (10, 3), ints(5, high=9), max_norm=0.5), row("Embedding", (10, 3), ints(6, high=3),
                                                                  scale_grad_by_freq=True),
    row("EmbeddingBag", (10, 3), ints(2, 4, high=9)), row("EmbeddingBag", (10, 3), ints(7, high=9), lit([0, 2, 5],
                                                                                                        "int64")),
    row("EmbeddingBag", (10, 3), ints(2, 4, high=9), mode="sum", padding_idx=1),
    row("EmbeddingBag", (10, 3), ints(2, 4, high=9), mode="max"),
    row("EmbeddingBag", (10, 3), ints(7, high=9), lit([0, 2, 7], "int64"), mode="sum", include_last_offset=True),
    row("PairwiseDistance", (), FEATURES, t(3, 4)), row("PairwiseDistance", (1.0, 1e-3, True), FEATURES, t(3, 4)),
    row("CosineSimilarity", (), FEATURES, t(3, 4)), row("CosineSimilarity", 0, FEATURES, t(3, 4)),
]

STATE = t(1, 3, 6)
RECURRENT = [
    row("RNN", (4, 6), SEQUENCE), row("RNN", (4, 6), SEQUENCE, STATE, nonlinearity="relu"),
    row("RNN", (4, 6, 2, "relu"), t(5, 4), bias=False, bidirectional=True),
    row("LSTM", (4, 6), SEQUENCE), row("LSTM", (4, 6), SEQUENCE, (STATE, STATE)), row("LSTM", (4, 6), t(5, 4)),
    row("LSTM", (4, 6), t(5, 4), (t(1, 6), t(1, 6))),
    row("LSTM", (4, 6, 2), t(3, 5, 4), batch_first=True, bidirectional=True),
    row("LSTM", (4, 6), SEQUENCE, bias=False, proj_size=2, num_layers=2),
    row("LSTM", (4, 6), SEQUENCE, num_layers=2, dropout=1.0),
    row("GRU", (4, 6), SEQUENCE), row("GRU", (4, 6, 2), SEQUENCE, bidirectional=True, bias=False),
    row("GRU", (4, 6), SEQUENCE, STATE, batch_first=False), row("GRU", (4, 6), t(3, 5, 4), batch_first=True),
    row("RNNCell", (4, 6), FEATURES), row("RNNCell", (4, 6), t(4), t(6)), row("RNNCell", (4, 6, False, "relu"),
                                                                              FEATURES, t(3, 6)),
    row("LSTMCell", (4, 6), FEATURES), row("LSTMCell", (4, 6, False), FEATURES, (t(3, 6), t(3, 6))),
    row("LSTMCell", (4, 6), t(4)),
    row("GRUCell", (4, 6), FEATURES), row("GRUCell", (4, 6, False), FEATURES, t(3, 6)), row("GRUCell", (4, 6), t(4),
                                                                                            t(6)),
]

X = t(5, 3, 4)
PADDING_MASK = lit([[False] * 4 + [True], [False] * 5, [False, False, True, True, True]], "bool")
CAUSAL = lit([[j > i for j in range(5)] for i in range(5)], "bool")
ATTENTION = [
    row("MultiheadAttention", (4, 2), X, X, X), row("MultiheadAttention", (4, 2), X, X, X,
                                                    call={"need_weights": False}),
    row("MultiheadAttention", (4, 2), t(2, 3, 4), t(2, 5, 4), t(2, 5, 4), batch_first=True),
    row("MultiheadAttention", (4, 2), t(5, 4), t(3, 4), t(3, 4)),
    row("MultiheadAttention", (4, 2), X, t(6, 3, 5), t(6, 3, 7), kdim=5, vdim=7, add_bias_kv=True),
    row("MultiheadAttention", (4, 2), X, X, X, add_zero_attn=True, bias=False, call={"average_attn_weights": False}),
    row("MultiheadAttention", (4, 2), X, X, X, PADDING_MASK, True, CAUSAL, tag="MultiheadAttention(masks)"),
    row("MultiheadAttention", (4, 2), X, X, X, None, False, CAUSAL, True, True, tag="MultiheadAttention(causal)"),
    row("TransformerEncoderLayer", (4, 2, 8, 0.0), X), row("TransformerEncoderLayer", (4, 2, 8, 0.0, "gelu"), t(2, 3,
                                                                                                                4),
                                                            batch_first=True, norm_first=True, bias=False),
    row("TransformerEncoderLayer", (4, 2, 8, 0.0), X, CAUSAL, PADDING_MASK, tag="TransformerEncoderLayer(masks)"),
    row("TransformerDecoderLayer", (4, 2, 8, 0.0), X, t(6, 3, 4)),
    row("TransformerDecoderLayer", (4, 2, 8, 0.0), X, t(6, 3, 4), CAUSAL, norm_first=True,
        tag="TransformerDecoderLayer(mask)"),
    row("Transformer", (4, 2, 1, 2, 8, 0.0), X, t(3, 3, 4)),
    row("Transformer", (4, 2, 1, 1, 8, 0.0), t(3, 5, 4), t(3, 2, 4), batch_first=True, norm_first=True),
]

P, Q = t(3, 4), t(3, 4)
UNIT = t(3, 4, low=0.05, high=0.95)
CLASSES = lit([1, 3, 0], "int64")
SIGNS = lit([[1, -1, 1, -1], [1, 1, -1, -1], [-1, 1, 1, 1]], "float32", grad=False)
SIGN3 = lit([1, -1, 1], "float32", grad=False)
LOSS = [
    *(row(name, (), P, Q, reduction=reduction) for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss",
                                                            "KLDivLoss")
      for reduction in ("mean", "sum", "none")),
    row("SmoothL1Loss", (), P, Q, beta=0.5), row("HuberLoss", (), P, Q, delta=0.3), row("KLDivLoss", (), P, Q,
                                                                                        log_target=True),
    row("NLLLoss", (), P, CLASSES), row("NLLLoss", (t(4, low=0.1),), P, CLASSES), row("NLLLoss", (), P, CLASSES,
                                                                                      ignore_index=3),
    row("NLLLoss2d", (), t(2, 3, 2, 2), ints(2, 2, 2, high=2)),
    row("CrossEntropyLoss", (), P, CLASSES), row("CrossEntropyLoss", (t(4, low=0.1),), P, CLASSES, label_smoothing=0.1),
    row("CrossEntropyLoss", (), P, UNIT), row("CrossEntropyLoss", (), t(2, 3, 2, 2), ints(2, 2, 2, high=2),
                                              reduction="none"),
    row("LinearCrossEntropyLoss", (4, 3), P, lit([1, 2, 0], "int64"), bias=True, label_smoothing=0.1),
    row("LinearCrossEntropyLoss", (4, 3), P, ints(3, 2, high=2), out_features=(2,), weight=t(3, low=0.5),
        ignore_index=1),
    row("PoissonNLLLoss", (), P, UNIT), row("PoissonNLLLoss", (False, True), UNIT, t(3, 4, low=0.5, high=5.0,
                                                                                     grad=False)),
    row("GaussianNLLLoss", (), P, Q, UNIT), row("GaussianNLLLoss", (), P, Q, UNIT, full=True, reduction="sum"),
    row("BCELoss", (), UNIT, t(3, 4, low=0.0, high=1.0)), row("BCELoss", (t(4, low=0.1),), UNIT, t(3, 4, low=0.0,
                                                                                                   high=1.0)),
    row("BCEWithLogitsLoss", (), P, UNIT), row("BCEWithLogitsLoss", (), P, UNIT, pos_weight=t(4, low=0.5)),
    row("HingeEmbeddingLoss", (), P, SIGNS), row("HingeEmbeddingLoss", 2.0, P, SIGNS), row("SoftMarginLoss", (), P,
                                                                                           SIGNS),
    row("MultiLabelMarginLoss", (), P, lit([[1, 2, -1, 0], [3, -1, 0, 0], [0, 1, 2, 3]], "int64")),
    row("MultiLabelSoftMarginLoss", (), P, lit([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 0, 1]], "float32", grad=False)),
    row("CosineEmbeddingLoss", (), P, Q, SIGN3), row("CosineEmbeddingLoss", 0.2, P, Q, SIGN3, reduction="none"),
    row("MarginRankingLoss", 0.1, t(3), t(3), SIGN3), row("MultiMarginLoss", (), P, CLASSES),
    row("MultiMarginLoss", (2, 0.5), P, CLASSES, weight=t(4, low=0.1)), row("TripletMarginLoss", (), P, Q, t(3, 4,
                                                                                                             high=1.0)),
    row("TripletMarginLoss", (), P, Q, t(3, 4, high=1.0), swap=True, p=1.0, margin=2.0),
    row("TripletMarginWithDistanceLoss", (), P, Q, t(3, 4, high=1.0), swap=True),
    row("CTCLoss", (), t(6, 2, 4, high=-0.5), lit([[1, 2, 3], [2, 2, 1]], "int64"), lit([6, 5], "int64"), lit([2, 3],
                                                                                                              "int64")),
    row("CTCLoss", (1, "sum", True), t(6, 2, 4, high=-0.5), lit([2, 3, 0, 2, 3], "int64"), lit([6, 6], "int64"),
        lit([2, 3], "int64")),
]

ROWS = [*LINEAR, *CONV, *NORM, *ACTIVATION, *POOL, *PAD, *DROPOUT, *EMBEDDING, *RECURRENT, *ATTENTION, *LOSS]


def made(torch: Any, value: Any, key: str, grad: bool) -> Any:
    """`value` with its specifications turned into tensors, the same ones in every library."""
    if isinstance(value, TensorSpec):
        return torch.tensor(array(value, seed_of(key, value.shape)), requires_grad=grad and value.differentiable)
    if isinstance(value, tuple):
        return tuple(made(torch, v, f"{key}.{i}", grad) for i, v in enumerate(value))
    if isinstance(value, dict):
        return {k: made(torch, v, f"{key}.{k}", grad) for k, v in value.items()}
    return value


def tensors(torch: Any, tree: Any) -> list[Any]:
    if isinstance(tree, (tuple, list)):
        return [x for item in tree for x in tensors(torch, item)]
    return [tree] if isinstance(tree, torch.Tensor) else []


def backward(torch: Any, outputs: Any) -> None:
    """Backward from a weighted sum of all differentiable outputs, so that every element counts differently."""
    loss = 0
    for y in tensors(torch, outputs):
        if y.requires_grad:
            loss = loss + (y * torch.arange(1, y.numel() + 1, dtype=y.dtype).reshape(y.shape)).sum()
    if not isinstance(loss, int):
        loss.backward()


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
@same(strides=None, tol=3.0)
def test_layer(torch, row):
    layer = getattr(torch.nn, row.name)(*made(torch, row.args, "arg", False), **made(torch, row.kwargs, "kwarg", False))
    shown = repr(layer)
    inputs = made(torch, row.inputs, "input", row.grad)
    seen = {}
    for mode in ("train", "eval"):
        getattr(layer, mode)()
        output = layer(*inputs, **row.call)
        backward(torch, output)
        seen[mode] = output
    return {
        "printed": [shown, repr(layer)],
        "outputs": seen, "state": dict(layer.state_dict()),
        "order": [list(layer.state_dict()), [n for n, _ in layer.named_parameters()], [n for n,
                                                                                       _ in layer.named_buffers()]],
        "attributes": sorted(k for k, v in vars(layer).items()
                             if not k.startswith("_") and isinstance(v, (int, float, str, tuple))),
        "gradients": {name: p.grad for name, p in layer.named_parameters()},
        "input gradients": [x.grad for x in tensors(torch, inputs)],
    }


@same(strides=None, tol=3.0)
def test_encoder_leaves_out_padding_without_gradients(torch):
    nn = torch.nn
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2,
                                    norm=nn.LayerNorm(4)).eval()
    x = torch.arange(24.0).reshape(2, 3, 4).sin()
    masks = [torch.tensor([[False, False, True], [False, True, True]]),
             torch.tensor([[True, False, False], [False, False, True]])]
    causal = nn.Transformer.generate_square_subsequent_mask(3)
    with torch.no_grad():
        seen = [encoder(x, src_key_padding_mask=mask) for mask in masks]
        seen += [encoder(x, src_key_padding_mask=torch.zeros(2, 3).masked_fill(masks[0], float("-inf"))), causal,
                 encoder(x, mask=causal, src_key_padding_mask=torch.zeros(2, 3))]
    return seen, encoder(x, src_key_padding_mask=masks[0])


@same(strides=None)
def test_convolutions_in_channels_last(torch):
    m = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 2), torch.nn.BatchNorm2d(3)).to(memory_format=torch.channels_last)
    n = torch.nn.utils.convert_conv2d_weight_memory_format(torch.nn.Conv2d(2, 3, 2), torch.channels_last)
    x = torch.arange(18.0).reshape(1, 2, 3, 3).sin()
    return m[0].weight.stride(), n.weight.stride(), m(x), n(x), m.state_dict()
