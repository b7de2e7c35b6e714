"""What `import torchao` asks PyTorch for besides the operators that have tests of their own."""
import importlib
import warnings

import pytest
from forked import started
from same import same


def part(torch, name):
    return importlib.import_module(f"{torch.__name__}.{name}")


@same
def test_a_warning_comes_once(torch):
    warn_once = part(torch, "_dynamo.utils").warn_once
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            warn_once(f"a test of {torch.__name__.partition('like')[0]}")
    return [(str(w.message), w.filename == __file__) for w in seen]


@same
def test_parameters_of_kernels_are_kept(torch):
    meta = part(torch, "sparse._triton_ops_meta")
    version = (0, torch.float16, 0.5)
    meta.update("bsr_dense_addmm", "a device", version, (1, 2, 3), (4, 5, 6, 7))
    meta.update("bsr_dense_addmm", "a device", version, (1, 9, 3), (1, 5, 6, 7))
    meta.update("unknown", "a device", version, (1,), (4,))
    for key in ((1, 2, 3), ("*", 2, 3), (1, "*", 3), (1, "*", 4), (1, 1, 3)):
        yield meta.get_meta("bsr_dense_addmm", key, "a device")
    yield meta.get_meta("bsr_dense_addmm", (1, 2, 3), "another")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        meta.update("scatter_mm", "a device", version, (1,), ())
    yield [str(w.message).replace("torchlike", "torch") for w in seen]
    try:
        meta.get_meta("unknown", (1,), "a device")
    except NotImplementedError as error:
        yield str(error)


@same
def test_parameters_of_the_least_time(torch):
    minimize = part(torch, "sparse._triton_ops_meta").minimize

    def step(name, value, direction, parameters):
        found = value + direction if name == "z" else value * 2**direction
        return found if 1 <= found <= 64 else value

    def seconds(p):
        if p["a"] * p["b"] > 128 and p["z"] < 2:
            raise RuntimeError("out of resource")
        return abs(p["a"] - 4) * 0.5 + abs(p["b"] - 16) * 0.25 + (p["z"] - 3) ** 2 + 1.0

    def never(p):
        raise RuntimeError("no")
    return (minimize(seconds, {"b": 1, "a": 64, "z": 5}, {"b": 8, "a": 8, "z": 1}, step), minimize(seconds, {"b": 32, "a": 1, "z": 5}, {"b": 16, "a": 4, "z": 3}, step),
            minimize(never, {"a": 1}, {"a": 2}, step))


@same
def test_an_operator_with_another_dtype_for_its_result(torch):
    out_dtype, aten = part(torch, "_higher_order_ops.out_dtype").out_dtype, torch.ops.aten
    if not callable(out_dtype):
        out_dtype = out_dtype.out_dtype
    a = torch.randint(-128, 128, (4, 5), generator=torch.Generator().manual_seed(0)).to(torch.int8)
    b = a.t().contiguous()
    yield out_dtype(aten.mm.default, torch.int32, a, b), out_dtype(aten.mul.Scalar, torch.int32, a, 300), out_dtype(aten.div.Scalar, torch.int32, a, 3)
    yield out_dtype(aten.mul.Scalar, torch.float32, a, 3.5), out_dtype(aten.linear.default, torch.float32, a.bfloat16(), a.bfloat16(), torch.ones(4).bfloat16())
    x = torch.ones(4, 5, requires_grad=True)
    made = out_dtype(aten.mm.default, torch.float64, x, torch.ones(5, 2))
    yield made.dtype == torch.float64, made.requires_grad
    for wrong in (lambda: made.sum().backward(), lambda: out_dtype(aten.add.Tensor, torch.int32, a, a), lambda: out_dtype(torch.mm, torch.int32, a, b),
                  lambda: out_dtype(aten.add_.Tensor, torch.int32, a, a), lambda: out_dtype(aten.topk.default, torch.int32, a, 1)):
        try:
            wrong()
        except (RuntimeError, ValueError) as error:
            yield type(error).__name__, str(error)


@same
def test_decompositions_of_a_librarys_operators(torch):
    decomposition, make_fx = part(torch, "_inductor.decomposition"), part(torch, "fx.experimental.proxy_tensor").make_fx
    library = torch.library.Library("decomposed_for_a_test", "FRAGMENT")
    library.define("both(Tensor x) -> Tensor")
    library.impl("both", lambda x: x.sin() + x.cos(), "CompositeExplicitAutograd")
    op = torch.ops.decomposed_for_a_test.both

    def both(x):
        return x.sin() + x.cos()
    kept = decomposition.register_decomposition([op])(both)
    graphs = [make_fx(lambda x: op(x), table)(torch.ones(2)) for table in (None, decomposition.decompositions)]
    return kept is both, [[str(n.target) for n in g.graph.nodes] for g in graphs], graphs[1](torch.ones(2))


@same
def test_whether_data_may_be_the_others(torch):
    may, a = torch._has_compatible_shallow_copy_type, torch.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        csr, csc, quantized = torch.ones(2, 2).to_sparse_csr(), torch.ones(2, 2).to_sparse_csc(), torch.quantize_per_tensor(a, 1.0, 0, torch.qint8)
    return [may(x, y) for x, y in ((a, a.int()), (a, a.to_sparse()), (a.to_sparse(), a), (a, torch.ones(3, device="meta")), (a.to_sparse(), csr), (csr, csc), (a, quantized),
                                   (torch.nn.Parameter(a), a), (a.to_sparse(), a.to_sparse()))]


@same
def test_what_the_processor_can(torch):
    found = torch.cpu.get_capabilities()
    return dict(found), error_of(lambda: found.__setitem__("avx2", True)), {n: getattr(torch.cpu, n)() for n in (
        "_is_avx2_supported", "_is_avx512_supported", "_is_avx512_bf16_supported", "_is_vnni_supported", "_is_amx_tile_supported", "_is_amx_fp16_supported")}


def test_a_processors_name():
    """The first two as PyTorch has them on such machines."""
    from torchlike.cpu.capabilities import _shortened
    names = {"Intel(R) Xeon(R) Processor @ 2.00GHz": "Intel Xeon 2.00GHz", "AMD EPYC": "AMD EPYC",
             "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz": "Intel Xeon Platinum 8481C", "AMD EPYC 7B13 64-Core Processor": "AMD EPYC 7B13"}
    assert {name: _shortened(name) for name in names} == names


def error_of(f):
    try:
        f()
    except Exception as error:
        return type(error).__name__
    return "none"


@same
def test_products_of_groups_by_scales_need_a_gpu(torch):
    f, kind = torch.nn.functional.scaled_grouped_mm, torch.nn.functional.ScalingType.RowWise
    a, b = torch.ones(32, 16).to(torch.float8_e4m3fn), torch.ones(2, 32, 16).to(torch.float8_e4m3fn).transpose(1, 2)
    return error_of(lambda: f(a, b, torch.ones(32), kind, torch.ones(2, 32), kind, offs=torch.tensor([16, 32], dtype=torch.int32)))


def test_products_of_groups_by_scales(subject):
    """What they are on a GPU: the products of the numbers that float8 and scales stand for."""
    from torchlike.nn._functional.scaled import _grouped_by_rows
    torch = subject
    a, b = torch.randn(6, 8).to(torch.float8_e4m3fn), torch.randn(2, 8, 4).to(torch.float8_e4m3fn)
    rows, columns, ends = torch.rand(6) + 0.5, torch.rand(2, 4) + 0.5, torch.tensor([2, 6], dtype=torch.int32)
    whole = a.float() * rows[:, None]
    want = torch.cat([whole[:2] @ (b[0].float() * columns[0]), whole[2:] @ (b[1].float() * columns[1])])
    torch.testing.assert_close(_grouped_by_rows(a, b, rows, columns, ends), want)
    x, y = torch.randn(3, 6).to(torch.float8_e4m3fn), torch.randn(6, 4).to(torch.float8_e4m3fn)
    left, right = torch.rand(2, 3) + 0.5, torch.rand(2, 4) + 0.5
    want = torch.stack([(x[:, s:e].float() @ y[s:e].float()) * left[g, :, None] * right[g] for g, (s, e) in enumerate(((0, 2), (2, 6)))])
    torch.testing.assert_close(_grouped_by_rows(x, y, left.flatten(), right.flatten(), ends), want)


class Matrix:
    """Answers a GPU's matrix would give."""

    is_cuda, device = True, "cuda"

    def __init__(self, shape, dtype, contiguous=True):
        self.shape, self.dtype, self.contiguous = shape, dtype, contiguous

    def dim(self):
        return len(self.shape)

    def is_contiguous(self):
        return self.contiguous


@pytest.mark.parametrize("name", ["SparseSemiStructuredTensorCUTLASS", "SparseSemiStructuredTensorCUSPARSELT"])
def test_which_matrices_are_made_semi_structured(oracle, subject, name):
    found = []
    for torch in (oracle, subject):
        kind, half = getattr(torch.sparse, name), torch.float16
        said = [{str(k): tuple(v) for k, v in kind._DTYPE_SHAPE_CONSTRAINTS.items()}, kind.BACKEND]
        for m in (Matrix((128, 128), half), Matrix((128,), half), Matrix((128, 128), half, False), Matrix((128, 128), torch.float64), Matrix((16, 128), half),
                  Matrix((32, 100), torch.int8), torch.ones(128, 128)):
            try:
                said.append(kind._validate_device_dim_dtype_shape(m))
            except RuntimeError as error:
                said.append(str(error).replace("torchlike", "torch"))
        found.append(said)
    assert found[0] == found[1]


def test_semi_structured_matrices(subject, monkeypatch):
    """Packed, unpacked and multiplied; the check of the device is left out, since only GPUs' matrices pass it."""
    torch = subject
    kind = torch.sparse.SparseSemiStructuredTensorCUSPARSELT
    monkeypatch.setattr(kind, "_validate_device_dim_dtype_shape", classmethod(lambda cls, t: None))
    dense = torch.stack([torch.randperm(4) - 1.0 for _ in range(16 * 8)]).reshape(16, 32)
    dense = torch.where((dense == 0) | (dense == 1), 0.0, dense)  # -1 and 2 of each four stay
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t = torch.sparse.to_sparse_semi_structured(dense)
    assert type(t) is kind and t.shape == (16, 32) and t.values().shape == (16, 16) and t.indices().shape == (16, 4) and t.indices().dtype is torch.uint8
    assert torch.equal(t.to_dense(), dense) and torch.equal(t.t().to_dense(), dense.t()) and torch.equal(t.clone().to_dense(), dense)
    x = torch.randn(5, 32)
    layer = torch.nn.Linear(32, 16)
    layer.weight = torch.nn.Parameter(t)
    torch.testing.assert_close(layer(x), x @ dense.t() + layer.bias)
    torch.testing.assert_close(t @ x.t(), dense @ x.t())
    torch.testing.assert_close(x @ t.t(), x @ dense.t())
    largest = torch.arange(32.0).reshape(1, 32).expand(16, 32).contiguous()  # of more than two numbers the largest two stay
    assert torch.equal(kind.from_dense(largest).to_dense(), torch.where(largest % 4 >= 2, largest, 0.0))
    for wrong in (lambda: t @ t, lambda: t + 1, lambda: t.view(32, 16)):
        with pytest.raises((ValueError, NotImplementedError)):
            wrong()


@same
def test_where_parts_of_the_library_are_imported_from(torch):
    return (part(torch, "_library.infer_schema").infer_schema is torch.library.infer_schema,
            part(torch, "_library.custom_ops").CustomOpDef is torch.library.CustomOpDef, part(torch, "_library").triton_op is torch.library.triton_op)


@same
def test_a_dtype_of_four_bits(torch):
    found = torch.float4_e2m1fn_x2
    return str(found).rpartition(".")[2], found.itemsize, found.is_floating_point, found.is_complex, found.is_signed, found.abbr


def test_utils_are_there_with_their_package():
    """`torch._dynamo.utils` without an import of its own."""
    started("-c", "import torchlike, torchlike._dynamo; torchlike._dynamo.utils.warn_once")
