"""Bad input names the argument and the shapes."""

import numpy as np
import pytest

from pallas_kernels import KernelUnavailable, attention, override

Q, K = np.ones((2, 4, 5, 8), "float32"), np.ones((2, 2, 7, 8), "float32")


@pytest.mark.parametrize(
    ("error", "words", "arguments", "options"),
    [
        (ValueError, r"agree in head size, got query \(2, 4, 5, 8\)", (Q, K[..., :4], K), {}),
        (ValueError, r"agree in heads and length, got .* value \(2, 2, 6, 8\)", (Q, K, K[:, :, :6]), {}),
        (ValueError, r"multiple of the key's, got 4 and 3", (Q, np.ones((2, 3, 7, 8), "float32"), np.ones((2, 3, 7, 8), "float32")), {}),
        (ValueError, "agree in their batch dimensions", (Q, K[:1], K[:1]), {}),
        (ValueError, "same number of dimensions", (Q, K[0], K[0]), {}),
        (ValueError, "head size must not be 0", (Q[..., :0], K[..., :0], K), {}),
        (
            ValueError,
            r"mask of shape \(3, 5, 7\) does not broadcast to \(2, 4, 5, 7\)",
            (Q, K, K),
            {"mask": np.ones((3, 5, 7), bool)},
        ),
        (
            ValueError,
            r"bias of shape \(1, 2, 4, 5, 7\) does not broadcast",
            (Q, K, K),
            {"bias": np.ones((1, 2, 4, 5, 7), "float32")},
        ),
        (TypeError, "mask must be boolean, got float32", (Q, K, K), {"mask": np.ones((5, 7), "float32")}),
        (TypeError, "bias must be floating, got int32", (Q, K, K), {"bias": np.ones((5, 7), "int32")}),
        (TypeError, "query must be one of float32", (Q.astype("int32"), K, K), {}),
        (TypeError, "must have one dtype, got float32, bfloat16", (Q, K.astype("bfloat16"), K), {}),
        (ValueError, r"dropout must be in \[0, 1\), got 1.0", (Q, K, K), {"dropout": 1.0, "seed": 0}),
        (ValueError, r"dropout must be in \[0, 1\), got -0.1", (Q, K, K), {"dropout": -0.1, "seed": 0}),
        (ValueError, "dropout needs a seed", (Q, K, K), {"dropout": 0.1}),
        (TypeError, "seed must hold integers", (Q, K, K), {"dropout": 0.1, "seed": np.ones(2, "float32")}),
        (ValueError, "seed must be a scalar or hold", (Q, K, K), {"dropout": 0.1, "seed": np.ones(3, "uint32")}),
        (ValueError, "must be given together", (Q, K, K), {"query_segments": np.ones((2, 5), "int32")}),
        (
            ValueError,
            r"key_lengths must have shape \(2,\), got \(3,\)",
            (Q, K, K),
            {"key_lengths": np.ones(3, "int32")},
        ),
        (TypeError, "query_lengths must hold integers", (Q, K, K), {"query_lengths": np.ones(2, "float32")}),
        (
            ValueError,
            r"causal_offset must be a scalar, got shape \(2,\)",
            (Q, K, K),
            {"causal": True, "causal_offset": np.ones(2, "int32")},
        ),
        (ValueError, "impl must be one of auto, kernel, reference, interpret, cudnn", (Q, K, K), {"impl": "nonsense"}),
        (KernelUnavailable, "triton: runs on cuda, not on cpu", (Q, K, K), {"impl": "kernel"}),
        (KernelUnavailable, "triton: head size 300 is over 256", (np.ones((3, 300), "float32"),) * 3, {"impl": "interpret"}),
    ],
)
def test_bad_input(error, words, arguments, options):
    with pytest.raises(error, match=words):
        attention(*arguments, **options)


def test_override_reaches_inside():
    with override("kernel"), pytest.raises(KernelUnavailable, match="not on cpu"):
        attention(Q, K, K)
    with override("reference"):
        assert attention(Q, K, K).shape == Q.shape
