"""Numbers that do not fit their type, NaN and infinities in 16 bits, shapes without elements: torch's results and error classes."""

import array
import contextlib
import warnings

import numpy as np
import pytest
from same import outcomes, same

import torchlike
from torchlike._core import program

N, INF = float("nan"), float("inf")
NARROW = ("float16", "bfloat16")


@same
def test_numbers_as_integers(torch):
    """Data of torch.tensor: negative integers wrap around in types without a sign, floats never do."""
    numbers = (-0.5, 3.7, -1.0, 300, -3, -255, -256, 300.0, 70000, -70000, 1e10, 2**31, -(2**31), 2**63, 2**64, -(2**70), 1e19, N, INF, 1j, True)
    names = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
    forms = ("torch.tensor({x}, dtype=torch.{d})", "torch.tensor([{x}], dtype=torch.{d})", "torch.full((1,), {x}, dtype=torch.{d})",
             "torch.zeros(1, dtype=torch.{d}).fill_({x})")
    calls = [form.format(x=repr(x).replace("nan", "np.nan").replace("inf", "np.inf"), d=d) for form in forms for d in names for x in numbers]
    return outcomes({"torch": torch}, calls)


@same
def test_numbers_too_large_for_floats(torch):
    """16-bit floats are filled with inf; everything else refuses."""
    forms = ("torch.full((1,), {x}, dtype=torch.{d})", "torch.zeros(1, dtype=torch.{d}).fill_({x})", "torch.tensor([{x}], dtype=torch.{d})",
             "torch.zeros(1, dtype=torch.{d}).masked_fill(torch.tensor([True]), {x})", "torch.zeros(1, dtype=torch.{d}).clamp(min={x})",
             "torch.zeros(1, dtype=torch.{d}).clamp(max=-{x})")
    calls = [form.format(x=x, d=d) for form in forms for d in (*NARROW, "float32", "float64") for x in ("1e5", "1e39", "2**70", "7")]
    return outcomes({"torch": torch}, calls)


@same
def test_nan_in_16_bits(torch):
    scope = {"torch": torch}
    for d in NARROW:
        scope[d] = torch.tensor([[N, 1, 2, 3, N], [4, N, 0, INF, -INF]], dtype=getattr(torch, d))
    calls = ("{x}.sort(1)", "{x}.sort(dim=1, descending=True, stable=True)", "{x}.argsort(dim=1, stable=True)", "{x}.topk(2, 1)[0]", "{x}.topk(2, 1, largest=False)[0]",
             "{x}.median(1)", "{x}.kthvalue(2, 1)", "torch.msort({x})", "torch.bucketize({x}, torch.tensor([0.0, 1, 2], dtype={x}.dtype))", "{x}.nan_to_num()",
             "{x}.nan_to_num(1, 2, 3)", "{x}.nan_to_num(neginf=-7)")
    return outcomes(scope, [call.format(x=d) for call in calls for d in NARROW])


@same
def test_next_numbers_in_16_bits(torch):
    scope = {"torch": torch}
    for d in NARROW:
        scope[d] = torch.tensor([1, 0, -0.0, INF, N, 3, -2, -2, 1], dtype=getattr(torch, d))
        scope[d + "_to"] = torch.tensor([2, -1, 1, 0, 1, 3, -3, -1, N], dtype=getattr(torch, d))
    return outcomes(scope, [f"torch.nextafter({a}{x}, {a}{y}).view(torch.int16)" for a in NARROW for x, y in (("", "_to"), ("_to", ""))])


@same
def test_a_norm_that_is_no_number(torch):
    return torch.renorm(torch.tensor([[N, 1.0], [3.0, 4.0], [0.1, 0.1]]), 2, 0, 1.0)


@same
def test_without_elements(torch):
    calls = ["torch.unique(torch.zeros(0, 5), dim=0)", "torch.unique(torch.zeros(2, 0, 5), dim=1, return_inverse=True, return_counts=True)",
             "torch.unique(torch.zeros(0, 0), dim=0)", "torch.unique(torch.zeros(0, 5), dim=1)", "torch.unique_consecutive(torch.zeros(0, 5), dim=0)",
             "torch.unique_consecutive(torch.zeros(0), dim=0, return_inverse=True, return_counts=True)", "torch.unique_consecutive(torch.zeros(0, 0), dim=1)",
             "torch.tensor(0.5).unfold(0, 0, 1)", "torch.tensor(0.5).unfold(0, 1, 1)", "torch.tensor(0.5).unfold(0, 2, 1)", "torch.tensor(0.5).unfold(0, 1, 0)",
             "torch.tensor(0.5).unfold(0, -1, 1)"]
    return outcomes({"torch": torch}, calls)


@same
def test_where_nonzero_writes(torch):
    """`out=` has to be int64, and there is none for a tuple."""
    long, real = ("torch.empty(0, dtype=torch.int64)", "torch.empty(0)")
    calls = [f"torch.nonzero(torch.ones(3), out={out})" for out in (long, real)]
    calls += [f"torch.nonzero_static(torch.ones(3), size=2, out={out})" for out in (long, real)]
    return outcomes({"torch": torch}, [*calls, f"torch.nonzero(torch.ones(3), as_tuple=True, out={long})", f"torch.argwhere(torch.ones(3), out={long})"])


@same(raises="ValueError")
def test_arrays_between_elements(torch):
    array = np.array([3.0, 5.0, 8.0])
    return torch.from_numpy(np.lib.stride_tricks.as_strided(array, (2,), (3,)))


@same
def test_histograms_of_nothing_and_of_a_point(torch):
    calls = [f"torch.histogram({x}, {bins}, {more})" for x in ("torch.zeros(0)", "torch.tensor([1.0, 2, 3])", "torch.tensor(2.0)")
             for bins, more in ((2, ""), (2, "range=(1.0, 1.0)"), (1, "range=(0.0, 2.0)"), ("torch.ones(2, 2)", ""), ("torch.ones(0)", ""), ("torch.ones(1)", ""))]
    calls += ["torch.histc(torch.ones(2, dtype=torch.int32), 3, 5, 1)", "torch.histc(torch.ones(2, dtype=torch.int32), 3)", "torch.histc(torch.zeros(0), 3)",
              "torch.histc(torch.ones(2), 3, 1, 1)", "torch.kthvalue(torch.zeros(2, 0), 1, dim=1)"]
    return outcomes({"torch": torch}, calls)


@same
def test_names_that_numpy_has(torch):
    calls = ["torch.add(x1=torch.ones(2), x2=torch.ones(2))", "torch.sum(a=torch.ones(2), axis=0)", "torch.abs(x=torch.ones(2))", "torch.abs(x1=torch.ones(2))",
             "torch.ones(2).add(x2=torch.ones(2))", "torch.ones(2).add_(x2=torch.ones(2))", "torch.mul(x1=torch.ones(2), other=3)",
             "torch.add(x1=torch.ones(2), input=torch.ones(2))", "torch.add(x1=torch.ones(2), x=torch.ones(2))", "torch.abs(x2=torch.ones(2))"]
    return outcomes({"torch": torch}, calls)


@same
def test_too_few_degrees_of_freedom(torch):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        x = torch.ones(2, 3)
        made = [f(x, dim=1, correction=c) for f in (torch.std, torch.var, torch.std_mean, torch.var_mean) for c in (2, 3, 5)] + [x[:, :1].std(1), x[0, 0].var()]
    return made, sorted({str(w.message).split(" (")[0] for w in seen})


@same
def test_columns_of_equal_numbers_do_not_vary(torch):
    x = torch.tensor([3.7, 0.1, 1e4 / 3]).repeat(100, 1).requires_grad_()
    made = [x.std(0), x.var(0), x.double().var(0), torch.std_mean(x, 0)[0], torch.compile(lambda x: x.var(0), backend="eager")(x)]
    x.std(0).sum().backward()
    return [m.tolist() for m in made], x.grad.abs().max().item(), torch.stack([x[:3, 0], torch.arange(3.)]).std(1)


@same
def test_functions_of_elements(torch):
    x, w, i, b = torch.zeros(2), torch.zeros(2, requires_grad=True), torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.bool)
    calls = [f"{t}.apply_(lambda a: {made})" for t in "xwib" for made in ("'s'", "None", "2", "a", "True")]
    calls += ["x.map_(w, lambda a, b: a)", "x.map_(x, lambda a, b: 's')", "x.map_(3, lambda a, b: a)", "x.map2_(x, w, lambda a, b, c: a)",
              "x.map2_(x, x + 1, lambda a, b, c: b + c)"]
    return outcomes({"x": x, "w": w, "i": i, "b": b}, calls)


@same
def test_other_types_for_a_place(torch):
    calls = ["torch.zeros(2).set_(torch.zeros(2).double())", "torch.zeros(2).set_(torch.zeros(2).double().storage())",
             "torch.zeros(2).set_(torch.zeros(2).double().storage(), 0, (2,), (1,))", "torch.zeros(2).set_(torch.ones(2).untyped_storage())",
             "torch.zeros(2).new(size=(3, 4)).shape", "torch.Generator('opengl')", "torch.Generator('meta')", "torch.Generator('cpu').device.type",
             "torch.empty(1, 2, 3, 4).dim_order(ambiguity_check='no')", "torch.empty(1, 2, 3, 4).dim_order(ambiguity_check=[3])",
             "torch.empty(2, 2, 3, 4).dim_order(ambiguity_check=[torch.channels_last])", "torch._assert_async(torch.tensor(0))", "torch._assert_async(torch.tensor(2.0))",
             "sorted(torch.special.__all__)", "torch.storage.TypedStorage.__name__"]
    return outcomes({"torch": torch}, calls)


@same
def test_a_deterministic_switch_keeps_what_it_warns(torch):
    made = []
    for warn in (True, False):
        torch.use_deterministic_algorithms(False, warn_only=warn)
        made.append((torch.is_deterministic_algorithms_warn_only_enabled(), torch.get_deterministic_debug_mode(), torch.are_deterministic_algorithms_enabled()))
    return made


@same
def test_what_asarray_reads(torch):
    """Buffers are bytes of the dtype asked for, capsules are opened, and copy=False refuses what cannot share memory."""
    capsule = torch.utils.dlpack.to_dlpack
    scope = {"torch": torch, "a": array.array("d", [1, 2]), "m": memoryview(np.arange(4, dtype=np.complex64)), "c": [capsule(torch.arange(3)) for _ in range(3)],
             "w": torch.ones(2, requires_grad=True)}
    calls = ["torch.asarray(bytearray(range(8)))", "torch.asarray(bytearray(range(8)), dtype=torch.int16)", "torch.asarray(m, dtype=torch.complex64)",
             "torch.asarray(b'abcd')", "torch.asarray(bytearray(7))", "torch.asarray(bytearray(0))", "torch.asarray(a, dtype=torch.int64)",
             "torch.frombuffer([1, 2], dtype=torch.int32)", "torch.asarray([1, 2], copy=False)", "torch.asarray(3.5, copy=False)",
             "torch.asarray(np.arange(3), copy=False)", "torch.asarray(np.arange(3), dtype=torch.float32, copy=False)", "torch.asarray(np.float32(3), copy=False)",
             "torch.asarray(torch.arange(3), dtype=torch.float32, copy=False)", "torch.asarray(c[0])", "torch.asarray(c[1], dtype=torch.float32)",
             "torch.asarray(c[2], copy=True)", "torch.asarray(w).requires_grad", "torch.asarray(w, requires_grad=False).requires_grad",
             "torch.asarray([1.0], requires_grad=True).requires_grad"]
    return outcomes(scope, calls)


@same
def test_gradients_of_maxima_among_nan(torch):
    """A window with NaN gives its gradient to the last of them, one with equal maxima to the first."""
    F = torch.nn.functional
    line = torch.tensor([[[1.0, N, N, 2, N, 3, 4, 4, N, N, N, 0, 5, 5, 5, 1, N, 2, N, N]]])
    image = line.reshape(1, 4, 5)
    cases = ((line, lambda x: F.max_pool1d(x, 3)), (line, lambda x: F.max_pool1d(x, 4, 2)), (line, lambda x: F.max_pool1d(x, 11, 3)),
             (line, lambda x: F.adaptive_max_pool1d(x, 3)), (image, lambda x: F.max_pool2d(x, 2)), (image, lambda x: F.max_pool2d(x, 2, 1, 1)),
             (image, lambda x: F.max_pool2d(x, 2, return_indices=True)[0]), (image, lambda x: F.max_pool2d(x, (3, 4), 1)),
             (image, lambda x: F.max_pool2d(x, 2, dilation=2)), (image, lambda x: F.adaptive_max_pool2d(x, (2, 3))),
             (image, lambda x: F.fractional_max_pool2d(x, 2, output_size=2, _random_samples=torch.tensor([[[0.3, 0.4]]]))))
    found = []
    for data, f in cases:
        for _ in range(6):  # in NumPy, then compiled
            x = data.clone().requires_grad_()
            y = f(x)
            y.backward(torch.arange(1.0, 1 + y.numel()).reshape(y.shape))
            found.append(x.grad.tolist())
    return found, F.adaptive_max_pool2d(image, (2, 3), return_indices=True)[1]


@same
def test_floats_as_bytes(torch):
    """A float64 becomes a byte by way of 64 bits, a float32 by way of 32."""
    x = torch.tensor([2.0**31, 2.0**31 + 5, 2.0**32 + 7, -(2.0**31) - 3, -(2.0**32) - 9, 2.0**40 + 3, 2.0**53 + 2, 2.0**63, 1e19, -1e30, INF, -INF, N, 300, -1, -129, 255.9],
                     dtype=torch.float64)
    return [[x[:n].to(source).to(torch.uint8) for _ in range(6)] for source in (torch.float64, torch.float32) for n in (17, 3, 1)]


@same(tol=4)
def test_binary_cross_entropy_at_its_ends(torch):
    """The gradient of the target is no longer cut off where the loss is."""
    found = []
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor([0.0, 0, 0, 1, 1, 1, 0.5, 0.5], dtype=dtype, requires_grad=True)
        t = torch.tensor([0.0, 1, 0.3, 0, 1, 0.3, 1, 0], dtype=dtype, requires_grad=True)
        for reduction in ("sum", "mean"):
            found += torch.autograd.grad(torch.nn.functional.binary_cross_entropy(x, t, reduction=reduction), (x, t))
    return found


@pytest.mark.parametrize("immediate", [False, True])
def test_norms_of_constant_images_are_their_bias(immediate):
    """As in torch, but for kernels that round the bias with it; a compiled program subtracts a rounded mean."""
    F = torchlike.nn.functional
    torchlike.manual_seed(0)
    with torchlike.immediate() if immediate else contextlib.nullcontext(), program.tier("numpy"):
        for number in (3.7, 0.1, 1e4 / 3, 77.77, 0.0):
            for shape in ((2, 6, 5, 5), (1, 4, 64, 64)):
                for dtype in (torchlike.float32, torchlike.float64):
                    x, weight, bias = torchlike.full(shape, number, dtype=dtype), *torchlike.rand(2, shape[1], dtype=dtype)
                    for y in (F.group_norm(x, 2, weight, bias), F.batch_norm(x, None, None, weight, bias, True), F.instance_norm(x, None, None, weight, bias),
                              F.layer_norm(x, x.shape[1:]) + bias.reshape(-1, 1, 1)):
                        assert (y == bias.reshape(-1, 1, 1)).all(), (number, shape, dtype)


@same(tol=100)
def test_norms_of_nearly_constant_images(torch):
    """Numbers of which some are equal are no constant: neither two in turns nor one that differs."""
    F, x = torch.nn.functional, torch.ones(3, 4, 8, 8)
    x[0] += torch.arange(64).reshape(8, 8) % 2 * 1e-3
    x[1, :, 3, 3] += 1e-3
    x[2] += torch.arange(8)[:, None] % 2 * 1e-3
    x = torch.cat([x, torch.zeros(1, 4, 8, 8)])
    return [f(x) for f in (lambda x: F.group_norm(x, 2), lambda x: F.layer_norm(x, (4, 8, 8)), lambda x: F.instance_norm(x), lambda x: F.layer_norm(x, (8,)),
                           lambda x: F.batch_norm(x[:1], None, None, training=True), torch.compile(lambda x: F.group_norm(x, 4), backend="eager"))]


@same
def test_batch_norm_of_no_channels(torch):
    return outcomes({"torch": torch}, [f"torch.nn.functional.batch_norm(torch.zeros({shape}), None, None, training=True)"
                                       for shape in ((2, 0, 4, 4), (0, 3, 2), (1, 3), (1, 3, 1, 1))])
