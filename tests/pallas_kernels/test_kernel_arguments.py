"""Each array argument of each public function: not an array, of a dtype or a rank that does not fit; and odd options."""

import re

import numpy as np
import pytest

import pallas_kernels

# NumPy's arrays: JAX would compile a program for the making of each.
F, I = lambda shape: np.ones(shape, "float32"), lambda *shape: np.ones(shape, "int32")
SEQUENCE = {"x": F((4, 3, 5)), "w_ih": F((24, 5)), "w_hh": F((24, 6)), "b_ih": F(24), "b_hh": F(24)}
CALLS = {  # function: (arrays that fit each other, other arguments)
    "attention": (
        {
            "query": F((2, 4, 5, 8)),
            "key": F((2, 2, 7, 8)),
            "value": F((2, 2, 7, 8)),
            "bias": F((2, 4, 5, 7)),
            "mask": np.ones((2, 4, 5, 7), bool),
            "query_segments": I(2, 5),
            "key_segments": I(2, 7),
            "query_lengths": I(2),
            "key_lengths": I(2),
        },
        {},
    ),
    "layer_norm": ({"x": F((4, 6)), "weight": F(6), "bias": F(6), "residual": F((4, 6))}, {}),
    "rms_norm": ({"x": F((4, 6)), "weight": F(6), "residual": F((4, 6))}, {}),
    "group_norm": ({"x": F((4, 6)), "weight": F(6), "bias": F(6)}, {"groups": 2}),
    "norm_gradients": ({"x": F((4, 6)), "weight": F(6), "gradient": F((4, 6))}, {}),
    "cross_entropy": ({"logits": F((4, 6)), "target": I(4), "class_weight": F(6)}, {}),
    "linear_cross_entropy": (
        {"x": F((4, 6)), "weight": F((9, 6)), "target": I(4), "bias": F(9), "class_weight": F(9)},
        {},
    ),
    "grouped_mm": ({"x": F((4, 6)), "weight": F((3, 6, 2)), "group_sizes": I(3)}, {}),
    "recurrent_layer": (SEQUENCE | {"h0": F((3, 6)), "c0": F((3, 6)), "lengths": I(3)}, {"mode": "lstm"}),
    "recurrent": (
        {"x": F((4, 3, 5)), "h0": F((1, 3, 6)), "c0": F((1, 3, 6)), "lengths": I(3)},
        {"mode": "lstm", "weights": [list(SEQUENCE.values())[1:]]},
    ),
}


@pytest.mark.parametrize(("op", "name"), [(op, name) for op, (arrays, _) in CALLS.items() for name in arrays])
def test_an_array_that_does_not_fit(op, name):
    arrays, others = CALLS[op]
    call = lambda wrong: getattr(pallas_kernels, op)(**{**arrays, name: wrong}, **others)
    with pytest.raises(TypeError, match=rf"{name} must be an array, got list"):
        call([1.0])
    with pytest.raises(TypeError, match=rf"(?=.*\b{name}\b).*complex64"):
        call(arrays[name].astype("complex64"))
    deeper = arrays[name][None, None]
    with pytest.raises(ValueError, match=re.escape(str(deeper.shape))):
        call(deeper)


@pytest.mark.parametrize(
    ("op", "options", "error", "words"),
    [
        ("attention", {"scale": -1.0}, ValueError, r"scale must not be negative.*got -1.0 for query \(2, 4, 5, 8\)"),
        ("attention", {"scale": "a"}, TypeError, "scale must be a number, got 'a'"),
        ("attention", {"causal": "yes"}, TypeError, "causal must be True or False, got 'yes'"),
        ("attention", {"causal": True, "causal_offset": 1.5}, TypeError, "causal_offset must be an integer, got 1.5"),
        ("attention", {"dropout": "x", "seed": 1}, TypeError, "dropout must be a number"),
        ("layer_norm", {"axes": (1,)}, TypeError, r"axes must be an integer, got \(1,\)"),
        ("rms_norm", {"eps": None}, TypeError, "eps must be a number, got None"),
        ("group_norm", {"groups": 2.0}, TypeError, "groups must be an integer, got 2.0"),
        ("group_norm", {"groups": -2}, ValueError, r"channels of x \(4, 6\) must be a multiple of groups, got -2"),
        ("norm_gradients", {"axes": 3}, ValueError, r"x \(4, 6\) and weight that of its last 3"),
        ("cross_entropy", {"ignore_index": 1.5}, TypeError, "ignore_index must be an integer, got 1.5"),
        ("cross_entropy", {"label_smoothing": -0.1}, ValueError, r"label_smoothing must be in \[0, 1\], got -0.1"),
        ("linear_cross_entropy", {"chunk": 2.5}, TypeError, "chunk must be an integer, got 2.5"),
        ("linear_cross_entropy", {"chunk": 0}, ValueError, "chunk must be positive, got 0"),
        ("grouped_mm", {"impl": "fast"}, ValueError, "grouped_mm: impl must be one of auto, .* got 'fast'"),
        ("recurrent_layer", {"reverse": 2}, TypeError, "reverse must be True or False, got 2"),
        ("recurrent", {"weights": []}, ValueError, r"weights must hold .* got entries of \[\] arrays"),
        ("recurrent", {"weights": [[F((24, 5))]]}, ValueError, r"got entries of \[1\] arrays"),
        ("recurrent", {"c0": F((2, 3, 6))}, ValueError, r"c0 must have the shape of h0 \(1, 3, 6\), got \(2, 3, 6\)"),
        ("recurrent", {"bidirectional": True}, ValueError, "got 1 with 2 directions"),
    ],
)
def test_an_option_that_does_not_fit(op, options, error, words):
    arrays, others = CALLS[op]
    with pytest.raises(error, match=words):
        getattr(pallas_kernels, op)(**{**arrays, **others, **options})
