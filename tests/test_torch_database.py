"""Every operation and module of PyTorch's own test database, with its samples: values, dtypes, shapes, gradients, classes of errors."""

import numpy as np
import pytest
import torch
from compare import Difference, attempt, differences
from torch_database import MODULES, OPERATIONS, Converter, Unconverted, lookup, subject_of, tensors_in

MOST = {torch.float32: 24, torch.int64: 6, torch.bool: 6, torch.complex64: 6, torch.float8_e4m3fn: 6}  # samples of an operation, by their dtype
TOLERANCE = 30  # the database's samples are large, and rounded in another order

_PRIVATE = "a private name that nothing but PyTorch's own code uses"
_DESCRIPTOR = "called with a number as self"
_OVERLAP = "out= that is the input's memory is written"
_PRECISION = "out= of another dtype is written"
_TIES = "which of equal elements comes first"
_DIMENSIONS = "an input of 65 dimensions, more than NumPy's arrays have"
_COMPRESSED = "compressed sparse tensors"
DIFFERENT = {  # by the kind of difference: the operations, and why
    "value": {
        **dict.fromkeys(("kthvalue", "topk", "sort", "argsort"), _TIES),
        "as_strided.partial_views": "parts of larger memory, which this test does not convert",
        "as_strided_scatter": "PyTorch passes a gradient on to what was overwritten",
    },
    "raised": {
        **{f"__r{name}__": _DESCRIPTOR for name in ("mod", "pow", "sub")},
        "as_strided.partial_views": "parts of larger memory, which this test does not convert",
    },
    "not raised": {
        **{f"__r{name}__": _DESCRIPTOR for name in ("add", "mul", "div", "and", "or", "xor")},
        **dict.fromkeys(("take", "cat"), _OVERLAP),
        "gather": _PRECISION,
        "chalf": "PyTorch's complex halves cannot be read by NumPy",
    },
    "class": {
        "narrow_copy": "a dimension out of range is an IndexError, as narrow's",
    },
    "unconverted": {
        **dict.fromkeys(("sparse.sampled_addmm", "sparse.mm.reduce"), _COMPRESSED),
        **dict.fromkeys(("aminmax", "amax", "amin"), _DIMENSIONS),
    },
    "missing": {
        **dict.fromkeys((
            "_native_batch_norm_legit", "_batch_norm_with_update", "_upsample_bilinear2d_aa", "_unsafe_masked_index",
            "_unsafe_masked_index_put_accumulate", "_chunk_cat", "torch._scaled_mm_v2",
            "torch.ops.aten._flash_attention_forward", "slice", "torch.ops.aten._efficient_attention_forward",
            "native_dropout_backward"), _PRIVATE),
        **{f"jiterator_{name}": "compiles CUDA source" for name in ("unary", "binary", "4inputs_with_extra_args", "binary_return_by_ref", "2inputs_2outputs")},
    },
}
WITHOUT_VALUES = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided",  # what nobody wrote
                  "linalg.eigh", "svd_lowrank", "pca_lowrank"}  # vectors of either sign
ON_CUDA = {"nn.functional.batch_norm.without_cudnn"}  # has no samples for the CPU
OF_LAYERS = {"TransformerEncoder"}  # made of a layer, which is not converted


def _gradients(library, out, inputs):
    outs, inputs = [t for t in tensors_in(out) if t.requires_grad], [t for t in inputs if t.requires_grad]
    if not outs or not inputs:
        return None
    given = []
    for k, t in enumerate(outs):
        rng = np.random.default_rng(k)
        g = rng.standard_normal(tuple(t.shape))
        given.append(library.tensor(g + 1j * rng.standard_normal(tuple(t.shape)) if t.is_complex() else g).to(t.dtype))
    return library.autograd.grad(outs, inputs, given, allow_unused=True)


def _ran(library, function, sample, inputs):
    """What a call returns, and its gradients."""
    def run():
        library.manual_seed(5)
        out = function(*sample[0], **sample[1])
        return out, _gradients(library, out, inputs)
    return attempt(run)


def _pairs(op, subject, dtype):
    """(sample of torch, the same for the subject)."""
    gradients = dtype is torch.float32 and op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    torch.manual_seed(0)
    for k, s in enumerate(op.sample_inputs("cpu", dtype, requires_grad=gradients)):
        if k == MOST[dtype]:
            return
        yield ((s.input, *s.args), s.kwargs), Converter(subject)


def _samples(op, subject):
    """(what it is, the sample, its converter, whether it has gradients) of all dtypes, then wrong inputs."""
    for dtype in MOST:
        if dtype in op.dtypes:
            yield from ((f"{dtype} sample {k}", sample, convert, True) for k, (sample, convert) in enumerate(_pairs(op, subject, dtype)))
    for k, entry in enumerate(op.error_inputs("cpu") if op.error_inputs_func else ()):
        s = entry.sample_input
        yield f"wrong input {k}", ((s.input, *s.args), s.kwargs), Converter(subject), False


def _found(op, subject) -> list[Difference]:
    try:
        function = subject_of(op, subject)
    except AttributeError as error:
        return [Difference("missing", str(error))]
    found, seen = [], 0
    for what, sample, convert, gradients in _samples(op, subject):
        seen += 1
        try:
            other = convert(sample)
        except Unconverted as error:
            found.append(Difference("unconverted", f"{what}: {error}"))
            continue
        want = _ran(torch, op.op, sample, tensors_in(sample) if gradients else [])
        got = _ran(subject, function, other, tensors_in(other) if gradients else [])
        found += [Difference(d.kind, f"{what}: {d.text}")
                  for d in differences(want, got, strides=None, tol=TOLERANCE, values=op.name not in WITHOUT_VALUES)]
    assert seen, "nothing was compared"
    return found


def _trained(library, kind, built, sample):
    """(repr, result and gradients, state after it) of a module made from a seed."""
    library.manual_seed(3)
    module = kind(*built[0], **built[1])
    module.train()
    outcome = _ran(library, module, sample, [*tensors_in(sample), *module.parameters()])
    return repr(module), outcome, attempt(lambda: dict(module.state_dict()))


@pytest.mark.parametrize("name", [name for name in MODULES if name not in OF_LAYERS])
def test_module(subject, name):
    """A module with the database's arguments: what it prints, computes, passes back and keeps."""
    entry, found, seen = MODULES[name], [], 0
    torch.manual_seed(0)
    for k, m in enumerate(entry.module_inputs_func(entry, device="cpu", dtype=torch.float32, requires_grad=True, training=True)):
        if m.forward_input is None:
            continue
        parts = (m.constructor_input.args, m.constructor_input.kwargs), (m.forward_input.args, m.forward_input.kwargs)
        want = _trained(torch, entry.module_cls, *parts)
        kind = lookup(subject, f"{entry.module_cls.__module__.removeprefix('torch.')}.{entry.module_cls.__name__}")
        got = _trained(subject, kind, *Converter(subject)(parts))
        seen += 1
        if want[0] != got[0]:
            found.append(f"input {k}: {got[0]}, torch {want[0]}")
        found += [f"input {k}: {d}" for w, g in zip(want[1:], got[1:]) for d in differences(w, g, strides=None, tol=TOLERANCE)]
    assert seen and not found, "\n" + "\n".join(found[:20])


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in ON_CUDA])
def test_operation(subject, name):
    """Listed differences must still be there, and of the kinds listed: who mends one takes it off the list."""
    found = _found(OPERATIONS[name], subject)
    listed = {kind for kind, names in DIFFERENT.items() if name in names}
    assert {d.kind for d in found} == listed, "\n" + "\n".join(map(str, found[:20]))
