"""Small names that libraries on top of torch (transformers, accelerate) ask for when they are imported."""
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
import setuptools
from same import error, same


@same
def test_a_dictionary_flattened_with_its_keys(torch):
    pairs, context = torch.utils._pytree._dict_flatten_with_keys({"a": 1, 2: 3})
    return [(str(k), v) for k, v in pairs], context


@same
def test_graphs_need_a_gpu(torch):
    return isinstance(torch.cuda.CUDAGraph, type), error(torch.cuda.CUDAGraph), error(torch.cuda.graph, None)


@same
def test_marks_of_the_compiler(torch):
    def f():
        return 1
    marked = torch._dynamo.assume_constant_result(f)
    module = torch.compile(torch.nn.Linear(2, 2))
    return (marked is f, f.__dict__, torch.compiler.assume_constant_result(f) is f,
            isinstance(module, torch._dynamo.eval_frame.OptimizedModule))


@same
def test_settings_of_the_compiler(torch):
    from importlib import import_module
    config = import_module(f"{torch.__name__}._inductor.config")
    before = vars_of(config)
    config.coordinate_descent_tuning = config.triton.cudagraphs = True
    after = torch._inductor.config.coordinate_descent_tuning, config.triton.cudagraphs
    config.coordinate_descent_tuning = config.triton.cudagraphs = False
    return before, after


def vars_of(config):
    names = ("coordinate_descent_tuning", "epilogue_fusion", "conv_1x1_as_mm", "max_autotune", "max_autotune_gemm_backends",
             "fx_graph_cache", "force_fuse_int_mm_with_mul", "use_mixed_mm", "shape_padding", "freezing", "fallback_random")
    return ([getattr(config, name) for name in names], config.triton.unique_kernel_names, config.triton.cudagraphs,
            config.cpp.threads, config.trace.enabled)


@same
def test_extensions_cannot_be_built(torch):
    from importlib import import_module
    extension = import_module(f"{torch.__name__}.utils.cpp_extension")
    return (extension.CUDA_HOME, extension.ROCM_HOME, extension.IS_WINDOWS, extension.get_default_build_root(),
            extension.is_ninja_available(), extension.get_cxx_compiler())


TWICE = """#include <Python.h>
    static PyObject* twice(PyObject*, PyObject* n) { return PyLong_FromLong(FACTOR * PyLong_AsLong(n)); }
    static PyMethodDef methods[] = {{"twice", twice, METH_O, ""}, {nullptr, nullptr, 0, nullptr}};
    static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "twice", nullptr, -1, methods};
    #define JOINED(a, b) a##b
    #define INIT(name) JOINED(PyInit_, name)
    PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() { return PyModule_Create(&definition); }"""


@pytest.mark.skipif(not (shutil.which("ninja") and shutil.which("c++")), reason="needs a compiler")
@same
def test_extension_in_plain_cpp(torch):
    from importlib import import_module
    load = import_module(f"{torch.__name__}.utils.cpp_extension").load
    folder = tempfile.mkdtemp()
    source = os.path.join(folder, "twice.cpp")
    Path(source).write_text(TWICE)
    Path(folder, "wrong.cpp").write_text("#include <no_such_header.h>")
    first, again = (load("twice_of_tests", source, ["-DFACTOR=2"], build_directory=folder) for _ in range(2))
    other = load("twice_of_tests", [source], ["-DFACTOR=3"], build_directory=folder)
    seen = []
    for name, kind in (("wrong.cpp", RuntimeError), ("kernel.cu", OSError)):
        with pytest.raises(kind) as raised:
            Path(folder, "kernel.cu").touch()
            load("wrong_of_tests", os.path.join(folder, name), build_directory=folder)
        seen.append(str(raised.value)[:42])
    return first.twice(4), first is again, other.twice(4), other.__name__, os.path.basename(other.__file__), seen[0]


@same
def test_extension_by_setuptools(torch):
    from importlib import import_module
    extension = import_module(f"{torch.__name__}.utils.cpp_extension")
    folder, name = tempfile.mkdtemp(), f"twice_by_{torch.__name__}"
    Path(folder, "twice.cpp").write_text(TWICE)
    made = extension.CppExtension(name, [os.path.join(folder, "twice.cpp")], extra_compile_args=["-DFACTOR=2"])
    project = setuptools.Distribution({"name": name, "ext_modules": [made], "cmdclass": {"build_ext": extension.BuildExtension.with_options(
        use_ninja=False, no_python_abi_suffix=True)}})
    build = project.get_command_obj("build_ext")
    build.build_lib = build.build_temp = folder
    build.ensure_finalized()
    build.run()
    sys.path.insert(0, folder)
    try:
        twice = import_module(name).twice(4)
    finally:
        sys.path.remove(folder)
    return (twice, made.language, os.path.exists(os.path.join(folder, f"{name}.so")), error(extension.CUDAExtension, name, ["a.cu"]), extension.IS_HIP_EXTENSION,
            extension.HIP_HOME, error(lambda: extension.NoSuchExtension))


@same
def test_functions_can_be_compiled(torch):
    from importlib import import_module
    frames = import_module(f"{torch.__name__}._dynamo.eval_frame")
    return frames.is_dynamo_supported(), frames.is_inductor_supported()


@same
def test_file_baton(torch):
    from importlib import import_module
    lock = tempfile.mkdtemp() + "/lock"
    first, second = (import_module(f"{torch.__name__}.utils.file_baton").FileBaton(lock, wait_seconds=0.01) for _ in range(2))
    seen = first.try_acquire(), second.try_acquire(), os.path.exists(lock)
    threading.Timer(0.05, first.release).start()
    second.wait()
    return seen, os.path.exists(lock), second.try_acquire(), second.release()


@same
def test_scalar_tensors_as_indices_under_vmap(torch):
    from importlib import import_module
    mode = import_module(f"{torch.__name__}._dynamo._trace_wrapped_higher_order_op").TransformGetItemToIndex
    x = torch.arange(12).reshape(3, 4)
    with mode():
        outside = x[torch.tensor(1)]
        inside = torch.vmap(lambda i, j: x[i, j])(torch.tensor([0, 1]), torch.tensor([2, 3]))
    return outside, inside


@same(strides=True)
def test_convolutions_keep_channels_last(torch):
    x, weight = torch.randn(2, 8, 6, 6), torch.randn(4, 2, 3, 3)
    last, patches = x.to(memory_format=torch.channels_last), torch.randn(2, 36, 8).transpose(1, 2).view(2, 8, 6, 6)
    conv = torch.nn.functional.conv2d
    return (conv(last, weight, groups=4), conv(patches, weight, torch.ones(4), groups=4), conv(x, weight, groups=4),
            conv(x, weight.to(memory_format=torch.channels_last), groups=4, padding=1),
            torch.nn.functional.conv_transpose2d(last, torch.randn(8, 3, 2, 2)), conv(patches, torch.randn(3, 8, 6, 6)))


@same(strides=True)
def test_what_follows_a_convolution_keeps_channels_last(torch):
    x, f = torch.randn(2, 8, 6, 6).to(memory_format=torch.channels_last), torch.nn.functional
    return (f.batch_norm(x, torch.zeros(8), torch.ones(8)), f.batch_norm(x, torch.zeros(8), torch.ones(8), training=True),
            f.max_pool2d(x, 2), f.avg_pool2d(x, 2), f.adaptive_max_pool2d(x, 3),
            f.interpolate(x, scale_factor=2, mode="bilinear"), f.interpolate(x, scale_factor=2), torch.cat([x, x], 1),
            torch.cat([x, x.contiguous()], 1), f.max_pool2d(x.contiguous(), 2))


@same
def test_clamp_takes_a_tensor_without_dimensions_for_a_number(torch):
    i, x, low = torch.arange(5), torch.arange(5.0), torch.tensor([2.0, 3, 1, 0, 2])
    return (torch.clamp(i, 0, torch.tensor(3)), torch.clamp(i, 0.5, torch.tensor(3)), i.clamp(torch.tensor(1), 2.5),
            x.half().clamp(1, torch.tensor(2.0, dtype=torch.float64)), error(torch.clamp, x, 1, low),
            error(torch.clamp, x, low, 2.5), error(torch.clamp, x, True, low), error(i.clamp_, 0.5, torch.tensor(3)))


@same
def test_values_of_script_graphs(torch):
    return torch._C.Value.__name__, isinstance(torch.ones(1), torch._C.Value), error(torch._C.Value), torch._C.Graph.__name__, isinstance(1, torch._C.Graph)


@same
def test_containers_flattened_by_their_own_functions(torch):
    from collections import OrderedDict, defaultdict, deque, namedtuple
    p, Pair = torch.utils._pytree, namedtuple("Pair", "a b")
    found = []
    for kind, x in {"list": [1, 2], "tuple": (1, 2), "dict": {"a": 1}, "ordereddict": OrderedDict(a=1), "defaultdict": defaultdict(int, a=1),
                    "deque": deque([1], 3), "namedtuple": Pair(1, 2)}.items():
        values, context = getattr(p, f"_{kind}_flatten")(x)
        keyed, again = getattr(p, f"_{kind}_flatten_with_keys")(x)
        found.append((values, str(context).replace(__name__, ""), [(str(k), v) for k, v in keyed], again == context,
                      getattr(p, f"_{kind}_unflatten")(values, context) == x))
    return found


@same
def test_one_tensor_in_the_place_of_another(torch):
    from importlib import import_module
    m = import_module(f"{torch.__name__}.nn.utils._named_member_accessor")
    layer = torch.nn.BatchNorm1d(2)
    layer.x, layer.y = torch.ones(1), 3
    zeros = torch.zeros(2)
    out = [m.swap_tensor(layer, name, zeros).detach() for name in ("weight", "running_mean", "x")]
    there = [type(t).__name__ for t in (layer._parameters["weight"], layer._buffers["running_mean"], layer.x)]
    m.swap_tensor(layer, "z", zeros, allow_missing=True)
    m.set_tensor(layer, "bias", zeros)
    m.set_tensor(layer, "u", zeros)
    errors = [error(m.swap_tensor, layer, "y", zeros), error(m.swap_tensor, layer, "v", zeros), error(m.swap_tensor, layer, "a.b", zeros),
              error(m.swap_tensor, layer, "", zeros), error(m.swap_tensor, 3, "x", zeros), error(m.swap_tensor, layer, "weight", 3)]
    return out, there, layer.z, type(layer.bias).__name__, layer.u, errors


@same
def test_seeds_of_workers(torch):
    from importlib import import_module
    worker = import_module(f"{torch.__name__}.utils.data._utils.worker")
    return [worker._generate_state(*pair) for pair in ((1234567890123, 3), (5, 0), (2**63 - 1, 7))]


@same
def test_questions_about_tracers_and_devices(torch):
    from importlib import import_module
    fake = import_module(f"{torch.__name__}._subclasses.fake_tensor")
    utils = import_module(f"{torch.__name__}._utils")
    with fake.unset_fake_temporarily():
        x = torch.ones(1)
    return (x, torch._guards.active_fake_mode(), torch._guards.detect_fake_mode([x]), utils._get_device_module("cpu") is torch.cpu,
            error(utils._get_device_module, "meta")[0], isinstance(x, torch._C._distributed_rpc.PyRRef),
            torch._C._has_xpu, torch._C._has_mps, torch._C._has_magma, torch._C._has_cusparselt, torch._C._mps_is_available())


@same
def test_is_compiling_by_its_older_name(torch):
    import warnings
    from importlib import import_module
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        outside = import_module(f"{torch.__name__}._utils").is_compiling()
    return outside, [(w.category, str(w.message)) for w in seen], hasattr(torch.utils, "_mode_utils")


def test_an_operation_over_kernels_of_triton():
    import torchlike
    op = torchlike.library.triton_op("names::twice", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    f = print
    assert torchlike.ops.names.twice(torchlike.ones(2)).tolist() == [2, 2] == op(torchlike.ones(2)).tolist()
    assert torchlike.library.wrap_triton(f) is f


@same
def test_storages_say_their_size(torch):
    import sys
    x, y = torch.ones(10), torch.ones(30)
    return (sys.getsizeof(y.untyped_storage()), sys.getsizeof(y.storage()), sys.getsizeof(y[3:5].untyped_storage()),
            isinstance(x.untyped_storage(), torch.StorageBase), isinstance(x, torch.StorageBase))


@same
def test_types_of_quantized_tensors_are_names(torch):
    kinds = torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4
    return ([(repr(d), type(d) is torch.dtype, d.itemsize, d.is_floating_point, d.is_complex, d is d.to_real()) for d in kinds], error(lambda: kinds[0].is_signed),
            error(torch.promote_types, torch.qint8, torch.float32), torch.promote_types(torch.qint8, torch.qint8) is torch.qint8,
            torch.can_cast(torch.qint8, torch.int8), error(lambda: torch.tensor([1.0], dtype=torch.qint32))[0])


@same
def test_types_of_narrow_integers_are_names(torch):
    kinds = [getattr(torch, f"{sign}int{bits}") for sign in ("u", "") for bits in range(1, 8)]
    return ([(repr(d), type(d) is torch.dtype, d.itemsize, d.is_signed, d.is_floating_point, d.is_complex, d is d.to_real()) for d in kinds],
            torch.promote_types(torch.uint4, torch.float32), error(torch.promote_types, torch.uint4, torch.uint8), error(torch.promote_types, torch.int4, torch.int8)[0],
            torch.can_cast(torch.int4, torch.float32), error(torch.ones(2).to, torch.uint1), error(torch.iinfo, torch.int4))


@same
def test_float4_is_a_name(torch):
    d = torch.float4_e2m1fn_x2
    return (repr(d), type(d) is torch.dtype, d.itemsize, d.is_floating_point, d.is_signed, d.is_complex, d.abbr, d.to_real() is d, error(d.to_complex),
            torch.can_cast(d, torch.float32), torch.promote_types(d, d) is d, error(torch.promote_types, d, torch.float32), error(torch.ones(2).to, d))


@same
def test_which_tensor_it_is(torch):
    x = torch.nn.Parameter(torch.ones(2))
    known = x._cdata
    others = [y._cdata == known for y in (x, x.detach(), x.view(2), x.data)]
    x.data = torch.zeros(3)
    return others, x._cdata == known, error(setattr, x, "_cdata", 3)[0]


@same
def test_errors_by_their_names_in_the_c_part(torch):
    return (torch._C._LinAlgError is torch.linalg.LinAlgError, torch._C.OutOfMemoryError is torch.cuda.OutOfMemoryError,
            torch._C.AcceleratorError is torch.AcceleratorError)


@same
def test_masks_of_attention_in_one(torch):
    attention, query = torch.nn.MultiheadAttention(4, 2), torch.zeros(3, 5, 4)
    later, each, padding = torch.full((5, 5), -9.0).triu(1), torch.arange(150.0).view(6, 5, 5), torch.zeros(3, 5)
    padding[1, 2:] = -7
    return [attention.merge_masks(*masks, query) for masks in ((None, None), (later, None), (None, padding), (later, padding), (each, padding), (each, None),
                                                               (later.bool(), padding.bool()), (later, padding.bool()))]


@same
def test_layers_of_older_programs(torch):
    from importlib import import_module
    conv = import_module(f"{torch.__name__}.nn.modules.conv")
    with pytest.warns(FutureWarning, match="_ConvTransposeMixin"):
        conv._ConvTransposeMixin(1, 1, (3,), (1,), (0,), (1,), True, (0,), 1, True, "zeros")
    return isinstance(torch.nn.ConvTranspose2d(1, 1, 3), conv._ConvTransposeMixin), issubclass(conv._ConvTransposeMixin, conv._ConvTransposeNd)


@same
def test_reductions_by_number(torch):
    F = torch.nn.functional
    return [F._Reduction.get_enum(x) for x in ("none", "mean", "sum")], error(F._Reduction.get_enum, "max")


@same
def test_settings_have_other_values_inside_a_block(torch):
    from importlib import import_module
    dynamo, inductor, functorch = (import_module(f"{torch.__name__}.{name}.config") for name in ("_dynamo", "_inductor", "_functorch"))

    @dynamo.patch(verbose=True)
    def decorated():
        return dynamo.verbose
    with dynamo.patch(cache_size_limit=3), inductor.patch("triton.cudagraphs", True), functorch.patch({"donated_buffer": False}):
        inside = dynamo.cache_size_limit, inductor.triton.cudagraphs, functorch.donated_buffer
    after = dynamo.cache_size_limit, inductor.triton.cudagraphs, functorch.donated_buffer
    return inside, after, decorated(), dynamo.verbose, error(dynamo.patch("nonsense", 1).__enter__)


@same
def test_types_of_optimizers(torch):
    """Distributed Shampoo takes StateDict."""
    import typing
    from importlib import import_module
    module = import_module(f"{torch.__name__}.optim.optimizer")
    names = ("Args", "Kwargs", "StateDict", "GlobalOptimizerPreHook", "GlobalOptimizerPostHook", "ParamsT")
    return [(name, len(typing.get_args(getattr(module, name))), str(getattr(module, name)).replace(torch.__name__ + "._tensor", "torch").replace("torchlike", "torch"))
            for name in names]


@same
def test_pieces_of_pickled_tensors(torch):
    storage = torch.arange(6.0).untyped_storage()
    typed = torch.storage.TypedStorage(wrap_storage=storage, dtype=torch.float32, _internal=True)
    made = torch._utils._rebuild_tensor_v2(typed, 1, (2, 2), (2, 1), True, {})
    parameter = torch._utils._rebuild_parameter(torch.ones(2), False, {})
    return made, made.requires_grad, made.is_leaf, made.data_ptr() - storage.data_ptr(), parameter, type(parameter).__name__


@same
def test_indices_of_devices(torch):
    index = torch._utils._get_device_index
    return index(3), index("cpu", allow_cpu=True), index(torch.device("cuda:1")), error(index, "cpu"), error(index, torch.device("cuda"))


@same
def test_products_of_float8_with_scales_and_recipes(torch):
    torch.manual_seed(0)
    F = torch.nn.functional
    tensorwise, rowwise, blockwise = F.ScalingType.TensorWise, F.ScalingType.RowWise, F.ScalingType.BlockWise1x32
    a, b = torch.randn(16, 32).to(torch.float8_e4m3fn), torch.randn(48, 32).to(torch.float8_e5m2).t()
    half, two, rows, columns = torch.tensor(0.5), torch.tensor([2.0]), torch.rand(16, 1) + 0.5, torch.rand(1, 48) + 0.5

    def one(*scales, **kwargs):
        return F.scaled_mm(a, b, *scales, **kwargs).float()
    yield one(half, tensorwise, two, tensorwise), one(rows, rowwise, columns, rowwise), one(half, tensorwise, half, tensorwise, output_dtype=None)
    yield one([half], [tensorwise], [two], [tensorwise], bias=torch.arange(48.0), output_dtype=torch.float32, swizzle_a=F.SwizzleType.NO_SWIZZLE)
    for bad in ((half, tensorwise, columns, rowwise), (rows[:5], rowwise, columns, rowwise), (torch.ones(2), tensorwise, two, tensorwise),
                (rows, blockwise, columns, blockwise), (half.double(), tensorwise, two, tensorwise)):
        yield error(F.scaled_mm, a, b, *bad)
    yield error(F.scaled_mm, a, b[:16], half, tensorwise, two, tensorwise), error(F.scaled_mm, a.float(), b.float(), half, tensorwise, two, tensorwise)
    yield error(F.scaled_mm, a, b, half, tensorwise, two, tensorwise, contraction_dim=[0, 0]), repr(rowwise), str(rowwise), int(F.SwizzleType.SWIZZLE_32_4_4)


@same
def test_products_of_float8_with_scales(torch):
    torch.manual_seed(0)
    a, b = (torch.randn(16, 32).to(torch.float8_e4m3fn) for _ in range(2))
    b, half, two = b.t(), torch.tensor(0.5), torch.tensor(2.0)
    rows = torch.full((16, 1), 0.5), torch.full((1, 16), 4.0)
    return (torch._scaled_mm(a, b, half, two, out_dtype=torch.float32), torch._scaled_mm(a, b, *rows, out_dtype=torch.bfloat16, bias=torch.ones(16).bfloat16()),
            torch._scaled_mm(a, b, half, half).float(), error(torch._scaled_mm, a, b, torch.full((3, 1), 0.5), two)[0],
            torch._grouped_mm(torch.ones(4, 8).bfloat16(), torch.ones(2, 8, 8).bfloat16(), offs=torch.tensor([2, 4], dtype=torch.int32)))


@same
def test_casts_of_what_holds_tensors(torch):
    cast = torch.amp.autocast_mode._cast
    x = {"a": [torch.ones(2), torch.ones(2, dtype=torch.float64)], "b": ("text", torch.ones(2, dtype=torch.int32), np.ones(2))}
    made = cast(x, "cpu", torch.bfloat16)
    return [t.dtype for t in made["a"]], made["b"][0], made["b"][1].dtype, made["b"][2].dtype, cast(torch.ones(1), "cuda", torch.float16).dtype


@same
def test_a_size_is_checked(torch):
    with pytest.warns(FutureWarning):
        return torch._check_is_size(2), error(torch._check_is_size, -1), error(torch._check_is_size, 5, max=3)


@same
def test_what_profilers_and_checkpoints_ask(torch):
    from importlib import import_module
    before = torch.autograd._profiler_enabled()
    with torch.profiler.profile():
        inside = torch.autograd._profiler_enabled()
    default = torch.profiler.profiler._default_schedule_fn(3).name
    seen = []

    class Asks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(torch.autograd._is_checkpoint_valid())
            return g
    x = torch.ones(2, requires_grad=True)
    Asks.apply(x).sum().backward()
    torch.autograd.grad(Asks.apply(x).sum(), x)
    y = import_module(f"{torch.__name__}.utils.checkpoint").CheckpointFunction.apply(torch.sin, True, x)
    return before, inside, default, torch.autograd._is_checkpoint_valid(), seen, y


@same
def test_smaller_names(torch):
    from importlib import import_module
    c10d = import_module(f"{torch.__name__}.distributed.distributed_c10d")
    scaler = import_module(f"{torch.__name__}.cuda.amp.grad_scaler")
    loader = import_module(f"{torch.__name__}.utils.data.dataloader")
    shard = import_module(f"{torch.__name__}.distributed.tensor").Shard(0)
    xnnpack = import_module(f"{torch.__name__}.backends.xnnpack")
    return (torch._C._get_accelerator(), torch._C._get_privateuse1_backend_name(), xnnpack.enabled, torch.functional.Tensor is torch.Tensor,
            torch.random.Generator.__name__, torch.jit.Attribute(1, int), torch.jit.RecursiveScriptModule.__name__, torch.jit.Future.__name__,
            c10d._rank_not_in_group(None), c10d._rank_not_in_group(c10d.GroupMember.NON_GROUP_MEMBER), c10d._unpickler.__name__,
            scaler.OptState.UNSCALED.name, {k: str(v) for k, v in import_module(f"{torch.__name__}.amp.grad_scaler")._refresh_per_optimizer_state().items()},
            loader._utils.pin_memory.pin_memory(5), shard._local_shard_size_and_offset(7, 3, 2), torch._inductor.cudagraph_mark_step_begin(),
            torch.Tensor.grad.__get__ in torch.overrides.get_default_nowrap_functions(), error(torch.accelerator.reset_peak_memory_stats))


def test_peaks_of_accelerators_count_from_the_reset(monkeypatch):
    from torchlike import accelerator
    from torchlike.cuda import memory
    asked = []
    monkeypatch.setattr(accelerator._selected, "kind", lambda: "cuda")
    monkeypatch.setattr(memory, "reset_peak_memory_stats", lambda device: asked.append(device))
    monkeypatch.setattr(memory, "max_memory_allocated", lambda device: asked.append(device) or 5)
    accelerator.reset_peak_memory_stats()
    assert accelerator.max_memory_allocated() == 5 and accelerator.max_memory_allocated(1) == 5 and asked == [0, 0, 1]
    for name in ("memory_allocated", "memory_reserved", "max_memory_reserved"):
        monkeypatch.setattr(memory, name, lambda device: 3)
    assert list(accelerator.memory_stats(0).items()) == [("allocated_bytes.all.current", 3), ("allocated_bytes.all.peak", 5),
                                                         ("reserved_bytes.all.current", 3), ("reserved_bytes.all.peak", 3)]
    monkeypatch.setattr(accelerator._selected, "kind", lambda: "tpu")
    with pytest.raises(RuntimeError, match="TPU"):
        accelerator.reset_peak_memory_stats()
